#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command posenc from outside: sinusoids, and run for models that are not rotated.

usage: test_tools_other.py POSENC DATA-FOLDER GROUP...
"""
import csv
import io
import json
import sys
import unittest

import mpmath
import numpy as np

from test_tools import Case, REFUSED, USAGE
from test_tools_models import ROW_BOUND, config

mpmath.mp.prec = 120


def sinusoid(width, positions, form="interleaved", base=10000, shift=None, scale=1):
    """By the formula, in mpmath: [position][channel]."""
    by_width = form in ("interleaved", "halves_vaswani")
    if shift is None:
        shift = 1 if form in ("halves", "timestep") else 0
    h = (width + 1) // 2 if form == "halves_vaswani" else width // 2
    over = mpmath.mpf(width) / 2 if by_width else h
    waves = [float(scale * mpmath.mpf(base) ** (-mpmath.mpf(i) / (over - shift)))
             for i in range(h)]
    rows = []
    for p in positions:
        sines = [mpmath.sin(mpmath.mpf(p) * w) for w in waves]
        cosines = [mpmath.cos(mpmath.mpf(p) * w) for w in waves]
        if form == "interleaved":
            row = [v for pair in zip(sines, cosines) for v in pair]
        elif form == "ggml":
            row = cosines + sines + [mpmath.mpf(0)] * (width % 2)
        else:
            row = sines + cosines + [mpmath.mpf(0)] * (width % 2)
        rows.append([float(v) for v in row[:width]])
    return np.array(rows)


class Sinusoid(Case):
    def rows(self, *words):
        self.good("rows", *words, "-o", self.path("rows.npy"))
        return np.load(self.path("rows.npy"))

    def test_lesson(self):
        """Width 8 at the positions of the lesson, to the digits that are printed there."""
        positions = [0, 1, 2, 100, 10000]
        ids = self.save("ids.npy", np.array(positions))
        got = self.rows("--sinusoid", 8, "--positions", ids)
        self.assertNear(got, sinusoid(8, positions), ROW_BOUND)
        np.testing.assert_array_equal(got[0], [0, 1] * 4)

    def test_forms(self):
        for form in ("interleaved", "halves", "halves_vaswani", "timestep", "ggml"):
            for width in (6, 64):
                got = self.rows("--sinusoid", f"{width},form={form}", "--count", 40)
                self.assertNear(got, sinusoid(width, range(40), form), ROW_BOUND)

    def test_odd_width(self):
        for form in ("halves", "halves_vaswani", "ggml"):
            got = self.rows("--sinusoid", f"7,form={form}", "--count", 9)
            self.assertNear(got, sinusoid(7, range(9), form), ROW_BOUND)
        self.bad(REFUSED, ["dim is 7", "even"], "rows", "--sinusoid", 7, "--count", 1)
        got = self.rows("--sinusoid", "7,odd=zero", "--count", 9)
        self.assertEqual(np.abs(got[:, 6]).max(), 0)

    def test_keys(self):
        got = self.rows("--sinusoid", "8,scale=0.5,base=500,shift=0,form=halves", "--count", 9,
                        "--start", -3)
        self.assertNear(got, sinusoid(8, range(-3, 6), "halves", 500, 0, 0.5), ROW_BOUND)
        got = self.rows("--sinusoid", "8,offset=2", "--count", 9)
        self.assertNear(got, sinusoid(8, range(2, 11)), ROW_BOUND)
        got = self.rows("--sinusoid", "8,form=halves,cosine_first=1", "--count", 5)
        want = sinusoid(8, range(5), "halves")
        self.assertNear(got, np.concatenate([want[:, 4:], want[:, :4]], 1), ROW_BOUND)
        double = self.rows("--sinusoid", 8, "--count", 300, "--dtype", "f64")
        self.assertNear(double, sinusoid(8, range(300)), 2.0**-53)

    def test_models(self):
        for name, width, form, offset in (("m2m100-418m", 1024, "halves", 2),
                                          ("opus-mt-en-de", 512, "halves_vaswani", 0),
                                          ("whisper-large-v2", 1280, "halves", 0)):
            got = self.rows("--model", config(name), "--count", 3)
            self.assertNear(got, sinusoid(width, range(offset, offset + 3), form), ROW_BOUND)

    def test_text_and_csv(self):
        want = self.rows("--sinusoid", 4, "--count", 2)
        text = self.good("rows", "--sinusoid", 4, "--count", 2, "--format", "csv").stdout.decode()
        table = list(csv.reader(io.StringIO(text)))
        self.assertEqual(table[0], ["position"] + [f"channel_{i}" for i in range(4)])
        np.testing.assert_array_equal(np.array(table[1:], np.float32)[:, 1:], want)
        lines = self.good("rows", "--sinusoid", 4, "--count", 2).stdout.decode().splitlines()
        self.assertEqual(lines[0], "position 0")
        self.assertEqual([line.split() for line in lines[2:6]],
                         [[str(i), f"{v:.9g}"] for i, v in enumerate(want[0])])
        self.assertEqual((lines[6], len(lines)), ("position 1", 12))

    def test_refused(self):
        one = ["--count", 1]
        for text, say in (("0", "WIDTH"), ("x", "WIDTH"), ("8,form=x", "form is 'x'"),
                          ("8,base=x", "base is 'x'"), ("8,x=1", "'x'"), ("8,odd=x", "odd is"),
                          ("8,cosine_first=2", "cosine_first"), ("8,offset=x", "offset is"),
                          ("8,base=2,base=3", "given twice")):
            self.bad(USAGE, ["--sinusoid", say], "rows", "--sinusoid", text, *one)
        self.bad(USAGE, "exclude each other", "rows", "--sinusoid", 8, "--rope", 8, *one)
        self.bad(USAGE, "need --model", "rows", "--sinusoid", 8, "--limit", *one)
        self.bad(REFUSED, "are for rotations", "rows", "--sinusoid", 8, "--recipe", "ggml", *one)
        self.bad(REFUSED, "base", "rows", "--sinusoid", "8,base=1", *one)
        self.bad(REFUSED, "neither rotation", "rows", "--model", config("gpt2"), *one)
        self.bad(REFUSED, "1024", "rows", "--model", config("m2m100-418m"), "--limit", "--start",
                 1024, *one)


# Of each model: what it works on, and the shape of one pass with 32 tokens at 3.
WORK = {
    "bloom-176b": [("alibi", [1, 32, 112, 35])],
    "falcon-rw-1b": [("alibi", [1, 32, 32, 35])],
    "t5-small": [("t5", [1, 32, 8, 35]), ("t5", [1, 32, 8, 35])],
    "whisper-large-v2": [("sinusoid", [1, 32, 1, 1280]), ("learned", [1, 32, 1, 1280])],
    "m2m100-418m": [("sinusoid", [1, 32, 1, 1024])],
    "gpt2": [("learned", [1, 32, 1, 768])],
}


class Other(Case):
    def run_json(self, name, *words):
        return json.loads(self.good("run", "--json", *words, config(name)).stdout)

    def test_models(self):
        for turn, (name, want) in enumerate(WORK.items()):
            dtype = ("f32", "f16", "bf16")[turn % 3]
            got = self.run_json(name, "--tokens", 32, "--start", 3, "--dtype", dtype)
            self.assertIs(got["self_check"]["ok"], True, name)
            self.assertEqual([(w["op"], w["shape"]) for w in got["work"]], want)
            self.assertEqual(got["step"], {"tokens": 32, "start": 3, "dtype": dtype})
            for work in got["work"]:
                self.check_work(work, dtype)

    def check_work(self, work, dtype):
        self.assertEqual(work["self_check"]["isas_equal"], True)
        self.assertLessEqual(work["self_check"]["error_of_bound"], 1)
        if work["op"] != "t5":  # what is computed is rounded somewhere
            self.assertGreater(work["self_check"]["error_of_bound"], 0.3)
        size = np.prod(work["shape"]) * (4 if dtype == "f32" else 2)
        self.assertEqual(work["bytes"], size * (1 if work["op"] in ("alibi", "t5") else 2))
        names = [r["isa"] for r in work["results"]]
        self.assertEqual(names[-1], "scalar")
        self.assertEqual(sum(r["default"] for r in work["results"]), 1)
        for one in work["results"] + [work["limit"]]:
            rate = one["bytes_per_second"] / one["tokens_per_second"]
            self.assertAlmostEqual(rate * work["shape"][1] / work["bytes"], 1, 9)
        for one in work["results"]:
            self.assertGreater(one["ratio_to_limit"], 0)
            self.assertGreaterEqual(one["spread"], 0)

    def test_text(self):
        text = self.good("run", "--tokens", 8, config("falcon-rw-1b")).stdout.decode()
        self.assertLessEqual(max(map(len, text.splitlines()[1:])), 80)
        for say in (r"\n  model     falcon, ALiBi, 24 layers, 32 heads of 64\n",
                    r"\nalibi: bias of 8 queries, 32 heads, 8 keys, f32, 8\.0 KiB\n",
                    r"\nself-check: ok     values  off by 0\.\d+ of their bound",
                    r"\nself-check: ok     ISAs ", r"\n\* \w+ +\d+ +\d+\.\d +\d+\.\d\d\n",
                    r"\n  limit .*filling the bytes \(memset\)\n"):
            self.assertRegex(text, say)

    def test_fewer_tokens_than_a_table(self):
        got = self.run_json("whisper-large-v2")
        self.assertEqual([w["shape"][1] for w in got["work"]], [512, 448])

    def test_far_start(self):
        got = self.run_json("bloom-176b", "--tokens", 1, "--start", 1000000, "--dtype", "f16")
        self.assertEqual(got["work"][0]["shape"], [1, 1, 112, 1000001])

    def test_refusals(self):
        self.bad(REFUSED, "1024", "run", "--tokens", 1025, config("gpt2"))
        self.bad(REFUSED, "-1", "run", "--start", -1, config("gpt2"))
        self.bad(REFUSED, "--start is -1", "run", "--start", -1, config("bloom-176b"))
        self.bad(REFUSED, "are for rotations", "run", "--layers", 1, config("gpt2"))
        self.bad(REFUSED, "are for rotations", "run", "--set", "main", config("t5-small"))
        self.bad(REFUSED, "--limit", "run", "--limit", "--start", 2000, config("bloom-176b"))
        self.bad(REFUSED, "states no trained limit", "run", "--limit", config("mt5-small"))
        self.bad(REFUSED, "no positions", "run", config("jamba-tiny"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
