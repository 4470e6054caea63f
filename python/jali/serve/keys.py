"""The evaluation keys of many clients, on disk."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from jali._core import checks
from jali._core.console import bytes_text
from jali.errors import CorruptData, FileError, InvalidArgument
from jali.serve.blobs import Blobs, synced
from jali.serve.index import Index, KeySet, Usage
from jali.serve.postgres_index import PostgresIndex
from jali.serve.refusal import Refusal
from jali.serve.sql_index import SqliteIndex

__all__ = ["KeyStore", "Quota"]

_MAX_NAME = 500


@dataclass(frozen=True)
class Quota:
    """What a client may have in a store.

    nbytes: of keys, with those of uploads that are under way.
    sets: of keys, with uploads that are under way.

    >>> from jali.serve.keys import Quota
    >>> Quota(nbytes=1 << 30).sets
    16
    """

    nbytes: int = 8 << 30
    sets: int = 16


class KeyStore:
    """Evaluation keys on disk, by client, program and secret key.

    Several processes may open one store. Whatever ends a process, at any time, leaves every set of
    keys whole or absent. A set has the bytes that its client sent, which were checked. Clients that
    sent the same bytes share one file, and none of them can tell.

    folder: of the store, which is made if there is none. Only its owner may read it.
    quota: what each client may have; or a function of the client's name that says it.
    capacity: the bytes that all keys and uploads may take; None: any number. Room for new ones is
        made by removing those that were used longest ago.
    spared: sets that were used within so many seconds are not removed for others.
    index: what the store knows of its files: the URL of a database of PostgreSQL, which several
        machines share if they share the folder, too (see postgres_index); or an Index; None: a file
        of SQLite in the folder. A store is always opened with the index with which it was made.

    May be used from several threads. A forked process opens its own.

    Raises InvalidArgument, FileError, VersionError, and Unsupported if the package for PostgreSQL is
    missing.

    >>> import tempfile
    >>> from jali.serve.keys import KeyStore, Quota
    >>> with tempfile.TemporaryDirectory() as folder, KeyStore(folder, quota=Quota(1 << 30)) as store:
    ...     store.room("alice")
    Usage(nbytes=1073741824, sets=16, reserved=0, uploads=0)
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        quota: Quota | Callable[[str], Quota] | None = None,
        capacity: int | None = None,
        spared: float = 3600.0,
        index: Index | str | None = None,
    ) -> None:
        quota = Quota() if quota is None else quota
        self._quota = quota if callable(quota) else lambda _: quota
        self._capacity = (
            capacity
            if capacity is None
            else checks.whole(capacity, 1, "capacity must be a number of bytes, at least 1")
        )
        self._spared = spared
        self._folder = Path(folder)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._opening():
                self.blobs = Blobs(self._folder)
                self.index = self._opened(index)
                try:
                    self._check_name()
                    self._recover()
                except BaseException:
                    if self.index is not index:
                        self.index.close()
                    raise
        except OSError as error:
            if isinstance(error, FileError):
                raise
            raise FileError(
                f"{self._folder} cannot hold a store of keys: {error.strerror}"
            ) from None

    @contextlib.contextmanager
    def _opening(self) -> Iterator[None]:
        """Processes open a store one after the other."""
        with (self._folder / "lock").open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _opened(self, index: Index | str | None) -> Index:
        if isinstance(index, str):
            return PostgresIndex(index)
        return SqliteIndex(self._folder / "index.sqlite") if index is None else index

    def _check_name(self) -> None:
        """Refuses an index of another store, whose files would be removed, and one of which the
        folder is not there. A store gets its name in three steps, any of which may be the last: it is
        written beside the folder's files, into the index, and the file gets its place."""
        path, new = self._folder / "store", self._folder / "store.new"
        with self.index.writing():
            known = self.index.name()
            if path.exists():
                if path.read_text() != known:
                    raise FileError(
                        f"the store {self._folder} was made with another index: open it with that one"
                    )
                return
            name = new.read_text() if new.exists() else ""
            if known and known != name:
                raise FileError(
                    f"{self._folder} is not the folder of the store that the index describes: give its folder, or mount it there"
                )
            if not known:
                if any(True for _ in self.blobs.found()):
                    raise FileError(
                        f"{self._folder} has keys of which the index knows nothing: open the store with the index with which it was made"
                    )
                name = secrets.token_hex(16)
                with open(new, "w", opener=_private) as file:
                    file.write(name)
                    file.flush()
                    os.fsync(file.fileno())
                synced(self._folder)
                self.index.set_name(name)
        new.rename(path)
        synced(self._folder)

    def __enter__(self) -> KeyStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection to the index. What is stored stays."""
        self.index.close()

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """A transaction of the index within which files of blobs are added and removed.

        It has a lock of the files, too, because a database whose connection was lost ends the
        transaction before who is within it knows: another one could begin.

        Raises Refusal, of status 503, if others take long.
        """
        with contextlib.ExitStack() as locks:
            try:
                locks.enter_context(self.blobs.changing())
            except FileError as error:
                raise Refusal(str(error), 503, "busy", headers={"Retry-After": "2"}) from None
            locks.enter_context(self.index.writing())
            yield

    def find(self, client: str, program: str, key_id: str) -> KeySet | None:
        """The keys that a client has for a program, or None. Nothing is said of other clients'.

        client: its name.
        program: the fingerprint of the program's manifest.
        key_id: the name of the secret key, see ``ckks.Client.key_id``.
        """
        return self.index.key_set(client, program, key_id)

    def sets(self, client: str) -> list[KeySet]:
        """All keys of a client, the last made first.

        client: its name.
        """
        return self.index.key_sets(client)

    def open(self, client: str, program: str, key_id: str) -> BinaryIO:
        """The bytes of keys, as a file that is read to the end also if they are deleted meanwhile.
        It counts as a use.

        client, program, key_id: as of ``find``.

        Raises Refusal, of status 404, if the client has no such keys.
        """
        found = self.find(client, program, key_id)
        if found is not None:
            with contextlib.suppress(FileNotFoundError):
                file = self.blobs.open(found.sha256)
                self.index.use(found, time.time())
                return file
        raise Refusal("there are no such keys: send them first", 404, "no-keys")

    def delete(self, client: str, *, key_id: str | None = None, program: str | None = None) -> int:
        """Deletes keys of a client, and returns how many sets there were. Nobody can open them once
        this returns, and their bytes are gone, unless other clients sent the same.

        client: its name.
        key_id: of which secret key; None: of each.
        program: for which program; None: for each.
        """
        count = self.index.delete(client, key_id, program)
        self.clean()
        return count

    def clean(self) -> None:
        """Removes the files of keys that were deleted."""
        for sha256 in self.index.unused():
            with self.changing():
                if not self.index.is_used(sha256):
                    self.blobs.remove(sha256)
                self.index.forget(sha256)

    def room(self, client: str) -> Usage:
        """What a client may still send: bytes, and sets.

        client: its name.
        """
        quota, taken = self._quota(client), self.index.usage(client)
        return Usage(
            max(0, quota.nbytes - taken.nbytes - taken.reserved),
            max(0, quota.sets - taken.sets - taken.uploads),
            taken.reserved,
            taken.uploads,
        )

    def reserve(self, client: str, nbytes: int) -> None:
        """Makes room for keys that will come. It is called within ``index.writing``, by who then adds
        an upload of so many bytes.

        client: its name.
        nbytes: of the keys.

        Raises Refusal, of status 507, if the client's quota or the store has no room.
        """
        room = self.room(client)
        if nbytes > room.nbytes or room.sets < 1:
            raise Refusal(
                f"your keys may take {bytes_text(room.nbytes)} more, in {room.sets} more sets: delete keys or uploads that you no longer need",
                507,
                "quota",
                members={"bytes-left": room.nbytes, "sets-left": room.sets},
            )
        if self._capacity is None:
            return
        while True:
            taken = self.index.usage()
            if taken.nbytes + taken.reserved + nbytes <= self._capacity:
                return
            oldest = self.index.least_recent(time.time() - self._spared)
            if oldest is None:
                raise Refusal(
                    "the store has no room for more keys: try again later",
                    507,
                    "store-full",
                    headers={"Retry-After": "600"},
                )
            self.index.delete(oldest.client, oldest.key_id, oldest.program)

    def verify(self) -> list[str]:
        """Reads all keys, removes those whose bytes are not what was stored, and returns their
        hashes."""
        damaged = []
        for sha256 in self.index.blobs():
            try:
                self.blobs.verify(sha256)
            except CorruptData:
                with self.changing():
                    if self.index.is_used(sha256):
                        self._drop(sha256)
                        damaged.append(sha256)
        self.clean()
        return damaged

    def _drop(self, sha256: str) -> None:
        """Removes all sets with these bytes, within ``changing``."""
        while (found := self.index.any_of(sha256)) is not None:
            self.index.delete(found.client, found.key_id, found.program)

    def _recover(self) -> None:
        """Removes what crashes left: files that the index does not name, and sets without files."""
        self.clean()
        for sha256, nbytes in self.index.blobs().items():
            if self.blobs.nbytes(sha256) != nbytes:
                with self.changing():
                    if self.blobs.nbytes(sha256) != nbytes:
                        self._drop(sha256)
        self.clean()
        known = self.index.blobs()
        for sha256 in list(self.blobs.found()):
            if sha256 not in known:
                with self.changing():
                    if not self.index.is_used(sha256):
                        self.blobs.remove(sha256)
        for name in self.blobs.parts():
            with self.index.writing():
                if name not in self.index.open_uploads():
                    self.blobs.drop_part(name)


def _private(path: str, flags: int) -> int:
    """Opens a file that only its owner may read."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def checked_client(client: str) -> str:
    """Raises InvalidArgument for what is no name of a client."""
    if (
        not isinstance(client, str)
        or not client
        or len(client) > _MAX_NAME
        or not client.isprintable()
    ):
        raise InvalidArgument(
            f"a client's name has 1 to {_MAX_NAME} printable characters: give the name by which the service knows it"
        )
    return client
