"""Why is there no one cost? Seven numbers on seven axes, three calls to scale, and who needs which contract."""

from fractions import Fraction

from costlib.plots import FILL, HATCH, INK, QUIET, RULE, Picture, axes, blank, box
from costlib.units import fixed


def _end(value) -> Fraction:
    """The least of 1, 2, 5, 10, 20, 50, ... that is at least the value."""
    power = Fraction(10)
    while value <= power:
        power /= 10
    while value > power * 10:
        power *= 10
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def seven(title: str, rows) -> Picture:
    """One bar on its own axis for each (statement, value, unit, exact); a value that is no more than a bound is hatched."""
    figure, ax = axes(title, width=4.6, height=0.78 * len(rows) + 0.5)
    blank(ax)
    for i, (statement, value, unit, exact) in enumerate(rows):
        y, end = -i, _end(value)
        length = float(value / end)
        ax.plot([0, 1], [y - 0.24] * 2, color=RULE, linewidth=1)
        ax.add_patch(box(0, y - 0.24, length, 0.28, FILL[0] if exact else FILL[3], HATCH[0] if exact else "///"))
        ax.text(0, y + 0.1, statement, fontsize=10.5, color=INK)
        shown = f"{fixed(value, 2)} {unit}"
        ax.text(1, y + 0.1, shown if exact else f"at least {shown}", fontsize=10.5, fontweight="bold", ha="right", color=INK)
        for x, label in ((0, "0"), (1, f"{fixed(end)} {unit}")):
            ax.text(x, y - 0.27, label, fontsize=10, color=QUIET, ha="right" if x else "left", va="top")
        if not exact:
            ax.annotate("", (1, y - 0.1), (length, y - 0.1), arrowprops={"arrowstyle": "->", "color": QUIET})
    ax.set(xlim=(-0.01, 1.01), ylim=(0.45 - len(rows), 0.4))
    said = "; ".join(f"{statement} {'' if exact else 'at least '}{fixed(value, 2)} {unit}" for statement, value, unit, exact in rows)
    return Picture(figure, f"{len(rows)} bars, each on an axis of its own: {said}")


def calls(workloads) -> Picture:
    """Query rows against visible rows of each workload, drawn to one scale."""
    figure, ax = axes("One model, three rectangles of attention", width=4.8, height=2.7)
    blank(ax)
    widest, y, said = max(w.visible_rows for w in workloads), 0.0, []
    for i, w in enumerate(workloads):
        wide, tall = w.visible_rows / widest, max(w.new_rows / widest, 0.004)
        words = f"{w.phase}: {w.new_rows:,} query row{'s' * (w.new_rows > 1)}, {w.visible_rows:,} visible"
        y -= tall
        ax.add_patch(box(0, y, wide, tall, FILL[i * 2 % 6], HATCH[i * 2 % 6]))
        beside = wide < 0.5
        ax.text(wide + 0.02 if beside else 0, y + tall / 2 if beside else y - 0.015, words, fontsize=10.5, color=INK,
                va="center" if beside else "top")
        y -= 0.04
        said.append(words)
    ax.set(xlim=(-0.01, 1.01), ylim=(y - 0.05, 0.02), aspect="equal")
    return Picture(figure, f"rectangles to one scale, rows of queries down, visible rows across: {'; '.join(said)}")


CHAIN = {  # box -> (column, row, what it is made from)
    "graph": (0, 0, ()),
    "workload": (0, 1, ()),
    "numerical state": (0, 2, ()),
    "liveness and\nownership": (0, 3, ()),
    "operations and\ntransfers": (0, 4, ()),
    "observation": (0, 5, ()),
    "logical\ntensors": (1, 0.5, ("graph", "workload")),
    "resident and\npeak bytes": (2, 2, ("logical\ntensors", "numerical state", "liveness and\nownership")),
    "arithmetic,\ntraffic, messages": (2, 3.5, ("logical\ntensors", "operations and\ntransfers")),
    "residual and\nits explanation": (2, 5, ("arithmetic,\ntraffic, messages", "observation")),
}


def chain() -> Picture:
    """Six contracts at the left, and what can be derived once those with an arrow to it are declared."""
    figure, ax = axes("Six contracts, one chain", width=5.4, height=4.4)
    blank(ax)
    wide, tall, step = 1.55, 0.74, 2.2
    for name, (column, row, sources) in CHAIN.items():
        face = (FILL[5], FILL[3], FILL[1])[column]
        ax.add_patch(box(step * column, -row, wide, tall, face))
        ax.text(step * column + wide / 2, -row + tall / 2, name, ha="center", va="center", fontsize=10, color=INK)
        for source in sources:
            c, r, _ = CHAIN[source]
            below = c == column
            start = (step * c + wide / 2, -r) if below else (step * c + wide, -r + tall / 2)
            end = (step * column + wide / 2, -row + tall) if below else (step * column, -row + tall / 2)
            ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": QUIET, "linewidth": 1.2})
    ax.set(xlim=(-0.05, 2 * step + wide + 0.05), ylim=(-5.1, tall + 0.05))
    said = "; ".join(f"{name} from {', '.join(sources)}" for name, (_, _, sources) in CHAIN.items() if sources)
    return Picture(figure, f"boxes and arrows: {said}".replace("\n", " "))


def needs(title: str, contracts, table: dict) -> Picture:
    """A dot where changing a contract moves a ledger: {ledger: contracts that move it}, a column per contract."""
    figure, ax = axes(title, width=5.4, height=0.34 * len(table) + 1.2)
    ax.spines[:].set_visible(False)
    for y, (ledger, moved) in enumerate(table.items()):
        ax.plot([0, len(contracts) - 1], [-y, -y], color=RULE, linewidth=0.8)
        for x, contract in enumerate(contracts):
            hit = contract in moved
            ax.plot([x], [-y], "o", markersize=10 if hit else 3, color=FILL[0] if hit else RULE)
    ax.set_yticks([-y for y in range(len(table))], table, fontsize=10, color=INK)
    ax.xaxis.tick_top()
    ax.set_xticks(range(len(contracts)), contracts, fontsize=10, color=INK, rotation=28, ha="left")
    ax.tick_params(length=0)
    ax.set(xlim=(-0.5, len(contracts) - 0.5), ylim=(0.5 - len(table), 0.6))
    said = "; ".join(f"{ledger}: {', '.join(moved)}" for ledger, moved in table.items())
    return Picture(figure, f"which contracts move which ledger: {said}")
