"""The program on the command line.

    python -m costlib budget --chip H100 --chips 1000 --days 30
    python -m costlib params running
    python -m costlib config config.json --manifest model.json
    python -m costlib estimate tiny-tied --observation tiny-tied --fail-on-mismatch
    python -m costlib estimate running --observe
    python -m costlib sensitivity running nine
    python -m costlib compare running my_plan.json
    python -m costlib papers | progress

Status 0: done, and closed where something was compared. 1: a mismatch or an open residual. 2: bad input.
"""

import argparse
import json
import subprocess
import sys
from fractions import Fraction

from costlib import fixtures, hardware, report
from costlib.domain import ManifestError
from costlib.estimate import estimate
from costlib.exercise import ROOT, NoSolutions, Unfilled, lab_module
from costlib.ledger import UnitError
from costlib.observe import NotInstalled


def number(text: str):
    """`0.4`, `15e12`, `2/5`: exact, an int where it is whole."""
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(f"{text!r} is no number; write 30, 0.4, 2/5 or 15e12") from None
    return value.numerator if value.denominator == 1 else value


def parse(argv):
    parser = argparse.ArgumentParser(prog="python -m costlib", description="What a Transformer costs.")
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, text):
        return commands.add_parser(name, help=text, allow_abbrev=False)

    budget = command("budget", "from chips and days to a model, its memory, energy and price")
    budget.add_argument("--chip", required=True, help=f"one of {', '.join(hardware.CHIPS)}")
    for name, default, text in (
        ("chips", None, "how many"),
        ("days", None, "whole days"),
        ("mfu", "mfu", "model FLOPs utilisation"),
        ("price", "chip-hour", "dollars per chip-hour"),
        ("kwh-price", "kwh", "dollars per kWh"),
        ("pue", "pue", "power usage effectiveness of the building"),
        ("memory-share", "memory-share", "share of the cluster's memory that training state may take"),
        ("unique-tokens", "unique-tokens", "unique training tokens you have"),
        ("largest-servable", "largest-servable", "most parameters you would serve"),
        ("most-kwh", None, "most energy you may use; without it the energy is not checked"),
    ):
        value = hardware.assumption(default) if default else None
        budget.add_argument(
            f"--{name}",
            type=number,
            default=number(value) if value else None,
            required=name in ("chips", "days"),
            help=f"{text} (default {value}, see costlib/data/assumptions.json)" if value else text,
        )
    a_plan = f"a JSON file, or one of {', '.join([*report.PLANS, *(m for m in fixtures.MANIFESTS if m not in report.PLANS)])}"
    command("params", "the parameter ledger of a manifest").add_argument("manifest", help=a_plan)
    made = command("config", "the manifest and the parameter ledger of a released model's config.json")
    made.add_argument("path", help="a config.json, or a published one that comes with the course, qwen3-4b for instance")
    made.add_argument("--manifest", metavar="OUT", help="write the manifest there; an existing file is not overwritten")
    one = command("estimate", "every ledger of a plan")
    one.add_argument("manifest", help=a_plan)
    against = one.add_mutually_exclusive_group()
    against.add_argument("--observation", help="a JSON file, or tiny-tied: compare with what was seen")
    against.add_argument("--observe", action="store_true", help="compare with a Llama of PyTorch, built now without weights")
    one.add_argument("--fail-on-mismatch", action="store_true", help="status 1 unless the observation closes")
    one.add_argument("--json", action="store_true", help="by costlib/data/estimate.schema.json")
    many = command("sensitivity", "one field changed at a time, as exact ratios")
    many.add_argument("base", help=a_plan)
    many.add_argument("cases", nargs="?", default="nine", help="a JSON file, or nine (the default)")
    two = command("compare", "two plans, ledger by ledger")
    two.add_argument("first", help=a_plan)
    two.add_argument("second", help=a_plan)
    command("papers", "which published contracts may be compared")
    command("progress", "what is written and what passes")
    return parser.parse_args(argv)


def run_estimate(args) -> int:
    plan = report.read_plan(args.manifest)
    found = estimate(plan)
    seen = report.observe(plan, found, args.observation) if args.observation else None
    seen = report.observe_live(plan, found) if args.observe else seen
    if args.json:
        answer = json.loads(found.to_json()) | ({"observation": seen} if seen else {})
        print(json.dumps(answer, indent=1))
    else:
        print(found)
        print(report.observation_text(plan, seen) if seen else "observation: unmeasured")
    closed = seen is not None and seen["status"] in ("exact", "explained")
    return 1 if args.fail_on_mismatch and not closed else 0


def main(argv=None) -> int:
    args = parse(argv)
    try:
        lab_module()
        if args.command == "estimate":
            return run_estimate(args)
        if args.command == "progress":
            return subprocess.run([sys.executable, "-m", "labs", "progress"], cwd=ROOT, check=False).returncode
        text = {
            "budget": lambda: report.budget_text(args),
            "params": lambda: report.params_text(args.manifest),
            "config": lambda: report.config_text(args.path, args.manifest),
            "sensitivity": lambda: report.sensitivity_text(args.base, args.cases),
            "compare": lambda: report.compare_text(args.first, args.second),
            "papers": report.papers_text,
        }[args.command]
        print(text(), flush=True)
    except BrokenPipeError:  # the reader, `head` for instance, has seen enough
        sys.stdout = None
    except (ManifestError, NoSolutions, NotInstalled, Unfilled, UnitError) as error:
        print(f"costlib: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
