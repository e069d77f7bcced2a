"""What is a submission worth, and which mistakes are in it? The judge's side: it holds the answers, and runs no
learner's code.

Every function is judged on the learner's own helpers, together with the others and, if it fails so, in a process of its
own; and if it still fails where a helper is not right, with the calls to its prerequisites answered by the judge. The
best result counts, so one mistake costs one mark.
"""

import functools
import hashlib
import hmac
import random
import re
import sys
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

from costlib import exercise as switch
from costlib.domain import ManifestError
from costlib.exercise import ROOT, using
from costlib.ledger import Ledger
from labs import alike, holes, judge, loop, spec, wire
from labs.sandbox import KEPT_OUTPUT, LIMITS, Gone, Worker, nonce, placed, process_limits

DRAWN = 6  # further cases for each function, by the seed
JUDGING = ("judge", "marking", "sandbox", "spec", "syscalls", "wire", "worker")
SECRET = b"costlib"  # a course that marks uses its own
TEXTS = {
    "timeout": f"Stopped after {LIMITS['case_seconds']} s. The formula needs no loop over tokens or scalars.",
    "died": "Your function ended Python (os._exit or a crash). Remove the call that exits.",
    "missing": "There is no function of this name in your file. It must be called exactly so, at the top level.",
    "not-implemented": "Still the starter: nothing is written here yet.",
    "inconsistent": "The same call gave two answers. A function must depend on its arguments alone.",
    "unknown": "No known mistake gives this answer. Work the case by hand, with every size 1, then with one size 2.",
    "hidden-error": "All shown cases are right; in another one your function raises an error.",
    "more": "All shown cases are right; some others are not. Which argument did you not use?",
    "flood": "Too much was printed or sent. Take the print out of the loop.",
}


def seed_for(secret: bytes, lab: str, learner: str) -> str:
    """The seed of a learner's further cases: the same each time, and not to be guessed without the secret."""
    return hmac.new(secret, f"{lab}/{learner}".encode(), hashlib.sha256).hexdigest()


@functools.cache
def version(number: str) -> str:
    """Which edition of the lab judged: the start of a hash of its specification and of all that a mark depends on."""
    spec.load(number)
    files = [Path(sys.modules[spec.numbers()[number]].__file__), *(ROOT / f"labs/{name}.py" for name in JUDGING)]
    files += sorted((ROOT / "solutions").glob("*.py"))
    texts = [file.read_text(encoding="utf-8") for file in files]
    texts += [holes.empty(file.read_text(encoding="utf-8")) for file in sorted((ROOT / "costlib").glob("*.py"))]
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:12]


@functools.cache
def earlier(number: str) -> frozenset:
    """The exercises of the labs before this one: their answers are taken for granted."""
    labs = [spec.load(other) for other in spec.numbers() if other < number]
    return frozenset(lab.path(exercise) for lab in labs for exercise in lab.exercises)


@functools.cache
def prerequisites(number: str, name: str) -> frozenset:
    """The exercises that the reference of this one calls, directly or through others, on its cases and on many drawn."""
    lab = spec.load(number)
    exercise, called, answer = lab[name], set(), switch._answer

    def listening(path, *rest):
        called.add(path)
        return answer(path, *rest)

    switch._answer = listening
    try:
        with using("solutions"):
            for case in (*exercise.cases, *exercise.draws(60, "prerequisites")):
                judge.call(judge.function(lab, exercise), case)
    finally:
        switch._answer = answer
    return frozenset(called - {lab.path(exercise)})


def cases(exercise: spec.Exercise, seed: str, overlay=()) -> list[tuple[str, spec.Case]]:
    """(id, case): the public ones, those drawn by the seed, the instructor's own."""
    named = [(f"public-{i}", case) for i, case in enumerate(exercise.cases)]
    named += [(f"drawn-{i}", case) for i, case in enumerate(exercise.draws(DRAWN, seed))]
    return named + [(f"overlay-{i}", case) for i, case in enumerate(overlay)]


def given_away(lab: spec.Lab, exercise: spec.Exercise, rows) -> set:
    """The ids of cases that the starter answers: what is refused before any body runs. They earn nothing."""
    def empty(*args, **kwargs):
        raise switch.Unfilled

    asked = judge.function(lab, exercise)
    written, asked.__wrapped__ = asked.__wrapped__, empty
    try:
        with using("costlib"):
            return {key for key, case, wanted in rows
                    if isinstance(wanted, spec.Refused) and isinstance(judge.call(asked, case), spec.Refused)}  # fmt: skip
    finally:
        asked.__wrapped__ = written


def worths(exercise: spec.Exercise, rows) -> dict[str, Fraction]:
    """What each case is worth. Cases that ask for the same answer share: a constant earns no more than one answer."""
    asked = {key: repr(dict(wanted) if isinstance(wanted, Ledger) else wanted) for key, _, wanted in rows}
    shared = Counter(asked.values())
    return {key: Fraction(exercise.points, len(shared) * shared[answer]) for key, answer in asked.items()}


@functools.cache
def call_of(number: str, name: str, i: int) -> str:
    """A public case as one would type it."""
    lab = spec.load(number)
    return f"{lab[name].name}({loop.arguments(lab, lab[name], lab[name].cases[i])})"


def answer_for(allowed: frozenset, message: dict) -> dict:
    """The reference's value for a call of a prerequisite; the function under test is never among the allowed."""
    name = message.get("ask")
    if type(name) is not str or name not in allowed:
        return {"error": "not allowed here"}
    module, _, function = name.partition(".")
    try:
        args = [wire.decode(a) for a in message["args"]]
        kwargs = {str(k): wire.decode(v) for k, v in message["kwargs"].items()}
        with using("solutions"), judge.time_limit(1):
            asked = getattr(__import__(f"costlib.{module}", fromlist=[function]), function)
            return {"value": wire.encode(asked(*args, **kwargs))}
    except ManifestError as refusal:
        return {"refused": [refusal.code, refusal.detail]}
    except Exception as error:
        return {"error": type(error).__name__}


def received(message: dict, path: str = ""):
    """(status so far, value) of a reply: "" where the value has still to be compared. A learner's process may have
    written the reply itself, so nothing in it is taken for what it should be."""
    error, refused = message.get("error"), message.get("refused")
    if "unfilled" in message:
        helper = _shown(message["unfilled"])
        return ("not-implemented", TEXTS["not-implemented"]) if helper in ("", path) else ("error", f"It calls {helper}, which is still empty.")
    if "error" in message:
        kind, text, line = error if type(error) is list and len(error) == 3 else ("an error", "", 0)
        where = f" (line {line})" if type(line) is int and 0 < line < 10**6 else ""
        return "error", f"It raised {_shown(kind)}{': ' * bool(text)}{_shown(text)}{where}."
    if type(refused) is list and len(refused) == 2:
        code, text = map(_shown, refused)
        return ("error", text) if code == "RETURN" else ("", spec.Refused(code))
    try:
        return "", wire.decode(message["value"])
    except Exception:  # of a value that no function gave
        return "error", "The answer is too large, or of a kind that no exercise gives."


def _shown(text) -> str:
    """What came from a learner, on one line and without control characters."""
    return re.sub(r"[^\x20-\x7e\u00a0-\ud7ff]+", " ", re.sub(":(?=:)", ": ", str(text)))[:200]


def status_of(wanted, got) -> str:
    if judge.same(got, wanted):
        return "pass"
    plain = [dict if isinstance(x, (Ledger, dict)) else type(x) for x in (got, wanted)]
    refused = spec.Refused in plain
    return "fail" if plain[0] is plain[1] or refused else "wrong-type"


class Box:
    """The sandbox of one submission, started again when it is gone."""

    def __init__(self, backend, start, modules, given, until):
        self.backend, self.start, self.modules, self.given, self.until = backend, start, modules, given, until
        self.worker, self.output, self.trouble = None, b"", None

    def open(self) -> None:
        """A worker that has read the file, or self.trouble: (status, what to say) of a file that cannot be read."""
        if self.worker or self.trouble:
            return
        try:
            self.worker = self.start()
            self.worker.say({"modules": self.modules, "limits": process_limits(self.backend), "answered": sorted(self.given)}, 5)
            reply = heard(self.worker, self.given, time.monotonic() + LIMITS["import_seconds"])
        except Gone as gone:
            how = "ended Python" if gone.how == "died" else "did not come to an end" if gone.how == "timeout" else "printed too much"
            self.trouble = gone.how if gone.how in ("died", "timeout") else "error", f"Your file {how} while it was being imported."
        else:
            if "ready" not in reply:
                _, text = received({"error": reply.get("import")})
                self.trouble = "error", f"Your file cannot be imported. {text}"
        if self.trouble:
            self.close()

    def rest(self) -> None:
        """An end to the process that functions share. The file need not be read again where nothing of it runs on."""
        if self.worker is not None:
            try:
                self.worker.say({}, 2)
                if "ended" not in self.worker.hear(2) or not self.worker.alone():
                    self.close()
            except Gone:
                self.close()

    def close(self) -> None:
        if self.worker is not None:
            self.worker.close()
            self.output += self.worker.output[: KEPT_OUTPUT - len(self.output)]
            self.worker = None


def question(case) -> dict:
    """What the worker is told of a case."""
    return {"args": [wire.encode(a) for a in case.args], "kwargs": {k: wire.encode(v) for k, v in case.kwargs.items()}}


@functools.cache
def public_questions(number: str, name: str) -> dict:
    """The same of the public cases, which all learners get."""
    return {f"public-{i}": question(case) for i, case in enumerate(spec.load(number)[name].cases)}


def try_function(box, lab, path, todo, allowed, careful) -> dict:
    """{case id: (status, value or text)} of one function."""
    found, mark = {}, nonce()
    ids = [f"{mark}-{i}" for i in range(len(todo))]
    public = public_questions(lab.number, path)
    questions = [public.get(key) or question(case) for key, case in todo]
    box.open()
    if box.trouble:
        return {key: box.trouble for key, _ in todo}
    try:
        box.worker.say({"run": path, "answered": sorted(allowed), "careful": careful, "cases": [
            {"id": one} | asked for one, asked in zip(ids, questions)]}, 2)  # fmt: skip
        until = min(time.monotonic() + LIMITS["function_seconds"], box.until)
        for one, (key, _) in zip(ids, todo):
            status, value = reply_to(one, path, box.worker, allowed, until)
            if status == "missing":
                found = {key: (status, value) for key, _ in todo}
                break
            if key in found and not alike_twice(found[key], (status, value)):
                status, value = "inconsistent", TEXTS["inconsistent"]
            found[key] = status, value
        if "ended" not in box.worker.hear(2):
            raise Gone("died")
        return found
    except Gone as gone:
        box.close()
        status = gone.how if gone.how in ("died", "timeout") else "error"
        return {key: found.get(key, (status, TEXTS[gone.how])) for key, _ in todo}


def reply_to(one, path, worker, allowed, until) -> tuple:
    """The function's answer to one case; on the way its calls to prerequisites are answered."""
    until = min(until, time.monotonic() + LIMITS["case_seconds"])
    while True:
        reply = heard(worker, allowed, until)
        if reply.get("id") == one:
            return received(reply, path)
        if "missing" in reply:
            return "missing", TEXTS["missing"]
        if "ended" in reply:  # said by the process that waits for the function's own
            raise Gone("died")


def heard(worker, allowed, until) -> dict:
    """The next reply that asks for nothing."""
    for _ in range(LIMITS["asks"]):
        reply = worker.hear(until - time.monotonic())
        if "ask" not in reply:
            return reply
        worker.say(answer_for(allowed, reply), 2)
    raise Gone("flood")


def alike_twice(one, two) -> bool:
    """Whether two answers to one call are the same. An error may tell of an object's address, and no NaN equals itself."""
    (status, value), (again, another) = one, two
    return status == again and (bool(status) or judge.same(value, another) or repr(value) == repr(another))


ORDER = ("public", "drawn", "overlay")


def judged(lab, exercise, todo, found) -> list[dict]:
    """One row for every case, in the declared order: its status, what was asked for and what came."""
    rows = []
    for key, case in sorted(dict(todo).items(), key=lambda row: (ORDER.index(row[0].partition("-")[0]), int(row[0].partition("-")[2]))):
        (status, value), wanted = found[key], judge.expected(lab, exercise, case)
        rows.append({"id": key, "status": status or status_of(wanted, value), "case": case, "wanted": wanted, "got": value})
    if any(row["status"] == "inconsistent" for row in rows):
        rows = [row | {"status": "inconsistent", "got": TEXTS["inconsistent"]} for row in rows]
    return rows


def hint_for(lab, exercise, rows) -> tuple[str, str]:
    """(name of the mistake, what its author is told), with values of public cases only."""
    failing = [row for row in rows if row["status"] != "pass"]
    if not failing:
        return "", ""
    first, public = failing[0], [row["id"].startswith("public") for row in failing]
    if first["status"] not in ("fail", "wrong-type"):
        return first["status"], first["got"] if public[0] or first["status"] != "error" else TEXTS["hidden-error"]
    values = [((row["case"], row["wanted"], row["got"]), shown) for row, shown in zip(failing, public) if row["status"] in ("fail", "wrong-type")]
    told, mistake = judge.diagnose(exercise, [row for row, _ in values], [row for row, shown in values if shown])
    if not public[0] and not mistake:
        return "hidden", TEXTS["more"]
    return mistake or "unknown", told or TEXTS["unknown"]


def to_cents(shares: list[Fraction]) -> list[Fraction]:
    """Each rounded to a cent, so that they add up to their sum rounded down: the largest remainders get a cent more."""
    cents = [int(share * 100) for share in shares]
    by_remainder = sorted(range(len(shares)), key=lambda i: cents[i] - shares[i] * 100)
    for i in by_remainder[: int(sum(shares) * 100) - sum(cents)]:
        cents[i] += 1
    return [Fraction(each, 100) for each in cents]


def points(share: Fraction) -> str:
    """An exact amount as a decimal of at most two digits, rounded down."""
    cents = int(share * 100)
    return f"{cents // 100}.{cents % 100:02}".rstrip("0").rstrip(".")


def row_of(lab, exercise, row, worth) -> dict:
    shown = row["id"].startswith("public")
    wanted, got = loop.differing(row["wanted"], row["got"]) if shown and row["status"] in ("fail", "wrong-type") else ("", "")
    return {
        "id": row["id"], "status": row["status"], "visibility": "visible" if shown else "hidden",
        "points": points(worth if row["status"] == "pass" else Fraction(0)), "max_points": points(worth),
        "call": call_of(lab.number, lab.path(exercise), int(row["id"].partition("-")[2])) if shown else "",
        "expected": _shown(wanted), "got": _shown(got),
    }  # fmt: skip


def mark(submission, lab: spec.Lab, backend: str, course: Path, secret: bytes = SECRET, overlay=None, slot: int = 0) -> dict:
    """The result of one submission, as labs/result.schema.json has it."""
    seed = seed_for(secret, lab.number, submission.learner)
    result = empty_result(submission, lab, backend, label(seed, overlay))
    if submission.reason:
        return result | {"status": "not-gradable", "reason": submission.reason}
    modules = [module for module in lab.modules if f"{module}.py" in submission.files]
    todo = {e.name: _shuffled(cases(e, seed, (overlay or {}).get(e.name, ())), seed + e.name) for e in lab.exercises}

    def outside(names):
        return frozenset(path for path in names if path.partition(".")[0] not in modules)

    given = outside(earlier(lab.number))
    with placed(backend, course, submission.files, slot) as (place, files):
        box = Box(backend, lambda: Worker(backend, place, files, slot), modules, given, time.monotonic() + LIMITS["submission_seconds"])

        def run(exercise, allowed, careful):
            path = lab.path(exercise)
            return judged(lab, exercise, todo[exercise.name], try_function(box, lab, path, todo[exercise.name], allowed - {path}, careful))

        def again(rows):
            return not _all_right(rows) and not box.trouble and not any(row["status"] in ("missing", "not-implemented") for row in rows)

        alone = {e.name: given | outside(prerequisites(lab.number, lab.path(e))) for e in lab.exercises}
        own = {e.name: run(e, alone[e.name], careful=False) for e in lab.exercises}
        if any(map(again, own.values())):
            box.rest()
        for exercise in lab.exercises:  # a process of its own each: none suffers from what another left behind
            if again(own[exercise.name]):
                own[exercise.name] = max(run(exercise, alone[exercise.name], careful=True), own[exercise.name], key=_passes)
        functions = []
        for exercise in lab.exercises:  # in this order a prerequisite is done with before its answers are given away
            rows, fault = own[exercise.name], []
            needed = prerequisites(lab.number, lab.path(exercise))
            broken = [e.name for e in lab.exercises if lab.path(e) in needed and not _all_right(own[e.name])]
            if broken and again(rows):
                helped = run(exercise, given | needed, careful=True)
                if _passes(helped) > _passes(rows):
                    rows, fault = helped, broken
            unread = box.trouble and (rows[0]["status"], rows[0]["got"]) == box.trouble
            functions.append(entry(lab, exercise, rows, fault) | ({"mistake": "import"} if unread else {}))
        box.close()
    shares = [f.pop("share") for f in functions]
    for function, amount in zip(functions, to_cents(shares)):
        function["score"] = points(amount)
    flags = [f"passes-public-fails-hidden: {f['name']}" for f in functions if _public_only(f)]
    result["submission"]["code_sha256"], published, longer = alike.compared(submission.files, lab.modules)
    if 2 * len(published) > longer:
        flags.append(f"written-as-in-solutions: {len(published)} of the {longer} longer functions: {', '.join(published)}")
    return result | {"status": "graded", "score": points(sum(shares, Fraction(0))), "functions": functions, "flags": flags,
                     "output_excerpt": _excerpt(box.output)}  # fmt: skip


def _shuffled(named, seed):
    """All cases in an order of the seed's, the first of them once more at the end."""
    order = list(named)
    random.Random(seed).shuffle(order)
    return order + order[:1]


def entry(lab, exercise, rows, fault) -> dict:
    """The function's part of the result; `share` is its exact worth."""
    if any(row["status"] == "not-implemented" for row in rows):
        rows = [row | {"status": "not-implemented"} for row in rows]
    asked = [(row["id"], row["case"], row["wanted"]) for row in rows]
    free = given_away(lab, exercise, asked)
    worth = dict.fromkeys(free, Fraction(0)) | worths(exercise, [row for row in asked if row[0] not in free])
    share = sum((worth[row["id"]] for row in rows if row["status"] == "pass"), Fraction(0))
    try:
        mistake, hint = hint_for(lab, exercise, rows)
    except Exception:  # a mark counts also where a value is so odd that nothing can be said of it
        mistake, hint = "unknown", TEXTS["unknown"]
    return {
        "name": exercise.name, "share": share, "score": "", "max_score": points(Fraction(exercise.points)),
        "status": next((row["status"] for row in rows if row["status"] != "pass"), "pass"),
        "run": "helped" if fault else "own", "at_fault": fault, "mistake": mistake, "hint": hint,
        "cases": [row_of(lab, exercise, row, worth[row["id"]]) for row in rows],
    }  # fmt: skip


def _passes(rows) -> int:
    return sum(row["status"] == "pass" for row in rows)


def _all_right(rows) -> bool:
    return _passes(rows) == len(rows)


def _public_only(function) -> bool:
    """Every shown case right and every other wrong: perhaps written down, not computed."""
    by = {kind: [c["status"] == "pass" for c in function["cases"] if c["visibility"] == kind] for kind in ("visible", "hidden")}
    return bool(by["hidden"]) and all(by["visible"]) and not any(by["hidden"])


def _excerpt(output: bytes) -> str:
    text = output.decode("utf-8", "replace")
    return re.sub(r"[^\n\x20-\x7e\u00a0-\ud7ff]", "\ufffd", re.sub(":(?=:)", ": ", text))[:KEPT_OUTPUT]


def label(seed: str, overlay) -> str:
    """What a result says of its further cases: enough to see that two were marked alike, nothing of the seed."""
    own = {name: [repr(case) for case in cases] for name, cases in sorted((overlay or {}).items())}
    return hashlib.sha256(f"{seed} {own}".encode()).hexdigest()[:12]


def empty_result(submission, lab, backend, seed) -> dict:
    return {
        "schema": "costlib/result/1", "lab": lab.number, "lab_version": version(lab.number), "learner": submission.learner,
        "submission": {"name": submission.name[:200], "sha256": submission.sha256, "received": submission.received,
                       "late_seconds": submission.late_seconds},
        "seed": seed,
        "sandbox": {"backend": backend, "limits": dict(LIMITS), "python": ".".join(map(str, sys.version_info[:3]))},
        "status": "graded", "reason": "", "score": "0", "max_score": points(Fraction(sum(e.points for e in lab.exercises))),
        "functions": [], "output_excerpt": "", "flags": [], "unexpected_files": list(submission.unexpected)[:50],
    }  # fmt: skip
