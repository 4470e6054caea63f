#!/usr/bin/env python3
"""Draws docs/house.svg, one row for each layer, from the layers of check_layers.py and the table of
CONTRIBUTING.md.

python tools/draw_house.py          writes docs/house.svg
python tools/draw_house.py --check  exit status 1 if docs/house.svg is not what it would write
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

import check_layers
from drawing import DEEP, INK, QUIET, box, page, words

ROOT = Path(__file__).resolve().parent.parent
PICTURE = "docs/house.svg"
TABLE_ROW = re.compile(
    r"^\| (?P<number>\d+) \| `(?P<room>[\w/]+)/` \| (?P<holds>.*?) \|$", re.MULTILINE
)

WIDTH, LEFT, GAP, PAD = 900, 46, 10, 14
LINE, TITLE = 19, 24


def rooms(root: Path) -> dict[int, list[tuple[str, str]]]:
    """{layer: [(room, what it holds)]} of the folders that exist."""
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    holds = {match["room"]: match["holds"] for match in TABLE_ROW.finditer(text)}
    layers: dict[int, list[tuple[str, str]]] = {}
    for room, number in check_layers.ROOMS.items():
        if (root / "src" / "jali" / room).is_dir():
            if room not in holds:
                raise SystemExit(
                    f"CONTRIBUTING.md: the table of the house has no row for `{room}/`"
                )
            layers.setdefault(number, []).append((room, holds[room].replace("`", "")))
    return layers


def short(room: str, holds: str) -> str:
    """The part of a description that fits a box: up to its first semicolon."""
    return (
        "the waist: the tables of operations that every engine implements"
        if room == "backend"
        else holds.split(";")[0]
    )


def draw_room(
    x: float, y: float, wide: float, high: float, name: str, lines: list[str]
) -> list[str]:
    """A box with the room's name and what it holds."""
    parts = [box(x, y, wide, high), words(x + PAD, y + 24, name, 16, INK, "bold")]
    parts += [words(x + PAD, y + 24 + LINE * (i + 1), t, 13, QUIET) for i, t in enumerate(lines)]
    return parts


def draw(root: Path) -> str:
    """The picture as SVG. The highest layer is on top; a folder includes only folders below it."""
    layers: list[tuple[str, list[tuple[str, str]]]] = [
        (
            "",
            [
                (
                    "python/jali",
                    "the Python package: checks arguments, records functions, imports the binding and NumPy",
                )
            ],
        ),
        *((str(number), found) for number, found in sorted(rooms(root).items(), reverse=True)),
    ]
    parts: list[str] = []
    y = 16.0
    for number, found in layers:
        wide = (WIDTH - LEFT - 16 - GAP * (len(found) - 1)) / len(found)
        wrapped = {
            room: textwrap.wrap(short(room, holds), max(18, int((wide - 2 * PAD) / 6.6)))
            for room, holds in found
        }
        engines = check_layers.FOLDERS["backend"] if any(r == "backend" for r, _ in found) else ()
        high = TITLE + LINE * max(len(lines) for lines in wrapped.values()) + 16
        high += 42 if engines else 0
        parts.append(words(14, y + high / 2 + 6, number, 17, QUIET, "bold"))
        for i, (room, _) in enumerate(found):
            x = LEFT + i * (wide + GAP)
            name = room if "/" in room else f"{room}/"
            parts += draw_room(x, y, wide, high, name, wrapped[room])
            if room == "backend":
                each = (wide - 2 * PAD - GAP * (len(engines) - 1)) / len(engines)
                for k, engine in enumerate(engines):
                    at = x + PAD + k * (each + GAP)
                    parts.append(box(at, y + high - 44, each, 32, DEEP))
                    parts.append(words(at + 12, y + high - 23, f"{engine}/", 14, INK, "bold"))
        y += high + GAP
    parts.append(
        words(
            LEFT,
            y + 14,
            "A folder includes only folders of rows below its own. Folders of one row do not know each other.",
            13,
            QUIET,
        )
    )
    y += 30
    return page(WIDTH, y, "The layers of Jali", parts)


def main() -> int:
    """The command line."""
    picture, path = draw(ROOT), ROOT / PICTURE
    if "--check" in sys.argv[1:]:
        if path.is_file() and path.read_text(encoding="utf-8") == picture:
            return 0
        print(f"{PICTURE} is not what the layers say: run python tools/draw_house.py")
        return 1
    path.write_text(picture, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
