#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each public header compiles alone, as strict C99, C11 and C++17, without a warning.
# usage: headers.sh CC CXX INCLUDE
set -euo pipefail
cc=$1 cxx=$2 include=$3
warnings=(-Wall -Wextra -Wpedantic -pedantic-errors -Werror -Wstrict-prototypes)
for header in "$include"/posenc/*.h; do
    name=posenc/$(basename "$header")
    for standard in c99 c11; do
        echo "#include <$name>" |
            "$cc" -std=$standard "${warnings[@]}" -I "$include" -x c -fsyntax-only - ||
            { echo "$name is not $standard"; exit 1; }
    done
    echo "#include <$name>" |
        "$cxx" -std=c++17 "${warnings[@]:0:5}" -Wold-style-cast -I "$include" \
            -x c++ -fsyntax-only - ||
        { echo "$name is not C++17"; exit 1; }
done
