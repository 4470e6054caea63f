"""Models and examples as scikit-learn users have them: sparse matrices, discriminant analysis
within pipelines, calibrations without examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jali
from jali.compiler.ir.execute import execute
from jali.nn import trace

sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed: pip install scipy")
sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")


def data(rng: np.random.Generator, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    x = rng.normal(size=(90, 5))
    y = np.arange(90) % classes
    return x + y[:, None] * np.arange(5), y


@pytest.mark.parametrize("solver", ["svd", "eigen"])
def test_a_discriminant_analysis_within_a_pipeline(solver: str, rng: np.random.Generator) -> None:
    """It is what it transforms to; as the last step, its scores. Nested pipelines are no
    different."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = data(rng)
    for components in (None, 1):
        reduced = LinearDiscriminantAnalysis(solver=solver, n_components=components)
        for model in (
            make_pipeline(StandardScaler(), reduced, StandardScaler(), LogisticRegression()),
            make_pipeline(make_pipeline(StandardScaler(), reduced), LogisticRegression()),
        ):
            model.fit(x, y)
            (got,) = execute(trace(model, x[:1]), x)
            assert np.allclose(got, model.decision_function(x))
    last = make_pipeline(StandardScaler(), LinearDiscriminantAnalysis(solver=solver)).fit(x, y)
    assert np.allclose(execute(trace(last, x[:1]), x)[0], last.decision_function(x))
    transforming = make_pipeline(LinearDiscriminantAnalysis(solver=solver), "passthrough").fit(x, y)
    assert np.allclose(execute(trace(transforming, x[:1]), x)[0], transforming.transform(x))


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix", "coo_matrix", "csr_array"])
def test_sparse_matrices(kind: str, rng: np.random.Generator) -> None:
    """As weights, examples, calibration and what a client encrypts; each was an array of object."""
    from sklearn.linear_model import SGDClassifier

    x, y = data(rng)
    x[np.abs(x) < 0.5] = 0
    made = getattr(sparse, kind)(x)
    model = SGDClassifier(random_state=0).fit(x, y).sparsify()
    program = jali.compile(model, made[:1] if kind != "coo_matrix" else x[:1], calibration=made)
    (got,) = execute(program.stages["trace"], made)
    assert np.allclose(got, model.decision_function(x))
    client = program.client(threads=1)
    assert len(client.encrypt(made).to_bytes()) == len(client.encrypt(x).to_bytes())
    weight = getattr(sparse, kind)(np.round(rng.normal(size=(5, 4))))
    (times,) = execute(trace(lambda v: v @ weight, x[0]), x)
    assert np.allclose(times, x @ weight.toarray())
    with pytest.raises(jali.Unsupported, match=r"S.toarray\(\) @ x"):
        trace(lambda v: weight.T @ v, x[0])
    (times,) = execute(trace(lambda v: weight.T.toarray() @ v, x[0]), x)
    assert np.allclose(times, x @ weight.toarray())


@pytest.mark.parametrize(
    "empty", [lambda x: x[:0], lambda x: [x[:0]], lambda x: [], lambda x: iter(())]
)
def test_a_calibration_without_examples(empty: Any, rng: np.random.Generator) -> None:
    x, _ = data(rng)
    with pytest.raises(jali.InvalidArgument, match="the calibration holds no example: give a few"):
        jali.compile(lambda v: v * 2, x[0], calibration=empty(x))


def test_an_empty_batch_among_others(rng: np.random.Generator) -> None:
    """As the last one of a loader may be."""
    x, _ = data(rng)
    program = jali.compile(lambda v: v * 2, x[0], calibration=[x[:50], x[:0], x[50:]])
    same = jali.compile(lambda v: v * 2, x[0], calibration=x)
    low, again = (p.manifest.inputs[0].low for p in (program, same))
    assert np.array_equal(low, again)
