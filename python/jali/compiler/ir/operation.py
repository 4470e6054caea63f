"""What an operation of a graph is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jali.compiler.ir.graph import Array, Shape
from jali.compiler.ir.sparse import SparseMap

__all__ = ["Attrs", "Linear", "Op"]

Attrs = Mapping[str, Any]


class Op:
    """An operation. ``count`` is how many arrays it takes; None stands for any number from 1.

    A linear operation also says its matrices: y = sum_k maps_k x_k + bias, on flattened arrays.
    """

    count: int | None = 1

    def shape(self, shapes: Sequence[Shape], attrs: Attrs) -> Shape:
        """The shape of the result. Raises InvalidArgument for shapes that do not fit."""
        raise NotImplementedError

    def compute(self, values: Sequence[Array], attrs: Attrs) -> Array:
        """The result of arrays (batch, *shape)."""
        raise NotImplementedError


class Linear(Op):
    """An operation that is a matrix for each of its arrays, and a bias."""

    def maps(self, shapes: Sequence[Shape], attrs: Attrs) -> list[SparseMap]:
        """One matrix for each array."""
        raise NotImplementedError

    def entries(self, shapes: Sequence[Shape], attrs: Attrs) -> int:
        """At most so many entries its matrices have together, which is known before they are
        made."""
        return math.prod(self.shape(shapes, attrs)) * len(shapes)

    def bias(self, shapes: Sequence[Shape], attrs: Attrs) -> Array:
        """What is added, flattened."""
        return np.zeros(int(np.prod(self.shape(shapes, attrs), dtype=np.int64)))

    def compute(self, values: Sequence[Array], attrs: Attrs) -> Array:
        shapes = [v.shape[1:] for v in values]
        total = self.bias(shapes, attrs) + sum(
            m(v.reshape(len(v), -1)) for m, v in zip(self.maps(shapes, attrs), values, strict=True)
        )
        return np.asarray(total).reshape(-1, *self.shape(shapes, attrs))
