"""What to write in the place of functions of NumPy, and of methods of its arrays, that are not compiled.

The sentences speak of arrays x, a and b. tests/python/test_nn_instead.py compiles what they say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jali.nn.instead import STEP

__all__ = ["INSTEAD", "METHODS", "called", "reason"]

_CLIENT = "return the array, and let the client take it of the decrypted results"
_NUMBER = "its numbers are encrypted real ones: leave it out"
_LINEAR = "it is linear: write M @ x, for a vector x of n numbers, with the matrix M = numpy.transpose([{}(e, ..) for e in numpy.eye(n)])"
_LARGEST = "the server does not see which number is the largest: numpy.{} of slices, such as numpy.{}(x[:n], x[n:]), takes a ReLU for each number, or "
_COMPARISON = "the server does not see the result of a comparison: write {}"
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


def _each(names: str, sentence: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), sentence)


_SORTED = "the server does not see which number is the larger: " + _CLIENT

#: By the names of functions.
INSTEAD = {
    **_each("argmax argmin sort argsort partition argpartition searchsorted median percentile", _SORTED),
    **_each("quantile unique nonzero count_nonzero", _SORTED),
    **_each("max amax maximum.reduce", _LARGEST.format("maximum", "maximum") + _CLIENT),
    **_each("min amin minimum.reduce", _LARGEST.format("minimum", "minimum") + _CLIENT),
    "clip": "write numpy.minimum(numpy.maximum(x, low), high), which takes two ReLUs for each number",
    "sign": _COMPARISON.format("numpy.tanh(k * x), which is the nearer to it, the larger k is"),
    **_each(
        "heaviside greater greater_equal less less_equal equal not_equal isclose",
        _COMPARISON.format("jali.nn.scalar.sigmoid(k * (a - b)), which is the nearer to a > b, the larger k is"),
    ),
    **_each("any all allclose array_equal logical_and logical_or logical_not", _SORTED),
    "where": "write keep * a + (1 - keep) * b, with numbers 0 and 1 in keep",
    **_each("floor ceil rint trunc fix round around mod remainder floor_divide", STEP.format(_CLIENT)),
    "einsum": "write it with @, numpy.transpose and sums: numpy.einsum('ij,kj->ik', a, b) is a @ b.T, and "
    "numpy.einsum('ij,ij->i', a, b) is (a * b).sum(axis=1)",
    "tensordot": "write it with numpy.transpose, numpy.reshape and @: numpy.tensordot(a, b, 1) is a @ b for matrices",
    **_each("inner vdot", "write (a * b).sum(axis=-1) for vectors, and a @ b.T for matrices"),
    "outer": "write numpy.reshape(a, (-1, 1)) * b",
    "norm": "write numpy.square(x).sum(), its square, or (numpy.square(x).sum() + 1e-2) ** 0.5, which stays above 0",
    "var": "write ((x - x.mean()) ** 2).mean()",
    "std": "write (((x - x.mean()) ** 2).mean() + 1e-5) ** 0.5, which stays above 0",
    "average": "write x @ w / w.sum() for weights w",
    **_each("prod multiply.reduce cumprod", "write the products of slices: x[0] * x[1]"),
    **_each("cumsum add.accumulate", "write numpy.tri(n) @ x for a vector x of n numbers"),
    "add.reduce": "write numpy.sum",
    "diff": "write x[1:] - x[:-1]",
    **_each("convolve correlate kron pad trace diag diagonal delete repeat take", _LINEAR),
    **_each("flip flipud fliplr", "write slices, such as x[::-1]"),
    **_each("split array_split hsplit vsplit", "write slices, such as x[:n] and x[n:]"),
    **_each("hstack append vstack column_stack block", "write numpy.concatenate((a, b)), or numpy.stack((a, b))"),
    "tile": "write numpy.reshape(numpy.broadcast_to(x, (k, n)), k * n) for a vector x of n numbers",
    **_each("expand_dims squeeze atleast_1d atleast_2d", "write numpy.reshape"),
    **_each("swapaxes moveaxis rollaxis", "write numpy.transpose"),
    "log2": "write numpy.log(x) / numpy.log(2)",
    "log10": "write numpy.log(x) / numpy.log(10)",
    "log1p": "write numpy.log(x + 1)",
    "expm1": "write numpy.exp(x) - 1",
    "exp2": "write numpy.exp(x * numpy.log(2))",
    "sinh": "write (numpy.exp(x) - numpy.exp(-x)) / 2",
    "cosh": "write (numpy.exp(x) + numpy.exp(-x)) / 2",
    **_each("deg2rad radians", "write x * (numpy.pi / 180)"),
    **_each("rad2deg degrees", "write x * (180 / numpy.pi)"),
    "fabs": "write numpy.abs(x)",
    "float_power": "write x**k",
    "hypot": "write (a**2 + b**2 + 1e-2) ** 0.5, which stays above 0",
    "expit": "write jali.nn.scalar.sigmoid(x)",
    **_each("copy nan_to_num real conjugate astype", _NUMBER),
    **_each("zeros_like ones_like full_like empty_like", "write numpy.zeros(x.shape), or the like: its result does not depend on x"),
}  # fmt: skip

#: Methods and properties of NumPy's arrays that have no meaning here.
METHODS = {
    **{
        name: INSTEAD[name]
        for name in (
            *("max", "min", "argmax", "argmin", "sort", "argsort", "partition", "clip", "any"),
            *("all", "var", "std", "prod", "cumsum", "cumprod", "round", "astype", "copy"),
            *("squeeze", "swapaxes", "diagonal", "trace", "repeat", "take"),
        )
    },
    **_each("dtype item tolist", _NUMBER),
}


def called(function: Callable[..., Any]) -> str:
    """A function's name with its module, as far as that is known."""
    name = function.__name__
    numpy = "numpy" if getattr(np, name, None) is function else None
    module = getattr(function, "__module__", None) or numpy
    return f"{module}.{name}" if module else name


def reason(function: Callable[..., Any], method: str = "") -> str:
    """What to write in the place of a function, or of a method of a ufunc such as reduce."""
    name = f"{function.__name__}.{method}" if method else function.__name__
    if name in INSTEAD:
        return INSTEAD[name].replace("{}", called(function))
    if isinstance(function, np.ufunc) and function.nin == function.nout == 1 and not method:
        return _POLYNOMIAL.format(called(function))
    return _OTHER
