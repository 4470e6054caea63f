"""Private look-up by key: a client asks a server's table for the record of a key, and the server
does not learn which one it was.

A public hash of the keys puts the records into buckets. Records whose keys collide lie in one
bucket, behind each other, each with its key. The bytes of a bucket, four to a number, are a column
of a matrix. The client encrypts a vector with a 1 at its bucket and zeros elsewhere. The product of
the matrix with this vector is that bucket, encrypted, in which the client finds the key or does not.

The server reads its whole table for every query, whichever is asked for. It learns nothing of the
query but that there was one. The client learns the other records of the bucket, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jali import discrete
from jali.errors import InvalidArgument, WrongDecryption

__all__ = ["Agreed", "Client", "Server", "Table", "buckets_for", "layout", "made", "params"]

Bytes = npt.NDArray[np.uint8]
Keys = npt.NDArray[np.uint64]

NUMBER_BYTES = 4  # of the table in one encrypted number
KEY_BYTES = 8
MULTIPLIER = 0x9E3779B97F4A7C15  # odd; 2^64 divided by the golden ratio


def params() -> discrete.Params:
    """A modulus above 2^32, and one level for the product with the table.

    In memory the table takes four times its bytes: words of 32 bits in four limbs for a number. By
    numbers of three bytes, it would take 5.3 times.
    """
    return discrete.Params.create(integers=8 * NUMBER_BYTES, depth=1, word="w32")


def buckets_for(table_bytes: int, agreed: discrete.Params) -> int:
    """A power of two of buckets, of about eight ciphertexts each, as the reply is. More buckets would
    make it shorter, and be filled less evenly."""
    ciphertexts = table_bytes / (NUMBER_BYTES * agreed.slots)
    wanted = max(round(np.log2(ciphertexts / 8)), 4)
    return int(min(1 << wanted, agreed.slots // 2))


@dataclass(frozen=True)
class Agreed:
    """What a server tells its clients. All of it is public.

    buckets: a power of two.
    numbers: in each of them.
    value_bytes: of a record without its key.
    """

    params: discrete.Params
    buckets: int
    numbers: int
    value_bytes: int

    @property
    def rotations(self) -> list[int]:
        """For which the server needs keys."""
        return discrete.Matrix.rotations_of(self.buckets)

    def bucket_of(self, keys: Keys) -> npt.NDArray[np.int64]:
        """Multiply-shift hashing: the highest bits of a product modulo 2^64."""
        bits = self.buckets.bit_length() - 1
        top = (keys * np.uint64(MULTIPLIER)) >> np.uint64(1)  # so that no shift is by 64
        return (top >> np.uint64(63 - bits)).astype(np.int64)


def layout(
    keys: Keys, value_bytes: int, agreed: discrete.Params, buckets: int | None = None
) -> Agreed:
    """What a table of records with these keys is like. buckets: a power of two; None stands for
    what suits the size."""
    record = KEY_BYTES + value_bytes
    count = buckets_for(len(keys) * record, agreed) if buckets is None else buckets
    bucket = Agreed(agreed, count, 0, value_bytes).bucket_of(keys)
    fullest = int(np.bincount(bucket, minlength=count).max())
    # In front of a bucket's records lies one more, whose first bytes are their count.
    return Agreed(agreed, count, -(-(1 + fullest) * record // NUMBER_BYTES), value_bytes)


# --- the server's side ----------------------------------------------------------------------------


class Table:
    """Records in buckets, in the clear.

    keys: (n,) of uint64, all different.
    values: (n, value_bytes) of uint8.
    buckets: as of layout.
    """

    def __init__(
        self, keys: Keys, values: Bytes, agreed: discrete.Params, buckets: int | None = None
    ) -> None:
        if keys.dtype != np.uint64 or values.dtype != np.uint8:
            raise InvalidArgument("keys are numbers of uint64, and values bytes of uint8")
        ordered = np.sort(keys)
        if len(keys) == 0 or (ordered[1:] == ordered[:-1]).any():
            raise InvalidArgument("a table has at least one record, and each key once")
        self.agreed = layout(keys, values.shape[1], agreed, buckets)
        count, size = self.agreed.buckets, self.agreed.numbers * NUMBER_BYTES
        self.bytes: Bytes = np.zeros((count, size), np.uint8)
        records = _records(self.bytes, KEY_BYTES + values.shape[1])
        bucket = self.agreed.bucket_of(keys)
        filled = np.bincount(bucket, minlength=count)
        order = np.argsort(bucket, kind="stable")
        place = 1 + np.arange(len(keys)) - np.repeat(np.cumsum(filled) - filled, filled)
        records[:, 0, :KEY_BYTES] = _bytes_of(filled.astype(np.uint64))
        records[bucket[order], place, :KEY_BYTES] = _bytes_of(keys[order])
        records[bucket[order], place, KEY_BYTES:] = values[order]

    def numbers(self, bucket: int) -> npt.NDArray[np.int64]:
        """A bucket as the client gets it."""
        return _numbers(self.bytes[bucket])

    def rows(self, at_once: int) -> Iterator[npt.NDArray[np.int64]]:
        """The matrix whose columns are the buckets, so many rows at a time."""
        step = at_once * NUMBER_BYTES
        for start in range(0, self.bytes.shape[1], step):
            yield _numbers(self.bytes[:, start : start + step]).T


class Server:
    """The owner of the table. It is made from public keys, and sees neither keys nor records that
    are asked for."""

    def __init__(
        self, table: Table, keys: bytes, *, device: str = "auto", threads: int | None = None
    ) -> None:
        agreed = table.agreed.params
        public = discrete.EvaluationKeys.from_bytes(keys, agreed)
        self.evaluator = discrete.Evaluator(agreed, public, device, threads=threads)
        rows, count = table.rows(agreed.slots), table.agreed.numbers
        # Numbers of four bytes are residues: a sum in which one weight is 1 has no carry.
        self.matrix = discrete.Matrix(self.evaluator, rows, count=count, wrap=True)

    def read(self, query: bytes) -> discrete.EncryptedArray:
        """A query on the device."""
        return self.evaluator.bind(discrete.Ciphertext.from_bytes(query, self.evaluator.params))

    def product(self, asked: discrete.EncryptedArray) -> discrete.EncryptedArray:
        """The product with the matrix, once it is computed."""
        made = self.matrix @ asked
        self.evaluator.synchronize()
        return made

    def __call__(self, query: bytes) -> bytes:
        """The reply to a query."""
        return self.product(self.read(query)).ciphertext.to_bytes()


# --- the client's side ----------------------------------------------------------------------------


class Client:
    """Whoever asks, and the only one with a secret key."""

    def __init__(self, agreed: Agreed, *, threads: int | None = None) -> None:
        self.agreed = agreed
        self._client = discrete.Client(agreed.params, threads=threads)

    def public_bytes(self) -> bytes:
        """The evaluation keys, which the server needs once."""
        keys = self._client.evaluation_keys(self.agreed.rotations, relinearise=False)
        return keys.to_bytes()

    def ask(self, key: int) -> bytes:
        """The query for a key, a whole number of 64 bits: a 1 at its bucket, as many times as it
        fits a ciphertext."""
        chosen = np.zeros(self.agreed.buckets, np.int64)
        chosen[self.agreed.bucket_of(_key(key))[0]] = 1
        copies = self.agreed.params.slots // self.agreed.buckets
        return self._client.encrypt(np.tile(chosen, (copies, 1)), range=(0, 1)).to_bytes()

    def numbers(self, reply: bytes) -> npt.NDArray[np.int64]:
        """The numbers of a bucket in a reply."""
        params = self.agreed.params
        return self._client.decrypt(discrete.Ciphertext.from_bytes(reply, params)) % params.modulus

    def answer(self, key: int, reply: bytes) -> bytes | None:
        """The value of the record with this key, or None if the table has none.

        Raises WrongDecryption for a reply that is no bucket.
        """
        return self.found(key, self.numbers(reply))

    def found(self, key: int, numbers: npt.NDArray[np.int64]) -> bytes | None:
        """The value in a bucket. Its errors are those of answer."""
        if numbers.shape != (self.agreed.numbers,) or numbers.max() >= 1 << 8 * NUMBER_BYTES:
            raise WrongDecryption("the reply is not a bucket of the table")
        low = numbers.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :NUMBER_BYTES]
        records = _records(low.reshape(1, -1), KEY_BYTES + self.agreed.value_bytes)[0]
        count = int(records[0, :KEY_BYTES].copy().view("<u8")[0])
        if count >= len(records):
            raise WrongDecryption("the reply is not a bucket of the table")
        wanted = _bytes_of(_key(key))[0]
        at = np.flatnonzero((records[1 : 1 + count, :KEY_BYTES] == wanted).all(axis=1))
        return records[1 + at[0], KEY_BYTES:].tobytes() if len(at) else None


# --- bytes and numbers ----------------------------------------------------------------------------


def _key(key: int) -> Keys:
    """A key by itself. No error shows it: it is what the client hides."""
    whole = isinstance(key, (int, np.integer)) and not isinstance(key, bool)
    if not whole or not 0 <= key < 1 << 64:
        raise InvalidArgument("a key is a whole number from 0 to 2**64 - 1: of other keys, a hash")
    return np.array([int(key)], np.uint64)


def _bytes_of(keys: Keys) -> Bytes:
    """(n, 8) bytes, little end first."""
    return keys.astype("<u8").view(np.uint8).reshape(-1, KEY_BYTES)


def _records(buckets: Bytes, record: int) -> Bytes:
    """The same memory as (buckets, records, bytes)."""
    count, size = buckets.shape
    buckets = np.ascontiguousarray(buckets)
    return np.ndarray((count, size // record, record), np.uint8, buckets, 0, (size, record, 1))


def _numbers(octets: Bytes) -> npt.NDArray[np.int64]:
    """The numbers of four bytes each along the last axis, little end first."""
    parts = octets.reshape(*octets.shape[:-1], -1, NUMBER_BYTES)
    out = parts[..., 0].astype(np.int64)
    for i in range(1, NUMBER_BYTES):
        out |= parts[..., i].astype(np.int64) << 8 * i
    return out


def made(records: int, value_bytes: int, rng: np.random.Generator) -> tuple[Keys, Bytes]:
    """Random records, the same for the same generator."""
    low = records.bit_length()  # of a key: the record's number, so that keys are different
    high = rng.integers(0, 2 ** (63 - low), records, dtype=np.uint64)
    keys = (high << np.uint64(low)) | np.arange(records, dtype=np.uint64)
    return keys, rng.integers(0, 256, (records, value_bytes), dtype=np.uint8)
