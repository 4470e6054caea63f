"""What the tables of ONNX's operations share: values, attributes, and constants among the inputs.

An operation takes the values of its inputs and its attributes. Arrays have the model's axes, of
which one may be the batch: see jali.compiler.frontends.onnx_batches. Beside ONNX's attributes there
are ``opset``, the version of the model's operations, ``outputs``, how many results the operation
has, ``batches``, how many examples there are in the place of those for which the model was
exported, and ``evaluate``, which computes the operation of other inputs in the clear. Operations
that quantise have ``label``, their name, ``limits``, a list to which they add what they keep of the
numbers, and ``kept``, which ends of that matter (see jali.compiler.frontends.quantised_values), or
None as long as that is being found out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jali.compiler.frontends.layers import Masked
from jali.compiler.frontends.quantised_values import BESIDE
from jali.compiler.frontends.tracing import Traced
from jali.errors import InvalidArgument, Unsupported

__all__ = [
    "FLOATS",
    "Attrs",
    "Operation",
    "Value",
    "axes_of",
    "clear",
    "given",
    "inner",
    "is_traced",
    "numbers",
    "optional",
    "text",
    "whole_numbers",
]

FLOATS = (1, 10, 11, 16)  #: TensorProto's numbers of the types of real numbers.

Value = Any  # a traced array, an array in the clear, or None for an input that is left out
Attrs = dict[str, Any]
Operation = Callable[[Sequence[Value], Attrs], Value]


def is_traced(value: Value) -> bool:
    """Whether it depends on the model's inputs."""
    if isinstance(value, (list, tuple)):
        return any(map(is_traced, value))
    return isinstance(value, (Traced, Masked, *BESIDE))


def given(inputs: Sequence[Value], place: int) -> Value:
    """An input, or None if it is left out."""
    return inputs[place] if len(inputs) > place else None


def clear(value: Value, what: str) -> Any:
    """A value that must be a constant."""
    if value is None or is_traced(value):
        raise Unsupported(f"its {what} depends on the input, and has to be a constant")
    return np.asarray(value)


def numbers(value: Value, what: str) -> Any:
    """A constant of real numbers."""
    return clear(value, what).astype(np.float64)


def whole_numbers(value: Value, what: str) -> list[int]:
    """A constant list of whole numbers, or a single one."""
    return [int(n) for n in clear(value, what).ravel()]


def optional(inputs: Sequence[Value], place: int, what: str) -> Any:
    """A constant of real numbers, or None if it is left out."""
    value = given(inputs, place)
    return None if value is None else numbers(value, what)


def text(value: Any) -> str:
    """An attribute that is a text."""
    return value.decode() if isinstance(value, bytes) else str(value)


def inner(axis: Any, rank: int) -> int:
    """An axis that may be counted from the end."""
    if not -rank <= int(axis) < rank:
        raise InvalidArgument(f"its axis {int(axis)} is none of an array of {rank} axes")
    return int(axis) % rank


def axes_of(inputs: Sequence[Value], attrs: Attrs, place: int = 1) -> tuple[int, ...] | None:
    """The axes of an operation; None if it names none."""
    if attrs.get("axes") is not None:
        return tuple(int(a) for a in attrs["axes"])
    if given(inputs, place) is not None:
        return tuple(whole_numbers(inputs[place], "axes"))
    return None
