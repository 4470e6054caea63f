"""scikit-learn's affine and selecting steps, and estimators made of others: compiled programs give
what scikit-learn gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jali
from jali.compiler.ir.execute import execute
from jali.nn import trace

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.cluster import FeatureAgglomeration
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.cross_decomposition import CCA, PLSRegression
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.decomposition import (
    PCA,
    FactorAnalysis,
    FastICA,
    IncrementalPCA,
    SparsePCA,
    TruncatedSVD,
)
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import RFE, SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

DATA = {"iris": load_iris, "cancer": load_breast_cancer, "diabetes": load_diabetes}


def columns(**more: Any) -> ColumnTransformer:
    steps = [
        ("scaled", StandardScaler(), [2, 0]),
        ("same", "passthrough", [1]),
        ("reduced", PCA(2), slice(0, 3)),
        ("left", "drop", [3]),
    ]
    return ColumnTransformer(steps, **more)


def scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def logistic() -> Any:
    return scaled(LogisticRegression())


LINEAR: dict[str, tuple[str, Any]] = {
    "selection": ("cancer", make_pipeline(SelectKBest(k=5), logistic())),
    "threshold": ("iris", make_pipeline(VarianceThreshold(0.5), logistic())),
    "elimination": ("cancer", scaled(RFE(LogisticRegression(), n_features_to_select=4, step=9))),
    "svd": ("iris", make_pipeline(TruncatedSVD(3), logistic())),
    "imputer": ("iris", make_pipeline(SimpleImputer(), logistic())),
    "columns": ("iris", make_pipeline(columns(), logistic())),
    "remainder": ("iris", make_pipeline(columns(remainder=MinMaxScaler()), logistic())),
    "weights": ("iris", make_pipeline(columns(transformer_weights={"scaled": 2.0}), logistic())),
    "union": ("iris", make_pipeline(make_union(StandardScaler(), PCA(2)), logistic())),
    "one against the rest": ("iris", OneVsRestClassifier(LogisticRegression())),
    "one score": ("cancer", scaled(OneVsRestClassifier(LinearSVC()))),
    "average": (
        "diabetes",
        VotingRegressor([("a", Ridge()), ("b", scaled(Lasso()))], weights=[1, 3]),
    ),
    "bagging": ("diabetes", BaggingRegressor(Ridge(), 5, max_features=0.5, random_state=0)),
    "partial least squares": ("diabetes", PLSRegression(3)),
    "linear kernel": ("cancer", scaled(SVC(kernel="linear"))),
    "pairs": ("iris", scaled(SVC(kernel="linear", decision_function_shape="ovo"))),
    "regression": ("diabetes", SVR(kernel="linear")),
    "targets": ("targets", MultiOutputRegressor(Ridge())),
    "partial targets": ("targets", PLSRegression(2)),
    "canonical": ("targets", CCA(1)),
    "batches": ("iris", make_pipeline(IncrementalPCA(2, whiten=True), logistic())),
    "factors": ("iris", make_pipeline(FactorAnalysis(2), logistic())),
    "independent": ("iris", make_pipeline(FastICA(2, random_state=0), logistic())),
    "not whitened": (
        "iris",
        make_pipeline(FastICA(whiten=False, fun="cube", tol=1, random_state=0), logistic()),
    ),
    "sparse components": ("iris", make_pipeline(SparsePCA(2, random_state=0), logistic())),
    "projection": ("iris", make_pipeline(GaussianRandomProjection(3, random_state=0), logistic())),
    "sparse projection": (
        "cancer",
        make_pipeline(SparseRandomProjection(9, random_state=0), logistic()),
    ),
    "pools": ("cancer", make_pipeline(FeatureAgglomeration(4), logistic())),
    "stack": (
        "diabetes",
        StackingRegressor(
            [("a", Ridge()), ("b", PLSRegression(2))], final_estimator=Ridge(), passthrough=True
        ),
    ),
    "scaled target": (
        "diabetes",
        TransformedTargetRegressor(Ridge(), transformer=StandardScaler()),
    ),
    "scaled targets": ("targets", TransformedTargetRegressor(Ridge(), transformer=MinMaxScaler())),
}


def fitted(data: str, model: Any) -> tuple[Any, np.ndarray]:
    x, y = DATA["diabetes" if data == "targets" else data](return_X_y=True)
    if data == "targets":
        y = np.stack([y, x[:, 0]], axis=1)
    return model.fit(x, y), x


def wanted(model: Any) -> Callable[[np.ndarray], np.ndarray]:
    found = model.decision_function if hasattr(model, "decision_function") else model.predict
    return found  # type: ignore[no-any-return]


@pytest.mark.filterwarnings("ignore:simpleimputer")
@pytest.mark.parametrize("name", LINEAR)
def test_it_is_what_scikit_learn_computes(name: str) -> None:
    model, x = fitted(*LINEAR[name])
    (got,) = execute(trace(model, x[:1]), x)
    want = wanted(model)(x)
    assert got.shape == want.shape and np.allclose(got, want)


@pytest.mark.parametrize("name", ["selection", "columns", "one against the rest", "average"])
def test_programs_are_as_exact_as_was_asked_for(name: str) -> None:
    model, x = fitted(*LINEAR[name])
    program = jali.compile(model, x[:1], calibration=x)
    want = wanted(model)(x)
    off = np.abs(program.simulate(x, rng=0) - want).max()
    assert off <= 2.0**-10 * np.abs(want).max()


@pytest.mark.parametrize("name", ["selection", "columns"])
def test_encrypted_results(name: str) -> None:
    model, x = fitted(*LINEAR[name])
    program = jali.compile(model, x[:1], calibration=x, batch=4)
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), device="cpu", threads=1)
    got, want = client.decrypt(server(client.encrypt(x[:4]))), wanted(model)(x)
    assert np.abs(got - want[:4]).max() <= 2.0**-9 * np.abs(want).max()


@pytest.mark.parametrize("priors", ["uniform", [0.2, 0.3, 0.5]])
def test_the_nearest_centroid_is_the_largest_score(priors: Any) -> None:
    x, y = load_iris(return_X_y=True)
    model = NearestCentroid(priors=priors).fit(x, y)
    program = jali.compile(model, x[:1], calibration=x)
    (exact,) = execute(program.stages["trace"], x)
    assert np.array_equal(model.classes_[exact.argmax(axis=1)], model.predict(x))
    near = np.partition(exact, -2, axis=1)
    clear = near[:, -1] - near[:, -2] > 2.0**-9 * np.abs(exact).max()
    simulated = program.simulate(x, rng=0).argmax(axis=1)
    assert clear.sum() > 100 and np.array_equal(simulated[clear], model.predict(x)[clear])


def test_votes_of_two_classes_are_a_probability() -> None:
    x, y = load_breast_cancer(return_X_y=True)
    both = [("a", logistic()), ("b", scaled(LogisticRegression(C=0.01)))]
    model = VotingClassifier(both, voting="soft", weights=[1, 2]).fit(x, y)
    (got,) = execute(trace(model, x[:1]), x)
    assert np.allclose(got, model.predict_proba(x)[:, 1])
    hard = VotingClassifier(both, voting="hard").fit(x, y)
    with pytest.raises(jali.Unsupported, match="compile its estimators_ one by one"):
        trace(hard, x[:1])
    for one in hard.estimators_:  # that is true
        assert np.allclose(execute(trace(one, x[:1]), x)[0], one.decision_function(x))


@pytest.mark.parametrize("model", [MultinomialNB(), ComplementNB(), BernoulliNB(binarize=2.0)])
@pytest.mark.filterwarnings("ignore:BernoulliNB. the client gives 0 and 1")
def test_naive_bayes_of_counts_is_a_matrix(model: Any) -> None:
    x, y = load_iris(return_X_y=True)
    model.fit(x, y)
    given = (x > 2).astype(float) if isinstance(model, BernoulliNB) else x
    program = jali.compile(model, given[:1], calibration=given)
    (got,) = execute(program.stages["trace"], given)
    assert np.allclose(got, model.predict_joint_log_proba(x))


def test_bags_of_other_estimators_than_trees() -> None:
    """jali.compile took them for trees and refused them."""
    x, y = load_breast_cancer(return_X_y=True)
    x = StandardScaler().fit_transform(x)[:, :6]
    bag = BaggingRegressor(Ridge(), 4, max_features=0.5, random_state=0).fit(x, y)
    program = jali.compile(bag, x[:1], calibration=x)
    assert np.allclose(program.clear(x), bag.predict(x))
    classes = BaggingClassifier(LogisticRegression(), 3, max_features=0.5, random_state=0)
    program = jali.compile(classes.fit(x, y), x[:1], calibration=x)
    assert np.allclose(program.clear(x), classes.predict_proba(x)[:, 1])
    iris, kinds = load_iris(return_X_y=True)
    with pytest.raises(jali.Unsupported, match="let the client take the mean"):
        jali.compile(classes.fit(iris, kinds), iris[:1], calibration=iris)


def test_means_of_trees_are_taken_by_the_client() -> None:
    x, y = load_diabetes(return_X_y=True)
    parts = [("a", DecisionTreeRegressor(max_depth=3)), ("b", Ridge())]
    model = VotingRegressor(parts).fit(x, y)
    with pytest.raises(jali.Unsupported, match="compile its estimators_ one by one"):
        jali.compile(model, x[:1], calibration=x)
    tree, line = (jali.compile(one, x[:1], calibration=x) for one in model.estimators_)
    assert np.allclose((tree.clear(x) + line.clear(x)) / 2, model.predict(x))


def test_an_inverse_that_is_not_affine_is_left_to_the_client() -> None:
    x, y = load_diabetes(return_X_y=True)
    model = TransformedTargetRegressor(Ridge(), func=np.log, inverse_func=np.exp).fit(x, y)
    with pytest.raises(jali.Unsupported, match="compile its regressor_"):
        jali.compile(model, x[:1], calibration=x)
    program = jali.compile(model.regressor_, x[:1], calibration=x)
    assert np.allclose(
        model.transformer_.inverse_transform(program.clear(x)[:, None])[:, 0], model.predict(x)
    )


def test_a_transformed_target_of_trees_is_left_to_the_client() -> None:
    """The advice was that of a pipeline, which there is none of."""
    x, y = load_diabetes(return_X_y=True)
    tree = DecisionTreeRegressor(max_depth=3)
    model = TransformedTargetRegressor(tree, transformer=StandardScaler()).fit(x, y)
    with pytest.raises(jali.Unsupported, match="compile its regressor_, and let the client apply"):
        jali.compile(model, x[:1], calibration=x)
    found = jali.compile(model.regressor_).clear(x)
    assert np.allclose(model.transformer_.inverse_transform(found[:, None])[:, 0], model.predict(x))


def test_tables_have_the_columns_of_the_model_in_its_order() -> None:
    """Columns in another order gave wrong results without a word."""
    pandas = pytest.importorskip("pandas")
    x, y = load_iris(return_X_y=True, as_frame=True)
    for model in (LogisticRegression(), DecisionTreeClassifier(max_depth=2)):
        model.fit(x, y)
        moved = x[list(reversed(x.columns))]
        with pytest.raises(jali.InvalidArgument, match=r"in another order, .* give table\[list\("):
            jali.compile(model, moved[:1], calibration=moved)
        with pytest.raises(jali.InvalidArgument, match="other columns than the model"):
            jali.compile(model, x[:1], calibration=x.rename(columns=str.upper))
        table = moved[list(model.feature_names_in_)]
        assert isinstance(table, pandas.DataFrame)
        assert jali.compile(model, table[:1], calibration=table).params is not None


@pytest.mark.parametrize(
    "columns",
    [["c", "a"], "b", slice("a", "c"), lambda table: ["d"], [True, False, True, False], [-1]],
    ids=["names", "a name", "a range", "a function", "flags", "a number"],
)
def test_columns_are_picked_by_name(columns: Any) -> None:
    """Every name of a column was an IndexError."""
    pandas = pytest.importorskip("pandas")
    x, y = load_iris(return_X_y=True)
    table = pandas.DataFrame(x, columns=[*"abcd"])
    first = StandardScaler() if columns != "b" else "drop"
    picked = ColumnTransformer([("first", first, columns)], remainder=MinMaxScaler())
    model = make_pipeline(picked, LogisticRegression()).fit(table, y)
    program = jali.compile(model, table[:1], calibration=table)
    assert np.allclose(program.clear(table), model.decision_function(table))


def test_missing_numbers_stay_with_the_client() -> None:
    x, y = load_iris(return_X_y=True)
    x = np.insert(x, 1, np.nan, axis=1)
    x[::7, 0] = np.nan
    model = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()).fit(x, y)
    filled = np.where(np.isnan(x), model[0].statistics_, x)
    filled[:, 1] = 0  # nothing is known of it, and it is dropped
    with pytest.warns(UserWarning, match="the client gives examples in which its imputer has put"):
        graph = trace(model, filled[:1])
    assert np.allclose(execute(graph, filled)[0], model.decision_function(x))


def test_a_step_that_cannot_be_compiled_is_named() -> None:
    x, y = load_iris(return_X_y=True)
    steps = [("places", OneHotEncoder(handle_unknown="ignore"), [0])]
    model = make_pipeline(ColumnTransformer(steps), LogisticRegression()).fit(x, y)
    with pytest.raises(jali.Unsupported, match="places: an OneHotEncoder cannot be compiled"):
        trace(model, x[:1])


def test_scores_of_pairs_are_told_of() -> None:
    """Votes of pairs of classes are no polynomial: the client counts them."""
    x, y = load_iris(return_X_y=True)
    model = SVC(kernel="linear").fit(x, y)
    with pytest.warns(UserWarning, match='as decision_function_shape="ovo" does'):
        graph = trace(model, x[:1])
    (got,) = execute(graph, x)
    assert np.allclose(got, model.set_params(decision_function_shape="ovo").decision_function(x))
