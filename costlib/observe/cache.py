"""How many bytes does a K/V cache hold after a prompt, and after one more token?

Two numbers for each: what the cache's tensors show, and the storages under them, which a view keeps
whole. Full, windowed and mixed layers; bf16. Source: M 0x09, 0x09C.
"""

from functools import partial

from costlib import phases
from costlib.evidence import Counter, Explanation
from costlib.fixtures import ODD, RUNNING
from costlib.observe import models, need, seen

WINDOW = 16
SHOWN = "keys and values of every layer as their tensors show them; not the storage under a view"
HELD = "storages under keys and values, each once and whole; no allocator rounding, no temporaries of the update"


def windowed(arch, model_type: str, window: int = WINDOW):
    """A tiny model with sliding windows: every layer in mistral, every other one, from the first, in gemma2."""
    torch, transformers = need()
    config = transformers.AutoConfig.for_model(
        model_type,
        vocab_size=arch.vocab_size,
        hidden_size=arch.hidden_size,
        intermediate_size=arch.intermediate_size,
        num_hidden_layers=arch.num_layers,
        num_attention_heads=arch.num_attention_heads,
        num_key_value_heads=arch.num_key_value_heads,
        head_dim=arch.head_dim,
        sliding_window=window,
    )
    with torch.device("cpu"):
        return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="eager").eval()


def held(cache) -> tuple[int, int]:
    """(bytes that the cache's tensors show, bytes of their storages), all layers."""
    tensors = [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]
    storages = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in tensors}
    return sum(t.numel() * t.element_size() for t in tensors), sum(storages.values())


def watch(model, b: int, s: int, device: str = "cpu", with_config: bool = True) -> dict[str, tuple[int, int]]:
    """`held` after a prompt of s tokens and after one decode step. A cache without the model's config has no windows."""
    torch, transformers = need()
    cache, found = transformers.DynamicCache(config=model.config if with_config else None), {}
    with torch.no_grad():
        for point, new, visible in (("prefill", s, s), ("decode", 1, s + 1)):
            mask = models.mask(1, new, visible) if device == "meta" else None
            model(input_ids=models.tokens(b, new, device), attention_mask=mask, cache=cache, use_cache=True, logits_to_keep=1)
            found[point] = held(cache)
    return found


def record(name, scope, model, arch, b, s, windowed_layers=0, device="cpu", with_config=True):
    """The Observation of one cache. After a prompt of more than WINDOW rows a windowed layer shows WINDOW - 1 of them,
    a view that keeps all of the prompt's; the step's concatenation makes a storage of WINDOW rows."""
    scope = f"{scope}, {b} sequences, a prompt of {s} rows and one step, bf16"
    found, counters, why = watch(model, b, s, device, with_config), [], []
    one = phases.cache_bytes(arch.replace(num_layers=1), b, 1) * windowed_layers  # a row of all windowed layers
    for point, rows in (("prefill", s), ("decode", s + 1)):
        for kind, value, sees in (("tensors", found[point][0], SHOWN), ("storages", found[point][1], HELD)):
            counters.append(Counter(name=f"{point}: {kind}", value=value, unit="B", visibility=sees))
            amount, text = 0, f"a windowed layer keeps {WINDOW - 1} rows: with its own, the next query sees {WINDOW}"
            if not with_config:
                amount, text = rows - WINDOW, f"without the model's config a cache has no windows: {rows - WINDOW} rows more"
            elif rows >= WINDOW and kind == "tensors":
                amount = -1
            elif rows > WINDOW and point == "prefill":
                amount, text = rows - WINDOW, f"the rows kept are a view of the whole prompt: {rows - WINDOW} rows more stay in memory"
            if amount and windowed_layers:
                why.append(Explanation(counter=f"{point}: {kind}", amount=amount * one, text=text, scope=scope))
    return seen(name, "costlib.observe.cache.record", scope, tuple(counters), explanations=tuple(why), device=device)


def full(name, arch, b, s, device):
    """A Llama's cache: every layer keeps every row."""
    model = models.build(arch, "bf16", "eager", device).eval()
    return record(name, f"{arch.manifest_id}, Llama, every layer full", model, arch, b, s, device=device)


def sliding(name, arch, b, s, model_type, layers, with_config=True):
    """The cache of a model of which `layers` have windows."""
    scope = f"{arch.manifest_id}, {model_type}, {layers} of {arch.num_layers} layers with a window of {WINDOW}"
    scope += "" if with_config else ", cache made without the config"
    return record(name, scope, windowed(arch, model_type), arch, b, s, layers, with_config=with_config)


CASES = {
    "cache_running": (full, RUNNING, 1, 4096, "meta"),
    "cache_odd": (full, ODD, 5, 56, "cpu"),
    "cache_mistral": (sliding, ODD, 5, 56, "mistral", 3),
    "cache_mistral_short": (sliding, ODD, 5, 9, "mistral", 3),
    "cache_mistral_no_config": (sliding, ODD, 5, 56, "mistral", 3, False),
    "cache_gemma2": (sliding, ODD, 5, 56, "gemma2", 2),
}
BUNDLES = {name: partial(function, name, *args) for name, (function, *args) in CASES.items()}


def predicted(name: str) -> dict[str, int]:
    """The course's bytes for a bundle's counters: a windowed layer keeps its last WINDOW rows, seen either way."""
    function, arch, b, s, *more = CASES[name]
    layers = more[1] if function is sliding else 0
    points = {"prefill": s, "decode": s + 1}
    sizes = {point: phases.window_cache_bytes(arch, b, rows, WINDOW, layers).total for point, rows in points.items()}
    return {f"{point}: {kind}": size for point, size in sizes.items() for kind in ("tensors", "storages")}
