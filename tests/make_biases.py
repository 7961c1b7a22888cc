#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the numbers that biases and their buckets are held against.

    make_biases.py exact           tests/data/biases_exact.txt: bounds of buckets, decided by 60
                                   digits or, where an integer is near, by whole powers
    make_biases.py transformers    tests/data/biases_transformers.txt: what transformers computes

Nothing is taken from transformers but what it computes. Made with transformers 5.24.0, torch 2.15.0
and mpmath 1.2.1.
"""
import os
import random
import sys
from types import SimpleNamespace as Space

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
END = 2 ** 31
lines = []


def put(name, what, values):
    texts = [repr(int(v)) if float(v) == int(v) else repr(float(v)) for v in values]
    lines.append("%s %s %s" % (name, what, " ".join(texts)))


# ------------------------------------------------------------------------------------------------
def bound(first, last, steps, k, past):
    """The least integer d with d/first >= (last/first)^(k/steps); past: >."""
    import mpmath
    mpmath.mp.dps = 60
    x = mpmath.mpf(first) * (mpmath.mpf(last) / first) ** (mpmath.mpf(k) / steps)
    near = int(mpmath.nint(x))
    if abs(x - near) > mpmath.mpf(10) ** -30 * x:
        return near if x < near else near + 1
    a, b = near ** steps * first ** k, last ** k * first ** steps
    return near if a > b or (a == b and not past) else near + 1


def t5(buckets, distance, two_sided):
    side = buckets // 2 if two_sided else buckets
    exact = side // 2
    steps = side - exact
    if distance <= exact:
        return
    chosen = range(1, steps) if steps <= 64 else sorted(random.sample(range(1, steps), 20))
    found = [(exact + k, bound(exact, distance, steps, k, False)) for k in chosen]
    found = [pair for pair in found if pair[1] <= END]
    if found:
        put("t5", "bounds", [buckets, distance, two_sided] + [v for pair in found for v in pair])


def deberta(buckets, distance):
    middle = buckets // 2
    chosen = range(3 * middle) if middle <= 24 else sorted(random.sample(range(2 * middle), 20))
    found = [(middle + k + 1, bound(middle, distance - 1, middle - 1, k, True)) for k in chosen]
    found = [pair for pair in found if pair[1] <= END]
    if found:
        put("deberta", "bounds", [buckets, distance] + [v for pair in found for v in pair])


def exact():
    random.seed(1)
    for buckets, distance in ((32, 128), (64, 128), (32, 256), (128, 800), (32, 64), (320, 800),
                              (48, 512), (4, 2), (4, 3), (5, 3), (6, 4), (32, 17), (32, 2 ** 53),
                              (2048, 10 ** 6), (2050, 10 ** 6), (65536, 10 ** 7),
                              (65536, 32769), (65534, 2 ** 53 - 1), (64, 16 * 3 ** 8)):
        t5(buckets, distance, 0)
        t5(buckets, distance, 1) if buckets % 2 == 0 else None
    for _ in range(120):
        buckets = 2 * random.choice((random.randrange(2, 40), random.randrange(2, 2000)))
        low = buckets // 2 + 1
        distance = random.choice((
            low + random.randrange(3000), buckets // 4 * 2 ** random.randrange(2, 30) + 1,
            buckets // 2 * 2 ** random.randrange(1, 30), low + int(2 ** random.uniform(0, 45))))
        t5(buckets, distance, random.randrange(2))
    for buckets, distance in ((256, 512), (32, 128), (4, 4), (8, 65), (16, 65), (34, 17 * 9 + 1),
                              (512, 1025), (2048, 4096), (65536, 10 ** 6), (65536, 65537)):
        deberta(buckets, distance)
    for _ in range(80):
        buckets = random.choice((random.randrange(4, 60), random.randrange(4, 3000)))
        low = buckets // 2 + 2
        deberta(buckets, random.choice((
            low + random.randrange(3000), buckets // 2 * 2 ** random.randrange(1, 20) + 1,
            low + int(2 ** random.uniform(8, 45)))))


# ------------------------------------------------------------------------------------------------
def alibi():
    import torch
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor as bloom
    from transformers.models.falcon.modeling_falcon import build_alibi_tensor as falcon
    from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor as mpt
    mask = torch.ones(2, 24, dtype=torch.long)
    mask[0, :5] = 0
    mask[1, 20:] = 0
    mask[1, 7] = 0
    put("alibi", "mask", mask.flatten().tolist())
    for heads in (8, 12):
        put("bloom/%d" % heads, "bias", bloom(mask, heads, torch.float32).flatten().tolist())
    keys = 700
    chosen = [j for j in range(keys) if j % 29 == 0 or 250 < j < 264]
    put("falcon", "keys", chosen)
    for heads in (32, 71):  # the second with a scale that is no power of two
        bias = falcon(torch.ones(1, keys, dtype=torch.long), heads, torch.float32)[:, 0]
        scale = 1 / 80 ** 0.5 if heads == 71 else 1
        put("falcon/%d" % heads, "scale", [scale])
        put("falcon/%d" % heads, "bias", (bias * scale)[:, chosen].flatten().tolist())
    for heads, most in ((6, 16), (8, 8), (12, 8)):
        put("mpt/%d" % heads, "bias", mpt(heads, 40, most).flatten().tolist())
        put("mpt/%d" % heads, "max", [most])


def t5_bias():
    import torch
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Attention
    torch.manual_seed(1)
    for name, decoder, buckets, distance in (
            ("encoder", False, 32, 128), ("decoder", True, 32, 128), ("wide", False, 320, 800),
            ("odd", True, 33, 200)):
        config = T5Config(d_model=8, d_kv=4, num_heads=2, is_decoder=decoder,
                          relative_attention_num_buckets=buckets,
                          relative_attention_max_distance=distance)
        layer = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
        with torch.no_grad():
            layer.relative_attention_bias.weight.copy_(torch.randint(-900, 900, (buckets, 2)) / 64)
            bias = layer.compute_bias(2, 500, past_seen_tokens=250)
        put("t5/" + name, "settings", [buckets, distance, not decoder, 250, 2, 500])
        put("t5/" + name, "table", layer.relative_attention_bias.weight.flatten().tolist())
        put("t5/" + name, "bias", bias.flatten().tolist())


def deberta_run():
    import torch
    from transformers.models.deberta_v2 import modeling_deberta_v2 as deberta_v2
    for buckets, distance in ((256, 512), (32, 128), (64, 1000), (7, 20)):
        relative = torch.arange(-1500, 1501)
        found = deberta_v2.make_log_bucket_position(relative, buckets, distance)
        put("deberta/%d" % buckets, "settings", [buckets, distance])
        put("deberta/%d" % buckets, "buckets", found.tolist())
    gather = torch.gather
    for name, buckets, distance in (("log", 8, 20), ("plain", -1, 6)):
        span = buckets if buckets > 0 else distance
        layer = Space(pos_ebd_size=span, share_att_key=True, pos_att_type=["c2p", "p2c"],
                      num_attention_heads=1, position_buckets=buckets,
                      max_relative_positions=distance, query_proj=lambda x: x,
                      key_proj=lambda x: x, transpose_for_scores=lambda x, heads: x)
        indices = []

        def spy(tensor, dim, index):
            indices.append(index)
            return gather(tensor, dim=dim, index=index)

        torch.gather = spy
        heads = torch.ones(1, 40, 4)
        deberta_v2.DisentangledSelfAttention.disentangled_attention_bias(
            layer, heads, heads, None, torch.ones(2 * span, 4), 3)
        torch.gather = gather
        put("deberta/" + name, "settings", [max(buckets, 0), distance, 40])
        put("deberta/" + name, "c2p", indices[0].flatten().tolist())
        put("deberta/" + name, "p2c", indices[1].flatten().tolist())


def run():
    alibi()
    t5_bias()
    deberta_run()


def write(name, about):
    with open(os.path.join(DATA, name), "w", encoding="utf-8") as out:
        out.write("# SPDX-License-Identifier: MIT\n# %s\n" % about)
        out.writelines(line + "\n" for line in lines)


if sys.argv[1:] == ["exact"]:
    exact()
    write("biases_exact.txt", "Bounds of buckets: settings, then buckets and least distances.")
elif sys.argv[1:] == ["transformers"]:
    run()
    write("biases_transformers.txt", "Biases, buckets and index maps that transformers computed.")
else:
    sys.exit(__doc__)
