"""M 0x08: logical traffic."""

from fractions import Fraction
from math import prod

from costlib import napkin, traffic
from costlib.fixtures import PREFILL_4K, RUNNING
from costlib.hardware import chip
from costlib.policies import HBM, bytes_per_scalar
from costlib.schema import tensor_rows
from costlib.units import GIB, MIB

OWNS = ("M.08",)
MHA = RUNNING.replace(num_key_value_heads=32)
Q_PROJ = next(tensor for tensor in tensor_rows(RUNNING) if tensor.name.endswith("0.self_attn.q_proj.weight"))
GEMM = {"prefill": 4096, "batch": 32, "decode": 1}  # rows of X; k = n = d


def layer(arch=RUNNING):
    return traffic.payload(traffic.materialized_attention(arch, PREFILL_4K))


def row(name):
    """One transfer of the materialized layer: the first of that name."""
    return next(r for r in traffic.materialized_attention(RUNNING, PREFILL_4K) if r.name == name)


def stored(name):
    return traffic.payload((row(name),)).total


def movements(first, end):
    """(direction, name, bytes) of the rows of one of the three programs."""
    rows = traffic.materialized_attention(RUNNING, PREFILL_4K)[first:end]
    return [(r.direction, r.name, traffic.payload((r,)).total) for r in rows]


def gemm(phase):
    return traffic.isolated_gemm(GEMM[phase], 4096, 4096, "bf16", "bf16", "bf16", phase)


def flops(phase):
    return napkin.matmul_flops(GEMM[phase], 4096, 4096)


def moved(phase):
    return traffic.payload(gemm(phase)).total


def intensity(phase):
    return traffic.intensity(flops(phase), gemm(phase), HBM)


def elements(name, *shape):
    return row(name).elements == prod(shape)


FACTS = {
    # M 0x08
    "M.08.001": lambda: Fraction(traffic.payload((gemm("decode")[1],)).total, MIB),
    "M.08.002": lambda: Q_PROJ.numel,
    "M.08.005": lambda: bytes_per_scalar(row("Q").dtype),
    # M 0x08A
    "M.08A.001": lambda: Fraction(stored("Q"), MIB),
    "M.08A.002": lambda: Fraction(stored("K"), MIB),
    "M.08A.003": lambda: Fraction(stored("V"), MIB),
    "M.08A.004": lambda: Fraction(stored("S"), GIB),
    "M.08A.005": lambda: Fraction(stored("P"), GIB),
    "M.08A.006": lambda: Fraction(stored("O"), MIB),
    "M.08A.010": lambda: Fraction(layer()["S"] + layer()["P"], GIB),
    "M.08A.011": lambda: Fraction(sum(layer()[name] for name in "QKVO"), MIB),
    "M.08A.012": lambda: Fraction(layer().total, GIB),
    "M.08A.013": lambda: Fraction(layer(MHA).total, GIB),
    "M.08A.014": lambda: PREFILL_4K.batch_size,
    "M.08A.015": lambda: PREFILL_4K.new_rows,
    "M.08A.016": lambda: RUNNING.num_attention_heads,
    "M.08A.017": lambda: RUNNING.num_key_value_heads,
    "M.08A.018": lambda: RUNNING.head_dim,
    "M.08A.025": lambda: MHA.num_key_value_heads,
    # M 0x08C
    "M.08C.001": lambda: flops("prefill"),
    "M.08C.002": lambda: Fraction(moved("prefill"), MIB),
    "M.08C.003": lambda: intensity("prefill"),
    "M.08C.004": lambda: flops("batch"),
    "M.08C.005": lambda: Fraction(moved("batch"), MIB),
    "M.08C.006": lambda: intensity("batch"),
    "M.08C.007": lambda: flops("decode"),
    "M.08C.008": lambda: Fraction(moved("decode"), MIB),
    "M.08C.009": lambda: intensity("decode"),
    "M.08C.013": lambda: RUNNING.d_q,
    "M.08C.014": lambda: PREFILL_4K.new_rows,
    "M.08C.015": lambda: gemm("batch")[0].elements // RUNNING.hidden_size,
    # M 0x08D
    "M.08D.001": lambda: flops("prefill"),
    "M.08D.002": lambda: moved("prefill"),
    "M.08D.003": lambda: moved("batch"),
    "M.08D.004": lambda: moved("decode"),
}

TEXTS = {
    "M.08.003": lambda: Q_PROJ.shape == (4096, 4096),
    "M.08.004": lambda: Q_PROJ.shape == (RUNNING.d_q, RUNNING.hidden_size),
    "M.08A.007": lambda: movements(0, 3) == [("read", "Q", 32 * MIB), ("read", "K", 8 * MIB), ("write", "S", GIB)],
    "M.08A.008": lambda: movements(3, 5) == [("read", "S", GIB), ("write", "P", GIB)],
    "M.08A.009": lambda: movements(5, 8) == [("read", "P", GIB), ("read", "V", 8 * MIB), ("write", "O", 32 * MIB)],
    "M.08A.019": lambda: elements("Q", 1, 32, 4096, 128),
    "M.08A.020": lambda: elements("K", 1, 8, 4096, 128),
    "M.08A.021": lambda: elements("V", 1, 8, 4096, 128),
    "M.08A.022": lambda: elements("S", 1, 32, 4096, 4096),
    "M.08A.023": lambda: elements("P", 1, 32, 4096, 4096),
    "M.08A.024": lambda: elements("O", 1, 32, 4096, 128),
    "M.08B.001": lambda: traffic.ridge(chip("H100")) == Fraction(990 * 10**12, 3350 * 10**9),
    "M.08C.010": lambda: 32 - traffic.row_amortization(32, 10**9, 10**9, "bf16")["intensity"] < Fraction(1, 10**5),
    "M.08C.011": lambda: all(
        traffic.row_amortization(m, m, m, dtype)["intensity"] == 2 * m / (3 * bytes_per_scalar(dtype))
        for m, dtype in ((4096, "bf16"), (77, "fp32"), (100, "int4"))
    ),
    "M.08C.012": lambda: 1 - intensity("decode") == Fraction(1, 2049),
    "M.08D.005": lambda: [r.elements for r in gemm("prefill")] == [4096**2] * 3,
    "M.08D.006": lambda: [r.elements for r in gemm("batch")] == [32 * 4096, 4096**2, 32 * 4096],
    "M.08D.007": lambda: [r.elements for r in gemm("decode")] == [4096, 4096**2, 4096],
}
