"""What do the documents behind this course get wrong, and what is right? One record for each error.

The page of errata shows these records and holds no text of its own about them; the section that a
record names explains. W is the Warmup Guide, M the cost model M4.1. Exercise modules are called, so
every number is computed anew each time it is shown.
"""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Weight = Literal["high", "medium", "low", "code", "lost"]
WEIGHTS = {
    "high": "you would compute or conclude something wrong",
    "medium": "it contradicts the document itself, another one, or a source that it cites",
    "low": "a rounding, a word, a little off",
    "code": "it accepts what it should refuse, or has another name elsewhere",
    "lost": "it was there and is not in the text at hand",
}
PARTS = {"w-lab": "Lab walkthrough", "w-interview": "Interview questions", "w-takeaways": "Tips and takeaways"}


@dataclass(frozen=True, kw_only=True, repr=False)
class Erratum:
    """One error: where it stands, what is said, what is right, how one slips, and the numbers.

    `says` has what does not hold between double asterisks. `recompute` returns lines with units: a line
    that starts with "slip" makes the error and arrives at the document's figure, every other line
    computes what `right` states. `taught` names the sections that explain it, separated by spaces.
    """

    id: str
    place: str
    title: str
    weight: Weight
    taught: str
    says: str
    right: str
    slip: str
    recompute: Callable[[], str]

    def parts(self) -> tuple[tuple[str, str], ...]:
        """(head, text) of everything below the title, the numbers apart."""
        return ("Says", f"{self.place}: {self.says}"), ("Right", self.right), ("How one slips", self.slip)

    def __repr__(self):
        lines = [f"{self.id} {self.title}", *(f"{head}: {text}" for head, text in self.parts())]
        numbers = (f"  {line}" for line in self.recompute().splitlines())
        return re.sub(r"\*\*|`", "", "\n".join([*lines, "Recomputed:", *numbers]))

    def _repr_markdown_(self):
        taught = "; ".join(f"[{_section(label)}]({label})" for label in self.taught.split())
        rows = [
            *(f"- **{head}.** {text}" for head, text in self.parts()),
            "- **Recomputed.**",
            *(f"    - {line}" for line in self.recompute().splitlines()),
            f"- **Taught in** {taught}.",
        ]
        # Two blocks: a list that begins right after a line of text is no list everywhere.
        return f'<a id="{self.id}"></a>**{self.id}. {self.title}.**\n\n' + "\n".join(rows)


class Overview:
    """The errata as a table, each id leading to its entry where one is shown."""

    def __init__(self, errata):
        self.errata = tuple(errata)

    def __repr__(self):
        return "\n".join(f"{e.id}  {e.place}: {e.title} ({e.weight})" for e in self.errata)

    def _repr_html_(self):
        rows = "".join(
            f"<tr><td class='number'><a href='#{e.id}'>{e.id}</a></td><td>{html.escape(e.title)}</td>"
            f"<td>{html.escape(e.place.replace('Chapter ', 'Ch. '))}</td><td>{e.weight}</td></tr>"
            for e in self.errata
        )
        head = "<tr><th></th><th>what is wrong</th><th>where</th><th>weight</th></tr>"
        return f"<table class='rows'><thead>{head}</thead><tbody>{rows}</tbody></table>"


def record(**fields):
    """Turn a generator of lines into the Erratum whose numbers it computes."""
    return lambda lines: Erratum(**fields, recompute=lambda: "\n".join(lines()))


def of(document: str) -> tuple[Erratum, ...]:
    """The errata of one document by number: "W", the Warmup Guide, or "M", the cost model M4.1."""
    from costlib.errata import m, w

    return {"W": w.ERRATA, "M": m.ERRATA}[document]


def taught_in(*labels: str) -> tuple[Erratum, ...]:
    """The errata whose first section is one of these or lies in it: "w-ch7" holds "w-ch7-moe", "0x01" "0x01H"."""
    return tuple(e for e in (*of("W"), *of("M")) if re.match(rf"(?:{'|'.join(labels)})(?![a-z0-9])", e.taught))


def _section(label: str) -> str:
    """What a link says: "Chapter 7, attention" for w-ch7-attention, Lab 01 for lab01, 0x01H for itself."""
    if chapter := re.match(r"(?:w-ch(\d+)|(0x[0-9A-F]+))(?:-(.+))?$", label):
        number, name, section = chapter.groups()
        return (name or f"Chapter {number}") + (f", {section.replace('-', ' ')}" if section else "")
    if lab := re.match(r"lab(\d+)", label):
        return f"Lab {lab[1]}"
    return PARTS.get("-".join(label.split("-")[:2]), label)
