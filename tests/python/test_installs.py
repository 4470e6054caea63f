"""Every command that a message or a document names to install something is one that works."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from jali._core import packages

ROOT = Path(__file__).parents[2]
WHERE = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "Makefile", "docs", "examples", "python")
KINDS = {"", ".md", ".py", ".cpp", ".h", ".txt"}
COMMAND = re.compile(r"pip (?:install|wheel)\b([^\n]*)")
EXTRA = re.compile(r"\[([a-z][a-z,]*)\]")


def texts() -> list[tuple[str, str]]:
    files = [file for name in WHERE for file in [ROOT / name, *(ROOT / name).rglob("*")]]
    return [
        (str(file.relative_to(ROOT)), file.read_text(encoding="utf-8"))
        for file in files
        if file.is_file() and file.suffix in KINDS and "generated" not in file.parts
    ]


def faults(where: str, text: str, extras: set[str]) -> list[str]:
    """What is wrong with the commands of a text. Jali itself is in no package index."""
    found = []
    for match in COMMAND.finditer(text):
        words = match[1]
        if re.search(r"""(^|[\s'"])jali\b(?!-)""", words):
            found.append(f"{where}: no index has jali: {match[0]}")
        for names in EXTRA.findall(words):
            found += [
                f"{where}: no extra {e}: {match[0]}" for e in names.split(",") if e not in extras
            ]
    return found


@pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="needs the checkout")
def test_commands_name_what_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    everything = texts()
    assert sum(len(COMMAND.findall(text)) for _, text in everything) >= 3
    assert [f for where, text in everything for f in faults(where, text, extras)] == []


def test_a_command_that_does_not_work_is_found() -> None:
    extras = {"demo"}
    assert faults("x", "pip install 'jali[demo]'", extras)
    assert faults("x", "pip install jali", extras)
    assert faults("x", "pip install '.[gpu]'", extras)
    assert not faults("x", "pip install '.[demo]'", extras)
    assert not faults("x", "pip install dist/jali-0.1.0-cp312-abi3-linux_x86_64.whl", extras)


def test_the_command_for_packages() -> None:
    assert packages.install("numpy", "pillow") == f"{sys.executable} -m pip install numpy pillow"
    assert packages.of_module("sklearn.datasets") == "scikit-learn"
    assert packages.of_module("matplotlib.pyplot") == "matplotlib"
    assert packages.here("numpy") and not packages.here("no-such-package")
