"""python -m costlib estimate MANIFEST --observe: a plan against a model that is built for the answer."""

import json

import pytest

from costlib import report
from costlib.__main__ import main
from costlib.estimate import Plan, estimate
from costlib.fixtures import ODD, PREFILL_4K, RUNNING, TRAIN_ODD
from costlib.observe import flops


def command(capsys, *words):
    status = main(["estimate", *words, "--observe"])
    said = capsys.readouterr()
    return status, said.out, said.err


@pytest.mark.parametrize("name", ["running", "running-training", "toy", "toy-tied", "odd", "w-7b"])
def test_a_llama_closes_exactly(capsys, name):
    status, out, err = command(capsys, name, "--fail-on-mismatch")
    assert (status, err) == (0, "") and "observation: exact" in out


def test_the_headline_numbers_are_in_the_answer(capsys):
    _, out, _ = command(capsys, "running", "--json")
    counters = json.loads(out)["observation"]["counters"]
    assert {name: row["observed"] for name, row in counters.items()} == {
        "parameters": 8_030_261_248,
        "named parameters": 8_030_261_248,
        "weight payload": 16_060_522_496,
        "forward": 65_971_748_339_712,
    }


@pytest.mark.parametrize("name", ["odd-everything", "odd-experts", "classic-12x768"])
def test_what_is_no_llama_is_refused_in_one_sentence(capsys, name):
    status, out, err = command(capsys, name)
    assert (status, out) == (2, "") and err.startswith("costlib: UNDECLARED: ") and err.count("\n") == 1


@pytest.mark.parametrize("workload", [TRAIN_ODD, flops.PREFILL_ODD, flops.CHUNK_ODD, flops.DECODE_ODD])
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_every_phase_and_dtype(workload, dtype):
    plan = Plan(plan_id="odd", architecture=ODD, workload=workload, weight_dtype=dtype)
    found = report.observe_live(plan, estimate(plan))
    assert found["status"] == "exact" and ("backward" in found["counters"]) == (workload is TRAIN_ODD)


@pytest.mark.parametrize("area, arch, workload", [
    ("causal-legal", ODD, TRAIN_ODD),
    ("causal-legal", ODD, flops.CHUNK_ODD),
    ("kaplan", RUNNING, PREFILL_4K),
])  # fmt: skip
def test_another_area_is_explained(area, arch, workload):
    plan = Plan(plan_id="x", architecture=arch, workload=workload, attention_area=area)
    found = report.observe_live(plan, estimate(plan))
    assert found["status"] == "explained" and found["counters"]["forward"]["residual"] > 0
    assert report.observation_text(plan, found).startswith("observation: explained")
