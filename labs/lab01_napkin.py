"""Lab 01: the budget calculator of the Warmup Guide, in fifteen small functions."""

from fractions import Fraction
from math import ceil, isqrt

from costlib.hardware import CHIPS
from labs.spec import Exercise, Lab, Reference, Wrong, given

H100, A100, V5E, V5P = CHIPS.values()
MAC = (
    "You get exactly half. You counted multiply-accumulates (MACs). This course counts FLOPs: "
    "one MAC is one multiply and one add, 2 FLOPs."
)
ONE_LAYER = "Right for one layer. Multiply by the number of layers."
MATMUL = {
    "m": (1, 7, 1000, 4096),
    "k": (3, 96, 4000, 4096),
    "n": (5, 250, 11008, 14336),
}
HEADS = ("n_heads", "n_kv_heads", "d_head")
BLOCK = {
    "d_model": (96, 2048, 4096, 7168),
    "d_ff": (250, 5632, 11008, 14336),
    HEADS: ((6, 2, 20), (32, 8, 128), (32, 32, 128), (64, 8, 112), (128, 128, 128), (16, 1, 256)),
    "gated": (True, True, False),
}


def halved(model):
    """Every row of a ledger, or a number, divided by two: the MAC mistake."""

    def half(*args, **kwargs):
        value = model(*args, **kwargs)
        return {name: row // 2 for name, row in value.items()} if isinstance(value, dict) else value // 2

    return half


matmul = Exercise(
    "matmul_flops",
    points=2,
    minutes=5,
    lines=1,
    hints=(
        "How many numbers does the result have? Each is a dot product of length k.",
        "A dot product of length k takes k multiplies and, from an accumulator at zero, k adds.",
        "m * n outputs, 2 * k FLOPs each, batch times.",
    ),
    cases=(
        given(2, 3, 5).gives(60),
        given(1, 4096, 16384).gives(134_217_728),
        given(1024, 4000, 4000).gives(32_768_000_000),
        given(7, 11, 13, batch=3).gives(6_006),
        given(4096, 128, 4096, batch=32).gives(137_438_953_472),
        given(0, 5, 7).gives(0),
        given(1.0, 2, 3).refuses("TYPE"),
        given(2, -3, 5).refuses("NEG"),
    ),
    wrong=(
        Wrong("mac", lambda m, k, n, batch=1: m * k * n * batch, MAC),
        Wrong(
            "one-of-the-batch",
            lambda m, k, n, batch=1: 2 * m * k * n,
            "Right for one product of the batch. Multiply by batch.",
        ),
        Wrong(
            "from-zero",
            lambda m, k, n, batch=1: m * n * (2 * k - 1) * batch,
            "You counted k - 1 adds: true if the accumulator starts with the first product. The "
            "convention counts k adds, as an FMA unit does them.",
        ),
        Wrong(
            "with-backward",
            lambda m, k, n, batch=1: 6 * m * k * n * batch,
            "Three times too much: this is forward and backward. The 2 of 2mkn is multiply and add, "
            "in the forward pass alone.",
        ),
    ),
    shapes={**MATMUL, "batch": (1, 2, 32)},
)

backward = Exercise(
    "linear_backward",
    points=2,
    minutes=8,
    lines=1,
    hints=(
        "Write the shapes down: dY is m x n, W.T is n x k, X.T is k x m.",
        "Two products, so two calls of matmul_flops with the extents in another order.",
        "dX = (m x n) @ (n x k); dW = (k x m) @ (m x n). Call it as napkin-level matmul_flops(m, n, k) and (k, m, n).",
    ),
    cases=(
        given(1024, 4096, 11008).gives({"dX": 92_341_796_864, "dW": 92_341_796_864}),
        given(2, 3, 5).gives({"dX": 60, "dW": 60}),
        given(7, 11, 13).gives({"dX": 2_002, "dW": 2_002}),
        given(2, 3, True).refuses("TYPE"),
    ),
    wrong=(
        Wrong("mac", lambda m, k, n: {"dX": m * k * n, "dW": m * k * n}, MAC),
        Wrong(
            "sum-in-both",
            lambda m, k, n: {"dX": 4 * m * k * n, "dW": 4 * m * k * n},
            "Each row holds both gradients. One row per product: dX and dW cost 2mkn each.",
        ),
        Wrong(
            "one-token-dw",
            lambda m, k, n: {"dX": 2 * m * k * n, "dW": 2 * k * n},
            "dW sums over all m rows: X.T @ dY is (k x m) @ (m x n), as large as the forward product.",
        ),
    ),
    shapes=MATMUL,
)

padded = Exercise(
    "padded_matmul_flops",
    points=2,
    minutes=10,
    lines=3,
    hints=(
        "Round one extent up first: the least multiple of tile that is at least x.",
        "-(-x // tile) is the ceiling of x / tile in integers; costlib.units.ceil_div does it.",
        "Round k and n always, m only with pad_m; then call matmul_flops.",
    ),
    cases=(
        given(1024, 4000, 4000).gives(34_359_738_368),
        given(1, 4096, 4096).gives(4_294_967_296),
        given(1, 4096, 4096, pad_m=False).gives(33_554_432),
        given(3, 100, 70, tile=64, pad_m=False).gives(98_304),
        given(8192, 8192, 1376).gives(188_978_561_024),
        given(2**53 + 1, 1, 1, tile=128).gives(295_147_905_179_357_020_160),
        given(1, 2**60 + 1, 1, tile=256, pad_m=False).gives(590_295_810_358_705_782_784),
        given(5, 6, 7, tile=0).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "unpadded",
            lambda m, k, n, tile=128, pad_m=True: 2 * m * k * n,
            "This is the useful work. The unit also works on the padding.",
        ),
        Wrong(
            "one-tile-more",
            lambda m, k, n, tile=128, pad_m=True: 2
            * ((m // tile + 1) * tile if pad_m else m)
            * ((k // tile + 1) * tile)
            * ((n // tile + 1) * tile),
            "You always add a tile. An extent that is a multiple already stays as it is.",
        ),
        Wrong(
            "rows-always",
            lambda m, k, n, tile=128, pad_m=True: 2 * (-(-m // tile)) * (-(-k // tile)) * (-(-n // tile)) * tile**3,
            "You pad m although pad_m is False: rows stream through a weight-stationary array one by one.",
        ),
        Wrong(
            "rows-never",
            lambda m, k, n, tile=128, pad_m=True: 2 * m * (-(-k // tile)) * (-(-n // tile)) * tile**2,
            "You never pad m. With pad_m=True the rows are rounded up too.",
        ),
        Wrong(
            "float-ceil",
            lambda m, k, n, tile=128, pad_m=True: 2
            * (ceil(m / tile) * tile if pad_m else m)
            * (ceil(k / tile) * tile)
            * (ceil(n / tile) * tile),
            "math.ceil(x / tile) divides as floats and is wrong above 2**53. Use -(-x // tile).",
        ),
    ),
    shapes={**MATMUL, "tile": (16, 128, 256), "pad_m": (True, False)},
)

per_layer = Exercise(
    "params_per_layer",
    points=3,
    minutes=12,
    lines=6,
    hints=(
        "Attention has four matrices. q and o are d_model by n_heads * d_head; k and v use n_kv_heads.",
        "A gated MLP has gate, up and down: three matrices of d_model * d_ff. Without the gate there are two.",
        "Refuse first: costlib.domain.require_divides(n_kv_heads, n_heads, 'n_kv_heads', 'n_heads').",
    ),
    cases=(
        given(4096, 11008, 32, 8, 128).gives({"attn": 41_943_040, "mlp": 135_266_304, "norms": 8_192}),
        given(4096, 14336, 32, 8, 128).gives({"attn": 41_943_040, "mlp": 176_160_768, "norms": 8_192}),
        given(4096, 14336, 32, 1, 128).gives({"attn": 34_603_008, "mlp": 176_160_768, "norms": 8_192}),
        given(96, 250, 6, 2, 20).gives({"attn": 30_720, "mlp": 72_000, "norms": 192}),
        given(96, 250, 6, 6, 20, gated=False).gives({"attn": 46_080, "mlp": 48_000, "norms": 192}),
        given(96, 250, 6, 2, 20, gated=False).gives({"attn": 30_720, "mlp": 48_000, "norms": 192}),
        given(96, 250, 6, 4, 20).refuses("DIVIS"),
        given(96, 250, 6, 0, 20).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "mha-for-gqa",
            lambda d_model, d_ff, n_heads, n_kv_heads, d_head, gated=True: {
                "attn": 4 * d_model * n_heads * d_head,
                "mlp": (3 if gated else 2) * d_model * d_ff,
                "norms": 2 * d_model,
            },
            "attn is the value of multi-head attention: you used n_heads for k and v. With grouped "
            "queries these two have n_kv_heads heads.",
        ),
        Wrong(
            "square-attention",
            lambda d_model, d_ff, n_heads, n_kv_heads, d_head, gated=True: {
                "attn": 4 * d_model**2,
                "mlp": (3 if gated else 2) * d_model * d_ff,
                "norms": 2 * d_model,
            },
            "attn is 4 * d_model**2: four square matrices. The packed widths are n_heads * d_head and "
            "n_kv_heads * d_head, and need not be d_model.",
        ),
        Wrong(
            "two-matrices",
            lambda d_model, d_ff, n_heads, n_kv_heads, d_head, gated=True: {
                "attn": 2 * d_model * d_head * (n_heads + n_kv_heads),
                "mlp": 2 * d_model * d_ff,
                "norms": 2 * d_model,
            },
            "The MLP has two matrices here even when gated. SwiGLU has three: gate, up, down.",
        ),
        Wrong(
            "three-matrices",
            lambda d_model, d_ff, n_heads, n_kv_heads, d_head, gated=True: {
                "attn": 2 * d_model * d_head * (n_heads + n_kv_heads),
                "mlp": 3 * d_model * d_ff,
                "norms": 2 * d_model,
            },
            "The MLP has three matrices here even when gated=False. Without a gate there are two.",
        ),
        Wrong(
            "one-norm",
            lambda d_model, d_ff, n_heads, n_kv_heads, d_head, gated=True: {
                "attn": 2 * d_model * d_head * (n_heads + n_kv_heads),
                "mlp": (3 if gated else 2) * d_model * d_ff,
                "norms": d_model,
            },
            "A block has two norms, one before attention and one before the MLP.",
        ),
    ),
    shapes=BLOCK,
)


def _total(n_layers, layer, d_model, vocab, tied):
    return {
        "non_embedding.blocks": n_layers * layer,
        "non_embedding.final_norm": d_model,
        "embedding.input": vocab * d_model,
        "embedding.output": 0 if tied else vocab * d_model,
    }


def _layer(d_model, d_ff, n_heads, n_kv_heads, d_head, gated):
    return 2 * d_model * d_head * (n_heads + n_kv_heads) + (3 if gated else 2) * d_model * d_ff + 2 * d_model


def _all(n_layers, d_model, d_ff, n_heads, n_kv_heads, d_head, vocab, tied=False, gated=True):
    return _total(n_layers, _layer(d_model, d_ff, n_heads, n_kv_heads, d_head, gated), d_model, vocab, tied)


whole_model = Exercise(
    "total_params",
    points=3,
    minutes=10,
    lines=7,
    hints=(
        "Call params_per_layer: it gives a ledger, and a ledger has .total.",
        "Outside the blocks there are the input table, the output head and one final norm of d_model.",
        "A tied head is the input table under a second name: its own row is 0.",
    ),
    cases=(
        given(32, 4096, 11008, 32, 32, 128, 32000).gives(
            {
                "non_embedding.blocks": 6_476_267_520,
                "non_embedding.final_norm": 4_096,
                "embedding.input": 131_072_000,
                "embedding.output": 131_072_000,
            }
        ),
        given(32, 4096, 14336, 32, 8, 128, 128256).gives(
            {
                "non_embedding.blocks": 6_979_584_000,
                "non_embedding.final_norm": 4_096,
                "embedding.input": 525_336_576,
                "embedding.output": 525_336_576,
            }
        ),
        given(32, 4096, 14336, 32, 8, 128, 128256, tied=True).gives(
            {
                "non_embedding.blocks": 6_979_584_000,
                "non_embedding.final_norm": 4_096,
                "embedding.input": 525_336_576,
                "embedding.output": 0,
            }
        ),
        given(3, 96, 250, 6, 2, 20, 1009, tied=True, gated=False).gives(
            {
                "non_embedding.blocks": 236_736,
                "non_embedding.final_norm": 96,
                "embedding.input": 96_864,
                "embedding.output": 0,
            }
        ),
        given(2, 8, 12, 4, 2, 2, 16).gives(
            {
                "non_embedding.blocks": 992,
                "non_embedding.final_norm": 8,
                "embedding.input": 128,
                "embedding.output": 128,
            }
        ),
        given(2, 8, 12, 4, 3, 2, 16).refuses("DIVIS"),
    ),
    wrong=(
        Wrong("one-layer", lambda n_layers, *a, **k: _all(1, *a, **k), ONE_LAYER),
        Wrong(
            "tied-twice",
            lambda n_layers, d_model, d_ff, n_heads, n_kv_heads, d_head, vocab, tied=False, gated=True: _all(
                n_layers, d_model, d_ff, n_heads, n_kv_heads, d_head, vocab, False, gated
            ),
            "The embedding is counted twice: with tied=True the head is the same tensor, stored once.",
        ),
        Wrong(
            "head-forgotten",
            lambda n_layers, d_model, d_ff, n_heads, n_kv_heads, d_head, vocab, tied=False, gated=True: _all(
                n_layers, d_model, d_ff, n_heads, n_kv_heads, d_head, vocab, True, gated
            ),
            "An untied output head is a second vocab x d_model matrix; yours is 0.",
        ),
        Wrong(
            "no-final-norm",
            lambda *a, **k: {**_all(*a, **k), "non_embedding.final_norm": 0},
            "After the last block comes one more norm of d_model scalars.",
        ),
    ),
    shapes={"n_layers": (2, 3, 32, 80), **BLOCK, "vocab": (1009, 32000, 128256), "tied": (True, False)},
)

six_nd = Exercise(
    "training_flops",
    points=1,
    minutes=3,
    lines=1,
    hints=("Forward 2N per token, backward twice that.", "6 * n_params * n_tokens."),
    cases=(
        given(175 * 10**9, 300 * 10**9).gives(315 * 10**21),
        given(70 * 10**9, 1_400 * 10**9).gives(588 * 10**21),
        given(7, 11).gives(462),
        given(0, 11).gives(0),
        given(70e9, 15 * 10**12).refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "forward-only",
            lambda n_params, n_tokens: 2 * n_params * n_tokens,
            "This is the forward pass, 2N per token. Training is forward and backward, 6N.",
        ),
        Wrong(
            "backward-only",
            lambda n_params, n_tokens: 4 * n_params * n_tokens,
            "This is the backward pass alone, 4N per token. Add the forward pass, 2N.",
        ),
        Wrong(
            "recomputed",
            lambda n_params, n_tokens: 8 * n_params * n_tokens,
            "8N counts a second forward pass: hardware FLOPs under full recomputation, not model FLOPs.",
        ),
        Wrong("mac", lambda n_params, n_tokens: 3 * n_params * n_tokens, MAC),
    ),
    shapes={"n_params": (1_128, 8_030_261_248, 70 * 10**9), "n_tokens": (4_096, 300 * 10**9, 15 * 10**12)},
)


def _step(B, T, d_model, d_ff, n_heads, n_kv_heads, d_head, n_layers, gated=True, vocab=0, passes=3):
    rows = 2 * passes * B * T
    return {
        "mlp": rows * (3 if gated else 2) * d_model * d_ff * n_layers,
        "attn_proj": rows * 2 * d_model * d_head * (n_heads + n_kv_heads) * n_layers,
        "attn_seq": 2 * rows * n_heads * T * d_head * n_layers,
        "head": rows * d_model * vocab,
    }


def _with(row, value):
    """_step with one row replaced by value(arguments)."""

    def model(B, T, d_model, d_ff, n_heads, n_kv_heads, d_head, n_layers, gated=True, vocab=0):
        right = _step(B, T, d_model, d_ff, n_heads, n_kv_heads, d_head, n_layers, gated, vocab)
        return {**right, row: value(right[row], d_model, n_heads, n_kv_heads, d_head)}

    return model


exact_step = Exercise(
    "training_flops_exact",
    points=4,
    minutes=20,
    lines=9,
    hints=(
        "Every matrix is 6 FLOPs per weight and token: call training_flops with params_per_layer's rows and B * T tokens.",
        "QK^T is, per sequence and query head, (T x d_head) @ (d_head x T). AV is as large. Forward once, backward twice.",
        "attn_seq = n_layers * 3 * 2 * matmul_flops(T, d_head, T, batch=B * n_heads). The head is one more matrix.",
    ),
    cases=(
        given(8, 8192, 8192, 28672, 64, 64, 128, 80).gives(
            {
                "mlp": 22_166_154_415_964_160,
                "attn_proj": 8_444_249_301_319_680,
                "attn_seq": 4_222_124_650_659_840,
                "head": 0,
            }
        ),
        given(1, 4096, 4096, 14336, 32, 8, 128, 32, vocab=128256).gives(
            {
                "mlp": 138_538_465_099_776,
                "attn_proj": 32_985_348_833_280,
                "attn_seq": 26_388_279_066_624,
                "head": 12_910_671_691_776,
            }
        ),
        given(5, 56, 96, 250, 6, 2, 20, 3, vocab=1009).gives(
            {"mlp": 362_880_000, "attn_proj": 154_828_800, "attn_seq": 67_737_600, "head": 162_731_520}
        ),
        given(5, 56, 96, 250, 6, 2, 20, 3, gated=False).gives(
            {"mlp": 241_920_000, "attn_proj": 154_828_800, "attn_seq": 67_737_600, "head": 0}
        ),
        given(5, 56, 96, 250, 6, 4, 20, 3).refuses("DIVIS"),
    ),
    wrong=(
        Wrong("mac", halved(_step), MAC),
        Wrong(
            "forward-only",
            lambda *a, **k: _step(*a, **k, passes=1),
            "This is the forward pass. A training step is forward and backward, three times as much.",
        ),
        Wrong(
            "one-layer",
            lambda *a, **k: {
                name: row if name == "head" else row // a[7] if len(a) > 7 else row // k["n_layers"]
                for name, row in _step(*a, **k).items()
            },
            ONE_LAYER,
        ),
        Wrong(
            "kv-heads-in-scores",
            _with("attn_seq", lambda row, d, hq, hkv, dh: row * hkv // hq),
            "attn_seq uses n_kv_heads. Sharing K and V saves memory, not score FLOPs: every query head still meets every key.",
        ),
        Wrong(
            "mha-for-gqa",
            lambda B, T, d_model, d_ff, n_heads, n_kv_heads, *a, **k: _step(
                B, T, d_model, d_ff, n_heads, n_heads, *a, **k
            ),
            "attn_proj is the multi-head value, 24BTDNH. With grouped queries k and v have n_kv_heads heads.",
        ),
        Wrong(
            "width-of-the-model",
            _with("attn_seq", lambda row, d, hq, hkv, dh: row * d // (hq * dh)),
            "attn_seq uses d_model where n_heads * d_head belongs; the two need not be equal.",
        ),
        Wrong(
            "one-product",
            _with("attn_seq", lambda row, *_: row // 2),
            "attn_seq is half: either only one of QK^T and AV is counted, or only the causal half of "
            "the T x T pairs. Asked for are both products over the full rectangle.",
        ),
    ),
    shapes={
        "B": (1, 5, 8),
        "T": (56, 2048, 8192),
        **BLOCK,
        "n_layers": (3, 32, 80),
        "vocab": (0, 1009, 128256),
    },
)


def _moe(n_layers, d_model, d_expert, n_experts, top_k, n_heads, n_kv_heads, d_head, shared_experts=0):
    expert = 3 * d_model * d_expert
    return {
        "active.attn": n_layers * 2 * d_model * d_head * (n_heads + n_kv_heads),
        "active.router": n_layers * d_model * n_experts,
        "active.shared": n_layers * shared_experts * expert,
        "active.routed": n_layers * top_k * expert,
        "idle.routed": n_layers * (n_experts - top_k) * expert,
    }


moe = Exercise(
    "moe_parameter_split",
    points=3,
    minutes=12,
    lines=8,
    hints=(
        "One expert is one gated MLP of width d_expert: params_per_layer gives it as 'mlp'.",
        "For one token attention, the router, all shared experts and top_k routed experts run.",
        "idle.routed are the n_experts - top_k experts the token does not visit. Refuse top_k > n_experts with RANGE.",
    ),
    cases=(
        given(60, 7168, 2048, 256, 8, 128, 128, 128, shared_experts=1).gives(
            {
                "active.attn": 28_185_722_880,
                "active.router": 110_100_480,
                "active.shared": 2_642_411_520,
                "active.routed": 21_139_292_160,
                "idle.routed": 655_318_056_960,
            }
        ),
        given(32, 4096, 14336, 8, 2, 32, 8, 128).gives(
            {
                "active.attn": 1_342_177_280,
                "active.router": 1_048_576,
                "active.shared": 0,
                "active.routed": 11_274_289_152,
                "idle.routed": 33_822_867_456,
            }
        ),
        given(3, 96, 34, 7, 2, 6, 2, 20, shared_experts=1).gives(
            {
                "active.attn": 92_160,
                "active.router": 2_016,
                "active.shared": 29_376,
                "active.routed": 58_752,
                "idle.routed": 146_880,
            }
        ),
        given(3, 96, 34, 7, 8, 6, 2, 20).refuses("RANGE"),
    ),
    wrong=(
        Wrong(
            "all-active",
            lambda *a, **k: (
                lambda r: {**r, "active.routed": r["active.routed"] + r["idle.routed"], "idle.routed": 0}
            )(_moe(*a, **k)),
            "Every expert is active here. A token visits top_k of them; the rest is stored but idle.",
        ),
        Wrong(
            "no-router",
            lambda *a, **k: {**_moe(*a, **k), "active.router": 0},
            "The router is a learned d_model x n_experts matrix, and every token passes it.",
        ),
        Wrong(
            "no-shared",
            lambda *a, **k: {**_moe(*a, **k), "active.shared": 0},
            "Shared experts run for every token; they are in neither of your routed rows.",
        ),
        Wrong(
            "attention-per-expert",
            lambda n_layers, d_model, d_expert, n_experts, *a, **k: (
                lambda r: {**r, "active.attn": r["active.attn"] * n_experts}
            )(_moe(n_layers, d_model, d_expert, n_experts, *a, **k)),
            "Attention is multiplied by the number of experts. Only the MLP is replicated: '8x7B' has 47B, not 56B.",
        ),
        Wrong(
            "two-matrices",
            lambda *a, **k: {
                name: row * 2 // 3 if "routed" in name or "shared" in name else row
                for name, row in _moe(*a, **k).items()
            },
            "Each expert has two matrices here. They are gated: three.",
        ),
    ),
    shapes={
        "n_layers": (3, 32, 60),
        "d_model": (96, 4096, 7168),
        "d_expert": (34, 1408, 2048, 14336),
        ("n_experts", "top_k"): ((7, 2), (8, 2), (64, 6), (256, 8)),
        HEADS: BLOCK[HEADS],
        "shared_experts": (0, 1, 2),
    },
)


def _memory(n_params, optimizer="adam", zero_stage=0, dp_degree=1, activation_bytes=0, up=True, cut=(3, 2, 1)):
    shard = -(-n_params // dp_degree) if up else n_params // dp_degree
    weights, grads, states = (shard if zero_stage >= stage else n_params for stage in cut)
    return {
        "weights": 2 * weights,
        "grads": 2 * grads,
        "optimizer": {"adam": 12, "sgd_momentum": 8, "sgd": 4}[optimizer] * states,
        "activations": activation_bytes,
    }


memory = Exercise(
    "training_memory",
    points=4,
    minutes=15,
    lines=7,
    hints=(
        "Without sharding: 2 bytes per weight, 2 per gradient, OPTIMIZER_BYTES[optimizer] for master copy and moments.",
        "Stage 1 shards the optimizer, 2 the gradients too, 3 the weights too: use >=, not ==.",
        "A shard is ceil(n_params / dp_degree) scalars, ceil_div in costlib.units. Multiply by the bytes after that.",
    ),
    cases=(
        given(70 * 10**9).gives(
            {"weights": 140 * 10**9, "grads": 140 * 10**9, "optimizer": 840 * 10**9, "activations": 0}
        ),
        given(70 * 10**9, zero_stage=1, dp_degree=64).gives(
            {"weights": 140 * 10**9, "grads": 140 * 10**9, "optimizer": 13_125_000_000, "activations": 0}
        ),
        given(70 * 10**9, zero_stage=2, dp_degree=64).gives(
            {"weights": 140 * 10**9, "grads": 2_187_500_000, "optimizer": 13_125_000_000, "activations": 0}
        ),
        given(70 * 10**9, zero_stage=3, dp_degree=64, activation_bytes=7).gives(
            {"weights": 2_187_500_000, "grads": 2_187_500_000, "optimizer": 13_125_000_000, "activations": 7}
        ),
        given(1128, zero_stage=3, dp_degree=64).gives(
            {"weights": 36, "grads": 36, "optimizer": 216, "activations": 0}
        ),
        given(1128, "sgd_momentum", 1, 64, 1000).gives(
            {"weights": 2_256, "grads": 2_256, "optimizer": 144, "activations": 1_000}
        ),
        given(1128, "sgd").gives({"weights": 2_256, "grads": 2_256, "optimizer": 4_512, "activations": 0}),
        given(1128, "adafactor").refuses("ENUM"),
        given(1128, zero_stage=4, dp_degree=8).refuses("RANGE"),
        given(70e9).refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "floor-shards",
            lambda *a, **k: _memory(*a, **k, up=False),
            "Your shards are rounded down: scalars are lost. 1,128 parameters over 64 devices are 18 each, not 17.",
        ),
        Wrong(
            "bytes-cut",
            lambda n_params, optimizer="adam", zero_stage=0, dp_degree=1, activation_bytes=0: {
                name: -(-row // dp_degree) if name != "activations" and zero_stage >= stage else row
                for stage, (name, row) in zip(
                    (3, 2, 1, 9), _memory(n_params, optimizer, 0, 1, activation_bytes).items()
                )
            },
            "You divide bytes, so a shard may end inside a scalar. Divide scalars, then multiply by the bytes.",
        ),
        Wrong(
            "bytes-floored",
            lambda n_params, optimizer="adam", zero_stage=0, dp_degree=1, activation_bytes=0: {
                name: row // dp_degree if name != "activations" and zero_stage >= stage else row
                for stage, (name, row) in zip(
                    (3, 2, 1, 9), _memory(n_params, optimizer, 0, 1, activation_bytes).items()
                )
            },
            "You divide bytes and round down, as the Warmup Guide does: 64 devices of 211 bytes hold less than there is, "
            "and 211 is no whole number of scalars. Divide scalars, round up, then multiply by the bytes.",
        ),
        Wrong(
            "order-of-stages",
            lambda *a, **k: _memory(*a, **k, cut=(1, 2, 3)),
            "The stages are turned round: ZeRO-1 shards the optimizer, 2 the gradients, 3 the weights.",
        ),
        Wrong(
            "activations-sharded",
            lambda n_params, optimizer="adam", zero_stage=0, dp_degree=1, activation_bytes=0: _memory(
                n_params, optimizer, zero_stage, dp_degree, -(-activation_bytes // dp_degree)
            ),
            "ZeRO shards model state. Each device keeps the activations of its own batch.",
        ),
        Wrong(
            "no-master",
            lambda n_params, optimizer="adam", zero_stage=0, dp_degree=1, activation_bytes=0: (
                lambda r: {**r, "optimizer": r["optimizer"] * {"adam": 2, "sgd_momentum": 1, "sgd": 0}[optimizer] // {"adam": 3, "sgd_momentum": 2, "sgd": 1}[optimizer]}
            )(_memory(n_params, optimizer, zero_stage, dp_degree, activation_bytes)),
            "The fp32 master copy is missing: 4 bytes per parameter beside the moments.",
        ),
    ),
    shapes={
        "n_params": (1_128, 8_030_261_248, 70 * 10**9),
        "optimizer": ("adam", "sgd_momentum", "sgd"),
        "zero_stage": (0, 1, 2, 3),
        "dp_degree": (1, 7, 64),
        "activation_bytes": (0, 12_345),
    },
)


_NAPKIN = Reference("napkin")
_kv = _NAPKIN.bound("kv_cache_bytes", lambda *args: _NAPKIN.right("kv_cache_bytes", *args))


kv = Exercise(
    "kv_cache_bytes",
    points=2,
    minutes=5,
    lines=1,
    hints=(
        "One token leaves, in each layer, one key and one value of n_kv_heads * d_head scalars.",
        "2 * n_layers * n_kv_heads * d_head scalars per token; then tokens, sequences, bytes.",
    ),
    cases=(
        given(32, 8, 128, 4096, 1).gives(536_870_912),
        given(80, 8, 128, 8192, 32).gives(85_899_345_920),
        given(80, 64, 128, 8192, 1).gives(21_474_836_480),
        given(3, 2, 20, 56, 5).gives(134_400),
        given(3, 2, 20, 56, 5, bytes_per=1).gives(67_200),
        given(3, 2, 20, 0, 5).gives(0),
        given(32, 8, 128, 4096.0, 1).refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "k-only",
            lambda *a, **k: _kv(*a, **k) // 2,
            "Exactly half: a cache keeps K and V, two tensors per layer.",
        ),
        Wrong("one-layer", lambda n_layers, *a, **k: _kv(1, *a, **k), ONE_LAYER),
        Wrong(
            "one-sequence",
            lambda n_layers, n_kv_heads, d_head, seq_len, batch, bytes_per=2: _kv(
                n_layers, n_kv_heads, d_head, seq_len, 1, bytes_per
            ),
            "Right for one sequence. Multiply by batch.",
        ),
        Wrong("bits", lambda *a, **k: 8 * _kv(*a, **k), "Factor 8: these are bits. A byte has eight of them."),
        Wrong(
            "fp32",
            lambda n_layers, n_kv_heads, d_head, seq_len, batch, bytes_per=2: _kv(
                n_layers, n_kv_heads, d_head, seq_len, batch, 4
            ),
            "You used 4 bytes per scalar. Use bytes_per; bf16 has 2.",
        ),
        Wrong(
            "off-by-one",
            lambda n_layers, n_kv_heads, d_head, seq_len, batch, bytes_per=2: _kv(
                n_layers, n_kv_heads, d_head, seq_len + 1, batch, bytes_per
            ),
            "Off by one token: seq_len counts the rows in the cache, the newest included.",
        ),
    ),
    shapes={
        "n_layers": (3, 32, 80),
        "n_kv_heads": (1, 2, 8, 64),
        "d_head": (20, 64, 128),
        "seq_len": (56, 4096, 32768),
        "batch": (1, 5, 32),
        "bytes_per": (1, 2, 4),
    },
)

concurrent = Exercise(
    "max_concurrent_requests",
    points=2,
    minutes=5,
    lines=1,
    hints=(
        "What is left for caches once weights and workspace are in?",
        "Integer division answers 'how many whole ones'; max(0, ...) keeps a negative rest from becoming -1.",
    ),
    cases=(
        given(640 * 10**9, 140 * 10**9, 21_474_836_480, 10 * 10**9).gives(22),
        given(640 * 10**9, 140 * 10**9, 2_684_354_560, 10 * 10**9).gives(182),
        given(100, 10, 30, 0).gives(3),
        given(10, 50, 7).gives(0),
        given(10, 5, 7, 20).gives(0),
        given(100, 100, 5).gives(0),
        given(640 * 10**9, 140 * 10**9, 0).refuses("NONPOS"),
        given(640e9, 140e9, 21_474_836_480).refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "no-workspace",
            lambda memory_bytes, weight_bytes, kv_bytes, workspace_bytes=0: max(0, memory_bytes - weight_bytes)
            // kv_bytes,
            "The workspace is not taken off.",
        ),
        Wrong(
            "no-weights",
            lambda memory_bytes, weight_bytes, kv_bytes, workspace_bytes=0: max(0, memory_bytes - workspace_bytes)
            // kv_bytes,
            "The weights are not taken off. They are there once, whatever the number of requests.",
        ),
        Wrong(
            "negative",
            lambda memory_bytes, weight_bytes, kv_bytes, workspace_bytes=0: (
                memory_bytes - weight_bytes - workspace_bytes
            )
            // kv_bytes,
            "A negative number of requests: where nothing is left, the answer is 0.",
        ),
        Wrong(
            "rounded-up",
            lambda memory_bytes, weight_bytes, kv_bytes, workspace_bytes=0: -(
                -max(0, memory_bytes - weight_bytes - workspace_bytes) // kv_bytes
            ),
            "Rounded up: the last request does not fit whole.",
        ),
    ),
    shapes={
        "memory_bytes": (80 * 10**9, 640 * 10**9),
        "weight_bytes": (16_060_522_496, 140 * 10**9),
        "kv_bytes": (134_400, 536_870_912, 2_684_354_560),
        "workspace_bytes": (0, 2**30, 10 * 10**9),
    },
)

budget = Exercise(
    "budget_to_flops",
    points=2,
    minutes=5,
    lines=1,
    hints=(
        "Work is rate times time: FLOP/s times seconds.",
        "A day has 86,400 s (costlib.units.SECONDS_PER_DAY). mfu is a Fraction: multiply first, int(...) last.",
    ),
    cases=(
        given(H100, 1000, 30).gives(1_026_432 * 10**18),
        given(H100, 1, 1, Fraction(1)).gives(85_536_000 * 10**12),
        given(A100, 8, 1, Fraction(1, 2)).gives(107_827_200 * 10**12),
        given(V5E, 256, 7, Fraction(1, 3)).gives(10_167_091_200 * 10**12),
        given(H100, 1000, 30, 0.4).refuses("TYPE"),
        given(H100, 1000, 30, Fraction(3, 2)).refuses("RANGE"),
        given("H100", 1000, 30).refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "no-mfu",
            lambda chip, n_chips, days, mfu=Fraction(2, 5): chip.peak_flops * n_chips * days * 86_400,
            "This is the peak. Real runs reach a share of it, mfu.",
        ),
        Wrong(
            "mfu-of-the-default",
            lambda chip, n_chips, days, mfu=Fraction(2, 5): chip.peak_flops * n_chips * days * 86_400 * 2 // 5,
            "Always 40 %: use the mfu argument.",
        ),
        Wrong(
            "hours",
            lambda chip, n_chips, days, mfu=Fraction(2, 5): int(chip.peak_flops * n_chips * days * 24 * mfu),
            "You multiplied FLOP per second by hours. A day has 86,400 s.",
        ),
        Wrong(
            "one-chip",
            lambda chip, n_chips, days, mfu=Fraction(2, 5): int(chip.peak_flops * days * 86_400 * mfu),
            "Right for one chip. Multiply by n_chips.",
        ),
        Wrong(
            "a-rate",
            lambda chip, n_chips, days, mfu=Fraction(2, 5): int(chip.peak_flops * n_chips * mfu),
            "This is a rate, FLOP/s. The budget is work: multiply by the seconds.",
        ),
    ),
    shapes={
        "chip": (H100, A100, V5E, V5P),
        "n_chips": (1, 8, 1000, 24576),
        "days": (1, 7, 54),
        "mfu": (Fraction(1, 3), Fraction(2, 5), Fraction(9, 20)),
    },
)

split = Exercise(
    "chinchilla_split",
    points=2,
    minutes=8,
    lines=2,
    hints=(
        "Put D = tokens_per_param * N into C = 6ND and solve for N.",
        "N**2 = C / (6 * tokens_per_param). math.isqrt gives the integer root exactly; ** 0.5 does not.",
    ),
    cases=(
        given(1_026_432 * 10**18).gives((92_485_674_566, 1_849_713_491_320)),
        given(120).gives((1, 20)),
        given(119).gives((0, 0)),
        given(2940, tokens_per_param=10).gives((7, 70)),
        given(6_000, tokens_per_param=40).gives((5, 200)),
        given(120 * (10**17 + 7) ** 2).gives((10**17 + 7, 20 * (10**17 + 7))),
        given(240 * (10**17 + 9) ** 2, tokens_per_param=40).gives((10**17 + 9, 40 * (10**17 + 9))),
        given(0).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "float-root",
            lambda flops, tokens_per_param=20: (
                lambda n: (n, tokens_per_param * n)
            )(int((flops / (6 * tokens_per_param)) ** 0.5)),
            "Right for small numbers: a float root has 53 bits. math.isqrt is exact.",
        ),
        Wrong(
            "no-six",
            lambda flops, tokens_per_param=20: (
                lambda n: (n, tokens_per_param * n)
            )(isqrt(flops // tokens_per_param)),
            "You solved C = ND. Training costs 6ND.",
        ),
        Wrong(
            "always-twenty",
            lambda flops, tokens_per_param=20: (lambda n: (n, 20 * n))(isqrt(flops // 120)),
            "Always 20 tokens per parameter: use the argument.",
        ),
        Wrong(
            "swapped",
            lambda flops, tokens_per_param=20: (
                lambda n: (tokens_per_param * n, n)
            )(isqrt(flops // (6 * tokens_per_param))),
            "Swapped: parameters first, tokens second.",
        ),
    ),
    shapes={"flops": (10**18, 315 * 10**21, 63 * 10**23, 3 * 10**25 + 7), "tokens_per_param": (10, 20, 21, 200)},
)

REPORT = {
    "flops": 1_026_432 * 10**18,
    "params": 92_485_674_566,
    "tokens": 1_849_713_491_320,
    "state_bytes": 1_479_770_793_056,
    "cluster_bytes": 80 * 10**12,
    "weight_bytes": 184_971_349_132,
    "kwh": Fraction(504_000),
    "kwh_pue": Fraction(604_800),
    "usd_energy": Fraction(60_480),
    "usd_energy_pue": Fraction(72_576),
    "usd_rental": Fraction(1_800_000),
    "usd_per_1e21_flops": Fraction(1_562_500, 891),
}
SMALL = {  # 8 A100 for a day at half of peak, free power from the roof, cooled for nothing
    "flops": 107_827_200 * 10**12,
    "params": 947_924_047,
    "tokens": 18_958_480_940,
    "state_bytes": 15_166_784_752,
    "cluster_bytes": 640 * 10**9,
    "weight_bytes": 1_895_848_094,
    "kwh": Fraction(384, 5),
    "kwh_pue": Fraction(384, 5),
    "usd_energy": Fraction(0),
    "usd_energy_pue": Fraction(0),
    "usd_rental": Fraction(384),
    "usd_per_1e21_flops": Fraction(1_250_000, 351),
}


def _report(change):
    """The reference's report with some rows changed by a mistake."""
    return _NAPKIN.changed("budget_report", change)


whole_report = Exercise(
    "budget_report",
    points=4,
    minutes=20,
    lines=10,
    hints=(
        "Call budget_to_flops, then chinchilla_split, then training_memory: the first four rows are theirs.",
        "Keep chip-hours in one variable: kWh = watts * chip_hours / 1000 as a Fraction, rental = price * chip_hours.",
        "usd_per_1e21_flops = rental * 10**21 / Fraction(flops). PUE multiplies energy, never rental.",
    ),
    cases=(
        given(H100, 1000, 30).gives(REPORT),
        given(A100, 8, 1, Fraction(1, 2), Fraction(2), Fraction(0), Fraction(1)).gives(SMALL),
        given(H100, 1000, 30, 0.4).refuses("TYPE"),
        given(H100, 0, 30).refuses("NONPOS"),
        given(H100, 1000, 30, usd_per_kwh=Fraction(-1, 10)).refuses("NEG"),
    ),
    wrong=(
        Wrong(
            "chip-days",
            _report(
                lambda r, *_, **__: {
                    "usd_rental": r["usd_rental"] / 24,
                    "usd_per_1e21_flops": r["usd_per_1e21_flops"] / 24,
                }
            ),
            "The rental multiplies a price per hour by days.",
        ),
        Wrong(
            "watt-hours",
            _report(
                lambda r, *_, **__: {
                    key: r[key] * 1000 for key in ("kwh", "kwh_pue", "usd_energy", "usd_energy_pue")
                }
            ),
            "These are watt-hours. A kilowatt-hour has 1000 of them.",
        ),
        Wrong(
            "weights-only",
            _report(lambda r, *_, **__: {"state_bytes": r["weight_bytes"]}),
            "state_bytes holds the weights only. Training keeps gradients, master copy and moments as well: 16 bytes per parameter.",
        ),
        Wrong(
            "one-chip-memory",
            _report(lambda r, chip, n_chips, *_, **__: {"cluster_bytes": chip.memory_bytes}),
            "cluster_bytes is one chip's memory. Multiply by n_chips.",
        ),
        Wrong(
            "fp32-weights",
            _report(lambda r, *_, **__: {"weight_bytes": 2 * r["weight_bytes"]}),
            "weight_bytes has 4 bytes per weight. Serving in bf16 takes 2.",
        ),
    ),
    shapes={
        "chip": (H100, A100, V5E, V5P),
        "n_chips": (8, 1000, 24576),
        "days": (1, 30, 54),
        "mfu": (Fraction(1, 3), Fraction(2, 5)),
        "usd_per_chip_hour": (Fraction(5, 2), Fraction(99, 100)),
        "usd_per_kwh": (Fraction(12, 100), Fraction(3, 100)),
        "pue": (Fraction(11, 10), Fraction(6, 5)),
    },
)

CHECKS = ("memory", "data", "servable", "energy")


def _verdict(*words):
    return dict(zip(CHECKS, words, strict=True))


def _checks(report, memory_share=Fraction(7, 10), unique_tokens=None, largest_servable=None, most_kwh=None, **mistake):
    limits = (memory_share * report["cluster_bytes"], unique_tokens, largest_servable, most_kwh)
    values = (report["state_bytes"], report["tokens"], report["params"], report["kwh_pue"])
    unset, within = mistake.get("unset", "not checked"), mistake.get("within", lambda value, limit: value <= limit)
    return _verdict(
        *(unset if limit is None else "ok" if within(value, limit) else "fail" for value, limit in zip(values, limits))
    )


TIGHT = {**REPORT, "cluster_bytes": 2_000 * 10**9, "state_bytes": 1_400 * 10**9}
sanity = Exercise(
    "sanity_checks",
    points=3,
    minutes=12,
    lines=8,
    hints=(
        "Four pairs of a value and a limit. Put them in a dict and treat all alike.",
        "A limit of None: 'not checked'. Otherwise 'ok' if value <= limit, else 'fail'.",
        "The memory limit is memory_share * report['cluster_bytes'], a Fraction: compare it as it is.",
    ),
    cases=(
        given(REPORT).gives(_verdict("ok", "not checked", "not checked", "not checked")),
        given(
            REPORT, unique_tokens=15 * 10**12, largest_servable=100 * 10**9, most_kwh=604_800
        ).gives(_verdict("ok", "ok", "ok", "ok")),
        given(REPORT, unique_tokens=10**12, largest_servable=70 * 10**9, most_kwh=604_799).gives(
            _verdict("ok", "fail", "fail", "fail")
        ),
        given(TIGHT).gives(_verdict("ok", "not checked", "not checked", "not checked")),
        given(TIGHT, Fraction(69, 100), unique_tokens=1_849_713_491_320).gives(
            _verdict("fail", "ok", "not checked", "not checked")
        ),
        given(SMALL, Fraction(1, 100), largest_servable=947_924_047).gives(
            _verdict("fail", "not checked", "ok", "not checked")
        ),
        given(REPORT, most_kwh=550_000).gives(_verdict("ok", "not checked", "not checked", "fail")),
        given(REPORT, 0.7).refuses("TYPE"),
        given(REPORT, Fraction(7, 10), 15e12).refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "unset-is-ok",
            lambda *a, **k: _checks(*a, **k, unset="ok"),
            "A check without a limit says 'ok' here. A check that cannot fail is 'not checked'.",
        ),
        Wrong(
            "strictly-less",
            lambda *a, **k: _checks(*a, **k, within=lambda value, limit: value < limit),
            "Exactly at the limit is within it: use <=.",
        ),
        Wrong(
            "whole-memory",
            lambda report, memory_share=Fraction(7, 10), *a, **k: _checks(report, Fraction(1), *a, **k),
            "memory compares with all of the memory. Only memory_share of it is for the state.",
        ),
        Wrong(
            "without-pue",
            lambda report, *a, **k: _checks({**report, "kwh_pue": report["kwh"]}, *a, **k),
            "energy compares the chips alone. The limit is for the meter: kwh_pue.",
        ),
    ),
    shapes={
        "report": (REPORT, SMALL, TIGHT),
        "memory_share": (Fraction(1, 100), Fraction(69, 100), Fraction(1)),
        "unique_tokens": (None, 10**10, 15 * 10**12),
        "largest_servable": (None, 10**8, 10**11),
        "most_kwh": (None, 70, 550_000, 10**6),
    },
)

LAB = Lab(
    "01",
    "Napkin: FLOPs, memory and budget",
    "napkin",
    (
        matmul,
        backward,
        padded,
        per_layer,
        whole_model,
        six_nd,
        exact_step,
        moe,
        memory,
        kv,
        concurrent,
        budget,
        split,
        whole_report,
        sanity,
    ),
)
