"""Reference answers of Lab 10. Other exercises are called through costlib, so that filled and empty holes mix."""

from fractions import Fraction

from costlib import napkin, phases
from costlib.domain import require, require_divides
from costlib.policies import BITS
from costlib.units import ceil_div


def phase_record(workload):
    training = workload.phase == "training"
    return {
        "projected_rows": workload.new_rows,
        "rectangle": (workload.new_rows, workload.visible_rows),
        "history_rows": workload.visible_rows - workload.new_rows,
        "kept_rows": 0 if training else workload.new_rows,
        "retains_for_backward": training,
        "logit_rows": workload.new_rows if workload.logits == "all" else 1,
    }


def projected_rows(prompt, tokens, cached):
    return prompt + tokens - 1 if cached else tokens * prompt + tokens * (tokens - 1) // 2


def cache_bytes(arch, batch, rows, dtype="bf16"):
    return batch * rows * arch.num_layers * 2 * arch.d_kv * BITS[dtype] // 8


def window_cache_bytes(arch, batch, rows, window, windowed_layers, dtype="bf16"):
    full = arch.num_layers - windowed_layers
    require(full >= 0, "RANGE", f"windowed_layers = {windowed_layers} of {arch.num_layers} layers")
    one = phases.cache_bytes(arch, batch, 1, dtype) // arch.num_layers
    return {"global": full * rows * one, "windowed": windowed_layers * min(rows, window) * one}


def quantized_cache_bytes(arch, batch, rows, dtype, group, scale_dtype="fp16", per_group=1):
    heads = batch * rows * arch.num_layers * 2 * arch.num_key_value_heads
    groups = heads * ceil_div(arch.head_dim, group)
    return {
        "codes": phases.cache_bytes(arch, batch, rows, dtype),
        "metadata": ceil_div(groups * per_group * BITS[scale_dtype], 8),
    }


def latent_cache_bytes(arch, batch, rows, latent, rope, dtype="bf16", scales=0):
    slots = batch * rows * arch.num_layers
    return {
        "latent": ceil_div(slots * latent * BITS[dtype], 8),
        "rope": slots * rope * BITS["bf16"] // 8,
        "scales": slots * scales * BITS["fp32"] // 8,
    }


def paged_bytes(arch, lengths, page, dtype="bf16"):
    rows, allocated = sum(lengths), sum(ceil_div(length, page) * page for length in lengths)
    logical = phases.cache_bytes(arch, 1, rows, dtype)
    return {"logical": logical, "unused": phases.cache_bytes(arch, 1, allocated, dtype) - logical}


def rectangular_attention(B, Hq, Hkv, Sq, Sk, dh, dtype="bf16"):
    require_divides(Hkv, Hq, "Hkv", "Hq")
    flops = 2 * napkin.matmul_flops(Sq, dh, Sk, batch=B * Hq)
    kv_bytes = 2 * B * Hkv * Sk * dh * BITS[dtype] // 8
    return {"flops": flops, "kv_bytes": kv_bytes, "intensity": Fraction(flops, kv_bytes)}


def decode_intensity(used, kv_bytes, batch, attention_flops=0):
    return Fraction(batch * (2 * used + attention_flops), 2 * used + batch * kv_bytes)


def ridge_context(used, bytes_per_row, ridge):
    return ceil_div(2 * used, ridge * bytes_per_row) - 1


def ridge_batch(used, kv_bytes, ridge):
    spare = 2 * used - ridge * kv_bytes
    return ceil_div(2 * used * ridge, spare) if spare > 0 else 0


def batch_capacity(arch, lengths, memory_bytes, weight_bytes, workspace_bytes=0, dtype="bf16"):
    return tuple(
        napkin.max_concurrent_requests(
            memory_bytes, weight_bytes, phases.cache_bytes(arch, 1, length, dtype), workspace_bytes
        )
        for length in lengths
    )
