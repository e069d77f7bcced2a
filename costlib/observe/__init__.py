"""What does the real thing say? Observers of PyTorch and Transformers models, and what they recorded.

An observer builds a model without weights, looks at it and returns an Observation; the ledgers take no
part. Bundles are recorded observations under costlib/data/observations, so that pages and tests
compare without torch. Importing this package needs neither torch nor transformers; observing does.
"""

import importlib
import json
import os
import pkgutil
from dataclasses import MISSING, fields
from pathlib import Path

from costlib import data
from costlib.evidence import Counter, Explanation, Observation, SeenEntry
from costlib.records import Record

FOLDER = Path(data.__file__).parent / "observations"
SYNTHETIC = "tiny_tied"  # made up, by hand: no observer returns it
DEVICES = {"meta": "meta device, no arithmetic", "cpu": "CPU"}


class NotInstalled(RuntimeError):
    """An observation was asked for where there is no torch or no transformers."""


def need():
    """(torch, transformers), or one sentence that says how to get them."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is fetched, and nobody asked whether it could be
    try:
        import torch
        import transformers
    except ImportError as missing:
        raise NotInstalled(
            f"observing needs torch and transformers, and {missing.name} is not installed here: "
            "make observe installs both into .venv-observe"
        ) from None
    return torch, transformers


def versions() -> str:
    """Which torch and which transformers, without the build's own suffix: the CPU build says what any other says."""
    return ", ".join(f"{each.__name__} {each.__version__.partition('+')[0]}" for each in need())


def seen(
    name: str,
    producer: str,
    scope: str,
    counters: tuple[Counter, ...] = (),
    entries: tuple[SeenEntry, ...] = (),
    explanations: tuple[Explanation, ...] = (),
    device: str = "meta",
) -> Observation:
    """The Observation of that bundle: measured here and now, on the meta device or a CPU."""
    return Observation(
        observation_id=name.replace("_", "-"),
        evidence_class="locally_measured",
        hardware=DEVICES[device],
        framework=versions(),
        raw_artifact=f"{name}.json",
        producer=producer,
        scope=scope,
        entries=entries,
        counters=counters,
        explanations=explanations,
    )


def bundles() -> dict:
    """Every bundle's name with the function that observes it anew, from the BUNDLES of this package's modules."""
    found = {}
    for each in pkgutil.iter_modules(__path__):
        if each.name != "__main__":
            table = getattr(importlib.import_module(f"{__name__}.{each.name}"), "BUNDLES", {})
            if twice := found.keys() & table.keys():
                raise LookupError(f"two observers for {', '.join(sorted(twice))}")
            found |= table
    return dict(sorted(found.items()))


def read(name: str) -> Observation:
    """The recorded observation of that name."""
    return Observation.from_json(data.read(f"observations/{name}.json"))


def _row(record: Record) -> dict:
    return {f.name: getattr(record, f.name) for f in fields(record) if f.default is MISSING or getattr(record, f.name) != f.default}


def as_text(observation: Observation) -> str:
    """The bundle of an observation: keys sorted, defaults left out, one line for each entry, counter and explanation."""
    lines = []
    for key, value in sorted(_row(observation).items()):
        shown = json.dumps(value) if not isinstance(value, tuple) else (
            "[\n" + ",\n".join(f"  {json.dumps(_row(row), sort_keys=True)}" for row in value) + "\n ]"
        )
        lines.append(f" {json.dumps(key)}: {shown}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write(name: str) -> None:
    """Observe anew, and record."""
    (FOLDER / f"{name}.json").write_text(as_text(bundles()[name]()), encoding="utf-8", newline="\n")


def compare(name: str) -> str:
    """Observe anew: "" where the recorded bundle says just that, byte for byte, else what is the matter."""
    path = FOLDER / f"{name}.json"
    if not path.exists():
        return "not recorded"
    now, then = as_text(bundles()[name]()).splitlines(), path.read_text(encoding="utf-8").splitlines()
    if now == then:
        return ""
    changed = [f"now {line.strip()}" for line in now if line not in then] + [f"then {line.strip()}" for line in then if line not in now]
    return "; ".join(changed[:4]) or "the same lines in another order"


def strangers() -> list[str]:
    """Recorded bundles that no observer returns."""
    return sorted({path.stem for path in FOLDER.glob("*.json")} - bundles().keys() - {SYNTHETIC})
