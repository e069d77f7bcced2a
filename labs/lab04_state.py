"""Lab 04: training state of M 0x03, from the bytes of one tensor to a reconciled inventory."""

from collections import Counter
from fractions import Fraction

from costlib.fixtures import A16, AUTOCAST, INFER_BF16, INFER_FP32, MASTER, MASTERLESS, TOY
from costlib.policies import BITS, POINTS, StateObject, StatePolicy, StateRow
from costlib.schema import tensor_rows
from labs.spec import Exercise, Failure, Lab, Wrong, given

P = 8_030_261_248  # unique scalars of the running model
ADAPTERS = 41_943_040

# Moments in the parameters' own dtype, as an optimizer makes them that copies it.
BF16_SLOTS = MASTERLESS.replace(
    policy_id="bf16-slots",
    rows=tuple(row.replace(dtype="bf16") for row in MASTERLESS.rows),
)
RESTORED = MASTERLESS.replace(
    policy_id="restored",
    rows=tuple(row.replace(created="construction") if row.created == "step" else row for row in MASTERLESS.rows),
)
FUSED = MASTERLESS.replace(
    policy_id="fused",
    rows=tuple(row.replace(released="step") if row.role == "gradients" else row for row in MASTERLESS.rows),
)
# Every field differs from its neighbours': half bytes, several copies, three owners, two places.
ODD_STATE = StatePolicy(
    policy_id="odd-state",
    rows=(
        StateRow(role="weights", counts="loaded", dtype="int4"),
        StateRow(role="shadow", counts="loaded", dtype="int4", copies=3, placement="host"),
        StateRow(
            role="staging", counts="loaded", dtype="fp8", placement="host", created="backward", owner="runtime"
        ),
        StateRow(
            role="gradients", counts="trained", dtype="bf16", created="backward", released="zero-grad", owner="autograd"
        ),
        StateRow(role="optimizer.m", counts="trained", dtype="int8", created="step", owner="optimizer"),
        StateRow(
            role="optimizer.v", counts="trained", dtype="bf16", placement="host", created="step", owner="optimizer"
        ),
    ),
)
EVERY = (A16, AUTOCAST, BF16_SLOTS, FUSED, INFER_BF16, INFER_FP32, MASTER, MASTERLESS, ODD_STATE, RESTORED)
SIZES = ((P, P), (P, ADAPTERS), (345_871, 10_001), (345_871, 345_871), (1_128, 1_000), (7, 3))


def _right(name, *args, **kwargs):
    from solutions import state

    return getattr(state, name)(*args, **kwargs)


def _bytes(scalars, dtype):
    return -(-scalars * BITS[dtype] // 8)


def _rows(policy, loaded, trained, dtype=lambda row: row.dtype, keep=lambda row: True):
    """A ledger by the policy with some mistake in the dtype, or in which rows are kept."""
    scalars = {"loaded": loaded, "trained": trained}
    return {
        row.role: row.copies * _bytes(scalars[row.counts], dtype(row)) for row in policy.rows if keep(row)
    }


def _in(group):
    return lambda row: row.role.partition(".")[0] == group


_slot, _gradient = _in("optimizer"), _in("gradients")

weights = Exercise(
    "bytes_of_weights",
    points=1,
    minutes=4,
    lines=1,
    hints=(
        "How many bits has one scalar, and how many bits is a byte?",
        "Three int4 codes are 12 bits, which take 2 bytes. Round up with ceil_div of costlib.units.",
        "ceil_div(params * BITS[dtype], 8), with BITS from costlib.policies.",
    ),
    cases=(
        given(10**9, "fp32").gives(4_000_000_000),
        given(10**9, "bf16").gives(2_000_000_000),
        given(10**9, "int8").gives(1_000_000_000),
        given(10**9, "int4").gives(500_000_000),
        given(P, "bf16").gives(16_060_522_496),
        given(345_871, "int4").gives(172_936),
        given(7, "int4").gives(4),
        given(345_871, "fp8").gives(345_871),
        given(0, "fp16").gives(0),
        given(1e9, "bf16").refuses("TYPE"),
        given(10, "fp64").refuses("ENUM"),
    ),
    wrong=(
        Wrong(
            "bits-for-bytes",
            lambda params, dtype: params * BITS[dtype],
            "Factor 8: these are bits. A byte has eight.",
        ),
        Wrong(
            "fp32-always",
            lambda params, dtype: 4 * params,
            "Four bytes for every scalar. The dtype says how many: two for bf16, half a one for int4.",
        ),
        Wrong(
            "a-byte-at-least",
            lambda params, dtype: params * max(1, BITS[dtype] // 8),
            "A byte for every int4 code. Packed, two codes share a byte.",
        ),
        Wrong(
            "half-byte-lost",
            lambda params, dtype: params * BITS[dtype] // 8,
            "The last half byte is cut off. An odd number of int4 codes still needs the whole last byte: round up.",
        ),
    ),
    shapes={"params": (7, 1_129, 345_871, P), "dtype": tuple(BITS)},
)

spacing = Exercise(
    "spacing",
    points=1,
    minutes=5,
    lines=1,
    hints=(
        "In [1, 2) a format with m fraction bits has 2**m values at equal distances. How large is one?",
        "[2**e, 2**(e + 1)) is the same picture, 2**e times as large.",
        "Fraction(2) ** (exponent - mantissa_bits).",
    ),
    cases=(
        given(7).gives(Fraction(1, 128)),
        given(10).gives(Fraction(1, 1024)),
        given(23).gives(Fraction(1, 8_388_608)),
        given(7, -1).gives(Fraction(1, 256)),
        given(10, 10).gives(Fraction(1)),
        given(2, 5).gives(Fraction(8)),
        given(0, 0).gives(Fraction(1)),
        given(-1).refuses("NEG"),
        given(7.0).refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "near-one-always",
            lambda mantissa_bits, exponent=0: Fraction(1, 2**mantissa_bits),
            "This is the spacing near 1. It doubles with every power of two: use the exponent.",
        ),
        Wrong(
            "hidden-bit-counted",
            lambda mantissa_bits, exponent=0: Fraction(2) ** (exponent - mantissa_bits - 1),
            "Exactly half. mantissa_bits are the stored fraction bits; the leading 1 is not among them.",
        ),
        Wrong(
            "exponent-upside-down",
            lambda mantissa_bits, exponent=0: Fraction(2) ** (-exponent - mantissa_bits),
            "The exponent has the wrong sign: large numbers lie further apart, not closer.",
        ),
    ),
    shapes={"mantissa_bits": (2, 3, 7, 10, 23), "exponent": (-14, -3, 0, 1, 8, 20)},
)


def _nearest(value, step):
    return round(value / step) * step


def _step(value, mantissa_bits):
    from costlib.state import exponent_of

    return Fraction(2) ** (exponent_of(value) - mantissa_bits)


def _half_away(weight, update, mantissa_bits):
    exact = Fraction(weight + update)
    step = _step(exact, mantissa_bits)
    sign = -1 if exact < 0 else 1
    return sign * ((abs(exact) / step + Fraction(1, 2)) // 1) * step


SMALL = Fraction(1, 10**4)
update = Exercise(
    "rounded_update",
    points=3,
    minutes=12,
    lines=3,
    hints=(
        "Only the sum is rounded. Between which two values of the format does it lie?",
        "step = spacing(mantissa_bits, exponent_of(exact)): how many steps is the exact sum?",
        "exact = Fraction(weight + update), then round(exact / step) * step.",
    ),
    cases=(
        given(Fraction(1), SMALL, 7).gives(Fraction(1)),
        given(Fraction(1), SMALL, 10).gives(Fraction(1)),
        given(Fraction(1), SMALL, 23).gives(Fraction(8_389_447, 8_388_608)),
        given(Fraction(1), -SMALL, 10).gives(Fraction(1)),
        given(Fraction(1), -SMALL, 23).gives(Fraction(8_387_769, 8_388_608)),
        given(Fraction(1), Fraction(1, 256), 7).gives(Fraction(1)),
        given(Fraction(129, 128), Fraction(1, 256), 7).gives(Fraction(65, 64)),
        given(Fraction(-129, 128), Fraction(-1, 256), 7).gives(Fraction(-65, 64)),
        given(Fraction(256), Fraction(1), 7).gives(Fraction(256)),
        given(Fraction(1000), Fraction(1, 4), 10).gives(Fraction(1000)),
        given(Fraction(1, 64), SMALL, 7).gives(Fraction(129, 8192)),
        given(Fraction(0), Fraction(1, 3), 2).gives(Fraction(5, 16)),
        given(Fraction(1), 1e-4, 7).refuses("TYPE"),
        given(Fraction(1), SMALL, -1).refuses("NEG"),
    ),
    wrong=(
        Wrong(
            "not-rounded",
            lambda weight, update, mantissa_bits: Fraction(weight + update),
            "This is the exact sum. The weight is stored in the format: the sum must be rounded to one of its values.",
        ),
        Wrong(
            "update-rounded-alone",
            lambda weight, update, mantissa_bits: weight + _nearest(Fraction(update), _step(update, mantissa_bits)),
            "You rounded the update. On its own the format holds it well; it is the sum that has no room for it.",
        ),
        Wrong(
            "spacing-near-one",
            lambda weight, update, mantissa_bits: _nearest(Fraction(weight + update), Fraction(1, 2**mantissa_bits)),
            "You used the spacing near 1 everywhere. Near 256 the neighbours of bf16 are 2 apart: take the sum's exponent.",
        ),
        Wrong(
            "ties-away",
            _half_away,
            "Ties go to the even neighbour, not away from zero: 257 in bf16 is halfway and becomes 256.",
        ),
        Wrong(
            "cut-off",
            lambda weight, update, mantissa_bits: int(Fraction(weight + update) / _step(weight + update, mantissa_bits))
            * _step(weight + update, mantissa_bits),
            "You cut towards zero. The format takes the nearest value, above or below.",
        ),
        Wrong(
            "always-lost",
            lambda weight, update, mantissa_bits: Fraction(weight),
            "Here no update ever arrives. It is lost only where it is less than half a step.",
        ),
    ),
    shapes={
        "weight": (Fraction(1), Fraction(3, 2), Fraction(-5, 8), Fraction(255), Fraction(3, 1024)),
        "update": (SMALL, Fraction(-1, 300), Fraction(1, 512), Fraction(-7, 3), Fraction(1, 2)),
        "mantissa_bits": (3, 7, 10, 23),
    },
)


def _slots(change):
    def model(name, params):
        return change(dict(_right("optimizer_slots", name, params)), name, params)

    return model


slots = Exercise(
    "optimizer_slots",
    points=2,
    minutes=8,
    lines=4,
    hints=(
        "Write the update rule down. Which names does it read before it has assigned them in this step?",
        "m = b1 * m + ..., v = b2 * v + ...: both read themselves. Weight decay reads the weight, which is no slot.",
        "A dict from the name to its slots, then {slot: params for slot in ...}.",
    ),
    cases=(
        given("sgd", P).gives({}),
        given("momentum", P).gives({"momentum": P}),
        given("adam", P).gives({"m": P, "v": P}),
        given("adamw", P).gives({"m": P, "v": P}),
        given("amsgrad", P).gives({"m": P, "v": P, "v_max": P}),
        given("sgd", 345_871).gives({}),
        given("adamw", 345_871).gives({"m": 345_871, "v": 345_871}),
        given("amsgrad", 1_128).gives({"m": 1_128, "v": 1_128, "v_max": 1_128}),
        given("lion", 10).refuses("ENUM"),
        given("adam", 70e9).refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "decay-slot",
            _slots(lambda r, name, params: {**r, "decay": params} if name == "adamw" else r),
            "AdamW has a slot too many. It decays the weight itself and carries nothing more from step to step.",
        ),
        Wrong(
            "one-moment",
            _slots(lambda r, name, params: {slot: n for slot, n in r.items() if slot != "v"}),
            "Adam averages the gradient and its square: two slots, m and v.",
        ),
        Wrong(
            "no-running-maximum",
            _slots(lambda r, name, params: {slot: n for slot, n in r.items() if slot != "v_max"}),
            "AMSGrad divides by the largest v so far, so it must carry that too: v_max.",
        ),
        Wrong(
            "master-as-slot",
            _slots(lambda r, name, params: {**r, "master": params}),
            "A master copy follows from the weights' precision, not from the update rule. It has a row of its own in a policy.",
        ),
        Wrong(
            "bytes-for-scalars",
            _slots(lambda r, name, params: {slot: 4 * n for slot, n in r.items()}),
            "Four times too much: these are fp32 bytes. Asked for are scalars; the dtype is the policy's.",
        ),
    ),
    shapes={"name": ("sgd", "momentum", "adam", "adamw", "amsgrad"), "params": (7, 1_000, 96_864, P)},
)


def _first_slot_only(policy, loaded, trained):
    first = next((row.role for row in policy.rows if _slot(row)), None)
    rows = _rows(policy, loaded, trained)
    return {row.role: rows[row.role] if row.role == first or not _slot(row) else 0 for row in policy.rows}


def _autocast_copy(policy, loaded, trained):
    rows = _rows(policy, loaded, trained)
    fp32 = any(row.role == "weights" and row.dtype == "fp32" for row in policy.rows)
    return {**rows, "autocast": 2 * loaded} if fp32 else rows


ROLES = ("weights", "gradients", "optimizer.m", "optimizer.v")
whole = Exercise(
    "ledger",
    points=4,
    minutes=15,
    lines=4,
    hints=(
        "A row needs two things: how many scalars, and bytes_of_weights of so many in the row's dtype.",
        'row.counts is "loaded" or "trained": a dict with these two keys picks the number.',
        "Refuse trained > loaded first, with require(..., 'INCONSISTENT', ...); then one dict comprehension over policy.rows.",
    ),
    cases=(
        given(INFER_BF16, P, 0).gives({"weights": 16_060_522_496}),
        given(MASTERLESS, P, P).gives(
            dict(zip(ROLES, (16_060_522_496, 16_060_522_496, 32_121_044_992, 32_121_044_992)))
        ),
        given(AUTOCAST, P, P).gives(dict.fromkeys(ROLES, 32_121_044_992)),
        given(MASTER, P, P).gives(
            {
                "weights": 16_060_522_496,
                "gradients": 16_060_522_496,
                "optimizer.master": 32_121_044_992,
                "optimizer.m": 32_121_044_992,
                "optimizer.v": 32_121_044_992,
            }
        ),
        given(A16, P, P).gives(
            {
                "weights": 16_060_522_496,
                "gradients.working": 16_060_522_496,
                "gradients.update": 32_121_044_992,
                "optimizer.master": 32_121_044_992,
                "optimizer.m": 32_121_044_992,
                "optimizer.v": 32_121_044_992,
            }
        ),
        given(A16, 1_128, 1_128).gives(
            {
                "weights": 2_256,
                "gradients.working": 2_256,
                "gradients.update": 4_512,
                "optimizer.master": 4_512,
                "optimizer.m": 4_512,
                "optimizer.v": 4_512,
            }
        ),
        given(AUTOCAST, P, ADAPTERS).gives(
            dict(zip(ROLES, (32_121_044_992, 167_772_160, 167_772_160, 167_772_160)))
        ),
        given(MASTER, 345_871, 1_056).gives(
            {
                "weights": 691_742,
                "gradients": 2_112,
                "optimizer.master": 4_224,
                "optimizer.m": 4_224,
                "optimizer.v": 4_224,
            }
        ),
        given(BF16_SLOTS, P, P).gives(dict.fromkeys(ROLES, 16_060_522_496)),
        given(BF16_SLOTS, 1_128, 1_000).gives(dict(zip(ROLES, (2_256, 2_000, 2_000, 2_000)))),
        given(ODD_STATE, 345_871, 10_001).gives(
            {
                "weights": 172_936,
                "shadow": 518_808,
                "staging": 345_871,
                "gradients": 20_002,
                "optimizer.m": 10_001,
                "optimizer.v": 20_002,
            }
        ),
        given(ODD_STATE, 7, 3).gives(
            {"weights": 4, "shadow": 12, "staging": 7, "gradients": 6, "optimizer.m": 3, "optimizer.v": 6}
        ),
        given(A16, 1_128, 1_129).refuses("INCONSISTENT"),
        given(A16, 8.03e9, 0).refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "all-trained",
            lambda policy, loaded, trained: _rows(policy, loaded, loaded),
            "Every row has the loaded scalars. Gradients and slots exist only for what is trained: read row.counts.",
        ),
        Wrong(
            "frozen-left-out",
            lambda policy, loaded, trained: _rows(policy, trained, trained),
            "The frozen weights are missing. They get no gradient, but they are loaded all the same.",
        ),
        Wrong(
            "fp32-slots",
            lambda policy, loaded, trained: _rows(policy, loaded, trained, lambda r: "fp32" if _slot(r) else r.dtype),
            "You took the moments to be fp32. Many optimizers give them the parameter's dtype: read row.dtype.",
        ),
        Wrong(
            "fp32-gradients",
            lambda policy, loaded, trained: _rows(
                policy, loaded, trained, lambda r: "fp32" if _gradient(r) else r.dtype
            ),
            "You took every gradient to be fp32. Only a row that says so is.",
        ),
        Wrong(
            "autocast-copy",
            _autocast_copy,
            "A 16-bit copy of fp32 weights is in. Autocast chooses the dtype of operations; no row declares a second tensor.",
        ),
        Wrong(
            "one-slot",
            _first_slot_only,
            "Only the first of the optimizer's rows has bytes. The master copy, m and v are tensors of full size, each.",
        ),
        Wrong(
            "always-sixteen",
            lambda policy, loaded, trained: _rows(MASTER, loaded, trained),
            "These are the 16 bytes of one policy, whatever is asked. 'Mixed precision' names no rows; the policy does.",
        ),
        Wrong(
            "always-twenty",
            lambda policy, loaded, trained: _rows(A16, loaded, trained),
            "These are the 20 bytes of one policy, whatever is asked. Count the rows of the policy that you are given.",
        ),
        Wrong(
            "copies-ignored",
            lambda policy, loaded, trained: {
                row.role: _bytes({"loaded": loaded, "trained": trained}[row.counts], row.dtype) for row in policy.rows
            },
            "row.copies is not used.",
        ),
        Wrong(
            "per-rank",
            lambda policy, loaded, trained: {k: v // 8 for k, v in _rows(policy, loaded, trained).items()},
            "Divided by eight ranks. Who owns which part is the question of M 0x07; this ledger is the whole model's.",
        ),
    ),
    shapes={"policy": EVERY, ("loaded", "trained"): SIZES},
)


def _existing(rule):
    """Roles by a rule on the places of (created, point, released) in the order, with a mistake in it."""
    at = (*POINTS, "never").index

    def model(policy, point):
        return tuple(row.role for row in policy.rows if rule(row, at(row.created), at(point), at(row.released)))

    return model


def _eager(row, created, point, released):
    return _slot(row) or created <= point < released


def _lazy(row, created, point, released):
    return (2 if row.role in ("optimizer.m", "optimizer.v") else created) <= point < released


lifecycle = Exercise(
    "alive",
    points=3,
    minutes=10,
    lines=2,
    hints=(
        "Give the points numbers: (*POINTS, 'never').index does.",
        "Alive from created on, and no longer at released: a half-open interval.",
        "created <= point < released, as in the intervals of M 0x04.",
    ),
    cases=(
        given(A16, "construction").gives(("weights", "optimizer.master")),
        given(A16, "backward").gives(("weights", "gradients.working", "gradients.update", "optimizer.master")),
        given(A16, "step").gives(
            ("weights", "gradients.working", "gradients.update", "optimizer.master", "optimizer.m", "optimizer.v")
        ),
        given(A16, "zero-grad").gives(("weights", "optimizer.master", "optimizer.m", "optimizer.v")),
        given(MASTERLESS, "backward").gives(("weights", "gradients")),
        given(INFER_BF16, "step").gives(("weights",)),
        given(ODD_STATE, "construction").gives(("weights", "shadow")),
        given(ODD_STATE, "zero-grad").gives(("weights", "shadow", "staging", "optimizer.m", "optimizer.v")),
        given(FUSED, "step").gives(("weights", "optimizer.m", "optimizer.v")),
        given(FUSED, "zero-grad").gives(("weights", "optimizer.m", "optimizer.v")),
        given(RESTORED, "construction").gives(("weights", "optimizer.m", "optimizer.v")),
        given(RESTORED, "backward").gives(("weights", "gradients", "optimizer.m", "optimizer.v")),
        given(A16, "forward").refuses("ENUM"),
    ),
    wrong=(
        Wrong(
            "moments-from-the-start",
            _existing(_eager),
            "The moments are there too early. Constructing an optimizer makes none: they come with the first step.",
        ),
        Wrong(
            "moments-always-lazy",
            _existing(_lazy),
            "The moments are there too late. A restored optimizer has them from the start: read row.created.",
        ),
        Wrong(
            "released-one-late",
            _existing(lambda row, created, point, released: created <= point <= released),
            "Released one point late: just after row.released the row is gone.",
        ),
        Wrong(
            "nothing-released",
            _existing(lambda row, created, point, released: created <= point),
            "Nothing is ever released. zero_grad sets the gradients to None.",
        ),
        Wrong(
            "created-one-late",
            _existing(lambda row, created, point, released: created < point < released),
            "Created one point late: just after row.created the row is there.",
        ),
        Wrong(
            "newborn-only",
            _existing(lambda row, created, point, released: created == point),
            "These are the rows that come into being at that point. Asked for is everything that exists then.",
        ),
    ),
    shapes={"policy": EVERY, "point": POINTS},
)


def _seen(rule):
    """A ledger of the rows that a mistaken rule takes to be there."""
    at = (*POINTS, "never").index

    def model(policy, loaded, trained, point, placement="device"):
        def keep(row):
            return rule(row, at(row.created), at(point), at(row.released), row.placement == placement)

        return _rows(policy, loaded, trained, keep=keep)

    return model


present = Exercise(
    "resident",
    points=3,
    minutes=10,
    lines=3,
    hints=(
        "You have the bytes of every row and the roles that are alive. What is missing is the place.",
        "[row.role for row in policy.rows if row.placement == placement]",
        "{role: rows[role] for role in alive(policy, point) if role is placed here}, with rows = ledger(...).",
    ),
    cases=(
        given(A16, P, P, "construction").gives({"weights": 16_060_522_496, "optimizer.master": 32_121_044_992}),
        given(A16, P, P, "backward").gives(
            {
                "weights": 16_060_522_496,
                "gradients.working": 16_060_522_496,
                "gradients.update": 32_121_044_992,
                "optimizer.master": 32_121_044_992,
            }
        ),
        given(A16, P, P, "zero-grad").gives(
            {
                "weights": 16_060_522_496,
                "optimizer.master": 32_121_044_992,
                "optimizer.m": 32_121_044_992,
                "optimizer.v": 32_121_044_992,
            }
        ),
        given(MASTERLESS, P, ADAPTERS, "step").gives(
            dict(zip(ROLES, (16_060_522_496, 83_886_080, 167_772_160, 167_772_160)))
        ),
        given(AUTOCAST, P, ADAPTERS, "zero-grad").gives(
            {"weights": 32_121_044_992, "optimizer.m": 167_772_160, "optimizer.v": 167_772_160}
        ),
        given(ODD_STATE, 345_871, 10_001, "step").gives(
            {"weights": 172_936, "gradients": 20_002, "optimizer.m": 10_001}
        ),
        given(ODD_STATE, 345_871, 10_001, "step", "host").gives(
            {"shadow": 518_808, "staging": 345_871, "optimizer.v": 20_002}
        ),
        given(ODD_STATE, 345_871, 10_001, "construction", "host").gives({"shadow": 518_808}),
        given(ODD_STATE, 345_871, 10_001, "step", "disk").gives({}),
        given(RESTORED, 1_128, 1_000, "backward").gives(dict(zip(ROLES, (2_256, 2_000, 4_000, 4_000)))),
        given(A16, 1, 2, "step").refuses("INCONSISTENT"),
        given(A16, 2, 1, "step", "gpu").refuses("ENUM"),
    ),
    wrong=(
        Wrong(
            "measured-too-early",
            _seen(lambda row, created, point, released, here: here and created <= min(point, 1) and point < released),
            "The moments are missing after the first step too: this is what a look before it shows.",
        ),
        Wrong(
            "gradients-kept",
            _seen(lambda row, created, point, released, here: here and created <= point),
            "The gradients are still in after zero_grad.",
        ),
        Wrong(
            "any-place",
            _seen(lambda row, created, point, released, here: created <= point < released),
            "Host memory is in. A ledger of one place holds what is placed there.",
        ),
        Wrong(
            "everything-at-once",
            _seen(lambda row, created, point, released, here: here),
            "Every row counts, at every point. Take those that are alive then.",
        ),
    ),
    shapes={
        "policy": EVERY,
        ("loaded", "trained"): SIZES,
        "point": POINTS,
        "placement": ("device", "device", "host"),
    },
)

adafactor = Exercise(
    "adafactor_state",
    points=2,
    minutes=5,
    lines=1,
    hints=(
        "Adam's v is a full matrix. What is left of it if you keep its row sums and its column sums only?",
        "rows + columns numbers; the first moment, if there is one, is not factored.",
        "rows + columns + (rows * columns if momentum else 0).",
    ),
    cases=(
        given(14336, 4096).gives(18_432),
        given(4096, 14336).gives(18_432),
        given(14336, 4096, True).gives(58_738_688),
        given(250, 96).gives(346),
        given(96, 250, True).gives(24_346),
        given(1009, 96).gives(1_105),
        given(0, 5).refuses("NONPOS"),
        given(250.0, 96).refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "same-shape",
            lambda rows, columns, momentum=False: rows * columns * (2 if momentum else 1),
            "This is the full matrix that Adam keeps. Adafactor changes the shape of the state, not its dtype: one number per row and one per column.",
        ),
        Wrong(
            "momentum-left-out",
            lambda rows, columns, momentum=False: rows + columns,
            "With momentum there is a first moment again, and it has the matrix's full shape.",
        ),
        Wrong(
            "momentum-factored",
            lambda rows, columns, momentum=False: (rows + columns) * (2 if momentum else 1),
            "The first moment is not factored: rows times columns, not rows plus columns.",
        ),
        Wrong(
            "one-side",
            lambda rows, columns, momentum=False: rows + (rows * columns if momentum else 0),
            "Only the row statistics are in. The column statistics are kept as well.",
        ),
        Wrong(
            "bytes-for-scalars",
            lambda rows, columns, momentum=False: 4 * (rows + columns + (rows * columns if momentum else 0)),
            "Four times too much: these are fp32 bytes. Asked for are scalars.",
        ),
    ),
    shapes={"rows": (8, 96, 250, 4096), "columns": (12, 120, 1009, 14336), "momentum": (False, True)},
)


def _codes(coded, blocks, exceptions, scale=8, code=2, exception=8):
    return {"codes": code * coded, "scales": scale * blocks, "exceptions": exception * exceptions}


eight = Exercise(
    "eight_bit_adam",
    points=2,
    minutes=10,
    lines=3,
    hints=(
        "Take the exceptions away first: what is left is coded.",
        "Two moments: two codes per scalar, two scales per block. A block that is only begun has its scale too.",
        "codes = 2 * coded, scales = 2 * 4 * ceil_div(coded, block), exceptions = 2 * 4 * exceptions.",
    ),
    cases=(
        given(58_720_256, 2048).gives({"codes": 117_440_512, "scales": 229_376, "exceptions": 0}),
        given(P, 2048, 525_336_576).gives(
            {"codes": 15_009_849_344, "scales": 29_316_112, "exceptions": 4_202_692_608}
        ),
        given(1_128, 256).gives({"codes": 2_256, "scales": 40, "exceptions": 0}),
        given(345_871, 64, 96_864).gives({"codes": 498_014, "scales": 31_128, "exceptions": 774_912}),
        given(10_001, 100).gives({"codes": 20_002, "scales": 808, "exceptions": 0}),
        given(1_000, 256, 1_000).gives({"codes": 0, "scales": 0, "exceptions": 8_000}),
        given(10, 64, 11).refuses("INCONSISTENT"),
        given(10, 0).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "codes-only",
            lambda trained, block, exceptions=0: _codes(trained, 0, 0),
            "Two bytes per scalar and nothing else. Without the scales the codes mean nothing, and the exceptions are fp32.",
        ),
        Wrong(
            "one-moment",
            lambda trained, block, exceptions=0: _codes(
                trained - exceptions, -(-(trained - exceptions) // block), exceptions, 4, 1, 4
            ),
            "Exactly half: Adam has two moments, each with codes, scales and exceptions of its own.",
        ),
        Wrong(
            "whole-blocks-only",
            lambda trained, block, exceptions=0: _codes(
                trained - exceptions, (trained - exceptions) // block, exceptions
            ),
            "The last block has no scale. It is not full, but it is there: round up.",
        ),
        Wrong(
            "exceptions-coded-too",
            lambda trained, block, exceptions=0: _codes(trained, -(-trained // block), exceptions),
            "The exceptions have codes as well. They are stored in fp32 instead.",
        ),
        Wrong(
            "one-scale-for-both",
            lambda trained, block, exceptions=0: _codes(
                trained - exceptions, -(-(trained - exceptions) // block), exceptions, 4
            ),
            "One scale per block for both moments. m and v have different ranges, and a scale each.",
        ),
    ),
    shapes={"trained": (10_001, 345_871, P), "block": (64, 100, 256, 2048), "exceptions": (0, 77, 9_999)},
)


def _saved(keep, with_control=True):
    def model(policy, loaded, trained, control=0):
        return {**_rows(policy, loaded, trained, keep=keep), "control": control if with_control else 0}

    return model


saved = Exercise(
    "checkpoint",
    points=2,
    minutes=8,
    lines=3,
    hints=(
        "Go through the rows: whose are they? What would a restart compute anew?",
        'row.owner in ("model", "optimizer") is saved, on whatever device it lies.',
        '{row.role: rows[row.role] for the saved rows}, then "control": control as the last row.',
    ),
    cases=(
        given(A16, P, P).gives(
            {
                "weights": 16_060_522_496,
                "optimizer.master": 32_121_044_992,
                "optimizer.m": 32_121_044_992,
                "optimizer.v": 32_121_044_992,
                "control": 0,
            }
        ),
        given(MASTERLESS, P, P, 5_056).gives(
            {
                "weights": 16_060_522_496,
                "optimizer.m": 32_121_044_992,
                "optimizer.v": 32_121_044_992,
                "control": 5_056,
            }
        ),
        given(AUTOCAST, P, ADAPTERS, 100).gives(
            {"weights": 32_121_044_992, "optimizer.m": 167_772_160, "optimizer.v": 167_772_160, "control": 100}
        ),
        given(ODD_STATE, 345_871, 10_001, 77).gives(
            {"weights": 172_936, "shadow": 518_808, "optimizer.m": 10_001, "optimizer.v": 20_002, "control": 77}
        ),
        given(ODD_STATE, 7, 3).gives({"weights": 4, "shadow": 12, "optimizer.m": 3, "optimizer.v": 6, "control": 0}),
        given(INFER_BF16, P, 0).gives({"weights": 16_060_522_496, "control": 0}),
        given(A16, 1, 2).refuses("INCONSISTENT"),
    ),
    wrong=(
        Wrong(
            "what-the-device-holds",
            _saved(lambda row: row.placement == "device"),
            "This is the device's memory. Gradients are not saved, and what lies on the host is.",
        ),
        Wrong(
            "with-gradients",
            _saved(lambda row: row.owner != "runtime"),
            "The gradients are in. The next backward makes them anew; a checkpoint has none.",
        ),
        Wrong(
            "optimizer-only",
            _saved(lambda row: row.owner == "optimizer"),
            "The weights are missing: an optimizer's state_dict does not hold the parameters.",
        ),
        Wrong(
            "control-forgotten",
            _saved(lambda row: row.owner in ("model", "optimizer"), with_control=False),
            "Scheduler, scaler, counters and random states are missing. Without them a restart is another run.",
        ),
        Wrong(
            "device-rows-only",
            _saved(lambda row: row.owner in ("model", "optimizer") and row.placement == "device"),
            "Rows on the host are missing. A restart needs them wherever they lie.",
        ),
    ),
    shapes={"policy": EVERY, ("loaded", "trained"): SIZES, "control": (0, 41, 5_056)},
)


def _object(role, tensor, shape, dtype, bytes, device="device"):
    return StateObject(role=role, tensor=tensor, shape=shape, dtype=dtype, device=device, bytes=bytes)


W_A, W_B = (_object("weights", t, (3, 5), "bf16", 30) for t in "ab")
G_A, G_B = (_object("gradients", t, (3, 5), "bf16", 30) for t in "ab")
M_A, M_B = (_object("optimizer.m", t, (3, 5), "fp32", 60) for t in "ab")
V_A = M_A.replace(role="optimizer.v")
M_A_HOST, M_B_HOST = M_A.replace(device="host"), M_B.replace(device="host")
W_A_TURNED, W_B_WIDE = W_A.replace(shape=(5, 3)), W_B.replace(dtype="fp32", bytes=60)


def _diff(missing=(), unexpected=()):
    return {"missing": missing, "unexpected": unexpected}


def _compare(expected, observed, key=lambda row: row):
    """Multiset differences under a key that may leave too much out."""
    wanted, seen = Counter(map(key, expected)), Counter(map(key, observed))
    sides = []
    for rows, left in ((expected, wanted - seen), (observed, seen - wanted)):
        side = []
        for row in sorted(rows):
            if left[key(row)]:
                left[key(row)] -= 1
                side.append(row)
        sides.append(tuple(side))
    return _diff(*sides)


def _by_total(expected, observed):
    equal = sum(row.bytes for row in expected) == sum(row.bytes for row in observed)
    return _diff() if equal else _compare(expected, observed)


def _by_role_total(expected, observed):
    def bytes_of(rows, role):
        return sum(row.bytes for row in rows if row.role == role)

    roles = {row.role for row in (*expected, *observed) if bytes_of(expected, row.role) != bytes_of(observed, row.role)}
    return _compare(*([row for row in rows if row.role in roles] for rows in (expected, observed)))


meeting = Exercise(
    "reconcile",
    points=3,
    minutes=12,
    lines=5,
    hints=(
        "Objects compare equal if every field is equal, and they can be counted: collections.Counter(expected).",
        "The difference of two Counters keeps what the first has more of; .elements() lists it.",
        "tuple(sorted((Counter(expected) - Counter(observed)).elements())), and the other way round.",
    ),
    cases=(
        given((W_A, W_B, G_A, G_B), (G_B, W_B, W_A, G_A)).gives(_diff()),
        given((W_A, G_A, G_B), (W_A, M_A)).gives(_diff((G_A, G_B), (M_A,))),
        given((G_B, G_A), (V_A,)).gives(_diff((G_A, G_B), (V_A,))),
        given((W_A, M_A), (W_A, V_A)).gives(_diff((M_A,), (V_A,))),
        given((W_A, M_A), (W_A, M_A_HOST)).gives(_diff((M_A,), (M_A_HOST,))),
        given((M_B, M_A), (M_A_HOST, M_B_HOST)).gives(_diff((M_A, M_B), (M_A_HOST, M_B_HOST))),
        given((M_A, M_B), (M_A_HOST,)).gives(_diff((M_A, M_B), (M_A_HOST,))),
        given((W_A, W_B), (W_A_TURNED, W_B)).gives(_diff((W_A,), (W_A_TURNED,))),
        given((W_A, W_B), (W_A, W_B_WIDE)).gives(_diff((W_B,), (W_B_WIDE,))),
        given((W_A, W_B), (W_A, W_A, W_B, W_A)).gives(_diff((), (W_A, W_A))),
        given((W_A, W_A), (W_A,)).gives(_diff((W_A,), ())),
        given((W_A, G_A, M_A, V_A), (W_A, G_A)).gives(_diff((M_A, V_A), ())),
        given((), (M_A,)).gives(_diff((), (M_A,))),
        given([W_A], [W_A]).refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "by-role-total",
            _by_role_total,
            "It closes a role as soon as its bytes agree. A wrong shape, or the wrong device, has the same bytes.",
        ),
        Wrong(
            "by-total",
            _by_total,
            "It closes as soon as the totals agree. Two missing bf16 tensors and one fp32 tensor too many have the same bytes.",
        ),
        Wrong(
            "as-sets",
            lambda expected, observed: _diff(
                tuple(sorted(set(expected) - set(observed))), tuple(sorted(set(observed) - set(expected)))
            ),
            "A set forgets how often. A tensor that is there twice takes its bytes twice.",
        ),
        Wrong(
            "missing-only",
            lambda expected, observed: _diff(_compare(expected, observed)["missing"]),
            "Nothing is ever unexpected. What is seen and not declared takes memory all the same.",
        ),
        Wrong(
            "place-ignored",
            lambda expected, observed: _compare(expected, observed, lambda row: row.replace(device="any")),
            "The device is not compared. A moment on the host does not fill the accelerator's memory.",
        ),
    ),
    shapes={
        "expected": ((W_A, W_B), (W_A, G_A, G_B), (W_A, G_A, M_A, V_A), (W_A, W_A, M_A, M_B)),
        "observed": ((W_A,), (W_A, M_A), (W_A, G_A, M_A_HOST), (W_A_TURNED, W_B, W_B), (M_A_HOST, M_B, V_A)),
    },
)


def _named_by_a_coefficient(fault):
    from costlib import state

    declared, seen = (state.state_objects(p, tensor_rows(TOY), "step") for p in (AUTOCAST if fault else MASTER, MASTER))
    open_rows = state.reconcile(declared, seen)
    total = sum(row.bytes for row in seen)
    return (
        f"both policies have 16 bytes per scalar, {total:,} B in all; {len(open_rows['missing'])} objects are missing "
        f"and {len(open_rows['unexpected'])} not declared, the first: {open_rows['unexpected'][0].name}"
        if open_rows["missing"] or open_rows["unexpected"]
        else ""
    )


def _driver_memory(fault):
    from costlib import state

    live = [state.resident(MASTERLESS, P, P, point).total for point in POINTS]
    reserved = max(live)  # an allocator that caches keeps what it ever took
    claimed = live[-1] if fault else reserved
    return f"claimed {claimed:,} B after zero_grad; the process still holds {reserved:,} B" * (claimed != reserved)


FAILURES = (
    Failure(
        "mixed precision taken for 16 bytes per parameter",
        "a policy is its rows: equal coefficients can hide other objects",
        check=_named_by_a_coefficient,
    ),
    Failure(
        "autocast counted as a second, 16-bit model",
        "the dtype of an operation is no tensor in memory",
        wrong=("ledger", "autocast-copy"),
    ),
    Failure(
        "fp32 moments inferred from bf16 weights",
        "every slot's dtype is declared by its row, and then looked at",
        wrong=("ledger", "fp32-slots"),
    ),
    Failure(
        "Adam expected to have its moments before the first step",
        "state is compared at a named point; moments come with the first step",
        wrong=("alive", "moments-from-the-start"),
    ),
    Failure(
        "every parameter taken to be trained",
        "loaded and trained scalars are two numbers",
        wrong=("ledger", "all-trained"),
    ),
    Failure(
        "frozen weights left out",
        "what is loaded takes memory, trained or not",
        wrong=("ledger", "frozen-left-out"),
    ),
    Failure(
        "gradients set to None read as memory given back",
        "live tensors and the allocator's reserve are two ledgers",
        check=_driver_memory,
    ),
    Failure(
        "Adafactor treated as Adam in another dtype",
        "a factored slot has another shape: r + c, not r * c",
        wrong=("adafactor_state", "same-shape"),
    ),
    Failure(
        "8-bit Adam charged with two bytes per parameter",
        "scales and fp32 exceptions have rows",
        wrong=("eight_bit_adam", "codes-only"),
    ),
    Failure(
        "state divided by the world size",
        "the whole model's state first; ownership divides it later, row by row",
        wrong=("ledger", "per-rank"),
    ),
    Failure(
        "a checkpoint sized as the device's memory",
        "what is saved and what is resident are two lists of rows",
        wrong=("checkpoint", "what-the-device-holds"),
    ),
)

LAB = Lab(
    "04",
    "Training state",
    "state",
    (weights, spacing, update, slots, whole, lifecycle, present, adafactor, eight, saved, meeting),
    FAILURES,
)
