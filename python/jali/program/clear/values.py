"""What is known of a value before it is computed: its shape and its kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import schema

__all__ = ["DTYPES", "KINDS", "Arguments", "Known", "Operation", "Shape", "Value", "joint"]

Shape = tuple[int, ...]
Value = npt.NDArray[Any]
Arguments = Mapping[str, Any]

#: The kinds of values: real numbers, whole numbers, and flags, which are true or false.
KINDS = ("real", "whole", "flag")
DTYPES: Mapping[str, Any] = {"real": np.float64, "whole": np.int64, "flag": np.bool_}


@dataclass(frozen=True)
class Known:
    """The shape, which has the axis of a batch of one example in front, and the kind."""

    shape: Shape
    kind: str

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Operation:
    """An operation that a client may compute.

    arity: how many values it takes; None stands for any number from 1.
    result: what is known of its result, from what is known of what it takes; a ValueError says what
        does not fit.
    compute: the result of arrays that fit.
    arguments: the check of each of its arguments, by name.
    """

    arity: int | None
    result: Callable[[Sequence[Known], Arguments], Known]
    compute: Callable[[Sequence[Value], Arguments], Value]
    arguments: Mapping[str, schema.Check]


def joint(shapes: Sequence[Shape]) -> Shape:
    """The shape to which arrays are broadcast together. Raises ValueError if they are not."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        texts = " and ".join(str(shape) for shape in shapes)
        raise ValueError(f"arrays of {texts} do not fit together") from None
