"""Encrypted arrays of any shape: how their elements are brought together, summed and multiplied."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jali._core import array as arrays
from jali._core import checks
from jali._jali.ckks import Ciphertext, Layout, ProductSum
from jali.ckks.array import ROUNDING, EncryptedArray, Interval, Operand
from jali.ckks.declared import PEAK
from jali.ckks.moves import joint_view, laid, spread, together
from jali.ckks.operands import axes as numbered
from jali.ckks.operands import checked_shape, joint_shape, numbers
from jali.ckks.sums import summed
from jali.ckks.view import View
from jali.errors import IndexOutOfRange, InvalidArgument, Unsupported

if TYPE_CHECKING:
    from jali.ckks.evaluator import Evaluator

__all__ = ["DenseArray", "dense"]


def dense(x: EncryptedArray) -> DenseArray:
    """The same numbers as an array of any shape. A vector or a batch gets the view of its slots."""
    if isinstance(x, DenseArray):
        return x
    value = x._settled()
    return DenseArray(x.evaluator, x.evaluator._core.with_view(value, None, False), View.of(value))


def rest_beside(x: DenseArray, view: View) -> float:
    """A bound on the slots of x that hold no element of a result with this view."""
    known = x._view.beside()
    same = known.extent == view.extent and not known.copies
    if same and known.zero:
        return 0.0
    # If x repeats more often than the result does, its elements lie there.
    peak = x._ct.peak if isinstance(x._ct, Ciphertext) else math.inf
    return min(known.rest, peak) if same else peak


def of_sum(a: DenseArray, b: DenseArray, view: View) -> View:
    """The view of a sum, a difference or a maximum of both."""
    rest = rest_beside(a, view) + rest_beside(b, view)
    return replace(view, rest=rest, copies=False, whole=None)


def of_product(a: DenseArray, b: DenseArray, view: View) -> View:
    """The view of a product of both."""
    first, second = rest_beside(a, view), rest_beside(b, view)
    zero = 0 in (first, second) or any(cleared(x._view, y._view, view) for x, y in ((a, b), (b, a)))
    return view.zeroed() if zero else replace(view, rest=first * second, copies=False, whole=None)


def cleared(part: View, factor: View, view: View) -> bool:
    """Whether a factor is zero wherever the other one, a part of an array, has numbers beside the
    elements of their product."""
    if not factor.zero or view.period:
        return False
    other = np.ones((view.vectors, view.slots), bool)
    for one in (factor, part.whole):
        if one is not None:
            copies = view.slots // one.period if one.period else 1
            other &= np.tile(one.places(), copies).reshape(-1, view.slots)
    other.reshape(-1)[view.addresses()] = False
    return not other.any()


class DenseArray(EncryptedArray):
    """An encrypted array of any shape, whose elements lie densely in the slots of one or several
    vectors.

    Evaluator.bind makes it from what Client.encrypt makes of a matrix, or of a vector longer than
    the slots. It has EncryptedArray's arithmetic, with NumPy's broadcasting. Slices, transposes and
    reshapes cost nothing: they say where the elements lie. Two arrays whose elements lie apart are
    brought together by rotations, which need keys (``rotations="powers"`` is always enough). Where
    other elements are in the way, they are masked, which takes one level; methods say where.
    """

    __slots__ = ("_view",)

    def __init__(self, server: Evaluator, ciphertext: Ciphertext | ProductSum, view: View) -> None:
        # The ciphertext itself knows nothing of the view: it is a batch of vectors of all slots.
        super().__init__(server, ciphertext)
        self._view = view

    # --- what is known of it --------------------------------------------------------------------

    @property
    def ciphertext(self) -> Ciphertext:
        """The ciphertext to send or decrypt, in the host's memory. It knows the view."""
        core = self._server._core
        view = self._view.changing()
        done = core.with_view(self._settled(), view.as_tuple(), view.zero)
        return done if core.on_host else core.send_back(done)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape, as NumPy's."""
        return self._view.shape

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an encrypted number has no length")
        return self.shape[0]

    def _on(self, value: EncryptedArray, view: View) -> DenseArray:
        """The value, which the operations of vectors gave, with this view."""
        return DenseArray(self._server, value._ct, view)

    def _with(self, ciphertext: Ciphertext, view: View) -> DenseArray:
        """An array of other slots with another view."""
        return DenseArray(self._server, ciphertext, view)

    def _repeating(self, slots: int, claimed: bool) -> int:
        known = self._view
        if claimed and slots == 0:
            return EncryptedArray._repeating(self, slots, claimed)
        # Elements that have places of their own are different numbers, whatever is claimed.
        if 0 < slots < known.slots and (known.period == 0 or slots % known.period):
            raise InvalidArgument(
                f"slots={slots} is for numbers that repeat after {slots} slots, and this array is not known to: leave slots away, or "
                "encrypt the numbers with slots="
            )
        return slots

    def _like(self, ciphertext: Ciphertext) -> DenseArray:
        return DenseArray(self._server, ciphertext, self._view.changing())

    def _mapped(self, ciphertext: Ciphertext, of_rest: float | None) -> DenseArray:
        rest = math.inf if of_rest is None else of_rest
        return DenseArray(self._server, ciphertext, replace(self._view.changing(), rest=rest))

    def _seen(self, view: View) -> DenseArray:
        """The same slots with another view. Products that are still to be computed stay so."""
        out = DenseArray(self._server, self._ct, view)
        out._made_in = self._made_in
        return out

    # --- arithmetic -----------------------------------------------------------------------------

    def __add__(self, other: Operand) -> EncryptedArray:
        if isinstance(other, EncryptedArray):
            a, b, view = together(self, other)
            total = EncryptedArray.__add__(a._wide(view), b._wide(view))
            return a._on(total, of_sum(a, b, view))
        return self._plus_clear(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> EncryptedArray:
        if isinstance(other, EncryptedArray):
            a, b, view = together(self, other)
            difference = EncryptedArray.__sub__(a._wide(view), b._wide(view))
            return a._on(difference, of_sum(a, b, view))
        return self._plus_clear(other, -1)

    def __rsub__(self, other: Operand) -> EncryptedArray:
        if isinstance(other, EncryptedArray):
            return dense(other) - self
        return -self + other

    def __neg__(self) -> EncryptedArray:
        return self._on(EncryptedArray.__neg__(self), self._view)

    def __mul__(self, other: Operand) -> EncryptedArray:
        if isinstance(other, EncryptedArray):
            a, b, view = together(self, other)
            joint = EncryptedArray.__mul__(a._wide(view), b._wide(view))
            return a._on(joint, of_product(a, b, view))
        value = arrays.number(other)
        if value is not None:
            x = self._compact()
            return x._on(EncryptedArray.__mul__(x, value), x._view.scaled(abs(value)))
        array = numbers(other)
        if array is None:
            return NotImplemented
        x = self._compact().broadcast_to(joint_shape(self.shape, array.shape))
        product = x._server._core.multiply_array(x._settled(), x._view.scattered(array))
        return DenseArray(self._server, product, x._view.zeroed())

    __rmul__ = __mul__

    def __truediv__(self, other: Operand) -> EncryptedArray:
        if isinstance(other, EncryptedArray):
            other.__rtruediv__(self)
        value = arrays.number(other)
        array = numbers(other) if value is None else np.asarray(value)
        if array is None:
            return NotImplemented
        if value is not None and value != 0:
            return self * (1 / value)
        if not np.all(array):
            raise InvalidArgument(
                "division by zero, or by an array that holds a zero: replace it first"
            )
        with np.errstate(all="ignore"):  # an infinite inverse is refused where it is encoded
            return self * (1 / array)

    def _plus_clear(self, other: Any, sign: int) -> EncryptedArray:
        value = arrays.number(other)
        if value is not None and not self._view.zero:
            x = self._compact()
            view = x._view.changing()
            return x._on(x._plus(sign * value), replace(view, rest=view.rest + abs(value)))
        if value is not None:
            array: Any = np.asarray(value if value.imag else value.real)
        else:
            array = numbers(other)
        if array is None:
            return NotImplemented  # type: ignore[no-any-return]
        x = self._compact().broadcast_to(joint_shape(self.shape, array.shape))
        slots, view = x._view.scattered(array), x._view
        if view.copies:  # what is added to an element is not added to its copies
            view = replace(view, rest=math.inf, copies=False)
        return DenseArray(
            self._server, self._server._core.add_array(x._whole(), slots, sign < 0), view
        )

    def _filled(
        self, interval: Interval, within: Interval
    ) -> tuple[DenseArray, Interval, float | None]:
        x = self._compact()
        if interval is None or interval[0] <= 0 <= interval[1]:
            if interval is not None and within is not None:
                if x._rest() > min(-interval[0], interval[1]) * ROUNDING:
                    x = x._cleaned()
                rest = x._rest()  # `within` says nothing of these slots
                within = min(within[0], -rest), max(within[1], rest)
            return x, within, 0.0 if x._view.beside().rest == 0 else None
        nearest = interval[0] if interval[0] > 0 else interval[1]
        fill = x._view.scattered(np.zeros(()), nearest)
        if not fill.any():
            return x, within, 0.0
        core, value = self._server._core, x._cleaned()._settled()
        # The numbers lie in the interval, so that none is nearer to 0 than what is filled in.
        filled = core.with_bounds(core.add_array(value, fill), value, 1)
        view = replace(x._view.zeroed(), rest=abs(nearest))
        return DenseArray(self._server, filled, view), within, nearest

    def _compact(self) -> DenseArray:
        """The same array without vectors that hold none of its elements, so that nothing is
        computed on them."""
        view, used = self._view, self._view.used()
        if len(used) == view.vectors:
            return self
        value = self._server._core.take(self._settled(), list(used))
        first = view.first - used[0] * view.slots
        return DenseArray(
            self._server,
            value,
            replace(view.beside(), first=first, vectors=len(used)),
        )

    def _rest(self) -> float:
        """A bound on what lies beside its elements, copies of these apart, in the vectors that hold
        one."""
        rest = self._view.beside().rest
        return min(rest, self._whole().peak) if rest else 0.0

    def _wide(self, view: View) -> DenseArray:
        """The same slots in every vector of the view."""
        if self._view.vectors == view.vectors:
            return self
        value = self._server._core.take(self._settled(), [0] * view.vectors)
        return DenseArray(self._server, value, self._view)

    def _cleaned(self) -> DenseArray:
        """The same with zeros in all slots that hold no element: a mask, which takes one level,
        unless they are zero."""
        view = self._view.changing()
        if view.zero:
            return self._seen(view)
        mask = view.scattered(np.ones(()))
        value = self._server._core.multiply_array(self._settled(), mask)
        return DenseArray(self._server, value, view.zeroed())

    # --- shapes ---------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> DenseArray:
        """Elements by whole numbers and slices, None and ``...``, as in NumPy. It costs nothing."""
        keys = key if isinstance(key, tuple) else (key,)
        for one in keys:
            simple = one is None or one is Ellipsis or isinstance(one, (slice, int, np.integer))
            if isinstance(one, (bool, np.bool_)) or not simple:
                raise Unsupported(
                    "an encrypted array takes whole numbers and slices as an index: for other choices multiply by a "
                    "mask of zeros and ones, or by a selection matrix (S @ x)"
                )
        if not any(one is Ellipsis for one in keys):
            keys = (*keys, Ellipsis)  # so that a single element stays a view
        try:
            return self._seen(self._view.changed(lambda a: a[keys]))
        except IndexError as error:
            raise IndexOutOfRange(f"{error}: its shape is {self.shape}") from None
        except (TypeError, ValueError, OverflowError) as error:
            if isinstance(error, InvalidArgument):
                raise
            raise InvalidArgument(str(error)) from None

    def __iter__(self) -> Iterator[DenseArray]:
        if not self.shape:
            raise TypeError("an encrypted number cannot be iterated")
        return (self[i] for i in range(self.shape[0]))

    def _moved_axes(self, change: Any) -> DenseArray:
        try:
            return self._seen(self._view.changed(change))
        except (ValueError, TypeError, OverflowError) as error:
            if isinstance(error, InvalidArgument):
                raise
            raise InvalidArgument(str(error)) from None

    def reshape(self, *shape: Any, order: str = "C") -> DenseArray:
        """The same numbers in another shape. It costs nothing, and raises InvalidArgument if
        numbers would have to move.

        order: "C", or "F" for numbers that are read and written with the first axis fastest.
        """
        if not isinstance(order, str) or order not in ("C", "F"):
            raise InvalidArgument(f'order must be "C" or "F", not {checks.shown(order)}')
        wanted = (
            shape[0] if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)) else shape
        )
        return self._moved_axes(lambda a: a.reshape(wanted, order=order))

    def transpose(self, *axes: Any) -> DenseArray:
        """The axes in another order, reversed if none is given. It costs nothing."""
        return self._moved_axes(lambda a: a.transpose(*axes))

    @property
    def T(self) -> DenseArray:
        """The transpose. It costs nothing."""
        return self.transpose()

    def swapaxes(self, first: int, second: int) -> DenseArray:
        """The array with two axes exchanged. It costs nothing."""
        return self._moved_axes(lambda a: a.swapaxes(first, second))

    def squeeze(self, axis: Any = None) -> DenseArray:
        """Without the axes of count 1, or without these. It costs nothing."""
        return self._moved_axes(lambda a: a.squeeze(axis))

    def ravel(self, order: str = "C") -> DenseArray:
        """All numbers as a vector. It costs nothing, and raises InvalidArgument if they would have
        to move."""
        return self.reshape(-1, order=order)

    flatten = ravel

    def broadcast_to(self, shape: int | tuple[int, ...]) -> DenseArray:
        """The array repeated to a larger shape, as NumPy does it: rotations and, if other slots are
        not zero, a mask."""
        shape = checked_shape(shape)
        if shape == self.shape:
            return self
        if joint_shape(self.shape, shape) != shape:
            raise InvalidArgument(f"an array of the shape {self.shape} cannot become {shape}")
        target = View.dense(shape, self.slots)
        place = spread(self._view.expanded(len(shape)), shape) or target
        x = laid(self, place)
        view = joint_view(place, x._view)
        known = x._view.changing()
        copies = known.copies or known.extent != view.extent
        return x._wide(view)._seen(replace(view, rest=known.rest, copies=copies, whole=None))

    # --- sums -----------------------------------------------------------------------------------

    def sum(
        self, axis: Any = None, keepdims: bool = False, *, count: int | None = None
    ) -> DenseArray:
        """The sum along an axis, several, or all, of any count. It takes no level.

        It takes about log2(count) rotations by 1, 2, 4 .. times the distance of the elements.
        Estimates take the terms as equal.
        """
        if count is not None:
            raise Unsupported("sum(count=) adds windows of a vector: add the slices of an array")
        keepdims = checks.flag(keepdims, "keepdims")
        axes = numbered(axis, len(self.shape))
        out = self._compact()
        for k in sorted(axes, key=lambda k: -abs(self._view.strides[k])):
            out = summed(out, k)
        if keepdims:
            return out
        kept = tuple(k for k in range(len(self.shape)) if k not in axes)
        shape = tuple(out._view.shape[k] for k in kept)
        strides = tuple(out._view.strides[k] for k in kept)
        return out._seen(replace(out._view, shape=shape, strides=strides))

    def _count(self, axis: Any) -> int:
        return math.prod(self.shape[k] for k in numbered(axis, len(self.shape)))

    def mean(self, axis: Any = None, keepdims: bool = False) -> EncryptedArray:
        """The mean along an axis, several, or all. It takes one level."""
        return self.sum(axis, keepdims) * (1 / self._count(axis))

    def var(self, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> EncryptedArray:
        """The variance along an axis, several, or all: the mean of squares less the square of the
        mean. It takes two levels.

        Its error is that of a number as large as the squares: take away a mean that you know first,
        if it is large.
        """
        count = self._count(axis)
        freedom = arrays.number(ddof)
        if freedom is None or freedom.imag or not 0 <= freedom.real < count:
            raise InvalidArgument(
                f"ddof must be a number from 0 and below the count of {count}, not {checks.shown(ddof)}"
            )
        # Of complex numbers it is the mean of their squared moduli, less that of their mean.
        complex_values = self._settled().is_complex
        squares = (self * (self.conj() if complex_values else self)).sum(axis, keepdims)
        mean = self.mean(axis, keepdims)
        spread = squares * (1 / count) - mean * (mean.conj() if complex_values else mean)
        return spread if freedom == 0 else spread * (count / (count - freedom.real))

    # --- products of matrices -------------------------------------------------------------------

    def __matmul__(self, other: Any) -> EncryptedArray:
        """The matrix product with an array or an encrypted array of at most two axes; see
        ``matmul``."""
        return self._server._matmul(self, other)

    def __rmatmul__(self, matrix: Any) -> EncryptedArray:
        """The matrix product with an array on the left; see ``matmul``."""
        return self._server._matmul(matrix, self)

    def dot(self, other: Any) -> EncryptedArray:
        """The same as ``@``, and the product with a number."""
        value = arrays.number(other)
        if value is not None:
            return self * value
        return self._server._matmul(self, other)

    # --- what vectors have ----------------------------------------------------------------------

    def rotate(self, steps: int) -> EncryptedArray:
        """Refused: slots of an array are moved by slices."""
        raise Unsupported(
            "rotate moves the slots of vectors (n,) and of batches: take slices of an array, or encrypt with batch=True"
        )

    def with_length(self, length: int) -> EncryptedArray:
        """Refused: an array has a shape."""
        raise Unsupported(f"with_length is for vectors: take a slice, x[:{checks.shown(length)}]")

    def natural(self) -> EncryptedArray:
        """Refused: an array has a shape."""
        raise Unsupported("natural is for vectors: an array says itself where its numbers lie")

    def with_layout(self, layout: Layout, part: int = 0) -> EncryptedArray:
        """Refused: an array has a shape."""
        raise Unsupported("with_layout is for vectors: bind the ciphertext of a vector")

    def conj(self) -> EncryptedArray:
        """The complex conjugate of every number. It needs the conjugation key."""
        return self._on(EncryptedArray.conj(self), self._view)

    conjugate = conj

    def with_magnitude(self, magnitude: float, *, peak: float | None = None) -> EncryptedArray:
        """See EncryptedArray.with_magnitude.

        Other numbers lie in the slots beside a slice, and parts of sums beside sums. What is said
        of a ciphertext has to hold for all its slots. A smaller peak is refused there, therefore:
        say it of the whole array before, or multiply by ones first.
        """
        claimed = checks.peak(peak) or PEAK * checks.magnitude(magnitude)
        x = self._compact()
        if x._rest() > claimed:
            masked = f"part * np.ones({self.shape})" if self.shape else "part[None] * np.ones(1)"
            raise InvalidArgument(
                f"a peak of {claimed:g} is claimed of a part of an array, or of sums beside which others lie, and the slots beside it hold "
                f"other numbers, of up to {x._rest():g}: claim it of the whole array before you take the part, if it holds there, or of "
                f"{masked}, which takes one level and makes the other slots zero"
            )
        return x._on(EncryptedArray.with_magnitude(x, magnitude, peak=peak), x._view)

    def __repr__(self) -> str:
        return (
            f"EncryptedArray(shape={self.shape}, level={self.level}, scale=2^{math.log2(self.scale):.2f}, "
            f"{self._view.vectors} x {self.slots} slots)"
        )
