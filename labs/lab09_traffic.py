"""Lab 09: the transfer ledger of M 0x08, from one crossing to the roofline."""

from fractions import Fraction

from costlib.domain import require
from costlib.fixtures import DECODE_32K, ODD, PREFILL_4K, RUNNING, TOY, TRAIN_4K, TRAIN_ODD, W_7B
from costlib.hardware import CHIPS
from costlib.policies import BITS, HBM, Transfer
from costlib.records import Workload
from costlib.units import ceil_div
from labs.spec import Exercise, Lab, Wrong, given

MHA = RUNNING.replace(manifest_id="8b-mha", num_key_value_heads=32)
MQA = RUNNING.replace(manifest_id="8b-mqa", num_key_value_heads=1)
L2 = "L2 <-> SM"


def _workload(name, phase, batch, new, visible):
    return Workload(
        workload_id=name, phase=phase, batch_size=batch, new_rows=new, visible_rows=visible, logits="final"
    )


TINY = _workload("prefill-4", "prefill", 1, 4, 4)
DECODE_4K = _workload("decode-visible-4k", "decode", 1, 1, 4096)
DECODE_ODD = _workload("decode-odd", "decode", 3, 1, 77)
CHUNK_ODD = _workload("chunk-odd", "prefill-chunk", 2, 10, 31)
WORK = (TINY, PREFILL_4K, DECODE_4K, DECODE_32K, TRAIN_ODD, DECODE_ODD, CHUNK_ODD)


def _row(name, direction, elements, dtype="bf16", times=1, phase="decode", boundary=HBM):
    return Transfer(
        name=name,
        direction=direction,
        elements=elements,
        dtype=dtype,
        multiplicity=times,
        phase=phase,
        boundary=boundary,
    )


def _eight(phase, q, k, s, act="bf16", cache="bf16"):
    """The rows of a materialized layer from three element counts, each worked out by hand."""
    order = (("Q", "read", q, act), ("K", "read", k, cache), ("S", "write", s, act), ("S", "read", s, act))
    order += (("P", "write", s, act), ("P", "read", s, act), ("V", "read", k, cache), ("O", "write", q, act))
    return tuple(_row(*part, phase=phase) for part in order)


def _five(phase, q, k, passes, statistics, act="bf16", cache="bf16"):
    order = (("Q", "read", q, act), ("K", "read", k, cache, passes), ("V", "read", k, cache, passes))
    order += (("O", "write", q, act), ("statistics", "write", statistics, "fp32"))
    return tuple(_row(*part, phase=phase) for part in order)


def _bytes(row):
    return ceil_div(row.elements * BITS[row.dtype], 8) * row.multiplicity


def _summed(each=_bytes, key=lambda row: f"{row.name}.{row.direction}", join=lambda old, new: old + new):
    def model(transfers):
        rows = {}
        for row in transfers:
            rows[key(row)] = join(rows.get(key(row), 0), each(row))
        return rows

    return model


NIBBLES = (  # eleven int4 codes three times are 6 B three times; their scales; seven codes more
    _row("W", "read", 11, "int4", 3),
    _row("scales", "read", 3, "fp16", 2),
    _row("W", "read", 7, "int4"),
)
payload = Exercise(
    "payload",
    points=3,
    minutes=12,
    lines=6,
    hints=(
        "One crossing: elements times BITS[dtype], divided by 8, rounded up. `costlib.units.ceil_div` rounds up exactly.",
        "Multiply by the multiplicity after rounding: every crossing moves whole bytes.",
        "Refuse first: more than one value in {row.boundary for row in transfers}. Then add into a dict, "
        "rows[name] = rows.get(name, 0) + bytes.",
    ),
    cases=(
        given(_eight("prefill", 32, 16, 64)).gives(
            {
                "Q.read": 64,
                "K.read": 32,
                "S.write": 128,
                "S.read": 128,
                "P.write": 128,
                "P.read": 128,
                "V.read": 32,
                "O.write": 64,
            }
        ),
        given(NIBBLES).gives({"W.read": 22, "scales.read": 12}),
        given((_row("W", "read", 13, "int4", 5), _row("Y", "write", 9, "fp32"))).gives({"W.read": 35, "Y.write": 36}),
        given((_row("K", "read", 77, "fp8"), _row("K", "write", 1), _row("K", "read", 77, "fp8", 4))).gives(
            {"K.read": 385, "K.write": 2}
        ),
        given((_row("q_proj.weight", "read", 16_777_216, times=0),)).gives({"q_proj.weight.read": 0}),
        given(()).gives({}),
        given((_row("X", "read", 5), _row("X", "read", 5, boundary=L2))).refuses("INCONSISTENT"),
    ),
    wrong=(
        Wrong(
            "bits-for-bytes",
            _summed(lambda row: row.elements * BITS[row.dtype] * row.multiplicity),
            "These are bits. BITS[dtype] is eight times the bytes of one value.",
        ),
        Wrong(
            "two-bytes-always",
            _summed(lambda row: row.elements * 2 * row.multiplicity),
            "Two bytes for every value. The width belongs to the row: fp32 has 4, int4 half of one.",
        ),
        Wrong(
            "once-only",
            _summed(lambda row: ceil_div(row.elements * BITS[row.dtype], 8)),
            "Every row counted once. `multiplicity` says how often this schedule moves it.",
        ),
        Wrong(
            "last-row-wins",
            _summed(join=lambda old, new: new),
            "A second row of the same name and direction replaced the first. They add up.",
        ),
        Wrong(
            "directions-merged",
            _summed(key=lambda row: row.name),
            "Reads and writes of a tensor became one row. They stay apart: the name is name.direction.",
        ),
        Wrong(
            "rounded-down",
            _summed(lambda row: row.elements * BITS[row.dtype] // 8 * row.multiplicity),
            "Half a byte was dropped. An odd number of int4 codes still takes its last byte.",
        ),
        Wrong(
            "rounded-late",
            _summed(lambda row: ceil_div(row.elements * BITS[row.dtype] * row.multiplicity, 8)),
            "Two half bytes of two crossings became one byte. Round each crossing, then multiply.",
        ),
    ),
    shapes={
        "transfers": (
            NIBBLES,
            _eight("training", 33_600, 11_200, 94_080),
            _five("training", 33_600, 11_200, 4, 1_680),
            (_row("W", "read", 24_001, "int4", 7), _row("W", "read", 751, "fp16", 7)),
            (_row("X", "read", 9, "fp32"), _row("X", "write", 9, "int8"), _row("X", "read", 5, "int4")),
        )
    },
)


def _elements(change):
    """The reference's rows, some with other elements; change(arch, workload) is {name: elements}."""

    def model(arch, workload, *dtypes, **named):
        from solutions import traffic

        rows, other = traffic.materialized_attention(arch, workload, *dtypes, **named), change(arch, workload)
        return tuple(row.replace(elements=other.get(row.name, row.elements)) for row in rows)

    return model


def _materialized(change):
    def model(*args, **kwargs):
        from solutions import traffic

        return tuple(change(traffic.materialized_attention(*args, **kwargs)))

    return model


def _online(change):
    """The online schedule's rows with a mistake in them; change(rows, arch, workload, passes, statistics)."""

    def model(arch, workload, activation_dtype="bf16", cache_dtype="bf16", passes=1, statistics=0):
        from solutions import traffic

        answer = traffic.online_attention(arch, workload, activation_dtype, cache_dtype, passes, statistics)
        rows = {row.name: row for row in answer}
        rows |= change(rows, arch, workload, passes, statistics)
        return tuple(row for row in rows.values() if row)

    return model


def _scores(arch, w, heads=None, visible=None, batch=None):
    heads, visible, batch = heads or arch.num_attention_heads, visible or w.visible_rows, batch or w.batch_size
    return dict.fromkeys("SP", batch * heads * w.new_rows * visible)


def _legal(arch, w):
    seen = sum(range(w.visible_rows - w.new_rows + 1, w.visible_rows + 1))
    return dict.fromkeys("SP", w.batch_size * arch.num_attention_heads * seen)


def _wide_keys(arch, w):
    return dict.fromkeys("KV", w.batch_size * w.visible_rows * arch.d_q)


materialized = Exercise(
    "materialized_attention",
    points=4,
    minutes=15,
    lines=9,
    hints=(
        "Three element counts are enough: of Q (and O), of K (and V), of S (and P).",
        "Q: B * S_q * d_q. K: B * S_k * d_kv. S: B * H_q * S_q * S_k. S_q is new_rows, S_k is visible_rows.",
        "size = {'Q': ..., 'K': ...}, then walk over ('Q read', 'K read', 'S write', ...) and build "
        "Transfer(name=..., elements=size[name], dtype=..., direction=..., phase=workload.phase).",
    ),
    cases=(
        given(TOY, TINY).gives(_eight("prefill", 32, 16, 64)),
        given(RUNNING, PREFILL_4K).gives(_eight("prefill", 16_777_216, 4_194_304, 536_870_912)),
        given(MHA, PREFILL_4K).gives(_eight("prefill", 16_777_216, 16_777_216, 536_870_912)),
        given(RUNNING, DECODE_32K).gives(_eight("decode", 4_096, 33_554_432, 1_048_576)),
        given(ODD, TRAIN_ODD).gives(_eight("training", 33_600, 11_200, 94_080)),
        given(ODD, CHUNK_ODD).gives(_eight("prefill-chunk", 2_400, 2_480, 3_720)),
        given(ODD, DECODE_ODD, cache_dtype="fp8").gives(_eight("decode", 360, 9_240, 1_386, cache="fp8")),
        given(RUNNING, DECODE_4K, "fp32", "int8").gives(_eight("decode", 4_096, 4_194_304, 131_072, "fp32", "int8")),
        given(RUNNING, DECODE_4K, "fp31").refuses("ENUM"),
    ),
    wrong=(
        Wrong(
            "mha-for-gqa",
            _elements(_wide_keys),
            "K and V are as wide as Q here, as in multi-head attention. They have H_kv heads: d_kv, not d_q.",
        ),
        Wrong(
            "kv-heads-in-scores",
            _elements(lambda arch, w: _scores(arch, w, heads=arch.num_key_value_heads)),
            "S and P have one map for each query head, H_q, not for each K/V head: sharing K does not share scores.",
        ),
        Wrong(
            "square-scores",
            _elements(lambda arch, w: _scores(arch, w, visible=w.new_rows)),
            "Your scores are S_q by S_q. A query row sees S_k = visible_rows keys, the cached ones among them.",
        ),
        Wrong(
            "one-sequence",
            _elements(lambda arch, w: _scores(arch, w, batch=1)),
            "S and P of one sequence. Every sequence of the batch has its own.",
        ),
        Wrong(
            "causal-half",
            _elements(_legal),
            "Only the legal pairs cross in your schedule. This program stores the whole rectangle and masks it.",
        ),
        Wrong(
            "never-read-back",
            _materialized(lambda rows: [r for r in rows if r.name not in "SP" or r.direction == "write"]),
            "S and P are written and never read back. The next program finds them in memory only: 8 rows.",
        ),
        Wrong(
            "scores-only",
            _materialized(lambda rows: [r for r in rows if r.name in "SP"]),
            "These are the four rows of S and P. Q, K, V and O cross as well.",
        ),
        Wrong(
            "one-dtype",
            _materialized(lambda rows: [r.replace(dtype=rows[0].dtype) for r in rows]),
            "All rows have one dtype. K and V come from the cache, whose dtype is declared apart.",
        ),
    ),
    shapes={
        "arch": (RUNNING, MHA, MQA, ODD, TOY, W_7B),
        "workload": WORK,
        ("activation_dtype", "cache_dtype"): (("bf16", "bf16"), ("bf16", "fp8"), ("fp32", "bf16")),
    },
)

online = Exercise(
    "online_attention",
    points=3,
    minutes=12,
    lines=9,
    hints=(
        "Four of the five rows are those of the materialized program: call it and drop S and P.",
        "Q is held while K and V stream by: row.replace(multiplicity=passes) for K and V only.",
        "statistics: B * S_q * H_q * statistics elements, dtype 'fp32', direction 'write', a row even when it is 0.",
    ),
    cases=(
        given(RUNNING, PREFILL_4K).gives(_five("prefill", 16_777_216, 4_194_304, 1, 0)),
        given(RUNNING, TRAIN_4K, passes=32, statistics=1).gives(_five("training", 16_777_216, 4_194_304, 32, 131_072)),
        given(RUNNING, DECODE_4K).gives(_five("decode", 4_096, 4_194_304, 1, 0)),
        given(TOY, TINY, "bf16", "bf16", 2, 1).gives(_five("prefill", 32, 16, 2, 16)),
        given(ODD, TRAIN_ODD, passes=4, statistics=2).gives(_five("training", 33_600, 11_200, 4, 3_360)),
        given(ODD, CHUNK_ODD, "fp16", "fp8", 3).gives(_five("prefill-chunk", 2_400, 2_480, 3, 0, "fp16", "fp8")),
        given(ODD, DECODE_ODD, "bf16", "fp8", statistics=1).gives(_five("decode", 360, 9_240, 1, 18, cache="fp8")),
        given(ODD, DECODE_ODD, passes=0).refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "mha-for-gqa",
            _online(lambda r, arch, w, *_: {n: r[n].replace(elements=c) for n, c in _wide_keys(arch, w).items()}),
            "K and V are loaded once for every query head. The H_q / H_kv heads of a group share one load.",
        ),
        Wrong(
            "passes-forgotten",
            _online(lambda r, *_: {n: r[n].replace(multiplicity=1) for n in "KV"}),
            "K and V cross once, whatever `passes` says. Each block of query rows streams all of them again.",
        ),
        Wrong(
            "everything-again",
            _online(lambda r, arch, w, passes, _: {n: r[n].replace(multiplicity=passes) for n in "QKVO"}),
            "Q and O are moved in every pass. A block of Q stays on chip while K and V stream by.",
        ),
        Wrong(
            "statistics-without-heads",
            _online(
                lambda r, arch, w, _, statistics: {
                    "statistics": r["statistics"].replace(elements=w.batch_size * w.new_rows * statistics)
                }
            ),
            "One set of statistics for all heads. Every query head has a softmax of its own over each row.",
        ),
        Wrong(
            "statistics-in-bf16",
            _online(lambda r, *_: {"statistics": r["statistics"].replace(dtype="bf16")}),
            "The statistics are fp32: sums of thousands of exponentials do not fit bf16's 8 bits.",
        ),
        Wrong(
            "one-dtype",
            _online(lambda r, *_: {n: r[n].replace(dtype=r["Q"].dtype) for n in "KV"}),
            "K and V have the dtype of Q. They come from the cache, whose dtype is declared apart.",
        ),
        Wrong(
            "row-left-out",
            _online(lambda r, arch, w, _, statistics: {} if statistics else {"statistics": None}),
            "With statistics = 0 the row is missing. It is there with 0 elements: whoever reads it sees the choice.",
        ),
    ),
    shapes={
        "arch": (RUNNING, MHA, MQA, ODD, TOY, W_7B),
        "workload": WORK,
        ("activation_dtype", "cache_dtype"): (("bf16", "bf16"), ("bf16", "fp8"), ("fp32", "bf16")),
        "passes": (1, 2, 7, 32),
        "statistics": (0, 1, 2),
    },
)


def _gemm(change):
    def model(m, k, n, dtype_x, dtype_w, dtype_y, phase):
        from solutions import traffic

        x, w, y = traffic.isolated_gemm(m, k, n, dtype_x, dtype_w, dtype_y, phase)
        return change(x, w, y, m, k, n)

    return model


def _three(phase, x, w, y, dtypes=("bf16", "bf16", "bf16")):
    names = (("X", "read", x), ("W", "read", w), ("Y", "write", y))
    return tuple(_row(*part, dtype, phase=phase) for part, dtype in zip(names, dtypes, strict=True))


BF = ("bf16", "bf16", "bf16")
gemm = Exercise(
    "isolated_gemm",
    points=2,
    minutes=8,
    lines=5,
    hints=(
        "Each operand once: X is [m, k], W is [k, n], Y is [m, n].",
        "Two reads and a write, each with its own dtype; the defaults of Transfer say the rest.",
    ),
    cases=(
        given(4096, 4096, 4096, *BF, "prefill").gives(_three("prefill", 16_777_216, 16_777_216, 16_777_216)),
        given(32, 4096, 4096, *BF, "decode-batch").gives(_three("decode-batch", 131_072, 16_777_216, 131_072)),
        given(1, 4096, 4096, *BF, "decode").gives(_three("decode", 4_096, 16_777_216, 4_096)),
        given(5, 96, 250, "bf16", "int4", "fp32", "decode").gives(
            _three("decode", 480, 24_000, 1_250, ("bf16", "int4", "fp32"))
        ),
        given(77, 120, 96, "fp8", "fp8", "bf16", "prefill").gives(
            _three("prefill", 9_240, 11_520, 7_392, ("fp8", "fp8", "bf16"))
        ),
        given(0, 4096, 4096, *BF, "decode").refuses("NONPOS"),
        given(1, 4096, 4096, "bf16", "bf17", "bf16", "decode").refuses("ENUM"),
    ),
    wrong=(
        Wrong(
            "weight-per-row",
            _gemm(lambda x, w, y, m, k, n: (x, w.replace(multiplicity=m), y)),
            "W is read again for every row. In one call the m rows share it, which is why batching helps.",
        ),
        Wrong(
            "no-output",
            _gemm(lambda x, w, y, *_: (x, w)),
            "Y is missing. Alone, with no fused consumer, the product writes it out.",
        ),
        Wrong(
            "output-read",
            _gemm(lambda x, w, y, *_: (x, w, y.replace(direction="read"))),
            "Y is produced: its direction is write.",
        ),
        Wrong(
            "one-dtype",
            _gemm(lambda x, w, y, *_: (x, w.replace(dtype=x.dtype), y.replace(dtype=x.dtype))),
            "All three rows have X's dtype. A quantized weight is narrower than what it is multiplied with.",
        ),
        Wrong(
            "output-as-input",
            _gemm(lambda x, w, y, m, k, n: (x, w, y.replace(elements=m * k))),
            "Y has n columns, as W has, not k.",
        ),
    ),
    shapes={
        ("m", "k", "n"): ((1, 4096, 14336), (32, 4096, 1024), (77, 96, 250), (8192, 28672, 8192), (3, 120, 96)),
        ("dtype_x", "dtype_w", "dtype_y"): (BF, ("bf16", "int4", "bf16"), ("fp8", "fp8", "fp32")),
        "phase": ("prefill", "decode"),
    },
)

def _over(counted=lambda row, boundary: row.boundary == boundary, size=_bytes, ratio=Fraction):
    def model(flops, transfers, boundary):
        moved = sum(size(row) for row in transfers if counted(row, boundary))
        require(moved > 0, "MISSING", boundary)
        return ratio(flops, moved)

    return model


ONE_ROW = _three("decode", 4_096, 16_777_216, 4_096)
TWO_TIERS = (*_three("decode", 480, 24_000, 1_250), _row("W", "read", 24_000, times=5, boundary=L2))
ALL_L2 = tuple(row.replace(boundary=L2) for row in _eight("prefill", 32, 16, 64))
intensity = Exercise(
    "intensity",
    points=2,
    minutes=6,
    lines=3,
    hints=(
        "Keep the rows of the named boundary, then let payload add them up.",
        "Fraction(flops, bytes); refuse with MISSING where there are no bytes to divide by.",
    ),
    cases=(
        given(33_554_432, ONE_ROW, HBM).gives(Fraction(2_048, 2_049)),
        given(137_438_953_472, _three("prefill", *[16_777_216] * 3), HBM).gives(Fraction(4_096, 3)),
        given(1_073_741_824, _three("decode", 131_072, 16_777_216, 131_072), HBM).gives(Fraction(2_048, 65)),
        given(240_000, TWO_TIERS, HBM).gives(Fraction(240_000, 51_460)),
        given(240_000, TWO_TIERS, L2).gives(Fraction(1)),
        given(512, (*ALL_L2, *ONE_ROW), L2).gives(Fraction(512, 704)),
        given(0, ONE_ROW, HBM).gives(Fraction(0)),
        given(1_000, ONE_ROW, L2).refuses("MISSING"),
        given(1_000, (), HBM).refuses("MISSING"),
    ),
    wrong=(
        Wrong(
            "every-boundary",
            _over(lambda row, boundary: True),
            "Bytes of several tiers are in one denominator. An intensity belongs to the boundary that it names.",
        ),
        Wrong(
            "reads-only",
            _over(lambda row, boundary: row.boundary == boundary and row.direction == "read"),
            "The writes are missing. They cross the same boundary and take the same bandwidth.",
        ),
        Wrong(
            "upside-down",
            _over(ratio=lambda flops, moved: Fraction(moved, flops or 1)),
            "These are bytes per FLOP. Intensity is FLOPs per byte.",
        ),
        Wrong(
            "values-for-bytes",
            _over(size=lambda row: row.elements * row.multiplicity),
            "You divided by values, not by bytes. payload() knows each row's width.",
        ),
        Wrong(
            "whole-flops",
            _over(ratio=lambda flops, moved: Fraction(flops // moved)),
            "The ratio was cut to a whole number. Fraction(flops, bytes) keeps it exact.",
        ),
    ),
    shapes={
        "flops": (33_554_432, 240_000, 10**15 + 1),
        "transfers": (ONE_ROW, TWO_TIERS, NIBBLES, _eight("training", 33_600, 11_200, 94_080)),
        "boundary": (HBM,),
    },
)

ridge = Exercise(
    "ridge",
    points=1,
    minutes=4,
    lines=1,
    hints=("Peak FLOP/s over bytes per second: the seconds cancel.", "chip.peak_flops and chip.bytes_per_second."),
    cases=(
        given(CHIPS["H100"]).gives(Fraction(19_800, 67)),
        given(CHIPS["A100-80"]).gives(Fraction(312_000, 2_039)),
        given(CHIPS["TPU v5e"]).gives(Fraction(197_000, 819)),
        given(CHIPS["TPU v5p"]).gives(Fraction(459_000, 2_765)),
    ),
    wrong=(
        Wrong(
            "upside-down",
            lambda chip: Fraction(chip.bytes_per_second, chip.peak_flops),
            "This is bytes per FLOP, how much the memory gives for each operation. The ridge is FLOPs per byte.",
        ),
        Wrong(
            "size-for-bandwidth",
            lambda chip: Fraction(chip.peak_flops, chip.memory_bytes),
            "You divided by the size of the memory. What limits a stream is its bandwidth.",
        ),
        Wrong(
            "whole-flops",
            lambda chip: Fraction(chip.peak_flops // chip.bytes_per_second),
            "Cut to a whole number: that is how 295.52 came to be printed as 295. Keep the Fraction.",
        ),
        Wrong(
            "macs",
            lambda chip: Fraction(chip.peak_flops, 2 * chip.bytes_per_second),
            "Half: the peak counts FLOPs already, two for each multiply-add. Do not halve it again.",
        ),
    ),
    shapes={"chip": tuple(CHIPS.values())},
)

bound = Exercise(
    "attainable",
    points=2,
    minutes=5,
    lines=1,
    hints=(
        "Two ceilings: the arithmetic units, and what the memory can feed them.",
        "bytes_per_second * intensity is FLOP/s. The lower ceiling holds; wrap it in Fraction.",
    ),
    cases=(
        given(CHIPS["H100"], 1).gives(Fraction(3_350_000_000_000)),
        given(CHIPS["H100"], Fraction(2_048, 65)).gives(Fraction(1_372_160_000_000_000, 13)),
        given(CHIPS["H100"], Fraction(19_800, 67)).gives(Fraction(990_000_000_000_000)),
        given(CHIPS["H100"], Fraction(4_096, 3)).gives(Fraction(990_000_000_000_000)),
        given(CHIPS["A100-80"], Fraction(1, 2)).gives(Fraction(1_019_500_000_000)),
        given(CHIPS["TPU v5e"], 1_000).gives(Fraction(197_000_000_000_000)),
        given(CHIPS["TPU v5e"], 0).gives(Fraction(0)),
        given(CHIPS["H100"], 0.5).refuses("TYPE"),
        given(CHIPS["H100"], -1).refuses("NEG"),
    ),
    wrong=(
        Wrong(
            "always-peak",
            lambda chip, intensity: Fraction(chip.peak_flops),
            "The peak, whatever the intensity. Below the ridge the memory cannot feed it.",
        ),
        Wrong(
            "always-bandwidth",
            lambda chip, intensity: Fraction(chip.bytes_per_second * intensity),
            "The memory's ceiling alone. Above the ridge the arithmetic units are the lower one.",
        ),
        Wrong(
            "higher-ceiling",
            lambda chip, intensity: Fraction(max(chip.peak_flops, chip.bytes_per_second * intensity)),
            "The higher of the two ceilings. Both hold at once, so the lower one decides: min, not max.",
        ),
        Wrong(
            "whole-flops",
            lambda chip, intensity: min(chip.peak_flops, int(chip.bytes_per_second * intensity)),
            "A whole number of FLOP/s, as int. The bound is a Fraction: 3.35e12 times 2048/65 is no integer.",
        ),
    ),
    shapes={
        "chip": tuple(CHIPS.values()),
        "intensity": (1, 4, 500, Fraction(2_048, 2_049), Fraction(12_000, 2_573), Fraction(4_096, 3)),
    },
)


def _amortized(change):
    def model(m, k, n, dtype):
        from solutions import traffic

        return {**traffic.row_amortization(m, k, n, dtype), **change(m, k, n, Fraction(BITS[dtype], 8))}

    return model


def _table(weight, intensity, limit):
    return {"weight_bytes_per_row": Fraction(weight), "intensity": Fraction(intensity), "limit": Fraction(limit)}


amortization = Exercise(
    "row_amortization",
    points=3,
    minutes=10,
    lines=6,
    hints=(
        "Make the rows with isolated_gemm; payload(rows)['W'] is the weight, read once for all m rows.",
        "intensity(2mkn, rows, HBM) keeps all three denominators; limit drops those of X and Y.",
        "limit = 2 * m / bytes_per_scalar(dtype), which is a Fraction because bytes_per_scalar is one.",
    ),
    cases=(
        given(4096, 4096, 4096, "bf16").gives(_table(8_192, Fraction(4_096, 3), 4_096)),
        given(32, 4096, 4096, "bf16").gives(_table(1_048_576, Fraction(2_048, 65), 32)),
        given(1, 4096, 4096, "bf16").gives(_table(33_554_432, Fraction(2_048, 2_049), 1)),
        given(5, 96, 250, "bf16").gives(_table(9_600, Fraction(12_000, 2_573), 5)),
        given(7, 96, 250, "int4").gives(_table(Fraction(12_000, 7), Fraction(336_000, 13_211), 28)),
        given(3, 120, 96, "fp32").gives(_table(15_360, Fraction(240, 169), Fraction(3, 2))),
        given(0, 96, 250, "bf16").refuses("NONPOS"),
    ),
    wrong=(
        Wrong(
            "limit-everywhere",
            _amortized(lambda m, k, n, b: {"intensity": 2 * m / b}),
            "2m/b stands for the exact value. It holds while m is far below k and n; at equal extents it is 3 times as high.",
        ),
        Wrong(
            "no-output",
            _amortized(lambda m, k, n, b: {"intensity": 2 * m * k * n / (b * (m * k + k * n))}),
            "The intensity leaves Y out. An isolated product writes its output.",
        ),
        Wrong(
            "macs",
            _amortized(
                lambda m, k, n, b: {
                    "intensity": m * k * n / (b * (m * k + k * n + m * n)),
                    "limit": m / b,
                }
            ),
            "Half: multiply-accumulates were counted. One is 2 FLOPs.",
        ),
        Wrong(
            "everything-per-row",
            _amortized(lambda m, k, n, b: {"weight_bytes_per_row": b * (m * k + k * n + m * n) / m}),
            "X and Y are in the bytes per row. They grow with m; only the weight's share falls.",
        ),
        Wrong(
            "not-shared",
            _amortized(lambda m, k, n, b: {"weight_bytes_per_row": b * k * n}),
            "The whole weight for every row. In one call m rows share a single read of it.",
        ),
    ),
    shapes={
        ("m", "k", "n"): ((1, 4096, 14336), (64, 8192, 1024), (500, 96, 250), (8192, 4096, 4096), (3, 120, 96)),
        "dtype": ("bf16", "fp8", "fp32", "int4"),
    },
)

LAB = Lab(
    "09",
    "Logical traffic",
    "traffic",
    (payload, materialized, online, gemm, intensity, ridge, bound, amortization),
)
