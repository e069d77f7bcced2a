"""Which tensors does an optimizer really keep, and from when on? State on a toy model, point by point.

One training step on a CPU: construction, backward, step, and zero_grad both ways. Weights, gradients
and optimizer state are read from the objects that hold them. Source: M 0x03, 0x03G, 0x03J.
"""

from functools import partial
from math import prod

from costlib import state
from costlib.evidence import Counter, Explanation
from costlib.fixtures import TOY
from costlib.observe import models, need, seen
from costlib.policies import StateObject, StatePolicy, StateRow
from costlib.schema import tensor_rows

POINTS = ("construction", "backward", "step", "zero-grad", "zero-grad-kept")  # the last: set_to_none=False
KINDS = {  # name -> (class of torch.optim, arguments)
    "sgd": ("SGD", {"lr": 0.1}),
    "momentum": ("SGD", {"lr": 0.1, "momentum": 0.9}),
    "adam": ("Adam", {}),
    "adamw": ("AdamW", {}),
    "amsgrad": ("Adam", {"amsgrad": True}),
    "adafactor": ("Adafactor", {}),
}
COUNTING = ("adam", "adamw", "amsgrad", "adafactor")  # with a step counter for each parameter tensor
ROLES = {  # key of optimizer.state -> the course's role
    "momentum_buffer": "momentum",
    "exp_avg": "m",
    "exp_avg_sq": "v",
    "max_exp_avg_sq": "v_max",
    "row_var": "v.factored",
    "col_var": "v.factored",
    "variance": "v.whole",
    "step": "step",
}
SEES = "tensors held by parameters, their .grad and optimizer.state, their payload; no temporaries of the step, no rounding"


def objects(model, optimizer) -> tuple[StateObject, ...]:
    """Every tensor of state that is there now. device: "device" where its parameter is, else where it is."""
    found = []

    def add(role, name, tensor, home):
        place = "device" if tensor.device == home else str(tensor.device)
        size = tensor.numel() * tensor.element_size()
        dtype = {"torch.bfloat16": "bf16", "torch.float32": "fp32"}[str(tensor.dtype)]
        found.append(StateObject(role=role, tensor=name, shape=tuple(tensor.shape), dtype=dtype, device=place, bytes=size))

    for name, parameter in model.named_parameters():
        add("weights", name, parameter, parameter.device)
        if parameter.grad is not None:
            add("gradients", name, parameter.grad, parameter.device)
        for key, value in optimizer.state.get(parameter, {}).items():
            add(f"optimizer.{ROLES[key]}", name, value, parameter.device)
    return tuple(found)


def watch(kind: str, dtype: str, arch=TOY) -> dict[str, tuple[StateObject, ...]]:
    """The state objects just after each of POINTS."""
    torch, _ = need()
    model = models.build(arch, dtype, "eager", "cpu")
    name, arguments = KINDS[kind]
    optimizer = getattr(torch.optim, name)(model.parameters(), **arguments)
    ids = models.tokens(2, 5, "cpu")
    found = {"construction": objects(model, optimizer)}
    model(input_ids=ids, labels=ids).loss.backward()
    found["backward"] = objects(model, optimizer)
    optimizer.step()
    found["step"] = objects(model, optimizer)
    optimizer.zero_grad(set_to_none=False)
    found["zero-grad-kept"] = objects(model, optimizer)
    optimizer.zero_grad(set_to_none=True)
    found["zero-grad"] = objects(model, optimizer)
    return {point: found[point] for point in POINTS}


def declared(kind: str, dtype: str, moments: str = "fp32", kept: bool = False) -> StatePolicy:
    """What the course declares: weights and gradients of that dtype, the slots of state.optimizer_slots in `moments`.

    kept: gradients that zero_grad only sets to zero. Adafactor's moments are no slots: see `adafactor`.
    """
    rows = [
        StateRow(role="weights", counts="loaded", dtype=dtype),
        StateRow(role="gradients", counts="trained", dtype=dtype, created="backward", released="never" if kept else "zero-grad"),
    ]
    slots = {} if kind == "adafactor" else state.optimizer_slots(kind, 1)
    rows += [StateRow(role=f"optimizer.{slot}", counts="trained", dtype=moments, created="step", owner="optimizer") for slot in slots]
    return StatePolicy(policy_id=f"{kind}-{dtype}-{moments}", rows=tuple(rows))


def adafactor(dtype: str, arch=TOY) -> dict[str, int]:
    """Bytes of Adafactor's second moments: {"v.factored"} of the matrices, by state.adafactor_state, {"v.whole"} of the vectors."""
    shapes = [tensor.shape for tensor in tensor_rows(arch) if not tensor.alias_of]
    scalars = {
        "v.factored": sum(state.adafactor_state(*shape) for shape in shapes if len(shape) == 2),
        "v.whole": sum(prod(shape) for shape in shapes if len(shape) == 1),
    }
    return {name: state.bytes_of_weights(count, dtype) for name, count in scalars.items()}


def predicted(name: str, arch=TOY) -> dict[str, int]:
    """The course's numbers for a bundle's counters: moments in fp32 whatever the parameters are, no step counters."""
    _, kind, dtype = name.split("_")
    tensors = [tensor for tensor in tensor_rows(arch) if not tensor.alias_of]
    count, vectors = sum(tensor.numel for tensor in tensors), sum(len(tensor.shape) == 1 for tensor in tensors)
    found = {}
    for point in POINTS:
        policy, stepped = declared(kind, dtype, kept=point == "zero-grad-kept"), point in POINTS[2:]
        rows = dict(state.resident(policy, count, count, point.removesuffix("-kept")))
        slots = sum(role.startswith("optimizer.") for role in rows) * len(tensors)
        if stepped and kind == "adafactor":
            rows |= {f"optimizer.{role}": size for role, size in adafactor("fp32", arch).items()}
            slots = 2 * len(tensors) - vectors
        if stepped and kind in COUNTING:
            rows["optimizer.step"] = 0  # not declared
        found |= {f"{point}.{role}": size for role, size in rows.items()}
        found[f"{point}: optimizer tensors"] = slots
    return found


def record(name: str):
    """The Observation of one optimizer over one parameter dtype: bytes by point and role, and how many tensors of state."""
    _, kind, dtype = name.split("_")
    counters, why = [], []
    scope = f"toy, {kind} of torch.optim, {dtype} parameters, one step of 2 x 5 rows"
    expected = predicted(name)

    def explain(counter, amount, text):
        why.append(Explanation(counter=counter, amount=amount, text=text, scope=scope))

    for point, found in watch(kind, dtype).items():
        groups = {}
        for each in found:
            groups.setdefault(f"{point}.{each.role}", []).append(each)
        held, parameters = f"{point}: optimizer tensors", len(groups[f"{point}.weights"])
        slots = sum(each.role.startswith("optimizer.") for each in found)
        counters.append(Counter(name=held, value=slots, unit="tensors", visibility=SEES))
        for row, group in groups.items():
            kinds = " and ".join(sorted({each.dtype for each in group}))
            text = f"{len(group)} tensors of {kinds}; {SEES}"
            counters.append(Counter(name=row, value=sum(each.bytes for each in group), unit="B", visibility=text))
            if row.endswith(".step"):
                text = "step counters: one fp32 scalar a parameter tensor, on the CPU unless fused or capturable"
                explain(row, 4 * parameters, text)
                explain(held, parameters, text)
            elif ".optimizer." in row and dtype == "bf16":
                explain(row, -expected[row] // 2, "state is made like the parameter or its gradient: bf16, 2 bytes a scalar and not 4")
    return seen(name, "costlib.observe.optimizer.record", scope, tuple(counters), explanations=tuple(why), device="cpu")


BUNDLES = {name: partial(record, name) for name in (f"optimizer_{kind}_{dtype}" for kind in KINDS for dtype in ("fp32", "bf16"))}
