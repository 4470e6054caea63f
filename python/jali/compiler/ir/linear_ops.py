"""The linear operations of traced graphs, without those that slide a window
(jali.compiler.ir.windows): sums and moves of numbers, and products with numbers in the clear.

Values carry the batch as their first axis. Shapes and arguments do not know it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jali._core.console import counted_text
from jali.compiler.ir.arrays import Array, Shape
from jali.compiler.ir.operation import Linear
from jali.compiler.ir.shared_map import SHARED, SharedMap
from jali.compiler.ir.sparse import SparseMap
from jali.errors import InvalidArgument

__all__ = [
    "Broadcast",
    "Combine",
    "Concat",
    "Dense",
    "Move",
    "Pad",
    "Reshape",
    "Scale",
    "Slice",
    "Sum",
    "Take",
    "Transpose",
]


@dataclass(frozen=True, eq=False)
class Dense(Linear):
    """weight x + bias on the last axis.

    weight: (m, n).
    bias: (m,) or None.
    """

    name = "dense"
    weight: Array
    bias: Array | None

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        (shape,), (m, n) = shapes, self.weight.shape
        if not shape or shape[-1] != n:
            raise InvalidArgument(
                f"its matrix has {counted_text(n, 'column')}, and its input the shape {shape}"
            )
        if self.bias is not None and self.bias.shape != (m,):
            raise InvalidArgument(
                f"its matrix has {counted_text(m, 'row')}, and its bias {self.bias.shape}"
            )
        return (*shape[:-1], m)

    def compute(self, values: Sequence[Array]) -> Array:
        # One product of matrices: NumPy calls BLAS once for each matrix of a larger array, or not
        # at all if axes were exchanged.
        (x,), (m, n) = values, self.weight.shape
        y = (x.reshape(-1, n) @ self.weight.T).reshape(*x.shape[:-1], m)
        return np.asarray(y if self.bias is None else y + self.bias)

    def maps(self, shapes: Sequence[Shape]) -> list[SparseMap]:
        weight = SparseMap.dense(self.weight)
        (m, n), outer = weight.shape, math.prod(shapes[0][:-1])
        if outer == 1:
            return [weight]
        if outer * weight.count > SHARED:
            return [SharedMap.along_axis(self.weight, outer)]
        block = np.arange(outer)[:, None]
        rows, cols = (block * m + weight.rows).ravel(), (block * n + weight.cols).ravel()
        return [SparseMap(rows, cols, np.tile(weight.values, outer), (outer * m, outer * n))]

    def entries(self, shapes: Sequence[Shape]) -> int:
        return math.prod(shapes[0]) * len(self.weight)

    def constant(self, shapes: Sequence[Shape]) -> Array:
        zero = super().constant(shapes)
        return zero if self.bias is None else np.resize(self.bias, zero.shape)


@dataclass(frozen=True, eq=False)
class Scale(Linear):
    """factor x + offset, with NumPy's broadcasting onto the shape of x."""

    name = "scale"
    factor: Array
    offset: Array

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        for name, numbers in (("factor", self.factor), ("offset", self.offset)):
            shape = numbers.shape
            fits = len(shape) <= len(shapes[0]) and all(
                m in (1, n) for m, n in zip(shape[::-1], shapes[0][::-1], strict=False)
            )
            if not fits:
                raise InvalidArgument(
                    f"its {name} has the shape {shape}, and its input {shapes[0]}"
                )
        return shapes[0]

    def compute(self, values: Sequence[Array]) -> Array:
        return np.asarray(values[0] * self.factor + self.offset)

    def maps(self, shapes: Sequence[Shape]) -> list[SparseMap]:
        factor = np.broadcast_to(self.factor, shapes[0]).ravel()
        index = np.arange(len(factor))
        return [SparseMap.of(index, index, factor, (len(factor), len(factor)))]

    def constant(self, shapes: Sequence[Shape]) -> Array:
        return np.broadcast_to(self.offset, shapes[0]).ravel().astype(np.float64)


@dataclass(frozen=True, eq=False)
class Combine(Linear):
    """The sum of arrays of one shape, each times its number.

    weights: (count,).
    """

    name = "combine"
    arity = None
    weights: tuple[float, ...]

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        if len(set(shapes)) != 1 or len(self.weights) != len(shapes):
            raise InvalidArgument(
                f"it adds arrays of the shapes {list(shapes)}: they must be equal"
            )
        return shapes[0]

    def compute(self, values: Sequence[Array]) -> Array:
        parts = (float(w) * x for w, x in zip(self.weights, values, strict=True))
        return np.asarray(sum(parts))

    def maps(self, shapes: Sequence[Shape]) -> list[SparseMap]:
        one = SparseMap.identity(math.prod(shapes[0]))
        return [one.scaled(float(w)) for w in self.weights]


@dataclass(frozen=True, eq=False)
class Move(Linear):
    """An operation that only moves numbers, drops them, repeats them, or puts zeros."""

    def moved(self, values: Sequence[Array]) -> Array:
        """The result for arrays with a batch axis."""
        raise NotImplementedError

    def compute(self, values: Sequence[Array]) -> Array:
        return self.moved(values)

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        try:  # arrays of one number that is repeated take no memory, and moves of them are views
            return self.moved([np.broadcast_to(0.0, (1, *s)) for s in shapes]).shape[1:]
        except (ValueError, IndexError) as error:
            raise InvalidArgument(f"its input has the shape {shapes[0]}: {error}") from None

    def maps(self, shapes: Sequence[Shape]) -> list[SparseMap]:
        # Number k of array a is written as its address + 1, and zeros of the result come from
        # nowhere.
        sizes = [math.prod(s) for s in shapes]
        starts = np.cumsum([1, *sizes])
        places = [
            np.arange(start, start + size, dtype=np.float64).reshape(1, *s)
            for start, size, s in zip(starts, sizes, shapes, strict=False)
        ]
        source = self.moved(places).ravel().astype(np.int64)
        found = []
        for start, size in zip(starts, sizes, strict=False):
            mine = (source >= start) & (source < start + size)
            found.append(SparseMap.gather(np.where(mine, source - start, -1), size))
        return found


@dataclass(frozen=True, eq=False)
class Reshape(Move):
    """The numbers in C order in another shape."""

    name = "reshape"
    shape: Shape

    def moved(self, values: Sequence[Array]) -> Array:
        return values[0].reshape(len(values[0]), *self.shape)


@dataclass(frozen=True, eq=False)
class Transpose(Move):
    """The axes in the order of ``axes``."""

    name = "transpose"
    axes: tuple[int, ...]

    def moved(self, values: Sequence[Array]) -> Array:
        return values[0].transpose(0, *(a + 1 for a in self.axes))


@dataclass(frozen=True, eq=False)
class Slice(Move):
    """Elements start, start + step .. before stop, of every axis: one number of each for each
    axis."""

    name = "slice"
    start: tuple[int | None, ...]
    stop: tuple[int | None, ...]
    step: tuple[int | None, ...]

    def moved(self, values: Sequence[Array]) -> Array:
        parts = zip(self.start, self.stop, self.step, strict=True)
        return values[0][(slice(None), *(slice(*part) for part in parts))]


@dataclass(frozen=True, eq=False)
class Concat(Move):
    """Arrays one after the other along an axis."""

    name = "concat"
    arity = None
    axis: int

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        axis = self.axis
        others = {(*s[:axis], *s[axis + 1 :]) for s in shapes}
        if not 0 <= axis < min(map(len, shapes)) or len({*map(len, shapes)}) > 1 or len(others) > 1:
            raise InvalidArgument(f"it joins arrays of the shapes {list(shapes)} along axis {axis}")
        first = shapes[0]
        return (*first[:axis], sum(s[axis] for s in shapes), *first[axis + 1 :])

    def moved(self, values: Sequence[Array]) -> Array:
        return np.concatenate(values, self.axis + 1)


@dataclass(frozen=True, eq=False)
class Broadcast(Move):
    """The array repeated to a shape, by NumPy's rules."""

    name = "broadcast"
    shape: Shape

    def moved(self, values: Sequence[Array]) -> Array:
        x, shape = values[0], tuple(self.shape)
        x = x.reshape(len(x), *(1,) * (len(shape) - x.ndim + 1), *x.shape[1:])
        return np.broadcast_to(x, (len(x), *shape))


@dataclass(frozen=True, eq=False)
class Pad(Move):
    """Zeros around the array.

    widths: (before, after) of every axis.
    """

    name = "pad"
    widths: tuple[tuple[int, int], ...]

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        (shape,), widths = shapes, self.widths
        if len(widths) != len(shape) or any(n < 0 for pair in widths for n in pair):
            raise InvalidArgument(f"its input has the shape {shape}, and its widths are {widths}")
        return tuple(n + before + after for n, (before, after) in zip(shape, widths, strict=True))

    def moved(self, values: Sequence[Array]) -> Array:
        return np.pad(values[0], ((0, 0), *self.widths))


@dataclass(frozen=True, eq=False)
class Take(Move):
    """The numbers at some places of the flattened array.

    places: whole numbers in the shape of the result; -1 stands for a zero.
    """

    name = "take"
    places: Array

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        size, places = math.prod(shapes[0]), self.places
        if np.any(places != np.rint(places)) or np.any((places < -1) | (places >= size)):
            raise InvalidArgument(f"its places are whole numbers from -1 to {size - 1}")
        return places.shape

    def moved(self, values: Sequence[Array]) -> Array:
        places = self.places.astype(np.int64)
        flat = values[0].reshape(len(values[0]), -1)
        return np.asarray(np.where(places < 0, 0.0, flat[:, places]))


@dataclass(frozen=True, eq=False)
class Sum(Linear):
    """The sum along axes, times a factor; keepdims as in NumPy."""

    name = "sum"
    axes: tuple[int, ...]
    factor: float
    keepdims: bool

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        axes = self.axes
        if any(not 0 <= a < len(shapes[0]) for a in axes) or len(set(axes)) != len(axes):
            raise InvalidArgument(f"it sums along the axes {axes} of an array of {shapes[0]}")
        kept = [1 if a in axes else n for a, n in enumerate(shapes[0])]
        return tuple(n for a, n in enumerate(kept) if self.keepdims or a not in axes)

    def compute(self, values: Sequence[Array]) -> Array:
        axes = tuple(a + 1 for a in self.axes)
        return np.asarray(values[0].sum(axis=axes, keepdims=self.keepdims) * self.factor)

    def maps(self, shapes: Sequence[Shape]) -> list[SparseMap]:
        kept = tuple(1 if a in self.axes else n for a, n in enumerate(shapes[0]))
        m, n = (math.prod(s) for s in (kept, shapes[0]))
        rows = np.broadcast_to(np.arange(m).reshape(kept), shapes[0]).ravel()
        return [SparseMap.of(rows, np.arange(n), np.full(n, float(self.factor)), (m, n))]

    def entries(self, shapes: Sequence[Shape]) -> int:
        return math.prod(shapes[0])
