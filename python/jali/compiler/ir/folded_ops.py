"""The operations that are left after folding, beside ``function``, ``polynomial``, ``multiply`` and
``input``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jali.compiler.ir.graph import Array, Shape
from jali.compiler.ir.products import Products
from jali.compiler.ir.traced_ops import Attrs, Op

__all__ = ["ELEMENTWISE", "FOLDED"]


class Affine(Op):
    """y = sum_k maps_k x_k + bias, on flattened arrays: attributes maps, bias and shape."""

    count = None

    def shape(self, shapes: Sequence[Shape], attrs: Attrs) -> Shape:
        return tuple(attrs["shape"])

    def compute(self, values: Sequence[Array], attrs: Attrs) -> Array:
        total = attrs["bias"] + sum(
            m(v.reshape(len(v), -1)) for m, v in zip(attrs["maps"], values, strict=True)
        )
        return np.asarray(total).reshape(-1, *attrs["shape"])


class Approximated(Op):
    """What replaces a function on [-1, 1]: attribute by, see jali.compiler.passes.approximate."""

    def shape(self, shapes: Sequence[Shape], attrs: Attrs) -> Shape:
        return shapes[0]

    def compute(self, values: Sequence[Array], attrs: Attrs) -> Array:
        return np.asarray(attrs["by"](values[0]))


#: Operations that work number by number, whatever the shape.
ELEMENTWISE = ("function", "polynomial", "multiply", "approximated")

FOLDED: dict[str, Op] = {
    "affine": Affine(),
    "approximated": Approximated(),
    "products": Products(),
}
