"""What is taken from a submission: every threat of an archive, a folder, a notebook, a name, each refused before anything runs."""

import ast
import io
import json
import os
import socket
import stat
import struct
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costlib.domain import ManifestError
from costlib.exercise import ROOT
from labs import intake, spec

LAB, PARAMS, TWO = spec.load("01"), spec.load("03"), spec.load("12")
MINE = b"def matmul_flops(m, k, n, batch=1):\n    return 2 * batch * m * k * n\n"
OTHER = MINE.replace(b"2 *", b"1 *")


def unlike(call):
    """Files of the working folder and its parents' names, before and after: nothing is written."""
    before = sorted(os.listdir(".")), sorted(os.listdir(".."))
    result = call()
    assert (sorted(os.listdir(".")), sorted(os.listdir(".."))) == before
    return result


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


def take(path, lab=LAB):
    return unlike(lambda: intake.take(path, lab))


def zipped(path, *members, method=zipfile.ZIP_DEFLATED):
    """A zip of (name or ZipInfo, text)."""
    with zipfile.ZipFile(path, "w", method) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two members of one name are a warning
        for name, text in members:
            archive.writestr(name, text)
    return path


def entry(name, mode):
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info


def folder(path, **files):
    path.mkdir(parents=True)
    for name, text in files.items():
        (path / f"{name}.py").write_bytes(text)
    return path


def book(*cells):
    """A notebook of code cells, each a source or a whole cell."""
    code = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [code | {"source": cell} if isinstance(cell, str) else cell for cell in cells]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).encode()


def notebook(path, *cells):
    path.write_bytes(book(*cells))
    return path


def refused(path, *words, lab=LAB):
    """The reason of a submission that is not taken."""
    taken = take(path, lab)
    assert taken.reason and all(word in taken.reason for word in words), taken.reason
    return taken.reason


# What is taken


PLACES = ["napkin.py", "costlib/napkin.py", "ada/napkin.py", "ada/costlib/napkin.py", "./napkin.py", "costlib\\napkin.py"]


@pytest.mark.parametrize("place", PLACES)
def test_a_module_is_found_in_a_zip_where_learners_put_it(tmp_path, place):
    taken = take(zipped(tmp_path / "ada.zip", ("costlib/", ""), (place, MINE)))
    assert (taken.reason, taken.files, taken.unexpected, taken.learner) == ("", {"napkin.py": MINE}, (), "ada")


@pytest.mark.parametrize("place", PLACES[:4])
def test_a_module_is_found_in_a_folder_where_learners_put_it(tmp_path, place):
    (tmp_path / "bob" / place).parent.mkdir(parents=True)
    (tmp_path / "bob" / place).write_bytes(MINE)
    taken = take(tmp_path / "bob")
    assert (taken.reason, taken.files, taken.unexpected, taken.learner) == ("", {"napkin.py": MINE}, (), "bob")


@pytest.mark.parametrize("name, learner", [
    ("napkin.py", "dora"), ("ada.py", "ada"), ("ada_napkin.py", "ada"), ("lab01-ada.py", "ada"), ("napkin (1).py", "dora"),
])
def test_a_single_file_is_the_labs_module_whatever_its_name(tmp_path, name, learner):
    folder(tmp_path / "dora")
    (tmp_path / "dora" / name).write_bytes(MINE)
    taken = take(tmp_path / "dora" / name)
    assert (taken.reason, taken.files, taken.learner) == ("", {"napkin.py": MINE}, learner)


def test_a_whole_course_as_github_zips_it_gives_the_module_and_not_the_reference(tmp_path):
    names = [path.relative_to(ROOT).as_posix() for part in ("costlib", "labs", "solutions", "tests") for path in (ROOT / part).rglob("*.py")]
    path = zipped(tmp_path / "ada.zip", *((f"course-main/{name}", (ROOT / name).read_bytes()) for name in names))
    taken = take(path)
    assert taken.reason == "" and taken.files == {"napkin.py": (ROOT / "costlib/napkin.py").read_bytes()}
    assert "course-main/solutions/napkin.py" in taken.unexpected


def test_a_lab_of_two_modules_takes_both_or_the_one_that_is_there(tmp_path):
    one = folder(tmp_path / "one", papers=b"x = 1\n")
    both = folder(tmp_path / "both", papers=b"x = 1\n", sensitivity=b"y = 1\n")
    assert take(one, TWO).files == {"papers.py": b"x = 1\n"}
    assert take(both, TWO).files == {"papers.py": b"x = 1\n", "sensitivity.py": b"y = 1\n"}
    assert take(both / "sensitivity.py", TWO).files == {"sensitivity.py": b"y = 1\n"}
    (both / "mine.py").write_bytes(b"x = 1\n")
    refused(both / "mine.py", "sensitivity.py and papers.py", "mine.py", lab=TWO)


def test_the_hash_is_of_the_text_alone(tmp_path):
    alone = folder(tmp_path / "a", napkin=MINE)
    packed = zipped(tmp_path / "b.zip", ("x/costlib/napkin.py", MINE), ("notes.txt", b"later"))
    by_hand = subprocess.run("sha256sum napkin.py | sha256sum", shell=True, cwd=alone, capture_output=True, text=True, check=True)
    assert take(alone).sha256 == take(packed).sha256 == by_hand.stdout.split()[0]
    assert take(folder(tmp_path / "c", napkin=OTHER)).sha256 != take(alone).sha256


def test_nothing_of_it_is_run_or_imported(tmp_path):
    text = f"open({str(tmp_path / 'ran')!r}, 'w')\nimport a_module_of_mine\n".encode()
    before = set(sys.modules)
    for path in (folder(tmp_path / "a", napkin=text, a_module_of_mine=text), zipped(tmp_path / "a.zip", ("napkin.py", text)),
                 notebook(tmp_path / "a.ipynb", "# costlib: napkin\n" + text.decode())):  # fmt: skip
        assert take(path).reason == ""
    assert not (tmp_path / "ran").exists() and not {m for m in set(sys.modules) - before if "mine" in m or "napkin" in m}


# T12, T13, T44: other files


def test_t12_files_that_steer_python_or_pytest_are_named_and_left(tmp_path):
    names = ("conftest.py", "pytest.ini", "pyproject.toml", "sitecustomize.py", "usercustomize.py", "a.pth", "costlib/exercise.py")
    taken = take(zipped(tmp_path / "ada.zip", ("napkin.py", MINE), *((name, b"x") for name in names)))
    assert taken.reason == "" and taken.files == {"napkin.py": MINE} and taken.unexpected == tuple(sorted(names))


def test_t13_files_that_shadow_the_library_or_the_course_are_named_and_left(tmp_path):
    names = ("json.py", "random.py", "costlib/__init__.py", "costlib/ledger.py", "params.py")
    taken = take(zipped(tmp_path / "ada.zip", ("costlib/napkin.py", MINE), *((name, b"x") for name in names)))
    assert taken.reason == "" and taken.files == {"napkin.py": MINE} and taken.unexpected == tuple(sorted(names))


def test_t44_compiled_and_pickled_files_are_named_and_never_read(tmp_path):
    names = ("napkin.pyc", "costlib/__pycache__/napkin.cpython-311.pyc", "answers.pkl", "answers.marshal")
    taken = take(zipped(tmp_path / "ada.zip", ("napkin.py", MINE), *((name, b"x") for name in names)))
    assert taken.reason == "" and taken.files == {"napkin.py": MINE} and taken.unexpected == tuple(sorted(names))
    refused(zipped(tmp_path / "bob.zip", *((name, b"x") for name in names)), "asks for napkin.py", "Compiled files are not read")


# T16: archives and folders


@pytest.mark.parametrize("name", ["../napkin.py", "a/../../napkin.py", "/etc/napkin.py", "C:/napkin.py", "..\\napkin.py", "\\\\host\\napkin.py"])
def test_t16_a_name_that_leads_outside_is_refused_and_nothing_is_written(tmp_path, name):
    refused(zipped(tmp_path / "ada.zip", ("napkin.py", MINE), (name, MINE)), "leads outside")


def test_t16_a_name_with_a_nul_is_refused(tmp_path):
    path = zipped(tmp_path / "ada.zip", ("napkin.pyX.txt", MINE))
    path.write_bytes(path.read_bytes().replace(b"napkin.pyX", b"napkin.py\0"))
    refused(path, "leads outside", "napkin.py\ufffd.txt")


@pytest.mark.parametrize("mode, word", [
    (stat.S_IFLNK, "link"), (stat.S_IFCHR, "device"), (stat.S_IFBLK, "device"), (stat.S_IFIFO, "pipe"), (stat.S_IFSOCK, "socket"),
])
@pytest.mark.parametrize("name", ["napkin.py", "elsewhere"])
def test_t16_links_and_devices_in_a_zip_are_refused(tmp_path, mode, word, name):
    refused(zipped(tmp_path / "ada.zip", (entry(name, mode | 0o777), b"/etc/passwd")), word, name)


def test_t16_a_real_link_in_a_zip_is_refused(tmp_path):
    os.symlink("/etc/passwd", "napkin.py")
    with zipfile.ZipFile(tmp_path / "ada.zip", "w") as archive:
        archive.writestr(entry("napkin.py", os.lstat("napkin.py").st_mode), os.readlink("napkin.py"))
    refused(tmp_path / "ada.zip", "napkin.py is a link")


@pytest.mark.parametrize("make", [
    lambda path: path.symlink_to("/etc/passwd"), lambda path: path.symlink_to("/"), lambda path: os.mkfifo(path),
    lambda path: socket.socket(socket.AF_UNIX).bind(path.name),
], ids=["link", "link to a folder", "pipe", "socket"])  # fmt: skip
@pytest.mark.parametrize("name", ["napkin.py", "costlib"])
def test_t16_links_and_pipes_in_a_folder_are_refused(tmp_path, monkeypatch, make, name):
    monkeypatch.chdir(folder(tmp_path / "ada"))
    make(tmp_path / "ada" / name)
    refused(tmp_path / "ada", name, "not followed")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
def test_t16_a_device_in_a_folder_is_refused(tmp_path):
    try:
        os.mknod(folder(tmp_path / "ada") / "napkin.py", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("this container makes no devices")
    refused(tmp_path / "ada", "device")


def test_t16_a_hard_link_in_a_folder_is_refused(tmp_path):
    (tmp_path / "secret").write_bytes(MINE)
    os.link(tmp_path / "secret", folder(tmp_path / "ada") / "napkin.py")
    refused(tmp_path / "ada", "hard link")


@pytest.mark.parametrize("name", ["ada", "ada.zip", "ada.py"])
def test_t16_a_submission_that_is_a_link_itself_is_refused(tmp_path, name):
    (tmp_path / name).symlink_to(folder(tmp_path / "real", napkin=MINE) / ("napkin.py" if "." in name else ""))
    refused(tmp_path / name, "link")


def test_hidden_folders_are_not_looked_at_whatever_is_in_them(tmp_path):
    ada = folder(tmp_path / "ada", napkin=MINE)
    folder(ada / ".venv/bin", python=b"x")
    (ada / ".venv/bin/python3").symlink_to("/usr/bin/python3")
    (ada / ".git").symlink_to("/")
    taken = take(ada)
    assert (taken.reason, taken.unexpected) == ("", ())


def test_t16_a_bomb_is_refused_by_what_it_says_of_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(intake, "MOST_BYTES", 2**22)
    refused(zipped(tmp_path / "one.zip", ("napkin.py", bytes(2**21))), "more than 200 times its size")
    refused(zipped(tmp_path / "many.zip", ("napkin.py", MINE), *((f"{i}.txt", bytes(2**17)) for i in range(40))), "unpacks to more than")


def test_t16_a_bomb_that_lies_about_its_size_is_read_no_further_than_the_limit(tmp_path):
    path = zipped(tmp_path / "ada.zip", ("napkin.py", bytes(2**26)))
    data, small = path.read_bytes(), struct.pack("<L", 1000)
    path.write_bytes(data.replace(struct.pack("<L", 2**26), small))
    tracemalloc.start()
    refused(path, "napkin.py")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24  # a quarter of the bomb; half of that is the room for the archive itself


def test_t16_too_many_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(intake, "MOST_FILES", 50)
    refused(zipped(tmp_path / "ada.zip", *((f"{i}.txt", b"") for i in range(51))), "more than 50 files")
    refused(folder(tmp_path / "bob", **{f"m{i}": b"" for i in range(51)}), "more than 50 files")


def test_t16_a_hundred_thousand_files_are_refused(tmp_path):
    refused(zipped(tmp_path / "ada.zip", *((str(i), b"") for i in range(10**5))), "ada.zip is larger than")
    refused(zipped(tmp_path / "bob.zip", *((str(i), b"") for i in range(5 * 10**4))), "more than 2000 files")


def test_t16_names_too_long_or_too_deep_are_refused(tmp_path):
    refused(zipped(tmp_path / "ada.zip", ("a" * 300, b"")), "240 characters")
    refused(zipped(tmp_path / "bob.zip", ("a/" * 13 + "b", b"")), "12 folders")
    folder(tmp_path / "dora" / "/".join("a" * 13), x=b"")
    refused(tmp_path / "dora", "12 folders")


def test_t16_an_archive_or_a_module_that_is_too_large_is_refused(tmp_path, monkeypatch):
    big = b"# " + os.urandom(2000).hex().encode()
    for name, limit in (("ada.zip", "MOST_PACKED"), ("bob.zip", "MOST_SOURCE")):
        with monkeypatch.context() as patched:
            path = zipped(tmp_path / name, ("napkin.py", big))
            patched.setattr(intake, limit, 1000)
            refused(path, "larger than 1000 bytes")
    monkeypatch.setattr(intake, "MOST_SOURCE", 1000)
    refused(folder(tmp_path / "eve", napkin=big), "napkin.py is larger than 1000 bytes")
    refused(tmp_path / "eve/napkin.py", "napkin.py is larger than 1000 bytes")


def test_t16_the_same_name_twice_in_a_zip_is_refused(tmp_path):
    refused(zipped(tmp_path / "ada.zip", ("napkin.py", MINE), ("napkin.py", OTHER)), "napkin.py is in the archive twice")
    refused(zipped(tmp_path / "bob.zip", ("napkin.py", MINE), ("./napkin.py", OTHER)), "twice")


def test_t16_an_encrypted_zip_is_refused(tmp_path):
    path = zipped(tmp_path / "ada.zip", ("napkin.py", MINE))
    data = bytearray(path.read_bytes())
    for signature, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(signature) + flags] |= 1
    path.write_bytes(data)
    refused(path, "napkin.py is encrypted", "without a password")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_t16_a_packing_method_without_a_bound_is_refused(tmp_path, method):
    refused(zipped(tmp_path / "ada.zip", ("napkin.py", MINE * 9), method=method), f"not read here ({int(method)})")


def test_t16_a_corrupt_zip_is_refused(tmp_path):
    whole = zipped(tmp_path / "whole.zip", ("napkin.py", MINE * 20), method=zipfile.ZIP_STORED).read_bytes()
    for name, data in {"empty": b"", "text": b"not a zip", "cut": whole[:-30], "changed": whole.replace(b"return", b"RETURN")}.items():
        (tmp_path / f"{name}.zip").write_bytes(data)
        refused(tmp_path / f"{name}.zip", "make submit LAB=01")


def test_a_zip_in_a_zip_is_not_opened(tmp_path):
    inner = zipped(tmp_path / "inner.zip", ("napkin.py", MINE)).read_bytes()
    refused(zipped(tmp_path / "ada.zip", ("lab01.zip", inner)), "A zip within a zip is not opened")


def test_what_is_no_submission_is_named(tmp_path):
    (tmp_path / "answers.docx").write_bytes(b"x")
    refused(tmp_path / "answers.docx", "answers.docx is neither a folder nor")
    refused(tmp_path / "gone.zip", "gone.zip cannot be read", "No such file")
    refused(Path("/dev/null"), "device")


# T39: can Python read it


BROKEN = {
    "a missing bracket": (b"x = 1\ny = (2,\nz = 3\n", "line 2", "'(' was never closed", "\n  y = (2,\n      ^"),
    "indentation": (b"def f():\nreturn 1\n", "line 2", "expected an indented block", "\n  return 1\n  ^"),
    "tabs and spaces": (b"if 1:\n\tx = 1\n        y = 2\n", "line 3", "tabs and spaces"),
    "in an indented line": (b"def f(x):\n\tif x:\n\t\treturn 2 *\n", "line 3", "\n  return 2 *\n            ^"),
    "Python 3.14": (b'name = "ada"\nx = t"{name}"\n', "line 2", "read by Python 3."),
    "a word for a number": (b"x = 0777\n", "line 1", "leading zeros"),
    "a merge": (b"x = 1\n<<<<<<< HEAD\n", "line 2", "invalid syntax"),
}


@pytest.mark.parametrize("text, words", [(text, words) for text, *words in BROKEN.values()], ids=BROKEN)
def test_t39_what_python_cannot_read_is_refused_with_line_and_caret(tmp_path, text, words):
    taken = take(folder(tmp_path / "ada", napkin=text))
    assert all(word in taken.reason for word in ("napkin.py, ", *words)), taken.reason
    assert taken.files == {"napkin.py": text} and len(taken.sha256) == 64


@pytest.mark.parametrize("text", [
    b"\xef\xbb\xbf" + MINE, MINE.replace(b"\n", b"\r\n"), MINE.replace(b"    ", b"\t"), b"# -*- coding: utf-8 -*-\n" + MINE,
    MINE.replace(b"\n", b"\r"), MINE + b'"\\d"\n', "x = 'é'\n".encode(), b"\xef\xbb\xbf# coding: UTF-8\r\n" + MINE,
], ids=["BOM", "CRLF", "tabs", "coding", "CR", "invalid escape", "UTF-8", "BOM, coding and CRLF"])  # fmt: skip
def test_t39_how_an_editor_saves_is_fine(tmp_path, text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        taken = take(folder(tmp_path / "ada", napkin=text))
    assert (taken.reason, taken.files) == ("", {"napkin.py": text})


@pytest.mark.parametrize("text, words", [
    (b"x = 1\ny = '\xe9'\n", ("line 2", "not UTF-8 text")), (b"# coding: latin-1\nx = 1\n", ("iso-8859-1", "without that line")),
    (b"# coding: utf-7\nx = 1\n", ("utf-7",)), (b"# coding: no-such\n", ("no-such",)), ("x = 1\n".encode("utf-16"), ("not UTF-8",)),
    (b"\xef\xbb\xbf# coding: latin-1\n", ("coding line",)), (b"#!/bin/python\n# vim: set fileencoding=rot13 :\nk = 1\n", ("rot13",)),
    (b"x = 1\0\n", ("napkin.py", "null byte")), (b"x = '\xed\xa0\x80'\n", ("not UTF-8",)),
])  # fmt: skip
def test_t39_another_encoding_is_refused(tmp_path, text, words):
    refused(folder(tmp_path / "ada", napkin=text), *words)


@pytest.mark.parametrize("text", [
    "x = " + "-" * 10**5 + "1", "x = a" + ".b" * 10**5, "x = 1" + "+1" * 10**5, "x = " + "lambda:" * 30000 + "1", "(" * 10**5,
    "if a:\n p\n" + "elif a:\n p\n" * 20000, "x = " + "9" * 10**5, "\n".join(" " * i + "if 1:" for i in range(300)),
], ids=["minus", "attributes", "sum", "lambda", "brackets", "elif", "digits", "indentation"])  # fmt: skip
def test_t39_what_is_nested_without_end_is_refused(tmp_path, text):
    refused(folder(tmp_path / "ada", napkin=text.encode()), "napkin.py")


def test_what_a_reason_quotes_is_short_and_on_its_line(tmp_path):
    reason = refused(folder(tmp_path / "ada", napkin=b"x = '\x1b[31m\x00::notice::" + b"y" * 5000 + b"\n"), "line 1")
    assert len(reason) < 600 and all(line.isprintable() for line in reason.split("\n"))


# T40: which lab


def test_t40_an_empty_submission_says_so(tmp_path):
    refused(folder(tmp_path / "a"), "is empty", "napkin.py", "make submit LAB=01")
    refused(zipped(tmp_path / "b.zip"), "is empty")
    for name, text in {"c": b"", "d": b" \n\t\n", "e": b"\xef\xbb\xbf"}.items():
        refused(folder(tmp_path / name, napkin=text), "napkin.py is empty")


def test_t40_the_unchanged_starter_is_taken(tmp_path):
    for lab in map(spec.load, spec.numbers()):
        files = {module: (ROOT / "costlib" / f"{module}.py").read_bytes() for module in lab.modules}
        taken = take(folder(tmp_path / f"learner{lab.number}", **files), lab)
        assert taken.reason == "" and {name[:-3]: text for name, text in taken.files.items()} == files


def test_t40_another_lab_is_named(tmp_path):
    text = (ROOT / "costlib/params.py").read_bytes()
    refused(folder(tmp_path / "ada", params=text), "params.py belongs to lab 03", "lab 01 asks for napkin.py")
    refused(tmp_path / "ada/params.py", "belongs to lab 03")
    refused(folder(tmp_path / "bob", napkin=text), "napkin.py belongs to lab 03 (line 12)")
    (tmp_path / "eve.py").write_bytes(text)
    refused(tmp_path / "eve.py", "belongs to lab 03")
    refused(notebook(tmp_path / "f.ipynb", "# costlib: params\nx = 1"), "belongs to lab 03", "begin with `# costlib: napkin`")


def test_t40_two_that_differ_are_refused_and_two_that_are_equal_are_one(tmp_path):
    refused(zipped(tmp_path / "ada.zip", ("napkin.py", MINE), ("costlib/napkin.py", OTHER)), "there twice", "costlib/napkin.py")
    taken = take(zipped(tmp_path / "bob.zip", ("napkin.py", MINE), ("costlib/napkin.py", MINE)))
    assert (taken.reason, taken.files) == ("", {"napkin.py": MINE})


# T43: notebooks


SOLVED = """# costlib: napkin
import math
from fractions import Fraction as F
from costlib.napkin import params_per_layer
import labs

ROUND = 7

def helper(x):
  return math.ceil(x)

def matmul_flops(m, k, n, batch=1):
  "Mine."
  # a comment
  return 2 * batch * m * k * helper(n)

labs.check("matmul_flops")
assert matmul_flops(1, 1, 1) == 2
tried = matmul_flops(2, 3, 4)
print(tried)
"""


def ran(text, name, *args):
    """What a function of a module text answers, in a Python of its own: the tests' own notebooks may run."""
    code = "import sys; from costlib import napkin; exec(compile(sys.stdin.read(), 'napkin.py', 'exec'), vars(napkin)); "
    code += f"print(repr(napkin.{name}{args}))"
    done = subprocess.run([sys.executable, "-c", code], input=text.decode(), capture_output=True, text=True, cwd=ROOT,
                          env={"LAB_MODULE": "costlib", "PYTHONDONTWRITEBYTECODE": "1"})  # fmt: skip
    return done.stdout.strip() or done.stderr.strip().split("\n")[-1]


def functions(text):
    return {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


def test_t43_marked_cells_fill_the_holes_of_the_courses_own_module(tmp_path):
    more = "# costlib: napkin\ndef training_flops(n_params, n_tokens): return 6 * n_params * n_tokens"
    taken = take(notebook(tmp_path / "ada.ipynb", "!pip install x", SOLVED, "scratch = 1/0", more))
    assert (taken.reason, list(taken.files), taken.unexpected) == ("", ["napkin.py"], ())
    text = taken.files["napkin.py"]
    made, holes = functions(text), functions((ROOT / "costlib/napkin.py").read_text(encoding="utf-8"))
    assert made.keys() == {*holes, "helper"}
    for name, hole in holes.items():
        assert [ast.unparse(d) for d in made[name].decorator_list] == [ast.unparse(d) for d in hole.decorator_list]
        assert ast.unparse(made[name].args) == ast.unparse(hole.args), name
    empty = {name for name in holes if ast.unparse(made[name].body[-1]) == "raise Unfilled"}
    assert empty == set(holes) - {"matmul_flops", "training_flops"}
    assert (ran(text, "matmul_flops", 2, 3, 5), ran(text, "training_flops", 2, 3)) == ("60", "36")
    assert "TYPE" in ran(text, "matmul_flops", 2.0, 3, 5), "the hole's annotations still check"
    assert not any(word in text.decode() for word in ("tried", "scratch", "labs", "assert")) and b"ROUND = 7" in text


def test_t43_nobody_elses_answer_is_in_the_module(tmp_path, monkeypatch):
    """A course whose own holes somebody has filled."""
    (tmp_path / "course/costlib").mkdir(parents=True)
    hole = (ROOT / "costlib/napkin.py").read_text(encoding="utf-8")
    (tmp_path / "course/costlib/napkin.py").write_text(hole.replace("raise Unfilled", "return 'the instructor'"), encoding="utf-8")
    monkeypatch.setattr(intake, "ROOT", tmp_path / "course")
    taken = take(notebook(tmp_path / "ada.ipynb", SOLVED))
    assert taken.reason == "" and b"the instructor" not in taken.files["napkin.py"]


def test_t43_magics_are_refused_with_cell_and_line(tmp_path):
    for line in ("!rm -rf /", "%run other.ipynb", "  %timeit f()"):
        path = notebook(tmp_path / "ada.ipynb", "1", f"# costlib: napkin\nx = 1\n{line}\n")
        assert refused(path, "ada.ipynb, cell 2, line 3", line.strip(), "for Jupyter")
    refused(notebook(tmp_path / "bob.ipynb", "# costlib: napkin\nx = (\n"), "bob.ipynb, cell 1, line 2", "never closed")
    fine = notebook(tmp_path / "eve.ipynb", "# costlib: napkin\nx = (7\n% 4)\ny = (7\n!= 4)\n", "%matplotlib inline\n!ls")
    assert take(fine).reason == ""


def test_t43_only_the_source_of_marked_code_cells_is_read(tmp_path):
    shown = {"cell_type": "code", "metadata": {"jupyter": {"source_hidden": True}}, "source": ["# costlib: napkin\n", "mine = 1\n"],
             "outputs": [{"output_type": "stream", "name": "stdout", "text": "an expected value, 41943040"}]}  # fmt: skip
    text = {"cell_type": "markdown", "metadata": {}, "source": "# costlib: napkin\nfrom_a_text = 1"}
    raw = {"cell_type": "raw", "metadata": {}, "source": "# costlib: napkin\nfrom_raw = 1"}
    taken = take(notebook(tmp_path / "ada.ipynb", shown, text, raw, "x = 1\n# costlib: napkin\nlate = 1", "# costlib: napkin or not\nno = 1"))
    made = taken.files["napkin.py"].decode()
    assert taken.reason == "" and "mine = 1" in made
    assert not any(word in made for word in ("41943040", "from_a_text", "from_raw", "late = 1", "no = 1"))


def test_t43_no_marked_cell_or_no_notebook_says_what_to_write(tmp_path):
    refused(notebook(tmp_path / "a.ipynb", "x = 1"), "no code cell begins with `# costlib: napkin`")
    refused(notebook(tmp_path / "b.ipynb", "# costlib: nothing\n"), "is no exercise module")
    for name, text in {"c": b"", "d": b"{", "e": b"[" * 10**5, "f": b"[]", "g": b'{"worksheets": []}', "h": b"\xff", "i": b'{"cells": 1}'}.items():
        (tmp_path / f"{name}.ipynb").write_bytes(text)
        refused(tmp_path / f"{name}.ipynb", "Save it again in Jupyter")


def test_t43_a_function_with_other_parameters_keeps_them_and_fails_where_it_is_called(tmp_path):
    cell = "# costlib: napkin\ndef matmul_flops(rows, columns):\n    return rows\n"
    made = take(notebook(tmp_path / "a.ipynb", cell)).files["napkin.py"]
    assert ast.unparse(functions(made)["matmul_flops"].args) == "rows, columns"
    assert "TypeError: matmul_flops() takes 2 positional arguments but 3 were given" in ran(made, "matmul_flops", 1, 2, 3)


def test_t43_what_marked_cells_hold_is_bounded_as_a_module_is(tmp_path):
    most = b"# costlib: napkin\n" + b"x = 1\n" * (intake.MOST_SOURCE // 6)
    path = notebook(tmp_path / "a.ipynb", most.decode(), "# costlib: napkin\ny = 1")
    assert "is larger than" in intake.take(path, LAB).reason


def test_t43_of_two_functions_of_one_name_the_later_is_taken(tmp_path):
    first = "# costlib: napkin\ndef matmul_flops(m, k, n, batch=1):\n    return 1\n"
    made = take(notebook(tmp_path / "a.ipynb", first, first.replace("return 1", "return 2"))).files["napkin.py"]
    assert ran(made, "matmul_flops", 1, 2, 3) == "2"


def test_a_notebook_in_a_folder_or_zip_counts_where_no_module_is(tmp_path):
    text = book(SOLVED)
    for path in (zipped(tmp_path / "ada.zip", ("work/hw.ipynb", text)), folder(tmp_path / "bob")):
        if path.is_dir():
            (path / "hw.ipynb").write_bytes(text)
        taken = take(path)
        assert taken.reason == "" and b"helper" in taken.files["napkin.py"] and taken.unexpected == ()
    taken = take(zipped(tmp_path / "dora.zip", ("hw.ipynb", text), ("napkin.py", MINE)))
    assert (taken.files, taken.unexpected) == ({"napkin.py": MINE}, ("hw.ipynb",))
    refused(zipped(tmp_path / "eve.zip", ("a.ipynb", text), ("b.ipynb", text)), "there are 2 notebooks")


def test_a_notebook_too_large_matters_only_where_it_is_needed(tmp_path, monkeypatch):
    monkeypatch.setattr(intake, "MOST_NOTEBOOK", 1000)
    large = book(SOLVED + "#" * 1000)
    assert take(zipped(tmp_path / "ada.zip", ("hw.ipynb", large), ("napkin.py", MINE))).reason == ""
    refused(zipped(tmp_path / "bob.zip", ("hw.ipynb", large)), "hw.ipynb is larger than 1000 bytes")


def test_a_notebook_of_a_lab_of_two_modules_fills_both(tmp_path):
    cells = ("# costlib: papers\npaper = 1", "# costlib: sensitivity\nsense = 1")
    taken = take(notebook(tmp_path / "ada.ipynb", *cells), TWO)
    assert taken.reason == "" and {name: b"= 1" in text for name, text in taken.files.items()} == {"papers.py": True, "sensitivity.py": True}


# T46: names


NAMES = ["=HYPERLINK(1)", "a,b", "a\nb", "..", "...", "-rf", "a b", "Zoë", "李雷", "\u202egpj", "x" * 65, "a/b", "", "\udcff", "a\0b", "+1", "@x", "a" * 300]


@pytest.mark.parametrize("label", NAMES, ids=ascii)
def test_t46_an_id_is_safe_as_a_file_name_a_cell_and_an_argument(label):
    found = intake.learner_id(label)
    assert 1 <= len(found) <= 64 and not found.startswith((".", "-", "=", "+", "@"))
    assert set(found) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


def test_t46_a_safe_label_is_its_own_id_and_others_get_a_part_of_their_hash():
    assert [intake.learner_id(label) for label in ("ada", "Ada_L.2-x", "20231234", "x" * 64)] == ["ada", "Ada_L.2-x", "20231234", "x" * 64]
    assert intake.learner_id("Ada Lovelace") == "Ada-Lovelace-767402"
    assert intake.learner_id("Ada-Lovelace-767402") != "Ada-Lovelace-767402"
    alike = ["á b", "a  b", "a=b", "a;b"]
    assert len({intake.learner_id(label) for label in (*NAMES, *alike, "a-b")}) == len(NAMES) + len(alike) + 1


@given(st.text(max_size=100), st.text(max_size=100))
def test_t46_two_labels_are_two_ids(one, other):
    assert (intake.learner_id(one) == intake.learner_id(other)) == (one == other)


@pytest.mark.parametrize("name, learner", [
    ("lab01-ada.zip", "ada"), ("ada.zip", "ada"), ("lab01-ada (2).zip", "ada"), ("lab 3_ada.zip", "ada"), ("labelle.zip", "labelle"),
    ("lab01.zip", "in-this-folder"), ("ada-napkin.py", "ada"), ("napkin.py", "in-this-folder"), ("lab01_napkin.ipynb", "in-this-folder"),
    ("costlib/napkin.py", "in-this-folder"), ("lab9x.zip", "lab9x"), ("napkin.zip", "napkin"), ("ada.lovelace.zip", "ada.lovelace"),
])  # fmt: skip
def test_a_learner_is_named_by_the_file_and_else_by_its_folder(tmp_path, name, learner):
    assert intake.named(tmp_path / "in-this-folder" / name)[0] == learner


def test_t46_names_are_printable_and_short(tmp_path):
    path = tmp_path / ("=1,\n" + "\x1b[31m" + "x" * 200)
    path.mkdir()
    (path / "napkin.py").write_bytes(MINE)
    (path / "b\nad\udcff.py").write_bytes(b"")
    taken = take(path)
    assert taken.reason == "" and len(taken.name) == 200 and taken.name.isprintable() and taken.name.startswith("=1,")
    assert taken.unexpected == ("b\ufffdad\ufffd.py",)
    json.dumps(vars(taken) | {"files": {}}, ensure_ascii=False).encode()


def test_a_record_in_a_zip_says_nothing_of_who_or_when(tmp_path):
    record = json.dumps({"lab": "03", "learner": "bob", "received": "2001-01-01T00:00:00Z"}).encode()
    taken = take(zipped(tmp_path / "lab01-ada.zip", ("napkin.py", MINE), ("submission.json", record)))
    assert (taken.learner, taken.received, taken.reason, taken.unexpected) == ("ada", None, "", ())


# T47: more than one, and late


def test_t47_the_latest_of_a_learner_is_last_and_all_are_kept(tmp_path):
    first, second, third = (zipped(tmp_path / f"{name}.zip", ("napkin.py", text)) for name, text in (
        ("ada", MINE), ("ada (2)", OTHER), ("ada (10)", MINE + b"#")))  # fmt: skip
    other = zipped(tmp_path / "bob.zip", ("napkin.py", MINE))
    learners = intake.take_all(sorted([first, other, third, second]), LAB)
    assert {name: [s.files["napkin.py"] for s in every] for name, every in learners.items()} == {"ada": [MINE, OTHER, MINE + b"#"], "bob": [MINE]}
    assert all(s.received is None and s.late_seconds is None for every in learners.values() for s in every)
    times = {str(first): "2026-11-30T10:00:00Z", str(second): "2026-11-30T09:00:00Z"}
    assert [s.files["napkin.py"] for s in intake.take_all([first, second], LAB, times=times)["ada"]] == [OTHER, MINE]


@pytest.mark.parametrize("names", [("ada/submission.zip", "bob/submission.zip"), ("mallory/bob.zip", "bob/bob.zip"), ("mon/ada.zip", "tue/eve.zip")])
def test_t47_nobody_is_marked_as_another_nor_lost_because_of_a_name(tmp_path, names):
    paths = []
    for name in names:
        (tmp_path / name).parent.mkdir()
        paths.append(zipped(tmp_path / name, ("napkin.py", MINE)))
    with pytest.raises(ManifestError, match="put those of all learners side by side in one folder"):
        intake.take_all(paths, LAB)


def test_folders_of_learners_may_be_named_by_the_module_in_them(tmp_path):
    paths = [folder(tmp_path / who, napkin=MINE) / "napkin.py" for who in ("ada", "bob")]
    assert intake.take_all(paths, LAB).keys() == {"ada", "bob"}


def test_t47_lateness_is_recorded_against_the_due_date_in_any_zone(tmp_path):
    paths = [zipped(tmp_path / f"{name}.zip", ("napkin.py", MINE)) for name in ("ada", "bob", "dora")]
    times = {"ada.zip": "2026-12-01T00:59:59+01:00", "bob.zip": "2026-12-01T00:00:01.7Z"}
    learners = intake.take_all(paths, LAB, due="2026-12-01T00:00:00Z", times=times)
    assert {name: (s.received, s.late_seconds, s.reason) for name, (s,) in learners.items()} == {
        "ada": ("2026-11-30T23:59:59Z", 0, ""), "bob": ("2026-12-01T00:00:01Z", 1, ""), "dora": (None, None, "")}  # fmt: skip


def test_t47_a_files_own_time_counts_only_where_that_was_said(tmp_path):
    paths = [zipped(tmp_path / "ada.zip", ("napkin.py", MINE)), folder(tmp_path / "bob", napkin=MINE), folder(tmp_path / "d", napkin=MINE) / "napkin.py"]
    for path in (paths[0], paths[1] / "napkin.py", paths[2]):
        os.utime(path, (0, 1_000_000_000))
    found = intake.take_all(paths, LAB, due="2001-09-09T01:46:00Z", times="files")
    assert {(s.received, s.late_seconds) for (s,) in found.values()} == {("2001-09-09T01:46:40Z", 40)} and len(found) == 3
    found = intake.take_all(paths, LAB, due="2001-09-09T01:46:00Z")
    assert {(s.received, s.late_seconds) for (s,) in found.values()} == {(None, None)}


def test_t47_times_may_come_from_a_file_that_is_named(tmp_path):
    paths, times = [folder(tmp_path / "ada", napkin=MINE)], tmp_path / "times.json"
    times.write_text('{"ada": "2026-11-30T10:00:00Z"}')
    assert intake.take_all(paths, LAB, times=times)["ada"][0].received == "2026-11-30T10:00:00Z"
    for text in ("[]", "{"):
        times.write_text(text)
        with pytest.raises(ManifestError, match="times.json"):
            intake.take_all(paths, LAB, times=times)
    for wrong in ("2026-11-30", "2026-11-30T10:00:00", "soon", 5, "0001-01-01T00:00:00+23:00"):
        times.write_text(json.dumps({"ada": wrong}))
        with pytest.raises(ManifestError, match="no time with a zone"):
            intake.take_all(paths, LAB, times=times)


def test_ids_that_differ_only_in_case_are_kept_apart(tmp_path):
    paths = [folder(tmp_path / name, napkin=MINE) for name in ("Ada", "ada", "bob")]
    learners = intake.take_all(paths, LAB)
    assert len(learners) == 3 and len({name.lower() for name in learners}) == 3 and "bob" in learners
    assert {name[:4].lower() for name in learners} == {"ada-", "bob"}
    assert intake.take_all(paths[::-1], LAB).keys() == learners.keys()


# Whatever is there


def answered(path, lab):
    taken = take(path, lab)
    assert isinstance(taken, intake.Submission)
    assert taken.reason or taken.files and all(ast.parse(text.decode("utf-8-sig")) for text in taken.files.values())
    assert taken.files.keys() <= {"napkin.py"} and len(taken.reason) <= 1000
    json.dumps([taken.reason, taken.name, taken.unexpected], ensure_ascii=False).encode()
    return taken


VALID = {".zip": None, ".py": MINE, ".ipynb": book(SOLVED)}


@pytest.mark.parametrize("suffix", VALID)
def test_random_bytes_are_answered(tmp_path, suffix):
    path = tmp_path / f"ada{suffix}"

    @given(st.binary(max_size=300))
    def fuzz(data):
        path.write_bytes(data)
        answered(path, LAB)

    fuzz()


@pytest.mark.parametrize("suffix", VALID)
def test_a_submission_with_some_bytes_changed_is_answered(tmp_path, suffix):
    path = tmp_path / f"ada{suffix}"
    whole = VALID[suffix] or zipped(path, ("costlib/napkin.py", MINE), ("submission.json", b"{}"), ("x/", b"")).read_bytes()

    @settings(max_examples=500)
    @given(st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255)), min_size=1, max_size=6), st.integers(0, len(whole)))
    def fuzz(changes, end):
        data = bytearray(whole)
        for at, value in changes:
            data[at] = value
        path.write_bytes(data[:end] if end % 3 == 0 else data)
        answered(path, LAB)

    fuzz()


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=9),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=8)  # fmt: skip
CELLS = st.fixed_dictionaries({"cell_type": st.just("code") | JSON, "source": st.text(max_size=40).map("# costlib: napkin\n".__add__) | JSON})


def test_notebooks_of_any_shape_are_answered(tmp_path):
    path = tmp_path / "ada.ipynb"

    @given(st.dictionaries(st.sampled_from(["cells", "metadata"]), st.lists(CELLS | JSON, max_size=4) | JSON))
    def fuzz(content):
        path.write_text(json.dumps(content))
        answered(path, LAB)

    fuzz()


def test_any_text_in_a_marked_cell_is_answered(tmp_path):
    path = tmp_path / "ada.ipynb"
    words = st.sampled_from(["def matmul_flops", "(m, k):", " return", "\n", "    ", "x", " = ", "'\ud800'", "f'{x!r:{1}}'", "import labs", "class",
                             "async ", "lambda: ", "\\", "global x", "from . import y", "from __future__ import annotations", "yield", "1"])  # fmt: skip

    @given(st.lists(words, max_size=12).map("".join))
    def fuzz(source):
        path.write_bytes(book("# costlib: napkin\n" + source))
        answered(path, LAB)

    fuzz()


def test_any_names_in_a_zip_are_answered(tmp_path):
    path, part = tmp_path / "ada.zip", st.sampled_from(["napkin.py", "costlib", "..", "", ".", "a", "\\", "é", "\n", "x" * 100, "C:", ".git"])

    @given(st.lists(st.lists(part, min_size=1, max_size=4).map("/".join), max_size=4))
    def fuzz(names):
        zipped(path, *((name, MINE) for name in names if name))
        answered(path, LAB)

    fuzz()


def test_what_is_read_of_an_archive_is_in_memory_only(tmp_path, monkeypatch):
    """Every opening of a file but the submission's own is an error."""
    path, opened = zipped(tmp_path / "ada.zip", ("napkin.py", MINE), ("../x", MINE)), os.open

    def only_reading(name, flags, *rest, **named):
        assert Path(name) == path and not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        return opened(name, flags, *rest, **named)

    monkeypatch.setattr(os, "open", only_reading)
    monkeypatch.setattr(io, "open", lambda *_, **__: pytest.fail("a file was opened"))
    assert "leads outside" in intake.take(path, LAB).reason
