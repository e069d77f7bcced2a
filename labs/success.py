"""Are you done with Part I? The Warmup Guide's eight criteria, each judged where a program can judge it.

Whose answers are judged is said in the table: the reference's under LAB_MODULE=solutions, else yours.
What only a listener can judge says "say it" and where it is derived, never "ok".
"""

import html
from dataclasses import dataclass
from fractions import Fraction

from costlib.domain import ManifestError, Size, checker, require
from costlib.exercise import NoSolutions, Unfilled, lab_module, reference, using
from costlib.units import fixed, scientific
from labs import judge, loop, spec

TOLERANCE = Fraction(1, 10)  # of the exact count
NEAR = Fraction(1, 20)  # how near a rough estimate must come to a mistake's total to get its name
BUDGET = "budget --chip H100 --chips 1000 --days 30"


@dataclass(frozen=True)
class Shape:
    """One training step to count by hand; its rows are written down, not computed by what is judged."""

    name: str
    sizes: tuple  # B, T, d_model, d_ff, n_heads, n_kv_heads, d_head, n_layers, vocab (0: blocks alone)
    rows: dict  # FLOPs of the step, as training_flops_exact names them

    @property
    def total(self) -> int:
        return sum(self.rows.values())


def _shape(name, sizes, *rows):
    return Shape(name, sizes, dict(zip(("mlp", "attn_proj", "attn_seq", "head"), rows, strict=True)))


SHAPES = {
    "A": _shape(
        "7B, multi-head", (4, 2048, 4096, 11008, 32, 32, 128, 32, 32000),
        212_755_499_974_656, 105_553_116_266_496, 26_388_279_066_624, 6_442_450_944_000,
    ),
    "B": _shape(
        "8B, grouped heads", (1, 8192, 4096, 14336, 32, 8, 128, 32, 128256),
        277_076_930_199_552, 65_970_697_666_560, 105_553_116_266_496, 25_821_343_383_552,
    ),
    "C": _shape(
        "70B, blocks alone", (2, 4096, 8192, 28672, 64, 8, 128, 80, 0),
        2_770_769_301_995_520, 593_736_278_999_040, 263_882_790_666_240, 0,
    ),
    "D": _shape(
        "the 8B, long context", (1, 131072, 4096, 14336, 32, 8, 128, 32, 128256),
        4_433_230_883_192_832, 1_055_531_162_664_960, 27_021_597_764_222_976, 413_141_494_136_832,
    ),
    "E": _shape(
        "1B, large vocabulary", (8, 1024, 2048, 8192, 32, 8, 64, 16, 128256),
        39_582_418_599_936, 8_246_337_208_320, 3_298_534_883_328, 12_910_671_691_776,
    ),
    "F": _shape(
        "8.5B, wide heads", (1, 32768, 3072, 24576, 16, 16, 256, 28, 256000),
        1_246_846_185_897_984, 277_076_930_199_552, 1_477_743_627_730_944, 154_618_822_656_000,
    ),
}


def shapes() -> loop.table:
    """The six training steps to count by hand, a column each."""
    names = ("B", "T", "d_model", "d_ff", "n_heads", "n_kv_heads", "d_head", "n_layers", "vocab")
    rows = zip(names, *(shape.sizes for shape in SHAPES.values()))
    return loop.table(("", *SHAPES), [("model", *(shape.name for shape in SHAPES.values())), *rows])


def known_mistakes(shape: Shape) -> dict:
    """Name -> (total, text): lab 01's wrong models of the step and of 6ND, then a row left out or put in."""
    lab, *sizes = spec.load("01"), *shape.sizes
    found = {
        wrong.name: (sum(wrong.model(*sizes[:-1], vocab=sizes[-1]).values()), wrong.text)
        for wrong in lab["training_flops_exact"].wrong
    }
    for wrong in lab["training_flops"].wrong:
        found.setdefault(wrong.name, (shape.total * Fraction(wrong.model(1, 1), 6), wrong.text))
    return found | {
        "no-sequence-term": (
            shape.total - shape.rows["attn_seq"],
            "This is 6ND alone: 12 B T^2 n_heads d_head per layer, attention's sequence term, is missing.",
        ),
        "no-head": (shape.total - shape.rows["head"], "The output head is missing: 6 B T d_model vocab."),
        "table-multiplied": (
            shape.total + shape.rows["head"],
            "The input table counts as a matrix here. It is looked up and multiplies nothing; only the head does.",
        ),
    }


def judge_estimate(key: str, estimate: int) -> tuple[str, str]:
    """("ok" or "wrong", why) for one estimate; a wrong one is named where a known mistake comes near it."""
    require(key in SHAPES, "ENUM", f"shape {key!r}; the shapes are {', '.join(SHAPES)}")
    checker(Size)(f"by_hand[{key!r}]", estimate)
    shape = SHAPES[key]
    ratio = f"{fixed(Fraction(estimate, shape.total), 3)} of the exact count"
    if abs(estimate - shape.total) <= TOLERANCE * shape.total:
        return "ok", ratio
    known = known_mistakes(shape)
    off = {name: abs(estimate / Fraction(total) - 1) for name, (total, _) in known.items()}
    near = sorted((name for name in off if off[name] <= NEAR), key=off.get)[:2]
    why = " Or ".join(f"{name}: {known[name][1]}" for name in near)
    return "wrong", f"{ratio}, near {why}" if why else f"{ratio}, near no known mistake: count row by row."


def _functions(outcomes, whose):
    right, of = [o.exercise.name for o in outcomes if o.status == "right"], len(outcomes)
    wrong = [o.exercise.name for o in outcomes if o.status == "wrong"]
    empty = of - len(right) - len(wrong)
    said = f"{whose}: {len(right)} of {of} right" + (f", {empty} not written" if empty else "")
    if wrong:
        return "wrong", f"{said}; wrong: {', '.join(wrong)}"
    return ("not yet" if empty else "ok"), said


def _reference(lab, broken):
    if broken:
        return "not checked", "the file below cannot be read"
    try:
        outcomes = [judge.try_body(lab, exercise, reference(lab.path(exercise))) for exercise in lab.exercises]
    except NoSolutions:
        return "not checked", "this edition has no solutions"
    return _functions(outcomes, "the reference")


def _written(lab, broken):
    if broken:
        return "wrong", broken
    return _functions([judge.judge(lab, exercise) for exercise in lab.exercises], "yours")


def _budget(mode, broken):
    """Print the report on the functions in force, and compare it with the reference's, line by line."""
    if broken:
        return "not checked", "the file above cannot be read"
    from costlib import __main__ as program, report  # not needed by the loop, which waits for nothing

    args = program.parse(BUDGET.split())
    try:
        with using(mode), judge.time_limit(judge.SECONDS):
            lines = report.budget_text(args).splitlines()
    except Unfilled as empty:
        return "not yet", str(empty).partition("\n")[0]
    except (Exception, SystemExit) as error:  # whatever a learner's function may raise
        return "wrong", f"it ended in {type(error).__name__}: {str(error)[:120]}"
    said = f"{'the reference' if mode == 'solutions' else 'yours'}: {len(lines)} lines from `python -m costlib budget`"
    try:
        with using("solutions"):
            wanted = report.budget_text(args).splitlines()
    except NoSolutions:
        return "ok", said
    other = [line.strip() for line, right in zip(lines, wanted) if line != right]
    return ("wrong", f"it prints, but not the reference's figures: {other[0]}") if other else ("ok", said)


def _by_hand(by_hand):
    rows = [(key, *judge_estimate(key, estimate)) for key, estimate in by_hand.items()]
    right, wrong = sum(state == "ok" for _, state, _ in rows), [key for key, state, _ in rows if state == "wrong"]
    if not rows:
        return "not tried yet", f"six shapes wait, {' '.join(SHAPES)}", rows
    said = f"{right} of {len(SHAPES)} within 10 %" + (f"; wrong: {', '.join(wrong)}" if wrong else "")
    return ("wrong" if wrong else "ok" if right == len(SHAPES) else "not yet"), said, rows


@dataclass(frozen=True)
class Spoken:
    """A criterion that only a listener can judge, and the section to say it from."""

    criterion: str
    chapter: str
    page: str
    label: str

    def __str__(self):
        return f"{self.chapter}, chapters/warmup/{self.page}.md, section {self.label}"

    @property
    def link(self):
        """The same as a link; every page of Part I lies in one folder."""
        return f"<a href='{self.page}.html#{self.label}'>{self.chapter}</a>"


WHITEBOARD = Spoken(
    "6ND on a whiteboard in two minutes, and why backward is twice forward", "Chapter 5", "05_6nd", "w-ch5-add"
)
BREAKS = Spoken("the four breaks of 6ND, each with its error", "Chapter 7", "07_breaks", "w-ch7")
CACHE = Spoken("a K/V cache, and what GQA saves in concurrent requests", "Chapter 9", "09_kv_cache", "w-ch9-serving")
MEMO = Spoken(
    "a plan for a cluster of yours, and where it leaves Chinchilla's split", "Chapter 11", "11_money", "w-ch11-memo"
)
SPOKEN = (WHITEBOARD, BREAKS, CACHE, MEMO)


class checklist:
    """The eight criteria with their states: ok, wrong, not yet, not tried yet, not checked or say it.

    `by_hand` maps shapes to your estimates of a step's FLOPs, {"A": 35 * 10**13}; an estimate is a
    whole number above 0, and counts as right within 10 % of the exact one, the boundary included.
    `whose` is "costlib" (yours) or "solutions"; by default as LAB_MODULE says, yours where it is not set.
    """

    def __init__(self, by_hand: dict | None = None, whose: str | None = None):
        mode = whose or lab_module() or "costlib"
        require(mode in ("costlib", "solutions"), "ENUM", f"whose = {whose!r}; allowed: costlib, solutions")
        by_hand = {} if by_hand is None else by_hand
        kind = type(by_hand)
        require(kind is dict, "TYPE", f'by_hand is a dict such as {{"A": 35 * 10**13}}, not a {kind.__name__}')
        lab, broken = spec.load("01"), ""
        try:
            if mode == "costlib":
                loop.fresh(lab)
        except loop.BrokenFile as error:
            broken = str(error).partition("\n")[0]
        asked = _written(lab, broken) if mode == "costlib" else ("not checked", f"LAB_MODULE={mode}: yours were not asked")
        *hand, estimates = _by_hand(by_hand)
        self.rows = [
            ("the reference passes every case of lab 01", *_reference(lab, broken)),
            ("your fifteen functions pass them", *asked),
            ("the budget report prints", *_budget(mode, broken)),
            _spoken(WHITEBOARD),
            ("FLOPs of a step by hand, six shapes", *hand),
            *map(_spoken, (BREAKS, CACHE, MEMO)),
        ]
        self.estimates = [(key, scientific(by_hand[key], 2), state, why) for key, state, why in estimates]

    @property
    def wrong(self) -> bool:
        """Whether something that was tried is wrong."""
        return any(state == "wrong" for _, state, _ in self.rows)

    def _tables(self):
        yield loop.table(("criterion", "state", "seen"), self.rows, numbered=True)
        if self.estimates:
            yield loop.table(("shape", "yours, FLOP", "state", "why"), self.estimates)

    def __repr__(self):
        return "\n\n".join(map(repr, self._tables()))

    def _repr_html_(self):
        text = "".join(table._repr_html_() for table in self._tables())
        for spoken in SPOKEN:
            text = text.replace(html.escape(str(spoken)), spoken.link)
        return text


def _spoken(spoken):
    return spoken.criterion, "say it", str(spoken)


def parse_by_hand(words) -> dict:
    """`["A=3.5e14", "C=4e15"]` as typed in a terminal, to exact integers: {"A": 350000000000000, ...}."""
    found = {}
    for word in words:
        key, _, text = word.partition("=")
        try:
            value = Fraction(text)
            found[key] = value.numerator if value.denominator == 1 else value
        except (ValueError, ZeroDivisionError):
            raise ManifestError("TYPE", f"{word!r} is no estimate; write A=3.5e14") from None
    return found
