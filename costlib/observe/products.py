"""What must FlopCounterMode show of a step, and where must it differ? Numbers under its own names, without torch.

`predicted` gives the ledgers' numbers by operator and by module. The explanations are the known
differences, each from its own formula: what is charged to whom beyond the matrix products of the step.
"""

from costlib.evidence import Explanation
from costlib.records import ArchitectureManifest, Workload

FUSED = "_scaled_dot_product_flash_attention"
ATTENTION = {"eager": ("bmm", "bmm"), "sdpa": ("bmm", "bmm"), "fused": (FUSED, f"{FUSED}_backward")}  # forward, backward
OF_ATTENTION, OF_MLP = ("q", "k", "v", "o"), ("gate", "up", "down")


def predicted(arch: ArchitectureManifest, workload: Workload, attention: str = "eager", block: int = 0) -> dict[str, int]:
    """The ledgers' FLOPs under every name that flops.by_operator and flops.by_module give: "forward: mm",
    "backward: model.layers.0.mlp". Without training there is no backward."""
    from costlib import forward, training

    ledger, L, here = forward.ledger(arch, workload), arch.num_layers, f"model.layers.{block}"
    one = {name: ledger[f"blocks.{name}"] // L for name in (*OF_ATTENTION, *OF_MLP, "scores", "values")}
    pairs = one["scores"] + one["values"]
    with_bias = (OF_ATTENTION if arch.attention_bias == "all" else ()) + (OF_MLP if arch.mlp_bias else ())
    biased = L * sum(one[name] for name in with_bias)
    mm = ledger.total - L * pairs
    modules = {"model": ledger["blocks"], "lm_head": ledger["head"], here: ledger["blocks"] // L}
    modules[f"{here}.self_attn"] = sum(one[name] for name in OF_ATTENTION) + pairs
    modules[f"{here}.mlp"] = sum(one[name] for name in OF_MLP)
    modules |= {f"{here}.self_attn.{name}_proj": one[name] for name in OF_ATTENTION}
    modules |= {f"{here}.mlp.{name}_proj": one[name] for name in OF_MLP}
    parts = modules | {"mm": mm - biased, "addmm": biased, ATTENTION[attention][0]: L * pairs}
    found = {"forward": ledger.total} | {f"forward: {name}": flops for name, flops in parts.items()}
    if workload.phase == "training":
        # Both gradients of a product are products; a bias's gradient is a sum, so addmm has no counterpart.
        parts = modules | {"mm": mm, ATTENTION[attention][1]: L * pairs}
        found["backward"] = training.totals(training.regions(arch, workload), {})["backward"]
        found |= {f"backward: {name}": 2 * flops for name, flops in parts.items()}
    return found


def _pieces(arch, workload):
    """FLOPs of each product of one block, forward: written out, so that no ledger explains itself."""
    B, rows, visible, d, ff = workload.batch_size, workload.new_rows, workload.visible_rows, arch.hidden_size, arch.intermediate_size
    width = {"q": arch.d_q, "k": arch.d_kv, "v": arch.d_kv, "o": arch.d_q, "gate": ff, "up": ff, "down": ff}
    linear = {name: 2 * B * rows * d * columns for name, columns in width.items()}
    return linear | dict.fromkeys(("scores", "values"), 2 * B * rows * visible * arch.d_q)


def by_operator(arch, workload, attention: str, device: str, replay: str) -> list[tuple[str, int, str]]:
    """(counter, amount, text): where this way of running and counting differs from the products of the step."""
    one, L, rows = _pieces(arch, workload), arch.num_layers, []
    pairs = L * (one["scores"] + one["values"])
    linear = L * sum(one.values()) - pairs
    if attention == "fused":
        text = "a fused backward is charged with five products, Q K^T once more among them: it kept no scores"
        rows += [("backward", ATTENTION["fused"][1], L * one["scores"], text)]
    if attention == "sdpa" and device == "cpu":
        text = f"attention not seen: sdpa runs as {FUSED}_for_cpu, which has no formula"
        rows += [("forward", "", -pairs, text), ("backward", "", -2 * pairs, text)]
    if replay:
        text = "every block is run again before its backward: its {}"
        rows += [("backward", "mm", linear, text.format("projections and MLP")), ("backward", "bmm", pairs, text.format("attention"))]
    if replay == "early-stop":
        text = "the replay stops once the last saved tensor is there: nobody needs the output of down_proj again"
        rows += [("backward", "mm", -L * one["down"], text)]
    named = [(f"{direction}: {operator}", amount, text) for direction, operator, amount, text in rows if operator]
    return [(direction, amount, text) for direction, _, amount, text in rows] + named


def by_module(arch, workload, attention: str, block: int) -> list[tuple[str, int, str]]:
    """(counter, amount, text): what a module's backward is charged with beside its own products, or without them."""
    one, here = _pieces(arch, workload), f"backward: model.layers.{block}"
    late = "still open while {} runs backward: a module closes when its input's gradient is complete, and {} share one input"
    rows = [
        (f"{here}.self_attn.k_proj", 2 * one["q"], late.format("q_proj", "q_proj, k_proj and v_proj")),
        (f"{here}.self_attn.v_proj", 2 * (one["q"] + one["k"]), late.format("q_proj and k_proj", "q_proj, k_proj and v_proj")),
        (f"{here}.mlp.up_proj", 2 * one["gate"], late.format("gate_proj", "gate_proj and up_proj")),
    ]
    if block:
        text = "never closed: its input comes by keyword, which the hooks do not see, and blocks 0 to {} run backward meanwhile"
        rows += [(f"{here}.self_attn", 2 * block * sum(one.values()), text.format(block - 1))]
    if attention == "eager":
        text = "not open yet in {}: eager attention returns its probabilities too, and a module opens when all its outputs have gradients"
        rows += [(f"{here}.self_attn", -2 * one[name], text.format(what)) for name, what in (("o", "o_proj"), ("values", "P V"))]
    return rows


def explanations(rows, names, scope: str) -> tuple[Explanation, ...]:
    """Those rows as Explanations whose counter is among the names."""
    return tuple(Explanation(counter=name, amount=amount, text=text, scope=scope) for name, amount, text in rows if name in names)
