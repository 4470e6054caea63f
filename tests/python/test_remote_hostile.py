"""A server that lies, or that is not the one that was meant, gets no secret, and gives a clear error
within bounds of memory and time."""

from __future__ import annotations

import gzip
import logging
import socket
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from remote_world import URL, httpx, problem, program_of, serving

import jali
from jali.remote import AccessDenied, BadAnswer, Unavailable

ROWS = np.array([[1, 2, 3, 4], [-9, 9, 0, 5]])
TOKEN = "token-that-nobody-may-see"


def instead(end: str, answer: Any) -> Callable[[Any], Any]:
    """Another answer to the requests whose path ends so."""
    return lambda request: answer if request.url.path.endswith(end) else None


class Endless(httpx.AsyncByteStream):  # type: ignore[misc, name-defined]
    """Content that never ends, and how much of it was read."""

    def __init__(self) -> None:
        self.read = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            self.read += 1 << 16
            yield bytes(1 << 16)


@pytest.mark.parametrize("path", ["/programs", "/manifest", "/run", "/uploads"])
@pytest.mark.parametrize("status", [200, 500])
def test_endless_answers_are_cut(path: str, status: int) -> None:
    with serving("integers") as service:
        remote = service.remote()
        remote.keys()
        remote.delete_keys() if path == "/uploads" else None
        content = Endless()
        service.fault = instead(path, httpx.Response(status, stream=content))
        with pytest.raises(BadAnswer, match="bytes or more"):
            if path in ("/programs", "/manifest"):
                service.remote(max_bytes=1 << 22)
            else:
                remote.keys() if path == "/uploads" else remote(ROWS)
        assert content.read <= 6 << 20


def test_long_answers_are_refused_by_their_heads() -> None:
    with serving("integers") as service:
        content = Endless()
        headers = {"content-length": str(1 << 40)}
        service.fault = instead("/programs", httpx.Response(200, headers=headers, stream=content))
        tracemalloc.start()
        try:
            with pytest.raises(BadAnswer, match=r"1\.0 MiB may come"):
                service.remote()
            assert tracemalloc.get_traced_memory()[1] < 8 << 20
        finally:
            tracemalloc.stop()
        assert content.read == 0


def test_packed_answers_are_refused() -> None:
    bomb = gzip.compress(bytes(1 << 24))
    headers = {"content-encoding": "gzip", "content-length": str(len(bomb))}
    with serving("integers") as service:
        service.fault = instead("/programs", httpx.Response(200, headers=headers, stream=Endless()))
        with pytest.raises(BadAnswer, match="packed"):
            service.remote()
        assert service.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirection_is_followed(status: int) -> None:
    with serving("integers") as service:
        remote = service.remote(token=TOKEN)
        remote.keys()
        service.fault = lambda r: httpx.Response(
            status, headers={"location": "https://evil.example"}
        )
        for work in (lambda: service.remote(token=TOKEN), lambda: remote(ROWS), remote.delete_keys):
            with pytest.raises(BadAnswer, match="nobody is followed"):
                work()
        assert {r.url.host for r in service.requests} == {"fhe.example"}


def test_another_programs_manifest_is_refused() -> None:
    with serving("integers", "network") as service:
        other = program_of("network").manifest.to_bytes()
        service.fault = instead("/manifest", httpx.Response(200, content=other))
        with pytest.raises(BadAnswer, match="manifest of another program"):
            service.remote(program="integers")
        mine = program_of("integers").manifest
        for tag in ('"' + "0" * 64 + '"', 'W/"x"', "*"):
            answer = httpx.Response(200, content=mine.to_bytes(), headers={"etag": tag})
            service.fault = instead("/manifest", answer)
            with pytest.raises(BadAnswer, match="manifest of another program"):
                service.remote(program="integers")
        service.fault = instead("/manifest", httpx.Response(200, content=mine.to_bytes()))
        assert service.remote(program="integers").client.manifest.fingerprint == mine.fingerprint


def test_manifests_that_ask_too_much_are_refused() -> None:
    with serving("network") as service:
        with pytest.raises(jali.InsecureParams):
            service.remote(security=128)
        for secret in (None, "/no/such/file"):  # is not looked for
            with pytest.raises(jali.LimitExceeded, match="give the client max_bytes="):
                service.remote(max_bytes=1 << 14, secret=secret)
        with pytest.raises(jali.FileError):
            service.remote(secret="/no/such/file")
        data = program_of("network").manifest.to_bytes()
        for bad in (b"", b"JALI", data[:-1], data[:100] + b"\xff" + data[101:], b"x" * 500):
            service.fault = instead("/manifest", httpx.Response(200, content=bad))
            with pytest.raises(jali.Error) as caught:
                service.remote()
            assert type(caught.value) in (jali.CorruptData, jali.ParamsMismatch, jali.LimitExceeded)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>",
        b"[]",
        b'{"programs": 7}',
        b'{"programs": [{}]}',
        b'{"programs": [{"name": 1, "fingerprint": "%b", "key_bytes": 1}]}' % (b"a" * 64),
        b'{"programs": [{"name": "x", "fingerprint": "../../x", "key_bytes": 1}]}',
        b'{"programs": [{"name": "x", "fingerprint": "%b", "key_bytes": -1}]}' % (b"a" * 64),
        b'{"programs": [{"name": "x", "fingerprint": "%b", "key_bytes": 1, "seconds": [2]}]}'
        % (b"a" * 64),
        b"[" * 100_000,
        b'{"programs": [' + b"{}," * 300_000 + b"{}]}",
    ],
)
def test_lists_that_are_none(content: bytes) -> None:
    with serving("integers") as service:
        service.fault = instead("/programs", httpx.Response(200, content=content))
        with pytest.raises(BadAnswer, match="lists no programs"):
            service.remote()


def test_names_of_programs_are_cleaned() -> None:
    name = "\x1b[31mred\nline" + "x" * 500
    entries = [{"name": name, "fingerprint": c * 64, "key_bytes": 1} for c in "ab"]
    with serving("integers") as service:
        service.fault = instead("/programs", httpx.Response(200, json={"programs": entries}))
        with pytest.raises(jali.InvalidArgument, match="several programs") as caught:
            service.remote()
        assert str(caught.value).isprintable() and len(str(caught.value)) < 500


def test_replies_to_others_are_refused() -> None:
    with serving("integers") as service:
        remote = service.remote()
        remote.keys()
        remote(ROWS)
        (two,) = service.answered.values()
        service.fault = instead("/run", httpx.Response(200, content=two))
        with pytest.raises(BadAnswer, match="reply to another request"):
            remote(ROWS[0])
        other = service.remote()
        with pytest.raises(jali.KeyMismatch):
            other(ROWS)
        request = service.requests[-1].content
        for bad in (b"", request, two[:-1], two[:200] + bytes([two[200] ^ 1]) + two[201:]):
            service.fault = instead("/run", httpx.Response(200, content=bad))
            with pytest.raises((jali.CorruptData, jali.InvalidArgument)):
                remote(ROWS)


def test_decryption_checks_results(rng: np.random.Generator) -> None:
    """A reply of the right form with wrong ciphertexts is no result."""
    x = rng.uniform(-1, 1, (1, 8))
    with serving("network") as service:
        remote = service.remote()
        remote.keys()
        remote(x)
        (data,) = service.answered.values()
        manifest = remote.client.manifest
        reply = jali.nn.Message.reply(data, manifest)
        (one,) = reply.arrays[0][:1]
        wide = remote.client.secret.encrypt(
            np.full(manifest.params.slots, 40.0), level=one.level, peak=40
        )
        lie = replace(reply, arrays=((wide,),)).to_bytes()
        service.fault = instead("/run", httpx.Response(200, content=lie))
        with pytest.raises(jali.Error):
            remote(x)


def test_cookies_are_not_kept() -> None:
    with serving("integers") as service:
        service.faults = [
            lambda r: httpx.Response(503, headers={"set-cookie": "id=1; Path=/; Max-Age=999"})
        ]
        service.remote()
        assert len(service.requests) > 1
        assert not any("cookie" in r.headers for r in service.requests)


def test_no_secret_and_no_number_is_sent_or_written(
    rng: np.random.Generator, caplog: pytest.LogCaptureFixture, tmp_path: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    with serving("integers", token=TOKEN) as service:
        with pytest.raises(AccessDenied, match="token=") as denied:
            service.remote(token="another-token-of-mine")
        remote = service.remote(token=TOKEN)
        remote.keys()
        remote(ROWS)
        secret = remote.client.secret.secret_to_bytes()[64:-16]
        sent = b"".join(r.content + bytes(r.url.raw_path) for r in service.requests)
        sent += b"".join(k + v for r in service.requests for k, v in r.headers.raw)
        windows = {secret[k : k + 8] for k in range(len(secret) - 8)}
        assert len(windows) > 100
        found = {sent[k : k + 8] for k in range(len(sent) - 8)}
        assert not windows & found
        planted = sent + secret[30:60]
        assert windows & {planted[k : k + 8] for k in range(len(planted) - 8)}
        service.fault = lambda r: problem(500, "internal", f"you sent {TOKEN}: no")
        with pytest.raises(jali.Error, match='said: "you sent …: no"') as failed:
            remote(ROWS)
        shown = [str(denied.value), str(failed.value), repr(remote), repr(remote._session)]
        shown += [repr(remote._session._options), caplog.text]
        for text in shown:
            assert TOKEN not in text and "another-token-of-mine" not in text


def test_bad_tokens_are_refused_without_being_shown() -> None:
    for token in ("", "a b", "a\r\nX: y", "ü", "x" * 5000, 7):
        with pytest.raises(jali.InvalidArgument, match="token must be") as caught:
            jali.Remote(URL, token=token)  # type: ignore[arg-type]
        assert str(token) not in str(caught.value).replace("token must", "") or token in ("", 7)


@contextmanager
def talking(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server on loopback that does with each connection what it likes."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.1)
    ended = threading.Event()

    def accept() -> None:
        while not ended.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            with connection:
                connection.settimeout(5)
                with suppress(OSError):
                    talk(connection)

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        ended.set()
        thread.join()
        listener.close()


def _drip(connection: socket.socket, data: bytes) -> None:
    """Sends a byte now and then: each comes before any time-out of a single read."""
    for byte in data:
        connection.send(bytes([byte]))
        time.sleep(0.05)


def _head(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    _drip(connection, b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 10**4)


def _body(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    _drip(connection, b"x" * 10**5)


@pytest.mark.parametrize("talk", [_head, _body])
def test_slow_answers_end_with_the_deadline(talk: Callable[[socket.socket], None]) -> None:
    with talking(talk) as url:
        began = time.monotonic()
        with pytest.raises(jali.DeadlineExceeded, match=r"manifest was not there within 0\.5 s"):
            jali.Remote(url, deadline=0.5)
        assert time.monotonic() - began < 60  # a drip takes minutes


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\x00\xff" * 100,
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        b"HTTP/1.1 200 OK\r\nA\x1b[31m: b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 200_000,
        b"SSH-2.0-OpenSSH\r\n",
    ],
    ids=range(8),
)
def test_what_is_no_answer_is_unavailable(said: bytes) -> None:
    def talk(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(said)

    with talking(talk) as url:
        with pytest.raises((Unavailable, jali.DeadlineExceeded)) as caught:
            jali.Remote(url, deadline=0.5)
        assert str(caught.value).isprintable() and len(str(caught.value)) < 800


@pytest.fixture
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent again."""
    monkeypatch.setattr("jali.remote.deadline.pause", lambda *_: 1e9)


def test_nobody_listens(once: None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Unavailable, match="cannot be reached"):
        jali.Remote(f"http://127.0.0.1:{port}")


def test_no_proxy_stands_before_this_machine(once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    def talk(connection: socket.socket) -> None:
        asked.append(connection.recv(1 << 16))

    def never(connection: socket.socket) -> None:
        raise AssertionError("the proxy was asked")

    with talking(never) as proxy, talking(talk) as url:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy)
        with pytest.raises(Unavailable):
            jali.Remote(url, token=TOKEN)
    assert len(asked) == 1 and asked[0].startswith(b"GET /v1/programs ")


def test_a_certificate_is_needed(tmp_path: Any) -> None:
    """A server whose certificate nobody vouches for learns nothing."""
    import ssl
    import subprocess

    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("openssl is not installed")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    heard: list[bytes] = []

    def talk(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            heard.append(secure.recv(1 << 16))
            secure.send(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nRetry-After: 60\r\n\r\n")

    with talking(talk) as url:
        url = url.replace("http://127.0.0.1", "https://localhost")
        with pytest.raises(BadAnswer, match=r"cannot prove who it is.*tls="):
            jali.Remote(url, token=TOKEN, deadline=5)
        assert heard == []
        trusted = ssl.create_default_context(cafile=certificate)
        with pytest.raises(Unavailable, match="no room"):
            jali.Remote(url, token=TOKEN, deadline=5, tls=trusted)
        assert f"Bearer {TOKEN}".encode() in heard[0]
    with pytest.raises(jali.InvalidArgument, match=r"ssl\.SSLContext"):
        jali.Remote(url, tls=False)  # type: ignore[arg-type]
