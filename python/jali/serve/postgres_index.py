"""The index in a database of PostgreSQL, which gateways on several machines share."""

from __future__ import annotations

import functools
import os
import re
import secrets
import time
from collections.abc import Callable
from typing import Any, TypeVar

from jali._core import packages
from jali._core.log import logger
from jali.errors import FileError, InvalidArgument, Unsupported
from jali.serve.index import IndexUnavailable
from jali.serve.refusal import Refusal
from jali.serve.sql_index import TABLES, SqlIndex

__all__ = ["PostgresIndex"]

_T = TypeVar("_T")

# Whose transaction was the last of each process: so a process whose connection was lost at the end of
# a transaction knows whether it came to pass.
_TABLES = (
    *TABLES,
    "CREATE TABLE writers (writer TEXT PRIMARY KEY, number BIGINT NOT NULL, ended TIMESTAMPTZ NOT NULL)",
)

# A user, password and host without letters that make one of them look like another: libpq would take
# a part of a password for a host, and name it in its errors.
_URL = re.compile(r"postgres(?:ql)?://(?:[^/@]*@)?[^/@]*(?:/[^@?]*)?(?:\?.*)?")
_SECRETS = ("password", "sslpassword")
_TIMES = 3  # how often a transaction is done that was lost each time
_MAKING = 0x4A414C49  # the number of the lock of those who make tables

# Errors after which the connection is lost, or leads to a server that takes no writes: those of a
# server that ends, and of a transaction that waited for its client for too long.
_LOST = ("57P01", "57P02", "57P03", "57P05", "25006", "25P03")

_ADVICE = {
    "42501": ": let the user of the URL make tables in the first schema of its search path, and use them",
    "3F000": ": make the schema that the URL names",
}


class _Cut(IndexUnavailable):
    """The connection was lost, and what was under way changed nothing."""


class PostgresIndex(SqlIndex):
    """An index in a database of PostgreSQL, of the encoding UTF8.

    url: such as postgresql://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full, with what libpq
        takes after the question mark. Other letters than those of names are written with %. What it
        does not say comes from libpq's environment, e.g. PGPASSWORD or PGPASSFILE.
    patience: how many seconds to wait for other writers, and for a server that ends and starts.

    Tables are made in the first schema of the connection's search path, if there are none. Another
    store needs another database, or another schema: ?options=-csearch_path%3DNAME.

    A connection that is lost is made again. What was under way is done again if it was one method of
    the index, and if the database says that it did not come to pass. A transaction of several methods
    raises IndexUnavailable, and then changed nothing, unless the error says that nobody knows.

    No error has the password.

    Raises InvalidArgument for what is no URL, FileError if the database cannot be used, VersionError,
    and Unsupported if the package psycopg is missing.

    >>> from jali.serve.postgres_index import PostgresIndex
    >>> PostgresIndex("postgresql://jali:pass/word@db.example/jali")
    Traceback (most recent call last):
    jali.errors.InvalidArgument: the URL of an index is not one of PostgreSQL: write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %40 for @, %2F for / and %25 for % in names and passwords
    """

    _FIND_TABLES = "SELECT 1 WHERE to_regclass('store') IS NOT NULL"
    _OTHER = "database or schema"

    def __init__(self, url: str, *, patience: float = 30.0) -> None:
        super().__init__()
        if not isinstance(url, str) or not _URL.fullmatch(url):
            raise _wrong()
        self._psycopg = _psycopg()
        settings = _settings(self._psycopg, url)
        self._where = _place(settings)
        # No attribute has the password: what needs it are functions.
        hidden = [settings[name] for name in _SECRETS if settings.get(name)]
        self._tells: Callable[[str], bool] = lambda text: any(word in text for word in hidden)
        self._connect: Callable[[], Any] = lambda: self._psycopg.connect(**settings)
        self._patience = patience
        self._me, self._number = secrets.token_hex(16), 0
        self._connection: Any = None
        self._not_before, self._reason = 0.0, ""
        try:
            self._connection = self._connected()
            self._open_tables()
        except self._psycopg.Error as error:
            self._forget()
            raise FileError(
                f"{self._where} cannot be used as an index: {self._text(error)}; look at its URL, and whether the server runs"
            ) from None
        except IndexUnavailable as error:
            self._forget()
            raise FileError(f"{self._where} cannot be used as an index: {error.reason}") from None
        except BaseException:
            self._forget()
            raise

    def close(self) -> None:
        with self._lock:
            self._forget()

    # --- connections -----------------------------------------------------------------------------

    def _connected(self) -> Any:
        """A new connection, which waits for nobody longer than the patience. Raises psycopg.Error."""
        connection = self._connect()
        try:
            wait = f"{max(1, round(1000 * self._patience))}ms"
            for name in (
                "statement_timeout",
                "lock_timeout",
                # A gateway that stands still, or whose machine was lost, does not keep others waiting.
                "idle_in_transaction_session_timeout",
            ):
                connection.execute("SELECT set_config(%s, %s, false)", (name, wait))
            # What is acknowledged is on the server's disk.
            connection.execute(
                "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
            )
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_tables(self) -> None:
        encoding = self._execute("SHOW server_encoding", {}).fetchone()[0]
        if encoding != "UTF8":
            raise FileError(
                f"{self._where} has the encoding {encoding}, in which not all names can be written: create the database with the encoding UTF8"
            )
        self._execute("BEGIN", {})
        try:
            self._execute(f"SELECT pg_advisory_xact_lock({_MAKING})", {})
            self._make_tables(_TABLES)
            self._execute("DELETE FROM writers WHERE ended < now() - interval '1 day'", {})
            self._execute("COMMIT", {})
        except BaseException:
            self._roll_back()
            raise

    def _ready(self) -> None:
        """Makes a connection if there is none, and waits for a server that starts."""
        if self._connection is not None and not self._connection.closed:
            return
        if time.monotonic() < self._not_before:  # others have just waited in vain
            raise IndexUnavailable(self._reason)
        end, pause = time.monotonic() + self._patience, 0.05
        while True:
            try:
                self._connection = self._connected()
                logger.info("%s is connected again", self._where)
                return
            except self._psycopg.Error as error:
                self._reason = f"{self._where} cannot be reached: {self._text(error)}"
            if time.monotonic() + pause > end:
                self._not_before = time.monotonic() + 1
                logger.warning("%s", self._reason)
                raise IndexUnavailable(self._reason)
            time.sleep(pause)
            pause = min(2 * pause, 1.0)

    def _forget(self) -> None:
        """Ends the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None and os.getpid() == self._process:  # else it is the parent's
            connection.close()

    def _text(self, error: Any) -> str:
        """What an error says, without secrets and without values of a statement."""
        text = " ".join((error.diag.message_primary or str(error)).split())
        return "the server refused the connection" if self._tells(text) else text

    # --- statements and transactions -------------------------------------------------------------

    def _run(self, sql: str, values: dict[str, Any]) -> Any:
        self._check_process()
        if not self._depth:
            self._ready()
        return self._execute(sql, values)

    def _execute(self, sql: str, values: dict[str, Any]) -> Any:
        """Runs a statement over the connection that there is."""
        if any("\0" in value for value in values.values() if isinstance(value, str)):
            raise Refusal("there is nothing of this name: no name has a NUL", 404, "no-name")
        if self._connection is None:
            raise _Cut(f"the connection to {self._where} was lost")
        try:
            return self._connection.execute(_marked(sql), values)
        except self._psycopg.Error as error:
            reason = f"{self._where} failed: {self._text(error)}"
            if self._connection.closed or error.sqlstate in _LOST:
                logger.warning("%s", reason)
                self._forget()
                raise _Cut(reason) from None
            if isinstance(error, self._psycopg.OperationalError):  # e.g. its disk is full
                raise IndexUnavailable(reason) from None
            raise FileError(reason + _ADVICE.get(error.sqlstate, "")) from None

    def _done(self, work: Callable[[], _T]) -> _T:
        with self._lock:
            for _ in range(0 if self._depth else _TIMES - 1):
                try:
                    return work()
                except _Cut:
                    pass
            return work()

    def _begin(self) -> None:
        self._check_process()
        for left in reversed(range(_TIMES)):
            self._ready()
            try:
                self._take_turn()
                return
            except _Cut:
                if not left:
                    raise
            except BaseException:
                self._roll_back()
                raise

    def _take_turn(self) -> None:
        """Begins a transaction. All writers lock this row, and so wait for each other; what they read
        then is what the one before them left."""
        self._execute("BEGIN ISOLATION LEVEL READ COMMITTED", {})
        self._execute("SELECT 1 FROM store FOR UPDATE", {})

    def _commit(self) -> None:
        self._number += 1
        # It fails if an error within the transaction was caught, after which COMMIT would undo it.
        self._execute(
            "INSERT INTO writers VALUES (:me, :number, now()) ON CONFLICT (writer) DO UPDATE SET number = :number, ended = now()",
            {"me": self._me, "number": self._number},
        )
        try:
            self._execute("COMMIT", {})
        except _Cut as cut:
            if not self._came_to_pass(cut.reason):
                raise

    def _came_to_pass(self, reason: str) -> bool:
        """Whether the transaction whose end was cut is in the database. It is not under way any more
        once its lock is free."""
        try:
            for left in reversed(range(_TIMES)):
                self._ready()
                try:
                    self._take_turn()
                    rows = self._execute(
                        "SELECT number FROM writers WHERE writer = :me", {"me": self._me}
                    ).fetchall()
                    self._execute("ROLLBACK", {})
                    return bool(rows and rows[0][0] == self._number)
                except _Cut:
                    if not left:
                        raise
        except IndexUnavailable:
            pass
        raise IndexUnavailable(reason, unknown=True)

    def _roll_back(self) -> None:
        if self._connection is None:
            return
        try:
            self._connection.execute("ROLLBACK")
        except self._psycopg.Error:
            self._forget()


@functools.cache
def _marked(sql: str) -> str:
    """A statement with psycopg's marks of parameters."""
    return re.sub(r":(\w+)", r"%(\1)s", sql)


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError as error:  # or it finds no libpq
        raise Unsupported(
            f"an index in PostgreSQL needs the package psycopg: run {packages.install('psycopg[binary]')}"
        ) from error
    return psycopg


def _wrong() -> InvalidArgument:
    return InvalidArgument(
        "the URL of an index is not one of PostgreSQL: write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %40 for @, %2F for / and %25 for % in names and passwords"
    )


def _settings(psycopg: Any, url: str) -> dict[str, Any]:
    """What a URL says, and what it leaves open. Raises InvalidArgument, without the URL."""
    try:
        given = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        raise _wrong() from None
    if not all(port.isdecimal() for port in given.get("port", "5432").split(",") if port):
        raise _wrong()
    return {
        "connect_timeout": 10,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
        "target_session_attrs": "read-write",
        "application_name": "jali",
        **given,
        "client_encoding": "UTF8",
        "autocommit": True,
        "prepare_threshold": None,
    }


def _place(settings: dict[str, Any]) -> str:
    """The database, in words."""
    database = settings.get("dbname") or settings.get("user") or "of the user"
    hosts = settings.get("host") or settings.get("service") or "the server of the environment"
    return f"the database {database} at {hosts}"
