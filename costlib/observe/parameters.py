"""Which tensors does the real model hold, under which names, and which of them are one?"""

from costlib.evidence import Counter, Observation, SeenEntry
from costlib.fixtures import ODD, ODD_TIED, RUNNING, TOY_TIED
from costlib.observe import models, seen
from costlib.records import ArchitectureManifest

SEES = "every name in the module tree, and which names share a storage; not whether a storage would be filled with the right values"


def state_entries(model) -> tuple[SeenEntry, ...]:
    """Parameters, then buffers, in the model's own order, aliases under each of their names.

    storage: the first name that shows it. persistent: whether a state_dict holds the name.
    """
    kept, owner, found = model.state_dict().keys(), {}, []
    dtypes = {long: short for short, long in models.TORCH_DTYPES.items()}
    for kind in ("parameter", "buffer"):
        named = model.named_parameters if kind == "parameter" else model.named_buffers
        for name, tensor in named(remove_duplicate=False):
            dtype = str(tensor.dtype).removeprefix("torch.")
            # A meta tensor has no address; its storage object has one.
            storage = owner.setdefault(tensor.untyped_storage()._cdata, name)
            found.append(
                SeenEntry(
                    name=name,
                    shape=tuple(tensor.shape),
                    storage=storage,
                    kind=kind,
                    trainable=tensor.requires_grad,
                    persistent=name in kept,
                    dtype=dtypes.get(dtype, dtype),
                )
            )
    return tuple(found)


def of_model(model, name: str, scope: str, device: str = "meta") -> Observation:
    """The entries of a model, and three numbers that PyTorch itself adds up from its parameters."""
    named = [tensor for _, tensor in model.named_parameters(remove_duplicate=False)]
    storages = {tensor.untyped_storage()._cdata: tensor.untyped_storage().nbytes() for tensor in named}
    numbers = (
        ("parameters", sum(tensor.numel() for tensor in model.parameters()), "scalars"),
        ("named parameters", sum(tensor.numel() for tensor in named), "scalars"),
        ("weight payload", sum(storages.values()), "B"),
    )
    return seen(
        name,
        producer=f"{__name__}.of_model",
        scope=scope,
        device=device,
        entries=state_entries(model),
        counters=tuple(Counter(name=n, value=value, unit=unit, visibility=SEES) for n, value, unit in numbers),
    )


def inventory(arch: ArchitectureManifest, name: str, dtype: str = "bf16", device: str = "meta") -> Observation:
    """of_model of the Llama that the manifest describes."""
    return of_model(models.build(arch, dtype, device=device), name, f"{arch.manifest_id} as LlamaForCausalLM, {dtype}", device)


ODD_BIASED = ODD.replace(manifest_id="odd-biased", attention_bias="all", mlp_bias=True)
CASES = {  # bundle: manifest, dtype, device
    "parameters_tiny_tied": (TOY_TIED, "bf16", "cpu"),
    "parameters_running": (RUNNING, "bf16", "meta"),
    "parameters_odd_biased": (ODD_BIASED, "fp32", "meta"),
    "parameters_odd_tied": (ODD_TIED, "fp16", "meta"),
}
BUNDLES = {name: lambda name=name, case=case: inventory(case[0], name, *case[1:]) for name, case in CASES.items()}
