"""A class's edition: it works on a bare Python, it names mistakes, and it holds no solution."""

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from textwrap import indent
from types import SimpleNamespace

import pytest

from costlib.domain import ManifestError
from costlib.exercise import ROOT
from labs import holes, intake, judge, leaks, release, released, spec

PYTHON = getattr(sys, "_base_executable", sys.executable)  # none of the environment's packages
WRONG = [(number, e.name, w.name) for number in spec.numbers() for e in spec.load(number).exercises for w in e.wrong]


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return release.build(["all"], tmp_path_factory.mktemp("release") / "labs.zip")


@pytest.fixture(scope="module")
def edition(archive):
    with zipfile.ZipFile(archive) as zipped:
        zipped.extractall(archive.parent)
    return archive.parent / "costlib-labs"


@pytest.fixture
def mine(edition, tmp_path):
    """A learner's own copy."""
    return Path(shutil.copytree(edition, tmp_path / "my labs"))


def ask(folder, *words):
    """The loop in a folder, on a Python that has nothing but its standard library."""
    done = subprocess.run([PYTHON, "-S", "-B", "-m", "labs", *words], cwd=folder, env={}, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout + done.stderr, done.returncode


def make(folder, *words, **env):
    return subprocess.run(["make", *words], cwd=folder, env={"PATH": os.environ["PATH"], **env}, capture_output=True, text=True, timeout=60)


def write(folder, module, name, *lines):
    file = folder / f"costlib/{module}.py"
    before, after = re.split(rf"(?<=\n)(?=def {name}\()", file.read_text(), maxsplit=1)
    body = "".join(f"    {line}\n" for line in lines)
    file.write_text(before + after.replace("    raise Unfilled\n", body, 1))


# The archive


def test_the_same_tree_gives_the_same_bytes(archive, tmp_path):
    assert release.build(["all"], tmp_path / "again.zip").read_bytes() == archive.read_bytes()
    with zipfile.ZipFile(archive) as zipped:
        entries = zipped.infolist()
    assert [e.filename for e in entries] == sorted(e.filename for e in entries)
    assert {(e.date_time, e.external_attr >> 16, e.create_system) for e in entries} == {(release.WHEN, 0o100644, 3)}
    assert list(tmp_path.iterdir()) == [tmp_path / "again.zip"]


def test_every_file_but_the_sums_has_its_sum(edition):
    lines = (edition / "SHA256SUMS").read_text().splitlines()
    listed = {name: total for total, _, name in (line.partition("  ") for line in lines)}
    there = {path.relative_to(edition).as_posix(): path for path in leaks.files(edition)}
    assert listed == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in there.items() if name != "SHA256SUMS"}


def test_every_module_of_costlib_is_on_the_allow_list():
    assert sorted(release.MODULES) == sorted(path.stem for path in (ROOT / "costlib").glob("*.py"))


def test_what_is_not_listed_stays_out(edition):
    names = {path.relative_to(edition).parts[0] for path in leaks.files(edition)}
    assert sorted(names) == ["LICENSE", "LICENSE-text", "Makefile", "README.md", "SHA256SUMS", "chapters", "costlib", "labs",
                             "pyproject.toml", "requirements.txt"]  # fmt: skip
    code = {path.stem for path in (edition / "labs").glob("*.py")} - {Path(n.replace(".", "/")).stem for n in spec.numbers().values()}
    assert code == {"__init__", "__main__", "holes", "intake", "judge", "loop", "released", "spec", "submit", "wire"}
    assert not (edition / "book").exists() and not list(edition.rglob("*.ipynb"))


def test_a_lab_comes_with_the_labs_that_it_calls(tmp_path):
    assert release.wanted(["all"]) == [*spec.numbers()]
    assert release.wanted(["3", "01"]) == release.wanted(["01 03"]) == release.wanted(["03,1"]) == ["01", "03"]
    with pytest.raises(ManifestError, match="lab 06 calls functions of lab 01, 03.*release 01 03 06"):
        release.wanted(["06"])
    with pytest.raises(ManifestError, match="LAB = '99'"):
        release.wanted(["99"])
    with pytest.raises(ManifestError, match="name the labs"):
        release.wanted([" "])


def test_an_edition_of_some_labs_has_a_folder_of_its_own(tmp_path):
    with zipfile.ZipFile(release.build(["01", "03"], tmp_path / "two.zip")) as zipped:
        zipped.extractall(tmp_path)
    folder = tmp_path / "costlib-labs-01-03"
    assert sorted(path.name for path in (folder / "labs/released").iterdir()) == ["lab01.json", "lab03.json"]
    text, status = ask(folder, "progress")
    assert status == 0 and "Lab 03" in text and "Lab 02" not in text
    assert "the labs are 01, 03" in ask(folder, "check", "02")[0]


# On a bare Python


def test_an_empty_edition_says_what_to_write(edition):
    text, status = ask(edition, "check", "01")
    assert status == 0 and ": 0 of 15 right, 0 of 39 points" in text and "matmul_flops is not written yet" in text
    for number in spec.numbers():
        for line in ask(edition, "check", number)[0].split("\n\n")[0].splitlines()[1:]:
            assert line.startswith("  . ") and line.endswith("  not written")


def test_a_mistake_has_its_name(mine):
    write(mine, "napkin", "matmul_flops", "return batch * m * k * n")
    text, status = ask(mine, "check", "01", "matmul_flops")
    assert status == 1 and "You counted multiply-accumulates (MACs)" in text
    assert "matmul_flops(m=2, k=3, n=5)\n    expected  60\n    got       30" in text


def test_a_right_answer_is_right_and_points_to_nothing_that_is_not_there(mine):
    write(mine, "napkin", "matmul_flops", "return 2 * batch * m * k * n")
    assert ask(mine, "check", "01", "matmul_flops") == ("matmul_flops: all 8 cases right.\n", 0)


def test_a_function_whose_helper_is_empty_is_told_so(mine):
    write(mine, "napkin", "linear_backward", "return {'dX': matmul_flops(m, n, k), 'dW': matmul_flops(k, m, n)}")
    text, _ = ask(mine, "check", "01", "linear_backward")
    said = "linear_backward is written, but calls a function that is empty: matmul_flops is not written yet\n  write  costlib/napkin.py:"
    assert text.startswith(said)


def test_the_whole_reference_as_a_learner_is_all_right(mine):
    """The labs can be solved where there is no reference: each on the functions written before it."""
    for number in spec.numbers():
        for module in spec.load(number).modules:
            file = mine / f"costlib/{module}.py"
            file.write_text(holes.filled(file.read_text(), (ROOT / f"solutions/{module}.py").read_text(), module))
        text, status = ask(mine, "check", number)
        assert status == 0 and f"The whole lab is right. Hand it in: make submit LAB={number}" in text, text
    assert "Everything is right." in ask(mine, "progress")[0]


def test_what_a_hole_says_to_read_is_there(edition):
    code = (
        "from labs import loop, spec\n"
        "for lab in map(spec.load, spec.numbers()):\n"
        "    for e in lab.exercises: print(loop.reading(lab, e).split(',')[0])\n"
    )
    done = subprocess.run([PYTHON, "-S", "-B", "-c", code], cwd=edition, env={}, capture_output=True, text=True)
    pages = done.stdout.splitlines()
    assert len(pages) == sum(len(spec.load(n).exercises) for n in spec.numbers()), done.stderr
    assert all((edition / page).is_file() for page in pages)


def test_the_makefile_has_the_learners_targets_and_they_work(mine):
    python = {"PYTHON": PYTHON}
    listed = make(mine).stdout.splitlines()
    assert [line.split()[1] for line in listed] == ["env", "lab", "hint", "progress", "submit"]
    assert re.fullmatch(r"Python 3\.\d+\.\d+\S* is all that the labs need\.\n", make(mine, "env", **python).stdout)
    write(mine, "napkin", "matmul_flops", "return batch * m * k * n")
    wrong = make(mine, "lab", "LAB=01", **python)
    assert wrong.returncode == 0 and "(MACs)" in wrong.stdout
    assert make(mine, "hint", "LAB=01", "EX=matmul_flops", **python).stdout.startswith("Hint 1 of 3 for matmul_flops")
    assert make(mine, "hint", "LAB=01", "EX=matmul_flops", "N=3", **python).stdout.startswith("Hint 3 of 3 for matmul_flops")
    assert "Next: mend matmul_flops in costlib/napkin.py:" in make(mine, "progress", **python).stdout
    for target, missing in (("lab", "Name the lab"), ("hint", "Name the lab and the exercise"), ("submit", "Name the lab")):
        assert make(mine, target, **python).stderr.startswith(missing)
    assert make(mine, "lab", "LAB=99", **python).returncode == 2


@pytest.mark.parametrize("value", ["01; touch ran", "$(touch ran)", "`touch ran`", "$(shell touch ran)", '" ; touch ran "'])
def test_no_part_of_a_value_is_run(mine, value):
    for words in (["lab"], ["submit", f"LEARNER={value}"], ["hint", f"EX={value}"]):
        for result in (make(mine, *words, f"LAB={value}", PYTHON=PYTHON), make(mine, *words, LAB=value, PYTHON=PYTHON)):
            assert result.returncode == 2 and not (mine / "ran").exists()


def test_the_file_to_hand_in_holds_the_learners_module_and_is_taken(mine):
    write(mine, "napkin", "matmul_flops", "return batch * m * k * n")
    said = make(mine, "submit", "LAB=01", "LEARNER=ada", PYTHON=PYTHON)
    assert said.returncode == 0 and "14 of 15 functions are still empty" in said.stdout
    taken = intake.take(mine / "lab01-ada.zip", spec.load("01"))
    assert taken.reason == "" and taken.files == {"napkin.py": (mine / "costlib/napkin.py").read_bytes()}


# A lab as data


@pytest.fixture(scope="module")
def as_data(edition):
    """Every lab as the edition reads it."""
    folder, released.FOLDER = released.FOLDER, edition / "labs/released"
    try:
        return {number: released.lab(number) for number in spec.numbers()}
    finally:
        released.FOLDER = folder


def test_an_edition_says_of_a_lab_what_the_specification_says(as_data):
    for number, lab in as_data.items():
        whole = spec.load(number)
        assert (lab.number, lab.title, lab.module, lab.modules) == (whole.number, whole.title, whole.module, whole.modules)
        for here, there in zip(lab.exercises, whole.exercises, strict=True):
            for name in ("name", "points", "minutes", "lines", "hints", "module"):
                assert getattr(here, name) == getattr(there, name)
            for mine, theirs in zip(here.cases, there.cases, strict=True):
                assert judge.same(mine.args, theirs.args) and judge.same(dict(mine.kwargs), dict(theirs.kwargs))
                assert judge.same(mine.expected, theirs.expected)
            assert here.draws(0) == [] and here.shapes == {}


@pytest.mark.parametrize("number, name, mistake", WRONG)
def test_a_mistake_is_called_the_same_with_and_without_its_model(as_data, number, name, mistake):
    lab = spec.load(number)
    exercise, failing = lab[name], []
    model = next(w.model for w in exercise.wrong if w.name == mistake)
    for case in exercise.cases:
        with judge.using("solutions"):
            wanted, got = case.expected, judge.call(model, case)
        if not isinstance(got, (judge.Raised, spec.Refused)) and not isinstance(wanted, spec.Refused) and not judge.same(got, wanted):
            failing.append((case, wanted, got))
    assert len(failing) > 1
    assert judge.diagnose(as_data[number][name], failing) == judge.diagnose(exercise, failing)


# Holes

WRITTEN = '''import functools

from costlib.exercise import Unfilled, exercise


@exercise(unit="FLOP", convention="FMA=2")
def rows(
    a: int,  # how many
    b: int = 2,
) -> dict:
    """What it counts.

    More of it.
    """
    # the secret: twice
    twice = 2 * a

    def inner():
        return twice * b

    return {"rows": inner()}
    # and what I learnt


def helper(a):
    """Not an exercise."""
    return a  # stays


@exercise
def bare(a): return 3 * a


@exercise
def undocumented(a):
    # three times
    return 3 * a


@exercise
def short(a):
    """Doc."""; return 3 * a  # once more
LAST = 1
'''
HOLES = '''import functools

from costlib.exercise import Unfilled, exercise


@exercise(unit="FLOP", convention="FMA=2")
def rows(
    a: int,  # how many
    b: int = 2,
) -> dict:
    """What it counts.

    More of it.
    """
    raise Unfilled


def helper(a):
    """Not an exercise."""
    return a  # stays


@exercise
def bare(a):
    raise Unfilled


@exercise
def undocumented(a):
    raise Unfilled


@exercise
def short(a):
    """Doc."""
    raise Unfilled
LAST = 1
'''


def test_a_hole_keeps_its_signature_and_its_docstring_and_nothing_else():
    assert holes.empty(WRITTEN) == HOLES
    assert holes.empty(HOLES) == HOLES


@pytest.mark.parametrize("module", [m for n in spec.numbers() for m in spec.load(n).modules])
def test_what_somebody_has_written_is_not_handed_out(module):
    starter = holes.empty((ROOT / f"costlib/{module}.py").read_text())
    written = holes.filled(starter, (ROOT / f"solutions/{module}.py").read_text(), module)
    for node in ast.parse(holes.empty(written)).body:
        if holes.is_exercise(node):
            assert [ast.unparse(part) for part in holes.undocumented(node.body)] == ["raise Unfilled"]


# What must not go out

ANSWER = "{k: v for k, v in ledger.items()}"


@pytest.fixture(scope="module")
def plant(edition, tmp_path_factory):
    """Puts a file into a copy of the edition and says what the proof says of it."""
    tree = Path(shutil.copytree(edition, tmp_path_factory.mktemp("planted") / "costlib-labs"))

    def plant(name, text, hidden=leaks.Hidden()):
        file = tree / name
        before = file.read_bytes() if file.is_file() else None
        new = [folder for folder in file.parents if not folder.exists()]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text(before.decode()) if callable(text) else text)
        try:
            return leaks.prove(tree, hidden)
        finally:
            file.unlink() if before is None else file.write_bytes(before)
            for folder in new:
                folder.rmdir()

    plant.tree = tree
    return plant


def test_the_edition_itself_passes(plant):
    assert leaks.prove(plant.tree) == []


def answer(name):
    """A function of the reference, its variables renamed."""
    module, _, function = name.partition(".")
    tree = ast.parse((ROOT / f"solutions/{module}.py").read_text())
    node = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == function)
    names = {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
    names |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in names:
            part.id = f"my_{part.id}"
        if isinstance(part, ast.arg):
            part.arg = f"my_{part.arg}"
    node.name = "mine"
    return ast.unparse(node)


BODY, LINE = "napkin.total_params", "params.attention_weights"
BODIES = sorted(set(leaks.answers(ROOT / "solutions").values()))


def page(code):
    return f"# A page\n\n````{{admonition}} Look\n```{{code-cell}} ipython3\n:tags: [hide-input]\n%time 1\n{code}\n```\n````\n"


def notebook(code):
    cells = [{"cell_type": "markdown", "source": ["text\n"]}, {"cell_type": "code", "source": code.splitlines(keepends=True)}]
    return json.dumps({"cells": cells}, indent=1)


def built(code):
    words = re.sub(r"(\w+)", r"<span class='n'>\1</span>", code.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
    return f"<html><body><p>text</p>\n<div class='highlight'><pre><span></span>{words}\n</pre></div></body></html>"


@pytest.mark.parametrize("name", BODIES)
def test_every_answer_is_found_under_other_names(name):
    code = f"import costlib\n\n\n{answer(name)}\n"
    assert leaks._found_in(".py", code)


@pytest.mark.parametrize("file, shape", [
    ("labs/notes.py", str), ("chapters/notes.md", page), ("book/notes.ipynb", notebook), ("book/notes.html", built),
])  # fmt: skip
def test_an_answer_in_code_in_a_page_in_a_notebook_and_in_the_book_is_found(plant, file, shape):
    (said,) = plant(file, shape(answer(BODY)))
    assert re.fullmatch(rf"{re.escape(file)}:\d+: the answer of {re.escape(BODY)}", said)


VERBATIM = (ROOT / "solutions/napkin.py").read_text()
FORMS = {
    "notes.txt": str, "labs/notes.json": lambda text: json.dumps({"text": text}), "costlib/data/notes.py": lambda text: f"NOTES = {text!r}\n",
    "costlib/notes.py": lambda text: "".join(f"# {line}\n" for line in text.split("\n")), "chapters/notes.md": lambda text: indent(text, "    "),
    "book/notes.html": lambda text: f"<!-- {text} -->", "book/more.html": lambda text: f"<code>{text.replace('<', '&lt;')}</code>",
    "labs/notes.md": lambda text: "".join(f"+ {line}\n" for line in text.split("\n")), "book/_static/notes.js": lambda text: f"x = `{text}`",
    "book/notes.ipynb": lambda text: json.dumps({"cells": [{"cell_type": "code", "source": "1", "outputs": [{"text": text}]}]}),
}  # fmt: skip


@pytest.mark.parametrize("file", FORMS)
def test_an_answer_is_found_whatever_it_stands_in(plant, file):
    said = plant(file, FORMS[file](VERBATIM))
    quoted = {line.rpartition(" ")[2] for line in said if line.startswith(f"{file}: quotes the answer of ")}
    assert {"napkin.total_params", "napkin.training_flops_exact", "napkin.kv_cache_bytes", "napkin.budget_report"} <= quoted


def test_an_answer_that_a_cell_computes_is_found(plant):
    node = ast.parse(answer("forward.a16_block")).body[0]
    value = ast.unparse(node.body[-1].value)
    assert plant("chapters/notes.md", page(f"work = 3 * ({value})")) == ["chapters/notes.md:7: the answer of forward.a16_block"]


def test_a_filled_hole_is_found(plant):
    said = plant("costlib/napkin.py", lambda text: text.replace("    raise Unfilled\n", "    return 1\n", 1))
    assert len(said) == 1 and re.fullmatch(r"costlib/napkin.py:\d+: matmul_flops is filled in", said[0])


def without_decorator(text, *body):
    """matmul_flops as a function like any other, which no rule about holes can see."""
    lines = "".join(f"    {line}\n" for line in body)
    head, tail = re.match(r"(?s)(.*?)@exercise\n(def matmul_flops.*)", text).groups()
    return head + tail.replace("    raise Unfilled\n", lines, 1)


def test_a_function_that_answers_although_it_is_no_hole_is_found_by_the_loop(plant):
    assert plant("costlib/napkin.py", lambda text: without_decorator(text, "return 0")) == [
        "labs/lab01: matmul_flops is wrong in the copy, where it must be not written"]


def test_points_in_an_untouched_edition_are_found_by_the_loop(plant):
    checks = [f"domain.checker(domain.Count)('{size}', {size})" for size in ("m", "k", "n", "batch")]
    body = ("from costlib import domain", *checks, "return 2 * batch * m * k * n")
    said = plant("costlib/napkin.py", lambda text: without_decorator(text, *body))
    assert said[0] == "labs/lab01: matmul_flops is right in the copy, where it must be not written"
    assert said[1:] == ["labs: Lab 01, Napkin: FLOPs, memory and budget: 1 of 15 right, 2 of 39 points"]


def test_an_edition_whose_loop_does_not_run_is_refused(plant):
    assert plant("labs/spec.py", "import numpy_of_another_machine\n") == [
        "labs: the loop does not run in the copy: ModuleNotFoundError: No module named 'numpy_of_another_machine'"]


@pytest.mark.parametrize("file", [
    "solutions/napkin.py", "labs/solutions", "instructor/notes.md", "overlay/lab01.json", "tests/a.py", "labs/recorded", ".git/HEAD",
    "labs/__pycache__/a.txt", "labs/judge.pyc", "labs/a.zip", "labs/judge.PY", "book/.doctrees/a", ".venv/pyvenv.cfg",
])  # fmt: skip
def test_a_file_that_has_no_place_is_found(plant, file):
    said = plant(file, "")
    assert said and all(line.endswith(": has no place in an edition") for line in said)


@pytest.mark.parametrize("target", ["LICENSE", "/", "nowhere"])
def test_a_link_is_found(plant, target):
    link = plant.tree / "labs/more"
    link.symlink_to(target)
    try:
        assert leaks.prove(plant.tree) == ["labs/more: a link or a device, where only files and folders may be"]
    finally:
        link.unlink()


@pytest.mark.parametrize("file, text, said", [
    ("README.md", "see `solutions/napkin.py`", "README.md:1: names a path solutions/ that the edition does not have"),
    ("book/a.js", '{"a": "solutions/napkin"}', "book/a.js:1: names a path solutions/ that the edition does not have"),
    ("chapters/a.md", "instructor/notes", "chapters/a.md:1: names a path instructor/ that the edition does not have"),
    ("labs/notes.py", "x = 1\nfrom solutions import params\n", "labs/notes.py:2: an import of solutions"),
    ("labs/notes.py", "def f():\n    import solutions.params as p\n", "labs/notes.py:2: an import of solutions"),
    ("chapters/a.md", "```python\nfrom solutions.params import block\n```\n", "chapters/a.md:2: an import of solutions"),
])
def test_a_way_to_the_reference_is_found(plant, file, text, said):
    assert plant(file, text) == [said]


def test_what_marks_is_found(plant):
    hidden = leaks.Hidden(("s3cret-of-2026",), {"matmul_flops/overlay-0": frozenset({987_654_320})},
                          {"ada, block": frozenset({111_222_333, 444_555_666, 777_888_999})})  # fmt: skip
    assert leaks.prove(plant.tree, hidden) == []
    assert plant("labs/a.json", '{"seed": "s3cret-of-2026"}', hidden) == [
        "labs/a.json: holds the secret of the marking, or a seed that it gives"]
    told = "holds 987654320, the answer of the hidden case matmul_flops/overlay-0; leave the file out, or choose another case"
    for file, text in (
        ("labs/a.json", "[987654320]"), ("chapters/a.md", "It is 987,654,320."), ("book/a.ipynb", '{"text": "987_654_320"}'),
        ("book/searchindex.js", "x={987654320:1}"), ("labs/a.json", "[1,987654320,22]"), ("labs/a.json", "[987,654,320,987654320]"),
    ):  # fmt: skip
        assert plant(file, text, hidden) == [f"{file}: {told}"]
    assert plant("labs/a.json", "[111222333, 444555666]", hidden) == []
    assert plant("labs/a.json", "[111222333, 444555666, 777888999]", hidden) == [
        "labs/a.json: holds every answer of the drawn cases of ada, block"]


def test_a_secret_and_a_class_give_seeds_and_answers_that_the_edition_does_not_hold(plant):
    own = {"matmul_flops": (spec.given(3, 7, 1_000_003),)}
    hidden = release.hidden(["01", "03"], b"a secret of this year\n", ["ada", "bob"], own)
    assert hidden.words[0] == "a secret of this year" and len(hidden.words) == 1 + 2 * 2
    assert hidden.own == {"matmul_flops/overlay-0": frozenset({2 * 3 * 7 * 1_000_003})}
    assert len(hidden.drawn) == 2 * (15 + 13)
    assert leaks.prove(plant.tree, hidden) == []


def test_a_coincidence_is_still_one(monkeypatch, plant):
    reasons = dict(leaks.COINCIDENCES)
    monkeypatch.setattr(leaks, "COINCIDENCES", {})
    lines = [re.fullmatch(r"(.*)\.\w+:\d+: the answer of (.*)", line) for line in leaks.bodies(plant.tree)]
    assert {line.groups() for line in lines} == reasons.keys()


def test_no_archive_is_written_where_something_leaks(monkeypatch, tmp_path, capsys):
    lay_down = release.lay_down

    def careless(tree, numbers, book=None):
        lay_down(tree, numbers, book)
        (tree / "labs/answers.py").write_text(answer(BODY))

    monkeypatch.setattr(release, "lay_down", careless)
    with pytest.raises(release.Leak, match=r"labs/answers.py:\d+: the answer of napkin.total_params"):
        release.build(["all"], tmp_path / "new/labs.zip")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "labs.zip").write_text("the last one")
    args = SimpleNamespace(labs=["all"], out=str(tmp_path / "labs.zip"), book=None, secret_file=None, learners=None, overlay=None)
    assert release.main(args) == 1
    assert "was not written" in capsys.readouterr().err
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("labs.zip", "the last one")]


# The book


@pytest.fixture
def book(edition, tmp_path):
    """A built book, as far as its names go."""
    folder = tmp_path / "html"
    for page in ["index.md", *(p.relative_to(edition) for p in edition.rglob("*.md") if p.name != "README.md")]:
        file = (folder / page).with_suffix(".html")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("<pre>print(1)</pre>")
    (folder / ".buildinfo").write_text("config: 1")
    return folder


MENTIONS = [
    "Then compare with `solutions/params.py`. The scalars",
    'Then compare with <code class="docutils literal notranslate"><span class="pre">solutions/params.py</span></code>, function by function.',
    "all 14 cases right. Compare with solutions/napkin.py.\n",
    "The whole lab is right. Compare with solutions/napkin.py, then `make progress` for the next one.\n",
]


def test_no_page_says_that_a_reference_answers(edition):
    pages = {path: path.read_text() for path in edition.rglob("*.md")}
    assert not [path for path, text in pages.items() if "answered by the reference" in text]


def test_a_book_goes_with_it(book, tmp_path):
    (book / "labs/lab03_parameters.html").write_text("\n".join(MENTIONS))
    with zipfile.ZipFile(release.build(["all"], tmp_path / "labs.zip", book)) as zipped:
        names = [name.removeprefix("costlib-labs/book/") for name in zipped.namelist() if "/book/" in name]
        said = zipped.read("costlib-labs/book/labs/lab03_parameters.html").decode()
        readme = zipped.read("costlib-labs/README.md").decode()
    assert "index.html" in names and ".buildinfo" not in names
    assert "solutions" not in said and said.count("ask your instructor for the reference") == 2 and "all 14 cases right.\n" in said
    assert "`book/index.html` in a browser" in readme


def test_a_page_of_the_book_that_shows_an_answer_stops_it(book, tmp_path):
    (book / "chapters/warmup/12_lab_walkthrough.html").write_text(built(answer(BODY)))
    with pytest.raises(release.Leak, match=rf"book/chapters/warmup/12_lab_walkthrough.html:\d+: the answer of {BODY}"):
        release.build(["all"], tmp_path / "labs.zip", book)


def test_a_folder_that_is_not_the_book_is_refused(book, tmp_path):
    (book / "labs/lab01_napkin.html").unlink()
    with pytest.raises(ManifestError, match=r"is not the built book \(labs/lab01_napkin.md is not in it\): make book"):
        release.build(["all"], tmp_path / "labs.zip", book)
