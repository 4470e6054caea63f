"""Where the elements of a CKKS ciphertext lie."""

from __future__ import annotations

from jali._core.view import View
from jali._jali.ckks import Ciphertext
from jali.errors import InvalidArgument

__all__ = ["place_of"]


def place_of(ciphertext: Ciphertext) -> View:
    """The view of a ciphertext. A vector or a batch of vectors has one, too."""
    slots, vectors = ciphertext.slots, ciphertext.batch
    known, rest = ciphertext.view, ciphertext.rest
    if known is not None:
        axes, first, period = known
        counts = tuple(count for count, _ in axes)
        strides = tuple(stride for _, stride in axes)
        return View(counts, strides, first, slots, vectors, period, rest)
    shape = ciphertext.shape
    strides, repeats = (slots, 1)[-len(shape) :], ciphertext.repeats
    if repeats is None:
        raise InvalidArgument(
            f"the vector lies in the windows of a plan, {ciphertext.layout!r}: bring it into order first with natural()"
        )
    # A view with a period has one vector. In several, what repeats lies beside the elements.
    copies = repeats > 0 and vectors > 1
    period = 0 if copies else repeats
    return View(shape, strides, 0, slots, vectors, period, rest, copies).beside()
