#!/usr/bin/env python3
"""Refuses what must never be committed: big files, data sets, paths of somebody's machine, and
code in files of more than 600 lines.

Usage: tools/check_files.py [ROOT]. Prints one line for each violation; the exit status is 1 if
there are any.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import checking

MAX_BYTES = 400_000
BIG_ALLOWED: frozenset[str] = frozenset()  # paths that may be larger, each with a reason beside it
MAX_LINES = 600  # of a file of code that somebody wrote
CODE = re.compile(r"\.(?:py|h|cpp|cu|cuh|cmake|sh|m?js|sv|v)$")
DATA = re.compile(r"ubyte|\.(?:csv|parquet|pt|pth|onnx|h5|pkl|pickle|whl|gz|zip|so|a|o)$")
# A home or work folder of one machine. Written so that this line does not match itself.
MACHINE = re.compile(rb"(?<![\w.:/-])/(?:home|root|work|Users|tmp/[a-z]+/wt)[/]\w")
CONFLICT = re.compile(rb"^(?:<{7}|>{7}) ", re.MULTILINE)


def committed(root: Path) -> list[str]:
    listing = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=False,
    )
    if listing.returncode:  # this is no checkout but an unpacked source archive
        return []
    return sorted(name for name in listing.stdout.decode().split("\0") if name)


def check(root: Path) -> Iterator[str]:
    for name in committed(root):
        file = root / name
        if not file.is_file():
            continue
        content = file.read_bytes()
        if len(content) > MAX_BYTES and name not in BIG_ALLOWED:
            yield f"{name}: {len(content)} bytes; files are at most {MAX_BYTES}"
        if DATA.search(name):
            yield f"{name}: data sets, archives and build outputs are not committed"
        if CODE.search(name) and (lines := content.count(b"\n")) > MAX_LINES:
            yield f"{name}: {lines} lines; divide files of code by what they hold at {MAX_LINES}"
        if b"\0" in content[:4096]:
            continue
        for pattern, what in ((MACHINE, "a path of one machine"), (CONFLICT, "a conflict mark")):
            if match := pattern.search(content):
                line = content.count(b"\n", 0, match.start()) + 1
                yield f"{name}:{line}: {what}: {match.group().decode(errors='replace')!r}"


if __name__ == "__main__":
    checking.run("files", check)
