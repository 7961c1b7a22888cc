#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command posenc from outside: bias.

usage: test_tools_bias.py POSENC DATA-FOLDER GROUP...
"""
import sys
import unittest

import mpmath
import numpy as np

from test_tools import Case, REFUSED, SYSTEM, USAGE, bf16, widened
from test_tools_models import config

mpmath.mp.prec = 120


def slopes(heads, most=8):
    n = 1 << (heads.bit_length() - 1)
    powers = [mpmath.mpf(most) * (k + 1) / n for k in range(n)]
    powers += [mpmath.mpf(most) / 2 * (2 * k + 1) / n for k in range(heads - n)]
    return [float(mpmath.mpf(2) ** -p) for p in powers]


def alibi(heads, queries, keys, offset, most=8, both=False, scale=1.0):
    """The formula in float64: [head, query, key], future keys 0."""
    distance = np.arange(queries)[:, None] + offset - np.arange(keys)
    distance = np.abs(distance) if both else np.maximum(distance, 0)
    return -scale * np.array(slopes(heads, most))[:, None, None] * distance


def bucket(relative, buckets, most, causal=False):
    """The formula in real arithmetic; floor finds whole distances by comparing powers."""
    n = buckets if causal else buckets // 2
    e, side = n // 2, 0 if causal or relative <= 0 else n
    d = max(-relative, 0) if causal else abs(relative)
    if d < e:
        return side + d
    k = 0  # the largest with e (most/e)^(k/(n-e)) <= d, as integers
    while k < n - e and most ** (k + 1) * e ** (n - e) <= d ** (n - e) * e ** (k + 1):
        k += 1
    return side + min(e + k, n - 1)


def buckets(queries, keys, offset, *shape):
    return np.array([[bucket(k - q - offset, *shape) for k in range(keys)]
                     for q in range(queries)])


class Bias(Case):
    def bias(self, *words):
        self.good("bias", *words, "-o", self.path("b.npy"))
        return np.load(self.path("b.npy"))

    def assertBias(self, got, want):
        """Within 0.51 ulp of float32, and nothing else where a value is exact."""
        self.assertEqual((got.dtype, got.shape), (np.float32, want.shape))
        ulp = np.spacing(np.abs(want).astype(np.float32)).astype(np.float64)
        self.assertLessEqual(np.max(np.abs(got - want) / ulp), 0.51)

    def test_alibi(self):
        for heads in (1, 8, 12):
            self.assertBias(self.bias("--alibi", heads, "--queries", 5, "--keys", 9),
                            alibi(heads, 5, 9, 4))

    def test_alibi_options(self):
        words = ["--queries", 3, "--keys", 7]
        self.assertBias(self.bias("--alibi", "4,max=6", "--offset", 2, *words),
                        alibi(4, 3, 7, 2, 6))
        self.assertBias(self.bias("--alibi", 4, "--form", "abs", "--offset", 2, *words),
                        alibi(4, 3, 7, 2, both=True))
        keys = np.arange(7) * np.ones((3, 1))
        rows = np.array(slopes(4))[:, None, None]
        self.assertBias(self.bias("--alibi", 4, "--form", "key", *words), rows * keys)
        self.assertBias(self.bias("--alibi", 4, "--form", "last", *words), rows * (keys - 6))
        self.assertBias(self.bias("--alibi", 4, "--form", "distance", *words),
                        alibi(4, 3, 7, 4))

    def test_falcon(self):
        """transformers' own rounding: slopes and positions are bfloat16 there."""
        got = self.bias("--model", config("falcon-rw-1b"), "--form", "falcon", "--queries", 1,
                        "--keys", 600)
        keys = widened(bf16(np.arange(600)))
        slope = widened(bf16(np.array(slopes(32))))[:, None]
        want = widened(bf16(slope * keys)) * np.float32(0.125)
        np.testing.assert_array_equal(got[:, 0], want)

    def test_last_row(self):
        """A query at the end of the keys: the farthest key is 4 away, the own one 0."""
        got = self.bias("--alibi", 8, "--queries", 1, "--keys", 5)[:, 0]
        for head, slope in enumerate(slopes(8)):
            np.testing.assert_array_equal(got[head], np.arange(-4, 1) * np.float32(slope))

    def test_mask(self):
        want = alibi(2, 4, 4, 0)
        got = self.bias("--alibi", 2, "--queries", 4, "--keys", 4, "--mask")
        future = np.triu(np.ones((4, 4), bool), 1)
        self.assertTrue(np.all(np.isneginf(got[:, future])))
        np.testing.assert_array_equal(got[:, ~future], want[:, ~future].astype(np.float32))

    def test_types(self):
        words = ["--alibi", 12, "--queries", 6, "--keys", 700]
        full = self.bias(*words)
        half = self.bias(*words, "--dtype", "f16")
        np.testing.assert_array_equal(half, full.astype(np.float16))
        brain = self.bias(*words, "--dtype", "bf16")
        np.testing.assert_array_equal(brain, bf16(full))

    def test_pieces(self):
        """More than is made at a time: the same as its parts."""
        whole = self.bias("--alibi", 2, "--queries", 3000, "--keys", 3001)
        self.assertEqual(whole.shape, (2, 3000, 3001))
        self.assertBias(whole[:, ::500], alibi(2, 3000, 3001, 1)[:, ::500])

    def test_models(self):
        self.assertBias(self.bias("--model", config("bloom-176b"), "--queries", 2, "--keys", 3),
                        alibi(112, 2, 3, 1))
        falcon = self.bias("--model", config("falcon-rw-1b"), "--queries", 2, "--keys", 3)
        self.assertBias(falcon, alibi(32, 2, 3, 1, scale=0.125))

    def test_buckets(self):
        for shape, more in (((32, 128), ""), ((32, 128, True), ",causal"), ((32, 256), ""),
                            ((48, 512, True), ",causal")):
            got = self.bias("--t5", f"{shape[0]},{shape[1]}{more}", "--queries", 7, "--keys", 600,
                            "--offset", 300)
            self.assertEqual(got.dtype, np.int32)
            np.testing.assert_array_equal(got, buckets(7, 600, 300, *shape))

    def test_buckets_of_a_model(self):
        words = ["--model", config("t5-small"), "--queries", 20, "--keys", 40]
        for part, causal in (("encoder", False), ("decoder", True)):
            np.testing.assert_array_equal(self.bias(*words, "--part", part),
                                          buckets(20, 40, 20, 32, 128, causal))

    def test_table(self):
        table = np.arange(96, dtype=np.float32).reshape(32, 3) / 7
        index = buckets(5, 50, 45, 32, 128, True)
        want = np.moveaxis(table[index], -1, 0)
        words = ["--t5", "32,128,causal", "--queries", 5, "--keys", 50, "--table"]
        path = self.save("table.npy", table)
        np.testing.assert_array_equal(self.bias(*words, path), want)
        masked = self.bias(*words, path, "--mask")
        future = np.arange(50) > np.arange(5)[:, None] + 45
        self.assertTrue(np.all(np.isneginf(masked[:, future])))
        np.testing.assert_array_equal(masked[:, ~future], want[:, ~future])
        self.save("table.npy", table.astype(np.float16))
        np.testing.assert_array_equal(self.bias(*words, path), want.astype(np.float16))
        self.save("table.npy", bf16(table))
        got = self.bias(*words, path, "--in-dtype", "bf16", "--dtype", "f32")
        np.testing.assert_array_equal(got, widened(bf16(want)))

    def test_usage(self):
        some = ["--queries", 2, "--keys", 3, "-o", self.path("b.npy")]
        self.bad(USAGE, "needs --model, --alibi or --t5", "bias", *some)
        self.bad(USAGE, "needs --queries and --keys", "bias", "--alibi", 8, "--keys", 3)
        self.bad(USAGE, "--rope has no bias", "bias", "--rope", 8, *some)
        self.bad(USAGE, "one operand too many", "bias", "--alibi", 8, "x", *some)
        self.bad(USAGE, "exclude each other", "bias", "--alibi", 8, "--t5", "32,128", *some)
        for text, say in (("0", "HEADS is '0'"), ("8,max=x", "max is 'x'"), ("8,min=1", "'min'"),
                          ("8,max=1,max=2", "given twice")):
            self.bad(USAGE, say, "bias", "--alibi", text, *some)
        for text in ("32", "1,128", "32,128,both", "32,128,7", "32,128,causal,causal", ",", "32,"):
            self.bad(USAGE, "--t5", "bias", "--t5", text, *some)
        self.bad(USAGE, "--form is x", "bias", "--alibi", 8, "--form", "x", *some)
        self.bad(USAGE, "--part is x", "bias", "--alibi", 8, "--part", "x", *some)
        self.bad(USAGE, "need --model", "bias", "--t5", "32,128", "--part", "encoder", *some)
        self.bad(USAGE, "--queries is 0", "bias", "--alibi", 8, "--queries", 0)

    def test_refused(self):
        some = ["--queries", 2, "--keys", 3, "-o", self.path("b.npy")]
        self.bad(REFUSED, "choose with --part", "bias", "--model", config("t5-small"), *some)
        self.bad(REFUSED, "no bias by relative position", "bias", "--model", config("llama-2-7b"),
                 *some)
        self.bad(REFUSED, "need --table", "bias", "--t5", "32,128", "--mask", *some)
        self.bad(REFUSED, "--form is for ALiBi", "bias", "--t5", "32,128", "--form", "abs", *some)
        self.bad(REFUSED, "are for T5", "bias", "--alibi", 8, "--table", "x", *some)
        self.bad(REFUSED, "max_bias", "bias", "--alibi", "8,max=0", *some)
        table = self.save("table.npy", np.zeros((31, 2), np.float32))
        self.bad(REFUSED, ["table.npy", "31 rows"], "bias", "--t5", "32,128", "--table", table,
                 *some)
        self.save("table.npy", np.zeros((32, 2, 1), np.float32))
        self.bad(REFUSED, ["table.npy", "3 dimensions"], "bias", "--t5", "32,128", "--table", table,
                 *some)
        self.bad(SYSTEM, "none.npy", "bias", "--t5", "32,128", "--table", self.path("none.npy"),
                 *some)
        self.bad(SYSTEM, "none/b.npy", "bias", "--alibi", 8, *some[:4], "-o",
                 self.path("none/b.npy"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
