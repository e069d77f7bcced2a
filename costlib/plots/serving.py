"""What limits a server? Shared heads, a cache that outgrows the weights, and how far a batch can lift decode."""

from fractions import Fraction

from costlib import phases
from costlib.plots import FILL, INK, ON, Picture, axes, blank, box
from costlib.units import GB, fixed, short


def shared_heads(n_heads: int, n_kv_heads: dict[str, int]) -> Picture:
    """One row per arrangement: the query heads above, each under its query heads the K/V head they share."""
    figure, ax = axes("Query heads share K/V heads; only those are cached", width=5.6, height=0.85 * len(n_kv_heads) + 0.5)
    blank(ax)
    for row, (name, kv) in enumerate(n_kv_heads.items()):
        top, group = -2.3 * row, n_heads // kv
        ax.text(-0.3, top - 0.05, f"{name}\n{kv} cached", ha="right", va="center", fontsize=11, color=INK)
        for head in range(n_heads):
            ax.add_patch(box(head + 0.06, top + 0.1, 0.88, 0.75, FILL[5]))
            ax.text(head + 0.5, top + 0.47, "q", ha="center", va="center", fontsize=10.5, color=ON[5])
        for shared in range(kv):
            left = shared * group
            ax.add_patch(box(left + 0.06, top - 0.8, group - 0.12, 0.75, FILL[0]))
            ax.text(left + group / 2, top - 0.43, "k v", ha="center", va="center", fontsize=10.5, color=ON[0])
    ax.set(xlim=(-2.4, n_heads + 0.1), ylim=(-2.3 * len(n_kv_heads) + 1.3, 1.1))
    said = ", ".join(f"{name} {kv}" for name, kv in n_kv_heads.items())
    return Picture(figure, f"{n_heads} query heads over their cached K/V heads: {said}")


def growth(weight_bytes: int, per_token: dict[str, int], most: int) -> Picture:
    """Bytes of the cache over the tokens held by all requests together, until each line has passed the weights."""
    figure, ax = axes("The cache outgrows the weights", width=5.6, height=3.3)
    tokens = [2**i for i in range(10, most.bit_length() + 1)]
    ax.axhline(weight_bytes / GB, color=INK, linewidth=1.4)
    ax.text(tokens[0], weight_bytes / GB * 1.18, f" weights, {short(weight_bytes, 0)[:-1]} GB", fontsize=10.5, color=INK)
    said = []
    for (name, size), style in zip(per_token.items(), ("-", "--", "-.")):
        crossing = Fraction(weight_bytes, size)
        ax.plot(tokens, [t * size / GB for t in tokens], color=FILL[0], linewidth=1.8, linestyle=style)
        ax.plot([crossing], [weight_bytes / GB], "o", color=INK, markersize=5)
        ax.annotate(
            f"{short(crossing, 1)}",
            (crossing, weight_bytes / GB),
            xytext=(5, -13),
            textcoords="offset points",
            fontsize=10,
            color=INK,
        )
        ax.annotate(
            name,
            (2**14, 2**14 * size / GB),
            xytext=(6, -10),
            textcoords="offset points",
            fontsize=10.5,
            color=INK,
        )
        said.append(f"{name} at {fixed(crossing)} tokens")
    ax.set(xscale="log", yscale="log", xlim=(tokens[0], tokens[-1]), ylim=(0.03, 4000))
    ax.set_yticks([0.1, 1, 10, 100, 1000], ["0.1", "1", "10", "100", "1,000"])
    ax.set_xticks([10**4, 10**5, 10**6, 10**7], ["10,000", "100,000", "1 million", "10 million"])
    ax.set_xlabel("tokens held in the cache, all requests together", fontsize=10.5, color=INK)
    ax.set_ylabel("GB (10⁹ bytes)", fontsize=10.5, color=INK)
    return Picture(figure, f"the cache is as large as the weights: {', '.join(said)}")


def decode_map(arch, used: int, memory: int, workspace: int, ridge: Fraction, batches, contexts) -> Picture:
    """Intensity of a decode step over the context length, a curve per batch, with the batch that fits as the frontier."""
    figure, ax = axes("Batching lifts decode until the memory is full", width=5.6, height=3.7)
    weights = 2 * used

    def intensity(batch, length):
        return float(phases.decode_intensity(used, phases.cache_bytes(arch, 1, length), batch))

    fits = dict(zip(contexts, phases.batch_capacity(arch, contexts, memory, weights, workspace)))
    frontier = [intensity(fits[length], length) for length in contexts]
    ax.fill_between(contexts, frontier, 1e4, color=FILL[5])
    ax.plot(contexts, frontier, color=INK, linewidth=2.2)
    for batch in batches:
        inside = [length for length in contexts if batch <= fits[length]]
        ax.plot(inside, [intensity(batch, length) for length in inside], color=FILL[0], linewidth=1.8)
        below = intensity(batch, contexts[0]) / 1.12
        ax.text(contexts[0] * 1.06, below, f"batch {batch}", va="top", fontsize=10.5, color=INK)
    ax.axhline(float(ridge), color=INK, linewidth=1.2, linestyle="--")
    plate = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    for y, words in ((float(ridge) * 1.2, f"balance {fixed(ridge, 1)}"), (85, "no memory for\nsuch a batch")):
        ax.text(contexts[-1], y, words, ha="right", fontsize=10.5, color=INK, bbox=plate)
    reach = max(length for length in contexts if intensity(fits[length], length) >= ridge)
    ax.plot([reach], [float(ridge)], "o", color=INK, markersize=5)
    ax.text(reach * 1.12, float(ridge) * 1.5, f"{reach:,} tokens", fontsize=10.5, color=INK, bbox=plate)
    ax.set(xscale="log", yscale="log", xlim=(contexts[0], contexts[-1]), ylim=(0.4, 1500))
    ticks = [2**i for i in range(7, 18, 2) if contexts[0] <= 2**i <= contexts[-1]]
    ax.set_xticks(ticks, [f"{t:,}" for t in ticks])
    ax.set_xticks([], minor=True)
    ax.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    ax.set_xlabel("context length of every request, tokens", fontsize=10.5, color=INK)
    ax.set_ylabel("FLOP per byte", fontsize=10.5, color=INK)
    return Picture(
        figure,
        f"decode intensity against context length: with the largest batch that fits it reaches the balance of "
        f"{fixed(ridge, 1)} FLOP/B up to {reach:,} tokens and falls below it beyond",
    )
