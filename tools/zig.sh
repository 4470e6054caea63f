#!/usr/bin/env bash
# Prints the folder with clang, clang++, ar and ranlib of the package ziglang from PyPI, for cmake/wasm.cmake, after
# installing the package into FOLDER if it is not there. It brings clang, wasm-ld, and the sources of a C and a C++
# library; 0.2 GB as it travels, 0.4 GB on the disk.
# Usage: tools/zig.sh PYTHON FOLDER
set -euo pipefail
python=$1 folder=$2
zig=$PWD/$folder/ziglang/zig

[ -x "$zig" ] || {
  "$python" -m pip install -q --no-deps --target "$folder" 'ziglang==0.17.*' >&2
  chmod u+x "$zig"
}
# A compiler is one word for CMake and ccache. ccache compares the text (CCACHE_COMPILERCHECK=content), which names the version
# and no folder.
version=$("$zig" version)
mkdir -p "$folder/tools"
tool() {  # NAME COMMAND OF ZIG
  local file=$folder/tools/$1 text="#!/bin/sh
# ziglang $version
exec \"\${0%/*}/../ziglang/zig\" $2 \"\$@\""
  [ -x "$file" ] && [ "$(cat "$file")" = "$text" ] || { echo "$text" >"$file" && chmod +x "$file"; }
}
for name in clang ar ranlib; do tool $name $name; done
tool clang++ clang
tool linker cc
echo "$PWD/$folder/tools"
