"""What FlopCounterMode makes of single operators, public bug reports about it, and odd ways to run a model."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.flop_counter import FlopCounterMode

from costlib.domain import ManifestError
from costlib.fixtures import ODD, RUNNING, TRAIN_ODD
from costlib.observe import flops, models

ATEN = torch.ops.aten


def counted(call):
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def heads(batch, number, rows, width, device="meta", **more):
    return torch.zeros((batch, number, rows, width), device=device, **more)


def test_b14_a_linear_is_two_flops_per_multiply_accumulate():
    assert counted(lambda: torch.nn.Linear(1000, 10)(torch.zeros(1, 1000))) == 20_000


@pytest.mark.parametrize("device, right", [("cpu", 0), ("meta", 12_582_912)])
def test_b17_sdpa_is_not_seen_on_a_cpu(device, right):
    q = heads(1, 12, 64, 64, device)
    assert counted(lambda: scaled_dot_product_attention(q, q, q)) == right
    assert counted(lambda: q @ q.transpose(2, 3) @ q) == 12_582_912


def test_b18_sdpa_is_counted_once_although_it_calls_other_operators():
    q = heads(2, 5, 9, 4)
    assert counted(lambda: scaled_dot_product_attention(q, q, q)) == 12_960


def test_b20_grouped_heads_are_charged_per_query_head():
    q, kv = heads(1, 32, 4096, 128, dtype=torch.bfloat16), heads(1, 8, 4096, 128, dtype=torch.bfloat16)
    assert counted(lambda: scaled_dot_product_attention(q, kv, kv, enable_gqa=True)) == 274_877_906_944
    assert counted(lambda: ATEN._scaled_dot_product_flash_attention(q, kv, kv)) == 274_877_906_944


def test_b35_backward_is_twice_the_forward_unfused_and_two_and_a_half_times_fused():
    def both(program):
        q, k, v = (heads(64, 16, 1024, 64, dtype=torch.bfloat16, requires_grad=True) for _ in "qkv")
        program(q, k, v).sum().backward()

    forward = 274_877_906_944
    assert counted(lambda: both(scaled_dot_product_attention)) == 3 * forward
    assert counted(lambda: both(lambda *qkv: ATEN._scaled_dot_product_flash_attention(*qkv)[0])) == forward + forward * 5 // 2
    efficient = ATEN._scaled_dot_product_efficient_attention
    assert counted(lambda: both(lambda *qkv: efficient(*qkv, None, True)[0])) == forward + forward * 5 // 2


@pytest.mark.parametrize("causal", [False, True])
def test_a_causal_mask_takes_nothing_off(causal):
    q = heads(1, 2, 10, 4)
    assert counted(lambda: scaled_dot_product_attention(q, q, q, is_causal=causal)) == 4 * 2 * 10 * 10 * 4
    assert counted(lambda: ATEN._scaled_dot_product_flash_attention(q, q, q, is_causal=causal)) == 4 * 2 * 10 * 10 * 4


def test_what_is_no_product_counts_nothing():
    x = torch.zeros(7, 96)
    norm, table = torch.nn.LayerNorm(96), torch.nn.Embedding(1009, 96)
    assert counted(lambda: (norm(x), x.softmax(-1), torch.nn.functional.silu(x) * x, table(torch.zeros(7, dtype=torch.long)))) == 0


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_mask_or_none_makes_no_difference_on_a_cpu_that_computes(attention):
    """On the meta device the mask is given; a model that makes its own counts the same products."""
    model = models.build(ODD, "fp32", attention, "cpu")
    tokens = models.tokens(5, 56, "cpu")
    given = counted(lambda: model(tokens, attention_mask=models.mask(5, 56, dtype="fp32", device="cpu")))
    assert given == counted(lambda: model(tokens))
    assert given == sum(flops.count(ODD, TRAIN_ODD.replace(phase="prefill"), attention, "fp32", "cpu")["forward"][""].values())


def test_the_mask_lets_a_row_see_itself_and_what_came_before():
    seen = models.mask(2, 3, 5, dtype="fp32", device="cpu") == 0
    assert seen.shape == (2, 1, 3, 5)
    assert seen[0, 0].int().tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]


def test_replay_and_fused_are_refused_where_they_mean_nothing():
    with pytest.raises(ManifestError, match="ENUM: replay = 'full'"):
        flops.count(ODD, TRAIN_ODD, replay="full")
    with pytest.raises(ManifestError, match="ENUM: fused attention runs whole sequences"):
        flops.count(ODD, flops.CHUNK_ODD, "fused")


def test_a_batch_of_three_has_three_times_the_pairs():
    one = flops.count(RUNNING.replace(num_layers=1), flops.TRAIN_1000.replace(batch_size=1))
    three = flops.count(RUNNING.replace(num_layers=1), flops.TRAIN_1000)
    assert three["forward"][""]["bmm"] == 3 * one["forward"][""]["bmm"] == 3 * 4 * 1000**2 * 4096
