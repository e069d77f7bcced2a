"""What does autograd keep of a forward call? Storages saved for backward, each once, by who asked for it.

Every tensor that an operator saves passes through torch.autograd.graph.saved_tensors_hooks.
costlib.observe.kept derives the same rows without torch. Source: M 0x04E.
"""

from functools import partial

from costlib.evidence import Counter
from costlib.observe import kept, models, need, seen

SEES = "every storage that autograd saved, its whole payload once; not what Python holds, temporaries, gradients, rounding"
RUNS = {  # kernel of a Case -> attention, device, whether a mask is given
    "eager": ("eager", "meta", True),
    "math": ("sdpa", "meta", True),
    "flash": ("sdpa", "cpu", False),
    "flash-masked": ("sdpa", "cpu", True),
}
NORMS = {"input_layernorm": "norms.first", "post_attention_layernorm": "norms.second", "model.norm": "final_norm"}
ATTENTION = ("attention.query_key.key", "attention.query_key.query", "attention.value")
ROWS = {  # end of the module's name, function -> rows, in the order in which it saves them
    **{(m, f): tuple(f"{row}.{p}" for p in parts) for m, row in NORMS.items() for f, parts in (
        ("pow", ("input",)), ("rsqrt", ("rstd",)), ("mul", ("input", "rstd", "normalized")))},
    **{(m, "layer_norm"): tuple(f"{row}.{p}" for p in ("input", "mean", "rstd")) for m, row in (("ln_1", "norms.first"), ("ln_2", "norms.second"))},
    ("embed_tokens", "embedding"): ("ids",),
    ("q_proj", "linear"): ("attention.input",),
    ("attn.c_attn", "addmm"): ("attention.input",),
    ("self_attn", "mul"): ("attention.rotary.cos", "attention.rotary.sin"),
    ("attn", "matmul"): (*ATTENTION, "attention.scores.dropped"),
    ("attn", "softmax"): ("attention.scores.softmax",),
    ("attn", "dropout"): ("attention.scores.mask",),
    ("o_proj", "linear"): ("attention.context",),
    ("attn.c_proj", "addmm"): ("attention.context",),
    ("resid_dropout", "dropout"): ("attention.mask",),
    ("gate_proj", "linear"): ("mlp.input",),
    ("act_fn", "silu"): ("mlp.gelu.gate",),
    ("mlp", "mul"): ("mlp.gelu.up", "mlp.gelu.silu"),
    ("down_proj", "linear"): ("mlp.hidden",),
    ("c_fc", "addmm"): ("mlp.input",),
    ("mlp.act", "gelu"): ("mlp.gelu",),
    ("mlp.c_proj", "addmm"): ("mlp.hidden",),
    ("mlp.dropout", "dropout"): ("mlp.mask",),
    ("lm_head", "linear"): ("head.input",),
    ("the model", "cross_entropy"): ("loss.log_softmax", "loss.target", "loss.total_weight"),
}  # fmt: skip
SDPA = {  # kernel of scaled_dot_product_attention -> the rows it saves
    "math": (*ATTENTION[:2], "attention.scores.softmax", ATTENTION[2]),
    "flash": ("attention.query_key.key", "attention.query_key.query", "attention.value", "attention.logsumexp", "attention.context"),
    "flash-masked": ("attention.legal", *ATTENTION[:2], ATTENTION[2], "attention.logsumexp", "attention.context"),
}


def watch(model, call) -> tuple[list[dict], int]:
    """(what call() saves for backward, a dict for each storage in the order of saving; tensors saved)."""
    torch, _ = need()
    running, functions, found, order, packed = [], [], {}, {}, []
    parameters = {p.untyped_storage()._cdata for p in model.parameters()}

    class Functions(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            functions.append(getattr(function, "__name__", ""))
            try:
                return function(*args, **(kwargs or {}))
            finally:
                functions.pop()

    def pack(tensor):
        packed.append(tensor)  # kept alive, so that no other storage takes its address
        storage, module = tensor.untyped_storage(), running[-1] if running and running[-1] else "the model"
        function = functions[-1] if functions else "checkpoint"
        here = order.setdefault((module, function), {})
        if storage._cdata not in parameters:
            here.setdefault(storage._cdata, len(here))
        found.setdefault(storage._cdata, {
            "module": module, "function": function, "nth": here.get(storage._cdata),
            "shape": list(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch."),
            "bytes": storage.nbytes(), "parameter": storage._cdata in parameters,
        })  # fmt: skip
        return tensor

    hooks = []
    for name, module in model.named_modules():
        hooks.append(module.register_forward_pre_hook(lambda *_, name=name: running.append(name)))
        hooks.append(module.register_forward_hook(lambda *_: running.__delitem__(-1)))  # None: the output stays
    with Functions(), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        call()
    for hook in hooks:
        hook.remove()
    return list(found.values()), len(packed)


def named(storages: list[dict], kernel: str) -> dict[str, list[dict]]:
    """Row -> its storages. A storage that no row expects is a row of its own, by module and function."""
    rows = {}
    table = {**ROWS, ("attn", "scaled_dot_product_attention"): SDPA.get(kernel, ())}
    for each in storages:
        if each["parameter"]:
            continue
        module, function, nth = each["module"], each["function"], each["nth"]
        known = [names for (end, f), names in table.items() if f == function and module.endswith(end)]
        name = known[0][nth] if known and nth < len(known[0]) else f"{module}.{function}.{nth}"
        name = "boundary" if function == "checkpoint" else name
        rows.setdefault(f"blocks.{name}" if "layers." in module else name, []).append(each)
    return rows


def made(case: kept.Case):
    """(model, its call) of a case."""
    torch, transformers = need()
    attention, device, masked = RUNS[case.kernel]
    arch, b, s = case.arch, case.b, case.s
    kind = getattr(torch, models.TORCH_DTYPES[case.dtype])
    mask = models.mask(1, s, dtype=case.dtype, device=device) if masked else None
    hidden = torch.zeros((b, s, arch.hidden_size), dtype=kind, device=device, requires_grad=True)
    if case.model == "paper":
        from transformers.models.gpt2.modeling_gpt2 import GPT2Block

        config = transformers.GPT2Config(
            n_embd=arch.hidden_size, n_head=arch.num_attention_heads, activation_function="gelu", attn_implementation=attention
        )
        with torch.device(device):
            layer = GPT2Block(config, 0).to(kind).train()
        return layer, partial(layer, hidden, attention_mask=mask)
    if case.model == "block":
        model = models.build(arch.replace(num_layers=1), case.dtype, attention, device).model
        tables = model.rotary_emb(hidden, torch.arange(s, device=device)[None])
        return model.layers[0], partial(model.layers[0], hidden, attention_mask=mask, position_embeddings=tables)
    model = models.build(arch, case.dtype, attention, device)
    if case.checkpoint:
        model.activation_checkpointing_enable({"use_reentrant": False})
    ids = models.tokens(b, s, device)
    return model, partial(model, input_ids=ids, attention_mask=mask, labels=ids, use_cache=False)


def record(name: str, case: kept.Case):
    """The Observation of one case: the total, explained against the paper, the parameters set apart, the total's rows."""
    model, call = made(case)
    storages, tensors = watch(model, call)
    own = [each for each in storages if not each["parameter"]]
    what = {"paper": "one GPT2Block with dropout", "block": "one Llama block", "stack": "Llama with its loss"}[case.model]
    scope = f"{case.arch.manifest_id}, {what}, {case.b} x {case.s} rows, training, {case.kernel} attention, {case.dtype}"
    scope += ", every block checkpointed" * case.checkpoint
    many = f"{len(own)} storages of {tensors} saved tensors, parameters and repeats among these: {SEES}"
    counters = [
        Counter(name=kept.TOTAL, value=sum(each["bytes"] for each in own), unit="B", visibility=many),
        Counter(name=kept.PARAMETERS, value=sum(e["bytes"] for e in storages if e["parameter"]), unit="B", visibility=SEES),
    ]
    for row, group in named(storages, case.kernel).items():
        first = group[0]
        shown = f"{first['dtype']} {first['shape']}" + f", {len(group)} of them" * (len(group) > 1)
        text = f"first saver: {first['function']} in {first['module']}; {shown}"
        counters.append(Counter(name=row, value=sum(e["bytes"] for e in group), unit="B", visibility=text))
    why = kept.differences(case, scope)
    return seen(name, "costlib.observe.saved.record", scope, tuple(counters), explanations=why, device=RUNS[case.kernel][1])


BUNDLES = {name: partial(record, name, case) for name, case in kept.CASES.items()}
