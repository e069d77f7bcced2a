"""Lab 02: the manifest of M 0x01, from derived widths to everything that must be refused."""

import json

from costlib import data
from costlib.domain import ManifestError
from costlib.fixtures import (
    CLASSIC,
    DECODE_32K,
    ODD,
    ODD_EVERYTHING,
    PREFILL_4K,
    RUNNING,
    TOY,
    TOY_TIED,
    TRAIN_4K,
    TRAIN_ODD,
    W_7B,
    W_70B,
    W_MOE,
)
from costlib.records import ArchitectureManifest, StateEntry, Tensor, Workload
from costlib.schema import differences, state_entries, tensor_rows
from labs.spec import Exercise, Failure, Lab, Reference, Wrong, given

NARROW = RUNNING.replace(manifest_id="4b-wide-heads", num_layers=36, hidden_size=2560)  # d_q = 4096, not 2560
DOUBLE = RUNNING.replace(manifest_id="d_q-is-2d", num_attention_heads=64, num_key_value_heads=4)
MQA = RUNNING.replace(manifest_id="8b-mqa", num_key_value_heads=1)
ODD_ONE_TIED = ODD.replace(manifest_id="odd-one-tied", num_layers=1, tie_word_embeddings=True)
TOY_ONE = TOY.replace(manifest_id="toy-one", num_layers=1)
ODD_LORA = ODD.replace(manifest_id="odd-lora", extra_trainable_sets=(Tensor(name="lora.weight", shape=(3, 96)),))
MANY = (RUNNING, NARROW, DOUBLE, MQA, TOY, ODD, ODD_EVERYTHING, CLASSIC, W_7B, W_70B)


_changed = Reference("manifest").changed


def _right(name, *args):
    from solutions import manifest

    return getattr(manifest, name)(*args)


def _workload(workload_id, phase, batch, new, visible, logits):
    return Workload(
        workload_id=workload_id, phase=phase, batch_size=batch, new_rows=new, visible_rows=visible, logits=logits
    )


widths = Exercise(
    "widths",
    points=2,
    minutes=6,
    lines=5,
    hints=(
        "Every head is head_dim wide. How many heads does a query row have, and how many a key row?",
        "d_q = num_attention_heads * head_dim, d_kv = num_key_value_heads * head_dim; the group is their ratio, by //.",
    ),
    cases=(
        given(RUNNING).gives({"d_q": 4096, "d_kv": 1024, "group": 4}),
        given(TOY).gives({"d_q": 8, "d_kv": 4, "group": 2}),
        given(ODD).gives({"d_q": 120, "d_kv": 40, "group": 3}),
        given(NARROW).gives({"d_q": 4096, "d_kv": 1024, "group": 4}),
        given(DOUBLE).gives({"d_q": 8192, "d_kv": 512, "group": 16}),
        given(W_MOE).gives({"d_q": 16384, "d_kv": 16384, "group": 1}),
        given(MQA).gives({"d_q": 4096, "d_kv": 128, "group": 32}),
    ),
    wrong=(
        Wrong(
            "d-for-d-q",
            _changed("widths", lambda r, arch: {"d_q": arch.hidden_size}),
            "d_q is the hidden size here. That holds in many models and in no definition: it is H_q * d_h.",
        ),
        Wrong(
            "head-from-d",
            _changed(
                "widths",
                lambda r, arch: {
                    "d_q": arch.hidden_size // arch.num_attention_heads * arch.num_attention_heads,
                    "d_kv": arch.hidden_size // arch.num_attention_heads * arch.num_key_value_heads,
                },
            ),
            "You divided d by the heads to get their width. The manifest declares head_dim; read it.",
        ),
        Wrong(
            "mha-for-gqa",
            _changed("widths", lambda r, arch: {"d_kv": r["d_q"]}),
            "This d_kv is multi-head attention's. Keys have num_key_value_heads heads.",
        ),
        Wrong(
            "k-and-v",
            _changed("widths", lambda r, arch: {"d_kv": 2 * r["d_kv"]}),
            "Twice too wide: d_kv is the width of the keys alone. The values are another tensor, as wide.",
        ),
        Wrong(
            "group-of-kv",
            _changed("widths", lambda r, arch: {"group": arch.num_key_value_heads}),
            "That is the number of groups. Asked for is how many query heads share one K/V head.",
        ),
    ),
    shapes={"arch": MANY},
)

_TOKENS = "You put all rows of the batch into one sequence. Rows never see another sequence's rows: extents are per sequence."

training = Exercise(
    "training",
    points=1,
    minutes=4,
    lines=3,
    hints=(
        "A Workload has six fields: workload_id, phase, batch_size, new_rows, visible_rows, logits.",
        'In training every row is new and every row is visible: new_rows = visible_rows = rows; logits="all".',
    ),
    cases=(
        given(1, 4096, "train-full-4k").gives(_workload("train-full-4k", "training", 1, 4096, 4096, "all")),
        given(5, 56, "train-odd").gives(_workload("train-odd", "training", 5, 56, 56, "all")),
        given(8, 3, "short").gives(_workload("short", "training", 8, 3, 3, "all")),
        given(0, 56, "no-sequence").refuses("NONPOS"),
        given(1, 4096.0, "a-float").refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "final-logits",
            lambda batch, rows, workload_id: _workload(workload_id, "training", batch, rows, rows, "final"),
            'Training has a loss at every row: logits are "all".',
        ),
        Wrong(
            "tokens-as-rows",
            lambda batch, rows, workload_id: _workload(workload_id, "training", batch, batch * rows, batch * rows, "all"),
            _TOKENS,
        ),
        Wrong(
            "prefill-for-training",
            lambda batch, rows, workload_id: _workload(workload_id, "prefill", batch, rows, rows, "all"),
            "The extents are right, the phase is not: a backward pass follows this one.",
        ),
    ),
    shapes={"batch": (1, 4, 7), "rows": (56, 512, 4096), "workload_id": ("a", "b")},
)

prefill = Exercise(
    "prefill",
    points=1,
    minutes=3,
    lines=3,
    hints=(
        "The extents are those of training.",
        'One row per sequence, the last, decides the first token to emit: logits="final".',
    ),
    cases=(
        given(1, 4096, "prefill-4k").gives(_workload("prefill-4k", "prefill", 1, 4096, 4096, "final")),
        given(3, 17, "prompts").gives(_workload("prompts", "prefill", 3, 17, 17, "final")),
        given(6, 250, "batch").gives(_workload("batch", "prefill", 6, 250, 250, "final")),
        given(1, 0, "nothing").refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "all-logits",
            lambda batch, rows, workload_id: _workload(workload_id, "prefill", batch, rows, rows, "all"),
            "A prompt needs the logits of its last row only: the next token comes from there.",
        ),
        Wrong(
            "tokens-as-rows",
            lambda batch, rows, workload_id: _workload(workload_id, "prefill", batch, batch * rows, batch * rows, "final"),
            _TOKENS,
        ),
    ),
    shapes={"batch": (1, 4, 7), "rows": (56, 512, 4096), "workload_id": ("a", "b")},
)

prefill_chunk = Exercise(
    "prefill_chunk",
    points=2,
    minutes=5,
    lines=5,
    hints=(
        "Which rows are multiplied with the weights in this call, and which are only read from the cache?",
        "new_rows = new. A new row may read the cached rows and the chunk's own.",
        'phase="prefill-chunk", new_rows=new, visible_rows=prefix + new, logits="final".',
    ),
    cases=(
        given(1, 4096, 4096, "chunk-two").gives(_workload("chunk-two", "prefill-chunk", 1, 4096, 8192, "final")),
        given(3, 32, 16, "odd-chunk").gives(_workload("odd-chunk", "prefill-chunk", 3, 16, 48, "final")),
        given(2, 57, 9, "tail").gives(_workload("tail", "prefill-chunk", 2, 9, 66, "final")),
        given(1, -1, 16, "before-the-start").refuses("NEG"),
        given(1, 16, 0, "no-new-row").refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "prefix-forgotten",
            lambda batch, prefix, new, workload_id: _workload(workload_id, "prefill-chunk", batch, new, new, "final"),
            "The cached rows are not visible here. Then they were cached for nothing.",
        ),
        Wrong(
            "prefix-recomputed",
            lambda batch, prefix, new, workload_id: _workload(
                workload_id, "prefill-chunk", batch, prefix + new, prefix + new, "final"
            ),
            "The prefix is new again. It was projected in an earlier call; in this one it is only read.",
        ),
        Wrong(
            "prefix-as-visible",
            lambda batch, prefix, new, workload_id: _workload(workload_id, "prefill-chunk", batch, new, prefix, "final"),
            "The chunk does not see itself. Visible are the cached rows and the new ones.",
        ),
        Wrong(
            "one-row-more",
            lambda batch, prefix, new, workload_id: _workload(workload_id, "prefill-chunk", batch, new, prefix + 1, "final"),
            "One row more is the rule of decode, where one row is new. A chunk adds all its rows.",
        ),
    ),
    shapes={"batch": (1, 4, 7), "prefix": (64, 512, 4096), "new": (2, 17, 56), "workload_id": ("a", "b")},
)

decode = Exercise(
    "decode",
    points=2,
    minutes=5,
    lines=3,
    hints=(
        "It is a chunk of one row.",
        "The prefix is counted before the step, what is visible during it: the new row is there as well.",
        'phase="decode", new_rows=1, visible_rows=prefix + 1, logits="final".',
    ),
    cases=(
        given(1, 32767, "decode-visible-32k").gives(_workload("decode-visible-32k", "decode", 1, 1, 32768, "final")),
        given(5, 56, "odd-decode").gives(_workload("odd-decode", "decode", 5, 1, 57, "final")),
        given(64, 1023, "many").gives(_workload("many", "decode", 64, 1, 1024, "final")),
        given(1, -1, "before-the-start").refuses("NEG"),
        given(0, 8, "no-sequence").refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "prefix-as-visible",
            lambda batch, prefix, workload_id: _workload(workload_id, "decode", batch, 1, prefix, "final"),
            "Off by one row: does the new row see itself? Its key and value are appended before it looks.",
        ),
        Wrong(
            "tokens-as-rows",
            lambda batch, prefix, workload_id: _workload(workload_id, "decode", batch, 1, batch * (prefix + 1), "final"),
            _TOKENS,
        ),
        Wrong(
            "only-itself",
            lambda batch, prefix, workload_id: _workload(workload_id, "decode", batch, 1, 1, "final"),
            "One row is new, but it reads all the rows before it as well.",
        ),
        Wrong(
            "all-logits",
            lambda batch, prefix, workload_id: _workload(workload_id, "decode", batch, 1, prefix + 1, "all"),
            'As many logits, under another policy: a step that emits one token asks for "final".',
        ),
    ),
    shapes={"batch": (1, 4, 7), "prefix": (64, 512, 4096), "workload_id": ("a", "b")},
)

vocabulary = Exercise(
    "one_vocabulary",
    points=2,
    minutes=8,
    lines=6,
    hints=(
        "VOCABULARY[key] is the name to keep it under; refuse a key that VOCABULARY lacks, with require.",
        "found.setdefault(name, value) keeps the first value and gives it back: compare it with this one.",
    ),
    cases=(
        given({"batch_size": 1, "new_input_length": 4096, "query_length": 4096, "key_value_length": 4096}).gives(
            {"batch_size": 1, "new_rows": 4096, "visible_rows": 4096}
        ),
        given({"batch_size": 1, "new_tokens": 4, "query_tokens": 4, "visible_kv_tokens": 4}).gives(
            {"batch_size": 1, "new_rows": 4, "visible_rows": 4}
        ),
        given({"visible_kv_rows": 57, "newly_projected_rows": 1, "batch_size": 5}).gives(
            {"visible_rows": 57, "new_rows": 1, "batch_size": 5}
        ),
        given({"S_q": 16, "S_k": 48}).gives({"new_rows": 16, "visible_rows": 48}),
        given({"query_rows": 1, "visible_kv_rows": 57}).gives({"new_rows": 1, "visible_rows": 57}),
        given({"new_rows": 3, "visible_rows": 9}).gives({"new_rows": 3, "visible_rows": 9}),
        given({}).gives({}),
        given({"new_tokens": 1, "query_rows": 4}).refuses("INCONSISTENT"),
        given({"S_k": 8, "visible_rows": 9}).refuses("INCONSISTENT"),
        given({"batch_size": 1, "seq_len": 4096}).refuses("UNDECLARED"),
        given({"prefix_length": 32767}).refuses("UNDECLARED"),
    ),
    wrong=(
        Wrong(
            "names-kept",
            lambda data: {**data, **_right("one_vocabulary", data)},
            "The old names stand beside the new ones. Two names for one extent are what this ends.",
        ),
        Wrong(
            "query-visible",
            _changed(
                "one_vocabulary",
                lambda r, data: {"visible_rows": r["new_rows"]} if "visible_rows" in r and _has_query(data) else {},
            ),
            "Query rows are the new rows. Visible are the rows that can be read, cached ones too.",
        ),
        Wrong(
            "query-of-its-own",
            _changed("one_vocabulary", lambda r, data: {"query_rows": r["new_rows"]} if _has_query(data) else {}),
            "There is no third extent: in self-attention the query rows are the new rows.",
        ),
    ),
    shapes={
        "data": (
            {"S_new": 2, "S_q": 2, "S_k": 7},
            {"S_q": 3, "visible_kv_rows": 8, "batch_size": 4},
            {"query_length": 5, "key_value_length": 6},
            {"new_tokens": 9},
            {"new_tokens": 9, "S_q": 8},
        )
    },
)


def _has_query(data):
    return any("query" in key or key == "S_q" for key in data)


CHUNK = _workload("odd-chunk", "prefill-chunk", 3, 16, 48, "final")
TINY_PREFILL = _workload("tiny-prefill", "prefill", 1, 4, 4, "final")

embedding = Exercise(
    "embedding_activation",
    points=2,
    minutes=5,
    lines=2,
    hints=(
        "How many tokens enter the call, over all sequences of the batch? Only new ones enter.",
        "Each token is one id, and becomes one row of d scalars. V is the height of the table, not of its output.",
    ),
    cases=(
        given(RUNNING, TRAIN_4K).gives({"ids": 4096, "hidden": 16_777_216}),
        given(ODD, TRAIN_ODD).gives({"ids": 280, "hidden": 26_880}),
        given(RUNNING, DECODE_32K).gives({"ids": 1, "hidden": 4096}),
        given(ODD, CHUNK).gives({"ids": 48, "hidden": 4_608}),
        given(TOY, TINY_PREFILL).gives({"ids": 4, "hidden": 32}),
    ),
    wrong=(
        Wrong(
            "one-hot",
            _changed("embedding_activation", lambda r, arch, workload: {"hidden": r["ids"] * arch.vocab_size}),
            "You count a one-hot [B, S, V]. Nobody makes it: a row is read by its index, and has d scalars.",
        ),
        Wrong(
            "ids-as-rows",
            _changed("embedding_activation", lambda r, arch, workload: {"ids": r["hidden"]}),
            "An id is one integer. Only the lookup makes a row of d out of it.",
        ),
        Wrong(
            "one-sequence",
            _changed(
                "embedding_activation", lambda r, arch, workload: {key: r[key] // workload.batch_size for key in r}
            ),
            "Right for one sequence. Multiply by the batch.",
        ),
        Wrong(
            "visible-rows",
            _changed(
                "embedding_activation",
                lambda r, arch, workload: {key: r[key] // workload.new_rows * workload.visible_rows for key in r},
            ),
            "Cached rows are looked up again here. Only new rows pass through the embedding.",
        ),
    ),
    shapes={"arch": MANY, "workload": (TRAIN_4K, PREFILL_4K, DECODE_32K, TRAIN_ODD, CHUNK)},
)


def _shapes(change):
    """stored_shape with a mistake: change(arch, d_q, d_kv) gives the parts that differ."""

    def model(arch, part):
        from solutions import manifest

        right = manifest.stored_shape(arch, part)
        return change(arch).get(part, right)

    return model


stored = Exercise(
    "stored_shape",
    points=3,
    minutes=10,
    lines=10,
    hints=(
        "A linear layer keeps one row per output: [out, in]. What does each part put out, and what does it take in?",
        "q puts out d_q, k and v d_kv, gate and up d_ff, all from d; o and down put out d.",
        "A dict from part to tuple, indexed by part. First refuse gate_proj where arch.mlp is not 'gated'.",
    ),
    cases=(
        given(RUNNING, "k_proj").gives((1024, 4096)),
        given(ODD, "embed_tokens").gives((1009, 96)),
        given(ODD, "q_proj").gives((120, 96)),
        given(ODD, "k_proj").gives((40, 96)),
        given(ODD, "v_proj").gives((40, 96)),
        given(ODD, "o_proj").gives((96, 120)),
        given(ODD, "gate_proj").gives((250, 96)),
        given(RUNNING, "up_proj").gives((14336, 4096)),
        given(ODD, "down_proj").gives((96, 250)),
        given(RUNNING, "down_proj").gives((4096, 14336)),
        given(NARROW, "q_proj").gives((4096, 2560)),
        given(ODD, "norm").gives((96,)),
        given(ODD, "lm_head").gives((1009, 96)),
        given(TOY_TIED, "lm_head").gives((16, 8)),
        given(CLASSIC, "up_proj").gives((3072, 768)),
        given(CLASSIC, "gate_proj").refuses("UNDECLARED"),
        given(ODD, "qkv_proj").refuses("ENUM"),
    ),
    wrong=(
        Wrong(
            "head-transposed",
            _shapes(lambda arch: {"lm_head": (arch.hidden_size, arch.vocab_size)}),
            "lm_head puts out V logits, so it keeps V rows. That is why it can share the embedding's storage.",
        ),
        Wrong(
            "d-for-d-q",
            _shapes(lambda arch: dict.fromkeys(("q_proj", "o_proj"), (arch.hidden_size, arch.hidden_size))),
            "q and o are square here. The packed query width is H_q * d_h, not always d.",
        ),
        Wrong(
            "mha-for-gqa",
            _shapes(lambda arch: dict.fromkeys(("k_proj", "v_proj"), (arch.d_q, arch.hidden_size))),
            "k and v are as wide as q here. Grouped queries have num_key_value_heads heads there: d_kv.",
        ),
        Wrong(
            "down-like-up",
            _shapes(lambda arch: {"down_proj": (arch.intermediate_size, arch.hidden_size)}),
            "down_proj goes back from d_ff to d, so it keeps d rows.",
        ),
        Wrong(
            "logical-order",
            lambda arch, part: _right("stored_shape", arch, part)[:: 1 if part == "embed_tokens" else -1],
            "These are the axes [in, out] of the algebra. A linear layer is kept as [out, in].",
        ),
    ),
    shapes={
        "arch": (RUNNING, NARROW, TOY, ODD, DOUBLE),
        "part": ("embed_tokens", "q_proj", "v_proj", "o_proj", "gate_proj", "down_proj", "norm", "lm_head"),
    },
)


logical = Exercise(
    "logical_shape",
    points=2,
    minutes=5,
    lines=2,
    hints=(
        "Take stored_shape. For which parts do the two views agree?",
        "A linear layer is turned round, shape[::-1]. The embedding is a table to read from in both views.",
    ),
    cases=(
        given(ODD, "q_proj").gives((96, 120)),
        given(ODD, "o_proj").gives((120, 96)),
        given(RUNNING, "v_proj").gives((4096, 1024)),
        given(ODD, "down_proj").gives((250, 96)),
        given(ODD, "embed_tokens").gives((1009, 96)),
        given(TOY, "embed_tokens").gives((16, 8)),
        given(ODD, "lm_head").gives((96, 1009)),
        given(TOY_TIED, "lm_head").gives((8, 16)),
        given(ODD, "norm").gives((96,)),
        given(CLASSIC, "gate_proj").refuses("UNDECLARED"),
    ),
    wrong=(
        Wrong(
            "embedding-turned",
            lambda arch, part: _right("stored_shape", arch, part)[::-1],
            "The embedding is turned round too. A token selects one of V rows, in the algebra as in memory.",
        ),
        Wrong(
            "head-as-embedding",
            lambda arch, part: _right("stored_shape" if part == "lm_head" else "logical_shape", arch, part),
            "lm_head is not a selection: hidden rows of d are multiplied with it, so d comes first.",
        ),
        Wrong(
            "stored-order",
            lambda arch, part: _right("stored_shape", arch, part),
            "This is the stored order. In Y = X W the weight has its input first.",
        ),
    ),
    shapes={
        "arch": (RUNNING, NARROW, TOY, ODD, DOUBLE),
        "part": ("embed_tokens", "k_proj", "o_proj", "gate_proj", "down_proj", "norm", "lm_head"),
    },
)


def _names(embed, block, norm, layers):
    return {
        "model.embed_tokens.weight": embed,
        **{f"model.layers.{i}.{path}.weight": shape for i in layers for path, shape in block.items()},
        "model.norm.weight": norm,
        "lm_head.weight": embed,
    }


_TOY_BLOCK = {
    "input_layernorm": (8,),
    "self_attn.q_proj": (8, 8),
    "self_attn.k_proj": (4, 8),
    "self_attn.v_proj": (4, 8),
    "self_attn.o_proj": (8, 8),
    "post_attention_layernorm": (8,),
    "mlp.gate_proj": (12, 8),
    "mlp.up_proj": (12, 8),
    "mlp.down_proj": (8, 12),
}
_ODD_BLOCK = {
    "input_layernorm": (96,),
    "self_attn.q_proj": (120, 96),
    "self_attn.k_proj": (40, 96),
    "self_attn.v_proj": (40, 96),
    "self_attn.o_proj": (96, 120),
    "post_attention_layernorm": (96,),
    "mlp.gate_proj": (250, 96),
    "mlp.up_proj": (250, 96),
    "mlp.down_proj": (96, 250),
}

expected = Exercise(
    "expected_shapes",
    points=3,
    minutes=12,
    lines=8,
    hints=(
        "Three tensors stand outside the stack; BLOCK.items() gives the nine of each block.",
        "Refuse first: require(llama_like(arch), 'UNDECLARED', ...), with require from costlib.domain.",
        "Two loops, range(arch.num_layers) and BLOCK.items(); the shape is stored_shape(arch, part).",
    ),
    cases=(
        given(TOY_ONE).gives(_names((16, 8), _TOY_BLOCK, (8,), [0])),
        given(TOY).gives(_names((16, 8), _TOY_BLOCK, (8,), [0, 1])),
        given(TOY_TIED).gives(_names((16, 8), _TOY_BLOCK, (8,), [0, 1])),
        given(ODD_ONE_TIED).gives(_names((1009, 96), _ODD_BLOCK, (96,), [0])),
        given(ODD).gives(_names((1009, 96), _ODD_BLOCK, (96,), [0, 1, 2])),
        given(CLASSIC).refuses("UNDECLARED"),
        given(ODD_EVERYTHING).refuses("UNDECLARED"),
        given(W_MOE).refuses("UNDECLARED"),
    ),
    wrong=(
        Wrong(
            "tied-head-dropped",
            _changed("expected_shapes", lambda r, arch: {"lm_head.weight": None} if arch.tie_word_embeddings else {}),
            "The name of a tied head is missing. The checkpoint shares the storage, the model has both names.",
        ),
        Wrong(
            "layers-from-one",
            _changed("expected_shapes", lambda r, arch: _from_one(r, arch.num_layers)),
            "Your blocks are numbered from 1. Theirs begin with 0.",
        ),
        Wrong(
            "one-block",
            _changed(
                "expected_shapes",
                lambda r, arch: {name: None for name in r if ".layers." in name and ".layers.0." not in name},
            ),
            "Only one block is listed. There are num_layers of them.",
        ),
        Wrong(
            "no-final-norm",
            _changed("expected_shapes", lambda r, arch: {"model.norm.weight": None}),
            "The norm after the last block is missing.",
        ),
    ),
    shapes={"arch": (RUNNING, NARROW, TOY, TOY_TIED, ODD, ODD_ONE_TIED, W_7B, CLASSIC)},
)


def _from_one(right, layers):
    first = {name: None for name in right if ".layers.0." in name}
    return first | {name.replace(".0.", f".{layers}.", 1): right[name] for name in first}


TOY_SEEN, TIED_SEEN, ODD_SEEN, FULL_SEEN = (
    state_entries(tensor_rows(arch)) for arch in (TOY, TOY_TIED, ODD, ODD_EVERYTHING)
)
ROPE = StateEntry(name="model.rotary_emb.inv_freq", shape=(1,), storage="inv_freq", kind="buffer", persistent=False)
MASK = StateEntry(name="mask", shape=(56, 56), storage="mask", kind="buffer")
LORA = tuple(
    StateEntry(name=f"model.layers.0.self_attn.q_proj.lora_{end}.weight", shape=shape, storage=end)
    for end, shape in (("A", (2, 8)), ("B", (8, 2)))
)
FROZEN = StateEntry(name="vision.proj.weight", shape=(96, 11), storage="vision", trainable=False)


def _without(entries, *ends):
    return tuple(entry for entry in entries if not entry.name.endswith(ends))


def _renamed(entries, old, new):
    """The same tensors, the names of some changed: every sum stays what it was."""
    return tuple(e.replace(name=e.name.replace(old, new), storage=e.storage.replace(old, new)) for e in entries)


def _as_buffer(entries, end):
    return tuple(e.replace(kind="buffer") if e.name.endswith(end) else e for e in entries)


FUSED_TOY = _renamed(TOY_SEEN, "layers.0.mlp.up_proj", "layers.0.mlp.w3")
RENAMED_ODD = _renamed(ODD_SEEN, "model.norm", "model.final_norm")


def _total(entries):
    return sum(entry.numel for entry in entries if entry.kind == "parameter")


absent = Exercise(
    "missing",
    points=2,
    minutes=8,
    lines=2,
    hints=(
        "Two sets of names: those declared, those seen as parameters. Which difference of them is asked for?",
        "{tensor.name for tensor in tensor_rows(arch)} minus {entry.name ... if entry.kind == 'parameter'}.",
        "sorted() makes a list of it; tuple() closes it.",
    ),
    cases=(
        given(TOY, TOY_SEEN).gives(()),
        given(TOY, _without(TOY_SEEN, "lm_head.weight", "layers.1.self_attn.k_proj.weight")).gives(
            ("lm_head.weight", "model.layers.1.self_attn.k_proj.weight")
        ),
        given(TOY_TIED, TIED_SEEN).gives(()),
        given(TOY_TIED, _without(TIED_SEEN, "lm_head.weight")).gives(("lm_head.weight",)),
        given(ODD_EVERYTHING, _without(FULL_SEEN, "lm_head.weight", "adapter.weight")).gives(
            ("adapter.weight", "lm_head.weight")
        ),
        given(TOY, FUSED_TOY).gives(("model.layers.0.mlp.up_proj.weight",)),
        given(ODD, RENAMED_ODD).gives(("model.norm.weight",)),
        given(TOY, _as_buffer(TOY_SEEN, "model.norm.weight")).gives(("model.norm.weight",)),
        given(ODD, (*_as_buffer(ODD_SEEN, "lm_head.weight"), ROPE)).gives(("lm_head.weight",)),
    ),
    wrong=(
        Wrong(
            "equal-sums",
            lambda arch, entries: ()
            if _total(entries) == sum(t.numel for t in tensor_rows(arch))
            else _right("missing", arch, entries),
            "You compare the sums. A renamed tensor leaves the sum as it was, and no loader finds it.",
        ),
        Wrong(
            "buffers-count",
            lambda arch, entries: _right("missing", arch, tuple(e.replace(kind="parameter") for e in entries)),
            "A buffer has that name. Nothing learns a buffer: the parameter is missing all the same.",
        ),
        Wrong(
            "alias-not-asked",
            lambda arch, entries: tuple(
                name
                for name in _right("missing", arch, entries)
                if name not in {t.name for t in tensor_rows(arch) if t.alias_of}
            ),
            "A tied head is not asked for. Its storage is shared, its name is declared.",
        ),
        Wrong(
            "other-difference",
            lambda arch, entries: _right("undeclared", arch, entries),
            "You took the difference the other way round: these are seen and not declared.",
        ),
    ),
    shapes={"arch": (TOY, TOY_TIED, ODD, ODD_EVERYTHING), "entries": (TOY_SEEN, ODD_SEEN, FULL_SEEN, RENAMED_ODD)},
)

surplus = Exercise(
    "undeclared",
    points=2,
    minutes=5,
    lines=2,
    hints=(
        "The other difference of the same two sets.",
        "Only entries of kind 'parameter'; whether they are trained does not matter.",
    ),
    cases=(
        given(TOY, TOY_SEEN).gives(()),
        given(TOY, (*TOY_SEEN, *LORA)).gives(
            ("model.layers.0.self_attn.q_proj.lora_A.weight", "model.layers.0.self_attn.q_proj.lora_B.weight")
        ),
        given(ODD, (*ODD_SEEN, FROZEN)).gives(("vision.proj.weight",)),
        given(ODD_EVERYTHING, (FROZEN, *FULL_SEEN, ROPE)).gives(("vision.proj.weight",)),
        given(ODD_EVERYTHING, FULL_SEEN).gives(()),
        given(TOY, (*TOY_SEEN, ROPE, MASK)).gives(()),
        given(TOY, FUSED_TOY).gives(("model.layers.0.mlp.w3.weight",)),
        given(ODD_LORA, state_entries(tensor_rows(ODD_LORA))).gives(()),
    ),
    wrong=(
        Wrong(
            "buffers-too",
            lambda arch, entries: _right("undeclared", arch, tuple(e.replace(kind="parameter") for e in entries)),
            "Buffers are in. A rotary table or a mask is state, but nothing that is learned.",
        ),
        Wrong(
            "trained-only",
            lambda arch, entries: _right("undeclared", arch, tuple(e for e in entries if e.trainable)),
            "A frozen parameter is left out. It is stored, loaded and used: it must be declared.",
        ),
        Wrong(
            "extras-unread",
            lambda arch, entries: _right("undeclared", arch.replace(extra_trainable_sets=()), entries),
            "What extra_trainable_sets names is declared. Take the names from tensor_rows(arch).",
        ),
        Wrong(
            "other-difference",
            lambda arch, entries: _right("missing", arch, entries),
            "You took the difference the other way round: these are declared and not seen.",
        ),
    ),
    shapes={"arch": (TOY, TOY_TIED, ODD, ODD_LORA), "entries": (TOY_SEEN, (*FULL_SEEN, ROPE), RENAMED_ODD, (*ODD_SEEN, FROZEN))},
)

TINY = {  # the architecture of M 0x0AB, named
    "manifest_id": "tiny",
    "num_layers": 2,
    "hidden_size": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 2,
    "intermediate_size": 12,
    "vocab_size": 16,
    "tie_word_embeddings": False,
}


def _tiny(*absent, **changes):
    return {name: value for name, value in {**TINY, **changes}.items() if name not in absent}


def _checked(each, names=tuple(TINY)):
    """field_violations by a rule of its own: each(value, kind) -> code or "", a MISSING one None."""

    def model(data):
        found = []
        for name in names:
            kind = type(TINY[name])
            code = each(data.get(name), kind) if name in data else "MISSING"
            found += [f"{code} {name}"] if code else []
        return tuple(found)

    return model


field_rules = Exercise(
    "field_violations",
    points=3,
    minutes=12,
    lines=9,
    hints=(
        "A loop over REQUIRED.items(), and three questions in this order: is it there, is it of the type, is it at least 1?",
        "isinstance(True, int) is True. type(value) is kind says what you mean.",
        "if name not in data: ... elif type(data[name]) is not kind: ... elif kind is int and data[name] < 1: ...",
    ),
    cases=(
        given(TINY).gives(()),
        given(_tiny("vocab_size", num_layers=True)).gives(("TYPE num_layers", "MISSING vocab_size")),
        given(_tiny(hidden_size=8.0, head_dim="2")).gives(("TYPE hidden_size", "TYPE head_dim")),
        given(_tiny(num_key_value_heads=0)).gives(("NONPOS num_key_value_heads",)),
        given(_tiny(num_layers=0, intermediate_size=-12)).gives(("NONPOS num_layers", "NONPOS intermediate_size")),
        given(_tiny(num_attention_heads=True, tie_word_embeddings=1)).gives(
            ("TYPE num_attention_heads", "TYPE tie_word_embeddings")
        ),
        given(_tiny("manifest_id", vocab_size=None, intermediate_size=12.5)).gives(
            ("MISSING manifest_id", "TYPE intermediate_size", "TYPE vocab_size")
        ),
        given(_tiny(vocab_size=16.0)).gives(("TYPE vocab_size",)),
        given({"num_layers": 2}).gives(
            (
                "MISSING manifest_id",
                "MISSING hidden_size",
                "MISSING num_attention_heads",
                "MISSING num_key_value_heads",
                "MISSING head_dim",
                "MISSING intermediate_size",
                "MISSING vocab_size",
                "MISSING tie_word_embeddings",
            )
        ),
    ),
    wrong=(
        Wrong(
            "bool-is-int",
            _checked(lambda v, kind: "TYPE" if not isinstance(v, kind) else "NONPOS" if kind is int and v < 1 else ""),
            "True passes as 1. To Python a bool is an int; ask type(value) is kind.",
        ),
        Wrong(
            "zero-allowed",
            _checked(lambda v, kind: "TYPE" if type(v) is not kind else "NONPOS" if kind is int and v < 0 else ""),
            "Zero passes. No extent of a model can be 0, and somebody will divide by it.",
        ),
        Wrong(
            "whole-floats",
            _checked(
                lambda v, kind: ("" if v == int(v) else "TYPE")
                if kind is int and type(v) is float
                else "TYPE" if type(v) is not kind else "NONPOS" if kind is int and v < 1 else ""
            ),
            "8.0 passes as 8. Floats lose integers above 2**53 without saying so; refuse the type.",
        ),
        Wrong(
            "false-is-missing",
            lambda data: tuple(
                f"MISSING {name}" if not data.get(name) else word
                for name in TINY
                for word in [_one(data, name)]
                if word or not data.get(name)
            ),
            "A value of 0 or False is taken for an absent one. Ask `name not in data`.",
        ),
        Wrong(
            "first-only",
            lambda data: _right("field_violations", data)[:1],
            "You stop at the first. Whoever mends the file wants to hear of all at once.",
        ),
    ),
    shapes={
        "data": (
            TINY,
            _tiny(num_layers=True),
            _tiny(num_layers=0, vocab_size=0),
            _tiny("head_dim", hidden_size=8.0),
            _tiny("manifest_id", "num_layers", tie_word_embeddings=None),
            _tiny(intermediate_size=-1, head_dim=2.0),
        )
    },
)


def _one(data, name):
    return next((v for v in _right("field_violations", data) if v.endswith(f" {name}")), "")


rules = Exercise(
    "violations",
    points=3,
    minutes=10,
    lines=5,
    hints=(
        "Begin with found = field_violations(data), then add to it.",
        "Divide only if no violation names one of the two head counts: 0 K/V heads must not end in a ZeroDivisionError.",
        "any(v.endswith(('num_attention_heads', 'num_key_value_heads')) for v in found) says that one is unsound.",
    ),
    cases=(
        given(TINY).gives(()),
        given(_tiny(num_key_value_heads=3)).gives(("DIVIS num_key_value_heads",)),
        given(_tiny(num_attention_heads=32, num_key_value_heads=7, tie_word_embeddings=True)).gives(
            ("DIVIS num_key_value_heads",)
        ),
        given(_tiny(num_key_value_heads=0)).gives(("NONPOS num_key_value_heads",)),
        given(_tiny("hidden_size", hidden_sise=8)).gives(("MISSING hidden_size", "UNDECLARED hidden_sise")),
        given(_tiny(num_attention_heads=2, num_key_value_heads=4, rope_theta=500000, mlp="gated")).gives(
            ("DIVIS num_key_value_heads", "UNDECLARED rope_theta")
        ),
        given(_tiny(head_dim=0, num_key_value_heads=3, d_q=8)).gives(
            ("NONPOS head_dim", "DIVIS num_key_value_heads", "UNDECLARED d_q")
        ),
        given(_tiny("num_attention_heads", num_key_value_heads=3)).gives(("MISSING num_attention_heads",)),
        given(_tiny(mlp="two-matrix", qk_norm="packed")).gives(()),
        given(_tiny(num_key_value_heads=4)).gives(()),
    ),
    wrong=(
        Wrong(
            "no-divides",
            lambda data: tuple(v for v in _right("violations", data) if not v.startswith("DIVIS")),
            "7 K/V heads pass for 32 query heads. Every group must be as large as the others.",
        ),
        Wrong(
            "unknown-ignored",
            lambda data: tuple(v for v in _right("violations", data) if not v.startswith("UNDECLARED")),
            "Unknown keys pass. A misspelt field, or a part of the model nobody counts, hides there.",
        ),
        Wrong(
            "optional-refused",
            lambda data: (
                *(v for v in _right("violations", data) if not v.startswith("UNDECLARED")),
                *(f"UNDECLARED {key}" for key in data if key not in TINY),
            ),
            "You refuse optional fields. Known is what FIELDS lists, required what REQUIRED lists.",
        ),
        Wrong(
            "first-only",
            lambda data: _right("violations", data)[:1],
            "You stop at the first. Whoever mends the file wants to hear of all at once.",
        ),
        Wrong(
            "divided-the-other-way",
            lambda data: _other_way(data),
            "You ask whether the query heads divide the K/V heads. It is the other way round.",
        ),
    ),
    shapes={
        "data": (
            TINY,
            _tiny(num_key_value_heads=3, n_layer=2),
            _tiny(num_attention_heads=12, num_key_value_heads=8),
            _tiny(num_attention_heads=12, num_key_value_heads=4),
            _tiny("vocab_size", mlp="gated", vocab=16),
            _tiny(num_attention_heads=0),
        )
    },
)


def _other_way(data):
    found = [v for v in _right("violations", data) if not v.startswith("DIVIS")]
    fields = _right("field_violations", data)
    heads = ("num_attention_heads", "num_key_value_heads")
    if not any(v.endswith(heads) for v in fields) and data[heads[1]] % data[heads[0]]:
        found.insert(len(fields), "DIVIS num_key_value_heads")
    return tuple(found)


ANSWERS = {
    "architecture": "running, by its SHA-256",
    "workload": "prefill-4k",
    "representation": "bf16 weights",
    "ownership": "whole tensors",
    "convention": "FMA = 2 FLOPs, rectangular attention",
    "observation": "derived",
}

gate = Exercise(
    "unanswered",
    points=1,
    minutes=4,
    lines=1,
    hints=(
        "Go through GATE in its order, not through the answers.",
        "(answers.get(name) or '').strip() is empty for None, for an absent key and for blanks.",
    ),
    cases=(
        given(ANSWERS).gives(()),
        given({}).gives(("architecture", "workload", "representation", "ownership", "convention", "observation")),
        given({**ANSWERS, "observation": None}).gives(("observation",)),
        given({**ANSWERS, "ownership": "", "workload": None}).gives(("workload", "ownership")),
        given({**ANSWERS, "convention": "  "}).gives(("convention",)),
        given({"observation": "derived", "architecture": " \n", "workload": "prefill-4k"}).gives(
            ("architecture", "representation", "ownership", "convention")
        ),
    ),
    wrong=(
        Wrong(
            "blanks-answer",
            lambda answers: tuple(name for name in ANSWERS if not answers.get(name)),
            "A text of blanks passes as an answer. Strip it first.",
        ),
        Wrong(
            "the-answered",
            lambda answers: tuple(name for name in ANSWERS if name not in _right("unanswered", answers)),
            "These are the questions that have an answer. Asked for are the others.",
        ),
        Wrong(
            "key-is-answer",
            lambda answers: tuple(name for name in ANSWERS if name not in answers),
            "You look for the key only. A question with None or blanks behind it is still open.",
        ),
    ),
    shapes={
        "answers": (
            ANSWERS,
            {},
            {**ANSWERS, "representation": " "},
            {"workload": "x", "convention": None},
            {**ANSWERS, "architecture": None},
        )
    },
)


def _refusal(call):
    try:
        call()
    except ManifestError as error:
        return str(error)
    return ""


def _parsed(**changes):
    """Parse the running manifest with some fields changed; what it was refused for, or ""."""
    fields = json.loads(data.read("running.json"))
    text = json.dumps({name: value for name, value in {**fields, **changes}.items() if value is not ...})
    return _refusal(lambda: ArchitectureManifest.from_json(text))


def _no_kv_heads(fault):
    return _parsed(num_key_value_heads=0 if fault else 8)


def _heads_that_do_not_divide(fault):
    return _parsed(num_key_value_heads=7 if fault else 8)


def _half_a_manifest(fault):
    return _parsed(**({"manifest_id": ..., "vocab_size": ...} if fault else {}))


def _smuggled_chunk(fault):
    return _refusal(lambda: PREFILL_4K.replace(visible_rows=8192 if fault else 4096))


def _two_names(fault):
    from costlib import manifest

    extents = {"new_tokens": 1, "query_rows": 4 if fault else 1, "S_k": 57}
    return _refusal(lambda: manifest.one_vocabulary(extents))


def _same_numel(fault):
    shape = (4, 16) if fault else (8, 8)
    seen = [e.replace(shape=shape) if e.name.endswith("0.self_attn.q_proj.weight") else e for e in TOY_SEEN]
    return _first(differences(TOY, tuple(seen)))


def _copied_head(fault):
    seen = [e.replace(storage="a copy") if fault and e.name == "lm_head.weight" else e for e in TIED_SEEN]
    return _first(differences(TOY_TIED, tuple(seen)))


def _adapter(fault):
    from costlib import manifest

    arch = ODD_LORA.replace(extra_trainable_sets=()) if fault else ODD_LORA
    found = manifest.undeclared(arch, state_entries(tensor_rows(ODD_LORA)))
    return f"undeclared: {', '.join(found)}" if found else ""


def _first(found):
    return found[0] if found else ""


FAILURES = (
    Failure(
        "True where a count belongs",
        "a count is an int: neither a bool nor a float",
        wrong=("field_violations", "bool-is-int"),
    ),
    Failure(
        "no K/V heads at all",
        "an extent is at least 1, and is refused before anyone divides by it",
        check=_no_kv_heads,
    ),
    Failure(
        "7 K/V heads for 32 query heads",
        "groups are equal: the K/V heads divide the query heads",
        check=_heads_that_do_not_divide,
    ),
    Failure(
        "half a manifest",
        "what has no default must be declared",
        check=_half_a_manifest,
    ),
    Failure(
        "a chunk passed off as a prefill",
        "a prefill sees its own rows; with rows before them it is a prefill-chunk",
        check=_smuggled_chunk,
    ),
    Failure(
        "one extent under two names with two values",
        "one vocabulary: query rows are the new rows",
        check=_two_names,
    ),
    Failure(
        "a [4, 16] where [8, 8] is declared",
        "shapes are compared axis by axis, never by their product",
        check=_same_numel,
    ),
    Failure(
        "a tied head with a storage of its own",
        "tying is one storage under two names",
        check=_copied_head,
    ),
    Failure(
        "an adapter that the record leaves out",
        "every parameter seen is declared, frozen or not",
        check=_adapter,
    ),
)

LAB = Lab(
    "02",
    "The manifest",
    "manifest",
    (
        widths,
        training,
        prefill,
        prefill_chunk,
        decode,
        vocabulary,
        embedding,
        stored,
        logical,
        expected,
        absent,
        surplus,
        field_rules,
        rules,
        gate,
    ),
    FAILURES,
)
