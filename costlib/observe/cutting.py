"""By which rule does each framework share tensors among ranks? Integers from shapes alone, for explaining residuals.

The ledger cuts all scalars once. FSDP2 cuts every tensor's first axis, FSDP1 every flattened group, and
ZeroRedundancyOptimizer cuts nothing: it deals out whole tensors.
"""

from math import prod

from costlib.units import ceil_div


def scalars(shapes) -> int:
    return sum(map(prod, shapes))


def groups(shapes: dict) -> dict:
    """Shapes by group of the "blocks" grouping, the root first, as forward gathers them."""
    found = {"root": []}
    for name, shape in shapes.items():
        parts = name.split(".")
        found.setdefault(f"blocks.{parts[2]}" if parts[1] == "layers" else "root", []).append(shape)
    return found


def kept(kind: str, group, world: int) -> int:
    """Scalars that a rank stores of a group under "fsdp2" or "fsdp1", padding included."""
    if kind == "fsdp1":
        return ceil_div(scalars(group), world)
    return sum(ceil_div(shape[0], world) * prod(shape[1:]) for shape in group)


def owned(shapes, world: int, rank: int) -> int:
    """Scalars in the rows that a rank really has under FSDP2; the last ranks have fewer, or none."""
    pieces = [(ceil_div(shape[0], world), shape) for shape in shapes]
    return sum(min(piece, max(0, shape[0] - rank * piece)) * prod(shape[1:]) for piece, shape in pieces)


def padding(shapes: dict, world: int) -> dict:
    """{reason: scalars} that all ranks store under FSDP2 beyond one cut of everything, a row for each kind of tensor."""
    kinds, whole = {}, scalars(shapes.values())
    for name, shape in shapes.items():
        kinds.setdefault((name.split(".")[-2], *shape), []).append(shape)
    why = {
        f"{len(same)} x {name} {extents}: {extents[0]} rows are kept as {world} x {ceil_div(extents[0], world)}":
        world * kept("fsdp2", same, world) - scalars(same)
        for (name, *extents), same in kinds.items()
    }  # fmt: skip
    return why | {"the ledger's own padding, all scalars cut once": whole - world * ceil_div(whole, world)}


def dealt(shapes, world: int) -> list:
    """(scalars, tensors) of each rank under ZeRO-1: the largest tensor first, each to the rank with the least."""
    loads = [(0, 0)] * world
    for size in sorted(map(prod, shapes), reverse=True):
        rank = min(range(world), key=lambda each: loads[each][0])
        loads[rank] = loads[rank][0] + size, loads[rank][1] + 1
    return loads
