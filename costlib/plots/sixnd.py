"""Why does backward cost twice forward? Three products that run over one box of multiply-adds."""

from costlib import napkin
from costlib.plots import FILL, INK, QUIET, Picture, axes, blank

DEPTH = (0.5, 0.4)  # where one step away from the reader goes: right and up
FACES = {"side": "X", "top": "W", "front": "Y"}  # m x k, k x n and m x n


def three_products(m: int, k: int, n: int) -> Picture:
    """Forward, dX and dW as boxes of m x k x n cubes; the faces are the matrices, the dark one is the result."""
    figure, panels = axes("Two faces in, the third face out: one box", height=3.3, columns=3)
    backward = napkin.linear_backward(m, k, n)
    products = (
        ("Y = X W", "front", f"k = {k}", napkin.matmul_flops(m, k, n)),
        ("dX = dY Wᵀ", "side", f"n = {n}", backward["dX"]),
        ("dW = Xᵀ dY", "top", f"m = {m}", backward["dW"]),
    )
    for ax, (formula, result, summed, flops) in zip(panels, products):
        blank(ax)
        _cuboid(ax, m, k, n, result)
        ax.text(0, -1.5, formula, fontsize=12, fontweight="bold", color=INK, va="top")
        ax.text(0, -2.6, f"adds up along {summed}\n{m * k * n} cubes\n{flops} FLOPs", fontsize=10.5, color=INK, va="top")
        ax.set(xlim=(-1.1, n + k * DEPTH[0] + 1.1), ylim=(-5.6, m + k * DEPTH[1] + 0.6), aspect="equal")
    said = "; ".join(
        f"{formula} fills the {result} face, adds up along {summed}, {flops} FLOPs"
        for formula, result, summed, flops in products
    )
    return Picture(figure, f"a box of {m} x {k} x {n} cubes, one a multiply-add, three times: {said}")


def _cuboid(ax, m, k, n, result):
    """The box with its three visible faces named, and its extents along three edges."""
    back = (k * DEPTH[0], k * DEPTH[1])
    faces = {
        "front": ((0, 0), (n, 0), (0, m), n, m),
        "top": ((0, m), (n, 0), back, n, k),
        "side": ((n, 0), back, (0, m), k, m),
    }
    for face, (origin, across, up, columns, rows) in faces.items():
        dark = face == result
        _face(ax, origin, across, up, columns, rows, FILL[0] if dark else FILL[5])
        name = FACES[face] if result == "front" else _with_d(face, result)
        x, y = (o + (a + u) / 2 for o, a, u in zip(origin, across, up))
        ax.text(x, y, name, ha="center", va="center", fontsize=12, fontweight="bold", color="white" if dark else INK)
    ax.text(n / 2, -0.15, "n", ha="center", va="top", fontsize=10.5, color=QUIET)
    ax.text(-0.25, m / 2, "m", ha="right", va="center", fontsize=10.5, color=QUIET)
    ax.text(n + back[0] / 2 + 0.4, back[1] / 2, "k", ha="left", va="top", fontsize=10.5, color=QUIET)


def _with_d(face, result):
    """Backward reads dY at the front and fills one of the other two faces with a gradient."""
    return ("d" if face in ("front", result) else "") + FACES[face]


def _face(ax, origin, across, up, columns, rows, colour):
    """A parallelogram ruled into columns and rows."""
    from matplotlib.patches import Polygon

    (x, y), (right, rise), (ux, uy) = origin, across, up
    corners = [(x, y), (x + right, y + rise), (x + right + ux, y + rise + uy), (x + ux, y + uy)]
    ax.add_patch(Polygon(corners, closed=True, facecolor=colour, edgecolor=QUIET, linewidth=1.2))
    for steps, (sx, sy), (lx, ly) in ((columns, across, up), (rows, up, across)):
        for i in range(1, steps):
            left, low = x + sx * i / steps, y + sy * i / steps
            ax.plot([left, left + lx], [low, low + ly], color=QUIET, linewidth=0.4)
