#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command posenc from outside: results, files, refusals, exit codes.

usage: test_tools.py POSENC DATA-FOLDER GROUP...
"""
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

import numpy as np

POSENC, DATA = sys.argv[1:3] if len(sys.argv) > 2 else ("posenc", "data")
COMMAND = [*os.environ.get("POSENC_EMULATOR", "").split(), POSENC]  # for cross builds
OK, REFUSED, USAGE, SYSTEM = 0, 1, 2, 3


def lcg(seed, shape):
    """The pseudo-random numbers of the stored vectors; exact in float32."""
    values = np.empty(int(np.prod(shape)), np.float64)
    for i in range(values.size):
        seed = (1664525 * seed + 1013904223) % 2**32
        values[i] = (seed >> 8) / 2.0**23 - 1
    return values.reshape(shape).astype(np.float32)


def rotated(x, positions, rotary, layout="split_half", base=1e4, offset=0, factor=1.0, sign=1):
    """The formula in float64; positions [T] or [B, T]."""
    y = x.astype(np.float64)
    i = np.arange(rotary // 2)
    p = offset + (2 * i if layout == "adjacent" else i)
    q = p + (1 if layout == "adjacent" else rotary // 2)
    angle = np.asarray(positions)[..., None, None] * base ** (-2.0 * i / rotary)
    c, s = factor * np.cos(angle), sign * factor * np.sin(angle)
    a, b = y[..., p].copy(), y[..., q].copy()
    y[..., p], y[..., q] = a * c - b * s, b * c + a * s
    return y


def bf16(x):
    """float32 -> bits, to nearest even."""
    u = np.asarray(x, np.float32).view(np.uint32)
    return ((u + 0x7FFF + (u >> 16 & 1)) >> 16).astype(np.uint16)


def widened(h):
    return (h.astype(np.uint32) << 16).view(np.float32)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def save(self, name, array):
        np.save(self.path(name), array)
        return self.path(name)

    def run_posenc(self, *words, **kwargs):
        kwargs.setdefault("timeout", 280)
        environment = dict(os.environ, **kwargs.pop("environment", {}))
        return subprocess.run([*COMMAND, *map(str, words)], capture_output=True, env=environment,
                              **kwargs)

    def good(self, *words, **kwargs):
        done = self.run_posenc(*words, **kwargs)
        self.assertEqual(done.returncode, OK, done.stderr)
        return done

    def bad(self, code, say, *words, **kwargs):
        """Exit code, no stdout, one line on stderr with every text of `say`, no new file."""
        before = sorted(os.listdir(self.folder))
        done = self.run_posenc(*words, **kwargs)
        error = done.stderr.decode()
        self.assertEqual((done.returncode, done.stdout), (code, b""), error)
        self.assertEqual(error.count("\n"), 1, error)
        self.assertTrue(error.startswith("posenc"), error)
        for text in [say] if isinstance(say, str) else say:
            self.assertIn(text, error)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def rotate(self, x, *options):
        self.good("rotate", *options, self.save("in.npy", x), self.path("out.npy"))
        return np.load(self.path("out.npy"))

    def assertNear(self, got, want, tolerance):
        self.assertEqual(got.shape, want.shape)
        worst = np.max(np.abs(got.astype(np.float64) - want)) if got.size else 0
        self.assertLessEqual(worst, tolerance)


def stored_rotations():
    with open(os.path.join(DATA, "golden_rotations.txt"), encoding="ascii") as file:
        lines = [line.split() for line in file if not line.startswith("#")]
    facts = None
    for line in lines:
        if line[1] == "case":
            facts = [int(word) for word in line[2:]]
        else:
            yield facts, line[1] == "rotated_inverse", np.array(line[2:], np.float64)


class Rotate(Case):
    def test_stored_vectors(self):
        count = 0
        for (b, t, h, d, rotary, layout, offset, seed, step), inverse, want in stored_rotations():
            x = lcg(seed, (b, t, h, d))
            name = "adjacent" if layout == 1 else "split_half"
            options = ["--rope", f"{rotary},head={d},layout={name}", "--start", offset]
            got = self.rotate(x, *options, *(["--inverse"] if inverse else []))
            self.assertEqual((got.dtype, got.shape), (np.float32, x.shape))
            self.assertNear(got.ravel()[::step], want, 3.6e-7)
            count += 1
        self.assertEqual(count, 24)

    def test_negative_position(self):
        x = np.array([-1.25, 0.5, -0.5, 1.25, 0.25, -0.75, 1, 0], np.float32).reshape(1, 1, 1, 8)
        want = [0.7475079023903484, 0.34103129082432493, -0.4799013366399558, 1.2499975000008334,
                1.0325850743953164, -0.8343845987784618, 1.0097993400132443, -0.0024999983333336665]
        got = self.rotate(x, "--rope", "8", "--start", "-2")
        self.assertNear(got.ravel(), np.array(want), 3e-7)

    def test_positions(self):
        x = lcg(5, (2, 3, 2, 4))
        one, two = [1, 7, -3], [[1, 7, -3], [2**31 - 1, 0, -2**31]]
        for ids in (one, two):
            want = rotated(x, ids, 4)
            for dtype in (np.int32, np.int64):
                ids_path = self.save("ids.npy", np.array(ids, dtype))
                got = self.rotate(x, "--rope", "4", "--positions", ids_path)
                self.assertNear(got, want, 1e-6)
        start = self.rotate(x, "--rope", "4", "--start", 9)
        ids_path = self.save("ids.npy", np.arange(9, 12))
        self.assertEqual(start.tobytes(),
                         self.rotate(x, "--rope", "4", "--positions", ids_path).tobytes())

    def test_real_positions(self):
        x = lcg(5, (2, 3, 2, 4))
        ids = [[0.5, 7, -3.25], [1e6 + 0.125, 0, -2e9]]
        ids_path = self.save("ids.npy", np.array(ids))
        got = self.rotate(x, "--rope", "4", "--positions", ids_path)
        self.assertNear(got, rotated(x, ids, 4), 1e-6)

    def test_axes(self):
        x = lcg(5, (2, 3, 2, 32))
        ids = np.arange(18).reshape(3, 2, 3) * 5
        model = self.path("config.json")
        with open(model, "w", encoding="utf-8") as file:
            json.dump({"model_type": "qwen2_vl", "hidden_size": 64, "num_attention_heads": 2,
                       "num_hidden_layers": 1, "rope_theta": 10000.0,
                       "rope_scaling": {"type": "mrope", "mrope_section": [8, 4, 4]}}, file)
        ids_path = self.save("ids.npy", ids)
        got = self.rotate(x, "--model", model, "--positions", ids_path)
        axis = np.repeat([0, 1, 2], [8, 4, 4])
        w = 1e4 ** (-np.arange(16) / 16)
        angle = (np.moveaxis(ids, 0, -1)[..., axis] * w)[:, :, None]
        a, b = x[..., :16].astype(np.float64), x[..., 16:].astype(np.float64)
        want = np.concatenate([a * np.cos(angle) - b * np.sin(angle),
                               b * np.cos(angle) + a * np.sin(angle)], -1)
        self.assertNear(got, want, 1e-6)

    def test_dtypes(self):
        x = lcg(6, (1, 5, 2, 8))
        half, brain = x.astype(np.float16), bf16(x)
        for source, values, options in ((x, x, []), (half, half, []),
                                        (brain, widened(brain), ["--in-dtype", "bf16"])):
            want = rotated(values, np.arange(5), 8)
            for name, step in (("f32", 1e-6), ("f16", 2.0**-10), ("bf16", 2.0**-7)):
                got = self.rotate(source, "--rope", "8", *options, "--dtype", name)
                self.assertEqual(got.dtype, {"f32": np.float32, "f16": np.float16,
                                             "bf16": np.uint16}[name])
                self.assertNear(widened(got) if name == "bf16" else got, want, step)
            default = self.rotate(source, "--rope", "8", *options)
            self.assertEqual(default.dtype, source.dtype)
        # a uint16 array needs no --in-dtype where --dtype says bf16
        self.assertEqual(self.rotate(brain, "--rope", "8", "--dtype", "bf16").dtype, np.uint16)

    def test_rounding_to_bf16(self):
        bits = [0x3E89CCD5, 0x4048F5C3, 0x322BCC77, 0x3F808000, 0x3F818000, 0x7F800001, 0xFF800001,
                0x7F7FFFFF, 0x00000001, 0x80000000, 0x7F800000]
        want = [0x3E8A, 0x4049, 0x322C, 0x3F80, 0x3F82, None, None, 0x7F80, 0x0000, 0x8000, 0x7F80]
        x = np.array([0, 0] + bits, np.uint32).view(np.float32).reshape(1, 1, 1, 13)
        got = self.rotate(x, "--rope", "2,head=13", "--dtype", "bf16").ravel()[2:]
        for value, expected in zip(got, want):
            if expected is None:
                self.assertTrue(value & 0x7F80 == 0x7F80 and value & 0x7F, hex(value))
            else:
                self.assertEqual(value, expected)

    def test_subnormals_survive(self):
        x = np.full((1, 1, 1, 8), 0x000116C2, np.uint32).view(np.float32)
        got = self.rotate(x, "--rope", "4,head=8")
        self.assertEqual(set(got.view(np.uint32).ravel()), {0x000116C2})

    def test_rank_3_and_window_and_empty(self):
        x = lcg(7, (3, 2, 12))
        got = self.rotate(x, "--rope", "4,head=12,offset=8,layout=adjacent", "--start", 3)
        self.assertNear(got, rotated(x, [3, 4, 5], 4, "adjacent", offset=8), 1e-6)
        part = self.rotate(x[..., 8:].copy(), "--rope", "4,head=12,offset=8,layout=adjacent",
                           "--start", 3)
        self.assertEqual(part.tobytes(), got[..., 8:].tobytes())
        self.assertEqual(self.rotate(np.zeros((0, 2, 12), np.float32), "--rope", "12").shape,
                         (0, 2, 12))

    def test_inverse_and_transpose(self):
        x = lcg(8, (1, 4, 1, 8))
        rope = ["--rope", "8,attention_factor=1.5", "--start", 100]
        forward = self.rotate(x, *rope)
        self.assertNear(forward, rotated(x, np.arange(100, 104), 8, factor=1.5), 2e-6)
        self.assertNear(self.rotate(forward, *rope, "--inverse"), x, 2e-6)
        gradient = rotated(x, np.arange(100, 104), 8, factor=1.5, sign=-1)
        self.assertNear(self.rotate(x, *rope, "--transpose"), gradient, 2e-6)

    def test_scaling(self):
        x = lcg(9, (1, 4, 1, 8))
        got = self.rotate(x, "--rope", "8,scaling=linear,factor=4,base=500", "--start", 8)
        self.assertNear(got, rotated(x, np.arange(8, 12) / 4, 8, base=500), 1e-6)

    def test_output_may_be_the_input(self):
        x = lcg(10, (1, 4, 1, 8))
        want = self.rotate(x, "--rope", "8")
        name = self.save("both.npy", x)
        os.symlink(name, self.path("link.npy"))
        os.chmod(name, 0o640)
        self.good("rotate", "--rope", "8", name, self.path("link.npy"))
        self.assertEqual(np.load(name).tobytes(), want.tobytes())
        self.assertTrue(os.path.islink(self.path("link.npy")))
        self.assertEqual(os.stat(name).st_mode & 0o777, 0o640)

    def test_limit(self):
        model = os.path.join(DATA, "configs", "llama-3.1-8b.json")
        x = self.save("in.npy", lcg(11, (1, 2, 1, 128)))
        words = ["rotate", "--model", model, "--start", 131071, x, self.path("out.npy")]
        self.bad(REFUSED, ["in.npy", "131072"], *words, "--limit")
        done = self.good(*words)
        self.assertIn(b"warning", done.stderr)
        self.assertIn(b"max_position_embeddings = 131072", done.stderr)
        words[4] = 131070
        self.assertEqual(self.good(*words, "--limit").stderr, b"")

    def test_choice_of_a_set(self):
        model = os.path.join(DATA, "configs", "llama-3.1-8b.json")
        x = self.save("in.npy", lcg(11, (1, 2, 1, 128)))
        words = ["rotate", "--model", model, x, self.path("out.npy")]
        self.bad(REFUSED, ["--set is local", "main"], *words, "--set", "local")
        self.bad(REFUSED, ["--layer is 32", "below 32"], *words, "--layer", "32")
        self.good(*words, "--set", "main", "--layer", "31", "--length", "9")

    def test_warnings_of_the_contract(self):
        with open(os.path.join(DATA, "configs", "llama-3.1-8b.json"), encoding="utf-8") as file:
            config = json.load(file)
        config["rope_scaling"]["bogus"] = 1
        with open(self.path("config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        x = self.save("in.npy", lcg(11, (1, 2, 1, 128)))
        done = self.good("rotate", "--model", self.folder, x, self.path("out.npy"))
        self.assertRegex(done.stderr, rb"^posenc rotate: warning: [^\n]*bogus[^\n]*\n$")


class Arrays(Case):
    """Arrays that are refused: exit code 1, one line, no output."""

    def refused(self, say, array=None, content=None, options=()):
        if content is None:
            name = self.save("in.npy", array)
        else:
            name = self.path("in.npy")
            with open(name, "wb") as file:
                file.write(content)
        texts = [name, *([say] if isinstance(say, str) else say)]
        self.bad(REFUSED, texts, "rotate", "--rope", "8", *options, name, self.path("out.npy"))

    def test_kinds(self):
        x = lcg(1, (2, 3, 2, 8))
        self.refused("fortran_order is True", np.asfortranarray(x))
        self.refused("big-endian", x.astype(">f4"))
        self.refused(["float64", "astype"], x.astype(np.float64))
        self.refused("integer", x.astype(np.int32))
        self.refused("<c8", x.astype(np.complex64))
        self.refused("'descr'", np.zeros((1, 2, 1, 8), [("a", "<f4")]))
        self.refused("2 dimensions", x[0, 0])
        self.refused("5 dimensions", x[None])
        self.refused("0 dimensions", np.float32(1))
        self.refused(["6 channels", "8"], x[..., :6].copy())
        self.refused(["uint16", "--in-dtype bf16"], bf16(x))
        self.refused(["uint16", "f16"], bf16(x), options=["--in-dtype", "f16"])
        self.refused(["f32", "bf16"], x, options=["--in-dtype", "bf16"])

    def test_positions(self):
        x = self.save("in.npy", lcg(1, (2, 3, 2, 8)))
        for say, ids in (("<i8", np.zeros(3, np.uint32)),
                         ("int32, int64 or float64", np.zeros(3, np.float32)),
                         ("[2, 3]", np.zeros(4, np.int32)), ("[2, 3]", np.zeros((3, 2), np.int32)),
                         ("[2, 3]", np.zeros((1, 3), np.int32)), ("axes", np.zeros((3, 2, 3), int)),
                         ("1 to 4 axes", np.zeros((5, 2, 3))), ("int32", np.zeros((2, 3), "<f2")),
                         ("nan", np.array([0, 1, np.nan])), ("shape", np.zeros((1, 1, 2, 3))),
                         ("2147483648", np.array([0, 1, 2**31]))):
            ids_path = self.save("ids.npy", ids)
            self.bad(REFUSED, say, "rotate", "--rope", "8", "--positions", ids_path, x,
                     self.path("out.npy"))

    def test_versions(self):
        x = lcg(1, (1, 3, 2, 8))
        want = self.rotate(x, "--rope", "8").tobytes()
        for version in ((1, 0), (2, 0), (3, 0)):
            with open(self.path("in.npy"), "wb") as file:
                np.lib.format.write_array(file, x, version)
            self.good("rotate", "--rope", "8", self.path("in.npy"), self.path("out.npy"))
            self.assertEqual(np.load(self.path("out.npy")).tobytes(), want)

    def header(self, text, data=b"", version=b"\x01\x00", length=None):
        size = len(text) if length is None else length
        packed = size.to_bytes(2 if version[0] == 1 else 4, "little")
        return b"\x93NUMPY" + version + packed + text + data

    def test_hostile_headers(self):
        whole = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 8), }\n"
        data = bytes(32)
        with open(self.path("in.npy"), "wb") as file:
            file.write(self.header(whole, data))
        self.good("rotate", "--rope", "8", self.path("in.npy"), self.path("out.npy"))
        os.remove(self.path("out.npy"))
        self.refused("64 bytes of data, the file has 32",
                     content=self.header(whole.replace(b"(1,", b"(2,"), data))
        self.refused("the file has 31", content=self.header(whole, data[:-1]))
        self.refused("the file has 33", content=self.header(whole, data + b"x"))
        self.refused("too large", content=self.header(whole.replace(b"(1,", b"(%d," % 2**62), data))
        for broken in (b"(1, 1, 1, 8", b"(-1, 1, 1, 8)", b"(%d, 1, 1, 8)" % 10**30, b"(8)", b"8",
                       b"(1 1, 1, 8)", b"(1,,1,1,8)", b"(0x1, 1, 1, 8)", b"(1, 1, 1, 8.0)",
                       b"[1, 1, 1, 8]", b"(1, 1, 1, 1, 1, 1, 1, 1, 8)"):
            self.refused("malformed", content=self.header(
                b"{'descr': '<f4', 'fortran_order': False, 'shape': " + broken + b", }\n", data))
        for broken in (whole[:-1], whole + b" ", whole[1:], whole.replace(b"False", b"Maybe"),
                       whole.replace(b"'shape'", b"'shape"), whole.replace(b"descr", b"other"),
                       whole.replace(b"'fortran_order': False, ", b""), b"", b"{}\n", b"\x00" * 80,
                       whole.replace(b"}", b"'descr': '<f4', }"), whole.replace(b"(1", b"(\x001"),
                       b"{" * 60000, b"{'descr': '" + b"<" * 5000 + b"'}\n"):
            self.refused("malformed", content=self.header(broken, data))
        self.refused("length", content=self.header(whole, data, length=60000))
        self.refused("length", content=self.header(whole, data, b"\x02\x00", 2**32 - 1))
        self.refused("version is 4.0", content=self.header(whole, data, b"\x04\x00"))
        self.refused("version is 1.1", content=self.header(whole, data, b"\x01\x01"))
        for short in (b"", b"\x93NUMPY", b"\x93NUMPY\x02\x00\x10\x00", b"PK\x03\x04" + bytes(60)):
            say = "NUMPY" if len(short) < 10 or short[:1] == b"P" else "length"
            self.refused(say, content=short)

    def test_empty_arrays_of_any_size(self):
        """Without elements any number of batch rows or tokens fits a file: none may be counted."""
        vast, name, out = 2**62, self.path("in.npy"), self.path("out.npy")
        ids = self.save("ids.npy", np.zeros(1, np.int64))
        text = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }\n"
        for shape in ((vast, 1, 0, 8), (vast, vast, 0, 8), (0, vast, vast, 8), (vast, 0, 1, 8)):
            with open(name, "wb") as file:
                file.write(self.header((text % (shape,)).encode()))
            more = ["--positions", ids] if shape[1] == 1 else []
            self.good("rotate", "--rope", "8", *more, name, out, timeout=60)
            self.good("rotate", "--rope", "4,head=8", "--dtype", "f16", name, out, timeout=60)
            self.good("attend", name, name, name, out, timeout=60)
        with open(name, "wb") as file:
            file.write(self.header((text % ((vast, 1, 1, 0),)).encode()))
        os.remove(out)
        self.bad(REFUSED, [name, "0 channels"], "attend", name, name, name, out)

    def test_every_truncation(self):
        with open(self.save("whole.npy", lcg(1, (1, 1, 1, 8))), "rb") as file:
            content = file.read()
        for size in range(0, len(content), 7):
            self.refused("", content=content[:size])


class Files(Case):
    def setUp(self):
        super().setUp()
        self.model = ["rotate", "--rope", "8"]
        self.x = self.save("in.npy", lcg(1, (1, 64, 4, 8)))

    def test_missing_and_unreadable(self):
        self.bad(SYSTEM, "none.npy", *self.model, self.path("none.npy"), self.path("out.npy"))
        self.bad(SYSTEM, self.folder, *self.model, self.folder, self.path("out.npy"))
        self.bad(SYSTEM, "none.json", "run", self.path("none.json"))

    def test_endless(self):
        self.bad(REFUSED, "/dev/zero", *self.model, "/dev/zero", self.path("out.npy"))

    def test_unwritable(self):
        self.bad(SYSTEM, "none/out.npy", *self.model, self.x, self.path("none/out.npy"))
        self.bad(SYSTEM, self.folder, *self.model, self.x, self.folder)
        self.bad(SYSTEM, "/proc/out.npy", *self.model, self.x, "/proc/out.npy")
        if os.geteuid() != 0:
            os.mkdir(self.path("closed"), 0o500)
            self.bad(SYSTEM, "closed/out.npy", *self.model, self.x, self.path("closed/out.npy"))

    def test_full(self):
        self.bad(SYSTEM, "No space left", *self.model, self.x, "/dev/full")
        self.assertTrue(os.path.exists("/dev/full"))
        with open("/dev/full", "wb") as full:
            done = subprocess.run([*COMMAND, "isa"], stdout=full, stderr=subprocess.PIPE,
                                  check=False)
        self.assertEqual(done.returncode, SYSTEM)
        self.assertIn(b"standard output", done.stderr)

    def test_file_too_large(self):
        with open(self.path("out.npy"), "wb") as file:
            file.write(b"old")
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        self.bad(SYSTEM, "out.npy", *self.model, self.x, self.path("out.npy"), preexec_fn=limit)
        with open(self.path("out.npy"), "rb") as file:
            self.assertEqual(file.read(), b"old")

    def test_refusal_keeps_the_old_output(self):
        out = self.save("out.npy", np.zeros(3))
        with open(out, "rb") as file:
            before = file.read()
        self.bad(REFUSED, "in.npy", "rotate", "--rope", "6", self.x, out)
        with open(out, "rb") as file:
            self.assertEqual(file.read(), before)

    def interrupt(self):
        """Stops the command while its unfinished file is there, then ends it. False if too late."""
        out = self.path("out.npy")
        with subprocess.Popen([*COMMAND, *self.model, self.path("big.npy"), out]) as process:
            while process.poll() is None:
                if any(name.startswith("out.npy.") for name in os.listdir(self.folder)):
                    process.send_signal(signal.SIGSTOP)
                    break
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            caught = any(name.startswith("out.npy.") for name in os.listdir(self.folder))
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGCONT)
            process.wait()
        return caught and process.returncode == -signal.SIGTERM

    def test_interrupted(self):
        np.save(self.path("big.npy"), np.ones((1, 1 << 18, 8, 8), np.float32))
        for _ in range(50):
            if self.interrupt():
                break
            if os.path.exists(self.path("out.npy")):
                os.remove(self.path("out.npy"))
        else:
            self.fail("the command was never caught while it wrote")
        self.assertEqual(sorted(os.listdir(self.folder)), ["big.npy", "in.npy"])

    def test_pipes(self):
        with open(self.x, "rb") as file:
            done = self.good(*self.model, "/dev/stdin", "/dev/stdout", stdin=file)
        self.good(*self.model, self.x, self.path("out.npy"))
        with open(self.path("out.npy"), "rb") as file:
            self.assertEqual(done.stdout, file.read())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
