"""What does a training step cost beyond its forward call? (M 0x06)

Gradients and replays of matrix products, region by region, in exact FLOPs. The optimizer, collectives
and everything that is no product have units of their own and are not in here.
"""

from fractions import Fraction

from costlib.domain import AttentionArea, Count, Part, Positive, Size, checker, require
from costlib.exercise import Unfilled, exercise
from costlib.ledger import Ledger
from costlib.policies import Region
from costlib.records import ArchitectureManifest, Workload

LAB = "07"

# M 0x06G, from the paper's Appendix B: parameters, layers, heads, head width, sequence.
PALM_540B = {"N": 540_350_000_000, "L": 118, "H": 48, "Q": 256, "T": 2048}


@exercise(unit="FLOP", convention="FMA = 2 FLOPs; Y = X W, forward and the gradients that are needed")
def linear(m: Size, k: Size, n: Size, need_dx: bool = True, need_dw: bool = True) -> Ledger:
    """Return {"forward", "dx", "dw"} of Y = X W with X [m, k] and W [k, n].

    dX = dY W^T is needed where something before X is trained, dW = X^T dY where W is; a gradient
    that nobody needs is 0. Left out: the bias gradient, a sum over rows. Unit: FLOP.
    Source: M 0x06, 0x06B.
    """
    raise Unfilled


def require_training(workload: Workload) -> None:
    """Refuse a workload that has no backward pass."""
    require(workload.phase == "training", "INCONSISTENT", f"{workload.workload_id} is a {workload.phase}, not a training step")


@exercise
def regions(
    arch: ArchitectureManifest, workload: Workload, attention: AttentionArea = "rectangular"
) -> tuple[Region, ...]:
    """The parts of a training step that can be run again: for every block i from 0 "block_i.linear"
    (projections and MLP or experts) and "block_i.core" (Q K^T and P V), then "head".

    Blocks before first_dense_layers have the MLP, later ones experts where there are any. All is
    trained, the embedding too, so that each product needs both gradients and each costs what the
    forward product does: also in the first block, and in the core, whose factors are activations.
    Unit: FLOP. Refused: a workload that is no training (INCONSISTENT).
    Source: M 0x06, 0x06E.
    """
    raise Unfilled


def replayed(regions: tuple[Region, ...], replay: dict) -> dict[str, int]:
    """How often each region is run again, by its name. `replay` maps paths to counts: "block_0" stands
    for all of block 0, and what several paths name is run again for each.

    Refuses a path with no region (UNDECLARED), a count that is none (TYPE, NEG), two regions of one
    name (INCONSISTENT).
    """
    names = [region.name for region in regions]
    require(len(names) == len(set(names)), "INCONSISTENT", f"two regions have one name: {', '.join(names)}")
    for path, times in replay.items():
        checker(Count)(f"replay[{path!r}]", times)
        require(any(r.within(path) for r in regions), "UNDECLARED", f"replay of {path!r}: there is no such region")
    return {r.name: sum(times for path, times in replay.items() if r.within(path)) for r in regions}


@exercise
def totals(regions: tuple[Region, ...], replay: dict) -> dict:
    """Return {"forward", "backward", "recompute", "model", "hardware"} of one step.

    backward: every dx and dw. recompute: the forward of each region as often as `replayed` says.
    model: forward and backward, what the mathematics asks for. hardware: the replays as well.
    Unit: FLOP. Refused: as `replayed`.
    Source: M 0x06, 0x06D.
    """
    raise Unfilled


@exercise(unit="FLOP", convention="FMA = 2 FLOPs; one training step without replay; rectangular attention")
def sixnd_closure(arch: ArchitectureManifest, workload: Workload) -> Ledger:
    """6ND taken apart so that nothing is missing: return {"sixnd.blocks", "sixnd.head", "attention"}.

    blocks: 6 for every "kaplan" scalar and new row. head: 6 for every head scalar and logit row.
    attention: both products over pairs, three times, which no parameter stands for. With all logits
    ["sixnd"] is 6 * N_used * D; the total is that of `totals` without replay, exactly. Unit: FLOP.
    Refused: a workload that is no training (INCONSISTENT).
    Source: M 0x06, 0x06F.
    """
    raise Unfilled


@exercise
def sixnd_shortfalls(arch: ArchitectureManifest, workload: Workload) -> dict:
    """By how much 6ND falls short of the step's model FLOPs, for the N of params.coordinates.

    Return {"unique", "used", "kaplan"}: (model - 6 N D) / model, exact Fractions, D the new rows of
    all sequences, rectangular attention. Negative where 6ND is too much. Unit: none.
    Refused: a workload that is no training (INCONSISTENT).
    Source: M 0x06, 0x06F.
    """
    raise Unfilled


@exercise(unit="FLOP", convention="per token, forward; Kaplan et al.: N without vocabulary, half of the attention")
def kaplan_forward(arch: ArchitectureManifest, context: Size) -> Ledger:
    """Return {"weights": 2N, "context": 2 * n_layer * n_ctx * d_attn} for one token.

    N is the "kaplan" coordinate and d_attn the packed query width. The headline 6N drops the
    context and takes the weights three times. Unit: FLOP per token.
    Source: M 0x06, 0x06G.
    """
    raise Unfilled


@exercise(unit="FLOP", convention="one iteration of Narayanan et al., Equation 3: every block replayed once, the head not")
def megatron_iteration(B: Size, S: Size, h: Size, L: Size, V: Size) -> Ledger:
    """Return {"blocks", "head"}, together 96BSLh^2 (1 + S/6h + V/16Lh), by integers only.

    blocks: L classic blocks of forward.a16_block, forward, backward (2) and one replay.
    head: the product with V columns, forward and backward, 6BShV; nothing replays it.
    Unit: FLOP. Refused: TYPE, NONPOS.
    Source: M 0x06, 0x06G-megatron.
    """
    raise Unfilled


@exercise
def palm_model_flops(N: Size, L: Size, H: Size, Q: Size, T: Size) -> int:
    """Model FLOPs of one token as Chowdhery et al. count them: 6N, and both attention products over T keys.

    L layers of H heads of width Q, the full rectangle, forward and backward: 12LHQT.
    Unit: FLOP per token. Refused: TYPE, NONPOS.
    Source: M 0x06, 0x06G.
    """
    raise Unfilled


@exercise
def palm_hardware_flops(N: Size, L: Size, H: Size, Q: Size, T: Size, remat: Part = Fraction(3, 4)) -> Fraction:
    """The same with what is computed twice: a share `remat` of the 2N of forward, and all attention of forward.

    An exact Fraction. Unit: FLOP per token. Refused: TYPE, NONPOS, remat outside 0 to 1 (RANGE).
    Source: M 0x06, 0x06G.
    """
    raise Unfilled


@exercise(unit="FLOP", convention="FMA = 2 FLOPs; weights only, each used once a token; frozen base, trained adapters")
def lora_step(frozen: Size, adapters: Count, tokens: Size) -> Ledger:
    """Return {"forward", "dx", "dw"} of `tokens` tokens through frozen weights with trained adapters.

    All are multiplied with, and the gradient passes through all on its way back; only adapters
    have a dW. Left out: attention over pairs, and that the first layer needs no dX. Unit: FLOP.
    Source: M 0x06, 0x06B.
    """
    raise Unfilled


@exercise
def mfu(totals: dict, peak: Size, seconds: Positive) -> Fraction:
    """Model FLOPs utilisation: model FLOPs over what `peak` FLOP/s of all chips do in the measured time.

    totals as from `totals`. An exact Fraction. Unit: none. Refused: TYPE, a time of 0 (NONPOS).
    Source: M 0x06, 0x06G.
    """
    raise Unfilled


@exercise
def hfu(totals: dict, peak: Size, seconds: Positive) -> Fraction:
    """Hardware FLOPs utilisation: as mfu, with the replays among the work. Equal to it without any.

    An exact Fraction. Unit: none. Refused: TYPE, a time of 0 (NONPOS).
    Source: M 0x06, 0x06G.
    """
    raise Unfilled
