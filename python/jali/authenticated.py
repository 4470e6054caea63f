"""Replies bound to their requests, for an honest server whose replies travel over a network that
cannot be trusted.

Client and server share a key (``new_key``). The server seals each reply together with the request
that it answers and its place among the answers. The client opens it with the same request and
place. A reply that was changed, exchanged or replayed, or that was made without the key, is refused
before it is read as a ciphertext. A valid reply proves nothing about what the server computed:
whoever has the key can seal anything.

The tag is HMAC-SHA256 over the fields below. Before each field comes its length in 8 bytes, so that
no two lists of fields give the same bytes. The sealed bytes are the tag, 32 bytes, followed by the
reply.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from jali._core import refusals
from jali.errors import AuthenticationError, InvalidArgument

__all__ = ["KEY_BYTES", "TAG_BYTES", "new_key", "open_reply", "reply_tag", "seal_reply"]

KEY_BYTES = 32
TAG_BYTES = 32

_PURPOSE = b"jali authenticated reply"
_VERSION = b"1"
_DIRECTION = b"server to client"

Bytes = bytes | bytearray | memoryview


def new_key() -> bytes:
    """A key of 32 random bytes from the operating system, for one client and one server.

    >>> len(authenticated.new_key())
    32
    """
    return secrets.token_bytes(KEY_BYTES)


def seal_reply(key: Bytes, reply: Bytes, *, request: Bytes, place: str | int) -> bytes:
    """The reply, preceded by a tag that binds it to the request's bytes and to its place.

    request: all bytes of the request, or an identifier that is used only once under this key.
    place: which of the request's answers it is, as a name or an index.

    Raises InvalidArgument for a key of another length than 32 bytes, and for arguments of other
    types.

    >>> key = authenticated.new_key()
    >>> sealed = authenticated.seal_reply(key, b"reply", request=b"request", place=0)
    >>> authenticated.open_reply(key, sealed, request=b"request", place=0)
    b'reply'
    """
    body = _bytes("reply", reply)
    return _tag(key, body, request, place) + body


def open_reply(key: Bytes, sealed: Bytes, *, request: Bytes, place: str | int) -> bytes:
    """The reply that seal_reply sealed with the same key, request and place.

    Raises AuthenticationError for anything else, and InvalidArgument as seal_reply does.

    >>> key = authenticated.new_key()
    >>> sealed = authenticated.seal_reply(key, b"reply", request=b"request", place=0)
    >>> authenticated.open_reply(key, sealed, request=b"request", place=0)
    b'reply'
    """
    data = _bytes("sealed", sealed)
    tag, body = data[:TAG_BYTES], data[TAG_BYTES:]
    if not hmac.compare_digest(tag, _tag(key, body, request, place)):
        raise AuthenticationError(
            "these bytes are not the reply to this request at this place: do not read them, and ask again"
        )
    return body


def reply_tag(key: Bytes, *, asked: bytes, place: str | int, nbytes: int) -> hmac.HMAC:
    """What becomes the tag of a reply once it is updated with the reply's bytes. It is for servers
    whose requests and replies are too long for the memory; seal_reply is for others.

    asked: the SHA-256 of the request's bytes, as a request may be as long as many ciphertexts.
    nbytes: of the reply.

    Raises InvalidArgument as seal_reply does.

    >>> import hashlib
    >>> key, asked = authenticated.new_key(), hashlib.sha256(b"request").digest()
    >>> tag = authenticated.reply_tag(key, asked=asked, place=0, nbytes=5)
    >>> for piece in (b"re", b"ply"):
    ...     tag.update(piece)
    >>> authenticated.open_reply(key, tag.digest() + b"reply", request=b"request", place=0)
    b'reply'
    """
    secret = _bytes("key", key)
    if len(secret) != KEY_BYTES:
        raise InvalidArgument(
            f"key must be {KEY_BYTES} bytes, not {len(secret)}: make it with new_key()"
        )
    mac = hmac.new(secret, digestmod=hashlib.sha256)
    for field in (_PURPOSE, _VERSION, _DIRECTION, asked, _place(place)):
        mac.update(len(field).to_bytes(8, "little"))
        mac.update(field)
    mac.update(nbytes.to_bytes(8, "little"))
    return mac


def _tag(key: Bytes, reply: bytes, request: Bytes, place: str | int) -> bytes:
    asked = hashlib.sha256(_bytes("request", request)).digest()
    mac = reply_tag(key, asked=asked, place=place, nbytes=len(reply))
    mac.update(reply)
    return mac.digest()


def _place(place: str | int) -> bytes:
    if isinstance(place, str):
        return b"name " + place.encode("utf-8", "surrogatepass")
    if isinstance(place, int) and not isinstance(place, bool):
        return b"index " + str(place).encode()
    raise InvalidArgument(f"place must be a name or an index, not {type(place).__name__}")


def _bytes(name: str, data: Bytes) -> bytes:
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise InvalidArgument(f"{name} must be bytes, not {type(data).__name__}")
    return bytes(data)


def __getattr__(name: str) -> object:
    raise refusals.of_module(__name__, name)
