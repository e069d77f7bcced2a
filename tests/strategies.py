"""Valid records at random, small enough to count by loops: `from strategies import manifests, workloads`.

Extents are drawn one by one, so S is rarely d, d_q rarely d and d_ff rarely a multiple of d.
Any field can be fixed: `manifests(experts=None, tie_word_embeddings=True)`, `workloads(phase="decode")`.
"""

from hypothesis import strategies as st

from costlib.records import ArchitectureManifest, Experts, Latent, Tensor, Workload

PHASES = ("training", "prefill", "prefill-chunk", "decode")


def sizes(most=48):
    return st.integers(1, most)


@st.composite
def expert_mixtures(draw, layers):
    """Experts that a model of that many layers can hold."""
    count = draw(sizes(6))
    return Experts(
        num_experts=count,
        experts_per_token=draw(st.integers(1, count)),
        intermediate_size=draw(sizes(20)),
        shared_experts=draw(st.integers(0, 2)),
        first_dense_layers=draw(st.integers(0, layers - 1)),
    )


@st.composite
def manifests(draw, most=48, **fixed):
    """Manifests with every optional part on and off, extents up to `most`, heads up to 4 groups of 4."""
    layers = fixed.get("num_layers") or draw(sizes(4))
    kv_heads = fixed.get("num_key_value_heads") or draw(sizes(4))
    learned = fixed.get("position", "learned" if draw(st.booleans()) else "rope") == "learned"
    experts = fixed["experts"] if "experts" in fixed else draw(st.none() | expert_mixtures(layers))
    names = draw(st.lists(st.sampled_from(("adapter", "prefix", "scale")), unique=True, max_size=2))
    fields = {
        "manifest_id": "drawn",
        "num_layers": layers,
        "hidden_size": draw(sizes(most)),
        "num_attention_heads": kv_heads * draw(sizes(4)),
        "num_key_value_heads": kv_heads,
        "head_dim": draw(sizes(16)),
        "intermediate_size": draw(sizes(3 * most)),
        "vocab_size": draw(sizes(4 * most)),
        "tie_word_embeddings": draw(st.booleans()),
        "mlp": draw(st.sampled_from(("gated", "two-matrix"))),
        "norm": draw(st.sampled_from(("rmsnorm", "layernorm"))),
        "norms_per_block": draw(st.integers(0, 4)),
        "final_norm": draw(st.booleans()),
        "qk_norm": draw(st.sampled_from(("none", "per-head", "packed"))),
        "position": "learned" if learned else draw(st.sampled_from(("rope", "sinusoidal"))),
        "max_positions": draw(sizes(most)) if learned else 0,
        "attention_bias": draw(st.sampled_from(("none", "qkv", "all"))),
        "mlp_bias": experts is None and draw(st.booleans()),
        "head_bias": draw(st.booleans()),
        "experts": experts,
        "extra_trainable_sets": tuple(
            Tensor(name=f"{name}.weight", shape=tuple(draw(st.lists(sizes(9), max_size=3)))) for name in names
        ),
    }
    return ArchitectureManifest(**{**fields, **fixed})


@st.composite
def latent_manifests(draw, most=48, **fixed):
    """Manifests with latent attention, which most ledgers refuse and `manifests` therefore never draws."""
    arch = draw(manifests(most, num_key_value_heads=1, attention_bias="none", qk_norm="none", **fixed))
    part = Latent(
        kv_rank=draw(sizes(most)),
        rope_head_dim=draw(st.integers(1, arch.head_dim)),
        value_head_dim=draw(sizes(16)),
        query_rank=draw(st.integers(0, most)),
    )
    return arch.replace(num_key_value_heads=arch.num_attention_heads, latent=part)


@st.composite
def workloads(draw, most=60, phase=None, **fixed):
    """Workloads of every phase, or of one: up to 5 sequences, `most` new rows and as many before them."""
    phase = phase or draw(st.sampled_from(PHASES))
    new = fixed.get("new_rows") or (1 if phase == "decode" else draw(sizes(most)))
    prefix = 0 if phase in ("training", "prefill") else draw(st.integers(0, most))
    fields = {
        "workload_id": "drawn",
        "phase": phase,
        "batch_size": draw(sizes(5)),
        "new_rows": new,
        "visible_rows": new + prefix,
        "logits": draw(st.sampled_from(("all", "final"))),
    }
    return Workload(**{**fields, **fixed})
