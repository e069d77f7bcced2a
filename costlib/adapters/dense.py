"""Blocks as Llama has them: a gated MLP, RMSNorms, rotary positions, q, k and v of their own widths."""

from costlib.adapters.config import WINDOWS, adapter, biased, decoder


@adapter("llama", "pretraining_tp")
def llama(c):
    """Biases on all four attention projections or none, on all three matrices of the MLP or none."""
    return decoder(c, 4096, 11008, 32, 32, None, 32000) | biased(c) | {"mlp_bias": c.flag("mlp_bias", False)}


@adapter("mistral", WINDOWS)
def mistral(c):
    """No biases. A window changes which pairs are legal, not what the rectangle holds."""
    return decoder(c, 4096, 14336, 32, 32, 8, 32000, null_heads=False)


@adapter("qwen2", WINDOWS + "use_mrope")
def qwen2(c):
    """Biases on q, k and v, none on o, whatever the configuration says; there is no key for it."""
    return decoder(c, 4096, 22016, 32, 32, 32, 151936) | {"attention_bias": "qkv"}


@adapter("qwen3", WINDOWS)
def qwen3(c):
    """A norm of one head's width for queries and one for keys; head_dim is 128 unless given, never d over heads."""
    return decoder(c, 4096, 22016, 32, 32, 32, 151936, head_dim=128) | biased(c) | {"qk_norm": "per-head"}


@adapter("gemma", "hidden_activation use_bidirectional_attention")
def gemma(c):
    """Tied; head_dim is 256 unless given, so that d_q is seldom d."""
    return decoder(c, 3072, 24576, 28, 16, 16, 256000, 256, tied=True, null_heads=False) | biased(c)


@adapter(
    "gemma2",
    WINDOWS + "hidden_activation use_bidirectional_attention query_pre_attn_scalar final_logit_softcapping "
    "attn_logit_softcapping cache_implementation sliding_window_size",
)
def gemma2(c):
    """As gemma, with a norm before and after each half of a block: four."""
    one = decoder(c, 2304, 9216, 26, 8, 4, 256000, 256, tied=True, null_heads=False)
    return one | biased(c) | {"norms_per_block": 4}


@adapter("phi3", WINDOWS + "resid_pdrop embd_pdrop original_max_position_embeddings partial_rotary_factor")
def phi3(c):
    """No biases; q, k, v in one matrix, gate and up in one: the same scalars."""
    c.only("attention_bias", False)  # some releases carry the key; the class has no bias to switch on
    return decoder(c, 3072, 8192, 32, 32, None, 32064)


@adapter("olmo", "clip_qkv")
def olmo(c):
    """Its LayerNorms learn nothing, so the manifest declares none: their work is not in forward.primitives."""
    one = decoder(c, 4096, 11008, 32, 32, None, 50304)
    return one | biased(c) | {"norms_per_block": 0, "final_norm": False}


@adapter("olmo2")
def olmo2(c):
    """Norms after, not before, each half of a block; one over all query heads and one over all key heads."""
    return decoder(c, 4096, 11008, 32, 32, None, 50304) | biased(c) | {"qk_norm": "packed"}
