"""How many FLOPs does PyTorch count when the real model runs forward, and backward?

FlopCounterMode sees every operator that PyTorch dispatches, and has a formula for matrix products and
for some fused attention operators. What has no formula counts nothing: element-wise work, and all of
attention where it runs as an operator that was forgotten.
"""

from costlib.domain import require
from costlib.evidence import Counter, Observation
from costlib.fixtures import DECODE_32K, ODD, PREFILL_4K, RUNNING, TRAIN_4K, TRAIN_ODD
from costlib.observe import models, need, products, seen
from costlib.records import ArchitectureManifest, Workload

SEES = (
    "operators that FlopCounterMode has a formula for, FMA = 2 FLOPs; attention as the whole rectangle, whatever the mask; "
    "no element-wise work, no time"
)
BY_MODULE = f"{SEES}; charged to every module that the counter's hooks hold open"


def _fused(module, query, key, value, attention_mask, scaling=None, **_):
    """The operator that sdpa becomes on a GPU where no mask is given, called by its own name."""
    torch, _ = need()
    out = torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, is_causal=True, scale=scaling)[0]
    return out.transpose(1, 2).contiguous(), None


def _cache(model, workload, device):
    """A cache that holds the rows before the new ones, all 0."""
    torch, transformers = need()
    config, cache = model.config, transformers.DynamicCache(config=model.config)
    shape = (workload.batch_size, config.num_key_value_heads, workload.visible_rows - workload.new_rows, config.head_dim)
    for layer in range(config.num_hidden_layers):
        cache.update(*(torch.zeros(shape, dtype=model.dtype, device=device) for _ in "kv"), layer)
    return cache


def _tally(counter) -> dict[str, dict[str, int]]:
    """{module: {operator: FLOPs}} so far, modules by their names in the model, "" for all that was counted."""
    return {
        name.partition(".")[2]: {str(operator).rpartition(".")[2]: flops for operator, flops in operators.items()}
        for name, operators in counter.get_flop_counts().items()
        if name == "Global" or "." in name
    }


def count(
    arch: ArchitectureManifest,
    workload: Workload,
    attention: str = "eager",
    dtype: str = "bf16",
    device: str = "meta",
    replay: str = "",
) -> dict[str, dict[str, dict[str, int]]]:
    """{"forward": {module: {operator: FLOPs}}}, and "backward" of a training step; the module "" is everything.

    attention: "eager", "sdpa" or "fused". replay: "" keeps every activation; "reentrant" and
    "early-stop" are the two ways in which torch.utils.checkpoint runs each block again.
    """
    torch, transformers = need()
    from torch.utils.flop_counter import FlopCounterMode

    require(replay in ("", "reentrant", "early-stop"), "ENUM", f"replay = {replay!r}; allowed: reentrant, early-stop")
    require(attention != "fused" or workload.new_rows == workload.visible_rows, "ENUM", "fused attention runs whole sequences here")
    transformers.AttentionInterface.register("fused", _fused)
    model = models.build(arch, dtype, attention, device)
    if replay:
        model.activation_checkpointing_enable({"use_reentrant": replay == "reentrant"})
    B, rows, visible, trains = workload.batch_size, workload.new_rows, workload.visible_rows, workload.phase == "training"
    given = {"input_ids": models.tokens(B, rows, device), "attention_mask": models.mask(B, rows, visible, dtype, device)}
    if visible > rows:
        given |= {"cache": _cache(model, workload, device), "use_cache": True}
    # One counter over both directions: its hooks must have seen the forward to know the modules in backward.
    with torch.set_grad_enabled(trains), FlopCounterMode(display=False) as counter:
        logits = model(**given, logits_to_keep=0 if workload.logits == "all" else 1).logits
        forward = _tally(counter)
        if not trains:
            return {"forward": forward}
        logits.sum().backward()
        both = _tally(counter)
    backward = {module: {op: n - forward.get(module, {}).get(op, 0) for op, n in ops.items()} for module, ops in both.items()}
    return {"forward": forward, "backward": {module: {op: n for op, n in ops.items() if n} for module, ops in backward.items()}}


def _scope(arch, workload, attention, dtype, replay=""):
    rows = f"{workload.batch_size} x {workload.new_rows} rows over {workload.visible_rows}, {workload.logits} logits"
    again = f", blocks replayed ({replay})" if replay else ""
    return f"{arch.manifest_id} as LlamaForCausalLM, {workload.workload_id} ({rows}), {attention} attention, {dtype}{again}"


def by_operator(
    name: str, arch: ArchitectureManifest, workload: Workload, attention="eager", dtype="bf16", device="meta", replay=""
) -> Observation:
    """The FLOPs of each direction, "forward" and "backward", and of each operator in it, "forward: mm"."""
    numbers = {}
    for direction, modules in count(arch, workload, attention, dtype, device, replay).items():
        numbers[direction] = sum(modules[""].values())
        numbers |= {f"{direction}: {operator}": flops for operator, flops in sorted(modules[""].items())}
    scope = _scope(arch, workload, attention, dtype, replay)
    rows = products.by_operator(arch, workload, attention, device, replay)
    return seen(
        name,
        producer=f"{__name__}.by_operator",
        scope=scope,
        device=device,
        counters=tuple(Counter(name=n, value=flops, unit="FLOP", visibility=SEES) for n, flops in numbers.items()),
        explanations=products.explanations(rows, numbers, scope),
    )


def by_module(name: str, arch: ArchitectureManifest, workload: Workload, attention="eager", block: int = 0) -> Observation:
    """The FLOPs of each module of one block, and of what lies outside the blocks, "forward: lm_head"; eager or sdpa.

    In backward the parts do not add up to their whole, and the explanations say why.
    """
    inside, numbers = f"model.layers.{block}.", {}
    for direction, modules in count(arch, workload, attention).items():
        numbers |= {
            f"{direction}: {module}": sum(operators.values())
            for module, operators in sorted(modules.items())
            if module and (f"{module}.".startswith(inside) or not module.startswith("model.layers."))
        }
    scope = _scope(arch, workload, attention, "bf16")
    return seen(
        name,
        producer=f"{__name__}.by_module",
        scope=f"{scope}; block {block}",
        counters=tuple(Counter(name=n, value=flops, unit="FLOP", visibility=BY_MODULE) for n, flops in numbers.items()),
        explanations=products.explanations(products.by_module(arch, workload, attention, block), numbers, scope),
    )


WIDE = RUNNING.replace(manifest_id="running-2-layers", num_layers=2)
BIASED = ODD.replace(manifest_id="odd-biased", attention_bias="all", mlp_bias=True)
TRAIN_1000 = TRAIN_4K.replace(workload_id="train-1000", batch_size=3, new_rows=1000, visible_rows=1000)
PREFILL_ODD = TRAIN_ODD.replace(workload_id="prefill-odd", phase="prefill", logits="final")
CHUNK_ODD = PREFILL_ODD.replace(workload_id="chunk-odd", phase="prefill-chunk", new_rows=7, visible_rows=78)
DECODE_ODD = CHUNK_ODD.replace(workload_id="decode-odd", phase="decode", new_rows=1)
CASES = {  # bundle: manifest, workload, attention, and what else by_operator is told
    f"flops_{case}_{attention}": (arch, workload, attention, more)
    for case, arch, workload, programs, more in (
        ("running_prefill", RUNNING, PREFILL_4K, "eager sdpa", {}),
        ("running_step", RUNNING, TRAIN_4K, "eager sdpa fused", {}),
        ("running_decode", RUNNING, DECODE_32K, "eager sdpa", {}),
        ("wide_step", WIDE, TRAIN_1000, "eager sdpa fused", {}),
        ("odd_prefill", ODD, PREFILL_ODD, "eager sdpa", {}),
        ("odd_chunk", ODD, CHUNK_ODD, "eager sdpa", {}),
        ("odd_decode", ODD, DECODE_ODD, "eager sdpa", {}),
        ("odd_step", ODD, TRAIN_ODD, "eager sdpa fused", {}),
        ("odd_biased_step", BIASED, TRAIN_ODD, "eager", {}),
        ("odd_step_cpu", ODD, TRAIN_ODD, "eager sdpa", {"dtype": "fp32", "device": "cpu"}),
        ("wide_step_replayed", WIDE, TRAIN_1000, "eager", {"replay": "reentrant"}),
        ("wide_step_early_stop", WIDE, TRAIN_1000, "eager", {"replay": "early-stop"}),
    )
    for attention in programs.split()
}
MODULES = {f"flops_odd_modules_{attention}": (ODD, TRAIN_ODD, attention, 1) for attention in ("eager", "sdpa")}
BUNDLES = {name: lambda name=name, case=case: by_operator(name, *case[:3], **case[3]) for name, case in CASES.items()}
BUNDLES |= {name: lambda name=name, case=case: by_module(name, *case) for name, case in MODULES.items()}
