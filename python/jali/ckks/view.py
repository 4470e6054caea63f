"""Where the elements of an encrypted array lie in the slots of its vectors, in the terms of NumPy's
strides."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._jali import ckks as _ckks
from jali.errors import InvalidArgument

__all__ = ["Addresses", "View"]

Addresses = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class View:
    """Element (i0, i1, ..) has the address ``first + sum_k i_k strides[k]``.

    An address counts the slots of all vectors of the batch: slot s of vector v is v * slots + s.
    Slices, transposes and most reshapes are other views of the same slots, exactly as in NumPy,
    which computes them here.

    period: rotations by so many slots change nothing, so that addresses count modulo the period; 0
        if nothing is known. A view with a period has one vector.
    rest: no slot that holds no element has a larger modulus, and none is above the peak of the
        ciphertext. 0: these slots are zero, up to noise. inf: nothing else is known of them.
    copies: slots that hold no element may also hold a copy of one, which is no larger than what is
        said of the elements.
    whole: of a part of an array, that array, if its slots are still as they were and all that hold
        none of its elements are zero.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    first: int
    slots: int
    vectors: int
    period: int = 0
    rest: float = math.inf
    copies: bool = False
    whole: View | None = None

    @property
    def zero(self) -> bool:
        """Whether all slots that hold no element are zero, up to noise."""
        return self.rest == 0 and not self.copies

    @staticmethod
    def dense(shape: tuple[int, ...], slots: int) -> View:
        """The view of a fresh array (ckks::dense_view)."""
        (axes, first, period), vectors = _ckks.dense_view(list(shape), slots)
        return View(shape, tuple(stride for _, stride in axes), first, slots, vectors, period, 0.0)

    @staticmethod
    def of(ciphertext: _ckks.Ciphertext) -> View:
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

    def as_tuple(self) -> tuple[list[tuple[int, int]], int, int]:
        """The view as the binding takes it."""
        axes = [(c, 1 if c == 1 else s) for c, s in zip(self.shape, self.strides, strict=True)]
        return axes, self.first, self.period

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def extent(self) -> int:
        """Addresses that it can have: its period, or all slots of all vectors."""
        return self.period or self.slots * self.vectors

    @property
    def cycle(self) -> int:
        """Addresses may be taken modulo this number: the period or, of a single vector, all slots.
        0 for several vectors."""
        return self.period or (self.slots if self.vectors == 1 else 0)

    def addresses(self) -> Addresses:
        """The address of every element, in an array of its shape."""
        out = np.full(self.shape, self.first, np.int64)
        for k, (count, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            column = np.arange(count, dtype=np.int64) * stride
            out += column.reshape((count,) + (1,) * (len(self.shape) - 1 - k))
        return out

    def changed(self, change: Callable[[npt.NDArray[np.uint8]], Any]) -> View:
        """The view that NumPy's `change` gives for an array of these strides.

        Raises InvalidArgument if NumPy would have to move elements, or if there are none left.
        """
        # One byte a slot. It is never read: only strides and the pointer to the first element
        # matter.
        memory: npt.NDArray[np.uint8] = np.empty(self.extent, np.uint8)
        old = np.lib.stride_tricks.as_strided(
            memory[self.first :], self.shape, self.strides, writeable=False
        )
        new = np.asanyarray(change(old))
        if new.size == 0:
            raise InvalidArgument(
                f"an encrypted array of the shape {new.shape} has no elements: take at least one"
            )
        first = new.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
        if not np.may_share_memory(new, memory):
            raise InvalidArgument(
                f"an array of the shape {self.shape} that lies with the strides {self.strides} cannot become "
                f"one of the shape {new.shape} without moving its numbers: encrypt it in that shape"
            )
        if new.size == old.size:
            return replace(self, shape=new.shape, strides=new.strides, first=first)
        return replace(
            self,
            shape=new.shape,
            strides=new.strides,
            first=first,
            rest=math.inf,
            copies=False,
            whole=self if self.zero else self.whole,
        )

    def used(self) -> range:
        """The vectors from the first to the last that hold an element."""
        reaches = [(c - 1) * s for c, s in zip(self.shape, self.strides, strict=True)]
        low = self.first + sum(r for r in reaches if r < 0)
        high = self.first + sum(r for r in reaches if r > 0)
        return range(low // self.slots, high // self.slots + 1)

    def beside(self) -> View:
        """The same view with what is known of the vectors that hold an element, as if there were no
        others."""
        used, count = self.used(), self.period or self.slots
        if not self.zero and self.size == len(used) * count:  # there is nothing beside them
            return self.zeroed()
        if self.whole is None:
            return self
        others = self.whole.places()
        others[self.addresses()] = False
        if others.reshape(-1, count)[used.start : used.stop].any():
            return replace(self, whole=None)
        return self.zeroed()

    def changing(self) -> View:
        """The view of the same elements after the slots beside them became others, which are no
        larger than they were."""
        if len(self.used()) == self.vectors:
            return self.beside()
        return replace(self, whole=None)

    def zeroed(self) -> View:
        """The view after all slots that hold no element became zero."""
        return replace(self, rest=0.0, copies=False, whole=None)

    def scaled(self, factor: float) -> View:
        """The view after a product of all slots with a number of this modulus."""
        return replace(self, rest=self.rest * factor if factor else 0.0)

    def places(self) -> npt.NDArray[np.bool_]:
        """For every address whether an element lies there."""
        out = np.zeros(self.extent, bool)
        out[self.addresses()] = True
        return out

    def expanded(self, ndim: int) -> View:
        """With axes of 1 in front, so that there are `ndim` axes."""
        more = ndim - len(self.shape)
        return replace(self, shape=(1,) * more + self.shape, strides=(1,) * more + self.strides)

    def without(self, axes: tuple[int, ...]) -> View:
        """The view of the elements with index 0 along `axes`, which keep a count of 1."""
        shape = tuple(1 if k in axes else c for k, c in enumerate(self.shape))
        return replace(self, shape=shape)

    def same_place(self, other: View) -> bool:
        """Whether every element lies where the same element of `other` lies."""
        return (
            self.shape == other.shape
            and self.vectors == other.vectors
            and self.period == other.period
            and self.first == other.first
            and all(
                c == 1 or s == t
                for c, s, t in zip(self.shape, self.strides, other.strides, strict=True)
            )
        )

    def serves(self, target: View) -> bool:
        """Whether this, broadcast to the shape of `target`, can be read at the addresses of
        `target`."""
        if self.cycle == 0 and self.vectors != target.vectors:
            return False
        if self.vectors > target.vectors:
            return False
        at = np.broadcast_to(self.expanded(len(target.shape)).addresses(), target.shape)
        difference = at - target.addresses()
        if self.cycle:
            difference %= self.cycle
        return not difference.any()

    def scattered(self, values: npt.NDArray[Any], fill: complex = 0) -> npt.NDArray[Any]:
        """The slots (vectors, slots) that hold `values`, broadcast to its shape, at its elements
        and `fill` elsewhere."""
        kind = np.complex128 if values.dtype.kind == "c" else np.float64
        flat = np.full(self.extent, fill, kind)
        flat[self.addresses()] = values
        if self.period:
            flat = np.tile(flat, self.slots // self.period)
        return flat.reshape(self.vectors, self.slots)

    def gathered(self, slots: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The inverse of scattered: the elements, from all slots."""
        return np.asarray(slots.reshape(-1)[self.addresses()])
