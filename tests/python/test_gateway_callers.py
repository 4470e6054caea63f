"""Who calls a service: tokens, fields of a proxy, certificates, functions of one's own."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from gateway_world import KEY, httpx, refused, reply_to, running
from serve_world import served

from jali.errors import FileError, InvalidArgument
from jali.serve import auth
from jali.serve.auth import Client, Peer, ProxyHeader, Tokens
from jali.serve.gateway import Settings
from jali.serve.server import Tls

RUN = f"/v1/programs/{served('network').program}/run"


def hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def asked(way: auth.Identify, address: str = "", **fields: str) -> Client | None:
    return asyncio.run(way(fields, Peer(address)))


async def from_field(headers: Any, peer: Peer) -> Client | None:
    """A function that an operator may write."""
    return Client("carol", 2.0) if headers.get("x-magic") == "yes" else None


def not_asynchronous(headers: Any, peer: Peer) -> Client | None:
    return None


def test_tokens_say_who_calls(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# of people\n\n{hashed('one')} alice\n{hashed('two').upper()} bob 2.5\n")
    tokens = Tokens(path)
    assert asked(tokens, authorization="Bearer one") == Client("alice")
    assert asked(tokens, authorization="bearer  two ") == Client("bob", 2.5)
    for text in ("", "one", "Basic one", "Bearer", "Bearer ", "Bearer three", "Bearer one two"):
        assert asked(tokens, authorization=text) is None
    assert asked(tokens, authorization=f"Bearer {hashed('one')}") is None
    assert asked(tokens) is None


def test_tokens_are_read_again_when_they_change(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"{hashed('one')} alice\n")
    tokens = Tokens(path)
    path.write_text(f"{hashed('two')} alice\nand more")
    assert asked(tokens, authorization="Bearer one") == Client("alice")  # it is being written
    path.write_text(f"{hashed('two')} alice\n")
    assert asked(tokens, authorization="Bearer one") is None
    assert asked(tokens, authorization="Bearer two") == Client("alice")
    path.unlink()
    assert asked(tokens, authorization="Bearer two") == Client("alice")


@pytest.mark.parametrize(
    "line",
    [
        "secret alice",
        hashed("a"),
        f"{hashed('a')} a 0",
        f"{hashed('a')} a nan",
        f"{hashed('a')} a 1 2",
    ],
)
def test_lines_that_are_no_tokens_are_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "tokens").write_text(f"# first\n{line}\n")
    with pytest.raises(InvalidArgument, match=r"line 2 of .*tokens is not a SHA-256") as caught:
        Tokens(tmp_path / "tokens")
    assert "secret" not in str(caught.value)
    with pytest.raises(FileError):
        Tokens(tmp_path / "no-file")


def test_a_field_of_a_proxy_counts_from_its_addresses_alone() -> None:
    proxy = ProxyHeader("X-Forwarded-User", ["10.0.0.0/8", "192.0.2.7", "fd00::/8"])
    for address in ("10.255.0.1", "192.0.2.7", "::ffff:10.0.0.1", "fd00::1"):
        assert asked(proxy, address, **{"x-forwarded-user": "alice"}) == Client("alice")
    for address in ("11.0.0.1", "192.0.2.8", "", "unix", "::1"):
        assert asked(proxy, address, **{"x-forwarded-user": "alice"}) is None
    for name in ("", " ", "a\x07b", "a" * 501):
        assert asked(proxy, "10.0.0.1", **{"x-forwarded-user": name}) is None
    assert asked(proxy, "10.0.0.1") is None
    with pytest.raises(InvalidArgument, match="from which addresses"):
        ProxyHeader("X-User", [])
    with pytest.raises(InvalidArgument, match=r"10\.0\.0\.0/8"):
        ProxyHeader("X-User", ["proxy.example"])
    with pytest.raises(InvalidArgument, match="letters, digits"):
        ProxyHeader("X User", ["10.0.0.1"])


def test_a_function_is_found_by_its_path() -> None:
    found = auth.by_path("test_gateway_callers:from_field")
    assert asked(found, **{"x-magic": "yes"}) == Client("carol", 2.0)
    for path in ("jali", "no.such:module", "jali.serve.auth:missing", ":x", "x:"):
        with pytest.raises(InvalidArgument, match="cannot be imported"):
            auth.by_path(path)
    with pytest.raises(InvalidArgument, match="async def"):
        auth.by_path("test_gateway_callers:not_asynchronous")


def test_the_first_way_that_knows_the_caller_counts(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"{hashed('one')} alice\n")
    both = auth.first_of([Tokens(tmp_path / "tokens"), from_field])
    assert asked(both, authorization="Bearer one", **{"x-magic": "yes"}) == Client("alice")
    assert asked(both, **{"x-magic": "yes"}) == Client("carol", 2.0)
    assert asked(both) is None


def test_listening_for_others_needs_a_way_to_know_them() -> None:
    for host in ("127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"):
        auth.check_binding(host, authenticated=False, insecure=False)
    for host in ("0.0.0.0", "::", "192.0.2.1", "", "no-such-host.invalid"):
        with pytest.raises(InvalidArgument, match=r"--tokens.*--insecure-no-auth"):
            auth.check_binding(host, authenticated=False, insecure=False)
        auth.check_binding(host, authenticated=True, insecure=False)
        auth.check_binding(host, authenticated=False, insecure=True)


def test_names_of_clients() -> None:
    for name in ("", "a\nb", "a" * 501):
        with pytest.raises(InvalidArgument):
            Client(name)
    for weight in (0, -1, float("inf"), float("nan")):
        with pytest.raises(InvalidArgument):
            Client("alice", weight)


def test_everything_but_health_asks_who_calls(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"{hashed('one')} alice 3\n{hashed('two')} bob\n")
    settings = Settings(operators=frozenset({"bob"}))
    with (
        running(tmp_path, identify=Tokens(path), settings=settings) as world,
        world.client() as client,
    ):
        for route in ("/healthz", "/readyz"):
            assert client.get(route).status_code == 200
        for route in ("/v1/programs", "/v1/keys", "/metrics", "/openapi.json", "/nothing", "/"):
            answer = client.get(route)
            refused(answer, 401, "unauthenticated")
            assert answer.headers["WWW-Authenticate"] == "Bearer"
        refused(client.post(RUN, content=bytes(9 << 20)), 401, "unauthenticated")
        alice = {"Authorization": "Bearer one", "Jali-Key": KEY, "Host": "service.example"}
        assert client.post(RUN, content=b"a", headers=alice).content == reply_to(b"a")
        (admitted,) = world.service.admitted
        assert (admitted["client"], admitted["weight"]) == ("alice", 3.0)
        refused(client.get("/metrics", headers=alice), 403, "forbidden")
        bob = {"Authorization": "Bearer two"}
        assert b"jali_worker_up" in client.get("/metrics", headers=bob).content
        twice = [("Authorization", "Bearer one"), ("Authorization", "Bearer two")]
        refused(client.get("/v1/keys", headers=twice), 401, "unauthenticated")


def test_a_way_that_fails_lets_nobody_in(tmp_path: Path) -> None:
    async def broken(headers: Any, peer: Peer) -> Client | None:
        raise RuntimeError("the directory does not answer")

    with running(tmp_path, identify=broken) as world, world.client() as client:
        refused(client.get("/v1/keys"), 500, "internal")


# --- TLS ------------------------------------------------------------------------------------------

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")


def signed(folder: Path, name: str, subject: str, issuer: str = "") -> tuple[Path, Path]:
    """A certificate and its key, signed by itself or by an issuer."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    words += ["-nodes", "-days", "2", "-subj", subject, "-keyout", str(key), "-out", str(cert)]
    is_authority = "FALSE" if issuer else "TRUE"
    words += ["-addext", "subjectAltName=IP:127.0.0.1"]
    words += ["-addext", f"basicConstraints=critical,CA:{is_authority}"]
    if issuer:
        words += ["-CA", str(folder / f"{issuer}.pem"), "-CAkey", str(folder / f"{issuer}.key")]
    subprocess.run(words, check=True, capture_output=True, env={**os.environ, "OPENSSL_CONF": ""})
    return cert, key


@needs_openssl
def test_certificates_say_who_calls(tmp_path: Path) -> None:
    cert, key = signed(tmp_path, "server", "/CN=127.0.0.1")
    ca, _ = signed(tmp_path, "ca", "/CN=authority")
    mine, my_key = signed(tmp_path, "alice", "/O=A, B/CN=alice", "ca")
    foreign, foreign_key = signed(tmp_path, "other", "/CN=alice")
    with running(tmp_path, identify=auth.certified, tls=Tls(cert, key, ca)) as world:
        context = ssl.create_default_context(cafile=str(cert))
        context.load_cert_chain(mine, my_key)
        with world.client(verify=context) as client:
            answer = client.post(RUN, content=b"a", headers={"Jali-Key": KEY})
            assert answer.content == reply_to(b"a")
        assert world.service.admitted[0]["client"] == "O=A\\, B,CN=alice"
        without = ssl.create_default_context(cafile=str(cert))
        stranger = ssl.create_default_context(cafile=str(cert))
        stranger.load_cert_chain(foreign, foreign_key)
        for context in (without, stranger):
            with world.client(verify=context) as client, pytest.raises(httpx.HTTPError):
                client.get("/v1/keys")


@needs_openssl
def test_files_of_tls_are_checked_first(tmp_path: Path) -> None:
    cert, key = signed(tmp_path, "server", "/CN=127.0.0.1")
    other, other_key = signed(tmp_path, "other", "/CN=127.0.0.1")
    Tls(cert, key)
    for wrong in ((cert, other_key), (key, cert), (cert, tmp_path / "no-file"), (other, key)):
        with pytest.raises(FileError, match="the files of TLS cannot be used"):
            Tls(*wrong)
    with pytest.raises(FileError, match="clients' authorities"):
        Tls(cert, key, key)
    locked = tmp_path / "locked.key"
    words = ["openssl", "ec", "-in", str(key), "-aes128", "-passout", "pass:abcd", "-out"]
    subprocess.run([*words, str(locked)], check=True, capture_output=True)
    with pytest.raises(FileError, match="without a password"):
        Tls(cert, locked)
