"""One manifest in, every ledger out: what does a declared plan cost, and what did it not declare?

A Plan is the whole accounting object: architecture, workload, representations, state, ownership,
liveness. What it leaves out is reported as not supplied, never as zero. Source: M 0x0AB, 0x0AC.
"""

import json
from dataclasses import dataclass
from typing import Literal

from costlib.domain import ManifestError
from costlib.ledger import Ledger
from costlib.policies import BITS, LiveObject, Ownership, StatePolicy, StateRow
from costlib.records import ArchitectureManifest, Record, Workload
from costlib.units import ceil_div, fixed, in_bytes, short

Dtype = Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int4"]
SCHEMA = "costlib/estimate/1"


@dataclass(frozen=True, kw_only=True)
class Plan(Record):
    """Everything that an estimate depends on. Its SHA-256 names the estimate."""

    plan_id: str
    architecture: ArchitectureManifest
    workload: Workload | None = None
    weight_dtype: Dtype = "bf16"
    activation_dtype: Dtype = "bf16"
    cache_dtype: Dtype = "bf16"
    attention_area: Literal["rectangular", "causal-legal", "kaplan"] = "rectangular"
    attention_schedule: Literal["materialized", "online"] | None = None
    state: StatePolicy | None = None
    ownership: Ownership | None = None
    liveness: tuple[LiveObject, ...] = ()


@dataclass(frozen=True)
class Estimate:
    """The ledgers of one plan by name, and the reason for each one that is not there."""

    plan_id: str
    sha256: str
    ledgers: dict[str, Ledger]
    not_supplied: dict[str, str]

    def __getitem__(self, name: str) -> Ledger:
        return self.ledgers[name]

    def summary(self):
        """(name, total, unit) of every ledger, in order."""
        return [(name, ledger.total, ledger.unit) for name, ledger in self.ledgers.items()]

    def to_json(self) -> str:
        """The documented form: schema, plan, totals and rows with unit and convention, and what is missing."""
        return json.dumps(
            {
                "schema": SCHEMA,
                "plan": self.plan_id,
                "sha256": self.sha256,
                "ledgers": {
                    name: {"unit": x.unit, "convention": x.convention, "total": x.total, "rows": dict(x)}
                    for name, x in self.ledgers.items()
                },
                "not_supplied": self.not_supplied,
            },
            indent=1,
        )

    def __str__(self):
        lines = [f"{self.plan_id}  sha256 {self.sha256[:16]}"]
        for name, total, unit in self.summary():
            shown = in_bytes(total) if unit == "B" else f"{fixed(total)} {unit} = {short(total, 3)}"
            lines.append(f"  {name:<24} {shown}")
        lines += [f"  {name:<24} not supplied: {why}" for name, why in self.not_supplied.items()]
        return "\n".join(lines)


def _bytes(scalars: int, dtype: str) -> int:
    return ceil_div(scalars * BITS[dtype], 8)


def estimate(plan: Plan) -> Estimate:
    """Every ledger that the plan declares enough for. Exact integers; the plan is not changed."""
    from costlib import activations, forward, latent, ownership, params, phases, state, traffic, training

    arch, work, owned = plan.architecture, plan.workload, plan.ownership
    found, missing = {}, {}

    def single(name, value, unit, convention):
        found[name] = Ledger({name: value}, unit, convention)

    unique = params.ledger(arch)
    found["parameters"] = unique
    named = unique.total + arch.tie_word_embeddings * arch.vocab_size * arch.hidden_size
    single("named parameters", named, "scalars", "every parameter name, a tied one twice")
    single("weight payload", _bytes(unique.total, plan.weight_dtype), "B", f"unique scalars in {plan.weight_dtype}")
    if plan.state:
        found["training state"] = state.ledger(plan.state, unique.total, unique.total)
    else:
        missing["training state"] = "no state policy"

    def per_rank(name, policy):
        """Bytes of one rank, in the largest pipeline stage where there are several."""
        try:
            if owned.tensor_parallel == owned.pipeline_parallel == 1:
                found[name] = ownership.rank_state(policy, unique.total, owned.zero_stage, owned.data_parallel)
            else:
                stages = ownership.compose(policy, arch, owned)
                single(name, max(stages.values()), "B", f"{owned.policy_id}: one rank of the largest stage")
        except ManifestError as refusal:
            missing[name] = refusal.detail

    if owned:
        row = StateRow(role="weights", counts="loaded", dtype=plan.weight_dtype)
        per_rank("weight payload per rank", StatePolicy(policy_id="weights", rows=(row,)))
        if plan.state:
            per_rank("training state per rank", plan.state)
        else:
            missing["training state per rank"] = "no state policy"
    else:
        for name in ("weight payload per rank", "training state per rank"):
            missing[name] = "no ownership"

    if work and arch.latent:
        found["forward"] = latent.forward_ledger(arch, work, plan.attention_area)
        if work.phase == "training":
            single("backward", 2 * found["forward"].total, "FLOP", "both gradients, nothing replayed")
        found["cache payload"] = latent.cache_ledger(arch, work.batch_size, work.visible_rows, plan.cache_dtype)
    elif work:
        found["forward"] = forward.ledger(arch, work, plan.attention_area)
        if work.phase == "training":
            totals = training.totals(training.regions(arch, work, plan.attention_area), {})
            found["backward"] = Ledger({"backward": totals["backward"]}, "FLOP", "both gradients, nothing replayed")
        single(
            "cache payload",
            phases.cache_bytes(arch, work.batch_size, work.visible_rows, plan.cache_dtype),
            "B",
            f"K and V of the visible rows in {plan.cache_dtype}, all layers",
        )
    else:
        for name in ("forward", "backward", "cache payload"):
            missing[name] = "no workload"

    if arch.latent:
        missing["attention transfer"] = "no schedule of latent attention"
    elif work and plan.attention_schedule:
        schedule = getattr(traffic, f"{plan.attention_schedule}_attention")
        one = traffic.payload(schedule(arch, work, plan.activation_dtype, plan.cache_dtype))
        found["attention transfer"] = one * arch.num_layers
    else:
        missing["attention transfer"] = "no attention schedule" if work else "no workload"
    if plan.liveness:
        peak, instant = activations.peak_cut(plan.liveness)
        single("activation peak", peak, "B", f"release first; reached at {instant}")
    else:
        missing["activation peak"] = "no liveness intervals"
    return Estimate(plan.plan_id, plan.sha256, found, missing)
