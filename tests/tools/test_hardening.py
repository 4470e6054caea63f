"""The installed extension is linked and compiled so that overruns of buffers end in a refusal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import jali
from jali import _jali

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import check_hardening  # noqa: E402

MODULES = sorted(Path(str(_jali.__file__)).parent.glob("_jali*.so"))

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads the files of Linux")


@pytest.mark.parametrize("file", MODULES, ids=lambda f: f.name)
def test_modules_are_hardened(file: Path) -> None:
    assert list(check_hardening.check(file, bool(jali.build_info()["hardened"]))) == []


def test_what_users_install_is_compiled_so() -> None:
    """A build without JALI_HARDEN, for a quick change, is one that nobody installs."""
    assert "cmake.define.JALI_HARDEN = true" in (ROOT / "pyproject.toml").read_text()
    if "site-packages" in str(_jali.__file__):
        assert jali.build_info()["hardened"]


FLAGS = ["-O2", "-shared", "-fPIC", "-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-Wl,-z,relro,-z,now,-z,noexecstack"]  # fmt: skip
CODE = """
#include <string.h>
#include <stdio.h>
void use(char*);
void copied(const char* from, unsigned long n) { char to[64]; memcpy(to, from, n); use(to); puts(to); }
"""


@pytest.mark.parametrize(
    ("instead", "why"),
    [
        ({}, ""),
        ({"-Wl,-z,relro,-z,now,-z,noexecstack": "-Wl,-z,relro,-z,lazy"}, "-z now"),
        ({"-Wl,-z,relro,-z,now,-z,noexecstack": "-Wl,-z,norelro,-z,now"}, "-z relro"),
        ({"-Wl,-z,relro,-z,now,-z,noexecstack": "-Wl,-z,relro,-z,now,-z,execstack"}, "noexecstack"),
        ({"-fstack-protector-strong": "-fno-stack-protector"}, "-fstack-protector-strong"),
        ({"-D_FORTIFY_SOURCE=2": "-D_NONE"}, "-D_FORTIFY_SOURCE=2"),
    ],
)
def test_each_lack_is_found(tmp_path: Path, instead: dict[str, str], why: str) -> None:
    source, made = tmp_path / "code.c", tmp_path / "code.so"
    source.write_text(CODE)
    command = ["cc", *(instead.get(flag, flag) for flag in FLAGS), "-o", str(made), str(source)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no compiler that takes these flags")
    found = list(check_hardening.check(made))
    assert len(found) == (1 if why else 0), found
    assert all(why in line for line in found)
