"""What should autograd keep? The rows of costlib.observe.saved, derived from the models' source, without torch.

Every product needs its two factors, every norm its input and 1/rms, softmax its output: read off the
forward code of LlamaDecoderLayer and GPT2Block, operator by operator. b sequences of s rows, hidden
width d, H query heads, n K/V heads of d_h, MLP width f, e bytes a scalar; s > 1, since sdpa does not
repeat K and V for a single query row. Unit: B.
"""

from dataclasses import dataclass

from costlib import activations, params
from costlib.evidence import Explanation
from costlib.fixtures import ODD, RUNNING, classic_block
from costlib.policies import BITS
from costlib.records import ArchitectureManifest

TOTAL, PARAMETERS = "saved for backward", "parameters among what is saved"


@dataclass(frozen=True)
class Case:
    """One call that was observed: model "block" and "stack" are Llama's, "paper" is a block of GPT-2.

    kernel: "eager"; of sdpa "math", which it takes on meta, "flash" on a CPU and "flash-masked", given a mask there.
    """

    model: str
    arch: ArchitectureManifest
    b: int
    s: int
    kernel: str = "eager"
    dtype: str = "bf16"
    checkpoint: bool = False


CASES = {
    "saved_block_running_eager": Case("block", RUNNING, 1, 4096),
    "saved_block_running_math": Case("block", RUNNING, 1, 4096, "math"),
    "saved_block_odd_eager": Case("block", ODD, 5, 56),
    "saved_block_odd_eager_fp32": Case("block", ODD, 5, 56, dtype="fp32"),
    "saved_block_odd_math": Case("block", ODD, 5, 56, "math"),
    "saved_block_odd_flash": Case("block", ODD, 5, 56, "flash"),
    "saved_block_odd_flash_masked": Case("block", ODD, 5, 56, "flash-masked"),
    "saved_block_paper": Case("paper", classic_block(1, 4096, 50257, 32), 2, 2048),
    "saved_block_paper_small": Case("paper", classic_block(1, 96, 1009, 6), 5, 56),
    "saved_stack_running_eager": Case("stack", RUNNING, 1, 4096),
    "saved_stack_running_checkpoint": Case("stack", RUNNING, 1, 4096, checkpoint=True),
    "saved_stack_odd_eager": Case("stack", ODD, 5, 56),
    "saved_stack_odd_flash": Case("stack", ODD, 5, 56, "flash"),
    "saved_stack_odd_checkpoint": Case("stack", ODD, 5, 56, "flash", checkpoint=True),
}
PAPER = {  # Korthikanti et al. for a 2-byte dtype, 1-byte masks
    "attention.input": "2bsh", "mlp.input": "2bsh", "attention.query_key": "4bsh for q and k", "attention.scores.softmax": "2bas^2", "attention.scores.mask": "1-byte dropout mask, bas^2",
    "attention.scores.dropped": "2bas^2", "attention.value": "2bsh", "attention.context": "2bsh", "attention.mask": "1-byte mask, bsh",
    "mlp.gelu": "8bsh, input of GeLU", "mlp.hidden": "8bsh", "mlp.mask": "1-byte mask, bsh", "norms.first": "2bsh", "norms.second": "2bsh",
    "boundary": "one input a block",
}  # fmt: skip


def norm(row: str, b: int, s: int, d: int, e: int) -> dict:
    """LlamaRMSNorm: x in fp32 for its square and for the product with 1/rms; the product, in the model's dtype, for dW."""
    copy = "fp32 copy of the input" if e < 4 else "the input, in fp32 already"
    return {
        f"{row}.input": (4 * b * s * d, f"{copy}, 4bsd"),
        f"{row}.rstd": (4 * b * s, "1/rms in fp32, 4bs"),
        f"{row}.normalized": (e * b * s * d, f"normalized, before the weight, {e}bsd"),
    }


def attention(arch: ArchitectureManifest, b: int, s: int, kernel: str, e: int) -> dict:
    """Both products and the softmax. eager takes the softmax in fp32 and repeats K and V for every query head; so does
    math, the fallback of sdpa, which has fp32 copies of all. flash keeps no pairs but one logsumexp a row, and
    repeats K and V only if it was given a mask, which it then keeps. A single K/V head is repeated as a view; the
    batched product of several sequences copies it all the same."""
    q, pairs = b * s * arch.d_q, b * arch.num_attention_heads * s * s
    size = 4 if kernel == "math" else e  # bytes a scalar of what the two products are given
    whole = kernel == "flash" or (arch.num_key_value_heads == 1 and (kernel == "flash-masked" or (kernel == "eager" and b == 1)))
    wide, heads = (b * s * arch.d_kv, f"not repeated, {size}bs n d_h") if whole else (q, f"repeated, {size}bs H d_h")
    found = {
        "attention.query_key.query": (size * q, f"rotated q, {size}bs H d_h"),
        "attention.query_key.key": (size * wide, f"rotated k, {heads}"),
        "attention.value": (size * wide, f"v, {heads}"),
        "attention.context": (e * q, f"input of o_proj, {e}bs H d_h"),
    }
    if kernel in ("eager", "math"):
        found["attention.scores.softmax"] = (4 * pairs, "softmax in fp32, 4bHs^2")
    else:
        found["attention.logsumexp"] = (4 * b * s * arch.num_attention_heads, "logsumexp in fp32, 4bsH")
    if kernel == "eager" and e < 4:
        found["attention.scores.dropped"] = (e * pairs, f"copy of the softmax for the value mix, {e}bHs^2")
    if kernel == "flash-masked":
        found["attention.legal"] = (e * s * s, f"the additive mask, {e}s^2")
    return found


def block(arch: ArchitectureManifest, b: int, s: int, kernel: str = "eager", dtype: str = "bf16") -> dict:
    """{row: (bytes, why)} of one LlamaDecoderLayer in training, dropout 0. The residual sum keeps nothing."""
    e = BITS[dtype] // 8
    hidden, wide = (e * b * s * n for n in (arch.hidden_size, arch.intermediate_size))
    return {
        **norm("norms.first", b, s, arch.hidden_size, e),
        "attention.input": (hidden, f"once for q, k and v, {e}bsd"),
        "attention.rotary.cos": (e * s * arch.head_dim, f"table for all heads and sequences, {e}s d_h"),
        "attention.rotary.sin": (e * s * arch.head_dim, f"table for all heads and sequences, {e}s d_h"),
        **attention(arch, b, s, kernel, e),
        **norm("norms.second", b, s, arch.hidden_size, e),
        "mlp.input": (hidden, f"once for gate and up, {e}bsd"),
        "mlp.gelu.gate": (wide, f"input of SiLU, {e}bsf"),
        "mlp.gelu.silu": (wide, f"SiLU's output, a factor, {e}bsf"),
        "mlp.gelu.up": (wide, f"up, the other factor, {e}bsf"),
        "mlp.hidden": (wide, f"their product, input of down, {e}bsf"),
    }


def stack(arch: ArchitectureManifest, b: int, s: int, kernel: str = "eager", dtype: str = "bf16", checkpoint: bool = False) -> dict:
    """{row: (bytes, why)} of a LlamaForCausalLM with its loss. All blocks share the rotary tables; with every block
    checkpointed autograd keeps one input a block and none of its rows."""
    e, tokens = BITS[dtype] // 8, b * s
    one = {"boundary": (e * tokens * arch.hidden_size, "one input a block")} if checkpoint else block(arch, b, s, kernel, dtype)
    # Labels are padded by one and shifted by one: a single row of them is contiguous and stays in the padded storage.
    labels = "int64 labels and the one they are padded with, 8(s + 1)" if b == 1 else "int64 labels, shifted by one, 8bs"
    shared = ("attention.rotary.cos", "attention.rotary.sin", *(["attention.legal"] if kernel == "flash-masked" else []))
    return {
        "ids": (8 * tokens, "int64 token numbers of the lookup, 8bs"),
        **{f"blocks.{row}": (size * (1 if row in shared else arch.num_layers), why) for row, (size, why) in one.items()},
        **norm("final_norm", b, s, arch.hidden_size, e),
        "head.input": (e * tokens * arch.hidden_size, f"input of lm_head, {e}bsd"),
        "loss.log_softmax": (4 * tokens * arch.vocab_size, "log-softmax of all logits in fp32, 4bsV"),
        "loss.target": (8 * (tokens + (b == 1)), labels),
        "loss.total_weight": (4, "one fp32 scalar"),
    }


def paper(b: int, s: int, h: int, a: int) -> dict:
    """{row: (bytes, why)} of one GPT2Block, bf16, eager, fused GeLU, on a device without a fused dropout: a mask is
    a tensor of the model's dtype there, 2 bytes an entry. LayerNorm keeps mean and 1/std besides its input."""
    rows = {row: (size, "") for row, size in activations.korthikanti(b, s, h, a).items()}
    for row, (size, _) in tuple(rows.items()):
        if row.endswith("mask"):
            rows[row] = (2 * size, "2 bytes an entry: without a fused kernel the mask is a scaled bf16 tensor")
        if row == "attention.query_key":
            del rows[row]
            rows |= {f"{row}.{one}": (size // 2, f"{one}, 2bsh") for one in ("query", "key")}
        if row.startswith("norms"):
            del rows[row]
            rows |= {f"{row}.input": (size, "the input, 2bsh")}
            rows |= {f"{row}.{part}": (4 * b * s, f"{part} in fp32, 4bs") for part in ("mean", "rstd")}
    return rows


def rows(case: Case) -> dict:
    """{row: (bytes, why)} of a case."""
    if case.model == "paper":
        return paper(case.b, case.s, case.arch.hidden_size, case.arch.num_attention_heads)
    if case.model == "block":
        return block(case.arch, case.b, case.s, case.kernel, case.dtype)
    return stack(case.arch, case.b, case.s, case.kernel, case.dtype, case.checkpoint)


def published(case: Case) -> dict[str, int]:
    """Korthikanti's rows for the case's blocks; with every block checkpointed, the one row of their inputs."""
    sizes = case.b, case.s, case.arch.hidden_size, case.arch.num_attention_heads
    layers = case.arch.num_layers if case.model == "stack" else 1
    if case.checkpoint:
        return {"boundary": activations.retained(*sizes, layers, "boundary")}
    return dict(activations.korthikanti(*sizes) * layers)


def parameters(case: Case) -> int:
    """Bytes of the parameters that are saved: every matrix that is multiplied with and every norm. A lookup needs its
    table no more, a bias of a product is a sum; LayerNorm saves its shift besides its scale."""
    every, arch = params.ledger(case.arch), case.arch
    count = every["final_norm"] + every["head"]
    if case.model == "paper":
        count = params.attention_weights(arch) + params.mlp_weights(arch, arch.intermediate_size) + params.block(arch)["norms"]
    elif case.model == "block":
        count = params.block(arch).total
    elif not case.checkpoint:
        count += every["blocks"]
    return count * BITS[case.dtype] // 8


def predicted(name: str) -> dict[str, int]:
    """What stands beside a bundle's counters: the paper for the total, the derivation for its rows."""
    case = CASES[name]
    found = {TOTAL: sum(published(case).values()), PARAMETERS: parameters(case)}
    return found | {row: size for row, (size, _) in rows(case).items()}


def total(some: dict) -> int:
    return sum(size for size, _ in some.values())


def differences(case: Case, scope: str) -> tuple[Explanation, ...]:
    """One signed explanation of the total for each published row that is not as large here, then for each that is new."""
    found, left = [], {row.removeprefix("blocks."): part for row, part in rows(case).items()}
    for row, size in published(case).items():
        here = {name: left.pop(name) for name in tuple(left) if name == row or name.startswith(f"{row}.")}
        if amount := total(here) - size:
            text = "; ".join(why for _, why in here.values()) or "absent"
            found.append((amount, f"{row}: {text}; in the paper {PAPER[row]}"))
    found += [(size, f"{row}: {why}; not in the paper") for row, (size, why) in left.items()]
    return tuple(Explanation(counter=TOTAL, amount=amount, text=text, scope=scope) for amount, text in found)
