"""Every data file follows its schema, and what it says is what costlib reads."""

import json
from importlib.resources import files

import jsonschema
import pytest

from costlib import data, hardware, sensitivity
from costlib.domain import ManifestError
from costlib.estimate import Plan

PAIRS = {
    "hardware.json": "hardware.schema.json",
    "assumptions.json": "assumptions.schema.json",
    "cases.json": "cases.schema.json",
    "papers.json": "papers.schema.json",
    **{f"observations/{file.name}": "observation.schema.json" for file in files("costlib.data").joinpath("observations").iterdir()},
    **{f"{name}.json": "manifest.schema.json" for name in ("running", "toy_tied", "w_7b", "w_70b", "w_moe")},
}
PLANS = [f"plans/{file.name}" for file in files("costlib.data").joinpath("plans").iterdir()]


@pytest.mark.parametrize("name, schema", PAIRS.items())
def test_a_file_follows_its_schema(name, schema):
    rules = json.loads(data.read(schema))
    jsonschema.Draft202012Validator.check_schema(rules)
    jsonschema.validate(json.loads(data.read(name)), rules)


def test_every_file_is_a_schema_is_checked_or_is_a_plan():
    root = files("costlib.data")
    names = [f.name for f in root.iterdir() if f.name.endswith(".json") and ".schema." not in f.name]
    names += [f"observations/{f.name}" for f in root.joinpath("observations").iterdir()]
    assert set(names) == set(PAIRS)


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_read_back_as_written(name):
    plan = Plan.from_json(data.read(name))
    assert json.loads(plan.to_json()) == json.loads(data.read(name))


def test_the_nine_cases_are_read():
    assert [len(patches) for _, patches in sensitivity.nine_cases()] == [1] * 9


def test_every_opinion_is_marked_unverified():
    rows = json.loads(data.read("assumptions.json"))
    assert rows and not any(row["verified"] for row in rows)
    with pytest.raises(ManifestError, match="ENUM"):
        hardware.assumption("luck")


def test_a_missing_file_is_refused_with_what_there_is():
    with pytest.raises(ManifestError, match="no data file 'nope.json'; there are .*running.json"):
        data.read("nope.json")
