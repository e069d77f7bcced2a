"""Which model, in which run, is being counted? Nothing is counted before this is settled. (M 0x01)

The records themselves, their canonical JSON and their refusals are given in `costlib.records`; here
stand the rules behind them. `arch` is an ArchitectureManifest, d its hidden_size.
"""

from dataclasses import fields
from typing import Literal

from costlib.domain import Count, Size
from costlib.exercise import Unfilled, exercise
from costlib.records import ArchitectureManifest, StateEntry, Workload

LAB = "02"

FIELDS = tuple(field.name for field in fields(ArchitectureManifest))
REQUIRED = {  # what a manifest cannot leave out, and the JSON type of each
    "manifest_id": str,
    "num_layers": int,
    "hidden_size": int,
    "num_attention_heads": int,
    "num_key_value_heads": int,
    "head_dim": int,
    "intermediate_size": int,
    "vocab_size": int,
    "tie_word_embeddings": bool,
}
Part = Literal[
    "embed_tokens", "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "norm", "lm_head"
]
BLOCK = {  # path of a tensor inside a block -> which part it is
    "input_layernorm": "norm",
    "self_attn.q_proj": "q_proj",
    "self_attn.k_proj": "k_proj",
    "self_attn.v_proj": "v_proj",
    "self_attn.o_proj": "o_proj",
    "post_attention_layernorm": "norm",
    "mlp.gate_proj": "gate_proj",
    "mlp.up_proj": "up_proj",
    "mlp.down_proj": "down_proj",
}
VOCABULARY = {  # every spelling of a workload's extents in M -> the one that this course uses
    "batch_size": "batch_size",
    **dict.fromkeys(("new_rows", "new_input_length", "new_tokens", "newly_projected_rows", "S_new"), "new_rows"),
    **dict.fromkeys(("query_length", "query_tokens", "query_rows", "S_q"), "new_rows"),
    **dict.fromkeys(("visible_rows", "key_value_length", "visible_kv_tokens", "visible_kv_rows", "S_k"), "visible_rows"),
}
GATE = {  # M 0x01I: one question for each contract of M 0x00D
    "architecture": "Which model is it exactly, and which tensors does its checkpoint store?",
    "workload": "Which phase, how many rows, which logits, which state before and after?",
    "representation": "Which dtype has this kind of state?",
    "ownership": "Is the tensor whole, or is it what one rank keeps of it?",
    "convention": "What counts as an operation, what as a transfer, in which unit?",
    "observation": "Derived, reported by a source, or measured, and by which artifact?",
}


def llama_like(arch: ArchitectureManifest) -> bool:
    """Whether every optional field has its default: gated MLP, two RMSNorms, no bias, no experts, no extras."""
    return arch == ArchitectureManifest(**{name: getattr(arch, name) for name in REQUIRED})


@exercise
def widths(arch: ArchitectureManifest) -> dict:
    """Return {"d_q": packed query width, "d_kv": packed key width, "group": query heads per K/V head}.

    From the head counts and head_dim, as arch.d_q and arch.d_kv do it; d need not equal d_q, and
    head_dim need not be d over the heads. Unit: scalars per row; group: heads.
    Source: M 0x01, 0x01A.
    """
    raise Unfilled


@exercise
def training(batch: Size, rows: Size, workload_id: str) -> Workload:
    """The workload of a full-sequence training step: `batch` sequences of `rows` rows, logits "all".

    Every row is new and every row is visible; extents are those of one sequence.
    Refused: TYPE, NONPOS.
    Source: M 0x01, 0x01B.
    """
    raise Unfilled


@exercise
def prefill(batch: Size, rows: Size, workload_id: str) -> Workload:
    """The workload of a prompt's first pass, nothing cached before it: `rows` new rows, logits "final".

    Refused: TYPE, NONPOS.
    Source: M 0x01, 0x01B.
    """
    raise Unfilled


@exercise
def prefill_chunk(batch: Size, prefix: Count, new: Size, workload_id: str) -> Workload:
    """The workload of a prompt's next chunk: `new` rows after `prefix` cached ones, logits "final".

    Its phase is "prefill-chunk": a prefill that sees more than its own rows is another workload.
    Refused: TYPE, NEG, NONPOS.
    Source: M 0x01, 0x01B.
    """
    raise Unfilled


@exercise
def decode(batch: Size, prefix: Count, workload_id: str) -> Workload:
    """The workload of one decode step: one new row per sequence, logits "final".

    `prefix` is how many rows were cached before the step; the new row sees those and itself.
    Refused: TYPE, NEG, NONPOS.
    Source: M 0x01, 0x01B.
    """
    raise Unfilled


@exercise
def one_vocabulary(data: dict) -> dict:
    """A workload's extents under the names of this course, batch_size, new_rows and visible_rows.

    VOCABULARY lists every other spelling. Query rows are the new rows. Values are kept as they are.
    Refused: a key that is not in VOCABULARY (UNDECLARED), two spellings of one extent with
    different values (INCONSISTENT).
    Source: M 0x01, 0x01D.
    """
    raise Unfilled


@exercise
def embedding_activation(arch: ArchitectureManifest, workload: Workload) -> dict:
    """What the embedding takes in and puts out: {"ids": token ids, "hidden": scalars of the rows}.

    Rows are gathered from the table by id, and only new rows are. A one-hot [B, S, V] is never
    made. Ids are integers and hidden rows floats, so this is no ledger. Units: ids and scalars.
    Source: M 0x01, 0x01E.
    """
    raise Unfilled


@exercise
def stored_shape(arch: ArchitectureManifest, part: Part) -> tuple[int, ...]:
    """The shape in which a checkpoint keeps a part of a dense block, or a vocabulary matrix.

    Linear layers are kept as [out, in]; embed_tokens is [V, d], one row per token; norm is a scale
    of d. A tied lm_head keeps its name and shape. Unit: scalars per axis.
    Refused: ENUM; "gate_proj" of a two-matrix MLP (UNDECLARED).
    Source: M 0x01, 0x01G.
    """
    raise Unfilled


@exercise
def logical_shape(arch: ArchitectureManifest, part: Part) -> tuple[int, ...]:
    """The axes of the same part in row-vector algebra: Y = X W with W [in, out].

    The embedding is a selection of rows of E [V, d], in both views; a norm has one axis.
    Unit: scalars per axis. Refused: as stored_shape.
    Source: M 0x01, 0x01G.
    """
    raise Unfilled


@exercise
def expected_shapes(arch: ArchitectureManifest) -> dict:
    """Every parameter name of a Llama-like checkpoint -> its stored shape.

    "model.embed_tokens.weight", then "model.layers.{i}.{path}.weight" for i from 0 and every path of
    BLOCK, then "model.norm.weight" and "lm_head.weight", tied or not.
    Refused: a manifest that is not llama_like(arch), which needs another adapter (UNDECLARED).
    Source: M 0x01, 0x01H.
    """
    raise Unfilled


@exercise
def missing(arch: ArchitectureManifest, entries: tuple[StateEntry, ...]) -> tuple[str, ...]:
    """Names that the manifest declares and the model does not show as parameters, sorted.

    Declared is every name in costlib.schema.tensor_rows(arch), the name of a tied head too.
    A sum of scalars proves nothing, and a buffer of that name is not the parameter. Unit: names.
    Source: M 0x01, 0x01H.
    """
    raise Unfilled


@exercise
def undeclared(arch: ArchitectureManifest, entries: tuple[StateEntry, ...]) -> tuple[str, ...]:
    """Names of parameters that the model shows and the manifest does not declare, sorted.

    Frozen parameters are parameters; buffers are not. What extra_trainable_sets names is declared.
    Unit: names.
    Source: M 0x01, 0x01H.
    """
    raise Unfilled


@exercise
def field_violations(data: dict) -> tuple[str, ...]:
    """What is wrong with the required fields of a raw manifest, each field alone, in REQUIRED's order.

    At most one word per field: "MISSING name"; else "TYPE name" unless its type is exactly
    REQUIRED[name]; else, for an int below 1, "NONPOS name". All of them, not the first.
    Source: M 0x01, 0x01H.
    """
    raise Unfilled


@exercise
def violations(data: dict) -> tuple[str, ...]:
    """All that is wrong with a raw manifest: field_violations, then "DIVIS num_key_value_heads" where
    both head counts are sound and one does not divide the other, then "UNDECLARED key" for every
    key, in the order of `data`, that is not in FIELDS.

    The values of optional fields are left to the record.
    Source: M 0x0A, 0x0AB.
    """
    raise Unfilled


@exercise
def unanswered(answers: dict) -> tuple[str, ...]:
    """The questions of GATE that have no answer, in its order: a number may be published when none is.

    An answer is a text. None, an absent key, and a text of nothing but white space are none.
    Source: M 0x01, 0x01I.
    """
    raise Unfilled
