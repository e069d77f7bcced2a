"""Reference answers of Lab 07. Other exercises are called through costlib, so that filled and empty holes mix."""

from fractions import Fraction

from costlib import forward, napkin, params, training
from costlib.policies import Region


def linear(m, k, n, need_dx=True, need_dw=True):
    return {
        "forward": napkin.matmul_flops(m, k, n),
        "dx": napkin.matmul_flops(m, n, k) if need_dx else 0,
        "dw": napkin.matmul_flops(k, m, n) if need_dw else 0,
    }


def regions(arch, workload, attention="rectangular"):
    training.require_training(workload)
    rows = workload.batch_size * workload.new_rows
    projections = forward.projections(arch, rows).total
    core = sum(forward.attention_products(arch, workload, attention).values())
    dense = projections + forward.mlp_products(arch, rows, arch.intermediate_size).total
    mixed = projections + forward.expert_products(arch, rows).total if arch.experts else dense
    parts = []
    for i in range(arch.num_layers):
        linear = dense if i < arch.num_layers - arch.expert_layers else mixed
        parts += [(f"block_{i}.linear", linear), (f"block_{i}.core", core)]
    parts.append(("head", forward.logits(arch, workload)))
    return tuple(Region(name=name, forward=flops, dx=flops, dw=flops) for name, flops in parts)


def totals(regions, replay):
    times = training.replayed(regions, replay)
    forward = sum(region.forward for region in regions)
    backward = sum(region.dx + region.dw for region in regions)
    recompute = sum(times[region.name] * region.forward for region in regions)
    return {
        "forward": forward,
        "backward": backward,
        "recompute": recompute,
        "model": forward + backward,
        "hardware": forward + backward + recompute,
    }


def sixnd_closure(arch, workload):
    training.require_training(workload)
    rows = workload.batch_size * workload.new_rows
    return {
        "sixnd.blocks": 6 * params.coordinates(arch)["kaplan"] * rows,
        "sixnd.head": 3 * forward.logits(arch, workload),
        "attention": 3 * arch.num_layers * sum(forward.attention_products(arch, workload).values()),
    }


def sixnd_shortfalls(arch, workload):
    model = training.totals(training.regions(arch, workload), {})["model"]
    rows = workload.batch_size * workload.new_rows
    return {name: 1 - Fraction(6 * n * rows, model) for name, n in params.coordinates(arch).items()}


def kaplan_forward(arch, context):
    return {"weights": 2 * params.coordinates(arch)["kaplan"], "context": 2 * arch.num_layers * context * arch.d_q}


def megatron_iteration(B, S, h, L, V):
    return {"blocks": 4 * L * forward.a16_block(B, S, h), "head": 6 * B * S * h * V}


def palm_model_flops(N, L, H, Q, T):
    return 6 * N + 12 * L * H * Q * T


def palm_hardware_flops(N, L, H, Q, T, remat=Fraction(3, 4)):
    return training.palm_model_flops(N, L, H, Q, T) + remat * 2 * N + Fraction(4 * L * H * Q * T)


def lora_step(frozen, adapters, tokens):
    through = 2 * (frozen + adapters) * tokens
    return {"forward": through, "dx": through, "dw": 2 * adapters * tokens}


def mfu(totals, peak, seconds):
    return Fraction(totals["model"]) / (peak * seconds)


def hfu(totals, peak, seconds):
    return Fraction(totals["hardware"]) / (peak * seconds)
