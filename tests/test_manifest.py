"""M 0x01 against doing it: a model that is built and run, a cache that grows, JSON that is thrown at the parser."""

import json
from dataclasses import MISSING, fields

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import latent_manifests, manifests, workloads

from costlib import data, fixtures, manifest
from costlib.domain import CODES, ManifestError
from costlib.exercise import using
from costlib.fixtures import ODD, RUNNING, TOY, TOY_TIED, TRAIN_ODD
from costlib.records import ArchitectureManifest, Experts, Latent, Record, Tensor, Workload
from costlib.schema import differences, state_entries, tensor_rows
from labs import spec

LAB = spec.load("02")


@pytest.fixture(autouse=True, scope="module")
def on_the_reference():
    with using("solutions"):
        yield


def wrong(exercise, name):
    return next(w.model for w in LAB[exercise].wrong if w.name == name)


def code(call, *args):
    try:
        call(*args)
    except ManifestError as error:
        return error.code


# Shapes and rows: built, run and counted.


def forward(arch, ids, cached=0):
    """M 0x01F with numpy: every weight has its stored shape, and what does not fit raises."""
    weight = {name: np.zeros(shape) for name, shape in manifest.expected_shapes(arch).items()}
    batch, new = ids.shape
    hidden = x = weight["model.embed_tokens.weight"][ids]
    for i in range(arch.num_layers):
        w = {name.split(".")[-2]: weight[name] for name in weight if name.startswith(f"model.layers.{i}.")}
        n = x * w["input_layernorm"]
        q = (n @ w["q_proj"].T).reshape(batch, new, arch.num_attention_heads, arch.head_dim)
        k, v = (
            np.concatenate(
                [
                    np.zeros((batch, cached, arch.num_key_value_heads, arch.head_dim)),
                    (n @ w[part].T).reshape(batch, new, arch.num_key_value_heads, arch.head_dim),
                ],
                axis=1,
            ).repeat(arch.num_attention_heads // arch.num_key_value_heads, axis=2)
            for part in ("k_proj", "v_proj")
        )
        scores = np.einsum("bqhd,bkhd->bhqk", q, k)
        a = np.einsum("bhqk,bkhd->bqhd", scores, v).reshape(batch, new, -1)
        x = x + a @ w["o_proj"].T
        n = x * w["post_attention_layernorm"]
        x = x + (n @ w["gate_proj"].T * (n @ w["up_proj"].T)) @ w["down_proj"].T
    logits = (x * weight["model.norm.weight"]) @ weight["lm_head.weight"].T
    return hidden, scores, logits


@pytest.mark.parametrize("arch", [TOY, ODD], ids=lambda arch: arch.manifest_id)
def test_a_model_of_the_expected_shapes_runs(arch):
    ids = np.zeros((TRAIN_ODD.batch_size, TRAIN_ODD.new_rows), dtype=int)
    hidden, scores, logits = forward(arch, ids)
    assert manifest.embedding_activation(arch, TRAIN_ODD) == {"ids": ids.size, "hidden": hidden.size}
    assert scores.shape == (5, arch.num_attention_heads, TRAIN_ODD.new_rows, TRAIN_ODD.visible_rows)
    assert logits.shape == (5, 56, arch.vocab_size)


def test_a_chunk_and_a_decode_step_have_the_rows_of_the_model_that_runs_them():
    for run in (manifest.prefill_chunk(3, 32, 16, "chunk"), manifest.decode(3, 7, "decode")):
        cached = run.visible_rows - run.new_rows
        hidden, scores, _ = forward(ODD, np.zeros((run.batch_size, run.new_rows), dtype=int), cached)
        assert scores.shape == (3, 6, run.new_rows, run.visible_rows)
        assert manifest.embedding_activation(ODD, run)["hidden"] == hidden.size


def test_a_gathered_row_is_the_one_hot_product_without_the_one_hot():
    table = np.arange(TOY.vocab_size * TOY.hidden_size).reshape(TOY.vocab_size, TOY.hidden_size)
    ids = np.array([[3, 0, 15, 3]])
    one_hot = np.eye(TOY.vocab_size, dtype=int)[ids]
    assert (one_hot @ table == table[ids]).all()
    run = manifest.prefill(1, 4, "tiny")
    assert wrong("embedding_activation", "one-hot")(TOY, run)["hidden"] == one_hot.size == 64
    assert manifest.embedding_activation(TOY, run)["hidden"] == table[ids].size == 32


@pytest.mark.parametrize("part", [p for p in manifest.BLOCK.values() if p != "norm"] + ["lm_head"])
def test_the_logical_weight_multiplies_a_row_and_the_stored_one_only_where_it_is_square(part):
    logical, stored = manifest.logical_shape(ODD, part), manifest.stored_shape(ODD, part)
    row = np.zeros((2, logical[0]))
    assert (row @ np.zeros(logical)).shape == (row @ np.zeros(stored).T).shape == (2, stored[0])
    with pytest.raises(ValueError):
        row @ np.zeros(stored)
    square = RUNNING.replace(num_key_value_heads=32)
    assert manifest.logical_shape(square, "k_proj") == manifest.stored_shape(square, "k_proj")


@given(manifests())
def test_widths_are_what_laying_out_the_heads_gives(arch):
    queries = [(head, i) for head in range(arch.num_attention_heads) for i in range(arch.head_dim)]
    keys = [(head, i) for head in range(arch.num_key_value_heads) for i in range(arch.head_dim)]
    one = manifest.widths(arch)
    assert (one["d_q"], one["d_kv"]) == (len(queries), len(keys)) == (arch.d_q, arch.d_kv)
    readers = [head // one["group"] for head in range(arch.num_attention_heads)]
    assert {readers.count(head) for head in range(arch.num_key_value_heads)} == {one["group"]}


@given(st.integers(1, 5), st.integers(1, 40), st.integers(1, 12), st.integers(0, 5))
def test_a_prompt_in_chunks_and_its_decode_steps_fill_a_cache_row_by_row(batch, prompt, size, steps):
    cache = []
    for start in range(0, prompt, size):
        new = len(range(start, min(start + size, prompt)))
        run = manifest.prefill_chunk(batch, len(cache), new, "chunk")
        cache += [start] * new
        assert (run.new_rows, run.visible_rows, run.batch_size) == (new, len(cache), batch)
    assert run.visible_rows == manifest.prefill(batch, prompt, "whole").visible_rows
    for _ in range(steps):
        run = manifest.decode(batch, len(cache), "step")
        cache.append("new")
        assert (run.new_rows, run.visible_rows) == (1, len(cache))


def test_the_first_row_of_all_sees_itself():
    assert manifest.decode(2, 0, "first").visible_rows == 1
    assert manifest.prefill_chunk(2, 0, 9, "first").visible_rows == 9


def test_the_baselines_of_m_are_what_the_constructors_give():
    assert manifest.training(1, 4096, "train-full-4k") == fixtures.TRAIN_4K
    assert manifest.prefill(1, 4096, "prefill-4k") == fixtures.PREFILL_4K
    assert manifest.decode(1, 32767, "decode-visible-32k") == fixtures.DECODE_32K


# Names: what is declared against what is seen.

LLAMA = {name: default for name, default in ((f.name, f.default) for f in fields(ArchitectureManifest)) if default is not MISSING}


@given(manifests(**LLAMA))
def test_the_expected_shapes_are_those_of_the_checkpoint(arch):
    rows = tensor_rows(arch)
    assert manifest.expected_shapes(arch) == {row.name: row.shape for row in rows}
    assert len(rows) == 3 + 9 * arch.num_layers


@given(manifests())
def test_an_adapter_refuses_what_it_does_not_know_or_names_everything(arch):
    if code(manifest.expected_shapes, arch) is None:
        assert set(manifest.expected_shapes(arch)) == {row.name for row in tensor_rows(arch)}
    else:
        assert code(manifest.expected_shapes, arch) == "UNDECLARED" and not manifest.llama_like(arch)


@given(manifests(), st.randoms(use_true_random=False))
def test_what_is_taken_away_is_missing_and_what_is_added_undeclared(arch, rng):
    entries = state_entries(tensor_rows(arch))
    assert manifest.missing(arch, entries) == manifest.undeclared(arch, entries) == ()
    kept = [entry for entry in entries if rng.random() < 0.8]
    gone = sorted(e.name for e in entries if e not in kept)
    added = [entries[0].replace(name=f"zz.{i}", trainable=rng.random() < 0.5) for i in range(rng.randint(0, 3))]
    buffers = [entries[0].replace(name="buffer", kind="buffer")]
    shown = kept + added + buffers
    rng.shuffle(shown)
    assert manifest.missing(arch, tuple(shown)) == tuple(gone)
    assert manifest.undeclared(arch, tuple(shown)) == tuple(f"zz.{i}" for i in range(len(added)))


def test_equal_sums_hide_a_renamed_tensor():
    seen = tuple(e.replace(name=e.name.replace("up_proj", "w3")) for e in state_entries(tensor_rows(TOY)))
    assert sum(e.numel for e in seen) == 1_256
    assert wrong("missing", "equal-sums")(TOY, seen) == ()
    assert len(manifest.missing(TOY, seen)) == len(manifest.undeclared(TOY, seen)) == 2


# Public reports: the right number through costlib, the reported one as a named mistake.

QWEN3_4B = RUNNING.replace(num_layers=36, hidden_size=2560)  # Hq32 Hkv8 dh128


def test_B25_head_width_is_declared_not_divided():
    per_token = [12 * 36 * w["d_q"] * 4096 for w in (manifest.widths(QWEN3_4B), wrong("widths", "head-from-d")(QWEN3_4B))]
    assert per_token == [7_247_757_312, 4_529_848_320]


def test_B77_a_cache_row_is_as_wide_as_the_declared_heads():
    row = [2 * 36 * w["d_kv"] * 2 for w in (manifest.widths(QWEN3_4B), wrong("widths", "head-from-d")(QWEN3_4B))]
    assert row == [147_456, 92_160]


def test_B24_heads_times_head_dim_may_be_twice_the_hidden_size():
    arch = RUNNING.replace(num_layers=94, num_attention_heads=64, num_key_value_heads=4)
    attention = [6 * 196_608**2 * w["d_q"] * 94 for w in (manifest.widths(arch), wrong("widths", "d-for-d-q")(arch))]
    weights = 6 * 196_608 * (94 * (2 * 4096 * 8192 + 2 * 4096 * 512 + 3 * 4096 * 1536 * 8) + 151_936 * 4096)
    assert attention[0] + weights == 203_979_954_075_992_064 and attention[0] == 2 * attention[1]
    q, k = manifest.stored_shape(arch, "q_proj"), manifest.stored_shape(arch, "k_proj")
    assert (q, k) == ((8192, 4096), (512, 4096))


def test_B76_keys_are_cached_for_their_own_heads():
    loaded = [2 * 4096 * w["d_kv"] * 32 * 2 for w in (manifest.widths(RUNNING), wrong("widths", "mha-for-gqa")(RUNNING))]
    assert loaded == [536_870_912, 2_147_483_648]


def test_B02_a_copied_head_is_no_tied_head():
    entries = state_entries(tensor_rows(TOY_TIED))
    copied = (*entries[:-1], entries[-1].replace(storage="a copy"))
    assert differences(TOY_TIED, entries) == []
    assert "not tied: lm_head.weight" in differences(TOY_TIED, copied)[0]
    assert manifest.missing(TOY_TIED, copied) == ()  # names alone do not show it


def test_B12_padded_vocabulary_rows_are_no_vocabulary():
    shown = state_entries(tensor_rows(RUNNING.replace(vocab_size=8 * 16_064)))
    found = differences(RUNNING, shown)
    assert manifest.stored_shape(RUNNING, "embed_tokens") == (128_256, 4096)
    assert found == [
        f"shape of {name}.weight: declared [128256, 4096], seen [128512, 4096]" for name in ("lm_head", "model.embed_tokens")
    ]


# Refusals.

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=5), part, max_size=3),
    max_leaves=8,
)
JUNK = JSON | st.sampled_from(
    (None, True, 0, -1, 1, 2, 7, 8.0, "", "none", "learned", "gated", "decode", "all", [], {}, [3], [{"name": "a", "shape": [2]}])
)


@st.composite
def spoiled(draw, records):
    """The JSON of a valid record with up to three fields taken away, replaced or added, at any depth."""
    value = json.loads(draw(records).to_json())
    for _ in range(draw(st.integers(0, 3))):
        inner = [value, *(v for v in value.values() if isinstance(v, dict))]
        inner += [item for v in value.values() if isinstance(v, list) for item in v if isinstance(item, dict)]
        target = draw(st.sampled_from(inner))
        key = draw(st.sampled_from([*target, "surplus"]))
        if draw(st.booleans()):
            target[key] = draw(JUNK)
        else:
            target.pop(key, None)
    return value


def outcome(cls, text):
    """"" for a record, else the code of its refusal; any other exception is a failure of the test."""
    try:
        assert isinstance(cls.from_json(text), cls)
    except ManifestError as error:
        assert error.code in CODES and error.detail
        return error.code
    return ""


@given(JSON.map(json.dumps) | spoiled(manifests()).map(json.dumps) | st.text())
def test_any_text_gives_a_manifest_or_a_refusal(text):
    outcome(ArchitectureManifest, text)


@given(JSON.map(json.dumps) | spoiled(workloads()).map(json.dumps) | st.text())
def test_any_text_gives_a_workload_or_a_refusal(text):
    outcome(Workload, text)


@pytest.mark.parametrize(
    "text, refusal",
    [
        ("[" * 100_000, "JSON"),
        (RUNNING.to_json().replace('"running"', "[" * 480 + "]" * 480), "JSON"),
        (RUNNING.to_json().replace("4096", "9" * 5_000), "JSON"),
        (RUNNING.to_json().replace("4096", "1e999"), "TYPE"),
        (RUNNING.to_json().encode(), "TYPE"),
        (None, "TYPE"),
    ],
    ids=["open", "deep", "long", "infinite", "bytes", "nothing"],
)
def test_what_json_itself_cannot_carry_is_refused_too(text, refusal):
    assert outcome(ArchitectureManifest, text) == refusal


STRICT = jsonschema.validators.extend(  # JSON Schema lets 4096.0 pass for an integer; the records do not
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int),
)
SCHEMAS = {
    ArchitectureManifest: json.loads(data.read("manifest.schema.json")),
    Workload: json.loads(data.read("workload.schema.json")),
}
BETWEEN_FIELDS = {"DIVIS", "INCONSISTENT", "RANGE"}


def agree(cls, value):
    refusal, valid = outcome(cls, json.dumps(value)), STRICT(SCHEMAS[cls]).is_valid(value)
    assert refusal in {"", *BETWEEN_FIELDS} if valid else refusal


@given(spoiled(manifests() | latent_manifests()))
def test_schema_and_manifest_agree_on_all_but_the_rules_between_fields(value):
    agree(ArchitectureManifest, value)


@given(spoiled(workloads()))
def test_schema_and_workload_agree_on_all_but_the_rules_between_fields(value):
    agree(Workload, value)


@given(manifests() | latent_manifests(), workloads())
def test_what_the_records_accept_the_schemas_accept_and_it_comes_back_the_same(arch, run):
    for record in (arch, run):
        STRICT(SCHEMAS[type(record)]).validate(json.loads(record.to_json()))
        assert type(record).from_json(record.to_json()).sha256 == record.sha256


@pytest.mark.parametrize(
    "cls, schema",
    [
        (ArchitectureManifest, SCHEMAS[ArchitectureManifest]),
        (Experts, SCHEMAS[ArchitectureManifest]["$defs"]["experts"]),
        (Latent, SCHEMAS[ArchitectureManifest]["$defs"]["latent"]),
        (Tensor, SCHEMAS[ArchitectureManifest]["$defs"]["tensor"]),
        (Workload, SCHEMAS[Workload]),
    ],
)
def test_a_schema_lists_the_fields_and_defaults_of_its_record(cls, schema):
    STRICT.check_schema(schema)
    known = {field.name: field.default for field in fields(cls)}
    assert list(schema["properties"]) == list(known) and schema["additionalProperties"] is False
    assert schema["required"] == [name for name, default in known.items() if default is MISSING]
    for name, default in known.items():
        listed = schema["properties"][name].get("default", MISSING)
        assert listed is default or (type(default), list(default)) == (tuple, listed) or listed == default


def test_a_whole_float_is_where_json_schema_is_laxer():
    value = {**json.loads(RUNNING.to_json()), "hidden_size": 4096.0}
    assert jsonschema.Draft202012Validator(SCHEMAS[ArchitectureManifest]).is_valid(value)
    assert outcome(ArchitectureManifest, json.dumps(value)) == "TYPE"


FILES = {
    "toy_tied.json": TOY_TIED,
    "running.json": RUNNING,
    "w_7b.json": fixtures.W_7B,
    "w_70b.json": fixtures.W_70B,
    "w_moe.json": fixtures.W_MOE,
}


@pytest.mark.parametrize("name", FILES)
def test_a_manifest_file_is_its_fixture_printed(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = data.read(name)
    assert ArchitectureManifest.from_json(text) == FILES[name]
    assert text == json.dumps(json.loads(FILES[name].to_json()), indent=2, sort_keys=True) + "\n"


def test_a_data_file_that_is_not_there_is_refused_with_the_list():
    with pytest.raises(ManifestError, match=r"ENUM: no data file 'runing.json'; there are .*running\.json"):
        data.read("runing.json")


# All that is wrong, not the first of it.


def raw_manifests():
    """Raw dicts of required fields, some sound and some not, with a key or two that nobody knows."""
    count = st.sampled_from((0, -3, 1, 2, 3, 4, 8, True, 2.0, "2", None))
    kinds = {int: count, str: st.sampled_from(("x", 5)), bool: st.sampled_from((True, False, 0, "no"))}
    return st.tuples(
        st.fixed_dictionaries({}, optional={name: kinds[kind] for name, kind in manifest.REQUIRED.items()}),
        st.fixed_dictionaries({}, optional={"hidden_sise": count, "d_q": count}),
        st.booleans(),
    ).map(lambda parts: {**(SOUND if parts[2] else {}), **parts[0], **parts[1]})


SOUND = {name: {int: 4, str: "sound", bool: False}[kind] for name, kind in manifest.REQUIRED.items()}


@given(raw_manifests())
def test_violations_are_empty_exactly_where_the_record_accepts(raw):
    found, refusal = manifest.violations(raw), outcome(ArchitectureManifest, json.dumps(raw))
    assert (found == ()) == (refusal == "")
    assert not refusal or refusal in {violation.split()[0] for violation in found}


@given(raw_manifests())
def test_mending_what_is_named_leaves_at_most_heads_that_do_not_divide(raw):
    found = manifest.violations(raw)
    mended = dict(raw)
    for violation in found:
        word, name = violation.split()
        if word == "UNDECLARED":
            mended.pop(name)
        else:
            mended[name] = mended["num_attention_heads"] if word == "DIVIS" else SOUND[name]
    assert len({violation.split()[1] for violation in found}) == len(found)
    assert set(manifest.violations(mended)) <= {"DIVIS num_key_value_heads"}


def test_no_kv_heads_is_refused_before_it_divides():
    raw = {**SOUND, "num_key_value_heads": 0}
    with pytest.raises(ZeroDivisionError):
        raw["num_attention_heads"] % raw["num_key_value_heads"]
    assert manifest.violations(raw) == ("NONPOS num_key_value_heads",)


def test_the_required_fields_are_those_without_a_default():
    assert list(manifest.REQUIRED) == [f.name for f in fields(ArchitectureManifest) if f.default is MISSING]


@given(workloads(), st.data())
def test_every_spelling_of_a_workload_says_the_same(run, draw):
    spelt = {}
    for name in ("batch_size", "new_rows", "visible_rows"):
        spellings = [key for key, value in manifest.VOCABULARY.items() if value == name]
        for spelling in draw.draw(st.lists(st.sampled_from(spellings), min_size=1, unique=True)):
            spelt[spelling] = getattr(run, name)
    found = manifest.one_vocabulary(spelt)
    assert found == {name: getattr(run, name) for name in ("batch_size", "new_rows", "visible_rows")}
    assert Workload(workload_id="drawn", phase=run.phase, logits=run.logits, **found) == run


@given(st.dictionaries(st.sampled_from([*manifest.GATE, "colour"]), st.sampled_from((None, "", " \t", "x", "derived"))))
def test_the_gate_opens_when_every_question_has_words_behind_it(answers):
    open_questions = [name for name in manifest.GATE if answers.get(name) in (None, "", " \t")]
    assert list(manifest.unanswered(answers)) == open_questions


@pytest.mark.parametrize(
    "call, args, refusal",
    [
        (manifest.training, (1, 8, 3), "TYPE"),
        (manifest.prefill, (True, 8, "x"), "TYPE"),
        (manifest.prefill_chunk, (1, 0, 0, "x"), "NONPOS"),
        (manifest.decode, (1, -1, "x"), "NEG"),
        (manifest.stored_shape, (ODD, "rotary"), "ENUM"),
        (manifest.logical_shape, (fixtures.CLASSIC, "gate_proj"), "UNDECLARED"),
        (manifest.expected_shapes, (fixtures.W_MOE,), "UNDECLARED"),
        (manifest.missing, (TOY, list(state_entries(tensor_rows(TOY)))), "TYPE"),
        (manifest.one_vocabulary, ({"new_tokens": 1, "query_tokens": 4},), "INCONSISTENT"),
        (manifest.violations, ([],), "TYPE"),
        (manifest.widths, (json.loads(ODD.to_json()),), "TYPE"),
    ],
)
def test_a_refusal_has_its_code(call, args, refusal):
    assert code(call, *args) == refusal


# The strategies that other tests draw from.


def test_drawn_records_are_of_every_kind_and_seldom_square():
    seen = []

    @given(manifests(), workloads())
    def draw(arch, run):
        assert isinstance(arch, Record) and isinstance(run, Record)
        seen.append((arch, run))

    draw()
    archs, runs = zip(*seen)
    for field in ("mlp", "norm", "qk_norm", "position", "attention_bias", "tie_word_embeddings", "mlp_bias", "final_norm"):
        assert len({getattr(arch, field) for arch in archs}) > 1, field
    assert {run.phase for run in runs} == {"training", "prefill", "prefill-chunk", "decode"}
    assert any(arch.experts for arch in archs) and any(arch.extra_trainable_sets for arch in archs)
    assert sum(arch.d_q == arch.hidden_size or run.new_rows == arch.hidden_size for arch, run in seen) < len(seen) / 3


@given(manifests(experts=None, position="learned", num_layers=2), workloads(phase="decode", batch_size=7))
def test_a_fixed_field_stays_fixed(arch, run):
    assert (arch.experts, arch.position, arch.num_layers, arch.max_positions > 0) == (None, "learned", 2, True)
    assert (run.phase, run.batch_size, run.new_rows) == ("decode", 7, 1)
