"""Reference answers of the papers' part of Lab 12."""

from fractions import Fraction

from costlib.domain import require
from costlib.evidence import AXES
from costlib.papers import SOURCES


def comparison_gate(a, b):
    pairs = {axis: (getattr(a, axis), getattr(b, axis)) for axis in AXES}
    found = [axis for axis, (ours, theirs) in pairs.items() if ours is None or ours != theirs]
    return {"status": "not comparable" if found else "comparable", "open": found}


def missing_contracts(contracts):
    ids = [contract.contract_id for contract in contracts]
    for name in ids:
        require(name in SOURCES, "UNDECLARED", f"{name!r} is none of the sources {', '.join(SOURCES)}")
        require(ids.count(name) == 1, "INCONSISTENT", f"{name!r} is in the registry twice")
    return [name for name in SOURCES if name not in ids]


def replay_overhead(s, h, v, L, replays):
    model = 3 * (L * (24 * s * h**2 + 4 * s**2 * h) + 2 * s * h * v)
    return Fraction(replays * 4 * L * s**2 * h, model)
