"""Which reader takes a model."""

from __future__ import annotations

from typing import Any

from jali.errors import Unsupported
from jali.tfhe.trees.ensemble import Ensemble
from jali.tfhe.trees.lightgbm_models import is_lightgbm, lightgbm_ensemble
from jali.tfhe.trees.sklearn_models import KINDS, from_sklearn, kind_of
from jali.tfhe.trees.xgboost_models import is_xgboost, xgboost_ensemble

__all__ = ["ensemble_of", "is_trees"]


def is_trees(model: object) -> bool:
    """Whether ``compile`` takes this model.

    >>> trees.is_trees("no model")
    False
    """
    return (
        isinstance(model, Ensemble)
        or kind_of(model) is not None
        or is_xgboost(model)
        or is_lightgbm(model)
    )


def ensemble_of(model: Any, output: str = "logits") -> Ensemble:
    """The ensemble of a model.

    output: as of jali.compile.

    Raises Unsupported for what is no model of trees.
    """
    if isinstance(model, Ensemble):
        return model
    if kind_of(model) is not None:
        return from_sklearn(model, output)
    if is_xgboost(model):
        return xgboost_ensemble(model, output)
    if is_lightgbm(model):
        return lightgbm_ensemble(model, output)
    raise Unsupported(
        f"{type(model).__name__} cannot be compiled as trees: use {', '.join(KINDS)}, a model of XGBoost or LightGBM, of a pipeline its last step"
    )
