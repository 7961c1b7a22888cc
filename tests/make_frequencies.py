#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes tests/data/frequencies_*.txt with mpmath (Debian: python3-mpmath).

    make_frequencies.py hard > data/frequencies_hard.txt
    make_frequencies.py schemes > data/frequencies_schemes.txt
    make_frequencies.py golden GOLDEN_DIR CASES_JSON > data/frequencies_golden.txt

A record is "set NAME" with the parameters in the order of FIELDS, lines "with FIELD VALUES" for
others, then lines "pair I VALUE", "attention VALUE", "softmax VALUE", "inv_freq N VALUES" (17
digits) or "inv_freq_f32 N VALUES". "hard" draws half a million frequencies and keeps those whose
true value lies closest to the middle of two doubles; "schemes" does the same for later scalings.
"""
import json
import math
import os
import random
import sys

import mpmath as mp

mp.mp.prec = 320
SCALINGS = {"default": 0, "linear": 1, "llama3": 2, "yarn": 3, "dynamic": 7, "longrope": 8,
            "proportional": 9}
FIELDS = {"scaling": 0, "rotary_dim": 0, "base": 10000.0, "factor": 1.0,
          "original_max_position": 1.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "beta_fast": 32.0, "beta_slow": 1.0, "truncate": 1, "mscale": 0.0,
          "mscale_all_dim": 0.0, "attention_factor": 0.0}
KEPT_PER_SCALING = 100


def text(value):
    return "%d" % value if isinstance(value, int) else "%.17g" % value


def write_set(name, parameters):
    print("set", name, *[text(parameters[field]) for field in FIELDS])
    for field, value in parameters.items():
        if field not in FIELDS:
            print("with", field, *map(text, value if isinstance(value, list) else [value]))


def yarn_range(p):
    """Peng et al. 2023, with transformers' clamps: the pairs between which YaRN blends."""
    def pair(turns):
        length = mp.mpf(p["original_max_position"])
        log = mp.log(length / (2 * mp.pi * mp.mpf(turns)))
        return p["rotary_dim"] * log / (2 * mp.log(p["base"]))
    low, high = pair(p["beta_fast"]), pair(p["beta_slow"])
    if p["truncate"]:
        low, high = mp.floor(low), mp.ceil(high)
    low, high = max(low, mp.mpf(0)), min(high, mp.mpf(p["rotary_dim"] - 1))
    return low, high + (mp.mpf(1) / 1000 if low == high else 0)


def blended(p, i, w, bounds):
    """LLAMA3 and YARN: between w / s and w."""
    s = mp.mpf(p["factor"])
    if p["scaling"] == 2:
        turns = mp.mpf(p["original_max_position"]) * w / (2 * mp.pi)
        low, high = mp.mpf(p["low_freq_factor"]), mp.mpf(p["high_freq_factor"])
        t = (turns - low) / (high - low) if low < high else mp.mpf(turns > low)
        t = min(max(t, mp.mpf(0)), mp.mpf(1))
        return (1 - t) * w / s + t * w
    low, high = bounds
    m = min(max((i - low) / (high - low), mp.mpf(0)), mp.mpf(1))
    return w * s ** -m if p.get("yarn_blend") else m * w / s + (1 - m) * w


def frequencies(p):
    """The formulas of posenc_plan_create, over real numbers."""
    r, s, base = p["rotary_dim"], mp.mpf(p["factor"]), mp.mpf(p["base"])
    scaling, trained, length = p["scaling"], mp.mpf(p["original_max_position"]), p.get("length", 1)
    if scaling == 4:
        base *= s ** (mp.mpf(r) / (r - 2))
    elif scaling == 5:
        base *= s
    elif scaling == 7:
        base *= (s * max(length, trained) / trained - (s - 1)) ** (mp.mpf(r) / (r - 2))
    bounds = yarn_range(p) if scaling == 3 else None
    for i in range(r // 2):
        w = base ** (mp.mpf(-2 * i) / r)
        if scaling == 1:
            yield w / s
        elif scaling in (2, 3):
            yield blended(p, i, w, bounds)
        elif scaling == 5:
            yield w / s ** (mp.mpf(2) / r)
        elif scaling == 6:
            exponent = mp.mpf(p["mixed_exponent"])
            yield w * mp.exp(-mp.log(s) / mp.mpf(r // 2) ** exponent * mp.mpf(i + 1) ** exponent)
        elif scaling == 8:
            yield w / mp.mpf(p["long_factors" if length > trained else "short_factors"][i])
        elif scaling == 9:
            yield w / s if i < p["rotating_pairs"] else mp.mpf(0)
        else:
            yield w


def nearest(value):
    """The nearest double, and how far from a tie it was, in units in the last place."""
    _, exponent = mp.frexp(value)
    scaled = mp.ldexp(value, 53 - int(exponent))
    whole = int(mp.nint(scaled))
    return math.ldexp(whole, int(exponent) - 53), 0.5 - abs(scaled - whole)


def magnitude(s, m, slope=mp.mpf(1) / 10):
    return mp.mpf(1) if s <= 1 else slope * mp.mpf(m) * mp.log(mp.mpf(s)) + 1


def draw(scaling):
    p = dict(FIELDS, scaling=scaling)
    p["rotary_dim"] = 2 * random.choice([16, 24, 32, 40, 48, 64, 96, 128, random.randint(2, 512)])
    p["base"] = random.choice([1e4, 1.5e5, 5e5, 1e6, 5e6, 1e7, 10 ** random.uniform(0.1, 20)])
    if scaling:
        p["factor"] = random.choice([2.0, 4.0, 8.0, 32.0, 40.0, random.uniform(0.5, 100)])
    if scaling > 1:
        p["original_max_position"] = float(random.choice([2048, 4096, 8192, 32768, 131072]))
    if scaling == 2:
        p["low_freq_factor"] = random.choice([1.0, random.uniform(0.5, 2)])
    if scaling == 3:
        p["truncate"] = random.randint(0, 1)
    return p


def hard():
    random.seed(20210420)
    for scaling in range(4):
        found, drawn = [], 0
        while drawn < 125000:
            p = draw(scaling)
            for i, value in enumerate(frequencies(p)):
                if i:
                    double, distance = nearest(value)
                    found.append((distance, i, double, p))
                    drawn += 1
            found.sort(key=lambda entry: entry[0])
            del found[KEPT_PER_SCALING:]
        for distance, i, double, p in found:
            write_set("tie-within-%.1e" % float(distance), p)
            print("pair", i, double.hex())
    for _ in range(60):
        p = dict(FIELDS, scaling=3, rotary_dim=64, original_max_position=4096.0)
        p["factor"] = random.choice([0.5, 1.0, 4.0, 40.0, random.uniform(1, 100)])
        if random.randint(0, 1):
            p["mscale"], p["mscale_all_dim"] = random.uniform(0.1, 2), random.choice([1.0, 0.707])
        value = magnitude(p["factor"], p["mscale"] or 1.0)
        if p["mscale"]:
            value /= magnitude(p["factor"], p["mscale_all_dim"])
        write_set("attention", p)
        print("attention", nearest(value)[0].hex())


def draw_scheme(kind):
    """Scalings 4 to 9, and 3 for YaRN's geometric blend."""
    p = draw(3 if kind == 3 else 1)
    p["scaling"] = kind
    p["rotary_dim"] = max(p["rotary_dim"], 4)
    if kind == 3:
        p["yarn_blend"] = 1
    if kind == 6:
        p["mixed_exponent"] = random.choice([0.625, 0.65, 1.0, 2.0, random.uniform(0.1, 3)])
    if kind in (7, 8):
        p["original_max_position"] = float(random.choice([2048, 4096, 8192, 32768, 1000]))
        p["length"] = int(p["original_max_position"] * random.uniform(0.5, 40))
    if kind == 8:
        for field in ("short_factors", "long_factors"):
            p[field] = [random.uniform(0.9, 60) for _ in range(p["rotary_dim"] // 2)]
    if kind == 9:
        p["rotating_pairs"] = random.randint(1, p["rotary_dim"] // 2)
    return p


def kept(kind):
    """Those of many whose frequencies lie closest to ties, one pair each. Lists are long: few."""
    found, drawn = [], 0
    while drawn < 30000:
        p = draw_scheme(kind)
        for i, value in enumerate(frequencies(p)):
            if i and value:
                double, distance = nearest(value)
                found.append((distance, i, double, p))
                drawn += 1
        found.sort(key=lambda entry: entry[0])
        del found[10 if kind == 8 else KEPT_PER_SCALING:]
    return found


def write_attention(name, p, value):
    write_set(name, p)
    print(name, nearest(value)[0].hex())


def schemes():
    random.seed(20230623)
    for kind in range(3, 10):
        for distance, i, double, p in kept(kind):
            write_set("tie-within-%.1e" % float(distance), p)
            print("pair", i, double.hex())
    for _ in range(40):
        p = dict(FIELDS, scaling=8, rotary_dim=2, short_factors=[1.0], long_factors=[2.0])
        p["factor"] = random.choice([0.5, 1.0, 32.0, random.uniform(1, 100)])
        p["original_max_position"] = float(random.choice([4096, 8192, random.uniform(2, 1e6)]))
        ratio = mp.log(mp.mpf(p["factor"])) / mp.log(mp.mpf(p["original_max_position"]))
        write_attention("attention", p, mp.sqrt(1 + max(ratio, mp.mpf(0))))
    for slope in [7, 10, 25, None] * 10:
        real = mp.mpf(slope) / 100 if slope else mp.mpf(random.uniform(0, 1))
        p = dict(FIELDS, scaling=3, rotary_dim=64, original_max_position=4096.0, factor=40.0)
        p["magnitude_slope"] = float(real)
        write_attention("attention", p, magnitude(p["factor"], 1, real))
        p["mscale_all_dim"] = random.uniform(0.1, 2)
        write_attention("softmax", p, magnitude(p["factor"], p["mscale_all_dim"], real) ** 2)


def rope_block(config, set_id):
    config = config.get("text_config", config)
    block = config.get("rope_parameters") or config.get("rope_scaling") or {}
    nested = "sliding_attention" if set_id == "local" else "full_attention"
    return config, block.get(nested, block)


def golden_parameters(config, expected):
    config, block = rope_block(config, expected["id"])
    p = dict(FIELDS, scaling=SCALINGS[expected["rope_type"]], base=float(expected["theta"]),
             rotary_dim=int(expected["rotary_dim"]))
    if p["scaling"]:
        longest = config["max_position_embeddings"]
        original = block.get("original_max_position_embeddings") or longest
        p["original_max_position"] = float(original)
        p["factor"] = float(block.get("factor") or longest / original)
        for field in list(FIELDS)[5:]:
            if block.get(field) is not None:
                p[field] = type(FIELDS[field])(block[field])
    if p["scaling"] > 3:
        golden_scheme(p, config, block, expected)
    return p


def golden_scheme(p, config, block, expected):
    """Dynamic sets are named by their length, LongRoPE's by what they are for."""
    if p["scaling"] == 7:
        p["length"] = int(expected.get("seq_len", 1))
    elif p["scaling"] == 8:
        p["original_max_position"] = float(expected["original_max_position"])
        if not block.get("factor"):
            p["factor"] = config["max_position_embeddings"] / p["original_max_position"]
        p["length"] = int(p["original_max_position"]) + (expected["id"] == "long")
        for field in ("short_factor", "long_factor"):
            p[field + "s"] = [float(value) for value in block[field]]
    else:
        p["factor"] = float(block.get("factor", 1))
        p["rotating_pairs"] = int(block["partial_rotary_factor"] * p["rotary_dim"] // 2)


def golden(directory, cases_file):
    seen = set()
    for name in sorted(os.listdir(os.path.join(directory, "expected"))):
        expected = json.load(open(os.path.join(directory, "expected", name)))
        config = json.load(open(os.path.join(directory, "configs", name)))
        for rope in expected["rope"] if expected["scheme"] == "rope" else []:
            if rope["rope_type"] not in SCALINGS:
                continue
            p = golden_parameters(config, rope)
            if repr(p) in seen:
                continue
            seen.add(repr(p))
            write_set(name[:-5], p)
            print("attention", rope["attention_factor"])
            print("inv_freq", len(rope["inv_freq"]), *rope["inv_freq"])
            print("inv_freq_f32", len(rope["inv_freq_f32"]), *rope["inv_freq_f32"])
    for case in json.load(open(cases_file))["cases"]:
        if case["id"] in ("B25-a", "B25-b", "B25-d", "B28-a"):
            given = dict(case["parameters"])
            given["original_max_position"] = float(given["original_max_position"])
            p = dict(FIELDS, scaling=3 if case["id"] < "B26" else 2)
            p.update({k: type(FIELDS[k])(v) for k, v in given.items()})
            write_set(case["id"], p)
            values = case["expected"]["inv_freq"]
            print("inv_freq", len(values), *map(text, values))
        if case["id"] == "B26-a":
            for given, value in zip(case["input"]["tries"], case["expected"]):
                write_set(case["id"], dict(FIELDS, scaling=3, rotary_dim=64, **{
                    k: float(v) for k, v in given.items()}))
                print("attention", text(value["magnitude"]))


if __name__ == "__main__":
    print("# SPDX-License-Identifier: MIT")
    print("# Written by tests/make_frequencies.py", *[os.path.basename(a) for a in sys.argv[1:]])
    {"hard": hard, "schemes": schemes, "golden": golden}[sys.argv[1]](*sys.argv[2:])
