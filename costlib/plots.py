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
        buffer = io.BytesIO()
        self.figure.savefig(
            buffer, format="png", dpi=160, facecolor="white", bbox_inches="tight", metadata={"Software": None}
        )
        return buffer.getvalue()


def _axes(title, width=6.2, height=3.2, columns=1):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(1, columns, squeeze=False)[0]
    figure.suptitle(title, x=0.01, ha="left", fontsize=12.5, fontweight="bold", color=INK)
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color(RULE)
        ax.tick_params(colors=QUIET, labelsize=10)
    return figure, axes if columns > 1 else axes[0]


def _blank(ax):
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def output_grid(m: int, k: int, n: int) -> Picture:
    """A (m x k) @ (k x n) product as three grids, one output and its dot product picked out."""
    figure, ax = _axes(f"{m * n} outputs, each a dot product of length {k}", height=3.4)
    _blank(ax)
    row, column = 1, 2
    gap = 1.4
    grids = (
        ("A", f"{m} x {k}", 0, 0, m, k, lambda i, j: i == row),
        ("B", f"{k} x {n}", k + gap, 0, k, n, lambda i, j: j == column),
        ("C", f"{m} x {n}", k + n + 2 * gap, 0, m, n, lambda i, j: (i, j) == (row, column)),
    )
    for name, size, left, top, rows, columns, picked in grids:
        for i in range(rows):
            for j in range(columns):
                hit = picked(i, j)
                ax.add_patch(
                    _box(left + j, -(top + i) - 1, 0.92, 0.92, FILL[0] if hit else "white", "" if hit else None)
                )
        ax.text(left + columns / 2, 0.5, f"{name}, {size}", ha="center", fontsize=11, color=INK)
    ax.text(k + gap / 2 - 0.05, -m / 2, "@", ha="center", va="center", fontsize=13, color=INK)
    ax.text(k + n + 1.5 * gap - 0.05, -m / 2, "=", ha="center", va="center", fontsize=13, color=INK)
    ax.text(
        0,
        -max(m, k) - 0.9,
        f"the dark output: {k} multiplies + {k} adds = {2 * k} FLOPs\n"
        f"all outputs: {m} x {n} x {2 * k} = {2 * m * k * n} FLOPs",
        va="top",
        fontsize=11,
        color=INK,
    )
    ax.set(xlim=(-0.3, k + 2 * n + 2 * gap + 0.3), ylim=(-max(m, k) - 2.6, 1.2), aspect="equal")
    return Picture(
        figure,
        f"{m} x {k} times {k} x {n}: one output is a row of A with a column of B, {2 * k} FLOPs; "
        f"{m * n} outputs make {2 * m * k * n} FLOPs",
    )


def _box(x, y, width, height, face, hatch=None):
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, facecolor=face, edgecolor=QUIET, linewidth=0.8, hatch=hatch or None)


def tile_efficiency(tile: int, extents: tuple[int, ...], upto: int) -> Picture:
    """Share of issued work that is useful, over one extent that is rounded up to tiles."""
    figure, ax = _axes("One row past a full tile costs a whole tile", height=3.0)
    xs = range(1, upto + 1)
    ax.plot(xs, [100 * x / (-(-x // tile) * tile) for x in xs], color=FILL[0], linewidth=1.2)
    for x in extents:
        issued = -(-x // tile) * tile
        y = 100 * x / issued
        ax.plot([x], [y], "o", color=INK, markersize=5)
        ax.annotate(
            f"{x:,} runs as {issued:,}\n{percent(Fraction(x, issued))} useful",
            (x, y),
            xytext=(6, -30 if y > 80 else -4),
            textcoords="offset points",
            fontsize=10,
            color=INK,
        )
    ax.set(ylim=(0, 105), xlim=(0, upto * 1.18), xticks=range(0, upto + 1, 2 * tile))
    ax.set_xlabel(f"extent of one axis (tile {tile})", fontsize=10.5, color=INK)
    ax.set_ylabel("useful share of issued FLOPs, %", fontsize=10.5, color=INK)
    said = ", ".join(f"{x:,} is {percent(Fraction(x, -(-x // tile) * tile))} useful" for x in extents)
    return Picture(figure, f"useful share against extent, a sawtooth with its teeth at multiples of {tile}; {said}")


def area(ledger, title: str, names: dict[str, str]) -> Picture:
    """Rows of a ledger as areas, the largest beside the rest; `names` picks and labels the rows."""
    figure, ax = _axes(title, height=3.6)
    _blank(ax)
    rows = sorted(((ledger[path], label) for path, label in names.items()), reverse=True)
    total, left = sum(value for value, _ in rows), 0.0
    small = [row for row in rows if row[0] < total * 0.002]
    shown = [row for row in rows if row not in small]
    drawn = 0
    for column in (shown[:1], shown[:0:-1]):
        wide, bottom = sum(value for value, _ in column) / total, 0.0
        for value, label in column:
            tall = value / total / wide
            ax.add_patch(_box(left, bottom, wide, tall, FILL[drawn % 6], HATCH[drawn % 6]))
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
    figure, ax = _axes(title, height=0.62 * len(variants) + 1.2)
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
    ax.spines["bottom"].set_visible(False)
    handles = [_box(0, 0, 1, 1, FILL[i], HATCH[i]) for i in range(len(parts))]
    figure.legend(handles, parts.values(), loc="outside lower left", ncols=len(parts), fontsize=10, frameon=False)
    said = "; ".join(f"{name}: {short(ledger.total, 3)}" for name, ledger in variants.items())
    return Picture(figure, f"{unit} by part, {said}")


def shares(variants: dict, path: str, rest: str, title: str) -> Picture:
    """One bar of fixed length per ledger: the share at a path against everything else."""
    figure, ax = _axes(title, height=0.6 * len(variants) + 1.0)
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
    ax.spines["bottom"].set_visible(False)
    handles = [_box(0, 0, 1, 1, FILL[2], HATCH[2]), _box(0, 0, 1, 1, FILL[1])]
    figure.legend(handles, (path, rest), loc="outside lower left", ncols=2, fontsize=10, frameon=False)
    said = "; ".join(f"{name}: {percent(ledger.share(path))}" for name, ledger in variants.items())
    return Picture(figure, f"share of {path}, {said}")
