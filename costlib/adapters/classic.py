"""Blocks with LayerNorms and two matrices in the MLP, most of them biased."""

from costlib.adapters.config import LAYERNORM, adapter, biased, classic, decoder, each_layer, per_head


@adapter("phi", LAYERNORM + "resid_pdrop embd_pdrop partial_rotary_factor")
def phi(c):
    """Attention and MLP beside each other under one LayerNorm; everything biased, the head too.

    Extra sets: with qk_layernorm, scale and shift over one head's width for q and for k of each block.
    """
    one = decoder(c, 2048, 8192, 24, 32, None, 51200) | classic(norms=1)
    extra = ()
    if c.flag("qk_layernorm", False):
        width = (per_head(one["hidden_size"], one["num_attention_heads"]),)
        names = (f"{part}_layernorm.{kind}" for part in "qk" for kind in ("weight", "bias"))
        extra = tuple(tensor for name in names for tensor in each_layer(one["num_layers"], name, width))
    return one | {"attention_bias": "all", "mlp_bias": True, "head_bias": True, "extra_trainable_sets": extra}


@adapter(
    "gpt2",
    LAYERNORM + "activation_function resid_pdrop embd_pdrop attn_pdrop n_ctx summary_type summary_use_proj "
    "summary_activation summary_proj_to_labels summary_first_dropout scale_attn_weights gradient_checkpointing "
    "scale_attn_by_inverse_layer_idx reorder_and_upcast_attn task_specific_params",
)
def gpt2(c):
    """Learned positions, everything biased but the head; matrices are stored transposed (Conv1D)."""
    c.only("add_cross_attention", False)
    d, heads = c.size("n_embd", 768), c.size("n_head", 12)
    return classic() | {
        "num_layers": c.size("n_layer", 12),
        "hidden_size": d,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "head_dim": per_head(d, heads),
        "intermediate_size": c.size("n_inner", None, None) or 4 * d,
        "vocab_size": c.size("vocab_size", 50257),
        "tie_word_embeddings": c.flag("tie_word_embeddings", True),
        "position": "learned",
        "max_positions": c.size("n_positions", 1024),
        "attention_bias": "all",
        "mlp_bias": True,
    }


@adapter(
    "gpt_neox",
    LAYERNORM + "hidden_dropout classifier_dropout use_parallel_residual rotary_pct rotary_emb_base is_decoder",
)
def gpt_neox(c):
    """Two LayerNorms in a block also where attention and MLP run beside each other; biases but on the head."""
    d, heads = c.size("hidden_size", 6144), c.size("num_attention_heads", 64)
    return classic() | biased(c, default=True) | {
        "num_layers": c.size("num_hidden_layers", 44),
        "hidden_size": d,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "head_dim": per_head(d, heads),
        "intermediate_size": c.size("intermediate_size", 24576),
        "vocab_size": c.size("vocab_size", 50432),
        "tie_word_embeddings": c.flag("tie_word_embeddings", False),
        "mlp_bias": True,
    }


@adapter("falcon", LAYERNORM + "hidden_dropout activation apply_residual_connection_post_layernorm")
def falcon(c):
    """One K/V head with multi_query, num_kv_heads with the new architecture, one per query head with neither.

    Beside each other, attention and MLP share one LayerNorm, or have one each in the new architecture.
    Refused: alibi, a position scheme that no manifest names.
    """
    c.only("alibi", False)
    d, heads = c.size("hidden_size n_embed", 4544), c.size("num_attention_heads", 71)
    kv = c.size("num_kv_heads", heads, heads)
    new, multi = c.flag("new_decoder_architecture", False), c.flag("multi_query", True)
    parallel, biased = c.flag("parallel_attn", True), c.flag("bias", False)
    norms = c.size("num_ln_in_parallel_attn", None, None) or (2 if new else 1)
    return classic(2 if not parallel or norms == 2 else 1) | {
        "num_layers": c.size("num_hidden_layers", 32),
        "hidden_size": d,
        "num_attention_heads": heads,
        "num_key_value_heads": kv if new else 1 if multi else heads,
        "head_dim": per_head(d, heads),
        "intermediate_size": c.size("ffn_hidden_size", None, None) or 4 * d,
        "vocab_size": c.size("vocab_size", 65024),
        "tie_word_embeddings": c.flag("tie_word_embeddings", True),
        "attention_bias": "all" if biased else "none",
        "mlp_bias": biased,
    }
