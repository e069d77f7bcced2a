"""What does the cost model M4.1 get wrong? M-02 to M-34, as far as the sections that teach them are written.

Its numbers are right nearly everywhere; what fails is declared twice, or checked by something that
accepts too much, or printed without its contract. From M-27 on in the order of M's sections.
"""

from fractions import Fraction
from itertools import accumulate
from typing import get_args, get_type_hints

from costlib import activations, adapters, data, forward, manifest, observe, params, phases, state, traffic
from costlib.domain import ManifestError
from costlib.errata import Erratum, record
from costlib.evidence import Counter, Observation, registry
from costlib.fixtures import LIVE_TOY, MASTER, PREFILL_4K, RUNNING, TOY, TOY_TIED, TRAIN_4K, W_MOE
from costlib.ledger import UnitError
from costlib.napkin import matmul_flops
from costlib.observe import kept
from costlib.policies import LiveObject
from costlib.schema import tensor_rows
from costlib.units import GIB, fixed, percent

WAITING = (  # known, and taught by a section that is not written yet
    ("M-01", "0x05I"), ("M-03", "0x06G"), ("M-09", "0x07A"), ("M-10", "0x07J"), ("M-11", "0x07D"),
    ("M-13", "0x0CB"), ("M-14", "0x0CC"), ("M-15", "0x0AB"), ("M-16", "0x0A"), ("M-19", "0x09C"),
    ("M-20", "0x0AF"), ("M-21", "0x0AH"), ("M-24", "0x05C"),
)  # fmt: skip
ELEVEN = (*manifest.REQUIRED, "attention_bias", "mlp_bias")  # fields of the class of 0x01H
DROPPED = ("family", "implementation_ref", "attention_layout", "mlp_layout", "norm_layout", "position_layout",
           "extra_trainable_sets")  # fmt: skip
PAPER = {"b": 1, "s": 4096, "h": 4096, "a": 32, "layers": 32}  # 0x04F


def gib(size, digits=2):
    return fixed(Fraction(size, GIB), digits)


def verdict(call):
    """What a call says of its input: accepted, or the code of the refusal."""
    try:
        call()
    except (ManifestError, AssertionError, ZeroDivisionError) as error:
        return getattr(error, "code", type(error).__name__)
    except UnitError as error:
        return type(error).__name__
    return "accepted"


def published():
    return {name: adapters.from_config(data.read(f"configs/{name}.json")) for name in adapters.published()}


def packed(arch):
    return arch.num_attention_heads * arch.head_dim


@record(
    id="M-02", weight="medium", place="0x04G", taught="0x04G",
    title="A price for selective recomputation that counts another replay",
    says="reported savings of 70 and 65 % beside **2.7 %** and **1.6 %** more FLOPs, next to a policy that runs the core "
         "of attention forward once more.",
    right="The savings close: 70.18 % for GPT-3, 65.31 % for MT-NLG. One replay adds 0.898 % and 0.545 %. The "
          "reported figures need three, so they and the policy are not comparable before both have one contract.",
    slip="The paper's equation for hardware FLOPs doubles attention's whole term, backward included. Its text replays "
         "the forward products alone, and so does 0x06E.",
)  # fmt: skip
def m02():
    for name, stack in (("GPT-3", (1, 2048, 12288, 96, 96)), ("MT-NLG", (1, 2048, 20480, 128, 105))):
        b, s, h, a, layers = stack
        model = 72 * b * layers * s * h**2 * (1 + Fraction(s, 6 * h) + Fraction(51200, 12 * h * layers))
        replay = activations.added_cost(*stack, "selective")["flops"] / model
        few, all_ = (activations.retained(*stack, policy) for policy in ("selective", "none"))
        yield f"{name}: saves {percent(1 - Fraction(few, all_), 2)}; one replay adds {percent(replay, 3)} of the FLOPs"
        yield f"slip, {name}, three replays: {percent(3 * replay)} of the FLOPs"


@record(
    id="M-04", weight="medium", place="0x01D against 0x04E, 0x08C, 0x09C", taught="0x01D 0x04",
    title="A bare b, which its own rule forbids",
    says="there is **no unqualified** `b`; later one is a microbatch, one a common width, one the bytes of a cache.",
    right="Bytes have an index: `b_w`, `b_a`, `b_kv`. With int8 weights and a bf16 cache, 4,096 rows of the running model "
          "take 536,870,912 B, two for each scalar.",
    slip="Read `b` as the bytes of a weight and the cache has 268,435,456 B, half of what it takes.",
)  # fmt: skip
def m04():
    b_kv, b_w = (phases.cache_bytes(RUNNING, 1, 4096, dtype) for dtype in ("bf16", "int8"))
    yield f"2·L·T·d_kv·b_kv at T = 4,096: {b_kv:,} B"
    yield f"slip, b_w in its place: {b_w:,} B"


@record(
    id="M-05", weight="code", place="0x01A against 0x01H", taught="0x01A",
    title="A manifest of 18 fields, checked by a class with 11",
    says="absences are declared in the manifest; the class that is validated **lacks the fields** that declare them.",
    right="One record, and everything learned has a field. 7 of the 18 are dropped on the way. A table of 8,192 learned "
          "positions adds 33,554,432 scalars and leaves the other 11 as they were.",
    slip="A record is written down once to be read and once to be run, and the second is only as wide as the example.",
)  # fmt: skip
def m05():
    learned = RUNNING.replace(position="learned", max_positions=8192)
    same = sum(getattr(learned, name) == getattr(RUNNING, name) for name in ELEVEN)
    more = params.ledger(learned).total - params.ledger(RUNNING).total
    yield f"{len(ELEVEN) + len(DROPPED)} fields, {len(DROPPED)} of them dropped"
    yield f"learned positions, 8,192 rows: {more:,} scalars more, {same} of {len(ELEVEN)} fields the same"


@record(
    id="M-06", weight="code", place="0x01H", taught="0x01H",
    title="Validation that fails closed, by assertion",
    says="validation is **fail-closed**; each of its rules is an `assert`.",
    right="Refuse by exact type and range, with a code. Of 5 wrong numbers of K/V heads the assertion stops 1, a second ends "
          "in a division by zero, and under `python -O` all pass. The record refuses 5.",
    slip="An assertion checks what its author believes. It is stripped with a flag, and truth is too kind to it: "
         "True, 8.0 and -8 all divide 32.",
)  # fmt: skip
def m06():
    def asserted(heads, level):
        rule = compile("assert 32 % heads == 0", "rule", "exec", optimize=level)
        return verdict(lambda: exec(rule, {"heads": heads}))

    said = {
        repr(heads): (asserted(heads, 0), asserted(heads, 1), verdict(lambda: RUNNING.replace(num_key_value_heads=heads)))
        for heads in (7, 0, -8, 8.0, True)
    }
    for heads, (plain, stripped, ours) in said.items():
        yield f"{heads} K/V heads: {plain}, with -O {stripped}; here {ours}"
    plain, _, ours = zip(*said.values())
    refused = len(ours) - ours.count("accepted")
    yield f"{len(said)} wrong numbers of heads: stopped {plain.count('AssertionError')}, refused here {refused}"


@record(
    id="M-07", weight="low", place="0x01F", taught="0x01F",
    title="A trace that never rotates",
    says="the manifest declares RoPE; in the trace queries and new keys **go on unrotated**.",
    right="In one block, 4,096 rows, 20,971,520 scalars of queries and new keys are turned, and 0 are learned for it. Stored "
          "axes and the parameter ledger do not notice; the results and the ledger of primitives do.",
    slip="What is traced is what is stored, and a rotation stores nothing.",
)  # fmt: skip
def m07():
    turned = TRAIN_4K.new_rows * (RUNNING.d_q + RUNNING.d_kv)
    yield f"one block, {TRAIN_4K.new_rows:,} rows: {turned:,} scalars turned"
    yield f"learned for it: {params.position_scalars(RUNNING)} scalars"


@record(
    id="M-08", weight="code", place="0x02H", taught="0x02H",
    title="A counter that cannot count the tied model",
    says="the analytical counter **asserts that nothing is tied**; 0x02G and 0x02I print tied totals.",
    right="The general form, with an indicator for the tie, gives 1,128 scalars for the tied toy and 7,504,924,672 for the "
          "tied running model.",
    slip="The function was written for one fixture and its special cases became conditions. Without the condition it "
         "would say 1,256 and 8,030,261,248.",
)  # fmt: skip
def m08():
    for name, arch in (("toy", TOY), ("running model", RUNNING)):
        tied = params.ledger(arch.replace(tie_word_embeddings=True)).total
        yield f"{name}, tied: {tied:,} scalars"
        yield f"slip, two tables in any case: {params.ledger(arch).total:,} scalars"


@record(
    id="M-12", weight="medium", place="0x0CC against 0x09", taught="0x01B",
    title="A chunk of a prompt, filed as a whole one",
    says="a chunk of a prompt needs a record of its own; the case with 8,192 visible rows is **a prefill** of "
         "4,096 new ones.",
    right="It is a workload of its own. Its ratios are right: 1.133 times the forward FLOPs of the first half, 2.000 "
          "times its cache, 1.985 times the bytes that attention moves.",
    slip="A sensitivity case may change one field. Here that field alone makes another phase of it.",
)  # fmt: skip
def m12():
    chunk = manifest.prefill_chunk(1, 4096, 4096, "second half")
    flops, cache, moved = (fixed(Fraction(of(chunk), of(PREFILL_4K)), 3) for of in (
        lambda run: forward.ledger(RUNNING, run).total,
        lambda run: phases.cache_bytes(RUNNING, 1, run.visible_rows),
        lambda run: traffic.payload(traffic.materialized_attention(RUNNING, run)).total))  # fmt: skip
    yield f"prefill, 4,096 new and 8,192 visible tokens: {verdict(lambda: PREFILL_4K.replace(visible_rows=8192))}, refused"
    yield f"{chunk.phase}: {flops} times the FLOP, {cache} times the B of cache, {moved} times the B moved"


@record(
    id="M-17", weight="medium", place="0x01C against 0x0AA, 0x0DD, 0xFE", taught="0x01C-observation-record 0x00D-observation",
    title="Evidence that is called analytical",
    says="a record's evidence is \"**analytical**\", which is no class of its own estimator; two more sections list other words.",
    right="There are 4 classes. What was derived and not observed is unmeasured, however exact, and holds no counters.",
    slip="Where a number comes from and who saw it are two questions, and one field was to answer both.",
)  # fmt: skip
def m17():
    number = Counter(name="forward", value=1, unit="FLOP", visibility="nothing: this is a formula")
    yield f"{len(get_args(get_type_hints(Observation)['evidence_class']))} classes of evidence"
    for word, counters in (("analytical", ()), ("unmeasured", (number,)), ("unmeasured", ())):
        said = verdict(lambda: Observation(observation_id="ours", evidence_class=word, counters=counters))
        yield f"class {word}, {len(counters)} counters: {said}"


@record(
    id="M-18", weight="code", place="0x01D, 0x05J, 0x09, 0x0AB, 0x0CA", taught="0x01D",
    title="Five vocabularies for one workload",
    says="new, query and visible rows have **other names in each** of five sections.",
    right="One record, `new_rows` and `visible_rows`. 9 spellings lead to the first, 5 to the second; names that stand in no "
          "record are refused, and so are two spellings that disagree.",
    slip="Each section is right in its own words, so nothing fails until a formula of one is fed from a record of another.",
)  # fmt: skip
def m18():
    for ours in ("new_rows", "visible_rows"):
        yield f"{ours}: {list(manifest.VOCABULARY.values()).count(ours)} spellings"
    for extents in ({"Snew": 1}, {"new_tokens": 1, "query_rows": 4}):
        yield f"spellings {', '.join(extents)}: {verdict(lambda: manifest.one_vocabulary(extents))}"


@record(
    id="M-22", weight="low", place="0x04G", taught="0x04G",
    title="What stays is printed, what must fit is not",
    says="selective keeps 17.00 GiB and boundaries keep 1.00 GiB: both right, with **no peak** beside them.",
    right="A layer's dropped rows are there again while its backward runs. By storages the peaks are 19.50 and exactly "
          "4.00 GiB.",
    slip="What is retained reads like what is needed. And whoever adds a rebuilt layer of 3.03125 GiB to the "
         "boundaries gets 4.03125: its first row is the boundary, one storage under two names.",
)  # fmt: skip
def m22():
    for policy in ("selective", "boundary"):
        stays = activations.retained(**PAPER, policy=policy)
        top, _ = activations.peak_cut(activations.timeline(**PAPER, policy=policy))
        yield f"{policy}: {gib(stays)} GiB stay, peak {gib(top)} GiB"
    summed = activations.peak(**PAPER, policy="boundary")
    yield f"slip, names in place of storages: {gib(stays)} + {gib(summed - stays, 5)} = {gib(summed, 5)} GiB"


@record(
    id="M-23", weight="code", place="0x04C, 0x04H", taught="0x04C 0x04H-liveness-cut",
    title="A sweep that lets objects die before they are born",
    says="peaks of 12 and 32 GiB, where releases come first; the function takes **any two instants**.",
    right="12 and 32 GiB hold in that order, and it says so. With births first they are 15 and 35 GiB. A death before its "
          "birth is refused.",
    slip="Events are sorted, so a swapped pair runs: its bytes are subtracted, then added back, and a peak of 14 B is 8 B.",
)  # fmt: skip
def m23():
    for order in ("release-first", "birth-first"):
        moving, whole = (activations.peak_cut(objects, order)[0] // GIB for objects in (LIVE_TOY[1:], LIVE_TOY))
        yield f"{order}: {moving} GiB, with the state {whole} GiB"

    def sweep(*spans):
        events = sorted(e for size, birth, death in spans for e in ((birth, 1, size), (death, 0, -size)))
        return max(accumulate(change for _, _, change in events))

    backwards = verdict(lambda: LiveObject(name="t", bytes=6, birth=5, death=2, storage="t"))
    yield f"6 B that live from 2 to 5, beside 8 B: {sweep((8, 0, 9), (6, 2, 5))} B; from 5 to 2: {backwards}"
    yield f"slip, from 5 to 2 all the same: {sweep((8, 0, 9), (6, 5, 2))} B"


@record(
    id="M-25", weight="low", place="0x02I, 0x04B, 0x05G, 0x09C, 0x0CD", taught="0x02I 0x04B",
    title="One integer, several quantities",
    says="1,050,673,152 is a count of scalars, of FLOPs and of bytes, 536,870,912 of scores and of bytes: all right, and "
         "**nothing but the context** tells them apart.",
    right="A value carries its unit, and scalars plus bytes is an error. The other way round, 7,504,924,672 and "
          "7,504,658,432 look like one count and are two: unique scalars when tied and scalars multiplied, 266,240 "
          "norm scales apart.",
    slip="d, S and powers of two meet again in every product of this fixture; at odd extents they do not.",
)  # fmt: skip
def m25():
    tables, d = params.vocabulary(RUNNING), RUNNING.hidden_size
    one = state.bytes_of_weights(tables["embedding"], "bf16")
    logits = matmul_flops(1, d, RUNNING.vocab_size)
    yield f"two tables {tables.total:,} scalars, one in bf16 {one:,} B, a row of logits {logits:,} FLOP"
    scores = activations.score_elements(RUNNING, TRAIN_4K)
    yield f"scores of a layer {scores:,} scalars; cache of 4,096 rows {phases.cache_bytes(RUNNING, 1, 4096):,} B"
    added = verdict(lambda: tables + state.ledger(MASTER, 1, 1))
    tied, used = params.ledger(RUNNING.replace(tie_word_embeddings=True)).total, params.coordinates(RUNNING)["used"]
    yield f"scalars + B: {added}; tied {tied:,}, used {used:,}, {tied - used:,} scalars apart"


@record(
    id="M-26", weight="lost", place="0x03E, 0x0A, 0x0B, figures", taught="0x03E",
    title="Files and figures that are named and absent",
    says="it runs an estimator and its tests, reads a tiny tied manifest with its observation and a file of paper contracts, "
         "and shows figures; **none** is in the text at hand.",
    right="All are made anew: `costlib`, a manifest of 1,128 scalars that PyTorch's observed tensors match, 6 paper "
          "contracts, and every figure drawn from ledgers.",
    slip="A text that shows a command and its output looks complete without the program.",
)  # fmt: skip
def m26():
    entries = observe.read("parameters_tiny_tied").entries
    sizes = {e.storage: e.numel for e in entries if e.kind == "parameter"}
    yield f"tied toy: {params.ledger(TOY_TIED).total:,} scalars, observed {sum(sizes.values()):,}"
    yield f"paper contracts: {len(registry())}, with the scalars or FLOP that each counts"


@record(
    id="M-27", weight="medium", place="0x01A, 0x01H", taught="0x01A 0x02B",
    title="One flag for four biases",
    says="`attention_bias` is true or false, and true puts a bias on **all four** projections.",
    right="It has three values. 3 of 25 published models have biases on queries, keys and values and none on the output: "
          "in Qwen2.5-7B 4,608 scalars a block, 129,024 in all.",
    slip="A boolean is enough for the fixture, which has none. With the flag set, such a model counts 229,376.",
)  # fmt: skip
def m27():
    archs = published()
    qwen = archs["qwen2.5-7b"]
    found = sum(arch.attention_bias == "qkv" for arch in archs.values())
    yield f"{found} of {len(archs)} models have three biases"
    one = params.attention_biases(qwen)
    yield f"Qwen2.5-7B: {one:,} scalars a block, {one * qwen.num_layers:,} in all"
    four = params.attention_biases(qwen.replace(attention_bias="all"))
    yield f"slip, all four: {four * qwen.num_layers:,} scalars"


@record(
    id="M-28", weight="code", place="0x01H", taught="0x01H",
    title="A head width that is guessed where it is absent",
    says="a configuration without `head_dim` is read as if it were **`d // heads`**.",
    right="It is declared, or it is unknown. The guess is wrong for 8 of 25 published models. Qwen3-4B has heads of 128 and "
          "4,022,468,096 parameters.",
    slip="In most models the two agree, so the fallback is never seen. It makes 80 of 128 for Qwen3-4B, and "
         "3,668,570,240 parameters.",
)  # fmt: skip
def m28():
    def guessed(arch):
        return arch.hidden_size // arch.num_attention_heads

    archs = published()
    qwen = archs["qwen3-4b"]
    wrong = sum(arch.head_dim != guessed(arch) for arch in archs.values())
    yield f"{wrong} of {len(archs)} models have another width"
    yield f"Qwen3-4B: heads of {qwen.head_dim}, {params.ledger(qwen).total:,} parameters"
    believed = qwen.replace(head_dim=guessed(qwen))
    yield f"slip: heads of {believed.head_dim}, {params.ledger(believed).total:,} parameters"


@record(
    id="M-29", weight="medium", place="0x01H", taught="0x01H 0x01A",
    title="A rule of the fixture, demanded of every model",
    says="the validator asserts that `d_q` **equals** the hidden size.",
    right="The packed query width is `H_q·d_h`, whatever `d` is: 4,096 beside 2,560 in Qwen3-4B, 16,384 beside 7,168 in the "
          "Warmup Guide's MoE. Demanding it refuses 8 of 25 published models.",
    slip="In this fixture both are equal, and the guess of M-28 makes them equal in every model whose heads divide `d`.",
)  # fmt: skip
def m29():
    archs = published()
    for name, arch in (("Qwen3-4B", archs["qwen3-4b"]), ("MoE", W_MOE)):
        yield f"{name}: H_q·d_h = {packed(arch):,}, d = {arch.hidden_size:,} scalars"
    refused = sum(packed(arch) != arch.hidden_size for arch in archs.values())
    yield f"{refused} of {len(archs)} models refused"


@record(
    id="M-30", weight="low", place="0x03F against 0x03G, 0x03J", taught="0x03F 0x03J",
    title="Step counters without a row",
    says="Adam's first step makes `step`, m and v; **none** of the six policies has a row for the first.",
    right="PyTorch keeps one fp32 scalar for each parameter tensor: 291 tensors, 1,164 B for the running model. They are a "
          "named residual of the observation.",
    slip="Per parameter they vanish: no sum of bytes per scalar shows them. A check that starts with the roles does, and "
         "refuses the policy.",
)  # fmt: skip
def m30():
    tensors = len(tensor_rows(RUNNING))
    yield f"running model: {tensors} tensors, counters {state.bytes_of_weights(tensors, 'fp32'):,} B"
    seen = observe.read("optimizer_adamw_fp32").value("step.optimizer.step")
    yield f"toy: {len(tensor_rows(TOY))} tensors, recorded from PyTorch {seen} B"


@record(
    id="M-31", weight="medium", place="0x03H", taught="0x03H-eight-bit-adam",
    title="A lower bound that lies above the value",
    says="8-bit Adam takes **at least** two bytes a scalar, its metadata and its fp32 exceptions.",
    right="An exception has no codes: `2(P - X) + 8X` and the scales. With the running model's embedding in fp32 and blocks "
          "of 2,048 that is 19,241,858,064 B.",
    slip="`2P` charges the codes of all scalars, the exceptions among them. Their fp32 bytes on top are 1,050,673,152 B "
         "too much, `2X`.",
)  # fmt: skip
def m31():
    whole, X = params.ledger(RUNNING).total, params.ledger(RUNNING)["embedding"]
    exact = state.eight_bit_adam(whole, 2048, X)
    sketch = 2 * whole + exact["scales"] + exact["exceptions"]
    yield f"P = {whole:,}, X = {X:,}, blocks of 2,048: {exact.total:,} B"
    yield f"slip, 2P and all else: {sketch:,} B, {sketch - exact.total:,} B more"


@record(
    id="M-32", weight="code", place="0x03J", taught="0x03J",
    title="Five comparisons that close on the wrong tensor",
    says="roles, shapes, formats, devices and bytes are compared **one by one**.",
    right="Objects are compared whole. Plan to move the embedding's first moment to the host, move the final norm's: 2 "
          "objects are missing, 2 are unexpected, and 2,101,329,920 B that were to leave the device are still there.",
    slip="Each field occurs as often as it should. Which tensor it belongs to is in no comparison, so 5 of 5 hold. Two "
         "devices that were swapped close as well.",
)  # fmt: skip
def m32():
    every = state.state_objects(MASTER, tensor_rows(RUNNING), "step")

    def moved(tensor):
        return tuple(o.replace(device="host") if (o.role, o.tensor) == ("optimizer.m", tensor) else o for o in every)

    sides = moved("model.embed_tokens.weight"), moved("model.norm.weight")
    found = state.reconcile(*sides)
    plan, fact = (sum(o.bytes for o in side if o.device == "host") for side in sides)
    yield f"whole: {len(found['missing'])} missing, {len(found['unexpected'])} unexpected, {plan - fact:,} B too few moved"
    views = (
        lambda o: o.role, lambda o: o.shape, lambda o: (o.role, o.dtype), lambda o: (o.role, o.device),
        lambda o: (o.role, o.bytes),
    )  # fmt: skip
    closed = sum(sorted(map(view, sides[0])) == sorted(map(view, sides[1])) for view in views)
    more = sum(o.bytes for o in sides[0]) - sum(o.bytes for o in sides[1])
    yield f"slip, field by field: {closed} of {len(views)} close, residual {more} B"


@record(
    id="M-33", weight="code", place="0x04H", taught="0x04H-saved-tensors",
    title="Saved tensors by address, weights among them",
    says="a storage is identified by its **address** and size, and every saved tensor is entered.",
    right="Identity is the storage itself, held as long as the inventory runs; parameters are set apart. The recorded running "
          "block keeps 4,095,770,624 B of activations.",
    slip="A product saves its weight too: 436,224,000 B more. And on a device without arithmetic all addresses are 0, so "
         "that rows of one size become one.",
)  # fmt: skip
def m33():
    seen = observe.read("saved_block_running_eager")
    rows = [size for size, _ in kept.block(RUNNING, 1, 4096).values()]
    yield f"activations: {seen.value(kept.TOTAL):,} B in {len(rows)} rows"
    weights = seen.value(kept.PARAMETERS)
    yield f"slip, with the weights: {weights:,} B more, {seen.value(kept.TOTAL) + weights:,} B"
    yield f"slip, address 0: {len(set(rows))} rows, {sum(set(rows)):,} B"


@record(
    id="M-34", weight="low", place="0x04H", taught="0x04H-allocator",
    title="Two maxima, subtracted from the present",
    says="two peaks of the allocator and the device's use **after the step** are one piece of evidence; a residual is "
         "what remains.",
    right="A difference needs readings of one instant. Of 2,600 MiB in use at the peak, 2,000 reserved, 600 are outside the "
          "allocator.",
    slip="Segments that were given back in between make it negative: 1,700 less 2,000 is -300 MiB. These readings are made "
         "up, to show the arithmetic.",
)  # fmt: skip
def m34():
    peak, end = (900, 1200, 2000, 2600), (900, 1200, 2000, 1700)
    outside = activations.memory_bridge(*peak)["outside"]
    yield f"one instant, {peak[3]:,} MiB in use, {peak[2]:,} reserved: {outside} MiB outside"
    yield f"slip, {end[3]:,} - {end[2]:,} = {end[3] - end[2]} MiB; here {verdict(lambda: activations.memory_bridge(*end))}"


ERRATA = tuple(value for value in vars().copy().values() if isinstance(value, Erratum))
