"""The command line says everything in one report, or what is wrong in one sentence with status 2."""

import json
import os
import subprocess
import sys

import pytest

from costlib import fixtures
from costlib.exercise import ROOT


def run(*words, module="costlib", **environment):
    env = os.environ | {"LAB_MODULE": "solutions"} | environment
    return subprocess.run([sys.executable, "-m", module, *words], env=env, cwd=ROOT, capture_output=True, text=True)


BUDGET = ("budget", "--chip", "H100", "--chips", "1000", "--days", "30")


def test_the_whole_report():
    done = run(*BUDGET)
    assert done.returncode == 0 and done.stderr == ""
    for number in (
        "C = 1.026e24 FLOPs",
        "N = 92.5B parameters, D = 1.85T tokens",
        "1,479,770,793,056 B = 1,479.77 GB",
        "80,000,000,000,000 B",
        "184,971,349,132 B = 184.97 GB",
        "3 H100 to hold them",
        "504.0 MWh, $60,480",
        "604.8 MWh, $72,576",
        "$1,800,000 at $2.50 per chip-hour, 29.8 or 24.8 times",
        "$1,753.65 per 1e21 FLOPs",
        "not checked  energy    no limit given (--most-kwh)",
    ):
        assert number in done.stdout, number


def test_options_move_what_they_should_and_checks_can_fail():
    text = run(*BUDGET, "--mfu", "0.5", "--pue", "1.1", "--unique-tokens", "1e12", "--most-kwh", "100000").stdout
    assert "C = 1.283e24 FLOPs" in text and "554.4 MWh" in text
    assert "fail         data" in text and "fail         energy" in text


def test_an_unverified_power_figure_is_called_so():
    assert "UNVERIFIED" in run("budget", "--chip", "TPU v5e", "--chips", "8", "--days", "1").stdout
    assert "UNVERIFIED" not in run(*BUDGET).stdout


def test_the_parameter_ledger_of_a_fixture_and_of_a_file(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text(fixtures.RUNNING.to_json())
    by_name, by_file = run("params", "running"), run("params", str(file))
    assert by_name.stdout == by_file.stdout and "8,030,261,248" in by_file.stdout and "291 tensor names" in by_file.stdout


def bad_manifest(text):
    return lambda folder: (folder / "bad.json").write_text(text) and ("params", str(folder / "bad.json"))


@pytest.mark.parametrize(
    "words, said",
    [
        (("budget", "--chip", "H200", "--chips", "1", "--days", "1"), "chip = 'H200'; allowed: H100, A100-80"),
        (("budget", "--chip", "H100", "--chips", "0", "--days", "1"), "n_chips = 0; allowed: 1 or more"),
        (("budget", "--chip", "H100", "--chips", "1.5", "--days", "1"), "n_chips = Fraction(3, 2)"),
        (("budget", "--chip", "H100", "--chips", "1", "--days", "-3"), "days = -3; allowed: 1 or more"),
        ((*BUDGET, "--mfu", "1.4"), "mfu = 7/5; allowed: more than 0, at most 1"),
        ((*BUDGET, "--mfu", "forty"), "'forty' is no number"),
        ((*BUDGET, "--mfu", "1/0"), "'1/0' is no number"),
        ((*BUDGET, "--mfu", "nan"), "'nan' is no number"),
        ((*BUDGET, "--pric", "1"), "unrecognized arguments: --pric"),
        (("params", "nope"), "none of that name (tiny-tied, running"),
        ((), "the following arguments are required: command"),
        (bad_manifest("{"), "JSON: line 1"),
        (bad_manifest('{"layers": 3}'), "no field 'layers'"),
        (bad_manifest(json.dumps(json.loads(fixtures.TOY.to_json()) | {"num_key_value_heads": 3})), "DIVIS"),
        (bad_manifest(json.dumps(json.loads(fixtures.TOY.to_json()) | {"hidden_size": 8.0})), "hidden_size = 8.0"),
    ],
)
def test_bad_input_is_one_sentence_and_status_two(words, said, tmp_path):
    done = run(*(words(tmp_path) if callable(words) else words))
    assert done.returncode == 2 and said in done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""


def test_a_file_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "x.json").write_bytes(b"\xff\xfe\x00")
    done = run("params", str(tmp_path / "x.json"))
    assert done.returncode == 2 and "it is not UTF-8 text" in done.stderr


@pytest.mark.parametrize("module", ["costlib", "labs"])
def test_a_misspelt_lab_module_is_refused(module):
    words = ("params", "toy") if module == "costlib" else ("progress",)
    done = run(*words, module=module, LAB_MODULE="solution")
    assert done.returncode == 2 and "allowed: costlib, solutions, or not set" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words, said",
    [
        (("check", "77"), "LAB = '77'; the labs are 01"),
        (("check", "01", "matmul"), "EX = 'matmul'; the exercises of lab 01 are matmul_flops"),
        (("hint", "01", "matmul_flops", "9"), "N = 9; matmul_flops has hints 1 to 3"),
        (("hint", "01", "matmul_flops", "x"), "invalid int value: 'x'"),
        (("hint", "one", "matmul_flops"), "LAB = 'one'"),
    ],
)
def test_the_labs_command_refuses_in_a_sentence(words, said):
    done = run(*words, module="labs")
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
