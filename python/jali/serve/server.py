"""A gateway as a process: uvicorn with httptools, TLS, and an end that leaves no request without
its answer."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jali.errors import FileError, InvalidArgument
from jali.serve.app import application
from jali.serve.gateway import Gateway
from jali.serve.middleware import problem
from jali.serve.refusal import Refusal

__all__ = ["Tls", "listening", "serve", "subject_of"]

_ESCAPED = re.compile(r'[,+"\\<>;=]')
_SHORT = {
    "commonName": "CN",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "emailAddress": "EMAIL",
}
_IDLE = 30  # seconds; clients give connections up that were idle for less
_SENDING = 30  # seconds in which answers must be sent once everything is computed


@dataclass(frozen=True)
class Tls:
    """What TLS needs.

    certificate, key: files in PEM; the key is not encrypted.
    client_ca: a file of certificates; clients must have one that these signed. None: none is asked
        for.

    Raises FileError for files that are not this.
    """

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def __post_init__(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.certificate, self.key, password=_no_password)
            if self.client_ca is not None:
                context.load_verify_locations(self.client_ca)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise FileError(
                f"the files of TLS cannot be used: {reason}: give a certificate, its key without a password, and certificates of clients' authorities, in PEM"
            ) from None


def _no_password() -> str:
    raise ValueError("the key has a password")


async def serve(
    gateway: Gateway,
    host: str,
    port: int,
    *,
    tls: Tls | None = None,
    grace: float = 30.0,
    started: Callable[[int], None] = lambda port: None,
    stop: asyncio.Event | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT, and then until everything that was accepted is answered. A
    second signal ends it at once.

    gateway: whose service has started.
    host: where to listen.
    port: of TCP; 0 for any.
    tls: None for HTTP without TLS.
    grace: seconds after the signal in which requests are computed.
    started: called with the port when it listens.
    stop: ends it, too, once it is set.

    Raises InvalidArgument if it cannot listen there.
    """
    import uvicorn

    more: dict[str, Any] = {}
    if tls is not None:
        more = {"ssl_certfile": tls.certificate, "ssl_keyfile": tls.key}
        if tls.client_ca is not None:
            more |= {"ssl_ca_certs": str(tls.client_ca), "ssl_cert_reqs": ssl.CERT_REQUIRED}
    config = uvicorn.Config(
        application(gateway),
        http=_protocol(),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # who calls is the other end of the connection; auth.py knows proxies
        server_header=False,
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=_SENDING,
        **more,
    )
    loop, server = asyncio.get_running_loop(), uvicorn.Server(config)
    ending = asyncio.Event() if stop is None else stop

    def signalled(*_: Any) -> None:
        if ending.is_set():
            server.should_exit = server.force_exit = True
        loop.call_soon_threadsafe(ending.set)

    server.handle_exit = signalled
    with listening(host, port) as listener:
        running = asyncio.create_task(server.serve(sockets=[listener]))
        stopped = asyncio.create_task(ending.wait())
        while not (server.started or running.done()):
            await asyncio.sleep(0.01)
        if server.started:
            started(listener.getsockname()[1])
        await asyncio.wait({running, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        drained = asyncio.create_task(gateway.stop(grace))
        await asyncio.wait({running, drained}, return_when=asyncio.FIRST_COMPLETED)
        drained.cancel()
        server.should_exit = True
        await running


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens.

    host: a name or an address.
    port: of TCP; 0 for any.

    Raises InvalidArgument if it cannot.
    """
    if not 0 <= port < 1 << 16:
        raise InvalidArgument(
            f"a port is a number from 0 to 65535, not {port}: give another --port"
        )
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        listener = socket.socket(family, kind, protocol)  # asyncio sends at once if it is TCP's
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(2048)
        except BaseException:
            listener.close()
            raise
    except (OSError, OverflowError) as error:
        raise InvalidArgument(
            f"cannot listen on {host}, port {port}: {error}: give another --host or --port"
        ) from None
    return listener


def _protocol() -> Any:
    """The protocol of httptools, which tells the subject of a client's certificate, and says what is
    wrong with a request in the form of all errors."""
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    class Protocol(HttpToolsProtocol):  # type: ignore[misc]
        """A connection."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.tls_subject = subject_of(transport.get_extra_info("peercert"))

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.scope["state"]["tls_subject"] = self.tls_subject

        def send_400_response(self, msg: str) -> None:
            _, headers, data = problem(
                Refusal("this is no request of HTTP/1.1: correct it", 400, "invalid")
            )
            fields = {**headers, "Content-Length": str(len(data)), "Connection": "close"}
            lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            self.transport.write(f"HTTP/1.1 400 Bad Request\r\n{lines}\r\n".encode() + data)
            self.transport.close()

    return Protocol


def subject_of(certificate: Mapping[str, Any] | None) -> str:
    """The subject of a client's certificate, as RFC 4514 writes it, in the order of the certificate.

    certificate: as the ssl module gives it; None for none.

    >>> from jali.serve.server import subject_of
    >>> subject_of({"subject": ((("organizationName", "A, B"),), (("commonName", "alice"),))})
    'O=A\\\\, B,CN=alice'
    """
    if not certificate:
        return ""
    parts = [
        "+".join(f"{_SHORT.get(name, name)}={_ESCAPED.sub(_escape, value)}" for name, value in one)
        for one in certificate.get("subject", ())
    ]
    return ",".join(parts)


def _escape(found: re.Match[str]) -> str:
    return "\\" + found[0]
