"""What PyTorch holds of three models against what the manifest declares, and observations spoilt on purpose."""

import pytest

from costlib import hypotheses, observe, params, reconcile
from costlib.estimate import Plan, estimate
from costlib.exercise import using
from costlib.fixtures import RUNNING
from costlib.observe.parameters import CASES, ODD_BIASED
from costlib.schema import tensor_rows
from costlib.units import ceil_div

BLOCK = 2 * 96 * 160 + 3 * 96 * 250 + 2 * 96  # of ODD: four projections, three matrices of the MLP, two norms
BIASES = 120 + 2 * 40 + 96 + 2 * 250 + 96
WITNESSES = {  # bundle: unique scalars, named scalars, names that a state_dict holds
    "parameters_tiny_tied": (1_128, 1_256, 21),
    "parameters_running": (8_030_261_248, 8_030_261_248, 291),
    "parameters_odd_biased": (2 * 1009 * 96 + 96 + 3 * (BLOCK + BIASES),) * 2 + (3 * 16 + 3,),
    "parameters_odd_tied": (1009 * 96 + 96 + 3 * BLOCK, 2 * 1009 * 96 + 96 + 3 * BLOCK, 3 * 9 + 3),
}
WIDTH = {"bf16": 2, "fp16": 2, "fp32": 4}
HEAD, TABLE = "lm_head.weight", "model.embed_tokens.weight"


@pytest.fixture(autouse=True)
def on_the_reference():
    with using("solutions"):
        yield


def report(name, **changes):
    arch, dtype, _ = CASES[name]
    predicted = {ledger: total for ledger, total, _ in estimate(Plan(plan_id="x", architecture=arch, weight_dtype=dtype)).summary()}
    rows = tuple(row.replace(dtype=dtype) for row in tensor_rows(arch))
    return reconcile.report(rows, predicted, observe.read(name).replace(**changes))


def named(arch, observed):
    return [h["name"] for h in hypotheses.explain(hypotheses.of_parameters(arch), observed, 99) if h["exact"]]


@pytest.mark.parametrize("name", WITNESSES)
def test_the_ledger_and_the_framework_agree_in_every_name_and_number(name):
    seen = report(name)
    assert not any(seen["state"].values()) and seen["status"] == "exact"
    assert set(seen["counters"]) == {"parameters", "named parameters", "weight payload"}


@pytest.mark.parametrize("name", WITNESSES)
def test_the_recorded_numbers_are_these(name):
    unique, by_name, names = WITNESSES[name]
    seen = observe.read(name)
    assert (seen.value("parameters"), seen.value("named parameters")) == (unique, by_name)
    assert seen.value("weight payload") == unique * WIDTH[CASES[name][1]]
    assert sum(entry.persistent for entry in seen.entries) == names
    inventory = params.inventory(seen.entries)
    assert (inventory["unique"], inventory["trainable"], inventory["named"], inventory["buffers"]) == (unique, unique, by_name, 0)


@pytest.mark.parametrize("name", WITNESSES)
def test_rotary_tables_are_fp32_buffers_that_no_checkpoint_holds(name):
    arch = CASES[name][0]
    buffers = [entry for entry in observe.read(name).entries if entry.kind == "buffer"]
    assert [(b.shape, b.dtype, b.persistent, b.trainable) for b in buffers] == [((arch.head_dim // 2,), "fp32", False, False)] * 2
    assert all("inv_freq" in b.name for b in buffers)


def test_the_tie_is_one_storage_under_two_names():
    for name in ("parameters_tiny_tied", "parameters_odd_tied"):
        assert [entry.name for entry in observe.read(name).entries if entry.storage == TABLE] == [TABLE, HEAD]
    for name in ("parameters_running", "parameters_odd_biased"):
        storages = [entry.storage for entry in observe.read(name).entries if entry.kind == "parameter"]
        assert len(storages) == len(set(storages))


# Spoilt on purpose: each ends as what it is.


def spoil(name, **by_entry):
    """The entries of a bundle, some of them changed, and its counters as PyTorch would add them up then."""
    entries = tuple(by_entry.get(e.name.replace(".", "_"), lambda e: e)(e) for e in observe.read(name).entries)
    seen, width = params.inventory(entries), WIDTH[CASES[name][1]]
    numbers = {"parameters": seen["unique"], "named parameters": seen["named"], "weight payload": width * seen["unique"]}
    counters = tuple(counter.replace(value=numbers[counter.name]) for counter in observe.read(name).counters)
    return report(name, entries=entries, counters=counters)


def differing(found):
    return {kind: names for kind, names in found["state"].items() if names}


# In the toy, K and V for every query head weigh as much as a second table: 2 * 2 * 8 * (8 - 4) = 16 * 8.
TIED = [
    ("parameters_tiny_tied", 1_256, ["tied twice", "MHA for GQA"]),
    ("parameters_odd_tied", 2 * 1009 * 96 + 96 + 3 * BLOCK, ["tied twice"]),
]


@pytest.mark.parametrize("name, observed, suspects", TIED)
def test_a_broken_tie_is_a_broken_alias_and_a_tied_head_counted_twice(name, observed, suspects):
    found = spoil(name, lm_head_weight=lambda e: e.replace(storage=HEAD))
    assert found["status"] == "open" and differing(found) == {"broken alias": [HEAD]}
    assert found["counters"]["parameters"]["observed"] == observed and found["counters"]["named parameters"]["status"] == "exact"
    assert named(CASES[name][0], observed) == suspects


@pytest.mark.parametrize("name, observed, suspects", TIED)
def test_one_table_counted_twice_is_the_same_number_and_no_difference_of_state(name, observed, suspects):
    """Summed by name instead of by storage: the tensors are right, K and V among them, and the addition is not."""
    counters = tuple(c.replace(value=observed) if c.name == "parameters" else c for c in observe.read(name).counters)
    found = report(name, counters=counters)
    assert found["status"] == "open" and differing(found) == {}
    assert found["counters"]["parameters"]["residual"] == CASES[name][0].vocab_size * CASES[name][0].hidden_size
    assert named(CASES[name][0], observed) == suspects


def test_an_accidental_tie_is_named_though_the_untied_shapes_are_all_there():
    found = spoil("parameters_odd_biased", lm_head_weight=lambda e: e.replace(storage=TABLE))
    assert differing(found) == {"accidental alias": [HEAD, TABLE]}
    observed = found["counters"]["parameters"]["observed"]
    assert named(ODD_BIASED, observed) == ["tied head", "head missing", "embedding missing"]


@pytest.mark.parametrize("name, shape, other", [
    ("parameters_running", (1024, 4096), (4096, 1024)),
    ("parameters_odd_tied", (40, 96), (96, 40)),
    ("parameters_tiny_tied", (4, 8), (2, 16)),
])  # fmt: skip
def test_a_reshaped_weight_leaves_every_sum_as_it_was(name, shape, other):
    key = "model.layers.0.self_attn.k_proj.weight"
    assert next(e.shape for e in observe.read(name).entries if e.name == key) == shape
    found = spoil(name, **{key.replace(".", "_"): lambda e: e.replace(shape=other)})
    assert {row["status"] for row in found["counters"].values()} == {"exact"}
    assert found["status"] == "open" and differing(found) == {"shape": [key]}


@pytest.mark.parametrize("ranks", [2, 8])
def test_partitioned_parameters_are_one_shard_of_each_tensor(ranks):
    """One rank of a partitioned model sees flat pieces: every name is there, no shape is, and the sum is a shard's."""
    def shard(entry):
        whole = entry.kind == "buffer" or entry.numel % ranks
        return entry if whole else entry.replace(shape=(entry.numel // ranks,))

    names = [tensor.name for tensor in tensor_rows(RUNNING)]
    found = spoil("parameters_running", **{name.replace(".", "_"): shard for name in names})
    assert differing(found) == {"shape": sorted(names)}
    observed = found["counters"]["parameters"]["observed"]
    assert observed == ceil_div(8_030_261_248, ranks) and named(RUNNING, observed) == [f"shard of {ranks}"]


def test_a_frozen_tensor_and_another_dtype_are_told_by_name():
    key = "model.norm.weight"
    found = spoil("parameters_odd_biased", model_norm_weight=lambda e: e.replace(trainable=False, dtype="bf16"))
    assert differing(found) == {"trainability": [key], "dtype": [key]}
