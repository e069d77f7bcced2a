"""Contracts of six sources: a complete registry, a gate that stays shut, and what one replay costs."""

import itertools
import json
from fractions import Fraction

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costlib import data, forward, papers
from costlib.domain import ManifestError
from costlib.evidence import AXES, Contract
from costlib.exercise import using
from costlib.fixtures import RUNNING, TRAIN_4K, classic_block
from costlib.units import percent

SIX = papers.registry()
NUMBERS = {contract.contract_id: contract for contract in papers.registry("numbers")}
GPT3, MT_NLG = (2048, 12288, 51200, 96), (2048, 20480, 51200, 105)  # s, h, v, L
SCHEMA = json.loads(data.read("papers.schema.json"))


@pytest.fixture(autouse=True)
def on_the_reference():
    with using("solutions"):
        yield


def test_the_registry_is_what_its_schema_asks_for():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(data.read("papers.json")))


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.pop(),
        lambda rows: rows[1].update(contract_id="a-blog"),
        lambda rows: rows[1].pop("backward"),
        lambda rows: rows[1].update(numeric_comparison_allowed=True),
        lambda rows: rows[1].update(numeric_comparison_allowed=True, normalized_to_common_manifest=True),
        lambda rows: rows[1].update(tokens="22e9"),
    ],
)
def test_a_spoilt_registry_is_refused_by_its_schema(change):
    registry = json.loads(data.read("papers.json"))
    change(registry["contracts"])
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(registry)


def test_there_are_nine_axes_and_every_one_decides():
    assert len(AXES) == 9
    whole = Contract(contract_id="x", source="x", **{axis: "said" for axis in AXES})
    assert papers.comparison_gate(whole, whole) == {"status": "comparable", "open": []}
    for axis in AXES:
        for value in ("otherwise", None):
            other = whole.replace(**{axis: value})
            for pair in ((whole, other), (other, whole)):
                assert papers.comparison_gate(*pair) == {"status": "not comparable", "open": [axis]}


@pytest.mark.parametrize("a, b", list(itertools.combinations(SIX, 2)), ids=lambda contract: contract.contract_id)
def test_no_two_of_the_six_are_comparable(a, b):
    assert papers.comparison_gate(a, b)["status"] == "not comparable"
    assert not a.numeric_comparison_allowed


def test_a_composite_source_is_not_even_comparable_with_itself():
    assert papers.comparison_gate(SIX[0], SIX[0])["open"] == list(AXES)


@pytest.mark.parametrize("source", ["korthikanti-gpt-3", "korthikanti-mt-nlg"])
def test_a_published_replay_and_the_running_one_are_not_comparable(source):
    found = papers.comparison_gate(NUMBERS[source], NUMBERS["running-one-replay"])
    assert found == {
        "status": "not comparable",
        "open": ["architecture", "phase_rows", "recomputation", "output"],
    }


@pytest.mark.parametrize("model, replays, shown", [
    (GPT3, 3, "2.693 %"), (MT_NLG, 3, "1.636 %"), (GPT3, 1, "0.898 %"), (MT_NLG, 1, "0.545 %"),
])  # fmt: skip
def test_both_conventions_of_one_paper(model, replays, shown):
    assert percent(papers.replay_overhead(*model, replays), 3) == shown


@pytest.mark.parametrize("source, model", [("korthikanti-gpt-3", GPT3), ("korthikanti-mt-nlg", MT_NLG)])
def test_the_published_shares_are_those_of_three_replays(source, model):
    """The text describes one; Equation 8 charges three (M-02)."""
    assert percent(papers.replay_overhead(*model, 3)) == NUMBERS[source].value
    assert percent(papers.replay_overhead(*model, 1)) != NUMBERS[source].value


def test_the_running_share_is_one_replay_of_its_own_pairs():
    ledger = forward.ledger(RUNNING, TRAIN_4K)
    share = Fraction(ledger["blocks.scores"] + ledger["blocks.values"], 3 * ledger.total)
    assert percent(share, 2) == NUMBERS["running-one-replay"].value


@given(st.integers(1, 300), st.integers(1, 40), st.integers(1, 500), st.integers(1, 6), st.integers(0, 4))
def test_equation_8_minus_equation_7(s, heads, v, L, replays):
    """The factored form, and the ledger of the classic block, which has no factors."""
    h = 4 * heads
    bracket = 1 + Fraction(s, 6 * h) + Fraction(v, 12 * h * L)
    assert papers.replay_overhead(s, h, v, L, replays) == replays * Fraction(s, 18 * h) / bracket
    ledger = forward.ledger(classic_block(L, h, v, 4), TRAIN_4K.replace(new_rows=s, visible_rows=s))
    pairs = ledger["blocks.scores"] + ledger["blocks.values"]
    assert papers.replay_overhead(s, h, v, L, replays) == Fraction(replays * pairs, 3 * ledger.total)


@pytest.mark.parametrize("rows, code", [
    ((*SIX, SIX[0]), "INCONSISTENT"), ((*SIX[:5], NUMBERS["korthikanti-gpt-3"]), "UNDECLARED"), (list(SIX), "TYPE"),
])  # fmt: skip
def test_a_registry_holds_six_sources_once(rows, code):
    with pytest.raises(ManifestError) as refusal:
        papers.missing_contracts(rows)
    assert refusal.value.code == code
