"""Each form of a result is what its system specifies, keeps the marks exact, and carries nothing that acts or tells."""

import copy
import csv
import importlib.util
import io
import json
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from fractions import Fraction

import jsonschema
import pytest
from results import BROKEN, COUNTED_MACS, EVERY, HELPED, HIDDEN, HOSTILE, MAC, NASTY, RIGHT, SCHEMA, STUB, UNREADABLE, function, result, save

from costlib.domain import ManifestError
from costlib.exercise import ROOT
from labs import __main__ as command
from labs import exports

# From Gradescope's specification of results.json, strict in what this course uses of it.
VISIBILITY = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}
FORMAT = {"enum": ["text", "html", "simple_format", "md", "ansi"]}
GRADESCOPE = {
    "type": "object", "additionalProperties": False, "required": ["score", "tests", "stdout_visibility"],
    "properties": {
        "score": {"type": "number", "minimum": 0}, "execution_time": {"type": "number"}, "output": {"type": "string"},
        "output_format": FORMAT, "test_output_format": FORMAT, "test_name_format": FORMAT, "visibility": VISIBILITY,
        "stdout_visibility": {"const": "hidden"}, "extra_data": {"type": "object"},
        "leaderboard": {"type": "array", "items": {"type": "object", "required": ["name", "value"]}},
        "tests": {"type": "array", "minItems": 1, "items": {
            "type": "object", "additionalProperties": False, "required": ["name", "status", "output", "visibility"],
            "properties": {
                "score": {"type": "number", "minimum": 0}, "max_score": {"type": "number", "minimum": 0},
                "status": {"enum": ["passed", "failed"]}, "name": {"type": "string"}, "name_format": FORMAT,
                "number": {"type": "string", "pattern": r"^\d+(\.\d+)?$"}, "output": {"type": "string"}, "output_format": {"const": "text"},
                "tags": {"type": "array", "items": {"type": "string"}}, "visibility": VISIBILITY, "extra_data": {"type": "object"},
            }}},
    },
}  # fmt: skip

# From Classroom 50's schemas/result-v1.schema.json.
SOME, TIME = {"type": "string", "minLength": 1}, {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$"}
COUNT = {"type": "integer", "minimum": 0}
CLASSROOM50 = {
    "type": "object", "additionalProperties": False,
    "required": ["schema", "classroom", "assignment", "assignment_type", "owner", "submission", "commit", "release", "review", "datetime",
                 "score", "max-score", "tests"],
    "properties": {
        "schema": {"const": "classroom50/result/v1"}, "classroom": SOME, "assignment": SOME,
        "assignment_type": {"enum": ["individual", "group"]}, "owner": SOME, "submission": {"type": "string", "pattern": "^submit/"},
        "commit": SOME, "release": SOME, "review": SOME, "datetime": TIME, "graded_at": TIME, "score": COUNT, "max-score": COUNT,
        "submitted_by": {"type": "object"},
        "tests": {"type": "array", "items": {"type": "object", "required": ["test-name", "passed", "score", "max-score"],
                                             "properties": {"test-name": SOME, "passed": {"type": "boolean"}, "score": COUNT,
                                                            "max-score": COUNT}}},
    },
}  # fmt: skip
ENV = {
    "CLASSROOM": "cost", "ASSIGNMENT": "lab01", "ASSIGNMENT_TYPE": "individual", "USERNAME": "ada",
    "SUBMISSION_TAG": "submit/2026-11-30T10-00-00Z-abc", "COMMIT_URL": "https://example.org/c", "RELEASE_URL": "https://example.org/r",
    "SUBMITTED_AT": "2026-11-30T10:00:00Z",
}  # fmt: skip
TOKEN = "0123456789abcdef0123456789abcdef"


def valid(data, schema):
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(data)
    return data


def inert(text):
    """No control or direction character, and no workflow command."""
    return "::" not in text and not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", text)


# The result itself

@pytest.mark.parametrize("each", EVERY, ids=lambda each: each["learner"])
def test_the_fixtures_are_results(each):
    valid(each, SCHEMA)


SPOILED = {
    "a field more": {"seconds": 3}, "points as a number": {"score": 3}, "points of three digits": {"score": "0.125"},
    "points with a zero at the end": {"score": "1.50"}, "a learner that leaves the folder": {"learner": "../ada"},
    "a learner of two lines": {"learner": "ada\n"}, "a status of its own": {"status": "passed"}, "a reason of a graded one": {"reason": "x"},
    "graded without functions": {"functions": []}, "a sandbox unnamed": {"sandbox": {"backend": "docker", "limits": {}, "python": "3.11.7"}},
    "another lab version": {"lab_version": "1"},
}  # fmt: skip


@pytest.mark.parametrize("change", SPOILED.values(), ids=SPOILED)
def test_the_schema_refuses(change):
    with pytest.raises(jsonschema.ValidationError):
        valid(RIGHT | change, SCHEMA)


@pytest.mark.parametrize("field", ["call", "expected", "got"])
def test_the_schema_refuses_a_hidden_case_that_tells(field):
    spoiled = copy.deepcopy(RIGHT)
    spoiled["functions"][0]["cases"][-1][field] = "60"
    with pytest.raises(jsonschema.ValidationError):
        valid(spoiled, SCHEMA)


def test_the_schema_refuses_help_without_a_fault_and_a_fault_without_help():
    for run, fault in (("helped", []), ("own", ["params_per_layer"])):
        with pytest.raises(jsonschema.ValidationError):
            valid(result("ada", function("params_total", run=run, at_fault=fault)), SCHEMA)


# Gradescope

@pytest.mark.parametrize("each", EVERY, ids=lambda each: each["learner"])
def test_gradescope_gets_what_it_specifies(each):
    data = valid(exports.gradescope(each), GRADESCOPE)
    for test in data["tests"]:
        assert inert(test["name"]) and inert(test["output"])
        assert test.get("score", 0) <= test.get("max_score", 0)
    assert inert(data["output"]) and exports.canonical(data) == exports.canonical(exports.gradescope(copy.deepcopy(each)))


def test_gradescope_shows_one_test_a_function_and_folds_the_hidden_cases_into_another():
    data = exports.gradescope(COUNTED_MACS)
    assert [(t["number"], t["name"], t["score"], t["max_score"], t["status"], t["visibility"]) for t in data["tests"]] == [
        ("1", "matmul_flops", 0, 1, "failed", "visible"), ("1.1", "matmul_flops, more cases", 0, 1, "failed", "after_published"),
        ("2", "kv_cache_bytes", 0.5, 0.5, "passed", "visible"), ("2.1", "kv_cache_bytes, more cases", 0.5, 0.5, "passed", "after_published"),
    ]  # fmt: skip
    assert data["score"] == 1
    assert data["tests"][0]["output"] == (
        f"0 of 3 shown cases right.\nmatmul_flops(m=2)\n  expected  60\n  got       30\n{MAC}")
    assert data["tests"][1]["output"] == "0 of 3 further cases right."


def test_before_grades_are_published_gradescope_does_not_tell_that_hidden_cases_fail():
    shown, more = exports.gradescope(HIDDEN)["tests"]
    assert (shown["status"], shown["output"]) == ("passed", "3 of 3 shown cases right.")
    assert (more["status"], more["output"]) == ("failed", "0 of 3 further cases right.\nWhich argument did you not use?")
    assert "passes-public" not in json.dumps(exports.gradescope(HIDDEN))


@pytest.mark.parametrize("points", range(1, 5))
@pytest.mark.parametrize("statuses", ["ppp|pppp", "ppf|pfpp", "fff|pppp", "ppppp|pppppp", "pff", "ppp|pff", "fpppppp|ppppff"])
def test_the_tests_of_a_function_add_up_to_its_points_to_the_cent(points, statuses):
    one = function("matmul_flops", statuses, points, hint="x")
    data = exports.gradescope(result("ada", one))
    for field in ("score", "max_score"):
        amounts = [Fraction(json.dumps(test[field])) for test in data["tests"]]
        assert sum(amounts) == Fraction(one[field])
        assert all(re.fullmatch(r"\d+(\.\d\d?)?", json.dumps(test[field])) for test in data["tests"])
    assert all(test["score"] <= test["max_score"] for test in data["tests"])


def test_gradescope_says_whose_mistake_it_was():
    total = exports.gradescope(HELPED)["tests"][2]
    assert total["name"] == "params_total" and total["status"] == "passed"
    assert total["output"].endswith("Judged with right answers from params_per_layer, not right yet: mend that first.")


def test_what_cannot_be_graded_gets_the_reason_and_keeps_the_maximum():
    data = exports.gradescope(UNREADABLE)
    assert data["score"] == 0
    assert [(t["score"], t["max_score"], t["status"], t["visibility"], t["output"]) for t in data["tests"]] == [
        (0, 3, "failed", "visible", "napkin.py, line 3: invalid syntax")]


def test_a_broken_grader_gives_no_marks_one_sentence_for_all_and_the_detail_for_the_instructor():
    said, detail = exports.gradescope(BROKEN)["tests"]
    assert said["visibility"] == "visible" and "This is not a mark." in said["output"]
    assert detail["visibility"] == "hidden" and detail["output"] == BROKEN["reason"]
    assert not {"score", "max_score"} & (said.keys() | detail.keys()) and BROKEN["reason"] not in said["output"]


def test_what_the_code_printed_stays_away_from_gradescope():
    printed = result("ada", function("matmul_flops"), output_excerpt="matmul_flops(m=771) was asked")
    assert "771" not in json.dumps(exports.gradescope(printed))


# Gradescope's zip

@pytest.fixture(scope="module")
def upload(tmp_path_factory):
    return exports.gradescope_zip(tmp_path_factory.mktemp("zip") / "autograder.zip", "01")


def test_the_zip_is_the_same_twice_and_its_scripts_can_run(upload, tmp_path):
    assert exports.gradescope_zip(tmp_path / "again.zip", "01").read_bytes() == upload.read_bytes()
    with zipfile.ZipFile(upload) as archive:
        modes = {entry.filename: stat.S_IMODE(entry.external_attr >> 16) for entry in archive.infolist()}
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert list(modes) == sorted(modes)
    assert {name for name, mode in modes.items() if mode == 0o755} == {"setup.sh", "run_autograder"}
    assert {"labs/lab01_napkin.py", "labs/marking.py", "costlib/napkin.py", "solutions/napkin.py"} <= modes.keys()
    assert not [name for name in modes if name.startswith(("tests/", ".")) or "__pycache__" in name or "/test_" in name]


def test_the_secret_and_the_instructors_cases_travel_only_if_named(upload, tmp_path):
    (tmp_path / "key").write_bytes(b"hush")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/lab01.json").write_text("{}")
    made = exports.gradescope_zip(tmp_path / "a.zip", "01", tmp_path / "key", tmp_path / "mine")
    with zipfile.ZipFile(made) as archive, zipfile.ZipFile(upload) as plain:
        assert set(archive.namelist()) - set(plain.namelist()) == {"secret", "overlay/lab01.json"}
        assert b"--lab 01 --out \"$work/graded\" --learner \"$who\" --secret-file secret --overlay overlay >" in archive.read("run_autograder")
        assert b"secret" not in plain.read("run_autograder")
    with pytest.raises(ManifestError, match="is not there"):
        exports.gradescope_zip(tmp_path / "b.zip", "01", tmp_path / "no key")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "key", "mine"]


def test_the_scripts_are_read_by_bash(upload):
    with zipfile.ZipFile(upload) as archive:
        for name in ("setup.sh", "run_autograder"):
            assert subprocess.run(["bash", "-n"], input=archive.read(name), capture_output=True, check=True).stderr == b""
            assert not re.search(rb"https?://|curl|wget|pip install", archive.read(name)), name


def container(upload, folder, grade):
    """Gradescope's folders, with a Python that answers `labs grade` by the shell code given here."""
    for name in ("results", "submission", "venv/bin"):
        (folder / name).mkdir(parents=True)
    (folder / "submission_metadata.json").write_text("{}")
    with zipfile.ZipFile(upload) as archive:
        archive.extractall(folder / "source")
    python = folder / "venv/bin/python"
    python.write_text(f'#!/bin/bash\nif [ "$3" = grade ]; then\n{grade}\nfi\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)


def ran(folder):
    done = subprocess.run(["bash", folder / "source/run_autograder"], env={"PATH": "/usr/bin:/bin", "AUTOGRADER_ROOT": str(folder)},
                          cwd=folder, capture_output=True, text=True, timeout=120)  # fmt: skip
    return done, valid(json.loads((folder / "results/results.json").read_text()), GRADESCOPE)


def test_run_autograder_grades_converts_and_shuts_others_out(upload, tmp_path):
    save(tmp_path / "made", [COUNTED_MACS])
    container(upload, tmp_path / "autograder", f'cp -r "{tmp_path}/made" "$8"; echo "$@"; exit 0')
    done, data = ran(tmp_path / "autograder")
    assert done.returncode == 0 and f"-m labs grade {tmp_path}/autograder/submission --lab 01 --out" in done.stdout
    assert data == exports.gradescope(COUNTED_MACS)
    for path in ("source/solutions/napkin.py", "source", "results", "submission_metadata.json"):
        assert stat.S_IMODE((tmp_path / "autograder" / path).stat().st_mode) & 0o007 == 0, path


BREAKS = {
    "the grader refuses": ("echo no sandbox can start >&2; exit 2", "no sandbox can start"),
    "the grader writes nothing": ("exit 0", "graded: No such file"),
    "the grader is killed": ("kill -9 $$", ""),
    "Python is gone": ("exit 1\nfi\nif true; then exit 127", "The grader did not start"),
}


@pytest.mark.parametrize(("grade", "said"), BREAKS.values(), ids=BREAKS)
def test_run_autograder_leaves_a_result_whatever_breaks(upload, tmp_path, grade, said):
    container(upload, tmp_path, grade)
    done, data = ran(tmp_path)
    assert done.returncode == 0 and [test["visibility"] for test in data["tests"]] == ["visible", "hidden"]
    assert said in data["tests"][1]["output"]


def test_the_zips_course_needs_the_standard_library_alone(upload, tmp_path):
    with zipfile.ZipFile(upload) as archive:
        archive.extractall(tmp_path)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import labs.marking, labs.sandbox, labs.exports; print(labs.__file__)"
    done = subprocess.run([sys.executable, "-I", "-S", "-B", "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == (str(tmp_path / "labs/__init__.py"), "")


# GitHub

@pytest.mark.parametrize("each", [each for each in EVERY if each is not BROKEN], ids=lambda each: each["learner"])
def test_classroom_50_gets_what_its_schema_asks_for(each):
    data, body = exports.classroom50(each, ENV)
    valid(data, CLASSROOM50)
    assert data["score"] <= data["max-score"] and all(test["score"] <= test["max-score"] for test in data["tests"])
    assert body == exports.summary(each)


def test_classroom_50_takes_whole_points_rounded_down_and_the_exact_ones_beside_them():
    data, _ = exports.classroom50(result("ada", function("a", "ppf", 2), function("b", "ppf", 4)), ENV)
    assert [(t["test-name"], t["passed"], t["score"], t["max-score"], t["points"]) for t in data["tests"]] == [
        ("a", False, 1, 2, "1.33"), ("b", False, 2, 4, "2.66")]
    assert (data["score"], data["max-score"]) == (3, 6)
    assert (data["owner"], data["review"], data["datetime"]) == ("ada", ENV["COMMIT_URL"], ENV["SUBMITTED_AT"])


@pytest.mark.parametrize("name", sorted(ENV))
def test_classroom_50_says_which_variable_is_missing(name):
    with pytest.raises(ManifestError, match=rf"{name} is not set"):
        exports.classroom50(RIGHT, {key: value for key, value in ENV.items() if key != name})


def test_a_broken_grader_hands_nothing_to_classroom_50():
    with pytest.raises(ManifestError, match="the grader is broken: The reference"):
        exports.classroom50(BROKEN, ENV)


def test_classroom_50s_docstring_keeps_hidden_cases_out_of_the_public_bundle():
    assert "no hidden case" in " ".join(exports.classroom50.__doc__.split())


def test_the_summary_says_what_is_right_and_what_to_mend():
    page = exports.summary(COUNTED_MACS)
    assert page.startswith("## Lab 01: 1 of 3 points\n")
    assert "| `matmul_flops` | fail | 0 of 2 | 0 of 3 | 0 of 3 |" in page and "| `kv_cache_bytes` | right | 1 of 1 | 3 of 3 | 3 of 3 |" in page
    assert f"### `matmul_flops`\n\n```text\n0 of 3 shown cases right.\nmatmul_flops(m=2)\n  expected  60\n  got       30\n{MAC}\n" in page
    assert "right, helped" in exports.summary(HELPED)
    assert "not gradable, 0 of 3 points" in exports.summary(UNREADABLE) and UNREADABLE["reason"] in exports.summary(UNREADABLE)
    assert "the grader is broken" in exports.summary(BROKEN) and "0 of" not in exports.summary(BROKEN)


def outside_fences(page):
    """The lines that Markdown interprets."""
    fence, lines = None, []
    for line in page.splitlines():
        ticks = re.match("`{3,}", line)
        if fence is None and ticks:
            fence = ticks[0]
        elif fence is not None and line == fence:
            fence = None
        elif fence is None:
            lines.append(line)
    assert fence is None
    return "\n".join(lines)


def test_nothing_a_learner_wrote_is_markdown():
    page = exports.summary(NASTY)
    assert inert(page) and "<img" in page
    assert not re.search("[<>@]|script|red|json", outside_fences(page))


def test_a_log_obeys_no_command_of_a_learner():
    first, stop, *said, resume = exports.log_text(NASTY, TOKEN).splitlines()
    assert (first, stop, resume) == ("Lab 01: 0.33 of 2 points", f"::stop-commands::{TOKEN}", f"::{TOKEN}::")
    assert "notice title=x" in "\n".join(said) and inert("\n".join(said))


@pytest.mark.parametrize("token", ["", "short", "0123456789abcde:", "a" * 16])
def test_a_token_that_can_be_guessed_is_refused(token):
    printed = result("ada", function("matmul_flops"), output_excerpt="a" * 20)
    with pytest.raises(ManifestError, match="token_hex"):
        exports.log_text(printed, token)


@pytest.mark.parametrize(("text", "shown"), [
    ("a\r\nb\tc", "a\nb c"), ("\x1b[31m", "\ufffd[31m"), ("::error::", ": :error: :"), (":::", ": : :"), ("::::", ": : : :"),
    ("\u202ecod", "\ufffdcod"), ("\ud800", "\ufffd"), ("\x00", "\ufffd"), ("x" * 5000, "x" * 4000 + " ... (cut)"), (3, "3"),
])  # fmt: skip
def test_cleaned_text(text, shown):
    assert exports.clean(text) == shown
    exports.clean(text).encode()


# CSV

FORMULAS = ["=HYPERLINK(\"http://x\")", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "\u200b=1", "\ufeff=1", "\x00=1",
            "\uff1d1", "\uff0b1", "\uff0d1", "\uff201", "\u22121+1", "-ada", "\ufe66x", "\u00a0=1"]  # fmt: skip


@pytest.mark.parametrize("formula", FORMULAS, ids=ascii)
def test_no_cell_is_a_formula(formula):
    each = result(formula, function("matmul_flops"))
    (row,) = list(csv.DictReader(io.StringIO(exports.csv_text([each]))))
    assert row["learner"].startswith("'") and row["score"] == "1"


@pytest.mark.parametrize("plain", ["ada", "a,b", "a;=1", 'say "hi"', "-3", "14.5", "", "d'Arc", "a-b"])
def test_other_cells_stay_as_they_are(plain):
    each = result(plain, function("matmul_flops"))
    text = exports.csv_text([each])
    assert next(csv.DictReader(io.StringIO(text)))["learner"] == plain
    assert text.splitlines()[1].startswith('"')


def test_the_table_has_a_row_for_each_learner_and_a_column_for_each_function():
    late = result("zoe", function("kv_cache_bytes", "ppf", 2), submission=RIGHT["submission"] | {"late_seconds": 90})
    text = exports.csv_text([late, BROKEN, UNREADABLE, RIGHT])
    assert text == exports.csv_text([RIGHT, UNREADABLE, late, BROKEN])
    assert text.replace('"', "").splitlines() == [
        "learner,lab,score,max_score,status,late_seconds,matmul_flops,kv_cache_bytes",
        "ada,01,3,3,graded,,2,1", "fay,01,0,3,not-gradable,,,", "gil,01,,3,grader-broken,,,", "zoe,01,1.33,2,graded,90,,1.33",
    ]  # fmt: skip


# nbgrader

def test_without_nbgrader_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "nbgrader", None)
    monkeypatch.setitem(sys.modules, "nbgrader.api", None)
    with pytest.raises(ManifestError, match="python -m pip install nbgrader==0.9.6"):
        exports.nbgrader(EVERY, "sqlite://")


@pytest.mark.skipif(not importlib.util.find_spec("nbgrader"), reason="nbgrader is an extra of its own: pip install nbgrader==0.9.6")
def test_nbgrader_keeps_the_scores_also_the_second_time(tmp_path):
    from nbgrader.api import Gradebook

    url = f"sqlite:///{tmp_path}/gradebook.db"
    for _ in range(2):
        exports.nbgrader([RIGHT, COUNTED_MACS, UNREADABLE, BROKEN], url)
    with Gradebook(url) as book:
        scores = {s.student.id: (s.score, s.max_score, s.needs_manual_grade) for s in book.assignment_submissions("lab01")}
    assert scores == {"ada": (3.0, 3.0, False), "bob": (1.0, 3.0, False), "fay": (0.0, 3.0, True)}


# The command

def test_the_command_writes_every_form(tmp_path, monkeypatch, capsys):
    made = save(tmp_path / "made", EVERY)
    for name, value in ENV.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    for to, out in (("gradescope", "g"), ("summary", "s"), ("csv", "marks/marks.csv"), ("report", "report.html")):
        assert command.main(["export", str(made), "--to", to, "--out", str(tmp_path / out)]) == 0
    assert command.main(["export", str(made / "ada.json"), "--to", "classroom50", "--out", str(tmp_path / "c")]) == 0
    assert json.loads((tmp_path / "g/lab01-bob.json").read_text()) == exports.gradescope(COUNTED_MACS)
    assert (tmp_path / "s/lab01-hal.md").read_text(encoding="utf-8") == exports.summary(NASTY)
    assert len(list((tmp_path / "g").iterdir())) == len(list((tmp_path / "s").iterdir())) == len(EVERY)
    assert (tmp_path / "marks/marks.csv").read_text() == exports.csv_text(EVERY)
    assert "</html>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == ["release-body.md", "result.json"]
    assert capsys.readouterr().out == ""
    assert command.main(["export", str(made / "ada.json"), "--to", "gradescope"]) == 0
    assert json.loads(capsys.readouterr().out) == exports.gradescope(RIGHT)


def test_in_github_the_summary_goes_to_its_page_and_the_log_is_guarded(tmp_path, monkeypatch, capsys):
    made = save(tmp_path / "made", [NASTY])
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "page.md"))
    assert command.main(["export", str(made), "--to", "summary"]) == 0
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == exports.summary(NASTY)
    lines = capsys.readouterr().out.splitlines()
    token = re.fullmatch("::stop-commands::([0-9a-f]{32})", lines[1])[1]
    assert lines[-1] == f"::{token}::" and inert("\n".join(lines[2:-1]))


REFUSED = [
    ([], "csv", "no result in"), ([RIGHT, STUB], "gradescope", "add --out FOLDER"), ([RIGHT, STUB], "classroom50", "one submission at a time"),
    ([RIGHT | {"learner": "../ada"}], "csv", "the learner is no id"),
]  # fmt: skip


@pytest.mark.parametrize(("results", "to", "said"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_the_command_says_what_is_missing(tmp_path, capsys, results, to, said):
    folder = tmp_path / "made"
    folder.mkdir()
    for i, each in enumerate(results):
        (folder / f"{i}.json").write_text(json.dumps(each))
    assert command.main(["export", str(folder), "--to", to]) == 2
    assert said in capsys.readouterr().err


def test_a_spoiled_file_is_named(tmp_path, capsys):
    (save(tmp_path / "made", [RIGHT]) / "bob.json").write_text("{")
    assert command.main(["export", str(tmp_path / "made"), "--to", "csv"]) == 2
    assert "bob.json is no JSON" in capsys.readouterr().err
    assert command.main(["export", str(tmp_path / "nowhere.json"), "--to", "csv"]) == 2
    assert "nowhere.json: No such file" in capsys.readouterr().err


def test_the_command_makes_the_zip(tmp_path, capsys, upload):
    assert command.main(["autograder", "1", "--out", str(tmp_path / "a.zip")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'a.zip'}\n" and (tmp_path / "a.zip").read_bytes() == upload.read_bytes()


def test_an_edition_without_solutions_makes_no_zip(tmp_path, monkeypatch):
    for part in ("costlib", "labs"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__", "data"))
    monkeypatch.setattr(exports, "ROOT", tmp_path)
    with pytest.raises(ManifestError, match="no solutions/ folder"):
        exports.gradescope_zip(tmp_path / "a.zip", "01")
    assert not (tmp_path / "a.zip").exists()
