"""Lab 07: the training ledger of M 0x06, from two gradients of one product to four papers' conventions."""

from fractions import Fraction

from costlib.fixtures import (
    CLASSIC,
    ODD,
    ODD_EVERYTHING,
    ODD_EXPERTS,
    PREFILL_4K,
    RUNNING,
    TOY,
    TOY_TIED,
    TRAIN_4K,
    TRAIN_ODD,
    W_7B,
    W_70B,
    W_MOE,
)
from costlib.ledger import Ledger, UnitError
from costlib.policies import Region
from costlib.records import Experts, Workload
from costlib.units import fixed
from labs.spec import Exercise, Failure, Lab, Reference, Wrong, given

TRAIN_SMALL = Workload(
    workload_id="train-small", phase="training", batch_size=3, new_rows=5, visible_rows=5, logits="all"
)
TRAIN_FINAL = TRAIN_ODD.replace(workload_id="train-odd-final", logits="final")
EXPERTS_WIDE = ODD_EXPERTS.replace(
    manifest_id="odd-experts-wide",
    experts=Experts(num_experts=5, experts_per_token=1, intermediate_size=61, shared_experts=2, first_dense_layers=2),
)
MIXTRAL = RUNNING.replace(
    manifest_id="8x7b",
    vocab_size=32000,
    experts=Experts(num_experts=8, experts_per_token=2, intermediate_size=14336),
)
EVERY = (RUNNING, TOY, TOY_TIED, ODD, ODD_EVERYTHING, ODD_EXPERTS, EXPERTS_WIDE, CLASSIC, W_7B, W_70B, W_MOE, MIXTRAL)
WORK = (TRAIN_4K, TRAIN_ODD, TRAIN_SMALL, TRAIN_FINAL)


_TRAINING = Reference("training")
_right, _bound, _changed = _TRAINING.right, _TRAINING.bound, _TRAINING.changed


def _half(name):
    return _changed(name, lambda r, *_: {row: flops // 2 for row, flops in r.items()})


MACS = "These are multiply-accumulates. One fused multiply-add is two FLOPs in every ledger of this course."

linear = Exercise(
    "linear",
    points=3,
    minutes=8,
    lines=5,
    hints=(
        "Write the shapes: dX is [m, n] by [n, k], dW is [k, m] by [m, n].",
        "All three products run over the same m * k * n; each gradient is there only if its flag says so.",
        "napkin.matmul_flops(m, n, k) if need_dx else 0, and napkin.matmul_flops(k, m, n) if need_dw else 0.",
    ),
    cases=(
        given(2, 3, 5).gives({"forward": 60, "dx": 60, "dw": 60}),
        given(2, 3, 5, need_dw=False).gives({"forward": 60, "dx": 60, "dw": 0}),
        given(2, 3, 5, need_dx=False).gives({"forward": 60, "dx": 0, "dw": 60}),
        given(280, 96, 250).gives({"forward": 13_440_000, "dx": 13_440_000, "dw": 13_440_000}),
        given(280, 96, 250, need_dw=False).gives({"forward": 13_440_000, "dx": 13_440_000, "dw": 0}),
        given(280, 96, 250, need_dx=False).gives({"forward": 13_440_000, "dx": 0, "dw": 13_440_000}),
        given(280, 96, 250, need_dx=False, need_dw=False).gives({"forward": 13_440_000, "dx": 0, "dw": 0}),
        given(1024, 4096, 11008).gives({"forward": 92_341_796_864, "dx": 92_341_796_864, "dw": 92_341_796_864}),
        given(2, 3.0, 5).refuses("TYPE"),
        given(2, 0, 5).refuses("NONPOS"),
    ),
    wrong=(
        Wrong("macs", _half("linear"), MACS),
        Wrong(
            "always-both",
            _changed("linear", lambda r, *_: {"dx": r["forward"], "dw": r["forward"]}),
            "Both gradients are counted, needed or not. Frozen weights have no dW, an untrained input no dX.",
        ),
        Wrong(
            "one-lump",
            _changed("linear", lambda r, *_: {"dx": r["dx"] + r["dw"], "dw": 0}),
            "Backward is one lump here. dX and dW are two products, and each can be missing without the other.",
        ),
        Wrong(
            "flags-swapped",
            _changed("linear", lambda r, *_: {"dx": r["dw"], "dw": r["dx"]}),
            "The flags are exchanged: freezing W saves dW. The gradient still passes through W to what lies before.",
        ),
        Wrong(
            "frozen-stops",
            _changed("linear", lambda r, *_: {"dx": r["dx"] if r["dw"] else 0}),
            "A frozen matrix stops the gradient here. dX does not depend on whether W is trained.",
        ),
    ),
    shapes={"m": (1, 280, 4096), "k": (96, 768), "n": (10, 250), "need_dx": (True, False), "need_dw": (True, False)},
)


def _regions(linears, core, head):
    """Literal regions: FLOPs of each block's linear part, of every core, of the head; both gradients of each."""
    rows = [row for i, flops in enumerate(linears) for row in ((f"block_{i}.linear", flops), (f"block_{i}.core", core))]
    return tuple(Region(name=name, forward=f, dx=f, dw=f) for name, f in (*rows, ("head", head)))


RUNNING_REGIONS = _regions([1_786_706_395_136] * 32, 274_877_906_944, 4_303_557_230_592)
ODD_REGIONS = _regions([57_523_200] * 3, 7_526_400, 54_243_840)
EXPERT_REGIONS = _regions([57_523_200, 34_030_080, 34_030_080], 7_526_400, 54_243_840)


def _each(change):
    """A wrong `regions`: every region through a function that gives its replacement, or None."""

    def model(*args):
        changed = [change(region, *args) for region in _right("regions", *args)]
        return tuple(region for region in changed if region)

    return _bound("regions", model)


def _experts_everywhere(region, arch, workload, attention):
    if not (arch.experts and region.name.endswith(".linear")):
        return region
    flops = next(r for r in reversed(_right("regions", arch, workload)) if r.name.endswith(".linear")).forward
    return Region(name=region.name, forward=flops, dx=flops, dw=flops)


regions = Exercise(
    "regions",
    points=5,
    minutes=20,
    lines=10,
    hints=(
        "Lab 06 has every number: projections, mlp_products, expert_products, attention_products, logits.",
        "The core is sum(forward.attention_products(arch, workload, attention).values()); the linear part is projections(...).total and the MLP's or the experts'.",
        'Region(name="block_0.core", forward=f, dx=f, dw=f); block i is dense if arch.experts is None or i < arch.experts.first_dense_layers. require_training(workload) first.',
    ),
    cases=(
        given(TOY, TRAIN_SMALL).gives(_regions([14_400, 14_400], 2_400, 3_840)),
        given(ODD, TRAIN_ODD).gives(ODD_REGIONS),
        given(ODD, TRAIN_ODD, "causal-legal").gives(_regions([57_523_200] * 3, 3_830_400, 54_243_840)),
        given(ODD_EXPERTS, TRAIN_ODD).gives(EXPERT_REGIONS),
        given(ODD_EXPERTS, TRAIN_FINAL).gives(_regions([57_523_200, 34_030_080, 34_030_080], 7_526_400, 968_640)),
        given(ODD_EVERYTHING, TRAIN_ODD, "kaplan").gives(_regions([44_083_200] * 3, 3_763_200, 54_243_840)),
        given(RUNNING, TRAIN_4K).gives(RUNNING_REGIONS),
        given(RUNNING, PREFILL_4K).refuses("INCONSISTENT"),
        given(ODD, TRAIN_ODD, "half").refuses("ENUM"),
    ),
    wrong=(
        Wrong(
            "first-input-untrained",
            _each(lambda r, *_: r.replace(dx=0) if r.name == "block_0.linear" else r),
            "The first block has no dX here. Its input comes from the embedding, which is trained.",
        ),
        Wrong(
            "core-without-gradients",
            _each(lambda r, *_: r.replace(dx=0, dw=0) if r.name.endswith(".core") else r),
            "The core has no parameters, but its factors have gradients: dQ and dK, dP and dV.",
        ),
        Wrong(
            "core-with-one-gradient",
            _each(lambda r, *_: r.replace(dw=0) if r.name.endswith(".core") else r),
            "One gradient of the core is missing. Both factors of Q K^T and of P V come from trained layers.",
        ),
        Wrong(
            "head-forgotten",
            _each(lambda r, *_: None if r.name == "head" else r),
            "The head is missing: a region of its own, as no block replay runs it again.",
        ),
        Wrong(
            "experts-everywhere",
            _each(_experts_everywhere),
            "Every block has experts here. The first first_dense_layers blocks keep their MLP.",
        ),
        Wrong(
            "area-ignored",
            _bound("regions", lambda arch, workload, attention: _right("regions", arch, workload)),
            "The argument `attention` changes nothing here. Pass it on to attention_products.",
        ),
    ),
    shapes={"arch": EVERY, "workload": WORK, "attention": ("rectangular", "causal-legal", "kaplan")},
)

# b is frozen down to its dW, c.core is run by an operator that keeps no gradients.
HAND = (
    Region(name="a", forward=10, dx=10, dw=10),
    Region(name="b", forward=7, dx=7, dw=0),
    Region(name="c.core", forward=5, dx=0, dw=0),
    Region(name="c.rest", forward=3, dx=3, dw=3),
)
BLOCKS = {f"block_{i}": 1 for i in range(32)}
CORES = {f"block_{i}.core": 1 for i in range(32)}


def _totals(forward, backward, recompute, model, hardware):
    return {"forward": forward, "backward": backward, "recompute": recompute, "model": model, "hardware": hardware}


def _replays(recompute):
    """A wrong `totals` with its own recompute."""

    def change(r, parts, replay):
        again = recompute(parts, replay)
        return {"recompute": again, "hardware": r["model"] + again}

    return _changed("totals", change)


def _times(replay, region):
    return sum(times for path, times in replay.items() if region.within(path))


total = Exercise(
    "totals",
    points=5,
    minutes=15,
    lines=10,
    hints=(
        "replayed(regions, replay) gives {region name: how often}. It also refuses what must be refused.",
        "backward is a sum of dx and dw, whatever they are: nothing says that it is twice forward.",
        "recompute = sum(times[region.name] * region.forward for region in regions); model = forward + backward; hardware = model + recompute.",
    ),
    cases=(
        given(HAND, {}).gives(_totals(25, 33, 0, 58, 58)),
        given(HAND, {"a": 2, "c": 1}).gives(_totals(25, 33, 28, 58, 86)),
        given(HAND, {"a": 0, "b": 1}).gives(_totals(25, 33, 7, 58, 65)),
        given(HAND, {"c.core": 3}).gives(_totals(25, 33, 15, 58, 73)),
        given(HAND, {"c": 1, "c.core": 1}).gives(_totals(25, 33, 13, 58, 71)),
        given(RUNNING_REGIONS, {}).gives(
            _totals(70_274_254_897_152, 140_548_509_794_304, 0, 210_822_764_691_456, 210_822_764_691_456)
        ),
        given(RUNNING_REGIONS, CORES).gives(
            _totals(70_274_254_897_152, 140_548_509_794_304, 8_796_093_022_208, 210_822_764_691_456, 219_618_857_713_664)
        ),
        given(RUNNING_REGIONS, BLOCKS).gives(
            _totals(70_274_254_897_152, 140_548_509_794_304, 65_970_697_666_560, 210_822_764_691_456, 276_793_462_358_016)
        ),
        given(RUNNING_REGIONS, {**BLOCKS, "head": 1}).gives(
            _totals(70_274_254_897_152, 140_548_509_794_304, 70_274_254_897_152, 210_822_764_691_456, 281_097_019_588_608)
        ),
        given(ODD_REGIONS, {"block_1": 1}).gives(
            _totals(249_392_640, 498_785_280, 65_049_600, 748_177_920, 813_227_520)
        ),
        given(HAND, {"d": 1}).refuses("UNDECLARED"),
        given(HAND, {"a": -1}).refuses("NEG"),
        given(HAND, {"a": 1.0}).refuses("TYPE"),
        given((*HAND, HAND[0]), {}).refuses("INCONSISTENT"),
    ),
    wrong=(
        Wrong(
            "backward-is-twice",
            _changed(
                "totals",
                lambda r, *_: {
                    "backward": 2 * r["forward"],
                    "model": 3 * r["forward"],
                    "hardware": 3 * r["forward"] + r["recompute"],
                },
            ),
            "Backward is taken to be twice forward. Add up the dx and dw that are there: some are not needed.",
        ),
        Wrong(
            "blind-4x",
            _replays(lambda parts, replay: sum(r.forward for r in parts) * bool(replay)),
            "Everything is run again here. Only the regions that the replay names are, and the head seldom is.",
        ),
        Wrong(
            "each-once",
            _replays(lambda parts, replay: sum(r.forward for r in parts if any(map(r.within, replay)))),
            "Each named region is run again once. The counts of the replay say how often.",
        ),
        Wrong(
            "whole-names-only",
            _replays(lambda parts, replay: sum(replay.get(r.name, 0) * r.forward for r in parts)),
            'A path such as "block_0" stands for every region below it. `replayed` resolves the paths.',
        ),
        Wrong(
            "backward-again",
            _replays(lambda parts, replay: sum(_times(replay, r) * (r.forward + r.dx + r.dw) for r in parts)),
            "A replay runs forward again, not backward: the gradients are computed once.",
        ),
        Wrong(
            "replay-as-model",
            _changed("totals", lambda r, *_: {"model": r["hardware"]}),
            "The replays are in 'model'. They are a choice of the schedule; the model asks for forward and backward.",
        ),
    ),
    shapes={"regions": (HAND, ODD_REGIONS, EXPERT_REGIONS), "replay": ({}, {"a": 3}, {"block_1": 2}, {"block_2.core": 1, "head": 2}, {"c": 2, "b": 1})},
)


def _closure(blocks, head, attention):
    return {"sixnd.blocks": blocks, "sixnd.head": head, "attention": attention}


def _idle_experts(r, arch, workload):
    from costlib import params

    idle = arch.expert_layers * params.expert_block(arch)["routed.idle"] if arch.experts else 0
    return {"sixnd.blocks": r["sixnd.blocks"] + 6 * idle * workload.batch_size * workload.new_rows}


def _unique(r, arch, workload):
    from costlib import params

    scalars = params.ledger(arch).total - arch.vocab_size * arch.hidden_size
    return {"sixnd.blocks": 6 * scalars * workload.batch_size * workload.new_rows}


closure = Exercise(
    "sixnd_closure",
    points=4,
    minutes=12,
    lines=6,
    hints=(
        "6 is 2 forward, 2 for dX, 2 for dW. For the head lab 06 has the forward product: take it three times.",
        'blocks: 6 * params.coordinates(arch)["kaplan"] * batch_size * new_rows.',
        "attention: 3 * num_layers * sum(forward.attention_products(arch, workload).values()). require_training(workload) first.",
    ),
    cases=(
        given(RUNNING, TRAIN_4K).gives(_closure(171_523_813_933_056, 12_910_671_691_776, 26_388_279_066_624)),
        given(TOY, TRAIN_SMALL).gives(_closure(86_400, 11_520, 14_400)),
        given(TOY_TIED, TRAIN_SMALL).gives(_closure(86_400, 11_520, 14_400)),
        given(ODD, TRAIN_ODD).gives(_closure(517_708_800, 162_731_520, 67_737_600)),
        given(ODD, TRAIN_FINAL).gives(_closure(517_708_800, 2_905_920, 67_737_600)),
        given(ODD_EXPERTS, TRAIN_ODD).gives(_closure(376_750_080, 162_731_520, 67_737_600)),
        given(ODD_EXPERTS, TRAIN_FINAL).gives(_closure(376_750_080, 2_905_920, 67_737_600)),
        given(RUNNING, PREFILL_4K).refuses("INCONSISTENT"),
    ),
    wrong=(
        Wrong(
            "unique-scalars",
            _changed("sixnd_closure", _unique),
            "N holds every stored scalar. Norm scales and the embedding are not multiplied with as matrices, idle experts not at all.",
        ),
        Wrong(
            "no-attention",
            _changed("sixnd_closure", lambda r, *_: {"attention": 0}),
            "6ND is taken for the whole step. Pairs have no parameters, so no N can stand for them.",
        ),
        Wrong(
            "attention-forward-only",
            _changed("sixnd_closure", lambda r, *_: {"attention": r["attention"] // 3}),
            "Attention is counted forward only. Both of its products have two gradients: three times.",
        ),
        Wrong(
            "all-experts",
            _changed("sixnd_closure", _idle_experts),
            "Idle experts are in N. A token meets experts_per_token of them and the shared ones.",
        ),
        Wrong(
            "forward-only",
            _changed("sixnd_closure", lambda r, *_: {name: flops // 3 for name, flops in r.items()}),
            "This is the forward pass, 2ND. A step is forward and two gradients: 6.",
        ),
        Wrong(
            "head-over-all-rows",
            _changed(
                "sixnd_closure",
                lambda r, arch, w: {"sixnd.head": 6 * arch.vocab_size * arch.hidden_size * w.batch_size * w.new_rows},
            ),
            "The head runs over the logit rows, which workload.logits declares.",
        ),
    ),
    shapes={"arch": EVERY, "workload": WORK},
)


def _short(unique, used, kaplan):
    return {"unique": unique, "used": used, "kaplan": kaplan}


def _gaps(formula):
    """A wrong sixnd_shortfalls: a formula of model FLOPs and 6ND."""

    def model(arch, workload):
        true = _right("sixnd_closure", arch, workload)
        true, rows = sum(true.values()), workload.batch_size * workload.new_rows
        from costlib import params

        return {name: formula(Fraction(true), 6 * n * rows) for name, n in params.coordinates(arch).items()}

    return _bound("sixnd_shortfalls", model)


shortfalls = Exercise(
    "sixnd_shortfalls",
    points=3,
    minutes=10,
    lines=3,
    hints=(
        'The true number is totals(regions(arch, workload), {})["model"].',
        "1 - Fraction(6 * n * rows, model) for each of params.coordinates(arch).",
    ),
    cases=(
        given(RUNNING, TRAIN_4K).gives(_short(Fraction(133_823, 2_094_336), Fraction(1024, 8181), Fraction(1525, 8181))),
        given(TOY, TRAIN_SMALL).gives(_short(Fraction(-1, 156), Fraction(5, 39), Fraction(3, 13))),
        given(ODD, TRAIN_ODD).gives(_short(Fraction(-596, 4639), Fraction(420, 4639), Fraction(1429, 4639))),
        given(ODD_EXPERTS, TRAIN_ODD).gives(_short(Fraction(-1616, 3765), Fraction(28, 251), Fraction(1429, 3765))),
        given(ODD, TRAIN_FINAL).gives(
            _short(Fraction(-88_871, 204_289), Fraction(-31_975, 204_289), Fraction(24_529, 204_289))
        ),
        given(CLASSIC, TRAIN_ODD.replace(batch_size=2, new_rows=1024, visible_rows=1024)).gives(
            _short(Fraction(-25_837, 185_425), Fraction(24_576, 185_425), Fraction(74_833, 185_425))
        ),
        given(ODD, PREFILL_4K).refuses("INCONSISTENT"),
    ),
    wrong=(
        Wrong(
            "over-6nd",
            _gaps(lambda true, proxy: (true - proxy) / proxy),
            "The gap is divided by 6ND. Asked for is its share of the step; the two ratios are never equal.",
        ),
        Wrong(
            "ratio",
            _gaps(lambda true, proxy: proxy / true),
            "This is what 6ND gets right. The shortfall is the rest: 1 minus it.",
        ),
        Wrong(
            "surplus",
            _gaps(lambda true, proxy: (proxy - true) / true),
            "The sign is turned round: a 6ND that is too small falls short by a positive share.",
        ),
        Wrong(
            "against-hardware",
            _gaps(lambda true, proxy: 1 - proxy / (Fraction(4, 3) * true)),
            "You compared with four times forward. No replay was asked for.",
        ),
        Wrong(
            "size-only",
            _gaps(lambda true, proxy: abs(true - proxy) / true),
            "The sign is lost: with unique scalars 6ND can be too much, and then the shortfall is negative.",
        ),
    ),
    shapes={"arch": EVERY, "workload": WORK},
)

kaplan = Exercise(
    "kaplan_forward",
    points=2,
    minutes=6,
    lines=2,
    hints=(
        "2 FLOPs for every scalar that a token is multiplied with, the vocabulary left out.",
        'Per token, all keys would be 4 * layers * context * d_q; half of it is the context term. N is params.coordinates(arch)["kaplan"].',
    ),
    cases=(
        given(RUNNING, 4096).gives({"weights": 13_958_643_712, "context": 1_073_741_824}),
        given(ODD, 56).gives({"weights": 616_320, "context": 40_320}),
        given(CLASSIC, 1024).gives({"weights": 169_869_312, "context": 18_874_368}),
        given(ODD_EXPERTS, 33).gives({"weights": 448_512, "context": 23_760}),
        given(W_MOE, 8).gives({"weights": 104_155_054_080, "context": 15_728_640}),
        given(RUNNING, 0).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "whole-rectangle",
            _changed("kaplan_forward", lambda r, *_: {"context": 2 * r["context"]}),
            "This is the full rectangle. The paper charges half of it: 2, not 4.",
        ),
        Wrong(
            "d-for-d-attn",
            _changed("kaplan_forward", lambda r, arch, context: {"context": 2 * arch.num_layers * context * arch.hidden_size}),
            "The context term runs over the packed heads, d_attn = H_q * d_h, not over d.",
        ),
        Wrong(
            "with-vocabulary",
            _changed("kaplan_forward", lambda r, arch, _: {"weights": r["weights"] + 2 * arch.vocab_size * arch.hidden_size}),
            "The head is in N. In this paper N leaves vocabulary and positions out.",
        ),
        Wrong(
            "headline",
            _changed("kaplan_forward", lambda r, *_: {"context": 0}),
            "The context term is dropped. That is the headline's shortcut; the table keeps it.",
        ),
        Wrong(
            "with-backward",
            _changed("kaplan_forward", lambda r, *_: {name: 3 * flops for name, flops in r.items()}),
            "This is forward and backward. Asked for is forward.",
        ),
    ),
    shapes={"arch": EVERY, "context": (1, 33, 56, 1024, 4096)},
)

megatron = Exercise(
    "megatron_iteration",
    points=3,
    minutes=8,
    lines=1,
    hints=(
        "forward.a16_block(B, S, h) is one block forward. Forward, two gradients and one replay make four of them.",
        "S/6h and V/16Lh are what is left when 96BSLh^2 is taken out. Do not divide: multiply out.",
        '{"blocks": 4 * L * forward.a16_block(B, S, h), "head": 6 * B * S * h * V}.',
    ),
    cases=(
        given(2, 3, 5, 7, 11).gives({"blocks": 110_880, "head": 1_980}),
        given(1, 1, 1, 1, 1).gives({"blocks": 112, "head": 6}),
        given(5, 56, 96, 3, 1009).gives({"blocks": 815_431_680, "head": 162_731_520}),
        given(1, 4096, 4096, 32, 128256).gives({"blocks": 246_290_604_621_824, "head": 12_910_671_691_776}),
        given(1536, 2048, 12288, 96, 51200).gives({"blocks": 4_499_096_027_743_125_504, "head": 11_874_725_579_980_800}),
        given(1, 2, 3, 0, 5).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "a16-slip",
            _changed("megatron_iteration", lambda r, *_: {"head": r["head"] // 6 * 8}),
            "The head is 8BShV here. V/16Lh already holds its forward and backward, 6BShV; a further 2BShV would be a replay that nobody runs.",
        ),
        Wrong(
            "no-replay",
            _changed("megatron_iteration", lambda r, *_: {"blocks": r["blocks"] // 4 * 3}),
            "Three times the blocks: the replay of each block is missing, which this equation assumes.",
        ),
        Wrong(
            "head-forward-only",
            _changed("megatron_iteration", lambda r, *_: {"head": r["head"] // 3}),
            "The head is counted forward only. It has both gradients.",
        ),
        Wrong(
            "one-block",
            _changed("megatron_iteration", lambda r, B, S, h, L, V: {"blocks": r["blocks"] // L}),
            "This is one block. There are L of them.",
        ),
        Wrong(
            "head-per-layer",
            _changed("megatron_iteration", lambda r, B, S, h, L, V: {"head": L * r["head"]}),
            "The head stands once. L cancels in 96BSLh^2 * V/16Lh.",
        ),
    ),
    shapes={"B": (1, 2, 5), "S": (56, 1024), "h": (96, 768), "L": (3, 12), "V": (1009, 50257)},
)


palm_model = Exercise(
    "palm_model_flops",
    points=2,
    minutes=6,
    lines=1,
    hints=(
        "For one token, Q K^T over T keys is 2 * H * Q * T forward in one layer, and P V as much.",
        "4LHQT forward, three times with the gradients: 6 * N + 12 * L * H * Q * T.",
    ),
    cases=(
        given(540_350_000_000, 118, 48, 256, 2048).gives(3_277_734_806_784),
        given(10, 2, 3, 5, 7).gives(2_580),
        given(1000, 1, 1, 1, 1).gives(6_012),
        given(308_160, 3, 6, 20, 56).gives(2_090_880),
        given(0, 1, 1, 1, 1).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "attention-forward-only",
            _bound("palm_model_flops", lambda N, L, H, Q, T: 6 * N + 4 * L * H * Q * T),
            "Attention is counted forward only: 4LHQT. With both gradients it is 12.",
        ),
        Wrong(
            "causal-half",
            _bound("palm_model_flops", lambda N, L, H, Q, T: 6 * N + 6 * L * H * Q * T),
            "This halves the attention. The paper keeps the full rectangle.",
        ),
        Wrong(
            "no-attention",
            _bound("palm_model_flops", lambda N, L, H, Q, T: 6 * N),
            "Attention is missing. This paper adds it to 6N on purpose.",
        ),
        Wrong(
            "one-head-width",
            _bound("palm_model_flops", lambda N, L, H, Q, T: 6 * N + 12 * L * Q * T),
            "One head only. Q is the width of a head; there are H.",
        ),
    ),
    shapes={"N": (10**9, 10**6), "L": (2, 32), "H": (3, 64), "Q": (64, 128), "T": (512, 2048)},
)

palm_hardware = Exercise(
    "palm_hardware_flops",
    points=2,
    minutes=8,
    lines=1,
    hints=(
        "Run again: a share of the forward pass of the weights, 2N, and the whole forward pass of attention, 4LHQT.",
        "palm_model_flops(N, L, H, Q, T) + remat * 2 * N + 4 * L * H * Q * T.",
    ),
    cases=(
        given(540_350_000_000, 118, 48, 256, 2048).gives(Fraction(4_100_138_075_712)),
        given(10, 2, 3, 5, 7).gives(Fraction(3_435)),
        given(10, 2, 3, 5, 7, Fraction(0)).gives(Fraction(3_420)),
        given(10, 2, 3, 5, 7, Fraction(1)).gives(Fraction(3_440)),
        given(1, 1, 1, 1, 1).gives(Fraction(47, 2)),
        given(7, 1, 1, 1, 1, Fraction(1, 2)).gives(Fraction(65)),
        given(7, 1, 1, 1, 1, 0.75).refuses("TYPE"),
        given(7, 1, 1, 1, 1, Fraction(3, 2)).refuses("RANGE"),
    ),
    wrong=(
        Wrong(
            "all-again",
            _bound("palm_hardware_flops", lambda N, L, H, Q, T, remat: Fraction(8 * N + 16 * L * H * Q * T)),
            "All of forward is run again here: 8N. Of the weights only the share `remat` is.",
        ),
        Wrong(
            "attention-kept",
            _bound("palm_hardware_flops", lambda N, L, H, Q, T, remat: 6 * N + 12 * L * H * Q * T + remat * 2 * N),
            "The attention is not run again here. It is, all of its forward: 4LHQT.",
        ),
        Wrong(
            "share-of-attention",
            _bound(
                "palm_hardware_flops",
                lambda N, L, H, Q, T, remat: 6 * N + 12 * L * H * Q * T + remat * (2 * N + 4 * L * H * Q * T),
            ),
            "`remat` is the share of the weights' forward only; attention is replayed whole.",
        ),
        Wrong(
            "backward-again",
            _bound("palm_hardware_flops", lambda N, L, H, Q, T, remat: 6 * N + 16 * L * H * Q * T + remat * 6 * N),
            "The share is taken of 6N. A replay runs forward again: 2N.",
        ),
        Wrong(
            "nothing-again",
            _bound("palm_hardware_flops", lambda N, L, H, Q, T, remat: Fraction(6 * N + 12 * L * H * Q * T)),
            "These are the model FLOPs. The hardware also does what is computed twice.",
        ),
    ),
    shapes={
        "N": (10**9, 10**6 + 1),
        "L": (2, 32),
        "H": (3, 64),
        "Q": (64, 128),
        "T": (512, 2048),
        "remat": (Fraction(1, 3), Fraction(3, 4), Fraction(1, 2)),
    },
)

lora = Exercise(
    "lora_step",
    points=2,
    minutes=8,
    lines=2,
    hints=(
        "Ask of each of the three products whether it happens for frozen weights, and whether for adapters.",
        "forward and dx: 2 * (frozen + adapters) * tokens each. dw: 2 * adapters * tokens.",
    ),
    cases=(
        given(1000, 10, 3).gives({"forward": 6_060, "dx": 6_060, "dw": 60}),
        given(5, 0, 1).gives({"forward": 10, "dx": 10, "dw": 0}),
        given(308_160, 1152, 280).gives({"forward": 173_214_720, "dx": 173_214_720, "dw": 645_120}),
        given(70_553_706_496, 175_636_480, 1).gives(
            {"forward": 141_458_685_952, "dx": 141_458_685_952, "dw": 351_272_960}
        ),
        given(5, -1, 1).refuses("NEG"),
        given(5e9, 1, 1).refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "full-step",
            _changed("lora_step", lambda r, *_: {"dw": r["dx"]}),
            "This is the step of a model that is trained whole. Frozen weights have no dW.",
        ),
        Wrong(
            "frozen-stops-gradient",
            _changed("lora_step", lambda r, *_: {"dx": r["dw"]}),
            "The gradient does not reach the lower layers here. It passes through frozen weights too: dX is there for all.",
        ),
        Wrong(
            "adapters-only",
            _changed("lora_step", lambda r, *_: {"forward": r["dw"], "dx": r["dw"]}),
            "Only adapters are counted. What is frozen still computes.",
        ),
        Wrong(
            "adapters-free",
            _changed("lora_step", lambda r, frozen, adapters, tokens: {
                "forward": 2 * frozen * tokens,
                "dx": 2 * frozen * tokens,
            }),
            "Adapters are multiplied with as well, forward and for dX.",
        ),
    ),
    shapes={"frozen": (10**6, 8 * 10**9), "adapters": (4096, 10**7), "tokens": (1, 280, 4096)},
)

STEP = _totals(25, 33, 28, 58, 86)
BLOCK_STEP = _totals(
    70_274_254_897_152, 140_548_509_794_304, 65_970_697_666_560, 210_822_764_691_456, 276_793_462_358_016
)
ALL_STEPS = (STEP, BLOCK_STEP, _totals(100, 200, 40, 300, 340), _totals(249_392_640, 498_785_280, 65_049_600, 748_177_920, 813_227_520))


def _used(name, formula):
    return _bound(name, lambda totals, peak, seconds: formula(totals, Fraction(peak), Fraction(seconds)))


utilisation = Exercise(
    "mfu",
    points=2,
    minutes=5,
    lines=1,
    hints=(
        "Utilisation is work over what could have been done: peak * seconds.",
        'Fraction(totals["model"]) / (peak * seconds).',
    ),
    cases=(
        given(STEP, 100, 1).gives(Fraction(29, 50)),
        given(STEP, 8, Fraction(29, 4)).gives(Fraction(1)),
        given(STEP, 100, 3).gives(Fraction(29, 150)),
        given(BLOCK_STEP, 990 * 10**12, Fraction(1, 2)).gives(Fraction(5_718_933_504, 13_427_734_375)),
        given(STEP, 100, 0).refuses("NONPOS"),
        given(STEP, 100, 0.5).refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "with-replays",
            _used("mfu", lambda t, peak, s: t["hardware"] / (peak * s)),
            "The replays are counted as work. That is hfu; mfu asks what the model got for the time.",
        ),
        Wrong(
            "forward-only",
            _used("mfu", lambda t, peak, s: t["forward"] / (peak * s)),
            "Only forward is counted. The gradients are the model's work as well.",
        ),
        Wrong(
            "rate-without-time",
            _used("mfu", lambda t, peak, s: t["model"] / peak),
            "peak is a rate, FLOP/s. In the measured time it does peak * seconds.",
        ),
        Wrong(
            "time-upside-down",
            _used("mfu", lambda t, peak, s: t["model"] * s / peak),
            "The time is on the wrong side: a slower step is a lower utilisation.",
        ),
    ),
    shapes={"totals": ALL_STEPS, "peak": (1000, 990 * 10**12), "seconds": (Fraction(2, 3), Fraction(7), Fraction(1, 5))},
)

hardware_utilisation = Exercise(
    "hfu",
    points=1,
    minutes=3,
    lines=1,
    hints=(
        "As mfu, but the chip also did the replays.",
        'Fraction(totals["hardware"]) / (peak * seconds).',
    ),
    cases=(
        given(STEP, 100, 1).gives(Fraction(43, 50)),
        given(STEP, 10, Fraction(43, 5)).gives(Fraction(1)),
        given(STEP, 100, 3).gives(Fraction(43, 150)),
        given(BLOCK_STEP, 990 * 10**12, Fraction(1, 2)).gives(Fraction(22_525_509_632, 40_283_203_125)),
        given(STEP, 100, 0).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "without-replays",
            _used("hfu", lambda t, peak, s: t["model"] / (peak * s)),
            "The replays are missing. That is mfu; the chip ran them as well.",
        ),
        Wrong(
            "eight-over-six",
            _used("hfu", lambda t, peak, s: Fraction(4, 3) * t["model"] / (peak * s)),
            "8ND/6ND is taken for granted. What is replayed stands in the totals, and is seldom all of forward.",
        ),
        Wrong(
            "rate-without-time",
            _used("hfu", lambda t, peak, s: t["hardware"] / peak),
            "peak is a rate, FLOP/s. In the measured time it does peak * seconds.",
        ),
    ),
    shapes={"totals": ALL_STEPS, "peak": (1000, 990 * 10**12), "seconds": (Fraction(2, 3), Fraction(7), Fraction(1, 5))},
)


def _outputs_as_replays(fault):
    """The loss keeps a row statistic of the head's output; that is saved state, and no second run of the head."""
    from costlib import training

    parts = training.regions(TOY, TRAIN_SMALL)
    ran = ["block_0", "block_1", "head", "block_1", "block_0"]  # forward, then the replays in backward
    seen = {name: ran.count(name) - 1 for name in ran}
    claimed = {**seen, "head": 1} if fault else seen
    claim, trace = (training.totals(parts, replay)["recompute"] for replay in (claimed, seen))
    return f"{fixed(claim)} FLOP are said to be replayed; the operators that ran twice did {fixed(trace)}" * (claim != trace)


def _optimizer_in_model(fault):
    from costlib import params, training

    def model(batch):
        step = training.totals(training.regions(ODD, TRAIN_ODD.replace(batch_size=batch)), {})["model"]
        return step + (10 * params.ledger(ODD).total if fault else 0)

    hidden = 2 * model(1) - model(2)
    return f"{fixed(hidden)} of the model FLOPs do not grow with the batch: work per parameter is hidden in them" * (hidden != 0)


def _bytes_in_flops(fault):
    from costlib import params, training

    step = training.sixnd_closure(ODD, TRAIN_ODD)
    gradients = Ledger({"gradient all-reduce": 2 * params.ledger(ODD).total}, "B", "bf16 payload of one rank")
    try:
        return str(step + gradients) if fault else ""
    except UnitError as error:
        return str(error)


def _titles_compared(fault):
    from costlib import forward

    megatron_like, kaplan_like = forward.ledger(RUNNING, TRAIN_4K), forward.ledger(RUNNING, TRAIN_4K, "kaplan")
    try:
        difference = megatron_like + -1 * (kaplan_like if fault else megatron_like)
    except UnitError as error:
        return str(error)
    return "" if difference.total == 0 else f"{fixed(difference.total)} FLOP of difference"


def _time_from_flops(fault):
    from costlib import training

    parts = training.totals(training.regions(RUNNING, TRAIN_4K), {})
    peak, measured = 990 * 10**12, Fraction(1, 2)
    seconds = Fraction(parts["model"], peak) if fault else measured
    if training.mfu(parts, peak, seconds) < 1:
        return ""
    return "utilisation is exactly 1 whatever ran: the time was computed from the FLOPs, not measured"


FAILURES = (
    Failure(
        "backward as one lump of twice forward",
        "dX and dW are two products with shapes and needs of their own",
        wrong=("linear", "one-lump"),
    ),
    Failure(
        "three times forward where a weight is frozen or a gradient stops",
        "each product says whether it needs dX and whether dW",
        wrong=("linear", "always-both"),
    ),
    Failure(
        "four times the whole forward for checkpointing",
        "a replay names its regions and how often each runs",
        wrong=("totals", "blind-4x"),
    ),
    Failure(
        "kept outputs of the loss taken for a replay of the head",
        "replays are operators that ran again, not tensors that were kept",
        check=_outputs_as_replays,
    ),
    Failure(
        "every stored scalar as the N of 6ND",
        "N is what a token is multiplied with, from the executed products",
        wrong=("sixnd_closure", "unique-scalars"),
    ),
    Failure(
        "6ND taken to hold attention too",
        "pairs have no parameters and are added apart",
        wrong=("sixnd_closure", "no-attention"),
    ),
    Failure(
        "the optimizer hidden in the model's FLOPs",
        "model FLOPs are proportional to rows; work per updated scalar is another ledger",
        check=_optimizer_in_model,
    ),
    Failure(
        "collectives hidden in 6ND",
        "a payload is bytes, and bytes do not add to FLOPs",
        check=_bytes_in_flops,
    ),
    Failure(
        "2BShV more than Megatron's equation has",
        "V/16Lh multiplied out is forward and backward of the head, 6BShV",
        wrong=("megatron_iteration", "a16-slip"),
    ),
    Failure(
        "totals of two papers compared by their titles",
        "conventions first: two of them do not subtract",
        check=_titles_compared,
    ),
    Failure(
        "time computed from FLOPs alone",
        "a utilisation needs a time that was measured",
        check=_time_from_flops,
    ),
)

LAB = Lab(
    "07",
    "Training FLOPs",
    "training",
    (
        linear,
        regions,
        total,
        closure,
        shortfalls,
        kaplan,
        megatron,
        palm_model,
        palm_hardware,
        lora,
        utilisation,
        hardware_utilisation,
    ),
    FAILURES,
)
