"""With an NVIDIA GPU, `make demo` builds for it; without one, nothing is downloaded.

nvidia-smi and nvcc are stubs.
"""

import glob
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

needs_no_gpu = pytest.mark.skipif(
    bool(glob.glob("/dev/nvidia[0-9]*")), reason="this machine has an NVIDIA GPU"
)
needs_no_nvcc = pytest.mark.skipif(
    Path("/usr/local/cuda/bin/nvcc").exists(), reason="this machine has nvcc"
)


def stub(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("#!/bin/bash\n" + text)
    file.chmod(0o755)


SMI = '[ "$1" = -L ] && echo "GPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-0)"\n'
# This stub's pip makes an empty file at the path of the packages' nvcc; its sysconfig names a
# folder without nvcc.
PYTHON = """if [ "$2" = pip ]; then
  echo "pip $*" >&2
  mkdir -p build/nvcc/nvidia/cu13/{bin,nvvm/bin}; touch build/nvcc/nvidia/cu13/bin/nvcc; exit $PIP_STATUS
fi
echo /nowhere
"""


def chosen(
    folder: Path, when: str = "if-needed", pip_status: int = 0, **environment: str
) -> tuple[int, str, str]:
    """The exit status of tools/nvcc.sh, its standard output and its standard error."""
    stub(folder / "python", PYTHON)
    done = subprocess.run(
        ["bash", str(ROOT / "tools" / "nvcc.sh"), when, str(folder / "python"), "build/nvcc"],
        cwd=folder,
        env={
            "PATH": f"{folder / 'bin'}:/usr/bin:/bin",
            "PIP_STATUS": str(pip_status),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.strip(), done.stderr


@needs_no_gpu
def test_without_a_gpu_nothing_is_installed(tmp_path: Path) -> None:
    assert chosen(tmp_path) == (0, "", "")
    stub(tmp_path / "bin" / "nvidia-smi", "exit 9\n")  # the driver does not answer
    assert chosen(tmp_path) == (0, "", "")


@needs_no_nvcc
def test_with_a_gpu_nvcc_comes_from_pypi_once(tmp_path: Path) -> None:
    stub(tmp_path / "bin" / "nvidia-smi", SMI)
    nvcc = str(tmp_path / "build/nvcc/nvidia/cu13/bin/nvcc")
    status, printed, said = chosen(tmp_path)
    assert (status, printed) == (0, nvcc)
    assert "nvidia-cuda-nvcc==13.0.*" in said
    assert os.access(nvcc, os.X_OK)
    assert chosen(tmp_path) == (0, nvcc, "")


def test_with_a_gpu_and_an_nvcc_nothing_is_installed(tmp_path: Path) -> None:
    stub(tmp_path / "bin" / "nvidia-smi", SMI)
    stub(tmp_path / "toolkit" / "bin" / "nvcc", "")
    assert chosen(tmp_path, CUDA_HOME=str(tmp_path / "toolkit")) == (0, "", "")
    assert chosen(tmp_path, CUDACXX="/my/nvcc") == (0, "/my/nvcc", "")
    assert chosen(tmp_path, CMAKE_ARGS="-DJALI_CUDA=OFF") == (0, "", "")
    stub(tmp_path / "bin" / "nvcc", "")
    assert chosen(tmp_path) == (0, "", "")


@needs_no_nvcc
def test_what_pip_cannot_install_leaves_the_cpu_to_the_demo_and_fails_the_check(
    tmp_path: Path,
) -> None:
    stub(tmp_path / "bin" / "nvidia-smi", SMI)
    status, printed, said = chosen(tmp_path, pip_status=1)
    assert (status, printed) == (0, "")
    assert "put nvcc on the PATH" in said
    assert chosen(tmp_path, "always", pip_status=1)[0] == 1


@pytest.mark.parametrize("target", ["install", "build"])
def test_make_gives_that_nvcc_to_cmake(target: str) -> None:
    done = subprocess.run(
        ["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "CUDACXX=$(tools/nvcc.sh if-needed " in done.stdout


@pytest.mark.parametrize(
    ("gpus", "architectures"),
    [
        ("8.9\n", "89-real;89-virtual"),
        ("9.0\n9.0\n", "90-real;90-virtual"),
        ("8.0\n9.0\n", "80-real;90-real;90-virtual"),
        ("10.7\n12.0\n", "103-virtual;120-real;120-virtual"),  # 10.7 is newer than nvcc's 10.x
        ("13.0\n", "121-virtual"),  # newer than nvcc, so PTX alone
        ("7.5\n", "90"),  # older than Ampere
        ("", "90"),
        ("[N/A]\n", "90"),
    ],
)
def test_architectures_are_those_of_the_gpus(tmp_path: Path, gpus: str, architectures: str) -> None:
    known = " ".join(f"compute_{a}" for a in (75, 80, 86, 89, 90, 100, 110, 103, 120, 121))
    stub(tmp_path / "bin" / "nvcc", f"printf '%s\\n' {known}\n")
    stub(tmp_path / "bin" / "nvidia-smi", f"printf '{gpus}'\n")
    script = tmp_path / "script.cmake"
    script.write_text(
        f"include({ROOT}/cmake/cuda_architectures.cmake)\n"
        f'jali_cuda_architectures(found {tmp_path}/bin/nvcc)\nmessage("${{found}}")\n'
    )
    done = subprocess.run(
        ["cmake", "-P", str(script)],
        env={**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.strip() == architectures
