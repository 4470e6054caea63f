"""Fitted estimators of scikit-learn: linear models, scalers, pipelines and multi-layer perceptrons;
others are in the modules sklearn_*.

The estimator's attributes are read; scikit-learn itself is not imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jali._core import checks
from jali._core.console import one_text
from jali.compiler.frontends.sklearn_affine import AFFINE, matrix_of
from jali.compiler.frontends.sklearn_ensembles import ENSEMBLES, ensemble
from jali.compiler.frontends.sklearn_polynomials import (
    POLYNOMIALS,
    distances,
    kernel_machine,
    kernel_ridge,
    likelihoods,
    monomials,
    quadratic_discriminants,
)
from jali.compiler.frontends.sklearn_selections import JOINED, is_selection, joined, kept
from jali.compiler.frontends.tracing import Builder
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.linear_ops import Dense, Reshape, Scale
from jali.compiler.ir.operation import Input
from jali.compiler.ir.traced_ops import Function
from jali.errors import InvalidArgument, Unsupported
from jali.tfhe import trees

__all__ = ["trace_estimator"]

_ACTIVATIONS = {"relu": "relu", "tanh": "tanh", "logistic": "sigmoid"}
_LINEAR = (
    "LinearRegression",
    "Ridge",
    "RidgeCV",
    "Lasso",
    "LassoCV",
    "ElasticNet",
    "ElasticNetCV",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
    "Lars",
    "LarsCV",
    "LassoLars",
    "LassoLarsCV",
    "LassoLarsIC",
    "OrthogonalMatchingPursuit",
    "OrthogonalMatchingPursuitCV",
    "ARDRegression",
    "BayesianRidge",
    "HuberRegressor",
    "QuantileRegressor",
    "TheilSenRegressor",
    "PassiveAggressiveRegressor",
    "SGDRegressor",
    "LinearSVR",
)
#: With a function behind the linear model, which differs from one to the next.
_GENERALISED = ("PoissonRegressor", "GammaRegressor", "TweedieRegressor")
_CLASSIFIERS = (
    "LogisticRegression",
    "LogisticRegressionCV",
    "RidgeClassifier",
    "RidgeClassifierCV",
    "PassiveAggressiveClassifier",
    "SGDClassifier",
    "LinearSVC",
    "Perceptron",
    "LinearDiscriminantAnalysis",
)
#: Classifiers whose probability is the sigmoid of their score.
_LOGISTIC = (
    "LogisticRegression",
    "LogisticRegressionCV",
    "LinearDiscriminantAnalysis",
    "MLPClassifier",
)


def trace_estimator(model: Any, features: int, output: str = "logits") -> Graph:
    """The graph of a fitted estimator on vectors of this many features.

    output: "logits" for what decision_function gives, of which the client takes the largest, a
        softmax or a sigmoid in the clear; "probability" for the sigmoid of a classifier of two
        classes, computed encrypted, as predict_proba's second column.
    """
    if output not in ("logits", "probability"):
        raise InvalidArgument(f'output is "logits" or "probability", not {output!r}')
    builder = Builder()
    x = builder.add("x", Input(shape=(features,)), [])
    result = _traced(builder, x, model, type(model).__name__, output)
    return builder.graph([result])


def _traced(
    builder: Builder, x: Node, model: Any, name: str, output: str, *, last: bool = True
) -> Node:
    """The node of an estimator.

    last: whether it is the last step of its pipelines. Of the others, the node is what they
        transform to.
    """
    kind = type(model).__name__
    if kind == "Pipeline":
        steps = [s for s in model.steps if s[1] is not None and s[1] != "passthrough"]
        final = model.steps[-1][1]
        for label, step in steps:
            x = _traced(builder, x, step, label, output, last=last and step is final)
        return x
    if kind == "LinearDiscriminantAnalysis" and not last:
        return _discriminants(builder, x, model, name)
    if kind in _SCALERS:
        _fitted(model, name, "n_features_in_")
        if getattr(model, "clip", False):
            raise Unsupported(f"{name}: clip=True cannot be compiled: fit the scaler without it")
        factor, offset = (np.array(numbers) for numbers in _SCALERS[kind](model, x.size))
        return builder.add(name, Scale(factor=factor, offset=offset), [x])
    if kind in _LINEAR or kind in _CLASSIFIERS:
        _fitted(model, name, "coef_")
        y = _dense(builder, x, name, np.atleast_2d(checks.dense(model.coef_)), model.intercept_)
        return _finished(builder, y, name, output, kind)
    if kind in ("MLPClassifier", "MLPRegressor"):
        return _perceptron(builder, x, model, name, output)
    if kind == "RANSACRegressor":
        _fitted(model, name, "estimator_")
        return _traced(builder, x, model.estimator_, name, output)
    if kind in JOINED:

        def inner(builder: Builder, x: Node, step: Any, label: str) -> Node:
            return _traced(builder, x, step, label, output, last=False)

        return joined(builder, x, model, name, inner)
    if kind == "FunctionTransformer" and model.func is None:
        return x
    if kind == "SimpleImputer" or is_selection(model):
        _fitted(model, name, "n_features_in_")
        x = kept(builder, x, model, name)
        if last and kind in ("RFE", "RFECV"):
            return _traced(builder, x, model.estimator_, f"{name}.estimator", output)
        return x
    if kind in AFFINE:
        _fitted(model, name, AFFINE[kind][0])
        y = _dense(builder, x, name, *matrix_of(model, last))
        single = y.shape == (1,) and last and getattr(model, "_predict_1d", False)
        return builder.add(f"{name}.score", Reshape(shape=()), [y]) if single else y
    if kind == "TransformedTargetRegressor":
        _fitted(model, name, "regressor_")
        return _untransformed(builder, x, model, name, output)
    if kind in ENSEMBLES:
        _fitted(model, name, "estimators_")
        return ensemble(builder, x, model, name, output, _traced)
    if kind in POLYNOMIALS:
        _fitted(model, name, POLYNOMIALS[kind])
        return _polynomial(builder, x, model, name, output, last)
    if kind in _GENERALISED:
        raise Unsupported(
            f"{name}: {one_text(kind)} cannot be compiled: give a function of arrays, such as lambda x: numpy.exp(model.coef_ @ x + model.intercept_), or leave the "
            "exponential to the client"
        )
    if trees.is_trees(model):
        raise Unsupported(
            f"{name}: {one_text(kind)} is compiled alone, not behind other steps: fit it on what these give, or give the last step, "
            "jali.compile(pipeline[-1]), to whose rows the client applies pipeline[:-1].transform"
        )
    if kind == "AdaBoostRegressor":
        raise Unsupported(
            f"{name}: AdaBoostRegressor takes a weighted median of its trees, which is no sum: fit a GradientBoostingRegressor"
        )
    if hasattr(model, "best_estimator_"):
        raise Unsupported(
            f"{name}: {one_text(kind)} cannot be compiled: give what it found, its best_estimator_"
        )
    raise Unsupported(
        f"{name}: {one_text(kind)} cannot be compiled. Scalers, PCA, selections, linear models, support vector machines, GaussianNB, MLPClassifier and MLPRegressor can: use one of "
        "these in its place, leave a first or last step to the client, or write the whole model as a function of arrays"
    )


def _polynomial(builder: Builder, x: Node, model: Any, name: str, output: str, last: bool) -> Node:
    """An estimator of POLYNOMIALS."""
    kind = type(model).__name__
    if kind.endswith("KMeans"):
        return distances(builder, x, model, name, last)
    if kind == "PolynomialFeatures":
        return monomials(builder, x, model, name)
    if kind == "QuadraticDiscriminantAnalysis":
        return quadratic_discriminants(builder, x, model, name)
    if kind == "KernelRidge":
        return kernel_ridge(builder, x, model, name)
    if kind == "GaussianNB":
        return _finished(builder, likelihoods(builder, x, model, name), name, output, kind)
    return _finished(builder, kernel_machine(builder, x, model, name), name, output, kind)


def _untransformed(builder: Builder, x: Node, model: Any, name: str, output: str) -> Node:
    """What a regressor predicts, as its target was before it was scaled."""
    if trees.is_trees(model.regressor_):
        inner = one_text(type(model.regressor_).__name__)
        raise Unsupported(
            f"{name}: {inner} is compiled alone: compile its regressor_, and let the client apply transformer_.inverse_transform to the results"
        )
    y = _traced(builder, x, model.regressor_, f"{name}.regressor", output)
    scaler, kind = model.transformer_, type(model.transformer_).__name__
    if kind == "FunctionTransformer" and scaler.inverse_func is None:
        return y
    if kind not in _SCALERS:
        raise Unsupported(
            f"{name}: the target was transformed by {one_text(kind)}, whose inverse cannot be compiled: compile its regressor_, and let the client apply "
            "transformer_.inverse_transform to the results"
        )
    factor, offset = (np.array(numbers) for numbers in _SCALERS[kind](scaler, max(1, y.size)))
    factor, offset = (1 / factor).reshape(y.shape), (-offset / factor).reshape(y.shape)
    return builder.add(name, Scale(factor=factor, offset=offset), [y])


def _discriminants(builder: Builder, x: Node, model: Any, name: str) -> Node:
    """What a step behind a discriminant analysis takes: its transform."""
    _fitted(model, name, "scalings_")
    weight = np.asarray(model.scalings_, np.float64)[:, : model._max_components].T
    centre = model.xbar_ if model.solver == "svd" else np.zeros(x.size)
    return _dense(builder, x, name, weight, -weight @ centre)


def _fitted(model: Any, name: str, attribute: str) -> None:
    if not hasattr(model, attribute):
        raise InvalidArgument(f"{name}: this {type(model).__name__} is not fitted: call fit first")


def _dense(builder: Builder, x: Node, name: str, weight: Any, bias: Any) -> Node:
    matrix = np.array(
        checks.dense(weight), np.float64
    )  # a copy: the estimator may be fitted further
    full = np.broadcast_to(np.asarray(bias, np.float64).ravel(), (len(matrix),)).copy()
    return builder.add(name, Dense(weight=matrix, bias=full), [x])


def _finished(builder: Builder, y: Node, name: str, output: str, kind: str) -> Node:
    """A single score without an axis, as scikit-learn gives it, and its sigmoid if that is
    wanted."""
    if y.shape == (1,):
        y = builder.add(f"{name}.score", Reshape(shape=()), [y])
    if output == "logits":
        return y
    if kind not in _LOGISTIC or y.shape:
        raise Unsupported(
            f'{name}: output="probability" is for {", ".join(_LOGISTIC)} of two classes: leave it out, and compute the '
            "probabilities from the decrypted logits"
        )
    return builder.add(f"{name}.probability", Function(function="sigmoid"), [y])


def _perceptron(builder: Builder, x: Node, model: Any, name: str, output: str) -> Node:
    _fitted(model, name, "coefs_")
    if type(model).__name__ == "MLPRegressor" and model.out_activation_ != "identity":
        raise Unsupported(
            f"{name}: an MLPRegressor with loss={model.loss!r} ends with {model.out_activation_}: fit it with the squared error"
        )
    layers = list(zip(model.coefs_, model.intercepts_, strict=True))
    for k, (weight, bias) in enumerate(layers):
        x = _dense(builder, x, f"{name}.layer{k}", weight.T, bias)
        if k + 1 < len(layers) and model.activation != "identity":
            x = builder.add(
                f"{name}.{model.activation}{k}",
                Function(function=_ACTIVATIONS[model.activation]),
                [x],
            )
    return _finished(builder, x, name, output, type(model).__name__)


def _standard(model: Any, size: int) -> tuple[Any, Any]:
    scale = np.ones(size) if model.scale_ is None else model.scale_
    mean = model.mean_ if model.with_mean else np.zeros(size)
    return 1 / scale, -mean / scale


def _robust(model: Any, size: int) -> tuple[Any, Any]:
    scale = np.ones(size) if model.scale_ is None else model.scale_
    centre = np.zeros(size) if model.center_ is None else model.center_
    return 1 / scale, -centre / scale


#: (factor, offset) of a fitted scaler.
_SCALERS: dict[str, Callable[[Any, int], tuple[Any, Any]]] = {
    "StandardScaler": _standard,
    "RobustScaler": _robust,
    "MinMaxScaler": lambda model, size: (model.scale_, model.min_),
    "MaxAbsScaler": lambda model, size: (1 / model.scale_, np.zeros(size)),
}
