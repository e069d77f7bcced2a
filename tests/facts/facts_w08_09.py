"""W Chapters 8 and 9: training memory and the key/value cache."""

import inspect
from fractions import Fraction
from itertools import count

from costlib import napkin
from costlib.domain import ManifestError
from costlib.fixtures import W_70B
from costlib.hardware import CHIPS
from costlib.napkin import BF16, OPTIMIZER_BYTES
from costlib.units import GB, TB, ceil_div, fixed

OWNS = ("W.C8.", "W.C9.")
H100 = CHIPS["H100"]
N = 70 * 10**9
STAGES = ((0, 1), (1, 64), (2, 64), (3, 64))  # of ZeRO, with the data-parallel degree
KEPT = {"B": 8, "T": 8192, "d_model": 8192, "n_layers": 80}
C, BYTES_PER = 16, 2
CONTEXT = 8192
KV_HEADS = (64, 8, 1)
USERS = (1, 32)
NODE, WORKSPACE = 640 * GB, 10 * GB  # eight H100
BATCHES = (1, 8, 64, 256)


def zero(stage, devices=1):
    return napkin.training_memory(N, zero_stage=stage, dp_degree=devices)


def boundaries(B, T, d_model, n_layers, bytes_per=BYTES_PER):
    """Bytes of the stored layer inputs: W's 'full', nothing else kept."""
    return B * T * d_model * n_layers * bytes_per


def raw_activations(c=C, **shape):
    """W's activations without checkpointing: c tensors of the size of a layer input."""
    return c * boundaries(**shape)


def korthikanti(a, s, h):
    """(linear, quadratic) bytes of activations per b, s and h of a classic block in 16 bit."""
    return 34, Fraction(5 * a * s, h)


def selective_share(a, s, h):
    """What is kept when the quadratic part is dropped, in per cent of everything."""
    linear, quadratic = korthikanti(a, s, h)
    return 100 * linear / (linear + quadratic)


def kv(heads, batch, tokens=CONTEXT):
    return napkin.kv_cache_bytes(W_70B.num_layers, heads, W_70B.head_dim, tokens, batch)


def weights():
    return zero(0)["weights"]


def requests(heads):
    return napkin.max_concurrent_requests(NODE, weights(), kv(heads, 1), WORKSPACE)


def decode_intensity(batch, tokens=CONTEXT):
    """2N FLOPs a sequence over every weight once and every cache: FLOP per byte, attention's FLOPs left out."""
    return Fraction(2 * N * batch, weights() + kv(8, batch, tokens))


def balance():
    return Fraction(H100.peak_flops, H100.bytes_per_second)


def project_kv(rows):
    """FLOPs of the k and v projections of one layer for that many rows."""
    return napkin.matmul_flops(rows, 8192, 2 * 8 * 128)


def refused(code, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except ManifestError as error:
        return error.code == code
    return False


FACTS = {
    "W.C8.001": lambda: napkin.training_memory(1)["weights"],
    "W.C8.002": lambda: napkin.training_memory(1)["grads"],
    "W.C8.003": lambda: OPTIMIZER_BYTES["sgd"],
    "W.C8.004": lambda: OPTIMIZER_BYTES["sgd_momentum"] - OPTIMIZER_BYTES["sgd"],
    "W.C8.005": lambda: OPTIMIZER_BYTES["adam"] - OPTIMIZER_BYTES["sgd_momentum"],
    "W.C8.006": lambda: napkin.training_memory(1).total,
    "W.C8.007": lambda: napkin.training_memory(1, "adam")["optimizer"],
    "W.C8.008": lambda: napkin.training_memory(1, "sgd_momentum")["optimizer"],
    "W.C8.009": lambda: napkin.training_memory(1, "sgd")["optimizer"],  # the master copy, and no statistics at all
    "W.C8.026": lambda: Fraction(zero(0).total, TB),
    "W.C8.028": lambda: 100 * zero(0).share("optimizer"),
    "W.C8.030": lambda: Fraction(raw_activations(**KEPT), GB),
    "W.C8.031": lambda: Fraction(3 * raw_activations(**KEPT), 10 * GB),
    "W.C8.032": lambda: Fraction(boundaries(**KEPT), GB),
    "W.C8.035": lambda: Fraction(100 * napkin.matmul_flops(1, 1, 1), napkin.training_flops(1, 1)),
    "W.C8.036": lambda: Fraction(raw_activations(**KEPT), boundaries(**KEPT)),
    "W.C9.007": lambda: napkin.kv_cache_bytes(1, 1, 1, 1, 1, bytes_per=1),
    "W.C9.008": lambda: BF16,
    "W.C9.009": lambda: Fraction(kv(64, 32), GB),
    "W.C9.010": lambda: Fraction(weights(), GB),
    "W.C9.012": lambda: Fraction(weights(), GB),
    "W.C9.013": lambda: requests(64),
    "W.C9.014": lambda: requests(8),
    "W.C9.015": lambda: Fraction(8 * H100.memory_bytes, GB),
    "W.C9.016": lambda: Fraction(kv(64, 1), kv(8, 1)),
    "W.C9.022": balance,  # W-12: 295.5, which rounds to 296
}
for i, stage in enumerate(STAGES):
    for j, row in enumerate(("total", "weights", "grads", "optimizer")):
        FACTS[f"W.C8.{10 + 4 * i + j:03}"] = lambda stage=stage, row=row: Fraction(
            zero(*stage).total if row == "total" else zero(*stage)[row], GB
        )
for i, (heads, users) in enumerate((heads, users) for heads in KV_HEADS for users in USERS):
    FACTS[f"W.C9.{1 + i:03}"] = lambda heads=heads, users=users: Fraction(kv(heads, users), GB)
FACTS |= {f"W.C9.{18 + i:03}": lambda batch=batch: decode_intensity(batch) for i, batch in enumerate(BATCHES)}
# what the printed calls are given, read off what the numbers above are counted from
MODEL = (W_70B.num_layers, W_70B.num_attention_heads, W_70B.head_dim)
GIVEN = {
    "W.C8.042": N,
    "W.C8.043": KEPT["B"],
    "W.C8.045": KEPT["n_layers"],
    "W.C8.047": C,
    "W.C8.048": BYTES_PER,
    "W.C9.027": MODEL[0],
    "W.C9.028": MODEL[1],
    "W.C9.029": MODEL[2],
    "W.C9.030": MODEL[0],
    "W.C9.031": MODEL[2],
    "W.C9.032": CONTEXT,
    "W.C9.035": NODE // GB,
    "W.C9.036": N,
    "W.C9.037": NODE // GB,
    "W.C9.038": N,
    "W.C9.039": WORKSPACE // GB,
    "W.C9.042": N,
    "W.C9.043": H100.peak_flops,
    "W.C9.044": H100.bytes_per_second,
    "W.C9.045": USERS[1],
    "W.C9.046": KV_HEADS[1],
    "W.C9.047": KV_HEADS[0],
    "W.C9.048": N // 10**9,
    "W.C9.049": BATCHES[3],
    "W.C9.050": BATCHES[2],
    "W.C9.051": BATCHES[1],
    "W.C9.052": BATCHES[0],
}
FACTS |= {key: lambda value=value: value for key, value in GIVEN.items()}

TEXTS = {
    "W.C8.027": lambda: H100.memory_bytes == 80 * GB and H100.memory.verified,
    # W-08: no constant of the model; 34 + 5 a s / h bytes are 177 tensors of two bytes in W's own shape
    "W.C8.029": lambda: Fraction(sum(korthikanti(64, 8192, 8192)), BYTES_PER) == 177,
    "W.C8.033": lambda: f"checkpointing={'full':10s}" == "checkpointing=full      ",  # W-23
    # W-08: 30 % is the share at GPT-3's shape, of a total that has the quadratic part in it
    "W.C8.034": lambda: [fixed(selective_share(*x), 2) for x in ((96, 2048, 12288), (64, 8192, 8192))] == ["29.82", "9.60"],
    "W.C8.037": lambda: raw_activations(**KEPT) > weights(),
    # W-09: the saving is c, whatever the depth, and the layer that is run again is live as well
    "W.C8.038": lambda: all(
        raw_activations(**{**KEPT, "n_layers": L}) == C * boundaries(**{**KEPT, "n_layers": L}) for L in (1, 9, 80)
    )
    and raw_activations(**{**KEPT, "n_layers": 1}) == 17_179_869_184,
    # W-34: a policy that does not exist, a stage, a degree: refused, and no parameter that nothing reads
    "W.C8.039": lambda: refused("ENUM", napkin.training_memory, N, "selective"),
    "W.C8.040": lambda: refused("RANGE", napkin.training_memory, N, zero_stage=4)
    and refused("NONPOS", napkin.training_memory, N, dp_degree=0)
    and "precision" not in inspect.signature(napkin.training_memory).parameters,
    "W.C8.041": lambda: napkin.training_memory(1128, zero_stage=1, dp_degree=64)["optimizer"] == 12 * 18 == 216 != 13536 // 64,
    "W.C8.044": lambda: (KEPT["T"], KEPT["d_model"]) == (8192, 8192),
    "W.C8.046": lambda: [x for stage in STAGES for x in stage] == [0, 1, 1, 64, 2, 64, 3, 64],
    "W.C9.011": lambda: ceil_div(kv(64, 32), H100.memory_bytes) == 9,
    # W-31: a ratio of capacities, 8 in bytes and 8.27 in whole requests; nothing here has a time
    "W.C9.017": lambda: fixed(Fraction(requests(8), requests(64)), 4) == "8.2727",
    # W-11: true at 8k, where it saturates at 52; at 512 tokens the balance is passed with 458 sequences
    "W.C9.023": lambda: fixed(Fraction(2 * N, kv(8, 1)), 3) == "52.154"
    and next(batch for batch in count(1) if decode_intensity(batch, 512) > balance()) == 458
    and requests(8) < BATCHES[-1],
    # W-30: linear in one step, quadratic over a generation
    "W.C9.024": lambda: project_kv(2 * CONTEXT) == 2 * project_kv(CONTEXT)
    and sum(map(project_kv, range(1, 65))) == project_kv(64 * 65 // 2),
    "W.C9.026": lambda: napkin.kv_cache_bytes(3, 5, 7, 11, 13, 4) == 2 * 3 * 5 * 7 * 11 * 13 * 4,
    "W.C9.033": lambda: [*MODEL, CONTEXT, USERS[0]] == [80, 64, 128, 8192, 1],
    "W.C9.034": lambda: [MODEL[0], W_70B.num_key_value_heads, MODEL[2], CONTEXT, USERS[0]] == [80, 8, 128, 8192, 1],
    "W.C9.040": lambda: list(BATCHES) == [1, 8, 64, 256],
    "W.C9.041": lambda: [MODEL[0], W_70B.num_key_value_heads, MODEL[2], CONTEXT] == [80, 8, 128, 8192],
}

REST = {
    "W.C9.025": "a result of the GQA paper after further training; quality follows from no count",
}
