"""Lab 12: one field, one new prediction; and papers that count different things."""

from fractions import Fraction

from costlib import data
from costlib.estimate import Plan
from costlib.fixtures import ODD, RUNNING, TOY, W_70B, W_MOE
from costlib.policies import Ownership
from labs.papers_exercises import PAPERS
from labs.spec import Exercise, Lab, Wrong, given

BASE = Plan.from_json(data.read("plans/running.json"))
TINY = Plan.from_json(data.read("plans/tiny_tied.json"))
BARE = Plan(plan_id="bare", architecture=ODD)
FP32 = BASE.replace(weight_dtype="fp32")
EIGHT_BIT = BASE.replace(cache_dtype="fp8")
MQA = BASE.replace(architecture=RUNNING.replace(num_key_value_heads=1))
TIED = BASE.replace(architecture=RUNNING.replace(tie_word_embeddings=True))
EIGHT = BASE.replace(workload=BASE.workload.replace(batch_size=8))
SHARDED = BASE.replace(ownership=Ownership(policy_id="dp8-zero3", world_size=8, data_parallel=8, zero_stage=3))
NAMES = ("parameters", "weight payload", "forward", "cache payload", "attention transfer", "weight payload per rank")


def row(*values):
    return dict(zip(NAMES, map(Fraction, values)))


def _changed(name, change):
    def model(*args, **kwargs):
        from solutions import sensitivity

        return change(getattr(sensitivity, name)(*args, **kwargs), *args, **kwargs)

    return model


def _rebuilt(base, path, value):
    """A plan from its defaults: what was declared beside the changed field is lost."""
    from solutions import sensitivity

    field, right = path.partition(".")[0], sensitivity.patched(base, path, value)
    kept = {name: getattr(right, name) for name in ("plan_id", "architecture", field)}
    return Plan(**kept)


patched = Exercise(
    "patched",
    points=4,
    minutes=15,
    lines=9,
    module="sensitivity",
    hints=(
        "path.partition('.') gives the plan's field and, where there is a dot, the record's field inside it.",
        "Records have .replace(**changes), which validates and refuses unknown names: use it inside, then outside.",
        "Refuse a field outside PATHS before anything else, and at the end a scenario that equals the base.",
    ),
    cases=(
        given(BASE, "weight_dtype", "fp32").gives(FP32),
        given(BASE, "cache_dtype", "fp8").gives(EIGHT_BIT),
        given(BASE, "architecture.num_key_value_heads", 1).gives(MQA),
        given(BASE, "architecture.tie_word_embeddings", True).gives(TIED),
        given(BASE, "workload.batch_size", 8).gives(EIGHT),
        given(BASE, "ownership", SHARDED.ownership).gives(SHARDED),
        given(BASE, "plan_id", "another").refuses("ENUM"),
        given(BASE, "liveness", ()).refuses("ENUM"),
        given(BASE, "architecture.heads", 4).refuses("UNDECLARED"),
        given(BASE, "weight_dtype.bits", 8).refuses("UNDECLARED"),
        given(BASE, "architecture.num_key_value_heads", 8).refuses("INCONSISTENT"),
        given(BASE, "weight_dtype", "bf16").refuses("INCONSISTENT"),
        given(BASE, "architecture.num_key_value_heads", 7).refuses("DIVIS"),
        given(BASE, "workload.visible_rows", 8192).refuses("INCONSISTENT"),
        given(BASE, "weight_dtype", "bf17").refuses("ENUM"),
    ),
    wrong=(
        Wrong(
            "rebuilt",
            _rebuilt,
            "The scenario forgot what else the base declares. Replace one field and keep every other.",
        ),
        Wrong(
            "unchanged",
            lambda base, path, value: base,
            "This is the base. Records do not change in place: replace gives a new one, return that.",
        ),
    ),
    shapes={
        "base": (BASE, TINY),
        ("path", "value"): (
            ("architecture.num_key_value_heads", 4),
            ("architecture.vocab_size", 50),
            ("workload.batch_size", 5),
            ("workload.logits", "all"),
            ("activation_dtype", "fp32"),
            ("workload.heads", 3),
        ),
    },
)

outputs = Exercise(
    "outputs",
    points=2,
    minutes=8,
    lines=2,
    module="sensitivity",
    hints=(
        "costlib.estimate.estimate(plan).ledgers is a dict of ledgers, each with a .total.",
        "Not every plan declares enough for all six: take those of LEDGERS that are there.",
    ),
    cases=(
        given(BASE).gives(
            {
                "parameters": 8_030_261_248,
                "weight payload": 16_060_522_496,
                "forward": 65_971_748_339_712,
                "cache payload": 536_870_912,
                "attention transfer": 140_123_308_032,
                "weight payload per rank": 16_060_522_496,
            }
        ),
        given(SHARDED).gives(
            {
                "parameters": 8_030_261_248,
                "weight payload": 16_060_522_496,
                "forward": 65_971_748_339_712,
                "cache payload": 536_870_912,
                "attention transfer": 140_123_308_032,
                "weight payload per rank": 2_007_565_312,
            }
        ),
        given(TINY).gives(
            {
                "parameters": 1_128,
                "weight payload": 2_256,
                "forward": 8_960,
                "cache payload": 128,
                "attention transfer": 1_408,
            }
        ),
        given(BARE).gives({"parameters": 502_560, "weight payload": 1_005_120}),
    ),
    wrong=(
        Wrong(
            "zero-for-missing",
            _changed("outputs", lambda right, plan: {name: right.get(name, 0) for name in NAMES}),
            "A ledger that the plan does not supply is 0 here. Zero is a claim; leave the name out.",
        ),
        Wrong(
            "payload-for-count",
            _changed("outputs", lambda right, plan: {**right, "parameters": right["weight payload"]}),
            "parameters holds bytes. It counts scalars; the payload is the next row.",
        ),
        Wrong(
            "with-backward",
            _changed(
                "outputs",
                lambda right, plan: {name: value * (3 if name == "forward" else 1) for name, value in right.items()},
            ),
            "forward holds forward and backward. An inference plan has no backward pass.",
        ),
    ),
    shapes={"plan": (BASE, FP32, TIED, TINY, BARE, SHARDED)},
)

ratios = Exercise(
    "ratios",
    points=3,
    minutes=8,
    lines=3,
    module="sensitivity",
    hints=(
        "Call outputs for both plans.",
        "Fraction(after, before) for every name that both have: exact, and 1 where nothing moved.",
    ),
    cases=(
        given(BASE, MQA).gives(
            row(
                Fraction(1_903_169, 1_960_513),
                Fraction(1_903_169, 1_960_513),
                Fraction(30_540_277, 31_457_781),
                Fraction(1, 8),
                Fraction(2_081, 2_088),
                Fraction(1_903_169, 1_960_513),
            )
        ),
        given(BASE, TIED).gives(
            row(Fraction(1_832_257, 1_960_513), Fraction(1_832_257, 1_960_513), 1, 1, 1, Fraction(1_832_257, 1_960_513))
        ),
        given(BASE, FP32).gives(row(1, 2, 1, 1, 1, 2)),
        given(BASE, EIGHT).gives(row(1, 1, 8, 8, 8, 1)),
        given(BASE, EIGHT_BIT).gives(row(1, 1, 1, Fraction(1, 2), Fraction(521, 522), 1)),
        given(BASE, SHARDED).gives(row(1, 1, 1, 1, 1, Fraction(1, 8))),
        given(BARE, TINY).gives({"parameters": Fraction(1_128, 502_560), "weight payload": Fraction(1_128, 502_560)}),
    ),
    wrong=(
        Wrong(
            "upside-down",
            _changed("ratios", lambda right, base, scenario: {name: 1 / value for name, value in right.items()}),
            "Upside down: the scenario goes above, the base below.",
        ),
        Wrong(
            "relative-change",
            _changed("ratios", lambda right, base, scenario: {name: value - 1 for name, value in right.items()}),
            "This is the relative change. A ratio of 1 says that nothing moved; yours says 0.",
        ),
    ),
    shapes={"base": (BASE, FP32, TIED), "scenario": (MQA, EIGHT, EIGHT_BIT, SHARDED)},
)

delta = Exercise(
    "kv_parameter_delta",
    points=2,
    minutes=6,
    lines=2,
    module="sensitivity",
    hints=(
        "Which two matrices of a block change, and by how many columns of d?",
        "L * 2 * d * d_h * (heads - H_kv); refuse first, require_divides(heads, H_q, ...).",
    ),
    cases=(
        given(RUNNING, 32).gives(805_306_368),
        given(RUNNING, 1).gives(-234_881_024),
        given(RUNNING, 8).gives(0),
        given(ODD, 6).gives(46_080),
        given(TOY, 4).gives(128),
        given(RUNNING, 7).refuses("DIVIS"),
    ),
    wrong=(
        Wrong(
            "k-without-v",
            lambda arch, heads: arch.num_layers * arch.hidden_size * arch.head_dim * (heads - arch.num_key_value_heads),
            "Exactly half: both k and v change.",
        ),
        Wrong(
            "one-layer",
            lambda arch, heads: 2 * arch.hidden_size * arch.head_dim * (heads - arch.num_key_value_heads),
            "Right for one layer. Multiply by num_layers.",
        ),
        Wrong(
            "new-total",
            lambda arch, heads: 2 * arch.num_layers * arch.hidden_size * arch.head_dim * heads,
            "These are all the scalars of k and v. Asked for is the difference to what was there.",
        ),
        Wrong(
            "q-and-o-too",
            lambda arch, heads: 4
            * arch.num_layers
            * arch.hidden_size
            * arch.head_dim
            * (heads - arch.num_key_value_heads),
            "Twice too much: q and o keep their width, H_q * d_h.",
        ),
    ),
    shapes={"arch": (RUNNING, ODD, TOY, W_70B, W_MOE), "heads": (1, 2, 4)},
)

run = Exercise(
    "run",
    points=3,
    minutes=8,
    lines=5,
    module="sensitivity",
    hints=(
        "A case is (id, patches) and patches a tuple of (path, value). Anything but one patch is refused.",
        "results[case_id] = ratios(base, patched(base, *patches[0])): always from the base, never from the last scenario.",
    ),
    cases=(
        given(BASE, ()).gives({}),
        given(BASE, (("fp32", (("weight_dtype", "fp32"),)),)).gives({"fp32": row(1, 2, 1, 1, 1, 2)}),
        given(
            BASE, (("eight", (("workload.batch_size", 8),)), ("fp32", (("weight_dtype", "fp32"),)))
        ).gives({"eight": row(1, 1, 8, 8, 8, 1), "fp32": row(1, 2, 1, 1, 1, 2)}),
        given(
            BASE, (("fp8", (("cache_dtype", "fp8"),)), ("eight", (("workload.batch_size", 8),)))
        ).gives({"fp8": row(1, 1, 1, Fraction(1, 2), Fraction(521, 522), 1), "eight": row(1, 1, 8, 8, 8, 1)}),
        given(BASE, (("both", (("weight_dtype", "fp32"), ("cache_dtype", "fp8"))),)).refuses("INCONSISTENT"),
        given(BASE, (("none", ()),)).refuses("INCONSISTENT"),
        given(BASE, (("no-op", (("weight_dtype", "bf16"),)),)).refuses("INCONSISTENT"),
    ),
    wrong=(
        Wrong(
            "piled-up",
            lambda base, cases: _piled_up(base, cases),
            "The second case starts from the first one's scenario. Every case starts from the base.",
        ),
        Wrong(
            "last-case-only",
            _changed("run", lambda right, base, cases: dict([*right.items()][-1:])),
            "Only the last case is there. Keep the results of all.",
        ),
    ),
    shapes={
        "base": (BASE, TINY),
        "cases": (
            (("a", (("workload.batch_size", 3),)), ("b", (("workload.logits", "all"),))),
            (("a", (("weight_dtype", "fp32"),)), ("b", (("activation_dtype", "fp32"),)), ("c", (("cache_dtype", "fp8"),))),
            (("a", (("weight_dtype", "fp32"), ("cache_dtype", "fp8"))),),
        ),
    },
)


def _piled_up(base, cases):
    from solutions import sensitivity

    results, current = sensitivity.run(base, cases), base
    for case_id, patches in cases:
        current = sensitivity.patched(current, *patches[0])
        results[case_id] = sensitivity.ratios(base, current)
    return results


LAB = Lab("12", "Sensitivity and papers", "sensitivity", (patched, outputs, ratios, delta, run, *PAPERS))
