"""Reference answers of the sensitivity part of Lab 12. Other exercises are called through costlib."""

from fractions import Fraction

from costlib import sensitivity
from costlib.domain import require, require_divides
from costlib.estimate import estimate
from costlib.records import Record
from costlib.sensitivity import LEDGERS, PATHS


def patched(base, path, value):
    field, _, inner = path.partition(".")
    require(field in PATHS, "ENUM", f"path = {path!r}; allowed: {', '.join(PATHS)}, or a field of one after a dot")
    if inner:
        record = getattr(base, field)
        require(isinstance(record, Record), "UNDECLARED", f"{field} has no field {inner!r}")
        value = record.replace(**{inner: value})
    scenario = base.replace(**{field: value})
    require(scenario != base, "INCONSISTENT", f"{path} = {value!r} changes nothing")
    return scenario


def outputs(plan):
    ledgers = estimate(plan).ledgers
    return {name: ledgers[name].total for name in LEDGERS if name in ledgers}


def ratios(base, scenario):
    before, after = sensitivity.outputs(base), sensitivity.outputs(scenario)
    return {name: Fraction(after[name], before[name]) for name in before if name in after}


def kv_parameter_delta(arch, heads):
    require_divides(heads, arch.num_attention_heads, "heads", "num_attention_heads")
    return 2 * arch.num_layers * arch.hidden_size * arch.head_dim * (heads - arch.num_key_value_heads)


def run(base, cases):
    results = {}
    for case_id, patches in cases:
        require(len(patches) == 1, "INCONSISTENT", f"case {case_id!r} has {len(patches)} patches; one field at a time")
        results[case_id] = sensitivity.ratios(base, sensitivity.patched(base, *patches[0]))
    return results
