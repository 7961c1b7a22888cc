#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The C program of the README's first screen compiles without a warning through pkg-config from a
# staged install, runs, and prints what the README says it prints. The Python program of
# docs/building.md reads every public header and runs as it stands.
# usage: readme.sh SOURCE-FOLDER BUILD-FOLDER WORK-FOLDER CC LIBDIR PYTHON
set -euo pipefail
source=$1 build=$2 work=$3 cc=$4 libdir=$5 python=$6
rm -rf "$work"
mkdir -p "$work"
env -u DESTDIR cmake --install "$build" --prefix "$work/prefix" >"$work/log" ||
    { cat "$work/log"; exit 1; }

# block LANGUAGE FILE: the first fenced block of that language.
block() {
    awk -v fence="\`\`\`$1" '$0 == fence { on = 1; next } on && /^```$/ { exit } on' "$source/$2"
}

block c README.md >"$work/example.c"
block text README.md >"$work/expected"
grep -q posenc_rope "$work/example.c" || { echo "no C program found in README.md"; exit 1; }
[ "$(grep -n '^```c$' "$source/README.md" | head -n 1 | cut -d: -f1)" -le 30 ] ||
    { echo "the C program is not on the first screen"; exit 1; }
for line in scripts/quickstart scripts/check; do
    head -n 30 "$source/README.md" | grep -q "^$line" ||
        { echo "no $line on the first screen"; exit 1; }
done

export PKG_CONFIG_PATH=$work/prefix/$libdir/pkgconfig
# shellcheck disable=SC2046
"$cc" -std=c11 -Wall -Wextra -Wpedantic -Werror "$work/example.c" -o "$work/example" \
    $(pkg-config --cflags --libs posenc)
export LD_LIBRARY_PATH=$work/prefix/$libdir
"$work/example" >"$work/printed"
diff "$work/expected" "$work/printed"

# In a query of ones channel 0 becomes cos 5 - sin 5. The mean of values 1 is 1.
block python docs/building.md >"$work/example.py"
for header in "$source"/include/posenc/*.h; do
    grep -q "\"$(basename "$header" .h)\"" "$work/example.py" ||
        { echo "docs/building.md does not read $(basename "$header")"; exit 1; }
done
echo 'print("%.6f %.6f" % (q[0, 0, 31, 0], out[0, 1, 31, -1]))' >>"$work/example.py"
cp "$source/tests/data/configs/llama-3.1-8b.json" "$work/config.json"
(cd "$work" && "$python" example.py) >"$work/printed"
diff - "$work/printed" <<<"1.242586 1.000000"
