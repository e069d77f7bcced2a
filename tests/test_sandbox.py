"""What surrounds a learner's code: nothing in it reaches out, whichever backend starts here. T14 of the threats, and escapes."""

import json
import os
import platform
import shutil
import socket
import subprocess
import tempfile
import zipfile
from pathlib import Path

import pytest
from test_marking import ALONE, SLOT, backend, course, left_over, marked, others_right, reference  # noqa: F401

from costlib.exercise import ROOT
from labs import exports, sandbox

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can do what this looks at")


def test_t14_nothing_of_the_answers_is_there(backend, course):  # noqa: F811
    """Every file that the sandbox shows, but the system's own."""
    shown = "import os\nfor place, _, files in os.walk('/course'):\n    for f in files: print(os.path.join(place, f))\n"
    shown += "print(*sorted(os.environ), *sorted(os.listdir('/')))"
    env = os.environ | {"COURSE_SECRET": "x"}
    said, _ = sandbox.launch(backend, course, {}, 0, ["-c", shown], stdout=subprocess.PIPE, text=True, env=env).communicate()
    *files, there = said.splitlines()
    names = {Path(line).relative_to("/course").as_posix() for line in files}
    assert {n for n in names if n.startswith("labs/") and n.endswith(".py")} == {"labs/__init__.py", "labs/wire.py", "labs/worker.py"}
    assert not [n for n in names if "solutions" in n or "/lab0" in n]
    assert {*there.split()} <= {"LC_CTYPE", "PWD", "bin", "course", "dev", "lib", "lib64", "proc", "tmp", "usr", Path(sandbox.sys.base_prefix).parts[1]}


ESCAPES = {  # what a function tries; it escapes unless this raises OSError
    "writes into the course": "open('/course/costlib/napkin.py', 'a')",
    "writes into Python": "open(os.__file__, 'a')",
    "writes beside the course": "open('/course/x', 'w')",
    "writes into the root": "open('/x', 'w')",
    "writes into shared memory": "open('/dev/shm/x', 'w')",
    "writes into the kernel's settings": "open('/proc/sys/kernel/shmmax', 'w')",
    "connects": "socket.create_connection(('127.0.0.1', {port}), 1)",
    "connects to a socket without a file": "socket.socket(socket.AF_UNIX).connect('\\0' + '{name}')",
    "sends a packet": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))",
    "signals the judge": "os.kill({judge}, 0)",
    "signals a process of the same user": "os.kill({bystander}, 9)",
    "sees other processes": "fails(len([n for n in os.listdir('/proc') if n.isdigit()]) <= 6)",
    "finds what the judge has open": "fails(all(stat.S_ISFIFO(os.fstat(int(n)).st_mode) for n in os.listdir('/proc/self/fd') if int(n) > 2 and os.path.exists('/proc/self/fd/' + n)))",
    "finds the judge's environment": "fails(not any(b'COURSE_SECRET' in open(f'/proc/{{p}}/environ', 'rb').read() for p in ('self', os.getppid())))",
    "becomes root": "os.setuid(0); fails(not os.access('/proc/1/mem', os.W_OK))",
    "takes memory that outlives it": "fails(ctypes.CDLL(None).shmget(0, 1 << 20, 0o1600) < 0)",
    "makes a namespace": "fails(ctypes.CDLL(None).unshare(0x10000000) != 0)",
    "makes a process in a namespace": "fails(ctypes.CDLL(None).syscall({clone}, 0x10000011, 0, 0, 0, 0) < 0)",
    "asks the kernel by a ring": "fails(ctypes.CDLL(None).syscall(425, 4, ctypes.create_string_buffer(240)) < 0)",
    "mounts": "fails(ctypes.CDLL(None).mount(b'none', b'/tmp', b'tmpfs', 0, None) != 0)",
}  # fmt: skip
TRY = """import ctypes, os, socket, stat
    def fails(held):
        if held: raise OSError
    try:
        {attempt}
    except OSError:
        print('held;')
    else:
        print('ESCAPED;')
    return right"""


@pytest.fixture(scope="module")
def outside():
    """What there is to be reached: a port, a socket, a process of the sandbox's user."""
    user = sandbox._as_nobody(SLOT) if os.geteuid() == 0 else []
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as nameless, \
         subprocess.Popen([*user, "sleep", "600"]) as bystander:  # fmt: skip
        name = f"course-{os.getpid()}"
        nameless.bind(f"\0{name}")
        nameless.listen()
        yield {"port": server.getsockname()[1], "name": name, "judge": os.getpid(), "clone": {"x86_64": 56}.get(platform.machine(), 220), "bystander": bystander.pid}, bystander
        bystander.kill()


@pytest.mark.parametrize("escape", ESCAPES)
def test_nothing_reaches_out(marked, reference, outside, monkeypatch, escape):  # noqa: F811
    places, bystander = outside
    monkeypatch.setenv("COURSE_SECRET", "x")
    monkeypatch.setattr("test_marking.left_over", lambda: [])  # the bystander is of the same user
    result = marked(reference + ALONE.format(TRY.format(attempt=ESCAPES[escape].format(**places))))
    assert set(result["output_excerpt"].split()) == {"held;"} and bystander.poll() is None
    assert others_right(result, "kv_cache_bytes")


def test_what_a_submission_can_take_is_bounded_as_a_whole():
    """Each limit is of one process; all of them together stay below what a laptop has."""
    most = sandbox.LIMITS["NPROC"] * sandbox.LIMITS["AS"] + sandbox.LIMITS["tmp_bytes"]
    assert most < 5 * 2**30 and "NPROC" in sandbox.process_limits("bwrap")


@as_root
def test_once_closed_nothing_of_it_is_left(backend, course, tmp_path):  # noqa: F811
    """Not even for the moment in which Linux takes a namespace down."""
    for path in (tmp_path, tmp_path.parent):
        path.chmod(0o755)
    file = tmp_path / "napkin.py"
    slot = SLOT + 1  # no bystander's
    file.write_text("import os\nfor _ in range(4):\n    if os.fork() == 0:\n        while True: pass\n")
    for _ in range(5):
        worker = sandbox.Worker(backend, course, {"napkin.py": file}, slot)
        worker.say({"modules": ["napkin"], "limits": sandbox.process_limits(backend), "answered": []}, 5)
        assert "ready" in worker.hear(20)
        assert left_over(slot)
        worker.close()
        assert not left_over(slot)


# Inside a container, where bubblewrap cannot start


@pytest.fixture(scope="module")
def container(tmp_path_factory):
    """Run something as root where the system and /autograder are all there is, and no bubblewrap; as in Gradescope."""
    if not Path("/usr/bin/python3").exists() or subprocess.run(
            ["/usr/bin/python3", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], check=False).returncode:
        pytest.skip("the system has no Python from 3.11 on in /usr/bin")
    root = tmp_path_factory.mktemp("autograder")
    root.chmod(0o755)
    exports.gradescope_zip(root / "upload.zip", "01")
    with zipfile.ZipFile(root / "upload.zip") as archive:
        archive.extractall(root / "source")
    for name in ("results", "submission"):
        (root / name).mkdir()
    command = ["bwrap", "--cap-add", "ALL", "--unshare-pid", "--die-with-parent", "--clearenv", "--setenv", "PATH", "/usr/sbin:/usr/bin",
               "--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc", "--ro-bind", "/dev/null", "/usr/bin/bwrap",
               *(word for name in ("bin", "sbin", "lib", "lib64") for word in ("--symlink", f"usr/{name}", f"/{name}")),
               "--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp", "--perms", "1777", "--tmpfs", "/var/tmp",
               "--bind", str(root), "/autograder"]  # fmt: skip

    def run(script):
        return subprocess.run([*command, "bash", "-c", script], capture_output=True, text=True, check=True, timeout=120).stdout

    run("/usr/bin/python3 -m venv --without-pip /autograder/venv")
    return root, run


LEAVES = """
import os, time
if os.fork() == 0:
    os.setsid()
    for place in ("/tmp", "/var/tmp"):
        os.makedirs(place + "/left/behind")
        open(place + "/left/behind/x", "w").write("x")
    time.sleep(600)
time.sleep(0.2)
for place in ("source", "results", "submission"):
    try:
        print(place, os.listdir("/autograder/" + place))
    except PermissionError:
        print(place, "closed")
"""


@as_root
def test_a_container_judges_with_setpriv_and_nothing_stays(container, backend, reference):  # noqa: F811
    root, run = container
    text = reference.replace("return 2 * batch * m * k * n", "return batch * m * k * n") + ALONE.format("os._exit(0)") + LEAVES
    (root / "submission/napkin.py").write_text(text)
    (root / "submission_metadata.json").write_text('{"users": [{"id": 77, "email": "x"}, {"id": 9}]}')
    said = run("bash /autograder/source/run_autograder; ls /tmp /tmp/*/graded /var/tmp /dev/shm; grep -l worker[.]py /proc/[0-9]*/cmdline || true")
    assert "lab01-gradescope-9.json" in said
    assert "1 of 1 submissions marked" in said and "(setpriv)" in said and "left" not in said and "/proc/" not in said
    result = json.loads((root / "results/results.json").read_text())
    tests = {test["name"]: test for test in result["tests"]}
    assert tests["kv_cache_bytes"]["score"] == 0 and "ended Python" in tests["kv_cache_bytes"]["output"]
    assert "multiply-accumulates" in tests["matmul_flops"]["output"] and tests["params_per_layer"]["status"] == "passed"


@as_root
def test_a_container_whose_answers_can_be_read_marks_nothing(container, backend, reference):  # noqa: F811
    root, run = container
    shutil.copytree(ROOT / "solutions", root / "open/solutions", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (root / "open", *(root / "open").rglob("*")):
        path.chmod(0o755)
    (root / "submission/napkin.py").write_text(reference)
    run("bash /autograder/source/run_autograder")
    shutil.rmtree(root / "open")
    tests = json.loads((root / "results/results.json").read_text())["tests"]
    assert tests[0]["name"] == "The grader is broken" and "the answers can be read in /autograder/open" in tests[1]["output"]


@as_root
def test_with_setpriv_no_other_submission_can_be_read():
    look = "import os, sys\ntry: print(os.listdir(sys.argv[1]))\nexcept PermissionError: print('closed')"
    python = shutil.which("python3", path="/usr/bin")
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch).chmod(0o711)
        course, files = sandbox.course_copy(Path(scratch) / "course"), {"napkin.py": b"x = 1\n"}
        with sandbox.placed("setpriv", course, files, slot=SLOT) as (place, _):
            for slot, seen in ((SLOT, "costlib"), (SLOT + 2, "closed")):
                command = [*sandbox._as_nobody(slot), python, "-I", "-c", look, str(place)]
                assert seen in subprocess.run(command, capture_output=True, text=True, check=True).stdout
