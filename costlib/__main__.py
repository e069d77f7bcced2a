"""The program on the command line: python -m costlib budget | params

    python -m costlib budget --chip H100 --chips 1000 --days 30
    python -m costlib params running
    python -m costlib params my_manifest.json
"""

import argparse
import sys
from fractions import Fraction
from pathlib import Path

from costlib import fixtures, hardware, napkin, params
from costlib.domain import ManifestError
from costlib.exercise import NoSolutions, Unfilled, lab_module
from costlib.records import ArchitectureManifest
from costlib.schema import tensor_rows
from costlib.units import ceil_div, fixed, in_bytes, percent, scientific, short


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
    budget = commands.add_parser(
        "budget", help="from chips and days to a model, its memory, energy and price", allow_abbrev=False
    )
    budget.add_argument("--chip", required=True, help=f"one of {', '.join(hardware.CHIPS)}")
    for name, default, text in (
        ("chips", None, "how many"),
        ("days", None, "whole days"),
        ("mfu", "0.4", "model FLOPs utilisation, an opinion"),
        ("price", "2.50", "dollars per chip-hour"),
        ("kwh-price", "0.12", "dollars per kWh"),
        ("pue", "1.2", "power usage effectiveness of the building"),
        ("memory-share", "0.7", "share of the cluster's memory that training state may take"),
        ("unique-tokens", "15e12", "unique training tokens you have, an opinion"),
        ("largest-servable", "100e9", "most parameters you would serve, an opinion"),
        ("most-kwh", None, "most energy you may use; without it the energy is not checked"),
    ):
        budget.add_argument(
            f"--{name}",
            type=number,
            default=None if default is None else number(default),
            required=name in ("chips", "days"),
            help=text + (f" (default {default})" if default else ""),
        )
    count = commands.add_parser("params", help="the parameter ledger of a manifest")
    count.add_argument("manifest", help=f"a JSON file, or one of {', '.join(fixtures.MANIFESTS)}")
    return parser.parse_args(argv)


def budget_text(args) -> str:
    """Everything that follows from chips and days, with its assumptions beside it."""
    chip = hardware.chip(args.chip)
    plan = napkin.budget_report(
        chip, args.chips, args.days, args.mfu, args.price, args.kwh_price, args.pue
    )
    checks = napkin.sanity_checks(
        plan, args.memory_share, args.unique_tokens, args.largest_servable, args.most_kwh
    )
    params, tokens = plan["params"], plan["tokens"]
    spent = napkin.training_flops(params, tokens)
    holders = ceil_div(plan["weight_bytes"], chip.memory_bytes)
    power = "" if chip.power.verified else "; the power figure is UNVERIFIED"
    ratios = [
        fixed(plan["usd_rental"] / plan[key], 1) for key in ("usd_energy", "usd_energy_pue") if plan[key]
    ]
    rows = (
        ("compute", f"C = {scientific(plan['flops'])} FLOPs"),
        ("compute-optimal", f"N = {short(params)} parameters, D = {short(tokens, 2)} tokens (D = 20 N)"),
        ("", f"6ND = {scientific(spent)} FLOPs, {scientific(plan['flops'] - spent, 1)} left by rounding N down"),
        ("training state", f"{in_bytes(plan['state_bytes'])} (Adam, 16 B per parameter, no activations)"),
        ("cluster memory", in_bytes(plan["cluster_bytes"])),
        ("weights to serve", f"{in_bytes(plan['weight_bytes'])} (bf16; {holders} {chip.name} to hold them)"),
        ("energy, chips", f"{fixed(plan['kwh'] / 1000, 1)} MWh, ${fixed(plan['usd_energy'])} (board power alone{power})"),
        (
            "energy, meter",
            f"{fixed(plan['kwh_pue'] / 1000, 1)} MWh, ${fixed(plan['usd_energy_pue'])} (PUE {fixed(args.pue, 2)})",
        ),
        (
            "rental",
            f"${fixed(plan['usd_rental'])} at ${fixed(args.price, 2)} per chip-hour"
            + (f", {' or '.join(ratios)} times the electricity (chips or meter)" if ratios else ""),
        ),
        ("price of compute", f"${fixed(plan['usd_per_1e21_flops'], 2)} per 1e21 FLOPs"),
    )
    why = {
        "memory": f"{percent(Fraction(plan['state_bytes'], plan['cluster_bytes']))} of the cluster, at most "
        f"{percent(args.memory_share)}; activations are not counted",
        "data": f"{short(tokens, 2)} tokens, {short(args.unique_tokens, 2)} unique ones",
        "servable": f"{short(params)} parameters, at most {short(args.largest_servable)}",
        "energy": "no limit given (--most-kwh)"
        if args.most_kwh is None
        else f"{fixed(plan['kwh_pue'])} kWh, at most {fixed(args.most_kwh)}",
    }
    lines = [f"{fixed(args.chips)} {chip.name} for {fixed(args.days)} days at {percent(args.mfu)} of peak", ""]
    lines += [f"  {name:<17} {text}" for name, text in rows]
    lines += ["", "  checks"] + [f"  {verdict:<12} {name:<9} {why[name]}" for name, verdict in checks.items()]
    lines += ["", f"  peak {chip.peak}", f"  power {chip.power}"]
    lines += ["  conventions: FMA = 2 FLOPs, C = 6ND, GB = 10**9 B, GiB = 2**30 B"]
    return "\n".join(lines)


def read_manifest(name: str) -> ArchitectureManifest:
    """A fixture by name, or the manifest in a JSON file."""
    if name in fixtures.MANIFESTS:
        return fixtures.MANIFESTS[name]
    try:
        return ArchitectureManifest.from_json(Path(name).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ManifestError(
            "ENUM",
            f"manifest = {name!r}: no fixture of that name ({', '.join(fixtures.MANIFESTS)}), and as a file: {reason}",
        ) from None


def params_text(args) -> str:
    arch = read_manifest(args.manifest)
    ledger, rows = params.ledger(arch), tensor_rows(arch)
    lines = [f"{arch.manifest_id}  sha256 {arch.sha256[:16]}", str(ledger), ""]
    lines += [f"N_{name:<7} {value:,} = {short(value, 2)}" for name, value in params.coordinates(arch).items()]
    lines += [f"{len(rows):,} tensor names; bf16 weights {in_bytes(2 * ledger.total)}"]
    return "\n".join(lines)


def main(argv=None) -> int:
    args = parse(argv)
    try:
        lab_module()
        print({"budget": budget_text, "params": params_text}[args.command](args))
    except (ManifestError, NoSolutions, Unfilled) as error:
        print(f"costlib: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
