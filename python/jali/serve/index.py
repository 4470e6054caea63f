"""What a store knows of keys and of uploads: an interface that a database implements.

Times are seconds since 1970, sizes are bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from jali.serve.refusal import Refusal

__all__ = ["OPEN", "Index", "IndexUnavailable", "KeySet", "Upload", "Usage"]

#: The state of an upload that takes bytes. Others are "done", "refused" and "lost".
OPEN = "open"


@dataclass(frozen=True)
class KeySet:
    """The evaluation keys of a client for a program.

    client: who sent them.
    program: the fingerprint of the manifest against which they were checked.
    key_id: the name of the secret key to which they belong.
    sha256: of their bytes, in hexadecimal.
    nbytes: how many there are.
    made, used: when they came, and when they were last used, to within a minute.
    """

    client: str
    program: str
    key_id: str
    sha256: str
    nbytes: int
    made: float
    used: float


@dataclass(frozen=True)
class Upload:
    """An upload, also one that ended a short while ago.

    upload: its name, which others cannot guess.
    client, program: as of KeySet.
    length: how many bytes will come. So many are reserved.
    sha256: that of all bytes, if the client announced it, else "".
    received: how many bytes are on the disk and checked, as far as they can be.
    holder: the process that may append to it.
    state: OPEN, "done", "refused" or "lost".
    key_id: of the keys that came of it, once it is done.
    made, touched: when it began, and when bytes last came.
    """

    upload: str
    client: str
    program: str
    length: int
    sha256: str
    received: int
    holder: str
    state: str
    key_id: str
    made: float
    touched: float


@dataclass(frozen=True)
class Usage:
    """What is taken, of one client or of all. Each blob counts once for each client.

    nbytes, sets: of keys that are stored. Keys of two programs with the same bytes are one set.
    reserved, uploads: of uploads that are under way.
    """

    nbytes: int
    sets: int
    reserved: int
    uploads: int


class IndexUnavailable(Refusal):
    """The database of an index does not answer, or was lost within a transaction. The sentence is for
    clients.

    reason: for who runs the service.
    unknown: whether nobody knows if the transaction came to pass. If not, it changed nothing.

    >>> from jali.serve.index import IndexUnavailable
    >>> IndexUnavailable("the connection was refused").status
    503
    """

    def __init__(self, reason: str, *, unknown: bool = False) -> None:
        super().__init__(
            "the service cannot reach its index of keys: try again",
            503,
            "index",
            headers={"Retry-After": "5"},
        )
        self.reason, self.unknown = reason, unknown


class Index(ABC):
    """Every method is one transaction, unless it is called within ``writing``. Several processes
    and threads may use one database.

    An index is shared by all who use the same blobs. Who adds or removes files of blobs is within
    ``writing``, so that what the index says of blobs holds until the end; see KeyStore.changing.

    Methods of an index that others run raise IndexUnavailable.
    """

    @abstractmethod
    def name(self) -> str:
        """The name of the store that it describes; "" if it describes none yet."""

    @abstractmethod
    def set_name(self, name: str) -> None:
        """Says which store it describes."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[None]:
        """A transaction that excludes all other writers, of all processes. It is rolled back if the
        body raises."""

    @abstractmethod
    def key_set(self, client: str, program: str, key_id: str) -> KeySet | None:
        """One set of keys, or None."""

    @abstractmethod
    def key_sets(self, client: str) -> list[KeySet]:
        """All sets of a client, the last made first."""

    @abstractmethod
    def blob_of(self, client: str, sha256: str) -> KeySet | None:
        """A set of this client with these bytes, or None."""

    @abstractmethod
    def put(self, keys: KeySet) -> None:
        """Adds a set, or replaces the one of the same client, program and secret key."""

    @abstractmethod
    def use(self, keys: KeySet, now: float) -> None:
        """Notes that a set was used now."""

    @abstractmethod
    def delete(self, client: str, key_id: str | None = None, program: str | None = None) -> int:
        """Removes the sets of a client, all that match, and returns how many there were. Their blobs
        that nobody has any more become ``unused``."""

    @abstractmethod
    def unused(self) -> list[str]:
        """The hashes of blobs that were removed from the index and may still be files."""

    @abstractmethod
    def forget(self, sha256: str) -> None:
        """Says that the file of an unused blob is gone."""

    @abstractmethod
    def is_used(self, sha256: str) -> bool:
        """Whether somebody has this blob."""

    @abstractmethod
    def any_of(self, sha256: str) -> KeySet | None:
        """A set of any client with these bytes, or None."""

    @abstractmethod
    def blobs(self) -> dict[str, int]:
        """The hash and the size of each blob that somebody has."""

    @abstractmethod
    def least_recent(self, before: float) -> KeySet | None:
        """The set that was used longest ago, and before a time; None if there is none."""

    @abstractmethod
    def usage(self, client: str | None = None) -> Usage:
        """What a client takes; None: what all take, each blob counted once."""

    @abstractmethod
    def add_upload(self, upload: Upload) -> None:
        """Adds an upload."""

    @abstractmethod
    def upload(self, name: str) -> Upload | None:
        """An upload by its name, or None."""

    @abstractmethod
    def take(self, name: str, holder: str) -> Upload | None:
        """Makes a process the one that may append, and returns the upload as it was before."""

    @abstractmethod
    def received(self, name: str, holder: str, received: int, now: float) -> bool:
        """Notes how many bytes are there. False, and nothing is noted, if the upload is not open or
        another process took it."""

    @abstractmethod
    def end(self, name: str, state: str, key_id: str, now: float) -> None:
        """Ends an upload that is open."""

    @abstractmethod
    def open_uploads(self) -> Iterable[str]:
        """The names of the uploads that are under way."""

    @abstractmethod
    def drop_uploads(self, before: float) -> list[str]:
        """Removes uploads, open or ended, to which no bytes came since a time, and returns their
        names."""

    @abstractmethod
    def close(self) -> None:
        """Ends the connection."""
