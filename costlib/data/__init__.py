"""Which files come with the course? Schemas and manifests as JSON, read by name wherever costlib is installed."""

from importlib.resources import files

from costlib.domain import ManifestError


def read(name: str) -> str:
    """The text of a data file: `read("running.json")`, `read("manifest.schema.json")`."""
    try:
        return files(__name__).joinpath(name).read_text(encoding="utf-8")
    except OSError:
        known = sorted(file.name for file in files(__name__).iterdir() if file.name.endswith(".json"))
        raise ManifestError("ENUM", f"no data file {name!r}; there are {', '.join(known)}") from None
