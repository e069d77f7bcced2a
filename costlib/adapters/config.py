"""How is one configuration read? Its keys, their defaults, and the table of adapters."""

from costlib.domain import Size, checker, require, require_divides
from costlib.records import Tensor

ADAPTERS = {}  # model type: (adapter, keys of it that change no count)
IRRELEVANT = frozenset(
    """_name_or_path architectures attention_dropout auto_map bos_token_id chunk_size_feed_forward dtype
    eos_token_id hidden_act id2label initializer_range label2id max_position_embeddings model_type
    output_attentions output_hidden_states pad_token_id problem_type return_dict rms_norm_eps
    rope_parameters rope_scaling rope_theta tokenizer_class torch_dtype transformers_version use_cache""".split()
)
WINDOWS = "sliding_window use_sliding_window max_window_layers layer_types "  # which pairs are legal, not how many there are
ROUTING = "norm_topk_prob output_router_logits router_aux_loss_coef "
LAYERNORM = "layer_norm_eps layer_norm_epsilon "
NONE = object()  # no default


class Config:
    """The keys of one configuration: which were asked for, and which defaults stood in for absent ones."""

    def __init__(self, model_type: str, data: dict):
        self.model_type, self.data, self.used, self.assumed = model_type, data, set(), {}

    def read(self, names: str, hint, default=NONE, null=NONE):
        """The value under one of `names`, alternatives in one string; `null` is what a JSON null stands for."""
        known = names.split()
        self.used |= set(known)
        shown = f"{self.model_type}.{known[0]}"
        found = [self.data[name] for name in known if name in self.data]
        require(found or default is not NONE, "MISSING", f"{shown} is not given and has no default")
        if not found:
            self.assumed[known[0]] = default
            return default
        require(all(type(v) is type(found[0]) and v == found[0] for v in found), "INCONSISTENT", f"{names} differ: {found}")
        if found[0] is None:
            require(null is not NONE, "MISSING", f"{shown} is null, and {self.model_type} has no default for that")
            return null
        checker(hint)(shown, found[0])
        return found[0]

    def size(self, names, default=NONE, null=NONE):
        return self.read(names, Size, default, null)

    def flag(self, name, default):
        return self.read(name, bool, default)

    def only(self, name, value):
        """A key of which a manifest can say one value, the one it has where it is absent."""
        self.used.add(name)
        found = self.data.get(name, value)
        require(
            type(found) is type(value) and found == value,
            "UNDECLARED",
            f"{self.model_type}.{name} = {found!r}; no manifest expresses another than {value!r}",
        )


def adapter(model_type: str, irrelevant: str = ""):
    def register(function):
        ADAPTERS[model_type] = function, IRRELEVANT | set(irrelevant.split())
        return function

    return register


def per_head(d, heads):
    """The width of one head where no key gives it."""
    require_divides(heads, d, "num_attention_heads", "hidden_size")
    return d // heads


def decoder(c, d, width, layers, heads, kv, vocab, head_dim=None, tied=False, null_heads=True):
    """The extents that all Llama-like classes name alike, from the class's defaults. kv None: as many as heads."""
    d, heads = c.size("hidden_size", d), c.size("num_attention_heads", heads)
    one = c.size("head_dim", head_dim, None if head_dim is None else NONE)
    return {
        "num_layers": c.size("num_hidden_layers", layers),
        "hidden_size": d,
        "num_attention_heads": heads,
        "num_key_value_heads": c.size("num_key_value_heads", kv or heads, heads if null_heads else NONE),
        "head_dim": one or per_head(d, heads),
        "intermediate_size": c.size("intermediate_size", width),
        "vocab_size": c.size("vocab_size", vocab),
        "tie_word_embeddings": c.flag("tie_word_embeddings", tied),
    }


def biased(c, default=False):
    return {"attention_bias": "all" if c.flag("attention_bias", default) else "none"}


def classic(norms=2):
    """Two matrices in the MLP, LayerNorms with scale and shift."""
    return {"mlp": "two-matrix", "norm": "layernorm", "norms_per_block": norms}


def each_layer(layers, name, shape):
    """One named tensor in every block, as an extra trainable set."""
    return tuple(Tensor(name=f"model.layers.{i}.self_attn.{name}", shape=shape) for i in range(layers))
