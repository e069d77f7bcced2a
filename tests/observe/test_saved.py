"""What autograd keeps, against rows derived from the models' source: recorded cases, and shapes that no bundle has."""

import pytest

from costlib import observe, reconcile
from costlib.fixtures import ODD, RUNNING, TOY, TOY_TIED, classic_block
from costlib.observe import kept, saved

WIDE = ODD.replace(hidden_size=72, num_attention_heads=4, num_key_value_heads=4, head_dim=26, intermediate_size=101)
ONE_HEAD = ODD.replace(num_attention_heads=5, num_key_value_heads=1, head_dim=14, hidden_size=65)
BIASED = ODD.replace(attention_bias="all", mlp_bias=True)


def rows(observation):
    """The observation's rows, without the total and the parameters."""
    return {counter.name: counter.value for counter in observation.counters[2:]}


def derived(case):
    return {row: size for row, (size, _) in kept.rows(case).items()}


@pytest.mark.parametrize("name", saved.BUNDLES)
def test_the_bundle_is_what_autograd_keeps_now(name):
    assert observe.compare(name) == ""


@pytest.mark.parametrize("kernel", saved.RUNS)
@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
@pytest.mark.parametrize("arch, b, s", [(WIDE, 1, 7), (ONE_HEAD, 3, 30), (BIASED, 2, 19), (TOY, 1, 2)])
def test_a_block_keeps_the_derived_storages_and_nothing_else(arch, b, s, dtype, kernel):
    case = kept.Case("block", arch, b, s, kernel, dtype)
    seen = saved.record("case", case)
    assert rows(seen) == derived(case)
    assert seen.value(kept.TOTAL) == kept.total(kept.rows(case))


@pytest.mark.parametrize("kernel", saved.RUNS)
@pytest.mark.parametrize("arch, b, s", [(ONE_HEAD, 1, 9), (TOY_TIED, 3, 6)])
@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_stack_keeps_its_blocks_and_both_ends(arch, b, s, kernel, checkpoint):
    case = kept.Case("stack", arch, b, s, kernel, checkpoint=checkpoint)
    assert rows(saved.record("case", case)) == derived(case)


@pytest.mark.parametrize("b, s, h, a", [(2, 11, 30, 3), (3, 64, 128, 4)])
def test_the_block_of_the_paper_differs_by_its_masks_and_norm_statistics(b, s, h, a):
    case = kept.Case("paper", classic_block(1, h, 101, a), b, s)
    seen = saved.record("case", case)
    assert rows(seen) == derived(case)
    more = b * a * s * s + 2 * b * s * h + 2 * 2 * 4 * b * s  # second byte of three masks; two fp32 statistics of two norms
    assert seen.value(kept.TOTAL) == 34 * b * s * h + 5 * b * a * s * s + more


def test_one_sequence_of_the_papers_block_keeps_as_much_in_fewer_storages():
    model, call = saved.made(kept.Case("paper", classic_block(1, 30, 101, 3), 1, 22))
    storages, _ = saved.watch(model, call)
    own = [each["bytes"] for each in storages if not each["parameter"]]
    assert len(own) == 17 and 3 * 2 * 22 * 30 in own  # q, k and v are views of one
    assert sum(own) == kept.total(kept.paper(1, 22, 30, 3))


def test_the_headline_block_in_numbers():
    eager = saved.record("eager", kept.Case("block", RUNNING, 1, 4096))
    math = saved.record("math", kept.Case("block", RUNNING, 1, 4096, "math"))
    assert (eager.value(kept.TOTAL), math.value(kept.TOTAL)) == (4_095_770_624, 3_122_692_096)


@pytest.mark.parametrize("name", ["saved_block_odd_eager", "saved_stack_odd_checkpoint", "saved_block_paper_small"])
def test_an_observation_closes_against_the_paper(name):
    seen = saved.BUNDLES[name]()
    assert reconcile.report((), kept.predicted(name), seen)["status"] == "explained"


def test_a_storage_that_no_row_expects_is_a_row_of_its_own():
    model, call = saved.made(kept.Case("block", ODD, 1, 9))
    storages, _ = saved.watch(model, lambda: call().exp())
    new = {name: group[0]["bytes"] for name, group in saved.named(storages, "eager").items() if name not in kept.block(ODD, 1, 9)}
    assert new == {"the model.exp.0": 2 * 9 * 96}


def test_watching_leaves_the_model_as_it_was():
    model, call = saved.made(kept.Case("block", ODD, 1, 9))
    first, again = saved.watch(model, call), saved.watch(model, call)
    assert first == again and not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
