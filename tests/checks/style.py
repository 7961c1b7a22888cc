#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The rules of the house that a program can measure: budgets, licence lines, place of intrinsics.

usage: style.py SOURCE-FOLDER
"""
import os
import re
import statistics
import sys

FILE_LINES, FILE_MEDIAN = 500, 150
FUNCTION_LINES, FUNCTION_MEDIAN = 60, 20
COLUMNS = 100
README_LINES = 150

INTRINSIC = re.compile(r"\b_mm(256|512)?_\w|\bv(ld|st)[1-4]q?_|\bfloat(32x4|64x2)_t|"
                       r"immintrin|arm_neon")
CONDITIONAL = re.compile(r"^\s*#\s*(if|elif)\b|^\s*#\s*ifn?def\b(?!\s+\w+_H$)")
# Files of src that may ask the preprocessor about the compiler or the target.
ASKS_THE_TARGET = ("src/common.h", "src/cpu.c", "src/dispatch.c", "src/fma.h", "src/kernels.h",
                   "src/kernels/", "src/arch/")
LINK = re.compile(r"\]\(([^)#:]+)\)")
MARKER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
MACHINE_PATH = re.compile(r"(?<![\w.}$])/(tmp|root|work|home)/")
LICENCE = "SPDX-License-Identifier: MIT"

problems = []


def complain(place, text):
    problems.append(f"{place}: {text}")


def files(top):
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(f for f in folders if f not in (".git", "build", "__pycache__"))
        for name in sorted(set(names) - {".git"}):
            yield os.path.relpath(os.path.join(folder, name), top)


def is_signature(line):
    return bool(line) and not line.endswith((";", "}", "*/")) and not line.startswith("#")


def functions(lines):
    """(first line, length) of each function: braces in column 0, its signature included."""
    start = None
    for number, line in enumerate(lines):
        if start is None and line.endswith("{") and not line[0].isspace() and (
                line == "{" or line.endswith(") {")):
            start = number
            while start > 0 and is_signature(lines[start - 1]):
                start -= 1
        elif start is not None and line == "}":
            yield start + 1, number - start + 1
            start = None
        elif line.startswith("}"):
            start = None


def check_text(path, lines):
    for number, line in enumerate(lines, 1):
        place = f"{path}:{number}"
        if line != line.rstrip():
            complain(place, "blanks at the end")
        if "\t" in line:
            complain(place, "a tab")
        if MARKER.search(line) and path != "tests/checks/style.py":
            complain(place, "a left-over marker")
        if MACHINE_PATH.search(line) and path != "tests/checks/style.py":
            complain(place, "a path of one machine")
        if (len(line) > COLUMNS and not path.endswith((".md", ".json", ".svg")) and
                path != "LICENSE"):
            complain(place, f"{len(line)} columns, at most {COLUMNS}")


def check_code(path, lines):
    library = path.startswith(("src/", "include/"))
    if not path.startswith("include/") and len(lines) > FILE_LINES:
        complain(path, f"{len(lines)} lines, at most {FILE_LINES}")
    for number, line in enumerate(lines, 1):
        place = f"{path}:{number}"
        if library and not path.startswith("src/arch/") and INTRINSIC.search(line):
            complain(place, "an intrinsic outside src/arch")
        if path.startswith("src/") and not path.startswith(ASKS_THE_TARGET) \
                and CONDITIONAL.search(line):
            complain(place, "a preprocessor condition outside the files that may ask the target")
    for number, length in functions(lines):
        if length > FUNCTION_LINES:
            complain(f"{path}:{number}", f"a function of {length} lines, at most {FUNCTION_LINES}")


def wants_licence(path):
    return path.endswith((".c", ".h", ".cc", ".cpp", ".py", ".sh", ".cmake", ".map", ".in")) or \
        path.endswith("CMakeLists.txt") or path.startswith(("scripts/", ".ci/", "bench/"))


def main():
    top = sys.argv[1]
    file_lengths, function_lengths = [], []
    for path in files(top):
        if path.startswith("tests/data/"):
            continue
        with open(os.path.join(top, path), encoding="utf-8") as file:
            text = file.read()
        lines = text.splitlines()
        if text and not text.endswith("\n"):
            complain(path, "no newline at the end")
        check_text(path, lines)
        if wants_licence(path) and LICENCE not in "\n".join(lines[:3]):
            complain(path, f"no {LICENCE} in the first three lines")
        if path.endswith(".md"):
            for link in LINK.findall(text):
                if not os.path.exists(os.path.join(top, os.path.dirname(path), link)):
                    complain(path, f"a link to {link}, which does not exist")
        if path == "README.md" and len(lines) > README_LINES:
            complain(path, f"{len(lines)} lines, at most {README_LINES}")
        if path.endswith((".c", ".h")):
            check_code(path, lines)
            if path.startswith(("src/", "tools/")):
                file_lengths.append(len(lines))
                function_lengths += [length for _, length in functions(lines)]
    for what, lengths, limit in (("file", file_lengths, FILE_MEDIAN),
                                 ("function", function_lengths, FUNCTION_MEDIAN)):
        if not lengths or statistics.median(lengths) > limit:
            complain("src, tools", f"the median {what} is longer than {limit} lines")
        else:
            print(f"{what}s: {len(lengths)}, median {statistics.median(lengths):g}, "
                  f"longest {max(lengths)} lines")
    print("\n".join(problems))
    sys.exit(bool(problems))


main()
