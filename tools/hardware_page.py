#!/usr/bin/env python3
"""Writes the tables of docs/hardware.md: what two papers print, beside what the models give
(jali.simulate.comparison).

A table stands between the lines  <!-- table: PAPER NAME -->  and  <!-- table: end -->.

python tools/hardware_page.py          writes them
python tools/hardware_page.py --check  exit status 1 if the page has other tables, or lacks one
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from jali.simulate import comparison
from jali.simulate.papers import PAPERS, paper

PAGE = Path(__file__).resolve().parent.parent / "docs" / "hardware.md"
PLACE = re.compile(
    r"(?P<head><!-- table: (?P<paper>\w+) (?P<table>[^\n]+?) -->\n).*?(?P<foot><!-- table: end -->)",
    re.DOTALL,
)


def filled(text: str) -> str:
    """The page with its tables."""
    return PLACE.sub(
        lambda m: f"{m['head']}{comparison.markdown(m['paper'], m['table'])}\n{m['foot']}", text
    )


def missing(text: str) -> list[str]:
    """Tables of the papers that the page has no place for."""
    placed = {(m["paper"], m["table"]) for m in PLACE.finditer(text)}
    tables = {(name, table) for name in PAPERS for table in paper(name).tables}
    return sorted(" ".join(table) for table in tables - placed)


def main() -> int:
    """The command line."""
    text = PAGE.read_text(encoding="utf-8")
    new, absent = filled(text), missing(text)
    if absent:
        print(f"docs/hardware.md has no place for: {', '.join(absent)}")
        return 1
    if "--check" in sys.argv[1:]:
        if new == text:
            return 0
        print("docs/hardware.md has other tables: run python tools/hardware_page.py")
        return 1
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
