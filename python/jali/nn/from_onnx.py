"""ONNX models, read with the package onnx (the extra jali[onnx]). The first axis of every input is the batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jali._core import packages
from jali.errors import InvalidArgument, Unsupported
from jali.nn.graph import Graph, Shape
from jali.nn.tracing import Builder, Traced

__all__ = ["is_onnx", "trace_onnx"]

Value = Any  # a Traced array, or an array in the clear
Attrs = dict[str, Any]


def is_onnx(model: object) -> bool:
    """Whether it is a loaded model, or the path of one."""
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model).endswith(".onnx")
    return type(model).__module__.split(".")[0] == "onnx" and hasattr(model, "graph")


def trace_onnx(model: Any, shapes: Sequence[Shape]) -> Graph:
    """The graph of a model, or of the file at a path, for inputs whose examples have these shapes."""
    try:
        import onnx
        from onnx import helper, numpy_helper
    except ImportError:
        raise Unsupported(
            f"models in ONNX need the package onnx: {packages.install('onnx')}"
        ) from None
    if isinstance(model, (str, os.PathLike)):
        try:
            model = onnx.load(os.fspath(model))
        except Exception as error:  # onnx raises errors of the protobuf library, too
            raise InvalidArgument(f"{os.fspath(model)} is no model in ONNX: {error}") from None
    values: dict[str, Value] = {
        tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer
    }
    builder = Builder()
    given = [port.name for port in model.graph.input if port.name not in values]
    if len(given) != len(shapes):
        raise InvalidArgument(f"the model takes {len(given)} arrays, and {len(shapes)} were given")
    for name, shape in zip(given, shapes, strict=True):
        values[name] = Traced(builder, builder.add(name, "input", [], shape=shape))
    for node in model.graph.node:
        builder.label = node.name or node.output[0]
        attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        inputs = [values[name] if name else None for name in node.input]
        values[node.output[0]] = _computed(builder.label, node.op_type, inputs, attrs, numpy_helper)
    builder.label = None
    outputs = [values[port.name] for port in model.graph.output]
    if not all(isinstance(value, Traced) for value in outputs):
        raise InvalidArgument("an output of the model does not depend on its inputs")
    return builder.graph([value.node for value in outputs])


def _computed(
    name: str, op: str, inputs: Sequence[Value], attrs: Attrs, numpy_helper: Any
) -> Value:
    if op == "Constant":
        tensor = attrs.get("value")
        if tensor is None:
            return np.asarray(next(iter(attrs.values())))
        return numpy_helper.to_array(tensor)
    if op not in _OPS:
        instead = _INSTEAD.get(op, "write this part of the model with operations that there are")
        raise Unsupported(
            f"{name}: {op} cannot be compiled: {instead}. There are {', '.join(sorted(_OPS))}"
        )
    if op not in _CLEAR and not any(isinstance(value, Traced) for value in inputs):
        raise Unsupported(f"{name}: {op} of constants alone: fold the constants when you export")
    try:
        return _OPS[op](inputs, attrs)
    except (Unsupported, InvalidArgument) as error:
        text = str(error)
        raise type(error)(text if text.startswith(name) else f"{name}: {text}") from None


#: Operations that also compute constants from constants.
_CLEAR = ("Add", "Sub", "Mul", "Div", "Cast", "Identity", "Reshape", "Transpose", "Unsqueeze")

_INSTEAD = {
    "MaxPool": "a maximum costs as much as a ReLU for each number under the window; train the model with AveragePool",
    "GlobalMaxPool": "train the model with GlobalAveragePool",
    "LogSoftmax": "end the model before it, and let the client take it of the decrypted logits",
    "ArgMax": "end the model before it, and let the client take it of the decrypted scores",
    "Clip": "use Relu, or an activation without corners",
    "LeakyRelu": "use Relu, or an activation without corners",
    "HardSwish": "use x * Sigmoid(x)",
    "HardSigmoid": "use Sigmoid",
    "LSTM": "recurrent layers are not compiled yet",
    "GRU": "recurrent layers are not compiled yet",
    "RNN": "recurrent layers are not compiled yet",
    "Loop": "loops are not compiled yet",
    "InstanceNormalization": "use BatchNormalization, whose statistics are fixed",
}


def _clear(value: Value, what: str) -> Any:
    if value is None or isinstance(value, Traced):
        raise Unsupported(f"its {what} depends on the input, and has to be a constant")
    return np.asarray(value)


def _aligned(x: Traced, value: Value) -> Value:
    """A constant beside a traced array, without the axis of the batch."""
    if isinstance(value, Traced):
        return value
    array = np.asarray(value, np.float64)
    if array.ndim == x.ndim + 1:
        if array.shape[0] != 1:
            raise Unsupported("a constant that differs between the examples of a batch")
        return array[0]
    return array


def _binary(operation: Callable[[Any, Any], Any]) -> Callable[[Sequence[Value], Attrs], Value]:
    def apply(inputs: Sequence[Value], attrs: Attrs) -> Value:
        a, b = inputs
        if isinstance(a, Traced):
            return operation(a, _aligned(a, b))
        return operation(_aligned(b, a) if isinstance(b, Traced) else a, b)

    return apply


def _function(name: str) -> Callable[[Sequence[Value], Attrs], Value]:
    return lambda inputs, attrs: inputs[0]._function(name)


def _gemm(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, weight = inputs[0], _clear(inputs[1], "weight").astype(np.float64)
    if attrs.get("transA"):
        raise Unsupported("transA exchanges the batch with the features")
    if not attrs.get("transB"):
        weight = weight.T
    bias = None
    if len(inputs) > 2 and inputs[2] is not None:
        full = np.asarray(_clear(inputs[2], "bias"), np.float64).ravel() * attrs.get("beta", 1.0)
        bias = np.broadcast_to(full, (len(weight),)).copy()
    return x._add("gemm", "dense", x, weight=weight * attrs.get("alpha", 1.0), bias=bias)


def _matmul(inputs: Sequence[Value], attrs: Attrs) -> Value:
    a, b = inputs
    if isinstance(a, Traced):
        return a @ b
    if b.ndim == 1:
        raise Unsupported("a constant times a batch of vectors: put the vectors on the left")
    return np.asarray(a, np.float64) @ b


def _padding(attrs: Attrs, size: Shape, kernel: Shape, dilation: Shape, stride: Shape) -> Any:
    auto = attrs.get("auto_pad", b"NOTSET")
    auto = auto.decode() if isinstance(auto, bytes) else auto
    axes = len(kernel)
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        found = []
        for n, k, d, s in zip(size, kernel, dilation, stride, strict=True):
            total = max(0, (-(-n // s) - 1) * s + d * (k - 1) + 1 - n)
            small, large = total // 2, total - total // 2
            found.append((small, large) if auto == "SAME_UPPER" else (large, small))
        return tuple(found)
    pads = attrs.get("pads", [0] * (2 * axes))
    return tuple((int(pads[k]), int(pads[k + axes])) for k in range(axes))


def _sizes(values: Any, axes: int) -> Shape:
    return tuple(int(v) for v in (values or [1] * axes))


def _convolution(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, weight = inputs[0], _clear(inputs[1], "weight").astype(np.float64)
    bias = None
    if len(inputs) > 2 and inputs[2] is not None:
        bias = _clear(inputs[2], "bias").astype(np.float64)
    kernel = weight.shape[2:]
    stride = _sizes(attrs.get("strides"), len(kernel))
    dilation = _sizes(attrs.get("dilations"), len(kernel))
    return x._add(
        "convolution",
        "convolution",
        x,
        weight=weight,
        bias=bias,
        stride=stride,
        dilation=dilation,
        padding=_padding(attrs, x.shape[1:], kernel, dilation, stride),
        groups=int(attrs.get("group", 1)),
    )


def _average_pool(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, kernel = inputs[0], tuple(int(k) for k in attrs["kernel_shape"])
    if attrs.get("ceil_mode") or any(d != 1 for d in attrs.get("dilations", ())):
        raise Unsupported("an average pool with ceil_mode or dilations")
    stride = _sizes(attrs.get("strides"), len(kernel))
    ones = (1,) * len(kernel)
    return x._add(
        "average_pool",
        "average_pool",
        x,
        kernel=kernel,
        stride=stride,
        padding=_padding(attrs, x.shape[1:], kernel, ones, stride),
        count_padding=bool(attrs.get("count_include_pad", 0)),
    )


def _batch_norm(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x = inputs[0]
    scale, shift, mean, variance = (_clear(v, "statistics").astype(np.float64) for v in inputs[1:5])
    if attrs.get("training_mode"):
        raise Unsupported("batch normalisation in training mode: export the model in eval mode")
    factor = scale / np.sqrt(variance + attrs.get("epsilon", 1e-5))
    axes = (-1, *(1,) * (x.ndim - 1))
    return x._scaled(factor.reshape(axes), (shift - mean * factor).reshape(axes))


def _axes(inputs: Sequence[Value], attrs: Attrs, place: int = 1) -> tuple[int, ...] | None:
    """The axes of an operation with the batch as axis 0; None if it names none."""
    if "axes" in attrs:
        return tuple(int(a) for a in attrs["axes"])
    if len(inputs) > place and inputs[place] is not None:
        return tuple(int(a) for a in _clear(inputs[place], "axes").ravel())
    return None


def _inner(axis: int, rank: int) -> int:
    """An axis of a model's array, of which `rank` counts the batch, as one of an example's."""
    axis = axis % rank
    if axis == 0:
        raise Unsupported("it works along the axis of the batch")
    return axis - 1


def _reduced(mean: bool) -> Callable[[Sequence[Value], Attrs], Value]:
    def apply(inputs: Sequence[Value], attrs: Attrs) -> Value:
        x, axes = inputs[0], _axes(inputs, attrs)
        if axes is None:
            raise Unsupported("it works along the axis of the batch")
        inner = tuple(_inner(a, x.ndim + 1) for a in axes)
        return x._summed(inner, bool(attrs.get("keepdims", 1)), mean=mean)

    return apply


def _reshape(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x = inputs[0]
    if not isinstance(x, Traced):
        return np.reshape(x, _clear(inputs[1], "shape").astype(int))
    wanted = [int(n) for n in _clear(inputs[1], "shape").ravel()]
    full = (0, *x.shape)
    inner = [full[k] if n == 0 else n for k, n in enumerate(wanted)][1:]
    if -1 not in inner and int(np.prod(inner, dtype=np.int64)) != x.size:
        raise Unsupported(f"a reshape to {wanted}, which moves numbers between examples")
    return x.reshape(tuple(inner))


def _flatten(inputs: Sequence[Value], attrs: Attrs) -> Value:
    if attrs.get("axis", 1) != 1:
        raise Unsupported("a flatten that does not keep the axis of the batch")
    return inputs[0].reshape(-1)


def _transpose(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x = inputs[0]
    order = [int(a) for a in attrs.get("perm", range(x.ndim + 1)[::-1])]
    if not isinstance(x, Traced):
        return np.transpose(x, order)
    if order[0] != 0:
        raise Unsupported("a transpose that moves the axis of the batch")
    return x.transpose(tuple(a - 1 for a in order[1:]))


def _squeeze(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, axes = inputs[0], _axes(inputs, attrs)
    if axes is None:
        raise Unsupported("a squeeze without axes")
    gone = {_inner(a, x.ndim + 1) for a in axes}
    return x.reshape(tuple(n for a, n in enumerate(x.shape) if a not in gone))


def _unsqueeze(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, axes = inputs[0], _axes(inputs, attrs) or ()
    if not isinstance(x, Traced):
        return np.expand_dims(x, axes)
    shape = list(x.shape)
    for axis in sorted(_inner(a, x.ndim + 1 + len(axes)) for a in axes):
        shape.insert(axis, 1)
    return x.reshape(tuple(shape))


def _concat(inputs: Sequence[Value], attrs: Attrs) -> Value:
    if not all(isinstance(x, Traced) for x in inputs):
        raise Unsupported("a concatenation with constants")
    first: Traced = inputs[0]
    return first._add("concat", "concat", *inputs, axis=_inner(attrs["axis"], first.ndim + 1))


def _slice(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x = inputs[0]
    starts, ends = (_clear(v, "range").ravel() for v in inputs[1:3])
    axes = _axes(inputs, attrs, 3) or tuple(range(len(starts)))
    steps = np.ones(len(starts), int) if len(inputs) < 5 else _clear(inputs[4], "steps").ravel()
    key = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        inner = _inner(axis, x.ndim + 1)
        last = None if end < -(1 << 30) else int(end)
        key[inner] = slice(int(start), last, int(step))
    return x[tuple(key)]


def _pad(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, widths = inputs[0], _clear(inputs[1], "widths").ravel()
    mode = attrs.get("mode", b"constant")
    value = inputs[2] if len(inputs) > 2 else None
    if mode != b"constant" or (value is not None and np.any(_clear(value, "value"))):
        raise Unsupported("padding with anything but zeros")
    half = len(widths) // 2
    pairs = [(int(widths[k]), int(widths[k + half])) for k in range(half)]
    if half != x.ndim + 1 or pairs[0] != (0, 0) or min(map(min, pairs)) < 0:
        raise Unsupported("padding of the batch, or of negative width")
    return x._add("pad", "pad", x, widths=tuple(pairs[1:]))


def _power(inputs: Sequence[Value], attrs: Attrs) -> Value:
    exponent = float(_clear(inputs[1], "exponent").ravel()[0])
    return inputs[0] ** (int(exponent) if exponent.is_integer() else exponent)


def _global_pool(inputs: Sequence[Value], attrs: Attrs) -> Value:
    return inputs[0].mean(tuple(range(1, inputs[0].ndim)), keepdims=True)


def _softmax(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x = inputs[0]
    axis = _inner(attrs.get("axis", -1), x.ndim + 1)
    powers = x._function("exp")
    return powers / powers._summed((axis,), True, mean=False)


def _layer_norm(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x = inputs[0]
    first = _inner(attrs.get("axis", -1), x.ndim + 1)
    axes = tuple(range(first, x.ndim))
    centred = x - x._summed(axes, True, mean=True)
    variance = (centred * centred)._summed(axes, True, mean=True)
    y = centred * (variance + attrs.get("epsilon", 1e-5))._function("inverse_sqrt")
    y = y * _aligned(y, _clear(inputs[1], "scale"))
    return y if len(inputs) < 3 else y + _aligned(y, _clear(inputs[2], "bias"))


def _same(inputs: Sequence[Value], attrs: Attrs) -> Value:
    return inputs[0]


_OPS: dict[str, Callable[[Sequence[Value], Attrs], Value]] = {
    "Abs": _function("absolute"),
    "Add": _binary(lambda a, b: a + b),
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_norm,
    "Cast": _same,
    "Concat": _concat,
    "Conv": _convolution,
    "Div": _binary(lambda a, b: a / b),
    "Dropout": _same,
    "Exp": _function("exp"),
    "Flatten": _flatten,
    "Gelu": _function("gelu"),
    "Gemm": _gemm,
    "GlobalAveragePool": _global_pool,
    "Identity": _same,
    "LayerNormalization": _layer_norm,
    "Log": _function("log"),
    "MatMul": _matmul,
    "Mul": _binary(lambda a, b: a * b),
    "Neg": lambda inputs, attrs: -inputs[0],
    "Pad": _pad,
    "Pow": _power,
    "Reciprocal": _function("inverse"),
    "ReduceMean": _reduced(True),
    "ReduceSum": _reduced(False),
    "Relu": _function("relu"),
    "Reshape": _reshape,
    "Sigmoid": _function("sigmoid"),
    "Slice": _slice,
    "Softmax": _softmax,
    "Sqrt": _function("sqrt"),
    "Squeeze": _squeeze,
    "Sub": _binary(lambda a, b: a - b),
    "Tanh": _function("tanh"),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
