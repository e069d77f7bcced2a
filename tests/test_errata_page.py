"""The errata as data: complete, computed, and shown once each on their page."""

import dataclasses
import re

import pytest
from test_pages import CODE_SPAN, SECTIONS, book
from test_recorded import numbers, witnesses

from costlib import errata
from costlib.errata.m import WAITING
from costlib.exercise import using

PAGE = "chapters/appendix/errata.md"
# Digits that are part of a name: Chapter 4, GPT-3, W-08, 6ND, 70B shape, token 1.
NAMES = re.compile(r"\bChapters? [\d, to]+|\btoken \d+|\b[A-Z]+-\d+|(?<![\d.])\d+ND?\b|\b\d+B (?:shape|model)|0x[0-9A-F]+")
W, M = errata.of("W"), errata.of("M")
BOTH = W + M
every = pytest.mark.parametrize("erratum", BOTH, ids=lambda e: e.id)


@pytest.fixture(autouse=True)
def on_the_reference():
    with using("solutions"):
        yield


def stated(text):
    """The numbers that a text states; code and names are left out."""
    return list(numbers(NAMES.sub(" ", CODE_SPAN.sub(" ", text))))


def computed(erratum, slip):
    """The numbers of the lines that make the error, or of those that do not."""
    lines = [line for line in erratum.recompute().splitlines() if line.startswith("slip") == slip]
    return list(numbers("\n".join(lines)))


def unwitnessed(claims, seen):
    return [claim.text for claim in claims if not any(witnesses(claim, number) for number in seen)]


def disproved(erratum):
    return stated(" ; ".join(re.findall(r"\*\*(.+?)\*\*", erratum.says)))


def test_ids_are_complete_and_in_order():
    assert [e.id for e in W] == [f"W-{n:02}" for n in range(1, 37)]
    shown, later = [e.id for e in M], [name for name, _ in WAITING]
    assert shown == sorted(shown) and later == sorted(later)
    assert sorted(shown + later) == [f"M-{n:02}" for n in range(1, 35)]


def test_what_waits_names_a_section_that_is_not_written_yet():
    declared = {label: path for path, page in SECTIONS.items() for label, _ in page["sections"]}
    written = [f"{name}: {label} is on a page now" for name, label in WAITING if declared[label] in book()]
    assert not written, "costlib.errata.m has to have these, or another section that they wait for"


@pytest.mark.parametrize("label, words", [
    ("w-ch7-attention", "Chapter 7, attention"), ("w-ch7", "Chapter 7"), ("lab01", "Lab 01"), ("w-lab", "Lab walkthrough"),
    ("0x01H", "0x01H"), ("0x04", "0x04"), ("0x00D-observation", "0x00D, observation"),
])
def test_a_link_says_its_section(label, words):
    assert errata._section(label) == words


def test_a_chapter_has_the_errata_that_its_sections_teach_first():
    assert {e.id for e in errata.taught_in("0x01")} == {e.id for e in M if e.taught.startswith("0x01")}
    assert "M-06" in {e.id for e in errata.taught_in("0x01")} and "W-01" in {e.id for e in errata.taught_in("w-ch7")}


@every
def test_an_erratum_says_all_it_has_to(erratum):
    assert all(getattr(erratum, field.name) for field in dataclasses.fields(erratum))
    assert erratum.weight in errata.WEIGHTS
    assert erratum.title[0] == erratum.title[0].upper() and erratum.title[-1] != "."
    assert all(text[-1] == "." for text in (erratum.says, erratum.right, erratum.slip))
    assert "**" in erratum.says, "what does not hold stands between double asterisks"


@every
def test_where_it_is_taught_is_a_section(erratum):
    declared = {label for page in SECTIONS.values() for label, _ in page["sections"]}
    on_pages = {label for page in book().values() for _, label in page.own_labels}
    assert set(erratum.taught.split()) <= declared | on_pages


@every
def test_the_right_numbers_are_computed(erratum):
    assert not unwitnessed(stated(erratum.right), computed(erratum, slip=False))


@every
def test_the_wrong_number_is_not_computed_as_the_right_one(erratum):
    right = computed(erratum, slip=False)
    assert not [claim.text for claim in disproved(erratum) if any(witnesses(claim, number) for number in right)]


@every
def test_a_slip_arrives_at_the_wrong_number(erratum):
    if seen := computed(erratum, slip=True):
        assert not unwitnessed(disproved(erratum), seen)


@every
def test_the_numbers_of_the_explanation_are_computed_too(erratum):
    seen = computed(erratum, slip=False) + computed(erratum, slip=True)
    claims = [claim for claim in stated(erratum.slip) if "." in claim.text or claim.percent or claim.value >= 1000]
    assert not unwitnessed(claims, seen)


@every
def test_a_line_of_numbers_names_a_unit(erratum):
    units = (r"FLOP|%|B\b|GB|TB/s|scalars|parameters|tokens|times|W\b|USD|nats|N\b|bits|boundaries|overwrites|requests"
             r"|weights|layers|heads|models|fields|spellings|classes|counters")
    words = r"not checked|fail|opinions|TYPE"
    bare = [line for line in erratum.recompute().splitlines() if not re.search(f"{units}|{words}", line)]
    assert not bare


def test_the_texts_for_a_terminal_and_for_a_page_hold_the_same_numbers():
    for erratum in BOTH:
        plain, page = repr(erratum), erratum._repr_markdown_()
        for line in erratum.recompute().splitlines():
            assert line in plain and line in page


def test_the_page_shows_every_erratum_once_and_the_table_leads_to_it():
    outputs = [output.get("data", {}) for cell in book()[PAGE].outputs["cells"] for output in cell.get("outputs", [])]
    entries, tables = ("".join("".join(data.get(kind, "")) for data in outputs) for kind in ("text/markdown", "text/html"))
    assert sorted(re.findall(r'<a id="([^"]+)"></a>', entries)) == sorted(e.id for e in BOTH)
    assert re.findall(r"<a href='#([^']+)'>", tables) == [e.id for e in BOTH]
