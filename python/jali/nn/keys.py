"""The keys that a program uses: which they are, how many bytes they take, and how a client makes them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jali import ckks
from jali.ckks import Params

__all__ = ["Demand", "key_bytes", "keys", "sent_bytes"]

_WORD_BYTES = {"w32": 4, "w52": 8, "w64": 8}
_SEED = 32  # bytes, which stand for the uniform half of a key


@dataclass(frozen=True)
class Demand:
    """The keys that a program uses: each rotation with the highest level at which it does, and the highest product, 0 if there
    is none. noise_bits: for each output, -log2 of the standard deviation of its noise, in its scale."""

    rotations: dict[int, int]
    product: int
    noise_bits: tuple[float, ...]

    @property
    def levels(self) -> list[int]:
        """The level of every key."""
        return [*self.rotations.values(), *([self.product] if self.product else [])]


def key_bytes(params: Params, level: int) -> int:
    """The bytes in memory of one key-switching key for a level and those below, as the client makes it."""
    words = _digits(params, level) * (len(params.level(level).primes) + params.p_count)
    return words * 2 * params.slots * _WORD_BYTES[params.word] + _SEED


def sent_bytes(params: Params, level: int) -> int:
    """The bytes of this key in a message, where every residue takes as many bits as its prime."""
    used = [params.primes[k] for k in params.level(level).primes] + params.primes[params.q_count :]
    bits = sum(prime.bit_length() for prime in used)
    return _digits(params, level) * bits * 2 * params.slots // 8 + _SEED


def _digits(params: Params, level: int) -> int:
    """A key has one polynomial over the primes of its level and the special ones for each digit."""
    return math.ceil(len(params.level(level).primes) / math.ceil(params.q_count / params.dnum))


def keys(
    client: ckks.Client, demand: Demand, progress: Callable[[int, int], object] | None = None
) -> ckks.EvaluationKeys:
    """The keys of a demand, each for the levels at which it is used. progress: as of ckks.Client.evaluation_keys."""
    if not demand.rotations and not demand.product:
        return client.evaluation_keys(relinearise=False, progress=progress)

    def uses(x: ckks.EncryptedArray) -> list[ckks.EncryptedArray]:
        server, fresh = x.evaluator, x.ciphertext
        explicit, found = server.explicit, []
        if demand.product:
            low = explicit.drop_to(fresh, demand.product)
            found.append(server.bind(explicit.relinearise_rescale(explicit.square(low))))
        for step, level in demand.rotations.items():
            found.append(server.bind(explicit.rotate(explicit.drop_to(fresh, level), step)))
        return found

    example = client.encrypt(np.zeros(client.params.slots), magnitude=2.0**-10, peak=2.0**-9)
    return client.evaluation_keys(for_=uses, example=example, progress=progress)
