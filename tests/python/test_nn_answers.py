"""The precision that a classifier gets if nobody asks for one: no answer of the calibration
changes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import jali
from jali.compiler.frontends.answers import Answers, answers_of
from jali.compiler.planning.neighbours import by_default

pytest.importorskip("sklearn")

from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import VotingClassifier
from sklearn.feature_selection import RFE
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestCentroid
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, OneClassSVM


def fitted(load: Any, model: Any) -> tuple[Any, np.ndarray]:
    x, y = load(return_X_y=True)
    x = StandardScaler().fit_transform(x)
    return model.fit(x, y), x


def answers(results: np.ndarray) -> np.ndarray:
    return results > 0 if results.ndim == 1 else results.argmax(axis=1)


@pytest.mark.parametrize(
    ("load", "model"),
    [
        (load_iris, GaussianNB()),  # of which an answer changed at 10 bits
        (load_breast_cancer, LinearSVC(random_state=0)),
        (load_iris, NearestCentroid()),
    ],
)
def test_no_answer_of_the_calibration_changes(load: Any, model: Any) -> None:
    """Products and sums of encrypted numbers get more bits than 10 for it, as they take no more
    levels."""
    model, x = fitted(load, model)
    program = jali.compile(model, x[:1], calibration=x)
    plain = jali.compile(model, x[:1], calibration=x, precision_bits=10)
    assert 10 < program.precision_bits <= 16 and program.answers == (0, len(x))
    assert plain.answers is None and program.params.depth == plain.params.depth
    for seed in range(8):
        noisy = program.simulate(x, rng=seed)
        assert isinstance(noisy, np.ndarray)
        assert np.array_equal(model.classes_[answers(noisy) * 1], model.predict(x))


@pytest.mark.filterwarnings("ignore:Stochastic")
def test_wide_margins_take_fewer_bits() -> None:
    """Bits of approximated functions cost levels and keys."""
    network = MLPClassifier((16,), activation="tanh", random_state=0, max_iter=200)
    model, x = fitted(load_wine, network)
    program = jali.compile(model, x[:1], calibration=x)
    plain = jali.compile(model, x[:1], calibration=x, precision_bits=10)
    assert 8 <= program.precision_bits < 10 and program.answers == (0, len(x))
    assert program.params.depth <= plain.params.depth
    assert program.sizes().keys_expanded < plain.sizes().keys_expanded
    noisy = program.simulate(x, rng=0)
    assert isinstance(noisy, np.ndarray) and np.array_equal(answers(noisy), model.predict(x))
    # Nobody knows the margins of few examples, and probabilities are numbers of their own.
    assert jali.compile(model, x[:1], calibration=x[:99]).precision_bits == 10


@pytest.mark.parametrize("way", [Answers(True), Answers(False), Answers(False, 0.5)])
def test_errors_within_the_margin_change_no_answer(way: Answers, rng: np.random.Generator) -> None:
    """The largest error that is promised, in the worst direction, and one that is twice the
    margin."""
    results = rng.normal(0.3, 1, (200, 5))
    largest = np.abs(results).max()
    read = (lambda v: v.argmax(1)) if way.largest else (lambda v: v > way.threshold)
    for row, needed in zip(results, way.needed(results), strict=True):
        error = 2.0**-needed * largest
        for signs in rng.choice([-1.0, 1.0], (50, 5)):
            assert np.array_equal(read((row + error * signs)[None]), read(row[None]))
        if way.largest:
            worst = np.where(row == row.max(), -1, 1)
        else:
            worst = np.where(row > way.threshold, -1, 1)
        assert not np.array_equal(read((row + 1.4 * error * worst)[None]), read(row[None]))


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_near_ties_are_counted_and_told_of(load: Any) -> None:
    """No precision keeps the answer of an example on the threshold, or with two classes alike: the
    others are kept."""
    x, y = load(return_X_y=True)
    x = StandardScaler().fit_transform(x)
    model = LogisticRegression(fit_intercept=False).fit(x, y)
    tied = np.concatenate([x, np.zeros((8, x.shape[1]))])  # all scores are 0
    with pytest.warns(UserWarning, match=rf"8 of the {len(tied)} answers .* may change"):
        program = jali.compile(model, tied[:1], calibration=tied)
    assert program.precision_bits == 16 and program.answers == (8, len(tied))
    assert f"; 8 of the {len(tied)} answers of the calibration are so near" in str(
        program.summary("cpu", threads=1)
    )
    assert "may change" in program.explain("program")
    again = jali.nn.Program.from_bytes(program.to_bytes())
    assert again.answers == program.answers and again.to_bytes() == program.to_bytes()
    few = np.concatenate([x, np.zeros((1, x.shape[1]))])
    assert jali.compile(model, few[:1], calibration=few).answers == (1, len(few))


def test_a_summary_says_that_no_answer_changes() -> None:
    model, x = fitted(load_iris, LogisticRegression())
    summary = str(jali.compile(model, x[:1], calibration=x).summary("cpu", threads=1))
    assert ", which changes none of the 150 answers of the calibration" in summary
    model = Ridge().fit(x, x[:, 0] + 1)
    other = jali.compile(model, x[:1], calibration=x)
    assert other.answers is None and "answers" not in str(other.summary("cpu", threads=1))


@pytest.mark.parametrize("bits", [8.0, 14.0])
def test_whatever_compiled_with_10_bits_compiles(bits: float) -> None:
    """What answers take may be refused, or, if it is more, take more levels."""

    def at(asked: float, lanes: int) -> float:
        if asked != 10:
            raise jali.Unsupported("too deep.")
        return asked

    assert by_default(at, lambda made: made, bits, 1) == (10, 10)  # type: ignore[arg-type,return-value]


def test_how_answers_are_read() -> None:
    x, y = load_iris(return_X_y=True)
    two, labels = y < 1, np.stack([y < 1, y < 2], axis=1).astype(int)
    logistic = LogisticRegression(max_iter=300)
    network = MLPClassifier((2,), max_iter=3)
    both = VotingClassifier([("a", logistic), ("b", GaussianNB())], voting="soft")
    largest, signs = Answers(True), Answers(False)
    with pytest.warns(UserWarning, match="Maximum iterations"):
        known: list[tuple[Any, Any, Answers | None]] = [
            (logistic, y, largest),
            (make_pipeline(StandardScaler(), "passthrough", logistic), y, largest),
            (RFE(logistic, n_features_to_select=2), y, largest),
            (OneVsRestClassifier(logistic), y, largest),
            (OneVsRestClassifier(logistic), labels, signs),
            (RidgeClassifier(), labels, signs),
            (network, labels, signs),
            (MLPClassifier((2,), max_iter=3), y, largest),
            (SVC(), y, signs),
            (both, two, Answers(False, 0.5)),
            (MLPRegressor(hidden_layer_sizes=(2,), max_iter=3), y, None),
            (Ridge(), y, None),
            (StandardScaler(), y, None),
            (make_pipeline(LinearDiscriminantAnalysis(), "passthrough"), y, None),  # it transforms
        ]
        for model, target, want in known:
            assert answers_of(model.fit(x, target), "logits") == want, model
    assert answers_of(OneClassSVM().fit(x), "logits") is not None
    assert answers_of(logistic.fit(x, two), "probability") is None
    one = largest.needed(np.array([1.0, -2.0]))  # one score has two sides
    assert np.allclose(one, [math.log2(4 / 3) + 1, math.log2(4 / 3)])
