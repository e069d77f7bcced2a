"""What does each rank keep, and what goes into its collectives, when processes really share a model?

Two gloo processes train a Llama under FSDP2, FSDP1 and ZeRO-1; a fake group of eight shows the shards of
models that no machine here holds. Residuals are explained by the rules of costlib.observe.cutting.
"""

import functools

from costlib import observe
from costlib.evidence import Counter, Explanation
from costlib.fixtures import ODD, RUNNING, TOY_TIED
from costlib.observe import ranks, sharding
from costlib.observe.cutting import dealt, groups, kept, owned, padding, scalars
from costlib.units import ceil_div

UNEVEN = TOY_TIED.replace(  # half of its extents are odd, and so is the number of its scalars
    manifest_id="uneven",
    num_layers=3,
    hidden_size=15,
    num_attention_heads=3,
    num_key_value_heads=1,
    head_dim=6,
    intermediate_size=13,
    vocab_size=17,
)
FP32, BF16 = 4, 2  # bytes
KEPT = "storages of the tensors that Python reaches on this rank, each once; no allocator, no buffer that only C++ holds"
SHAPE = "values by the shapes of the ranks' parts; padding behind them is not seen"
CALLS = "tensors given to the operator on one rank; what gloo sends is not seen, and ring_send is an ideal"
RULE = {
    "fsdp2": "every tensor's first axis is cut and rounded up by itself",
    "fsdp1": "every group is flattened, cut and rounded up by itself",
}
MOMENTS = "moments have the rows this rank really has, without padding; the ledger cuts all scalars once"
STEPS = "step counters, one fp32 scalar for each tensor with moments"
ROOT = "by default the root is not freed after forward, so backward does not gather it again"
BUFFERS = "DDP sends rank 0's buffers before forward, two rotary tables of head_dim / 2 in fp32"


def _seen(producer, name, scope, rows, device="cpu"):
    """An observation from rows (counter, value, unit, visibility, {reason: amount}); a reason of 0 is left out."""
    counters = tuple(Counter(name=n, value=v, unit=unit, visibility=how) for n, v, unit, how, _ in rows)
    reasons = [(row[0], text, amount) for row in rows for text, amount in row[4].items() if amount]
    why = tuple(Explanation(counter=n, amount=amount, text=text, scope=scope) for n, text, amount in reasons)
    return observe.seen(name, f"costlib.observe.distributed.{producer}", scope, counters, (), why, device)


def _name(kind, arch, world):
    return f"{kind}_{arch.manifest_id.replace('-', '_')}_{world}"


def _scope(arch, how, world):
    return f"{arch.manifest_id} as Llama, fp32, {how}, one step on [2, 5] tokens, {world} gloo processes"


def _agreed(seen: list):
    """What every rank says, where all must say the same."""
    if any(each != seen[0] for each in seen):
        raise ranks.RunFailed("ranks that must see the same saw different things, so nothing was observed")
    return seen[0]


def collectives(world: int):
    """Input and output bytes of the three collectives on gloo: of 60 values, and of 61, which no equal shards hold."""
    seen = _agreed(ranks.run(sharding.elementary, world))
    refused, padded = seen.pop("refused"), world * ceil_div(61, world)
    rows = []
    for name, pair in seen.items():
        why = {f"a sum cuts nothing, so 61 values are not padded to {padded}": FP32 * (61 - padded)}
        why = why if name.endswith("uneven") else {}
        rows += [(f"{name}.{side}", value, "B", CALLS, why) for side, value in zip(("input", "output"), pair)]
    rows.append(("uneven refused", refused, "calls", "all-gather to 61 values and reduce-scatter of 61, one call each", {}))
    scope = f"60 values in fp32 and in bf16, 61 in fp32, {world} gloo processes; the values of every result were checked"
    return _seen("collectives", f"collectives_gloo_{world}", scope, rows)


def _weights(seen: list, shapes: dict, width: int) -> list:
    """Rows for the weights of every rank under FSDP2: in storages and, of all ranks together, in shapes."""
    world, whole = len(seen), scalars(shapes.values())
    more = width * (kept("fsdp2", shapes.values(), world) - ceil_div(whole, world))
    why = {f"{RULE['fsdp2']}; the ledger cuts all scalars once": more}
    rows = [(f"rank {rank}.weights", each["weights"], "B", KEPT, why) for rank, each in enumerate(seen)]
    pads = {text: width * amount for text, amount in padding(shapes, world).items()}
    rows.append(("all ranks.weights", sum(each["weights"] for each in seen), "B", KEPT, pads))
    return [*rows, ("all ranks.weights in shape", sum(each["weights in shape"] for each in seen), "B", SHAPE, {})]


def shards(arch, world: int = 8):
    """Weights of every rank under FSDP2 in bf16 on the meta device, in a fake group: no peer, no value, no step."""
    seen = sharding.untrained(arch, world)
    scope = f"{arch.manifest_id} as Llama, bf16, FSDP2 by blocks, a fake group of {world}"
    rows = _weights(seen, _agreed([each["shapes"] for each in seen]), BF16)
    return _seen("shards", _name("fsdp2", arch, world), scope, rows, "meta")


@functools.cache
def _trained(arch, world):
    return ranks.run(sharding.trained, world, arch)


def _state(rank, each, gradients, moments, steps) -> list:
    """Rows for one rank's gradients and optimizer; gradients and moments: {reason: amount}, of each moment."""
    rows = [(f"rank {rank}.gradients", each["gradients"], "B", KEPT, gradients)]
    rows += [(f"rank {rank}.{slot}", each[slot], "B", KEPT, moments) for slot in ("optimizer.m", "optimizer.v")]
    why = {f"both moments: {text}": 2 * amount for text, amount in moments.items()} | {STEPS: FP32 * steps}
    return [*rows, (f"rank {rank}.optimizer", sum(each[slot] for slot in sharding.SLOTS), "B", KEPT, why)]


def fsdp(kind: str, arch, world: int = 2):
    """State of every rank after one AdamW step under "fsdp2" or "fsdp1", and the collectives of the step."""
    seen = _trained(arch, world)
    shapes, mine = _agreed([each["shapes"] for each in seen]), [each[kind] for each in seen]
    cut = groups(shapes)
    even = ceil_div(scalars(shapes.values()), world)
    more = FP32 * (sum(kept(kind, group, world) for group in cut.values()) - even)
    why = {f"{RULE[kind]}; the ledger cuts all scalars once": more}
    if kind == "fsdp2":
        rows = _weights(mine, shapes, FP32)
    else:
        rows = [(f"rank {rank}.weights", each["weights"], "B", KEPT, why) for rank, each in enumerate(mine)]
    for rank, each in enumerate(mine):
        moments = {MOMENTS: FP32 * (owned(shapes.values(), world, rank) - even)} if kind == "fsdp2" else why
        rows += _state(rank, each, why, moments, len(shapes if kind == "fsdp2" else cut))
    rows += _calls(kind, cut, world, _agreed([each["calls"] for each in mine]))
    scope = _scope(arch, f"{kind.upper()} by blocks, AdamW", world)
    return _seen("fsdp", _name(kind, arch, world), scope, rows)


def _calls(kind, cut, world, calls) -> list:
    """Rows for the collectives of one FSDP step: what each group puts in and gets, and all calls together."""
    over = {name: FP32 * (kept(kind, group, world) - ceil_div(scalars(group), world)) for name, group in cut.items()}
    text, rows = f"{RULE[kind]}; the ledger rounds a group once", []
    for name, (_, given, got) in zip(cut, calls):  # the first gathers are forward's, in the order of the groups
        rows.append((f"{name}.shard", given, "B", CALLS, {text: over[name]}))
        rows.append((f"{name}.full", got, "B", CALLS, {text: world * over[name]}))
    gathers, scatters = ([row for row in calls if row[0] == name] for name in ("all-gather", "reduce-scatter"))
    again, pads = FP32 * world * kept(kind, cut["root"], world), world * sum(over.values())
    both = f"{text}, in forward and in backward"
    return [
        *rows,
        ("all-gather calls", len(gathers), "calls", CALLS, {ROOT: -1}),
        ("all-gather output", sum(row[2] for row in gathers), "B", CALLS, {ROOT: -again, both: 2 * pads}),
        ("reduce-scatter calls", len(scatters), "calls", CALLS, {}),
        ("reduce-scatter input", sum(row[1] for row in scatters), "B", CALLS, {text: pads}),
    ]


def zero1(arch, world: int = 2):
    """State of every rank after one step of ZeroRedundancyOptimizer(AdamW) under DDP, and the step's collectives."""
    seen = _trained(arch, world)
    shapes, mine = _agreed([each["shapes"] for each in seen]), [each["zero1"] for each in seen]
    even, rows = ceil_div(scalars(shapes.values()), world), []
    for rank, (each, (own, tensors)) in enumerate(zip(mine, dealt(shapes.values(), world))):
        why = f"whole tensors are dealt out, {tensors} of {len(shapes)} to this rank; the ledger cuts all scalars once"
        rows.append((f"rank {rank}.weights", each["weights"], "B", KEPT, {}))
        rows += _state(rank, each, {}, {why: FP32 * (own - even)}, tensors)
    calls = _agreed([each["calls"] for each in mine])
    summed, sent = ([row for row in calls if row[0] == name] for name in ("all-reduce", "broadcast"))
    pads = {"nothing is cut, so nothing is padded": FP32 * (scalars(shapes.values()) - world * even)}
    each_its_own = {"each tensor is broadcast by its owner, where the ledger has one all-gather": len(shapes) - 1}
    rows += [
        ("all-reduce input", sum(row[1] for row in summed), "B", CALLS, pads),
        ("broadcast output", sum(row[2] for row in sent), "B", CALLS, pads | {BUFFERS: FP32 * arch.head_dim}),
        ("broadcast calls", len(sent), "calls", CALLS, each_its_own | {BUFFERS: 1}),
    ]
    scope = _scope(arch, "ZeroRedundancyOptimizer(AdamW) under DDP", world)
    return _seen("zero1", _name("zero1", arch, world), scope, rows)


BUNDLES = {f"collectives_gloo_{world}": functools.partial(collectives, world) for world in (2, 4)}
BUNDLES |= {_name("fsdp2", arch, 8): functools.partial(shards, arch) for arch in (RUNNING, ODD, TOY_TIED)}
for _arch in (TOY_TIED, UNEVEN):
    BUNDLES |= {_name(kind, _arch, 2): functools.partial(fsdp, kind, _arch) for kind in ("fsdp2", "fsdp1")}
    BUNDLES[_name("zero1", _arch, 2)] = functools.partial(zero1, _arch)
