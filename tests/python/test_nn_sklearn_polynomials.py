"""scikit-learn's distances, likelihoods, monomials and kernels: compiled programs give what
scikit-learn gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jali
from jali.compiler.ir.execute import execute
from jali.nn import graph_file, trace

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import BaggingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR, NuSVR, OneClassSVM


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid"])
def test_kernels(kernel: str) -> None:
    for load, model in (
        (load_breast_cancer, SVC(kernel=kernel, coef0=0.5)),
        (load_iris, SVC(kernel=kernel, decision_function_shape="ovo")),
        (load_iris, OneClassSVM(kernel=kernel)),
        (load_diabetes, SVR(kernel=kernel)),
        (load_diabetes, NuSVR(kernel=kernel)),
    ):
        x, y = load(return_X_y=True)
        pipeline = make_pipeline(StandardScaler(), model).fit(x, y)
        (got,) = execute(trace(pipeline, x[:1]), x)
        regression = isinstance(model, SVR | NuSVR)
        want = pipeline.predict(x) if regression else pipeline.decision_function(x)
        assert got.shape == want.shape and np.allclose(got, want)


@pytest.mark.parametrize(
    "how", [{}, {"degree": 3}, {"degree": 5, "interaction_only": True}, {"include_bias": False}]
)
def test_monomials(how: dict[str, Any]) -> None:
    x, y = load_iris(return_X_y=True)
    model = PolynomialFeatures(**how).fit(x)
    assert np.allclose(execute(trace(model, x[:1]), x)[0], model.transform(x))
    whole = make_pipeline(model, StandardScaler(), Ridge()).fit(x, y)
    assert np.allclose(execute(trace(whole, x[:1]), x)[0], whole.predict(x))


def test_likelihoods_and_distances() -> None:
    x, y = load_iris(return_X_y=True)
    bayes = GaussianNB().fit(x, y)
    assert np.allclose(execute(trace(bayes, x[:1]), x)[0], bayes.predict_joint_log_proba(x))
    means = KMeans(3, random_state=0, n_init=1)
    behind = make_pipeline(means, Ridge()).fit(x, y)
    assert np.allclose(execute(trace(behind, x[:1]), x)[0], behind.predict(x))
    with pytest.warns(UserWarning, match="the client takes their roots"):
        graph = trace(means, x[:1])
    assert np.allclose(np.sqrt(execute(graph, x)[0]), means.transform(x))


def test_quadratic_discriminants_and_kernel_ridges() -> None:
    for load in (load_iris, load_breast_cancer):
        x, y = load(return_X_y=True)
        model = make_pipeline(StandardScaler(), QuadraticDiscriminantAnalysis(reg_param=0.1))
        model.fit(x, y)
        assert np.allclose(execute(trace(model, x[:1]), x)[0], model.decision_function(x))
    x, y = (v[:60] for v in load_diabetes(return_X_y=True))
    for kernel in ("linear", "rbf", "poly", "polynomial", "sigmoid"):
        for target in (y, np.c_[y, x[:, 0]]):
            ridge = make_pipeline(StandardScaler(), KernelRidge(kernel=kernel, alpha=0.5)).fit(
                x, target
            )
            assert np.allclose(execute(trace(ridge, x[:1]), x)[0], ridge.predict(x))


@pytest.mark.parametrize(
    "model",
    [SVR(kernel="rbf"), SVR(kernel="poly"), BaggingRegressor(Ridge(), 3, random_state=0)],
    ids=["rbf", "poly", "bag"],
)
def test_recorded_graphs_of_kernels_and_means_are_read_again(model: Any) -> None:
    """Their numbers were written as arrays, which files do not have there, so that programs could
    be saved and not read."""
    x, y = (v[:40] for v in load_diabetes(return_X_y=True))
    graph = trace(model.fit(x, y), x[:1])
    again = graph_file.from_bytes(graph_file.to_bytes(graph))
    assert np.array_equal(execute(again, x)[0], execute(graph, x)[0])


@pytest.mark.filterwarnings("ignore:KMeans")
def test_programs_are_as_exact_as_was_asked_for() -> None:
    x, y = load_iris(return_X_y=True)
    means = KMeans(3, random_state=0, n_init=1).fit(x)
    bayes = GaussianNB().fit(x, y)
    scaled = make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge()).fit(x, y)
    machine = make_pipeline(StandardScaler(), SVC()).fit(x[:100], y[:100])
    for model, rows, want in (
        (means, x, means.transform(x) ** 2),
        (bayes, x, bayes.predict_joint_log_proba(x)),
        (scaled, x, scaled.predict(x)),
        (machine, x[:100], machine.decision_function(x[:100])),
    ):
        program = jali.compile(model, rows[:1], calibration=rows, precision_bits=8)
        off = np.abs(program.simulate(rows, rng=0) - want).max()
        assert off <= 2.0**-8 * np.abs(want).max()


def test_other_kernels_are_refused() -> None:
    x, y = load_iris(return_X_y=True)
    gram = x @ x.T
    model = SVC(kernel="precomputed").fit(gram[:100, :100], y[:100])
    with pytest.raises(jali.Unsupported, match="fit with linear, poly, rbf or sigmoid"):
        trace(model, gram[:1, :100])
