"""Encrypted arrays: ciphertexts that are bound to the evaluator that computes on them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from jali._core import array as arrays
from jali._core import checks
from jali._core.log import logger
from jali._jali.ckks import Layout, MatVec, ProductSum
from jali.ckks.arguments import checked_iterations, checked_target, refuse_complex_matrix
from jali.ckks.declared import PEAK
from jali.ckks.shaped import SummedArray
from jali.errors import InvalidArgument, Unsupported

if TYPE_CHECKING:
    from jali.ckks.evaluator import Evaluator

__all__ = ["EncryptedArray"]


class EncryptedArray(SummedArray):
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

    __slots__ = ()
    _ordering = (
        "encrypted values cannot be compared to give True or False: f = ckks.functions.step(bound, gap=...) makes a function, and f(x) is a "
        "number, 1 where x > 0 and 0 where x < 0, for numbers of modulus from gap to bound. For x > y write f(x - y), or decrypt them first"
    )

    # --- what is known of it --------------------------------------------------------------------

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
    def layout(self) -> Layout:
        """How its numbers lie in the slots. ``MatVec(..., layout=x.layout)`` plans a product for
        vectors that lie so."""
        return self._settled().layout

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the decrypted numbers: float64 or complex128."""
        return np.dtype(np.complex128 if self._settled().is_complex else np.float64)

    def __repr__(self) -> str:
        view = self._view
        vectors = "" if view is None else f", {view.vectors} x {self.slots} slots"
        return (
            f"EncryptedArray(shape={self.shape}, level={self.level}, "
            f"scale=2^{math.log2(self.scale):.2f}{vectors})"
        )

    # --- slots of vectors and batches -------------------------------------------------------------

    def _refuse_views(self, sentence: str) -> None:
        """Raises Unsupported for an array whose elements lie where a view says, and not in the
        first slots of vectors."""
        if self._view is not None:
            raise Unsupported(sentence)

    def rotate(self, steps: int) -> Self:
        """Slot i of the result is slot i + steps, cyclically over all ``slots``, like numpy.roll by
        -steps.

        It needs the key of this rotation, or keys of which it can be composed, as
        rotations="powers" makes them (see Client.evaluation_keys). A vector shorter than ``slots``
        moves into the zeros that follow it. A vector that repeats goes on repeating. Raises
        Unsupported for other arrays than vectors and batches of vectors.
        """
        self._refuse_views(
            "rotate moves the slots of vectors (n,) and of batches: take slices of an array, or encrypt with batch=True"
        )
        if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)):
            raise InvalidArgument(
                f"a rotation must be a whole number of slots, not {checks.shown(steps)}"
            )
        folded = int(steps)
        if abs(folded) >= self.slots:
            folded %= self.slots
        return self._new(self._server._core.rotate(self._settled(), folded))

    def with_length(self, length: int) -> Self:
        """The same slots; the first ``length`` numbers count, from 1 to ``slots``.

        A longer vector gets what lies in the slots behind it, which is zeros if nothing was ever
        added there. It is how all slots are reached: ``(x.with_length(x.slots) *
        mask).with_length(len(x))`` for a mask of all slots. Behind a shorter one lie the numbers
        past its end. Raises Unsupported for other arrays than vectors and batches of vectors.
        """
        self._refuse_views(f"with_length is for vectors: take a slice, x[:{checks.shown(length)}]")
        if isinstance(length, bool) or not isinstance(length, (int, np.integer)) or length < 1:
            raise InvalidArgument("length must be a whole number from 1 to slots")
        return self._new(self._server._core.with_length(self._whole(), int(length)))

    def with_layout(self, layout: Layout, part: int = 0) -> Self:
        """The same slots; from here on, their numbers are taken to lie as ``layout`` says.

        It is for slots that you have arranged yourself. Nobody checks it: if they lie otherwise, a
        product with a matrix is wrong. Nothing is assumed of slots that hold no number.

        layout: the layout of an encrypted array, or the input_layout or output_layout of a MatVec.
        part: which ciphertext of a layout of several this is, from 0.

        Raises InvalidArgument for a layout of another number of slots, and Unsupported for other
        arrays than vectors and batches of vectors.
        """
        self._refuse_views("with_layout is for vectors: bind the ciphertext of a vector")
        checks.instance(layout, Layout, "layout", ": x.layout, or the input_layout of a MatVec")
        part = checks.whole(part, 0, "part must be the number of a ciphertext, from 0")
        if layout.slots != self.slots:
            raise InvalidArgument(
                f"the layout is for {layout.slots} slots, and the array has {self.slots}"
            )
        return self._new(self._server._core.with_layout(self._whole(), layout, part))

    def natural(self) -> Self:
        """The same numbers in the first slots, with zeros behind them.

        It costs nothing if they lie so, and otherwise one level. Numbers in the windows of a plan
        also need the keys of ``layout.natural_rotations``; others need none. Raises DepthExhausted
        and KeyMissing, and Unsupported for other arrays than vectors and batches of vectors.
        """
        self._refuse_views("natural is for vectors: an array says itself where its numbers lie")
        return self._new(self._server._core.into_order(self._settled()))

    # --- products of matrices -------------------------------------------------------------------

    def __matmul__(self, other: Any) -> EncryptedArray:
        """The matrix product with a vector or a matrix, in the clear or encrypted, of at most two
        axes."""
        return self._server._matmul(self, other)

    def __rmatmul__(self, matrix: Any) -> EncryptedArray:
        """matrix @ self: a matrix (m, n) in the clear times this vector of length n, or times this
        matrix. It takes one level.

        A product longer than the slots is an array of several vectors, with a part of the matrix
        for each; so is the operand. It plans the product and encodes the matrix at each use. For
        many products with one matrix, Evaluator.matvec with a MatVec is faster. It rotates by
        MatVec(matrix, params, level=self.level, layout="natural", streaming=True).rotations; keys
        for these are the fastest, and keys made with rotations="powers" serve every matrix.
        """
        server = self._server
        array = arrays.operand(arrays.plain(matrix), 1) if self._view is None else None
        if (
            array is None
            or array.shape[1:] != self.shape
            or not len(array) <= self.slots == server.params.slots
        ):
            return server._matmul(matrix, self)
        refuse_complex_matrix(array)
        level = self.level
        plan = MatVec(array, server.params, level=level, layout="natural", streaming=True)
        return server.matvec(plan, self)

    def dot(self, other: Any) -> EncryptedArray:
        """The same as ``@``, and the product with a number."""
        value = arrays.number(other)
        return self._server._matmul(self, other) if value is None else self._viewed() * value

    # --- what the array is taken for ------------------------------------------------------------

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

    def with_magnitude(self, magnitude: float, *, peak: float | None = None) -> Self:
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
        size, largest = checks.magnitude(magnitude), checks.peak(peak)
        x = self._compact()
        claimed, rest = largest or PEAK * size, x._rest()
        if rest > claimed:
            masked = f"part * np.ones({self.shape})" if self.shape else "part[None] * np.ones(1)"
            raise InvalidArgument(
                f"a peak of {claimed:g} is claimed of a part of an array, or of sums beside which others lie, and the slots beside it hold "
                f"other numbers, of up to {rest:g}: claim it of the whole array before you take the part, if it holds there, or of "
                f"{masked}, which takes one level and makes the other slots zero"
            )
        value = self._server._core.with_magnitude(x._whole(), size, largest)
        return self._new(value, x._view)

    def _rest(self) -> float:
        """A bound on what lies beside its elements, copies of these apart, in the vectors that hold
        one. 0 for vectors and batches, whose ciphertexts know it."""
        rest = 0.0 if self._view is None else self._view.beside().rest
        return min(rest, self._whole().peak) if rest else 0.0

    def _with_precision(self, precision_bits: float) -> Self:
        """The same numbers; from here on, estimates take their error to have a standard deviation
        of 2^-precision_bits."""
        value = self._server._core.with_precision(self._whole(), precision_bits)
        return self._new(value, self._view)

    def bootstrap(
        self,
        target_level: int | None = None,
        *,
        iterations: int = 1,
        real: bool | None = None,
        slots: int | None = None,
        repeats: bool = False,
    ) -> Self:
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

    def _repeating(self, slots: int, claimed: bool) -> int:
        """The number of slots after which the numbers repeat, as is known of them or as the caller
        claims; 0 stands for all."""
        if claimed and slots == 0:
            raise InvalidArgument(
                "repeats=True says that the numbers repeat after slots=: give both, or neither"
            )
        if not 0 < slots < self.slots:
            return slots
        if self._view is None:
            # The engine refuses a shorter vector by its layout. That of a vector of all slots says
            # nothing.
            if not claimed and self.shape[-1] == self.slots:
                raise InvalidArgument(
                    f"slots={slots} is for numbers that repeat after {slots} slots, and a vector of all {self.slots} slots is not "
                    f"known to: leave slots away, encrypt the numbers with slots={slots}, or claim it by repeats=True"
                )
        # Elements that have places of their own are different numbers, whatever is claimed.
        elif self._view.period == 0 or slots % self._view.period:
            raise InvalidArgument(
                f"slots={slots} is for numbers that repeat after {slots} slots, and this array is not known to: leave slots away, or "
                "encrypt the numbers with slots="
            )
        return slots
