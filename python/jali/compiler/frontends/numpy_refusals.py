"""What to write in the place of functions of NumPy, and of methods of its arrays, that are not
compiled.

The sentences are in refusals.toml, and speak of arrays x, a and b.
tests/python/test_nn_replacements.py compiles what they say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jali._core.refusals import tables

__all__ = ["called", "reason", "replacement"]

#: Of a function of single numbers.
_POLYNOMIAL = (
    "write jali.nn.scalar.polynomial(x, c), with c = numpy.polynomial.Polynomial.fit(t, {}(t), 9).convert().coef, which is near it if t are "
    "numbers over the interval in which those of x lie"
)
_OTHER = (
    "write it with those that there are, a linear function of x as a product with its matrix, and a function of single numbers as jali.nn.scalar.polynomial with the "
    "coefficients of a polynomial near it, which numpy.polynomial.Polynomial.fit(t, f(t), 9).convert().coef gives for numbers t over an interval. Or return "
    "the array, and let the client compute the rest from the decrypted results"
)


def replacement(name: str) -> str | None:
    """What to write in the place of a function of this name; None if there is no sentence for
    it."""
    text = tables("jali.nn")["numpy"]["Traced"].get(name)
    return None if text is None else text.replace("{name}", name)


def called(function: Callable[..., Any]) -> str:
    """A function's name with its module, as far as that is known."""
    name = function.__name__
    numpy = "numpy" if getattr(np, name, None) is function else None
    module = getattr(function, "__module__", None) or numpy
    return f"{module}.{name}" if module else name


def reason(function: Callable[..., Any], method: str = "") -> str:
    """What to write in the place of a function, or of a method of a ufunc such as reduce."""
    name = f"{function.__name__}.{method}" if method else function.__name__
    known = replacement(name)
    if known is not None:
        return known
    if isinstance(function, np.ufunc) and function.nin == function.nout == 1 and not method:
        return _POLYNOMIAL.format(called(function))
    return _OTHER
