"""Rounds the leaves of scikit-learn's classifiers, so that a row needs fewer look-ups. It needs of
scikit-learn only what the model itself is made of."""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from jali.errors import InvalidArgument, Unsupported
from jali.tfhe.trees.ensemble import Floats

__all__ = ["rounded"]

FINEST = 16  # steps are 2^-FINEST at least
TREES = ("DecisionTreeClassifier", "ExtraTreeClassifier")
FORESTS = ("RandomForestClassifier", "ExtraTreesClassifier")
BOOSTING = "GradientBoostingClassifier"
HISTOGRAMS = "HistGradientBoostingClassifier"


class Nodes(NamedTuple):
    """A tree of scikit-learn's. `value` (nodes, outputs) is its own memory, and what is written
    there changes the model."""

    no: npt.NDArray[np.int64]  # the child if feature <= edge, -1 for a leaf
    yes: npt.NDArray[np.int64]
    feature: npt.NDArray[np.int64]
    edge: Floats
    value: Floats

    @property
    def leaves(self) -> npt.NDArray[np.bool_]:
        """Which nodes are leaves."""
        return self.no < 0


class Boosting(NamedTuple):
    """scores[c] has the trees whose values, times `rate`, are added to guess[c]."""

    scores: list[list[Nodes]]
    rate: float
    guess: Floats


def rounded(model: Any, step: float = 1.0, largest: float | None = None) -> Any:
    """A copy of a fitted scikit-learn classifier whose leaves are multiples of `step`. Measure what
    that costs in accuracy.

    model: a forest or a boosting of scikit-learn that classifies.
    step: a power of two of at most 1. Of forests, 1 lets each tree vote for one class, and 1/4
        gives it four votes, which it may split. Of boosting, it is the grain of decision_function.
    largest: of boosting, what leaves are cut to, either way, before the rounding. Few rows can make
        a leaf very large.

    The learning rate of boosting becomes part of the leaves, and its first guess is rounded, too.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> rows, kinds = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(5, max_depth=3, random_state=1).fit(rows, kinds)
    >>> trees.rounded(forest).score(rows, kinds) > 0.9
    True
    """
    if not (step > 0 and step <= 1 and math.frexp(step)[0] == 0.5 and step >= 2.0**-FINEST):
        raise InvalidArgument(f"step must be 1, 1/2, 1/4, ... or 2^-{FINEST}, not {step}")
    is_boosting = _kind(model) in (BOOSTING, HISTOGRAMS)
    if largest is not None and not (is_boosting and largest >= step):
        raise InvalidArgument(
            f"largest cuts the leaves of boosting to a step at least, and is {largest}: leave it out, or use a larger one"
        )
    model = copy.deepcopy(model)
    if is_boosting:
        _round_boosting(model, step, math.inf if largest is None else largest)
    else:
        for nodes in _forest(model):
            nodes.value[:] = _split_votes(_shares(nodes), round(1 / step)) * step
    return model


def _round_boosting(model: Any, step: float, limit: float) -> None:
    boosting = _boosting(model)
    for nodes in (nodes for trees in boosting.scores for nodes in trees):
        nodes.value[:] = np.rint(np.clip(nodes.value * boosting.rate, -limit, limit) / step) * step
    guess = boosting.guess / step
    # With one score, an odd half step, so that no sum is 0: releases of scikit-learn differ in what
    # they make of it.
    guess = (np.rint(guess) if len(guess) > 1 else np.floor(guess) + 0.5) * step
    if _kind(model) == HISTOGRAMS:
        model._baseline_prediction = guess[None, :]
        return
    for trees, first in zip(boosting.scores, guess, strict=True):
        trees[0].value[:] += first
    model.learning_rate = 1.0
    model.init_ = "zero"


def _kind(model: Any) -> str:
    """The name of its class, or of the class of scikit-learn's that it extends. Raises Unsupported
    for classes that are not known."""
    known = (*TREES, *FORESTS, BOOSTING, HISTOGRAMS)
    for of in type(model).__mro__:
        if of.__name__ in known and of.__module__.startswith("sklearn."):
            return of.__name__
    raise Unsupported(
        f"the leaves of {type(model).__name__} cannot be rounded: round those of {', '.join(known[:-1])} or {known[-1]}"
    )


def _fitted(model: Any, attribute: str) -> Any:
    """What fit() leaves."""
    if not hasattr(model, attribute):
        raise InvalidArgument("the model has not learned anything yet: call its fit() first")
    return getattr(model, attribute)


def _nodes(tree: Any) -> Nodes:
    """Of sklearn.tree."""
    return Nodes(
        tree.children_left,
        tree.children_right,
        tree.feature,
        tree.threshold,
        tree.value[:, 0, :],
    )


def _histogram_nodes(predictor: Any) -> Nodes:
    """Of a tree of HistGradientBoostingClassifier."""
    nodes = predictor.nodes
    if nodes["is_categorical"].any():
        raise Unsupported(
            "the model compares categories: fit it with categorical_features=None on numbers"
        )
    no = np.where(nodes["is_leaf"] == 1, -1, nodes["left"].astype(np.int64))
    return Nodes(
        no,
        nodes["right"].astype(np.int64),
        nodes["feature_idx"],
        nodes["num_threshold"],
        nodes["value"][:, None],
    )


def _forest(model: Any) -> list[Nodes]:
    """The trees whose probabilities are averaged."""
    if _kind(model) in TREES:
        trees = [_fitted(model, "tree_")]
    else:
        trees = [one.tree_ for one in _fitted(model, "estimators_")]
    if model.n_outputs_ != 1:
        raise Unsupported(
            f"the model predicts {model.n_outputs_} labels at once: fit a model for each of them"
        )
    if len(model.classes_) < 2:
        raise InvalidArgument("the model knows one class alone: fit it on rows of two at least")
    return [_nodes(tree) for tree in trees]


def _boosting(model: Any) -> Boosting:
    if _kind(model) == HISTOGRAMS:
        stages = [
            [_histogram_nodes(one) for one in stage] for stage in _fitted(model, "_predictors")
        ]
        return Boosting(_by_score(stages), 1.0, model._baseline_prediction[0].astype(np.float64))
    stages = [[_nodes(one.tree_) for one in stage] for stage in _fitted(model, "estimators_")]
    # scikit-learn does not say what it begins with, but what a row gets in all.
    row = np.zeros((1, model.n_features_in_))
    guess = np.atleast_1d(model.decision_function(row)[0]).astype(np.float64)
    for stage in model.estimators_:
        guess -= [model.learning_rate * one.predict(row)[0] for one in stage]
    return Boosting(_by_score(stages), model.learning_rate, guess)


def _by_score(stages: list[list[Nodes]]) -> list[list[Nodes]]:
    return [list(trees) for trees in zip(*stages, strict=True)]


def _shares(nodes: Nodes) -> Floats:
    """The probabilities of the classes at every node."""
    shares: Floats = nodes.value / nodes.value.sum(axis=1, keepdims=True)
    return shares


def _split_votes(shares: Floats, votes: int) -> Floats:
    """Whole numbers near votes * shares, of the same sum: the largest fractions are rounded up, of
    equal ones the first."""
    whole = np.floor(shares * votes)
    order = np.argsort(whole - shares * votes, axis=1, kind="stable")
    left = votes - whole.sum(axis=1, keepdims=True)
    up = np.take_along_axis(whole, order, 1) + (np.arange(shares.shape[1]) < left)
    np.put_along_axis(whole, order, up, 1)
    return whole
