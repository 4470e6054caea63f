"""Who calls a service: tokens, names that a proxy adds, certificates, or a function of one's own."""

from __future__ import annotations

import hashlib
import hmac
import importlib
import inspect
import ipaddress
import math
import os
import re
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from jali.errors import InvalidArgument
from jali.serve.keys import checked_client
from jali.serve.lines import Lines

__all__ = [
    "ANYONE",
    "Client",
    "Identify",
    "Peer",
    "ProxyHeader",
    "Tokens",
    "by_path",
    "certified",
    "check_binding",
    "first_of",
    "is_loopback",
]

_HASH = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Client:
    """Who calls.

    name: by which keys and quotas are known, 1 to 500 printable characters.
    weight: the client's share of the devices in comparison with those of others.

    >>> from jali.serve.auth import Client
    >>> Client("alice", weight=2.0).name
    'alice'
    """

    name: str
    weight: float = 1.0

    def __post_init__(self) -> None:
        checked_client(self.name)
        if not (math.isfinite(self.weight) and self.weight > 0):
            raise InvalidArgument("a client's weight must be a positive number")


@dataclass(frozen=True)
class Peer:
    """The other end of a connection.

    address: of IP, "" if there is none.
    subject: of the certificate that it proved to have, e.g. "CN=alice,O=clinic"; "" for none.
    """

    address: str
    subject: str = ""


#: Says who calls from the fields of a request, with names in lower case, and the connection. None
#: for who is not known.
Identify: TypeAlias = Callable[[Mapping[str, str], Peer], Awaitable[Client | None]]

#: Whom a service without authentication takes everyone for.
ANYONE = Client("anyone")


class Tokens:
    """Clients by bearer tokens, of which the service has hashes only.

    path: a file with a line for each token: the SHA-256 of the token in hexadecimal, the client's name,
        and, if the client has not the share of others, its weight. Lines that begin with # are
        comments. A file that changes is read again; if it has mistakes then, what was read before
        stays.

    Raises FileError, and InvalidArgument for lines that are none of these.

    >>> import hashlib, tempfile
    >>> from jali.serve.auth import Peer, Tokens
    >>> with tempfile.NamedTemporaryFile("w") as file:
    ...     _ = file.write(hashlib.sha256(b"secret").hexdigest() + " alice")
    ...     file.flush()
    ...     tokens = Tokens(file.name)
    >>> tokens.client("secret").name, tokens.client("guessed")
    ('alice', None)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        what = "a SHA-256 in hexadecimal, a name, and perhaps a weight: write no tokens there, but their hashes"
        self._lines = Lines(Path(path), _hash_and_client, what)

    async def __call__(self, headers: Mapping[str, str], peer: Peer) -> Client | None:
        """Who sent these fields."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return self.client(token.strip()) if scheme.lower() == "bearer" else None

    def client(self, token: str) -> Client | None:
        """Whose token it is, or None. The time does not depend on which token it is like.

        token: as the client sent it.
        """
        digest, found = hashlib.sha256(token.encode()).digest(), None
        for known, client in self._lines.rows():
            if hmac.compare_digest(known, digest):
                found = client
        return found


def _hash_and_client(words: Sequence[str]) -> tuple[bytes, Client]:
    if len(words) not in (2, 3) or not _HASH.fullmatch(words[0].lower()):
        raise ValueError
    weight = float(words[2]) if len(words) == 3 else 1.0
    return bytes.fromhex(words[0]), Client(words[1], weight)


class ProxyHeader:
    """Clients by a field that a proxy adds, which has asked who they are.

    name: of the field, e.g. "X-Forwarded-User". The proxy must remove it from what clients send.
    sources: the addresses or networks of proxies. The field means nothing if it comes from others.

    Raises InvalidArgument.

    >>> import asyncio
    >>> from jali.serve.auth import Peer, ProxyHeader
    >>> proxy = ProxyHeader("X-User", ["10.0.0.0/8"])
    >>> asyncio.run(proxy({"x-user": "alice"}, Peer("10.1.2.3"))).name
    'alice'
    >>> asyncio.run(proxy({"x-user": "alice"}, Peer("192.0.2.1"))) is None
    True
    """

    def __init__(self, name: str, sources: Sequence[str]) -> None:
        self._name = name.lower()
        if not re.fullmatch("[a-z0-9-]+", self._name):
            raise InvalidArgument("the name of a field has letters, digits and - only")
        if not sources:
            raise InvalidArgument(
                "say from which addresses the proxy connects: from others anybody could send the field"
            )
        try:
            self._networks = [ipaddress.ip_network(source, strict=False) for source in sources]
        except ValueError as error:
            raise InvalidArgument(
                f"{error}: give an address or a network, e.g. 10.0.0.0/8"
            ) from None

    async def __call__(self, headers: Mapping[str, str], peer: Peer) -> Client | None:
        """Who sent these fields."""
        try:
            address = ipaddress.ip_address(peer.address)
        except ValueError:
            return None
        mapped = getattr(address, "ipv4_mapped", None) or address
        if not any(mapped in network for network in self._networks):
            return None
        return _named(headers.get(self._name, "").strip())


async def certified(headers: Mapping[str, str], peer: Peer) -> Client | None:
    """Clients by the subject of their certificate, which the service's TLS has verified.

    headers: of the request, which say nothing of it.
    peer: the other end.
    """
    return _named(peer.subject)


def _named(name: str) -> Client | None:
    try:
        return Client(name) if name else None
    except InvalidArgument:
        return None


def by_path(path: str) -> Identify:
    """A function of one's own, with the arguments of Identify.

    path: "package.module:function"; the module is imported.

    Raises InvalidArgument.

    >>> from jali.serve.auth import by_path
    >>> by_path("jali.serve.auth:certified").__name__
    'certified'
    """
    module, _, name = path.partition(":")
    try:
        found = importlib.import_module(module) if module and name else None
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise InvalidArgument(f"{path} cannot be imported: {error}") from None
    call = getattr(found, "__call__", None)  # noqa: B004  an object may be asynchronous, too
    if not (inspect.iscoroutinefunction(found) or inspect.iscoroutinefunction(call)):
        raise InvalidArgument(
            f"{path} must be a function that is defined by async def and takes the fields of a request and its Peer"
        )
    return found  # type: ignore[return-value]


def first_of(ways: Sequence[Identify]) -> Identify:
    """Asks several ways one after the other.

    ways: each returns None for who is not known to it.
    """

    async def identify(headers: Mapping[str, str], peer: Peer) -> Client | None:
        for way in ways:
            client = await way(headers, peer)
            if client is not None:
                return client
        return None

    return identify


def is_loopback(host: str) -> bool:
    """Whether a host is this machine alone.

    host: a name or an address.
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None) if host else []
    except OSError:
        return False
    return bool(found) and all(ipaddress.ip_address(a[4][0]).is_loopback for a in found)


def check_binding(host: str, *, authenticated: bool, insecure: bool) -> None:
    """Raises InvalidArgument if others could call a service that asks nobody who they are.

    host: where it listens.
    authenticated: whether it asks.
    insecure: whether the operator says that this is meant.

    >>> from jali.serve.auth import check_binding
    >>> check_binding("127.0.0.1", authenticated=False, insecure=False)
    >>> check_binding("0.0.0.0", authenticated=False, insecure=False)
    Traceback (most recent call last):
    jali.errors.InvalidArgument: others can reach 0.0.0.0, and the service would not ask who they are: give --tokens, --tls-client-ca, --proxy-header or --auth, or --insecure-no-auth if everyone may use it
    """
    if authenticated or insecure or is_loopback(host):
        return
    raise InvalidArgument(
        f"others can reach {host}, and the service would not ask who they are: give --tokens, --tls-client-ca, --proxy-header or --auth, or --insecure-no-auth if everyone may use it"
    )
