"""Results as `labs grade` would write them, made by hand: one of each kind that an export has to carry."""

import hashlib
import json
from fractions import Fraction

from costlib.exercise import ROOT

SCHEMA = json.loads((ROOT / "labs/result.schema.json").read_text(encoding="utf-8"))
MAC = "You get exactly half. You counted multiply-accumulates (MACs); one MAC = 2 FLOPs."
HOSTILE = "\x1b[31mred\x1b[0m\n::notice title=x::owned\n:::error::</script><img src=x onerror=alert(1)>\x00 ```\u202e @everyone"
STARTER = hashlib.sha256(b"starter").hexdigest()


def cents(amount) -> str:
    """As the grader writes points: a decimal of at most two digits, rounded down."""
    hundredths = int(amount * 100)
    return f"{hundredths // 100}.{hundredths % 100:02}".rstrip("0").rstrip(".")


def function(name, statuses="ppp|ppp", points=1, **changed):
    """Shown cases, a bar, hidden cases: p passes, f fails, t times out, n is not written."""
    word = {"p": "pass", "f": "fail", "t": "timeout", "n": "not-implemented"}
    shown, _, hidden = statuses.partition("|")
    worth = Fraction(points, len(shown + hidden))
    cases = [
        {
            "id": f"public-{i}" if i < len(shown) else f"drawn-{i - len(shown)}", "status": word[letter],
            "visibility": "visible" if i < len(shown) else "hidden",
            "points": cents(worth) if letter == "p" else "0", "max_points": cents(worth),
            "call": f"{name}(m={i + 2})" if i < len(shown) else "",
            "expected": "60" if letter == "f" and i < len(shown) else "", "got": "30" if letter == "f" and i < len(shown) else "",
        }
        for i, letter in enumerate(shown + hidden)
    ]  # fmt: skip
    first = next((case["status"] for case in cases if case["status"] != "pass"), "pass")
    made = {
        "name": name, "score": cents(worth * (shown + hidden).count("p")), "max_score": cents(Fraction(points)), "status": first,
        "run": "own", "at_fault": [], "mistake": "", "hint": "", "cases": cases,
    }  # fmt: skip
    return made | changed


def result(learner, *functions, **changed):
    status = changed.get("status", "graded")
    worth = sum((Fraction(f["score"]) for f in functions), Fraction(0))
    most = sum((Fraction(f["max_score"]) for f in functions), Fraction(0)) if functions else Fraction(3)
    made = {
        "schema": "costlib/result/1", "lab": "01", "lab_version": "0123456789ab", "learner": learner,
        "submission": {"name": f"{learner}.zip", "sha256": hashlib.sha256(learner.encode()).hexdigest(), "received": None,
                       "late_seconds": None},
        "seed": "fedcba987654", "sandbox": {"backend": "bwrap", "limits": {"case_seconds": 2, "AS": 2**29}, "python": "3.11.7"},
        "status": status, "reason": "", "score": cents(worth), "max_score": cents(most), "functions": list(functions),
        "output_excerpt": "", "flags": [], "unexpected_files": [],
    }  # fmt: skip
    return made | changed


RIGHT = result("ada", function("matmul_flops", points=2), function("kv_cache_bytes"))
COUNTED_MACS = result("bob", function("matmul_flops", "fff|fff", 2, mistake="mac", hint=MAC), function("kv_cache_bytes"))
HELPED = result("cleo", function("params_per_layer", "fpp|ppp", mistake="unknown", hint="Work the case by hand."),
                function("params_total", run="helped", at_fault=["params_per_layer"]))  # fmt: skip
HIDDEN = result("dan", function("kv_cache_bytes", "ppp|fff", mistake="hidden", hint="Which argument did you not use?"),
                flags=["passes-public-fails-hidden: kv_cache_bytes"])  # fmt: skip
STUB = result("eve", function("matmul_flops", "nnn|nnn", 2, mistake="not-implemented", hint="Still the starter."),
              function("kv_cache_bytes", "nnn|nnn", mistake="not-implemented", hint="Still the starter."))  # fmt: skip
UNREADABLE = result("fay", status="not-gradable", reason="napkin.py, line 3: invalid syntax")
BROKEN = result("gil", status="grader-broken", reason="The reference did not get full points in the sandbox.")
NASTY = result("hal", function("matmul_flops", "pff|fff", 2, mistake="raised", hint=f"It raised Error: {HOSTILE}"),
               output_excerpt=HOSTILE, unexpected_files=["json.py", HOSTILE], flags=[HOSTILE])  # fmt: skip
NASTY["submission"]["name"] = "=HYPERLINK(\"http://x\")"
NASTY["functions"][0]["cases"][1]["got"] = HOSTILE
EVERY = [RIGHT, COUNTED_MACS, HELPED, HIDDEN, STUB, UNREADABLE, BROKEN, NASTY]


def save(folder, results):
    """As files, the way `labs grade --out` leaves them."""
    folder.mkdir(exist_ok=True)
    for each in results:
        (folder / f"{each['learner']}.json").write_text(json.dumps(each, sort_keys=True, indent=1), encoding="utf-8")
    return folder
