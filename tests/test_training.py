"""The training ledger against gradients counted one by one, a replayed schedule, and reports from the field."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_forward import manifests, train

from costlib import forward, napkin, params, training
from costlib.domain import ManifestError
from costlib.exercise import using
from costlib.fixtures import ODD, ODD_EXPERTS, PREFILL_4K, RUNNING, TRAIN_4K, TRAIN_ODD, W_7B, W_MOE, classic_block
from costlib.policies import Region
from costlib.records import Experts
from labs import spec

LAB = spec.load("07")


@pytest.fixture(autouse=True, scope="module")
def on_the_reference():
    with using("solutions"):
        yield


def mistaken(exercise, name):
    """The named wrong model of an exercise."""
    return next(w.model for w in LAB[exercise].wrong if w.name == name)


def model_flops(arch, work, area="rectangular"):
    return training.totals(training.regions(arch, work, area), {})["model"]


# --- counting ---


@pytest.mark.parametrize("m, k, n", [(2, 3, 5), (1, 1, 1), (4, 7, 3)])
def test_two_gradients_are_what_the_chain_rule_adds_up(m, k, n):
    flops = dict.fromkeys(("forward", "dx", "dw"), 0)
    for i, p, j in product(range(m), range(k), range(n)):
        flops["forward"] += 2  # Y[i, j] += X[i, p] * W[p, j]
        flops["dx"] += 2  # dX[i, p] += dY[i, j] * W[p, j]
        flops["dw"] += 2  # dW[p, j] += X[i, p] * dY[i, j]
    assert dict(training.linear(m, k, n)) == flops
    for dx, dw in product((True, False), repeat=2):
        needed = {"forward": flops["forward"], "dx": dx * flops["dx"], "dw": dw * flops["dw"]}
        assert dict(training.linear(m, k, n, dx, dw)) == needed


REGION = st.builds(
    Region,
    name=st.sampled_from([f"{a}.{b}" for a in "abc" for b in "xy"] + ["head"]),
    forward=st.integers(0, 50),
    dx=st.integers(0, 50),
    dw=st.integers(0, 50),
)
REGIONS = st.lists(REGION, unique_by=lambda region: region.name, min_size=1).map(tuple)


@given(REGIONS, st.data())
def test_totals_are_a_schedule_run_step_by_step(regions, data):
    paths = sorted({path for r in regions for path in (r.name, r.name.partition(".")[0])})
    replay = data.draw(st.dictionaries(st.sampled_from(paths), st.integers(0, 3)))
    clock = {"forward": 0, "backward": 0, "recompute": 0}
    for region in regions:
        clock["forward"] += region.forward
    for region in reversed(regions):
        for path, times in replay.items():
            if (region.name + ".").startswith(path + "."):
                for _ in range(times):
                    clock["recompute"] += region.forward
        clock["backward"] += region.dx
        clock["backward"] += region.dw
    assert training.totals(regions, replay) == {
        **clock,
        "model": clock["forward"] + clock["backward"],
        "hardware": sum(clock.values()),
    }


def test_a_path_is_a_whole_component():
    regions = tuple(Region(name=f"block_{i}.core", forward=10**i, dx=0, dw=0) for i in (1, 10, 11))
    assert training.replayed(regions, {"block_1": 2}) == {"block_1.core": 2, "block_10.core": 0, "block_11.core": 0}


# --- properties ---


@given(manifests(), st.integers(1, 3), st.integers(1, 9), st.sampled_from(["rectangular", "causal-legal", "kaplan"]))
def test_regions_are_the_forward_ledger_cut_in_pieces(arch, batch, rows, area):
    work = train(batch, rows)
    regions = training.regions(arch, work, area)
    totals = training.totals(regions, {})
    assert totals["forward"] == forward.ledger(arch, work, area).total
    assert totals["backward"] == 2 * totals["forward"]
    assert len(regions) == 2 * arch.num_layers + 1
    assert regions[-1].forward == forward.ledger(arch, work, area)["head"]


@given(manifests(), st.integers(1, 3), st.integers(1, 9), st.sampled_from(["all", "final"]))
def test_6nd_closes_with_attention_beside_it(arch, batch, rows, logits):
    work = train(batch, rows, logits)
    closure = training.sixnd_closure(arch, work)
    assert closure.total == model_flops(arch, work)
    if logits == "all":
        assert closure["sixnd"] == napkin.training_flops(params.coordinates(arch)["used"], batch * rows)
        short = training.sixnd_shortfalls(arch, work)
        assert short["used"] == closure.share("attention")
        assert short["unique"] <= short["used"] <= short["kaplan"]


@given(manifests(), st.integers(1, 9))
def test_every_replay_lies_between_three_and_four_times_forward(arch, rows):
    regions = training.regions(arch, train(2, rows))
    forward_flops = sum(region.forward for region in regions)
    everything = training.totals(regions, {region.name: 1 for region in regions})["hardware"]
    blocks = training.totals(regions, {f"block_{i}": 1 for i in range(arch.num_layers)})["hardware"]
    cores = training.totals(regions, {f"block_{i}.core": 1 for i in range(arch.num_layers)})["hardware"]
    assert 3 * forward_flops < cores < blocks < everything == 4 * forward_flops
    assert everything - blocks == regions[-1].forward


@given(manifests(), st.integers(1, 9))
def test_kaplan_by_token_is_the_ledger_by_product(arch, rows):
    assert rows * training.kaplan_forward(arch, rows).total == forward.ledger(arch, train(1, rows), "kaplan")["blocks"]


SIZE = st.integers(1, 40)


@given(SIZE, SIZE, SIZE, SIZE, SIZE)
def test_megatron_is_its_equation_without_a_division(B, S, h, L, V):
    equation = 96 * B * S * L * h**2 * (1 + Fraction(S, 6 * h) + Fraction(V, 16 * L * h))
    assert training.megatron_iteration(B, S, h, L, V).total == equation
    slip = sum(mistaken("megatron_iteration", "a16-slip")(B, S, h, L, V).values())
    assert slip - equation == 2 * B * S * h * V


@pytest.mark.parametrize("layers, h, vocab, heads", [(12, 768, 50257, 12), (3, 64, 100, 4)])
def test_megatron_is_the_classic_model_with_its_blocks_replayed(layers, h, vocab, heads):
    arch = classic_block(layers, h, vocab, heads)
    regions = training.regions(arch, train(2, 56))
    step = training.totals(regions, {f"block_{i}": 1 for i in range(layers)})
    assert training.megatron_iteration(2, 56, h, layers, vocab).total == step["hardware"]


@given(SIZE, SIZE, SIZE, SIZE, SIZE, st.fractions(0, 1))
def test_palm_hardware_is_model_and_replay(N, L, H, Q, T, remat):
    replay = training.palm_hardware_flops(N, L, H, Q, T, remat) - training.palm_model_flops(N, L, H, Q, T)
    assert replay == remat * 2 * N + 4 * L * H * Q * T


def test_palm_is_this_ledger_on_weights_and_rectangles():
    for arch, rows in ((RUNNING, 4096), (ODD, 56), (ODD_EXPERTS, 56)):
        n = params.coordinates(arch)["used"]
        by_token = training.palm_model_flops(n, arch.num_layers, arch.num_attention_heads, arch.head_dim, rows)
        assert rows * by_token == model_flops(arch, train(1, rows))


def test_palm_540b_as_published():
    palm = training.PALM_540B
    assert training.palm_model_flops(**palm) == 3_277_734_806_784
    assert training.palm_hardware_flops(**palm) == 4_100_138_075_712
    assert training.palm_hardware_flops(**palm) / training.palm_model_flops(**palm) < Fraction(8, 6)


@given(REGIONS, st.integers(1, 3), st.integers(1, 10**6), st.fractions(Fraction(1, 100), 100))
def test_hfu_is_mfu_or_more(regions, times, peak, seconds):
    still, again = training.totals(regions, {}), training.totals(regions, {regions[0].name: times})
    assert training.hfu(still, peak, seconds) == training.mfu(still, peak, seconds)
    assert training.mfu(again, peak, seconds) == training.mfu(still, peak, seconds)
    assert training.hfu(again, peak, seconds) >= training.mfu(again, peak, seconds)


# --- refusals ---


def code(function, *args):
    with pytest.raises(ManifestError) as refusal:
        function(*args)
    return refusal.value.code


def test_what_is_refused():
    regions = training.regions(ODD, TRAIN_ODD)
    assert code(training.totals, regions, {"block_3": 1}) == "UNDECLARED"
    assert code(training.totals, regions, {"block": 1}) == "UNDECLARED"
    assert code(training.totals, regions, {"head": -1}) == "NEG"
    assert code(training.totals, regions, {"head": True}) == "TYPE"
    assert code(training.totals, (*regions, regions[0]), {}) == "INCONSISTENT"
    assert code(training.totals, list(regions), {}) == "TYPE"
    assert code(training.regions, RUNNING, PREFILL_4K) == "INCONSISTENT"
    assert code(training.sixnd_closure, RUNNING, PREFILL_4K) == "INCONSISTENT"
    assert code(training.sixnd_shortfalls, RUNNING, PREFILL_4K) == "INCONSISTENT"
    assert code(training.linear, 2, 3, 5, 1) == "TYPE"
    assert code(training.palm_hardware_flops, 1, 1, 1, 1, 1, Fraction(-1, 2)) == "RANGE"
    assert code(training.mfu, {"model": 1}, 1, 0) == "NONPOS"
    assert code(training.lora_step, 0, 1, 1) == "NONPOS"
    with pytest.raises(ManifestError, match="NEG"):
        Region(name="a", forward=-1, dx=0, dw=0)


# --- reports from the field ---


def test_b23_a_step_of_a_mixture_pays_for_active_experts():
    mixtral = RUNNING.replace(
        vocab_size=32000, experts=Experts(num_experts=8, experts_per_token=2, intermediate_size=14336)
    )
    work = train(1, 1024)
    assert model_flops(mixtral, work) == 79_976_586_018_816
    assert sum(mistaken("sixnd_closure", "all-experts")(mixtral, work).values()) == 287_784_283_668_480


@pytest.mark.parametrize("arch", [ODD_EXPERTS, W_MOE], ids=lambda arch: arch.manifest_id)
def test_b23_holds_for_every_mixture(arch):
    more = arch.replace(experts=arch.experts.replace(num_experts=2 * arch.experts.num_experts))
    router = 6 * TRAIN_ODD.batch_size * TRAIN_ODD.new_rows * arch.hidden_size * arch.experts.num_experts
    assert model_flops(more, TRAIN_ODD) - model_flops(arch, TRAIN_ODD) == arch.expert_layers * router


def test_b30_two_errors_that_cancel_on_one_model_and_not_on_another():
    def classic(arch):  # every MLP two matrices of 4h, every head its own K and V
        return arch.replace(
            mlp="two-matrix", intermediate_size=4 * arch.hidden_size, num_key_value_heads=arch.num_attention_heads
        )

    assert model_flops(W_7B, TRAIN_4K) == 188_763_812_659_200
    assert model_flops(classic(W_7B), TRAIN_4K) == 187_939_178_938_368
    assert model_flops(RUNNING, TRAIN_4K) == 210_822_764_691_456
    assert model_flops(classic(RUNNING), TRAIN_4K) == 197_628_625_158_144


def test_b37_the_lookup_is_no_second_head():
    arch = classic_block(30, 4096, 102400, 32)
    closure = training.sixnd_closure(arch, train(1, 1))
    assert closure["sixnd"] == 38_755_368_960
    assert closure["sixnd"] + closure["sixnd.head"] == 41_271_951_360


def test_b38_adapters_are_no_full_step():
    base, adapters = 70_553_706_496, 175_636_480
    step = training.lora_step(base, adapters, 1)
    # The thread measures against the base alone, and takes of the adapters their dW only.
    assert round(10**5 * Fraction(4 * base + step["dw"], 6 * base)) == 66_750
    assert round(10**5 * Fraction(step.total, 6 * (base + adapters))) == 66_749
    full = mistaken("lora_step", "full-step")(base, adapters, 1)
    assert sum(full.values()) == 6 * (base + adapters)


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**4))
def test_b38_holds_for_every_share_of_adapters(frozen, adapters, tokens):
    beside = training.linear(tokens, frozen, 1, need_dw=False).total + training.linear(tokens, adapters, 1).total
    assert training.lora_step(frozen, adapters, tokens).total == beside


def test_w06_selective_replay_is_no_multiple_of_n():
    regions = training.regions(RUNNING, TRAIN_4K)
    step = training.totals(regions, {f"block_{i}.core": 1 for i in range(32)})
    assert step["recompute"] == 8_796_093_022_208
    assert Fraction(step["recompute"], step["model"]) == Fraction(1024, 8181) / 3
