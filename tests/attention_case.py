# SPDX-License-Identifier: MIT
"""A call of attention with its inputs, and how public modules are run on them: run_attention.py."""
import importlib
import math
import os
import sys
from types import SimpleNamespace as Space

import torch
import torch.nn.functional as F
from transformers import masking_utils as masks

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
FIELDS = {
    "b": 1, "tq": 5, "tk": 5, "hq": 2, "hk": 2, "d": 4, "e": 3, "causal": 0, "align": 0,
    "offset": 0, "left": -1, "right": -1, "head_map": 0, "scale": 0, "multiplier": 0, "softcap": 0,
    "first_key": 0, "temperature": 0, "sinks": 0, "bias": 0, "bias_b": 0, "bias_tq": 0,
    "bias_hq": 0, "counts": 0, "sequences": 0, "key_positions": 0, "alibi": 0, "alibi_scale": 1,
    "max_bias": 8, "t5": 0, "t5_buckets": 0, "t5_distance": 0, "c2p": 0, "p2c": 0, "buckets": 0,
    "distance": 0, "rope": 0, "rope_offset": 0, "rope_channels": 0, "query_rows": 0, "key_rows": 0,
    "rotate_from": 0, "output_rows": 0, "common": 0, "same": 0, "lse": 0, "weights": 0, "slack": 0}
TOP_LEFT, OFFSET = 1, 2
ADJACENT, SPLIT_HALF = 1, 2
QUERIES, KEYS, VALUES, TABLE, POSITION_KEYS, POSITION_QUERIES = range(6)
lines = []
wide = torch.float64


def values(kind, *shape):
    """Multiples of 2^-10 in [-2, 2)."""
    x = torch.arange(math.prod(shape)) + 100003 * kind + 1
    x = x * 2654435761 & 0xffffffff
    x = (x ^ x >> 16) * 0x45d9f3b & 0xffffffff
    return ((((x ^ x >> 16) & 4095) - 2048).to(wide) / 1024).view(shape)


def put(name, what, numbers):
    texts = ["%d" % v if v == v and abs(v) < 2 ** 53 and v == int(v) else "%.10g" % v
             for v in torch.as_tensor(numbers, dtype=wide).flatten().tolist()]
    lines.append("%s %s %s" % (name, what, " ".join(texts)))


def exact(name, what, numbers):
    lines.append("%s %s %s" % (name, what, " ".join(
        repr(float(v)) for v in torch.as_tensor(numbers, dtype=wide).flatten().tolist())))


class Case:
    def __init__(self, name, **settings):
        self.name, self.arrays = name, {}
        self.set = dict(FIELDS, **settings)
        s = Space(**self.set)
        self.q = values(QUERIES, s.b, s.tq, s.hq, s.d).transpose(1, 2)
        k = values(KEYS, s.b, s.tk, s.hk, s.d)
        if s.common:
            k[..., s.common:] = k[:, :, :1, s.common:]
        self.k = k.transpose(1, 2)
        self.v = self.k if s.same else values(VALUES, s.b, s.tk, s.hk, s.e).transpose(1, 2)

    def array(self, what, numbers, setting=1):
        self.arrays[what] = numbers
        self.set[what] = setting
        return self

    def bias(self, bias):
        """[B or 1][Hq or 1][Tq or 1][Tk], as torch has it; of bools: who is seen."""
        if bias.dtype == torch.bool:
            bias = torch.where(bias, 0.0, -math.inf)
        self.set.update(bias_b=bias.shape[0], bias_tq=bias.shape[2], bias_hq=bias.shape[1])
        return self.array("bias", bias.transpose(1, 2))

    def module(self, **more):
        groups = self.set["hq"] // self.set["hk"]
        return Space(num_key_value_groups=groups, training=False, **more)

    def done(self, out, seen=None, lse=None, weights=None):
        """out [B][H][Tq][E], seen [.. or 1][..][Tq][Tk]."""
        out = out.clone()
        if seen is not None:
            none = ~seen.any(-1).expand(out.shape[:3])
            out[none] = math.nan
            if weights is not None:
                weights = weights.masked_fill(none[..., None], 0)
        if lse is not None:
            self.set["lse"] = 1
        if weights is not None:
            self.set["weights"] = 1
        exact(self.name, "settings", list(self.set.values()))
        for what, numbers in self.arrays.items():
            exact(self.name, what, numbers)
        put(self.name, "out", out.transpose(1, 2))
        if lse is not None:
            put(self.name, "lse_run", lse.transpose(1, 2))
        if weights is not None:
            put(self.name, "weights_run", weights.transpose(1, 2))


def facts(*words):
    print(*words, file=sys.stderr)


class Fixed(torch.nn.Module):
    """In place of a projection: what it gave."""
    def __init__(self, result):
        super().__init__()
        self.result = result

    def forward(self, x):
        return self.result


class Same(torch.nn.Module):
    def forward(self, x, *rest):
        return x


def stay_wide():
    """Where the code asks for float32 of a float64, it stays one."""
    softmax, as_float = F.softmax, torch.Tensor.float

    def wide_softmax(x, dim=None, dtype=None, **rest):
        return softmax(x, dim=dim, dtype=x.dtype if x.dtype == wide else dtype)

    F.softmax = torch.nn.functional.softmax = wide_softmax
    torch.Tensor.float = lambda x: x if x.dtype == wide else as_float(x)


def mask_of(function, tq, tk, offset=0, b=1, padding=None):
    """transformers' mask, as eager attention takes it, and who is seen."""
    mask = masks.eager_mask(b, tq, tk, q_offset=offset, mask_function=function,
                            attention_mask=padding, dtype=wide)
    return mask, mask == 0


def model(name):
    return importlib.import_module("transformers.models.%s.modeling_%s" % (name, name))


def columns(*tensors):
    """[B][H][T][C] to [B][T][H C], side by side."""
    return torch.cat([t.transpose(1, 2).flatten(2) for t in tensors], -1)


def heads(out, count):
    return out.view(out.shape[0], out.shape[1], count, -1).transpose(1, 2)


def empty(case, width):
    return torch.zeros(case.set["b"], case.set["tq"], width, dtype=wide)


def write():
    path = os.path.join(DATA, "attention_run.txt")
    with open(path, "w", encoding="utf-8") as out:
        out.write("# SPDX-License-Identifier: MIT\n"
                  "# Attention that torch and transformers computed, by ../run_attention.py.\n")
        out.writelines(line + "\n" for line in lines)
