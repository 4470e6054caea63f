"""What every request of a service goes through: its name, who calls, its line in the log, and its
error as a document."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from jali.serve.auth import ANYONE, Client, Peer
from jali.serve.refusal import Refusal

if TYPE_CHECKING:
    from jali.serve.gateway import Gateway

__all__ = ["Call", "Gone", "Middleware", "call_of", "internal", "problem"]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_OPEN = ("/healthz", "/readyz")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LINGER_SECONDS = 2.0
_LINGER_BYTES = 64 << 20
_SHORT = 1 << 20  # bytes that are read before an answer, so that the connection can stay


class Gone(Exception):
    """The client closed the connection."""


@dataclass
class Call:
    """A request, for its line in the log.

    request: its name.
    client: who calls.
    route: the pattern of its path, without names of keys or uploads.
    program, key_id: which, if the request says it.
    why: the kind of the problem with which it was answered.
    """

    request: str
    client: Client = ANYONE
    route: str = ""
    program: str = ""
    key_id: str = ""
    why: str = ""
    status: int = 0
    received: int = 0
    sent: int = 0


def call_of(scope: Scope) -> Call:
    """The request of a scope that went through Middleware."""
    found: Call = scope["state"]["jali"]
    return found


def problem(refusal: Refusal) -> tuple[int, dict[str, str], bytes]:
    """Status, header fields and content of the answer to what is refused."""
    data = json.dumps(refusal.problem()).encode()
    return refusal.status, {"Content-Type": "application/problem+json", **refusal.headers}, data


class Middleware:
    """An application around the one that has the routes.

    app: that one.
    gateway: what both belong to.
    """

    def __init__(self, app: Any, gateway: Gateway) -> None:
        self._app, self._gateway = app, gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection of ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        gateway, began = self._gateway, time.monotonic()
        headers = _joined(scope["headers"])
        given = headers.get("jali-request", "")
        call = Call(given if _NAME.fullmatch(given) else secrets.token_hex(8))
        scope.setdefault("state", {})["jali"] = call
        wire = _Wire(call, headers, receive, send)
        try:
            try:
                call.client = await self._client(scope, headers)
            except Refusal as refusal:
                call.why = refusal.kind
                await wire.answer(*problem(refusal))
            else:
                await self._app(scope, wire.receive, wire.send)
        except Gone:
            call.status = call.status or 499
        except Exception as error:
            gateway.log.failure("failed", error, request=call.request, route=call.route)
            if not call.status:
                call.why = "internal"
                await wire.answer(*problem(internal(call)))
        finally:
            self._note(scope, call, time.monotonic() - began)

    async def _client(self, scope: Scope, headers: dict[str, str]) -> Client:
        """Who calls. Raises Refusal."""
        if scope["path"] in _OPEN:
            return ANYONE
        gateway = self._gateway
        if gateway.identify is None:
            if gateway.local:
                _check_local(headers)
            return ANYONE
        if gateway.page is not None and gateway.page.is_open(scope["path"]):
            return ANYONE
        address = (scope.get("client") or ("",))[0]
        peer = Peer(address, scope["state"].get("tls_subject", ""))
        client = await gateway.identify(headers, peer)
        if client is None:
            raise Refusal(
                "the service does not know who calls: send Authorization: Bearer and a token that it has, or what else its operator asks for",
                401,
                "unauthenticated",
                {"WWW-Authenticate": "Bearer"},
            )
        return client

    def _note(self, scope: Scope, call: Call, seconds: float) -> None:
        gateway = self._gateway
        route = call.route or getattr(scope.get("route"), "path", "")
        if call.why:
            gateway.metrics.refused(call.why)
        if call.program and route.endswith("/run"):
            gateway.metrics.answered(call.program, call.status, seconds)
        if scope["path"] in _OPEN and call.status == 200:
            return
        gateway.log.event(
            "request",
            request=call.request,
            client=gateway.log.client(call.client.name),
            method=scope["method"],
            route=route,
            status=call.status,
            why=call.why.rsplit("#", 1)[-1],
            program=gateway.log.short(call.program),
            key=gateway.log.short(call.key_id),
            received=call.received,
            sent=call.sent,
            seconds=round(seconds, 6),
        )


class _Wire:
    """The two directions of a request. An answer that comes before a long body was read ends the
    connection, but not before the client had time to read it."""

    def __init__(self, call: Call, headers: dict[str, str], receive: Receive, send: Send) -> None:
        self._call, self._receive, self._send = call, receive, send
        length = headers.get("content-length", "0")
        self._unread = length != "0" or "transfer-encoding" in headers
        self._short = length.isdecimal() and int(length) <= _SHORT
        self._expects = "expect" in headers
        self._closing = False

    async def receive(self) -> MutableMapping[str, Any]:
        message = await self._receive()
        if message["type"] == "http.request":
            self._expects = False
            self._call.received += len(message.get("body", b""))
            self._unread = message.get("more_body", False)
        else:
            self._unread = False
        return message

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._call.status = message["status"]
            if self._unread and self._short:
                await self._linger()
            fields = [(b"jali-request", self._call.request.encode()), *message.get("headers", ())]
            if self._unread:
                self._closing = True
                fields.append((b"connection", b"close"))
            await self._send({**message, "headers": fields})
            return
        if message["type"] == "http.response.body":
            self._call.sent += len(message.get("body", b""))
            if self._closing and not message.get("more_body", False):
                await self._send({**message, "more_body": True})
                await self._linger()
                message = {"type": "http.response.body", "body": b"", "more_body": False}
        await self._send(message)

    async def answer(self, status: int, headers: dict[str, str], data: bytes) -> None:
        """Sends a whole answer."""
        fields = {**headers, "Content-Length": str(len(data))}
        raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in fields.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": raw})
        await self.send({"type": "http.response.body", "body": data})

    async def _linger(self) -> None:
        """Reads what the client still sends, for a while: a connection that is closed while bytes
        come may be reset before the answer is read."""
        if self._expects:
            return  # it sends nothing before it is told to
        left = _LINGER_BYTES
        try:
            async with asyncio.timeout(_LINGER_SECONDS):
                while self._unread and left > 0:
                    left -= len((await self.receive()).get("body", b""))
        except TimeoutError:
            pass


def _joined(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The fields by their names. Fields that come twice are joined, so that none hides another."""
    found: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


def internal(call: Call) -> Refusal:
    """The answer to a request of which nobody knows why it failed."""
    return Refusal(
        f"the service failed: tell its operator the name of the request, {call.request}",
        500,
        "internal",
    )


def _check_local(headers: dict[str, str]) -> None:
    """Raises Refusal for pages of other sites in a browser on this machine, which the service would
    answer because it asks nobody who they are."""
    host = headers.get("host", "")
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    try:
        local = ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        local = name == "localhost"
    if not local:
        raise Refusal(
            "a service without authentication answers to the names of its own machine: call it by 127.0.0.1 or localhost",
            421,
            "host",
        )
    origin = headers.get("origin")
    if origin is not None and origin.split("://", 1)[-1] != host:
        raise Refusal(
            "pages of other sites may not use a service without authentication",
            403,
            "origin",
        )
