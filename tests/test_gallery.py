"""Each named mistake, handed in as a submission, is told its name and no other; the reference is told none."""

import pytest

from costlib.exercise import reference, using
from labs import judge, loop, spec

EVERY = [(spec.load(number), exercise) for number in spec.numbers() for exercise in spec.load(number).exercises]
EXERCISES = [pytest.param(lab, e, id=lab.path(e)) for lab, e in EVERY]
WRONG = [pytest.param(lab, e, w, id=f"{lab.path(e)}-{w.name}") for lab, e in EVERY for w in e.wrong]


@pytest.mark.parametrize("lab, exercise", EXERCISES)
def test_the_reference_is_right(lab, exercise):
    outcome = judge.try_body(lab, exercise, reference(lab.path(exercise)))
    assert (outcome.status, outcome.diagnosis) == ("right", "")


@pytest.mark.parametrize("lab, exercise, wrong", WRONG)
def test_a_wrong_model_is_named(lab, exercise, wrong):
    outcome = judge.try_body(lab, exercise, wrong.model)
    assert (outcome.status, outcome.mistake) == ("wrong", wrong.name), outcome.diagnosis
    assert wrong.text in outcome.diagnosis


@pytest.mark.parametrize("lab, exercise, wrong", WRONG)
def test_a_wrong_model_shows_on_two_public_cases(lab, exercise, wrong):
    values = [case for case in exercise.cases if not isinstance(case.expected, spec.Refused)]
    shown = [case for case in values if not judge.same(wrong.model(*case.args, **case.kwargs), case.expected)]
    assert len(shown) >= 2


@pytest.mark.parametrize("lab, exercise", EXERCISES)
def test_no_two_wrong_models_coincide(lab, exercise):
    values = [case for case in exercise.cases if not isinstance(case.expected, spec.Refused)]
    seen = {}
    for wrong in exercise.wrong:
        answers = repr([wrong.model(*case.args, **case.kwargs) for case in values])
        assert answers not in seen, f"{wrong.name} and {seen[answers]} give the same answers"
        seen[answers] = wrong.name


@pytest.mark.parametrize("lab, exercise", EXERCISES)
def test_draws_are_the_same_for_the_same_seed_and_differ_for_another(lab, exercise):
    assert exercise.draws(seed="7") == exercise.draws(seed="7")
    assert exercise.draws(count=20, seed="7") != exercise.draws(count=20, seed="8")


FAILURES = [pytest.param(spec.load(n), f, id=f"lab{n}-{f.fault}") for n in spec.numbers() for f in spec.load(n).failures]


@pytest.mark.parametrize("lab, failure", FAILURES)
def test_an_injected_fault_is_caught_and_its_absence_is_not(lab, failure):
    assert (failure.check is None) != (failure.wrong is None)
    assert loop.caught(lab, failure)
    if failure.check:
        with using("solutions"):
            assert failure.check(False) == ""
