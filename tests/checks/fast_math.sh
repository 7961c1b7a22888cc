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
# Every source file that computes results and compiles here is under that rule.
refused() {
    local file=$1 message
    shift
    if message=$("$cc" -std=c11 -D_POSIX_C_SOURCE=200809L "$@" -ffast-math -Wfatal-errors \
        -I "$source/include" -I "$source/src" -fsyntax-only "$file" 2>&1); then
        echo "$file compiles with -ffast-math"
        return 1
    fi
    grep -q 'promises exact bits' <<<"$message" || { echo "$file: $message"; return 1; }
}
case $("$cc" -dumpmachine) in
x86_64*) foreign=neon ;;
aarch64*) foreign=avx ;;
*) foreign='[an]' ;;
esac
for file in "$source"/src/*.c "$source"/src/arch/*/*.c "$source"/src/contract/*.c; do
    flags=()
    case $file in
    */arch/$foreign*) continue ;;
    */touch.c | */contract/famil*.c | */contract/gguf_arch.c | */contract/file.c) continue ;;
    */arch/avx*) flags=(-mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c) ;;
    esac
    refused "$file" "${flags[@]}"
done
