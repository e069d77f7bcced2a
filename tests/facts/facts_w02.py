"""W Chapter 2: what a matrix multiply costs."""

from fractions import Fraction

from costlib import napkin
from costlib.fixtures import RUNNING
from costlib.units import fixed

OWNS = ("W.C2.",)


def useful():
    return napkin.matmul_flops(1024, 4000, 4000)


def issued():
    return napkin.padded_matmul_flops(1024, 4000, 4000)


def stays(extent):
    """The extent that whole tiles make of it."""
    return napkin.padded_matmul_flops(1, extent, 1, pad_m=False) // (2 * 128)


def matmul_share():
    """Share of matrix products in one 4k prefill of RUNNING, one logit row, with one FLOP a primitive:
    7 per score, 4 per normalized feature, 3 per rotated one, 5 per gated one, 1 per residual add; the
    record leaves the final norm out, the page counts it."""
    S, m, d = 4096, RUNNING, RUNNING.hidden_size
    products = napkin.training_flops_exact(1, S, d, m.intermediate_size, 32, 8, 128, 32).total // 3
    products += napkin.matmul_flops(1, d, m.vocab_size)
    per_row = 7 * m.num_attention_heads * S + 4 * 2 * d + 3 * (m.d_q + m.d_kv) + 5 * m.intermediate_size + 2 * d
    return Fraction(products, products + S * m.num_layers * per_row)


FACTS = {
    "W.C2.001": lambda: napkin.matmul_flops(1, 4096, 16384),
    "W.C2.002": lambda: 2 * 4096 * 16384,
    "W.C2.003": lambda: napkin.matmul_flops(3, 5, 7) // (3 * 5 * 7),
    "W.C2.004": lambda: Fraction(napkin.matmul_flops(1, 4096, 16384), 4096 * 16384),
    "W.C2.005": lambda: 128,
    "W.C2.006": lambda: napkin.matmul_flops(128, 1, 128),
    "W.C2.007": lambda: Fraction(napkin.matmul_flops(128, 1, 128) * 10**9, 10**12),
    "W.C2.008": useful,
    "W.C2.009": issued,
    "W.C2.010": lambda: Fraction(100 * useful(), issued()),
    "W.C2.011": lambda: 100 - Fraction(100 * useful(), issued()),
    "W.C2.012": lambda: 128,
    "W.C2.013": lambda: stays(4096),
    "W.C2.014": lambda: stays(8192),
    "W.C2.015": lambda: stays(11008),
    "W.C2.017": lambda: Fraction(
        napkin.matmul_flops(2, 3, 5) + napkin.linear_backward(2, 3, 5).total, napkin.matmul_flops(2, 3, 5)
    ),
    "W.C2.018": lambda: napkin.matmul_flops(1, 1, 1),
    "W.C2.033": lambda: 1,
    "W.C2.034": lambda: 128,
    "W.C2.037": lambda: napkin.matmul_flops(1, 4096, 16384),
    "W.C2.038": lambda: napkin.matmul_flops(128, 1, 128),
}
# what the printed calls of W Chapter 2 are given
INPUTS = (4096, 16384, 1, 4096, 16384, 1024, 4000, 4000, 1024, 4000, 4000)
FACTS |= {f"W.C2.{i:03}": lambda value=value: value for i, value in enumerate(INPUTS, 20)}
FACTS |= {"W.C2.035": lambda: 4000, "W.C2.036": lambda: 4096}

TEXTS = {
    "W.C2.016": lambda: fixed(100 * matmul_share(), 4) == "99.7927",
    "W.C2.019": lambda: napkin.training_flops(7, 11) == 6 * 7 * 11,
    "W.C2.031": lambda: napkin.matmul_flops(128, 1, 128) == 2 * 128 * 128,
    "W.C2.032": lambda: napkin.matmul_flops(128, 1, 128) == 2 * 128 * 128,
}
