"""The loop as a learner meets it: an empty hole, wrong answers, a right one, a broken file."""

import re
import subprocess
import sys

import pytest

from costlib.exercise import ROOT
from labs import holes, loop, spec
from labs.spec import given


def write(clone, module, name, *lines):
    """Fill one hole of the copy; returns the command that puts the file back."""
    file = clone / "costlib" / f"{module}.py"
    before = file.read_text(encoding="utf-8")
    start = before.index(f"def {name}(")
    hole = before.index("    raise Unfilled\n", start)
    body = "".join(f"    {line}\n" for line in lines)
    file.write_text(before[:hole] + body + before[hole + len("    raise Unfilled\n") :], encoding="utf-8")
    return lambda: file.write_text(before, encoding="utf-8")


def ask(clone, *words, python=("-m", "labs")):
    done = subprocess.run(
        [sys.executable, *python, *words], cwd=clone, capture_output=True, text=True,
        env={"PATH": "", "PYTHONPATH": str(clone), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.stderr == "" and "Traceback" not in done.stdout
    return done.stdout, done.returncode


def test_an_empty_hole_says_what_to_write_and_read(clone):
    text, status = ask(clone, "check", "01")
    assert status == 0 and "0 of 15 right" in text
    assert re.search(r"matmul_flops is not written yet.*\n  write  costlib/napkin.py:\d+\n  read   chapters/warmup/02_matmul.md", text)


def test_pytest_says_the_same_of_an_empty_hole(clone):
    text, status = ask(clone, "-q", "-p", "no:cacheprovider", "-k", "lab01-matmul_flops-case0", "labs", python=("-m", "pytest"))
    assert status == 1 and "error" not in text.lower()
    assert re.search(r"not filled in: matmul_flops is not written yet\n  write  costlib/napkin.py:\d+\n  read .*\n  check  make lab LAB=01", text)


ANSWERS = [
    ("01", "napkin", "matmul_flops", ("return batch * m * k * n",), "You counted multiply-accumulates (MACs)", 1),
    ("01", "napkin", "matmul_flops", ("return 2.0 * batch * m * k * n",), "Right number, wrong type: 60.0 is a float", 1),
    ("01", "napkin", "matmul_flops", ("2 * batch * m * k * n",), "returned nothing (None)", 1),
    ("01", "napkin", "matmul_flops", ("return 2 * m * l * n",), "It raised NameError: name 'l' is not defined (napkin.py, line", 1),
    ("01", "napkin", "matmul_flops", ("while True: pass",), "Stopped after 2 s", 1),
    ("01", "napkin", "matmul_flops", ("raise SystemExit",), "ended Python", 1),
    ("01", "napkin", "matmul_flops", ("return 5 * batch * m * k * n",), "It is 5/2 times what it should be, in every failing case", 1),
    ("01", "napkin", "matmul_flops", ("return 2 * batch * m * k * n",), "matmul_flops: all 14 cases right. Compare with solutions/napkin.py", 0),
    ("01", "napkin", "params_per_layer", (
        "require_divides(n_kv_heads, n_heads, 'n_kv_heads', 'n_heads')",
        "return {'attn': 4 * d_model * n_heads * d_head, 'mlp': (3 if gated else 2) * d_model * d_ff, 'norms': 2 * d_model}",
    ), "attn is the value of multi-head attention", 1),
    ("01", "napkin", "params_per_layer", (
        "return {'attn': 2 * d_model * d_head * (n_heads + n_kv_heads), 'mlp': (3 if gated else 2) * d_model * d_ff, 'norms': 2 * d_model}",
    ), "This input must be refused with ManifestError code DIVIS", 1),
    ("01", "napkin", "params_per_layer", ("return {'attention': 1, 'mlp': 2, 'norms': 3}",), "missing: attn; not asked for: attention", 1),
    ("01", "napkin", "params_per_layer", ("return {'attn': 1.5, 'mlp': 2, 'norms': 3}",), "row 'attn' = 1.5 is float", 1),
    ("01", "napkin", "params_per_layer", ("return {'attn': 1, 'mlp': (3 if gated else 2) * d_model * d_ff, 'norms': 2 * d_model}",), "Right: mlp, norms. Wrong: attn.", 1),
    ("03", "params", "attention_weights", ("return 2 * arch.hidden_size * arch.d_q * 2",), "k and v have num_key_value_heads heads", 1),
]


@pytest.mark.parametrize("lab, module, name, lines, said, status", ANSWERS, ids=lambda v: str(v)[:40])
def test_an_answer_is_told_what_it_is(clone, lab, module, name, lines, said, status):
    undo = write(clone, module, name, *lines)
    try:
        if "require_divides" in lines[0]:
            file = clone / "costlib/napkin.py"
            file.write_text(file.read_text().replace("from costlib.domain import", "from costlib.domain import require_divides,"))
        text, code = ask(clone, "check", lab, name)
    finally:
        undo()
    assert said in text and code == status, text
    assert len(text.splitlines()) <= 6, "at most six lines"


def test_the_first_failing_case_can_be_pasted(clone):
    undo = write(clone, "napkin", "matmul_flops", "return batch * m * k * n")
    try:
        text, _ = ask(clone, "check", "01")
    finally:
        undo()
    assert "matmul_flops(m=2, k=3, n=5)\n    expected  60\n    got       30" in text
    assert "x matmul_flops" in text and ". linear_backward" in text


def test_a_caller_is_not_blamed_for_its_helper(clone):
    undo = write(clone, "napkin", "matmul_flops", "return batch * m * k * n")
    again = write(clone, "napkin", "linear_backward", "return {'dX': matmul_flops(m, n, k), 'dW': matmul_flops(k, m, n)}")
    try:
        text, _ = ask(clone, "check", "01")
    finally:
        again()
        undo()
    assert "x matmul_flops" in text and "+ linear_backward" in text


def test_a_file_that_python_cannot_read_is_a_sentence(clone):
    undo = write(clone, "napkin", "matmul_flops", "return 2 *")
    try:
        for words in (("check", "01"), ("progress",), ("hint", "01", "matmul_flops")):
            text, status = ask(clone, *words)
            assert re.search(r"costlib/napkin.py, line \d+: invalid syntax\n  return 2 \*", text) and status in (0, 1)
    finally:
        undo()


def test_progress_shows_every_lab_and_the_next_step(clone):
    undo = write(clone, "napkin", "matmul_flops", "return 2 * batch * m * k * n")
    try:
        text, _ = ask(clone, "progress")
    finally:
        undo()
    assert "Lab 01  napkin       [+..............]  1 of 15 right" in text
    assert "Lab 03  params       [.............]  0 of 13 right" in text
    assert re.search(r"Next: write linear_backward in costlib/napkin.py:\d+, then make lab LAB=01", text)


def test_without_solutions_the_public_cases_still_judge(clone):
    hidden = "import sys; sys.modules['solutions'] = None; from labs.__main__ import main; sys.exit(main())"
    undo = write(clone, "napkin", "matmul_flops", "return batch * m * k * n")
    try:
        text, _ = ask(clone, "check", "01", "matmul_flops", python=("-c", hidden))
    finally:
        undo()
    assert "3 of 8 cases right" in text and "MACs" in text


def test_the_whole_reference_as_a_learner_is_all_right(clone):
    """Every reference body pasted into its hole passes: the labs can be solved where they are posed, and
    one after the other, with the later ones still empty."""
    modules = [module for number in spec.numbers() for module in spec.load(number).modules]
    before = {module: (clone / f"costlib/{module}.py").read_text() for module in modules}
    try:
        for number in spec.numbers():
            for module in spec.load(number).modules:
                answers = (clone / f"solutions/{module}.py").read_text()
                (clone / f"costlib/{module}.py").write_text(holes.filled(before[module], answers, module))
            text, status = ask(clone, "check", number)
            assert "The whole lab is right" in text and status == 0, text
        assert "Everything is right." in ask(clone, "progress")[0]
    finally:
        for module, text in before.items():
            (clone / f"costlib/{module}.py").write_text(text)


def test_hints_come_one_at_a_time(clone):
    text, _ = ask(clone, "hint", "01", "matmul_flops")
    assert text.startswith("Hint 1 of 3 for matmul_flops") and "N=2" in text and text.count("Hint") == 1
    assert "That was the last one. Read chapters/warmup/02_matmul.md" in ask(clone, "hint", "01", "matmul_flops", "3")[0]


def test_a_notebook_gets_sentences_too(capsys):
    loop.check("no_such_function")
    loop.hint("matmul_flops", 9)
    said = capsys.readouterr().out
    assert "no exercises 'no_such_function'" in said and "N = 9" in said


def test_a_notebook_reads_the_file_anew(clone):
    code = (
        "import labs, pathlib\n"
        "file = pathlib.Path('costlib/napkin.py')\n"
        "labs.check('matmul_flops')\n"
        "text = file.read_text().replace('raise Unfilled', 'return 2 * batch * m * k * n', 1)\n"
        "file.write_text(text)\n"
        "labs.check('napkin.matmul_flops')\n"
    )
    before = (clone / "costlib/napkin.py").read_text()
    try:
        done = subprocess.run([sys.executable, "-c", code], cwd=clone, capture_output=True, text=True, env={"PYTHONPATH": str(clone)})
    finally:
        (clone / "costlib/napkin.py").write_text(before)
    assert "matmul_flops is not written yet" in done.stdout and "all 14 cases right" in done.stdout, done.stderr


def test_cards_and_tables_escape_what_they_show():
    assert "&lt;" in loop.table(("<b>",), [("<i>",)])._repr_html_()
    card = loop.card("params_per_layer")._repr_html_()
    assert "costlib/napkin.py" in card and card.count("<details>") == 3


def test_a_gate_that_does_not_hold_stops_the_page():
    with pytest.raises(AssertionError, match="the gate is shut: two is three"):
        loop.gate({"one is one": True, "two is three": 2 == 3})
    with pytest.raises(AssertionError):
        loop.gate({"truthy is not true": 1})


def test_a_case_is_shown_as_it_would_be_typed():
    lab, exercise = spec.find("budget_to_flops")
    case = given(exercise.cases[0].args[0], 8, 1)
    assert loop.arguments(lab, exercise, case) == 'chip=chip("H100"), n_chips=8, days=1'
