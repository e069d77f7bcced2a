"""What have others printed? Dated figures of runs, fits, laws and chips, each with its source.

None is computed here, and none is a fact about your cluster. `verified` says whether a published page
was found that states it; `cite` is a key of chapters/references.bib.
"""

import functools
import json
from fractions import Fraction

from costlib import data
from costlib.domain import ManifestError
from costlib.units import short


@functools.cache
def figures() -> dict[str, dict]:
    """Every published figure by name, as data/published.json has it."""
    return {row["name"]: row for row in json.loads(data.read("published.json"))}


def figure(name: str) -> dict:
    """One figure with its unit, statement, source and date; an unknown name is refused (ENUM)."""
    if name not in figures():
        raise ManifestError("ENUM", f"published figure = {name!r}; there are {', '.join(figures())}")
    return figures()[name]


def value(name: str) -> int | Fraction:
    """Its exact value: an int where it is whole, else a Fraction. `value("gpt3-params")` is 175 * 10**9."""
    exact = Fraction(figure(name)["value"])
    return exact.numerator if exact.denominator == 1 else exact


def rows(*names: str) -> list[tuple[str, str, str, str, str]]:
    """(what, value, unit, as of, verified or UNVERIFIED) of the named figures, for a page's table."""
    return [
        (f["statement"], _shown(f), f["unit"], f["as_of"], "verified" if f["verified"] else "UNVERIFIED")
        for f in map(figure, names)
    ]


def _shown(f):
    """175e9 as 175B; small numbers and budgets of FLOPs as written."""
    number = Fraction(f["value"])
    if not 10**6 <= number < 10**15:
        return f["value"]
    text = short(number, 2)
    return text[:-1].rstrip("0").rstrip(".") + text[-1]
