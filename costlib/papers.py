"""Which published numbers may stand side by side? Only those whose contracts agree on every axis. (M 0x0B)

The registry holds what six sources count, and beside them three numbers of one kind, a replay's cost,
that look comparable. AXES names the nine axes.
"""

from fractions import Fraction

from costlib.domain import Count, Size
from costlib.evidence import SOURCES, Contract, registry  # noqa: F401  given, and read here
from costlib.exercise import Unfilled, exercise

LAB = "12"


@exercise
def comparison_gate(a: Contract, b: Contract) -> dict:
    """Return {"status", "open"}: may a number under contract a be compared with one under b?

    open: the AXES, in their order, on which the two differ or that one of them does not fix (None).
    status: "comparable" if none is open, else "not comparable". Read an axis with
    getattr(a, axis). Unit: axes.
    Source: M 0x0B, 0x0BA.
    """
    raise Unfilled


@exercise
def missing_contracts(contracts: tuple[Contract, ...]) -> list:
    """The ids of SOURCES, in their order, that no contract has; [] if the registry is complete.

    Unit: contract ids. Refused: an id that is none of SOURCES (UNDECLARED), an id twice (INCONSISTENT).
    Source: M 0x0B, 0x0BC.
    """
    raise Unfilled


@exercise
def replay_overhead(s: Size, h: Size, v: Size, L: Size, replays: Count) -> Fraction:
    """Work added by replaying core attention, over model FLOPs, in the classic block.

    One replay: Q K^T and P V of every layer once more, 4Ls^2h for a sequence. Model FLOPs: forward and
    twice backward of L blocks with four square projections, a two-matrix MLP of 4h and the full
    attention rectangle, and of the head over all rows, 72Lsh^2 (1 + s/(6h) + v/(12hL)).
    Unit: a ratio, a Fraction.
    Source: M 0x0B, 0x0BC.
    """
    raise Unfilled
