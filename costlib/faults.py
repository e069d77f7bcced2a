"""Does every fault end in a status that says so? Twelve of them, each with the check that meets it. (M 0x0DA)

A function takes whether its fault is present, runs the check on the tiny tied fixture, and returns
the statuses that came out, or lets ManifestError through. Other modules are imported where they are used.
"""

from typing import Literal, get_args

from costlib.fixtures import LIVE_TINY, TOY_TIED
from costlib.policies import Ownership
from costlib.schema import tensor_rows

Fault = Literal[
    "reshaped tensor",
    "untied head",
    "mislabelled evidence",
    "unexplained counter",
    "no observation",
    "no liveness",
    "two patches",
    "mutated base",
    "illegal shard",
    "unnormalized paper",
    "drifted geometry",
    "missing paper",
]


def tiny():
    """The synthetic observation of the tiny tied model."""
    from costlib import data
    from costlib.evidence import Observation

    return Observation.from_json(data.read("observations/tiny_tied.json"))


def _state(change):
    """Status of the tiny model's entries, each changed by a function."""
    from costlib import reconcile

    found = reconcile.state(tensor_rows(TOY_TIED), tuple(map(change, tiny().entries)))
    return (reconcile.state_status(found),)


def reshaped_tensor(present):
    """q_proj [8, 8] shown as [4, 16]: as many scalars, other axes."""
    return _state(lambda e: e.replace(shape=(4, 16)) if present and "0.self_attn.q_proj" in e.name else e)


def untied_head(present):
    """The head in a storage of its own, names and shapes as before."""
    return _state(lambda e: e.replace(storage="storage:head") if present and e.name == "lm_head.weight" else e)


def mislabelled_evidence(present):
    """The synthetic bundle under the label of a measurement."""
    from costlib import reconcile

    seen = tiny().replace(evidence_class="locally_measured" if present else "synthetic_contract_test")
    return (reconcile.report(tensor_rows(TOY_TIED), {"activation peak": 448, "attention transfer": 1_408}, seen)["status"],)


def unexplained_counter(present):
    """Allocator-like bytes against tensor payload, with half of the gap told."""
    from costlib import reconcile

    rows = tiny().explaining("activation peak")
    rows = tuple(row.replace(amount=row.amount // 2) for row in rows) if present else rows
    return (reconcile.counter(448, tiny().value("activation peak"), rows)["status"],)


def no_observation(present):
    """A prediction and nobody who looked."""
    from costlib import reconcile

    predicted = {"activation peak": 448, "attention transfer": 1_408}
    return (reconcile.report(tensor_rows(TOY_TIED), predicted, None if present else tiny())["status"],)


def no_liveness(present):
    """A plan without liveness intervals: there is no peak, not one of 0 bytes."""
    from costlib import reconcile
    from costlib.estimate import Plan, estimate

    found = estimate(Plan(plan_id="tiny", architecture=TOY_TIED, liveness=() if present else LIVE_TINY)).ledgers
    peak = found["activation peak"].total if "activation peak" in found else None
    return (reconcile.counter(peak, 576, tiny().explaining("activation peak"))["status"],)


def two_patches(present):
    """Head count and vocabulary changed in one sensitivity case."""
    from costlib import sensitivity
    from costlib.estimate import Plan

    patches = (("architecture.num_key_value_heads", 1), ("architecture.vocab_size", 32))
    sensitivity.run(Plan(plan_id="tiny", architecture=TOY_TIED), (("case", patches if present else patches[:1]),))
    return ("exact",)


def mutated_base(present):
    """The base written to between two cases; its hash is another afterwards."""
    base = TOY_TIED.replace()
    before = base.sha256
    if present:
        object.__setattr__(base, "num_key_value_heads", 1)  # a frozen record has to be forced
    return ("exact" if base.sha256 == before else "open",)


def illegal_shard(present):
    """Three shards in a world of eight."""
    Ownership(policy_id="ranks", world_size=8, data_parallel=3 if present else 8)
    return ("exact",)


def unnormalized_paper(present):
    """A paper's row opened for comparison without a manifest to compare on."""
    from costlib import papers

    papers.registry()[1].replace(numeric_comparison_allowed=present)
    return ("exact",)


def drifted_geometry(present):
    """One more K/V head than when the fixture's 1,128 scalars were written down."""
    from costlib import params, reconcile

    arch = TOY_TIED.replace(num_key_value_heads=4 if present else 2)
    return (reconcile.counter(params.ledger(arch).total, 1_128)["status"],)


def missing_paper(present):
    """Five of the six contracts."""
    from costlib import papers
    from costlib.domain import require

    left = papers.missing_contracts(papers.registry()[present:])
    require(not left, "MISSING", f"the registry lacks {', '.join(left)}")
    return ("exact",)


INJECT = {case: globals()[case.replace(" ", "_")] for case in get_args(Fault)}
