"""Lab 05: what backward needs, how long it lives, and the peak, after M 0x04."""

import random
from fractions import Fraction
from math import prod

from costlib.domain import require
from costlib.fixtures import (
    CLASSIC,
    DECODE_32K,
    LIVE_TINY,
    LIVE_TOY,
    ODD,
    RUNNING,
    TOY,
    TRAIN_4K,
    TRAIN_ODD,
    W_70B,
)
from costlib.policies import BITS, Candidate, LiveObject
from costlib.records import Workload
from labs.spec import Exercise, Failure, Lab, Wrong, given

RUN, ODD_RUN, GPT3 = (1, 4096, 4096, 32, 32), (5, 56, 96, 6, 3), (1, 2048, 12288, 96, 96)
W_RUN, SMALL = (8, 8192, 8192, 64, 80), (2, 3, 4, 2, 7)
BLOCKS = {
    ("b", "s", "h", "a"): ((1, 4096, 4096, 32), (5, 56, 96, 6), (3, 1000, 2560, 20), (2, 777, 1152, 9), (7, 31, 40, 5)),
}
STACKS = {**BLOCKS, "layers": (1, 3, 12, 80), "policy": ("none", "selective", "boundary", "offload")}
FOUR = Workload(workload_id="four", phase="prefill", batch_size=1, new_rows=4, visible_rows=4, logits="all")
CHUNK = Workload(workload_id="chunk", phase="prefill-chunk", batch_size=3, new_rows=7, visible_rows=29, logits="final")

tensor = Exercise(
    "tensor_bytes",
    points=1,
    minutes=4,
    lines=1,
    hints=(
        "How many scalars has a tensor of that shape? math.prod gives the product, 1 for an empty shape.",
        "BITS[dtype] is in bits. costlib.units.ceil_div rounds up in integers.",
        "ceil_div(prod(shape) * BITS[dtype], 8).",
    ),
    cases=(
        given((1, 32, 4096, 4096), "bf16").gives(1_073_741_824),
        given((1, 32, 4096, 4096), "int8").gives(536_870_912),
        given((4, 4096, 32000), "fp32").gives(2_097_152_000),
        given((2, 512, 32000), "fp32").gives(131_072_000),
        given((5, 6, 56, 56), "bf16").gives(188_160),
        given((3, 5), "int4").gives(8),
        given((7,), "int4").gives(4),
        given((), "bf16").gives(2),
        given((3, 0), "bf16").refuses("NONPOS"),
        given((3, 5), "fp64").refuses("ENUM"),
    ),
    wrong=(
        Wrong(
            "last-axis-forgotten",
            lambda shape, dtype: -(-prod(shape[:-1]) * BITS[dtype] // 8),
            "The last extent is missing. A logits tensor has one value per row and vocabulary entry: [b, s, V].",
        ),
        Wrong(
            "batch-forgotten",
            lambda shape, dtype: -(-prod(shape[1:]) * BITS[dtype] // 8),
            "The first extent is missing: every sequence of the batch has its own.",
        ),
        Wrong("bits", lambda shape, dtype: prod(shape) * BITS[dtype], "Eight times too much: BITS counts bits."),
        Wrong("scalars", lambda shape, dtype: prod(shape), "These are scalars. Each takes BITS[dtype] bits."),
        Wrong(
            "rounded-down",
            lambda shape, dtype: prod(shape) * BITS[dtype] // 8,
            "Half a byte is lost. An odd number of 4-bit scalars still needs its last byte: round up.",
        ),
    ),
    shapes={
        "shape": ((1, 32, 512, 512), (5, 6, 56, 56), (3, 5, 7), (11,), (2, 9, 1009)),
        "dtype": ("fp32", "bf16", "fp8", "int8", "int4"),
    },
)

scores = Exercise(
    "score_elements",
    points=2,
    minutes=5,
    lines=1,
    hints=(
        "A score joins one query row with one key row, in one head of one sequence.",
        "Every query head has its own scores, also where several share a key head. New rows ask, visible rows answer.",
        "batch_size * num_attention_heads * new_rows * visible_rows.",
    ),
    cases=(
        given(RUNNING, TRAIN_4K).gives(536_870_912),
        given(ODD, TRAIN_ODD).gives(94_080),
        given(RUNNING, DECODE_32K).gives(1_048_576),
        given(TOY, FOUR).gives(64),
        given(ODD, CHUNK).gives(3_654),
        given(W_70B, TRAIN_ODD).gives(1_003_520),
        given(CLASSIC, CHUNK).gives(7_308),
    ),
    wrong=(
        Wrong(
            "kv-heads",
            lambda arch, workload: workload.batch_size
            * arch.num_key_value_heads
            * workload.new_rows
            * workload.visible_rows,
            "You counted K/V heads. Sharing a key head saves keys, not scores: every query head has its own row of them.",
        ),
        Wrong(
            "queries-squared",
            lambda arch, workload: workload.batch_size * arch.num_attention_heads * workload.new_rows**2,
            "Query rows by query rows. The other axis is the keys: visible_rows, which a cache makes longer.",
        ),
        Wrong(
            "keys-squared",
            lambda arch, workload: workload.batch_size * arch.num_attention_heads * workload.visible_rows**2,
            "Key rows by key rows. Only new rows have queries; the visible ones before them were asked earlier.",
        ),
        Wrong(
            "one-head",
            lambda arch, workload: workload.batch_size * workload.new_rows * workload.visible_rows,
            "Right for one head. Multiply by the query heads.",
        ),
        Wrong(
            "causal-half",
            lambda arch, workload: workload.batch_size
            * arch.num_attention_heads
            * (
                workload.new_rows * (workload.visible_rows - workload.new_rows)
                + workload.new_rows * (workload.new_rows + 1) // 2
            ),
            "You left out what the mask forbids. The tensor is stored as a rectangle, masked entries and all.",
        ),
    ),
    shapes={"arch": (RUNNING, ODD, TOY, CLASSIC, W_70B), "workload": (TRAIN_4K, DECODE_32K, TRAIN_ODD, FOUR, CHUNK)},
)

ROWS = (
    "attention.input",
    "attention.query_key",
    "attention.scores.softmax",
    "attention.scores.mask",
    "attention.scores.dropped",
    "attention.value",
    "attention.context",
    "attention.mask",
    "mlp.input",
    "mlp.gelu",
    "mlp.hidden",
    "mlp.mask",
    "norms.first",
    "norms.second",
)


def _rows(*values):
    return dict(zip(ROWS, values, strict=True))


def _saved(b, s, h, a, wide=None, square=None):
    """The paper's rows; with `wide` or `square`, from another count of scalars."""
    w = b * s * h if wide is None else wide
    q = b * a * s * s if square is None else square
    return _rows(2 * w, 4 * w, 2 * q, q, 2 * q, 2 * w, 2 * w, w, 2 * w, 8 * w, 8 * w, w, 2 * w, 2 * w)


def _each(change):
    """The paper's rows with `change(name, bytes)` on each."""
    return lambda b, s, h, a: {name: change(name, size) for name, size in _saved(b, s, h, a).items()}


layer = Exercise(
    "korthikanti",
    points=4,
    minutes=20,
    lines=5,
    hints=(
        "Two sizes suffice: wide = b * s * h and square = b * a * s * s. Every row is a small multiple of one of them.",
        "For each operation ask what its backward formula contains. A matrix product asks for its inputs, softmax for its output, dropout for its mask.",
        "In multiples of wide: 2, 4, then three of square: 2, 1, 2, then wide again: 2, 2, 1; MLP 2, 8, 8, 1; norms 2, 2. dict(zip(SAVED_FOR, values)).",
    ),
    cases=(
        given(1, 4096, 4096, 32).gives(
            _rows(
                33_554_432, 67_108_864, 1_073_741_824, 536_870_912, 1_073_741_824, 33_554_432, 33_554_432,
                16_777_216, 33_554_432, 134_217_728, 134_217_728, 16_777_216, 33_554_432, 33_554_432,
            )  # fmt: skip
        ),
        given(5, 56, 96, 6).gives(
            _rows(
                53_760, 107_520, 188_160, 94_080, 188_160, 53_760, 53_760,
                26_880, 53_760, 215_040, 215_040, 26_880, 53_760, 53_760,
            )  # fmt: skip
        ),
        given(1, 2, 3, 1).gives(_rows(12, 24, 8, 4, 8, 12, 12, 6, 12, 48, 48, 6, 12, 12)),
        given(2, 3, 4, 2).gives(_rows(48, 96, 72, 36, 72, 48, 48, 24, 48, 192, 192, 24, 48, 48)),
        given(1, 1, 1, 1).gives(_rows(2, 4, 2, 1, 2, 2, 2, 1, 2, 8, 8, 1, 2, 2)),
        given(1, 0, 4, 2).refuses("NONPOS"),
        given(1, 4096.0, 4096, 32).refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "every-output",
            _each(lambda name, size: size * (2 if name == "attention.scores.softmax" else 1)),
            "You kept the raw scores beside the probabilities. Softmax backward is written with its output alone; being computed in forward is no reason to be kept.",
        ),
        Wrong(
            "quadratic-forgotten",
            lambda b, s, h, a: _saved(b, s, h, a, square=0),
            "The score-shaped rows are 0. Softmax output, dropout mask and dropped output are [b, a, s, s].",
        ),
        Wrong(
            "one-head",
            lambda b, s, h, a: _saved(b, s, h, a, square=b * s * s),
            "The score-shaped rows are those of one head. There is one s by s square per head.",
        ),
        Wrong(
            "one-sequence",
            lambda b, s, h, a: _saved(1, s, h, a),
            "Right for one sequence. Multiply by b.",
        ),
        Wrong(
            "two-byte-masks",
            _each(lambda name, size: size * (2 if name.endswith("mask") else 1)),
            "The masks have 2 bytes an entry. They hold keep or drop; the paper counts 1 byte.",
        ),
        Wrong(
            "no-masks",
            _each(lambda name, size: 0 if name.endswith("mask") else size),
            "The dropout masks are missing. Backward must zero the very entries that forward zeroed.",
        ),
        Wrong(
            "bytes-again",
            _each(lambda name, size: 4 * size),
            "Four times too much. The coefficients 34 and 5 are bytes already: do not multiply by a dtype again.",
        ),
    ),
    shapes=BLOCKS,
)

cross = Exercise(
    "crossover",
    points=1,
    minutes=6,
    lines=1,
    hints=(
        "Add up your rows: 5bas^2 under attention.scores, 34bsh elsewhere.",
        "5 * a * s / h = 34. Solve for s, and keep it exact.",
        "Fraction(34 * h, 5 * a).",
    ),
    cases=(
        given(4096, 32).gives(Fraction(4352, 5)),
        given(96, 6).gives(Fraction(544, 5)),
        given(20480, 128).gives(Fraction(1088)),
        given(100, 3).gives(Fraction(680, 3)),
        given(768, 12).gives(Fraction(2176, 5)),
        given(4096, 0).refuses("NONPOS"),
        given(4096.0, 32).refuses("TYPE"),
    ),
    wrong=(
        Wrong("rounded", lambda h, a: 34 * h // (5 * a), "You rounded. The crossing lies between two tokens; return a Fraction."),
        Wrong(
            "attention-only",
            lambda h, a: Fraction(11 * h, 5 * a),
            "This compares with attention's own 11. Asked for are all other rows of the layer: 34.",
        ),
        Wrong("no-norms", lambda h, a: Fraction(30 * h, 5 * a), "The two norm inputs, 4bsh, are left out."),
        Wrong(
            "probabilities-only",
            lambda h, a: Fraction(34 * h, 2 * a),
            "Only the softmax output is weighed. The mask and the dropped output are score-shaped too: 2 + 1 + 2.",
        ),
        Wrong("upside-down", lambda h, a: Fraction(5 * a, 34 * h), "Upside down: wider layers cross later, more heads earlier."),
    ),
    shapes={"h": (96, 768, 4096, 12288, 5000), "a": (1, 3, 7, 32, 96)},
)


def _layer(b, s, h, a):
    """(linear, quadratic, boundary) bytes of one layer."""
    return 34 * b * s * h, 5 * b * a * s * s, 2 * b * s * h


def _retained(b, s, h, a, layers, policy):
    linear, square, edge = _layer(b, s, h, a)
    return layers * {"none": linear + square, "selective": linear, "boundary": edge, "offload": 0}[policy]


def _region(b, s, h, a, policy):
    linear, square, _ = _layer(b, s, h, a)
    return {"none": 0, "selective": square}.get(policy, linear + square)


def _swap(function, **other):
    """`function` with some policies answered as others."""
    return lambda b, s, h, a, layers, policy: function(b, s, h, a, layers, other.get(policy, policy))


def _sixteen(b, s, h, a, layers, policy):
    raw = 16 * 2 * b * s * h * layers
    return {"none": raw, "selective": raw * 3 // 10, "boundary": raw // 16, "offload": 0}[policy]


def _discount(b, s, h, a, layers, policy):
    if policy == "selective":
        return _retained(b, s, h, a, layers, "none") * 3 // 10
    return _retained(b, s, h, a, layers, policy)


kept = Exercise(
    "retained",
    points=3,
    minutes=12,
    lines=8,
    hints=(
        "Call korthikanti once; a policy says which of its rows stay.",
        'layer.total, layer.total - layer["attention.scores"], 2 * b * s * h, 0: times layers.',
    ),
    cases=(
        given(*RUN, "none").gives(104_152_956_928),
        given(*RUN, "selective").gives(18_253_611_008),
        given(*RUN, "boundary").gives(1_073_741_824),
        given(*RUN, "offload").gives(0),
        given(*ODD_RUN, "none").gives(4_152_960),
        given(*ODD_RUN, "selective").gives(2_741_760),
        given(*ODD_RUN, "boundary").gives(161_280),
        given(*W_RUN, "none").gives(15_204_184_227_840),
        given(*W_RUN, "selective").gives(1_460_288_880_640),
        given(*W_RUN, "boundary").gives(85_899_345_920),
        given(*GPT3, "selective").gives(82_141_249_536),
        given(*SMALL, "offload").gives(0),
        given(*RUN, "full").refuses("ENUM"),
        given(1, 4096, 4096, 32, 0, "none").refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "c-is-16",
            _sixteen,
            "A fixed c = 16, and 30 % of it for selective. That c holds no score-shaped state, so the discount removes what was never there; add up the rows instead.",
        ),
        Wrong(
            "thirty-percent",
            _discount,
            "30 % of the whole is what one published model keeps under this policy. The share depends on s, h and a: subtract the score-shaped rows.",
        ),
        Wrong(
            "selective-as-boundary",
            _swap(_retained, selective="boundary"),
            "Selective is answered as full checkpointing. It drops only the score-shaped rows; all others stay.",
        ),
        Wrong(
            "quadratic-forgotten",
            _swap(_retained, none="selective"),
            "Without recomputation the score-shaped rows stay too: 5bas^2 a layer.",
        ),
        Wrong(
            "offload-on-the-device",
            _swap(_retained, offload="none"),
            "Offloaded bytes are on the host. Asked for is what stays on the device.",
        ),
        Wrong(
            "one-layer",
            lambda b, s, h, a, layers, policy: _retained(b, s, h, a, 1, policy),
            "Right for one layer. At the turn from forward to backward every layer's are there: multiply.",
        ),
        Wrong(
            "peak-for-retained",
            lambda b, s, h, a, layers, policy: _retained(b, s, h, a, layers, policy) + _region(b, s, h, a, policy),
            "This is the peak, with the rebuilt region in it. Asked for is what stays between the passes.",
        ),
    ),
    shapes=STACKS,
)

top = Exercise(
    "peak",
    points=3,
    minutes=12,
    lines=4,
    hints=(
        "What was thrown away must be there once more while its own backward runs. How much at a time?",
        "One layer's, never all layers': the layer behind it is done, the one before it has not begun.",
        'retained(...) plus 0, layer["attention.scores"], layer.total or layer.total.',
    ),
    cases=(
        given(*RUN, "none").gives(104_152_956_928),
        given(*RUN, "selective").gives(20_937_965_568),
        given(*RUN, "boundary").gives(4_328_521_728),
        given(*RUN, "offload").gives(3_254_779_904),
        given(*ODD_RUN, "none").gives(4_152_960),
        given(*ODD_RUN, "selective").gives(3_212_160),
        given(*ODD_RUN, "boundary").gives(1_545_600),
        given(*ODD_RUN, "offload").gives(1_384_320),
        given(*GPT3, "selective").gives(84_154_515_456),
        given(*GPT3, "boundary").gives(7_700_742_144),
        given(*RUN, "Selective").refuses("ENUM"),
        given(1, 4096, -4096, 32, 32, "none").refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "fetched-for-nothing",
            lambda b, s, h, a, layers, policy: _retained(b, s, h, a, layers, policy)
            + (0 if policy == "offload" else _region(b, s, h, a, policy)),
            "Offloaded rows come back before they are used: one layer of them is on the device again.",
        ),
        Wrong(
            "retained-for-peak",
            _retained,
            "This is what stays between the passes. While a region is rebuilt for its backward, it is there too.",
        ),
        Wrong(
            "every-region",
            lambda b, s, h, a, layers, policy: _retained(b, s, h, a, layers, policy)
            + layers * _region(b, s, h, a, policy),
            "All regions at once. Each is released when its layer's backward is done, before the next is rebuilt.",
        ),
        Wrong(
            "region-only",
            lambda b, s, h, a, layers, policy: _region(b, s, h, a, policy) or _retained(b, s, h, a, layers, policy),
            "Only the rebuilt region. Everything retained is there at the same instant: add.",
        ),
        Wrong(
            "whole-layer-rebuilt",
            lambda b, s, h, a, layers, policy: _retained(b, s, h, a, layers, policy)
            + (0 if policy == "none" else _region(b, s, h, a, "boundary")),
            "Selective rebuilds the score-shaped rows only; the layer's others were never dropped.",
        ),
    ),
    shapes=STACKS,
)


def _c(b, s, h, a, layers, policy):
    return Fraction(_retained(b, s, h, a, layers, policy), 2 * b * s * h * layers)


coefficient = Exercise(
    "coefficient_c",
    points=2,
    minutes=6,
    lines=1,
    hints=(
        "Set the retained bytes equal to B * T * d * L * c * 2 and solve for c.",
        "Fraction(retained(...), 2 * b * s * h * layers).",
    ),
    cases=(
        given(*W_RUN, "none").gives(Fraction(177)),
        given(*W_RUN, "selective").gives(Fraction(17)),
        given(*W_RUN, "boundary").gives(Fraction(1)),
        given(*RUN, "none").gives(Fraction(97)),
        given(*RUN, "selective").gives(Fraction(17)),
        given(*GPT3, "none").gives(Fraction(57)),
        given(*ODD_RUN, "none").gives(Fraction(103, 4)),
        given(*ODD_RUN, "offload").gives(Fraction(0)),
        given(*RUN, "full").refuses("ENUM"),
    ),
    wrong=(
        Wrong(
            "c-is-16",
            lambda b, s, h, a, layers, policy: {
                "none": Fraction(16),
                "selective": Fraction(24, 5),
                "boundary": Fraction(1),
                "offload": Fraction(0),
            }[policy],
            "A number remembered. c follows from the objects that are kept, and grows with s: compute it.",
        ),
        Wrong(
            "bytes",
            lambda b, s, h, a, layers, policy: 2 * _c(b, s, h, a, layers, policy),
            "These are bytes an entry. c counts 2-byte scalars: half of that.",
        ),
        Wrong(
            "whole-stack",
            lambda b, s, h, a, layers, policy: layers * _c(b, s, h, a, layers, policy),
            "Right for the stack. c is per layer.",
        ),
        Wrong(
            "linear-only",
            _swap(_c, none="selective"),
            "17 is what the linear rows make. Without recomputation 5as/2h comes on top.",
        ),
        Wrong(
            "thirty-percent",
            lambda b, s, h, a, layers, policy: Fraction(3, 10) * _c(b, s, h, a, layers, "none")
            if policy == "selective"
            else _c(b, s, h, a, layers, policy),
            "30 % is one model's ratio, 34 of 114. What selective keeps is 34 bytes an entry, at any length.",
        ),
    ),
    shapes=STACKS,
)


def _cost(flops, draws, transfer, host):
    return {"flops": flops, "draws": draws, "transfer": transfer, "host": host}


def _added(b, s, h, a, layers, policy):
    linear, square, _ = _layer(b, s, h, a)
    moved = linear + square if policy == "offload" else 0
    flops = {"selective": 4 * b * s * s * h, "boundary": 4 * b * s * s * h + 24 * b * s * h * h}.get(policy, 0)
    draws = {"selective": b * a * s * s, "boundary": b * a * s * s + 2 * b * s * h}.get(policy, 0)
    return _cost(layers * flops, layers * draws, 2 * layers * moved, layers * moved)


def _times(name, numerator, denominator=1):
    def model(b, s, h, a, layers, policy):
        right = _added(b, s, h, a, layers, policy)
        return {**right, name: right[name] * numerator // denominator}

    return model


added = Exercise(
    "added_cost",
    points=3,
    minutes=15,
    lines=11,
    hints=(
        "Four policies, four keys; most of the sixteen answers are 0.",
        "draws are the entries of the masks in the region: a mask row has 1 byte an entry, so its bytes are its entries.",
        "boundary: 24 * b * s * h**2 + 4 * b * s**2 * h FLOPs and three masks; offload: the layer's bytes once on the host, twice over the link. All times layers.",
    ),
    cases=(
        given(*RUN, "none").gives(_cost(0, 0, 0, 0)),
        given(*RUN, "selective").gives(_cost(8_796_093_022_208, 17_179_869_184, 0, 0)),
        given(*RUN, "boundary").gives(_cost(61_572_651_155_456, 18_253_611_008, 0, 0)),
        given(*RUN, "offload").gives(_cost(0, 0, 208_305_913_856, 104_152_956_928)),
        given(*ODD_RUN, "selective").gives(_cost(18_063_360, 282_240, 0, 0)),
        given(*ODD_RUN, "boundary").gives(_cost(203_857_920, 443_520, 0, 0)),
        given(*ODD_RUN, "offload").gives(_cost(0, 0, 8_305_920, 4_152_960)),
        given(*SMALL, "selective").gives(_cost(2_016, 252, 0, 0)),
        given(*SMALL, "boundary").gives(_cost(18_144, 588, 0, 0)),
        given(*RUN, "offloaded").refuses("ENUM"),
    ),
    wrong=(
        Wrong(
            "for-free",
            lambda b, s, h, a, layers, policy: _cost(0, 0, 0, 0),
            "All zero. No policy is free: what is not kept is computed again or carried.",
        ),
        Wrong(
            "selective-as-full",
            _swap(_added, selective="boundary"),
            "Selective is charged for the whole layer. It reruns QK^T, softmax, dropout and value mix, no projection and no MLP.",
        ),
        Wrong(
            "three-replays",
            _times("flops", 3),
            "Three times the FLOPs: forward and two gradients. The gradients are computed under every policy; only the forward part runs once more.",
        ),
        Wrong("mac", _times("flops", 1, 2), "Half the FLOPs: you counted multiply-accumulates. One is 2 FLOPs."),
        Wrong(
            "one-way",
            _times("transfer", 1, 2),
            "One way only. What goes out must come back before its backward.",
        ),
        Wrong(
            "no-random-state",
            _times("draws", 0),
            "Rerunning dropout draws again. Unless the same entries are dropped, the gradients are those of another forward pass.",
        ),
    ),
    shapes=STACKS,
)


def _object(name, size, birth, death, storage=None, role="temporary", placement="device"):
    needed = "its layer's backward" if role == "saved" else ""
    return LiveObject(
        name=name,
        bytes=size,
        birth=birth,
        death=death,
        storage=storage or name,
        role=role,
        placement=placement,
        needed_by=needed,
    )


VIEWS = (
    _object("x", 100, 0, 6, role="saved"),
    _object("x.view", 100, 2, 9, "x", role="saved"),
    _object("twin", 40, 1, 2),
    _object("y", 70, 3, 5),
    _object("y.T", 70, 4, 8, "y"),
    _object("z", 40, 5, 7),
    _object("copy", 500, 0, 9, role="saved", placement="host"),
)
STEP = (
    _object("state", 50, 0, 20, role="persistent"),
    _object("a", 30, 0, 12, role="saved"),
    _object("b", 20, 2, 10, role="saved"),
    _object("t1", 25, 1, 2),
    _object("t2", 15, 3, 4),
    _object("w1", 8, 3, 4, role="workspace"),
    _object("w2", 12, 6, 7, role="workspace"),
    _object("g", 20, 10, 14, role="gradient"),
    _object("bucket", 9, 12, 13, role="communication"),
)
PAIR = (_object("first", 7, 0, 1), _object("second", 7, 1, 2))
HOSTED = (*PAIR, _object("parked", 90, 0, 2, role="saved", placement="host"))
CLASH = (_object("x", 100, 0, 6), _object("x.head", 60, 2, 9, "x"))
LIVES = (LIVE_TOY, LIVE_TINY, VIEWS, STEP, PAIR, HOSTED)


def _groups(objects, host=False):
    groups = {}
    for item in objects:
        if host or item.placement == "device":
            groups.setdefault(item.storage, []).append(item)
    return groups


def _total(objects):
    return sum(group[0].bytes for group in _groups(objects).values())


unique = Exercise(
    "unique_bytes",
    points=2,
    minutes=5,
    lines=1,
    hints=(
        "by_storage(objects) has one entry per storage; all names in it have the same bytes.",
        "sum(group[0].bytes for group in by_storage(objects).values()).",
    ),
    cases=(
        given(VIEWS).gives(250),
        given(LIVE_TINY).gives(640),
        given(LIVE_TOY).gives(40_802_189_312),
        given(STEP).gives(189),
        given(PAIR).gives(14),
        given(HOSTED).gives(14),
        given((*VIEWS, *PAIR)).gives(264),
        given(()).gives(0),
        given(CLASH).refuses("INCONSISTENT"),
    ),
    wrong=(
        Wrong(
            "names-summed",
            lambda objects: sum(item.bytes for item in objects if item.placement == "device"),
            "You summed names. A view has a name of its own and no bytes of its own: one storage counts once.",
        ),
        Wrong(
            "equal-sizes-merged",
            lambda objects: sum({item.bytes for item in objects if item.placement == "device"}),
            "You merged what is equally large. Sharing is one storage under two names, not two storages of one size.",
        ),
        Wrong(
            "largest-only",
            lambda objects: max((item.bytes for item in objects if item.placement == "device"), default=0),
            "Only the largest storage. Asked for are all of them.",
        ),
        Wrong(
            "host-too",
            lambda objects: sum(group[0].bytes for group in _groups(objects, host=True).values()),
            "What lies on the host is in. Asked for are the device's storages; by_storage leaves the host out.",
        ),
    ),
    shapes={"objects": LIVES},
)


def _at(objects, instant, live, host=False):
    rows = dict.fromkeys(ROLES, 0)
    for group in _groups(objects, host).values():
        rows[group[0].role] += group[0].bytes * any(live(item, instant) for item in group)
    return rows


def _alone(objects):
    """The same device objects, each with a storage of its own."""
    return [item.replace(storage=f"{i}") for i, item in enumerate(objects) if item.placement == "device"]


def _live(item, t):
    return item.birth <= t < item.death


def _closed(item, t):
    return item.birth <= t <= item.death


def _rule(same_instant):
    return _closed if same_instant == "birth-first" else _live


ROLES = ("persistent", "saved", "boundary", "temporary", "gradient", "workspace", "communication")


def _roles(persistent=0, saved=0, temporary=0, gradient=0, workspace=0, communication=0):
    return dict(zip(ROLES, (persistent, saved, 0, temporary, gradient, workspace, communication), strict=True))


now = Exercise(
    "live_at",
    points=3,
    minutes=12,
    lines=5,
    hints=(
        "Start with dict.fromkeys(ROLES, 0) and go over by_storage(objects).values(): each is the list of one storage's names.",
        'A storage is live if any of its names is. Under "birth-first", death == instant still counts.',
        "if any(o.birth <= instant < o.death + still for o in group): add group[0].bytes to the row group[0].role; still is 1 under birth-first, else 0.",
    ),
    cases=(
        given(LIVE_TOY, 15).gives(
            _roles(persistent=21_474_836_480, saved=4_294_967_296, temporary=5_368_709_120, workspace=3_221_225_472)
        ),
        given(LIVE_TOY, 20).gives(_roles(persistent=21_474_836_480, saved=4_294_967_296, gradient=6_442_450_944)),
        given(LIVE_TOY, 20, "birth-first").gives(
            _roles(persistent=21_474_836_480, saved=4_294_967_296, temporary=5_368_709_120, gradient=6_442_450_944)
        ),
        given(LIVE_TINY, 2).gives(_roles(temporary=320, workspace=128)),
        given(LIVE_TINY, 3).gives(_roles(temporary=448)),
        given(LIVE_TINY, 3, "birth-first").gives(_roles(temporary=448, workspace=128)),
        given(VIEWS, 4).gives(_roles(saved=100, temporary=70)),
        given(VIEWS, 5).gives(_roles(saved=100, temporary=110)),
        given(VIEWS, 6).gives(_roles(saved=100, temporary=110)),
        given(VIEWS, 8).gives(_roles(saved=100)),
        given(VIEWS, 9, same_instant="birth-first").gives(_roles(saved=100)),
        given(VIEWS, 90).gives(_roles()),
        given(STEP, 12).gives(_roles(persistent=50, gradient=20, communication=9)),
        given(STEP, 12, "birth-first").gives(_roles(persistent=50, saved=30, gradient=20, communication=9)),
        given(VIEWS, -1).refuses("NEG"),
        given(VIEWS, 1, "sorted").refuses("ENUM"),
        given(CLASH, 1).refuses("INCONSISTENT"),
    ),
    wrong=(
        Wrong(
            "closed-interval",
            lambda objects, instant, same_instant="release-first": _at(objects, instant, _closed),
            "What dies at this instant is still counted. An interval is half open: from birth up to, not including, death.",
        ),
        Wrong(
            "order-ignored",
            lambda objects, instant, same_instant="release-first": _at(objects, instant, _live),
            'same_instant changes nothing in your answer. Under "birth-first" what dies now has not been released yet.',
        ),
        Wrong(
            "never-released",
            lambda objects, instant, same_instant="release-first": _at(
                objects, instant, lambda item, t: item.birth <= t
            ),
            "Everything born so far is counted. What has died is gone.",
        ),
        Wrong(
            "first-name-only",
            lambda objects, instant, same_instant="release-first": _at(
                [group[0] for group in _groups(objects).values()], instant, _rule(same_instant)
            ),
            "You looked at the first name only. A storage lives as long as any of its names.",
        ),
        Wrong(
            "names-for-storages",
            lambda objects, instant, same_instant="release-first": _at(_alone(objects), instant, _rule(same_instant)),
            "Two names of one storage are counted twice while both live: use by_storage.",
        ),
        Wrong(
            "host-too",
            lambda objects, instant, same_instant="release-first": _at(
                objects, instant, _rule(same_instant), host=True
            ),
            "What lies on the host is in. Asked for is the device; by_storage leaves the host out.",
        ),
    ),
    shapes={"objects": LIVES, "instant": tuple(range(11)), "same_instant": ("release-first", "birth-first")},
)


def _cut(objects, same_instant="release-first", live=None, last=False):
    """(bytes, instant) of the peak, by the rule given or the right one."""
    require(bool(objects), "MISSING", "no objects")
    live = live or _rule(same_instant)
    births = sorted({item.birth for item in objects}, reverse=last)
    return max(((sum(_at(objects, t, live).values()), t) for t in births), key=lambda cut: cut[0])


def _role_maxima(objects, same_instant="release-first"):
    roles = {item.role for item in objects}
    _cut(objects)
    each = [_cut([item for item in objects if item.role == role], same_instant)[0] for role in roles]
    return sum(each), _cut(objects, same_instant)[1]


def _state_twice(objects, same_instant="release-first"):
    size, instant = _cut(objects, same_instant)
    return size + sum(item.bytes for item in objects if item.role == "persistent"), instant


def _sum_of_all(objects, same_instant="release-first"):
    _cut(objects)
    return _total(objects), max(item.birth for item in objects)


def _largest(objects, same_instant="release-first"):
    _cut(objects)
    biggest = max((item for item in objects if item.placement == "device"), key=lambda item: item.bytes)
    return biggest.bytes, biggest.birth


cut = Exercise(
    "peak_cut",
    points=4,
    minutes=15,
    lines=4,
    hints=(
        "live_at(objects, t, same_instant).total is the sum at t. At which t can it be largest?",
        "At a birth: between two births objects only die. Go through the birth instants in order.",
        "max(pairs, key=lambda cut: cut[0]) keeps the first of equal ones if the pairs are sorted by instant. Refuse an empty tuple first.",
    ),
    cases=(
        given(LIVE_TOY).gives((34_359_738_368, 15)),
        given(LIVE_TOY, "birth-first").gives((37_580_963_840, 20)),
        given(LIVE_TOY[1:]).gives((12_884_901_888, 15)),
        given(LIVE_TOY[1:], "birth-first").gives((16_106_127_360, 20)),
        given(LIVE_TINY).gives((448, 2)),
        given(LIVE_TINY, same_instant="birth-first").gives((576, 3)),
        given(VIEWS).gives((210, 5)),
        given((*VIEWS, *PAIR)).gives((210, 5)),
        given(STEP).gives((123, 3)),
        given(STEP, "birth-first").gives((125, 2)),
        given(PAIR).gives((7, 0)),
        given(HOSTED, "birth-first").gives((14, 1)),
        given(()).refuses("MISSING"),
        given(CLASH).refuses("INCONSISTENT"),
        given(STEP, "stream-order").refuses("ENUM"),
    ),
    wrong=(
        Wrong(
            "sum-of-all",
            _sum_of_all,
            "Everything that ever lived is summed. Objects that never coexist never need memory together.",
        ),
        Wrong(
            "category-maxima",
            _role_maxima,
            "You added the largest of every role. Those maxima lie at different instants: add first, then take the maximum.",
        ),
        Wrong(
            "state-twice",
            _state_twice,
            "The persistent bytes are added once more. They are objects like the others and are in every sum already.",
        ),
        Wrong(
            "names-for-storages",
            lambda objects, same_instant="release-first": _cut(_alone(objects), same_instant),
            "Two names of one storage are counted twice while both live.",
        ),
        Wrong(
            "closed-interval",
            lambda objects, same_instant="release-first": _cut(objects, live=_closed),
            'Births before releases, always. Under "release-first" what dies at an instant makes room for what is born there.',
        ),
        Wrong(
            "order-ignored",
            lambda objects, same_instant="release-first": _cut(objects, live=_live),
            'Releases before births, always. Under "birth-first" both are there for a moment.',
        ),
        Wrong(
            "last-of-equals",
            lambda objects, same_instant="release-first": _cut(objects, same_instant, last=True),
            "The same peak is reached more than once; asked for is the first instant.",
        ),
        Wrong(
            "largest-only",
            _largest,
            "This is the largest object. The peak is a sum over everything that is live with it.",
        ),
    ),
    shapes={"objects": LIVES, "same_instant": ("release-first", "birth-first")},
)


def _bridge(payload, undeclared, cached, outside):
    return {"payload": payload, "undeclared": undeclared, "cached": cached, "outside": outside}


bridge = Exercise(
    "memory_bridge",
    points=2,
    minutes=6,
    lines=7,
    hints=(
        "The four readings lie one inside the other. Each row is a reading minus the one before.",
        "require(allocated <= reserved <= device_used, 'INCONSISTENT', ...). The payload may exceed what is allocated: then undeclared is negative.",
    ),
    cases=(
        given(1000, 1200, 2000, 2600).gives(_bridge(1000, 200, 800, 600)),
        given(20_937_965_568, 21_474_836_480, 25_769_803_776, 27_000_000_000).gives(
            _bridge(20_937_965_568, 536_870_912, 4_294_967_296, 1_230_196_224)
        ),
        given(2_052_096, 2_352_215, 2_352_215, 2_352_215).gives(_bridge(2_052_096, 300_119, 0, 0)),
        given(340, 250, 256, 300).gives(_bridge(340, -90, 6, 44)),
        given(0, 7, 18, 50).gives(_bridge(0, 7, 11, 32)),
        given(10, 30, 20, 40).refuses("INCONSISTENT"),
        given(10, 20, 40, 30).refuses("INCONSISTENT"),
        given(10, 20, 30, -40).refuses("NEG"),
    ),
    wrong=(
        Wrong(
            "allocated-as-reserved",
            lambda payload, allocated, reserved, device_used: _bridge(
                payload, reserved - payload, 0, device_used - reserved
            ),
            "Reserved bytes are taken for allocated ones. What the allocator keeps for reuse holds no tensor: that is cached.",
        ),
        Wrong(
            "snapshot-as-device",
            lambda payload, allocated, reserved, device_used: _bridge(
                payload, allocated - payload, reserved - allocated, 0
            ),
            "Outside is 0. An allocator's snapshot ends at its own segments; the device holds more, of libraries for instance.",
        ),
        Wrong(
            "rest-to-activations",
            lambda payload, allocated, reserved, device_used: _bridge(device_used, 0, 0, 0),
            "Everything is called payload. What no declared object explains is a residual and keeps its own row.",
        ),
        Wrong(
            "readings",
            lambda payload, allocated, reserved, device_used: _bridge(payload, allocated, reserved, device_used),
            "These are the readings. Each contains the one before: subtract, so that the rows add up to device_used.",
        ),
    ),
    shapes={
        ("allocated", "reserved", "device_used"): ((300, 512, 700), (250, 256, 300), (97, 1024, 1031), (640, 640, 900)),
        "payload": (0, 90, 250, 295),
    },
)

MENU = tuple(
    Candidate(name=name, saved=saved, flops=flops)
    for name, saved, flops in (("a", 6, 10), ("b", 5, 7), ("c", 4, 6), ("d", 3, 1))
)
TIES = tuple(
    Candidate(name=name, saved=saved, flops=flops)
    for name, saved, flops in (("h", 2, 3), ("i", 2, 2), ("j", 4, 5), ("k", 4, 5), ("early", 0, 4))
)


def _chosen(regions, fixed, budget, names=None, status="chosen"):
    """The plan that recomputes those names, all by default."""
    picked = [r for r in regions if names is None or r.name in names]
    return {
        "status": status,
        "recompute": tuple(r.name for r in picked),
        "bytes": fixed + sum(r.saved for r in regions) - sum(r.saved for r in picked),
        "flops": sum(r.flops for r in picked),
    }


def _in_order(key):
    """Take regions by `key` until the peak fits: no search."""

    def model(regions, fixed, budget):
        total, names = fixed + sum(r.saved for r in regions), set()
        for region in sorted(regions, key=key):
            if total <= budget:
                break
            total -= region.saved
            names.add(region.name)
        return _chosen(regions, fixed, budget, names, "chosen" if total <= budget else "infeasible")

    return model


def _memory_only(regions, fixed, budget):
    return _chosen(regions, fixed, budget, status="chosen" if fixed <= budget else "infeasible")


def _unsaid(regions, fixed, budget):
    from solutions import activations

    return {**activations.choose_recompute(regions, fixed, budget), "status": "chosen"}


def _plan(status, recompute, size, flops):
    return {"status": status, "recompute": recompute, "bytes": size, "flops": flops}


choose = Exercise(
    "choose_recompute",
    points=4,
    minutes=20,
    lines=10,
    hints=(
        "Sixteen regions at most: try every subset. itertools.combinations(regions, n) for n = 0, 1, 2, ... meets the fewer before the more.",
        "Keep the subsets whose peak fits, then min by added FLOPs: min returns the first of equal ones, which settles both ties.",
        "min(fitting, key=..., default=regions): where nothing fits, recompute everything and say infeasible.",
    ),
    cases=(
        given(MENU, 2, 20).gives(_plan("chosen", (), 20, 0)),
        given(MENU, 2, 11).gives(_plan("chosen", ("a", "d"), 11, 11)),
        given(MENU, 2, 16).gives(_plan("chosen", ("c",), 16, 6)),
        given(MENU, 2, 10).gives(_plan("chosen", ("b", "c", "d"), 8, 14)),
        given(MENU, 2, 2).gives(_plan("chosen", ("a", "b", "c", "d"), 2, 24)),
        given(MENU, 2, 1).gives(_plan("infeasible", ("a", "b", "c", "d"), 2, 24)),
        given(TIES, 0, 8).gives(_plan("chosen", ("j",), 8, 5)),
        given(TIES, 5, 4).gives(_plan("infeasible", ("h", "i", "j", "k", "early"), 5, 19)),
        given(TIES, 5, 7).gives(_plan("chosen", ("i", "j", "k"), 7, 12)),
        given((), 3, 3).gives(_plan("chosen", (), 3, 0)),
        given(MENU * 5, 2, 1).refuses("RANGE"),
        given(MENU, 2, 1.0).refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "memory-only",
            _memory_only,
            "You recompute everything, whatever the budget. Past the budget bytes are worth nothing, FLOPs still cost.",
        ),
        Wrong(
            "greedy",
            _in_order(lambda r: Fraction(r.flops, r.saved) if r.saved else 10**9),
            "You took regions by FLOPs per byte until it fitted. The last one may overshoot: a dearer one can do alone.",
        ),
        Wrong(
            "largest-first",
            _in_order(lambda r: -r.saved),
            "You took the largest regions first, whatever they cost to run again.",
        ),
        Wrong(
            "cheapest-first",
            _in_order(lambda r: r.flops),
            "You took the cheapest regions first, also those that free little or nothing at the peak.",
        ),
        Wrong(
            "infeasible-unsaid",
            _unsaid,
            "Nothing fits and your answer does not say so. Whoever reads it would run out of memory.",
        ),
    ),
    shapes={"regions": (MENU, TIES, MENU + TIES, TIES[1:]), "fixed": (0, 2, 5), "budget": tuple(range(1, 24))},
)


def _another_block(fault):
    from costlib.activations import paper_gaps

    return "; ".join(paper_gaps(RUNNING if fault else CLASSIC))


def _hooks_as_peak(fault):
    from costlib import activations

    seen = tuple(item for item in LIVE_TOY if item.role == "saved") if fault else LIVE_TOY
    found, whole = (activations.peak_cut(objects)[0] for objects in (seen, LIVE_TOY))
    return f"the hooks saw {found:,} B, the cut is {whole:,} B" * (found != whole)


def _dropout_drawn_anew(fault):
    generator = random.Random(5)
    before = generator.getstate()
    forward = [generator.random() < 0.9 for _ in range(1000)]
    if not fault:
        generator.setstate(before)
    rerun = [generator.random() < 0.9 for _ in range(1000)]
    changed = sum(x != y for x, y in zip(forward, rerun))
    return f"{changed} of 1,000 mask entries differ in the rerun" * bool(changed)


WHOLE_ON_EVERY_RANK = ("attention.input", "attention.mask", "mlp.input", "mlp.mask", "norms.first", "norms.second")


def _divided_here(fault):
    from costlib import activations

    rows, ranks = activations.korthikanti(*RUN[:4]), 8
    held = sum(size if name in WHOLE_ON_EVERY_RANK else size // ranks for name, size in rows.items())
    claimed = rows.total // ranks if fault else held
    return f"{claimed:,} B a rank, but with the rows that every rank holds whole: {held:,} B" * (claimed != held)


FAILURES = (
    Failure(
        "every tensor of the step summed up",
        "the peak is the largest sum over what is live at one instant",
        wrong=("peak_cut", "sum-of-all"),
    ),
    Failure(
        "each view counted as a tensor",
        "bytes belong to storages; names of one storage count once",
        wrong=("unique_bytes", "names-summed"),
    ),
    Failure(
        "every output of the forward pass kept",
        "a saved object names the backward formula that asks for it",
        wrong=("korthikanti", "every-output"),
    ),
    Failure(
        "34 and 5 applied to a Llama-like block",
        "the coefficients hold for the paper's block; for any other they are a projection and say so",
        check=_another_block,
    ),
    Failure(
        "scores reduced because K/V heads are fewer",
        "every query head has its own scores",
        wrong=("score_elements", "kv-heads"),
    ),
    Failure(
        "saved-tensor hooks read as the peak",
        "temporaries, gradients and workspace are live too and no hook sees them",
        check=_hooks_as_peak,
    ),
    Failure(
        "the maxima of the categories added",
        "sum at each instant first, then take the maximum",
        wrong=("peak_cut", "category-maxima"),
    ),
    Failure(
        "reserved bytes read as allocated",
        "what an allocator caches holds no tensor and has its own row",
        wrong=("memory_bridge", "allocated-as-reserved"),
    ),
    Failure(
        "an allocator snapshot read as the whole device",
        "what lies outside the allocator is a residual, not zero and not activations",
        wrong=("memory_bridge", "snapshot-as-device"),
    ),
    Failure(
        "dropout recomputed from another random state",
        "a rerun draws exactly what the forward pass drew",
        check=_dropout_drawn_anew,
    ),
    Failure(
        "selective recomputation charged as full checkpointing",
        "a policy names its region; another region is another price",
        wrong=("added_cost", "selective-as-full"),
    ),
    Failure(
        "a plan that looks at bytes only",
        "added FLOPs and transfer are minimized under the budget",
        wrong=("choose_recompute", "memory-only"),
    ),
    Failure(
        "everything divided by the tensor-parallel degree",
        "shards are another ledger: some rows stay whole on every rank",
        check=_divided_here,
    ),
)

LAB = Lab(
    "05",
    "Activations and the peak",
    "activations",
    (tensor, scores, layer, cross, kept, top, coefficient, added, unique, now, cut, bridge, choose),
    FAILURES,
)
