"""Where the elements of an encrypted array lie in the slots of its vectors, in the terms of NumPy's
strides; and where those of a result shall lie."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._jali.ckks import dense_view
from jali.errors import InvalidArgument

__all__ = [
    "Addresses",
    "View",
    "fitting",
    "joint_shape",
    "joint_view",
    "masked_moves",
    "place_of_result",
    "spread",
]

Addresses = npt.NDArray[np.int64]
#: Zeros and ones for the slots of several vectors.
Mask = npt.NDArray[np.float64]
#: Up to so many distances have a rotation each.
FEW_MOVES = 8


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
        """The view of a fresh array (ckks::dense_view, which every scheme of packed numbers
        follows)."""
        (axes, first, period), vectors = dense_view(list(shape), slots)
        return View(shape, tuple(stride for _, stride in axes), first, slots, vectors, period, 0.0)

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

    def raised(self, number: float) -> View:
        """The view after a number of this modulus was added to all slots."""
        known = self.changing()
        return replace(known, rest=known.rest + number)

    def added(self) -> View:
        """The view after numbers were added to the elements, and to no copies of them."""
        return replace(self, rest=math.inf, copies=False) if self.copies else self

    def rest_beside(self, result: View, peak: float) -> float:
        """A bound on the slots that hold no element of a result with that view. peak: of all."""
        known = self.beside()
        if known.extent != result.extent or known.copies:
            return peak  # an array that repeats more often than the result has its elements there
        return 0.0 if known.zero else min(known.rest, peak)

    def clears(self, part: View, result: View) -> bool:
        """Whether this, as a factor, is zero wherever the other one, a part of an array, has
        numbers beside the elements of their product."""
        if not self.zero or result.period:
            return False
        other = np.ones((result.vectors, result.slots), bool)
        for one in (self, part.whole):
            if one is not None:
                copies = result.slots // one.period if one.period else 1
                other &= np.tile(one.places(), copies).reshape(-1, result.slots)
        other.reshape(-1)[result.addresses()] = False
        return not other.any()

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

    def stretched(self, axis: int, target: View) -> View:
        """With the count and the stride that the target has along this axis."""
        shape, strides = list(self.shape), list(self.strides)
        shape[axis], strides[axis] = target.shape[axis], target.strides[axis]
        return replace(self, shape=tuple(shape), strides=tuple(strides))

    def steps_to(self, target: View) -> tuple[Addresses, Addresses]:
        """How many vectors, and then slots, every element moves down to its place in `target`,
        which has the same shape."""
        source, place = self.addresses().reshape(-1), target.addresses().reshape(-1)
        if self.cycle:  # whichever vector is asked for, this one has it
            return np.zeros_like(source), (source - place) % self.cycle
        slots = self.slots
        return source // slots - place // slots, (source - place) % slots

    def rotated(self, step: int, target: View, exact: bool) -> View | None:
        """The view after a rotation by `step` that brings all elements to the target's addresses,
        None if there is none. exact: in the target's vectors, and in no others."""
        if exact and (self.period or self.vectors != target.vectors):
            return None
        if not self.cycle:
            return replace(target, period=0)
        first = (self.first - step) % self.cycle
        new = replace(self, first=first)
        at = new.addresses()
        if at.min() < 0:  # with negative strides, the first element is not the lowest
            new = replace(new, first=first + self.cycle)
            at = new.addresses()
        return new if at.max() < self.cycle and at.min() >= 0 else None

    def scattered(self, values: npt.NDArray[Any], fill: complex = 0) -> npt.NDArray[Any]:
        """The slots (vectors, slots) that hold `values`, broadcast to its shape, at its elements
        and `fill` elsewhere."""
        kind = {"c": np.complex128, "i": np.int64}.get(values.dtype.kind, np.float64)
        flat: npt.NDArray[Any] = np.full(self.extent, fill, kind)
        flat[self.addresses()] = values
        if self.period:
            flat = np.tile(flat, self.slots // self.period)
        return flat.reshape(self.vectors, self.slots)

    def gathered(self, slots: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The inverse of scattered: the elements, from all slots."""
        return np.asarray(slots.reshape(-1)[self.addresses()])


def joint_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise InvalidArgument(
            f"arrays of the shapes {a} and {b} do not fit: counts must be equal, or one of them 1"
        ) from None


def spread(view: View, shape: tuple[int, ...]) -> View | None:
    """The view of an array of this shape whose element 0 along new axes lies where `view` says;
    None if there is none.

    view: with as many axes as `shape`. New axes get the strides of a dense array of the rest where
        these are free.
    """
    strides = list(view.strides)
    taken = max(
        (abs(s) * c for s, c in zip(view.strides, view.shape, strict=True) if c > 1), default=1
    )
    for k in reversed(range(len(shape))):
        if view.shape[k] == 1 and shape[k] > 1:
            block = 1 << (taken - 1).bit_length() if taken <= view.slots else 0
            if block == 0:
                return None
            strides[k] = block
            taken = block * shape[k]
    return fitting(shape, tuple(strides), view.first, view.slots)


def fitting(
    shape: tuple[int, ...], strides: tuple[int, ...], first: int, slots: int
) -> View | None:
    """A view with these strides in as many vectors as it takes, if its elements lie apart and
    blocks do not cross vectors."""
    view = View(shape, strides, first, slots, 1)
    at = view.addresses()
    if at.min() < 0 or len(np.unique(at)) != at.size:
        return None
    return replace(view, vectors=int(at.max()) // slots + 1)


def joint_view(target: View, *others: View) -> View:
    """The target's view with the largest period of all."""
    cycles = [view.cycle for view in (target, *others)]
    period = 0 if 0 in cycles else max(cycles)
    return replace(target, period=0 if period == target.slots else period)


def place_of_result(a: View, b: View, shape: tuple[int, ...]) -> View:
    """Where the elements of a result of this shape shall lie."""
    for view in sorted((a, b), key=lambda v: -v.extent):
        if view.shape == shape:
            return replace(view, period=0)
    a, b = a.expanded(len(shape)), b.expanded(len(shape))
    for one, two in ((a, b), (b, a)):
        strides = tuple(
            s if c > 1 else t for s, c, t in zip(one.strides, one.shape, two.strides, strict=True)
        )
        found = fitting(shape, strides, one.first, one.slots)
        if found is not None:
            return found
    return View.dense(shape, a.slots)


def masked_moves(
    view: View, target: View, vectors: Addresses, steps: Addresses
) -> Iterator[tuple[list[int], Iterator[tuple[int, Iterator[tuple[int, int, Mask]]]]]]:
    """How elements that go different distances are gathered: for every group of the target's
    vectors whose elements make the same moves, which are computed together, (giant, masks), and
    for each of these (vector, baby, mask).

    The elements of a mask are the array's after a move by so many vectors and a rotation by `baby`;
    the sum of these goes to its place by a rotation by `giant`.

    vectors, steps: of every element, how many vectors and then slots it moves down.
    """
    slots = view.slots
    place = target.addresses().reshape(-1)
    rows = place // slots
    moves = np.stack([vectors, steps], axis=1)
    most = max(len(np.unique(moves[rows == row], axis=0)) for row in np.unique(rows))
    near, far = _halves(view, target, steps, most) if most > FEW_MOVES else (steps, 0 * steps)
    moves = np.stack([far, vectors, near], axis=1)
    alike: dict[bytes, list[int]] = {}
    for row in range(target.vectors):
        alike.setdefault(np.unique(moves[rows == row], axis=0).tobytes(), []).append(row)

    def masks(
        giant: int, ours: npt.NDArray[np.bool_], at: Addresses, count: int
    ) -> Iterator[tuple[int, int, Mask]]:
        pairs = np.unique(np.stack([vectors, near])[:, ours], axis=1).T if ours.any() else [(0, 0)]
        for vector, baby in pairs:
            mask = np.zeros((count, slots))
            mask.reshape(-1)[at[ours & (vectors == vector) & (near == baby)]] = 1
            # The rotation by `giant` comes after the mask.
            yield int(vector), int(baby), np.roll(mask, giant, axis=1)

    def giants(group: list[int]) -> Iterator[tuple[int, Iterator[tuple[int, int, Mask]]]]:
        inside = np.isin(rows, group)
        at = np.searchsorted(group, rows) * slots + place % slots
        for giant in np.unique(far[inside]).tolist() if inside.any() else [0]:
            yield giant, masks(giant, inside & (far == giant), at, len(group))

    for group in alike.values():
        yield group, giants(group)


def _halves(
    view: View, target: View, steps: Addresses, distances: int
) -> tuple[Addresses, Addresses]:
    """Every element's step as the sum, modulo the cycle, of two rotations of which there are few:
    about sqrt(distances) of each, if so many steps of a vector are different.

    Along an axis whose stride changes by d the steps are multiples of d; axes that change by the
    same number have these together.
    """
    multiples: dict[int, Any] = {}
    for k, count in enumerate(view.shape):
        change = view.strides[k] - target.strides[k]
        if count > 1 and change:
            index = np.arange(count).reshape((count,) + (1,) * (len(view.shape) - 1 - k))
            before = multiples.get(abs(change), 0)
            multiples[abs(change)] = before + (index if change > 0 else -index)
    near: Any = 0
    room, done = int(np.ceil(np.sqrt(distances))), 1
    for change, index in multiples.items():
        index = index - index.min()
        width = max(1, min(int(index.max()) + 1, round(room / done)))
        near = near + index % width * change
        done *= width
    around = view.cycle or view.slots
    near = np.broadcast_to(near, view.shape).reshape(-1) % around
    # Elements with one step are moved together, as the first of them.
    first, same = np.unique(steps, return_index=True, return_inverse=True)[1:]
    near = near[first][same.reshape(-1)]
    return near, (steps - near) % around
