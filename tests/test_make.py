"""The Makefile and the environment: what a learner types, what a strange machine answers, what is never touched."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
TARGETS = ["env", "book", "test", "lab", "progress", "success", "hint", "submit", "release", "grade", "record", "observe", "bench", "peers", "clean"]
NOT_INHERITED = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "LAB", "EX", "N", "LEARNER", "BOOK", "DIR", "OUT", "SECRET", "PYTHON", "PYTHONPATH", "LAB_MODULE"}


def run(*command, cwd, **env):
    inherited = {key: value for key, value in os.environ.items() if key not in NOT_INHERITED}
    return subprocess.run(command, cwd=cwd, env=inherited | env, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=300)


def course_copy(folder):
    """This working tree in another folder, whose name has a space, on the environment that runs the tests."""
    copy = folder / "a copy"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv*", "_build", "__pycache__", ".pytest_cache"))
    (copy / ".venv").mkdir()
    for entry in Path(sys.prefix).iterdir():
        if entry.name != "ready":
            (copy / ".venv" / entry.name).symlink_to(entry)
    (copy / ".venv/ready").write_text(str(copy))
    return copy


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    return course_copy(tmp_path_factory.mktemp("make"))


def one_sentence(text):
    lines = [line for line in text.splitlines() if not line.startswith("make: ***")]
    return len(lines) == 1 and lines[0].endswith(".") and ". " not in lines[0]


# What a learner types

def test_make_alone_lists_every_target_on_one_line(copy):
    result = run("make", cwd=copy)
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert sorted(line.split()[1] for line in lines) == sorted(TARGETS)
    assert all(line.startswith("make ") and len(line) < 100 and len(line.split()) > 4 for line in lines)


@pytest.mark.parametrize("command", [["lab"], ["submit"], ["grade"], ["grade", "LAB=01", "OUT=marks"], ["hint"], ["hint", "LAB=01"], ["hint", "EX=matmul_flops"]], ids=" ".join)
def test_a_missing_name_is_answered_with_an_example(copy, command):
    result = run("make", *command, cwd=copy)
    assert result.returncode == 2
    assert f"for example: make {command[0]} LAB=01" in result.stderr.splitlines()[0]
    assert result.stdout == ""


@pytest.mark.parametrize("command, wrong", [
    (["lab", "LAB=99"], "99"), (["lab", "LAB=napkin.py"], "napkin.py"), (["submit", "LAB=99"], "99"), (["hint", "LAB=01", "EX=matmul_flop"], "matmul_flop"),
])
def test_a_wrong_name_is_named_without_a_traceback(copy, command, wrong):
    result = run("make", *command, cwd=copy)
    assert result.returncode == 2
    assert repr(wrong) in result.stderr
    assert "Traceback" not in result.stderr + result.stdout


def test_a_misspelt_lab_module_names_the_three(copy):
    result = run("make", "lab", "LAB=01", cwd=copy, LAB_MODULE="costlibs")
    assert result.returncode == 2
    for word in ("costlibs", "costlib", "solutions", "not set"):
        assert word in result.stderr
    assert "Traceback" not in result.stderr + result.stdout


@pytest.mark.parametrize("given", ["argument", "environment"])
@pytest.mark.parametrize("value", ["01; touch ran", "$(touch ran)", "`touch ran`", "$(shell touch ran)", "$$(touch ran)",
                                   "' ; touch ran '", '" ; touch ran "', "01\ntouch ran"])
def test_no_part_of_a_value_is_run(copy, given, value):
    for command in (["lab"], ["submit", "LEARNER=" + value], ["release", "BOOK=" + value], ["grade", "DIR=costlib", "OUT=" + value], ["hint", "EX=" + value]):
        if given == "argument":
            result = run("make", *command, f"LAB={value}", cwd=copy)
        else:
            result = run("make", *command, cwd=copy, LAB=value)
        assert result.returncode == 2
        assert not (copy / "ran").exists()


def test_no_recorded_page_is_an_error_and_not_a_pass(copy, tmp_path):
    (copy / "tests/recorded").rename(tmp_path / "recorded")
    try:
        result = run("make", "test", cwd=copy)
    finally:
        (tmp_path / "recorded").rename(copy / "tests/recorded")
    assert result.returncode != 0 and result.stdout == ""
    assert "tests/recorded holds no notebook: make record" in result.stderr


# Which Python

PROBED = f"""#!/bin/sh
[ "$1" = -c ] || exit 1
exec {shlex.quote(sys.executable)} -c '
import sys
sys.executable = sys.argv[1]
%s
exec(sys.argv[2])' "$0" "$2"
"""
FIT = PROBED % "sys.version_info = (3, 12, 1)"
OLD = PROBED % "sys.version_info = (3, 10, 13)"
NEW = PROBED % "sys.version_info = (3, 14, 0)"
BARE = PROBED % 'sys.version_info = (3, 11, 2); sys.modules["ensurepip"] = None'
BROKEN = "#!/bin/sh\nexit 1\n"


@pytest.fixture
def choose(tmp_path):
    """Asks tools/python.sh on a machine that has just these Pythons."""
    def choose(pythons, **env):
        for name, text in pythons.items():
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)
        return run("/bin/sh", str(ROOT / "tools/python.sh"), cwd=tmp_path, PATH=str(tmp_path), **env)
    return choose


@pytest.mark.parametrize("pythons, chosen", [
    ({"python3": FIT}, "python3"),
    ({"python3": OLD, "python3.12": FIT}, "python3.12"),
    ({"python3": NEW, "python3.11": FIT}, "python3.11"),
    ({"python3": BARE, "python3.13": FIT}, "python3.13"),
    ({"python3": BROKEN, "python3.11": FIT}, "python3.11"),
], ids=["first", "old first", "new first", "bare first", "broken first"])
def test_the_first_python_that_fits_is_chosen(choose, tmp_path, pythons, chosen):
    result = choose(pythons)
    assert (result.returncode, result.stdout.strip(), result.stderr) == (0, str(tmp_path / chosen), "")


@pytest.mark.parametrize("pythons, found, install", [
    ({"python3": OLD}, "python3 is 3.10.13", "python3-venv"),
    ({"python3": NEW}, "python3 is 3.14.0", "python3.12"),
    ({}, "found none", "python3-venv"),
    ({"python3": BARE}, "python3 has no venv", "python3.11-venv"),
    ({"python3": OLD, "python3.11": BARE}, "python3.11 has no venv", "python3.11-venv"),
], ids=["old", "new", "none", "bare", "old and bare"])
def test_one_sentence_says_what_was_found_and_what_to_install(choose, pythons, found, install):
    result = choose(pythons)
    assert result.returncode != 0 and result.stdout == ""
    assert one_sentence(result.stderr), result.stderr
    assert found in result.stderr and install in result.stderr


def test_a_named_python_is_the_only_candidate(choose, tmp_path):
    named = {"my python": FIT, "python3": FIT}
    assert choose(named, PYTHON=str(tmp_path / "my python")).stdout.strip() == str(tmp_path / "my python")
    assert choose(named, PYTHON="my python").stdout.strip() == str(tmp_path / "my python")
    old = choose({"mine": OLD, "python3": FIT}, PYTHON="mine")
    assert old.returncode != 0 and "mine is 3.10.13" in old.stderr
    missing = choose({"python3": FIT}, PYTHON="nowhere")
    assert missing.returncode != 0 and "nowhere" in missing.stderr


# The environment

@pytest.fixture
def bare_copy(tmp_path):
    """What the environment is made from, without an environment."""
    folder = tmp_path / "a bare copy"
    (folder / "tools").mkdir(parents=True)
    for name in ("Makefile", "requirements.txt", "requirements-observe.txt", "pyproject.toml", "tools/python.sh"):
        shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.mark.parametrize("target", ["progress", "observe"])
def test_make_says_what_to_install_and_leaves_nothing(bare_copy, tmp_path, target):
    (tmp_path / "old").write_text(OLD)
    (tmp_path / "old").chmod(0o755)
    result = run("make", target, f"PYTHON={tmp_path}/old", cwd=bare_copy)
    assert result.returncode != 0 and result.stdout == ""
    assert one_sentence(result.stderr) and "3.10.13" in result.stderr
    assert not list(bare_copy.glob(".venv*"))


@pytest.mark.parametrize("target, folder", [("env", ".venv"), ("observe", ".venv-observe")])
def test_a_half_made_environment_is_not_taken_for_complete(bare_copy, tmp_path, target, folder):
    """Its pip fails, as it does when it is interrupted or has no network."""
    (tmp_path / "half").write_text(FIT.replace("[ \"$1\" = -c ] || exit 1", """
if [ "$2" = venv ]; then
    mkdir -p FOLDER/bin
    printf '#!/bin/sh\\necho no network; exit 1\\n' >FOLDER/bin/python
    chmod +x FOLDER/bin/python
    exit
fi
""".replace("FOLDER", folder)))
    (tmp_path / "half").chmod(0o755)
    result = run("make", target, f"PYTHON={tmp_path}/half", cwd=bare_copy)
    assert result.returncode != 0
    assert "no network" in result.stdout and "not complete" in result.stdout
    assert (bare_copy / folder / "bin/python").exists()
    assert run("make", "-q", f"{folder}/ready", cwd=bare_copy).returncode == 1


def test_the_environment_is_made_anew_only_for_a_reason(tmp_path):
    copy = course_copy(tmp_path)

    def up_to_date():
        return run("make", "-q", ".venv/ready", cwd=copy).returncode == 0

    assert up_to_date()
    (copy / "Makefile").touch()
    (copy / "costlib/napkin.py").touch()
    assert up_to_date()
    for name in ("requirements.txt", "pyproject.toml"):
        before = (copy / name).stat()
        os.utime(copy / name, (before.st_atime, before.st_mtime + 10**8))
        assert not up_to_date(), name
        os.utime(copy / name, ns=(before.st_atime_ns, before.st_mtime_ns))
    copy = copy.rename(tmp_path / "moved")
    assert not up_to_date()
    (copy / ".venv/ready").write_text(str(copy))
    assert up_to_date()
    (copy / ".venv/bin").unlink()
    (copy / ".venv/bin").mkdir()
    (copy / ".venv/bin/python").symlink_to(tmp_path / "gone")
    assert not up_to_date()


@pytest.fixture
def with_torch(tmp_path):
    """A copy whose environments say what they are asked to run instead of running it."""
    copy = course_copy(tmp_path)
    (copy / ".venv-observe/bin").mkdir(parents=True)
    for folder in (".venv", ".venv-observe"):
        python = copy / folder / "bin/python"
        if folder == ".venv":
            (copy / folder / "bin").unlink()
            (copy / folder / "bin").mkdir()
        python.write_text(f'#!/bin/sh\necho {folder} "$@"\n')
        python.chmod(0o755)
        (copy / folder / "ready").write_text(str(copy))
    return copy


def test_make_observe_compares_and_asks_nothing_of_the_course_environment(with_torch):
    shutil.rmtree(with_torch / ".venv")
    result = run("make", "observe", cwd=with_torch)
    assert result.stdout.splitlines() == [
        ".venv-observe -m costlib.observe --check", ".venv-observe -m pytest -q tests/observe"]


def test_make_test_observes_where_it_can_and_else_says_that_it_did_not(with_torch):
    def after_the_tests():
        result = run("make", "test", cwd=with_torch)
        assert result.returncode == 0 and result.stdout.startswith(".venv -m pytest ")
        return result.stdout.splitlines()[1:]

    observed = [".venv-observe -m costlib.observe --check", ".venv-observe -m pytest -q tests/observe"]
    assert after_the_tests() == observed
    lock = with_torch / "requirements-observe.txt"
    before = lock.stat()
    os.utime(lock, (before.st_atime, before.st_mtime + 10**8))
    for _ in range(2):
        (line,) = after_the_tests()
        assert "not compared" in line and "make observe" in line
        assert run("make", "-q", ".venv-observe/ready", cwd=with_torch).returncode == 1
        os.utime(lock, ns=(before.st_atime_ns, before.st_mtime_ns))
        (with_torch / ".venv-observe/ready").write_text("elsewhere")
    (with_torch / ".venv-observe/ready").write_text(str(with_torch))
    assert after_the_tests() == observed
    (with_torch / ".venv-observe/bin/python").write_text("#!/bin/sh\nexit 1\n")
    assert run("make", "test", cwd=with_torch).returncode != 0


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(name):
    lines = (ROOT / name).read_text().splitlines()
    pins = [re.fullmatch(r"([A-Za-z0-9._-]+)==(\S+)", line.split(" #")[0].strip()) for line in lines
            if line.split("#")[0].strip()]
    assert all(pins), f"{name} holds a line that is not one exact pin"
    return {normal(pin[1]): pin[2] for pin in pins}


def test_nothing_installed_floats():
    installed = {normal(each.metadata["Name"]): each.version for each in distributions(path=[
        path for path in sys.path if path.startswith(sys.prefix)])}
    for own in ("pip", "transformer-cost-course"):
        installed.pop(own, None)
    assert installed == locked("requirements.txt")


def test_what_is_locked_installs_on_every_python_that_the_course_names():
    """Also on the first of each: Debian 12's own is 3.11.2."""
    packages = distributions(path=[path for path in sys.path if path.startswith(sys.prefix)])
    needs = {each.metadata["Name"]: SpecifierSet(each.metadata.get("Requires-Python", "")) for each in packages}
    refuse = [(name, f"3.{minor}.0") for name, needed in needs.items() for minor in (11, 12, 13) if f"3.{minor}.0" not in needed]
    assert len(needs) > 50 and not refuse


def test_what_the_course_uses_is_locked():
    assert locked("requirements.in").items() <= locked("requirements.txt").items()


def test_what_observes_is_locked_and_the_course_does_without():
    observing = locked("requirements-observe.txt")
    assert {"torch", "transformers", "pytest", "hypothesis"} <= observing.keys()
    assert not {"torch", "transformers"} & locked("requirements.txt").keys()


def test_no_file_names_a_package_index():
    for name in ("requirements.in", "requirements.txt", "requirements-observe.txt", "requirements-peers.txt", "pyproject.toml", "Makefile", ".ci/run",
                 ".github/workflows/ci.yml"):
        assert not re.search(r"https?://|index-url|find-links", (ROOT / name).read_text()), name


# What is never touched

PAGE = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

# A page

```{code-cell} python
2 * 4096**3
```
"""


def test_a_learners_work_survives_every_target(tmp_path):
    copy = course_copy(tmp_path)
    for page in [*copy.glob("chapters/**/*.md"), *copy.glob("labs/*.md")]:
        page.unlink()    # recording every page takes a while, and one shows as much
    (copy / "intro.md").write_text(PAGE)
    with open(copy / "costlib/napkin.py", "a") as napkin:
        napkin.write("\n# My own notes, and an answer that is not finished:\ndef mine(:\n")
    with open(copy / "costlib/params.py", "a") as params:
        params.write("\n\ndef matmul_flops_of_mine(m, k, n):\n    return m * k * n\n")
    (copy / "labs/my notebook.ipynb").write_text("{}")
    (copy / "notes").mkdir()
    (copy / "notes/kv.txt").write_text("two bytes\n")
    (copy / "notes/__pycache__").mkdir()
    (copy / "_build/html").mkdir(parents=True)

    def work():
        return {path: path.read_bytes() for path in copy.rglob("*")
                if path.is_file() and not {".venv", "_build", "__pycache__", ".pytest_cache", "recorded"} & set(path.parts)}

    before = work()
    assert copy / "costlib/napkin.py" in before and copy / "labs/my notebook.ipynb" in before
    handed_in = copy / "lab03-ada.zip"
    for command in (["lab", "LAB=01"], ["lab", "LAB=03"], ["hint", "LAB=01", "EX=matmul_flops"], ["progress"], ["success"],
                    ["submit", "LAB=01"], ["submit", "LAB=03", "LEARNER=ada"], ["release", "LAB=01"], ["record"],
                    ["-n", "book"], ["-n", "test"], ["-n", "observe"], ["bench"], ["clean"]):
        result = run("make", *command, cwd=copy)
        if handed_in.exists():
            before.setdefault(handed_in, handed_in.read_bytes())
        assert work() == before, f"make {' '.join(command)} changed a file:\n{result.stdout}{result.stderr}"
    assert (copy / "tests/recorded/intro.ipynb").exists() and handed_in.exists()
    assert not (copy / "_build").exists() and not list(copy.rglob("notes/__pycache__"))
    assert (copy / ".venv/bin/python").exists()


def test_clean_leaves_the_environment_alone(copy):
    kept = [copy / folder / "made/__pycache__/kept.pyc" for folder in (".venv", ".venv-observe", ".venv-peers")]
    gone = [copy / "labs/__pycache__/a.pyc", copy / ".pytest_cache/a", copy / "_build/html/a.html"]
    for path in kept + gone:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    assert run("make", "clean", cwd=copy).returncode == 0
    assert all(path.exists() for path in kept) and not any(path.exists() for path in gone)
