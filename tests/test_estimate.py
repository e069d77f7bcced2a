"""One plan in, every ledger out; what was not declared is not supplied; the command line closes or says so."""

import json
import os
import subprocess
import sys
from fractions import Fraction

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from costlib import data, fixtures, sensitivity
from costlib.domain import ManifestError
from costlib.estimate import Plan, estimate
from costlib.exercise import ROOT, using
from costlib.policies import Ownership
from costlib.records import Record

PLANS = {name: Plan.from_json(data.read(f"plans/{name}.json")) for name in ("tiny_tied", "running", "running_training")}


@pytest.fixture(autouse=True)
def on_the_reference():
    with using("solutions"):
        yield


def costlib(*words, **environment):
    env = os.environ | {"LAB_MODULE": "solutions"} | environment
    return subprocess.run([sys.executable, "-m", "costlib", *words], env=env, cwd=ROOT, capture_output=True, text=True)


def totals(plan):
    return {name: total for name, total, _ in estimate(plan).summary()}


def test_the_tiny_plan_in_eight_numbers():
    assert totals(PLANS["tiny_tied"]) == {
        "named parameters": 1_256,
        "parameters": 1_128,
        "weight payload": 2_256,
        "training state": 22_560,
        "activation peak": 448,
        "forward": 8_960,
        "cache payload": 128,
        "attention transfer": 1_408,
    }
    assert estimate(PLANS["tiny_tied"]).not_supplied == {
        "weight payload per rank": "no ownership", "training state per rank": "no ownership"}


def test_the_running_plan_says_what_it_was_not_told():
    found = estimate(PLANS["running"])
    assert totals(PLANS["running"]) == {
        "named parameters": 8_030_261_248,
        "parameters": 8_030_261_248,
        "weight payload": 16_060_522_496,
        "weight payload per rank": 16_060_522_496,
        "forward": 65_971_748_339_712,
        "cache payload": 536_870_912,
        "attention transfer": 140_123_308_032,
    }
    assert found.not_supplied == {
        "training state": "no state policy", "training state per rank": "no state policy",
        "activation peak": "no liveness intervals"}
    assert "activation peak          not supplied: no liveness intervals" in str(found)


def test_a_training_plan_has_its_backward_and_its_ranks():
    found = totals(PLANS["running_training"])
    assert found["forward"] == 70_274_254_897_152 and found["backward"] == 140_548_509_794_304
    assert found["training state"] == 160_605_224_960 and found["training state per rank"] == 20_075_653_120
    assert found["weight payload per rank"] == 2_007_565_312


def test_an_architecture_alone_gets_its_parameters_and_no_zero():
    found = estimate(Plan(plan_id="bare", architecture=fixtures.ODD))
    assert set(found.ledgers) == {"parameters", "named parameters", "weight payload"}
    assert set(found.not_supplied) == {
        "weight payload per rank", "training state", "training state per rank", "forward", "backward", "cache payload",
        "attention transfer", "activation peak",
    }


def test_half_bytes_round_up_to_whole_ones():
    odd = fixtures.ODD.replace(vocab_size=1, tie_word_embeddings=True, final_norm=False, norms_per_block=1, num_layers=1)
    plan = Plan(plan_id="int4", architecture=odd, weight_dtype="int4")
    found = totals(plan)
    assert 2 * found["weight payload"] - found["parameters"] in (0, 1)


@settings(max_examples=150)
@given(strategies.manifests(), st.none() | strategies.workloads(), st.sampled_from(["materialized", "online", None]))
def test_any_valid_plan_is_estimated_and_keeps_its_hash(arch, work, schedule):
    plan = Plan(plan_id="any", architecture=arch, workload=work, attention_schedule=schedule, state=fixtures.A16)
    before = plan.sha256
    with using("solutions"):
        found = estimate(plan)
    assert plan.sha256 == before == found.sha256
    assert all(value >= 0 for ledger in found.ledgers.values() for value in ledger.values())
    assert found["parameters"].total <= found["named parameters"].total
    jsonschema.validate(json.loads(found.to_json()), json.loads(data.read("estimate.schema.json")))


def test_the_nine_cases_in_forty_five_ratios():
    base = PLANS["running"]
    before = base.sha256
    table = sensitivity.run(base, sensitivity.nine_cases())
    assert base.sha256 == before and len(table) == 9
    F = Fraction
    assert [list(row.values())[:5] for row in table.values()] == [
        [F(2157121, 1960513), F(2157121, 1960513), F(11534503, 10485927), 4, F(88, 87)],
        [F(1903169, 1960513), F(1903169, 1960513), F(30540277, 31457781), F(1, 8), F(2081, 2088)],
        [F(1832257, 1960513), F(1832257, 1960513), 1, 1, 1],
        [1, 2, 1, 1, 1],
        [1, 1, 8, 8, 8],
        [1, 1, F(35652085, 31457781), 2, F(518, 261)],
        [1, 1, F(1241088, 1165103), 1, 1],
        [1, 1, 1, F(1, 2), F(521, 522)],
        [1, 1, 1, 1, 1],
    ]
    assert [row["weight payload per rank"] for row in table.values()][-1] == F(1, 8)


def test_a_shard_of_three_in_a_world_of_eight_is_refused():
    with pytest.raises(ManifestError, match="INCONSISTENT"):
        Ownership(policy_id="x", world_size=8, data_parallel=3)


def test_cases_that_are_none_are_refused():
    for text in ("{", "[]", '{"cases": [{"id": 1}]}', '{"cases": 3}', '{"cases": [{"case_id": "a", "patches": [1]}]}'):
        with pytest.raises(ManifestError, match="JSON"):
            sensitivity.read_cases(text)


def test_the_command_closes_on_the_tiny_observation_and_opens_on_a_spoilt_one(tmp_path):
    done = costlib("estimate", "tiny-tied", "--observation", "tiny-tied", "--fail-on-mismatch")
    assert done.returncode == 0 and "observation: explained" in done.stdout and done.stderr == ""
    spoilt = json.loads(data.read("observations/tiny_tied.json"))
    spoilt["explanations"][0]["amount"] = 64
    (tmp_path / "spoilt.json").write_text(json.dumps(spoilt))
    opened = costlib("estimate", "tiny-tied", "--observation", str(tmp_path / "spoilt.json"), "--fail-on-mismatch")
    assert opened.returncode == 1 and "observation: open" in opened.stdout
    assert costlib("estimate", "tiny-tied", "--observation", str(tmp_path / "spoilt.json")).returncode == 0


def test_without_an_observation_the_command_is_unmeasured_not_closed():
    assert "observation: unmeasured" in costlib("estimate", "running").stdout
    assert costlib("estimate", "running", "--fail-on-mismatch").returncode == 1


def test_json_follows_its_schema():
    schema = json.loads(data.read("estimate.schema.json"))
    for words in (("running",), ("tiny-tied", "--observation", "tiny-tied"), ("odd-experts",)):
        answer = json.loads(costlib("estimate", *words, "--json").stdout)
        jsonschema.validate(answer, schema)
    assert answer["ledgers"]["parameters"]["total"] == 516_576


def test_compare_and_sensitivity_and_papers_print_their_tables(tmp_path):
    mqa = PLANS["running"].replace(plan_id="mqa", architecture=fixtures.RUNNING.replace(num_key_value_heads=1))
    (tmp_path / "mqa.json").write_text(mqa.to_json())
    text = costlib("compare", "running", str(tmp_path / "mqa.json")).stdout
    assert "0.1250 (B)" in text and "7,795,380,224" in text
    assert "not supplied" in costlib("compare", "running", "toy").stdout
    text = costlib("sensitivity", "running").stdout
    assert "0.971" in text and "1.985" in text and "8 shards" in text
    assert "not comparable" in costlib("papers").stdout


@pytest.mark.parametrize(
    "words, said",
    [
        (("estimate", "nope"), "none of that name (tiny-tied, running"),
        (("estimate", "running", "--observation", "nope"), "observation = 'nope'"),
        (("sensitivity", "running", "nope"), "cases = 'nope'"),
        (("sensitivity", "toy"), "DIVIS"),
        (("compare", "running"), "the following arguments are required: second"),
        (("estimate", "running", "--jso"), "unrecognized arguments: --jso"),
    ],
)
def test_bad_words_are_one_sentence_and_status_two(words, said):
    done = costlib(*words)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_survives_json_and_refuses_what_it_does_not_know(name):
    plan = PLANS[name]
    assert Plan.from_json(plan.to_json()) == plan and isinstance(plan.architecture, Record)
    with pytest.raises(ManifestError, match="UNDECLARED"):
        Plan.from_json(json.dumps(json.loads(plan.to_json()) | {"cost": 3}))


@settings(max_examples=300)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_any_json_gives_a_plan_or_a_named_refusal(value):
    with pytest.raises(ManifestError):
        Plan.from_json(json.dumps(value))
