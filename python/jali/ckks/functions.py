"""Functions of encrypted real numbers, each made for an interval, with a proven bound on its error.

    sigmoid = functions.sigmoid((-8, 8), error=1e-4)
    sigmoid.depth, sigmoid.max_error  # before any key is made
    y = sigmoid(x)  # x: an EncryptedArray with numbers in [-8, 8]

An array carries its peak, a bound on the modulus of its numbers, which was declared at encryption
and which operations propagate. Numbers that may lie outside the interval are refused before
anything is computed. ``within`` gives a narrower range than the peak: if you know one, or if the
interval is not symmetric about 0.

``max_error`` is proven for exact arithmetic (docs/math/functions.md). The noise of the ciphertexts
adds to it, see ``EncryptedArray.precision_bits``. All functions take real numbers. They also map
the slots behind a vector's length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import checks, refusals
from jali._core.refusals import Answering
from jali._jali import ckks as _ckks
from jali._jali.ckks import Polynomial
from jali.ckks.arguments import checked_count, checked_interval, checked_positive, checked_within
from jali.ckks.array import EncryptedArray
from jali.errors import InvalidArgument

__all__ = [
    "ArgMax",
    "Function",
    "Maximum",
    "absolute",
    "argmax",
    "exp",
    "gelu",
    "inverse",
    "inverse_sqrt",
    "log",
    "maximum",
    "minimum",
    "relu",
    "sigmoid",
    "sign",
    "silu",
    "sqrt",
    "step",
    "tanh",
]

#: What a function's error is if nothing is said.
ERROR = 2.0**-20


class Function(metaclass=Answering):
    """A function of every number of an encrypted array. Made by the functions of this module.

    >>> f = functions.sigmoid((-4, 4))
    >>> f.name, f.interval
    ('sigmoid', (-4.0, 4.0))
    """

    __slots__ = ("_core",)

    def __init__(self, core: _ckks.FunctionCore) -> None:
        self._core = core

    @property
    def name(self) -> str:
        """Its name."""
        return self._core.name

    @property
    def interval(self) -> tuple[float, float]:
        """(low, high), where its numbers must lie."""
        return self._core.interval

    @property
    def gap(self) -> float:
        """Numbers of smaller modulus are not told apart. 0 for all functions but ``sign`` and
        ``step``."""
        return self._core.gap

    @property
    def max_error(self) -> float:
        """A proven bound on the error, in exact arithmetic, on the interval without the gap."""
        return self._core.max_error

    @property
    def depth(self) -> int:
        """Levels that it takes, exactly."""
        return self._core.depth

    @property
    def multiplications(self) -> int:
        """Products of ciphertexts that it takes."""
        return self._core.multiplications

    @property
    def polynomial(self) -> Polynomial | None:
        """The one polynomial that it is; None if it is made of several."""
        return self._core.polynomial

    def __call__(self, x: Any, *, within: tuple[float, float] | None = None) -> Any:
        """The function of every number. The result of an EncryptedArray lies ``depth`` levels
        lower.

        Clear numbers give what the same numbers would give encrypted, without the noise.

        Slots that hold none of the numbers are mapped, too: those beside a slice, or beside a sum
        along an axis. If ``within`` is given, or the interval does not hold 0, they are masked
        first unless they are known to lie in the interval, which takes one level more.

        within: the least and the largest number that can occur in x, if you know better than its
            peak says.

        Raises InvalidArgument for numbers that may lie outside the interval, DepthExhausted,
        KeyMissing.
        """
        if isinstance(x, EncryptedArray):
            return x.evaluator._function(self._core, x, checked_within(within))
        return _clear(self._core, x)

    def __repr__(self) -> str:
        low, high = self.interval
        return f"Function({self.name} on [{low:g}, {high:g}], max_error={self.max_error:.2g}, depth={self.depth})"


class Maximum(metaclass=Answering):
    """The larger (or smaller) of two encrypted arrays, number by number. Made by ``maximum`` and
    ``minimum``.

    >>> f = functions.maximum(2.0)
    >>> f.bound, f.depth > 0
    (2.0, True)
    """

    __slots__ = ("_core",)

    def __init__(self, core: _ckks.MaximumCore) -> None:
        self._core = core

    @property
    def bound(self) -> float:
        """The largest modulus that its numbers may have."""
        return self._core.bound

    @property
    def max_error(self) -> float:
        """A proven bound on the error, in exact arithmetic, for equal numbers, too."""
        return self._core.max_error

    @property
    def depth(self) -> int:
        """Levels that it takes, below the lower of the two."""
        return self._core.depth

    @property
    def multiplications(self) -> int:
        """Products of ciphertexts that it takes."""
        return self._core.multiplications

    def __repr__(self) -> str:
        return f"Maximum(bound={self.bound:g}, max_error={self.max_error:.2g}, depth={self.depth})"

    def __call__(self, a: EncryptedArray, b: EncryptedArray) -> EncryptedArray:
        """The larger, or smaller, of each pair; errors as of Function."""
        if not isinstance(a, EncryptedArray) or not isinstance(b, EncryptedArray):
            raise InvalidArgument(
                "it takes two encrypted arrays: encrypt the other operand, too, or write x * 0 + numbers"
            )
        return a.evaluator._maximum(self._core, a, b)


class ArgMax(metaclass=Answering):
    """Which of the numbers of an encrypted vector is the largest. Made by ``argmax``.

    >>> f = functions.argmax(4, 8, gap=0.5)
    >>> f.count, f.gap
    (4, 0.5)
    """

    __slots__ = ("_core",)

    def __init__(self, core: _ckks.ArgMaxCore) -> None:
        self._core = core

    @property
    def count(self) -> int:
        """How many numbers a vector has."""
        return self._core.count

    @property
    def bound(self) -> float:
        """The largest modulus that its numbers may have."""
        return self._core.bound

    @property
    def gap(self) -> float:
        """How far the largest has to be above the others for ``max_error`` to hold."""
        return self._core.gap

    @property
    def max_error(self) -> float:
        """A proven bound on how far the result's numbers are from 0 and 1, in exact arithmetic."""
        return self._core.max_error

    @property
    def depth(self) -> int:
        """Levels that it takes."""
        return self._core.depth

    @property
    def rotations(self) -> list[int]:
        """The rotation keys that it needs."""
        return self._core.rotations

    def __repr__(self) -> str:
        sizes = f"count={self.count}, bound={self.bound:g}, gap={self.gap:g}"
        return f"ArgMax({sizes}, max_error={self.max_error:.2g}, depth={self.depth})"

    def __call__(self, x: EncryptedArray, axis: int | None = None) -> EncryptedArray:
        """An array of the shape of x: 1 where the largest number lies and 0 elsewhere, ``depth``
        levels lower.

        axis: along which ``count`` numbers are compared. None stands for all numbers of an array,
            and for those of each vector of a batch. Arrays that are no vectors or batches take one
            level more, because what lies behind the compared numbers is masked, and a second one if
            these have to be moved apart, at most into 64 places; the moves need keys for rotations
            ("powers" is always enough).

        For a vector, the index itself is ``(result * numpy.arange(count)).sum(...)``, one level
        more. If several numbers are nearly the largest, the numbers of the result lie anywhere
        between 0 and 1.
        """
        if not isinstance(x, EncryptedArray):
            raise InvalidArgument("this takes an encrypted array")
        return x.evaluator._argmax(self._core, x, axis)


# --- smooth functions -------------------------------------------------------------------------


def _smooth(
    name: str,
    interval: tuple[float, float],
    error: float | None,
    degree: int | None,
    depth: int | None,
) -> Function:
    given = [value is not None for value in (error, degree, depth)]
    if sum(given) > 1:
        raise InvalidArgument("give one of error, degree and depth")
    wanted = ERROR if not any(given) else error
    return Function(
        _ckks.FunctionCore.smooth(
            name,
            checked_interval(interval),
            None if wanted is None else checked_positive(wanted, "error"),
            None if degree is None else checks.whole(degree, 0, "degree must be a whole number"),
            None if depth is None else checked_count(depth, "depth"),
        )
    )


def sigmoid(
    interval: tuple[float, float] = (-8.0, 8.0),
    *,
    error: float | None = None,
    degree: int | None = None,
    depth: int | None = None,
) -> Function:
    """1 / (1 + exp(-x)) by the minimax polynomial on an interval (Remez).

    interval: (low, high), where the numbers lie.
    error: the largest absolute error allowed, 2^-20 by default. The polynomial has the least degree
        that is proven to reach it.
    degree: in place of error, the largest degree.
    depth: in place of error, the largest number of levels.

    Raises InvalidArgument for several of error, degree and depth, and if no polynomial reaches it.

    >>> f = functions.sigmoid((-4, 4))
    >>> bool(abs(f(0.0) - 0.5) <= f.max_error)
    True
    """
    return _smooth("sigmoid", interval, error, degree, depth)


def tanh(
    interval: tuple[float, float] = (-4.0, 4.0),
    *,
    error: float | None = None,
    degree: int | None = None,
    depth: int | None = None,
) -> Function:
    """The hyperbolic tangent.

    interval, error, degree, depth: as of ``sigmoid``.

    >>> f = functions.tanh((-2, 2))
    >>> bool(abs(f(0.0)) <= f.max_error)
    True
    """
    return _smooth("tanh", interval, error, degree, depth)


def gelu(
    interval: tuple[float, float] = (-8.0, 8.0),
    *,
    error: float | None = None,
    degree: int | None = None,
    depth: int | None = None,
) -> Function:
    """x Phi(x), with the distribution function Phi of normal numbers.

    interval, error, degree, depth: as of ``sigmoid``.

    >>> f = functions.gelu((-3, 3))
    >>> bool(abs(f(0.0)) <= f.max_error)
    True
    """
    return _smooth("gelu", interval, error, degree, depth)


def silu(
    interval: tuple[float, float] = (-8.0, 8.0),
    *,
    error: float | None = None,
    degree: int | None = None,
    depth: int | None = None,
) -> Function:
    """x sigmoid(x).

    interval, error, degree, depth: as of ``sigmoid``.

    >>> f = functions.silu((-4, 4))
    >>> bool(abs(f(0.0)) <= f.max_error)
    True
    """
    return _smooth("silu", interval, error, degree, depth)


def exp(
    interval: tuple[float, float] = (-1.0, 1.0),
    *,
    error: float | None = None,
    degree: int | None = None,
    depth: int | None = None,
) -> Function:
    """The exponential function.

    interval, error, degree, depth: as of ``sigmoid``.

    >>> f = functions.exp((-1, 1))
    >>> bool(abs(f(0.0) - 1.0) <= f.max_error)
    True
    """
    return _smooth("exp", interval, error, degree, depth)


def log(
    interval: tuple[float, float],
    *,
    error: float | None = None,
    degree: int | None = None,
    depth: int | None = None,
) -> Function:
    """The natural logarithm on an interval above 0.

    interval, error, degree, depth: as of ``sigmoid``.

    >>> f = functions.log((0.5, 2))
    >>> bool(abs(f(1.0)) <= f.max_error)
    True
    """
    return _smooth("log", interval, error, degree, depth)


# --- inverses and roots -----------------------------------------------------------------------


def inverse(
    interval: tuple[float, float], *, error: float = ERROR, steps: int | None = None
) -> Function:
    """1 / x on an interval above 0.

    interval: (low, high), where the numbers lie; low is above 0.
    error: the largest absolute error allowed.
    steps: Goldschmidt iterations after a polynomial of a lower degree. None takes the fewest
        levels. Iterations save products and cost a level.

    >>> f = functions.inverse((0.5, 2))
    >>> bool(abs(f(2.0) - 0.5) <= f.max_error)
    True
    """
    return Function(
        _ckks.FunctionCore.inverse(
            checked_interval(interval),
            checked_positive(error, "error"),
            None if steps is None else checked_count(steps, "steps"),
        )
    )


def inverse_sqrt(
    interval: tuple[float, float], *, error: float = ERROR, steps: int | None = None
) -> Function:
    """1 / sqrt(x) on an interval above 0.

    interval, error: as of ``inverse``.
    steps: Newton iterations, of two levels each, after a polynomial of a lower degree.

    >>> f = functions.inverse_sqrt((0.25, 4))
    >>> bool(abs(f(4.0) - 0.5) <= f.max_error)
    True
    """
    return Function(
        _ckks.FunctionCore.root(
            checked_interval(interval),
            checked_positive(error, "error"),
            None if steps is None else checked_count(steps, "steps"),
            True,
        )
    )


def sqrt(
    interval: tuple[float, float], *, error: float = ERROR, steps: int | None = None
) -> Function:
    """The square root on an interval above 0.

    interval, error, steps: as of ``inverse_sqrt``. With steps it is x times 1 / sqrt(x).

    >>> f = functions.sqrt((0.25, 4))
    >>> bool(abs(f(4.0) - 2.0) <= f.max_error)
    True
    """
    return Function(
        _ckks.FunctionCore.root(
            checked_interval(interval),
            checked_positive(error, "error"),
            None if steps is None else checked_count(steps, "steps"),
            False,
        )
    )


# --- comparisons ------------------------------------------------------------------------------


def sign(bound: float = 1.0, *, gap: float, error: float = 2.0**-10) -> Function:
    """-1 for negative numbers and 1 for positive ones, of modulus from ``gap`` to ``bound``.

    It is the composition of minimax polynomials that takes the fewest levels. Nearer to 0 than the
    gap, the result has the sign of x and a modulus of at most 1 + error.

    bound: the largest modulus of the numbers.
    gap: the smallest modulus for which the error holds. A smaller gap takes more levels.
    error: the largest absolute error allowed.

    >>> f = functions.sign(gap=0.1)
    >>> bool(abs(f(-0.5) + 1.0) <= f.max_error)
    True
    """
    return Function(_sign(bound, gap, error, False))


def step(bound: float = 1.0, *, gap: float, error: float = 2.0**-10) -> Function:
    """0 for negative numbers and 1 for positive ones, of modulus from ``gap`` to ``bound``; in
    between for others.

    bound, gap, error: as of ``sign``.

    >>> f = functions.step(gap=0.1)
    >>> bool(abs(f(0.5) - 1.0) <= f.max_error)
    True
    """
    return Function(_sign(bound, gap, error, True))


def _sign(bound: float, gap: float, error: float, step: bool) -> _ckks.FunctionCore:
    return _ckks.FunctionCore.sign(
        checked_positive(bound, "bound"),
        checked_positive(gap, "gap"),
        checked_positive(error, "error"),
        step,
    )


def relu(bound: float = 1.0, *, error: float = 2.0**-10) -> Function:
    """max(x, 0) of numbers of modulus up to ``bound``, also near 0: x times ``step``.

    bound, error: as of ``sign``.

    >>> f = functions.relu()
    >>> bool(abs(f(0.5) - 0.5) <= f.max_error)
    True
    """
    return Function(
        _ckks.FunctionCore.relu(
            checked_positive(bound, "bound"), checked_positive(error, "error"), False
        )
    )


def absolute(bound: float = 1.0, *, error: float = 2.0**-10) -> Function:
    """The modulus of real numbers up to ``bound``, also near 0: x times ``sign``.

    bound, error: as of ``sign``.

    >>> f = functions.absolute()
    >>> bool(abs(f(-0.5) - 0.5) <= f.max_error)
    True
    """
    return Function(
        _ckks.FunctionCore.relu(
            checked_positive(bound, "bound"), checked_positive(error, "error"), True
        )
    )


def maximum(bound: float = 1.0, *, error: float = 2.0**-10) -> Maximum:
    """The larger of two arrays of numbers: ``maximum(bound)(a, b)``.

    bound: the largest modulus of the numbers. 0.5 takes a level less than 1.
    error: the largest absolute error allowed.

    >>> largest = functions.maximum(2.0)
    >>> largest.bound, largest.max_error < 0.01
    (2.0, True)
    """
    return Maximum(
        _ckks.MaximumCore(checked_positive(bound, "bound"), checked_positive(error, "error"), False)
    )


def minimum(bound: float = 1.0, *, error: float = 2.0**-10) -> Maximum:
    """The smaller of two arrays of numbers.

    bound, error: as of ``maximum``.

    >>> functions.minimum(2.0).bound
    2.0
    """
    return Maximum(
        _ckks.MaximumCore(checked_positive(bound, "bound"), checked_positive(error, "error"), True)
    )


def argmax(
    count: int, slots: int, *, bound: float = 1.0, gap: float, error: float = 2.0**-10
) -> ArgMax:
    """Which of ``count`` numbers is the largest, as a vector of one 1 and zeros.

    Every number is compared with every other, by count / 2 comparisons for all slots at once. The
    levels are those of one comparison and log2(count - 1).

    count: how many numbers are compared, at least 2.
    slots: of the vectors, ``params.slots`` unless they are sparsely packed; ``count``, or at least
        twice as many.
    bound: the largest modulus of the numbers.
    gap: how far the largest is above all others.
    error: how near the result's numbers are to 0 and 1.

    >>> functions.argmax(4, 8, gap=0.5).count
    4
    """
    return ArgMax(
        _ckks.ArgMaxCore(
            checks.whole(count, 2, "count must be a whole number from 2"),
            checks.whole(slots, 2, "slots must be a power of two"),
            checked_positive(bound, "bound"),
            checked_positive(gap, "gap"),
            checked_positive(error, "error"),
        )
    )


def _clear(core: Callable[[float], float], x: Any) -> npt.NDArray[np.float64]:
    numbers = np.asarray(x)
    if numbers.dtype.kind not in "biuf":
        raise InvalidArgument(
            f"this takes an encrypted array or real numbers, not {checks.shown(x)}"
        )
    with np.errstate(all="ignore"):  # far outside of its interval a polynomial overflows
        values: npt.NDArray[np.float64] = np.vectorize(core, otypes=[np.float64])(
            numbers.astype(np.float64)
        )
    return values


def __getattr__(name: str) -> object:
    raise refusals.of_module(__name__, name)
