"""The networks of ``jali demo rnn``: a recurrent network and an LSTM of 128 units that read
sentences. tools/train/recurrent.py trained them.

The client has the embedding and the last layer, the server the cell: encrypted vectors in, an
encrypted state out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from jali.demo.shipped import weights_file
from jali.nn import workloads

__all__ = ["BITS", "CELLS", "UNITS", "Cell", "Function", "Network", "load"]

UNITS = 128
BITS = 6  # of precision, of the largest number of a state
SIGMOID_4 = (0.5, 0.216592, 0.0, -0.006602)
TANH_2 = (0.0, 0.866368, 0.0, -0.105634)
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Function:
    """A polynomial in the place of a function, and up to which modulus training keeps its
    argument."""

    coefficients: tuple[float, ...]
    reach: float


@dataclass(frozen=True)
class Cell:
    """A kind of recurrent layer.

    gates: how many rows of UNITS the matrices have.
    gate: in the place of the sigmoid, for cells with gates.
    """

    gates: int
    activation: Function
    gate: Function | None = None


#: The cubic polynomials of an LSTM are the least squares of the sigmoid on [-4, 4] and of tanh on
#: [-2, 2].
CELLS = {
    "rnn": Cell(1, Function(workloads.TANH, 5.0)),
    "lstm": Cell(4, Function(TANH_2, 2.0), Function(SIGMOID_4, 4.0)),
}


@dataclass(frozen=True, eq=False)
class Network:
    """A trained network. embedding: (words, UNITS), with zeros in front for words that it does not
    know. head: UNITS weights and a bias."""

    name: str
    words: tuple[str, ...]
    embedding: Array
    inner: Array
    outer: Array
    head: Array

    def embedded(self, texts: Sequence[str], steps: int) -> Array:
        """What the client encrypts (n, steps, UNITS): the vectors of the last words that are known,
        with zeros in front."""
        found = np.zeros((len(texts), steps, UNITS))
        for row, text in zip(found, texts, strict=True):
            numbers = [self._numbers[w] for w in text.split() if w in self._numbers][-steps:]
            row[steps - len(numbers) :] = self.embedding[numbers]
        return found

    @property
    def _numbers(self) -> dict[str, int]:
        return _numbers(self.words)

    def state(self, vectors: Any) -> Any:
        """The last state (UNITS,) after vectors (steps, UNITS): arrays of NumPy, or those of
        jali.compile."""
        bias, cell = np.zeros(len(self.outer)), CELLS[self.name]
        act = cell.activation.coefficients
        if cell.gate is None:
            return workloads.recurrent(vectors, self.inner, self.outer, bias, activation=act)
        gate = cell.gate.coefficients
        return workloads.lstm(vectors, self.inner, self.outer, bias, gate=gate, activation=act)

    def states(self, vectors: Array) -> Array:
        """The last states (n, UNITS) of vectors (n, steps, UNITS), in the clear."""
        return np.stack([self.state(one) for one in vectors])

    def logits(self, states: Array) -> Array:
        """Positive for praise. The client computes them of decrypted states (n, UNITS)."""
        return np.asarray(states @ self.head[:-1] + self.head[-1])


@cache
def _numbers(words: tuple[str, ...]) -> dict[str, int]:
    return {word: k for k, word in enumerate(words)}


def load(name: str) -> Network:
    """The network with a cell of CELLS."""
    with np.load(weights_file(name), allow_pickle=False) as arrays:
        one = {k: arrays[k] if k == "words" else arrays[k].astype(np.float64) for k in arrays.files}
    words = tuple(bytes(one["words"]).decode().split("\n"))
    embedding = one["embedding"] @ one["expand"].T
    return Network(name, words, embedding, one["inner"], one["outer"], one["head"])
