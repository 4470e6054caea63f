"""The network of ``jali demo encoder``: the encoder of a transformer that reads sentences.
tools/train/encoder.py trained it.

It has two layers, 128 features and two heads of 64, 512 hidden units, softmax, layer normalisation
and GELU, as BERT-tiny. The client has the embedding, in which word and place become a vector. It
fills all places with copies of the sentence, so that nobody has to mask what lies behind its end.
The server has everything
else: encrypted vectors in, an encrypted logit out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from jali.demo.shipped import weights_file
from jali.nn.encoders import encoder_layer, layer_norm

__all__ = [
    "BITS",
    "HEADS",
    "HIDDEN",
    "LAYERS",
    "MARGIN",
    "MEMORY",
    "TOKENS",
    "WIDTH",
    "Array",
    "Network",
    "load",
    "places",
]

TOKENS, WIDTH, HEADS, HIDDEN, LAYERS = 128, 128, 2, 512, 2
BITS = 5  # of precision, of the largest logit of the calibration
MARGIN = 0.2  # of ranges; exp grows by e with every unit of room that it does not use
MEMORY = 40 << 30  # for matrices, and as much for keys of bootstrapping, on a GPU
Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Network:
    """A trained network.

    words: what it knows.
    embedding: (words + 1, WIDTH), first the vector of a sentence without any of them.
    strength: of the vectors of places.
    norm: (2, WIDTH), weight and bias of the normalisation of what the client encrypts.
    layers: the weights of each, as jali.nn.encoders has them.
    head: WIDTH weights and a bias.
    """

    words: tuple[str, ...]
    embedding: Array
    strength: float
    norm: Array
    layers: tuple[Mapping[str, Array], ...]
    head: Array

    def first(self, layers: int) -> Network:
        """The same with its first layers alone, which read worse."""
        return replace(self, layers=self.layers[:layers])

    def embedded(self, texts: Sequence[str], tokens: int = TOKENS) -> Array:
        """What the client encrypts (n, WIDTH, tokens): the vectors of the first words that are
        known, again and again."""
        known = _numbers(self.words)
        found = np.zeros((len(texts), WIDTH, tokens))
        for one, text in zip(found, texts, strict=True):
            numbers = [known[word] for word in text.split() if word in known][:tokens] or [0]
            vectors = self.embedding[numbers] + self.strength * places(len(numbers))
            one[:] = _normed(vectors.T, self.norm)[:, np.arange(tokens) % len(numbers)]
        return found

    def logit(self, vectors: Any) -> Any:
        """Positive for praise (1,): of vectors (WIDTH, tokens), arrays of NumPy or those of
        jali.compile."""
        x = vectors
        for weights in self.layers:
            x = encoder_layer(x, weights, HEADS)
        return self.head[None, :-1] @ x.mean(axis=1) + self.head[-1]

    def logits(self, vectors: Array) -> Array:
        """The logits (n, 1) of vectors (n, WIDTH, tokens), in the clear."""
        return np.stack([self.logit(one) for one in vectors])


def places(count: int) -> Array:
    """The vectors (count, WIDTH) of the first places: sines and cosines of wave lengths from 2 pi
    to 20,000 pi (Vaswani et al. 2017)."""
    angles = np.arange(count)[:, None] / 10000 ** (np.arange(0, WIDTH, 2) / WIDTH)
    return np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(count, WIDTH)


def _normed(x: Array, norm: Array) -> Array:
    return np.asarray(layer_norm(x, norm[0], norm[1]))


@cache
def _numbers(words: tuple[str, ...]) -> dict[str, int]:
    return {word: k for k, word in enumerate(words, 1)}


def load() -> Network:
    """The trained network. A layer's weights are a file of their own."""
    one = _arrays("encoder")
    layers = tuple(_arrays(f"encoder_layer{k + 1}") for k in range(LAYERS))
    words = tuple(bytes(one["words"].astype(np.uint8)).decode().split("\n"))
    embedding = one["embedding"] @ one["expand"].T
    return Network(words, embedding, float(one["strength"]), one["norm"], layers, one["head"])


def _arrays(name: str) -> dict[str, Array]:
    with np.load(weights_file(name), allow_pickle=False) as arrays:
        return {k: arrays[k].astype(np.float64) for k in arrays.files}
