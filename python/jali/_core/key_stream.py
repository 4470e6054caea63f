"""The bytes of a set of evaluation keys, made key by key.

docs/format.md says how a set is written: a header, the name of the secret key, what is present, the
keys one after the other, and a hash of all bytes before. Every key has a seed of its own. So sets
of one key each, of the same secret key, make one set of all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

__all__ = ["KeyStream", "joined", "of_one_size", "whole"]

_NAME, _PRESENT, _COUNT, _KEYS = 48, 64, 65, 69  # where fields of a set begin
_CHECKSUM = 16
_RELINEARISATION, _LEVELS = 1, 4  # what is present
_EVERY_LEVEL = b"\xff\xff"

#: Makes a set with one key.
Maker = Callable[[], Any]


class KeyStream:
    """The bytes of a program's evaluation keys, in pieces. ``key_stream`` of its client gives it. A
    piece is made when it is asked for, and is kept nowhere.

    nbytes: of all pieces together.
    key_id: the name of the secret key.
    pieces: what is iterated over, once.

    >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples)
    >>> client = program.client()
    >>> data = b"".join(client.key_stream())
    >>> server = program.server(ckks.EvaluationKeys.from_bytes(data, client.manifest.params))
    >>> bool(np.allclose(client.decrypt(server(client.encrypt(examples[:1]))), 2 * examples[:1], atol=0.05))
    True
    """

    def __init__(self, nbytes: int, key_id: str, pieces: Iterable[bytes]) -> None:
        self.nbytes, self.key_id = nbytes, key_id
        self._pieces = iter(pieces)

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces


def whole(keys: Any) -> KeyStream:
    """The stream of a set that was made at once."""
    data = keys.to_bytes()
    return KeyStream(len(data), keys.key_id, [data])


def joined(nbytes: int, key_id: str, makers: Sequence[Maker], *, levels: bool) -> KeyStream:
    """The stream of a set whose keys are made one by one.

    nbytes: of the set.
    key_id: the name of the secret key.
    makers: each makes a set with one key: first the one for products, then those of Galois elements
        in ascending order. There is at least one.
    levels: whether one of the keys serves some levels alone.
    """
    return KeyStream(nbytes, key_id, _pieces(nbytes, makers, levels))


def of_one_size(key_id: str, makers: Sequence[Maker]) -> KeyStream:
    """As ``joined``, for keys of which each serves every level. The first is made at once, since its
    size is that of the others.

    key_id: the name of the secret key.
    makers: as of ``joined``.
    """
    made = [makers[0]()]
    one = made[0].to_bytes()
    products = one[_PRESENT] & _RELINEARISATION
    size = len(one) - _KEYS - _CHECKSUM - (0 if products else 8)
    nbytes = _KEYS + _CHECKSUM + len(makers) * size + 8 * (len(makers) - products)
    return joined(nbytes, key_id, [made.pop, *makers[1:]], levels=False)


def _pieces(nbytes: int, makers: Sequence[Maker], levels: bool) -> Iterator[bytes]:
    checksum = hashlib.sha256()
    for k, make in enumerate(makers):
        piece = _key(one := make().to_bytes(), levels)
        if k == 0:
            piece = _start(one, nbytes, len(makers), levels) + piece
        del one
        checksum.update(piece)
        yield piece
    yield checksum.digest()[:_CHECKSUM]


def _start(one: bytes, nbytes: int, count: int, levels: bool) -> bytes:
    """What precedes the keys of a set.

    one: the set of its first key.
    """
    products = one[_PRESENT] & _RELINEARISATION
    payload = nbytes - _NAME - _CHECKSUM
    present = products | (_LEVELS if levels else 0)
    galois = count - products
    return b"".join(
        (
            one[: _NAME - 8],
            payload.to_bytes(8, "little"),
            one[_NAME:_PRESENT],
            bytes([present]),
            galois.to_bytes(4, "little"),
        )
    )


def _key(one: bytes, levels: bool) -> bytes:
    """The key of a set with one key, as it stands in a larger one."""
    view = memoryview(one)[_KEYS:-_CHECKSUM]
    element = 0 if one[_PRESENT] & _RELINEARISATION else 8
    if levels and not one[_PRESENT] & _LEVELS:
        return b"".join((view[:element], _EVERY_LEVEL, view[element:]))
    return bytes(view)
