"""Configurations of released models: what is read, what is refused, and numbers that others got wrong from them."""

import json
from fractions import Fraction

import pytest
from hypothesis import given
from strategies import latent_manifests, workloads

from costlib import adapters, data, forward, latent, params, phases, training
from costlib.domain import ManifestError
from costlib.estimate import Plan, estimate
from costlib.exercise import using
from costlib.observe import agreement
from costlib.records import ArchitectureManifest, Latent, Workload
from costlib.schema import tensor_rows
from test_cli import run


@pytest.fixture(autouse=True)
def on_the_reference():
    with using("solutions"):
        yield


def text(name):
    return data.read(f"configs/{name}.json")


def published(name):
    return adapters.from_config(text(name))


def default(model_type, **changes):
    return adapters.from_config({"model_type": model_type} | changes)


def refusal(call, *args):
    with pytest.raises(ManifestError) as refused:
        call(*args)
    return refused.value


# What is read

# From reports, papers and model cards; the agreement table below has the framework's count of each.
KNOWN = {
    "deepseek-v3": 671_026_404_352,
    "falcon-40b": 41_303_293_952,
    "gemma-2-9b": 9_241_705_984,
    "gemma-2b": 2_506_172_416,
    "gpt2-xl": 1_557_611_200,
    "llama-2-70b": 68_976_648_192,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.2-1b": 1_235_814_400,
    "mistral-nemo-12b": 12_247_782_400,
    "mixtral-8x22b": 140_620_634_112,
    "olmo-1b": 1_176_764_416,
    "phi-2": 2_779_683_840,
    "pythia-70m": 70_426_624,
    "qwen1.5-72b": 72_287_920_128,
    "qwen2-0.5b": 494_032_768,
    "qwen3-4b": 4_022_468_096,
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_published_size_is_what_it_is_known_to_be(name):
    arch = published(name)
    assert params.ledger(arch).total == params.unique_scalars(tensor_rows(arch)) == KNOWN[name]


def test_every_configuration_that_comes_along_is_read_and_names_its_source():
    files = {path.name for path in data.HERE.joinpath("configs").iterdir()} - {"sources.json"}
    assert files == {f"{name}.json" for name in adapters.published()}
    for name, source in adapters.published().items():
        assert source.startswith("https://huggingface.co/") and source.endswith("/config.json")
        arch, assumed = adapters.read(text(name))
        assert ArchitectureManifest.from_json(arch.to_json()) == arch
        assert not assumed.keys() & {"hidden_size", "n_embd", "num_hidden_layers", "n_layer", "vocab_size"}
        assert text(name) == json.dumps(json.loads(text(name)), indent=1, sort_keys=True) + "\n"


@pytest.mark.parametrize("model_type", adapters.ADAPTERS)
def test_a_default_is_what_the_key_says_when_it_is_given(model_type):
    read = adapters.keys(model_type)["read"]
    plain = default(model_type)
    for key, value in read.items():
        if value is not None:
            assert default(model_type, **{key: value}) == plain, key
    assert adapters.read({"model_type": model_type})[1] == read


@pytest.mark.parametrize("model_type", adapters.ADAPTERS)
def test_a_key_that_is_read_changes_the_manifest(model_type):
    plain = default(model_type)
    for key, value in adapters.keys(model_type)["read"].items():
        if key in ("multi_query", "parallel_attn", "num_kv_heads", "num_ln_in_parallel_attn", "mlp_only_layers"):
            continue  # falcon's depend on each other, and a list is no number: below
        heads = {"num_key_value_heads", "num_attention_heads", "n_head"}
        other = not value if type(value) is bool else 1 if key in heads else 2 * (value or 50)
        changes = {key: other}
        if key in heads and "num_key_value_heads" in adapters.keys(model_type)["read"]:
            changes = {"num_attention_heads": 2, "num_key_value_heads": 2 if model_type == "deepseek_v3" else 1}
        assert default(model_type, **changes) != plain, key


@pytest.mark.parametrize("model_type", adapters.ADAPTERS)
def test_a_key_that_changes_no_count_changes_nothing(model_type):
    keys = adapters.keys(model_type)
    assert not set(keys["irrelevant"]) & (keys["read"].keys() | set(keys["also"]))
    changes = dict.fromkeys(set(keys["irrelevant"]) - {"model_type"}, "anything")
    assert default(model_type, **changes) == default(model_type)


# The keys, not the values, of config.json files as released.
COMMON = "architectures bos_token_id eos_token_id hidden_act hidden_size initializer_range intermediate_size max_position_embeddings "
COMMON += "model_type num_attention_heads num_hidden_layers rope_theta tie_word_embeddings torch_dtype transformers_version use_cache vocab_size "
LLAMA = COMMON + "num_key_value_heads rms_norm_eps rope_scaling attention_dropout "
RELEASED = {
    "llama": LLAMA + "attention_bias mlp_bias pretraining_tp head_dim _name_or_path",
    "mistral": LLAMA + "head_dim sliding_window",
    "qwen2": LLAMA + "max_window_layers sliding_window use_sliding_window use_mrope",
    "qwen3": LLAMA + "attention_bias head_dim max_window_layers sliding_window use_sliding_window",
    "gemma": LLAMA + "attention_bias head_dim hidden_activation pad_token_id",
    "gemma2": LLAMA + "attention_bias attn_logit_softcapping cache_implementation final_logit_softcapping head_dim hidden_activation "
    "pad_token_id query_pre_attn_scalar sliding_window sliding_window_size",
    "phi": LLAMA.replace("rms_norm_eps", "") + "embd_pdrop resid_pdrop layer_norm_eps partial_rotary_factor qk_layernorm",
    "phi3": LLAMA + "auto_map attention_bias embd_pdrop resid_pdrop original_max_position_embeddings pad_token_id sliding_window",
    "gpt2": "activation_function architectures attn_pdrop bos_token_id embd_pdrop eos_token_id initializer_range layer_norm_epsilon "
    "model_type n_ctx n_embd n_head n_layer n_positions resid_pdrop summary_activation summary_first_dropout summary_proj_to_labels "
    "summary_type summary_use_proj task_specific_params vocab_size",
    "gpt_neox": COMMON.replace("rope_theta", "") + "layer_norm_eps rotary_emb_base rotary_pct use_parallel_residual",
    "falcon": "alibi apply_residual_connection_post_layernorm architectures attention_dropout auto_map bias bos_token_id eos_token_id "
    "hidden_dropout hidden_size initializer_range layer_norm_epsilon model_type multi_query new_decoder_architecture "
    "num_attention_heads num_hidden_layers num_kv_heads parallel_attn torch_dtype transformers_version use_cache vocab_size",
    "olmo": LLAMA.replace("rms_norm_eps", "") + "attention_bias clip_qkv pad_token_id",
    "olmo2": LLAMA + "attention_bias pad_token_id",
    "mixtral": LLAMA + "num_experts_per_tok num_local_experts output_router_logits router_aux_loss_coef sliding_window",
    "qwen3_moe": LLAMA + "attention_bias decoder_sparse_step head_dim max_window_layers mlp_only_layers moe_intermediate_size "
    "norm_topk_prob num_experts num_experts_per_tok output_router_logits router_aux_loss_coef sliding_window use_sliding_window",
    "deepseek_v3": LLAMA + "attention_bias auto_map aux_loss_alpha ep_size first_k_dense_replace kv_lora_rank moe_intermediate_size "
    "moe_layer_freq n_group n_routed_experts n_shared_experts norm_topk_prob num_experts_per_tok num_nextn_predict_layers pretraining_tp "
    "q_lora_rank qk_nope_head_dim qk_rope_head_dim quantization_config routed_scaling_factor scoring_func seq_aux topk_group "
    "topk_method v_head_dim",
}


def test_the_keys_of_released_files_are_known():
    assert RELEASED.keys() == adapters.ADAPTERS.keys()
    for model_type, released in RELEASED.items():
        keys = adapters.keys(model_type)
        assert set(released.split()) <= keys["read"].keys() | set(keys["also"]) | set(keys["irrelevant"]), model_type


def test_a_null_that_means_something_is_read_so():
    assert default("llama", num_key_value_heads=None).num_key_value_heads == 32
    assert default("llama", head_dim=None).head_dim == 128
    assert default("gpt2", n_inner=None).intermediate_size == 4 * 768
    assert default("deepseek_v3", q_lora_rank=None).latent.query_rank == 0
    assert default("qwen3_moe", mlp_only_layers=None).experts.first_dense_layers == 0


def test_two_spellings_of_one_key_are_one():
    assert default("qwen3_moe", num_experts=60) == default("qwen3_moe", num_local_experts=60) != default("qwen3_moe")
    assert default("falcon", hidden_size=142).hidden_size == default("falcon", n_embed=142).hidden_size == 142


def test_falcon_shares_its_keys_and_its_norms_as_its_switches_say():
    assert default("falcon").num_key_value_heads == 1 and default("falcon").norms_per_block == 1
    assert default("falcon", multi_query=False).num_key_value_heads == 71
    assert default("falcon", parallel_attn=False).norms_per_block == 2
    assert published("falcon-40b").num_key_value_heads == 8 and published("falcon-40b").norms_per_block == 2
    assert default("falcon", new_decoder_architecture=True, num_kv_heads=71, num_ln_in_parallel_attn=1).norms_per_block == 1


def test_what_no_field_says_is_declared_by_name():
    named = default("phi", qk_layernorm=True).extra_trainable_sets
    assert len(named) == 24 * 4 and {t.numel for t in named} == {2048 // 32}
    assert named[0].name == "model.layers.0.self_attn.q_layernorm.weight"
    biased = default("deepseek_v3", attention_bias=True).extra_trainable_sets
    assert sum(t.numel for t in biased) == 61 * (1536 + 512 + 64 + 7168)
    assert default("phi").extra_trainable_sets == default("deepseek_v3").extra_trainable_sets == ()


def test_the_first_dense_blocks_of_a_mixture():
    assert default("qwen3_moe", mlp_only_layers=[0, 1]).experts.first_dense_layers == 2
    assert published("deepseek-v3").expert_layers == 58


# What is refused


@pytest.mark.parametrize(
    "config, code, words",
    [
        ({"hidden_size": 8}, "MISSING", "model_type"),
        ({"model_type": "gpt_oss"}, "ENUM", "known: "),  # sinks and biased experts: no adapter knows them
        ({"model_type": "gemma3", "text_config": {}}, "ENUM", "deepseek_v3"),
        ({"model_type": 3}, "TYPE", "no name"),
        ([], "TYPE", "object"),
        ("[]", "TYPE", "object"),
        ("{", "JSON", "line 1"),
        ('{"model_type": "llama", "model_type": "llama"}', "JSON", "twice"),
        ('{"model_type": "llama", "hidden_size": NaN}', "JSON", "NaN"),
        ({"model_type": "llama", "num_experts": 8, "a_key": 1}, "UNDECLARED", "a_key, num_experts"),
        ({"model_type": "gpt2", "hidden_size": 768}, "UNDECLARED", "hidden_size"),
        ({"model_type": "qwen2", "attention_bias": True}, "UNDECLARED", "attention_bias"),
        ({"model_type": "gpt2", "add_cross_attention": True}, "UNDECLARED", "add_cross_attention"),
        ({"model_type": "llama", "is_encoder_decoder": True}, "UNDECLARED", "is_encoder_decoder"),
        ({"model_type": "falcon", "alibi": True}, "UNDECLARED", "alibi"),
        ({"model_type": "phi3", "attention_bias": True}, "UNDECLARED", "attention_bias"),
        ({"model_type": "qwen3_moe", "decoder_sparse_step": 2}, "UNDECLARED", "decoder_sparse_step"),
        ({"model_type": "qwen3_moe", "mlp_only_layers": [3]}, "UNDECLARED", "mlp_only_layers"),
        ({"model_type": "deepseek_v3", "moe_layer_freq": 2}, "UNDECLARED", "moe_layer_freq"),
        ({"model_type": "llama", "hidden_size": None}, "MISSING", "hidden_size is null"),
        ({"model_type": "mistral", "num_key_value_heads": None}, "MISSING", "num_key_value_heads is null"),
        ({"model_type": "qwen3", "head_dim": None}, "MISSING", "head_dim is null"),
        ({"model_type": "llama", "tie_word_embeddings": None}, "MISSING", "tie_word_embeddings"),
        ({"model_type": "deepseek_v3", "num_experts_per_tok": None}, "MISSING", "num_experts_per_tok"),
        ({"model_type": "llama", "hidden_size": 4096.0}, "TYPE", "hidden_size"),
        ({"model_type": "llama", "hidden_size": True}, "TYPE", "hidden_size"),
        ({"model_type": "llama", "attention_bias": 0}, "TYPE", "attention_bias"),
        ({"model_type": "llama", "num_hidden_layers": 0}, "NONPOS", "num_hidden_layers"),
        ({"model_type": "llama", "hidden_size": 4097}, "DIVIS", "hidden_size = 4097"),
        ({"model_type": "llama", "num_key_value_heads": 7}, "DIVIS", "num_key_value_heads"),
        ({"model_type": "qwen2", "num_attention_heads": 16}, "DIVIS", "num_key_value_heads = 32"),  # its default stays
        ({"model_type": "qwen3_moe", "num_experts": 4, "num_local_experts": 8}, "INCONSISTENT", "num_experts"),
        ({"model_type": "mixtral", "num_experts_per_tok": 9}, "RANGE", "experts_per_token"),
        ({"model_type": "qwen3_moe", "mlp_only_layers": list(range(24))}, "RANGE", "first_dense_layers"),
        ({"model_type": "deepseek_v3", "num_key_value_heads": 64}, "INCONSISTENT", "latent attention"),
    ],
)
def test_a_refusal_names_the_key(config, code, words):
    refused = refusal(adapters.from_config, config)
    assert (refused.code, words in refused.detail) == (code, True), refused


# Latent attention


def test_latent_matrices_by_hand():
    arch = published("deepseek-v3")
    stored = (1536 * 7168, 128 * 192 * 1536, 576 * 7168, 128 * 256 * 512, 7168 * 128 * 128)
    assert params.attention_weights(arch) == arch.latent_weights == sum(stored)
    assert params.block(arch)["norms"] == 2 * 7168 + 1536 + 512
    assert params.coordinates(arch)["used"] == 36_624_596_992  # 36.6B, as the release says with the head
    direct = published("moonlight-16b-a3b")
    assert params.attention_weights(direct) == 16 * 192 * 2048 + 576 * 2048 + 16 * 256 * 512 + 2048 * 16 * 128


@pytest.mark.parametrize("call, args", [(phases.cache_bytes, (1, 1)), (forward.projections, (1,)), (forward.ledger, (agreement.STEP,))])
def test_formulas_in_packed_widths_refuse_latent_attention(call, args):
    assert refusal(call, published("deepseek-v3"), *args).code == "INCONSISTENT"


def test_latent_ledgers_ask_for_latent_attention():
    for call in (latent.forward_ledger, latent.cache_ledger):
        args = (agreement.STEP,) if call is latent.forward_ledger else (1, 1)
        assert refusal(call, published("llama-3.1-8b"), *args).code == "MISSING"


@given(latent_manifests(), workloads())
def test_latent_products_are_two_flops_a_stored_scalar_and_row_and_two_a_pair(arch, run):
    rows, visible = run.batch_size * run.new_rows, run.batch_size * run.visible_rows
    found = 0
    for tensor in tensor_rows(arch):
        part = tensor.name.split(".")
        if len(tensor.shape) != 2 or "embed" in tensor.name or "layers" not in part:
            continue
        if "experts" in part and int(part[part.index("experts") + 1]) >= arch.experts.experts_per_token:
            continue
        found += 2 * tensor.numel * (visible if "kv_b_proj" in part else rows)
    pairs = run.batch_size * run.new_rows * run.visible_rows * arch.num_attention_heads * arch.num_layers
    found += 2 * pairs * (arch.head_dim + arch.latent.value_head_dim) + forward.logits(arch, run)
    assert latent.forward_ledger(arch, run).total == found


def test_a_plan_with_latent_attention_has_its_own_forward_and_cache():
    plan = Plan(plan_id="mla", architecture=published("deepseek-v3"), workload=agreement.STEP, attention_schedule="online")
    found = estimate(plan)
    assert found["forward"].total == 117_146_088_161_280 and found["backward"].total == 2 * 117_146_088_161_280
    assert found["cache payload"].total == 2 * 61 * 576 * 3 * 515
    assert found.not_supplied["attention transfer"] == "no schedule of latent attention"


@pytest.mark.parametrize(
    "changes, code",
    [
        ({"num_key_value_heads": 2}, "INCONSISTENT"),
        ({"qk_norm": "packed"}, "INCONSISTENT"),
        ({"attention_bias": "all"}, "INCONSISTENT"),
        ({"head_dim": 63}, "RANGE"),
        ({"latent": {"kv_rank": 1}}, "TYPE"),
    ],
)
def test_what_latent_attention_leaves_no_room_for(changes, code):
    assert refusal(lambda: published("deepseek-v3").replace(**changes)).code == code
    assert refusal(lambda: Latent(kv_rank=0, rope_head_dim=1, value_head_dim=1)).code == "NONPOS"


def test_a_manifest_without_it_is_written_as_before():
    assert '"latent"' not in published("llama-3.1-8b").to_json()
    assert '"latent":{' in published("deepseek-v3").to_json()
    with_null = json.loads(published("llama-3.1-8b").to_json()) | {"latent": None}
    assert ArchitectureManifest.from_json(json.dumps(with_null)).sha256 == published("llama-3.1-8b").sha256


# The agreement table


@pytest.fixture(scope="module")
def rows():
    with using("solutions"):
        return agreement.table()


def test_the_recorded_table_closes_to_the_last_unit(rows):
    models = {row["model"] for row in rows}
    assert len(models) == len(adapters.ADAPTERS) + len(adapters.published()) >= 25
    assert {row["what"] for row in rows if row["status"] == "exact"} == {"parameters", "forward", "training"}
    assert sum(row["status"] == "exact" for row in rows) == 3 * len(models)
    others = [row for row in rows if row["status"] != "exact"]
    assert {(row["status"], row["what"].endswith(", grouped")) for row in others} == {("explained", True)}
    assert {adapters.from_config(config).hidden_size for config in agreement.configurations().values()}.isdisjoint({515, 3 * 515})


def test_an_explanation_is_the_products_of_the_routes(rows):
    for row in rows:
        if row["what"].endswith("grouped"):
            arch = default(row["model"].removesuffix(" (default)"))
            expert = 3 * arch.hidden_size * arch.experts.intermediate_size
            one = 2 * 3 * 515 * arch.experts.experts_per_token * expert * arch.expert_layers
            assert row["residual"] == -one * (3 if row["what"].startswith("training") else 1)


def test_the_reconciler_finds_a_table_entry_that_is_off_by_one():
    seen = agreement.read("agreement")
    broken = seen.replace(counters=(seen.counters[0].replace(value=seen.counters[0].value + 1), *seen.counters[1:]))
    assert [row["residual"] for row in agreement.table(broken) if row["status"] == "open"] == [1]


# Cases of public reports that name a configuration


def step(rows, phase="training"):
    return Workload(workload_id="case", phase=phase, batch_size=1, new_rows=rows, visible_rows=rows, logits="all")


def trained(arch, rows, attention="rectangular"):
    return training.totals(training.regions(arch, step(rows), attention), {})["model"]


def guessed(arch):
    """head_dim as hidden_size over heads, which is the mistake of several reports."""
    return arch.replace(head_dim=arch.hidden_size // arch.num_attention_heads)


def test_b02_a_tied_head_that_was_copied():
    arch = published("llama-3.2-1b")
    assert params.ledger(arch).total == 1_235_814_400
    assert params.ledger(arch.replace(tie_word_embeddings=False)).total == 1_498_482_688


def test_b04_three_matrices_and_qkv_biases():
    arch = published("qwen1.5-72b")
    assert (arch.attention_bias, arch.mlp) == ("qkv", "gated")
    d, width = 8192, 24576
    assert params.ledger(arch).total == 72_287_920_128 == 2 * 152064 * d + 80 * (4 * d * d + 3 * d * width + 5 * d) + d
    tool = 152064 * 2 * d + 1024 * d + 8 * d * 80 + 2 * d + 80 * 4 * d * d
    assert tool + 80 * params.mlp_weights(arch.replace(mlp="two-matrix"), width) == 56_192_155_648
    assert tool + 80 * params.mlp_weights(arch, width) == 72_298_283_008


def test_b05_a_norm_of_keys_as_wide_as_the_keys():
    arch = published("olmo-2-32b")
    assert arch.qk_norm_scalars == 5120 + 8 * 128
    assert 64 * (2 * 5120 - arch.qk_norm_scalars) == 262_144


def test_b06_only_the_mlp_is_there_once_per_expert():
    for arch, total, active in (
        (published("mixtral-8x22b"), 140_620_634_112, 39_152_031_744),
        (default("mixtral"), 46_702_792_704, 12_879_925_248),
    ):
        idle = arch.num_layers * params.expert_block(arch)["routed.idle"]
        assert (params.ledger(arch).total, params.ledger(arch).total - idle) == (total, active)


def test_b24_attention_is_as_wide_as_its_heads():
    arch = published("qwen3-235b-a22b")
    assert (arch.d_q, arch.hidden_size) == (8192, 4096)
    router = 3 * forward.products(arch, step(196_608))["blocks.router"]
    assert trained(arch, 196_608, "kaplan") - router == 203_979_954_075_992_064
    # What the report had takes the scores from hidden_size, and the projections too.
    assert trained(guessed(arch), 196_608, "kaplan") < Fraction(6, 10) * trained(arch, 196_608, "kaplan")


def test_b25_a_head_width_that_is_given_is_not_d_over_heads():
    arch, rows = published("qwen3-4b"), 4096

    def per_token(arch):
        one = forward.attention_products(arch, step(rows))
        return 3 * arch.num_layers * sum(one.values()) // rows

    assert (arch.head_dim, guessed(arch).head_dim) == (128, 80)
    assert (per_token(arch), per_token(guessed(arch))) == (7_247_757_312, 4_529_848_320)


def test_b30_two_errors_that_cancel_on_one_model():
    assert trained(default("llama"), 4096) == 188_763_812_659_200
    arch = published("llama-3.1-8b")
    assert trained(arch, 4096) == 210_822_764_691_456
    classic = {"mlp": "two-matrix", "intermediate_size": 4 * 4096, "num_key_value_heads": 32}
    assert trained(arch.replace(**classic), 4096) == 197_628_625_158_144
    assert trained(default("llama").replace(**classic), 4096) == 187_939_178_938_368


def test_b31_a_tied_head_is_multiplied_with_like_any_other():
    arch = published("qwen3-0.6b")
    assert arch.tie_word_embeddings
    for tied in (arch, arch.replace(tie_word_embeddings=False)):
        assert forward.logits(tied, step(1, "prefill")) == 311_164_928


def test_b53_a_norm_without_a_shift():
    arch = published("llama-3.1-8b")
    assert params.ledger(arch)["blocks.norms"] == 262_144
    assert params.ledger(arch.replace(norm="layernorm"))["blocks.norms"] == 524_288


def test_b76_keys_are_read_once_per_kv_head():
    arch = published("llama-3.1-8b")
    assert phases.cache_bytes(arch, 1, 4096) == 536_870_912
    assert phases.cache_bytes(arch.replace(num_key_value_heads=32), 1, 4096) == 2_147_483_648


def test_b77_a_cache_as_wide_as_the_heads():
    arch = published("qwen3-4b")
    assert (phases.cache_bytes(arch, 1, 1), phases.cache_bytes(guessed(arch), 1, 1)) == (147_456, 92_160)


def test_b79_a_latent_cache_is_one_row_for_all_heads():
    arch = published("deepseek-v3")
    assert latent.cache_ledger(arch, 1, 1).total == 2 * 35_136
    plain = arch.replace(latent=None, head_dim=7168 // 128)
    assert phases.cache_bytes(plain, 1, 1) == 2 * 874_496
    assert refusal(phases.cache_bytes, arch, 1, 1).code == "INCONSISTENT"


def test_b89_b86_cache_of_a_row():
    assert phases.cache_bytes(default("llama"), 1, 1) == 524_288
    big = default("llama", num_hidden_layers=60, hidden_size=6656, num_attention_heads=52, intermediate_size=17920)
    assert (phases.cache_bytes(big, 1, 512), phases.cache_bytes(big, 1, 512, "fp32")) == (780 * 2**20, 1560 * 2**20)


# The command line


def test_a_configuration_on_the_command_line(tmp_path):
    file, out = tmp_path / "config.json", tmp_path / "manifest.json"
    file.write_text(text("falcon-40b"))
    done = run("config", str(file), "--manifest", str(out))
    assert (done.returncode, done.stderr) == (0, "")
    for words in ("41,303,293,952", "N_used", "by the class's defaults: tie_word_embeddings = true", f"manifest written to {out}"):
        assert words in done.stdout, words
    arch = published("falcon-40b")
    assert out.read_text() == arch.to_json() + "\n"
    again = run("config", "qwen3-4b", "--manifest", str(out))
    assert (again.returncode, again.stdout) == (2, "") and "nothing written, File exists" in again.stderr
    assert out.read_text() == arch.to_json() + "\n"
    assert "41,303,293,952" in run("params", str(out)).stdout


def test_a_published_configuration_by_name_and_what_is_none():
    assert "4,022,468,096" in run("config", "qwen3-4b").stdout
    done = run("config", "no-such-model")
    assert done.returncode == 2 and "qwen3-4b" in done.stderr and "No such file" in done.stderr
