"""W's lab, success criteria, interview answers and takeaways."""

from decimal import Decimal
from fractions import Fraction

from costlib import napkin
from costlib.fixtures import W_70B, W_MOE
from costlib.hardware import CHIPS
from costlib.units import GB, TB, ceil_div, fixed

OWNS = ("W.QA.", "W.TIPS.", "W.LAB.", "W.SUCC.")
H100 = CHIPS["H100"]
N, BILLION, TRILLION = 70 * 10**9, 10**9, 10**12
CHIPS_RENTED, DAYS, SMALLER = 1000, 30, 30 * 10**9
MOE_TOTAL, TOP_K, EXPERTS = 400 * BILLION, 8, 128
LAB = (
    ("matmul_flops",),
    ("params_per_layer", "total_params"),
    ("training_flops_exact",),
    ("moe_parameter_split",),
    ("training_memory",),
    ("kv_cache_bytes", "max_concurrent_requests"),
    ("budget_to_flops", "chinchilla_split"),
    ("budget_report",),
)
# E, A, B, alpha, beta of L = E + A / N^alpha + B / D^beta
HOFFMANN = ("1.69", "406.4", "410.7", "0.34", "0.28")
REFIT = ("1.8172", "482.01", "2085.43", "0.3478", "0.3658")  # Besiroglu et al., 2024


def plan():
    return napkin.budget_report(H100, CHIPS_RENTED, DAYS)


def optimal_n():
    """To sixty digits, as the record has it."""
    n, _ = napkin.chinchilla_split(plan()["flops"] * 10**100)
    return Fraction(round(Fraction(n, 10)), 10**49)


def same_compute():
    return Fraction(plan()["flops"], napkin.training_flops(SMALLER, 1))


def loss(n_params, n_tokens, fit):
    E, A, B, alpha, beta = map(Decimal, fit)
    return E + A / Decimal(n_params) ** alpha + B / Decimal(n_tokens) ** beta


def given_up(fit):
    """Nats lost by the smaller model at equal compute; negative where it is the better one."""
    return loss(SMALLER, int(same_compute()), fit) - loss(plan()["params"], plan()["tokens"], fit)


def step(T, m=W_70B, vocab=0):
    return napkin.training_flops_exact(
        1, T, m.hidden_size, m.intermediate_size, m.num_attention_heads, m.num_key_value_heads, m.head_dim, m.num_layers,
        vocab=vocab,
    )


def beside_6nd(T):
    return Fraction(step(T)["attn_seq"], napkin.training_flops(N, T))


def decode_pairwise(tokens):
    return 2 * napkin.matmul_flops(1, W_70B.head_dim, tokens, batch=W_70B.num_layers * W_70B.num_attention_heads)


def decode_intensity(batch, tokens=8192):
    cache = napkin.kv_cache_bytes(W_70B.num_layers, 8, W_70B.head_dim, tokens, batch)
    return Fraction(2 * N * batch, napkin.training_memory(N)["weights"] + cache)


def balance():
    return Fraction(H100.peak_flops, H100.bytes_per_second)


def breaks():
    """What 6ND leaves out or counts wrongly: one FLOP count each, of one token or of the parameters."""
    experts = napkin.moe_parameter_split(60, 7168, 2048, 256, 8, 128, 128, 128, 1)
    return {
        "attention": step(8192)["attn_seq"],
        "experts": napkin.training_flops(experts["idle"], 1),
        "vocabulary": step(1, vocab=256000)["head"],
        "recomputation": napkin.training_flops(N, 1) // 3,
    }


FACTS = {
    "W.QA.003": lambda: Fraction(napkin.training_memory(MOE_TOTAL)["weights"], GB),
    "W.QA.005": lambda: plan()["flops"],
    "W.QA.006": lambda: optimal_n() / BILLION,
    "W.QA.007": lambda: 20 * optimal_n() / TRILLION,
    "W.QA.009": lambda: same_compute() / TRILLION,  # W-13
    "W.QA.011": lambda: optimal_n() / SMALLER,
    "W.QA.014": lambda: Fraction(napkin.training_memory(N).total, TB),
    "W.QA.015": lambda: Fraction(H100.memory_bytes, GB),
    "W.QA.016": lambda: 100 * napkin.training_memory(N).share("optimizer"),
    "W.QA.018": balance,  # W-12
    "W.TIPS.001": lambda: napkin.training_memory(1).total,
    "W.TIPS.003": lambda: napkin.training_flops(175 * BILLION, 300 * BILLION),
    "W.TIPS.004": lambda: napkin.training_flops(N, 15 * TRILLION),
    "W.TIPS.006": lambda: 100 * beside_6nd(2_048),  # W-03: 3.8, not 3
    "W.TIPS.007": lambda: 1 + beside_6nd(1_048_576),  # W-03: 20.6, not 22
    "W.TIPS.009": lambda: napkin.training_memory(1, "adam").total,
    # what the answers are given, read off what the numbers above are counted from
    "W.QA.020": lambda: MOE_TOTAL // BILLION,
    "W.QA.021": lambda: TOP_K,
    "W.QA.022": lambda: EXPERTS,
    "W.QA.023": lambda: CHIPS_RENTED,
    "W.QA.024": lambda: DAYS,
    "W.QA.025": lambda: MOE_TOTAL // BILLION,
    "W.QA.026": lambda: Fraction(100 * plan()["flops"], CHIPS_RENTED * DAYS * 86_400 * H100.peak_flops),
    "W.QA.027": lambda: MOE_TOTAL // BILLION,
    "W.QA.028": lambda: napkin.training_flops(1, 1),
}

TEXTS = {
    "W.QA.001": lambda: napkin.matmul_flops(1, 3, 5) + napkin.linear_backward(1, 3, 5).total == (2 + 4) * 3 * 5,
    # W-02: with heads and head width; d_model only where their product is d_model
    "W.QA.002": lambda: [step(56, m)["attn_seq"] for m in (W_70B, W_MOE)]
    == [12 * 80 * 56**2 * 64 * 128, 12 * 60 * 56**2 * 128 * 128]
    and (W_70B.d_q == W_70B.hidden_size, W_MOE.d_q == W_MOE.hidden_size) == (True, False),
    # the routed part is 389 and the rest 11 of the 400: possible
    "W.QA.004": lambda: Fraction(MOE_TOTAL - 35 * BILLION, EXPERTS - TOP_K) * EXPERTS == Fraction(1168, 3) * BILLION,
    "W.QA.008": lambda: ceil_div(plan()["weight_bytes"], H100.memory_bytes) == 3,
    # W-14: the sign depends on whose fit it is; no fit gives 0.02
    "W.QA.010": lambda: [round(given_up(fit), 4) for fit in (HOFFMANN, REFIT)] == [Decimal("-0.0054"), Decimal("0.0125")],
    "W.QA.012": lambda: napkin.budget_to_flops(H100, 1, 1) == napkin.budget_to_flops(H100, 1, 1, Fraction(40, 100)),
    # W-10: to 43.3 in the table the answer quotes
    "W.QA.017": lambda: [fixed(decode_intensity(batch), 1) for batch in (1, 8, 64, 256)] == ["1.0", "6.9", "28.7", "43.3"],
    # W-11: and 15 % more for attention at 8k
    "W.QA.019": lambda: decode_pairwise(8192) == 4 * 80 * 64 * 128 * 8192
    and fixed(Fraction(100 * decode_pairwise(8192), 2 * N), 1) == "15.3",
    "W.TIPS.002": lambda: napkin.training_flops(7, 11) == 3 * (2 * 7 * 11),
    "W.TIPS.005": lambda: napkin.training_memory(N)["weights"] == 140 * GB,
    "W.TIPS.008": lambda: napkin.matmul_flops(1, 3, 5) == 2 * 15 and napkin.training_flops(15, 1) == 6 * 15,
    "W.TIPS.010": lambda: napkin.matmul_flops(1, 4096, 11008) == 2 * 4096 * 11008,
    "W.TIPS.011": lambda: fixed(plan()["usd_per_1e21_flops"], 2) == "1,753.65",
    # W-11: not below 1,445 tokens, with sequences enough
    "W.TIPS.012": lambda: decode_intensity(10**9, 1_445) > balance() > decode_intensity(10**9, 1_446),
    "W.LAB.001": lambda: len(LAB) == 8
    and [getattr(napkin, name).exercise for item in LAB for name in item]
    == [f"napkin.{name}" for item in LAB for name in item]
    and sum(map(len, LAB)) == 11,
    "W.LAB.002": lambda: napkin.training_flops_exact(2, 3, 5, 7, 4, 4, 6, 1)["mlp"] == 18 * 2 * 3 * 5 * 7
    and napkin.training_flops_exact(2, 3, 5, 7, 4, 4, 6, 9)["attn_proj"] == 9 * 24 * 2 * 3 * 5 * 4 * 6,
    "W.LAB.003": lambda: napkin.linear_backward(7, 11, 13).total == 2 * napkin.matmul_flops(7, 11, 13),
    "W.SUCC.001": lambda: beside_6nd(8_192) > Fraction(1, 10),
    "W.SUCC.003": lambda: len(breaks()) == 4 and min(breaks().values()) > 0,
}

REST = {
    "W.QA.013": "a practitioner's range of utilisation; W derives no bound for it",
    "W.SUCC.002": "minutes at a whiteboard; the derivation itself is W.C5.009",
}
