"""Reference answers of Lab 03. Other exercises are called through costlib, so that filled and empty holes mix."""

from costlib import params
from costlib.domain import require


def attention_weights(arch):
    return arch.latent_weights or 2 * arch.hidden_size * (arch.d_q + arch.d_kv)


def attention_biases(arch):
    qkv = 0 if arch.latent else arch.d_q + 2 * arch.d_kv
    return {"none": 0, "qkv": qkv, "all": qkv + arch.hidden_size}[arch.attention_bias]


def mlp_weights(arch, width):
    return (3 if arch.mlp == "gated" else 2) * arch.hidden_size * width


def mlp_biases(arch):
    inner = (2 if arch.mlp == "gated" else 1) * arch.intermediate_size
    return inner + arch.hidden_size if arch.mlp_bias else 0


def norm_scalars(arch, width):
    return {"rmsnorm": 1, "layernorm": 2}[arch.norm] * width


def position_scalars(arch):
    return arch.max_positions * arch.hidden_size if arch.position == "learned" else 0


def vocabulary(arch):
    table = arch.vocab_size * arch.hidden_size
    return {
        "embedding": table,
        "head": 0 if arch.tie_word_embeddings else table,
        "head_bias": arch.vocab_size if arch.head_bias else 0,
    }


def block(arch):
    return {
        "attention.weights": params.attention_weights(arch),
        "attention.biases": params.attention_biases(arch),
        "mlp.weights": params.mlp_weights(arch, arch.intermediate_size),
        "mlp.biases": params.mlp_biases(arch),
        "norms": arch.norms_per_block * params.norm_scalars(arch, arch.hidden_size) + arch.qk_norm_scalars,
    }


def expert_block(arch):
    experts = arch.experts
    require(experts is not None, "MISSING", f"{arch.manifest_id} declares no experts")
    expert = params.mlp_weights(arch, experts.intermediate_size)
    return {
        "router": experts.num_experts * arch.hidden_size,
        "shared": experts.shared_experts * expert,
        "routed.active": experts.experts_per_token * expert,
        "routed.idle": (experts.num_experts - experts.experts_per_token) * expert,
    }


def ledger(arch):
    one, vocabulary = params.block(arch), params.vocabulary(arch)
    return {
        "blocks.attention": arch.num_layers * one["attention"],
        "blocks.mlp": (arch.num_layers - arch.expert_layers) * one["mlp"],
        "blocks.experts": arch.expert_layers * params.expert_block(arch).total if arch.experts else 0,
        "blocks.norms": arch.num_layers * one["norms"],
        "embedding": vocabulary["embedding"],
        "positions": params.position_scalars(arch),
        "final_norm": params.norm_scalars(arch, arch.hidden_size) if arch.final_norm else 0,
        "head": vocabulary["head"] + vocabulary["head_bias"],
        "extra": sum(tensor.numel for tensor in arch.extra_trainable_sets),
    }


def unique_scalars(tensors):
    return sum(tensor.numel for tensor in tensors if tensor.alias_of is None)


def inventory(entries):
    parameters = [entry for entry in entries if entry.kind == "parameter"]
    unique = {entry.storage: entry for entry in parameters}.values()
    buffers = sum(entry.numel for entry in entries if entry.kind == "buffer" and entry.persistent)
    named = sum(entry.numel for entry in parameters)
    return {
        "unique": sum(entry.numel for entry in unique),
        "trainable": sum(entry.numel for entry in unique if entry.trainable),
        "named": named,
        "state_entries": named + buffers,
        "buffers": buffers,
    }


def coordinates(arch):
    dense = arch.num_layers - arch.expert_layers
    kaplan = arch.num_layers * params.attention_weights(arch)
    kaplan += dense * params.mlp_weights(arch, arch.intermediate_size)
    if arch.experts:
        experts = params.expert_block(arch)
        kaplan += arch.expert_layers * (experts.total - experts["routed.idle"])
    return {
        "unique": params.ledger(arch).total,
        "used": kaplan + arch.vocab_size * arch.hidden_size,
        "kaplan": kaplan,
    }
