"""Estimators of scikit-learn that are made of others for one result: OneVsRest, several targets,
and averages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jali._core.console import one_text
from jali.compiler.frontends.tracing import Builder
from jali.compiler.ir.graph import Node
from jali.compiler.ir.linear_ops import Combine, Concat, Dense, Reshape
from jali.errors import Unsupported
from jali.tfhe import trees

__all__ = ["ENSEMBLES", "ensemble"]

#: Estimators that this module traces.
ENSEMBLES = (
    "OneVsRestClassifier",
    "MultiOutputRegressor",
    "VotingRegressor",
    "VotingClassifier",
    "BaggingRegressor",
    "BaggingClassifier",
    "StackingRegressor",
)

#: Traces an estimator: (builder, x, model, name, output).
Traced = Callable[[Builder, Node, Any, str, str], Node]


def ensemble(builder: Builder, x: Node, model: Any, name: str, output: str, traced: Traced) -> Node:
    """decision_function of OneVsRestClassifier; predict of regressors; the second class's
    probability of a VotingClassifier or a BaggingClassifier of two classes, which the client
    compares with 1/2."""
    kind = type(model).__name__
    if any(trees.is_trees(one) for one in model.estimators_):
        raise Unsupported(
            f"{name}: {one_text(kind)} of trees cannot be compiled: compile its estimators_ one by one, and let the client compute the rest from their results"
        )
    if kind == "VotingClassifier":
        return _votes(builder, x, model, name, traced)
    if kind == "BaggingClassifier":
        if len(model.classes_) != 2 or any(len(one.classes_) != 2 for one in model.estimators_):
            raise Unsupported(
                f"{name}: a BaggingClassifier of other estimators than trees is compiled with two classes: compile its estimators_ one by one, and let the "
                "client take the mean"
            )
        return _bagged(builder, x, model, name, "probability", traced)
    if output != "logits":
        raise Unsupported(
            f'{name}: output="probability" cannot be compiled for {one_text(kind)}: leave it out, and compute the probabilities from the decrypted logits'
        )
    if kind == "BaggingRegressor":
        return _bagged(builder, x, model, name, output, traced)
    parts = [
        traced(builder, x, one, f"{name}.{k}", output) for k, one in enumerate(model.estimators_)
    ]
    if kind == "VotingRegressor":
        return _mean(builder, parts, name, model._weights_not_none)
    if len(parts) == 1 and kind != "StackingRegressor":
        return parts[0]
    joined = _row_of(builder, parts, name)
    if kind != "StackingRegressor":
        return joined
    if model.passthrough:
        joined = builder.add(f"{name}.passed", Concat(axis=0), [joined, x])
    return traced(builder, joined, model.final_estimator_, f"{name}.final", output)


def _row_of(builder: Builder, parts: list[Node], name: str) -> Node:
    """The results one behind the other."""
    rows = [y if y.shape else builder.add(f"{y.name}.row", Reshape(shape=(1,)), [y]) for y in parts]
    return rows[0] if len(rows) == 1 else builder.add(name, Concat(axis=0), rows)


def _bagged(builder: Builder, x: Node, model: Any, name: str, output: str, traced: Traced) -> Node:
    """The mean of estimators that take some of the features each."""
    parts = []
    for k, (one, columns) in enumerate(
        zip(model.estimators_, model.estimators_features_, strict=True)
    ):
        weight = np.zeros((len(columns), x.size))
        weight[np.arange(len(columns)), columns] = 1.0
        y = builder.add(f"{name}.columns{k}", Dense(weight=weight, bias=None), [x])
        parts.append(traced(builder, y, one, f"{name}.{k}", output))
    return _mean(builder, parts, name, None)


def _votes(builder: Builder, x: Node, model: Any, name: str, traced: Traced) -> Node:
    if model.voting != "soft" or len(model.classes_) != 2:
        raise Unsupported(
            f'{name}: a VotingClassifier is compiled with voting="soft" and two classes: compile its estimators_ one by one, and let the client vote'
        )
    parts = [
        traced(builder, x, one, f"{name}.{k}", "probability")
        for k, one in enumerate(model.estimators_)
    ]
    return _mean(builder, parts, name, model._weights_not_none)


def _mean(builder: Builder, parts: list[Node], name: str, weights: Any) -> Node:
    """The mean of arrays, by weights or without them."""
    each = np.ones(len(parts)) if weights is None else np.asarray(weights, np.float64)
    return builder.add(name, Combine(weights=tuple((each / each.sum()).tolist())), parts)
