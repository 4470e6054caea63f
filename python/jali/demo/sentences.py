"""Sentences of film reviews with their polarity: the set of Pang and Lee (2005), or made ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jali.errors import InvalidArgument

__all__ = ["HELD", "Sentences", "load", "made"]

HELD = 1000  # sentences that are not trained on
MAX_FILE_BYTES = 1 << 26
_FILES = (("rt-polarity.neg", 0), ("rt-polarity.pos", 1))


@dataclass(frozen=True)
class Sentences:
    """Texts in lower case, words and signs between spaces; labels (n,), 1 for praise; and where
    they come from."""

    texts: tuple[str, ...]
    labels: npt.NDArray[np.int64]
    source: str

    def first(self, limit: int) -> Sentences:
        """The first `limit` of them."""
        return Sentences(self.texts[:limit], self.labels[:limit], self.source)

    def frequent(self, most: int) -> list[str]:
        """At most so many words, the most frequent first, and equally frequent ones in the order of
        the alphabet."""
        counts = Counter(word for text in self.texts for word in text.split())
        return sorted(sorted(counts), key=lambda word: -counts[word])[:most]


def load(folder: Path) -> tuple[Sentences, Sentences]:
    """The sentences of a folder with rt-polarity.pos and rt-polarity.neg, those for training and
    HELD others, in a fixed order.

    Raises InvalidArgument for files that are missing or hold anything else.
    """
    texts: list[str] = []
    labels: list[int] = []
    for name, label in _FILES:
        lines = _lines(folder / name)
        texts += lines
        labels += [label] * len(lines)
    if len(texts) < 2 * HELD:
        raise InvalidArgument(f"{folder}: {len(texts)} sentences, and {2 * HELD} are the least")
    order = np.random.default_rng(5331).permutation(len(texts))
    marks = np.array(labels)

    def part(rows: npt.NDArray[np.int64]) -> Sentences:
        return Sentences(tuple(texts[k] for k in rows), marks[rows], str(folder))

    return part(order[HELD:]), part(order[:HELD])


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise InvalidArgument(
            f"{path}: no such file: give a folder with rt-polarity.pos and rt-polarity.neg"
        )
    if path.stat().st_size > MAX_FILE_BYTES:
        raise InvalidArgument(f"{path}: larger than {MAX_FILE_BYTES >> 20} MiB")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line for line in lines if line.strip()]


def made(words: tuple[str, ...], count: int, rng: np.random.Generator) -> Sentences:
    """Sentences of 5 to 40 words that are drawn at random. Their labels mean nothing."""
    texts = tuple(" ".join(rng.choice(words, rng.integers(5, 41))) for _ in range(count))
    return Sentences(texts, rng.integers(0, 2, count), "random words, made for this run")
