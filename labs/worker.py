"""What runs in the sandbox: a learner's file. It knows no answer.

Started as `python -I -S -B worker.py READ WRITE`, with two pipes to the judge. One line comes in, one goes out:

    {"modules": [...], "limits": {...}, "answered": [...]}
                                            ->  {"ready": true} | {"import": [type, message, line]}
    {"run": "napkin.matmul_flops", "answered": [...], "careful": bool, "cases": [{"id", "args", "kwargs"}, ...]}
                                            ->  {"missing": true}, or for each case
                                                {"id", "value" | "refused" | "error" | "unfilled"},
                                                then {"ended": how}
    {}                                      ->  {"ended": how}

Every run is in a process of its own, so that this one keeps the file as it was read. Careful, a function has one alone
and each answer is sent at once; else functions share one until {} comes, and answers are sent together, which is quicker
and enough where all is right. While a function runs it may ask: {"ask": name,
"args", "kwargs"} is answered by the judge, for what it allows.
"""

import functools
import gc
import importlib
import os
import resource
import sys
import time
from pathlib import Path

class Later(type(sys)):
    """A module that is imported when something in it is asked for. (importlib's LazyLoader does so at the next import.)"""

    def __getattr__(self, name):
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
            self.__dict__.update(vars(importlib.import_module(self.__name__)))
            return getattr(self, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


# `dataclasses` imports it and hardly ever asks, and it takes a quarter of the time in which this process starts.
sys.modules["inspect"] = Later("inspect")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.argv, (READ, WRITE) = sys.argv[:1], map(int, sys.argv[1:3])

from costlib import exercise  # noqa: E402
from costlib.domain import ManifestError  # noqa: E402
from costlib.ledger import Ledger  # noqa: E402
from labs import wire  # noqa: E402

MOST_TEXT = 300
requests = os.fdopen(READ, "rb")
HOLD_SECONDS = 0.002
held = bytearray()
sent_at = 0.0


def say(message: dict, hold: bool = False) -> None:
    """Send a message, or hold it for a moment so that several go together."""
    global sent_at
    held.extend(wire.line(message))
    if hold and time.monotonic() - sent_at < HOLD_SECONDS:
        return
    while held:
        del held[: os.write(WRITE, held)]
    sent_at = time.monotonic()


def hear() -> dict:
    text = requests.readline()
    if not text:
        os._exit(0)
    return wire.message(text)


def described(error: BaseException) -> list:
    """Type, message and line of an error, whatever its own methods do."""
    try:
        text = str(error)[:MOST_TEXT]
    except BaseException:
        text = "its message cannot be shown"
    line, step = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else None, error.__traceback__
    while step and not line:
        last, step = step, step.tb_next
        if step is None:
            line = last.tb_lineno
    return [type(error).__name__[:80], text, line if type(line) is int else 0]


def ask(name, args, kwargs):
    """The judge's answer to a call of a prerequisite."""
    say({"ask": name, "args": [wire.encode(a) for a in args], "kwargs": {k: wire.encode(v) for k, v in kwargs.items()}})
    answer = hear()
    if "refused" in answer:
        raise ManifestError(*answer["refused"])
    if "value" not in answer:
        raise RuntimeError(f"{name} was not answered: {answer.get('error', 'not allowed here')}")
    return wire.decode(answer["value"])


def asking(path, *args, **kwargs):
    return ask(path, args, kwargs)


def answering(answered):
    """What takes the place of costlib's own switch: the judge answers some names, the file all others."""
    def answer(name, body, args, kwargs):
        if name in answered:
            value = ask(name, args, kwargs)
            return dict(value) if type(value) is Ledger else value
        try:
            return body(*args, **kwargs)
        except exercise.Unfilled as empty:
            raise empty if empty.args else exercise.Unfilled(name)

    return answer


def run(function, case) -> dict:
    args = [wire.decode(a) for a in case["args"]]
    kwargs = {name: wire.decode(value) for name, value in case["kwargs"].items()}
    try:
        return {"value": wire.encode(function(*args, **kwargs))}
    except exercise.Unfilled as empty:
        return {"unfilled": str(empty)[:MOST_TEXT]}
    except ManifestError as error:
        return {"refused": [str(error.code)[:40], str(error.detail)[:MOST_TEXT]]}
    except BaseException as error:
        return {"error": described(error)}


def serve(request: dict) -> None:
    """Every case of one function."""
    module, _, name = request["run"].partition(".")
    function = getattr(sys.modules.get(f"costlib.{module}"), name, None)
    if not callable(function):
        return say({"missing": True})
    exercise._answer = answering(frozenset(request["answered"]))
    for path in request["answered"]:  # a learner's function may have lost the decorator that would ask
        module, _, name = path.partition(".")
        if hasattr(place := sys.modules.get(f"costlib.{module}"), name):
            setattr(place, name, functools.partial(asking, path))
    for case in request["cases"]:
        say({"id": case["id"], **run(function, case)}, hold=not request["careful"])
    try:
        sys.stdout.flush()  # the process ends without Python's own clearing up
    except BaseException:
        pass


def limit(limits: dict) -> None:
    for name, value in limits.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))


def main() -> None:
    first = hear()
    limit(first["limits"])
    exercise._answer = answering(frozenset(first["answered"]))  # a file may call while it is imported
    try:
        for module in first["modules"]:
            __import__(f"costlib.{module}")
    except BaseException as error:
        say({"import": described(error)})
        return
    say({"ready": True})
    gc.freeze()  # so that collecting in a function's process does not copy what it shares with this one
    while True:
        request = hear()
        child = os.fork()
        if child == 0:
            try:
                while "run" in request:
                    serve(request)
                    if request["careful"]:
                        break
                    say({"ended": ""})
                    request = hear()
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        say({"ended": f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else ""})


if __name__ == "__main__":
    main()
