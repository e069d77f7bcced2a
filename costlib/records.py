"""What exactly is being counted? Frozen records that validate themselves, with a canonical JSON form.

An estimate is bound to the SHA-256 of the records it came from; a changed field is another record.
Fields use the names of released model configurations; derived widths are properties, never entered.
"""

import dataclasses
import functools
import json
import typing
from dataclasses import dataclass, fields
from typing import Literal

from costlib.domain import Count, ManifestError, Size, checker, require, require_divides


@functools.cache
def _hints(cls) -> dict:
    return typing.get_type_hints(cls, include_extras=True)


@functools.cache
def _checks(cls) -> list:
    """(field, its name in messages, the check of its annotation) for every field of a record class."""
    return [(name, f"{cls.__name__}.{name}", checker(hint)) for name, hint in _hints(cls).items()]


class Record:
    """Base of all records: fields checked against their annotations, then the record's own rules."""

    def __post_init__(self):
        values = vars(self)
        for name, shown, check in _checks(type(self)):
            check(shown, values[name])
        self.rules()

    def rules(self):
        """What must hold between fields; raises ManifestError."""

    def replace(self, **changes):
        """A new record with some fields changed; an unknown name is refused."""
        _known(type(self), changes)
        return dataclasses.replace(self, **changes)

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no white space, ASCII."""
        return json.dumps(dataclasses.asdict(self, dict_factory=_rows), sort_keys=True, separators=(",", ":"))

    @property
    def sha256(self) -> str:
        import hashlib  # loads OpenSSL, which few callers need

        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @classmethod
    def from_json(cls, text: str):
        """The record written in `text`; malformed JSON, repeated, unknown and missing keys are refused."""
        try:
            return _build(cls, parse_json(text, cls.__name__))
        except RecursionError:
            raise ManifestError("JSON", "nested deeper than any record is") from None


def parse_json(text: str, what: str):
    """The value that a JSON text holds; malformed JSON, repeated keys and numbers that are none are refused."""
    require(isinstance(text, str), "TYPE", f"{what} is read from a text, not {type(text).__name__}")
    try:
        return json.loads(text, object_pairs_hook=_no_repeats, parse_constant=_no_constant, parse_int=_short_integer)
    except json.JSONDecodeError as error:
        raise ManifestError("JSON", f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise ManifestError("JSON", "nested deeper than any record is") from None


def _rows(pairs):
    # A part that few models have is left out where absent, so that all others keep the hash they had without it.
    return {key: value for key, value in pairs if not (key == "latent" and value is None)}


def _no_repeats(pairs):
    data = {}
    for key, value in pairs:
        require(key not in data, "JSON", f"the key {key!r} stands twice")
        data[key] = value
    return data


def _short_integer(digits):
    # Python neither reads nor prints integers of more than 4,300 digits, and products must stay below that.
    require(len(digits) <= 100, "JSON", f"an integer of {len(digits)} digits; 100 are enough for any model")
    return int(digits)


def _no_constant(name):
    raise ManifestError("JSON", f"{name} is no number")


def _known(cls, data):
    names = [field.name for field in fields(cls)]
    for key in data:
        require(key in names, "UNDECLARED", f"{cls.__name__} has no field {key!r}; its fields are {', '.join(names)}")


def _build(cls, data):
    require(type(data) is dict, "TYPE", f"{cls.__name__} is a JSON object, not {type(data).__name__}")
    _known(cls, data)
    for field in fields(cls):
        if field.default is dataclasses.MISSING:
            require(field.name in data, "MISSING", f"{cls.__name__}.{field.name} must be declared")
    return cls(**{name: _convert(_hints(cls)[name], value) for name, value in data.items()})


def _convert(hint, value):
    """JSON lists become tuples and JSON objects become the record that the annotation names."""
    inner = typing.get_args(hint)
    if isinstance(value, list):
        return tuple(_convert(inner[0] if inner else None, item) for item in value)
    if isinstance(value, dict) and typing.get_origin(hint) is not tuple:
        for part in (hint, *inner):
            if isinstance(part, type) and issubclass(part, Record):
                return _build(part, value)
    return value


@dataclass(frozen=True, kw_only=True)
class Tensor(Record):
    """One stored tensor: the name it has in a state_dict, its shape in stored axes, its dtype.

    `alias_of` names the tensor whose storage this one shares; None where it has its own.
    """

    name: str
    shape: tuple[Size, ...]
    dtype: str = "bf16"
    alias_of: str | None = None

    @property
    def numel(self) -> int:
        product = 1
        for extent in self.shape:
            product *= extent
        return product


@dataclass(frozen=True, kw_only=True)
class StateEntry(Record):
    """One entry seen in a running model: entries with equal `storage` share one tensor object."""

    name: str
    shape: tuple[Size, ...]
    storage: str
    kind: Literal["parameter", "buffer"] = "parameter"
    trainable: bool = True
    persistent: bool = True

    numel = Tensor.numel


@dataclass(frozen=True, kw_only=True)
class Experts(Record):
    """A mixture of experts in place of the MLP, from block `first_dense_layers` on."""

    num_experts: Size
    experts_per_token: Size
    intermediate_size: Size
    shared_experts: Count = 0
    first_dense_layers: Count = 0

    def rules(self):
        require(
            self.experts_per_token <= self.num_experts,
            "RANGE",
            f"experts_per_token = {self.experts_per_token} exceeds num_experts = {self.num_experts}",
        )


@dataclass(frozen=True, kw_only=True)
class Latent(Record):
    """Latent attention (MLA): keys and values are computed from one low-rank row, which alone is cached.

    Stored: kv_a [kv_rank + rope_head_dim, d], a norm over kv_rank, kv_b [H (nope + value_head_dim), kv_rank],
    o [d, H value_head_dim], with nope = head_dim - rope_head_dim. query_rank 0: q [H head_dim, d]; else
    q_a [query_rank, d], a norm over query_rank, q_b [H head_dim, query_rank].
    """

    kv_rank: Size
    rope_head_dim: Size
    value_head_dim: Size
    query_rank: Count = 0


@dataclass(frozen=True, kw_only=True)
class ArchitectureManifest(Record):
    """A decoder-only Transformer, every learned part declared, absences included. Source: M 0x01A.

    qk_norm: "per-head" keeps one scale of head_dim for q and one for k, "packed" one over the whole
    packed width. attention_bias: "qkv" leaves the output projection without. latent stands in place of
    the four projections; head_dim is then the width of a query head. Everything trainable that no
    other field declares is named and shaped in extra_trainable_sets.
    """

    manifest_id: str
    num_layers: Size
    hidden_size: Size
    num_attention_heads: Size
    num_key_value_heads: Size
    head_dim: Size
    intermediate_size: Size
    vocab_size: Size
    tie_word_embeddings: bool
    mlp: Literal["gated", "two-matrix"] = "gated"
    norm: Literal["rmsnorm", "layernorm"] = "rmsnorm"
    norms_per_block: Count = 2
    final_norm: bool = True
    qk_norm: Literal["none", "per-head", "packed"] = "none"
    position: Literal["rope", "sinusoidal", "learned"] = "rope"
    max_positions: Count = 0
    attention_bias: Literal["none", "qkv", "all"] = "none"
    mlp_bias: bool = False
    head_bias: bool = False
    experts: Experts | None = None
    latent: Latent | None = None
    extra_trainable_sets: tuple[Tensor, ...] = ()

    def rules(self):
        require_divides(
            self.num_key_value_heads, self.num_attention_heads, "num_key_value_heads", "num_attention_heads"
        )
        require(
            (self.position == "learned") == (self.max_positions > 0),
            "INCONSISTENT",
            f"max_positions = {self.max_positions} with position = {self.position!r}: "
            "a learned table needs its rows, any other position has none",
        )
        if self.experts:
            require(
                self.experts.first_dense_layers < self.num_layers,
                "RANGE",
                f"first_dense_layers = {self.experts.first_dense_layers} leaves no block of {self.num_layers} to experts",
            )
            require(not self.mlp_bias, "INCONSISTENT", "mlp_bias with experts is not a declared layout")
        if self.latent:
            require(
                self.latent.rope_head_dim <= self.head_dim,
                "RANGE",
                f"rope_head_dim = {self.latent.rope_head_dim} exceeds head_dim = {self.head_dim}",
            )
            require(
                self.num_key_value_heads == self.num_attention_heads and (self.attention_bias, self.qk_norm) == ("none", "none"),
                "INCONSISTENT",
                "latent attention has keys for every query head, its own norms, and no attention_bias",
            )
        names = [tensor.name for tensor in self.extra_trainable_sets]
        require(len(names) == len(set(names)), "INCONSISTENT", f"extra_trainable_sets repeats a name: {names}")

    @property
    def d_q(self) -> int:
        """Packed query width H_q * d_h; equal to hidden_size in many models, not in all."""
        self._projected("d_q")
        return self.num_attention_heads * self.head_dim

    @property
    def d_kv(self) -> int:
        """Packed key (or value) width H_kv * d_h."""
        self._projected("d_kv")
        return self.num_key_value_heads * self.head_dim

    def _projected(self, name):
        # Formulas in d_q and d_kv are wrong for latent attention, its cache above all: better none than those.
        require(
            self.latent is None,
            "INCONSISTENT",
            f"{self.manifest_id} has latent attention and no {name}: its matrices hold latent_weights scalars a block, "
            "its cache kv_rank + rope_head_dim values a row",
        )

    @property
    def latent_weights(self) -> int:
        """Scalars in the matrices of latent attention of one block, its two norms left out; 0 without."""
        if self.latent is None:
            return 0
        d, heads, part = self.hidden_size, self.num_attention_heads, self.latent
        query = part.query_rank * (d + heads * self.head_dim) if part.query_rank else d * heads * self.head_dim
        down = d * (part.kv_rank + part.rope_head_dim)
        up = part.kv_rank * heads * (self.head_dim - part.rope_head_dim + part.value_head_dim)
        return query + down + up + d * heads * part.value_head_dim

    @property
    def qk_norm_scalars(self) -> int:
        """Scales that normalize queries and keys in one block: over one head each, the packed width, or the latents."""
        if self.latent:
            return self.latent.query_rank + self.latent.kv_rank
        return {"none": 0, "per-head": 2 * self.head_dim, "packed": self.d_q + self.d_kv}[self.qk_norm]

    @property
    def expert_layers(self) -> int:
        """Blocks whose MLP is a mixture of experts."""
        return self.num_layers - self.experts.first_dense_layers if self.experts else 0


@dataclass(frozen=True, kw_only=True)
class Workload(Record):
    """Which rows reach the model in one call. Source: M 0x01B.

    new_rows are projected and are the query rows; visible_rows are the key/value rows a query may
    read, the new ones included: a decode step over a prefix of p rows has visible_rows = p + 1.
    """

    workload_id: str
    phase: Literal["training", "prefill", "prefill-chunk", "decode"]
    batch_size: Size
    new_rows: Size
    visible_rows: Size
    logits: Literal["all", "final"]

    def rules(self):
        require(
            self.visible_rows >= self.new_rows,
            "INCONSISTENT",
            f"visible_rows = {self.visible_rows} is less than new_rows = {self.new_rows}; a row sees itself",
        )
        if self.phase == "decode":
            require(self.new_rows == 1, "INCONSISTENT", f"decode has new_rows = 1, not {self.new_rows}")
        if self.phase in ("training", "prefill"):
            require(
                self.visible_rows == self.new_rows,
                "INCONSISTENT",
                f"{self.phase} over {self.new_rows} new rows sees {self.visible_rows}: that is a prefill-chunk",
            )
