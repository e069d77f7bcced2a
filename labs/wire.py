"""How does a value cross between judge and worker? As one JSON line, by exact type; nothing is executed.

Types that are not listed cross as ["other", its name]: a subclass of int is not an int, whatever it says
of itself. What arrives is built anew from the judge's own classes, so a reply can carry a value and nothing else.
"""

import importlib
import json
from dataclasses import dataclass
from fractions import Fraction

from costlib.ledger import Ledger
from costlib.records import Record

MOST_NAME = 200  # characters of a ledger's row
MOST_BITS, MOST_DEPTH = 14_284, 50  # an int of 4,300 digits is as long as Python reads
RECORDS = ("records", "policies", "evidence", "estimate", "hardware")  # modules of costlib whose records may cross


@dataclass(frozen=True)
class Other:
    """A value of a type that does not cross: only its name does."""

    name: str


def _record(name: str):
    """The record class of a name such as hardware.Chip; None if there is no such record."""
    module, _, cls = name.partition(".")
    found = getattr(importlib.import_module(f"costlib.{module}"), cls, None) if module in RECORDS else None
    return found if isinstance(found, type) and issubclass(found, Record) else None


def encode(value, depth: int = 0):
    """The JSON form of a value: a list of a tag and what it holds."""
    kind = type(value)
    if depth > MOST_DEPTH:
        return ["other", "a value nested too deeply"]
    if value is None:
        return ["none"]
    if kind is bool or kind is str:
        return [kind.__name__, value]
    if kind is int:
        return ["int", value] if value.bit_length() < MOST_BITS else ["other", "an int of too many digits"]
    if kind is float:
        return ["float", value.hex()]
    if kind is Fraction:
        return ["fraction", encode(value.numerator), encode(value.denominator)]
    if kind is tuple or kind is list:
        return [kind.__name__, [encode(part, depth + 1) for part in value]]
    if kind is Ledger:
        return ["ledger", [[encode(name), encode(part)] for name, part in value.items()], value.unit, value.convention]
    if kind is dict:
        return ["dict", [[encode(name, depth + 1), encode(part, depth + 1)] for name, part in value.items()]]
    name = f"{kind.__module__.removeprefix('costlib.')}.{kind.__name__}"
    if isinstance(value, Record) and _record(name) is kind:
        return ["record", name, value.to_json()]
    return ["other", kind.__name__[:80]]


def decode(data, depth: int = 0):
    """The value that `encode` was given; anything malformed raises ValueError."""
    if depth > MOST_DEPTH or type(data) is not list or not data or type(data[0]) is not str:
        raise ValueError("not an encoded value")
    tag, *parts = data
    if tag == "none" and not parts:
        return None
    if tag in ("bool", "str", "int") and len(parts) == 1 and type(parts[0]).__name__ == tag:
        return parts[0]
    if tag == "float" and len(parts) == 1 and type(parts[0]) is str:
        return float.fromhex(parts[0])
    if tag == "fraction" and len(parts) == 2:
        top, bottom = (decode(part, depth + 1) for part in parts)
        if type(top) is int and type(bottom) is int and bottom > 0:
            return Fraction(top, bottom)
    if tag in ("tuple", "list") and len(parts) == 1 and type(parts[0]) is list:
        return {"tuple": tuple, "list": list}[tag](decode(part, depth + 1) for part in parts[0])
    if tag == "dict" and len(parts) == 1:
        return dict(_pairs(parts[0], depth))
    if tag == "ledger" and len(parts) == 3 and type(parts[1]) is type(parts[2]) is str:
        rows = dict(_pairs(parts[0], depth))
        if all(type(name) is str and len(name) <= MOST_NAME for name in rows):
            return Ledger(rows, parts[1], parts[2])
    if tag == "record" and len(parts) == 2 and type(parts[0]) is str and (cls := _record(parts[0])):
        return cls.from_json(parts[1])
    if tag == "other" and len(parts) == 1 and type(parts[0]) is str:
        return Other(parts[0][:80])
    raise ValueError("not an encoded value")


def _pairs(data, depth):
    if type(data) is not list or any(type(pair) is not list or len(pair) != 2 for pair in data):
        raise ValueError("not an encoded value")
    for name, part in data:
        key = decode(name, depth + 1)
        if type(key) not in (str, int, tuple):
            raise ValueError("not an encoded key")
        yield key, decode(part, depth + 1)


def line(message: dict) -> bytes:
    """One message as one line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def message(text: bytes) -> dict:
    """The message that a line holds; anything else raises ValueError."""
    try:
        found = json.loads(text.decode(), parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if type(found) is not dict:
        raise ValueError("not a message")
    return found


def _no_constant(name):
    raise ValueError(f"{name} is no JSON")
