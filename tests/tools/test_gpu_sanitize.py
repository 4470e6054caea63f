"""`make gpu-sanitize` runs every program of tests/gpu, and ends before any work if a filter matches
no test.

nvidia-smi, compute-sanitizer and the test programs are stubs.
"""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "tools" / "gpu_sanitize.sh"
PROGRAMS = re.findall(
    r"jali_test\((\w+)", (ROOT / "tests" / "gpu" / "CMakeLists.txt").read_text(encoding="utf-8")
)

# Lists one test for whatever pattern, but none for that of EMPTY; notes what is run.
PROGRAM = """filter=
for word in "$@"; do case $word in --gtest_filter=*) filter=${word#*=};; esac; done
if [ "$1" = --gtest_list_tests ]; then
  [ "$filter" = "$EMPTY" ] || printf 'Suite.\\n  Test\\n'
else
  echo "$(basename "$0") $filter" >>"$RUNS"; exit "${STATUS:-0}"
fi
"""
SANITIZER = """while [ "${1#--}" != "$1" ]; do
  case $1 in --tool|--require-cuda-init|--error-exitcode|--print-limit) shift 2;; *) shift;; esac
done
exec "$@"
"""


def stub(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("#!/bin/bash\n" + text)
    file.chmod(0o755)


class Run:
    def __init__(self, folder: Path, *tools: str, leave_out: str = "", **environment: str) -> None:
        stub(folder / "bin" / "nvidia-smi", "echo 'GPU 0: a GPU'\n")
        stub(folder / "bin" / "compute-sanitizer", SANITIZER)
        for name in PROGRAMS:
            if name != leave_out:
                stub(folder / "build" / "tests" / "gpu" / f"test_{name}", PROGRAM)
        runs = folder / "runs"
        done = subprocess.run(
            ["bash", str(SCRIPT), str(folder / "build"), *tools],
            env={"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "RUNS": str(runs), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        self.status, self.says = done.returncode, done.stderr
        self.programs = (
            {line.split()[0] for line in runs.read_text().splitlines()} if runs.exists() else set()
        )


def test_every_program_runs_under_a_tool(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert run.status == 0, run.says
    assert run.programs == {f"test_{name}" for name in PROGRAMS}


@pytest.mark.parametrize("pattern", ["*OfSmallSets*", "CudaTfhe.GraphsRecord*"])
def test_a_filter_without_a_test_ends_it_before_any_work(tmp_path: Path, pattern: str) -> None:
    run = Run(tmp_path, EMPTY=pattern)
    assert run.status == 5 and "no test matches: test_gpu_tfhe" in run.says
    assert pattern in run.says and not run.programs


def test_what_the_sanitizer_finds_and_what_is_not_built_are_no_success(tmp_path: Path) -> None:
    assert Run(tmp_path / "found", "memcheck", STATUS="9").status == 1
    run = Run(tmp_path / "missing", "memcheck", leave_out="gpu_rows")
    assert run.status == 4 and "test_gpu_rows" in run.says
