"""Optimizer state, tensor by tensor, against the policies and slots of the course."""

from collections import Counter

import pytest

from costlib import observe, reconcile, state
from costlib.fixtures import TOY, TOY_TIED
from costlib.observe import optimizer
from costlib.schema import tensor_rows

POINTS = optimizer.POINTS
STEPPING = optimizer.COUNTING


def differences(kind, dtype, point, moments, arch=TOY):
    """state.reconcile of the course's objects with those that are there."""
    policy = optimizer.declared(kind, dtype, moments, kept=point == "zero-grad-kept")
    declared = state.state_objects(policy, tensor_rows(arch), point.removesuffix("-kept"))
    return state.reconcile(declared, optimizer.watch(kind, dtype, arch)[point])


@pytest.mark.parametrize("name", optimizer.BUNDLES)
def test_the_bundle_is_what_the_optimizer_keeps_now(name):
    assert observe.compare(name) == ""


@pytest.mark.parametrize("arch", [TOY, TOY_TIED], ids=["toy", "tied"])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("kind", ["sgd", "momentum", "adam", "adamw", "amsgrad"])
def test_with_moments_like_the_parameters_only_step_counters_are_left(kind, dtype, point, arch):
    found = differences(kind, dtype, point, dtype, arch)
    counters = (21 - arch.tie_word_embeddings) if kind in STEPPING and point in POINTS[2:] else 0
    assert found["missing"] == ()
    assert [(each.role, each.shape, each.dtype, each.bytes) for each in found["unexpected"]] == [
        ("optimizer.step", (), "fp32", 4)
    ] * counters


@pytest.mark.parametrize("kind, slots", [("momentum", 1), ("adam", 2), ("adamw", 2), ("amsgrad", 3)])
def test_declared_fp32_moments_are_missing_under_bf16_parameters(kind, slots):
    found = differences(kind, "bf16", "step", "fp32")
    assert Counter(each.dtype for each in found["missing"]) == {"fp32": 21 * slots}
    moments = [each for each in found["unexpected"] if each.role != "optimizer.step"]
    assert Counter(each.dtype for each in moments) == {"bf16": 21 * slots}
    assert sum(each.bytes for each in found["missing"]) == 2 * sum(each.bytes for each in moments) == slots * 4 * 1_256


@pytest.mark.parametrize("kind", optimizer.KINDS)
def test_state_is_lazy_and_gradients_go_only_when_set_to_none(kind):
    roles = {point: {each.role.partition(".")[0] for each in found} for point, found in optimizer.watch(kind, "fp32").items()}
    stateful = set() if kind == "sgd" else {"optimizer"}
    assert roles == {
        "construction": {"weights"},
        "backward": {"weights", "gradients"},
        "step": {"weights", "gradients"} | stateful,
        "zero-grad": {"weights"} | stateful,
        "zero-grad-kept": {"weights", "gradients"} | stateful,
    }


def test_adafactor_keeps_a_row_and_a_column_for_a_matrix_and_all_of_a_vector():
    found = [each for each in optimizer.watch("adafactor", "fp32")["step"] if each.role.startswith("optimizer.v")]
    shapes = {}
    for each in found:
        shapes.setdefault(each.tensor, []).append(each.shape)
    assert shapes["model.layers.0.mlp.up_proj.weight"] == [(12, 1), (1, 8)]
    assert shapes["model.norm.weight"] == [(8,)]
    assert len(shapes) == 21 and sum(each.bytes for each in found) == 4 * (280 + 40)


@pytest.mark.parametrize("name", optimizer.BUNDLES)
def test_every_residual_is_explained(name):
    status = reconcile.report((), optimizer.predicted(name), optimizer.BUNDLES[name]())["status"]
    assert status == ("exact" if name in ("optimizer_sgd_fp32", "optimizer_sgd_bf16", "optimizer_momentum_fp32") else "explained")
