"""The sign by a composition of odd polynomials of given degrees, each the best for what the one
before it leaves.

E. Lee, J.-W. Lee, J.-S. No, Y.-S. Kim (IEEE TDSC 2021, eprint 2020/834); with degrees 15, 15 and 27
it is the ReLU of networks that others publish. ``jali.ckks.functions.sign`` chooses degrees itself,
and proves its errors; these are measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from jali.compiler.ir.graph import Array
from jali.errors import InvalidArgument

__all__ = ["LEAST", "SLACK", "Composite", "nearest_to_1", "sign"]

_ROUNDS = 40  # of the exchange, which takes about ten
_GRID = 60  # points between two extrema, on a grid that is finer near the ends
_ZOOMS, _POINTS = 4, 17  # towards an extremum
SLACK = 2.0**-30  #: By which an extremum may be larger than it was found.
_HALVINGS = 14  # of an interval for the logarithm of the gap
_INSIDE = 1001  # points in the gap
LEAST = 2.0**-40  #: Of the errors that rounding does not hide.


@dataclass(frozen=True, eq=False)
class Composite:
    """stages: the Chebyshev coefficients of odd polynomials on [-1, 1], which are applied one after
    the other. The values of all but the last lie in [-1, 1]. For gap <= |x| <= 1 the result is
    within `error` of the sign of x; nearer to 0 its modulus is at most 1 + error."""

    stages: tuple[Array, ...]
    gap: float
    error: float

    def __call__(self, x: Array) -> Array:
        for coefficients in self.stages:
            x = np.asarray(np.polynomial.chebyshev.chebval(x, coefficients), np.float64)
        return x

    @property
    def relu_error(self) -> float:
        """How far x (1 + sign(x)) / 2 is from ReLU on [-1, 1]."""
        return max(self.error / 2, self._inside)

    @cached_property
    def _inside(self) -> float:
        """The same nearer to 0 than the gap."""
        x = np.linspace(0, self.gap, _INSIDE)
        return float(np.abs(x * (1 - self(x)) / 2).max())


@cache
def sign(degrees: tuple[int, ...]) -> Composite:
    """The composition that gives the best ReLU: with the gap in which x (1 + sign) / 2 is as far
    from ReLU as outside of it.

    Raises InvalidArgument unless the degrees are odd, at least 3 and at most 31.
    """
    if not degrees or any(d % 2 == 0 or not 3 <= d <= 31 for d in degrees):
        raise InvalidArgument(f"degrees of a sign are odd, from 3 to 31, not {degrees}")
    low, high = -24.0, -0.5  # log2 of the gap: at a larger one, less error is left
    best = None
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        found = _composed(degrees, 2.0**middle)
        if found is not None and found.error / 2 > found._inside:
            low = middle
        else:
            high, best = middle, found or best
    assert best is not None
    return best


def _composed(degrees: tuple[int, ...], gap: float) -> Composite | None:
    """The composition for a gap; None if a stage would be off by less than rounding errors."""
    stages, low = [], gap
    for k, degree in enumerate(degrees):
        if ((1 - low) / (1 + low)) ** (degree // 2) < LEAST:  # about as fast does it converge
            return None
        coefficients, error = nearest_to_1(low, degree)
        if k < len(degrees) - 1:  # no value is above 1
            whole = (1 + error) * (1 + SLACK)
            coefficients, low = coefficients / whole, (1 - error) / whole
        stages.append(coefficients)
    return Composite(tuple(stages), gap, error * (1 + SLACK))


def nearest_to_1(low: float, degree: int) -> tuple[Array, float]:
    """The Chebyshev coefficients of the odd polynomial that is nearest to 1 on [low, 1], and its
    distance.

    p(x) = x q(x^2). Remez' exchange: x_k q(x_k^2) + (-1)^k h = 1 at (degree + 3) / 2 points, then
    at the extrema of the error. q has the basis T_j of x^2 mapped from [low^2, 1] to [-1, 1], which
    stays independent.
    """
    count = (degree + 1) // 2
    half, middle = (1 - low * low) / 2, (1 + low * low) / 2

    def basis(x: Array) -> Array:
        u = (x * x - middle) / half
        return x[:, None] * np.polynomial.chebyshev.chebvander(u, count - 1)

    grid = _between(low, _GRID * (count + 1))
    rows = basis(grid)
    q: Array = np.zeros(count)

    def off(x: Array) -> Array:
        return np.asarray(basis(x) @ q - 1)

    at = np.sqrt(middle - half * np.cos(np.linspace(0, np.pi, count + 1)))  # extrema of T_count
    for _ in range(_ROUNDS):
        signs = (-1.0) ** np.arange(count + 1)
        solved = np.linalg.solve(np.c_[basis(at), signs], np.ones(count + 1))
        q, level = np.asarray(solved[:-1], np.float64), float(solved[-1])
        found = np.array(_extrema(rows @ q - 1, count + 1))
        beside = np.maximum(found - 1, 0), np.minimum(found + 1, len(grid) - 1)
        at = np.sort(_refined(off, *(grid[k] for k in beside)))
        error = float(np.abs(off(at)).max())
        if error <= abs(level) * (1 + SLACK):
            break

    return _odd_series(lambda x: basis(x) @ q, degree), error


def _between(low: float, count: int) -> Array:
    """Points of [low, 1] that are dense near both ends, also in proportion to their distance from
    0."""
    t = (1 - np.cos(np.linspace(0, np.pi, count))) / 2
    return np.asarray(np.unique(np.r_[low ** (1 - t), low + (1 - low) * t]))


def _extrema(off: Array, count: int) -> list[int]:
    """Where the error has its extrema, one for each run of one sign; of more than enough, without
    the smaller one of both ends."""
    starts = np.flatnonzero(np.r_[True, np.signbit(off[1:]) != np.signbit(off[:-1])])
    ends = np.r_[starts[1:], len(off)]
    found = [int(a + np.argmax(np.abs(off[a:b]))) for a, b in zip(starts, ends, strict=True)]
    while len(found) > count:
        del found[0 if abs(off[found[0]]) < abs(off[found[-1]]) else -1]
    assert len(found) == count  # the solution of the equations changes its sign between them
    return found


def _refined(off: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Where the modulus is largest between each two of these points."""
    rows = np.arange(len(low))
    for _ in range(_ZOOMS):
        x = np.linspace(low, high, _POINTS, axis=1)
        k = np.argmax(np.abs(off(x.ravel())).reshape(x.shape), axis=1)
        low, high = x[rows, np.maximum(k - 1, 0)], x[rows, np.minimum(k + 1, _POINTS - 1)]
    return np.asarray(x[rows, k])


def _odd_series(polynomial: Callable[[Array], Array], degree: int) -> Array:
    """The coefficients of an odd polynomial of this degree on [-1, 1], from its values at
    Chebyshev's nodes."""
    nodes = np.cos((2 * np.arange(2 * degree) + 1) * np.pi / (4 * degree))
    coefficients = np.polynomial.chebyshev.chebfit(nodes, polynomial(nodes), degree)
    coefficients[::2] = 0.0
    return np.asarray(coefficients)
