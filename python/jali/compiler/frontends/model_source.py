"""Which frontend takes a model. The modules of its classes tell the package, so that no other
package is imported, and no other frontend."""

from __future__ import annotations

import os

__all__ = ["is_estimator", "is_module", "is_onnx", "may_be_trees"]

_TREES = {"lightgbm", "sklearn", "xgboost"}


def _packages(model: object) -> set[str]:
    """The packages of a model's class and of those that it extends."""
    return {of.__module__.partition(".")[0] for of in type(model).__mro__}


def is_module(model: object) -> bool:
    """Whether it comes from PyTorch."""
    return "torch" in _packages(model)


def is_estimator(model: object) -> bool:
    """Whether its class is one of scikit-learn's."""
    return type(model).__module__.partition(".")[0] == "sklearn"


def is_onnx(model: object) -> bool:
    """Whether it is a loaded model in ONNX, or the path of one."""
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model).endswith(".onnx")
    return type(model).__module__.partition(".")[0] == "onnx" and hasattr(model, "graph")


def may_be_trees(model: object) -> bool:
    """Whether jali.tfhe.trees may take it: it comes from a package that has models of trees, or is
    an Ensemble."""
    own = type(model).__module__.startswith("jali.tfhe.trees.")
    return own or not _TREES.isdisjoint(_packages(model))
