"""Reads models of XGBoost from the JSON text that its save_model writes. XGBoost itself is not
imported."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np

from jali._core.columns import columns_named
from jali.errors import InvalidArgument, Unsupported
from jali.tfhe.trees.ensemble import (
    FLOOR,
    MISSING_YES,
    MOST_SCORES,
    NO,
    YES,
    Builder,
    Ensemble,
    Head,
    Question,
)

__all__ = ["from_xgboost", "is_xgboost", "xgboost_ensemble"]

_LOGISTIC = ("binary:logistic", "reg:logistic")
_EXPONENTIAL = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")
_CLASSES = ("binary:logistic", "binary:logitraw", "multi:softmax", "multi:softprob")
_IDENTITY = (
    "reg:squarederror",
    "reg:linear",
    "reg:squaredlogerror",
    "reg:pseudohubererror",
    "reg:absoluteerror",
    "reg:quantileerror",
    "rank:pairwise",
    "rank:ndcg",
    "rank:map",
)


def is_xgboost(model: object) -> bool:
    """Whether it is an estimator or a Booster of XGBoost."""
    names = [of.__module__ for of in type(model).__mro__]
    return any(name.split(".")[0] == "xgboost" for name in names)


def xgboost_ensemble(model: Any, output: str) -> Ensemble:
    """The ensemble of an estimator or a Booster."""
    missing = getattr(model, "missing", math.nan)
    if missing is not None and not math.isnan(missing):
        raise Unsupported(
            "the model takes a number for missing ones: fit it with missing=numpy.nan, on rows in which NaN stands for that number"
        )
    booster, rounds = model, None
    if hasattr(model, "get_booster"):
        if not hasattr(model, "_Booster"):
            raise InvalidArgument("the model has not learned anything yet: call its fit() first")
        booster = model.get_booster()
        try:
            rounds = int(model.best_iteration) + 1
        except AttributeError:  # without early stopping
            rounds = None
    classes = np.asarray(model.classes_) if hasattr(model, "classes_") else None
    return from_xgboost(booster.save_raw("json").decode(), output, classes=classes, rounds=rounds)


def from_xgboost(
    text: str | bytes, output: str = "logits", *, classes: Any = None, rounds: int | None = None
) -> Ensemble:
    """The ensemble of a model in the JSON text that XGBoost's ``Booster.save_model("model.json")``
    writes, for ``compile``.

    text: what the file holds.
    output: as of jali.compile: of classifiers, "logits" for predict(output_margin=True) and
        "probability" for probabilities. Other objectives give what predict gives.
    classes: their names; None stands for 0, 1, ...
    rounds: of boosting that count, as iteration_range=(0, rounds) says; None stands for all.

    Raises Unsupported for boosters of other kinds, and InvalidArgument for other text.

    >>> ensemble = trees.from_xgboost(open("model.json").read())  # doctest: +SKIP
    """
    try:
        learner = json.loads(text)["learner"]
        objective = str(learner["objective"]["name"])
        booster = learner["gradient_booster"]
        shape = learner["learner_model_param"]
        if booster["name"] not in ("gbtree", "dart"):
            raise Unsupported(
                f"a booster of the kind {str(booster['name'])[:40]} has no trees: use gbtree, or for gblinear a linear model of scikit-learn"
            )
        made = _read(objective, booster, shape, output, classes, rounds)
        names = columns_named(learner.get("feature_names") or ())
        return replace(made, names=names) if len(names) == made.features else made
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(
            "the text is no model of XGBoost in JSON: give what Booster.save_model wrote to a path that ends with .json"
        ) from None


def _read(
    objective: str, booster: Any, shape: Any, output: str, classes: Any, rounds: int | None
) -> Ensemble:
    scores = max(1, int(shape.get("num_class", 0)), int(shape.get("num_target", 1)))
    if scores > MOST_SCORES:
        raise ValueError("there are no models of so many classes")
    weights = booster.get("weight_drop")  # of dart
    inner = booster["gbtree"] if booster["name"] == "dart" else booster
    trees, info = inner["model"]["trees"], inner["model"]["tree_info"]
    if rounds is not None:
        ends = inner["model"].get("iteration_indptr")
        count = ends[min(rounds, len(ends) - 1)] if ends else rounds * scores
        trees, info = trees[:count], info[:count]
    builder = Builder()
    for k, (tree, score) in enumerate(zip(trees, info, strict=True)):
        _add(builder, tree, int(score), 1.0 if weights is None else float(weights[k]))
    given = [float(v) for v in str(shape["base_score"]).strip("[]").split(",")]
    base = np.array([_margin(objective, v) for v in given], np.float64)
    labels = np.arange(max(2, scores)) if classes is None else np.asarray(classes)
    return Ensemble(
        questions=tuple(builder.questions),
        trees=tuple(builder.trees),
        base=np.broadcast_to(base, (scores,)).copy(),
        head=_head(objective, scores, output),
        features=int(shape["num_feature"]),
        compared_as="float32",
        missing=True,
        infinite=False,
        classes=labels if objective in _CLASSES else np.array([]),
    )


def _add(builder: Builder, tree: Any, score: int, weight: float) -> None:
    """A tree. In XGBoost a row goes left if its number is below the condition, as float32, or its
    category is not in the set."""
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise Unsupported(
            'leaves of the model have several numbers: fit it with multi_strategy="one_output_per_tree"'
        )
    left, right = (np.array(tree[name], np.int64) for name in ("left_children", "right_children"))
    with np.errstate(over="ignore"):  # infinity is refused at a leaf
        conditions = np.array(tree["split_conditions"], np.float32)
    kinds = tree.get("split_type") or [0] * len(left)
    begins = zip(tree.get("categories_segments", ()), tree.get("categories_sizes", ()), strict=True)
    sets = {
        node: tuple(sorted(float(v) for v in tree["categories"][at : at + size]))
        for node, (at, size) in zip(tree.get("categories_nodes", ()), begins, strict=True)
    }
    asked: list[Question | None] = []
    for node in range(len(left)):
        feature, to_left = int(tree["split_indices"][node]), bool(tree["default_left"][node])
        if left[node] < 0:
            asked.append(None)
        elif kinds[node]:
            other = NO if to_left else MISSING_YES
            asked.append(Question(feature, 0.0, other, sets[node], (), FLOOR))
        else:  # x >= c is x > the number before c
            edge = float(np.nextafter(conditions[node], np.float32(-np.inf)))
            asked.append(Question(feature, edge, NO if to_left else YES))
    values = conditions.astype(np.float64)[:, None] * weight
    builder.add(asked, left, right, [score], values)


def _margin(objective: str, base: float) -> float:
    """The score at which trees begin, from the prediction at which they begin."""
    if objective in _LOGISTIC:
        return -math.log(1 / base - 1)
    return math.log(base) if objective in _EXPONENTIAL else base


def _head(objective: str, scores: int, output: str) -> Head:
    is_multiple = objective.startswith("multi:")
    if output == "probability":
        if is_multiple:
            return Head(link="softmax", rule="first")
        if objective in _CLASSES:
            return Head(link="sigmoid", pair=True, rule="first")
        raise Unsupported(
            f"a model with the objective {objective[:60]} has no probabilities: leave output= out, which gives its predictions"
        )
    if is_multiple:
        return Head(rule="first")
    if objective in _CLASSES:
        return Head(rule="above")
    if objective == "reg:logistic":
        return Head(link="sigmoid")
    if objective in _EXPONENTIAL:
        return Head(link="exp")
    if objective in _IDENTITY:
        return Head()
    raise Unsupported(
        f"models with the objective {objective[:60]} are not read: use {', '.join((*_CLASSES, *_EXPONENTIAL, *_IDENTITY))}"
    )
