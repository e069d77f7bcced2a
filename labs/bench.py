"""How long do people wait? Each time beside a named peer, run in turn on the same machine; ratios, not seconds, carry over."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from costlib import data
from costlib.estimate import Plan, estimate
from costlib.exercise import ROOT, using
from labs.loop import table

ENV = os.environ | {"LAB_MODULE": "costlib"}


def command(*words: str) -> Callable:
    def run():
        subprocess.run([sys.executable, *words], cwd=ROOT, env=ENV, capture_output=True, check=False)

    return run


PREFILL, TRAINING = (Plan.from_json(data.read(f"plans/{name}.json")) for name in ("running", "running_training"))
SWEEP = [
    PREFILL.replace(architecture=PREFILL.architecture.replace(num_layers=1 + i % 80, intermediate_size=256 * (1 + i % 97)))
    for i in range(1_000)
]


def one(plan: Plan) -> Callable:
    def run():
        with using("solutions"):
            estimate(plan)

    return run


def sweep():
    """A thousand different manifests; ten of these are the ten thousand of the table."""
    with using("solutions"):
        for plan in SWEEP:
            estimate(plan)


def through_json():
    json.loads(json.dumps(json.loads(TEXT)))


TEXT = PREFILL.to_json()


# what is timed, the peer beside it, rounds
PAIRS = (
    ("import costlib", command("-c", "import costlib"), "python -c pass", command("-c", "pass"), 11),
    ("import costlib.params", command("-c", "import costlib.params"), "import dataclasses, json, typing",
     command("-c", "import dataclasses, json, typing"), 11),
    ("make lab LAB=01", command("-m", "labs", "check", "01"), "python -c pass", command("-c", "pass"), 11),
    ("make lab LAB=03", command("-m", "labs", "check", "03"), "pytest on an empty file",
     command("-m", "pytest", "-q", os.devnull), 5),
    ("estimate of a prefill plan", one(PREFILL), "its JSON read, written and read", through_json, 101),
    ("estimate of a training plan", one(TRAINING), "its JSON read, written and read", through_json, 101),
    ("a tenth of a sweep of 10,000", sweep, "pytest on an empty file", command("-m", "pytest", "-q", os.devnull), 3),
)


def measure(ours: Callable, peer: Callable, rounds: int) -> tuple[float, float]:
    """Median seconds of both, taken alternately so that a noisy moment hits both."""
    times = ([], [])
    for _ in range(rounds):
        for function, into in zip((ours, peer), times):
            start = time.perf_counter()
            function()
            into.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def main() -> None:
    rows = []
    for name, ours, peer_name, peer, rounds in PAIRS:
        mine, other = measure(ours, peer, rounds)
        rows.append((name, f"{mine * 1000:.2f}", f"{mine / other:.1f}", peer_name, f"{other * 1000:.2f}"))
    print(table(("what people wait for", "ms", "times", "the peer", "ms"), rows))
