"""What must be in memory at once between forward and backward? Saved objects, lifetimes, the peak. (M 0x04)

One device, nothing sharded. The coefficients 34 and 5 belong to one paper's block (Korthikanti et
al.): multi-head attention, a GeLU MLP of width 4h, LayerNorm, dropout, fp16. `paper_gaps` says what a
manifest has in place of that; for such a model the numbers are a projection.
b sequences of s tokens, hidden width h, a heads.
"""

from fractions import Fraction
from typing import Literal, get_args

from costlib.domain import Count, Size, require
from costlib.exercise import Unfilled, exercise
from costlib.ledger import Ledger
from costlib.policies import Candidate, Dtype, LiveObject, Role
from costlib.records import ArchitectureManifest, Workload

LAB = "05"
Policy = Literal["none", "selective", "boundary", "offload"]
SameInstant = Literal["release-first", "birth-first"]
ROLES = get_args(Role)
MOST_REGIONS = 16

SAVED_FOR = {  # row -> the backward formula that asks for it
    "attention.input": "dW of the Q, K and V projections",
    "attention.query_key": "dQ needs K, dK needs Q",
    "attention.scores.softmax": "softmax backward multiplies with its output",
    "attention.scores.mask": "dropout backward zeroes the same entries",
    "attention.scores.dropped": "dV of the value mix",
    "attention.value": "gradient of the dropped probabilities",
    "attention.context": "dW of the output projection",
    "attention.mask": "dropout backward on the residual branch",
    "mlp.input": "dW of the first matrix",
    "mlp.gelu": "GeLU backward needs its input",
    "mlp.hidden": "dW of the second matrix",
    "mlp.mask": "dropout backward on the residual branch",
    "norms.first": "norm backward needs its input",
    "norms.second": "norm backward needs its input",
}


@exercise
def tensor_bytes(shape: tuple[Size, ...], dtype: Dtype) -> int:
    """Bytes of one materialized tensor: every extent counts, BITS[dtype] bits a scalar, whole bytes.

    Left out: padding and allocator rounding. An empty shape is one scalar; half a byte is rounded
    up. Unit: B. Refused: TYPE, NONPOS, ENUM.
    Source: M 0x04, 0x04B.
    """
    raise Unfilled


@exercise
def score_elements(arch: ArchitectureManifest, workload: Workload) -> int:
    """Scalars in one layer's score tensor QK^T, [batch, heads, query rows, key rows], if it is materialized.

    GQA stores fewer K/V heads; each serves several query heads. The full rectangle, masked entries
    included. Unit: scalars per layer.
    Source: M 0x04, 0x04B.
    """
    raise Unfilled


@exercise(unit="B", convention="saved for backward in one layer: MHA, GeLU MLP of 4h, LayerNorm, fp16, one-byte masks")
def korthikanti(b: Size, s: Size, h: Size, a: Size) -> Ledger:
    """Bytes that one layer of the paper's block keeps for its backward, object by object.

    Return one row for every key of SAVED_FOR, in that order. Tensors are [b, s, h], at 2 bytes a
    scalar; gelu and hidden are [b, s, 4h]; query_key is two tensors; the rows under
    attention.scores are [b, a, s, s]; a mask has 1 byte an entry.
    Not modelled: GQA and SwiGLU, models without dropout (leave the masks out), norm statistics,
    embeddings, final norm, loss. Unit: B per layer. Refused: TYPE, NONPOS.
    Source: M 0x04, 0x04E.
    """
    raise Unfilled


@exercise
def crossover(h: Size, a: Size) -> Fraction:
    """Sequence length at which the rows under attention.scores weigh as much as all others together.

    Exact. Unit: tokens. Refused: TYPE, NONPOS.
    Source: M 0x04, 0x04F.
    """
    raise Unfilled


@exercise
def retained(b: Size, s: Size, h: Size, a: Size, layers: Size, policy: Policy) -> int:
    """Bytes that stay on the device from the forward to the backward pass, all layers: no peak yet.

    "none" recomputes nothing and keeps every row; "selective" drops the rows under
    attention.scores; "boundary" keeps one 2-byte [b, s, h] input a layer; "offload" moves every row
    to the host. Unit: B. Refused: TYPE, NONPOS, ENUM.
    Source: M 0x04, 0x04G.
    """
    raise Unfilled


@exercise
def peak(b: Size, s: Size, h: Size, a: Size, layers: Size, policy: Policy) -> int:
    """Retained bytes plus the one region that is there again while its backward runs.

    The region: "none" nothing, "selective" one layer's attention.scores, "boundary" and "offload"
    one whole layer. Left out: gradients, workspace, the allocator. A rerun that works on the
    boundary itself, not on a copy, shares norms.first with it: 2bsh less (see `timeline`).
    Unit: B. Refused: TYPE, NONPOS, ENUM.
    Source: M 0x04, 0x04G.
    """
    raise Unfilled


@exercise
def coefficient_c(b: Size, s: Size, h: Size, a: Size, layers: Size, policy: Policy) -> Fraction:
    """The c for which B * T * d * L * c * 2 bytes are the retained bytes: an output, never an input.

    Exact; unit: 2-byte scalars per [b, s, h] entry and layer. Refused: TYPE, NONPOS, ENUM.
    Source: M 0x04, 0x04F.
    """
    raise Unfilled


@exercise
def added_cost(b: Size, s: Size, h: Size, a: Size, layers: Size, policy: Policy) -> dict:
    """What a policy costs in place of memory: return {"flops", "draws", "transfer", "host"}.

    flops: matrix products run once more, FMA = 2, full rectangle; QK^T and the value mix are
    4bs^2h a layer, the other products 24bsh^2. draws: mask entries that must come out as before.
    transfer: bytes over the host link, out and back. host: bytes kept there. "selective" reruns
    QK^T, softmax, dropout and value mix, "boundary" the whole layer. Units: FLOP, entries, B, B.
    Source: M 0x04, 0x04G.
    """
    raise Unfilled


@exercise
def unique_bytes(objects: tuple[LiveObject, ...]) -> int:
    """Bytes of all device storages, each once, whenever they live; `by_storage` groups the names.

    Unit: B. Refused: names of one storage that disagree about its bytes (INCONSISTENT).
    Source: M 0x04, 0x04C.
    """
    raise Unfilled


@exercise(unit="B", convention="device storages, each once; payload, no allocator rounding")
def live_at(objects: tuple[LiveObject, ...], instant: Count, same_instant: SameInstant = "release-first") -> Ledger:
    """M(instant): return one row for every role in ROLES, the bytes of its storages that are live, 0 for none.

    A storage is live if one of its names is, and has the role of its first name. Live means birth <=
    instant < death; under "birth-first" what dies at this instant is still there. Unit: B.
    Refused: TYPE, NEG, ENUM, INCONSISTENT.
    Source: M 0x04, 0x04C.
    """
    raise Unfilled


@exercise
def peak_cut(objects: tuple[LiveObject, ...], same_instant: SameInstant = "release-first") -> tuple:
    """(most bytes live at one instant, the first instant at which they are).

    Only a birth can raise the sum. Unit: B. Refused: no objects at all (MISSING): nothing declared
    is not a peak of zero; ENUM, INCONSISTENT.
    Source: M 0x04, 0x04H-liveness-cut.
    """
    raise Unfilled


@exercise(unit="B", convention="four readings of one instant, each minus the one before")
def memory_bridge(payload: Count, allocated: Count, reserved: Count, device_used: Count) -> Ledger:
    """From declared payload to device use, without giving the rest to activations.

    Return {"payload", "undeclared", "cached", "outside"}: undeclared is what the allocator handed
    out beyond the payload (negative where the payload counts something twice), cached what it
    reserves unused, outside what it does not see. They sum to device_used. Unit: B.
    Refused: TYPE, NEG, allocated above reserved or reserved above device_used (INCONSISTENT).
    Source: M 0x04, 0x04D.
    """
    raise Unfilled


@exercise
def choose_recompute(regions: tuple[Candidate, ...], fixed: Count, budget: Count) -> dict:
    """The regions to recompute so that the peak fits the budget at the least added FLOPs.

    The peak is `fixed`, which nothing removes, plus `saved` of every region not recomputed. Return
    {"status": "chosen", "recompute": names in the given order, "bytes": the peak, "flops": added}.
    Of equal FLOPs, the fewer regions; then those given first. If no choice fits, status is
    "infeasible" and the rest is that of recomputing everything. Units: B and FLOP.
    Refused: TYPE, NEG, more than MOST_REGIONS (RANGE), all 2**n choices are tried.
    Source: M 0x04, 0x04I.
    """
    raise Unfilled


def by_storage(objects: tuple[LiveObject, ...]) -> dict[str, list[LiveObject]]:
    """Storage -> its names on the device, in order; the host's objects are left out."""
    groups = {}
    for item in objects:
        if item.placement == "device":
            groups.setdefault(item.storage, []).append(item)
    for storage, group in groups.items():
        sizes = sorted({item.bytes for item in group})
        require(len(sizes) == 1, "INCONSISTENT", f"the names of storage {storage!r} say that it has {sizes} bytes")
    return groups


def timeline(b: int, s: int, h: int, a: int, layers: int, policy: str) -> tuple[LiveObject, ...]:
    """A step under a policy as objects: layer i runs forward at instant i, backward at 2 * layers - 1 - i.

    What is recomputed or fetched lives at these two instants only. A boundary is the same storage as
    its layer's norms.first, as in a rerun on the saved input itself.
    """
    rows, step = korthikanti(b, s, h, a), []
    for i in range(layers):
        back = 2 * layers - 1 - i
        for row, size in rows.items():
            again = policy in ("boundary", "offload") or (policy == "selective" and row.startswith("attention.scores"))
            spans = ((i, i + 1), (back, back + 1)) if again else ((i, back + 1),)
            step += [_kept(f"{i}.{row}", size, *span, "temporary" if again else "saved", SAVED_FOR[row]) for span in spans]
        if policy == "boundary":
            step.append(_kept(f"{i}.norms.first", rows["norms.first"], i, back + 1, "boundary", "the layer's rerun"))
        if policy == "offload":
            step.append(_kept(f"{i}.host", rows.total, i, back + 1, "saved", "the layer's backward", "host"))
    return tuple(step)


def _kept(name, size, birth, death, role, needed_by, placement="device"):
    return LiveObject(
        name=name, bytes=size, birth=birth, death=death, storage=name, role=role, placement=placement, needed_by=needed_by
    )


def paper_gaps(arch: ArchitectureManifest) -> tuple[str, ...]:
    """Where a manifest is not the block that 34 and 5 were counted on; empty for the paper's own kind.

    Dropout and dtype are no fields of a manifest: the paper's masks and fp16 stay assumed.
    """
    found = {
        f"{arch.num_key_value_heads} K/V heads, not {arch.num_attention_heads}": arch.d_kv != arch.d_q,
        f"queries {arch.d_q} wide, not h = {arch.hidden_size}": arch.d_q != arch.hidden_size,
        "a gated MLP, not GeLU": arch.mlp == "gated",
        f"d_ff = {arch.intermediate_size}, not 4h": arch.intermediate_size != 4 * arch.hidden_size,
        f"{arch.norm}, not LayerNorm": arch.norm != "layernorm",
        "experts": arch.experts is not None,
    }
    return tuple(text for text, holds in found.items() if holds)
