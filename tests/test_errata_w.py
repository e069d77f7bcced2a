"""The Warmup Guide's wrong numbers: the slip that gives what it prints, beside what costlib gives.

One test per erratum W-01 to W-33, named by what is wrong. Where no slip is known the test shows
that no reading of the document's own table gives the printed number.
"""

from decimal import Decimal
from fractions import Fraction
from itertools import count, product
from math import isqrt

import numpy as np
import pytest

from costlib import napkin, params
from costlib.exercise import using
from costlib.fixtures import CLASSIC, RUNNING, TRAP, W_7B, W_70B, W_MOE
from costlib.hardware import CHIPS
from costlib.policies import BITS
from costlib.units import GB, GIB, ceil_div, fixed
from labs import spec

H100, A100, V5E, V5P = CHIPS.values()
N = 70 * 10**9
BUDGET = 1_026_432 * 10**18  # 1000 H100, 30 days, 40 %
MHA_70B = W_70B.replace(num_key_value_heads=64)
TABLE = (2_048, 8_192, 32_768, 131_072, 1_048_576)  # Chapter 7's lengths


@pytest.fixture(autouse=True)
def on_the_reference():
    with using("solutions"):
        yield


def named(exercise, wrong, lab="01"):
    """The model of a mistake that a lab knows by name."""
    return next(w.model for w in spec.load(lab)[exercise].wrong if w.name == wrong)


def call(m):
    return (
        m.hidden_size, m.intermediate_size, m.num_attention_heads, m.num_key_value_heads, m.head_dim, m.num_layers,
        m.mlp == "gated",
    )


def step(m, T, B=1, vocab=0):
    return napkin.training_flops_exact(B, T, *call(m), vocab=vocab)


def pairwise(m, T):
    """Attention's sequence term of one trained token."""
    return Fraction(step(m, T)["attn_seq"], T)


def beside_6n(T, n_params=N, m=W_70B):
    return pairwise(m, T) / napkin.training_flops(n_params, 1)


def share(T, n_params=N, m=W_70B):
    return 100 * beside_6n(T, n_params, m) / (1 + beside_6n(T, n_params, m))


def kv(batch, tokens=8192, heads=8):
    return napkin.kv_cache_bytes(80, heads, 128, tokens, batch)


def decode(batch, tokens=8192, attention=False):
    """FLOP per byte of one decode step, 70B, weights read once."""
    scores = 2 * napkin.matmul_flops(1, 128, tokens, batch=80 * 64) if attention else 0
    return Fraction(batch * (2 * N + scores), napkin.training_memory(N)["weights"] + kv(batch, tokens))


def balance():
    return Fraction(H100.peak_flops, H100.bytes_per_second)


def plan():
    return napkin.budget_report(H100, 1000, 30)


def forward(n_params):
    return napkin.matmul_flops(1, n_params, 1)


def test_w01_the_stray_division_makes_the_sequence_term_64_times_too_small():
    printed_middle = 12 * 80 * 8192 * (128 * 64 // 64)
    assert pairwise(W_70B, 8192) == 64 * printed_middle == 12 * 80 * 8192 * 64 * 128


@pytest.mark.parametrize("m, ratio", [(W_MOE, Fraction(16, 7)), (W_70B, 1)])
def test_w02_the_model_width_stands_for_the_packed_heads_where_they_differ(m, ratio):
    right, slip = step(m, 56)["attn_seq"], named("training_flops_exact", "width-of-the-model")(1, 56, *call(m))["attn_seq"]
    assert Fraction(right, slip) == ratio


def test_w03_three_per_cent_is_cut_off_and_22_follows_from_no_reading_of_the_table():
    assert (int(100 * beside_6n(2_048)), fixed(100 * beside_6n(2_048), 1)) == (3, "3.8")
    extra = beside_6n(1_048_576)
    assert [fixed(x, 1) for x in (extra, 1 + extra)] == ["19.6", "20.6"]
    assert not any(round(x) == 22 for x in (extra, 1 + extra, share(1_048_576), 1 / (1 - share(1_048_576) / 100)))


def test_w04_91_per_cent_is_the_share_beside_a_block_of_12_d_squared():
    gated, two = TRAP[0], TRAP[0].replace(mlp="two-matrix")
    assert params.block(two).total - params.block(two)["norms"] == 12 * two.hidden_size**2
    tables = 2 * 256_000 * 512
    assert (params.ledger(gated).total, params.ledger(two).total) == (295_707_136, 287_318_528)
    assert [fixed(Fraction(100 * tables, params.ledger(m).total)) for m in (gated, two)] == ["89", "91"]


@pytest.mark.parametrize("m, printed, matched", [(TRAP[2], "10.69", "8.54"), (TRAP[3], "90.09", "68.62")])
def test_w05_a_gated_mlp_of_width_4d_makes_the_7b_10_69_and_the_70b_90_09(m, printed, matched):
    two = m.replace(mlp="two-matrix")  # as many weights as a gated MLP of width 8d / 3
    assert [params.block(x).total - params.block(x)["norms"] for x in (m, two)] == [k * m.hidden_size**2 for k in (16, 12)]
    assert [fixed(Fraction(params.ledger(x).total, 10**9), 2) for x in (m, two)] == [printed, matched]


def test_w06_six_and_a_half_n_replays_a_quarter_of_the_forward_not_the_core_of_attention():
    assert 6 + Fraction(1, 4) * forward(1) == Fraction("6.5")
    whole = step(RUNNING, 4096, vocab=128256)
    core = whole["attn_seq"] // 3
    assert (core, whole.total) == (8_796_093_022_208, 210_822_764_691_456)
    assert fixed(Fraction(100 * core, whole.total), 2) == "4.17"
    assert fixed(6 * (1 + Fraction(core, whole.total)), 2) == "6.25"
    gpt3 = napkin.training_flops_exact(1, 2048, 12288, 49152, 96, 96, 128, 96, gated=False, vocab=51200)
    assert fixed(Fraction(100 * gpt3["attn_seq"], 3 * gpt3.total), 2) == "0.90"


def test_w07_eight_over_six_is_not_palms_hardware_over_model():
    n_params, contraction = 540_350 * 10**6, napkin.matmul_flops(1, 256, 2048, batch=118 * 48)
    model = napkin.training_flops(n_params, 1) + 3 * 2 * contraction
    hardware = model + Fraction(3, 4) * forward(n_params) + 2 * contraction
    assert model == 3_277_734_806_784 and fixed(hardware / 10**12, 2) == "4.10"
    assert fixed(hardware / model, 3) == "1.251" != fixed(Fraction(8, 6), 3)


def test_w08_c_16_with_30_per_cent_discounts_the_quadratic_part_twice():
    bsh, layers = 8 * 8192 * 8192, 80
    linear, quadratic = 34, Fraction(5 * 64 * 8192, 8192)
    assert 16 * 2 * bsh * layers * 3 // 10 == 412_316_860_416  # what W prints as selective
    assert fixed(100 * Fraction(34, 34 + 5 * 96 * 2048 // 12288), 0) == "30"  # whose share that is: GPT-3
    assert [fixed(x * bsh * layers / GB) for x in (linear + quadratic, Fraction(linear))] == ["15,204", "1,460"]
    assert fixed(100 * linear / (linear + quadratic), 1) == "9.6" and (linear + quadratic) / 2 == 177


def test_w09_every_boundary_is_stored_which_saves_c_at_any_depth_and_leaves_the_live_layer_out():
    boundary = 8 * 8192 * 8192 * 2
    printed = 85_899_345_920
    assert Fraction(printed, boundary) == 80 and isqrt(80) + 1 == 9  # all of them; a root would be nine
    none_at_depth, full_at_depth = (lambda L: 16 * boundary * L), (lambda L: boundary * L)
    assert {Fraction(none_at_depth(L), full_at_depth(L)) for L in (1, 9, 80)} == {16}
    assert none_at_depth(1) == 17_179_869_184  # what is live besides while one layer runs again


def test_w10_the_decode_range_ends_at_43_not_at_35():
    rows = [fixed(decode(batch), 1) for batch in (1, 8, 64, 256)]
    assert rows == ["1.0", "6.9", "28.7", "43.3"]
    assert not any(fixed(decode(batch, attention=a)) == "35" for batch in (1, 8, 64, 256) for a in (False, True))


def test_w11_always_memory_bound_holds_at_8k_only_and_its_last_row_does_not_fit():
    assert fixed(Fraction(2 * N, kv(1)), 2) == "52.15" and balance() > 295
    assert next(batch for batch in count(1) if decode(batch, 512) > balance()) == 458
    longest = max(T for T in range(1, 8192) if Fraction(2 * N, kv(1, T)) > balance())
    assert longest == 1_445
    assert kv(256) + 2 * N > 640 * GB
    assert napkin.max_concurrent_requests(640 * GB, 2 * N, kv(1), 10 * GB) == 182
    assert [fixed(decode(256, attention=a), 1) for a in (False, True)] == ["43.3", "50.0"]


def test_w12_295_is_cut_off_or_belongs_to_another_peak():
    assert (fixed(balance(), 2), fixed(balance())) == ("295.52", "296")
    assert int(balance()) == 295 == round(Fraction(989 * 10**12, H100.bytes_per_second))


def test_w13_30b_on_5_5t_spends_three_and_a_half_per_cent_less():
    spent = napkin.training_flops(30 * 10**9, 5_500 * 10**9)
    assert napkin.budget_to_flops(H100, 1000, 30) == BUDGET
    assert fixed(100 - Fraction(100 * spent, BUDGET), 1) == "3.5"
    assert napkin.training_flops(30 * 10**9, 5_702_400_000_000) == BUDGET


def test_w14_two_hundredths_of_a_nat_follow_from_neither_fit_and_the_sign_differs():
    def loss(n_params, n_tokens, E, A, B, alpha, beta):
        return E + A / Decimal(n_params) ** alpha + B / Decimal(n_tokens) ** beta

    fits = [["1.69", "406.4", "410.7", "0.34", "0.28"], ["1.8172", "482.01", "2085.43", "0.3478", "0.3658"]]
    optimal = napkin.chinchilla_split(BUDGET)
    worse = [
        loss(30 * 10**9, tokens, *map(Decimal, fit)) - loss(*optimal, *map(Decimal, fit))
        for fit, tokens in product(fits, (5_702_400_000_000, 5_500_000_000_000))
    ]
    assert [round(x, 4) for x in worse[::2]] == [Decimal("-0.0054"), Decimal("0.0125")]
    assert max(worse) < Decimal("0.015")


def test_w15_kaplan_counts_half_of_the_rectangle():
    rectangle = pairwise(MHA_70B, 8192) / 3  # forward
    kaplan = 2 * 80 * 8192 * 64 * 128
    assert rectangle == 2 * kaplan
    assert Fraction(sum(range(1, 4097)), 4096**2) == Fraction(4097, 8192)  # the legal part, not one half


def test_w16_halving_attention_moves_the_total_by_six_per_cent_not_five():
    whole = step(MHA_70B, 8192, B=8)
    assert whole.share("attn_seq") / 2 == Fraction(2, 33)
    assert fixed(100 * Fraction(2, 33)) == "6"


def test_w17_exact_leaves_out_the_head_the_norms_and_the_layers():
    blocks, whole = step(RUNNING, 4096), step(RUNNING, 4096, vocab=128256)
    assert (blocks.total, whole.total) == (197_912_092_999_680, 210_822_764_691_456)
    assert whole.total - blocks.total == napkin.training_flops(4096 * 128256, 4096)
    layer = napkin.params_per_layer(8192, 28672, 64, 64, 128)
    assert layer.total - (3 * 8192 * 28672 + 4 * 8192 * 64 * 128) == 2 * 8192
    matrices = step(MHA_70B, 8192, B=8)["mlp"] + step(MHA_70B, 8192, B=8)["attn_proj"]
    assert matrices == 80 * napkin.training_flops(layer["mlp"] + layer["attn"], 8 * 8192)


def test_w18_12_1_and_13_3_are_one_term_beside_two_models():
    def matrices(m):
        return params.coordinates(m)["kaplan"]

    assert (matrices(MHA_70B), matrices(W_70B), params.ledger(W_70B).total) == (77_846_282_240, 68_451_041_280, 68_976_648_192)
    assert [fixed(share(8192, n), 1) for n in (matrices(MHA_70B), N)] == ["12.1", "13.3"]
    assert 100 * step(MHA_70B, 8192, B=8).share("attn_seq") == share(8192, matrices(MHA_70B))


def test_w19_6nd_below_8k_is_off_by_more_than_the_tenth_that_w_allows():
    limit = Fraction(1, 10) * N / (2 * 80 * 64 * 128)
    assert beside_6n(int(limit)) < Fraction(1, 10) < beside_6n(int(limit) + 1)
    assert int(limit) == 5_340 and fixed(100 * beside_6n(8192), 1) == "15.3"
    assert fixed(100 * step(RUNNING, 4096, vocab=128256).share("attn_seq"), 1) == "12.5"


def test_w20_five_to_fifteen_per_cent_is_neither_models_range():
    assert [fixed(share(T), 1) for T in TABLE[:2]] == ["3.7", "13.3"]
    assert [fixed(100 * step(RUNNING, T).share("attn_seq"), 1) for T in TABLE[:2]] == ["7.1", "23.5"]


def test_w21_two_thirds_is_the_classic_block():
    def mlp(m):
        return Fraction(params.block(m)["mlp"], params.block(m).total)

    matrices = params.block(CLASSIC)
    assert Fraction(matrices["mlp.weights"], matrices["mlp.weights"] + matrices["attention.weights"]) == Fraction(2, 3)
    w_block = W_7B.replace(num_key_value_heads=8)
    assert [fixed(100 * mlp(m), 1) for m in (w_block, RUNNING)] == ["76.3", "80.8"]


def test_w22_the_total_to_store_has_neither_vocabulary_nor_norms():
    split = napkin.moe_parameter_split(60, 7168, 2048, 256, 8, 128, 128, 128, 1)
    assert (split.total, split["active"]) == (707_395_584_000, 52_077_527_040)
    assert params.ledger(W_MOE).total - split.total == 1_854_225_408
    assert params.coordinates(W_MOE)["used"] - split["active"] == 129_280 * 7_168  # the head computes, too


def test_w23_the_printed_blocks_are_not_what_the_code_prints():
    in_floats = 1000 * 990e12 * 0.4 * 720 * 3600
    assert f"{in_floats:>14,.2f}" == "1,026,432,000,000,000,033,554,432.00"
    assert int(in_floats) - plan()["flops"] == 33_554_432
    assert f"checkpointing={str('full'):10s}" != "checkpointing= full"


def test_w24_hardware_figures_are_cut_off_or_rounded_to_tens():
    bandwidth = Fraction(A100.bytes_per_second, 10 * GB)
    assert (bandwidth, int(bandwidth), round(bandwidth)) == (Fraction("203.9"), 203, 204)
    assert fixed(100 * (Fraction(H100.peak_flops, 10**11) / 9894 - 1), 2) == "0.06"
    assert 800 * GIB > V5E.bytes_per_second == 819 * GB and fixed(Fraction(800 * GIB, GB)) == "859"
    for chip, units, mhz in ((V5E, 4, 1500), (V5P, 8, 1750)):  # matrix units of 128 x 128 cells
        assert round(Fraction(units * napkin.matmul_flops(128, 1, 128) * mhz * 10**6, 10**12)) * 10**12 == chip.peak_flops
        assert not chip.power.verified


def test_w25_one_run_has_two_electricity_bills_and_neither_is_99_per_cent():
    p = plan()
    assert (p["kwh"], p["usd_energy"], p["kwh_pue"], p["usd_energy_pue"]) == (504_000, 60_480, 604_800, 72_576)
    assert [fixed(p["usd_rental"] / p[row], 1) for row in ("usd_energy_pue", "usd_energy")] == ["24.8", "29.8"]
    assert p["usd_energy_pue"] / p["usd_rental"] == Fraction("0.04032")
    hourly = p["usd_energy_pue"] / (1000 * 720)
    assert hourly == Fraction("0.1008") and fixed(hourly / Fraction(99, 100) - hourly, 5) == "0.00102"


def test_w26_the_energy_check_cannot_fail():
    as_in_w = named("sanity_checks", "unset-is-ok")
    ours = [napkin.sanity_checks(plan(), most_kwh=most)["energy"] for most in (None, 1)]
    assert (as_in_w(plan())["energy"], ours) == ("ok", ["not checked", "fail"])


@pytest.mark.parametrize("m, k, n", [(1024, 4096, 11008), (7, 11, 13)])
def test_w27_twice_forward_needs_both_gradients(m, k, n):
    backward, once = napkin.linear_backward(m, k, n), napkin.matmul_flops(m, k, n)
    assert backward.total == 2 * once
    assert once + backward["dX"] == once + backward["dW"] == 2 * once  # frozen weights; an input that nothing learns from


def test_w28_chinchilla_and_gpt3_do_not_share_a_budget_gopher_does():
    chinchilla, gpt3, gopher = (napkin.training_flops(n * 10**9, t * 10**9) for n, t in ((70, 1400), (175, 300), (280, 300)))
    assert gopher == 504 * 10**21
    assert [fixed(Fraction(chinchilla, other), 3) for other in (gpt3, gopher)] == ["1.867", "1.167"]


def test_w29_non_embedding_n_and_twenty_tokens_are_two_coordinates():
    m = TRAP[0]
    ledger = napkin.total_params(m.num_layers, *call(m)[:5], m.vocab_size)
    assert ledger["non_embedding"] == 33_563_136
    assert fixed(Fraction(ledger.total, ledger["non_embedding"]), 1) == "8.8"


def test_w30_recomputing_keys_and_values_is_linear_in_a_step_and_quadratic_in_a_generation():
    def of_step(T):
        return napkin.matmul_flops(T, 8192, 2 * 8 * 128)

    assert of_step(2 * 8192) == 2 * of_step(8192)
    generation = [sum(map(of_step, range(1, T + 1))) for T in (100, 200)]
    assert generation == [T * (T + 1) // 2 * of_step(1) for T in (100, 200)]


def test_w31_8_is_a_ratio_of_bytes_and_687_gb_is_640_gib():
    fit = [napkin.max_concurrent_requests(640 * GB, 2 * N, kv(1, heads=heads), 10 * GB) for heads in (64, 8)]
    assert fit == [22, 182] and fixed(Fraction(182, 22), 2) == "8.27"
    assert kv(1, heads=64) == 8 * kv(1)
    assert kv(32, heads=64) == 640 * GIB and fixed(Fraction(kv(32, heads=64), GB), 1) == "687.2"


def test_w32_padding_a_decode_row_reports_128_times_the_work():
    right = napkin.padded_matmul_flops(1, 4096, 4096, pad_m=False)
    assert named("padded_matmul_flops", "rows-always")(1, 4096, 4096, pad_m=False) == 128 * right
    useful, issued = napkin.matmul_flops(1024, 4000, 4000), napkin.padded_matmul_flops(1024, 4000, 4000)
    assert [fixed(Fraction(100 * (issued - useful), whole), 2) for whole in (issued, useful)] == ["4.63", "4.86"]
    shard = 11008 // 8  # 86 tiles, but not 8 x 11
    assert Fraction(11008, 128) == 86 and ceil_div(shard, 128) * 128 == 1_408 and fixed(Fraction(3200, shard), 1) == "2.3"
    assert [width // 8 % 128 for width in (14336, 28672)] == [0, 0]
    big = 128 * 2**53 + 1
    in_floats = named("padded_matmul_flops", "float-ceil")(1, big, 1, pad_m=False)
    assert in_floats < napkin.matmul_flops(1, big, 128) < napkin.padded_matmul_flops(1, big, 1, pad_m=False)


def test_w33_formats_peaks_and_overwrites_are_off():
    assert fixed(Fraction(495, 67), 1) == "7.4" and BITS["tf32"] == BITS["fp32"]
    fp16, fp32 = np.finfo(np.float16), np.finfo(np.float32)
    assert fp16.nexp < fp32.nexp and fp16.nmant < fp32.nmant  # not the opposite of bf16: it gives up both
    assert 16 - 1 - fp32.nexp < fp16.nmant
    assert len([token for token in range(1, 1001) if token > 1]) == 999
    assert napkin.training_flops(N, 2 * 7) == 2 * napkin.training_flops(N, 7)  # FLOPs do depend on the batch
