"""Linear models with whole weights, made of those that training gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._core.refusals import Answering
from jali.compiler.frontends.model_source import is_estimator
from jali.compiler.integers.intervals import EXACT
from jali.errors import InvalidArgument, Unsupported

__all__ = ["Quantised", "quantised"]


class Quantised(metaclass=Answering):
    """A linear model with whole weights: scale times its scores is weight x + offset.

    It is a function of one example (n,), for jali.compile, and of NumPy's arrays (.., n).

    weight: (m, n), whole numbers.
    offset: (m,), whole numbers.
    scale: a whole number from 1. The client divides results by it (Client.decoded).

    Raises InvalidArgument for fractions and other shapes.

    >>> model = nn.integers.Quantised(np.array([[2, -1]]), np.array([3]), scale=4)
    >>> model(np.array([5, 1]))
    array([12])
    """

    def __init__(self, weight: npt.ArrayLike, offset: npt.ArrayLike, scale: int = 1) -> None:
        found, added = _whole(weight, "weight"), _whole(offset, "offset")
        if found.ndim != 2 or added.shape != found.shape[:1]:
            raise InvalidArgument(
                f"weight is a matrix (m, n) and offset a vector (m,), not arrays of {found.shape} and {added.shape}"
            )
        self.feature_names_in_: Any = None
        self.weight, self.offset = found, added
        self.scale = checks.whole(scale, 1, "scale must be a whole number from 1")

    def __call__(self, x: Any) -> Any:
        return x @ self.weight.T + self.offset

    def __repr__(self) -> str:
        return f"Quantised({self.weight.shape}, scale={self.scale})"


def _whole(numbers: npt.ArrayLike, what: str) -> npt.NDArray[np.int64]:
    array = checks.as_array(numbers, f"{what} is no array of numbers")
    if array.dtype.kind not in "biuf" or not np.all(np.isfinite(array)):
        raise InvalidArgument(f"{what} is an array of whole numbers")
    if np.any(array != np.rint(array)) or np.any(np.abs(array.astype(np.float64)) >= EXACT):
        raise InvalidArgument(
            f"{what} holds fractions, or numbers of 2**53 or more: give np.rint(scale * {what}) with a scale that keeps them smaller"
        )
    return np.asarray(array, np.int64)


def quantised(model: Any, scale: int, feature_scale: int = 1) -> Quantised:
    """A fitted linear model of scikit-learn with rounded weights.

    model: what has coef_ and intercept_: linear and logistic regression, linear support vector
        machines, ridge, SGD and others.
    scale: coefficients become np.rint(scale * coef_).
    feature_scale: what is encrypted is np.rint(feature_scale * x). The intercept is rounded at
        scale * feature_scale, which is the scale of the results.

    Scores are those of ``decision_function`` or, for regressors, ``predict``, of the rounded
    weights and features. Classes follow from them as ever: of two, the second if the score is above
    0, and otherwise the one with the largest score. Probabilities are scipy.special.expit(score).

    Raises Unsupported for other models, and InvalidArgument for scales with which a weight is 2^53
    or more.

    >>> from sklearn.linear_model import LinearRegression
    >>> fitted = LinearRegression().fit([[0.0], [1.0]], [1.0, 3.5])
    >>> model = nn.integers.quantised(fitted, scale=16, feature_scale=4)
    >>> model.weight.tolist(), model.offset.tolist(), model.scale
    ([[40]], [64], 64)
    """
    by = checks.whole(scale, 1, "scale must be a whole number from 1")
    of_features = checks.whole(feature_scale, 1, "feature_scale must be a whole number from 1")
    weights, intercept = getattr(model, "coef_", None), getattr(model, "intercept_", None)
    if not is_estimator(model) or weights is None or intercept is None:
        raise Unsupported(
            f"{type(model).__name__} has no coef_ and intercept_: give a fitted linear model of scikit-learn, or make nn.integers.Quantised of "
            "weights that you rounded"
        )
    weight = np.atleast_2d(np.asarray(weights, np.float64))
    offset = np.broadcast_to(np.asarray(intercept, np.float64), weight.shape[:1])
    whole = by * of_features
    made = Quantised(np.rint(by * weight), np.rint(whole * offset), whole)
    names = getattr(model, "feature_names_in_", None)
    if names is not None:  # which jali.compile compares with those of tables
        made.feature_names_in_ = names
    return made
