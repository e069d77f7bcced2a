"""Where do a training step's bytes lie? On one device stage by stage, and layer by layer through time."""

from fractions import Fraction

from costlib.plots import FILL, HATCH, INK, ON, QUIET, RULE, Picture, axes, box
from costlib.units import GB, fixed


def gigabytes(value, digits: int = 1) -> str:
    return f"{fixed(Fraction(value, GB), digits)} GB"


def devices(variants: dict, parts: dict[str, str], capacity: int, title: str) -> Picture:
    """One bar per variant, cut into the parts of its ledger of bytes, against what one device has."""
    figure, ax = axes(title, width=5.6, height=0.6 * len(variants) + 1.4)
    longest = max(ledger.total for ledger in variants.values())
    for y, (name, ledger) in enumerate(variants.items()):
        left = 0
        for i, path in enumerate(parts):
            value = ledger[path]
            ax.barh(-y, value, left=left, height=0.62, color=FILL[i], hatch=HATCH[i], edgecolor="white", linewidth=0.8)
            if value > longest * 0.1:
                plate = {"facecolor": FILL[i], "edgecolor": "none", "pad": 1}
                said = fixed(Fraction(value, GB))
                ax.text(left + value / 2, -y, said, ha="center", va="center", fontsize=10, color=ON[i], bbox=plate)
            left += value
        beyond = max(left, capacity)  # a total never stands on the line of the capacity
        ax.text(beyond + longest * 0.015, -y, gigabytes(left), va="center", fontsize=10.5, fontweight="bold", color=INK)
    ax.axvline(capacity, color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
    ax.text(capacity, 0.52, f" one device has {gigabytes(capacity, 0)}", va="bottom", fontsize=10, color=INK)
    ax.set_yticks([-y for y in range(len(variants))], variants, fontsize=10.5, color=INK)
    ax.set(xlim=(0, longest * 1.17), ylim=(0.5 - len(variants), 0.95), xticks=[])
    ax.spines["bottom"].set_visible(False)
    handles = [box(0, 0, 1, 1, FILL[i], HATCH[i]) for i in range(len(parts))]
    figure.legend(handles, parts.values(), loc="outside lower left", ncols=len(parts), fontsize=10, frameon=False)
    said = "; ".join(f"{name}: {gigabytes(ledger.total)}" for name, ledger in variants.items())
    return Picture(figure, f"bytes of one device that has {gigabytes(capacity, 0)}: {said}")


def timeline(curves: dict[str, list[int]], title: str) -> Picture:
    """Bytes alive at every layer visit of a step, layers up and down again; every curve's peak is marked."""
    figure, ax = axes(title, width=5.4, height=3.1)
    top = max(map(max, curves.values()))
    for i, (name, alive) in enumerate(curves.items()):
        color = (FILL[1], FILL[0], FILL[2])[i % 3]
        edges = range(len(alive) + 1)
        ax.stairs([value / GB for value in alive], edges, fill=True, color=color, edgecolor=INK, linewidth=0.6)
        peak = max(alive)
        at = alive.index(peak) + 0.5
        ax.plot([at], [peak / GB], "o", color=INK, markersize=5, clip_on=False)
        plate = {"facecolor": "white", "edgecolor": RULE, "pad": 2}
        text = f"{name}\npeak {gigabytes(peak)}"
        if i and peak > top / 3:  # room for it inside its own area
            ax.text(at, peak / GB / 2, text, ha="center", va="center", fontsize=10.5, color=INK, bbox=plate)
        else:
            side, offset = ("center", (-2, 9)) if i else ("left", (8, 2))
            place = {"xytext": offset, "textcoords": "offset points", "ha": side}
            ax.annotate(text, (at, peak / GB), **place, fontsize=10.5, color=INK, bbox=plate)
    half = len(next(iter(curves.values()))) // 2
    ax.axvline(half, color=QUIET, linewidth=0.8, linestyle=(0, (2, 3)))
    ax.set(xlim=(0, 2 * half), ylim=(0, top / GB * 1.22))
    ax.set_xticks([0, half, 2 * half], ["first layer", "last layer", "first layer"])
    ax.yaxis.set_major_formatter("{x:,.0f}")
    ax.set_xlabel("forward pass, then backward pass", fontsize=10.5, color=INK)
    ax.set_ylabel("activations alive, GB", fontsize=10.5, color=INK)
    said = "; ".join(f"{name}: peak {gigabytes(max(alive))}" for name, alive in curves.items())
    return Picture(figure, f"bytes of activations alive through one step, {said}")
