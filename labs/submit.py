"""What does a learner hand in? One zip with the lab's modules as they stand now, and a record of what it holds.

The exercise files are read, never written and never run. The same files give the same bytes on every machine.
"""

import ast
import contextlib
import hashlib
import io
import json
import os
import re
import tomllib
import zipfile
from pathlib import Path

from costlib.domain import ManifestError
from costlib.exercise import ROOT
from labs import holes, intake, loop, spec

WHEN = (2000, 1, 1, 0, 0, 0)  # of every file in the zip


def pack(number: str, learner: str | None = None, out: Path | None = None) -> str:
    """Write lab03-LEARNER.zip and say what is in it. BrokenFile where Python cannot read a file: nothing is written."""
    lab = spec.load(number)
    if learner and not re.fullmatch("[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?", learner):
        allowed = "1 to 64 letters, digits, '.', '_' or '-', a letter or digit first and last"
        raise ManifestError("ENUM", f"learner {learner!r}; write {allowed}")
    files = {f"{module}.py": _text(ROOT / "costlib" / f"{module}.py") for module in lab.modules}
    written = {name: body for file, text in files.items() for name, body in _functions(file, text, lab).items()}
    zipped = (out or ROOT) / f"lab{lab.number}{f'-{learner}' if learner else ''}.zip"
    _write(zipped, archive(lab, learner, files))
    return _told(lab, files, written, zipped)


def archive(lab: spec.Lab, learner: str | None, files: dict[str, bytes]) -> bytes:
    """The zip: files in order, of one time, not compressed, since that depends on the library."""
    course = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    record = {
        "lab": lab.number, "learner": learner, "course": f"{course['name']} {course['version']}",
        "sha256": {name: hashlib.sha256(text).hexdigest() for name, text in files.items()},
    }  # fmt: skip
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in sorted({**files, intake.RECORD: json.dumps(record, sort_keys=True, indent=1).encode() + b"\n"}.items()):
            entry = zipfile.ZipInfo(name, WHEN)
            entry.create_system, entry.external_attr = 3, 0o100644 << 16
            archive.writestr(entry, text)
    return packed.getvalue()


def _text(file: Path) -> bytes:
    try:
        text = file.read_bytes()
    except OSError as error:
        raise ManifestError("MISSING", f"costlib/{file.name} cannot be read: {error.strerror}") from None
    if len(text) > intake.MOST_SOURCE:
        raise loop.BrokenFile(f"costlib/{file.name} has {len(text)} bytes; at most {intake.MOST_SOURCE} are taken")
    return text


def _functions(file: str, text: bytes, lab: spec.Lab) -> dict[str, ast.FunctionDef]:
    """The exercises that a file defines, by path; BrokenFile where it cannot be read."""
    try:
        tree = intake.check(file, text, lab)
    except intake.NotTaken as refusal:
        raise loop.BrokenFile(f"costlib/{refusal}\nNothing was packed.") from None
    return {f"{file[:-3]}.{node.name}": node for node in tree.body if isinstance(node, ast.FunctionDef)}


def _write(file: Path, content: bytes) -> None:
    """The whole file or none of it."""
    unfinished = file.with_name(f"{file.name}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(content)
        os.replace(unfinished, file)
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise loop.BrokenFile(f"{file} cannot be written ({error.strerror}). Name another folder with --out.") from None


def _told(lab, files, written, zipped) -> str:
    here, paths = Path.cwd(), [lab.path(exercise) for exercise in lab.exercises]
    groups = {
        "still empty": [path for path in paths if path in written and holes.is_empty(written[path])],
        "not there": [path for path in paths if path not in written],
    }
    short = [f"{len(group)} of {len(paths)} functions are {what}: {_some(group)}" for what, group in groups.items() if group]
    place = zipped.relative_to(here) if zipped.is_relative_to(here) else zipped
    return (
        f"Lab {lab.number}, {lab.title}: {' and '.join(files)} packed.\n"
        f"  so far   {'; '.join(short) or f'all {len(paths)} functions'}\n"
        f"  right    make lab LAB={lab.number} says; nothing was run here\n"
        f"  sha256   {intake.digest(files)}, which the result repeats\n"
        f"  hand in  {place}"
    )


def _some(paths: list[str]) -> str:
    names = [path.partition(".")[2] for path in paths]
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
