"""Whose answer does a call get, the learner's or the reference's? One variable decides, LAB_MODULE.

    costlib      only the learner's body; an empty one raises Unfilled and says where to go
    solutions    only the reference
    (not set)    the learner's body where it is written, else the reference, saying so once

This is the one place where costlib reaches `solutions`.
"""

import contextlib
import functools
import importlib
import inspect
import os
import re
import sys
import typing
from contextvars import ContextVar
from pathlib import Path

from costlib.domain import ManifestError, checker
from costlib.ledger import Ledger

ROOT = Path(__file__).resolve().parent.parent
MODES = ("costlib", "solutions")
_chosen = ContextVar("chosen", default=(None, None))
_said = set()


class Unfilled(NotImplementedError):
    """The body of an exercise that nobody has written yet."""


class NoSolutions(RuntimeError):
    """The reference was asked for where there is none (a class's edition)."""


def lab_module() -> str | None:
    """The value of LAB_MODULE, or None where it is not set; anything else than MODES is refused."""
    mode = os.environ.get("LAB_MODULE") or None
    if mode is not None and mode not in MODES:
        raise ManifestError("ENUM", f"LAB_MODULE={mode!r}; allowed: {', '.join(MODES)}, or not set")
    return mode


@contextlib.contextmanager
def using(mode: str, alone: str | None = None):
    """Override LAB_MODULE for a block. With `alone`, one exercise runs the learner's body and
    everything it calls is answered by the reference, so that one mistake shows in one place."""
    token = _chosen.set((mode, alone))
    try:
        yield
    finally:
        _chosen.reset(token)


def exercise(hole=None, *, unit: str | None = None, convention: str = ""):
    """Turn an empty function into an exercise whose answer is the function of the same name in the
    same-named module of `solutions`.

    Arguments are checked against the annotations before either body runs. With `unit`, the body
    returns a plain dict of named integers and the caller gets a Ledger with that unit and convention.
    """
    if hole is None:
        return functools.partial(exercise, unit=unit, convention=convention)
    name = f"{hole.__module__.rpartition('.')[2]}.{hole.__name__}"
    code, hints = unwrapped(hole).__code__, typing.get_type_hints(unwrapped(hole), include_extras=True)
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    checks = {name: checker(hints[name]) for name in parameters if name in hints}

    @functools.wraps(hole)
    def call(*args, **kwargs):
        for parameter, value in (*zip(parameters, args), *kwargs.items()):
            if parameter in checks:
                checks[parameter](parameter, value)
        rows = _answer(name, call.__wrapped__, args, kwargs)
        if unit is None:
            return rows
        if type(rows) is not dict:
            raise ManifestError("RETURN", f"{name} returns a dict of named integers, not {type(rows).__name__}")
        return Ledger(rows, unit, convention)

    call.exercise = name
    return call


def _answer(name, body, args, kwargs):
    mode, alone = _chosen.get()
    mode = mode or lab_module()
    if alone is not None:
        mode = "costlib" if name == alone else "solutions"
    if mode == "solutions":
        return reference(name)(*args, **kwargs)
    try:
        return body(*args, **kwargs)
    except Unfilled as empty:
        if empty.args:  # a hole further down, which has said its name already
            raise
        if mode == "costlib":
            raise Unfilled(where(body)) from None
    try:
        answer = reference(name)
    except NoSolutions:
        raise Unfilled(where(body)) from None
    if name not in _said:
        _said.add(name)
        print(f"note: {name} is not written yet; the reference answers (lab {lab_of(body)})", file=sys.stderr)
    return answer(*args, **kwargs)


def reference(name: str):
    """The reference body of an exercise, `params.attention_weights` for instance."""
    module, _, function = name.partition(".")
    try:
        answers = f"solutions.{module}"
        return getattr(sys.modules.get(answers) or importlib.import_module(answers), function)
    except ModuleNotFoundError as missing:
        if missing.name not in ("solutions", f"solutions.{module}"):
            raise
        raise NoSolutions(
            "this edition of the course has no solutions/ folder: unset LAB_MODULE, or set LAB_MODULE=costlib"
        ) from None


def unwrapped(hole):
    """The function itself, below decorators of its author's own."""
    while hasattr(hole, "__wrapped__"):
        hole = hole.__wrapped__
    return hole


def is_empty(call) -> bool:
    """Whether the body of an exercise is nothing but its docstring and `raise Unfilled`."""
    code = unwrapped(call).__code__
    return code.co_names == ("Unfilled",) and code.co_nlocals == code.co_argcount + code.co_kwonlyargcount


def lab_of(hole) -> str:
    """The number of the lab that an exercise belongs to, as its module declares it."""
    return unwrapped(hole).__globals__["LAB"]


def source_of(hole) -> tuple[str, str, str]:
    """(document, chapter, section label) from the `Source:` line of a docstring: ("M", "0x02", "0x02B")."""
    return re.search(r"Source: (W|M) (\w+), (\S+?)\.?$", inspect.getdoc(hole), re.M).groups()


def reading(hole) -> str:
    """The page and section that derive an exercise, or the lab's page while there is no such chapter."""
    document, chapter, label = source_of(hole)
    folder = ROOT / "chapters" / {"W": "warmup", "M": "ledger"}[document]
    pages = sorted(folder.glob(f"{chapter.removeprefix('0x').lower():0>2}_*.md"))
    if pages:
        return f"{pages[0].relative_to(ROOT).as_posix()}, section {label}"
    return f"labs/{next((ROOT / 'labs').glob(f'lab{lab_of(hole)}_*.md')).name}"


def where(hole) -> str:
    """What to read, what to write and what to run: the text of Unfilled."""
    code = unwrapped(hole).__code__
    file, line = Path(code.co_filename), code.co_firstlineno
    return (
        f"{hole.__name__} is not written yet\n"
        f"  write  {file.relative_to(ROOT) if file.is_relative_to(ROOT) else file}:{line}\n"
        f"  read   {reading(hole)}\n"
        f"  check  make lab LAB={lab_of(hole)}"
    )
