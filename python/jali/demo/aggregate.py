"""Sums of many owners' numbers: each encrypts a vector under a public key, a server adds the
ciphertexts, and whoever has the secret key decrypts the sum alone.

Numbers lie in coefficients, where sums are all that there is, modulo a power of two that holds the
largest possible sum. The server and the holder of the secret key must not be one party, nor work
together against the owners: with the key, every single vector can be read.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jali import discrete
from jali.errors import InvalidArgument

__all__ = ["BITS", "Collector", "Owner", "Server", "made", "params"]

Numbers = npt.NDArray[np.uint16]
Sums = npt.NDArray[np.int64]

BITS = 16
WHOLE = (0, 2**BITS - 1)
MAX_BYTES = 1 << 32  # of a ciphertext: vectors of millions of numbers
#: So many encryptions have a sum in parameters without levels (Params.create). One level more is
#: room for more owners than there are.
FEW = 16


def params(owners: int) -> discrete.Params:
    """Parameters for the sum of so many owners' numbers of 16 bits."""
    largest = owners * (2**BITS - 1)
    return discrete.Params.create(
        modulus=1 << largest.bit_length(),
        packing="coefficients",
        depth=0 if owners <= FEW else 1,
    )


class Collector:
    """Whoever is to learn the sums, and nothing else. It has the secret key."""

    def __init__(self, agreed: discrete.Params, *, threads: int | None = None) -> None:
        self._client = discrete.Client(agreed, threads=threads)

    def public_bytes(self) -> bytes:
        """The key with which owners encrypt."""
        return self._client.public_key().to_bytes()

    def sums(self, reply: bytes) -> Sums:
        """The sums, which are exact."""
        params = self._client.params
        return self._client.decrypt(
            discrete.Ciphertext.from_bytes(reply, params, max_bytes=MAX_BYTES)
        )


class Owner:
    """One of many who have numbers. It has no secret key, and cannot read what others send."""

    def __init__(self, agreed: discrete.Params, key: bytes, *, threads: int | None = None) -> None:
        public = discrete.PublicKey.from_bytes(key, agreed)
        self._encryptor = discrete.Encryptor(public, threads=threads)

    def send(self, numbers: Numbers) -> bytes:
        """The encryption of a vector."""
        return self._encryptor.encrypt(numbers, range=WHOLE, max_bytes=MAX_BYTES).to_bytes()


class Server:
    """Whoever adds. It has no key at all."""

    def __init__(
        self, agreed: discrete.Params, *, device: str = "auto", threads: int | None = None
    ) -> None:
        self.evaluator = discrete.Evaluator(agreed, None, device, threads=threads)
        self._total: discrete.EncryptedArray | None = None

    def add(self, sent: bytes) -> None:
        """Adds an owner's vector to the sum.

        Raises InvalidArgument for what an Owner does not send. Nobody can see the numbers: an owner
        who lies of their range makes a wrong sum, or one that the collector cannot decrypt.
        """
        read = discrete.Ciphertext.from_bytes(sent, self.evaluator.params, max_bytes=MAX_BYTES)
        part = self.evaluator.bind(read)
        if part.wraps or part.range != WHOLE:
            raise InvalidArgument(f"an owner's numbers have {BITS} bits: send what Owner.send made")
        if self._total is not None and part.shape != self._total.shape:
            raise InvalidArgument(
                f"all owners send equally many numbers, the first sent {self._total.size} of them, and this one {part.size}"
            )
        self._total = part if self._total is None else self._total + part

    def reply(self) -> bytes:
        """The sum so far, of at least one vector."""
        if self._total is None:
            raise InvalidArgument("nobody has sent a vector yet: add one first")
        return self._total.ciphertext.to_bytes()


def made(count: int, owner: int, seed: int) -> Numbers:
    """The numbers of an owner, the same for the same seed."""
    return np.random.default_rng([seed, owner]).integers(0, 2**BITS, count, dtype=np.uint16)
