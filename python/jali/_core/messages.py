"""The payload of a message between client and server of a program whose ciphertexts follow one
another (docs/format.md): the program's fingerprint, how many examples there are, whether it is a
reply, and each ciphertext with its length before it."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from jali.errors import CorruptData, InvalidArgument

__all__ = ["OTHER_PROGRAM", "Parts", "read", "written"]

OTHER_PROGRAM = "the message belongs to another program: client and server need the same manifest"
_HEADER = struct.Struct("<32sQB")
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class Parts:
    """What a payload holds.

    examples: how many there are.
    single: whether the axis of the examples is left out at decryption.
    chunks: the bytes of the ciphertexts of each chunk of examples.
    """

    examples: int
    single: bool
    chunks: list[list[memoryview]]


def written(
    program: str, examples: int, single: bool, is_reply: bool, ciphertexts: Iterable[bytes]
) -> list[bytes]:
    """The parts of a payload, one behind the other."""
    parts = [_HEADER.pack(bytes.fromhex(program), examples, single | is_reply << 1)]
    for data in ciphertexts:
        parts += [_LENGTH.pack(len(data)), data]
    return parts


def read(view: memoryview, program: str, rows: int, each: int, *, is_reply: bool) -> Parts:
    """What ``written`` wrote.

    program: the fingerprint that it must have.
    rows: how many examples a chunk holds at most.
    each: how many ciphertexts a chunk has.

    Raises CorruptData, and InvalidArgument for a message of another program.
    """
    if len(view) < _HEADER.size:
        raise CorruptData("the message ends too early")
    found, examples, flags = _HEADER.unpack_from(view)
    if flags > 3 or bool(flags & 2) != is_reply:
        raise CorruptData(f"the message is not {'a reply' if is_reply else 'a request'}")
    single = bool(flags & 1)
    if found.hex() != program:
        raise InvalidArgument(OTHER_PROGRAM)
    count = -(-examples // rows)
    if examples < 1 or (single and examples != 1) or count * each * _LENGTH.size > len(view):
        raise CorruptData("the message has another number of rows than it says")
    chunks, at = list[list[memoryview]](), _HEADER.size
    for _ in range(count):
        chunk = []
        for _ in range(each):
            if at + _LENGTH.size > len(view):
                raise CorruptData("the message ends too early")
            (length,) = _LENGTH.unpack_from(view, at)
            at += _LENGTH.size
            if length > len(view) - at:
                raise CorruptData("the message ends too early")
            chunk.append(view[at : at + length])
            at += length
        chunks.append(chunk)
    if at != len(view):
        raise CorruptData("bytes are left over behind the message")
    return Parts(examples, single, chunks)
