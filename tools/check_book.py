"""Is the built book what its sources say? Each refusal names the page, the rule and what mends it.

Sphinx passes over much in silence: a page whose code was never run, a dollar amount set as a formula,
a picture whose only text is a file name. These rules read what came out.
"""

import json
import re
import sys
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup

STARTED = "_build/started"    # written when a build begins
PAGE_BYTES, SEARCH_BYTES = 400_000, 1_000_000
ELSEWHERE = re.compile(r"\s*(https?:)?//")
CSS_ELSEWHERE = re.compile(r"@import[^;]*//|url\(\s*['\"]?(https?:)?//")
FENCED_CELL = re.compile(r"^[ \t>]*(`{3,}|~{3,}|:{3,})\s*\{code-cell\}", re.M)
FORMULA_AS_TEXT = re.compile(r"\$[^$\n]*[\\^_{][^$\n]*\$")
WORDS = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,},?\s+[A-Za-z]{3,}")
NAMED_TEXT = re.compile(r"\\(text\w*|mathrm|mathit|mathsf|mathtt|operatorname|begin|end|tag|label|hspace)\*?\{[^{}]*\}")


def toc_documents(root):
    """Every page named in _toc.yml, without suffix, in order."""
    def walk(node):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node if isinstance(node, list) else []):
            yield from [value] if key in ("root", "file") else walk(value)
    return list(walk(yaml.safe_load((root / "_toc.yml").read_text("utf8"))))


@dataclass
class Page:
    root: Path
    document: str

    @property
    def html(self):
        return self.root / "_build/html" / f"{self.document}.html"

    @cached_property
    def source(self):
        return (self.root / f"{self.document}.md").read_text("utf8")

    @cached_property
    def soup(self):
        return BeautifulSoup(self.html.read_text("utf8"), "html.parser")

    @cached_property
    def content(self):
        return self.soup.find("article")

    @cached_property
    def cells(self):
        """The code cells as this build executed them; none where the page was not taken for a notebook."""
        executed = self.root / "_build/jupyter_execute" / f"{self.document}.ipynb"
        if not executed.exists():
            return []
        return [cell for cell in json.loads(executed.read_text("utf8"))["cells"] if cell["cell_type"] == "code"]


def tags(cell):
    return cell["metadata"].get("tags", [])


def one_heading(page):
    if (n := len(page.content.find_all("h1"))) != 1:
        yield f"has {n} first-level headings: write exactly one line that begins with a single #"


def pictures_say_something(page):
    for picture in page.content.find_all("img"):
        text = (picture.get("alt") or "").strip()
        if not text or re.search(r"\.(png|svg|jpe?g|gif|webp)$", text, re.I):
            yield (f"shows a picture whose text alternative is {text or 'empty'!r}: say what it shows, "
                   "for a cell with `:mystnb: {image: {alt: \"...\"}}`")


def nothing_from_elsewhere(page):
    for tag in page.soup.find_all(["script", "link", "img", "iframe", "source", "video", "audio", "embed", "object"]):
        for attribute in ("src", "href", "srcset", "data", "poster"):
            if ELSEWHERE.match(tag.get(attribute) or ""):
                yield f"asks another host for {tag[attribute]}: serve it from _static, or leave it out"
    for style in page.soup.find_all("style"):
        if CSS_ELSEWHERE.search(style.get_text()):
            yield "has a <style> that asks another host: serve it from _static, or leave it out"


@lru_cache(maxsize=None)
def anchors(file):
    """Everything in a built page that a link can lead to."""
    soup = BeautifulSoup(file.read_text("utf8"), "html.parser")
    return {tag.get("id") or tag.get("name") for tag in soup.find_all(lambda tag: tag.get("id") or tag.get("name"))}


def links_lead_somewhere(page):
    for link in page.content.find_all("a", href=True):
        target = urlsplit(link["href"])
        if target.scheme or target.netloc:
            continue
        file = (page.html.parent / unquote(target.path)).resolve() if target.path else page.html
        if not file.is_file():
            yield f"links to {link['href']}, which is no file of the book: mend the link, or list the page in _toc.yml"
        elif target.fragment and file.suffix == ".html" and unquote(target.fragment) not in anchors(file):
            yield f"links to {link['href']}, and nothing there has that name: mend the label"


def every_cell_ran(page):
    written, read = len(FENCED_CELL.findall(page.source)), len(page.cells)
    if written != read:
        yield (f"has {written} {{code-cell}} blocks of which {read} are cells: give the page the jupytext and kernelspec "
               "front matter, and put no cell inside another directive or list")
        return
    shown, wanted = len(page.content.select("div.cell")), sum("remove-cell" not in tags(cell) for cell in page.cells)
    if shown != wanted:
        yield f"shows {shown} of its {wanted} cells: look for a directive that swallows them"
    for number, cell in enumerate(page.cells, 1):
        if cell.get("execution_count") is None and "".join(cell["source"]).strip():
            yield f"code cell {number} was not executed: take away its skip-execution tag"


def no_error_unasked(page):
    for number, cell in enumerate(page.cells, 1):
        for output in cell["outputs"]:
            if output["output_type"] == "error" and "raises-exception" not in tags(cell):
                yield (f"code cell {number} ends in {output['ename']}: mend it, "
                       "or tag it raises-exception if the page is about that error")


def formulas_and_money(page):
    for formula in page.content.select(".math"):
        words = WORDS.search(NAMED_TEXT.sub(" ", formula.get_text()))
        if words:
            yield (f"sets {formula.get_text().strip()!r} as a formula: write a dollar amount as \\$, "
                   "and words in a formula as \\text{...}")
    for text in page.content.find_all(string=FORMULA_AS_TEXT):
        if not text.find_parent(["pre", "code", "script", "style"]) and not text.find_parent(class_="math"):
            yield (f"leaves {FORMULA_AS_TEXT.search(text)[0]!r} as text: no space inside the dollars, "
                   "no digit just outside them")


def light_enough(page):
    pictures = {(page.html.parent / picture["src"]).resolve() for picture in page.content.find_all("img", src=True)}
    weight = page.html.stat().st_size + sum(path.stat().st_size for path in pictures if path.is_file())
    if weight >= PAGE_BYTES:
        yield f"weighs {weight:,} bytes with its pictures, the limit is {PAGE_BYTES:,}: fewer or smaller pictures"


RULES = [one_heading, pictures_say_something, nothing_from_elsewhere, links_lead_somewhere, every_cell_ran, no_error_unasked,
         formulas_and_money, light_enough]


def check_page(page, started):
    if not page.html.exists():
        return [f"{page.document}: is in _toc.yml and was not built: make book"]
    if page.html.stat().st_mtime_ns < started:
        return [f"{page.document}: is older than the build: make book"]
    return [f"{page.document}: {refusal}" for rule in RULES for refusal in rule(page)]


def check_whole(root):
    built = root / "_build/html"
    search = built / "searchindex.js"
    if not search.exists():
        yield "searchindex.js: was not built, so the search finds nothing: make book"
    elif search.stat().st_size >= SEARCH_BYTES:
        yield f"searchindex.js: weighs {search.stat().st_size:,} bytes, the limit is {SEARCH_BYTES:,}: shorten the pages"
    for sheet in built.rglob("*.css"):
        if CSS_ELSEWHERE.search(sheet.read_text("utf8")):
            yield f"{sheet.relative_to(built)}: asks another host: serve it from _static, or leave it out"


def check(root):
    """The refusals, one line each; none for a book that is as it should be."""
    marker = root / STARTED
    if not marker.exists():
        return ["_build: holds no finished build: make book"]
    pages = [Page(root, document) for document in toc_documents(root)]
    return [refusal for page in pages for refusal in check_page(page, marker.stat().st_mtime_ns)] + list(check_whole(root))


if __name__ == "__main__":
    refusals = check(Path(sys.argv[1] if len(sys.argv) > 1 else __file__ + "/../..").resolve())
    sys.exit("\n".join(refusals) or 0)
