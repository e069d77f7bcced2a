"""What is taken from a submission? The text of the lab's own modules; everything else is named and left alone.

A submission is a folder, a zip, one .py file or one notebook. It is read into memory, within the limits below, and never
unpacked, followed, imported or run. What cannot be taken has a reason, which says what to do.

    modules    napkin.py at the top, in costlib/, or either of them within one folder
    notebooks  code cells whose first line is `# costlib: napkin`. Their functions become the bodies of the holes of these
               names in the course's own napkin.py; the imports, constants, classes and helpers beside them follow. What
               only tries things out (calls, asserts, loops) stays behind. No kernel runs, and no output is read.
"""

import ast
import contextlib
import functools
import hashlib
import io
import json
import os
import re
import stat
import sys
import tokenize
import unicodedata
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from costlib.domain import ManifestError
from costlib.exercise import ROOT
from labs import spec

MOST_FILES = 2000  # entries of a folder or an archive
MOST_PACKED = 2**23  # bytes of an archive as it arrives
MOST_BYTES = 2**25  # bytes of all its files
MOST_RATIO = 200  # unpacked against packed, of any file too large for a module
MOST_SOURCE = 2**18  # bytes of a module
MOST_NOTEBOOK = 2**22  # bytes of a notebook, its pictures among them
MOST_PATH, MOST_DEPTH = 240, 12  # characters, folders

RECORD = "submission.json"  # what `make submit` says of a zip: for people, never believed
NOT_HANDED_IN = {"solutions", "labs", "tests"}  # folders of the course that hold files of the same names
COPY = re.compile(r" ?\((\d+)\)$")  # a browser's second download
MARK = re.compile(r"#\s*costlib:\s*(\w+)\s*")
KEPT = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)


class NotTaken(Exception):
    """Why a submission cannot be graded: what is wrong, where, and what to do."""


@dataclass(frozen=True)
class Submission:
    """What one learner handed in once."""

    learner: str  # an id, safe as a file name
    name: str  # as given, printable, at most 200 characters
    files: dict[str, bytes]  # "napkin.py" -> its text
    unexpected: tuple[str, ...]  # what else was there
    sha256: str  # digest(files); "" where nothing was taken
    reason: str = ""  # why it cannot be graded, or ""
    received: str | None = None  # 2026-11-30T10:00:00Z
    late_seconds: int | None = None  # recorded, never applied


def take(path: Path, lab: spec.Lab) -> Submission:
    """The submission at a path; whatever is there, an answer and not an exception."""
    return _take(Path(path), lab)[0]


def take_all(paths, lab: spec.Lab, due: str | None = None, times=None) -> dict[str, list[Submission]]:
    """Every submission by learner. The last of each list is the latest, which counts; the others are kept.

    times: "files" for the time at which a file was changed, a mapping (or a JSON file) of names to times, or None: then
    nothing is said of times, what is named later is later, and `ada (1).zip` is later than `ada.zip`. Nothing inside a submission says when it came.
    """
    if isinstance(times, Path):
        times = _times(times)
    deadline = due and moment(due)
    taken, paths = [], list(map(Path, paths))
    copies = [int(number[1]) if (number := COPY.search(path.stem)) else 0 for path in paths]
    if len(folders := sorted({str(named(path)[1]) for path in paths})) > 1:
        raise ManifestError("ENUM", f"the submissions lie in {len(folders)} folders, {folders[0]} and {folders[1]} among them; a learner is "
                            "known by the name of a file or folder, so put those of all learners side by side in one folder")  # fmt: skip
    for path in paths:
        submission, changed = _take(path, lab)
        if times == "files":
            received = changed
        else:
            given = times and times.get(str(path), times.get(path.name))
            received = given and moment(given)
        late = int((received - deadline).total_seconds()) if received and deadline else None
        taken.append(replace(submission, received=_written(received), late_seconds=late and max(0, late)))
    learners: dict[str, list] = {}
    taken = [submission for submission, _ in sorted(zip(_apart(taken), copies), key=lambda each: (each[0].received or "", each[1]))]
    for submission in taken:
        learners.setdefault(submission.learner, []).append(submission)
    return learners


def moment(text: str) -> datetime:
    """A point in time, to the second; one without a zone is refused."""
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo:
            return found.astimezone(timezone.utc).replace(microsecond=0)
    except (ValueError, TypeError, OverflowError):
        pass
    raise ManifestError("TYPE", f"{text!r} is no time with a zone; write 2026-11-30T23:59:00+01:00, or ...Z for UTC")


def _written(received: datetime | None) -> str | None:
    return received and received.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


def _times(file: Path) -> dict:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ManifestError("JSON", f"{file}: {error}") from None
    if type(found) is not dict:
        raise ManifestError("JSON", f'{file} is no table; write {{"lab03-ada.zip": "2026-11-30T10:00:00Z"}}')
    return found


# Who


def learner_id(label: str) -> str:
    """An id of [A-Za-z0-9._-], 1 to 64 characters. A label that had to be changed for it gets a part of its hash, so
    that two never become one, and so that the id does not depend on who else has handed in."""
    plain = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", plain).lstrip(".-").rstrip("-")
    if plain and plain == label and len(plain) <= 64 and not re.search("-[0-9a-f]{6}$", plain):  # nor is it another's, so changed
        return plain
    return f"{plain[:57].rstrip('.-') or 'learner'}-{_hash(label)}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]


def named(path: Path) -> tuple[str, Path]:
    """What the name of a file or folder says of its author, and in which folder that name stands: "ada" of lab03-ada.zip,
    of ada_params.py, of ada/params.py."""
    path = Path(os.path.abspath(path))
    name = path.stem if path.suffix.lower() in (".zip", ".py", ".ipynb") else path.name
    name = COPY.sub("", name)
    name = re.sub(r"^lab ?\d+(?![A-Za-z0-9])[-_. ]*", "", name)
    if path.suffix.lower() in (".py", ".ipynb"):
        modules = "|".join(_homes())
        name = re.sub(rf"(^|[-_. ])({modules})$", "", name)
    if name or path.parent == path:
        return name, path.parent
    return named(path.parent.parent if path.parent.name == "costlib" else path.parent)


def _apart(taken: list[Submission]) -> list[Submission]:
    """Ids that differ only in case would be one file on some machines; each of them gets a part of its hash."""
    spelt: dict[str, set] = {}
    for submission in taken:
        spelt.setdefault(submission.learner.lower(), set()).add(submission.learner)

    def own(learner):
        return learner if len(spelt[learner.lower()]) == 1 else f"{learner[:57]}-{_hash(learner)}"

    return [replace(submission, learner=own(submission.learner)) for submission in taken]


def shown(text: str, most: int = 200) -> str:
    """A learner's text on one line: what cannot be printed becomes a replacement character."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text[:most])


def digest(files: dict[str, bytes]) -> str:
    """One hash of all files, as `sha256sum *.py | sha256sum` gives it."""
    lines = "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))
    return hashlib.sha256(lines.encode()).hexdigest()


# What


def _take(path: Path, lab: spec.Lab) -> tuple[Submission, datetime | None]:
    members, changed, chosen, files, reason = {}, None, set(), {}, ""
    try:
        members, changed = _members(path, lab)
        chosen, files = _chosen(members, lab)
        for name, text in files.items():
            check(name, text, lab)
    except NotTaken as refusal:
        reason = str(refusal)[:1000]
    except OSError as error:
        reason = f"{shown(path.name)} cannot be read: {error.strerror or error}."
    unexpected = sorted(shown(name) for name in members if name not in chosen and not _is_record(name))
    learner = learner_id(named(path)[0])
    return Submission(learner, shown(path.name), files, tuple(unexpected), digest(files) if files else "", reason), changed


@functools.cache
def _homes() -> dict[str, str]:
    """Exercise module -> the lab that it belongs to."""
    return {module: number for number in spec.numbers() for module in spec.load(number).modules}


def _place(name: str) -> bool:
    """Whether a file at this place may be what was asked for."""
    *folders, _ = name.split("/")
    if folders and folders[-1] == "costlib":
        folders.pop()
    return not folders or len(folders) == 1 and folders[0] not in NOT_HANDED_IN and not folders[0].startswith((".", "__"))


def _is_record(name: str) -> bool:
    return _place(name) and name.split("/")[-1] == RECORD


def _members(path: Path, lab: spec.Lab) -> tuple[dict, datetime | None]:
    """({name: bytes | NotTaken | None}, when the latest of it was changed): None where nobody asked for the text."""
    asked = {f"{module}.py" for module in lab.modules}

    def most(name):
        """How much to read of a file at most; 0 for those that are only named."""
        file = name.split("/")[-1]
        return 0 if not _place(name) else MOST_SOURCE if file in asked else MOST_NOTEBOOK if file.endswith(".ipynb") else 0

    if stat.S_ISDIR(_plain(path.name, os.lstat(path).st_mode)):
        return _folder(path, most)
    kind = path.suffix.lower()
    limits = {".zip": MOST_PACKED, ".py": MOST_SOURCE, ".ipynb": MOST_NOTEBOOK}
    if kind not in limits:
        raise NotTaken(f"{shown(path.name)} is neither a folder nor a .zip, a .py or an .ipynb file. {_again(lab)}")
    text, changed = _read(path, path.name, limits[kind])
    if kind == ".zip":
        if isinstance(text, NotTaken):
            raise text
        return _zipped(text, most, lab), changed
    return {_module_file(path, lab) if kind == ".py" else path.name: text}, changed


def _again(lab: spec.Lab) -> str:
    return f"`make submit LAB={lab.number}` packs what is asked for."


def _module_file(path: Path, lab: spec.Lab) -> str:
    """Which module a single file is, by the last module that its name names: napkin.py, or ada_napkin-1.py."""
    named = [word for word in re.findall(r"[a-z]+", path.stem) if word in _homes()]
    if named:
        return f"{named[-1]}.py"
    return f"{lab.modules[0]}.py" if len(lab.modules) == 1 else path.name


def _plain(name: str, mode: int) -> int:
    """The mode of a file or folder; links, devices, pipes and sockets are refused."""
    if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
        return mode
    kind = "link" if stat.S_ISLNK(mode) else "device, a pipe or a socket"
    raise NotTaken(f"{shown(name)} is a {kind}, which is not followed. Hand in the file itself.")


def _inside(name: str) -> str:
    """A member's name with plain slashes; one that would lead outside, or goes too deep, is refused."""
    plain = name.replace("\\", "/")
    parts = [part for part in plain.split("/") if part not in ("", ".")]
    if plain.startswith("/") or re.match("[A-Za-z]:", plain) or ".." in parts or "\0" in plain or not parts:
        raise NotTaken(f"the name {shown(name)!r} leads outside the submission. Pack a folder that holds the files themselves.")
    if len(plain) > MOST_PATH or len(parts) > MOST_DEPTH:
        raise NotTaken(f"the name {shown(name, 60)!r}... has more than {MOST_PATH} characters or {MOST_DEPTH} folders.")
    return "/".join(parts)


def _too_many() -> NotTaken:
    return NotTaken(f"more than {MOST_FILES} files. Hand in only the module, or what `make submit` packs.")


def _too_large(name: str, most: int) -> NotTaken:
    return NotTaken(f"{shown(name)} is larger than {most} bytes.")


def _read(path, name: str, most: int, folder: int | None = None):
    """(the text of a file, or NotTaken where it is too large; when it was changed). A link is not followed, and a file
    that was put in another's place meanwhile is refused."""
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with open(opened, "rb") as file:
        status = os.fstat(opened)
        if not stat.S_ISREG(_plain(name, status.st_mode)):
            raise NotTaken(f"{shown(name)} is a folder.")
        if folder is not None and status.st_nlink > 1:
            raise NotTaken(f"{shown(name)} is a hard link to another file. Hand in a copy of the file.")
        text = file.read(most + 1)
    try:
        changed = datetime.fromtimestamp(int(status.st_mtime), timezone.utc)
    except (ValueError, OverflowError, OSError):
        changed = None
    return (text if len(text) <= most else _too_large(name, most)), changed


def _folder(path: Path, most: Callable) -> tuple[dict, datetime | None]:
    """The files of a folder. Hidden ones (.git, .venv, .ipynb_checkpoints) are not looked at."""
    members, times, entries = {}, [], 0

    def stop(error):
        raise error

    with contextlib.closing(os.fwalk(path, onerror=stop)) as walk:
        for where, folders, files, folder in walk:
            folders[:], files = ([n for n in sorted(names) if not n.startswith(".")] for names in (folders, files))
            entries += len(folders) + len(files)
            if entries > MOST_FILES:
                raise _too_many()
            for file in (*folders, *files):
                name = _inside(os.path.relpath(os.path.join(where, file), path))
                mode = _plain(name, os.stat(file, dir_fd=folder, follow_symlinks=False).st_mode)
                if stat.S_ISREG(mode):
                    members[name], changed = _read(file, name, most(name), folder) if most(name) else (None, None)
                    times += [changed] if changed else []
    return members, max(times, default=None)


def _zipped(data: bytes, most: Callable, lab: spec.Lab) -> dict:
    """The files of an archive, none of them trusted to be as long as it says."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except Exception as error:  # a broken archive raises a dozen kinds
        raise NotTaken(f"this is no zip that can be read ({shown(str(error)) or type(error).__name__}). {_again(lab)}") from None
    members, entries = {}, archive.infolist()
    if len(entries) > MOST_FILES:
        raise _too_many()
    if sum(entry.file_size for entry in entries) > MOST_BYTES:
        raise NotTaken(f"the archive unpacks to more than {MOST_BYTES} bytes. {_again(lab)}")
    for entry in entries:
        name, mode = _inside(entry.orig_filename), entry.external_attr >> 16
        if stat.S_IFMT(mode):
            _plain(name, mode)
        if entry.flag_bits & 0x41:
            raise NotTaken(f"{shown(name)} is encrypted. Pack it without a password.")
        if entry.file_size > max(MOST_SOURCE, MOST_RATIO * entry.compress_size):
            raise NotTaken(f"{shown(name)} unpacks to more than {MOST_RATIO} times its size. {_again(lab)}")
        if entry.orig_filename.endswith(("/", "\\")):
            continue
        if name in members:
            raise NotTaken(f"{shown(name)} is in the archive twice. {_again(lab)}")
        members[name] = _unpacked(archive, entry, name, most(name), lab) if most(name) else None
    return members


def _unpacked(archive, entry, name: str, most: int, lab: spec.Lab):
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # the others unpack without a bound
        raise NotTaken(f"{shown(name)} is packed by a method that is not read here ({entry.compress_type}). {_again(lab)}")
    try:
        with archive.open(entry) as member:
            text = member.read(most + 1)
    except Exception as error:
        raise NotTaken(f"{shown(name)} cannot be unpacked ({shown(str(error)) or type(error).__name__}). {_again(lab)}") from None
    return text if len(text) <= most else _too_large(name, most)


def _chosen(members: dict, lab: spec.Lab) -> tuple[set, dict[str, bytes]]:
    """(the members that are taken, {module file: text})."""
    chosen, files = set(), {}
    for file in (f"{module}.py" for module in lab.modules):
        places = [name for name in members if _place(name) and name.split("/")[-1] == file]
        for name in places:
            if isinstance(members[name], NotTaken):
                raise members[name]
        if len({members[name] for name in places}) > 1:
            raise NotTaken(f"{file} is there twice, and the two differ: {shown(', '.join(places))}. Hand in one.")
        if places:
            chosen.add(places[0])
            files[file] = members[places[0]]
    if files:
        return chosen, files
    books = [name for name in members if _place(name) and name.endswith(".ipynb")]
    if len(books) > 1:
        raise NotTaken(f"there are {len(books)} notebooks, and no {_asked(lab)}: {shown(', '.join(books))}. Hand in one.")
    if not books:
        raise _nothing(members, lab)
    if isinstance(members[books[0]], NotTaken):
        raise members[books[0]]
    return set(books), from_notebook(books[0], members[books[0]], lab)


def _asked(lab: spec.Lab) -> str:
    return " and ".join(f"{module}.py" for module in lab.modules)


def _nothing(members: dict, lab: spec.Lab) -> NotTaken:
    asked, homes = _asked(lab), _homes()
    for name in members:
        other = homes.get(name.split("/")[-1].removesuffix(".py"))
        if _place(name) and name.endswith(".py") and other:
            return NotTaken(f"{shown(name)} belongs to lab {other}; lab {lab.number} asks for {asked}. {_again(lab)}")
    if not members:
        return NotTaken(f"the submission is empty; lab {lab.number} asks for {asked}. {_again(lab)}")
    found = shown(", ".join(sorted(members)[:5]))
    note = "".join(
        f" {text}" for kind, text in ((".pyc", "Compiled files are not read."), (".zip", "A zip within a zip is not opened."))
        if any(name.endswith(kind) for name in members)
    )  # fmt: skip
    return NotTaken(f"lab {lab.number} asks for {asked}; in it is only {found}.{note} {_again(lab)}")


# Can Python read it


def check(name: str, text: bytes, lab: spec.Lab) -> ast.Module:
    """The syntax tree of a module; NotTaken with line and caret where there is none. Nothing of it is run."""
    try:
        plain = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text[: error.start].count(b"\n") + 1
        raise NotTaken(f"{name}, line {line}: this is not UTF-8 text. Save the file as UTF-8.") from None
    if not plain.strip():
        raise NotTaken(f"{name} is empty. Take the course's file and write into it.")
    try:
        coding = tokenize.detect_encoding(io.BytesIO(text).readline)[0]
    except SyntaxError as error:
        coding = shown(str(error))
    if coding not in ("utf-8", "utf-8-sig"):
        raise NotTaken(f"{name}, line 1 or 2: a coding line that is not UTF-8 ({coding}). Save the file as UTF-8 without that line.")
    tree = _parsed(name, plain)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            told, names = node.value.value, [getattr(target, "id", "") for target in node.targets]
            if "LAB" in names and told in spec.numbers() and told != lab.number:
                raise NotTaken(f"{name} belongs to lab {told} (line {node.lineno}); lab {lab.number} asks for {_asked(lab)}. {_again(lab)}")
    return tree


def _parsed(place: str, text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():  # an invalid escape is a warning, which is no reason to refuse
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        raise NotTaken(_where(place, error)) from None
    except (RecursionError, MemoryError):
        raise NotTaken(f"{place} is nested too deeply to be read.") from None
    except ValueError as error:  # a NUL, or half of a surrogate pair
        raise NotTaken(f"{place} holds a character that Python does not read ({shown(str(error))}).") from None


def _where(place: str, error: SyntaxError) -> str:
    """File, line, what Python says, the line and a caret below the column."""
    python = ".".join(map(str, sys.version_info[:2]))
    told = f"{place}, line {error.lineno or 1}: {shown(error.msg)} (read by Python {python})."
    line = (error.text or "").rstrip("\r\n")
    code = line.lstrip()
    if not code:
        return told
    column = max(0, (error.offset or 1) - 1 - (len(line) - len(code)))
    caret = f"\n  {' ' * column}^" if column <= 100 else ""
    return f"{told}\n  {shown(code, 100)}{caret}"


# Notebooks


def from_notebook(name: str, text: bytes, lab: spec.Lab) -> dict[str, bytes]:
    """{module file: text} of a notebook's marked cells."""
    cells: dict[str, list] = {}
    sources = [(number, source, MARK.fullmatch(source.split("\n", 1)[0].rstrip("\r")))
               for number, source in enumerate(_code_cells(name, text), 1) if source]  # fmt: skip
    if sum(len(source) for _, source, mark in sources if mark) > MOST_SOURCE:
        raise _too_large(f"what the marked cells of {name} hold", MOST_SOURCE)
    for number, source, mark in sources:
        if mark:
            cells.setdefault(mark[1], []).append(_cell(f"{shown(name)}, cell {number}", source))
    asked = ", ".join(f"`# costlib: {module}`" for module in lab.modules)
    for module in cells:
        if module not in lab.modules:
            home = f"belongs to lab {_homes()[module]}" if module in _homes() else "is no exercise module"
            raise NotTaken(f"{shown(name)}: `# costlib: {module}` {home}; the cells of lab {lab.number} begin with {asked}.")
    if not cells:
        raise NotTaken(f"{shown(name)}: no code cell begins with {asked}. Write this line above your functions, in each of their cells.")
    return {f"{module}.py": _filled(module, trees, lab) for module, trees in cells.items()}


def _code_cells(name: str, text: bytes) -> list[str | None]:
    """The source of every cell in order, None where it is no code; outputs and metadata are not looked at."""
    try:
        book = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise NotTaken(f"{shown(name)} is no notebook that can be read. Save it again in Jupyter.") from None
    cells = book.get("cells") if type(book) is dict else None
    if type(cells) is not list:
        raise NotTaken(f"{shown(name)} is no notebook of format 4. Save it again in Jupyter.")
    return [_source(cell) for cell in cells]


def _source(cell) -> str | None:
    if type(cell) is not dict or cell.get("cell_type") != "code":
        return None
    lines = cell.get("source")
    lines = [lines] if type(lines) is str else lines
    return "".join(lines) if type(lines) is list and all(type(line) is str for line in lines) else None


def _cell(place: str, source: str) -> ast.Module:
    try:
        return _parsed(place, source)
    except NotTaken:
        for number, line in enumerate(source.split("\n"), 1):  # in Python these begin a line only where it continues one
            if line.lstrip().startswith(("!", "%")):
                magic = shown(line.strip(), 80)
                raise NotTaken(f"{place}, line {number}: `{magic}` is for Jupyter, not Python. Take it out of this cell.") from None
        raise


def _filled(module: str, trees: list[ast.Module], lab: spec.Lab) -> bytes:
    """The course's own module with a notebook's functions in its holes; of two of one name the later."""
    names = {lab.path(e).partition(".")[2] for e in lab.exercises if lab.path(e).startswith(f"{module}.")}
    whole = ast.parse((ROOT / "costlib" / f"{module}.py").read_text(encoding="utf-8"))
    given = [node for tree in trees for node in tree.body]
    functions = {node.name: node for node in given if isinstance(node, KEPT[:2]) and node.name in names}
    beside = [node for node in given if isinstance(node, KEPT) and getattr(node, "name", None) not in names]
    try:
        whole.body = [_hole(node, functions.get(node.name)) if _is_one_of(node, names) else node for node in whole.body]
        whole.body += [node for node in beside if _follows(node, module, names)]
        return (ast.unparse(ast.fix_missing_locations(whole)) + "\n").encode()
    except (RecursionError, MemoryError, ValueError):
        raise NotTaken(f"a cell of {module} is written in a way that cannot be put together. Hand in {module}.py instead.") from None


def _is_one_of(node, names) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name in names


def _hole(hole: ast.FunctionDef, mine):
    """The hole with a learner's body. Whatever stood in it is gone: nobody else's answer is handed in."""
    if mine is None:
        hole.body = [*hole.body[: ast.get_docstring(hole) is not None], ast.parse("raise Unfilled").body[0]]
    elif isinstance(mine, ast.FunctionDef) and _parameters(mine) == _parameters(hole):
        hole.body = mine.body
    else:  # with parameters of its own it fails where it is called, and Python says why
        mine.decorator_list = []
        return mine
    return hole


def _parameters(function) -> list:
    a = function.args
    return [[p.arg for p in part if p] for part in ((*a.posonlyargs, *a.args), a.kwonlyargs, (a.vararg,), (a.kwarg,))]


def _follows(node, module: str, names: set[str]) -> bool:
    """Whether what stands beside the functions goes with them: not the loop, the module itself, or a try of a function."""
    if isinstance(node, ast.Import):
        node.names = [alias for alias in node.names if alias.name.partition(".")[0] != "labs"]
        return bool(node.names)
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").partition(".")[0] not in ("labs", "__future__") and node.module != f"costlib.{module}"
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return not any(getattr(part, "id", getattr(part, "attr", None)) in names for part in ast.walk(node))
    return True
