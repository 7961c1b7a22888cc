#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Slopes and query temperatures with 60 digits, rounded once: make_nearest.py > data/nearest.txt"""
import mpmath

mpmath.mp.dps = 60


def nearest(value, bits):
    return repr(float(mpmath.fadd(value, 0, prec=bits, rounding="n")))


def slopes(heads, bias):
    n = 1
    while 2 * n <= heads:
        n *= 2
    bias = mpmath.mpf(bias)
    for k in range(heads):
        yield -bias * (k + 1) / n if k < n else -bias / 2 * (2 * (k - n) + 1) / n


def temperature(factor, period, offset, positions):
    for p in positions:
        yield 1 + mpmath.mpf(factor) * mpmath.log(1 + (p + offset) // period)


print("# SPDX-License-Identifier: MIT\n# ALiBi slopes and query temperatures, nearest double and "
      "float: ../make_nearest.py.")
for heads, bias in ((1, 8.0), (2, 8.0), (3, 8.0), (4, 8.0), (6, 8.0), (7, 8.0), (8, 8.0), (12, 8.0),
                    (16, 8.0), (20, 8.0), (32, 8.0), (40, 8.0), (71, 8.0), (112, 8.0), (6, 16.0),
                    (12, 6.5), (24, 0.1), (20, 64.0), (20, 63.7), (5, 1e-17), (9, 5e-324),
                    (300, 8.0)):
    name = "slopes/%d-%r" % (heads, bias)
    print(name, "heads", heads, repr(bias))
    print(name, "slopes", *(nearest(mpmath.power(2, e), 53) for e in slopes(heads, bias)))
spread = [0, 1, 7, 8, 9, 8190, 8191, 8192, 16383, 16384, 65535, 131071, 262143, 1048575,
          2147483646, 2147483647] + [k * 104729 for k in range(1, 200)]
for number, (factor, period, offset) in enumerate((
        (0.1, 8192, 1), (0.1, 16384, 0), (0.1, 1, 0), (0.0, 8, 0), (1.0, 3, 2147483648),
        (7e-8, 1, 1), (1e-300, 1, 0), (2.0 ** 64, 2, 1), (0.3, 2 ** 62, 1), (12.5, 1, 7))):
    name = "temperature/%d" % number
    print(name, "parameters", repr(factor), period, offset)
    print(name, "positions", *spread)
    print(name, "scale", *(nearest(x, 24) for x in temperature(factor, period, offset, spread)))
