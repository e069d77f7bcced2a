"""Reference answers of Lab 05. Other exercises are called through costlib, so that filled and empty holes mix."""

from fractions import Fraction
from itertools import combinations
from math import prod

from costlib import activations
from costlib.domain import require
from costlib.policies import BITS
from costlib.units import ceil_div


def tensor_bytes(shape, dtype):
    return ceil_div(prod(shape) * BITS[dtype], 8)


def score_elements(arch, workload):
    return workload.batch_size * arch.num_attention_heads * workload.new_rows * workload.visible_rows


def korthikanti(b, s, h, a):
    wide, square = b * s * h, b * a * s * s
    attention = (2 * wide, 4 * wide, 2 * square, square, 2 * square, 2 * wide, 2 * wide, wide)
    mlp, norms = (2 * wide, 8 * wide, 8 * wide, wide), (2 * wide, 2 * wide)
    return dict(zip(activations.SAVED_FOR, attention + mlp + norms))


def crossover(h, a):
    return Fraction(34 * h, 5 * a)


def retained(b, s, h, a, layers, policy):
    layer = activations.korthikanti(b, s, h, a)
    kept = {
        "none": layer.total,
        "selective": layer.total - layer["attention.scores"],
        "boundary": 2 * b * s * h,
        "offload": 0,
    }
    return layers * kept[policy]


def peak(b, s, h, a, layers, policy):
    layer = activations.korthikanti(b, s, h, a)
    region = {"none": 0, "selective": layer["attention.scores"]}.get(policy, layer.total)
    return activations.retained(b, s, h, a, layers, policy) + region


def coefficient_c(b, s, h, a, layers, policy):
    return Fraction(activations.retained(b, s, h, a, layers, policy), 2 * b * s * h * layers)


def added_cost(b, s, h, a, layers, policy):
    layer = activations.korthikanti(b, s, h, a)
    scores, others = 4 * b * s * s * h, 24 * b * s * h * h
    draws = layer["attention.scores.mask"]
    masks = draws + layer["attention.mask"] + layer["mlp.mask"]
    moved = layer.total if policy == "offload" else 0
    return {
        "flops": layers * {"selective": scores, "boundary": scores + others}.get(policy, 0),
        "draws": layers * {"selective": draws, "boundary": masks}.get(policy, 0),
        "transfer": layers * 2 * moved,
        "host": layers * moved,
    }


def unique_bytes(objects):
    return sum(group[0].bytes for group in activations.by_storage(objects).values())


def live_at(objects, instant, same_instant="release-first"):
    still, rows = int(same_instant == "birth-first"), dict.fromkeys(activations.ROLES, 0)
    for group in activations.by_storage(objects).values():
        if any(o.birth <= instant < o.death + still for o in group):
            rows[group[0].role] += group[0].bytes
    return rows


def peak_cut(objects, same_instant="release-first"):
    require(bool(objects), "MISSING", "no objects were declared: that is no peak, not a peak of zero")
    births = sorted({o.birth for o in objects})
    totals = [(activations.live_at(objects, t, same_instant).total, t) for t in births]
    return max(totals, key=lambda cut: cut[0])


def memory_bridge(payload, allocated, reserved, device_used):
    require(allocated <= reserved <= device_used, "INCONSISTENT", f"{allocated}, {reserved}, {device_used} do not rise")
    return {
        "payload": payload,
        "undeclared": allocated - payload,
        "cached": reserved - allocated,
        "outside": device_used - reserved,
    }


def choose_recompute(regions, fixed, budget):
    require(len(regions) <= activations.MOST_REGIONS, "RANGE", f"{len(regions)} regions are 2**{len(regions)} choices")
    most = fixed + sum(r.saved for r in regions)
    choices = [c for n in range(len(regions) + 1) for c in combinations(regions, n)]
    fitting = [c for c in choices if most - sum(r.saved for r in c) <= budget]
    best = min(fitting, key=lambda c: sum(r.flops for r in c), default=regions)
    return {
        "status": "chosen" if fitting else "infeasible",
        "recompute": tuple(r.name for r in best),
        "bytes": most - sum(r.saved for r in best),
        "flops": sum(r.flops for r in best),
    }
