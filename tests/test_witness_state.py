"""Recorded storages, optimizer state and caches against the ledgers: no torch, the bundles alone."""

import pytest

from costlib import activations, observe, params, phases, reconcile
from costlib.exercise import using
from costlib.fixtures import ODD, RUNNING, TOY
from costlib.observe import cache, kept, optimizer, saved

PREDICTED = {
    **dict.fromkeys(saved.BUNDLES, kept.predicted),
    **dict.fromkeys(optimizer.BUNDLES, optimizer.predicted),
    **dict.fromkeys(cache.BUNDLES, cache.predicted),
}
EXACT = {"optimizer_sgd_fp32", "optimizer_sgd_bf16", "optimizer_momentum_fp32", "cache_running", "cache_odd", "cache_mistral_short"}


@pytest.fixture(autouse=True)
def on_the_reference():
    with using("solutions"):
        yield


def report(name, seen=None):
    return reconcile.report((), PREDICTED[name](name), seen or observe.read(name))


def total(name):
    return observe.read(name).value(kept.TOTAL)


@pytest.mark.parametrize("name", PREDICTED)
def test_every_counter_is_predicted_and_every_residual_explained(name):
    found = report(name)
    assert found["status"] == ("exact" if name in EXACT else "explained")
    assert found["counters"].keys() == PREDICTED[name](name).keys()


@pytest.mark.parametrize("name", sorted(PREDICTED.keys() - EXACT))
def test_an_explanation_that_is_taken_away_leaves_the_case_open(name):
    seen = observe.read(name)
    for i in range(len(seen.explanations)):
        fewer = seen.replace(explanations=seen.explanations[:i] + seen.explanations[i + 1 :])
        assert report(name, fewer)["status"] == "open"


# Saved for backward


@pytest.mark.parametrize("name", saved.BUNDLES)
def test_the_rows_are_the_total(name):
    seen = observe.read(name)
    rows = [counter.value for counter in seen.counters if counter.name not in (kept.TOTAL, kept.PARAMETERS)]
    assert sum(rows) == seen.value(kept.TOTAL)


def test_the_headline_block_by_hand():
    s, d, f, pairs = 4096, 4096, 14_336, 32 * 4096**2
    norms, tables = 2 * (4 + 2) * s * d + 2 * 4 * s, 2 * 2 * s * 128
    dense = norms + tables + (2 + 2 + 2 + 2 + 2 + 2) * s * d + 4 * 2 * s * f  # inputs, q, k, v, context; MLP
    assert total("saved_block_running_eager") == dense + (4 + 2) * pairs == 4_095_770_624
    assert total("saved_block_running_math") == dense + 3 * 2 * s * d + 4 * pairs == 3_122_692_096
    paper = activations.korthikanti(1, s, d, 32).total
    assert (paper, total("saved_block_running_eager") - paper) == (3_254_779_904, 840_990_720)


def test_an_odd_block_by_hand():
    b, s, d, q, kv, f = 5, 56, 96, 120, 40, 250
    ends = 2 * (4 + 2) * b * s * d + 2 * 4 * b * s + 2 * 2 * s * 20 + 2 * 2 * b * s * d + 4 * 2 * b * s * f
    pairs, sums = b * 6 * s * s, 4 * b * 6 * s
    assert total("saved_block_odd_eager") == ends + 2 * b * s * 4 * q + 6 * pairs == 1_830_080
    assert total("saved_block_odd_math") == ends + b * s * (2 + 3 * 4) * q + 4 * pairs == 1_843_520
    assert total("saved_block_odd_flash") == ends + 2 * b * s * (2 * q + 2 * kv) + sums == 1_182_720
    assert total("saved_block_odd_flash_masked") == ends + 2 * b * s * 4 * q + sums + 2 * s * s == 1_278_592


def test_grouped_heads_save_nothing_in_eager_attention():
    one, every = (kept.block(ODD.replace(num_key_value_heads=n), 5, 56) for n in (2, 6))
    assert one == every
    assert kept.total(kept.block(ODD, 5, 56, "flash")) < kept.total(kept.block(ODD.replace(num_key_value_heads=6), 5, 56, "flash"))


@pytest.mark.parametrize("name, b, s, h, a", [("saved_block_paper", 2, 2048, 4096, 32), ("saved_block_paper_small", 5, 56, 96, 6)])
def test_the_papers_own_block_has_the_papers_bytes_but_for_masks_and_statistics(name, b, s, h, a):
    assert activations.paper_gaps(kept.CASES[name].arch) == ()
    assert total(name) == 34 * b * s * h + 5 * b * a * s * s + (b * a * s * s + 2 * b * s * h) + 16 * b * s


@pytest.mark.parametrize("name, layers", [("saved_stack_running_checkpoint", 32), ("saved_stack_odd_checkpoint", 3)])
def test_a_checkpointed_stack_keeps_the_boundaries_exactly(name, layers):
    case = kept.CASES[name]
    expected = activations.retained(case.b, case.s, case.arch.hidden_size, case.arch.num_attention_heads, layers, "boundary")
    assert observe.read(name).value("blocks.boundary") == expected


@pytest.mark.parametrize("stack, block", [("running_eager", "running_eager"), ("odd_eager", "odd_eager"), ("odd_flash", "odd_flash")])
def test_the_blocks_of_a_stack_share_their_rotary_tables(stack, block):
    seen, case = observe.read(f"saved_stack_{stack}"), kept.CASES[f"saved_stack_{stack}"]
    blocks = sum(counter.value for counter in seen.counters if counter.name.startswith("blocks."))
    tables = 2 * 2 * case.s * case.arch.head_dim
    layers = case.arch.num_layers
    assert blocks == layers * total(f"saved_block_{block}") - (layers - 1) * tables


def test_the_loss_keeps_all_logits_once_more_and_its_labels():
    assert observe.read("saved_stack_running_eager").value("loss.log_softmax") == 4 * 4096 * 128_256
    assert observe.read("saved_stack_running_eager").value("loss.target") == 8 * 4097  # padded by one, and kept so
    assert observe.read("saved_stack_odd_eager").value("loss.target") == 8 * 5 * 56


def test_saved_parameters_are_all_but_the_embedding():
    unique = params.ledger(RUNNING)
    assert observe.read("saved_stack_running_eager").value(kept.PARAMETERS) == 2 * (unique.total - unique["embedding"])
    assert observe.read("saved_block_odd_eager").value(kept.PARAMETERS) == 2 * params.block(ODD).total


# Optimizer state


def test_adam_keeps_eight_bytes_a_scalar_or_four():
    n = params.ledger(TOY).total
    for dtype, size in (("fp32", 4), ("bf16", 2)):
        seen = observe.read(f"optimizer_adamw_{dtype}")
        assert [seen.value(f"step.optimizer.{slot}") for slot in ("m", "v")] == [size * n] * 2
        assert seen.value("step.optimizer.step") == 4 * 21
        assert seen.value("backward: optimizer tensors") == 0 and seen.value("backward.optimizer.m") is None


@pytest.mark.parametrize("name", optimizer.BUNDLES)
def test_gradients_go_with_none_and_stay_as_zeros(name):
    seen, size = observe.read(name), 4 if name.endswith("fp32") else 2
    assert seen.value("construction.gradients") is None and seen.value("zero-grad.gradients") is None
    assert seen.value("backward.gradients") == seen.value("zero-grad-kept.gradients") == size * 1_256


# Caches


def test_a_full_cache_and_a_windowed_one_by_hand():
    running, mistral = observe.read("cache_running"), observe.read("cache_mistral")
    assert running.value("decode: storages") - running.value("prefill: storages") == phases.cache_bytes(RUNNING, 1, 1) == 131_072
    row = 5 * 3 * 2 * 2 * 20 * 2  # sequences, layers, K and V, heads, width, bytes
    seen = [mistral.value(f"{point}: {kind}") for point in ("prefill", "decode") for kind in ("tensors", "storages")]
    assert seen == [15 * row, 56 * row, 15 * row, 16 * row]
    assert observe.read("cache_mistral_no_config").value("decode: tensors") == 57 * row
