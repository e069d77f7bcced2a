"""Which bytes are there together? Lifetimes under one cut, a coefficient from its bricks, a policy by its price."""

from fractions import Fraction

from costlib.plots import FILL, HATCH, INK, QUIET, RULE, Picture, axes
from costlib.units import GIB, TB, fixed

PLATE = {"facecolor": "white", "edgecolor": "none", "pad": 1.2}


def gib(value, digits: int = 2) -> str:
    return f"{fixed(Fraction(value, GIB), digits)} GiB"


def tera(flops) -> str:
    return f"{fixed(Fraction(flops, TB), 1)} TFLOP"


def intervals(objects, first: dict[str, list[int]], title: str, scale: int) -> Picture:
    """Objects as bars from birth to death above, the bytes live at each instant below.

    `first` maps the two orders, the one that releases first in front, to the bytes live at instants
    0, 1, 2, ...; `scale` instants are one step of the axis.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 4.1), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1.1, 1))
    figure.suptitle(title, x=0.01, ha="left", fontsize=12.5, fontweight="bold", color=INK)
    for y, item in enumerate(objects):
        span = [(item.birth / scale, (item.death - item.birth) / scale)]
        above.broken_barh(span, (-y - 0.36, 0.72), facecolor=FILL[y % 6], hatch=HATCH[y % 6], edgecolor=QUIET, linewidth=0.8)
        x = (item.birth if item.death - item.birth > scale else item.death) / scale + 0.06
        above.text(x, -y, gib(item.bytes, 0), va="center", fontsize=10, color=INK, bbox=PLATE)
    above.set_yticks([-y for y in range(len(objects))], [item.name for item in objects], fontsize=10.5, color=INK)
    above.set_ylim(0.6 - len(objects), 0.6)
    release, birth = ([value / GIB for value in live] for live in first.values())
    below.stairs(release, [t / scale for t in range(len(release) + 1)], fill=True, color=FILL[1], edgecolor=INK, linewidth=0.9)
    peaks = []
    for (name, live), marker, face in zip(first.items(), "os", (INK, "white")):
        most = max(live)
        at = live.index(most) / scale
        peaks.append(f"{name} {gib(most, 0)} at {at}")
        below.plot([at, at], [0, most / GIB], color=INK, linewidth=1, linestyle="-" if marker == "o" else (0, (3, 2)))
        below.plot([at], [most / GIB], marker, color=INK, markerfacecolor=face, markersize=6)
        ha, offset = ("right", (-7, 11)) if marker == "o" else ("left", (9, 2))
        place = {"xytext": offset, "textcoords": "offset points", "ha": ha, "va": "center"}
        below.annotate(f"{name}:\n{gib(most, 0)} at {at}", (at, most / GIB), **place, fontsize=10, color=INK)
        above.axvline(at, color=INK, linewidth=1, linestyle="-" if marker == "o" else (0, (3, 2)))
    below.set(xlim=(0, max(o.death for o in objects) / scale), ylim=(0, max(birth) * 1.2))
    below.set_xlabel("event of the step", fontsize=10.5, color=INK)
    below.set_ylabel("live, GiB", fontsize=10.5, color=INK)
    for ax in (above, below):
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color(RULE)
        ax.tick_params(colors=QUIET, labelsize=10)
    return Picture(figure, "lifetimes of objects and the bytes live together; peaks: " + ", ".join(peaks))


def bricks(rows: dict[str, tuple[int, int]], title: str) -> Picture:
    """Rows of a layer as bricks, each laid where the one before ends: bytes per bsh left, per bas^2 right."""
    figure, (linear, square) = axes(title, width=5.0, height=0.25 * len(rows) + 1.1, columns=2)
    totals = [0, 0]
    for y, (name, sizes) in enumerate(rows.items()):
        part = ("attention", "mlp", "norms").index(name.partition(".")[0])
        for column, (ax, size) in enumerate(zip((linear, square), sizes)):
            if not size:
                continue
            left = totals[column]
            ax.barh(-y, size, left=left, height=0.74, color=FILL[part], hatch=HATCH[part], edgecolor=QUIET, linewidth=0.7)
            ax.text(left + size + (0.6, 0.12)[column], -y, f"{size}", va="center", fontsize=10, color=INK, bbox=PLATE)
            totals[column] += size
    linear.set_yticks([-y for y in range(len(rows))], rows, fontsize=10, color=INK)
    square.set_yticks([])
    for ax, total, unit in zip((linear, square), totals, ("b s h", "b a s$^2$")):
        ax.axvline(total, color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
        ax.text(total, 0.75, f"{total} ", va="bottom", ha="right", fontsize=11.5, fontweight="bold", color=INK)
        ax.set(xlim=(0, total * 1.12), ylim=(0.5 - len(rows), 1.7))
        ax.set_xlabel(f"bytes per {unit}", fontsize=10.5, color=INK)
    return Picture(figure, f"{len(rows)} saved objects add up to {totals[0]} bytes per bsh and {totals[1]} bytes per bas^2")


def crossing(linear, square, cross, upto: int, title: str) -> Picture:
    """Bytes of two kinds of rows over the sequence length, and the length at which they weigh the same."""
    figure, ax = axes(title, width=5.2, height=3.0)
    xs = range(0, upto + 1, upto // 64)
    for name, size, color, style in (("linear rows", linear, FILL[0], "-"), ("score rows", square, INK, (0, (5, 2)))):
        ax.plot(xs, [size(s) / GIB for s in xs], color=color, linewidth=2, linestyle=style)
        ax.text(upto * 1.01, size(upto) / GIB, f"{name}\n{gib(size(upto))}", va="center", fontsize=10.5, color=INK)
    level = linear(1) * cross / GIB
    ax.plot([float(cross)], [float(level)], "o", color=INK, markersize=6)
    place = {"xytext": (-6, 44), "textcoords": "offset points", "ha": "center"}
    arrow = {"arrowstyle": "-", "color": QUIET, "shrinkB": 4}
    said = f"equal at\n{fixed(cross, 1)} tokens"
    ax.annotate(said, (float(cross), float(level)), **place, fontsize=10.5, color=INK, arrowprops=arrow)
    ax.set(xlim=(0, upto * 1.24), ylim=(0, square(upto) / GIB * 1.1), xticks=range(0, upto + 1, upto // 4))
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_xlabel("tokens in a sequence", fontsize=10.5, color=INK)
    ax.set_ylabel("one layer keeps, GiB", fontsize=10.5, color=INK)
    reading = f"saved bytes of one layer: linear rows {gib(linear(upto))} and score rows {gib(square(upto))} at {upto:,} tokens"
    return Picture(figure, f"{reading}, equal at {fixed(cross, 1)}")


def policies(points: dict[str, tuple[int, int, int, int]], title: str) -> Picture:
    """Each policy at its retained bytes (filled) and its peak (hollow), against the FLOPs that it adds."""
    figure, ax = axes(title, width=5.4, height=3.2)
    widest = max(peak for _, peak, _, _ in points.values()) / GIB
    tallest = max(flops for _, _, flops, _ in points.values()) / TB
    for name, (kept, peak, flops, moved) in points.items():
        x, top, y = kept / GIB, peak / GIB, flops / TB
        ax.plot([x, top], [y, y], color=QUIET, linewidth=1.4)
        ax.plot([top], [y], "o", color=INK, markerfacecolor="white", markersize=7)
        ax.plot([x], [y], "o", color=INK, markersize=7 if x < top else 4)
        price = f"moves {gib(moved, 0)}" if moved else f"adds {tera(flops)}" if flops else "adds nothing"
        sizes = gib(peak) if kept == peak else f"keeps {gib(kept)}, peak {gib(peak)}"
        beside, right = not flops and x < widest / 2, x > widest / 2  # nothing stands right of a policy that adds no work
        offset = (9, -10) if beside else (6, 10) if right else (0, 10)
        place = {"xytext": offset, "textcoords": "offset points", "ha": "right" if right else "left"}
        ax.annotate(f"{name}: {price}\n{sizes}", (top if beside or right else x, y), **place, fontsize=10, color=INK)
    ax.set(xlim=(-2, widest * 1.05), ylim=(-tallest * 0.13, tallest * 1.3))
    ax.set_xlabel("on the device, GiB: filled retained, hollow peak", fontsize=10.5, color=INK)
    ax.set_ylabel("work added, TFLOP a step", fontsize=10.5, color=INK)
    said = "; ".join(
        f"{name} keeps {gib(kept)}, peak {gib(peak)}, adds {tera(flops)}, moves {gib(moved)}"
        for name, (kept, peak, flops, moved) in points.items()
    )
    return Picture(figure, said)
