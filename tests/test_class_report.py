"""The class report: counts that a hand can check, nothing to load or run, nobody accused, nothing of a learner's that acts."""

import copy
import random
import re

import pytest
from bs4 import BeautifulSoup
from results import BROKEN, COUNTED_MACS, EVERY, HELPED, HIDDEN, HOSTILE, MAC, NASTY, RIGHT, STARTER, STUB, UNREADABLE, function, result

from labs import class_report


def page(results):
    return BeautifulSoup(class_report.html(results), "html.parser")


def section(soup, title):
    """The text of a section: from its heading to the next."""
    head = next(h for h in soup.find_all("h2") if h.text == title)
    parts = []
    for sibling in head.find_next_siblings():
        if sibling.name == "h2":
            break
        parts.append(sibling)
    return parts


def words(parts):
    return " ".join(" ".join(part.stripped_strings) for part in parts)


def table(soup, label):
    box = soup.find("div", {"aria-label": label})
    return [[" ".join(cell.stripped_strings) for cell in row.find_all("td")] for row in box.tbody.find_all("tr")]


def class_of_300(mac=41, halves=17):
    """41 counted MACs, 17 got a hidden case wrong, the others are right."""
    def one(i):
        if i < mac:
            return result(f"s{i:03}", function("matmul_flops", "fff|fff", 2, mistake="mac", hint=MAC), function("kv_cache_bytes"))
        if i < mac + halves:
            return result(f"s{i:03}", function("matmul_flops", points=2),
                          function("kv_cache_bytes", "ppp|fff", mistake="k-only", hint="A cache keeps K and V."))  # fmt: skip
        return result(f"s{i:03}", function("matmul_flops", points=2), function("kv_cache_bytes"))

    return [one(i) for i in range(300)]


def test_the_order_of_the_files_changes_no_byte():
    results = class_of_300() + [each for each in EVERY if each is not COUNTED_MACS]
    first = class_report.html(results)
    shuffled = copy.deepcopy(results)
    random.Random(1).shuffle(shuffled)
    for each in shuffled:
        each["sandbox"]["limits"] = dict(reversed(each["sandbox"]["limits"].items()))
    assert class_report.html(shuffled) == first


def test_the_headline_counts_the_class():
    late = copy.deepcopy(RIGHT)
    late["learner"], late["submission"]["late_seconds"] = "zoe", 60
    counts = [li.text for li in page([*EVERY, late]).find("ul", class_="counts").find_all("li")]
    assert counts == ["9submissions", "7graded", "2with full points", "1 of 3points, the median", "1not gradable", "1late",
                      "1not judged: the grader was broken"]  # fmt: skip


def test_the_median_of_an_even_number_is_between_the_two():
    assert "<b>2 of 3</b>points, the median" in class_report.html([RIGHT, COUNTED_MACS])


def test_the_class_by_misconception_with_what_each_is_told_most_learners_first():
    items = page(class_of_300()).find("ol", class_="mistakes").find_all("li")
    assert [" ".join(item.p.text.split()) for item in items] == ["41 of 300 in matmul_flops: mac", "17 of 300 in kv_cache_bytes: k-only"]
    assert [item.blockquote.text for item in items] == [MAC, "A cache keeps K and V."]
    assert [item.find("rect", class_="bar")["width"] for item in items] == ["13.67%", "5.67%"]


def test_one_mistake_told_in_several_ways_shows_the_most_frequent_as_an_instance():
    hints = ["It raised KeyError: 'a'.", "It raised ZeroDivisionError.", "It raised ZeroDivisionError."]
    results = [result(f"s{i}", function("matmul_flops", "f|f", mistake="raised", hint=hint)) for i, hint in enumerate(hints)]
    (item,) = page(results).find("ol", class_="mistakes").find_all("li")
    assert item.blockquote.text == "For instance: It raised ZeroDivisionError."


def test_a_file_that_cannot_be_imported_is_one_mistake_and_not_one_in_each_function():
    unread = [function(name, "f|f", mistake="import", hint="Your file cannot be imported.") for name in ("matmul_flops", "kv_cache_bytes")]
    (item,) = page([result("ida", *unread), result("jon", *unread), RIGHT]).find("ol", class_="mistakes").find_all("li")
    assert " ".join(item.p.text.split()) == "2 of 3 in the whole file: import" and item.blockquote.text == "Your file cannot be imported."


def test_what_is_not_written_is_no_misconception():
    said = words(section(page([STUB, RIGHT]), "The class by misconception"))
    assert said.strip() == "No known mistake was made."


def test_wrong_answers_without_a_known_mistake_stand_apart():
    soup = page([HELPED, HIDDEN, HIDDEN | {"learner": "kim"}])
    assert table(soup, "Wrong without a known mistake") == [
        ["2", "kv_cache_bytes", "the shown cases right, others wrong"], ["1", "params_per_layer", "wrong"]]
    assert not soup.find("ol", class_="mistakes").find_all("li")


def test_rare_mistakes_are_folded_away_and_none_is_lost():
    results = [result(f"s{i:02}", function("matmul_flops", "f|f", mistake=f"m{i:02}", hint="x")) for i in range(15)]
    first, rest = page(results).find_all("ol", class_="mistakes")
    assert [len(first.find_all("li")), len(rest.find_all("li")), rest.parent.summary.text] == [12, 3, "3 rarer ones"]


def test_every_function_has_its_counts():
    rows = table(page([RIGHT, COUNTED_MACS, HELPED, HIDDEN, STUB, UNREADABLE, BROKEN]), "Function by function")
    assert rows == [  # function, bar, right, partly, wrong, not written, helped
        ["matmul_flops", "", "1", "0", "1", "1", "0"],
        ["kv_cache_bytes", "", "2", "1", "0", "1", "0"],
        ["params_per_layer", "", "0", "1", "0", "0", "0"],
        ["params_total", "", "1", "0", "0", "0", "1"],
    ]


@pytest.mark.parametrize(("score", "bin_"), [("0", 0), ("3.89", 0), ("3.9", 1), ("38.99", 9), ("39", 10)])
def test_scores_fall_into_tenths_and_full_points_stand_alone(score, bin_):
    bins = class_report.tenths([RIGHT | {"score": score, "max_score": "39"}])
    assert bins == [int(i == bin_) for i in range(11)]


def test_the_histogram_says_its_numbers_in_words():
    svg = page(class_of_300()).find("svg", role="img")
    assert svg["aria-label"] == "Learners by score: 41 with 30 to under 40 %, 17 with 80 to under 90 %, 242 with 100 %"


def test_who_was_not_graded_and_why():
    soup = page([RIGHT, UNREADABLE, BROKEN])
    assert table(soup, "Not graded") == [["fay", "not-gradable", UNREADABLE["reason"]], ["gil", "grader-broken", BROKEN["reason"]]]
    gil = next(row for row in table(soup, "Everyone") if row[0] == "gil")
    assert gil[1] == ""


def test_flags_are_listed_with_the_question_they_raise():
    soup = page([RIGHT, HIDDEN])
    assert table(soup, "Flags") == [["dan", "passes-public-fails-hidden: kv_cache_bytes"]]
    assert "written down instead of computed?" in words(section(soup, "Learners to look at"))


def test_many_flags_are_folded_away():
    flagged = [RIGHT | {"learner": f"s{i:02}", "flags": ["written-as-in-solutions: 9 of the 9"]} for i in range(13)]
    folded = section(page(flagged), "Learners to look at")
    assert "13 of them" in words(folded) and table(page(flagged), "Flags")[12] == ["s12", flagged[12]["flags"][0]]


def same(learners, **submission):
    return [result(who, function("matmul_flops"), submission=RIGHT["submission"] | submission) for who in learners]


def test_identical_files_are_a_question_and_no_verdict():
    soup = page([*same(["ida", "jon"], sha256="a" * 64), *same(["kim"], sha256="b" * 64, code_sha256="d" * 64),
                 *same(["lea"], sha256="c" * 64, code_sha256="d" * 64), RIGHT])  # fmt: skip
    assert table(soup, "Did these work together?") == [
        ["ida, jon", "the same file, byte for byte"], ["kim, lea", "the same code but for names, comments and layout"]]
    text = words(section(soup, "Learners to look at"))
    assert "A question, not a verdict" in text and not re.search("cheat|plagiar|copied|suspect|collu", class_report.html([RIGHT]) + text)


def test_two_untouched_starters_and_one_learner_twice_are_no_question():
    starters = [STUB | {"learner": who, "submission": STUB["submission"] | {"sha256": STARTER}} for who in ("ida", "jon")]
    again = [RIGHT, RIGHT | {"lab": "02"}]
    assert class_report.identical(starters) == class_report.identical(again) == []


def test_it_says_how_it_was_graded():
    soup = page([RIGHT, COUNTED_MACS])
    assert table(soup, "How it was graded") == [["2", "bwrap", "3.11.7", "0123456789ab", "AS 536870912, case_seconds 2"]]
    assert "Seed label fedcba987654 ." in words(section(soup, "How it was graded")) and "without a sandbox" not in soup.text
    other = RIGHT | {"seed": "0" * 12, "sandbox": RIGHT["sandbox"] | {"backend": "none"}}
    said = words(section(page([RIGHT, other]), "How it was graded"))
    assert "2 seed labels" in said and "without a sandbox" in said


def test_nothing_is_loaded_and_nothing_runs():
    text = class_report.html(EVERY + class_of_300())
    soup = BeautifulSoup(text, "html.parser")
    assert not soup.find_all(["script", "link", "img", "iframe", "object", "base", "form", "a"])
    assert not [name for tag in soup.find_all() for name in tag.attrs if name.startswith("on") or name in ("src", "href")]
    assert not re.search(r"url\(|@import|https?:", "".join(style.text for style in soup.find_all("style")))
    assert soup.find("meta", {"http-equiv": "Content-Security-Policy"})["content"] == "default-src 'none'; style-src 'unsafe-inline'"


def test_all_that_a_learner_can_write_is_text():
    spoiled, stuck = copy.deepcopy(NASTY), copy.deepcopy(UNREADABLE)
    for each in (spoiled, stuck):
        each |= {"learner": HOSTILE, "seed": HOSTILE, "lab": HOSTILE, "lab_version": HOSTILE}
        each["sandbox"] = {"backend": HOSTILE, "python": HOSTILE, "limits": {HOSTILE: HOSTILE}}
    stuck["reason"] = HOSTILE
    spoiled["functions"][0] |= {"name": HOSTILE, "mistake": HOSTILE}
    plain, hostile = class_report.html([NASTY, UNREADABLE]), class_report.html([spoiled, stuck])

    def shape(text):
        return [tag.name for tag in BeautifulSoup(text, "html.parser").find_all()]

    assert shape(hostile) == shape(plain)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", hostile) and "::" not in hostile


def test_every_table_scrolls_in_its_own_box_and_both_colour_schemes_are_there():
    soup = page(EVERY)
    assert all(found.parent.get("class") == ["scroll"] for found in soup.find_all("table"))
    assert "prefers-color-scheme: dark" in soup.style.text and soup.find("meta", {"name": "viewport"})


@pytest.mark.parametrize("results", [[BROKEN], [UNREADABLE], [STUB], []], ids=["broken", "unreadable", "stub", "none"])
def test_a_class_without_answers_has_a_report_too(results):
    assert class_report.html(results).endswith("</html>\n")


def test_labs_follow_each_other():
    soup = page([RIGHT, RIGHT | {"lab": "02"}])
    assert soup.h1.text == "Lab 01, 02: the class report"
    assert [h.text for h in soup.find_all("h2") if h.text.startswith("Lab ")] == ["Lab 01", "Lab 02"]
