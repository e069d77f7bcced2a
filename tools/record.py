"""What do the pages print? Executes them and keeps the answer in tests/recorded/.

One way only: a recording is written from its page, a page never from its recording.
A recording holds the page's own cells and every output but the pixels of a picture, so that two
machines, and two Python versions, write the same bytes. nbval executes the recordings again and
compares strictly; --check executes nothing and says which recordings no longer fit their pages.
"""

import argparse
import asyncio
import hashlib
import json
import os
import re
import sys
import tempfile
from pathlib import Path

import nbformat
import yaml
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupytext.myst import MystMetadataParsingError, myst_to_notebook
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

Cells = tuple[list, list[int]]  # a page's cells, and the line of the page on which each begins

AT_ONCE = 4  # a kernel waits for nearly half its life, so four of them suit two cores
CELL_SECONDS = 60
METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"}}
TEXTS = {"text/plain", "text/html", "text/markdown", "text/latex"}
PICTURES = {"image/png", "image/jpeg"}  # what nbval, too, leaves out of the comparison
# A last statement that ends in a semicolon, comments after it or not: IPython shows no value for it.
SILENT = re.compile(r"(?m)^[^#\n]*;[ \t]*(#[^\n]*)?(\n[ \t]*(#[^\n]*)?)*\Z")
MACHINE_PATH = re.compile(r"(?<![\w/:.~-])/(?:home|root|usr|tmp|var|opt|work|mnt|private|Users)\b|\b[A-Z]:\\")
VARYING = {
    MACHINE_PATH: "an absolute path; print a name, not a place",
    re.compile(r"\b0x[0-9a-fA-F]{7,}\b"): "an object's address; give the object a repr, or print its value",
    re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\b\d{1,2}:\d\d:\d\d\b|\b1[6-9]\d{8}\.\d{3,}"):
        "a time stamp; leave the time out",
    re.compile("data:image/"): "a picture inside text; show it as a figure"}


class ThisPython(AsyncKernelManager):
    """The running Python, whatever kernels the user has installed."""

    kernel_spec = property(lambda self: KernelSpec(**get_kernel_dict()))


class Client(NotebookClient):
    """One that starts a kernel again whose port another process took before it was bound."""

    async def async_execute(self, **options):
        try:
            return await super().async_execute(**options)
        except RuntimeError as error:
            if isinstance(error, DeadKernelError) or "before replying" not in str(error):
                raise
        return await super().async_execute(**options)


def pages(root: Path) -> list[str]:
    """Every page of the book and the labs, as a path relative to the root."""
    found = [*root.glob("intro.md"), *sorted(root.glob("chapters/**/*.md")), *sorted(root.glob("labs/*.md"))]
    names = [path.relative_to(root).as_posix() for path in found]
    return [name for name in names if not re.search(r"(^|/)[._]", name)]


def cells(text: str) -> Cells:
    """A page's cells, unexecuted; none for a page without code."""
    notebook = myst_to_notebook(text, add_source_map=True)
    if not any(cell.cell_type == "code" for cell in notebook.cells):
        return [], []
    seen: dict[str, int] = {}
    for cell in notebook.cells:
        # From the content, so that a new cell leaves the ids of the cells below it alone.
        name = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:12]
        seen[name] = seen.get(name, 0) + 1
        cell.id = name if seen[name] == 1 else f"{name}-{seen[name]}"
    starts = notebook.metadata.source_map  # counted from 0 for text, from 1 for the fence of a cell
    return notebook.cells, [n + (cell.cell_type != "code") for n, cell in zip(starts, notebook.cells)]


def recording(root: Path, page: str) -> Path:
    return root / "tests" / "recorded" / Path(page).with_suffix(".ipynb")


def shown(output) -> str:
    """Everything readable in an output, pictures left out."""
    values = [value for kind, value in output.get("data", {}).items() if kind not in PICTURES]
    values += [output.get("text", ""), output.get("ename", ""), output.get("evalue", "")]
    return "\n".join("".join(value) if isinstance(value, list) else str(value) for value in values)


def refusals(cell):
    """What an executed cell may not be or leave behind, each with what mends it."""
    if SILENT.search(cell.source):
        yield "ends in ';', which hides the value on the page and not in the check; write `_ = ...`"
    raised = [output for output in cell.outputs if output.output_type == "error"]
    if "raises-exception" in cell.metadata.get("tags", []):
        if not raised:
            yield "is tagged raises-exception and raises nothing; take the tag away, or mend the cell"
    elif raised:
        yield (f"raises {raised[0].ename}: {raised[0].evalue}; mend the cell, or tag it raises-exception "
               "if the page is about this error")
    for output in cell.outputs:
        if output.get("name") == "stderr":
            yield f"writes to stderr: {output.text.strip()[:200]!r}; remove the cause, or print to stdout"
        for kind in output.get("data", {}).keys() - TEXTS - PICTURES:
            yield f"shows {kind}, which is not the same everywhere; show a PNG figure, HTML or text"
        for pattern, what in VARYING.items():
            if match := pattern.search(shown(output)):
                yield f"shows {match.group()!r}: {what}"


def strip(cell) -> None:
    """Reduce an executed cell to what every machine agrees on."""
    cell.execution_count = 1  # without a count nbval compares nothing, however much the cell prints
    for output in cell.outputs:
        if output.output_type == "execute_result":
            output.execution_count = 1
        if output.output_type == "error":
            output.traceback = []  # paths and line numbers; name and message stay and are compared
        if "data" in output:
            output.metadata = {"picture": "left out"} if PICTURES & output.data.keys() else {}
            output.data = {kind: value for kind, value in output.data.items() if kind not in PICTURES}


async def execute(notebook, folder: Path) -> list[tuple[int, str]]:
    """Execute in place, in a folder of its own; (cell, refusal) pairs."""
    folder.mkdir()  # empty, so that a relative path finds nothing
    env = {**os.environ, "LAB_MODULE": "solutions", "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1",
           "OMP_NUM_THREADS": "1", "IPYTHONDIR": f"{folder}.ipython"}
    env.pop("MPLBACKEND", None)
    started = []
    client = Client(
        notebook, kernel_manager_class=ThisPython, kernel_name="python3", timeout=CELL_SECONDS,
        coalesce_streams=True, record_timing=False, resources={"metadata": {"path": str(folder)}},
        on_cell_start=lambda cell, cell_index: started.append(cell_index))
    try:
        await client.async_execute(env=env)
    except CellExecutionError:
        pass  # the error is among the cell's outputs
    except (CellTimeoutError, DeadKernelError):
        return [(started[-1], f"kills its kernel, or runs longer than {CELL_SECONDS} s; mend the cell")]
    return [(index, what) for index, cell in enumerate(notebook.cells[:started[-1] + 1])
            if cell.cell_type == "code" for what in refusals(cell)]


async def record(root: Path, book: dict[str, Cells]) -> list[str]:
    """Write the recordings of these pages; a page that is refused keeps the recording it had."""
    refused, turn = [], asyncio.Semaphore(AT_ONCE)

    async def one(page: str, folder: Path):
        page_cells, lines = book[page]
        notebook = nbformat.from_dict({"cells": page_cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
        async with turn:
            faults = await execute(notebook, folder)
        for index, what in faults:
            number = sum(cell.cell_type == "code" for cell in notebook.cells[:index + 1])
            refused.append(f"{page}:{lines[index]}: code cell {number} {what}")
        if faults:
            return
        for cell in notebook.cells:
            if cell.cell_type == "code":
                strip(cell)
        notebook.metadata = METADATA
        target = recording(root, page)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.{os.getpid()}")
        part.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8", newline="\n")
        os.replace(part, target)
        print("recorded", page, flush=True)

    with tempfile.TemporaryDirectory() as scratch:
        with_code = [page for page in book if book[page][0]]
        await asyncio.gather(*(one(page, Path(scratch, str(number))) for number, page in enumerate(with_code)))
    return sorted(refused)


def difference(root: Path, page: str, page_cells: list, lines: list[int]) -> str | None:
    """Why the page's recording does not fit it, or None."""
    if not page_cells:
        return None
    try:
        kept = [(cell["cell_type"], cell["id"], cell["metadata"], "".join(cell["source"]))
                for cell in json.loads(recording(root, page).read_text(encoding="utf-8"))["cells"]]
    except FileNotFoundError:
        return "has no recording"
    except (ValueError, KeyError, TypeError):
        return "has a recording that cannot be read"
    now = [(cell.cell_type, cell.id, cell.metadata, cell.source) for cell in page_cells]
    same = next((i for i, (a, b) in enumerate(zip(kept, now)) if a != b), min(len(kept), len(now)))
    if same == len(now) == len(kept):
        return None
    return f"differs from its recording, from line {lines[min(same, len(now) - 1)]} on"


def left_over(root: Path, book: dict[str, Cells]) -> list[Path]:
    """Recordings whose page is gone, or has no code any more."""
    wanted = {recording(root, page) for page in book if book[page][0]}
    return sorted(set((root / "tests" / "recorded").glob("**/*.ipynb")) - wanted)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", nargs="*", help="a page, as a path from the root (default: every page)")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the course's folder")
    parser.add_argument("--check", action="store_true", help="write nothing; list the recordings that do not fit")
    options = parser.parse_args(arguments)
    root, book = options.root.resolve(), {}
    if not (every := pages(root)):
        parser.error("no pages: intro.md, chapters/**/*.md, labs/*.md")
    if unknown := [page for page in options.page if page not in every]:
        parser.error(f"no such page: {', '.join(unknown)}; a page is named as in {every[0]}")
    for page in every:
        try:
            book[page] = cells((root / page).read_text(encoding="utf-8"))
        except (MystMetadataParsingError, yaml.YAMLError) as error:
            parser.error(f"{page}: {error}")
    chosen = {page: book[page] for page in options.page or every}
    extra = [] if options.page else left_over(root, book)
    if options.check:
        faults = [f"{page}: {why}" for page in chosen if (why := difference(root, page, *chosen[page]))]
        faults += [f"{path.relative_to(root).as_posix()}: left over, its page is gone" for path in extra]
        faults += ["mend: make record"] if faults else []
    else:
        faults = asyncio.run(record(root, chosen))
        for path in extra:
            path.unlink()
            print("removed", path.relative_to(root).as_posix())
    print(*faults, sep="\n", end="\n" if faults else "", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
