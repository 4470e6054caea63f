"""What a pool and its workers write to each other: a small JSON object, and bytes that follow it.

Bytes of requests and replies are written as they are. Both ends are processes of one service, so
that lengths are trusted.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import IO, Any, TypeAlias

__all__ = ["Frame", "head", "read", "receive"]

#: An object, and its bytes.
Frame: TypeAlias = tuple[dict[str, Any], list[bytes]]

_LENGTH = 4  # bytes that hold how long the object is


def head(content: dict[str, Any], parts: Sequence[bytes | memoryview] = ()) -> bytes:
    """What is written before the parts.

    content: what JSON can hold.
    parts: the bytes that follow.

    >>> from jali.serve.frames import head, read
    >>> import io
    >>> read(io.BytesIO(head({"do": "stop"}, [b"ab"]) + b"ab"))
    ({'do': 'stop'}, [b'ab'])
    """
    text = json.dumps([content, [len(part) for part in parts]]).encode()
    return len(text).to_bytes(_LENGTH, "little") + text


def read(stream: IO[bytes]) -> Frame | None:
    """The next frame of a stream that waits for bytes; None at its end."""
    start = stream.read(_LENGTH)
    if len(start) < _LENGTH:
        return None
    text = stream.read(int.from_bytes(start, "little"))
    try:
        content, sizes = json.loads(text)
    except ValueError:
        return None  # the other process ended in the middle
    parts = [stream.read(size) for size in sizes]
    if any(len(part) < size for part, size in zip(parts, sizes, strict=True)):
        return None
    return content, parts


async def receive(stream: asyncio.StreamReader) -> Frame | None:
    """The next frame of a stream of asyncio; None at its end."""
    try:
        start = await stream.readexactly(_LENGTH)
        content, sizes = json.loads(await stream.readexactly(int.from_bytes(start, "little")))
        return content, [await stream.readexactly(size) for size in sizes]
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
