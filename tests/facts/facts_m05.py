"""M 0x05: forward FLOPs."""

from fractions import Fraction

from costlib import forward, napkin, params
from costlib.fixtures import DECODE_32K, PREFILL_4K, RUNNING, TRAIN_4K, classic_block
from costlib.units import GB, TB

OWNS = ("M.05",)
d, S = RUNNING.hidden_size, TRAIN_4K.new_rows
SQUARE, PAIRS = S * d**2, S**2 * d  # B = 1
A16 = classic_block(1, d, 10, 32)  # dense MHA and two matrices of 4d at the running width
MHA = RUNNING.replace(num_key_value_heads=32)


def q_k_v_o(arch=RUNNING):
    return forward.projections(arch, S)


def pairs(arch=RUNNING, convention="rectangular"):
    return forward.attention_products(arch, TRAIN_4K, convention)


def both(arch=RUNNING, convention="rectangular"):
    return sum(pairs(arch, convention).values())


def mlp(arch=RUNNING):
    return forward.mlp_products(arch, S, arch.intermediate_size)


def whole(work=TRAIN_4K):
    return forward.ledger(RUNNING, work)


def block(arch=RUNNING):
    return forward.ledger(arch, TRAIN_4K)["blocks"] // arch.num_layers


def share(flops):
    return Fraction(100 * flops, block())


def c(arch, name):
    return forward.coefficients(arch)[name]


def linear(arch):
    return c(arch, "projections") + c(arch, "mlp")


def per_row(work):
    """FLOPs of a logit row in units of d * V."""
    rows = work.batch_size * (work.new_rows if work.logits == "all" else 1)
    return Fraction(forward.logits(RUNNING, work), rows * d * RUNNING.vocab_size)


def row_choices(work):
    """(newly projected, query, visible, logit) rows of one sequence, each read off one product."""
    one = work.replace(batch_size=1)
    new = Fraction(forward.ledger(RUNNING, one)["blocks.k"], RUNNING.num_layers * 2 * d * RUNNING.d_kv)
    query = Fraction(forward.ledger(RUNNING, one)["blocks.q"], RUNNING.num_layers * 2 * d * RUNNING.d_q)
    scores = forward.attention_products(RUNNING, one)["scores"]
    visible = scores // (2 * RUNNING.d_q) // query
    return new, query, visible, Fraction(forward.logits(RUNNING, one), 2 * d * RUNNING.vocab_size)


ALL_PROMPT = PREFILL_4K.replace(workload_id="prefill-all", logits="all")
FACTS = {
    "M.05A.002": lambda: Fraction(forward.product_counts(7, 11, 13)["flops"], 7 * 11 * 13),
    "M.05B.005": lambda: RUNNING.num_attention_heads,
    "M.05B.006": lambda: RUNNING.num_key_value_heads,
    "M.05C.001": lambda: RUNNING.d_q,
    "M.05C.002": lambda: RUNNING.d_kv,
    "M.05C.003": lambda: params.attention_weights(RUNNING),
    "M.05C.004": lambda: q_k_v_o().total,
    "M.05C.005": lambda: Fraction(q_k_v_o().total, 2 * S),
    "M.05C.006": lambda: Fraction(q_k_v_o().total, GB),
    "M.05C.007": lambda: c(MHA, "projections"),
    "M.05C.008": lambda: c(RUNNING, "projections"),
    "M.05C.015": lambda: q_k_v_o().total,
    "M.05D.001": lambda: pairs()["scores"],
    "M.05D.002": lambda: Fraction(pairs()["scores"], GB),
    "M.05D.003": lambda: both(),
    "M.05D.004": lambda: Fraction(both(), GB),
    "M.05D.007": lambda: Fraction(forward.area(S, S, "causal-legal"), forward.area(S, S, "rectangular")),
    "M.05D.008": lambda: both(convention="causal-legal"),
    "M.05D.009": lambda: both(convention="rectangular"),
    "M.05D.015": lambda: TRAIN_4K.new_rows,
    "M.05D.016": lambda: pairs()["scores"],
    "M.05E.001": lambda: Fraction(mlp().total, S * d * RUNNING.intermediate_size),
    "M.05E.002": lambda: c(RUNNING, "mlp"),
    "M.05E.003": lambda: Fraction(RUNNING.intermediate_size, d),
    "M.05E.004": lambda: mlp().total,
    "M.05E.005": lambda: Fraction(mlp().total, TB),
    "M.05E.006": lambda: Fraction(mlp(A16)["up"], SQUARE),
    "M.05E.007": lambda: Fraction(mlp(A16)["down"], SQUARE),
    "M.05E.008": lambda: Fraction(mlp(A16).total, SQUARE),
    "M.05E.010": lambda: RUNNING.intermediate_size,
    "M.05E.011": lambda: mlp().total,
    "M.05F.001": lambda: Fraction(q_k_v_o(A16).total - q_k_v_o(A16)["o"], SQUARE),
    "M.05F.002": lambda: Fraction(q_k_v_o(A16)["o"], SQUARE),
    "M.05F.003": lambda: Fraction(mlp(A16).total, SQUARE),
    "M.05F.004": lambda: Fraction(pairs(A16)["scores"], PAIRS),
    "M.05F.005": lambda: Fraction(pairs(A16)["values"], PAIRS),
    "M.05F.006": lambda: linear(A16),
    "M.05F.007": lambda: c(A16, "pairs"),
    "M.05F.008": lambda: c(RUNNING, "projections"),
    "M.05F.009": lambda: c(RUNNING, "mlp"),
    "M.05F.010": lambda: c(RUNNING, "pairs"),
    "M.05F.011": lambda: linear(RUNNING),
    "M.05F.012": lambda: Fraction(both(), PAIRS),
    "M.05F.013": lambda: Fraction(q_k_v_o(A16).total, SQUARE),
    "M.05F.014": lambda: c(A16, "mlp"),
    "M.05F.015": lambda: Fraction(both(A16), PAIRS),
    "M.05F.016": lambda: Fraction(forward.a16_block(1, S, d) - 4 * PAIRS, SQUARE),
    "M.05F.017": lambda: Fraction(q_k_v_o().total, SQUARE),
    "M.05F.018": lambda: Fraction(mlp().total, SQUARE),
    "M.05F.019": lambda: Fraction(both(), PAIRS),
    "M.05F.020": lambda: Fraction(block() - both(), SQUARE),
    "M.05F.021": lambda: forward.a16_block(1, S, d),
    "M.05F.022": lambda: Fraction(block(A16), TB),
    "M.05F.023": lambda: block(),
    "M.05F.024": lambda: Fraction(block(), TB),
    "M.05F.025": lambda: TRAIN_4K.batch_size,
    "M.05F.026": lambda: d,
    "M.05F.027": lambda: Fraction(RUNNING.intermediate_size, d),
    "M.05G.001": lambda: per_row(TRAIN_4K),
    "M.05G.002": lambda: per_row(TRAIN_4K),
    "M.05G.003": lambda: per_row(PREFILL_4K),
    "M.05G.004": lambda: per_row(DECODE_32K),
    "M.05G.005": lambda: per_row(ALL_PROMPT),
    "M.05G.006": lambda: forward.logits(RUNNING, PREFILL_4K),
    "M.05G.007": lambda: Fraction(forward.logits(RUNNING, PREFILL_4K), GB),
    "M.05G.008": lambda: forward.logits(RUNNING, TRAIN_4K),
    "M.05G.009": lambda: Fraction(forward.logits(RUNNING, TRAIN_4K), TB),
    "M.05G.010": lambda: row_choices(TRAIN_4K)[3],
    "M.05G.011": lambda: forward.logits(RUNNING, DECODE_32K),
    "M.05G.012": lambda: forward.logits(RUNNING, ALL_PROMPT),
    "M.05I.001": lambda: q_k_v_o().total,
    "M.05I.002": lambda: Fraction(q_k_v_o().total, GB),
    "M.05I.003": lambda: share(q_k_v_o().total),
    "M.05I.004": lambda: pairs()["scores"],
    "M.05I.005": lambda: Fraction(pairs()["scores"], GB),
    "M.05I.006": lambda: share(pairs()["scores"]),
    "M.05I.007": lambda: pairs()["values"],
    "M.05I.008": lambda: Fraction(pairs()["values"], GB),
    "M.05I.009": lambda: share(pairs()["values"]),
    "M.05I.010": lambda: mlp().total,
    "M.05I.011": lambda: Fraction(mlp().total, TB),
    "M.05I.012": lambda: share(mlp().total),
    "M.05I.013": lambda: block(),
    "M.05I.014": lambda: Fraction(block(), TB),
    "M.05I.015": lambda: share(q_k_v_o().total + both() + mlp().total),
    "M.05I.018": lambda: whole()["blocks"],
    "M.05I.019": lambda: Fraction(whole()["blocks"], TB),
    "M.05I.020": lambda: Fraction(whole(PREFILL_4K)["blocks"], TB),
    "M.05I.021": lambda: Fraction(whole(PREFILL_4K)["head"], TB),
    "M.05I.022": lambda: Fraction(whole(PREFILL_4K).total, TB),
    "M.05I.023": lambda: Fraction(whole()["blocks"], TB),
    "M.05I.024": lambda: Fraction(whole()["head"], TB),
    "M.05I.025": lambda: Fraction(whole().total, TB),
    "M.05J.001": lambda: q_k_v_o().total,
    "M.05J.002": lambda: pairs()["scores"],
    "M.05J.003": lambda: pairs()["values"],
    "M.05J.004": lambda: mlp().total,
    "M.05J.005": lambda: block(),
    "M.05J.006": lambda: whole()["head"],
    "M.05J.008": lambda: row_choices(TRAIN_4K)[3],
    "M.05K.003": lambda: Fraction(RUNNING.intermediate_size, d),
}


def rounded(value, digits):
    return round(Fraction(value) * 10**digits)


TEXTS = {
    "M.05A.001": lambda: forward.product_counts(1, 96, 1)["from_zero"] == 96 + 95,
    "M.05A.003": lambda: all(
        n["flops"] - n["from_zero"] == 7 * 13 for n in [forward.product_counts(7, k, 13) for k in (1, 2, 11, 4096)]
    ),
    "M.05A.004": lambda: forward.product_counts(7, 11, 13)["flops"] == 2 * forward.product_counts(7, 11, 13)["macs"],
    "M.05B.001": lambda: row_choices(TRAIN_4K) == (4096, 4096, 4096, 4096),
    "M.05B.002": lambda: row_choices(PREFILL_4K) == (4096, 4096, 4096, 1),
    "M.05B.003": lambda: row_choices(DECODE_32K) == (1, 1, 32768, 1),
    "M.05B.004": lambda: forward.projections(RUNNING, 3 * 56)["k"] == 3 * forward.projections(RUNNING, 56)["k"],
    "M.05C.009": lambda: Fraction(RUNNING.d_kv, d) == Fraction(1, 4),
    "M.05C.010": lambda: q_k_v_o().total == 2 * S * (d * RUNNING.d_q + 2 * d * RUNNING.d_kv + RUNNING.d_q * d),
    "M.05C.011": lambda: q_k_v_o().total == 4 * SQUARE + 4 * S * d * (d // 4),
    "M.05C.012": lambda: q_k_v_o()["q"] == 2 * S * 4096 * 4096,
    "M.05C.013": lambda: q_k_v_o()["k"] + q_k_v_o()["v"] == 2 * S * 2 * (4096 * 1024),
    "M.05C.014": lambda: q_k_v_o()["o"] == 2 * S * 4096 * 4096,
    "M.05D.005": lambda: both() == 4 * S * S * RUNNING.d_q,
    "M.05D.006": lambda: forward.area(S, S, "causal-legal") == S * (S + 1) // 2 == 8_390_656,
    "M.05D.010": lambda: both(convention="causal-legal") == 2 * 32 * S * (S + 1) * 128,
    "M.05D.011": lambda: Fraction(both(convention="causal-legal"), both()) == Fraction(S + 1, 2 * S),
    "M.05D.012": lambda: pairs()["scores"] == napkin.matmul_flops(S, 128, S, batch=32),
    "M.05D.013": lambda: pairs()["values"] == napkin.matmul_flops(S, S, 128, batch=32),
    "M.05D.014": lambda: both() == 4 * 32 * S * S * 128,
    "M.05E.009": lambda: all(flops == 2 * S * d * RUNNING.intermediate_size for flops in mlp().values()),
    "M.05I.016": lambda: whole()["blocks"] == 65_970_697_666_560,
    "M.05I.017": lambda: whole()["blocks"] == 32 * 2_061_584_302_080,
    # Rounded cells that do not add up (M-01); the exact integers do.
    "M.05I.026": lambda: rounded(Fraction(whole(PREFILL_4K)["blocks"], TB), 6)
    + rounded(Fraction(whole(PREFILL_4K)["head"], TB), 6)
    == 65_971_749
    and rounded(Fraction(whole(PREFILL_4K).total, TB), 6) == 65_971_748,
    "M.05I.027": lambda: sum(
        rounded(share(part), 3) for part in (q_k_v_o().total, pairs()["scores"], pairs()["values"], mlp().total)
    )
    == 100_001
    and share(q_k_v_o().total + both() + mlp().total) == 100,
    "M.05J.007": lambda: block(A16) == forward.a16_block(1, S, d) == 24 * SQUARE + 4 * PAIRS,
    "M.05K.001": lambda: q_k_v_o()["q"] == 2 * forward.product_counts(S, d, RUNNING.d_q)["macs"],
    "M.05K.002": lambda: (linear(A16), c(A16, "pairs"), linear(RUNNING), c(RUNNING, "pairs")) == (24, 4, 26, 4),
}
REST = {}
