"""How much arithmetic does one call of the model ask for? (M 0x05)

Matrix products only, by name, in exact FLOPs; FMA = 2 FLOPs. Attention is charged over declared
query-key pairs, the head over declared rows. Bias additions are one addition a value and are left
out; everything else that is no product is listed by extent in `primitives`, without a price in FLOPs.
What a tiled unit issues beyond this is napkin.padded_matmul_flops.
"""

from costlib.domain import AttentionArea, Size
from costlib.exercise import Unfilled, exercise
from costlib.ledger import Ledger
from costlib.records import ArchitectureManifest, Workload

LAB = "06"


@exercise
def product_counts(m: Size, k: Size, n: Size) -> dict:
    """One product (m x k) @ (k x n) in three countings.

    Return {"macs": fused multiply-adds, "flops": two per FMA, the convention of this course,
    "from_zero": scalar operations of dot products that start from their first term, k
    multiplications and k - 1 additions each}. Unit: operations. Refused: TYPE, NONPOS.
    Source: M 0x05, 0x05A.
    """
    raise Unfilled


@exercise
def area(S_q: Size, S_k: Size, convention: AttentionArea) -> int:
    """Query-key pairs of one head that a convention charges; the S_q queries are the last of S_k rows.

    "rectangular": every query with every key. "causal-legal": query i (from 0) with the
    S_k - S_q + i + 1 keys up to its own, S(S + 1)/2 where S_q = S_k = S. "kaplan": half of the
    rectangle of a whole sequence, exactly, as a Fraction. Unit: pairs.
    Refused: S_q above S_k (INCONSISTENT); "kaplan" with S_q other than S_k (INCONSISTENT): one
    decode row reads every row before it, and there is no half to leave out; another name (ENUM).
    Source: M 0x05, 0x05D-causal-mask.
    """
    raise Unfilled


@exercise
def window_area(S_q: Size, S_k: Size, window: Size) -> int:
    """Legal pairs of one head where a query sees at most `window` keys, its own among them.

    The causal-legal area without the pairs that are too old. A window of S_k or more takes nothing
    away. Unit: pairs. Refused: as area; a window of 0 (NONPOS). No loop over rows.
    Source: M 0x05, 0x05D-causal-mask.
    """
    raise Unfilled


@exercise
def ragged_area(lengths: tuple[Size, ...]) -> dict:
    """Pairs of one head over a batch of sequences of unequal length, in three ledgers.

    Return {"legal": each its own triangle, "rectangles": each its own square, "padded": every
    sequence the square of the longest}. Unit: pairs. Refused: no sequence at all (MISSING).
    Source: M 0x05, 0x05D-causal-mask.
    """
    raise Unfilled


@exercise(unit="FLOP", convention="FMA = 2 FLOPs; one block")
def projections(arch: ArchitectureManifest, rows: Size) -> Ledger:
    """Return {"q", "k", "v", "o"}: the projections of one block over `rows` newly projected rows.

    Rows that lie in the cache are not projected again. Unit: FLOP.
    Source: M 0x05, 0x05C.
    """
    raise Unfilled


@exercise
def attention_products(
    arch: ArchitectureManifest, workload: Workload, convention: AttentionArea = "rectangular"
) -> dict:
    """Return {"scores": Q K^T, "values": P V} of one block, over the area that the convention charges.

    Every query head has its own scores, however few K/V heads there are. Both are exact ints,
    under every convention. A plain dict: which area it holds is said by `ledger`. Unit: FLOP.
    Source: M 0x05, 0x05D.
    """
    raise Unfilled


@exercise(unit="FLOP", convention="FMA = 2 FLOPs; one MLP")
def mlp_products(arch: ArchitectureManifest, rows: Size, width: Size) -> Ledger:
    """Return {"gate", "up", "down"} of one MLP of that width over `rows` rows; gate is 0 if not gated.

    The width is an argument because an expert has its own. Left out: the activation function and
    the product of gate and up, which are primitives. Unit: FLOP.
    Source: M 0x05, 0x05E.
    """
    raise Unfilled


@exercise(unit="FLOP", convention="FMA = 2 FLOPs; the experts of one block, active routes only")
def expert_products(arch: ArchitectureManifest, rows: Size) -> Ledger:
    """Return {"router", "shared", "routed"} of one block with experts over `rows` rows.

    Every row meets the whole router and every shared expert, and experts_per_token routed ones;
    idle experts do nothing. Unit: FLOP. Refused: a manifest without experts (MISSING).
    Source: M 0x05, 0x05E.
    """
    raise Unfilled


@exercise
def logits(arch: ArchitectureManifest, workload: Workload) -> int:
    """FLOPs of the output head over the rows that workload.logits asks for.

    "all": batch_size * new_rows rows. "final": one a sequence. A tied head is multiplied with like
    any other; the lookup in the embedding is no product and costs 0. Unit: FLOP.
    Source: M 0x05, 0x05G.
    """
    raise Unfilled


@exercise
def products(arch: ArchitectureManifest, workload: Workload, attention: AttentionArea = "rectangular") -> dict:
    """Every matrix product of one forward call, summed over blocks.

    Return {"blocks.q", "blocks.k", "blocks.v", "blocks.scores", "blocks.values", "blocks.o",
    "blocks.gate", "blocks.up", "blocks.down", "blocks.router", "blocks.shared", "blocks.routed",
    "head"}. expert_layers blocks have experts in place of the MLP; what a model does not have is a
    row of 0. New rows are batch_size * new_rows. Unit: FLOP.
    Source: M 0x05, 0x05I.
    """
    raise Unfilled


def ledger(arch: ArchitectureManifest, workload: Workload, attention: AttentionArea = "rectangular") -> Ledger:
    """`products` as a Ledger that says which area and which logit rows it was counted with.

    Two ledgers of other conventions refuse to be added. Unit: FLOP.
    Source: M 0x05, 0x05I.
    """
    return Ledger(
        products(arch, workload, attention),
        "FLOP",
        f"FMA = 2 FLOPs; matrix products of one forward call; {attention} attention; {workload.logits} logit rows",
    )


@exercise
def primitives(arch: ArchitectureManifest, workload: Workload) -> dict:
    """Work that is no matrix product: how many elements each of nine families runs over, in one forward call.

    With R = batch_size * new_rows, over all blocks. Return {
    "norm": R * width for every norm: norms_per_block and the final one of d, and with any qk_norm
    one of d_q and one of d_kv a block, "rope": queries and new keys, R * (d_q + d_kv), if position
    is "rope", "scale", "mask", "softmax": one a score of the rectangle of every query head,
    "activation": R * width of every MLP that a row meets, shared and routed experts included,
    "residual": R * d, twice a block, "dropout": 0, as no manifest declares any, "loss": one a logit
    in training, else 0}. Counts of elements, never of FLOPs: an exponential, a comparison and a
    reduction have no common price. Unit: elements.
    Source: M 0x05, 0x05H.
    """
    raise Unfilled


@exercise
def a16_block(B: Size, S: Size, h: Size) -> int:
    """FLOPs of one classic block: four square h x h projections, two matrices of 4h, the full rectangle.

    24BSh^2 + 4BS^2h, a contract of that architecture and of no other. Unit: FLOP. Refused: TYPE, NONPOS.
    Source: M 0x05, 0x05F.
    """
    raise Unfilled


@exercise
def coefficients(arch: ArchitectureManifest) -> dict:
    """What stands in the place of 24 and 4 for the dense block of this manifest.

    Return {"projections", "mlp": c in c * B * S * d^2, "pairs": c in c * B * S^2 * d, rectangular},
    each an exact Fraction. Unit: none.
    Source: M 0x05, 0x05F.
    """
    raise Unfilled
