"""The task of ``jali demo helr``: training a logistic regression to tell a 3 from an 8 (Han et al.,
2019).

A row is the means of 2x2 pixels, 14x14 of them between 0 and 1, and a 1 for the bias, times the
label, in 256 columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jali.demo import data
from jali.errors import InvalidArgument

__all__ = ["BITS", "COLUMNS", "FEATURES", "Task", "load", "made"]

SIDE = 14
FEATURES = SIDE * SIDE
COLUMNS = 256  # a power of two, so that sums along rows are rotations
DIGITS = (3, 8)
BITS = 8  # of precision, of the largest weight
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """Rows (n, COLUMNS) for training, others to test the weights on, and where they come from."""

    train: Array
    held: Array
    source: str

    def batches(self, rows: int, count: int) -> list[Array]:
        """At most `count` batches of so many rows, which the iterations take in turn.

        Raises InvalidArgument if there is no whole batch.
        """
        whole = min(count, len(self.train) // rows)
        if not whole:
            raise InvalidArgument(
                f"{self.source}: {len(self.train)} rows to train on, and a batch has {rows}: use a smaller --batch"
            )
        return [self.train[k * rows : (k + 1) * rows] for k in range(whole)]

    def accuracy(self, weights: Array) -> float:
        """The share of the other rows that weights (COLUMNS,) classify rightly."""
        return float(np.mean(self.held @ weights > 0))


def _rows(images: npt.NDArray[np.generic], labels: npt.NDArray[np.int64]) -> Array:
    means = np.asarray(images, np.float64).reshape(-1, SIDE, 2, SIDE, 2).mean((2, 4)) / 255
    signs = np.where(labels == DIGITS[0], 1.0, -1.0)
    rows = np.zeros((len(images), COLUMNS))
    rows[:, :FEATURES], rows[:, FEATURES] = means.reshape(-1, FEATURES), 1
    return rows * signs[:, None]


def load(images: Path, labels: Path | None = None) -> Task:
    """The images of a 3 and of an 8 in a file of 28x28 digits: the last 6% to test on, the others
    in a fixed order.

    Raises InvalidArgument as data.load_mnist does.
    """
    found = data.load_mnist(images, labels)
    chosen = np.isin(found.labels, DIGITS)
    if len(set(found.labels[chosen])) < 2:
        raise InvalidArgument(f"{images}: it needs images of both {DIGITS[0]} and {DIGITS[1]}")
    rows = _rows(found.images[chosen], found.labels[chosen])
    train, held = np.split(rows, [len(rows) - max(1, len(rows) * 6 // 100)])
    order = np.random.default_rng(8).permutation(len(train))
    return Task(train[order], held, found.source)


def made(rows: int, rng: np.random.Generator) -> Task:
    """So many rows of drawn figures, and 1,000 to test on: two rings above each other, or the right
    halves of both, with noise."""
    count = rows + 1000
    labels = rng.choice(DIGITS, count)
    y, x = (grid[None] for grid in np.mgrid[:28, :28])
    centre = 14 + rng.uniform(-2, 2, (2, count, 1, 1))
    radius, width = rng.uniform(4, 5.5, (count, 1, 1)), rng.uniform(1, 2, (count, 1, 1))
    rings = [np.hypot(x - centre[0], y - centre[1] - side * radius) for side in (-1, 1)]
    drawn = (np.abs(rings - radius) < width).any(0)
    drawn &= (labels == DIGITS[1])[:, None, None] | (x > centre[0] - 2)
    images = np.clip(200 * drawn + rng.uniform(-80, 40, drawn.shape), 0, 255)
    found = _rows(images, labels)
    return Task(found[:rows], found[rows:], "figures drawn for this run")
