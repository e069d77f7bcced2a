"""What may an observer have counted instead? Named hypotheses for a residual, each with its exact number. (M 0x0AF)

A hypothesis is the same plan with one thing read wrongly, counted by the ledgers themselves. It is
confirmed only by its exact number; two that give one number cannot be told apart by it. Closeness is
a hint of where to look and no explanation. Exercise modules are imported where they are used.
"""

from typing import get_args

from costlib.domain import ManifestError
from costlib.estimate import Plan
from costlib.evidence import Hypothesis
from costlib.policies import BITS, Dtype
from costlib.records import ArchitectureManifest, Workload
from costlib.units import ceil_div

DEGREES = (2, 4, 8, 16, 32, 64)
LORA_RANKS = (8, 16, 32, 64)
VOCABULARY_MULTIPLES = (64, 128, 256, 512)


def _misread(arch: ArchitectureManifest):
    """(name, text, manifest) of every manifest that `arch` is commonly mistaken for."""
    heads, width = arch.num_attention_heads, arch.hidden_size
    changes = (
        ("MHA for GQA", "as many K/V heads as query heads", {"num_key_value_heads": heads}),
        ("MQA for GQA", "one K/V head", {"num_key_value_heads": 1}),
        ("head width d / H", "head_dim guessed from hidden_size", {"head_dim": max(1, width // heads)}),
        ("two-matrix MLP", "no gate matrix", {"mlp": "two-matrix"}),
        ("gated MLP", "a gate matrix that is not there", {"mlp": "gated"}),
        ("MLP of 4d", "intermediate_size guessed from hidden_size", {"intermediate_size": 4 * width}),
        ("textbook block", "MHA and a two-matrix MLP of 4d, 12d^2 a block", {
            "num_key_value_heads": heads, "mlp": "two-matrix", "intermediate_size": 4 * width}),
        ("one layer", "one block for all of them", {"num_layers": 1}),
        ("a layer too few", "off by one block", {"num_layers": max(1, arch.num_layers - 1)}),
        ("a layer too many", "off by one block", {"num_layers": arch.num_layers + 1}),
        ("every expert active", "all routed experts charged to a token", {
            "experts": arch.experts and arch.experts.replace(experts_per_token=arch.experts.num_experts)}),
    )  # fmt: skip
    for name, text, change in changes:
        try:
            other = arch.replace(**change)
        except ManifestError:
            continue
        if other != arch:
            yield name, text, other


def _sharded(total: int):
    return [(f"shard of {n}", ceil_div(total, n), f"one of {n} ranks, evenly divided") for n in DEGREES]


def _rows(rows) -> tuple[Hypothesis, ...]:
    return tuple(Hypothesis(name=name, value=value, text=text) for name, value, text in rows)


def of_parameters(arch: ArchitectureManifest) -> tuple[Hypothesis, ...]:
    """What may have been counted in place of the unique learned scalars. Unit: scalars."""
    from costlib import params

    ledger, n = params.ledger(arch), params.coordinates(arch)
    total, table = ledger.total, arch.vocab_size * arch.hidden_size
    tied = arch.tie_word_embeddings
    matrices = arch.num_layers * params.attention_weights(arch) + ledger["blocks.experts"]
    matrices += (arch.num_layers - arch.expert_layers) * params.mlp_weights(arch, arch.intermediate_size)
    plain = arch.replace(attention_bias="none", mlp_bias=False, head_bias=False)
    other_norm = arch.replace(norm="layernorm" if arch.norm == "rmsnorm" else "rmsnorm")
    padded = [(m, ceil_div(arch.vocab_size, m) * m) for m in VOCABULARY_MULTIPLES if arch.vocab_size % m]
    lora = {
        "q and v": arch.num_layers * (2 * arch.hidden_size + arch.d_q + arch.d_kv),
        "q, k, v and o": arch.num_layers * (4 * arch.hidden_size + 2 * arch.d_q + 2 * arch.d_kv),
    }
    rows = [
        ("as declared", total, "unique learned scalars, an alias once"),
        ("tied twice", total + table, "a tied head counted by name, or copied into its own storage") if tied
        else ("tied head", total - table, "the head counted as an alias of the embedding"),
        ("head missing", total - ledger["head"], "no output head in the count"),
        ("embedding missing", total - ledger["embedding"], "no input table in the count"),
        ("vocabulary excluded", total - ledger["embedding"] - ledger["head"], "neither table nor head"),
        ("used per token", n["used"], "only matrices that every token is multiplied with"),
        ("Kaplan's N", n["kaplan"], "the same without the head"),
        ("final norm missing", total - ledger["final_norm"], "the norm after the last block left out"),
        ("norms missing", total - ledger["final_norm"] - ledger["blocks.norms"], "matrices and biases alone"),
        ("biases missing", params.ledger(plain).total, "every bias left out"),
        ("the other norm", params.ledger(other_norm).total, "RMSNorm and LayerNorm exchanged"),
        *((name, params.ledger(other).total, text) for name, text, other in _misread(arch)),
        ("packed 4-bit", total - matrices + ceil_div(matrices, 2), "block matrices stored two to a byte, numel summed"),
        ("bytes of bf16", 2 * total, "bytes read as scalars"),
        ("bytes of fp32", 4 * total, "bytes read as scalars"),
        *_sharded(total),
        *((f"vocabulary padded to {m}", total + (v - arch.vocab_size) * arch.hidden_size * (1 if tied else 2),
           f"{v} rows in every table") for m, v in padded),
        *((f"adapters of rank {r} on {where}", total + r * each, "the base with its adapters")
          for where, each in lora.items() for r in LORA_RANKS),
        *((f"only adapters of rank {r} on {where}", r * each, "what is trained, not what is loaded")
          for where, each in lora.items() for r in LORA_RANKS),
    ]  # fmt: skip
    return _rows(row for row in rows if row[0] == "as declared" or row[1] != total)


def of_forward(arch: ArchitectureManifest, workload: Workload) -> tuple[Hypothesis, ...]:
    """What may have been counted in place of one forward call, rectangular attention. Unit: FLOP."""
    from costlib import forward, params

    def count(a=arch, w=workload, area="rectangular"):
        return forward.ledger(a, w, area)

    ledger = count()
    total, head, rows = ledger.total, ledger["head"], workload.batch_size * workload.new_rows
    pairs = ledger["blocks.scores"] + ledger["blocks.values"]
    head_all = 2 * rows * arch.vocab_size * arch.hidden_size
    few_heads = pairs * arch.num_key_value_heads // arch.num_attention_heads
    rows = [
        ("as declared", total, "every matrix product, FMA = 2 FLOPs, rectangular attention"),
        ("MACs for FLOPs", total // 2, "multiply-accumulates"),
        ("attention not seen", total - pairs, "a fused attention operator without a formula: 0 for QK and PV"),
        ("attention seen twice", total + pairs, "the operator and the one it calls both counted"),
        ("MACs, attention not seen", (total - pairs) // 2, "both at once"),
        ("causal half", count(area="causal-legal").total, "only the legal pairs, each row its own too"),
        ("half of the rectangle", total - pairs // 2, "exactly half of the pairs"),
        ("K/V heads for scores", total - pairs + few_heads, "scores charged per K/V head"),
        ("head missing", total - head, "blocks alone"),
        ("head on every row", total - head + head_all, "logits of all rows"),
        ("head on the last row", total - head + head_all // workload.new_rows, "logits of one row a sequence"),
        ("lookup as a product", total + head_all, "the embedding charged as a matrix product"),
        ("2N per token", 2 * params.ledger(arch).total * rows, "every scalar twice, lookup and norms too"),
        ("2N of used matrices", 2 * params.coordinates(arch)["used"] * rows, "no attention pairs, head on every row"),
        *((name, count(a=other).total, text) for name, text, other in _misread(arch)),
        ("one sequence", total // workload.batch_size, "one sequence of the batch"),
        ("forward and backward", 3 * total, "backward charged as twice the forward"),
        *_sharded(total),
    ]
    return _rows(row for row in rows if row[0] == "as declared" or row[1] != total)


def of_training(arch: ArchitectureManifest, workload: Workload) -> tuple[Hypothesis, ...]:
    """What may have been counted in place of a step without replay, three times a forward. Unit: FLOP."""
    from costlib import forward

    ledger = forward.ledger(arch, workload)
    total, pairs = ledger.total, ledger["blocks.scores"] + ledger["blocks.values"]
    forwards = [row for row in of_forward(arch, workload) if not row.name.startswith(("forward and", "shard"))]
    rows = [
        *((row.name, 3 * row.value, row.text) for row in forwards),
        ("forward only", total, "no backward"),
        ("backward only", 2 * total, "no forward"),
        ("every block replayed", 3 * total + ledger["blocks"], "full recomputation; the head not"),
        ("all but the last product replayed", 3 * total + ledger["blocks"] - ledger["blocks.down"],
         "full recomputation that stops when nothing more is saved"),
        ("attention replayed", 3 * total + pairs, "selective recomputation of QK and PV"),
        ("scores again in backward", 3 * total + ledger["blocks.scores"], "a fused backward, charged with five products"),
        ("frozen weights", 2 * total + pairs, "no weight gradients, as under adapters; the pairs still have both"),
        *_sharded(3 * total),
    ]
    return _rows(rows)


def of_cache(arch: ArchitectureManifest, batch: int, rows: int, dtype: str = "bf16") -> tuple[Hypothesis, ...]:
    """What may have been counted in place of the K/V payload. Unit: B."""
    from costlib import phases

    def count(a=arch, b=batch, n=rows, kind=dtype):
        return phases.cache_bytes(a, b, n, kind)

    total = count()
    wide = total * arch.hidden_size // arch.head_dim
    found = [
        ("as declared", total, f"K and V of every layer in {dtype}"),
        ("K only", total // 2, "one of the two tensors"),
        ("MHA for GQA", count(arch.replace(num_key_value_heads=arch.num_attention_heads)), "cached per query head"),
        ("one K/V head", count(arch.replace(num_key_value_heads=1)), "MQA"),
        ("head width d / H", total * arch.hidden_size // arch.d_q, "head_dim guessed from hidden_size"),
        ("d for every head", wide, "heads times hidden_size"),
        *((f"{kind} for {dtype}", count(kind=kind), "another element size") for kind in get_args(Dtype) if kind != "tf32"),
        ("8-bit blocks", total * 16 * 34 // (BITS[dtype] * 64), "one byte a value, one fp16 scale to 32 of them"),
        ("4-bit blocks", total * 16 * 18 // (BITS[dtype] * 64), "half a byte a value, one fp16 scale to 32 of them"),
        ("one layer", total // arch.num_layers, "one layer's pages"),
        ("half of the layers", total // 2, "the other half, sliding windows perhaps, left out"),
        ("one sequence", total // batch, "one sequence of the batch"),
        ("a row too few", count(n=rows - 1) if rows > 1 else 0, "the new token does not see itself"),
        ("a row too many", count(n=rows + 1), "off by one"),
        *((f"pages of {n} rows", count(n=ceil_div(rows, n) * n), "rounded up to whole pages") for n in (16, 64, 256)),
        ("GiB read as GB", total * 10**9 // 2**30, "a number of GiB with GB behind it"),
        ("GB read as GiB", total * 2**30 // 10**9, "a number of GB with GiB behind it"),
        ("bits for bytes", 8 * total, "eight times too much"),
        *_sharded(total),
    ]
    return _rows(row for row in found if row[0] == "as declared" or row[1] != total)


def of_plan(plan: Plan, ledger: str) -> tuple[Hypothesis, ...]:
    """The hypotheses for one of an estimate's ledgers; none where there is no list for it."""
    arch, work = plan.architecture, plan.workload
    if ledger == "parameters":
        return of_parameters(arch)
    if ledger == "forward" and work and plan.attention_area == "rectangular":
        return of_forward(arch, work)
    if ledger == "cache payload" and work:
        return of_cache(arch, work.batch_size, work.visible_rows, plan.cache_dtype)
    return ()


def explain(candidates: tuple[Hypothesis, ...], observed: int, most: int = 5) -> list[dict]:
    """The first `most` hypotheses in the order of reconcile.ranked, each with its number and whether it is that one."""
    from costlib import reconcile

    by_name = {row.name: row for row in candidates}
    return [
        {"name": name, "value": by_name[name].value, "residual": residual, "exact": residual == 0, "text": by_name[name].text}
        for name, residual in reconcile.ranked(candidates, observed)[:most]
    ]
