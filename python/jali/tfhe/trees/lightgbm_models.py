"""Reads models of LightGBM from the text that its save_model writes. LightGBM itself is not
imported."""

from __future__ import annotations

from typing import Any

import numpy as np

from jali._core.columns import columns_named
from jali.errors import InvalidArgument, Unsupported
from jali.tfhe.trees.ensemble import (
    AS_ZERO,
    MOST_SCORES,
    NO,
    TRUNCATE,
    YES,
    ZERO_NO,
    ZERO_YES,
    Builder,
    Ensemble,
    Head,
    Question,
)

__all__ = ["from_lightgbm", "is_lightgbm", "lightgbm_ensemble"]

_EXPONENTIAL = ("poisson", "gamma", "tweedie")
_IDENTITY = ("regression", "regression_l1", "huber", "fair", "quantile", "mape", "lambdarank", "rank_xendcg")  # fmt: skip
_CATEGORY, _TO_LEFT = (
    1,
    2,
)  # bits of decision_type; the two above them are the type of missing numbers


def is_lightgbm(model: object) -> bool:
    """Whether it is an estimator or a Booster of LightGBM."""
    names = [of.__module__ for of in type(model).__mro__]
    return any(name.split(".")[0] == "lightgbm" for name in names)


def lightgbm_ensemble(model: Any, output: str) -> Ensemble:
    """The ensemble of an estimator or a Booster."""
    booster = model
    if hasattr(model, "fit"):
        if getattr(model, "_Booster", None) is None:
            raise InvalidArgument("the model has not learned anything yet: call its fit() first")
        booster = model.booster_
    classes = np.asarray(model.classes_) if hasattr(model, "classes_") else None
    return from_lightgbm(booster.model_to_string(), output, classes=classes)


def from_lightgbm(text: str | bytes, output: str = "logits", *, classes: Any = None) -> Ensemble:
    """The ensemble of a model in the text that LightGBM's ``Booster.save_model("model.txt")``
    writes, for ``compile``.

    text: what the file holds.
    output: as of jali.compile: of classifiers, "logits" for predict(raw_score=True) and
        "probability" for probabilities. Other objectives give what predict gives.
    classes: their names; None stands for 0, 1, ...

    Raises Unsupported for linear trees and objectives of other kinds, and InvalidArgument for other
    text.

    >>> ensemble = trees.from_lightgbm(open("model.txt").read())  # doctest: +SKIP
    """
    try:
        lines = (text.decode() if isinstance(text, bytes) else text).splitlines()
        header, trees = _sections(lines)
        return _read(header, trees, output, classes)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(
            "the text is no model of LightGBM: give what Booster.save_model or model_to_string wrote"
        ) from None


def _sections(lines: list[str]) -> tuple[dict[str, str], list[dict[str, str]]]:
    """The fields of the header and of every tree."""
    header: dict[str, str] = {}
    trees: list[dict[str, str]] = []
    for line in lines:
        if line.startswith("end of trees"):
            return header, trees
        name, _, value = line.partition("=")
        if name == "Tree":
            trees.append({})
        elif name:
            (trees[-1] if trees else header)[name] = value
    raise ValueError("the end is missing")


def _read(
    header: dict[str, str], trees: list[dict[str, str]], output: str, classes: Any
) -> Ensemble:
    scores = int(header["num_tree_per_iteration"])
    if not 1 <= scores <= MOST_SCORES:
        raise ValueError("there are no models of so many classes")
    builder = Builder()
    for k, tree in enumerate(trees):
        _add(builder, tree, k % scores)
    divisor = len(trees) // scores if "average_output" in header else 1  # of random forests
    head = _head(header.get("objective", ""), scores, output, float(divisor))
    is_classifier = head.rule != "none"
    labels = np.arange(max(2, scores)) if classes is None else np.asarray(classes)
    features = int(header["max_feature_idx"]) + 1
    names = columns_named(header.get("feature_names", "").split())
    return Ensemble(
        questions=tuple(builder.questions),
        trees=tuple(builder.trees),
        base=np.zeros(scores),
        head=head,
        features=features,
        compared_as="float64",
        missing=True,
        infinite=True,
        classes=labels if is_classifier else np.array([]),
        names=names if len(names) == features else (),
    )


def _numbers(tree: dict[str, str], name: str, kind: type) -> Any:
    return np.array(tree[name].split(), kind)


def _add(builder: Builder, tree: dict[str, str], score: int) -> None:
    """A tree. Its inner nodes are 0 to leaves - 2; a child below 0 is the leaf -1 - child. A row
    goes left if its number is at most the threshold, or its category is in the set."""
    if tree.get("is_linear", "0").strip() not in ("", "0"):
        raise Unsupported("leaves of the model are linear functions: fit it with linear_tree=False")
    leaves = int(tree["num_leaves"])
    values = _numbers(tree, "leaf_value", np.float64)
    inner = leaves - 1
    left, right = np.zeros((2, inner + leaves), np.int64)
    asked: list[Question | None] = []
    if inner:
        feature = _numbers(tree, "split_feature", np.int64)
        threshold = _numbers(tree, "threshold", np.float64)
        kind = _numbers(tree, "decision_type", np.int64)
        children = [_numbers(tree, name, np.int64) for name in ("left_child", "right_child")]
        both = [np.where(of < 0, inner - 1 - of, of) for of in children]
        for node in range(inner):
            of, edge, how = int(feature[node]), float(threshold[node]), int(kind[node])
            left[node], right[node] = int(both[0][node]), int(both[1][node])
            if how & _CATEGORY:
                asked.append(Question(of, 0.0, NO, _set(tree, int(edge)), (), TRUNCATE))
                left[node], right[node] = right[node], left[node]  # the set is the answer yes
            else:
                asked.append(Question(of, edge, _missing(how)))
    asked += [None] * leaves
    builder.add(asked, left, right, [score], np.concatenate([np.zeros(inner), values])[:, None])


def _missing(how: int) -> int:
    """What is answered to x > threshold if x is missing."""
    to_left = bool(how & _TO_LEFT)
    match how >> 2 & 3:
        case 0:
            return AS_ZERO
        case 1:
            return ZERO_NO if to_left else ZERO_YES
        case _:
            return NO if to_left else YES


def _set(tree: dict[str, str], at: int) -> tuple[float, ...]:
    """The categories of a set of bits."""
    bounds = _numbers(tree, "cat_boundaries", np.int64)
    words = _numbers(tree, "cat_threshold", np.int64)[bounds[at] : bounds[at + 1]]
    return tuple(
        float(32 * k + bit) for k, word in enumerate(words.tolist()) for bit in range(32) if word >> bit & 1
    )  # fmt: skip


def _head(objective: str, scores: int, output: str, divisor: float) -> Head:
    name, *options = objective.split() or [""]
    sigmoid = next((float(o[8:]) for o in options if o.startswith("sigmoid:")), 1.0)
    if name in ("binary", "multiclass", "multiclassova"):
        if output == "logits":
            return Head(divisor, rule="above" if scores == 1 else "first")
        if name == "multiclass":
            return Head(divisor, link="softmax", rule="first")
        return Head(divisor, link="sigmoid", factor=sigmoid, pair=scores == 1, rule="first")
    if output == "probability":
        raise Unsupported(
            f"a model with the objective {name[:60]} has no probabilities: leave output= out, which gives its predictions"
        )
    if name == "cross_entropy":
        return Head(divisor, link="sigmoid")
    if name in _EXPONENTIAL:
        return Head(divisor, link="exp")
    if name in _IDENTITY:
        return Head(divisor, link="square" if "sqrt" in options else "identity")
    raise Unsupported(
        f"models with the objective {name[:60]} are not read: use binary, multiclass, multiclassova, cross_entropy, {', '.join((*_EXPONENTIAL, *_IDENTITY))}"
    )
