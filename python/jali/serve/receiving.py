"""Bodies of requests as they come from an ASGI server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

from jali.serve.bodies import PIECE
from jali.serve.middleware import Gone
from jali.serve.refusal import Refusal

__all__ = ["disconnected", "pieces"]

_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


async def pieces(receive: _Receive, patience: float) -> AsyncIterator[bytes]:
    """A body in pieces of a mebibyte or, at its end, less.

    receive: of ASGI.
    patience: the seconds after which it is given up, if nothing comes.

    Raises Gone if the client closed the connection, and Refusal, of status 408, for a body that
    stops. What came before is given first.
    """
    gathered = bytearray()
    more = True
    while more:
        try:
            async with asyncio.timeout(patience):
                message = await receive()
        except TimeoutError:
            if gathered:
                yield bytes(gathered)
            raise Refusal(
                f"nothing came for {patience:g} seconds: send the request again", 408, "slow"
            ) from None
        if message["type"] == "http.disconnect":
            if gathered:
                yield bytes(gathered)
            raise Gone
        gathered += message.get("body", b"")
        more = message.get("more_body", False)
        if len(gathered) >= PIECE:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)


async def disconnected(receive: _Receive) -> None:
    """Returns once the client has closed the connection. The body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
