#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The scalar core on other architectures, built by CMake as a packager would and run under qemu: all
# bits as on this machine. s390x is big-endian, i686 has 32-bit addresses.
# usage: ports.sh SOURCE-FOLDER BUILD-FOLDER HASH
set -euo pipefail
source=$1 build=$2 hash=$3
failed=0 passed=0

# port TRIPLET QEMU FLAGS
port() {
    local triplet=$1 folder=$build/ports-$1 got
    cmake -G Ninja -S "$source" -B "$folder" -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME=Linux \
        -DCMAKE_SYSTEM_PROCESSOR="${triplet%%-*}" -DCMAKE_C_COMPILER="$triplet-gcc" \
        -DCMAKE_C_FLAGS="$3" -DPOSENC_BUILD_CONTRACT=OFF -DPOSENC_BUILD_TOOLS=OFF \
        -DPOSENC_BUILD_TESTS=OFF >"$folder.log" 2>&1 &&
        cmake --build "$folder" -j2 >>"$folder.log" 2>&1 || { tail -n 20 "$folder.log"; return 1; }
    "$triplet-gcc" -std=c11 -O2 -static -I "$source/include" "$source/tests/checks/everything.c" \
        -o "$folder/everything" "$folder/lib/libposenc.a" -lm
    got=$("$2" "$folder/everything" | tail -n 1)
    printf '%-24s %s\n' "$triplet" "$got"
    [ "$got" = "$hash" ]
}

mkdir -p "$build"
while read -r triplet qemu flags; do
    port "$triplet" "$qemu" "$flags" && passed=$((passed + 1)) || failed=$((failed + 1))
done <<'LIST'
s390x-linux-gnu qemu-s390x
riscv64-linux-gnu qemu-riscv64
i686-linux-gnu qemu-i386 -msse2 -mfpmath=sse
LIST
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
