#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the libraries need from outside. The core: libc and libm, from libc only what the list below
# has, allocation only where plans and sinusoids are made. The reader: jansson too; it never prints
# nor exits.
# usage: imports.sh NM READELF CORE.so CORE.a CONTRACT.so
set -euo pipefail
nm=$1 readelf=$2 core=$3 core_static=$4 contract=$5
failed=0
complain() { echo "$*"; failed=1; }

needed() {
    "$readelf" -d "$1" | sed -n '/ld-linux/d; s/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | xargs
}

imports() {
    "$nm" -D --undefined-only "$1" | awk '$1 != "w" { sub(/@.*/, "", $2); print $2 }' | sort -u
}

case $(needed "$core") in
"libc.so.6" | "libc.so.6 libm.so.6") ;;
*) complain "libposenc needs: $(needed "$core")" ;;
esac
case $(needed "$contract") in
"libc.so.6 libjansson.so.4 libposenc.so.0") ;;
"libc.so.6 libjansson.so.4 libm.so.6 libposenc.so.0") ;;
*) complain "libposenc-contract needs: $(needed "$contract")" ;;
esac

allowed='^(mem(cpy|move|set|cmp)|str(cmp|len|ncmp)|getenv|getauxval|malloc|calloc|free'
allowed+='|aligned_alloc'
allowed+='|__stack_chk_fail|__mem(cpy|move|set)_chk|fmaf?|fabsf?|floorf?|ceilf?|sqrtf?)$'
unknown=$(imports "$core" | grep -vE "$allowed" || true)
test -z "$unknown" || complain "libposenc imports: $unknown"

# nm prints the member's name above its symbols.
allocating=$("$nm" -u "$core_static" |
    awk '/^[^ ].*:$/ { member = $1 } $2 ~ /^(m|c|re|aligned_)alloc$|^free$/ { print member }' |
    sort -u | grep -vE '^(plan|sinusoid)\.c\.o:$' || true)
test -z "$allocating" || complain "allocation outside plan.c and sinusoid.c: $allocating"

printing='^(__)?(v?f?printf|puts|putchar|putc|fputs|fputc|perror|abort|_?exit|assert_fail)(_chk)?$'
printing+='|^(stdout|stderr|signal|sigaction|raise|setlocale|error|warn)$'
found=$(imports "$contract" | grep -E "$printing" || true)
test -z "$found" || complain "libposenc-contract imports: $found"
exit "$failed"
