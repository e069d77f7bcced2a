"""Lab 11: prediction against observation, M 0x0A and 0x0D, from two lists of tensors to a status."""

from typing import get_args

from costlib.domain import ManifestError
from costlib.evidence import Explanation, Hypothesis
from costlib.faults import Fault
from costlib.fixtures import ODD, ODD_EVERYTHING, ODD_EXPERTS, RUNNING, TOY, TOY_TIED
from costlib.records import StateEntry, Tensor
from costlib.schema import state_entries, tensor_rows
from labs.spec import Exercise, Failure, Lab, Wrong, given

FOUR = (
    Tensor(name="a", shape=(3, 5)),
    Tensor(name="b", shape=(3, 5)),
    Tensor(name="c", shape=(3, 5), alias_of="a"),
    Tensor(name="d", shape=(7,)),
)
SEEN = state_entries(FOUR)
A, B, C, D = SEEN
CACHE = StateEntry(name="rope.inv_freq", shape=(11,), storage="rope.inv_freq", kind="buffer", persistent=False)
POSITION_IDS = StateEntry(name="position_ids", shape=(1, 77), storage="position_ids", kind="buffer")
ROWS, TIED_ROWS, ODD_ROWS = tensor_rows(TOY), tensor_rows(TOY_TIED), tensor_rows(ODD_EVERYTHING)
TOY_SEEN, TIED_SEEN, ODD_SEEN = map(state_entries, (ROWS, TIED_ROWS, ODD_ROWS))
Q, K = "model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight"
HEAD, TABLE = "lm_head.weight", "model.embed_tokens.weight"


def _with(entries, name, **changes):
    """The entries with one of them changed."""
    return tuple(entry.replace(**changes) if entry.name == name else entry for entry in entries)


def _wrapped(entries):
    """What a distributed wrapper makes of the names."""
    return tuple(entry.replace(name=f"module.{entry.name}") for entry in entries)


def _changed(name, change):
    """The reference's answer with some rows changed by a mistake."""

    def model(*args, **kwargs):
        from solutions import reconcile

        right = dict(getattr(reconcile, name)(*args, **kwargs))
        return {**right, **change(right, *args, **kwargs)}

    return model


def _names(missing=(), unexpected=(), duplicate=()):
    return {"missing": list(missing), "unexpected": list(unexpected), "duplicate": list(duplicate)}


def _by_sum(expected, observed):
    if sum(tensor.numel for tensor in expected) == sum(entry.numel for entry in observed):
        return _names()
    from solutions import reconcile

    return reconcile.names(expected, observed)


def _unwrapped(expected, observed):
    from solutions import reconcile

    return reconcile.names(expected, tuple(e.replace(name=e.name.removeprefix("module.")) for e in observed))


names = Exercise(
    "names",
    points=3,
    minutes=10,
    lines=8,
    hints=(
        "Two sets of names, and their two differences. What does a set hide?",
        "collections.Counter(entry.name for entry in observed) knows how often each name occurs.",
        'missing: sorted(declared - seen). unexpected: the same the other way round, only entries with persistent=True.',
    ),
    cases=(
        given(FOUR, SEEN).gives(_names()),
        given(FOUR, (A, C, D)).gives(_names(missing=["b"])),
        given(FOUR, (*SEEN, StateEntry(name="x", shape=(2,), storage="x"))).gives(_names(unexpected=["x"])),
        given(FOUR, (*SEEN, B)).gives(_names(duplicate=["b"])),
        given(FOUR, (D, D, *SEEN, CACHE)).gives(_names(duplicate=["d"])),
        given(FOUR, (A, B.replace(name="e"), C, D)).gives(_names(missing=["b"], unexpected=["e"])),
        given(FOUR, _wrapped(SEEN)).gives(
            _names(missing=["a", "b", "c", "d"], unexpected=["module.a", "module.b", "module.c", "module.d"])
        ),
        given(FOUR, _wrapped((A, B, C))).gives(
            _names(missing=["a", "b", "c", "d"], unexpected=["module.a", "module.b", "module.c"])
        ),
        given(FOUR, (*SEEN, POSITION_IDS, CACHE)).gives(_names(unexpected=["position_ids"])),
        given(TIED_ROWS, TIED_SEEN[:-1]).gives(_names(missing=[HEAD])),
        given(TIED_ROWS, (*TIED_SEEN, CACHE)).gives(_names()),
        given((), ()).gives(_names()),
    ),
    wrong=(
        Wrong(
            "sum-first",
            _by_sum,
            "Where the sums of scalars agree you look no further. Equal sums hide a tensor swapped for another.",
        ),
        Wrong(
            "names-rewritten",
            _unwrapped,
            "You took `module.` off the names until they fitted. Whoever renames must say so; here it is a difference.",
        ),
        Wrong(
            "one-way",
            _changed("names", lambda r, expected, observed: {"unexpected": []}),
            "You look for what is declared and never ask what else is there.",
        ),
        Wrong(
            "every-buffer",
            _changed(
                "names",
                lambda r, expected, observed: {
                    "unexpected": sorted({e.name for e in observed} - {t.name for t in expected})
                },
            ),
            "A buffer with persistent=False is in no checkpoint: it is not unexpected.",
        ),
        Wrong(
            "set-hides-duplicates",
            _changed("names", lambda r, expected, observed: {"duplicate": []}),
            "A set holds every name once, so a name that occurs twice is lost in it.",
        ),
    ),
    shapes={
        ("expected", "observed"): (
            (ODD_ROWS, ODD_SEEN[3:]),
            (ODD_ROWS, (*ODD_SEEN, *ODD_SEEN[5:8], POSITION_IDS)),
            (ROWS, TIED_SEEN[2:]),
            (tensor_rows(RUNNING)[:40], (*state_entries(tensor_rows(RUNNING)[20:60]), CACHE)),
            (tensor_rows(ODD_EXPERTS), _wrapped(state_entries(tensor_rows(ODD_EXPERTS)))),
        ),
    },
)


def _fields(shape=(), kind=(), trainability=()):
    return {"shape": list(shape), "kind": list(kind), "trainability": list(trainability)}


def _shape_rule(same):
    """The reference's answer with shapes compared by another rule."""

    def change(right, expected, observed):
        declared = {tensor.name: tensor for tensor in expected}
        both = [entry for entry in observed if entry.name in declared]
        return {"shape": sorted({e.name for e in both if not same(e, declared[e.name])})}

    return _changed("fields", change)


FROZEN_TABLE = state_entries(TIED_ROWS, frozen=("model.embed_tokens",))
BUFFERED = _with(SEEN, "d", kind="buffer", trainable=False)

fields = Exercise(
    "fields",
    points=3,
    minutes=10,
    lines=6,
    hints=(
        "Make a dict from name to declared tensor and keep the entries whose name is in it.",
        "Compare shape with shape, not numel with numel: [8, 8] and [4, 16] hold 64 scalars each.",
        'kind: entry.kind != "parameter". trainability: not entry.trainable.',
    ),
    cases=(
        given(TIED_ROWS, TIED_SEEN).gives(_fields()),
        given(ROWS, _with(TOY_SEEN, Q, shape=(4, 16))).gives(_fields(shape=[Q])),
        given(ROWS, _with(TOY_SEEN, K, shape=(8, 4))).gives(_fields(shape=[K])),
        given(FOUR, _with(_with(SEEN, "b", shape=(5, 3)), "d", shape=(8,))).gives(_fields(shape=["b", "d"])),
        given(FOUR, _with(SEEN, "a", shape=(15,))).gives(_fields(shape=["a"])),
        given(TIED_ROWS, FROZEN_TABLE).gives(_fields(trainability=[HEAD, TABLE])),
        given(FOUR, BUFFERED).gives(_fields(kind=["d"], trainability=["d"])),
        given(FOUR, (*_with(SEEN, "a", kind="buffer"), POSITION_IDS)).gives(_fields(kind=["a"])),
        given(FOUR, (A, CACHE, POSITION_IDS, B.replace(name="e", trainable=False))).gives(_fields()),
        given(FOUR, (*SEEN, B.replace(shape=(5, 3)))).gives(_fields(shape=["b"])),
    ),
    wrong=(
        Wrong(
            "axes-in-any-order",
            _shape_rule(lambda seen, declared: sorted(seen.shape) == sorted(declared.shape)),
            "A transposed matrix passed. Which axis is which is part of the schema.",
        ),
        Wrong(
            "numel-for-shape",
            _shape_rule(lambda seen, declared: seen.numel == declared.numel),
            "You compared numbers of scalars. As many scalars in other axes are another matrix.",
        ),
        Wrong(
            "undeclared-too",
            _changed(
                "fields",
                lambda r, expected, observed: {
                    "kind": sorted({e.name for e in observed if e.kind != "parameter"}),
                    "trainability": sorted({e.name for e in observed if not e.trainable}),
                },
            ),
            "Only names on both sides can differ; one that is on a single side is in `names` already.",
        ),
        Wrong(
            "frozen-unseen",
            _changed("fields", lambda r, expected, observed: {"trainability": []}),
            "A frozen tensor passed. It is stored and used, and has no gradient and no optimizer state.",
        ),
        Wrong(
            "buffers-as-parameters",
            _changed("fields", lambda r, expected, observed: {"kind": []}),
            "A buffer passed for a parameter. Nothing learns it, and no optimizer sees it.",
        ),
    ),
    shapes={
        ("expected", "observed"): (
            (ODD_ROWS, state_entries(ODD_ROWS, frozen=("model.layers.1",))),
            (ODD_ROWS, _with(ODD_SEEN, "adapter.weight", shape=(96, 11))),
            (ODD_ROWS, _with(ODD_SEEN, "model.embed_positions.weight", kind="buffer", trainable=False)),
            (tensor_rows(ODD), ODD_SEEN),
            (TIED_ROWS, (*FROZEN_TABLE, CACHE)),
        ),
    },
)


def _aliases(broken=(), accidental=()):
    return {"broken alias": list(broken), "accidental alias": list(accidental)}


def _all_sharing(right, expected, observed):
    storages = [entry.storage for entry in observed]
    declared = {tensor.name for tensor in expected}
    return {"accidental alias": sorted(e.name for e in observed if e.name in declared and storages.count(e.storage) > 1)}


def _with_original(right, expected, observed):
    original = {tensor.name: tensor.alias_of for tensor in expected}
    return {"broken alias": sorted({n for name in right["broken alias"] for n in (name, original[name])})}


FIVE = (*FOUR, Tensor(name="e", shape=(3, 5), alias_of="a"))

aliases = Exercise(
    "aliases",
    points=4,
    minutes=15,
    lines=9,
    hints=(
        "entry.storage says which tensor object a name leads to. First a dict: name -> storage, of what was seen.",
        "broken: storage[t.name] != storage[t.alias_of], where both were seen.",
        "accidental: for each storage collect {t.alias_of or t.name}. Two of them in one storage is one too many.",
    ),
    cases=(
        given(TIED_ROWS, TIED_SEEN).gives(_aliases()),
        given(ROWS, TOY_SEEN).gives(_aliases()),
        given(TIED_ROWS, _with(TIED_SEEN, HEAD, storage="copy")).gives(_aliases(broken=[HEAD])),
        given(ROWS, _with(TOY_SEEN, HEAD, storage=TABLE)).gives(_aliases(accidental=[HEAD, TABLE])),
        given(FOUR, _with(SEEN, "c", storage="b")).gives(_aliases(broken=["c"], accidental=["b", "c"])),
        given(FOUR, (A, B.replace(storage="a"), C.replace(storage="c"), D)).gives(
            _aliases(broken=["c"], accidental=["a", "b"])
        ),
        given(FOUR, (B, C.replace(storage="elsewhere"), D)).gives(_aliases()),
        given(FIVE, _with(state_entries(FIVE), "e", storage="e")).gives(_aliases(broken=["e"])),
        given(FIVE, _with(state_entries(FIVE), "d", storage="a")).gives(_aliases(accidental=["a", "c", "d", "e"])),
        given(FOUR, (*SEEN, POSITION_IDS.replace(storage="d"))).gives(_aliases()),
    ),
    wrong=(
        Wrong(
            "equal-shapes-tied",
            _changed("aliases", lambda r, expected, observed: {"broken alias": []}),
            "A copy passed for a tie. Equal names and shapes say nothing about storage; the copy costs memory and drifts.",
        ),
        Wrong(
            "one-direction",
            _changed("aliases", lambda r, expected, observed: {"accidental alias": []}),
            "You ask whether declared ties are there and not whether others are there too.",
        ),
        Wrong(
            "declared-ties-accidental",
            _changed("aliases", _all_sharing),
            "A declared tie is no accident: a tensor and its aliases belong in one storage.",
        ),
        Wrong(
            "original-blamed",
            _changed("aliases", _with_original),
            "The original is where it should be. Name the alias, which is not.",
        ),
    ),
    shapes={
        ("expected", "observed"): (
            (ODD_ROWS, _with(ODD_SEEN, HEAD, storage="copy")),
            (ODD_ROWS, _with(ODD_SEEN, "adapter.weight", storage=TABLE)),
            (tensor_rows(ODD), ODD_SEEN),
            (FIVE, state_entries(FOUR)),
            (FIVE, _with(_with(state_entries(FIVE), "c", storage="b"), "d", storage="b")),
        ),
    },
)


def _told(*amounts):
    """Explanations of those amounts."""
    return tuple(
        Explanation(counter="activation peak", amount=amount, text="padding", scope="this case") for amount in amounts
    )


def _row(residual, explained, status):
    return {"residual": residual, "explained": explained, "status": status}


def _verdict(rule):
    """The reference's numbers with the status by another rule."""

    def change(right, predicted, observed, explanations=()):
        if right["residual"] is None:
            return {}
        return {"status": rule(right["residual"], right["explained"], explanations)}

    return _changed("counter", change)


def _missing_as_zero(predicted, observed, explanations=()):
    from solutions import reconcile

    return reconcile.counter(predicted or 0, observed or 0, explanations)


def _unsigned(predicted, observed, explanations=()):
    if predicted is None or observed is None:
        return _row(None, sum(abs(row.amount) for row in explanations), "unmeasured")
    residual, explained = abs(observed - predicted), sum(abs(row.amount) for row in explanations)
    return _row(residual, explained, "open" if residual != explained else "explained" if residual else "exact")


def _turned(predicted, observed, explanations=()):
    from solutions import reconcile

    return reconcile.counter(observed, predicted, explanations)


counter = Exercise(
    "counter",
    points=4,
    minutes=12,
    lines=6,
    hints=(
        "Deal with None first: nothing predicted or nothing seen is not 0, and there is no residual.",
        "residual = observed - predicted; explained = sum(row.amount for row in explanations).",
        'A story that explains 64 of nothing is as open as one that explains 64 of 128: "open" if explained != residual.',
    ),
    cases=(
        given(448, 576, _told(128)).gives(_row(128, 128, "explained")),
        given(1_408, 1_536, _told(128)).gives(_row(128, 128, "explained")),
        given(448, 576, _told(64)).gives(_row(128, 64, "open")),
        given(448, 448).gives(_row(0, 0, "exact")),
        given(448, 448, _told(64)).gives(_row(0, 64, "open")),
        given(1_000, 1_000, _told(-8)).gives(_row(0, -8, "open")),
        given(448, 448, _told(64, -64)).gives(_row(0, 0, "exact")),
        given(576, 448, _told(-128)).gives(_row(-128, -128, "explained")),
        given(576, 448, _told(128)).gives(_row(-128, 128, "open")),
        given(448, 576, _told(256, -128)).gives(_row(128, 128, "explained")),
        given(448, 576, _told(200)).gives(_row(128, 200, "open")),
        given(8_030_261_248, 7_504_924_672).gives(_row(-525_336_576, 0, "open")),
        given(None, 576, _told(128)).gives(_row(None, 128, "unmeasured")),
        given(448, None).gives(_row(None, 0, "unmeasured")),
        given(None, None).gives(_row(None, 0, "unmeasured")),
        given(0, 0).gives(_row(0, 0, "exact")),
        given(448.0, 448).refuses("TYPE"),
        given(448, -1).refuses("NEG"),
    ),
    wrong=(
        Wrong(
            "zero-is-exact",
            _verdict(lambda r, e, rows: "exact" if r == 0 else "explained" if r == e else "open"),
            "A residual of 0 closed, whatever the explanations say. They must add up to it, also when it is 0.",
        ),
        Wrong(
            "missing-as-zero",
            _missing_as_zero,
            "None became 0. What nobody measured or supplied is not empty, it is unmeasured.",
        ),
        Wrong(
            "unsigned",
            _unsigned,
            "The signs are lost. 128 too few is not explained by 128 too many.",
        ),
        Wrong(
            "prediction-minus-observation",
            _turned,
            "The sign is the other way round: residual = observed - predicted.",
        ),
        Wrong(
            "explained-enough",
            _verdict(lambda r, e, rows: "exact" if r == e == 0 else "explained" if r and abs(e) >= abs(r) else "open"),
            "More was explained than there was to explain, and you closed. The sums must be equal.",
        ),
        Wrong(
            "any-story-closes",
            _verdict(lambda r, e, rows: "exact" if r == e == 0 else "explained" if rows else "open"),
            "An explanation was there, so you closed. It must explain all of the residual and no more.",
        ),
    ),
    shapes={
        "predicted": (None, 0, 448, 1_408, 8_030_261_248),
        "observed": (None, 0, 448, 576, 8_030_261_376),
        "explanations": ((), _told(128), _told(-128), _told(64, 64), _told(960, -1)),
    },
)


def _other_order(*order):
    return lambda parts: min(parts, key=order.index, default="unmeasured")


status = Exercise(
    "status",
    points=2,
    minutes=6,
    lines=1,
    hints=(
        "A report is as good as its worst part. evidence.STATUSES stands in that order.",
        'min(parts, key=STATUSES.index, default="unmeasured").',
    ),
    cases=(
        given(("exact",)).gives("exact"),
        given(("exact", "explained", "exact")).gives("explained"),
        given(("explained", "open", "exact", "exact")).gives("open"),
        given(("exact", "unmeasured", "exact")).gives("unmeasured"),
        given(("unmeasured", "explained")).gives("unmeasured"),
        given(("open", "exact", "explained")).gives("open"),
        given(("exact", "open")).gives("open"),
        given(("open", "rejected", "exact")).gives("rejected"),
        given(("rejected", "open")).gives("rejected"),
        given(("unmeasured", "open", "unmeasured")).gives("open"),
        given(()).gives("unmeasured"),
        given(("exact", "unexplained")).refuses("ENUM"),
        given(("closed",)).refuses("ENUM"),
    ),
    wrong=(
        Wrong(
            "best-wins",
            lambda parts: min(parts, key=("exact", "explained", "unmeasured", "open", "rejected").index, default="unmeasured"),
            "The best part decided. One open part keeps the whole report open.",
        ),
        Wrong(
            "unmeasured-ignored",
            lambda parts: _other_order("rejected", "open", "explained", "exact")(
                tuple(p for p in parts if p != "unmeasured") or ("exact",)
            ),
            "What was not measured was left out, and the rest called closed. Nothing measured is not exact.",
        ),
        Wrong("last-wins", lambda parts: (*("unmeasured",), *parts)[-1], "Only the last part decided."),
        Wrong(
            "majority",
            lambda parts: max(parts, key=parts.count, default="unmeasured"),
            "The most frequent part decided. Statuses are no votes.",
        ),
        Wrong(
            "open-over-rejected",
            _other_order("open", "rejected", "unmeasured", "explained", "exact"),
            "Rejected is the worst: what was refused was never compared.",
        ),
    ),
    shapes={
        "parts": (
            ("explained", "exact"),
            ("exact", "exact"),
            ("unmeasured",),
            ("open", "unmeasured", "explained"),
            ("exact", "rejected", "open", "open"),
            ("explained", "explained", "unmeasured", "exact"),
        )
    },
)


def _guesses(*rows):
    return tuple(Hypothesis(name=name, value=value, text=name) for name, value in rows)


GUESSES = _guesses(("as declared", 100), ("half", 50), ("double", 200), ("tied", 70))
WIDE = _guesses(("as declared", 2**60), ("one more", 2**60 + 1), ("two less", 2**60 - 2))


def _sorted_by(key, residual=lambda value, observed: observed - value):
    def model(candidates, observed):
        order = sorted(range(len(candidates)), key=lambda i: key(candidates[i].value, observed, i))
        return [(candidates[i].name, residual(candidates[i].value, observed)) for i in order]

    return model


ranked = Exercise(
    "ranked",
    points=2,
    minutes=8,
    lines=2,
    hints=(
        "sorted(..., key=...) is stable: what compares equal keeps its order.",
        "The key is the distance, abs(observed - candidate.value); the answer keeps the sign.",
    ),
    cases=(
        given(GUESSES, 50).gives([("half", 0), ("tied", -20), ("as declared", -50), ("double", -150)]),
        given(GUESSES, 150).gives([("as declared", 50), ("double", -50), ("tied", 80), ("half", 100)]),
        given(GUESSES, 60).gives([("half", 10), ("tied", -10), ("as declared", -40), ("double", -140)]),
        given(GUESSES, 0).gives([("half", -50), ("tied", -70), ("as declared", -100), ("double", -200)]),
        given(GUESSES[::-1], 60).gives([("tied", -10), ("half", 10), ("as declared", -40), ("double", -140)]),
        given(WIDE, 2**60 + 1).gives([("one more", 0), ("as declared", 1), ("two less", 3)]),
        given((), 7).gives([]),
        given(GUESSES, 50.0).refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "signed-distance",
            _sorted_by(lambda value, observed, i: observed - value),
            "You sorted by the signed difference, so whatever is far above comes first. Take the distance.",
        ),
        Wrong(
            "confirmed-only",
            lambda candidates, observed: [(c.name, 0) for c in candidates if c.value == observed],
            "Only exact hits are left. The near misses say where to look when none is exact.",
        ),
        Wrong(
            "ties-turned",
            _sorted_by(lambda value, observed, i: (abs(observed - value), -i)),
            "Equally close hypotheses have changed places. They stay in the order given, the likeliest first.",
        ),
        Wrong(
            "value-minus-observed",
            _sorted_by(
                lambda value, observed, i: abs(observed - value), residual=lambda value, observed: value - observed
            ),
            "The sign is the other way round: residual = observed - value.",
        ),
    ),
    shapes={
        "candidates": (GUESSES, GUESSES[1:], WIDE, _guesses(("x", 6), ("y", 10), ("z", 8), ("w", 2**61))),
        "observed": (8, 60, 90, 2**60, 2**60 + 1),
    },
)


def _refused_as(status):
    def model(case, present=True):
        from solutions import reconcile

        found = reconcile.closure(case, present)
        return status if found == "rejected" else found

    return model


def _measured(case, present=True):
    from solutions import reconcile

    found = reconcile.closure(case, present)
    return "exact" if found == "unmeasured" else found


def _always(case, present=True):
    from solutions import reconcile

    return reconcile.closure(case)


# The two faults that need Lab 12 are left to the drawn cases and the failure lab.
closure = Exercise(
    "closure",
    points=2,
    minutes=8,
    lines=4,
    hints=(
        "Import faults from costlib. faults.INJECT is a dict of functions: call the one of this case with `present`.",
        'try ... except ManifestError: "rejected". No bare except: a TypeError is a broken check, not a closed fault.',
    ),
    cases=(
        given("reshaped tensor").gives("open"),
        given("untied head").gives("open"),
        given("mislabelled evidence").gives("rejected"),
        given("unexplained counter").gives("open"),
        given("no observation").gives("unmeasured"),
        given("no liveness").gives("unmeasured"),
        given("mutated base").gives("open"),
        given("illegal shard").gives("rejected"),
        given("unnormalized paper").gives("rejected"),
        given("drifted geometry").gives("open"),
        given("reshaped tensor", False).gives("exact"),
        given("mislabelled evidence", False).gives("explained"),
        given("no observation", False).gives("explained"),
        given("illegal shard", False).gives("exact"),
        given("wishful thinking").refuses("ENUM"),
    ),
    wrong=(
        Wrong(
            "refused-is-open",
            _refused_as("open"),
            "What was refused never got as far as a comparison: rejected, not open.",
        ),
        Wrong(
            "unmeasured-is-exact",
            _measured,
            "Nothing was measured, and you report exact. Silence is no agreement.",
        ),
        Wrong(
            "fault-always-in",
            _always,
            "The fault is injected whatever `present` says. Without it the same check must close.",
        ),
    ),
    shapes={"case": get_args(Fault), "present": (True, False)},
)


def _injected(case):
    """A check that lets one fault in and reports the status, and the reason where it was refused."""

    def check(fault):
        from costlib import faults, reconcile

        found = reconcile.closure(case, fault)
        try:
            faults.INJECT[case](fault)
        except ManifestError as error:
            found += f": {error.detail}"
        return "" if found in ("explained", "exact") else found

    return check


FAILURES = tuple(
    Failure(fault, invariant, check=_injected(case))
    for case, fault, invariant in (
        (
            "reshaped tensor",
            "q_proj stored as [4, 16] where [8, 8] is declared",
            "axes are compared, not their product: the total has not moved",
        ),
        (
            "untied head",
            "the head moved into a storage of its own",
            "who shares a storage with whom is part of the schema; the named count has not moved",
        ),
        (
            "mislabelled evidence",
            "a synthetic bundle that calls itself measured",
            "a measurement names hardware, framework and raw artifact, or is no record at all",
        ),
        (
            "unexplained counter",
            "allocator bytes beside tensor payload, half of the gap explained",
            "every counter says what it can see, and explanations add up to its residual",
        ),
        ("no observation", "nobody looked", "without an observation the answer is unmeasured, never exact"),
        ("no liveness", "a plan with no liveness intervals", "a peak that was not declared is not supplied; it is not 0 B"),
        ("two patches", "a sensitivity case that changes two fields", "one case, one patch: or the cause is anyone's guess"),
        ("mutated base", "the shared base written to between cases", "the base has the same SHA-256 after every case"),
        ("illegal shard", "three shards among eight ranks", "degrees multiply to the world, or the topology is refused"),
        (
            "unnormalized paper",
            "a paper's row opened for comparison as it stands",
            "numbers meet only on a named case of a common manifest",
        ),
        ("drifted geometry", "the toy with other K/V heads than its written total", "a written integer holds, or the report is open"),
        ("missing paper", "a registry of five sources", "all six contracts are there, by id"),
    )
)

LAB = Lab(
    "11",
    "Prediction against observation",
    "reconcile",
    (names, fields, aliases, counter, status, ranked, closure),
    FAILURES,
)
