"""What is a lab? Exercises in order, each with cases, named wrong models, hints and shapes to draw from.

The one source for the learner's check, `pytest labs`, grading, drills and the cards in the pages.
Expected values are written down, never computed by the code under test.
"""

import functools
import importlib
import inspect
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from costlib.domain import ManifestError
from costlib.exercise import reference


@dataclass(frozen=True)
class Refused:
    """The expectation that a call raises ManifestError with this code."""

    code: str


@dataclass(frozen=True)
class Case:
    args: tuple
    kwargs: Mapping
    expected: object = None

    def gives(self, value) -> "Case":
        return Case(self.args, self.kwargs, value)

    def refuses(self, code: str) -> "Case":
        return Case(self.args, self.kwargs, Refused(code))


def given(*args, **kwargs) -> Case:
    """`given(1, 2, 3).gives(12)`, `given(1.0, 2, 3).refuses("TYPE")`."""
    return Case(args, kwargs)


@dataclass(frozen=True)
class Wrong:
    """A mistake with a name: a model of it with the exercise's own arguments, and what to tell its author."""

    name: str
    model: Callable
    text: str


class Reference:
    """What wrong models are made from: the reference of one module, read when a model runs, so that a
    spec can be read whatever state the exercise files are in."""

    def __init__(self, module: str):
        self.module = module

    def right(self, name: str, *args):
        """The reference's answer."""
        return reference(f"{self.module}.{name}")(*args)

    def bound(self, name: str, model: Callable) -> Callable:
        """A model that gets every argument of the exercise in order, defaults filled in."""

        def call(*args, **kwargs):
            arguments = inspect.signature(reference(f"{self.module}.{name}")).bind(*args, **kwargs)
            arguments.apply_defaults()
            return model(*arguments.args)

        return call

    def changed(self, name: str, change: Callable) -> Callable:
        """The right rows, some changed by a mistake that sees them and every argument; None takes a row away."""

        def model(*args):
            right = dict(self.right(name, *args))
            wrong = {**right, **change(right, *args)}
            return {row: value for row, value in wrong.items() if value is not None}

        return self.bound(name, model)


@dataclass(frozen=True)
class Exercise:
    """One function to write. `shapes` maps a parameter (or a tuple of them) to realistic values."""

    name: str
    points: int
    minutes: int
    lines: int
    hints: tuple[str, ...]
    cases: tuple[Case, ...]
    wrong: tuple[Wrong, ...]
    shapes: Mapping
    module: str = ""  # of costlib, where it is not the lab's

    def draws(self, count: int = 6, seed: str = "0") -> list[Case]:
        """Further cases, the same for the same seed; their answers come from the reference."""
        rng, cases = random.Random(f"{self.name}/{seed}"), []
        for _ in range(count):
            kwargs = {}
            for names, values in self.shapes.items():
                value = rng.choice(values)
                kwargs |= {names: value} if isinstance(names, str) else dict(zip(names, value, strict=True))
            cases.append(Case((), kwargs))
        return cases


@dataclass(frozen=True)
class Failure:
    """One row of a failure lab: a fault that can be injected, and the check that must catch it.

    `wrong` names an exercise's wrong model, ("attention_weights", "square-attention"); or `check`
    is a function of one bool, is the fault there, that returns what it found, or "" for nothing.
    """

    fault: str
    invariant: str
    wrong: tuple[str, str] | None = None
    check: Callable | None = None


@dataclass(frozen=True)
class Lab:
    number: str
    title: str
    module: str
    exercises: tuple[Exercise, ...]
    failures: tuple[Failure, ...] = ()

    def path(self, exercise: Exercise) -> str:
        """Where an exercise stands, `params.block` for instance."""
        return f"{exercise.module or self.module}.{exercise.name}"

    @property
    def modules(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.path(exercise).partition(".")[0] for exercise in self.exercises))

    def __getitem__(self, name: str) -> Exercise:
        for exercise in self.exercises:
            if name in (exercise.name, self.path(exercise)):
                return exercise
        names = ", ".join(exercise.name for exercise in self.exercises)
        raise ManifestError("ENUM", f"EX = {name!r}; the exercises of lab {self.number} are {names}")


@functools.cache
def numbers() -> dict[str, str]:
    """Lab number -> module of its spec, from the files that are there."""
    files = sorted(Path(__file__).parent.glob("lab[0-9][0-9]_*.py"))
    return {file.stem[3:5]: f"labs.{file.stem}" for file in files}


def load(number: str) -> Lab:
    """The lab of that number; "1" and "01" are the same."""
    name = numbers().get(f"{number:0>2}")
    if name is None:
        raise ManifestError("ENUM", f"LAB = {number!r}; the labs are {', '.join(numbers())}")
    return importlib.import_module(name).LAB


def short(lab: Lab, exercise: Exercise) -> str:
    """The shortest name that find takes: `matmul_flops`, but `state.ledger`."""
    same = [e for number in numbers() for e in load(number).exercises if e.name == exercise.name]
    return exercise.name if len(same) == 1 else lab.path(exercise)


def find(name: str) -> tuple[Lab, Exercise]:
    """The exercise of that name, `params.block`; where only one lab has a `block`, that is enough."""
    every = [(lab, exercise) for lab in map(load, numbers()) for exercise in lab.exercises]
    found = [(lab, e) for lab, e in every if name in (e.name, lab.path(e))]
    if len(found) == 1:
        return found[0]
    names = ", ".join(lab.path(e) for lab, e in found or every)
    raise ManifestError("ENUM", f"{'several' if found else 'no'} exercises {name!r}: {names}")
