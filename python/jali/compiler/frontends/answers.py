"""Answers of classifiers: what clients read from the results, and the precision that changes none
of them in the calibration.

An answer is the largest of several scores, or on which side of a threshold a number lies. If no
number is off by more than its margin, half the distance between the two largest scores or the
distance to the threshold, the answer is the model's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from jali._core.console import counted_text
from jali.compiler.ir.graph import Array, Graph
from jali.compiler.ir.traced_ops import Function

__all__ = ["DEFAULT_BITS", "Answers", "Kept", "answers_of", "kept_text"]

#: The precision of what no answers are known of.
DEFAULT_BITS = 10.0
# The least and the most bits that follow from answers. Those of approximated functions cost levels.
# If a model was fitted to the calibration, other examples have smaller margins, so that there are
# never fewer than 8.
_APPROXIMATED = 8.0, DEFAULT_BITS
_EXACT = DEFAULT_BITS, 16.0
_FEW = 100  # fewer examples say little about margins
_SAFETY = 4 / 3  # noise was off by 28% more than six standard deviations at most (docs/noise.md)

#: Of the answers of the calibration: how many may change, and how many there are.
Kept = tuple[int, int]


@dataclass(frozen=True)
class Answers:
    """largest: whether the answer is the largest number of each result. Otherwise every number has
    an     answer, by the side of the threshold on which it lies."""

    largest: bool
    threshold: float = 0.0

    def needed(self, results: Array) -> Array:
        """For each result (examples, *shape), the bits of precision that keep its answer, in units
        of the largest number of all."""
        numbers = results.reshape(len(results), -1)
        if self.largest and numbers.shape[1] > 1:
            ordered = np.sort(numbers, axis=1)
            margins = (ordered[:, -1] - ordered[:, -2]) / 2
        else:
            margins = np.abs(numbers - self.threshold).min(axis=1)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log2(_SAFETY * np.abs(numbers).max()) - np.log2(margins))

    def bits(self, results: Array, graph: Graph) -> float:
        """The fewest whole bits of precision with which no answer of the calibration changes, as
        far as these are among those that a default may be."""
        approximated = any(isinstance(node.operation, Function) for node in graph)
        least, most = _APPROXIMATED if approximated else _EXACT
        least = DEFAULT_BITS if len(results) < _FEW else least
        return float(np.clip(math.ceil(min(self.needed(results).max(), most)), least, most))

    def counted(self, results: Array, bits: float) -> Kept:
        """How many answers may change with so many bits, and how many there are."""
        return int((self.needed(results) > bits).sum()), len(results)


def answers_of(model: Any, output: str) -> Answers | None:
    """How the answers of a fitted estimator of scikit-learn are read; None if it is no classifier,
    or gives the probabilities that were asked for."""
    while type(model).__name__ in ("Pipeline", "RFE", "RFECV"):
        steps = getattr(model, "steps", None)
        model = steps[-1][1] if steps else getattr(model, "estimator_", None)
    kind = type(model).__name__
    if output != "logits" or not (hasattr(model, "classes_") or kind == "OneClassSVM"):
        return None
    if kind in (
        "VotingClassifier",
        "BaggingClassifier",
    ):  # of two classes: the second one's probability
        return Answers(largest=False, threshold=0.5)
    return Answers(largest=not _has_signs(model))


def _has_signs(model: Any) -> bool:
    """Whether each number has an answer: whether a label is there, or for which class of a pair it
    votes."""
    binarizer = getattr(model, "_label_binarizer", getattr(model, "label_binarizer_", None))
    many = getattr(binarizer, "y_type_", "").startswith("multilabel")
    return many or type(model).__name__ in ("SVC", "NuSVC")


def kept_text(answers: Kept | None) -> str:
    """What a summary says of the answers."""
    if answers is None:
        return ""
    near, every = answers
    if not near:
        return f", which changes none of the {counted_text(every, 'answer')} of the calibration"
    return (
        f"; {near} of the {counted_text(every, 'answer')} of the calibration {'is' if near == 1 else 'are'} so near to another one that "
        f"{'it' if near == 1 else 'they'} may change"
    )
