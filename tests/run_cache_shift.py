#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes tests/data/cache_shift.txt: cached keys that ggml's rotation shifts as llama.cpp does it.

    run_cache_shift.py FOLDER > data/cache_shift.txt

FOLDER is as for run_ggml.py. llama.cpp shifts keys by the same operation, with the same arguments,
that rotated them: YaRN's attention factor comes in again each time, also where the shift is 0.
`unscaled` cases cancel the factor, so that nothing but the angle is left. Keys are made from
pattern x[i] = ((7 i) mod 11 - 5) / 4.
"""
import ctypes
import sys

import numpy as np

from make_rows import show
from run_ggml import F32, I32, InitParams, load, tensor

NORMAL, NEOX = 0, 2
POSITIONS, SHIFTS = (0, 7, 100, 1000), ((0, 0, 0, 0), (0, -3, -40, -900), (5, 0, -17, -64))


def rope(libraries, x, positions, mode, numbers):
    """x [token][channels], one head."""
    base, cpu = libraries
    context = base.ggml_init(InitParams(1 << 24, None, False))
    tokens, r = x.shape
    ids = np.array(positions, np.int32)
    out = base.ggml_rope_ext(context, tensor(base, context, F32, x, (r, 1, tokens, 1)),
                             tensor(base, context, I32, ids, (tokens, 1, 1, 1)), None, r, mode,
                             *numbers)
    graph = base.ggml_new_graph(context)
    base.ggml_build_forward_expand(graph, out)
    cpu.ggml_graph_compute_with_ctx(context, graph, 1)
    made = np.empty_like(x)
    ctypes.memmove(made.ctypes.data, base.ggml_get_data(out), made.nbytes)
    base.ggml_free(context)
    return made


def case(libraries, name, mode, r, theta, length, s, unscaled):
    factor = 1 / (1 + 0.1 * np.log(s)) if unscaled else 1.0
    yarn = (length, theta, 1 / s, 1.0 if s > 1 else 0.0, factor, 32.0, 1.0)
    x = ((7 * np.arange(len(POSITIONS) * r) % 11 - 5) / 4).astype(np.float32).reshape(-1, r)
    x = rope(libraries, x, POSITIONS, mode, yarn)
    print("%s shift %d %d %.17g %d %.17g %d" % (name, 1 + (mode == NEOX), r, theta, length, s,
                                                unscaled))
    for n, shift in enumerate(SHIFTS):
        if n == 0:
            show("%s stored" % name, x.ravel())
        x = rope(libraries, x, shift, mode, yarn)
        show("%s after.%d" % (name, n), x.ravel())


def main():
    libraries = load(sys.argv[1])
    print("# SPDX-License-Identifier: MIT")
    version = libraries[0].ggml_version().decode()
    print("# Shifted keys as ggml %s computed them on x86-64." % version)
    print("plan positions %s" % " ".join(map(str, POSITIONS)))
    for n, shift in enumerate(SHIFTS):
        print("plan shift.%d %s" % (n, " ".join(map(str, shift))))
    for unscaled in (0, 1):
        for mode, layout in ((NORMAL, "adjacent"), (NEOX, "split-half")):
            end = "%s%s" % (layout, "/unscaled" if unscaled else "")
            case(libraries, "qwen2.5/" + end, mode, 16, 1e6, 32768, 4.0, unscaled)
            case(libraries, "gpt-oss/" + end, mode, 16, 150000.0, 4096, 32.0, unscaled)
    case(libraries, "plain", NEOX, 16, 10000.0, 4096, 1.0, 0)


if __name__ == "__main__":
    main()
