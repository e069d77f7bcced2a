"""Does a plan hold against a real model, here and now? One observation of what the plan declares."""

from costlib.estimate import Plan
from costlib.evidence import Explanation, Observation
from costlib.observe import flops, parameters


def of_plan(plan: Plan) -> Observation:
    """The Llama of the plan's architecture on the meta device: its entries, their sums, and the FLOPs of the
    plan's workload with eager attention. Refused: what Llama has not, weights in no dtype of a model.

    FlopCounterMode charges the whole rectangle; where the plan charges less, an explanation has the difference.
    """
    from costlib import forward

    arch, work = plan.architecture, plan.workload
    seen = parameters.inventory(arch, "live", plan.weight_dtype).replace(
        observation_id=f"live-{plan.plan_id}", raw_artifact="none kept: observed for this answer", producer=f"{__name__}.of_plan"
    )
    if not work:
        return seen
    counted = flops.by_operator("live", arch, work, dtype=plan.weight_dtype)
    more = forward.ledger(arch, work).total - forward.ledger(arch, work, plan.attention_area).total
    text = f"FlopCounterMode charges every pair of the rectangle, the plan {plan.attention_area} attention"
    directions = {"forward": more} | ({"backward": 2 * more} if work.phase == "training" else {})
    return seen.replace(
        scope=counted.scope,
        counters=seen.counters + tuple(row for row in counted.counters if row.name in directions),
        explanations=tuple(
            Explanation(counter=name, amount=amount, text=text, scope=counted.scope) for name, amount in directions.items() if amount
        ),
    )
