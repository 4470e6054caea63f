"""One request in HTTP and its answer, within bounds of memory. httpx sends it."""

from __future__ import annotations

import asyncio
import importlib
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

from jali._core import packages
from jali._core.console import bytes_text
from jali._jali import build_info
from jali.errors import Error, InvalidArgument, Unsupported
from jali.remote.address import Address
from jali.remote.errors import BadAnswer
from jali.remote.problems import Problem, problem_of, said

__all__ = ["Answer", "Lost", "Wire"]

_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")
_CONNECT_SECONDS = 10.0
_MOST_PROBLEM = 1 << 16  # bytes of an answer that says no


class Lost(Error):
    """A request without a whole answer: nobody knows whether the service got it. Not for users: it
    becomes Unavailable or DeadlineExceeded."""

    code = "lost"


@dataclass(frozen=True)
class Answer:
    """What came back.

    status: of HTTP.
    headers: its fields, with names in lower case.
    data: its content.
    hidden: the token with which it was asked for, which no error repeats.
    """

    status: int
    headers: Mapping[str, str]
    data: bytes
    hidden: str = field(default="", repr=False)

    @property
    def problem(self) -> Problem:
        """What it says of a request that was not answered."""
        return problem_of(self.status, self.headers, self.data, self.hidden)


class Wire:
    """Sends requests to one service. It may be used in one event loop after the other.

    address: of the service.
    token: that says who calls; None for none.
    tls: how the service proves who it is, and with which certificate this side does; None: as every
        program of this machine has it.
    transport: of httpx, in the place of connections.

    Raises InvalidArgument for tokens that HTTP cannot carry, and Unsupported if httpx is missing.
    """

    def __init__(
        self, address: Address, token: str | None, tls: ssl.SSLContext | None, transport: Any
    ) -> None:
        if token is not None and (not isinstance(token, str) or not _TOKEN.fullmatch(token)):
            raise InvalidArgument(
                "token must be a text of 1 to 4096 printable characters of ASCII, without spaces: read it from its file with .strip()"
            )
        if tls is not None and not isinstance(tls, ssl.SSLContext):
            raise InvalidArgument(
                "tls must be an ssl.SSLContext, such as ssl.create_default_context(cafile=...)"
            )
        self._address, self._tls, self._transport = address, tls, transport
        self._token = token or ""
        self._fields = {
            "User-Agent": f"jali/{build_info()['version']}",
            "Accept-Encoding": "identity",  # what is unpacked may have any size
        }
        if token is not None:
            self._fields["Authorization"] = f"Bearer {token}"
        self._httpx = _httpx()
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def ask(
        self,
        method: str,
        path: str,
        *,
        most: int,
        fields: Mapping[str, str] | None = None,
        content: bytes = b"",
    ) -> Answer:
        """The answer to a request. It is awaited for any time: who asks, sets the bound.

        method, path, fields, content: of the request; the path begins below that of the service.
        most: how many bytes of content are taken.

        Raises Lost, and BadAnswer for an answer that is longer, is packed, or leads elsewhere.
        """
        httpx, client = self._httpx, self._bound()
        url = self._address.of(path)
        headers = {**self._fields, **(fields or {})}
        try:
            request = client.build_request(method, url, headers=headers, content=content)
            response = await client.send(request, stream=True, follow_redirects=False)
            try:
                return replace(await _read(response, method, most), hidden=self._token)
            finally:
                await response.aclose()
        except httpx.TransportError as error:
            if _is_of_certificates(error):
                raise BadAnswer(
                    f'the server at {self._address.origin} cannot prove who it is, and nothing was sent to it: "{said(error)}". If its certificate is your '
                    "organisation's own, give tls=ssl.create_default_context(cafile=...)"
                ) from None
            raise Lost(said(error, 120) or type(error).__name__) from None
        except OSError as error:
            raise Lost(said(error, 120) or type(error).__name__) from None

    async def close(self) -> None:
        """Ends all connections."""
        if self._client is not None and self._loop is asyncio.get_running_loop():
            await self._client.aclose()
        self._client = None

    def _bound(self) -> Any:
        """The connections of this event loop. Those of another one are of no use."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._loop = loop
            self._client = self._httpx.AsyncClient(
                transport=self._transport,
                # Of an address of http nothing is verified, and no certificates are loaded.
                verify=self._tls or self._address.origin.startswith("https:"),
                trust_env=not self._address.is_local,  # no proxy stands before this machine
                timeout=self._httpx.Timeout(None, connect=_CONNECT_SECONDS),
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            )
        return self._client


async def _read(response: Any, method: str, most: int) -> Answer:
    """The answer whose head has come."""
    status = int(response.status_code)
    headers = {name.lower(): value for name, value in response.headers.items()}
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise _bad("its content is packed, which was not asked for", status)
    limit = most if status < 300 else _MOST_PROBLEM
    announced = headers.get("content-length", "")
    length = int(announced) if re.fullmatch(r"\d{1,18}", announced) else None
    if method == "HEAD":
        return Answer(status, headers, b"")
    if length is not None and length > limit:
        raise _too_long(length, limit, status)
    data = bytearray()
    async for piece in response.aiter_bytes():  # not packed: see above
        data += piece
        if len(data) > limit:
            raise _too_long(len(data), limit, status)
    if length is not None and length != len(data):
        raise Lost(f"the answer ended after {len(data)} of {length} bytes")
    return Answer(status, headers, bytes(data))


def _too_long(length: int, limit: int, status: int) -> BadAnswer:
    return _bad(f"it has {length} bytes or more, and {bytes_text(limit)} may come", status)


def _bad(what: str, status: int) -> BadAnswer:
    error = BadAnswer(f"the server's answer is none of a service of Jali: {what}")
    error.status = status
    return error


def _is_of_certificates(error: BaseException) -> bool:
    """Whether a connection failed because the other side did not prove who it is."""
    seen: BaseException | None = error
    for _ in range(10):
        if seen is None:
            return False
        if isinstance(seen, ssl.SSLCertVerificationError):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _httpx() -> Any:
    try:
        return importlib.import_module("httpx")
    except ImportError:
        raise Unsupported(f"jali.Remote needs httpx: {packages.install('httpx')}") from None
