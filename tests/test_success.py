"""The success criteria of Part I: every state can be reached, and a wrong estimate is named."""

import html
import re
import subprocess
import sys
from fractions import Fraction

import pytest

import labs
from costlib import napkin, training
from costlib.domain import ManifestError
from costlib.exercise import ROOT, using
from costlib.records import ArchitectureManifest, Workload
from labs import spec, success
from labs.success import SHAPES, checklist

EXACT = {key: shape.total for key, shape in SHAPES.items()}
CRITERIA = ("reference", "yours", "budget", "whiteboard", "by hand", "breaks", "cache", "memo")


def state(found, criterion):
    return found.rows[CRITERIA.index(criterion)][1]


@pytest.fixture(autouse=True)
def the_reference(monkeypatch):
    monkeypatch.setenv("LAB_MODULE", "solutions")


# The six shapes

@pytest.mark.parametrize("key", [key for key, shape in SHAPES.items() if shape.rows["head"]])
def test_the_written_rows_are_what_the_regions_of_a_manifest_add_up_to(key):
    B, T, d, d_ff, heads, kv_heads, d_head, layers, vocab = SHAPES[key].sizes
    arch = ArchitectureManifest(
        manifest_id="by-hand", num_layers=layers, hidden_size=d, num_attention_heads=heads, num_key_value_heads=kv_heads,
        head_dim=d_head, intermediate_size=d_ff, vocab_size=vocab, tie_word_embeddings=False)
    work = Workload(workload_id="by-hand", phase="training", batch_size=B, new_rows=T, visible_rows=T, logits="all")
    with using("solutions"):
        assert training.totals(training.regions(arch, work), {})["model"] == SHAPES[key].total


@pytest.mark.parametrize("key", SHAPES)
def test_the_written_rows_are_what_the_reference_counts(key):
    *sizes, vocab = SHAPES[key].sizes
    with using("solutions"):
        assert dict(napkin.training_flops_exact(*sizes, vocab=vocab)) == SHAPES[key].rows


@pytest.mark.parametrize("key", SHAPES)
def test_the_written_rows_are_six_per_weight_and_twelve_per_pair(key):
    B, T, d, d_ff, heads, kv_heads, d_head, layers, vocab = SHAPES[key].sizes
    weights = layers * (3 * d * d_ff + 2 * d * heads * d_head + 2 * d * kv_heads * d_head) + d * vocab
    assert SHAPES[key].total == 6 * weights * B * T + 12 * B * T * T * heads * d_head * layers


def test_the_shapes_are_uneven_enough_to_tell_mistakes_apart():
    sizes = [shape.sizes for shape in SHAPES.values()]
    assert all(T != d for _, T, d, *_ in sizes)
    assert any(heads == kv for _, _, _, _, heads, kv, *_ in sizes) and any(heads > kv for _, _, _, _, heads, kv, *_ in sizes)
    assert any(heads * width != d for _, _, d, _, heads, _, width, *_ in sizes)
    assert any(T >= 100_000 for _, T, *_ in sizes) and any(not vocab for *_, vocab in sizes)


# The tolerance

@pytest.mark.parametrize("key", SHAPES)
def test_ten_per_cent_is_within_and_one_flop_more_is_not(key):
    low, high = -(-9 * EXACT[key] // 10), 11 * EXACT[key] // 10
    assert [success.judge_estimate(key, x)[0] for x in (low - 1, low, high, high + 1)] == ["wrong", "ok", "ok", "wrong"]


def test_the_boundary_itself_is_within(monkeypatch):
    monkeypatch.setitem(SHAPES, "A", success.Shape("ten", SHAPES["A"].sizes, {**SHAPES["A"].rows, "mlp": 10 - sum(
        value for row, value in SHAPES["A"].rows.items() if row != "mlp")}))
    assert SHAPES["A"].total == 10
    assert [success.judge_estimate("A", x)[0] for x in (8, 9, 10, 11, 12)] == ["wrong", "ok", "ok", "ok", "wrong"]


# Named mistakes

MISTAKES = [(key, name) for key, shape in SHAPES.items() for name, (total, _) in success.known_mistakes(shape).items()
            if abs(total - shape.total) * 10 > shape.total]


@pytest.mark.parametrize("key, name", MISTAKES)
def test_a_wrong_estimate_gets_its_name(key, name):
    total, text = success.known_mistakes(SHAPES[key])[name]
    verdict, why = success.judge_estimate(key, round(total))
    assert verdict == "wrong" and f"{name}: {text}" in why


def test_every_known_mistake_shows_on_some_shape():
    lab = spec.load("01")
    known = {wrong.name for exercise in ("training_flops_exact", "training_flops") for wrong in lab[exercise].wrong}
    assert known | {"no-sequence-term", "no-head", "table-multiplied"} == {name for _, name in MISTAKES}


@pytest.mark.parametrize("key, ratio, name", [
    ("A", Fraction(1, 2), "mac"), ("F", Fraction(1, 3), "forward-only"), ("C", Fraction(2, 3), "backward-only"),
    ("B", Fraction(4, 3), "recomputed"), ("C", Fraction(1, 80), "one-layer"),
])
def test_a_rough_estimate_is_named_by_its_ratio(key, ratio, name):
    for rough in (Fraction(97, 100), 1, Fraction(103, 100)):
        assert f"near {name}: " in success.judge_estimate(key, int(rough * ratio * EXACT[key]))[1]


def test_an_estimate_near_nothing_says_so():
    verdict, why = success.judge_estimate("A", 5 * EXACT["A"])
    assert verdict == "wrong" and why == "5.000 of the exact count, near no known mistake: count row by row."


# What is refused, with a sentence

@pytest.mark.parametrize("by_hand, code, said", [
    ({"A": 3.5e14}, "TYPE", r"by_hand\['A'\] = 350000000000000.0 is of type float; a count is an int"),
    ({"A": True}, "TYPE", "not True or False"),
    ({"A": "3.5e14"}, "TYPE", "expected int"),
    ({"A": Fraction(1, 2)}, "TYPE", "expected int"),
    ({"A": 0}, "NONPOS", "1 or more"),
    ({"A": -5}, "NONPOS", "1 or more"),
    ({"G": 1}, "ENUM", "the shapes are A, B, C, D, E, F"),
    ([("A", 1)], "TYPE", "not a list"),
])
def test_what_is_no_estimate_is_refused(by_hand, code, said):
    with pytest.raises(ManifestError, match=said) as refused:
        checklist(by_hand)
    assert refused.value.code == code


def test_whose_answers_is_one_of_two():
    with pytest.raises(ManifestError, match="allowed: costlib, solutions"):
        checklist(whose="mine")


@pytest.mark.parametrize("words, found", [
    (["A=3.5e14", "C=3628*10"], None), (["A"], None), ([], {}),
    (["A=3.5e14", "B=474_000_000_000_000"], {"A": 35 * 10**13, "B": 474 * 10**12}),
])
def test_a_typed_estimate_is_read_exactly(words, found):
    if found is None:
        with pytest.raises(ManifestError, match="write A=3.5e14"):
            success.parse_by_hand(words)
    else:
        assert success.parse_by_hand(words) == found


# States on the reference

def test_on_the_reference_nothing_is_said_of_yours():
    found = checklist()
    assert [row[1] for row in found.rows] == [
        "ok", "not checked", "ok", "say it", "not tried yet", "say it", "say it", "say it"]
    assert "LAB_MODULE=solutions" in found.rows[1][2] and not found.wrong and not found.estimates


def test_what_must_be_said_is_never_ok():
    found = checklist(EXACT)
    assert [state(found, c) for c in ("whiteboard", "breaks", "cache", "memo")] == ["say it"] * 4
    assert state(found, "by hand") == "ok"


@pytest.mark.parametrize("by_hand, wanted", [
    ({}, "not tried yet"), ({"A": EXACT["A"]}, "not yet"), ({"A": EXACT["A"], "B": 1}, "wrong"), (EXACT, "ok"),
    ({**EXACT, "F": EXACT["F"] // 2}, "wrong"),
])
def test_the_six_counts_have_four_states(by_hand, wanted):
    found = checklist(by_hand)
    assert state(found, "by hand") == wanted and found.wrong is (wanted == "wrong")
    assert len(found.estimates) == len(by_hand)


def test_links_lead_to_sections_that_the_book_has():
    sys.path.insert(0, str(ROOT / "tests"))
    from test_pages import book

    for spoken in success.SPOKEN:
        page = book()[f"chapters/warmup/{spoken.page}.md"]
        assert spoken.label in [label for _, label in page.own_labels]


def test_the_table_links_in_a_page_and_names_the_file_in_a_terminal():
    found = checklist()
    for spoken in success.SPOKEN:
        assert f"href='{spoken.page}.html#{spoken.label}'" in found._repr_html_()
        assert f"chapters/warmup/{spoken.page}.md, section {spoken.label}" in repr(found)
    assert html.escape("<") not in found._repr_html_()


def test_the_notebook_has_it_too():
    assert labs.checklist is checklist
    assert "d_model" in repr(success.shapes()) and "131,072" in repr(success.shapes())


# States on a learner's file

def ask(clone, *words, body="", solutions=True, env=None):
    """What `python -m labs success` says when costlib/napkin.py ends in `body`."""
    file = clone / "costlib/napkin.py"
    before = file.read_text(encoding="utf-8")
    file.write_text(before + body, encoding="utf-8")
    hidden = [] if solutions else ["-c", "import sys; sys.modules['solutions'] = None; from labs.__main__ import main; sys.exit(main())"]
    try:
        done = subprocess.run(
            [sys.executable, *(hidden or ["-m", "labs"]), "success", *words], cwd=clone, capture_output=True, text=True,
            env={"PATH": "", "PYTHONPATH": str(clone), "PYTHONDONTWRITEBYTECODE": "1", **(env or {})})
    finally:
        file.write_text(before, encoding="utf-8")
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout, done.stderr, done.returncode


def line(text, number):
    return re.search(rf"(?m)^{number}\.  .*$", text)[0]


SOLVED = "\n\nfrom solutions import napkin as _all\nfor _f in list(globals().values()):\n" \
         "    if hasattr(_f, 'exercise'):\n        _f.__wrapped__ = getattr(_all, _f.__name__)\n"


def test_an_untouched_file_is_not_yet(clone):
    text, _, status = ask(clone)
    assert status == 0 and "yours: 0 of 15 right, 15 not written" in line(text, 2)
    assert "not yet" in line(text, 3) and "budget_report is not written yet" in line(text, 3)
    assert "the reference: 15 of 15 right" in line(text, 1)


def test_it_judges_yours_whatever_the_variable_says(clone):
    assert "yours: 0 of 15" in ask(clone, env={"LAB_MODULE": "solutions"})[0]


def test_a_solved_file_is_ok(clone):
    text, _, status = ask(clone, *(f"{key}={value}" for key, value in EXACT.items()), body=SOLVED)
    assert status == 0 and re.search(r" ok +yours: 15 of 15 right", line(text, 2))
    assert re.search(r" ok +yours: 22 lines", line(text, 3)) and "6 of 6 within 10 %" in line(text, 5)


@pytest.mark.parametrize("body, second, third", [
    ("matmul_flops.__wrapped__ = lambda m, k, n, batch=1: m * k * n * batch\n", "wrong: matmul_flops", "yours: 22 lines"),
    ("budget_to_flops.__wrapped__ = lambda chip, n, days, mfu=0: chip.peak_flops * n * days * 86400\n",
     "wrong: budget_to_flops", "not the reference's figures: compute"),
    ("def _raise(*a, **k): raise SystemExit\nbudget_report.__wrapped__ = _raise\n", "wrong: budget_report", "it ended in SystemExit"),
    ("def _loop(*a, **k):\n    while True: pass\nsanity_checks.__wrapped__ = _loop\n", "wrong: sanity_checks", "it ended in TimeoutError"),
])
def test_a_wrong_function_is_wrong(clone, body, second, third):
    text, _, status = ask(clone, body=SOLVED + body)
    assert status == 1 and second in line(text, 2) and third in line(text, 3)


def test_a_file_that_python_cannot_read_is_a_sentence(clone):
    text, _, status = ask(clone, body="\ndef mine(:\n")
    assert status == 1 and re.search(r"wrong +costlib/napkin.py, line \d+: invalid syntax", line(text, 2))
    assert "not checked" in line(text, 1) and "not checked" in line(text, 3)


def test_without_solutions_the_estimates_are_still_judged(clone):
    text, _, status = ask(clone, f"A={EXACT['A'] // 2}", solutions=False)
    assert status == 1 and "this edition has no solutions" in line(text, 1) and "near mac" in text


@pytest.mark.parametrize("word, said", [("A=1.5", "TYPE: by_hand['A']"), ("X=1", "the shapes are A, B, C"), ("A", "write A=3.5e14")])
def test_a_wrong_word_is_a_sentence(clone, word, said):
    text, errors, status = ask(clone, word)
    assert (text, status) == ("", 2) and said in errors
