"""Models of trees, the data that they are fitted on, and parties of small parameters, for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from tfhe_world import make

from jali import tfhe

__all__ = ["ROOM", "data", "given", "is_classifier"]

#: As quick as can be, with the room for sums that real parameters have.
ROOM = make(max_norm2=25)


def data(rng: np.random.Generator, classes: int, rows: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Rows of 6 features of different kinds, and labels that depend on them."""
    x = rng.normal(size=(rows, 6))
    x[:, 1] = rng.integers(0, 3, rows)
    x[:, 2] = np.exp(3 * x[:, 2])
    score = x[:, 0] + x[:, 1] * (x[:, 3] > 0) - (x[:, 2] > 1) + rng.normal(size=rows) / 4
    labels = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    return x, np.array(["red", "green", "blue", "black"])[labels]


def given(model: Any, rows: np.ndarray) -> np.ndarray:
    """What a model gives, and a program of it shall give: scores, else probabilities, else
    predictions."""
    for name in ("decision_function", "predict_proba"):
        if hasattr(model, name):
            return np.asarray(getattr(model, name)(rows))
    return np.asarray(model.predict(rows))


def is_classifier(model: Any) -> bool:
    return hasattr(model, "classes_")


def parties(params: tfhe.Params = ROOM) -> tuple[tfhe.Client, tfhe.Evaluator]:
    client = tfhe.Client(params, threads=1)
    return client, tfhe.Evaluator(params, client.evaluation_keys(), threads=1)
