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

    norms: arch.norms_per_block norms of width d and, with qk_norm, `qk_norm_scalars`.
    Source: M 0x02, 0x02E.
    """
    raise Unfilled


def qk_norm_scalars(arch: ArchitectureManifest) -> int:
    """Scales that normalize queries and keys in one block: over one head each, or over the packed width."""
    return {"none": 0, "per-head": 2 * arch.head_dim, "packed": arch.d_q + arch.d_kv}[arch.qk_norm]


@exercise(unit="scalars", convention="one mixture of experts, in place of one block's MLP")
def expert_block(arch: ArchitectureManifest) -> Ledger:
    """Return {"router", "shared", "routed.active", "routed.idle"} of the experts of one block.

    The router is one [num_experts, d] matrix; of the routed experts, experts_per_token are active
    for a token and the rest idle; shared experts always run. All have experts.intermediate_size.
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
    """Three meanings of N. Return
    {"unique": ledger(arch).total,
     "used": scalars in matrices that every token is multiplied with: attention, MLP (of experts: router,
             shared and active routed ones) and the output head, tied or not; no norms, no biases,
             no embedding lookup, no positions, no extras,
     "kaplan": "used" without the output head}.
    Source: M 0x02, 0x02I.
    """
    raise Unfilled


def tensor_rows(arch: ArchitectureManifest) -> tuple[Tensor, ...]:
    """Every tensor a checkpoint of this model stores: name, shape in stored axes, dtype, alias.

    Names follow Llama's state_dict where it has them. A tied head is a row with `alias_of`.
    Source: M 0x02, 0x02A.
    """
    d, e = arch.hidden_size, arch.experts
    rows = []

    def add(name, shape, bias=False, alias_of=None):
        rows.append(Tensor(name=f"{name}.weight", shape=shape, alias_of=alias_of))
        if bias:
            rows.append(Tensor(name=f"{name}.bias", shape=shape[:1]))

    def mlp(prefix, width, bias=False):
        for name in ("gate_proj", "up_proj", "down_proj")[arch.mlp == "two-matrix" :]:
            add(f"{prefix}.{name}", (d, width) if name == "down_proj" else (width, d), bias)

    def norm(name, width):
        add(name, (width,), arch.norm == "layernorm")

    add("model.embed_tokens", (arch.vocab_size, d))
    if arch.position == "learned":
        add("model.embed_positions", (arch.max_positions, d))
    for i in range(arch.num_layers):
        layer, qkv = f"model.layers.{i}", arch.attention_bias != "none"
        for j in range(arch.norms_per_block):
            norm(f"{layer}.{('input_layernorm', 'post_attention_layernorm')[j] if j < 2 else f'norm_{j}'}", d)
        for name, width in (("q_proj", arch.d_q), ("k_proj", arch.d_kv), ("v_proj", arch.d_kv)):
            add(f"{layer}.self_attn.{name}", (width, d), qkv)
        add(f"{layer}.self_attn.o_proj", (d, arch.d_q), arch.attention_bias == "all")
        for name, width in (("q_norm", arch.d_q), ("k_norm", arch.d_kv)):
            if arch.qk_norm != "none":
                add(f"{layer}.self_attn.{name}", (arch.head_dim if arch.qk_norm == "per-head" else width,))
        if e and i >= e.first_dense_layers:
            add(f"{layer}.mlp.gate", (e.num_experts, d))
            for j in range(e.num_experts):
                mlp(f"{layer}.mlp.experts.{j}", e.intermediate_size)
            for j in range(e.shared_experts):
                mlp(f"{layer}.mlp.shared_experts.{j}", e.intermediate_size)
        else:
            mlp(f"{layer}.mlp", arch.intermediate_size, arch.mlp_bias)
    if arch.final_norm:
        norm("model.norm", d)
    add("lm_head", (arch.vocab_size, d), arch.head_bias, "model.embed_tokens.weight" if arch.tie_word_embeddings else None)
    return (*rows, *arch.extra_trainable_sets)
