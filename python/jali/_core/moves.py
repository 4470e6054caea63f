"""Encrypted arrays whose elements lie in the slots of vectors: how elements are moved, and the one
place where operands are brought together. It is for every scheme that packs numbers into vectors.

A scheme's evaluator has a core with ``take(value, vectors)``, ``stack``, ``rotate``, ``add`` and
``multiply_array`` of ciphertexts, on all slots. What else differs are the methods that raise
NotImplementedError here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self, TypeVar

import numpy as np

from jali._core import array as arrays
from jali._core.axes import checked_shape
from jali._core.view import (
    Addresses,
    View,
    joint_shape,
    joint_view,
    masked_moves,
    place_of_result,
    spread,
)
from jali.errors import InvalidArgument, Unsupported

__all__ = ["Placed", "aligned", "of_other_evaluators", "of_product", "of_sum"]

Array = TypeVar("Array", bound="Placed")

#: A move whose elements go more different distances than this is refused: each distance takes a
#: product with a mask.
MOST_MOVES = 4096
#: So many rotations are kept for the masks that may need them again.
MOST_KEPT = 64


class Placed(arrays.Encrypted):
    """An encrypted array with a view of its slots. What it computes is its scheme's."""

    __slots__ = ("_ct", "_server", "_view")

    _ct: Any
    _server: Any
    # Where its elements lie in a batch of vectors of all slots. None for what a scheme packs in
    # another way, of which ``_viewed`` makes an array with a view.
    _view: View | None

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape, as NumPy's: (length,) of a vector, (batch, length) of a batch of vectors."""
        return self._ct.shape if self._view is None else self._view.shape

    @property
    def slots(self) -> int:
        """How many slots each vector has, including those past its length."""
        return int(self._ct.slots)

    # --- what a scheme has of its own -------------------------------------------------------------

    def _settled(self) -> Any:
        """Its ciphertext on the device, ready for every operation."""
        raise NotImplementedError

    def _new(self, value: Any, view: View | None = None) -> Self:
        """An array of this evaluator."""
        raise NotImplementedError

    def _seen(self, view: View) -> Self:
        """The same slots with another view."""
        return self._new(self._ct, view)

    def _viewed(self) -> Self:
        """The same numbers with a view."""
        return self

    def _held(self, value: Any) -> int:
        """How many vectors a ciphertext has."""
        raise NotImplementedError

    def _peak(self) -> float:
        """A bound on the modulus of what any slot holds."""
        raise NotImplementedError

    def _added(self, a: Any, b: Any) -> Any:
        """The sum of two ciphertexts, of which ``_bounded`` says how large it is."""
        return self._server._core.add(a, b)

    def _bounded(self, value: Any, like: Any, count: int, terms: int) -> Any:
        """A ciphertext whose numbers are sums of ``count`` numbers of ``like``, of which at most
        ``terms`` are not zero: as large as that says."""
        raise NotImplementedError

    def _masked(self, products: Iterator[Any], like: Any) -> Any:
        """The sum of products with disjoint masks, as large as ``like``."""
        raise NotImplementedError

    def _gathered_rows(self, parts: list[Any], rows: list[list[int]]) -> Any:
        """One ciphertext of all vectors of the parts. rows: where those of each part go."""
        raise NotImplementedError

    def _taken(self, vectors: Any) -> Any:
        """The vectors to take, in ascending order, if these are needed: others, too, where that
        costs less."""
        return vectors

    def _block_sum(self, source: Any, count: int) -> Any:
        """Slot i of the result is the sum of the slots i to i + count - 1, a power of two; None if
        the scheme has no faster way than sums of rotations."""
        return None

    # --- forms of the same value ------------------------------------------------------------------

    @property
    def _place(self) -> View:
        """Its view, which it has."""
        assert self._view is not None
        return self._view

    def _compact(self) -> Self:
        """The same array without vectors that hold none of its elements, so that nothing is
        computed on them."""
        view = self._view
        if view is None or len(used := view.used()) == view.vectors:
            return self
        value = self._server._core.take(self._settled(), list(used))
        first = view.first - used[0] * view.slots
        return self._new(value, replace(view.beside(), first=first, vectors=len(used)))

    def _wide(self, view: View) -> Self:
        """The same slots in every vector of the view."""
        if self._place.vectors == view.vectors:
            return self
        return self._new(self._server._core.take(self._settled(), [0] * view.vectors), self._view)

    def _cleaned(self) -> Self:
        """The same with zeros in all slots that hold no element: a mask, which takes one level,
        unless they are zero."""
        view = self._place.changing()
        if view.zero:
            return self._seen(view)
        mask = view.scattered(np.ones(()))
        return self._new(self._server._core.multiply_array(self._settled(), mask), view.zeroed())

    def _rest_beside(self, result: View) -> float:
        """A bound on its slots that hold no element of a result with this view."""
        return self._place.rest_beside(result, self._peak())

    # --- how elements are moved -------------------------------------------------------------------

    def broadcast_to(self, shape: int | tuple[int, ...]) -> Self:
        """The array repeated to a larger shape, as NumPy does it: rotations and, if other slots are
        not zero, a mask."""
        shape = checked_shape(shape)
        here = self._viewed()
        if shape == here.shape:
            return here
        if joint_shape(here.shape, shape) != shape:
            raise InvalidArgument(f"an array of the shape {here.shape} cannot become {shape}")
        view = here._place
        place = spread(view.expanded(len(shape)), shape) or View.dense(shape, here.slots)
        x = here._laid(place)
        known, view = x._place.changing(), joint_view(place, x._place)
        copies = known.copies or known.extent != view.extent
        return x._wide(view)._seen(replace(view, rest=known.rest, copies=copies, whole=None))

    def _laid(self, target: View) -> Self:
        """This, broadcast to the target's shape, such that it can be read at the target's
        addresses.

        It is rotated, masked if other elements are in the way, and repeated by rotations along new
        axes.
        """
        if self._place.serves(target):
            return self
        old = self._place.expanded(len(target.shape))
        new_axes = tuple(
            k
            for k, (c, t) in enumerate(zip(old.shape, target.shape, strict=True))
            if c == 1 and t > 1
        )
        base = target.without(new_axes)
        if new_axes:
            base = replace(base, vectors=int(base.addresses().max()) // base.slots + 1)
        x = self._seen(old)._moved(base, clean=bool(new_axes))
        for k in sorted(new_axes, key=lambda k: abs(target.strides[k])):
            x = x._repeated(k, target)
        if not x._place.serves(target):
            raise _cannot(old, f"be repeated to {target.shape} where the other operand lies")
        return x

    def _moved(self, target: View, clean: bool = False, exact: bool = False) -> Self:
        """This with its elements at the addresses of `target`, which has its shape.

        clean: all other slots are zero then.
        exact: so they are, in exactly the target's vectors.

        If the elements do not all go the same distance, it takes one level, a product with a mask
        for every distance, and about 2 sqrt(distances) rotations.
        """
        view, core = self._place, self._server._core
        vectors, steps = view.steps_to(target)
        moves = np.unique(np.stack([vectors, steps]), axis=1).T
        if len(moves) == 1:
            vector, step = (int(m) for m in moves[0])
            # What repeats is not alone in its slots: a mask has to leave one copy.
            repeats = clean and view.period
            new = None if repeats or (exact and vector) else view.rotated(step, target, exact)
            if new is not None:
                ready = self._cleaned() if clean or exact else self
                value = ready._settled()
                if vector != 0 or self._held(value) != new.vectors:
                    # Where there is no such vector, any other stands: nobody reads its slots.
                    last = self._held(value) - 1
                    rows = range(vector, vector + new.vectors)
                    value = core.take(value, [min(max(v, 0), last) for v in rows])
                value = core.rotate(value, step) if step else value
                known, same = ready._place.changing(), vector == 0 and new.vectors == view.vectors
                rest, copies = (known.rest, known.copies) if same else (math.inf, False)
                return self._new(value, replace(new, rest=rest, copies=copies, whole=None))
        if len(moves) > MOST_MOVES:
            raise _cannot(
                view,
                f"move from the strides {view.strides} to {target.strides}: that is by more than {MOST_MOVES} different distances, "
                "each of which takes a product with a mask",
            )
        value = self._gathered(target, vectors, steps)
        return self._new(value, replace(target.zeroed(), period=0))

    def _gathered(self, target: View, vectors: Addresses, steps: Addresses) -> Any:
        """The target's vectors with every element at its place, and zeros elsewhere.

        vectors, steps: of every element, how many vectors and then slots it moves down.
        """
        core, source, everywhere = self._server._core, self._settled(), bool(self._place.cycle)
        turned: dict[tuple[int, ...], Any] = {}

        def rotated(vector: int, step: int, group: list[int]) -> Any:
            last = self._held(source) - 1
            held = [0] if everywhere else [min(max(row + vector, 0), last) for row in group]
            key = (step, *held)
            if key not in turned:
                if len(turned) == MOST_KEPT:
                    turned.clear()
                value = source if held == [*range(self._held(source))] else core.take(source, held)
                turned[key] = core.rotate(value, step) if step else value
            value = turned[key]
            return value if len(held) == len(group) else core.take(value, [0] * len(group))

        groups, parts = [], []
        for group, moves in masked_moves(self._place, target, vectors, steps):
            total: Any = None
            for giant, masks in moves:
                products = (
                    core.multiply_array(rotated(vector, baby, group), mask)
                    for vector, baby, mask in masks
                )
                # The masks are disjoint, so that no slot of a sum holds more than one number.
                value = self._masked(products, source)
                value = core.rotate(value, giant) if giant else value
                if total is not None:
                    value = self._bounded(self._added(total, value), source, 2, 1)
                total = value
            assert total is not None
            groups.append(group)
            parts.append(total)
        return parts[0] if len(parts) == 1 else self._gathered_rows(parts, groups)

    def _repeated(self, k: int, target: View) -> Self:
        """This, which is zero elsewhere, with its elements repeated along axis k, as the target has
        it."""
        view, stride, count = self._place, target.strides[k], target.shape[k]
        step = abs(stride)
        if view.cycle and step % view.cycle == 0:
            return self  # it is there already, because addresses count modulo the cycle
        at = view.addresses()
        if (
            view.cycle
            and view.cycle % step == 0
            and step * count > view.cycle // 2
            and at.min() // step == at.max() // step
        ):
            # Around the whole cycle: every element then repeats with the period `step`.
            out = self._windows(step, view.cycle // step, 1)
            return out._seen(replace(view, first=view.first % step, period=step))
        across = replace(view.stretched(k, target), vectors=target.vectors, period=0, whole=None)
        apart = stride // view.slots
        if stride > 0 and stride % view.slots == 0 and view.vectors <= apart:
            # Whole vectors are repeated.
            rows = [min(v % apart, view.vectors - 1) for v in range(target.vectors)]
            value = self._server._core.take(self._settled(), rows)
            copies = view.copies or view.vectors != apart
            return self._new(value, replace(across, copies=copies))
        last = at % view.slots + stride * (count - 1)
        if last.max() < view.slots and last.min() >= 0:
            # y[s] = sum_t x[s - t stride] has the element at s in all `count` places, since x is
            # zero elsewhere.
            return self._windows(-stride, count, 1)._seen(view.stretched(k, target))
        # Repetitions go from one vector to the next: each vector takes all its numbers from one,
        # whose first `stride` slots hold them. That one is filled, and then taken several times.
        index = np.arange(count).reshape((count,) + (1,) * at.ndim)
        source, place = np.broadcast_to(at // view.slots, (count, *at.shape)), at + index * stride
        from_vector = np.zeros(target.vectors, np.int64)
        from_vector[place // view.slots] = source
        if (
            stride <= 0
            or view.slots % stride
            or (at % view.slots >= stride).any()
            or (from_vector[place // view.slots] != source).any()
        ):
            raise _cannot(view, f"be repeated {count} times where the other operand lies")
        filled = self._windows(-stride, view.slots // stride, 1)
        value = self._server._core.take(filled._settled(), from_vector.tolist())
        return self._new(value, replace(across, copies=True))

    def _windows(self, stride: int, count: int, terms: int) -> Self:
        """y[s] = sum_{t < count} x[s + t stride], cyclically over the slots of each vector, by
        about log2(count) rotations.

        terms: how many of them are not zero, at most.
        """
        core, source = self._server._core, self._settled()
        if stride == 1 and terms == count and count & (count - 1) == 0:
            block = self._block_sum(source, count)
            if block is not None:
                return self._new(block, self._view)
        power, width = source, 1  # the sum of `width` terms
        total: Any = None
        done = 0
        while True:
            if count & width:
                shifted = core.rotate(power, done * stride % self.slots) if done else power
                done += width
                total = shifted if total is None else self._added(total, shifted)
                total = self._bounded(total, source, done, terms)
            if 2 * width > count:
                break
            power = self._added(power, core.rotate(power, width * stride % self.slots))
            width *= 2
            power = self._bounded(power, source, width, terms)
        assert total is not None
        return self._new(total, self._view)


# --- how operands are brought together ------------------------------------------------------------


def _cannot(view: View, move: str) -> Unsupported:
    return Unsupported(
        f"an array of the shape {view.shape} cannot {move}: encrypt it in the shape of the result, repeated by "
        "np.broadcast_to(values, shape).copy(), which each owner of data can do apart"
    )


def of_other_evaluators() -> InvalidArgument:
    """The error for operands of different evaluators."""
    return InvalidArgument(
        "the operands are bound to different evaluators: bind both to the same one"
    )


def aligned(x: Array, y: Array) -> tuple[Array, Array, View]:
    """Both arrays so that equal slots hold the elements that belong together, and the view of the
    result. Where this could lie as either of them, it lies as the first.

    Raises InvalidArgument for shapes that do not fit.
    """
    a = x._viewed()._compact()
    b = a if x is y else y._viewed()._compact()
    first, second = a._place, b._place
    if first.slots != second.slots:
        raise InvalidArgument(
            f"operands are packed in {first.slots} and {second.slots} slots: encrypt both with the same slots="
        )
    if first.same_place(second):
        return a, b, first
    shape = joint_shape(first.shape, second.shape)
    if first.shape == shape and second.serves(first):
        view = joint_view(first, second)
    elif second.shape == shape and first.serves(second):
        view = joint_view(second, first)
    else:
        target = place_of_result(first, second, shape)
        a, b = a._laid(target), b._laid(target)
        view = joint_view(target, a._place, b._place)
    return a._wide(view), b._wide(view), view


def of_sum(x: Placed, y: Placed, view: View) -> View:
    """The view of a sum, a difference or a maximum of both, which `together` gave."""
    rest = x._rest_beside(view) + y._rest_beside(view)
    return replace(view, rest=rest, copies=False, whole=None)


def of_product(x: Placed, y: Placed, view: View) -> View:
    """The view of a product of both."""
    first, second = x._rest_beside(view), y._rest_beside(view)
    a, b = x._place, y._place
    if 0 in (first, second) or b.clears(a, view) or a.clears(b, view):
        return view.zeroed()
    return replace(view, rest=first * second, copies=False, whole=None)
