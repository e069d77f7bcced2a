"""Builds the book that lies in a folder (this repository, unless another is named) and checks the result.

Everything is executed anew, on every build. `_build` is deleted first; then the pages run, four at a time
(kernels spend much of their life waiting, so four suit two cores), and Sphinx, which by itself would run
one after another, is handed their outputs in memory. No cache is kept that could miss a changed costlib.
"""

import asyncio
import re
import shutil
import sys
import time
from pathlib import Path
from textwrap import indent

import check_book
import yaml
from jupyter_book.sphinx import build_sphinx
from jupyter_cache.executors.utils import ExecutionResult
from myst_nb.core.execute import direct
from myst_nb.core.read import is_myst_markdown_notebook, read_myst_markdown_notebook
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from record import Client, ThisPython
from sphinx.util.console import nocolor

KERNELS = 4
TRACEBACK_LINES = 20


def read_notebooks(root, documents):
    """Page -> notebook, for the pages that hold code."""
    texts = {page: page.read_text("utf8") for page in (root / f"{document}.md" for document in documents)}
    return {page: read_myst_markdown_notebook(text, add_source_map=True, path=page)
            for page, text in texts.items() if is_myst_markdown_notebook(text)}


async def execute(page, notebook, timeout, gate):
    """Runs one page. Returns what to tell the author if a cell fails, else None."""
    reached = [0]
    client = Client(
        notebook, kernel_manager_class=ThisPython, timeout=timeout, record_timing=False,
        resources={"metadata": {"path": str(page.parent)}},
        on_cell_start=lambda cell, cell_index: reached.append(cell_index))
    async with gate:
        try:
            await client.async_execute()
        except CellExecutionError as error:
            reason, trace = f"{error.ename}: {error.evalue}", error.traceback
        except (CellTimeoutError, DeadKernelError) as error:
            reason, trace = str(error).strip(), ""
        else:
            return None
    cell, line = notebook.cells[reached[-1]], notebook.metadata["source_map"][reached[-1]]
    trace = re.sub(r"\x1b\[[0-9;]*m", "", trace).splitlines()[-TRACEBACK_LINES:]
    return "\n".join([f"{page}:{line}: this cell fails with {reason}", "", indent(cell.source, "    "), "", *trace, ""])


async def execute_all(notebooks, timeout):
    gate = asyncio.Semaphore(KERNELS)
    told = await asyncio.gather(*(execute(page, notebook, timeout, gate) for page, notebook in notebooks.items()))
    return [message for message in told if message]


def hand_over(notebooks):
    """Makes myst-nb take the outputs of the pages that have just run; any other page it executes as usual."""
    def key(notebook, folder):
        return folder, *(cell.source for cell in notebook.cells if cell.cell_type == "code")

    run = {key(notebook, str(page.parent)): notebook for page, notebook in notebooks.items()}
    execute_alone = direct.single_nb_execution

    def execute_or_take(notebook, cwd, **options):
        done = run.get(key(notebook, cwd))
        if done is None:
            return execute_alone(notebook, cwd=cwd, **options)
        cells = [[cell for cell in each.cells if cell.cell_type == "code"] for each in (notebook, done)]
        for cell, finished in zip(*cells, strict=True):
            cell.outputs, cell.execution_count = finished.outputs, finished.execution_count
        notebook.metadata["language_info"] = done.metadata["language_info"]
        return ExecutionResult(notebook, cwd, 0)

    direct.single_nb_execution = execute_or_take


def main(root):
    began = time.monotonic()
    config, build = yaml.safe_load((root / "_config.yml").read_text("utf8")), root / "_build"
    documents = check_book.toc_documents(root)
    for document in documents:
        if not (root / f"{document}.md").exists():
            sys.exit(f"_toc.yml names {document}, and there is no {document}.md.")

    shutil.rmtree(build, ignore_errors=True)
    build.mkdir()
    (root / check_book.STARTED).touch()

    print(f"Executing {len(documents)} pages ...", flush=True)
    notebooks = read_notebooks(root, documents)
    if failures := asyncio.run(execute_all(notebooks, config["execute"]["timeout"])):
        sys.exit("\n".join(failures))
    hand_over(notebooks)

    print("Building the book ...", flush=True)
    if not sys.stderr.isatty():
        nocolor()
    status = build_sphinx(
        root, build / "html", noconfig=True, path_config=root / "_config.yml",
        confoverrides={"external_toc_path": str(root / "_toc.yml"), "latex_individualpages": False, "nitpicky": True},
        quiet=True, warningiserror=True, keep_going=True)
    if status != 0:
        sys.exit("Not built: warnings are errors here.")
    if refusals := check_book.check(root):
        sys.exit("\n".join(refusals))

    print(f"Built and checked in {time.monotonic() - began:.0f} s. The start page:\n"
          f"  {build / 'html/index.html'}\n"
          "To search with excerpts, serve the book:\n"
          f"  python3 -m http.server -d '{build / 'html'}'")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else __file__ + "/../..").resolve())
