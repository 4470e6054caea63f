#!/usr/bin/env python3
"""Compiles every header of src/jali alone, so that each includes what it uses.

Usage: [CXX=COMPILER] tools/check_headers.py [ROOT]. Exit status 1 with the compiler's words.
A header of backend/cpu that serves one instruction set says so in a line "// isa: FLAGS".
"""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import checking

ISA = re.compile(r"^// isa: (.+)$", re.MULTILINE)


def compile_alone(root: Path, header: Path) -> str:
    """What the compiler says; nothing if it has no complaint."""
    flags = ISA.search(header.read_text(encoding="utf-8"))
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra"]
    command += ["-Werror", *(flags.group(1).split() if flags else [])]
    # Through a one-line file on stdin, as a user includes it (no "#pragma once in main file").
    command += ["-I", str(root / "src"), "-x", "c++", "-"]
    source = f'#include "{header.relative_to(root / "src").as_posix()}"\n'
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def check(root: Path) -> list[str]:
    headers = sorted((root / "src" / "jali").rglob("*.h"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [text for text in pool.map(lambda h: compile_alone(root, h), headers) if text]


if __name__ == "__main__":
    checking.run("headers", check)
