"""What a wheel holds, from one without compiled code."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKE = "from scikit_build_core.build import build_wheel; build_wheel(OUT, SETTINGS)"
WEIGHTS = "jali/demo/weights/"


@pytest.mark.parametrize("portable", [False, True])
def test_weights_in_a_wheel(portable: bool, tmp_path: Path) -> None:
    """A wheel for other machines has the weights of two demos, `pip install .` all of them."""
    pytest.importorskip("scikit_build_core")
    settings = {
        "wheel.cmake": "false",
        "wheel.py-api": "py3",
        "build-dir": str(tmp_path / "build"),
        "cmake.define.JALI_BUILD_PYTHON": "false",
    }
    program = MAKE.replace("OUT", repr(str(tmp_path))).replace("SETTINGS", repr(settings))
    environment = {**os.environ, "JALI_PORTABLE_WHEEL": str(int(portable))}
    subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, check=True, capture_output=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "jali/simulate/__init__.py" in names
    assert {"jali/serve/page/index.html", "jali/serve/page/worker.mjs"} <= set(names)
    found = {name.removeprefix(WEIGHTS) for name in names if name.startswith(WEIGHTS)}
    every = {path.name for path in (ROOT / "python" / WEIGHTS).glob("*.npz")}
    assert len(every) > 5
    assert found == ({"digits.npz", "mnist.npz"} if portable else every)


@pytest.mark.parametrize("place", ["tools/wheel.sh", ".github/workflows/wheels.yml"])
def test_wheels_for_other_machines_are_portable(place: str) -> None:
    """Whoever builds such wheels says so."""
    assert "JALI_PORTABLE_WHEEL=1" in (ROOT / place).read_text(encoding="utf-8")
