"""The arithmetic of encrypted arrays, and the one place where operands are brought together.

An operation goes the same way whatever the shapes of its operands are: ``together`` broadcasts them
and moves their elements to common slots (``_laid``, ``_moved``), the engine computes on all slots,
and the view of the result says where its elements lie.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar, Union

import numpy as np
import numpy.typing as npt

from jali._core import array as arrays
from jali._core.arrays import as_numbers
from jali._jali.ckks import Ciphertext, ProductSum
from jali.ckks.operands import checked_shape
from jali.ckks.view import (
    Addresses,
    View,
    joint_shape,
    joint_view,
    masked_moves,
    place_of_result,
    spread,
)
from jali.errors import InvalidArgument, Unsupported

if TYPE_CHECKING:
    from jali.ckks.evaluator import Evaluator

__all__ = ["Arithmetic", "Operand", "of_other_evaluators", "of_sum", "together"]

#: The other operand of an EncryptedArray's arithmetic.
Operand = Union[
    "Arithmetic", complex, Fraction, npt.NDArray[Any], list[Any], tuple[Any, ...], range
]
Array = TypeVar("Array", bound="Arithmetic")

#: A move whose elements go more different distances than this is refused: each distance takes a
#: product with a mask.
MOST_MOVES = 4096
#: So many rotations are kept for the masks that may need them again.
MOST_KEPT = 64


class Arithmetic(arrays.Encrypted):
    """An encrypted array with NumPy's operators. What else it has is in shaped.py and array.py."""

    __slots__ = ("_ct", "_made_in", "_server", "_view")

    def __init__(
        self, server: Evaluator, ciphertext: Ciphertext | ProductSum, view: View | None = None
    ) -> None:
        self._server = server
        # Products are computed when it is known what follows: a use of the value itself, or a sum
        # of products.
        self._ct = ciphertext
        # Where its elements lie in a batch of vectors of all slots. None for a vector and for a
        # batch of vectors, of which the ciphertext knows how they lie.
        self._view = view
        self._made_in = server._recording

    # --- what is known of it --------------------------------------------------------------------

    @property
    def ciphertext(self) -> Ciphertext:
        """The ciphertext to send or decrypt, in the host's memory. It has two parts and the
        canonical scale of its level, and knows where the elements lie."""
        core = self._server._core
        done = self._settled()
        if self._view is not None:
            view = self._view.changing()
            done = core.with_view(done, view.as_tuple(), view.zero)
        return done if core.on_host else core.send_back(done)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape, as NumPy's: (length,) of a vector, (batch, length) of a batch of vectors."""
        return self._ct.shape if self._view is None else self._view.shape

    @property
    def slots(self) -> int:
        """How many slots each vector has, including those past its length."""
        return self._ct.slots

    # --- operators ------------------------------------------------------------------------------

    def __add__(self, other: Operand) -> Self:
        if not isinstance(other, Arithmetic):
            return self._plus(other, negate=False)
        x, y, view = together(self, other, commutes=True)
        a, b, core = x._ct, y._ct, self._server._core
        joined = None
        if not isinstance(a, Ciphertext) and not isinstance(b, Ciphertext):
            joined = core.join(a, b)
        total = core.add(x._summand(y), y._summand(x)) if joined is None else joined
        return type(self)(self._server, total, view and of_sum(x, y, view))

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Self:
        if not isinstance(other, Arithmetic):
            return self._plus(other, negate=True)
        x, y, view = together(self, other)
        difference = self._server._core.sub(x._summand(y), y._summand(x))
        return type(self)(self._server, difference, view and of_sum(x, y, view))

    def __rsub__(self, other: Operand) -> Self:
        return -self + other

    def __neg__(self) -> Self:
        return self._new(self._server._core.negate(self._whole()), self._view)

    def __pos__(self) -> Self:
        return self

    def conj(self) -> Self:
        """The complex conjugate of every number. It needs the conjugation key."""
        return self._new(self._server._core.conjugate(self._settled()), self._view)

    conjugate = conj

    def __mul__(self, other: Operand) -> Self:
        core = self._server._core
        if isinstance(other, Arithmetic):
            x, y, view = together(self, other, commutes=True, equal_batches=True)
            product = core.product(x._settled(), y._settled())
            return type(self)(self._server, product, view and _of_product(x, y, view))
        value = arrays.number(other)
        if value is not None:
            x = self._compact()
            view = x._view and x._view.scaled(abs(value))
            return type(self)(self._server, core.multiply_scalar(x._whole(), value), view)
        clear = self._with_clear(other)
        if clear is None:
            return NotImplemented
        x, numbers = clear
        view = x._view and x._view.zeroed()
        return self._new(core.multiply_array(x._settled(), numbers), view)

    __rmul__ = __mul__

    def __rtruediv__(self, other: object) -> NoReturn:
        raise Unsupported(
            "division by an encrypted value is not possible: multiply by ckks.functions.inverse(...) of it"
        )

    def __truediv__(self, other: Operand) -> Self:
        if isinstance(other, Arithmetic):
            other.__rtruediv__(self)
        value = arrays.number(other)
        if value is not None:
            if value == 0:
                raise InvalidArgument("division by zero: divide by another number")
            return self * (1 / value)
        array = arrays.operand(other, 1)
        if array is None:
            return NotImplemented
        if array.dtype.kind not in "biufc":
            return self * array  # this raises the error that says what is wrong with it
        if not np.all(array):
            raise InvalidArgument("division by an array that holds a zero: replace the zeros first")
        inverse: npt.NDArray[Any]
        with np.errstate(all="ignore"):  # an infinite inverse is refused below
            if self._view is None:
                inverse = np.reciprocal(array.astype(np.result_type(array, np.float64)))
            else:  # rounds complex numbers differently
                inverse = 1 / as_numbers(array, "the array's numbers")
        return self * inverse

    def __pow__(self, exponent: int, modulo: Any = None) -> Self:
        if modulo is not None:
            raise Unsupported("encrypted numbers have no remainder: call pow with two arguments")
        result: Self = arrays.power({1: self}, arrays.exponent(exponent))
        return result

    # --- operands in the clear --------------------------------------------------------------------

    def _plus(self, other: Any, *, negate: bool) -> Self:
        """The sum with a number or an array, or the difference."""
        core, value = self._server._core, arrays.number(other)
        if value is not None and (self._view is None or not self._view.zero):
            x, value = self._compact(), -value if negate else value
            view = x._view and x._view.raised(abs(value))
            products = x._ct
            joined = core.join_scalar(products, value) if isinstance(products, ProductSum) else None
            total = core.add_scalar(x._whole(), value) if joined is None else joined
            return type(self)(self._server, total, view)
        clear = self._with_clear(other) if value is None else self._with_number(value)
        if clear is None:
            return NotImplemented  # type: ignore[no-any-return]
        x, numbers = clear
        view = x._view and x._view.added()
        return self._new(core.add_array(x._whole(), numbers, negate), view)

    def _with_clear(self, other: Any) -> tuple[Self, npt.NDArray[Any]] | None:
        """This array, broadcast to the shape of the result, and numbers as the engine takes them
        beside it; None if `other` is no array. Raises InvalidArgument for shapes that do not fit.
        """
        here = self.shape
        array = arrays.operand(other, here[-1] if self._view is None else 1)
        if array is None:
            return None
        if self._view is None:
            # The engine lays the numbers of a vector beside it, and repeats one for a batch.
            if array.shape == here or array.shape == here[-1:]:
                return self, array
            if array.ndim and array.shape[-1] not in (1, here[-1]) and here[-1] != 1:
                raise InvalidArgument(
                    f"the array has the length {array.shape[-1]} and the encrypted vector {here[-1]}: make them equal, or one of "
                    "them 1. Slots behind a vector are reached by x.with_length(x.slots), which is as long as all slots"
                )
            if joint_shape(here, array.shape) == here:
                return self, array
        numbers = as_numbers(array, "the array's numbers")
        x = self._viewed()._compact().broadcast_to(joint_shape(here, numbers.shape))
        return x, x._place.scattered(numbers)

    def _with_number(self, value: complex) -> tuple[Self, npt.NDArray[Any]]:
        """The same for one number, which is laid beside the elements alone."""
        x = self._compact()
        return x, x._place.scattered(np.asarray(value if value.imag else value.real))

    # --- forms of the same value ------------------------------------------------------------------

    def _new(self, value: Ciphertext | ProductSum, view: View | None = None) -> Self:
        """An array of this evaluator."""
        return type(self)(self._server, value, view)

    def _like(self, ciphertext: Ciphertext) -> Self:
        """An array of its shape, of a ciphertext with other numbers in the same slots."""
        return self._new(ciphertext, self._view and self._view.changing())

    def _seen(self, view: View) -> Self:
        """The same slots with another view. Products that are still to be computed stay so."""
        out = self._new(self._ct, view)
        out._made_in = self._made_in
        return out

    def _viewed(self) -> Self:
        """The same numbers with a view: a vector or a batch gets that of its slots."""
        if self._view is not None:
            return self
        value = self._settled()
        return self._new(self._server._core.with_view(value, None, False), View.of(value))

    @property
    def _place(self) -> View:
        """Its view, which it has."""
        assert self._view is not None
        return self._view

    def _settled(self) -> Ciphertext:
        """Its ciphertext on the device, relinearised and rescaled."""
        value, core = self._ct, self._server._core
        # Ciphertexts come first: isinstance() of a class of the extension takes 0.1 us if the
        # answer is no.
        if isinstance(value, Ciphertext):
            return value if core.is_settled(value) else self._kept(core.normalise(value))
        return self._kept(core.settle(value))

    def _whole(self) -> Ciphertext:
        """Its ciphertext as it is. Products that are still to be computed are relinearised and
        rescaled."""
        value = self._ct
        return value if isinstance(value, Ciphertext) else self._settled()

    def _summand(self, beside: Arithmetic) -> Ciphertext:
        """Its ciphertext, to be added to `beside`. Products stay unrelinearised if `beside` is
        unrelinearised, too."""
        value = self._ct
        if isinstance(value, Ciphertext):
            return value
        core, other = self._server._core, beside._ct
        owed = isinstance(other, ProductSum) or not core.is_settled(other)
        return self._kept(core.expand(value)) if owed else self._settled()

    def _kept(self, value: Ciphertext) -> Ciphertext:
        """Keeps the same value in another form, so that later operations need not compute it
        again."""
        # A form that is made while a function is recorded is not kept, because it lies in the
        # memory of the recording, which only its runs write.
        if self._made_in is self._server._recording:
            self._ct = value
        return value

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
        peak = self._ct.peak if isinstance(self._ct, Ciphertext) else math.inf
        return self._place.rest_beside(result, peak)

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
                if vector != 0 or value.batch != new.vectors:
                    # Where there is no such vector, any other stands: nobody reads its slots.
                    last = value.batch - 1
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

    def _gathered(self, target: View, vectors: Addresses, steps: Addresses) -> Ciphertext:
        """The target's vectors with every element at its place, and zeros elsewhere.

        vectors, steps: of every element, how many vectors and then slots it moves down.
        """
        core, source, everywhere = self._server._core, self._settled(), bool(self._place.cycle)
        turned: dict[tuple[int, ...], Ciphertext] = {}

        def rotated(vector: int, step: int, group: list[int]) -> Ciphertext:
            last = source.batch - 1
            held = [0] if everywhere else [min(max(row + vector, 0), last) for row in group]
            key = (step, *held)
            if key not in turned:
                if len(turned) == MOST_KEPT:
                    turned.clear()
                value = source if held == [*range(source.batch)] else core.take(source, held)
                turned[key] = core.rotate(value, step) if step else value
            value = turned[key]
            return value if value.batch == len(group) else core.take(value, [0] * len(group))

        groups, parts = [], []
        for group, moves in masked_moves(self._place, target, vectors, steps):
            total: Ciphertext | None = None
            for giant, masks in moves:
                part: Any = None
                for vector, baby, mask in masks:
                    one = self._new(core.multiply_array(rotated(vector, baby, group), mask))
                    part = one if part is None else part + one
                # The masks are disjoint, so that no slot of a sum holds more than one number.
                value = core.with_bounds(part._settled(), source, 1)
                value = core.rotate(value, giant) if giant else value
                if total is not None:
                    value = core.with_bounds(core.add(total, value), source, 1)
                total = value
            assert total is not None
            groups.append(group)
            parts.append(total)
        if len(parts) == 1:
            return parts[0]
        return core.take(core.stack(parts), np.argsort(np.concatenate(groups)).tolist())

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
            return self._new(core.sum(source, count), self._view)
        power, width = source, 1  # the sum of `width` terms
        total: Ciphertext | None = None
        done = 0
        while True:
            if count & width:
                shifted = core.rotate(power, done * stride % self.slots) if done else power
                done += width
                total = shifted if total is None else core.add(total, shifted)
                total = core.with_bounds(total, source, min(done, terms))
            if 2 * width > count:
                break
            power = core.add(power, core.rotate(power, width * stride % self.slots))
            width *= 2
            power = core.with_bounds(power, source, min(width, terms))
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


def together(
    x: Array, y: Array, *, commutes: bool = False, equal_batches: bool = False
) -> tuple[Array, Array, View | None]:
    """Both arrays so that equal slots hold the elements that belong together, and the view of the
    result: None for vectors and batches of vectors of one length, which the engine takes as they
        lie.

    Raises InvalidArgument for shapes that do not fit.

    commutes: whether the operands may be exchanged. Where the result could lie as either of them,
        it lies as an array rather than as a vector, and otherwise as the first.
    equal_batches: whether the operation takes batches of equally many vectors alone; others repeat
        a single vector.
    """
    if x._server is not y._server:
        raise of_other_evaluators()
    if x._view is None and y._view is None:
        here, there = x._ct.shape, y._ct.shape
        m, n = here[-1], there[-1]
        repeats = not equal_batches or math.prod(here) == math.prod(there)
        if here == there or (m == n and repeats):
            return x, y, None
        # The engine takes a vector that fills the slots beside any other; NumPy does not.
        if m != n and 1 not in (m, n):
            raise InvalidArgument(
                f"operands have the lengths {m} and {n}: make them equal, or call with_length() if the zeros past "
                "the end are part of the vector"
            )
    elif commutes and x._view is None:
        x, y = y, x
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


def of_sum(x: Arithmetic, y: Arithmetic, view: View) -> View:
    """The view of a sum, a difference or a maximum of both, which `together` gave."""
    rest = x._rest_beside(view) + y._rest_beside(view)
    return replace(view, rest=rest, copies=False, whole=None)


def _of_product(x: Arithmetic, y: Arithmetic, view: View) -> View:
    """The view of a product of both."""
    first, second = x._rest_beside(view), y._rest_beside(view)
    a, b = x._place, y._place
    if 0 in (first, second) or b.clears(a, view) or a.clears(b, view):
        return view.zeroed()
    return replace(view, rest=first * second, copies=False, whole=None)
