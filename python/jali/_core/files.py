"""Reading and writing files. Everything that the package writes to a path goes through ``replace``,
and so through one implementation."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from jali._core.console import one_text
from jali._jali import check_replaceable, replace_file
from jali.errors import FileError, InvalidArgument, LimitExceeded, VersionError, WrongCall

__all__ = [
    "check",
    "load",
    "locked_folder",
    "octets",
    "refuse_earlier",
    "replace",
    "save",
    "save_figure",
]

_EARLIER = (b"JALI-NN", b"JALI-NM", b"JALI-TP", b"JALI-TM")


def replace(file: str | os.PathLike[str], data: bytes | bytearray | memoryview | str) -> None:
    """Write bytes, or text as UTF-8, to a path, which is replaced at once or stays as it was.
    Raises FileError.

    Permissions of a file that is replaced are kept. Folders, devices and FIFOs are refused. See
    base/replace_file.h.
    """
    replace_file(file, data.encode() if isinstance(data, str) else data)


def _path(file: Any) -> Path:
    """A path. Raises WrongCall for anything else."""
    if not isinstance(file, (str, os.PathLike)):
        raise WrongCall(
            f"a file is named by its path, not by {one_text(type(file).__name__)}: to_bytes() and from_bytes(data) take no file"
        )
    return Path(file)


def save(file: str | os.PathLike[str], data: bytes) -> None:
    """``replace`` for what has to_bytes() and from_bytes(), too. Raises WrongCall and FileError."""
    replace(_path(file), data)


def load(file: str | os.PathLike[str], max_bytes: int) -> bytes:
    """The bytes of a file. Raises WrongCall, FileError and LimitExceeded."""
    path = _path(file)
    try:
        with path.open("rb") as stream:
            data = stream.read(max_bytes + 1)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > max_bytes:
        raise LimitExceeded(f"{path} has more than {max_bytes} bytes")
    return data


def locked_folder(folder: Path) -> int:
    """A folder that this process has for itself until it closes the descriptor. It is made, for
    this user alone, if it is not there. Raises FileError, also if another process has it."""
    import fcntl

    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise FileError(f"{folder} cannot be used: {error.strerror or error}") from None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        raise FileError(
            f"another process uses {folder}: wait for it, or give another folder"
        ) from None
    return held


def octets(data: Any) -> memoryview:
    """The bytes of an object that from_bytes was given, one dimension of them.

    Raises InvalidArgument for what has none, e.g. a path, and for parts of memory that do not
    follow each other.
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise InvalidArgument(
            f"data must be bytes, not {type(data).__name__}. Open files with load(path)"
        )
    view = memoryview(data)
    if not view.c_contiguous:
        raise InvalidArgument("data must be bytes that follow each other: give bytes(data)")
    return view.cast("B")


def refuse_earlier(data: Any, what: str) -> None:
    """Raises VersionError for bytes that a build before version 0.1.0 wrote. what: e.g. "program".

    Their programs, graphs, manifests and messages had containers of their own.
    """
    if isinstance(data, (bytes, bytearray, memoryview)) and bytes(data[:7]) in _EARLIER:
        raise VersionError(
            f"the {what} was written by a build of Jali before version 0.1.0: compile or record the model again"
        )


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
