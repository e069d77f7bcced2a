"""Lab 10: phases and the cache of M 0x09, from one call's rows to the frontier of context and batch."""

from fractions import Fraction

from costlib.domain import ManifestError
from costlib.fixtures import DECODE_32K, ODD, PREFILL_4K, RUNNING, TOY, TRAIN_4K, TRAIN_ODD, W_7B, W_70B
from costlib.hardware import CHIPS, chip
from costlib.policies import BITS, HBM, Transfer
from costlib.records import Workload
from costlib.units import ceil_div, fixed
from labs.spec import Exercise, Failure, Lab, Reference, Wrong, given


def _arch(name, layers, d, heads, kv_heads, head_dim):
    return RUNNING.replace(
        manifest_id=name,
        num_layers=layers,
        hidden_size=d,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
    )


MHA = RUNNING.replace(manifest_id="8b-mha", num_key_value_heads=32)
MQA = RUNNING.replace(manifest_id="8b-mqa", num_key_value_heads=1)
W_70B_MHA = W_70B.replace(manifest_id="w-70b-mha", num_key_value_heads=64)
WIDE_HEADS = _arch("36-layers", 36, 2560, 32, 8, 128)  # d / H = 80, d_h = 128
DEEP = RUNNING.replace(manifest_id="64-layers", num_layers=64)
HALF_SLIDING = _arch("18-of-36-sliding", 36, 2880, 64, 8, 64)
FIVE_GLOBAL = _arch("5-of-34-global", 34, 2560, 8, 4, 256)
LATENT = _arch("61-latent-layers", 61, 7168, 128, 128, 56)
RIDGE = Fraction(19_800, 67)  # of the H100, FLOP/B
PRE = 70 * 10**9


def _workload(name, phase, batch, new, visible, logits="final"):
    return Workload(
        workload_id=name, phase=phase, batch_size=batch, new_rows=new, visible_rows=visible, logits=logits
    )


DECODE_ODD = _workload("decode-odd", "decode", 3, 1, 77)
CHUNK_ODD = _workload("chunk-odd", "prefill-chunk", 2, 10, 31)
SCORING = _workload("score-prompt", "prefill", 2, 77, 77, "all")
FIRST_TOKEN = _workload("decode-first", "decode", 4, 1, 1)
VERIFY = _workload("verify-4", "prefill-chunk", 1, 4, 1000, "all")


_changed = Reference("phases").changed


def _record(new, visible, history, kept, saved, logits):
    return {
        "projected_rows": new,
        "rectangle": (new, visible),
        "history_rows": history,
        "kept_rows": kept,
        "retains_for_backward": saved,
        "logit_rows": logits,
    }


record = Exercise(
    "phase_record",
    points=3,
    minutes=10,
    lines=8,
    hints=(
        "Training and a fresh prompt have the same rectangle. What is left after the call differs.",
        "history_rows = visible_rows - new_rows: what was there before this call. A new prompt has none.",
        "kept_rows is 0 in training, else new_rows; logit_rows is new_rows if logits == 'all', else 1.",
    ),
    cases=(
        given(TRAIN_4K).gives(_record(4_096, 4_096, 0, 0, True, 4_096)),
        given(PREFILL_4K).gives(_record(4_096, 4_096, 0, 4_096, False, 1)),
        given(DECODE_32K).gives(_record(1, 32_768, 32_767, 1, False, 1)),
        given(TRAIN_ODD).gives(_record(56, 56, 0, 0, True, 56)),
        given(CHUNK_ODD).gives(_record(10, 31, 21, 10, False, 1)),
        given(SCORING).gives(_record(77, 77, 0, 77, False, 77)),
        given(FIRST_TOKEN).gives(_record(1, 1, 0, 1, False, 1)),
        given(VERIFY).gives(_record(4, 1_000, 996, 4, False, 4)),
    ),
    wrong=(
        Wrong(
            "history-is-visible",
            _changed("phase_record", lambda r, w: {"history_rows": w.visible_rows}),
            "The new rows are counted as history. They are visible to themselves, and no earlier call stored them.",
        ),
        Wrong(
            "training-as-prefill",
            _changed("phase_record", lambda r, w: {"kept_rows": w.new_rows, "retains_for_backward": False}),
            "Training is treated like a prompt. It keeps activations for the backward pass, and no cache.",
        ),
        Wrong(
            "all-logits",
            _changed("phase_record", lambda r, w: {"logit_rows": w.new_rows}),
            "Every new row has logits here. Whoever asks for the final row pays for one.",
        ),
        Wrong(
            "final-always",
            _changed("phase_record", lambda r, w: {"logit_rows": 1}),
            "One row of logits, always. Training and scoring need them all; the workload says which.",
        ),
        Wrong(
            "square-rectangle",
            _changed("phase_record", lambda r, w: {"rectangle": (w.new_rows, w.new_rows)}),
            "Your rectangle is square. New rows look at everything visible, the cached rows too.",
        ),
        Wrong(
            "cache-rewritten",
            _changed("phase_record", lambda r, w: {"kept_rows": r["kept_rows"] and w.visible_rows}),
            "The whole cache counts as new. A call appends its own rows and leaves the others alone.",
        ),
    ),
    shapes={
        "workload": (TRAIN_4K, PREFILL_4K, DECODE_32K, TRAIN_ODD, DECODE_ODD, CHUNK_ODD, SCORING, FIRST_TOKEN, VERIFY)
    },
)

rows_projected = Exercise(
    "projected_rows",
    points=2,
    minutes=8,
    lines=1,
    hints=(
        "Write down the calls for a prompt of 4 and 3 tokens. Which rows does each project, with a cache and without?",
        "With a cache: prompt rows, then one for each of tokens - 1 calls. Without: prompt, prompt + 1, prompt + 2, ...",
        "The second is tokens * prompt + tokens * (tokens - 1) // 2.",
    ),
    cases=(
        given(4, 3, True).gives(6),
        given(4, 3, False).gives(15),
        given(7, 5, True).gives(11),
        given(7, 5, False).gives(45),
        given(1_000, 200, True).gives(1_199),
        given(1_000, 200, False).gives(219_900),
        given(5, 1, True).gives(5),
        given(5, 1, False).gives(5),
        given(5, 1, 1).refuses("TYPE"),
        given(5, 0, True).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "last-token-fed-back",
            lambda prompt, tokens, cached: prompt + tokens
            if cached
            else (tokens + 1) * prompt + tokens * (tokens + 1) // 2,
            "One call too many. The last token comes out and goes into no further call.",
        ),
        Wrong(
            "last-call-only",
            lambda prompt, tokens, cached: prompt + tokens - 1,
            "Without a cache this is the last call alone. The earlier ones projected their rows too.",
        ),
        Wrong(
            "square",
            lambda prompt, tokens, cached: prompt + tokens - 1 if cached else (prompt + tokens - 1) ** 2,
            "Quadratic in the context: that is attention's pairs. Projections grow by one row a call.",
        ),
        Wrong(
            "prompt-forgotten",
            lambda prompt, tokens, cached: tokens - 1 if cached else tokens * (tokens - 1) // 2,
            "The prompt's own rows are missing.",
        ),
    ),
    shapes={"prompt": (1, 9, 512, 4096), "tokens": (1, 2, 31, 1000), "cached": (True, False)},
)


def _cache(both=2, sequences=None, layers=None, heads=None, width=None, bits=None, divisor=8):
    """The cache formula with a factor replaced; heads and width are functions of the manifest."""

    def model(arch, batch, rows, dtype="bf16"):
        count = both * (sequences or batch) * rows * (layers or arch.num_layers)
        count *= heads(arch) if heads else arch.num_key_value_heads
        count *= width(arch) if width else arch.head_dim
        return ceil_div(count * (bits or BITS[dtype]), divisor)

    return model


cache = Exercise(
    "cache_bytes",
    points=3,
    minutes=8,
    lines=1,
    hints=(
        "One row of one layer: K and V, each d_kv = H_kv * d_h values.",
        "Times rows, sequences, layers. BITS[dtype] // 8 is 0 for int4: multiply by the bits first, then divide.",
        "batch * rows * arch.num_layers * 2 * arch.d_kv * BITS[dtype] // 8.",
    ),
    cases=(
        given(RUNNING, 1, 4096).gives(536_870_912),
        given(RUNNING, 1, 32768).gives(4_294_967_296),
        given(RUNNING, 1, 1).gives(131_072),
        given(MHA, 1, 32768).gives(17_179_869_184),
        given(MQA, 1, 32768).gives(536_870_912),
        given(W_70B, 32, 8192).gives(85_899_345_920),
        given(W_70B_MHA, 32, 8192).gives(687_194_767_360),
        given(TOY, 1, 4).gives(128),
        given(ODD, 5, 56).gives(134_400),
        given(ODD, 3, 77, "fp8").gives(55_440),
        given(ODD, 1, 7, "int4").gives(840),
        given(WIDE_HEADS, 1, 1).gives(147_456),
        given(RUNNING, 1, 0).gives(0),
        given(RUNNING, 1, 4096.0).refuses("TYPE"),
        given(RUNNING, 1, -1).refuses("NEG"),
        given(RUNNING, 1, 1, "fp7").refuses("ENUM"),
    ),
    wrong=(
        Wrong(
            "mha-for-gqa",
            _cache(heads=lambda arch: arch.num_attention_heads),
            "This is multi-head attention's cache: you used the query heads. Only K/V heads are cached.",
        ),
        Wrong(
            "k-only",
            _cache(both=1),
            "Exactly half: a cache keeps K and V, two tensors in each layer.",
        ),
        Wrong("one-layer", _cache(layers=1), "Right for one layer. Every layer has a cache of its own."),
        Wrong("one-sequence", _cache(sequences=1), "One sequence's cache. Multiply by the batch."),
        Wrong(
            "one-head",
            _cache(heads=lambda arch: 1),
            "This is multi-query attention: one K/V head. The manifest declares how many there are.",
        ),
        Wrong(
            "head-width-from-d",
            _cache(width=lambda arch: arch.hidden_size // arch.num_attention_heads),
            "You took d / H_q for the width of a head. head_dim is declared, and need not be that.",
        ),
        Wrong(
            "d-for-every-head",
            _cache(width=lambda arch: arch.hidden_size),
            "Every head is as wide as the whole model here. A head has head_dim values.",
        ),
        Wrong("always-fp32", _cache(bits=32), "Four bytes a value, whatever dtype says. bf16 has two."),
        Wrong("always-bf16", _cache(bits=16), "Two bytes a value, whatever dtype says."),
        Wrong("bits-for-bytes", _cache(divisor=1), "Factor 8: these are bits."),
    ),
    shapes={
        "arch": (RUNNING, MHA, MQA, W_7B, W_70B, ODD, WIDE_HEADS, HALF_SLIDING),
        "batch": (1, 3, 32),
        "rows": (1, 77, 8192, 131072),
        "dtype": ("bf16", "fp8", "int4", "fp32"),
    },
)


def _window(change):
    return _changed("window_cache_bytes", change)


def _per_row(arch, batch, dtype="bf16"):
    return batch * 2 * arch.num_key_value_heads * arch.head_dim * BITS[dtype] // 8


window = Exercise(
    "window_cache_bytes",
    points=2,
    minutes=8,
    lines=4,
    hints=(
        "One row of one layer is cache_bytes(arch, batch, 1, dtype) // num_layers.",
        "Global layers keep `rows` rows, windowed ones min(rows, window). Refuse windowed_layers > num_layers first.",
    ),
    cases=(
        given(HALF_SLIDING, 1, 1, 128, 18).gives({"global": 36_864, "windowed": 36_864}),
        given(FIVE_GLOBAL, 1, 131072, 1536, 29, "fp16").gives({"global": 2_684_354_560, "windowed": 182_452_224}),
        given(ODD, 5, 56, 20, 2).gives({"global": 44_800, "windowed": 32_000}),
        given(ODD, 2, 31, 50, 1, "fp8").gives({"global": 9_920, "windowed": 4_960}),
        given(RUNNING, 1, 4096, 1024, 0).gives({"global": 536_870_912, "windowed": 0}),
        given(ODD, 1, 40, 40, 3).gives({"global": 0, "windowed": 19_200}),
        given(ODD, 5, 56, 20, 4).refuses("RANGE"),
    ),
    wrong=(
        Wrong(
            "windowed-left-out",
            _window(lambda r, *_: {"windowed": 0}),
            "The windowed layers are missing. They keep less, not nothing.",
        ),
        Wrong(
            "global-overwritten",
            _window(lambda r, *_: {"global": 0}),
            "Only the windowed layers are left. The two kinds of layers have two caches, and the large one is global.",
        ),
        Wrong(
            "all-windowed",
            _window(
                lambda r, arch, batch, rows, window, windowed, dtype: {
                    "global": (arch.num_layers - windowed) * min(rows, window) * _per_row(arch, batch, dtype)
                }
            ),
            "Every layer has the window. A global layer keeps all rows.",
        ),
        Wrong(
            "full-window-always",
            _window(
                lambda r, arch, batch, rows, window, windowed, dtype: {
                    "windowed": windowed * window * _per_row(arch, batch, dtype)
                }
            ),
            "A window that is not full yet holds only the rows there are: min(rows, window).",
        ),
        Wrong(
            "no-window",
            _window(
                lambda r, arch, batch, rows, window, windowed, dtype: {
                    "windowed": windowed * rows * _per_row(arch, batch, dtype)
                }
            ),
            "The windowed layers keep every row here. They drop all but the last `window`.",
        ),
    ),
    shapes={
        ("arch", "windowed_layers"): ((HALF_SLIDING, 18), (FIVE_GLOBAL, 29), (ODD, 1), (RUNNING, 24)),
        "batch": (1, 4),
        "rows": (1, 100, 5000, 131072),
        "window": (64, 1024),
        "dtype": ("bf16", "fp8"),
    },
)


def _vectors(arch, batch, rows):
    return batch * rows * arch.num_layers * 2 * arch.num_key_value_heads


def _metadata(groups, scale=None, each=None):
    """`groups` is a function of (head vectors, head width, group); scale and each replace what was declared."""

    def change(right, arch, batch, rows, dtype, group, scale_dtype, per_group):
        count = groups(_vectors(arch, batch, rows), arch.head_dim, group)
        return {"metadata": ceil_div(count * (each or per_group) * BITS[scale or scale_dtype], 8)}

    return _changed("quantized_cache_bytes", change)


def _within_heads(vectors, width, group):
    return vectors * ceil_div(width, group)


quantized = Exercise(
    "quantized_cache_bytes",
    points=3,
    minutes=12,
    lines=6,
    hints=(
        "The codes are a cache_bytes of another dtype.",
        "Head vectors: batch * rows * layers * 2 * H_kv. Each has ceil(head_dim / group) groups.",
        "metadata = groups * per_group * BITS[scale_dtype], in bytes, rounded up.",
    ),
    cases=(
        given(DEEP, 1, 32768, "int8", 32).gives({"codes": 4_294_967_296, "metadata": 268_435_456}),
        given(DEEP, 1, 32768, "int4", 32).gives({"codes": 2_147_483_648, "metadata": 268_435_456}),
        given(RUNNING, 1, 4096, "int4", 64, "fp16", 2).gives({"codes": 134_217_728, "metadata": 16_777_216}),
        given(ODD, 5, 56, "int4", 16).gives({"codes": 33_600, "metadata": 13_440}),
        given(ODD, 3, 77, "fp8", 20, "fp32").gives({"codes": 55_440, "metadata": 11_088}),
        given(ODD, 2, 31, "int4", 7, "bf16", 2).gives({"codes": 7_440, "metadata": 8_928}),
        given(TOY, 1, 4, "int8", 32).gives({"codes": 64, "metadata": 64}),
        given(ODD, 1, 1, "int8", 0).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "codes-only",
            _changed("quantized_cache_bytes", lambda r, *_: {"metadata": 0}),
            "The scales are missing. Codes without them cannot be read back.",
        ),
        Wrong(
            "groups-across-heads",
            _metadata(lambda vectors, width, group: ceil_div(vectors * width, group)),
            "Your groups run on from one head into the next. They end with the head, and the last one may be short.",
        ),
        Wrong(
            "one-scale-per-head",
            _metadata(lambda vectors, width, group: vectors),
            "One group for each head vector. A head is cut into groups of at most `group` values.",
        ),
        Wrong(
            "short-group-dropped",
            _metadata(lambda vectors, width, group: vectors * (width // group)),
            "The short last group of a head has no scale here. Round up.",
        ),
        Wrong("always-fp32", _metadata(_within_heads, scale="fp32"), "The scales are fp32 here. scale_dtype declares them."),
        Wrong(
            "zero-point-forgotten",
            _metadata(_within_heads, each=1),
            "One value per group, always. per_group = 2 stands for a scale and a zero point.",
        ),
    ),
    shapes={
        "arch": (RUNNING, DEEP, ODD, TOY, WIDE_HEADS),
        "batch": (1, 3),
        "rows": (1, 77, 4096),
        "dtype": ("int8", "int4", "fp8"),
        "group": (7, 16, 32, 128),
        ("scale_dtype", "per_group"): (("fp16", 1), ("bf16", 2), ("fp32", 1)),
    },
)


def _latent(change):
    return _changed("latent_cache_bytes", change)


latent = Exercise(
    "latent_cache_bytes",
    points=2,
    minutes=8,
    lines=6,
    hints=(
        "Slots: batch * rows * num_layers. A slot holds the latent, the rotary key and the scales, nothing per head.",
        "The latent is `dtype`, the rotary part bf16, a scale fp32. An odd int4 latent rounds up to a whole byte in all.",
    ),
    cases=(
        given(LATENT, 1, 1, 512, 64).gives({"latent": 62_464, "rope": 7_808, "scales": 0}),
        given(LATENT, 1, 1, 512, 64, "fp8", 4).gives({"latent": 31_232, "rope": 7_808, "scales": 976}),
        given(LATENT, 2, 1000, 512, 64).gives({"latent": 124_928_000, "rope": 15_616_000, "scales": 0}),
        given(ODD, 5, 56, 30, 8).gives({"latent": 50_400, "rope": 13_440, "scales": 0}),
        given(ODD, 3, 77, 31, 6, "int4", 1).gives({"latent": 10_742, "rope": 8_316, "scales": 2_772}),
        given(TOY, 1, 4, 5, 0).gives({"latent": 80, "rope": 0, "scales": 0}),
        given(TOY, 1, 4, 0, 1).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "k-and-v",
            _latent(lambda r, *_: {"latent": 2 * r["latent"]}),
            "Twice the latent. K and V are both computed from one, so it is stored once.",
        ),
        Wrong(
            "per-head",
            _latent(lambda r, arch, *_: {n: r[n] * arch.num_key_value_heads for n in r}),
            "A latent for every head. All heads share it: there is no head count in this formula.",
        ),
        Wrong(
            "plain-formula",
            _latent(lambda r, arch, batch, rows, *_: {"latent": _cache()(arch, batch, rows), "rope": 0, "scales": 0}),
            "This is the formula for stored K and V heads. Such a model stores neither.",
        ),
        Wrong(
            "rope-forgotten",
            _latent(lambda r, *_: {"rope": 0}),
            "The rotary part of the key is missing. It cannot be folded into the latent and is cached beside it.",
        ),
        Wrong(
            "rope-quantized",
            _latent(
                lambda r, arch, batch, rows, latent, rope, dtype, scales: {
                    "rope": ceil_div(batch * rows * arch.num_layers * rope * BITS[dtype], 8)
                }
            ),
            "The rotary part has the latent's dtype. It stays bf16.",
        ),
        Wrong(
            "scales-forgotten",
            _latent(lambda r, *_: {"scales": 0}),
            "The scales of a quantized latent are missing.",
        ),
    ),
    shapes={
        "arch": (LATENT, ODD, RUNNING),
        "batch": (1, 5),
        "rows": (1, 77, 4096),
        ("latent", "rope"): ((512, 64), (31, 6), (256, 32)),
        ("dtype", "scales"): (("bf16", 0), ("fp8", 4), ("int4", 1)),
    },
)


def _paged(held, layers=None):
    """`held` is the rows allocated, a function of (lengths, page)."""

    def model(arch, lengths, page, dtype="bf16"):
        row = (layers or arch.num_layers) * _per_row(arch, 1, dtype)
        return {"logical": sum(lengths) * row, "unused": (held(lengths, page) - sum(lengths)) * row}

    return model


def _pages(lengths, page):
    return sum(ceil_div(n, page) * page for n in lengths)


paged = Exercise(
    "paged_bytes",
    points=3,
    minutes=10,
    lines=3,
    hints=(
        "Round every sequence up to whole pages, then add. The other order lets two sequences share a page.",
        "allocated = sum(ceil_div(n, page) * page for n in lengths); both rows are cache_bytes(arch, 1, ..., dtype).",
    ),
    cases=(
        given(RUNNING, (4096,), 16).gives({"logical": 536_870_912, "unused": 0}),
        given(RUNNING, (1000, 17), 16).gives({"logical": 133_300_224, "unused": 3_014_656}),
        given(ODD, (56, 31, 1), 20).gives({"logical": 42_240, "unused": 15_360}),
        given(ODD, (77,), 64, "fp8").gives({"logical": 18_480, "unused": 12_240}),
        given(TOY, (0, 5), 8).gives({"logical": 160, "unused": 96}),
        given(TOY, (), 8).gives({"logical": 0, "unused": 0}),
        given(TOY, (5,), 0).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "sum-rounded",
            _paged(lambda lengths, page: ceil_div(sum(lengths), page) * page),
            "You rounded the sum. Each sequence has a last page of its own.",
        ),
        Wrong(
            "one-page-more",
            _paged(lambda lengths, page: sum((n // page + 1) * page for n in lengths)),
            "A full last page needs no page more: round up, do not add one.",
        ),
        Wrong(
            "rounded-down",
            _paged(lambda lengths, page: sum(n // page * page for n in lengths)),
            "Rounded down: the last rows of a sequence have no page.",
        ),
        Wrong(
            "padded-to-longest",
            _paged(lambda lengths, page: len(lengths) * _pages((max(lengths, default=0),), page)),
            "Every sequence got as many pages as the longest. Paging is there to avoid exactly that.",
        ),
        Wrong("one-layer", _paged(_pages, layers=1), "A page's bytes in one layer. Every layer has such a page."),
    ),
    shapes={
        "arch": (RUNNING, ODD, TOY, W_70B),
        "lengths": ((1, 2, 3), (4095, 4096, 4097), (77,), (1000, 31, 0, 560)),
        "page": (1, 16, 64, 100),
        "dtype": ("bf16", "fp8"),
    },
)


def _attention(
    flops=lambda B, Hq, Hkv, Sq, Sk, dh: 4 * B * Hq * Sq * Sk * dh,
    values=lambda B, Hq, Hkv, Sq, Sk, dh: 2 * B * Hkv * Sk * dh,
):
    def model(B, Hq, Hkv, Sq, Sk, dh, dtype="bf16"):
        work, moved = flops(B, Hq, Hkv, Sq, Sk, dh), values(B, Hq, Hkv, Sq, Sk, dh) * BITS[dtype] // 8
        return {"flops": work, "kv_bytes": moved, "intensity": Fraction(work, moved)}

    return model


def _ratio(flops, kv_bytes):
    return {"flops": flops, "kv_bytes": kv_bytes, "intensity": Fraction(flops, kv_bytes)}


rectangle = Exercise(
    "rectangular_attention",
    points=3,
    minutes=10,
    lines=4,
    hints=(
        "Two products of 2 FLOPs per term: 4 * B * Hq * Sq * Sk * dh in all.",
        "K and V are [B, Hkv, Sk, dh]; how many query rows look at them does not occur.",
        "require_divides(Hkv, Hq, 'Hkv', 'Hq') first; intensity = Fraction(flops, kv_bytes).",
    ),
    cases=(
        given(1, 32, 8, 1, 32768, 128).gives(_ratio(536_870_912, 134_217_728)),
        given(1, 32, 32, 1, 32768, 128).gives(_ratio(536_870_912, 536_870_912)),
        given(1, 32, 1, 1, 32768, 128).gives(_ratio(536_870_912, 16_777_216)),
        given(1, 32, 8, 1, 4096, 128).gives(_ratio(67_108_864, 16_777_216)),
        given(1, 4, 2, 4, 4, 2).gives(_ratio(512, 64)),
        given(5, 6, 2, 56, 56, 20).gives(_ratio(7_526_400, 44_800)),
        given(2, 6, 2, 10, 31, 20, "fp8").gives(_ratio(297_600, 4_960)),
        given(3, 6, 2, 1, 77, 20, "int4").gives(_ratio(110_880, 9_240)),
        given(1, 32, 7, 1, 32768, 128).refuses("DIVIS"),
        given(1, 32, 8, 1, 0, 128).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "mha-for-gqa",
            _attention(values=lambda B, Hq, Hkv, Sq, Sk, dh: 2 * B * Hq * Sk * dh),
            "K and V are read once for every query head. One read serves the whole group.",
        ),
        Wrong(
            "one-product",
            _attention(flops=lambda B, Hq, Hkv, Sq, Sk, dh: 2 * B * Hq * Sq * Sk * dh),
            "Half the FLOPs: QK^T or PV is missing, or multiply-adds were counted as one.",
        ),
        Wrong(
            "k-only",
            _attention(values=lambda B, Hq, Hkv, Sq, Sk, dh: B * Hkv * Sk * dh),
            "Half the bytes: V is read as well as K.",
        ),
        Wrong(
            "context-free",
            _attention(
                lambda B, Hq, Hkv, Sq, Sk, dh: 4 * B * Hq * Sq * dh, lambda B, Hq, Hkv, Sq, Sk, dh: 2 * B * Hkv * dh
            ),
            "S_k is gone. It cancels from the ratio; FLOPs and bytes each grow with it.",
        ),
        Wrong(
            "square",
            _attention(
                lambda B, Hq, Hkv, Sq, Sk, dh: 4 * B * Hq * Sq * Sq * dh,
                lambda B, Hq, Hkv, Sq, Sk, dh: 2 * B * Hkv * Sq * dh,
            ),
            "You used S_q for S_k. In decode one query row meets the whole history.",
        ),
        Wrong(
            "kv-heads-in-flops",
            _attention(flops=lambda B, Hq, Hkv, Sq, Sk, dh: 4 * B * Hkv * Sq * Sk * dh),
            "The work has K/V heads. Every query head makes its own scores: sharing saves bytes, not FLOPs.",
        ),
    ),
    shapes={
        "B": (1, 3, 16),
        ("Hq", "Hkv"): ((32, 8), (6, 2), (64, 1), (12, 12)),
        "Sq": (1, 4, 56),
        "Sk": (77, 4096, 32768),
        "dh": (20, 128),
        "dtype": ("bf16", "fp8"),
    },
)

KV_8K = 2_684_354_560  # 80 layers, 8 K/V heads, 8,192 rows
intensity = Exercise(
    "decode_intensity",
    points=3,
    minutes=8,
    lines=1,
    hints=(
        "Which of the two, weights and cache, do the requests of a batch share?",
        "FLOPs: batch * (2 * used + attention_flops). Bytes: 2 * used once, batch * kv_bytes.",
    ),
    cases=(
        given(PRE, KV_8K, 1).gives(Fraction(13_671_875, 13_934_019)),
        given(PRE, KV_8K, 8).gives(Fraction(109_375_000, 15_769_027)),
        given(PRE, KV_8K, 64).gives(Fraction(875_000_000, 30_449_091)),
        given(PRE, KV_8K, 256).gives(Fraction(3_500_000_000, 80_780_739)),
        given(PRE, KV_8K, 256, 21_474_836_480).gives(Fraction(256 * 161_474_836_480, 827_194_767_360)),
        given(1_000, 7, 3, 11).gives(Fraction(6_033, 2_021)),
        given(5, 0, 4).gives(Fraction(4)),
        given(0, 7, 4).refuses("NONPOS"),
        given(70e9, 7, 4).refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "one-cache-for-all",
            lambda used, kv_bytes, batch, attention_flops=0: Fraction(
                batch * (2 * used + attention_flops), 2 * used + kv_bytes
            ),
            "One request's cache for the whole batch. Weights are shared, caches are not.",
        ),
        Wrong(
            "weights-per-request",
            lambda used, kv_bytes, batch, attention_flops=0: Fraction(2 * used + attention_flops, 2 * used + kv_bytes),
            "The weights are read once for every request. A batch shares that read: that is what batching is for.",
        ),
        Wrong(
            "no-cache",
            lambda used, kv_bytes, batch, attention_flops=0: Fraction(batch * (2 * used + attention_flops), 2 * used),
            "The cache is missing from the bytes, and intensity grows without end. It saturates.",
        ),
        Wrong(
            "macs",
            lambda used, kv_bytes, batch, attention_flops=0: Fraction(
                batch * (used + attention_flops), 2 * used + batch * kv_bytes
            ),
            "One operation per parameter. A multiply-add is 2 FLOPs.",
        ),
        Wrong(
            "attention-once",
            lambda used, kv_bytes, batch, attention_flops=0: Fraction(
                2 * used * batch + attention_flops, 2 * used + batch * kv_bytes
            ),
            "attention_flops are one request's: every request attends to its own history.",
        ),
        Wrong(
            "attention-forgotten",
            lambda used, kv_bytes, batch, attention_flops=0: Fraction(2 * used * batch, 2 * used + batch * kv_bytes),
            "attention_flops are not in. They grow with the context: at 8,192 rows they add 15 % to a 70B model's step.",
        ),
    ),
    shapes={
        "used": (PRE, 7_504_658_432, 12_345),
        "kv_bytes": (KV_8K, 131_072, 77),
        "batch": (1, 2, 100, 458),
        "attention_flops": (0, 21_474_836_480, 33),
    },
)

context = Exercise(
    "ridge_context",
    points=2,
    minutes=10,
    lines=1,
    hints=(
        "As the batch grows, the weights' bytes vanish beside the caches: the limit is 2 * used / (rows * bytes_per_row).",
        "The limit is never reached, so it must lie above the ridge: rows < 2 * used / (ridge * bytes_per_row).",
        "The largest integer below x is ceil(x) - 1; ceil_div takes a Fraction as its second argument.",
    ),
    cases=(
        given(PRE, 327_680, RIDGE).gives(1_445),
        given(PRE, 2_621_440, RIDGE).gives(180),
        given(7_504_658_432, 131_072, RIDGE).gives(387),
        given(600, 10, 4).gives(29),
        given(601, 10, 4).gives(30),
        given(50, 10, 4).gives(2),
        given(10, 10, 2).gives(0),
        given(10, 10, 0).refuses("NONPOS"),
        given(10, 10, 295.5).refuses("TYPE"),
    ),
    wrong=(
        Wrong(
            "at-the-ridge",
            lambda used, bytes_per_row, ridge: 2 * used // (ridge * bytes_per_row),
            "At this length the limit equals the ridge, and no finite batch reaches a limit.",
        ),
        Wrong(
            "rounded-up",
            lambda used, bytes_per_row, ridge: ceil_div(2 * used, ridge * bytes_per_row),
            "Rounded up: one row too many, and the limit falls below the ridge.",
        ),
        Wrong(
            "ridge-cut-off",
            lambda used, bytes_per_row, ridge: ceil_div(2 * used, ridge // 1 * bytes_per_row) - 1,
            "The ridge lost its fraction, 295 for 295.52. Keep it exact.",
        ),
        Wrong(
            "macs",
            lambda used, bytes_per_row, ridge: ceil_div(used, ridge * bytes_per_row) - 1,
            "Half: a token costs 2 FLOPs per used parameter.",
        ),
    ),
    shapes={
        "used": (PRE, 7_504_658_432, 10**12),
        "bytes_per_row": (327_680, 131_072, 4_096),
        "ridge": (RIDGE, Fraction(312_000, 2_039), 240),
    },
)


def _batch(ceil=ceil_div, guard=True, cost=lambda ridge, kv: ridge * kv):
    def model(used, kv_bytes, ridge):
        spare = 2 * used - cost(ridge, kv_bytes)
        return ceil(2 * used * ridge, spare) if spare > 0 or (spare and not guard) else 0

    return model


crossing = Exercise(
    "ridge_batch",
    points=2,
    minutes=10,
    lines=2,
    hints=(
        "Solve batch * 2 * used >= ridge * (2 * used + batch * kv_bytes) for batch.",
        "spare = 2 * used - ridge * kv_bytes is what each request adds beyond its own bytes. Not positive: 0.",
        "ceil_div(2 * used * ridge, spare).",
    ),
    cases=(
        given(PRE, 167_772_160, RIDGE).gives(458),
        given(PRE, 473_497_600, RIDGE).gives(583_884),
        given(PRE, 473_825_280, RIDGE).gives(0),
        given(PRE, KV_8K, RIDGE).gives(0),
        given(600, 10, 4).gives(5),
        given(600, 300, 4).gives(0),
        given(5, 0, 3).gives(3),
        given(100, 20, 7).gives(24),
        given(0, 20, 7).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "rounded-down",
            _batch(lambda a, b: int(a // b)),
            "Rounded down: at this batch the intensity is still below the ridge.",
        ),
        Wrong(
            "negative-batch",
            _batch(guard=False),
            "A negative batch says that no batch reaches the ridge: 0.",
        ),
        Wrong(
            "cache-ignored",
            _batch(cost=lambda ridge, kv: 0),
            "The caches are left out. Each request brings bytes of its own, and so needs more company.",
        ),
        Wrong(
            "cache-without-ridge",
            _batch(cost=lambda ridge, kv: kv),
            "The cache's bytes must be matched with `ridge` FLOPs each, not one.",
        ),
    ),
    shapes={
        "used": (PRE, 7_504_658_432, 10**12),
        "kv_bytes": (0, 131_072 * 100, 167_772_160, KV_8K),
        "ridge": (RIDGE, Fraction(312_000, 2_039), 240),
    },
)


def _fit(free, each=None):
    """`free` is the bytes left for caches; `each` the bytes of one request, else its cache."""

    def model(arch, lengths, memory_bytes, weight_bytes, workspace_bytes=0, dtype="bf16"):
        kv = each or (lambda arch, n, dtype, weights: _cache()(arch, 1, n, dtype))
        left = max(0, free(memory_bytes, weight_bytes, workspace_bytes))
        return tuple(left // kv(arch, n, dtype, weight_bytes) for n in lengths)

    return model


def _left(memory, weights, workspace):
    return memory - weights - workspace


NODE = (640 * 10**9, 140 * 10**9, 10 * 10**9)  # eight H100, 70B parameters in bf16, workspace
capacity = Exercise(
    "batch_capacity",
    points=2,
    minutes=6,
    lines=6,
    hints=(
        "napkin.max_concurrent_requests does the division; cache_bytes(arch, 1, length, dtype) is one request.",
        "tuple(... for length in lengths), in the order they come.",
    ),
    cases=(
        given(W_70B, (8192,), *NODE).gives((182,)),
        given(W_70B_MHA, (8192,), *NODE).gives((22,)),
        given(W_70B, (512, 1445, 8192, 131072), *NODE).gives((2_920, 1_034, 182, 11)),
        given(ODD, (56, 31), 100_000, 30_000, 5_000).gives((2, 4)),
        given(ODD, (56, 31), 100_000, 30_000, 5_000, "fp8").gives((4, 8)),
        given(RUNNING, (4096,), 80 * 10**9, 16_060_522_496, 0, "int4").gives((476,)),
        given(ODD, (56, 31), 10, 20).gives((0, 0)),
        given(ODD, (), 100_000, 30_000).gives(()),
        given(ODD, (0,), 100_000, 30_000).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "mha-for-gqa",
            _fit(_left, lambda arch, n, dtype, _: _cache(heads=lambda a: a.num_attention_heads)(arch, 1, n, dtype)),
            "Caches of multi-head attention: fewer fit. Only the K/V heads are cached.",
        ),
        Wrong(
            "workspace-forgotten",
            _fit(lambda memory, weights, workspace: memory - weights),
            "The workspace is missing. What kernels need to run is not there for caches.",
        ),
        Wrong(
            "weights-forgotten",
            _fit(lambda memory, weights, workspace: memory - workspace),
            "The weights are missing. They sit in the same memory.",
        ),
        Wrong(
            "weights-per-request",
            _fit(
                lambda memory, weights, workspace: memory - workspace,
                lambda arch, n, dtype, weights: _cache()(arch, 1, n, dtype) + weights,
            ),
            "Every request has weights of its own. They are loaded once for all.",
        ),
        Wrong(
            "always-bf16",
            _fit(_left, lambda arch, n, dtype, _: _cache()(arch, 1, n, "fp32") // 2),
            "bf16 caches, whatever dtype says.",
        ),
    ),
    shapes={
        "arch": (W_70B, W_70B_MHA, RUNNING, WIDE_HEADS),
        "lengths": ((1, 4096), (131072, 77), (8192,)),
        ("memory_bytes", "weight_bytes", "workspace_bytes"): (NODE, (80 * 10**9, 16_060_522_496, 0), (10**9, 2 * 10**9, 0)),
        "dtype": ("bf16", "fp8"),
    },
)


def _stored_as_traffic(fault):
    from costlib import phases

    stored = phases.cache_bytes(RUNNING, 1, PREFILL_4K.visible_rows)
    read = phases.cache_bytes(RUNNING, 1, phases.phase_record(PREFILL_4K)["history_rows"])
    said = stored if fault else read
    return f"a prompt's cache stores {stored:,} B; called its traffic, but the call reads {read:,} B of it" * (said != read)


def _schedule_as_measurement(fault):
    from costlib import traffic

    rows = traffic.online_attention(RUNNING, DECODE_32K)
    counter = traffic.payload(tuple(row.replace(multiplicity=4) if row.name in "KV" else row for row in rows)).total
    predicted = counter if fault else traffic.payload(rows).total
    scheduled = traffic.payload(rows).total
    if predicted == scheduled:
        return ""
    return f"prediction {predicted:,} B is not the sum of its rows, {scheduled:,} B: the counter was written over it"


def _one_row_is_bandwidth_bound(fault):
    from costlib import phases, traffic

    shared = phases.rectangular_attention(1, 128, 1, 1, 4096, 576, "fp8")["intensity"]
    below = {name: fault or shared < traffic.ridge(c) for name, c in CHIPS.items()}
    wrong = [name for name in CHIPS if below[name] != (shared < traffic.ridge(chip(name)))]
    said = (f"{name}, whose ridge is {fixed(traffic.ridge(chip(name)), 2)}" for name in wrong)
    return f"S_q = 1 with {shared} FLOP/B is called bandwidth-bound on {' and '.join(said)}" if wrong else ""


def _limit_outside_its_regime(fault):
    from costlib import traffic

    one = traffic.row_amortization(4096, 4096, 4096, "bf16")
    said = one["limit" if fault else "intensity"]
    rows = traffic.isolated_gemm(4096, 4096, 4096, "bf16", "bf16", "bf16", "prefill")
    exact = traffic.intensity(2 * 4096**3, rows, HBM)
    return f"{said} FLOP/B by 2m/b, and {exact} by the rows of X, W and Y" if said != exact else ""


def _kernel_interior(fault):
    from costlib import traffic

    rows = traffic.online_attention(RUNNING, PREFILL_4K)
    tile = Transfer(name="S tile", elements=128 * 128, dtype="fp32", direction="write", phase="prefill", boundary="on-chip")
    try:
        traffic.payload((*rows, *((tile,) if fault else ())))
    except ManifestError as refused:
        return str(refused)
    return ""


def _capacity_from_payload(fault):
    from costlib import phases

    memory, length, page = 100 * 10**9, 1000, 64
    each = phases.cache_bytes(RUNNING, 1, length) if fault else phases.paged_bytes(RUNNING, (length,), page).total
    admitted = memory // each
    needed = phases.paged_bytes(RUNNING, (length,) * admitted, page).total
    return f"{admitted:,} requests admitted; their pages take {needed:,} B of {memory:,} B" if needed > memory else ""


FAILURES = (
    Failure(
        "a cache's stored bytes called memory traffic",
        "traffic is what a call reads and writes, row by row, across a named boundary",
        check=_stored_as_traffic,
    ),
    Failure(
        "a one-pass payload and a counter in one number",
        "the prediction stays the sum of its rows; a measurement stands beside it",
        check=_schedule_as_measurement,
    ),
    Failure(
        "every one-row operator called bandwidth-bound",
        "an intensity is low or high against a named chip's ridge; the kernel is measured",
        check=_one_row_is_bandwidth_bound,
    ),
    Failure(
        "2m/b used where m is as large as k and n",
        "the exact one-pass intensity has three terms below; the limit names its regime",
        check=_limit_outside_its_regime,
    ),
    Failure(
        "a multi-head cache for a grouped model",
        "stored K/V axes come from the manifest: H_kv heads of d_h",
        wrong=("cache_bytes", "mha-for-gqa"),
    ),
    Failure(
        "context called free because it cancels",
        "S_k leaves the ratio; FLOPs and bytes are each linear in it",
        wrong=("rectangular_attention", "context-free"),
    ),
    Failure(
        "training and prefill as one kind of call",
        "one keeps activations, the other K/V rows",
        wrong=("phase_record", "training-as-prefill"),
    ),
    Failure(
        "all prompt rows projected to logits for one next token",
        "logit rows are part of the workload",
        wrong=("phase_record", "all-logits"),
    ),
    Failure(
        "a kernel's inner tiles entered among the transfers",
        "this ledger ends at one boundary; what happens on chip belongs to the kernel",
        check=_kernel_interior,
    ),
    Failure(
        "serving capacity promised from cache bytes",
        "allocation, by pages at least, decides what fits",
        check=_capacity_from_payload,
    ),
)

LAB = Lab(
    "10",
    "Phases and the cache",
    "phases",
    (
        record,
        rows_projected,
        cache,
        window,
        quantized,
        latent,
        paged,
        rectangle,
        intensity,
        context,
        crossing,
        capacity,
    ),
    FAILURES,
)
