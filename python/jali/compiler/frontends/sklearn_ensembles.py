"""Estimators of scikit-learn that are made of others for one result: OneVsRest, several targets, and averages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jali._core.console import one_text
from jali.compiler.frontends.tracing import Builder
from jali.compiler.ir.graph import Node
from jali.errors import Unsupported

__all__ = ["ENSEMBLES", "ensemble"]

#: Estimators that this module traces.
ENSEMBLES = (
    "OneVsRestClassifier",
    "MultiOutputRegressor",
    "VotingRegressor",
    "VotingClassifier",
    "BaggingRegressor",
)

#: Traces an estimator: (builder, x, model, name, output).
Traced = Callable[[Builder, Node, Any, str, str], Node]


def ensemble(builder: Builder, x: Node, model: Any, name: str, output: str, traced: Traced) -> Node:
    """decision_function of OneVsRestClassifier; predict of regressors; the second class's probability of a VotingClassifier of two classes, of which the client
    compares with 1/2."""
    kind = type(model).__name__
    if kind == "VotingClassifier":
        return _votes(builder, x, model, name, traced)
    if output != "logits":
        raise Unsupported(
            f'{name}: output="probability" cannot be compiled for {one_text(kind)}: leave it out, and compute the probabilities from the decrypted logits'
        )
    if kind == "BaggingRegressor":
        parts = []
        for k, (one, columns) in enumerate(
            zip(model.estimators_, model.estimators_features_, strict=True)
        ):
            weight = np.zeros((len(columns), x.size))
            weight[np.arange(len(columns)), columns] = 1.0
            y = builder.add(f"{name}.columns{k}", "dense", [x], weight=weight, bias=None)
            parts.append(traced(builder, y, one, f"{name}.{k}", output))
        return _mean(builder, parts, name, None)
    parts = [
        traced(builder, x, one, f"{name}.{k}", output) for k, one in enumerate(model.estimators_)
    ]
    if kind == "VotingRegressor":
        return _mean(builder, parts, name, model._weights_not_none)
    if len(parts) == 1:
        return parts[0]
    rows = [builder.add(f"{y.name}.row", "reshape", [y], shape=(1,)) for y in parts]
    return builder.add(name, "concat", rows, axis=0)


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
    return builder.add(name, "combine", parts, weights=each / each.sum())
