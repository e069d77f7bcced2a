"""Offers every executed page for download as a notebook that reads well where MyST is unknown.

Directives become quotes and foldable details, roles become words, links between pages become their
text, citations keep their address. Cells and outputs stay as the book has them.
"""

import re
from pathlib import Path

import nbformat
from pybtex.database import parse_file

OPENING = re.compile(r"(:{3,}|`{3,})\{([\w:-]+)\}\s*(.*)$")
OPTION = re.compile(r":[\w-]+:")
LABEL = re.compile(r"\(([^()\s]+)\)=\s*$")
SPAN = re.compile(r"""(?x) \{(?P<role>[\w:]+)\}`(?P<content>[^`]+)`
  | (?P<ticks>`+)(?!`) .+? (?<!`)(?P=ticks)(?!`)                        # inline code
  | (?<!!)\[(?P<text>[^\]]*)\]\((?!https?:|\#)[^)\s]*\)                # a link to another page""")
QUOTED = {"admonition", "note", "tip", "important", "warning", "caution", "seealso"}
HEAD = """*{title}*, a page of *{project}*. It runs in the course's environment: \
`.venv/bin/pip install jupyterlab`, then `.venv/bin/jupyter lab` in the course's folder."""


def names(entry) -> str:
    """Brown et al.; Geva and Levy; NVIDIA."""
    last = [" ".join(person.prelast_names + person.last_names).strip("{}") for person in entry.persons["author"]]
    return last[0] if len(last) == 1 else " and ".join(last) if len(last) == 2 and last[1] != "others" else f"{last[0]} et al."


def citation(role, keys, entries) -> str:
    def one(key):
        entry = entries[key.strip()]
        year = entry.fields["year"]
        said = f"{names(entry)} ({year})" if role == "cite:t" else f"{names(entry)}, {year}"
        return f"[{said}]({entry.fields['url']})" if "url" in entry.fields else said

    said = [one(key) for key in keys.split(",")]
    return ", ".join(said) if role == "cite:t" else f"({'; '.join(said)})"


def words(line, entries) -> str:
    """A line of prose without roles and without links to other pages; inline code is left alone."""
    def said(match):
        role, content = match["role"], match["content"]
        if role is None:
            return match[0] if match["text"] is None else match["text"]
        if role.startswith("cite"):
            return citation(role, content, entries)
        return f"${content}$" if role == "math" else re.sub(r"\s*<[^<>]*>$", "", content)

    return SPAN.sub(said, line)


def plain(text, entries) -> str:
    """A Markdown cell in the Markdown that every notebook reader knows."""
    out, open_fences, options = [], [], False

    def put(line=""):
        quote = "> " * sum(name in QUOTED for _, name in open_fences)
        out.append((quote + line).rstrip())

    for line in text.split("\n"):
        bare = line.strip()
        fence, name = open_fences[-1] if open_fences else ("", "")
        if fence and set(bare) == {fence[0]} and len(bare) >= len(fence):
            if name == "dropdown":
                put()
                put("</details>")
            elif name in ("", "math"):
                put(line if name == "" else "$$")
            open_fences.pop()
            continue
        if fence and name == "":
            put(line)
        elif options and OPTION.match(bare):
            continue
        elif match := OPENING.match(bare):
            fence, name, title = match.groups()
            options = True
            if name in ("code-block", "code"):
                put(f"```{title}")
                name = ""
            elif name == "dropdown":
                put(f"<details><summary>{words(title, entries)}</summary>")
                put()
            elif name == "math":
                put("$$")
            open_fences.append((fence, name))
            if name in QUOTED:
                put(f"**{words(title, entries) or name.capitalize()}**")
                put()
            elif name.endswith("card"):
                put(f"**{title}**")
                put()
            continue
        elif re.match(r"(`{3,}|~{3,})[^`]*$", bare):
            open_fences.append((re.match(r"[`~]+", bare)[0], ""))
            put(line)
        elif match := LABEL.match(bare):
            put(f'<a id="{match[1]}"></a>')
            put()
        else:
            put(words(line, entries))
        options = False
    return "\n".join(out)


def offer(app, page, _template, context, _doctree):
    executed = Path(app.outdir).parent / "jupyter_execute" / f"{page}.ipynb"
    if app.builder.format != "html" or not executed.is_file():
        return
    notebook = nbformat.read(executed, as_version=4)
    entries = app.env.bibliography_entries
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = plain(cell.source, entries)
    head = HEAD.format(title=context["title"], project=app.config.html_title)
    notebook.cells.insert(0, nbformat.v4.new_markdown_cell(head, id="head"))
    target = Path(app.outdir, "_sources", f"{page}.ipynb")
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, target)
    context["ipynb_source"] = f"{page}.ipynb"


def read_bibliography(app):
    app.env.bibliography_entries = {}
    for file in app.config.bibtex_bibfiles:
        app.env.bibliography_entries |= parse_file(Path(app.srcdir, file)).entries


def setup(app):
    app.connect("builder-inited", read_bibliography)
    app.connect("html-page-context", offer, priority=400)    # before the theme makes its buttons
    return {"parallel_read_safe": True, "parallel_write_safe": True}
