"""What does a number format look like? Its bits, its reach and its steps; and what a fused multiply-add rounds."""

from fractions import Fraction
from math import log10

from costlib.plots import FILL, HATCH, INK, ON, QUIET, RULE, Picture, axes, blank, box
from costlib.units import scientific

FIELDS = (("sign", 4), ("exponent", 0), ("mantissa", 3))  # and each field's place in FILL


def strips(formats: dict[str, tuple[int, int, int]]) -> Picture:
    """One cell per stored bit; formats are name: (stored bits, exponent bits, mantissa bits)."""
    figure, ax = axes("A format is a way to spend its bits", height=0.5 * len(formats) + 0.8)
    blank(ax)
    for y, (name, (stored, exponent, mantissa)) in enumerate(formats.items()):
        ax.text(-0.6, -y, name, ha="right", va="center", fontsize=10.5, color=INK)
        left = 0
        for (field, at), width in zip(FIELDS, (1, exponent, mantissa)):
            for bit in range(left, left + width):
                ax.add_patch(box(bit, -y - 0.36, 0.9, 0.72, FILL[at], HATCH[at] if field == "sign" else ""))
            if field != "sign":
                said = f"{width} {field}" if width > 6 else f"{width}"
                plate = {"facecolor": FILL[at], "edgecolor": "none", "pad": 1.5}
                ax.text(left + width / 2 - 0.05, -y, said, ha="center", va="center", fontsize=10, color=ON[at], bbox=plate)
            left += width
        for bit in range(left, stored):
            ax.add_patch(box(bit, -y - 0.36, 0.9, 0.72, "white"))
        if left < stored:
            ax.text((left + stored) / 2, -y, f"{stored - left} stored, not used", ha="center", va="center",
                    fontsize=10, color=QUIET, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})
    ax.text(0, 0.55, "1 sign bit first", fontsize=10, color=INK)
    ax.set(xlim=(-4.4, 32.2), ylim=(-len(formats) + 0.4, 1.0))
    said = "; ".join(f"{name} 1 + {e} + {m} of {stored}" for name, (stored, e, m) in formats.items())
    return Picture(figure, f"sign, exponent and mantissa bits of the bits that are stored, {said}")


def reach(limits: dict[str, tuple[Fraction, Fraction, Fraction]], value: Fraction) -> Picture:
    """Powers of ten that formats cover; limits are name: (smallest, smallest normal, largest), one value marked."""
    figure, ax = axes("Exponent bits buy reach", height=0.42 * len(limits) + 1.1)
    for y, (name, (smallest, normal, largest)) in enumerate(limits.items()):
        low, middle, high = (log10(x) for x in (smallest, normal, largest))
        ax.add_patch(box(low, -y - 0.28, middle - low, 0.56, "white", "////"))
        ax.add_patch(box(middle, -y - 0.28, high - middle, 0.56, FILL[1]))
        short_of_it = smallest > value
        said = f"{scientific(smallest, 1)} to {scientific(largest, 1)}" if short_of_it else scientific(largest, 1)
        ax.text(high + 0.8, -y, said, va="center", fontsize=10, color=INK)
        if not short_of_it:
            ax.text(low - 0.8, -y, scientific(smallest, 1), ha="right", va="center", fontsize=10, color=INK)
    ax.vlines(log10(value), -len(limits) + 0.4, 0.5, color=INK, linewidth=1.4, linestyle="--")
    ax.text(log10(value), 0.62, scientific(value, 0), ha="center", fontsize=10.5, color=INK)
    ax.set_yticks([-y for y in range(len(limits))], limits, fontsize=10.5, color=INK)
    ax.set(xlim=(-57, 50), ylim=(-len(limits) + 0.4, 1.1), xticks=range(-40, 41, 20))
    ax.set_xlabel("power of ten (blue: all mantissa bits; hatched: fewer)", fontsize=10.5, color=INK)
    said = "; ".join(f"{name} {scientific(low, 1)} to {scientific(high, 1)}" for name, (low, _, high) in limits.items())
    return Picture(figure, f"positive numbers that each format reaches, {said}; {scientific(value, 0)} is marked")


def steps(sizes: dict[str, Fraction], upto: Fraction) -> Picture:
    """Every number of each format from 1 to `upto`; sizes are name: distance of neighbours there."""
    figure, ax = axes("Mantissa bits buy fine steps", height=0.42 * len(sizes) + 1.1)
    for y, (name, step) in enumerate(sizes.items()):
        ticks = [float(1 + i * step) for i in range(int((upto - 1) / step) + 1)]
        ax.hlines(-y, 1, float(upto), color=RULE, linewidth=0.8)
        ax.vlines(ticks, -y - 0.26, -y + 0.26, color=FILL[0], linewidth=1.3)
        ax.text(float(upto) + 0.004, -y, f"1/{step.denominator:,}", va="center", fontsize=10.5, color=INK)
    ax.set_yticks([-y for y in range(len(sizes))], sizes, fontsize=10.5, color=INK)
    ax.set(xlim=(0.995, float(upto) + 0.04), ylim=(-len(sizes) + 0.4, 0.6), xticks=[1, 1.125, float(upto)])
    ax.set_xlabel("numbers that exist just above 1, and the distance of neighbours", fontsize=10.5, color=INK)
    said = ", ".join(f"{name} 1/{step.denominator:,}" for name, step in sizes.items())
    return Picture(figure, f"distance between neighbouring numbers just above 1: {said}")


def fused(apart, together) -> Picture:
    """One multiply-add as two instructions and as one, with what each answers."""
    figure, ax = axes("One instruction, two FLOPs, one rounding", height=2.5)
    blank(ax)
    rows = ((0, "two\ninstructions", ("×", "round", "+", "round"), apart), (-1.5, "one FMA", ("×", "+", "round"), together))
    for y, name, parts, answer in rows:
        ax.text(0, y, name, va="center", fontsize=10.5, color=INK)
        x = 2.3
        if "FMA" in name:
            ax.add_patch(box(x - 0.25, y - 0.58, 3.9, 1.16, FILL[5]))
        for part in parts:
            plain = part == "round"
            width = 1.3 if plain else 0.8
            ax.add_patch(box(x, y - 0.38, width, 0.76, "white" if plain else FILL[0]))
            ax.text(x + width / 2, y, part, ha="center", va="center", fontsize=10 if plain else 14,
                    color=INK if plain else "white")
            x += width + 0.35
        ax.annotate("", (8.0, y), (x - 0.25, y), arrowprops={"arrowstyle": "->", "color": INK})
        ax.text(8.15, y, f"{answer}", va="center", fontsize=11, fontweight="bold", color=INK)
    ax.set(xlim=(-0.1, 10.6), ylim=(-2.2, 0.75))
    return Picture(figure, f"multiply, round, add, round gives {apart}; one fused multiply-add rounds once and gives {together}")
