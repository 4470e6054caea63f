"""Estimators of scikit-learn that are a matrix and a bias: projections, partial least squares,
naive Bayes of counts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from jali._core import checks
from jali._core.console import one_text
from jali.compiler.ir.graph import Array
from jali.errors import Unsupported

__all__ = ["AFFINE", "matrix_of"]


def _components(model: Any, last: bool) -> tuple[Any, Any]:
    return model.components_, 0.0


def _principal(model: Any, last: bool) -> tuple[Any, Any]:
    weight = model.components_
    if model.whiten:
        weight = weight / np.sqrt(model.explained_variance_)[:, None]
    return weight, -weight @ model.mean_


def _independent(model: Any, last: bool) -> tuple[Any, Any]:
    mean = model.mean_ if model.whiten else np.zeros(model.components_.shape[1])
    return model.components_, -model.components_ @ mean


def _factors(model: Any, last: bool) -> tuple[Any, Any]:
    """The mean of the latent factors: (1 + W Psi^-1 W^T)^-1 W Psi^-1 (x - mean)."""
    scaled = model.components_ / model.noise_variance_
    weight = np.linalg.solve(np.eye(len(scaled)) + scaled @ model.components_.T, scaled)
    return weight, -weight @ model.mean_


def _sparse_components(model: Any, last: bool) -> tuple[Any, Any]:
    """The ridge regression of the features on the components."""
    components = model.components_
    gram = components @ components.T + model.ridge_alpha * np.eye(len(components))
    weight = np.linalg.solve(gram, components)
    return weight, -weight @ model.mean_


def _pooled(model: Any, last: bool) -> tuple[Any, Any]:
    if model.pooling_func is not np.mean:
        raise Unsupported(
            "FeatureAgglomeration: its pooling_func cannot be compiled: fit with pooling_func=numpy.mean"
        )
    weight = (model.labels_ == np.arange(model.labels_.max() + 1)[:, None]).astype(np.float64)
    return weight / weight.sum(axis=1, keepdims=True), 0.0


def _partial_least_squares(model: Any, last: bool) -> tuple[Any, Any]:
    """The last step predicts; others transform."""
    if last:
        weight = np.asarray(model.coef_, np.float64)
        return weight, model.intercept_ - weight @ model._x_mean
    weight = (model.x_rotations_ / model._x_std[:, None]).T
    return weight, -weight @ model._x_mean


def _centroids(model: Any, last: bool) -> tuple[Any, Any]:
    """Of a class, minus half the squared distance and the logarithm of its prior, without what all
    classes have in common: the largest is the nearest."""
    if model.metric != "euclidean":
        raise Unsupported(
            f'NearestCentroid: the metric {one_text(str(model.metric))!r} cannot be compiled: fit with metric="euclidean"'
        )
    centroids = np.asarray(model.centroids_, np.float64)
    priors = np.full(len(centroids), 1 / len(centroids))
    priors = np.asarray(getattr(model, "class_prior_", priors))
    if np.allclose(priors, 1 / len(centroids)):
        return centroids, -(centroids**2).sum(axis=1) / 2
    deviation = np.asarray(model.within_class_std_dev_, np.float64)
    variance = np.where(deviation != 0, deviation, 1.0) ** 2
    return centroids / variance, -(centroids**2 / variance).sum(axis=1) / 2 + np.log(priors)


def _counts(model: Any, last: bool) -> tuple[Any, Any]:
    """predict_joint_log_proba, of which the client takes the largest."""
    return model.feature_log_prob_, model.class_log_prior_


def _complements(model: Any, last: bool) -> tuple[Any, Any]:
    prior = model.class_log_prior_ if len(model.classes_) == 1 else 0.0
    return model.feature_log_prob_, prior


def _events(model: Any, last: bool) -> tuple[Any, Any]:
    if model.binarize is not None:
        warnings.warn(
            f"BernoulliNB: the client gives 0 and 1 for the features, as binarize={model.binarize:g} makes them of numbers",
            UserWarning,
            stacklevel=8,
        )
    absent = np.log1p(-np.exp(model.feature_log_prob_))
    return model.feature_log_prob_ - absent, model.class_log_prior_ + absent.sum(axis=1)


#: The matrix and the bias of a fitted estimator, with the attribute that fitting gives it.
AFFINE: dict[str, tuple[str, Callable[[Any, bool], tuple[Any, Any]]]] = {
    "PCA": ("components_", _principal),
    "IncrementalPCA": ("components_", _principal),
    "TruncatedSVD": ("components_", _components),
    "GaussianRandomProjection": ("components_", _components),
    "SparseRandomProjection": ("components_", _components),
    "FastICA": ("components_", _independent),
    "FactorAnalysis": ("components_", _factors),
    "SparsePCA": ("components_", _sparse_components),
    "MiniBatchSparsePCA": ("components_", _sparse_components),
    "FeatureAgglomeration": ("labels_", _pooled),
    "PLSRegression": ("coef_", _partial_least_squares),
    "PLSCanonical": ("coef_", _partial_least_squares),
    "CCA": ("coef_", _partial_least_squares),
    "NearestCentroid": ("centroids_", _centroids),
    "MultinomialNB": ("feature_log_prob_", _counts),
    "ComplementNB": ("feature_log_prob_", _complements),
    "BernoulliNB": ("feature_log_prob_", _events),
}


def matrix_of(model: Any, last: bool) -> tuple[Array, Array]:
    """The matrix and the bias of an estimator in AFFINE."""
    weight, bias = AFFINE[type(model).__name__][1](model, last)
    weight = np.array(checks.dense(weight), np.float64)
    return weight, np.broadcast_to(np.asarray(bias, np.float64).ravel(), (len(weight),)).copy()
