"""Which bytes does a declared schedule move across one boundary, and how much arithmetic do they feed? (M 0x08)

Every row is a whole tensor crossing one named boundary in one direction: a scheduled, logical payload.
What is stored, what is alive at one moment and what a profiler counts are three other ledgers.
"""

from fractions import Fraction

from costlib.domain import Amount, Count, Size
from costlib.exercise import Unfilled, exercise
from costlib.hardware import Chip
from costlib.ledger import Ledger
from costlib.policies import Dtype, Transfer
from costlib.records import ArchitectureManifest, Workload

LAB = "09"


@exercise(unit="B", convention="scheduled logical payload at one boundary; reads and writes apart")
def payload(transfers: tuple[Transfer, ...]) -> Ledger:
    """Return {"name.direction": bytes}, in order of first appearance: "S.write" and "S.read" are two
    rows, and rows of equal name and direction add up.

    One crossing moves elements * BITS[dtype] bits, rounded up to whole bytes; a row makes
    `multiplicity` of them. Left out: sectors, caches, replays. Unit: B.
    Refused: rows of more than one boundary (INCONSISTENT): bytes of two tiers have no sum.
    Source: M 0x08, 0x08.
    """
    raise Unfilled


@exercise
def materialized_attention(
    arch: ArchitectureManifest, workload: Workload, activation_dtype: Dtype = "bf16", cache_dtype: Dtype = "bf16"
) -> tuple[Transfer, ...]:
    """The eight transfers of one layer whose score product, softmax and value product are three programs.

    In this order: score product reads Q and K, writes S; softmax reads S, writes P; value product
    reads P and V, writes O. Q and O are [B, H_q, S_q, d_h], K and V [B, H_kv, S_k, d_h], S and P
    [B, H_q, S_q, S_k], the whole rectangle, masked or not. K and V are cache_dtype, the others
    activation_dtype. Each crosses HBM once, in the workload's phase. Left out: projections, the
    mask, a cache write. Unit: scalars, in `elements`. Refused: ENUM.
    Source: M 0x08, 0x08A.
    """
    raise Unfilled


@exercise
def online_attention(
    arch: ArchitectureManifest,
    workload: Workload,
    activation_dtype: Dtype = "bf16",
    cache_dtype: Dtype = "bf16",
    passes: Size = 1,
    statistics: Count = 0,
) -> tuple[Transfer, ...]:
    """The five transfers of one layer whose softmax runs online, so that S and P stay on chip.

    In this order: read Q, K and V, write O, with dtypes as in materialized_attention, and write
    "statistics", fp32: that many values for every query row and query head (0 where nothing is kept
    for a backward pass, 1 for a log-sum-exp, 2 for maximum and sum). K and V cross `passes` times,
    once for every block of query rows that the chip can hold; 1 is the least any such schedule can
    do, and it needs a kernel that shares K and V within a query group. Unit: scalars, in
    `elements`. Refused: ENUM, NEG, passes of 0 (NONPOS).
    Source: M 0x08, 0x08A.
    """
    raise Unfilled


@exercise
def isolated_gemm(
    m: Size, k: Size, n: Size, dtype_x: Dtype, dtype_w: Dtype, dtype_y: Dtype, phase: str
) -> tuple[Transfer, ...]:
    """The three transfers of Y[m, n] = X[m, k] W[k, n] alone in one pass: read X, read W, write Y.

    Each crosses HBM once: nothing is fused, cached or read again. Left out: scales of a quantized
    operand, padding, split-K workspace. Unit: scalars, in `elements`. Refused: TYPE, NONPOS, ENUM.
    Source: M 0x08, 0x08C.
    """
    raise Unfilled


@exercise
def intensity(flops: Count, transfers: tuple[Transfer, ...], boundary: str) -> Fraction:
    """FLOPs per byte that crosses that boundary; rows of other boundaries are not in the denominator.

    Unit: FLOP/B, exact. Refused: rows of which no byte crosses the named boundary (MISSING).
    Source: M 0x08, 0x08B.
    """
    raise Unfilled


@exercise
def ridge(chip: Chip) -> Fraction:
    """The intensity at which a chip's peak arithmetic and its memory bandwidth take equally long.

    Both are vendor maxima. Unit: FLOP/B, exact.
    Source: M 0x08, 0x08B.
    """
    raise Unfilled


@exercise
def attainable(chip: Chip, intensity: Amount) -> Fraction:
    """The roofline: at most this many FLOP/s at an intensity in FLOP/B, by peak or by bandwidth.

    An upper bound, not a forecast: occupancy, launches and synchronization are left out.
    Unit: FLOP/s, as a Fraction. Refused: a float (TYPE), NEG.
    Source: M 0x08, 0x08B.
    """
    raise Unfilled


@exercise
def row_amortization(m: Size, k: Size, n: Size, dtype: Dtype) -> dict:
    """What m rows that share one weight gain in an isolated_gemm of a single dtype.

    Return {"weight_bytes_per_row": bytes of W divided by m, "intensity": the exact one-pass value,
    "limit": 2m / b, which the intensity approaches when k and n are far larger than m}, all as
    Fractions. Units: B per row, FLOP/B, FLOP/B. Refused: TYPE, NONPOS, ENUM.
    Source: M 0x08, 0x08C.
    """
    raise Unfilled
