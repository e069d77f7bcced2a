"""W Chapters 10 and 11: from chips and days to a plan, and its price."""

import inspect
from fractions import Fraction

from costlib import napkin
from costlib.hardware import CHIPS
from costlib.units import GB, JOULES_PER_KWH, SECONDS_PER_DAY, ceil_div, fixed

OWNS = ("W.C10.", "W.C11.")
H100, A100, V5E, V5P = CHIPS.values()
CHIPS_RENTED, DAYS = 1000, 30
SMALLER = 30 * 10**9  # the model that W would rather train
ABLATION = 3 * 10**21
BILLION, TRILLION = 10**9, 10**12


def plan():
    return napkin.budget_report(H100, CHIPS_RENTED, DAYS)


def default(function, name):
    return inspect.signature(function).parameters[name].default


def ratio():
    """Tokens per parameter, where nothing else is said."""
    n, d = napkin.chinchilla_split(120)
    return d // n


def optimal_n():
    """The optimal N to sixty digits, as the record has it: a budget 10**100 times larger has 10**50 times the root."""
    n, _ = napkin.chinchilla_split(plan()["flops"] * 10**100)
    return Fraction(round(Fraction(n, 10)), 10**49)


def six_n_d_of_one():
    """The 120 of C = 120 N^2: 6ND of one parameter and its twenty tokens."""
    return napkin.training_flops(1, ratio())


def exponent():
    """N grows as C to this power: a budget 2**20 times larger buys 2**10 times the parameters."""
    grown = napkin.chinchilla_split(120 * 2**20)[0] // napkin.chinchilla_split(120)[0]
    return Fraction(grown.bit_length() - 1, 20)


def same_compute():
    """Tokens that the whole budget pays for the smaller model."""
    return Fraction(plan()["flops"], napkin.training_flops(SMALLER, 1))


def chip_hours():
    return plan()["usd_rental"] / default(napkin.budget_report, "usd_per_chip_hour")


def energy_per_chip_hour():
    return plan()["usd_energy_pue"] / chip_hours()


def printed_flops():
    """W's product in floating point, as W's format prints it."""
    return f"{CHIPS_RENTED * 990e12 * 0.4 * 720 * 3600:,.2f}"


FACTS = {
    "W.C10.017": lambda: plan()["flops"],
    "W.C10.018": six_n_d_of_one,
    "W.C10.019": lambda: optimal_n() / BILLION,
    "W.C10.020": lambda: ratio() * optimal_n() / TRILLION,
    "W.C10.021": lambda: six_n_d_of_one() * optimal_n() ** 2,
    "W.C10.023": lambda: napkin.training_memory(1).total * optimal_n() / GB,
    "W.C10.024": lambda: Fraction(plan()["cluster_bytes"], GB),
    "W.C10.025": lambda: ratio() * optimal_n() / TRILLION,
    "W.C10.026": lambda: optimal_n() / BILLION,
    "W.C10.027": lambda: napkin.training_memory(1)["weights"] * optimal_n() / GB,
    "W.C10.028": lambda: plan()["kwh"] / 1000,
    "W.C10.029": lambda: plan()["usd_energy"],
    "W.C10.032": lambda: same_compute() / TRILLION,  # W-13
    "W.C10.033": lambda: optimal_n() / SMALLER,
    "W.C11.001": lambda: plan()["usd_rental"],
    "W.C11.002": lambda: plan()["kwh_pue"],
    "W.C11.003": lambda: plan()["usd_energy_pue"],
    "W.C11.004": lambda: plan()["flops"],
    "W.C11.006": lambda: plan()["usd_per_1e21_flops"],
    "W.C11.007": lambda: plan()["usd_per_1e21_flops"] * ABLATION / 10**21,
    "W.C11.008": lambda: plan()["usd_rental"] / plan()["usd_energy_pue"],
    # what the printed calls are given, read off what the numbers above are counted from
    "W.C10.038": lambda: SECONDS_PER_DAY,
    "W.C10.039": lambda: default(napkin.budget_to_flops, "mfu"),
    "W.C10.040": ratio,
    "W.C10.041": lambda: napkin.training_flops(1, 1),
    "W.C10.042": six_n_d_of_one,
    "W.C10.043": six_n_d_of_one,
    "W.C10.044": exponent,
    "W.C10.045": exponent,
    "W.C10.046": ratio,
    "W.C10.047": lambda: CHIPS_RENTED,
    "W.C10.048": lambda: DAYS,
    "W.C10.049": lambda: CHIPS_RENTED,
    "W.C10.050": lambda: CHIPS_RENTED,
    "W.C10.051": lambda: DAYS,
    "W.C10.052": lambda: 100 * default(napkin.budget_to_flops, "mfu"),
    "W.C10.053": lambda: JOULES_PER_KWH,
    "W.C10.054": lambda: default(napkin.budget_report, "mfu"),
    "W.C10.055": lambda: default(napkin.budget_report, "usd_per_kwh"),
    "W.C10.056": lambda: plan()["usd_energy"] / plan()["kwh"],
    "W.C11.010": lambda: Fraction(JOULES_PER_KWH, 1000),
    "W.C11.011": lambda: plan()["usd_energy_pue"] / plan()["kwh_pue"],
    "W.C11.012": lambda: plan()["kwh_pue"] / plan()["kwh"],
    "W.C11.013": lambda: chip_hours() / CHIPS_RENTED / DAYS,
    "W.C11.014": lambda: Fraction(plan()["cluster_bytes"], H100.memory_bytes),
    "W.C11.015": lambda: DAYS,
    "W.C11.016": lambda: default(napkin.budget_report, "usd_per_chip_hour"),
    "W.C11.017": lambda: Fraction(plan()["flops"], CHIPS_RENTED * H100.peak_flops * DAYS * SECONDS_PER_DAY),
    "W.C11.018": lambda: ABLATION,
    "W.C11.019": lambda: plan()["flops"] * plan()["usd_per_1e21_flops"] / plan()["usd_rental"],
    "W.C11.020": lambda: H100.watts * chip_hours() / plan()["kwh"],
}
for first, chip, names in (
    (2, H100, ("memory_bytes", "bytes_per_second", "watts")),
    (5, A100, ("peak_flops", "memory_bytes", "bytes_per_second", "watts")),  # bandwidth: W-24
    (9, V5E, ("peak_flops", "memory_bytes", "bytes_per_second")),
    (13, V5P, ("peak_flops", "memory_bytes", "bytes_per_second")),
):
    FACTS |= {f"W.C10.{i:03}": lambda chip=chip, name=name: getattr(chip, name) for i, name in enumerate(names, first)}

TEXTS = {
    "W.C10.001": lambda: H100.peak_flops == 990 * TRILLION == round(Fraction("989.4"), -1) * TRILLION,
    "W.C10.012": lambda: (V5E.watts, V5E.power.verified) == (170, False),
    "W.C10.016": lambda: (V5P.watts, V5P.power.verified) == (600, False),
    "W.C10.022": lambda: napkin.chinchilla_split(120) == (1, 20),
    # W-26: a check that can fail, and that says so where nobody set its limit
    "W.C10.030": lambda: [napkin.sanity_checks(plan(), most_kwh=most)["energy"] for most in (None, 604_799, 604_800)]
    == ["not checked", "fail", "ok"],
    "W.C10.031": lambda: ceil_div(plan()["weight_bytes"], H100.memory_bytes) == 3,
    "W.C10.034": lambda: napkin.training_flops(SMALLER, int(same_compute())) == plan()["flops"],
    # W-26: the two opinions are limits that somebody must declare, the third is a default
    "W.C10.035": lambda: napkin.sanity_checks(plan(), unique_tokens=15 * TRILLION)["data"] == "ok"
    and default(napkin.sanity_checks, "unique_tokens") is None,
    "W.C10.036": lambda: napkin.sanity_checks(plan(), largest_servable=100 * BILLION)["servable"] == "ok"
    and default(napkin.sanity_checks, "largest_servable") is None,
    "W.C10.037": lambda: default(napkin.sanity_checks, "memory_share") == Fraction(7, 10),
    # W-23: floating point adds 33,554,432 FLOPs, and the format shows them
    "W.C11.005": lambda: printed_flops() == f"{plan()['flops'] + 33_554_432:,}.00" == "1,026,432,000,000,000,033,554,432.00",
    # W-25: electricity is 4 % of the rental; for 99 % the rest would cost a tenth of a cent
    "W.C11.009": lambda: energy_per_chip_hour() == Fraction("0.1008")
    and energy_per_chip_hour() / Fraction("2.5") == Fraction("0.04032")
    and fixed(energy_per_chip_hour() / 99, 6) == "0.001018",
}

REST = {}
