"""Encrypted arrays: ciphertexts that are bound to the evaluator that computes on them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn, Union

import numpy as np
import numpy.typing as npt

from jali._core import array as arrays
from jali._core import checks
from jali._core.console import counted_text
from jali._core.log import logger
from jali._jali.ckks import Ciphertext, Layout, MatVec, ProductSum
from jali.ckks.arguments import checked_iterations, checked_target, refuse_complex_matrix
from jali.ckks.operands import joint_shape
from jali.ckks.shaped import Shaped
from jali.errors import InvalidArgument, Unsupported

if TYPE_CHECKING:
    from jali.ckks.dense import DenseArray
    from jali.ckks.evaluator import Evaluator

__all__ = ["EncryptedArray"]

_LEAST_COUNT = 8  # a smaller number in the place of an axis is one

#: The least and the largest number that can occur; None if nothing is said.
Interval = tuple[float, float] | None
#: Bounds are products of doubles. No polynomial has grown so little outside its interval
#: (circuits/domain.cpp).
ROUNDING = 1 + 2.0**-30

#: The other operand of an EncryptedArray's arithmetic.
Operand = Union[
    "EncryptedArray", complex, Fraction, npt.NDArray[Any], list[Any], tuple[Any, ...], range
]


class EncryptedArray(Shaped):
    """An encrypted array with NumPy's arithmetic: a vector (n,), a batch of vectors (batch, n), or
    an array of any shape.

    Evaluator.bind makes it. ``+ - *`` take other encrypted arrays of the same evaluator, and arrays
    and numbers on either side; ``/`` takes numbers and arrays on the right; ``**`` takes whole
    numbers from 1. Relinearisation, rescaling and levels are managed for you. A product of two
    encrypted arrays, or with an array, costs one level. So does a product with a number, unless it
    is a whole number (or i times one) of modulus up to 16. Values are immutable. Operations release
    the interpreter's lock, and may be used from several threads.

    Operations raise DepthExhausted, which names the depth that would be enough, KeyMissing, which
    names the key, and InvalidArgument for shapes that do not fit. On a GPU they raise Unsupported
    if limbs times batch is more than 65,535; the message names the largest batch.

    >>> client = ckks.Client(ckks.Params.create(depth=2))
    >>> server = ckks.Evaluator(client.params, client.evaluation_keys(rotations=[1]))
    >>> x = server.bind(client.encrypt([0.5, -1.25]))
    >>> client.decrypt(2 * x + x * x).round(2)
    array([ 1.25, -0.94])
    """

    __slots__ = ("_ct", "_made_in", "_server")
    _ordering = (
        "encrypted values cannot be compared to give True or False: f = ckks.functions.step(bound, gap=...) makes a function, and f(x) is a "
        "number, 1 where x > 0 and 0 where x < 0, for numbers of modulus from gap to bound. For x > y write f(x - y), or decrypt them first"
    )

    def __init__(self, server: Evaluator, ciphertext: Ciphertext | ProductSum) -> None:
        self._server = server
        # Products are computed when it is known what follows: a use of the value itself, or a sum
        # of products.
        self._ct = ciphertext
        self._made_in = server._recording

    # --- what is known of it --------------------------------------------------------------------

    @property
    def ciphertext(self) -> Ciphertext:
        """The ciphertext to send or decrypt, in the host's memory. It has two parts and the
        canonical scale of its level."""
        core = self._server._core
        done = self._settled()
        return done if core.on_host else core.send_back(done)

    @property
    def evaluator(self) -> Evaluator:
        """The evaluator that computes on it."""
        return self._server

    @property
    def level(self) -> int:
        """How many multiplications may follow."""
        value = self._ct
        if isinstance(value, ProductSum):
            return value.level
        return self._server._core.effective_level(value)

    @property
    def scale(self) -> float:
        """The scale of its ciphertext."""
        return self._server.params.level(self.level).scale

    @property
    def precision_bits(self) -> float:
        """The precision in bits that numbers within what was declared have: -log2 of the standard
        deviation of a slot's error.

        Most numbers have more, above all behind several products with matrices; ``with_magnitude``
        makes the claim sharper. docs/noise.md says what it assumes.
        """
        return self._settled().precision_bits

    @property
    def _expected_bits(self) -> float:
        """The precision for planners, which keep a margin of their own
        (Ciphertext.expected_bits)."""
        return self._settled().expected_bits

    @property
    def slots(self) -> int:
        """How many slots each vector has, including those past its length."""
        return self._ct.slots

    @property
    def shape(self) -> tuple[int, ...]:
        """(length,), or (batch, length)."""
        return self._ct.shape

    @property
    def layout(self) -> Layout:
        """How its numbers lie in the slots. ``MatVec(..., layout=x.layout)`` plans a product for
        vectors that lie so."""
        return self._settled().layout

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the decrypted numbers: float64 or complex128."""
        return np.dtype(np.complex128 if self._settled().is_complex else np.float64)

    def __repr__(self) -> str:
        return f"EncryptedArray(shape={self.shape}, level={self.level}, scale=2^{math.log2(self.scale):.2f})"

    # --- arithmetic -----------------------------------------------------------------------------

    def __add__(self, other: Operand) -> EncryptedArray:
        core = self._server._core
        if isinstance(other, EncryptedArray):
            a, b = self._ct, self._as_long(other)._ct
            if not isinstance(a, Ciphertext) and not isinstance(b, Ciphertext):
                joined = core.join(a, b)
                if joined is not None:
                    return EncryptedArray(self._server, joined)
            try:
                return EncryptedArray(
                    self._server, core.add(self._summand(other), other._summand(self))
                )
            except InvalidArgument:
                return self._broadcast(other, operator.add)
        value = arrays.number(other)
        if value is not None:
            return self._plus(value)
        array = self._clear(other)
        if array is None:
            return NotImplemented
        if self._grows(array):
            return self._dense() + array
        return EncryptedArray(self._server, core.add_array(self._whole(), array))

    __radd__ = __add__

    def __sub__(self, other: Operand) -> EncryptedArray:
        core = self._server._core
        if isinstance(other, EncryptedArray):
            try:
                return EncryptedArray(
                    self._server,
                    core.sub(self._summand(other), self._as_long(other)._summand(self)),
                )
            except InvalidArgument:
                return self._broadcast(other, operator.sub)
        value = arrays.number(other)
        if value is not None:
            return self._plus(-value)
        array = self._clear(other)
        if array is None:
            return NotImplemented
        if self._grows(array):
            return self._dense() - array
        return EncryptedArray(self._server, core.add_array(self._whole(), array, True))

    def __rsub__(self, other: Operand) -> EncryptedArray:
        return -self + other

    def __neg__(self) -> EncryptedArray:
        return EncryptedArray(self._server, self._server._core.negate(self._whole()))

    def __pos__(self) -> EncryptedArray:
        return self

    def __mul__(self, other: Operand) -> EncryptedArray:
        core = self._server._core
        if isinstance(other, EncryptedArray):
            try:
                return EncryptedArray(
                    self._server, core.product(self._settled(), self._as_long(other)._settled())
                )
            except InvalidArgument:
                return self._broadcast(other, operator.mul)
        value = arrays.number(other)
        if value is not None:
            return EncryptedArray(self._server, core.multiply_scalar(self._whole(), value))
        array = self._clear(other)
        if array is None:
            return NotImplemented
        if self._grows(array):
            return self._dense() * array
        return EncryptedArray(self._server, core.multiply_array(self._settled(), array))

    __rmul__ = __mul__

    def __rtruediv__(self, other: object) -> NoReturn:
        raise Unsupported(
            "division by an encrypted value is not possible: multiply by ckks.functions.inverse(...) of it"
        )

    def __truediv__(self, other: Operand) -> EncryptedArray:
        if isinstance(other, EncryptedArray):
            other.__rtruediv__(self)
        value = arrays.number(other)
        if value is not None:
            if value == 0:
                raise InvalidArgument("division by zero: divide by another number")
            return self * (1 / value)
        array = arrays.operand(other, self.shape[-1])
        if array is None:
            return NotImplemented
        divisor = np.asarray(array)
        if divisor.dtype.kind not in "biufc":
            return self * divisor  # this raises the error that says what is wrong with it
        if not np.all(divisor):
            raise InvalidArgument("division by an array that holds a zero: replace the zeros first")
        with np.errstate(all="ignore"):  # an infinite inverse is refused below
            inverse: npt.NDArray[Any] = np.reciprocal(
                divisor.astype(np.result_type(divisor, np.float64))
            )
        return self * inverse

    def __pow__(self, exponent: int, modulo: Any = None) -> EncryptedArray:
        if modulo is not None:
            raise Unsupported("encrypted numbers have no remainder: call pow with two arguments")
        result: EncryptedArray = arrays.power({1: self}, arrays.exponent(exponent))
        return result

    def __rmatmul__(self, matrix: Any) -> EncryptedArray:
        """matrix @ self: a matrix (m, n) in the clear times this vector of length n. It takes one
        level.

        A product longer than the slots is an array of several vectors, with a part of the matrix
        for each; so is the operand. It plans the product and encodes the matrix at each use. For
        many products with one matrix, Evaluator.matvec with a MatVec is faster. It rotates by
        MatVec(matrix, params, level=self.level, layout="natural", streaming=True).rotations; keys
        for these are the fastest, and keys made with rotations="powers" serve every matrix.
        """
        server = self._server
        array = arrays.operand(arrays.plain(matrix), 1)
        one_product = (
            array is not None
            and array.shape[1:] == self.shape
            and len(array) <= self.slots == server.params.slots
        )
        if array is None or not one_product:
            return server._matmul(matrix, self)
        refuse_complex_matrix(array)
        plan = MatVec(array, server.params, level=self.level, layout="natural", streaming=True)
        return server.matvec(plan, self)

    # --- movement of slots ----------------------------------------------------------------------

    def rotate(self, steps: int) -> EncryptedArray:
        """Slot i of the result is slot i + steps, cyclically over all ``slots``, like numpy.roll by
        -steps.

        It needs the key of this rotation, or keys of which it can be composed, as
        rotations="powers" makes them (see Client.evaluation_keys). A vector shorter than ``slots``
        moves into the zeros that follow it. A vector that repeats goes on repeating.
        """
        if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)):
            raise InvalidArgument(
                f"a rotation must be a whole number of slots, not {checks.shown(steps)}"
            )
        folded = int(steps)
        if abs(folded) >= self.slots:
            folded %= self.slots
        return EncryptedArray(self._server, self._server._core.rotate(self._settled(), folded))

    def conj(self) -> EncryptedArray:
        """The complex conjugate of every number. It needs the conjugation key."""
        return EncryptedArray(self._server, self._server._core.conjugate(self._settled()))

    conjugate = conj

    # --- sums, and what the array is taken for ----------------------------------------------------

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise Unsupported(
            "an encrypted value is not an array: decrypt it first. For a product write matrix @ x instead of matrix.dot(x), "
            "and df.to_numpy() @ x with a table or a column of pandas"
        )

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """NumPy's functions that have encrypted results, such as numpy.stack and numpy.sum."""
        result = self._server._numpy(function, args, kwargs)
        if result is NotImplemented:
            return super().__array_function__(function, types, args, kwargs)
        return result

    def _dense(self) -> DenseArray:
        return self._server._dense(self)

    def sum(
        self, axis: Any = None, keepdims: bool = False, *, count: int | None = None
    ) -> EncryptedArray:
        """The sum along an axis, several, or all, of any count, as numpy.sum. It takes no level.

        count: for vectors, instead of an axis. Slot i of the result is then the sum of the slots i
            to i + count - 1, cyclically over all ``slots``; a power of two up to ``slots``. A
            number from 8 on in the place of the axis is taken as the count: ``x.sum(64)`` of a
            vector is ``x.sum(count=64)``. Smaller ones are axes, as in NumPy.

        It needs the keys of the rotations by 1, 2, 4 .. up to half the count
        (jali.ckks.sum_rotations).
        """
        if count is None and isinstance(axis, (int, np.integer)) and axis >= _LEAST_COUNT:
            axis, count = None, int(axis)
        if count is None:
            if isinstance(axis, (int, np.integer)) and axis >= len(self.shape):
                counted = self.ndim == 1 and not axis & (axis - 1)
                instead = (
                    f"write count={axis} to sum over so many slots"
                    if counted
                    else f"they are counted from 0 to {self.ndim - 1}"
                )
                raise InvalidArgument(
                    f"axis {axis} is out of range for an array of {counted_text(len(self.shape), 'axis', 'axes')}: {instead}"
                )
            return self._dense().sum(axis, keepdims)
        if axis is not None or keepdims:
            raise InvalidArgument(
                "a sum over a count of slots has no axis and keeps none: leave out axis and keepdims, or the count"
            )
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise InvalidArgument("count must be a power of two from 1 to slots")
        elif count & (count - 1):
            raise InvalidArgument(
                f"count {checks.shown(count)} is not a power of two: pad the vector with zeros to the next one"
            )
        return EncryptedArray(self._server, self._server._core.sum(self._whole(), int(count)))

    def with_length(self, length: int) -> EncryptedArray:
        """The same slots; the first ``length`` numbers count, from 1 to ``slots``.

        A longer vector gets what lies in the slots behind it, which is zeros if nothing was ever
        added there. It is how all slots are reached: ``(x.with_length(x.slots) *
        mask).with_length(len(x))`` for a mask of all slots. Behind a shorter one lie the numbers
        past its end.
        """
        if isinstance(length, bool) or not isinstance(length, (int, np.integer)) or length < 1:
            raise InvalidArgument("length must be a whole number from 1 to slots")
        return EncryptedArray(
            self._server, self._server._core.with_length(self._whole(), int(length))
        )

    def with_layout(self, layout: Layout, part: int = 0) -> EncryptedArray:
        """The same slots; from here on, their numbers are taken to lie as ``layout`` says.

        It is for slots that you have arranged yourself. Nobody checks it: if they lie otherwise, a
        product with a matrix is wrong. Nothing is assumed of slots that hold no number.

        layout: the layout of an encrypted array, or the input_layout or output_layout of a MatVec.
        part: which ciphertext of a layout of several this is, from 0.

        Raises InvalidArgument for a layout of another number of slots.
        """
        checks.instance(layout, Layout, "layout", ": x.layout, or the input_layout of a MatVec")
        part = checks.whole(part, 0, "part must be the number of a ciphertext, from 0")
        if layout.slots != self.slots:
            raise InvalidArgument(
                f"the layout is for {layout.slots} slots, and the array has {self.slots}"
            )
        return EncryptedArray(
            self._server, self._server._core.with_layout(self._whole(), layout, part)
        )

    def natural(self) -> EncryptedArray:
        """The same numbers in the first slots, with zeros behind them.

        It costs nothing if they lie so, and otherwise one level. Numbers in the windows of a plan
        also need the keys of ``layout.natural_rotations``; others need none. Raises DepthExhausted
        and KeyMissing.
        """
        return EncryptedArray(self._server, self._server._core.into_order(self._settled()))

    def with_magnitude(self, magnitude: float, *, peak: float | None = None) -> EncryptedArray:
        """The same numbers; from here on, estimates assume this root mean square and this peak.

        It is for computed values whose size you know better than the estimate. Estimates take the
        terms of products and polynomials as independent and those of ``sum`` as equal, and peaks
        multiply and add up. ``precision_bits`` takes every factor that comes from a product with a
        matrix for the largest number that magnitude and peak allow.

        magnitude: the root mean square of this kind of numbers, above 0.
        peak: the largest modulus that they can have; None stands for 8 times the magnitude. Bounds
            on errors assume it, and bootstrapping changes numbers that are far above it. Slots that
            hold none of the numbers, as those beside a slice, a sum along an axis or a rotated
            vector, may hold others. A smaller peak than theirs is refused: say it of the whole
            array before, or of ``x[:2] * np.ones(2)``, where the other slots are zero. A release
            derives no bound from a smaller peak than operations prove.
        """
        core = self._server._core
        return EncryptedArray(
            self._server,
            core.with_magnitude(self._whole(), checks.magnitude(magnitude), checks.peak(peak)),
        )

    def _with_precision(self, precision_bits: float) -> EncryptedArray:
        """The same numbers; from here on, estimates take their error to have a standard deviation
        of 2^-precision_bits."""
        core = self._server._core
        return EncryptedArray(self._server, core.with_precision(self._whole(), precision_bits))

    def bootstrap(
        self,
        target_level: int | None = None,
        *,
        iterations: int = 1,
        real: bool | None = None,
        slots: int | None = None,
        repeats: bool = False,
    ) -> EncryptedArray:
        """The same numbers with their levels restored. It needs no secret.

        target_level: the level of the result, from max(1, params.bootstrap_level) to params.depth,
            or one less with several iterations. None stands for the highest. A lower one costs
            less, because the work is done at a smaller modulus.
        iterations: from 1 to 4. More iterations give more precision (Meta-BTS, eprint 2022/1167): p
            bits become about 2p - 3, 3p - 6 .., but no more than the value itself and the scale
            have. They take as many times the work, and one level.
        real: True drops imaginary parts, False keeps them. None drops those of real data if that
            saves work (order "slots_first").
        slots: for numbers that repeat after so many slots, a power of two of at least 2: the work
            and the keys are then those for so many slots. None stands for as many as the value has.
            The layout must say that the numbers repeat, and others are refused.
        repeats: True is your claim that a vector of all slots, whose layout says nothing, repeats
            after ``slots``. Nobody checks it, and it cannot be noticed later: if it is wrong, every
            slot gets the mean of all that lie a multiple of `slots` apart, or with keys for more
            slots a multiple of those. A value that is known to hold different numbers there is
            refused in any case.

        It needs parameters made with bootstrap=True, and keys of evaluation_keys(bootstrap=...) for
        these slots or for more. Of several, it takes those with which it is fastest.

        Numbers should have a modulus of at most 1. Larger numbers lose a part that grows with their
        square, or with a higher power if the parameters use the series of arcsin. A declared
        magnitude above params.bootstrap_max_magnitude is refused. The magnitude of a computed value
        is an estimate: ``x + x`` and ``sum`` take their terms as equal, other sums as independent;
        see ``with_magnitude``. ``precision_bits`` of the result says how much precision is left.

        The first call for a packing, and the first for each target_level, encodes matrices, which
        takes a while. The evaluator keeps them all. Raises KeyMissing, DepthExhausted below
        params.bootstrap_level, and InvalidArgument for arguments or magnitudes out of range.
        """
        target, times = checked_target(target_level), checked_iterations(iterations)
        if real is not None and not isinstance(real, (bool, np.bool_)):
            raise InvalidArgument(f"real must be True, False or None, not {checks.shown(real)}")
        few = self._repeating(checks.slots(slots), checks.flag(repeats, "repeats"))
        core = self._server._core
        drop = None if real is None else bool(real)
        x = self._compact()
        result = core.bootstrap(x._settled(), target, times, drop, few)
        logger.debug("bootstrapped: %d slots, to level %d", result.slots, result.level)
        return x._like(result)

    # --- helpers --------------------------------------------------------------------------------

    def _repeating(self, slots: int, claimed: bool) -> int:
        """The number of slots after which the numbers repeat, as their layout knows or the caller
        claims; 0 stands for all."""
        if claimed and slots == 0:
            raise InvalidArgument(
                "repeats=True says that the numbers repeat after slots=: give both, or neither"
            )
        # Core operations refuse a shorter vector by its layout. The layout of a vector of all slots
        # says nothing.
        if not claimed and 0 < slots < self.slots and self.shape[-1] == self.slots:
            raise InvalidArgument(
                f"slots={slots} is for numbers that repeat after {slots} slots, and a vector of all {self.slots} slots is not "
                f"known to: leave slots away, encrypt the numbers with slots={slots}, or claim it by repeats=True"
            )
        return slots

    def _filled(
        self, interval: Interval, within: Interval
    ) -> tuple[EncryptedArray, Interval, float | None]:
        """The same numbers, with other slots that a function on the interval takes: they are
        masked, at one level, if they may hold what it does not take. If the interval does not hold
        0, zeros are replaced by a number of it.

        Returns these numbers, `within` as it holds for all slots, and what all other slots hold, or
        None if that is not known.
        """
        core, value = self._server._core, self._settled()
        if interval is None or value.rest == 0:
            return self, within, None
        room = min(-interval[0], interval[1]) * ROUNDING  # negative if the interval does not hold 0
        if value.rest <= room or (room >= 0 and within is None):
            return self, within, None
        masked = core.multiply_array(value, np.ones(self.shape[-1]))
        return self._like(core.with_bounds(masked, value, 1)), within, None

    def _mapped(self, ciphertext: Ciphertext, _of_rest: float | None) -> EncryptedArray:
        """An array of its shape, of a function of its ciphertext. of_rest: what it makes of what
        all other slots hold, if that is known."""
        return self._like(ciphertext)

    def _compact(self) -> EncryptedArray:
        """The same array without vectors that hold none of its elements."""
        return self

    def _like(self, ciphertext: Ciphertext) -> EncryptedArray:
        """An array of its shape, of a ciphertext with other numbers in the same slots."""
        return EncryptedArray(self._server, ciphertext)

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

    def _summand(self, beside: EncryptedArray) -> Ciphertext:
        """Its ciphertext, to be added to `beside`. Products stay unrelinearised if `beside` is
        unrelinearised, too."""
        value = self._ct
        if isinstance(value, Ciphertext):
            return value
        core, other = self._server._core, beside._ct
        owed = isinstance(other, ProductSum) or not core.is_settled(other)
        return self._kept(core.expand(value)) if owed else self._settled()

    def _plus(self, value: complex) -> EncryptedArray:
        core, products = self._server._core, self._ct
        joined = core.join_scalar(products, value) if isinstance(products, ProductSum) else None
        return EncryptedArray(
            self._server, core.add_scalar(self._whole(), value) if joined is None else joined
        )

    def _kept(self, value: Ciphertext) -> Ciphertext:
        """Keeps the same value in another form, so that later operations need not compute it
        again."""
        # A form that is made while a function is recorded is not kept, because it lies in the
        # memory of the recording, which only its runs write.
        if self._made_in is self._server._recording:
            self._ct = value
        return value

    def _broadcast(
        self, other: EncryptedArray, operation: Callable[[Any, Any], EncryptedArray]
    ) -> EncryptedArray:
        """The operation of two arrays that core operations refused: of shapes that differ, if
        NumPy's rules join them."""
        a, b = self.shape, other.shape
        fit = all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1], strict=False))
        if a == b or not fit or self.slots != other.slots or other._server is not self._server:
            raise
        return operation(self._dense(), other._dense())

    def _beside(self, other: EncryptedArray) -> EncryptedArray:
        if other._server is not self._server:
            raise InvalidArgument(
                "the operands are bound to different evaluators: bind both to the same one"
            )
        return other

    def _clear(self, other: Any) -> npt.NDArray[Any] | None:
        """The other operand in the clear, None if it is none. Raises InvalidArgument for shapes
        that NumPy does not join."""
        here = self.shape
        array = arrays.operand(other, here[-1])
        if array is None or array.shape == here or array.shape == here[-1:]:
            return array
        if array.ndim and array.shape[-1] not in (1, here[-1]) and here[-1] != 1:
            raise InvalidArgument(
                f"the array has the length {array.shape[-1]} and the encrypted vector {here[-1]}: make them equal, or one of "
                "them 1. Slots behind a vector are reached by x.with_length(x.slots), which is as long as all slots"
            )
        joint_shape(here, array.shape)
        return array

    def _grows(self, array: npt.NDArray[Any]) -> bool:
        """Whether the result of this and an array that fits it has another shape than this."""
        # The engine repeats the array along axes of 1, and not what is encrypted.
        here, there = self.shape, array.shape
        return len(there) > len(here) or any(
            m == 1 < n for m, n in zip(here[::-1], there[::-1], strict=False)
        )

    def _as_long(self, other: EncryptedArray) -> EncryptedArray:
        """The other operand of a sum or product. Raises InvalidArgument if the lengths differ and
        neither is 1."""
        self._beside(other)
        # The engine takes a vector that fills the slots beside any other; NumPy does not.
        here, there = (x.shape[-1] if x.shape else 1 for x in (self, other))
        if here != there and 1 not in (here, there):
            raise InvalidArgument(
                f"operands have the lengths {here} and {there}: make them equal, or call with_length() if the zeros past "
                "the end are part of the vector"
            )
        return other
