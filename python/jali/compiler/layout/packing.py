"""Numbers of arrays as slots, and back."""

from __future__ import annotations

import numpy as np

from jali.compiler.ir.graph import Array
from jali.compiler.ir.layouts import Gathered, Layout

__all__ = ["packed", "unpacked"]


def packed(layout: Layout, values: Array) -> Array:
    """Examples (batch, size) as the slots of one lane, (batch, ciphertexts, slots). Zeros lie in
    the slots that hold no number."""
    if isinstance(layout, Gathered):
        return np.where(layout.table >= 0, values[:, layout.table], 0.0)
    flat = np.zeros((len(values), layout.ciphertexts * layout.slots))
    for start in layout.copies:
        flat[:, start + layout.addresses] = values
    return flat.reshape(len(values), layout.ciphertexts, layout.slots)


def unpacked(layout: Layout, slots: Array) -> Array:
    """The numbers (batch, size) of the slots (batch, ciphertexts, slots) of a lane."""
    return slots.reshape(len(slots), -1)[:, layout.addresses]
