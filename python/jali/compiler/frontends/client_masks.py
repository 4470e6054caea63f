"""Masks for a softmax that a client makes of its inputs: 0 where a number counts, and minus
infinity elsewhere.

No such numbers are encrypted. The client encrypts the flags, and the server multiplies the
exponentials by them (jali.compiler.frontends.layers.Mask).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jali.compiler.frontends.client_steps import both, cast_to, like
from jali.compiler.frontends.client_values import Clear, constant, step
from jali.program.clear.values import Shape

__all__ = ["FAR", "Mask", "is_mask", "joint_mask", "mask_by", "scaled_mask"]

#: Numbers that are at most this, added to what goes into a softmax, leave nothing of a share.
FAR = -1e9


@dataclass(frozen=True, eq=False)
class Mask:
    """A mask.

    keep: flags that say whether a number counts.
    """

    keep: Clear

    @property
    def shape(self) -> Shape:
        """The shape, with the axis of the batch in front."""
        return self.keep.shape

    @property
    def kind(self) -> str:
        """That of what is encrypted."""
        return "flag"

    @property
    def numbers(self) -> Clear:
        """1 where a number counts, and 0 elsewhere."""
        return cast_to(self.keep, "real")


def is_mask(numbers: Any) -> bool:
    """Whether each number of an array is 0 or far below 0, as in masks of attention."""
    array = np.asarray(numbers)
    return bool(np.all((array == 0) | (array <= FAR)))


def mask_by(condition: Clear, inside: Any, outside: Any) -> Mask | None:
    """The mask whose numbers are `inside` where flags are set, and `outside` elsewhere, if both are
    arrays of the model, one of zeros and one far below; otherwise None."""
    if isinstance(inside, (Clear, Mask)) or isinstance(outside, (Clear, Mask)):
        return None
    if np.all(np.asarray(inside) == 0) and np.all(np.asarray(outside) <= FAR):
        return Mask(condition)
    if np.all(np.asarray(outside) == 0) and np.all(np.asarray(inside) <= FAR):
        return Mask(step("not", [condition], {}))
    return None


def scaled_mask(x: Any, factor: Any) -> Mask | None:
    """The mask factor x, if the factor is a number far below 0; otherwise None. x is 0 where a
    number counts."""
    if not isinstance(x, Clear) or isinstance(factor, (Clear, Mask)):
        return None
    if np.size(factor) != 1 or not np.all(np.asarray(factor) <= FAR):
        return None
    return Mask(both("equal")(x, like(x, 0)))


def joint_mask(a: Any, b: Any) -> Mask | None:
    """The sum of two masks, of which one may be an array of the model of zeros and numbers far
    below; None if neither is a mask, or if the other is neither."""
    if not isinstance(a, Mask):
        a, b = b, a
    if not isinstance(a, Mask):
        return None
    if isinstance(b, Mask):
        return Mask(both("and")(a.keep, b.keep))
    if isinstance(b, Clear) or not is_mask(b):
        return None
    return Mask(both("and")(a.keep, constant(np.asarray(b) == 0)))
