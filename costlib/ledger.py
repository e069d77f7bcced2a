"""How do parts make a total? A Ledger: path-like names, exact integers, one unit, one convention."""

from collections.abc import Mapping
from fractions import Fraction

from costlib.domain import ManifestError
from costlib.units import percent


class UnitError(TypeError):
    """Two quantities that must not be added: other units, or other conventions."""


class Ledger(Mapping):
    """An ordered mapping from names such as `blocks.attention.q_proj` to exact integers.

    `ledger["blocks.attention"]` is the sum of everything at or below that path; iteration goes over
    the leaves. A total is always a sum of leaves and is never stored.
    """

    def __init__(self, rows, unit: str, convention: str):
        self._rows, self.unit, self.convention = dict(rows), unit, convention
        for name, value in self._rows.items():
            if type(name) is not str or type(value) is not int:
                raise ManifestError(
                    "RETURN", f"row {name!r} = {value!r} is {type(value).__name__}; a row is a name and an int"
                )
            parts = name.split(".")
            for i in range(1, len(parts)):  # a row is a leaf: what lies below it would be counted twice
                if ".".join(parts[:i]) in self._rows:
                    raise ManifestError("RETURN", f"row {name!r} lies below the row {'.'.join(parts[:i])!r}")

    @property
    def total(self) -> int:
        return sum(self._rows.values())

    def __getitem__(self, path: str) -> int:
        if path in self._rows:
            return self._rows[path]
        rows = [value for name, value in self._rows.items() if name.startswith(f"{path}.")]
        if not rows:
            raise KeyError(f"no row at or below {path!r}; the rows are {', '.join(self._rows)}")
        return sum(rows)

    def __iter__(self):
        return iter(self._rows)

    def __len__(self):
        return len(self._rows)

    def __eq__(self, other):
        if not isinstance(other, Ledger):
            return NotImplemented
        return (self._rows, self.unit, self.convention) == (other._rows, other.unit, other.convention)

    def __add__(self, other: "Ledger") -> "Ledger":
        if not isinstance(other, Ledger):
            return NotImplemented
        for kind in ("unit", "convention"):
            ours, theirs = getattr(self, kind), getattr(other, kind)
            if ours != theirs:
                raise UnitError(f"cannot add ledgers of different {kind}s: {ours!r} and {theirs!r}")
        names = dict.fromkeys([*self, *other])
        return self._like({name: self._rows.get(name, 0) + other._rows.get(name, 0) for name in names})

    def __mul__(self, times: int) -> "Ledger":
        return self._like({name: value * times for name, value in self._rows.items()})

    __rmul__ = __mul__

    def under(self, prefix: str) -> "Ledger":
        """The same rows, one level further down: `attention` becomes `prefix.attention`."""
        return self._like({f"{prefix}.{name}": value for name, value in self._rows.items()})

    def rolled(self, depth: int = 1) -> "Ledger":
        """Rows added up to their first `depth` path components."""
        rows = {}
        for name, value in self._rows.items():
            head = ".".join(name.split(".")[:depth])
            rows[head] = rows.get(head, 0) + value
        return self._like(rows)

    def share(self, path: str) -> Fraction:
        """The part of the total at or below a path."""
        return Fraction(self[path], self.total)

    def _like(self, rows):
        return Ledger(rows, self.unit, self.convention)

    def _lines(self):
        total = self.total
        for name, value in (*self._rows.items(), ("total", total)):
            yield name, f"{value:,}", percent(Fraction(value, total)) if total else ""

    def __str__(self):
        lines = list(self._lines())
        wide = [max(len(cell) for cell in column) for column in zip(*lines)]
        table = [f"{a:<{wide[0]}}  {b:>{wide[1]}}  {c:>{wide[2]}}".rstrip() for a, b, c in lines]
        return "\n".join([*table[:-1], "-" * len(table[-1]), table[-1], f"unit: {self.unit}; {self.convention}"])

    __repr__ = __str__

    def _repr_html_(self):
        import html

        rows = "".join(
            f"<tr><th scope='row'>{html.escape(a)}</th><td>{b}</td><td>{c}</td></tr>" for a, b, c in self._lines()
        )
        caption = html.escape(f"{self.unit}; {self.convention}")
        head = f"<thead><tr><th>row</th><th>{html.escape(self.unit)}</th><th>share</th></tr></thead>"
        return f"<table class='ledger'><caption>{caption}</caption>{head}<tbody>{rows}</tbody></table>"
