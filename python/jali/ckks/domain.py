"""What functions of encrypted arrays make of slots that hold none of their numbers, and how these
are brought into the interval of a function."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from jali._jali.ckks import Ciphertext

if TYPE_CHECKING:
    from jali.ckks.array import EncryptedArray

__all__ = ["Interval", "filled", "mapped"]

#: The least and the largest number that can occur; None if nothing is said.
Interval = tuple[float, float] | None
#: Bounds are products of doubles. No polynomial has grown so little outside its interval
#: (circuits/domain.cpp).
ROUNDING = 1 + 2.0**-30


def filled(
    x: EncryptedArray, interval: Interval, within: Interval
) -> tuple[EncryptedArray, Interval, float | None]:
    """The same numbers, with other slots that a function on the interval takes: they are masked, at
    one level, if they may hold what it does not take. If the interval does not hold 0, zeros beside
    the elements of an array are replaced by a number of it.

    Returns these numbers, `within` as it holds for all slots, and what all other slots hold, or
    None if that is not known.
    """
    return (_filled_vector if x._view is None else _filled_array)(x, interval, within)


def mapped(x: EncryptedArray, ciphertext: Ciphertext, of_rest: float | None) -> EncryptedArray:
    """The array of a function of the ciphertext of x. of_rest: what it makes of what all other
    slots hold, if that is known."""
    if x._view is None:
        return x._new(ciphertext)
    rest = math.inf if of_rest is None else of_rest
    return x._new(ciphertext, replace(x._view.changing(), rest=rest))


def _filled_vector(
    x: EncryptedArray, interval: Interval, within: Interval
) -> tuple[EncryptedArray, Interval, float | None]:
    """The ciphertext of a vector or a batch knows what its other slots hold. The engine's functions
    refuse numbers that they do not take."""
    core, value = x._server._core, x._settled()
    if interval is None or value.rest == 0:
        return x, within, None
    room = min(-interval[0], interval[1]) * ROUNDING  # negative if the interval does not hold 0
    if value.rest <= room or (room >= 0 and within is None):
        return x, within, None
    masked = core.multiply_array(value, np.ones(x.shape[-1]))
    return x._new(core.with_bounds(masked, value, 1)), within, None


def _filled_array(
    x: EncryptedArray, interval: Interval, within: Interval
) -> tuple[EncryptedArray, Interval, float | None]:
    """The view of an array knows what its other slots hold."""
    x = x._compact()
    if interval is None or interval[0] <= 0 <= interval[1]:
        if interval is not None and within is not None:
            if x._rest() > min(-interval[0], interval[1]) * ROUNDING:
                x = x._cleaned()
            rest = x._rest()  # `within` says nothing of these slots
            within = min(within[0], -rest), max(within[1], rest)
        return x, within, 0.0 if x._place.beside().rest == 0 else None
    nearest = interval[0] if interval[0] > 0 else interval[1]
    fill = x._place.scattered(np.zeros(()), nearest)
    if not fill.any():
        return x, within, 0.0
    core, value = x._server._core, x._cleaned()._settled()
    # The numbers lie in the interval, so that none is nearer to 0 than what is filled in.
    with_fill = core.with_bounds(core.add_array(value, fill), value, 1)
    return x._new(with_fill, replace(x._place.zeroed(), rest=abs(nearest))), within, nearest
