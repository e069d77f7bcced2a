"""M 0x02: parameters."""

from fractions import Fraction

from costlib import params
from costlib.fixtures import CLASSIC, RUNNING, TOY, TOY_TIED, classic_block
from costlib.schema import tensor_rows
from costlib.units import GB, ceil_div

OWNS = ("M.02",)
MHA, MQA = (RUNNING.replace(num_key_value_heads=heads) for heads in (32, 1))
TIED = RUNNING.replace(tie_word_embeddings=True)
d = RUNNING.hidden_size
SHAPES = {tensor.name: tensor for tensor in tensor_rows(RUNNING)}
LAYER = "model.layers.0.self_attn."


def numel(name):
    return SHAPES[LAYER + name + ".weight"].numel


def of_d(part, width=64):
    """(coefficient of d**2, coefficient of d) of a part of the classic block, from two widths."""
    one, two = (params.block(classic_block(1, w, 10, 4))[part] for w in (width, 2 * width))
    square = (two - 2 * one) // (2 * width**2)
    return square, (one - square * width**2) // width


def classic_total(width):
    part = [of_d(name, width) for name in ("attention", "mlp", "norms")]
    return sum(p[0] for p in part), sum(p[1] for p in part)


def vocabularies(arch):
    """How many vocabulary tables of V x d the ledger holds."""
    ledger = params.ledger(arch)
    return (ledger["embedding"] + ledger["head"]) // (arch.vocab_size * arch.hidden_size)


def BLOCK(arch):
    return params.block(arch)


def WHOLE(arch):
    return params.ledger(arch)


def matrices(arch):
    return WHOLE(arch)["blocks.attention"] + WHOLE(arch)["blocks.mlp"]


def norms(arch):
    return WHOLE(arch)["blocks.norms"] + WHOLE(arch)["final_norm"]


FACTS = {
    # M 0x02B
    "M.02B.003": lambda: params.attention_weights(MHA),
    "M.02B.004": lambda: MHA.d_kv,
    "M.02B.005": lambda: params.attention_weights(RUNNING),
    "M.02B.006": lambda: Fraction(params.attention_weights(RUNNING), d**2),
    "M.02B.007": lambda: RUNNING.d_kv,
    "M.02B.008": lambda: params.attention_weights(MQA),
    "M.02B.009": lambda: MQA.d_kv,
    "M.02B.010": lambda: numel("q_proj"),
    "M.02B.011": lambda: numel("k_proj"),
    "M.02B.012": lambda: numel("v_proj"),
    "M.02B.013": lambda: numel("o_proj"),
    "M.02B.014": lambda: sum(map(numel, ("q_proj", "k_proj", "v_proj", "o_proj"))),
    "M.02B.016": lambda: RUNNING.hidden_size,
    "M.02B.017": lambda: RUNNING.num_attention_heads,
    "M.02B.018": lambda: RUNNING.head_dim,
    "M.02B.019": lambda: numel("q_proj"),
    "M.02B.020": lambda: numel("k_proj"),
    "M.02B.021": lambda: numel("v_proj"),
    # M 0x02C
    "M.02C.003": lambda: of_d("mlp.weights")[0],
    "M.02C.008": lambda: Fraction(RUNNING.intermediate_size, d),
    "M.02C.009": lambda: params.mlp_weights(RUNNING, 14336),
    "M.02C.010": lambda: Fraction(params.mlp_weights(RUNNING, 14336), d**2),
    "M.02C.011": lambda: Fraction(params.mlp_weights(RUNNING, 14336), params.attention_weights(RUNNING)),
    "M.02C.012": lambda: Fraction(RUNNING.intermediate_size, d),
    "M.02C.013": lambda: params.mlp_weights(RUNNING, 14336),
    # M 0x02D
    "M.02D.004": lambda: params.vocabulary(RUNNING)["embedding"],
    "M.02D.006": lambda: RUNNING.vocab_size,
    "M.02D.007": lambda: d,
    "M.02D.008": lambda: params.vocabulary(RUNNING)["head"],
    # M 0x02F
    "M.02F.001": lambda: of_d("attention")[0],
    "M.02F.002": lambda: of_d("attention")[1],
    "M.02F.003": lambda: of_d("mlp")[0],
    "M.02F.004": lambda: of_d("mlp")[1],
    "M.02F.005": lambda: of_d("norms")[1],
    "M.02F.006": lambda: classic_total(64)[0],
    "M.02F.007": lambda: classic_total(64)[1],
    "M.02F.008": lambda: vocabularies(CLASSIC),
    "M.02F.009": lambda: classic_total(96)[0],
    "M.02F.010": lambda: Fraction(params.attention_weights(RUNNING), d**2),
    "M.02F.011": lambda: Fraction(params.mlp_weights(RUNNING, 14336), d**2),
    "M.02F.012": lambda: Fraction(BLOCK(RUNNING).total - BLOCK(RUNNING)["norms"], d**2),
    # M 0x02G
    "M.02G.001": lambda: TOY.d_q,
    "M.02G.002": lambda: TOY.d_kv,
    "M.02G.003": lambda: 2 * TOY.hidden_size * TOY.d_q,
    "M.02G.004": lambda: params.attention_weights(TOY) - 2 * TOY.hidden_size * TOY.d_q,
    "M.02G.005": lambda: params.mlp_weights(TOY, 12),
    "M.02G.006": lambda: BLOCK(TOY)["norms"],
    "M.02G.007": lambda: BLOCK(TOY).total,
    "M.02G.008": lambda: WHOLE(TOY)["blocks"],
    "M.02G.009": lambda: WHOLE(TOY)["embedding"],
    "M.02G.010": lambda: WHOLE(TOY)["head"],
    "M.02G.011": lambda: WHOLE(TOY)["final_norm"],
    "M.02G.012": lambda: WHOLE(TOY).total,
    "M.02G.013": lambda: sum(tensor.numel for tensor in tensor_rows(TOY_TIED)),
    "M.02G.014": lambda: WHOLE(TOY_TIED).total,
    "M.02G.015": lambda: TOY.num_layers,
    "M.02G.016": lambda: TOY.hidden_size,
    "M.02G.017": lambda: TOY.num_attention_heads,
    "M.02G.018": lambda: TOY.num_key_value_heads,
    "M.02G.019": lambda: TOY.head_dim,
    "M.02G.020": lambda: TOY.intermediate_size,
    "M.02G.021": lambda: TOY.vocab_size,
    "M.02G.022": lambda: 2 * TOY.hidden_size * TOY.d_q,
    "M.02G.023": lambda: 2 * TOY.hidden_size * TOY.d_kv,
    "M.02G.024": lambda: params.mlp_weights(TOY, 12),
    "M.02G.025": lambda: BLOCK(TOY)["norms"],
    "M.02G.026": lambda: BLOCK(TOY).total,
    "M.02G.027": lambda: WHOLE(TOY)["blocks"],
    "M.02G.028": lambda: WHOLE(TOY)["embedding"],
    "M.02G.029": lambda: WHOLE(TOY)["head"],
    "M.02G.030": lambda: WHOLE(TOY).total,
    "M.02G.031": lambda: WHOLE(TOY_TIED).total,
    # M 0x02I
    "M.02I.001": lambda: params.attention_weights(RUNNING),
    "M.02I.002": lambda: RUNNING.num_layers,
    "M.02I.003": lambda: WHOLE(RUNNING)["blocks.attention"],
    "M.02I.004": lambda: params.mlp_weights(RUNNING, 14336),
    "M.02I.005": lambda: RUNNING.num_layers,
    "M.02I.006": lambda: WHOLE(RUNNING)["blocks.mlp"],
    "M.02I.007": lambda: BLOCK(RUNNING)["norms"],
    "M.02I.008": lambda: RUNNING.num_layers,
    "M.02I.009": lambda: WHOLE(RUNNING)["blocks.norms"],
    "M.02I.010": lambda: WHOLE(RUNNING)["embedding"],
    "M.02I.011": lambda: WHOLE(RUNNING)["head"],
    "M.02I.012": lambda: WHOLE(RUNNING)["final_norm"],
    "M.02I.013": lambda: WHOLE(RUNNING).total,
    "M.02I.014": lambda: matrices(RUNNING),
    "M.02I.015": lambda: BLOCK(RUNNING)["attention"],
    "M.02I.016": lambda: BLOCK(RUNNING)["mlp"],
    "M.02I.017": lambda: BLOCK(RUNNING)["norms"],
    "M.02I.018": lambda: WHOLE(RUNNING)["final_norm"],
    "M.02I.019": lambda: norms(RUNNING),
    "M.02I.020": lambda: params.vocabulary(RUNNING)["embedding"],
    "M.02I.021": lambda: params.vocabulary(RUNNING).total,
    "M.02I.022": lambda: params.coordinates(RUNNING)["kaplan"],
    "M.02I.023": lambda: norms(RUNNING),
    "M.02I.024": lambda: params.vocabulary(RUNNING).total,
    "M.02I.025": lambda: params.unique_scalars(tensor_rows(RUNNING)),
    "M.02I.026": lambda: Fraction(WHOLE(RUNNING).total, GB),
    "M.02I.027": lambda: WHOLE(TIED).total,
    "M.02I.028": lambda: matrices(RUNNING),
    "M.02I.029": lambda: norms(RUNNING),
    "M.02I.030": lambda: params.vocabulary(RUNNING).total,
    "M.02I.031": lambda: WHOLE(RUNNING).total,
}

TEXTS = {
    "M.02B.001": lambda: params.attention_weights(MQA) == 2 * d * 128 * (32 + 1),
    "M.02B.002": lambda: params.attention_biases(RUNNING.replace(attention_bias="all")) == 4096 + 2 * 1024 + 4096,
    "M.02B.015": lambda: numel("q_proj") + numel("k_proj") + numel("v_proj") == (RUNNING.d_q + 2 * RUNNING.d_kv) * d,
    "M.02C.001": lambda: params.mlp_weights(CLASSIC, 3072) == 2 * 768 * 3072,
    "M.02C.002": lambda: params.mlp_biases(CLASSIC) == 3072 + 768,
    "M.02C.004": lambda: params.mlp_weights(TOY, 12) == 3 * 8 * 12,
    "M.02C.005": lambda: params.mlp_biases(RUNNING.replace(mlp_bias=True)) == 2 * 14336 + 4096,
    "M.02C.006": lambda: params.mlp_weights(RUNNING, 2 * 12) == params.mlp_weights(RUNNING.replace(mlp="two-matrix"), 3 * 12),
    "M.02C.007": lambda: ceil_div(8 * d, 3 * 256) * 256 == 11008 and 2 * d * 4 * d == 3 * d * Fraction(8 * d, 3),
    "M.02D.001": lambda: [params.norm_scalars(arch, 10) for arch in (RUNNING, CLASSIC)] == [10, 20],
    "M.02D.002": lambda: norms(RUNNING) == 32 * 2 * d + d,
    "M.02D.003": lambda: params.vocabulary(TIED).total * 2 == params.vocabulary(RUNNING).total,
    "M.02D.005": lambda: WHOLE(RUNNING).total - WHOLE(TIED).total > 500_000_000,
    # The document's counter refuses tied manifests (M-08); ours gives its own 0x02G fixture.
    "M.02H.001": lambda: WHOLE(TOY_TIED).total == 1_128,
    "M.02J.001": lambda: BLOCK(RUNNING).total != 12 * d**2 and classic_total(64)[0] == 12,
}
