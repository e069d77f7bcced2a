"""Which files come with the course? Schemas and manifests as JSON, read by name wherever costlib is installed."""

from pathlib import Path

from costlib.domain import ManifestError

HERE = Path(__file__).parent  # importlib.resources would triple the time that costlib.hardware takes to import


def read(name: str) -> str:
    """The text of a data file: `read("running.json")`, `read("manifest.schema.json")`."""
    try:
        return (HERE / name).read_text(encoding="utf-8")
    except OSError:
        known = sorted(file.name for file in HERE.glob("*.json"))
        raise ManifestError("ENUM", f"no data file {name!r}; there are {', '.join(known)}") from None
