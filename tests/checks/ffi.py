#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The headers parse in cffi after the preprocessor; it lays out every struct as the compiler does.

usage: ffi.py CC INCLUDE SHARED-LIBRARY...
"""
import os
import re
import subprocess
import sys
import tempfile

import cffi


def preprocessed(cc, include):
    """The declarations of our headers alone, as text that cffi accepts."""
    source = "#include <posenc/contract.h>\n"
    text = subprocess.run([cc, "-E", "-I", include, "-"], input=source, capture_output=True,
                          text=True, check=True).stdout
    lines, ours = [], False
    for line in text.splitlines():
        if line.startswith("#"):
            ours = os.path.dirname(line.split('"')[1]).endswith("/posenc") if '"' in line else ours
        elif ours:
            lines.append(line)
    return "\n".join(lines)


def layouts(ffi):
    """Facts as C prints them: sizeof of each struct, offsetof of each field."""
    facts = {}
    for name in ffi.list_types()[0]:
        kind = ffi.typeof(name)
        if kind.kind != "struct" or kind.fields is None:
            continue
        facts[f"sizeof({name})"] = ffi.sizeof(name)
        for field, _ in kind.fields:
            facts[f"offsetof({name}, {field})"] = ffi.offsetof(name, field)
    return facts


def compiled(cc, include, expressions):
    prints = "".join(f'printf("%zu\\n", (size_t)({e}));\n' for e in expressions)
    source = ("#include <posenc/contract.h>\n#include <stddef.h>\n#include <stdio.h>\n"
              "int main(void) {\n" + prints + "return 0; }\n")
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/layout"
        subprocess.run([cc, "-I", include, "-x", "c", "-", "-o", program], input=source, text=True,
                       check=True)
        output = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return dict(zip(expressions, map(int, output.split())))


def main():
    cc, include, *libraries = sys.argv[1:]
    text = preprocessed(cc, include)
    ffi = cffi.FFI()
    ffi.cdef(text)
    mine = layouts(ffi)
    assert len(mine) > 40, f"only {len(mine)} facts about structs"
    theirs = compiled(cc, include, list(mine))
    wrong = [f"{e}: cffi {mine[e]}, compiler {theirs[e]}" for e in mine if mine[e] != theirs[e]]
    assert not wrong, "\n".join(wrong)

    # Every declared function is found in the libraries through its declared type.
    handles = [ffi.dlopen(library) for library in libraries]
    functions = set(re.findall(r"\b(posenc_[a-z0-9_]+)\s*\(", text))
    for name in sorted(functions):
        assert any(hasattr(handle, name) for handle in handles), f"{name} is in no library"

    core = handles[0]
    error = ffi.new("posenc_error *")
    plan = ffi.new("posenc_plan **")
    status = core.posenc_plan_create_simple(plan, 2, 4, 10000.0, error)
    assert status == 0, ffi.string(error.text)
    q = ffi.new("float[4]", [1, 0, 1, 0])
    assert core.posenc_rope_flat(plan[0], q, ffi.NULL, 1, 1, 1, 1, 0, 5, error) == 0
    # Pairs (0, 2) = (1, 1) at angle 5 and (1, 3) = (0, 0): cos 5 - sin 5 and cos 5 + sin 5.
    assert abs(q[0] - 1.2425864601263648) < 1e-6 and abs(q[2] + 0.6752620891999122) < 1e-6, list(q)
    assert core.posenc_rope_flat(plan[0], q, ffi.NULL, 9, 1, 1, 1, 0, 5, error) != 0
    assert b"dtype" in ffi.string(error.text)
    core.posenc_plan_free(plan[0])


main()
