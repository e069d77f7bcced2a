"""How do a block's matrix products hang together? The flow from row to row, and what a mask leaves."""

from costlib.plots import FILL, INK, QUIET, Picture, axes, blank, box

WEIGHTS, ROWS, OTHER = (FILL[0], "white"), (FILL[2], INK), ("white", INK)  # rows times weights, rows times rows, no product


def _box(ax, x, y, width, kind, name, shape=""):
    """A named step centred at (x, y), its shape below its name."""
    face, ink = kind
    tall = 0.86 if shape else 0.56
    ax.add_patch(box(x - width / 2, y - tall / 2, width, tall, face))
    said = f"{name}\n{shape}" if shape else name
    ax.text(x, y, said, ha="center", va="center", fontsize=10.5, color=ink)


def _arrow(ax, start, end):
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 1.1, "shrinkA": 0, "shrinkB": 0})


def flow(arch) -> Picture:
    """One block of a gated model with RMSNorm and rotary positions: every step, every product's shape, for T rows."""
    d, d_q, d_kv, d_ff = arch.hidden_size, arch.d_q, arch.d_kv, arch.intermediate_size
    heads, kv_heads, d_h = arch.num_attention_heads, arch.num_key_value_heads, arch.head_dim
    figure, ax = axes(f"One block: {d:,} numbers a row in, {d:,} out", width=5.2, height=7.9)
    blank(ax)
    stream, left, mid, right = 0.35, 2.25, 4.75, 7.25
    ax.annotate("", (stream, -14.3), (stream, 0.75), arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 3})
    ax.text(stream + 0.25, 0.55, f"residual stream, [T, {d:,}]", fontsize=11, color=INK, va="center")

    _arrow(ax, (stream, -0.3), (3.6, -0.3))
    _box(ax, mid, -0.3, 2.3, OTHER, "RMSNorm")
    for x, name, width in ((left, "q", d_q), (mid, "k", d_kv), (right, "v", d_kv)):
        _box(ax, x, -1.75, 2.3, WEIGHTS, f"$W_{name}$", f"[{d:,}, {width:,}]")
        _arrow(ax, (mid, -0.58), (x, -1.32))
    _box(ax, 3.5, -3.0, 4.8, OTHER, "split into heads, RoPE on q and k")
    _box(ax, 3.5, -4.2, 4.8, ROWS, f"scores, {heads} heads", f"[T, {d_h}] times [{d_h}, T]")
    _box(ax, 3.5, -5.35, 4.8, OTHER, r"$\div\,\sqrt{d_h}$, causal mask, softmax")
    _box(ax, mid, -6.5, 5.2, ROWS, f"weighted average of v, {heads} heads", f"[T, T] times [T, {d_h}]")
    _box(ax, mid, -7.8, 2.8, WEIGHTS, "$W_o$", f"[{d_q:,}, {d:,}]")
    for x in (left, mid):
        _arrow(ax, (x, -2.18), (x, -2.72))
    for top, bottom, x in ((-3.28, -3.77, 3.5), (-4.63, -5.07, 3.5), (-5.63, -6.07, 3.5), (-6.93, -7.37, mid)):
        _arrow(ax, (x, top), (x, bottom))
    _arrow(ax, (right, -2.18), (right, -6.07))
    ax.text(right + 0.12, -4.2, f"{kv_heads} heads\nof k and v,\neach used\nby {heads // kv_heads}", fontsize=10, color=QUIET, va="center")

    _arrow(ax, (stream, -9.0), (3.6, -9.0))
    _box(ax, mid, -9.0, 2.3, OTHER, "RMSNorm")
    names = (("gate", 3.3), ("up", 6.2)) if arch.mlp == "gated" else (("up", mid),)
    for name, x in names:
        _box(ax, x, -10.4, 2.6, WEIGHTS, f"$W_{{{name}}}$", f"[{d:,}, {d_ff:,}]")
        _arrow(ax, (mid, -9.28), (x, -9.97))
        _arrow(ax, (x, -10.83), (x, -11.37))
    _box(ax, mid, -11.65, 5.5, OTHER, "SiLU of gate, times up" if arch.mlp == "gated" else "nonlinearity")
    _box(ax, mid, -12.85, 2.8, WEIGHTS, "$W_{down}$", f"[{d_ff:,}, {d:,}]")
    _arrow(ax, (mid, -11.93), (mid, -12.42))

    for y, x in ((-7.8, mid - 1.4), (-12.85, mid - 1.4)):
        _arrow(ax, (x, y), (stream + 0.3, y))
        ax.text(stream, y, "+", ha="center", va="center", fontsize=15, fontweight="bold", color=INK,
                bbox={"boxstyle": "circle,pad=0.15", "facecolor": "white", "edgecolor": INK})
    ax.text(stream + 0.25, -14.1, f"to the next of {arch.num_layers} blocks", fontsize=11, color=INK, va="center")
    ax.set(xlim=(-0.05, 8.75), ylim=(-14.5, 0.9))
    return Picture(
        figure,
        f"one block from [T, {d:,}] to [T, {d:,}]: q [{d:,}, {d_q:,}], k and v [{d:,}, {d_kv:,}], {heads} heads of {d_h}, "
        f"o [{d_q:,}, {d:,}], MLP up to {d_ff:,} and down; each half adds its result to the residual stream",
    )


def weights(rows, names) -> Picture:
    """Attention weights as a square of cells: each row a query, each column a key, darker is more."""
    figure, ax = axes("Each row is one token's mix of those before it", height=3.0)
    n = len(names)
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            hidden = j > i
            ax.add_patch(box(j, -i - 1, 0.96, 0.96, "white", "///" if hidden else ""))
            if not hidden:
                patch = box(j, -i - 1, 0.96, 0.96, FILL[0])
                patch.set_alpha(float(value))
                ax.add_patch(patch)
                ax.text(j + 0.48, -i - 0.52, f"{value:.2f}", ha="center", va="center", fontsize=11, color=INK,
                        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5})
    ax.set(xlim=(-0.1, n + 1.6), ylim=(-n - 0.1, 0.1), aspect="equal")
    ax.set_xticks([j + 0.48 for j in range(n)], names, fontsize=10.5, color=INK)
    ax.set_yticks([-i - 0.52 for i in range(n)], names, fontsize=10.5, color=INK)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.text(n + 0.15, -n / 2, "hatched:\nmasked, 0", fontsize=10.5, color=INK, va="center")
    said = "; ".join(f"{name}: {', '.join(f'{v:.2f}' for v in row[: i + 1])}" for i, (name, row) in enumerate(zip(names, rows)))
    return Picture(figure, f"weights of each token over itself and those before it, the rest masked; {said}")
