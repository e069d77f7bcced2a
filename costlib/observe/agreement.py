"""Do manifests made from configurations count what Transformers builds from the same configurations?

Every model type's default configuration, and sizes as published. The observer knows the framework's side
only; `predicted` is costlib's, and `table` brings the two together, without torch.
"""

import json

from costlib import adapters, data, forward, latent, params, reconcile, training
from costlib.evidence import Counter, Explanation, Observation
from costlib.observe import models, need, read, seen
from costlib.records import Workload

STEP = Workload(workload_id="agreement", phase="training", batch_size=3, new_rows=515, visible_rows=515, logits="all")
SCOPE = "causal language models of Transformers, one training step of 3 x 515 rows with all logits, eager attention, bf16"
SEES = {
    "parameters": "every parameter once, by object; buffers left out",
    "forward": "operators that FlopCounterMode has a formula for; experts as one batched product per route",
    "training": "as forward, with both gradients of every product",
}
GROUPED = "as the class runs by default, experts in grouped_mm, for which FlopCounterMode has no formula"


def configurations() -> dict[str, dict]:
    """Name: configuration. The defaults name their model type alone."""
    found = {f"{name} (default)": {"model_type": name} for name in sorted(adapters.ADAPTERS)}
    return found | {name: json.loads(data.read(f"configs/{name}.json")) for name in adapters.published()}


def build(config: dict, experts: str = "batched_mm", device: str = "meta", dtype: str = "bf16"):
    """The causal language model that Transformers makes of a configuration, without weights on meta."""
    torch, transformers = need()
    made = transformers.AutoConfig.for_model(**config)
    made._experts_implementation = experts
    with torch.device(device):
        return transformers.AutoModelForCausalLM.from_config(
            made, dtype=getattr(torch, models.TORCH_DTYPES[dtype]), attn_implementation="eager", experts_implementation=experts
        ).train()


def flops(model, workload: Workload = STEP) -> tuple[int, int]:
    """(forward, training step) of FlopCounterMode; the loss is a sum and costs none."""
    need()
    from torch.utils.flop_counter import FlopCounterMode

    B, S = workload.batch_size, workload.new_rows
    with FlopCounterMode(display=False) as counter:
        logits = model(input_ids=models.tokens(B, S), attention_mask=models.mask(B, S), use_cache=False).logits
        one = counter.get_total_flops()
        logits.sum().backward()
        return one, counter.get_total_flops()


def routed(model, workload: Workload = STEP) -> int:
    """Forward FLOPs of all routes, from the shapes of the model's own stacked experts; 0 without any."""
    one = sum(p[0].numel() for name, p in model.named_parameters() if ".experts." in name and p.dim() == 3)
    return 2 * workload.batch_size * workload.new_rows * model.config.num_experts_per_tok * one if one else 0


def observe() -> Observation:
    """Parameters, forward and training FLOPs of every configuration; default mixtures also with grouped experts."""
    counters, explanations = [], []

    def count(name, value, unit, visibility):
        counters.append(Counter(name=name, value=value, unit=unit, visibility=visibility))

    for name, config in configurations().items():
        model = build(config)
        count(f"{name}: parameters", sum(p.numel() for p in model.parameters()), "scalars", SEES["parameters"])
        for what, value in zip(("forward", "training"), flops(model)):
            count(f"{name}: {what}", value, "FLOP", SEES[what])
        if "(default)" in name and (one := routed(model)):
            for what, value, times in zip(("forward", "training"), flops(build(config, "grouped_mm")), (1, 3)):
                count(f"{name}: {what}, grouped", value, "FLOP", GROUPED)
                text = "the products of all routes with their experts, which ran in grouped_mm and were not counted"
                explanations.append(Explanation(counter=counters[-1].name, amount=-times * one, text=text, scope="meta device"))
    return seen(
        "agreement", f"{__name__}.observe", SCOPE, counters=tuple(counters), explanations=tuple(explanations)
    )


def predicted() -> dict[str, int]:
    """What costlib counts for each counter of the observation. Latent attention has a ledger of its own."""
    found = {}
    for name, config in configurations().items():
        arch = adapters.from_config(config)
        if arch.latent:
            one = latent.forward_ledger(arch, STEP).total
            step = 3 * one
        else:
            one = forward.ledger(arch, STEP).total
            step = training.totals(training.regions(arch, STEP), {})["model"]
        found |= {f"{name}: parameters": params.ledger(arch).total, f"{name}: forward": one, f"{name}: training": step}
        if arch.experts and "(default)" in name:
            found |= {f"{name}: forward, grouped": one, f"{name}: training, grouped": step}
    return found


def table(observation: Observation | None = None) -> list[dict]:
    """One row a counter: {"model", "what", "unit", "ours", "framework", "residual", "status", "why"}."""
    observation, ours, rows = observation or read("agreement"), predicted(), []
    for seen_one in observation.counters:
        model, _, what = seen_one.name.partition(": ")
        why = observation.explaining(seen_one.name)
        verdict = reconcile.counter(ours.get(seen_one.name), seen_one.value, why)
        rows.append(
            {"model": model, "what": what, "unit": seen_one.unit, "ours": ours.get(seen_one.name), "framework": seen_one.value}
            | {"residual": verdict["residual"], "status": verdict["status"], "why": "; ".join(row.text for row in why)}
        )
    return rows


BUNDLES = {"agreement": observe}
