"""Text on a terminal: tables, sizes and progress. It uses rich if that is installed, and plain text
otherwise.

Results go to standard output, progress to standard error.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

__all__ = [
    "aligned",
    "bytes_text",
    "counted_text",
    "counter",
    "joules_text",
    "one_text",
    "progress",
    "seconds_text",
    "stages",
    "table",
]

Item = TypeVar("Item")
#: Two capitals or more at the beginning of a name, without the one of a word that follows: SVC, and
#: the MLP of MLPRegressor; and NumPy's nd.
_SPOKEN = re.compile(r"[A-Z]{2,}(?![a-z])|nd")


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """A line for each row, whose cells are as wide as the widest of their column.

    >>> print(*aligned([("keys", "time"), ("1.5 GB", "2 s")]), sep="\\n")
    keys    time
    1.5 GB  2 s
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def bytes_text(count: float) -> str:
    """A number of bytes as text: 1536 is '1.5 KiB'."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError  # the loop always returns


def seconds_text(seconds: float) -> str:
    """A time as text: 0.00123 is '1.23 ms'."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.2f} ms"
    return f"{seconds * 1e6:.1f} us"


def joules_text(joules: float) -> str:
    """An energy as text: 0.00123 is '1.23 mJ'."""
    size = abs(joules)
    for unit, least in (("J", 1.0), ("mJ", 1e-3)):
        if size >= least:
            return f"{joules / least:.2f} {unit}"
    return f"{joules * 1e6:.2f} uJ"


def choices_text(choices: Mapping[str, str]) -> str:
    """The implementations that jali tune chose, by family."""
    return ", ".join(f"{k}={v}" for k, v in choices.items()) or "the engine's own"


def table(title: str, headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table. Columns whose cells all look like numbers are aligned to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    right = [
        bool(cells) and all(row[i][:1].isdigit() or row[i][:1] in "-" for row in cells)
        for i in range(len(headers))
    ]
    if sys.stdout.isatty():
        try:
            from rich.console import Console
            from rich.table import Table
        except ImportError:
            pass
        else:
            fancy = Table(title=title, title_justify="left", title_style="bold")
            for header, is_right in zip(headers, right, strict=True):
                fancy.add_column(header, justify="right" if is_right else "left")
            for row in cells:
                fancy.add_row(*row)
            Console().print(fancy)
            return
    widths = [max(len(h), *(len(row[i]) for row in cells), 0) for i, h in enumerate(headers)]

    def line(values: Sequence[str]) -> str:
        padded = (
            v.rjust(w) if r else v.ljust(w) for v, w, r in zip(values, widths, right, strict=True)
        )
        return "  " + "  ".join(padded).rstrip()

    print(title)
    if any(headers):
        print(line(headers))
    for row in cells:
        print(line(row))


def progress(items: Iterable[Item], what: str, count: int) -> Iterator[Item]:
    """Go through `count` items. If standard error is a terminal, show there how many are done."""
    if not sys.stderr.isatty():
        yield from items
        return
    for done, item in enumerate(items, 1):
        sys.stderr.write(f"\r{what}: {done}/{count}")
        sys.stderr.flush()
        yield item
    sys.stderr.write("\r" + " " * (len(what) + 24) + "\r")


def counted_text(count: int, what: str, many: str | None = None) -> str:
    """A number of things, as "1 example" and "2 examples". many: the name of several, if it is not
    that of one with an s."""
    return f"{count:,} {what if count == 1 else many or f'{what}s'}"


def one_text(name: str) -> str:
    """A name behind its article, as "a Ridge", "an Isomap" and "an SVC". Capitals without a vowel,
    as in SVC, are spoken one by one."""
    letters = _SPOKEN.match(name)
    spoken = letters is not None and not set("AEIOU") & set(letters[0])
    return f"{'an' if name[:1].upper() in ('AEFHILMNORSX' if spoken else 'AEIO') else 'a'} {name}"


def counter(what: str) -> Callable[[int, int], None] | None:
    """A callback (done, count) that shows the progress on standard error; None if that is not a
    terminal."""
    if not sys.stderr.isatty():
        return None

    def show(done: int, count: int) -> None:
        text = f"\r{what}: {done}/{count}"
        sys.stderr.write(text if done < count else "\r" + " " * (len(text) + 8) + "\r")
        sys.stderr.flush()

    return show


def stages(what: str) -> Callable[[str, float], None] | None:
    """A callback (stage, fraction) that shows the progress on standard error; None if that is not a
    terminal."""
    if not sys.stderr.isatty():
        return None
    longest = 0

    def show(stage: str, fraction: float) -> None:
        nonlocal longest
        text = f"{what}: {stage}, {fraction:.0%}" if fraction < 1 else ""
        longest = max(longest, len(text))
        sys.stderr.write("\r" + text.ljust(longest) + ("" if text else "\r"))
        sys.stderr.flush()

    return show
