"""Transfers against programs that move values one by one, and the public reports about traffic."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, strategies as st

from costlib import napkin, traffic
from costlib.domain import ManifestError
from costlib.exercise import using
from costlib.fixtures import DECODE_32K, ODD, PREFILL_4K, RUNNING, TOY, TRAIN_ODD
from costlib.hardware import CHIPS, chip
from costlib.policies import HBM, Transfer
from costlib.records import Workload
from labs import spec

WIDTH = {"bf16": 2, "fp32": 4, "fp16": 2, "fp8": 1, "int8": 1}
sizes = st.integers(1, 300)


@pytest.fixture(autouse=True)
def on_the_reference():
    with using("solutions"):
        yield


def calls(batch, new, visible, phase="prefill-chunk"):
    return Workload(
        workload_id="any", phase=phase, batch_size=batch, new_rows=new, visible_rows=visible, logits="final"
    )


class Memory:
    """The far side of the boundary: it counts what is read and written, value by value."""

    def __init__(self):
        self.moved = {}

    def read(self, name, address):
        self.moved[f"{name}.read"] = self.moved.get(f"{name}.read", 0) + 2
        return address

    def write(self, name, address):
        self.moved[f"{name}.write"] = self.moved.get(f"{name}.write", 0) + 2


@pytest.mark.parametrize("batch, new, visible", [(1, 4, 4), (2, 3, 5), (3, 1, 4)])
def test_three_programs_move_what_the_eight_rows_say(batch, new, visible):
    memory, group = Memory(), TOY.num_attention_heads // TOY.num_key_value_heads
    for b, kv_head in product(range(batch), range(TOY.num_key_value_heads)):  # scores, K shared in the group
        keys = [memory.read("K", (b, kv_head, j, c)) for j in range(visible) for c in range(TOY.head_dim)]
        for _ in range(group):
            queries = [memory.read("Q", (b, i, c)) for i in range(new) for c in range(TOY.head_dim)]
            for _ in product(range(len(queries) // TOY.head_dim), range(len(keys) // TOY.head_dim)):
                memory.write("S", None)
    for _ in product(range(batch), range(TOY.num_attention_heads), range(new), range(visible)):  # softmax
        memory.read("S", None)
        memory.write("P", None)
    for _ in product(range(batch), range(TOY.num_key_value_heads)):  # values
        for _ in product(range(visible), range(TOY.head_dim)):
            memory.read("V", None)
        for _ in product(range(group), range(new)):
            for _ in range(visible):
                memory.read("P", None)
            for _ in range(TOY.head_dim):
                memory.write("O", None)
    rows = traffic.materialized_attention(TOY, calls(batch, new, visible))
    assert dict(traffic.payload(rows)) == memory.moved


def test_the_document_s_toy_and_its_running_model():
    toy = traffic.payload(traffic.materialized_attention(TOY, calls(1, 4, 4, "prefill")))
    assert [toy.total, (TOY.num_layers * toy).total] == [704, 1_408]
    layer = traffic.payload(traffic.materialized_attention(RUNNING, PREFILL_4K))
    assert [layer.total, (32 * layer).total] == [4_378_853_376, 140_123_308_032]


@pytest.mark.parametrize("block", [1, 2, 3, 7])
def test_an_online_softmax_streams_keys_once_for_every_block_of_queries(block):
    batch, new, visible = 2, 7, 9
    reads = {"K": 0, "V": 0}
    for _ in product(range(batch), range(ODD.num_key_value_heads), range(0, new, block)):
        for _ in product(range(visible), range(ODD.head_dim)):
            reads["K"] += 2
            reads["V"] += 2
    passes = len(range(0, new, block))
    moved = traffic.payload(traffic.online_attention(ODD, calls(batch, new, visible), passes=passes, statistics=1))
    assert {name: moved[name] for name in "KV"} == reads
    assert moved["statistics"] == sum(4 for _ in range(batch * new * ODD.num_attention_heads))


@given(st.integers(1, 4), st.integers(1, 40), st.integers(0, 40), st.integers(1, 5))
def test_one_online_pass_is_the_materialized_program_without_scores(batch, new, past, passes):
    workload = calls(batch, new, new + past)
    materialized = traffic.payload(traffic.materialized_attention(ODD, workload))
    once = traffic.payload(traffic.online_attention(ODD, workload))
    again = traffic.payload(traffic.online_attention(ODD, workload, passes=passes))
    assert once.total == materialized.total - materialized["S"] - materialized["P"]
    assert again.total - once.total == (passes - 1) * (once["K"] + once["V"])


def test_a_narrower_cache_hardly_moves_a_program_of_scores():
    whole = traffic.payload(traffic.materialized_attention(RUNNING, PREFILL_4K))
    half = traffic.payload(traffic.materialized_attention(RUNNING, PREFILL_4K, "bf16", "fp8"))
    assert 32 * (whole.total - half.total) == 2**28  # M 0x0CD: a quarter of a GiB of 130.5
    assert [whole.total - whole["K"], whole["K"]] == [half.total - half["K"] + half["V"], 2 * half["K"]]


@given(st.integers(1, 4), st.integers(1, 40), st.integers(0, 40))
def test_grouping_narrows_keys_and_leaves_scores_alone(batch, new, past):
    workload = calls(batch, new, new + past)
    narrow, middle, wide = (
        traffic.payload(traffic.materialized_attention(ODD.replace(num_key_value_heads=heads), workload))
        for heads in (1, 2, 6)
    )
    assert narrow["S"] == middle["S"] == wide["S"] and narrow["Q"] == middle["Q"] == wide["Q"]
    assert [middle["K"], wide["K"]] == [2 * narrow["K"], 6 * narrow["K"]]


@given(sizes, sizes, sizes, st.sampled_from(list(WIDTH)), st.sampled_from(list(WIDTH)), st.sampled_from(list(WIDTH)))
def test_a_product_moves_each_operand_once(m, k, n, x, w, y):
    moved = traffic.payload(traffic.isolated_gemm(m, k, n, x, w, y, "any"))
    assert dict(moved) == {"X.read": WIDTH[x] * m * k, "W.read": WIDTH[w] * k * n, "Y.write": WIDTH[y] * m * n}


@given(sizes, sizes, sizes)
def test_intensity_is_below_each_of_its_three_limits(m, k, n):
    one = traffic.row_amortization(m, k, n, "bf16")
    assert one["intensity"] < min(m, k, n) and one["limit"] == m
    assert 1 / one["intensity"] == Fraction(1, m) + Fraction(1, n) + Fraction(1, k)
    assert one["weight_bytes_per_row"] * m == 2 * k * n


@given(st.integers(0, 10**6), st.sampled_from(sorted(CHIPS)))
def test_the_roofline_bends_at_the_ridge(milli, name):
    one, at = chip(name), Fraction(milli, 1000)
    got = traffic.attainable(one, at)
    assert got <= one.peak_flops and got <= one.bytes_per_second * at
    assert (got == one.peak_flops) == (at >= traffic.ridge(one))
    assert type(got) is Fraction


def test_the_balance_point_that_was_cut_off_to_295():
    assert traffic.ridge(chip("H100")) == Fraction(19_800, 67)
    assert round(traffic.ridge(chip("H100"))) == 296


def test_b76_a_fused_kernel_does_not_load_keys_for_every_query_head():
    step = calls(1, 1, 4096, "decode")
    keys = 32 * traffic.payload(traffic.online_attention(RUNNING, step))
    assert keys["K"] + keys["V"] == 536_870_912
    model = next(w for w in spec.load("09")["online_attention"].wrong if w.name == "mha-for-gqa").model
    wrong = 32 * traffic.payload(model(RUNNING, step))
    assert wrong["K"] + wrong["V"] == 2_147_483_648


@pytest.mark.parametrize("arch, workload", [(RUNNING, PREFILL_4K), (ODD, TRAIN_ODD), (RUNNING, DECODE_32K)])
def test_b76_in_general_the_mistake_is_the_group_size(arch, workload):
    model = next(w for w in spec.load("09")["online_attention"].wrong if w.name == "mha-for-gqa").model
    right, wrong = (traffic.payload(f(arch, workload)) for f in (traffic.online_attention, model))
    group = arch.num_attention_heads // arch.num_key_value_heads
    assert wrong["K"] == group * right["K"] and wrong["Q"] == right["Q"]


def test_rows_of_two_boundaries_have_no_sum_and_no_common_intensity():
    near = Transfer(name="W", elements=8, dtype="bf16", direction="read", phase="any", boundary="L2 <-> SM")
    far = near.replace(boundary=HBM, elements=4)
    with pytest.raises(ManifestError, match="2 boundaries") as refusal:
        traffic.payload((near, far))
    assert refusal.value.code == "INCONSISTENT"
    assert [traffic.intensity(16, (near, far), where) for where in (HBM, "L2 <-> SM")] == [2, 1]
    with pytest.raises(ManifestError, match="host") as refusal:
        traffic.intensity(16, (near, far), "host <-> device")
    assert refusal.value.code == "MISSING"


def test_an_assumption_is_prose_and_does_not_make_another_row():
    row = Transfer(name="W", elements=8, dtype="bf16", direction="read", phase="any")
    assert row == row.replace(assumption="read once for an isolated product")
    assert row != row.replace(multiplicity=2) != row.replace(boundary="L2 <-> SM")


@pytest.mark.parametrize(
    "change, code",
    [
        ({"elements": -1}, "NEG"),
        ({"dtype": "bf17"}, "ENUM"),
        ({"direction": "both"}, "ENUM"),
        ({"multiplicity": 0.5}, "TYPE"),
    ],
)
def test_a_transfer_refuses_what_is_no_transfer(change, code):
    with pytest.raises(ManifestError) as refusal:
        Transfer(**{"name": "W", "elements": 8, "dtype": "bf16", "direction": "read", "phase": "any"} | change)
    assert refusal.value.code == code


def test_bytes_and_flops_do_not_add():
    layer = traffic.payload(traffic.materialized_attention(RUNNING, PREFILL_4K))
    with pytest.raises(TypeError, match="different units"):
        layer + napkin.linear_backward(1, 2, 3)
