"""The book: its configuration as it takes effect, a small book built with it, and the same book in a browser."""

import http.server
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import threading
from functools import partial
from html import unescape
from importlib.metadata import version
from pathlib import Path

import jupyter_book
import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import check_book  # noqa: E402
from record import ThisPython  # noqa: E402

CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))


# The configuration

def known_keys():
    """What Jupyter Book reads: its defaults, which it calls the master list, and its schema."""
    here = Path(jupyter_book.__file__).parent
    known = yaml.safe_load((here / "default_config.yml").read_text("utf8"))
    schema = json.loads((here / "config_schema.json").read_text("utf8"))
    for key, value in schema["properties"].items():
        known.setdefault(key, {})
        if "properties" in value:
            known[key] = dict.fromkeys(value["properties"]) | (known[key] or {})
    return known


def unknown_keys(config, known, path=""):
    for key, value in config.items():
        if key not in known:
            yield path + key
        elif isinstance(value, dict) and isinstance(known[key], dict):
            yield from unknown_keys(value, known[key], f"{path}{key}.")


def test_every_key_is_one_that_jupyter_book_reads():
    assert list(unknown_keys(CONFIG, known_keys())) == []


@pytest.mark.parametrize("section, key", [
    ("execute", "raise_on_errors"), ("execute", "execute_notebook"), ("parse", "myst_enable_extension"),
    ("html", "home_page_in_navbars"), ("", "exclude_pattern")])
def test_a_misspelt_key_is_found(section, key):
    config = {section: {key: True}} if section else {key: True}
    assert list(unknown_keys(config, known_keys())) == [f"{section}.{key}".strip(".")]


def test_the_settings_take_effect(tmp_path):
    """A misspelt key would leave Jupyter Book's default in force without a word."""
    folder = small_book(tmp_path)
    cli = "from jupyter_book.cli.main import main; main()"
    subprocess.run([sys.executable, "-c", cli, "config", "sphinx", str(folder)], capture_output=True, check=True)
    effective = runpy.run_path(str(folder / "conf.py"))
    wanted = {
        "nb_execution_mode": "force", "nb_execution_raise_on_error": True, "nb_execution_allow_errors": False,
        "nb_execution_timeout": 120, "nb_output_stderr": "error", "nb_merge_streams": True, "nb_execution_in_temp": False,
        "myst_dmath_allow_digits": False, "myst_dmath_allow_space": False, "external_toc_exclude_missing": True,
        "html_title": "What a Transformer Costs", "html_context": {"default_mode": "light"}, "language": "en",
        "html_static_path": ["_static"], "html_css_files": ["custom.css"], "html_theme": "sphinx_book_theme",
    }
    assert {key: effective.get(key) for key in wanted} == wanted
    theme = effective["html_theme_options"]
    assert theme["navbar_persistent"] == []
    assert not any(value for key, value in theme["launch_buttons"].items() if key != "notebook_interface")
    assert not {"sphinx_thebe", "sphinx.ext.intersphinx"} & set(effective["extensions"])
    assert "offline_mathjax" in effective["extensions"]
    assert "linkify" not in effective["myst_enable_extensions"]
    assert "**/*.ipynb" in effective["exclude_patterns"]
    assert effective.get("html_js_files", []) == []


def test_jupyter_book_is_the_one_that_reads_this_configuration():
    assert version("jupyter-book").startswith("1.0.4")


def test_every_page_is_in_the_table_of_contents_and_nothing_else():
    written = {path.relative_to(ROOT).with_suffix("").as_posix()
               for path in [ROOT / "intro.md", *ROOT.glob("chapters/**/*.md"), *ROOT.glob("labs/*.md")]}
    listed = check_book.toc_documents(ROOT)
    assert len(listed) == len(set(listed)), "a page is listed twice"
    assert set(listed) == written


# A small book

FRONT = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
"""
INTRO = r"""# A small book

It costs $2.50 per hour and $3 per token. From $5 to $10, or $20; a budget of $1,000 and one of $2,000.
Three formulas: $x^2$, $2d(d_q + d_{kv})$ and $\cancel{a}$.

| Wrong model | What it returns | The check that catches it |
|---|---:|---|
| multiply-accumulates counted as FLOPs | 525,336,576 | `assert matmul_flops(4096, 4096, 4096) == 2 * 4096**3` |
"""
PAGE = FRONT + r"""
(a-label)=
# A page

$$
P = 2d(d_q + d_{kv}) + 3\,d\,d_{ff} + 2d = 41{,}943{,}040 + 176{,}160{,}768 + 8{,}192 = 218{,}112{,}000
$$ (eq-long)

By {eq}`eq-long`:

```{code-cell} python
import small_numbers
print("width", small_numbers.WIDTH)
```

```{code-cell} python
:mystnb: {image: {alt: "A line that rises from 0 to 2"}}
import matplotlib.pyplot as plt
_ = plt.plot(range(3))
plt.show()
```

```{code-cell} python
:tags: [raises-exception]
int("seventy billion")
```

::::{admonition} Predict
Is it more than half?
:::{dropdown} Answer
Yes.
:::
::::

## A section

Text.
"""
LAB = FRONT + """
# A lab

```{code-cell} python
from html import escape
class Table:
    def _repr_html_(self):
        return "<table class='ledger'><caption>scalars</caption><tr><th>q_proj</th><td>16,777,216</td></tr></table>"
Table()
```
"""
TOC = """format: jb-book
root: intro
parts:
  - {caption: Part I, chapters: [{file: chapters/page}]}
  - {caption: Labs, chapters: [{file: labs/lab}]}
"""


def small_book(folder, **pages):
    """The repository's configuration around three pages, or around others."""
    for name in ("_config.yml", "_ext", "_static"):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, folder / name)
    (folder / "_toc.yml").write_text(TOC)
    (folder / "chapters").mkdir()
    shutil.copy(ROOT / "chapters/references.bib", folder / "chapters")
    for name, text in ({"intro": INTRO, "chapters/page": PAGE, "labs/lab": LAB} | pages).items():
        (folder / f"{name}.md").parent.mkdir(exist_ok=True)
        (folder / f"{name}.md").write_text(text)
    (folder / "small_numbers.py").write_text("WIDTH = 4096\n")
    return folder


def build(folder):
    env = {**os.environ, "PYTHONPATH": str(folder), "JUPYTER_PATH": str(folder / "jupyter")}
    env.pop("MPLBACKEND", None)
    return subprocess.run([sys.executable, str(ROOT / "tools/book.py"), str(folder)], cwd=folder.parent, env=env,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Built twice, with a changed library in between; beside files that are no pages, and a kernel that is not ours."""
    folder = small_book(tmp_path_factory.mktemp("book"))
    for stray in ("README.md", "notes.md", "chapters/draft.md", ".pytest_cache/README.md",
                  "chapters/.ipynb_checkpoints/page.md"):
        (folder / stray).parent.mkdir(exist_ok=True)
        (folder / stray).write_text("# Not a page\n")
    (folder / "chapters/page.ipynb").write_text("{}")
    kernel = folder / "jupyter/kernels/python3"
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text('{"argv": ["false"], "display_name": "Mine", "language": "python"}')
    first = build(folder)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "width 4096" in (folder / "_build/html/chapters/page.html").read_text()
    (folder / "small_numbers.py").write_text("WIDTH = 8191\n")
    second = build(folder)
    assert second.returncode == 0, second.stdout + second.stderr
    assert second.stderr == "" and len(second.stdout.splitlines()) < 10
    assert f"{folder}/_build/html/index.html" in second.stdout and "-m http.server" in second.stdout
    return folder


def soup(folder, page):
    return BeautifulSoup((folder / f"_build/html/{page}.html").read_text(), "html.parser")


def test_a_changed_library_shows_in_the_next_build(built):
    assert "width 8191" in (built / "_build/html/chapters/page.html").read_text()
    assert "width 4096" not in (built / "_build/html/chapters/page.html").read_text()


def test_only_pages_are_built(built):
    html = built / "_build/html"
    pages = {path.relative_to(html).as_posix() for path in html.rglob("*.html") if "_static" not in path.parts}
    assert pages - {"probe.html"} == {
        "index.html", "genindex.html", "search.html", "intro.html", "chapters/page.html", "labs/lab.html"}


def test_dollar_amounts_are_text_and_formulas_are_formulas(built):
    article = soup(built, "intro").find("article")
    for amounts in ("$2.50 per hour and $3 per token", "From $5 to $10, or $20", "$1,000 and one of $2,000"):
        assert amounts in article.get_text()
    assert [formula.get_text() for formula in article.select(".math")] == [
        r"\(x^2\)", r"\(2d(d_q + d_{kv})\)", r"\(\cancel{a}\)"]


def test_maths_comes_with_the_book(built):
    sources = [tag["src"] for tag in soup(built, "intro").find_all("script", src=True) if "mathjax" in tag["src"]]
    assert sources == ["_static/mathjax/tex-chtml.js"]
    static = built / "_build/html/_static/mathjax"
    assert (static / "tex-chtml.js").exists() and (static / "input/tex/extensions/cancel.js").exists()
    assert list((static / "output/chtml/fonts/woff-v2").glob("*.woff"))


def test_the_furniture_is_there(built):
    page = soup(built, "chapters/page")
    assert page.select_one(".theme-switch-button") and page.select_one(".search-button, .search-button-field")
    assert [link.get_text(strip=True) for link in page.select("#pst-page-toc-nav a, .page-toc a")][:1] == ["A section"]
    assert [caption.get_text(strip=True) for caption in page.select(".bd-sidebar-primary .caption")] == ["Part I", "Labs"]
    assert page.select_one(".dropdown-download-buttons") and not page.select_one(".dropdown-launch-buttons")


def test_code_is_coloured_only_where_it_differs_from_the_text(built):
    code = soup(built, "chapters/page").select_one("div.cell_input pre")
    assert code.get_text() == 'import small_numbers\nprint("width", small_numbers.WIDTH)\n'
    assert {name for span in code.find_all("span") for name in span.get("class", [])} >= {"kn", "s2"}
    assert not code.select("span.n, span.nn, span.p, span.w")
    for theme in ("light", "dark"):    # what is left bare would have had the colour that all code has
        rules = (built / "_build/html/_static/pygments.css").read_text()
        colours = [re.search(rf'data-theme="{theme}"\] \.highlight{name} {{[^}}]*?\bcolor: (#\w+)', rules)[1]
                   for name in ("", " .n", " .nn", " .p", " .w")]
        assert len(set(colours)) == 1


def test_a_downloaded_page_is_a_notebook_that_runs_in_any_folder(built, tmp_path):
    buttons = [link["href"] for link in soup(built, "chapters/page").select(".dropdown-download-buttons a")]
    assert buttons == ["../_sources/chapters/page.ipynb", "../_sources/chapters/page.md"]
    notebook = nbformat.read(built / "_build/html/_sources/chapters/page.ipynb", as_version=4)
    assert "*A page*, a page of *What a Transformer Costs*" in notebook.cells[0].source
    assert "image/png" in str(notebook.cells)    # it reads as the book does before it is run
    for cell in notebook.cells:
        cell.pop("outputs", None)
        if cell.cell_type == "code":
            cell.outputs = []
    client = NotebookClient(notebook, kernel_manager_class=ThisPython, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(env={**os.environ, "PYTHONPATH": str(built)})
    assert notebook.cells[2].outputs[0].text == "width 8191\n"


def test_a_failing_cell_fails_the_build_and_is_shown_shortly(tmp_path):
    page = PAGE + "\n```{code-cell} python\nwidth = 1\nwidth / 0\n```\n"
    result = build(small_book(tmp_path, **{"chapters/page": page}))
    assert result.returncode != 0
    line = page.splitlines().index("width = 1")    # from 0; the fence above it, from 1
    assert re.search(rf"chapters/page\.md:{line}: .*ZeroDivisionError: division by zero", result.stderr)
    assert "    width / 0" in result.stderr
    assert len((result.stdout + result.stderr).splitlines()) < 40
    assert not (tmp_path / "_build/html").exists()


def test_code_that_would_not_run_fails_the_build(tmp_path):
    """A page without front matter, and a cell inside another directive: Sphinx leaves their code out."""
    nested = PAGE + "\n````{admonition} Look\n```{code-cell} python\n1 + 1\n```\n````\n"
    result = build(small_book(tmp_path, **{"chapters/page": nested, "labs/lab": LAB.removeprefix(FRONT)}))
    assert result.returncode != 0
    for page in ("chapters/page.md", "labs/lab.md"):
        assert re.search(rf"{page}:\d+: WARNING: Found an unexpected `code-cell`", result.stderr), result.stderr
    refused = check_book.check(tmp_path)
    assert any(each.startswith("chapters/page: has 4 {code-cell} blocks of which 3") for each in refused), refused
    assert any(each.startswith("labs/lab: has 1 {code-cell} blocks of which 0") for each in refused), refused


def test_a_page_that_is_listed_and_missing_is_named(tmp_path):
    folder = small_book(tmp_path)
    (folder / "labs/lab.md").unlink()
    result = build(folder)
    assert result.returncode != 0 and "_toc.yml names labs/lab" in result.stderr


# What tools/check_book.py refuses

@pytest.fixture(scope="module")
def spoilt(built, tmp_path_factory):
    """A copy of the built book, to be damaged and mended."""
    copy = tmp_path_factory.mktemp("spoilt") / "book"
    shutil.copytree(built, copy, ignore=shutil.ignore_patterns("_static", "jupyter"))
    (copy / "_build/html/_static").mkdir()
    (copy / "_build/html/_static/custom.css").write_text("p {}")
    assert check_book.check(copy) == []
    return copy


def after(anchor, addition):
    return lambda text: text.replace(anchor, anchor + addition, 1)


def executed(change):
    def edit(text):
        notebook = json.loads(text)
        change([cell for cell in notebook["cells"] if cell["cell_type"] == "code"])
        return json.dumps(notebook)
    return edit


PAGE_HTML, PAGE_NOTEBOOK = "_build/html/chapters/page.html", "_build/jupyter_execute/chapters/page.ipynb"
ERROR = {"output_type": "error", "ename": "ValueError", "evalue": "", "traceback": []}


@pytest.mark.parametrize("file, edit, refusal", [
    (PAGE_HTML, after("<head>", "<script src='https://cdn.example/a.js'></script>"), "asks another host"),
    (PAGE_HTML, after("<head>", "<link rel='stylesheet' href='//cdn.example/a.css'>"), "asks another host"),
    (PAGE_HTML, after("<head>", "<style>@import url(https://cdn.example/a.css);</style>"),
     "<style> that asks another host"),
    ("_build/html/_static/custom.css", after("p {", "background: url('https://cdn.example/a.png')"),
     "asks another host"),
    (PAGE_HTML, lambda text: re.sub('alt="A line[^"]*"', 'alt="../_images/abc.png"', text),
     "text alternative is '../_images/abc.png'"),
    (PAGE_HTML, lambda text: re.sub('alt="A line[^"]*"', 'alt=""', text), "text alternative is 'empty'"),
    (PAGE_HTML, after("<p>Text.", "<h1>Another</h1>"), "2 first-level headings"),
    (PAGE_HTML, after("<p>Text.", "<a href='gone.html'>a</a>"), "links to gone.html, which is no file"),
    (PAGE_HTML, after("<p>Text.", "<a href='#gone'>a</a>"), "links to #gone, and nothing there has that name"),
    (PAGE_HTML, after("<p>Text.", "<a href='../index.html#gone'>a</a>"), "links to ../index.html#gone, and nothing"),
    (PAGE_HTML, lambda text: re.sub(r'<div class="cell ', '<div class="', text, count=1), "shows 2 of its 3 cells"),
    ("chapters/page.md", after("Text.", "\n\n> ```{code-cell} python\n> 1\n> ```\n"), "4 {code-cell} blocks of which 3"),
    (PAGE_NOTEBOOK, executed(lambda cells: cells[0].update(execution_count=None)), "code cell 1 was not executed"),
    (PAGE_NOTEBOOK, executed(lambda cells: cells[1]["outputs"].append(ERROR)), "code cell 2 ends in ValueError"),
    (PAGE_HTML, after("<p>Text.", r'<span class="math">\(2.50 per hour and \)</span>'), "as a formula"),
    (PAGE_HTML, after("<p>Text.", " so $x^2 $ is left"), "leaves '$x^2 $' as text"),
    (PAGE_HTML, after("<p>Text.", "x" * check_book.PAGE_BYTES), "weighs"),
    ("_build/html/searchindex.js", lambda text: text + " " * check_book.SEARCH_BYTES, "searchindex.js: weighs"),
    ("_build/html/searchindex.js", None, "searchindex.js: was not built"),
    (PAGE_HTML, None, "chapters/page: is in _toc.yml and was not built"),
    (check_book.STARTED, None, "holds no finished build"),
], ids=lambda value: value if isinstance(value, str) and " " in value else "")
def test_the_check_refuses(spoilt, file, edit, refusal):
    path = spoilt / file
    good, times = path.read_text(), path.stat()
    if edit is None:
        path.unlink()
    else:
        assert edit(good) != good
        path.write_text(edit(good))
    try:
        refused = check_book.check(spoilt)
        shown = subprocess.run([sys.executable, str(ROOT / "tools/check_book.py"), str(spoilt)],
                               capture_output=True, text=True)
    finally:
        path.write_text(good)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert len(refused) == 1 and refusal in refused[0]
    assert shown.returncode == 1 and refused[0] in shown.stderr


def test_the_check_refuses_a_page_from_an_earlier_build(spoilt):
    page = spoilt / PAGE_HTML
    times = page.stat()
    os.utime(page, (0, 0))
    refused = check_book.check(spoilt)
    os.utime(page, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert refused == ["chapters/page: is older than the build: make book"]


# The same book in a browser

PROBE = """<!doctype html><pre id="result">not finished</pre><script>
const wait = ms => new Promise(done => setTimeout(done, ms));
async function probe(page, width) {
  const frame = document.createElement('iframe');
  frame.width = width; frame.height = 800;
  await new Promise(done => { frame.onload = done; frame.src = page; document.body.append(frame); });
  const view = frame.contentWindow, page_ = frame.contentDocument;
  const visible = query => [...page_.querySelectorAll(query)].filter(each =>
    each.getClientRects().length && view.getComputedStyle(each).visibility !== 'hidden');
  const background = () => view.getComputedStyle(page_.body).backgroundColor;
  await view.MathJax.startup.promise;
  await wait(200);
  const seen = {
    formulas: page_.querySelectorAll('.math').length, rendered: page_.querySelectorAll('mjx-container').length,
    failed: page_.querySelectorAll('mjx-merror').length,
    overflow: page_.documentElement.scrollWidth - page_.documentElement.clientWidth,
    searches: visible('.search-button, .search-button-field').length, toggles: visible('.primary-toggle').length,
    light: background()};
  for (let press = 0; press < 3 && page_.documentElement.dataset.theme !== 'dark'; press++) {
    visible('.theme-switch-button')[0].click();
    await wait(100);
  }
  seen.dark = background();
  visible('.primary-toggle')[0].click();
  await wait(500);
  seen.menu = [...page_.querySelectorAll('dialog[open]')].map(each => each.innerText).join(' ');
  seen.sidebar_folded = page_.querySelector('.bd-sidebar-primary').classList.contains('pst-sidebar-hidden');
  seen.elsewhere = view.performance.getEntriesByType('resource').map(each => each.name)
    .filter(name => !name.startsWith(location.origin) && !name.startsWith('data:'));
  localStorage.clear();
  return seen;
}
(async () => {
  const seen = {};
  for (const page of ['intro', 'chapters/page'])
    for (const width of [1280, 390])
      seen[page + ' ' + width] = await probe(page + '.html', width);
  return seen;
})().catch(error => ({error: String(error)})).then(seen => {
  document.getElementById('result').textContent = JSON.stringify(seen);
});
</script>
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def browsed(built, tmp_path_factory):
    chromium = shutil.which("chromium")
    if not chromium:
        pytest.skip("no chromium on this machine: the book was not looked at in a browser")
    (built / "_build/html/probe.html").write_text(PROBE)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=built / "_build/html"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        answer = subprocess.run(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             f"--user-data-dir={tmp_path_factory.mktemp('browser')}", "--enable-logging=stderr",
             "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--virtual-time-budget=60000", "--dump-dom",
             f"http://127.0.0.1:{server.server_port}/probe.html"], capture_output=True, text=True, timeout=120)
    finally:
        server.shutdown()
    seen = json.loads(unescape(re.search(r'<pre id="result">(.*?)</pre>', answer.stdout, re.S)[1]))
    assert "error" not in seen, seen
    said = [line.split("CONSOLE", 1)[1] for line in answer.stderr.splitlines() if "CONSOLE" in line]
    return seen, said


VIEWS = [f"{page} {width}" for page in ("intro", "chapters/page") for width in (1280, 390)]


@pytest.mark.parametrize("view", VIEWS)
def test_in_a_browser(browsed, view):
    seen = browsed[0][view]
    assert seen["formulas"] == seen["rendered"] == (3 if view.startswith("intro") else 1)
    assert seen["failed"] == 0
    assert seen["elsewhere"] == []
    assert seen["overflow"] <= 0, "the page scrolls sideways"
    assert (seen["searches"], seen["toggles"]) == (1, 1)
    assert seen["light"] == "rgb(255, 255, 255)"
    assert all(int(part) < 64 for part in re.findall(r"\d+", seen["dark"])), "the switch does not make it dark"
    if view.endswith("390"):
        assert "A page" in seen["menu"] and "A lab" in seen["menu"], "the menu does not open"
    else:
        assert seen["sidebar_folded"], "the button does not fold the contents away"


def test_the_browser_has_nothing_to_complain_of(browsed):
    complaints = [line for line in browsed[1] if not re.search(r'"\[(PST|togglebutton)\]: ', line)]
    assert complaints == []
