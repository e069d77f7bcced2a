"""One test per case. `pytest labs` judges your functions, `LAB_MODULE=solutions pytest labs` the reference."""

import inspect

import pytest

from costlib.exercise import is_empty, lab_module, using, where
from labs import judge, loop, spec


def _every_case():
    for number in spec.numbers():
        lab = spec.load(number)
        for exercise in lab.exercises:
            for i, case in enumerate(judge.cases(lab, exercise)):
                kind = "case" if i < len(exercise.cases) else "draw"
                yield pytest.param(lab, exercise, case, id=f"lab{number}-{exercise.name}-{kind}{i}")


@pytest.mark.parametrize("lab, exercise, case", list(_every_case()))
def test_case(lab, exercise, case):
    wanted, function = judge.expected(lab, exercise, case), judge.function(lab, exercise)
    if lab_module() == "solutions":
        with using("solutions"):
            got = judge.call(function, case)
    elif is_empty(function):
        pytest.fail(f"not filled in: {where(inspect.unwrap(function))}", pytrace=False)
    else:
        got = judge.answer(lab, exercise, case)
    if not judge.same(got, wanted):
        pytest.fail(f"expected {loop.show(wanted)}, got {loop.show(got)}", pytrace=False)
