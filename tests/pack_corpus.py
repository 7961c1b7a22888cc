#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Packs a fuzzer's corpus into one file for replay_corpus, smallest inputs first.

usage: pack_corpus.py FOLDER FILE
"""
import pathlib
import sys


def main():
    folder, target = map(pathlib.Path, sys.argv[1:])
    inputs = sorted({path.read_bytes() for path in folder.iterdir()}, key=lambda b: (len(b), b))
    target.write_bytes(b"".join(b"%d\n%s" % (len(data), data) for data in inputs))
    print(f"{len(inputs)} inputs, {target.stat().st_size} bytes")


main()
