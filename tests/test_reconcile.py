"""Predictions against observations: 14 cases, 12 faults, and what an unexplained number may be."""

import json
import random

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import manifests, workloads

from costlib import data, faults, hypotheses, papers, params, reconcile, sensitivity
from costlib.domain import ManifestError
from costlib.estimate import Plan, estimate
from costlib.evidence import STATUSES, Counter, Explanation, Hypothesis, Observation, SeenEntry
from costlib.exercise import using
from costlib.fixtures import LIVE_TINY, ODD, PREFILL_4K, RUNNING, TOY, TOY_TIED, TRAIN_4K, W_7B
from costlib.policies import Ownership
from costlib.records import StateEntry, Tensor, Workload
from costlib.schema import state_entries, tensor_rows

TIED_ROWS = tensor_rows(TOY_TIED)
Q, HEAD, TABLE = "model.layers.0.self_attn.q_proj.weight", "lm_head.weight", "model.embed_tokens.weight"
TINY = Plan(
    plan_id="tiny",
    architecture=TOY_TIED,
    workload=Workload(workload_id="tiny", phase="prefill", batch_size=1, new_rows=4, visible_rows=4, logits="final"),
    attention_schedule="materialized",
    liveness=LIVE_TINY,
)


@pytest.fixture(autouse=True)
def on_the_reference():
    with using("solutions"):
        yield


def refused(code, call, *args, **kwargs):
    with pytest.raises(ManifestError) as refusal:
        call(*args, **kwargs)
    assert refusal.value.code == code


def told(*amounts):
    return tuple(Explanation(counter="peak", amount=amount, text="why", scope="here") for amount in amounts)


def changed(name, **changes):
    return tuple(e.replace(**changes) if e.name == name else e for e in faults.tiny().entries)


def differing(observed, expected=TIED_ROWS):
    return {kind: names for kind, names in reconcile.state(expected, observed).items() if names}


def predicted(plan=TINY):
    return {name: total for name, total, _ in estimate(plan).summary()}


# The fourteen cases of M 0x0A and 0x0D


def test_01_the_tiny_observation_closes():
    report = reconcile.report(TIED_ROWS, predicted(), faults.tiny())
    assert report["counters"] == {
        "activation peak": {
            "predicted": 448, "observed": 576, "residual": 128, "explained": 128, "status": "explained"
        },
        "attention transfer": {
            "predicted": 1_408, "observed": 1_536, "residual": 128, "explained": 128, "status": "explained"
        },
    }  # fmt: skip
    assert not any(report["state"].values()) and report["status"] == "explained"


def test_02_tied_names_are_one_storage():
    seen = params.inventory(faults.tiny().entries)
    assert (seen["named"], seen["unique"]) == (1_256, 1_128)
    assert differing(faults.tiny().entries) == {}


def test_03_equal_numbers_of_scalars_on_other_axes_stay_open():
    entries = changed(Q, shape=(4, 16))
    assert params.inventory(entries) == params.inventory(faults.tiny().entries)
    assert differing(entries) == {"shape": [Q]}
    assert reconcile.report(TIED_ROWS, predicted(), faults.tiny().replace(entries=entries))["status"] == "open"


def test_04_a_broken_tie_stays_open():
    entries = changed(HEAD, storage="storage:head")
    assert params.inventory(entries)["named"] == 1_256 and params.inventory(entries)["unique"] == 1_256
    assert differing(entries) == {"broken alias": [HEAD]}


def test_05_half_of_a_residual_explained_stays_open():
    assert reconcile.counter(448, 576, told(64)) == {"residual": 128, "explained": 64, "status": "open"}


@pytest.mark.parametrize(
    "label, given",
    [
        ("locally_measured", {}),
        ("locally_measured", {"hardware": "CPU", "framework": "torch 2.9"}),
        ("locally_measured", {"hardware": "CPU", "raw_artifact": "trace.json"}),
        ("locally_measured", {"framework": "torch 2.9", "raw_artifact": "trace.json"}),
        ("locally_measured", {"hardware": "", "framework": "torch 2.9", "raw_artifact": "trace.json"}),
        ("source_reported", {}),
    ],
)
def test_06_evidence_without_what_its_label_owes_is_refused(label, given):
    refused("MISSING", Observation, observation_id="x", evidence_class=label, **given)


def test_07_without_an_observation_everything_is_unmeasured():
    assert reconcile.report(TIED_ROWS, predicted(), None) == {"state": None, "counters": {}, "status": "unmeasured"}
    assert reconcile.counter(448, None) == {"residual": None, "explained": 0, "status": "unmeasured"}


def test_08_the_running_plan_is_an_unmeasured_smoke_report():
    found = estimate(Plan(plan_id="running", architecture=RUNNING, workload=PREFILL_4K, attention_schedule="materialized"))
    assert found["parameters"].total == 8_030_261_248
    assert found["forward"].total == 65_971_748_339_712
    assert found["attention transfer"].total == 140_123_308_032
    assert "activation peak" in found.not_supplied and "activation peak" not in found.ledgers


def test_09_a_sensitivity_case_with_two_patches_is_refused():
    two = (("architecture.num_key_value_heads", 1), ("workload.batch_size", 8))
    refused("INCONSISTENT", sensitivity.run, TINY, (("both", two),))


def test_10_the_base_of_a_sensitivity_run_keeps_its_hash():
    before = TINY.sha256
    sensitivity.run(TINY, (("heads", (("architecture.num_key_value_heads", 1),)),))
    assert TINY.sha256 == before


def test_11_three_shards_of_eight_ranks_are_refused():
    refused("INCONSISTENT", Ownership, policy_id="x", world_size=8, data_parallel=3)


@pytest.mark.parametrize("given", [{}, {"normalized_to_common_manifest": True}, {"target_case_id": "running"}])
def test_12_a_paper_is_not_opened_for_comparison_before_it_is_normalized(given):
    kaplan = papers.registry()[1]
    refused("INCONSISTENT", kaplan.replace, numeric_comparison_allowed=True, **given)


def test_13_a_written_integer_does_not_follow_a_changed_geometry():
    drifted = params.ledger(TOY_TIED.replace(num_key_value_heads=4)).total
    assert reconcile.counter(drifted, 1_128) == {"residual": -128, "explained": 0, "status": "open"}


@pytest.mark.parametrize("gone", range(6))
def test_14_a_registry_without_one_of_six_sources_says_which(gone):
    rows = papers.registry()
    assert papers.missing_contracts(rows[:gone] + rows[gone + 1 :]) == [papers.SOURCES[gone]]


# The twelve faults of M 0x0DA

ENDS = {
    "reshaped tensor": ("open", "exact"),
    "untied head": ("open", "exact"),
    "mislabelled evidence": ("rejected", "explained"),
    "unexplained counter": ("open", "explained"),
    "no observation": ("unmeasured", "explained"),
    "no liveness": ("unmeasured", "explained"),
    "two patches": ("rejected", "exact"),
    "mutated base": ("open", "exact"),
    "illegal shard": ("rejected", "exact"),
    "unnormalized paper": ("rejected", "exact"),
    "drifted geometry": ("open", "exact"),
    "missing paper": ("rejected", "exact"),
}


@pytest.mark.parametrize("case", ENDS)
def test_a_fault_ends_where_it_must_and_the_check_closes_without_it(case):
    assert (reconcile.closure(case), reconcile.closure(case, False)) == ENDS[case]


def test_there_is_no_further_fault():
    assert list(faults.INJECT) == list(ENDS)


def test_a_broken_check_is_no_closed_fault(monkeypatch):
    monkeypatch.setitem(faults.INJECT, "illegal shard", lambda present: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        reconcile.closure("illegal shard")


def test_the_toy_is_whole_after_every_fault():
    before = TOY_TIED.sha256
    for case in faults.INJECT:
        reconcile.closure(case)
    assert TOY_TIED.sha256 == before


# State

BREAKS = {
    "missing": lambda e: None,
    "unexpected": lambda e: e.replace(name=f"module.{e.name}"),
    "shape": lambda e: e.replace(shape=(*e.shape, 2)),
    "dtype": lambda e: SeenEntry(**vars(e) | {"dtype": "fp32"}),
    "kind": lambda e: e.replace(kind="buffer"),
    "trainability": lambda e: e.replace(trainable=False),
}


@given(manifests(), st.sampled_from(sorted(BREAKS)), st.randoms(use_true_random=False))
def test_one_broken_entry_is_found_and_no_other(arch, kind, rng):
    rows = tensor_rows(arch)
    entries = list(state_entries(rows))
    assert differing(tuple(entries), rows) == {}
    i = rng.randrange(len(entries))
    name, broken = entries[i].name, BREAKS[kind](entries[i])
    found = differing((*entries[:i], *((broken,) if broken else ()), *entries[i + 1 :]), rows)
    if kind == "unexpected":
        assert found == {"missing": [name], "unexpected": [f"module.{name}"]}
    else:
        assert found == {kind: [name]}


def test_a_seen_dtype_is_compared_and_an_unseen_one_is_not():
    seen = SeenEntry(**vars(state_entries(TIED_ROWS)[0]), dtype="fp32")
    assert reconcile.dtypes(TIED_ROWS, (seen,)) == [TABLE]
    assert reconcile.dtypes(TIED_ROWS, (seen.replace(dtype=None), *state_entries(TIED_ROWS))) == []


@pytest.mark.parametrize("seed", range(100))
def test_aliases_are_what_identity_of_objects_says(seed):
    """Storages as Python objects: every pair of names asked whether it holds one object, and whether it may."""
    rng = random.Random(seed)
    roots = [Tensor(name=name, shape=(2,)) for name in "abcd"]
    rows = (*roots, *(Tensor(name=f"{rng.choice('abcd')}{i}", shape=(2,), alias_of=rng.choice("abcd")) for i in range(3)))
    objects = {row.name: [] for row in rows}
    held = {row.name: objects[row.alias_of or row.name] for row in rows}
    for row in rows:
        if rng.random() < 0.3:
            held[row.name] = rng.choice([[], *held.values()])
    seen = tuple(StateEntry(name=n, shape=(2,), storage=str(id(x))) for n, x in held.items() if rng.random() < 0.9)
    names = {entry.name for entry in seen}
    whose = {row.name: row.alias_of or row.name for row in rows}
    assert reconcile.aliases(rows, seen) == {
        "broken alias": sorted(
            r.name for r in rows if {r.name, r.alias_of} <= names and held[r.name] is not held[r.alias_of]
        ),
        "accidental alias": sorted(
            {a for a in names for b in names if held[a] is held[b] and whose[a] != whose[b]}
        ),
    }


def test_a_copy_and_a_tie_are_told_apart_where_values_are_equal():
    """A loader gave the head a copy of the table: 1,498,482,688 scalars in memory, 1,235,814,400 announced (B02)."""
    small = RUNNING.replace(
        num_layers=16, hidden_size=2048, head_dim=64, intermediate_size=8192, tie_word_embeddings=True
    )
    rows = tensor_rows(small)
    copied = tuple(e.replace(storage="copy") if e.name == HEAD else e for e in state_entries(rows))
    assert params.inventory(copied)["unique"] == 1_498_482_688
    assert differing(copied, rows) == {"broken alias": [HEAD]}
    found = hypotheses.explain(hypotheses.of_parameters(small), 1_498_482_688)
    assert found[0]["name"] == "tied twice" and found[0]["exact"] and params.ledger(small).total == 1_235_814_400


# Counters


@given(
    st.integers(0, 10**20),
    st.integers(0, 10**20),
    st.lists(st.integers(-(10**20), 10**20), max_size=4),
)
def test_a_counter_closes_exactly_when_its_explanations_add_up(prediction, observation, amounts):
    rows = told(*amounts)
    row = reconcile.counter(prediction, observation, rows)
    assert row["residual"] == observation - prediction and row["explained"] == sum(amounts)
    assert (row["status"] != "open") == (sum(amounts) == observation - prediction)
    whole = reconcile.counter(prediction, observation, (*rows, *told(observation - prediction - sum(amounts))))
    assert whole["status"] == ("exact" if prediction == observation else "explained")


def test_a_residual_of_zero_does_not_close_with_explanations_left_over():
    assert reconcile.counter(448, 448, told(64))["status"] == "open"
    assert reconcile.counter(448, 448, told(64, -64))["status"] == "exact"


@given(st.lists(st.sampled_from(STATUSES), max_size=6))
def test_a_report_is_as_good_as_its_worst_part(parts):
    answer = reconcile.status(tuple(parts))
    assert answer == next((status for status in STATUSES if status in parts), "unmeasured")
    assert all(reconcile.status((*parts, worse)) == worse for worse in STATUSES[: STATUSES.index(answer) + 1] if parts)


# Observations

SCHEMA = jsonschema.Draft202012Validator(json.loads(data.read("observation.schema.json")))
TEXT = data.read("observations/tiny_tied.json")


def test_the_tiny_observation_is_what_its_schema_and_its_record_ask_for():
    jsonschema.Draft202012Validator.check_schema(SCHEMA.schema)
    SCHEMA.validate(json.loads(TEXT))
    assert Observation.from_json(faults.tiny().to_json()) == faults.tiny()


def without(*path):
    def change(bundle):
        *way, last = path
        for step in way:
            bundle = bundle[step]
        del bundle[last]

    return change


def setting(value, *path):
    def change(bundle):
        *way, last = path
        for step in way:
            bundle = bundle[step]
        bundle[last] = value

    return change


@pytest.mark.parametrize(
    "code, change",
    [
        ("MISSING", without("evidence_class")),
        ("MISSING", without("counters", 0, "visibility")),
        ("MISSING", setting("", "counters", 0, "visibility")),
        ("MISSING", without("explanations", 0, "scope")),
        ("MISSING", setting("", "explanations", 0, "text")),
        ("MISSING", setting("locally_measured", "evidence_class")),
        ("MISSING", setting("source_reported", "evidence_class")),
        ("INCONSISTENT", setting("unmeasured", "evidence_class")),
        ("ENUM", setting("analytical", "evidence_class")),
        ("ENUM", setting("weight", "entries", 0, "kind")),
        ("TYPE", setting(576.0, "counters", 0, "value")),
        ("NEG", setting(-1, "counters", 0, "value")),
        ("TYPE", setting("128", "explanations", 0, "amount")),
        ("UNDECLARED", setting("GPU", "device")),
    ],
)
def test_a_spoilt_observation_is_refused_by_record_and_schema(code, change):
    bundle = json.loads(TEXT)
    change(bundle)
    refused(code, Observation.from_json, json.dumps(bundle))
    # JSON Schema takes 576.0 for an integer: that one only the record refuses.
    assert SCHEMA.is_valid(bundle) == (type(bundle["counters"][0].get("value")) is float)


def test_what_only_the_record_sees():
    twice = Counter(name="peak", value=1, unit="B", visibility="all")
    refused("INCONSISTENT", faults.tiny().replace, counters=(twice, twice), explanations=())
    refused("UNDECLARED", faults.tiny().replace, counters=())
    assert faults.tiny().value("latency") is None


# Hypotheses


def exact(candidates, observed):
    return [row["name"] for row in hypotheses.explain(candidates, observed, 99) if row["exact"]]


def cache(arch, rows=4096, dtype="bf16"):
    return hypotheses.of_cache(arch, 1, rows, dtype)


def test_a_wrong_forward_count_is_two_mistakes_at_once():
    found = hypotheses.explain(hypotheses.of_forward(RUNNING, TRAIN_4K), 30_739_080_937_472)
    assert found[0]["name"] == "MACs, attention not seen" and found[0]["exact"]
    assert not any(row["exact"] for row in found[1:])


def test_a_wrong_parameter_count_has_three_explanations_and_so_none():
    found = hypotheses.explain(hypotheses.of_parameters(RUNNING), 7_504_924_672)
    assert [row["name"] for row in found if row["exact"]] == ["tied head", "head missing", "embedding missing"]


def test_a_wrong_training_count_is_told_apart_only_where_s_is_not_d():
    both = ["half of the rectangle", "textbook block"]
    assert exact(hypotheses.of_training(RUNNING, TRAIN_4K), 197_628_625_158_144) == both
    short = TRAIN_4K.replace(new_rows=1000, visible_rows=1000)
    half = 3 * (1000 * 2 * (32 * 218_103_808 + 128_256 * 4096) + 32 * 2 * 1000**2 * 4096)
    assert exact(hypotheses.of_training(RUNNING, short), half) == ["half of the rectangle"]


SEVENTY = W_7B.replace(num_layers=40, hidden_size=5120, num_attention_heads=40, num_key_value_heads=40, intermediate_size=13824)
NANO = ODD.replace(
    num_layers=12, hidden_size=768, num_attention_heads=6, num_key_value_heads=6, head_dim=128, intermediate_size=3072,
    vocab_size=50304, mlp="two-matrix", norms_per_block=0, final_norm=False,
    extra_trainable_sets=(Tensor(name="scalars", shape=(36,)),),
)  # fmt: skip
QWEN = RUNNING.replace(num_layers=36, hidden_size=2560, num_attention_heads=32)
LLAMA_30 = W_7B.replace(num_layers=60, hidden_size=6656, num_attention_heads=52, num_key_value_heads=52)
WIDE = RUNNING.replace(num_layers=64)
OSS = RUNNING.replace(num_layers=36, head_dim=64)


@pytest.mark.parametrize(
    "bug, candidates, right, observed, name",
    [
        ("B01", lambda: hypotheses.of_parameters(NANO), 162_201_636, 123_568_164, "tied head"),
        ("B07", lambda: hypotheses.of_parameters(SEVENTY), 13_015_864_320, 6_671_979_520, "packed 4-bit"),
        ("B12", lambda: hypotheses.of_parameters(RUNNING), 8_030_261_248, 8_032_358_400, "vocabulary padded to 512"),
        ("B53", lambda: hypotheses.of_parameters(RUNNING), 8_030_261_248, 8_030_527_488, "the other norm"),
        ("B14", lambda: hypotheses.of_forward(RUNNING, TRAIN_4K), 70_274_254_897_152, 35_137_127_448_576, "MACs for FLOPs"),
        ("B17", lambda: hypotheses.of_forward(RUNNING, TRAIN_4K), 70_274_254_897_152, 61_478_161_874_944, "attention not seen"),
        ("B18", lambda: hypotheses.of_forward(RUNNING, TRAIN_4K), 70_274_254_897_152, 79_070_347_919_360, "attention seen twice"),
        ("B21", lambda: hypotheses.of_forward(RUNNING, TRAIN_4K), 70_274_254_897_152, 63_677_185_130_496, "K/V heads for scores"),
        ("B31", lambda: hypotheses.of_forward(RUNNING, TRAIN_4K), 70_274_254_897_152, 74_577_812_127_744, "lookup as a product"),
        ("B57", lambda: cache(RUNNING, 1), 131_072, 16_384, "shard of 8"),
        ("B76", lambda: cache(RUNNING), 536_870_912, 2_147_483_648, "MHA for GQA"),
        ("B77", lambda: cache(QWEN, 1), 147_456, 92_160, "head width d / H"),
        ("B82", lambda: cache(OSS, 1), 73_728, 36_864, "half of the layers"),
        ("B86", lambda: cache(LLAMA_30, 512), 780 * 2**20, 1560 * 2**20, "fp32 for bf16"),
        ("B88", lambda: cache(WIDE, 32_768), 8192 * 2**20, 4352 * 2**20, "8-bit blocks"),
        ("B88", lambda: cache(WIDE, 32_768), 8192 * 2**20, 2304 * 2**20, "4-bit blocks"),
        ("B89", lambda: cache(W_7B, 1, "int4"), 131_072, 4_194_304, "d for every head"),
        ("B91", lambda: cache(RUNNING), 536_870_912, 134_217_728, "shard of 4"),
        ("B96", lambda: cache(RUNNING), 536_870_912, 500_000_000, "GiB read as GB"),
    ],
)
def test_a_reported_wrong_number_is_the_exact_number_of_a_named_hypothesis(bug, candidates, right, observed, name):
    rows = candidates()
    assert (rows[0].name, rows[0].value) == ("as declared", right)
    assert name in exact(rows, observed)


LISTS = st.one_of(
    manifests().map(hypotheses.of_parameters),
    st.builds(hypotheses.of_forward, manifests(), workloads()),
    st.builds(hypotheses.of_training, manifests(), workloads()),
    st.builds(hypotheses.of_cache, manifests(), st.integers(1, 5), st.integers(1, 60)),
)


@given(st.data())
def test_every_list_starts_as_declared_and_confirms_its_own_numbers(source):
    with using("solutions"):
        rows = source.draw(LISTS)
    assert rows[0].name == "as declared" and len({row.name for row in rows}) == len(rows)
    assert all(row.value != rows[0].value for row in rows[1:])
    one = source.draw(st.sampled_from(rows))
    found = hypotheses.explain(rows, one.value, len(rows))
    assert found[0]["exact"] and one.name in [row["name"] for row in found if row["exact"]]
    assert [abs(row["residual"]) for row in found] == sorted(abs(row["residual"]) for row in found)
    assert all(row["value"] + row["residual"] == one.value for row in found)


def test_equally_close_hypotheses_keep_their_order():
    rows = tuple(Hypothesis(name=name, value=value, text="") for name, value in (("a", 9), ("b", 11), ("c", 10)))
    assert reconcile.ranked(rows, 10) == [("c", 0), ("a", 1), ("b", -1)]
    assert reconcile.ranked(rows[::-1], 10) == [("c", 0), ("b", -1), ("a", 1)]


def test_a_plan_asks_for_the_hypotheses_of_its_ledgers():
    assert hypotheses.of_plan(TINY, "parameters") == hypotheses.of_parameters(TOY_TIED)
    assert hypotheses.of_plan(TINY, "forward")[0].value == 8_960
    assert hypotheses.of_plan(TINY, "cache payload")[0].value == 128
    assert hypotheses.of_plan(TINY, "activation peak") == ()
    assert hypotheses.of_plan(Plan(plan_id="bare", architecture=TOY), "forward") == ()
