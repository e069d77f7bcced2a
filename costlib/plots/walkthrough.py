"""Where does a number stand? The order in which functions are written, and numbers along a scale of factors."""

from costlib.plots import FILL, INK, QUIET, RULE, Picture, axes, blank


def call_order(steps: dict[str, tuple[str, ...]], calls: dict[str, tuple[str, ...]]) -> Picture:
    """Functions in the order of writing, an arc from each to every later one that calls it."""
    names = [name for step in steps.values() for name in step]
    users = [name for name in names if calls[name]]
    figure, ax = axes(f"{len(users)} of {len(names)} functions call an earlier one", 4.6, 0.27 * len(names) + 0.5)
    blank(ax)
    row = {name: -i for i, name in enumerate(names)}
    for i, (step, group) in enumerate(steps.items()):
        top, bottom = row[group[0]] + 0.5, row[group[-1]] - 0.5
        ax.axhspan(bottom, top, color="#eef1f4" if i % 2 else "white", zorder=0)
        ax.text(0, (top + bottom) / 2, step, va="center", fontsize=10, color=QUIET)
    for name in names:
        weight = "bold" if name in users else "normal"
        ax.text(0.8, row[name], name, va="center", fontsize=10, color=INK, fontweight=weight)
        for used in calls[name]:
            ends = {"shrinkA": 0, "shrinkB": 0, "connectionstyle": "arc3,rad=-0.42"}
            arrow = {"arrowstyle": "->", "color": FILL[0], "linewidth": 1.2, **ends}
            ax.annotate("", (2.95, row[name]), (2.95, row[used]), arrowprops=arrow)
    ax.set(xlim=(-0.1, 4.1), ylim=(0.6 - len(names), 0.6))
    said = "; ".join(f"{name} calls {', '.join(calls[name])}" for name in users)
    return Picture(figure, f"functions in the order of writing: {said}")


def along_a_scale(points: dict, title: str, axis: str, show, marks: tuple = ()) -> Picture:
    """Named positive numbers as dots on a logarithmic axis, one row each; `marks` are drawn as upright lines."""
    figure, ax = axes(title, 4.8, 0.27 * len(points) + 1.0)
    values = [float(value) for value in points.values()]
    low, high = min(values), max(values)
    span = high / low
    ax.set_xscale("log")
    ax.set(xlim=(low / span**0.06, high * span**0.95), ylim=(-len(points) + 0.4, 0.7), yticks=[])
    ax.spines["left"].set_visible(False)
    for mark in marks:
        ax.axvline(float(mark), color=QUIET, linewidth=1, linestyle="--", zorder=1)
    for i, (name, value) in enumerate(points.items()):
        ax.plot([low / span**0.06, float(value)], [-i, -i], color=RULE, linewidth=0.8, zorder=1)
        ax.plot([float(value)], [-i], "o", color=FILL[0], markersize=6)
        plate = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        label = f"{show(value)}  {name}"
        ax.text(float(value) * span**0.035, -i, label, va="center", fontsize=10, color=INK, bbox=plate)
    ax.minorticks_off()
    ax.set_xlabel(axis, fontsize=10.5, color=INK)
    return Picture(figure, f"{axis}: " + "; ".join(f"{name} {show(value)}" for name, value in points.items()))
