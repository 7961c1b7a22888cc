#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The pictures of docs/ are what the commands beside them draw, byte for byte, and well-formed.

usage: pictures.py POSENC SOURCE-FOLDER

A page shows ![text](pictures/NAME.svg) and the command that makes it, a line of a fenced block:
posenc plot ... -o docs/pictures/NAME.svg
"""
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

COMMAND = re.compile(r"^posenc (plot .*) -o docs/pictures/(\S+\.svg)$", re.MULTILINE)
SHOWN = re.compile(r"!\[[^\]]+\]\(pictures/([^)]+)\)")

posenc, source = sys.argv[1:3]
docs = os.path.join(source, "docs")
problems = []
made = set()


def check(page, words, name, shown, folder):
    if name not in shown:
        problems.append(f"{page}: a command makes {name}, which the page does not show")
    out = os.path.join(folder, name)
    done = subprocess.run([posenc, *words.split(), "-o", out], cwd=source, capture_output=True)
    if done.returncode:
        problems.append(f"{page}: posenc {words}: {done.stderr.decode()}")
        return
    with open(out, "rb") as new:
        drawn = new.read()
    ET.fromstring(drawn)
    stored = os.path.join(docs, "pictures", name)
    if not os.path.exists(stored):
        problems.append(f"{page}: {name} is missing")
        return
    with open(stored, "rb") as old:
        if old.read() != drawn:
            problems.append(f"{page}: {name} is not what posenc {words} draws")


with tempfile.TemporaryDirectory() as folder:
    for page in sorted(name for name in os.listdir(docs) if name.endswith(".md")):
        with open(os.path.join(docs, page), encoding="utf-8") as file:
            text = file.read()
        shown = set(SHOWN.findall(text))
        here = {name: words for words, name in COMMAND.findall(text)}
        for name in sorted(shown - set(here)):
            problems.append(f"{page}: shows {name} without the command that makes it")
        for name, words in here.items():
            check(page, words, name, shown, folder)
        made |= set(here)
for name in sorted(set(os.listdir(os.path.join(docs, "pictures"))) - made):
    problems.append(f"docs/pictures/{name}: no page shows how it is made")
if not made:
    problems.append("no picture found")
print("\n".join(problems) or f"{len(made)} pictures are current")
sys.exit(bool(problems))
