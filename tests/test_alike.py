"""Code is compared up to its names, comments and layout, and no further."""

from pathlib import Path

import pytest

from costlib.exercise import ROOT
from labs import alike, holes, spec

PLAIN = b"def f(a, b):\n    c = a * b\n    return c + 1\n"
SAME = {
    "other names": b"def g(left, right):\n    found = left * right\n    return found + 1\n",
    "a docstring": b'def f(a, b):\n    """What it is."""\n    c = a * b\n    return c + 1\n',
    "annotations": b"def f(a: int, b: int) -> int:\n    c = a * b\n    return c + 1\n",
    "layout": b"def f(a, b):\n\n    c = (a *\n         b)  # why\n    return c + 1",
}
OTHER = {
    "another constant": PLAIN.replace(b"1", b"2"), "another order": PLAIN.replace(b"a * b", b"b * a"),
    "a function called": PLAIN.replace(b"a * b", b"max(a, b)"), "an attribute": PLAIN.replace(b"a * b", b"a.b(b)"),
    "another attribute": PLAIN.replace(b"a * b", b"a.c(b)"),
    "a name used twice": PLAIN.replace(b"a * b", b"a * a"), "one statement": b"def f(a, b):\n    return a * b + 1\n",
}  # fmt: skip


def code(text):
    return alike.compared({"napkin.py": text}, ("napkin",))[0]


@pytest.mark.parametrize("kind", SAME)
def test_what_does_not_change_the_code(kind):
    assert code(SAME[kind]) == code(PLAIN)


@pytest.mark.parametrize("kind", OTHER)
def test_what_does(kind):
    assert code(OTHER[kind]) not in [code(text) for other, text in OTHER.items() if other != kind] + [code(PLAIN)]


@pytest.mark.parametrize("number", spec.numbers())
def test_the_reference_is_known_by_every_longer_answer_and_the_starter_by_none(number):
    lab = spec.load(number)
    starter = {f"{m}.py": (ROOT / f"costlib/{m}.py").read_text() for m in lab.modules}
    empty = {name: holes.empty(text) for name, text in starter.items()}
    right = {name: holes.filled(text, Path(ROOT / "solutions" / name).read_text(), name[:-3]).replace(f"{name[:-3]}.", "").encode()
             for name, text in empty.items()}  # fmt: skip
    _, names, longer = alike.compared(right, lab.modules)
    assert len(names) == longer > 0
    assert alike.compared({name: text.encode() for name, text in empty.items()}, lab.modules)[1:] == ([], longer)


def test_code_nested_too_deeply_to_compare_is_no_ones():
    deep = b"x = " + b"(" * 150 + b"1" + b" + 1)" * 150 + b"\ny = " + b"+".join([b"1"] * 20_000)
    assert alike.compared({"napkin.py": deep}, ("napkin",))[:2] == ("", [])
