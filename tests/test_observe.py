"""The observers' ground where there is no torch: what is recorded, how it is written, what is said."""

import re
import subprocess
import sys

import pytest

from costlib import faults, observe
from costlib.exercise import ROOT

LOCK = (ROOT / "requirements-observe.txt").read_text()
VERSIONS = ", ".join(f"{name} {re.search(rf'^{name}==([0-9.]+)', LOCK, re.M)[1]}" for name in ("torch", "transformers"))


def python(*words):
    return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True)


def test_every_recorded_bundle_has_an_observer_and_every_observer_a_bundle():
    recorded = {path.stem for path in observe.FOLDER.glob("*.json")}
    assert observe.bundles().keys() == recorded - {observe.SYNTHETIC} and observe.strangers() == []


@pytest.mark.parametrize("name", observe.bundles())
def test_a_bundle_says_who_saw_what_on_what_and_is_written_as_it_is_read(name):
    seen = observe.read(name)
    assert re.match(r"costlib\.observe\.\w+\.\w+$", seen.producer) and seen.scope
    if seen.evidence_class == "locally_measured":
        assert (seen.raw_artifact, seen.framework) == (f"{name}.json", VERSIONS)
        assert seen.hardware in observe.DEVICES.values()
    assert observe.as_text(seen) == (observe.FOLDER / f"{name}.json").read_text(encoding="utf-8")


def test_a_written_observation_is_read_back_the_same():
    tiny = faults.tiny()
    assert type(tiny).from_json(observe.as_text(tiny)) == tiny
    assert observe.as_text(tiny).endswith("}\n") and observe.as_text(tiny).isascii()


def test_importing_the_observers_needs_no_torch():
    code = "import sys; from costlib import observe; observe.bundles(); print({'torch', 'transformers', 'numpy'} & set(sys.modules))"
    assert python("-c", code).stdout == "set()\n"


def test_observing_without_torch_is_answered_by_one_sentence_and_status_2():
    for words in (("costlib.observe",), ("costlib.observe", "--check", "parameters_running"), ("costlib", "estimate", "running", "--observe")):
        done = python("-m", *words)
        assert done.returncode == 2 and done.stdout == ""
        said = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
        assert len(said) == 1 and said[0].startswith(f"{words[0]}: observing needs torch and transformers, and torch is not")
        assert "make observe installs both" in said[0]


def test_a_plan_is_compared_with_a_bundle_or_a_model_and_not_with_both():
    done = python("-m", "costlib", "estimate", "running", "--observe", "--observation", "tiny-tied")
    assert done.returncode == 2 and "not allowed with" in done.stderr
