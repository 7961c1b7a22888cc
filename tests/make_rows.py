#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes tests/data/rows_*.txt: rows by mpmath (Debian: python3-mpmath) and by numpy's float32.

    make_rows.py exact > data/rows_exact.txt
    make_rows.py ggml > data/rows_ggml.txt
    make_rows.py vllm > data/rows_vllm.txt

"exact" has lines "N at POSITION FREQUENCY DECAY" (the logarithm's factor as z, centre, B) and "N
value COS SIN" with 25 digits; the others a plan's parameters and rows of it.
"""
import random
import sys

import mpmath as mp
import numpy as np

mp.mp.prec = 400
F = np.float32


def exact():
    print("# Rows of doubles: cosine and sine of position x frequency, then with a decay of xPos.")
    draw = random.Random(7)
    positions = [0.0, 1.0, -1.0, 0.5, -0.25, 1e-9, 3.75, 2047.0, 131071.0, 1e6 + 0.1,
                 2.0 ** 31 - 0.5, -(2.0 ** 31), 2.0 ** 31 - 1, -123456.789]
    positions += [draw.uniform(-1, 1) * 2.0 ** draw.randrange(-20, 31) for _ in range(26)]
    frequencies = [1.0, 1e-4, 0.7498942093324559, 3.068925989e-7, 2.0 ** -60, 6.5, 1e3]
    frequencies += [10.0 ** -draw.uniform(0, 7) for _ in range(9)]
    number = 0
    for position in positions:
        for frequency in frequencies:
            angle = mp.mpf(position) * mp.mpf(frequency)
            print("%d at %.17g %.17g" % (number, position, frequency))
            values = mp.nstr(mp.cos(angle), 25), mp.nstr(mp.sin(angle), 25)
            print("%d value %s %s" % ((number,) + values))
            number += 1
    for center, scale_base in ((0, 512), (1000, 512), (-3, 64)):
        for position in (0.0, 1.0, 17.0, 512.0, -700.0, 2000.5, 30000.0):
            for r in (4, 64):
                for i in (0, 1, r // 2 - 1):
                    z = (mp.mpf(2 * i) + mp.mpf(2) / 5 * r) / (mp.mpf(7) / 5 * r)
                    decay = z ** ((mp.mpf(position) - center) / scale_base)
                    print("%d xpos %d %d %d %d %.17g %s" % (number, r, i, center, scale_base,
                                                           position, mp.nstr(decay, 25)))
                    number += 1


def rounded(value):
    """The float32 nearest to an mpmath number; a tie does not occur. Rounding the double would be
    a second rounding."""
    near = F(float(value))
    for other in (np.nextafter(near, F(-np.inf)), np.nextafter(near, F(np.inf))):
        if abs(mp.mpf(float(other)) - value) < abs(mp.mpf(float(near)) - value):
            near = other
    return near


def cos_sin(angle):
    return rounded(mp.cos(mp.mpf(float(angle)))), rounded(mp.sin(mp.mpf(float(angle))))


def log(x):
    return rounded(mp.log(mp.mpf(float(x))))


def power(x, y):
    return rounded(mp.mpf(float(x)) ** mp.mpf(float(y)))


def show(name, values):
    print(name, " ".join("%.9g" % v for v in values))


GGML = [  # name, rotary_dim, base, scaling, factor, L0, attention factor, divisors
    ("plain", 64, 10000.0, 0, 0.0, 0, 1.0, None),
    ("wide", 128, 1e6, 0, 0.0, 0, 1.0, None),
    ("linear", 32, 10000.0, 1, 4.0, 0, 1.0, None),
    ("divisors", 16, 500000.0, 0, 0.0, 0, 1.0, [1, 1, 1.5, 2, 3.25, 8, 8, 8]),
    ("yarn", 128, 1e6, 3, 4.0, 32768, 1.138629436111989, None),
    ("yarn-oss", 64, 150000.0, 3, 32.0, 4096, 1.3465735902799727, None),
    # The range's lower end is 26.999998 in float32 and 27.0000002 in double.
    ("yarn-edge", 64, 10000.0, 3, 4.0, 476793, 1.138629436111989, None),
    ("yarn-empty", 32, 10000.0, 3, 2.0, 5, 1.0693147180559945, None),
]
GGML_POSITIONS = [0, 1, -3, 100, 4095, 131071, 1048575]


def ggml():
    print("# Rows by ggml's operations in numpy float32, its functions correctly rounded.")
    for name, r, base, scaling, factor, length, attention, divisors in GGML:
        print(name, "plan", r, base, scaling, factor, length, repr(attention))
        if divisors:
            show(name + " divisors", divisors)
        theta_scale = power(F(base), F(-2.0) / F(r))
        freq_scale = F(1) / F(factor) if scaling else F(1)
        if scaling == 3:
            def dim(turns):
                ratio = F(length) / (F(turns) * F(2) * F(np.pi))
                return F(r) * log(ratio) / (F(2) * log(F(base)))
            low = max(F(0), np.floor(dim(32)))
            high = min(F(r - 1), np.ceil(dim(1)))
        for position in GGML_POSITIONS:
            theta, cosines, sines = F(position), [], []
            for i in range(r // 2):
                angle = theta / F(divisors[i] if divisors else 1)
                inter = freq_scale * angle
                if scaling == 3:
                    y = (F(i) - low) / max(F(0.001), high - low)
                    ramp = F(1) - min(F(1), max(F(0), y))
                    inter = inter * (F(1) - ramp) + angle * ramp
                c, s = cos_sin(inter)
                cosines.append(c * F(attention))
                sines.append(s * F(attention))
                theta = theta * theta_scale
            show("%s cos.%d" % (name, position), cosines)
            show("%s sin.%d" % (name, position), sines)


VLLM = [  # name, rotary_dim, base, factors of LINEAR
    ("plain", 64, 10000.0, None),
    ("linear", 32, 10000.0, [3.0]),
    ("several", 64, 500000.0, [1.0, 4.0, 6.5]),
]
VLLM_POSITIONS = [0, 1, 100, 4095, 131071]


def vllm():
    print("# Rows by vLLM's operations in numpy float32, its functions correctly rounded.")
    for name, r, base, factors in VLLM:
        print(name, "plan", r, base)
        if factors:
            show(name + " factors", factors)
        inv_freq = [F(1) / power(F(base), F(2 * i) / F(r)) for i in range(r // 2)]
        for n, factor in enumerate(factors or [1.0]):
            for position in VLLM_POSITIONS:
                t = F(position) / F(factor)
                pairs = [cos_sin(t * w) for w in inv_freq]
                show("%s cos.%d.%d" % (name, n, position), [c for c, s in pairs])
                show("%s sin.%d.%d" % (name, n, position), [s for c, s in pairs])


if __name__ == "__main__":
    print("# SPDX-License-Identifier: MIT")
    {"exact": exact, "ggml": ggml, "vllm": vllm}[sys.argv[1]]()
