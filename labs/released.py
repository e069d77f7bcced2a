"""What does a student edition know of a lab? Its public cases, and what each named mistake answers to them, as data.

labs/released/labNN.json is made by labs/release.py from the lab's specification. It holds no function, neither the
reference nor a mistake's: only values, at the public cases.
"""

import json
from pathlib import Path

from labs import spec, wire

FOLDER = Path(__file__).parent / "released"


def lab(number: str) -> spec.Lab:
    """The lab as its specification has it, without a reference and without shapes to draw further cases from."""
    data = json.loads((FOLDER / f"lab{number}.json").read_text(encoding="utf-8"))
    return spec.Lab(data["lab"], data["title"], data["module"], tuple(map(_exercise, data["exercises"])))


def _exercise(data: dict) -> spec.Exercise:
    keys = [json.dumps([case["args"], case["kwargs"]], sort_keys=True) for case in data["cases"]]
    return spec.Exercise(
        **{name: data[name] for name in ("name", "points", "minutes", "lines", "module")},
        hints=tuple(data["hints"]),
        cases=tuple(map(_case, data["cases"])),
        wrong=tuple(
            spec.Wrong(wrong["name"], _answers(dict(zip(keys, wrong["answers"], strict=True))), wrong["text"])
            for wrong in data["wrong"]
        ),
        shapes={},
    )


def _case(data: dict) -> spec.Case:
    case = spec.given(*map(wire.decode, data["args"]), **{name: wire.decode(value) for name, value in data["kwargs"].items()})
    return case.refuses(data["refused"]) if "refused" in data else case.gives(wire.decode(data["gives"]))


def _answers(table: dict):
    """A mistake's model as its answers, by the case's arguments; KeyError where it has none that is wrong."""

    def model(*args, **kwargs):
        given = [[*map(wire.encode, args)], {name: wire.encode(value) for name, value in kwargs.items()}]
        answer = table[json.dumps(given, sort_keys=True)]
        if answer is None:
            raise KeyError("no wrong answer here")
        return wire.decode(answer)

    return model
