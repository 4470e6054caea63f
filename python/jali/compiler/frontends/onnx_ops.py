"""Operations of ONNX that compute number by number, sums, and what the other tables of operations
share.

An operation takes the values of its inputs and its attributes; of those, ``opset`` is the version
of the model's operations, and ``outputs`` how many results it has. Traced arrays have no axis for
the batch, which is axis 0 in the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jali._core.console import counted_text
from jali.compiler.frontends import layers
from jali.compiler.frontends.replacements import CLIENT, COMPARISON, LINEAR, SINGLE, STEP, WINDOW
from jali.compiler.frontends.tracing import Traced
from jali.errors import Unsupported

__all__ = [
    "ALONG_BATCH",
    "COMPUTING",
    "DIFFERING",
    "INSTEAD",
    "Attrs",
    "Operation",
    "Value",
    "aligned",
    "axes_of",
    "clear",
    "inner",
]

Value = Any  # a traced array, an array in the clear, or None for an input that is left out
Attrs = dict[str, Any]
Operation = Callable[[Sequence[Value], Attrs], Value]

_LINEAR = LINEAR.format("Reshape(MatMul(Flatten(x), M), shape)")
_QUANTISED = (
    "a program computes with real numbers: export the model as it was before it was quantised"
)
INSTEAD = {
    "MaxPool": WINDOW.format("AveragePool"),
    "GlobalMaxPool": WINDOW.format("GlobalAveragePool"),
    "ReduceMax": SINGLE.format("maximum", "ReduceMean"),
    "ReduceMin": SINGLE.format("minimum", "ReduceMean"),
    **dict.fromkeys(("LogSoftmax", "ArgMax", "ArgMin", "TopK", "Hardmax", "Unique"), CLIENT),
    **dict.fromkeys(("Round", "Floor", "Ceil", "Mod"), STEP.format("leave it out")),
    "Sign": STEP.format("use Tanh"),
    "Einsum": "write it with Transpose, MatMul, Mul and ReduceSum",
    **dict.fromkeys(
        ("Resize", "Upsample", "Trilu", "Col2Im", "GatherND", "GatherElements"), _LINEAR
    ),
    "Tile": "write Concat([x, x], axis), which copies an array along an axis; " + _LINEAR,
    "CumSum": "write MatMul(x, T) along the last axis, with a matrix T that has ones on and above its diagonal and zeros below; "
    + _LINEAR,
    "SpaceToDepth": "write Reshape, Transpose and Reshape: (n, c, h, b, w, b) from (n, c, h b, w b), then the order 0, 3, 5, 1, 2, 4, "
    "then (n, c b b, h, w); " + _LINEAR,
    **dict.fromkeys(
        (
            "QuantizeLinear",
            "DequantizeLinear",
            "DynamicQuantizeLinear",
            "QLinearConv",
            "QLinearMatMul",
        ),
        _QUANTISED,
    ),
    "Loop": "write it as a recurrent layer, or as a function of arrays with jali.nn.loop",
    "If": "the server does not see which branch is taken: compute both, and mix them by arithmetic",
    **dict.fromkeys(("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"), COMPARISON),
}
#: Of what would mix the examples of a batch, or tell them apart.
ALONG_BATCH = "it works along the axis of the batch, and a program computes every example alone: let it work along another axis"
DIFFERING = "a constant that differs between the examples of a batch: make it an input of the model"
_FLOATS = (1, 10, 11, 16)  # TensorProto's numbers of the types of real numbers


def clear(value: Value, what: str) -> Any:
    """A value that must be a constant."""
    if value is None or isinstance(value, Traced):
        raise Unsupported(f"its {what} depends on the input, and has to be a constant")
    return np.asarray(value)


def aligned(x: Traced, value: Value) -> Value:
    """What stands beside a traced array in an operation that broadcasts, without the axis of the
    batch."""
    if isinstance(value, Traced):
        if value.ndim != x.ndim:
            raise Unsupported(
                f"it joins arrays of {x.ndim + 1} and of {counted_text(value.ndim + 1, 'axis', 'axes')}, which pairs the batch with another axis: reshape one"
            )
        return value
    array = np.asarray(value, np.float64)
    if array.ndim > x.ndim:
        if array.ndim > x.ndim + 1 or array.shape[0] != 1:
            raise Unsupported(DIFFERING)
        return array[0]
    return array


def inner(axis: int, rank: int) -> int:
    """An axis of a model's array, of which `rank` counts the batch, as one of an example's."""
    axis = axis % rank
    if axis == 0:
        raise Unsupported(ALONG_BATCH)
    return axis - 1


def axes_of(inputs: Sequence[Value], attrs: Attrs, place: int = 1) -> tuple[int, ...] | None:
    """The axes of an operation with the batch as axis 0; None if it names none."""
    if "axes" in attrs:
        return tuple(int(a) for a in attrs["axes"])
    if len(inputs) > place and inputs[place] is not None:
        return tuple(int(a) for a in clear(inputs[place], "axes").ravel())
    return None


# --- arithmetic
# -------------------------------------------------------------------------------------


def _binary(operation: Callable[[Any, Any], Any]) -> Operation:
    def apply(inputs: Sequence[Value], attrs: Attrs) -> Value:
        a, b = inputs
        if isinstance(a, Traced):
            return operation(a, aligned(a, b))
        return operation(aligned(b, a), b)

    return apply


def _several(operation: Callable[[Any, Any], Any]) -> Operation:
    def apply(inputs: Sequence[Value], attrs: Attrs) -> Value:
        found, two = inputs[0], _binary(operation)
        for value in inputs[1:]:
            clear_both = not isinstance(found, Traced) and not isinstance(value, Traced)
            found = operation(found, value) if clear_both else two([found, value], attrs)
        return found

    return apply


def _add(a: Value, b: Value) -> Value:
    for traced, other in ((a, b), (b, a)):
        if isinstance(other, np.ndarray):
            return layers.masked(traced, other)
    return a + b


def _function(name: str) -> Operation:
    return lambda inputs, attrs: inputs[0]._function(name)


def _of_one(function: Callable[[Traced], Value]) -> Operation:
    return lambda inputs, attrs: function(inputs[0])


def _power(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, exponents = inputs[0], np.unique(clear(inputs[1], "exponent"))
    if len(exponents) != 1:
        raise Unsupported("powers of several exponents: take the parts of the array apart")
    exponent = float(exponents[0])
    if exponent < -1 and exponent.is_integer():
        return (x ** int(-exponent))._inverse()
    return x ** (int(exponent) if exponent.is_integer() else exponent)


def _cast(inputs: Sequence[Value], attrs: Attrs) -> Value:
    if attrs["to"] not in _FLOATS:
        raise Unsupported(
            "a conversion to whole numbers or conditions: programs compute with real numbers, leave it out"
        )
    return inputs[0]


def _clip(inputs: Sequence[Value], attrs: Attrs) -> Value:
    ends = [attrs.get("min"), attrs.get("max")]
    for k, value in enumerate(inputs[1:]):
        if value is not None:
            ends[k] = float(clear(value, "range").ravel()[0])
    low, high = (None if v is None or abs(v) > 1e30 else v for v in ends)
    return inputs[0] if low is None and high is None else layers.clamp(inputs[0], low, high)


def _slopes(inputs: Sequence[Value], attrs: Attrs) -> Value:
    return layers.leaky_relu(inputs[0], aligned(inputs[0], clear(inputs[1], "slope")))


def _gelu(inputs: Sequence[Value], attrs: Attrs) -> Value:
    tanh = attrs.get("approximate", b"none") in (b"tanh", "tanh")
    return inputs[0]._function("gelu_tanh" if tanh else "gelu")


def _where(inputs: Sequence[Value], attrs: Attrs) -> Value:
    condition, a, b = inputs
    if isinstance(condition, Traced):
        raise Unsupported(
            "a choice by an encrypted condition: compute both, and mix them by arithmetic"
        )
    like = a if isinstance(a, Traced) else b
    return layers.chosen(aligned(like, condition), *(aligned(like, x) for x in (a, b)))


def _dropout(inputs: Sequence[Value], attrs: Attrs) -> Value:
    if len(inputs) > 2 and inputs[2] is not None and np.any(clear(inputs[2], "mode")):
        raise Unsupported("dropout in training mode is random: export the model in eval mode")
    return [inputs[0]]


def _reduced(mean: bool, inside: str = "", outside: str = "") -> Operation:
    def apply(inputs: Sequence[Value], attrs: Attrs) -> Value:
        x, axes = inputs[0], axes_of(inputs, attrs)
        if axes is None:
            raise Unsupported(ALONG_BATCH)
        x = x * x if inside == "square" else x._function(inside) if inside else x
        along = tuple(inner(a, x.ndim + 1) for a in axes)
        y = x._summed(along, bool(attrs.get("keepdims", 1)), mean=mean)
        return y._function(outside) if outside else y

    return apply


COMPUTING: dict[str, Operation] = {
    "Abs": _function("absolute"),
    "Add": _binary(_add),
    "Cast": _cast,
    "Celu": lambda i, a: layers.elu(i[0], a.get("alpha", 1.0), 1.0, 1 / a.get("alpha", 1.0)),
    "Clip": _clip,
    "Div": _binary(lambda a, b: a / b),
    "Dropout": _dropout,
    "Elu": lambda i, a: layers.elu(i[0], a.get("alpha", 1.0)),
    "Erf": _function("erf"),
    "Exp": _function("exp"),
    "Gelu": _gelu,
    "HardSigmoid": lambda i, a: layers.hard_sigmoid(i[0], a.get("alpha", 0.2), a.get("beta", 0.5)),
    "HardSwish": _of_one(lambda x: x * layers.hard_sigmoid(x)),
    "Identity": _of_one(lambda x: x),
    "LeakyRelu": lambda i, a: layers.leaky_relu(i[0], a.get("alpha", 0.01)),
    "Log": _function("log"),
    "Max": _several(lambda a, b: np.maximum(a, b)),
    "Mean": lambda i, a: _several(lambda x, y: x + y)(i, a) / len(i),
    "Min": _several(lambda a, b: np.minimum(a, b)),
    "Mish": _function("mish"),
    "Mul": _binary(lambda a, b: a * b),
    "Neg": _of_one(lambda x: -x),
    "PRelu": _slopes,
    "Pow": _power,
    "Reciprocal": _of_one(lambda x: x._inverse()),
    "ReduceL2": _reduced(False, "square", "sqrt"),
    "ReduceMean": _reduced(True),
    "ReduceSum": _reduced(False),
    "ReduceSumSquare": _reduced(False, "square"),
    "Relu": _function("relu"),
    "Selu": lambda i, a: layers.elu(
        i[0], a.get("alpha", 1.67326319217681884765625), a.get("gamma", 1.05070102214813232421875)
    ),
    "Sigmoid": _function("sigmoid"),
    "Softplus": _function("softplus"),
    "Sqrt": _function("sqrt"),
    "Sub": _binary(lambda a, b: a - b),
    "Sum": _several(lambda a, b: a + b),
    "Swish": lambda i, a: i[0] * (i[0] * a.get("alpha", 1.0))._function("sigmoid"),
    "Tanh": _function("tanh"),
    "Where": _where,
}
