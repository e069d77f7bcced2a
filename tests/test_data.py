"""Every data file follows its schema, and what it says is what costlib reads."""

import json
import re
from fractions import Fraction
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from costlib import data, hardware, published, sensitivity
from costlib.domain import ManifestError
from costlib.estimate import Plan

PAIRS = {
    "hardware.json": "hardware.schema.json",
    "assumptions.json": "assumptions.schema.json",
    "cases.json": "cases.schema.json",
    "papers.json": "papers.schema.json",
    "published.json": "published.schema.json",
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


def test_a_published_figure_is_exact_dated_and_has_a_source():
    keys = re.findall(r"(?m)^@\w+\{(\w+),", Path(__file__).parents[1].joinpath("chapters/references.bib").read_text("utf8"))
    assert len(keys) == len(set(keys)) and {f["cite"] for f in published.figures().values()} <= set(keys)
    assert len(published.figures()) == len(json.loads(data.read("published.json")))
    assert (published.value("gpt3-params"), published.value("palm-mfu")) == (175 * 10**9, Fraction(231, 500))
    assert published.rows("palm-params", "llama3-tokens", "llama3-405b-flops", "gpt4-class") == [
        ("PaLM 540B", "540.35B", "parameters", "2022-04", "verified"),
        ("Llama 3 8B and 70B, training tokens, 'about 15T'", "15T", "tokens", "2024-07", "verified"),
        ("Llama 3 405B, pre-training, as the paper says", "3.8e25", "FLOP", "2024-07", "verified"),
        (published.figure("gpt4-class")["statement"], "1e25", "FLOP", "2025-04", "UNVERIFIED"),
    ]
    with pytest.raises(ManifestError, match="ENUM"):
        published.value("luck")


def test_a_missing_file_is_refused_with_what_there_is():
    with pytest.raises(ManifestError, match="no data file 'nope.json'; there are .*running.json"):
        data.read("nope.json")
