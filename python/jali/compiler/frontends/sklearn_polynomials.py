"""Estimators of scikit-learn that are polynomials, or functions of polynomials, of the features:
distances, kernels and monomials."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np

from jali._core import checks
from jali._core.console import one_text
from jali.compiler.frontends.tracing import Builder
from jali.compiler.ir.graph import Array, Node
from jali.compiler.ir.linear_ops import Combine, Dense, Reshape, Scale
from jali.compiler.ir.traced_ops import Function, Multiply, PowerSeries
from jali.errors import Unsupported

__all__ = [
    "POLYNOMIALS",
    "distances",
    "kernel_machine",
    "kernel_ridge",
    "likelihoods",
    "monomials",
    "quadratic_discriminants",
]

#: Estimators that this module traces, with the attribute that fitting gives them.
POLYNOMIALS = {
    "KMeans": "cluster_centers_",
    "MiniBatchKMeans": "cluster_centers_",
    "BisectingKMeans": "cluster_centers_",
    "GaussianNB": "theta_",
    "PolynomialFeatures": "powers_",
    "SVC": "dual_coef_",
    "NuSVC": "dual_coef_",
    "SVR": "dual_coef_",
    "NuSVR": "dual_coef_",
    "OneClassSVM": "dual_coef_",
    "KernelRidge": "dual_coef_",
    "QuadraticDiscriminantAnalysis": "means_",
}


def _squares(builder: Builder, x: Node, name: str, centres: Array, widths: Array) -> Node:
    """sum_j ((x_j - centre_ij) / width_ij)^2 for every row i of the centres. Each square stands for
    itself, so that no sum is known to be below 0."""
    count, features = centres.shape
    weight = np.tile(np.eye(features), (count, 1)) / widths.reshape(-1, 1)
    bias = -(centres / widths).ravel()
    away = builder.add(f"{name}.differences", Dense(weight=weight, bias=bias), [x])
    square = builder.add(f"{name}.squares", Multiply(), [away, away])
    ones: Array = np.kron(np.eye(count), np.ones((1, features))).astype(np.float64)
    return builder.add(name, Dense(weight=ones, bias=None), [square])


def distances(builder: Builder, x: Node, model: Any, name: str, last: bool) -> Node:
    """What KMeans transforms to: the distance of every centre. The last step gives their squares,
    and the client takes the roots: near a centre, the root has no slope, and no polynomial is near
    it. What other steps take are the distances, if no example of the calibration is near a
    centre."""
    centres = np.array(model.cluster_centers_, np.float64)
    square = _squares(builder, x, name, centres, np.ones_like(centres))
    if not last:
        return builder.add(f"{name}.distances", Function(function="sqrt"), [square])
    warnings.warn(
        f"{name}: the program gives the squares of the distances that transform gives: the client takes their roots, and the least of them is the same",
        UserWarning,
        stacklevel=6,
    )
    return square


def likelihoods(builder: Builder, x: Node, model: Any, name: str) -> Node:
    """predict_joint_log_proba of GaussianNB, of which the client takes the largest:

    log prior_i - 1/2 sum_j log(2 pi var_ij) - sum_j (x_j - theta_ij)^2 / (2 var_ij).
    """
    means, variances = (np.array(v, np.float64) for v in (model.theta_, model.var_))
    square = _squares(builder, x, name, means, np.sqrt(2 * variances))
    constant = np.log(model.class_prior_) - np.log(2 * np.pi * variances).sum(axis=1) / 2
    return builder.add(
        f"{name}.likelihoods", Scale(factor=np.array(-1.0), offset=constant), [square]
    )


def quadratic_discriminants(builder: Builder, x: Node, model: Any, name: str) -> Node:
    """decision_function of QuadraticDiscriminantAnalysis: for each class, or for two of them the
    difference,

    log prior_i - 1/2 sum_k log s_ik - 1/2 sum_k ((x - mean_i) . r_ik)^2 / s_ik.
    """
    axes, shifts, halves, constants = [], [], [], []
    for mean, rotation, widths, prior in zip(
        model.means_, model.rotations_, model.scalings_, model.priors_, strict=True
    ):
        weight = np.asarray(rotation / np.sqrt(widths), np.float64).T
        axes.append(weight)
        shifts.append(-weight @ mean)
        halves.append(np.full((1, len(weight)), -0.5))
        constants.append(np.log(prior) - np.log(widths).sum() / 2)
    away = builder.add(
        f"{name}.axes", Dense(weight=np.vstack(axes), bias=np.concatenate(shifts)), [x]
    )
    square = builder.add(f"{name}.squares", Multiply(), [away, away])
    total = np.zeros((len(halves), sum(h.size for h in halves)))
    ends = np.cumsum([0, *(h.size for h in halves)])
    for k, half in enumerate(halves):
        total[k, ends[k] : ends[k + 1]] = half
    bias = np.array(constants)
    if len(halves) == 2:
        y = builder.add(
            f"{name}.difference",
            Dense(weight=total[1:] - total[:1], bias=bias[1:] - bias[:1]),
            [square],
        )
        return builder.add(name, Reshape(shape=()), [y])
    return builder.add(name, Dense(weight=total, bias=bias), [square])


def monomials(builder: Builder, x: Node, model: Any, name: str) -> Node:
    """What PolynomialFeatures transforms to. Every monomial is a product of as many numbers as the
    largest degree, of which some are 1, and these are multiplied in pairs."""
    powers = np.asarray(model.powers_)
    rows = [np.repeat(np.arange(powers.shape[1]), row) for row in powers]
    factors: list[Node] = []
    for k in range(max(1, max(map(len, rows)))):
        weight, bias = np.zeros(powers.shape), np.zeros(len(rows))
        for i, row in enumerate(rows):
            if k < len(row):
                weight[i, row[k]] = 1.0
            else:
                bias[i] = 1.0
        factors.append(builder.add(f"{name}.factor{k}", Dense(weight=weight, bias=bias), [x]))
    while len(factors) > 1:
        pairs = zip(factors[::2], factors[1::2], strict=False)
        products = [builder.add(name, Multiply(), list(pair)) for pair in pairs]
        factors = products + factors[2 * len(products) :]
    return factors[0]


def kernel_machine(builder: Builder, x: Node, model: Any, name: str) -> Node:
    """decision_function of a support vector machine, or predict of a regressor. With more than two
    classes, it is that of decision_function_shape="ovo": a number for each pair of classes, of
    which the client counts the votes."""
    weight = _weights(model)
    if len(weight) > 1 and model.decision_function_shape != "ovo":
        warnings.warn(
            f'{name}: the program gives a number for each pair of classes, as decision_function_shape="ovo" does, and the client counts the votes: '
            "these are no polynomial of the features",
            UserWarning,
            stacklevel=6,
        )
    bias = np.array(model.intercept_, np.float64)
    if model.kernel == "linear":
        weight = weight @ checks.dense(model.support_vectors_)
        return builder.add(name, Dense(weight=weight, bias=bias), [x])
    kernel = _kernel(builder, x, model, f"{name}.kernel")
    return builder.add(name, Dense(weight=weight, bias=bias), [kernel])


def kernel_ridge(builder: Builder, x: Node, model: Any, name: str) -> Node:
    """predict of KernelRidge."""
    vectors = np.array(checks.dense(model.X_fit_), np.float64)
    weight = np.array(model.dual_coef_, np.float64).T.reshape(-1, len(vectors))
    if model.kernel == "linear":
        y = builder.add(f"{name}.score", Dense(weight=weight @ vectors, bias=None), [x])
    else:
        machine = SimpleNamespace(
            kernel="poly" if model.kernel == "polynomial" else model.kernel,
            support_vectors_=vectors,
            _gamma=1 / x.size if model.gamma is None else model.gamma,
            coef0=model.coef0,
            degree=model.degree,
        )
        kernel = _kernel(builder, x, machine, f"{name}.kernel")
        y = builder.add(f"{name}.score", Dense(weight=weight, bias=None), [kernel])
    single = np.ndim(model.dual_coef_) == 1
    return builder.add(name, Reshape(shape=()), [y]) if single else y


def _weights(model: Any) -> Array:
    """Of every support vector in every number of the decision function: those of the pairs of
    classes, in the order (0, 1), (0, 2), .., (1, 2), .."""
    dual = np.array(checks.dense(model.dual_coef_), np.float64)
    if len(dual) == 1:
        return dual
    ends = np.concatenate([[0], np.cumsum(model.n_support_)])
    part = [slice(ends[k], ends[k + 1]) for k in range(len(ends) - 1)]
    rows = []
    for i in range(len(part)):
        for j in range(i + 1, len(part)):
            row = np.zeros(dual.shape[1])
            row[part[i]], row[part[j]] = dual[j - 1, part[i]], dual[i, part[j]]
            rows.append(row)
    return np.array(rows)


def _kernel(builder: Builder, x: Node, model: Any, name: str) -> Node:
    """The kernel of the features with every support vector."""
    vectors, gamma = np.array(checks.dense(model.support_vectors_), np.float64), model._gamma
    if model.kernel == "rbf":  # exp(-gamma (|x|^2 - 2 x v + |v|^2))
        square = builder.add(f"{name}.squares", Multiply(), [x, x])
        parts = [
            builder.add(name, Dense(weight=2 * gamma * vectors, bias=None), [x]),
            builder.add(
                name,
                Dense(
                    weight=np.full(vectors.shape, -gamma), bias=-gamma * (vectors**2).sum(axis=1)
                ),
                [square],
            ),
        ]
        exponent = builder.add(name, Combine(weights=(1.0, 1.0)), parts)
        return builder.add(name, Function(function="exp"), [exponent])
    if model.kernel in ("poly", "sigmoid"):
        bias = np.full(len(vectors), float(model.coef0))
        inner = builder.add(name, Dense(weight=gamma * vectors, bias=bias), [x])
        if model.kernel == "sigmoid":
            return builder.add(name, Function(function="tanh"), [inner])
        power = (*[0.0] * model.degree, 1.0)
        return builder.add(name, PowerSeries(coefficients=power), [inner])
    raise Unsupported(
        f"{name}: the kernel {one_text(str(model.kernel))!r} cannot be compiled: fit with linear, poly, rbf or sigmoid"
    )
