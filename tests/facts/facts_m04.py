"""M 0x04 and 0x0AD: activations, liveness, the peak."""

from fractions import Fraction

from costlib import activations
from costlib.fixtures import LIVE_TINY, LIVE_TOY, RUNNING, TRAIN_4K
from costlib.hardware import CHIPS
from costlib.units import GB, GIB

OWNS = ("M.04", "M.0AD")
RUN = (1, 4096, 4096, 32)
STACK = (*RUN, 32)
GPT3, MT_NLG = (1, 2048, 12288, 96, 96), (1, 2048, 20480, 128, 105)
SHAPE = (1, 32, 4096, 4096)


def row(*names):
    """Bytes of some rows where every extent is 1: there a row is its own coefficient."""
    return sum(activations.korthikanti(1, 1, 1, 1)[name] for name in names)


def linear(name):
    """Coefficient of bsh at a path: all but the score-shaped rows."""
    return row(name) - (row("attention.scores") if name == "attention" else 0)


def whole():
    return activations.korthikanti(1, 1, 1, 1).total


def score_values():
    return activations.score_elements(RUNNING, TRAIN_4K)


def layer(part):
    one = activations.korthikanti(*RUN)
    return {"linear": one.total - one["attention.scores"], "quadratic": one["attention.scores"], "total": one.total}[part]


def kept(policy, stack=STACK):
    return activations.retained(*stack, policy)


def saving(stack):
    """Percent of the retained bytes that selective recomputation removes."""
    return 100 * (1 - Fraction(kept("selective", stack), kept("none", stack)))


def paper_replays(stack, vocab=51200):
    """Percent of added FLOPs as the paper's Equation 8 has it: three times what one replay of the region takes."""
    b, s, h, _, layers = stack
    model = 72 * b * layers * s * h * h * (1 + Fraction(s, 6 * h) + Fraction(vocab, 12 * h * layers))
    return 100 * 3 * activations.added_cost(*stack, "selective")["flops"] / model


def tiny(instant, part):
    rows = activations.live_at(LIVE_TINY, instant)
    return {"payload": rows.total - rows["workspace"], "workspace": rows["workspace"], "total": rows.total}[part]


def toy_peak(objects, same_instant="release-first"):
    return Fraction(activations.peak_cut(objects, same_instant)[0], GIB)


FACTS = {
    # M 0x04B
    "M.04B.001": score_values,
    "M.04B.002": score_values,
    "M.04B.003": lambda: activations.tensor_bytes(SHAPE, "bf16"),
    "M.04B.004": lambda: Fraction(activations.tensor_bytes(SHAPE, "bf16"), GIB),
    "M.04B.005": lambda: Fraction(activations.korthikanti(*RUN)["attention.scores.softmax"], GIB),
    "M.04B.006": lambda: Fraction(activations.tensor_bytes(SHAPE, "int8"), GIB),
    "M.04B.007": lambda: RUNNING.num_key_value_heads,
    "M.04B.008": lambda: RUNNING.intermediate_size,
    "M.04B.009": score_values,
    # M 0x04C
    "M.04C.001": lambda: Fraction(activations.live_at(LIVE_TOY, 0)["persistent"], GIB),
    "M.04C.002": lambda: Fraction(activations.live_at(LIVE_TOY, 0)["saved"], GIB),
    "M.04C.003": lambda: Fraction(activations.live_at(LIVE_TOY, 10)["temporary"], GIB),
    "M.04C.004": lambda: Fraction(activations.live_at(LIVE_TOY, 15)["workspace"], GIB),
    "M.04C.005": lambda: Fraction(activations.live_at(LIVE_TOY, 20)["gradient"], GIB),
    "M.04C.006": lambda: Fraction(activations.unique_bytes(LIVE_TOY[1:]), GIB),
    "M.04C.007": lambda: toy_peak(LIVE_TOY[1:]),
    "M.04C.008": lambda: toy_peak(LIVE_TOY),
    "M.04C.009": lambda: Fraction(activations.unique_bytes(LIVE_TOY), GIB),
    "M.04C.011": lambda: Fraction(LIVE_TOY[3].birth, 10),
    "M.04C.012": lambda: Fraction(LIVE_TOY[3].death, 10),
    # M 0x04E
    "M.04E.001": lambda: row("attention.input"),
    "M.04E.002": lambda: row("attention.query_key"),
    "M.04E.003": lambda: row("attention.scores.softmax"),
    "M.04E.005": lambda: row("attention.scores.dropped"),
    "M.04E.006": lambda: row("attention.value"),
    "M.04E.007": lambda: row("attention.context"),
    "M.04E.009": lambda: linear("attention"),
    "M.04E.010": lambda: row("attention.scores"),
    "M.04E.011": lambda: row("mlp.input"),
    "M.04E.012": lambda: row("mlp.gelu"),
    "M.04E.013": lambda: row("mlp.hidden"),
    "M.04E.015": lambda: row("norms"),
    "M.04E.016": lambda: row("mlp", "norms"),
    "M.04E.017": lambda: linear("mlp"),
    "M.04E.018": lambda: linear("norms"),
    "M.04E.019": lambda: linear("attention"),
    "M.04E.020": lambda: row("attention.scores"),
    "M.04E.021": lambda: whole() - row("attention.scores"),
    "M.04E.022": lambda: row("attention.scores"),
    "M.04E.023": lambda: Fraction(layer("linear"), 4096 * 4096),
    "M.04E.024": lambda: Fraction(layer("quadratic"), score_values()),
    # M 0x04F
    "M.04F.001": lambda: activations.korthikanti(*RUN)["attention.mask"],
    "M.04F.002": lambda: activations.korthikanti(*RUN)["attention.scores.mask"],
    "M.04F.003": lambda: layer("linear"),
    "M.04F.004": lambda: Fraction(layer("linear"), GIB),
    "M.04F.005": lambda: layer("quadratic"),
    "M.04F.006": lambda: Fraction(layer("quadratic"), GIB),
    "M.04F.007": lambda: layer("total"),
    "M.04F.008": lambda: Fraction(layer("total"), GIB),
    "M.04F.009": lambda: kept("none"),
    "M.04F.010": lambda: Fraction(kept("none"), GIB),
    "M.04F.012": lambda: 100 * activations.korthikanti(*RUN).share("attention.scores"),
    "M.04F.013": lambda: activations.crossover(4096, 32),
    "M.04F.015": lambda: TRAIN_4K.new_rows,
    "M.04F.016": lambda: RUNNING.hidden_size,
    "M.04F.017": lambda: RUNNING.num_attention_heads,
    "M.04F.018": lambda: RUNNING.num_layers,
    "M.04F.019": lambda: TRAIN_4K.batch_size,
    "M.04F.020": lambda: RUNNING.hidden_size,
    "M.04F.021": lambda: RUNNING.num_attention_heads,
    # M 0x04G. The three are retained; the peaks are in the tests of the module (errata M-22).
    "M.04G.002": lambda: Fraction(kept("selective"), GIB),
    "M.04G.003": lambda: Fraction(kept("none"), GIB),
    "M.04G.004": lambda: Fraction(kept("boundary"), GIB),
    "M.04G.005": lambda: saving(GPT3),
    "M.04G.006": lambda: saving(MT_NLG),
    "M.04G.007": lambda: paper_replays(GPT3),
    "M.04G.008": lambda: paper_replays(MT_NLG),
    # M 0x0AD
    "M.0AD.001": lambda: tiny(0, "payload"),
    "M.0AD.002": lambda: tiny(0, "workspace"),
    "M.0AD.003": lambda: tiny(0, "total"),
    "M.0AD.004": lambda: tiny(1, "payload"),
    "M.0AD.005": lambda: tiny(1, "workspace"),
    "M.0AD.006": lambda: tiny(1, "total"),
    "M.0AD.007": lambda: tiny(2, "payload"),
    "M.0AD.008": lambda: tiny(2, "workspace"),
    "M.0AD.009": lambda: tiny(2, "total"),
    "M.0AD.010": lambda: tiny(3, "payload"),
    "M.0AD.011": lambda: tiny(3, "workspace"),
    "M.0AD.012": lambda: tiny(3, "total"),
    "M.0AD.013": lambda: tiny(4, "payload"),
    "M.0AD.014": lambda: tiny(4, "workspace"),
    "M.0AD.015": lambda: tiny(4, "total"),
}

TEXTS = {
    "M.04C.010": lambda: (toy_peak(LIVE_TOY[1:], "birth-first"), toy_peak(LIVE_TOY, "birth-first")) == (15, 35),
    "M.04E.004": lambda: row("attention.scores.mask") == 1,
    "M.04E.008": lambda: row("attention.mask") == 1,
    "M.04E.014": lambda: row("mlp.mask") == 1,
    "M.04E.025": lambda: kept("none") == 32 * layer("total") == 32 * (34 * 4096**2 + 5 * 32 * 4096**2),
    "M.04E.026": lambda: activations.tensor_bytes((7,), "fp16") == 14,
    "M.04E.027": lambda: row("attention.mask") == activations.tensor_bytes((1,), "int8"),
    "M.04F.011": lambda: Fraction(32 * layer("quadratic"), kept("none")) == Fraction(80, 97),
    "M.04F.014": lambda: [
        activations.korthikanti(1, s, 4096, 32).share("attention.scores") > Fraction(1, 2) for s in (870, 871)
    ] == [False, True],
    "M.04G.001": lambda: kept("selective") == 34 * 4096 * 4096 * 32,
    "M.04G.009": lambda: CHIPS["A100-80"].memory_bytes == 80 * GB,
}
