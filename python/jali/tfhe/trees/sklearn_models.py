"""Reads scikit-learn's classifiers, and rounds their leaves. It needs of scikit-learn only what the model itself is made of."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from jali.errors import InvalidArgument, Unsupported
from jali.tfhe.trees.ensemble import Ensemble, Tree, pruned

__all__ = ["ensemble_of", "rounded"]

FINEST = 16  # steps are 2^-FINEST at least
KNOWN = (
    "DecisionTreeClassifier, ExtraTreeClassifier, RandomForestClassifier, ExtraTreesClassifier or "
    "GradientBoostingClassifier"
)

Floats = npt.NDArray[np.float64]


def rounded(model: Any, step: float = 1.0, largest: float | None = None) -> Any:
    """A copy of a fitted scikit-learn classifier whose leaves are multiples of `step`. Measure what that costs in accuracy.

    step: a power of two of at most 1. Of forests, 1 lets each tree vote for one class, and 1/4 gives it four votes, which it may
        split. Of boosting, it is the grain of decision_function.
    largest: of boosting, what leaves are cut to, either way, before the rounding. Few rows can make a leaf very large.

    Learning rate and first guess of boosting become part of the leaves.
    """
    if not (step > 0 and step <= 1 and math.frexp(step)[0] == 0.5 and step >= 2.0**-FINEST):
        raise InvalidArgument(f"step must be 1, 1/2, 1/4, ... or 2^-{FINEST}, not {step}")
    stages = _stages(model)
    if largest is not None and not (stages and largest >= step):
        raise InvalidArgument(
            f"largest cuts the leaves of boosting to a step at least, and is {largest}: leave it out, or use a larger one"
        )
    model = copy.deepcopy(model)
    if not stages:
        for tree in _forest(model):
            value = tree.value
            value[:, 0, :] = _split_votes(_shares(tree), round(1 / step)) * step
        return model
    limit = math.inf if largest is None else largest
    guess = _first_guess(model)
    # With one score, an odd half step, so that no sum is 0: releases of scikit-learn differ in what they make of it.
    guess = np.rint(guess / step) if len(guess) > 1 else np.floor(guess / step) + 0.5
    for number, stage in enumerate(_stages(model)):
        for tree, first in zip(stage, guess, strict=True):
            value = tree.value
            steps = np.rint(np.clip(value[:, 0, 0] * model.learning_rate, -limit, limit) / step)
            value[:, 0, 0] = (steps + (first if number == 0 else 0)) * step
    model.learning_rate = 1.0
    model.init_ = "zero"
    return model


def ensemble_of(model: Any) -> Ensemble:
    """The trees of a model whose leaves are multiples of a power of two."""
    stages = _stages(model)
    return _of_boosting(model, stages) if stages else _of_forest(model)


def _of_forest(model: Any) -> Ensemble:
    forest = _forest(model)
    shares = [_shares(tree) for tree in forest]
    step = _step_of([share[_leaves(tree)] for tree, share in zip(forest, shares, strict=True)])
    trees = [
        [_tree(tree, share[:, c] / step) for tree, share in zip(forest, shares, strict=True)]
        for c in range(1, len(model.classes_))
    ]
    base = np.zeros(len(trees))
    return Ensemble(trees, step, base, True, len(forest), model.classes_, model.n_features_in_)


def _of_boosting(model: Any, stages: list[list[Any]]) -> Ensemble:
    if not isinstance(model.init_, str):
        raise InvalidArgument(
            "the model begins with a guess that is no part of its trees: round it first, model = trees.rounded(model, step=1/4)"
        )
    trees = [tree for of_score in zip(*stages, strict=True) for tree in of_score]
    values = [tree.value[:, 0, 0] * model.learning_rate for tree in trees]
    # What all leaves of a tree have is no vote. Half steps may be in it.
    firsts = [value[_leaves(tree)][0] for tree, value in zip(trees, values, strict=True)]
    votes = [value - first for value, first in zip(values, firsts, strict=True)]
    step = _step_of([vote[_leaves(tree)] for tree, vote in zip(trees, votes, strict=True)])
    base = np.reshape(firsts, (-1, len(stages))).sum(axis=1)
    _step_of([2 * base])
    made = [_tree(tree, vote / step) for tree, vote in zip(trees, votes, strict=True)]
    of_scores = [made[at : at + len(stages)] for at in range(0, len(made), len(stages))]
    return Ensemble(of_scores, step, base, False, len(stages), model.classes_, model.n_features_in_)


def _kind(model: Any) -> str:
    """The name of the first known class among those of the model."""
    names = [of.__name__ for of in type(model).__mro__ if of.__module__.startswith("sklearn.")]
    return names[0] if names else type(model).__name__


def _forest(model: Any) -> list[Any]:
    """The trees whose probabilities are averaged."""
    single = hasattr(model, "tree_")
    trees = [model.tree_] if single else [one.tree_ for one in model.estimators_]
    if model.n_outputs_ != 1:
        raise Unsupported(
            f"the model predicts {model.n_outputs_} labels at once: fit a model for each of them"
        )
    if len(model.classes_) < 2:
        raise InvalidArgument("the model knows one class alone: fit it on rows of two at least")
    return trees


def _stages(model: Any) -> list[list[Any]]:
    """The trees of boosting, by stage and score; none for other models. Raises Unsupported for models of other kinds."""
    kind = _kind(model)
    if kind not in KNOWN.replace(",", "").split():
        raise Unsupported(
            f"{type(model).__name__} cannot be compiled: use {KNOWN}, of a pipeline its last step"
        )
    if not hasattr(
        model,
        "tree_" if kind in ("DecisionTreeClassifier", "ExtraTreeClassifier") else "estimators_",
    ):
        raise InvalidArgument("the model has not learned anything yet: call its fit() first")
    if kind != "GradientBoostingClassifier":
        return []
    return [[one.tree_ for one in stage] for stage in model.estimators_]


def _first_guess(model: Any) -> Floats:
    """What boosting adds its trees to, for each score."""
    row = np.zeros((1, model.n_features_in_))
    guess = np.atleast_1d(model.decision_function(row)[0]).astype(np.float64)
    for stage in model.estimators_:
        guess -= [model.learning_rate * one.predict(row)[0] for one in stage]
    return guess


def _leaves(tree: Any) -> npt.NDArray[np.bool_]:
    leaves: npt.NDArray[np.bool_] = tree.children_left < 0
    return leaves


def _shares(tree: Any) -> Floats:
    """The probabilities of the classes at every node."""
    value: Floats = tree.value[:, 0, :]
    shares: Floats = value / value.sum(axis=1, keepdims=True)
    return shares


def _split_votes(shares: Floats, votes: int) -> Floats:
    """Whole numbers near votes * shares, of the same sum: the largest fractions are rounded up, of equal ones the first."""
    whole = np.floor(shares * votes)
    order = np.argsort(whole - shares * votes, axis=1, kind="stable")
    left = votes - whole.sum(axis=1, keepdims=True)
    np.put_along_axis(
        whole, order, np.take_along_axis(whole, order, 1) + (np.arange(shares.shape[1]) < left), 1
    )
    return whole


def _step_of(values: list[Floats]) -> float:
    """The largest power of two of at most 1 of which all values are multiples."""
    for bits in range(FINEST + 1):
        if all((np.rint(value * 2.0**bits) == value * 2.0**bits).all() for value in values):
            return 2.0**-bits
    raise InvalidArgument(
        f"leaves of the model are no multiples of 1, 1/2, 1/4, ... or 2^-{FINEST}: round them first, "
        "model = trees.rounded(model, step=1/4)"
    )


def _tree(tree: Any, votes: Floats) -> Tree:
    def below(node: int) -> Tree:
        no, yes = int(tree.children_left[node]), int(tree.children_right[node])
        if no < 0:
            return int(np.rint(votes[node]))
        return pruned(int(tree.feature[node]), float(tree.threshold[node]), below(no), below(yes))

    return below(0)
