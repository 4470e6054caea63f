"""An index in PostgreSQL: connections that are lost, servers that end, and what errors say. Tests of
the store, of uploads and of crashes run on it, too."""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from postgres_world import PASSWORD, Server
from serve_world import content, files, send, served, started, uploads_of

import jali
from jali.serve.index import OPEN, IndexUnavailable, KeySet, Upload
from jali.serve.keys import KeyStore
from jali.serve.postgres_index import PostgresIndex
from jali.serve.refusal import Refusal
from jali.serve.uploads import Uploads

NETWORK = served("network")
DATA = NETWORK.keys[0]


@pytest.fixture
def index(postgres: Server, tmp_path: Path) -> Iterator[PostgresIndex]:
    index = PostgresIndex(postgres.url_of(tmp_path))
    yield index
    index.close()


def upload(name: str = "u", received: int = 0) -> Upload:
    return Upload(name, "alice", "p", 100, "", received, "me", OPEN, "", 1.0, 1.0)


def terminate(postgres: Server, index: PostgresIndex) -> None:
    """Ends the connection of an index, as an operator or a network does."""
    backend = index._connection.info.backend_pid
    postgres.run(f"SELECT pg_terminate_backend({backend}, 10000)")


class Around:
    """A connection that does something around a statement."""

    def __init__(
        self, connection: Any, word: str, work: Callable[[Callable[[], Any]], Any]
    ) -> None:
        self._connection, self._word, self._work = connection, word, work

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, sql: str, *values: Any) -> Any:
        real = lambda: self._connection.execute(sql, *values)  # noqa: E731
        return self._work(real) if sql.startswith(self._word) else real()


def test_a_connection_that_was_lost_is_made_again(postgres: Server, index: PostgresIndex) -> None:
    """Between transactions nobody notices."""
    for k in range(3):
        terminate(postgres, index)
        index.add_upload(upload(f"u{k}"))
        terminate(postgres, index)
        assert index.upload(f"u{k}") == upload(f"u{k}")
    terminate(postgres, index)
    with index.writing():
        assert index.take("u1", "other") == upload("u1")
    terminate(postgres, index)
    assert sorted(index.drop_uploads(2.0)) == ["u0", "u1", "u2"]


def test_a_transaction_that_was_cut_changes_nothing(postgres: Server, index: PostgresIndex) -> None:
    """If it is of several methods, the caller learns of it: nothing of it is there, and nothing that
    follows is done outside of it."""
    with pytest.raises(IndexUnavailable, match="try again") as cut, index.writing():
        index.add_upload(upload("first"))
        terminate(postgres, index)
        with pytest.raises(IndexUnavailable):
            index.add_upload(upload("second"))
        index.add_upload(upload("third"))
    assert cut.value.status == 503 and not cut.value.unknown
    assert list(index.open_uploads()) == []
    with pytest.raises(IndexUnavailable), index.writing():
        index.add_upload(upload("first"))
        terminate(postgres, index)
    assert list(index.open_uploads()) == []


@pytest.mark.parametrize("arrives", [False, True])
def test_the_end_of_a_transaction_is_cut(
    arrives: bool, postgres: Server, index: PostgresIndex
) -> None:
    """Whether the server did it or not: it is done once. A second time would be refused, as an upload
    has one name."""
    seen = []

    def cut(commit: Callable[[], Any]) -> Any:
        if arrives:
            commit()
        terminate(postgres, index)
        seen.append(True)
        return commit()

    index._connection = Around(index._connection, "COMMIT", cut)
    index.add_upload(upload())
    assert index.upload("u") == upload() and seen == [True]
    index._connection = Around(index._connection, "COMMIT", cut)
    if arrives:
        with index.writing():
            index.add_upload(upload("v"))
    else:
        with pytest.raises(IndexUnavailable) as lost, index.writing():
            index.add_upload(upload("v"))
        assert not lost.value.unknown
    assert (index.upload("v") is not None) == arrives and seen == [True, True]


def test_nobody_knows_while_the_server_is_away(postgres: Server, tmp_path: Path) -> None:
    """Then the error says so, and the client asks for the offset."""
    index = PostgresIndex(postgres.url_of(tmp_path), patience=1.0)

    def cut(commit: Callable[[], Any]) -> Any:
        commit()
        postgres.kill()
        return commit()

    index._connection = Around(index._connection, "COMMIT", cut)
    with pytest.raises(IndexUnavailable) as lost:
        index.add_upload(upload())
    assert lost.value.unknown
    waited = time.monotonic()
    with pytest.raises(IndexUnavailable) as lost:
        index.upload("u")  # others have waited
    assert time.monotonic() - waited < 1.0 or not index._not_before
    assert "cannot be reached" in lost.value.reason and not lost.value.unknown
    assert lost.value.headers["Retry-After"] and str(postgres.folder) not in str(lost.value)
    postgres.start()
    time.sleep(max(0.0, index._not_before - time.monotonic()))
    assert index.upload("u") == upload()
    index.close()


def test_an_error_that_was_caught_does_not_pass_for_success(index: PostgresIndex) -> None:
    index.add_upload(upload())
    with pytest.raises(jali.FileError, match="transaction is aborted"), index.writing():
        index.add_upload(upload("other"))
        with pytest.raises(jali.FileError, match="duplicate"):
            index.add_upload(upload())
    assert index.upload("other") is None


def test_one_that_stands_still_does_not_keep_others(postgres: Server, tmp_path: Path) -> None:
    """The server ends its transaction, and others wait no longer than they are told."""
    url = postgres.url_of(tmp_path)
    slow, hasty, patient = (PostgresIndex(url, patience=p) for p in (3.0, 0.2, 60.0))
    with pytest.raises(IndexUnavailable), slow.writing():
        slow.add_upload(upload("slow"))
        with pytest.raises(IndexUnavailable) as busy:
            hasty.add_upload(upload("hasty"))
        assert "lock timeout" in busy.value.reason or "statement timeout" in busy.value.reason
        patient.add_upload(upload("patient"))
        assert hasty.upload("slow") is None
    assert sorted(slow.open_uploads()) == ["patient"]
    for each in (slow, hasty, patient):
        each.close()


def test_files_stay_locked_when_the_transaction_is_lost(postgres: Server, tmp_path: Path) -> None:
    """One that removes a file does not know that its transaction was ended. Another does not come to
    keep the same bytes until it knows."""
    url = postgres.url_of(tmp_path)
    with KeyStore(tmp_path, index=url) as store, KeyStore(tmp_path, index=url) as other:
        send(uploads_of(store, "network"), "alice", "network")
        store.index.delete("alice")
        sending = threading.Thread(
            target=send, args=(uploads_of(other, "network"), "bob", "network")
        )
        with pytest.raises(IndexUnavailable), store.changing():
            (sha256,) = store.index.unused()
            assert not store.index.is_used(sha256)
            terminate(postgres, store.index)  # type: ignore[arg-type]
            sending.start()
            sending.join(0.5)
            assert sending.is_alive() and other.sets("bob") == []
            store.blobs.remove(sha256)
            store.index.forget(sha256)
        sending.join()
        assert content(other, "bob", "network", NETWORK.key_ids[0]) == DATA
        store.clean()
        assert content(store, "bob", "network", NETWORK.key_ids[0]) == DATA


@contextmanager
def restarting(postgres: Server) -> Iterator[None]:
    """Within it, the server is away, and then starts."""
    postgres.kill()
    postgres.start(after=0.3)
    yield
    postgres.wait()


def test_an_upload_goes_on_while_the_server_starts_again(postgres: Server, tmp_path: Path) -> None:
    """It is killed between bytes, before the end, and within the transaction that keeps the keys.
    Only there must the client send its last request again."""
    with KeyStore(tmp_path, index=postgres.url_of(tmp_path)) as store:
        uploads = uploads_of(store, "network", sync_bytes=1)
        with restarting(postgres):
            name = uploads.create("alice", NETWORK.program, len(DATA)).upload
        third = len(DATA) // 3
        with uploads.append("alice", name, 0, complete=True) as append:
            append.write(DATA[:third])
            with restarting(postgres):
                append.write(DATA[third : 2 * third])
            assert append.acknowledged == 2 * third
        assert uploads.state("alice", name).received == 2 * third

        real = store.blobs.keep

        def cut(*given: Any) -> None:
            real(*given)
            store.blobs.keep = real  # type: ignore[method-assign]
            postgres.kill()

        store.blobs.keep = cut  # type: ignore[method-assign]
        with uploads.append("alice", name, 2 * third, complete=True) as append:
            append.write(DATA[2 * third :])
            with pytest.raises(IndexUnavailable):
                append.end()
        postgres.start()
        found = uploads.state("alice", name)
        assert (found.state, found.received) == (OPEN, len(DATA))
        assert store.sets("alice") == []
        with (
            uploads.append("alice", name, len(DATA), complete=True) as append,
            restarting(postgres),
        ):
            assert append.end().state == "done"
        assert content(store, "alice", "network", NETWORK.key_ids[0]) == DATA
        assert list(files(tmp_path).values()) == [DATA] and store.verify() == []


def test_processes_make_the_tables_at_once(postgres: Server, tmp_path: Path) -> None:
    url = postgres.url_of(tmp_path)

    def make() -> None:
        index = PostgresIndex(url)
        assert index.name() == ""
        index.close()

    for join in [started(make) for _ in range(4)]:
        join()


def shown(error: BaseException) -> str:
    """All that a log or a trace could have of an error."""
    chain, texts = error, [repr(error), *map(str, error.args)]
    while chain is not None:
        texts += traceback.format_exception(chain)
        chain = chain.__cause__  # type: ignore[assignment]
    return "\n".join(texts)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:geheim/wort@host/d",  # libpq takes "geheim" for a port
        "postgresql://u:geheim@wort@host/d",  # and "wort@host" for a host
        "postgresql://u:geheim%wort@host/d",
        "postgresql://u:geheim/a?wort=b@host/d",
        "postgresql://u:geheim/wort",
        "postgresql://host/d?geheim=wort",
        "mysql://u:geheim@wort/d",
        "host=h password=geheim_wort",
        "geheim_wort",
    ],
)
def test_urls_that_are_wrong_are_not_repeated(url: str, tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="the package psycopg is not installed")
    with pytest.raises(jali.InvalidArgument, match="%40 for @") as wrong:
        KeyStore(tmp_path, index=url)
    assert "geheim" not in str(wrong.value) and "wort" not in str(wrong.value)


def test_no_error_has_the_password(
    postgres: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    right = postgres.url_of(tmp_path)
    wrong = postgres.url(password="Kennwort-8")
    host = f"?host={postgres.folder}"
    for url, sentence in (
        (wrong, "password authentication failed"),
        (right.replace("/postgres?", "/nowhere?"), "does not exist"),
        (postgres.url("no_schema"), "make the schema"),
        (right.replace(host, f"?host={tmp_path}"), "cannot be used as an index"),
        (right.replace(host, "?host=127.0.0.1&port=1"), "refused"),
        (postgres.url(user="Kennwort-8", password="Kennwort-8"), "the server refused"),
    ):
        with pytest.raises(jali.FileError, match=sentence) as failed:
            KeyStore(tmp_path, index=url)
        assert not words_of(shown(failed.value)), url
    index = PostgresIndex(right, patience=0.5)
    postgres.kill()
    with pytest.raises(IndexUnavailable) as away:
        index.add_upload(upload())
    postgres.start()
    for text in (shown(away.value), away.value.reason, repr(vars(index)), caplog.text):
        assert not words_of(text)
    time.sleep(max(0.0, index._not_before - time.monotonic()))
    index.add_upload(upload())
    with pytest.raises(jali.FileError, match="duplicate key") as twice:
        index.add_upload(upload())
    assert "alice" not in shown(twice.value) and "DETAIL" not in shown(twice.value)
    index.close()


def words_of(text: str) -> list[str]:
    """Which of the secrets a text has."""
    from urllib.parse import quote

    hidden = (PASSWORD, quote(PASSWORD, safe=""), "Kennwort-8", PASSWORD[:6], PASSWORD[-5:])
    return [word for word in hidden if word in text]


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(jali.Unsupported, match=r"pip install psycopg\[binary\]"):
        KeyStore(tmp_path, index="postgresql://alice@host/d")


def test_a_database_of_another_encoding_is_refused(postgres: Server, tmp_path: Path) -> None:
    postgres.run(
        "DROP DATABASE IF EXISTS latin",
        "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
    )
    with pytest.raises(jali.FileError, match="with the encoding UTF8"):
        KeyStore(tmp_path, index=postgres.url().replace("/postgres?", "/latin?"))


def test_a_user_that_makes_no_tables_uses_those_that_there_are(
    postgres: Server, tmp_path: Path
) -> None:
    url = postgres.url_of(tmp_path)
    schema = url.rpartition("%3D")[2]
    user = f"user_{schema}"
    postgres.run(
        f"CREATE ROLE {user} LOGIN PASSWORD 'Kennwort-8'",
        f"GRANT USAGE ON SCHEMA {schema} TO {user}",
    )
    theirs = postgres.url(schema, user=user, password="Kennwort-8")
    with pytest.raises(jali.FileError, match="let the user of the URL make tables"):
        KeyStore(tmp_path, index=theirs)
    KeyStore(tmp_path, index=url).close()
    postgres.run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {user}")
    with KeyStore(tmp_path, index=theirs) as store:
        key_id = send(uploads_of(store, "network"), "alice", "network")
        assert content(store, "alice", "network", key_id) == DATA


def test_what_is_acknowledged_is_on_the_servers_disk(postgres: Server, tmp_path: Path) -> None:
    """Also if the database says otherwise."""
    postgres.run("ALTER DATABASE postgres SET synchronous_commit = off")
    try:
        index = PostgresIndex(postgres.url_of(tmp_path))
        assert index._rows("SHOW synchronous_commit") == [("on",)]
        index.close()
    finally:
        postgres.run("ALTER DATABASE postgres RESET synchronous_commit")


def test_names_of_any_letters_and_length(index: PostgresIndex) -> None:
    longest = KeySet("\U0001f511" * 500, "p" * 64, "k" * 32, "s" * 64, 1, 1.0, 1.0)
    odd = KeySet("%s :name 'x' \"y\" \\", "p", "k", "s", 2**62, 1.5, 2.5)
    for keys in (longest, odd):
        index.put(keys)
        assert index.key_set(keys.client, keys.program, keys.key_id) == keys
    assert index.usage(odd.client).nbytes == 2**62


def test_names_with_nul_are_unknown(postgres: Server, tmp_path: Path) -> None:
    with KeyStore(tmp_path, index=postgres.url_of(tmp_path)) as store:
        for work in (Uploads(store, {}).state, Uploads(store, {}).cancel):
            with pytest.raises(Refusal) as unknown:
                work("alice", "a\0b")
            assert unknown.value.status == 404
