"""What was predicted, what was seen, and who says so? Records of observations, hypotheses and paper contracts.

An observation never becomes a prediction with its gaps filled in: the two are separate records, and
reconciliation compares them and changes neither. Source: M 0x0AA, 0x0AG, 0x0BA.
"""

import json
from dataclasses import dataclass
from typing import Literal

from costlib import data
from costlib.domain import Count, require
from costlib.records import Record, StateEntry

STATUSES = ("rejected", "open", "unmeasured", "explained", "exact")  # of M 0x0D, the worst first
Status = Literal["rejected", "open", "unmeasured", "explained", "exact"]
AXES = (  # of M 0x0BA, the fields of a Contract that decide whether its numbers may be compared
    "architecture",
    "parameters",
    "phase_rows",
    "operations",
    "backward",
    "recomputation",
    "state",
    "ownership",
    "output",
)


@dataclass(frozen=True, kw_only=True)
class SeenEntry(StateEntry):
    """A state entry whose dtype may have been seen too; None where the observer cannot tell."""

    dtype: str | None = None


@dataclass(frozen=True, kw_only=True)
class Counter(Record):
    """One number read off a running system, and what the instrument that read it could not see."""

    name: str
    value: Count
    unit: str
    visibility: str

    def rules(self):
        require(bool(self.visibility), "MISSING", f"counter {self.name!r} does not say what its observer can see")


@dataclass(frozen=True, kw_only=True)
class Explanation(Record):
    """A signed part of one counter's residual, with the scope it holds in."""

    counter: str
    amount: int
    text: str
    scope: str

    @property
    def name(self) -> str:
        return f"{self.amount:+,}"

    def rules(self):
        require(bool(self.text and self.scope), "MISSING", f"an explanation of {self.counter!r} needs text and scope")


@dataclass(frozen=True, kw_only=True)
class Observation(Record):
    """What an observer saw, under one evidence class. An analytical record is `unmeasured`. Source: M 0x0AA.

    producer: the function that observed; scope: which model, workload, attention program and dtype.
    """

    observation_id: str
    evidence_class: Literal["synthetic_contract_test", "source_reported", "locally_measured", "unmeasured"]
    hardware: str | None = None
    framework: str | None = None
    raw_artifact: str | None = None
    source_url: str | None = None
    producer: str | None = None
    scope: str | None = None
    entries: tuple[SeenEntry, ...] = ()
    counters: tuple[Counter, ...] = ()
    explanations: tuple[Explanation, ...] = ()

    def rules(self):
        needed = {
            "locally_measured": ("hardware", "framework", "raw_artifact"),
            "source_reported": ("source_url",),
        }.get(self.evidence_class, ())
        for name in needed:
            require(bool(getattr(self, name)), "MISSING", f"{self.observation_id} is {self.evidence_class}: give {name}")
        require(
            self.evidence_class != "unmeasured" or not self.counters,
            "INCONSISTENT",
            f"{self.observation_id} is unmeasured and has counters",
        )
        names = [counter.name for counter in self.counters]
        require(len(names) == len(set(names)), "INCONSISTENT", f"{self.observation_id} has a counter twice: {names}")
        for row in self.explanations:
            require(row.counter in names, "UNDECLARED", f"an explanation of {row.counter!r}, which was not counted")

    def value(self, name: str) -> int | None:
        """The counter of that name; None, never 0, where it was not counted."""
        return next((counter.value for counter in self.counters if counter.name == name), None)

    def explaining(self, name: str) -> tuple[Explanation, ...]:
        return tuple(row for row in self.explanations if row.counter == name)


@dataclass(frozen=True, kw_only=True)
class Hypothesis(Record):
    """One thing an observer may have counted instead, and the number it would then have shown."""

    name: str
    value: Count
    text: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Contract(Record):
    """What one source counts, on nine axes. None: the source does not fix that axis. Source: M 0x0BA.

    A value may be compared with others only after normalization to a named case of a common manifest.
    """

    contract_id: str
    source: str
    architecture: str | None = None
    parameters: str | None = None
    phase_rows: str | None = None
    operations: str | None = None
    backward: str | None = None
    recomputation: str | None = None
    state: str | None = None
    ownership: str | None = None
    output: str | None = None
    value: str | None = None
    numeric_comparison_allowed: bool = False
    normalized_to_common_manifest: bool = False
    target_case_id: str | None = None

    @property
    def name(self) -> str:
        return self.contract_id

    def __repr__(self):
        return f"<contract {self.contract_id}>"

    def rules(self):
        if self.numeric_comparison_allowed:
            require(
                self.normalized_to_common_manifest and bool(self.target_case_id),
                "INCONSISTENT",
                f"{self.contract_id} allows comparison without normalized_to_common_manifest and target_case_id",
            )


SOURCES = ("a16", "kaplan", "hoffmann", "palm", "megatron", "korthikanti")


def registry(part: str = "contracts") -> tuple[Contract, ...]:
    """The contracts of the six sources; part="numbers" gives those of the three numbers."""
    rows = json.loads(data.read("papers.json"))[part]
    return tuple(Contract.from_json(json.dumps(row)) for row in rows)
