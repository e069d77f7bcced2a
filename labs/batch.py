"""How is a class marked? Every submission in a sandbox, one result file for each learner.

Before any submission the grader is tried on itself: the reference must get everything, the starter nothing, an endless
loop must be stopped, and a file that looks for the answers must find none. Else nothing is marked: a broken grader
hands out no zeros. A result is written whole or not at all, and one that is there already is kept, so a batch that was
interrupted goes on where it stopped.
"""

import contextlib
import importlib.util
import json
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

from costlib.domain import ManifestError
from costlib.exercise import ROOT
from labs import holes, intake, marking, sandbox, spec
from labs.exports import clean

MOST_MEMORY = 2**31  # bytes of a judging process
PROBE = '''
import os, sys
try:
    import solutions
except ImportError:
    pass
else:
    raise SystemError("import solutions works")
for place, folders, files in os.walk("/"):
    folders[:] = [] if place in ("/proc", "/sys", "/dev") else folders
    if "solutions" in folders or "spec.py" in files and "judge.py" in files:
        try:
            os.listdir(os.path.join(place, "solutions") if "solutions" in folders else place)
        except OSError:
            continue
        raise SystemError("the answers can be read in " + place)
'''


class Broken(RuntimeError):
    """The grader itself does not work; the text says in what way."""


def overlay(folder: Path, numbers) -> dict:
    """{exercise name: the instructor's own cases} of these labs, from FOLDER/overlay_01.py with its CASES."""
    found: dict[str, list] = {}
    for number in numbers:
        file = folder / f"overlay_{number}.py"
        if not file.is_file():
            continue
        module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(file.stem, file))
        try:
            module.__spec__.loader.exec_module(module)
            rows = {spec.load(number)[name].name: list(cases) for name, cases in module.CASES.items()}
        except Exception as error:
            raise ManifestError("INCONSISTENT", f"{file}: {type(error).__name__}: {error}; it holds CASES = "
                                                '{"matmul_flops": [given(2, 3, 5).gives(60)]}') from None  # fmt: skip
        for name, cases in rows.items():
            if any(type(case) is not spec.Case or case.expected is None for case in cases):
                raise ManifestError("MISSING", f"{file}: a case of {name} has no answer; write given(...).gives(...) or .refuses(...)")
            found.setdefault(name, []).extend(cases)
    return found


def own(name: str, files: dict[str, str]) -> intake.Submission:
    texts = {file: text.encode() for file, text in files.items()}
    return intake.Submission(learner=name, name=name, files=texts, unexpected=(), sha256=intake.digest(texts))


def starter_and_reference(lab: spec.Lab, course: Path) -> tuple[dict, dict]:
    """The lab's files with every hole empty, and the same with the reference's bodies in them."""
    starter = {f"{m}.py": (course / f"costlib/{m}.py").read_text(encoding="utf-8") for m in lab.modules}
    answers = {f"{m}.py": (ROOT / f"solutions/{m}.py").read_text(encoding="utf-8") for m in lab.modules}
    return starter, {file: holes.filled(text, answers[file], file[:-3]) for file, text in starter.items()}


def try_itself(lab: spec.Lab, backend: str, course: Path) -> None:
    """Mark four files whose marks are known; Broken where one comes out otherwise."""
    starter, reference = starter_and_reference(lab, course)
    last = lab.exercises[-1]
    module, name = lab.path(last).split(".")
    endless = reference | {f"{module}.py": reference[f"{module}.py"] + f"\n\ndef {name}(*args, **kwargs):\n    while True:\n        pass\n"}
    searching = {file: PROBE + text for file, text in starter.items()}

    def marked(what, files):
        result = marking.mark(own(what, files), lab, backend, course)
        return result, [f["status"] for f in result["functions"]]

    result, _ = marked("reference", reference)
    if result["score"] != result["max_score"]:
        said = next(f"{f['name']}: {f['hint']}" for f in result["functions"] if f["status"] != "pass")
        raise Broken(f"the reference gets {result['score']} of {result['max_score']} points in the sandbox ({said})")
    result, states = marked("starter", starter)
    if result["score"] != "0" or set(states) != {"not-implemented"}:
        raise Broken(f"the untouched starter gets {result['score']} points")
    patience, sandbox.LIMITS["case_seconds"] = sandbox.LIMITS["case_seconds"], 0.5  # to see that it is stopped
    try:
        _, states = marked("endless", endless)
    finally:
        sandbox.LIMITS["case_seconds"] = patience
    if states[-1] != "timeout":
        raise Broken(f"an endless loop ends as {states[-1]}")
    result, states = marked("searching", searching)
    if backend != "none" and set(states) != {"not-implemented"}:
        hint = result["functions"][0]["hint"]
        raise Broken(f"a learner's file can reach the answers ({hint}); take others' rights to that folder: chmod -R o= FOLDER")


def file_of(out: Path, lab: spec.Lab, learner: str) -> Path:
    return out / f"lab{lab.number}-{learner}.json"


def kept(file: Path, expected: dict) -> bool:
    """Whether a result of exactly this marking is there already."""
    with contextlib.suppress(OSError, ValueError, AttributeError, KeyError, TypeError):
        there = json.loads(file.read_text(encoding="utf-8"))
        there["submission"].pop("code_sha256", None)  # made while marking
        return there["status"] != "grader-broken" and all(there.get(key) == expected[key] for key in AS_BEFORE)
    return False


AS_BEFORE = ("schema", "lab", "lab_version", "learner", "submission", "seed", "sandbox")
_slot = 0


def _begin(numbers) -> None:
    """A process of the pool: a slot of its own, and Ctrl-C left to the parent."""
    global _slot
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))  # for what a learner's code may ask the reference
    with numbers.get_lock():
        _slot = numbers.value
        numbers.value += 1


def unmarked(submission, lab, backend, secret, cases) -> dict:
    """A result before anything is marked: it says of what and how."""
    return marking.empty_result(submission, lab, backend, marking.label(marking.seed_for(secret, lab.number, submission.learner), cases))


def broken(submission, lab, backend, secret, cases, why) -> dict:
    return unmarked(submission, lab, backend, secret, cases) | {"status": "grader-broken", "reason": why}


def _one(submission, number, backend, course, secret, cases) -> dict:
    lab = spec.load(number)
    try:
        return marking.mark(submission, lab, backend, course, secret, cases, _slot)
    except Exception:
        where = traceback.format_exc().strip().splitlines()
        return broken(submission, lab, backend, secret, cases, f"the grader failed: {where[-1][:200]}")


def each(todo, jobs, *options):
    """Every result, in the order in which they are done. Where the system ends one of the processes side by
    side, what is left is marked one by one, so that only whom it strikes has no mark."""
    context, left = multiprocessing.get_context("fork"), dict(enumerate(todo))

    def pool(size):
        return ProcessPoolExecutor(size, context, _begin, (context.Value("i", 0),))

    with contextlib.suppress(BrokenProcessPool), pool(jobs) as many:
        waiting = {many.submit(_one, submission, *options): i for i, submission in left.items()}
        try:
            for done in as_completed(waiting):
                result = done.result()
                del left[waiting[done]]
                yield result
        finally:
            for future in waiting:
                future.cancel()
        return
    lab, (number, backend, _, secret, cases) = spec.load(options[0]), options
    for submission in left.values():
        with pool(1) as one:
            try:
                yield one.submit(_one, submission, *options).result()
            except BrokenProcessPool:
                yield broken(submission, lab, backend, secret, cases, "the system ended the process that judged it; out of memory?")


def write(file: Path, result: dict) -> None:
    """The whole result or none of it."""
    new = file.with_name(f".{file.name}.new")
    new.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    os.replace(new, file)


def run(lab, submissions, out: Path, backend: str, secret: bytes, cases: dict, jobs: int, say) -> list[dict]:
    """Mark what has no result yet; every new result is written as soon as it is there."""
    out.mkdir(parents=True, exist_ok=True)
    todo = []
    for submission in submissions:
        expected = unmarked(submission, lab, backend, secret, cases)
        if not (submission.sha256 and kept(file_of(out, lab, submission.learner), expected)):
            todo.append(submission)
    say(len(submissions) - len(todo), len(submissions))
    new = []
    with tempfile.TemporaryDirectory(prefix="course-") as scratch:
        folder = Path(scratch)
        folder.chmod(0o711)  # no other user finds what lies in it by looking
        course = sandbox.course_copy(folder / "course")
        if not all(submission.reason for submission in todo):
            try_itself(lab, backend, course)
        for result in each(todo, jobs, lab.number, backend, course, secret, cases):
            write(file_of(out, lab, result["learner"]), result)
            new.append(result)
            say(len(submissions) - len(todo) + len(new), len(submissions))
    return new


def python() -> str:
    """This Python as one would type it here."""
    here = os.path.relpath(sys.executable)
    return "python" if here.startswith(os.pardir) else here


def bar(done: int, of: int) -> None:
    """How far it is, where somebody is looking."""
    if sys.stderr.isatty():
        filled = 30 * done // max(of, 1)
        end = "\n" if done == of else ""
        print(f"\r[{'#' * filled}{'.' * (30 - filled)}] {done} of {of}", end=end, file=sys.stderr, flush=True)


def main(args) -> int:
    """0: every submission has a result. 2: none, or not all; the text says why."""
    lab = spec.load(args.lab)
    secret = args.secret_file.read_bytes().strip() if args.secret_file else marking.SECRET
    if not secret:
        raise ManifestError("MISSING", f"{args.secret_file} is empty; a secret: python3 -c 'import secrets; print(secrets.token_hex())'")
    if args.jobs < 0:
        raise ManifestError("NONPOS", f"--jobs {args.jobs}; 1 or more")
    if gone := [str(path) for path in args.submissions if not os.path.lexists(path)]:
        raise ManifestError("MISSING", f"{gone[0]} is not there; name folders, zips, .py files or notebooks that are")
    cases = overlay(args.overlay, [lab.number]) if args.overlay else {}
    latest = [all_of_one[-1] for all_of_one in intake.take_all(args.submissions, lab, args.due, "files" if args.due else None).values()]
    if args.learner:
        if len(latest) != 1:
            raise ManifestError("RANGE", f"--learner {args.learner} names one learner; these are {len(latest)}")
        latest = [replace(latest[0], learner=intake.learner_id(args.learner))]
    try:
        backend = sandbox.choose(args.trusted)
        run(lab, latest, args.out, backend, secret, cases, args.jobs or os.cpu_count() or 1, bar)
    except (sandbox.NoSandbox, Broken) as error:
        print(f"Marking stopped: {error}", file=sys.stderr)
        return 2
    results = [json.loads(file_of(args.out, lab, s.learner).read_text(encoding="utf-8")) for s in latest]
    states = {state: [r["learner"] for r in results if r["status"] == state] for state in ("graded", "not-gradable", "grader-broken")}
    print(f"Lab {lab.number}: {len(states['graded'])} of {len(results)} submissions marked in {args.out} ({backend}).")
    for result in results:
        if result["status"] != "graded":
            print(f"  {result['learner']}: {result['status']}: {clean(result['reason'])}")
    if not args.secret_file:
        print("Further cases were drawn without a secret, so they can be foreseen: --secret-file for marks that count.")
    print(f"Next: {python()} -m labs export {args.out} --to report --out report.html")
    return 2 if states["grader-broken"] else 0
