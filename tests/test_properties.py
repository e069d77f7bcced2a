"""What must hold for every model, whatever its shape: drawn manifests and workloads, mostly with S != d."""

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from costlib import fixtures, forward, napkin, ownership, params, phases, training
from costlib.estimate import Plan, estimate
from costlib.exercise import using
from costlib.records import Workload
from strategies import manifests, workloads

sizes = st.integers(1, 40)


@pytest.fixture(autouse=True, scope="module")
def on_the_reference():
    with using("solutions"):
        yield


@given(manifests())
def test_parts_make_totals(arch):
    ledger = params.ledger(arch)
    assert ledger.total == sum(ledger.values()) == ledger["blocks"] + sum(v for k, v in ledger.items() if "blocks" not in k)


@given(manifests(tie_word_embeddings=False))
def test_tying_takes_one_table_and_no_work(arch):
    tied = arch.replace(tie_word_embeddings=True)
    assert params.ledger(arch).total - params.ledger(tied).total == arch.vocab_size * arch.hidden_size
    assert params.coordinates(arch)["used"] == params.coordinates(tied)["used"]


@given(manifests(num_key_value_heads=2))
def test_grouped_queries_lie_between_one_head_and_all(arch):
    assume(arch.num_attention_heads > 2)
    counts = [
        params.attention_weights(arch.replace(num_key_value_heads=heads)) for heads in (1, 2, arch.num_attention_heads)
    ]
    assert counts == sorted(counts) and counts[0] < counts[1] < counts[2]


@given(sizes, sizes, sizes)
def test_backward_is_twice_forward_where_both_gradients_are_needed(m, k, n):
    assert napkin.linear_backward(m, k, n).total == 2 * napkin.matmul_flops(m, k, n)


@given(manifests(), workloads(phase="training"))
def test_a_training_step_is_three_forward_passes_without_replay(arch, work):
    totals = training.totals(training.regions(arch, work), {})
    assert totals["backward"] == 2 * totals["forward"] == 2 * forward.ledger(arch, work).total
    assert totals["model"] == totals["hardware"] == 3 * totals["forward"]


@given(st.integers(0, 10**6), st.integers(1, 70), st.integers(0, 3))
def test_zero_shards_hold_the_state_and_less_than_a_scalar_a_rank_more(count, degree, stage):
    one = ownership.rank_state(fixtures.A16, count, stage, degree)
    whole = ownership.rank_state(fixtures.A16, count, 0, 1)
    for role in whole:
        assert one[role] * degree >= whole[role]
        if one[role] < whole[role]:
            assert one[role] * degree - whole[role] < 4 * degree


@given(manifests(), workloads())
def test_what_is_linear_in_the_batch_doubles_with_it(arch, work):
    twice = work.replace(batch_size=2 * work.batch_size)
    for count in (
        lambda w: forward.ledger(arch, w).total,
        lambda w: phases.cache_bytes(arch, w.batch_size, w.visible_rows),
    ):
        assert count(twice) == 2 * count(work)


@given(manifests(experts=None), st.integers(2, 40))
def test_twice_the_rows_cost_more_than_twice(arch, rows):
    def cost(n):
        return forward.ledger(
            arch, Workload(workload_id="w", phase="training", batch_size=1, new_rows=n, visible_rows=n, logits="all")
        ).total

    assert cost(2 * rows) > 2 * cost(rows)


@given(sizes, st.integers(1, 4), sizes, sizes, sizes)
def test_the_context_cancels_from_the_cache_intensity(hkv, group, sk, dh, batch):
    one, other = (phases.rectangular_attention(batch, group * hkv, hkv, 1, s, dh, "bf16")["intensity"] for s in (sk, sk + 7))
    assert one == other == group


@given(st.integers(1, 5000))
def test_the_causal_share_is_not_quite_a_half(S):
    legal, whole = (forward.area(S, S, convention) for convention in ("causal-legal", "rectangular"))
    assert Fraction(legal, whole) == Fraction(S + 1, 2 * S)


@given(manifests(), workloads())
def test_an_estimate_leaves_its_plan_as_it_was(arch, work):
    plan = Plan(plan_id="p", architecture=arch, workload=work, attention_schedule="online")
    text = plan.to_json()
    estimate(plan)
    assert plan.to_json() == text
