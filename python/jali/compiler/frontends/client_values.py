"""Values that a client computes in the clear, while its graph is being found out.

A value knows its shape and its kind, and how it is computed of others. ``steps_of`` makes the graph
of those that are wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jali.errors import Unsupported
from jali.program.clear.operations import OPERATIONS
from jali.program.clear.steps import Argument, Constant, Step, Steps
from jali.program.clear.values import Arguments, Known, Shape

__all__ = ["Clear", "argument", "constant", "kind_of", "largest_of", "step", "steps_of"]

_KINDS = {"f": "real", "i": "whole", "u": "whole", "b": "flag"}


@dataclass(frozen=True, eq=False)
class Clear:
    """A value.

    source: the argument, the array or the operation that it is.
    inputs: what the operation takes.
    largest: of its whole numbers, by their type in the model; 0 for types whose sums wrap around
        too early to be computed with.
    """

    known: Known
    source: Argument | Constant | Step
    inputs: tuple[Clear, ...] = field(default=(), repr=False)
    largest: int = 0

    @property
    def shape(self) -> Shape:
        """The shape, with the axis of the batch in front."""
        return self.known.shape

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.known.shape)

    @property
    def kind(self) -> str:
        """The kind of its numbers."""
        return self.known.kind

    @property
    def is_constant(self) -> bool:
        """Whether it is an array of the model."""
        return isinstance(self.source, Constant)


def argument(name: str, shape: Shape, dtype: Any) -> Clear:
    """An argument of the graph.

    shape: of one example.
    """
    kind, most = kind_of(dtype), largest_of(dtype)
    low, high = -(1 << 53), 1 << 53
    if kind == "whole" and np.dtype(dtype).itemsize < 8:
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return Clear(Known((1, *shape), kind), Argument(name, tuple(shape), kind, low, high), (), most)


def constant(value: Any) -> Clear:
    """An array of the model. Raises Unsupported for numbers that no file of a client holds."""
    array = np.asarray(value)
    if array.dtype.kind not in _KINDS:
        raise Unsupported(f"a constant of the type {array.dtype}")
    if not array.size or not np.all(np.isfinite(array)):
        raise Unsupported("a constant that is empty, infinite or NaN")
    numbers = array.astype(np.float64)
    if array.dtype.kind in "iu" and np.any(np.abs(numbers) > 1 << 53):
        raise Unsupported("a whole number beyond 2^53")
    kind = _KINDS[array.dtype.kind]
    made = Constant(np.ascontiguousarray(numbers).reshape(array.shape), kind)
    return Clear(Known(array.shape, kind), made, (), largest_of(array.dtype))


def kind_of(dtype: Any) -> str:
    """The kind of numbers of a type of NumPy: real, whole or flag."""
    return _KINDS[np.dtype(dtype).kind]


def largest_of(dtype: Any) -> int:
    """The largest whole number of a type, or of a file; 0 for types that wrap around too early to
    be computed with, and for others than whole ones."""
    kind = np.dtype(dtype)
    if kind.kind != "i" or kind.itemsize < 4:
        return 0
    return (1 << 31) - 1 if kind.itemsize == 4 else 1 << 53


def step(op: str, inputs: Sequence[Clear], how: Arguments, largest: int | None = None) -> Clear:
    """The result of an operation. Raises Unsupported for what does not fit."""
    try:
        found = OPERATIONS[op].result([x.known for x in inputs], how)
    except ValueError as error:
        raise Unsupported(f"{op} {error}") from None
    most = min(x.largest for x in inputs if x.kind == "whole") if _has_whole(inputs) else 1 << 53
    most = most if largest is None else largest
    return Clear(found, Step(op, (), how), tuple(inputs), most if found.kind == "whole" else 0)


def _has_whole(inputs: Sequence[Clear]) -> bool:
    return any(x.kind == "whole" for x in inputs)


def steps_of(arguments: Sequence[Clear], outputs: Sequence[Clear]) -> Steps:
    """The graph of these outputs, with all of the arguments, and the constants and steps that the
    outputs need."""
    order: list[Clear] = []
    seen = {id(x) for x in arguments}
    pending = [(x, False) for x in reversed(outputs)]
    while pending:
        value, ready = pending.pop()
        if ready:
            order.append(value)
        elif id(value) not in seen:
            seen.add(id(value))
            pending.append((value, True))
            pending += [(x, False) for x in reversed(value.inputs)]
    constants = [x for x in order if x.is_constant]
    made = [x for x in order if isinstance(x.source, Step)]
    number = {id(x): k for k, x in enumerate([*arguments, *constants, *made])}
    steps = []
    for value in made:
        assert isinstance(value.source, Step)
        inputs = tuple(number[id(x)] for x in value.inputs)
        steps.append(Step(value.source.op, inputs, value.source.how))
    try:
        return Steps(
            tuple(x.source for x in arguments if isinstance(x.source, Argument)),
            tuple(x.source for x in constants if isinstance(x.source, Constant)),
            tuple(steps),
            tuple(number[id(x)] for x in outputs),
        )
    except ValueError as error:
        raise Unsupported(f"what the client would compute {error}") from None
