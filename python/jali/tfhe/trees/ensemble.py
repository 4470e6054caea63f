"""Ensembles of trees, whichever library fitted them: questions, trees of them with numbers at their
leaves, and what the sums mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from jali.errors import InvalidArgument

__all__ = [
    "AS_ZERO",
    "EQUAL",
    "FLOOR",
    "MISSING_YES",
    "MOST_SCORES",
    "NO",
    "REFUSED",
    "TRUNCATE",
    "YES",
    "ZERO_NO",
    "ZERO_YES",
    "Builder",
    "Ensemble",
    "Floats",
    "Head",
    "Question",
    "Tree",
    "answered",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# What is answered for a missing number (NaN). ZERO_NO and ZERO_YES are LightGBM's, for which a zero
# is missing, too. MISSING_YES is for categories alone: yes for a missing one, and no for those that
# are not in `yes`.
REFUSED, NO, YES, AS_ZERO, ZERO_NO, ZERO_YES, MISSING_YES = range(7)
#: How the number of a category is found from a number of a row.
EQUAL, FLOOR, TRUNCATE = range(3)
MOST_SCORES = 1 << 16
_ZERO = float(np.float32(1e-35))  # LightGBM takes smaller numbers for 0


class Question(NamedTuple):
    """``row[feature] > edge`` or, if `yes` is not None, ``row[feature] in yes``.

    missing: the answer if the number is missing. Of categories also the answer for those that are
        neither in `yes` nor in `no`.
    found: EQUAL, FLOOR or TRUNCATE, of categories.
    """

    feature: int
    edge: float = 0.0
    missing: int = REFUSED
    yes: tuple[float, ...] | None = None
    no: tuple[float, ...] = ()
    found: int = EQUAL

    @property
    def chain(self) -> tuple[object, ...]:
        """Questions of one chain have answers that follow each other: who is above an edge is above
        all smaller ones."""
        if self.yes is not None:
            return self
        return self.feature, self.missing


def answered(question: Question, column: Floats) -> npt.NDArray[np.bool_]:
    """The answers for the numbers of its feature."""
    missing = np.isnan(column)
    if question.yes is not None:
        whole = column
        if question.found != EQUAL:
            whole = (np.floor if question.found == FLOOR else np.trunc)(column)
        other = question.missing == YES
        found = np.isin(whole, question.yes)
        if question.missing == MISSING_YES:
            return found | missing
        return found if not other else ~(np.isin(whole, question.no) & ~found)
    if question.missing in (ZERO_NO, ZERO_YES):
        missing |= np.abs(column) <= _ZERO
    above = np.where(missing, 0.0, column) > question.edge
    if question.missing in (REFUSED, AS_ZERO):
        return np.asarray(above)
    return np.where(missing, question.missing in (YES, ZERO_YES), above)


@dataclass(frozen=True)
class Tree:
    """A tree by nodes, of which 0 is the root, and a child comes behind its parent.

    question: of each node, -1 for a leaf.
    no, yes: its children.
    scores: to which scores the leaves add.
    values: (nodes, scores), at leaves.
    """

    question: Ints
    no: Ints
    yes: Ints
    scores: tuple[int, ...]
    values: Floats

    @property
    def leaves(self) -> npt.NDArray[np.bool_]:
        """Which nodes are leaves."""
        return self.question < 0

    def leaf_of(self, answers: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
        """The leaf of every row of answers (n, questions)."""
        at, rows = np.zeros(len(answers), np.intp), np.arange(len(answers))
        while True:
            asked = self.question[at]
            inner = asked >= 0
            if not inner.any():
                return at
            went = answers[rows, np.maximum(asked, 0)]
            at = np.where(inner, np.where(went, self.yes[at], self.no[at]), at)


@dataclass(frozen=True)
class Head:
    """What becomes of the sums at the client.

    divisor: of every sum.
    complement: whether the first class has what the other classes leave of 1.
    link: "identity", "sigmoid", "softmax", "exp", "square" (x |x|) or "isolation" (-2^-x); `factor`
        times the score goes into it, and `offset` is taken off its result.
    pair: whether a probability p is given as (1 - p, p).
    flat: whether a single score is given without an axis of its own.
    rule: how a label follows: "none", "first" of the largest, "above" 0, "from" 0 on, or "anomaly",
        which is below 0.
    """

    divisor: float = 1.0
    complement: bool = False
    link: str = "identity"
    factor: float = 1.0
    offset: float = 0.0
    pair: bool = False
    flat: bool = True
    rule: str = "none"

    LINKS = ("identity", "sigmoid", "softmax", "exp", "square", "isolation")
    RULES = ("none", "first", "above", "from", "anomaly")

    def results(self, scores: Floats, near: Floats) -> Floats:
        """What the model gives for scores (n, scores). near: errors of the scores, within which
        numbers count as equal where a label hangs on it."""
        with np.errstate(all="ignore"):
            return self._results(scores, near)

    def _results(self, scores: Floats, near: Floats) -> Floats:
        s = scores
        if self.complement:
            s = np.concatenate([self.divisor - s.sum(axis=1, keepdims=True), s], axis=1)
            near = np.concatenate([[near.sum()], near])
        s, near = s / self.divisor, near / self.divisor
        if self.rule == "first" and s.shape[1] > 1 and near.any():
            most = s.max(axis=1, keepdims=True)
            s = np.where(most - s <= 2 * near.max(), most, s)
        s = s * self.factor
        if self.link == "sigmoid":
            s = 1 / (1 + np.exp(-s))
        elif self.link == "softmax":
            s = np.exp(s - s.max(axis=1, keepdims=True))
            s = s / s.sum(axis=1, keepdims=True)
        elif self.link == "exp":
            s = np.exp(s)
        elif self.link == "square":
            s = s * np.abs(s)
        elif self.link == "isolation":
            s = -(2.0**-s)
        s = s - self.offset
        if self.rule == "anomaly":  # the slope of 2^-x is below log 2
            s = np.where(np.abs(s) <= near.max() * self.factor, 0.0, s)
        if self.pair:
            s = np.concatenate([1 - s, s], axis=1)
        return s[:, 0] if self.flat and s.shape[1] == 1 else s

    def error(self, errors: Floats) -> float:
        """How far results may be off, for links whose slope is at most 1 ("exp" and "square": of
        what goes into them)."""
        errors = errors / self.divisor * abs(self.factor)
        if self.complement:
            errors = np.append(errors, errors.sum())
        return 3 * float(errors.max()) if self.rule == "first" else float(errors.max())

    def labels(self, results: Floats, classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What the model's predict gives for results."""
        if self.rule == "anomaly":
            return np.where(results < 0, -1, 1)
        if self.rule == "none":
            return results
        if results.ndim == 2:
            chosen = results.argmax(axis=1)
        else:
            chosen = (results > 0 if self.rule == "above" else results >= 0).astype(np.intp)
        labels: npt.NDArray[Any] = classes[chosen]
        return labels


@dataclass(frozen=True)
class Ensemble:
    """A model. Score c is base[c] and the sum of what the trees' leaves have for it.

    features: of a row.
    compared_as: "float32" or "float64", to what numbers of a row are rounded before they are
        compared.
    missing, infinite: whether a row may have NaN, or infinities.
    classes: names, for labels; empty if there are none.
    names: of the features, as texts; empty if they have none.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> rows, kinds = load_iris(return_X_y=True)
    >>> program = jali.compile(DecisionTreeClassifier(max_depth=2).fit(rows, kinds))
    >>> len(program.ensemble.trees), program.ensemble.features
    (1, 4)
    """

    questions: tuple[Question, ...]
    trees: tuple[Tree, ...]
    base: Floats
    head: Head
    features: int
    compared_as: str
    missing: bool
    infinite: bool
    classes: npt.NDArray[Any]
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.names) not in (0, self.features):
            raise InvalidArgument("the model has names for another number of features than it has")
        fits = all(
            0 <= q.feature < self.features and not np.isnan(q.edge) for q in self.questions
        ) and all(0 <= score < len(self.base) for tree in self.trees for score in tree.scores)
        if not fits or not (np.abs(self.base) < 1e100).all():
            raise InvalidArgument(
                "the model compares features or adds to scores that it does not have: save the model again"
            )

    def scores(self, answers: npt.NDArray[np.bool_]) -> Floats:
        """The scores for rows of answers, as floating-point numbers add up."""
        total = np.tile(self.base, (len(answers), 1))
        for tree in self.trees:
            total[:, list(tree.scores)] += tree.values[tree.leaf_of(answers)]
        return total


class Builder:
    """Collects the trees of an ensemble; equal questions are one."""

    def __init__(self) -> None:
        self.questions: dict[Question, int] = {}
        self.trees: list[Tree] = []

    def ask(self, question: Question) -> int:
        """The number of a question."""
        return self.questions.setdefault(question, len(self.questions))

    def add(
        self,
        asked: Sequence[Question | None],
        no: Sequence[int] | Ints,
        yes: Sequence[int] | Ints,
        scores: Sequence[int],
        values: Floats,
    ) -> None:
        """A tree. asked: of each node, None for a leaf. values: (nodes, scores)."""
        order, place, at = [0], np.full(len(asked), -1), 0
        place[0] = 0
        while at < len(order):  # numbers nodes anew, children behind their parents
            node = order[at]
            at += 1
            if asked[node] is None:
                continue
            for child in (int(no[node]), int(yes[node])):
                if not 0 <= child < len(asked) or place[child] >= 0:
                    raise InvalidArgument("the model's nodes are no tree: save the model again")
                place[child] = len(order)
                order.append(child)
        inner = [asked[node] is not None for node in order]
        find = [asked[node] for node in order]
        question = np.array([-1 if q is None else self.ask(q) for q in find], np.int64)
        left, right = (
            np.array(
                [place[int(of[n])] if i else 0 for n, i in zip(order, inner, strict=True)], np.int64
            )
            for of in (no, yes)
        )
        leaves = np.where((question < 0)[:, None], np.asarray(values, np.float64)[order], 0.0)
        if not (np.abs(leaves) < 1e100).all():
            raise InvalidArgument(
                "a leaf of the model is not finite, or above 1e100: fit the model again"
            )
        self.trees.append(Tree(question, left, right, tuple(scores), leaves))
