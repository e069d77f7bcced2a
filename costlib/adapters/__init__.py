"""Which manifest does a released model's config.json describe? One adapter a model type, each explicit.

An adapter reads keys, with the defaults that its class in Transformers documents, and lists the keys
that change no count of scalars or of rectangular FLOPs (dropout, rotary bases, token numbers, windows).
A key that is neither is refused, since nobody has said what it does to the counts.

Shapes are the manifest's. Some classes store the same scalars in other tensors: q, k and v fused (gpt2,
gpt_neox, falcon, phi3), gate and up fused (phi3), transposed (gpt2), all experts stacked, shared
experts as one wide MLP (deepseek_v3). Sums agree; schema.differences would speak.
"""

import json

from costlib import data
from costlib.adapters import classic, dense, experts  # noqa: F401 - each fills ADAPTERS
from costlib.adapters.config import ADAPTERS, Config
from costlib.domain import ManifestError, require
from costlib.records import ArchitectureManifest, parse_json


def read(config) -> tuple[ArchitectureManifest, dict]:
    """The manifest of a config.json, and the defaults that stood in for keys it does not give."""
    data = parse_json(config, "a configuration") if isinstance(config, str) else config
    require(type(data) is dict, "TYPE", f"a configuration is a JSON object, not {type(data).__name__}")
    require("model_type" in data, "MISSING", "model_type must be declared: it says which adapter reads the rest")
    name = data["model_type"]
    require(type(name) is str, "TYPE", f"model_type = {name!r} is no name")
    if name not in ADAPTERS:
        raise ManifestError("ENUM", f"model_type = {name!r}; known: {', '.join(ADAPTERS)}")
    c = Config(name, data)
    c.only("is_encoder_decoder", False)
    function, irrelevant = ADAPTERS[name]
    parts = function(c)
    unknown = sorted(str(key) for key in data.keys() - c.used - irrelevant)
    require(not unknown, "UNDECLARED", f"{name}: {', '.join(unknown)}; the adapter does not know what they do to a count")
    return ArchitectureManifest(manifest_id=f"{name}-{parts['num_layers']}x{parts['hidden_size']}", **parts), c.assumed


def from_config(config) -> ArchitectureManifest:
    """The manifest of a released model, from the text or the dict of its config.json.

    Refused: keys that the adapter does not know, and values that no manifest expresses (UNDECLARED), an
    unknown model_type (ENUM), none at all and a null without a meaning (MISSING), what the record refuses.
    """
    return read(config)[0]


def keys(model_type: str) -> dict:
    """Of one adapter: {"read": its keys with their defaults, "also": other spellings, and keys of which it
    takes one value only, "irrelevant": keys that change no count}. None: the default follows from other keys."""
    c = Config(model_type, {})
    c.only("is_encoder_decoder", False)
    ADAPTERS[model_type][0](c)
    return {"read": c.assumed, "also": sorted(c.used - c.assumed.keys()), "irrelevant": sorted(ADAPTERS[model_type][1])}


def published() -> dict[str, str]:
    """The configurations that come with the course, data/configs/NAME.json: the address each was published at.

    Kept are the keys that some count depends on, and a few that none does.
    """
    return json.loads(data.read("configs/sources.json"))
