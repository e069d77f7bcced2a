"""What does one product look like? Its outputs, and what tiles do to its extents."""

from fractions import Fraction

from costlib.plots import FILL, INK, Picture, axes, blank, box
from costlib.units import percent


def output_grid(m: int, k: int, n: int) -> Picture:
    """A (m x k) @ (k x n) product as three grids, one output and its dot product picked out."""
    figure, ax = axes(f"{m * n} outputs, each a dot product of length {k}", height=3.4)
    blank(ax)
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
                    box(left + j, -(top + i) - 1, 0.92, 0.92, FILL[0] if hit else "white", "" if hit else None)
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


def tile_efficiency(tile: int, extents: tuple[int, ...], upto: int) -> Picture:
    """Share of issued work that is useful, over one extent that is rounded up to tiles."""
    figure, ax = axes("One row past a full tile costs a whole tile", height=3.0)
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
