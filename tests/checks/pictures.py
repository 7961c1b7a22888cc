#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The pictures of docs/ are what the commands beside them draw, byte for byte, and well-formed.

usage: pictures.py POSENC SOURCE-FOLDER

A page shows ![text](pictures/NAME.svg) and the command that makes it, a line of a fenced block:
posenc plot ... -o docs/pictures/NAME.svg

A picture whose root has the class "posenc drawn" was drawn by hand. It needs no command, but must
be readable everywhere: text of 12 px at least that stays inside, nothing from outside, no script.
"""
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

COMMAND = re.compile(r"^posenc (plot .*) -o docs/pictures/(\S+\.svg)$", re.MULTILINE)
SHOWN = re.compile(r"!\[[^\]]+\]\(pictures/([^)]+)\)")

SVG = "{http://www.w3.org/2000/svg}"
PLAIN = {SVG + name for name in ("svg", "title", "desc", "style", "text", "rect", "path")}
FONT_SIZE = re.compile(r"\.(\w+)\{[^}]*font-size:(\d+)px")

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


def text_fits(text, sizes, width):
    """Whether a line stays inside, its letters 0.6 of their height wide as in monospace."""
    size = sizes.get(text.get("class"), sizes["posenc"])
    length = 0.6 * size * len(text.text)
    left = float(text.get("x")) - length * {"middle": 0.5, "end": 1}.get(text.get("text-anchor"), 0)
    return 0 <= left and left + length <= width


def check_drawn(name, root):
    style = root.findtext(SVG + "style") or ""
    sizes = {kind: int(size) for kind, size in FONT_SIZE.findall(style)}
    if not root.findtext(SVG + "title") or not root.findtext(SVG + "desc"):
        problems.append(f"{name}: has no title or no desc")
    if "url(" in style or "@import" in style or "currentColor" not in style:
        problems.append(f"{name}: its style reaches outside, or has no currentColor")
    if min(sizes.values(), default=0) < 12:
        problems.append(f"{name}: text smaller than 12 px")
    for element in root.iter():
        if element.tag not in PLAIN:
            problems.append(f"{name}: has <{element.tag.removeprefix(SVG)}>")
        elif element.tag == SVG + "text" and not text_fits(element, sizes, int(root.get("width"))):
            problems.append(f"{name}: '{element.text}' is wider than the picture")


def drawn(page, shown):
    """Those of the shown pictures that were drawn by hand."""
    found = set()
    for name in sorted(shown):
        path = os.path.join(docs, "pictures", name)
        root = ET.parse(path).getroot() if os.path.exists(path) else None
        if root is not None and root.get("class") == "posenc drawn":
            check_drawn(f"{page}: {name}", root)
            found.add(name)
    return found


with tempfile.TemporaryDirectory() as folder:
    for page in sorted(name for name in os.listdir(docs) if name.endswith(".md")):
        with open(os.path.join(docs, page), encoding="utf-8") as file:
            text = file.read()
        shown = set(SHOWN.findall(text))
        here = {name: words for words, name in COMMAND.findall(text)}
        by_hand = drawn(page, shown)
        for name in sorted(shown - set(here) - by_hand):
            problems.append(f"{page}: shows {name} without the command that makes it")
        for name, words in here.items():
            check(page, words, name, shown, folder)
        made |= set(here) | by_hand
for name in sorted(set(os.listdir(os.path.join(docs, "pictures"))) - made):
    problems.append(f"docs/pictures/{name}: no page shows how it is made")
if not made:
    problems.append("no picture found")
print("\n".join(problems) or f"{len(made)} pictures are current")
sys.exit(bool(problems))
