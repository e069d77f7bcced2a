"""Where may a learner's code run? In a sandbox that holds no answer, reaches nothing and can be killed whole.

Backends: `bwrap` (bubblewrap, the default), `setpriv` (root inside a container where bubblewrap cannot start: another
user and limits, but the network stays), `none` (the learner's code runs as you; only for your own). Never silently
weaker: `choose` refuses with the command that installs what is missing.
"""

import contextlib
import os
import py_compile
import re
import secrets
import select
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from costlib.exercise import ROOT
from labs import holes, syscalls, wire

LIMITS = {  # seconds and bytes; CPU, AS, FSIZE, ... are the operating system's names
    "import_seconds": 10, "case_seconds": 2, "function_seconds": 5, "submission_seconds": 60, "reply_bytes": 2**16, "output_bytes": 2**23,
    "asks": 2000, "CPU": 30, "AS": 2**28, "FSIZE": 2**20, "NOFILE": 64, "NPROC": 8, "CORE": 0, "tmp_bytes": 2**24,
}  # fmt: skip  # AS is of one process: NPROC of them bound what a submission can take
BACKENDS = ("bwrap", "setpriv", "none")
# A user of its own for every sandbox at a time, so that they cannot use up each other's processes; nor those of another
# batch on this machine. 60,000 to 61,183 are nobody's on Debian and systemd.
FIRST_UID = 60_000 + os.getpid() % 70 * 16
KEPT_OUTPUT = 2048
SHARED = ("/tmp", "/var/tmp", "/dev/shm")  # where any user may write


class NoSandbox(RuntimeError):
    """No backend can start; the text says what to install."""


class Gone(Exception):
    """The worker is no longer there, or must not be: "died", "timeout" or "flood"."""

    def __init__(self, how: str):
        super().__init__(how)
        self.how = how


def course_copy(folder: Path) -> Path:
    """costlib with every hole empty, and the worker: all that a sandbox gets to see of the course."""
    shutil.copytree(
        ROOT / "costlib", folder / "costlib", ignore=shutil.ignore_patterns("__pycache__", "plots", "errata", "observe")
    )
    for file in (folder / "costlib").glob("*.py"):
        file.write_text(holes.empty(file.read_text(encoding="utf-8")), encoding="utf-8")
    (folder / "labs").mkdir()
    (folder / "labs/__init__.py").write_text("", encoding="utf-8")
    for name in ("worker.py", "wire.py"):
        shutil.copy(ROOT / "labs" / name, folder / "labs")
    for file in folder.rglob("*.py"):  # by its hash: a learner's file put in its place is never taken for it
        py_compile.compile(file, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder


def choose(trusted: bool = False) -> str:
    """The strongest backend that starts here; NoSandbox where none does and the code is not your own."""
    for backend in ("bwrap", "setpriv"):
        if starts(backend):
            return backend
    if trusted:
        return "none"
    raise NoSandbox(
        "no sandbox can start here, and learners' code does not run without one.\n"
        "  Debian, Ubuntu   apt-get install bubblewrap\n"
        "  Fedora           dnf install bubblewrap\n"
        "  where user namespaces are off   sysctl kernel.apparmor_restrict_unprivileged_userns=0, or run as root\n"
        "  inside a container, as root     setpriv, from util-linux\n"
        "On your own work only, --trusted runs it without."
    )


def starts(backend: str) -> bool:
    if backend == "setpriv" and os.geteuid() != 0 or not shutil.which(backend):
        return False
    # The very command that submissions get. A Python whose library cannot be reached may start with another's.
    same = ["-c", "import sys; sys.exit(sys.version != sys.argv[1])", sys.version]
    return launch(backend, Path(sys.prefix), {}, 0, same, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait(20) == 0


def launch(backend: str, course: Path, files: dict[str, Path], slot: int, words: list[str], pass_fds=(), **options) -> subprocess.Popen:
    """Python, with these words, in a sandbox."""
    doors = syscalls.opened() if backend == "bwrap" else None
    shut = [] if doors is None else [doors]
    command = [*_prefix(backend, course, files, slot, shut), _python(), "-I", "-S", "-B", *words]
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(*pass_fds, *shut), **options)
    finally:
        for each in shut:
            os.close(each)


def _python() -> str:
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def _as_nobody(slot: int) -> list[str]:
    uid = str(FIRST_UID + slot)
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]


def _prefix(backend: str, course: Path, files: dict[str, Path], slot: int, shut: list[int]) -> list[str]:
    """What stands before `python` in the command."""
    if backend == "none":
        return []
    if backend == "setpriv":
        return _as_nobody(slot)
    base = Path(sys.base_prefix)
    # What leads to a Python in somebody's home is closed to others, there; here it holds nothing else.
    above = [] if base.is_relative_to("/usr") else [path for path in reversed(base.parents) if path != Path("/")]
    binds = [*(("--ro-bind-try", path) for path in ("/usr", "/lib", "/lib64", "/bin")), ("--ro-bind", str(base))]
    command = ["bwrap", "--die-with-parent", "--new-session", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts",
               "--unshare-cgroup-try", "--clearenv"]  # fmt: skip
    command += [word for path in above for word in ("--perms", "0755", "--dir", str(path))]
    command += [word for flag, path in binds for word in (flag, path, path)]
    command += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--remount-ro", "/dev", "--perms", "1777", "--size", str(LIMITS["tmp_bytes"]), "--tmpfs", "/tmp"]
    command += ["--ro-bind", str(course), "/course"]
    for name, path in files.items():
        command += ["--ro-bind", str(path), f"/course/costlib/{name}"]
    command += ["--remount-ro", "/", "--chdir", "/tmp", *(word for doors in shut for word in ("--seccomp", str(doors)))]
    return command + (_as_nobody(slot) if os.geteuid() == 0 else ["--unshare-user", "--cap-drop", "ALL"])


@contextlib.contextmanager
def placed(backend: str, course: Path, files: dict[str, bytes], slot: int = 0):
    """(the course as the sandbox sees it, {file name: where a bind takes it from}) for one submission."""
    with tempfile.TemporaryDirectory(dir=course.parent, prefix="grade-") as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)
        if backend == "bwrap":
            for name, text in files.items():
                (folder / name).write_bytes(text)
                (folder / name).chmod(0o644)
            yield course, {name: folder / name for name in files}
        else:  # no binds: a copy of the course with the files in it, which no other sandbox's user can read
            shutil.copytree(course, folder / "course")
            for name, text in files.items():
                (folder / "course/costlib" / name).write_bytes(text)
            if backend == "setpriv":
                folder.chmod(0o750)
                os.chown(folder, 0, FIRST_UID + slot)
            yield folder / "course", {}


class Worker:
    """One sandbox with a learner's files in it, and the two pipes to it."""

    def __init__(self, backend: str, course: Path, files: dict[str, Path], slot: int = 0):
        self.backend, self.slot = backend, slot
        to_worker, self.writes = os.pipe()
        self.reads, from_worker = os.pipe()
        place = "/course" if backend == "bwrap" else str(course)
        self.process = launch(
            backend, course, files, slot, [f"{place}/labs/worker.py", str(to_worker), str(from_worker)],
            pass_fds=(to_worker, from_worker), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
            env={"PATH": "/usr/bin:/bin"}, cwd="/" if backend == "bwrap" else tempfile.gettempdir(),
        )  # fmt: skip
        os.close(to_worker)
        os.close(from_worker)
        self.output, self.drained, self.pending = b"", 0, b""
        self.selector = selectors.DefaultSelector()
        for fd in (self.reads, self.process.stdout.fileno()):
            os.set_blocking(fd, False)
            self.selector.register(fd, selectors.EVENT_READ)
        os.set_blocking(self.writes, False)

    def say(self, message: dict, seconds: float) -> None:
        text, until = wire.line(message), time.monotonic() + seconds
        while text:
            try:
                text = text[os.write(self.writes, text):]
            except BlockingIOError:
                if time.monotonic() > until:
                    raise Gone("timeout") from None
                self._drain(0.01)
            except OSError:
                raise Gone("died") from None

    def hear(self, seconds: float) -> dict:
        """The next message; one that is malformed counts as an empty one. Gone if none comes in time."""
        until = time.monotonic() + seconds
        while b"\n" not in self.pending:
            if len(self.pending) > LIMITS["reply_bytes"]:
                raise Gone("flood")
            left = until - time.monotonic()
            if left <= 0:
                raise Gone("timeout")
            self._drain(left)
        text, _, self.pending = self.pending.partition(b"\n")
        try:
            return wire.message(text)
        except ValueError:
            return {}

    def _drain(self, seconds: float) -> None:
        for key, _ in self.selector.select(seconds):
            try:
                chunk = os.read(key.fd, 2**16)
            except OSError:
                chunk = b""
            if not chunk:
                self.selector.unregister(key.fd)
                if key.fd == self.reads:
                    raise Gone("died")
            elif key.fd == self.reads:
                self.pending += chunk
            else:
                self.output += chunk[: KEPT_OUTPUT - len(self.output)]
                self.drained += len(chunk)
                if self.drained > LIMITS["output_bytes"]:
                    raise Gone("flood")

    def alone(self) -> bool:
        """Whether the process that read the file is all there is in the sandbox, as far as can be seen from here."""
        first = _children(self.process.pid) if self.backend == "bwrap" else []
        reader = [pid for each in first for pid in _children(each)]
        return len(reader) == 1 and not _children(reader[0])

    def close(self) -> None:
        """Kill all that runs in the sandbox and wait until it is gone."""
        with contextlib.suppress(Gone):
            if self.process.stdout.fileno() in self.selector.get_map():
                self._drain(0)
        # bubblewrap ends when the first process of its namespace has, and that one when no other is left.
        inside = _children(self.process.pid) if self.backend == "bwrap" else []
        for pid in inside:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if inside and self.process.poll() is None:
            ended = os.pidfd_open(self.process.pid)
            select.select([ended], [], [], 5)
            os.close(ended)
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        if self.backend == "setpriv":
            _kill_user(FIRST_UID + self.slot)
            _forget_user(FIRST_UID + self.slot)
        self.selector.close()
        self.process.stdout.close()
        for fd in (self.reads, self.writes):
            os.close(fd)


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    return []


def _kill_user(uid: int) -> None:
    """Without a process namespace, what a submission left behind is found by its user."""
    for _ in range(50):
        left = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if process.stat().st_uid == uid:
                    left.append(int(process.name))
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _forget_user(uid: int) -> None:
    """Without a file system of its own, neither."""
    for path in (path for place in SHARED for path in Path(place).glob("*")):
        with contextlib.suppress(OSError):
            if path.lstat().st_uid == uid:
                path.unlink() if path.is_symlink() or not path.is_dir() else shutil.rmtree(path)


def nonce() -> str:
    return secrets.token_hex(16)


def process_limits(backend: str) -> dict:
    """The operating system's limits, as the worker sets them on itself before it reads the learner's file."""
    named = {name: value for name, value in LIMITS.items() if name.isupper()}
    # Processes are counted over all that a user runs: root gives the sandbox a user of its own, and in a user namespace
    # Linux counts apart, but only since 5.14.
    kernel = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
    if os.geteuid() != 0 and not (backend == "bwrap" and kernel >= (5, 14)):
        named.pop("NPROC")
    return named
