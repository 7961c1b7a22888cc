#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command posenc from outside: diff, fingerprint, rows, bands, compare.

usage: test_tools_models.py POSENC DATA-FOLDER GROUP...
"""
import csv
import io
import json
import math
import os
import re
import subprocess
import sys
import unittest

import mpmath
import numpy as np

from test_tools import COMMAND, Case, DATA, OK, REFUSED, SYSTEM, USAGE

ROW_BOUND = 0.501 * 2.0**-24
LLAMA = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
         "num_hidden_layers": 2, "rope_theta": 10000.0}


def config(name):
    return os.path.join(DATA, "configs", name + ".json")


def frequencies(name, identity="main"):
    """The stored frequencies of a model's set, as doubles."""
    with open(os.path.join(DATA, "expected", name + ".json"), encoding="utf-8") as file:
        for one in json.load(file)["rope"]:
            if one["id"] == identity:
                return [float(w) for w in one["inv_freq"]]
    raise KeyError(identity)


def exact_rows(positions, inv_freq, factor=1.0):
    """By mpmath from doubles: the truth that rows are within their bound of."""
    mpmath.mp.prec = 160
    def of(function):
        return [[float(factor * function(mpmath.mpf(float(p)) * mpmath.mpf(w))) for w in inv_freq]
                for p in positions]
    return np.concatenate([np.array(of(mpmath.cos)), np.array(of(mpmath.sin))], -1)


class Models(Case):
    def model(self, name, **members):
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**LLAMA, **members}, file)
        return path

    def longrope(self):
        pairs = 64
        return self.model("longrope.json", model_type="phi3", max_position_embeddings=131072,
                          original_max_position_embeddings=4096, rope_scaling={
                              "type": "longrope",
                              "short_factor": [1 + i / 64 for i in range(pairs)],
                              "long_factor": [1 + i / 2 for i in range(pairs)]})

    def dynamic(self):
        return self.model("dynamic.json", max_position_embeddings=2048,
                          rope_scaling={"type": "dynamic", "factor": 2.0})


class Diff(Models):
    def differ(self, *words):
        done = self.run_posenc("diff", *words)
        self.assertEqual((done.returncode, done.stderr), (REFUSED, b""))
        return done.stdout.decode()

    def test_same(self):
        a, b = self.model("a.json"), self.model("b.json", max_position_embeddings=77)
        done = self.good("diff", a, b)
        self.assertEqual(done.stdout.decode(), "no difference that changes results\n")
        done = json.loads(self.good("diff", "--json", a, b).stdout)
        self.assertEqual(done, {"a": a, "b": b, "same": True, "differences": []})

    def test_differences(self):
        a = self.model("a.json")
        b = self.model("b.json", rope_theta=500000, num_key_value_heads=8)
        rows = [line.split() for line in self.differ(a, b).splitlines()]
        self.assertEqual(rows[:2], [["A", a], ["B", b]])
        self.assertIn(["num_kv_heads", "32", "8"], rows)
        self.assertIn(["rope[main].theta", "10000", "500000"], rows)
        self.assertEqual(len(rows), 7)
        found = json.loads(self.differ("--json", a, b))
        self.assertEqual(found["same"], False)
        self.assertIn({"key": "rope[main].theta", "a": "10000", "b": "500000"},
                      found["differences"])
        self.assertEqual(len(found["differences"]), 3)
        with open("/dev/full", "wb") as full:
            done = subprocess.run([*COMMAND, "diff", a, b], stdout=full, stderr=subprocess.PIPE,
                                  check=False)
        self.assertEqual(done.returncode, SYSTEM)
        self.assertIn(b"No space left", done.stderr)

    def test_standard_input(self):
        a = self.model("a.json")
        with open(a, "rb") as file:
            self.good("diff", "-", a, stdin=file)
        self.bad(USAGE, "not both", "diff", "-", "-")

    def test_agrees_with_fingerprints(self):
        names = ["llama-1-7b", "llama-2-7b", "llama-3-8b", "llama-3.1-8b", "gemma3-12b"]
        prints = [self.good("fingerprint", config(name)).stdout for name in names]
        for i, a in enumerate(names):
            for k, b in enumerate(names):
                code = self.run_posenc("diff", config(a), config(b)).returncode
                self.assertEqual(code == OK, prints[i] == prints[k], (a, b))
        self.assertEqual(len(set(prints)), 4)

    def test_two_files_of_a_model(self):
        for name in ("deepseek-v2-lite", "gemma3-12b", "qwen3-32b", "jamba-tiny", "bloom-176b"):
            self.good("diff", config(name), os.path.join(DATA, "gguf", name + ".gguf"))
        found = self.differ(config("llama-2-7b"), os.path.join(DATA, "gguf", "llama-2-7b.gguf"))
        self.assertEqual([line.split() for line in found.splitlines()[4:]],
                         [["rope[main].layout", "split_half", "adjacent"]])

    def test_heads_of_one_set(self):
        with open(config("gemma4-26b-a4b"), encoding="utf-8") as file:
            members = json.load(file)
        text = members.get("text_config", members)
        text["num_global_key_value_heads"] = 4
        with open(self.path("config.json"), "w", encoding="utf-8") as file:
            json.dump(members, file)
        found = self.differ(config("gemma4-26b-a4b"), self.folder)
        self.assertRegex(found, r"\nrope\[global\]\.num_kv_heads +\d+ +4\n")
        self.assertEqual(found.count("\n"), 5)

    def test_lists_in_reach(self):
        a, factors = self.longrope(), [1 + i / 64 for i in range(64)]
        with open(a, encoding="utf-8") as file:
            members = json.load(file)
        members["rope_scaling"]["short_factor"][3] = 9
        b = self.model("b.json", **members)
        lines = [line.split() for line in self.differ(a, b).splitlines()[4:]]
        self.assertEqual(lines, [["rope[short].short_factors[3]", str(factors[3]), "9"]])

    def test_absent_numbers(self):
        a = self.model("a.json", model_type="mistral", sliding_window=None)
        b = self.model("b.json", model_type="mistral", sliding_window=64)
        self.assertRegex(self.differ(a, b), r"\nsliding_window +none +64\n")

    def test_refusals(self):
        a = self.model("a.json")
        with open(self.path("bad.json"), "w", encoding="utf-8") as file:
            file.write("{")
        self.bad(REFUSED, "bad.json", "diff", a, self.path("bad.json"))
        self.bad(SYSTEM, "none.json", "diff", self.path("none.json"), a)
        self.bad(USAGE, "got 1 operands", "diff", a)
        self.bad(USAGE, "got 3 operands", "diff", a, a, a)


class Fingerprint(Models):
    def print_of(self, *words):
        text = self.good("fingerprint", *words).stdout.decode()
        self.assertRegex(text, r"^[0-9a-f]{32}\n$")
        return text

    def test_models(self):
        a = self.print_of(self.model("a.json"))
        self.assertEqual(a, self.print_of(self.model("b.json", max_position_embeddings=4)))
        self.assertNotEqual(a, self.print_of(self.model("b.json", rope_theta=10001)))
        self.assertEqual(self.print_of("--model", self.model("a.json")), a)

    def test_plans(self):
        """The plan of width 64 and 32 rotary channels, hashed apart from the library."""
        mpmath.mp.prec = 300
        value = 0x6C62272E07BB014262B821756295C58D
        words = [1, 2, 64, 32, 0, 0, 1, 1, 0, 1]
        data = np.array(words, "<i8").tobytes() + np.array(
            [1, 1] + [float(mpmath.mpf(10000) ** (mpmath.mpf(-i) / 16)) for i in range(16)],
            "<f8").tobytes()
        for byte in data:
            value = (value ^ byte) * ((1 << 88) + 0x13B) % (1 << 128)
        self.assertEqual(self.print_of("--rope", "32,head=64"), f"{value:032x}\n")

    def test_sets(self):
        model = config("gemma3-12b")
        whole, local, other = (self.print_of(*words, model) for words in (
            [], ["--set", "local"], ["--set", "global"]))
        self.assertEqual(len({whole, local, other}), 3)
        self.assertEqual(self.print_of("--layer", 0, model), local)
        self.assertEqual(self.print_of("--layer", 5, model), other)

    def test_lengths(self):
        model = self.dynamic()
        short, same, longer = (self.print_of("--length", n, model) for n in (7, 2048, 2049))
        self.assertEqual(short, same)
        self.assertNotEqual(short, longer)
        self.assertEqual(self.print_of("--set", "dynamic@2049", model), longer)
        self.assertEqual(self.print_of("--set", "main", model), short)

    def test_lengths_of_one_kind_of_layer(self):
        with open(config("gemma3-12b"), encoding="utf-8") as file:
            members = json.load(file)
        text = members.get("text_config", members)
        text["rope_scaling"] = {"rope_type": "dynamic", "factor": 2.0}
        with open(self.path("config.json"), "w", encoding="utf-8") as file:
            json.dump(members, file)
        length = 10 * text["max_position_embeddings"]
        by_id = self.print_of("--set", f"global-dynamic@{length}", self.folder)
        self.assertEqual(self.print_of("--layer", 5, "--length", length, self.folder), by_id)
        self.assertNotEqual(self.print_of("--set", "global", self.folder), by_id)
        self.bad(REFUSED, "but --length is 7", "fingerprint", "--set", f"global-dynamic@{length}",
                 "--length", 7, self.folder)
        self.bad(REFUSED, "must be one of global, local", "fingerprint", "--set", "dynamic@9",
                 self.folder)

    def test_lengths_without_a_model(self):
        rope = ["--rope", "128,scaling=dynamic,factor=2,original=2048"]
        short, same, longer = (self.print_of("--length", n, *rope) for n in (7, 2048, 2049))
        self.assertEqual(short, same)
        self.assertEqual(short, self.print_of("--rope", 128))
        self.assertNotEqual(short, longer)
        self.bad(USAGE, "need --length", "fingerprint", *rope)

    def test_refusals(self):
        model = self.model("a.json")
        self.bad(REFUSED, ["--set is x", "main"], "fingerprint", "--set", "x", model)
        self.bad(REFUSED, ["past 2048", "--length", "--set main"], "fingerprint", "--layer", 0,
                 self.dynamic())
        self.bad(REFUSED, "not rotated", "fingerprint", "--layer", 3, config("llama4-scout"))
        self.bad(USAGE, "needs one MODEL", "fingerprint")
        self.bad(USAGE, "too many", "fingerprint", model, model)
        self.bad(USAGE, "too many", "fingerprint", "--rope", "8", model)
        self.bad(SYSTEM, "none.json", "fingerprint", self.path("none.json"))


class Rows(Models):
    def rows(self, *words):
        self.good("rows", *words, "-o", self.path("rows.npy"))
        return np.load(self.path("rows.npy"))

    def test_stored_frequencies(self):
        for name, identity in (("llama-3.1-8b", "main"), ("gemma3-12b", "global"),
                               ("deepseek-v2-lite", "main")):
            w = frequencies(name, identity)
            for start in (0, 4093, 131071):
                got = self.rows("--model", config(name), "--set", identity, "--start", start,
                                "--count", 2, "--no-attention-factor")
                self.assertEqual((got.dtype, got.shape), (np.float32, (2, 2 * len(w))))
                # beyond the rows' own bound, the stored 17 digits may miss a double by one ulp
                slack = start * max(w) * 2.0**-52
                self.assertNear(got, exact_rows([start, start + 1], w), ROW_BOUND + slack)

    def test_attention_factor(self):
        rope = "8,scaling=yarn,factor=4,original=64"
        plain = self.rows("--rope", rope, "--count", 5, "--no-attention-factor")
        whole = self.rows("--rope", rope, "--count", 5)
        factor = 0.1 * math.log(4) + 1
        self.assertNear(plain[:, :4]**2 + plain[:, 4:]**2, np.ones((5, 4)), 3e-7)
        self.assertNear(whole, plain * factor, 3e-7)

    def test_positions(self):
        w = [1e4 ** (-i / 4) for i in range(4)]
        flat = self.rows("--rope", 8, "--start", -3, "--count", 6)
        self.assertNear(flat, exact_rows(range(-3, 3), w), ROW_BOUND)
        for dtype in (np.int32, np.int64, np.float64):
            ids = self.save("ids.npy", np.arange(-3, 3, dtype=dtype))
            self.assertEqual(self.rows("--rope", 8, "--positions", ids).tobytes(), flat.tobytes())
        ids = self.save("ids.npy", np.arange(-3, 3).reshape(2, 3))
        got = self.rows("--rope", 8, "--positions", ids)
        self.assertEqual((got.shape, got.tobytes()), ((2, 3, 8), flat.tobytes()))
        long = self.rows("--rope", 8, "--start", 7, "--count", 600)
        ids = self.save("ids.npy", np.arange(7, 607))
        self.assertEqual(self.rows("--rope", 8, "--positions", ids).tobytes(), long.tobytes())
        self.assertNear(long[-1:], exact_rows([606], w), ROW_BOUND)
        ids = self.save("ids.npy", np.array([0.5, -1234.0625]))
        got = self.rows("--rope", 8, "--positions", ids)
        self.assertNear(got, exact_rows([0.5, -1234.0625], w), ROW_BOUND)

    def test_axes(self):
        model = self.model("vl.json", model_type="qwen2_vl", hidden_size=64,
                           num_attention_heads=2,
                           rope_scaling={"type": "mrope", "mrope_section": [8, 4, 4]})
        ids = np.arange(18).reshape(3, 2, 3) * 7
        got = self.rows("--model", model, "--positions", self.save("ids.npy", ids))
        w = [1e4 ** (-i / 16) for i in range(16)]
        axis = np.repeat([0, 1, 2], [8, 4, 4])
        for b in range(2):
            for t in range(3):
                angle = ids[axis, b, t] * np.array(w)
                want = np.concatenate([np.cos(angle), np.sin(angle)])
                self.assertNear(got[b, t], want, ROW_BOUND + 1e-13)
        done = self.good("rows", "--model", model, "--positions", self.path("ids.npy"), "--format",
                         "csv").stdout.decode()
        lines = list(csv.reader(io.StringIO(done)))
        self.assertEqual(lines[0][:5], ["batch", "position", "position_1", "position_2", "cos_0"])
        self.assertEqual([line[:4] for line in lines[1:3]], [["0", "0", "42", "84"],
                                                             ["0", "7", "49", "91"]])

    def test_formats(self):
        want = self.rows("--rope", 6, "--start", 5, "--count", 300)
        text = self.good("rows", "--rope", 6, "--start", 5, "--count", 300).stdout.decode()
        self.assertTrue(text.startswith("position 5\n  pair "), text[:80])
        values = [line.split() for line in text.splitlines() if re.match(r" +\d", line)]
        got = np.array(values, np.float64).reshape(300, 3, 3)
        self.assertEqual(got[..., 0].tolist(), [[0, 1, 2]] * 300)
        both = np.concatenate([got[..., 1], got[..., 2]], 1).astype(np.float32)
        self.assertEqual(both.tobytes(), want.tobytes())
        self.good("rows", "--rope", 6, "--start", 5, "--count", 300, "-o", self.path("rows.csv"))
        with open(self.path("rows.csv"), encoding="ascii") as file:
            lines = list(csv.reader(file))
        self.assertEqual(lines[0], ["position"] + [f"cos_{i}" for i in range(3)] +
                         [f"sin_{i}" for i in range(3)])
        table = np.array(lines[1:], np.float64)
        self.assertEqual(table[:, 0].tolist(), list(range(5, 305)))
        self.assertEqual(table[:, 1:].astype(np.float32).tobytes(), want.tobytes())
        done = self.good("rows", "--rope", 6, "--start", 5, "--count", 300, "--format", "npy")
        self.assertEqual(np.load(io.BytesIO(done.stdout)).tobytes(), want.tobytes())

    def test_float64(self):
        w = [1e4 ** (-i / 4) for i in range(4)]
        words = ["--rope", 8, "--start", 100000, "--count", 2, "--dtype", "f64"]
        got = self.rows(*words)
        self.assertEqual(got.dtype, np.float64)
        self.assertNear(got, exact_rows([100000, 100001], w), 2.0**-52)
        text = self.good("rows", *words, "--format", "csv").stdout.decode().splitlines()
        self.assertEqual([float(x) for x in text[1].split(",")[1:]], got[0].tolist())

    def test_recipes(self):
        words = ["--rope", 8, "--start", 1000, "--count", 3]
        exact = self.rows(*words)
        for recipe in ("hf_f32", "vllm", "ggml"):
            got = self.rows(*words, "--recipe", recipe)
            self.assertNear(got, exact.astype(np.float64), 2e-4)
            self.assertNotEqual(got.tobytes(), exact.tobytes())
        self.assertEqual(self.rows(*words, "--recipe", "exact").tobytes(), exact.tobytes())

    def test_empty(self):
        self.assertEqual(self.rows("--rope", 8, "--count", 0).shape, (0, 8))
        ids = self.save("ids.npy", np.zeros((2, 0), np.int64))
        self.assertEqual(self.rows("--rope", 8, "--positions", ids).shape, (2, 0, 8))

    def test_lengths(self):
        short, longer = self.longrope(), self.dynamic()
        base = ["--no-attention-factor", "--count", 3, "--start", 9]
        for words, w in (
                (["--model", short, "--length", 4096], [1e4 ** (-i / 64) / (1 + i / 64)
                                                        for i in range(64)]),
                (["--model", short, "--set", "long"], [1e4 ** (-i / 64) / (1 + i / 2)
                                                       for i in range(64)]),
                (["--model", short, "--layer", 1, "--length", 4097],
                 [1e4 ** (-i / 64) / (1 + i / 2) for i in range(64)]),
                (["--model", longer, "--length", 4096],
                 [(1e4 * 3 ** (128 / 126)) ** (-i / 64) for i in range(64)])):
            self.assertNear(self.rows(*words, *base), exact_rows([9, 10, 11], w), ROW_BOUND + 1e-13)
        self.bad(REFUSED, ["short, long", "--length"], "rows", "--model", short, "--count", 1)
        self.bad(REFUSED, "length 4097", "rows", "--model", short, "--set", "short", "--length",
                 4097, "--count", 1)
        self.bad(REFUSED, "--length", "rows", "--model", longer, "--count", 1)

    def test_limit(self):
        words = ["rows", "--model", config("llama-3.1-8b"), "--start", 131071, "--count", 2]
        self.bad(REFUSED, "131072", *words, "--limit")
        done = self.good(*words)
        self.assertIn(b"max_position_embeddings = 131072", done.stderr)

    def test_refusals(self):
        out = ["-o", self.path("rows.npy")]
        self.bad(REFUSED, "2147483648", "rows", "--rope", 8, "--start", 2**31 - 1, "--count", 2)
        ids = self.save("ids.npy", np.array([0] * 1000 + [2**31]))
        self.bad(REFUSED, "ids.npy", "rows", "--rope", 8, "--positions", ids)
        self.bad(REFUSED, "ids.npy", "rows", "--rope", 8, "--positions", ids, *out)
        ids = self.save("ids.npy", np.zeros((3, 2, 2), np.int64))
        self.bad(REFUSED, "axes", "rows", "--rope", 8, "--positions", ids)
        ids = self.save("ids.npy", np.zeros(2, np.float32))
        self.bad(REFUSED, "int32, int64 or float64", "rows", "--rope", 8, "--positions", ids)
        self.bad(REFUSED, "F32", "rows", "--rope", 8, "--count", 1, "--recipe", "ggml", "--dtype",
                 "f64")
        self.bad(REFUSED, "layer 3", "rows", "--model", config("llama4-scout"), "--layer", 3,
                 "--count", 1)
        self.bad(REFUSED, "rotary_dim", "rows", "--rope", 7, "--count", 1)
        self.bad(SYSTEM, "none.npy", "rows", "--rope", 8, "--positions", self.path("none.npy"))
        self.bad(SYSTEM, "No space", "rows", "--rope", 8, "--count", 9, "-o", "/dev/full")
        self.bad(SYSTEM, "none/rows", "rows", "--rope", 8, "--count", 9, "-o",
                 self.path("none/rows.npy"))
        for say, words in (("one of --count", ["--rope", 8]),
                           ("one of --count", ["--rope", 8, "--count", 1, "--positions", "x"]),
                           ("exclude", ["--rope", 8, "--start", 1, "--positions", "x"]),
                           ("--count is -1", ["--count", "-1"]),
                           ("--format is x", ["--format", "x"]),
                           ("--dtype is f16", ["--dtype", "f16"]),
                           ("--recipe is x", ["--recipe", "x"]),
                           ("one operand too many", ["--rope", 8, "--count", 1, "x"]),
                           ("needs a value", ["--rope", 8, "--count", 1, "-o"]),
                           ("--model or --rope", ["--count", 1])):
            self.bad(USAGE, say, "rows", *words)


class Bands(Models):
    def bands(self, *words):
        return json.loads(self.good("bands", "--json", *words).stdout)

    def test_width_128_and_2048_tokens(self):
        """Wavelengths 2 pi 10000^(i/64) and turns within 2048 tokens, of pairs 0, 20, 40, 62."""
        mpmath.mp.prec = 120
        found = self.bands("--rope", 128, "--trained", 2048)
        self.assertEqual((found["pairs"], found["trained"], len(found["bands"])), (64, 2048, 64))
        for i, wavelength, turns in ((0, 6.2832, 325.95), (20, 111.73, 18.329),
                                     (40, 1986.9, 1.0307), (62, 47117, 0.043466)):
            truth = 2 * mpmath.pi * mpmath.mpf(10000) ** (mpmath.mpf(i) / 64)
            self.assertAlmostEqual(float(truth) / wavelength, 1, 4)
            band = found["bands"][i]
            self.assertEqual((band["pair"], band["scaling"], band["divisor"]), (i, "kept", 1))
            self.assertEqual(band["frequency"], float(2 * mpmath.pi / truth))
            self.assertAlmostEqual(band["wavelength"] / float(truth), 1, 14)
            self.assertAlmostEqual(band["turns"] / float(2048 / truth), 1, 14)
            self.assertAlmostEqual(band["turns"] / turns, 1, 4)
        lines = self.good("bands", "--rope", 128, "--trained", 2048).stdout.decode().splitlines()
        for i, words in ((0, "0 1 6.28319 325.949 kept"), (20, "20 0.0562341 111.733 18.3295 kept"),
                         (40, "40 0.00316228 1986.92 1.03074 kept"),
                         (62, "62 0.000133352 47117.2 0.043466 kept")):
            self.assertEqual(lines[3 + i].split(), words.split())
        self.assertEqual(lines[-1], "23 pairs never complete a turn within 2048 tokens")

    def test_last_line(self):
        for name, options, last in (
                ("llama-3.1-8b", (), "32 pairs never complete a turn within 8192 tokens; "
                                     "by unscaled frequencies 29"),
                ("gemma4-26b-a4b", ("--set", "global"), "192 pairs stand still")):
            printed = self.good("bands", *options, config(name)).stdout.decode()
            self.assertEqual(printed.splitlines()[-1], last)

    def test_scaling(self):
        found = self.bands(config("llama-3.1-8b"))
        self.assertEqual((found["set"], found["theta"], found["trained"]), ("main", 500000, 8192))
        kept, blended, divided = (
            [b["pair"] for b in found["bands"] if b["scaling"] == word]
            for word in ("kept", "blended", "divided"))
        # w > 2 pi 4 / 8192 is kept, w < 2 pi / 8192 divided by 8
        w = [500000 ** (-i / 64) for i in range(64)]
        self.assertEqual(kept, [i for i in range(64) if 2 * math.pi / w[i] < 8192 / 4])
        self.assertEqual(divided, [i for i in range(64) if 2 * math.pi / w[i] > 8192])
        self.assertEqual(sorted(kept + blended + divided), list(range(64)))
        stored = frequencies("llama-3.1-8b")
        for band, frequency in zip(found["bands"], stored):
            self.assertAlmostEqual(band["frequency"] / frequency, 1, 14)
            self.assertAlmostEqual(band["divisor"] * band["frequency"] / band["unscaled"], 1, 14)
        text = self.good("bands", config("llama-3.1-8b")).stdout.decode()
        self.assertIn("divided by 8\n", text)
        self.assertRegex(text, r"blended: divided by \d")

    def test_still_pairs(self):
        found = self.bands("--rope", "16,scaling=proportional,rotating=2", "--trained", 64)
        self.assertEqual([b["scaling"] for b in found["bands"]], ["kept"] * 2 + ["still"] * 6)
        self.assertEqual(found["bands"][7]["wavelength"], None)
        self.assertEqual(found["bands"][7]["turns"], 0)
        text = self.good("bands", "--rope", "16,scaling=proportional,rotating=2").stdout.decode()
        self.assertRegex(text, r"\n     7 +0 +- +- +still\n")
        self.assertIn("the trained length is not known", text)

    def test_sets(self):
        self.bad(REFUSED, ["global", "local"], "bands", config("gemma3-12b"))
        self.assertEqual(self.bands("--layer", 0, config("gemma3-12b"))["set"], "local")
        found = self.bands("--set", "long", self.longrope())
        self.assertEqual((found["trained"], found["bands"][63]["divisor"]), (4096, 32.5))

    def test_refusals(self):
        self.bad(USAGE, "--trained is 0", "bands", "--rope", 8, "--trained", 0)
        self.bad(USAGE, "needs one MODEL", "bands")
        self.bad(USAGE, "too many", "bands", "a", "b")
        self.bad(SYSTEM, "none.json", "bands", self.path("none.json"))
        self.bad(REFUSED, "not rotated", "bands", "--layer", 3, config("llama4-scout"))
        self.bad(REFUSED, "factor", "bands", "--rope", "8,scaling=linear")


class Compare(Models):
    def compare(self, *words):
        found = json.loads(self.good("compare", "--json", *words).stdout)
        return found, {one["recipe"]: one for one in found["recipes"]}

    def test_against_rows(self):
        """The same numbers as two arrays of `posenc rows` give."""
        found, recipes = self.compare("--rope", 32, "--upto", 1000)
        self.assertEqual((found["set"], found["upto"]), ("--rope", 1000))
        rows = {}
        for recipe in ("exact", "hf_f32", "vllm", "ggml"):
            self.good("rows", "--rope", 32, "--count", 1001, "--recipe", recipe, "-o",
                      self.path("rows.npy"))
            rows[recipe] = np.load(self.path("rows.npy")).astype(np.float64)
        self.assertEqual(sorted(recipes), ["ggml", "hf_f32", "vllm"])
        for name, one in recipes.items():
            self.assertEqual(one["refused"], None)
            self.assertEqual([(r["first"], r["last"]) for r in one["by_position"]],
                             [(0, 0)] + [(2**n, min(2**(n + 1) - 1, 1000)) for n in range(10)])
            difference = np.abs(rows[name] - rows["exact"])
            for part in one["by_position"]:
                piece = difference[part["first"]:part["last"] + 1]
                self.assertEqual(part["difference"], piece.max())
                at = difference[part["position"]]
                self.assertEqual(max(at[part["pair"]], at[16 + part["pair"]]), part["difference"])
            self.assertEqual(one["worst"]["difference"], difference.max())
            self.assertGreater(difference.max(), 1e-5)

    def test_default_limit(self):
        found, _ = self.compare(self.model("a.json", max_position_embeddings=300))
        self.assertEqual(found["upto"], 299)

    def test_refused_recipes_are_listed(self):
        words = ["--rope", "16,scaling=ntk_mixed,factor=2,exponent=0.5", "--upto", 4]
        _, recipes = self.compare(*words)
        refused = [name for name, one in recipes.items() if one["refused"]]
        self.assertIn("hf_f32", refused)
        self.assertNotIn("vllm", refused)
        self.assertEqual(recipes["hf_f32"]["worst"], None)
        self.assertEqual(recipes["hf_f32"]["by_position"], [])
        text = self.good("compare", *words).stdout.decode()
        self.assertRegex(text, r"\nhf_f32 +refused: [^\n]*recipe")

    def test_table(self):
        text = self.good("compare", "--rope", 32, "--upto", 100).stdout.decode()
        self.assertRegex(text, r"\npositions +hf_f32 +vllm +ggml\n0 +0\.00e\+00 ")
        self.assertRegex(text, r"\n64\.\.100 +\d\.\d\de-0\d +\d\.\d\de-0\d +\d\.\d\de-0\d\n")
        self.assertRegex(text, r"\nggml +\S+ at position \d+, pair \d+\n")

    def test_refusals(self):
        self.bad(USAGE, "--upto is -1", "compare", "--rope", 8, "--upto", -1)
        self.bad(USAGE, "needs one MODEL", "compare")
        self.bad(REFUSED, ["global", "local"], "compare", config("gemma3-12b"))
        self.bad(SYSTEM, "none.json", "compare", self.path("none.json"))
        self.bad(REFUSED, "not rotated", "compare", "--layer", 3, config("llama4-scout"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
