"""How many files a reader has to open to follow a compilation.

The figure counts files of jali whose functions `jali.compile` calls; what is imported is counted
once, in a process of its own. It was 84 for two layers. Passes that a model does not need are not
entered now, and neither are frontends of other packages or the client of users. What remains is
what two layers take: 38 files of the passes and the search for a plan, 11 of operations and graphs,
one that sees whether examples are integers, and what computes the dry run, which is the server's
interpreter on jali.ckks. Fewer would be larger files that hold several passes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jali
from jali.nn import scalar

PACKAGE = Path(jali.__file__).parent
MOST = 64  # files for two layers with a square in between
WITH_FUNCTIONS = 6  # more for a function that is approximated
#: What a compilation of two matrices needs neither to call nor to import.
OTHERS = ("from_onnx", "from_sklearn", "from_torch", "trees")


def entered(call: Callable[[], object]) -> set[str]:
    """The files of jali whose functions a call enters."""
    files = set()

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call":
            files.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    inside = (Path(file) for file in files)
    return {file.relative_to(PACKAGE).as_posix() for file in inside if PACKAGE in file.parents}


@pytest.mark.parametrize(
    ("between", "most"), [(np.square, MOST), (scalar.sigmoid, MOST + WITH_FUNCTIONS)]
)
def test_a_compilation_of_two_layers_enters_few_files(
    between: Callable[[Any], Any], most: int, rng: np.random.Generator
) -> None:
    first, second = rng.normal(size=(16, 16)) / 4, rng.normal(size=(4, 16)) / 4
    bias, x = rng.normal(size=16) / 4, rng.uniform(-1, 1, (32, 16))

    def compiled() -> object:
        return jali.compile(lambda v: second @ between(first @ v + bias), x[0], calibration=x)

    compiled()  # imports what is imported when it is first used
    files = entered(compiled)
    assert len(files) <= most, "\n".join(sorted(files))
    assert not [file for file in files if any(name in file for name in OTHERS)]


def test_a_compilation_imports_no_frontend_of_another_package() -> None:
    code = f"""
import sys
import numpy as np
import jali
x = np.linspace(-1, 1, 60).reshape(20, 3)
jali.compile(lambda v: np.square(v @ np.eye(3)) @ np.eye(3), x[0], calibration=x)
found = [m for m in sys.modules if m.startswith("jali.") and any(n in m for n in {OTHERS})]
assert not found, found
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
