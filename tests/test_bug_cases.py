"""Wrong cost numbers that people have reported in public trackers, each beside the right one.

The cases of parameters, model state, key/value caches, budgets, watts and units. Each test builds
the model that the report describes and holds: what costlib counts, what the mistake counts (by the
lab's model of it where a lab knows it by name, else spelt out), and both again for another shape.
"""

from fractions import Fraction

import pytest

from costlib import napkin, params
from costlib.exercise import using
from costlib.fixtures import (
    ODD,
    ODD_EVERYTHING,
    ODD_EXPERTS,
    RUNNING,
    TOY,
    TOY_TIED,
    W_7B,
    W_70B,
)
from costlib.hardware import CHIPS
from costlib.napkin import BF16, FP32
from costlib.records import ArchitectureManifest, Experts, StateEntry, Tensor
from costlib.schema import differences, state_entries, tensor_rows
from costlib.units import GB, GIB, MIB, ceil_div, fixed, in_bytes
from labs import spec

H100, A100 = CHIPS["H100"], CHIPS["A100-80"]


@pytest.fixture(autouse=True)
def on_the_reference():
    with using("solutions"):
        yield


def named(lab, exercise, wrong):
    """The model of a mistake that a lab knows by name."""
    return next(w.model for w in spec.load(lab)[exercise].wrong if w.name == wrong)


def model(name, layers, d, d_ff, heads, kv_heads, vocab, head_dim=128, tied=False, **other):
    return ArchitectureManifest(
        manifest_id=name,
        num_layers=layers,
        hidden_size=d,
        intermediate_size=d_ff,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        vocab_size=vocab,
        tie_word_embeddings=tied,
        **other,
    )


def cases(names, *rows):
    return pytest.mark.parametrize(names, [pytest.param(*row, id=getattr(row[0], "manifest_id", None)) for row in rows])


# Parameters

SPEEDRUN = model(
    "speedrun-gpt2", 12, 768, 3072, 6, 6, 50304, mlp="two-matrix", norms_per_block=0, final_norm=False,
    extra_trainable_sets=(Tensor(name="scalars", shape=(12, 3)),),
)
LLAMA_1B = model("llama-3.2-1b", 16, 2048, 8192, 32, 8, 128256, head_dim=64, tied=True)
QWEN_72B = model("qwen-72b", 80, 8192, 24576, 64, 64, 152064, attention_bias="qkv")
OLMO_32B = model("olmo-32b", 64, 5120, 27648, 40, 8, 100352, qk_norm="packed")
MIXTRAL_8X22B = model(
    "8x22b", 56, 6144, 16384, 48, 8, 32000, experts=Experts(num_experts=8, experts_per_token=2, intermediate_size=16384)
)
MIXTRAL_8X7B = model(
    "8x7b", 32, 4096, 14336, 32, 8, 32000, experts=Experts(num_experts=8, experts_per_token=2, intermediate_size=14336)
)
LLAMA_13B = model("llama-2-13b", 40, 5120, 13824, 40, 40, 32000)
DEEPSEEK_7B = model("deepseek-llm-7b", 30, 4096, 4 * 4096, 32, 32, 102400, mlp="two-matrix")
LLAMA_70B = W_70B.replace(manifest_id="llama-3-70b", vocab_size=128256)


@cases("arch, untied, tied", (SPEEDRUN, 162_201_636, 123_568_164), (ODD, 502_560, 405_696))
def test_b01_an_untied_head_is_a_matrix_more_than_the_name_says(arch, untied, tied):
    assert params.ledger(arch).total == untied
    slip = named("03", "vocabulary", "head-forgotten")(arch)
    assert untied - params.vocabulary(arch).total + sum(slip.values()) == tied
    assert params.ledger(arch.replace(tie_word_embeddings=True)).total == tied


@cases(
    "arch, shared, stored",
    (LLAMA_1B, 1_235_814_400, 1_498_482_688),
    (TOY_TIED, 1_128, 1_256),
    (ODD_EVERYTHING, 345_871, 442_735),
)
def test_b02_a_copied_head_is_not_tied(arch, shared, stored):
    entries = state_entries(tensor_rows(arch))
    copy = tuple(e.replace(storage=e.name) if e.name == "lm_head.weight" else e for e in entries)
    assert params.inventory(copy)["unique"] == stored
    assert params.inventory(entries)["unique"] == params.unique_scalars(tensor_rows(arch)) == shared
    assert [found.partition(":")[0] for found in differences(arch, copy)] == ["not tied"]


@cases(
    "arch, positions, right, two_matrices, mended",
    (QWEN_72B, 1024, 72_287_920_128, 56_192_155_648, 72_298_283_008),
    (ODD.replace(attention_bias="qkv"), 7, 502_560 + 3 * (120 + 40 + 40), 433_056, 505_056),
)
def test_b04_a_gated_mlp_has_three_matrices_and_the_rest_is_as_declared(arch, positions, right, two_matrices, mended):
    assert params.ledger(arch).total == right
    assumed = arch.replace(  # the tool's 8d a block, 2d after it and position table, as a manifest says them
        norm="layernorm", norms_per_block=4, position="learned", max_positions=positions, attention_bias="none"
    )
    assert params.ledger(assumed).total == mended
    third = arch.num_layers * (
        params.mlp_weights(arch, arch.intermediate_size)
        - named("03", "mlp_weights", "two-matrices")(arch, arch.intermediate_size)
    )
    assert mended - third == two_matrices == params.ledger(assumed.replace(mlp="two-matrix")).total


@cases("arch, per_block, too_many", (OLMO_32B, 5_120 + 1_024, 262_144), (ODD.replace(qk_norm="packed"), 120 + 40, 96))
def test_b05_the_norm_of_k_spans_the_kv_heads(arch, per_block, too_many):
    without = arch.replace(qk_norm="none")
    assert params.block(arch)["norms"] - params.block(without)["norms"] == per_block
    slip = 2 * arch.hidden_size
    assert arch.num_layers * slip - (params.ledger(arch).total - params.ledger(without).total) == too_many


@cases(
    "arch, total, active, advertised",
    (MIXTRAL_8X22B, 140_620_634_112, 39_152_031_744, 176),
    (MIXTRAL_8X7B, 46_702_792_704, 12_879_925_248, 56),
    (ODD_EXPERTS, 516_576, 418_656, 0),
)
def test_b06_only_the_mlp_is_there_once_per_expert(arch, total, active, advertised):
    ledger, experts = params.ledger(arch), arch.experts
    assert ledger.total == total
    assert total - arch.expert_layers * params.expert_block(arch)["routed.idle"] == active
    one = arch.replace(experts=None)
    assert experts.num_experts * (params.ledger(one).total // 10**9) == advertised
    shape = (arch.expert_layers, arch.hidden_size, experts.intermediate_size, experts.num_experts, experts.experts_per_token)
    heads = (arch.num_attention_heads, arch.num_key_value_heads, arch.head_dim, experts.shared_experts)
    slip = sum(named("01", "moe_parameter_split", "attention-per-expert")(*shape, *heads).values())
    again = (experts.num_experts - 1) * arch.expert_layers * params.attention_weights(arch)
    assert slip - napkin.moe_parameter_split(*shape, *heads).total == again


@cases("arch, matrices, packed, right", (LLAMA_13B, 280, 6_671_979_520, 13_015_864_320), (ODD, 21, 348_480, 502_560))
def test_b07_two_weights_in_a_byte_are_two_weights(arch, matrices, packed, right):
    stored = [
        t.replace(shape=(t.numel // 2, 1), dtype="uint8") if "_proj" in t.name else t for t in tensor_rows(arch)
    ]
    assert sum(t.dtype == "uint8" for t in stored) == matrices
    assert params.unique_scalars(tuple(stored)) == packed
    assert params.unique_scalars(tuple(t.replace(shape=(2, t.numel)) if t.dtype == "uint8" else t for t in stored)) == right
    assert params.ledger(arch).total == right
    assert any(found.startswith("shape of") for found in differences(arch, state_entries(tuple(stored))))


@pytest.mark.parametrize(
    "parameters, buffer, right, summed",
    [
        ((StateEntry(name="weights", shape=(278_043_648,), storage="weights"),), 514, 278_043_648, 278_044_162),
        (state_entries(tensor_rows(TOY)), 77, 1_256, 1_333),
    ],
)
def test_b11_position_ids_are_a_buffer(parameters, buffer, right, summed):
    entries = (*parameters, StateEntry(name="position_ids", shape=(1, buffer), storage="ids", kind="buffer"))
    seen = params.inventory(entries)
    assert (seen["unique"], seen["buffers"]) == (right, buffer)
    assert named("03", "inventory", "buffers-as-parameters")(entries)["unique"] == summed == seen["state_entries"]


@cases("arch, ranks, gathered, padding", (RUNNING, 8, 128_512, 1_048_576), (ODD, 4, 1_024, 15 * 96))
def test_b12_padded_rows_are_no_vocabulary(arch, ranks, gathered, padding):
    padded = ceil_div(arch.vocab_size, 64 * ranks) * 64 * ranks
    assert padded == gathered and padded % ranks == 0
    slip = params.vocabulary(arch.replace(vocab_size=padded))["embedding"]
    assert slip - params.vocabulary(arch)["embedding"] == padding


@cases("arch, right, wrong", (RUNNING, 262_144, 524_288), (ODD, 576, 1_152))
def test_b53_an_rmsnorm_has_no_shift_and_a_bf16_gradient_two_bytes(arch, right, wrong):
    assert params.ledger(arch)["blocks.norms"] == right
    slip = named("03", "norm_scalars", "always-two")(arch, arch.hidden_size)
    assert arch.num_layers * arch.norms_per_block * slip == wrong
    replicated = napkin.training_memory(right, zero_stage=1, dp_degree=8)
    assert (replicated["weights"] + replicated["grads"]) == 4 * right  # an fp32 gradient would make it 6


# Budget, money, watts


@cases("arch, right, claim", (DEEPSEEK_7B, 38_755_368_960, 41_271_951_360), (TOY, 6 * 1_088, 6 * 1_216))
def test_b37_reading_a_row_of_the_embedding_is_no_product(arch, right, claim):
    assert napkin.training_flops(params.coordinates(arch)["used"], 1) == right
    slip = named("03", "coordinates", "lookup-as-matmul")(arch)
    assert napkin.training_flops(slip["used"], 1) == claim


@pytest.mark.parametrize(
    "n_params, n_tokens, gpu_hours, peak, gpus, hours, utilisation, tflops, hours_at_peak",
    [
        (8_030_261_248, 15 * 10**12, 1_300_000, 989 * 10**12, 24_576, "52.897", "0.15615", "154.4", "8.26"),
        (30 * 10**9, 5_702_400_000_000, 720_000, 990 * 10**12, 1_000, "720.000", "0.40000", "396.0", "288.00"),
    ],
)
def test_b41_the_utilisation_is_what_to_question_not_the_hours(
    n_params, n_tokens, gpu_hours, peak, gpus, hours, utilisation, tflops, hours_at_peak
):
    chip = H100.replace(peak=H100.peak.replace(value=peak))
    flops = napkin.training_flops(n_params, n_tokens)
    at_peak = Fraction(napkin.budget_to_flops(chip, gpu_hours, 1, Fraction(1)), 24)
    assert fixed(Fraction(gpu_hours, gpus), 3) == hours
    assert fixed(flops / at_peak, 5) == utilisation
    assert fixed(Fraction(flops, gpu_hours * 3600 * 10**12), 1) == tflops
    per_hour = Fraction(named("01", "budget_to_flops", "no-mfu")(chip, gpus, 1, flops / at_peak), 24)
    assert fixed(flops / per_hour, 2) == hours_at_peak


@pytest.mark.parametrize(
    "watts, other, kwh, reported, right, times",
    [
        (390_005, 42_500, "0.11006903808049802", "0.111485", "0.011995", "9.29"),  # milliwatt, but only the ratio counts
        (H100.watts, A100.watts, "504000", "504000", "288,000.000000", "1.75"),
    ],
)
def test_b43_in_the_same_time_energies_are_as_powers(watts, other, kwh, reported, right, times):
    first, second = (H100.replace(power=H100.power.replace(value=value)) for value in (watts, other))
    a, b = (napkin.budget_report(chip, 1, 1)["kwh"] for chip in (first, second))
    energy = Fraction(kwh) * b / a
    assert fixed(energy, 6) == right
    assert fixed(Fraction(reported) / energy, 2) == times


@pytest.mark.parametrize("devices, entered, off", [(8, 1, Fraction(1, 8)), (256 // 2, 256, 2), (1000, 1, Fraction(1, 1000))])
def test_b44_hours_are_hours_of_each_device_that_the_price_is_for(devices, entered, off):
    right, wrong = (napkin.budget_report(H100, n, 1, usd_per_chip_hour=Fraction(1)) for n in (devices, entered))
    assert right["usd_rental"] == 24 * devices
    for row in ("usd_rental", "kwh"):  # wall-clock hours, or hours of a core where two cores make a device
        assert wrong[row] / right[row] == off


# State


def moments(n_params, optimizer="adam", **sharding):
    """Bytes of the optimizer row without the master copy."""
    held = [napkin.training_memory(n_params, o, **sharding)["optimizer"] for o in (optimizer, "sgd")]
    return held[0] - held[1]


@pytest.mark.parametrize(
    "n_params, optimizer, total, wrong, wrong_total",
    [
        (6_700_000_000, 80_400_000_000, 107_200_000_000, 26_800_000_000, 53_600_000_000),
        (1_128, 13_536, 18_048, 4_512, 9_024),
    ],
)
def test_b45_adam_keeps_three_fp32_copies_not_one(n_params, optimizer, total, wrong, wrong_total):
    memory = napkin.training_memory(n_params)
    assert (memory["optimizer"], memory.total) == (optimizer, total)
    slip = napkin.training_memory(n_params, "sgd")  # four bytes a parameter, for four parameters' worth
    assert (slip["optimizer"], slip.total) == (FP32 * n_params, 2 * FP32 * n_params) == (wrong, wrong_total)


@cases("arch, right, wrong", (W_7B, 80_860_987_392, 134_768_312_320), (ODD, 6_030_720, 10_051_200))
def test_b46_how_many_bytes_a_parameter_has_depends_on_the_program(arch, right, wrong):
    n_params = params.ledger(arch).total
    assert napkin.training_memory(n_params)["optimizer"] == right  # fp32 weights and moments, cast for each product
    assert napkin.training_memory(n_params).total + FP32 * n_params == wrong  # with an fp32 gradient as well


@cases(
    "arch, weights, all_bf16, mixed, without_head",
    (LLAMA_70B, 141_107_412_992, 564_429_651_968, 1_128_859_303_936, "517.838"),
    (RUNNING, 16_060_522_496, 64_242_089_984, 128_484_179_968, "55.916"),
)
def test_b48_a_fine_tune_is_16_bytes_a_parameter_or_8_if_all_is_bf16(arch, weights, all_bf16, mixed, without_head):
    n_params = params.ledger(arch).total
    memory = napkin.training_memory(n_params)
    assert (memory["weights"], memory.total) == (weights, mixed)
    assert 4 * memory["weights"] == all_bf16  # weight, gradient and two moments
    headless = n_params - params.vocabulary(arch)["head"]
    assert fixed(Fraction(4 * BF16 * headless, GIB), 3) == without_head
    slip = named("01", "total_params", "head-forgotten")(
        arch.num_layers, arch.hidden_size, arch.intermediate_size, arch.num_attention_heads, arch.num_key_value_heads,
        arch.head_dim, arch.vocab_size,
    )
    assert sum(slip.values()) == headless


@pytest.mark.parametrize("n_params, right, wrong", [(175 * 10**9, 1_400 * GB, 700 * GB), (1_128, 9_024, 4_512)])
def test_b49_adam_has_two_moments(n_params, right, wrong):
    assert moments(n_params) == right
    assert moments(n_params, "sgd_momentum") == wrong


@pytest.mark.parametrize("n_params, right", [(32_111_170, 385_334_040), (1_128, 13_536)])
def test_b67_the_state_is_there_from_the_first_step_on(n_params, right):
    before = napkin.training_memory(n_params)["weights"] + napkin.training_memory(n_params)["grads"]
    assert napkin.training_memory(n_params).total - before == right  # shadow copy and both moments


def test_b67_the_allocator_saw_that_state_to_one_per_cent():
    measured = (7038 - 3145) * 10**5
    assert 0 < Fraction(measured, napkin.training_memory(32_111_170)["optimizer"]) - 1 < Fraction(11, 1000)


@pytest.mark.parametrize("n_params, ranks, right", [(8_030_261_248, 8, 8_030_261_248), (1_128, 64, 144)])
def test_b69_restored_moments_are_live_in_the_first_forward(n_params, ranks, right):
    assert moments(n_params, zero_stage=1, dp_degree=ranks) == right
    floor = named("01", "training_memory", "floor-shards")
    lost = floor(n_params, "adam", 1, ranks)["optimizer"] - floor(n_params, "sgd", 1, ranks)["optimizer"]
    assert right - lost == 8 * (n_params % ranks > 0)


# Key/value cache


def per_token(layers, kv_heads, head_dim, bytes_per=BF16):
    return napkin.kv_cache_bytes(layers, kv_heads, head_dim, 1, 1, bytes_per)


@pytest.mark.parametrize("kv, ranks, whole, shard", [((32, 8, 128), 8, 131_072, 16_384), ((3, 6, 20), 3, 1_440, 480)])
def test_b57_memory_and_tokens_are_of_the_same_ranks(kv, ranks, whole, shard):
    layers, heads, head_dim = kv
    assert (per_token(*kv), per_token(layers, heads // ranks, head_dim)) == (whole, shard)
    each = 10**9
    right = napkin.max_concurrent_requests(each, 0, shard)
    assert right == napkin.max_concurrent_requests(ranks * each, 0, whole)
    assert napkin.max_concurrent_requests(ranks * each, 0, shard) // right == ranks


@pytest.mark.parametrize(
    "kv, ranks, tokens, wrong, right", [((64, 8, 128), 4, 16, 814, 3_258), ((3, 6, 20), 3, 7, 100, 302)]
)
def test_b58_a_ranks_pool_holds_blocks_of_its_own_heads(kv, ranks, tokens, wrong, right):
    layers, heads, head_dim = kv
    block, local = (napkin.kv_cache_bytes(layers, h, head_dim, tokens, 1) for h in (heads, heads // ranks))
    memory = right * local
    assert napkin.max_concurrent_requests(memory, 0, local) == right
    assert napkin.max_concurrent_requests(memory, 0, block) == wrong
    assert ranks * wrong <= right < ranks * (wrong + 1)


@pytest.mark.parametrize(
    "layers, q, kv, dh, tokens, right, wrong",
    [(32, 32, 8, 128, 4096, 536_870_912, 2_147_483_648), (3, 6, 2, 20, 56, 26_880, 80_640)],
)
def test_b76_a_decode_step_loads_the_kv_heads(layers, q, kv, dh, tokens, right, wrong):
    assert napkin.kv_cache_bytes(layers, kv, dh, tokens, 1) == right
    assert napkin.kv_cache_bytes(layers, q, dh, tokens, 1) == wrong


@cases(
    "arch, right, wrong",
    (model("qwen3-4b", 36, 2560, 9728, 32, 8, 151936, tied=True), 147_456, 92_160),
    (ODD, 480, 384),
)
def test_b77_the_width_of_a_head_is_declared_not_divided(arch, right, wrong):
    assert per_token(arch.num_layers, arch.num_key_value_heads, arch.head_dim) == right
    assert per_token(arch.num_layers, arch.num_key_value_heads, arch.hidden_size // arch.num_attention_heads) == wrong


@pytest.mark.parametrize(
    "layers, heads, width, latent, right, wrong", [(61, 128, 56, 576, 35_136, 874_496), (3, 6, 16, 22, 66, 576)]
)
def test_b79_a_latent_cache_keeps_one_vector_a_token_and_layer(layers, heads, width, latent, right, wrong):
    assert per_token(layers, 1, latent, bytes_per=1) == 2 * right  # elements, and no second tensor for v
    assert named("01", "kv_cache_bytes", "k-only")(layers, 1, latent, 1, 1, bytes_per=1) == right
    assert per_token(layers, heads, width, bytes_per=1) == wrong


@pytest.mark.parametrize(
    "layers, right, wrong_call, wrong", [(61, 40_016, (43, 1, 512), 88_064), (3, 1_968, (3, 1, 512), 6_144)]
)
def test_b81_a_packed_latent_slot_has_scales_and_a_rotary_part(layers, right, wrong_call, wrong):
    latent = per_token(1, 1, 512, bytes_per=1) // 2
    scales = ceil_div(512, 128) * FP32
    rotary = per_token(1, 1, 64) // 2
    assert latent + scales + rotary == 656 and layers * 656 == right
    assert per_token(*wrong_call) == wrong


@pytest.mark.parametrize(
    "kv, sliding, right, wrong, tokens, gib",
    [((36, 8, 64), 18, 73_728, 36_864, 78_384, "5.382"), ((3, 2, 20), 1, 480, 320, 10**7, "4.470")],
)
def test_b82_a_sliding_layer_caches_too(kv, sliding, right, wrong, tokens, gib):
    layers, heads, head_dim = kv
    assert per_token(*kv) == right
    assert per_token(layers - sliding, heads, head_dim) == wrong
    assert fixed(Fraction(napkin.kv_cache_bytes(*kv, tokens, 1), GIB), 3) == gib


@pytest.mark.parametrize(
    "whole, windowed, right, wrong",
    [
        ((5, 4, 256, 131_072), (29, 4, 256, 1024 + 512), 2_734 * MIB, 174 * MIB),
        ((1, 2, 20, 56), (2, 2, 20, 11), 8_960 + 3_520, 3_520),
    ],
)
def test_b85_two_caches_are_added_not_overwritten(whole, windowed, right, wrong):
    rows = {"whole": napkin.kv_cache_bytes(*whole, 1), "windowed": napkin.kv_cache_bytes(*windowed, 1)}
    assert sum(rows.values()) == right
    assert {"cache": rows["whole"], **{"cache": rows["windowed"]}} == {"cache": wrong}


@pytest.mark.parametrize(
    "args, right, wrong", [((60, 52, 128, 512, 1), 780 * MIB, 1_560 * MIB), ((3, 2, 20, 56, 5), 134_400, 268_800)]
)
def test_b86_an_fp32_cache_is_twice_a_16_bit_one(args, right, wrong):
    assert napkin.kv_cache_bytes(*args) == right
    assert named("01", "kv_cache_bytes", "fp32")(*args) == wrong


@pytest.mark.parametrize("scalars, q8, q4, naive", [((64, 8, 128, 32_768), 4_352, 2_304, 4_096), ((1, 2, 64, 2**20), 272, 144, 256)])
def test_b88_quantized_values_bring_their_scales(scalars, q8, q4, naive):
    one_byte = napkin.kv_cache_bytes(*scalars, 1, bytes_per=1)
    blocks = one_byte // 32  # of 32 values, with one 16-bit scale
    assert (blocks * (32 + BF16), blocks * (16 + BF16)) == (q8 * MIB, q4 * MIB)
    assert one_byte == naive * MIB
    f16 = Fraction(360)
    assert [f16 * width / 64 for width in (34, 18)] == [Fraction("191.25"), Fraction("101.25")]


@pytest.mark.parametrize(
    "layers, heads, d, head_dim, right, wrong", [(32, 32, 4096, 128, 524_288, 4_194_304), (3, 6, 120, 20, 1_440, 2_160)]
)
def test_b89_the_packed_width_has_the_heads_in_it(layers, heads, d, head_dim, right, wrong):
    assert per_token(layers, heads, head_dim) == right
    assert per_token(layers, heads, d, bytes_per=1) // 2 == wrong  # heads x hidden, in half bytes


@pytest.mark.parametrize(
    "layers, stages, rest, right, questioned",
    [(32, 4, (8, 128, 4096, 1), 134_217_728, 536_870_912), (6, 3, (2, 20, 56, 5), 89_600, 268_800)],
)
def test_b91_a_stage_caches_its_own_layers(layers, stages, rest, right, questioned):
    assert napkin.kv_cache_bytes(layers // stages, *rest) == right
    assert napkin.kv_cache_bytes(layers, *rest) == questioned
    memory = 7 * questioned - right
    slots = napkin.max_concurrent_requests(memory, 0, right)
    undone = stages * napkin.max_concurrent_requests(memory, 0, questioned)
    assert slots - undone == stages - 1  # what flooring first can lose at most


@pytest.mark.parametrize("attention, state, block, blocks", [(1, 3, 16, 1_000), (1, 1, 32, 77)])
def test_b94_state_that_does_not_grow_takes_no_share_of_the_tokens(attention, state, block, blocks):
    page = napkin.kv_cache_bytes(1, 8, 128, block, 1)
    fixed_pages = 3 * page
    right = block * napkin.max_concurrent_requests(blocks * page + fixed_pages, 0, attention * page, fixed_pages)
    assert right == blocks * block
    assert right // (block * (blocks // (attention + state))) == attention + state


@pytest.mark.parametrize("args", [(28, 8, 128, 16, 1), (3, 2, 20, 56, 5)])
def test_b95_a_block_is_kept_in_every_layer(args):
    slip = named("01", "kv_cache_bytes", "one-layer")(*args)
    assert napkin.kv_cache_bytes(*args) == args[0] * slip


# Units


@pytest.mark.parametrize(
    "value, decimal, binary",
    [(83 * GB, "83.00", "77.30"), (45 * GIB, "48.32", "45.00"), (640 * GIB, "687.19", "640.00"), (16 * GB, "16.00", "14.90")],
)
def test_b96_one_count_of_bytes_has_two_names(value, decimal, binary):
    assert in_bytes(value) == f"{value:,} B = {decimal} GB = {binary} GiB"
    assert (fixed(Fraction(value, GB), 2), fixed(Fraction(value, GIB), 2)) == (decimal, binary)
    assert decimal != binary  # neither number is a mistake; comparing them is
