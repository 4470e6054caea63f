"""Operators of PyTorch's exported graphs (aten) that compute: arithmetic, functions, masks, sums
and products.

An operator's arguments have PyTorch's names; ``x`` is the one that it calls ``self`` or ``input``.
Clear tensors come as arrays of NumPy. Nothing here imports PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jali.compiler.frontends import conditions, layers, maxima
from jali.compiler.frontends.client_masks import FAR, is_mask
from jali.compiler.frontends.tracing import Traced
from jali.compiler.ir.linear_ops import Dense
from jali.errors import Unsupported

__all__ = ["COMPUTING", "Operator", "Value", "axes_of", "clear", "operator_in"]

Value = Any  # a traced array, an array in the clear, a number, or a list of these
Operator = Callable[..., Value]

COMPUTING: dict[str, Operator] = {}


def operator_in(table: dict[str, Operator]) -> Callable[..., Callable[[Operator], Operator]]:
    """A decorator that enters a function into a table under PyTorch's names of operators."""

    def named(*names: str) -> Callable[[Operator], Operator]:
        def register(function: Operator) -> Operator:
            table.update(dict.fromkeys(names, function))
            return function

        return register

    return named


_operator = operator_in(COMPUTING)


def clear(value: Value, what: str) -> Any:
    """A value that must not depend on the input."""
    if isinstance(value, Traced):
        raise Unsupported(f"its {what} depends on the input, and has to be a constant")
    return value


# --- arithmetic -----------------------------------------------------------------------------------


def _scaled(value: Value, alpha: float) -> Value:
    return value if alpha == 1 else value * alpha


def _add(x: Value, other: Value, alpha: float = 1) -> Value:
    if isinstance(x, (layers.Mask, layers.Masked)) or isinstance(
        other, (layers.Mask, layers.Masked)
    ):
        return _masked_sum(x, other, alpha)
    other = _scaled(other, alpha)
    for traced, clear in ((x, other), (other, x)):
        if isinstance(traced, Traced) and not isinstance(clear, Traced):
            return layers.masked(traced, np.asarray(clear, np.float64))
    return x + other


def _masked_sum(x: Value, other: Value, alpha: float) -> Value:
    """A sum with a mask of minus infinity, or of what has one."""
    if isinstance(x, layers.Mask) or isinstance(other, layers.Masked):
        x, other = other, x
    if alpha != 1:
        raise Unsupported(layers.MISPLACED)
    if isinstance(x, np.ndarray) and isinstance(other, layers.Mask) and is_mask(x):
        return layers.Mask(conditions.both(other.keep, x == 0))
    if not isinstance(x, (Traced, layers.Masked)):
        raise Unsupported(layers.MISPLACED)
    if isinstance(other, (layers.Masked, Traced)):
        raise Unsupported(layers.MISPLACED)
    given = other if isinstance(other, layers.Mask) else np.asarray(other, np.float64)
    return layers.masked(x, given)


COMPUTING["add"] = _add
COMPUTING["sub"] = lambda x, other, alpha=1: x - _scaled(other, alpha)
COMPUTING["rsub"] = lambda x, other, alpha=1: other - _scaled(x, alpha)
COMPUTING["mul"] = lambda x, other: x * other


@_operator("div", "true_divide")
def _div(x: Value, other: Value, rounding_mode: str | None = None) -> Value:
    if rounding_mode is not None:
        raise Unsupported(f"a division with rounding_mode={rounding_mode!r}: leave the mode out")
    return x / other


@_operator("pow")
def _pow(x: Value, exponent: Value) -> Value:
    if not isinstance(x, Traced) or np.ndim(exponent):
        raise Unsupported("a power whose exponent is an array, or encrypted: use exp")
    power = float(exponent)
    if power < -1 and power.is_integer():
        return (x ** int(-power))._inverse()
    if power == 0:
        return x * 0.0 + 1.0
    return x ** (int(power) if power.is_integer() else power)


@_operator("full_like")
def _full_like(x: Value, fill_value: Value, **_: Any) -> Value:
    """A constant of the shape of x. What else PyTorch passes is its type and where it lies."""
    value = float(clear(fill_value, "value"))
    return x * 0.0 + value if isinstance(x, Traced) else np.full(np.shape(x), value)


COMPUTING["zeros_like"] = lambda x, **_: _full_like(x, 0.0)
COMPUTING["ones_like"] = lambda x, **_: _full_like(x, 1.0)


def _named(name: str) -> Operator:
    return lambda x: x._function(name)


for _torch_name, _name in {
    "relu": "relu",
    "abs": "absolute",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "silu": "silu",
    "mish": "mish",
    "erf": "erf",
    "exp": "exp",
    "log": "log",
    "sqrt": "sqrt",
    "rsqrt": "inverse_sqrt",
}.items():
    COMPUTING[_torch_name] = _named(_name)

COMPUTING["neg"] = lambda x: -x
COMPUTING["square"] = lambda x: x * x
COMPUTING["reciprocal"] = lambda x: x._inverse()
COMPUTING["expm1"] = lambda x: x._function("exp") - 1.0
COMPUTING["log1p"] = lambda x: (x + 1.0)._function("log")
COMPUTING["maximum"] = lambda x, other: np.maximum(x, other)
COMPUTING["minimum"] = lambda x, other: np.minimum(x, other)


@_operator("gelu")
def _gelu(x: Traced, approximate: str = "none") -> Traced:
    return x._function("gelu" if approximate == "none" else "gelu_tanh")


@_operator("softplus")
def _softplus(x: Traced, beta: float = 1, threshold: float = 20) -> Traced:
    return layers.softplus(x, float(beta))  # beyond the threshold PyTorch gives x, 2e-9 less


COMPUTING["log_sigmoid"] = lambda x: -layers.softplus(-x)
COMPUTING["log_sigmoid_forward"] = lambda x: (-layers.softplus(-x), None)
COMPUTING["leaky_relu"] = lambda x, negative_slope=0.01: layers.leaky_relu(x, negative_slope)
COMPUTING["hardtanh"] = lambda x, min_val=-1, max_val=1: layers.clamp(x, min_val, max_val)
COMPUTING["relu6"] = lambda x: layers.clamp(x, 0.0, 6.0)
COMPUTING["clamp"] = lambda x, min=None, max=None: layers.clamp(x, min, max)
COMPUTING["clamp_min"] = lambda x, min: layers.clamp(x, min)
COMPUTING["clamp_max"] = lambda x, max: layers.clamp(x, None, max)
COMPUTING["hardsigmoid"] = layers.hard_sigmoid
COMPUTING["hardswish"] = lambda x: x * layers.hard_sigmoid(x)
COMPUTING["celu"] = lambda x, alpha=1.0: layers.elu(x, alpha, 1.0, 1 / alpha)
COMPUTING["selu"] = lambda x: layers.elu(x, 1.6732632423543772, 1.0507009873554805)


@_operator("elu")
def _elu(x: Traced, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Traced:
    return layers.elu(x, alpha, scale, input_scale)


@_operator("prelu", "_prelu_kernel")
def _prelu(x: Traced, weight: Value) -> Traced:
    slope = np.asarray(weight)
    if slope.ndim == 1 and x.ndim > 1:
        slope = slope.reshape(-1, *(1,) * (x.ndim - 2))
    return layers.leaky_relu(x, slope)


@_operator("glu")
def _glu(x: Traced, dim: int = -1) -> Traced:
    a, b = layers.halves(x, dim)
    return a * b._function("sigmoid")


@_operator("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout")
def _dropout(x: Value, p: float = 0.5, train: bool = False) -> Value:
    if train and p:
        raise Unsupported(
            "dropout in training mode is random: pass training=self.training to it, and call eval() on the module"
        )
    return x


# --- comparisons ----------------------------------------------------------------------------------


COMPUTING["gt"] = lambda x, other: conditions.greater(x, other)
COMPUTING["lt"] = lambda x, other: conditions.greater(other, x)
COMPUTING["ge"] = lambda x, other: conditions.inverted(conditions.greater(other, x))
COMPUTING["le"] = lambda x, other: conditions.inverted(conditions.greater(x, other))
COMPUTING["sign"] = COMPUTING["sgn"] = _named("sign")
for _kind in ("logical", "bitwise"):
    COMPUTING[f"{_kind}_and"] = lambda x, other: conditions.both(x, other)
    COMPUTING[f"{_kind}_or"] = lambda x, other: conditions.either(x, other)
    COMPUTING[f"{_kind}_xor"] = lambda x, other: conditions.exactly_one(x, other)
    COMPUTING[f"{_kind}_not"] = lambda x: conditions.inverted(x)


# --- masks ----------------------------------------------------------------------------------------


@_operator("masked_fill")
def _masked_fill(x: Value, mask: Value, value: Value) -> Value:
    return _where(mask, value, x)


@_operator("where")
def _where(condition: Value, x: Value, other: Value) -> Value:
    if isinstance(condition, np.ndarray):
        if isinstance(x, layers.Masked) or isinstance(other, layers.Masked):
            raise Unsupported(layers.MISPLACED)
        return layers.chosen(condition, x, other)
    for kept, gone, turned in ((x, other, False), (other, x, True)):
        if isinstance(kept, (Traced, layers.Masked)) and _is_far(gone):
            flags = conditions.inverted(condition) if turned else condition
            return layers.masked(kept, layers.Mask(flags))
    if isinstance(x, layers.Masked) or isinstance(other, layers.Masked):
        raise Unsupported(layers.MISPLACED)
    return conditions.chosen(condition, x, other)


def _is_far(value: Value) -> bool:
    """Whether clear numbers are so far below 0 that nothing is left of them in a softmax."""
    traced = isinstance(value, (Traced, layers.Masked))
    return not traced and bool(np.all(np.asarray(value) <= FAR))


# --- sums and products ----------------------------------------------------------------------------


def axes_of(x: Traced, dim: Any) -> tuple[int, ...]:
    """The axes that an argument names, or all."""
    if dim is None or (isinstance(dim, Sequence) and not dim):
        return tuple(range(x.ndim))
    return tuple(dim) if isinstance(dim, Sequence) else (int(dim),)


@_operator("mean")
def _mean(x: Traced, dim: Any = None, keepdim: bool = False) -> Traced:
    return x.mean(axes_of(x, dim), keepdims=keepdim)


@_operator("sum")
def _sum(x: Traced, dim: Any = None, keepdim: bool = False) -> Traced:
    return x.sum(axes_of(x, dim), keepdims=keepdim)


def _extreme(of: Callable[..., Traced]) -> Operator:
    """torch.max and its like: of all numbers, along an axis (with places, which nobody knows), or
    of two arrays."""

    def operator(x: Value, dim: Any = None, keepdim: bool = False, other: Value = None) -> Value:
        if other is not None:
            return maxima.maximum(x, other) if of is maxima.largest else np.minimum(x, other)
        if dim is None:
            return of(x, None)
        return of(x, int(dim), keepdim), None

    return operator


COMPUTING["max"], COMPUTING["min"] = _extreme(maxima.largest), _extreme(maxima.smallest)


@_operator("amax")
def _amax(x: Traced, dim: Any = None, keepdim: bool = False) -> Traced:
    found: Traced = maxima.largest(x, axes_of(x, dim), keepdim)
    return found


@_operator("amin")
def _amin(x: Traced, dim: Any = None, keepdim: bool = False) -> Traced:
    found: Traced = maxima.smallest(x, axes_of(x, dim), keepdim)
    return found


@_operator("var")
def _var(
    x: Traced,
    dim: Any = None,
    unbiased: bool = True,
    correction: float | None = None,
    keepdim: bool = False,
) -> Traced:
    less = float(unbiased) if correction is None else float(correction)
    axes = tuple(a % x.ndim for a in axes_of(x, dim))
    return layers.variance(x, axes, keepdim, less)


@_operator("matmul", "mm", "bmm", "mv", "dot")
def _matmul(
    x: Value = None,
    other: Value = None,
    mat2: Value = None,
    vec: Value = None,
    tensor: Value = None,
) -> Value:
    second = next(v for v in (other, mat2, vec, tensor) if v is not None)
    return layers.matmul(x, second)


@_operator("addmm", "baddbmm", "addmv")
def _addmm(
    x: Value,
    mat1: Value = None,
    mat2: Value = None,
    batch1: Value = None,
    batch2: Value = None,
    mat: Value = None,
    vec: Value = None,
    beta: float = 1,
    alpha: float = 1,
) -> Value:
    a = next(v for v in (mat1, batch1, mat) if v is not None)
    b = next(v for v in (mat2, batch2, vec) if v is not None)
    product = _scaled(layers.matmul(a, b), alpha)
    return product if beta == 0 else _add(product, _scaled(x, beta))


@_operator("linear")
def _linear(x: Value, weight: Value, bias: Value = None) -> Value:
    if not isinstance(x, Traced) or isinstance(weight, Traced):
        turned = weight.T if weight.ndim == 2 else weight
        y = layers.matmul(x, turned)
        return y if bias is None else y + bias
    y = x._add(
        "linear",
        Dense(
            weight=np.atleast_2d(weight),
            bias=None if bias is None or isinstance(bias, Traced) else np.atleast_1d(bias),
        ),
        x,
    )
    if isinstance(bias, Traced):
        y = y + bias
    return y if np.ndim(weight) == 2 else y.reshape(x.shape[:-1])
