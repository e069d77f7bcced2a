"""Reference answers of Lab 06. Other exercises are called through costlib, so that filled and empty holes mix."""

from fractions import Fraction

from costlib import forward, napkin, params
from costlib.domain import require


def product_counts(m, k, n):
    return {"macs": m * k * n, "flops": napkin.matmul_flops(m, k, n), "from_zero": m * n * (k + k - 1)}


def area(S_q, S_k, convention):
    require(S_q <= S_k, "INCONSISTENT", f"{S_q} query rows are more than the {S_k} visible rows")
    if convention == "kaplan":
        require(S_q == S_k, "INCONSISTENT", f"kaplan halves a whole sequence, not {S_q} of {S_k} rows")
        return Fraction(S_q * S_k, 2)
    return S_q * S_k if convention == "rectangular" else S_q * (S_k - S_q) + S_q * (S_q + 1) // 2


def window_area(S_q, S_k, window):
    out_of_last, out_of_first = max(0, S_k - window), max(0, S_k - S_q - window)
    too_old = (out_of_last * (out_of_last + 1) - out_of_first * (out_of_first + 1)) // 2
    return forward.area(S_q, S_k, "causal-legal") - too_old


def ragged_area(lengths):
    require(lengths, "MISSING", "a batch has at least one sequence")
    return {
        "legal": sum(forward.area(S, S, "causal-legal") for S in lengths),
        "rectangles": sum(S * S for S in lengths),
        "padded": len(lengths) * max(lengths) ** 2,
    }


def projections(arch, rows):
    d, d_q, d_kv = arch.hidden_size, arch.d_q, arch.d_kv
    return {
        "q": napkin.matmul_flops(rows, d, d_q),
        "k": napkin.matmul_flops(rows, d, d_kv),
        "v": napkin.matmul_flops(rows, d, d_kv),
        "o": napkin.matmul_flops(rows, d_q, d),
    }


def attention_products(arch, workload, convention="rectangular"):
    pairs = forward.area(workload.new_rows, workload.visible_rows, convention)
    one = int(2 * workload.batch_size * arch.num_attention_heads * arch.head_dim * pairs)
    return {"scores": one, "values": one}


def mlp_products(arch, rows, width):
    one = napkin.matmul_flops(rows, arch.hidden_size, width)
    return {"gate": one if arch.mlp == "gated" else 0, "up": one, "down": one}


def expert_products(arch, rows):
    experts = arch.experts
    require(experts is not None, "MISSING", f"{arch.manifest_id} declares no experts")
    one = forward.mlp_products(arch, rows, experts.intermediate_size).total
    return {
        "router": napkin.matmul_flops(rows, arch.hidden_size, experts.num_experts),
        "shared": experts.shared_experts * one,
        "routed": experts.experts_per_token * one,
    }


def logits(arch, workload):
    rows = workload.batch_size * (workload.new_rows if workload.logits == "all" else 1)
    return napkin.matmul_flops(rows, arch.hidden_size, arch.vocab_size)


def products(arch, workload, attention="rectangular"):
    rows, moe = workload.batch_size * workload.new_rows, arch.expert_layers
    parts = (
        (arch.num_layers, forward.projections(arch, rows)),
        (arch.num_layers, forward.attention_products(arch, workload, attention)),
        (arch.num_layers - moe, forward.mlp_products(arch, rows, arch.intermediate_size)),
        (moe, forward.expert_products(arch, rows) if moe else dict.fromkeys(("router", "shared", "routed"), 0)),
    )
    blocks = {f"blocks.{name}": layers * one for layers, part in parts for name, one in part.items()}
    return blocks | {"head": forward.logits(arch, workload)}


def primitives(arch, workload):
    B, L, d, experts = workload.batch_size, arch.num_layers, arch.hidden_size, arch.experts
    rows, qk = B * workload.new_rows, arch.d_q + arch.d_kv
    scores = L * B * arch.num_attention_heads * workload.new_rows * workload.visible_rows
    active = (experts.shared_experts + experts.experts_per_token) * experts.intermediate_size if experts else 0
    norms = (L * arch.norms_per_block + arch.final_norm) * d + (L * qk if arch.qk_norm != "none" else 0)
    return {
        "norm": rows * norms,
        "rope": rows * L * qk if arch.position == "rope" else 0,
        "scale": scores,
        "mask": scores,
        "softmax": scores,
        "activation": rows * ((L - arch.expert_layers) * arch.intermediate_size + arch.expert_layers * active),
        "residual": 2 * rows * L * d,
        "dropout": 0,
        "loss": forward.logits(arch, workload) // (2 * d) if workload.phase == "training" else 0,
    }


def a16_block(B, S, h):
    return 24 * B * S * h**2 + 4 * B * S**2 * h


def coefficients(arch):
    d = arch.hidden_size
    return {
        "projections": Fraction(2 * params.attention_weights(arch), d**2),
        "mlp": Fraction(2 * params.mlp_weights(arch, arch.intermediate_size), d**2),
        "pairs": Fraction(4 * arch.d_q, d),
    }
