#!/usr/bin/env python3
"""Writes docs/development/decisions.md, the list of all decisions, from the titles of
docs/decisions/*.md.

python tools/index_decisions.py          writes it
python tools/index_decisions.py --check  exit status 1 if it is not what it would write, or a title
is wrong
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER, PAGE = "docs/decisions", "docs/development/decisions.md"
TITLE = re.compile(r"# (?P<number>\d{4}): (?P<title>\S.*)")
HEAD = """# Decisions

Where there was a choice among alternatives, a page says what was decided, why, and what it costs.
`tools/index_decisions.py` writes this list from the titles of the pages. Some numbers have no page.

| number | decision |
|---|---|
"""


def titles(root: Path) -> list[tuple[str, str, str]]:
    """(file name, number, title) of each decision, in order. A title that does not fit is a
    ValueError."""
    found = []
    for file in sorted((root / FOLDER).glob("*.md")):
        first = file.read_text(encoding="utf-8").partition("\n")[0]
        match = TITLE.fullmatch(first.rstrip())
        if not match or not file.name.startswith(match["number"] + "-"):
            raise ValueError(
                f"{FOLDER}/{file.name}: begin it with '# {file.name[:4]}: what was decided'"
            )
        found.append((file.name, match["number"], match["title"]))
    twice = [number for number, count in Counter(n for _, n, _ in found).items() if count > 1]
    if twice:
        raise ValueError(f"{FOLDER}: two decisions have the number {twice[0]}: give one another")
    return found


def page(root: Path) -> str:
    """The text of the page."""
    rows = (
        f"| [{number}](../decisions/{name}) | {title[0].upper()}{title[1:]} |"
        for name, number, title in titles(root)
    )
    return HEAD + "\n".join(rows) + "\n"


def main(root: Path = ROOT) -> int:
    """The command line."""
    try:
        text = page(root)
    except ValueError as wrong:
        print(wrong)
        return 1
    path = root / PAGE
    if "--check" not in sys.argv[1:]:
        path.write_text(text, encoding="utf-8")
    elif not path.is_file() or path.read_text(encoding="utf-8") != text:
        print(f"{PAGE} is not what {FOLDER} says: run python tools/index_decisions.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
