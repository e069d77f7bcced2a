"""Reference answers of Lab 04. Other exercises are called through costlib, so that filled and empty holes mix."""

from collections import Counter
from fractions import Fraction

from costlib import state
from costlib.domain import require
from costlib.policies import BITS, POINTS
from costlib.units import ceil_div


def bytes_of_weights(params, dtype):
    return ceil_div(params * BITS[dtype], 8)


def spacing(mantissa_bits, exponent=0):
    return Fraction(2) ** (exponent - mantissa_bits)


def rounded_update(weight, update, mantissa_bits):
    exact = Fraction(weight + update)
    step = state.spacing(mantissa_bits, state.exponent_of(exact))
    return round(exact / step) * step


def optimizer_slots(name, params):
    adam = ("m", "v")
    slots = {"sgd": (), "momentum": ("momentum",), "adam": adam, "adamw": adam, "amsgrad": (*adam, "v_max")}
    return {slot: params for slot in slots[name]}


def ledger(policy, loaded, trained):
    require(trained <= loaded, "INCONSISTENT", f"trained = {trained} exceeds loaded = {loaded}")
    scalars = {"loaded": loaded, "trained": trained}
    return {row.role: row.copies * state.bytes_of_weights(scalars[row.counts], row.dtype) for row in policy.rows}


def alive(policy, point):
    at = (*POINTS, "never").index
    return tuple(row.role for row in policy.rows if at(row.created) <= at(point) < at(row.released))


def resident(policy, loaded, trained, point, placement="device"):
    rows = state.ledger(policy, loaded, trained)
    here = [row.role for row in policy.rows if row.placement == placement]
    return {role: rows[role] for role in state.alive(policy, point) if role in here}


def adafactor_state(rows, columns, momentum=False):
    return rows + columns + (rows * columns if momentum else 0)


def eight_bit_adam(trained, block, exceptions=0):
    require(exceptions <= trained, "INCONSISTENT", f"exceptions = {exceptions} exceed trained = {trained}")
    coded = trained - exceptions
    return {"codes": 2 * coded, "scales": 2 * 4 * ceil_div(coded, block), "exceptions": 2 * 4 * exceptions}


def checkpoint(policy, loaded, trained, control=0):
    rows = state.ledger(policy, loaded, trained)
    saved = {row.role: rows[row.role] for row in policy.rows if row.owner in ("model", "optimizer")}
    return {**saved, "control": control}


def reconcile(expected, observed):
    declared, seen = Counter(expected), Counter(observed)
    return {
        "missing": tuple(sorted((declared - seen).elements())),
        "unexpected": tuple(sorted((seen - declared).elements())),
    }
