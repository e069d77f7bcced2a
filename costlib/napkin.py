"""What would it cost? Everything a napkin holds: FLOPs, parameters, memory, cache, budget, money.

Lab 01, the Warmup Guide's own. Sizes are plain integers here; the later modules take manifests.
FMA = 2 FLOPs, attention is the full rectangle, GB = 10**9 bytes.
"""

from fractions import Fraction
from typing import Literal

from costlib.domain import Amount, Count, Positive, Share, Size, Stage
from costlib.exercise import Unfilled, exercise
from costlib.hardware import Chip
from costlib.ledger import Ledger

LAB = "01"

BF16, FP32 = 2, 4  # bytes per scalar


@exercise
def matmul_flops(m: Count, k: Count, n: Count, batch: Count = 1) -> int:
    """FLOPs of `batch` independent products (m x k) @ (k x n).

    Counted: one multiply and one add per term of every dot product. Left out: bias, padding, data
    movement. Unit: FLOP. Refused: a float (TYPE), a negative extent (NEG); an extent of 0 costs 0.
    Source: W 2, w-ch2-cost.
    """
    raise Unfilled


@exercise(unit="FLOP", convention="FMA = 2 FLOPs; both gradients of Y = X W")
def linear_backward(m: Count, k: Count, n: Count) -> Ledger:
    """FLOPs of the backward pass of one linear layer Y = X @ W, X being m x k and W k x n.

    Return {"dX": FLOPs of dY @ W.T, "dW": FLOPs of X.T @ dY}. Left out: the bias gradient, which is
    a sum. Unit: FLOP. Refused: TYPE, NEG.
    Source: W 5, w-ch5-backward.
    """
    raise Unfilled


@exercise
def padded_matmul_flops(m: Count, k: Count, n: Count, tile: Size = 128, pad_m: bool = True) -> int:
    """FLOPs that a tiled matrix unit issues for (m x k) @ (k x n): every extent rounded up to a
    multiple of `tile`. With pad_m=False the rows are left as they are, as in a weight-stationary
    array, through which rows stream one by one.

    Unit: FLOP. Refused: TYPE, NEG, a tile of 0 (NONPOS). Integers only: math.ceil(m / tile) is
    wrong above 2**53.
    Source: W 2, w-ch2-underneath.
    """
    raise Unfilled


@exercise(unit="scalars", convention="biases left out; two RMSNorm scales per block")
def params_per_layer(
    d_model: Size, d_ff: Size, n_heads: Size, n_kv_heads: Size, d_head: Size, gated: bool = True
) -> Ledger:
    """Learned scalars of one block.

    Return {"attn": q, k, v and o projections, "mlp": three matrices if gated, else two,
    "norms": two scales of d_model}. d_model need not equal n_heads * d_head.
    Unit: scalars. Refused: TYPE, NONPOS, n_heads no multiple of n_kv_heads (DIVIS).
    Source: W 4, w-ch4-per-layer.
    """
    raise Unfilled


@exercise(unit="scalars", convention="unique scalars, biases left out; a tied head is stored once")
def total_params(
    n_layers: Size,
    d_model: Size,
    d_ff: Size,
    n_heads: Size,
    n_kv_heads: Size,
    d_head: Size,
    vocab: Size,
    tied: bool = False,
    gated: bool = True,
) -> Ledger:
    """Learned scalars of the whole model, embeddings apart.

    Return {"non_embedding.blocks", "non_embedding.final_norm", "embedding.input",
    "embedding.output"}: the ledger then answers both ["non_embedding"] and .total.
    A tied output head shares the input table: its row is 0. Unit: scalars. Refused: TYPE, NONPOS, DIVIS.
    Source: W 4, w-ch4-whole-model.
    """
    raise Unfilled


@exercise
def training_flops(n_params: Count, n_tokens: Count) -> int:
    """6ND: forward 2N and backward 4N, for every token.

    Left out: attention's sequence term. Unit: FLOP for the whole run. Refused: TYPE (70e9 is a float), NEG.
    Source: W 5, w-ch5-add.
    """
    raise Unfilled


@exercise(unit="FLOP", convention="one step, forward + backward; rectangular attention; head only with a vocab")
def training_flops_exact(
    B: Size,
    T: Size,
    d_model: Size,
    d_ff: Size,
    n_heads: Size,
    n_kv_heads: Size,
    d_head: Size,
    n_layers: Size,
    gated: bool = True,
    vocab: Count = 0,
) -> Ledger:
    """FLOPs of one optimizer step over B sequences of T tokens, term by term.

    Return {"mlp": 18BTDF in a gated model, "attn_proj": 24BTDNH when n_kv_heads = n_heads,
    "attn_seq": QK^T and AV, the term that 6ND leaves out, "head": 6BT * d_model * vocab}, summed over layers.
    Counted: matrix products, forward once and backward twice; attention over all T x T pairs of the
    n_heads query heads. Left out: norms, softmax, activations, recomputation, the optimizer.
    Unit: FLOP per step. Refused: TYPE, NONPOS, DIVIS.
    Source: W 6, w-ch6-factoring.
    """
    raise Unfilled


@exercise(unit="scalars", convention="block matrices and router of an MoE; vocabulary and norms left out")
def moe_parameter_split(
    n_layers: Size,
    d_model: Size,
    d_expert: Size,
    n_experts: Size,
    top_k: Size,
    n_heads: Size,
    n_kv_heads: Size,
    d_head: Size,
    shared_experts: Count = 0,
) -> Ledger:
    """What an MoE stores, split into what one token uses and what lies idle for it.

    Return {"active.attn", "active.router", "active.shared", "active.routed", "idle.routed"} over all
    layers: ["active"] is the N of 6ND, .total is what must be stored. Experts are gated MLPs
    (3 matrices) of width d_expert; the router is one d_model x n_experts matrix.
    Unit: scalars. Refused: TYPE, NONPOS, DIVIS, top_k above n_experts (RANGE).
    Source: W 7, w-ch7-moe.
    """
    raise Unfilled


OPTIMIZER_BYTES = {"adam": 12, "sgd_momentum": 8, "sgd": 4}  # fp32 master copy, then fp32 moments


@exercise(unit="B", convention="per device; bf16 weights and gradients, fp32 master copy and moments")
def training_memory(
    n_params: Count,
    optimizer: Literal["adam", "sgd_momentum", "sgd"] = "adam",
    zero_stage: Stage = 0,
    dp_degree: Size = 1,
    activation_bytes: Count = 0,
) -> Ledger:
    """Bytes of one device in a mixed-precision training step.

    Return {"weights", "grads", "optimizer", "activations"}. BF16 bytes per weight and per gradient,
    OPTIMIZER_BYTES[optimizer] per parameter. ZeRO stage 1 shards the optimizer over dp_degree
    devices, 2 the gradients too, 3 the weights too; a shard is ceil(n_params / dp_degree) scalars:
    bytes are never cut in half. Activations are as given: ZeRO does not shard them.
    Unit: B per device. Refused: TYPE, NEG, NONPOS, a stage outside 0 to 3 (RANGE); ENUM for any other optimizer: the state of
    Adafactor depends on the shapes, not on n_params (lab 04).
    Source: W 8, w-ch8-consumers.
    """
    raise Unfilled


@exercise
def kv_cache_bytes(
    n_layers: Size, n_kv_heads: Size, d_head: Size, seq_len: Count, batch: Count, bytes_per: Size = BF16
) -> int:
    """Bytes of the key/value cache of `batch` sequences of seq_len tokens.

    Counted: K and V of every layer and every K/V head. Left out: paging and padding. Unit: B.
    Refused: TYPE, NEG, NONPOS.
    Source: W 9, w-ch9-size.
    """
    raise Unfilled


@exercise
def max_concurrent_requests(memory_bytes: Count, weight_bytes: Count, kv_bytes: Size, workspace_bytes: Count = 0) -> int:
    """Whole requests whose caches fit beside the weights and the workspace.

    kv_bytes is the cache of one request. Nothing left: 0. Unit: requests. Refused: TYPE (GB as
    floats lose requests: int(0.3 / 0.1) is 2), NEG, kv_bytes of 0 (NONPOS).
    Source: W 9, w-ch9-serving.
    """
    raise Unfilled


@exercise
def budget_to_flops(chip: Chip, n_chips: Size, days: Size, mfu: Share = Fraction(2, 5)) -> int:
    """FLOPs that n_chips chips do in that many days at a utilisation of mfu of their peak.

    chip.peak_flops is in FLOP/s, a rate; the result is work. Whole FLOPs, rounded down. Unit: FLOP. Refused: TYPE (0.4 is a
    float, Fraction(2, 5) is not), NONPOS, mfu outside 0 < mfu <= 1 (RANGE).
    Source: W 10, w-ch10-budget.
    """
    raise Unfilled


@exercise
def chinchilla_split(flops: Size, tokens_per_param: Size = 20) -> tuple:
    """(N, D) with D = tokens_per_param * N and 6ND the largest that does not exceed `flops`.

    Exact: math.isqrt, not ** 0.5. Units: parameters and tokens. Refused: TYPE, NONPOS.
    Source: W 10, w-ch10-budget.
    """
    raise Unfilled


@exercise
def budget_report(
    chip: Chip,
    n_chips: Size,
    days: Size,
    mfu: Share = Fraction(2, 5),
    usd_per_chip_hour: Amount = Fraction(5, 2),
    usd_per_kwh: Amount = Fraction(12, 100),
    pue: Positive = Fraction(6, 5),
) -> dict:
    """The whole plan from chips and days: what to train, what it needs, what it costs.

    Return exactly these, in this order: "flops" (budget_to_flops), "params" and "tokens"
    (chinchilla_split), "state_bytes" (training_memory of Adam on one device, unsharded),
    "cluster_bytes" (memory of all chips), "weight_bytes" (bf16 weights to serve), "kwh" (the chips
    alone), "kwh_pue" (times pue), "usd_energy", "usd_energy_pue", "usd_rental" and
    "usd_per_1e21_flops" (rental). Counts are ints; kwh and usd are Fractions.
    Left out: activations, CPUs, network, storage, people. Refused: TYPE, NONPOS, RANGE, NEG.
    Source: W 11, w-ch11.
    """
    raise Unfilled


@exercise
def sanity_checks(
    report: dict,
    memory_share: Share = Fraction(7, 10),
    unique_tokens: Size | None = None,
    largest_servable: Size | None = None,
    most_kwh: Size | None = None,
) -> dict:
    """Judge a budget_report: {"memory", "data", "servable", "energy"} -> "ok", "fail" or "not checked".

    memory: state_bytes is at most memory_share of cluster_bytes. data: tokens is at most
    unique_tokens. servable: params is at most largest_servable. energy: kwh_pue is at most most_kwh.
    A limit of None was not declared: that check says "not checked", never "ok".
    Refused: TYPE, NONPOS, RANGE.
    Source: W 10, w-ch10-budget.
    """
    raise Unfilled
