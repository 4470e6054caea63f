"""What MatVec.pack gives: arrays of slots that know how a vector lies in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jali._jali.ckks import Layout
from jali.errors import InvalidArgument


class PackedArray(np.ndarray[Any, np.dtype[np.float64]]):
    """The slots of one ciphertext. Views, copies and what is computed from it know no layout."""

    #: The layout, and which of its ciphertexts this is; None if nothing is known.
    lies: tuple[Layout, int] | None

    def __array_finalize__(self, source: object) -> None:
        self.lies = None


def known(slots: npt.NDArray[np.float64], layout: Layout, part: int) -> PackedArray:
    """The array of ciphertext `part` of the layout."""
    packed = slots.view(PackedArray)
    packed.lies = (layout, part)
    return packed


def lies(values: object) -> tuple[Layout | None, int]:
    """The layout of values, and which of its ciphertexts they are; None and 0 if nothing is known.

    Raises InvalidArgument for the list that pack() gives: as one array of numbers it would have no
    layout.
    """
    if isinstance(values, (list, tuple)) and values and lies(values[0])[0] is not None:
        raise InvalidArgument(
            "pack() gives one array for each ciphertext, in a list: encrypt each by itself, "
            "[client.encrypt(part) for part in plan.pack(v)], so that its layout stays known"
        )
    found = values.lies if isinstance(values, PackedArray) else None
    return (None, 0) if found is None else found
