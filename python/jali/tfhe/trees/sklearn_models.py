"""Reads scikit-learn's trees and what is made of them. It needs of scikit-learn only what the model
itself is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core.columns import columns_of_model
from jali.errors import InvalidArgument, Unsupported
from jali.tfhe.trees.ensemble import NO, REFUSED, YES, Builder, Ensemble, Floats, Head, Question

__all__ = ["KINDS", "from_sklearn", "kind_of"]


def kind_of(model: Any) -> str | None:
    """The name of its class, or of the class of scikit-learn's that it extends; None for what is
    not read here, and for bags of other estimators than trees."""
    for of in type(model).__mro__:
        if of.__name__ in _READERS and of.__module__.startswith("sklearn."):
            members = getattr(model, "estimators_", ()) if of.__name__.startswith("Bagging") else ()
            return of.__name__ if all(hasattr(one, "tree_") for one in members) else None
    return None


def from_sklearn(model: Any, output: str = "logits") -> Ensemble:
    """The ensemble of a fitted model, of one of KINDS. output: as of jali.compile.

    Raises Unsupported and InvalidArgument: the sentence says what to change.
    """
    kind = kind_of(model)
    if kind is None:
        raise Unsupported(
            f"{type(model).__name__} cannot be compiled as trees: use {', '.join(KINDS[:-1])} or {KINDS[-1]}, of a pipeline its last step"
        )
    if not kind.endswith("Classifier") and output == "probability":
        raise Unsupported(
            f"{kind} has no probabilities: leave output= out, which gives what its {_given(kind)} gives"
        )
    return _READERS[kind](model, output)


def _given(kind: str) -> str:
    return "decision_function" if kind == "IsolationForest" else "predict"


def fitted(model: Any, attribute: str) -> Any:
    """What fit() leaves."""
    if not hasattr(model, attribute):
        raise InvalidArgument("the model has not learned anything yet: call its fit() first")
    return getattr(model, attribute)


def _classes(model: Any) -> npt.NDArray[Any]:
    if getattr(model, "n_outputs_", 1) != 1:
        raise Unsupported(
            f"the model predicts {model.n_outputs_} labels at once: fit a model for each of them"
        )
    classes = np.asarray(fitted(model, "classes_"))
    if len(classes) < 2:
        raise InvalidArgument("the model knows one class alone: fit it on rows of two at least")
    return classes


def _takes_missing(model: Any) -> bool:
    """Whether its predict takes NaN."""
    try:
        return bool(model.__sklearn_tags__().input_tags.allow_nan)
    except AttributeError:  # releases before 1.6
        supports = getattr(model, "_support_missing_values", None)
        return bool(supports is not None and supports(np.zeros((1, model.n_features_in_))))


def _add(
    builder: Builder,
    tree: Any,
    scores: Sequence[int],
    values: Floats,
    missing: bool,
    features: npt.NDArray[Any] | None = None,
) -> None:
    """A tree of sklearn.tree. values: (nodes, scores). features: which of a row's it has, None for
    all."""
    left = getattr(tree, "missing_go_to_left", None) if missing else None
    no, yes = tree.children_left, tree.children_right  # which are made anew at every access
    feature, edge = tree.feature.tolist(), tree.threshold.tolist()
    asked: list[Question | None] = []
    for node, child in enumerate(no.tolist()):
        if child < 0:
            asked.append(None)
            continue
        direction = REFUSED if left is None else (NO if left[node] else YES)
        where = feature[node] if features is None else int(features[feature[node]])
        asked.append(Question(where, edge[node], direction))
    builder.add(asked, no, yes, scores, values)


def _made(
    builder: Builder,
    model: Any,
    base: Any,
    head: Head,
    missing: bool,
    classes: npt.NDArray[Any] | None = None,
    compared_as: str = "float32",
) -> Ensemble:
    return Ensemble(
        questions=tuple(builder.questions),
        trees=tuple(builder.trees),
        base=np.atleast_1d(np.asarray(base, np.float64)),
        head=head,
        features=int(model.n_features_in_),
        compared_as=compared_as,
        missing=missing,
        infinite=compared_as == "float64",
        classes=np.array([]) if classes is None else classes,
        names=columns_of_model(model),
    )


def _shares(tree: Any) -> Floats:
    """The probabilities of the classes at every node."""
    values = tree.value[:, 0, :]
    shares: Floats = values / values.sum(axis=1, keepdims=True)
    return shares


def _trees(model: Any) -> list[Any]:
    """The trees of a forest, or the one tree."""
    if hasattr(model, "tree_"):
        return [model.tree_]
    return [one.tree_ for one in fitted(model, "estimators_")]


def _forest_classifier(model: Any, output: str) -> Ensemble:
    trees, classes, missing = _trees(model), _classes(model), _takes_missing(model)
    builder = Builder()
    for tree in trees:
        _add(builder, tree, range(len(classes) - 1), _shares(tree)[:, 1:], missing)
    head = Head(divisor=len(trees), complement=True, rule="first")
    return _made(builder, model, np.zeros(len(classes) - 1), head, missing, classes)


def _forest_regressor(model: Any, output: str) -> Ensemble:
    trees, missing = _trees(model), _takes_missing(model)
    builder = Builder()
    for tree in trees:
        _add(builder, tree, range(tree.value.shape[1]), tree.value[:, :, 0], missing)
    head = Head(divisor=len(trees))
    return _made(builder, model, np.zeros(trees[0].value.shape[1]), head, missing)


# --- boosting -----------------------------------------------------------------------------------


def _classifier_head(scores: int, output: str, rule: str, factor: float = 1.0) -> Head:
    """Of boosted classifiers. rule: of two classes."""
    if output == "probability" and scores == 1:
        return Head(link="sigmoid", factor=factor, pair=True, rule="first")
    if output == "probability":
        return Head(link="softmax", factor=factor, rule="first")
    return Head(rule=rule if scores == 1 else "first")


def _add_stages(builder: Builder, model: Any) -> None:
    for stage in model.estimators_:
        for score, one in enumerate(stage):
            values = one.tree_.value[:, 0, :1] * model.learning_rate
            _add(builder, one.tree_, [score], values, False)


def _guess(model: Any) -> Floats:
    """What boosting begins with, which is the same for every row."""
    stages = fitted(model, "estimators_")
    if type(model.init_).__name__ not in ("DummyClassifier", "DummyRegressor", "str"):
        raise Unsupported(
            f'the boosting begins with the answers of a {type(model.init_).__name__}: fit it with init=None or init="zero"'
        )
    row = np.zeros((1, model.n_features_in_), np.float32)
    if hasattr(model, "_raw_predict_init"):
        return np.asarray(model._raw_predict_init(row), np.float64).reshape(-1)
    is_classifier = hasattr(model, "classes_")
    guess = np.atleast_1d((model.decision_function if is_classifier else model.predict)(row)[0])
    for stage in stages:
        guess = guess - [model.learning_rate * one.predict(row)[0] for one in stage]
    return np.asarray(guess, np.float64)


def _boosting_classifier(model: Any, output: str) -> Ensemble:
    builder, guess = Builder(), _guess(model)
    _add_stages(builder, model)
    factor = 2.0 if model.loss == "exponential" else 1.0
    head = _classifier_head(len(guess), output, "from", factor)
    return _made(builder, model, guess, head, False, _classes(model))


def _boosting_regressor(model: Any, output: str) -> Ensemble:
    builder, guess = Builder(), _guess(model)
    _add_stages(builder, model)
    return _made(builder, model, guess, Head(), False)


def _add_histograms(builder: Builder, model: Any) -> None:
    stages = fitted(model, "_predictors")
    features, categories = _encoded(model)
    known, places = model._bin_mapper.make_known_categories_bitsets()
    for stage in stages:
        for score, predictor in enumerate(stage):
            nodes = predictor.nodes
            asked: list[Question | None] = []
            for node in nodes:
                feature = int(node["feature_idx"])
                direction = NO if node["missing_go_to_left"] else YES
                if node["is_leaf"]:
                    asked.append(None)
                elif node["is_categorical"]:
                    left = _set_of(predictor.raw_left_cat_bitsets[node["bitset_idx"]])
                    right = _set_of(known[places[feature]]) - left
                    named = categories.get(feature)
                    yes, no = (
                        tuple(sorted(float(v if named is None else named[v]) for v in of))
                        for of in (right, left)
                    )
                    asked.append(Question(features[feature], 0.0, direction, yes, no))
                else:
                    asked.append(
                        Question(features[feature], float(node["num_threshold"]), direction)
                    )
            values = nodes["value"][:, None].astype(np.float64)
            builder.add(asked, nodes["left"], nodes["right"], [score], values)


def _set_of(words: npt.NDArray[np.uint32]) -> set[int]:
    """The numbers in a set of bits."""
    return {
        32 * k + bit
        for k, word in enumerate(words.tolist())
        for bit in range(32)
        if word >> bit & 1
    }


def _encoded(model: Any) -> tuple[list[int], dict[int, Any]]:
    """Of each feature of the trees, which of a row's it is, and the categories that its whole
    numbers stand for."""
    count = int(model.n_features_in_)
    encoder = getattr(model, "_preprocessor", None)
    if encoder is None:
        return list(range(count)), {}
    is_category = np.asarray(model.is_categorical_, bool)
    order = [*np.flatnonzero(is_category).tolist(), *np.flatnonzero(~is_category).tolist()]
    names = encoder.named_transformers_["encoder"].categories_
    for of in names:
        if np.asarray(of).dtype.kind not in "biuf":
            raise Unsupported(
                "the model compares categories that are texts: encode them as numbers before the fit, with sklearn.preprocessing.OrdinalEncoder"
            )
    return order, dict(enumerate(names))


def _histogram_classifier(model: Any, output: str) -> Ensemble:
    builder, guess = Builder(), np.asarray(fitted(model, "_baseline_prediction")).reshape(-1)
    _add_histograms(builder, model)
    head = _classifier_head(len(guess), output, "above")
    return _made(builder, model, guess, head, True, _classes(model), "float64")


def _histogram_regressor(model: Any, output: str) -> Ensemble:
    builder, guess = Builder(), np.asarray(fitted(model, "_baseline_prediction")).reshape(-1)
    _add_histograms(builder, model)
    head = Head(link="exp" if model.loss in ("poisson", "gamma") else "identity")
    return _made(builder, model, guess, head, True, None, "float64")


# --- trees of other trees -----------------------------------------------------------------------


def _tree_of(one: Any, of: Any) -> Any:
    """The tree of a member of an ensemble."""
    if not hasattr(one, "tree_"):
        raise Unsupported(
            f"{type(of).__name__} of {type(one).__name__} cannot be compiled: use one of decision trees"
        )
    return one.tree_


def _bagging_classifier(model: Any, output: str) -> Ensemble:
    members, classes = fitted(model, "estimators_"), _classes(model)
    missing = _takes_missing(members[0])
    builder = Builder()
    for one, features in zip(members, model.estimators_features_, strict=True):
        tree = _tree_of(one, model)
        shares = np.zeros((tree.node_count, len(classes)))
        shares[:, np.asarray(one.classes_, np.intp)] = _shares(tree)
        _add(builder, tree, range(len(classes) - 1), shares[:, 1:], missing, features)
    head = Head(divisor=len(members), complement=True, rule="first")
    return _made(builder, model, np.zeros(len(classes) - 1), head, missing, classes)


def _bagging_regressor(model: Any, output: str) -> Ensemble:
    members = fitted(model, "estimators_")
    missing = _takes_missing(members[0])
    builder = Builder()
    for one, features in zip(members, model.estimators_features_, strict=True):
        tree = _tree_of(one, model)
        _add(builder, tree, range(tree.value.shape[1]), tree.value[:, :, 0], missing, features)
    return _made(builder, model, np.zeros(tree.value.shape[1]), Head(divisor=len(members)), missing)


def _adaboost_classifier(model: Any, output: str) -> Ensemble:
    members, classes = fitted(model, "estimators_"), _classes(model)
    if getattr(model, "algorithm", "SAMME") == "SAMME.R":
        raise Unsupported('AdaBoost by SAMME.R cannot be compiled: fit it with algorithm="SAMME"')
    weights = np.asarray(model.estimator_weights_, np.float64)[: len(members)]
    missing = _takes_missing(members[0])
    builder, binary = Builder(), len(classes) == 2
    for one, weight in zip(members, weights / weights.sum(), strict=True):
        tree = _tree_of(one, model)
        label = one.classes_[tree.value[:, 0, :].argmax(axis=1)]
        is_class = label[:, None] == classes
        values = np.where(is_class, weight, -weight / (len(classes) - 1))
        if binary:
            values = values[:, 1:] - values[:, :1]
        _add(builder, tree, range(values.shape[1]), values, missing)
    scores = 1 if binary else len(classes)
    head = _classifier_head(scores, output, "above", 1.0 if binary else 1 / (len(classes) - 1))
    return _made(builder, model, np.zeros(scores), head, missing, classes)


def _isolation_forest(model: Any, output: str) -> Ensemble:
    members, missing = fitted(model, "estimators_"), _takes_missing(model)
    builder = Builder()
    for one, features in zip(members, model.estimators_features_, strict=True):
        tree = one.tree_
        no, yes = tree.children_left, tree.children_right
        depth = np.zeros(tree.node_count)  # of nodes on the way, as scikit-learn counts them
        for node in np.flatnonzero(no >= 0):
            depth[[no[node], yes[node]]] = depth[node] + 1
        length = depth + _average_path(tree.n_node_samples)
        _add(builder, tree, [0], length[:, None], missing, features)
    denominator = len(members) * float(_average_path(np.array([model._max_samples]))[0])
    if denominator == 0:
        raise InvalidArgument(
            "the trees of the isolation forest saw one row each: fit it with a larger max_samples"
        )
    head = Head(
        link="isolation", factor=1 / denominator, offset=float(model.offset_), rule="anomaly"
    )
    return _made(builder, model, [0.0], head, missing)


def _average_path(samples: npt.NDArray[Any]) -> Floats:
    """The average length of the path to a leaf in an isolation tree of so many rows: 2 (H(n - 1) -
    (n - 1) / n), with ln + gamma for H."""
    n = np.asarray(samples, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        long = 2.0 * (np.log(n - 1.0) + np.euler_gamma) - 2.0 * (n - 1.0) / n
    return np.where(n <= 1, 0.0, np.where(n <= 2, 1.0, long))


_READERS: dict[str, Callable[[Any, str], Ensemble]] = {
    "DecisionTreeClassifier": _forest_classifier,
    "ExtraTreeClassifier": _forest_classifier,
    "RandomForestClassifier": _forest_classifier,
    "ExtraTreesClassifier": _forest_classifier,
    "DecisionTreeRegressor": _forest_regressor,
    "ExtraTreeRegressor": _forest_regressor,
    "RandomForestRegressor": _forest_regressor,
    "ExtraTreesRegressor": _forest_regressor,
    "GradientBoostingClassifier": _boosting_classifier,
    "GradientBoostingRegressor": _boosting_regressor,
    "HistGradientBoostingClassifier": _histogram_classifier,
    "HistGradientBoostingRegressor": _histogram_regressor,
    "BaggingClassifier": _bagging_classifier,
    "BaggingRegressor": _bagging_regressor,
    "AdaBoostClassifier": _adaboost_classifier,
    "IsolationForest": _isolation_forest,
}
KINDS = tuple(_READERS)
