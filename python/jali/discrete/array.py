"""Encrypted arrays of exact integers, bound to the evaluator that computes on them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from jali._core import checks
from jali._core.axes import axes as numbered
from jali._core.view import View
from jali._jali.discrete import Ciphertext
from jali.discrete.arithmetic import Arithmetic
from jali.discrete.values import checked_range, number
from jali.errors import InvalidArgument, Unsupported

if TYPE_CHECKING:
    from jali.discrete.evaluator import Evaluator

__all__ = ["EncryptedArray"]


class EncryptedArray(Arithmetic):
    """An encrypted array of integers, of any shape, with NumPy's arithmetic.

    Evaluator.bind makes it. ``+ - *`` take other encrypted arrays of the same evaluator, and arrays
    and numbers on either side; ``**`` takes whole numbers from 1. Relinearisation and levels are
    managed for you. A product of two encrypted arrays costs one level ("bgv") or none ("bfv"), one
    with an array in the clear about one; a product with a number and a sum cost none. Values are
    immutable. Operations release the interpreter's lock, and may be used from several threads.

    Operations raise RangeExceeded if a result may be a number that the modulus does not tell from
    another one, DepthExhausted, which names the depth that would be enough, KeyMissing, which names
    the key, and InvalidArgument for shapes that do not fit: all of them before they compute.

    >>> client = discrete.Client(discrete.Params.create(modulus=65537, depth=1))
    >>> server = discrete.Evaluator(client.params, client.evaluation_keys())
    >>> x = server.bind(client.encrypt(np.array([3, -1, 7], dtype=np.int8)))
    >>> client.decrypt(x * x + 2 * x)
    array([15, -1, 63])
    """

    __slots__ = ()
    _ordering = (
        "numbers modulo a number have no order: decrypt them first, or compare encrypted integers by jali.tfhe, "
        "tfhe.Client.encrypt_int(values, bits), which has x < y"
    )

    # --- what is known of it --------------------------------------------------------------------

    @property
    def evaluator(self) -> Evaluator:
        """The evaluator that computes on it."""
        return self._server

    @property
    def ciphertext(self) -> Ciphertext:
        """The ciphertext to decrypt, in the host's memory. It knows where the elements lie."""
        core, view = self._server._engine, self._place.changing()
        value = core.with_view(self._ct, view.as_tuple(), view.zero)
        return value if core.on_host else core.send_back(value)

    @property
    def level(self) -> int:
        """How many multiplications may follow, as far as levels go. See noise_budget."""
        return self._ct.level

    @property
    def range(self) -> tuple[int, int]:
        """The lowest and the highest number that it can hold, as was declared at encryption and
        follows from the operations since. It is public."""
        return self._ct.range

    @property
    def wraps(self) -> bool:
        """Whether its numbers are residues modulo params.modulus, with which operations compute
        modulo that number."""
        return self._ct.wraps

    @property
    def noise_budget(self) -> float:
        """Bits by which its noise may still grow until decryption would be wrong, from public facts
        alone. Operations are refused rather than let it become 0."""
        return self._server._engine.noise_budget(self._ct)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the decrypted numbers: int64."""
        return np.dtype(np.int64)

    def __repr__(self) -> str:
        low, high = self.range
        return (
            f"EncryptedArray(shape={self.shape}, range={'modulo' if self.wraps else (low, high)}, level={self.level}, "
            f"noise_budget={self.noise_budget:.1f})"
        )

    # --- what its numbers are taken for -----------------------------------------------------------

    def wrap(self) -> Self:
        """The same numbers; from here on, arithmetic is meant modulo params.modulus.

        Nothing is refused for its range then, and decryption shows the residues nearest to 0, from
        params.low to params.high. What is computed with such an array wraps, too.

        >>> client = discrete.Client(discrete.Params.create(modulus=65537, depth=1))
        >>> server = discrete.Evaluator(client.params, client.evaluation_keys())
        >>> x = server.bind(client.encrypt(np.array([30000, -1], dtype=np.int16)))
        >>> client.decrypt(x.wrap() + 30000)
        array([-5537, 29999])
        """
        return self._new(self._server._engine.as_residues(self._ct))

    def with_range(self, low: int, high: int) -> Self:
        """The same numbers; from here on, all of them are taken to lie from low to high.

        It is for computed numbers of which you know more than the operations tell: a product of an
        array and its negative is never above 0. Nobody checks it before decryption, which raises
        WrongDecryption for a number outside; what is computed from a number outside may be wrong.

        Raises RangeExceeded if the modulus does not tell so many numbers apart.
        """
        bounds = checked_range((low, high))
        return self._new(self._server._engine.with_range(self._ct, *bounds))

    # --- sums -------------------------------------------------------------------------------------

    def sum(self, axis: Any = None, keepdims: bool = False, *, wrap: bool = False) -> Self:
        """The sum along an axis, several, or all, as numpy.sum. It takes no level.

        keepdims: whether the axes that are summed stay, with one element each.
        wrap: whether arithmetic modulo params.modulus is meant, as after ``wrap()``.

        It takes about log2(count) rotations by 1, 2, 4 .. times the distance of the elements. Raises
        RangeExceeded if so many numbers of this range may have a sum that does not fit.
        """
        which = numbered(axis, self.ndim)
        keep = checks.flag(keepdims, "keepdims")
        if checks.flag(wrap, "wrap"):
            return self.wrap().sum(which, keep)
        engine, count = self._server._engine, math.prod(self.shape[k] for k in which)
        engine.check_sum(self._ct, count)
        if self.wraps:
            return self._summed(which, keep)
        # On the way zeros are added, too, as if they were numbers: modulo T these sums fit.
        low, high = self.range
        total = self.wrap()._summed(which, keep)
        return total._new(engine.with_range(total._ct, count * low, count * high))

    # --- moves ------------------------------------------------------------------------------------

    def rotate(self, steps: int) -> Self:
        """A vector, moved in all slots of its ciphertext: slot i of the result is slot i + steps,
        cyclically over params.slots, like numpy.roll by -steps.

        A vector shorter than the slots moves into zeros: no number that lies behind it comes in.
        Slots lie in two rows, so that it takes a level, two rotations and two masks. It takes none
        of them but an exchange of the rows if the steps are a multiple of params.slots / 2 and the
        vector fills all slots. Raises Unsupported for arrays that are no vectors, and for those that
        do not begin in the first slot.
        """
        if isinstance(steps, (bool, np.bool_)) or not isinstance(steps, (int, np.integer)):
            raise InvalidArgument(
                f"a rotation must be a whole number of slots, not {checks.shown(steps)}"
            )
        view = self._place
        plain = self.ndim == 1 and view.first == 0 and (view.strides[0] == 1 or view.size == 1)
        if not plain or self._ct.rows > 2 or view.period:
            raise Unsupported(
                "rotate moves the slots of a vector as it was encrypted, of up to params.slots numbers: of another array "
                "take slices, and put them together with np.concatenate"
            )
        value = self._server._core.rotate_all(self._ct, int(steps), view.size)
        moved = View(view.shape, view.strides, 0, view.slots, view.vectors)
        return self._new(value, moved)

    # --- products of matrices ---------------------------------------------------------------------

    def __matmul__(self, other: Any) -> EncryptedArray:
        """The matrix product with a vector or a matrix, in the clear or encrypted, of at most two
        axes.

        A matrix in the clear takes one level, and a rotation for each of its diagonals that is not
        zero; keys made with rotations="powers" serve every matrix. Products of two encrypted
        operands take one level for vectors, and up to two more for matrices, whose rows are masked
        and repeated.
        """
        return self._server._matmul(self, other)

    def __rmatmul__(self, other: Any) -> EncryptedArray:
        return self._server._matmul(other, self)

    def dot(self, other: Any) -> EncryptedArray:
        """The same as ``@``, and the product with a number."""
        value = None if isinstance(other, EncryptedArray) else number(other)
        return self @ other if value is None else self * value

    # --- what the array is taken for --------------------------------------------------------------

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise Unsupported(
            "an encrypted value is not an array: decrypt it first. For a product write matrix @ x instead of matrix.dot(x)"
        )

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """NumPy's functions that have encrypted results, such as numpy.stack and numpy.sum."""
        result = self._server._numpy(function, args, kwargs)
        if result is NotImplemented:
            return super().__array_function__(function, types, args, kwargs)
        return result
