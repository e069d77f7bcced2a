"""A class at once: results on disk, interrupted and resumed, and a grader that knows when it is broken."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from test_marking import SCHEMA, backend, course, reference  # noqa: F401

from costlib.domain import ManifestError
from costlib.exercise import ROOT
from labs import __main__ as command
from labs import batch, holes, marking, sandbox, spec

LAB = spec.load("01")
pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory, reference):  # noqa: F811
    """Twelve ordinary submissions and four that do harm."""
    folder = tmp_path_factory.mktemp("class")
    for i in range(12):
        text = reference if i % 3 else reference.replace("return 2 * batch * m * k * n", "return batch * m * k * n")
        (folder / f"learner{i:02}.py").write_text(text)
    (folder / "exits.py").write_text("import os; os._exit(0)\n")
    (folder / "empty.py").write_text(holes.empty((ROOT / "costlib/napkin.py").read_text()))
    (folder / "broken.zip").write_bytes(b"PK\x03\x04 and no more")
    (folder / "floods.py").write_text("while True: print('x' * 10**6)\n" + reference)
    return folder


def grade(folder, out, *options):
    return subprocess.run(
        [sys.executable, "-m", "labs", "grade", *sorted(map(str, folder.iterdir())), "--lab", "1", "--out", str(out), *options],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def whole(handed_in, tmp_path_factory):
    """(what grade printed, the results it wrote)."""
    out = tmp_path_factory.mktemp("results")
    done = grade(handed_in, out)
    assert done.returncode == 0, done.stderr
    return done.stdout, results(out)


def results(out):
    return {path.stem.removeprefix("lab01-"): path.read_bytes() for path in sorted(out.glob("*.json"))}


def test_a_class_gets_its_marks(whole):
    said, texts = whole
    assert re.search(r"Lab 01: 15 of 16 submissions marked in .* \(bwrap\)\.\n  broken[\w-]*: not-gradable: ", said)
    marks = {name: json.loads(text) for name, text in texts.items()}
    for result in marks.values():
        jsonschema.validate(result, SCHEMA)
    scores = [marks[f"learner{i:02}"]["score"] for i in range(12)]
    assert [score == "39" for score in scores] == [i % 3 != 0 for i in range(12)]
    assert all(marks[f"learner{i:02}"]["functions"][0]["mistake"] == "mac" for i in range(0, 12, 3))
    assert [marks[name]["score"] for name in ("exits", "empty", "floods")] == ["0", "0", "0"]


def test_what_is_marked_is_kept_and_what_changed_is_marked_again(tmp_path, reference, course, backend, monkeypatch):  # noqa: F811
    monkeypatch.setattr(batch, "try_itself", lambda *_: None)
    submission = batch.own("ada", {"napkin.py": reference})

    def run(s, **change):
        options = {"secret": b"x", "cases": {}, **change}
        return [r["learner"] for r in batch.run(LAB, [s], tmp_path, "bwrap", options["secret"], options["cases"], 1, lambda *_: None)]

    assert run(submission) == ["ada"] and run(submission) == []
    assert run(submission, secret=b"y") == ["ada"]
    assert run(batch.own("ada", {"napkin.py": reference + "\n"}), secret=b"y") == ["ada"]
    (tmp_path / "lab01-ada.json").write_text("{")
    assert run(submission, secret=b"y") == ["ada"]
    wrong, right = ({"kv_cache_bytes": [spec.given(1, 1, 1, 1, 1).gives(answer)]} for answer in (5, 4))
    assert run(submission, secret=b"y", cases=wrong) == ["ada"] and run(submission, secret=b"y", cases=right) == ["ada"]
    monkeypatch.setattr(marking, "version", lambda lab: "0" * 12)
    assert run(submission, secret=b"y", cases=right) == ["ada"]
    monkeypatch.setattr(batch, "try_itself", lambda *_: pytest.fail("nothing of it runs"))
    assert run(replace(submission, files={}, sha256="", reason="It is empty.")) == ["ada"]


WITHOUT_TRIAL = "import sys; from labs import __main__ as command, batch; batch.try_itself = lambda *_: None; sys.exit(command.main(sys.argv[1:]))"


@pytest.fixture(scope="module")
def seconds(handed_in, tmp_path_factory):
    """How long the batch takes here when it does not try itself first."""
    began = time.monotonic()
    assert start(handed_in, tmp_path_factory.mktemp("timed")).wait() == 0
    return time.monotonic() - began


def start(folder, out):
    return subprocess.Popen(
        [sys.executable, "-c", WITHOUT_TRIAL, "grade", *sorted(map(str, folder.iterdir())), "--lab", "1", "--out", str(out)],
        cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        env=os.environ | {"TMPDIR": str(out.parent)},  # where what a killed one leaves is cleared away
    )  # fmt: skip


def below(pid):
    """A process and all that descend from it."""
    parents = {}
    for line in subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout.splitlines():
        child, parent = map(int, line.split())
        parents.setdefault(parent, []).append(child)
    found = [pid]
    for each in found:
        found += parents.get(each, [])
    return found


def alive(pids):
    return [pid for pid in pids if Path(f"/proc/{pid}/exe").exists()]


@pytest.mark.parametrize("moment", range(10))
def test_a_batch_that_is_killed_leaves_whole_results_and_comes_to_the_same_bytes(handed_in, whole, seconds, tmp_path, moment):
    """Once in each tenth of its time, at random."""
    started = start(handed_in, tmp_path)
    time.sleep(seconds * (moment + random.Random(moment).random()) / 10)
    family = below(started.pid)
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    for _ in range(100):
        if not alive(family):
            break
        time.sleep(0.05)
    assert not alive(family), "a sandbox outlives the grader"
    for text in results(tmp_path).values():
        jsonschema.validate(json.loads(text), SCHEMA)
    assert start(handed_in, tmp_path).wait() == 0
    assert results(tmp_path) == whole[1] and not [path for path in tmp_path.iterdir() if path.suffix != ".json"]


ONE = batch._one


def killed_by_eve(submission, *rest):
    if submission.learner == "eve":
        os.kill(os.getpid(), signal.SIGKILL)
    return ONE(submission, *rest)


def test_whom_the_system_ends_the_grader_over_has_no_mark_and_all_others_theirs(tmp_path, reference, course, backend, monkeypatch):  # noqa: F811
    monkeypatch.setattr(batch, "try_itself", lambda *_: None)
    monkeypatch.setattr(batch, "_one", killed_by_eve)
    class_ = [batch.own(who, {"napkin.py": reference}) for who in ("ada", "eve", "bob", "cleo")]
    batch.run(LAB, class_, tmp_path, "bwrap", b"x", {}, 2, lambda *_: None)
    marks = {name: json.loads(text) for name, text in results(tmp_path).items()}
    assert {name: mark["score"] for name, mark in marks.items()} == {"ada": "39", "bob": "39", "cleo": "39", "eve": "0"}
    assert marks["eve"]["status"] == "grader-broken" and "out of memory?" in marks["eve"]["reason"]


def test_a_single_submission_can_be_told_whose_it_is(handed_in, tmp_path, capsys):
    one, two = str(handed_in / "empty.py"), str(handed_in / "learner00.py")
    assert command.main(["grade", one, two, "--lab", "1", "--out", str(tmp_path), "--learner", "ada"]) == 2
    assert "these are 2" in capsys.readouterr().err
    assert command.main(["grade", one, "--lab", "1", "--out", str(tmp_path), "--learner", "ada"]) == 0
    assert json.loads((tmp_path / "lab01-ada.json").read_text())["learner"] == "ada"


def test_what_a_learner_wrote_commands_no_log(tmp_path, capsys, handed_in):
    (tmp_path / "ada.py").write_text("x = (\n::add-mask::0 points\n")
    assert command.main(["grade", str(tmp_path / "ada.py"), "--lab", "1", "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "not-gradable" in said and "::" not in said


# The grader itself


def test_a_grader_that_works_says_nothing(course, backend):  # noqa: F811
    batch.try_itself(LAB, "bwrap", course)


@pytest.mark.parametrize("fault, said", [
    ("reference", "the reference gets"), ("starter", "the untouched starter gets"), ("reach", "a learner's file can reach the answers")])
def test_a_broken_grader_marks_nothing(course, backend, monkeypatch, fault, said):  # noqa: F811
    """T49."""
    marked = marking.mark

    def changed(submission, *rest):
        result = marked(submission, *rest)
        if fault == "reference" and submission.name == "reference":
            result["score"] = "38"
            result["functions"][0] |= {"status": "fail", "hint": "why"}
        if fault == "starter" and submission.name == "starter":
            result["score"] = "1"
        if fault == "reach" and submission.name == "searching":
            result["functions"][0]["status"] = "error"
        return result

    monkeypatch.setattr(marking, "mark", changed)
    with pytest.raises(batch.Broken, match=said):
        batch.try_itself(LAB, "bwrap", course)


def test_without_a_sandbox_nothing_runs_and_the_text_says_what_to_install(monkeypatch, handed_in, tmp_path, capsys):
    """T48."""
    monkeypatch.setattr(sandbox, "starts", lambda backend: False)
    status = command.main(["grade", str(handed_in / "empty.py"), "--lab", "1", "--out", str(tmp_path / "out")])
    assert status == 2 and "apt-get install bubblewrap" in capsys.readouterr().err and not (tmp_path / "out").exists()
    assert sandbox.choose(trusted=True) == "none"


def test_the_results_can_be_exported(handed_in, tmp_path, capsys):
    assert command.main(["grade", str(handed_in / "learner00.py"), str(handed_in / "learner01.py"), "--lab", "1", "--out", str(tmp_path / "r")]) == 0
    assert command.main(["export", str(tmp_path / "r"), "--to", "csv", "--out", str(tmp_path / "marks.csv")]) == 0
    assert command.main(["export", str(tmp_path / "r"), "--to", "report", "--out", str(tmp_path / "report.html")]) == 0
    assert "learner00,01," in (tmp_path / "marks.csv").read_text().replace('"', "")
    assert "MACs" in (tmp_path / "report.html").read_text()
    assert "without a secret" in capsys.readouterr().out


# The instructor's own cases


def test_own_cases_are_read_and_marked(course, backend, reference, tmp_path):  # noqa: F811
    (tmp_path / "overlay_01.py").write_text("from labs.spec import given\nCASES = {'kv_cache_bytes': [given(1, 1, 1, 1, 1).gives(4)]}\n")
    cases = batch.overlay(tmp_path, ["01", "02"])
    result = marking.mark(batch.own("ada", {"napkin.py": reference}), LAB, "bwrap", course, b"x", cases)
    entry = next(f for f in result["functions"] if f["name"] == "kv_cache_bytes")
    assert entry["cases"][-1] | {"points": "", "max_points": ""} == {
        "id": "overlay-0", "status": "pass", "visibility": "hidden", "points": "", "max_points": "", "call": "", "expected": "", "got": ""}


@pytest.mark.parametrize("text, said", [
    ("CASES = {", "SyntaxError"), ("x = 1", "AttributeError"), ("CASES = {'nothing': []}", "exercises of lab 01"),
    ("from labs.spec import given\nCASES = {'kv_cache_bytes': [given(1)]}", "a case of kv_cache_bytes has no answer")])
def test_own_cases_that_cannot_be_used_are_refused_by_file(tmp_path, text, said):
    (tmp_path / "overlay_01.py").write_text(text)
    with pytest.raises(ManifestError, match=re.escape(said)):
        batch.overlay(tmp_path, ["01"])


def test_what_is_not_there_is_no_learner(tmp_path, capsys):
    status = command.main(["grade", str(tmp_path / "*"), "--lab", "1", "--out", str(tmp_path / "out")])
    assert status == 2 and "* is not there" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_an_empty_secret_is_refused(handed_in, tmp_path, capsys):
    (Path(tmp_path) / "secret").write_text("\n")
    status = command.main(["grade", str(handed_in / "empty.py"), "--lab", "1", "--out", str(tmp_path), "--secret-file", str(tmp_path / "secret")])
    assert status == 2 and "is empty" in capsys.readouterr().err
