"""Models of XGBoost and LightGBM: from their files, small ones of which are here as text, and from
the packages if they are installed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from trees_world import ROOM

import jali
from jali.tfhe import trees

NAN = float("nan")


def xgboost_text(**changed: Any) -> dict[str, Any]:
    """Two trees: f0 < 0.1 ? -1 : (f1 < 2 ? 0.5 : 4), missing f0 to the right; and f2 in {1, 3} ?
    0.25 : -0.25, missing f2 as {1, 3}."""
    common = {"categories": [], "categories_nodes": [], "categories_segments": [], "categories_sizes": []}  # fmt: skip
    param = {"num_deleted": "0", "num_feature": "3", "size_leaf_vector": "1"}
    first = {
        "left_children": [1, -1, 3, -1, -1],
        "right_children": [2, -1, 4, -1, -1],
        "split_indices": [0, 0, 1, 0, 0],
        "split_conditions": [0.1, -1, 2, 0.5, 4],
        "default_left": [0, 0, 1, 0, 0],
        "split_type": [0, 0, 0, 0, 0],
        "tree_param": {**param, "num_nodes": "5"},
        **common,
    }
    second = {
        "left_children": [1, -1, -1],
        "right_children": [2, -1, -1],
        "split_indices": [2, 0, 0],
        "split_conditions": [0, -0.25, 0.25],
        "default_left": [0, 0, 0],
        "split_type": [1, 0, 0],
        "tree_param": {**param, "num_nodes": "3"},
        "categories": [1, 3],
        "categories_nodes": [0],
        "categories_segments": [0],
        "categories_sizes": [2],
    }
    booster = {
        "name": "gbtree",
        "model": {
            "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": "2"},
            "iteration_indptr": [0, 1, 2],
            "tree_info": [0, 0],
            "trees": [first, second],
        },
    }
    learner = {
        "gradient_booster": booster,
        "learner_model_param": {"base_score": "5E-1", "num_class": "0", "num_feature": "3", "num_target": "1"},
        "objective": {"name": "reg:squarederror"},
    }  # fmt: skip
    return {"learner": {**learner, **changed}, "version": [2, 1, 4]}


def test_a_file_of_xgboost_is_read() -> None:
    model = trees.from_xgboost(json.dumps(xgboost_text()))
    edge = float(np.float32(0.1))
    rows = np.array(
        [
            # What lies between two numbers of float32 is rounded to one of them before it is
            # compared.
            [edge, 0, 0], [np.nextafter(edge, 1), 0, 0], [np.nextafter(edge, 0), 0, 0],
            [np.nextafter(np.float32(0.1), np.float32(0)), 0, 0], [0.1, 2, 1], [9, 1.9999999999, 3], [9, 1.9999, 3.7],
            [NAN, 5, 2], [NAN, NAN, NAN], [-5, NAN, NAN], [9, 2, -1], [9, 2, 1e9],
        ]
    )  # fmt: skip
    first = np.array([0.5, 0.5, 0.5, -1, 4, 4, 0.5, 4, 0.5, -1, 4, 4])
    second = np.array([-1, -1, -1, -1, 1, 1, 1, -1, 1, 1, -1, -1]) / 4
    program = jali.compile(model)
    assert program.error == 0
    np.testing.assert_array_equal(program.simulate(rows), 0.5 + first + second)
    limited = jali.compile(trees.from_xgboost(json.dumps(xgboost_text()), rounds=1))
    np.testing.assert_array_equal(limited.simulate(rows), 0.5 + first)
    with pytest.raises(jali.InvalidArgument, match="not finite"):
        program.simulate([[np.inf, 0, 0]])
    client = trees.compile(model, ROOM).client(threads=1)
    server = trees.compile(model, ROOM).server(client.evaluation_keys(), threads=1)
    found = client.decrypt(server(client.encrypt(rows)))
    np.testing.assert_array_equal(found, program.simulate(rows))


def test_objectives_of_xgboost_have_their_links() -> None:
    rows = np.array([[0, 0, 0], [1, 0, 1], [1, 3, 1.0]])
    sums = np.array([-1.25, 0.75, 4.25])
    for name, base, want in (
        ("count:poisson", "2E0", np.exp(np.log(2) + sums)),
        ("reg:logistic", "5E-1", 1 / (1 + np.exp(-sums))),
        ("binary:logistic", "[5E-1]", sums),
        ("rank:ndcg", "0", sums),
    ):
        text = xgboost_text(
            objective={"name": name},
            learner_model_param={"base_score": base, "num_class": "0", "num_feature": "3"},
        )
        program = jali.compile(trees.from_xgboost(json.dumps(text)))
        np.testing.assert_allclose(program.simulate(rows), want, rtol=1e-12)
    text["learner"]["objective"]["name"] = "binary:logistic"
    text["learner"]["learner_model_param"]["base_score"] = "5E-1"
    model = trees.from_xgboost(json.dumps(text), "probability", classes=["no", "yes"])
    program = jali.compile(model)
    found = program.simulate(rows)
    np.testing.assert_allclose(found[:, 1], 1 / (1 + np.exp(-sums)), rtol=1e-12)
    assert program.labels(found).tolist() == ["no", "yes", "yes"]


LIGHTGBM = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=2
objective=regression
feature_names=a b c
feature_infos=[0:1] [0:1] 0:1:2:3
tree_sizes=1 1

Tree=0
num_leaves=3
num_cat=0
split_feature=0 1
split_gain=1 1
threshold=0.10000000000000001 2
decision_type={first} {second}
left_child=-1 -2
right_child=1 -3
leaf_value=-1 0.5 4
is_linear=0
shrinkage=1


Tree=1
num_leaves=2
num_cat=1
split_feature=2
split_gain=1
threshold=0
decision_type=1
left_child=-1
right_child=-2
leaf_value=0.25 -0.25
cat_boundaries=0 2
cat_threshold=10 1
is_linear=0
shrinkage=0.1


end of trees

feature_importances:
a=1
"""


@pytest.mark.parametrize(
    ("first", "second", "missing", "zero"),
    [
        (0, 0, -1, -1),  # NaN is 0
        (2 | 1 << 2, 0, -1, -1),  # zeros and NaN go left
        (1 << 2, 0, 0.5, 0.5),  # right
        (2 | 2 << 2, 0, -1, -1),  # NaN goes left
        (2 << 2, 0, 0.5, -1),  # right
    ],
)
def test_a_file_of_lightgbm_is_read(first: int, second: int, missing: float, zero: float) -> None:
    text = LIGHTGBM.format(first=first, second=second)
    rows = np.array(
        [
            [0.1, 9, 1], [np.nextafter(0.1, 1), 2, 3], [0.2, np.nextafter(2, 3), 32], [np.inf, np.inf, 2],
            [0.2, 0, 0], [0.2, 0, 3.9], [0.2, 0, -0.5], [0.2, 0, -1], [0.2, 0, 33], [0.2, 0, 64], [0.2, 0, NAN],
            [NAN, 0, 1], [0.0, 0, 1], [1e-36, 0, 1], [-1e-36, 0, 1],
        ]
    )  # fmt: skip
    want = np.array([-1, 0.5, 4, 4, *[0.5] * 7, missing, zero, zero, zero])
    second_tree = np.array([1, 1, 1, -1, -1, 1, -1, -1, -1, -1, -1, 1, 1, 1, 1]) / 4
    program = jali.compile(trees.from_lightgbm(text))
    np.testing.assert_array_equal(program.simulate(rows), want + second_tree)
    averaged = text.replace("label_index", "average_output\nlabel_index")
    found = jali.compile(trees.from_lightgbm(averaged)).simulate(rows)
    np.testing.assert_array_equal(found, (want + second_tree) / 2)
    root = text.replace("objective=regression", "objective=regression sqrt")
    found = jali.compile(trees.from_lightgbm(root)).simulate(rows)
    both = want + second_tree
    np.testing.assert_allclose(found, np.sign(both) * both**2, rtol=1e-12)
    binary = text.replace("objective=regression", "objective=binary sigmoid:2")
    program = jali.compile(trees.from_lightgbm(binary, "probability"))
    np.testing.assert_allclose(program.simulate(rows)[:, 1], 1 / (1 + np.exp(-2 * both)))


def test_other_texts_are_refused(rng: np.random.Generator) -> None:
    text = json.dumps(xgboost_text())
    lightgbm = LIGHTGBM.format(first=0, second=0)
    for wrong in ("", "{}", "[]", "null", text[:-1], b"\xff", '{"learner": 3}'):
        with pytest.raises(jali.InvalidArgument, match="no model of XGBoost"):
            trees.from_xgboost(wrong)
    for wrong in ("", "tree", lightgbm[:-60], b"\xff", lightgbm.replace("num_leaves", "x")):
        with pytest.raises(jali.InvalidArgument, match="no model of LightGBM"):
            trees.from_lightgbm(wrong)
    linear = xgboost_text(gradient_booster={"name": "gblinear"})
    with pytest.raises(jali.Unsupported, match="gbtree"):
        trees.from_xgboost(json.dumps(linear))
    with pytest.raises(jali.Unsupported, match="linear_tree=False"):
        trees.from_lightgbm(lightgbm.replace("is_linear=0", "is_linear=1"))
    with pytest.raises(jali.Unsupported, match="objective"):
        trees.from_xgboost(json.dumps(xgboost_text(objective={"name": "mine"})))
    with pytest.raises(jali.Unsupported, match="objective"):
        trees.from_lightgbm(lightgbm.replace("=regression", "=mine"))
    for read, given in ((trees.from_xgboost, text), (trees.from_lightgbm, lightgbm)):
        with pytest.raises(jali.Unsupported, match="no probabilities"):
            read(given, "probability")
        for _ in range(300):  # digits and signs are changed: what is read can be used
            at = int(rng.choice([k for k, c in enumerate(given) if c.isdigit()]))
            changed = given[:at] + str(rng.choice(["9", "-1", "", "x", "1e9"])) + given[at + 1 :]
            try:
                trees.compile(read(changed), precision_bits=8).simulate(np.zeros((1, 3)))
            except jali.Error:
                continue


def holes(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(rows.shape) < 0.15, NAN, rows)


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    sets = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed")
    x, y = getattr(sets, f"load_{name}")(return_X_y=True)
    return x, y


@pytest.mark.parametrize("name", ["breast_cancer", "wine"])
@pytest.mark.parametrize("package", ["xgboost", "lightgbm"])
def test_classifiers_of_the_packages_give_their_answers(
    package: str, name: str, rng: np.random.Generator
) -> None:
    library = pytest.importorskip(package, reason=f"{package} is not installed")
    x, y = data(name)
    quick = {"n_estimators": 6, "n_jobs": 1, "random_state": 0}
    for rows in (x, holes(x, rng)):
        if package == "xgboost":
            model = library.XGBClassifier(max_depth=4, **quick).fit(rows[::2], y[::2])
            raw, near = model.predict(rows, output_margin=True), 1e-5
        else:
            model = library.LGBMClassifier(verbose=-1, **quick).fit(rows[::2], y[::2])
            raw, near = model.predict(rows, raw_score=True), 1e-13
        for output, want in (("logits", raw), ("probability", model.predict_proba(rows))):
            program = jali.compile(model, output=output)
            found = program.simulate(rows)
            assert found.shape == want.shape
            assert np.abs(found - want).max() <= program.error + near
            np.testing.assert_array_equal(program.labels(found), model.predict(rows))


def test_regressors_of_the_packages_give_their_sums(rng: np.random.Generator) -> None:
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    x, y = data("diabetes")
    x = holes(x, rng)
    quick = {"n_estimators": 6, "n_jobs": 1, "random_state": 0}
    models: list[Any] = [
        *(xgboost.XGBRegressor(objective=o, **quick) for o in ("count:poisson", "reg:squarederror")),
        xgboost.XGBRegressor(booster="dart", rate_drop=0.3, **quick),
        xgboost.XGBRFRegressor(**quick),
        *(lightgbm.LGBMRegressor(objective=o, verbose=-1, **quick) for o in ("poisson", "regression")),
        lightgbm.LGBMRegressor(boosting_type="rf", bagging_freq=1, bagging_fraction=0.5, verbose=-1, **quick),
        lightgbm.LGBMRegressor(zero_as_missing=True, verbose=-1, **quick),
    ]  # fmt: skip
    for model in models:
        model.fit(x, y)
        program = jali.compile(model)
        is_float32 = isinstance(model, xgboost.XGBModel)
        np.testing.assert_allclose(
            program.simulate(x), model.predict(x), rtol=1e-5 if is_float32 else 1e-9
        )
    early = xgboost.XGBRegressor(
        n_estimators=30, learning_rate=1.0, early_stopping_rounds=2, n_jobs=1
    )
    early.fit(x[::2], y[::2], eval_set=[(x[1::2], y[1::2])], verbose=False)
    assert early.best_iteration < 25
    np.testing.assert_allclose(jali.compile(early).simulate(x), early.predict(x), rtol=1e-5)
    with pytest.raises(jali.Unsupported, match=r"missing=numpy\.nan"):
        jali.compile(xgboost.XGBRegressor(missing=0.0, **quick).fit(x, y))
    for unfitted in (xgboost.XGBRegressor(), lightgbm.LGBMRegressor()):
        with pytest.raises(jali.InvalidArgument, match="fit"):
            jali.compile(unfitted)


def test_categories_of_the_packages_go_their_way(rng: np.random.Generator) -> None:
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    x = np.stack([rng.integers(0, 9, 400), rng.integers(0, 40, 400), rng.normal(size=400)], 1)
    y = np.isin(x[:, 0], [1, 4, 7]) * 2 + np.isin(x[:, 1], [3, 5, 30, 31]) + x[:, 2] / 9
    x[::13, 0], x[::11, 1] = NAN, NAN
    strange = x.copy()
    strange[::5, 0] = 4.7
    for most in (1, 100):
        model = xgboost.XGBRegressor(
            enable_categorical=True, feature_types=["c", "c", "q"], max_cat_to_onehot=most, n_estimators=6, n_jobs=1
        ).fit(x, y)  # fmt: skip
        for rows in (x, strange):
            np.testing.assert_allclose(
                jali.compile(model).simulate(rows), model.predict(rows), atol=2e-6
            )
    model = lightgbm.LGBMRegressor(n_estimators=6, verbose=-1, min_data_per_group=5, n_jobs=1)
    model.fit(x, y, categorical_feature=[0, 1])
    strange[::3, 0], strange[::19, 1] = -0.5, 1000
    for rows in (x, strange):
        found = jali.compile(model).simulate(rows)
        np.testing.assert_allclose(found, model.predict(rows), atol=1e-8)
