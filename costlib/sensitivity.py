"""Which number moves when exactly one declared field changes? (M 0x0C)

A scenario is the base plan with one field replaced, estimated anew; the answer is a ratio of exact
integers, a Fraction. Nothing is scaled by hand and the base keeps its hash.
"""

import json

from costlib import data
from costlib.domain import ManifestError, Size
from costlib.estimate import Plan
from costlib.exercise import Unfilled, exercise
from costlib.policies import Ownership
from costlib.records import ArchitectureManifest, Workload

LAB = "12"
LEDGERS = ("parameters", "weight payload", "forward", "cache payload", "attention transfer", "weight payload per rank")
PATHS = ("architecture", "workload", "ownership", "weight_dtype", "activation_dtype", "cache_dtype")
_RECORDS = {"architecture": ArchitectureManifest, "workload": Workload, "ownership": Ownership}


@exercise
def patched(base: Plan, path: str, value: object) -> Plan:
    """The base with one field replaced: `cache_dtype`, or `architecture.num_key_value_heads`.

    A path is a name in PATHS, or one of its record fields after a dot. The result is validated like
    any plan; the base is not changed. Refused: a path outside PATHS (ENUM), a field that the record
    has not (UNDECLARED), a value that changes nothing (INCONSISTENT), and whatever the record refuses.
    Unit: a Plan.
    Source: M 0x0C, 0x0CB.
    """
    raise Unfilled


@exercise
def outputs(plan: Plan) -> dict:
    """{name: total} of the LEDGERS that the plan's estimate has. Units: scalars, B, FLOP.

    Source: M 0x0C, 0x0CA.
    """
    raise Unfilled


@exercise
def ratios(base: Plan, scenario: Plan) -> dict:
    """{name: Fraction} of the scenario's output over the base's, for every ledger both have. Unit: a ratio.

    Source: M 0x0C, 0x0CC.
    """
    raise Unfilled


@exercise
def kv_parameter_delta(arch: ArchitectureManifest, heads: Size) -> int:
    """Scalars that the stack gains (or loses) when num_key_value_heads becomes `heads`.

    Only k and v change: d * d_h each per head and layer. Biases and qk-norms left out. Unit: scalars.
    Refused: a number of heads that does not divide num_attention_heads (DIVIS).
    Source: M 0x0C, 0x0CD.
    """
    raise Unfilled


@exercise
def run(base: Plan, cases: tuple) -> dict:
    """{case id: ratios} of ((id, ((path, value),)), ...): every case has exactly one patch.

    Refused: a case with none or with several (INCONSISTENT). The base's SHA-256 is the same
    afterwards. Unit: ratios.
    Source: M 0x0C, 0x0CC.
    """
    raise Unfilled


def read_cases(text: str) -> tuple:
    """Cases for `run` from JSON: {"cases": [{"case_id", "patches": [[path, value]]}]}; an object given
    for a whole record becomes that record."""
    try:
        cases = json.loads(text)["cases"]
        return tuple(
            (case["case_id"], tuple((path, _value(path, value)) for path, value in case["patches"])) for case in cases
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, ManifestError):
            raise
        raise ManifestError("JSON", f"cases: {type(error).__name__} {error}; see costlib/data/cases.json") from None


def _value(path, value):
    return _RECORDS[path].from_json(json.dumps(value)) if path in _RECORDS and isinstance(value, dict) else value


def nine_cases() -> tuple:
    """The nine single changes of M 0x0CC."""
    return read_cases(data.read("cases.json"))
