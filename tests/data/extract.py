#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Cuts the core tests' number files out of the golden data and the cases: extract.py GOLDEN CASES."""
import glob
import json
import math
import os
import sys

GOLDEN, CASES = sys.argv[1], sys.argv[2]
HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = {"default": 0, "linear": 1, "llama3": 2, "yarn": 3}
CASE_KINDS = ("K01", "K02", "K03", "K04", "K05", "K06", "K07", "K08", "K09", "K10", "K11", "K12",
              "K13", "K14", "K18", "K19")
# What the library cannot express yet, and what other tests read from the configs themselves.
OTHERS = ("B23-b", "B27-b", "B29-a", "B30-a", "B31-b")


def write(name, about, lines):
    with open(os.path.join(HERE, name), "w") as out:
        out.write("# SPDX-License-Identifier: MIT\n# %s\n" % about)
        out.writelines(line + "\n" for line in lines)


def text(value):
    """A number as the file has it, booleans and hex strings as integers."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str):
        return str(int(value, 16)) if value.startswith("0x") else value
    return repr(value)


def is_number(value):
    if isinstance(value, str):
        return value.startswith("0x") or value == "NaN"
    return isinstance(value, (int, float))


def flatten(case, path, value):
    """Lines "CASE PATH numbers" for every number and list of numbers below value."""
    if is_number(value):
        yield "%s %s %s" % (case, path, text(value))
    elif isinstance(value, list) and value and all(is_number(v) for v in value):
        yield "%s %s %s" % (case, path, " ".join(text(v) for v in value))
    elif isinstance(value, (list, dict)):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in pairs:
            yield from flatten(case, "%s.%s" % (path, str(key).replace(" ", "_")), inner)


def cases():
    for case in json.load(open(os.path.join(CASES, "cases.json")))["cases"]:
        if case["kind"] in CASE_KINDS and case["id"] not in OTHERS:
            for key in ("parameters", "input", "expected"):
                yield from flatten(case["id"], key, case.get(key))


def scaling_of(config, kind):
    """The parameters of the rope block, in the order of the test's struct."""
    config = config.get("text_config", config)
    block = config.get("rope_scaling") or config.get("rope_parameters") or {}
    original = block.get("original_max_position_embeddings") or 0
    factor = block.get("factor")
    if kind == "yarn" and factor is None:
        factor = config["max_position_embeddings"] / original
    low, high = block.get("low_freq_factor", 0), block.get("high_freq_factor", 0)
    if low == high and high:
        high = math.nextafter(high, math.inf)  # no wavelength lies between: the blend is never used
    if kind == "default":
        return [0] * 11
    return [KINDS[kind], factor, block.get("attention_factor") or 0, original, low, high,
            block.get("beta_fast") or 32, block.get("beta_slow") or 1, block.get("mscale") or 0,
            block.get("mscale_all_dim") or 0, int(block.get("truncate", True))]


def golden_rows():
    for path in sorted(glob.glob(os.path.join(GOLDEN, "expected", "*.json"))):
        name = os.path.basename(path)[:-5]
        expected = json.load(open(path))
        config = json.load(open(os.path.join(GOLDEN, "configs", name + ".json")))
        for rope in expected.get("rope") or []:
            if rope["rope_type"] not in KINDS:
                continue
            pairs = rope["pairs"]
            chosen = sorted({0, 1, 2, pairs // 4, pairs // 3, pairs // 2, pairs - 2, pairs - 1} - {-1})
            chosen = [i for i in chosen if i < pairs]
            yield "%s/%s plan %s" % (name, rope["id"], " ".join(map(repr, [
                1 if rope["layout"] == "adjacent" else 2, expected["head_dim"], rope["rotary_dim"],
                rope["rotary_offset"], float(rope["theta"]), float(rope["attention_factor"])]
                + scaling_of(config, rope["rope_type"]))))
            yield "%s/%s pairs %s" % (name, rope["id"], " ".join(map(str, chosen)))
            for key in ("inv_freq", "inv_freq_f32"):
                yield "%s/%s %s %s" % (name, rope["id"], key,
                                       " ".join(rope[key][i] for i in chosen))
            yield "%s/%s positions %s" % (name, rope["id"], " ".join(rope["cos"]))
            for position in rope["cos"]:
                for part in ("cos", "sin"):
                    yield "%s/%s %s.%s %s" % (name, rope["id"], part, position, " ".join(
                        rope[part][position][i] for i in chosen))


def golden_axes():
    """Models whose positions have three axes: 13 of the pairs, at the positions that differ."""
    for path in sorted(glob.glob(os.path.join(GOLDEN, "expected", "*.json"))):
        expected = json.load(open(path))
        for rope in expected.get("rope") or []:
            mrope = rope.get("mrope")
            if not mrope:
                continue
            name = "%s/%s" % (os.path.basename(path)[:-5], rope["id"])
            pairs = rope["pairs"]
            chosen = [i * (pairs - 1) // 12 for i in range(13)]
            yield "%s model %s %s" % (name, rope["rotary_dim"], rope["theta"])
            yield "%s axes %s" % (name, " ".join(map(str, mrope["axis_of_pair"])))
            yield "%s pairs %s" % (name, " ".join(map(str, chosen)))
            for n, position in enumerate(mrope["positions_thw"]):
                yield "%s position.%d %s" % (name, n, " ".join(map(str, position)))
                for part in ("cos", "sin"):
                    yield "%s %s.%d %s" % (name, part, n,
                                           " ".join(mrope[part][n][i] for i in chosen))


def golden_sinusoids():
    """Odd widths come with the form that defines them; an interleaved row is Vaswani's."""
    for number, case in enumerate(
            json.load(open(os.path.join(GOLDEN, "extra", "sinusoidal.json")))["cases"]):
        name = "%s/%d" % (case["kind"], number)
        yield "%s dim %d" % (name, case["dim"])
        for key in case:
            if key not in ("kind", "dim", "rows"):
                yield "%s %s %s" % (name, key, text(case[key]))
        yield "%s positions %s" % (name, " ".join(case["rows"]))
        for position, row in case["rows"].items():
            yield "%s row.%s %s" % (name, position, " ".join(row))


def golden_rotations():
    for number, case in enumerate(json.load(open(os.path.join(GOLDEN, "extra", "rotations.json")))["cases"]):
        step = 1 if len(case["rotated"]) <= 240 else 13
        yield "%d case %d %d %d %d %d %d %d %d %d" % (
            number, case["B"], case["T"], case["H"], case["D"], case["rotary_dim"],
            1 if case["layout"] == "adjacent" else 2, case["offset"], case["lcg_seed"], step)
        for key in ("rotated", "rotated_inverse"):
            if key in case:
                yield "%d %s %s" % (number, key, " ".join(case[key][::step]))


def golden_biases():
    alibi = json.load(open(os.path.join(GOLDEN, "extra", "alibi.json")))
    for key in ("slopes", "slopes_bias_max_16"):
        for heads, slopes in (alibi.get(key) or {}).items():
            yield "alibi/%s %s %s" % (heads, key, " ".join(slopes))
    for number, case in enumerate(json.load(open(os.path.join(GOLDEN, "extra", "t5.json")))["cases"]):
        yield "t5/%d settings %d %d %d" % (number, case["num_buckets"], case["max_distance"],
                                           case["bidirectional"])
        yield "t5/%d buckets %s" % (number, " ".join(map(str, case["buckets"])))
        differs = case["exact_differs"]
        if differs:
            yield "t5/%d differs %s" % (number, " ".join("%s %s" % p for p in differs.items()))


def golden_attention():
    """Inputs, then of each case its settings (0 where one is not set) and the result."""
    attention = json.load(open(os.path.join(GOLDEN, "extra", "attention.json")))
    yield "inputs shape %s" % " ".join(str(attention[key]) for key in ("B", "T", "Hq", "Hkv", "D"))
    yield "inputs scale %s" % attention["scale"]
    for key in ("q", "k", "v", "t5_table", "alibi_slopes", "sink"):
        yield "inputs %s %s" % (key, " ".join(attention[key]))
    layouts = {"adjacent": 1, "split_half": 2}
    for case in attention["cases"]:
        args = dict(case["args"])
        settings = [int(args.pop("causal", True)), args.pop("window", 0), args.pop("softcap", 0),
                    int(args.pop("sinks", False)), int(args.pop("alibi", False)),
                    int(args.pop("alibi_scaled", False)), int(args.pop("t5", False)),
                    layouts.get(args.pop("rope", None), 0), args.pop("qoff", 0),
                    args.pop("Tq", attention["T"])]
        assert not args
        yield "%s settings %s" % (case["name"], " ".join(map(str, settings)))
        yield "%s out %s" % (case["name"], " ".join(case["out"]))


# What the reader does not answer: values at sample positions, notes, where a config was found.
UNSTORED = {"name", "source", "source_note", "provenance", "notes", "note", "inv_freq_f32", "cos",
            "sin", "hf_f32_max_abs_err", "positions_thw", "rows_at_position", "buckets",
            "sample_relative", "longrope_rule", "dynamic_rule"}


def stored(value):
    if isinstance(value, dict):
        return {key: stored(inner) for key, inner in value.items() if key not in UNSTORED}
    return [stored(inner) for inner in value] if isinstance(value, list) else value


def contracts():
    for path in sorted(glob.glob(os.path.join(GOLDEN, "expected", "*.json"))):
        with open(os.path.join(HERE, "expected", os.path.basename(path)), "w") as out:
            json.dump(stored(json.load(open(path))), out, separators=(",", ":"))
            out.write("\n")


contracts()
write("cases.txt", "Numbers of the cases from public bug reports: ID PATH values.", cases())
write("golden_rows.txt", "Frequencies, cosines and sines of real models, computed with 50 digits.",
      golden_rows())
write("golden_attention.txt", "Attention of a small example with options, computed in float64.",
      golden_attention())
write("golden_axes.txt", "Rows of real models with three position axes, computed with 50 digits.",
      golden_axes())
write("golden_biases.txt", "Slopes of ALiBi and buckets of T5 for key - query = -600, -599, ...",
      golden_biases())
write("golden_rotations.txt", "Rotated tensors, computed with 50 digits; inputs by the generator.",
      golden_rotations())
write("golden_sinusoids.txt", "Sinusoids of every form, computed with 50 digits.", golden_sinusoids())
