"""The papers' part of lab 12, M 0x0B: which numbers may be compared, and what one replay costs."""

from fractions import Fraction

from costlib.evidence import AXES, Contract
from costlib.evidence import SOURCES, registry
from labs.spec import Exercise, Wrong, given

A16, KAPLAN, HOFFMANN, PALM, MEGATRON, KORTHIKANTI = registry()
GPT3, MT_NLG, RUNNING_REPLAY = registry("numbers")
REPLAYED_ONCE = GPT3.replace(contract_id="gpt-3-once", recomputation="core attention, charged once", value="0.9 %")
NORMALIZED = RUNNING_REPLAY.replace(
    contract_id="gpt-3-on-running",
    source="the same formula on the running manifest",
    value="another",
    numeric_comparison_allowed=True,
    normalized_to_common_manifest=True,
    target_case_id="train-full-4k",
)


def _gate(*found):
    return {"status": "not comparable" if found else "comparable", "open": list(found)}


def _changed(name, change):
    """The reference's answer changed by a mistake."""

    def model(*args, **kwargs):
        from solutions import papers

        return change(getattr(papers, name)(*args, **kwargs), *args, **kwargs)

    return model


def _equal_is_enough(a, b):
    return _gate(*(axis for axis in AXES if getattr(a, axis) != getattr(b, axis)))


def _unit_alone(a, b):
    from solutions import papers

    right = papers.comparison_gate(a, b)
    return _gate() if a.output is not None and a.output == b.output else right


def _words_in_common(a, b):
    def words(contract, axis):
        return set((getattr(contract, axis) or "").replace(",", "").split())

    return _gate(*(axis for axis in AXES if not words(a, axis) & words(b, axis)))


gate = Exercise(
    "comparison_gate",
    points=3,
    minutes=10,
    lines=3,
    hints=(
        "Walk over AXES and collect the ones that are open.",
        "An axis that neither source fixes is open too: two unknowns are not equal.",
        "[axis for axis in AXES if getattr(a, axis) is None or getattr(a, axis) != getattr(b, axis)].",
    ),
    cases=(
        given(GPT3, RUNNING_REPLAY).gives(_gate("architecture", "phase_rows", "recomputation", "output")),
        given(MT_NLG, RUNNING_REPLAY).gives(_gate("architecture", "phase_rows", "recomputation", "output")),
        given(GPT3, MT_NLG).gives(_gate("architecture")),
        given(GPT3, REPLAYED_ONCE).gives(_gate("recomputation")),
        given(NORMALIZED, RUNNING_REPLAY).gives(_gate()),
        given(MEGATRON, MEGATRON).gives(_gate()),
        given(KAPLAN, KAPLAN).gives(_gate("recomputation")),
        given(KAPLAN, HOFFMANN).gives(_gate("parameters", "phase_rows", "operations", "recomputation", "output")),
        given(A16, A16).gives(_gate(*AXES)),
        given(A16, MEGATRON).gives(_gate(*AXES)),
        given(GPT3, "4.17 %").refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "unknown-equals-unknown",
            _equal_is_enough,
            "Two axes that nobody fixed passed as equal. What a source leaves open stays open.",
        ),
        Wrong(
            "unit-alone",
            _unit_alone,
            "The outputs have the same unit, and you stopped there. Eight more axes decide.",
        ),
        Wrong(
            "looks-alike",
            _words_in_common,
            "Contracts that share a few words passed. An axis is equal or open; there is no nearly.",
        ),
        Wrong(
            "first-axis-only",
            _changed("comparison_gate", lambda right, a, b: {**right, "open": right["open"][:1]}),
            "You stopped at the first open axis. Whoever normalizes needs all of them.",
        ),
    ),
    shapes={
        "a": (*registry(), *registry("numbers"), NORMALIZED),
        "b": (*registry(), *registry("numbers"), REPLAYED_ONCE),
    },
    module="papers",
)

SIX = registry()
OTHER = Contract(contract_id="a-blog", source="a page")

missing = Exercise(
    "missing_contracts",
    points=2,
    minutes=8,
    lines=5,
    hints=(
        "First refuse what does not belong: an id outside SOURCES, an id twice.",
        "Then [name for name in SOURCES if name not in ids].",
    ),
    cases=(
        given(SIX).gives([]),
        given(SIX[1:]).gives(["a16"]),
        given(SIX[::-1]).gives([]),
        given((SIX[5], SIX[2], SIX[0])).gives(["kaplan", "palm", "megatron"]),
        given(()).gives(list(SOURCES)),
        given((*SIX[:5], OTHER)).refuses("UNDECLARED"),
        given((*SIX[:5], SIX[0])).refuses("INCONSISTENT"),
    ),
    wrong=(
        Wrong(
            "counted",
            lambda contracts: [] if len(contracts) >= 1 else list(SOURCES),
            "You asked whether there is anything. Six particular sources must be there, by id.",
        ),
        Wrong(
            "alphabetical",
            lambda contracts: sorted({*SOURCES} - {c.contract_id for c in contracts}, reverse=True),
            "The ids come in the order of SOURCES.",
        ),
        Wrong(
            "present-ones",
            lambda contracts: [name for name in SOURCES if name in {c.contract_id for c in contracts}],
            "These are the ones that are there. Asked for are those that are not.",
        ),
    ),
    shapes={"contracts": (SIX[:3], SIX[3:], SIX[::2], SIX[1::2], SIX[:1], (*SIX[:2], SIX[1]), (OTHER,))},
    module="papers",
)


def _model(s, h, v, L):
    return 3 * (24 * L * s * h**2 + 4 * L * s**2 * h + 2 * s * h * v)


replay = Exercise(
    "replay_overhead",
    points=4,
    minutes=15,
    lines=2,
    hints=(
        "The numerator: replays times two products of 2 s^2 h each, in L layers.",
        "The denominator is three times one forward: L (24 s h^2 + 4 s^2 h) + 2 s h v.",
        "Fraction(replays * 4 * L * s**2 * h, 3 * (L * (24 * s * h**2 + 4 * s**2 * h) + 2 * s * h * v)).",
    ),
    cases=(
        # s / (18h) over 1 + s / (6h) + v / (12hL), for one replay, with both sides times 36hL
        given(2048, 12288, 51200, 96, 1).gives(Fraction(2 * 96 * 2048, 36 * 12288 * 96 + 6 * 96 * 2048 + 3 * 51200)),
        given(2048, 12288, 51200, 96, 3).gives(Fraction(6 * 96 * 2048, 36 * 12288 * 96 + 6 * 96 * 2048 + 3 * 51200)),
        given(2048, 20480, 51200, 105, 1).gives(Fraction(2 * 105 * 2048, 36 * 20480 * 105 + 6 * 105 * 2048 + 3 * 51200)),
        given(2048, 20480, 51200, 105, 3).gives(Fraction(6 * 105 * 2048, 36 * 20480 * 105 + 6 * 105 * 2048 + 3 * 51200)),
        given(4096, 4096, 128256, 32, 1).gives(Fraction(1024, 23007)),
        given(1, 1, 1, 1, 1).gives(Fraction(2, 45)),
        given(56, 96, 1009, 3, 2).gives(Fraction(224, 4801)),
        given(4096, 4096, 128256, 32, 0).gives(Fraction(0)),
        given(4096, 4096, 128256, 32, -1).refuses("NEG"),
        given(4096, 0, 128256, 32, 1).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "no-head",
            lambda s, h, v, L, replays: Fraction(replays * 4 * L * s**2 * h, _model(s, h, 0, L)),
            "The head is missing below the line: it is part of the model FLOPs.",
        ),
        Wrong(
            "over-one-forward",
            lambda s, h, v, L, replays: Fraction(replays * 12 * L * s**2 * h, _model(s, h, v, L)),
            "You divided by one forward pass. Model FLOPs are forward and backward, three times that.",
        ),
        Wrong(
            "over-hardware-flops",
            lambda s, h, v, L, replays: Fraction(
                replays * 4 * L * s**2 * h, _model(s, h, v, L) + replays * 4 * L * s**2 * h
            ),
            "The replay is in the denominator too. Added work is compared with model FLOPs, which leave it out.",
        ),
        Wrong(
            "whole-block",
            lambda s, h, v, L, replays: Fraction(
                replays * L * (24 * s * h**2 + 4 * s**2 * h), _model(s, h, v, L)
            ),
            "You replayed whole blocks. Selected is core attention: Q K^T and P V.",
        ),
        Wrong(
            "half-the-products",
            lambda s, h, v, L, replays: Fraction(replays * 2 * L * s**2 * h, _model(s, h, v, L)),
            "One of the two products is missing: Q K^T and P V are both run again.",
        ),
    ),
    shapes={
        "s": (56, 2048, 4096, 8192),
        "h": (96, 4096, 12288),
        "v": (1009, 32000, 51200),
        "L": (3, 32, 96),
        "replays": (0, 1, 3),
    },
    module="papers",
)

PAPERS = (gate, missing, replay)
