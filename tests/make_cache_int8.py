#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes tests/data/cache_int8.txt: hashes of what 8-bit storage makes of many groups.

    make_cache_int8.py > data/cache_int8.txt

The definition in docs/cache.md, in numpy: the scale is the largest size / 127 in float32, rounded
to its type; a number is divided by it in float32 and rounded to an integer, ties to even. Groups
are made by the generator of support/random.h, in both places alike; every sixteenth is of one kind
of edge. A line holds, for each 1000 groups, the upper and lower 32 bits of the hash of the stored
integers and of that of the scales.
"""
import numpy as np

GROUPS, BLOCK = 10000, 1000
MASK = (1 << 64) - 1
LARGEST = np.float32(float.fromhex("0x1.020406p+121"))  # 127 times it is finite


def stream(seed):
    while True:
        seed = (seed * 1664525 + 1013904223) & 0xffffffff
        yield seed


def unit(x):
    return (x >> 8) * 2.0 ** -23 - 1


def group(random, kind, n):
    """n numbers as float64, each exactly a float32."""
    size = (next(random) >> 16) % 266 - 150
    if kind >= 12:
        size = kind % 4 * 4 - 6
    x = np.array([unit(next(random)) for _ in range(n)])
    at = (next(random) >> 16) % n
    if kind == 0:
        x = x * 0.0
    elif kind == 1:  # ties, and a scale of exactly 1
        x = np.floor(x * 127) + 0.5
        x[at] = 127
    elif kind == 4:  # scales in float16 that are subnormal, or 0
        x = x * 2.0 ** -(size % 13 + 12)
    elif kind == 5:  # too large for scales in float16
        x = x * 2.0 ** (size % 8 + 20)
    elif kind == 6:  # one number alone
        x, kept = x * 0.0, x[at]
        x[at] = kept
    else:
        x = x * 2.0 ** size
    with np.errstate(all="ignore"):
        x = x.astype(np.float32)
    if kind == 2:
        x[at] = np.nan
    elif kind == 7:
        x[at] = np.finfo(np.float32).max
    elif kind == 3:
        x[at] = -np.inf
    return x


def narrow(x, source):
    with np.errstate(all="ignore"):
        if source == "f16":
            return x.astype(np.float16).astype(np.float32)
        if source == "bf16":
            bits = x.view(np.uint32)
            bits = np.where(np.isnan(x), bits, bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000
            return bits.astype(np.uint32).view(np.float32)
    return x


def quantise(x, scale_type):
    a = np.abs(x).max()
    if not np.isfinite(a):
        return np.zeros(len(x), np.int8), 0x7e00 if scale_type == "f16" else 0x7fc00000
    d = np.float32(a) / np.float32(127)
    if scale_type == "f16":
        half = np.minimum(d, np.float32(65504)).astype(np.float16)
        bits, d = int(half.view(np.uint16)), np.float32(half)
    else:
        d = np.minimum(d, LARGEST)
        bits = int(d.view(np.uint32))
    if d == 0:
        return np.zeros(len(x), np.int8), bits
    return np.clip(np.rint(x / d), -127, 127).astype(np.int8), bits


def fnv(value, data):
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & MASK
    return value


def case(name, n, scale_type, source, seed):
    random, words = stream(seed), []
    numbers = scales = 0
    for g in range(GROUPS):
        if g % BLOCK == 0:
            numbers = scales = 0xcbf29ce484222325
        with np.errstate(all="ignore"):
            q, bits = quantise(narrow(group(random, g % 16, n), source), scale_type)
        numbers = fnv(numbers, q.tobytes())
        scales = fnv(scales, bits.to_bytes(2 if scale_type == "f16" else 4, "big"))
        if g % BLOCK == BLOCK - 1:
            words += [numbers >> 32, numbers & 0xffffffff, scales >> 32, scales & 0xffffffff]
    print("%s hashes %s" % (name, " ".join(map(str, words))))


def main():
    print("# SPDX-License-Identifier: MIT")
    print("# Hashes of 8-bit storage by numpy, by ../make_cache_int8.py.")
    case("head-f32", 24, "f32", "f32", 1)
    case("head-f16", 24, "f16", "f32", 2)
    case("groups-f32", 32, "f32", "f32", 3)
    case("groups-f16", 32, "f16", "f32", 4)
    case("from-f16", 32, "f32", "f16", 5)
    case("from-bf16", 32, "f16", "bf16", 6)


if __name__ == "__main__":
    main()
