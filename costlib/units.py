"""How is an exact number shown? Decimal and binary units side by side, rounded once, when printed."""

from fractions import Fraction

KB, MB, GB, TB = 10**3, 10**6, 10**9, 10**12
KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40
SECONDS_PER_DAY = 86_400
JOULES_PER_KWH = 3_600_000


def ceil_div(a: int, b: int) -> int:
    """The least integer that is at least a / b, in integer arithmetic: math.ceil(a / b) is wrong above 2**53."""
    return -(-a // b)


def fixed(value, digits: int = 0) -> str:
    """A decimal string with thousands separators, half to even on the exact rational."""
    scaled = round(Fraction(value) * 10**digits)
    sign, whole = "-" if scaled < 0 else "", f"{abs(scaled):0{digits + 1}d}"
    return f"{sign}{int(whole[: len(whole) - digits]):,}" + (f".{whole[-digits:]}" if digits else "")


def percent(ratio, digits: int = 1) -> str:
    """A ratio as a percentage, 1/6 as 16.7 %."""
    return fixed(Fraction(ratio) * 100, digits) + " %"


def scientific(value, digits: int = 3) -> str:
    """1026432000000000000000000 as 1.026e24."""
    value, exponent = Fraction(value), 0
    if value <= 0:
        return "0" if value == 0 else "-" + scientific(-value, digits)
    exponent = len(str(value.numerator)) - len(str(value.denominator))
    exponent -= value < Fraction(10) ** exponent
    if round(value / Fraction(10) ** exponent * 10**digits) == 10 ** (digits + 1):
        exponent += 1
    return f"{fixed(value / Fraction(10) ** exponent, digits)}e{exponent}"


def short(value, digits: int = 1) -> str:
    """92485674566 as 92.5B: thousands, millions, billions, trillions by powers of ten."""
    for suffix, scale in (("T", TB), ("B", GB), ("M", MB), ("K", KB)):
        if abs(value) >= scale:
            return fixed(Fraction(value) / scale, digits) + suffix
    return fixed(value, 0 if Fraction(value).denominator == 1 else digits)


def in_bytes(value: int, digits: int = 2) -> str:
    """Exact bytes with the decimal and the binary unit beside them: GB is 10**9, GiB is 2**30."""
    for step, (decimal, binary) in ((3, ("GB", "GiB")), (2, ("MB", "MiB")), (1, ("kB", "KiB"))):
        if value >= 1000**step:
            return (
                f"{value:,} B = {fixed(Fraction(value, 1000**step), digits)} {decimal}"
                f" = {fixed(Fraction(value, 1024**step), digits)} {binary}"
            )
    return f"{value:,} B"
