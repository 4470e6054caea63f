"""Operations of ONNX that are layers: matrices, normalisation, softmax and losses. See
jali.compiler.frontends.onnx_values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jali.compiler.frontends import layers
from jali.compiler.frontends.onnx_values import (
    Attrs,
    Operation,
    Value,
    clear,
    given,
    inner,
    numbers,
    optional,
    text,
)
from jali.compiler.frontends.tracing import Traced
from jali.compiler.ir.linear_ops import Dense
from jali.errors import Unsupported

__all__ = ["LAYERS"]


# --- matrices -------------------------------------------------------------------------------------


def _gemm(inputs: Sequence[Value], attrs: Attrs) -> Value:
    a, b, c = inputs[0], inputs[1], given(inputs, 2)
    alpha, beta = attrs.get("alpha", 1.0), attrs.get("beta", 1.0)
    a = a.T if attrs.get("transA") else a
    b = b.T if attrs.get("transB") else b
    if isinstance(b, Traced):
        y = layers.matmul(a if isinstance(a, Traced) else numbers(a, "matrix"), b) * alpha
        return y if c is None else y + _scaled_by(c, beta)
    weight = numbers(b, "weight").T * alpha
    if not isinstance(a, Traced):
        return a @ weight.T + _scaled_by(c, beta)
    per_feature = np.ndim(c) < 2 or np.shape(c)[0] == 1
    if c is None or isinstance(c, Traced) or not per_feature:
        y = a._add("gemm", Dense(weight=weight, bias=None), a)
        return y if c is None else y + _scaled_by(c, beta)
    bias = np.broadcast_to(numbers(c, "bias").ravel() * beta, (len(weight),)).copy()
    return a._add("gemm", Dense(weight=weight, bias=bias), a)


def _scaled_by(c: Value, beta: float) -> Value:
    return c * beta if isinstance(c, Traced) else numbers(c, "bias") * beta


def _matmul(inputs: Sequence[Value], attrs: Attrs) -> Value:
    return layers.matmul(*(x if isinstance(x, Traced) else numbers(x, "matrix") for x in inputs))


def _einsum(inputs: Sequence[Value], attrs: Attrs) -> Value:
    terms, result = _letters(text(attrs["equation"]), [x.ndim for x in inputs])
    found, names = _without_repeats(inputs[0], terms[0])
    for k, (value, letters) in enumerate(zip(inputs[1:], terms[1:], strict=True), 1):
        other, more = _without_repeats(value, letters)
        needed = set(result).union(*terms[k + 1 :])
        found, names = _contracted(found, names, other, more, needed)
    found, names = _summed(found, names, set(result))
    return found.transpose([names.index(n) for n in result]) if found.ndim > 1 else found


def _letters(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The letters of every array and of the result; those of an ellipsis are digits."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    longest = max(
        (r - len(t) + 3 for t, r in zip(terms, ranks, strict=True) if "..." in t), default=0
    )
    digits = "".join(chr(0x100 + k) for k in range(longest))
    full = [
        t.replace("...", digits[longest - (r - len(t) + 3) :]) if "..." in t else t
        for t, r in zip(terms, ranks, strict=True)
    ]
    if not arrow:
        joined = "".join(full)
        right = digits + "".join(
            sorted(c for c in set(joined) - set(digits) if joined.count(c) == 1)
        )
    return full, right.replace("...", digits)


def _without_repeats(x: Value, letters: str) -> tuple[Value, str]:
    """The array with one axis for each letter: a letter that stands twice names a diagonal."""
    x = x if isinstance(x, Traced) else numbers(x, "array")
    names = "".join(dict.fromkeys(letters))
    if len(names) == len(letters):
        return x, names
    places = np.einsum(
        np.arange(x.size).reshape(x.shape),
        [letters.index(c) for c in letters],
        [letters.index(c) for c in names],
    )
    return (layers.moved(x, places) if isinstance(x, Traced) else x.ravel()[places]), names


def _summed(x: Value, names: str, kept: set[str]) -> tuple[Value, str]:
    gone = tuple(k for k, n in enumerate(names) if n not in kept)
    return (x.sum(axis=gone) if gone else x), "".join(n for n in names if n in kept)


def _contracted(a: Value, left: str, b: Value, right: str, needed: set[str]) -> tuple[Value, str]:
    """The product of two arrays along the letters that both have and nothing else needs."""
    a, left = _summed(a, left, needed | set(right))
    b, right = _summed(b, right, needed | set(left))
    both = [n for n in left if n in right and n in needed]
    inner_ = [n for n in left if n in right and n not in needed]
    rows, columns = (
        [n for n in of if n not in other] for of, other in ((left, right), (right, left))
    )
    size = {
        n: k for of, x in ((left, a), (right, b)) for n, k in zip(of, x.shape, strict=True) if k > 1
    }

    def sizes(names: Sequence[str]) -> list[int]:
        return [size.get(n, 1) for n in names]

    for of, x in ((left, a), (right, b)):
        if any(
            n in both + inner_ and k != size.get(n, 1) for n, k in zip(of, x.shape, strict=True)
        ):
            raise Unsupported("axes of one number that meet longer ones: expand them first")
    a = a.transpose([left.index(n) for n in both + rows + inner_]) if left else a
    b = b.transpose([right.index(n) for n in both + inner_ + columns]) if right else b
    a = a.reshape((*sizes(both), math.prod(sizes(rows)), math.prod(sizes(inner_))))
    b = b.reshape((*sizes(both), math.prod(sizes(inner_)), math.prod(sizes(columns))))
    traced = isinstance(a, Traced) or isinstance(b, Traced)
    y = layers.matmul(a, b) if traced else a @ b
    names = "".join(both + rows + columns)
    return y.reshape(tuple(sizes(names))), names


# --- normalisation --------------------------------------------------------------------------------


def _batch_norm(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x = inputs[0]
    scale, shift, mean, variance = (numbers(v, "statistics") for v in inputs[1:5])
    if attrs.get("training_mode"):
        raise Unsupported("batch normalisation in training mode: export the model in eval mode")
    factor = scale / np.sqrt(variance + attrs.get("epsilon", 1e-5))
    axes = (-1, *(1,) * (x.ndim - 2))
    return x._scaled(factor.reshape(axes), (shift - mean * factor).reshape(axes))


def _layer_norm(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, scale, bias = inputs[0], optional(inputs, 1, "scale"), optional(inputs, 2, "bias")
    axes = tuple(range(inner(attrs.get("axis", -1), x.ndim), x.ndim))
    mean = x.mean(axes, keepdims=True)
    distance = x - mean
    spread = (distance * distance).mean(axes, keepdims=True)
    inverse = (spread + attrs.get("epsilon", 1e-5))._function("inverse_sqrt")
    y = distance * inverse
    y = y if scale is None else y * scale
    return [y if bias is None else y + bias, mean, inverse][: attrs["outputs"]]


def _rms_norm(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, scale = inputs[0], optional(inputs, 1, "scale")
    axes = range(inner(attrs.get("axis", -1), x.ndim), x.ndim)
    y = layers.normalised(x, axes, attrs.get("epsilon", 1e-5), centred=False)
    return y if scale is None else y * scale


def _instance_norm(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, scale, bias = inputs[0], optional(inputs, 1, "scale"), optional(inputs, 2, "bias")
    return layers.group_norm(x, x.shape[1], scale, bias, attrs.get("epsilon", 1e-5))


def _group_norm(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, scale, bias = inputs[0], optional(inputs, 1, "scale"), optional(inputs, 2, "bias")
    groups = int(attrs["num_groups"])
    if attrs["opset"] < 21:  # scale and bias of each group
        scale, bias = (np.repeat(v, x.shape[1] // groups) for v in (scale, bias))
    return layers.group_norm(x, groups, scale, bias, attrs.get("epsilon", 1e-5))


def _mean_variance_norm(inputs: Sequence[Value], attrs: Attrs) -> Value:
    return layers.normalised(inputs[0], attrs.get("axes", (0, 2, 3)), 1e-9)


def _lp_norm(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, axis, p = inputs[0], attrs.get("axis", -1), attrs.get("p", 2)
    if p == 1:
        return x * x._function("absolute").sum(axis, keepdims=True)._inverse()
    return x * (x * x).sum(axis, keepdims=True)._function("inverse_sqrt")


# --- softmax and losses ---------------------------------------------------------------------------


def _shape_of(x: Value) -> tuple[int, ...]:
    shape: tuple[int, ...] = x.x.shape if isinstance(x, layers.Masked) else x.shape
    return shape


def _by_rows(function: Any) -> Operation:
    """A function along an axis; before opset 13, along all axes from this one on together."""

    def apply(inputs: Sequence[Value], attrs: Attrs) -> Value:
        x, shape = inputs[0], _shape_of(inputs[0])
        if attrs["opset"] >= 13:
            return function(x, inner(attrs.get("axis", -1), len(shape)))
        first = inner(attrs.get("axis", 1), len(shape)) if len(shape) > 1 else 0
        if first == len(shape) - 1:
            return function(x, first)
        flat = (*shape[:first], math.prod(shape[first:]))
        if isinstance(x, layers.Masked):
            x = layers.Masked(x.x.reshape(flat), x.keep.reshape(flat))
        else:
            x = x.reshape(flat)
        return function(x, first).reshape(shape)

    return apply


def _log_softmax(x: Value, axis: int) -> Traced:
    if isinstance(x, layers.Masked):
        raise Unsupported(layers.MISPLACED)
    logarithm: Traced = x - x._function("exp").sum(axis, keepdims=True)._function("log")
    return logarithm


def _likelihood_loss(inputs: Sequence[Value], attrs: Attrs) -> Value:
    """The negative mean of the numbers that the classes name, each times the weight of its
    class."""
    x, classes = inputs[0], clear(inputs[1], "target").astype(int)
    weights, ignored = optional(inputs, 2, "weight"), attrs.get("ignore_index")
    kept = np.ones(classes.shape) if ignored is None else (classes != ignored).astype(np.float64)
    classes = np.where(kept > 0, classes, 0)
    each = kept if weights is None else weights[classes] * kept
    places = np.moveaxis(np.arange(x.size).reshape(x.shape), 1, -1)
    chosen = layers.moved(x, np.take_along_axis(places, classes[..., None], -1)[..., 0])
    loss = chosen._scaled(-each, 0.0)
    match text(attrs.get("reduction", "mean")):
        case "none":
            return loss
        case "sum":
            return loss.sum()
    if not each.any():
        raise Unsupported("a mean of losses that all have the weight 0: give it other weights")
    return loss.sum() / float(each.sum())


def _cross_entropy(inputs: Sequence[Value], attrs: Attrs) -> Value:
    logarithm = _log_softmax(inputs[0], 1)
    loss = _likelihood_loss([logarithm, *inputs[1:]], attrs)
    return [loss, logarithm][: attrs["outputs"]]


LAYERS: dict[str, Operation] = {
    "BatchNormalization": _batch_norm,
    "Einsum": _einsum,
    "Gemm": _gemm,
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _instance_norm,
    "LayerNormalization": _layer_norm,
    "LogSoftmax": _by_rows(_log_softmax),
    "LpNormalization": _lp_norm,
    "MatMul": _matmul,
    "MeanVarianceNormalization": _mean_variance_norm,
    "NegativeLogLikelihoodLoss": _likelihood_loss,
    "RMSNormalization": _rms_norm,
    "Softmax": _by_rows(layers.softmax),
    "SoftmaxCrossEntropyLoss": _cross_entropy,
}
