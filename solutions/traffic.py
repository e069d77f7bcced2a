"""Reference answers of Lab 09. Other exercises are called through costlib, so that filled and empty holes mix."""

from fractions import Fraction

from costlib import napkin, traffic
from costlib.domain import require
from costlib.policies import BITS, HBM, Transfer, bytes_per_scalar
from costlib.units import ceil_div


MATERIALIZED = ("Q read", "K read", "S write", "S read", "P write", "P read", "V read", "O write")


def payload(transfers):
    boundaries = sorted({row.boundary for row in transfers})
    require(len(boundaries) <= 1, "INCONSISTENT", f"the rows cross {len(boundaries)} boundaries: {', '.join(boundaries)}")
    rows = {}
    for row in transfers:
        name = f"{row.name}.{row.direction}"
        rows[name] = rows.get(name, 0) + ceil_div(row.elements * BITS[row.dtype], 8) * row.multiplicity
    return rows


def materialized_attention(arch, workload, activation_dtype="bf16", cache_dtype="bf16"):
    queries = workload.batch_size * workload.new_rows * arch.d_q
    keys = workload.batch_size * workload.visible_rows * arch.d_kv
    scores = workload.batch_size * arch.num_attention_heads * workload.new_rows * workload.visible_rows
    size = {"Q": queries, "K": keys, "V": keys, "S": scores, "P": scores, "O": queries}
    return tuple(
        Transfer(
            name=name,
            elements=size[name],
            dtype=cache_dtype if name in "KV" else activation_dtype,
            direction=direction,
            phase=workload.phase,
        )
        for name, direction in (entry.split() for entry in MATERIALIZED)
    )


def online_attention(arch, workload, activation_dtype="bf16", cache_dtype="bf16", passes=1, statistics=0):
    rows = traffic.materialized_attention(arch, workload, activation_dtype, cache_dtype)
    q, k, v, o = (row for row in rows if row.name in "QKVO")
    kept = workload.batch_size * workload.new_rows * arch.num_attention_heads * statistics
    statistics = o.replace(name="statistics", elements=kept, dtype="fp32")
    return q, k.replace(multiplicity=passes), v.replace(multiplicity=passes), o, statistics


def isolated_gemm(m, k, n, dtype_x, dtype_w, dtype_y, phase):
    return (
        Transfer(name="X", elements=m * k, dtype=dtype_x, direction="read", phase=phase),
        Transfer(name="W", elements=k * n, dtype=dtype_w, direction="read", phase=phase),
        Transfer(name="Y", elements=m * n, dtype=dtype_y, direction="write", phase=phase),
    )


def intensity(flops, transfers, boundary):
    moved = traffic.payload(tuple(row for row in transfers if row.boundary == boundary)).total
    require(moved > 0, "MISSING", f"no byte of these rows crosses {boundary!r}")
    return Fraction(flops, moved)


def ridge(chip):
    return Fraction(chip.peak_flops, chip.bytes_per_second)


def attainable(chip, intensity):
    return Fraction(min(chip.peak_flops, chip.bytes_per_second * intensity))


def row_amortization(m, k, n, dtype):
    rows = traffic.isolated_gemm(m, k, n, dtype, dtype, dtype, "any")
    return {
        "weight_bytes_per_row": Fraction(traffic.payload(rows)["W"], m),
        "intensity": traffic.intensity(napkin.matmul_flops(m, k, n), rows, HBM),
        "limit": 2 * m / bytes_per_scalar(dtype),
    }
