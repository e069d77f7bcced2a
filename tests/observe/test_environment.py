"""The environment that observes is the locked one, and what it observes is what is recorded."""

import re
import sys
from importlib.metadata import distributions

import pytest

from costlib import observe
from costlib.exercise import ROOT


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def test_nothing_installed_floats():
    lines = [line.split("#")[0].strip() for line in (ROOT / "requirements-observe.txt").read_text().splitlines()]
    locked = {normal(name): version for name, _, version in (line.partition("==") for line in lines if line)}
    found = distributions(path=[path for path in sys.path if path.startswith(sys.prefix)])
    installed = {normal(each.metadata["Name"]): each.version.partition("+")[0] for each in found}
    ours = {name: version for name, version in installed.items() if not name.startswith(("nvidia-", "cuda-", "triton")) and name != "pip"}
    assert ours == locked  # a build of torch for GPUs brings packages of its own


def test_a_changed_bundle_is_said_line_by_line(tmp_path, monkeypatch):
    name = "flops_odd_decode_eager"
    recorded = (observe.FOLDER / f"{name}.json").read_text()
    monkeypatch.setattr(observe, "FOLDER", tmp_path)
    assert observe.compare(name) == "not recorded"
    observe.write(name)
    assert (tmp_path / f"{name}.json").read_text() == recorded and observe.compare(name) == ""
    (tmp_path / f"{name}.json").write_text(recorded.replace("4611840", "4611841"))
    assert "4611840" in observe.compare(name) and "4611841" in observe.compare(name)
    (tmp_path / "mine.json").write_text(recorded)
    assert observe.strangers() == ["mine"]


@pytest.mark.parametrize("words, status, said", [
    (("--check", "flops_odd_decode_eager"), 0, "1 observations compared with their bundles, 0 to look at"),
    (("--check", "flops_odd_decode"), 2, "no bundle flops_odd_decode; there are "),
])  # fmt: skip
def test_the_command(capsys, words, status, said):
    from costlib.observe import __main__ as command

    assert command.main(words) == status
    assert said in "".join(capsys.readouterr())
