#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command posenc from outside: plot, as text and as SVG.

usage: test_tools_plot.py POSENC DATA-FOLDER GROUP...
"""
import os
import re
import resource
import sys
import unittest
import xml.etree.ElementTree as ET

import mpmath

from test_tools import Case, OK, REFUSED, SYSTEM, USAGE
from test_tools_bias import alibi, buckets
from test_tools_models import config, frequencies
from test_tools_other import sinusoid

SVG = "{http://www.w3.org/2000/svg}"
TURN = 2 * mpmath.pi


def character(value):
    return "+" if value > 0.3 else "-" if value < -0.3 else "."


def rotation_rows(width, count, base=10000):
    """Cosines of all pairs, then sines, by mpmath."""
    mpmath.mp.prec = 120
    waves = [mpmath.mpf(base) ** (-mpmath.mpf(2 * i) / width) for i in range(width // 2)]
    return [[mpmath.cos(p * w) for w in waves] + [mpmath.sin(p * w) for w in waves]
            for p in range(count)]


class Picture(Case):
    def text(self, *words):
        lines = self.good("plot", *words).stdout.decode("ascii").splitlines()
        self.assertLessEqual(max(map(len, lines)), 80)
        return lines

    def svg(self, *words):
        """The picture as a tree, once it is known to be safe and to suit light and dark."""
        path = self.path("picture.svg")
        self.good("plot", *words, "-o", path)
        with open(path, encoding="ascii") as file:
            source = file.read()
        for scheme in ("light", "dark"):
            self.assertIn(f"@media (prefers-color-scheme:{scheme})", source)
        self.assertIn("currentColor", source)
        self.assertNotRegex(source, "<script|@import|@font-face|url\\(|href|#fff")
        return ET.fromstring(source)

    def group(self, tree, name):
        found = [g for g in tree.iter(SVG + "g") if g.get("class") == name]
        self.assertEqual(len(found), 1, name)
        return found[0]

    def words(self, element):
        return [t.text for t in element.iter(SVG + "text")]

    def label(self, axis):
        found = [t.text for t in axis.iter(SVG + "text") if t.get("class") == "label"]
        self.assertEqual(len(found), 1)
        return found[0]

    def ticks(self, axis):
        return [float(t.text) for t in axis.iter(SVG + "text") if t.get("class") == "tick"]

    def check_frame(self, tree, x, y, size):
        self.assertEqual((tree.get("width"), tree.get("height")), size)
        self.assertEqual(self.label(self.group(tree, "axis x")), x)
        self.assertEqual(self.label(self.group(tree, "axis y")), y)
        for name in ("title", "desc"):
            self.assertTrue(tree.find(SVG + name).text)

    def cells(self, tree):
        """Levels -20..20 of a heat map: [row][column], 0 where nothing is drawn."""
        levels = {}
        for path in self.group(tree, "marks"):
            level = round(20 * float(path.get("fill-opacity")))
            runs = re.findall(r"M(\d+) (\d+)h(\d+)v1h-(\d+)z", path.get("d"))
            self.assertEqual("".join("M%s %sh%sv1h-%sz" % r for r in runs), path.get("d"))
            for column, row, length, back in runs:
                self.assertEqual(length, back)
                for c in range(int(column), int(column) + int(length)):
                    self.assertNotIn((int(row), c), levels)
                    levels[int(row), c] = level if path.get("class") == "plus" else -level
        return levels


def check_levels(case, tree, rows, most=1):
    levels = case.cells(tree)
    for r, row in enumerate(rows):
        for c, value in enumerate(row):
            case.assertLess(abs(levels.pop((r, c), 0) / 20 - float(value) / most), 0.0251)
    case.assertEqual(levels, {})


class Heatmap(Picture):
    def test_rotation_text(self):
        want = ["".join(map(character, row)) for row in rotation_rows(8, 20)]
        self.assertEqual(self.text("heatmap", "--rope", 8), want)
        # enough values for some to lie close to both thresholds
        want = ["".join(map(character, row)) for row in rotation_rows(16, 400)]
        self.assertEqual(self.text("heatmap", "--rope", 16, "--count", 400), want)

    def test_sinusoid_text(self):
        """The lesson's map: 20 positions by 16 channels, the threshold 0.3."""
        mpmath.mp.prec = 120
        want = []
        for p in range(20):
            angles = [p / mpmath.mpf(10000) ** (mpmath.mpf(i) / 8) for i in range(8)]
            want.append("".join(character(mpmath.sin(a)) + character(mpmath.cos(a))
                                for a in angles))
        self.assertEqual(self.text("heatmap", "--sinusoid", 16), want)
        self.assertEqual(self.text("heatmap", "--sinusoid", 16, "--count", 20, "--width", 16),
                         want)
        self.assertEqual(want[:3], [".+.+.+.+.+.+.+.+", "++++.+.+.+.+.+.+", "+-++.+.+.+.+.+.+"])

    def test_sinusoid_svg(self):
        tree = self.svg("heatmap", "--sinusoid", "16,form=halves", "--count", 20)
        self.check_frame(tree, "channel", "position", ("720", "440"))
        check_levels(self, tree, sinusoid(16, range(20), "halves"))

    def test_alibi(self):
        want = alibi(8, 20, 20, 0)
        for head in (0, 2):
            self.assertEqual(self.text("heatmap", "--alibi", 8, "--head", head),
                             ["".join(map(character, row)) for row in want[head]])
        tree = self.svg("heatmap", "--alibi", 8, "--count", 10)
        self.check_frame(tree, "key", "query", ("560", "520"))
        check_levels(self, tree, alibi(8, 10, 10, 0)[0], 4.5)
        self.assertEqual(self.words(self.group(tree, "legend")), ["bias", "0", "-4.5"])

    def test_t5(self):
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"
        want = buckets(20, 20, 0, 32, 128)
        self.assertEqual(self.text("heatmap", "--t5", "32,128"),
                         ["".join(digits[b] for b in row) for row in want])
        tree = self.svg("heatmap", config("t5-small"), "--part", "decoder", "--count", 40)
        want = buckets(40, 40, 0, 32, 128, True)
        check_levels(self, tree, want, want.max())

    def test_text_width(self):
        rows = rotation_rows(128, 3)
        want = ["".join(map(character, row[::2])) for row in rows]
        self.assertEqual(self.text("heatmap", "--rope", 128, "--count", 3), want)
        want = ["".join(map(character, row[::8])) for row in rows]
        self.assertEqual(self.text("heatmap", "--rope", 128, "--count", 3, "--width", 16), want)

    def test_start(self):
        want = ["".join(map(character, row)) for row in rotation_rows(8, 9)[7:]]
        self.assertEqual(self.text("heatmap", "--rope", 8, "--start", 7, "--count", 2), want)
        far = self.svg("heatmap", "--rope", 8, "--start", 2147483600, "--count", 40)
        self.assertEqual(self.words(self.group(far, "axis y")),
                         [str(2147483600 + 5 * i) for i in range(8)] + ["position"])

    def test_rotation_svg(self):
        tree = self.svg("heatmap", "--rope", 8, "--count", 30)
        self.check_frame(tree, "channel of the row: cosines, then sines", "position",
                         ("720", "440"))
        check_levels(self, tree, rotation_rows(8, 30))
        self.assertEqual(self.ticks(self.group(tree, "axis x")), list(range(8)))
        self.assertEqual(self.ticks(self.group(tree, "axis y")), [0, 5, 10, 15, 20, 25])
        legend = self.group(tree, "legend")
        self.assertEqual(self.words(legend), ["value", "1", "0", "-1"])
        self.assertEqual(len(legend.findall(SVG + "rect")), 41)

    def test_model(self):
        tree = self.svg("heatmap", config("llama-3.1-8b"), "--count", 4, "--width", 400,
                        "--height", 300)
        self.check_frame(tree, "channel of the row: cosines, then sines", "position",
                         ("400", "300"))
        waves = frequencies("llama-3.1-8b")
        check_levels(self, tree, [[mpmath.cos(p * w) for w in waves] +
                                  [mpmath.sin(p * w) for w in waves] for p in range(4)])


class Bands(Picture):
    def test_text(self):
        lines = self.text("bands", "--rope", 16, "--trained", 2048)
        self.assertEqual(lines[0], "wavelengths in tokens, 1 to 100000 on a log scale")
        bars = [line[21:] for line in lines if re.match(r" +\d+ +\d", line)]
        self.assertEqual(len(bars), 8)
        scale = 58 / mpmath.log(100000)
        for i, bar in enumerate(bars):
            wave = TURN * mpmath.mpf(10000) ** (mpmath.mpf(i) / 8)
            end = int(mpmath.floor(mpmath.log(wave) * scale + 0.5))
            mark = "+" if wave <= 2048 else "-"
            whole = [mark] * (end + 1) + [" "] * (59 - end - 1)
            whole[int(mpmath.floor(mpmath.log(2048) * scale + 0.5))] = "|"
            self.assertEqual(bar, "".join(whole).rstrip())

    def test_model_text(self):
        lines = self.text("bands", config("llama-3.1-8b"))
        self.assertIn("| trained: 8192; + completes a turn in it, - does not", lines)
        self.assertIn(": declared: 131072", lines)
        self.assertEqual(sum(line[21:22] in "+-" and line[:6].strip().isdigit()
                             for line in lines), 64)

    def test_svg(self):
        tree = self.svg("bands", config("llama-3.1-8b"))
        self.check_frame(tree, "pair", "wavelength in tokens", ("720", "440"))
        marks = [c.get("class") for c in self.group(tree, "marks")]
        self.assertEqual(marks.count("open rule unscaled"), 64)
        self.assertEqual(marks.count("minus turns") + marks.count("plus turns"), 64)
        complete = sum(8192 * w >= TURN for w in frequencies("llama-3.1-8b"))
        self.assertEqual(marks.count("minus turns"), complete)
        limits = [p for p in tree.iter(SVG + "path") if "limit" in p.get("class")]
        self.assertEqual(len(limits), 2)
        for text in ("declared limit: 131072", "trained length: 8192"):
            self.assertIn(text, self.words(tree))
        self.assertEqual(self.words(self.group(tree, "legend")),
                         ["completes a turn in training", "does not", "before scaling"])
        self.assertEqual(self.ticks(self.group(tree, "axis y")), [10.0**k for k in range(9)])

    def test_places(self):
        tree = self.svg("bands", "--rope", 8)
        low, high = 1, 10000
        for i, mark in enumerate(self.group(tree, "marks")):
            wave = TURN * mpmath.mpf(10) ** i
            y = 66 + (440 - 66 - 56) * (1 - mpmath.log(wave / low) / mpmath.log(high / low))
            self.assertLess(abs(float(mark.get("cy")) - y), 0.006)

    def test_sinusoid(self):
        tree = self.svg("bands", config("m2m100-418m"))
        self.assertEqual(len(self.group(tree, "marks")), 512)
        self.assertIn("trained and declared length: 1024", self.words(tree))
        lines = self.text("bands", "--sinusoid", 8)[-4:]
        self.assertEqual([line.split()[1] for line in lines], ["6.2832", "62.832", "628.32",
                                                               "6283.2"])

    def test_endless_wavelength(self):
        """A frequency so small that a turn takes more tokens than a double holds."""
        scheme = ("--sinusoid", "4,form=ggml,base=1e22,shift=1.93")
        lines = self.text("bands", *scheme)
        self.assertEqual(lines[0], "wavelengths in tokens, 1 to 10 on a log scale")
        self.assertEqual([line.split()[1] for line in lines[-2:]], ["6.2832", "-"])
        tree = self.svg("bands", *scheme)
        self.assertEqual(len(self.group(tree, "marks")), 1)
        self.assertEqual(self.ticks(self.group(tree, "axis y")), [1, 10])

    def test_refusals(self):
        self.bad(USAGE, "--count", "plot", "bands", "--rope", 8, "--count", 4)


class Similarity(Picture):
    def test_text(self):
        lines = self.text("similarity", "--rope", 32, "--count", 12)[3:]
        self.assertEqual(len(lines), 12)
        for k, line in enumerate(lines):
            row = rotation_rows(32, k + 1)[k]
            value = sum(row[:16]) / 16
            at = int(mpmath.floor((value + 1) * 29.5 + 0.5))
            self.assertAlmostEqual(float(line[9:19]), value, 5)
            self.assertEqual((line[:8].strip(), line[20 + at:]),
                             (str(k), ("+" if value >= 0 else "-") + line[21 + at:]))

    def test_svg(self):
        tree = self.svg("similarity", "--rope", 16, "--count", 9)
        self.check_frame(tree, "distance in tokens", "share of distance 0", ("720", "400"))
        curves = self.group(tree, "marks").findall(SVG + "path")
        self.assertEqual(len(curves), 2)
        points = [re.findall(r"[ML]([-\d.]+) ([-\d.]+)", c.get("d")) for c in curves]
        self.assertEqual([len(p) for p in points], [9, 9])
        first = rotation_rows(16, 9)
        for k, (x, y) in enumerate(points[0]):
            value = sum(first[k][:8]) / 8
            self.assertLess(abs(float(x) - (80 + 616 * k / 8)), 0.006)
            self.assertLess(abs(float(y) - (66 + 278 * (1 - value) / 2)), 0.006)
        for k, (x, y) in enumerate(points[1]):
            partial, total = mpmath.mpc(0), mpmath.mpf(0)
            for i in range(8):
                partial += mpmath.mpc(first[k][i], first[k][8 + i])
                total += abs(partial)
            self.assertLess(abs(float(y) - (66 + 278 * (1 - total / 36) / 2)), 0.006)
        self.assertEqual(self.words(self.group(tree, "legend")),
                         ["equal vectors", "relative bound (Su et al. 2021)"])


    def test_sinusoid(self):
        """The product of two rows is the sum of cosines, the squared norm half the width."""
        lines = self.text("similarity", "--sinusoid", 16, "--count", 12)[3:]
        for k, line in enumerate(lines):
            value = sum(mpmath.cos(k * mpmath.mpf(10000) ** (-mpmath.mpf(i) / 8))
                        for i in range(8)) / 8
            self.assertAlmostEqual(float(line[9:19]), value, 5)

    def test_biases(self):
        lines = self.text("similarity", "--alibi", 8, "--count", 6)[3:]
        self.assertEqual([float(line[9:19]) for line in lines], [-0.5 * k for k in range(6)])
        self.assertEqual(lines[0][9:19].strip(), "0.00000")
        tree = self.svg("similarity", "--alibi", 8, "--count", 6)
        self.check_frame(tree, "distance in tokens", "bias", ("720", "400"))
        self.assertEqual(self.words(self.group(tree, "legend")), [f"head {k}" for k in range(8)])
        self.assertEqual(len(self.group(tree, "marks")), 8)
        tree = self.svg("similarity", "--alibi", 112, "--width", 320)
        for text in self.group(tree, "legend").iter(SVG + "text"):
            self.assertLess(float(text.get("x")) + 6.4 * len(text.text), 320)
        lines = self.text("similarity", "--t5", "32,128", "--count", 40)[3:]
        self.assertEqual([float(line[9:19]) for line in lines],
                         [buckets(1, 40, 39, 32, 128)[0][39 - k] for k in range(40)])
        tree = self.svg("similarity", "--t5", "32,128")
        self.assertEqual(self.words(self.group(tree, "legend")), ["earlier keys", "later keys"])


class Plot(Case):
    def test_usage(self):
        self.bad(USAGE, "needs heatmap, bands or similarity", "plot")
        self.bad(USAGE, "got pie", "plot", "pie", "--rope", 8)
        self.bad(USAGE, "needs one MODEL", "plot", "heatmap")
        self.bad(USAGE, "one operand too many", "plot", "heatmap", "--rope", 8, "x")
        self.bad(USAGE, "exclude each other", "plot", "heatmap", "--rope", 8, "--sinusoid", 8)
        self.bad(USAGE, "--format is png", "plot", "heatmap", "--rope", 8, "--format", "png")
        self.bad(USAGE, "--width is 0", "plot", "heatmap", "--rope", 8, "--width", 0)
        self.bad(USAGE, "320 to 10000", "plot", "heatmap", "--rope", 8, "--width", 9,
                 "--format", "svg")
        self.bad(USAGE, "--height needs", "plot", "heatmap", "--rope", 8, "--height", 300)
        self.bad(USAGE, "40 characters", "plot", "bands", "--rope", 8, "--width", 20)
        self.bad(USAGE, "need --model", "plot", "heatmap", "--sinusoid", 8, "--layer", 1)
        self.bad(USAGE, "--start is for a heatmap", "plot", "similarity", "--rope", 8,
                 "--start", 1)

    def test_refused(self):
        out = ["-o", self.path("x.svg")]
        self.bad(REFUSED, "neither rotation", "plot", "bands", config("bloom-176b"), *out)
        self.bad(REFUSED, "neither rotation", "plot", "heatmap", config("gpt2"), *out)
        self.bad(REFUSED, ["global", "local"], "plot", "heatmap", config("gemma3-12b"), *out)
        self.bad(REFUSED, "is not rotated", "plot", "heatmap", config("llama4-scout"),
                 "--layer", 3, *out)
        self.bad(REFUSED, "more than", "plot", "heatmap", "--rope", 512, "--count", 65536, *out)
        self.bad(SYSTEM, "none.json", "plot", "heatmap", self.path("none.json"), *out)
        self.bad(SYSTEM, "none/x.svg", "plot", "heatmap", "--rope", 8, "-o",
                 self.path("none/x.svg"))

    @unittest.skipIf(os.environ.get("POSENC_EMULATOR") or os.environ.get("POSENC_SANITIZE"),
                     "an emulator or a sanitizer needs memory of its own")
    def test_memory_ends(self):
        """A picture, or rows as text, that memory has no room for: nothing, and never a part."""
        for words in (("plot", "heatmap", "--sinusoid", 64, "--count", 8192, "--format", "svg"),
                      ("plot", "heatmap", "--sinusoid", 1024, "--count", 4096, "--width", 1024),
                      ("rows", "--sinusoid", 512, "--count", 512, "--format", "csv")):
            whole = self.good(*words).stdout
            for limit in range(6, 28, 2):
                done = self.run_posenc(*words, preexec_fn=lambda: resource.setrlimit(
                    resource.RLIMIT_AS, (limit << 20, limit << 20)))
                if done.returncode == OK:
                    self.assertTrue(done.stdout == whole, (words, limit))
                elif done.returncode != 127:  # 127: the program itself does not fit
                    self.assertEqual(done.returncode, SYSTEM, (words, limit, done.stderr))
                    if words[0] == "plot":
                        self.assertEqual(done.stdout, b"")

    def test_formats_by_name(self):
        path = self.path("x.svg")
        self.good("plot", "heatmap", "--rope", 8, "-o", path, "--format", "text")
        plain = self.good("plot", "heatmap", "--rope", 8)
        with open(path, "rb") as file:
            self.assertEqual(file.read(), plain.stdout)
        self.assertEqual(plain.stderr, b"")
        again = self.good("plot", "heatmap", "--rope", 8, "--format", "svg").stdout
        self.good("plot", "heatmap", "--rope", 8, "-o", path)
        with open(path, "rb") as file:
            self.assertEqual(file.read(), again)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
