"""Files that are named by the hash of their content, and parts of files that are on their way.

A file is a blob once all of it is on the disk: a crash leaves a part, or a blob that no index
names, but never a blob that is not whole. The folders must lie in one file system that knows hard
links and locks of files.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from jali.errors import CorruptData, FileError

__all__ = ["Blobs", "Part", "synced"]

_HASH = re.compile("[0-9a-f]{64}")
_PIECE = 1 << 20


def synced(folder: Path) -> None:
    """Brings the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _open_locked(path: Path, patience: float, refusal: str) -> int:
    """The descriptor of a file, which is made if there is none, locked among all processes. Raises
    FileError, with a sentence of the caller if others keep it."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise FileError(f"{path} cannot be opened: {error.strerror}") from None
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except OSError:
            if time.monotonic() > end:
                os.close(file)
                raise FileError(refusal) from None
            time.sleep(0.02)


class Part:
    """A part of a file that is locked for this object, among all processes.

    path: of the part, which is made if there is none.
    patience: how many seconds to wait for others.

    Raises FileError if others keep it, or if it cannot be opened.
    """

    def __init__(self, path: Path, patience: float) -> None:
        self._path = path
        self._file = _open_locked(path, patience, "another process writes to the upload: try again")

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._path

    @property
    def nbytes(self) -> int:
        """How long it is."""
        return os.fstat(self._file).st_size

    def write(self, data: bytes | memoryview, at: int) -> None:
        """Puts bytes at an offset. Raises FileError, e.g. if the disk is full."""
        rest = memoryview(data)
        try:
            while len(rest):
                count = os.pwrite(self._file, rest, at)
                rest, at = rest[count:], at + count
        except OSError as error:
            raise FileError(f"the upload cannot be written: {error.strerror}") from None

    def read(self, at: int, end: int) -> Iterator[bytes]:
        """The bytes from an offset to another, in pieces. Raises FileError if there are fewer."""
        while at < end:
            try:
                piece = os.pread(self._file, min(_PIECE, end - at), at)
            except OSError as error:
                raise FileError(f"the upload cannot be read: {error.strerror}") from None
            if not piece:
                raise FileError("the upload is shorter than it was")
            at += len(piece)
            yield piece

    def cut(self, nbytes: int) -> None:
        """Drops what follows so many bytes."""
        os.ftruncate(self._file, nbytes)

    def sync(self) -> None:
        """Brings the bytes to the disk. Raises FileError."""
        try:
            os.fsync(self._file)
        except OSError as error:
            raise FileError(f"the upload cannot be written: {error.strerror}") from None

    def close(self) -> None:
        """Unlocks it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class Blobs:
    """The files of a store.

    folder: where they lie. Only its owner may enter it.

    >>> import pathlib, tempfile
    >>> from jali.serve.blobs import Blobs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     blobs = Blobs(pathlib.Path(folder))
    ...     list(blobs.found())
    []
    """

    def __init__(self, folder: Path) -> None:
        self._blobs, self._parts = folder / "blobs", folder / "parts"
        self._lock = folder / "blobs.lock"
        for inner in (self._blobs, self._parts):
            inner.mkdir(mode=0o700, parents=True, exist_ok=True)
        synced(folder)

    def path(self, sha256: str) -> Path:
        """Where a blob lies, or would lie."""
        return self._blobs / sha256[:2] / sha256

    def part_path(self, name: str) -> Path:
        """Where a part lies, or would lie."""
        return self._parts / name

    def part(self, name: str, patience: float) -> Part:
        """A part, locked; see Part. Raises FileError."""
        return Part(self.part_path(name), patience)

    def drop_part(self, name: str) -> None:
        """Removes a part, if there is one."""
        self.part_path(name).unlink(missing_ok=True)

    def parts(self) -> list[str]:
        """The names of all parts."""
        return os.listdir(self._parts)

    @contextlib.contextmanager
    def changing(self, patience: float = 30.0) -> Iterator[None]:
        """Within it, no other process or thread adds or removes blobs.

        patience: how many seconds to wait for others.

        Raises FileError if others take longer.
        """
        file = _open_locked(self._lock, patience, "another process changes the store: try again")
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # also if a forked process has the file, too
            os.close(file)

    def keep(self, part: Part, sha256: str) -> None:
        """Makes a blob of a part whose bytes are on the disk. The part stays, too.

        Only who is within ``KeyStore.changing`` may call it.
        """
        path = self.path(sha256)
        if not path.parent.is_dir():
            path.parent.mkdir(mode=0o700, exist_ok=True)
            synced(self._blobs)
        with contextlib.suppress(FileExistsError):
            os.link(part.path, path)
            synced(path.parent)

    def remove(self, sha256: str) -> None:
        """Removes a blob, if there is one. Who has it open reads on.

        Only who is within ``KeyStore.changing`` may call it.
        """
        path = self.path(sha256)
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
            synced(path.parent)

    def open(self, sha256: str) -> BinaryIO:
        """A blob, to be read. Raises FileNotFoundError."""
        return self.path(sha256).open("rb")

    def nbytes(self, sha256: str) -> int:
        """How long a blob is; -1 if there is none."""
        try:
            return self.path(sha256).stat().st_size
        except FileNotFoundError:
            return -1

    def found(self) -> Iterator[str]:
        """The hashes of all blobs, also of those that no index names."""
        for folder in sorted(self._blobs.iterdir()):
            yield from (name for name in sorted(os.listdir(folder)) if _HASH.fullmatch(name))

    def verify(self, sha256: str) -> None:
        """Reads a blob. Raises CorruptData if its content has another hash, or is gone."""
        digest = hashlib.sha256()
        with contextlib.suppress(FileNotFoundError), self.open(sha256) as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
        if digest.hexdigest() != sha256:
            raise CorruptData(f"the blob {sha256} is not what was stored: send the keys again")
