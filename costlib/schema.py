"""Which tensors does a checkpoint store? Names, stored shapes and aliases of a manifest's model."""

from costlib.records import ArchitectureManifest, StateEntry, Tensor


def tensor_rows(arch: ArchitectureManifest) -> tuple[Tensor, ...]:
    """Every tensor a checkpoint of this model stores: name, shape in stored axes, dtype, alias.

    Names follow Llama's state_dict where it has them. A tied head is a row with `alias_of`.
    Source: M 0x02, 0x02A.
    """
    d, e = arch.hidden_size, arch.experts
    rows = []

    def add(name, shape, bias=False, alias_of=None):
        rows.append(Tensor(name=f"{name}.weight", shape=shape, alias_of=alias_of))
        if bias:
            rows.append(Tensor(name=f"{name}.bias", shape=shape[:1]))

    def mlp(prefix, width, bias=False):
        for name in ("gate_proj", "up_proj", "down_proj")[arch.mlp == "two-matrix" :]:
            add(f"{prefix}.{name}", (d, width) if name == "down_proj" else (width, d), bias)

    def norm(name, width):
        add(name, (width,), arch.norm == "layernorm")

    add("model.embed_tokens", (arch.vocab_size, d))
    if arch.position == "learned":
        add("model.embed_positions", (arch.max_positions, d))
    for i in range(arch.num_layers):
        layer, qkv = f"model.layers.{i}", arch.attention_bias != "none"
        for j in range(arch.norms_per_block):
            norm(f"{layer}.{('input_layernorm', 'post_attention_layernorm')[j] if j < 2 else f'norm_{j}'}", d)
        if arch.latent:
            for name, shape in _latent_shapes(arch):
                add(f"{layer}.self_attn.{name}", shape)
        else:
            for name, width in (("q_proj", arch.d_q), ("k_proj", arch.d_kv), ("v_proj", arch.d_kv)):
                add(f"{layer}.self_attn.{name}", (width, d), qkv)
            add(f"{layer}.self_attn.o_proj", (d, arch.d_q), arch.attention_bias == "all")
            for name, width in (("q_norm", arch.d_q), ("k_norm", arch.d_kv)):
                if arch.qk_norm != "none":
                    add(f"{layer}.self_attn.{name}", (arch.head_dim if arch.qk_norm == "per-head" else width,))
        if e and i >= e.first_dense_layers:
            add(f"{layer}.mlp.gate", (e.num_experts, d))
            for j in range(e.num_experts):
                mlp(f"{layer}.mlp.experts.{j}", e.intermediate_size)
            for j in range(e.shared_experts):
                mlp(f"{layer}.mlp.shared_experts.{j}", e.intermediate_size)
        else:
            mlp(f"{layer}.mlp", arch.intermediate_size, arch.mlp_bias)
    if arch.final_norm:
        norm("model.norm", d)
    add("lm_head", (arch.vocab_size, d), arch.head_bias, "model.embed_tokens.weight" if arch.tie_word_embeddings else None)
    return (*rows, *arch.extra_trainable_sets)


def _latent_shapes(arch):
    d, heads, part = arch.hidden_size, arch.num_attention_heads, arch.latent
    if part.query_rank:
        yield "q_a_proj", (part.query_rank, d)
        yield "q_a_layernorm", (part.query_rank,)
    yield "q_b_proj" if part.query_rank else "q_proj", (heads * arch.head_dim, part.query_rank or d)
    yield "kv_a_proj_with_mqa", (part.kv_rank + part.rope_head_dim, d)
    yield "kv_a_layernorm", (part.kv_rank,)
    yield "kv_b_proj", (heads * (arch.head_dim - part.rope_head_dim + part.value_head_dim), part.kv_rank)
    yield "o_proj", (d, heads * part.value_head_dim)


def differences(arch: ArchitectureManifest, entries: tuple[StateEntry, ...]) -> list[str]:
    """Where the parameters of a running model are not those the manifest declares: by name, by shape
    and by which names share a storage, never by the sum of scalars. Source: M 0x01H, 0x02H."""
    declared = {tensor.name: tensor for tensor in tensor_rows(arch)}
    seen = {entry.name: entry for entry in entries if entry.kind == "parameter"}
    found = [f"missing: {name}" for name in declared if name not in seen]
    found += [f"undeclared: {name}" for name in seen if name not in declared]
    for name in declared.keys() & seen.keys():
        tensor, entry = declared[name], seen[name]
        if tensor.shape != entry.shape:
            found.append(f"shape of {name}: declared {list(tensor.shape)}, seen {list(entry.shape)}")
        shares = [other.name for other in entries if other.storage == entry.storage and other.name != name]
        if tensor.alias_of and tensor.alias_of not in shares:
            found.append(f"not tied: {name} is declared an alias of {tensor.alias_of} and has its own storage")
        if shares and not tensor.alias_of and not any(o.alias_of == name for o in declared.values()):
            found.append(f"tied: {name} shares storage with {', '.join(shares)}, which nothing declares")
    return sorted(found)


def state_entries(tensors: tuple[Tensor, ...], frozen: tuple[str, ...] = ()) -> tuple[StateEntry, ...]:
    """What a model with these tensors shows: an alias shares its original's storage; the tensors whose
    names start with one of `frozen` are not trainable."""
    return tuple(
        StateEntry(
            name=tensor.name,
            shape=tensor.shape,
            storage=tensor.alias_of or tensor.name,
            trainable=not (tensor.alias_of or tensor.name).startswith(frozen),
        )
        for tensor in tensors
    )
