"""Is an answer right, and if not, which mistake is it? Pure: no printing, no files."""

import contextlib
import importlib
import inspect
import signal
import threading
import traceback
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from pathlib import Path

from costlib.domain import ManifestError
from costlib.exercise import NoSolutions, Unfilled, reference, using
from costlib.ledger import Ledger
from labs.spec import Case, Exercise, Lab, Refused

SECONDS = 2
MOST_RATIO, MOST_NAMES = 10**9, 200  # of a ratio's parts, and characters: beyond them it tells nothing


@dataclass(frozen=True)
class Raised:
    """A call that ended in an exception instead of a value."""

    error: BaseException

    @property
    def empty(self) -> bool:
        return isinstance(self.error, Unfilled)


@dataclass(frozen=True)
class Outcome:
    """How one exercise stands: "right", "wrong" or "empty", and what to say about it."""

    exercise: Exercise
    status: str
    right: int = 0
    total: int = 0
    failing: tuple = ()  # (case, wanted, got)
    diagnosis: str = ""
    mistake: str = ""  # the name of the wrong model, where one explains every failing case


@contextlib.contextmanager
def time_limit(seconds):
    """Raise TimeoutError in a call that does not end (main thread of a POSIX system only)."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def call(function, case: Case):
    """The value of a call, Refused(code), or Raised(error)."""
    try:
        with time_limit(SECONDS):
            return function(*case.args, **case.kwargs)
    except ManifestError as error:
        return Raised(error) if error.code == "RETURN" else Refused(error.code)
    except (Exception, SystemExit) as error:
        return Raised(error)


def same(got, wanted) -> bool:
    """Equal in value and in exact type, all the way down; a ledger is compared by its rows."""
    got, wanted = (dict(x) if isinstance(x, Ledger) else x for x in (got, wanted))
    if type(got) is not type(wanted):
        return False
    if isinstance(wanted, dict):
        return got.keys() == wanted.keys() and all(same(got[key], wanted[key]) for key in wanted)
    if isinstance(wanted, (tuple, list)):
        return len(got) == len(wanted) and all(map(same, got, wanted))
    return got == wanted


def expected(lab: Lab, exercise: Exercise, case: Case):
    """The written answer of a public case; the reference's of a drawn one."""
    if case.expected is not None:
        return case.expected
    with using("solutions"):
        return call(function(lab, exercise), case)


def function(lab: Lab, exercise: Exercise):
    """The function of costlib that an exercise asks for."""
    module, _, name = lab.path(exercise).partition(".")
    return getattr(importlib.import_module(f"costlib.{module}"), name)


def has_solutions(lab: Lab, exercise: Exercise) -> bool:
    try:
        reference(lab.path(exercise))
    except NoSolutions:
        return False
    return True


def answer(lab: Lab, exercise: Exercise, case: Case):
    """What the learner's function gives. What it calls is answered by the reference, where there is
    one: a mistake in a helper is the helper's."""
    with using("costlib", alone=lab.path(exercise) if has_solutions(lab, exercise) else None):
        return call(function(lab, exercise), case)


def cases(lab: Lab, exercise: Exercise, seed: str = "0") -> list[Case]:
    """The public cases, then the drawn ones where there is a reference to answer them."""
    return [*exercise.cases, *(exercise.draws(seed=seed) if has_solutions(lab, exercise) else ())]


def judge(lab: Lab, exercise: Exercise, seed: str = "0") -> Outcome:
    """Try every case and name the mistake."""
    every = cases(lab, exercise, seed)
    failing = []
    for case in every:
        wanted, got = expected(lab, exercise, case), answer(lab, exercise, case)
        if isinstance(got, Raised) and got.empty:
            return Outcome(exercise, "empty", total=len(every), diagnosis=str(got.error))
        if isinstance(got, Raised) and isinstance(got.error, TimeoutError):
            failing = [(case, wanted, got)]  # the others would each wait as long
            break
        if not same(got, wanted):
            failing.append((case, wanted, got))
    if not failing:
        return Outcome(exercise, "right", len(every), len(every))
    right = max(0, every.index(case) + 1 - len(failing))
    return Outcome(exercise, "wrong", right, len(every), tuple(failing), *diagnose(exercise, failing))


def try_body(lab: Lab, exercise: Exercise, body) -> Outcome:
    """Judge a body in the place of the learner's: a named wrong model, or the reference itself."""
    asked = function(lab, exercise)
    written, asked.__wrapped__ = asked.__wrapped__, body
    try:
        return judge(lab, exercise)
    finally:
        asked.__wrapped__ = written


def diagnose(exercise: Exercise, failing, shown=None) -> tuple[str, str]:
    """(what kind of mistake it is, the name of the wrong model if one explains every failing case).

    With `shown`, some of the failing cases, nothing but the name of a model comes from the others.
    """
    shown = failing if shown is None else shown
    for rule in (_by_exception, _by_refusal, _by_model, _by_type, _by_rows, _by_ratio):
        rows = failing if rule is _by_model else shown
        if rows and (found := rule(exercise, rows)):
            return found
    return ("", "")


def _by_exception(exercise, failing):
    errors = [got.error for _, _, got in failing if isinstance(got, Raised)]
    if not errors:
        return None
    error = errors[0]
    if isinstance(error, TimeoutError):
        return f"Stopped after {SECONDS} s. The formula needs no loop over tokens or scalars.", "timeout"
    if isinstance(error, SystemExit):
        return "Your function ended Python. Remove the call that exits.", "exit"
    if isinstance(error, ManifestError):
        return error.detail, "return"
    line = traceback.extract_tb(error.__traceback__)[-1]
    return f"It raised {type(error).__name__}: {str(error)[:200]} ({Path(line.filename).name}, line {line.lineno}).", "raised"


def _by_refusal(exercise, failing):
    let_in = [(wanted, got) for _, wanted, got in failing if isinstance(wanted, Refused)]
    if let_in and len(let_in) == len(failing):
        code = let_in[0][0].code
        return f"This input must be refused with ManifestError code {code}; see the docstring's 'Refused'.", "fails-open"
    shut_out = [got for _, wanted, got in failing if isinstance(got, Refused) and not isinstance(wanted, Refused)]
    if shut_out:
        return f"This input is allowed, and your function refuses it ({shut_out[0].code}).", "refuses-too-much"
    return None


def _by_model(exercise, failing):
    failing = [row for row in failing if not isinstance(row[1], Refused)]
    if len(failing) < 2:
        return None
    names = [wrong for wrong in exercise.wrong if all(_explains(wrong, *row) for row in failing)]
    if not names:
        return None
    return " Or: ".join(wrong.text for wrong in names[:2]), names[0].name


def _explains(wrong, case, wanted, got):
    try:
        with using("solutions"):
            modelled = wrong.model(*case.args, **case.kwargs)
    except Exception:
        return False
    return same(got, modelled)


def _by_type(exercise, failing):
    answers = [(g, w) for _, w, g in failing if not isinstance(w, Refused)]
    if not answers:
        return None
    got, wanted = answers[0]
    if got is None:
        return "Your function returned nothing (None). Is a return missing?", "none"
    kind, need = type(got), type(wanted)
    if isinstance(wanted, (dict, Ledger)) or kind is need:
        return None
    if kind is float and all(_value(g) == w for g, w in answers):
        return f"Right number, wrong type: {got!r} is a float. Use // instead of /; floats lose integers above 2**53.", "float"
    if kind is float:
        return "A float where an exact integer is asked for. Stay in int: no /, no 2.0, no 1e9, no ** 0.5.", "float-rounded"
    if kind.__module__ == "numpy":
        return f"{kind.__name__} overflows silently at 2**63. Return int(x).", "numpy"
    return f"The answer is a {need.__name__}, you returned a {kind.__name__}.", "type"


def _value(number):
    return Fraction(number) if type(number) in (int, Fraction) or type(number) is float and isfinite(number) else None


def _by_rows(exercise, failing):
    tables = [(dict(w), dict(g)) for _, w, g in failing if isinstance(w, (dict, Ledger)) and isinstance(g, (dict, Ledger))]
    if not tables:
        return None
    wanted, got = tables[0]
    missing, more = wanted.keys() - got.keys(), got.keys() - wanted.keys()
    if missing or more:
        said = [f"{word} {', '.join(sorted(map(str, names)))[:MOST_NAMES]}" for word, names in (("missing:", missing), ("not asked for:", more)) if names]
        return f"The rows have other names than the docstring asks for; {'; '.join(said)}.", "rows"
    bad = [name for name in wanted if not same(got[name], wanted[name])]
    good = [name for name in wanted if name not in bad]
    said = f"Right: {', '.join(good)}. " if good else ""
    ratios = {_ratio(g.get(bad[0]), w.get(bad[0])) for w, g in tables}
    ratio = f" {bad[0]} is {ratios.pop()} times what it should be." if len(ratios) == 1 and None not in ratios else ""
    return f"{said}Wrong: {', '.join(bad)}.{ratio}", ""


def _by_ratio(exercise, failing):
    ratios = {_ratio(got, wanted) for _, wanted, got in failing}
    if len(ratios) == 1 and None not in ratios and len(failing) > 1:
        return f"It is {ratios.pop()} times what it should be, in every failing case.", ""
    return None


def _ratio(got, wanted):
    """One number over another, where it is short enough to tell something."""
    got, wanted = _value(got), _value(wanted)
    ratio = got / wanted if got and wanted else None
    return ratio if ratio and max(abs(ratio.numerator), ratio.denominator) < MOST_RATIO else None


def bound(lab: Lab, exercise: Exercise, case: Case) -> dict:
    """The case's arguments by parameter name."""
    signature = inspect.signature(function(lab, exercise))
    return dict(signature.bind(*case.args, **case.kwargs).arguments)
