"""M 0x00 and 0x01: contracts and the manifest; M 0x0AB and 0x0AH: what is refused before counting."""

import json
from dataclasses import fields
from fractions import Fraction

from costlib import data, manifest, napkin, policies, records, schema
from costlib.domain import ManifestError
from costlib.fixtures import DECODE_32K, PREFILL_4K, RUNNING, TOY, TOY_TIED, TRAIN_4K, W_MOE
from costlib.records import ArchitectureManifest, Record
from costlib.units import GB, GIB

OWNS = ("M.00", "M.01", "M.0AB", "M.0AH")
TINY_JSON = {  # M 0x0AB as it is printed
    "num_layers": 2,
    "hidden_size": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 2,
    "intermediate_size": 12,
    "vocab_size": 16,
    "tie_word_embeddings": True,
}
TINY_ROWS = {"batch_size": 1, "new_tokens": 4, "query_tokens": 4, "visible_kv_tokens": 4}


def tiny():
    """The toy of the data folder, as a reader of JSON gets it."""
    return ArchitectureManifest.from_json(data.read("toy_tied.json"))


def tiny_workload():
    rows = manifest.one_vocabulary(TINY_ROWS)
    assert rows["new_rows"] == rows["visible_rows"]
    return manifest.prefill(rows["batch_size"], rows["new_rows"], "tiny-prefill")


def code(text):
    try:
        ArchitectureManifest.from_json(text)
    except ManifestError as error:
        return error.code


def changed(**changes):
    return json.dumps({**json.loads(RUNNING.to_json()), **changes})


def extents(workload):
    return workload.batch_size, workload.new_rows, workload.visible_rows


def same_numel():
    """The toy with one query projection stored as [4, 16]."""
    seen = schema.state_entries(schema.tensor_rows(TOY))
    return tuple(e.replace(shape=(4, 16)) if e.name == "model.layers.0.self_attn.q_proj.weight" else e for e in seen)


def record_fields():
    """Every field name of every record in costlib's given modules."""
    classes = [c for module in (records, policies) for c in vars(module).values() if isinstance(c, type)]
    return {field.name for c in classes if issubclass(c, Record) and c is not Record for field in fields(c)}


FACTS = {
    "M.01A.001": lambda: RUNNING.num_layers,
    "M.01A.002": lambda: RUNNING.hidden_size,
    "M.01A.003": lambda: RUNNING.num_attention_heads,
    "M.01A.004": lambda: RUNNING.num_key_value_heads,
    "M.01A.005": lambda: RUNNING.head_dim,
    "M.01A.006": lambda: RUNNING.intermediate_size,
    "M.01A.007": lambda: RUNNING.vocab_size,
    "M.01A.008": lambda: manifest.widths(RUNNING)["d_q"],
    "M.01A.009": lambda: manifest.widths(RUNNING)["d_kv"],
    "M.01A.011": lambda: manifest.stored_shape(RUNNING, "q_proj")[0],
    "M.01A.012": lambda: manifest.stored_shape(RUNNING, "k_proj")[0],
    "M.01B.003": lambda: manifest.decode(1, 32767, "d").visible_rows - 32767,
    "M.0AB.001": lambda: tiny().num_layers,
    "M.0AB.002": lambda: tiny().hidden_size,
    "M.0AB.003": lambda: tiny().num_attention_heads,
    "M.0AB.004": lambda: tiny().num_key_value_heads,
    "M.0AB.005": lambda: tiny().head_dim,
    "M.0AB.006": lambda: tiny().intermediate_size,
    "M.0AB.007": lambda: tiny().vocab_size,
    "M.0AB.008": lambda: tiny_workload().batch_size,
    "M.0AB.009": lambda: tiny_workload().new_rows,
    "M.0AB.010": lambda: manifest.one_vocabulary({"query_tokens": TINY_ROWS["query_tokens"]})["new_rows"],
    "M.0AB.011": lambda: tiny_workload().visible_rows,
    "M.0AB.012": lambda: tiny_workload().batch_size * {"final": 1}[tiny_workload().logits],
    "M.0AH.003": lambda: next(e.numel for e in same_numel() if e.shape == (4, 16)),
}

TEXTS = {
    "M.00C.001": lambda: len(manifest.GATE) == 6 and list(manifest.GATE)[-1] == "observation",
    "M.00D.001": lambda: manifest.unanswered({}) == tuple(manifest.GATE) and len(manifest.GATE) == 6,
    "M.01A.010": lambda: RUNNING.extra_trainable_sets == () and RUNNING.experts is None and manifest.llama_like(RUNNING),
    "M.01B.001": lambda: (
        manifest.training(1, 4096, "train-full-4k") == TRAIN_4K
        and manifest.prefill(1, 4096, "prefill-4k") == PREFILL_4K
        and extents(TRAIN_4K) == extents(PREFILL_4K) == (1, 4096, 4096)
    ),
    "M.01B.002": lambda: (
        manifest.decode(1, 32767, "decode-visible-32k") == DECODE_32K and extents(DECODE_32K) == (1, 1, 32768)
    ),
    "M.01C.001": lambda: napkin.matmul_flops(1, 1, 1) == 2,
    "M.01C.002": lambda: GB == 10**9,
    "M.01C.003": lambda: GIB == 2**30 == 1_073_741_824,
    "M.01C.004": lambda: policies.Ownership(policy_id="single-rank", world_size=1).data_parallel == 1,
    # The document breaks its own rule elsewhere (M-04); no record here has a field of that name.
    "M.01D.001": lambda: "b" not in record_fields() and "batch_size" in record_fields(),
    "M.01E.001": lambda: (
        manifest.embedding_activation(RUNNING, TRAIN_4K) == {"ids": 4096, "hidden": 4096 * 4096}
        and Fraction(2 * 4096 * RUNNING.vocab_size, GIB) == Fraction("0.978515625")
    ),
    # The trace forgets to rotate (M-07); rotary positions store nothing, so the names are the same.
    "M.01F.001": lambda: RUNNING.position == "rope" and not any("rot" in n for n in manifest.expected_shapes(RUNNING)),
    # The printed dataclass drops the declared absences (M-05); this record keeps them and knows no other field.
    "M.01H.001": lambda: (
        {"position", "experts", "norm", "mlp", "extra_trainable_sets"} <= set(manifest.FIELDS)
        and code(changed(adapters=1)) == "UNDECLARED"
    ),
    # The printed validation is a list of asserts (M-06); this one raises, and before it divides.
    "M.01H.002": lambda: [code(changed(num_key_value_heads=n)) for n in (0, True, 7)] == ["NONPOS", "TYPE", "DIVIS"],
    # d_q = d is the fixture's, no rule: the mixture of experts of W has another packed width.
    "M.01H.003": lambda: manifest.widths(W_MOE)["d_q"] == 128 * 128 != W_MOE.hidden_size == 7168,
    "M.01H.004": lambda: len(manifest.expected_shapes(RUNNING)) == 3 + 32 * 9 == 291,
    # The printed manifest lacks what its own validator asks for (M-15); without an id ours refuses it too.
    "M.0AB.013": lambda: (
        manifest.violations(TINY_JSON) == ("MISSING manifest_id",)
        and code(json.dumps(TINY_JSON)) == "MISSING"
        and ArchitectureManifest(manifest_id="toy-tied", **TINY_JSON) == TOY_TIED == tiny()
    ),
    "M.0AH.005": lambda: manifest.stored_shape(TOY, "q_proj") == (8, 8),
    "M.0AH.006": lambda: schema.differences(TOY, same_numel()) == [
        "shape of model.layers.0.self_attn.q_proj.weight: declared [8, 8], seen [4, 16]"
    ],
}

REST = {
    "M.00F.001": "six questions put to the reader of a number: chapter 0x00 shows them, no function counts them",
    "M.0AH.001": "an input of a rejection test, not a result: the test of lab 11 explains 64 B of a residual of 128 B",
    "M.0AH.002": "an input of a rejection test, not a result: the test of lab 11 explains 64 B of a residual of 128 B",
    "M.0AH.004": "the size of a test suite that the document does not come with (M-21: it has 14 tests, not 8)",
}
