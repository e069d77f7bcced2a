"""M 0x07: per-rank ownership under parallelism."""

from fractions import Fraction

from costlib import ownership, params
from costlib.domain import ManifestError
from costlib.fixtures import A16, MASTER, RUNNING
from costlib.hardware import CHIPS
from costlib.policies import Ownership
from costlib.units import GB, GIB, MIB, fixed

OWNS = ("M.07",)
LAYOUT_A = Ownership(policy_id="layout-a", world_size=8, data_parallel=8, zero_stage=3)
LAYOUT_B = Ownership(
    policy_id="layout-b", world_size=8, data_parallel=2, tensor_parallel=2, pipeline_parallel=2, zero_stage=3
)
D, T, C, S = 8, 8, 2, 4096
GROUPINGS = ("root", "blocks", "blocks-and-ends")


def P():
    return params.ledger(RUNNING).total


def row(policy, path, stage=0):
    return ownership.rank_state(policy, P(), stage, D)[path]


def rank(stage, policy=A16):
    return ownership.rank_state(policy, P(), stage, D).total


def per_param(value):
    return Fraction(value, P())


def gib(value):
    return Fraction(value, GIB)


def mib(value):
    return Fraction(value, MIB)


def shown(value, digits=6):
    """A value as the document's cell displays it."""
    return Fraction(fixed(value, digits))


def largest(i):
    """The largest group of the three groupings of 0x07D, then one block."""
    if i == 3:
        return ownership.fsdp_groups(RUNNING, "blocks")["blocks.0"]
    groups = ownership.fsdp_groups(RUNNING, GROUPINGS[i])
    return max(groups[name] for name in groups)


def full(i):
    return gib(ownership.fsdp_group(largest(i), D)["full"])


def missing(i):
    return gib(ownership.fsdp_group(largest(i), D)["missing"])


def sent(kind, repeats=1):
    return ownership.collective(kind, P(), "bf16", D, repeats)["ring_send"]


def sweeps(reshard):
    """Ring sends of one step, collective by collective, over the groups of blocks."""
    groups = ownership.fsdp_groups(RUNNING, "blocks")
    sizes = [groups[name] for name in groups]
    kinds = {"gather": "all-gather", "reduce-scatter": "reduce-scatter"}
    return sum(
        ownership.collective(kinds[action], sizes[group], "bf16", D)["ring_send"]
        for action, group in ownership.fsdp_events(len(sizes), reshard)
        if action in kinds
    )


def weight(split, degree=T):
    k, n = ownership.tensor_shard(S, 4096, 4096, split, degree)["weight"]
    return mib(2 * k * n)


def output(split):
    m, n = ownership.tensor_shard(S, 4096, 4096, split, T)["output"]
    return mib(2 * m * n)


def kv(part):
    return mib(ownership.context_missing(RUNNING, 1, S, C)[part])


def is_refused(code, call, *args):
    try:
        call(*args)
    except ManifestError as error:
        return error.code == code
    return False


COEFFICIENTS = (20, Fraction(19, 2), Fraction(17, 4), Fraction(5, 2))
FACTS = {
    # M 0x07A
    "M.07A.002": lambda: LAYOUT_A.world_size,
    "M.07A.003": lambda: LAYOUT_A.data_parallel,
    "M.07A.005": lambda: LAYOUT_A.world_size,
    # M 0x07B
    "M.07B.001": lambda: per_param(row(A16, "weights")),
    "M.07B.002": lambda: per_param(row(A16, "gradients")),
    "M.07B.003": lambda: per_param(row(A16, "optimizer")),
    "M.07B.004": lambda: per_param(rank(0)),
    "M.07B.005": lambda: per_param(row(MASTER, "weights")),
    "M.07B.006": lambda: per_param(row(MASTER, "optimizer")),
    "M.07B.007": lambda: per_param(rank(0, MASTER)),
    "M.07B.008": lambda: per_param(row(MASTER, "gradients")),
    # M 0x07C
    "M.07C.001": P,
    "M.07C.002": lambda: row(A16, "weights"),
    "M.07C.003": lambda: gib(row(A16, "weights")),
    "M.07C.004": lambda: row(A16, "gradients"),
    "M.07C.005": lambda: gib(row(A16, "gradients")),
    "M.07C.006": lambda: row(A16, "optimizer"),
    "M.07C.007": lambda: gib(row(A16, "optimizer")),
    "M.07C.008": lambda: rank(0),
    "M.07C.009": lambda: gib(rank(0)),
    "M.07C.010": lambda: per_param(rank(0)),
    "M.07C.011": lambda: rank(1),
    "M.07C.012": lambda: gib(rank(1)),
    "M.07C.013": lambda: per_param(rank(1)),
    "M.07C.014": lambda: rank(2),
    "M.07C.015": lambda: gib(rank(2)),
    "M.07C.016": lambda: per_param(rank(2)),
    "M.07C.017": lambda: rank(3),
    "M.07C.018": lambda: gib(rank(3)),
    "M.07C.019": lambda: per_param(rank(3)),
    "M.07C.020": lambda: gib(rank(3)),
    # The three displayed cells add to ...271; the displayed total is the right rounding of the bytes (M-01).
    "M.07C.023": lambda: sum(shown(gib(row(A16, path))) for path in ("weights", "gradients", "optimizer")),
    "M.07C.024": lambda: per_param(row(A16, "weights", 1) + row(A16, "gradients", 1)) + Fraction(12, D),
    "M.07C.025": lambda: per_param(row(A16, "weights", 2)) + Fraction(18, D),
    "M.07C.026": lambda: Fraction(20, D),
    "M.07C.027": lambda: D,
    # M 0x07D
    "M.07D.001": lambda: largest(0),
    "M.07D.002": lambda: full(0),
    "M.07D.003": lambda: missing(0),
    "M.07D.004": lambda: largest(1),
    "M.07D.005": lambda: full(1),
    "M.07D.006": lambda: missing(1),
    "M.07D.007": lambda: largest(2),
    "M.07D.008": lambda: full(2),
    "M.07D.009": lambda: missing(2),
    "M.07D.010": lambda: largest(3),
    "M.07D.011": lambda: full(3),
    "M.07D.012": lambda: missing(3),
    "M.07D.014": lambda: D,
    # M 0x07F
    "M.07F.001": lambda: ownership.collective("all-reduce", P(), "bf16", D)["input"],
    "M.07F.002": lambda: gib(ownership.collective("all-gather", P(), "bf16", D)["output"]),
    "M.07F.003": lambda: gib(sent("all-gather")),
    "M.07F.004": lambda: gib(sent("all-reduce")),
    "M.07F.005": lambda: gib(sent("reduce-scatter")),
    "M.07F.006": lambda: gib(sweeps(reshard=True)),
    "M.07F.007": lambda: gib(sweeps(reshard=False)),
    "M.07F.008": lambda: Fraction(sweeps(reshard=True), sent("all-reduce")),
    "M.07F.011": lambda: per_param(row(A16, "gradients")),
    "M.07F.012": lambda: D,
    # Three times the displayed addend is ...508; the displayed sum is the right rounding of the bytes (M-01).
    "M.07F.013": lambda: 3 * shown(gib(sent("all-gather"))),
    # M 0x07G
    "M.07G.001": lambda: weight("column", 1),
    "M.07G.002": lambda: weight("column"),
    "M.07G.003": lambda: ownership.tensor_shard(S, 4096, 4096, "column", T)["weight"][1],
    "M.07G.004": lambda: output("column"),
    "M.07G.005": lambda: output("row"),
    "M.07G.006": lambda: S,
    "M.07G.007": lambda: RUNNING.d_q,
    "M.07G.008": lambda: T,
    # M 0x07H
    "M.07H.001": lambda: mib(ownership.boundary_bytes(1, S, 4096)),
    "M.07H.002": lambda: mib(ownership.boundary_bytes(1, S, 4096, "bf16", T)),
    "M.07H.003": lambda: kv("full"),
    "M.07H.004": lambda: kv("shard"),
    "M.07H.005": lambda: kv("missing"),
    "M.07H.008": lambda: 1,
    "M.07H.009": lambda: S,
    "M.07H.010": lambda: RUNNING.num_key_value_heads,
    "M.07H.011": lambda: RUNNING.head_dim,
    "M.07H.012": lambda: C,
    "M.07H.013": lambda: T,
    # M 0x07J
    "M.07J.001": lambda: rank(0),
    "M.07J.002": lambda: rank(1),
    "M.07J.003": lambda: rank(2),
    "M.07J.004": lambda: rank(3),
    "M.07J.005": lambda: sent("reduce-scatter"),
    "M.07J.006": lambda: sent("all-reduce"),
    "M.07J.007": lambda: sent("all-gather", repeats=3),
    "M.07J.008": P,
    "M.07J.010": lambda: D,
}

TEXTS = {
    "M.07A.001": lambda: all(len(ownership.mesh(LAYOUT_A, r)["data"]) == 8 for r in range(8)),
    "M.07A.004": lambda: all(
        ownership.cluster_bytes(A16, P(), stage, D).total == D * rank(stage) for stage in range(4)
    ),
    # The document says 80 GiB; the vendor's figure is 80 GB. Neither holds the state of plain data parallelism.
    "M.07C.021": lambda: rank(3) < CHIPS["H100"].memory_bytes == 80 * GB < rank(0),
    "M.07C.022": lambda: ownership.cluster_bytes(A16, P(), 0, 8).total == 8 * 20 * P(),
    "M.07D.013": lambda: 32 * largest(3) + largest(1) == P(),
    "M.07F.009": lambda: sent("all-gather") * D == sent("reduce-scatter") * D == (D - 1) * 2 * P(),
    "M.07F.010": lambda: sent("all-reduce") * D == 2 * (D - 1) * 2 * P(),
    "M.07G.009": lambda: ownership.tensor_shard(S, 4096, 4096, "column", 1)["weight"] == (4096, 4096),
    "M.07G.010": lambda: ownership.tensor_shard(S, 4096, 4096, "column", T)["weight"] == (4096, 512),
    "M.07G.011": lambda: ownership.tensor_shard(S, 4096, 4096, "column", T)["output"] == (4096, 512),
    "M.07G.012": lambda: ownership.tensor_shard(S, 4096, 4096, "row", T)["output"] == (4096, 4096),
    "M.07H.006": lambda: ownership.context_missing(RUNNING, 3, 50, 5)["full"] == 2 * 3 * 50 * 8 * 128 * 2,
    "M.07H.007": lambda: ownership.boundary_bytes(1, 4096, 4096) == 2 * 1 * 4096 * 4096,
    "M.07I.001": lambda: (LAYOUT_A.world_size, len(ownership.compose(A16, RUNNING, LAYOUT_A))) == (8, 1),
    "M.07I.002": lambda: (LAYOUT_B.world_size, len(ownership.compose(A16, RUNNING, LAYOUT_B))) == (8, 2),
    # The document's collective_row and persistent_state_rows let all of these in (M-10).
    "M.07J.009": lambda: all(
        is_refused(*case)
        for case in (
            ("ENUM", ownership.collective, "broadcast", 10, "bf16", 2),
            ("NONPOS", ownership.collective, "all-gather", 10, "bf16", 0),
            ("RANGE", ownership.rank_state, A16, 10, 4, 2),
            ("RANGE", ownership.rank_state, A16, 10, -1, 2),
        )
    )
    and sent("all-gather", 5) == 5 * sent("all-gather"),
}
