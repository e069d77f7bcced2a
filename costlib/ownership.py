"""Which bytes does one rank keep, which does it gather for a moment, and what does it send? (M 0x07)

How many ranks there are says nothing about how an object is cut: every division here names the object
and the group that shares it. A shard is a whole number of values, and the padding this takes is declared.
"""

from itertools import pairwise
from typing import Literal

from costlib import params
from costlib.domain import Count, Size, Stage
from costlib.exercise import Unfilled, exercise
from costlib.ledger import Ledger
from costlib.policies import Dtype, Grouping, Ownership, StatePolicy
from costlib.records import ArchitectureManifest

LAB = "08"

Kind = Literal["all-gather", "reduce-scatter", "all-reduce"]


def sharded_from(role: str) -> int:
    """The first ZeRO stage that cuts a state row: 3 the weights, 2 gradients of any kind, 1 everything else."""
    return {"weights": 3, "gradients": 2}.get(role.partition(".")[0], 1)


def stage_blocks(arch: ArchitectureManifest, stages: int) -> list[tuple[int, ...]]:
    """Scalars of each block of each pipeline stage; the first stages take the blocks that do not divide."""
    dense = params.block(arch).total
    mixed = dense - params.block(arch)["mlp"] + params.expert_block(arch).total if arch.experts else 0
    blocks = (dense,) * (arch.num_layers - arch.expert_layers) + (mixed,) * arch.expert_layers
    each, more = divmod(arch.num_layers, stages)
    return [blocks[a:b] for a, b in pairwise(i * each + min(i, more) for i in range(stages + 1))]


@exercise
def shard(count: Count, degree: Size) -> dict:
    """Cut `count` values into `degree` equal pieces: return {"shard", "padding"}.

    shard: values of one piece, rounded up. padding: values that all pieces hold beyond `count`.
    Unit: values. Refused: TYPE, NEG, a degree of 0 (NONPOS).
    Source: M 0x07, 0x07A.
    """
    raise Unfilled


@exercise
def mesh(layout: Ownership, rank: Count = 0) -> dict:
    """The groups of a rank: return {"tensor", "context", "data", "pipeline"}, tuples of ascending ranks.

    The rank itself is in each. Ranks are numbered along the tensor axis first, then context, data and
    pipeline. Unit: rank numbers. Refused: a rank that the world does not have (RANGE).
    Source: M 0x07, 0x07A.
    """
    raise Unfilled


@exercise(unit="B", convention="persistent state of one data-parallel rank; activations and buffers left out")
def rank_state(policy: StatePolicy, params: Count, stage: Stage, degree: Size) -> Ledger:
    """Bytes of every state row on one of `degree` data-parallel ranks: return {role: bytes}.

    Stage 0 is plain data parallelism: everything whole. From stage sharded_from(role) on, a row is
    cut and the rank holds shard(params, degree) values of it, row.copies times; state.bytes_of_weights
    says what they weigh. All `params` are trained. Unit: B per rank. Refused: TYPE, NEG, NONPOS, RANGE.
    Source: M 0x07, 0x07B.
    """
    raise Unfilled


@exercise(unit="B", convention="persistent state of all data-parallel ranks together")
def cluster_bytes(policy: StatePolicy, params: Count, stage: Stage, degree: Size) -> Ledger:
    """The same rows over all ranks: return {"unique", "replicas", "padding"}.

    unique: one copy of every row. replicas: the further copies of rows that the stage leaves whole.
    padding: what cutting adds. The total is degree times rank_state. Unit: B.
    Source: M 0x07, 0x07C.
    """
    raise Unfilled


@exercise(unit="scalars", convention="unique learned scalars by FSDP group; each belongs to exactly one")
def fsdp_groups(arch: ArchitectureManifest, grouping: Grouping) -> Ledger:
    """Scalars of every group that is gathered as one.

    "root": {"root": all}. "blocks": {"blocks.0", "blocks.1", ..., "root"}. "blocks-and-ends":
    {"blocks.0", ..., "embedding", "head", "root"}, with the head's bias in the head. Root takes what
    no other group has: the final norm at least. stage_blocks gives the blocks. Refused: ENUM.
    Source: M 0x07, 0x07D.
    """
    raise Unfilled


@exercise
def fsdp_group(params: Count, degree: Size, dtype: Dtype = "bf16") -> dict:
    """One group cut over `degree` ranks: return {"full", "shard", "missing"} in bytes.

    shard: what a rank keeps. full: the group, padding included. missing: what peers send. Unit: B per rank.
    Source: M 0x07, 0x07D.
    """
    raise Unfilled


@exercise
def fsdp_events(groups: Size, reshard: bool, prefetch: Count = 0) -> tuple:
    """What a rank does in one step with groups 0, 1, ...: a tuple of (action, group) pairs.

    Forward goes up, backward down. At each group: ("gather", g) for it and the next `prefetch` ones of
    the same direction, where not yet held; ("forward", g) or ("backward", g); after backward
    ("reduce-scatter", g); then ("free", g), which reshard=False leaves out in forward.
    Source: M 0x07, 0x07E.
    """
    raise Unfilled


@exercise
def materialized_peak(sizes: tuple[Count, ...], reshard: bool, prefetch: Count = 0) -> int:
    """The most scalars held gathered at once, over fsdp_events of groups of those sizes.

    Left out: persistent shards, gradients, activations. Unit: scalars. Refused: no group (NONPOS).
    Source: M 0x07, 0x07D.
    """
    raise Unfilled


@exercise
def collective(kind: Kind, elements: Count, dtype: Dtype, group: Size, repeats: Size = 1) -> dict:
    """What one rank of the group puts in, gets out and sends: return {"input", "output", "ring_send"}.

    `elements` is the full tensor, padded to equal shards. all-gather: shard in, all out. reduce-scatter:
    all in, shard out. all-reduce: all in, all out. ring_send: what a rank passes on in an ideal ring, over
    all repeats; input and output are one call's. Left out: routes, headers, links. Unit: B per rank.
    Refused: any other kind (ENUM), a group of 0 (NONPOS).
    Source: M 0x07, 0x07F.
    """
    raise Unfilled


@exercise
def tensor_shard(m: Size, k: Size, n: Size, split: Literal["column", "row"], degree: Size) -> dict:
    """One rank's part of [m, k] @ [k, n]: return {"input", "weight", "output", "collective"}.

    The first three are shapes. "column" cuts the weight's n (axis 0 as stored, [out, in]), needs the
    whole input and no sum: collective "none". "row" cuts k; each rank's output is a full-sized part of
    a sum: "all-reduce". Refused: an extent that the degree does not divide (DIVIS).
    Source: M 0x07, 0x07G.
    """
    raise Unfilled


@exercise
def rank_extents(arch: ArchitectureManifest, degree: Size, vocab_multiple: Size = 1) -> dict:
    """What a tensor-parallel rank sees of these fields: return {"num_attention_heads",
    "num_key_value_heads", "intermediate_size", "vocab_size"}.

    Query heads and MLP width are divided; K/V heads down to one, which several ranks then hold;
    vocabulary rows after padding to a multiple of degree * vocab_multiple. Unit: heads, features, rows.
    Refused: what does not divide, K/V heads either way round (DIVIS); experts, which nobody owns (UNDECLARED).
    Source: M 0x07, 0x07G.
    """
    raise Unfilled


@exercise(unit="scalars", convention="held by one tensor-parallel rank; norms and row-parallel biases whole")
def tensor_parallel_rank(arch: ArchitectureManifest, degree: Size, vocab_multiple: Size = 1) -> Ledger:
    """Return the rows of params.ledger, as a dict, as one rank holds them.

    Cut: q, k, v, gate, up and their biases, o, down, the vocabulary. Whole on every rank: norms, the
    biases of o and down, learned positions, extra sets. Refused: as rank_extents.
    Source: M 0x07, 0x07G.
    """
    raise Unfilled


@exercise(unit="scalars", convention="held by each pipeline stage; a tied table on both its ends")
def pipeline_stages(arch: ArchitectureManifest, stages: Size) -> Ledger:
    """Scalars of every stage: return {"stages.0", "stages.1", ...}.

    Blocks as stage_blocks deals them out; embedding and positions on the first, final norm and head
    on the last. A tied table is stored on both, if they are two. Refused: more stages than layers
    (RANGE); extra_trainable_sets, which nothing assigns (UNDECLARED).
    Source: M 0x07, 0x07H.
    """
    raise Unfilled


@exercise
def in_flight(schedule: Literal["gpipe", "1f1b"], stage: Count, stages: Size, microbatches: Size) -> int:
    """Microbatches whose activations stage 0, 1, ... holds at most.

    gpipe: all forward, then all backward. 1f1b: one forward for every stage from this one to the
    last, if there are so many, then a backward before each further forward. Unit: microbatches.
    Refused: a stage that is not there (RANGE), another schedule (ENUM).
    Source: M 0x07, 0x07H.
    """
    raise Unfilled


@exercise
def boundary_bytes(batch: Size, rows: Size, hidden_size: Size, dtype: Dtype = "bf16", degree: Size = 1) -> int:
    """Bytes of one [batch, rows, hidden_size] residual on a rank, its rows shared by `degree` ranks.

    degree 1: the payload of a pipeline boundary, forward, and its gradient's backward. Otherwise a
    sequence or context shard. Unit: B. Refused: rows that do not divide (DIVIS).
    Source: M 0x07, 0x07H.
    """
    raise Unfilled


@exercise
def context_missing(arch: ArchitectureManifest, batch: Size, rows: Size, degree: Size, dtype: Dtype = "bf16") -> dict:
    """K and V of one layer under context parallelism: return {"full", "shard", "missing"} in bytes.

    full: all rows. shard: a rank's own. missing: what its queries must see and its peers hold.
    Unit: B per rank and layer. Refused: rows that do not divide (DIVIS).
    Source: M 0x07, 0x07H.
    """
    raise Unfilled


@exercise(unit="B", convention="persistent state of one rank of each pipeline stage")
def compose(policy: StatePolicy, arch: ArchitectureManifest, layout: Ownership) -> Ledger:
    """State of one rank of every stage: return {"stages.0", ...}.

    In order: tensors to stages, each tensor's cut inside its stage, ZeRO over that part's data group alone.
    Context parallelism cuts rows of tokens and no weight. Unit: B per rank. Refused: as the steps do.
    Source: M 0x07, 0x07I.
    """
    raise Unfilled
