#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes tests/data/rows_ggml_run.txt: rows as a ggml that was built elsewhere computes them.

    run_ggml.py FOLDER > data/rows_ggml_run.txt

FOLDER holds libggml-base.so.0 and libggml-cpu.so.0, for example from the wheel of pywhispercpp.
Heads of (1, 0) pairs are rotated: what comes out is cosine and sine. The plans are those of
make_rows.py, and one with four position axes.
"""
import ctypes as c
import os
import sys

import numpy as np

from make_rows import GGML, GGML_POSITIONS, show

F32, I32, NORMAL, MROPE = 0, 26, 0, 8
YARN_BETAS = (32.0, 1.0)


class InitParams(c.Structure):
    _fields_ = [("mem_size", c.c_size_t), ("mem_buffer", c.c_void_p), ("no_alloc", c.c_bool)]


def load(folder):
    base = c.CDLL(os.path.join(folder, "libggml-base.so.0"), mode=c.RTLD_GLOBAL)
    cpu = c.CDLL(os.path.join(folder, "libggml-cpu.so.0"), mode=c.RTLD_GLOBAL)
    pointer, integer, real = c.c_void_p, c.c_int, c.c_float
    for name, result, arguments in (
            ("ggml_version", c.c_char_p, []),
            ("ggml_init", pointer, [InitParams]),
            ("ggml_free", None, [pointer]),
            ("ggml_new_tensor_4d", pointer, [pointer, integer] + [c.c_int64] * 4),
            ("ggml_get_data", pointer, [pointer]),
            ("ggml_new_graph", pointer, [pointer]),
            ("ggml_build_forward_expand", None, [pointer, pointer]),
            ("ggml_rope_ext", pointer, [pointer] * 4 + [integer] * 3 + [real] * 6),
            ("ggml_rope_multi", pointer, [pointer] * 4 + [integer, c.POINTER(integer)]
             + [integer] * 2 + [real] * 6)):
        function = getattr(base, name)
        function.restype, function.argtypes = result, arguments
    cpu.ggml_graph_compute_with_ctx.argtypes = [pointer, pointer, integer]
    cpu.ggml_cpu_init()
    return base, cpu


def tensor(base, context, kind, values, shape):
    made = base.ggml_new_tensor_4d(context, kind, *shape)
    c.memmove(base.ggml_get_data(made), values.ctypes.data, values.nbytes)
    return made


def run(libraries, r, mode, positions, divisors, sections, numbers):
    """Cosines and sines [token][pair]; numbers: L0, base, scale, ext_factor, attn_factor, betas."""
    base, cpu = libraries
    tokens = len(positions[0])
    first = slice(0, None, 2) if mode == NORMAL else slice(0, r // 2)
    second = slice(1, None, 2) if mode == NORMAL else slice(r // 2, r)
    x = np.zeros((tokens, r), np.float32)
    x[:, first] = 1
    context = base.ggml_init(InitParams(1 << 24, None, False))
    ids = np.array(positions, np.int32).ravel()
    arguments = [context, tensor(base, context, F32, x, (r, 1, tokens, 1)),
                 tensor(base, context, I32, ids, (ids.size, 1, 1, 1)), None, r]
    if divisors:
        factors = np.array(divisors, np.float32)
        arguments[3] = tensor(base, context, F32, factors, (factors.size, 1, 1, 1))
    if sections:
        arguments.append((c.c_int * 4)(*sections))
    rope = base.ggml_rope_multi if sections else base.ggml_rope_ext
    out = rope(*arguments, mode, *numbers)
    graph = base.ggml_new_graph(context)
    base.ggml_build_forward_expand(graph, out)
    cpu.ggml_graph_compute_with_ctx(context, graph, 1)
    c.memmove(x.ctypes.data, base.ggml_get_data(out), x.nbytes)
    base.ggml_free(context)
    return x[:, first], x[:, second]


def main():
    libraries = load(sys.argv[1])
    print("# SPDX-License-Identifier: MIT")
    print("# Rows as ggml %s computed them on x86-64." % libraries[0].ggml_version().decode())
    for name, r, base, scaling, factor, length, _, divisors in GGML:
        numbers = (length, base, 1 / factor if scaling else 1.0, 1.0 if scaling == 3 else 0.0, 1.0)
        rows = run(libraries, r, NORMAL, [GGML_POSITIONS], divisors, None, numbers + YARN_BETAS)
        for n, position in enumerate(GGML_POSITIONS):
            for part, values in zip(("cos", "sin"), rows):
                show("%s %s.%d" % (name, part, position), values[n])
    axes = [[5, 100, 4095], [7, 90, 3], [1000, 2, 77], [0, 1, 2]]
    rows = run(libraries, 128, MROPE, axes, None, (16, 20, 20, 8),
               (0, 1e6, 1.0, 0.0, 1.0) + YARN_BETAS)
    for n in range(3):
        print("axes position.%d %s" % (n, " ".join(str(axis[n]) for axis in axes)))
        for part, values in zip(("cos", "sin"), rows):
            show("axes %s.%d" % (part, n), values[n])


if __name__ == "__main__":
    main()
