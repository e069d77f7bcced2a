"""Which values are allowed? One named error, and domains that stand in annotations.

`def matmul_flops(m: Count, k: Count, n: Count)` both documents and enforces: exercises and records
check their arguments against these annotations before anything is counted.
"""

import functools
import reprlib
import types
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal, Union, get_args, get_origin

CODES = {
    "TYPE": "a value of the wrong type, a float where a count is expected among them",
    "NEG": "a negative number where zero is the least",
    "NONPOS": "zero or less where one is the least",
    "RANGE": "a number outside its interval",
    "ENUM": "a name that is not on the list",
    "DIVIS": "heads or shards that do not divide",
    "MISSING": "a field that must be declared and is not",
    "UNDECLARED": "a field or tensor that nothing declares",
    "INCONSISTENT": "fields that contradict each other",
    "JSON": "text that is no JSON",
    "RETURN": "an exercise that gave back something other than named integers",
}


class ManifestError(ValueError):
    """Bad input, refused before anything is counted. `code` is one of CODES, `detail` a sentence."""

    def __init__(self, code: str, detail: str):
        if code not in CODES:
            raise LookupError(f"unknown code {code!r}; allowed: {', '.join(CODES)}")
        super().__init__(f"{code}: {detail}")
        self.code, self.detail = code, detail


def require(condition: bool, code: str, detail: str) -> None:
    """Raise ManifestError(code, detail) unless the condition holds (never `assert`: -O removes it)."""
    if not condition:
        raise ManifestError(code, detail)


def require_divides(part: int, whole: int, part_name: str, whole_name: str) -> None:
    """Refuse with DIVIS unless `part` divides `whole`: 8 K/V heads divide 32 query heads, 7 do not."""
    require(
        whole % part == 0,
        "DIVIS",
        f"{whole_name} = {whole} is not a multiple of {part_name} = {part}",
    )


@dataclass(frozen=True)
class Interval:
    """low <= x (or low < x) <= high, refused with the code that fits."""

    low: int
    high: int | None = None
    open_low: bool = False

    def __call__(self, name, value):
        if value < self.low or (self.open_low and value == self.low):
            code = "RANGE" if self.high is not None else "NEG" if not (self.low or self.open_low) else "NONPOS"
        elif self.high is not None and value > self.high:
            code = "RANGE"
        else:
            return
        raise ManifestError(code, f"{name} = {value}; allowed: {self}")

    def __str__(self):
        low = f"more than {self.low}" if self.open_low else f"{self.low} or more"
        return low if self.high is None else f"{low}, at most {self.high}"


Count = Annotated[int, Interval(0)]
Size = Annotated[int, Interval(1)]
Stage = Annotated[int, Interval(0, 3)]  # of ZeRO
Amount = Annotated[Fraction, Interval(0)]
Positive = Annotated[Fraction, Interval(0, open_low=True)]
Share = Annotated[Fraction, Interval(0, 1, open_low=True)]
Part = Annotated[Fraction, Interval(0, 1)]
AttentionArea = Literal["rectangular", "causal-legal", "kaplan"]  # which query-key pairs are charged

_INSTEAD = {
    (int, float): "a count is an int, and floats lose integers above 2**53: write 70 * 10**9, not 70e9",
    (int, bool): "a count is an int, not True or False",
    (Fraction, float): "write it as a Fraction, Fraction(2, 5) for 0.4",
}


def _exact(name, value, kind):
    if type(value) is kind or (kind is Fraction and type(value) is int):
        return
    why = _INSTEAD.get((kind, type(value)), f"expected {kind.__name__}")
    raise ManifestError("TYPE", f"{name} = {reprlib.repr(value)} is of type {type(value).__name__}; {why}")


@functools.lru_cache(maxsize=None)
def checker(hint):
    """A function (name, value) that raises ManifestError where the value is outside the annotation."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        kind, rule = inner

        def check(name, value):
            _exact(name, value, kind)
            rule(name, value)

    elif origin is Literal:

        def check(name, value):
            if type(value) is not str or value not in inner:
                raise ManifestError("ENUM", f"{name} = {reprlib.repr(value)}; allowed: {', '.join(inner)}")

    elif origin in (Union, types.UnionType):
        some = checker(next(part for part in inner if part is not types.NoneType))

        def check(name, value):
            if value is not None:
                some(name, value)

    elif origin is tuple:
        item = checker(inner[0])

        def check(name, value):
            _exact(name, value, tuple)
            for i, part in enumerate(value):
                item(f"{name}[{i}]", part)

    elif isinstance(hint, type):

        def check(name, value):
            if not isinstance(value, hint) or (type(value) is bool and hint is int):
                _exact(name, value, hint)

    else:
        raise LookupError(f"no domain for the annotation {hint!r}")
    return check
