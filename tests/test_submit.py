"""The file that a learner hands in: what is in it, what is said of it, and that the work itself is only read."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

from conftest import copied
from costlib.exercise import ROOT
from labs import holes, intake, judge, spec, submit

NUMBERS = list(spec.numbers())
RIGHT = "    return 2 * batch * m * k * n\n"


@pytest.fixture
def clone(tmp_path):
    """A course without its reference and without tests, as a learner may have it."""
    copied(tmp_path / "course", "costlib", "labs")
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "course")
    return tmp_path / "course"


def write(clone, old, new, module="napkin"):
    file = clone / "costlib" / f"{module}.py"
    text = file.read_bytes()
    assert old in text
    file.write_bytes(text.replace(old, new, 1))


def fill(clone, name="matmul_flops", body=RIGHT):
    """Write the body of one hole."""
    file = clone / "costlib/napkin.py"
    text = file.read_text(encoding="utf-8")
    at = text.index("    raise Unfilled\n", text.index(f"def {name}("))
    file.write_text(text[:at] + body + text[at + len("    raise Unfilled\n") :], encoding="utf-8")


def ask(clone, *words, status=0):
    done = subprocess.run(
        [sys.executable, "-m", "labs", "submit", *map(str, words)], cwd=clone, capture_output=True, text=True,
        env={"PATH": "", "PYTHONPATH": str(clone), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == status, done
    assert "Traceback" not in done.stdout + done.stderr and (done.stderr == "" or status == 2)
    return done.stdout + done.stderr


def tree(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("number", NUMBERS)
def test_intake_takes_what_submit_packs(tmp_path, number):
    lab = spec.load(number)
    text = submit.pack(number, "ada", tmp_path)
    taken = intake.take(tmp_path / f"lab{number}-ada.zip", lab)
    assert taken.files == {f"{module}.py": (ROOT / "costlib" / f"{module}.py").read_bytes() for module in lab.modules}
    assert (taken.reason, taken.learner, taken.unexpected) == ("", "ada", ())
    assert taken.sha256 in text


@pytest.mark.parametrize("number", NUMBERS)
def test_empty_is_what_the_course_says_is_empty(number):
    from costlib.exercise import is_empty

    lab = spec.load(number)
    for module in lab.modules:
        file = f"{module}.py"
        for path, function in submit._functions(file, (ROOT / "costlib" / file).read_bytes(), lab).items():
            exercises = [exercise for exercise in lab.exercises if lab.path(exercise) == path]
            assert all(holes.is_empty(function) == is_empty(judge.function(lab, exercise)) for exercise in exercises)


def test_the_zip_holds_the_modules_and_a_record(clone):
    fill(clone)
    (clone / "costlib/mine.py").write_text("secret = 1\n")
    ask(clone, "01", "--learner", "ada")
    text = (clone / "costlib/napkin.py").read_bytes()
    with zipfile.ZipFile(clone / "lab01-ada.zip") as archive:
        assert archive.namelist() == ["napkin.py", "submission.json"] and archive.testzip() is None
        assert archive.read("napkin.py") == text
        assert json.loads(archive.read("submission.json")) == {
            "lab": "01", "learner": "ada", "course": "transformer-cost-course 0.1.0",
            "sha256": {"napkin.py": hashlib.sha256(text).hexdigest()},
        }  # fmt: skip


def test_the_same_file_gives_the_same_bytes(clone, tmp_path):
    for name in ("one", "two"):
        ask(clone, "1", "--out", tmp_path / name)
        (clone / "costlib/napkin.py").touch()
    one, two = ((tmp_path / name / "lab01.zip").read_bytes() for name in ("one", "two"))
    assert one == two
    fill(clone)
    ask(clone, "01", "--out", tmp_path / "two")
    assert (tmp_path / "two/lab01.zip").read_bytes() != one


def test_it_says_what_is_packed_what_is_empty_and_where_the_file_is(clone):
    fill(clone)
    text = ask(clone, "01")
    assert "napkin.py packed" in text
    assert "14 of 15 functions are still empty: linear_backward, padded_matmul_flops, params_per_layer, total_params and 10 more" in text
    assert re.search(r"hand in +lab01\.zip\n", text) and "make lab LAB=01" in text
    taken = intake.take(clone / "lab01.zip", spec.load("01"))
    assert taken.sha256 in text


def test_it_says_which_functions_are_not_there(clone):
    write(clone, b"def matmul_flops(", b"def my_matmul(")
    text = ask(clone, "01")
    assert "14 of 15 functions are still empty" in text and "1 of 15 functions are not there: matmul_flops" in text


def test_it_says_when_all_are_written(clone):
    text = (clone / "costlib/papers.py").read_text(encoding="utf-8").replace("raise Unfilled", "return 0")
    (clone / "costlib/papers.py").write_text(text, encoding="utf-8")
    text = (clone / "costlib/sensitivity.py").read_text(encoding="utf-8").replace("raise Unfilled", "return 0")
    (clone / "costlib/sensitivity.py").write_text(text, encoding="utf-8")
    text = ask(clone, "12")
    assert "sensitivity.py and papers.py packed" in text and "all 8 functions" in text


def test_the_learners_files_are_read_and_nothing_of_them_is_run(clone):
    fill(clone)
    write(clone, b'LAB = "01"', b'LAB = "01"\nopen("ran", "w")\nraise SystemExit("run")')
    before = tree(clone)
    text = ask(clone, "01")
    after = tree(clone)
    assert "hand in" in text
    assert {path for path in after if path not in before} == {(clone / "lab01.zip").relative_to(clone)}
    assert before == {path: after[path] for path in before}


def test_a_line_that_python_cannot_read_is_refused_with_line_and_caret_and_nothing_is_packed(clone):
    fill(clone, body="    return 2 * (m\n")
    text = ask(clone, "01", status=1)
    line = (clone / "costlib/napkin.py").read_text(encoding="utf-8").split("\n").index("    return 2 * (m") + 1
    assert f"costlib/napkin.py, line {line}: '(' was never closed" in text and "\n  return 2 * (m\n             ^" in text
    assert "Nothing was packed." in text and not (clone / "lab01.zip").exists()


def test_a_broken_file_of_another_lab_does_not_matter(clone):
    write(clone, b'LAB = "03"', b"LAB = (", module="params")
    assert "hand in" in ask(clone, "01")
    assert "costlib/params.py, line 12" in ask(clone, "03", status=1)


def test_a_file_of_another_lab_is_refused(clone):
    shutil.copy(clone / "costlib/params.py", clone / "costlib/napkin.py")
    assert "costlib/napkin.py belongs to lab 03" in ask(clone, "01", status=1)


def test_how_an_editor_saves_is_packed_as_it_is(clone):
    file = clone / "costlib/napkin.py"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    ask(clone, "01")
    assert intake.take(clone / "lab01.zip", spec.load("01")).files["napkin.py"] == file.read_bytes()


def test_a_file_that_intake_would_not_take_is_refused_here(monkeypatch, tmp_path):
    monkeypatch.setattr(intake, "MOST_SOURCE", 100)
    with pytest.raises(submit.loop.BrokenFile, match="costlib/napkin.py has [0-9]+ bytes; at most 100 are taken"):
        submit.pack("01", out=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("learner", ["a b", "../x", "/x", ".x", "é", "x" * 65, "=1", "a/b", "a\n"])
def test_an_id_that_is_no_file_name_is_refused(clone, learner):
    assert repr(learner) in ask(clone, "01", f"--learner={learner}", status=2)
    assert not (clone / "lab01.zip").exists()


@pytest.mark.parametrize("learner", ["-x", "-"])
def test_an_id_that_intake_would_change_is_refused(clone, learner):
    assert repr(learner) in ask(clone, "01", f"--learner={learner}", status=2)


def test_a_wrong_lab_or_a_missing_file_is_named(clone):
    assert "'99'" in ask(clone, "99", status=2)
    (clone / "costlib/traffic.py").unlink()
    assert "costlib/traffic.py cannot be read" in ask(clone, "09", status=2)


def test_a_folder_that_cannot_be_written_is_named_and_an_earlier_file_stays(clone, tmp_path):
    (tmp_path / "file").write_text("x")
    assert "cannot be written" in ask(clone, "01", "--out", tmp_path / "file", status=1)
    (tmp_path / "out/lab01.zip").mkdir(parents=True)
    assert "cannot be written" in ask(clone, "01", "--out", tmp_path / "out", status=1)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["lab01.zip"]


def test_what_is_packed_again_replaces_what_was_there_and_follows_no_link(clone, tmp_path):
    (tmp_path / "kept").write_text("kept")
    (clone / "lab01.zip").symlink_to(tmp_path / "kept")
    ask(clone, "01")
    assert (tmp_path / "kept").read_text() == "kept" and not (clone / "lab01.zip").is_symlink()
