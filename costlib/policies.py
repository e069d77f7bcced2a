"""How is a model kept, cut and scheduled? Records that turn one manifest into one execution.

Each is frozen and validates itself; a changed field is another policy, and another number.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from costlib.domain import Count, Size, Stage, require
from costlib.records import Record

BITS = {"fp32": 32, "tf32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4}


def bytes_per_scalar(dtype: str) -> Fraction:
    """Bytes of one stored scalar: 2 for bf16, one half for int4."""
    return Fraction(BITS[dtype], 8)


@dataclass(frozen=True, kw_only=True)
class StateRow(Record):
    """One kind of state in memory. `counts` says of which scalars: all that are loaded, or those trained.

    `created` and `released` are points of the training step; `owner` is who allocates it. Source: M 0x03A.
    """

    role: str
    counts: Literal["loaded", "trained"]
    dtype: Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int4"]
    copies: Size = 1
    placement: Literal["device", "host", "disk"] = "device"
    created: Literal["construction", "backward", "first-step"] = "construction"
    released: Literal["never", "zero-grad", "step"] = "never"
    owner: Literal["model", "autograd", "optimizer", "runtime"] = "model"


@dataclass(frozen=True, kw_only=True)
class StatePolicy(Record):
    """An ordered list of state rows, each role once. Source: M 0x01C, 0x03A."""

    policy_id: str
    rows: tuple[StateRow, ...]

    def rules(self):
        roles = [row.role for row in self.rows]
        require(len(roles) == len(set(roles)), "INCONSISTENT", f"{self.policy_id} has a role twice: {roles}")


@dataclass(frozen=True, kw_only=True)
class LiveObject(Record):
    """Something that takes bytes from `birth` up to, not including, `death`. Source: M 0x04C.

    Objects of equal `storage` are one allocation under several names.
    """

    name: str
    bytes: Count
    birth: Count
    death: Count
    storage: str

    def rules(self):
        require(self.death > self.birth, "RANGE", f"{self.name} is released at {self.death}, born at {self.birth}")


@dataclass(frozen=True, kw_only=True)
class Region(Record):
    """A part of the graph that is run, and run again, as one: FLOPs forward, for dX and for dW. Source: M 0x06I."""

    name: str
    forward: Count
    dx: Count
    dw: Count


@dataclass(frozen=True, kw_only=True)
class Ownership(Record):
    """Which ranks there are and what each keeps; the degrees multiply to the world. Source: M 0x01C, 0x07A."""

    policy_id: str
    world_size: Size
    data_parallel: Size = 1
    tensor_parallel: Size = 1
    pipeline_parallel: Size = 1
    context_parallel: Size = 1
    zero_stage: Stage = 0
    reshard_after_forward: bool = True
    prefetch_groups: Count = 0
    communication_dtype: Literal["fp32", "bf16", "fp16", "fp8"] = "bf16"

    def rules(self):
        product = self.data_parallel * self.tensor_parallel * self.pipeline_parallel * self.context_parallel
        require(
            product == self.world_size,
            "INCONSISTENT",
            f"the degrees multiply to {product}, world_size is {self.world_size}",
        )


@dataclass(frozen=True, kw_only=True)
class Transfer(Record):
    """One object crossing one boundary: elements, bytes per value, how often. Source: M 0x08, 0x08D."""

    object: str
    elements: Count
    dtype: Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4"]
    direction: Literal["read", "write"]
    multiplicity: Count
    boundary: str
    phase: str
    assumption: str

    @property
    def payload(self) -> int:
        """Logical bytes, rounded up to whole ones: elements * bytes per value * multiplicity."""
        return -(-self.elements * BITS[self.dtype] // 8) * self.multiplicity
