#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""posenc inspect from outside: JSON against the stored contracts, text, refusals, exit codes.

usage: test_contract_inspect.py POSENC DATA-FOLDER
"""
import json
import os
import subprocess
import sys
import unittest

POSENC, DATA = sys.argv[1:3] if len(sys.argv) > 2 else ("posenc", "data")
COMMAND = [*os.environ.get("POSENC_EMULATOR", "").split(), POSENC]  # for cross builds
OK, REFUSED, USAGE, SYSTEM = 0, 1, 2, 3
LLAMA = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
         "num_hidden_layers": 2}
KEYS = {"scheme", "model_type", "num_heads", "num_kv_heads", "head_dim", "num_layers",
        "max_position", "max_position_key", "trained_position", "softmax_scale", "rope",
        "layer_sets", "nope_layers", "no_attention_layers", "sliding_window", "query_scale",
        "alibi", "t5", "learned", "sinusoidal", "deberta", "assumed", "warnings",
        "logit_softcap", "source", "window_sides", "attention_chunk", "sink_layers"}
SET_KEYS = {"id", "rope_type", "theta", "rotary_dim", "pairs", "layout", "rotary_offset",
            "attention_factor", "inv_freq", "original_max_position", "seq_len", "mrope"}


def inspect(*arguments, stdin=None, **environment):
    return subprocess.run([*COMMAND, "inspect", *arguments], input=stdin, capture_output=True,
                          text=True, env={**os.environ, **environment})


def config(name):
    return os.path.join(DATA, "configs", name + ".json")


def real(value):
    return float(value) if isinstance(value, str) else value


class Inspect(unittest.TestCase):
    def refuse(self, run, code, *words):
        self.assertEqual((run.returncode, run.stdout), (code, ""), run.stderr)
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        for word in words:
            self.assertIn(word, run.stderr)

    def read(self, members, *arguments):
        run = inspect("--json", *arguments, "-", stdin=json.dumps({**LLAMA, **members}))
        self.assertEqual((run.returncode, run.stderr), (OK, ""))
        return json.loads(run.stdout)

    def near(self, name, got, wanted):
        got, wanted = real(got), real(wanted)
        self.assertLessEqual(abs(got - wanted), 1e-15 * abs(wanted), name)

    def same(self, name, want, have):
        """Members that both have; lists of reals within an ulp or so."""
        for key, value in want.items():
            if isinstance(value, list) and value and isinstance(value[0], str):
                self.assertEqual(len(value), len(have[key]))
                for a, b in zip(have[key], value):
                    self.near(f"{name}: {key}", a, b)
            else:
                self.assertEqual(have[key], value, f"{name}: {key}")

    def compare_set(self, name, want, have):
        self.assertLessEqual(SET_KEYS, set(have))
        for key in ("id", "rope_type", "rotary_dim", "pairs", "layout", "rotary_offset"):
            self.assertEqual(have[key], want[key], f"{name}: {key}")
        self.assertEqual(have["seq_len"], want.get("seq_len"))
        if have["rope_type"] != "dynamic":
            self.assertEqual(have["original_max_position"], want.get("original_max_position"))
        for key in ("theta", "attention_factor"):
            self.near(f"{name}: {key}", have[key], want[key])
        self.assertEqual(len(have["inv_freq"]), want["pairs"])
        for a, b in zip(have["inv_freq"], want["inv_freq"]):
            self.near(f"{name}: inv_freq", a, b)
        self.assertEqual(have["mrope"], want.get("mrope"))

    def compare(self, name, expected, got):
        for key in ("scheme", "num_heads", "num_kv_heads", "head_dim", "num_layers",
                    "max_position", "max_position_key"):
            self.assertEqual(got[key], expected.get(key), f"{name}: {key}")
        for key in ("layer_sets", "nope_layers", "no_attention_layers", "sliding_window"):
            if key in expected:
                self.assertEqual(got[key], expected[key], f"{name}: {key}")
        self.near(name, got["softmax_scale"]["value"], expected["softmax_scale"]["value"])
        self.assertEqual(len(got["rope"]), len(expected.get("rope", [])))
        for have, want in zip(got["rope"], expected.get("rope", [])):
            self.compare_set(name, want, have)
        for key in ("alibi", "t5", "learned", "sinusoidal", "deberta"):
            if key in expected:
                self.same(f"{name}: {key}", expected[key], got[key])
            else:
                self.assertIsNone(got[key])

    def test_stored(self):
        files = sorted(os.listdir(os.path.join(DATA, "expected")))
        self.assertEqual(len(files), 72)
        for file in files:
            with open(os.path.join(DATA, "expected", file), encoding="utf-8") as text:
                expected = json.load(text)
            lengths = ",".join(str(s["seq_len"]) for s in expected.get("rope", [])
                               if s.get("seq_len"))
            run = inspect("--json", *(["--lengths", lengths] if lengths else []),
                          config(file[:-5]))
            self.assertEqual((run.returncode, run.stderr), (OK, ""))
            got = json.loads(run.stdout)
            self.assertEqual(set(got), KEYS)
            self.compare(file[:-5], expected, got)

    def test_options_without_effect(self):
        run = inspect("--lengths", "1000", config("llama-3.1-8b"))
        self.assertEqual(run.returncode, OK)
        self.assertIn("--lengths has no effect", run.stderr)
        run = inspect("--set", "main", config("phi-3.5-mini"))
        self.assertEqual((run.returncode, run.stdout), (REFUSED, ""))
        self.assertIn("--set is main: must be one of short, long", run.stderr)

    def test_text_says_what_to_watch(self):
        run = inspect(config("deepseek-coder-6.7b"))
        for words in ("8000 becomes 2000, one step 0.25", "never completed a turn"):
            self.assertIn(words, " ".join(run.stdout.split()))
        self.assertIn("4097 tokens", inspect(config("phi-3.5-mini")).stdout)
        self.assertIn("stand still", inspect(config("gemma4-26b-a4b")).stdout)
        self.assertNotIn("watch", inspect(config("gpt2")).stdout)

    def test_text_of_every_scheme(self):
        for name, words in (
                ("bloom-176b", "slope*key_position"), ("falcon-rw-1b", "added before"),
                ("t5-small", "32 buckets"), ("bart-base", "row = position + 2"),
                ("whisper-large-v2", "in the encoder"), ("jamba-tiny", "scheme         none"),
                ("qwen3-vl-32b", "3 position axes of 24, 20, 20 pairs, alternating"),
                ("gemma4-26b-a4b", "16 query and 2 key heads of 512 channels in these layers"),
                ("mimo-v2-flash", "64 query and 8 key heads of 192 channels in these layers"),
                ("ministral3-3b", "= 1 + 0.1*ln(1 + floor((pos + 0)/16384))")):
            run = inspect(config(name))
            self.assertEqual((run.returncode, run.stderr), (OK, ""))
            self.assertIn(words, run.stdout)

    def test_text(self):
        run = inspect(config("gemma3-12b"))
        self.assertEqual((run.returncode, run.stderr), (OK, ""))
        for words in ("rope global", "rope local", "linear, base 1000000, factor 8", "1024 tokens",
                      "5, 11, 17", "0-4, 6-10", "layout = \"split_half\""):
            self.assertIn(words, run.stdout)

    def test_text_is_80_columns_wide(self):
        for file in sorted(os.listdir(os.path.join(DATA, "configs"))):
            lines = inspect(config(file[:-5])).stdout.splitlines()
            self.assertLessEqual(max(map(len, lines), default=0), 80, file)

    def test_standard_input_and_folder(self):
        path = config("llama-3.1-8b")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(inspect("--json", path).stdout, inspect("--json", "-", stdin=text).stdout)
        self.refuse(inspect("--json", "-", stdin=text[:-9]), REFUSED, "standard input", "not JSON")

    def test_notes(self):
        got = self.read({"rope_scaling": {"rope_type": "default", "a\"b\\\n\u00e9": 1}})
        self.assertEqual(got["warnings"][0]["key"], "rope_scaling.a\"b\\???")
        assumed = {note["key"]: note["value"] for note in got["assumed"]}
        self.assertEqual(assumed, {"layout": "split_half", "rope_theta": 10000,
                                   "num_key_value_heads": 32})
        self.assertTrue(all(note["why"] for note in got["assumed"]))

    def test_trained_position_and_null(self):
        got = self.read({})
        for key in KEYS - {"scheme", "model_type", "num_heads", "num_kv_heads", "head_dim",
                           "num_layers", "softmax_scale", "rope", "assumed", "warnings", "source"}:
            self.assertIsNone(got[key], key)
        got = self.read({"max_position_embeddings": 8192, "max_trained_positions": 2048})
        self.assertEqual((got["max_position"], got["trained_position"]), (8192, 2048))

    def test_sets(self):
        run = inspect("--json", "--set", "local", config("gemma3-12b"))
        self.assertEqual([s["id"] for s in json.loads(run.stdout)["rope"]], ["local"])
        self.refuse(inspect("--set", "main", config("gemma3-12b")), REFUSED, "--set is main")

    def test_usage(self):
        for arguments in ((), ("a", "b"), ("--wrong", "-"), *(
                ("--lengths", text, "-") for text in ("0", "4,", "x", "9" * 3000))):
            self.refuse(inspect(*arguments, stdin=""), USAGE)
        self.assertEqual(inspect("--json", "--lengths", "1,2147483648",
                                 config("yi-6b")).returncode, OK)
        self.assertIn("usage: posenc inspect", inspect("--help").stdout)

    def test_system(self):
        self.refuse(inspect("none/such.json"), SYSTEM, "none/such.json", "no such file")
        with open("/dev/full", "w", encoding="utf-8") as full:
            run = subprocess.run([*COMMAND, "inspect", config("yi-6b")], stdout=full,
                                 stderr=subprocess.PIPE, text=True)
        self.assertEqual(run.returncode, SYSTEM)
        self.assertIn("standard output", run.stderr)

    def test_values_beyond_a_plan(self):
        run = inspect("--json", "-", stdin=json.dumps(
            {**LLAMA, "rope_scaling": {"type": "linear", "factor": 1e300}}))
        self.refuse(run, REFUSED, "standard input", "rope_scaling.factor is 1e+300", "2^64")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
