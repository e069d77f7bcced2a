"""W Chapters 5 to 7: 6ND, the count of one step, and where 6ND breaks."""

from fractions import Fraction

from costlib import napkin, params
from costlib.fixtures import RUNNING, TRAP, W_MOE
from costlib.units import fixed

OWNS = ("W.C5.", "W.C6.", "W.C7.")
BILLION, TRILLION = 10**9, 10**12
LINEAR = (1024, 4096, 11008)  # W's call: T, k, n
RUNS = (  # parameters and tokens as their papers say
    ("GPT-3", 175 * BILLION, 300 * BILLION),
    ("Chinchilla", 70 * BILLION, 1_400 * BILLION),
    ("Llama-3-70B", 70 * BILLION, 15 * TRILLION),
    ("Llama-3-8B", 8 * BILLION, 15 * TRILLION),
)
COMPUTE = {name: (n, d) for name, n, d in RUNS}
STEP = {"B": 8, "T": 8192, "d_model": 8192, "d_ff": 28672, "n_heads": 64, "d_head": 128, "n_layers": 80}
LENGTHS = (2_048, 8_192, 32_768, 131_072, 1_048_576)
N = 70 * BILLION  # what W Chapter 7 puts into 6ND
MOE = {"n_layers": 60, "d_model": 7168, "d_expert": 2048, "n_experts": 256, "top_k": 8}
MOE |= {"n_heads": 128, "n_kv_heads": 128, "d_head": 128, "shared_experts": 1}


def forward():
    return napkin.matmul_flops(*LINEAR)


def backward():
    return napkin.linear_backward(*LINEAR)


def per_weight_and_row(flops):
    T, k, n = LINEAR
    return Fraction(flops, T * k * n)


def compute(name):
    return napkin.training_flops(*COMPUTE[name])


def step(**other):
    """One step of W Chapter 6, whose heads are not shared."""
    return napkin.training_flops_exact(**{**STEP, "n_kv_heads": STEP["n_heads"], **other})


def projections(m, k, n, count):
    """(forward, backward) coefficients of k * n per row, for `count` matrices of one layer."""
    return count * Fraction(napkin.matmul_flops(m, k, n), m * k * n), count * Fraction(napkin.linear_backward(m, k, n).total, m * k * n)


def coefficient(row, *names):
    """What a row of the step is, per sequence, token, layer and product of these extents."""
    product = STEP["B"] * STEP["T"] * STEP["n_layers"]
    for name in names:
        product *= STEP[name]
    return Fraction(step()[row], product)


def running(T, vocab=0, B=1):
    m = RUNNING
    return napkin.training_flops_exact(
        B, T, m.hidden_size, m.intermediate_size, m.num_attention_heads, m.num_key_value_heads, m.head_dim, m.num_layers,
        vocab=vocab,
    )


def beside_6nd(T):
    """Attention's pairwise products over 6ND, W Chapter 7's 70B."""
    return Fraction(step(B=1, T=T)["attn_seq"], napkin.training_flops(N, T))


def pairwise_share(T):
    return 100 * beside_6nd(T) / (1 + beside_6nd(T))


def experts():
    return napkin.moe_parameter_split(**MOE)


def embedding_share(arch):
    ledger = params.ledger(arch)
    return Fraction(100 * (ledger["embedding"] + ledger["head"]), ledger.total)


def unembedding(d=STEP["d_model"], vocab=256000):
    """(forward, backward) FLOPs per token and scalar of the head."""
    return projections(1, d, vocab, 1)


def model_flops(n_params, n_tokens, pairwise):
    """PaLM's numerator: 6ND and the rectangle of attention, 12 L H Q T a token."""
    return napkin.training_flops(n_params, n_tokens) + pairwise


def hardware_flops(model, replayed):
    """What was issued: the model's FLOPs, and every forward product that was run again."""
    return model + replayed


def palm():
    """(model, hardware) FLOPs per token: three quarters of the linear forward and all of attention replayed."""
    n_params, T = 540_350 * 10**6, 2048
    pairwise = 3 * 2 * napkin.matmul_flops(1, 256, T, batch=118 * 48)
    model = model_flops(n_params, 1, pairwise)
    return model, hardware_flops(model, Fraction(3, 4) * 2 * n_params + pairwise // 3)


def core_replay(whole):
    """One more forward pass of both pairwise products over the whole step, in per cent."""
    return Fraction(100 * whole["attn_seq"], 3 * whole.total)


def gpt3_step():
    return napkin.training_flops_exact(1, 2048, 12288, 4 * 12288, 96, 96, 128, 96, gated=False, vocab=51200)


FACTS = {
    "W.C5.001": lambda: per_weight_and_row(forward()),
    "W.C5.002": lambda: per_weight_and_row(backward()["dX"]),
    "W.C5.003": lambda: per_weight_and_row(backward()["dW"]),
    "W.C5.004": lambda: per_weight_and_row(backward().total),
    "W.C5.005": forward,
    "W.C5.006": lambda: backward().total,
    "W.C5.007": lambda: Fraction(backward().total, forward()),
    "W.C5.008": lambda: per_weight_and_row(forward() + backward().total),
    "W.C5.023": lambda: Fraction(compute("Chinchilla"), compute("GPT-3")),
    "W.C5.024": lambda: Fraction(COMPUTE["GPT-3"][0], COMPUTE["Chinchilla"][0]),
    "W.C5.025": lambda: Fraction(COMPUTE["GPT-3"][0], COMPUTE["Llama-3-8B"][0]),
    "W.C6.001": lambda: coefficient("mlp", "d_model", "d_ff"),
    "W.C6.002": lambda: coefficient("attn_proj", "d_model", "n_heads", "d_head"),
    "W.C6.004": lambda: projections(1, 8192, 28672, 3)[0],
    "W.C6.005": lambda: projections(1, 8192, 28672, 3)[1],
    "W.C6.006": lambda: sum(projections(1, 8192, 28672, 3)),
    "W.C6.007": lambda: projections(1, 8192, 64 * 128, 4)[0],
    "W.C6.008": lambda: projections(1, 8192, 64 * 128, 4)[1],
    "W.C6.009": lambda: sum(projections(1, 8192, 64 * 128, 4)),
    "W.C6.011": lambda: step()["mlp"],
    "W.C6.012": lambda: 100 * step().share("mlp"),
    "W.C6.013": lambda: step()["attn_proj"],
    "W.C6.014": lambda: 100 * step().share("attn_proj"),
    "W.C6.015": lambda: step()["attn_seq"],
    "W.C6.016": lambda: 100 * step().share("attn_seq"),
    "W.C6.017": lambda: step().total,
    "W.C6.018": lambda: 100 * sum(map(step().share, step())),
    "W.C6.019": lambda: 100 * step().share("attn_seq"),
    "W.C6.021": lambda: 100 * step().share("attn_seq") / 2,  # W-16: half of the rectangle
    "W.C6.024": lambda: sum(Fraction(fixed(100 * step().share(row), 1)) for row in step()),  # rounded, then added
    "W.C7.012": lambda: 100 * beside_6nd(2_048),
    "W.C7.013": lambda: 1 + beside_6nd(1_048_576),
    "W.C7.015": lambda: Fraction(experts().total, BILLION),
    "W.C7.016": lambda: Fraction(experts()["active"], BILLION),
    "W.C7.017": lambda: Fraction(experts().total, experts()["active"]),
    "W.C7.018": lambda: Fraction(experts().total, experts()["active"]),
    "W.C7.021": lambda: embedding_share(TRAP[0]),  # W-04: 91 % belongs to another block
    "W.C7.022": lambda: sum(unembedding()),
    "W.C7.023": lambda: unembedding()[0],
    "W.C7.024": lambda: unembedding()[1],
    "W.C7.025": lambda: napkin.training_flops(1, 1),
    "W.C7.026": lambda: hardware_flops(napkin.training_flops(1, 1), napkin.matmul_flops(1, 1, 1)),
}
FACTS |= {f"W.C5.{11 + 3 * i:03}": lambda name=run[0]: compute(name) for i, run in enumerate(RUNS)}
FACTS |= {f"W.C7.{2 + 2 * i:03}": lambda T=T: pairwise_share(T) for i, T in enumerate(LENGTHS)}
FACTS |= {f"W.C7.{3 + 2 * i:03}": lambda T=T: 100 * beside_6nd(T) for i, T in enumerate(LENGTHS)}
# what the printed calls are given, read off what the numbers above are counted from
for first, values in {
    "W.C5.028": LINEAR,
    "W.C5.031": [value for run in RUNS for value in run[1:]],
    "W.C6.025": STEP.values(),
    "W.C6.032": (STEP["T"],),
    "W.C7.030": LENGTHS,
    "W.C7.035": (N, STEP["n_layers"], STEP["d_model"]),
    "W.C7.038": LENGTHS,
    "W.C7.043": MOE.values(),
}.items():
    FACTS |= {f"{first[:5]}{int(first[5:]) + i:03}": lambda value=value: value for i, value in enumerate(values)}
for i, run in enumerate(RUNS):  # printed as billions of parameters and as 1e12 tokens
    FACTS[f"W.C5.{12 + 3 * i:03}"] = lambda run=run: Fraction(run[1], BILLION)
    FACTS[f"W.C5.{13 + 3 * i:03}"] = lambda run=run: Fraction(run[2], TRILLION)

TEXTS = {
    "W.C5.009": lambda: forward() + backward().total == napkin.training_flops(4096 * 11008, 1024) == 6 * 4096 * 11008 * 1024,
    # W-27: a frozen matrix, or an input that nothing learns from, needs one of the two products
    "W.C5.010": lambda: backward()["dX"] == backward()["dW"] == forward(),
    "W.C5.026": lambda: compute("Llama-3-8B") > compute("GPT-3"),
    "W.C5.027": lambda: napkin.training_flops(N, 7) == 3 * 2 * N * 7,
    "W.C6.003": lambda: step()["mlp"] + step()["attn_proj"]
    == 80 * 6 * 8 * 8192 * (3 * 8192 * 28672 + 4 * 8192 * 64 * 128),
    # W-17: the matrices alone; a block has 2D norm scales beside them
    "W.C6.010": lambda: dict(napkin.params_per_layer(8192, 28672, 64, 64, 128))
    == {"mlp": 3 * 8192 * 28672, "attn": 4 * 8192 * 64 * 128, "norms": 2 * 8192},
    "W.C6.020": lambda: step()["attn_seq"] == 12 * 8 * 64 * 8192**2 * 128 * 80,
    # W-15: Kaplan's term, 2 n_layer n_ctx d_attn a token, is half of the forward rectangle
    "W.C6.022": lambda: Fraction(step()["attn_seq"], 3 * 8 * 8192) == 2 * (2 * 80 * 8192 * 64 * 128),
    # W-17: the head alone adds 6.5 % on the running model
    "W.C6.023": lambda: Fraction(100 * running(4096, 128256)["head"], running(4096).total) == Fraction("6.5234375"),
    # W-01: n_h d_h, of which the printed middle term divides n_h out
    "W.C7.001": lambda: step(B=1)["attn_seq"] == 8192 * 12 * 80 * 8192 * 128 * 64,
    # W-19: 15 % at 8k, and an eighth of the total at 4k for a narrower model
    "W.C7.014": lambda: beside_6nd(8_192) > Fraction(1, 10)
    and fixed(100 * running(4096, 128256).share("attn_seq"), 1) == "12.5",
    # W-22: vocabulary and norms of the same shape
    "W.C7.019": lambda: params.ledger(W_MOE).total - experts().total == 2 * 129_280 * 7_168 + 121 * 7_168 == 1_854_225_408,
    "W.C7.020": lambda: Fraction(W_MOE.d_q, W_MOE.hidden_size) == Fraction(16, 7),  # W-02
    # W-06: no multiple of N; 6.5N would run a quarter of the 2N forward again
    "W.C7.027": lambda: [fixed(core_replay(running(4096, 128256)), 2), fixed(core_replay(gpt3_step()), 3)] == ["4.17", "0.898"],
    # W-07: 4.10 over 3.28 is no 8 over 6
    "W.C7.028": lambda: [fixed(x / Fraction(TRILLION), 2) for x in palm()] == ["3.28", "4.10"],
    "W.C7.029": lambda: hardware_flops(palm()[0], replayed=0) == palm()[0],
}

REST = {}
