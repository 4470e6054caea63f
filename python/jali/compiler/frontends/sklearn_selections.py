"""Steps of scikit-learn that select or join features."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from jali.compiler.frontends.tracing import Builder
from jali.compiler.ir.graph import Node
from jali.compiler.ir.linear_ops import Concat, Dense, Scale
from jali.errors import InvalidArgument, Unsupported

__all__ = ["JOINED", "columns_of", "is_selection", "joined", "kept"]

Numbers = npt.NDArray[np.intp]  # of features

#: Estimators made of others, whose results stand one behind the other.
JOINED = ("ColumnTransformer", "FeatureUnion")

#: Traces an estimator: (builder, x, model, name, whether it is the last step).
Traced = Callable[[Builder, Node, Any, str], Node]


def is_selection(model: Any) -> bool:
    """Whether it keeps some of the features, as SelectKBest does."""
    return hasattr(model, "get_support") and hasattr(model, "inverse_transform")


def kept(builder: Builder, x: Node, model: Any, name: str) -> Node:
    """What a selection keeps, or SimpleImputer: it drops features without a number, and clients put
    in what is missing."""
    if type(model).__name__ != "SimpleImputer":
        return columns_of(builder, x, name, np.flatnonzero(model.get_support()))
    if model.indicator_ is not None:
        raise Unsupported(
            f"{name}: add_indicator=True cannot be compiled, as no missing number is encrypted: leave the imputer to the client"
        )
    warnings.warn(
        f"{name}: missing numbers cannot be encrypted, and a server would not know them: the client gives examples in which its imputer has put "
        "numbers in their place",
        UserWarning,
        stacklevel=7,
    )
    empty = np.array([isinstance(v, float) and np.isnan(v) for v in model.statistics_.tolist()])
    return columns_of(builder, x, name, np.flatnonzero(~empty | model.keep_empty_features))


def columns_of(builder: Builder, x: Node, name: str, columns: Numbers) -> Node:
    """The features with these numbers."""
    if not len(columns):
        raise InvalidArgument(f"{name}: it keeps no feature")
    if np.array_equal(columns, np.arange(x.size)):
        return x
    weight = np.zeros((len(columns), x.size))
    weight[np.arange(len(columns)), columns] = 1.0
    return builder.add(name, Dense(weight=weight, bias=None), [x])


def _picked(model: Any, label: str, columns: Any, features: int) -> Numbers:
    """The numbers of the features that a step of a ColumnTransformer takes."""
    known = getattr(model, "_transformer_to_input_indices", {})
    # Names of columns, and functions of a table, are numbers there.
    picked = known[label] if label in known else np.arange(features)[columns]
    return np.asarray(picked, np.intp).ravel()


def joined(builder: Builder, x: Node, model: Any, name: str, traced: Traced) -> Node:
    """The results of the steps of a ColumnTransformer or a FeatureUnion, one behind the other."""
    steps: list[tuple[str, Any, Numbers]] = []
    if type(model).__name__ == "FeatureUnion":
        steps = [(label, step, np.arange(x.size)) for label, step in model.transformer_list]
    else:
        if not hasattr(model, "transformers_"):
            raise InvalidArgument(f"{name}: this ColumnTransformer is not fitted: call fit first")
        steps = [(s[0], s[1], _picked(model, s[0], s[2], x.size)) for s in model.transformers_]
    parts = []
    for label, step, columns in steps:
        if (isinstance(step, str) and step == "drop") or not len(columns):
            continue
        y = columns_of(builder, x, f"{label}.columns", columns)
        if not isinstance(step, str):  # "passthrough"
            y = traced(builder, y, step, label)
        weight = (model.transformer_weights or {}).get(label, 1.0)
        if weight != 1:
            factor = np.array(float(weight))
            y = builder.add(label, Scale(factor=factor, offset=np.array(0.0)), [y])
        parts.append(y)
    if not parts:
        raise InvalidArgument(f"{name}: it keeps no feature")
    return parts[0] if len(parts) == 1 else builder.add(name, Concat(axis=0), parts)
