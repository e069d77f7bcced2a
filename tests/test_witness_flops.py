"""What FlopCounterMode counted in real models against the ledgers, and counts spoilt on purpose."""

import pytest

from costlib import forward, hypotheses, observe, reconcile, training
from costlib.exercise import using
from costlib.fixtures import ODD, PREFILL_4K, RUNNING, TRAIN_4K, TRAIN_ODD
from costlib.observe import flops, products

RESIDUALS = {  # bundle: the residual of "forward" and of "backward" where it is not 0, from the shapes
    "flops_running_step_fused": (0, 32 * 2 * 4096**2 * 4096),
    "flops_wide_step_fused": (0, 2 * 3 * 2 * 1000**2 * 4096),
    "flops_odd_step_fused": (0, 3 * 5 * 2 * 56**2 * 120),
    "flops_odd_step_cpu_sdpa": (-3 * 5 * 4 * 56**2 * 120, -2 * 3 * 5 * 4 * 56**2 * 120),
    "flops_wide_step_replayed_eager": (0, 2 * (2 * 3000 * 4096 * (2 * 5120 + 3 * 14336) + 3 * 4 * 1000**2 * 4096)),
    "flops_wide_step_early_stop_eager": (0, 2 * (2 * 3000 * 4096 * (2 * 5120 + 2 * 14336) + 3 * 4 * 1000**2 * 4096)),
}


@pytest.fixture(autouse=True)
def on_the_reference():
    with using("solutions"):
        yield


def report(name):
    arch, workload, attention, *more = (flops.CASES | flops.MODULES)[name]
    block = more if name in flops.MODULES else ()
    return reconcile.report((), products.predicted(arch, workload, attention, *block), observe.read(name))


def step(name):
    seen = observe.read(name)
    return seen.value("forward") + seen.value("backward")


def named(candidates, observed):
    return [h["name"] for h in hypotheses.explain(candidates, observed, 99) if h["exact"]]


# The framework's numbers


@pytest.mark.parametrize("name", flops.CASES)
def test_the_ledger_and_the_framework_agree_or_differ_by_what_is_explained(name):
    found = report(name)
    assert found["status"] == ("explained" if name in RESIDUALS else "exact")
    for direction, residual in zip(("forward", "backward"), RESIDUALS.get(name, (0, 0))):
        assert found["counters"].get(direction, {}).get("residual", 0) == residual


@pytest.mark.parametrize("name", flops.MODULES)
def test_every_module_agrees_forward_and_four_differ_backward(name):
    found = report(name)
    assert found["status"] == "explained"
    open_too_long = {f"backward: model.layers.1.{module}" for module in (
        "self_attn", "self_attn.k_proj", "self_attn.v_proj", "mlp.up_proj")}  # fmt: skip
    assert {counter for counter, row in found["counters"].items() if row["residual"]} == open_too_long
    assert len(found["counters"]) == 2 * 12


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_the_headline_numbers(attention):
    assert observe.read(f"flops_running_prefill_{attention}").value("forward") == 65_971_748_339_712
    assert observe.read(f"flops_running_step_{attention}").value("forward") == 70_274_254_897_152
    assert step(f"flops_running_step_{attention}") == 210_822_764_691_456
    # One row of 32,768: 2 * (32 * 218,103,808 + 128,256 * 4,096), and 4 * 32 * 32,768 * 4,096 of attention.
    assert observe.read(f"flops_running_decode_{attention}").value("forward") == 15_009_316_864 + 17_179_869_184


def test_the_fused_backward_is_charged_with_five_products_of_the_forwards_two():
    assert step("flops_running_step_fused") == 215_220_811_202_560
    for case in ("running", "wide", "odd"):
        seen = observe.read(f"flops_{case}_step_fused")
        once = seen.value(f"forward: {products.FUSED}")
        assert 2 * seen.value(f"backward: {products.FUSED}_backward") == 5 * once
        assert observe.read(f"flops_{case}_step_sdpa").value("backward: bmm") == 2 * once


def test_a_linear_with_a_bias_is_another_operator_and_the_same_number():
    plain, biased = observe.read("flops_odd_step_eager"), observe.read("flops_odd_biased_step_eager")
    assert plain.value("forward: addmm") is None and biased.value("forward: addmm") > 0
    assert plain.value("forward: mm") == biased.value("forward: mm") + biased.value("forward: addmm")
    assert [plain.value(n) for n in ("forward", "backward")] == [biased.value(n) for n in ("forward", "backward")]


def test_the_parts_of_a_backward_exceed_their_whole():
    """K, V and up are charged with their neighbours too: by module, a backward cannot be added up."""
    seen = observe.read("flops_odd_modules_sdpa")

    def total(direction, whole, parts):
        inside = sum(seen.value(f"{direction}: model.layers.1.{whole}.{part}_proj") for part in parts)
        return seen.value(f"{direction}: model.layers.1.{whole}"), inside

    assert total("forward", "mlp", ("gate", "up", "down")) == (40_320_000, 40_320_000)
    assert total("backward", "mlp", ("gate", "up", "down")) == (80_640_000, 80_640_000 + 26_880_000)


def test_the_training_ledger_is_the_frameworks():
    for case, arch, workload in (("running", RUNNING, TRAIN_4K), ("wide", flops.WIDE, flops.TRAIN_1000), ("odd", ODD, TRAIN_ODD)):
        totals = training.totals(training.regions(arch, workload), {})
        seen = observe.read(f"flops_{case}_step_eager")
        assert (seen.value("forward"), seen.value("backward")) == (totals["forward"], totals["backward"])


def test_a_replayed_block_is_the_training_ledgers_recomputation():
    regions = training.regions(flops.WIDE, flops.TRAIN_1000)
    hardware = training.totals(regions, {"block_0": 1, "block_1": 1})["hardware"]
    assert step("flops_wide_step_replayed_eager") == hardware
    assert step("flops_wide_step_early_stop_eager") == hardware - 2 * 2 * 3000 * 14336 * 4096


# Counts that are wrong, or of something else: each ends as what it is.


def test_sdpa_on_a_cpu_is_attention_not_seen():
    """PyTorch's own counter, on the model that it counts right with eager attention."""
    seen = observe.read("flops_odd_step_cpu_sdpa")
    assert "forward: bmm" not in [c.name for c in seen.counters]
    same = ["attention not seen", "2N of used matrices"]  # with logits of all rows these are one count under two names
    assert named(hypotheses.of_forward(ODD, TRAIN_ODD), seen.value("forward")) == same
    assert named(hypotheses.of_training(ODD, TRAIN_ODD), step("flops_odd_step_cpu_sdpa")) == same
    assert observe.read("flops_odd_step_cpu_eager").value("forward") == forward.ledger(ODD, TRAIN_ODD).total


@pytest.mark.parametrize("name, arch, workload", [
    ("flops_running_prefill_sdpa", RUNNING, PREFILL_4K),
    ("flops_odd_prefill_sdpa", ODD, flops.PREFILL_ODD),
])  # fmt: skip
def test_a_recorded_forward_spoilt_ends_as_the_hypothesis_of_its_name(name, arch, workload):
    seen, candidates = observe.read(name), hypotheses.of_forward(arch, workload)
    whole, pairs = seen.value("forward"), seen.value("forward: bmm")
    assert named(candidates, whole) == ["as declared"]
    for observed, what in (
        (whole - pairs, ["attention not seen"]),  # a tool that knows no attention operator
        (whole + pairs, ["attention seen twice"]),  # one that counts the operator and what it calls
        (whole // 2, ["MACs for FLOPs", "shard of 2"]),  # a half, and no number can say of what
        ((whole - pairs) // 2, ["MACs, attention not seen"]),
        (whole // 8, ["shard of 8"]),  # one rank of eight, each with its part of the matrices
    ):
        assert named(candidates, observed) == what
        row = reconcile.counter(forward.ledger(arch, workload).total, observed)
        assert row["status"] == "open"


@pytest.mark.parametrize("case, what", [
    ("eager", "as declared"),
    ("fused", "scores again in backward"),
    ("replayed_eager", "every block replayed"),
    ("early_stop_eager", "all but the last product replayed"),
])  # fmt: skip
def test_a_step_run_otherwise_is_recognized_by_its_number(case, what):
    assert named(hypotheses.of_training(flops.WIDE, flops.TRAIN_1000), step(f"flops_wide_step_{case}")) == [what]


def test_an_explanation_left_out_opens_the_counter_again():
    for name in RESIDUALS:
        arch, workload, attention, *_ = flops.CASES[name]
        bare = observe.read(name).replace(explanations=())
        assert reconcile.report((), products.predicted(arch, workload, attention), bare)["status"] == "open"
