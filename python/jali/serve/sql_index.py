"""The index in SQL that SQLite and PostgreSQL both understand, and in a file of SQLite.

A class for another database gives connections, transactions, and the marks of its parameters.
"""

from __future__ import annotations

import functools
import os
import sqlite3
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar

from jali.errors import FileError, VersionError
from jali.serve.index import OPEN, Index, KeySet, Upload, Usage

__all__ = ["TABLES", "SqlIndex", "SqliteIndex"]

_VERSION = 2

TABLES = (
    "CREATE TABLE IF NOT EXISTS store (version INTEGER PRIMARY KEY, name TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS key_sets (
        client TEXT NOT NULL, program TEXT NOT NULL, key_id TEXT NOT NULL,
        sha256 TEXT NOT NULL, nbytes BIGINT NOT NULL,
        made DOUBLE PRECISION NOT NULL, used DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (client, program, key_id))""",
    "CREATE INDEX IF NOT EXISTS key_sets_by_blob ON key_sets (sha256)",
    "CREATE INDEX IF NOT EXISTS key_sets_by_use ON key_sets (used)",
    "CREATE TABLE IF NOT EXISTS unused_blobs (sha256 TEXT PRIMARY KEY)",
    """CREATE TABLE IF NOT EXISTS uploads (
        upload TEXT PRIMARY KEY, client TEXT NOT NULL, program TEXT NOT NULL,
        length BIGINT NOT NULL, sha256 TEXT NOT NULL, received BIGINT NOT NULL,
        holder TEXT NOT NULL, state TEXT NOT NULL, key_id TEXT NOT NULL,
        made DOUBLE PRECISION NOT NULL, touched DOUBLE PRECISION NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS uploads_by_client ON uploads (client, state)",
)

_KEY_SET = ", ".join(field.name for field in fields(KeySet))
_UPLOAD = ", ".join(field.name for field in fields(Upload))
_USED_WITHIN = 60.0  # a use is not written again within so many seconds

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _whole(
    method: Callable[Concatenate[SqlIndex, _P], _T],
) -> Callable[Concatenate[SqlIndex, _P], _T]:
    """Makes a method one that can be done again; see SqlIndex._done."""

    @functools.wraps(method)
    def run(index: SqlIndex, /, *given: _P.args, **named: _P.kwargs) -> _T:
        return index._done(lambda: method(index, *given, **named))

    return run


class SqlIndex(Index):
    """An index in a database with tables. Statements name their parameters as ``:name``."""

    #: A statement that gives a row if there is a table of the name "store".
    _FIND_TABLES: ClassVar[str]
    #: What to give instead of a database with tables of another version.
    _OTHER: ClassVar[str]

    def __init__(self) -> None:
        self._lock = threading.RLock()  # of the connection, which threads share
        self._depth = 0
        self._process = os.getpid()

    @abstractmethod
    def _run(self, sql: str, values: dict[str, Any]) -> Any:
        """Runs a statement and returns its cursor."""

    @abstractmethod
    def _begin(self) -> None:
        """Begins a transaction that will write, once no other is under way."""

    @abstractmethod
    def _commit(self) -> None:
        """Ends a transaction well."""

    @abstractmethod
    def _roll_back(self) -> None:
        """Ends a transaction that failed, if it has not ended."""

    def _done(self, work: Callable[[], _T]) -> _T:
        """Does work that is one transaction. If the transaction is undone because its connection was
        lost, the work may be done again."""
        with self._lock:
            return work()

    def _make_tables(self, tables: tuple[str, ...] = TABLES) -> None:
        """Makes the tables if there are none, within a transaction. Raises VersionError if another
        version of Jali made them."""
        if not self._run(self._FIND_TABLES, {}).fetchall():
            for statement in tables:
                self._run(statement, {})
            self._run("INSERT INTO store (version, name) VALUES (:v, '')", {"v": _VERSION})
        versions = [row[0] for row in self._run("SELECT version FROM store", {}).fetchall()]
        if versions != [_VERSION]:
            raise VersionError(
                f"the store was made by another version of Jali (its version is {min(versions, default=0)}): give another {self._OTHER}, or use that version"
            )

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise FileError("an index is not shared with a forked process: open the store there")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock:
            if self._depth:
                yield
                return
            self._begin()
            self._depth = 1
            try:
                yield
                self._commit()
            except BaseException:
                self._roll_back()
                raise
            finally:
                self._depth = 0

    def writing(self) -> AbstractContextManager[None]:
        return self._writing()

    @_whole
    def _write(self, sql: str, /, **values: Any) -> int:
        with self.writing():
            return int(self._run(sql, values).rowcount)

    @_whole
    def _rows(self, sql: str, /, **values: Any) -> list[tuple[Any, ...]]:
        return list(self._run(sql, values).fetchall())

    def name(self) -> str:
        return str(self._rows("SELECT name FROM store")[0][0])

    def set_name(self, name: str) -> None:
        self._write("UPDATE store SET name = :name", name=name)

    def _key_sets(self, where: str, **values: Any) -> list[KeySet]:
        return [
            KeySet(*row)
            for row in self._rows(f"SELECT {_KEY_SET} FROM key_sets WHERE {where}", **values)
        ]

    def key_set(self, client: str, program: str, key_id: str) -> KeySet | None:
        where = "client = :client AND program = :program AND key_id = :key_id"
        found = self._key_sets(where, client=client, program=program, key_id=key_id)
        return found[0] if found else None

    def key_sets(self, client: str) -> list[KeySet]:
        return self._key_sets("client = :client ORDER BY made DESC, key_id, program", client=client)

    def blob_of(self, client: str, sha256: str) -> KeySet | None:
        found = self._key_sets(
            "client = :client AND sha256 = :sha256", client=client, sha256=sha256
        )
        return found[0] if found else None

    @_whole
    def put(self, keys: KeySet) -> None:
        with self.writing():
            self.delete(keys.client, keys.key_id, keys.program)
            self._write("DELETE FROM unused_blobs WHERE sha256 = :sha256", sha256=keys.sha256)
            self._write(
                f"INSERT INTO key_sets ({_KEY_SET}) VALUES ({_marks(_KEY_SET)})", **vars(keys)
            )

    def use(self, keys: KeySet, now: float) -> None:
        if keys.used > now - _USED_WITHIN:
            return
        self._write(
            "UPDATE key_sets SET used = :now WHERE client = :client AND program = :program AND key_id = :key_id AND used < :now",
            now=now,
            client=keys.client,
            program=keys.program,
            key_id=keys.key_id,
        )

    @_whole
    def delete(self, client: str, key_id: str | None = None, program: str | None = None) -> int:
        where, values = "client = :client", {"client": client}
        for name, value in (("key_id", key_id), ("program", program)):
            if value is not None:
                where += f" AND {name} = :{name}"
                values[name] = value
        with self.writing():
            gone = {keys.sha256 for keys in self._key_sets(where, **values)}
            count = self._write(f"DELETE FROM key_sets WHERE {where}", **values)
            for sha256 in gone:
                if not self.is_used(sha256):
                    self._write(
                        "INSERT INTO unused_blobs (sha256) VALUES (:sha256) ON CONFLICT (sha256) DO NOTHING",
                        sha256=sha256,
                    )
            return count

    def unused(self) -> list[str]:
        return [row[0] for row in self._rows("SELECT sha256 FROM unused_blobs")]

    def forget(self, sha256: str) -> None:
        self._write("DELETE FROM unused_blobs WHERE sha256 = :sha256", sha256=sha256)

    def is_used(self, sha256: str) -> bool:
        return self.any_of(sha256) is not None

    def any_of(self, sha256: str) -> KeySet | None:
        found = self._key_sets("sha256 = :sha256 LIMIT 1", sha256=sha256)
        return found[0] if found else None

    def blobs(self) -> dict[str, int]:
        return {
            row[0]: row[1] for row in self._rows("SELECT DISTINCT sha256, nbytes FROM key_sets")
        }

    def least_recent(self, before: float) -> KeySet | None:
        found = self._key_sets("used < :before ORDER BY used, made LIMIT 1", before=before)
        return found[0] if found else None

    def usage(self, client: str | None = None) -> Usage:
        mine = "" if client is None else " WHERE client = :client"
        values = {} if client is None else {"client": client}
        with self._lock:
            [(nbytes, sets)] = self._rows(
                f"SELECT COALESCE(SUM(nbytes), 0), COUNT(*) FROM (SELECT DISTINCT sha256, nbytes FROM key_sets{mine}) AS held",
                **values,
            )
            and_mine = mine.replace("WHERE", "AND")
            [(reserved, uploads)] = self._rows(
                f"SELECT COALESCE(SUM(length), 0), COUNT(*) FROM uploads WHERE state = :state{and_mine}",
                state=OPEN,
                **values,
            )
        return Usage(int(nbytes), int(sets), int(reserved), int(uploads))

    def add_upload(self, upload: Upload) -> None:
        self._write(f"INSERT INTO uploads ({_UPLOAD}) VALUES ({_marks(_UPLOAD)})", **vars(upload))

    def upload(self, name: str) -> Upload | None:
        found = self._rows(f"SELECT {_UPLOAD} FROM uploads WHERE upload = :name", name=name)
        return Upload(*found[0]) if found else None

    @_whole
    def take(self, name: str, holder: str) -> Upload | None:
        with self.writing():
            found = self.upload(name)
            if found is not None and found.holder != holder:
                self._write(
                    "UPDATE uploads SET holder = :holder WHERE upload = :name",
                    holder=holder,
                    name=name,
                )
            return found

    def received(self, name: str, holder: str, received: int, now: float) -> bool:
        return bool(
            self._write(
                "UPDATE uploads SET received = :received, touched = :now WHERE upload = :name AND holder = :holder AND state = :state",
                received=received,
                now=now,
                name=name,
                holder=holder,
                state=OPEN,
            )
        )

    def end(self, name: str, state: str, key_id: str, now: float) -> None:
        self._write(
            "UPDATE uploads SET state = :state, key_id = :key_id, touched = :now WHERE upload = :name AND state = :open",
            state=state,
            key_id=key_id,
            now=now,
            name=name,
            open=OPEN,
        )

    def open_uploads(self) -> list[str]:
        return [
            row[0]
            for row in self._rows("SELECT upload FROM uploads WHERE state = :state", state=OPEN)
        ]

    @_whole
    def drop_uploads(self, before: float) -> list[str]:
        old = "FROM uploads WHERE touched < :before"
        if not self._rows(f"SELECT 1 {old} LIMIT 1", before=before):
            return []
        with self.writing():
            names = [row[0] for row in self._rows(f"SELECT upload {old}", before=before)]
            self._write(f"DELETE {old}", before=before)
            return names


def _marks(names: str) -> str:
    return ", ".join(f":{name}" for name in names.split(", "))


class SqliteIndex(SqlIndex):
    """An index in a file, in the mode with a write-ahead log: processes of one machine share it.

    path: the file, which is made if there is none.
    patience: how many seconds to wait for other writers.

    Raises FileError if it cannot be opened, and VersionError.

    >>> import pathlib, tempfile
    >>> from jali.serve.sql_index import SqliteIndex
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index = SqliteIndex(pathlib.Path(folder, "index.sqlite"))
    ...     print(index.usage())
    ...     index.close()
    Usage(nbytes=0, sets=0, reserved=0, uploads=0)
    """

    _FIND_TABLES = "SELECT 1 FROM sqlite_master WHERE name = 'store'"
    _OTHER = "folder"

    def __init__(self, path: str | os.PathLike[str], *, patience: float = 30.0) -> None:
        super().__init__()
        self._path = Path(path)
        try:
            self._connection = sqlite3.connect(
                self._path, timeout=patience, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode = WAL")
            # What was committed survives the loss of power, too.
            self._connection.execute("PRAGMA synchronous = FULL")
        except sqlite3.Error as error:
            raise FileError(f"{self._path} cannot be used as an index: {error}") from None
        with self.writing():
            self._make_tables()

    def _run(self, sql: str, values: dict[str, Any]) -> Any:
        self._check_process()
        try:
            return self._connection.execute(sql, values)
        except sqlite3.Error as error:
            raise FileError(f"the index {self._path} failed: {error}") from error

    def _begin(self) -> None:
        self._run("BEGIN IMMEDIATE", {})

    def _commit(self) -> None:
        self._run("COMMIT", {})

    def _roll_back(self) -> None:
        if self._connection.in_transaction:  # an error may have ended it
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        with self._lock:
            self._connection.close()
