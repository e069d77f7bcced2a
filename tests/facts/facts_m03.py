"""M 0x03: numerical representation and persistent training state."""

from fractions import Fraction

from costlib import params, state
from costlib.fixtures import A16, AUTOCAST, INFER_BF16, INFER_FP32, MASTER, MASTERLESS, RUNNING
from costlib.schema import tensor_rows
from costlib.units import GB, GIB

OWNS = ("M.03",)
BILLION = 10**9
DTYPES = ("fp32", "bf16", "fp8", "int4")
IN_ORDER = (INFER_BF16, INFER_FP32, MASTERLESS, AUTOCAST, MASTER, A16)
GATE = next(t for t in tensor_rows(RUNNING) if t.name == "model.layers.0.mlp.gate_proj.weight")
SMALL = Fraction(1, 10**4)


def P():
    return params.ledger(RUNNING).total


def total(policy):
    return state.ledger(policy, P(), P()).total


def each(policy, role=None):
    """Bytes per scalar of a policy, or of one of its rows."""
    ledger = state.ledger(policy, P(), P())
    return Fraction(ledger[role] if role else ledger.total, P())


def slots(name):
    return len(state.optimizer_slots(name, 7))


def stored(bits, update):
    return state.rounded_update(Fraction(1), update, bits)


FACTS = {
    # M 0x03B
    **{f"M.03B.{3 * i + 1:03}": lambda d=d: state.bytes_of_weights(BILLION, d) for i, d in enumerate(DTYPES)},
    **{
        f"M.03B.{3 * i + j:03}": lambda d=d, unit=unit: Fraction(state.bytes_of_weights(BILLION, d), unit)
        for i, d in enumerate(DTYPES)
        for j, unit in ((2, GB), (3, GIB))
    },
    # M 0x03C
    "M.03C.001": lambda: state.spacing(7),
    "M.03C.002": lambda: state.spacing(10),
    "M.03C.003": lambda: state.spacing(23),
    "M.03C.005": lambda: state.spacing(7),
    "M.03C.006": lambda: state.spacing(10),
    "M.03C.007": lambda: state.spacing(23),
    # M 0x03D
    "M.03D.001": lambda: each(MASTERLESS, "optimizer"),
    "M.03D.002": lambda: slots("adamw"),
    "M.03D.003": lambda: slots("amsgrad"),
    "M.03D.004": lambda: slots("sgd"),
    # M 0x03E
    **{f"M.03E.{i:03}": lambda role=row.role: each(A16, role) for i, row in enumerate(
        sorted(A16.rows, key=lambda row: ["weights", "optimizer.master", "gradients.working", "gradients.update",
                                          "optimizer.m", "optimizer.v"].index(row.role)), 1)},
    "M.03E.007": lambda: each(A16),
    "M.03E.008": lambda: each(AUTOCAST),
    "M.03E.009": lambda: each(MASTER),
    "M.03E.010": lambda: each(MASTER),
    "M.03E.011": lambda: each(AUTOCAST),
    "M.03E.012": lambda: each(MASTER),
    # M 0x03F
    "M.03F.001": P,
    **{f"M.03F.{3 * i + 2:03}": lambda p=p: each(p) for i, p in enumerate(IN_ORDER)},
    **{
        f"M.03F.{3 * i + j:03}": lambda p=p, unit=unit: Fraction(total(p), unit)
        for i, p in enumerate(IN_ORDER)
        for j, unit in ((3, GB), (4, GIB))
    },
    "M.03F.021": lambda: each(MASTERLESS),
    "M.03F.022": lambda: each(AUTOCAST),
    "M.03F.023": lambda: each(MASTER),
    "M.03F.024": lambda: each(A16),
    # M 0x03H
    "M.03H.001": lambda: state.optimizer_slots("adam", GATE.numel)["v"],
    "M.03H.002": lambda: state.adafactor_state(*GATE.shape),
    "M.03H.003": lambda: Fraction(state.adafactor_state(*GATE.shape), GATE.numel),
    "M.03H.004": lambda: state.adafactor_state(14336, 4096),
    "M.03H.005": lambda: state.optimizer_slots("momentum", GATE.numel).total,
    "M.03H.008": lambda: state.adafactor_state(14336, 4096, momentum=True) - state.adafactor_state(14336, 4096),
    "M.03H.009": lambda: state.adafactor_state(4096, 14336),
    "M.03H.010": lambda: Fraction(state.adafactor_state(14336, 4096), GATE.numel),
}

TEXTS = {
    "M.03C.004": lambda: [[stored(bits, sign * SMALL) == 1 for sign in (1, -1)] for bits in (7, 10, 23)]
    == [[True, True], [True, True], [False, False]],
    "M.03D.005": lambda: dict(state.optimizer_slots("momentum", 7)) == {"momentum": 7},
    # f = 1 with (b_w, b_m, b_g, slots) = (2, 4, 6, 8), and f = 1/2: the weights stay whole.
    "M.03F.020": lambda: state.ledger(A16, 1000, 1000).total == 1000 * (2 + 4 + 6 + 8)
    and state.ledger(A16, 1000, 500).total == 1000 * 2 + 500 * (4 + 6 + 8),
    "M.03H.006": lambda: all(
        state.eight_bit_adam(n, block, few).total > 2 * n for n, block, few in ((P(), 2048, 0), (1128, 256, 5), (1, 1, 1))
    ),
    "M.03H.007": lambda: GATE.shape == (14336, 4096),
}
