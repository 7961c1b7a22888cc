#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Case B47: a staged install is right for any prefix and libdir. For each setting pkg-config and
# find_package are asked, and small programs are built with the answers, shared and static, and run.
# usage: install.sh SOURCE-FOLDER WORK-FOLDER VERSION CC
set -euo pipefail
source=$1 work=$2 version=$3 cc=$4
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$work"
mkdir -p "$work"
fail() { echo "${setting:-}: $*"; exit 1; }

# absolute_folders FLAG TEXT: every FLAG in TEXT names an existing absolute folder.
absolute_folders() {
    local word found=0
    for word in $2; do
        case $word in
        "$1"*) found=1
               case ${word#"$1"} in /*) ;; *) fail "$word is not absolute" ;; esac
               [ -d "${word#"$1"}" ] || fail "$word does not exist" ;;
        esac
    done
    [ "$found" = 1 ] || fail "no $1 in: $2"
}

# uses_pkgconfig MODULE PROGRAM LIBDIR
uses_pkgconfig() {
    local module=$1 program=$2 libdir=$3 flags libs static
    [ -f "$libdir/pkgconfig/$module.pc" ] || fail "no $libdir/pkgconfig/$module.pc"
    [ "$(pkg-config --modversion "$module")" = "$version" ] || fail "version of $module"
    pkg-config --validate "$module" || fail "$module.pc is not valid"
    flags=$(pkg-config --cflags "$module")
    libs=$(pkg-config --libs "$module")
    static=$(pkg-config --static --libs "$module")
    absolute_folders -I "$flags"
    absolute_folders -L "$libs"
    [[ " $static " == *" -lm "* ]] || fail "no -lm in: $static"
    [[ $module != *contract || " $static " == *" -ljansson "* ]] || fail "no -ljansson in: $static"
    # shellcheck disable=SC2086
    "$cc" -std=c99 $flags "$here/$program.c" -o "$work/shared" $libs
    LD_LIBRARY_PATH=$libdir "$work/shared" || fail "$program, shared, does not run"
    readelf -d "$work/shared" | grep -q 'libposenc.so.0' || fail "$program is linked wrongly"
    # shellcheck disable=SC2086
    "$cc" -std=c99 -static $flags "$here/$program.c" -o "$work/static" $static
    "$work/static" || fail "$program, static, does not run"
}

# uses_cmake PREFIX LIBDIR: the packages of this tree, shared and static.
uses_cmake() {
    local folder=$work/consumer
    rm -rf "$folder"
    cmake -S "$here/consumer" -B "$folder" -G Ninja -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_PREFIX_PATH="$1" -Dposenc_DIR="$2/cmake/posenc" \
        -Dposenc-contract_DIR="$2/cmake/posenc-contract" -DVERSION="$version" >"$work/log" 2>&1 &&
        cmake --build "$folder" >>"$work/log" 2>&1 || { cat "$work/log"; fail "find_package"; }
    local program
    for program in "$folder"/use_*; do
        "$program" || fail "$program does not run"
    done
}

# check_setting PREFIX LIBDIR [STAGE]: configures, installs under STAGE and asks.
check_setting() {
    local prefix=$1 libdir=$2 stage=${3:-} real command
    setting="prefix $prefix, libdir $libdir, stage ${stage:-none}"
    cmake -S "$source" -B "$work/build" -G Ninja -DCMAKE_C_COMPILER="$cc" -DPOSENC_BUILD_TESTS=OFF \
        -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O0 \
        -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR="$libdir" >"$work/log" 2>&1 &&
        cmake --build "$work/build" >>"$work/log" 2>&1 &&
        DESTDIR=$stage cmake --install "$work/build" >>"$work/log" 2>&1 ||
        { cat "$work/log"; fail "install"; }
    case $libdir in
    /*) real=$stage$libdir ;;
    *) real=$stage$prefix/$libdir ;;
    esac
    export PKG_CONFIG_PATH=$real/pkgconfig
    unset PKG_CONFIG_SYSROOT_DIR
    # An absolute libdir is written as such: the stage is then the system root.
    case $libdir in /*) [ -z "$stage" ] || export PKG_CONFIG_SYSROOT_DIR=$stage ;; esac
    uses_pkgconfig posenc use_core "$real"
    uses_pkgconfig posenc-contract use_contract "$real"
    case $libdir in
    /*) [ -n "$stage" ] || uses_cmake "$prefix" "$real" ;;
    *) uses_cmake "$stage$prefix" "$real" ;;
    esac
    [ -f "$stage$prefix/share/doc/posenc/LICENSE" ] || fail "the licence is not installed"
    # Outside /usr the command finds its libraries by itself; in /usr it carries no run path.
    command=$stage$prefix/bin/posenc
    if [ "$prefix" = /usr ]; then
        ! readelf -d "$command" | grep -qE 'R(UN)?PATH' || fail "run path in $command"
    elif [ -z "$stage" ] || [[ $libdir != /* ]]; then
        "$command" isa >/dev/null || fail "$command does not run"
    fi
    if grep -rqF -e "$work/build" -e "$source/src" "$real/pkgconfig" "$real/cmake"; then
        fail "a path of the build in the installed files"
    fi
}

check_setting "$work/a" lib
check_setting "$work/b" lib64
check_setting "$work/c" "$work/elsewhere/lib64"
check_setting /usr "lib/$("$cc" -dumpmachine)" "$work/stage1"
check_setting /opt/posenc lib "$work/stage2"
check_setting /opt/posenc /opt/x/lib64 "$work/stage3"

# A tree that was moved after the install still answers with its own paths.
mv "$work/a" "$work/moved"
setting="moved"
export PKG_CONFIG_PATH=$work/moved/lib/pkgconfig
unset PKG_CONFIG_SYSROOT_DIR
uses_pkgconfig posenc-contract use_contract "$work/moved/lib"
uses_cmake "$work/moved" "$work/moved/lib"
