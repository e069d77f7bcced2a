"""Do the recordings fit their pages, and does every number in the prose stand in one of them?

nbval executes the recordings and compares what they print; here they are only read.
"""
import asyncio
import html
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, localcontext
from pathlib import Path

import nbformat
import pytest

from costlib import published

sys.path.insert(0, str(Path(__file__).parent))
from test_pages import ALT, CELL, CODE_SPAN, FRONT, PATHS, ROLE, ROOT, SECTIONS, Page, record, refuse, weak_alternative

SOURCES = list(published.figures().values())


def fits(page):
    cells, lines = record.cells(page.text)
    if why := cells and record.difference(ROOT, page.path, cells, lines):
        yield 1, f"the page {why}; make record"
    ids = [cell["id"] for cell in (page.outputs or {"cells": []})["cells"]]
    if len(set(ids)) != len(ids):
        yield 1, "two cells of the recording share an id; make record"


def clean(page):
    for line, cell in recorded_code(page):
        if cell.execution_count != 1:
            yield line, "nbval compares nothing for a cell without an execution count; make record"
        for what in record.refusals(cell):
            yield line, f"the cell {what}; then make record"
        for output in cell.outputs:
            if record.PICTURES & output.get("data", {}).keys() or output.get("traceback"):
                yield line, "the recording holds a picture or a traceback; make record"


def recorded_code(page):
    """(line, executed cell) as far as page and recording agree."""
    cells = [cell for cell in (page.outputs or {"cells": []})["cells"] if cell["cell_type"] == "code"]
    cells = nbformat.notebooknode.from_dict([{**cell, "source": "".join(cell["source"])} for cell in cells])
    return [(line, cell) for (line, _), cell in zip(page.code, cells)]


def table_rows(output) -> int:
    """Rows of an HTML table's body; without one, lines of text that start with a row number."""
    data = output.get("data", {})
    if "<tr" in (markup := "".join(data.get("text/html", ""))):
        bodies = re.findall(r"(?s)<tbody.*?</tbody>", markup) or [markup]
        return sum("<td" in row for body in bodies for row in re.findall(r"(?s)<tr.*?</tr>", body))
    return len(re.findall(r"(?m)^\s*\d+\.\s", "".join(output.get("text", data.get("text/plain", "")))))


def table_lengths(page):
    for tag, key in (("failure-lab", "failure_rows"), ("publish-gate", "gate_lines")):
        wanted = SECTIONS.get(page.path, {}).get(key)
        tagged = [(line, cell) for line, cell in recorded_code(page) if tag in cell.metadata.get("tags", [])]
        found = sum(table_rows(output) for _, cell in tagged for output in cell.outputs)
        if wanted is not None and found != wanted:
            line = tagged[0][0] if tagged else 1
            yield line, f"the cells tagged {tag} show {found} rows; the document has {wanted}"


def figures(page):
    for line, cell in recorded_code(page):
        drawn = any(output.get("metadata", {}).get("picture") for output in cell.outputs)
        if drawn and not {"remove-output", "remove-cell"} & set(cell.metadata.get("tags", [])):
            alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
            if why := weak_alternative(alt):
                yield line, f"{why} (mystnb: image: alt)"


SCALES = {"k": 3, "thousand": 3, "M": 6, "million": 6, "B": 9, "G": 9, "billion": 9, "T": 12, "trillion": 12,
          "P": 15, "quadrillion": 15, "E": 18}
NUMBER = re.compile(r"""(?<![\w.]) (?P<digits> (?:\d{1,3}(?:,\d{3})+(?!\d) | \d+) (?:\.\d+)? )
    (?: [eE](?P<e>[+-]?\d+)(?!\w) | \s*[×·*]\s*10\^(?P<power>-?\d+) )?
    (?: [ ]{0,3} (?: (?P<percent>%) | (?P<word>thousand|million|billion|trillion|quadrillion)\b
                   | (?P<prefix>[kMGTPE])(?=FLOP|W|B\b|bit) | (?P<letter>[kMBT])(?![\w/]) ) )?""", re.X)
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
NO_NUMBERS = re.compile(r"""(?sx)
    <!--.*?--> | \{\{.*?\}\} | </?[a-z][a-z0-9]*(?:\s+[\w-]+="[^"]*")*\s*/?>   # comments, substitutions, HTML tags
  | \]\([^)\s]*\)(?:\{[^}\n]*\})? | <?https?://[^\s>)]+>?                      # where links lead
  | ^\([^()\s]+\)=$ | \#\d+                                                    # labels, issues
  | \d+(?:\.\d+){2,} | \b(?:Python|CC\sBY|version|arXiv:)\s?\d[\d.]*(?:\s(?:to|or|and)\s\d[\d.]*)* | [=~<>]=\d+\.[\d.]+
  | \b(?:19|20)\d\d-\d\d(?:-\d\d)?\b | \b""" + MONTH + r"""\s(?:\d{1,2},\s)?(?:19|20)\d\d\b  # dates
  | \b[A-Z]\w+(?:\set\sal\.)?,?\s\((?:19|20)\d\d[a-z]?\)
  | \((?:[^()\d]*[A-Z][^()\d]*\s(?:19|20)\d\d[a-z]?)+\)  # citations
    """, re.M)


@dataclass(frozen=True)
class Number:
    line: int
    text: str
    value: Decimal
    step: Decimal  # one in its last digit
    scale: int | None  # the power of ten of a written k, M, B, T, million, G in GB, ...
    percent: bool


def numbers(text: str):
    """Every number in a text, in any of the ways in which one is written."""
    text = re.sub(r"\b0x[0-9A-Fa-f]+", " ", text)  # sections
    text = re.sub(r"(?<=\d)(?:\{,\}|\\,|[_\u2009\u202f])(?=\d)", ",", text)
    text = text.replace("\\times", "×").replace("\\cdot", "·").replace("\\%", "%").replace("\\,", " ")
    text = re.sub("10([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda match: f"10^{match[1].translate(SUPERSCRIPTS)}", text)
    text = re.sub(r"\\[a-zA-Z]+", " ", re.sub(r"\^\{(-?\d+)\}", r"^\1", text))
    text = re.sub(r"[{}\u00a0$]|(?<=\d)(?=x\d)|(?<=\dx)(?=\d)", " ", text)
    for match in NUMBER.finditer(text):
        base, power = Decimal(match["digits"].replace(",", "")), int(match["e"] or match["power"] or 0)
        scale = SCALES.get(match["word"] or match["prefix"] or match["letter"])
        yield Number(text.count("\n", 0, match.start()) + 1, match[0].strip(), base.scaleb(power),
                     Decimal(1).scaleb(base.as_tuple().exponent + power), scale,
                     bool(match["percent"]))


def claims(page):
    """The numbers of four or more digits, and the decimals, that the prose states."""
    def role(match):
        text, _, target = match[2].partition(" <")
        names = ("ref", "numref", "eq", "doc", "term", "download")
        return "" if match[1].startswith("cite") else text if target or match[1] not in names else ""

    def code(match):
        name_or_call = re.match(r"[A-Za-z_][\w.-]*\s*([(=\[ ]|$)", match[2])
        return match[2] if re.search(r"\d(_?\d){3}", match[2]) or not name_or_call else ""

    def blank(match):
        return " " + "\n" * match[0].count("\n")

    text = CODE_SPAN.sub(code, ROLE.sub(role, "\n".join(page.prose)))
    text = re.sub(r"\[[^\]]*\]\(", lambda match: re.sub(r"\b(19|20)\d\d\b", "", match[0]), text)
    for number in numbers(NO_NUMBERS.sub(blank, text)):
        digits = re.match(r"[\d,.]+", number.text)[0].rstrip(",.")
        if "." in digits or len(digits.replace(",", "")) >= 4:
            yield number


def printed(page):
    """The numbers that the page's recording or a source named on the page holds."""
    for _, cell in recorded_code(page):
        for output in cell.outputs:
            text = record.shown(output)
            if "text/html" in output.get("data", {}):
                text = html.unescape(re.sub(r"(?s)<style.*?</style>|<[^<>]*>", " ", text))
            text = re.sub(r"<Figure[^>]*>", "", text)
            yield from numbers(text)
            ratio = r"(?<![\w.])(?=\d+/|Fraction)(?:Fraction\()?(\d+)(?:/|, )([1-9]\d*)\b"
            for top, bottom in re.findall(ratio, text):
                yield Number(0, "", Decimal(top) / Decimal(bottom), Decimal(0), None, False)
    for source in SOURCES:
        if re.search(rf"\{{cite[^}}]*\}}`[^`]*\b{source['cite']}\b", page.text):
            yield from numbers(f"{source['value']} {source['unit']}")


def rounds_to(exact: Decimal, value: Decimal, step: Decimal) -> bool:
    return abs(exact - value) <= step and value in (
        exact.quantize(step, ROUND_HALF_EVEN), exact.quantize(step, ROUND_HALF_UP))


def witnesses(claim: Number, seen: Number) -> bool:
    """Whether the claim is the number seen, or a correct rounding of it, in one of their scales."""
    if claim.scale and rounds_to(
            seen.value.scaleb(seen.scale or 0), claim.value.scaleb(claim.scale), claim.step.scaleb(claim.scale)):
        return True
    if claim.percent != seen.percent and rounds_to(
            seen.value * 100 if claim.percent else seen.value / 100, claim.value, claim.step):
        return True
    return not (claim.scale and seen.scale) and rounds_to(seen.value, claim.value, claim.step)


def numbers_have_witnesses(page):
    with localcontext(prec=100):
        seen = {(number.value, number.scale, number.percent): number for number in printed(page)}.values()
        for claim in claims(page):
            if not any(witnesses(claim, number) for number in seen):
                yield claim.line, (f"{claim.text} has no witness; print it in a cell of this page, or add it to "
                                   "costlib/data/published.json and cite its source here")


RULES = [fits, clean, table_lengths, figures, numbers_have_witnesses]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("path", PATHS)
def test_recording(path, rule):
    refusals = refuse(rule, path)
    assert not refusals, f"\n{refusals}"


def test_no_recording_is_left_over():
    book = {page: record.cells((ROOT / page).read_text(encoding="utf-8")) for page in record.pages(ROOT)}
    assert record.left_over(ROOT, book) == [], "make record"


def page(prose="", code="1", *outputs, tags=(), picture=False):
    """A scratch page with one cell and the recording it would have."""
    text = FRONT + f"# A\n\n{prose}\n\n" + CELL % (f":tags: [{', '.join(tags)}]\n{code}" if tags else code)
    outputs = [{"output_type": "display_data", "metadata": {"picture": "left out"} if picture else {}, "data": data}
               for data in outputs]
    cells = [{"cell_type": "code", "id": "a", "execution_count": 1, "metadata": {"tags": list(tags)},
              "source": [code], "outputs": outputs}]
    return Page("chapters/ledger/02_parameters.md", text, outputs={"cells": cells})


@pytest.mark.parametrize("prose, output", [
    ("8,030,261,248 scalars", "8030261248"), ("8,030,261,248", "8_030_261_248"),
    ("$8{,}030{,}261{,}248$", "8030261248"), ("4096² in 10²⁴", "4096"),
    ("8.03 billion, 8.0B, and 8,030 M", "8,030,261,248"), ("$8\\,030\\,261\\,248$", "8,030,261,248"),
    ("70.3 TFLOP", "70,274,254,897,152"), ("70.27 TFLOP", "TFLOP | 70.274"), ("16.06 GB", "16,060,522,496 bytes"),
    ("$1.026 \\times 10^{24}$", "1026432000000000000000000"), ("1.03e24", "1.026432e+24"),
    ("1.026 × 10²⁴", "1.0264e24"), ("4.63 %", "0.0463"), ("4.6\\%", "4.63%"), ("0.954", "95.4%"), ("63.6 %", "7/11"),
    ("0.636", "Fraction(7, 11)"), ("2.4 and 2.5", "2.45"),
    ("4096x16384", "4096 16384"), ("`matmul_flops(1, 4096, 16384)`", "4096, 16384"),
    ("| a |\n|---|\n| 1,234 |", "1234"), ("```{math}\n:label: eq-1234\n4096\n```", "4096"),
    ("```{note} Of 4096\n```", "4096"), ("{math}`4096`", "4096"),
])
def test_a_number_with_a_witness(prose, output):
    assert list(claims(page(prose)))
    assert list(numbers_have_witnesses(page(prose, "1", {"text/plain": output}))) == []


@pytest.mark.parametrize("prose, output", [
    ("8,030,261,249", "8030261248"), ("8.04 billion", "8,030,261,248"), ("8.03 million", "8,030,261,248"),
    ("8.03 M", "8.03 B"), ("70.28 TFLOP", "70,274,254,897,152"), ("70.27", "70,274,254,897,152"),
    ("15.0 GiB", "16,060,522,496"), ("4.64 %", "0.0463"), ("0.14", "0.125"), ("1.03e23", "1.026432e+24"), ("1,234", ""),
    ("`8_030_261_249`", "8030261248"), ("`15.5 GB`", "15"), ("$N = 4096$", "14096"), ("> 4096", "4095"),
    ("# 4096", ""), ("```{note} Of 4096\n```", ""), ("[4096](#x)", ""), ("640.0", "<Figure size 640x480 with 1 Axes>"),
    ("0.5", "(1, 2)"), ("2.0", "0x02"), ("N = 2000", ""), ("(2000)", ""), ("`15.96 GB`", ""), ("S=4096", ""),
])
def test_a_number_without_a_witness(prose, output):
    assert list(numbers_have_witnesses(page(prose, "1", {"text/plain": output})))


@pytest.mark.parametrize("prose", [
    "section 0x02B, 0x0200", "(w-ch1234)=", "[text](https://example.org/1234/5.6)", "<https://example.org/1234>",
    "Kaplan et al. (2020), and others (Kaplan et al., 2020; Hoffmann, 2022)", "[Kaplan 2020](https://example.org)",
    "{cite}`kaplan2020 1234`", "{ref}`eq-1234`", "as of 2025-06 and 2025-06-30, in June 2024", "arXiv:2001.08361",
    "#1234", "`f(0.5)`, `x1`, `1.0.4`, `numpy==2.4.6`", "Python 3.11 to 3.13", "CC BY 4.0",
    "12 layers, 128 wide, 10^9", "H1000",
    "```python\n4096\n```", "```{code-block} python\n4096\n```", "```{figure} 4096.png\n:alt: 4096\n```", "% 4096",
    "<span title=\"4096\">x</span>", "<!-- 4096 -->", "![a](b.png){width=1200px}",
])
def test_what_needs_no_witness(prose):
    assert list(claims(page(prose))) == []


def test_a_number_counts_where_its_source_is_cited(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "SOURCES", [{"value": "3.35", "unit": "TB/s", "cite": "nvidiah100"}])
    assert list(numbers_have_witnesses(page("3.35 TB/s {cite:p}`nvidiah100`"))) == []
    assert list(numbers_have_witnesses(page("3,350 GB/s, as {cite:t}`jouppi2017,nvidiah100` say"))) == []
    assert list(numbers_have_witnesses(page("3.35 TB/s, nvidiah100")))
    assert list(numbers_have_witnesses(page("3.36 TB/s {cite:p}`nvidiah100`")))


@pytest.mark.parametrize("markup", [
    "<table><thead><tr><th>n</th></tr></thead><tbody>" + 11 * "<tr><th>1</th><td>a</td></tr>" + "</tbody></table>",
    "<table><tr><th>n</th></tr>" + 11 * "<tr>\n<td>a</td></tr>" + "</table>"])
def test_table_rows_are_counted(markup):
    lines = "\n".join(f"{n:2}. fault" for n in range(1, 12))
    gate = {"text/plain": "\n".join(f"{n}. line" for n in range(1, 7))}
    rule_names = [what.split(" show")[0] for _, what in table_lengths(page())]
    assert rule_names == ["the cells tagged failure-lab", "the cells tagged publish-gate"]
    for shown in ({"text/html": markup, "text/plain": lines}, {"text/plain": f"the faults\n{lines}"}):
        both = page("", "1", shown, tags=["failure-lab"]), page("", "1", gate, tags=["publish-gate"])
        assert [[what for _, what in table_lengths(one)][:1] for one in both] == [
            ["the cells tagged publish-gate show 0 rows; the document has 6"],
            ["the cells tagged failure-lab show 0 rows; the document has 11"]]


def test_a_figure_needs_its_alternative():
    def with_alt(alt):
        drawn = page("", "1", {"text/plain": "<Figure size 640x480 with 1 Axes>"}, picture=True)
        drawn.outputs["cells"][0]["metadata"] = {"mystnb": {"image": {"alt": alt}}}
        return list(figures(drawn))

    assert with_alt("") and with_alt("short") and with_alt(ALT[:-1] + ".png")
    assert with_alt(ALT) == []
    assert list(figures(page("", "1", {"text/plain": "1"}))) == []
    assert list(figures(page("", "1", {"text/plain": "1"}, tags=["remove-output"], picture=True))) == []


@pytest.mark.parametrize("output", [
    {"output_type": "stream", "name": "stderr", "text": "a warning"},
    {"output_type": "stream", "name": "stdout", "text": "read /home/me/data.txt"},
    {"output_type": "stream", "name": "stdout", "text": "at 2025-06-30 12:30"},
    {"output_type": "stream", "name": "stdout", "text": "at 12:30:01"},
    {"output_type": "stream", "name": "stdout", "text": "1751286600.123"},
    {"output_type": "display_data", "metadata": {}, "data": {"text/plain": "<Line2D at 0x7f1234567890>"}},
    {"output_type": "display_data", "metadata": {}, "data": {"text/html": "<img src='data:image/png;base64,AA'>"}},
    {"output_type": "display_data", "metadata": {}, "data": {"image/svg+xml": "<svg/>"}},
    {"output_type": "display_data", "metadata": {}, "data": {"image/png": "AA"}},
    {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": []},
])
def test_a_recording_holds_only_what_every_machine_prints(output):
    scratch = page()
    assert list(clean(scratch)) == []
    scratch.outputs["cells"][0]["outputs"] = [output]
    assert list(clean(scratch))


@pytest.mark.parametrize("change", [
    {"execution_count": None}, {"source": ["1;"]}, {"metadata": {"tags": ["raises-exception"]}}])
def test_a_recording_compares_every_cell(change):
    scratch = page()
    scratch.outputs["cells"][0].update(change)
    assert list(clean(scratch))


def test_sections_addresses_and_dates_are_not_taken_for_what_varies():
    text = "0x02B of 2025-06-30, FLOP/token, https://example.org/home/x, 1e-05"
    assert list(clean(page("", "1", {"text/plain": text}))) == []


DRAWING = """import matplotlib.pyplot as plt
_ = plt.plot([1, 2])
plt.show()"""
GOOD = "\n\n".join([f"{FRONT}# A", CELL % "print(f'{2 * 67_108_864:,}')", CELL % DRAWING,
                    CELL % ":tags: [raises-exception]\nint('a')"])
BAD = {"raises": ("1/0", "raises ZeroDivisionError: division by zero"),
       "warns": ("import sys\nprint('careful', file=sys.stderr)", "writes to stderr: 'careful'"),
       "dies": ("import os\nos._exit(1)", "kills its kernel"),
       "relative": ("open('data.txt')", "raises FileNotFoundError")}


def run(root, *arguments):
    command = [sys.executable, ROOT / "tools/record.py", "--root", root, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LAB_MODULE": "costlib"})


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    root = tmp_path_factory.mktemp("book")
    (root / "chapters").mkdir()
    (root / "intro.md").write_text("# A page without code\n")
    (root / "chapters/good.md").write_text(GOOD)
    for name, (code, _) in BAD.items():
        (root / f"chapters/{name}.md").write_text(f"{FRONT}# A\n\n{CELL % 'a = 1'}\n\n{CELL % code}\n")
    left_over = record.recording(root, "chapters/gone.md")
    left_over.parent.mkdir(parents=True)
    left_over.write_text("{}")
    return root, run(root)


def test_a_page_is_refused_by_cell_and_cause(recorded):
    root, done = recorded
    refusals = done.stderr.splitlines()
    assert done.returncode == 1 and len(refusals) == len(BAD)
    for refusal, name in zip(refusals, sorted(BAD)):
        assert refusal.startswith(f"chapters/{name}.md:11: code cell 2 {BAD[name][1]}")
        assert not record.recording(root, f"chapters/{name}.md").exists()


def test_a_recording_keeps_all_but_the_pixels(recorded):
    root, done = recorded
    text = record.recording(root, "chapters/good.md").read_text()
    number, figure, error = [cell["outputs"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert number == [{"name": "stdout", "output_type": "stream", "text": ["134,217,728\n"]}]
    assert figure == [{"data": {"text/plain": ["<Figure size 640x480 with 1 Axes>"]},
                       "metadata": {"picture": "left out"}, "output_type": "display_data"}]
    assert error[0]["evalue"] == "invalid literal for int() with base 10: 'a'" and error[0]["traceback"] == []
    assert "recorded chapters/good.md" in done.stdout and "removed tests/recorded/chapters/gone.ipynb" in done.stdout


def test_recording_twice_writes_the_same_bytes(recorded):
    root, _ = recorded
    before = record.recording(root, "chapters/good.md").read_bytes()
    assert run(root, "chapters/good.md").returncode == 0
    assert record.recording(root, "chapters/good.md").read_bytes() == before


def test_a_kernel_that_dies_at_its_start_is_started_once_more():
    commands = []

    class Unlucky(record.ThisPython):
        async def _async_launch_kernel(self, command, **options):
            commands.append(command)
            return await super()._async_launch_kernel(command if len(commands) > 1 else ["false"], **options)

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1")])
    asyncio.run(record.Client(notebook, kernel_manager_class=Unlucky, kernel_name="python3").async_execute())
    assert len(commands) == 2 and notebook.cells[0].outputs[0].data == {"text/plain": "2"}


def test_check_names_what_does_not_fit(recorded, capsys):
    root, _ = recorded
    page, gone = root / "chapters/good.md", record.recording(root, "chapters/gone.md")

    def check(*arguments):
        status = record.main(["--root", str(root), "--check", *arguments])
        return status, capsys.readouterr().err

    assert check("chapters/good.md") == (0, "")
    page.write_text(GOOD.replace("# A", "# B"))
    gone.write_text("{}")
    status, said = check()
    page.write_text(GOOD)
    gone.unlink()
    assert status == 1
    assert "chapters/good.md: differs from its recording, from line 5 on" in said
    assert "chapters/warns.md: has no recording" in said
    assert "tests/recorded/chapters/gone.ipynb: left over" in said


def test_nbval_passes_a_recording_and_fails_a_changed_one(recorded, tmp_path):
    text = record.recording(recorded[0], "chapters/good.md").read_text()
    (tmp_path / "same.ipynb").write_text(text)
    changed = text.replace("134,217,728", "134,217,729").replace("1 Axes", "2 Axes").replace("base 10", "base 9")
    (tmp_path / "changed.ipynb").write_text(changed)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, "-c", os.devnull,
               "--color=no", "--nbval", "--nbval-current-env", "-n", "2", "--dist", "loadfile", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    failed = re.findall(r"(?m)^FAILED (?:.*/)?(\w+)\.ipynb::Cell (\d)", done.stdout)
    assert sorted(failed) == [("changed", "0"), ("changed", "1"), ("changed", "2")], done.stdout
    assert "3 failed, 3 passed" in done.stdout
