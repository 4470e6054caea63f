"""Values of quantised models. A quantised number is read as the real number that it stands for, and
its scale and its zero point are carried beside it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from jali.compiler.frontends.tracing import Traced
from jali.compiler.ir.execute import every_value
from jali.compiler.ir.graph import Array, Graph

__all__ = [
    "BESIDE",
    "TYPE_ENDS",
    "KeptEnds",
    "Limits",
    "Quantised",
    "Range",
    "Scale",
    "Unscaled",
    "Zero",
    "ends_left",
]

KeptEnds = Set[tuple[str, str]]  # (name of an operation, "low" or "high")
#: The least and the largest number of each type.
TYPE_ENDS = {
    **{f"int{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (4, 8, 16)},
    **{f"uint{bits}": (0, (1 << bits) - 1) for bits in (4, 8, 16)},
}
_BEYOND = 1 / 16  # of a type's range: what leaves it by more is no outlier


class Range:
    """The scale and the zero point that a model takes from the numbers that it quantises. Nobody
    knows them, and they cancel."""


@dataclass(frozen=True)
class Quantised:
    """The whole number x / scale + zero, which stands for x.

    scale, zero: arrays that NumPy broadcasts onto x.
    range: what they are taken from, if nobody knows them.
    """

    x: Traced
    scale: Array = field(default_factory=lambda: np.ones(()))
    zero: Array = field(default_factory=lambda: np.zeros(()))
    range: Range | None = None


@dataclass(frozen=True)
class Scale:
    """factor times the scale of a range."""

    range: Range
    factor: Array = field(default_factory=lambda: np.ones(()))


@dataclass(frozen=True)
class Zero:
    """The zero point of a range."""

    range: Range


@dataclass(frozen=True)
class Unscaled:
    """x divided by the scale of a range."""

    x: Traced
    range: Range


BESIDE = (Quantised, Scale, Zero, Unscaled)


@dataclass(frozen=True)
class Limits:
    """The numbers that an operation keeps, of those that it quantises.

    label: the name of the operation.
    node: the name of the node of what it gives.
    low, high: arrays that NumPy broadcasts onto that.
    positive: whether nothing below the low end is expected, not even outliers.
    """

    label: str
    node: str
    low: Array
    high: Array
    positive: bool = False


def ends_left(limits: list[Limits], graph: Graph, examples: list[Array]) -> KeptEnds:
    """The ends beyond which there are more than outliers in these examples, so that they are part
    of what the model computes: a ReLU6 is often the upper end of a quantised type.

    limits, graph: of a reading that cuts nothing.
    """
    found = set[tuple[str, str]]()

    def cut(x: Array, one: Limits) -> Array:
        """The numbers as the model quantises them, for what follows."""
        room = _BEYOND * (one.high - one.low)
        if np.any(x > one.high + room):
            found.add((one.label, "high"))
        if np.any(x < (one.low if one.positive else one.low - room)):
            found.add((one.label, "low"))
        return np.clip(x, one.low, one.high)

    every_value(graph, examples, {one.node: partial(cut, one=one) for one in limits})
    return found
