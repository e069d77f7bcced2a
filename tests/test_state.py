"""M 0x03 against machines that hold the bytes: packed codes, rounded formats, running optimizers, a timeline."""

import struct
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costlib import params, state
from costlib.domain import ManifestError
from costlib.exercise import using
from costlib.fixtures import A16, AUTOCAST, MASTER, MASTERLESS, POLICIES, RUNNING, TOY, TOY_TIED, W_7B, W_70B
from costlib.policies import BITS, POINTS, StateObject, StatePolicy, StateRow
from costlib.schema import tensor_rows
from labs import spec

P = 8_030_261_248


@pytest.fixture(autouse=True)
def on_the_reference():
    with using("solutions"):
        yield


def mistaken(exercise, wrong, *args, **kwargs):
    """What a named mistake of the lab answers."""
    found = spec.load("03" if exercise == "vocabulary" else "04")[exercise]
    return next(w for w in found.wrong if w.name == wrong).model(*args, **kwargs)


def refused(code, call, *args, **kwargs):
    with pytest.raises(ManifestError) as refusal:
        call(*args, **kwargs)
    assert refusal.value.code == code


# Stored numbers


def packed(codes):
    """Four-bit codes, two to a byte."""
    store = bytearray()
    for i, code in enumerate(codes):
        if i % 2:
            store[-1] |= code << 4
        else:
            store.append(code)
    return store


@pytest.mark.parametrize("scalars", range(9))
def test_bytes_are_those_of_the_packed_numbers(scalars):
    assert state.bytes_of_weights(scalars, "int4") == len(packed([7] * scalars))
    for dtype, code in (("fp32", "f"), ("fp16", "e"), ("bf16", "H"), ("int8", "b"), ("fp8", "B")):
        assert state.bytes_of_weights(scalars, dtype) == struct.calcsize(f"<{scalars}{code}")


def bfloat16(value):
    """The nearest bf16 of a float32, from its bits: half to even on the upper sixteen."""
    bits = int(np.float32(value).view(np.uint32))
    upper, lower = bits >> 16, bits & 0xFFFF
    upper += lower > 0x8000 or (lower == 0x8000 and upper & 1)
    return float(np.uint32(upper << 16).view(np.float32))


@given(st.integers(-(2**21), 2**21), st.integers(-(2**21), 2**21))
@settings(deadline=None)
def test_rounding_is_what_the_formats_do(weight, change):
    scale = 2**12  # their sum is exact in fp32 and in fp16's normal range
    weight, change = Fraction(weight, scale), Fraction(change, scale)
    exact = weight + change
    with using("solutions"):
        assert state.rounded_update(weight, change, 7) == Fraction(bfloat16(float(exact)))
        assert state.rounded_update(weight, change, 23) == exact
        assert state.rounded_update(weight, change, 10) == Fraction(float(np.float16(float(exact))))


@given(st.fractions(-40, 40, max_denominator=997), st.integers(0, 6))
@settings(deadline=None)
def test_the_result_is_the_nearest_value_and_the_even_one_of_two(exact, bits):
    with using("solutions"):
        got = state.rounded_update(Fraction(0), exact, bits)
    values = {
        sign * Fraction(k) * Fraction(2) ** (e - bits): k
        for sign, e, k in product((1, -1), range(-11, 7), range(2**bits, 2 ** (bits + 1)))
    } | {Fraction(0): 0}
    best = min(abs(value - exact) for value in values)
    nearest = [value for value in values if abs(value - exact) == best]
    assert got in nearest
    if len(nearest) == 2:
        # A power of two has a significand of 2**bits, even from one bit on.
        assert bits == 0 or values[got] % 2 == 0


@given(st.fractions(max_denominator=10**9).filter(bool))
def test_the_exponent_brackets_the_value(value):
    e = state.exponent_of(value)
    assert Fraction(2) ** e <= abs(value) < Fraction(2) ** (e + 1)


@pytest.mark.parametrize("bits, kind", [(10, np.float16), (23, np.float32), (52, np.float64)])
@pytest.mark.parametrize("exponent", [-5, 0, 1, 7])
def test_spacing_is_the_distance_to_the_next_number(bits, kind, exponent):
    assert state.spacing(bits, exponent) == Fraction(float(np.spacing(kind(2.0**exponent))))


def test_a_counter_in_bf16_stops_at_256():
    weight = Fraction(0)
    for _ in range(1000):
        weight = state.rounded_update(weight, Fraction(1), 7)
    assert weight == 256


def test_a_master_copy_saves_updates_that_the_working_copy_loses():
    direct = master = Fraction(1)
    for _ in range(100):
        direct = state.rounded_update(direct, Fraction(1, 10**4), 7)
        master = state.rounded_update(master, Fraction(1, 10**4), 23)
    assert direct == 1 and state.rounded_update(master, Fraction(0), 7) == Fraction(129, 128)


# Optimizers that run: what they read from one step to the next is what they keep


def sgd(w, g, kept, t):
    return w - 0.1 * g


def momentum(w, g, kept, t):
    kept["momentum"] = 0.9 * kept.get("momentum", 0) + g
    return w - 0.1 * kept["momentum"]


def adam(w, g, kept, t, decay=0.0, maximum=False):
    kept["m"] = 0.9 * kept.get("m", 0) + 0.1 * g
    kept["v"] = 0.99 * kept.get("v", 0) + 0.01 * g * g
    second = kept["v"] / (1 - 0.99**t)
    if maximum:
        second = kept["v_max"] = max(kept.get("v_max", 0), second)
    return w - 0.1 * (kept["m"] / (1 - 0.9**t) / (second**0.5 + 1e-8) + decay * w)


OPTIMIZERS = {
    "sgd": sgd,
    "momentum": momentum,
    "adam": adam,
    "adamw": lambda *args: adam(*args, decay=0.1),
    "amsgrad": lambda *args: adam(*args, maximum=True),
}


def run(rule, scalars, forget=None):
    kept, weights = [{} for _ in range(scalars)], [1.0 + i for i in range(scalars)]
    for t, scale in enumerate((5.0, 0.1, 9.0, 0.3), 1):
        weights = [rule(w, scale * (i + 1), kept[i], t) for i, w in enumerate(weights)]
        if forget:
            [slots.pop(forget, None) for slots in kept]
    return weights, kept


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_slots_are_what_a_running_optimizer_keeps_and_needs(name):
    weights, kept = run(OPTIMIZERS[name], 5)
    counted = {}
    for slots in kept:
        for slot in slots:
            counted[slot] = counted.get(slot, 0) + 1
    assert dict(state.optimizer_slots(name, 5)) == counted
    for slot in counted:
        assert run(OPTIMIZERS[name], 5, forget=slot)[0] != weights


@pytest.mark.parametrize("r, c", [(3, 5), (5, 3), (1, 7), (4, 4)])
@pytest.mark.parametrize("first", [False, True])
def test_adafactor_keeps_row_and_column_sums(r, c, first):
    squares = [[(1 + i + j) ** 2 for j in range(c)] for i in range(r)]
    kept = [sum(row) for row in squares] + [sum(column) for column in zip(*squares)]
    kept += [x for row in squares for x in row] if first else []
    assert state.adafactor_state(r, c, first) == len(kept)


@pytest.mark.parametrize("trained, block, exceptions", [(0, 4, 0), (10, 4, 0), (11, 4, 3), (8, 4, 0), (5, 1, 5), (9, 100, 2)])
def test_eight_bit_moments_are_stored_block_by_block(trained, block, exceptions):
    codes, scales, plain = bytearray(), bytearray(), bytearray()
    for _ in "mv":
        values = [float(i) for i in range(trained)]
        coded, rest = values[exceptions:], values[:exceptions]
        plain += struct.pack(f"<{len(rest)}f", *rest)
        while coded:
            chunk, coded = coded[:block], coded[block:]
            scales += struct.pack("<f", max(chunk))
            codes += bytes(len(chunk))
    assert dict(state.eight_bit_adam(trained, block, exceptions)) == {
        "codes": len(codes),
        "scales": len(scales),
        "exceptions": len(plain),
    }


@given(st.integers(0, 10**12), st.integers(1, 5000), st.integers(0, 10**6))
def test_eight_bit_adam_is_never_two_bytes_only(trained, block, exceptions):
    exceptions = min(exceptions, trained)
    with using("solutions"):
        total = state.eight_bit_adam(trained, block, exceptions).total
    assert total > 2 * trained or trained == 0


# The ledger and its points


@st.composite
def policies(draw):
    """Policies with any rows at all, in whole bytes."""
    rows = []
    for i in range(draw(st.integers(1, 6))):
        created = draw(st.integers(0, 2))
        rows.append(
            StateRow(
                role=f"role-{i}",
                counts=draw(st.sampled_from(["loaded", "trained"])),
                dtype=draw(st.sampled_from(["fp32", "bf16", "fp8", "int8"])),
                copies=draw(st.integers(1, 3)),
                placement=draw(st.sampled_from(["device", "host", "disk"])),
                created=POINTS[created],
                released=draw(st.sampled_from([p for p in ("step", "zero-grad", "never") if p != POINTS[created] and not (p == "step" and created == 2)])),
                owner=draw(st.sampled_from(["model", "autograd", "optimizer", "runtime"])),
            )
        )
    return StatePolicy(policy_id="drawn", rows=tuple(rows))


def timeline(policy):
    """Play the first step event by event: what is in memory just after each point."""
    memory, snapshots = [], {}
    for point in POINTS:
        memory += [row.role for row in policy.rows if row.created == point]
        for row in policy.rows:
            if row.released == point:
                memory.remove(row.role)
        snapshots[point] = set(memory)
    return snapshots


@given(policies())
def test_alive_is_what_playing_the_step_leaves(policy):
    snapshots = timeline(policy)
    for point in POINTS:
        with using("solutions"):
            got = state.alive(policy, point)
        assert set(got) == snapshots[point] and list(got) == [r.role for r in policy.rows if r.role in got]


TENSORS = tensor_rows(TOY_TIED)
FROZEN = ("model.layers.0", "model.embed_tokens")
LOADED = 1_128
TRAINED = 1_128 - 496 - 128  # one block and the table, which is also the head


@given(policies())
@settings(deadline=None)
def test_the_ledger_is_the_sum_of_allocated_tensors_and_places_and_points_divide_it(policy):
    with using("solutions"):
        for point in POINTS:
            objects = state.state_objects(policy, TENSORS, point, FROZEN)
            for place in ("device", "host", "disk"):
                held = sum(len(bytearray(o.bytes)) for o in objects if o.device == place)
                assert state.resident(policy, LOADED, TRAINED, point, place).total == held
        whole = state.ledger(policy, LOADED, TRAINED)
        ever = {role for point in POINTS for role in state.alive(policy, point)}
        assert whole.total == sum(whole[role] for role in ever)


@given(policies(), st.integers(0, 10**12), st.integers(0, 10**12), st.integers(2, 9))
def test_bytes_are_linear_in_scalars_and_freezing_takes_nothing_off_the_weights(policy, loaded, trained, times):
    loaded, trained = max(loaded, trained), min(loaded, trained)
    with using("solutions"):
        one, many = state.ledger(policy, loaded, trained), state.ledger(policy, times * loaded, times * trained)
        frozen = state.ledger(policy, loaded, 0)
    assert dict(many) == dict(times * one)
    assert dict(frozen) == {row.role: one[row.role] if row.counts == "loaded" else 0 for row in policy.rows}


@given(policies())
def test_a_checkpoint_has_no_gradients_and_misses_no_place(policy):
    with using("solutions"):
        rows, saved = state.ledger(policy, 700, 300), state.checkpoint(policy, 700, 300, 41)
    left_out = [row.role for row in policy.rows if row.role not in saved]
    assert {row.owner for row in policy.rows if row.role in left_out} <= {"autograd", "runtime"}
    assert saved.total == rows.total - sum(rows[role] for role in left_out) + 41


def test_six_policies_on_the_toy_and_the_running_model():
    assert params.ledger(RUNNING).total == P and params.ledger(TOY_TIED).total == LOADED
    assert [state.ledger(p, P, P).total for p in POLICIES.values()] == [
        16_060_522_496,
        32_121_044_992,
        96_363_134_976,
        128_484_179_968,
        128_484_179_968,
        160_605_224_960,
    ]
    assert state.ledger(A16, LOADED, LOADED).total == 22_560
    groups = state.ledger(A16, P, P).rolled()
    assert dict(groups) == {"weights": 2 * P, "gradients": 6 * P, "optimizer": 12 * P}


def test_sixteen_and_twenty_differ_by_one_gradient_copy():
    sixteen, twenty = (state.ledger(p, P, P) for p in (MASTER, A16))
    assert twenty.total - sixteen.total == twenty["gradients.update"] == 4 * P


# Comparing objects


OBJECTS = [
    StateObject(role=role, tensor=tensor, shape=shape, dtype=dtype, device=device, bytes=15 * BITS[dtype] // 8)
    for role, tensor, shape, dtype, device in product(
        ("weights", "optimizer.m"), "ab", ((3, 5), (5, 3)), ("bf16", "fp32"), ("device", "host")
    )
]
several = st.lists(st.sampled_from(OBJECTS), max_size=6)


@given(several, several)
def test_reconcile_is_what_crossing_off_one_by_one_leaves(expected, observed):
    missing, unexpected = list(expected), []
    for row in observed:
        if row in missing:
            missing.remove(row)
        else:
            unexpected.append(row)
    with using("solutions"):
        found = state.reconcile(tuple(expected), tuple(observed))
    assert found == {"missing": tuple(sorted(missing)), "unexpected": tuple(sorted(unexpected))}


@given(st.permutations(OBJECTS[:6]))
def test_order_does_not_matter(shuffled):
    with using("solutions"):
        assert state.reconcile(tuple(OBJECTS[:6]), tuple(shuffled)) == {"missing": (), "unexpected": ()}


@pytest.mark.parametrize(
    "change", [{"role": "x"}, {"tensor": "x"}, {"shape": (15,)}, {"dtype": "fp16"}, {"device": "disk"}, {"bytes": 31}]
)
def test_a_difference_in_any_field_stays_open(change):
    one, other = OBJECTS[0], OBJECTS[0].replace(**change)
    assert state.reconcile((one,), (other,)) == {"missing": (one,), "unexpected": (other,)}


def test_two_lost_bf16_objects_do_not_cancel_one_fp32_object():
    gradients = [
        StateObject(role="gradients", tensor=t, shape=(3, 5), dtype="bf16", device="device", bytes=30) for t in "ab"
    ]
    moment = StateObject(role="optimizer.m", tensor="a", shape=(3, 5), dtype="fp32", device="device", bytes=60)
    found = state.reconcile(tuple(gradients), (moment,))
    assert found == {"missing": tuple(gradients), "unexpected": (moment,)}
    assert mistaken("reconcile", "by-total", tuple(gradients), (moment,)) == {"missing": (), "unexpected": ()}


# Public reports in which the state was wrong (bug_cases B45 to B69)


def slots_of(rows):
    return sum(n for role, n in dict(rows).items() if role.startswith("optimizer."))


def test_b45_adam_is_three_tensors_of_four_bytes():
    n = 6_700_000_000
    right, wrong = state.ledger(MASTER, n, n), mistaken("ledger", "one-slot", MASTER, n, n)
    assert (right["optimizer"], right.total) == (80_400_000_000, 107_200_000_000)
    assert (slots_of(wrong), sum(wrong.values())) == (26_800_000_000, 53_600_000_000)


def test_b46_a_program_has_its_own_rows():
    n = params.ledger(W_7B).total
    assert n == 6_738_415_616
    program = AUTOCAST.replace(rows=tuple(row for row in AUTOCAST.rows if row.role != "gradients"))
    assert state.ledger(program, n, n).total == 80_860_987_392
    assert sum(mistaken("ledger", "always-twenty", program, n, n).values()) == 134_768_312_320


def test_b48_seventy_billion_parameters_under_three_policies():
    arch = W_70B.replace(vocab_size=128_256)
    n = params.ledger(arch).total
    all_bf16 = MASTERLESS.replace(rows=tuple(row.replace(dtype="bf16") for row in MASTERLESS.rows))
    assert n == 70_553_706_496
    assert state.bytes_of_weights(n, "bf16") == 141_107_412_992
    assert state.ledger(all_bf16, n, n).total == 564_429_651_968
    assert state.ledger(MASTER, n, n).total == 1_128_859_303_936
    vocabulary = mistaken("vocabulary", "head-forgotten", arch)
    without_head = n - params.vocabulary(arch).total + sum(vocabulary.values())
    assert state.ledger(all_bf16, without_head, without_head).total == 556_024_266_752  # 517.8 GiB
    # The kind: bf16 slots are not fp32 slots.
    assert slots_of(mistaken("ledger", "fp32-slots", all_bf16, n, n)) == 2 * state.ledger(all_bf16, n, n)["optimizer"]


def test_b49_adam_has_two_moments():
    n = 175 * 10**9
    right = 4 * state.optimizer_slots("adam", n).total
    assert right == state.ledger(MASTERLESS, n, n)["optimizer"] == 1_400_000_000_000
    assert 4 * sum(mistaken("optimizer_slots", "one-moment", "adam", n).values()) == 700_000_000_000


def test_b53_gradients_are_fp32_only_where_a_row_says_so():
    wrong = mistaken("ledger", "fp32-gradients", MASTER, P, P)
    assert (wrong["weights"] + wrong["gradients"], wrong["gradients"]) == (6 * P, 4 * P)
    right = state.ledger(MASTER, P, P)
    assert right["weights"] + right["gradients"] == 4 * P
    assert state.ledger(AUTOCAST, P, P)["gradients"] == 4 * P


def test_b67_before_the_first_step_an_optimizer_has_nothing():
    n = 32_111_170
    shadow = AUTOCAST.rows[-1].replace(role="optimizer.shadow")
    policy = AUTOCAST.replace(rows=(*AUTOCAST.rows, shadow))
    before, after = (state.resident(policy, n, n, point) for point in ("backward", "step"))
    assert after.total - before.total == 385_334_040
    assert slots_of(mistaken("resident", "measured-too-early", policy, n, n, "step")) == slots_of(before) == 0


def test_b69_restored_moments_live_through_the_first_forward():
    restored = MASTERLESS.replace(
        rows=tuple(row.replace(created="construction") if row.created == "step" else row for row in MASTERLESS.rows)
    )
    fresh, resumed = (state.resident(policy, P, P, "backward").total for policy in (MASTERLESS, restored))
    assert (resumed - fresh) // 8 == 8_030_261_248  # per rank of eight that share the optimizer
    assert mistaken("alive", "moments-always-lazy", restored, "backward") == state.alive(MASTERLESS, "backward")


# Refusals


@pytest.mark.parametrize(
    "code, call, args",
    [
        ("INCONSISTENT", "ledger", (A16, 10, 11)),
        ("INCONSISTENT", "resident", (A16, 10, 11, "step")),
        ("INCONSISTENT", "checkpoint", (A16, 10, 11)),
        ("INCONSISTENT", "eight_bit_adam", (10, 64, 11)),
        ("NEG", "ledger", (A16, -1, 0)),
        ("TYPE", "ledger", ("a16", 10, 10)),
        ("TYPE", "ledger", (A16, 8.03e9, 0)),
        ("TYPE", "ledger", (A16, True, 0)),
        ("TYPE", "rounded_update", (1.0, Fraction(1, 3), 7)),
        ("TYPE", "spacing", (7, 1.0)),
        ("NEG", "spacing", (-1, 0)),
        ("ENUM", "optimizer_slots", ("sgdm", 5)),
        ("ENUM", "bytes_of_weights", (5, "float16")),
        ("ENUM", "alive", (A16, "forward")),
        ("NONPOS", "adafactor_state", (0, 5)),
        ("NONPOS", "eight_bit_adam", (5, 0)),
    ],
)
def test_bad_input_is_refused_by_name(code, call, args):
    refused(code, getattr(state, call), *args)


def row(role="weights", **changes):
    return {"role": role, "counts": "loaded", "dtype": "bf16"} | changes


def test_a_policy_refuses_what_it_cannot_mean():
    refused("INCONSISTENT", StateRow, **row(created="step", released="step"))
    refused("INCONSISTENT", StateRow, **row(created="step", released="step", owner="optimizer"))
    refused("ENUM", StateRow, **row(counts="frozen"))
    refused("NONPOS", StateRow, **row(copies=0))
    for roles in (("a", "a"), ("a", "a.b")):
        refused("INCONSISTENT", StatePolicy, policy_id="x", rows=tuple(StateRow(**row(role)) for role in roles))


def test_policies_survive_json():
    for policy in POLICIES.values():
        assert StatePolicy.from_json(policy.to_json()) == policy
    assert len({policy.sha256 for policy in POLICIES.values()}) == 6


def test_state_objects_of_the_toy_are_its_tensors_once_per_row():
    objects = state.state_objects(MASTER, tensor_rows(TOY), "step")
    assert len(objects) == 5 * len(tensor_rows(TOY)) == len(set(objects))
    assert sum(o.bytes for o in objects) == 16 * 1_256
