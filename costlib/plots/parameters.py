"""Where do a model's parameters sit, along the way that a token takes?"""

from fractions import Fraction

from costlib.ledger import Ledger
from costlib.plots import FILL, HATCH, INK, QUIET, Picture, axes, blank, box
from costlib.units import percent


def along_the_way(ledger: Ledger, layers: int, title: str) -> Picture:
    """Input table, blocks and output head side by side, in area: each block is cut into its MLP and its attention.

    Rows needed: "input", "output", "blocks.mlp", "blocks.attn"; the rest is named and too small to draw.
    """
    figure, ax = axes(title, height=3.5)
    blank(ax)
    low = float(Fraction(ledger["blocks.mlp"], ledger["blocks.mlp"] + ledger["blocks.attn"]))
    start, one = float(ledger.share("input")), float(ledger.share("blocks")) / layers
    ax.add_patch(box(0, 0, start, 1, FILL[2], HATCH[2]))
    for i in range(layers):
        ax.add_patch(box(start + i * one, 0, one, low, FILL[0]))
        ax.add_patch(box(start + i * one, low, one, 1 - low, FILL[1]))
    ax.add_patch(box(start + layers * one, 0, float(ledger.share("output")), 1, FILL[2], HATCH[2]))

    def said(name, path):
        return f"{name} {ledger[path]:,}, {percent(ledger.share(path))}"

    rows = (
        (low / 2, FILL[0], "white", "MLP matrices", "blocks.mlp"),
        ((1 + low) / 2, FILL[1], INK, "attention matrices", "blocks.attn"),
    )
    for y, face, ink, name, path in rows:
        plate = {"facecolor": face, "edgecolor": "none", "pad": 3}
        ax.text(0.5, y, said(name, path), ha="center", va="center", fontsize=11, color=ink, bbox=plate)
    for x, side, name, path in ((0, "left", "input table", "input"), (1, "right", "output head", "output")):
        text = f"{name}\n{ledger[path]:,}\n{percent(ledger.share(path))}"
        ax.text(x, -0.04, text, ha=side, va="top", fontsize=10, color=INK)
    small = ledger["blocks.norms"] + ledger["final_norm"]
    ax.text(0.5, -0.04, f"{layers} blocks, first to last", ha="center", va="top", fontsize=10.5, color=INK)
    ax.text(0.5, -0.16, f"too small to draw:\nnorm scales {small:,}", ha="center", va="top", fontsize=10, color=QUIET)
    ax.set(xlim=(-0.005, 1.005), ylim=(-0.36, 1.01))
    named = {"input table": "input", "MLP matrices": "blocks.mlp", "attention matrices": "blocks.attn", "output head": "output"}
    parts = "; ".join(said(name, path) for name, path in named.items())
    return Picture(
        figure, f"areas in proportion to {ledger.unit}, {layers} blocks between two tables: {parts}; norm scales {small:,}"
    )
