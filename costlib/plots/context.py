"""What changes with the length of the context, and what with the token's path? Terms, masks, shares, experts."""

from fractions import Fraction

from costlib.plots import FILL, HATCH, INK, ON, QUIET, Picture, axes, blank, box
from costlib.units import fixed, percent, short

NAME = {"fontsize": 10, "color": INK, "ha": "center", "va": "center"}


def terms(steps: dict, names: dict[str, str], title: str) -> Picture:
    """FLOPs per token over context length, one band per row; steps: {T: ledger of one sequence of T tokens}."""
    figure, ax = axes(title, height=3.5)
    lengths, below = list(steps), [0.0] * len(steps)
    for i, (path, label) in enumerate(names.items()):
        above = [b + steps[T][path] / T / 1e9 for b, T in zip(below, lengths)]
        ax.fill_between(lengths, below, above, facecolor=FILL[i], hatch=HATCH[i] or None, edgecolor=QUIET, linewidth=0.6)
        x, middle = 0.66 * lengths[-1], (below[-1] + above[-1]) / 2
        if steps[lengths[-1]][path] / lengths[-1] != steps[lengths[0]][path] / lengths[0]:
            x, middle = 0.8 * lengths[-1], below[-1] + 0.4 * (above[-1] - below[-1])
        ax.text(x, middle, label, **{**NAME, "color": ON[i]}, bbox={"facecolor": FILL[i], "edgecolor": "none", "pad": 1.5})
        below = above
    ax.set(xlim=(0, lengths[-1]), ylim=(0, below[-1] * 1.04))
    ax.set_xticks(ticks := [T for T in lengths if T % 8192 == 0], [f"{T:,}" for T in ticks])
    ax.set_xlabel("context length T, tokens", fontsize=10.5, color=INK)
    ax.set_ylabel("GFLOP per token, training", fontsize=10.5, color=INK)
    ends = [(T, steps[T].total / T / 1e9) for T in (lengths[0], lengths[-1])]
    said = ", ".join(f"{fixed(Fraction(round(y * 1000), 1000), 1)} GFLOP at {T:,}" for T, y in ends)
    return Picture(figure, f"training FLOPs of a token over context, weights flat, attention a straight wedge: {said}")


def masks(T: int, conventions: dict[str, Fraction]) -> Picture:
    """The T x T pairs of one head, one panel per convention: what each charges of the part above the diagonal.

    conventions: {name: pairs it charges}; a full square, the triangle with its diagonal, or half of the square.
    """
    figure, panels = axes(f"One mask, three counts: a head over {T} tokens", height=2.75, columns=len(conventions))
    for ax, (name, pairs) in zip(panels, conventions.items()):
        blank(ax)
        for query in range(T):
            for key in range(T):
                charged = key < query or pairs == T * T or (key == query and 2 * pairs > T * T)
                ax.add_patch(box(key, -query, 0.9, 0.9, FILL[0] if charged else "white"))
                if key == query and 2 * pairs == T * T:
                    ax.add_patch(box(key, -query, 0.45, 0.9, FILL[0]))
        ax.set(xlim=(-0.3, T + 0.2), ylim=(-T + 0.7, 1.2), aspect="equal")
        ax.set_title(name, fontsize=10.5, color=INK)
        ax.set_xlabel(f"{pairs} pairs, {percent(Fraction(pairs, T * T))}", fontsize=10.5, color=INK)
    panels[0].set_ylabel("query", fontsize=10.5, color=INK)
    said = ", ".join(f"{name} {pairs} of {T * T}" for name, pairs in conventions.items())
    return Picture(figure, f"query-key pairs charged by each convention: {said}")


def attention_share(models: dict[str, tuple[int, int]], line: Fraction, title: str) -> Picture:
    """Attention's part of all FLOPs over context, log axis; models: {name: (N, 2 * L * n_h * d_h)}."""
    figure, ax = axes(title, height=3.3)
    lengths = [2 ** (10 + i / 8) for i in range(81)]
    ax.axhline(100 * line, color=INK, linewidth=0.9)
    ax.text(lengths[-1], 100 * line + 1.5, percent(line, 0), ha="right", fontsize=10, color=INK)
    said = []
    for i, (name, (n, per_key)) in enumerate(models.items()):
        ax.plot(lengths, [100 * per_key * T / (n + per_key * T) for T in lengths],
                color=(FILL[0], INK, QUIET)[i % 3], linestyle=("-", "--", "-.", ":")[i % 4], linewidth=1.8)
        crossing = int(line / (1 - line) * n / per_key)
        ax.plot([crossing], [100 * line], "o", color=INK, markersize=4.5)
        left = i < len(models) / 2
        y = (72 if left else 94) - 20 * i
        x = y / (100 - y) * n / per_key
        ax.annotate(f"{name}\n{percent(line, 0)} at {crossing:,}", (x, y), xytext=(1200 if left else 2**17.4, y),
                    va="center", fontsize=10, color=INK,
                    arrowprops={"arrowstyle": "-", "color": QUIET, "linewidth": 0.8})
        said.append(f"{name} crosses {percent(line, 0)} at {crossing:,} tokens")
    ax.set_xscale("log", base=2)
    ticks = [2**k for k in (10, 12, 14, 16, 18, 20)]
    ax.set_xticks(ticks, ["1k", "4k", "16k", "64k", "256k", "1M"])
    ax.minorticks_off()
    ax.set(xlim=(ticks[0], ticks[-1]), ylim=(0, 100))
    ax.set_xlabel("context length T, tokens (k = 1,024), log axis", fontsize=10.5, color=INK)
    ax.set_ylabel("attention over pairs, % of all FLOPs", fontsize=10.5, color=INK)
    return Picture(figure, f"attention's part over context, one S-shaped curve shifted per model: {'; '.join(said)}")


def experts(split, n_experts: int, top_k: int) -> Picture:
    """Areas in proportion to stored scalars of an MoE: every routed expert a cell, the chosen ones dark."""
    rows = 16 if n_experts % 16 == 0 else n_experts
    one = Fraction(split["active.routed"], top_k)
    always = {"attention": split["active.attn"] + split["active.router"], "shared": split["active.shared"]}
    part = Fraction(split["active"], split.total)
    figure, ax = axes(f"One token uses {percent(part)} of what is stored", height=3.6)
    blank(ax)
    left = 0.0
    for value in always.values():
        wide = float(value / one / rows)
        ax.add_patch(box(left, 0, wide, rows, FILL[0]))
        left += wide
    start = left + 0.4
    stride = n_experts // top_k
    for i in range(n_experts):
        chosen = i % stride == (i // stride * 11) % stride
        ax.add_patch(box(start + i // rows, i % rows, 1, 1, FILL[0] if chosen else FILL[5]))
    ax.text(0, rows + 0.5, f"attention and router {short(always['attention'])}, shared experts {short(always['shared'])}: every token",
            fontsize=10, color=INK)
    ax.text(start, -0.5, f"{top_k} of {n_experts} routed experts run, {short(split['active.routed'])} (dark)\n"
            f"the rest lies idle for this token, {short(split['idle'])} (light)", va="top", fontsize=10, color=INK)
    ax.set(xlim=(-0.3, start + n_experts / rows + 0.3), ylim=(-3.2, rows + 1.6))
    return Picture(figure, f"areas in proportion to scalars: active {short(split['active'])}, idle {short(split['idle'])}, "
                   f"active part {percent(part)}")
