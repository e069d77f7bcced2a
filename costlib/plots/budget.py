"""What does a budget leave open? The plane of sizes and tokens, the life of a model, the parts of a bill."""

from fractions import Fraction

from costlib.plots import FILL, HATCH, INK, QUIET, Picture, axes, blank
from costlib.units import percent, scientific, short


def plane(title, budgets, plans, runs, walls, ratio=20) -> Picture:
    """Parameters against tokens on logarithmic axes: a budget is a falling line, D = ratio N a rising one.

    `budgets` are FLOPs, the first drawn heavy; `plans` and `runs` are {label: (N, D)}, `walls` {label: tokens}.
    """
    figure, ax = axes(title, height=5.4)
    ax.set(xscale="log", yscale="log", xlim=(4e9, 1e12), ylim=(1.5e11, 4.5e13), aspect="equal")
    across = (1e9, 1e13)
    for i, flops in enumerate(budgets):
        ax.plot(across, [flops / 6 / n for n in across], color=FILL[min(i, 1)], linewidth=1.2 if i else 2.4)
        n = max(4.6e9, flops / 6 / 3e13)
        _along(ax, f"C = {scientific(flops, 2)}", n, flops / 6 / n, -45)
    ax.plot(across, [ratio * n for n in across], "--", color=INK, linewidth=1)
    _along(ax, f"D = {ratio}N", 1.3e11, ratio * 1.3e11, 45)
    for label, tokens in walls.items():
        ax.axhline(tokens, color=QUIET, linewidth=1, linestyle=":")
        ax.text(1.5e10, tokens * 1.06, label, fontsize=10, color=QUIET)
    for marks, face, size in ((runs, "white", 6), (plans, FILL[2], 10)):
        for label, (n, d) in marks.items():
            ax.plot([n], [d], "o", markerfacecolor=face, markeredgecolor=INK, markersize=size)
            far, plan = n > 3e11, marks is plans
            ax.annotate(
                label, (n, d), xytext=(10 if plan else -4 if far else 8, 2 if plan else -14), textcoords="offset points",
                ha="right" if far else "left", fontsize=10, color=INK, fontweight="bold" if plan else "normal",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
            )
    ax.set_xlabel("parameters N", fontsize=10.5, color=INK)
    ax.set_ylabel("training tokens D", fontsize=10.5, color=INK)
    ax.set_xticks([1e10, 1e11, 1e12], ["10B", "100B", "1T"])
    ax.set_yticks([1e12, 1e13], ["1T", "10T"])
    said = "; ".join(f"{label}: {short(n, 2)} parameters, {short(d, 2)} tokens" for label, (n, d) in {**plans, **runs}.items())
    lines = ", ".join(scientific(flops, 2) for flops in budgets)
    return Picture(figure, f"tokens against parameters, budgets of {lines} FLOPs as parallel falling lines; {said}")


def _along(ax, text, x, y, angle):
    """A label that lies along a line of that slope, just above it."""
    ax.annotate(
        text, (x, y), xytext=(2, 4), textcoords="offset points", rotation=angle, rotation_mode="anchor", va="bottom",
        fontsize=10, color=INK,
    )


def lifetime(title, models, upto) -> Picture:
    """FLOPs of training and of all tokens served so far, one rising line per model: {label: (N, training FLOPs)}.

    The first two cross where the dearer training has paid.
    """
    figure, ax = axes(title, height=3.3)
    total = {label: (train, train + 2 * n * upto) for label, (n, train) in models.items()}
    for i, (label, (start, end)) in enumerate(total.items()):
        ax.plot([0, upto / 1e12], [start / 1e24, end / 1e24], color=FILL[0] if i else INK, linestyle=("-", "--")[i % 2], linewidth=2)
        ax.text(upto / 1e12 * 1.02, end / 1e24, label, va="center", fontsize=10, color=INK)
    (big, first), (small, second) = list(models.values())[:2]
    served = Fraction(second - first, 2 * (big - small))
    height = first + 2 * big * served
    ax.plot([float(served) / 1e12], [float(height) / 1e24], "o", color=INK, markersize=6)
    ax.annotate(
        f"even at {short(served, 1)} tokens served", (float(served) / 1e12, float(height) / 1e24),
        xytext=(-8, 12), textcoords="offset points", ha="right", fontsize=10, color=INK,
    )
    ax.set(xlim=(0, upto / 1e12 * 1.36), ylim=(0, max(end for _, end in total.values()) / 1e24 * 1.05))
    ax.set_xticks(range(0, int(upto / 1e12) + 1, 5))
    ax.set_xlabel("tokens served, T", fontsize=10.5, color=INK)
    ax.set_ylabel("FLOPs so far, 1e24", fontsize=10.5, color=INK)
    said = "; ".join(f"{label}: {scientific(start)} to train, {scientific(end)} at the right" for label, (start, end) in total.items())
    return Picture(figure, f"FLOPs of a model's life against tokens served; {said}; equal at {short(served, 2)} tokens")


def waterfall(title, rows) -> Picture:
    """What is left of a bill, step by step: {bill: ((kept label, amount), (rest label, amount))}. Each bar is
    whole; what it keeps, the hatched part, opens into the next."""
    figure, ax = axes(title, height=1.1 * len(rows) + 0.5)
    blank(ax)
    said, kept = [], Fraction(0)
    for y, (bill, parts) in enumerate(rows.items()):
        whole, left = sum(amount for _, amount in parts), Fraction(0)
        if y:
            ax.fill([0, float(kept), 1, 0], [0.7 - y, 0.7 - y, 0.3 - y, 0.3 - y], facecolor=FILL[3], alpha=0.5, linewidth=0)
        for i, (label, amount) in zip((2, 1), parts, strict=True):
            share = Fraction(amount) / whole
            ax.barh(-y, float(share), left=float(left), height=0.6, color=FILL[i], hatch=HATCH[i], edgecolor="white")
            inside = share > Fraction(1, 10)
            ax.text(
                float(left + share / 2) if inside else float(left + share) + 0.015, -y, f"{label}\n{percent(share)}",
                va="center", ha="center" if inside else "left", fontsize=10, color=INK,
                bbox={"facecolor": FILL[i if inside else 1], "edgecolor": "none", "pad": 1.2},
            )
            left += share
        kept = Fraction(parts[0][1]) / whole
        ax.text(1, 0.34 - y, bill, fontsize=10.5, fontweight="bold", color=INK, va="bottom", ha="right")
        said.append(f"{bill}: " + ", ".join(f"{label} {percent(Fraction(amount) / whole)}" for label, amount in parts))
    ax.set(xlim=(0, 1), ylim=(-len(rows) + 0.65, 0.75))
    return Picture(figure, f"full bars, the first part of each opening into the next; {'; '.join(said)}")
