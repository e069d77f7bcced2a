"""Mixtures of experts, one of them with latent attention."""

from costlib.adapters.config import ROUTING, WINDOWS, adapter, biased, decoder, each_layer
from costlib.domain import Count, require
from costlib.records import Experts, Latent


@adapter("mixtral", WINDOWS + ROUTING + "router_jitter_noise")
def mixtral(c):
    """Experts in every block, of the width that other models give their MLP."""
    one = decoder(c, 4096, 14336, 32, 32, 8, 32000, null_heads=False)
    experts = Experts(
        num_experts=c.size("num_local_experts num_experts", 8),
        experts_per_token=c.size("num_experts_per_tok", 2),
        intermediate_size=one["intermediate_size"],
    )
    return one | {"experts": experts}


@adapter("qwen3_moe", WINDOWS + ROUTING)
def qwen3_moe(c):
    """Dense blocks, if any, must be the first ones. head_dim is d over heads unless given, unlike qwen3's."""
    one = decoder(c, 2048, 6144, 24, 32, 4, 151936, null_heads=False)
    c.only("decoder_sparse_step", 1)
    dense = c.read("mlp_only_layers", list, [], [])
    require(dense == list(range(len(dense))), "UNDECLARED", f"qwen3_moe.mlp_only_layers = {dense}; only the first blocks can be dense")
    experts = Experts(
        num_experts=c.size("num_experts num_local_experts", 128),
        experts_per_token=c.size("num_experts_per_tok", 8),
        intermediate_size=c.size("moe_intermediate_size", 768),
        first_dense_layers=len(dense),
    )
    return one | biased(c) | {"qk_norm": "per-head", "experts": experts}


@adapter(
    "deepseek_v3",
    ROUTING + "pretraining_tp rope_interleave routed_scaling_factor n_group topk_group topk_method scoring_func ep_size "
    "aux_loss_alpha seq_aux num_nextn_predict_layers num_mtp_layers quantization_config qk_head_dim head_dim",
)
def deepseek_v3(c):
    """Latent attention, shared experts, first blocks dense. Source of the widths: q and k heads are nope + rope.

    The router's e_score_correction_bias is a buffer, moved by a rule and not by a gradient, and not
    counted; nor are the layers that predict further tokens, which the causal model does not build, nor
    the scales of quantized blocks. Extra sets: with attention_bias, the biases of q_a, kv_a and o.
    """
    d, heads, layers = c.size("hidden_size", 7168), c.size("num_attention_heads", 128), c.size("num_hidden_layers", 61)
    c.only("moe_layer_freq", 1)
    rope = c.size("qk_rope_head_dim", 64)
    latent = Latent(
        kv_rank=c.size("kv_lora_rank", 512),
        rope_head_dim=rope,
        value_head_dim=c.size("v_head_dim", 128),
        query_rank=c.size("q_lora_rank", 1536, 0),
    )
    experts = Experts(
        num_experts=c.size("n_routed_experts num_local_experts", 256),
        experts_per_token=c.size("num_experts_per_tok", 8),
        intermediate_size=c.size("moe_intermediate_size", 2048),
        shared_experts=c.read("n_shared_experts", Count, 1),
        first_dense_layers=c.read("first_k_dense_replace", Count, 3),
    )
    biases = {"q_a_proj": latent.query_rank, "kv_a_proj_with_mqa": latent.kv_rank + rope, "o_proj": d}
    biased = c.flag("attention_bias", False)
    return {
        "num_layers": layers,
        "hidden_size": d,
        "num_attention_heads": heads,
        "num_key_value_heads": c.size("num_key_value_heads", heads, heads),
        "head_dim": c.read("qk_nope_head_dim", Count, 128) + rope,
        "intermediate_size": c.size("intermediate_size", 18432),
        "vocab_size": c.size("vocab_size", 129280),
        "tie_word_embeddings": c.flag("tie_word_embeddings", False),
        "latent": latent,
        "experts": experts,
        "extra_trainable_sets": tuple(
            tensor for name, width in biases.items() if biased and width for tensor in each_layer(layers, f"{name}.bias", (width,))
        ),
    }
