"""What does one rank keep, and what does it pass to a collective? Run on every rank by costlib.observe.ranks."""

import sys

from costlib.observe import models, need
from costlib.observe.ranks import RunFailed, calls

ELEMENTS = 60  # 2 and 4 divide it; neither divides 61
SLOTS = {"optimizer.m": "exp_avg", "optimizer.v": "exp_avg_sq", "optimizer.step": "step"}


def mine(tensors) -> list:
    """This rank's part of each tensor: of a DTensor its shard, of any other the whole."""
    return [tensor.to_local() if hasattr(tensor, "to_local") else tensor for tensor in tensors]


def stored(tensors) -> int:
    """Bytes of the storages behind this rank's part of these tensors, each storage once, padding included."""
    storages = [each.untyped_storage() for each in mine(tensors)]
    return sum({each._cdata: each.nbytes() for each in storages}.values())  # on meta no storage has an address


def weights(model) -> dict:
    """Bytes that a rank keeps of a model's unique parameters: storages, and what the shapes of its parts say."""
    unique = list(model.parameters())
    return {"weights": stored(unique), "weights in shape": sum(each.nbytes for each in mine(unique))}


def shapes(model) -> dict:
    """The whole shapes of a model's unique parameters, by name."""
    return {name: list(each.shape) for name, each in model.named_parameters()}


def fsdp2(model, world: int):
    """The model cut into the groups that the ledger calls "blocks": every block one, the root all the rest."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (world,))
    for block in model.model.layers:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def fsdp1(model):
    """The same groups, each flattened into one vector before it is cut."""
    torch, _ = need()
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    blocks = ModuleWrapPolicy({type(model.model.layers[0])})
    return FullyShardedDataParallel(model, auto_wrap_policy=blocks, device_id=torch.device("cpu"))


def step(model, optimizer, local) -> dict:
    """What a rank holds after one training step on [2, 5] tokens, and the collectives of that step.

    `local` is the optimizer whose state is this rank's own.
    """
    with calls() as called:
        model(input_ids=models.tokens(2, 5, "cpu")).logits.sum().backward()
        optimizer.step()
    state = local.state.values()
    return {
        **weights(model),
        "gradients": stored([each.grad for each in model.parameters()]),
        **{row: stored([each[slot] for each in state]) for row, slot in SLOTS.items()},
        "calls": called.rows,
    }


def trained(rank: int, world: int, arch) -> dict:
    """One rank's state under FSDP2, FSDP1 and ZeRO-1, parameters in fp32, AdamW."""
    torch, _ = need()
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.nn.parallel import DistributedDataParallel

    def fresh():
        return models.build(arch, dtype="fp32", device="cpu")

    seen = {"shapes": shapes(fresh())}
    for name, model in (("fsdp2", fsdp2(fresh(), world)), ("fsdp1", fsdp1(fresh()))):
        adam = torch.optim.AdamW(model.parameters())
        seen[name] = step(model, adam, adam)
    every = DistributedDataParallel(fresh(), gradient_as_bucket_view=True)
    zero = ZeroRedundancyOptimizer(every.parameters(), torch.optim.AdamW)
    return seen | {"zero1": step(every, zero, zero.optim)}


def untrained(arch, world: int) -> list:
    """weights() and shapes() of every rank of a group in which nobody else takes part: FSDP2, bf16, meta device."""
    need()
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    if dist.is_initialized():
        raise RunFailed("a process group is in use in this process, and a fake one cannot be made beside it")
    seen, hook = [], sys.excepthook  # a process group puts one of its own in its place
    for rank in range(world):
        dist.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())
        try:
            model = fsdp2(models.build(arch, dtype="bf16"), world)
            seen.append({"shapes": shapes(model), **weights(model)})
        finally:
            dist.destroy_process_group()
            sys.excepthook = hook
    return seen


def elementary(rank: int, world: int) -> dict:
    """[input bytes, output bytes] of each collective in fp32 and bf16, its values checked; and what is refused."""
    torch, _ = need()
    import torch.distributed as dist

    def call(kind, whole, piece, dtype=torch.float32):
        given = torch.full((piece if kind == "all-gather" else whole,), rank + 1, dtype=dtype)
        got = given if kind == "all-reduce" else torch.empty(whole if kind == "all-gather" else piece, dtype=dtype)
        if kind == "all-reduce":
            dist.all_reduce(got)
        else:
            (dist.all_gather_single if kind == "all-gather" else dist.reduce_scatter_single)(got, given)
        once = piece if kind == "all-gather" else len(got)  # every rank's own value stands, or is added, so often
        if int(got.double().sum()) != once * world * (world + 1) // 2:
            raise RunFailed(f"{kind} of {whole} values on {world} ranks gave wrong ones")
        return [given.untyped_storage().nbytes(), got.untyped_storage().nbytes()]

    seen = {
        f"{kind} {short}": call(kind, ELEMENTS, ELEMENTS // world, dtype)
        for kind in ("all-gather", "reduce-scatter", "all-reduce")
        for short, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16))
    }
    seen["all-reduce uneven"] = call("all-reduce", ELEMENTS + 1, 0)
    seen["refused"] = 0
    for kind in ("all-gather", "reduce-scatter"):
        try:
            call(kind, ELEMENTS + 1, ELEMENTS // world)
        except (RuntimeError, ValueError):
            seen["refused"] += 1
    return seen
