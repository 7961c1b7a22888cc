#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""posenc permute from outside: NPY and safetensors files, their refusals, streaming, interruption.

usage: test_tools_permute.py POSENC GROUP...
"""
import json
import os
import pty
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

POSENC = sys.argv[1] if len(sys.argv) > 1 else "posenc"
EMULATOR = os.environ.get("POSENC_EMULATOR", "").split()
COMMAND = [*EMULATOR, POSENC]  # for cross builds
OK, REFUSED, USAGE, SYSTEM = 0, 1, 2, 3
DTYPES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16, "F64": np.float64,
          "I64": np.int64, "U8": np.uint8, "F8_E4M3": np.uint8, "BOOL": np.bool_}


def llama_cpp(weights, heads):
    """The permutation that conversion to GGUF does to Llama's Q and K."""
    return weights.reshape(heads, 2, weights.shape[0] // heads // 2, *weights.shape[1:]) \
        .swapaxes(1, 2).reshape(weights.shape)


def permuted(x, to, head_dim, rotary, offset=0, heads=None):
    """The index formula on axis 0; the rows behind `heads` heads stay."""
    y = x.copy()
    half = rotary // 2
    for h in range(x.shape[0] // head_dim if heads is None else heads):
        for i in range(half):
            for s in range(2):
                adjacent = h * head_dim + offset + 2 * i + s
                split = h * head_dim + offset + s * half + i
                if to == "adjacent":
                    y[adjacent] = x[split]
                else:
                    y[split] = x[adjacent]
    return y


def tensor_file(tensors, metadata=None, pad=0):
    """The bytes of a safetensors file of (name, dtype, array)."""
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, dtype, array in tensors:
        bits = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(bits)]}
        data += bits
    text = json.dumps(header).encode() + b" " * pad
    return struct.pack("<Q", len(text)) + text + data


def raw_file(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.random = np.random.default_rng(5)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def save(self, name, array):
        np.save(self.path(name), array)
        return self.path(name)

    def values(self, shape, dtype=np.float32):
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        bits = self.random.integers(0, 2 if dtype == np.bool_ else 256, size, np.uint8)
        return bits.view(dtype).reshape(shape)

    def run_permute(self, *words, **kwargs):
        return subprocess.run([*COMMAND, "permute", *map(str, words)], capture_output=True,
                              check=False, timeout=280, **kwargs)

    def good(self, *words, **kwargs):
        done = self.run_permute(*words, **kwargs)
        self.assertEqual((done.returncode, done.stderr), (OK, b""))
        return done.stdout.decode()

    def bad(self, code, say, *words, **kwargs):
        before = sorted(os.listdir(self.folder))
        done = self.run_permute(*words, **kwargs)
        text = done.stderr.decode()
        self.assertEqual((done.returncode, done.stdout), (code, b""), text)
        self.assertEqual(text.count("\n"), 1, text)
        for word in say.split("|"):
            self.assertIn(word, text)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def same(self, path, expected):
        """An NPY file's bits, dtype and shape."""
        got = np.load(self.path(path))
        self.assertEqual((got.dtype, got.shape), (expected.dtype, expected.shape))
        self.assertEqual(got.tobytes(), expected.tobytes())


class PermuteNpy(Case):
    def test_as_llama_cpp_does(self):
        w = self.values((4 * 16, 24), np.float16)
        path = self.save("w.npy", w)
        self.good("--to", "adjacent", "--heads", 4, "--rotary", 16, path, self.path("a.npy"))
        self.same("a.npy", llama_cpp(w, 4))
        self.good("--to", "split_half", "--heads", 4, "--rotary", 16, self.path("a.npy"),
                  self.path("b.npy"))
        self.assertEqual(self.read("b.npy"), self.read("w.npy"))

    def test_every_type_and_rank(self):
        for dtype in (np.float32, np.float16, np.float64, np.uint16, np.int8, np.int64, np.bool_,
                      np.complex128, ">f4"):
            for shape in ((48,), (48, 5), (48, 2, 3), (3, 16, 5), (48, 1, 1)):
                x = self.values(shape, dtype)
                path = self.save("x.npy", x)
                flat = x.reshape(48, -1)
                for to in ("adjacent", "split_half"):
                    self.good("--to", to, "--heads", 3, "--rotary", 10, "--head-dim", 16,
                              "--offset", 4, path, self.path("y.npy"))
                    self.same("y.npy", permuted(flat, to, 16, 10, 4).reshape(shape))

    def test_channels(self):
        x = self.values((2, 5, 3, 16), np.float16)
        path = self.save("k.npy", x)
        moved = np.moveaxis(permuted(np.moveaxis(x, -1, 0), "adjacent", 16, 12, 2), 0, -1)
        self.good("--to", "adjacent", "--heads", 3, "--rotary", 12, "--head-dim", 16, "--offset",
                  2, "--axis", "channels", path, self.path("y.npy"))
        self.same("y.npy", np.ascontiguousarray(moved))
        packed = self.save("p.npy", x.reshape(2, 5, 48))
        self.good("--to", "adjacent", "--heads", 3, "--rotary", 12, "--head-dim", 16, "--offset",
                  2, "--axis", "channels", packed, self.path("y.npy"))
        self.same("y.npy", np.ascontiguousarray(moved).reshape(2, 5, 48))
        one = self.save("one.npy", x[0, 0, :1])
        self.good("--to", "adjacent", "--heads", 1, "--rotary", 16, "--axis", "channels", one,
                  self.path("y.npy"))
        self.same("y.npy", x[0, 0, :1].reshape(1, 2, 8).swapaxes(1, 2).reshape(1, 16).copy())

    def test_packed(self):
        x = self.values((80, 3))
        path = self.save("qkv.npy", x)
        self.good("--to", "adjacent", "--heads", 3, "--rotary", 16, "--head-dim", 16, "--packed",
                  path, self.path("y.npy"))
        self.same("y.npy", permuted(x, "adjacent", 16, 16, heads=3))

    def test_large_rows_and_heads(self):
        for shape in ((8, 600001), (1100, 700), (520000,), (2, 2097153)):
            x = self.values(shape, np.uint8 if len(shape) > 1 else np.float64)
            path = self.save("x.npy", x)
            d = shape[0] // 2 if shape[0] > 2 else 2
            rotary = min(d, 300) // 2 * 2
            for to in ("adjacent", "split_half"):
                self.good("--to", to, "--heads", shape[0] // d, "--rotary", rotary, path,
                          self.path("y.npy"))
                self.same("y.npy", permuted(x, to, d, rotary))

    def test_onto_itself_and_empty(self):
        x = self.values((32, 2))
        path = self.save("x.npy", x)
        self.good("--to", "adjacent", "--heads", 1, "--rotary", 32, path, path)
        self.same("x.npy", permuted(x, "adjacent", 32, 32))
        self.assertEqual(os.listdir(self.folder), ["x.npy"])
        empty = self.save("e.npy", np.zeros((32, 0), np.float32))
        self.good("--to", "adjacent", "--heads", 1, "--rotary", 32, empty, self.path("f.npy"))
        self.assertEqual(self.read("e.npy"), self.read("f.npy"))

    def test_refusals(self):
        path = self.save("x.npy", self.values((48, 2)))
        out = self.path("y.npy")

        def refused(say, *words, file=path):
            self.bad(REFUSED, say, "--to", "adjacent", *words, file, out)

        refused("x.npy|48 rows|5 heads", "--heads", 5, "--rotary", 8)
        refused("has heads of 16 channels|18", "--heads", 3, "--rotary", 18)
        refused("rotary + offset (20)", "--heads", 3, "--rotary", 16, "--offset", 4)
        refused("48 rows|must be 96", "--heads", 6, "--rotary", 16, "--head-dim", 16)
        refused("48 rows|at least 96", "--heads", 6, "--rotary", 16, "--head-dim", 16, "--packed")
        refused("2 channels|16", "--heads", 1, "--rotary", 2, "--head-dim", 16, "--axis",
                "channels")
        good = ("--heads", 3, "--rotary", 16)
        refused("fortran_order", *good,
                file=self.save("f.npy", np.asfortranarray(self.values((48, 2)))))
        refused("no dimension", *good, file=self.save("s.npy", np.float32(1)))
        refused("element type", *good, file=self.save("u.npy", np.zeros(48, "U3")))
        whole = self.read("x.npy")
        for size in (len(whole) - 1, 130, 128, 100, 12, 10):
            refused("cut.npy", *good, file=self.write("cut.npy", whole[:size]))
        refused("bytes of data", *good, file=self.write("long.npy", whole + b"x"))
        for content in (b"", b"PK\x03\x04", b"\x93NUMPX" + whole[6:]):
            refused("neither an NPY nor a safetensors", *good, file=self.write("o.npy", content))
        refused("GGUF", *good, file=self.write("o.npy", b"GGUF\x03\0\0\0" + b"\0" * 20))
        refused("no regular file", *good, file=self.folder)
        self.bad(SYSTEM, "none.npy", "--to", "adjacent", *good, self.path("none.npy"), out)
        self.bad(SYSTEM, "no/y.npy", "--to", "adjacent", *good, path, self.path("no/y.npy"))

    def test_usage(self):
        path = self.save("x.npy", self.values((48, 2)))
        out = self.path("y.npy")
        good = ("--to", "adjacent", "--heads", 3, "--rotary", 16)
        for say, *words in (
                ("needs --to", "--heads", 3, "--rotary", 16, path, out),
                ("needs --heads", "--to", "adjacent", "--rotary", 16, path, out),
                ("needs --rotary", "--to", "adjacent", "--heads", 3, path, out),
                ("--to is neox", "--to", "neox", path, out),
                ("--rotary is 7|even", *good, "--rotary", 7, path, out),
                ("--heads is 0", *good, "--heads", 0, path, out),
                ("--axis is x", *good, "--axis", "x", path, out),
                ("--packed needs --head-dim", *good, "--packed", path, out),
                ("needs --head-dim", *good, "--axis", "channels", path, out),
                ("two files", *good, path),
                ("--tensor|NPY", *good, "--tensor", "x", path, out),
                ("--tensor is x=y", *good, "--tensor", "x=y", path, out)):
            self.bad(USAGE, say, *words)
        self.assertIn("--head-dim", self.run_permute("--help").stdout.decode())


class PermuteTensors(Case):
    def model(self):
        return [(f"layers.{n}.{name}", dtype, self.values(shape, DTYPES[dtype]))
                for n in range(2)
                for name, dtype, shape in (
                    ("self_attn.q_proj.weight", "BF16", (64, 40)),
                    ("self_attn.q_proj.bias", "F32", (64,)),
                    ("self_attn.k_proj.weight", "BF16", (32, 40)),
                    ("self_attn.v_proj.weight", "F16", (32, 40)),
                    ("self_attn.q_norm.weight", "F32", (16,)),
                    ("self_attn.q_proj.lora_B.weight", "F32", (64, 4)),
                    ("mlp.up.weight", "F8_E4M3", (7, 9)),
                    ("empty", "F32", (0, 3)),
                    ("odd", "BOOL", (3,)))]

    def check(self, content, tensors, changed):
        """Header and all tensors but the changed ones as they were."""
        whole = self.read("in.safetensors")
        start = 8 + struct.unpack("<Q", whole[:8])[0]
        self.assertEqual(content[:start], whole[:start])
        self.assertEqual(len(content), len(whole))
        at = start
        for name, _, array in tensors:
            expected = changed.get(name, array)
            size = array.nbytes
            self.assertEqual(content[at:at + size], expected.tobytes(), name)
            at += size
        self.assertTrue(changed)

    def test_chosen_tensors(self):
        tensors = self.model()
        path = self.write("in.safetensors", tensor_file(tensors, {"format": "pt"}, 5))
        listed = self.good("--to", "adjacent", "--heads", 4, "--rotary", 16, "--tensor",
                           "*.q_proj.*", "--tensor", "*.k_proj.weight=2", "--tensor",
                           "*.q_norm.weight=1", path, self.path("out.safetensors"))
        changed = {}
        for name, _, array in tensors:
            heads = 4 if ".q_proj." in name else 2 if ".k_proj." in name else \
                1 if ".q_norm." in name else 0
            if heads:
                changed[name] = llama_cpp(array, heads)
                self.assertIn(f"{name} ", listed)
        self.check(self.read("out.safetensors"), tensors, changed)
        self.assertEqual(listed.count("\n"), 10)
        self.assertIn("layers.1.self_attn.k_proj.weight BF16 [32, 40]: 2 heads x 16", listed)

    def test_partial_and_packed(self):
        tensors = [("qkv", "F16", self.values((5 * 12, 6), np.float16)),
                   ("rest", "U8", self.values((11,), np.uint8))]
        path = self.write("in.safetensors", tensor_file(tensors))
        self.good("--to", "split_half", "--heads", 4, "--rotary", 6, "--head-dim", 12, "--offset",
                  3, "--packed", "--tensor", "qkv", path, self.path("out.safetensors"))
        self.check(self.read("out.safetensors"), tensors,
                   {"qkv": permuted(tensors[0][2], "split_half", 12, 6, 3, heads=4)})

    def test_names_are_required(self):
        path = self.write("in.safetensors", tensor_file(self.model()))
        out = self.path("out.safetensors")
        good = ("--to", "adjacent", "--heads", 4, "--rotary", 16)
        self.bad(USAGE, "18 tensors|q_proj.weight|--tensor", *good, path, out)
        self.bad(REFUSED, "--tensor *.qproj.* matches none of 18", *good, "--tensor", "*.q_proj.*",
                 "--tensor", "*.qproj.*", path, out)
        self.bad(REFUSED, "up.weight|7 rows", *good, "--tensor", "*up*", path, out)
        self.bad(REFUSED, "4 and 2 heads", *good, "--tensor", "*q_proj*", "--tensor", "*proj*=2",
                 path, out)

    def test_hostile_headers(self):
        x = {"dtype": "F32", "shape": [4, 2], "data_offsets": [0, 32]}
        data = bytes(32)

        def refused(say, content):
            path = self.write("h.safetensors", content)
            self.bad(REFUSED, say, "--to", "adjacent", "--heads", 1, "--rotary", 4, "--tensor",
                     "x", path, self.path("out"))

        path = self.write("h.safetensors", raw_file({"x": x}, data))
        self.good("--to", "adjacent", "--heads", 1, "--rotary", 4, "--tensor", "x", path,
                  self.path("ok"))
        for length in (2**64 - 1, 2**63, 100_000_001, 10_000, 2**64 - 8):
            refused("header's length", raw_file({"x": x}, data, length))
        refused("no JSON object", raw_file(b"{\"x\":"))
        refused("no JSON object", raw_file(b"{}garbage"))
        refused("no JSON object", raw_file(b"{" * 5000))
        refused("no JSON object", raw_file(b"{\"\xff\": 1}"))
        refused("no JSON object", raw_file(b"{\"x\": {}, \"x\": {}}"))
        for field, value in (("dtype", 3), ("shape", 4), ("shape", [-4, -2]), ("shape", [4.0, 2]),
                             ("shape", [2**62, 4]), ("data_offsets", [0]), ("data_offsets", [0, 8]),
                             ("data_offsets", [32, 0]), ("data_offsets", ["0", "32"]),
                             ("data_offsets", [-32, 0]), ("data_offsets", [0, 2**70])):
            refused("h.safetensors", raw_file({"x": {**x, field: value}}, data))
        refused("and no more", raw_file({"x": {**x, "more": 1}}, data))
        refused("dtype", raw_file({"x": 3}, data))
        refused("__metadata__", raw_file({"__metadata__": {"a": 1}, "x": x}, data))
        refused("beyond the file", raw_file({"x": x}, data[:-1]))
        refused("64 bytes of data|end at 32", raw_file({"x": x}, data * 2))
        late = {**x, "data_offsets": [32, 64]}
        refused("hole or overlap", raw_file({"x": late}, data * 2))
        refused("hole or overlap", raw_file({"x": x, "y": x}, data))
        refused("known type", raw_file({"x": {**x, "dtype": "NEW"}}, data))
        refused("do not span", raw_file({"x": {**x, "shape": [4, 3]}}, data))
        whole = raw_file({"x": x}, data)
        for size in range(len(whole)):
            refused("h.safetensors", whole[:size])

    def test_every_byte_of_a_header(self):
        """Whatever one byte becomes: a result or one refused line, never a crash."""
        whole = bytearray(raw_file({"x": {"dtype": "F32", "shape": [4, 2],
                                          "data_offsets": [0, 32]}}, bytes(32)))
        for at in range(len(whole) - 32):
            for value in (0, 0x22, 0x7D, whole[at] ^ 1):
                changed = whole.copy()
                changed[at] = value
                path = self.write("h", changed)
                done = self.run_permute("--to", "adjacent", "--heads", 1, "--rotary", 4,
                                        "--tensor", "x", path, self.path("out"))
                self.assertIn(done.returncode, (OK, REFUSED), (at, value, done.stderr))


class PermuteStream(Case):
    WORDS = ("--to", "adjacent", "--heads", 4, "--rotary", 128, "--tensor", "q*")

    def sparse(self, megabytes):
        """A file of mostly holes: q0 and q1 with ordinary rows at their ends."""
        rows, columns = 512, megabytes * 2**20 // 2 // 512 // 2
        size = rows * columns * 2
        header = {f"q{n}": {"dtype": "F16", "shape": [rows, columns],
                            "data_offsets": [n * size, (n + 1) * size]} for n in range(2)}
        path = self.write("big", raw_file(header))
        start = os.path.getsize(path)
        row = self.values((columns,), np.float16).tobytes()
        with open(path, "r+b") as file:
            file.truncate(start + 2 * size)
            file.seek(start + size + 65 * columns * 2)  # q1, head 0, second half
            file.write(row)
        return path, start + size, row

    @unittest.skipIf(EMULATOR or os.environ.get("POSENC_SANITIZE"),
                     "an emulator or a sanitizer needs memory of its own")
    def test_file_larger_than_memory(self):
        path, q1, row = self.sparse(192)
        limit = 96 * 2**20

        def less_memory():
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        self.assertGreater(os.path.getsize(path), limit)
        self.good(*self.WORDS, path, self.path("out"), preexec_fn=less_memory)
        with open(self.path("out"), "rb") as file:
            file.seek(q1 + 3 * len(row))  # pair 1, its second row
            self.assertEqual(file.read(len(row)), row)
            self.assertEqual(file.read(len(row)), bytes(len(row)))
        self.assertEqual(os.path.getsize(self.path("out")), os.path.getsize(path))

    def test_interrupted(self):
        path, _, _ = self.sparse(256)
        old = self.write("out", b"as it was")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            run = subprocess.Popen([*COMMAND, "permute", *map(str, self.WORDS), path, old],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for _ in range(5000):
                beside = [n for n in os.listdir(self.folder) if n.startswith("out.")]
                if beside and os.path.getsize(self.path(beside[0])) > 2**20:
                    break
                time.sleep(0.001)
            else:
                self.fail("no unfinished file was seen")
            run.send_signal(number)
            self.assertIn(run.wait(60), (-number, 128 + number))
            self.assertEqual(sorted(os.listdir(self.folder)), ["big", "out"])
            self.assertEqual(self.read("out"), b"as it was")

    def test_full_disk(self):
        path, _, _ = self.sparse(16)

        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2**22, 2**22))
        self.bad(SYSTEM, "out|File too large", *self.WORDS, path, self.path("out"),
                 preexec_fn=small_files)

    def test_fifo_as_input(self):
        """Refused at once: nobody has to write to it first."""
        os.mkfifo(self.path("pipe"))
        self.bad(REFUSED, "pipe|is no regular file", *self.WORDS, self.path("pipe"),
                 self.path("out"))

    @unittest.skipIf(EMULATOR, "an emulator may not pass the terminal on")
    def test_progress(self):
        """On a terminal, and only after a second: a pipe as output holds the command up."""
        path, _, _ = self.sparse(16)
        fifo = self.path("pipe")
        os.mkfifo(fifo)
        leader, follower = pty.openpty()
        run = subprocess.Popen([*COMMAND, "permute", *map(str, self.WORDS), path, fifo],
                               stderr=follower, stdout=subprocess.DEVNULL)
        total = 0
        with open(fifo, "rb") as pipe:
            total += len(pipe.read(2**20))
            time.sleep(1.2)
            while part := pipe.read(2**20):
                total += len(part)
        self.assertEqual(run.wait(60), OK)
        os.close(follower)
        self.assertEqual(total, os.path.getsize(path))
        self.assertIn(b" of 16 MiB", os.read(leader, 100000))
        os.close(leader)

    @unittest.skipIf(EMULATOR, "an emulator may not pass the terminal on")
    def test_failure_after_progress(self):
        """What failed stands on a line of its own, not behind the progress."""
        path, _, _ = self.sparse(16)
        fifo = self.path("pipe")
        os.mkfifo(fifo)
        leader, follower = pty.openpty()
        run = subprocess.Popen([*COMMAND, "permute", *map(str, self.WORDS), path, fifo],
                               stderr=follower, stdout=subprocess.DEVNULL, restore_signals=False)
        with open(fifo, "rb") as pipe:
            pipe.read(2**20)
            time.sleep(1.2)
            pipe.read(2**20)
        self.assertEqual(run.wait(60), SYSTEM)
        os.close(follower)
        self.assertRegex(os.read(leader, 100000), rb" of 16 MiB *\r {60}\rposenc permute: ")
        os.close(leader)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
