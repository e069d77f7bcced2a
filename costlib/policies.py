"""How is a model kept, cut and scheduled? Records that turn one manifest into one execution.

Each is frozen and validates itself; a changed field is another policy, and another number.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from costlib.domain import Count, Size, Stage, require
from costlib.records import Record

BITS = {"fp32": 32, "tf32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4}
Dtype = Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int4"]
POINTS = ("construction", "backward", "step", "zero-grad")  # of the first training step, in order


def bytes_per_scalar(dtype: str) -> Fraction:
    """Bytes of one stored scalar: 2 for bf16, one half for int4."""
    return Fraction(BITS[dtype], 8)


@dataclass(frozen=True, kw_only=True)
class StateRow(Record):
    """One kind of state in memory. `counts` says of which scalars: all that are loaded, or those trained.

    `role` is a path: its head is weights, gradients or optimizer in the named policies. `created` and
    `released` are points of the first training step; `owner` is who allocates it. Source: M 0x03A.
    """

    role: str
    counts: Literal["loaded", "trained"]
    dtype: Dtype
    copies: Size = 1
    placement: Literal["device", "host", "disk"] = "device"
    created: Literal["construction", "backward", "step"] = "construction"
    released: Literal["step", "zero-grad", "never"] = "never"
    owner: Literal["model", "autograd", "optimizer", "runtime"] = "model"

    def rules(self):
        order = (*POINTS, "never")
        require(
            order.index(self.created) < order.index(self.released),
            "INCONSISTENT",
            f"{self.role} is released at {self.released}, created at {self.created}: a temporary is no persistent state",
        )


@dataclass(frozen=True, kw_only=True)
class StatePolicy(Record):
    """An ordered list of state rows, each role once and none inside another. Source: M 0x01C, 0x03A."""

    policy_id: str
    rows: tuple[StateRow, ...]

    def rules(self):
        roles = [row.role for row in self.rows]
        require(len(roles) == len(set(roles)), "INCONSISTENT", f"{self.policy_id} has a role twice: {roles}")
        inside = [(a, b) for a in roles for b in roles if b.startswith(f"{a}.")]
        require(not inside, "INCONSISTENT", f"{self.policy_id} has roles inside others: {inside}")

    def __repr__(self):
        return self.policy_id


Role = Literal["persistent", "saved", "boundary", "temporary", "gradient", "workspace", "communication"]


@dataclass(frozen=True, kw_only=True)
class LiveObject(Record):
    """Something that takes bytes from `birth` up to, not including, `death`. Source: M 0x04A, 0x04C.

    Objects of equal `storage` are one allocation under several names, and `bytes` is that
    allocation's. What is kept for backward says in `needed_by` which formula asks for it.
    """

    name: str
    bytes: Count
    birth: Count
    death: Count
    storage: str
    role: Role = "temporary"
    placement: Literal["device", "host"] = "device"
    dtype: str = "mixed"
    needed_by: str = ""

    def rules(self):
        require(self.death > self.birth, "RANGE", f"{self.name} is released at {self.death}, born at {self.birth}")
        kept = self.role in ("saved", "boundary")
        require(bool(self.needed_by) or not kept, "MISSING", f"{self.name} is kept for backward; which formula needs it?")


@dataclass(frozen=True, kw_only=True)
class Region(Record):
    """A part of the graph that is run, and run again, as one: FLOPs forward, for dX and for dW. Source: M 0x06I.

    Names are paths, block_0.core for instance. Where a product has two activations for factors, as in
    attention, dx and dw are the gradients of the first and of the second.
    """

    name: str
    forward: Count
    dx: Count
    dw: Count

    def within(self, path: str) -> bool:
        """Whether this region lies at or below a path."""
        return self.name == path or self.name.startswith(f"{path}.")


Grouping = Literal["root", "blocks", "blocks-and-ends"]


@dataclass(frozen=True, kw_only=True)
class Ownership(Record):
    """Which ranks there are and what each keeps; the degrees multiply to the world.

    There is no sequence-parallel degree: it uses the tensor-parallel group. Nor one for experts, whose
    ownership the course leaves undeclared. Groups of parameters are gathered from ZeRO stage 3 on.
    Source: M 0x01C, 0x07A.
    """

    policy_id: str
    world_size: Size
    data_parallel: Size = 1
    tensor_parallel: Size = 1
    pipeline_parallel: Size = 1
    context_parallel: Size = 1
    zero_stage: Stage = 0
    fsdp_grouping: Grouping = "blocks"
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
        require(
            self.zero_stage == 3 or self.prefetch_groups == 0,
            "INCONSISTENT",
            f"prefetch_groups = {self.prefetch_groups}, and below ZeRO stage 3 nothing is gathered",
        )

    def __repr__(self):
        return self.policy_id


HBM = "HBM <-> on-chip"  # the boundary of the course's schedules, unless another is named


@dataclass(frozen=True, kw_only=True)
class Transfer(Record):
    """A whole tensor that crosses one named boundary in one direction, `multiplicity` times.

    The assumption is prose: it says why the row is there and takes no part in comparing rows.
    Source: M 0x08, 0x08D.
    """

    name: str
    elements: Count
    dtype: Dtype
    direction: Literal["read", "write"]
    phase: str
    multiplicity: Count = 1
    boundary: str = HBM
    assumption: str = field(default="the whole payload crosses once", compare=False)


@dataclass(frozen=True, kw_only=True, order=True)
class StateObject(Record):
    """One state tensor, declared or seen: whose it is, its shape, dtype and place, its payload. Source: M 0x03J."""

    role: str
    tensor: str
    shape: tuple[Count, ...]
    dtype: str
    device: str
    bytes: Count

    @property
    def name(self) -> str:
        return f"{self.role} of {self.tensor}, {list(self.shape)} {self.dtype} on {self.device}, {self.bytes:,} B"


@dataclass(frozen=True, kw_only=True)
class Candidate(Record):
    """A region that may be recomputed: bytes this takes off the peak, FLOPs it adds. Source: M 0x04I."""

    name: str
    saved: Count
    flops: Count
