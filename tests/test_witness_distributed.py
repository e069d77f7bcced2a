"""Recorded ranks against the ownership ledgers: every byte agrees or has a reason, and the reasons hold by themselves."""

import random
from math import prod

import pytest

from costlib import observe, ownership, params, reconcile
from costlib.exercise import using
from costlib.fixtures import AUTOCAST, INFER_BF16, ODD, RUNNING, TOY_TIED
from costlib.observe import cutting
from costlib.observe.distributed import BUNDLES, UNEVEN
from costlib.schema import tensor_rows

PAIRS = [(kind, arch) for kind in ("fsdp2", "fsdp1", "zero1") for arch in (TOY_TIED, UNEVEN)]


@pytest.fixture(autouse=True)
def on_the_reference():
    with using("solutions"):
        yield


def name_of(kind, arch, world=2):
    return f"{kind}_{arch.manifest_id.replace('-', '_')}_{world}"


def of_collectives(world):
    rows = {"uneven refused": 2}
    for kind in ("all-gather", "reduce-scatter", "all-reduce"):
        for dtype in ("fp32", "bf16"):
            call = ownership.collective(kind, 60, dtype, world)
            rows |= {f"{kind} {dtype}.{side}": call[side] for side in ("input", "output")}
    uneven = ownership.collective("all-reduce", 61, "fp32", world)
    return rows | {f"all-reduce uneven.{side}": uneven[side] for side in ("input", "output")}


def of_state(policy, arch, stage, world):
    """Every rank alike, and all of them: the ledger cuts the unique scalars once."""
    count = params.ledger(arch).total
    state, whole = ownership.rank_state(policy, count, stage, world), ownership.rank_state(policy, count, 0, 1)
    rows = {"all ranks.weights": world * state["weights"], "all ranks.weights in shape": whole["weights"]}
    for rank in range(world):
        rows |= {f"rank {rank}.{row}": value for row, value in state.items()}
        if "optimizer.m" in state:
            rows[f"rank {rank}.optimizer"] = state["optimizer"]
    return rows


def of_groups(arch, world):
    groups = ownership.fsdp_groups(arch, "blocks")
    groups = {name: ownership.fsdp_group(count, world, "fp32") for name, count in groups.items()}
    names, events = list(groups), ownership.fsdp_events(len(groups), True)
    gathered = [groups[names[group]]["full"] for action, group in events if action == "gather"]
    scattered = [groups[names[group]]["full"] for action, group in events if action == "reduce-scatter"]
    rows = {f"{name}.{side}": group[side] for name, group in groups.items() for side in ("shard", "full")}
    return rows | {
        "all-gather calls": len(gathered),
        "all-gather output": sum(gathered),
        "reduce-scatter calls": len(scattered),
        "reduce-scatter input": sum(scattered),
    }


def of_zero1(arch, world):
    count = params.ledger(arch).total
    return of_state(AUTOCAST, arch, 1, world) | {
        "all-reduce input": ownership.collective("all-reduce", count, "fp32", world)["input"],
        "broadcast output": ownership.collective("all-gather", count, "fp32", world)["output"],
        "broadcast calls": 1,
    }


PREDICTED = {
    **{f"collectives_gloo_{world}": (of_collectives, world) for world in (2, 4)},
    **{name_of("fsdp2", arch, 8): (of_state, INFER_BF16, arch, 3, 8) for arch in (RUNNING, ODD, TOY_TIED)},
}


def predicted(name):
    if name in PREDICTED:
        call, *args = PREDICTED[name]
        return call(*args)
    kind, arch = next(pair for pair in PAIRS if name_of(*pair) == name)
    return of_zero1(arch, 2) if kind == "zero1" else of_state(AUTOCAST, arch, 3, 2) | of_groups(arch, 2)


def residuals(name):
    report = reconcile.report((), predicted(name), observe.read(name))
    return {counter: row["residual"] for counter, row in report["counters"].items() if row["residual"]}


@pytest.mark.parametrize("name", BUNDLES)
def test_every_byte_agrees_or_has_a_reason(name):
    counters = reconcile.report((), predicted(name), observe.read(name))["counters"]
    assert counters and {row["status"] for row in counters.values()} <= {"exact", "explained"}
    assert all((row["status"] == "exact") == (row["residual"] == 0) for row in counters.values())


@pytest.mark.parametrize("name", BUNDLES)
def test_a_bundle_says_what_it_is(name):
    seen = observe.read(name)
    assert (seen.evidence_class, seen.raw_artifact) == ("locally_measured", f"{name}.json")
    assert seen.hardware == ("meta device, no arithmetic" if name.endswith("_8") else "CPU")
    assert seen.producer.startswith("costlib.observe.distributed.") and seen.framework and seen.scope
    assert all(row.amount for row in seen.explanations)  # nothing is explained that is not there
    wire = [counter for counter in seen.counters if "output" in counter.name or "input" in counter.name]
    assert all("what gloo sends is not seen" in counter.visibility for counter in wire)


def test_what_a_rank_puts_in_and_gets_out_is_exact():
    for world in (2, 4):
        seen = observe.read(f"collectives_gloo_{world}")
        assert seen.value("all-gather fp32.input") == 60 * 4 // world  # a shard in, all out
        assert seen.value("all-gather bf16.output") == 60 * 2
        assert seen.value("reduce-scatter fp32.input") == 60 * 4  # all in, a shard out
        assert seen.value("reduce-scatter bf16.output") == 60 * 2 // world
        assert seen.value("all-reduce fp32.input") == seen.value("all-reduce fp32.output") == 60 * 4
    uneven = {"all-reduce uneven.input", "all-reduce uneven.output"}
    assert residuals("collectives_gloo_2") == dict.fromkeys(uneven, -4)  # 61 values, where the ledger has 62
    assert residuals("collectives_gloo_4") == dict.fromkeys(uneven, -12)  # and 64


def test_shapes_that_divide_leave_step_counters_and_one_gather():
    for kind, counters in (("fsdp2", 20), ("fsdp1", 3)):  # of 2 * 9 + 2 tensors, or of 2 + 1 flat groups
        assert residuals(name_of(kind, TOY_TIED)) == {
            "rank 0.optimizer": 4 * counters,
            "rank 1.optimizer": 4 * counters,
            "all-gather calls": -1,
            "all-gather output": -4 * (128 + 8),  # the tied table and the final norm
        }


def test_the_odd_model_under_fsdp2_by_hand():
    # Rows of rank 0 and of rank 1: table 17, q 18, k and v 6, o 15, gate and up 13, down 15, norms 15.
    block_0 = 9 * 15 + 2 * (3 * 15) + 8 * 18 + 2 * (7 * 15) + 8 * 13 + 2 * 8
    block_1 = 9 * 15 + 2 * (3 * 15) + 7 * 18 + 2 * (6 * 15) + 7 * 13 + 2 * 7
    rank_0, rank_1 = 4 * (9 * 15 + 8 + 3 * block_0), 4 * (8 * 15 + 7 + 3 * block_1)
    whole = 17 * 15 + 15 + 3 * (2 * 18 * 15 + 2 * 6 * 15 + 3 * 13 * 15 + 2 * 15)
    seen = observe.read("fsdp2_uneven_2")
    assert (whole, rank_0, rank_1, rank_0 + rank_1) == (4_275, 8_960, 8_140, 4 * whole)
    assert params.ledger(UNEVEN).total == whole
    for rank in (0, 1):  # the storage is rank 0's size on both; the moments follow the rows
        assert seen.value(f"rank {rank}.weights") == seen.value(f"rank {rank}.gradients") == rank_0
        assert seen.value(f"rank {rank}.optimizer.m") == seen.value(f"rank {rank}.optimizer.v") == (rank_0, rank_1)[rank]
        assert seen.value(f"rank {rank}.optimizer") == 2 * (rank_0, rank_1)[rank] + 4 * 29
    assert seen.value("all ranks.weights in shape") == 4 * whole
    assert residuals("fsdp2_uneven_2")["rank 0.weights"] == rank_0 - 4 * 2_138 == 408


def test_the_odd_model_under_fsdp1_is_the_ledger_group_by_group():
    assert residuals("fsdp1_uneven_2") == {
        **{f"rank {rank}.{row}": 4 for rank in (0, 1) for row in ("weights", "gradients", "optimizer.m", "optimizer.v")},
        **{f"rank {rank}.optimizer": 2 * 4 + 4 * 4 for rank in (0, 1)},
        "all-gather calls": -1,
        "all-gather output": -4 * (17 * 15 + 15),
    }  # 3 blocks of 1,335 scalars lose half a scalar each; the whole, 4,275, loses one half


def test_whole_tensors_dealt_out_by_hand():
    # By size: 6 of 270 go 3 to each rank; the table, 255, to rank 0; then 9 of 195, 6 of 90 and 7 of 15.
    rank_0 = 3 * 270 + 255 + 4 * 195 + 3 * 90 + 2 * 15
    rank_1 = 3 * 270 + 5 * 195 + 3 * 90 + 5 * 15
    seen = observe.read("zero1_uneven_2")
    assert (rank_0, rank_1, rank_0 + rank_1) == (2_145, 2_130, 4_275)
    for rank, (own, tensors) in enumerate([(rank_0, 13), (rank_1, 16)]):
        assert seen.value(f"rank {rank}.optimizer.m") == seen.value(f"rank {rank}.optimizer.v") == 4 * own
        assert seen.value(f"rank {rank}.optimizer") == 8 * own + 4 * tensors
        assert seen.value(f"rank {rank}.weights") == seen.value(f"rank {rank}.gradients") == 4 * 4_275
    assert seen.value("broadcast output") == 4 * 4_275 + 2 * 3 * 4  # and two rotary tables of 3 frequencies
    assert seen.value("broadcast calls") == 29 + 1


@pytest.mark.parametrize("arch", [RUNNING, ODD, TOY_TIED], ids=repr)
def test_shards_of_eight_are_the_unique_parameters_and_padding(arch):
    seen, unique = observe.read(name_of("fsdp2", arch, 8)), [t for t in tensor_rows(arch) if not t.alias_of]
    padded = [-(-tensor.shape[0] // 8) * 8 * prod(tensor.shape[1:]) for tensor in unique]
    pads = sum(padded) - sum(tensor.numel for tensor in unique)
    assert seen.value("all ranks.weights in shape") == 2 * params.ledger(arch).total
    assert seen.value("all ranks.weights") == 2 * (params.ledger(arch).total + pads)
    assert {seen.value(f"rank {rank}.weights") for rank in range(8)} == {2 * sum(padded) // 8}


def test_the_running_model_leaves_no_residual_on_eight_ranks():
    assert residuals("fsdp2_running_8") == {}
    assert observe.read("fsdp2_running_8").value("rank 7.weights") == 2 * 8_030_261_248 // 8


@pytest.mark.parametrize("name", BUNDLES)
def test_one_byte_more_or_less_stays_open(name):
    seen, ours = observe.read(name), predicted(name)
    for row in seen.counters:
        wrong = tuple(c.replace(value=c.value + 1) if c.name == row.name else c for c in seen.counters)
        counters = reconcile.report((), ours, seen.replace(counters=wrong))["counters"]
        assert [n for n, c in counters.items() if c["status"] == "open"] == [row.name]


@pytest.mark.parametrize("name", ["fsdp2_uneven_2", "fsdp2_odd_8", "zero1_uneven_2", "collectives_gloo_4"])
def test_without_its_reasons_a_residual_stays_open(name):
    assert reconcile.report((), predicted(name), observe.read(name).replace(explanations=()))["status"] == "open"


# The rules, against lists that are really cut


def test_first_axes_cut_one_by_one_against_lists():
    draw = random.Random(7)
    for _ in range(300):
        world, shape = draw.randint(1, 9), tuple(draw.randint(1, 12) for _ in range(draw.randint(1, 3)))
        rows = list(range(shape[0]))
        piece = (len(rows) + world - 1) // world
        parts = [rows[rank * piece : (rank + 1) * piece] for rank in range(world)]
        owned = [cutting.owned([shape], world, rank) for rank in range(world)]
        assert owned == [len(part) * prod(shape[1:]) for part in parts]
        assert sum(owned) == cutting.scalars([shape]) and max(owned) == cutting.kept("fsdp2", [shape], world)


def test_padding_by_kind_adds_up():
    for arch, world in ((ODD, 8), (UNEVEN, 2), (TOY_TIED, 8), (TOY_TIED, 3)):
        shapes = {t.name: t.shape for t in tensor_rows(arch) if not t.alias_of}
        once = ownership.shard(params.ledger(arch).total, world)["shard"]
        kept = cutting.kept("fsdp2", shapes.values(), world)
        assert sum(cutting.padding(shapes, world).values()) == world * (kept - once)


def test_groups_are_the_ledgers():
    for arch in (RUNNING, ODD, TOY_TIED, UNEVEN):
        shapes = {t.name: t.shape for t in tensor_rows(arch) if not t.alias_of}
        groups = {name: cutting.scalars(group) for name, group in cutting.groups(shapes).items()}
        assert groups == dict(ownership.fsdp_groups(arch, "blocks"))


def test_dealing_gives_every_tensor_to_one_rank():
    draw = random.Random(8)
    for _ in range(100):
        shapes = [(draw.randint(1, 9), draw.randint(1, 9)) for _ in range(draw.randint(1, 20))]
        world = draw.randint(1, 5)
        loads = cutting.dealt(shapes, world)
        assert sum(load for load, _ in loads) == cutting.scalars(shapes) and sum(n for _, n in loads) == len(shapes)
        most = max(map(prod, shapes))  # the least rank gets the next tensor, so no two are further apart
        assert max(loads)[0] - min(loads)[0] <= most
