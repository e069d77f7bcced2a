"""Lab 06: the forward ledger of M 0x05, from one dot product to every product of a call."""

from fractions import Fraction

from costlib.fixtures import (
    CLASSIC,
    DECODE_32K,
    ODD,
    ODD_EVERYTHING,
    ODD_EXPERTS,
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
from costlib.hardware import chip
from costlib.records import Experts, Workload
from costlib.units import fixed
from labs.spec import Exercise, Failure, Lab, Reference, Wrong, given

CHUNK_ODD = Workload(
    workload_id="chunk-odd", phase="prefill-chunk", batch_size=2, new_rows=7, visible_rows=19, logits="final"
)
DECODE_ODD = Workload(
    workload_id="decode-odd", phase="decode", batch_size=3, new_rows=1, visible_rows=33, logits="final"
)
TIED = RUNNING.replace(manifest_id="8b-tied", tie_word_embeddings=True)
MQA = RUNNING.replace(manifest_id="8b-mqa", num_key_value_heads=1)
ODD_PACKED = ODD.replace(manifest_id="odd-packed-norms", qk_norm="packed", norms_per_block=4, final_norm=False)
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
DENSE = (RUNNING, MQA, TOY, ODD, ODD_PACKED, ODD_EVERYTHING, CLASSIC, W_7B, W_70B)
SPARSE = (ODD_EXPERTS, EXPERTS_WIDE, MIXTRAL, W_MOE)
EVERY = (*DENSE, TIED, TOY_TIED, *SPARSE)
WORK = (TRAIN_4K, PREFILL_4K, DECODE_32K, TRAIN_ODD, CHUNK_ODD, DECODE_ODD)
ROWS = (1, 7, 14, 280, 4096)


_right, _changed = Reference("forward").right, Reference("forward").changed


def _half(name):
    return _changed(name, lambda r, *_: {row: flops // 2 for row, flops in r.items()})


MACS = "These are multiply-accumulates. One fused multiply-add is two FLOPs in every ledger of this course."

counts = Exercise(
    "product_counts",
    points=2,
    minutes=6,
    lines=1,
    hints=(
        "The product has m * n outputs. Each is a dot product of length k.",
        "A dot product from zero has k multiplications and only k - 1 additions: the first term is added to nothing.",
        '{"macs": m * k * n, "flops": 2 * m * k * n, "from_zero": m * n * (2 * k - 1)}.',
    ),
    cases=(
        given(2, 3, 5).gives({"macs": 30, "flops": 60, "from_zero": 50}),
        given(1, 1, 1).gives({"macs": 1, "flops": 2, "from_zero": 1}),
        given(1, 1000, 10).gives({"macs": 10_000, "flops": 20_000, "from_zero": 19_990}),
        given(7, 11, 13).gives({"macs": 1_001, "flops": 2_002, "from_zero": 1_911}),
        given(4096, 4096, 1024).gives(
            {"macs": 17_179_869_184, "flops": 34_359_738_368, "from_zero": 34_355_544_064}
        ),
        given(2, 3.0, 5).refuses("TYPE"),
        given(2, 0, 5).refuses("NONPOS"),
    ),
    wrong=(
        Wrong("macs-as-flops", _changed("product_counts", lambda r, *_: {"flops": r["macs"]}), MACS),
        Wrong(
            "k-additions",
            _changed("product_counts", lambda r, *_: {"from_zero": r["flops"]}),
            "k additions for k terms: the first term starts the sum, so one addition per output is too many.",
        ),
        Wrong(
            "one-addition-less",
            _changed("product_counts", lambda r, *_: {"from_zero": r["flops"] - 1}),
            "One addition is saved in every output, m * n in all, not one in the whole product.",
        ),
        Wrong(
            "one-dot",
            _changed("product_counts", lambda r, m, k, n: {"from_zero": 2 * k - 1}),
            "That is one output. The product has m * n of them.",
        ),
    ),
    shapes={"m": (1, 56, 280, 4096), "k": (96, 128, 1000), "n": (10, 250, 1024)},
)


def _area(causal=None, kaplan=None):
    def model(S_q, S_k, convention):
        if convention == "causal-legal" and causal:
            return causal(S_q, S_k)
        if convention == "kaplan" and kaplan:
            return kaplan(S_q, S_k)
        return _right("area", S_q, S_k, convention)

    return model


area = Exercise(
    "area",
    points=4,
    minutes=15,
    lines=5,
    hints=(
        "Draw 3 queries over 5 keys: the queries are rows 3, 4 and 5, so they see 3, 4 and 5 keys.",
        "Legal: every query sees the S_k - S_q older rows, S_q * (S_k - S_q) pairs, and among the new ones a triangle with its diagonal.",
        'S_q * (S_k - S_q) + S_q * (S_q + 1) // 2. Kaplan: require(S_q == S_k, "INCONSISTENT", ...), then Fraction(S_q * S_k, 2).',
    ),
    cases=(
        given(4096, 4096, "rectangular").gives(16_777_216),
        given(4096, 4096, "causal-legal").gives(8_390_656),
        given(4096, 4096, "kaplan").gives(Fraction(8_388_608)),
        given(1, 32768, "causal-legal").gives(32_768),
        given(1, 32768, "rectangular").gives(32_768),
        given(7, 19, "causal-legal").gives(112),
        given(7, 19, "rectangular").gives(133),
        given(7, 7, "kaplan").gives(Fraction(49, 2)),
        given(5, 5, "causal-legal").gives(15),
        given(19, 7, "rectangular").refuses("INCONSISTENT"),
        given(7, 19, "kaplan").refuses("INCONSISTENT"),
        given(3, 3, "half").refuses("ENUM"),
    ),
    wrong=(
        Wrong(
            "half-always",
            _area(causal=lambda q, k: q * k // 2),
            "Half of the rectangle is not the legal area: the diagonal is legal, and a decode row sees every older row.",
        ),
        Wrong(
            "whole-triangle",
            _area(causal=lambda q, k: k * (k + 1) // 2),
            "This is the triangle of all S_k rows. Only the last S_q of them are queries here.",
        ),
        Wrong(
            "mask-from-the-corner",
            _area(causal=lambda q, k: q * (q + 1) // 2),
            "The mask is aligned with the first key. The queries are the last rows: query i sees S_k - S_q + i + 1 keys.",
        ),
        Wrong(
            "diagonal-masked",
            _area(causal=lambda q, k: q * (k - q) + q * (q - 1) // 2),
            "A row sees itself: the diagonal belongs to the legal pairs.",
        ),
        Wrong(
            "rectangle-always",
            _area(causal=lambda q, k: q * k, kaplan=lambda q, k: q * k if q == k else _right("area", q, k, "kaplan")),
            "The convention changes nothing here. Only 'rectangular' charges every query with every key.",
        ),
        Wrong(
            "kaplan-in-whole-pairs",
            _area(kaplan=lambda q, k: q * k // 2 if q == k else _right("area", q, k, "kaplan")),
            "Half of an odd square is no integer: return Fraction(S_q * S_k, 2) and let the product make it whole.",
        ),
    ),
    shapes={
        ("S_q", "S_k"): ((1, 1), (1, 33), (7, 19), (56, 56), (128, 4096), (4096, 4096)),
        "convention": ("rectangular", "causal-legal", "kaplan"),
    },
)

window = Exercise(
    "window_area",
    points=4,
    minutes=20,
    lines=4,
    hints=(
        "Start from the causal-legal area and take away what is too old. With window 3, the row that could see 8 keys loses 5.",
        "The last query loses S_k - window keys, the one before it one less, down to the first query or to nothing: a triangle without its tip.",
        "x = max(0, S_k - window), y = max(0, S_k - S_q - window); take (x * (x + 1) - y * (y + 1)) // 2 away from area(S_q, S_k, 'causal-legal').",
    ),
    cases=(
        given(8, 8, 3).gives(21),
        given(4096, 4096, 128).gives(516_160),
        given(7, 19, 5).gives(35),
        given(7, 19, 15).gives(102),
        given(8, 8, 8).gives(36),
        given(8, 8, 100).gives(36),
        given(5, 5, 1).gives(5),
        given(1, 32768, 4096).gives(4_096),
        given(10, 5, 3).refuses("INCONSISTENT"),
        given(5, 5, 0).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "no-window",
            lambda S_q, S_k, window: _right("area", S_q, S_k, "causal-legal"),
            "The window does nothing here: a query sees at most `window` keys, however long the context.",
        ),
        Wrong(
            "always-full",
            lambda S_q, S_k, window: S_q * min(window, S_k),
            "Every query gets a full window. The first rows of a sequence do not have that many keys to look at.",
        ),
        Wrong(
            "itself-on-top",
            lambda S_q, S_k, window: _right("window_area", S_q, S_k, window + 1),
            "One key too many: the query's own key is one of the `window`.",
        ),
        Wrong(
            "fresh-sequence",
            lambda S_q, S_k, window: _right("window_area", S_q, S_q, window),
            "The older rows are forgotten: the queries are the last S_q of S_k rows and look back into the cache.",
        ),
    ),
    shapes={
        ("S_q", "S_k"): ((1, 33), (7, 19), (20, 20), (56, 56), (128, 4096), (4096, 4096)),
        "window": (1, 4, 16, 17, 128, 5000),
    },
)

ragged = Exercise(
    "ragged_area",
    points=2,
    minutes=8,
    lines=6,
    hints=(
        "Three sums over the lengths. Two of them look at one length at a time.",
        "legal: area(S, S, 'causal-legal') for each. padded: as many squares as sequences, all of the longest.",
        "An empty tuple first: require(lengths, 'MISSING', ...); then padded is len(lengths) * max(lengths) ** 2.",
    ),
    cases=(
        given((3, 5, 2)).gives({"legal": 24, "rectangles": 38, "padded": 75}),
        given((4,)).gives({"legal": 10, "rectangles": 16, "padded": 16}),
        given((1, 1, 1, 9)).gives({"legal": 48, "rectangles": 84, "padded": 324}),
        given((4096, 1024)).gives({"legal": 8_915_456, "rectangles": 17_825_792, "padded": 33_554_432}),
        given(()).refuses("MISSING"),
        given((3, 0)).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "triangles-of-the-longest",
            _changed("ragged_area", lambda r, lengths: {"legal": len(lengths) * max(lengths) * (max(lengths) + 1) // 2}),
            "The legal pairs are those of the padded batch. Each sequence has a triangle of its own length.",
        ),
        Wrong(
            "one-long-sequence",
            _changed("ragged_area", lambda r, lengths: {"legal": sum(lengths) * (sum(lengths) + 1) // 2}),
            "The sequences are joined into one: tokens of one request would read those of another.",
        ),
        Wrong(
            "half-of-the-squares",
            _changed("ragged_area", lambda r, lengths: {"legal": r["rectangles"] // 2}),
            "Half of each square leaves half of each diagonal out. A triangle with its diagonal is S(S + 1)/2.",
        ),
        Wrong(
            "no-padding",
            _changed("ragged_area", lambda r, lengths: {"padded": r["rectangles"]}),
            "A padded batch has the length of its longest sequence everywhere.",
        ),
    ),
    shapes={"lengths": ((17, 33, 2), (1024, 4096, 512), (5, 5, 5), (1, 100), (7, 3, 3, 3, 1), (2, 9), (640,), (31, 8))},
)

projections = Exercise(
    "projections",
    points=3,
    minutes=8,
    lines=6,
    hints=(
        "Four products. Each has `rows` rows; which two widths do the stored axes of its matrix have?",
        "q: d to d_q. k and v: d to d_kv. o: d_q to d. napkin.matmul_flops(m, k, n) counts one product.",
        '{"q": napkin.matmul_flops(rows, d, arch.d_q), "k": napkin.matmul_flops(rows, d, arch.d_kv), ...}',
    ),
    cases=(
        given(RUNNING, 4096).gives(
            {"q": 137_438_953_472, "k": 34_359_738_368, "v": 34_359_738_368, "o": 137_438_953_472}
        ),
        given(RUNNING, 1).gives({"q": 33_554_432, "k": 8_388_608, "v": 8_388_608, "o": 33_554_432}),
        given(ODD, 280).gives({"q": 6_451_200, "k": 2_150_400, "v": 2_150_400, "o": 6_451_200}),
        given(ODD, 1).gives({"q": 23_040, "k": 7_680, "v": 7_680, "o": 23_040}),
        given(TOY, 5).gives({"q": 640, "k": 320, "v": 320, "o": 640}),
        given(CLASSIC, 7).gives({"q": 8_257_536, "k": 8_257_536, "v": 8_257_536, "o": 8_257_536}),
        given(W_MOE, 3).gives({"q": 704_643_072, "k": 704_643_072, "v": 704_643_072, "o": 704_643_072}),
        given(ODD, 0).refuses("NONPOS"),
    ),
    wrong=(
        Wrong("macs", _half("projections"), MACS),
        Wrong(
            "mha-for-gqa",
            _changed("projections", lambda r, *_: {"k": r["q"], "v": r["q"]}),
            "k and v are as wide as q here. With grouped queries they are d_kv wide: fewer heads are projected.",
        ),
        Wrong(
            "square-attention",
            lambda arch, rows: dict.fromkeys("qkvo", 2 * rows * arch.hidden_size**2),
            "Four square d x d matrices. Take the widths d_q and d_kv from the manifest.",
        ),
        Wrong(
            "d-for-d-q",
            _changed("projections", lambda r, arch, rows: dict.fromkeys("qo", 2 * rows * arch.hidden_size**2)),
            "q and o are d by d here. The packed query width H_q * d_h need not be d.",
        ),
        Wrong(
            "one-row",
            lambda arch, rows: dict(_right("projections", arch, 1)),
            "This is one row. Every new row meets the same matrices: multiply by rows.",
        ),
    ),
    shapes={"arch": DENSE, "rows": ROWS},
)


def _pairs(heads, queries=lambda w: w.new_rows, width=lambda a: a.head_dim, factor=2):
    """A wrong attention_products with its own idea of heads, query rows, width or factor."""

    def model(arch, workload, convention="rectangular"):
        right = _right("area", workload.new_rows, workload.visible_rows, convention)
        pairs = right * queries(workload) / workload.new_rows
        one = int(factor * workload.batch_size * heads(arch) * width(arch) * Fraction(pairs))
        return {"scores": one, "values": one}

    return model


def _exact(workload):
    return Fraction(workload.visible_rows)


attention = Exercise(
    "attention_products",
    points=4,
    minutes=12,
    lines=3,
    hints=(
        "One score is a dot product of length head_dim. How many scores has one block? Count sequences, heads, pairs.",
        "pairs = area(workload.new_rows, workload.visible_rows, convention), once for each sequence and each query head.",
        "int(2 * workload.batch_size * arch.num_attention_heads * arch.head_dim * pairs), and P V has as many.",
    ),
    cases=(
        given(RUNNING, TRAIN_4K).gives({"scores": 137_438_953_472, "values": 137_438_953_472}),
        given(RUNNING, TRAIN_4K, "causal-legal").gives({"scores": 68_736_253_952, "values": 68_736_253_952}),
        given(RUNNING, DECODE_32K).gives({"scores": 268_435_456, "values": 268_435_456}),
        given(ODD, TRAIN_ODD).gives({"scores": 3_763_200, "values": 3_763_200}),
        given(ODD, TRAIN_ODD, "causal-legal").gives({"scores": 1_915_200, "values": 1_915_200}),
        given(ODD, TRAIN_ODD, "kaplan").gives({"scores": 1_881_600, "values": 1_881_600}),
        given(ODD, CHUNK_ODD).gives({"scores": 63_840, "values": 63_840}),
        given(ODD, CHUNK_ODD, "causal-legal").gives({"scores": 53_760, "values": 53_760}),
        given(ODD, DECODE_ODD).gives({"scores": 23_760, "values": 23_760}),
        given(ODD, DECODE_ODD, "kaplan").refuses("INCONSISTENT"),
        given(ODD, TRAIN_ODD, "triangle").refuses("ENUM"),
    ),
    wrong=(
        Wrong(
            "kv-heads",
            _pairs(lambda arch: arch.num_key_value_heads),
            "You counted the K/V heads. Each query head has scores of its own, also where several share one K.",
        ),
        Wrong("macs", _pairs(lambda arch: arch.num_attention_heads, factor=1), MACS),
        Wrong(
            "hidden-for-heads",
            _pairs(lambda arch: 1, width=lambda arch: arch.hidden_size),
            "The width is hidden_size here. The heads together are H_q * d_h wide, which need not be d.",
        ),
        Wrong(
            "every-row-asks",
            _pairs(lambda arch: arch.num_attention_heads, queries=_exact),
            "Every visible row asks a question here. Only the new rows are queries; the older ones are keys and values.",
        ),
        Wrong(
            "one-sequence",
            lambda arch, workload, convention="rectangular": dict(
                _right("attention_products", arch, workload.replace(batch_size=1), convention)
            ),
            "This is one sequence. Each of the batch_size sequences has its own pairs.",
        ),
    ),
    shapes={"arch": EVERY, "workload": WORK, "convention": ("rectangular", "causal-legal")},
)

mlp = Exercise(
    "mlp_products",
    points=2,
    minutes=6,
    lines=2,
    hints=(
        "Each matrix joins d and the width, so all its products cost the same.",
        'Not gated (arch.mlp == "two-matrix"): the row gate is 0, not missing.',
        "one = napkin.matmul_flops(rows, arch.hidden_size, width).",
    ),
    cases=(
        given(RUNNING, 4096, 14336).gives({"gate": 481_036_337_152, "up": 481_036_337_152, "down": 481_036_337_152}),
        given(ODD, 280, 250).gives({"gate": 13_440_000, "up": 13_440_000, "down": 13_440_000}),
        given(ODD_EXPERTS, 280, 34).gives({"gate": 1_827_840, "up": 1_827_840, "down": 1_827_840}),
        given(ODD_EVERYTHING, 280, 250).gives({"gate": 0, "up": 13_440_000, "down": 13_440_000}),
        given(CLASSIC, 7, 3072).gives({"gate": 0, "up": 33_030_144, "down": 33_030_144}),
        given(RUNNING, 1, 2048).gives({"gate": 16_777_216, "up": 16_777_216, "down": 16_777_216}),
        given(ODD, 1, 0).refuses("NONPOS"),
    ),
    wrong=(
        Wrong("macs", _half("mlp_products"), MACS),
        Wrong(
            "gate-forgotten",
            _changed("mlp_products", lambda r, *_: {"gate": 0}),
            "A gated MLP has three matrices: the gate is a product too, not only a multiplication of elements.",
        ),
        Wrong(
            "three-always",
            _changed("mlp_products", lambda r, *_: {"gate": r["up"]}),
            "Three matrices, always. Read arch.mlp: the two-matrix MLP has no gate.",
        ),
        Wrong(
            "own-width",
            lambda arch, rows, width: dict(_right("mlp_products", arch, rows, arch.intermediate_size)),
            "You used arch.intermediate_size. The width is an argument: an expert has its own.",
        ),
        Wrong(
            "four-d",
            lambda arch, rows, width: dict(_right("mlp_products", arch, rows, 4 * arch.hidden_size)),
            "You took the width to be 4d, which is one model's choice and no law.",
        ),
    ),
    shapes={"arch": DENSE, "rows": ROWS, "width": (34, 250, 2048, 14336)},
)


def _routed(count):
    """A wrong expert_products that sends each row to that many routed experts."""

    def change(r, arch, rows):
        one = _right("mlp_products", arch, rows, arch.experts.intermediate_size)
        return {"routed": count(arch.experts) * sum(one.values())}

    return _changed("expert_products", change)


experts = Exercise(
    "expert_products",
    points=3,
    minutes=10,
    lines=7,
    hints=(
        "An expert is an MLP of experts.intermediate_size. What does one cost over all rows?",
        "Each row visits experts_per_token routed experts: whichever they are, rows * experts_per_token visits in all.",
        "router: napkin.matmul_flops(rows, d, num_experts). shared and routed: so many times mlp_products(...).total.",
    ),
    cases=(
        given(ODD_EXPERTS, 280).gives({"router": 376_320, "shared": 5_483_520, "routed": 10_967_040}),
        given(EXPERTS_WIDE, 14).gives({"router": 13_440, "shared": 983_808, "routed": 491_904}),
        given(W_MOE, 1).gives({"router": 3_670_016, "shared": 88_080_384, "routed": 704_643_072}),
        given(MIXTRAL, 1024).gives({"router": 67_108_864, "shared": 0, "routed": 721_554_505_728}),
        given(ODD, 280).refuses("MISSING"),
        given(RUNNING, 1).refuses("MISSING"),
    ),
    wrong=(
        Wrong(
            "all-experts",
            _routed(lambda e: e.num_experts),
            "Every expert works for every row. Stored are num_experts, used are experts_per_token.",
        ),
        Wrong(
            "one-expert",
            _routed(lambda e: 1),
            "One routed expert a row. The router picks experts_per_token of them.",
        ),
        Wrong(
            "no-router",
            _changed("expert_products", lambda r, *_: {"router": 0}),
            "The router is a product as well: every row with one column for every expert.",
        ),
        Wrong(
            "router-picks-first",
            _changed("expert_products", lambda r, arch, rows: {"router": 2 * rows * arch.hidden_size * arch.experts.experts_per_token}),
            "The router has to score every expert before it can pick.",
        ),
        Wrong(
            "shared-among-the-active",
            _routed(lambda e: e.experts_per_token - min(e.shared_experts, e.experts_per_token)),
            "Shared experts come on top of the experts_per_token routed ones.",
        ),
        Wrong("macs", _half("expert_products"), MACS),
    ),
    shapes={"arch": (*SPARSE, ODD), "rows": ROWS},
)

head = Exercise(
    "logits",
    points=3,
    minutes=8,
    lines=2,
    hints=(
        "The head is one product, [rows, d] by [d, V]. The question is only: how many rows?",
        'workload.logits == "all": batch_size * new_rows. "final": one row for each sequence.',
        "napkin.matmul_flops(rows, arch.hidden_size, arch.vocab_size), tied or not.",
    ),
    cases=(
        given(RUNNING, TRAIN_4K).gives(4_303_557_230_592),
        given(RUNNING, PREFILL_4K).gives(1_050_673_152),
        given(RUNNING, DECODE_32K).gives(1_050_673_152),
        given(TIED, PREFILL_4K).gives(1_050_673_152),
        given(ODD, TRAIN_ODD).gives(54_243_840),
        given(ODD, CHUNK_ODD).gives(387_456),
        given(ODD_EVERYTHING, DECODE_ODD).gives(581_184),
        given(ODD, CHUNK_ODD.replace(logits="all")).gives(2_712_192),
    ),
    wrong=(
        Wrong(
            "all-rows",
            lambda arch, workload: _right("logits", arch, workload.replace(logits="all")),
            'Every new row is projected here. logits = "final" asks for one row a sequence.',
        ),
        Wrong(
            "tied-free",
            lambda arch, workload: 0 if arch.tie_word_embeddings else _right("logits", arch, workload),
            "A tied head is stored with the embedding, not computed by it: the product is executed all the same.",
        ),
        Wrong(
            "one-row",
            lambda arch, workload: _right(
                "logits", arch, workload if workload.logits == "all" else workload.replace(batch_size=1)
            ),
            "One row in all. Each of the batch_size sequences has a final row.",
        ),
        Wrong(
            "lookup-as-product",
            lambda arch, workload: _right("logits", arch, workload)
            + 2 * workload.batch_size * workload.new_rows * arch.hidden_size * arch.vocab_size,
            "The lookup in the embedding is charged like a product. It picks rows: 0 FLOPs.",
        ),
        Wrong("macs", lambda arch, workload: _right("logits", arch, workload) // 2, MACS),
    ),
    shapes={"arch": EVERY, "workload": WORK},
)

PRODUCTS = (
    "blocks.q",
    "blocks.k",
    "blocks.v",
    "blocks.scores",
    "blocks.values",
    "blocks.o",
    "blocks.gate",
    "blocks.up",
    "blocks.down",
    "blocks.router",
    "blocks.shared",
    "blocks.routed",
    "head",
)


def _rows(q, kv, pairs, gate, up, experts, head):
    router, shared, routed = experts
    values = (q, kv, kv, pairs, pairs, q, gate, up, up, router, shared, routed, head)
    return dict(zip(PRODUCTS, values, strict=True))


def _as_cached(r, arch, workload, *_):
    rows = workload.batch_size * workload.visible_rows
    again = arch.num_layers * 2 * rows * arch.hidden_size * arch.d_kv
    return {"blocks.k": again, "blocks.v": again}


def _dense_everywhere(r, arch, *_):
    dense = arch.num_layers - arch.expert_layers
    return {name: r[name] * arch.num_layers // dense for name in ("blocks.gate", "blocks.up", "blocks.down") if dense}


everything = Exercise(
    "products",
    points=5,
    minutes=20,
    lines=10,
    hints=(
        "rows = workload.batch_size * workload.new_rows goes into projections, mlp_products and expert_products.",
        "All num_layers blocks have projections and attention; num_layers - expert_layers have the MLP, expert_layers the experts.",
        "Call expert_products only where arch.experts is not None; otherwise its three rows are 0. The head stands once.",
    ),
    cases=(
        given(RUNNING, TRAIN_4K).gives(
            _rows(4_398_046_511_104, 1_099_511_627_776, 4_398_046_511_104, 15_393_162_788_864, 15_393_162_788_864,
                  (0, 0, 0), 4_303_557_230_592)
        ),
        given(RUNNING, PREFILL_4K).gives(
            _rows(4_398_046_511_104, 1_099_511_627_776, 4_398_046_511_104, 15_393_162_788_864, 15_393_162_788_864,
                  (0, 0, 0), 1_050_673_152)
        ),
        given(RUNNING, DECODE_32K).gives(
            _rows(1_073_741_824, 268_435_456, 8_589_934_592, 3_758_096_384, 3_758_096_384, (0, 0, 0), 1_050_673_152)
        ),
        given(ODD, TRAIN_ODD).gives(
            _rows(19_353_600, 6_451_200, 11_289_600, 40_320_000, 40_320_000, (0, 0, 0), 54_243_840)
        ),
        given(ODD, TRAIN_ODD, "causal-legal").gives(
            _rows(19_353_600, 6_451_200, 5_745_600, 40_320_000, 40_320_000, (0, 0, 0), 54_243_840)
        ),
        given(ODD_EVERYTHING, TRAIN_ODD, "kaplan").gives(
            _rows(19_353_600, 6_451_200, 5_644_800, 0, 40_320_000, (0, 0, 0), 54_243_840)
        ),
        given(ODD, CHUNK_ODD).gives(_rows(967_680, 322_560, 191_520, 2_016_000, 2_016_000, (0, 0, 0), 387_456)),
        given(ODD_EVERYTHING, DECODE_ODD).gives(_rows(207_360, 69_120, 71_280, 0, 432_000, (0, 0, 0), 581_184)),
        given(ODD_EXPERTS, TRAIN_ODD).gives(
            _rows(19_353_600, 6_451_200, 11_289_600, 13_440_000, 13_440_000, (752_640, 10_967_040, 21_934_080), 54_243_840)
        ),
        given(ODD_EXPERTS, CHUNK_ODD).gives(
            _rows(967_680, 322_560, 191_520, 672_000, 672_000, (37_632, 548_352, 1_096_704), 387_456)
        ),
        given(ODD, CHUNK_ODD, "kaplan").refuses("INCONSISTENT"),
    ),
    wrong=(
        Wrong(
            "one-block",
            _changed(
                "products",
                lambda r, arch, *_: {
                    name: flops
                    // (
                        arch.expert_layers or 1
                        if name in PRODUCTS[9:12]
                        else arch.num_layers - arch.expert_layers or 1
                        if name in PRODUCTS[6:9]
                        else arch.num_layers
                    )
                    for name, flops in r.items()
                    if name != "head"
                },
            ),
            "The block rows are those of one block. Multiply by the layers that have it.",
        ),
        Wrong(
            "with-backward",
            _changed("products", lambda r, *_: {name: 3 * flops for name, flops in r.items()}),
            "Three times forward is a training step, and only under conditions. This ledger is the forward call alone.",
        ),
        Wrong(
            "cache-projected-again",
            _changed("products", _as_cached),
            "k and v are projected for every visible row. Older rows lie in the cache: only new rows are projected.",
        ),
        Wrong(
            "area-ignored",
            lambda arch, workload, attention="rectangular": dict(_right("products", arch, workload, "rectangular")),
            "The argument `attention` changes nothing here. Pass it on to attention_products.",
        ),
        Wrong(
            "mlp-beside-experts",
            _changed("products", _dense_everywhere),
            "Blocks with experts have no dense MLP beside them: num_layers - expert_layers blocks have one.",
        ),
        Wrong(
            "head-per-layer",
            _changed("products", lambda r, arch, *_: {"head": arch.num_layers * r["head"]}),
            "The head stands once, after the last block.",
        ),
    ),
    shapes={"arch": EVERY, "workload": WORK, "attention": ("rectangular", "causal-legal")},
)

FAMILIES = ("norm", "rope", "scale", "mask", "softmax", "activation", "residual", "dropout", "loss")


def _families(norm, rope, scores, activation, residual, loss):
    return dict(zip(FAMILIES, (norm, rope, scores, scores, scores, activation, residual, 0, loss), strict=True))


primitive = Exercise(
    "primitives",
    points=4,
    minutes=25,
    lines=15,
    hints=(
        "Write down R, the new rows of all sequences, and the number of scores: layers * sequences * query heads * new rows * visible rows.",
        "norm: R * ((layers * norms_per_block + final_norm) * d), and with a qk_norm R * layers * (d_q + d_kv) more. rope: that same product, without one.",
        "activation: a row meets intermediate_size in a dense block, (shared + experts_per_token) * expert width in one with experts. loss: logit rows * vocab_size, in training only.",
    ),
    cases=(
        given(RUNNING, TRAIN_4K).gives(
            _families(1_090_519_040, 671_088_640, 17_179_869_184, 1_879_048_192, 1_073_741_824, 525_336_576)
        ),
        given(RUNNING, DECODE_32K).gives(_families(266_240, 163_840, 33_554_432, 458_752, 262_144, 0)),
        given(ODD, TRAIN_ODD).gives(_families(188_160, 134_400, 282_240, 210_000, 161_280, 282_520)),
        given(ODD_EVERYTHING, TRAIN_ODD).gives(_families(322_560, 0, 282_240, 210_000, 161_280, 282_520)),
        given(ODD_PACKED, DECODE_ODD).gives(_families(4_896, 1_440, 1_782, 2_250, 1_728, 0)),
        given(ODD_EXPERTS, CHUNK_ODD).gives(_families(9_408, 6_720, 4_788, 6_356, 8_064, 0)),
        given(CLASSIC, PREFILL_4K).gives(_families(75_497_472, 0, 2_415_919_104, 150_994_944, 75_497_472, 0)),
    ),
    wrong=(
        Wrong(
            "nothing-but-products",
            _changed("primitives", lambda r, *_: dict.fromkeys(FAMILIES, 0)),
            "All zero. A profiler that has no formula for softmax prints 0 for it; the work is done all the same.",
        ),
        Wrong(
            "kv-head-scores",
            _changed(
                "primitives",
                lambda r, arch, *_: {
                    name: r[name] * arch.num_key_value_heads // arch.num_attention_heads
                    for name in ("scale", "mask", "softmax")
                },
            ),
            "Scores are counted for K/V heads. There is one for every query head.",
        ),
        Wrong(
            "queries-only",
            _changed(
                "primitives", lambda r, arch, *_: {"rope": r["rope"] * arch.d_q // (arch.d_q + arch.d_kv)}
            ),
            "The new keys are rotated too, before they go into the cache.",
        ),
        Wrong(
            "always-rotated",
            _changed(
                "primitives",
                lambda r, arch, w: {"rope": w.batch_size * w.new_rows * arch.num_layers * (arch.d_q + arch.d_kv)},
            ),
            'Only position = "rope" rotates anything. A learned or sinusoidal table is added once, to the embedding.',
        ),
        Wrong(
            "loss-when-serving",
            _changed("primitives", lambda r, arch, w: {"loss": _right("logits", arch, w) // (2 * arch.hidden_size)}),
            "Nothing is lost when serving: logits are computed, a loss is not.",
        ),
        Wrong(
            "qk-norm-forgotten",
            _changed(
                "primitives",
                lambda r, arch, w: {
                    "norm": w.batch_size
                    * w.new_rows
                    * (arch.num_layers * arch.norms_per_block + arch.final_norm)
                    * arch.hidden_size
                },
            ),
            "qk_norm normalizes every query and key head as well: d_q + d_kv elements a row and block.",
        ),
    ),
    shapes={"arch": EVERY, "workload": WORK},
)

a16 = Exercise(
    "a16_block",
    points=1,
    minutes=4,
    lines=1,
    hints=(
        "8 BSh^2 for the four projections, 16 BSh^2 for the two matrices of 4h, and the two products over pairs.",
        "24 * B * S * h**2 + 4 * B * S**2 * h.",
    ),
    cases=(
        given(1, 4096, 4096).gives(1_924_145_348_608),
        given(2, 3, 5).gives(3_960),
        given(1, 1, 1).gives(28),
        given(5, 56, 96).gives(67_952_640),
        given(1, 1024, 12288).gives(3_762_391_351_296),
        given(1, 4096.0, 4096).refuses("TYPE"),
        given(0, 3, 5).refuses("NONPOS"),
    ),
    wrong=(
        Wrong("macs", lambda B, S, h: _right("a16_block", B, S, h) // 2, MACS),
        Wrong(
            "running-coefficients",
            lambda B, S, h: 26 * B * S * h**2 + 4 * B * S**2 * h,
            "26 belongs to the running block: 5 for grouped projections, 21 for a gated MLP of 3.5d.",
        ),
        Wrong(
            "pairs-forgotten",
            lambda B, S, h: 24 * B * S * h**2,
            "Only the matrices are here. Q K^T and P V add 4BS^2h.",
        ),
        Wrong(
            "batch-attends-to-batch",
            lambda B, S, h: 24 * B * S * h**2 + 4 * (B * S) ** 2 * h,
            "BS is squared here: sequences do not attend to each other. B stands once, S twice.",
        ),
    ),
    shapes={"B": (1, 2, 5), "S": (56, 1024, 4096), "h": (96, 768, 12288)},
)

coefficient = Exercise(
    "coefficients",
    points=3,
    minutes=10,
    lines=5,
    hints=(
        "A matrix of P scalars does 2P FLOPs for every row. What is that in units of d^2?",
        "params.attention_weights(arch) and params.mlp_weights(arch, arch.intermediate_size) hold the scalars of one block.",
        "Fraction(2 * scalars, d**2) twice, and Fraction(4 * arch.d_q, d) for the pairs.",
    ),
    cases=(
        given(CLASSIC).gives({"projections": Fraction(8), "mlp": Fraction(16), "pairs": Fraction(4)}),
        given(RUNNING).gives({"projections": Fraction(5), "mlp": Fraction(21), "pairs": Fraction(4)}),
        given(TOY).gives({"projections": Fraction(6), "mlp": Fraction(9), "pairs": Fraction(4)}),
        given(ODD).gives({"projections": Fraction(20, 3), "mlp": Fraction(125, 8), "pairs": Fraction(5)}),
        given(ODD_EVERYTHING).gives({"projections": Fraction(20, 3), "mlp": Fraction(125, 12), "pairs": Fraction(5)}),
        given(W_70B).gives({"projections": Fraction(9, 2), "mlp": Fraction(21), "pairs": Fraction(4)}),
    ),
    wrong=(
        Wrong(
            "macs", _changed("coefficients", lambda r, *_: {name: value / 2 for name, value in r.items()}), MACS
        ),
        Wrong(
            "classic-always",
            lambda arch: {"projections": Fraction(8), "mlp": Fraction(16), "pairs": Fraction(4)},
            "8, 16 and 4 are those of the classic block. A coefficient is a property of a manifest.",
        ),
        Wrong(
            "pairs-of-four",
            _changed("coefficients", lambda r, *_: {"pairs": Fraction(4)}),
            "4 holds where d_q = d. The heads of this manifest are H_q * d_h wide.",
        ),
        Wrong(
            "rounded-down",
            _changed("coefficients", lambda r, *_: {name: Fraction(int(value)) for name, value in r.items()}),
            "The coefficients are cut to whole numbers. Fraction(a, b) keeps 20/3.",
        ),
        Wrong(
            "mha-for-gqa",
            _changed("coefficients", lambda r, arch: {"projections": Fraction(8 * arch.d_q, arch.hidden_size)}),
            "k and v are taken as wide as q. GQA saves exactly there.",
        ),
    ),
    shapes={"arch": DENSE},
)


def _times_three(fault):
    from costlib import forward, napkin

    one = forward.projections(RUNNING, 4096)["q"]
    frozen = one + napkin.linear_backward(4096, RUNNING.hidden_size, RUNNING.d_q)["dX"]
    claim = 3 * one if fault else frozen
    if claim == frozen:
        return ""
    return (
        f"q_proj with frozen weights is said to take {fixed(claim)} FLOP a step, 3 times forward; "
        f"without dW it is {fixed(frozen)}"
    )


def _flops_as_latency(fault):
    from costlib import forward, params

    h100 = chip("H100")
    arithmetic = Fraction(forward.ledger(RUNNING, DECODE_32K).total, h100.peak_flops)
    weights = Fraction(2 * params.ledger(RUNNING).total, h100.bytes_per_second)
    claim = arithmetic if fault else max(arithmetic, weights)
    if claim >= weights:
        return ""
    return (
        f"one decode row is said to take {fixed(claim * 10**6)} us, FLOPs over peak; "
        f"reading its bf16 weights once takes {fixed(weights * 10**6)} us"
    )


FAILURES = (
    Failure(
        "multiply-accumulates published as FLOPs",
        "a number of operations says what it counts; an FMA is 2 FLOPs",
        wrong=("projections", "macs"),
    ),
    Failure(
        "four square projections for grouped queries",
        "the widths of k and v follow from the number of K/V heads",
        wrong=("projections", "mha-for-gqa"),
    ),
    Failure(
        "K/V heads in the score path",
        "every query head has scores and values of its own",
        wrong=("attention_products", "kv-heads"),
    ),
    Failure(
        "every causal attention halved",
        "legal pairs, scheduled tiles and issued work are different ledgers, and none is exactly half",
        wrong=("area", "half-always"),
    ),
    Failure(
        "every prompt row projected to logits",
        "the rows of the head come from the declared output policy",
        wrong=("logits", "all-rows"),
    ),
    Failure(
        "a tied head taken for free",
        "tying shares storage; the product is executed all the same",
        wrong=("logits", "tied-free"),
    ),
    Failure(
        "softmax and norms left out because the profiler prints 0",
        "what is no product is listed by extent, without a made-up price",
        wrong=("primitives", "nothing-but-products"),
    ),
    Failure(
        "training as three times this ledger, without a reason",
        "backward and replay have ledgers of their own",
        check=_times_three,
    ),
    Failure(
        "FLOPs over peak read as the time of a call",
        "arithmetic bounds time from below, and so does traffic; neither is a measurement",
        check=_flops_as_latency,
    ),
)

LAB = Lab(
    "06",
    "Forward FLOPs",
    "forward",
    (
        counts,
        area,
        window,
        ragged,
        projections,
        attention,
        mlp,
        experts,
        head,
        everything,
        primitive,
        a16,
        coefficient,
    ),
    FAILURES,
)
