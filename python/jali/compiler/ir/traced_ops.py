"""The operations of traced graphs: the shape of the result, its value in the clear and, for linear
ones, the matrices.

Values carry the batch as their first axis. Shapes and attributes do not know it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from jali._core.console import counted_text
from jali.compiler.ir import windows
from jali.compiler.ir.graph import Array, Graph, Node, Shape
from jali.compiler.ir.loop_graph import ByStep, Loop
from jali.compiler.ir.operation import Attrs, Linear, Op
from jali.compiler.ir.products import Matmul
from jali.compiler.ir.scalar import FUNCTIONS
from jali.compiler.ir.sparse import SparseMap
from jali.errors import InvalidArgument

__all__ = ["OPS", "Attrs", "Linear", "Op", "entries", "verify"]


class Dense(Linear):
    """weight x + bias on the last axis. weight (m, n), bias (m,) or None."""

    def shape(self, shapes: Sequence[Shape], attrs: Attrs) -> Shape:
        (shape,), (m, n) = shapes, attrs["weight"].shape
        if not shape or shape[-1] != n:
            raise InvalidArgument(
                f"its matrix has {counted_text(n, 'column')}, and its input the shape {shape}"
            )
        if attrs["bias"] is not None and attrs["bias"].shape != (m,):
            raise InvalidArgument(
                f"its matrix has {counted_text(m, 'row')}, and its bias {attrs['bias'].shape}"
            )
        return (*shape[:-1], m)

    def compute(self, values: Sequence[Array], attrs: Attrs) -> Array:
        # One product of matrices: NumPy calls BLAS once for each matrix of a larger array, or not
        # at all if axes were exchanged.
        (x,), (m, n) = values, attrs["weight"].shape
        y = (x.reshape(-1, n) @ attrs["weight"].T).reshape(*x.shape[:-1], m)
        return np.asarray(y if attrs["bias"] is None else y + attrs["bias"])

    def maps(self, shapes: Sequence[Shape], attrs: Attrs) -> list[SparseMap]:
        weight = SparseMap.dense(attrs["weight"])
        (m, n), outer = weight.shape, int(np.prod(shapes[0][:-1], dtype=np.int64))
        if outer == 1:
            return [weight]
        block = np.arange(outer)[:, None]
        rows, cols = (block * m + weight.rows).ravel(), (block * n + weight.cols).ravel()
        return [SparseMap(rows, cols, np.tile(weight.values, outer), (outer * m, outer * n))]

    def entries(self, shapes: Sequence[Shape], attrs: Attrs) -> int:
        return math.prod(shapes[0]) * len(attrs["weight"])

    def bias(self, shapes: Sequence[Shape], attrs: Attrs) -> Array:
        zero = super().bias(shapes, attrs)
        return zero if attrs["bias"] is None else np.resize(attrs["bias"], zero.shape)


class Scale(Linear):
    """factor x + offset, with NumPy's broadcasting onto the shape of x."""

    def shape(self, shapes: Sequence[Shape], attrs: Attrs) -> Shape:
        for name in ("factor", "offset"):
            shape = attrs[name].shape
            fits = len(shape) <= len(shapes[0]) and all(
                m in (1, n) for m, n in zip(shape[::-1], shapes[0][::-1], strict=False)
            )
            if not fits:
                raise InvalidArgument(
                    f"its {name} has the shape {shape}, and its input {shapes[0]}"
                )
        return shapes[0]

    def compute(self, values: Sequence[Array], attrs: Attrs) -> Array:
        return np.asarray(values[0] * attrs["factor"] + attrs["offset"])

    def maps(self, shapes: Sequence[Shape], attrs: Attrs) -> list[SparseMap]:
        factor = np.broadcast_to(attrs["factor"], shapes[0]).ravel()
        index = np.arange(len(factor))
        return [SparseMap.of(index, index, factor, (len(factor), len(factor)))]

    def bias(self, shapes: Sequence[Shape], attrs: Attrs) -> Array:
        return np.broadcast_to(attrs["offset"], shapes[0]).ravel().astype(np.float64)


class Combine(Linear):
    """The sum of arrays of one shape, each times its number: weights (count,)."""

    count = None

    def shape(self, shapes: Sequence[Shape], attrs: Attrs) -> Shape:
        if len(set(shapes)) != 1 or len(attrs["weights"]) != len(shapes):
            raise InvalidArgument(
                f"it adds arrays of the shapes {list(shapes)}: they must be equal"
            )
        return shapes[0]

    def compute(self, values: Sequence[Array], attrs: Attrs) -> Array:
        parts = (float(w) * x for w, x in zip(attrs["weights"], values, strict=True))
        return np.asarray(sum(parts))

    def maps(self, shapes: Sequence[Shape], attrs: Attrs) -> list[SparseMap]:
        one = SparseMap.identity(int(np.prod(shapes[0], dtype=np.int64)))
        return [one.scaled(float(w)) for w in attrs["weights"]]


class Move(Linear):
    """An operation that only moves numbers, drops them, repeats them, or puts zeros."""

    def moved(self, values: Sequence[Array], attrs: Attrs) -> Array:
        """The result for arrays with a batch axis."""
        raise NotImplementedError

    def compute(self, values: Sequence[Array], attrs: Attrs) -> Array:
        return self.moved(values, attrs)

    def shape(self, shapes: Sequence[Shape], attrs: Attrs) -> Shape:
        try:  # arrays of one number that is repeated take no memory, and moves of them are views
            return self.moved([np.broadcast_to(0.0, (1, *s)) for s in shapes], attrs).shape[1:]
        except (ValueError, IndexError) as error:
            raise InvalidArgument(f"its input has the shape {shapes[0]}: {error}") from None

    def maps(self, shapes: Sequence[Shape], attrs: Attrs) -> list[SparseMap]:
        # Number k of array a is written as its address + 1, and zeros of the result come from
        # nowhere.
        sizes = [int(np.prod(s, dtype=np.int64)) for s in shapes]
        starts = np.cumsum([1, *sizes])
        places = [
            np.arange(start, start + size, dtype=np.float64).reshape(1, *s)
            for start, size, s in zip(starts, sizes, shapes, strict=False)
        ]
        source = self.moved(places, attrs).ravel().astype(np.int64)
        found = []
        for start, size in zip(starts, sizes, strict=False):
            mine = (source >= start) & (source < start + size)
            found.append(SparseMap.gather(np.where(mine, source - start, -1), size))
        return found


class Reshape(Move):
    """The numbers in C order in another shape: attribute shape."""

    def moved(self, values: Sequence[Array], attrs: Attrs) -> Array:
        return values[0].reshape(len(values[0]), *attrs["shape"])


class Transpose(Move):
    """The axes in the order of the attribute axes."""

    def moved(self, values: Sequence[Array], attrs: Attrs) -> Array:
        return values[0].transpose(0, *(a + 1 for a in attrs["axes"]))


class Slice(Move):
    """Elements start, start + step .. before stop, of every axis: attributes start, stop, step, one
    number for each axis."""

    def moved(self, values: Sequence[Array], attrs: Attrs) -> Array:
        parts = zip(attrs["start"], attrs["stop"], attrs["step"], strict=True)
        return values[0][(slice(None), *(slice(*part) for part in parts))]


class Concat(Move):
    """Arrays one after the other along an axis."""

    count = None

    def shape(self, shapes: Sequence[Shape], attrs: Attrs) -> Shape:
        axis = attrs["axis"]
        others = {(*s[:axis], *s[axis + 1 :]) for s in shapes}
        if not 0 <= axis < min(map(len, shapes)) or len({*map(len, shapes)}) > 1 or len(others) > 1:
            raise InvalidArgument(f"it joins arrays of the shapes {list(shapes)} along axis {axis}")
        first = shapes[0]
        return (*first[:axis], sum(s[axis] for s in shapes), *first[axis + 1 :])

    def moved(self, values: Sequence[Array], attrs: Attrs) -> Array:
        return np.concatenate(values, attrs["axis"] + 1)


class Broadcast(Move):
    """The array repeated to the attribute shape, by NumPy's rules."""

    def moved(self, values: Sequence[Array], attrs: Attrs) -> Array:
        x, shape = values[0], tuple(attrs["shape"])
        x = x.reshape(len(x), *(1,) * (len(shape) - x.ndim + 1), *x.shape[1:])
        return np.broadcast_to(x, (len(x), *shape))


class Pad(Move):
    """Zeros around the array: attribute widths, (before, after) of every axis."""

    def shape(self, shapes: Sequence[Shape], attrs: Attrs) -> Shape:
        (shape,), widths = shapes, attrs["widths"]
        if len(widths) != len(shape) or any(n < 0 for pair in widths for n in pair):
            raise InvalidArgument(f"its input has the shape {shape}, and its widths are {widths}")
        return tuple(n + before + after for n, (before, after) in zip(shape, widths, strict=True))

    def moved(self, values: Sequence[Array], attrs: Attrs) -> Array:
        return np.pad(values[0], ((0, 0), *attrs["widths"]))


class Sum(Linear):
    """The sum along the attribute axes, times the attribute factor; keepdims as in NumPy."""

    def shape(self, shapes: Sequence[Shape], attrs: Attrs) -> Shape:
        axes = attrs["axes"]
        if any(not 0 <= a < len(shapes[0]) for a in axes) or len(set(axes)) != len(axes):
            raise InvalidArgument(f"it sums along the axes {axes} of an array of {shapes[0]}")
        kept = [1 if a in axes else n for a, n in enumerate(shapes[0])]
        return tuple(n for a, n in enumerate(kept) if attrs["keepdims"] or a not in axes)

    def compute(self, values: Sequence[Array], attrs: Attrs) -> Array:
        axes = tuple(a + 1 for a in attrs["axes"])
        return np.asarray(values[0].sum(axis=axes, keepdims=attrs["keepdims"]) * attrs["factor"])

    def maps(self, shapes: Sequence[Shape], attrs: Attrs) -> list[SparseMap]:
        kept = tuple(1 if a in attrs["axes"] else n for a, n in enumerate(shapes[0]))
        m, n = (int(np.prod(s, dtype=np.int64)) for s in (kept, shapes[0]))
        rows = np.broadcast_to(np.arange(m).reshape(kept), shapes[0]).ravel()
        return [SparseMap.of(rows, np.arange(n), np.full(n, float(attrs["factor"])), (m, n))]

    def entries(self, shapes: Sequence[Shape], attrs: Attrs) -> int:
        return math.prod(shapes[0])


class Convolution(Linear):
    """See windows.convolution."""

    def shape(self, shapes: Sequence[Shape], attrs: Attrs) -> Shape:
        return windows.convolution_shape(shapes[0], attrs)

    def compute(self, values: Sequence[Array], attrs: Attrs) -> Array:
        return windows.convolution(values[0], attrs)

    def maps(self, shapes: Sequence[Shape], attrs: Attrs) -> list[SparseMap]:
        return [windows.convolution_map(shapes[0], attrs)]

    def entries(self, shapes: Sequence[Shape], attrs: Attrs) -> int:
        window: Shape = attrs["weight"].shape[1:]
        return math.prod(self.shape(shapes, attrs)) * math.prod(window)

    def bias(self, shapes: Sequence[Shape], attrs: Attrs) -> Array:
        shape = self.shape(shapes, attrs)
        if attrs["bias"] is None:
            return super().bias(shapes, attrs)
        return np.repeat(attrs["bias"], int(np.prod(shape[1:], dtype=np.int64)))


class AveragePool(Linear):
    """See windows.average_pool."""

    def shape(self, shapes: Sequence[Shape], attrs: Attrs) -> Shape:
        return windows.pool_shape(shapes[0], attrs)

    def compute(self, values: Sequence[Array], attrs: Attrs) -> Array:
        return windows.average_pool(values[0], attrs)

    def maps(self, shapes: Sequence[Shape], attrs: Attrs) -> list[SparseMap]:
        return [windows.pool_map(shapes[0], attrs)]

    def entries(self, shapes: Sequence[Shape], attrs: Attrs) -> int:
        return math.prod(self.shape(shapes, attrs)) * math.prod(attrs["kernel"])


class Input(Op):
    """An argument of the model: attribute shape."""

    count = 0

    def shape(self, shapes: Sequence[Shape], attrs: Attrs) -> Shape:
        return tuple(attrs["shape"])


class Multiply(Op):
    """The product of two arrays of one shape, number by number."""

    count = 2

    def shape(self, shapes: Sequence[Shape], attrs: Attrs) -> Shape:
        if shapes[0] != shapes[1]:
            raise InvalidArgument(f"it multiplies arrays of {shapes[0]} and {shapes[1]}")
        return shapes[0]

    def compute(self, values: Sequence[Array], attrs: Attrs) -> Array:
        return values[0] * values[1]


class Function(Op):
    """A named function of every number: attribute function, a name in jali.nn.scalar.FUNCTIONS."""

    def shape(self, shapes: Sequence[Shape], attrs: Attrs) -> Shape:
        if attrs["function"] not in FUNCTIONS:
            raise InvalidArgument(f"no function is named {attrs['function']!r}")
        return shapes[0]

    def compute(self, values: Sequence[Array], attrs: Attrs) -> Array:
        with np.errstate(all="ignore"):  # calibration reports numbers that are not finite
            return FUNCTIONS[attrs["function"]](values[0])


class PowerSeries(Op):
    """A polynomial of every number: attribute coefficients, the constant first."""

    def shape(self, shapes: Sequence[Shape], attrs: Attrs) -> Shape:
        if len(attrs["coefficients"]) < 2:
            raise InvalidArgument("a polynomial needs at least two coefficients")
        return shapes[0]

    def compute(self, values: Sequence[Array], attrs: Attrs) -> Array:
        coefficients = np.asarray(attrs["coefficients"])
        return np.asarray(np.polynomial.polynomial.polyval(values[0], coefficients))


#: Every operation of a traced graph.
OPS: dict[str, Op] = {
    "input": Input(),
    "dense": Dense(),
    "convolution": Convolution(),
    "average_pool": AveragePool(),
    "scale": Scale(),
    "combine": Combine(),
    "reshape": Reshape(),
    "transpose": Transpose(),
    "slice": Slice(),
    "concat": Concat(),
    "broadcast": Broadcast(),
    "pad": Pad(),
    "sum": Sum(),
    "multiply": Multiply(),
    "matmul": Matmul(),
    "function": Function(),
    "polynomial": PowerSeries(),
    "loop": Loop(),
    "by_step": ByStep(),
}


def made(name: str, op: str, inputs: Sequence[Node], attrs: Attrs) -> Node:
    """A node of a traced graph. Raises InvalidArgument, which names it, for shapes, numbers and
    operations that do not fit."""
    if op not in OPS:
        raise InvalidArgument(f"{name}: there is no operation {op!r}; there are {', '.join(OPS)}")
    count = OPS[op].count
    if len(inputs) != count and (count is not None or not inputs):
        raise InvalidArgument(f"{name}: {op} does not take {counted_text(len(inputs), 'array')}")
    for key, value in attrs.items():
        if isinstance(value, np.ndarray) and not np.all(np.isfinite(value)):
            raise InvalidArgument(
                f"{name}: its {key} holds NaN or infinity: train the model again, or replace the number"
            )
    try:
        shape = OPS[op].shape([node.shape for node in inputs], attrs)
    except InvalidArgument as error:
        raise InvalidArgument(f"{name}: {error}") from None
    if 0 in shape:
        raise InvalidArgument(f"{name}: its result has the shape {shape}, without a number")
    return Node(name, op, tuple(node.name for node in inputs), shape, dict(attrs))


def entries(graph: Graph) -> int:
    """At most so many entries the matrices of a traced graph have together. None is made."""
    total = 0
    for node in graph:
        op = OPS[node.op]
        if isinstance(op, Linear):
            total += op.entries([graph[name].shape for name in node.inputs], node.attrs)
        elif node.op == "loop":
            total += entries(node.attrs["body"])
    return total


def verify(graph: Graph) -> Graph:
    """The graph, if every node's operation takes its inputs and gives its shape. Raises
    InvalidArgument otherwise."""
    for node in graph:
        if node.op == "loop":
            verify(node.attrs["body"])
        again = made(node.name, node.op, [graph[name] for name in node.inputs], node.attrs)
        if again.shape != node.shape:
            raise InvalidArgument(
                f"{node.name}: its shape is {again.shape}, and the graph says {node.shape}"
            )
    return graph
