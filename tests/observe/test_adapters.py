"""Every adapter against the class it stands for: three shapes each, no extent equal to another in the odd one."""

import pytest

from costlib import adapters, forward, latent, params, training
from costlib.observe import agreement, need, parameters
from costlib.records import Workload
from costlib.schema import tensor_rows

STEP = Workload(workload_id="step", phase="training", batch_size=2, new_rows=7, visible_rows=7, logits="all")


def llama_like(small, odd, wide):
    """Three shapes of (d, width, layers, heads, kv heads, vocabulary), with keys of their own each."""
    names = "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size".split()
    return [dict(zip(names, shape)) | more for shape, more in (small, odd, wide)]


PLAIN, ODD, WIDE = (16, 24, 1, 4, 2, 33), (60, 250, 3, 6, 2, 1009), (48, 40, 2, 4, 4, 65)


def three(odd=None, wide=None, small=None):
    return llama_like((PLAIN, small or {}), (ODD, odd or {}), (WIDE, wide or {}))


MOE = {"num_experts_per_tok": 2, "num_local_experts": 5}
QWEN_MOE = {"num_experts_per_tok": 3, "num_experts": 7, "moe_intermediate_size": 26}
MLA = {
    "kv_lora_rank": 22, "q_lora_rank": 34, "qk_rope_head_dim": 6, "qk_nope_head_dim": 10, "v_head_dim": 14, "n_routed_experts": 8,
    "num_experts_per_tok": 3, "moe_intermediate_size": 18, "first_k_dense_replace": 1, "n_group": 2, "topk_group": 1,
}  # fmt: skip
SHAPES = {
    "llama": three({"head_dim": 20, "attention_bias": True}, {"mlp_bias": True, "tie_word_embeddings": True}),
    "mistral": three({"head_dim": 14}, {"tie_word_embeddings": True, "sliding_window": None}),
    "qwen2": three({"head_dim": 18}, {"tie_word_embeddings": True, "use_sliding_window": True, "max_window_layers": 1}),
    "qwen3": three({"head_dim": 22, "attention_bias": True}, {"tie_word_embeddings": True}),
    "gemma": three({"head_dim": 26, "attention_bias": True}, {"tie_word_embeddings": False}),
    "gemma2": three({"head_dim": 26, "attention_bias": True}, {"tie_word_embeddings": False}),
    "phi": three({"qk_layernorm": True, "num_key_value_heads": 6, "partial_rotary_factor": 0.4}, {"num_key_value_heads": None}),
    "phi3": three({"head_dim": 10, "attention_bias": False}, {"tie_word_embeddings": True}),
    "gpt2": [
        {"n_embd": 16, "n_layer": 1, "n_head": 4, "vocab_size": 33, "n_positions": 9},
        {"n_embd": 66, "n_layer": 3, "n_head": 3, "vocab_size": 1009, "n_positions": 77, "n_inner": 250},
        {"n_embd": 48, "n_layer": 2, "n_head": 6, "vocab_size": 65, "n_positions": 8, "tie_word_embeddings": False},
    ],
    "gpt_neox": three({"attention_bias": False, "use_parallel_residual": False}, {"tie_word_embeddings": True}),
    "falcon": [
        {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 33, "bias": True, "parallel_attn": False},
        {
            "hidden_size": 66, "num_hidden_layers": 3, "num_attention_heads": 33, "num_kv_heads": 11, "vocab_size": 1009,
            "new_decoder_architecture": True, "ffn_hidden_size": 250, "tie_word_embeddings": False,
        },
        {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 6, "vocab_size": 65, "multi_query": False},
    ],  # fmt: skip
    "olmo": three({"head_dim": 14, "attention_bias": True}, {"tie_word_embeddings": True, "clip_qkv": 8.0}),
    "olmo2": three({"head_dim": 14, "attention_bias": True}, {"num_key_value_heads": None}),
    "mixtral": three(MOE | {"head_dim": 14}, MOE | {"tie_word_embeddings": True}, MOE),
    "qwen3_moe": three(QWEN_MOE | {"head_dim": 14, "mlp_only_layers": [0]}, QWEN_MOE | {"attention_bias": True}, QWEN_MOE),
    "deepseek_v3": three(
        MLA | {"num_key_value_heads": 6, "n_shared_experts": 2, "attention_bias": True},
        MLA | {"q_lora_rank": None},
        MLA | {"num_key_value_heads": None, "first_k_dense_replace": 0},
    ),
}
CASES = [(name, i) for name in SHAPES for i in range(3)]


def case(name, i):
    config = {"model_type": name} | SHAPES[name][i]
    if name == "phi3":  # its padding row lies beyond these vocabularies
        config |= {"pad_token_id": None}
    if name == "gpt_neox":
        config.pop("num_key_value_heads")
    return config


def test_every_adapter_has_three_shapes():
    assert SHAPES.keys() == adapters.ADAPTERS.keys() and all(len(shapes) == 3 for shapes in SHAPES.values())


@pytest.mark.parametrize("name, i", CASES)
def test_the_manifest_counts_what_the_class_builds(name, i):
    config = case(name, i)
    arch, model = adapters.from_config(config), agreement.build(config)
    assert params.ledger(arch).total == sum(p.numel() for p in model.parameters())
    assert params.unique_scalars(tensor_rows(arch)) == params.ledger(arch).total
    assert not any("correction_bias" in name for name, _ in model.named_parameters())


@pytest.mark.parametrize("name, i", CASES)
def test_forward_and_training_flops_are_those_of_the_counter(name, i):
    config = case(name, i)
    arch, seen = adapters.from_config(config), agreement.flops(agreement.build(config), STEP)
    if arch.latent:
        one = latent.forward_ledger(arch, STEP).total
        assert seen == (one, 3 * one)
    else:
        assert seen == (forward.ledger(arch, STEP).total, training.totals(training.regions(arch, STEP), {})["model"])


@pytest.mark.parametrize("name, i", CASES)
def test_what_transformers_writes_out_is_read_and_says_the_same(name, i):
    _, transformers = need()
    config = case(name, i)
    written = transformers.AutoConfig.for_model(**config).to_dict()
    assert adapters.from_config(written) == adapters.from_config(config)


@pytest.mark.parametrize("name", adapters.ADAPTERS)
def test_a_default_is_the_one_of_the_class(name):
    _, transformers = need()
    made = transformers.AutoConfig.for_model(name)
    for key, default in adapters.keys(name)["read"].items():
        if default is not None:
            assert getattr(made, key) == default, key


@pytest.mark.parametrize("name", ["llama", "mistral", "qwen2", "qwen3", "gemma", "olmo"])
def test_names_and_shapes_are_those_of_the_state_dict_where_the_class_stores_what_the_manifest_says(name):
    config = case(name, 1)
    seen = {e.name: e.shape for e in parameters.state_entries(agreement.build(config)) if e.kind == "parameter"}
    assert seen == {row.name: row.shape for row in tensor_rows(adapters.from_config(config))}


@pytest.mark.parametrize("i", range(3))
def test_latent_attention_is_stored_as_declared(i):
    config = case("deepseek_v3", i)
    seen = {e.name: e.shape for e in parameters.state_entries(agreement.build(config)) if ".self_attn." in e.name}
    assert seen == {row.name: row.shape for row in tensor_rows(adapters.from_config(config)) if ".self_attn." in row.name}


@pytest.mark.parametrize("name", ["mixtral", "qwen3_moe", "deepseek_v3"])
def test_what_runs_in_grouped_mm_is_not_counted(name):
    config = case(name, 2) | {"moe_intermediate_size": 24}  # grouped_mm takes rows of whole 16 bytes only
    batched, grouped = (agreement.build(config, experts) for experts in ("batched_mm", "grouped_mm"))
    one = agreement.routed(batched, STEP)
    assert one > 0
    assert [a - b for a, b in zip(agreement.flops(batched, STEP), agreement.flops(grouped, STEP))] == [one, 3 * one]


@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize("more", [{}, {"num_ln_in_parallel_attn": 1}, {"num_ln_in_parallel_attn": 2}, {"parallel_attn": False}])
def test_falcon_has_one_norm_or_two(new, more):
    config = {"model_type": "falcon"} | SHAPES["falcon"][1] | {"new_decoder_architecture": new} | more
    assert params.ledger(adapters.from_config(config)).total == sum(p.numel() for p in agreement.build(config).parameters())
