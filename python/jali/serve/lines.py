"""Files that an operator writes, with a line for each client."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from jali._core import files
from jali.errors import Error, FileError, InvalidArgument

__all__ = ["Lines"]

_MAX_FILE = 1 << 24

Row = TypeVar("Row")


class Lines(Generic[Row]):
    """The lines of a file, which is read again when it changes. If it has mistakes then, what was
    read before stays.

    path: of the file. Lines that begin with # are comments.
    row: what the words of a line say. It raises ValueError if they say nothing.
    what: a line has, for errors.

    Raises FileError, and InvalidArgument for a line that says nothing. It does not repeat the line.

    >>> import tempfile
    >>> from jali.serve.lines import Lines
    >>> with tempfile.NamedTemporaryFile("w") as file:
    ...     _ = file.write("alice 3")
    ...     file.flush()
    ...     lines = Lines(file.name, lambda words: (words[0], int(words[1])), "a name and a number")
    >>> lines.rows()
    [('alice', 3)]
    """

    def __init__(self, path: str | Path, row: Callable[[Sequence[str]], Row], what: str) -> None:
        self._path, self._row, self._what = Path(path), row, what
        self._seen = self._stamp()
        self._rows = self._read()

    def rows(self) -> list[Row]:
        """What the lines say now."""
        stamp = self._stamp()
        if stamp not in (None, self._seen):
            self._seen = stamp
            with contextlib.suppress(Error):  # somebody writes it, or made a mistake
                self._rows = self._read()
        return self._rows

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            about = self._path.stat()
        except OSError:
            return None
        return about.st_mtime_ns, about.st_size, about.st_ino

    def _read(self) -> list[Row]:
        try:
            text = files.load(self._path, _MAX_FILE).decode()
        except UnicodeDecodeError:
            raise FileError(f"{self._path} is no text: each line is {self._what}") from None
        found = []
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            try:
                found.append(self._row(words))
            except ValueError:
                raise InvalidArgument(
                    f"line {number} of {self._path} is not {self._what}"
                ) from None
        return found
