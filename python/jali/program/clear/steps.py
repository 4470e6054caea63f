"""A graph that a client computes in the clear: its arguments, constants, and steps of
jali.program.clear.operations.

A server may lie. So shapes, kinds, sizes and the work of every step are checked when a graph is
made, before anything is computed, and each array is computed for one example at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._core.console import counted_text
from jali.errors import InvalidArgument
from jali.program.clear.operations import LARGEST, MOST_AXES, MOST_SIZE, OPERATIONS
from jali.program.clear.values import DTYPES, Arguments, Known, Shape, Value

__all__ = ["MOST_STEPS", "Argument", "Constant", "Step", "Steps"]

MOST_STEPS = 10_000
#: Numbers that the steps of one example read and write together.
MOST_WORK = 1 << 28


@dataclass(frozen=True)
class Argument:
    """An argument of a graph.

    shape: of one example, without the axis of the batch.
    low, high: between which a whole number lies.
    """

    name: str
    shape: Shape
    kind: str
    low: int = -LARGEST
    high: int = LARGEST

    def examples(self, values: npt.ArrayLike | bytes) -> tuple[Value, bool]:
        """Examples (n, *shape) from one example or a batch, and whether it is one without the axis
        of the batch; a vector of whole numbers may be given as bytes. Raises InvalidArgument for
        other shapes, and for numbers of another kind."""
        if isinstance(values, (bytes, bytearray, memoryview)):
            if self.kind != "whole" or len(self.shape) != 1:
                raise InvalidArgument(
                    f"{self.name} takes an array of {self.kind} numbers, not bytes"
                )
            values = np.frombuffer(values, np.uint8)
        if hasattr(values, "columns"):
            raise InvalidArgument(
                f"{self.name} takes arrays, and was given a table: give table.to_numpy()"
            )
        array = checks.examples(self.name, self.shape, values)
        single = np.shape(values) == self.shape
        if self.kind == "real":
            return array, single
        low, high = (0, 1) if self.kind == "flag" else (self.low, self.high)
        if np.any(array != np.rint(array)):
            raise InvalidArgument(f"{self.name} takes whole numbers, and was given fractions")
        if np.any(array < low) or np.any(array > high) or np.any(np.abs(array) >= LARGEST):
            raise InvalidArgument(
                f"{self.name} takes whole numbers from {max(low, 1 - LARGEST)} to {min(high, LARGEST - 1)}, and was given others"
            )
        return array.astype(DTYPES[self.kind]), single


@dataclass(frozen=True, eq=False)
class Constant:
    """An array of the model, as floats, and the kind of its numbers."""

    array: npt.NDArray[np.float64]
    kind: str

    def value(self) -> Value:
        """The array of its kind. Raises ValueError for numbers that are not of it."""
        x = self.array
        if self.kind == "whole" and (np.any(x != np.rint(x)) or np.any(np.abs(x) > LARGEST)):
            raise ValueError("a constant has fractions, or is too large for whole numbers")
        if self.kind == "flag" and not np.all((x == 0) | (x == 1)):
            raise ValueError("a constant of flags has other numbers than 0 and 1")
        return x.astype(DTYPES[self.kind], copy=False)


@dataclass(frozen=True, eq=False)
class Step:
    """One operation.

    inputs: which values it takes: arguments are numbered first, then constants, then the results of
        the steps.
    how: the arguments of the operation.
    """

    op: str
    inputs: tuple[int, ...]
    how: Arguments


@dataclass(frozen=True, eq=False)
class Steps:
    """A graph.

    outputs: the numbers of the values that are its results.

    All arrays have the axis of a batch in front, which is 1, as operations of a model may ask for
    it. Raises ValueError for a graph that does not fit together, or that takes too much work.
    """

    arguments: tuple[Argument, ...]
    constants: tuple[Constant, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.steps) > MOST_STEPS:
            raise ValueError(f"has more than {MOST_STEPS:,} steps")
        known = [Known((1, *x.shape), x.kind) for x in self.arguments]
        known += [Known(x.array.shape, x.kind) for x in self.constants]
        fixed = len(known)
        work = sum(one.size for one in known[: len(self.arguments)])
        for k, step in enumerate(self.steps):
            try:
                taken = [known[self._before(i, len(known))] for i in step.inputs]
                operation = OPERATIONS[step.op]
                if len(taken) != operation.arity and (operation.arity is not None or not taken):
                    raise ValueError(f"does not take {counted_text(len(taken), 'value')}")
                result = operation.result(taken, step.how)
                if result.size > MOST_SIZE or len(result.shape) > MOST_AXES:
                    raise ValueError(
                        f"has a result of the shape {result.shape}, which is too large"
                    )
            except ValueError as error:
                raise ValueError(f"step {k}: {step.op} {error}") from None
            known.append(result)
            # A look-up reads as many numbers as it gives, whatever the size of its table.
            read = taken[1:] if step.op == "gather" else taken
            work += result.size + sum(one.size for one in read)
            if work > MOST_WORK:
                raise ValueError(f"reads and writes more than {MOST_WORK:,} numbers an example")
        for output in self.outputs:
            shape = known[self._before(output, len(known))].shape
            if not shape or shape[0] != 1 or 0 in shape:
                raise ValueError(
                    f"has a result of the shape {shape}, without the axis of the batch"
                )
        object.__setattr__(self, "_known", (tuple(known), fixed, work))
        object.__setattr__(self, "_values", [constant.value() for constant in self.constants])

    @staticmethod
    def _before(index: int, count: int) -> int:
        if not 0 <= index < count:
            raise ValueError("takes a value that no step before it computes")
        return index

    @property
    def known(self) -> tuple[Known, ...]:
        """The shape and the kind of every value."""
        found: tuple[Known, ...] = self.__dict__["_known"][0]
        return found

    @property
    def results(self) -> tuple[Known, ...]:
        """The shape and the kind of every result."""
        return tuple(self.known[k] for k in self.outputs)

    @cached_property
    def nbytes(self) -> int:
        """The bytes of memory that it takes for one example, with its constants."""
        return 8 * (sum(one.size for one in self.known) + self.weights)

    @property
    def weights(self) -> int:
        """How many numbers its constants have. Single numbers, which are parts of formulas, do not
        count."""
        return sum(x.array.size for x in self.constants if x.array.size > 1)

    @property
    def names(self) -> tuple[str, ...]:
        """What its steps are, in words."""
        return tuple(str(step.how.get("function", step.op)) for step in self.steps)

    def __call__(self, arrays: Sequence[Value]) -> list[Value]:
        """The results (n, *shape) for examples (n, *shape) of every argument. Raises
        InvalidArgument for whole numbers that are not in a table, or leave their range."""
        each = [self._one([x[k : k + 1] for x in arrays]) for k in range(len(arrays[0]))]
        return [np.concatenate(of) for of in zip(*each, strict=True)]

    def _one(self, given: list[Value]) -> list[Value]:
        constants: list[Value] = self.__dict__["_values"]
        values = [*given, *constants]
        with np.errstate(all="ignore"):
            for step in self.steps:
                taken = [values[k] for k in step.inputs]
                values.append(OPERATIONS[step.op].compute(taken, step.how))
        return [values[k] for k in self.outputs]

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: the fields alone, which are checked again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        self.__post_init__()
