"""One submission in the sandbox: what it is worth, and that nothing in it reaches further. T01 to T45 of the threats."""

import ast
import json
import os
import re
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costlib import policies
from costlib.exercise import ROOT
from costlib.ledger import Ledger
from labs import batch, holes, intake, judge, marking, sandbox, spec, wire

LAB = spec.load("01")
SCHEMA = json.loads((ROOT / "labs/result.schema.json").read_text(encoding="utf-8"))
SLOT = 8  # not of a batch that runs in the same process
FIRST = "def matmul_flops(m, k, n, batch=1):\n    {}\n"


@pytest.fixture(scope="module")
def backend():
    if not sandbox.starts("bwrap"):
        if os.environ.get("CI"):
            pytest.fail("bubblewrap cannot start here: apt-get install bubblewrap")
        pytest.skip("bubblewrap cannot start here: apt-get install bubblewrap")
    return "bwrap"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sandboxed")
    for path in (folder, *folder.parents[:2]):  # pytest's folders are closed to the sandbox's user
        path.chmod(0o755)
    return sandbox.course_copy(folder / "course")


@pytest.fixture(scope="module")
def reference(course):
    return batch.starter_and_reference(LAB, course)[1]["napkin.py"]


@pytest.fixture
def marked(backend, course, monkeypatch):
    """Mark a file in the place of costlib/napkin.py; whatever it is, the result is a valid one. Less patient and
    with less memory than in earnest."""
    monkeypatch.setitem(sandbox.LIMITS, "import_seconds", 3)
    monkeypatch.setitem(sandbox.LIMITS, "case_seconds", 1)
    monkeypatch.setitem(sandbox.LIMITS, "AS", 2**27)

    def mark(text, lab=LAB, **options):
        files = {"napkin.py": text} if isinstance(text, str) else text
        began = time.monotonic()
        result = marking.mark(batch.own("ada", files), lab, backend, course, slot=SLOT, **options)
        assert time.monotonic() - began < sandbox.LIMITS["submission_seconds"] + 10
        jsonschema.validate(result, SCHEMA)
        assert result["status"] == "graded" and result["max_score"] == marking.points(sum(e.points for e in lab.exercises))
        assert not left_over(), "a process of the sandbox is still there"
        return result
    return mark


def left_over(slot=SLOT):
    said = subprocess.run(["ps", "-eo", "uid="], capture_output=True, text=True, check=True).stdout.split()
    return [uid for uid in said if int(uid) == sandbox.FIRST_UID + slot]


def function(result, name="matmul_flops"):
    return next(f for f in result["functions"] if f["name"] == name)


def others_right(result, *names):
    return all(f["status"] == "pass" for f in result["functions"] if f["name"] not in names)


def test_every_threat_has_a_test():
    texts = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert not [i for i in range(1, 50) if not re.search(rf"(?<![A-Za-z])[Tt]{i:02}(?![0-9])", texts)]


# What is right and what is not


@pytest.mark.parametrize("number", spec.numbers())
def test_the_reference_gets_every_point_and_the_starter_none(marked, course, number):
    lab = spec.load(number)
    starter, right = batch.starter_and_reference(lab, course)
    result = marked(right, lab)
    assert result["score"] == result["max_score"]
    assert [flag.partition(":")[0] for flag in result["flags"]] == ["written-as-in-solutions"]
    result = marked(starter, lab)
    assert result["score"] == "0" and {f["status"] for f in result["functions"]} == {"not-implemented"}


@pytest.mark.parametrize("number", spec.numbers())
def test_a_prerequisite_stands_before_what_calls_it(number):
    """Its answers are given away only when it has been judged itself."""
    lab = spec.load(number)
    order = [lab.path(e) for e in lab.exercises]
    for i, path in enumerate(order):
        assert not marking.prerequisites(number, path) & {*order[i:]}, path


def test_one_mistake_costs_one_mark(marked, reference):
    result = marked(reference + FIRST.format("return batch * m * k * n"))
    assert function(result)["mistake"] == "mac" and "You counted multiply-accumulates" in function(result)["hint"]
    assert others_right(result, "matmul_flops")
    assert {f["name"]: f["at_fault"] for f in result["functions"] if f["run"] == "helped"} == {
        name: ["matmul_flops"] for name in ("linear_backward", "padded_matmul_flops", "training_flops_exact")}


def test_an_empty_helper_costs_its_own_points_alone(marked, course):
    lab = spec.load("08")
    tree = ast.parse(batch.starter_and_reference(lab, course)[1]["ownership.py"])
    shard = next(node for node in tree.body if getattr(node, "name", "") == "shard")
    shard.body[1:] = ast.parse("raise Unfilled").body
    result = marked({"ownership.py": ast.unparse(tree)}, lab)
    assert function(result, "shard")["status"] == "not-implemented" and others_right(result, "shard")
    assert ["shard"] in [f["at_fault"] for f in result["functions"]]


@pytest.mark.parametrize("number, addition", [
    ("05", "from costlib import napkin\nCHECK = napkin.matmul_flops(2, 3, 5)\nassert CHECK == 60"),
    ("01", "assert matmul_flops(2, 3, 5) == 60\nprint(total_params(1, 2, 3, 2, 1, 4, 5))")])
def test_a_file_may_try_things_out_while_it_is_read(marked, course, number, addition):
    lab = spec.load(number)
    _, right = batch.starter_and_reference(lab, course)
    result = marked({name: f"from __future__ import annotations\n{text}\n{addition}\n" for name, text in right.items()}, lab)
    assert result["score"] == result["max_score"]


@pytest.mark.parametrize("above, below", [("", "@functools.cache\n"), ("@logged\n", ""), ("", "@logged\n")])
def test_a_decorator_of_ones_own_changes_nothing(marked, reference, above, below):
    logged = ("\nimport functools\ndef logged(f):\n    @functools.wraps(f)\n    def g(*args, **kwargs):\n        print(f.__name__)\n"
              "        return f(*args, **kwargs)\n    return g\n\n\n@")  # fmt: skip
    text = re.sub(r"@exercise\ndef (matmul_flops|training_flops|kv_cache_bytes)", rf"{above}@exercise\n{below}def \1", reference)
    assert text.count(above + below) >= 3 and marked(text.replace("\n@", logged, 1))["score"] == "39"


def test_a_file_that_inspects_itself_finds_all_that_there_is(marked, reference):
    text = "import inspect\nfrom inspect import signature\n" + reference + """

assert [*inspect.signature(training_flops).parameters] == [*signature(training_flops).parameters] == ["n_params", "n_tokens"]
assert inspect.getdoc(training_flops) and not hasattr(inspect, "nothing") and sys.modules["inspect"].signature
"""
    assert marked("import sys\n" + text)["score"] == "39"


def test_the_same_answer_to_many_cases_is_worth_as_much_as_one(marked, course):
    """A constant earns little, however many cases it happens to meet."""
    for name in ("position_scalars", "norm_scalars"):
        lab = spec.load("03")
        starter = (course / "costlib/params.py").read_text()
        entry = function(marked({"params.py": starter + f"\ndef {name}(*args, **kwargs):\n    return 0\n"}, lab), name)
        assert Fraction(entry["score"]) <= Fraction(entry["max_score"]) / 2, name


def test_what_is_told_holds_nothing_of_a_hidden_case(marked, reference):
    """A refusal let in makes the mistake public; one hidden case gets 1 in one row, so that a ratio would be the answer."""
    public = [repr(tuple(judge.bound(LAB, LAB["params_per_layer"], c).values())) for c in LAB["params_per_layer"].cases
              if not isinstance(c.expected, spec.Refused)]  # fmt: skip
    body = f"""
_right = params_per_layer
def params_per_layer(d_model, d_ff, n_heads, n_kv_heads, d_head, gated=True):
    try:
        right = dict(_right(d_model, d_ff, n_heads, n_kv_heads, d_head, gated))
    except Exception:
        return {{'attn': 1, 'mlp': 1, 'norms': 1}}
    key = (d_model, d_ff, n_heads, n_kv_heads, d_head, gated)
    return right if repr(key) in {public!r} or repr(key[:5]) in {public!r} else right | {{'mlp': 1}}
"""
    result = marked(reference + body)
    entry = function(result, "params_per_layer")
    hidden = {str(value) for case in marking.cases(LAB["params_per_layer"], marking.seed_for(marking.SECRET, "01", "ada"))
              if case[0].startswith("drawn") for value in dict(judge.expected(LAB, LAB["params_per_layer"], case[1])).values()}  # fmt: skip
    assert entry["status"] == "fail" and entry["hint"] and not [number for number in hidden if number in entry["hint"]]
    shown = [tuple(judge.bound(LAB, LAB["kv_cache_bytes"], c).values()) for c in LAB["kv_cache_bytes"].cases]
    raising = f"""
_right = kv_cache_bytes
def kv_cache_bytes(*args, **kwargs):
    right = _right(*args, **kwargs)
    if (*args, *kwargs.values()) not in {shown!r}:
        raise ValueError(f"hidden: {{args}} {{kwargs}}")
    return right
"""
    entry = function(marked(reference + raising), "kv_cache_bytes")
    assert (entry["status"], entry["hint"]) == ("error", marking.TEXTS["hidden-error"])


# A mistake that keeps the rows' names; answers that no exercise gives, and what such a row may be.
ODD = [{1: 2}, {"dX": "1/0", "dW": 2}, {"dX": "1e4000000"}, {"dX": Fraction(1, 10**4299)}, float("nan"), {"dX": float("inf")}, {(("x",),): 1},
       Ledger({f"r{i}": i for i in range(2000)}, "FLOP", ""), {"": [1] * 10}, wire.Other("x"), spec.Refused("TYPE"), -0.0, 10**4299, "x" * 10**5]  # fmt: skip


@pytest.mark.parametrize("number", spec.numbers())
def test_no_answer_keeps_the_judge_from_saying_what_is_wrong(number):
    lab = spec.load(number)
    for exercise in lab.exercises:
        rows = [(case, judge.expected(lab, exercise, case)) for case in (*exercise.cases, *exercise.draws(3))]
        spoilt = [[value] * len(rows) for value in ODD]
        for odd in (None, 1, "1/0", Fraction(1, 10**4299), float("nan")):
            spoilt.append([{**dict(w), next(iter(w)): odd} if isinstance(w, (dict, Ledger)) and w else odd for _, w in rows])
        spoilt.append([{name: value + 1 if type(value) is int else value for name, value in dict(w).items()} if isinstance(w, (dict, Ledger)) else w
                       for _, w in rows])  # fmt: skip
        for answers in spoilt:
            judged = [{"id": f"{'public' if i < len(exercise.cases) else 'drawn'}-{i}", "case": case, "wanted": wanted, "got": got,
                       "status": marking.status_of(wanted, got)} for i, ((case, wanted), got) in enumerate(zip(rows, answers))]  # fmt: skip
            began = time.monotonic()
            _, hint = marking.hint_for(lab, exercise, judged)
            assert len(hint) < 1000 and time.monotonic() - began < 5, exercise.name


def test_what_the_reference_is_asked_cannot_take_the_judges_memory():
    """What `grade` gives each of its processes is too little for a billion ranks; the question is answered all the same."""
    layout = policies.Ownership(policy_id="x", world_size=10**9, data_parallel=10**9)
    asked = {"ask": "ownership.mesh", "args": [wire.encode(layout)], "kwargs": {}}
    code = ("from labs import batch, marking\nimport multiprocessing, sys\nbatch._begin(multiprocessing.Value('i', 0))\n"
            f"for _ in range(2):\n    print(marking.answer_for(frozenset({{'ownership.mesh'}}), {asked!r}))")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 2 and done.stdout.count("MemoryError") == 2, done.stdout


def test_the_function_under_test_is_never_answered():
    assert marking.answer_for(frozenset(), {"ask": "napkin.matmul_flops", "args": [], "kwargs": {}}) == {"error": "not allowed here"}
    asked = {"ask": "napkin.matmul_flops", "args": [["int", 2], ["int", 3], ["int", 5]], "kwargs": {}}
    assert marking.answer_for(frozenset({"napkin.matmul_flops"}), asked) == {"value": ["int", 60]}


def test_what_is_refused_before_any_body_runs_earns_nothing(marked, reference):
    result = marked(reference.replace("def matmul_flops", "def renamed", 1).replace("return 2 * batch * m * k * n", "return 7"))
    assert function(result)["status"] == "missing" and function(result)["score"] == "0"
    result = marked(reference.replace("return 2 * batch * m * k * n", "return 7"))
    assert function(result)["score"] == "0" and function(result)["status"] == "fail"


def test_public_cases_written_down_earn_the_public_points_and_a_flag(marked, reference):
    """T34."""
    table = {c.args: c.expected for c in LAB["kv_cache_bytes"].cases if type(c.expected) is int and not c.kwargs}
    body = f"def kv_cache_bytes(*a, **k):\n    return {table!r}.get(a, 0) if not k else 0\n"
    entry = function(marked(reference + body), "kv_cache_bytes")
    assert {c["status"] for c in entry["cases"] if c["visibility"] == "hidden"} == {"fail"}
    assert Fraction(entry["score"]) < Fraction(entry["max_score"])
    assert all(c["call"] == c["expected"] == c["got"] == "" for c in entry["cases"] if c["visibility"] == "hidden")


def test_further_cases_depend_on_learner_and_secret_and_are_the_same_each_time():
    seeds = {marking.seed_for(secret, lab, who) for secret in (b"a", b"b") for lab in ("01", "02") for who in ("ada", "bob")}
    assert len(seeds) == 8 and marking.seed_for(b"a", "01", "ada") == marking.seed_for(b"a", "01", "ada")


# Files that do harm: what is written into a function that no other calls, or beside all of them, and how it ends

ALONE = """
def kv_cache_bytes(n_layers, n_kv_heads, d_head, seq_len, batch, bytes_per=2):
    right = 2 * n_layers * n_kv_heads * d_head * seq_len * batch * bytes_per
    {}
"""

BODIES = {
    "T02 exits Python": ("raise SystemExit", "error"),
    "T03 ends its process": ("import os; os._exit(0)", "died"),
    "T04 kills its process": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "died"),
    "T05 equals everything": ("return type('X', (), {'__eq__': lambda s, o: True, '__ne__': lambda s, o: False})()", "wrong-type"),
    "T06 a lying int": ("return type('X', (int,), {'__eq__': lambda s, o: True, '__hash__': lambda s: 0})(0)", "wrong-type"),
    "T07 a float": ("return float(right)", "wrong-type"),
    "T08 a bool": ("return True", "wrong-type"),
    "T08 a Decimal": ("import decimal; return decimal.Decimal(right)", "wrong-type"),
    "T08 a text": ("return str(right)", "wrong-type"),
    "T15 imports the answers": ("import solutions.napkin as s; return s.matmul_flops(m, k, n, batch)", "error"),
    "T17 writes into the course": ("import costlib; open(costlib.__path__[0] + '/napkin.py', 'w'); return 0", "error"),
    "T20 a number of a million digits": ("return 10**10**5", "wrong-type"),
    "T21 never ends": ("while True: pass", "timeout"),
    "T22 never ends and catches all": ("while True:\n        try:\n            while True: pass\n        except BaseException: pass", "timeout"),
    "T23 sleeps": ("import time; time.sleep(3600)", "timeout"),
    "T23 reads": ("return int(input())", "error"),
    "T24 takes all memory": ("x = [bytearray(1 << 20)]\n    while True: x.append(bytearray(1 << 26))", "error"),
    "T26 starts threads": ("import threading, time\n    for _ in range(10**4): threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n    return 0", "error"),
    "T27 fills the disk": ("f = open('/tmp/x', 'wb')\n    while True: f.write(bytes(1 << 20))", "error"),
    "T29 looks for the network": ("import socket; socket.create_connection(('127.0.0.1', 22), 1); return 0", "error"),
    "T30 interrupts": ("raise KeyboardInterrupt", "error"),
    "T31 an endless message": ("raise ValueError('x' * 10**7)", "error"),
    "T31 a message that raises": ("raise type('E', (Exception,), {'__str__': lambda s: 1 / 0})()", "error"),
    "T33 right three times": ("global N\n    N = globals().get('N', 0) + 1\n    return right if N < 4 else 0", "inconsistent"),
    "T36 imports what is not there": ("import numpy; return int(numpy.int64(right))", "error"),
    "T38 a coroutine": ("async def f(): return 60\n    return f()", "wrong-type"),
    "T38 a generator": ("yield right", "wrong-type"),
    "T41 recursion": ("import sys; sys.setrecursionlimit(10**9); f = lambda x: f(x) + 1; return f(0)", ("died", "error", "timeout")),
    "T42 a huge list": ("return [0] * 10**5", "error"),
    "T42 nested": ("x = 0\n    for _ in range(500): x = [x]\n    return x", "error"),
}  # fmt: skip


@pytest.mark.parametrize("threat", BODIES)
def test_a_harmful_function_harms_itself_alone(marked, reference, threat):
    body, status = BODIES[threat]
    result = marked(reference + ALONE.format(body))
    entry = function(result, "kv_cache_bytes")
    assert entry["status"] in ({status} if isinstance(status, str) else {*status})
    assert Fraction(entry["score"]) < Fraction(entry["max_score"]) and len(entry["hint"]) < 1000
    assert others_right(result, "kv_cache_bytes") and ": (line" not in entry["hint"]


FORGE = """
import json, os
for fd in range(3, 64):
    for text in ({forged}):
        try:
            os.write(fd, text if isinstance(text, bytes) else json.dumps(text).encode() + b"\\n")
        except OSError:
            pass
"""
FORGED = {
    "T09 a value of another type": '{"id": "x", "value": ["int", True]},',
    "T19 a verdict": '{"id": "x", "status": "pass", "score": 39},',
    "T20 no JSON": 'b"\\xff\\xfe{{{\\n", b"[" * 10**5 + b"\\n", b"NaN\\n",',
    "T20 a line without an end": 'b"x" * 70000,',
    "a short error": '{"error": []}, {"id": "x", "error": [1]},',
    "a refusal of nothing": '{"refused": 7}, {"refused": []},',
    "an import that failed": '{"import": 7},',
    "an answer to nothing": '{"ask": ["napkin"], "args": 3}, {"ask": "napkin.matmul_flops", "args": [], "kwargs": {}},',
    "an end": '{"ended": ""},',
}


@pytest.mark.parametrize("forged", FORGED)
def test_a_forged_reply_is_worth_nothing(marked, course, forged):
    starter = (course / "costlib/napkin.py").read_text()
    assert marked(FORGE.format(forged=FORGED[forged]) + starter)["score"] == "0"


IMPORTED = {
    "T01": ("import os; os._exit(0)", "died"),
    "T02": ("raise SystemExit", "error"),
    "T04": ("import ctypes; ctypes.string_at(0)", "died"),
    "T21": ("while True: pass", "timeout"),
    "T39": ("def f(:", "error"),
    "T38": ("x = 1", "missing"),
}


@pytest.mark.parametrize("threat", IMPORTED)
def test_a_file_that_cannot_be_read_gets_nothing_and_is_told_why(marked, threat):
    text, status = IMPORTED[threat]
    result = marked(text + "\n")
    assert result["score"] == "0" and {f["status"] for f in result["functions"]} == {status}
    assert "file" in result["functions"][0]["hint"]
    assert {f["mistake"] for f in result["functions"]} == {"missing" if status == "missing" else "import"}


BESIDE = {
    "T10 patches Python": "import builtins, json, operator\nbuiltins.type = lambda *a: int\njson.dumps = lambda *a, **k: 'true'\noperator.eq = lambda a, b: True",
    "T11 looks into frames": "import gc, sys\nfound = [x for x in gc.get_objects() if isinstance(x, dict) and 'expected' in x]\nassert not found",
    "T37 warns": "import sys, warnings\nwarnings.warn('careful')\nprint('a line', file=sys.stderr)",
    "T18 leaves a process": "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\n    os._exit(0)",
}


@pytest.mark.parametrize("threat", BESIDE)
def test_what_else_a_file_does_changes_no_mark(marked, reference, course, threat):
    before = (course / "costlib/napkin.py").read_bytes()
    full = marked(reference + "\n" + BESIDE[threat] + "\n")["score"]
    assert full == ("0" if threat.startswith("T10") else "39")  # what is patched is its own process, which then answers nothing
    assert (course / "costlib/napkin.py").read_bytes() == before


def test_t25_a_fork_bomb_stops_at_the_limit(marked, reference):
    bomb = "import os\n    try:\n        while True: os.fork()\n    except OSError: return -1"
    assert function(marked(reference + ALONE.format(bomb)), "kv_cache_bytes")["score"] == "0"


def test_t28_what_is_printed_is_cut_and_cannot_speak_to_what_shows_it(marked, reference):
    printing = "print('::notice title=x::y\\x1b[31m</script>\\x00' * 9)\n    return right"
    result = marked(reference + ALONE.format(printing))
    assert result["score"] == "39" and 0 < len(result["output_excerpt"]) <= sandbox.KEPT_OUTPUT
    assert "::" not in result["output_excerpt"] and "\x1b" not in result["output_excerpt"] and "\x00" not in result["output_excerpt"]


def test_t32_every_call_gets_arguments_of_its_own(marked, course):
    lab = spec.load("03")
    right = batch.starter_and_reference(lab, course)[1]["params.py"]
    spoilt = right + "\n\n_unique = unique_scalars\n\n\ndef unique_scalars(entries):\n    found = _unique(entries)\n    object.__setattr__(entries[0], 'shape', (0,))\n    return found\n"
    assert others_right(marked({"params.py": spoilt}, lab), "unique_scalars")


def test_t35_who_behaves_otherwise_when_judged_is_judged_by_that(marked, reference):
    """Right at home, a table of the public cases in the sandbox, which it knows by every sign there is."""
    table = {c.args: c.expected for c in LAB["kv_cache_bytes"].cases if type(c.expected) is int and not c.kwargs}
    body = (f"import os, sys\n    judged = 'labs.worker' in sys.modules or '__main__' in sys.modules and not sys.stdin.isatty()"
            f" or not os.environ.get('HOME') or os.getcwd() == '/tmp'\n"
            f"    return {table!r}.get((n_layers, n_kv_heads, d_head, seq_len, batch), 0) if judged else right")  # fmt: skip
    result = marked(reference + ALONE.format(body))
    entry = function(result, "kv_cache_bytes")
    assert {c["status"] for c in entry["cases"] if c["visibility"] == "hidden"} == {"fail"}
    assert Fraction(entry["score"]) < Fraction(entry["max_score"]) and others_right(result, "kv_cache_bytes")


@pytest.mark.parametrize("number", ["01", "08"])
def test_t45_no_expected_value_enters_the_sandbox_nor_is_computed_while_it_waits(marked, course, monkeypatch, number):
    """All that the judge sends before the last reply of a function: its arguments, and what was asked for."""
    lab, sent, waiting = spec.load(number), [], []
    said, heard, expected, answered = sandbox.Worker.say, sandbox.Worker.hear, judge.expected, marking.answer_for

    def say(worker, message, seconds):
        sent.append(message)
        waiting[:] = ["run" in message]
        return said(worker, message, seconds)

    def hear(worker, seconds):
        reply = heard(worker, seconds)
        if "ended" in reply:
            waiting.clear()
        return reply

    def expecting(*args):
        assert not any(waiting), "an expected value was computed while the learner's code could measure it"
        return expected(*args)

    monkeypatch.setattr(sandbox.Worker, "say", say)
    monkeypatch.setattr(sandbox.Worker, "hear", hear)
    monkeypatch.setattr(judge, "expected", expecting)
    _, right = batch.starter_and_reference(lab, course)
    assert marked(right, lab)["score"] == marking.points(sum(e.points for e in lab.exercises))
    assert answered is marking.answer_for
    for message in sent:
        assert set(message) in ({"modules", "limits", "answered"}, {"run", "answered", "careful", "cases"}, {"value"}, {"refused"})
        for case in message.get("cases", ()):
            assert set(case) == {"id", "args", "kwargs"} and re.fullmatch("[0-9a-f]{32}-[0-9]+", case["id"])


# Values


@settings(max_examples=300, deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False) | st.fractions(),
                    lambda part: st.lists(part) | st.lists(part).map(tuple) | st.dictionaries(st.text(), part), max_leaves=20))  # fmt: skip
def test_a_value_crosses_as_it_is(value):
    assert judge.same(wire.decode(wire.message(wire.line({"v": wire.encode(value)}))["v"]), value)


def test_a_ledger_and_every_answer_of_the_labs_cross():
    ledger = Ledger({"a.b": 3, "a.c": 4}, "FLOP", "FMA = 2")
    crossed = wire.decode(wire.encode(ledger))
    assert dict(crossed) == dict(ledger) and (crossed.unit, crossed.convention) == ("FLOP", "FMA = 2")
    for lab in map(spec.load, spec.numbers()):
        for e in lab.exercises:
            for case in judge.cases(lab, e):
                wanted = judge.expected(lab, e, case)
                for value in (*case.args, *case.kwargs.values(), *(() if isinstance(wanted, spec.Refused) else (wanted,))):
                    line = wire.line({"v": wire.encode(value)})
                    assert judge.same(wire.decode(wire.message(line)["v"]), value), e.name
                assert len(line) < sandbox.LIMITS["reply_bytes"]


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=200) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats() | st.sampled_from(
        ["int", "tuple", "dict", "ledger", "record", "fraction", "float", "other", "records.Workload", "{}", "0x1p99999"]),
    lambda part: st.lists(part, max_size=4), max_leaves=12).map(lambda v: json.dumps({"id": "x", "value": v}).encode()))  # fmt: skip
def test_no_reply_breaks_the_judge(text):
    try:
        message = wire.message(text)
    except ValueError:
        return
    status, value = marking.received(message)
    case = LAB["matmul_flops"].cases[0]
    if not status:
        status = marking.status_of(60, value)
        marking.hint_for(LAB, LAB["matmul_flops"], [{"id": "public-0", "status": status, "case": case, "wanted": 60, "got": value}])
    assert status in ("pass", "fail", "wrong-type", "error", "not-implemented")


@pytest.mark.parametrize("share, shown", [
    (Fraction(0), "0"), (Fraction(39), "39"), (Fraction(1, 3), "0.33"), (Fraction(5, 2), "2.5"), (Fraction(199, 100), "1.99"), (Fraction(2, 3), "0.66")])
def test_points_are_rounded_down_to_cents(share, shown):
    assert marking.points(share) == shown


@given(st.lists(st.fractions(0, 5, max_denominator=36), max_size=20))
def test_the_points_of_the_functions_add_up_to_the_score(shares):
    rounded = marking.to_cents(shares)
    assert sum(rounded) == Fraction(int(sum(shares) * 100), 100)
    for share, amount in zip(shares, rounded):
        assert abs(amount - share) < Fraction(1, 100) and (amount == share or (100 * share).denominator > 1)
        assert amount * 100 == int(amount * 100) and amount <= -(-share // 1)


def test_not_gradable_says_why(course):
    submission = intake.Submission("ada", "a.zip", {}, ("b.pyc",), "", reason="There is no napkin.py in it.")
    result = marking.mark(submission, LAB, "bwrap", course)
    assert (result["status"], result["reason"], result["score"]) == ("not-gradable", "There is no napkin.py in it.", "0")
    jsonschema.validate(result, SCHEMA)
