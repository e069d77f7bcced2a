"""Which axes of a tensor follow the run, and which does the file fix? A trace, and a matrix laid on its side."""

from costlib.plots import FILL, HATCH, INK, QUIET, Picture, axes, blank, box

RUN_AXES = ("B", "S_new", "S_k", "rows")  # set by the workload; every other axis is set by the manifest


def _cells(ax, right, y, names, shape):
    """A shape as cells that end at `right`, dark where the run sets the axis."""
    wide = 0.68
    for i, (name, extent) in enumerate(zip(names, shape)):
        dark = name in RUN_AXES
        x = right - (len(shape) - i) * wide
        ax.add_patch(box(x, y - 0.36, wide, 0.72, FILL[0] if dark else "white"))
        size = 9.5 if extent < 1000 else 8.5
        ax.text(x + wide / 2, y, f"{extent}", ha="center", va="center", fontsize=size, color="white" if dark else INK)


def trace(runs: dict, stored: dict) -> Picture:
    """Every tensor of a call, a row each, with its shape in each run.

    runs: title -> {tensor: (axes, shape, part of the model that made it)}; stored: part -> stored shape.
    """
    names = list(dict.fromkeys(name for seen in runs.values() for name in seen))
    figure, ax = axes("The run sets the dark axes, the manifest the others", height=0.29 * len(names) + 1.1)
    blank(ax)
    rights = [5.2 + 2.95 * (i + 1) for i in range(len(runs))]
    for right, title in zip(rights, runs):
        ax.text(right, 0.95, title, ha="right", va="center", fontsize=10.5, fontweight="bold", color=INK)
    ax.text(4.95, 0.95, "stored weight", ha="right", va="center", fontsize=10.5, fontweight="bold", color=INK)
    for y, name in enumerate(names):
        part = next(seen[name][2] for seen in runs.values() if name in seen)
        ax.text(0, -y, name, va="center", fontsize=10, color=INK)
        ax.text(4.95, -y, f"{list(stored[part])}" if part else "", ha="right", va="center", fontsize=9.5, color=QUIET)
        for right, seen in zip(rights, runs.values()):
            if name not in seen:
                ax.text(right, -y, "not made", ha="right", va="center", fontsize=10, color=QUIET)
                continue
            _cells(ax, right, -y, *seen[name][:2])
    ax.set(xlim=(0, rights[-1] + 0.05), ylim=(-len(names) + 0.4, 1.4))
    said = "; ".join(
        f"{title}: " + ", ".join(f"{name} {list(seen[name][1])}" for name in ("token ids", "scores", "logits"))
        for title, seen in runs.items()
    )
    return Picture(figure, f"{len(names)} tensors of a call with their shapes; {said}; the stored weights are the same in all")


def _matrix(ax, left, top, values, scale):
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            patch = box(left + j, top - i - 1, 1, 1, FILL[0])
            patch.set_alpha(float(abs(value)) / scale)
            ax.add_patch(patch)


def _frame(ax, left, top, rows, columns):
    patch = box(left, top - rows, columns, rows, "none")
    patch.set(edgecolor=INK, linewidth=2.2)
    ax.add_patch(patch)


def orientation(matrices: dict) -> Picture:
    """Matrices at least as wide as high, each in its frame and then transposed; label -> (array, what came of it)."""
    figure, ax = axes("A square frame cannot tell a matrix from its transpose", height=3.1)
    blank(ax)
    left = 0.0
    for name, (array, outcome) in matrices.items():
        rows, columns = array.shape
        scale = abs(array).max()
        second = left + columns + 1.5
        for x, values, word in ((left, array, "as declared"), (second, array.T, "transposed")):
            _matrix(ax, x, 0, values, scale)
            _frame(ax, x, 0, rows, columns)
            ax.text(x, 0.35, word, fontsize=10, color=QUIET)
        if columns > rows:
            ax.add_patch(box(second, -columns, rows, columns - rows, "none", HATCH[2]))
        ax.text(left, 1.5, f"{name}, frame {list(array.shape)}", fontsize=11, fontweight="bold", color=INK)
        ax.text(left, -max(array.shape) - 0.5, outcome, va="top", fontsize=10.5, color=INK)
        left = second + max(columns, rows) + 2.2
    tallest = max(max(array.shape) for array, _ in matrices.values())
    ax.set(xlim=(-0.2, left - 1.2), ylim=(-tallest - 2.7, 2.3), aspect="equal")
    return Picture(figure, "; ".join(f"{name} {list(array.shape)}, transposed: {' '.join(said.split())}" for name, (array, said) in matrices.items()))
