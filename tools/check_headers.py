#!/usr/bin/env python3
"""Compiles every header of src/jali alone, so that each includes what it uses.

Usage: tools/check_headers.py [ROOT] [--compiler CXX]. Exit status 1 with the compiler's words.
A header of backend/cpu that serves one instruction set says so in a line "// isa: FLAGS".
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ISA = re.compile(r"^// isa: (.+)$", re.MULTILINE)


def compile_alone(compiler: str, root: Path, header: Path) -> str:
    flags = ISA.search(header.read_text(encoding="utf-8"))
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
    command += flags.group(1).split() if flags else []
    # Through a one-line file on stdin, as a user includes it (no "#pragma once in main file").
    command += ["-I", str(root / "src"), "-x", "c++", "-"]
    source = f'#include "{header.relative_to(root / "src").as_posix()}"\n'
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "root", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent
    )
    parser.add_argument("--compiler", default=os.environ.get("CXX", "c++"))
    options = parser.parse_args()
    headers = sorted((options.root / "src" / "jali").rglob("*.h"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda h: compile_alone(options.compiler, options.root, h), headers)
        failed = [text for text in results if text]
    for text in failed:
        print(text)
    print(
        f"headers: {len(failed)} of {len(headers)} do not compile alone"
        if failed
        else f"headers: {len(headers)} ok"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
