"""W Chapter 1: what a FLOP is."""

from fractions import Fraction

import numpy as np

from costlib import napkin
from costlib.hardware import CHIPS
from costlib.policies import BITS
from costlib.units import TB, fixed

OWNS = ("W.C1.",)
FP32, FP16 = np.finfo(np.float32), np.finfo(np.float16)


def multiply_then_add():
    return napkin.matmul_flops(1, 1, 1)


def h100_tflops(flops_per_clock_and_sm, mhz):
    """Peak of 132 multiprocessors in 1e12 FLOP/s, to the digit that the table has."""
    return round(Fraction(132 * flops_per_clock_and_sm * mhz * 10**6, TB) * 10) / Fraction(10)


PRINTED = {"fp32": 67, "tf32": 495, "bf16": 990, "fp8": 1979}


def step_up(narrow, wide):
    return Fraction(PRINTED[narrow], PRINTED[wide])


FACTS = {
    "W.C1.001": lambda: multiply_then_add() // 2,
    "W.C1.002": lambda: multiply_then_add() - multiply_then_add() // 2,
    "W.C1.003": multiply_then_add,
    "W.C1.004": multiply_then_add,
    "W.C1.005": lambda: BITS["bf16"] - 1 - 7,
    # 128 FMA lanes a multiprocessor at 1.98 GHz; four tensor cores of 512 bf16 FMA a clock at 1.83 GHz
    "W.C1.008": lambda: h100_tflops(2 * 128, 1980),
    "W.C1.009": lambda: h100_tflops(4 * 512, 1830),
    "W.C1.010": lambda: h100_tflops(2 * 4 * 512, 1830),
    "W.C1.011": lambda: h100_tflops(2 * 2 * 4 * 512, 1830),
}

TEXTS = {
    # W-33: against fp32, fp16 gives up exponent and mantissa bits
    "W.C1.006": lambda: (FP16.nexp, FP16.nmant, FP32.nexp, FP32.nmant) == (5, 10, 8, 23) and 1 + 5 + 10 == BITS["fp16"],
    "W.C1.007": lambda: FP16.smallest_subnormal == Fraction(1, 2**24)
    and Fraction(1, 2**126) < Fraction(1, 10**8) < Fraction(1, 2**25),
    # W-33: only from tf32 on, which is stored in 32 bits, does the peak double
    "W.C1.012": lambda: BITS["tf32"] == BITS["fp32"]
    and [fixed(step_up(*pair), 3) for pair in (("tf32", "fp32"), ("bf16", "tf32"), ("fp8", "bf16"))]
    == ["7.388", "2.000", "1.999"],
    "W.C1.013": lambda: Fraction(napkin.matmul_flops(1, 4, 1), napkin.matmul_flops(1, 2, 1)) == 2,
    "W.C1.016": lambda: napkin.budget_to_flops(CHIPS["H100"], 1000, 30) == 990 * 10**12 * 1000 * 30 * 86_400 * 2 // 5,
    "W.C1.017": lambda: Fraction("3.7") * Fraction("2.1") + Fraction("0.5") == Fraction("8.27") and multiply_then_add() == 2,
}

REST = {
    "W.C1.014": "an outsiders' estimate of an unpublished run, to the order of magnitude; no formula gives it",
    "W.C1.015": "law: 1e25 FLOP in the EU AI Act; the US order said 1e26 and was rescinded in 2025 (W-33)",
}
