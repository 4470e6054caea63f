"""What operators of PyTorch are given at a client, as numbers of the kinds of graphs of clients.

PyTorch computes with several types at once; the result's is known from its own graph. Steps of a
client take one kind. Nothing here imports PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jali.compiler.frontends.client_masks import Mask
from jali.compiler.frontends.client_steps import cast_to
from jali.compiler.frontends.client_values import Clear, constant, kind_of, largest_of
from jali.compiler.frontends.layers import MISPLACED
from jali.errors import Unsupported
from jali.program.clear.values import KINDS, Shape

__all__ = ["Given", "Like", "alike", "as_kind", "as_type", "axes_of", "known"]

Given = Any  # a value, an array of the model, a number, or a list of these

_TYPES: Mapping[str, Any] = {"real": np.float64, "whole": np.int64, "flag": np.bool_}


@dataclass(frozen=True)
class Like:
    """What PyTorch says of a result.

    dtype: its type, as NumPy's; real numbers of 16 bits are those of 32.
    """

    shape: Shape
    dtype: Any

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)


def known(value: Given, what: str) -> Any:
    """An array that must be one of the model."""
    if isinstance(value, (Clear, Mask)):
        raise Unsupported(f"its {what} depends on the input, and has to be a constant")
    return np.asarray(value)


def as_kind(value: Given, kind: str) -> Clear:
    """Numbers of a kind."""
    if isinstance(value, Mask):
        raise Unsupported(MISPLACED)
    if isinstance(value, Clear):
        return value if value.kind == kind else cast_to(value, kind)
    array = np.asarray(value)
    made: Any = array.astype(_TYPES[kind])
    if kind == "whole" and array.dtype.kind == "f" and not np.array_equal(made, array):
        raise Unsupported("fractions beside whole numbers: convert them to real numbers before")
    return constant(made)


def as_type(value: Given, dtype: Any) -> Clear:
    """Numbers of a type, in which a computation overflows as PyTorch's would; then the client
    refuses."""
    kind, most = kind_of(dtype), largest_of(dtype)
    if kind != "whole":
        return as_kind(value, kind)
    if isinstance(value, Mask):
        raise Unsupported(MISPLACED)
    if not isinstance(value, Clear):
        as_kind(value, kind)  # which has no fractions
        return constant(np.asarray(value).astype(dtype))
    if value.kind == "whole" and value.largest == most:
        return value
    if not most:
        raise Unsupported("a conversion to whole numbers of fewer than 32 bits")
    return cast_to(value, kind, most)


def alike(values: Sequence[Given]) -> list[Clear]:
    """Values of the one kind to which PyTorch converts them to compare them."""
    kinds = [x.kind if isinstance(x, Clear) else kind_of(np.asarray(x).dtype) for x in values]
    order = ("flag", "whole", "real")
    assert set(order) == set(KINDS)
    kind = max(kinds, key=order.index)
    return [as_kind(x, kind) for x in values]


def axes_of(x: Clear, dim: Any) -> list[int]:
    """The axes that an argument names, or all."""
    if dim is None or (isinstance(dim, Sequence) and not dim):
        return list(range(x.ndim))
    return [int(a) for a in dim] if isinstance(dim, Sequence) else [int(dim)]
