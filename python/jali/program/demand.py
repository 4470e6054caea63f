"""The keys that a compiled program uses, and what they cost its client."""

from __future__ import annotations

from dataclasses import dataclass

from jali._core.console import bytes_text, counted_text, seconds_text

__all__ = ["BOOTSTRAP_KEYS", "MAX_CLIENT_BYTES", "MAX_KEY_BYTES", "ClientCost", "Demand", "KeyCost"]

#: The bytes of keys that a client makes unless its user allows more. The largest programs that were
#: run have 49 GB of them in a server, which are half as many here.
MAX_KEY_BYTES = 1 << 36

#: The bytes of memory that a client takes for itself, and for a request or a reply with the fewest
#: examples, unless its user allows more. The largest requests that were run have 0.9 GB.
MAX_CLIENT_BYTES = 1 << 31

#: Which keys of bootstrapping a client makes: none, those for the fewest key switchings, or the
#: fewest. A whole number in their place stands for the fastest of so many bytes, in a server's
#: memory and without the rotations of the program.
BOOTSTRAP_KEYS = ("none", "all", "fewest")


@dataclass(frozen=True)
class Demand:
    """The keys that a program uses: each rotation with the highest level at which it does, and the
    highest product, 0 if there is none. noise_bits: for each output, -log2 of the standard
    deviation of its noise, in its scale: of the number that has most of it or, of a program that
    bootstraps, the average over numbers.

    bootstrap: one of BOOTSTRAP_KEYS, or a number of bytes.
    restored_bits: the precision that a bootstrapping of these parameters has; 0 if bounds say how
        large noise may be, as without bootstrapping they mostly do.
    conjugation: the highest level at which it conjugates, -1 if it does not.
    packings: with how many slots it bootstraps, 0 for all.
    """

    rotations: dict[int, int]
    product: int
    noise_bits: tuple[float, ...]
    bootstrap: str | int = "none"
    restored_bits: float = 0.0
    conjugation: int = -1
    packings: tuple[int, ...] = (0,)

    @property
    def levels(self) -> list[int]:
        """The level of every key of a program that does not bootstrap."""
        others = [self.product] if self.product else []
        others += [self.conjugation] if self.conjugation >= 0 else []
        return [*self.rotations.values(), *others]


@dataclass(frozen=True)
class KeyCost:
    """What the keys of a program cost its client. count: of keys. made: their bytes in the client's
    memory. sent: their bytes in a message.
    seconds: about the time that one thread takes to make them."""

    count: int
    made: int
    sent: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{counted_text(self.count, 'key')} of {bytes_text(self.made)} in memory, {bytes_text(self.sent)} to send, about "
            f"{seconds_text(self.seconds)} of one thread"
        )


@dataclass(frozen=True)
class ClientCost:
    """What a program costs its client besides keys, in bytes of memory. own: at most, for tables
    and the secret key. request, reply: ciphertexts and the numbers in them, for `examples`
    examples, which are as many as one ciphertext holds."""

    own: int
    request: int
    reply: int
    examples: int

    def __str__(self) -> str:
        return (
            f"{bytes_text(self.own)} for the client, and for {counted_text(self.examples, 'example')} {bytes_text(self.request)} in a request and "
            f"{bytes_text(self.reply)} in a reply"
        )
