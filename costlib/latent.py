"""What does latent attention (MLA) cost in place of the four projections? (M 0x09E)

Its matrices have no packed widths d_q and d_kv, so that formulas in those refuse such a manifest; what
stands in their place is counted here, with the same conventions and by the same row names where there are any.
"""

from costlib import forward, phases
from costlib.domain import AttentionArea, Count, require
from costlib.ledger import Ledger
from costlib.policies import Dtype
from costlib.records import ArchitectureManifest, Workload


def _declared(arch):
    require(arch.latent is not None, "MISSING", f"{arch.manifest_id} declares no latent attention")
    return arch.latent


def forward_ledger(arch: ArchitectureManifest, workload: Workload, attention: AttentionArea = "rectangular") -> Ledger:
    """Every matrix product of one forward call, summed over blocks, as a program runs it that computes keys
    and values of all visible rows from their latents.

    Scores are as wide as a query head, values as value_head_dim. Left out: products that absorb kv_b into
    q and o, a program of its own. Unit: FLOP.
    """
    part, d, heads, layers = _declared(arch), arch.hidden_size, arch.num_attention_heads, arch.num_layers
    rows, visible = workload.batch_size * workload.new_rows, workload.batch_size * workload.visible_rows
    q, o = heads * arch.head_dim, heads * part.value_head_dim
    pairs = 2 * workload.batch_size * heads * forward.area(workload.new_rows, workload.visible_rows, attention)
    one = {
        "q_a": 2 * rows * d * part.query_rank,
        "q_b": 2 * rows * (part.query_rank or d) * q,
        "kv_a": 2 * rows * d * (part.kv_rank + part.rope_head_dim),
        "kv_b": 2 * visible * part.kv_rank * (q - heads * part.rope_head_dim + o),
        "o": 2 * rows * o * d,
        "scores": int(pairs * arch.head_dim),
        "values": int(pairs * part.value_head_dim),
    }
    found = {f"blocks.{name}": layers * flops for name, flops in one.items()}
    mlps = [(layers - arch.expert_layers, forward.mlp_products(arch, rows, arch.intermediate_size))]
    if arch.experts:
        mlps.append((arch.expert_layers, forward.expert_products(arch, rows)))
    found |= {f"blocks.{name}": times * flops for times, mlp in mlps for name, flops in mlp.items()}
    return Ledger(
        found | {"head": forward.logits(arch, workload)},
        "FLOP",
        f"FMA = 2 FLOPs; matrix products of one forward call; {attention} attention; {workload.logits} logit rows; latents expanded",
    )


def cache_ledger(arch: ArchitectureManifest, batch: Count, rows: Count, dtype: Dtype = "bf16") -> Ledger:
    """phases.latent_cache_bytes with the widths that the manifest declares. Unit: B."""
    part = _declared(arch)
    return phases.latent_cache_bytes(arch, batch, rows, part.kv_rank, part.rope_head_dim, dtype)
