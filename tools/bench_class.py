"""How fast is a class marked, and who gets marks for nothing? This course's grader beside pytest, nbgrader and Otter-Grader.

All mark the same files, the whole text of Lab 01's module, by the lab's public cases and points. Ratios, not seconds, carry
over; every round goes through all graders, so that a noisy moment hits each. What is not like for like:

    this course   judges six drawn cases more for each function, names mistakes, tries again a function that fails,
                  compares by exact type, and gives part of the points for part of the cases. Start-up: a copy of the
                  course and the four files on which it tries itself, once for a class.
    pytest        one process for each file, as many side by side as we have, without plugins. It gives no marks: they
                  are read from its exit status (all or nothing, as graders of repositories do) or from its report.
    nbgrader      one cell of asserts for each function, all or nothing. A kernel for each notebook, one after the other,
                  since it has no other way. Start-up: its command on a class of nobody.
    Otter-Grader  one test for each function, all or nothing. `otter run`, a process and a kernel for each file, side by
                  side. Its sandbox is a container for each file, which is not measured.

Making the assignment is not timed for any. The asserts compare with ==, as the documentation of all three does, and none
of the three promises to hold against code that attacks the process in which it judges; the second table shows what that
comes to. "none" is a grader that failed on the file and gave no points.
"""

import argparse
import csv
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import distributions, version
from pathlib import Path
from textwrap import indent
from unittest import mock
from xml.etree import ElementTree

from costlib.exercise import ROOT
from costlib.hardware import Chip
from labs import batch, holes, sandbox, spec
from labs.loop import table

LAB = spec.load("01")
POINTS = {exercise.name: exercise.points for exercise in LAB.exercises}
MOST = sum(POINTS.values())
JOBS = os.cpu_count() or 1
PEERS = ROOT / ".venv-peers"

STARTER = holes.empty((ROOT / "costlib/napkin.py").read_text(encoding="utf-8"))
ANSWERS = (ROOT / "solutions/napkin.py").read_text(encoding="utf-8").replace("from costlib import napkin\n", "")
RIGHT = holes.filled(STARTER, re.sub(r"\bnapkin\.(?=\w+\()", "", ANSWERS), "napkin")  # right wherever it is put
WRONG = RIGHT.replace("return 2 * batch * m * k * n", "return batch * m * k * n")
EQUALS = """

class Equal:
    def __eq__(self, other):
        return True
"""
PATCHES = '''

import sys


def nothing(*args, **kwargs):
    return {}


if "_pytest.python" in sys.modules:
    sys.modules["_pytest.python"].Function.runtest = nothing
elif "otter.test_files" in sys.modules:
    sys.modules["otter.test_files"].test_case.call_func = nothing
elif "IPython" in sys.modules:
    sys.modules["IPython"].get_ipython().input_transformers_cleanup.append(nothing)
else:
    sys.modules["__main__"].run = nothing  # of our worker
'''
FILES = {
    "right": RIGHT,
    "starter": STARTER,
    "exits": "import os\n\nos._exit(0)\n",  # with the status that says all is well
    "equal": STARTER.replace("    raise Unfilled", "    return Equal()") + EQUALS,
    "patches": STARTER + PATCHES,
}
HELPERS = '''\
from fractions import Fraction

from costlib.domain import ManifestError
from costlib.hardware import chip


def refused(code, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except ManifestError as refusal:
        return refusal.code == code
    return False
'''


def assertion(name: str, case: spec.Case) -> str:
    def text(value):
        return f"chip({value.name!r})" if isinstance(value, Chip) else repr(value)

    given = ", ".join([*map(text, case.args), *(f"{key}={text(value)}" for key, value in case.kwargs.items())])
    if isinstance(case.expected, spec.Refused):
        return f"assert refused({case.expected.code!r}, {name}, {given})"
    call = f"dict({name}({given}))" if type(case.expected) is dict else f"{name}({given})"
    return f"assert {call} == {case.expected!r}"


ASSERTS = {exercise.name: "\n".join(assertion(exercise.name, case) for case in exercise.cases) for exercise in LAB.exercises}


def put(text: str, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def run(folder: Path, *command: str) -> tuple[int, float]:
    """(exit status, seconds) of a command that finds the course with empty holes and may leave things in a home."""
    home, path = folder.parents[1], f"{PEERS}/bin:{os.environ['PATH']}"
    env = {"PATH": path, "HOME": str(home), "TMPDIR": str(home), "PYTHONPATH": str(home / "course"), "LAB_MODULE": "costlib",
           "JUPYTER_PREFER_ENV_PATH": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # fmt: skip
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.returncode, time.perf_counter() - start


def side_by_side(one, learners) -> tuple[dict, float]:
    """{learner: what one(learner) gives}, JOBS at a time, and the seconds of all."""
    start = time.perf_counter()
    with ThreadPoolExecutor(JOBS) as pool:
        found = dict(zip(learners, pool.map(one, learners)))
    return found, time.perf_counter() - start


# Each marks {learner: text} in a new folder: (seconds of start-up, None where each file pays its own; seconds after it;
# {how the marks are read: {learner: points}}).


def ours(files: dict, folder: Path) -> tuple:
    ready, try_itself = [], batch.try_itself

    def trying(*args):
        try_itself(*args)
        ready.append(time.perf_counter())

    submissions, start = [batch.own(learner, {"napkin.py": text}) for learner, text in files.items()], time.perf_counter()
    with mock.patch.object(batch, "try_itself", trying):
        results = batch.run(LAB, submissions, folder / "out", sandbox.choose(), b"secret", {}, JOBS, lambda *_: None)
    return ready[0] - start, time.perf_counter() - ready[0], {"": {r["learner"]: r["score"] for r in results}}


def pytest(files: dict, folder: Path) -> tuple:
    tests = "\n\n".join(f"def test_{name}():\n{indent(text, '    ')}\n" for name, text in ASSERTS.items())
    for learner, text in files.items():
        put(text, folder / learner / "napkin.py")
        put(f"from napkin import *\n{HELPERS}\n\n{tests}", folder / learner / "test_napkin.py")

    def one(learner):
        status, _ = run(folder / learner, sys.executable, "-m", "pytest", "-q", "--junit-xml=report.xml", "test_napkin.py")
        report = folder / learner / "report.xml"
        tests = ElementTree.parse(report).iter("testcase") if report.exists() else ()
        return MOST * (status == 0), sum(POINTS.get(test.get("name")[5:], 0) for test in tests if not len(test))

    found, seconds = side_by_side(one, files)
    return None, seconds, {
        ", by its status": {learner: status for learner, (status, _) in found.items()},
        ", by its report": {learner: report for learner, (_, report) in found.items()},
    }


def notebook(text: str) -> str:
    def cell(name, source, **marks):
        kind = {"schema_version": 3, "grade_id": name, "grade": False, "solution": False, "locked": False, "task": False, **marks}
        return {"id": name, "cell_type": "code", "execution_count": None, "outputs": [], "metadata": {"nbgrader": kind}, "source": source}

    cells = [cell("answers", text, solution=True), cell("helpers", HELPERS, locked=True)]
    cells += [cell(name, asserts, grade=True, locked=True, points=POINTS[name]) for name, asserts in ASSERTS.items()]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return json.dumps({"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5})


def nbgrader(files: dict, folder: Path) -> tuple:
    put(notebook(STARTER), folder / "class/source/lab01/napkin.ipynb")
    run(folder / "class", "nbgrader", "generate_assignment", "lab01")
    _, start_up = run(folder / "class", "nbgrader", "autograde", "lab01")
    for learner, text in files.items():
        put(notebook(text), folder / f"class/submitted/{learner}/lab01/napkin.ipynb")
    _, seconds = run(folder / "class", "nbgrader", "autograde", "lab01")
    run(folder / "class", "nbgrader", "export", "--to=grades.csv")
    with (folder / "class/grades.csv").open(encoding="utf-8") as rows:
        return start_up, seconds - start_up, {"": {row["student_id"]: row["score"] for row in csv.DictReader(rows)}}


def otter(files: dict, folder: Path) -> tuple:
    for name, asserts in ASSERTS.items():
        head = f"from otter.test_files import test_case\n\n{HELPERS}\n\nOK_FORMAT = False\nname = {name!r}\npoints = {POINTS[name]}\n"
        put(f"{head}\n\n@test_case()\ndef test_{name}({name}):\n{indent(asserts, '    ')}\n", folder / f"class/tests/{name}.py")
    run(folder / "class", "otter", "generate", "-t", "tests", "-o", "autograder.zip")

    def one(learner):
        put(files[learner], folder / learner / "napkin.py")
        run(folder / learner, "otter", "run", "-a", "../class/autograder.zip", "napkin.py")
        results = folder / learner / "results.json"
        return sum(test.get("score", 0) for test in json.loads(results.read_text())["tests"]) if results.exists() else None

    marks, seconds = side_by_side(one, files)
    return None, seconds, {"": marks}


def graders() -> dict:
    """{name: function, or None where it is not installed}"""
    there = {each.name: each.version for each in distributions(path=[*map(str, PEERS.glob("lib/python3*/site-packages"))])}
    found = {f"this course, {sandbox.choose()}": ours, f"pytest {version('pytest')}": pytest}
    for name, function in (("nbgrader", nbgrader), ("otter-grader", otter)):
        found[f"{name} {there.get(name, '')}".strip()] = function if name in there else None
    return found


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ask.add_argument("--fast", type=int, default=100, help="submissions for this course and pytest")
    ask.add_argument("--slow", type=int, default=4, help="submissions for nbgrader and Otter-Grader")
    ask.add_argument("--rounds", type=int, default=3)
    args, found = ask.parse_args(), graders()
    classes = {name: {f"learner{i}": RIGHT if i % 4 else WRONG for i in range(args.fast if grade in (ours, pytest) else args.slow)}
               for name, grade in found.items() if grade}  # fmt: skip
    times, marks = {name: [] for name in classes}, {}
    with tempfile.TemporaryDirectory(prefix="class-") as scratch:
        sandbox.course_copy(Path(scratch) / "course")

        def graded(name, files):
            with tempfile.TemporaryDirectory(dir=scratch) as folder:
                return found[name](files, Path(folder))

        for name in classes:
            _, _, marks[name] = graded(name, FILES)
        for name, files in [*classes.items()] * args.rounds:
            start_up, seconds, read = graded(name, files)
            if any((float(points[who] or 0) == MOST) != (files[who] == RIGHT) for points in read.values() for who in files):
                sys.exit(f"{name} was timed, but did not mark rightly: {read}")
            times[name].append((start_up or 0, seconds))
    rows, first = [], None
    for name, files in classes.items():
        start_up, seconds = (statistics.median(column) for column in zip(*times[name]))
        rate = len(files) / seconds
        first = first or rate
        rows.append((name, 1 if found[name] is nbgrader else JOBS, len(files), f"{rate:.2f}", f"{first / rate:.1f}",
                     f"{start_up:.1f}" if start_up else "in each"))  # fmt: skip
    missing = [(f"{name}: not installed, make peers", *[""] * 5) for name, grade in found.items() if not grade]
    head = ("a class of ordinary files", "at once", "files", "a second", "times slower", "start-up, s")
    print(table(head, rows + missing), end="\n\n")
    rows = [(name + how, *("none" if points.get(file) is None else f"{float(points[file]):g}" for file in FILES))
            for name in classes for how, points in marks[name].items()]  # fmt: skip
    print(table((f"points, of {MOST}", *FILES), rows + missing))


if __name__ == "__main__":
    main()
