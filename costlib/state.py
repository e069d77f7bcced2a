"""Which copies of the parameters are in memory, at which point, and how many bytes is each? (M 0x03)

A StatePolicy lists the copies as rows; costlib.fixtures has six. Everything is the whole model's:
nothing is divided among ranks here. Activations, workspaces and the allocator's reserve are left out.
"""

from fractions import Fraction
from typing import Literal

from costlib.domain import Count, Size
from costlib.exercise import Unfilled, exercise
from costlib.ledger import Ledger
from costlib.policies import Dtype, StateObject, StatePolicy
from costlib.records import Tensor

LAB = "04"


@exercise
def bytes_of_weights(params: Count, dtype: Dtype) -> int:
    """Bytes of one dense tensor of `params` scalars: costlib.policies.BITS[dtype] bits each, rounded
    up to whole bytes.

    Left out: scales, zero-points and padding of fp8, int8 and int4 codes. Unit: B.
    Refused: TYPE, NEG, an unknown dtype (ENUM).
    Source: M 0x03, 0x03B.
    """
    raise Unfilled


@exercise
def spacing(mantissa_bits: Count, exponent: int = 0) -> Fraction:
    """Distance between neighbours in [2**exponent, 2**(exponent + 1)) of a format that stores that
    many fraction bits: 7 in bf16, 10 in fp16, 23 in fp32.

    Left out: subnormals and the ends of the range. Unit: that of the value, an exact Fraction.
    Refused: TYPE, NEG.
    Source: M 0x03, 0x03C.
    """
    raise Unfilled


def exponent_of(value: Fraction) -> int:
    """The e with 2**e <= |value| < 2**(e + 1), exactly; 0 for 0."""
    value = abs(Fraction(value))
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent - (0 < value < Fraction(2) ** exponent)


@exercise
def rounded_update(weight: Fraction, update: Fraction, mantissa_bits: Count) -> Fraction:
    """What the weight is after the update: weight + update, rounded once to the nearest value of the
    format, ties to the even one. Equal to `weight` where the update was too small to be seen.

    exponent_of(x) is given; Python's round(Fraction) rounds ties to even. Left out: overflow and
    subnormals. Unit: that of the weight. Refused: TYPE (write Fraction(1, 10**4), not 1e-4), NEG.
    Source: M 0x03, 0x03C.
    """
    raise Unfilled


@exercise(unit="scalars", convention="full-shape state carried from step to step; no master copy, no step counter")
def optimizer_slots(
    name: Literal["sgd", "momentum", "adam", "adamw", "amsgrad"], params: Count
) -> Ledger:
    """Scalars that an optimizer keeps between steps, one row per slot, from its recurrences.

    Rows, where the rule reads last step's value: "momentum" of momentum SGD; "m" and "v" of Adam and
    AdamW; "v_max", the running maximum of v, of AMSGrad besides. Plain SGD has no row: {}.
    Unit: scalars. Refused: TYPE, NEG, another name (ENUM).
    Source: M 0x03, 0x03D.
    """
    raise Unfilled


@exercise(unit="B", convention="tensor payload of the whole model, every row as if alive; GB = 10**9 B, GiB = 2**30 B")
def ledger(policy: StatePolicy, loaded: Count, trained: Count) -> Ledger:
    """Bytes of every row of a policy, {role: copies * bytes}, in the policy's order.

    row.counts says whether a row has `loaded` scalars (all unique ones of the model, frozen or not)
    or `trained` ones. A copy is an allocation: bytes are rounded up per copy. Nothing is divided by
    a world size. Unit: B. Refused: TYPE, NEG, trained above loaded (INCONSISTENT).
    Source: M 0x03, 0x03A.
    """
    raise Unfilled


@exercise
def alive(policy: StatePolicy, point: Literal["construction", "backward", "step", "zero-grad"]) -> tuple:
    """Roles that exist just after a point of the first training step, in the policy's order.

    The points in order are costlib.policies.POINTS: model loaded and optimizer constructed; first
    backward; first optimizer step; zero_grad(set_to_none=True). A row exists from row.created on,
    up to and not including row.released ("never" is after every point).
    Refused: TYPE, another point (ENUM).
    Source: M 0x03, 0x03G.
    """
    raise Unfilled


@exercise(unit="B", convention="tensor payload of the whole model, alive just after one point, in one place")
def resident(
    policy: StatePolicy,
    loaded: Count,
    trained: Count,
    point: Literal["construction", "backward", "step", "zero-grad"],
    placement: Literal["device", "host", "disk"] = "device",
) -> Ledger:
    """The rows of ledger(...) that are alive at that point and placed there: the sum of M 0x03A with
    both of its indicators.

    Left out: the allocator's reserve, which does not fall when a tensor is released. Unit: B.
    Refused: TYPE, NEG, ENUM, trained above loaded (INCONSISTENT).
    Source: M 0x03, 0x03A.
    """
    raise Unfilled


@exercise
def adafactor_state(rows: Size, columns: Size, momentum: bool = False) -> int:
    """Scalars that Adafactor keeps for a rows x columns matrix: one statistic per row and one per
    column in place of Adam's v, and a full first moment only if asked for.

    A vector is not factored: its v has as many scalars as it has. Unit: scalars. Refused: TYPE, NONPOS.
    Source: M 0x03, 0x03H-adafactor.
    """
    raise Unfilled


@exercise(unit="B", convention="m and v together; one fp32 scale per block and slot; the code book left out")
def eight_bit_adam(trained: Count, block: Size, exceptions: Count = 0) -> Ledger:
    """Bytes of the two moments in block-wise 8-bit codes, {"codes", "scales", "exceptions"}.

    `exceptions` of the trained scalars keep both moments in fp32 and have no codes. The others have
    a code of one byte per moment and, per moment and started block of `block` scalars, one fp32
    scale. Never less than 2 B per trained scalar. Unit: B. Refused: TYPE, NEG, NONPOS, more
    exceptions than trained scalars (INCONSISTENT).
    Source: M 0x03, 0x03H-eight-bit-adam.
    """
    raise Unfilled


@exercise(unit="B", convention="payload as stored, before a file format adds anything")
def checkpoint(policy: StatePolicy, loaded: Count, trained: Count, control: Count = 0) -> Ledger:
    """Bytes of what a restart needs: every row owned by "model" or "optimizer", wherever it is placed
    and whenever it is created, and a last row "control" as given (scheduler, scaler, counters,
    random states, data cursor). Gradients are not saved. Unit: B. Refused: TYPE, NEG, INCONSISTENT.
    Source: M 0x03, 0x03I.
    """
    raise Unfilled


def state_objects(
    policy: StatePolicy, tensors: tuple[Tensor, ...], point: str, frozen: tuple[str, ...] = ()
) -> tuple[StateObject, ...]:
    """The tensors that the policy declares at that point, one for each of the model's own storages: a
    row of trained scalars has none for tensors whose names start with one of `frozen`."""
    return tuple(
        StateObject(
            role=row.role,
            tensor=tensor.name,
            shape=tensor.shape,
            dtype=row.dtype,
            device=row.placement,
            bytes=bytes_of_weights(tensor.numel, row.dtype),
        )
        for row in policy.rows
        if row.role in alive(policy, point)
        for tensor in tensors
        if not tensor.alias_of and not (row.counts == "trained" and tensor.name.startswith(frozen))
        for _ in range(row.copies)
    )


@exercise
def reconcile(expected: tuple[StateObject, ...], observed: tuple[StateObject, ...]) -> dict:
    """Objects that one side has and the other has not, {"missing": declared and not seen,
    "unexpected": seen and not declared}, each a sorted tuple.

    Two objects are the same if every field is: role, tensor, shape, dtype, device and bytes. Each
    counts as often as it occurs. The state is closed where both are empty; equal totals close nothing.
    Unit: objects. Refused: TYPE.
    Source: M 0x03, 0x03J.
    """
    raise Unfilled
