"""Reference answers of Lab 11. Other exercises are called through costlib, so that filled and empty holes mix."""

from collections import Counter

from costlib import faults, reconcile
from costlib.domain import ManifestError
from costlib.evidence import STATUSES


def names(expected, observed):
    declared = {tensor.name for tensor in expected}
    seen = Counter(entry.name for entry in observed)
    kept = {entry.name for entry in observed if entry.persistent}
    return {
        "missing": sorted(declared - seen.keys()),
        "unexpected": sorted(kept - declared),
        "duplicate": sorted(name for name, times in seen.items() if times > 1),
    }


def fields(expected, observed):
    declared = {tensor.name: tensor for tensor in expected}
    both = [entry for entry in observed if entry.name in declared]
    return {
        "shape": sorted({entry.name for entry in both if entry.shape != declared[entry.name].shape}),
        "kind": sorted({entry.name for entry in both if entry.kind != "parameter"}),
        "trainability": sorted({entry.name for entry in both if not entry.trainable}),
    }


def aliases(expected, observed):
    storage = {entry.name: entry.storage for entry in observed}
    both = [tensor for tensor in expected if tensor.name in storage]
    owners = {}
    for tensor in both:
        owners.setdefault(storage[tensor.name], set()).add(tensor.alias_of or tensor.name)
    return {
        "broken alias": sorted(t.name for t in both if t.alias_of in storage and storage[t.name] != storage[t.alias_of]),
        "accidental alias": sorted(t.name for t in both if len(owners[storage[t.name]]) > 1),
    }


def counter(predicted, observed, explanations=()):
    explained = sum(row.amount for row in explanations)
    if predicted is None or observed is None:
        return {"residual": None, "explained": explained, "status": "unmeasured"}
    residual = observed - predicted
    verdict = "open" if explained != residual else "explained" if residual else "exact"
    return {"residual": residual, "explained": explained, "status": verdict}


def status(parts):
    return min(parts, key=STATUSES.index, default="unmeasured")


def ranked(candidates, observed):
    return [(c.name, observed - c.value) for c in sorted(candidates, key=lambda c: abs(observed - c.value))]


def closure(case, present=True):
    try:
        return reconcile.status(faults.INJECT[case](present))
    except ManifestError:
        return "rejected"
