"""Choices without comparison: by masks of zeros and ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from jali.discrete.array import EncryptedArray
from jali.discrete.values import LEAST, MOST, TOO_LARGE, as_integers, number
from jali.errors import InvalidArgument

__all__ = ["select"]


def select(mask: Any, a: Any, b: Any) -> EncryptedArray:
    """a where the mask is 1, and b where it is 0: b + mask * (a - b).

    mask: an encrypted array whose range is (0, 1), as that of an encrypted array of booleans, or
        zeros and ones in the clear.
    a, b: encrypted arrays, or integers and arrays in the clear. At least one of the three is
        encrypted.

    It takes one level, and its range is that of a and b together. Raises InvalidArgument for other
    masks, and what the operations raise.

    >>> client = discrete.Client(discrete.Params.create(modulus=65537, depth=1))
    >>> server = discrete.Evaluator(client.params, client.evaluation_keys())
    >>> a, b = (server.bind(client.encrypt(np.array(v, dtype=np.int16))) for v in ([1, 2], [-30, -40]))
    >>> chosen = server.bind(client.encrypt(np.array([True, False])))
    >>> client.decrypt(discrete.select(chosen, a, b))
    array([  1, -40])
    """
    if not any(isinstance(one, EncryptedArray) for one in (mask, a, b)):
        raise InvalidArgument("select needs an encrypted array: write np.where(mask, a, b)")
    if isinstance(mask, EncryptedArray):
        if mask.wraps or mask.range[0] < 0 or mask.range[1] > 1:
            shown = "numbers modulo params.modulus" if mask.wraps else f"the range {mask.range}"
            raise InvalidArgument(
                f"a mask is known to hold zeros and ones alone, and this one has {shown}: encrypt booleans, or "
                "numbers with range=(0, 1)"
            )
        which: Any = mask
    else:
        which = as_integers(mask, "the mask's numbers")
        if ((which != 0) & (which != 1)).any():
            raise InvalidArgument("a mask holds zeros and ones alone")
        if which.ndim == 0:
            which = int(which)
    low, high, wraps = _covered(a, b)
    engine = next(one for one in (mask, a, b) if isinstance(one, EncryptedArray))._server._engine
    if not wraps:
        engine.check_range(low, high)
    first, second = (one.wrap() if isinstance(one, EncryptedArray) else one for one in (a, b))
    encrypted = isinstance(first, EncryptedArray) or isinstance(second, EncryptedArray)
    difference = first - second if encrypted else _clear(first) - _clear(second)
    if isinstance(which, EncryptedArray):
        which = which.wrap()
    out: EncryptedArray = which * difference + second
    # Modulo T everything fits, and every number is one of a or of b.
    return out if wraps else out._new(engine.with_range(out._ct, low, high))


def _clear(value: Any) -> Any:
    found = number(value)
    return as_integers(value, "the operand's numbers") if found is None else found


def _covered(*operands: Any) -> tuple[int, int, bool]:
    """The lowest and the highest number of all, and whether some wrap. Raises InvalidArgument for
    numbers of more than 64 bits where none do."""
    lows, highs, wraps = [], [], False
    for one in operands:
        if isinstance(one, EncryptedArray):
            low, high = one.range
            wraps = wraps or one.wraps
        else:
            clear = np.asarray(_clear(one))
            low, high = int(clear.min()), int(clear.max())
        lows.append(low)
        highs.append(high)
    if not wraps and not LEAST <= min(lows) <= max(highs) <= MOST:
        raise InvalidArgument(TOO_LARGE)
    # Slots that hold no element may hold zeros.
    return min(0, *lows), max(0, *highs), wraps
