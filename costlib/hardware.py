"""What can a chip do at most? Dated vendor figures, each with its source and whether it was verified.

Peaks are dense (no structured sparsity), bf16 with fp32 accumulation. A figure that no published
page was found for is marked unverified; it may be used, and is said to be unverified when printed.
"""

import json
from dataclasses import dataclass

from costlib import data
from costlib.domain import ManifestError, Size
from costlib.records import Record

@dataclass(frozen=True, kw_only=True)
class Figure(Record):
    """One vendor figure: an exact integer in a base unit, where it was read, when, and verified or not."""

    value: Size
    unit: str
    source: str
    as_of: str = "2026-11"
    verified: bool = True
    note: str = ""

    def __str__(self):
        note = f" ({self.note})" if self.note else ""
        return f"{self.value:,} {self.unit}, {'' if self.verified else 'UNVERIFIED, '}{self.source}, {self.as_of}{note}"


@dataclass(frozen=True, kw_only=True)
class Chip(Record):
    """Peak bf16 arithmetic, memory size, memory bandwidth and board power of one accelerator."""

    name: str
    peak: Figure
    memory: Figure
    bandwidth: Figure
    power: Figure

    @property
    def peak_flops(self) -> int:
        """bf16 FLOP/s."""
        return self.peak.value

    @property
    def memory_bytes(self) -> int:
        return self.memory.value

    @property
    def bytes_per_second(self) -> int:
        return self.bandwidth.value

    @property
    def watts(self) -> int:
        return self.power.value


CHIPS = {chip.name: chip for chip in (Chip.from_json(json.dumps(row)) for row in json.loads(data.read("hardware.json")))}


def chip(name: str) -> Chip:
    """The chip of that name; an unknown one is refused with the list of known ones."""
    try:
        return CHIPS[name]
    except (KeyError, TypeError):
        raise ManifestError("ENUM", f"chip = {name!r}; allowed: {', '.join(CHIPS)}") from None


def assumption(name: str) -> str:
    """A default of the budget that is a price or an opinion, as written: `assumption("kwh")` is "0.12".

    assumptions.json says for each where it comes from; none is a fact about your cluster.
    """
    rows = {row["name"]: row["value"] for row in json.loads(data.read("assumptions.json"))}
    if name not in rows:
        raise ManifestError("ENUM", f"assumption = {name!r}; there are {', '.join(rows)}")
    return rows[name]
