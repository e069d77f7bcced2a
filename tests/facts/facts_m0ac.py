"""M 0x0AC and 0x0AI: one plan in, every ledger out, on the tiny and on the running model."""

from fractions import Fraction

from costlib import data, forward, params, traffic
from costlib.estimate import Plan, estimate
from costlib.fixtures import RUNNING, TOY_TIED
from costlib.units import GIB

OWNS = ("M.0AC", "M.0AI", "M.0A.")
TINY, FULL = (Plan.from_json(data.read(f"plans/{name}.json")) for name in ("tiny_tied", "running"))


def total(plan, name):
    return estimate(plan)[name].total


def one_layer(plan):
    """FLOPs of one block by group: projections, scores and values, MLP."""
    blocks = estimate(plan)["forward"]
    layers = plan.architecture.num_layers
    projections = sum(blocks[f"blocks.{name}"] for name in "qkvo")
    pairs = blocks["blocks.scores"] + blocks["blocks.values"]
    mlp = sum(blocks[f"blocks.{name}"] for name in ("gate", "up", "down"))
    return [part // layers for part in (projections, pairs, mlp)]


def move(name):
    one = traffic.payload(traffic.materialized_attention(TOY_TIED, TINY.workload))
    return one[name]


FACTS = {
    "M.0AC.001": lambda: total(TINY, "named parameters"),
    "M.0AC.002": lambda: total(TINY, "parameters"),
    "M.0AC.003": lambda: total(TINY, "weight payload"),
    "M.0AC.004": lambda: total(TINY, "training state"),
    "M.0AC.005": lambda: Fraction(total(TINY, "training state"), total(TINY, "parameters")),
    "M.0AC.006": lambda: total(TINY, "activation peak"),
    "M.0AC.007": lambda: total(TINY, "forward"),
    "M.0AC.008": lambda: total(TINY, "cache payload"),
    "M.0AC.009": lambda: total(TINY, "attention transfer"),
    "M.0AC.011": lambda: one_layer(TINY)[0],
    "M.0AC.012": lambda: one_layer(TINY)[1],
    "M.0AC.013": lambda: one_layer(TINY)[2],
    "M.0AC.014": lambda: sum(one_layer(TINY)),
    "M.0AC.015": lambda: estimate(TINY)["forward"]["blocks"],
    "M.0AC.016": lambda: estimate(TINY)["forward"]["head"],
    "M.0AC.017": lambda: forward.ledger(TOY_TIED, TINY.workload).total,
    "M.0AC.018": lambda: TOY_TIED.num_attention_heads * 4 * 4,
    "M.0AC.019": lambda: TOY_TIED.num_key_value_heads * 4 * 4,
    "M.0AC.020": lambda: move("Q"),
    "M.0AC.021": lambda: move("K"),
    "M.0AC.022": lambda: move("S.write"),
    "M.0AC.023": lambda: move("P.write"),
    "M.0AC.024": lambda: move("V"),
    "M.0AC.025": lambda: move("O"),
    "M.0AC.026": lambda: total(TINY, "attention transfer") // 2,
    "M.0AC.027": lambda: total(TINY, "attention transfer"),
    "M.0AI.001": lambda: params.block(RUNNING).total,
    "M.0AI.002": lambda: estimate(FULL)["parameters"]["blocks"],
    "M.0AI.003": lambda: total(FULL, "parameters"),
    "M.0AI.004": lambda: total(FULL, "weight payload"),
    "M.0AI.005": lambda: total(FULL, "forward"),
    "M.0AI.006": lambda: total(FULL, "cache payload"),
    "M.0AI.007": lambda: total(FULL, "attention transfer"),
    "M.0AI.008": lambda: Fraction(total(FULL, "cache payload"), GIB),
    "M.0AI.009": lambda: Fraction(total(FULL, "attention transfer"), GIB),
    "M.0AI.011": lambda: RUNNING.num_layers,
    "M.0AI.012": lambda: one_layer(FULL)[0],
    "M.0AI.013": lambda: one_layer(FULL)[1],
    "M.0AI.014": lambda: one_layer(FULL)[2],
    "M.0AI.015": lambda: sum(one_layer(FULL)),
}


def shape(field, value):
    return lambda: getattr(FULL.architecture, field) == value


TEXTS = {
    # One vocabulary in place of the document's three: the five statuses of 0x0D.
    "M.0A.001": lambda: __import__("costlib.evidence", fromlist=["_"]).STATUSES
    == ("rejected", "open", "unmeasured", "explained", "exact"),
    "M.0AC.010": lambda: len(traffic.materialized_attention(TOY_TIED, TINY.workload)) == 8,
    "M.0AC.028": lambda: (TINY.workload.batch_size, TOY_TIED.num_attention_heads, TINY.workload.new_rows) == (1, 4, 4),
    "M.0AI.010": lambda: FULL.workload.visible_rows == 4096,
    "M.0AI.016": shape("num_layers", 32),
    "M.0AI.017": shape("hidden_size", 4096),
    "M.0AI.018": shape("num_attention_heads", 32),
    "M.0AI.019": shape("num_key_value_heads", 8),
    "M.0AI.020": shape("head_dim", 128),
    "M.0AI.021": shape("intermediate_size", 14336),
    "M.0AI.022": shape("vocab_size", 128256),
    "M.0AI.023": lambda: (FULL.workload.new_rows, FULL.workload.visible_rows, FULL.workload.logits) == (4096, 4096, "final"),
}
