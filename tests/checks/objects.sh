#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Instructions stay where they belong: wide registers in the folders of their ISA alone, no fused
# multiply in the objects that make rows or frequencies.
# usage: objects.sh OBJDUMP OBJECT...
set -euo pipefail
objdump=$1
shift
failed=0
complain() { echo "$*"; failed=1; }

count() { "$objdump" -d --no-show-raw-insn "$1" | grep -ciE "$2" || true; }

# x86: any vfmadd... or vfnmsub...; arm: fmadd, fmsub, fmla, fmls and their negated forms.
fused='[[:space:]](vfn?m(add|sub)[0-9a-z]*|fn?m(add|sub)|fml[as])[[:space:]]'
wide='%[yz]mm[0-9]'

[ $# -ge 12 ] || { echo "only $# objects"; exit 1; }
for object; do
    case $object in
    */arch/avx2/* | */arch/avx512/*) ;;
    *) [ "$(count "$object" "$wide")" = 0 ] || complain "ymm or zmm registers in $object" ;;
    esac
    case $object in
    */arch/avx2/*)
        [ "$(count "$object" '%zmm[0-9]')" = 0 ] || complain "zmm registers in $object" ;;
    esac
    case $object in
    */rows.c.o | */frequencies.c.o)
        [ "$(count "$object" "$fused")" = 0 ] || complain "fused multiply in $object" ;;
    esac
done

# The patterns must be able to match: the rotation has both.
for object; do
    case $object in
    */arch/scalar/*) continue ;;
    */arch/*/rotate.c.o) ;;
    *) continue ;;
    esac
    [ "$(count "$object" "$fused")" -gt 0 ] || complain "no fused multiply found in $object"
    case $object in
    */arch/avx*)
        [ "$(count "$object" "$wide")" -gt 0 ] || complain "no wide register found in $object" ;;
    esac
done
exit "$failed"
