"""M 0x0A, what is compared, and M 0x0D: observations, state, residuals, faults."""

from fractions import Fraction
from math import prod
from typing import get_args, get_type_hints

from costlib import activations, data, params, phases, reconcile
from costlib.domain import ManifestError
from costlib.estimate import Plan, estimate
from costlib.evidence import Explanation, Observation
from costlib.faults import INJECT, tiny
from costlib.fixtures import LIVE_TINY, RUNNING, TOY_TIED
from costlib.policies import BITS, Ownership
from costlib.records import Workload
from costlib.schema import tensor_rows

OWNS = ("M.0AA", "M.0AE", "M.0AF", "M.0D")
SEEN = {entry.name: entry for entry in tiny().entries}
TABLE, HEAD, Q = "model.embed_tokens.weight", "lm_head.weight", "model.layers.0.self_attn.q_proj.weight"
PREFILL = Workload(
    workload_id="tiny", phase="prefill", batch_size=1, new_rows=4, visible_rows=4, logits="final"
)  # M 0x0AB


def peak():
    return activations.peak_cut(LIVE_TINY)[0]


def transfer():
    plan = Plan(plan_id="tiny", architecture=TOY_TIED, workload=PREFILL, attention_schedule="materialized")
    return estimate(plan)["attention transfer"].total


def closed(name, predicted):
    return reconcile.counter(predicted, tiny().value(name), tiny().explaining(name))


def half():
    """The peak with 64 of its 128 bytes explained."""
    rows = tuple(row.replace(amount=64) for row in tiny().explaining("activation peak"))
    return reconcile.counter(peak(), tiny().value("activation peak"), rows)


def reshaped():
    """The Q entry with as many scalars on other axes."""
    return SEEN[Q].replace(shape=(4, 16))


def report(predicted):
    return reconcile.report(tensor_rows(TOY_TIED), predicted, tiny())


def int4_saving():
    """Weights and a 4k cache, both in bf16, over int4 codes and the same cache."""
    weights, cache = params.ledger(RUNNING).total, phases.cache_bytes(RUNNING, 1, 4096)
    return Fraction(2 * weights + cache, weights // 2 + cache)


def refuses_analytical():
    try:
        Observation(observation_id="x", evidence_class="analytical")
    except ManifestError as refusal:
        return refusal.code == "ENUM"


def refuses_three_of_eight():
    try:
        Ownership(policy_id="x", world_size=8, data_parallel=3)
    except ManifestError as refusal:
        return refusal.code == "INCONSISTENT"


FACTS = {
    # M 0x0AE
    "M.0AE.001": lambda: params.inventory(tiny().entries)["named"],
    "M.0AE.002": lambda: params.inventory(tiny().entries)["unique"],
    "M.0AE.003": lambda: params.ledger(TOY_TIED).total,
    "M.0AE.004": lambda: reshaped().numel,
    # M 0x0AF
    "M.0AF.001": peak,
    "M.0AF.002": lambda: tiny().value("activation peak"),
    "M.0AF.003": lambda: closed("activation peak", peak())["residual"],
    "M.0AF.004": lambda: closed("activation peak", peak())["explained"],
    "M.0AF.005": transfer,
    "M.0AF.006": lambda: tiny().value("attention transfer"),
    "M.0AF.007": lambda: closed("attention transfer", transfer())["residual"],
    "M.0AF.008": lambda: closed("attention transfer", transfer())["explained"],
    "M.0AF.009": lambda: half()["residual"],
    "M.0AF.010": lambda: half()["explained"],
    "M.0AF.011": lambda: report({"activation peak": peak()})["counters"]["activation peak"]["predicted"],
    "M.0AF.012": lambda: report({"attention transfer": transfer()})["counters"]["attention transfer"]["predicted"],
}

TEXTS = {
    # The document's 0x01C writes a fifth class, "analytical" (M-17); here it is `unmeasured`.
    "M.0AA.001": lambda: refuses_analytical() and len(get_args(get_type_hints(Observation)["evidence_class"])) == 4,
    # The files that the document names are not with it (M-26); these are the course's own.
    "M.0AA.002": lambda: all(map(data.read, ("toy_tied.json", "observations/tiny_tied.json", "papers.json"))),
    "M.0AE.005": lambda: SEEN[TABLE].shape == (16, 8),
    "M.0AE.006": lambda: SEEN[HEAD].shape == (16, 8) and SEEN[HEAD].storage == SEEN[TABLE].storage,
    "M.0AE.007": lambda: SEEN[Q].shape == (8, 8),
    "M.0AE.008": lambda: reshaped().numel == SEEN[Q].numel
    and reconcile.fields(tensor_rows(TOY_TIED), (reshaped(),))["shape"] == [Q],
    # The document closes every residual of 0 (M-20); here the explanations must add up to it too.
    "M.0AF.013": lambda: reconcile.counter(
        448, 448, (Explanation(counter="activation peak", amount=64, text="padding", scope="tiny"),)
    )["status"] == "open",
    # 14 tests are in test_reconcile.py, one each; the table of faults has 12 rows (M-21).
    "M.0DA.001": lambda: len(INJECT) == 12,
    "M.0DA.002": lambda: prod((8, 8)) == prod((4, 16)) and reconcile.closure("reshaped tensor") == "open",
    "M.0DA.003": lambda: 8 % 3 == 2 and refuses_three_of_eight() and reconcile.closure("illegal shard") == "rejected",
    # Four times less holds of the codes alone: cache, scales and whatever stays in bf16 are not divided.
    "M.0DB.001": lambda: BITS["bf16"] // BITS["int4"] == 4 and 1 < int4_saving() < 4,
}

REST = {
    "M.0DC.001": "an order of seven steps to debug in; it states no number, and the chapter walks it",
}
