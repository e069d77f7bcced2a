"""What is in memory beside the weights, why, and from when on? Formats near one, policies as bars, a step as a chart."""

from fractions import Fraction

from costlib import state
from costlib.plots import FILL, HATCH, INK, ON, QUIET, RULE, Picture, axes, box
from costlib.policies import POINTS, StatePolicy
from costlib.units import GB, fixed

PARTS = {  # head of a row's role, or the role itself -> its place in FILL and its name
    "weights": (0, "weight"),
    "gradients": (1, "gradient"),
    "gradients.working": (1, "gradient"),
    "gradients.update": (5, "second gradient"),
    "optimizer.master": (2, "master"),
    "optimizer.m": (3, "m"),
    "optimizer.v": (4, "v"),
}


def vanishing(update: Fraction, formats: dict[str, int], title: str) -> Picture:
    """For each format, how far above 1 a sum still rounds back to 1, and where its next number lies; the update as a line."""
    figure, ax = axes(title, height=0.85 * len(formats) + 1.15)
    left, right, said = 1e-8, 1e-1, []
    for y, (name, bits) in enumerate(formats.items()):
        gap = state.spacing(bits)
        arrives = state.rounded_update(Fraction(1), update, bits) != 1
        ax.barh(-y, float(gap / 2) - left, left=left, height=0.5, color=FILL[5], hatch="///", edgecolor=QUIET, linewidth=0.8)
        ax.barh(-y, right - float(gap / 2), left=float(gap / 2), height=0.5, color=FILL[1], edgecolor=QUIET, linewidth=0.8)
        ax.plot([float(gap)] * 2, [-y - 0.25, -y + 0.25], color=INK, linewidth=2.2)
        ax.text(float(gap), -y + 0.29, f"{float(gap):.2g}", ha="center", va="bottom", fontsize=10, color=INK)
        plate = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        ax.text(float(update), -y, "arrives" if arrives else "lost", ha="center", va="center", fontsize=11, color=INK, bbox=plate)
        said.append(f"{name}: next number at {float(gap):.2g}, {'arrives' if arrives else 'lost'}")
    bottom = 0.62 - len(formats)
    ax.plot([float(update)] * 2, [bottom, 0.62], color=INK, linewidth=1.2, linestyle=(0, (4, 3)), zorder=0.5)
    ax.text(float(update), 0.62, f"the update, {float(update):g}", ha="center", va="bottom", fontsize=10.5, color=INK)
    ax.set_xscale("log")
    ax.set_yticks([-y for y in range(len(formats))], formats, fontsize=11, color=INK)
    ax.set(xlim=(left, right), ylim=(bottom, 0.95))
    ax.set_xlabel("distance above 1 (hatched: rounded back to 1; black mark: the next number)", fontsize=10, color=INK)
    return Picture(figure, f"an update of {float(update):g} at a weight of 1: {'; '.join(said)}")


def climb(curves: dict[str, list[Fraction]], title: str) -> Picture:
    """A weight over many equal updates, one curve per way of storing it, named where it ends."""
    figure, ax = axes(title, height=3.1)
    for i, (name, weights) in enumerate(curves.items()):
        style = {"color": (INK, FILL[0])[i % 2], "linestyle": ("-", (0, (5, 2)))[i % 2], "linewidth": 2.2}
        ax.plot([float(w) for w in weights], **style)
        ax.text(len(weights), float(weights[-1]), f" {name}\n {float(weights[-1]):.4g}", va="center", fontsize=10.5, color=INK)
    steps = len(next(iter(curves.values()))) - 1
    ax.set(xlim=(0, 1.42 * steps), ylim=(0, None), xticks=[0, steps // 2, steps])
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_xlabel("updates", fontsize=10.5, color=INK, loc="left")
    ax.set_ylabel("the weight", fontsize=10.5, color=INK)
    said = "; ".join(f"{name}: {float(weights[-1]):.4g}" for name, weights in curves.items())
    return Picture(figure, f"a weight that starts at {float(weights[0]):g} after {steps:,} updates, {said}")


def policies(named: dict[str, StatePolicy], scalars: int, title: str) -> Picture:
    """One bar per policy, cut into the bytes of its rows for one parameter; at its end the bytes, and those of the model."""
    figure, ax = axes(title, height=0.62 * len(named) + 1.35)
    ledgers = {name: state.ledger(policy, 1, 1) for name, policy in named.items()}
    longest, used = max(ledger.total for ledger in ledgers.values()), {}
    for y, (name, ledger) in enumerate(ledgers.items()):
        left = 0
        for role, value in ledger.items():
            i, part = PARTS[role]
            used[part] = i
            ax.barh(-y, value, left=left, height=0.66, color=FILL[i], hatch=HATCH[i], edgecolor="white", linewidth=0.8)
            plate = {"facecolor": FILL[i], "edgecolor": "none", "pad": 1}
            ax.text(left + value / 2, -y, value, ha="center", va="center", fontsize=10.5, color=ON[i], bbox=plate)
            left += value
        total = f"{ledger.total} B\n{fixed(Fraction(state.ledger(named[name], scalars, scalars).total, GB), 1)} GB"
        ax.text(left + longest * 0.012, -y, total, va="center", fontsize=10, fontweight="bold", color=INK)
    ax.set_yticks([-y for y in range(len(named))], named, fontsize=10.5, color=INK)
    ax.set(xlim=(0, longest * 1.17), xticks=[])
    ax.spines["bottom"].set_visible(False)
    order = list(dict.fromkeys(part for _, part in PARTS.values() if part in used))
    handles = [box(0, 0, 1, 1, FILL[used[part]], HATCH[used[part]]) for part in order]
    figure.legend(handles, order, loc="outside lower left", ncols=3, fontsize=10, frameon=False)
    said = "; ".join(f"{name}: {' + '.join(map(str, ledger.values()))} = {ledger.total} B" for name, ledger in ledgers.items())
    return Picture(figure, f"bytes of one parameter by policy, {said}")


def lifecycle(policy: StatePolicy, scalars: int, title: str) -> Picture:
    """The rows of a policy as bars over the points of the first step, with what is there at each point below."""
    ledger, at = state.ledger(policy, scalars, scalars), (*POINTS, "never").index
    figure, ax = axes(title, height=0.52 * len(policy.rows) + 1.75)
    for y, row in enumerate(policy.rows):
        start, end = at(row.created), at(row.released)
        i = PARTS[row.role][0]
        ax.barh(-y, end - start, left=start, height=0.62, color=FILL[i], hatch=HATCH[i], edgecolor=QUIET, linewidth=0.8)
        plate = {"facecolor": FILL[i], "edgecolor": "none", "pad": 1.5}
        text = f"{fixed(Fraction(ledger[row.role], GB), 1)} GB"
        ax.text((start + end) / 2, -y, text, ha="center", va="center", fontsize=10.5, color=ON[i], bbox=plate)
    bottom, totals = 0.5 - len(policy.rows), []
    for i, point in enumerate(POINTS):
        totals.append(state.resident(policy, scalars, scalars, point).total)
        ax.axvline(i, color=RULE, linewidth=0.8, zorder=0)
        text = f"{fixed(Fraction(totals[-1], GB), 1)} GB"
        ax.text(i + 0.5, bottom - 0.1, text, ha="center", va="top", fontsize=11, fontweight="bold", color=INK)
    heads = ("model and\noptimizer made", "first\nbackward", "first\nstep", "zero_grad")
    ax.xaxis.tick_top()
    ax.set_xticks([i + 0.5 for i in range(len(POINTS))], [f"after\n{head}" for head in heads], fontsize=10, color=INK)
    ax.set_yticks([-y for y in range(len(policy.rows))], [PARTS[row.role][1] for row in policy.rows], fontsize=10.5, color=INK)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlim=(0, len(POINTS)), ylim=(bottom - 0.75, 0.5))
    said = "; ".join(f"{point} {fixed(Fraction(total, GB), 1)} GB" for point, total in zip(POINTS, totals))
    return Picture(figure, f"state of {policy.policy_id} in memory just after each point of the first step: {said}")
