"""The committed stubs of the extension agree with its signatures."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import jali

PACKAGE = Path(__file__).parents[2] / "python" / "jali"


def normal(text: str) -> str:
    """The stub without its layout: docstrings are cleaned, everything else is compared as a syntax
    tree."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = " ".join(inspect.cleandoc(node.value).split())
    return ast.dump(tree, indent=1)


def test_stubs_match_the_extension(tmp_path: Path) -> None:
    pytest.importorskip("nanobind", reason="nanobind makes the stub")
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-r"]
    modules = ["-m", "jali._jali", "-m", "jali._jali_bench"]
    done = subprocess.run(
        [*command, *modules, "-O", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr

    def stubs(folder: Path) -> dict[str, str]:
        return {
            str(file.relative_to(folder)): normal(file.read_text())
            for file in folder.rglob("*.pyi")
        }

    assert stubs(tmp_path) == stubs(PACKAGE), (
        "python -m nanobind.stubgen -r -m jali._jali -m jali._jali_bench -O python/jali, then ruff format it"
    )


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(jali.__file__).parent / "py.typed").exists()


def test_every_public_name_is_documented() -> None:
    for module in (jali, jali.ckks, jali.discrete, jali.tfhe, jali.errors):
        for name in module.__all__:
            thing = getattr(module, name)
            if name == "__version__":
                continue
            assert inspect.getdoc(thing), name
            if inspect.isclass(thing):
                for attribute, member in vars(thing).items():
                    if not attribute.startswith("_") and not isinstance(member, str):
                        assert inspect.getdoc(member), f"{name}.{attribute}"
