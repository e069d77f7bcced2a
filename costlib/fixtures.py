"""Which models does the course count? Named manifests and workloads; each name is used in a page or a lab."""

from costlib.policies import LiveObject, StatePolicy, StateRow
from costlib.records import ArchitectureManifest, Experts, Tensor, Workload

RUNNING = ArchitectureManifest(  # M 0x01A
    manifest_id="running",
    num_layers=32,
    hidden_size=4096,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=128,
    intermediate_size=14336,
    vocab_size=128256,
    tie_word_embeddings=False,
)
TOY = ArchitectureManifest(  # M 0x02G: small enough to add up by hand
    manifest_id="toy",
    num_layers=2,
    hidden_size=8,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=2,
    intermediate_size=12,
    vocab_size=16,
    tie_word_embeddings=False,
)
TOY_TIED = TOY.replace(manifest_id="toy-tied", tie_word_embeddings=True)

# No two extents are equal and none divides another by accident, so that no slip can hide.
ODD = ArchitectureManifest(
    manifest_id="odd",
    num_layers=3,
    hidden_size=96,
    num_attention_heads=6,
    num_key_value_heads=2,
    head_dim=20,
    intermediate_size=250,
    vocab_size=1009,
    tie_word_embeddings=False,
)
ODD_TIED = ODD.replace(manifest_id="odd-tied", tie_word_embeddings=True)
ODD_EVERYTHING = ODD.replace(  # every optional part at once
    manifest_id="odd-everything",
    tie_word_embeddings=True,
    mlp="two-matrix",
    norm="layernorm",
    qk_norm="per-head",
    position="learned",
    max_positions=77,
    attention_bias="all",
    mlp_bias=True,
    head_bias=True,
    extra_trainable_sets=(Tensor(name="adapter.weight", shape=(11, 96)),),
)
ODD_EXPERTS = ODD.replace(
    manifest_id="odd-experts",
    experts=Experts(
        num_experts=7, experts_per_token=2, intermediate_size=34, shared_experts=1, first_dense_layers=1
    ),
)


def classic_block(num_layers: int, hidden_size: int, vocab_size: int, num_heads: int) -> ArchitectureManifest:
    """The textbook block of M 0x02F: MHA and a 4d two-matrix MLP, all biased, two LayerNorms,
    untied vocabulary, no final norm and no learned positions: L(12d^2 + 13d) + 2Vd scalars."""
    return ArchitectureManifest(
        manifest_id=f"classic-{num_layers}x{hidden_size}",
        num_layers=num_layers,
        hidden_size=hidden_size,
        num_attention_heads=num_heads,
        num_key_value_heads=num_heads,
        head_dim=hidden_size // num_heads,
        intermediate_size=4 * hidden_size,
        vocab_size=vocab_size,
        tie_word_embeddings=False,
        mlp="two-matrix",
        norm="layernorm",
        final_norm=False,
        position="sinusoidal",
        attention_bias="all",
        mlp_bias=True,
    )


CLASSIC = classic_block(num_layers=12, hidden_size=768, vocab_size=50257, num_heads=12)


def _w(manifest_id, layers, d, d_ff, heads, kv_heads, vocab, **other):
    return ArchitectureManifest(
        manifest_id=manifest_id,
        num_layers=layers,
        hidden_size=d,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=128,
        intermediate_size=d_ff,
        vocab_size=vocab,
        tie_word_embeddings=False,
        **other,
    )


W_7B = _w("w-7b", 32, 4096, 11008, 32, 32, 32000)  # W Chapter 4, the shape of Llama 2 7B
W_70B = _w("w-70b", 80, 8192, 28672, 64, 8, 32000)  # W Chapters 6 to 9, the shape of Llama 2 70B
W_MOE = _w(  # W Chapter 7: resembles DeepSeek-V3, with plain multi-head attention in every block
    "w-moe",
    60,
    7168,
    2048,
    128,
    128,
    129280,
    experts=Experts(num_experts=256, experts_per_token=8, intermediate_size=2048, shared_experts=1),
)
# W Chapter 4: the document calls the last two "7B" and "70B"; a gated MLP of width 4d makes them larger.
TRAP = tuple(
    _w(f"trap-{name}", layers, d, 4 * d, d // 128, d // 128, 256000)
    for name, layers, d in (("tiny", 8, 512), ("small", 12, 1024), ("10.7B", 32, 4096), ("90.1B", 80, 8192))
)

MANIFESTS = {
    m.manifest_id: m
    for m in (RUNNING, TOY, TOY_TIED, ODD, ODD_EVERYTHING, ODD_EXPERTS, CLASSIC, W_7B, W_70B, W_MOE, *TRAP)
}

TRAIN_4K = Workload(  # M 0x01B
    workload_id="train-full-4k", phase="training", batch_size=1, new_rows=4096, visible_rows=4096, logits="all"
)
PREFILL_4K = Workload(
    workload_id="prefill-4k", phase="prefill", batch_size=1, new_rows=4096, visible_rows=4096, logits="final"
)
DECODE_32K = Workload(
    workload_id="decode-visible-32k", phase="decode", batch_size=1, new_rows=1, visible_rows=32768, logits="final"
)
TRAIN_ODD = Workload(
    workload_id="train-odd", phase="training", batch_size=5, new_rows=56, visible_rows=56, logits="all"
)
WORKLOADS = {w.workload_id: w for w in (TRAIN_4K, PREFILL_4K, DECODE_32K, TRAIN_ODD)}


def _policy(policy_id, weights, gradients="", optimizer=""):
    """Weights, then what training adds: gradients from backward to zero-grad, moments from the first step on."""
    rows = [StateRow(role="weights", counts="loaded", dtype=weights)]
    for role, dtype in (pair.split(":") for pair in f"{gradients} {optimizer}".split()):
        points = {
            "gradients": {"created": "backward", "released": "zero-grad", "owner": "autograd"},
            "optimizer": {"created": "construction" if role.endswith("master") else "step", "owner": "optimizer"},
        }[role.partition(".")[0]]
        rows.append(StateRow(role=role, counts="trained", dtype=dtype, **points))
    return StatePolicy(policy_id=policy_id, rows=tuple(rows))


_MOMENTS = "optimizer.m:fp32 optimizer.v:fp32"
INFER_BF16 = _policy("infer-bf16", "bf16")  # M 0x03F: 2, 4, 12, 16, 16 and 20 bytes per scalar
INFER_FP32 = _policy("infer-fp32", "fp32")
MASTERLESS = _policy("masterless", "bf16", "gradients:bf16", _MOMENTS)
AUTOCAST = _policy("autocast", "fp32", "gradients:fp32", _MOMENTS)
MASTER = _policy("master", "bf16", "gradients:bf16", f"optimizer.master:fp32 {_MOMENTS}")
A16 = _policy(
    "a16", "bf16", "gradients.working:bf16 gradients.update:fp32", f"optimizer.master:fp32 {_MOMENTS}"
)
POLICIES = {p.policy_id: p for p in (INFER_BF16, INFER_FP32, MASTERLESS, AUTOCAST, MASTER, A16)}


def _live(role, name, size, birth, death):
    needed = "its layer's backward" if role == "saved" else ""
    return LiveObject(name=name, bytes=size, birth=birth, death=death, storage=name, role=role, needed_by=needed)


LIVE_TOY = (  # M 0x04C in GiB, instants in tenths: five objects that never all coexist
    _live("persistent", "state", 20 * 2**30, 0, 50),
    _live("saved", "A", 4 * 2**30, 0, 40),
    _live("temporary", "B", 5 * 2**30, 10, 20),
    _live("workspace", "W", 3 * 2**30, 15, 18),
    _live("gradient", "C", 6 * 2**30, 20, 30),
)
LIVE_TINY = (  # M 0x0AD: attention of one toy layer on four rows, bf16
    _live("temporary", "hidden", 64, 0, 5),
    _live("temporary", "q", 64, 1, 5),
    _live("temporary", "k", 32, 1, 5),
    _live("temporary", "v", 32, 1, 5),
    _live("temporary", "scores", 128, 2, 4),
    _live("workspace", "gemm", 128, 2, 3),
    _live("temporary", "probabilities", 128, 3, 5),
    _live("temporary", "context", 64, 4, 5),
)
