#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Under fast-math the sources do not compile, and the message says why.
# usage: fast_math.sh CC SOURCE-FOLDER
set -euo pipefail
cc=$1 source=$2
foreign=()
compile() { "$cc" -std=c11 "$@" -I "$source/include" -I "$source/src" -fsyntax-only -x c \
    "$source/src/common.h" 2>&1; }

compile -O2 || { echo "common.h must compile without these flags"; exit 1; }
for flag in -ffast-math -Ofast -ffinite-math-only; do
    if message=$(compile $flag); then echo "compiles with $flag"; exit 1; fi
    grep -q 'promises exact bits' <<<"$message" || { echo "$flag: $message"; exit 1; }
done
# Every source file that computes results and compiles here is under that rule.
for file in "$source"/src/*.c "$source"/src/arch/*/*.c "$source"/src/contract/*.c; do
    flags=()
    case $file in
    */touch.c | */contract/famil*.c | */contract/gguf_arch.c | */contract/file.c) continue ;;
    */arch/avx*) flags=(-mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c) ;;
    esac
    syntax() { "$cc" -std=c11 -D_POSIX_C_SOURCE=200809L "${flags[@]}" "$@" -I "$source/include" \
        -I "$source/src" -fsyntax-only "$file" 2>&1; }
    syntax >/dev/null || { foreign+=("$file"); continue; }
    if message=$(syntax -ffast-math); then echo "$file compiles with -ffast-math"; exit 1; fi
    grep -q 'promises exact bits' <<<"$message" || { echo "$file: $message"; exit 1; }
done
# Only the folders of other architectures may be left out.
for file in "${foreign[@]}"; do
    case $file in
    */arch/avx* | */arch/neon/*) ;;
    *) echo "$file does not compile at all"; exit 1 ;;
    esac
done
