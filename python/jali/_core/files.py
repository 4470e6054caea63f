"""Writing files. Everything that the package writes to a path goes through ``replace``, and so
through one implementation."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from jali._jali import check_replaceable, replace_file
from jali.errors import InvalidArgument

__all__ = ["check", "replace", "save_figure"]


def replace(file: str | os.PathLike[str], data: bytes | bytearray | memoryview | str) -> None:
    """Write bytes, or text as UTF-8, to a path, which is replaced at once or stays as it was.
    Raises FileError.

    Permissions of a file that is replaced are kept. Folders, devices and FIFOs are refused. See
    base/replace_file.h.
    """
    replace_file(file, data.encode() if isinstance(data, str) else data)


def check(file: str | os.PathLike[str]) -> None:
    """Raise the FileError that ``replace`` would raise for this path. Commands that work long
    before they write call it first."""
    check_replaceable(file)


def save_figure(figure: Any, file: str | os.PathLike[str], **how: Any) -> Path:
    """Write a picture of matplotlib, of the kind that the path's ending names, and return the path:
    a path without an ending gets ".png".

    Raises InvalidArgument for an ending that matplotlib does not know, and FileError.
    """
    path = Path(file)
    if not path.suffix:
        path = path.with_name(path.name + ".png")
    kinds = sorted(figure.canvas.get_supported_filetypes())
    if path.suffix[1:].lower() not in kinds:
        raise InvalidArgument(f"{path}: give a name that ends in .{', .'.join(kinds)}")
    picture = io.BytesIO()
    figure.savefig(picture, format=path.suffix[1:].lower(), **how)
    replace(path, picture.getvalue())
    return path
