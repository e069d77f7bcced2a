"""M 0x06: backward, recomputation and training compute."""

import inspect
from fractions import Fraction

from costlib import forward, napkin, params, training
from costlib.fixtures import RUNNING, TRAIN_4K, classic_block
from costlib.units import TB

OWNS = ("M.06",)
d, V, S = RUNNING.hidden_size, RUNNING.vocab_size, TRAIN_4K.new_rows
BLOCKS = {f"block_{i}": 1 for i in range(32)}
REPLAYS = {
    "none": {},
    "selective": {f"{name}.core": 1 for name in BLOCKS},
    "blocks": BLOCKS,
    "all": {**BLOCKS, "head": 1},
}
ROWS = ("forward", "backward", "recompute", "hardware")
PALM = training.PALM_540B


def regions():
    return training.regions(RUNNING, TRAIN_4K)


def step(policy="none"):
    return training.totals(regions(), REPLAYS[policy])


def head():
    return regions()[-1]


def per_mkn(part):
    return Fraction(training.linear(7, 11, 13)[part], 7 * 11 * 13)


def both_gradients():
    one = training.linear(7, 11, 13)
    return one["dx"] + one["dw"]


def proxy(name):
    return 6 * params.coordinates(RUNNING)[name] * S


def shortfall(name):
    return 100 * training.sixnd_shortfalls(RUNNING, TRAIN_4K)[name]


def closure():
    return training.sixnd_closure(RUNNING, TRAIN_4K)


def per_weight(part):
    """FLOPs per scalar and token of a model of weights only."""
    return Fraction(training.lora_step(1, 10**6, 1)[part], 10**6 + (part != "dw"))


def megatron(part, B=3, S=5, h=7, L=11, V=13):
    return training.megatron_iteration(B, S, h, L, V)[part]


def megatron_terms():
    """Blocks of Equation 3 as (coefficient of BSLh^2, divisor of S/h), from two sequence lengths."""
    one, two = (Fraction(megatron("blocks", S=S), 3 * S * 11 * 7**2) for S in (7, 14))
    return 2 * one - two, (2 * one - two) / (two - one)


def shown(policy, row):
    return lambda: Fraction(step(policy)[row], TB)


def exact(policy, row="hardware"):
    return lambda: step(policy)[row]


FACTS = {
    "M.06A.001": lambda: per_mkn("forward"),
    "M.06A.002": lambda: per_mkn("dx"),
    "M.06A.003": lambda: per_mkn("dw"),
    "M.06B.001": lambda: Fraction(both_gradients(), 7 * 11 * 13),
    "M.06B.002": lambda: Fraction(training.linear(7, 11, 13).total, 7 * 11 * 13),
    "M.06B.003": lambda: Fraction(training.linear(7, 11, 13).total, training.linear(7, 11, 13)["forward"]),
    "M.06C.001": lambda: Fraction(head().forward + head().dx + head().dw, S * d * V),
    "M.06C.002": lambda: Fraction(head().forward, S * d * V),
    "M.06C.003": lambda: Fraction(head().dx, S * d * V),
    "M.06C.004": lambda: Fraction(head().dw, S * d * V),
    "M.06E.001": lambda: sum(r.forward for r in regions() if r.name != "head"),
    "M.06E.002": lambda: head().forward,
    "M.06E.003": exact("none", "forward"),
    "M.06E.004": shown("none", "forward"),
    "M.06E.005": shown("none", "backward"),
    "M.06E.006": shown("none", "hardware"),
    "M.06E.007": exact("none"),
    "M.06E.008": shown("selective", "forward"),
    "M.06E.009": shown("selective", "backward"),
    "M.06E.010": shown("selective", "recompute"),
    "M.06E.011": shown("selective", "hardware"),
    "M.06E.012": exact("selective"),
    "M.06E.013": shown("blocks", "forward"),
    "M.06E.014": shown("blocks", "backward"),
    "M.06E.015": shown("blocks", "recompute"),
    "M.06E.016": shown("blocks", "hardware"),
    "M.06E.017": exact("blocks"),
    "M.06E.018": shown("all", "forward"),
    "M.06E.019": shown("all", "backward"),
    "M.06E.020": shown("all", "recompute"),
    "M.06E.021": shown("all", "hardware"),
    "M.06E.022": exact("all"),
    "M.06E.023": lambda: Fraction(step("all")["hardware"] - step("blocks")["hardware"], TB),
    "M.06E.024": shown("all", "hardware"),
    "M.06E.025": shown("blocks", "hardware"),
    "M.06E.026": lambda: Fraction(100 * (step("all")["recompute"] - step("blocks")["recompute"]), step("all")["hardware"]),
    "M.06F.003": lambda: TRAIN_4K.batch_size * TRAIN_4K.new_rows,
    "M.06F.009": lambda: params.coordinates(RUNNING)["unique"],
    "M.06F.010": lambda: Fraction(proxy("unique"), TB),
    "M.06F.011": lambda: shortfall("unique"),
    "M.06F.012": lambda: Fraction(proxy("kaplan"), TB),
    "M.06F.013": lambda: shortfall("kaplan"),
    "M.06F.014": lambda: per_weight("forward"),
    "M.06F.015": lambda: Fraction(napkin.training_flops(7, 11), 7 * 11),
    "M.06F.016": lambda: per_weight("dx") + per_weight("dw"),
    "M.06F.017": lambda: closure()["attention"],
    "M.06G.001": lambda: 3 * Fraction(training.kaplan_forward(RUNNING, S)["weights"], params.coordinates(RUNNING)["kaplan"]),
    "M.06G.002": lambda: training.palm_model_flops(11, 2, 3, 5, 7) - training.palm_model_flops(10, 2, 3, 5, 7),
    "M.06G.003": lambda: Fraction(
        training.palm_model_flops(10, 2, 3, 5, 8) - training.palm_model_flops(10, 2, 3, 5, 7), 2 * 3 * 5
    ),
    "M.06G.013": lambda: Fraction(training.palm_model_flops(**PALM), TB),
    "M.06G.014": lambda: training.palm_hardware_flops(**PALM) / TB,
    "M.06G.015": lambda: 100 * inspect.signature(training.palm_hardware_flops).parameters["remat"].default,
    "M.06G.016": lambda: PALM["N"] // 10**9,
    "M.06G.017": lambda: megatron_terms()[0],
    "M.06G.018": lambda: megatron_terms()[1],
    "M.06G.019": lambda: Fraction(megatron("head"), 3 * 5 * 7 * 13),
    "M.06G.020": lambda: 96 * 3 * 5 * 11 * 7**2 * Fraction(13, 11 * 7) / megatron("head"),
    "M.06G.022": lambda: sum(list(forward.coefficients(classic_block(1, 64, 10, 4)).values())[:2]),
    "M.06G.023": lambda: forward.coefficients(classic_block(1, 64, 10, 4))["pairs"],
    "M.06G.024": shown("blocks", "hardware"),
    "M.06I.001": exact("none", "forward"),
    "M.06I.002": exact("none", "backward"),
    "M.06I.003": exact("none", "model"),
    "M.06I.004": exact("blocks", "recompute"),
    "M.06I.005": exact("blocks"),
    "M.06I.006": lambda: params.coordinates(RUNNING)["used"],
    "M.06I.007": exact("selective", "recompute"),
    "M.06I.008": lambda: TRAIN_4K.new_rows,
}


def cells(*values):
    return sum(round(Fraction(value, TB) * 10**6) for value in values)


TEXTS = {
    "M.06B.004": lambda: training.linear(7, 11, 13, need_dw=False).total == 2 * training.linear(7, 11, 13)["forward"],
    "M.06B.005": lambda: training.linear(7, 11, 13, need_dx=False).total == 2 * training.linear(7, 11, 13)["forward"],
    "M.06D.001": lambda: [Fraction(step(p)["hardware"], step(p)["forward"]) for p in ("none", "all")] == [3, 4]
    and all(step(p)["hardware"] == 3 * step(p)["forward"] + step(p)["recompute"] for p in REPLAYS),
    "M.06F.001": lambda: params.coordinates(RUNNING)["kaplan"] == 6_979_321_856
    and params.coordinates(RUNNING)["used"] - params.coordinates(RUNNING)["kaplan"] == 525_336_576,
    "M.06F.002": lambda: params.coordinates(RUNNING)["used"] == 7_504_658_432,
    "M.06F.004": lambda: closure()["sixnd"] == proxy("used") == 184_434_485_624_832,
    "M.06F.005": lambda: closure()["attention"] == 3 * 8_796_093_022_208,
    "M.06F.006": lambda: closure()["attention"] == 26_388_279_066_624,
    "M.06F.007": lambda: (closure()["sixnd"], closure()["attention"]) == (184_434_485_624_832, 26_388_279_066_624),
    "M.06F.008": lambda: closure().total == step()["model"] == 210_822_764_691_456,
    "M.06G.021": lambda: megatron("head") == 6 * 3 * 5 * 7 * 13
    and 4 * Fraction(megatron("head"), 3) == megatron("head") + 2 * 3 * 5 * 7 * 13,
    "M.06G.025": lambda: training.kaplan_forward(RUNNING, S)["context"] == 2 * 32 * S * d
    and 3 * training.kaplan_forward(RUNNING, S)["weights"] * S == proxy("kaplan"),
    "M.06J.001": lambda: step("all")["hardware"] - step("blocks")["hardware"] == head().forward,
    # Rounded cells that do not add up (M-01); the exact integers do.
    "M.06E.027": lambda: cells(*(step("blocks")[row] for row in ROWS[:3])) == 276_793_463
    and cells(step("blocks")["hardware"]) == 276_793_462,
    "M.06E.028": lambda: cells(step("all")["hardware"]) - cells(step("blocks")["hardware"]) == 4_303_558
    and cells(step("all")["hardware"] - step("blocks")["hardware"]) == 4_303_557,
}

_A4 = "a ratio printed by Hoffmann et al. without sequence length and vocabulary; it cannot be recomputed (M-03)"
REST = {
    **{f"M.06G.{n:03}": _A4 for n in range(4, 10)},
    "M.06G.010": "a model size of Hoffmann et al. whose manifest is not published with it",
    "M.06G.011": "a model size of Hoffmann et al. whose manifest is not published with it",
    "M.06G.012": "how many ratios a table of another paper prints",
}
