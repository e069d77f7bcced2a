"""Does a folder show a solution? What a student edition must pass before it is handed out.

Each rule yields sentences: which file, which line, what is there. `prove` gives all of them; none at all, and the
folder may go out. What is compared is code up to its names: a body whose variables are renamed is still the body, and
one that is written another way is not found. Hints are prose and may say a formula; they are what a learner is meant
to read.
"""

import ast
import functools
import html
import html.parser
import json
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from costlib.exercise import ROOT
from labs.alike import normal
from labs.holes import is_exercise, undocumented

PLACES = {"solutions", "instructor", "overlay", "tests", "recorded", ".git", ".venv", ".venv-observe", ".venv-peers", "__pycache__",
          ".ipynb_checkpoints", ".doctrees", "jupyter_execute"}  # fmt: skip
SUFFIXES = {"", *".py .md .json .toml .txt .ipynb .html .css .js .map .png .svg .ttf .woff .woff2 .inv .mo .po".split()}
LEAST_QUOTED = 50  # characters of an answer's lines, blanks left out
LEAST_NODES = 12  # of an expression: below it, 2 * a * b * c is everybody's
LEAST_HIDDEN = 10**4
MENTION = re.compile(r"(?<![\w.])(solutions|instructor)/")
NUMBER = re.compile(r"\d{1,3}(?:[,_\u202f\u2009\u00a0]\d{3})+(?!\d)|\d+")

# (page or module, where the same code is an answer): why it may stand there. One that is found nowhere is taken off.
COINCIDENCES = {
    ("chapters/ledger/04_activations", "forward.a16_block"): "the published formula of a layer's forward pass, "
    "24bsh^2 + 4bs^2h, which the page quotes from the paper one line above the cell",
}
# Sentences that name the folder to say that it is not there.
ABSENT = ("this edition of the course has no solutions/ folder",)

PROBE = """
import importlib.util, json, sys
sys.path.insert(0, sys.argv[1])
from labs import loop, spec
states = [[lab.number, o.exercise.name, o.status] for lab in map(spec.load, spec.numbers()) for o in loop.judge_lab(lab)]
said = [loop.report(number)[0].splitlines()[0] for number in spec.numbers()]
found = importlib.util.find_spec("solutions") is not None
print(json.dumps({"states": states, "said": said, "solutions": found, "labs": loop.__file__}))
"""


@dataclass(frozen=True)
class Hidden:
    """What marks: no file of the edition may hold it."""

    words: tuple[str, ...] = ()  # the secret, seeds, ids of hidden cases
    own: Mapping[str, frozenset] = field(default_factory=dict)  # an instructor's case -> its expected integers
    drawn: Mapping[str, frozenset] = field(default_factory=dict)  # a learner's exercise -> those of all drawn cases


def prove(tree: Path, hidden: Hidden = Hidden()) -> list[str]:
    """Why this folder may not be handed out, one sentence each; an empty list if it may."""
    found = [*places(tree), *mentions(tree), *filled(tree), *bodies(tree), *quoted(tree), *values(tree, hidden)]
    return found or [*not_empty(tree)]  # the last rule runs the copy, so only one that passed the others


def files(tree: Path) -> list[Path]:
    return sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())


def text_of(path: Path) -> str | None:
    """What a file says, None if it is no text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def places(tree: Path) -> Iterator[str]:
    """No file that has no place in an edition, and nothing that is not a file."""
    for path in sorted(tree.rglob("*")):
        name = path.relative_to(tree)
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            yield f"{name}: a link or a device, where only files and folders may be"
        elif path.name in PLACES or path.is_file() and path.suffix not in SUFFIXES:
            yield f"{name}: has no place in an edition"
        elif path.is_file() and path.suffix == ".py" and text_of(path) is None:
            yield f"{name}: is not UTF-8, so that its code cannot be compared"


def mentions(tree: Path) -> Iterator[str]:
    """No path into a folder of the reference."""
    for path in files(tree):
        for number, line in enumerate((text_of(path) or "").split("\n"), 1):
            if MENTION.search(line) and not any(sentence in line for sentence in ABSENT):
                yield f"{path.relative_to(tree)}:{number}: names a path {MENTION.search(line)[0]} that the edition does not have"


def filled(tree: Path) -> Iterator[str]:
    """Every exercise of costlib is a docstring and `raise Unfilled`."""
    for path in sorted((tree / "costlib").rglob("*.py")):
        for node in ast.walk(ast.parse(text_of(path) or "")):
            if is_exercise(node):
                body = [ast.unparse(statement) for statement in undocumented(node.body)]
                if body != ["raise Unfilled"]:
                    yield f"{path.relative_to(tree)}:{node.lineno}: {node.name} is filled in"


def not_empty(tree: Path) -> Iterator[str]:
    """The loop in the copy, with nothing else to import, finds every exercise empty and gives no point."""
    with tempfile.TemporaryDirectory() as elsewhere:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-B", "-c", PROBE, str(tree)],
            cwd=elsewhere, env={}, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, check=False,
        )  # fmt: skip
    if done.returncode:
        yield f"labs: the loop does not run in the copy: {(done.stderr.strip().splitlines() or ['it ended'])[-1]}"
        return
    said = json.loads(done.stdout)
    if said["solutions"] or not Path(said["labs"]).is_relative_to(tree.resolve()):
        yield f"labs: the copy reaches outside itself: labs from {said['labs']}"
    if not said["states"]:
        yield "labs: the copy has no lab"
    for lab, name, status in said["states"]:
        if status != "empty":
            yield f"labs/lab{lab}: {name} is {status} in the copy, where it must be not written"
    for line in said["said"]:
        if not re.search(r": 0 of \d+ right, 0 of \d+ points$", line):
            yield f"labs: {line}"


# Code up to its names


def valued(statement):
    """The value of a statement that gives one, however it does: `return x`, `y = x`, or `x` at the end of a cell."""
    if isinstance(statement, (ast.Return, ast.Expr)) and statement.value is not None:
        return statement.value
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.value
    return statement


def size(node) -> int:
    """How many nodes: names, constants, operations, not the operators themselves."""
    plain = (ast.expr_context, ast.operator, ast.cmpop, ast.unaryop, ast.boolop)
    return sum(not isinstance(part, plain) for part in ast.walk(node))


def blocks(code) -> Iterator[list]:
    """Every list of statements in a piece of code."""
    for node in ast.walk(code):
        for part in ("body", "orelse", "finalbody"):
            if isinstance(getattr(node, part, None), list):
                yield undocumented(getattr(node, part))


@functools.cache
def answers(folder: Path) -> dict:
    """Normal form -> whose answer it is: whole bodies, and what they return where that is long enough to be theirs."""
    found = {}
    for path in sorted(folder.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef) or not (body := undocumented(node.body)):
                continue
            name, *last = f"{path.stem}.{node.name}", valued(body[-1])
            if len(body) > 1:
                found.setdefault(normal([*body[:-1], *last]), name)
            if size(last[0]) >= LEAST_NODES:
                found.setdefault(normal(last), name)
    return found


def bodies(tree: Path) -> Iterator[str]:
    """No answer of the reference, and no import of it, in any code, cell, block or <pre> of the tree."""
    for path in files(tree):
        page = re.sub(r"^book/(_sources/)?", "", path.relative_to(tree).with_suffix("").as_posix())
        first = {found: line for line, found in reversed(_found_in(path.suffix, text_of(path) or ""))}
        for found, line in first.items():
            if (page, found) not in COINCIDENCES:
                yield f"{path.relative_to(tree)}:{line}: {'the answer of ' * ('import' not in found)}{found}"


@functools.lru_cache(maxsize=None)
def _found_in(suffix, text) -> tuple[tuple[int, str], ...]:
    return tuple((start + line, found) for start, code in pieces(suffix, text) for line, found in (*_imports(code), *_answers(code)))


def _imports(code) -> Iterator[tuple[int, str]]:
    for node in ast.walk(code):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", None) or ""]
        if isinstance(node, (ast.Import, ast.ImportFrom)) and any(name.partition(".")[0] == "solutions" for name in names):
            yield node.lineno, "an import of solutions"


def _answers(code) -> Iterator[tuple[int, str]]:
    known = answers(ROOT / "solutions")
    lengths = {len(form) for form in known} - {1}
    heads = {form[-1][0] if type(form[-1]) is tuple else "Name" for form in known}
    for node in ast.walk(code):
        if type(node).__name__ in heads and size(node) >= LEAST_NODES and (name := known.get(normal([node]))):
            yield node.lineno, name
    for block in blocks(code):
        for length in lengths:
            for i in range(len(block) - length + 1):
                last = valued(block[i + length - 1])
                if type(last).__name__ in heads and (name := known.get(normal([*block[i : i + length - 1], last]))):
                    yield block[i].lineno, name


@functools.cache
def texts(folder: Path) -> dict:
    """Whose answer -> its lines without blanks as they stand, and as Python lays them out, where they are long enough."""
    found = {}
    for path in sorted(folder.glob("*.py")):
        source = path.read_text(encoding="utf-8")
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef) and (body := undocumented(node.body)):
                for lines in (source.split("\n")[body[0].lineno - 1 : node.end_lineno], "\n".join(map(ast.unparse, body)).split("\n")):
                    lines = [line for line in map(bare, lines) if len(line) > 10]
                    if sum(map(len, lines)) >= LEAST_QUOTED:
                        found.setdefault(f"{path.stem}.{node.name}", []).append(lines)
    return found


def bare(text: str) -> str:
    """A text without blanks and line ends, also those of JSON and of a string, and with one kind of quotes."""
    return re.sub(r'\s+|\\n|\\(?=["\'])', "", text).replace('"', "'")


def quoted(tree: Path) -> Iterator[str]:
    """No answer line by line, whatever it stands in: a text, a string, a comment, a difference, the middle of a sentence."""
    for path in files(tree):
        text = html.unescape(path.read_bytes().decode("utf-8", "ignore"))
        shown = bare(text) + bare(re.sub("<[^<>]+>", "", text))
        for name, layouts in texts(ROOT / "solutions").items():
            if any(all(line in shown for line in lines) for lines in layouts):
                yield f"{path.relative_to(tree)}: quotes the answer of {name}"


# Where code stands


def pieces(suffix: str, text: str) -> Iterator[tuple[int, ast.AST]]:
    """(line before it, its syntax tree) of everything in a file that reads as Python."""
    readers = {".py": lambda text: [(0, text)], ".md": fenced, ".ipynb": _cells, ".html": _preformatted}
    for line, source in readers.get(suffix, lambda text: ())(text):
        yield from _parsed(line, source)


def _parsed(start, source) -> Iterator[tuple]:
    """A source as a tree; of one that Python cannot read as a whole, the paragraphs that it can."""
    source = textwrap.dedent("\n".join("" if re.match(r"\s*(:\w|[%!])", line) else line for line in source.split("\n")))
    try:
        yield start, ast.parse(source)
    except (SyntaxError, ValueError):
        paragraphs = [m for m in re.finditer(r"(?:[^\n]+\n?)+", source) if m[0] != source]
        for match in paragraphs:
            yield from _parsed(start + source[: match.start()].count("\n"), match[0])


def fenced(text: str) -> Iterator[tuple[int, str]]:
    """(line before it, source) of every fenced block of a page, those inside other blocks too."""
    open_blocks, lines = [], text.split("\n")
    for number, line in enumerate(lines, 1):
        fence = re.match(r"\s*(`{3,}|~{3,})(.*)", line)
        if not fence:
            continue
        if open_blocks and not fence[2].strip() and fence[1].startswith(open_blocks[-1][0]):
            _, start = open_blocks.pop()
            yield start, "\n".join(lines[start : number - 1])
        elif fence[2].strip() or not open_blocks:
            open_blocks.append((fence[1], number))


def _cells(text):
    for cell in json.loads(text).get("cells", ()):
        source = "".join(cell["source"])
        line = text[: max(0, text.find(json.dumps(source.split("\n")[0])[1:-1]))].count("\n")
        for start, code in [(0, source)] if cell["cell_type"] == "code" else fenced(source):
            yield line + start, code


class _Pre(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.depth, self.found = 0, []

    def handle_starttag(self, tag, attrs):
        if tag == "pre":
            self.depth += 1
            self.found.append((self.getpos()[0] - 1, []))

    def handle_endtag(self, tag):
        self.depth -= tag == "pre" and self.depth > 0

    def handle_data(self, data):
        if self.depth:
            self.found[-1][1].append(data)


def _preformatted(text):
    parser = _Pre()
    parser.feed(text)
    for line, parts in parser.found:
        yield line, "".join(parts)


# What marks


def values(tree: Path, hidden: Hidden) -> Iterator[str]:
    """No word and no number that only the marking may know."""
    for path in files(tree):
        text = text_of(path)
        if text is None or not (hidden.words or hidden.own or hidden.drawn):
            continue
        name = path.relative_to(tree)
        if any(word in text for word in hidden.words):
            yield f"{name}: holds the secret of the marking, or a seed that it gives"
        written = {n for m in NUMBER.finditer(text) for n in (m[0], *re.split(r"\D", m[0])) if len(n) < 4000}
        numbers = {int(re.sub(r"\D", "", n)) for n in written}
        for case, expected in hidden.own.items():
            for number in sorted(expected & numbers):
                yield f"{name}: holds {number}, the answer of the hidden case {case}; leave the file out, or choose another case"
        for whose, expected in hidden.drawn.items():
            if len(expected) > 2 and expected <= numbers:
                yield f"{name}: holds every answer of the drawn cases of {whose}"
