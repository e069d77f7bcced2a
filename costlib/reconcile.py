"""Can an independent observation falsify a prediction, without either side being rewritten? (M 0x0A, 0x0D)

Names and shapes are compared before sums; a residual is an answer, never a correction; every
comparison ends in one of five statuses.
"""

from costlib.domain import Count
from costlib.evidence import Explanation, Hypothesis, Observation, SeenEntry, Status
from costlib.exercise import Unfilled, exercise
from costlib.faults import Fault
from costlib.records import StateEntry, Tensor

LAB = "11"


@exercise
def names(expected: tuple[Tensor, ...], observed: tuple[StateEntry, ...]) -> dict:
    """Return {"missing", "unexpected", "duplicate"}, each a sorted list of names.

    missing: declared and not seen. unexpected: seen and not declared, unless persistent=False, which
    no checkpoint keeps. duplicate: seen more than once. Unit: names.
    Source: M 0x0A, 0x0AE.
    """
    raise Unfilled


@exercise
def fields(expected: tuple[Tensor, ...], observed: tuple[StateEntry, ...]) -> dict:
    """Return {"shape", "kind", "trainability"}, each a sorted list of names that are on both sides and differ.

    shape: other stored axes, whatever their product. kind: a buffer where a parameter is declared;
    every declared tensor is a parameter. trainability: frozen where all that is declared is trained.
    Unit: names.
    Source: M 0x0A, 0x0AE.
    """
    raise Unfilled


@exercise
def aliases(expected: tuple[Tensor, ...], observed: tuple[StateEntry, ...]) -> dict:
    """Return {"broken alias", "accidental alias"}, each a sorted list of names that are on both sides.

    broken: declared alias_of another tensor, and seen with another storage than that tensor's.
    accidental: seen in one storage with a name of another declared tensor (all such names); a tensor
    and its declared aliases are one tensor. Unit: names.
    Source: M 0x0A, 0x0AE.
    """
    raise Unfilled


def dtypes(expected: tuple[Tensor, ...], observed: tuple[StateEntry, ...]) -> list:
    """Names whose dtype was seen and is not the declared one."""
    declared = {tensor.name: tensor.dtype for tensor in expected}
    seen = [e for e in observed if isinstance(e, SeenEntry) and e.dtype and e.name in declared]
    return sorted({e.name for e in seen if e.dtype != declared[e.name]})


def state(expected: tuple[Tensor, ...], observed: tuple[StateEntry, ...]) -> dict:
    """Every difference between declared tensors and seen entries, by kind; neither side is changed."""
    parts = names(expected, observed), fields(expected, observed), aliases(expected, observed)
    return {**parts[0], **parts[1], "dtype": dtypes(expected, observed), **parts[2]}


@exercise
def counter(predicted: Count | None, observed: Count | None, explanations: tuple[Explanation, ...] = ()) -> dict:
    """Return {"residual", "explained", "status"} of one counter.

    residual: observed - predicted, signed. explained: the sum of the explanations' amounts. status:
    "open" unless the two are equal; then "exact" if the residual is 0 and "explained" if it is not.
    Where either side is None, there is nothing to compare: residual None, status "unmeasured".
    Unit: that of the counter.
    Source: M 0x0A, 0x0AF.
    """
    raise Unfilled


@exercise
def status(parts: tuple[Status, ...]) -> str:
    """The status of a report from those of its parts: the worst of them, STATUSES being worst first.

    No part at all: "unmeasured". Unit: a status. Refused: a word that is none of the five (ENUM).
    Source: M 0x0D, 0x0D.
    """
    raise Unfilled


@exercise
def ranked(candidates: tuple[Hypothesis, ...], observed: Count) -> list:
    """[(name, residual), ...]: which hypothesis comes closest to what was observed?

    residual: observed - value, 0 where the hypothesis is confirmed. The least distance first, from
    either side; equally close ones in the order given. Unit: that of the observation.
    Source: M 0x0A, 0x0AF.
    """
    raise Unfilled


@exercise
def closure(case: Fault, present: bool = True) -> str:
    """The status that a fault ends in: run faults.INJECT[case](present), which gives a tuple of statuses.

    Combine them. A ManifestError means that the input was refused: "rejected". Any other exception is
    no closure and passes through. With present=False the same check runs without the fault.
    Unit: a status. Refused: an unknown fault (ENUM).
    Source: M 0x0D, 0x0DA.
    """
    raise Unfilled


def report(expected: tuple[Tensor, ...], predicted: dict, observation: Observation | None) -> dict:
    """{"state", "counters", "status"}: a plan's tensors and predicted numbers against one observation.

    `predicted` maps names to exact integers; what it lacks was not supplied. Every observed counter is
    a row {"predicted", "observed", "residual", "explained", "status"}; only what was observed is
    compared. Without an observation everything is unmeasured.
    """
    if observation is None:
        return {"state": None, "counters": {}, "status": status(())}
    found = state(expected, observation.entries) if observation.entries else None
    counters = {
        seen.name: {
            "predicted": predicted.get(seen.name),
            "observed": seen.value,
            **counter(predicted.get(seen.name), seen.value, observation.explaining(seen.name)),
        }
        for seen in observation.counters
    }
    parts = [row["status"] for row in counters.values()]
    parts += [state_status(found)] if found is not None else []
    return {"state": found, "counters": counters, "status": status(tuple(parts))}


def state_status(found: dict) -> str:
    """"exact" if no list of differences has a name in it, else "open"."""
    return "open" if any(found.values()) else "exact"
