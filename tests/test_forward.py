"""The forward ledger against counting, against itself cut in pieces, and against reports from the field."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costlib import forward, params
from costlib.domain import ManifestError
from costlib.exercise import using
from costlib.fixtures import (
    CLASSIC,
    DECODE_32K,
    ODD,
    ODD_EVERYTHING,
    ODD_EXPERTS,
    PREFILL_4K,
    RUNNING,
    TOY,
    TRAIN_4K,
    TRAIN_ODD,
    W_7B,
    W_70B,
    classic_block,
)
from costlib.ledger import UnitError
from costlib.records import Experts, Workload
from labs import spec

LAB = spec.load("06")
PAIRS = ("blocks.scores", "blocks.values")


@pytest.fixture(autouse=True, scope="module")
def on_the_reference():
    with using("solutions"):
        yield


def mistaken(exercise, name):
    """The named wrong model of an exercise."""
    return next(w.model for w in LAB[exercise].wrong if w.name == name)


def train(batch, rows, logits="all"):
    return Workload(
        workload_id=f"train-{batch}x{rows}", phase="training", batch_size=batch, new_rows=rows, visible_rows=rows,
        logits=logits,
    )


def prompt(batch, new, visible):
    """The last `new` rows of a prompt; a decode step where that is one."""
    phase = "decode" if new == 1 else "prefill" if new == visible else "prefill-chunk"
    return Workload(
        workload_id=f"{phase}-{batch}x{new}of{visible}", phase=phase, batch_size=batch, new_rows=new,
        visible_rows=visible, logits="final",
    )


SIZE = st.integers(1, 12)


@st.composite
def manifests(draw):
    """Small models whose widths have nothing to do with each other."""
    experts = None
    if draw(st.booleans()):
        routed = draw(st.integers(1, 5))
        experts = Experts(
            num_experts=routed,
            experts_per_token=draw(st.integers(1, routed)),
            intermediate_size=draw(SIZE),
            shared_experts=draw(st.integers(0, 2)),
            first_dense_layers=draw(st.integers(0, 1)),
        )
    kv_heads = draw(st.integers(1, 3))
    return TOY.replace(
        num_layers=draw(st.integers(2, 4)),
        hidden_size=draw(SIZE),
        num_key_value_heads=kv_heads,
        num_attention_heads=kv_heads * draw(st.integers(1, 4)),
        head_dim=draw(SIZE),
        intermediate_size=draw(SIZE),
        vocab_size=draw(SIZE),
        tie_word_embeddings=draw(st.booleans()),
        mlp=draw(st.sampled_from(["gated", "two-matrix"])),
        qk_norm=draw(st.sampled_from(["none", "per-head", "packed"])),
        experts=experts,
    )


@st.composite
def workloads(draw):
    batch, new, older = draw(st.integers(1, 3)), draw(st.integers(1, 9)), draw(st.integers(0, 9))
    return train(batch, new) if draw(st.booleans()) else prompt(batch, new, new + older)


# --- counting ---


class Count:
    """Does products number by number and keeps the operations of each under a name."""

    def __init__(self):
        self.flops = dict.fromkeys(LAB["products"].cases[0].expected, 0)

    def product(self, name, m, k, n):
        for _ in product(range(m), range(n), range(k)):
            self.flops[name] += 2


def run(arch, work, sees=lambda query, key: True):
    """One forward call of the model, product by product, pair by pair."""
    count, rows, d = Count(), work.batch_size * work.new_rows, arch.hidden_size
    older = work.visible_rows - work.new_rows

    def mlp(names, rows, width):
        for name, k, n in zip(names, (d, d, width), (width, width, d)):
            if arch.mlp == "gated" or "gate" not in name:
                count.product(f"blocks.{name.partition('-')[0]}", rows, k, n)

    for layer in range(arch.num_layers):
        for name, k, n in (("q", d, arch.d_q), ("k", d, arch.d_kv), ("v", d, arch.d_kv), ("o", arch.d_q, d)):
            count.product(f"blocks.{name}", rows, k, n)
        for _, _, query in product(range(work.batch_size), range(arch.num_attention_heads), range(work.new_rows)):
            for key in range(work.visible_rows):
                if sees(older + query, key):
                    count.product("blocks.scores", 1, arch.head_dim, 1)
                    count.product("blocks.values", 1, 1, arch.head_dim)
        if arch.experts and layer >= arch.experts.first_dense_layers:
            count.product("blocks.router", rows, d, arch.experts.num_experts)
            for row in range(rows):
                for _ in range(arch.experts.shared_experts):
                    mlp(("shared-gate", "shared-up", "shared-down"), 1, arch.experts.intermediate_size)
                for _ in range(arch.experts.experts_per_token):
                    mlp(("routed-gate", "routed-up", "routed-down"), 1, arch.experts.intermediate_size)
        else:
            mlp(("gate", "up", "down"), rows, arch.intermediate_size)
    logit_rows = rows if work.logits == "all" else work.batch_size
    count.product("head", logit_rows, d, arch.vocab_size)
    return count.flops


SMALL_MOE = TOY.replace(
    hidden_size=5,
    experts=Experts(num_experts=3, experts_per_token=2, intermediate_size=4, shared_experts=1, first_dense_layers=1),
)


@pytest.mark.parametrize("arch", [TOY, SMALL_MOE, TOY.replace(mlp="two-matrix", head_dim=3)], ids=["toy", "moe", "two"])
@pytest.mark.parametrize("work", [train(2, 4), prompt(2, 3, 5), prompt(3, 1, 6)], ids=["train", "chunk", "decode"])
def test_a_ledger_is_what_running_the_call_costs(arch, work):
    assert dict(forward.ledger(arch, work)) == run(arch, work)
    assert dict(forward.ledger(arch, work, "causal-legal")) == run(arch, work, lambda query, key: key <= query)


def test_the_tiny_model_of_the_reconciliation_chapter_costs_8960():
    assert forward.ledger(TOY.replace(tie_word_embeddings=True), prompt(1, 4, 4)).total == 8_960 == sum(
        run(TOY, prompt(1, 4, 4)).values()
    )


@pytest.mark.parametrize("S_q, older", list(product(range(1, 8), range(5))))
def test_areas_are_what_a_mask_lets_through(S_q, older):
    S_k = older + S_q
    mask = [(older + i, j) for i in range(S_q) for j in range(S_k)]
    legal = [(i, j) for i, j in mask if j <= i]
    assert forward.area(S_q, S_k, "rectangular") == len(mask)
    assert forward.area(S_q, S_k, "causal-legal") == len(legal)
    for window in range(1, S_k + 3):
        assert forward.window_area(S_q, S_k, window) == len([(i, j) for i, j in legal if i - j < window])


@given(st.lists(st.integers(1, 20), min_size=1, max_size=6).map(tuple))
def test_a_ragged_batch_is_its_sequences(lengths):
    squares = [[(i, j) for i in range(S) for j in range(S)] for S in lengths]
    assert forward.ragged_area(lengths) == {
        "legal": sum(j <= i for square in squares for i, j in square),
        "rectangles": sum(map(len, squares)),
        "padded": len(lengths) * max(map(len, squares)),
    }


@given(SIZE, SIZE, SIZE)
def test_counting_from_zero_saves_one_addition_an_output(m, k, n):
    counts = {"macs": 0, "from_zero": 0}
    for _ in product(range(m), range(n)):
        for term in range(k):
            counts["macs"] += 1
            counts["from_zero"] += 1 + (term > 0)
    assert forward.product_counts(m, k, n) == {**counts, "flops": 2 * counts["macs"]}


def test_primitives_are_what_a_walk_through_the_model_meets():
    arch, work = ODD_EXPERTS.replace(qk_norm="per-head", position="rope"), train(2, 5)
    rows, met = range(2 * 5), dict.fromkeys(LAB["primitives"].cases[0].expected, 0)
    for _, layer in product(rows, range(3)):
        met["norm"] += 96 + 96 + 6 * 20 + 2 * 20
        met["rope"] += 6 * 20 + 2 * 20
        met["residual"] += 96 + 96
        met["activation"] += 250 if layer < 1 else 34 + 34 + 34
        for _ in range(6 * 5):
            for family in ("scale", "mask", "softmax"):
                met[family] += 1
    for _ in rows:
        met["norm"] += 96
        met["loss"] += 1009
    assert forward.primitives(arch, work) == met


# --- properties ---


@given(manifests(), workloads())
def test_the_linear_part_is_two_flops_for_each_used_scalar_and_row(arch, work):
    ledger, n = forward.ledger(arch, work.replace(logits="all")), params.coordinates(arch)
    pairs = sum(ledger[name] for name in PAIRS)
    assert ledger.total - pairs == 2 * n["used"] * work.batch_size * work.new_rows
    assert ledger["blocks"] - pairs == 2 * n["kaplan"] * work.batch_size * work.new_rows


@given(manifests(), st.lists(st.integers(1, 5), min_size=1, max_size=5))
def test_a_prompt_costs_the_same_in_chunks(arch, chunks):
    whole, rows, parts = sum(chunks), 0, {}
    for new in chunks:
        rows += new
        for name, flops in forward.ledger(arch, prompt(2, new, rows), "causal-legal").items():
            parts[name] = parts.get(name, 0) + flops
    at_once = dict(forward.ledger(arch, prompt(2, whole, whole), "causal-legal"))
    assert parts.pop("head") == len(chunks) * at_once.pop("head")
    assert parts == at_once


@given(manifests(), workloads())
def test_two_batches_cost_twice_one(arch, work):
    double = work.replace(batch_size=2 * work.batch_size)
    assert forward.ledger(arch, double) == 2 * forward.ledger(arch, work)
    assert forward.primitives(arch, double) == {k: 2 * v for k, v in forward.primitives(arch, work).items()}


@given(manifests(), workloads())
def test_grouping_narrows_k_and_v_and_nothing_else(arch, work):
    mqa, gqa, mha = (
        forward.ledger(arch.replace(num_key_value_heads=heads), work)
        for heads in (1, arch.num_key_value_heads, arch.num_attention_heads)
    )
    assert mqa.total <= gqa.total <= mha.total
    assert all(mqa[name] == mha[name] for name in mqa if name not in ("blocks.k", "blocks.v"))


@given(manifests(), workloads())
def test_tying_changes_storage_only(arch, work):
    tied, untied = (arch.replace(tie_word_embeddings=tie) for tie in (True, False))
    assert forward.ledger(tied, work) == forward.ledger(untied, work)
    assert params.ledger(untied).total - params.ledger(tied).total == arch.vocab_size * arch.hidden_size


@given(SIZE, st.integers(0, 12), SIZE)
def test_areas_are_ordered(S_q, older, window):
    S_k = S_q + older
    legal, full = forward.area(S_q, S_k, "causal-legal"), forward.area(S_q, S_k, "rectangular")
    assert S_q <= forward.window_area(S_q, S_k, window) <= forward.window_area(S_q, S_k, window + 1) <= legal <= full
    assert forward.window_area(S_q, S_k, S_k) == legal
    assert Fraction(forward.area(S_q, S_q, "causal-legal"), S_q**2) == Fraction(S_q + 1, 2 * S_q)


@given(manifests(), st.integers(1, 9))
def test_every_area_gives_whole_flops_and_legal_is_half_plus_half_a_diagonal(arch, S):
    full, legal, kaplan = (
        sum(forward.ledger(arch, train(1, S), area)[name] for name in PAIRS)
        for area in ("rectangular", "causal-legal", "kaplan")
    )
    assert 2 * kaplan == full
    assert legal - kaplan == arch.num_layers * 2 * arch.d_q * S


# --- refusals ---


def code(function, *args):
    with pytest.raises(ManifestError) as refusal:
        function(*args)
    return refusal.value.code


def test_what_is_refused():
    assert code(forward.area, 3, 2, "causal-legal") == "INCONSISTENT"
    assert code(forward.area, 2, 3, "kaplan") == "INCONSISTENT"
    assert code(forward.area, 2.0, 3, "rectangular") == "TYPE"
    assert code(forward.ledger, RUNNING, DECODE_32K, "kaplan") == "INCONSISTENT"
    assert code(forward.ledger, RUNNING, TRAIN_4K, "half") == "ENUM"
    assert code(forward.ledger, RUNNING, "train") == "TYPE"
    assert code(forward.window_area, 4, 4, 0) == "NONPOS"
    assert code(forward.ragged_area, ()) == "MISSING"
    assert code(forward.ragged_area, (3, True)) == "TYPE"
    assert code(forward.expert_products, RUNNING, 1) == "MISSING"
    assert code(forward.product_counts, 1, 0, 1) == "NONPOS"


def test_ledgers_of_two_areas_refuse_to_be_added():
    with pytest.raises(UnitError, match="kaplan"):
        forward.ledger(ODD, TRAIN_ODD) + forward.ledger(ODD, TRAIN_ODD, "kaplan")
    with pytest.raises(UnitError, match="final"):
        forward.ledger(RUNNING, TRAIN_4K) + forward.ledger(RUNNING, PREFILL_4K)
    steps = forward.ledger(RUNNING, PREFILL_4K) + forward.ledger(RUNNING, DECODE_32K)
    assert steps.total == 65_971_748_339_712 + 32_189_186_048


# --- reports from the field ---


def test_b14_multiply_adds_and_no_attention():
    right = forward.ledger(RUNNING, TRAIN_4K)
    assert right.total == 70_274_254_897_152
    assert (right.total - sum(right[name] for name in PAIRS)) // 2 == 30_739_080_937_472
    assert forward.product_counts(1, 1000, 10) == {"macs": 10_000, "flops": 20_000, "from_zero": 19_990}
    assert mistaken("product_counts", "macs-as-flops")(1, 1000, 10)["flops"] == 10_000


@pytest.mark.parametrize("arch", [RUNNING, CLASSIC, ODD, ODD_EXPERTS, W_70B], ids=lambda arch: arch.manifest_id)
def test_b16_a_sequence_of_twice_the_length_costs_more_than_twice(arch):
    one, two = (forward.ledger(arch, train(1, rows)).total for rows in (8192, 16384))
    assert two > 2 * one


def test_b16_on_the_running_model():
    totals = [forward.ledger(RUNNING, train(1, rows)).total for rows in (8192, 16384)]
    assert totals == [158_140_695_838_720, 386_650_135_855_104]


@pytest.mark.parametrize(
    "arch, work, flops",
    [
        (classic_block(1, 768, 10, 12), train(1, 64), 12_582_912),  # B17: a fused operator without a formula said 0
        (classic_block(1, 20, 10, 5), train(2, 9), 12_960),  # B18: an operator and the one below it said 25,920
        (classic_block(1, 1024, 10, 16), train(64, 1024), 274_877_906_944),  # B35: a table said 66.6e9
    ],
    ids=["B17", "B18", "B35"],
)
def test_what_a_counter_should_have_said_of_attention(arch, work, flops):
    assert sum(forward.attention_products(arch, work).values()) == flops
    assert mistaken("attention_products", "macs")(arch, work)["scores"] * 4 == flops


def test_b20_and_b21_query_heads_own_the_pairs():
    right = sum(forward.attention_products(RUNNING, TRAIN_4K).values())
    wrong = sum(mistaken("attention_products", "kv-heads")(RUNNING, TRAIN_4K).values())
    assert (right, wrong) == (274_877_906_944, 68_719_476_736)
    eight_on_two = RUNNING.replace(num_attention_heads=8, num_key_value_heads=2, head_dim=64)
    work = train(1, 256)
    right = sum(forward.attention_products(eight_on_two, work).values())
    assert (right, sum(mistaken("attention_products", "kv-heads")(eight_on_two, work).values())) == (
        134_217_728,
        33_554_432,
    )


@pytest.mark.parametrize("arch", [ODD, ODD_EVERYTHING, ODD_EXPERTS, RUNNING, W_70B], ids=lambda arch: arch.manifest_id)
def test_b20_holds_for_every_grouping(arch):
    right = forward.attention_products(arch, TRAIN_ODD)
    wrong = mistaken("attention_products", "kv-heads")(arch, TRAIN_ODD)
    assert right["scores"] * arch.num_key_value_heads == wrong["scores"] * arch.num_attention_heads


def test_b22_three_areas_three_labels():
    work = train(4, 8192)
    totals = {area: 3 * forward.ledger(W_7B, work, area).total for area in ("rectangular", "kaplan", "causal-legal")}
    assert totals == {
        "rectangular": 1_721_216_733_806_592,
        "kaplan": 1_510_110_501_273_600,
        "causal-legal": 1_510_136_271_077_376,
    }


def test_b23_only_active_experts_work():
    mixtral = RUNNING.replace(
        vocab_size=32000, experts=Experts(num_experts=8, experts_per_token=2, intermediate_size=14336)
    )
    right = forward.ledger(mixtral, train(1, 1024))
    assert 3 * right.total == 79_976_586_018_816
    wrong = mistaken("expert_products", "all-experts")(mixtral, 1024)["routed"]
    assert 3 * (right.total + 32 * wrong - right["blocks.routed"]) == 287_784_283_668_480


def test_b24_heads_wider_than_the_model():
    arch = RUNNING.replace(
        num_layers=94,
        num_attention_heads=64,
        num_key_value_heads=4,
        vocab_size=151936,
        experts=Experts(num_experts=128, experts_per_token=8, intermediate_size=1536),
    )
    work = train(1, 196608)
    right = forward.ledger(arch, work, "kaplan")
    assert 3 * (right.total - right["blocks.router"]) == 203_979_954_075_992_064
    wrong = mistaken("attention_products", "hidden-for-heads")(arch, work, "kaplan")
    assert 2 * wrong["scores"] == forward.attention_products(arch, work, "kaplan")["scores"]


def test_b25_head_dim_is_declared_not_divided():
    arch = RUNNING.replace(num_layers=36, hidden_size=2560)
    right = sum(forward.attention_products(arch, TRAIN_4K).values())
    wrong = sum(mistaken("attention_products", "hidden-for-heads")(arch, TRAIN_4K).values())
    assert (3 * 36 * right // 4096, 3 * 36 * wrong // 4096) == (7_247_757_312, 4_529_848_320)


@pytest.mark.parametrize("layers, whole, windowed", [(36, 38_044_854_144, 34_534_221_696), (24, 26_481_681_792, 24_141_260_160)])
def test_b26_a_window_is_not_the_whole_context(layers, whole, windowed):
    T, window, per_pair = 4096, 128, 3 * 4 * 64 * 64  # forward and backward of 64 heads of 64
    saved = forward.area(T, T, "rectangular") - mistaken("window_area", "always-full")(T, T, window)
    assert layers // 2 * per_pair * saved == T * (whole - windowed)
    # That repository charges a full window to every row; the first ones do not have it.
    assert mistaken("window_area", "always-full")(T, T, window) - forward.window_area(T, T, window) == 127 * 128 // 2
    assert mistaken("window_area", "no-window")(T, T, window) == T * (T + 1) // 2


@pytest.mark.parametrize("tied", [True, False])
def test_b31_tying_is_no_flop(tied):
    arch = RUNNING.replace(vocab_size=151936, hidden_size=1024, tie_word_embeddings=tied)
    one_row = prompt(1, 1, 1)
    assert forward.logits(arch, one_row) == 311_164_928
    assert mistaken("logits", "lookup-as-product")(arch, one_row) == 622_329_856
    assert mistaken("logits", "tied-free")(arch, one_row) == (0 if tied else 311_164_928)


def test_b36_the_constant_for_one_context_token():
    arch = RUNNING.replace(num_layers=80, num_attention_heads=64)
    near, far = (sum(forward.attention_products(arch, prompt(1, 1, rows)).values()) for rows in (100, 101))
    assert far - near == 32_768
    assert 80 * (far - near) == 2_621_440


def test_w15_kaplan_charges_half_of_what_the_rectangle_does():
    for arch, T in ((RUNNING, 4096), (CLASSIC, 1024), (ODD, 56)):
        half = forward.ledger(arch, train(1, T), "kaplan")
        assert sum(half[name] for name in PAIRS) == T * 2 * arch.num_layers * T * arch.d_q


def test_w18_one_manifest_one_share():
    def share(arch):
        blocks = forward.ledger(arch, train(1, 8192))
        return Fraction(sum(blocks[name] for name in PAIRS), blocks["blocks"])

    assert round(1000 * share(W_70B.replace(num_key_value_heads=64))) == 121
    assert round(1000 * share(W_70B)) == 136
    pairs = 2 * 80 * 8192 * 8192
    assert round(1000 * Fraction(pairs, 70 * 10**9 + pairs)) == 133  # N typed as 70e9
