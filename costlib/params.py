"""How many numbers does a model learn, and under which meaning of the word? (M 0x02)

Everything is counted from an ArchitectureManifest, in scalars, by exact integers. Batch and sequence
do not occur: a workload changes how often a weight is used, not how many there are.
"""

from costlib.domain import Size
from costlib.exercise import Unfilled, exercise
from costlib.ledger import Ledger
from costlib.records import ArchitectureManifest, StateEntry, Tensor

LAB = "03"


@exercise
def attention_weights(arch: ArchitectureManifest) -> int:
    """Scalars in the q, k, v and o projection matrices of one block; biases and qk-norms left out.

    Stored shapes: q [d_q, d], k and v [d_kv, d], o [d, d_q]. Unit: scalars per block.
    Source: M 0x02, 0x02B.
    """
    raise Unfilled


@exercise
def attention_biases(arch: ArchitectureManifest) -> int:
    """Bias scalars of the attention projections of one block, one per output row of each matrix.

    attention_bias "none", "qkv" (o has none) or "all". Unit: scalars per block.
    Source: M 0x02, 0x02B.
    """
    raise Unfilled


@exercise
def mlp_weights(arch: ArchitectureManifest, width: Size) -> int:
    """Scalars in the matrices of one MLP of that width: gate, up and down if gated, else two.

    The width is an argument because an expert has its own. Unit: scalars.
    Source: M 0x02, 0x02C.
    """
    raise Unfilled


@exercise
def mlp_biases(arch: ArchitectureManifest) -> int:
    """Bias scalars of the dense MLP of one block, one per output row of each matrix; 0 without mlp_bias.

    Unit: scalars per block.
    Source: M 0x02, 0x02C.
    """
    raise Unfilled


@exercise
def norm_scalars(arch: ArchitectureManifest, width: Size) -> int:
    """Scalars of one norm over `width` features: a scale for RMSNorm, scale and shift for LayerNorm.

    Unit: scalars.
    Source: M 0x02, 0x02D-normalization.
    """
    raise Unfilled


@exercise
def position_scalars(arch: ArchitectureManifest) -> int:
    """Learned scalars of the position scheme: a [max_positions, d] table, or none.

    Rotary and sinusoidal tables are generated; stored, they are buffers. Unit: scalars.
    Source: M 0x02, 0x02D-positions.
    """
    raise Unfilled


@exercise(unit="scalars", convention="unique learned scalars; a tied head has no matrix of its own")
def vocabulary(arch: ArchitectureManifest) -> Ledger:
    """Return {"embedding", "head", "head_bias"}: the input table, the output matrix, its bias.

    A tied head shares the embedding's tensor: 0 scalars of its own. The bias, if declared, has
    vocab_size scalars, tied or not.
    Source: M 0x02, 0x02D-vocabulary.
    """
    raise Unfilled


@exercise(unit="scalars", convention="unique learned scalars of one dense block")
def block(arch: ArchitectureManifest) -> Ledger:
    """Return {"attention.weights", "attention.biases", "mlp.weights", "mlp.biases", "norms"} of one
    block with a dense MLP of arch.intermediate_size.

    norms: arch.norms_per_block norms of width d, and arch.qk_norm_scalars beside them.
    Source: M 0x02, 0x02E.
    """
    raise Unfilled


@exercise(unit="scalars", convention="one mixture of experts, in place of one block's MLP")
def expert_block(arch: ArchitectureManifest) -> Ledger:
    """Return {"router", "shared", "routed.active", "routed.idle"} of the experts of one block.

    The router is one [num_experts, d] matrix; of the routed experts, experts_per_token are active
    for a token and the rest idle; shared experts always run. All have experts.intermediate_size.
    Refused: a manifest without experts (MISSING).
    Source: M 0x02, 0x02E.
    """
    raise Unfilled


@exercise(unit="scalars", convention="unique learned scalars; aliases counted once; buffers left out")
def ledger(arch: ArchitectureManifest) -> Ledger:
    """The whole inventory of unique learned scalars, every declared part by name.

    Return {"blocks.attention", "blocks.mlp", "blocks.experts", "blocks.norms", "embedding",
    "positions", "final_norm", "head", "extra"}: block rows over all layers, biases with their
    matrices, a head's bias with the head. Of num_layers blocks, expert_layers have experts in place
    of the MLP. A part that the manifest declares absent is a row of 0. `extra` is the sum of the
    extra_trainable_sets' numel.
    Source: M 0x02, 0x02E.
    """
    raise Unfilled


@exercise
def unique_scalars(tensors: tuple[Tensor, ...]) -> int:
    """Scalars of stored tensors, one that is an alias of another counted once.

    numel is the product of the shape. Unit: scalars.
    Source: M 0x02, 0x02A.
    """
    raise Unfilled


@exercise
def inventory(entries: tuple[StateEntry, ...]) -> dict:
    """Count what a running model shows, five ways. The answers overlap, so they are no ledger.

    Return {"unique": one entry per storage among parameters, "trainable": those of them with
    trainable=True, "named": every parameter name, aliases included, "state_entries": every name
    that a checkpoint would hold, persistent buffers included, "buffers": persistent ones}.
    Unit: scalars.
    Source: M 0x02, 0x02H.
    """
    raise Unfilled


@exercise
def coordinates(arch: ArchitectureManifest) -> dict:
    """Three meanings of N: return {"unique", "used", "kaplan"}.

    unique: ledger(arch).total. used: scalars in matrices that every token is multiplied with, that is
    attention, MLP (of experts: router, shared and active routed ones) and the output head, tied or
    not; no norms, no biases, no embedding lookup, no positions, no extras. kaplan: used without the
    output head. Unit: scalars.
    Source: M 0x02, 0x02I.
    """
    raise Unfilled
