"""What does the program print? Every command's answer as text, from ledgers and plans."""

import json
from fractions import Fraction
from pathlib import Path

from costlib import adapters, data, fixtures, hardware, hypotheses, napkin, papers, params, reconcile, sensitivity
from costlib.domain import ManifestError
from costlib.estimate import Estimate, Plan, estimate
from costlib.evidence import AXES, Observation
from costlib.records import ArchitectureManifest
from costlib.schema import tensor_rows
from costlib.units import ceil_div, fixed, in_bytes, percent, scientific, short


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


def _text_of(name: str, what: str, known: dict[str, str]) -> str:
    """The text behind a name that comes with the course, or of a file."""
    if name in known:
        return data.read(known[name])
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ManifestError(
            "ENUM", f"{what} = {name!r}: none of that name ({', '.join(known)}), and as a file: {reason}"
        ) from None


PLANS = {"tiny-tied": "plans/tiny_tied.json", "running": "plans/running.json", "running-training": "plans/running_training.json"}


def read_plan(name: str) -> Plan:
    """A plan by name or file. A bare architecture, by name or file, is a plan that declares nothing else."""
    if name in fixtures.MANIFESTS and name not in PLANS:
        arch = fixtures.MANIFESTS[name]
        return Plan(plan_id=arch.manifest_id, architecture=arch)
    known = PLANS | {m: "" for m in fixtures.MANIFESTS if m not in PLANS}
    text = _text_of(name, "manifest", known)
    try:
        bare = "num_layers" in json.loads(text)
    except (json.JSONDecodeError, TypeError):
        bare = False
    if bare:
        arch = ArchitectureManifest.from_json(text)
        return Plan(plan_id=arch.manifest_id, architecture=arch)
    return Plan.from_json(text)


def params_text(name: str) -> str:
    return inventory_text(fixtures.MANIFESTS[name] if name in fixtures.MANIFESTS else read_plan(name).architecture)


def config_text(path: str, out: str | None = None) -> str:
    """The ledger of a config.json, by file or by the name of a published one, and the defaults that stood in for what it leaves out; the manifest goes to `out`."""
    arch, assumed = adapters.read(_text_of(path, "config", {name: f"configs/{name}.json" for name in adapters.published()}))
    lines = [inventory_text(arch)]
    if shown := {name: value for name, value in assumed.items() if value is not None}:
        given = ", ".join(f"{name} = {json.dumps(value)}" for name, value in shown.items())
        lines.append(f"not in the file, by the class's defaults: {given}")
    if out:
        try:
            with open(out, "x", encoding="utf-8", newline="\n") as file:
                file.write(f"{arch.to_json()}\n")
        except OSError as error:
            raise ManifestError("ENUM", f"--manifest = {out!r}: nothing written, {error.strerror}") from None
        lines.append(f"manifest written to {out}")
    return "\n".join(lines)


def inventory_text(arch: ArchitectureManifest) -> str:
    ledger, rows = params.ledger(arch), tensor_rows(arch)
    lines = [f"{arch.manifest_id}  sha256 {arch.sha256[:16]}", str(ledger), ""]
    lines += [f"N_{name:<7} {value:,} = {short(value, 2)}" for name, value in params.coordinates(arch).items()]
    lines += [f"{len(rows):,} tensor names; bf16 weights {in_bytes(2 * ledger.total)}"]
    return "\n".join(lines)


def observe(plan: Plan, found: Estimate, name: str) -> dict:
    """The reconciliation of an estimate with an observation by name or file."""
    text = _text_of(name, "observation", {"tiny-tied": "observations/tiny_tied.json"})
    predicted = {ledger: total for ledger, total, _ in found.summary()}
    return reconcile.report(tensor_rows(plan.architecture), predicted, Observation.from_json(text))


def observe_live(plan: Plan, found: Estimate) -> dict:
    """The reconciliation of an estimate with a model built now. Needs torch (costlib.observe.NotInstalled)."""
    from costlib.observe import live

    rows = tuple(row.replace(dtype=plan.weight_dtype) for row in tensor_rows(plan.architecture))
    return reconcile.report(rows, {ledger: total for ledger, total, _ in found.summary()}, live.of_plan(plan))


def observation_text(plan: Plan, report: dict) -> str:
    """State first, then counters, then what might explain what stays open."""
    lines = [f"observation: {report['status']}"]
    for kind, names in (report["state"] or {}).items():
        lines += [f"  {kind}: {len(names)}, {', '.join(map(str, names[:3]))}"] if names else []
    for name, row in report["counters"].items():
        lines.append(f"  {name:<24} {row['status']:<10} " + ", ".join(f"{k} {v:,}" for k, v in row.items() if type(v) is int))
        if row["status"] == "open":
            candidates = hypotheses.of_plan(plan, name)
            for h in hypotheses.explain(candidates, row["observed"]):
                lines.append(f"      {h['name']}: would be {h['value']:,}{', exactly this' if h['exact'] else ''}")
    return "\n".join(lines)


def compare_text(first: str, second: str) -> str:
    """Two plans, ledger by ledger; a ledger that only one supplies has no ratio."""
    plans = [read_plan(name) for name in (first, second)]
    a, b = (estimate(plan).ledgers for plan in plans)
    lines = [f"{'':<24} {plans[0].plan_id:>24} {plans[1].plan_id:>24}   second / first"]
    for name in {**a, **b}:
        totals = [x[name].total if name in x else None for x in (a, b)]
        cells = ["not supplied" if t is None else f"{t:,}" for t in totals]
        ratio = fixed(Fraction(totals[1], totals[0]), 4) if None not in totals and totals[0] else "-"
        unit = (a.get(name) or b[name]).unit
        lines.append(f"{name:<24} {cells[0]:>24} {cells[1]:>24}   {ratio} ({unit})")
    return "\n".join(lines)


def sensitivity_text(base: str, cases: str) -> str:
    plan = read_plan(base)
    results = sensitivity.run(plan, sensitivity.read_cases(_text_of(cases, "cases", {"nine": "cases.json"})))
    names = list(dict.fromkeys(name for row in results.values() for name in row))
    lines = [f"{plan.plan_id}  sha256 {plan.sha256[:16]}", f"{'one change':<20}" + "".join(f"{name:>25}" for name in names)]
    for case, row in results.items():
        lines.append(f"{case:<20}" + "".join(f"{fixed(row[n], 3) if n in row else '-':>25}" for n in names))
    return "\n".join(lines)


def papers_text() -> str:
    """Every pair of the registry through the gate, and the three numbers that look comparable."""
    lines = []
    for part in ("contracts", "numbers"):
        rows = papers.registry(part)
        for i, a in enumerate(rows):
            for b in rows[i + 1 :]:
                gate = papers.comparison_gate(a, b)
                lines.append(f"{a.contract_id} against {b.contract_id}: {gate['status']}, open: {', '.join(gate['open']) or 'nothing'}")
    return "\n".join([f"{len(AXES)} axes: {', '.join(AXES)}", *lines])
