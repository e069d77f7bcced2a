"""Lab 03: the parameter ledger of M 0x02, from four projections to three meanings of N."""

from costlib.fixtures import (
    CLASSIC,
    ODD,
    ODD_EVERYTHING,
    ODD_EXPERTS,
    RUNNING,
    TOY,
    TOY_TIED,
    TRAIN_4K,
    TRAIN_ODD,
    W_7B,
    W_70B,
    W_MOE,
    classic_block,
)
from costlib.records import Experts, StateEntry, Tensor
from costlib.schema import differences, state_entries, tensor_rows
from labs.spec import Exercise, Failure, Lab, Reference, Wrong, given

MHA = RUNNING.replace(manifest_id="8b-mha", num_key_value_heads=32)
MQA = RUNNING.replace(manifest_id="8b-mqa", num_key_value_heads=1)
BIASED = RUNNING.replace(manifest_id="8b-biased", attention_bias="all", mlp_bias=True)
WIDE_HEADS = RUNNING.replace(manifest_id="8b-wide-heads", head_dim=160)
QKV_BIASED = RUNNING.replace(manifest_id="8b-qkv-biased", attention_bias="qkv")
TIED = RUNNING.replace(manifest_id="8b-tied", tie_word_embeddings=True)
ODD_BIASED = ODD.replace(manifest_id="odd-biased", attention_bias="all", mlp_bias=True, head_bias=True)
ODD_QKV = ODD.replace(manifest_id="odd-qkv", attention_bias="qkv", qk_norm="packed")
ODD_LEARNED = ODD.replace(
    manifest_id="odd-learned",
    position="learned",
    max_positions=50,
    norms_per_block=4,
    extra_trainable_sets=(Tensor(name="prefix.weight", shape=(9, 96)), Tensor(name="scale", shape=(5,))),
)
ODD_ONE_NORM = ODD.replace(manifest_id="odd-one-norm", norms_per_block=1, final_norm=False, qk_norm="per-head")
MIXTRAL = RUNNING.replace(
    manifest_id="8x7b",
    vocab_size=32000,
    experts=Experts(num_experts=8, experts_per_token=2, intermediate_size=14336),
)
EXPERTS_WIDE = ODD_EXPERTS.replace(
    manifest_id="odd-experts-tied",
    tie_word_embeddings=True,
    experts=Experts(num_experts=5, experts_per_token=1, intermediate_size=61, shared_experts=2),
)
DENSE = (RUNNING, MHA, MQA, TOY, ODD, ODD_BIASED, ODD_QKV, ODD_LEARNED, ODD_EVERYTHING, CLASSIC, W_7B, W_70B)
EVERY = (*DENSE, TOY_TIED, TIED, QKV_BIASED, ODD_ONE_NORM, ODD_EXPERTS, EXPERTS_WIDE, MIXTRAL, W_MOE)


_changed = Reference("params").changed


def _matrices(arch, width):
    return (3 if arch.mlp == "gated" else 2) * arch.hidden_size * width


attention = Exercise(
    "attention_weights",
    points=3,
    minutes=8,
    lines=1,
    hints=(
        "Write down the four stored shapes. Which of their axes is d, which is a packed head width?",
        "q and o have d * d_q scalars each, k and v have d * d_kv each; arch.d_q and arch.d_kv are given.",
        "2 * arch.hidden_size * (arch.d_q + arch.d_kv).",
    ),
    cases=(
        given(RUNNING).gives(41_943_040),
        given(MHA).gives(67_108_864),
        given(MQA).gives(34_603_008),
        given(TOY).gives(192),
        given(ODD).gives(30_720),
        given(CLASSIC).gives(2_359_296),
        given(WIDE_HEADS).gives(52_428_800),
    ),
    wrong=(
        Wrong(
            "mha-for-gqa",
            lambda arch: 4 * arch.hidden_size * arch.d_q,
            "This is the value of multi-head attention: k and v have num_key_value_heads heads, not num_attention_heads.",
        ),
        Wrong(
            "square-attention",
            lambda arch: 4 * arch.hidden_size**2,
            "Four square d x d matrices. Only MHA with d_q = d has those; use d_q and d_kv.",
        ),
        Wrong(
            "k-without-v",
            lambda arch: arch.hidden_size * (2 * arch.d_q + arch.d_kv),
            "One of the two narrow matrices is missing: k and v are both stored.",
        ),
        Wrong(
            "all-layers",
            lambda arch: arch.num_layers * 2 * arch.hidden_size * (arch.d_q + arch.d_kv),
            "This is the whole stack. Asked for is one block.",
        ),
        Wrong(
            "d-for-d-q",
            lambda arch: 2 * arch.hidden_size * (arch.hidden_size + arch.d_kv),
            "q and o are d by d here. The packed query width is H_q * d_h and need not be d.",
        ),
    ),
    shapes={"arch": DENSE},
)

attention_bias = Exercise(
    "attention_biases",
    points=2,
    minutes=6,
    lines=2,
    hints=(
        "A bias is added to the output of a matrix, so it is as long as the output is wide.",
        "q: d_q. k and v: d_kv each. o: d. 'qkv' leaves o's out, 'none' all of them.",
    ),
    cases=(
        given(RUNNING).gives(0),
        given(BIASED).gives(10_240),
        given(QKV_BIASED).gives(6_144),
        given(CLASSIC).gives(3_072),
        given(ODD_BIASED).gives(296),
        given(ODD_QKV).gives(200),
        given(ODD).gives(0),
    ),
    wrong=(
        Wrong(
            "input-axis",
            lambda arch: {
                "none": 0,
                "qkv": 3 * arch.hidden_size,
                "all": 3 * arch.hidden_size + arch.d_q,
            }[arch.attention_bias],
            "These are the input widths. A bias belongs to the output axis of its matrix.",
        ),
        Wrong(
            "o-always",
            lambda arch: 0 if arch.attention_bias == "none" else arch.d_q + 2 * arch.d_kv + arch.hidden_size,
            'attention_bias = "qkv" leaves the output projection without a bias.',
        ),
        Wrong(
            "never-none",
            lambda arch: arch.d_q + 2 * arch.d_kv + (arch.hidden_size if arch.attention_bias != "qkv" else 0),
            'attention_bias = "none" declares that there is no bias at all: 0.',
        ),
        Wrong(
            "mha-for-gqa",
            lambda arch: {"none": 0, "qkv": 3 * arch.d_q, "all": 3 * arch.d_q + arch.hidden_size}[arch.attention_bias],
            "k and v are d_kv wide, not d_q.",
        ),
    ),
    shapes={"arch": DENSE},
)

mlp = Exercise(
    "mlp_weights",
    points=2,
    minutes=5,
    lines=1,
    hints=(
        "Every matrix of an MLP joins d and the width, in one direction or the other.",
        'arch.mlp == "gated": gate, up, down. "two-matrix": up and down.',
    ),
    cases=(
        given(RUNNING, 14336).gives(176_160_768),
        given(ODD, 250).gives(72_000),
        given(CLASSIC, 3072).gives(4_718_592),
        given(ODD_EVERYTHING, 250).gives(48_000),
        given(ODD_EXPERTS, 34).gives(9_792),
        given(RUNNING, 2048).gives(25_165_824),
        given(RUNNING, 0).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "two-matrices",
            lambda arch, width: 2 * arch.hidden_size * width,
            "Two matrices, always. A gated MLP has three: gate, up and down.",
        ),
        Wrong(
            "three-matrices",
            lambda arch, width: 3 * arch.hidden_size * width,
            "Three matrices, always. Read arch.mlp: the two-matrix MLP has no gate.",
        ),
        Wrong(
            "own-width",
            lambda arch, width: _matrices(arch, arch.intermediate_size),
            "You used arch.intermediate_size. The width is an argument: an expert has its own.",
        ),
        Wrong(
            "four-d",
            lambda arch, width: _matrices(arch, 4 * arch.hidden_size),
            "You took the width to be 4d. A ratio remembered from one model is no field of this one.",
        ),
    ),
    shapes={"arch": DENSE, "width": (34, 250, 2048, 14336)},
)

mlp_bias = Exercise(
    "mlp_biases",
    points=1,
    minutes=5,
    lines=2,
    hints=(
        "One bias per matrix, as long as that matrix's output.",
        "gate and up put out intermediate_size values, down puts out d. Without mlp_bias: 0.",
    ),
    cases=(
        given(RUNNING).gives(0),
        given(BIASED).gives(32_768),
        given(CLASSIC).gives(3_840),
        given(ODD_BIASED).gives(596),
        given(ODD_EVERYTHING).gives(346),
        given(ODD).gives(0),
    ),
    wrong=(
        Wrong(
            "no-gate-bias",
            lambda arch: (arch.intermediate_size + arch.hidden_size) * arch.mlp_bias,
            "One bias is missing: in a gated MLP gate and up have one each.",
        ),
        Wrong(
            "input-axis",
            lambda arch: ((2 if arch.mlp == "gated" else 1) * arch.hidden_size + arch.intermediate_size) * arch.mlp_bias,
            "These are the input widths. A bias belongs to the output axis of its matrix.",
        ),
        Wrong(
            "never-none",
            lambda arch: (2 if arch.mlp == "gated" else 1) * arch.intermediate_size + arch.hidden_size,
            "mlp_bias = False declares that there is no bias: 0.",
        ),
    ),
    shapes={"arch": DENSE},
)

norm = Exercise(
    "norm_scalars",
    points=1,
    minutes=3,
    lines=1,
    hints=("RMSNorm learns a scale per feature.", "LayerNorm learns a scale and a shift per feature."),
    cases=(
        given(RUNNING, 4096).gives(4_096),
        given(CLASSIC, 768).gives(1_536),
        given(ODD_EVERYTHING, 96).gives(192),
        given(ODD, 20).gives(20),
        given(CLASSIC, 100).gives(200),
        given(ODD, 0).refuses("NONPOS"),
    ),
    wrong=(
        Wrong("scale-only", lambda arch, width: width, "LayerNorm has a shift beside the scale: two vectors."),
        Wrong("always-two", lambda arch, width: 2 * width, "RMSNorm has a scale and no shift: one vector."),
        Wrong(
            "own-width",
            lambda arch, width: (2 if arch.norm == "layernorm" else 1) * arch.hidden_size,
            "You used hidden_size. The width is an argument: a norm over one head has head_dim features.",
        ),
    ),
    shapes={"arch": DENSE, "width": (20, 96, 4096)},
)

position = Exercise(
    "position_scalars",
    points=1,
    minutes=3,
    lines=1,
    hints=("Which of the three position schemes learns anything?", "A learned table has one row of d per position."),
    cases=(
        given(RUNNING).gives(0),
        given(CLASSIC).gives(0),
        given(ODD_EVERYTHING).gives(7_392),
        given(ODD_LEARNED).gives(4_800),
    ),
    wrong=(
        Wrong("rows-only", lambda arch: arch.max_positions, "These are rows. Each row has d scalars."),
        Wrong(
            "per-layer",
            lambda arch: arch.num_layers * arch.max_positions * arch.hidden_size,
            "The table stands once, before the stack, not in every block.",
        ),
        Wrong(
            "rotary-cache",
            lambda arch: max(arch.max_positions, 1) * (arch.head_dim if arch.position != "learned" else arch.hidden_size),
            "Rotary and sinusoidal tables are generated, not learned: at most a buffer, 0 parameters.",
        ),
        Wrong(
            "forgotten",
            lambda arch: 0,
            "A learned position table is trainable: max_positions rows of d.",
        ),
    ),
    shapes={"arch": EVERY},
)

vocabulary = Exercise(
    "vocabulary",
    points=2,
    minutes=6,
    lines=6,
    hints=(
        "Both tables are vocab_size by d. What is left of the second when it is the first?",
        "The bias of the head has one scalar per vocabulary row and is its own tensor even when the matrix is shared.",
    ),
    cases=(
        given(RUNNING).gives({"embedding": 525_336_576, "head": 525_336_576, "head_bias": 0}),
        given(TIED).gives({"embedding": 525_336_576, "head": 0, "head_bias": 0}),
        given(TOY).gives({"embedding": 128, "head": 128, "head_bias": 0}),
        given(ODD_EVERYTHING).gives({"embedding": 96_864, "head": 0, "head_bias": 1_009}),
        given(ODD_BIASED).gives({"embedding": 96_864, "head": 96_864, "head_bias": 1_009}),
        given(ODD_EVERYTHING.replace(vocab_size=50)).gives({"embedding": 4_800, "head": 0, "head_bias": 50}),
    ),
    wrong=(
        Wrong(
            "tied-twice",
            lambda arch: {
                "embedding": arch.vocab_size * arch.hidden_size,
                "head": arch.vocab_size * arch.hidden_size,
                "head_bias": arch.vocab_size * arch.head_bias,
            },
            "The embedding is counted twice: a tied head is the same tensor under a second name.",
        ),
        Wrong(
            "head-forgotten",
            lambda arch: {
                "embedding": arch.vocab_size * arch.hidden_size,
                "head": 0,
                "head_bias": arch.vocab_size * arch.head_bias,
            },
            "An untied head is a second matrix of its own.",
        ),
        Wrong(
            "bias-lost-with-tie",
            _changed("vocabulary", lambda r, arch: {"head_bias": 0 if arch.tie_word_embeddings else r["head_bias"]}),
            "Tying shares the matrix. A declared head bias is there all the same.",
        ),
        Wrong(
            "bias-of-width-d",
            _changed("vocabulary", lambda r, arch: {"head_bias": arch.hidden_size * arch.head_bias}),
            "The head puts out vocab_size logits, so its bias has vocab_size scalars, not d.",
        ),
    ),
    shapes={"arch": EVERY},
)

block = Exercise(
    "block",
    points=2,
    minutes=8,
    lines=7,
    hints=(
        "Four of the five rows are functions you have written.",
        "norms = norms_per_block * norm_scalars(arch, hidden_size) + arch.qk_norm_scalars.",
    ),
    cases=(
        given(RUNNING).gives(
            {
                "attention.weights": 41_943_040,
                "attention.biases": 0,
                "mlp.weights": 176_160_768,
                "mlp.biases": 0,
                "norms": 8_192,
            }
        ),
        given(CLASSIC).gives(
            {
                "attention.weights": 2_359_296,
                "attention.biases": 3_072,
                "mlp.weights": 4_718_592,
                "mlp.biases": 3_840,
                "norms": 3_072,
            }
        ),
        given(ODD_EVERYTHING).gives(
            {
                "attention.weights": 30_720,
                "attention.biases": 296,
                "mlp.weights": 48_000,
                "mlp.biases": 346,
                "norms": 424,
            }
        ),
        given(ODD_QKV).gives(
            {
                "attention.weights": 30_720,
                "attention.biases": 200,
                "mlp.weights": 72_000,
                "mlp.biases": 0,
                "norms": 352,
            }
        ),
        given(ODD_LEARNED).gives(
            {
                "attention.weights": 30_720,
                "attention.biases": 0,
                "mlp.weights": 72_000,
                "mlp.biases": 0,
                "norms": 384,
            }
        ),
        given(ODD_ONE_NORM).gives(
            {
                "attention.weights": 30_720,
                "attention.biases": 0,
                "mlp.weights": 72_000,
                "mlp.biases": 0,
                "norms": 136,
            }
        ),
    ),
    wrong=(
        Wrong(
            "two-norms-always",
            _changed(
                "block",
                lambda r, arch: {
                    "norms": 2 * (2 if arch.norm == "layernorm" else 1) * arch.hidden_size + arch.qk_norm_scalars
                },
            ),
            "You count two norms whatever the manifest says: use norms_per_block.",
        ),
        Wrong(
            "no-qk-norm",
            _changed("block", lambda r, arch: {"norms": r["norms"] - arch.qk_norm_scalars}),
            "The norms over queries and keys are missing: arch.qk_norm_scalars.",
        ),
        Wrong(
            "no-shift",
            _changed(
                "block",
                lambda r, arch: {"norms": arch.norms_per_block * arch.hidden_size + arch.qk_norm_scalars},
            ),
            "The norms count a scale only. A LayerNorm has a shift too: call norm_scalars.",
        ),
        Wrong(
            "no-biases",
            _changed("block", lambda r, arch: {"attention.biases": 0, "mlp.biases": 0}),
            "The biases are left out because they are small. A checkpoint that stores them will not match.",
        ),
    ),
    shapes={"arch": DENSE},
)

experts = Exercise(
    "expert_block",
    points=2,
    minutes=8,
    lines=8,
    hints=(
        "One expert is mlp_weights(arch, arch.experts.intermediate_size).",
        "Shared experts always run; of num_experts routed ones experts_per_token run and the rest is idle.",
        "Refuse a dense manifest first: require(arch.experts is not None, 'MISSING', ...).",
    ),
    cases=(
        given(ODD_EXPERTS).gives({"router": 672, "shared": 9_792, "routed.active": 19_584, "routed.idle": 48_960}),
        given(W_MOE).gives(
            {
                "router": 1_835_008,
                "shared": 44_040_192,
                "routed.active": 352_321_536,
                "routed.idle": 10_921_967_616,
            }
        ),
        given(MIXTRAL).gives(
            {"router": 32_768, "shared": 0, "routed.active": 352_321_536, "routed.idle": 1_056_964_608}
        ),
        given(EXPERTS_WIDE).gives({"router": 480, "shared": 35_136, "routed.active": 17_568, "routed.idle": 70_272}),
        given(RUNNING).refuses("MISSING"),
    ),
    wrong=(
        Wrong(
            "dense-width",
            _changed(
                "expert_block",
                lambda r, arch: {
                    key: r[key] // arch.experts.intermediate_size * arch.intermediate_size
                    for key in ("shared", "routed.active", "routed.idle")
                },
            ),
            "Your experts have the width of the dense MLP. Theirs is arch.experts.intermediate_size.",
        ),
        Wrong(
            "all-active",
            _changed(
                "expert_block",
                lambda r, arch: {"routed.active": r["routed.active"] + r["routed.idle"], "routed.idle": 0},
            ),
            "Every expert is active here. A token visits experts_per_token of them.",
        ),
        Wrong(
            "no-router",
            _changed("expert_block", lambda r, arch: {"router": 0}),
            "The router is learned too: a [num_experts, d] matrix.",
        ),
        Wrong(
            "shared-among-routed",
            _changed(
                "expert_block",
                lambda r, arch: {"shared": 0, "routed.idle": r["routed.idle"] - r["shared"], "routed.active": r["routed.active"] + r["shared"]},
            ),
            "num_experts counts routed experts. Shared ones come on top, in a row of their own.",
        ),
    ),
    shapes={"arch": (ODD_EXPERTS, EXPERTS_WIDE, MIXTRAL, W_MOE, RUNNING)},
)

ROWS = (
    "blocks.attention",
    "blocks.mlp",
    "blocks.experts",
    "blocks.norms",
    "embedding",
    "positions",
    "final_norm",
    "head",
    "extra",
)


def _rows(*values):
    return dict(zip(ROWS, values, strict=True))


whole = Exercise(
    "ledger",
    points=4,
    minutes=15,
    lines=10,
    hints=(
        "Call block and vocabulary once each; one['attention'] is weights and biases together.",
        "num_layers - expert_layers blocks have an MLP, expert_layers have an expert_block instead; all have attention and norms.",
        "A part that is absent is a row of 0, not a missing row: whoever reads the table sees that it was thought of.",
    ),
    cases=(
        given(RUNNING).gives(
            _rows(1_342_177_280, 5_637_144_576, 0, 262_144, 525_336_576, 0, 4_096, 525_336_576, 0)
        ),
        given(TIED).gives(_rows(1_342_177_280, 5_637_144_576, 0, 262_144, 525_336_576, 0, 4_096, 0, 0)),
        given(TOY).gives(_rows(384, 576, 0, 32, 128, 0, 8, 128, 0)),
        given(TOY_TIED).gives(_rows(384, 576, 0, 32, 128, 0, 8, 0, 0)),
        given(ODD_EVERYTHING).gives(_rows(93_048, 145_038, 0, 1_272, 96_864, 7_392, 192, 1_009, 1_056)),
        given(ODD_LEARNED).gives(_rows(92_160, 216_000, 0, 1_152, 96_864, 4_800, 96, 96_864, 869)),
        given(ODD_EXPERTS).gives(_rows(92_160, 72_000, 158_016, 576, 96_864, 0, 96, 96_864, 0)),
        given(W_MOE).gives(
            _rows(28_185_722_880, 0, 679_209_861_120, 860_160, 926_679_040, 0, 7_168, 926_679_040, 0)
        ),
        given(classic_block(3, 64, 100, 4)).gives(_rows(49_920, 99_264, 0, 768, 6_400, 0, 0, 6_400, 0)),
    ),
    wrong=(
        Wrong(
            "one-layer",
            lambda arch: _changed("ledger", lambda r, _: {
                "blocks.attention": r["blocks.attention"] // arch.num_layers,
                "blocks.mlp": r["blocks.mlp"] // max(1, arch.num_layers - arch.expert_layers),
                "blocks.experts": r["blocks.experts"] // max(1, arch.expert_layers),
                "blocks.norms": r["blocks.norms"] // arch.num_layers,
            })(arch),
            "The block rows are one block's. Multiply by the layers.",
        ),
        Wrong(
            "no-final-norm",
            _changed("ledger", lambda r, arch: {"final_norm": 0}),
            "The norm after the last block is missing.",
        ),
        Wrong(
            "tied-twice",
            _changed("ledger", lambda r, arch: {"head": arch.vocab_size * (arch.hidden_size + arch.head_bias)}),
            "The embedding is counted twice: a tied head has no matrix of its own.",
        ),
        Wrong(
            "no-positions",
            _changed("ledger", lambda r, arch: {"positions": 0}),
            "A declared position table is missing.",
        ),
        Wrong(
            "no-extras",
            _changed("ledger", lambda r, arch: {"extra": 0}),
            "extra_trainable_sets is left out: what is declared must be counted.",
        ),
        Wrong(
            "mlp-beside-experts",
            _changed(
                "ledger",
                lambda r, arch: {"blocks.mlp": arch.num_layers * _matrices(arch, arch.intermediate_size)}
                if arch.experts
                else {},
            ),
            "Blocks with experts have no dense MLP beside them: num_layers - expert_layers blocks have one.",
        ),
    ),
    shapes={"arch": EVERY},
)

PAIR = (
    Tensor(name="a", shape=(3, 5)),
    Tensor(name="b", shape=(3, 5)),
    Tensor(name="c", shape=(3, 5), alias_of="a"),
    Tensor(name="d", shape=(7,)),
)
unique = Exercise(
    "unique_scalars",
    points=1,
    minutes=4,
    lines=1,
    hints=("tensor.numel is the product of its shape.", "A tensor with alias_of has no storage of its own: leave it out."),
    cases=(
        given(PAIR).gives(37),
        given(tensor_rows(TOY)).gives(1_256),
        given(tensor_rows(TOY_TIED)).gives(1_128),
        given(tensor_rows(RUNNING)).gives(8_030_261_248),
        given(()).gives(0),
    ),
    wrong=(
        Wrong(
            "aliases-counted",
            lambda tensors: sum(tensor.numel for tensor in tensors),
            "You summed names. A name with alias_of shares another tensor's storage and is counted once, there.",
        ),
        Wrong(
            "equal-shapes-merged",
            lambda tensors: sum(tensor.numel for tensor in {t.shape: t for t in tensors}.values()),
            "You merged tensors of equal shape. Sharing is identity of storage, not equality of shape or value.",
        ),
        Wrong(
            "extents-added",
            lambda tensors: sum(sum(tensor.shape) for tensor in tensors if tensor.alias_of is None),
            "You added the extents. A [3, 5] tensor holds 15 scalars.",
        ),
    ),
    shapes={"tensors": (PAIR, tensor_rows(ODD), tensor_rows(ODD_EVERYTHING), tensor_rows(EXPERTS_WIDE))},
)

CACHE = StateEntry(name="rope.inv_freq", shape=(11,), storage="rope.inv_freq", kind="buffer", persistent=False)
POSITION_IDS = StateEntry(name="position_ids", shape=(1, 77), storage="position_ids", kind="buffer")
FROZEN = state_entries(tensor_rows(TOY_TIED), frozen=("model.embed_tokens",))
ODD_FROZEN = state_entries(tensor_rows(ODD_EVERYTHING), frozen=("model.layers.0", "model.layers.1"))


def _seen(change):
    return _changed("inventory", change)


inventory = Exercise(
    "inventory",
    points=3,
    minutes=12,
    lines=10,
    hints=(
        "Take the parameters first: entry.kind == 'parameter'. Buffers are counted apart.",
        "{entry.storage: entry for entry in parameters}.values() has one entry per storage.",
        "state_entries = every parameter name plus the persistent buffers: a checkpoint keeps aliases as names.",
    ),
    cases=(
        given(state_entries(tensor_rows(TOY_TIED))).gives(
            {"unique": 1_128, "trainable": 1_128, "named": 1_256, "state_entries": 1_256, "buffers": 0}
        ),
        given((*FROZEN, POSITION_IDS, CACHE)).gives(
            {"unique": 1_128, "trainable": 1_000, "named": 1_256, "state_entries": 1_333, "buffers": 77}
        ),
        given((*state_entries(tensor_rows(TOY)), CACHE, POSITION_IDS)).gives(
            {"unique": 1_256, "trainable": 1_256, "named": 1_256, "state_entries": 1_333, "buffers": 77}
        ),
        given(state_entries(tensor_rows(TOY), frozen=("lm_head", "model.norm"))).gives(
            {"unique": 1_256, "trainable": 1_120, "named": 1_256, "state_entries": 1_256, "buffers": 0}
        ),
        given(state_entries(PAIR)).gives(
            {"unique": 37, "trainable": 37, "named": 52, "state_entries": 52, "buffers": 0}
        ),
    ),
    wrong=(
        Wrong(
            "names-as-unique",
            _seen(lambda r, entries: {"unique": r["named"]}),
            "unique counts names. Entries of equal storage are one tensor.",
        ),
        Wrong(
            "frozen-dropped",
            _seen(lambda r, entries: {"unique": r["trainable"]}),
            "unique leaves out what is frozen. Freezing changes what is trained, not what is learned and stored.",
        ),
        Wrong(
            "buffers-as-parameters",
            _seen(lambda r, entries: {"unique": r["unique"] + r["buffers"], "named": r["named"] + r["buffers"]}),
            "Buffers are counted as parameters. A checkpoint holds them; nothing learns them.",
        ),
        Wrong(
            "every-buffer",
            _seen(
                lambda r, entries: (
                    lambda every: {"buffers": every, "state_entries": r["named"] + every}
                )(sum(e.numel for e in entries if e.kind == "buffer"))
            ),
            "A buffer with persistent=False is in no checkpoint.",
        ),
        Wrong(
            "aliases-trained-twice",
            _seen(
                lambda r, entries: {"trainable": sum(e.numel for e in entries if e.kind == "parameter" and e.trainable)}
            ),
            "trainable counts aliases. An optimizer updates each tensor once.",
        ),
    ),
    shapes={
        "entries": (
            (*FROZEN, POSITION_IDS, CACHE),
            (*ODD_FROZEN, CACHE),
            (*ODD_FROZEN, POSITION_IDS),
            state_entries(tensor_rows(EXPERTS_WIDE), frozen=("lm_head",)),
        )
    },
)

coordinates = Exercise(
    "coordinates",
    points=4,
    minutes=15,
    lines=10,
    hints=(
        "'used' is what a token is multiplied with. It is multiplied with the head whether the head is stored or shared.",
        "Of experts, leave out routed.idle; the router is multiplied with, so it stays.",
        "kaplan first: layers times attention_weights, plus MLP or active experts. Then used = kaplan + vocab_size * d.",
    ),
    cases=(
        given(RUNNING).gives({"unique": 8_030_261_248, "used": 7_504_658_432, "kaplan": 6_979_321_856}),
        given(TOY).gives({"unique": 1_256, "used": 1_088, "kaplan": 960}),
        given(TOY_TIED).gives({"unique": 1_128, "used": 1_088, "kaplan": 960}),
        given(ODD_EVERYTHING).gives({"unique": 345_871, "used": 333_024, "kaplan": 236_160}),
        given(ODD_EXPERTS).gives({"unique": 516_576, "used": 321_120, "kaplan": 224_256}),
        given(W_MOE).gives(
            {"unique": 709_249_809_408, "used": 53_004_206_080, "kaplan": 52_077_527_040}
        ),
    ),
    wrong=(
        Wrong(
            "tied-head-unused",
            _changed(
                "coordinates",
                lambda r, arch: {"used": r["kaplan"]} if arch.tie_word_embeddings else {},
            ),
            "A tied head is stored once and used all the same: every logit row is multiplied with it.",
        ),
        Wrong(
            "lookup-as-matmul",
            _changed("coordinates", lambda r, arch: {"used": r["used"] + arch.vocab_size * arch.hidden_size}),
            "The embedding is in 'used'. Reading a row is a lookup, not a product.",
        ),
        Wrong(
            "all-experts",
            _changed(
                "coordinates",
                lambda r, arch: (
                    lambda idle: {"used": r["used"] + idle, "kaplan": r["kaplan"] + idle}
                )(
                    arch.expert_layers
                    * (arch.experts.num_experts - arch.experts.experts_per_token)
                    * _matrices(arch, arch.experts.intermediate_size)
                    if arch.experts
                    else 0
                ),
            ),
            "Idle experts are in. Total for memory, active for FLOPs.",
        ),
        Wrong(
            "with-norms",
            _changed(
                "coordinates",
                lambda r, arch: {
                    key: r[key] + (2 * arch.num_layers + arch.final_norm) * arch.hidden_size * (2 if arch.norm == "layernorm" else 1)
                    for key in ("used", "kaplan")
                },
            ),
            "The norm scales are in. They are learned, but nothing is multiplied with them as a matrix.",
        ),
        Wrong(
            "head-in-kaplan",
            _changed("coordinates", lambda r, arch: {"kaplan": r["used"]}),
            "'kaplan' leaves the vocabulary out, the head too.",
        ),
    ),
    shapes={"arch": EVERY},
)



def _workload_in_the_count(fault):
    from costlib import params

    rows = {w.workload_id: params.ledger(TOY).total * (w.new_rows if fault else 1) for w in (TRAIN_4K, TRAIN_ODD)}
    values = set(rows.values())
    return f"the count depends on the workload: {', '.join(f'{k} {v:,}' for k, v in rows.items())}" * (len(values) > 1)


def _biases_left_out(fault):
    arch = CLASSIC
    rows = [t for t in tensor_rows(arch) if not (fault and t.name.endswith("proj.bias"))]
    return _first(differences(arch, state_entries(rows)))


def _copied_not_tied(fault):
    entries = state_entries(tensor_rows(TOY_TIED))
    if fault:  # the head got a copy of the embedding: equal values, a storage of its own
        entries = (*entries[:-1], entries[-1].replace(storage="lm_head.weight"))
    return _first(differences(TOY_TIED, entries))


def _shard_as_whole(fault):
    rows = [t.replace(shape=(t.shape[0] // 4, *t.shape[1:])) if fault and "q_proj" in t.name else t for t in tensor_rows(TOY)]
    return _first(differences(TOY, state_entries(rows)))


def _hidden_extra(fault):
    adapter = Tensor(name="model.layers.0.self_attn.q_proj.lora_A.weight", shape=(2, 8))
    return _first(differences(TOY, state_entries((*tensor_rows(TOY), *((adapter,) if fault else ())))))


def _first(found):
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return found[0] + more if found else ""


FAILURES = (
    Failure(
        "tokens multiplied into the parameter count",
        "learned state does not depend on B, S or T: no function of params takes a workload",
        check=_workload_in_the_count,
    ),
    Failure(
        "four square attention matrices",
        "k and v are d_kv wide, q and o d_q; neither need be d",
        wrong=("attention_weights", "square-attention"),
    ),
    Failure(
        "MLP width guessed from the activation's name",
        "the width is a field of the manifest, the number of matrices another",
        wrong=("mlp_weights", "four-d"),
    ),
    Failure(
        "biases dropped because they are small",
        "a declared bias is a named tensor and must be seen",
        check=_biases_left_out,
    ),
    Failure(
        "rotary table counted as learned",
        "generated tables are buffers, if anything",
        wrong=("position_scalars", "rotary-cache"),
    ),
    Failure(
        "final norm forgotten",
        "every part outside the stack has a row, absent ones a row of 0",
        wrong=("ledger", "no-final-norm"),
    ),
    Failure(
        "equal values taken for tied weights",
        "tying is one storage under two names",
        check=_copied_not_tied,
    ),
    Failure(
        "names summed as unique parameters",
        "one count per storage; buffers apart",
        wrong=("inventory", "names-as-unique"),
    ),
    Failure(
        "frozen weights left out",
        "learned and trainable are two counts",
        wrong=("inventory", "frozen-dropped"),
    ),
    Failure(
        "one rank's shard read as the tensor",
        "a local shape is compared only under a sharding rule",
        check=_shard_as_whole,
    ),
    Failure(
        "an adapter hidden in the model",
        "whatever is trainable is declared by name and shape",
        check=_hidden_extra,
    ),
)

LAB = Lab(
    "03",
    "The parameter ledger",
    "params",
    (
        attention,
        attention_bias,
        mlp,
        mlp_bias,
        norm,
        position,
        vocabulary,
        block,
        experts,
        whole,
        unique,
        inventory,
        coordinates,
    ),
    FAILURES,
)
