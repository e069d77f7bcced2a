"""What can a chip do at most? Dated vendor figures, each with its source and whether it was verified.

Peaks are dense (no structured sparsity), bf16 with fp32 accumulation. A figure that no published
page was found for is marked unverified; it may be used, and is said to be unverified when printed.
"""

from dataclasses import dataclass

from costlib.domain import ManifestError, Size
from costlib.records import Record

_NVIDIA_H100 = "NVIDIA H100 datasheet, https://www.nvidia.com/en-us/data-center/h100/"
_NVIDIA_A100 = "NVIDIA A100 datasheet, https://www.nvidia.com/en-us/data-center/a100/"
_V5E = "Google Cloud, TPU v5e, https://cloud.google.com/tpu/docs/v5e"
_V5P = "Google Cloud, TPU v5p, https://cloud.google.com/tpu/docs/v5p"


@dataclass(frozen=True, kw_only=True)
class Figure(Record):
    """One vendor figure: an exact integer in a base unit, where it was read, when, and verified or not."""

    value: Size
    unit: str
    source: str
    as_of: str = "2026-11"
    verified: bool = True
    note: str = ""

    def __str__(self):
        note = f" ({self.note})" if self.note else ""
        return f"{self.value:,} {self.unit}, {'' if self.verified else 'UNVERIFIED, '}{self.source}, {self.as_of}{note}"


@dataclass(frozen=True, kw_only=True)
class Chip(Record):
    """Peak bf16 arithmetic, memory size, memory bandwidth and board power of one accelerator."""

    name: str
    peak: Figure
    memory: Figure
    bandwidth: Figure
    power: Figure

    @property
    def peak_flops(self) -> int:
        """bf16 FLOP/s."""
        return self.peak.value

    @property
    def memory_bytes(self) -> int:
        return self.memory.value

    @property
    def bytes_per_second(self) -> int:
        return self.bandwidth.value

    @property
    def watts(self) -> int:
        return self.power.value


def _chip(name, source, peak, memory, bandwidth, watts, notes=None, unverified=()):
    figures = {
        "peak": (peak, "FLOP/s"),
        "memory": (memory, "B"),
        "bandwidth": (bandwidth, "B/s"),
        "power": (watts, "W"),
    }
    return Chip(
        name=name,
        **{
            key: Figure(
                value=value,
                unit=unit,
                source=source if key not in unverified else "the Warmup Guide, Chapter 10",
                verified=key not in unverified,
                note=(notes or {}).get(key, ""),
            )
            for key, (value, unit) in figures.items()
        },
    )


CHIPS = {
    c.name: c
    for c in (
        _chip(
            "H100",
            _NVIDIA_H100,
            990 * 10**12,
            80 * 10**9,
            3350 * 10**9,
            700,
            {"peak": "SXM; 989.4 rounded to tens, as the Warmup Guide does: C moves by 0.06 %"},
        ),
        _chip(
            "A100-80",
            _NVIDIA_A100,
            312 * 10**12,
            80 * 10**9,
            2039 * 10**9,
            400,
            {"bandwidth": "SXM; the Warmup Guide's 2.03e12 is cut off, PCIe has 1.935e12"},
        ),
        _chip(
            "TPU v5e",
            _V5E,
            197 * 10**12,
            16 * 10**9,
            819 * 10**9,
            170,
            {
                "bandwidth": "the same page has also said 800 GiB/s, which is 859 GB/s",
                "power": "no published figure found; 170 W is a mean measured on TPU v4",
            },
            ("power",),
        ),
        _chip(
            "TPU v5p",
            _V5P,
            459 * 10**12,
            95 * 10**9,
            2765 * 10**9,
            600,
            {"power": "no published figure found"},
            ("power",),
        ),
    )
}


def chip(name: str) -> Chip:
    """The chip of that name; an unknown one is refused with the list of known ones."""
    try:
        return CHIPS[name]
    except (KeyError, TypeError):
        raise ManifestError("ENUM", f"chip = {name!r}; allowed: {', '.join(CHIPS)}") from None
