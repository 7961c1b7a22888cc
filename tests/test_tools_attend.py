#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""posenc attend from outside: every option against the formula in float64, models, refusals.

usage: test_tools_attend.py POSENC DATA-FOLDER GROUP...
"""
import json
import os
import subprocess
import sys
import unittest

import numpy as np

from test_tools import COMMAND, Case, DATA, REFUSED, SYSTEM, USAGE, bf16, lcg, rotated, widened


def config(name):
    return os.path.join(DATA, "configs", name + ".json")


def stored():
    """The stored example: its arrays under ("inputs", name), results under (case, "out")."""
    with open(os.path.join(DATA, "golden_attention.txt"), encoding="ascii") as file:
        lines = [line.split() for line in file if not line.startswith("#")]
    return {(line[0], line[1]): np.array(line[2:], np.float64) for line in lines}


def distances(queries, keys):
    """How far each key lies before each query."""
    return np.arange(keys - queries, keys)[:, None] - np.arange(keys)


def slopes(heads, most=8):
    n = 2 ** int(np.log2(heads))
    first = 2.0 ** (-most / n * np.arange(1, n + 1))
    return np.concatenate([first, 2.0 ** (-most / (2 * n) * np.arange(1, 2 * (heads - n), 2))])


def alibi(heads, queries, keys, most=8):
    return -slopes(heads, most)[:, None, None] * np.maximum(distances(queries, keys), 0)


def softmax(q, k, v, scale=None, seen=None, cap=None, bias=0, sinks=None, temperature=1):
    """out [B, T, H, D] and weights [B, H, Tq, Tk] in float64; `seen` [Tq, Tk]; temperature [Tq]."""
    q, k, v = (np.asarray(x, np.float64).transpose(0, 2, 1, 3) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    score = q @ k.transpose(0, 1, 3, 2) * scale * np.reshape(temperature, (-1, 1))
    score = cap * np.tanh(score / cap) if cap else score
    score = score + bias
    score = np.where(True if seen is None else seen, score, -np.inf)
    sink = np.full(q.shape[1], -np.inf) if sinks is None else np.asarray(sinks, np.float64)
    most = np.maximum(score.max(-1, keepdims=True), np.maximum(sink, -1e30)[:, None, None])
    weight = np.exp(score - most)
    total = weight.sum(-1, keepdims=True) + np.exp(sink[:, None, None] - most)
    weight /= np.where(total == 0, 1, total)
    return (weight @ v).transpose(0, 2, 1, 3), weight


class AttendCase(Case):
    def setUp(self):
        super().setUp()
        self.q = lcg(1, (2, 5, 6, 16))
        self.k, self.v = lcg(2, (2, 7, 3, 16)), lcg(3, (2, 7, 3, 4))
        self.far = distances(5, 7)

    def files(self, q, k, v):
        return [self.save("q.npy", q), self.save("k.npy", k), self.save("v.npy", v),
                self.path("out.npy")]

    def attend(self, q, k, v, *options):
        done = self.good("attend", *options, *self.files(q, k, v))
        self.stderr, self.stdout = done.stderr.decode(), done.stdout.decode()
        return np.load(self.path("out.npy"))

    def check(self, options, tolerance=1e-6, **formula):
        """The result and the weights of each query of the arrays above."""
        want, weight = softmax(self.q, self.k, self.v, **formula)
        self.assertNear(self.attend(self.q, self.k, self.v, *options), want, tolerance)
        self.assertEqual(self.stdout, "")
        for row in (0, 4, -1):
            self.attend(self.q, self.k, self.v, *options, "--weights", row)
            got = [[float(word) for word in line.split(" ")] for line in self.stdout.splitlines()]
            self.assertNear(np.array(got), weight[:, :, row].reshape(12, 7), tolerance)
        return want

    def write(self, **members):
        """A model of 4 query and 2 key heads of 8 channels, 4 layers."""
        shape = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
                 "num_hidden_layers": 4, "max_position_embeddings": 4096}
        if "n_head" in members or "n_heads" in members:
            shape = {}
        with open(self.path("config.json"), "w", encoding="utf-8") as file:
            json.dump({"hidden_size": 32, **shape, **members}, file)
        return ["--model", self.path("config.json")]


class Attend(AttendCase):
    def stored_options(self, arrays, settings):
        """The options that stand for the settings of a stored case."""
        causal, window, cap, sink, has_alibi, scaled, t5, layout, offset, _ = settings
        words = ["--causal"] if causal else []
        if window and causal:
            words += ["--window", int(window)]
        elif window:
            near = np.where(abs(distances(7, 7)) <= window, 0, -np.inf).astype(np.float32)
            words += ["--bias", self.save("bias.npy", near)]
        if scaled:
            bias = (alibi(4, 7, 7) * 8 ** -0.5).astype(np.float32)
            words += ["--bias", self.save("bias.npy", bias)]
        elif has_alibi:
            words += ["--alibi"]
        if t5:
            table = arrays["inputs", "t5_table"].reshape(32, 4).astype(np.float32)
            self.good("bias", "--t5", "32,128,causal" if causal else "32,128", "--table",
                      self.save("table.npy", table), "--queries", 7, "--keys", 7, "-o",
                      self.path("bias.npy"))
            words += ["--scale", 1, "--bias", self.path("bias.npy")]
        if layout:
            words += ["--rope", "8,layout=" + ("adjacent" if layout == 1 else "split_half"),
                      "--start", int(offset)]
        if sink:
            sinks = arrays["inputs", "sink"].astype(np.float32)
            words += ["--sinks", self.save("sinks.npy", sinks)]
        return words + (["--softcap", cap] if cap else [])

    def test_stored_vectors(self):
        arrays = stored()
        q = arrays["inputs", "q"].reshape(1, 7, 4, 8).astype(np.float32)
        k, v = (arrays["inputs", x].reshape(1, 7, 2, 8).astype(np.float32) for x in "kv")
        cases = [name for name, part in arrays if part == "settings"]
        self.assertEqual(len(cases), 15)
        for name in cases:
            settings = arrays[name, "settings"]
            queries = int(settings[-1])
            got = self.attend(q[:, 7 - queries:], k, v, *self.stored_options(arrays, settings))
            self.assertNear(got, arrays[name, "out"].reshape(1, queries, 4, 8), 1e-6)

    def test_decoding_equals_prefill(self):
        q, k, v = lcg(1, (1, 7, 4, 8)), lcg(2, (1, 7, 2, 8)), lcg(3, (1, 7, 2, 8))
        options = ["--causal", "--window", 4, "--softcap", 3, "--alibi", "--rope", 8, "--start", 50]
        whole = self.attend(q, k, v, *options)
        for i in range(7):
            row = self.attend(q[:, i:i + 1], k[:, :i + 1], v[:, :i + 1], *options)
            self.assertEqual(row.tobytes(), whole[:, i:i + 1].tobytes())

    def test_shapes_and_scale(self):
        causal = self.far >= 0
        for options, scale in (([], None), (["--scale", "0.5"], 0.5), (["--scale", "-2"], -2.0)):
            self.check(["--causal", *options], scale=scale, seen=causal)
            self.check(options, scale=scale)
        got = self.attend(self.q[0], self.k[0], self.v[0])
        self.assertEqual(got.shape, (5, 6, 4))
        self.assertNear(got[None], softmax(self.q[:1], self.k[:1], self.v[:1])[0], 1e-6)

    def test_queries_that_see_no_key(self):
        got = self.attend(self.q, self.k[:, :3], self.v[:, :3], "--causal", "--weights", 1)
        self.assertEqual(set(got[:, :2].view(np.uint32).ravel()), {0})
        self.assertEqual(self.stdout, "0 0 0\n" * 12)
        want = softmax(self.q, self.k[:, :3], self.v[:, :3], seen=distances(5, 3) >= 0)[0]
        self.assertNear(got, want, 1e-6)

    def test_window(self):
        for window in (1, 3, 6, 100):
            seen = (self.far >= 0) & (self.far < window)
            self.check(["--window", window], seen=seen)
            self.check(["--causal", "--window", window], seen=seen)

    def test_softcap(self):
        for cap in (0.25, 5, 1e30):
            self.check(["--softcap", cap, "--scale", 2], 2e-6, scale=2.0, cap=cap)

    def test_sinks(self):
        sinks = np.array([0.5, -0.25, 1, 0, -3, 4], np.float32)
        for array in (sinks, sinks.astype(np.float16)):
            self.check(["--sinks", self.save("s.npy", array)], sinks=sinks)
        q, k, v = (bf16(x) for x in (self.q, self.k, self.v))
        want = softmax(*map(widened, (q, k, v)), sinks=sinks)[0]
        for array in (sinks, bf16(sinks)):
            got = self.attend(q, k, v, "--sinks", self.save("s.npy", array), "--in-dtype", "bf16",
                              "--dtype", "f32")
            self.assertNear(got, want, 1e-6)

    def test_alibi(self):
        bias = alibi(6, 5, 7)
        self.check(["--alibi"], bias=bias)
        self.check(["--alibi", "--causal"], bias=bias, seen=self.far >= 0)

    def test_bias_shapes(self):
        for shape in ((2, 6, 5, 7), (1, 6, 5, 7), (2, 1, 5, 7), (2, 6, 1, 7), (6, 5, 7), (1, 5, 7),
                      (6, 1, 7), (5, 7), (1, 7)):
            bias = 2 * lcg(4, shape)
            bias[..., 3] = -np.inf
            self.check(["--bias", self.save("b.npy", bias)], bias=bias)

    def test_bias_types(self):
        bias = lcg(4, (6, 5, 7))
        half = bias.astype(np.float16)
        self.check(["--bias", self.save("b.npy", half)], bias=half)
        q, k, v, b = (bf16(x) for x in (self.q, self.k, self.v, bias))
        for array, value in ((b, widened(b)), (bias, bias), (half, half)):
            got = self.attend(q, k, v, "--in-dtype", "bf16", "--dtype", "f32", "--bias",
                              self.save("b.npy", array))
            self.assertNear(got, softmax(*map(widened, (q, k, v)), bias=value)[0], 1e-6)

    def test_options_together(self):
        bias, sinks = lcg(4, (6, 5, 7)), lcg(5, (6,))
        seen = (self.far >= 0) & (self.far < 4)
        files = ["--bias", self.save("b.npy", bias), "--sinks", self.save("s.npy", sinks)]
        self.check(["--causal", "--window", 4, "--scale", 0.5, "--softcap", 2, "--alibi", *files],
                   2e-6, scale=0.5, seen=seen, cap=2, bias=bias + alibi(6, 5, 7), sinks=sinks)
        got = self.attend(self.q, self.k, self.v, "--window", 4, "--softcap", 2, "--alibi", *files,
                          "--rope", "8,head=16,base=100,layout=adjacent", "--start", 9)
        q = rotated(self.q, np.arange(11, 16), 8, "adjacent", 100)
        k = rotated(self.k, np.arange(9, 16), 8, "adjacent", 100)
        want = softmax(q, k, self.v, seen=seen, cap=2, bias=bias + alibi(6, 5, 7), sinks=sinks)[0]
        self.assertNear(got, want, 2e-6)

    def test_dtypes(self):
        """Each type for each array; 16-bit values are neither rounded when they turn nor before
        the end."""
        options = ["--causal", "--softcap", 4, "--rope", "16"]
        seen, turn = self.far >= 0, lambda x: rotated(x, np.arange(7 - x.shape[1], 7), 16)

        def formula(q, k, v):
            return softmax(turn(q), turn(k), v, seen=seen, cap=4)[0]
        half = [x.astype(np.float16) for x in (self.q, self.k, self.v)]
        brain = [bf16(x) for x in (self.q, self.k, self.v)]
        for dtype in ("f32", "f16", "bf16"):
            for arrays in ([half[0], self.k, half[2]], half):
                got = self.attend(*arrays, *options, "--dtype", dtype)
                self.check_rounded(got, formula(*arrays), dtype)
            got = self.attend(*brain, *options, "--in-dtype", "bf16", "--dtype", dtype)
            self.check_rounded(got, formula(*map(widened, brain)), dtype)
        self.assertEqual(self.attend(*half, *options).dtype, np.float16)
        self.assertEqual(self.attend(*brain, *options, "--in-dtype", "bf16").dtype, np.uint16)
        self.assertEqual(self.attend(*brain, *options, "--dtype", "bf16").dtype, np.uint16)

    def check_rounded(self, got, want, dtype):
        kind, unit = {"f32": (np.float32, 0), "f16": (np.float16, 2.0**-11),
                      "bf16": (np.uint16, 2.0**-8)}[dtype]
        self.assertEqual(got.dtype, kind)
        got = widened(got) if dtype == "bf16" else got
        worst = np.max(abs(got.astype(np.float64) - want) - unit * abs(want))
        self.assertLessEqual(worst, 1e-6)

    def test_blocks(self):
        """So many queries that they go in several calls."""
        random = np.random.default_rng(1)
        q, k, v = (random.uniform(-1, 1, (1, 3000, 1, 64)).astype(np.float32) for _ in range(3))
        bias = random.uniform(-1, 1, (3000, 3000)).astype(np.float32)
        got = self.attend(q, k, v, "--window", 50, "--bias", self.save("b.npy", bias), "--weights",
                          2999)
        far = distances(3000, 3000)
        want, weight = softmax(q, k, v, seen=(far >= 0) & (far < 50), bias=bias)
        self.assertNear(got, want, 2e-6)
        self.assertNear(np.array(self.stdout.split(), np.float64), weight[0, 0, 2999], 1e-6)
        last = self.attend(q[:, 2999:], k, v, "--window", 50, "--bias",
                           self.save("b.npy", bias[2999:]))
        self.assertEqual(last.tobytes(), got[:, 2999:].tobytes())

    def test_without_keys_or_queries(self):
        for queries, keys in ((0, 3), (3, 0), (0, 0)):
            q, k, v = self.q[:, :queries], self.k[:, :keys], self.v[:, :keys]
            got = self.attend(q, k, v, "--alibi", "--window", 2, "--rope", 16, "--start", 3)
            self.assertEqual(got.shape, (2, queries, 6, 4))
            self.assertFalse(got.any())
        vast = np.zeros((1, 2**40, 0, 16), np.float32)
        got = self.attend(vast, vast, vast, "--causal", "--rope", 16, "--weights", -1)
        self.assertEqual((got.shape, self.stdout), (vast.shape, ""))


class AttendModel(AttendCase):
    def setUp(self):
        super().setUp()
        self.q, self.k, self.v = lcg(1, (1, 9, 4, 8)), lcg(2, (1, 9, 2, 8)), lcg(3, (1, 9, 2, 8))
        self.far = distances(9, 9)

    def near(self, options, start=0, base=1e4, layout="split_half", turn=True, tolerance=1e-6,
             **formula):
        got = self.attend(self.q, self.k, self.v, *options)
        places = np.arange(start, start + 9)
        q, k = (rotated(x, places, 8, layout, base) if turn else x for x in (self.q, self.k))
        self.assertNear(got, softmax(q, k, self.v, **formula)[0], tolerance)

    def test_latent_attention(self):
        q, k, v = lcg(1, (1, 3, 4, 192)), lcg(2, (1, 5, 2, 192)), lcg(3, (1, 5, 2, 8))
        got = self.attend(q, k, v, "--causal", "--model", config("deepseek-r1"))
        self.assertEqual(self.stderr.count("\n"), 1)
        self.assertIn("scale 0.135233779", self.stderr)
        self.good("rotate", "--model", config("deepseek-r1"), "--start", 2, self.path("q.npy"),
                  self.path("q.npy"))
        self.good("rotate", "--model", config("deepseek-r1"), self.path("k.npy"),
                  self.path("k.npy"))
        want = softmax(np.load(self.path("q.npy")), np.load(self.path("k.npy")), v,
                       0.13523377886088009, distances(3, 5) >= 0)[0]
        self.assertNear(got, want, 1e-6)
        self.attend(q, k, v, "--model", config("deepseek-r1"), "--scale", "0.25")
        self.assertIn("scale 0.25 (--scale)", self.stderr)

    def test_window(self):
        model = self.write(model_type="mistral", sliding_window=3)
        self.near(model, seen=(self.far >= 0) & (self.far < 3))
        self.assertIn("causal, window 3, no cap, no bias", self.stderr)
        self.near([*model, "--window", 5, "--start", 7], 7, seen=(self.far >= 0) & (self.far < 5))
        self.assertIn("window 5 (--window)", self.stderr)

    def test_layers_that_differ(self):
        model = self.write(model_type="gemma2", sliding_window=3, attn_logit_softcapping=0.5,
                           query_pre_attn_scalar=4)
        causal, files = self.far >= 0, self.files(self.q, self.k, self.v)
        self.bad(REFUSED, ["layers 0, 2 of set main", "layers 1, 3", "--layer or --window"],
                 "attend", *model, *files)
        self.near([*model, "--causal", "--layer", 1], seen=causal, cap=0.5, scale=0.5)
        self.assertIn("no window, cap 0.5", self.stderr)
        self.near([*model, "--layer", 2], seen=causal & (self.far < 3), cap=0.5, scale=0.5)
        self.near([*model, "--window", 2, "--softcap", 9], seen=causal & (self.far < 2), cap=9,
                  scale=0.5)
        self.assertIn("cap 9 (--softcap)", self.stderr)
        self.near([*self.write(model_type="gemma2", sliding_window=3, query_pre_attn_scalar=4,
                               attn_logit_softcapping=None), "--layer", 1], scale=0.5)

    def test_several_sets(self):
        members = {"model_type": "gemma3_text", "sliding_window": 2, "query_pre_attn_scalar": 8,
                   "layer_types": ["sliding_attention", "full_attention"] * 2}
        model, files = self.write(**members), self.files(self.q, self.k, self.v)
        self.bad(REFUSED, ["global", "local", "--set"], "attend", *model, *files)
        for words in (["--set", "local"], ["--layer", 2]):
            self.near([*model, *words], seen=(self.far >= 0) & (self.far < 2))
        for words in (["--set", "global"], ["--layer", 1]):
            self.near([*model, *words], base=1e6)
        os.remove(self.path("out.npy"))
        self.bad(REFUSED, ["local", "layer 1 uses global"], "attend", *model, *files, "--set",
                 "local", "--layer", 1)
        self.bad(REFUSED, ["layer is 4", "below 4"], "attend", *model, *files, "--layer", 4)
        model = self.write(**members, use_bidirectional_attention=True)
        self.near([*model, "--set", "local"], seen=abs(self.far) <= 1)

    def test_window_on_both_sides(self):
        model = self.write(model_type="modernbert", local_attention=4)
        self.near([*model, "--layer", 1], seen=abs(self.far) <= 2)
        self.assertIn("not causal, window of 2 on both sides", self.stderr)
        self.near([*model, "--layer", 1, "--causal"], seen=(self.far >= 0) & (self.far <= 2))
        self.near([*model, "--layer", 0], base=160000)

    def test_chunks_and_query_scale(self):
        model = self.write(model_type="llama4_text", attention_chunk_size=4, floor_scale=2,
                           attn_scale=0.25, rope_theta=500.0)
        causal = self.far >= 0
        for start in (0, 3, -2):
            chunk = (start + np.arange(9)) // 4
            self.near([*model, "--layer", 0, "--start", start], start, 500, "adjacent",
                      seen=causal & (chunk[:, None] == chunk))
        self.assertIn("chunks of 4", self.stderr)
        bias = lcg(4, (4, 9, 9))
        chunk = np.arange(9) // 4
        self.near([*model, "--layer", 0, "--weights", 5, "--bias", self.save("b.npy", bias)], 0,
                  500, "adjacent", seen=causal & (chunk[:, None] == chunk), bias=bias)
        for line in self.stdout.splitlines():
            words = line.split(" ")
            self.assertEqual((words[:4], words[6:]), (["0"] * 4, ["0"] * 3))
            self.assertNear(np.array(words, np.float64).sum(), np.array(1.0), 1e-6)
        temperature = 1 + 0.25 * np.log(1 + np.floor((10 + np.arange(9) + 1) / 2))
        self.near([*model, "--causal", "--layer", 3, "--start", 10], turn=False, seen=causal,
                  temperature=temperature)
        self.assertIn("no rotation", self.stderr)
        self.assertIn("query scale 1 + attn_scale*ln", self.stderr)
        self.bad(REFUSED, "position", "attend", *model, "--layer", 3, "--start", -5,
                 *self.files(self.q, self.k, self.v))

    def test_a_key_of_another_chunk(self):
        model = self.write(model_type="llama4_text", attention_chunk_size=4)
        got = self.attend(self.q[:, :3], self.k[:, :1], self.v[:, :1], *model, "--layer", 0,
                          "--start", 4)
        self.assertFalse(got[:, :2].any())
        self.assertTrue(got[:, 2].any())

    def test_query_scale_of_all_layers(self):
        block = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 1.0, "beta_fast": 32.0,
                 "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
                 "llama_4_scaling_beta": 0.5, "original_max_position_embeddings": 4}
        model = self.write(model_type="ministral3", rope_parameters=block)
        temperature = 1 + 0.5 * np.log(1 + np.arange(9) // 4)
        self.near([*model, "--causal"], temperature=temperature, seen=self.far >= 0)

    def test_alibi(self):
        causal = ["--causal"], {"seen": self.far >= 0}
        bias = alibi(4, 9, 9)
        for members in ({"model_type": "bloom", "n_head": 4, "n_layer": 2},
                        {"model_type": "mpt", "d_model": 32, "n_heads": 4, "n_layers": 2,
                         "attn_config": {"alibi": True, "alibi_bias_max": 8}}):
            for words in ([], ["--alibi"]):
                self.near([*self.write(**members), *causal[0], *words], turn=False, bias=bias,
                          **causal[1])
                self.assertIn("ALiBi of 4 heads", self.stderr)
        model = self.write(model_type="falcon", alibi=True, multi_query=True)
        self.near([*model, *causal[0]], turn=False, bias=bias * 8 ** -0.5, **causal[1])
        self.near([*model, *causal[0], "--scale", 2], turn=False, bias=bias * 2, scale=2.0,
                  **causal[1])
        self.bad(REFUSED, ["q.npy", "2 heads", "for 4"], "attend", *model,
                 *self.files(self.q[:, :, :2], self.k, self.v))
        self.bad(REFUSED, ["--alibi", "has no ALiBi"], "attend", "--alibi",
                 *self.write(model_type="llama"), *self.files(self.q, self.k, self.v))

    def test_models_without_rotation(self):
        plain = softmax(self.q, self.k, self.v, seen=self.far >= 0)[0]
        gpt2 = self.write(model_type="gpt2", n_head=4, n_layer=2, n_embd=32, n_positions=64)
        self.assertNear(self.attend(self.q, self.k, self.v, *gpt2, "--causal"), plain, 1e-6)
        self.assertIn("no rotation, key 0 at position 0, scale 0.353553391 (head_dim^-0.5)",
                      self.stderr)
        os.remove(self.path("out.npy"))
        files = self.files(self.q, self.k, self.v)
        self.bad(REFUSED, "--set and --length", "attend", *gpt2, "--set", "main", *files)
        self.bad(REFUSED, ["--layer is 9", "below"], "attend", *gpt2, "--layer", 9, *files)
        self.bad(REFUSED, ["position 70", "64"], "attend", *gpt2, "--limit", "--start", 62, *files)
        self.good("attend", *gpt2, "--limit", "--start", 55, *files)

    def test_hints(self):
        """What is likely a mistake with a model is said, and done."""
        model, hint = self.write(model_type="llama"), "not causal (a decoder needs --causal)"
        self.near(model)
        self.assertIn(hint, self.stderr)
        self.near([*model, "--causal"], seen=self.far >= 0)
        self.assertEqual((self.stderr.count("\n"), hint in self.stderr), (1, False))
        turned = (x.transpose(0, 2, 1, 3) for x in (self.q, self.k[:, :, [0, 0, 1, 1]], self.v))
        q, k, _ = (np.ascontiguousarray(x) for x in turned)
        self.attend(q, k, k, *model, "--causal")
        self.assertIn("q.npy: has 9 heads where the model has 4", self.stderr)
        self.assertIn("k.npy: has 9 heads where the model has 2", self.stderr)

    def test_layers_without_rotation(self):
        model = self.write(model_type="smollm3")
        self.near([*model, "--layer", 3], turn=False)
        self.near([*model, "--layer", 2], base=2e6)
        os.remove(self.path("out.npy"))
        self.bad(REFUSED, "layer 3 is not rotated", "rotate", *model, "--layer", 3,
                 self.path("q.npy"), self.path("r.npy"))

    def test_trained_biases(self):
        """What the file does not hold is asked for."""
        t5 = {"model_type": "t5", "d_kv": 8, "num_heads": 4, "num_layers": 2, "d_model": 32}
        files = self.files(self.q, self.k, self.v)
        self.bad(REFUSED, ["trained table", "--bias"], "attend", *self.write(**t5), *files)
        bias = lcg(4, (4, 9, 9))
        self.near([*self.write(**t5), "--bias", self.save("b.npy", bias)], turn=False, bias=bias,
                  scale=1.0)
        os.remove(self.path("out.npy"))
        model = self.write(model_type="deberta-v2", relative_attention=True, position_buckets=16,
                           pos_att_type=["p2c", "c2p"])
        self.bad(REFUSED, ["position embeddings", "--bias"], "attend", *model, *files)
        self.near([*model, "--bias", self.path("b.npy")], turn=False, bias=bias, scale=24 ** -0.5)

    def test_sinks(self):
        sinks = lcg(5, (4,))
        words = ["--sinks", self.save("s.npy", sinks)]
        plain = {"rope_type": "default", "rope_theta": 150000.0}
        model = self.write(model_type="gpt_oss", sliding_window=3, rope_parameters=plain)
        seen = (self.far >= 0) & (self.far < 3)
        self.near([*model, "--layer", 0, *words], base=150000, seen=seen, sinks=sinks)
        self.assertEqual(self.stderr.count("\n"), 1)
        self.near([*model, "--layer", 0], base=150000, seen=seen)
        self.assertIn("warning", self.stderr)
        self.assertIn("without --sinks", self.stderr)
        mimo = {"model_type": "mimo_v2_flash", "sliding_window": 3, "rope_theta": 150000.0,
                "swa_rope_theta": 150000.0, "hybrid_layer_pattern": [0, 1, 1, 0],
                "add_swa_attention_sink_bias": True, "add_full_attention_sink_bias": False}
        self.near([*self.write(**mimo), "--layer", 1], base=150000, seen=seen)
        self.assertIn("without --sinks", self.stderr)
        self.near([*self.write(**mimo), "--layer", 0], base=150000)
        self.assertNotIn("sinks", self.stderr)

    def test_limit(self):
        model, files = self.write(model_type="llama"), self.files(self.q, self.k, self.v)
        self.attend(self.q, self.k, self.v, *model, "--start", 4090)
        self.assertIn("position 4098 passes the trained limit", self.stderr)
        os.remove(self.path("out.npy"))
        self.bad(REFUSED, "..4095", "attend", *model, "--limit", "--start", 4090, *files)


class AttendRefused(AttendCase):
    def test_arrays(self):
        files = self.files(self.q, self.k, self.v)
        self.bad(REFUSED, ["q.npy", "5"], "attend", *self.files(self.q[:, :, :5], self.k, self.v))
        self.files(self.q, self.k, self.v)
        for name, array in (("k", self.k[:, :6]), ("v", self.v[..., :1][:, :5]),
                            ("k", self.k[..., :6]), ("q", self.q.astype(np.float64)),
                            ("v", self.v[0, 0])):
            good = np.load(self.path(name + ".npy"))
            self.save(name + ".npy", array)
            self.bad(REFUSED, name + ".npy", "attend", *files)
            self.save(name + ".npy", good)

    def test_bias_and_sinks(self):
        files = self.files(self.q, self.k, self.v)
        for shape in ((7,), (5, 6), (4, 5, 7), (3, 6, 5, 7), (1, 1, 6, 5, 7), (6, 7, 5), (5, 1)):
            path = self.save("b.npy", np.zeros(shape, np.float32))
            self.bad(REFUSED, ["b.npy", "2, 6, 5, 7"], "attend", "--bias", path, *files)
        for shape in ((5,), (6, 1), (1,)):
            path = self.save("s.npy", np.zeros(shape, np.float32))
            self.bad(REFUSED, ["s.npy", "[6]"], "attend", "--sinks", path, *files)
        for kind, say in ((np.float64, "float64"), (np.int32, "integer"), (np.uint16, "bf16"),
                          (bool, "numpy.where(x, 0, -numpy.inf)")):
            path = self.save("x.npy", np.zeros((6, 5, 7), kind))
            self.bad(REFUSED, ["x.npy", say], "attend", "--bias", path, *files)
            path = self.save("x.npy", np.zeros(6, kind))
            self.bad(REFUSED, ["x.npy", say], "attend", "--sinks", path, *files)

    def test_weights(self):
        files = self.files(self.q, self.k, self.v)
        for row in (5, -6, 2**62, -2**63):
            self.bad(REFUSED, ["q.npy", f"--weights is {row}", "5 queries"], "attend", "--weights",
                     row, *files)
        self.bad(USAGE, "--weights is x", "attend", "--weights", "x", *files)

    def test_system(self):
        files = self.files(self.q, self.k, self.v)
        for option in ("--bias", "--sinks"):
            self.bad(SYSTEM, "none.npy", "attend", option, self.path("none.npy"), *files)
        self.bad(SYSTEM, "none.npy", "attend", self.path("none.npy"), *files[1:])
        self.bad(SYSTEM, "No space", "attend", "--weights", 0, *files[:3], "/dev/full")
        with open("/dev/full", "wb") as full:
            done = subprocess.run([*COMMAND, "attend", "--weights", "0", *files], stdout=full,
                                  stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, SYSTEM)
        self.assertIn(b"standard output", done.stderr)

    def test_usage(self):
        files = self.files(self.q, self.k, self.v)
        for say, words in (("needs four files", files[:3]), ("needs four files", files + ["x"]),
                           ("--scale is x", ["--scale", "x", *files]),
                           ("--scale is 0", ["--scale", "0", *files]),
                           ("--scale is nan", ["--scale", "nan", *files]),
                           ("--scale is 1e39", ["--scale", "1e39", *files]),
                           ("--window is 0", ["--window", "0", *files]),
                           ("--window is 1.5", ["--window", "1.5", *files]),
                           ("--window is -1", ["--window", "-1", *files]),
                           ("--softcap is 0", ["--softcap", "0", *files]),
                           ("--softcap is -5", ["--softcap", "-5", *files]),
                           ("--softcap is inf", ["--softcap", "inf", *files]),
                           ("--start is 1e3", ["--rope", "16", "--start", "1e3", *files]),
                           ("need --model", ["--start", "1", *files]),
                           ("need --model", ["--layer", "1", *files]),
                           ("exclude", ["--model", "m", "--rope", "8", *files])):
            self.bad(USAGE, say, "attend", *words)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
