"""Look-ups and linear combinations of words on the torus: what the demos of TFHE compute with, and its form in the clear.

A word is a number modulo 2^64 and stands for word / 2^64 modulo 1. A `Client` turns an array of words into an array of
ciphertexts and back, the numbers of one row along the last axis; an `Evaluator` computes on such arrays. The demos are
written against these two. `Clear` is both, on the words themselves: it computes what an encrypted run computes without
its noise, and, if it has parameters, with noise of the same size.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from jali.errors import InvalidArgument
from jali.tfhe import Params

__all__ = [
    "Clear",
    "Client",
    "Evaluator",
    "Words",
    "message_table",
    "message_words",
    "rounded",
    "signed_table",
]

Words = npt.NDArray[np.uint64]
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_MOST_WEIGHT = (
    1 << 21
)  # the sum of a row's |weights|, so that products of halves are exact in float64


class Client(Protocol):
    """The holder of the key."""

    def encrypt(self, words: Words) -> Any:
        """Ciphertexts of the words, of the same shape."""

    def decrypt(self, x: Any) -> Words:
        """The phases, which are the words and noise."""


class Evaluator(Protocol):
    """The server. `size` is N, the words of a table."""

    size: int

    def combine(
        self, weights: npt.NDArray[np.integer[Any]], x: Any, constant: Words | None = None
    ) -> Any:
        """weights (rows, columns): from (.., columns) to (.., rows), the sums of weight times number, plus the constants."""

    def apply(self, tables: Words, x: Any, of: npt.NDArray[np.intp] | None = None) -> Any:
        """Looks up every number of x. tables: (N,), or (count, N); then column j takes the table of[j].

        A number is rounded to the multiple e / 2N of the torus, half up, e in [0, 2N). The result is table[e] for e < N,
        and -table[e - N] beyond.
        """


def rounded(words: Words, size: int) -> npt.NDArray[np.intp]:
    """The exponents in [0, 2N) of words, rounded half up."""
    shift = np.uint64(64 - size.bit_length())  # 2N = 2^size.bit_length()
    half = np.uint64(1) << (shift - np.uint64(1))
    return ((words + half) >> shift).astype(np.intp)


def signed_table(values: npt.NDArray[np.int64]) -> Words:
    """The table of a function of phases in [-1/4, 1/4): values[j + N/2] is its word at the exponent j, -N/2 <= j < N/2."""
    below, above = np.split(np.asarray(values, np.int64).astype(np.uint64), 2)
    return np.concatenate([above, -below])


def message_words(values: npt.NDArray[np.integer[Any]], bits: int) -> Words:
    """Messages 0 to 2^bits - 1 in the highest bits below one bit of padding: v 2^(63 - bits)."""
    return np.asarray(values).astype(np.uint64) << np.uint64(63 - bits)


def message_table(outputs: Words, size: int) -> Words:
    """The table of a function of messages: outputs[v] is its word at v. A box reaches half a step to either side."""
    outputs = np.asarray(outputs, np.uint64)
    count = len(outputs)
    if count & (count - 1) or not 2 <= 2 * count <= size:
        raise InvalidArgument(
            f"a table of {count} messages has no room in {size} words: give a power of two, at most {size // 2}"
        )
    half = size // count // 2
    boxes = np.repeat(outputs, 2 * half)
    # The box of 0 reaches below 0, where the torus gives the negative of the table's end.
    return np.concatenate([boxes[half:], -boxes[:half]])


class Clear:
    """Client and server in the clear. There is no key, and nothing is secret.

    literal: adds the noise that these parameters have, drawn from `rng`; None adds none.
    """

    def __init__(
        self,
        size: int = 2048,
        literal: Params | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        if literal is not None and rng is None:
            raise InvalidArgument("noise needs a generator: give rng=numpy.random.default_rng()")
        self.size = size if literal is None else literal.N
        self._literal, self._rng = literal, rng
        self.look_ups = 0

    def encrypt(self, words: Words) -> Words:
        """The words, with the noise of fresh ciphertexts."""
        words = np.array(words, np.uint64)
        return words if self._literal is None else self._noisy(words, self._literal.fresh_variance)

    def decrypt(self, x: Words) -> Words:
        """The words themselves."""
        return x

    def combine(
        self, weights: npt.NDArray[np.integer[Any]], x: Words, constant: Words | None = None
    ) -> Words:
        """Exact modulo 2^64, as two products of 32-bit halves in float64."""
        matrix = np.asarray(weights, np.float64).T
        if np.abs(matrix).sum(0).max(initial=0) > _MOST_WEIGHT:
            raise InvalidArgument(
                f"the weights of a row sum up to more than {_MOST_WEIGHT}: use smaller ones"
            )
        high = ((x >> _HALF).astype(np.float64) @ matrix).astype(np.int64).astype(np.uint64)
        low = ((x & _LOW).astype(np.float64) @ matrix).astype(np.int64).astype(np.uint64)
        out = (high << _HALF) + low
        return out if constant is None else out + np.asarray(constant, np.uint64)

    def apply(self, tables: Words, x: Words, of: npt.NDArray[np.intp] | None = None) -> Words:
        """The look-up, with the noise of a key switch and a modulus switch before, and of a rotation after it."""
        tables = np.asarray(tables, np.uint64)
        if tables.shape[-1] != self.size:
            raise InvalidArgument(
                f"a table has {tables.shape[-1]} words, and these parameters take {self.size}"
            )
        if self._literal is not None:
            x = self._noisy(x, self._literal.variance_before_look_up(0))
        exponent = rounded(x, self.size)
        entry = exponent % self.size
        found = tables[entry] if of is None else tables[of, entry]
        out: Words = np.where(exponent < self.size, found, -found)
        self.look_ups += out.size
        return (
            out if self._literal is None else self._noisy(out, self._literal.bootstrapped_variance)
        )

    def _noisy(self, words: Words, variance: float) -> Words:
        assert self._rng is not None
        noise = self._rng.standard_normal(words.shape) * (variance**0.5 * 2.0**64)
        out: Words = words + np.rint(noise).astype(np.int64).astype(np.uint64)
        return out
