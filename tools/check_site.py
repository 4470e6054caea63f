#!/usr/bin/env python3
"""Checks that a built site needs no network: no script, style, font or picture comes from another
host.

Usage: tools/check_site.py FOLDER. Prints one line for each violation; the exit status is 1 if there
are any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import checking

# Matches what a browser loads by itself. Links that a reader may follow (<a href>) are not loaded.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\ssrc\s*=\s*["'](?P<source>(?:https?:)?//[^"']+)"""
    r"""|<link\b(?=[^>]*\srel\s*=\s*["'](?:stylesheet|preload|icon|preconnect|dns-prefetch)\b)[^>]*?\shref\s*=\s*["'](?P<link>(?:https?:)?//[^"']+)""",
    re.IGNORECASE,
)
STYLE = re.compile(
    r"""(?:url\(\s*["']?|@import\s+["'])(?P<url>(?:https?:)?//[^"')]+)""", re.IGNORECASE
)


def check(root: Path) -> Iterator[str]:
    pages = sorted(root.rglob("*.html"))
    if not pages:
        yield f"{root}: there is no page"
    for page in pages:
        for match in LOADED.finditer(page.read_text(encoding="utf-8")):
            yield f"{page.relative_to(root)}: loads {match['source'] or match['link']}"
    for sheet in sorted(root.rglob("*.css")):
        for match in STYLE.finditer(sheet.read_text(encoding="utf-8", errors="replace")):
            yield f"{sheet.relative_to(root)}: loads {match['url']}"


if __name__ == "__main__":
    checking.run("site", check)
