"""Which real model does a manifest describe? Llama classes of Transformers, from a manifest, without weights."""

from costlib.domain import require
from costlib.observe import need
from costlib.records import ArchitectureManifest

TORCH_DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
NOT_LLAMA = {  # field: what Llama has in its place
    "mlp": "gated",
    "norm": "rmsnorm",
    "norms_per_block": 2,
    "final_norm": True,
    "qk_norm": "none",
    "position": "rope",
    "head_bias": False,
    "experts": None,
    "latent": None,
    "extra_trainable_sets": (),
}


def config(arch: ArchitectureManifest, rows: int = 131072):
    """The LlamaConfig of a manifest, for at most `rows` positions; what Llama has not is refused (UNDECLARED)."""
    for field, has in NOT_LLAMA.items():
        value = getattr(arch, field)
        require(value == has, "UNDECLARED", f"{arch.manifest_id} declares {field} = {value!r}; Llama has {has!r}")
    require(arch.attention_bias != "qkv", "UNDECLARED", f"{arch.manifest_id} has biases on q, k and v; Llama on all four or none")
    _, transformers = need()
    return transformers.LlamaConfig(
        vocab_size=arch.vocab_size,
        hidden_size=arch.hidden_size,
        intermediate_size=arch.intermediate_size,
        num_hidden_layers=arch.num_layers,
        num_attention_heads=arch.num_attention_heads,
        num_key_value_heads=arch.num_key_value_heads,
        head_dim=arch.head_dim,
        tie_word_embeddings=arch.tie_word_embeddings,
        attention_bias=arch.attention_bias == "all",
        mlp_bias=arch.mlp_bias,
        max_position_embeddings=rows,
        use_cache=False,
    )


def build(arch: ArchitectureManifest, dtype: str = "bf16", attention: str = "eager", device: str = "meta"):
    """A LlamaForCausalLM of that shape with no weights (meta) or random ones (cpu), in training mode.

    attention: "eager" or "sdpa". On meta nothing is computed and nothing is stored; a mask must be
    given there (`mask`), since Transformers looks at the values of one it makes itself.
    """
    torch, transformers = need()
    require(dtype in TORCH_DTYPES, "ENUM", f"dtype = {dtype!r}; allowed: {', '.join(TORCH_DTYPES)}")
    torch.manual_seed(0)
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(
            config(arch), dtype=getattr(torch, TORCH_DTYPES[dtype]), attn_implementation=attention
        )
    return model.train()


def tokens(batch: int, rows: int, device: str = "meta"):
    """Token numbers [batch, rows], all 0."""
    torch, _ = need()
    return torch.zeros((batch, rows), dtype=torch.long, device=device)


def mask(batch: int, rows: int, visible: int | None = None, dtype: str = "bf16", device: str = "meta"):
    """An additive causal mask [batch, 1, rows, visible]: query i may read keys up to visible - rows + i."""
    torch, _ = need()
    visible = visible or rows
    kind = getattr(torch, TORCH_DTYPES[dtype])
    allowed = torch.ones((rows, visible), dtype=torch.bool, device=device).tril(visible - rows)
    additive = torch.zeros((rows, visible), dtype=kind, device=device).masked_fill(~allowed, torch.finfo(kind).min)
    return additive.expand(batch, 1, rows, visible)
