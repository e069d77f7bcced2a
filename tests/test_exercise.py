"""The contract between a hole, its reference and its lab."""

import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys

import pytest

import costlib
import solutions
from costlib import exercise as switch
from costlib import napkin
from costlib.domain import ManifestError
from costlib.exercise import ROOT, Unfilled, using
from labs import spec

MODULES = [f"costlib.{m.name}" for m in pkgutil.iter_modules(costlib.__path__) if m.name != "__main__"]
HOLES = {
    value.exercise: value
    for name in MODULES
    for value in vars(importlib.import_module(name)).values()
    if inspect.isfunction(value) and hasattr(value, "exercise") and value.__module__ == name
}
LABS = [spec.load(number) for number in spec.numbers()]
LISTED = {lab.path(e): (lab, e) for lab in LABS for e in lab.exercises}

each_hole = pytest.mark.parametrize("name", HOLES)


def python(code, **environment):
    env = {k: v for k, v in os.environ.items() if k != "LAB_MODULE"} | environment
    return subprocess.run([sys.executable, "-c", code], env=env, cwd=ROOT, capture_output=True, text=True)


@pytest.fixture
def empty_matmul(monkeypatch):
    """`matmul_flops` as it is in a fresh clone, whatever has been written into it since."""
    namespace = {"Unfilled": Unfilled, "LAB": "01"}
    exec("def matmul_flops(m, k, n, batch=1):\n    raise Unfilled\n", namespace)
    body = namespace["matmul_flops"]
    body.__doc__ = napkin.matmul_flops.__doc__
    monkeypatch.setattr(napkin.matmul_flops, "__wrapped__", body)
    monkeypatch.delenv("LAB_MODULE", raising=False)


@each_hole
def test_a_hole_raises_unfilled_and_nothing_else(name):
    if not switch.is_empty(HOLES[name]) and not os.environ.get("CI"):
        pytest.skip(f"{name} has been written in {ROOT / 'costlib'}; CI insists that it is empty")
    assert switch.is_empty(HOLES[name]), f"{name} has a body; its place is solutions/{name.split('.')[0]}.py"


@each_hole
def test_the_reference_has_the_same_parameters(name):
    hole = inspect.signature(inspect.unwrap(HOLES[name]))
    answer = inspect.signature(switch.reference(name))
    assert [(p.name, p.default, p.kind) for p in hole.parameters.values()] == [
        (p.name, p.default, p.kind) for p in answer.parameters.values()
    ]
    assert switch.reference(name).__doc__ is None, "the docstring stands in costlib only"


@each_hole
def test_a_lab_lists_it(name):
    lab, exercise = LISTED[name]
    assert lab.number == switch.lab_of(inspect.unwrap(HOLES[name]))
    assert exercise.hints and exercise.points and exercise.minutes and exercise.wrong


@each_hole
def test_its_docstring_says_unit_and_source(name):
    text = inspect.getdoc(HOLES[name])
    page, _, label = switch.reading(inspect.unwrap(HOLES[name])).partition(", section ")
    assert len(text) > 100
    assert f"({label or 'lab' + switch.lab_of(inspect.unwrap(HOLES[name]))})=" in (ROOT / page).read_text(encoding="utf-8")
    if "int" in str(inspect.signature(HOLES[name]).return_annotation):
        assert re.search(r"Unit: |Scalars|scalars", text)


def test_nothing_is_listed_that_is_no_hole():
    assert set(LISTED) == set(HOLES)


def test_every_reference_answers_a_hole():
    for module in pkgutil.iter_modules(solutions.__path__):
        defined = importlib.import_module(f"solutions.{module.name}")
        functions = {n for n, f in vars(defined).items() if inspect.isfunction(f) and f.__module__ == defined.__name__}
        assert {f"{module.name}.{n}" for n in functions} == {h for h in HOLES if h.startswith(f"{module.name}.")}


def test_costlib_reaches_solutions_in_one_place_and_labs_nowhere():
    for file in (ROOT / "costlib").glob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(import|from) (labs|solutions)", text, re.M), file
        assert ("solutions." in text and "import_module" in text) == (file.name == "exercise.py"), file


def test_an_empty_hole_says_what_to_read_write_and_run(empty_matmul):
    with using("costlib"), pytest.raises(Unfilled, match=r"write .*\n  read   chapters/warmup/02_matmul.md.*\n  check  make lab LAB=01"):
        napkin.matmul_flops(1, 2, 3)


def test_not_set_falls_back_on_the_reference_and_says_so_once(empty_matmul, capsys):
    switch._said.discard("napkin.matmul_flops")
    assert [napkin.matmul_flops(1, 2, 3), napkin.matmul_flops(1, 2, 3)] == [12, 12]
    assert capsys.readouterr().err.count("note: napkin.matmul_flops is not written yet") == 1


def test_a_written_body_is_used_before_the_reference(monkeypatch, empty_matmul):
    monkeypatch.setattr(napkin.matmul_flops, "__wrapped__", lambda m, k, n, batch=1: 99)
    assert napkin.matmul_flops(1, 2, 3) == 99
    with using("solutions"):
        assert napkin.matmul_flops(1, 2, 3) == 12


def test_alone_answers_everything_else_from_the_reference(monkeypatch):
    monkeypatch.setattr(napkin.matmul_flops, "__wrapped__", lambda m, k, n, batch=1: 99)
    monkeypatch.setattr(
        napkin.linear_backward, "__wrapped__", lambda m, k, n: {"dX": napkin.matmul_flops(m, n, k), "dW": 5}
    )
    with using("costlib", alone="napkin.linear_backward"):
        assert dict(napkin.linear_backward(1, 2, 3)) == {"dX": 12, "dW": 5}


def test_an_unfilled_helper_is_named_not_its_caller(empty_matmul, monkeypatch):
    monkeypatch.setattr(
        napkin.linear_backward, "__wrapped__", lambda m, k, n: {"dX": napkin.matmul_flops(m, n, k), "dW": 0}
    )
    with using("costlib"), pytest.raises(Unfilled, match="^matmul_flops is not written yet"):
        napkin.linear_backward(1, 2, 3)


def test_a_misspelt_lab_module_lists_the_values():
    run = python("from costlib import napkin; napkin.matmul_flops(1, 2, 3)", LAB_MODULE="solution")
    assert "ENUM: LAB_MODULE='solution'; allowed: costlib, solutions, or not set" in run.stderr


def test_without_solutions_the_reference_is_refused_in_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "solutions.napkin", None)
    with using("solutions"), pytest.raises(switch.NoSolutions, match="no solutions/ folder"):
        napkin.matmul_flops(1, 2, 3)


def test_without_solutions_an_empty_hole_is_unfilled(monkeypatch, empty_matmul):
    monkeypatch.setitem(sys.modules, "solutions.napkin", None)
    with pytest.raises(Unfilled, match="matmul_flops is not written yet"):
        napkin.matmul_flops(1, 2, 3)


def test_an_answer_that_is_no_ledger_is_refused(monkeypatch):
    for wrong, word in ((lambda m, k, n: 7, "not int"), (lambda m, k, n: {"dX": 1.0}, "is float")):
        monkeypatch.setattr(napkin.linear_backward, "__wrapped__", wrong)
        with using("costlib"), pytest.raises(ManifestError, match=word) as refusal:
            napkin.linear_backward(1, 2, 3)
        assert refusal.value.code == "RETURN"


def test_arguments_are_refused_before_any_body_runs(monkeypatch):
    monkeypatch.setattr(napkin.matmul_flops, "__wrapped__", lambda *_: pytest.fail("the body ran"))
    for args, code in (((1.0, 2, 3), "TYPE"), ((True, 2, 3), "TYPE"), ((1, -2, 3), "NEG")):
        with using("costlib"), pytest.raises(ManifestError) as refusal:
            napkin.matmul_flops(*args)
        assert refusal.value.code == code
