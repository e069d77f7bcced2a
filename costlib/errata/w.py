"""What does the Warmup Guide get wrong? W-01 to W-36, in the order in which they were found.

Its tables are right nearly everywhere; the errors stand in sentences that repeat a table from memory,
in labels, and in code that accepts too much.
"""

from decimal import Decimal
from fractions import Fraction
from itertools import count
from math import isqrt

from costlib import activations, forward, napkin, params, published, training
from costlib.domain import ManifestError
from costlib.errata import Erratum, record
from costlib.fixtures import RUNNING, TRAIN_4K, TRAP, W_7B, W_70B, W_MOE
from costlib.hardware import assumption, chip
from costlib.policies import BITS
from costlib.units import GB, GIB, TB, fixed, percent, scientific, short

N = 70 * 10**9
NODE = 640 * GB  # eight H100
MHA_70B = W_70B.replace(num_key_value_heads=64)
KEPT = {"b": 8, "s": 8192, "h": 8192, "a": 64, "layers": 80}  # Chapter 8's call
PER_TOKEN = "FLOP per token"


def sizes(m):
    return {
        "d_model": m.hidden_size, "d_ff": m.intermediate_size, "n_heads": m.num_attention_heads,
        "n_kv_heads": m.num_key_value_heads, "d_head": m.head_dim,
    }  # fmt: skip


def step(m, T, B=1, vocab=0):
    return napkin.training_flops_exact(
        B, T, **sizes(m), n_layers=m.num_layers, gated=m.mlp == "gated", vocab=vocab
    )


def pairwise(m, T):
    """Attention's sequence term, FLOP per trained token."""
    return step(m, T)["attn_seq"] // T


def missing(T, n_params=N, m=W_70B):
    """What 6ND leaves out, over 6ND."""
    return Fraction(pairwise(m, T), napkin.training_flops(n_params, 1))


def share(T, n_params=N, m=W_70B):
    return missing(T, n_params, m) / (1 + missing(T, n_params, m))


def cache(batch, tokens=8192, heads=8):
    return napkin.kv_cache_bytes(80, heads, 128, tokens, batch)


def weights():
    return napkin.training_memory(N)["weights"]


def intensity(batch, tokens=8192, attention=False):
    """FLOP per byte of one decode step, every weight and every cached row read once."""
    pairs = 2 * napkin.matmul_flops(1, 128, tokens, batch=80 * 64) if attention else 0
    return Fraction(batch * (2 * N + pairs), weights() + cache(batch, tokens))


def balance():
    h100 = chip("H100")
    return Fraction(h100.peak_flops, h100.bytes_per_second)


def plan():
    return napkin.budget_report(chip("H100"), 1000, 30)


def loss(fit, n_params, n_tokens):
    """Nats per token by a published fit E + A / N^alpha + B / D^beta."""
    E, A, B, alpha, beta = (
        Decimal(published.figure(f"{fit}-fit-{name}")["value"]) for name in ("E", "A", "B", "alpha", "beta")
    )
    return E + A / Decimal(n_params) ** alpha + B / Decimal(n_tokens) ** beta


def refusal(function, *arguments, **named):
    """The code with which costlib refuses a call."""
    try:
        function(*arguments, **named)
    except ManifestError as error:
        return error.code
    return "accepted"


@record(
    id="W-01", weight="high", place="Chapter 7, Break 1", taught="w-ch7-attention",
    title="A stray division in the attention formula",
    says="the displayed term has `d_h·n_h` **divided by** `n_h`, and is then set equal to `12·L·T·d_model`.",
    right="Per trained token `12·L·T·n_h·d_h`: two products, multiply and add, three passes, for every layer and visible key. "
          "For the 70B shape at T = 8,192 that is 64,424,509,440 FLOP.",
    slip="Dividing by the number of heads turns the packed width into the width of one head; the middle of the "
         "formula is then too small by a factor of 64.",
)  # fmt: skip
def w01():
    right = pairwise(W_70B, 8192)
    wrong = right // W_70B.num_attention_heads
    yield f"12·L·T·n_h·d_h at T = 8,192: {right:,} {PER_TOKEN}"
    yield f"slip, divided by n_h: {wrong:,} {PER_TOKEN}, 1/{right // wrong} of it"


@record(
    id="W-02", weight="high", place="Chapter 7, Break 1 and 2", taught="w-ch7-attention",
    title="The model width in place of the packed heads",
    says="`n_h·d_h ≈ d_model`, and a function of `d_model`; **the MoE on its next page** has neither.",
    right="The packed query width is a number of its own. That MoE has 16,384 beside a model width of 7,168, and a "
          "sequence term 2.29 times what the function returns.",
    slip="In most dense models the two widths are equal, so the shortcut passes every test that is made with one of them.",
)  # fmt: skip
def w02():
    right = pairwise(W_MOE, 8192)
    wrong = pairwise(W_MOE.replace(num_attention_heads=56, num_key_value_heads=56), 8192)
    yield f"n_h·d_h = {W_MOE.d_q:,}, d_model = {W_MOE.hidden_size:,} scalars"
    yield f"at T = 8,192: {right:,} {PER_TOKEN}, {fixed(Fraction(right, wrong), 2)} times the slip"
    yield f"slip, with d_model: {wrong:,} {PER_TOKEN}"


@record(
    id="W-03", weight="high", place="Takeaway 4", taught="w-ch7-attention w-takeaways-list",
    title="3 % at 2k and 22 times at 1M",
    says="6ND has a \"~**3%** error at 2k context, **22×** at 1M\".",
    right="At 2k it leaves out 3.8 % of itself; at 1M what it leaves out is 19.6 times 6ND, and the whole is 20.6 times 6ND.",
    slip="3.8 was cut off where it should be rounded. Two ratios are in use, extra over 6ND and whole over 6ND, and they "
         "differ by exactly one; 22 is neither, and no reading of the table gives it.",
)  # fmt: skip
def w03():
    long = missing(1_048_576)
    yield f"T = 2,048: extra over 6ND {percent(missing(2048))}"
    yield f"T = 1,048,576: extra over 6ND {percent(long)}, {fixed(long, 1)} times"
    yield f"T = 1,048,576: whole over 6ND {fixed(1 + long, 1)} times"


@record(
    id="W-04", weight="high", place="Chapter 7, Break 3", taught="w-ch7-embeddings",
    title="91 % embeddings, which Chapter 4 does not show",
    says="Chapter 4 is said to show that embeddings can be **91%** of a small model.",
    right="Chapter 4 prints 88.6 %: 262,144,000 of 295,707,136 scalars.",
    slip="The same widths with two matrices of `4d` instead of three give 91.2 %. The sentence fits that loop.",
)  # fmt: skip
def w04():
    def line(m):
        ledger = params.ledger(m)
        tables = ledger["embedding"] + ledger["head"]
        return f"{tables:,} of {ledger.total:,} scalars, {percent(Fraction(tables, ledger.total))}"

    yield f"gated MLP of 4d, as printed: {line(TRAP[0])}"
    yield f"slip, two matrices of 4d: {line(TRAP[0].replace(mlp='two-matrix'))}"


@record(
    id="W-05", weight="high", place="Chapter 4, the embedding trap", taught="w-ch4-embedding-trap",
    title="Rows called 7B and 70B that are neither",
    says="two rows of the table are named **7B** and **70B**.",
    right="They are models of 10.69B and 90.09B parameters. With a gated width of `8d/3` they would have 8.54B and 68.62B.",
    slip="A gated MLP has three matrices. Three of width `4d` are `12d²` weights where the classic block has `8d²`: "
         "`16d²` a block with attention, not `12d²`.",
)  # fmt: skip
def w05():
    def line(change):
        return " and ".join(short(params.ledger(m.replace(**change)).total, 2) for m in TRAP[2:])

    yield f"three matrices of 4d: {line({})} parameters"
    yield f"as many weights as three of 8d/3 have: {line({'mlp': 'two-matrix'})} parameters"


@record(
    id="W-06", weight="high", place="Chapter 7, Break 4", taught="w-ch7-checkpointing",
    title="Selective recomputation as a multiple of N",
    says="hardware FLOPs are about **6.5N** with selective recompute.",
    right="Running the core of attention again costs `4·L·T·n_h·d_h` a token, a term without N. On the running model at "
          "4k it adds 8,796,093,022,208 to 210,822,764,691,456 FLOP, 4.17 %: as if 6N were 6.25N. For GPT-3's shape "
          "it adds 0.90 %.",
    slip="Half an N is a quarter of the forward 2N. Selective recomputation leaves the products with weights alone; it "
         "repeats only those between activations.",
)  # fmt: skip
def w06():
    whole = step(RUNNING, 4096, vocab=RUNNING.vocab_size)
    core = whole["attn_seq"] // 3
    gpt3 = napkin.training_flops_exact(1, 2048, 12288, 49152, 96, 96, 128, 96, gated=False, vocab=51200)
    yield f"running model, T = 4,096: {core:,} on top of {whole.total:,} FLOP"
    yield f"that is {percent(Fraction(core, whole.total), 2)}, like {fixed(6 + 6 * Fraction(core, whole.total), 2)}N"
    yield f"GPT-3's shape, T = 2,048: {percent(Fraction(gpt3['attn_seq'], 3 * gpt3.total), 2)}"
    yield f"slip, a quarter of 2N again: {fixed(6 + Fraction(2, 4), 1)}N"


@record(
    id="W-07", weight="medium", place="Chapter 7, Break 4", taught="w-ch7-checkpointing",
    title="HFU as 8ND, and always above MFU",
    says="HFU \"uses **8ND**\" and is **always** higher than MFU, which uses 6ND.",
    right="Both numerators are counts. PaLM's are 3.28 TFLOP a token (6N and attention) and 4.10 TFLOP (with what was "
          "replayed), a ratio of 1.251. Replaying all blocks of the running model gives 276.79 TFLOP a step, not the "
          "281.10 TFLOP of replaying everything. Without replay HFU is MFU.",
    slip="A second forward pass is 2N only if every product runs again, and nobody replays the head.",
)  # fmt: skip
def w07():
    palm = training.PALM_540B
    model, hardware = training.palm_model_flops(**palm), training.palm_hardware_flops(**palm)
    parts = training.regions(RUNNING, TRAIN_4K)
    blocks = training.totals(parts, {f"block_{i}": 1 for i in range(RUNNING.num_layers)})
    everything = training.totals(parts, {region.name: 1 for region in parts})
    yield f"PaLM, model: {fixed(Fraction(model, TB), 2)} TFLOP per token"
    yield f"PaLM, hardware: {fixed(hardware / TB, 2)} TFLOP per token, {fixed(hardware / model, 3)} times"
    yield f"running model, blocks replayed: {fixed(Fraction(blocks['hardware'], TB), 2)} TFLOP per step"
    yield f"running model, all replayed: {fixed(Fraction(everything['hardware'], TB), 2)} TFLOP per step"
    again = napkin.training_flops(N, 1) + napkin.matmul_flops(1, N, 1)
    yield f"slip, all weights again: 6ND becomes {again // N}ND, {fixed(Fraction(again, 6 * N), 3)} times"


@record(
    id="W-08", weight="high", place="Chapter 8, activations", taught="w-ch8-activations",
    title="30 % taken of a total that has the discount already",
    says="`c = 16` gives **1,374.4 GB** without recomputation, and `raw * 0.3`, **412.3 GB**, for selective.",
    right="A classic block keeps `34 + 5·a·s/h` bytes per entry of its input, 354 here: 15,204 GB, c = 177. Selective "
          "recomputation drops the second part and keeps 1,460 GB, 9.6 % of that.",
    slip="Values of c from 10 to 30 leave the square score tensors out already. The 30 % is GPT-3's 34 bytes of 114, a "
         "share of a total with them in it.",
)  # fmt: skip
def w08():
    none, selective = (activations.retained(**KEPT, policy=policy) for policy in ("none", "selective"))
    entries = 8 * 8192 * 8192 * 80
    raw = 16 * 2 * entries
    paper = activations.korthikanti(1, 2048, 12288, 96)
    linear = paper.total - paper["attention.scores"]
    c = activations.coefficient_c(**KEPT, policy="none")
    yield f"nothing recomputed: {none // entries} B an entry, c = {c}, {fixed(Fraction(none, GB))} GB"
    yield f"selective: {fixed(Fraction(selective, GB))} GB, {percent(Fraction(selective, none))} of it"
    yield (f"GPT-3: {linear // (2048 * 12288)} of {paper.total // (2048 * 12288)} B an entry, "
           f"{percent(Fraction(linear, paper.total))}")  # fmt: skip
    yield f"slip: {fixed(Fraction(raw, GB), 1)} GB, and three tenths, {fixed(Fraction(3 * raw, 10 * GB), 1)} GB"


@record(
    id="W-09", weight="medium", place="Chapter 8, activations", taught="w-ch8-activations",
    title="Full checkpointing as a square root, and as the peak",
    says="storing the layer boundaries is a \"**~sqrt-ish** saving\", and 85.9 GB are the activations.",
    right="One boundary for every layer is linear in depth and saves the factor c whatever the depth. 85.90 GB is what "
          "is stored; while a layer runs again its own activations are there too, 17.18 GB with c = 16 and "
          "190.05 GB for the block of W-08.",
    slip="The square root is Chen et al.'s schedule, which keeps about 9 boundaries of 80 layers.",
)  # fmt: skip
def w09():
    stored = activations.retained(**KEPT, policy="boundary")
    layer = activations.peak(**KEPT, policy="boundary") - stored
    yield f"80 boundaries: {fixed(Fraction(stored, GB), 2)} GB stored"
    yield f"one live layer, c = 16: {fixed(Fraction(16 * stored, 80 * GB), 2)} GB besides"
    yield f"one live layer, the block of W-08: {fixed(Fraction(layer, GB), 2)} GB besides"
    yield f"square root of 80 layers: about {isqrt(80) + 1} boundaries"


@record(
    id="W-10", weight="medium", place="Interview Q&A", taught="w-ch9-decode w-interview",
    title="A decode intensity that ends at 35",
    says="decode has an intensity of around 1 to **35** FLOP/byte.",
    right="Chapter 9's own table goes from 1.0 to 43.3 FLOP/B.",
    slip="A table repeated without looking at it; none of its rows gives 35.",
)  # fmt: skip
def w10():
    rows = ", ".join(fixed(intensity(batch), 1) for batch in (1, 8, 64, 256))
    yield f"batch 1, 8, 64, 256 at T = 8,192: {rows} FLOP/B"


@record(
    id="W-11", weight="high", place="Chapter 9, Q&A, Takeaway 8", taught="w-ch9-decode w-takeaways-list",
    title="Decode called memory-bound at every batch size",
    says="decode is memory-bound \"at **every realistic** batch size\".",
    right="That depends on the context length. At 8,192 tokens the intensity stays below 52.15 FLOP/B whatever the "
          "batch, under the H100's 295.5; at 512 tokens it passes that at batch 458, and up to 1,445 tokens some batch "
          "does. The last row of the table, batch 256, needs 827 GB of a node's 640 GB: 182 requests fit. With the "
          "FLOPs of attention, which the formula leaves out, that row is 50.0 and not 43.3.",
    slip="One context length was tabulated and the batch varied. The limit for many requests is `2N` over the cache of "
         "one, and that cache grows with the context.",
)  # fmt: skip
def w11():
    crossing = next(batch for batch in count(1) if intensity(batch, 512) > balance())
    longest = Fraction(2 * N, cache(1, 1)) // balance()
    fit = napkin.max_concurrent_requests(NODE, weights(), cache(1), 10 * GB)
    yield f"limit at T = 8,192: {fixed(Fraction(2 * N, cache(1)), 2)} FLOP/B; balance {fixed(balance(), 1)} FLOP/B"
    yield f"T = 512 passes it at batch {crossing}; the last T that can is {longest:,} tokens"
    yield f"batch 256: {fixed(Fraction(weights() + cache(256), GB))} GB of {NODE // GB} GB; {fit} requests fit"
    with_attention = fixed(intensity(256, attention=True), 1)
    yield f"batch 256: {fixed(intensity(256), 1)} FLOP/B, with attention {with_attention} FLOP/B"


@record(
    id="W-12", weight="low", place="Chapter 9, Q&A", taught="w-ch9-decode",
    title="295, cut off",
    says="the H100 balances at ≈ **295** FLOP/byte, from 990 TFLOP/s and 3.35 TB/s.",
    right="990 over 3.35 is 295.5, which rounds to 296 FLOP/B.",
    slip="Cut off instead of rounded; or taken from a peak of 989 TFLOP/s.",
)  # fmt: skip
def w12():
    h100 = chip("H100")
    peak, bandwidth = h100.peak_flops // TB, fixed(Fraction(h100.bytes_per_second, TB), 2)
    yield f"{peak} TFLOP/s over {bandwidth} TB/s: {fixed(balance(), 2)} FLOP/B"
    yield f"slip, 989 TFLOP/s: {fixed(Fraction(989 * TB, h100.bytes_per_second), 1)} FLOP/B"


@record(
    id="W-13", weight="medium", place="Chapter 10, Q&A", taught="w-ch10",
    title="5.5T tokens for the same C",
    says="a 30B model on **5.5T** tokens costs the same C.",
    right="The same C of 1.026e24 FLOP gives a 30B model 5.70T tokens.",
    slip="Rounded down, which spends 3.5 % less. D is `C / 6N`, and both are known.",
)  # fmt: skip
def w13():
    flops, n_params = plan()["flops"], 30 * 10**9
    spent = napkin.training_flops(n_params, 5_500 * 10**9)
    yield f"C = {scientific(flops)} FLOP; C / 6N = {short(Fraction(flops, 6 * n_params), 4)} tokens"
    yield f"slip: 5.5T tokens, {scientific(spent)} FLOP, {percent(1 - Fraction(spent, flops))} less"


@record(
    id="W-14", weight="medium", place="Interview Q&A", taught="w-ch10 w-interview",
    title="A loss of 0.02 nats, from nowhere",
    says="the smaller model gives up about **0.02** nats of loss.",
    right="It depends on whose fit you use, and so does the sign. With Hoffmann et al.'s constants the 30B model is "
          "better by 0.0054 nats per token, with Besiroglu et al.'s it is worse by 0.0125.",
    slip="A figure without a source. Two fits to one set of runs disagree by more than the effect.",
)  # fmt: skip
def w14():
    flops = plan()["flops"]
    optimal, smaller = napkin.chinchilla_split(flops), (30 * 10**9, flops // (6 * 30 * 10**9))
    for fit in ("hoffmann", "besiroglu"):
        worse = Fraction(loss(fit, *smaller) - loss(fit, *optimal))
        verdict = "worse" if worse > 0 else "better"
        yield f"{fit.title()} et al.: {verdict} by {fixed(abs(worse), 4)} nats per token"


@record(
    id="W-15", weight="high", place="Chapter 6, note on the causal mask", taught="w-ch6-mask",
    title="Kaplan said not to halve the causal part",
    says="most published accounting, \"**including Kaplan's**\", does not halve.",
    right="Kaplan et al. count `2·L·T·d_attn` a token in the forward pass, exactly half of the rectangle's "
          "`4·L·T·d_attn`: 1,073,741,824 of 2,147,483,648 FLOP for the running model. PaLM and Megatron keep the "
          "rectangle. What a causal mask allows at 4,096 tokens is 50.01 % of it, not one half.",
    slip="Two products of 2 FLOPs, halved, are 2 again, and a 2 looks like the usual multiply and add.",
)  # fmt: skip
def w15():
    kaplan = training.kaplan_forward(RUNNING, 4096)["context"]
    rectangle = pairwise(RUNNING, 4096) // 3
    legal = Fraction(forward.area(4096, 4096, "causal-legal"), forward.area(4096, 4096, "rectangular"))
    yield f"running model, T = 4,096, Kaplan: {kaplan:,} {PER_TOKEN}"
    yield f"the same, full rectangle: {rectangle:,} {PER_TOKEN}"
    yield f"legal at T = 4,096: {legal} = {percent(legal, 2)}"


@record(
    id="W-16", weight="low", place="Chapter 6, note on the causal mask", taught="w-ch6-mask",
    title="5 %, where its own example says 6",
    says="two conventions make MFU numbers differ by **5%**.",
    right="Halving attention in the example printed just above moves the total by 6.06 %.",
    slip="Half of 12.1 % is 6.06 %; a rule of thumb took its place.",
)  # fmt: skip
def w16():
    part = step(MHA_70B, 8192, B=8).share("attn_seq")
    yield f"sequence term: {percent(part)} of the step; half of it: {percent(part / 2, 2)}"


@record(
    id="W-17", weight="medium", place="Chapter 6", taught="w-ch6-factoring w-ch6-left-out",
    title="Called exact, without head, norms and layers",
    says="an **exact** step, and `3DF + 4DNH` as **precisely** the parameters of a layer.",
    right="The function leaves out the output head: on the running model 197,912,092,999,680 in place of "
          "210,822,764,691,456 FLOP. `3DF + 4DNH` leaves out the norms, 16,384 scalars a layer of the 70B shape, "
          "supposes as many K/V heads as heads, and stands for one layer: the L is missing.",
    slip="An identity between two sums of products says nothing about what neither of them holds.",
)  # fmt: skip
def w17():
    blocks, whole = step(RUNNING, 4096), step(RUNNING, 4096, vocab=RUNNING.vocab_size)
    layer = napkin.params_per_layer(**sizes(MHA_70B))
    yield f"running model, blocks only: {blocks.total:,} FLOP"
    yield f"with the head, 6·T·d·V: {whole.total:,} FLOP"
    yield f"norms of one 70B layer: {layer['norms']:,} of {layer.total:,} scalars"


@record(
    id="W-18", weight="medium", place="Chapter 6 against Chapter 7", taught="w-ch7-attention",
    title="12.1 % and 13.3 % for one model",
    says="at the same T, L and d attention has 12.1% in one chapter and 13.3% in the next, **for one model**.",
    right="Each is right for its own N: 77,846,282,240 parameters in the blocks with MHA, and a round 70e9. The model "
          "meant, with 8 K/V heads, has 68,451,041,280 in its block matrices and a share of 13.6 %.",
    slip="One function counted N from the shapes with MHA as its default, the other was handed a nominal N.",
)  # fmt: skip
def w18():
    for name, n in (
        ("MHA", params.coordinates(MHA_70B)["kaplan"]),
        ("nominal", N),
        ("8 K/V heads", params.coordinates(W_70B)["kaplan"]),
    ):
        yield f"{name}: N = {n:,} parameters, share {percent(share(8192, n))}"


@record(
    id="W-19", weight="medium", place="Chapter 7, verdict", taught="w-ch7-attention",
    title="6ND free to use below 8k",
    says="use 6ND **freely** below ~8k.",
    right="At 8,192 tokens it is off by 15.3 %, more than the tenth that the guide's own success criteria allow. The 70B "
          "shape reaches a tenth after 5,340 tokens, and the running model's term is 12.5 % of its step at 4,096.",
    slip="A threshold without a model. Ask for the error e: it holds up to `T = e·N / (2·L·n_h·d_h)`.",
)  # fmt: skip
def w19():
    limit = Fraction(1, 10) * N / Fraction(pairwise(W_70B, 1), 6)
    running = step(RUNNING, 4096, vocab=RUNNING.vocab_size).share("attn_seq")
    yield f"70B, T = 8,192: {percent(missing(8192))} beside 6ND"
    yield f"a tenth is reached after {int(limit):,} tokens"
    yield f"running model, T = 4,096: {percent(running)} of the step"


@record(
    id="W-20", weight="medium", place="Chapter 3, the misconception", taught="w-ch3-misconception",
    title="Attention's share at 2k to 8k",
    says="roughly **5–15%** of FLOPs at 2k to 8k.",
    right="Chapter 7's table has 3.7 % to 13.3 %, and the blocks of the running model 7.1 % to 23.5 %.",
    slip="A range for all models. The narrower a model, the larger the share at the same length.",
)  # fmt: skip
def w20():
    yield f"70B, T = 2,048 and 8,192: {percent(share(2048))} and {percent(share(8192))}"
    running = [percent(step(RUNNING, T).share("attn_seq")) for T in (2048, 8192)]
    yield f"running model, blocks: {' and '.join(running)}"


@record(
    id="W-21", weight="low", place="Chapter 3", taught="w-ch3-why",
    title="Two thirds of the parameters in the MLP",
    says="the MLP is **~2/3** of the parameters.",
    right="76.3 % of the block that Chapter 4 counts, and 80.8 % of the running model's.",
    slip="Two thirds is the classic block, `8d²` of `12d²`: two matrices of `4d` and no grouped queries.",
)  # fmt: skip
def w21():
    def part(m):
        return percent(Fraction(params.block(m)["mlp"], params.block(m).total))

    yield f"Chapter 4's block: {part(W_7B.replace(num_key_value_heads=8))}; the running model's: {part(RUNNING)}"
    yield f"slip, the classic block: {Fraction(8, 12)} of the weights"


@record(
    id="W-22", weight="medium", place="Chapter 7, Break 2", taught="w-ch7-moe",
    title="What must be stored, without vocabulary and norms",
    says="**707.4B** is what you must store.",
    right="That counts block matrices and routers. A vocabulary of 129,280, untied, and the norms add 1,854,225,408: "
          "709.2B. The head computes too, 926,679,040 parameters that the active count lacks.",
    slip="The function has no argument for the vocabulary, and its result is called total.",
)  # fmt: skip
def w22():
    m = W_MOE
    split = napkin.moe_parameter_split(60, 7168, 2048, 256, 8, 128, 128, 128, 1)
    whole = params.ledger(m).total
    head = params.coordinates(m)["used"] - split["active"]
    yield f"stored, V = {m.vocab_size:,}: {whole:,} = {short(whole)} scalars"
    yield f"vocabulary and norms: {whole - split.total:,} scalars; head, active: {head:,}"
    yield f"slip: {short(split.total)} scalars in block matrices and routers"


@record(
    id="W-23", weight="medium", place="Chapter 11, Chapter 8", taught="w-ch11",
    title="Printed output that the printed code does not print",
    says="a block shows `1.026e+24`, another `checkpointing= full`; **neither** comes out of the code above it.",
    right="The format of that line writes every digit, and in floats they come out as "
          "1,026,432,000,000,000,033,554,432, wrong by 33,554,432 FLOP; the name is set flush left.",
    slip="Output that is typed, not made. On these pages every output is made by the cell above it, in integers.",
)  # fmt: skip
def w23():
    in_floats = int(1000 * 990e12 * 0.4 * 720 * 3600)
    exact = plan()["flops"]
    yield f"in integers: {exact:,} FLOP"
    yield f"in floats: {in_floats:,} FLOP, off by {in_floats - exact:,}"


@record(
    id="W-24", weight="low", place="Chapter 10, hardware table", taught="w-ch10",
    title="Hardware figures cut off, rounded or not published",
    says="the A100 moves **2.03** TB/s, the H100 does 990 TFLOP/s, a TPU v5e takes 170 W and a v5p 600 W.",
    right="The A100 (SXM) moves 2.039 TB/s. The H100's dense BF16 peak is 989.4 TFLOP/s, and 990 is 0.06 % more. The v5e's "
          "819 GB/s is 800 GiB/s elsewhere, which would be 859 GB/s. No published figure was found for either "
          "TPU's power; 170 W is the measured mean of the TPU v4. Peaks can be checked: cells times two times clock "
          "gives 196.6 and 458.8 TFLOP/s.",
    slip="2.039 was cut off. A measured mean of one chip was taken for the rating of another.",
)  # fmt: skip
def w24():
    a100, h100, v5e = chip("A100-80"), chip("H100"), chip("TPU v5e")
    dense = published.value("h100-bf16")
    yield f"A100: {fixed(Fraction(a100.bytes_per_second, TB), 3)} TB/s"
    over = percent(Fraction(h100.peak_flops, dense) - 1, 2)
    yield f"H100: {fixed(Fraction(dense, TB), 1)} TFLOP/s; {h100.peak_flops // TB} is {over} more"
    yield f"v5e: {v5e.bytes_per_second // GB} GB/s; 800 GiB/s are {fixed(Fraction(800 * GIB, GB))} GB/s"
    yield f"TPU v4, measured mean: {published.value('tpu-v4-mean-power')} W"
    for arrays, mhz in ((4, 1500), (8, 1750)):
        peak = Fraction(arrays * napkin.matmul_flops(1, 128, 128) * mhz * 10**6, TB)
        yield f"{arrays} arrays of 128 x 128 at {fixed(Fraction(mhz, 1000), 2)} GHz: {fixed(peak, 1)} TFLOP/s"
    yield f"slip: {fixed(Fraction(a100.bytes_per_second // 10**10, 100), 2)} TB/s"


@record(
    id="W-25", weight="medium", place="Chapter 10 against Chapter 11", taught="w-ch11",
    title="Two energy bills for one run, and 99 %",
    says="504.0 MWh here and 604,800 kWh there; and \"**99%** of TCO is power\" as a claim that need not contradict the "
         "rental price.",
    right="504,000 kWh (60,480 USD) are the chips alone, 604,800 kWh (72,576 USD) the building at a PUE of 1.2. The rental "
          "is 24.8 times the second and 29.8 times the first. Electricity is 4.03 % of it; for the claim to hold all "
          "else would have to cost 0.00102 USD per chip-hour.",
    slip="One function has a PUE and the other has none; a ratio then uses one of them without saying which. The quoted "
         "claim is unverified, and these inputs refute it for a rented cluster.",
)  # fmt: skip
def w25():
    p = plan()
    hours = 1000 * 30 * 24
    rest = p["usd_energy_pue"] / hours * Fraction(1, 99)
    for name, tail in (("chips alone", ""), ("at a PUE of 1.2", "_pue")):
        times = fixed(p["usd_rental"] / p[f"usd_energy{tail}"], 1)
        yield f"{name}: {fixed(p[f'kwh{tail}'])} kWh, {fixed(p[f'usd_energy{tail}'])} USD; rental {times} times"
    yield f"share of the rental: {percent(p['usd_energy_pue'] / p['usd_rental'], 2)}"
    yield f"all else, if the claim held: {fixed(rest, 5)} USD per chip-hour"


@record(
    id="W-26", weight="medium", place="Chapter 10", taught="w-ch10",
    title="A sanity check that cannot fail",
    says="**four** sanity checks; the one on energy is `(True, ...)`.",
    right="Three can fail. A check without a limit says that it was not made, and with a limit it may say fail. Its "
          "constants (an MFU of 0.4, 0.7 of the memory, 15e12 tokens, 100e9 parameters) are opinions and so are parameters, "
          "and \"memory fits\" leaves out activations.",
    slip="A line that prints OK beside three real checks looks like a fourth.",
)  # fmt: skip
def w26():
    for name, limit in (("no limit", None), ("a limit of 1 kWh", 1)):
        yield f"energy, {name}: {napkin.sanity_checks(plan(), most_kwh=limit)['energy']}"
    mfu, memory, tokens, largest = map(assumption, ("mfu", "memory-share", "unique-tokens", "largest-servable"))
    yield f"opinions: MFU {mfu}, memory {memory}, {tokens} tokens, {largest} parameters"


@record(
    id="W-27", weight="medium", place="Chapter 5, Q&A", taught="w-ch5-backward",
    title="Backward as exactly twice forward, always",
    says="backward is **exactly 2x**, \"an identity\".",
    right="An identity of one product whose two gradients are both needed. A frozen weight, or an input from which "
          "nothing learns, leaves one of them: backward then costs what forward does. A lookup in the embedding, a norm and "
          "a softmax are no products at all.",
    slip="The proof is about two products; which of them are asked for is a property of the graph.",
)  # fmt: skip
def w27():
    for name, needs in (("both gradients", {}), ("frozen weight", {"need_dw": False}), ("first layer", {"need_dx": False})):
        one = training.linear(1024, 4096, 11008, **needs)
        yield f"{name}: backward {one['dx'] + one['dw']:,} FLOP, forward {one['forward']:,} FLOP"


@record(
    id="W-28", weight="medium", place="Chapter 5, sanity checks", taught="w-ch5-sanity",
    title="Kaplan against Chinchilla in one table",
    says="Chinchilla beside GPT-3 shows the Kaplan-vs-Chinchilla result \"**in one table**\".",
    right="The two differ in compute, by a factor of 1.867, so the table cannot show what a better split does. The "
          "controlled pair is Gopher (5.04e23 FLOP) and Chinchilla (5.88e23 FLOP), 1.167 apart.",
    slip="Two famous models were compared where two equal budgets were wanted.",
)  # fmt: skip
def w28():
    def run(name):
        return napkin.training_flops(published.value(f"{name}-params"), published.value(f"{name}-tokens"))

    for name in ("gpt3", "gopher"):
        ratio = fixed(Fraction(run("chinchilla"), run(name)), 3)
        yield f"chinchilla over {name}: {scientific(run('chinchilla'))} over {scientific(run(name))} FLOP = {ratio}"


@record(
    id="W-29", weight="medium", place="Chapter 4, Tips", taught="w-ch4-embedding-trap w-takeaways-tips",
    title="Non-embedding N beside 20 tokens per parameter",
    says="non-embedding is **the right N**; and D is 20 N.",
    right="Two coordinates. Chinchilla's N has the embeddings in it. For the smallest model of the trap the two N are "
          "33,563,136 and 295,707,136, a factor of 8.8, and so are the tokens: 0.67B or 5.91B.",
    slip="Each convention is sound in the paper it comes from; a law of one was fed with the N of the other.",
)  # fmt: skip
def w29():
    m = TRAP[0]
    ledger = napkin.total_params(m.num_layers, **sizes(m), vocab=m.vocab_size)
    for name, n in (("non-embedding", ledger["non_embedding"]), ("with embeddings", ledger.total)):
        yield f"{name}: N = {n:,} parameters, 20 N = {fixed(Fraction(20 * n, GB), 2)}B tokens"
    yield f"the second is {fixed(Fraction(ledger.total, ledger['non_embedding']), 1)} times the first"


@record(
    id="W-30", weight="low", place="Chapter 9", taught="w-ch9-what",
    title="Recomputing keys and values every step",
    says="recomputing them every step would be **O(T²)**.",
    right="Projecting all keys and values again is linear in T for one step; it is the whole generation that is quadratic. "
          "In one step only attention is, if all of its rows run again. Twice the context is 2.00 times the work of a "
          "step, and 3.98 times that of generating 200 tokens in place of 100.",
    slip="Two totals, of a step and of a generation, under one O.",
)  # fmt: skip
def w30():
    def of_step(T):
        return napkin.matmul_flops(T, 8192, 2 * 8 * 128)

    def of_generation(T):
        return sum(map(of_step, range(1, T + 1)))

    yield f"a step at T = 100 and 200, one layer: {fixed(Fraction(of_step(200), of_step(100)), 2)} times the FLOP"
    yield f"all steps up to T = 100 and 200: {fixed(Fraction(of_generation(200), of_generation(100)), 2)} times the FLOP"


@record(
    id="W-31", weight="low", place="Chapter 9", taught="w-ch9-serving",
    title="Capacity called throughput",
    says="8 K/V heads for 64 are an 8× difference in serving **throughput**.",
    right="8 is the ratio of cache bytes. Requests that fit are 182 and 22, a ratio of 8.27, as each is a whole number. "
          "Both are capacity; tokens per second depend on the step. And 687.2 GB of cache are exactly 640 GiB, beside a node "
          "of 640 GB, which is less.",
    slip="More requests at once is one step away from more tokens per second, and that step was not computed.",
)  # fmt: skip
def w31():
    fit = [napkin.max_concurrent_requests(NODE, weights(), cache(1, heads=heads), 10 * GB) for heads in (8, 64)]
    many = cache(32, heads=64)
    yield f"cache of a request, 64 over 8 heads: {cache(1, heads=64) // cache(1)} times the bytes"
    yield f"requests that fit: {fit[0]} and {fit[1]}, {fixed(Fraction(*fit), 2)} times"
    yield f"32 requests, 64 heads: {fixed(Fraction(many, GB), 1)} GB = {many // GIB} GiB; the node has {NODE // GB} GB"


@record(
    id="W-32", weight="low", place="Chapter 2", taught="w-ch2-underneath",
    title="Padding of the rows, in floats, before the split",
    says="**all three** extents are padded, with `math.ceil`; nearly 5% is lost; 11008 tiles cleanly.",
    right="Rows need not be padded: for one row that reports 128 times the useful work. The loss is 4.63 % of what is "
          "issued, 4.86 % on top of what is useful. 11,008 tiles whole; an eighth of it, 1,376, runs as 1,408, which is "
          "2.3 % more. Integers round up without a float.",
    slip="A tile is square, so all axes look alike; and a width is looked at before tensor parallelism has cut it.",
)  # fmt: skip
def w32():
    row = napkin.matmul_flops(1, 4096, 4096)
    useful, issued = napkin.matmul_flops(1024, 4000, 4000), napkin.padded_matmul_flops(1024, 4000, 4000)
    eighth = 11008 // 8
    padded = napkin.padded_matmul_flops(1, eighth, 1, pad_m=False) // (2 * 128)
    yield f"one row, rows padded: {napkin.padded_matmul_flops(1, 4096, 4096) // row} times the FLOP"
    of_issued, of_useful = (percent(Fraction(issued - useful, whole), 2) for whole in (issued, useful))
    yield f"padding: {of_issued} of issued, {of_useful} of useful"
    yield f"11,008 = {11008 // 128} tiles; {eighth:,} runs as {padded:,}, {percent(Fraction(padded, eighth) - 1)} more"


@record(
    id="W-33", weight="low", place="Chapter 1, Chapter 3", taught="w-ch1-underneath w-ch1-production w-ch3-why",
    title="Formats, thresholds and overwrites",
    says="peaks **roughly double** each time the bits are halved; FP16 does \"**the opposite**\" of BF16; the US order is a "
         "threshold; FLOPs do not depend on the batch; an RNN overwrites its state **1,000** times.",
    right="From FP32 to TF32 the peak grows 7.4 times, on other units, and TF32 is stored in 32 bits; only the two steps below "
          "it are doublings, 2.0 each. FP16 gives up exponent and mantissa alike, 5 and 10 bits where FP32 has 8 and 23; "
          "it keeps more mantissa than BF16, 8 and 7. The order of 1e26 operations was rescinded in 2025, the EU's "
          "1e25 FLOP stands. FLOPs of a step do grow with its batch. Between token 1 and the thousandth lie 999 overwrites.",
    slip="Each sentence is near something true and was not held against the table beside it.",
)  # fmt: skip
def w33():
    peaks = [published.value(f"h100-{name}") for name in ("fp32", "tf32", "bf16", "fp8")]
    growth = ", ".join(fixed(Fraction(b, a), 1) for a, b in zip(peaks, peaks[1:]))
    yield f"H100, FP32 to TF32 to BF16 to FP8: {growth} times the FLOP/s; TF32 is stored in {BITS['tf32']} bits"
    for name, exponent in (("fp32", 8), ("bf16", 8), ("fp16", 5)):
        yield f"{name}: {exponent} exponent and {BITS[name] - 1 - exponent} mantissa bits"
    us, eu = (scientific(published.value(f"{who}-threshold"), 0) for who in ("us", "eu"))
    yield f"US: {us} operations, {published.figure('us-threshold')['statement'].rpartition(', ')[2]}; EU: {eu} FLOP"
    yield f"overwrites after token 1: {len(range(2, 1001))}"


@record(
    id="W-34", weight="code", place="Chapters 4, 5, 8 to 11", taught="lab01",
    title="Functions that accept what they should refuse",
    says="`precision` is **never read**; ZeRO stage 4, no devices or a negative N pass; an unknown checkpointing policy means "
         "none; bytes are divided with `//`; Adafactor has 4N bytes; requests are counted in float GB.",
    right="The functions of this course refuse a stage, a size or a name that they do not know, and every float. They "
          "shard scalars, not bytes, and round up: 1,128 parameters over 64 devices are 18 each, 216 B of optimizer state. Adafactor depends "
          "on shapes and is refused here.",
    slip="12·1,128 B cut by `//` are 211 B a device, and 64 of those do not add up to the whole. In floats 0.3 GB hold two "
         "requests of 0.1 GB, not three.",
)  # fmt: skip
def w34():
    memory = napkin.training_memory
    stage, size, text = refusal(memory, N, zero_stage=4), refusal(memory, N, dp_degree=0), refusal(memory, N, "adafactor")
    yield f"stage 4: {stage}; no devices: {size}; 70e9: {refusal(memory, 70e9)}; adafactor: {text}"
    shard = memory(1128, zero_stage=1, dp_degree=64)["optimizer"]
    yield f"1,128 parameters over 64: {shard // 12} each, {shard} B a device, {64 * shard:,} B in all"
    lost = napkin.training_memory(1128)["optimizer"]
    yield f"slip, bytes: {lost // 64} B a device, {lost // 64 * 64:,} B of {lost:,} B"
    yield f"slip, floats: int(0.3 / 0.1) = {int(0.3 / 0.1)} requests"


@record(
    id="W-35", weight="lost", place="Chapters 1, 3, 5, 7", taught="w-ch1-what w-ch1-underneath w-ch3-symbols "
           "w-ch5-three-numbers w-ch7-attention",
    title="Tables and a formula that are announced and absent",
    says="it announces a table of FLOP against FLOP/s, one of number formats, one of symbols, one of three numbers "
         "to keep apart, and a displayed ratio; **none** follows.",
    right="All five are made anew in the sections named below. The numbers are 2N forward, 4N backward, 6N in training, and "
          "8N where everything is replayed; the ratio is `2·L·T·n_h·d_h / N`, 15.3 % for the 70B shape at 8,192 tokens.",
    slip="Text extraction drops what is set as a table or a formula. It also points to further parts of its series, "
         "which are not at hand either.",
)  # fmt: skip
def w35():
    forward_, backward = napkin.matmul_flops(1, N, 1) // N, napkin.linear_backward(1, N, 1).total // N
    training_ = forward_ + backward
    yield f"forward {forward_}N, backward {backward}N, training {training_}N, all replayed {training_ + forward_}N FLOP per token"
    ratio = Fraction(2 * 80 * 8192 * 64 * 128, N)
    yield f"2·L·T·n_h·d_h / N at T = 8,192: {percent(ratio)}"


@record(
    id="W-36", weight="code", place="Lab walkthrough", taught="w-lab",
    title="Names that differ between chapters and lab",
    says="`exact_step_flops`, `moe_params`, `training_memory_bytes`, `max_concurrent` and `cost_report` are "
         "`training_flops_exact`, `moe_parameter_split`, `training_memory`, `max_concurrent_requests` and `budget_report` in "
         "the lab; the promised non-embedding count is **`body`**.",
    right="This course uses the lab's names everywhere. Its non-embedding count has the final norm in it, as it should: "
          "6,476,271,616 scalars for the 7B shape, 4,096 more than the blocks.",
    slip="Two names for one thing: who searches for one misses the other.",
)  # fmt: skip
def w36():
    m = W_7B
    ledger = napkin.total_params(m.num_layers, **sizes(m), vocab=m.vocab_size)
    rest = ledger["non_embedding"] - ledger["non_embedding.blocks"]
    yield f"non-embedding, 7B shape: {ledger['non_embedding']:,} scalars, final norm {rest:,} of them"


ERRATA = tuple(value for value in vars().copy().values() if isinstance(value, Erratum))
