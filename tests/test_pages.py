"""Is every page what it claims to be? One short rule per promise, each with a text it must refuse.

A rule takes a Page and yields refusals: (line, what is wrong and what mends it).
The rules about what the pages print are in test_recorded.py.
"""
import ast
import json
import posixpath
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import record  # noqa: E402

SECTIONS = json.loads((ROOT / "tests/data/sections.json").read_text(encoding="utf-8"))
FRONT = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
"""
CODE = {"", "code-cell", "code-block", "code", "raw", "literalinclude"}  # fences that hold no prose
NAMED = {"figure", "image", "math", "include", "solution", "solution-start", "bibliography"}  # whose argument is a name
FENCE = re.compile(r"(\s*)(`{3,}|~{3,}|:{3,})\s*(?:\{([\w:-]+)\})?([^`]*)$")
OPTION = re.compile(r":?([\w-]+):\s*(.*)$")
ROLE = re.compile(r"(?<!`)\{([\w:+-]+)\}`([^`]+)`")
CODE_SPAN = re.compile(r"(?<![`}\\])(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.S)
LABEL = re.compile(r"\(([^()\s]+)\)=\s*$")
EQUATION = re.compile(r"\$\$\s*\(([^()\s]+)\)\s*$")
HEADING = re.compile(r"(#{1,6})\s+\S")


@dataclass
class Directive:
    line: int
    name: str
    argument: str
    inside: tuple[str, ...]
    options: dict[str, str] = field(default_factory=dict)


def scan(text: str) -> tuple[list[str], list[Directive]]:
    """The page with everything but its prose blanked, line for line, and its fences in order."""
    rows, prose, found, open_fences = text.split("\n"), [], [], []
    front = rows.index("---", 1) if rows[0] == "---" and "---" in rows[1:] else -1
    options = ""  # how a directive's options are written: ":" or "---", "?" before the first, "" after the last
    for index, row in enumerate(rows):
        prose.append("")
        bare, fence = row.strip(), FENCE.match(row)
        mark, name = open_fences[-1] if open_fences else ("", "-")
        if index <= front:
            continue
        if mark and set(bare) == {mark[0]} and len(bare) >= len(mark):
            open_fences.pop()
            options = ""
        elif name in CODE:
            continue
        elif fence and (fence[3] or fence[2][0] != ":"):
            found.append(Directive(index + 1, fence[3] or "", fence[4].strip(), tuple(n for _, n in open_fences)))
            open_fences.append((fence[2], fence[3] or ""))
            options = "?" if fence[3] else ""
            prose[-1] = "" if (fence[3] or "") in CODE | NAMED else fence[4]
        elif options and bare == "---":
            options = "---" if options == "?" else ""
        elif options == "---" or (options and bare.startswith(":") and OPTION.match(bare)):
            options = options.replace("?", ":")
            if match := OPTION.match(bare):
                found[-1].options[match[1]] = match[2].strip("\"'")
        elif not bare.startswith(("% ", "+++")):
            options = ""
            prose[-1] = row
    return prose, found


@dataclass
class Page:
    path: str
    text: str
    labels: Counter = field(default_factory=Counter)  # of the whole book, in lower case
    exists: Callable[[str], bool] = lambda path: False  # of a path from the course's root
    outputs: dict | None = None  # the recording, as read from JSON

    @cached_property
    def scanned(self):
        return scan(self.text)

    @cached_property
    def prose(self) -> list[str]:
        return self.scanned[0]

    @cached_property
    def plain(self) -> str:
        """The prose without roles and inline code, line for line."""
        text = "\n".join(self.prose)
        for pattern in (ROLE, CODE_SPAN):
            text = pattern.sub(lambda match: "\n" * match[0].count("\n"), text)
        return text

    @cached_property
    def code(self) -> list[tuple[int, object]]:
        """(line, cell) for every code cell."""
        return [(line, cell) for cell, line in zip(*record.cells(self.text)) if cell.cell_type == "code"]

    @cached_property
    def own_labels(self) -> list[tuple[int, str]]:
        found = [(n, m[1]) for n, row in enumerate(self.prose, 1) if (m := LABEL.match(row) or EQUATION.search(row))]
        found += [(d.line, d.options[key]) for d in self.scanned[1] for key in ("name", "label") if key in d.options]
        return found + [(line, cell.metadata["mystnb"]["figure"]["name"]) for line, cell in self.code
                        if cell.metadata.get("mystnb", {}).get("figure", {}).get("name")]


def lines_with(pattern: str, text: str):
    return ((text.count("\n", 0, match.start()) + 1, match) for match in re.finditer(pattern, text))


def one_title(page):
    titles = [n for n, row in enumerate(page.prose, 1) if (m := HEADING.match(row)) and m[1] == "#"]
    if len(titles) != 1:
        yield (titles[1] if titles else 1), f"{len(titles)} first-level headings; a page has exactly one"


def front_matter(page):
    if page.code and not page.text.startswith(FRONT):
        yield 1, f"a page with code cells starts with exactly\n{FRONT}(else the book never executes it)"


def cells_at_top(page):
    for n, match in lines_with(r"(?m)^(.*?)[`~:]{3,}\s*\{code-cell\}", page.text):
        if match[1] or not any(d.line == n and not d.inside for d in page.scanned[1]):
            yield n, "a code cell inside something else is never executed; place it at the top level, unindented"


def plain_cells(page):
    for n, cell in page.code:
        if record.SILENT.search(cell.source):
            yield n, "the cell ends in ';'; write `_ = ...`"
        if weak := {"skip-execution", "nbval-skip", "nbval-ignore-output"} & set(cell.metadata.get("tags", [])):
            yield n, f"{weak.pop()} takes the cell out of the checks; take the tag away"
        for row in cell.source.split("\n"):
            if len(row) > 80:
                yield n, f"a line of {len(row)} characters; 80 fit the page, longer ones are cut off: {row[:30]!r}"
        if "NBVAL_" in cell.source:
            yield n, "a comment takes the cell out of the checks; take it away"
        try:
            calls = [c for c in ast.walk(ast.parse(cell.source)) if isinstance(c, ast.Call)]
        except SyntaxError as error:
            yield n + (error.lineno or 0), "not plain Python; no !shell and no %magic: call it from Python"
            continue
        for call in calls:
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            if name in ("open", "Path") and call.args and isinstance(getattr(call.args[0], "value", None), str):
                yield n + call.lineno, f"{name}({call.args[0].value!r}) depends on the folder; use importlib.resources"


def characters(page):
    for what, pattern in (("a tab", "\t"), ("a carriage return", "\r"),
                          ("an emoji", "[\U0001F000-\U0001FAFF\uFE0F\u2B50\u2600-\u2712\u2714-\u2716\u2718-\u27BF]")):
        for n, match in lines_with(pattern, page.text):
            yield n, f"{what} ({match[0]!r}); take it out"


def course_alone(page):
    for n, match in lines_with(record.MACHINE_PATH.pattern, page.text):
        yield n, f"{match[0]!r} is a place on one machine; name the file by its place in the course"
    for n, match in lines_with(r"(?i)\b(TODO|FIXME|TBD|lorem ipsum|AI[- ](generated|written)|as an AI|subagents?|"
                               r"agents?|this session|previous version of this (page|course))\b", page.plain):
        yield n, f"{match[0]!r} is about how the page was made; a page speaks of its subject"


def links(page):
    folder = posixpath.dirname(page.path)

    def exists(target):
        return page.exists(posixpath.normpath(posixpath.join(folder, target)))

    for n, match in lines_with(r"\]\(<?([^)\s>]+)", page.plain):
        file, _, label = match[1].partition("#")
        if re.match(r"[a-z]+:", match[1]):
            continue
        if file.endswith(".html"):
            yield n, f"link to {file}; link to the .md page or its label"
        elif file and not exists(file) and not (file.lower() in page.labels and not label):
            yield n, f"link to {file}, which is neither a file here nor a label"
        elif label and label.lower() not in page.labels:
            yield n, f"link to #{label}, a label that no page has"
    for n, match in lines_with(ROLE.pattern, "\n".join(page.prose)):
        target = re.sub(r"(?s).*<([^<>]+)>$", r"\1", match[2]).strip()
        if match[1] in ("ref", "numref", "eq") and target.lower() not in page.labels:
            yield n, f"{{{match[1]}}} to {target}, a label that no page has"
        if match[1] == "doc" and not (page.exists(f"{target[1:]}.md") if target[0] == "/" else exists(f"{target}.md")):
            yield n, f"{{doc}} to {target}, a page that is not there"


def weak_alternative(text: str) -> str | None:
    """What is wrong with a text alternative, for pictures of every kind."""
    text = " ".join((text or "").split())
    if len(text) < 40 or re.search(r"\.(png|svg|jpe?g)$", text):
        return f"text alternative {text!r}; say in 40 characters or more what the picture shows"


def alternatives(page):
    for n, match in lines_with(r"!\[([^\]]*)\]\(", page.plain):
        if why := weak_alternative(match[1]):
            yield n, why
    for n, match in lines_with(r"<img\b[^>]*>", page.text):
        if why := weak_alternative("".join(re.findall(r"alt=[\"']([^\"']*)", match[0]))):
            yield n, why
    for directive in page.scanned[1]:
        if directive.name in ("figure", "image") and (why := weak_alternative(directive.options.get("alt", ""))):
            yield directive.line, why


def sections(page):
    own = [label for _, label in page.own_labels]
    for n, label in page.own_labels:
        if page.labels[label.lower()] > 1:
            yield n, f"label {label} stands twice in the book; labels are unique, whatever their case"
    if page.path.startswith(("chapters/warmup/", "chapters/ledger/")) and page.path not in SECTIONS:
        yield 1, "the page is not in tests/data/sections.json; add it, or move it to chapters/appendix"
    wanted = [label for label, _ in SECTIONS.get(page.path, {"sections": []})["sections"]]
    for label, heading in SECTIONS.get(page.path, {"sections": []})["sections"]:
        if label not in own:
            yield 1, f"section {label} ({heading}) is missing; write ({label})= on the line before its heading"
            continue
        n = dict(map(reversed, page.own_labels))[label]
        after = next((row for row in page.prose[n:] if not LABEL.match(row)), "")
        if not HEADING.match(after):
            yield n, f"({label})= is not directly before a heading"
    if (order := [label for label in own if label in wanted]) != [label for label in wanted if label in own]:
        yield 1, f"sections out of order: {', '.join(order)}"


RULES = [one_title, front_matter, cells_at_top, plain_cells, characters, course_alone, links, alternatives, sections]


@lru_cache
def book() -> dict[str, Page]:
    pages = {path: Page(path, (ROOT / path).read_bytes().decode()) for path in record.pages(ROOT)}
    labels = Counter(label.lower() for page in pages.values() for _, label in page.own_labels)
    for page in pages.values():
        page.labels, page.exists = labels, lambda path: (ROOT / path).exists()
        recording = record.recording(ROOT, page.path)
        page.outputs = json.loads(recording.read_text(encoding="utf-8")) if recording.exists() else None
    return pages


# An empty list would skip every test below, in silence.
PATHS = record.pages(ROOT) or ["no pages found"]


def refuse(rule, path):
    assert path in book(), f"no pages under {ROOT}: intro.md, chapters/**/*.md, labs/*.md"
    return "\n".join(f"{path}:{n}: {what}" for n, what in rule(book()[path]))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("path", PATHS)
def test_page(path, rule):
    refusals = refuse(rule, path)
    assert not refusals, f"\n{refusals}"


CELL = "```{code-cell}\n%s\n```"
ALT = "A rectangle of twelve cells, one of them filled."
EXAMPLES = [  # rule, a text it refuses, a text like it that it accepts
    (one_title, "# A\n\n# B", "# A\n\n```\n# B\n```"),
    (one_title, "## A", "# A\n\n## B"),
    (front_matter, CELL % "1", FRONT + CELL % "1"),
    (front_matter, FRONT.replace("Python 3", "py") + CELL % "1", "# no cells"),
    (cells_at_top, "````{dropdown} Answer\n" + CELL % "1" + "\n````", "````{dropdown} Answer\n1\n````\n" + CELL % "1"),
    (cells_at_top, ":::{note}\n" + CELL % "1" + "\n:::", ":::{note}\n1\n:::\n" + CELL % "1"),
    (cells_at_top, "````\n" + CELL % "1" + "\n````", CELL % "1"),
    (cells_at_top, "- a\n  " + CELL % "1", "- a\n\n" + CELL % "1"),
    (plain_cells, CELL % "a = 1\na;", CELL % "a = ';'"),
    (plain_cells, CELL % "a;  # b\n# c", CELL % "a  # b;"),
    (plain_cells, CELL % "!ls", CELL % "print('!ls')"),
    (plain_cells, CELL % "%time 1", CELL % "7 \\\n% 4"),
    (plain_cells, CELL % "open('data.txt')", CELL % "open(name)"),
    (plain_cells, CELL % "import pathlib\npathlib.Path('a').read_text()", CELL % "Path(a).read_text()"),
    (plain_cells, CELL % ":tags: [nbval-ignore-output]\n1", CELL % ":tags: [hide-input]\n1"),
    (plain_cells, CELL % "# NBVAL_SKIP\n1", CELL % "# compared\n1"),
    (plain_cells, CELL % ("#" * 81), CELL % ("#" * 80)),
    (characters, "a\tb", "a b"),
    (characters, "a\r\nb", "a\nb"),
    (characters, "done \U0001F680", "done \u2713"),
    (course_alone, "see /home/me/x", "see https://example.org/home/x"),
    (course_alone, "`/tmp/x`", "`tests/x`, 3 FLOP/token"),
    (course_alone, "TODO: more", "the to-do list"),
    (links, "[a](02_matmul.html)", "[a](02_matmul.md)"),
    (links, "[a](../ledger/gone.md)", "[a](https://example.org/gone.html)"),
    (links, "[a](#gone)", "[a](#W-CH2) and [b](w-ch2)"),
    (links, "[a](02_matmul.md#gone)", "[a](02_matmul.md#w-ch2)"),
    (links, "{ref}`gone`", "{ref}`w-ch2` and {ref}`text <w-ch2>`"),
    (links, "{ref}`text <gone>`", "`{ref}` alone, and `[a](gone)` as code"),
    (links, "{doc}`03`", "{doc}`02_matmul` and {doc}`/chapters/warmup/02_matmul`"),
    (alternatives, "![](a.png)", f"![{ALT}](a.png)"),
    (alternatives, f"![{ALT[:-1]}.png](a.png)", "`![](a.png)`"),
    (alternatives, '<img src="a.png">', f'<img src="a.png" alt="{ALT}">'),
    (alternatives, "```{figure} a.png\nCaption\n```", f"```{{figure}} a.png\n:alt: {ALT}\n\nCaption\n```"),
    (sections, "(w-ch10)=\ntext", "(w-ch10)=\n(ten)=\n# A"),
    (sections, "# A", "(w-ch10)=\n# A"),
    (sections, "(w-ch10)=\n\n# A", "(w-ch10)=\n# A"),
    (sections, "(twice)=\n(w-ch10)=\n# A", "(once)=\n(w-ch10)=\n# A"),
]


def scratch(rule, text):
    path = "chapters/warmup/10_budget.md" if rule is sections else "chapters/warmup/02_matmul.md"
    labels = Counter({"w-ch2": 1, "w-ch10": 1, "once": 1, "twice": 2})
    return list(rule(Page(path, text, labels, lambda path: path == "chapters/warmup/02_matmul.md")))


@pytest.mark.parametrize("rule, refused, accepted", EXAMPLES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_rule_refuses_and_accepts(rule, refused, accepted):
    assert scratch(rule, refused)
    assert scratch(rule, accepted) == []


def test_every_rule_has_an_example():
    assert {rule for rule, _, _ in EXAMPLES} == set(RULES)


def test_sections_are_held_to_their_order():
    labels = [label for label, _ in SECTIONS["chapters/warmup/08_memory.md"]["sections"]]
    text = "\n".join(f"({label})=\n# {label}\n" for label in labels)
    swapped = "\n".join(f"({label})=\n# {label}\n" for label in reversed(labels))
    assert list(sections(Page("chapters/warmup/08_memory.md", text))) == []
    assert [what for _, what in sections(Page("chapters/warmup/08_memory.md", swapped))] == [
        f"sections out of order: {', '.join(reversed(labels))}"]


def test_a_page_that_no_document_knows_is_refused():
    assert list(sections(Page("chapters/ledger/99_other.md", "# A")))


def test_the_section_list_is_complete_and_unique():
    labels = [label.lower() for page in SECTIONS.values() for label, _ in page["sections"]]
    assert (len(SECTIONS), len(labels), len(set(labels))) == (31, 216, 216)
    assert sum(page.get("failure_rows", 0) for page in SECTIONS.values()) == 89
    assert sum(page.get("gate_lines", 0) for page in SECTIONS.values()) == 97
