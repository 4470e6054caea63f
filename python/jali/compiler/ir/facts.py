"""What passes find out about the array that a node computes. Each is set by one pass, and kept by
all that follow.

| fact | set by | what it says |
|---|---|---|
| range | `passes.calibrate` | between which numbers the array lies, in the model's units |
| scaling | `passes.approximate`, in the place of the range | the scale in which it is computed, and its range in that scale |
| origin | `passes.fold`, `passes.unroll` | which nodes of the model it comes from |
| layout | `layout.choose_layouts` | which slot holds which number |
| level | `passes.levels` | how many multiplications may still follow |
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from jali.compiler.ir.arrays import Array
from jali.compiler.ir.layouts import Layout

__all__ = ["NOTHING", "Facts", "Origin", "Range", "Scaling"]


@dataclass(frozen=True, eq=False)
class Range:
    """Between which numbers an array lies, in the model's units. Inputs and loops have a number for
    each number of the array; all others have one.

    low, high: its numbers lie in [low, high], low <= high.
    mean, square: the mean over the examples, and that of squares.
    largest: the largest modulus in the examples, at least 2^-40.
    proven: whether nothing that a client accepts leaves the range.
    beyond: how far errors of functions lead out of it.
    """

    low: Array | float
    high: Array | float
    mean: Array | float
    square: Array | float
    largest: float
    proven: bool
    beyond: float = 0.0


@dataclass(frozen=True, eq=False)
class Scaling:
    """The scale of an array: t = (x - centre) / radius is computed in the place of x, and lies in
    [-1, 1] unless it is amplified.

    centre, radius: radius > 0; arrays (size,) for inputs and loops whose numbers have scales of
        their own.
    low, high: of t.
    rms: its root mean square, in [2^-20, 1] unless it is amplified.
    largest, proven: as in Range, in the model's units.
    beyond: how far errors of functions lead out of [low, high].
    free: whether the radius may be chosen larger.
    most: what no slot holds, if slots between the numbers hold parts of sums; None if they hold
        nothing.
    added: of how many numbers of its source each number is the sum, for a sum that several nodes
        share.
    """

    centre: Array | float
    radius: Array | float
    low: float
    high: float
    rms: float
    largest: float
    proven: bool
    beyond: float = 0.0
    free: bool = False
    most: float | None = None
    added: int = 1


@dataclass(frozen=True)
class Origin:
    """Which nodes of the model an array comes from.

    folds: the linear nodes of the traced graph that a matrix is made of.
    like: the node of `passes.unroll.two_iterations` that does the same.
    alike: what nodes share that have to lie alike, a state of a loop or an element of a sequence.
    step: the loop and the iteration of a copy.
    times: for how many iterations a copy stands.
    """

    folds: tuple[str, ...] = ()
    like: str = ""
    alike: str = ""
    step: tuple[str, int] | None = None
    times: int = 1


_TRACED = Origin()


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known of the array that a node computes; None where no pass has found it out yet."""

    range: Range | None = None
    scaling: Scaling | None = None
    origin: Origin = _TRACED
    layout: Layout | None = None
    level: int | None = None

    def by_name(self) -> dict[str, Any]:
        """All that is known, by the names of fields, for texts. What is as always is left out."""
        found: dict[str, Any] = {}
        for part in (self.origin, self.range, self.scaling):
            for field in fields(part) if part is not None else ():
                value = getattr(part, field.name)
                if value is not field.default and not (
                    isinstance(value, int | float | str | tuple) and value == field.default
                ):
                    found[field.name] = value
        return found | {
            k: v for k, v in (("layout", self.layout), ("level", self.level)) if v is not None
        }


NOTHING = Facts()  #: What is known of a node of a traced graph.
