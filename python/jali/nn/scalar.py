"""The functions of single numbers that models contain: what they are in the clear, and which approximation replaces them.

``relu(x)`` and its like take NumPy arrays, and the arrays of a function that is being traced.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jali.ckks import functions
from jali.nn.graph import Array

__all__ = [
    "APPROXIMATED",
    "FUNCTIONS",
    "gelu",
    "inverse",
    "inverse_sqrt",
    "relu",
    "sigmoid",
    "silu",
]


def _sigmoid(x: Array) -> Array:
    return 0.5 + 0.5 * np.tanh(0.5 * x)


_erf: Callable[[Array], Array] = np.vectorize(math.erf, otypes=[np.float64])

#: The functions by name.
FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0.0),
    "absolute": np.abs,
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "silu": lambda x: x * _sigmoid(x),
    "gelu": lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2))),
    "exp": np.exp,
    "log": np.log,
    "inverse": np.reciprocal,
    "sqrt": np.sqrt,
    "inverse_sqrt": lambda x: 1 / np.sqrt(x),
}

#: What makes the approximation on an interval. ReLU and the modulus take the largest modulus instead, see approximate.py.
APPROXIMATED: dict[str, Callable[..., functions.Function]] = {
    name: getattr(functions, name) for name in FUNCTIONS
}


def _named(name: str) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        traced = getattr(x, "_function", None)
        return FUNCTIONS[name](np.asarray(x, np.float64)) if traced is None else traced(name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The function {name} of every number, for functions that jali.compile traces."
    )
    return function


relu = _named("relu")
sigmoid = _named("sigmoid")
silu = _named("silu")
gelu = _named("gelu")
inverse = _named("inverse")
inverse_sqrt = _named("inverse_sqrt")
