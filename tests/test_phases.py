"""Phases and caches against calls that are made one by one, and the public reports about caches."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, strategies as st

from costlib import napkin, phases, traffic
from costlib.domain import ManifestError
from costlib.exercise import using
from costlib.fixtures import DECODE_32K, ODD, PREFILL_4K, RUNNING, TOY, TRAIN_4K, TRAIN_ODD, W_7B, W_70B
from costlib.hardware import CHIPS, chip
from costlib.records import Workload
from costlib.units import fixed
from labs import spec

MIB = 2**20
PRE = 70 * 10**9
RIDGE = Fraction(990 * 10**12, 3350 * 10**9)  # of the H100, FLOP/B
ARCHS = st.sampled_from([RUNNING, TOY, ODD, W_7B, W_70B])
DTYPES = st.sampled_from(["bf16", "fp32", "fp8", "int4"])
small = st.integers(0, 200)


@pytest.fixture(autouse=True)
def on_the_reference():
    with using("solutions"):
        yield


def wrong(exercise, name):
    return next(w.model for w in spec.load("10")[exercise].wrong if w.name == name)


def model(layers, d, heads, kv_heads, head_dim):
    return RUNNING.replace(
        num_layers=layers, hidden_size=d, num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=head_dim
    )


class Cache:
    """A cache that is filled value by value: two bytes each, one list for each layer."""

    def __init__(self, arch):
        self.arch, self.layers = arch, [[] for _ in range(arch.num_layers)]

    def append(self, rows):
        for layer in self.layers:
            for _ in product(range(rows), "KV", range(self.arch.num_key_value_heads), range(self.arch.head_dim)):
                layer.append(b"xx")

    def __len__(self):
        return sum(len(value) for layer in self.layers for value in layer)


@pytest.mark.parametrize("arch", [TOY, ODD])
def test_a_cache_holds_what_the_calls_have_kept(arch):
    cache, visible = Cache(arch), 0
    for phase, new in (("prefill", 5), ("prefill-chunk", 3), ("decode", 1), ("decode", 1)):
        visible += new
        call = Workload(
            workload_id="x", phase=phase, batch_size=1, new_rows=new, visible_rows=visible, logits="final"
        )
        record = phases.phase_record(call)
        assert len(cache) == phases.cache_bytes(arch, 1, record["history_rows"])
        cache.append(record["kept_rows"])
        assert len(cache) == phases.cache_bytes(arch, 1, visible)


def test_training_and_a_prompt_share_a_rectangle_and_leave_different_things_behind():
    training, prompt = phases.phase_record(TRAIN_4K), phases.phase_record(PREFILL_4K)
    assert {name for name in training if training[name] != prompt[name]} == {
        "kept_rows",
        "retains_for_backward",
        "logit_rows",
    }


def test_a_prompt_that_sees_more_than_itself_is_a_chunk():
    with pytest.raises(ManifestError, match="prefill-chunk"):
        PREFILL_4K.replace(visible_rows=8192)
    chunk = PREFILL_4K.replace(phase="prefill-chunk", visible_rows=8192)
    assert phases.phase_record(chunk)["history_rows"] == 4096


@pytest.mark.parametrize("prompt, tokens", [(1, 1), (4, 3), (7, 5), (30, 1), (2, 40)])
def test_rows_are_projected_by_the_calls_that_generation_makes(prompt, tokens):
    seen, made, kept, again = prompt, 0, prompt, 0
    while made < tokens:
        again += seen  # without a cache this call projects everything so far
        made, seen = made + 1, seen + 1
        kept += made < tokens  # with one, only the token that is fed back
    assert phases.projected_rows(prompt, tokens, True) == kept
    assert phases.projected_rows(prompt, tokens, False) == again


def test_recomputing_is_linear_in_a_step_and_quadratic_in_a_generation():
    step = [phases.projected_rows(100, t + 1, False) - phases.projected_rows(100, t, False) for t in (1, 101, 201)]
    assert step == [101, 201, 301]
    whole = [phases.projected_rows(1, t, False) for t in (100, 200, 400)]
    assert whole == [5_050, 20_100, 80_200]


@given(ARCHS, st.integers(0, 9), small, DTYPES)
def test_a_cache_is_linear_in_everything(arch, batch, rows, dtype):
    one = phases.cache_bytes(arch, 1, 1, dtype)
    assert phases.cache_bytes(arch, batch, rows, dtype) == batch * rows * one
    assert phases.cache_bytes(arch.replace(num_layers=7 * arch.num_layers), batch, rows, dtype) == 7 * batch * rows * one
    assert phases.cache_bytes(arch, 1, rows) == napkin.kv_cache_bytes(
        arch.num_layers, arch.num_key_value_heads, arch.head_dim, rows, 1
    )


@given(st.integers(1, 3), st.integers(0, 60), st.integers(1, 40), st.integers(0, 3))
def test_a_window_keeps_the_last_rows_only(batch, rows, window, windowed):
    kept = {"global": 0, "windowed": 0}
    for layer in range(ODD.num_layers):
        held = []
        for row in range(rows):
            held = [*held, row][-window:] if layer < windowed else [*held, row]
        kept["windowed" if layer < windowed else "global"] += batch * len(held) * 2 * 40 * 2
    found = phases.window_cache_bytes(ODD, batch, rows, window, windowed)
    assert dict(found) == kept
    assert found.total <= phases.cache_bytes(ODD, batch, rows)


@given(st.integers(1, 3), st.integers(0, 9), st.integers(1, 25), st.sampled_from([("int8", 8), ("int4", 4)]))
def test_a_scale_stands_for_every_group_that_begins_in_a_head(batch, rows, group, code):
    codes, metadata = 0, 0
    for _ in product(range(batch), range(rows), range(TOY.num_layers), "KV", range(TOY.num_key_value_heads)):
        codes += TOY.head_dim * code[1]
        metadata += 16 * len(range(0, TOY.head_dim, group))
    found = phases.quantized_cache_bytes(TOY, batch, rows, code[0], group)
    assert dict(found) == {"codes": codes // 8, "metadata": metadata // 8}


@given(st.lists(st.integers(0, 50), max_size=6).map(tuple), st.integers(1, 20))
def test_pages_are_taken_one_by_one(lengths, page):
    taken = 0
    for length in lengths:
        for row in range(length):
            taken += row % page == 0
    found = phases.paged_bytes(ODD, lengths, page)
    assert found.total == taken * page * 480
    assert found["logical"] == sum(lengths) * 480
    assert found["unused"] <= len(lengths) * (page - 1) * 480


@given(
    st.integers(1, 9), st.integers(1, 8), st.integers(1, 8), st.integers(1, 50), st.integers(1, 50), st.integers(1, 9)
)
def test_context_batch_and_width_cancel_from_the_ratio_and_from_nothing_else(B, group, hkv, sq, sk, dh):
    one = phases.rectangular_attention(B, group * hkv, hkv, sq, sk, dh)
    two = phases.rectangular_attention(B, group * hkv, hkv, sq, 2 * sk, dh)
    assert one["intensity"] == two["intensity"] == sq * group
    assert [two["flops"], two["kv_bytes"]] == [2 * one["flops"], 2 * one["kv_bytes"]]


def test_a_rectangle_counted_by_a_loop():
    B, hq, hkv, sq, sk, dh = 2, 6, 2, 3, 5, 4
    flops = sum(2 * 2 for _ in product(range(B), range(hq), range(sq), range(sk), range(dh)))
    read = sum(2 for _ in product(range(B), "KV", range(hkv), range(sk), range(dh)))
    found = phases.rectangular_attention(B, hq, hkv, sq, sk, dh)
    assert found == {"flops": flops, "kv_bytes": read, "intensity": Fraction(flops, read)}


@pytest.mark.parametrize("arch, workload", [(RUNNING, DECODE_32K), (ODD, TRAIN_ODD)])
def test_one_pass_of_keys_is_the_online_schedule_s(arch, workload):
    moved = traffic.payload(traffic.online_attention(arch, workload))
    B, sq, sk = workload.batch_size, workload.new_rows, workload.visible_rows
    one = phases.rectangular_attention(B, arch.num_attention_heads, arch.num_key_value_heads, sq, sk, arch.head_dim)
    assert one["kv_bytes"] == moved["K"] + moved["V"]
    assert arch.num_layers * one["kv_bytes"] == phases.cache_bytes(arch, B, sk)


def test_the_warmup_guide_s_decode_table_and_what_it_leaves_out():
    cache = phases.cache_bytes(W_70B, 1, 8192)
    attention = 80 * phases.rectangular_attention(1, 64, 8, 1, 8192, 128)["flops"]
    assert (cache, attention) == (2_684_354_560, 21_474_836_480)
    shown = [fixed(phases.decode_intensity(PRE, cache, batch), 1) for batch in (1, 8, 64, 256)]
    assert shown == ["1.0", "6.9", "28.7", "43.3"]
    assert fixed(phases.decode_intensity(PRE, cache, 256, attention), 2) == "49.97"
    assert fixed(Fraction(2 * PRE, cache), 2) == "52.15"
    assert phases.decode_intensity(PRE, cache, 10**12) < Fraction(2 * PRE, cache) < RIDGE


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(1, 10**4), st.integers(0, 10**6))
def test_more_requests_never_lower_the_intensity_and_never_reach_the_limit(used, kv, batch, attention):
    one, two = (phases.decode_intensity(used, kv, n, attention) for n in (batch, batch + 1))
    assert one < two
    assert kv == 0 or two < Fraction(2 * used + attention, kv)


@given(st.integers(1, 10**4), st.integers(0, 500), st.fractions(Fraction(1, 10), 400, max_denominator=50))
def test_the_crossing_batch_is_the_first_that_crosses(used, kv, ridge):
    batch = phases.ridge_batch(used, kv, ridge)
    if batch:
        assert phases.decode_intensity(used, kv, batch) >= ridge
        assert batch == 1 or phases.decode_intensity(used, kv, batch - 1) < ridge
    else:
        assert kv and Fraction(2 * used, kv) <= ridge


@given(st.integers(1, 10**6), st.integers(1, 500), st.fractions(Fraction(1, 10), 400, max_denominator=50))
def test_the_longest_context_crosses_and_the_next_does_not(used, per_row, ridge):
    longest = phases.ridge_context(used, per_row, ridge)
    assert phases.ridge_batch(used, longest * per_row, ridge) > 0
    assert phases.ridge_batch(used, (longest + 1) * per_row, ridge) == 0


def test_decode_is_not_memory_bound_at_every_batch():
    row = phases.cache_bytes(W_70B, 1, 1)
    assert (row, phases.ridge_context(PRE, row, RIDGE)) == (327_680, 1_445)
    assert phases.ridge_batch(PRE, 512 * row, RIDGE) == 458
    assert phases.ridge_batch(PRE, 8192 * row, RIDGE) == 0
    (fits,) = phases.batch_capacity(W_70B, (512,), 640 * 10**9, 2 * PRE, 10**10)
    assert fits > 458  # inside what the chapter's own node can hold


def test_the_last_row_of_the_decode_table_does_not_fit_its_node():
    assert phases.batch_capacity(W_70B, (8192,), 640 * 10**9, 2 * PRE, 10**10) == (182,)
    assert phases.cache_bytes(W_70B, 256, 8192) == 640 * 2**30 > 640 * 10**9


def test_eight_times_the_heads_is_no_eightfold_throughput():
    wide = W_70B.replace(num_key_value_heads=64)
    many, few = (phases.batch_capacity(a, (8192,), 640 * 10**9, 2 * PRE, 10**10)[0] for a in (W_70B, wide))
    assert Fraction(phases.cache_bytes(wide, 1, 8192), phases.cache_bytes(W_70B, 1, 8192)) == 8
    assert (many, few) == (182, 22) and Fraction(many, few) == Fraction(91, 11)


def test_the_frontier_is_where_one_more_does_not_fit():
    memory, weights, workspace = 80 * 10**9, 16_060_522_496, 10**9
    lengths = (77, 4096, 32768)
    for length, fits in zip(lengths, phases.batch_capacity(RUNNING, lengths, memory, weights, workspace)):
        used = weights + workspace + phases.cache_bytes(RUNNING, fits, length)
        assert used <= memory < used + phases.cache_bytes(RUNNING, 1, length)


def test_a_one_row_call_is_judged_by_a_ridge():
    shared = phases.rectangular_attention(1, 128, 1, 1, 4096, 576, "fp8")["intensity"]
    assert shared == 256
    assert [name for name in CHIPS if shared > traffic.ridge(chip(name))] == ["A100-80", "TPU v5e", "TPU v5p"]


def test_b77_a_head_is_as_wide_as_it_is_declared():
    arch = model(36, 2560, 32, 8, 128)
    assert phases.cache_bytes(arch, 1, 1) == 147_456
    assert wrong("cache_bytes", "head-width-from-d")(arch, 1, 1) == 92_160


def test_b79_a_latent_is_not_a_set_of_heads():
    arch = model(61, 7168, 128, 128, 56)
    assert phases.latent_cache_bytes(arch, 1, 1, 512, 64).total == 2 * 35_136
    assert sum(wrong("latent_cache_bytes", "plain-formula")(arch, 1, 1, 512, 64).values()) == 2 * 874_496


def test_b81_a_latent_is_stored_once_and_its_scales_with_it():
    arch = model(61, 7168, 128, 128, 56)
    slot = phases.latent_cache_bytes(arch, 1, 1, 512, 64, "fp8", 4)
    assert slot.total == 61 * 656 == 40_016
    other = model(43, 7168, 128, 1, 512)
    assert wrong("latent_cache_bytes", "k-and-v")(other, 1, 1, 512, 1)["latent"] == 88_064
    assert phases.cache_bytes(other, 1, 1) == 88_064 == 2 * phases.latent_cache_bytes(other, 1, 1, 512, 0).total


def test_b82_windowed_layers_are_not_empty():
    arch = model(36, 2880, 64, 8, 64)
    assert phases.window_cache_bytes(arch, 1, 1, 128, 18).total == 73_728
    assert sum(wrong("window_cache_bytes", "windowed-left-out")(arch, 1, 1, 128, 18).values()) == 36_864


def test_b85_two_kinds_of_layers_have_two_caches():
    arch = model(34, 2560, 8, 4, 256)
    assert phases.window_cache_bytes(arch, 1, 131072, 1024 + 512, 29, "fp16").total == 2734 * MIB
    assert sum(wrong("window_cache_bytes", "global-overwritten")(arch, 1, 131072, 1536, 29, "fp16").values()) == 174 * MIB


def test_b86_the_element_size_is_declared():
    arch = model(60, 6656, 52, 52, 128)
    assert phases.cache_bytes(arch, 1, 512, "fp16") == 780 * MIB
    assert wrong("cache_bytes", "always-fp32")(arch, 1, 512, "fp16") == 1560 * MIB


def test_b88_a_quantized_cache_has_scales():
    arch = model(64, 8192, 64, 8, 128)
    for dtype, share in (("int8", Fraction(34, 64)), ("int4", Fraction(18, 64))):
        assert phases.quantized_cache_bytes(arch, 1, 32768, dtype, 32).total == share * phases.cache_bytes(arch, 1, 32768)
    assert phases.quantized_cache_bytes(arch, 1, 32768, "int8", 32).total == 4352 * MIB
    assert sum(wrong("quantized_cache_bytes", "codes-only")(arch, 1, 32768, "int8", 32).values()) == 4096 * MIB


def test_b89_heads_are_not_as_wide_as_the_model():
    assert phases.cache_bytes(W_7B, 1, 1) == 524_288
    assert wrong("cache_bytes", "d-for-every-head")(W_7B, 1, 1, "int4") == 4_194_304


def test_b91_a_pipeline_stage_caches_its_own_layers():
    stage = RUNNING.replace(num_layers=8)
    assert phases.cache_bytes(stage, 1, 4096) == 134_217_728
    assert 4 * phases.cache_bytes(stage, 1, 4096) == phases.cache_bytes(RUNNING, 1, 4096) == 536_870_912


def test_b95_a_page_is_as_large_as_all_its_layers():
    arch = model(28, 2048, 16, 8, 128)
    assert phases.paged_bytes(arch, (16,), 16).total == 28 * sum(wrong("paged_bytes", "one-layer")(arch, (16,), 16).values())


def test_gb_and_gib_stand_for_two_numbers_of_one_node():
    assert phases.cache_bytes(W_70B.replace(num_key_value_heads=64), 32, 8192) == 640 * 2**30 == 687_194_767_360


@pytest.mark.parametrize(
    "call, code",
    [
        (lambda: phases.cache_bytes(RUNNING, 1, 4096.0), "TYPE"),
        (lambda: phases.cache_bytes(RUNNING, 1, -1), "NEG"),
        (lambda: phases.cache_bytes(RUNNING, 1, 1, "int3"), "ENUM"),
        (lambda: phases.window_cache_bytes(ODD, 1, 1, 1, 4), "RANGE"),
        (lambda: phases.window_cache_bytes(ODD, 1, 1, 0, 1), "NONPOS"),
        (lambda: phases.paged_bytes(ODD, (3, -1), 16), "NEG"),
        (lambda: phases.paged_bytes(ODD, [3], 16), "TYPE"),
        (lambda: phases.rectangular_attention(1, 6, 4, 1, 8, 20), "DIVIS"),
        (lambda: phases.decode_intensity(70e9, 1, 1), "TYPE"),
        (lambda: phases.ridge_batch(1, 1, 295.5), "TYPE"),
        (lambda: phases.batch_capacity(ODD, (0,), 1, 1), "NONPOS"),
    ],
)
def test_what_is_no_size_is_refused(call, code):
    with pytest.raises(ManifestError) as refusal:
        call()
    assert refusal.value.code == code
