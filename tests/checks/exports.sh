#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The shared libraries export what the headers declare and nothing else; every global name of the
# static ones starts with posenc_.
# usage: exports.sh CC NM INCLUDE HEADER SHARED STATIC
set -euo pipefail
cc=$1 nm=$2 include=$3 header=$4 shared=$5 static=$6

# The names that HEADER and the headers of its library declare with POSENC_API, one a line.
declared() {
    echo "#include <posenc/$header>" |
        "$cc" -E -I "$include" -DPOSENC_API=POSENC_API_MARK - |
        awk -v reader="$([ "$header" = contract.h ] && echo 1 || echo 0)" '
            /^#/ { ours = /\/posenc\/[a-z]*\.h"/ && reader == /\/contract\.h"/; next } ours' |
        tr '\n' ' ' | tr ';' '\n' |
        sed -n 's/.*POSENC_API_MARK[^(]*[ *]\(posenc_[a-z0-9_]*\) *(.*/\1/p' | sort
}

exported() {
    "$nm" -D --defined-only "$shared" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort
}

test "$(declared | wc -l)" -ge 5 || { echo "found too few declarations in $header"; exit 1; }
diff <(declared) <(exported) || { echo "< declared in $header, > exported by $shared"; exit 1; }

foreign=$("$nm" -g --defined-only "$static" | awk 'NF == 3 && $3 !~ /^posenc_/ { print $3 }')
test -z "$foreign" || { echo "names without posenc_ in $static: $foreign"; exit 1; }
