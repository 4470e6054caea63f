"""The arithmetic of encrypted arrays, and the one place where operands are brought together.

An operation goes the same way whatever the shapes of its operands are: ``together`` broadcasts them
and moves their elements to common slots (``_laid``, ``_moved``), the engine computes on all slots,
and the view of the result says where its elements lie.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar, Union

import numpy as np
import numpy.typing as npt

from jali._core import array as arrays
from jali._core.arrays import as_numbers
from jali._core.moves import aligned, of_other_evaluators, of_product, of_sum
from jali._core.shaped import Shaped
from jali._core.view import View, joint_shape
from jali._jali.ckks import Ciphertext, ProductSum
from jali.errors import InvalidArgument, Unsupported

if TYPE_CHECKING:
    from fractions import Fraction

    from jali.ckks.evaluator import Evaluator

__all__ = ["Arithmetic", "Operand", "place_of", "together"]

#: The other operand of an EncryptedArray's arithmetic.
Operand = Union[
    "Arithmetic", complex, "Fraction", npt.NDArray[Any], list[Any], tuple[Any, ...], range
]
Array = TypeVar("Array", bound="Arithmetic")


class Arithmetic(Shaped):
    """An encrypted array with NumPy's operators. What else it has is in shaped.py and array.py."""

    __slots__ = ("_made_in",)
    _server: Evaluator
    _ct: Ciphertext | ProductSum

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
            return type(self)(self._server, product, view and of_product(x, y, view))
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
        return self._new(self._server._core.with_view(value, None, False), place_of(value))

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

    # --- what jali._core.moves asks for -----------------------------------------------------------

    def _held(self, value: Ciphertext) -> int:
        return value.batch

    def _peak(self) -> float:
        return self._ct.peak if isinstance(self._ct, Ciphertext) else math.inf

    def _bounded(self, value: Ciphertext, like: Ciphertext, count: int, terms: int) -> Ciphertext:
        return self._server._core.with_bounds(value, like, min(count, terms))

    def _masked(self, products: Iterator[Ciphertext], like: Ciphertext) -> Ciphertext:
        total: Any = None
        for product in products:
            one = self._new(product)
            total = one if total is None else total + one
        return self._server._core.with_bounds(total._settled(), like, 1)

    def _gathered_rows(self, parts: list[Ciphertext], rows: list[list[int]]) -> Ciphertext:
        core = self._server._core
        return core.take(core.stack(parts), np.argsort(np.concatenate(rows)).tolist())

    def _block_sum(self, source: Ciphertext, count: int) -> Ciphertext | None:
        return self._server._core.sum(source, count)


# --- how operands are brought together ------------------------------------------------------------


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
    return aligned(x, y)


def place_of(ciphertext: Ciphertext) -> View:
    """Where the elements of a ciphertext lie, also those of a vector or a batch of vectors."""
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
