"""Reference answers of Lab 01. Other exercises are called through costlib, so that filled and empty holes mix."""

from fractions import Fraction
from math import isqrt

from costlib import napkin
from costlib.domain import require, require_divides
from costlib.napkin import BF16, OPTIMIZER_BYTES
from costlib.units import SECONDS_PER_DAY, ceil_div


def matmul_flops(m, k, n, batch=1):
    return 2 * batch * m * k * n


def linear_backward(m, k, n):
    return {"dX": napkin.matmul_flops(m, n, k), "dW": napkin.matmul_flops(k, m, n)}


def padded_matmul_flops(m, k, n, tile=128, pad_m=True):
    m, k, n = (ceil_div(x, tile) * tile if pad else x for x, pad in ((m, pad_m), (k, True), (n, True)))
    return napkin.matmul_flops(m, k, n)


def params_per_layer(d_model, d_ff, n_heads, n_kv_heads, d_head, gated=True):
    require_divides(n_kv_heads, n_heads, "n_kv_heads", "n_heads")
    return {
        "attn": 2 * d_model * d_head * (n_heads + n_kv_heads),
        "mlp": (3 if gated else 2) * d_model * d_ff,
        "norms": 2 * d_model,
    }


def total_params(n_layers, d_model, d_ff, n_heads, n_kv_heads, d_head, vocab, tied=False, gated=True):
    layer = napkin.params_per_layer(d_model, d_ff, n_heads, n_kv_heads, d_head, gated)
    return {
        "non_embedding.blocks": n_layers * layer.total,
        "non_embedding.final_norm": d_model,
        "embedding.input": vocab * d_model,
        "embedding.output": 0 if tied else vocab * d_model,
    }


def training_flops(n_params, n_tokens):
    return 6 * n_params * n_tokens


def training_flops_exact(B, T, d_model, d_ff, n_heads, n_kv_heads, d_head, n_layers, gated=True, vocab=0):
    layer = napkin.params_per_layer(d_model, d_ff, n_heads, n_kv_heads, d_head, gated)
    scores = napkin.matmul_flops(T, d_head, T, batch=B * n_heads)
    return {
        "mlp": n_layers * napkin.training_flops(layer["mlp"], B * T),
        "attn_proj": n_layers * napkin.training_flops(layer["attn"], B * T),
        "attn_seq": n_layers * 3 * 2 * scores,
        "head": napkin.training_flops(d_model * vocab, B * T),
    }


def moe_parameter_split(
    n_layers, d_model, d_expert, n_experts, top_k, n_heads, n_kv_heads, d_head, shared_experts=0
):
    require(top_k <= n_experts, "RANGE", f"top_k = {top_k} exceeds n_experts = {n_experts}")
    layer = napkin.params_per_layer(d_model, d_expert, n_heads, n_kv_heads, d_head)
    return {
        "active.attn": n_layers * layer["attn"],
        "active.router": n_layers * d_model * n_experts,
        "active.shared": n_layers * shared_experts * layer["mlp"],
        "active.routed": n_layers * top_k * layer["mlp"],
        "idle.routed": n_layers * (n_experts - top_k) * layer["mlp"],
    }


def training_memory(n_params, optimizer="adam", zero_stage=0, dp_degree=1, activation_bytes=0):
    shard = ceil_div(n_params, dp_degree)
    return {
        "weights": BF16 * (shard if zero_stage >= 3 else n_params),
        "grads": BF16 * (shard if zero_stage >= 2 else n_params),
        "optimizer": OPTIMIZER_BYTES[optimizer] * (shard if zero_stage >= 1 else n_params),
        "activations": activation_bytes,
    }


def kv_cache_bytes(n_layers, n_kv_heads, d_head, seq_len, batch, bytes_per=BF16):
    return 2 * n_layers * n_kv_heads * d_head * seq_len * batch * bytes_per


def max_concurrent_requests(memory_bytes, weight_bytes, kv_bytes, workspace_bytes=0):
    return max(0, memory_bytes - weight_bytes - workspace_bytes) // kv_bytes


def budget_to_flops(chip, n_chips, days, mfu=Fraction(2, 5)):
    return int(chip.peak_flops * n_chips * days * SECONDS_PER_DAY * mfu)


def chinchilla_split(flops, tokens_per_param=20):
    n_params = isqrt(flops // (6 * tokens_per_param))
    return n_params, tokens_per_param * n_params


def budget_report(
    chip,
    n_chips,
    days,
    mfu=Fraction(2, 5),
    usd_per_chip_hour=Fraction(5, 2),
    usd_per_kwh=Fraction(12, 100),
    pue=Fraction(6, 5),
):
    flops = napkin.budget_to_flops(chip, n_chips, days, mfu)
    n_params, n_tokens = napkin.chinchilla_split(flops)
    chip_hours = n_chips * days * 24
    kwh = Fraction(chip.watts * chip_hours, 1000)
    rental = usd_per_chip_hour * chip_hours
    return {
        "flops": flops,
        "params": n_params,
        "tokens": n_tokens,
        "state_bytes": napkin.training_memory(n_params).total,
        "cluster_bytes": n_chips * chip.memory_bytes,
        "weight_bytes": BF16 * n_params,
        "kwh": kwh,
        "kwh_pue": kwh * pue,
        "usd_energy": kwh * usd_per_kwh,
        "usd_energy_pue": kwh * pue * usd_per_kwh,
        "usd_rental": rental,
        "usd_per_1e21_flops": rental * 10**21 / Fraction(flops),
    }


def sanity_checks(report, memory_share=Fraction(7, 10), unique_tokens=None, largest_servable=None, most_kwh=None):
    limits = {
        "memory": ("state_bytes", memory_share * report["cluster_bytes"]),
        "data": ("tokens", unique_tokens),
        "servable": ("params", largest_servable),
        "energy": ("kwh_pue", most_kwh),
    }
    return {
        check: "not checked" if limit is None else "ok" if report[key] <= limit else "fail"
        for check, (key, limit) in limits.items()
    }
