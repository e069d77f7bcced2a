"""Reference answers of Lab 08. Other exercises are called through costlib, so that filled and empty holes mix."""

from costlib import ownership, state
from costlib import params as learned
from costlib.domain import require, require_divides
from costlib.ownership import sharded_from, stage_blocks
from costlib.units import ceil_div


def shard(count, degree):
    piece = ceil_div(count, degree)
    return {"shard": piece, "padding": degree * piece - count}


def mesh(layout, rank=0):
    require(rank < layout.world_size, "RANGE", f"rank = {rank} in a world of {layout.world_size}")
    groups, stride = {}, 1
    for axis in ("tensor", "context", "data", "pipeline"):
        degree = getattr(layout, f"{axis}_parallel")
        first = rank - rank // stride % degree * stride
        groups[axis] = tuple(range(first, first + degree * stride, stride))
        stride *= degree
    return groups


def rank_state(policy, params, stage, degree):
    piece = ownership.shard(params, degree)["shard"]
    return {
        row.role: row.copies * state.bytes_of_weights(piece if stage >= sharded_from(row.role) else params, row.dtype)
        for row in policy.rows
    }


def cluster_bytes(policy, params, stage, degree):
    whole, mine = (ownership.rank_state(policy, params, *cut) for cut in ((0, 1), (stage, degree)))
    replicas = (degree - 1) * sum(whole[role] for role in whole if stage < sharded_from(role))
    return {
        "unique": whole.total,
        "replicas": replicas,
        "padding": degree * mine.total - whole.total - replicas,
    }


def fsdp_groups(arch, grouping):
    whole, groups = learned.ledger(arch), {}
    if grouping != "root":
        groups = {f"blocks.{i}": count for i, count in enumerate(stage_blocks(arch, 1)[0])}
    if grouping == "blocks-and-ends":
        groups |= {"embedding": whole["embedding"], "head": whole["head"]}
    return {**groups, "root": whole.total - sum(groups.values())}


def fsdp_group(params, degree, dtype="bf16"):
    piece = state.bytes_of_weights(ownership.shard(params, degree)["shard"], dtype)
    return {"full": degree * piece, "shard": piece, "missing": (degree - 1) * piece}


def fsdp_events(groups, reshard, prefetch=0):
    events, held = [], set()
    for action, order in (("forward", range(groups)), ("backward", range(groups)[::-1])):
        for i, group in enumerate(order):
            missing = [g for g in order[i : i + prefetch + 1] if g not in held]
            held.update(missing)
            events += [("gather", g) for g in missing] + [(action, group)]
            if action == "backward":
                events.append(("reduce-scatter", group))
            if action == "backward" or reshard:
                events.append(("free", group))
                held.remove(group)
    return tuple(events)


def materialized_peak(sizes, reshard, prefetch=0):
    live = peak = 0
    for action, group in ownership.fsdp_events(len(sizes), reshard, prefetch):
        live += {"gather": 1, "free": -1}.get(action, 0) * sizes[group]
        peak = max(peak, live)
    return peak


def collective(kind, elements, dtype, group, repeats=1):
    piece = state.bytes_of_weights(ownership.shard(elements, group)["shard"], dtype)
    once = repeats * (group - 1) * piece
    return {
        "input": piece if kind == "all-gather" else group * piece,
        "output": piece if kind == "reduce-scatter" else group * piece,
        "ring_send": 2 * once if kind == "all-reduce" else once,
    }


def tensor_shard(m, k, n, split, degree):
    if split == "column":
        require_divides(degree, n, "degree", "n")
        n, needed = n // degree, "none"
    else:
        require_divides(degree, k, "degree", "k")
        k, needed = k // degree, "all-reduce"
    return {"input": (m, k), "weight": (k, n), "output": (m, n), "collective": needed}


def rank_extents(arch, degree, vocab_multiple=1):
    require(arch.experts is None, "UNDECLARED", f"nothing says which rank owns the experts of {arch.manifest_id}")
    heads, kv_heads = arch.num_attention_heads, arch.num_key_value_heads
    require_divides(degree, heads, "degree", "num_attention_heads")
    require_divides(degree, arch.intermediate_size, "degree", "intermediate_size")
    require_divides(*sorted((degree, kv_heads)), "degree or num_key_value_heads", "the other")
    return {
        "num_attention_heads": heads // degree,
        "num_key_value_heads": max(1, kv_heads // degree),
        "intermediate_size": arch.intermediate_size // degree,
        "vocab_size": vocab_multiple * ownership.shard(arch.vocab_size, degree * vocab_multiple)["shard"],
    }


def tensor_parallel_rank(arch, degree, vocab_multiple=1):
    return dict(learned.ledger(arch.replace(**ownership.rank_extents(arch, degree, vocab_multiple))))


def pipeline_stages(arch, stages):
    require(stages <= arch.num_layers, "RANGE", f"{stages} stages for {arch.num_layers} layers")
    require(not arch.extra_trainable_sets, "UNDECLARED", f"no stage owns the extra sets of {arch.manifest_id}")
    whole, last = learned.ledger(arch), f"stages.{stages - 1}"
    rows = {f"stages.{i}": sum(blocks) for i, blocks in enumerate(stage_blocks(arch, stages))}
    rows["stages.0"] += whole["embedding"] + whole["positions"]
    rows[last] += whole["final_norm"] + whole["head"]
    if arch.tie_word_embeddings and stages > 1:
        rows[last] += whole["embedding"]
    return rows


def in_flight(schedule, stage, stages, microbatches):
    require(stage < stages, "RANGE", f"stage = {stage} of {stages}")
    return microbatches if schedule == "gpipe" else min(microbatches, stages - stage)


def boundary_bytes(batch, rows, hidden_size, dtype="bf16", degree=1):
    require_divides(degree, rows, "degree", "rows")
    return state.bytes_of_weights(batch * (rows // degree) * hidden_size, dtype)


def context_missing(arch, batch, rows, degree, dtype="bf16"):
    require_divides(degree, rows, "degree", "rows")
    piece = 2 * state.bytes_of_weights(batch * (rows // degree) * arch.d_kv, dtype)
    return {"full": degree * piece, "shard": piece, "missing": (degree - 1) * piece}


def compose(policy, arch, layout):
    narrow = arch.replace(**ownership.rank_extents(arch, layout.tensor_parallel))
    return {
        stage: ownership.rank_state(policy, count, layout.zero_stage, layout.data_parallel).total
        for stage, count in ownership.pipeline_stages(narrow, layout.pipeline_parallel).items()
    }
