"""Resize and Upsample of ONNX at fixed sizes: a matrix along every axis that changes. See
jali.compiler.frontends.onnx_values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from jali.compiler.frontends import layers
from jali.compiler.frontends.onnx_values import (
    Attrs,
    Operation,
    Value,
    given,
    inner,
    numbers,
    optional,
    text,
    whole_numbers,
)
from jali.compiler.ir.graph import Array
from jali.errors import InvalidArgument, Unsupported

__all__ = ["RESIZING"]


def _resize(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x = inputs[0]
    axes = [inner(a, x.ndim) for a in attrs.get("axes") or range(x.ndim)]
    before = attrs["opset"] < 11
    roi = None if before else optional(inputs, 1, "region")
    scales = optional(inputs, 1 if before else 2, "scales")
    sizes = None if before or given(inputs, 3) is None else whole_numbers(inputs[3], "sizes")
    found = _found(
        x.shape, axes, scales, sizes, text(attrs.get("keep_aspect_ratio_policy", "stretch"))
    )
    how = {**attrs, "coordinate_transformation_mode": "asymmetric"} if before else attrs
    if before and text(attrs.get("mode", "nearest")) == "nearest":
        how["nearest_mode"] = "floor"
    half = None if roi is None or not roi.size else np.asarray(roi).reshape(2, -1)
    for k, (axis, (size, scale)) in enumerate(zip(axes, found, strict=True)):
        region = (0.0, 1.0) if half is None else (float(half[0, k]), float(half[1, k]))
        matrix, outside = _matrix(x.shape[axis], size, scale, how, region)
        if matrix.shape[0] == matrix.shape[1] and np.array_equal(matrix, np.eye(len(matrix))):
            continue
        x = layers.along(x, axis, matrix)
        if outside.any() and (value := attrs.get("extrapolation_value", 0.0)):
            shape = [1] * x.ndim
            shape[axis] = -1
            x = x + outside.reshape(shape) * value
    return x


def _upsample(inputs: Sequence[Value], attrs: Attrs) -> Value:
    scales = attrs.get("scales")
    scales = numbers(inputs[1], "scales") if scales is None else np.asarray(scales, np.float64)
    return _resize([inputs[0], scales], {**attrs, "opset": 10})


def _found(
    shape: tuple[int, ...],
    axes: Sequence[int],
    scales: Array | None,
    sizes: Sequence[int] | None,
    policy: str,
) -> list[tuple[int, float]]:
    """The size and the scale of each of the axes."""
    if scales is not None and scales.size:
        if len(scales) != len(axes):
            raise InvalidArgument(f"it has {len(scales)} scales for {len(axes)} axes")
        return [
            (math.floor(shape[a] * Fraction(float(s))), float(s))
            for a, s in zip(axes, scales, strict=True)
        ]
    if sizes is None or len(sizes) != len(axes):
        raise InvalidArgument("it takes a scale or a size for each of its axes")
    each = [n / shape[a] for a, n in zip(axes, sizes, strict=True)]
    if policy == "stretch":
        return list(zip(sizes, each, strict=True))
    one = min(each) if policy == "not_larger" else max(each)
    return [(int(np.floor(one * shape[a] + 0.5)), one) for a in axes]


def _matrix(
    n: int, size: int, scale: float, attrs: Attrs, region: tuple[float, float]
) -> tuple[Array, Array]:
    """The matrix (size, n) along one axis, and which numbers lie outside of the array."""
    mode = text(attrs.get("mode", "nearest"))
    places = _places(
        n, size, scale, text(attrs.get("coordinate_transformation_mode", "half_pixel")), region
    )
    cropped = text(attrs.get("coordinate_transformation_mode", "")) == "tf_crop_and_resize"
    outside = ((places < 0) | (places > n - 1)) & cropped
    stretch = min(scale, 1.0) if attrs.get("antialias") else 1.0
    matrix = np.zeros((size, n))
    if mode == "nearest":
        chosen = _nearest(places, text(attrs.get("nearest_mode", "round_prefer_floor")))
        matrix[np.arange(size), np.clip(chosen, 0, n - 1)] = 1.0
    else:
        if mode not in ("linear", "cubic"):
            raise Unsupported(f"the mode {mode}: use nearest, linear or cubic")
        a = attrs.get("cubic_coeff_a", -0.75)
        reach = (1 if mode == "linear" else 2) / stretch
        for i, place in enumerate(places):
            first = int(np.floor(place - reach)) + 1
            near = np.arange(first, int(np.ceil(place + reach)) + 1)
            distance = np.abs(near - place) * stretch
            weights = np.maximum(1 - distance, 0) if mode == "linear" else _cubic(distance, a)
            if attrs.get("exclude_outside"):
                weights = np.where((near >= 0) & (near < n), weights, 0.0)
            weights = weights / weights.sum()
            np.add.at(matrix[i], np.clip(near, 0, n - 1), weights)
    matrix[outside] = 0.0
    return matrix, outside.astype(np.float64)


def _cubic(t: Array, a: float) -> Array:
    """The weights of Keys's kernel (1981) at these distances."""
    inside = ((a + 2) * t - (a + 3)) * t * t + 1
    outside = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, inside, np.where(t < 2, outside, 0.0))


def _places(n: int, size: int, scale: float, how: str, region: tuple[float, float]) -> Array:
    """Where the numbers of the result lie in the array."""
    at, length = np.arange(size, dtype=np.float64), scale * n
    start, end = region
    match how:
        case "half_pixel":
            return (at + 0.5) / scale - 0.5
        case "half_pixel_symmetric":
            return n / 2 * (1 - size / length) + (at + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return (at + 0.5) / scale - 0.5 if length > 1 else 0 * at
        case "align_corners":
            return at * (n - 1) / (length - 1) if length > 1 else 0 * at
        case "asymmetric":
            return at / scale
        case "tf_half_pixel_for_nn":
            return (at + 0.5) / scale
        case "tf_crop_and_resize":
            if size > 1:
                return start * (n - 1) + at * (end - start) * (n - 1) / (size - 1)
            return 0 * at + (start + end) / 2 * (n - 1)
    raise Unsupported(f"the coordinates {how}: use half_pixel, asymmetric or align_corners")


def _nearest(places: Array, how: str) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    rounded: dict[str, Callable[[Array], Array]] = {
        "round_prefer_floor": lambda t: np.ceil(t - 0.5),
        "round_prefer_ceil": lambda t: np.floor(t + 0.5),
        "floor": np.floor,
        "ceil": np.ceil,
    }
    if how not in rounded:
        raise Unsupported(f"the nearest place by {how}: use one of {', '.join(rounded)}")
    return np.asarray(rounded[how](places)).astype(np.int64)


RESIZING: dict[str, Operation] = {"Resize": _resize, "Upsample": _upsample}
