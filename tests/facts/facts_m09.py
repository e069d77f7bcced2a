"""M 0x09: phases and the cache."""

from dataclasses import fields
from fractions import Fraction
from inspect import signature
from math import prod

from costlib import phases, traffic
from costlib.domain import ManifestError
from costlib.fixtures import DECODE_32K, PREFILL_4K, RUNNING, TRAIN_4K
from costlib.hardware import CHIPS
from costlib.policies import bytes_per_scalar
from costlib.records import Workload
from costlib.units import GIB, KIB, MIB

OWNS = ("M.09",)
MHA, MQA = (RUNNING.replace(num_key_value_heads=heads) for heads in (32, 1))
ROWS = PREFILL_4K.visible_rows, DECODE_32K.visible_rows


def cache(arch=RUNNING, rows=ROWS[1]):
    return phases.cache_bytes(arch, 1, rows)


def attention(arch=RUNNING, query_rows=1, rows=ROWS[1]):
    """The decode call of 0x09D in one layer."""
    return phases.rectangular_attention(
        1, arch.num_attention_heads, arch.num_key_value_heads, query_rows, rows, arch.head_dim
    )


def column(name):
    """One row of the 7 x 4 table: what training, a fresh prompt and a decode step say to `name`."""
    return [phases.phase_record(workload)[name] for workload in (TRAIN_4K, PREFILL_4K, DECODE_32K)]


def refused_as_prefill():
    try:
        PREFILL_4K.replace(visible_rows=8192)
    except ManifestError as refusal:
        return refusal.code == "INCONSISTENT" and "prefill-chunk" in refusal.detail
    return False


def layouts(rows):
    """Elements of K in 0x09A's axis order and in 0x09C's: one count, two stored layouts."""
    return prod((1, 8, rows, 128)), prod((1, rows, 8, 128))


FACTS = {
    # M 0x09C
    "M.09C.001": lambda: cache(rows=ROWS[0]),
    "M.09C.002": lambda: Fraction(cache(rows=ROWS[0]), GIB),
    "M.09C.003": lambda: cache(rows=1),
    "M.09C.004": lambda: Fraction(cache(rows=1), KIB),
    "M.09C.005": lambda: Fraction(cache(), GIB),
    "M.09C.006": lambda: Fraction(cache(rows=1), KIB),
    "M.09C.009": lambda: ROWS[0],
    "M.09C.010": lambda: ROWS[1],
    "M.09C.011": lambda: ROWS[1],
    "M.09C.012": lambda: RUNNING.num_key_value_heads,
    "M.09C.013": lambda: cache(rows=ROWS[0]),
    "M.09C.014": lambda: cache(rows=1),
    "M.09C.015": lambda: Fraction(ROWS[1] * cache(rows=1), GIB),
    # M 0x09D
    "M.09D.001": lambda: attention()["flops"],
    "M.09D.002": lambda: attention()["kv_bytes"],
    "M.09D.003": lambda: Fraction(attention()["kv_bytes"], MIB),
    "M.09D.004": lambda: attention()["flops"],
    "M.09D.005": lambda: attention()["kv_bytes"],
    "M.09D.006": lambda: attention()["intensity"],
    "M.09D.007": lambda: Fraction(RUNNING.num_layers * attention()["kv_bytes"], GIB),
    "M.09D.008": lambda: Fraction(attention()["kv_bytes"], MIB),
    "M.09D.009": lambda: Fraction(cache(), GIB),
    "M.09D.010": lambda: Fraction(RUNNING.num_layers * attention()["kv_bytes"], GIB),
    "M.09D.012": lambda: Fraction(cache(MHA), GIB),
    "M.09D.014": lambda: Fraction(cache(MHA), GIB),
    "M.09D.015": lambda: attention(MHA)["intensity"],
    "M.09D.016": lambda: Fraction(cache(), GIB),
    "M.09D.017": lambda: attention()["intensity"],
    "M.09D.018": lambda: Fraction(cache(MQA), GIB),
    "M.09D.019": lambda: attention(MQA)["intensity"],
    "M.09D.021": lambda: DECODE_32K.batch_size,
    "M.09D.022": lambda: DECODE_32K.new_rows,
    "M.09D.023": lambda: DECODE_32K.visible_rows,
    "M.09D.024": lambda: RUNNING.num_attention_heads,
    "M.09D.025": lambda: RUNNING.num_key_value_heads,
    "M.09D.026": lambda: RUNNING.head_dim,
    "M.09D.027": lambda: bytes_per_scalar("bf16"),
    "M.09D.028": lambda: ROWS[1],
    "M.09D.029": lambda: ROWS[1],
    "M.09D.030": lambda: RUNNING.num_layers,
    "M.09D.031": lambda: MHA.num_key_value_heads,
    "M.09D.032": lambda: attention()["flops"],
    "M.09D.033": lambda: attention()["kv_bytes"],
    "M.09D.034": lambda: attention()["intensity"],
    "M.09D.035": lambda: Fraction(RUNNING.num_layers * attention()["kv_bytes"], GIB),
    # M 0x09F
    "M.09F.001": lambda: attention()["flops"],
    "M.09F.002": lambda: attention()["kv_bytes"],
    "M.09F.003": lambda: attention()["intensity"],
    "M.09F.004": lambda: RUNNING.num_layers * attention()["kv_bytes"],
    "M.09F.006": lambda: DECODE_32K.batch_size,
    "M.09F.007": lambda: RUNNING.num_attention_heads,
    "M.09F.008": lambda: RUNNING.num_key_value_heads,
    "M.09F.009": lambda: DECODE_32K.new_rows,
    "M.09F.010": lambda: DECODE_32K.visible_rows,
    "M.09F.011": lambda: RUNNING.head_dim,
    "M.09F.012": lambda: bytes_per_scalar("bf16"),
}

TEXTS = {
    "M.09.001": lambda: column("projected_rows") == [4096, 4096, 1],
    "M.09.002": lambda: column("history_rows") == [0, 0, 32767],
    "M.09.003": lambda: column("kept_rows") == [0, 4096, 1],
    "M.09.004": lambda: column("retains_for_backward") == [True, False, False],
    # 0x0CC keeps phase = prefill and doubles the visible rows (M-12): here that must be called a chunk.
    "M.09.005": refused_as_prefill,
    "M.09B.001": lambda: phases.phase_record(DECODE_32K)["rectangle"] == (1, 32767 + 1),
    # 0x09A and 0x09C store the same count in two axis orders (M-19); bytes cannot tell them apart.
    "M.09C.007": lambda: len(set(layouts(ROWS[0]))) == 1 and 2 * 2 * layouts(ROWS[0])[0] * 32 == cache(rows=ROWS[0]),
    "M.09C.008": lambda: phases.cache_bytes(RUNNING, 3, 5, "fp32") == 3 * 5 * 32 * (2 * 8 * 128) * 4,
    "M.09D.011": lambda: cache(MHA) == 4 * cache(),
    "M.09D.013": lambda: [2 * attention()[key] for key in ("flops", "kv_bytes")]
    == [attention(rows=2 * ROWS[1])[key] for key in ("flops", "kv_bytes")]
    and attention()["intensity"] == attention(rows=2 * ROWS[1])["intensity"],
    "M.09D.020": lambda: all(
        phases.rectangular_attention(B, hq, hkv, sq, sk, dh)["intensity"] == Fraction(2 * sq * hq, 2 * hkv)
        for B, hq, hkv, sq, sk, dh in ((1, 32, 8, 1, 77, 128), (5, 6, 2, 10, 31, 20), (3, 4, 4, 9, 9, 7))
    ),
    "M.09E.001": lambda: cache(rows=7) // 2 == 2 * 7 * 32 * 8 * 128,
    # One vocabulary (M-18): the phase is a function of the workload's own fields, and of nothing else.
    "M.09F.005": lambda: list(signature(phases.phase_record).parameters) == ["workload"]
    and {"phase", "new_rows", "visible_rows", "logits"} <= {field.name for field in fields(Workload)},
    # W Chapter 9 makes this inference; a one-row call can lie above one chip's ridge and below another's.
    "M.09G.001": lambda: len({
        phases.rectangular_attention(1, 128, 1, 1, 4096, 576, "fp8")["intensity"] < traffic.ridge(chip)
        for chip in CHIPS.values()
    }) == 2,
}
