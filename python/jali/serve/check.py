"""Keys are checked while their bytes come: each key is read by the library as soon as it is there,
and forgotten."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from jali.errors import CorruptData, LimitExceeded, ParamsMismatch, VersionError
from jali.serve.wanted import (
    CHECKSUM,
    EVERY_LEVEL,
    FRAME,
    HEADER,
    NAME,
    SEED,
    RlweKeys,
    TfheKeys,
    Wanted,
    wanted,
)

__all__ = ["Found", "KeyCheck"]

_RELINEARISATION, _BOOTSTRAPPING, _LEVELS = 1, 2, 4  # flags of a set of keys
_whole = threading.Lock()  # of what is read, one object lies in memory at a time


@dataclass(frozen=True)
class Found:
    """What was checked.

    key_id: the name of the secret key to which the keys belong.
    sha256: of all bytes, in hexadecimal.
    nbytes: how many bytes there are.
    """

    key_id: str
    sha256: str
    nbytes: int


class KeyCheck:
    """Reads the bytes of one object of evaluation keys, piece by piece, as the clients of a program
    send them.

    manifest: of the program, or what ``wanted`` says of it.
    nbytes: how many bytes will come.

    Its memory is that of one key, for a scheme over RLWE, or of one polynomial, for TFHE.

    Raises InvalidArgument for what is no manifest, and LimitExceeded if the program's keys have
    another number of bytes.

    >>> from jali.serve.check import KeyCheck
    >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples)
    >>> keys = program.client().evaluation_keys()
    >>> data = keys.to_bytes()
    >>> check = KeyCheck(program.manifest, len(data))
    >>> for start in range(0, len(data), 1000):
    ...     check.feed(data[start : start + 1000])
    >>> check.finish().key_id == keys.key_id
    True
    """

    def __init__(self, manifest: Any, nbytes: int) -> None:
        self._wanted = manifest if isinstance(manifest, Wanted) else wanted(manifest)
        self._nbytes = nbytes
        check_size(self._wanted, nbytes)
        self._sha256 = hashlib.sha256()
        self._key_id = ""
        self._sealed = b""
        self._received = 0
        self._right = False
        self._parser = self._read()
        self._target: memoryview | int | None = next(self._parser)
        self._filled = 0

    @property
    def received(self) -> int:
        """How many bytes came."""
        return self._received

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """The next bytes.

        Raises CorruptData, VersionError, ParamsMismatch for keys of other parameters, and
        LimitExceeded for more bytes than were to come. After an error all further bytes are refused.
        """
        rest = memoryview(data).cast("B")
        if self._received + len(rest) > self._nbytes:
            raise LimitExceeded(
                f"keys of {self._nbytes} bytes were to come, and there are more: start the upload again with the right length"
            )
        self._hash(rest)
        while len(rest) or self._is_full():
            if self._is_full():
                self._advance()
                continue
            target, at = self._target, self._filled
            if target is None:
                raise _refused()
            size = target if isinstance(target, int) else len(target)
            taken = min(size - at, len(rest))
            if not isinstance(target, int):
                target[at : at + taken] = rest[:taken]
            self._filled, rest = at + taken, rest[taken:]

    def finish(self) -> Found:
        """What was checked, once all bytes came.

        Raises CorruptData if bytes are missing or damaged.
        """
        if self._received != self._nbytes:
            raise CorruptData(
                f"the keys end after {self._received} of {self._nbytes} bytes: send the rest"
            )
        if not self._right:
            raise _refused()
        return Found(self._key_id, self._sha256.hexdigest(), self._nbytes)

    def _is_full(self) -> bool:
        target = self._target
        size = target if isinstance(target, int) else -1 if target is None else len(target)
        return self._filled == size

    def _advance(self) -> None:
        self._filled, self._target = 0, None
        with contextlib.suppress(StopIteration):
            self._target = next(self._parser)

    def _hash(self, data: memoryview) -> None:
        """Adds bytes to the hash. The checksum is the hash of all bytes before it."""
        before = max(0, self._nbytes - CHECKSUM - self._received)
        self._sha256.update(data[:before])
        if len(data) >= before and not self._sealed:
            self._sealed = self._sha256.digest()[:CHECKSUM]
        self._sha256.update(data[before:])
        self._received += len(data)

    def _read(self) -> Generator[memoryview | int, None, None]:
        """Goes through the object. It asks for the next bytes by the memory that they are to fill,
        or by their number if they are skipped."""
        header = bytearray(HEADER)
        yield memoryview(header)
        self._check_header(bytes(header))
        name = bytearray(NAME)
        yield memoryview(name)
        _require(any(name), "they have no name of a secret key")
        self._key_id = name.hex()
        keys = self._wanted.keys
        if isinstance(keys, TfheKeys):
            yield from self._read_tfhe(keys)
        else:
            yield from self._read_keys(keys, bytes(name))
        checksum = bytearray(CHECKSUM)
        yield memoryview(checksum)
        _require(bytes(checksum) == self._sealed, "the checksum is wrong: they were damaged")
        self._right = True

    def _check_header(self, header: bytes) -> None:
        right = self._wanted.header(self._nbytes)
        _require(header[:4] == right[:4], "they do not begin with JALI")
        if header[4:6] != right[4:6]:
            raise VersionError(
                f"the keys have version {int.from_bytes(header[4:6], 'little')} of the format, and this server reads version 1: use a client of its version"
            )
        _require(header[6:8] == right[6:8], "they are no evaluation keys of the program's scheme")
        if header[8:40] != right[8:40]:
            raise ParamsMismatch(
                "the keys were made for other parameters than the program's: make them from its manifest"
            )
        _require(header[40:] == right[40:], "their header gives another length than was announced")

    def _read_tfhe(self, keys: TfheKeys) -> Generator[memoryview | int, None, None]:
        """The keys of TFHE. The library reads them as one object alone, and what it then checks is
        checked here: of their words, that no polynomial and not all of the key for switching are one
        word (docs/format.md)."""
        packing = bytearray(1)
        yield memoryview(packing)
        _require_program(packing[0] == 0)
        words = [(keys.polynomials, keys.polynomial, keys.word), (1, keys.switching, 4)]
        for count, nbytes, word in words:
            yield SEED
            bodies = bytearray(nbytes)
            for _ in range(count):
                yield memoryview(bodies)
                _require(bodies[word:] != bodies[:-word], "a key hides nothing")

    def _read_keys(self, keys: RlweKeys, name: bytes) -> Generator[memoryview | int, None, None]:
        """The keys of a scheme over RLWE. Each becomes an object of its own, which the library reads
        as it reads all."""
        head = bytearray(5)
        yield memoryview(head)
        flags, count = head[0], int.from_bytes(head[1:], "little")
        kinds = _RELINEARISATION * keys.relinearises | _BOOTSTRAPPING * keys.bootstraps
        _require_program(flags & ~_LEVELS == kinds and count == len(keys.levels))
        has_levels = bool(flags & _LEVELS)
        left = self._nbytes - FRAME - NAME - 5
        some_level = False
        wanted_keys = [(None, keys.relinearisation)] if keys.relinearises else []
        for element, level in [*wanted_keys, *sorted(keys.levels.items())]:
            prefix = bytearray((8 if element is not None else 0) + (2 if has_levels else 0))
            if prefix:
                yield memoryview(prefix)
            if element is not None:
                _require_program(int.from_bytes(prefix[:8], "little") == element)
            found = int.from_bytes(prefix[-2:], "little") if has_levels else EVERY_LEVEL
            _require_program(level is None or found == level)
            some_level = some_level or found != EVERY_LEVEL
            size = keys.size(found, self._nbytes)
            left -= len(prefix) + size
            _require(left >= 0, "they end inside a key")
            flag = _RELINEARISATION if element is None else 0
            if found == EVERY_LEVEL:
                prefix = prefix[:8] if element is not None else bytearray()
            else:
                flag |= _LEVELS
            yield from self._read_one(name, flag, element is not None, bytes(prefix), size)
        _require(some_level == has_levels, "they state levels although all serve every level")
        if keys.bootstraps:
            yield from self._read_one(name, _BOOTSTRAPPING, False, b"", left)
        else:
            _require(left == 0, "more follows the last key")

    def _read_one(
        self, name: bytes, flags: int, galois: bool, prefix: bytes, size: int
    ) -> Generator[memoryview | int, None, None]:
        """One key: asks for its bytes, and reads it."""
        fields = name + bytes([flags]) + int(galois).to_bytes(4, "little") + prefix
        nbytes = FRAME + len(fields) + size
        frame = bytearray(nbytes)
        start = HEADER + len(fields)
        frame[:start] = self._wanted.header(nbytes) + fields
        yield memoryview(frame)[start : start + size]
        sealed = memoryview(frame)[: nbytes - CHECKSUM]
        frame[nbytes - CHECKSUM :] = hashlib.sha256(sealed).digest()[:CHECKSUM]
        with _whole:
            self._wanted.load(frame)


def check_size(keys: Wanted, nbytes: int) -> None:
    """Raises LimitExceeded for keys that cannot be those of a program, by their bytes alone."""
    if not keys.least <= nbytes <= keys.most:
        size = f"{keys.most}" if keys.least == keys.most else f"{keys.least} to {keys.most}"
        raise LimitExceeded(
            f"the program's keys have {size} bytes, and {nbytes} were announced: make them from its manifest"
        )


def _refused() -> CorruptData:
    return CorruptData("the keys were refused: send them again from the start")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise CorruptData(f"cannot read the keys: {what}")


def _require_program(holds: bool) -> None:
    _require(holds, "they are not those that the program uses: make them from its manifest")
