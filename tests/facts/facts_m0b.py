"""M 0x0B: six contracts and what they count."""

from fractions import Fraction

from costlib import activations, forward, napkin, papers
from costlib.fixtures import CLASSIC, TRAIN_4K

OWNS = ("M.0B",)
CONTRACTS = {contract.contract_id: contract for contract in papers.registry()}
d, S = CLASSIC.hidden_size, TRAIN_4K.new_rows
HEAD = TRAIN_4K.batch_size * S * d * CLASSIC.vocab_size


def head_training():
    """Forward and both gradients of the output head, in units of BShV."""
    return Fraction(3 * forward.logits(CLASSIC, TRAIN_4K), HEAD)


def attention_training():
    """Forward and backward attention pairs per token, in units of LHQT."""
    pairs = sum(forward.attention_products(CLASSIC, TRAIN_4K).values())
    return Fraction(3 * pairs, S * CLASSIC.num_attention_heads * CLASSIC.head_dim * S)


FACTS = {
    "M.0BB.001": head_training,
    "M.0BC.002": attention_training,
    "M.0BC.003": lambda: napkin.training_flops(1, 1),
}

TEXTS = {
    "M.0B.001": lambda: "B is a batch in tokens, S a number of updates" in CONTRACTS["kaplan"].phase_rows
    and "6NBS" in CONTRACTS["kaplan"].output,
    # What the article adds is one more run of the head; Megatron's equation replays the blocks alone.
    "M.0BB.002": lambda: Fraction(forward.logits(CLASSIC, TRAIN_4K), HEAD) == 2
    and CONTRACTS["megatron"].recomputation == "every block once, the head not",
    "M.0BC.001": lambda: tuple(CONTRACTS) == papers.SOURCES and papers.missing_contracts(papers.registry()) == [],
    "M.0BC.004": lambda: activations.korthikanti(2, 48, 60, 6).total == 34 * 2 * 48 * 60 + 5 * 2 * 6 * 48**2,
    # p stages of L / p layers, and the first holds p micro-batches: L layers' worth, over t ranks.
    "M.0BC.005": lambda: all(
        p * (24 // p) * activations.korthikanti(2, 48, 60, 6).total == 24 * activations.korthikanti(2, 48, 60, 6).total
        for p in (1, 2, 4, 8)
    ),
    "M.0BC.006": lambda: CONTRACTS["hoffmann"].backward == "twice the forward pass",
    "M.0BD.001": lambda: [c.numeric_comparison_allowed for c in CONTRACTS.values()] == [False] * 6,
}

REST = {}
