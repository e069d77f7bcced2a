"""Reference answers of Lab 02. Other exercises are called through costlib, so that filled and empty holes mix."""

from costlib import manifest
from costlib.domain import require
from costlib.manifest import BLOCK, FIELDS, GATE, REQUIRED, VOCABULARY, llama_like
from costlib.records import Workload
from costlib.schema import tensor_rows


def widths(arch):
    return {
        "d_q": arch.num_attention_heads * arch.head_dim,
        "d_kv": arch.num_key_value_heads * arch.head_dim,
        "group": arch.num_attention_heads // arch.num_key_value_heads,
    }


def training(batch, rows, workload_id):
    return Workload(
        workload_id=workload_id, phase="training", batch_size=batch, new_rows=rows, visible_rows=rows, logits="all"
    )


def prefill(batch, rows, workload_id):
    return Workload(
        workload_id=workload_id, phase="prefill", batch_size=batch, new_rows=rows, visible_rows=rows, logits="final"
    )


def prefill_chunk(batch, prefix, new, workload_id):
    return Workload(
        workload_id=workload_id,
        phase="prefill-chunk",
        batch_size=batch,
        new_rows=new,
        visible_rows=prefix + new,
        logits="final",
    )


def decode(batch, prefix, workload_id):
    return Workload(
        workload_id=workload_id, phase="decode", batch_size=batch, new_rows=1, visible_rows=prefix + 1, logits="final"
    )


def one_vocabulary(data):
    found = {}
    for key, value in data.items():
        require(key in VOCABULARY, "UNDECLARED", f"{key!r} is no extent of a workload; known: {', '.join(VOCABULARY)}")
        kept = found.setdefault(VOCABULARY[key], value)
        require(kept == value, "INCONSISTENT", f"{VOCABULARY[key]} is {kept}, and {value} as {key}")
    return found


def embedding_activation(arch, workload):
    rows = workload.batch_size * workload.new_rows
    return {"ids": rows, "hidden": rows * arch.hidden_size}


def stored_shape(arch, part):
    d, d_q, d_kv, d_ff, V = arch.hidden_size, arch.d_q, arch.d_kv, arch.intermediate_size, arch.vocab_size
    require(part != "gate_proj" or arch.mlp == "gated", "UNDECLARED", f"{arch.manifest_id} has no gate_proj")
    return {
        "embed_tokens": (V, d),
        "q_proj": (d_q, d),
        "k_proj": (d_kv, d),
        "v_proj": (d_kv, d),
        "o_proj": (d, d_q),
        "gate_proj": (d_ff, d),
        "up_proj": (d_ff, d),
        "down_proj": (d, d_ff),
        "norm": (d,),
        "lm_head": (V, d),
    }[part]


def logical_shape(arch, part):
    stored = manifest.stored_shape(arch, part)
    return stored if part == "embed_tokens" else stored[::-1]


def expected_shapes(arch):
    require(llama_like(arch), "UNDECLARED", f"{arch.manifest_id} is not Llama-like; its checkpoint needs another adapter")
    shapes = {"model.embed_tokens.weight": manifest.stored_shape(arch, "embed_tokens")}
    for i in range(arch.num_layers):
        for path, part in BLOCK.items():
            shapes[f"model.layers.{i}.{path}.weight"] = manifest.stored_shape(arch, part)
    shapes["model.norm.weight"] = manifest.stored_shape(arch, "norm")
    shapes["lm_head.weight"] = manifest.stored_shape(arch, "lm_head")
    return shapes


def missing(arch, entries):
    seen = {entry.name for entry in entries if entry.kind == "parameter"}
    return tuple(sorted({tensor.name for tensor in tensor_rows(arch)} - seen))


def undeclared(arch, entries):
    seen = {entry.name for entry in entries if entry.kind == "parameter"}
    return tuple(sorted(seen - {tensor.name for tensor in tensor_rows(arch)}))


def field_violations(data):
    found = []
    for name, kind in REQUIRED.items():
        if name not in data:
            found.append(f"MISSING {name}")
        elif type(data[name]) is not kind:
            found.append(f"TYPE {name}")
        elif kind is int and data[name] < 1:
            found.append(f"NONPOS {name}")
    return tuple(found)


def violations(data):
    found = manifest.field_violations(data)
    sound = not any(violation.endswith(("num_attention_heads", "num_key_value_heads")) for violation in found)
    if sound and data["num_attention_heads"] % data["num_key_value_heads"]:
        found += ("DIVIS num_key_value_heads",)
    return found + tuple(f"UNDECLARED {key}" for key in data if key not in FIELDS)


def unanswered(answers):
    return tuple(name for name in GATE if not str(answers.get(name) or "").strip())
