"""Operations of ONNX that are linear in one array, and whose other inputs are constants: what they
do is seen from what ONNX's own evaluator gives for a few arrays in its place.

Most of them move numbers, multiply them by constants and put constants between them: every number
of the result is s x[k] + c. Three arrays tell s, k and c: zeros, the addresses 1, 2, .., and the
addresses with their count added. The others are matrices, of which each number of x tells a column.
Another array tells whether the operation is what was found.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jali.compiler.frontends import layers
from jali.compiler.frontends.onnx_values import Attrs, Operation, Value, is_traced
from jali.compiler.frontends.replacements import LINEAR
from jali.compiler.frontends.tracing import Traced
from jali.compiler.ir.graph import Array
from jali.errors import Unsupported

__all__ = ["LINEAR_OPERATIONS"]

_MOST_NUMBERS = 4096  # of an array whose matrix is found column by column
_MOST_ENTRIES = 1 << 24
_AWAY = 1e-4  # evaluators compute in 32 bits


def _of_one(inputs: Sequence[Value]) -> tuple[int, Traced]:
    places = [k for k, x in enumerate(inputs) if is_traced(x)]
    if len(places) != 1 or not isinstance(inputs[places[0]], Traced):
        raise Unsupported("several of its inputs depend on the model's: let one do so")
    return places[0], inputs[places[0]]


def _evaluated(inputs: Sequence[Value], attrs: Attrs, place: int, x: Array) -> list[Array]:
    kinds = [v.dtype for v in inputs if isinstance(v, np.ndarray) and v.dtype.kind == "f"]
    kind = np.float32 if np.dtype(np.float32) in kinds and len(x.ravel()) < 1 << 10 else np.float64
    arrays = [*inputs[:place], x.astype(kind), *inputs[place + 1 :]]
    return [np.asarray(y, np.float64) for y in attrs["evaluate"](arrays)]


def _checked(found: Array, want: Array) -> None:
    limit = _AWAY * max(1.0, float(np.abs(want).max(initial=0.0)))
    if found.shape != want.shape or not np.all(np.abs(found - want) <= limit):
        raise Unsupported("with these inputs, it is not linear: write it with other operators")


def _moves(inputs: Sequence[Value], attrs: Attrs) -> Value:
    place, x = _of_one(inputs)

    def at(values: Array) -> list[Array]:
        return _evaluated(inputs, attrs, place, values.reshape(x.shape))

    address = np.arange(1.0, x.size + 1)
    trial = np.random.default_rng(0).uniform(-1, 1, x.size)
    seen = zip(*map(at, (0 * address, address, address + x.size, trial)), strict=True)
    return [_move(x, trial, *parts) for parts in seen]


def _move(x: Traced, trial: Array, none: Array, one: Array, two: Array, want: Array) -> Value:
    """An array of numbers s x[k] + c."""
    factor = np.where(np.isfinite(none), two - one, 0.0) / x.size
    moved = factor != 0
    with np.errstate(all="ignore"):
        places = np.where(moved, np.rint((one - none) / factor) - 1, -1.0)
    if np.any((places >= x.size) | (places < -1)):
        raise Unsupported("with these inputs, it does not only move numbers: write it otherwise")
    chosen = np.where(moved, trial[places.astype(int)], 0.0)
    _checked(factor * chosen + none, want)
    if not moved.any():
        return none
    y = layers.moved(x, places)
    return y if np.all(factor == 1) and not none.any() else y._scaled(factor, none)


def _matrix(inputs: Sequence[Value], attrs: Attrs) -> Value:
    place, x = _of_one(inputs)
    if x.size > _MOST_NUMBERS:
        raise Unsupported(
            f"it is compiled for {_MOST_NUMBERS} numbers at most, and its input has {x.size}: "
            + LINEAR.format("Reshape(MatMul(Flatten(x), M), shape)")
        )

    def at(values: Array) -> Array:
        return _evaluated(inputs, attrs, place, values.reshape(x.shape))[0]

    none = at(np.zeros(x.size))
    if none.size * x.size > _MOST_ENTRIES:
        raise Unsupported(
            f"its matrix has {none.size} x {x.size} entries, which are too many: make it smaller"
        )
    columns = [(at(unit) - none).ravel() for unit in np.eye(x.size)]
    matrix = np.stack(columns, 1)
    trial = np.random.default_rng(0).uniform(-1, 1, x.size)
    _checked((matrix @ trial).reshape(none.shape) + none, at(trial))
    y = x.reshape(-1) @ matrix.T
    y = y.reshape(none.shape)
    return y + none if none.any() else y


def _averages_alone(inputs: Sequence[Value], attrs: Attrs) -> Value:
    if attrs.get("mode", b"avg") != b"avg":
        raise Unsupported(
            "the largest numbers of regions: use mode=avg, or end the model before it"
        )
    return _matrix(inputs, attrs)


LINEAR_OPERATIONS: dict[str, Operation] = {
    **dict.fromkeys(
        (
            *("ArrayFeatureExtractor", "CenterCropPad", "Compress", "GatherElements", "GatherND"),
            *("MaxUnpool", "ReverseSequence", "Scatter", "ScatterElements", "ScatterND"),
            *("TensorScatter", "Tile", "Trilu"),
        ),
        _moves,
    ),
    **dict.fromkeys(("AffineGrid", "Col2Im", "DFT", "DeformConv", "GridSample", "STFT"), _matrix),
    "RoiAlign": _averages_alone,
}
