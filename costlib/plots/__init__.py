"""What do words not show? Figures with one message each, readable without colour, drawn from ledgers.

Every function gives a Picture: a PNG on a white plate, and in a terminal a sentence that says what
is drawn. matplotlib is imported when the first figure is drawn.
"""

import io
from fractions import Fraction

from costlib.units import percent, short

INK, QUIET, RULE = "#1b1f24", "#5b6470", "#c4cad1"
FILL = ("#2f6f9f", "#9cc3de", "#e9b44c", "#f3dca8", "#7d8792", "#d8dce1")
HATCH = ("", "", "///", "", "...", "")
ON = ("white", INK, INK, INK, "white", INK)


class Picture:
    """A finished figure. `reading` says in words what it shows."""

    def __init__(self, figure, reading: str):
        self.figure, self.reading = figure, reading

    def __repr__(self):
        return f"[figure] {self.reading}"

    def _repr_png_(self):
        from PIL import Image

        drawn, small = io.BytesIO(), io.BytesIO()
        self.figure.savefig(drawn, format="png", dpi=160, facecolor="white", bbox_inches="tight")
        Image.open(drawn).convert("RGB").quantize(128).save(small, "png", optimize=True)  # a third of the bytes
        return small.getvalue()


def axes(title, width=6.2, height=3.2, columns=1):
    """A figure with its message as the title, and one panel, or a row of them, without a frame."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    panels = figure.subplots(1, columns, squeeze=False)[0]
    figure.suptitle(title, x=0.01, ha="left", fontsize=12.5, fontweight="bold", color=INK)
    for ax in panels:
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color(RULE)
        ax.tick_params(colors=QUIET, labelsize=10)
    return figure, panels if columns > 1 else panels[0]


def blank(ax):
    """Take ticks and spines away: for drawings that measure nothing along an axis."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def box(x, y, width, height, face, hatch=None):
    """A filled rectangle in the course's line, to be added as a patch."""
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, facecolor=face, edgecolor=QUIET, linewidth=0.8, hatch=hatch or None)


def area(ledger, title: str, names: dict[str, str]) -> Picture:
    """Rows of a ledger as areas, the largest beside the rest; `names` picks and labels the rows."""
    figure, ax = axes(title, height=3.6)
    blank(ax)
    rows = sorted(((ledger[path], label) for path, label in names.items()), reverse=True)
    total, left = sum(value for value, _ in rows), 0.0
    small = [row for row in rows if row[0] < total * 0.002]
    shown = [row for row in rows if row not in small]
    drawn = 0
    for column in (shown[:1], shown[:0:-1]):
        wide, bottom = sum(value for value, _ in column) / total, 0.0
        for value, label in column:
            tall = value / total / wide
            ax.add_patch(box(left, bottom, wide, tall, FILL[drawn % 6], HATCH[drawn % 6]))
            ax.text(
                left + wide / 2,
                bottom + tall / 2,
                f"{label}\n{value:,}\n{percent(Fraction(value, total))}",
                ha="center",
                va="center",
                fontsize=10,
                color=ON[drawn % 6],
                bbox={"facecolor": FILL[drawn % 6], "edgecolor": "none", "pad": 1.5},
            )
            bottom += tall
            drawn += 1
        left += wide
    if small:
        said = ", ".join(f"{label} {value:,}" for value, label in small)
        ax.text(0, -0.03, f"too small to draw: {said}", va="top", fontsize=10, color=INK)
    ax.set(xlim=(0, 1), ylim=(-0.1 if small else 0, 1))
    parts = ", ".join(f"{label} {percent(Fraction(value, total))}" for value, label in rows)
    return Picture(figure, f"areas in proportion to {ledger.unit}: {parts}")


def stacked(variants: dict, parts: dict[str, str], title: str, unit: str) -> Picture:
    """One bar per variant, cut into the named parts of its ledger, its total at the end."""
    figure, ax = axes(title, height=0.62 * len(variants) + 1.2)
    longest = max(ledger.total for ledger in variants.values())
    for y, (name, ledger) in enumerate(variants.items()):
        left = 0
        for i, path in enumerate(parts):
            value = ledger[path]
            ax.barh(-y, value, left=left, height=0.66, color=FILL[i], hatch=HATCH[i], edgecolor="white", linewidth=0.8)
            if value > longest * 0.09:
                ax.text(
                    left + value / 2,
                    -y,
                    short(value, 2),
                    ha="center",
                    va="center",
                    fontsize=9.5,
                    color=ON[i],
                    bbox={"facecolor": FILL[i], "edgecolor": "none", "pad": 1},
                )
            left += value
        ax.text(left + longest * 0.01, -y, short(ledger.total, 3), va="center", fontsize=10.5, fontweight="bold", color=INK)
    ax.set_yticks([-y for y in range(len(variants))], variants, fontsize=10.5, color=INK)
    ax.set(xlim=(0, longest * 1.17), xticks=[])
    ax.set_xlabel(unit, fontsize=10, color=QUIET, loc="right")
    ax.tick_params(axis="y", length=0)
    ax.spines["bottom"].set_visible(False)
    handles = [box(0, 0, 1, 1, FILL[i], HATCH[i]) for i in range(len(parts))]
    figure.legend(handles, parts.values(), loc="outside lower left", ncols=len(parts), fontsize=10, frameon=False)
    said = "; ".join(f"{name}: {short(ledger.total, 3)}" for name, ledger in variants.items())
    return Picture(figure, f"{unit} by part, {said}")


def shares(variants: dict, path: str, rest: str, title: str) -> Picture:
    """One bar of fixed length per ledger: the share at a path against everything else."""
    figure, ax = axes(title, height=0.6 * len(variants) + 1.0)
    for y, (name, ledger) in enumerate(variants.items()):
        share = float(ledger.share(path))
        ax.barh(-y, share, height=0.66, color=FILL[2], hatch=HATCH[2], edgecolor="white")
        ax.barh(-y, 1 - share, left=share, height=0.66, color=FILL[1], edgecolor="white")
        ax.text(
            max(share / 2, 0.05),
            -y,
            percent(ledger.share(path)),
            ha="center",
            va="center",
            fontsize=10.5,
            color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.2},
        )
    ax.set_yticks([-y for y in range(len(variants))], variants, fontsize=10.5, color=INK)
    ax.set(xlim=(0, 1), xticks=[])
    ax.tick_params(axis="y", length=0)
    ax.spines["bottom"].set_visible(False)
    handles = [box(0, 0, 1, 1, FILL[2], HATCH[2]), box(0, 0, 1, 1, FILL[1])]
    figure.legend(handles, (path, rest), loc="outside lower left", ncols=2, fontsize=10, frameon=False)
    said = "; ".join(f"{name}: {percent(ledger.share(path))}" for name, ledger in variants.items())
    return Picture(figure, f"share of {path}, {said}")
