#!/usr/bin/env bash
# Prints the nvcc that CUDACXX should name, after installing it from PyPI into FOLDER if it is not there. If CUDACXX is
# set, prints that. With if-needed, prints nothing and installs nothing if there is no NVIDIA GPU, if CMake finds an
# nvcc on this machine (cmake/cuda.cmake), or if CMAKE_ARGS says JALI_CUDA=OFF.
# Usage: tools/nvcc.sh if-needed|always PYTHON FOLDER
set -euo pipefail
when=$1 python=$2 folder=$3
nvcc=$PWD/$folder/nvidia/cu13/bin/nvcc

gpu_here() { [[ $(nvidia-smi -L 2>/dev/null) == *GPU* ]] || compgen -G '/dev/nvidia[0-9]*' >/dev/null; }
nvcc_here() {
  command -v nvcc >/dev/null || [ -x "${CUDA_HOME:-}/bin/nvcc" ] || [ -x /usr/local/cuda/bin/nvcc ] ||
    [ -x "$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/nvidia/cu13/bin/nvcc" ]
}
install() {
  local packages=() name
  for name in cuda-nvcc cuda-crt nvvm cuda-runtime cuda-cccl; do packages+=("nvidia-$name==13.0.*"); done
  "$python" -m pip install -q --no-deps --target "$folder" "${packages[@]}" &&
    chmod -R u+x "$folder"/nvidia/cu13/{bin,nvvm/bin}
}

if [ -n "${CUDACXX:-}" ]; then
  echo "$CUDACXX"
  exit
fi
if [ "$when" = if-needed ]; then
  if ! gpu_here || nvcc_here || [[ ${CMAKE_ARGS:-} == *JALI_CUDA=OFF* ]]; then exit; fi
fi
if [ -x "$nvcc" ] || install >&2; then
  echo "$nvcc"
elif [ "$when" = if-needed ]; then
  echo "nvcc could not be installed from PyPI (the lines above say why), so the GPU is not used:" \
    "put nvcc on the PATH, or set CUDA_HOME" >&2
else
  exit 1
fi
