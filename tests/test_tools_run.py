#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command posenc from outside: run, isa, help, wrong usage.

usage: test_tools_run.py POSENC DATA-FOLDER GROUP...
FAULT_LIBRARY in the environment names the built tests/fault.c, for the group Faults.
"""
import json
import os
import pathlib
import re
import sys
import unittest

from test_tools import Case, DATA, OK, REFUSED, SYSTEM, USAGE

COMMANDS = ["run", "inspect", "diff", "fingerprint", "rows", "bands", "compare", "rotate", "attend",
            "isa", "plot", "bias"]
LATER = ["bench"]


def config(name):
    return os.path.join(DATA, "configs", name + ".json")


class Usage(Case):
    def test_help(self):
        top = self.good("--help").stdout.decode()
        for name in COMMANDS:
            self.assertRegex(top, rf"\n  {name} ")
            for words in ([name, "--help"], [name, "x", "--help"], [name, "-h"]):
                done = self.good(*words)
                text = done.stdout.decode()
                self.assertEqual(done.stderr, b"")
                self.assertTrue(text.startswith(f"usage: posenc {name}"), text)
                self.assertIn("example:\n", text)
                self.assertLessEqual(max(map(len, text.split("\n"))), 80, text)

    def test_version(self):
        self.assertRegex(self.good("--version").stdout.decode(), r"^posenc \d+\.\d+\.\d+\n$")

    def test_wrong_usage(self):
        self.bad(USAGE, "subcommand is missing")
        for name in LATER:
            self.bad(USAGE, [name, "not offered yet"], name)
        for say, words in (
                ("turn is not a subcommand", ["turn"]), ("--bogus", ["run", "--bogus", "m"]),
                ("-x is unknown", ["isa", "-x"]), ("needs one MODEL", ["run"]),
                ("base is given twice",
                 ["rotate", "--rope", "8,base=1e4,factor=2,base=5", "in.npy", "out.npy"]),
                ("--tokens", ["run", "m", "--tokens"]), ("got 2", ["run", "m", "m"]),
                ("--tokens is 0", ["run", "--tokens", "0", "m"]),
                ("--tokens is 1e3", ["run", "--tokens", "1e3", "m"]),
                ("--tokens is  1", ["run", "--tokens", " 1", "m"]),
                ("--start is 2147483648", ["run", "--start", "2147483648", "m"]),
                ("--layers is -1", ["run", "--layers", "-1", "m"]),
                ("--dtype is f64", ["run", "--dtype", "f64", "m"]),
                ("takes no value", ["run", "--json=1", "m"]),
                ("one operand too many", ["isa", "x"]),
                ("needs two files", ["rotate", "--rope", "8", "a"]),
                ("--model or --rope is missing", ["rotate", "a", "b"]),
                ("exclude", ["rotate", "--rope", "8", "--start", "1", "--positions", "p", "a"]),
                ("--inverse and --transpose", ["rotate", "--inverse", "--transpose", "a", "b"]),
                ("need --model", ["rotate", "--rope", "8", "--set", "main", "a", "b"]),
                ("--layer is x", ["rotate", "--layer", "x", "a", "b"]),
                ("--length is 0", ["rotate", "--length", "0", "a", "b"]),
                ("WIDTH is 'x'", ["rotate", "--rope", "x", "a", "b"]),
                ("WIDTH is '65538': must be an even integer from 2 to 65536",
                 ["bands", "--rope", "65538"]),
                ("WIDTH is '2147483647'", ["plot", "bands", "--rope", "2147483647"]),
                ("base is 'x'", ["rotate", "--rope", "8,base=x", "a", "b"]),
                ("'base'", ["rotate", "--rope", "8,base", "a", "b"]),
                ("the key x", ["rotate", "--rope", "8,x=1", "a", "b"]),
                ("layout is 'neox'", ["rotate", "--rope", "8,layout=neox", "a", "b"])):
            self.bad(USAGE, say, *words)
        self.bad(REFUSED, "rotary_dim", "rotate", "--rope", "7", "a", "b")
        self.bad(REFUSED, "base", "rotate", "--rope", "8,base=1", "a", "b")
        self.bad(REFUSED, "factor", "rotate", "--rope", "8,scaling=linear", "a", "b")

    def test_one_line_whatever_the_name(self):
        self.bad(SYSTEM, "a?b", "rotate", "--rope", "8", self.path("a\nb"), self.path("out"))

    def test_isa(self):
        text = self.good("isa").stdout.decode()
        available = re.findall(r"^[* ] (\w+) +available", text, re.M)
        self.assertIn("scalar", available)
        self.assertEqual(len(re.findall(r"^\* ", text, re.M)), 1)
        for name in ("scalar", "avx2", "avx512", "neon"):
            environment = {"POSENC_ISA": name}
            if name in available:
                text = self.good("isa", environment=environment).stdout.decode()
                self.assertRegex(text, rf"(?m)^\* {name} ")
                self.assertIn(f"{name} is used: POSENC_ISA names it", text)
            else:
                self.bad(USAGE, ["POSENC_ISA", name], "isa", environment=environment)
        for command in COMMANDS:
            self.bad(USAGE, ["POSENC_ISA is sse9", "scalar"], command, "x",
                     environment={"POSENC_ISA": "sse9"})


class Run(Case):
    def numbers(self, *words, **kwargs):
        return json.loads(self.good("run", "--json", *words, **kwargs).stdout)

    def check_numbers(self, facts):
        check = facts["self_check"]
        self.assertTrue(check["ok"] and check["isas_equal"])
        self.assertTrue(0.3 < check["row_error"] <= check["row_bound"])
        self.assertTrue(0.05 < check["rotation_error_of_bound"] <= 1)
        self.assertTrue(0.3 < check["attention_error"] <= check["attention_bound"])
        self.assertEqual(facts["results"][-1]["isa"], "scalar")
        self.assertEqual(sum(result["default"] for result in facts["results"]), 1)
        step = facts["step"]
        for result in facts["results"]:
            self.assertGreater(result["tokens_per_second"], 0)
            self.assertGreater(result["ratio_to_limit"], 0)
            per_token = step["bytes"] / step["tokens"] / step["rotated_layers"]
            bytes_per_token = result["bytes_per_second"] / result["tokens_per_second"]
            self.assertAlmostEqual(bytes_per_token / per_token, 1, places=9)

    def test_models(self):
        # name, what the contract says, layers, Q + K elements that turn for a token and layer
        for name, theta, rotary, layout, layers, rotated_layers, elements in (
                ("llama-3.1-8b", 5e5, 128, "split_half", 4, 4, 40 * 128),
                ("smollm3-3b", 5e6, 128, "split_half", 4, 3, 20 * 128),
                ("gpt-j-6b", 1e4, 64, "adjacent", 4, 4, 32 * 64)):
            facts = self.numbers("--tokens", 64, config(name))
            self.check_numbers(facts)
            rope = facts["contract"]["rope"][0]
            self.assertEqual((rope["theta"], rope["rotary_dim"], rope["layout"]),
                             (theta, rotary, layout))
            step = facts["step"]
            self.assertEqual((step["layers"], step["rotated_layers"]), (layers, rotated_layers))
            self.assertEqual(step["bytes"], 2 * 4 * 64 * rotated_layers * elements)

    def test_every_rotary_model(self):
        count = 0
        for path in sorted(pathlib.Path(config("")).parent.glob("*.json")):
            contract = json.loads(self.good("inspect", "--json", path).stdout)
            if contract["scheme"] != "rope":
                continue
            facts = self.numbers("--tokens", 2, path)
            self.check_numbers(facts)
            count += 1
        self.assertGreaterEqual(count, 59)

    def test_text(self):
        text = self.good("run", "--tokens", 64, config("llama-3.1-8b")).stdout.decode()
        self.assertEqual(len(re.findall("^self-check: ok ", text, re.M)), 4)
        for words in ("llama3, base 500000", "32 query and 8 key heads", "factor 8",
                      "64 tokens at 0..63", "131072 positions"):
            self.assertIn(words, text)
        self.assertRegex(text, r"(?m)^\* \w+ +\d+ +\d+\.\d +\d\.\d\d$")
        text += self.good("run", "--tokens", 2, config("deepseek-r1")).stdout.decode()
        for line in text.split("\n"):
            self.assertTrue(len(line) <= 80 or line.startswith("posenc"), line)

    def test_dtypes_and_lengths(self):
        for dtype, size in (("f16", 2), ("bf16", 2)):
            facts = self.numbers("--tokens", 33, "--layers", 1, "--dtype", dtype, "--start", 1000,
                                 config("llama-3.1-8b"))
            self.check_numbers(facts)
            self.assertEqual(facts["step"]["bytes"], 2 * size * 33 * 40 * 128)
        facts = self.numbers("--tokens", 1, "--start", -77, "--layers", 2, config("llama-3.1-8b"))
        self.assertTrue(facts["self_check"]["ok"])
        self.assertEqual(facts["step"]["start"], -77)

    def test_shared_key_head_and_attention_factor(self):
        facts = self.numbers("--tokens", 16, "--layers", 1, config("deepseek-r1"))
        self.check_numbers(facts)
        self.assertEqual(facts["step"]["bytes"], 2 * 4 * 16 * (128 * 64 + 64))
        facts = self.numbers("--tokens", 64, "--layers", 1, config("gpt-oss-20b"))
        self.check_numbers(facts)
        self.assertGreater(facts["contract"]["rope"][0]["attention_factor"], 1.3)
        self.assertEqual(facts["self_check"]["row_bound"], 1.002)

    def test_several_sets(self):
        facts = self.numbers("--tokens", 16, config("gemma3-12b"))
        self.check_numbers(facts)
        ids = sorted(rope["id"] for rope in facts["contract"]["rope"])
        self.assertEqual(ids, ["global", "local"])
        self.assertEqual(facts["step"]["layers"], 6)

    def only_set(self, *words):
        facts = self.numbers("--tokens", 16, "--layers", 1, *words)
        self.check_numbers(facts)
        self.assertEqual(len(facts["contract"]["rope"]), 1)
        return facts["contract"]["rope"][0]["id"], facts["step"]["bytes"]

    def test_running_length_chooses(self):
        name = config("phi-3.5-mini")
        bytes_ = 2 * 4 * 16 * 64 * 96
        self.assertEqual(self.only_set(name), ("short", bytes_))
        self.assertEqual(self.only_set("--start", 4080, name), ("short", bytes_))
        self.assertEqual(self.only_set("--start", 4081, name), ("long", bytes_))
        self.assertEqual(self.only_set("--set", "long", name), ("long", bytes_))
        self.assertEqual(self.only_set("--start", 8000, "--set", "short", name), ("short", bytes_))
        self.bad(REFUSED, ["--set is main"], "run", "--set", "main", name)
        self.only_set("--start", 8000, config("synthetic-dynamic-partial"))

    def test_axes_and_widths(self):
        for name in ("qwen2-vl-2b", "qwen3-vl-32b", "glm-4.1v-9b"):
            self.assertEqual(self.only_set(config(name))[0], "main")
        facts = self.numbers("--tokens", 16, config("gemma4-26b-a4b"))
        self.check_numbers(facts)
        self.assertEqual(facts["step"]["layers"], 6)
        self.assertEqual(facts["step"]["bytes"],
                         2 * 4 * 16 * (5 * 24 * 256 + 18 * 512))

    def test_standard_input_and_folder(self):
        with open(config("llama-3.1-8b"), "rb") as file:
            content = file.read()
        words = ["--tokens", 4, "--layers", 1]
        piped = self.numbers(*words, "-", input=content)
        with open(self.path("config.json"), "wb") as file:
            file.write(content)
        self.assertEqual(self.numbers(*words, self.folder)["contract"], piped["contract"])
        self.bad(REFUSED, "standard input", "run", "-", input=b"{")

    def test_limits(self):
        model = config("llama-3.1-8b")
        words = ["run", "--tokens", 2, "--layers", 1, "--start", 131071, model]
        self.bad(REFUSED, ["131072", "max_position"], *words, "--limit")
        done = self.good(*words)
        self.assertIn(b"warning", done.stderr)
        self.assertEqual(done.stderr.count(b"\n"), 1)
        self.bad(REFUSED, ["--layers is 33", "has 32"], "run", "--layers", 33, model)
        self.bad(REFUSED, "2147483647", "run", "--start", 2**31 - 1, "--tokens", 2, model)
        self.bad(SYSTEM, "GiB", "run", "--tokens", 1048576, "--layers", 32, model)

    def test_default_isa(self):
        facts = self.numbers("--tokens", 4, "--layers", 1, config("llama-3.1-8b"),
                             environment={"POSENC_ISA": "scalar"})
        self.assertTrue(facts["results"][-1]["default"])


class Faults(Case):
    """A library that is slightly wrong: the self-check must say so, or it checks nothing."""

    def test_each_fault_is_noticed(self):
        several = self.good("isa").stdout.count(b" available ") > 1
        for fault, what in (
                ("none", None), ("rows", "rows"), ("nan", "rows"), ("rotate", "rotation"),
                ("copy", "rotation"), ("attention", "attention"), ("isa_rows", "ISAs"),
                ("isa_rotate", "ISAs"), ("isa_attention", "ISAs")):
            if what == "ISAs" and not several:
                continue
            environment = {"LD_PRELOAD": os.environ["FAULT_LIBRARY"], "FAULT": fault}
            words = ["run", "--tokens", 8, "--layers", 1, config("gpt-j-6b")]
            done = self.run_posenc(*words, environment=environment)
            text = done.stdout.decode()
            if what is None:
                self.assertEqual((done.returncode, text.count("FAILED")), (OK, 0), done.stderr)
                continue
            self.assertEqual(done.returncode, REFUSED, fault)
            self.assertRegex(text, rf"(?m)^self-check: FAILED {what} ", fault)
            self.assertRegex(done.stderr.decode(), r"^posenc run: [^\n]*self-check failed\n$")
            if fault == "rows":
                done = self.run_posenc("run", "--json", *words[1:], environment=environment)
                self.assertEqual((done.returncode, json.loads(done.stdout)["self_check"]["ok"]),
                                 (REFUSED, False))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
