"""What does a class get? A folder from an allow-list, with holes, the loop, and every lab as data; or nothing at all.

    python -m labs release all --out class.zip [--book _build/html]

Three things hold answers in this repository: `solutions`, the bodies that somebody has written into `costlib`, and the
specifications of the labs, whose named mistakes are functions beside the truth. The first is not on the list, the
second are emptied by their syntax trees, the third become values at the public cases (labs/released.py reads them).
What is then in the folder must pass labs/leaks.py, else no archive is written. The same tree gives the same bytes.
"""

import hashlib
import json
import os
import re
import sys
import tempfile
import zipfile
from fractions import Fraction
from pathlib import Path

from costlib import exercise as switch
from costlib.domain import ManifestError
from costlib.exercise import ROOT, using
from costlib.ledger import Ledger
from costlib.records import Record
from labs import batch, holes, judge, leaks, loop, marking, spec, wire
from labs.leaks import prove

EDITION = "labs/edition"
MODULES = (
    "__init__ __main__ activations domain estimate evidence exercise faults fixtures forward hardware hypotheses latent ledger "
    "manifest napkin ownership papers params phases policies published reconcile records report schema sensitivity state traffic "
    "training units"
).split()

# (files, how they are made, why they are there), in the order in which they are laid down.
MANIFEST = (
    (("LICENSE", "LICENSE-text"), "copied", "the terms"),
    (("README.md",), "filled", "the two commands, and what there is to write"),
    (("Makefile", "pyproject.toml", "requirements.txt"), "edition", "env, lab, hint, progress, submit, on the standard library"),
    (tuple(f"costlib/{name}.py" for name in MODULES), "emptied", "the program: what is given, and every hole empty"),
    (("costlib/adapters/*.py", "costlib/observe/__init__.py"), "copied", "what `python -m costlib` imports"),
    (("costlib/data/__init__.py", "costlib/data/**/*.json"), "copied", "the manifests and figures that the program reads"),
    (("labs/__init__.py",), "edition", "what a notebook has of the loop"),
    (("labs/__main__.py", "labs/holes.py", "labs/judge.py", "labs/loop.py", "labs/spec.py", "labs/wire.py", "labs/released.py", "labs/intake.py", "labs/submit.py"),
     "copied", "the loop and its commands, and what makes the file to hand in"),
    (("labs/released/labNN.json", "labs/labNN_NAME.py"), "as data", "the labs that are asked for"),
    (("chapters/**/*.md", "labs/labNN_NAME.md"), "pages", "what a hole says to read: pages of _toc.yml, labs' where asked for"),
    (("book/**",), "book", "the built book, where there is one"),
    (("SHA256SUMS",), "summed", "what was handed out"),
)  # fmt: skip

# In a page and in what its cells print: the folder that an edition does not have, and the reference that answers no call.
_OWN = "In this edition your functions call your own, so write them in this order."
_CODE = r"(?:`|(?:<[^<>]+>)+)"
REWORDED = (
    (rf"Then compare with {_CODE}solutions/\w+\.py{_CODE}", "Then ask your instructor for the reference and compare"),
    (r" Compare with solutions/\w+\.py, then `make progress` for the next one\.", " `make progress` says what is next."),
    (r" Compare with solutions/\w+\.py\.", ""),
    (r"While (?:a|one)(?: function)? is judged, [a-z ]+ are answered by the reference(?:, [^.]+)?\.", _OWN),
    (r"A hole that you have not filled is answered by the reference, [^.]+\.", _OWN),
)
STUB = '''"""Lab {0} as data: labs/released/lab{0}.json."""

from labs.released import lab

LAB = lab("{0}")
'''
BOOK_LEFT_OUT = {".buildinfo", ".DS_Store", ".nojekyll"}
WHEN = (2000, 1, 1, 0, 0, 0)  # of every file in the archive


class Leak(RuntimeError):
    """The folder shows what it must not; nothing was written."""


def build(labs, out: Path, book: Path | None = None, hidden: leaks.Hidden = leaks.Hidden()) -> Path:
    """The student edition of these labs as a zip; Leak, and no zip, if it would show a solution."""
    numbers = wanted(labs)
    with tempfile.TemporaryDirectory(prefix="release-") as scratch:
        tree = Path(scratch).resolve() / ("costlib-labs" if numbers == [*spec.numbers()] else f"costlib-labs-{'-'.join(numbers)}")
        lay_down(tree, numbers, book)
        if found := prove(tree, hidden):
            raise Leak("\n  ".join(["This edition would show what it must not, and was not written:", *found]))
        out.parent.mkdir(parents=True, exist_ok=True)
        unfinished = out.with_name(f"{out.name}.part")
        pack(tree, unfinished)
        os.replace(unfinished, out)
    return out


def wanted(labs) -> list[str]:
    """The numbers of the labs, in order, with no lab missing that another calls."""
    words = " ".join(labs).replace(",", " ").split()
    if not words:
        raise ManifestError("ENUM", "name the labs: make release LAB=all, or LAB='01 03'")
    if words == ["all"]:
        return [*spec.numbers()]
    numbers = sorted({spec.load(word).number for word in words})
    homes = {lab.path(e): lab.number for lab in map(spec.load, spec.numbers()) for e in lab.exercises}
    for number in numbers:
        lab = spec.load(number)
        needs = {homes[path] for e in lab.exercises for path in marking.prerequisites(number, lab.path(e))}
        if missing := sorted(needs - {*numbers}):
            every = " ".join(sorted({*numbers, *needs}))
            raise ManifestError("MISSING", f"lab {number} calls functions of lab {', '.join(missing)}, which the edition would "
                                           f"leave empty: release {every}")  # fmt: skip
    return numbers


def lay_down(tree: Path, numbers: list[str], book: Path | None = None) -> None:
    """Write every file of the manifest into a new folder."""
    made = {}
    for names, how, _ in MANIFEST:
        made |= MAKERS[how](names, numbers, book, made)
    for name, text in made.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(text)


def sources(names) -> dict[str, Path]:
    """The repository's files of these names and patterns, in order. A named one must be there."""
    found = {}
    for name in names:
        matches = sorted(ROOT.glob(name))
        if not matches:
            raise ManifestError("MISSING", f"the release's manifest names {name}, which is not there; see MANIFEST in labs/release.py")
        for path in matches:
            if path.is_symlink() or not path.resolve().is_relative_to(ROOT):
                raise ManifestError("UNDECLARED", f"{path.relative_to(ROOT)} is a link; an edition holds files only")
            found[path.relative_to(ROOT).as_posix()] = path
    return found


def copied(names, numbers, book, made) -> dict[str, bytes]:
    return {name: path.read_bytes() for name, path in sources(names).items()}


def edition(names, numbers, book, made) -> dict[str, bytes]:
    """Files of the edition's own, kept in labs/edition; its __init__ there without the underscores."""
    return {name: (ROOT / EDITION / Path(name).name.replace("__", "")).read_bytes() for name in names}


def filled(names, numbers, book, made) -> dict[str, bytes]:
    """The README, for these labs."""
    labs = [spec.load(number) for number in numbers]
    rows = ["| lab | file | functions | points | about |", "|---|---|---|---|---|"]
    for lab in labs:
        points, minutes = (sum(getattr(e, name) for e in lab.exercises) for name in ("points", "minutes"))
        written = ", ".join(f"`costlib/{module}.py`" for module in lab.modules)
        rows.append(f"| {lab.number}, {lab.title} | {written} | {len(lab.exercises)} | {points} | {fixed_hours(minutes)} |")
    read = "`chapters/` and the `.md` files of `labs/`, as text."
    if book:
        read = "`book/index.html` in a browser: the pages of `chapters/` and `labs/`, with what their cells print."
    text = (ROOT / EDITION / "README.md").read_text(encoding="utf-8")
    parts = {"first": labs[0].number, "exercise": labs[0].exercises[0].name, "labs": "\n".join(rows), "pages": read}
    return {"README.md": text.format(**parts).encode()}


def fixed_hours(minutes: int) -> str:
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


# What holds answers


def emptied(names, numbers, book, made) -> dict[str, bytes]:
    return {name: holes.empty(path.read_text(encoding="utf-8")).encode() for name, path in sources(names).items()}


def as_data(names, numbers, book, made) -> dict[str, bytes]:
    """A lab as JSON, and the three lines that make a specification of it."""
    found = {}
    for number in numbers:
        stem = spec.numbers()[number].rpartition(".")[2]
        text = json.dumps(lab_data(spec.load(number)), indent=None, separators=(",", ":"), sort_keys=True)
        found[f"labs/released/lab{number}.json"] = text.replace('{"args"', '\n{"args"').encode() + b"\n"
        found[f"labs/{stem}.py"] = STUB.format(number).encode()
    return found


def lab_data(lab: spec.Lab) -> dict:
    """All that the loop needs of a lab without calling a reference or a model."""
    return {
        "lab": lab.number, "title": lab.title, "module": lab.module,
        "exercises": [
            {
                **{name: getattr(e, name) for name in ("name", "points", "minutes", "lines", "module")}, "hints": [*e.hints],
                "cases": [case_data(lab, e, case) for case in e.cases],
                "wrong": [
                    {"name": w.name, "text": w.text, "answers": [wrong_answer(lab, e, w, case) for case in e.cases]} for w in e.wrong
                ],
            }
            for e in lab.exercises
        ],
    }  # fmt: skip


def case_data(lab, exercise, case) -> dict:
    wanted = judge.expected(lab, exercise, case)
    answer = {"refused": wanted.code} if isinstance(wanted, spec.Refused) else {"gives": wire.encode(wanted)}
    data = {"args": [wire.encode(a) for a in case.args], "kwargs": {k: wire.encode(v) for k, v in case.kwargs.items()}, **answer}
    if '["other"' in json.dumps(data):
        where = f"{exercise.name}, lab {lab.number}"
        raise ManifestError("TYPE", f"a public case of {where} holds a value that is not data; see labs/wire.py")
    return data


def wrong_answer(lab, exercise, wrong, case):
    """What a named mistake answers to a case, None where that is right, refused or nothing."""
    wanted = judge.expected(lab, exercise, case)
    with using("solutions"):
        got = judge.call(wrong.model, case)
    if isinstance(got, (judge.Raised, spec.Refused)) or isinstance(wanted, spec.Refused) or judge.same(got, wanted):
        return None
    answer = wire.encode(got)
    return None if '["other"' in json.dumps(answer) else answer


# Pages


def reworded(text: str) -> str:
    for pattern, words in REWORDED:
        text = re.sub(pattern, words, text)
    return text


def pages(names, numbers, book, made) -> dict[str, bytes]:
    """Every chapter of the book's table of contents, and the labs' pages that are asked for or that a hole refers to."""
    listed = re.findall(r"^ *- file: (\S+)$", (ROOT / "_toc.yml").read_text(encoding="utf-8"), re.M)
    read = set()
    for lab in map(spec.load, spec.numbers()):
        holes = [switch.reading(judge.function(lab, e).__wrapped__) for e in lab.exercises]
        read |= {page.split(",")[0] for page in holes}
        read |= {f"labs/{path.name}" for path in (ROOT / "labs").glob(f"lab{lab.number}_*.md") if lab.number in numbers}
    taken = [f"{page}.md" for page in listed if page.startswith("chapters/") or f"{page}.md" in read]
    return {name: reworded(path.read_text(encoding="utf-8")).encode() for name, path in sources(taken).items()}


def built(names, numbers, book, made) -> dict[str, bytes]:
    """The built book, if there is one and it has the pages of this edition."""
    if book is None:
        return {}
    listed = [name for name in made if name.endswith(".md") and name != "README.md"]
    lacking = [name for name in listed if not (book / name).with_suffix(".html").is_file()]
    if lacking or not (book / "index.html").is_file():
        raise ManifestError("MISSING", f"{book} is not the built book ({(lacking or ['index.html'])[0]} is not in it): make book")
    found = {}
    for path in sorted(path for path in book.rglob("*") if path.is_file() and path.name not in BOOK_LEFT_OUT):
        text = path.read_bytes()
        if path.suffix in (".html", ".md", ".ipynb"):
            text = reworded(text.decode("utf-8")).encode()
        found[f"book/{path.relative_to(book).as_posix()}"] = text
    return found


def summed(names, numbers, book, made) -> dict[str, bytes]:
    lines = (f"{hashlib.sha256(text).hexdigest()}  {name}\n" for name, text in sorted(made.items()))
    return {"SHA256SUMS": "".join(lines).encode()}


MAKERS = {"copied": copied, "edition": edition, "filled": filled, "emptied": emptied, "as data": as_data, "pages": pages,
          "book": built, "summed": summed}  # fmt: skip


def pack(tree: Path, out: Path) -> None:
    """A folder as a zip whose bytes depend on nothing but its files."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted((path for path in tree.rglob("*") if path.is_file()), key=Path.as_posix):
            entry = zipfile.ZipInfo(f"{tree.name}/{path.relative_to(tree).as_posix()}", WHEN)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o100644 << 16
            archive.writestr(entry, path.read_bytes())


# What marks


def integers(value) -> set[int]:
    """Every integer in an answer that is long enough to be told from others."""
    if isinstance(value, Fraction):
        return integers(value.numerator) | integers(value.denominator)
    if type(value) is int:
        return {abs(value)} if abs(value) >= leaks.LEAST_HIDDEN else set()
    parts = value.values() if isinstance(value, (dict, Ledger)) else vars(value).values() if isinstance(value, Record) else ()
    return set().union(*map(integers, value if isinstance(value, (tuple, list)) else parts))


def hidden(labs, secret: bytes = b"", learners=(), overlay=None) -> leaks.Hidden:
    """What marks these labs: the secret and the seeds it gives, the instructor's own cases, the learners' drawn ones.

    A public case's integers are no secret. Nor is a single drawn one: the shapes are those of the pages. All of an
    exercise's together in one file are.
    """
    words, own, drawn = [secret.decode("utf-8", "replace").strip()] if secret else [], {}, {}
    every = [(spec.load(number), e) for number in wanted(labs) for e in spec.load(number).exercises]
    public = set().union(*(integers((c.args, c.kwargs, c.expected)) for _, e in every for c in e.cases))
    for lab, e in every:
        for i, case in enumerate((overlay or {}).get(e.name, ())):
            own[f"{e.name}/overlay-{i}"] = frozenset(integers(judge.expected(lab, e, case)) - public)
        for learner in learners if secret else ():
            seed = marking.seed_for(secret, lab.number, learner)
            cases = e.draws(marking.DRAWN, seed)
            answers = [integers(judge.expected(lab, e, case)) for case in cases]
            drawn[f"{learner}, {e.name}"] = frozenset(set().union(*answers) - public)
            words.append(seed)
    return leaks.Hidden(tuple(dict.fromkeys(words)), own, drawn)


def marks(args) -> leaks.Hidden:
    """What the command line says of the marking: a secret, the learners (one id a line), the instructor's own cases."""
    secret = Path(args.secret_file).read_bytes() if args.secret_file else b""
    learners = Path(args.learners).read_text(encoding="utf-8").split() if args.learners else ()
    return hidden(args.labs, secret, learners, batch.overlay(args.overlay, wanted(args.labs)) if args.overlay else None)


def main(args) -> int:
    """0: the edition is written. 1: it would show a solution, and is not."""
    out = Path(args.out)
    for number in wanted(args.labs):  # a file that Python cannot read is a sentence
        loop.fresh(spec.load(number))
    try:
        build(args.labs, out, Path(args.book) if args.book else None, marks(args))
    except Leak as found:
        print(found, file=sys.stderr)
        return 1
    with zipfile.ZipFile(out) as archive:
        count = len(archive.namelist())
    print(f"{out}: {count} files, {out.stat().st_size:,} bytes, sha256 {hashlib.sha256(out.read_bytes()).hexdigest()}")
    print("No solution in it: every function is empty, and no answer of the reference stands in its code, cells or pages.")
    return 0
