"""Real models, whole and broken on purpose, entry by entry."""

import pytest
from torch import nn

from costlib import reconcile
from costlib.domain import ManifestError
from costlib.fixtures import ODD, ODD_EVERYTHING, ODD_EXPERTS, TOY_TIED
from costlib.observe import models, parameters
from costlib.records import Tensor
from costlib.schema import tensor_rows

HEAD, TABLE = "lm_head.weight", "model.embed_tokens.weight"


def seen(model, arch=TOY_TIED):
    entries = parameters.state_entries(model)
    return {kind: names for kind, names in reconcile.state(tensor_rows(arch), entries).items() if names}


@pytest.fixture(params=["meta", "cpu"])
def tiny(request):
    return models.build(TOY_TIED, device=request.param)


def test_a_whole_model_has_no_difference(tiny):
    assert seen(tiny) == {}
    assert [e.name for e in parameters.state_entries(tiny) if e.storage == TABLE] == [TABLE, HEAD]


def test_a_head_that_a_loader_copied_is_no_longer_tied(tiny):
    tiny.lm_head.weight = nn.Parameter(tiny.lm_head.weight.detach().clone())
    assert seen(tiny) == {"broken alias": [HEAD]}
    assert parameters.of_model(tiny, "x", "a copied head").value("parameters") == 1_256


def test_a_view_shares_the_storage_without_being_the_same_tensor(tiny):
    tiny.lm_head.weight = nn.Parameter(tiny.model.embed_tokens.weight.detach().view(8, 16))
    assert seen(tiny) == {"shape": [HEAD]}
    assert parameters.of_model(tiny, "x", "a view").value("weight payload") == 2 * 1_128


def test_a_reshaped_weight_a_frozen_one_a_buffer_and_another_dtype(tiny):
    layer = tiny.model.layers[0]
    layer.self_attn.q_proj.weight = nn.Parameter(layer.self_attn.q_proj.weight.detach().reshape(4, 16))
    layer.mlp.up_proj.weight.requires_grad_(False)
    scale = layer.input_layernorm.weight.detach()
    del layer.input_layernorm.weight
    layer.input_layernorm.register_buffer("weight", scale)
    tiny.model.norm.float()
    tiny.lm_head.register_buffer("mine", scale.clone())
    prefix = "model.layers.0."
    norm = f"{prefix}input_layernorm.weight"
    assert seen(tiny) == {
        "shape": [f"{prefix}self_attn.q_proj.weight"],
        "trainability": [norm, f"{prefix}mlp.up_proj.weight"],
        "kind": [norm],
        "dtype": ["model.norm.weight"],
        "unexpected": ["lm_head.mine"],
    }


@pytest.mark.parametrize("arch, field", [
    (ODD_EVERYTHING, "mlp"),
    (ODD_EXPERTS, "experts"),
    (ODD.replace(norm="layernorm"), "norm"),
    (ODD.replace(norms_per_block=4), "norms_per_block"),
    (ODD.replace(final_norm=False), "final_norm"),
    (ODD.replace(qk_norm="per-head"), "qk_norm"),
    (ODD.replace(position="sinusoidal"), "position"),
    (ODD.replace(head_bias=True), "head_bias"),
    (ODD.replace(attention_bias="qkv"), "biases on q, k and v"),
    (ODD.replace(extra_trainable_sets=(Tensor(name="adapter", shape=(3,)),)), "extra_trainable_sets"),
])  # fmt: skip
def test_what_llama_has_not_is_refused(arch, field):
    with pytest.raises(ManifestError, match=f"UNDECLARED: {arch.manifest_id} .*{field}"):
        models.build(arch)


def test_a_dtype_that_no_model_is_built_in_is_refused():
    with pytest.raises(ManifestError, match="ENUM: dtype = 'int4'; allowed: fp32, bf16, fp16"):
        models.build(ODD, dtype="int4")
