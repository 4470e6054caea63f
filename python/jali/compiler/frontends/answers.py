"""Answers of classifiers: what clients read from the results, and the precision that changes none
of them in the calibration.

An answer is the largest of several scores, or on which side of a threshold a number lies. If no
number is off by more than its margin, half the distance between the two largest scores or the
distance to the threshold, the answer is the model's. Where no answers are read, a tolerance may
stand for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jali._core import checks
from jali._core.console import counted_text
from jali.compiler.ir.graph import Array, Graph
from jali.compiler.ir.traced_ops import Function
from jali.errors import InvalidArgument

__all__ = ["DEFAULT_BITS", "Answers", "Kept", "answers_of", "asked_answers", "kept_text"]

#: The precision of what no answers are known of.
DEFAULT_BITS = 10.0
# The least and the most bits that follow from answers. Those of approximated functions cost levels.
# If a model was fitted to the calibration, other examples have smaller margins, so that there are
# never fewer than 8.
_APPROXIMATED = 8.0, DEFAULT_BITS
_EXACT = DEFAULT_BITS, 16.0
#: The least and the most bits of precision_bits="auto".
_ASKED = 2.0, 24.0
_MOST = 40.0  # that jali.compile takes
_FEW = 100  # fewer examples say little about margins
_SAFETY = 4 / 3  # noise was off by 28% more than six standard deviations at most (docs/noise.md)

#: Of the answers of the calibration: how many may change, and how many there are.
Kept = tuple[int, int]


@dataclass(frozen=True)
class Answers:
    """largest: whether the answer is the largest number along the last axis of each result.
        Otherwise every number has an answer, by the side of the threshold on which it lies.
    tolerance: by how much a number may be off, in the model's units, in the place of answers.
    """

    largest: bool
    threshold: float = 0.0
    tolerance: float | None = None

    def needed(self, results: Array) -> Array:
        """For each result (examples, *shape), the bits of precision that keep its answer, in units
        of the largest number of all."""
        numbers = results.reshape(len(results), -1)
        if self.tolerance is not None:
            margins = np.full(len(results), self.tolerance)
        elif self.largest and numbers.shape[1] > 1:
            scores = numbers if results.shape[-1] == 1 else results
            ordered = np.sort(scores.reshape(len(results), -1, scores.shape[-1]), axis=-1)
            margins = ((ordered[..., -1] - ordered[..., -2]) / 2).min(axis=1)
        else:
            margins = np.abs(numbers - self.threshold).min(axis=1)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log2(_SAFETY * np.abs(numbers).max()) - np.log2(margins))

    def every_needed(self, results: Sequence[Array]) -> Array:
        """For each example, the bits that keep the answers of all outputs."""
        return np.asarray(np.max([self.needed(of) for of in results], axis=0))

    def bits(self, results: Sequence[Array], graph: Graph) -> float:
        """The fewest whole bits of precision with which no answer of the calibration changes, as
        far as these are among those that a default may be.

        results: of every output.
        """
        approximated = any(isinstance(node.operation, Function) for node in graph)
        least, most = _APPROXIMATED if approximated else _EXACT
        least = DEFAULT_BITS if len(results[0]) < _FEW else least
        return float(np.clip(math.ceil(min(self.every_needed(results).max(), most)), least, most))

    def least_bits(self, results: Sequence[Array]) -> float:
        """The fewest whole bits of precision with which no answer of the calibration changes. Those
        that take more than 24 are left out, and others decide.

        Raises InvalidArgument for a tolerance that takes more bits than there are.
        """
        needed = self.every_needed(results)
        least, most = _ASKED
        if self.tolerance is not None:
            bits = math.ceil(max(least, needed.max()))
            if bits > _MOST:
                raise InvalidArgument(
                    f"a tolerance of {self.tolerance:g} takes {bits} bits of precision beside the largest result, and a program has at most {_MOST:g}: "
                    "give a larger one"
                )
            return float(bits)
        kept = needed[needed <= most]
        return float(max(least, math.ceil(kept.max()))) if kept.size else DEFAULT_BITS

    def counted(self, results: Sequence[Array], bits: float) -> Kept:
        """How many answers may change with so many bits, and how many there are."""
        return int((self.every_needed(results) > bits).sum()), len(results[0])


def asked_answers(asked: Any, model: Any, output: str) -> Answers:
    """How answers are read for precision_bits="auto".

    asked: answers= of jali.compile.

    Raises InvalidArgument for anything else.
    """
    if asked is None:
        return answers_of(model, output) or Answers(largest=True)
    if isinstance(asked, str) and asked in ("argmax", "sign"):
        return Answers(largest=asked == "argmax")
    number = isinstance(asked, (int, float, np.integer, np.floating)) and not isinstance(
        asked, bool
    )
    if not number or not 0 < asked < math.inf:
        raise InvalidArgument(
            f'answers is "argmax", "sign" or a tolerance above 0, in the units of the results, not {checks.shown(asked)}'
        )
    return Answers(largest=False, tolerance=float(asked))


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
