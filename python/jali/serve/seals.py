"""Keys that clients share with a service, with which it binds replies to their requests
(jali.authenticated)."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path

from jali import authenticated
from jali.errors import InvalidArgument
from jali.serve.bodies import Kept
from jali.serve.keys import checked_client
from jali.serve.lines import Lines
from jali.serve.refusal import Refusal

__all__ = ["Seals", "no_key", "tag"]


class Seals:
    """The keys of clients, from a file that only the service's user may read.

    path: with a line for each client: the key in hexadecimal, and the client's name.

    Raises FileError, and InvalidArgument for lines that are none of these and for a file that
    others may read.

    >>> import tempfile
    >>> from jali import authenticated
    >>> from jali.serve.seals import Seals
    >>> with tempfile.NamedTemporaryFile("w") as file:
    ...     _ = file.write(f"{authenticated.new_key().hex()} alice")
    ...     file.flush()
    ...     seals = Seals(file.name)
    >>> len(seals.key("1", "alice"))
    32
    """

    def __init__(self, path: str | Path) -> None:
        self._lines = Lines(
            Path(path), _client_and_key, "64 hexadecimal digits and a client's name"
        )
        mode = Path(path).stat().st_mode
        if stat.S_ISREG(mode) and mode & 0o077:
            raise InvalidArgument(
                f"other users may read {path}, which has keys: run chmod 600 {path}"
            )

    def key(self, asked: str, client: str) -> bytes | None:
        """The key for a reply; None if none was asked for.

        asked: the field Jali-Seal.
        client: who asks.

        Raises Refusal, of status 400, if the service shares no key with the client.
        """
        if asked in ("", "0"):
            return None
        found = dict(self._lines.rows()).get(client)
        return found if found is not None else no_key()


def _client_and_key(words: Sequence[str]) -> tuple[str, bytes]:
    key, client = bytes.fromhex(words[0]), " ".join(words[1:])
    if len(key) != authenticated.KEY_BYTES:
        raise ValueError
    return checked_client(client), key


def no_key() -> bytes:
    """Raises Refusal, of status 400: the service shares no key with the client."""
    raise Refusal(
        "this service shares no key with you: leave Jali-Seal and shared_key= out, or have the operator add your key to --seal-keys",
        400,
        "seal",
    )


async def tag(kept: Kept, key: bytes, asked: str, key_id: str) -> bytes:
    """The tag that goes before an answer.

    kept: the answer.
    key: of the client.
    asked: the SHA-256 of the request, in hexadecimal.
    key_id: the name of the keys with which it was computed.
    """
    mac = authenticated.reply_tag(key, asked=bytes.fromhex(asked), place=key_id, nbytes=kept.nbytes)
    async for piece in kept.pieces():
        mac.update(piece)
    return mac.digest()
