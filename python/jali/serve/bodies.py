"""Bodies of requests, which wait in memory or in a file, and answers that are kept for a while."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

from jali.errors import FileError
from jali.serve.refusal import Refusal

__all__ = ["Body", "Folder", "Kept"]

PIECE = 1 << 20  # bytes that are read from a file, or written to one, at a time
_IN_MEMORY = 4 << 20  # longer bodies and answers are files


class Folder:
    """A folder of files that none outlives this process. Only their owner can read them.

    parent: where it lies. What earlier processes left there, is removed.

    Raises FileError.

    >>> import tempfile
    >>> from jali.serve.bodies import Folder
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     folder = Folder(parent)
    ...     folder.path.is_dir()
    ...     folder.close()
    ...     folder.path.exists()
    True
    False
    """

    def __init__(self, parent: str | os.PathLike[str]) -> None:
        self._parent = Path(parent)
        try:
            self._parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self._parent, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)  # one process after the other
                self._remove_left()
                self.path = Path(tempfile.mkdtemp(dir=self._parent))
                self._held = os.open(self.path, os.O_RDONLY)
                fcntl.flock(self._held, fcntl.LOCK_EX)
            finally:
                os.close(lock)
        except OSError as error:
            raise FileError(f"{parent} cannot hold bodies: {error.strerror}") from None

    def _remove_left(self) -> None:
        """Removes the folders of processes that ended: nobody holds them."""
        for left in self._parent.iterdir():
            with contextlib.suppress(OSError):
                held = os.open(left, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left, ignore_errors=True)
                finally:
                    os.close(held)

    def close(self) -> None:
        """Removes the folder with all files."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._held)

    def named(self) -> tuple[Path, BinaryIO]:
        """A new file, for a process that opens it by its path."""
        path = self.path / secrets.token_hex(16)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        return path, os.fdopen(descriptor, "wb", buffering=0)

    def unnamed(self) -> BinaryIO:
        """A new file that is gone once it is closed."""
        return tempfile.TemporaryFile(dir=self.path, buffering=0)


class Body:
    """The body of a request. Leaving its block removes what it has on disk.

    folder: for files.
    in_memory: longer bodies are files.

    >>> import asyncio, tempfile
    >>> from jali.serve.bodies import Body, Folder
    >>> async def read():
    ...     with tempfile.TemporaryDirectory() as parent, Body(Folder(parent)) as body:
    ...         await body.write(b"ab")
    ...         await body.write(b"cd")
    ...         return await body.content(), body.nbytes
    >>> asyncio.run(read())
    (b'abcd', 4)
    """

    def __init__(self, folder: Folder | None, in_memory: int = _IN_MEMORY) -> None:
        self._folder, self._in_memory = folder, in_memory
        self._hash = hashlib.sha256()
        self._pieces = bytearray()
        self._path: Path | None = None
        self._file: BinaryIO | None = None
        self.nbytes = 0

    def __enter__(self) -> Body:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Removes what it has on disk."""
        if self._file is not None:
            self._file.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    @property
    def sha256(self) -> str:
        """Of what came, in hexadecimal."""
        return self._hash.hexdigest()

    async def write(self, data: bytes) -> None:
        """The next bytes. Without a folder, they are hashed and forgotten.

        data: any number of bytes.

        Raises Refusal, of status 507, if the disk is full.
        """
        self.nbytes += len(data)
        self._pieces += data
        if len(self._pieces) >= PIECE and (self._folder is None or self.nbytes > self._in_memory):
            await self._spill()

    async def content(self) -> bytes | Path:
        """All bytes, or the path of the file that has them. Raises Refusal, as ``write`` does."""
        if self._file is not None or self._folder is None:
            await self._spill()
        elif len(self._pieces) < PIECE:
            self._hash.update(self._pieces)
        else:
            await asyncio.to_thread(self._hash.update, self._pieces)
        return bytes(self._pieces) if self._path is None else self._path

    async def _spill(self) -> None:
        pieces, self._pieces = self._pieces, bytearray()
        try:
            await asyncio.to_thread(self._store, pieces)
        except OSError as error:
            raise _full(error) from None

    def _store(self, pieces: bytearray) -> None:
        self._hash.update(pieces)
        if self._folder is None:
            return
        if self._file is None:
            self._path, self._file = self._folder.named()
        _write(self._file, pieces)


class Kept:
    """An answer that may be sent several times. Long ones are files without a name.

    folder: for them.
    data: the answer.
    """

    def __init__(self, data: bytes, file: BinaryIO | None) -> None:
        self.nbytes = len(data)
        self._file = file
        self._data = data if file is None else b""

    @classmethod
    async def of(cls, data: bytes, folder: Folder, in_memory: int = _IN_MEMORY) -> Kept:
        """Keeps an answer.

        data: its bytes.
        folder: for longer ones than `in_memory`.

        Raises Refusal, of status 507, if the disk is full.
        """
        if len(data) <= in_memory:
            return cls(data, None)

        def store() -> BinaryIO:
            file = folder.unnamed()
            try:
                _write(file, data)
            except BaseException:
                file.close()
                raise
            return file

        try:
            return cls(data, await asyncio.to_thread(store))
        except OSError as error:
            raise _full(error) from None

    def pieces(self) -> AsyncIterator[bytes]:
        """The bytes, some at a time. They come to their end if the answer is forgotten meanwhile."""
        file = None if self._file is None else os.fdopen(os.dup(self._file.fileno()), "rb")
        return _pieces(self._data, file, self.nbytes)

    @property
    def data(self) -> bytes | None:
        """All bytes, if they are in memory."""
        return self._data if self._file is None else None

    def close(self) -> None:
        """Forgets it."""
        self._data = b""
        if self._file is not None:
            self._file.close()


async def _pieces(data: bytes, file: BinaryIO | None, nbytes: int) -> AsyncIterator[bytes]:
    if file is None:
        yield data
        return
    with file:
        for start in range(0, nbytes, PIECE):
            yield await asyncio.to_thread(os.pread, file.fileno(), PIECE, start)


def _write(file: BinaryIO, data: bytes | bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _full(error: OSError) -> Refusal:
    return Refusal(
        f"the service cannot store this: {error.strerror}: try again later",
        507,
        "disk",
        headers={"Retry-After": "60"},
    )
