"""Ownership against doing it: values handed out one by one, chunks passed round a ring, schedules run step by step."""

import itertools
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from costlib import ownership, params
from costlib.domain import ManifestError
from costlib.exercise import using
from costlib.fixtures import (
    A16,
    CLASSIC,
    INFER_BF16,
    MASTER,
    ODD,
    ODD_EVERYTHING,
    ODD_EXPERTS,
    ODD_TIED,
    POLICIES,
    RUNNING,
    TOY,
    TOY_TIED,
)
from costlib.policies import BITS, Ownership
from costlib.schema import tensor_rows
from labs import spec

ODD_WIDE = ODD.replace(manifest_id="odd-wide", intermediate_size=246)
ONE_LAYER = RUNNING.replace(manifest_id="8b-one-layer", num_layers=1)
degrees, counts = st.integers(1, 40), st.integers(0, 10**6)
policies = st.sampled_from(list(POLICIES.values()))


@pytest.fixture(autouse=True)
def on_the_reference():
    with using("solutions"):
        yield


def wrong(exercise, name):
    """A named wrong model of the lab."""
    return next(w.model for w in spec.load("08")[exercise].wrong if w.name == name)


def layout(**degrees):
    zero_stage = degrees.pop("zero_stage", 0)
    world = 1
    for degree in degrees.values():
        world *= degree
    names = {f"{axis}_parallel": degree for axis, degree in degrees.items()}
    return Ownership(policy_id="test", world_size=world, zero_stage=zero_stage, **names)


def refused(code, call, *args, **kwargs):
    with pytest.raises(ManifestError) as refusal:
        call(*args, **kwargs)
    assert refusal.value.code == code


@given(st.integers(0, 300), degrees)
def test_values_handed_out_in_equal_pieces(count, degree):
    pieces = [[] for _ in range(degree)]
    while sum(map(len, pieces)) < count:
        for piece in pieces:
            piece.append("value")
    cut = ownership.shard(count, degree)
    assert {len(piece) for piece in pieces} == {cut["shard"]}
    assert degree * cut["shard"] - cut["padding"] == count and 0 <= cut["padding"] < degree


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_groups_are_the_ranks_that_differ_in_one_coordinate(data, tensor, pipeline, context):
    mesh = layout(data=data, tensor=tensor, pipeline=pipeline, context=context)
    axes = ("pipeline", "data", "context", "tensor")
    places = list(itertools.product(*(range(getattr(mesh, f"{axis}_parallel")) for axis in axes)))
    assert len(places) == mesh.world_size
    for rank, place in enumerate(places):
        for i, axis in enumerate(axes):
            group = [r for r, p in enumerate(places) if p[:i] + p[i + 1 :] == place[:i] + place[i + 1 :]]
            assert ownership.mesh(mesh, rank)[axis] == tuple(group)


@given(policies, counts, st.integers(0, 3), degrees)
def test_ranks_add_up_to_the_global_state_plus_padding_and_replicas(policy, count, stage, degree):
    held, unique, replicas = 0, 0, 0
    cut_from = {"weights": 3, "gradients": 2, "optimizer": 1}
    for row in policy.rows:
        weigh = row.copies * BITS[row.dtype] // 8
        whole = stage < cut_from[row.role.partition(".")[0]]
        piece = count if whole else -(-count // degree)
        assert ownership.rank_state(policy, count, stage, degree)[row.role] == piece * weigh
        held += degree * piece * weigh
        unique += count * weigh
        replicas += (degree - 1) * count * weigh if whole else 0
    cluster = ownership.cluster_bytes(policy, count, stage, degree)
    assert dict(cluster) == {"unique": unique, "replicas": replicas, "padding": held - unique - replicas}
    assert cluster.total == held and cluster["padding"] >= 0


@given(policies, counts, degrees)
def test_a_further_stage_never_adds_and_exact_division_pads_nothing(policy, count, degree):
    ranks = [ownership.rank_state(policy, count, stage, degree).total for stage in range(4)]
    assert ranks == sorted(ranks, reverse=True)
    assert ownership.cluster_bytes(policy, count * degree, 3, degree)["padding"] == 0


class Ring:
    """Ranks in a circle; each step everyone passes one chunk to the next and the bytes are counted."""

    def __init__(self, degree, chunk_bytes):
        self.degree, self.chunk_bytes = degree, chunk_bytes
        self.sent = [0] * degree

    def step(self, chunk_of):
        moved = [(rank, chunk_of(rank)) for rank in range(self.degree)]
        for rank, _ in moved:
            self.sent[rank] += self.chunk_bytes
        return [((rank + 1) % self.degree, chunk) for rank, chunk in moved]

    def gather(self, held):
        """Rank r starts with chunks[held[r]] and ends with all of them."""
        have = [dict(held[rank]) for rank in range(self.degree)]
        newest = [next(iter(held[rank])) for rank in range(self.degree)]
        for _ in range(self.degree - 1):
            arrivals = self.step(lambda rank: (newest[rank], have[rank][newest[rank]]))
            for rank, (name, value) in arrivals:
                have[rank][name], newest[rank] = value, name
        return have

    def scatter(self, values):
        """values[r][c] is rank r's part of chunk c; afterwards each rank has the sum of one chunk."""
        partial = [dict(enumerate(row)) for row in values]
        for turn in range(self.degree - 1):
            arrivals = self.step(lambda rank: ((rank - turn) % self.degree, partial[rank][(rank - turn) % self.degree]))
            for rank, (name, value) in arrivals:
                partial[rank][name] += value
        mine = [(rank + 1) % self.degree for rank in range(self.degree)]
        return [{name: partial[rank][name]} for rank, name in enumerate(mine)]


@pytest.mark.parametrize("degree", range(1, 9))
@pytest.mark.parametrize("elements, dtype", [(0, "bf16"), (5, "bf16"), (1009, "fp32"), (840, "fp8")])
def test_a_ring_of_chunks_sends_what_the_formula_says(degree, elements, dtype):
    chunk = -(-elements // degree) * BITS[dtype] // 8
    values = [[100 * rank + c for c in range(degree)] for rank in range(degree)]
    sums = [sum(values[rank][c] for rank in range(degree)) for c in range(degree)]

    gathering = Ring(degree, chunk)
    everywhere = gathering.gather([{rank: f"chunk {rank}"} for rank in range(degree)])
    assert everywhere == [{c: f"chunk {c}" for c in range(degree)}] * degree

    scattering = Ring(degree, chunk)
    shards = scattering.scatter(values)
    assert {name: value for shard in shards for name, value in shard.items()} == dict(enumerate(sums))

    both = Ring(degree, chunk)
    reduced = both.gather(both.scatter(values))
    assert reduced == [dict(enumerate(sums))] * degree

    for kind, ring in (("all-gather", gathering), ("reduce-scatter", scattering), ("all-reduce", both)):
        told = ownership.collective(kind, elements, dtype, degree)
        assert set(ring.sent) == {told["ring_send"]}
        assert told["input"] == (chunk if kind == "all-gather" else degree * chunk)
        assert told["output"] == (chunk if kind == "reduce-scatter" else degree * chunk)
        assert ownership.collective(kind, elements, dtype, degree, 5)["ring_send"] == 5 * told["ring_send"]


@given(st.integers(1, 12), st.booleans(), st.integers(0, 5), st.data())
def test_an_fsdp_step_computes_only_on_gathered_groups_and_leaves_none(groups, reshard, prefetch, data):
    sizes = tuple(data.draw(st.lists(st.integers(0, 50), min_size=groups, max_size=groups)))
    held, computed, scattered, gathers, peak = set(), [], [], 0, 0
    for action, group in ownership.fsdp_events(groups, reshard, prefetch):
        if action == "gather":
            assert group not in held
            held.add(group)
            gathers += 1
        elif action == "free":
            held.remove(group)
        elif action == "reduce-scatter":
            assert computed[-1] == ("backward", group)
            scattered.append(group)
        else:
            assert group in held
            computed.append((action, group))
        peak = max(peak, sum(sizes[g] for g in held))
    up = list(range(groups))
    assert computed == [("forward", g) for g in up] + [("backward", g) for g in up[::-1]]
    assert scattered == up[::-1] and not held
    assert gathers == groups * (2 if reshard else 1)
    assert ownership.materialized_peak(sizes, reshard, prefetch) == peak
    assert max(sizes) <= peak <= sum(sizes)
    if not reshard:
        assert peak == sum(sizes)


@pytest.mark.parametrize("arch", [RUNNING, TOY, TOY_TIED, ODD, ODD_EVERYTHING, ODD_EXPERTS, CLASSIC], ids=lambda a: a.manifest_id)
def test_every_grouping_holds_every_stored_scalar_once(arch):
    stored = [tensor for tensor in tensor_rows(arch) if tensor.alias_of is None]
    for grouping in ("root", "blocks", "blocks-and-ends"):
        wanted = {}
        for tensor in stored:
            part = tensor.name.split(".")
            group = "root"
            if part[:2] == ["model", "layers"]:
                group = f"blocks.{part[2]}"
            elif grouping == "blocks-and-ends" and tensor.name == "model.embed_tokens.weight":
                group = "embedding"
            elif grouping == "blocks-and-ends" and part[0] == "lm_head":
                group = "head"
            group = "root" if grouping == "root" else group
            wanted[group] = wanted.get(group, 0) + tensor.numel
        found = {name: count for name, count in ownership.fsdp_groups(arch, grouping).items() if count}
        assert found == wanted


def test_the_final_norm_of_the_third_grouping_has_a_group():
    groups = ownership.fsdp_groups(RUNNING, "blocks-and-ends")
    assert (groups["root"], groups["head"] + groups["root"]) == (4_096, 525_340_672)
    lost = wrong("fsdp_groups", "final-norm-lost")(RUNNING, "blocks-and-ends")
    assert groups.total - sum(lost.values()) == 4_096


@given(st.integers(0, 10**6), degrees, st.sampled_from(["bf16", "fp32", "int4"]))
def test_a_gathered_group_is_one_shard_and_the_missing_ones(count, degree, dtype):
    one = ownership.fsdp_group(count, degree, dtype)
    assert one["full"] == one["shard"] + one["missing"] == degree * one["shard"]
    gather = ownership.collective("all-gather", count, dtype, degree)
    assert one == {"full": gather["output"], "shard": gather["input"], "missing": gather["ring_send"]}


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


@pytest.mark.parametrize("degree", [1, 2, 3, 6])
def test_column_and_row_splits_multiply_to_the_same_matrix(degree):
    m, k, n = 5, 6, 12
    x = [[7 * i + j for j in range(k)] for i in range(m)]
    w = [[3 * i - 2 * j for j in range(n)] for i in range(k)]
    whole, wide, tall = product(x, w), n // degree, k // degree
    columns = ownership.tensor_shard(m, k, n, "column", degree)
    parts = [product(x, [row[t * wide : (t + 1) * wide] for row in w]) for t in range(degree)]
    assert [sum(rows, []) for rows in zip(*parts)] == whole and columns["collective"] == "none"
    assert {(len(part), len(part[0])) for part in parts} == {columns["output"]}
    assert (columns["input"], columns["weight"]) == ((m, k), (k, wide))
    rows = ownership.tensor_shard(m, k, n, "row", degree)
    parts = [
        product([r[t * tall : (t + 1) * tall] for r in x], w[t * tall : (t + 1) * tall]) for t in range(degree)
    ]
    assert [[sum(cells) for cells in zip(*lines)] for lines in zip(*parts)] == whole and rows["collective"] == "all-reduce"
    assert {(len(part), len(part[0])) for part in parts} == {rows["output"]}
    assert (rows["input"], rows["weight"]) == ((m, tall), (tall, n))


def held_by(arch, rank, degree, padded):
    """{tensor: rows or columns that a tensor-parallel rank holds, times the other extent}, tensor by tensor."""
    held = {}
    for tensor in tensor_rows(arch):
        if tensor.alias_of:
            continue
        leaf = ".".join(tensor.name.split(".")[-2:])
        module, kind = leaf.split(".") if "." in leaf else ("", leaf)
        other = tensor.numel // tensor.shape[0]
        if module in ("embed_tokens", "lm_head"):
            held[tensor.name] = padded // degree * other
        elif module in ("q_proj", "gate_proj", "up_proj"):
            held[tensor.name] = len([i for i in range(tensor.shape[0]) if i * degree // tensor.shape[0] == rank]) * other
        elif module in ("k_proj", "v_proj"):
            queries = arch.num_attention_heads // degree
            share = arch.num_attention_heads // arch.num_key_value_heads
            heads = {q // share for q in range(rank * queries, (rank + 1) * queries)}
            held[tensor.name] = len(heads) * arch.head_dim * other
        elif module in ("o_proj", "down_proj") and kind == "weight":
            held[tensor.name] = tensor.shape[0] * (tensor.shape[1] // degree)
        else:
            held[tensor.name] = tensor.numel
    return held


TENSOR = [(TOY, 1), (TOY, 2), (TOY, 4), (TOY_TIED, 2), (ODD, 2), (ODD_WIDE, 6), (ODD_EVERYTHING, 2), (CLASSIC, 3), (ONE_LAYER, 8), (ONE_LAYER, 32)]


@pytest.mark.parametrize("arch, degree", TENSOR, ids=lambda x: str(getattr(x, "manifest_id", x)))
def test_a_tensor_parallel_rank_is_its_tensors_cut_one_by_one(arch, degree):
    padded = -(-arch.vocab_size // degree) * degree
    ranks = [held_by(arch, rank, degree, padded) for rank in range(degree)]
    told = ownership.tensor_parallel_rank(arch, degree).total
    assert {sum(held.values()) for held in ranks} == {told}
    padding = replicas = 0
    for tensor in tensor_rows(arch):
        if tensor.alias_of is None:
            more = sum(held[tensor.name] for held in ranks) - tensor.numel
            vocabulary = "embed_tokens" in tensor.name or tensor.name.startswith("lm_head")
            padding, replicas = (padding + more, replicas) if vocabulary else (padding, replicas + more)
    assert degree * told == params.ledger(arch).total + padding + replicas
    width = sum(t.numel // t.shape[0] for t in tensor_rows(arch) if t.alias_of is None and t.shape[0] == arch.vocab_size)
    assert padding == (padded - arch.vocab_size) * width


@given(st.sampled_from([1, 2, 3, 4, 6, 8, 12]), st.sampled_from([1, 2, 4, 12]), st.integers(1, 300), st.integers(1, 9))
def test_vocabulary_rows_of_all_ranks_are_the_rows_and_the_declared_padding(degree, kv_heads, vocab, multiple):
    arch = TOY.replace(num_attention_heads=24, num_key_value_heads=kv_heads, intermediate_size=48, vocab_size=vocab)
    if degree % kv_heads and kv_heads % degree:
        refused("DIVIS", ownership.rank_extents, arch, degree, multiple)
        return
    one = ownership.rank_extents(arch, degree, multiple)
    assert one["vocab_size"] % multiple == 0
    assert degree * one["vocab_size"] == vocab + ownership.shard(vocab, degree * multiple)["padding"]
    assert one["num_attention_heads"] * degree == 24 and one["num_attention_heads"] % one["num_key_value_heads"] == 0
    assert one["num_key_value_heads"] * degree == max(kv_heads, degree)


STAGED = [TOY, TOY_TIED, ODD, ODD_EXPERTS, CLASSIC, RUNNING, ODD_TIED]


@pytest.mark.parametrize("arch", STAGED, ids=lambda arch: arch.manifest_id)
def test_stages_hold_every_tensor_and_a_tied_one_twice(arch):
    for stages in range(1, arch.num_layers + 1):
        owner, more = [], arch.num_layers % stages
        for stage in range(stages):
            owner += [stage] * (arch.num_layers // stages + (stage < more))
        held = [0] * stages
        for tensor in tensor_rows(arch):
            part = tensor.name.split(".")
            if part[1] == "layers":
                held[owner[int(part[2])]] += tensor.numel
            elif "embed" in tensor.name:
                held[0] += tensor.numel
            elif not (tensor.alias_of and stages == 1):
                held[-1] += tensor.numel
        found = ownership.pipeline_stages(arch, stages)
        assert dict(found) == {f"stages.{i}": count for i, count in enumerate(held)}
        copy = arch.vocab_size * arch.hidden_size if arch.tie_word_embeddings and stages > 1 else 0
        assert found.total == params.ledger(arch).total + copy


def run_pipeline(stages, microbatches, limits, forwards_first=False):
    """Unit steps; a stage prefers a backward, else runs a forward while fewer than its limit are in flight."""
    forward, backward, most, time = [0] * stages, [0] * stages, [0] * stages, 0
    while backward[0] < microbatches:
        done = list(zip(forward, backward))
        for s in range(stages):
            ready = forward[s] if s == stages - 1 else done[s + 1][1]
            arrived = microbatches if s == 0 else done[s - 1][0]
            if backward[s] < min(ready, forward[s]) and (not forwards_first or forward[s] == microbatches):
                backward[s] += 1
            elif forward[s] < arrived and forward[s] - backward[s] < limits[s]:
                forward[s] += 1
            most[s] = max(most[s], forward[s] - backward[s])
        time += 1
        assert time < 10_000, "the schedule stands still"
    return time, most


@pytest.mark.parametrize("stages, microbatches", [(1, 3), (2, 1), (2, 5), (3, 3), (4, 2), (4, 8), (5, 12)])
def test_1f1b_holds_the_fewest_microbatches_that_keep_the_pace_of_gpipe(stages, microbatches):
    gpipe = [ownership.in_flight("gpipe", s, stages, microbatches) for s in range(stages)]
    slow, most = run_pipeline(stages, microbatches, gpipe, forwards_first=True)
    assert most == gpipe == [microbatches] * stages
    limits = [ownership.in_flight("1f1b", s, stages, microbatches) for s in range(stages)]
    fast, most = run_pipeline(stages, microbatches, limits)
    assert most == limits and fast == slow == 2 * (microbatches + stages - 1)
    for s in range(stages):
        fewer = [limit - (i == s) for i, limit in enumerate(limits)]
        if min(fewer):
            assert run_pipeline(stages, microbatches, fewer)[0] > fast, "one microbatch less would do"


@given(st.sampled_from([1, 2, 4, 7]), st.integers(1, 3), st.integers(1, 4), st.sampled_from(["bf16", "fp32", "fp8"]))
def test_context_ranks_hold_rows_and_miss_the_others(degree, batch, rows_each, dtype):
    rows = degree * rows_each
    kv = [(tensor, b, row) for tensor in "KV" for b in range(batch) for row in range(rows)]
    mine = [entry for entry in kv if entry[2] // rows_each == degree - 1]
    weight = ODD.d_kv * BITS[dtype] // 8
    assert ownership.context_missing(ODD, batch, rows, degree, dtype) == {
        "full": weight * len(kv),
        "shard": weight * len(mine),
        "missing": weight * (len(kv) - len(mine)),
    }
    assert degree * ownership.boundary_bytes(batch, rows, 96, dtype, degree) == ownership.boundary_bytes(batch, rows, 96, dtype)


COMPOSED = [(TOY, 2, 2, 2), (TOY_TIED, 3, 2, 2), (ODD, 5, 2, 3), (RUNNING, 2, 2, 2), (CLASSIC, 4, 3, 5)]


@pytest.mark.parametrize("arch, data, tensor, pipeline", COMPOSED, ids=lambda x: str(getattr(x, "manifest_id", x)))
def test_a_composed_rank_is_cut_by_stage_then_by_tensor_then_by_data(arch, data, tensor, pipeline):
    padded = -(-arch.vocab_size // tensor) * tensor
    one = held_by(arch, 0, tensor, padded)
    owner = [s for s in range(pipeline) for _ in range(arch.num_layers // pipeline + (s < arch.num_layers % pipeline))]
    held = [0] * pipeline
    for tensor_row in tensor_rows(arch):
        part = tensor_row.name.split(".")
        stage = owner[int(part[2])] if part[1] == "layers" else 0 if "embed" in tensor_row.name else pipeline - 1
        held[stage] += one[tensor_row.alias_of or tensor_row.name]
    for context in (1, 3):
        mesh = layout(data=data, tensor=tensor, pipeline=pipeline, context=context, zero_stage=3)
        found = ownership.compose(INFER_BF16, arch, mesh)
        assert [found[name] for name in found] == [2 * -(-count // data) for count in held]


def test_layout_b_is_not_the_world_th_part():
    mesh = layout(data=2, tensor=2, pipeline=2, zero_stage=3)
    parameters = ownership.compose(INFER_BF16, RUNNING, mesh)
    assert [parameters[name] // 2 for name in parameters] == [1_003_814_912, 1_003_816_960]
    assert 8_030_261_248 // 8 == 1_003_782_656
    second_copies_of_norms = 32 * 8_192 + 4_096
    assert 4 * parameters.total // 2 == 8_030_261_248 + second_copies_of_norms


# Bug cases of public trackers (reference: bug_cases.md): the right value, and the wrong one as a named mistake gives it.


def test_b12_padded_rows_are_no_vocabulary():
    rows = ownership.rank_extents(RUNNING, 8, 64)["vocab_size"]
    cut = ownership.shard(128_256, 8 * 64)
    assert (rows, 8 * rows, 8 * rows - cut["padding"], cut["padding"] * 4_096) == (16_064, 128_512, 128_256, 1_048_576)
    taken_as_data = wrong("shard", "padding-as-data")(128_256, 8 * 64)
    assert 8 * 64 * taken_as_data["shard"] - taken_as_data["padding"] == 128_512


@given(st.integers(1, 10**6), st.integers(1, 64), st.integers(1, 128))
def test_b12_whatever_the_padding_is_it_comes_off_again(vocab, degree, multiple):
    cut = ownership.shard(vocab, degree * multiple)
    assert degree * multiple * cut["shard"] - cut["padding"] == vocab


def test_b52_zero_divides_by_the_data_group_only():
    per_rank = 40 * 10**9 // 8
    assert ownership.rank_state(MASTER, per_rank, 2, 1).total == 80 * 10**9
    assert ownership.rank_state(MASTER, per_rank, 2, 8).total == 18_750_000_000
    eight = layout(tensor=8, zero_stage=2)
    whole = 16 * ownership.tensor_parallel_rank(RUNNING, 8).total
    assert ownership.compose(MASTER, RUNNING, eight).total == whole
    hoped = wrong("compose", "zero-over-world")(MASTER, RUNNING, eight)["stages.0"]
    assert hoped == Fraction(whole, 16) * (2 + Fraction(14, 8))


def test_b54_nothing_says_who_owns_experts():
    for call in (ownership.rank_extents, ownership.tensor_parallel_rank):
        refused("UNDECLARED", call, ODD_EXPERTS, 2)
    refused("UNDECLARED", ownership.compose, A16, ODD_EXPERTS, layout(tensor=2))


def test_b55_norms_are_whole_on_every_tensor_rank():
    optimizer = 12  # bytes per scalar of master copy and moments
    assert optimizer * ownership.tensor_parallel_rank(RUNNING, 8)["blocks.norms"] == 3_145_728
    assert optimizer * wrong("tensor_parallel_rank", "norms-divided")(RUNNING, 8)["blocks.norms"] == 393_216


@given(st.sampled_from([1, 2, 4, 8, 16, 32]))
def test_b55_at_every_degree(degree):
    rank = ownership.tensor_parallel_rank(RUNNING, degree)
    assert (rank["blocks.norms"], rank["final_norm"]) == (262_144, 4_096)


def test_b71_payload_over_time_is_not_what_the_ring_sends_over_time():
    gather = ownership.collective("all-gather", 2**29, "bf16", 8)
    assert (gather["output"], gather["ring_send"]) == (2**30, 7 * 2**27)
    assert round(Fraction(gather["output"] * 100, 10**9), 2) == Fraction("107.37")
    assert round(Fraction(gather["ring_send"] * 100, 10**9), 2) == Fraction("93.95")
    whole = wrong("collective", "whole-payload")("all-gather", 2**29, "bf16", 8)
    assert whole["ring_send"] == gather["output"]


@given(st.integers(1, 10**9), st.integers(2, 64))
def test_b73_reduce_scatter_and_all_gather_are_one_all_reduce(elements, degree):
    scatter, gather, reduce = (
        ownership.collective(kind, elements, "bf16", degree)["ring_send"]
        for kind in ("reduce-scatter", "all-gather", "all-reduce")
    )
    assert scatter + gather == reduce
    twice = wrong("collective", "gather-as-all-reduce")("all-gather", elements, "bf16", degree)["ring_send"]
    assert Fraction(scatter + twice, reduce) == Fraction(3, 2)


def test_b73_per_byte_of_parameters():
    scatter = ownership.collective("reduce-scatter", 8_000, "fp8", 8)["ring_send"]
    gather = ownership.collective("all-gather", 8_000, "fp8", 8)["ring_send"]
    assert Fraction(scatter + gather, 8_000) == Fraction("1.75")
    assert Fraction(scatter + wrong("collective", "gather-as-all-reduce")("all-gather", 8_000, "fp8", 8)["ring_send"], 8_000) == Fraction("2.625")


def test_b75_one_hop_is_not_the_whole_way_round():
    link = 450 * 10**9
    right = ownership.collective("all-gather", 10**9, "fp8", 8)["ring_send"]
    hop = wrong("collective", "one-hop")("all-gather", 10**9, "fp8", 8)["ring_send"]
    assert [round(Fraction(1000 * sent, link), 3) for sent in (right, hop)] == [Fraction("1.944"), Fraction("0.278")]


# The record.


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 600))
def test_degrees_multiply_to_the_world_or_are_refused(data, tensor, pipeline, context, world):
    mesh = layout(data=data, tensor=tensor, pipeline=pipeline, context=context)
    assert Ownership.from_json(mesh.to_json()) == mesh
    assume(world != mesh.world_size)
    refused("INCONSISTENT", mesh.replace, world_size=world)


def test_no_degree_for_sequences_and_no_prefetch_below_stage_3():
    mesh = layout(data=2, tensor=4, zero_stage=2)
    refused("UNDECLARED", mesh.replace, sequence_parallel=4)
    refused("INCONSISTENT", mesh.replace, prefetch_groups=1)
    refused("RANGE", mesh.replace, zero_stage=4)
    refused("ENUM", mesh.replace, fsdp_grouping="layers")
    assert mesh.replace(zero_stage=3, prefetch_groups=1).prefetch_groups == 1


def test_floats_and_booleans_are_no_counts():
    refused("TYPE", ownership.rank_state, A16, 8e9, 1, 8)
    refused("TYPE", ownership.collective, "all-gather", True, "bf16", 8)
    refused("TYPE", ownership.fsdp_events, 3, 1)
    refused("RANGE", ownership.in_flight, "1f1b", 4, 4, 8)
    refused("RANGE", ownership.mesh, layout(data=2), 2)
    refused("ENUM", ownership.collective, "all-to-all", 10, "bf16", 2)
