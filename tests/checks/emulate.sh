#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# On emulated x86 CPUs the right kernels are chosen, nothing they lack is executed, and the bits are
# those of this machine, whatever the vendor, who decides how memory is asked for. `max,-avx` is the
# trap: its cpuid names AVX2 and FMA, but neither AVX nor an operating system that keeps its
# registers.
# usage: emulate.sh EVERYTHING-PROGRAM COMMAND
set -euo pipefail
everything=$1 command=$2
failed=0

native=$("$everything" | tail -n 1)
test -n "$native"

while read -r cpu isa; do
    # qemu warns of features that it cannot emulate; an illegal instruction ends in a signal.
    if ! output=$(qemu-x86_64 -cpu "$cpu" "$everything" 2>/dev/null); then
        echo "$cpu: the program fails"
        failed=1
        continue
    fi
    expected=$(printf '%s\n%s' "$isa" "$native")
    [ "$output" = "$expected" ] || { echo "$cpu: expected $expected, got $output"; failed=1; }
    chosen=$(qemu-x86_64 -cpu "$cpu" "$command" isa 2>/dev/null) ||
        { echo "$cpu: posenc isa fails"; failed=1; continue; }
    grep -q "^$isa is used" <<<"$chosen" ||
        { echo "$cpu: posenc isa does not choose $isa: $chosen"; failed=1; }
done <<'TABLE'
max avx2
max,vendor=GenuineIntel avx2
max,vendor=AuthenticAMD avx2
Haswell avx2
max,-avx2 scalar
max,-fma scalar
max,-f16c scalar
max,-avx scalar
IvyBridge scalar
Westmere scalar
qemu64 scalar
TABLE

# A name in the environment cannot bring in what the CPU lacks.
output=$(POSENC_ISA=avx512 qemu-x86_64 -cpu Westmere "$everything" 2>/dev/null) ||
    { echo "POSENC_ISA=avx512 on Westmere: the program fails"; failed=1; }
[ "$(tail -n 1 <<<"$output")" = "$native" ] ||
    { echo "POSENC_ISA=avx512 on Westmere: $output"; failed=1; }
exit "$failed"
