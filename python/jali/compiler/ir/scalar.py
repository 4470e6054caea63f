"""The functions of single numbers that models contain: what they are in the clear, and which
approximation replaces them.

``relu(x)`` and its like take NumPy arrays, and the arrays of a function that is being traced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jali import ckks
from jali.ckks import functions
from jali.compiler.ir.arrays import Array
from jali.errors import InvalidArgument

__all__ = [
    "ABOVE_ZERO",
    "APPROXIMATED",
    "AROUND_ZERO",
    "COMPOSITIONS",
    "DECIDING",
    "FUNCTIONS",
    "HOMOGENEOUS",
    "RELUS",
    "gelu",
    "inverse",
    "inverse_sqrt",
    "polynomial",
    "relu",
    "relu_15_15_27",
    "sigmoid",
    "silu",
    "undefined",
]

_DEGREES = (7, 15, 31, 63, 127, 255, 511)  # the largest that take 3, 4, 5 .. levels


def _sigmoid(x: Array) -> Array:
    return 0.5 + 0.5 * np.tanh(0.5 * x)


_erf: Callable[[Array], Array] = np.vectorize(math.erf, otypes=[np.float64])


def _gelu_tanh(x: Array) -> Array:
    """The approximation of GELU that many transformers use (Hendrycks and Gimpel 2016)."""
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


def _softplus(x: Array) -> Array:
    return np.asarray(np.logaddexp(0.0, x))


#: The functions by name. "maximum" is the ReLU of a difference, by which a maximum of two encrypted
#: numbers is computed.
FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0.0),
    "relu_15_15_27": lambda x: np.maximum(x, 0.0),
    "maximum": lambda x: np.maximum(x, 0.0),
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
    "erf": lambda x: _erf(x),
    "gelu_tanh": _gelu_tanh,
    "softplus": _softplus,
    "mish": lambda x: x * np.tanh(_softplus(x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0.0))),
    "sin": np.sin,
    "cos": np.cos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "sign": np.sign,
    "step": lambda x: (x > 0).astype(np.float64),
}


#: ReLU as x (1 + sign(x)) / 2 with a sign of polynomials of these degrees, whatever error that
#: leaves. Each is a node of its own.
COMPOSITIONS = {"relu_15_15_27": (15, 15, 27)}

RELUS = ("relu", *COMPOSITIONS)

#: Functions of numbers above 0. The inverse is one of numbers below 0, too.
ABOVE_ZERO = ("inverse", "log", "inverse_sqrt", "sqrt")

#: Functions with f(r x) = r f(x) for r > 0.
HOMOGENEOUS = ("relu", "maximum", "absolute", *COMPOSITIONS)


#: Functions that tell numbers above 0 from those below. No polynomial does that near 0.
DECIDING = ("sign", "step")

#: Functions whose numbers are scaled around 0.
AROUND_ZERO = (*HOMOGENEOUS, *DECIDING)


def undefined(name: str, low: Array | float, high: Array | float) -> bool:
    """Whether a function has no value for some number between these."""
    if name == "inverse":
        return bool(np.any((np.asarray(low) <= 0) & (np.asarray(high) >= 0)))
    if name == "sqrt":
        return bool(np.any(np.asarray(low) < 0))
    return name in ABOVE_ZERO and bool(np.any(np.asarray(low) <= 0))


@dataclass(frozen=True)
class Sampled:
    """A polynomial near a function of which only values are known. max_error is measured, not
    proven."""

    polynomial: ckks.Polynomial
    max_error: float


def sampled(name: str) -> Callable[..., Sampled]:
    """What makes the polynomial of the least degree 2^k - 1 that is near enough to a named
    function."""

    def approximation(interval: tuple[float, float], *, error: float) -> Sampled:
        for degree in _DEGREES:
            found = ckks.Polynomial.approximate(_single(name), degree, interval)
            assert found.measured_error is not None
            if found.measured_error <= error:
                return Sampled(found, found.measured_error)
        raise InvalidArgument(
            f"no polynomial of degree up to {_DEGREES[-1]} is within {error:.2g} of {name} on [{interval[0]:g}, {interval[1]:g}]: "
            "keep its numbers in a smaller interval, or ask for fewer precision_bits"
        )

    return approximation


def _single(name: str) -> Callable[[float], float]:
    return lambda x: float(FUNCTIONS[name](np.array(x)))


#: What makes the approximation on an interval. ReLU and the modulus take the largest modulus
#: instead, see approximate.py.
APPROXIMATED: dict[str, Callable[..., functions.Function | Sampled]] = {
    name: getattr(functions, name, None) or sampled(name)
    for name in FUNCTIONS
    if name not in (*COMPOSITIONS, "maximum")
} | {"maximum": functions.relu}


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
relu_15_15_27 = _named("relu_15_15_27")
sigmoid = _named("sigmoid")
silu = _named("silu")
gelu = _named("gelu")
inverse = _named("inverse")
inverse_sqrt = _named("inverse_sqrt")


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """The polynomial with these coefficients, the constant first, of every number. It is computed
    exactly."""
    traced = getattr(x, "polynomial", None)
    if traced is not None:
        return traced(coefficients)
    return np.polynomial.polynomial.polyval(np.asarray(x, np.float64), np.asarray(coefficients))
