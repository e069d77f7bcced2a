"""The loop a learner lives in: check, hint, card, progress. What is right comes first."""

import contextlib
import html
import importlib
import inspect
import re
import sys
from fractions import Fraction
from pathlib import Path

from costlib import exercise as exercise_switch
from costlib.domain import ManifestError
from costlib.exercise import ROOT, using
from costlib.hardware import Chip
from costlib.ledger import Ledger
from costlib.records import Record
from costlib.units import fixed
from labs import judge, spec

NAMES = ("plan_id", "manifest_id", "workload_id", "policy_id", "observation_id", "contract_id", "name", "role")
MARK = {"right": "+", "wrong": "x", "empty": "."}


class BrokenFile(Exception):
    """The exercise file cannot be read by Python; the text says where."""


def show(value) -> str:
    """An argument or an answer as one reads it: integers with thousands separators, records by name."""
    if isinstance(value, judge.Raised):
        return f"{type(value.error).__name__} raised"
    if isinstance(value, spec.Refused):
        return f"ManifestError {value.code}"
    if type(value) in (int, Fraction):
        return fixed(value) if Fraction(value).denominator == 1 else str(value)
    if isinstance(value, (Ledger, dict)):
        return "{" + ", ".join(f"{name}: {show(part)}" for name, part in value.items()) + "}"
    if isinstance(value, Chip):
        return f'chip("{value.name}")'
    if isinstance(value, Record):
        return str(next((getattr(value, name) for name in NAMES if hasattr(value, name)), value))
    if isinstance(value, tuple) and value and isinstance(value[0], Record):
        shown = ", ".join(map(show, value[:2]))
        return f"({shown})" if len(value) <= 2 else f"({shown}, ... {len(value)} in all)"
    if isinstance(value, tuple) and any(type(part) is not int for part in value):
        return "(" + ", ".join(map(show, value)) + ")"
    return repr(value)


def arguments(lab: spec.Lab, exercise: spec.Exercise, case: spec.Case) -> str:
    """A case's arguments as one would type them, records by their names."""
    plain = (int, Fraction, str, bool, type(None), float)
    bound = judge.bound(lab, exercise, case)
    return ", ".join(f"{name}={value!r}" if type(value) in plain else f"{name}={show(value)}" for name, value in bound.items())


def differing(wanted, got) -> tuple[str, str]:
    """What was asked for and what came, of two tables or records only the rows that differ."""
    if isinstance(wanted, tuple) and isinstance(got, tuple) and len(wanted) == len(got):
        pairs = [pair for pair in zip(wanted, got) if isinstance(pair[0], Record) and not judge.same(pair[1], pair[0])]
        if pairs:  # of a list of records the first that differs says enough
            name, rows = show(pairs[0][0]), differing(*pairs[0])
            return tuple(f"{name} with {row}" for row in rows)
    if isinstance(wanted, Record) and type(wanted) is type(got):
        wanted, got = vars(wanted), vars(got)
    if isinstance(wanted, (Ledger, dict)) and isinstance(got, (Ledger, dict)):
        wanted, got = dict(wanted), dict(got)
        names = [n for n in {**wanted, **got} if n not in wanted or n not in got or not judge.same(got[n], wanted[n])]
        return tuple(", ".join(f"{n}: {show(t[n])}" if n in t else f"no {n}" for n in names) for t in (wanted, got))
    return show(wanted), show(got)


def fresh(lab: spec.Lab) -> None:
    """Read the exercise files anew, or say in one sentence why Python cannot."""
    for module in lab.modules:
        name = f"costlib.{module}"
        try:
            importlib.reload(sys.modules[name]) if name in sys.modules else importlib.import_module(name)
            judge.has_solutions(lab, lab.exercises[0])  # what the reference imports must be readable too
        except SyntaxError as error:
            file = Path(error.filename or "").name or f"{module}.py"
            raise BrokenFile(f"costlib/{file}, line {error.lineno}: {error.msg}\n  {(error.text or '').strip()}") from None
        except Exception as error:
            raise BrokenFile(f"costlib/{module}.py cannot be imported: {type(error).__name__}: {error}") from None


def file_of(lab: spec.Lab, exercise: spec.Exercise) -> str:
    return f"costlib/{lab.path(exercise).partition('.')[0]}.py"


def solution_of(file: str) -> str:
    """The reference of a file of costlib, "" in an edition that has none."""
    solution = file.replace("costlib", "solutions")
    return solution if (ROOT / solution).exists() else ""


def place(lab: spec.Lab, exercise: spec.Exercise) -> str:
    hole = inspect.unwrap(judge.function(lab, exercise))
    return f"{file_of(lab, exercise)}:{hole.__code__.co_firstlineno}"


def reading(lab: spec.Lab, exercise: spec.Exercise) -> str:
    return exercise_switch.reading(inspect.unwrap(judge.function(lab, exercise)))


def explain(lab: spec.Lab, outcome: judge.Outcome) -> str:
    """At most six lines on one exercise: what is right, the first failing case, what kind of mistake, where next."""
    exercise, name = outcome.exercise, outcome.exercise.name
    if outcome.status == "right":
        solution = solution_of(file_of(lab, exercise))
        compare = f" Compare with {solution}." if solution else ""
        return f"{name}: all {outcome.total} cases right.{compare}"
    hint = f"make hint LAB={lab.number} EX={name}"
    helper, _, _ = outcome.diagnosis.partition(" is not written yet")
    if outcome.status == "empty" and helper not in (name, outcome.diagnosis):  # in an edition no reference answers
        return f"{name} is written, but calls a function that is empty: {outcome.diagnosis}"
    if outcome.status == "empty":
        return (
            f"{name} is not written yet: {exercise.lines} line(s), about {exercise.minutes} min.\n"
            f"  write  {place(lab, exercise)}\n  read   {reading(lab, exercise)}\n  hint   {hint}"
        )
    case, *answers = outcome.failing[0]
    wanted, got = differing(*answers)
    return (
        f"{name}: {outcome.right} of {outcome.total} cases right. This one is not:\n"
        f"  {name}({arguments(lab, exercise, case)})\n"
        f"    expected  {wanted}\n    got       {got}\n"
        f"  {outcome.diagnosis or 'No known mistake gives this answer. Work the case by hand, with every size 1, then with one size 2.'}\n"
        f"  read {reading(lab, exercise)}; or {hint}"
    )


def judge_lab(lab: spec.Lab) -> list[judge.Outcome]:
    fresh(lab)
    return [judge.judge(lab, exercise) for exercise in lab.exercises]


def report(number: str, name: str | None = None) -> tuple[str, bool]:
    """(what `make lab` prints, whether nothing that is written is wrong)."""
    lab = spec.load(number)
    if name:
        fresh(lab)
        outcomes = [judge.judge(lab, lab[name])]
        text = explain(lab, outcomes[0])
    else:
        outcomes = judge_lab(lab)
        text = standing(lab, outcomes)
    return text, not any(o.status == "wrong" for o in outcomes)


def standing(lab: spec.Lab, outcomes: list[judge.Outcome]) -> str:
    """A whole lab as `make lab` prints it: what is right, exercise by exercise, then the one thing to do next."""
    wide = max(len(exercise.name) for exercise in lab.exercises)
    points, most = (sum(o.exercise.points for o in some) for some in ([o for o in outcomes if o.status == "right"], outcomes))
    right = sum(o.status == "right" for o in outcomes)
    lines = [f"Lab {lab.number}, {lab.title}: {right} of {len(outcomes)} right, {points} of {most} points"]
    lines += [
        f"  {MARK[o.status]} {o.exercise.name:<{wide}}  "
        + {"right": "right", "empty": "not written", "wrong": f"{o.right} of {o.total} cases right"}[o.status]
        for o in outcomes
    ]
    ahead = [o for o in outcomes if o.status == "wrong"] or [o for o in outcomes if o.status == "empty"]
    solution = solution_of(f"costlib/{lab.module}.py")
    after = f"Compare with {solution}, then `make progress` for the next one." if solution else f"Hand it in: make submit LAB={lab.number}"
    last = explain(lab, ahead[0]) if ahead else f"The whole lab is right. {after}"
    return "\n".join([*lines, "", last])


def check(name: str) -> None:
    """Judge one exercise as its file stands now and print what to do next."""
    with _sentences():
        lab, exercise = spec.find(name)
        fresh(lab)
        print(explain(lab, judge.judge(lab, exercise)))


def hint(name: str, number: int = 1) -> None:
    """Print one hint; the next one is a call further."""
    with _sentences():
        print(hint_text(*spec.find(name), number))


def hint_text(lab: spec.Lab, exercise: spec.Exercise, number: int) -> str:
    hints = exercise.hints
    if not 1 <= number <= len(hints):
        raise ManifestError("RANGE", f"N = {number}; {exercise.name} has hints 1 to {len(hints)}")
    more = f"make hint LAB={lab.number} EX={exercise.name} N={number + 1}"
    after = f"Next: {more}" if number < len(hints) else f"That was the last one. Read {reading(lab, exercise)}."
    return f"Hint {number} of {len(hints)} for {exercise.name}: {hints[number - 1]}\n{after}"


@contextlib.contextmanager
def _sentences():
    """In a notebook a refusal is a sentence, not a traceback."""
    try:
        yield
    except (ManifestError, BrokenFile) as error:
        print(error)


def progress() -> str:
    """Every lab with what is written and what passes, and the one thing to do next."""
    lines, following = [], None
    for number in spec.numbers():
        lab = spec.load(number)
        try:
            outcomes = judge_lab(lab)
        except BrokenFile as error:
            lines.append(f"Lab {number}  {lab.module:<12} {error}")
            following = following or f"mend {str(error).split(',')[0].split(' ')[0]}"
            continue
        marks = "".join(MARK[o.status] for o in outcomes)
        right = sum(o.status == "right" for o in outcomes)
        lines.append(f"Lab {number}  {lab.module:<12} [{marks}]  {right} of {len(outcomes)} right")
        first = next((o for o in outcomes if o.status != "right"), None)
        if first and not following:
            verb = "write" if first.status == "empty" else "mend"
            following = f"{verb} {first.exercise.name} in {place(lab, first.exercise)}, then make lab LAB={number}"
    lines.append("  + right   x wrong   . not written")
    lines.append(f"Next: {following}" if following else "Everything is right.")
    return "\n".join(lines)


class card:
    """What one exercise asks for, as a card in a page: file, lines, minutes, folded hints."""

    def __init__(self, name: str):
        self.lab, self.exercise = spec.find(name)

    def __repr__(self):
        e = self.exercise
        return (
            f"Exercise {e.name} (lab {self.lab.number}, {file_of(self.lab, e)}): {e.lines} line(s), "
            f"about {e.minutes} min, {e.points} point(s). Check: make lab LAB={self.lab.number}"
        )

    def _repr_html_(self):
        e, lab = self.exercise, self.lab
        function = inspect.unwrap(judge.function(lab, e))
        asked = _html(inspect.getdoc(function).split("\n\n")[0])
        hints = "".join(
            f"<details><summary>Hint {i}</summary><p>{_html(text)}</p></details>"
            for i, text in enumerate(e.hints, 1)
        )
        return (
            f"<div class='exercise-card'><p><strong>Exercise: <code>{e.name}</code></strong> "
            f"in <code>{file_of(lab, e)}</code> &middot; {e.lines} line{'s' * (e.lines > 1)} &middot; "
            f"about {e.minutes} min &middot; {e.points} point{'s' * (e.points > 1)}</p><p>{asked}</p>{hints}"
            f"<p>Check it: <code>make lab LAB={lab.number}</code>, "
            f"or <code>labs.check(\"{spec.short(lab, e)}\")</code> in a cell.</p></div>"
        )


def _html(text: str) -> str:
    """Escaped, with `code` set as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


class table:
    """Rows under a head, as aligned text and as HTML; integers get thousands separators.

    Rows may be a dict. Numbered if asked, so that every row can be named.
    """

    def __init__(self, head, rows, numbered=False):
        rows = rows.items() if isinstance(rows, dict) else rows
        self.head = [*(("",) if numbered else ()), *head]
        self.rows = [
            [*((f"{i}.",) if numbered else ()), *(fixed(cell) if type(cell) is int else str(cell) for cell in row)]
            for i, row in enumerate(rows, 1)
        ]

    def __repr__(self):
        wide = [max(map(len, column)) for column in zip(self.head, *self.rows)]
        lines = [self.head, *self.rows]
        return "\n".join("  ".join(f"{c:<{w}}" for c, w in zip(line, wide)).rstrip() for line in lines)

    def _repr_html_(self):
        kind = [" class='number'" if all(map(_numeric, column)) else "" for column in zip(*self.rows)]
        head = "".join(f"<th{k}>{html.escape(cell)}</th>" for k, cell in zip(kind, self.head))
        body = "".join(
            "<tr>" + "".join(f"<td{k}>{html.escape(cell)}</td>" for k, cell in zip(kind, row)) + "</tr>"
            for row in self.rows
        )
        return f"<table class='rows'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _numeric(text: str) -> bool:
    return not text or bool(re.fullmatch(r"-?[\d,./]+( %)?", text))


class mistakes:
    """Every named mistake of an exercise, handed in and judged: what it answers and what its author is told."""

    def __init__(self, name: str):
        lab, exercise = spec.find(name)
        self.rows = []
        for wrong in exercise.wrong:
            outcome = judge.try_body(lab, exercise, wrong.model)
            case, *answers = outcome.failing[0]
            wanted, got = differing(*answers)
            self.rows.append((wrong.name, f"{name}({arguments(lab, exercise, case)})", got, wanted, outcome.diagnosis))

    def __repr__(self):
        return "\n".join(
            f"{name}\n  {call}\n  answers {got}, right is {wanted}\n  told: {told}" for name, call, got, wanted, told in self.rows
        )

    def _repr_html_(self):
        return "<dl class='mistakes'>" + "".join(
            f"<dt>{html.escape(name)}</dt><dd><code>{html.escape(call)}</code><br>answers <b>{html.escape(got)}</b>, "
            f"right is {html.escape(wanted)}<blockquote>{_html(told)}</blockquote></dd>"
            for name, call, got, wanted, told in self.rows
        ) + "</dl>"


def caught(lab: spec.Lab, failure: spec.Failure) -> str:
    """Inject one fault and return what the check says of it; "" would mean that nothing caught it."""
    if failure.check:
        with using("solutions"):
            return failure.check(True)
    exercise = lab[failure.wrong[0]]
    wrong = next(w for w in exercise.wrong if w.name == failure.wrong[1])
    outcome = judge.try_body(lab, exercise, wrong.model)
    case, *answers = outcome.failing[0]
    wanted, got = differing(*answers)
    return f"{exercise.name}({arguments(lab, exercise, case)}) gives {got}, not {wanted}" if outcome.mistake == wrong.name else ""


def failures(number: str) -> table:
    """The failure lab of a chapter: every fault injected, every check run."""
    lab, rows = spec.load(number), []
    for failure in lab.failures:
        found = caught(lab, failure)
        if not found:
            raise AssertionError(f"nothing caught: {failure.fault}")
        rows.append((failure.fault, found, failure.invariant))
    return table(("fault injected", "caught", "what must hold"), rows, numbered=True)


def gate(lines: dict[str, bool]) -> table:
    """A publish gate: every line must hold, or the page that shows it does not build."""
    for line, holds in lines.items():
        if holds is not True:
            raise AssertionError(f"the gate is shut: {line}")
    return table(("publish gate", ""), [(line, "holds") for line in lines], numbered=True)
