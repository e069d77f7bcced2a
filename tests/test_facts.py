"""The numbers of both documents, each through costlib: matching ones asserted, wrong ones in corrected form.

`data/facts.json` holds the records, recomputed independently of this code. Each module in `facts/`
OWNS the records whose ids begin so, and says for every one how the course computes it (FACTS), which
statement about the code it is (TEXTS), or why it is not asserted (REST). Exactly one of the three.
"""

import importlib
import json
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from costlib.exercise import using

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "facts"))
MODULES = [importlib.import_module(file.stem) for file in sorted((HERE / "facts").glob("facts_*.py"))]
RECORDS = {record["id"]: record for record in json.loads((HERE / "data/facts.json").read_text(encoding="utf-8"))}


def table(name):
    return {key: value for module in MODULES for key, value in getattr(module, name, {}).items()}


FACTS, TEXTS, REST = table("FACTS"), table("TEXTS"), table("REST")


@pytest.fixture(autouse=True)
def on_the_reference():
    with using("solutions"):
        yield


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_a_module_accounts_for_every_record_it_owns_and_for_no_other(module):
    parts = [getattr(module, name, {}) for name in ("FACTS", "TEXTS", "REST")]
    accounted = [key for part in parts for key in part]
    assert sorted(accounted) == sorted(key for key in RECORDS if key.startswith(module.OWNS))


def test_every_record_is_owned_once():
    owners = {key: [m.__name__ for m in MODULES if key.startswith(m.OWNS)] for key in RECORDS}
    assert {key: names for key, names in owners.items() if len(names) != 1} == {}


def last_place(shown):
    """Of "0.30" a hundredth, of "3.15e23" 10**21, of "5300" a hundred: zeros that end an integer round it."""
    whole, point, digits = shown.partition("e")[0].partition(".")
    places = -len(digits) if point else len(whole) - len(whole.rstrip("0"))
    return Fraction(10) ** (places + int(shown.partition("e")[2] or 0))


@pytest.mark.parametrize("key", FACTS)
def test_a_number_of_the_documents(key):
    record, value = RECORDS[key], FACTS[key]()
    if record["recomputed_exact"] is not None:
        assert value == Fraction(record["recomputed_exact"])
    else:
        assert value == record["recomputed_value"]
    assert not isinstance(value, (float, bool))
    if record["match"] and record["kind"] == "rounded":
        shown = record["document_value"].rstrip("%").replace(",", "")
        assert abs(value - Fraction(shown)) <= last_place(shown) / 2


@pytest.mark.parametrize("key", TEXTS)
def test_a_statement_of_the_documents(key):
    assert TEXTS[key]() is True


def test_what_is_left_out_says_why():
    assert [key for key, why in REST.items() if len(why) < 20] == []
