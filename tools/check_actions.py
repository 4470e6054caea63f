#!/usr/bin/env python3
"""Refuses actions of workflows that are not pinned by a commit: a tag can be moved to other code.

`uses: OWNER/NAME@HASH  # TAG`, with the 40 hexadecimal digits of a commit. Actions of this
repository (./) need none. A container is pinned by its digest, docker://IMAGE@sha256:...

Usage: tools/check_actions.py [ROOT]. Prints one line for each violation; the exit status is 1 if
there are any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import checking

USES = re.compile(r"""^\s*(?:-\s+)?["']?uses["']?\s*:\s*(?P<what>.*)$""")
PINNED = re.compile(
    r"""["']?(?:\./\S*|[\w.-]+/[\w./-]+@[0-9a-f]{40}|docker://\S+@sha256:[0-9a-f]{64})["']?(?:\s+#.*)?"""
)


def check(root: Path) -> Iterator[str]:
    files = [f for f in (root / ".github").rglob("*") if f.suffix in (".yml", ".yaml")]
    for file in sorted(files):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            found = USES.match(line)
            if found and not PINNED.fullmatch(found["what"].strip()):
                name = file.relative_to(root).as_posix()
                yield f"{name}:{number}: {found['what'].strip()!r} can change: pin it by the hash of a commit"
            elif not found and re.search(r"[{,]\s*uses\s*:", line):
                yield f"{file.relative_to(root).as_posix()}:{number}: give `uses:` a line of its own, where it can be checked"


if __name__ == "__main__":
    checking.run("actions", check)
