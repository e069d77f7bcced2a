"""How does a result reach where marks are kept? Gradescope, Classroom 50, a GitHub summary, CSV, nbgrader.

A result is what labs/result.schema.json describes. Nothing here judges or runs anything: the same results give
the same bytes. What a learner wrote or printed is cleaned once, by `clean`, and then quoted as the format asks.
"""

import contextlib
import csv
import io
import json
import os
import re
import secrets
import sys
import unicodedata
import zipfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from costlib.domain import ManifestError
from costlib.exercise import ROOT

SCHEMA = "costlib/result/1"
UNWRITTEN = ("not-implemented", "missing")
MOST_TEXT = 4000


def clean(text, most: int = MOST_TEXT) -> str:
    """Harmless in a terminal, a log and a page: no control or direction character, no `::`, and not too long."""
    text = str(text)[: 2 * most].replace("\r\n", "\n").replace("\t", " ")
    text = "".join(
        c if c == "\n" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp") else "\ufffd" for c in text
    )
    text = re.sub(":(?=:)", ": ", text)
    return text if len(text) <= most else text[:most] + " ... (cut)"


def load(source: Path) -> list[dict]:
    """The results of a folder, or the one of a file, by lab and learner."""
    results = []
    for file in sorted(source.glob("*.json")) if source.is_dir() else [source]:
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise ManifestError("MISSING", f"{file}: {error.strerror}; name the folder that `labs grade --out` wrote") from None
        except (ValueError, RecursionError):
            raise ManifestError("JSON", f"{file} is no JSON; delete it and grade that submission again") from None
        if isinstance(found, dict) and found.get("schema") == SCHEMA:
            if not re.fullmatch("[A-Za-z0-9._-]{1,64}", str(found.get("learner"))):  # it becomes a file's name
                raise ManifestError("ENUM", f"{file}: the learner is no id; grade that submission again")
            results.append(found)
    if not results:
        raise ManifestError("MISSING", f"no result in {source}; first: python -m labs grade SUBMISSIONS --lab 01 --out {source}")
    return ordered(results)


def ordered(results) -> list[dict]:
    return sorted(results, key=lambda result: (result["lab"], result["learner"]))


def number(points: str):
    """Points as a JSON number, an integer where they are whole."""
    value = Decimal(points)
    return int(value) if value == int(value) else float(value)


def canonical(data) -> str:
    return json.dumps(data, sort_keys=True, indent=1, ensure_ascii=True) + "\n"


# What the learner reads


def shown(function) -> list[dict]:
    return [case for case in function["cases"] if case["visibility"] == "visible"]


def further(function) -> list[dict]:
    return [case for case in function["cases"] if case["visibility"] == "hidden"]


def right(cases) -> int:
    return sum(case["status"] == "pass" for case in cases)


def told(function) -> str:
    """What is right, the first shown case that is not, which mistake it is; nothing that depends on a hidden case."""
    cases = shown(function)
    lines = [f"{right(cases)} of {len(cases)} shown cases right."]
    first = next((case for case in cases if case["status"] != "pass"), None)
    if first and first["call"] and (first["expected"] or first["got"]):
        lines += [clean(first["call"]), f"  expected  {clean(first['expected'])}", f"  got       {clean(first['got'])}"]
    if first and function["hint"]:
        lines.append(clean(function["hint"]))
    if function["at_fault"]:
        lines.append(f"Judged with right answers from {', '.join(function['at_fault'])}, not right yet: mend that first.")
    return "\n".join(lines)


def told_further(function) -> str:
    """The same of the hidden cases: how many are right and, where only they are wrong, the hint."""
    cases = further(function)
    lines = [f"{right(cases)} of {len(cases)} further cases right."]
    if right(shown(function)) == len(shown(function)) and function["hint"]:
        lines.append(clean(function["hint"]))
    return "\n".join(lines)


# Gradescope


def gradescope(result) -> dict:
    """Gradescope's results.json: two tests for each function, of the shown cases and of the others.

    The others come with the published grades, by their number alone. What the learner's code printed is left out,
    since it can print the arguments of hidden cases; flags are for the instructor and stay in the report.
    """
    if result["status"] == "grader-broken":
        return broken(result["reason"])
    tests = []
    if result["status"] == "not-gradable":
        tests.append(_test("1", "your submission", "0", result["max_score"], False, clean(result["reason"])))
    for i, function in enumerate(result["functions"], 1):
        tests += _tests(str(i), function)
    output = f"Lab {result['lab']}: what each function gets is below."
    if any(further(function) for function in result["functions"]):
        output += " Further cases count too; they are shown with the published grades."
    if result["unexpected_files"]:
        output += f"\nNot expected, and not read: {clean(', '.join(result['unexpected_files']))}."
    return _results(number(result["score"]), tests, output)


def _tests(i, function) -> list[dict]:
    """A function's points between its shown and its further cases, so that the two tests add up to them."""
    name, whole, score = function["name"], Fraction(function["max_score"]), Fraction(function["score"])
    cases, others = shown(function), further(function)
    weight = sum(Fraction(case["max_points"]) for case in function["cases"]) or 1
    most = _cents(whole * sum(Fraction(case["max_points"]) for case in cases) / weight) if others else whole
    got = _cents(whole * sum(Fraction(case["points"]) for case in cases) / weight) if others else score
    got = max(got, score - (whole - most))  # where a cent more is shared out than was rounded off
    tests = [_test(i, name, got, most, right(cases) == len(cases), told(function))]
    if others:
        tests.append(_test(f"{i}.1", f"{name}, more cases", score - got, whole - most, right(others) == len(others),
                           told_further(function), "after_published"))  # fmt: skip
    return tests


def _cents(amount: Fraction) -> Fraction:
    return Fraction(int(amount * 100), 100)


def _test(i, name, score, most, passed, output, visibility="visible") -> dict:
    score, most = (number(amount) if type(amount) is str else number(str(float(amount))) for amount in (score, most))
    return {
        "number": i, "name": name, "name_format": "text", "score": score, "max_score": most,
        "status": "passed" if passed else "failed", "output": output, "output_format": "text", "visibility": visibility,
    }  # fmt: skip


def _results(score, tests, output) -> dict:
    return {
        "score": score, "output": output, "output_format": "text", "test_output_format": "text",
        "test_name_format": "text", "stdout_visibility": "hidden", "tests": tests,
    }  # fmt: skip


def broken(detail: str) -> dict:
    """What Gradescope gets when the grader and not the submission is at fault: no test has points, and says so."""
    tests = [
        ("1", "The grader is broken", "This is not a mark. Your submission is kept; it is graded again when the grader works.", "visible"),
        ("2", "What went wrong", clean(detail), "hidden"),
    ]
    fields = ("number", "name", "output", "visibility")
    tests = [dict(zip(fields, test, strict=True), status="failed", name_format="text", output_format="text") for test in tests]
    return _results(0, tests, "The grader is broken; nothing was judged.")


SETUP = """\
#!/usr/bin/env bash
# Gradescope runs this once, as root, when the image is built: Python 3.11 to 3.13 and setpriv, from the system's packages.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
find_python() { for name in python3.13 python3.12 python3.11; do "$name" -c "" 2>/dev/null && command -v "$name" && return; done; return 1; }
apt-get update
apt-get install -y --no-install-recommends python3 python3-venv util-linux
if ! find_python >/dev/null; then  # Ubuntu 22.04's own is 3.10
  apt-get install -y --no-install-recommends python3.11 python3.11-venv
fi
"$(find_python)" -m venv --without-pip /autograder/venv  # the grader needs the standard library and nothing else
"""

RUN = """\
#!/usr/bin/env bash
# Gradescope runs this for every submission, as root; learners' code runs as another user (labs/sandbox.py, setpriv).
root=${{AUTOGRADER_ROOT:-/autograder}}
results=$root/results/results.json
chmod -R o= "$root/source" "$root/results"
if [ -e "$root/submission_metadata.json" ]; then chmod o= "$root/submission_metadata.json"; fi
cd "$root/source" || exit 1
cp broken.json "$results"  # stands until something better takes its place
work=$(mktemp -d)
export PYTHONPATH=$root/source PYTHONDONTWRITEBYTECODE=1
python=$root/venv/bin/python
# Whose it is, so that each learner's further cases are the same at every try and differ from the others'.
who=$("$python" -c 'import json, sys; print("gradescope-%d" % min(u["id"] for u in json.load(open(sys.argv[1]))["users"]))' \
  "$root/submission_metadata.json" 2>/dev/null) || who=submission
if "$python" -m labs grade "$root/submission" --lab {lab} --out "$work/graded" --learner "$who"{options} >"$work/log" 2>&1 &&
  "$python" -m labs export "$work/graded" --to gradescope --out "$work/results.json" >>"$work/log" 2>&1; then
  mv "$work/results.json" "$results"
elif tail -c 4000 "$work/log" | "$python" -m labs.exports >"$work/broken.json"; then
  mv "$work/broken.json" "$results"
fi
cat "$work/log"  # Gradescope shows it to instructors only
exit 0
"""

ALLOWED = ("costlib/**/*.py", "costlib/data/**/*", "solutions/*.py", "labs/*.py", "labs/lab[0-9][0-9]_*.md", "labs/result.schema.json")


def gradescope_zip(out: Path, lab: str, secret_file: Path | None = None, overlay: Path | None = None) -> Path:
    """The zip to upload to Gradescope for one lab: setup.sh, run_autograder and the course that they need.

    It holds the solutions and, if named, the secret of the seeds and the instructor's own cases: it is not for
    learners. The same course gives the same bytes.
    """
    for named in (secret_file, overlay):
        if named and not named.exists():
            raise ManifestError("MISSING", f"{named} is not there; name the file of the secret, the folder of the overlay")
    files = {path.relative_to(ROOT).as_posix(): path for glob in ALLOWED for path in ROOT.glob(glob)}
    files = {name: path.read_bytes() for name, path in files.items() if _taken(path)}
    if not any(name.startswith("solutions/") for name in files):
        raise ManifestError("MISSING", "this edition has no solutions/ folder, and nothing to judge by: use the full course")
    options = ""
    if secret_file:
        files["secret"], options = secret_file.read_bytes(), options + " --secret-file secret"
    if overlay:
        files |= {f"overlay/{p.relative_to(overlay).as_posix()}": p.read_bytes() for p in overlay.rglob("*") if _taken(p)}
        options += " --overlay overlay"
    files["setup.sh"] = SETUP.encode()
    files["run_autograder"] = RUN.format(lab=lab, options=options).encode()
    files["broken.json"] = canonical(broken("The grader did not start; its output is in the log.")).encode()
    with _replacing(out) as new, zipfile.ZipFile(new, "w", zipfile.ZIP_STORED) as archive:
        for name, text in sorted(files.items()):
            entry = zipfile.ZipInfo(name)  # 1 January 1980
            entry.create_system = 3
            entry.external_attr = (0o100755 if name in ("setup.sh", "run_autograder") else 0o100644) << 16
            archive.writestr(entry, text)
    return out


def _taken(path: Path) -> bool:
    kept_out = path.name.startswith(("test_", "conftest", ".")) or "__pycache__" in path.parts
    return path.is_file() and not path.is_symlink() and not kept_out


# GitHub


def classroom50(result, env) -> tuple[dict, str]:
    """Classroom 50's result.json and release-body.md, for an autograder.py that runs in the learner's repository.

    The bundle of such an autograder can be read by everyone, so no hidden case, no secret and no solution may be in
    it: these scores are advice to the learner, and marks are graded on the instructor's machine. Scores are whole
    points, rounded down; the field `points` of a test has them exactly.
    """
    if result["status"] == "grader-broken":
        raise ManifestError("MISSING", f"no result to hand in, the grader is broken: {result['reason']}")

    def need(*names, how="Classroom 50's runner sets it"):
        found = next((env[name] for name in names if env.get(name)), None)
        if found is None:
            raise ManifestError("MISSING", f"{' or '.join(names)} is not set; {how}")
        return found

    commit_time = "export SUBMITTED_AT=$(TZ=UTC git show -s --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd HEAD)"
    data = {
        "schema": "classroom50/result/v1",
        "classroom": need("CLASSROOM"),
        "assignment": need("ASSIGNMENT"),
        "assignment_type": need("ASSIGNMENT_TYPE"),
        "owner": need("OWNER", "USERNAME"),
        "submission": need("SUBMISSION_TAG"),
        "commit": need("COMMIT_URL"),
        "release": need("RELEASE_URL"),
        "review": need("REVIEW_URL", "COMMIT_URL"),
        "datetime": result["submission"]["received"] or need("SUBMITTED_AT", how=commit_time),
        "score": int(Decimal(result["score"])),
        "max-score": int(Decimal(result["max_score"])),
        "tests": [
            {
                "test-name": function["name"], "passed": function["status"] == "pass",
                "score": int(Decimal(function["score"])), "max-score": int(Decimal(function["max_score"])),
                "points": function["score"], "message": told(function),
            }
            for function in result["functions"]
        ],
    }  # fmt: skip
    return data, summary(result)


def fenced(text: str) -> str:
    """A block of plain text in Markdown: no link, no mention, no HTML comes out of it, whatever it holds."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def headline(result) -> str:
    standing = {"graded": f"{result['score']} of {result['max_score']} points",
                "not-gradable": f"not gradable, 0 of {result['max_score']} points",
                "grader-broken": "not graded, the grader is broken"}  # fmt: skip
    return f"Lab {result['lab']}: {standing[result['status']]}"


def summary(result) -> str:
    """Markdown for $GITHUB_STEP_SUMMARY: a table of the functions, then what to mend, in plain blocks."""
    parts = [f"## {headline(result)}"]
    if result["reason"]:
        parts.append(fenced(clean(result["reason"])))
    if result["functions"]:
        rows = [
            f"| `{f['name']}` | {'right' if f['status'] == 'pass' else f['status']}{', helped' * (f['run'] == 'helped')} "
            f"| {f['score']} of {f['max_score']} | {right(shown(f))} of {len(shown(f))} "
            f"| {right(further(f))} of {len(further(f))} |"
            for f in result["functions"]
        ]
        parts.append("\n".join(["| function | status | points | shown cases | further cases |", "|---|---|---|---|---|", *rows]))
    for function in result["functions"]:
        if function["status"] != "pass" and function["status"] != "not-implemented":
            text = told(function) + ("\n" + told_further(function) if further(function) else "")
            parts.append(f"### `{function['name']}`\n\n{fenced(text)}")
    if result["unexpected_files"]:
        parts.append("Not expected, and not read:\n\n" + fenced(clean("\n".join(result["unexpected_files"]))))
    return "\n\n".join(parts) + "\n"


def log_text(result, token: str) -> str:
    """The same for a GitHub log. The runner obeys no command between the two lines with the token, which must be new
    for every log: `secrets.token_hex(16)`."""
    told_all = [f"{f['name']}: {f['status']}\n{told(f)}" for f in result["functions"] if f["status"] != "pass"]
    if result["output_excerpt"]:
        told_all.append(f"Your code printed:\n{clean(result['output_excerpt'])}")
    text = "\n\n".join([*([clean(result["reason"])] if result["reason"] else []), *told_all])
    if not re.fullmatch("[0-9a-zA-Z]{16,}", token) or token in text:
        raise ManifestError("RANGE", "the token must be 16 letters and digits at least that nobody could guess: secrets.token_hex(16)")
    return f"{headline(result)}\n::stop-commands::{token}\n{text}\n::{token}::\n"


# Tables


def guarded(cell) -> str:
    """A cell that no spreadsheet takes for a formula, however it is disguised."""
    text = clean(cell, 200)
    if re.fullmatch(r"-?\d+(\.\d+)?", text, re.ASCII):
        return text
    bare = "".join(c for c in unicodedata.normalize("NFKC", text) if c.isprintable() and not c.isspace() and c != "\ufffd")
    suspect = bare[:1] in ("=", "+", "-", "@", "\u2212") or text[:1].isspace() or text[:1] == "\ufffd" or str(cell)[:1] in "\t\r\n"
    return f"'{text}" if text and suspect else text


def csv_text(results) -> str:
    """One row for each learner and lab, one column for each function. Where the grader was broken there is no score."""
    results = ordered(results)
    names = list(dict.fromkeys(function["name"] for result in results for function in result["functions"]))
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")  # quoted, `;` starts no cell either
    writer.writerow(["learner", "lab", "score", "max_score", "status", "late_seconds", *map(guarded, names)])
    for result in results:
        points = {function["name"]: function["score"] for function in result["functions"]}
        late, score = result["submission"]["late_seconds"], result["score"] if result["status"] != "grader-broken" else ""
        row = [result["learner"], result["lab"], score, result["max_score"], result["status"], "" if late is None else late]
        writer.writerow([guarded(cell) for cell in [*row, *(points.get(name, "") for name in names)]])
    return text.getvalue()


def nbgrader(results, url: str) -> None:
    """Write the scores into an nbgrader gradebook, `sqlite:///gradebook.db`: an assignment for each lab, a cell for
    each function. A submission that could not be graded gets 0 and is marked for a look by hand."""
    try:
        from nbgrader.api import Gradebook
    except ModuleNotFoundError:
        raise ManifestError("MISSING", "nbgrader is not installed here: python -m pip install nbgrader==0.9.6") from None
    results = [result for result in ordered(results) if result["status"] != "grader-broken"]
    with _own_programs_first(), Gradebook(url) as book:
        for lab in dict.fromkeys(result["lab"] for result in results):
            _nbgrader_lab(book, f"lab{lab}", [result for result in results if result["lab"] == lab])


@contextlib.contextmanager
def _own_programs_first():
    """nbgrader runs `alembic` by bare name; without it on PATH it leaves half a gradebook behind."""
    before = os.environ.get("PATH", os.defpath)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{before}"
    try:
        yield
    finally:
        os.environ["PATH"] = before


def _nbgrader_lab(book, name, results) -> None:
    most = {f["name"]: float(f["max_score"]) for result in results for f in result["functions"]}
    book.update_or_create_assignment(name)
    book.update_or_create_notebook(name, name)
    for cell, points in most.items():
        book.update_or_create_grade_cell(cell, name, name, max_score=points, cell_type="code")
        book.update_or_create_source_cell(cell, name, name, cell_type="code")
    for result in results:
        scores = {function["name"]: float(function["score"]) for function in result["functions"]}
        book.update_or_create_student(result["learner"])
        book.update_or_create_submission(name, result["learner"])
        for cell in most:
            grade = book.find_grade(cell, name, name, result["learner"])
            grade.auto_score, grade.needs_manual_grade = scores.get(cell, 0.0), result["status"] != "graded"
    book.db.commit()


# The command


@contextlib.contextmanager
def _replacing(out: Path):
    """A name beside `out` that takes its place when all is written."""
    beside = out.with_name(f".{out.name}.new")
    try:
        yield beside
        os.replace(beside, out)
    finally:
        beside.unlink(missing_ok=True)


def write(out: Path | None, text: str) -> None:
    """To a file, whole or not at all; to the terminal where none is named."""
    if out is None:
        sys.stdout.write(text)
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    with _replacing(out) as new:
        new.write_text(text, encoding="utf-8", newline="\n")


ONE_EACH = {"gradescope": (".json", lambda result: canonical(gradescope(result))), "summary": (".md", summary)}


def export(source: Path, to: str, out: Path | None = None, env=os.environ) -> None:
    """`python -m labs export DIR --to FORMAT [--out FILE]`; several learners' own files go to a folder."""
    results = load(source)
    if to == "csv":
        write(out, csv_text(results))
    elif to == "report":
        from labs import class_report

        write(out, class_report.html(results))
    elif to == "nbgrader":
        url = str(out or "gradebook.db")
        nbgrader(results, url if "://" in url else f"sqlite:///{url}")
    elif to == "classroom50":
        if len(results) != 1:
            raise ManifestError("RANGE", f"{len(results)} results in {source}; Classroom 50 takes one submission at a time: name its file")
        data, body = classroom50(results[0], env)
        write((out or Path()) / "result.json", canonical(data))
        write((out or Path()) / "release-body.md", body)
    elif to == "summary" and out is None and env.get("GITHUB_STEP_SUMMARY"):
        with open(env["GITHUB_STEP_SUMMARY"], "a", encoding="utf-8") as page:
            page.writelines(map(summary, results))
        write(None, "".join(log_text(result, secrets.token_hex(16)) for result in results))
    elif len(results) == 1:
        write(out, ONE_EACH[to][1](results[0]))
    elif out is None:
        raise ManifestError("MISSING", f"{len(results)} results in {source}: add --out FOLDER, which gets one file for each")
    else:
        ending, form = ONE_EACH[to]
        for result in results:
            write(out / f"lab{result['lab']}-{result['learner']}{ending}", form(result))


if __name__ == "__main__":  # in run_autograder: what went wrong comes in, a results.json goes out
    sys.stdout.write(canonical(broken(sys.stdin.buffer.read().decode("utf-8", "replace"))))
