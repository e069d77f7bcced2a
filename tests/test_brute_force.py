"""The formulas against counting: loops that do the work, objects that hold the numbers."""

import itertools
import random
from math import prod

import pytest

from costlib import fixtures, napkin, params
from costlib.exercise import using
from costlib.hardware import CHIPS
from costlib.records import Experts, Latent, Tensor
from costlib.schema import state_entries, tensor_rows


@pytest.fixture(autouse=True)
def on_the_reference():
    with using("solutions"):
        yield


def counted_matmul(m, k, n):
    """Multiply two matrices number by number and count the operations."""
    operations = 0
    for _ in itertools.product(range(m), range(n)):
        accumulator = 0
        for p in range(k):
            accumulator += p * p
            operations += 2
    return operations


@pytest.mark.parametrize("m, k, n", [(2, 3, 5), (1, 1, 1), (7, 4, 1), (0, 3, 2), (3, 0, 2)])
def test_matmul_flops_is_what_a_loop_does(m, k, n):
    assert napkin.matmul_flops(m, k, n) == counted_matmul(m, k, n)


@pytest.mark.parametrize("m, k, n", [(2, 3, 5), (1024, 4096, 11008), (7, 11, 13)])
def test_backward_is_exactly_twice_forward(m, k, n):
    assert napkin.linear_backward(m, k, n).total == 2 * napkin.matmul_flops(m, k, n)


@pytest.mark.parametrize("tile", [1, 3, 4])
def test_padding_is_what_covering_with_tiles_issues(tile):
    for m, k, n in itertools.product(range(1, 9), repeat=3):
        covered = [tile * len(range(0, extent, tile)) for extent in (m, k, n)]
        assert napkin.padded_matmul_flops(m, k, n, tile) == 2 * prod(covered)
        assert napkin.padded_matmul_flops(m, k, n, tile, pad_m=False) == 2 * m * prod(covered[1:])


def test_a_training_step_is_what_its_products_cost_one_by_one():
    B, T, d, f, hq, hkv, dh, L, V = 2, 5, 6, 7, 4, 2, 3, 3, 11
    forward = {"mlp": 0, "attn_proj": 0, "attn_seq": 0, "head": counted_matmul(B * T, d, V)}
    for _ in range(L):
        forward["attn_proj"] += sum(
            counted_matmul(B * T, i, o) for i, o in ((d, hq * dh), (d, hkv * dh), (d, hkv * dh), (hq * dh, d))
        )
        forward["mlp"] += counted_matmul(B * T, d, f) * 2 + counted_matmul(B * T, f, d)
        for _ in range(B * hq):
            forward["attn_seq"] += counted_matmul(T, dh, T) + counted_matmul(T, T, dh)
    assert dict(napkin.training_flops_exact(B, T, d, f, hq, hkv, dh, L, vocab=V)) == {
        name: 3 * flops for name, flops in forward.items()
    }


def test_a_cache_is_what_decoding_leaves_behind():
    layers, heads, width, tokens, batch = 3, 2, 5, 7, 4
    cache = [
        bytes(2 * heads * width) for _ in range(batch) for _ in range(layers) for _ in range(tokens) for _ in "KV"
    ]
    assert napkin.kv_cache_bytes(layers, heads, width, tokens, batch) == sum(map(len, cache))


def test_as_many_requests_fit_as_can_be_put_in_one_by_one():
    for memory, weights, each, workspace in itertools.product((0, 10, 100), (0, 7, 50), (3, 10), (0, 4)):
        used, requests = weights + workspace, 0
        while used + each <= memory:
            used, requests = used + each, requests + 1
        assert napkin.max_concurrent_requests(memory, weights, each, workspace) == requests


def test_every_shard_of_zero_holds_its_scalars_whole():
    for n, devices, stage in itertools.product((0, 1, 18, 1128), (1, 7, 64), range(4)):
        one = napkin.training_memory(n, "adam", stage, devices)
        for row, size, sharded in (("weights", 2, 3), ("grads", 2, 2), ("optimizer", 12, 1)):
            assert one[row] % size == 0
            devices_hold = devices * one[row] // size
            assert (devices_hold - n if stage >= sharded else devices_hold - n * devices) in range(devices)


def test_the_split_is_the_largest_that_the_budget_pays():
    for flops in (119, 120, 121, 10**6, 315 * 10**21 + 1):
        n, d = napkin.chinchilla_split(flops)
        assert d == 20 * n and 6 * n * d <= flops < 6 * (n + 1) * 20 * (n + 1)


def test_energy_from_time_is_energy_from_work():
    chip = CHIPS["H100"]
    plan = napkin.budget_report(chip, 1000, 30)
    seconds = plan["flops"] / (1000 * chip.peak_flops * 0.4)
    assert plan["kwh"] == round(1000 * chip.watts * seconds / 3_600_000)


def random_manifest(rng):
    """A small model with parts switched on and off at random."""
    d, hkv, dh = rng.randint(2, 9), rng.randint(1, 3), rng.randint(1, 5)
    learned = rng.random() < 0.5
    moe = Experts(
        num_experts=rng.randint(2, 4),
        experts_per_token=rng.randint(1, 2),
        intermediate_size=rng.randint(1, 9),
        shared_experts=rng.randint(0, 2),
        first_dense_layers=rng.randint(0, 1),
    )
    experts = rng.choice([None, moe])
    arch = fixtures.TOY.replace(
        num_layers=rng.randint(2, 4),
        hidden_size=d,
        num_attention_heads=hkv * rng.randint(1, 4),
        num_key_value_heads=hkv,
        head_dim=dh,
        intermediate_size=rng.randint(1, 20),
        vocab_size=rng.randint(2, 30),
        tie_word_embeddings=rng.random() < 0.5,
        mlp=rng.choice(["gated", "two-matrix"]),
        norm=rng.choice(["rmsnorm", "layernorm"]),
        norms_per_block=rng.randint(0, 4),
        final_norm=rng.random() < 0.5,
        qk_norm=rng.choice(["none", "per-head", "packed"]),
        position="learned" if learned else "rope",
        max_positions=rng.randint(1, 9) if learned else 0,
        attention_bias=rng.choice(["none", "qkv", "all"]),
        mlp_bias=experts is None and rng.random() < 0.5,
        head_bias=rng.random() < 0.5,
        experts=experts,
        extra_trainable_sets=tuple(Tensor(name=f"x{i}", shape=(3, 1 + i)) for i in range(rng.randint(0, 2))),
    )
    if rng.random() < 0.7:
        return arch
    widths = {"kv_rank": 7, "rope_head_dim": dh, "value_head_dim": 5, "query_rank": 11}
    return arch.replace(
        num_key_value_heads=arch.num_attention_heads,
        qk_norm="none",
        attention_bias="none",
        latent=Latent(**{name: rng.randint(name != "query_rank", most) for name, most in widths.items()}),
    )


@pytest.mark.parametrize("seed", range(200))
def test_the_ledger_is_the_sum_over_stored_tensors(seed):
    arch = random_manifest(random.Random(seed))
    rows = tensor_rows(arch)
    assert params.ledger(arch).total == params.unique_scalars(rows)
    assert params.unique_scalars(rows) == sum(prod(t.shape) for t in rows if t.alias_of is None)
    seen = params.inventory(state_entries(rows))
    assert seen["unique"] == params.ledger(arch).total
    assert seen["named"] - seen["unique"] == arch.tie_word_embeddings * arch.vocab_size * arch.hidden_size
    assert len({t.name for t in rows}) == len(rows)


@pytest.mark.parametrize("seed", range(50))
def test_used_is_every_matrix_that_a_token_meets(seed):
    arch = random_manifest(random.Random(seed))
    met = 0
    for tensor in tensor_rows(arch):
        part = tensor.name.split(".")
        if len(tensor.shape) != 2 or "embed" in tensor.name or tensor.name.startswith("x"):
            continue
        if "experts" in part and int(part[part.index("experts") + 1]) >= arch.experts.experts_per_token:
            continue
        met += prod(tensor.shape)
    n = params.coordinates(arch)
    assert n["used"] == met
    assert n["used"] - n["kaplan"] == arch.vocab_size * arch.hidden_size


PLAIN = [fixtures.RUNNING, fixtures.TOY, fixtures.TOY_TIED, fixtures.ODD, fixtures.W_7B, fixtures.W_70B, *fixtures.TRAP]


@pytest.mark.parametrize("m", PLAIN, ids=lambda m: m.manifest_id)
def test_the_napkin_and_the_ledger_agree_where_both_apply(m):
    napkin_total = napkin.total_params(
        m.num_layers, m.hidden_size, m.intermediate_size, m.num_attention_heads, m.num_key_value_heads,
        m.head_dim, m.vocab_size, m.tie_word_embeddings, m.mlp == "gated",
    )
    assert napkin_total.total == params.ledger(m).total


def test_an_moe_on_the_napkin_is_the_ledger_without_vocabulary_and_norms():
    m = fixtures.W_MOE
    napkin_split = napkin.moe_parameter_split(60, 7168, 2048, 256, 8, 128, 128, 128, 1)
    assert napkin_split.total == params.ledger(m)["blocks"] - params.ledger(m)["blocks.norms"]
    assert napkin_split["active"] == params.coordinates(m)["kaplan"]
