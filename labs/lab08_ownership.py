"""Lab 08: who keeps what, from one shard to a mesh of three axes (M 0x07)."""


from costlib.domain import ManifestError
from costlib.fixtures import (
    A16,
    CLASSIC,
    INFER_BF16,
    MASTER,
    ODD,
    ODD_EVERYTHING,
    ODD_EXPERTS,
    ODD_TIED,
    RUNNING,
    TOY,
    TOY_TIED,
)
from costlib.ledger import Ledger, UnitError
from costlib.policies import Ownership, StatePolicy, StateRow
from costlib.units import ceil_div
from labs.spec import Exercise, Failure, Lab, Reference, Wrong, given

P = 8_030_261_248  # unique scalars of RUNNING
ODD_WIDE = ODD.replace(manifest_id="odd-wide", intermediate_size=246)
ODD_POSITIONS = ODD.replace(manifest_id="odd-positions", position="learned", max_positions=50)
QUANTIZED = StatePolicy(
    policy_id="quantized",
    rows=(
        StateRow(role="weights", counts="loaded", dtype="int4"),
        StateRow(role="gradients", counts="trained", dtype="bf16", created="backward", owner="autograd"),
        StateRow(role="optimizer.m", counts="trained", dtype="fp8", copies=2, created="step", owner="optimizer"),
    ),
)


def _layout(policy_id, data=1, tensor=1, pipeline=1, context=1, zero_stage=0):
    return Ownership(
        policy_id=policy_id,
        world_size=data * tensor * pipeline * context,
        data_parallel=data,
        tensor_parallel=tensor,
        pipeline_parallel=pipeline,
        context_parallel=context,
        zero_stage=zero_stage,
    )


LAYOUT_A = _layout("dp8-zero3", data=8, zero_stage=3)
LAYOUT_B = _layout("dp2-tp2-pp2-zero3", data=2, tensor=2, pipeline=2, zero_stage=3)
LAYOUT_B1 = _layout("dp2-tp2-pp2-zero1", data=2, tensor=2, pipeline=2, zero_stage=1)
TENSOR_8 = _layout("tp8-zero2", tensor=8, zero_stage=2)
CONTEXT = _layout("dp2-cp4-zero3", data=2, context=4, zero_stage=3)
MIXED = _layout("dp5-tp2-pp2-cp3-zero3", data=5, tensor=2, pipeline=2, context=3, zero_stage=3)
ODD_MESH = _layout("dp5-tp3-pp2-cp2", data=5, tensor=3, pipeline=2, context=2)
WIDE_MESH = _layout("dp4-tp8-pp4-zero1", data=4, tensor=8, pipeline=4, zero_stage=1)
TRIPLE = _layout("dp3-tp2-pp3-zero3", data=3, tensor=2, pipeline=3, zero_stage=3)
LAYOUTS = (LAYOUT_A, LAYOUT_B, LAYOUT_B1, CONTEXT, MIXED, TRIPLE)


_changed = Reference("ownership").changed


def _bytes(values, dtype):
    from costlib.policies import BITS

    return ceil_div(values * BITS[dtype], 8)


shard = Exercise(
    "shard",
    points=1,
    minutes=5,
    lines=2,
    hints=(
        "All ranks hold equally many values, so a remainder costs everyone one more.",
        "ceil_div of costlib.units rounds up in integers. padding = degree * shard - count.",
    ),
    cases=(
        given(1_128, 64).gives({"shard": 18, "padding": 24}),
        given(P, 8).gives({"shard": 1_003_782_656, "padding": 0}),
        given(128_256, 512).gives({"shard": 251, "padding": 256}),
        given(1_009, 2).gives({"shard": 505, "padding": 1}),
        given(5, 8).gives({"shard": 1, "padding": 3}),
        given(0, 7).gives({"shard": 0, "padding": 0}),
        given(2**53 + 1, 1).gives({"shard": 9_007_199_254_740_993, "padding": 0}),
        given(10, 0).refuses("NONPOS"),
        given(-1, 2).refuses("NEG"),
        given(70e9, 8).refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "floor",
            lambda count, degree: {"shard": count // degree, "padding": 0},
            "You rounded down: the remainder has no owner. Round up and declare the padding.",
        ),
        Wrong(
            "padding-as-data",
            lambda count, degree: {"shard": ceil_div(count, degree), "padding": 0},
            "The pieces are right, and the padding is declared to be data. Gathered, there would be more values than before.",
        ),
        Wrong(
            "remainder",
            lambda count, degree: {"shard": ceil_div(count, degree), "padding": count % degree},
            "That is the remainder of the division. Padding is what is missing to the next multiple.",
        ),
        Wrong(
            "always-one-more",
            lambda count, degree: {"shard": count // degree + 1, "padding": degree * (count // degree + 1) - count},
            "You add one even where the division leaves nothing over.",
        ),
    ),
    shapes={"count": (0, 1, 1_009, 128_256, 96_864, P), "degree": (1, 2, 6, 7, 8, 64, 512)},
)


def _meshed(axes, stride_of=lambda stride, degree: stride * degree):
    def model(layout, rank=0):
        groups, stride = {}, 1
        for axis in axes:
            degree = getattr(layout, f"{axis}_parallel")
            first = rank - rank // stride % degree * stride
            groups[axis] = tuple(range(first, first + degree * stride, stride))
            stride = stride_of(stride, degree)
        return groups

    return model


AXES = ("tensor", "context", "data", "pipeline")
mesh = Exercise(
    "mesh",
    points=3,
    minutes=15,
    lines=8,
    hints=(
        "A rank number is a number in a mixed base: its last digit is the place in the tensor group.",
        "The stride of an axis is the product of the degrees before it: 1, T, T*C, T*C*D. Its digit is rank // stride % degree.",
        "first = rank - digit * stride; the group is tuple(range(first, first + degree * stride, stride)).",
    ),
    cases=(
        given(LAYOUT_A).gives({"tensor": (0,), "context": (0,), "data": (0, 1, 2, 3, 4, 5, 6, 7), "pipeline": (0,)}),
        given(LAYOUT_B).gives({"tensor": (0, 1), "context": (0,), "data": (0, 2), "pipeline": (0, 4)}),
        given(LAYOUT_B, 5).gives({"tensor": (4, 5), "context": (5,), "data": (5, 7), "pipeline": (1, 5)}),
        given(ODD_MESH, 37).gives(
            {"tensor": (36, 37, 38), "context": (37, 40), "data": (31, 37, 43, 49, 55), "pipeline": (7, 37)}
        ),
        given(WIDE_MESH, 77).gives(
            {
                "tensor": (72, 73, 74, 75, 76, 77, 78, 79),
                "context": (77,),
                "data": (69, 77, 85, 93),
                "pipeline": (13, 45, 77, 109),
            }
        ),
        given(LAYOUT_B, 8).refuses("RANGE"),
        given(LAYOUT_B, -1).refuses("NEG"),
    ),
    wrong=(
        Wrong(
            "neighbours-everywhere",
            _meshed(AXES, lambda stride, degree: 1),
            "Every group of yours is a run of neighbours. Only the tensor group is; along the others ranks are a stride apart.",
        ),
        Wrong(
            "pipeline-first",
            lambda layout, rank=0: {axis: _meshed(AXES[::-1])(layout, rank)[axis] for axis in AXES},
            "You number along the pipeline first. Neighbours share a tensor group: it talks the most.",
        ),
        Wrong(
            "rank-zero",
            lambda layout, rank=0: _meshed(AXES)(layout, 0),
            "These are the groups of rank 0. Start each group at rank - digit * stride.",
        ),
        Wrong(
            "without-itself",
            lambda layout, rank=0: {
                axis: tuple(r for r in group if r != rank) for axis, group in _meshed(AXES)(layout, rank).items()
            },
            "The rank itself belongs to its groups.",
        ),
    ),
    shapes={("layout", "rank"): tuple((layout, rank) for layout in (*LAYOUTS, ODD_MESH, WIDE_MESH) for rank in (0, 3, 7))},
)


def _state(rule, weigh=lambda row, values, _: row.copies * _bytes(values, row.dtype), cut=ceil_div):
    """rank_state under another rule for what is cut, or with rows weighed or cut in another way."""

    def model(policy, params, stage, degree):
        degrees = {row.role: degree if rule(row.role, stage) else 1 for row in policy.rows}
        return {row.role: weigh(row, cut(params, degrees[row.role]), degrees[row.role]) for row in policy.rows}

    return model


def _from(role):
    return {"weights": 3, "gradients": 2}.get(role.partition(".")[0], 1)


def _cumulative(role, stage):
    return stage >= _from(role)


def _rows(policy, *values):
    return dict(zip((row.role for row in policy.rows), values, strict=True))


rank_state = Exercise(
    "rank_state",
    points=4,
    minutes=15,
    lines=5,
    hints=(
        "The stages are cumulative: 1 cuts the optimizer's rows, 2 also the gradients, 3 also the weights.",
        "A row is cut if stage >= sharded_from(row.role). Then it has shard(params, degree)['shard'] values, else all.",
        "{row.role: row.copies * state.bytes_of_weights(values, row.dtype) for row in policy.rows}.",
    ),
    cases=(
        given(A16, P, 0, 8).gives(_rows(A16, *(16_060_522_496,) * 2, *(32_121_044_992,) * 4)),
        given(A16, P, 1, 8).gives(
            _rows(A16, 16_060_522_496, 16_060_522_496, 32_121_044_992, *(4_015_130_624,) * 3)
        ),
        given(A16, P, 2, 8).gives(_rows(A16, 16_060_522_496, 2_007_565_312, *(4_015_130_624,) * 4)),
        given(A16, P, 3, 8).gives(_rows(A16, *(2_007_565_312,) * 2, *(4_015_130_624,) * 4)),
        given(MASTER, P, 1, 8).gives(_rows(MASTER, 16_060_522_496, 16_060_522_496, *(4_015_130_624,) * 3)),
        given(MASTER, 1_128, 1, 64).gives(_rows(MASTER, 2_256, 2_256, 72, 72, 72)),
        given(A16, 1_128, 1, 64).gives(_rows(A16, 2_256, 2_256, 4_512, 72, 72, 72)),
        given(A16, 1_128, 3, 64).gives(_rows(A16, 36, 36, 72, 72, 72, 72)),
        given(QUANTIZED, 521, 1, 4).gives(_rows(QUANTIZED, 261, 1_042, 262)),
        given(QUANTIZED, 521, 3, 4).gives(_rows(QUANTIZED, 66, 262, 262)),
        given(A16, P, 4, 8).refuses("RANGE"),
        given(A16, P, 1, 0).refuses("NONPOS"),
        given(A16, 8e9, 1, 8).refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "world-size",
            _state(lambda role, stage: True),
            "You cut every row whatever the stage. Each row needs its own rule: stage 1 leaves weights and gradients whole.",
        ),
        Wrong(
            "one-stage-only",
            _state(lambda role, stage: stage == _from(role)),
            "You cut what this stage adds and nothing of the stages before. They are cumulative: compare with >=.",
        ),
        Wrong(
            "one-stage-early",
            _state(lambda role, stage: stage >= _from(role) - 1),
            "You are one stage ahead: 1 cuts the optimizer's rows only, 2 the gradients, 3 the weights.",
        ),
        Wrong(
            "floored-bytes",
            _state(_cumulative, lambda row, values, degree: row.copies * _bytes(values, row.dtype) // degree, lambda p, _: p),
            "You divided bytes and rounded down. A rank holds whole values: cut the count first, with shard, then weigh it.",
        ),
        Wrong(
            "update-copy-as-optimizer",
            _state(lambda role, stage: stage >= (1 if role == "gradients.update" else _from(role))),
            "You cut the fp32 gradient copy with the optimizer's rows. It is a gradient: ZeRO-1 leaves it whole.",
        ),
        Wrong(
            "copies-forgotten",
            _state(_cumulative, lambda row, values, _: _bytes(values, row.dtype)),
            "A row can be kept more than once: multiply by row.copies.",
        ),
    ),
    shapes={
        "policy": (A16, MASTER, INFER_BF16, QUANTIZED),
        "params": (5, 521, 1_128, P),
        "stage": (0, 1, 2, 3),
        "degree": (1, 4, 8, 64),
    },
)

cluster = Exercise(
    "cluster_bytes",
    points=3,
    minutes=12,
    lines=7,
    hints=(
        "unique is rank_state of one rank that is alone: degree 1.",
        "A row that the stage leaves whole is there degree times, that is degree - 1 times too often.",
        "Whatever is left of degree * rank_state(...).total after unique and replicas is padding.",
    ),
    cases=(
        given(A16, P, 1, 8).gives({"unique": 160_605_224_960, "replicas": 449_694_629_888, "padding": 0}),
        given(A16, P, 0, 8).gives({"unique": 160_605_224_960, "replicas": 1_124_236_574_720, "padding": 0}),
        given(A16, P, 2, 8).gives({"unique": 160_605_224_960, "replicas": 112_423_657_472, "padding": 0}),
        given(A16, P, 3, 8).gives({"unique": 160_605_224_960, "replicas": 0, "padding": 0}),
        given(MASTER, 1_128, 1, 64).gives({"unique": 18_048, "replicas": 284_256, "padding": 288}),
        given(A16, 1_128, 3, 64).gives({"unique": 22_560, "replicas": 0, "padding": 480}),
        given(A16, 5, 2, 8).gives({"unique": 100, "replicas": 70, "padding": 54}),
        given(QUANTIZED, 521, 3, 4).gives({"unique": 2_345, "replicas": 0, "padding": 15}),
        given(A16, 5, 4, 8).refuses("RANGE"),
    ),
    wrong=(
        Wrong(
            "one-inventory",
            _changed("cluster_bytes", lambda r, *_: {"replicas": 0}),
            "You count every row once, as if each were cut. What a stage leaves whole is stored by all ranks.",
        ),
        Wrong(
            "all-replicated",
            _changed("cluster_bytes", lambda r, policy, params, stage, degree: {"replicas": (degree - 1) * r["unique"]}),
            "You count every row once per rank, as plain data parallelism stores it. A cut row has no replicas.",
        ),
        Wrong(
            "original-as-replica",
            _changed(
                "cluster_bytes",
                lambda r, policy, params, stage, degree: {"replicas": r["replicas"] // max(1, degree - 1) * degree},
            ),
            "The first copy is in `unique` already: degree - 1 further ones are replicas.",
        ),
        Wrong(
            "padding-lost",
            _changed("cluster_bytes", lambda r, *_: {"padding": 0}),
            "Padding is stored too. degree * rank_state must come out exactly.",
        ),
    ),
    shapes=rank_state.shapes,
)


def _grouped(blocks, **others):
    return {f"blocks.{i}": count for i, count in enumerate(blocks)} | others


groups = Exercise(
    "fsdp_groups",
    points=3,
    minutes=12,
    lines=7,
    hints=(
        "params.ledger(arch) has the total, the embedding and the head; stage_blocks(arch, 1)[0] has the blocks.",
        "Root is what is left: the total minus the sum of the other groups. Then nothing can be lost or counted twice.",
    ),
    cases=(
        given(RUNNING, "root").gives({"root": P}),
        given(RUNNING, "blocks").gives(_grouped((218_112_000,) * 32, root=1_050_677_248)),
        given(RUNNING, "blocks-and-ends").gives(
            _grouped((218_112_000,) * 32, embedding=525_336_576, head=525_336_576, root=4_096)
        ),
        given(TOY, "blocks").gives(_grouped((496, 496), root=264)),
        given(TOY_TIED, "blocks-and-ends").gives(_grouped((496, 496), embedding=128, head=0, root=8)),
        given(ODD, "blocks").gives(_grouped((102_912,) * 3, root=193_824)),
        given(ODD_EVERYTHING, "blocks-and-ends").gives(
            _grouped((79_786,) * 3, embedding=96_864, head=1_009, root=8_640)
        ),
        given(ODD_EXPERTS, "blocks").gives(_grouped((102_912, 109_920, 109_920), root=193_824)),
        given(RUNNING, "layers").refuses("ENUM"),
    ),
    wrong=(
        Wrong(
            "final-norm-lost",
            _changed("fsdp_groups", lambda r, arch, grouping: {"root": 0} if grouping == "blocks-and-ends" else {}),
            "The final norm has no group. Root takes whatever is left, however small.",
        ),
        Wrong(
            "tied-twice",
            _changed(
                "fsdp_groups",
                lambda r, arch, grouping: {"head": arch.vocab_size * (arch.hidden_size + arch.head_bias)} if "head" in r else {},
            ),
            "A tied head is the embedding's tensor. It is gathered with the embedding and has nothing of its own but a bias.",
        ),
        Wrong(
            "root-is-all",
            _changed("fsdp_groups", lambda r, arch, grouping: {"root": sum(r.values())}),
            "Your root holds the whole model beside the groups. A parameter belongs to one group.",
        ),
        Wrong(
            "one-group-of-blocks",
            lambda arch, grouping: (
                lambda r: {"blocks": sum(v for k, v in r.items() if k.startswith("blocks"))}
                | {k: v for k, v in r.items() if not k.startswith("blocks")}
                if grouping != "root"
                else r
            )(_changed("fsdp_groups", lambda r, *_: {})(arch, grouping)),
            "All blocks are one group here, so all of them would be gathered together. Each is a group.",
        ),
    ),
    shapes={
        "arch": (RUNNING, TOY, TOY_TIED, ODD, ODD_TIED, ODD_EVERYTHING, ODD_EXPERTS, CLASSIC),
        "grouping": ("root", "blocks", "blocks-and-ends"),
    },
)


def _gathered(full, shard):
    return {"full": full, "shard": shard, "missing": full - shard}


group = Exercise(
    "fsdp_group",
    points=2,
    minutes=6,
    lines=2,
    hints=(
        "Weigh one piece first: shard, then state.bytes_of_weights.",
        "full is degree pieces, missing is degree - 1.",
    ),
    cases=(
        given(P, 8).gives({"full": 16_060_522_496, "shard": 2_007_565_312, "missing": 14_052_957_184}),
        given(1_050_677_248, 8).gives({"full": 2_101_354_496, "shard": 262_669_312, "missing": 1_838_685_184}),
        given(218_112_000, 8).gives({"full": 436_224_000, "shard": 54_528_000, "missing": 381_696_000}),
        given(1_009, 7, "fp32").gives({"full": 4_060, "shard": 580, "missing": 3_480}),
        given(1_009, 2, "int4").gives({"full": 506, "shard": 253, "missing": 253}),
        given(5, 8).gives({"full": 16, "shard": 2, "missing": 14}),
        given(4_096, 1).gives({"full": 8_192, "shard": 8_192, "missing": 0}),
        given(4_096, 0).refuses("NONPOS"),
        given(4_096, 8, "int3").refuses("ENUM"),
    ),
    wrong=(
        Wrong(
            "all-missing",
            _changed("fsdp_group", lambda r, *_: {"missing": r["full"]}),
            "A rank holds its own shard already: degree - 1 pieces are missing.",
        ),
        Wrong(
            "one-peer",
            _changed("fsdp_group", lambda r, *_: {"missing": r["shard"]}),
            "One shard is missing per peer, and there are degree - 1 peers.",
        ),
        Wrong(
            "always-bf16",
            lambda params, degree, dtype="bf16": _gathered(*(2 * n * ceil_div(params, degree) for n in (degree, 1))),
            "You took 2 bytes per value. The dtype is an argument.",
        ),
        Wrong(
            "unpadded",
            lambda params, degree, dtype="bf16": _gathered(_bytes(params, dtype), _bytes(params, dtype) // degree),
            "Your shards are fractions of values, rounded down. Pieces are equal and whole; the padding is gathered too.",
        ),
    ),
    shapes={"params": (5, 1_009, 96_864, 218_112_000, P), "degree": (1, 2, 7, 8, 64), "dtype": ("bf16", "fp32", "fp8", "int4")},
)


def _events(change):
    """The reference's events, changed by a mistake that knows them and the arguments."""

    def model(groups, reshard, prefetch=0):
        from solutions import ownership

        return change(ownership.fsdp_events, groups, reshard, prefetch)

    return model


def _upwards(right, groups, reshard, prefetch):
    events = right(groups, reshard, prefetch)
    turn = events.index(("forward", groups - 1)) + 1 + reshard
    return events[:turn] + tuple((action, groups - 1 - g) for action, g in events[turn:])


def _pairs(text):
    """`"g0 f0 -0"` as the events it is short for."""
    words = {"g": "gather", "f": "forward", "b": "backward", "r": "reduce-scatter", "-": "free"}
    return tuple((words[word[0]], int(word[1:])) for word in text.split())


events = Exercise(
    "fsdp_events",
    points=4,
    minutes=25,
    lines=12,
    hints=(
        "Two passes over the groups, upwards and downwards, with one set of what is held.",
        "At position i of an order, order[i : i + prefetch + 1] must be held; gather those that are not, in that order.",
        "After the compute event: in backward ('reduce-scatter', g); in backward, or if reshard, ('free', g) and out of the set.",
    ),
    cases=(
        given(1, True).gives(_pairs("g0 f0 -0 g0 b0 r0 -0")),
        given(2, True).gives(_pairs("g0 f0 -0 g1 f1 -1 g1 b1 r1 -1 g0 b0 r0 -0")),
        given(2, False).gives(_pairs("g0 f0 g1 f1 b1 r1 -1 b0 r0 -0")),
        given(3, True, 1).gives(_pairs("g0 g1 f0 -0 g2 f1 -1 f2 -2 g2 g1 b2 r2 -2 g0 b1 r1 -1 b0 r0 -0")),
        given(3, True, 5).gives(_pairs("g0 g1 g2 f0 -0 f1 -1 f2 -2 g2 g1 g0 b2 r2 -2 b1 r1 -1 b0 r0 -0")),
        given(3, False, 2).gives(_pairs("g0 g1 g2 f0 f1 f2 b2 r2 -2 b1 r1 -1 b0 r0 -0")),
        given(0, True).refuses("NONPOS"),
        given(2, 1).refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "never-freed",
            _events(lambda right, groups, reshard, prefetch: right(groups, False, prefetch)),
            "You keep every group through backward, whatever `reshard` says. Freed after forward, it is gathered a second time.",
        ),
        Wrong(
            "prefetch-ignored",
            _events(lambda right, groups, reshard, prefetch: right(groups, reshard, 0)),
            "You gather one group at a time. prefetch says how many of the next ones are gathered before this one computes.",
        ),
        Wrong(
            "backward-upwards",
            _events(_upwards),
            "Your backward pass runs in forward order. The gradient arrives at the last group first.",
        ),
        Wrong(
            "no-reduce-scatter",
            _events(lambda right, *args: tuple(e for e in right(*args) if e[0] != "reduce-scatter")),
            "The gradients are never reduced: after its backward a group's full gradient is summed over the ranks and cut.",
        ),
    ),
    shapes={"groups": (1, 2, 3, 5, 8), "reshard": (True, False), "prefetch": (0, 1, 2)},
)

RUNNING_SIZES = (218_112_000,) * 32 + (1_050_677_248,)
peak = Exercise(
    "materialized_peak",
    points=3,
    minutes=10,
    lines=5,
    hints=(
        "Walk over fsdp_events(len(sizes), reshard, prefetch) and keep two numbers: what is live, and the most there was.",
        "A gather adds its group's size, a free takes it away, everything else changes nothing.",
    ),
    cases=(
        given((5, 7, 11), True).gives(11),
        given((5, 7, 11), True, 1).gives(18),
        given((5, 7, 11), False).gives(23),
        given((5, 7, 11), False, 1).gives(23),
        given((11, 2, 3, 10), True, 1).gives(13),
        given((11, 2, 3, 10), True, 2).gives(16),
        given((11, 2, 3, 10), True, 9).gives(26),
        given((P,), True).gives(P),
        given(RUNNING_SIZES, True).gives(1_050_677_248),
        given(RUNNING_SIZES, True, 1).gives(1_268_789_248),
        given((), True).refuses("NONPOS"),
        given((5, -7), True).refuses("NEG"),
    ),
    wrong=(
        Wrong(
            "largest-only",
            lambda sizes, reshard, prefetch=0: max(sizes, default=0),
            "You take the largest group. With prefetch, or without resharding, several are held at once.",
        ),
        Wrong(
            "everything",
            lambda sizes, reshard, prefetch=0: sum(sizes),
            "You hold all groups at once. With reshard=True a group is freed before the groups after the prefetched ones are gathered.",
        ),
        Wrong(
            "reshard-assumed",
            lambda sizes, reshard, prefetch=0: max(
                (sum(sizes[i : i + prefetch + 1]) for i in range(len(sizes))), default=0
            ),
            "You assume that groups are freed after forward. With reshard=False they stay until backward.",
        ),
        Wrong(
            "multiples-of-the-largest",
            lambda sizes, reshard, prefetch=0: min(prefetch + 1, len(sizes)) * max(sizes, default=0) if reshard else sum(sizes),
            "You count the largest group prefetch + 1 times. The groups held together are neighbours, each with its own size.",
        ),
    ),
    shapes={
        "sizes": ((11, 2, 3, 10), (5, 7, 11), (496, 496, 264), (3, 9, 1, 9, 3), RUNNING_SIZES),
        "reshard": (True, True, False),
        "prefetch": (0, 1, 2),
    },
)


def _moved(input, output, ring_send):
    return {"input": input, "output": output, "ring_send": ring_send}


send = Exercise(
    "collective",
    points=4,
    minutes=15,
    lines=7,
    hints=(
        "Let one piece be the bytes of shard(elements, group)['shard']; everything is a number of pieces.",
        "In a ring, each piece visits every rank: gathering, a rank passes on group - 1 pieces. So it does scattering.",
        "An all-reduce is a reduce-scatter followed by an all-gather: 2 * (group - 1) pieces. repeats multiplies what is sent.",
    ),
    cases=(
        given("all-gather", P, "bf16", 8).gives(_moved(2_007_565_312, 16_060_522_496, 14_052_957_184)),
        given("reduce-scatter", P, "bf16", 8).gives(_moved(16_060_522_496, 2_007_565_312, 14_052_957_184)),
        given("all-reduce", P, "bf16", 8).gives(_moved(16_060_522_496, 16_060_522_496, 28_105_914_368)),
        given("all-gather", P, "bf16", 8, 3).gives(_moved(2_007_565_312, 16_060_522_496, 42_158_871_552)),
        given("all-reduce", 1_009, "fp32", 7, 2).gives(_moved(4_060, 4_060, 13_920)),
        given("reduce-scatter", 10, "int4", 4).gives(_moved(8, 2, 6)),
        given("all-gather", 1_009, "fp8", 2).gives(_moved(505, 1_010, 505)),
        given("all-reduce", 4_096, "fp32", 1).gives(_moved(16_384, 16_384, 0)),
        given("broadcast", P, "bf16", 8).refuses("ENUM"),
        given("all-gather", P, "bf16", 0).refuses("NONPOS"),
        given("all-gather", P, "bf16", 8, 0).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "whole-payload",
            _changed(
                "collective",
                lambda r, kind, elements, dtype, group, repeats: {
                    "ring_send": repeats * max(r["input"], r["output"]) * (2 if kind == "all-reduce" else 1)
                },
            ),
            "You send the whole tensor. A rank never sends its peers the piece that they are about to send it: (D - 1)/D of it.",
        ),
        Wrong(
            "one-hop",
            _changed(
                "collective",
                lambda r, kind, elements, dtype, group, repeats: {"ring_send": r["ring_send"] // max(1, group - 1)},
            ),
            "That is one step of the ring. There are group - 1 steps, and each sends a piece.",
        ),
        Wrong(
            "gather-as-all-reduce",
            _changed(
                "collective",
                lambda r, kind, *_: {"ring_send": r["ring_send"] * 2} if kind == "all-gather" else {},
            ),
            "Your all-gather costs as much as an all-reduce. Gathering is only the second half of it.",
        ),
        Wrong(
            "all-reduce-once",
            _changed("collective", lambda r, kind, *_: {"ring_send": r["ring_send"] // 2} if kind == "all-reduce" else {}),
            "Your all-reduce goes round once. It scatters the sums and then gathers them: twice group - 1 steps.",
        ),
        Wrong(
            "repeats-dropped",
            _changed(
                "collective",
                lambda r, kind, elements, dtype, group, repeats: {"ring_send": r["ring_send"] // repeats},
            ),
            "repeats does not reach the answer: it multiplies what is sent.",
        ),
        Wrong(
            "input-always-whole",
            _changed("collective", lambda r, *_: {"input": max(r["input"], r["output"])}),
            "Into an all-gather a rank puts its shard only. What comes out is the whole.",
        ),
    ),
    shapes={
        "kind": ("all-gather", "reduce-scatter", "all-reduce"),
        "elements": (10, 1_009, 218_112_000, P),
        "dtype": ("bf16", "fp32", "fp8"),
        "group": (1, 2, 7, 8, 64),
        "repeats": (1, 2, 32),
    },
)


def _parts(input, weight, output, collective="none"):
    return {"input": input, "weight": weight, "output": output, "collective": collective}


tensor = Exercise(
    "tensor_shard",
    points=3,
    minutes=12,
    lines=8,
    hints=(
        "Write Y = X W with three letters and cut the one that the split names: n is in W and Y, k in X and W.",
        "column: (m, k), (k, n/T), (m, n/T). row: (m, k/T), (k/T, n), (m, n), and a sum is missing.",
        "require_divides(degree, n, 'degree', 'n') of costlib.domain refuses with DIVIS.",
    ),
    cases=(
        given(4096, 4096, 4096, "column", 8).gives(_parts((4096, 4096), (4096, 512), (4096, 512))),
        given(4096, 4096, 4096, "row", 8).gives(_parts((4096, 512), (512, 4096), (4096, 4096), "all-reduce")),
        given(7, 96, 250, "column", 5).gives(_parts((7, 96), (96, 50), (7, 50))),
        given(7, 250, 96, "row", 5).gives(_parts((7, 50), (50, 96), (7, 96), "all-reduce")),
        given(280, 120, 96, "row", 3).gives(_parts((280, 40), (40, 96), (280, 96), "all-reduce")),
        given(280, 120, 96, "column", 3).gives(_parts((280, 120), (120, 32), (280, 32))),
        given(7, 96, 250, "column", 4).refuses("DIVIS"),
        given(7, 250, 96, "row", 4).refuses("DIVIS"),
        given(7, 96, 250, "diagonal", 5).refuses("ENUM"),
    ),
    wrong=(
        Wrong(
            "output-divided",
            _changed(
                "tensor_shard",
                lambda r, m, k, n, split, degree: {"output": (m, n // degree)} if split == "row" else {},
            ),
            "A row split cuts what is summed over, not the output: every rank has a full-sized part of the sum.",
        ),
        Wrong(
            "input-divided",
            _changed(
                "tensor_shard",
                lambda r, m, k, n, split, degree: {"input": (m, k // degree)} if split == "column" else {},
            ),
            "A column split needs the whole input on every rank: each output column is a product over all of k.",
        ),
        Wrong(
            "splits-swapped",
            lambda m, k, n, split, degree: _parts((m, k // degree), (k // degree, n), (m, n), "all-reduce")
            if split == "column"
            else _parts((m, k), (k, n // degree), (m, n // degree)),
            "The two splits are swapped. Columns of W are outputs, its rows are what the product sums over.",
        ),
        Wrong(
            "sum-forgotten",
            _changed("tensor_shard", lambda r, *_: {"collective": "none"}),
            "After a row split the outputs are parts of a sum. Without an all-reduce each rank goes on with a wrong Y.",
        ),
    ),
    shapes={
        "m": (1, 7, 4096),
        ("k", "n", "degree"): ((96, 120, 2), (120, 96, 3), (4096, 14336, 8), (14336, 4096, 16), (60, 96, 4)),
        "split": ("column", "row"),
    },
)


def _extents(heads, kv_heads, width, rows):
    names = ("num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size")
    return dict(zip(names, (heads, kv_heads, width, rows)))


TENSOR_SHAPES = {
    ("arch", "degree"): ((RUNNING, 2), (RUNNING, 8), (RUNNING, 32), (ODD, 2), (ODD_WIDE, 6), (TOY, 4), (CLASSIC, 3), (ODD_EVERYTHING, 2)),
    "vocab_multiple": (1, 1, 8, 64),
}
extents = Exercise(
    "rank_extents",
    points=4,
    minutes=15,
    lines=10,
    hints=(
        "Heads are whole: a rank has H_q / T query heads, and H_kv / T key/value heads where that is one or more.",
        "If T is larger than H_kv, T / H_kv ranks hold the same K/V head: max(1, H_kv // T). One must divide the other.",
        "vocab_size: vocab_multiple * shard(arch.vocab_size, degree * vocab_multiple)['shard'].",
    ),
    cases=(
        given(RUNNING, 8).gives(_extents(4, 1, 1_792, 16_032)),
        given(RUNNING, 8, 64).gives(_extents(4, 1, 1_792, 16_064)),
        given(RUNNING, 16).gives(_extents(2, 1, 896, 8_016)),
        given(RUNNING, 2).gives(_extents(16, 4, 7_168, 64_128)),
        given(RUNNING, 1).gives(_extents(32, 8, 14_336, 128_256)),
        given(ODD, 2).gives(_extents(3, 1, 125, 505)),
        given(ODD_WIDE, 6).gives(_extents(1, 1, 41, 169)),
        given(ODD_WIDE, 6, 10).gives(_extents(1, 1, 41, 170)),
        given(RUNNING, 3).refuses("DIVIS"),
        given(ODD, 3).refuses("DIVIS"),
        given(ODD_WIDE, 3).refuses("DIVIS"),
        given(ODD_EXPERTS, 2).refuses("UNDECLARED"),
        given(RUNNING, 0).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "kv-heads-vanish",
            _changed("rank_extents", lambda r, arch, degree, *_: {"num_key_value_heads": arch.num_key_value_heads // degree}),
            "More ranks than K/V heads leave you none. A head is not cut further: several ranks hold the same one.",
        ),
        Wrong(
            "kv-heads-whole",
            _changed("rank_extents", lambda r, arch, *_: {"num_key_value_heads": arch.num_key_value_heads}),
            "Every rank keeps all K/V heads here. It needs only those that its own query heads read.",
        ),
        Wrong(
            "vocabulary-floored",
            _changed("rank_extents", lambda r, arch, degree, *_: {"vocab_size": arch.vocab_size // degree}),
            "The last vocabulary rows have no owner. Pad to a multiple of degree * vocab_multiple, then divide.",
        ),
        Wrong(
            "padded-before-cutting",
            _changed(
                "rank_extents",
                lambda r, arch, degree, vocab_multiple=1: {
                    "vocab_size": ceil_div(ceil_div(arch.vocab_size, vocab_multiple) * vocab_multiple, degree)
                },
            ),
            "You padded to vocab_multiple and then divided. Each rank's own rows must be a multiple: pad to degree * vocab_multiple.",
        ),
    ),
    shapes=TENSOR_SHAPES,
)


def _whole(arch):
    from solutions import params

    return dict(params.ledger(arch))


def _ledger(attention, mlp, norms, embedding, positions, final_norm, head, extra):
    return {
        "blocks.attention": attention,
        "blocks.mlp": mlp,
        "blocks.experts": 0,
        "blocks.norms": norms,
        "embedding": embedding,
        "positions": positions,
        "final_norm": final_norm,
        "head": head,
        "extra": extra,
    }


rank = Exercise(
    "tensor_parallel_rank",
    points=3,
    minutes=12,
    lines=1,
    hints=(
        "What a rank holds looks like a narrower model: fewer heads, a narrower MLP, fewer vocabulary rows, the same d.",
        "arch.replace(**rank_extents(...)) is that model. What is learned per d, norms and the biases of o and down, stays whole by itself.",
        "dict(params.ledger(arch.replace(**rank_extents(arch, degree, vocab_multiple)))).",
    ),
    cases=(
        given(RUNNING, 8).gives(
            _ledger(167_772_160, 704_643_072, 262_144, 65_667_072, 0, 4_096, 65_667_072, 0)
        ),
        given(RUNNING, 8, 64).gives(
            _ledger(167_772_160, 704_643_072, 262_144, 65_798_144, 0, 4_096, 65_798_144, 0)
        ),
        given(RUNNING, 16).gives(
            _ledger(100_663_296, 352_321_536, 262_144, 32_833_536, 0, 4_096, 32_833_536, 0)
        ),
        given(TOY, 2).gives(_ledger(192, 288, 32, 64, 0, 8, 64, 0)),
        given(ODD, 2).gives(_ledger(46_080, 108_000, 576, 48_480, 0, 96, 48_480, 0)),
        given(ODD_WIDE, 6).gives(_ledger(23_040, 35_424, 576, 16_224, 0, 96, 16_224, 0)),
        given(CLASSIC, 3).gives(_ledger(9_455_616, 18_895_872, 36_864, 12_866_304, 0, 0, 12_866_304, 0)),
        given(ODD_EVERYTHING, 2).gives(_ledger(46_668, 72_663, 1_272, 48_480, 7_392, 192, 505, 1_056)),
        given(RUNNING, 7).refuses("DIVIS"),
        given(ODD_EXPERTS, 2).refuses("UNDECLARED"),
    ),
    wrong=(
        Wrong(
            "everything-by-degree",
            lambda arch, degree, vocab_multiple=1: {name: value // degree for name, value in _whole(arch).items()},
            "You divided every row. Each tensor has its own rule: norms are whole on every rank, heads and padded rows stay whole units.",
        ),
        Wrong(
            "norms-divided",
            _changed(
                "tensor_parallel_rank",
                lambda r, arch, degree, *_: {name: r[name] // degree for name in ("blocks.norms", "final_norm")},
            ),
            "The norms are divided. Each rank normalizes whole rows of d and holds every scale.",
        ),
        Wrong(
            "biases-divided",
            _changed(
                "tensor_parallel_rank",
                lambda r, arch, degree, *_: {
                    name: r[name] - arch.num_layers * there * (arch.hidden_size - arch.hidden_size // degree)
                    for name, there in (("blocks.attention", arch.attention_bias == "all"), ("blocks.mlp", arch.mlp_bias))
                },
            ),
            "The biases of o and down are divided. They are added after the sum, to all d features, so they are not cut.",
        ),
        Wrong(
            "kv-divided",
            _changed(
                "tensor_parallel_rank",
                lambda r, arch, degree, *_: {
                    "blocks.attention": r["blocks.attention"]
                    - arch.num_layers
                    * 2
                    * arch.hidden_size
                    * (max(arch.head_dim, arch.d_kv // degree) - arch.d_kv // degree)
                },
            ),
            "You cut K and V below one head. With more ranks than K/V heads, each rank holds one whole head.",
        ),
        Wrong(
            "vocabulary-whole",
            _changed(
                "tensor_parallel_rank",
                lambda r, arch, *_: {name: _whole(arch)[name] for name in ("embedding", "head")},
            ),
            "Each rank holds the whole vocabulary. Its rows are cut too, padded to equal shares.",
        ),
    ),
    shapes=TENSOR_SHAPES,
)


def _stages(*counts):
    return {f"stages.{i}": count for i, count in enumerate(counts)}


def _ends(arch):
    whole = _whole(arch)
    return whole["embedding"] + whole["positions"], whole["final_norm"] + whole["head"]


def _remainder_last(arch, stages):
    from costlib.ownership import stage_blocks

    rows = [sum(blocks) for blocks in stage_blocks(arch, stages)][::-1]
    first, last = _ends(arch)
    rows[0] += first
    rows[-1] += last + (_whole(arch)["embedding"] if arch.tie_word_embeddings and stages > 1 else 0)
    return _stages(*rows)


pipeline = Exercise(
    "pipeline_stages",
    points=4,
    minutes=15,
    lines=9,
    hints=(
        "sum(blocks) for each entry of stage_blocks(arch, stages), then add the two ends.",
        "params.ledger(arch): embedding and positions to stages.0, final_norm and head to the last.",
        "Tied, the last stage multiplies with the embedding: if it is not the first one, it needs a copy.",
    ),
    cases=(
        given(RUNNING, 1).gives(_stages(P)),
        given(RUNNING, 2).gives(_stages(4_015_128_576, 4_015_132_672)),
        given(RUNNING, 5).gives(
            _stages(2_052_120_576, 1_526_784_000, 1_308_672_000, 1_308_672_000, 1_834_012_672)
        ),
        given(ODD, 2).gives(_stages(302_688, 199_872)),
        given(ODD_POSITIONS, 2).gives(_stages(307_488, 199_872)),
        given(TOY_TIED, 2).gives(_stages(624, 632)),
        given(TOY_TIED, 1).gives(_stages(1_128)),
        given(ODD_TIED, 3).gives(_stages(199_776, 102_912, 199_872)),
        given(ODD_EXPERTS, 3).gives(_stages(199_776, 109_920, 206_880)),
        given(RUNNING, 33).refuses("RANGE"),
        given(ODD_EVERYTHING, 2).refuses("UNDECLARED"),
        given(RUNNING, 0).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "even-split",
            lambda arch, stages: _stages(*(sum(_whole(arch).values()) // stages for _ in range(stages))),
            "You divided the model by the stages. Stages own whole blocks, and the two ends own the vocabulary.",
        ),
        Wrong(
            "ends-forgotten",
            lambda arch, stages: (
                lambda r, ends, tied: {
                    **r,
                    "stages.0": r["stages.0"] - ends[0] - (ends[1] if stages == 1 else 0),
                    **({f"stages.{stages - 1}": r[f"stages.{stages - 1}"] - ends[1] - tied} if stages > 1 else {}),
                }
            )(
                _changed("pipeline_stages", lambda r, *_: {})(arch, stages),
                _ends(arch),
                _whole(arch)["embedding"] * arch.tie_word_embeddings,
            ),
            "Only blocks are assigned. Embedding, positions, final norm and head belong to the first and the last stage.",
        ),
        Wrong(
            "tied-once",
            _changed(
                "pipeline_stages",
                lambda r, arch, stages: {
                    f"stages.{stages - 1}": r[f"stages.{stages - 1}"]
                    - (_whole(arch)["embedding"] if arch.tie_word_embeddings and stages > 1 else 0)
                },
            ),
            "The tied table is on the first stage only, and the last one multiplies with it. Between ranks a tie needs a copy.",
        ),
        Wrong(
            "remainder-last",
            _remainder_last,
            "The blocks that do not divide are on the last stages. stage_blocks gives them to the first ones.",
        ),
    ),
    shapes={
        ("arch", "stages"): (
            (RUNNING, 4),
            (RUNNING, 3),
            (RUNNING, 8),
            (CLASSIC, 5),
            (ODD, 2),
            (ODD_TIED, 2),
            (ODD_POSITIONS, 3),
            (ODD_EXPERTS, 2),
            (TOY_TIED, 2),
        )
    },
)

flight = Exercise(
    "in_flight",
    points=2,
    minutes=10,
    lines=2,
    hints=(
        "Draw four stages and six microbatches on squared paper, and count at each stage what went in and did not come back.",
        "1F1B: stage s runs stages - s microbatches forward before its first backward, if there are that many.",
    ),
    cases=(
        given("gpipe", 0, 4, 8).gives(8),
        given("gpipe", 3, 4, 8).gives(8),
        given("1f1b", 0, 4, 8).gives(4),
        given("1f1b", 1, 4, 8).gives(3),
        given("1f1b", 3, 4, 8).gives(1),
        given("1f1b", 0, 4, 2).gives(2),
        given("1f1b", 2, 7, 3).gives(3),
        given("gpipe", 2, 3, 1).gives(1),
        given("1f1b", 0, 1, 5).gives(1),
        given("1f1b", 4, 4, 8).refuses("RANGE"),
        given("interleaved", 0, 4, 8).refuses("ENUM"),
        given("gpipe", 0, 4, 0).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "stages-on-every-stage",
            lambda schedule, stage, stages, microbatches: microbatches if schedule == "gpipe" else min(microbatches, stages),
            "Every stage holds as many as the first. Later stages get their first gradient sooner.",
        ),
        Wrong(
            "more-than-there-are",
            lambda schedule, stage, stages, microbatches: microbatches if schedule == "gpipe" else stages - stage,
            "A stage cannot hold more microbatches than the step has.",
        ),
        Wrong(
            "warm-up-only",
            lambda schedule, stage, stages, microbatches: microbatches
            if schedule == "gpipe"
            else min(microbatches, stages - stage - 1),
            "One is missing: after the warm-up each stage runs one more forward before its first backward.",
        ),
        Wrong(
            "gpipe-as-1f1b",
            lambda schedule, stage, stages, microbatches: min(microbatches, stages - stage),
            "GPipe starts no backward before the last forward is done: every stage holds every microbatch.",
        ),
    ),
    shapes={
        "schedule": ("gpipe", "1f1b", "1f1b"),
        ("stage", "stages"): ((0, 1), (0, 8), (3, 8), (7, 8), (1, 3), (2, 6)),
        "microbatches": (1, 2, 4, 5, 32),
    },
)


def _residual(batch, rows, hidden_size, dtype="bf16", degree=1):
    return _bytes(batch * (rows // degree) * hidden_size, dtype)


boundary = Exercise(
    "boundary_bytes",
    points=1,
    minutes=5,
    lines=2,
    hints=(
        "Three extents and a dtype; the rows are divided, and only if they divide.",
        "state.bytes_of_weights(batch * (rows // degree) * hidden_size, dtype).",
    ),
    cases=(
        given(1, 4096, 4096).gives(33_554_432),
        given(1, 4096, 4096, "bf16", 8).gives(4_194_304),
        given(5, 56, 96).gives(53_760),
        given(5, 56, 96, "bf16", 7).gives(7_680),
        given(5, 56, 96, "fp32").gives(107_520),
        given(3, 12, 20, "fp8", 4).gives(180),
        given(1, 5, 3, "int4").gives(8),
        given(1, 4096, 4096, "bf16", 3).refuses("DIVIS"),
        given(0, 4096, 4096).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "batch-lost",
            lambda batch, rows, hidden_size, dtype="bf16", degree=1: _residual(1, rows, hidden_size, dtype, degree),
            "Right for one sequence. Multiply by the batch.",
        ),
        Wrong(
            "rows-whole",
            lambda batch, rows, hidden_size, dtype="bf16", degree=1: _residual(batch, rows, hidden_size, dtype),
            "The rows are not shared. Each of the degree ranks has rows // degree of them.",
        ),
        Wrong(
            "always-bf16",
            lambda batch, rows, hidden_size, dtype="bf16", degree=1: _residual(batch, rows, hidden_size, "bf16", degree),
            "You took 2 bytes per value. The dtype is an argument.",
        ),
    ),
    shapes={
        "batch": (1, 3, 5),
        ("rows", "degree"): ((56, 7), (4096, 8), (12, 1), (12, 4), (120, 5)),
        "hidden_size": (20, 96, 4096),
        "dtype": ("bf16", "fp32", "fp8"),
    },
)

context = Exercise(
    "context_missing",
    points=2,
    minutes=8,
    lines=3,
    hints=(
        "K and V have d_kv features per row, two tensors.",
        "A rank has rows // degree of the rows; full is degree such shards, missing degree - 1.",
    ),
    cases=(
        given(RUNNING, 1, 4096, 2).gives(_gathered(16_777_216, 8_388_608)),
        given(RUNNING, 1, 4096, 8).gives(_gathered(16_777_216, 2_097_152)),
        given(ODD, 5, 56, 7).gives(_gathered(44_800, 6_400)),
        given(ODD, 5, 56, 4, "fp32").gives(_gathered(89_600, 22_400)),
        given(ODD, 5, 56, 1).gives(_gathered(44_800, 44_800)),
        given(ODD, 5, 56, 5).refuses("DIVIS"),
        given(ODD, 5, 56, 0).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "query-heads",
            _changed(
                "context_missing",
                lambda r, arch, *_: {name: value * arch.num_attention_heads // arch.num_key_value_heads for name, value in r.items()},
            ),
            "You used the query heads. K and V have num_key_value_heads heads: d_kv features.",
        ),
        Wrong(
            "k-without-v",
            _changed("context_missing", lambda r, *_: {name: value // 2 for name, value in r.items()}),
            "Exactly half: queries need K and V, two tensors.",
        ),
        Wrong(
            "batch-lost",
            _changed("context_missing", lambda r, arch, batch, *_: {name: value // batch for name, value in r.items()}),
            "Right for one sequence. Multiply by the batch.",
        ),
        Wrong(
            "one-peer",
            _changed("context_missing", lambda r, *_: {"missing": r["shard"]}),
            "One shard is missing per peer, and there are degree - 1 peers.",
        ),
    ),
    shapes={
        "arch": (RUNNING, ODD, TOY, CLASSIC),
        "batch": (1, 3, 5),
        ("rows", "degree"): ((56, 7), (4096, 8), (12, 1), (120, 5)),
        "dtype": ("bf16", "fp32", "fp8"),
    },
)


def _composed(tensor=lambda layout: layout.tensor_parallel, data=lambda layout: layout.data_parallel):
    """compose with other degrees than the layout's for the cut of tensors, or for ZeRO."""

    def model(policy, arch, layout):
        from solutions import ownership

        stage, degree = layout.zero_stage, data(layout)
        narrow = arch.replace(**ownership.rank_extents(arch, tensor(layout)))
        counts = ownership.pipeline_stages(narrow, layout.pipeline_parallel)
        return {name: sum(ownership.rank_state(policy, n, stage, degree).values()) for name, n in counts.items()}

    return model


def _by_world(policy, arch, layout):
    from solutions import ownership

    total = sum(_whole(arch).values())
    one = sum(ownership.rank_state(policy, total, 3, layout.world_size).values())
    return _stages(*(one for _ in range(layout.pipeline_parallel)))


compose = Exercise(
    "compose",
    points=4,
    minutes=15,
    lines=5,
    hints=(
        "A stage of the narrower model that one tensor rank sees, then ZeRO over the data group: three functions you have.",
        "narrow = arch.replace(**rank_extents(arch, T)); pipeline_stages(narrow, P_p) gives the scalars of each stage's rank.",
        "{name: rank_state(policy, count, zero_stage, D).total for name, count in the stages' items()}.",
    ),
    cases=(
        given(A16, RUNNING, LAYOUT_A).gives(_stages(20_075_653_120)),
        given(A16, RUNNING, LAYOUT_B).gives(_stages(20_076_298_240, 20_076_339_200)),
        given(A16, RUNNING, LAYOUT_B1).gives(_stages(28_106_817_536, 28_106_874_880)),
        given(MASTER, RUNNING, LAYOUT_B.replace(zero_stage=2)).gives(_stages(18_068_668_416, 18_068_705_280)),
        given(MASTER, RUNNING, TENSOR_8).gives(_stages(16_064_249_856)),
        given(A16, RUNNING, CONTEXT).gives(_stages(80_302_612_480)),
        given(MASTER, ODD, TRIPLE).gives(_stages(533_504, 274_944, 534_016)),
        given(MASTER, ODD, MIXED).gives(_stages(485_072, 320_416)),
        given(MASTER, ODD_EXPERTS, LAYOUT_B).refuses("UNDECLARED"),
        given(MASTER, ODD, ODD_MESH).refuses("DIVIS"),
        given(MASTER, TOY, TRIPLE).refuses("RANGE"),
    ),
    wrong=(
        Wrong(
            "by-world",
            _by_world,
            "You divided the model's state by the world size. Stages differ, norms are not cut, and ZeRO divides by the data group alone.",
        ),
        Wrong(
            "zero-over-world",
            _composed(data=lambda layout: layout.world_size),
            "ZeRO cuts over the whole world here. Only the ranks of a data group hold the same part and can share it.",
        ),
        Wrong(
            "context-cuts-weights",
            _composed(data=lambda layout: layout.data_parallel * layout.context_parallel),
            "The context ranks divide your weights. They cut rows of tokens; every one of them needs the same weights.",
        ),
        Wrong(
            "tensor-forgotten",
            _composed(tensor=lambda layout: 1),
            "The stages hold whole tensors. Inside its stage each tensor is cut over the tensor group.",
        ),
    ),
    shapes={
        "policy": (A16, MASTER, INFER_BF16),
        ("arch", "layout"): (
            *((RUNNING, layout) for layout in (LAYOUT_A, LAYOUT_B, LAYOUT_B1, TENSOR_8, CONTEXT, MIXED)),
            *((ODD, layout) for layout in LAYOUTS),
            (CLASSIC, TRIPLE),
            (ODD_TIED, LAYOUT_B),
        ),
    },
)


def _computes_on_a_shard(fault):
    from costlib import ownership

    held = set()
    for action, group in ownership.fsdp_events(3, reshard=True):
        if action == "gather" and not fault:
            held.add(group)
        if action in ("forward", "backward") and group not in held:
            return f"{action} of group {group} runs, and the rank holds 1 shard of 8: {P // 8:,} of {P:,} scalars"
    return ""


def _borrowed_coefficients(fault):
    from costlib import ownership

    used = ownership.rank_state(MASTER if fault else A16, P, 0, 8)
    missing = [row.role for row in A16.rows if row.role not in used]
    return f"{used.total:,} B: the policy has {', '.join(missing)}, which this inventory has not" if missing else ""


def _resident_for_sent(fault):
    from costlib import ownership

    gradients = ownership.rank_state(A16, P, 0, 8)
    resident = gradients["gradients"] if fault else gradients["gradients.working"]
    reduced = ownership.collective("all-reduce", P, "bf16", 8)["input"]
    return f"{resident:,} B resident, {reduced:,} B in the one bf16 tensor that is reduced" if resident != reduced else ""


def _ring_as_measured(fault):
    from costlib import ownership

    sent = ownership.collective("all-gather", P, "bf16", 8)["ring_send"]
    ring = Ledger({"all-gather": sent}, "B", "ideal ring send per rank")
    counter = Ledger({"link": sent}, "B", "link counter" if fault else ring.convention)
    try:
        ring + counter
    except UnitError as error:
        return str(error)
    return ""


def _sequence_axis(fault):
    tensor_ranks, sequence = 8, 8
    try:
        _layout("tp8-sp8", tensor=tensor_ranks).replace(world_size=tensor_ranks * (sequence if fault else 1))
    except ManifestError as error:
        return str(error)
    return ""


def _unsynchronized(fault):
    from costlib import ownership

    sizes, full = (496, 496, 264), {}
    for action, group in ownership.fsdp_events(len(sizes), reshard=True):
        if action == "backward":
            full[group] = sizes[group]
        if action == "reduce-scatter" and not fault:
            del full[group]
    return f"{len(full)} full gradients are live after the step: {sum(full.values()):,} scalars" if full else ""


FAILURES = (
    Failure(
        "every byte divided by the number of ranks",
        "a shard degree belongs to a row, not to the world",
        wrong=("rank_state", "world-size"),
    ),
    Failure(
        "ZeRO-1 sold as an eighth of the training state",
        "weights and gradients stay whole on every rank: seven further copies of each",
        wrong=("cluster_bytes", "one-inventory"),
    ),
    Failure(
        "the state at rest taken for the peak of ZeRO-3",
        "whoever computes with a group holds all of it at that moment",
        check=_computes_on_a_shard,
    ),
    Failure(
        "16 bytes per parameter under a policy of 20",
        "stages carry over from the paper, coefficients come from the policy's own rows",
        check=_borrowed_coefficients,
    ),
    Failure(
        "all resident gradient bytes sent",
        "a collective moves one tensor in one dtype, however many copies are kept",
        check=_resident_for_sent,
    ),
    Failure(
        "the ring formula reported as measured traffic",
        "a payload, an algorithm's sends and a link's counter are three ledgers",
        check=_ring_as_measured,
    ),
    Failure(
        "activations divided by the tensor-parallel degree",
        "after a row split every rank has a full-sized output",
        wrong=("tensor_shard", "output-divided"),
    ),
    Failure(
        "the model divided by the number of stages",
        "stages own whole tensors, the two ends most of the vocabulary",
        wrong=("pipeline_stages", "even-split"),
    ),
    Failure(
        "sequence parallelism as a further factor of the world",
        "it uses the ranks of the tensor group",
        check=_sequence_axis,
    ),
    Failure(
        "weights divided by the context-parallel degree",
        "context ranks share rows of tokens and hold equal weights",
        wrong=("compose", "context-cuts-weights"),
    ),
    Failure(
        "prefetched groups left out of the peak",
        "what is gathered ahead is held together with what computes",
        wrong=("materialized_peak", "largest-only"),
    ),
    Failure(
        "gradient synchronization switched off, memory unchanged",
        "until it is reduced and cut, a full gradient stays",
        check=_unsynchronized,
    ),
)

LAB = Lab(
    "08",
    "Who keeps what",
    "ownership",
    (
        shard,
        mesh,
        rank_state,
        cluster,
        groups,
        group,
        events,
        peak,
        send,
        tensor,
        extents,
        rank,
        pipeline,
        flight,
        boundary,
        context,
        compose,
    ),
    FAILURES,
)
