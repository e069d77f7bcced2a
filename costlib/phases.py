"""What does one call to the same model read, keep and leave behind? (M 0x09)

Training, prefill, a chunk of a prompt and decode share an architecture and differ in rows, history, cache
and logits. Cache bytes are what is stored; what a kernel reads of it is a schedule, and measured traffic a third thing.
"""

from fractions import Fraction

from costlib.domain import Count, Positive, Size
from costlib.exercise import Unfilled, exercise
from costlib.ledger import Ledger
from costlib.policies import Dtype
from costlib.records import ArchitectureManifest, Workload

LAB = "10"


@exercise
def phase_record(workload: Workload) -> dict:
    """What the phase of a call implies, for each of its sequences.

    Return {"projected_rows": new_rows, "rectangle": (query rows, visible rows), "history_rows": K/V
    rows of earlier calls that attention reads, "kept_rows": K/V rows that stay after the call (none
    in training), "retains_for_backward": whether activations do (in training), "logit_rows": every
    new row or the last one, as the workload declares}. Unit: rows, and one bool. Left out: which
    attention program runs.
    Source: M 0x09, 0x09.
    """
    raise Unfilled


@exercise
def projected_rows(prompt: Size, tokens: Size, cached: bool) -> int:
    """Rows whose K and V are projected to generate `tokens` tokens after a prompt, in one layer.

    The first token comes out of the prompt's own call, and every further one needs a call more; the
    last token is never fed back. With a cache each row is projected once; without, each call
    projects everything so far again. Unit: rows. Refused: TYPE, NONPOS.
    Source: M 0x09, 0x09E.
    """
    raise Unfilled


@exercise
def cache_bytes(arch: ArchitectureManifest, batch: Count, rows: Count, dtype: Dtype = "bf16") -> int:
    """Bytes that hold K and V of `rows` rows of `batch` sequences in every layer: B T L (2 H_kv d_h) b.

    Counted: the logical payload, whole even in int4 (K and V make it even). Left out: pages,
    padding, scales, and what any kernel reads of it. Unit: B. Refused: TYPE, NEG, ENUM.
    Source: M 0x09, 0x09C.
    """
    raise Unfilled


@exercise(unit="B", convention="logical K and V payload; a windowed layer keeps its last rows only")
def window_cache_bytes(
    arch: ArchitectureManifest,
    batch: Count,
    rows: Count,
    window: Size,
    windowed_layers: Count,
    dtype: Dtype = "bf16",
) -> Ledger:
    """Return {"global", "windowed"}: the cache of the layers that see everything, and of the
    windowed_layers that keep at most `window` rows of a sequence.

    Unit: B. Refused: more windowed layers than layers (RANGE), TYPE, NEG, NONPOS, ENUM.
    Source: M 0x09, 0x09C.
    """
    raise Unfilled


@exercise(unit="B", convention="quantized K and V: codes, and metadata for every group within a head")
def quantized_cache_bytes(
    arch: ArchitectureManifest,
    batch: Count,
    rows: Count,
    dtype: Dtype,
    group: Size,
    scale_dtype: Dtype = "fp16",
    per_group: Size = 1,
) -> Ledger:
    """Return {"codes", "metadata"} of a cache whose values are stored as codes of `dtype`.

    The head_dim values of one head, row and tensor are cut into groups of at most `group` (a last
    one may be short); each carries per_group values of scale_dtype: 1 for a scale, 2 for scale and
    zero point. Unit: B. Refused: TYPE, NEG, NONPOS, ENUM.
    Source: M 0x09, 0x09E.
    """
    raise Unfilled


@exercise(unit="B", convention="one latent row in place of K and V, in every layer")
def latent_cache_bytes(
    arch: ArchitectureManifest,
    batch: Count,
    rows: Count,
    latent: Size,
    rope: Count,
    dtype: Dtype = "bf16",
    scales: Count = 0,
) -> Ledger:
    """Return {"latent", "rope", "scales"} of a model that caches one latent for all heads (MLA).

    Each row of each layer keeps `latent` values of dtype, `rope` rotary key values in bf16 and
    `scales` fp32 scales. K and V are both computed from the latent, so there is no factor 2 and no
    head count. Unit: B. Refused: TYPE, NEG, NONPOS, ENUM.
    Source: M 0x09, 0x09E.
    """
    raise Unfilled


@exercise(unit="B", convention="K and V in pages of all layers; no page holds rows of two sequences")
def paged_bytes(arch: ArchitectureManifest, lengths: tuple[Count, ...], page: Size, dtype: Dtype = "bf16") -> Ledger:
    """Return {"logical", "unused"} of sequences of these lengths, cached in pages of `page` rows.

    Every sequence takes whole pages; unused is what its last one holds beyond its rows, so that the
    total is what is allocated. Left out: free pages, page tables, shared prefixes. Unit: B.
    Refused: TYPE, NEG, NONPOS, ENUM.
    Source: M 0x09, 0x09E.
    """
    raise Unfilled


@exercise
def rectangular_attention(
    B: Size, Hq: Size, Hkv: Size, Sq: Size, Sk: Size, dh: Size, dtype: Dtype = "bf16"
) -> dict:
    """Both pairwise products of one layer, S_q query rows against S_k visible rows.

    Return {"flops": of QK^T and PV, over the whole rectangle, "kv_bytes": K and V read once, shared
    by all query heads of a group, "intensity": their ratio as a Fraction}. Left out of the bytes: Q, O,
    statistics, the new rows' write, page tables, repeated loads. Units: FLOP, B, FLOP/B.
    Refused: Hq no multiple of Hkv (DIVIS), TYPE, NONPOS, ENUM.
    Source: M 0x09, 0x09D.
    """
    raise Unfilled


@exercise
def decode_intensity(used: Size, kv_bytes: Count, batch: Size, attention_flops: Count = 0) -> Fraction:
    """FLOPs per byte of one decode step of `batch` requests, one token each.

    FLOPs: 2 per used parameter, and attention_flops (0 leaves attention out), for each request. Bytes:
    the used parameters in bf16 once for the whole batch, and kv_bytes for each request. Holds for
    one context length, with K/V loads shared within a group, up to the batch that memory can hold
    (batch_capacity). Unit: FLOP/B, exact. Refused: TYPE, NEG, NONPOS.
    Source: W 9, w-ch9-decode.
    """
    raise Unfilled


@exercise
def ridge_context(used: Size, bytes_per_row: Size, ridge: Positive) -> int:
    """The longest context at which some batch, however large, has a decode_intensity that reaches a
    ridge; attention FLOPs left out.

    bytes_per_row is the cache of one row of one request. The intensity stays below its limit
    2 * used / (rows * bytes_per_row), so the limit must exceed the ridge. Unit: rows. Refused: TYPE,
    NONPOS.
    Source: W 9, w-ch9-decode.
    """
    raise Unfilled


@exercise
def ridge_batch(used: Size, kv_bytes: Count, ridge: Positive) -> int:
    """The smallest batch whose decode_intensity, attention left out, reaches a ridge; 0 where none does.

    Unit: requests. Refused: TYPE, NEG, NONPOS.
    Source: W 9, w-ch9-decode.
    """
    raise Unfilled


@exercise
def batch_capacity(
    arch: ArchitectureManifest,
    lengths: tuple[Size, ...],
    memory_bytes: Count,
    weight_bytes: Count,
    workspace_bytes: Count = 0,
    dtype: Dtype = "bf16",
) -> tuple[int, ...]:
    """How many requests fit, for each context length: the frontier of (context, batch).

    Each request has the logical cache of its length beside weights and workspace. An upper bound on
    residence: pages, fragmentation and scheduling are left out, and it is no throughput.
    Unit: requests. Refused: TYPE, NEG, NONPOS, ENUM.
    Source: W 9, w-ch9-serving.
    """
    raise Unfilled
