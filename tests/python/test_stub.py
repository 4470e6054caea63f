"""The committed stub of the extension is what its signatures say."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import jali

STUB = Path(__file__).parents[2] / "python" / "jali" / "_jali.pyi"


def normal(text: str) -> str:
    """Stub text without its layout: docstrings cleaned, everything else as a syntax tree."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = " ".join(inspect.cleandoc(node.value).split())
    return ast.dump(tree, indent=1)


def test_stub_matches_the_extension(tmp_path: Path) -> None:
    pytest.importorskip("nanobind", reason="nanobind makes the stub")
    made = tmp_path / "_jali.pyi"
    done = subprocess.run(
        [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "jali._jali", "-o", str(made)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert normal(made.read_text()) == normal(STUB.read_text()), (
        "python -m nanobind.stubgen -m jali._jali -o python/jali/_jali.pyi, then ruff format it"
    )


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(jali.__file__).parent / "py.typed").exists()


def test_every_public_name_is_documented() -> None:
    for module in (jali, jali.ckks, jali.errors):
        for name in module.__all__:
            thing = getattr(module, name)
            if name == "__version__":
                continue
            assert inspect.getdoc(thing), name
            if inspect.isclass(thing):
                for attribute, member in vars(thing).items():
                    if not attribute.startswith("_") and not isinstance(member, str):
                        assert inspect.getdoc(member), f"{name}.{attribute}"
