"""Activations against replay: a tape that saves what backward asks for, clocks that tick through every instant."""

import itertools
from fractions import Fraction
from math import prod

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import manifests, workloads

from costlib import activations
from costlib.domain import ManifestError
from costlib.exercise import using
from costlib.fixtures import CLASSIC, LIVE_TINY, LIVE_TOY, RUNNING
from costlib.policies import BITS, Candidate, LiveObject
from costlib.units import GIB
from labs import spec

RUN = (1, 4096, 4096, 32, 32)
POLICIES = ("none", "selective", "boundary", "offload")
LAB = spec.load("05")
small = st.integers(1, 6)
stacks = st.tuples(small, small, small, small, small)


@pytest.fixture(autouse=True, scope="module")
def on_the_reference():
    with using("solutions"):
        yield


def mistaken(exercise, name, *args):
    """What a named wrong model of the lab answers."""
    return next(w for w in LAB[exercise].wrong if w.name == name).model(*args)


def item(name, size, birth, death, storage=None, **other):
    return LiveObject(name=name, bytes=size, birth=birth, death=death, storage=storage or name, **other)


# One tensor


@given(st.lists(st.integers(1, 5), max_size=4), st.sampled_from(["fp32", "bf16", "int8", "int4"]))
def test_a_tensor_is_its_scalars_laid_out_bit_by_bit(shape, dtype):
    bits = sum(BITS[dtype] for _ in itertools.product(*map(range, shape)))
    whole = activations.tensor_bytes(tuple(shape), dtype)
    assert bits <= 8 * whole < bits + 8


@given(manifests(), workloads())
def test_scores_are_counted_query_by_query_and_key_by_key(arch, work):
    assume(work.new_rows * work.visible_rows < 400)
    count = 0
    for _ in range(work.batch_size):
        for _ in range(arch.num_attention_heads):
            for _ in range(work.new_rows):
                count += len(range(work.visible_rows))
    assert activations.score_elements(arch, work) == count


# One layer


def taped_layer(b, s, h, a):
    """The paper's block run on shapes; every operation saves what its backward formula contains."""
    saved = []  # (tensor, bytes): a tensor saved twice is one storage

    def keep(*tensors):
        saved.extend((tensor, 2 * prod(tensor)) for tensor in tensors)

    def tensor(*shape):
        class Value(tuple):
            __hash__ = object.__hash__
            __eq__ = object.__eq__

        return Value(shape)

    def linear(x, width):
        keep(x)
        return tensor(b, s, width)

    def matmul(x, y, *shape):
        keep(x, y)
        return tensor(*shape)

    def norm(x):
        keep(x)
        return tensor(*x)

    def softmax(x):
        out = tensor(*x)
        keep(out)
        return out

    def gelu(x):
        keep(x)
        return tensor(*x)

    def dropout(x):
        mask = tensor(*x)
        saved.append((mask, prod(mask)))
        return tensor(*x)

    x = tensor(b, s, h)
    n = norm(x)
    q, k, v = (linear(n, h) for _ in range(3))
    scores = matmul(q, k, b, a, s, s)
    mixed = matmul(dropout(softmax(scores)), v, b, s, h)
    dropout(linear(mixed, h))
    residual = tensor(b, s, h)
    dropout(linear(gelu(linear(norm(residual), 4 * h)), h))
    return sum({id(tensor): size for tensor, size in saved}.values())


@given(small, small, small, small)
def test_a_layer_is_what_a_tape_saves(b, s, h, a):
    one = activations.korthikanti(b, s, h, a)
    assert one.total == taped_layer(b, s, h, a) == 34 * b * s * h + 5 * b * a * s * s


@given(small, small, small, small)
def test_a_layer_is_linear_in_the_batch_and_quadratic_in_the_length(b, s, h, a):
    one, twice, longer = (activations.korthikanti(*x) for x in ((b, s, h, a), (2 * b, s, h, a), (b, 2 * s, h, a)))
    for row in one:
        assert twice[row] == 2 * one[row]
        assert longer[row] == (4 if row.startswith("attention.scores") else 2) * one[row]


def test_every_row_names_the_formula_that_asks_for_it():
    assert list(activations.korthikanti(1, 1, 1, 1)) == list(activations.SAVED_FOR)
    assert all(activations.SAVED_FOR.values())


@given(st.integers(1, 400), st.integers(1, 9))
def test_the_square_outweighs_the_rest_from_the_crossover_on(h, a):
    at = activations.crossover(h, a)
    for s in range(max(1, int(at) - 1), int(at) + 3):
        one = activations.korthikanti(1, s, h, a)
        assert (2 * one["attention.scores"] > one.total) == (s > at)
        assert (2 * one["attention.scores"] == one.total) == (s == at)


def test_the_paper_has_no_gaps_and_the_running_model_has_four():
    assert activations.paper_gaps(CLASSIC) == ()
    assert len(activations.paper_gaps(RUNNING)) == 4
    assert len(activations.paper_gaps(CLASSIC.replace(head_dim=32))) == 1


# Policies


@given(stacks, st.sampled_from(POLICIES))
def test_retained_is_what_lives_through_the_turn(sizes, policy):
    layers = sizes[-1]
    through = [o for o in activations.timeline(*sizes, policy) if o.birth < layers < o.death]
    storages = {o.storage: o.bytes for o in through if o.placement == "device"}
    assert activations.retained(*sizes, policy) == sum(storages.values())
    host = sum(o.bytes for o in through if o.placement == "host")
    assert activations.added_cost(*sizes, policy)["host"] == host


@given(stacks, st.sampled_from(POLICIES))
def test_the_peak_is_the_cut_of_the_replay(sizes, policy):
    b, s, h, _, _ = sizes
    shared = 2 * b * s * h if policy == "boundary" else 0  # the boundary is its layer's norm input
    cut, _ = activations.peak_cut(activations.timeline(*sizes, policy))
    assert activations.peak(*sizes, policy) - cut == shared


@given(stacks)
def test_what_keeps_less_pays_more(sizes):
    kept = [activations.retained(*sizes, policy) for policy in POLICIES]
    assert kept == sorted(kept, reverse=True)
    for policy in POLICIES:
        cost = activations.added_cost(*sizes, policy)
        assert any(cost.values()) == (policy != "none")
        assert activations.peak(*sizes, policy) >= activations.retained(*sizes, policy)


@given(stacks)
def test_a_rerun_multiplies_what_its_matrices_say(sizes):
    b, s, h, a, layers = sizes
    h *= a  # whole heads
    scores = sum(2 * s * s * (h // a) for _ in range(2) for _ in range(b * a))
    others = sum(2 * b * s * rows * cols for rows, cols in [(h, h)] * 4 + [(h, 4 * h), (4 * h, h)])
    sizes = (b, s, h, a, layers)
    assert activations.added_cost(*sizes, "selective")["flops"] == layers * scores
    assert activations.added_cost(*sizes, "boundary")["flops"] == layers * (scores + others)


@given(stacks, st.sampled_from(POLICIES))
def test_c_gives_the_bytes_back(sizes, policy):
    b, s, h, _, layers = sizes
    assert activations.coefficient_c(*sizes, policy) * b * s * h * layers * 2 == activations.retained(*sizes, policy)


def test_retained_and_peak_on_the_running_dimensions():
    shown = {p: [Fraction(f(*RUN, p), GIB) for f in (activations.retained, activations.peak)] for p in POLICIES}
    assert shown == {
        "none": [97, 97],
        "selective": [17, Fraction(39, 2)],
        "boundary": [1, Fraction(129, 32)],
        "offload": [0, Fraction(97, 32)],
    }


def test_a_constant_c_discounts_twice():
    call = (8, 8192, 8192, 64, 80)
    assert [activations.coefficient_c(*call, p) for p in ("none", "selective", "boundary")] == [177, 17, 1]
    wrong = [mistaken("retained", "c-is-16", *call, p) for p in ("none", "selective", "boundary")]
    assert wrong == [1_374_389_534_720, 412_316_860_416, 85_899_345_920]
    right = [activations.retained(*call, p) for p in ("none", "selective", "boundary")]
    assert right == [15_204_184_227_840, 1_460_288_880_640, 85_899_345_920]


def test_one_replay_is_a_third_of_what_the_paper_adds():
    """2.7 % and 1.6 % are three replays; by one replay they are 0.898 and 0.545 %: not comparable."""
    for (h, a, layers), percent in (((12288, 96, 96), "0.898"), ((20480, 128, 105), "0.545")):
        model = 72 * layers * 2048 * h * h * (1 + Fraction(2048, 6 * h) + Fraction(51200, 12 * h * layers))
        share = activations.added_cost(1, 2048, h, a, layers, "selective")["flops"] / model
        assert f"{float(100 * share):.3f}" == percent


# Lives and cuts


@st.composite
def lives(draw, storages=True):
    found = []
    sizes = draw(st.lists(st.integers(0, 20), min_size=1, max_size=4))
    for i in range(draw(st.integers(1, 8))):
        birth = draw(st.integers(0, 9))
        storage = draw(st.integers(0, len(sizes) - 1)) if storages else i
        role = draw(st.sampled_from(activations.ROLES))
        size = sizes[storage % len(sizes)]
        found.append(item(f"o{i}", size, birth, birth + draw(small), f"s{storage}", role=role, needed_by="its backward"))
    return tuple(found)


def ticked(objects, instant, closed=False):
    """Bytes at one instant, found by asking every object."""
    alive = {}
    for o in objects:
        if instant in range(o.birth, o.death + closed):
            alive[o.storage] = o.bytes
    return sum(alive.values())


@given(lives(), st.booleans())
def test_the_peak_is_the_first_largest_of_every_instant(objects, closed):
    order = "birth-first" if closed else "release-first"
    births = {o.birth for o in objects}
    totals = [ticked(objects, t, closed) for t in range(20)]
    peak, instant = activations.peak_cut(objects, order)
    assert peak == max(totals)
    assert instant == min(t for t in births if totals[t] == peak)
    assert [activations.live_at(objects, t, order).total for t in range(20)] == totals


@given(lives(storages=False), st.booleans())
def test_the_peak_is_that_of_a_running_sum_over_sorted_events(objects, closed):
    events = [(o.birth, 0 if closed else 1, o.bytes) for o in objects]
    events += [(o.death, 1 if closed else 0, -o.bytes) for o in objects]
    running = itertools.accumulate(delta for _, _, delta in sorted(events, key=lambda e: e[:2]))
    assert activations.peak_cut(objects, "birth-first" if closed else "release-first")[0] == max(running)


@given(lives())
def test_a_peak_lies_between_the_largest_and_the_sum(objects):
    peak = activations.peak_cut(objects)[0]
    assert max(o.bytes for o in objects) <= peak <= activations.peak_cut(objects, "birth-first")[0]
    assert activations.peak_cut(objects, "birth-first")[0] <= activations.unique_bytes(objects)
    assert activations.unique_bytes(objects) == sum({o.storage: o.bytes for o in objects}.values())


@given(lives(), st.integers(0, 9), small)
def test_a_view_adds_no_bytes_and_a_host_copy_none_on_the_device(objects, birth, lasts):
    view = objects[0].replace(name="view", birth=birth, death=birth + lasts)
    parked = item("parked", 999, 0, 99, placement="host")
    assert activations.unique_bytes((*objects, view, parked)) == activations.unique_bytes(objects)
    assert activations.peak_cut((*objects, parked))[0] == activations.peak_cut(objects)[0]


@given(lives())
def test_adding_the_maxima_of_the_roles_never_falls_short_and_often_overshoots(objects):
    assume(len({o.storage for o in objects}) == len(objects))
    assert mistaken("peak_cut", "category-maxima", objects)[0] >= activations.peak_cut(objects)[0]


def test_the_tiny_replay_peaks_at_two_instants_and_names_the_first():
    assert [activations.live_at(LIVE_TINY, t).total for t in range(5)] == [64, 192, 448, 448, 384]
    assert activations.peak_cut(LIVE_TINY) == (448, 2)


def test_the_toy_is_38_only_for_those_who_add():
    for objects, release, birth, added in ((LIVE_TOY[1:], 12, 15, 18), (LIVE_TOY, 32, 35, 38)):
        cuts = [activations.peak_cut(objects, order)[0] // GIB for order in ("release-first", "birth-first")]
        assert cuts == [release, birth]
        assert mistaken("peak_cut", "sum-of-all", objects)[0] == added * GIB
    assert mistaken("peak_cut", "state-twice", LIVE_TOY)[0] == 52 * GIB


@given(st.lists(st.integers(0, 50), min_size=4, max_size=4))
def test_the_bridge_ends_at_the_device(readings):
    payload, *rest = readings
    rows = activations.memory_bridge(payload, *sorted(rest))
    assert rows.total == max(rest)
    assert rows["cached"] >= 0 and rows["outside"] >= 0


# The choice


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=7),
    st.integers(0, 9),
    st.integers(0, 40),
)
def test_the_plan_is_the_cheapest_of_all_subsets(pairs, fixed, budget):
    regions = tuple(Candidate(name=f"r{i}", saved=saved, flops=flops) for i, (saved, flops) in enumerate(pairs))
    plans = []
    for mask in range(2 ** len(regions)):
        chosen = [i for i in range(len(regions)) if mask >> i & 1]
        left = fixed + sum(r.saved for i, r in enumerate(regions) if i not in chosen)
        if left <= budget:
            plans.append((sum(regions[i].flops for i in chosen), len(chosen), chosen, left))
    found = activations.choose_recompute(regions, fixed, budget)
    assert found["status"] == ("chosen" if plans else "infeasible")
    flops, _, chosen, left = min(plans) if plans else (sum(f for _, f in pairs), 0, range(len(regions)), fixed)
    assert found == found | {"recompute": tuple(f"r{i}" for i in chosen), "bytes": left, "flops": flops}


def test_what_is_dead_before_the_peak_is_not_worth_recomputing():
    early = Candidate(name="early", saved=0, flops=1)
    late = Candidate(name="late", saved=5, flops=9)
    assert activations.choose_recompute((early, late), 10, 12)["recompute"] == ("late",)


# Reported mistakes


def test_coefficients_that_are_bytes_already_are_not_multiplied_again():
    right, wrong = activations.korthikanti(1, 4096, 4096, 32), mistaken("korthikanti", "bytes-again", 1, 4096, 4096, 32)
    assert (right.total, sum(wrong.values())) == (3_254_779_904, 13_019_119_616)


def test_logits_have_a_vocabulary_axis():
    assert activations.tensor_bytes((4, 4096, 32000), "fp32") == 2_097_152_000
    assert activations.tensor_bytes((2, 512, 32000), "fp32") == 131_072_000 == 125 * 2**20
    assert mistaken("tensor_bytes", "last-axis-forgotten", (4, 4096, 32000), "fp32") == 65_536


@pytest.mark.parametrize("vocab, extra", [(131072, 1_073_741_824), (128256, 1_050_673_152)])
def test_logits_that_outlive_their_step_raise_the_next_peak(vocab, extra):
    size = activations.tensor_bytes((4096, vocab), "bf16")

    def two_steps(last_use):
        return (
            item("saved.1", 9 * GIB, 0, 2),
            item("logits.1", size, 1, last_use),
            item("saved.2", 9 * GIB, 2, 4),
            item("logits.2", size, 3, 4),
        )

    released, held = two_steps(2), two_steps(4)
    assert activations.peak_cut(held)[0] - activations.peak_cut(released)[0] == extra
    assert mistaken("peak_cut", "sum-of-all", held) == mistaken("peak_cut", "sum-of-all", released)


def test_a_loss_is_more_than_its_logits():
    per_logit = {"logits": 2, "copy": 4, "softmax": 4, "gradient": 4, "gradient.working": 2}
    objects = tuple(item(name, 128256 * size, 0, 1) for name, size in per_logit.items())
    declared, measured = activations.unique_bytes(objects), 2_352_215
    assert (declared, declared // 128256) == (2_052_096, 16)
    assert activations.memory_bridge(declared, measured, measured, measured)["undeclared"] == 300_119
    assert mistaken("unique_bytes", "largest-only", objects) == 513_024


def test_restored_moments_live_through_the_first_forward():
    moments = 8_030_261_248

    def first_step(born):
        return (item("activations", 40 * GIB, 0, 3), item("moments", moments, born, 9, role="persistent"))

    fresh, resumed = first_step(3), first_step(0)
    assert activations.peak_cut(resumed)[0] - activations.peak_cut(fresh)[0] == moments
    assert mistaken("peak_cut", "sum-of-all", resumed)[0] == mistaken("peak_cut", "sum-of-all", fresh)[0]


# What is refused


@pytest.mark.parametrize(
    "call, code",
    [
        (lambda: item("x", 1, 4, 4), "RANGE"),
        (lambda: item("x", 1, 4, 3), "RANGE"),
        (lambda: item("x", -1, 0, 1), "NEG"),
        (lambda: item("x", 1.0, 0, 1), "TYPE"),
        (lambda: item("x", 1, 0, 1, role="activation"), "ENUM"),
        (lambda: item("x", 1, 0, 1, role="saved"), "MISSING"),
        (lambda: item("x", 1, 0, 1, role="boundary"), "MISSING"),
        (lambda: activations.unique_bytes((item("x", 1, 0, 1), item("y", 2, 0, 1, "x"))), "INCONSISTENT"),
        (lambda: activations.peak_cut(()), "MISSING"),
        (lambda: activations.peak_cut(LIVE_TOY, "births"), "ENUM"),
        (lambda: activations.retained(*RUN, "full"), "ENUM"),
        (lambda: activations.peak(1, 4096, 4096, 0, 1, "none"), "NONPOS"),
        (lambda: activations.memory_bridge(1, 3, 2, 4), "INCONSISTENT"),
        (lambda: activations.choose_recompute((Candidate(name="x", saved=1, flops=1),) * 17, 0, 1), "RANGE"),
    ],
)
def test_bad_input_is_refused_before_anything_is_counted(call, code):
    with pytest.raises(ManifestError) as refusal:
        call()
    assert refusal.value.code == code
