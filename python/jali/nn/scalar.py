"""The functions of single numbers that models contain: what they are in the clear, and which
approximation replaces them.

``relu(x)`` and its like take NumPy arrays, and the arrays of a function that is being traced.
"""

from __future__ import annotations

from jali.compiler.ir.scalar import (
    ABOVE_ZERO,
    APPROXIMATED,
    COMPOSITIONS,
    FUNCTIONS,
    HOMOGENEOUS,
    gelu,
    inverse,
    inverse_sqrt,
    polynomial,
    relu,
    relu_15_15_27,
    sigmoid,
    silu,
    undefined,
)

__all__ = [
    "ABOVE_ZERO",
    "APPROXIMATED",
    "COMPOSITIONS",
    "FUNCTIONS",
    "HOMOGENEOUS",
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
