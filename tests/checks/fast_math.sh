#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Under fast-math the sources do not compile, and the message says why.
# usage: fast_math.sh CC SOURCE-FOLDER
set -euo pipefail
cc=$1 source=$2
compile() { "$cc" -std=c11 "$@" -I "$source/include" -I "$source/src" -fsyntax-only -x c \
    "$source/src/common.h" 2>&1; }

compile -O2 || { echo "common.h must compile without these flags"; exit 1; }
for flag in -ffast-math -Ofast -ffinite-math-only; do
    if message=$(compile $flag); then echo "compiles with $flag"; exit 1; fi
    grep -q 'promises exact bits' <<<"$message" || { echo "$flag: $message"; exit 1; }
done
# Every source file is under that rule.
for file in "$source"/src/*.c "$source"/src/arch/*/*.c; do
    if "$cc" -std=c11 -ffast-math -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c \
        -I "$source/include" -I "$source/src" -fsyntax-only "$file" 2>/dev/null; then
        echo "$file compiles with -ffast-math"
        exit 1
    fi
done
