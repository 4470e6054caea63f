"""Leaves as whole numbers of steps, and how far sums of them are from those of the model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jali.errors import InvalidArgument
from jali.tfhe.trees.ensemble import Ensemble, Floats, Ints

__all__ = ["Whole", "in_steps"]

_MOST_BITS = 60  # of a sum
_LEAST_STEP = 2.0**-900
Vector = tuple[int, ...]


@dataclass(frozen=True)
class Whole:
    """A tree of an ensemble whose leaves are whole numbers of at least 0: of each node its question
    or -1, its children, and, of a leaf, its numbers for the scores of `scores`."""

    question: Ints
    no: Ints
    yes: Ints
    scores: tuple[int, ...]
    leaf: list[Vector]

    def prune(self) -> Whole:
        """A split whose branches are one and the same leaf becomes this leaf."""
        question, leaf = self.question.copy(), list(self.leaf)
        for node in range(len(question) - 1, -1, -1):
            if question[node] < 0:
                continue
            no, yes = int(self.no[node]), int(self.yes[node])
            if question[no] < 0 and question[yes] < 0 and leaf[no] == leaf[yes]:
                question[node], leaf[node] = -1, leaf[no]
        return Whole(question, self.no, self.yes, self.scores, leaf)

    def reached(self) -> npt.NDArray[np.intp]:
        """The nodes that are left, the root first."""
        found = [0]
        for node in found:
            if self.question[node] >= 0:
                found += [int(self.no[node]), int(self.yes[node])]
        return np.array(found, np.intp)


def in_steps(ensemble: Ensemble, bits: int) -> tuple[list[Whole], Floats, Floats, Floats]:
    """(trees, step of each score, base, largest error of each score): score c is base[c] + step[c]
    times the sum of the trees' numbers.

    The step is a power of two. If leaves are multiples of one that is no smaller than `bits`
    demands, there is no error. Else sums differ from those of the model's leaves by at most 2^-bits
    of the difference between the largest and the smallest sum that leaves can make.
    """
    count = len(ensemble.base)
    lows, spans, trees = np.zeros(count), np.zeros(count), np.zeros(count, np.int64)
    seen: list[list[Floats]] = [[] for _ in range(count)]
    for tree in ensemble.trees:
        for column, score in enumerate(tree.scores):
            values = tree.values[tree.leaves, column]
            lows[score] += values.min()
            spans[score] += values.max() - values.min()
            trees[score] += values.max() > values.min()
            seen[score].append(values)
    step, errors = np.ones(count), np.zeros(count)
    for score in range(count):
        if spans[score] <= 0:
            continue
        demanded = 2.0 ** np.floor(np.log2(2.0 ** (1 - bits) * spans[score] / trees[score]))
        own = min(_grain(values) for values in seen[score])
        if max(own, demanded) < _LEAST_STEP:
            raise InvalidArgument(
                "leaves of the model are too close to 0: multiply what it predicts"
            )
        step[score] = max(own, demanded)
        errors[score] = sum(
            np.abs(np.rint((v - v.min()) / step[score]) * step[score] - (v - v.min())).max()
            for v in seen[score]
        )
        if spans[score] / step[score] >= 2.0**_MOST_BITS:
            raise InvalidArgument(
                f"sums of {bits} bits and {trees[score]} trees have no room: compile with a smaller precision_bits="
            )
    made = []
    for tree in ensemble.trees:
        steps = step[list(tree.scores)]
        low = tree.values[tree.leaves].min(axis=0)
        numbers = np.rint((tree.values - low) / steps).astype(np.int64)
        leaf = [tuple(v) for v in numbers.tolist()]
        made.append(Whole(tree.question, tree.no, tree.yes, tree.scores, leaf).prune())
    return made, step, ensemble.base + lows, errors


def _grain(values: Floats) -> float:
    """The largest power of two of which all differences to the smallest value are multiples, 0 if
    they are not exact."""
    moved = values - values.min()
    if (moved + values.min() != values).any():
        return 0.0
    moved = moved[moved != 0]
    if not moved.size:
        return np.inf
    mantissa, exponent = np.frexp(moved)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    low = np.log2((whole & -whole).astype(np.float64))
    return float(2.0 ** (exponent - 53 + low).min())
