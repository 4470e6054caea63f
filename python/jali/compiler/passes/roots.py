"""Square roots of numbers that reach 0, by one polynomial or by a composition of several.

The slope of a root has no bound near 0, and the largest error of an approximation lies there.

*One polynomial.* sqrt(v^2) = |v|, so that the best polynomial of degree n on [0, 1] is off by
0.14 / n (S. Bernstein). Up to degree 254 it is found by Remez' exchange. The Chebyshev coefficients
of the root itself are (4 / pi) (-1)^(k+1) / (4 k^2 - 1), and those of its best polynomials are
these times factors that hardly depend on n, as a function of k / n; but for the last one, which
makes the error oscillate far from 0. So for higher degrees the factors of degree 254 are stretched,
which leaves 0.142 / n.

*A composition.* Odd polynomials p_k(v) = v q_k(v^2) that come near the sign of v, one after the
other (composite.py), lead v to y_k = p_k(.. p_1(v)), and v y_k is near |v|. For that, v = sqrt(u)
need not be known. With u_k = y_k^2 and s_k = v y_k

    u_k = u_(k-1) q_k(u_(k-1))^2,    s_1 = u q_1(u),    s_k = s_(k-1) q_k(u_(k-1)),    u_0 = u.

If p_k has the degree 2^l - 1, then u_k is a polynomial of this degree in u_(k-1), and takes l
levels; q_k takes l - 1, and its product one. So a composition takes the sum of all l. A polynomial
of the same error takes three to five levels less, but two to three times the products, and all its
levels between two bootstrappings.

*Errors are proven*, for exact arithmetic. With u = v^2 the error of a polynomial of degree n is a
polynomial in v of degree m = 2 n, which is nowhere larger than 1 / cos(m pi / 2 N) times what it is
at N Chebyshev nodes (Ehlich and Zeller, see docs/math/functions.md). The same bounds p_k - 1 on
[low, 1]. For v from the gap on, y_k ends within an error e of 1, so that v y_k is off by v e. In
the gap every p_k is increasing, so that v (1 - y_k(v)) <= b (1 - y_k(a)) for v in [a, b].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from jali import ckks
from jali.compiler.ir.graph import Array
from jali.compiler.passes.composite import LEAST, SLACK, nearest_to_1

__all__ = [
    "LEAST_ERROR",
    "LEVEL",
    "RESTORED_LEVEL",
    "RootPolynomial",
    "RootStages",
    "is_near_zero",
    "root_of",
    "value_of",
]

LEAST_ERROR = 2.0**-20  #: Of a composition, as a part of the largest root.
_NEAR_ZERO = 2.0**-10  # of an interval's end, below which a root is approximated from 0
#: No polynomial on [0, 1] has a smaller product of degree and error. On [low, 1] the error falls
#: with the degree as a geometric series.
_BEST = 0.139
_REMEZ = 254  # the highest degree for Remez' exchange
_DEGREES = (2, 6, 14, 30, 62, 126, _REMEZ, 382, 510, 766, 1022, 1534, 2046, 3070, 4094)
_LOGS = (3, 4, 5)  # log2 of the degrees + 1 of a composition's odd polynomials
_MOST_LEVELS = 32
#: Products of ciphertexts that a level is worth. Between two bootstrappings in a ring of 2^16,
#: measured costs of a GPU say 6, and those of a CPU 15. A program without bootstrapping may need a
#: larger ring for a few levels more (the notebook's page on square roots).
RESTORED_LEVEL, LEVEL = 10, 25
_LOW = 510  # up to this degree, a polynomial is cheaper than every composition as exact as it
_PER_DEGREE = 8  # nodes at which an error is computed, for each degree
_FINE = 1024  # the same for polynomials of low degree
_SMOOTH = 20  # the degree of the factors as a function of k / n
_GAP = 12.0  # errors that the gap is wide, at first
_TRIES = 8
_INSIDE = 4096  # intervals in the gap


@dataclass(frozen=True, eq=False)
class RootPolynomial:
    """The Chebyshev coefficients of a polynomial near sqrt(max(x, 0)) on an interval, and how far
    it is off."""

    coefficients: Array
    error: float

    def price(self, level: float) -> float:
        """Products of ciphertexts, and what its levels are worth."""
        by = ckks.Polynomial(self.coefficients, "chebyshev", (-1.0, 1.0))
        return by.multiplications + level * by.depth


@dataclass(frozen=True, eq=False)
class RootStages:
    """A composition near sqrt(u) on [0, 1], as Chebyshev coefficients in t = 2 u - 1.

    inner: of 2 u_k - 1 for 2 u_(k-1) - 1, one less than factors.
    factors: of u q_1(u), q_2, q_3 ..
    error: how far it is off.
    """

    inner: tuple[Array, ...]
    factors: tuple[Array, ...]
    error: float

    def __call__(self, u: Array) -> Array:
        """Its value for clear numbers from 0 to 1."""
        t = 2 * np.asarray(u, np.float64) - 1
        found = value_of(t, self.factors[0])
        for to_next, factor in zip(self.inner, self.factors[1:], strict=True):
            t = value_of(t, to_next)
            found = found * value_of(t, factor)
        return found

    def from_low(self, low: float) -> RootStages:
        """The same on [low, 1], for t from -1 to 1 there."""
        if low <= 0:
            return self

        def moved(series: Array) -> Array:
            return _series(lambda u: _value(series, u), len(series) - 1, low)

        inner, factors = ((moved(c[0]), *c[1:]) for c in (self.inner, self.factors))
        return RootStages(inner, factors, self.error)

    @property
    def depth(self) -> int:
        """Levels that it takes."""
        degrees = [*map(len, self.inner), 2 * len(self.factors[-1])]
        return sum(degree.bit_length() - 1 for degree in degrees)

    @property
    def multiplications(self) -> int:
        """Products of ciphertexts."""
        series = (*self.inner, *self.factors)
        each = (ckks.Polynomial(c, "chebyshev", (-1.0, 1.0)).multiplications for c in series)
        return sum(each) + len(self.inner)

    def price(self, level: float) -> float:
        """Products of ciphertexts, and what its levels are worth."""
        return self.multiplications + level * self.depth


def value_of(t: Array, series: Array) -> Array:
    """The value of Chebyshev coefficients on [-1, 1]."""
    return np.asarray(np.polynomial.chebyshev.chebval(t, series))


def is_near_zero(interval: tuple[float, float]) -> bool:
    """Whether a root on this interval is approximated as one of numbers that reach 0."""
    return interval[0] < _NEAR_ZERO * interval[1]


def root_of(
    interval: tuple[float, float], error: float, *, level: float = LEVEL, whole: bool = False
) -> RootPolynomial | RootStages | None:
    """The cheapest approximation of sqrt(max(x, 0)) that is off by at most `error`; None if there
    is none. A composition is one of sqrt(u), times sqrt(high - low), for u = (x - low) / (high -
    low) and low = min(interval[0], 0).

    interval: one that is_near_zero, whose end is above 0.
    level: how many products of ciphertexts a level is worth.
    whole: whether it must be a polynomial.
    """
    one = _polynomial(interval, error)
    if whole or (one is not None and len(one.coefficients) <= _LOW + 1):
        return one
    low, high = min(interval[0], 0.0), interval[1]
    stages = _stages((error - math.sqrt(-low)) / math.sqrt(high - low))
    if stages is None or (one is not None and one.price(level) <= stages.price(level)):
        return one
    return stages


# --- one polynomial ---------------------------------------------------------------------------


def _polynomial(interval: tuple[float, float], error: float) -> RootPolynomial | None:
    """The one of the lowest degree that is near enough."""
    size, low = math.sqrt(interval[1]), interval[0] / interval[1]
    for degree in _DEGREES:
        least = _BEST * math.exp(-2 * degree * math.sqrt(max(low, 0.0))) / degree
        if least * size <= error:
            found = _of_degree(degree, low)
            if found.error * size <= error:
                return RootPolynomial(found.coefficients * size, found.error * size)
    return None


@lru_cache(maxsize=128)
def _of_degree(degree: int, low: float) -> RootPolynomial:
    """Of sqrt(max(x, 0)) on [low, 1]."""
    if degree <= _REMEZ:
        best = ckks.Polynomial.approximate(
            lambda x: math.sqrt(max(x, 0.0)), degree, (low, 1.0), minimax=True
        )
        return _centred(np.real(np.asarray(best.coefficients)), low)
    if low == 0:
        return _centred(_stretched(degree), low)
    # That of [0, 1] on a part of it, or that of [low, 1] moved up by half of what it is off; and
    # the one that is right at Chebyshev's points.
    start = min(low, 0.0)
    whole, size = _of_degree(degree, 0.0).coefficients, math.sqrt(1 - start)
    moved = _series(lambda x: size * _value(whole, (x - start) / (1 - start)), degree, low)
    right = _series(lambda x: np.sqrt(np.maximum(x, 0.0)), degree, low)
    return min((_centred(c, low) for c in (moved, right)), key=lambda found: found.error)


@lru_cache(maxsize=1)
def _factors() -> tuple[Callable[[Array], Array], float]:
    """By what the coefficients of the root are multiplied, as a function of k / n, and n times the
    last coefficient."""
    best = _of_degree(_REMEZ, 0.0).coefficients
    at, by = np.arange(1, _REMEZ) / _REMEZ, best[1:-1] / _of_root(_REMEZ)[1:-1]
    return np.polynomial.Chebyshev.fit(at, by, _SMOOTH, domain=[0, 1]), best[-1] * _REMEZ


def _of_root(degree: int) -> Array:
    """The first Chebyshev coefficients of sqrt on [0, 1]."""
    k = np.arange(1, degree + 1)
    return np.asarray(np.r_[2 / np.pi, (4 / np.pi) * (-1.0) ** (k + 1) / (4 * k * k - 1)])


def _stretched(degree: int) -> Array:
    """The Chebyshev coefficients of a polynomial of an even degree on [0, 1] that is nearly the
    best one."""
    (factor, last), found = _factors(), _of_root(degree)
    found[1:] *= factor(np.arange(1, degree + 1) / degree)
    found[-1] = last / degree
    return found


def _centred(coefficients: Array, low: float) -> RootPolynomial:
    """The polynomial, moved so that it is off as far above as below."""
    degree, start = len(coefficients) - 1, math.sqrt(max(low, 0.0))
    v = start + (1 - start) * (1 + _nodes(2 * _PER_DEGREE * degree)) / 2
    off = [value_of(_on_unit(v * v, low), coefficients) - v]
    if low < 0:
        x = low * (1 + _nodes(_PER_DEGREE * degree)) / 2
        off.append(value_of(_on_unit(x, low), coefficients))
    most, least = (float(limit(list(map(limit, off)))) for limit in (np.max, np.min))
    moved = coefficients.copy()
    moved[0] -= (most + least) / 2
    return RootPolynomial(moved, (most - least) / 2 / math.cos(math.pi / (2 * _PER_DEGREE)))


def _nodes(count: int) -> Array:
    """The zeros of T_count."""
    return np.asarray(np.cos((np.arange(count) + 0.5) * np.pi / count))


def _on_unit(x: Array, low: float) -> Array:
    """Numbers of [low, 1] in [-1, 1]."""
    return (x - low) * (2 / (1 - low)) - 1


def _value(coefficients: Array, u: Array) -> Array:
    """Of a series on [0, 1]."""
    return value_of(2 * u - 1, coefficients)


def _series(function: Callable[[Array], Array], degree: int, low: float = 0.0) -> Array:
    """The Chebyshev coefficients on [low, 1] of the polynomial that is right at the zeros of
    T_(degree + 1): the cosine transform of these values."""
    count = degree + 1
    values = function(low + (1 - low) * (_nodes(count) + 1) / 2)
    turned = np.exp(-0.5j * np.pi / count * np.arange(count))
    found = np.real(np.fft.fft(np.r_[values, values[::-1]])[:count] * turned) / count
    found[0] /= 2
    return np.asarray(found)


# --- a composition ----------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _stages(error: float) -> RootStages | None:
    """The composition of the fewest levels that is off by at most `error` on [0, 1]."""
    if error < LEAST_ERROR:
        return None
    gap = min(_GAP * error, 0.5)
    for _ in range(_TRIES):
        chosen = _fewest_levels(gap, error)
        inside = _inside(chosen, gap) if chosen else math.inf
        if chosen and inside <= error:
            return _composed(chosen, max(inside, chosen[-1][1]))
        gap *= min(0.98, error / inside) if chosen else 0.5
    return None


_Chosen = tuple[tuple[Array, float], ...]  # odd polynomials, and how far they are from 1


def _fewest_levels(gap: float, error: float) -> _Chosen:
    """The odd polynomials, each nearest to 1 where those before it lead numbers of [gap, 1], of
    which the last one is within `error` of 1. Empty if there are none.

    Of those that take equally many levels, the ones that lead the gap nearest to 1 are the best,
    whatever follows.
    """
    best: dict[int, tuple[float, _Chosen]] = {0: (gap, ())}
    for levels in range(min(_LOGS), _MOST_LEVELS):
        for log in (one for one in _LOGS if levels - one in best):
            low, before = best[levels - log]
            found = _nearest(low, 2**log - 1)
            if found is not None and found[1] < 1:
                reached = (1 - found[1]) / (1 + found[1])
                if levels not in best or reached > best[levels][0]:
                    best[levels] = reached, (*before, found)
        if levels in best and len(best[levels][1]) > 1 and best[levels][1][-1][1] <= error:
            return best[levels][1]
    return ()


def _nearest(low: float, degree: int) -> tuple[Array, float] | None:
    """The odd polynomial that is nearest to 1 on [low, 1], divided so that it is at most 1 + error
    there, and its error; None if rounding would hide it."""
    if ((1 - low) / (1 + low)) ** ((degree + 1) // 2) < LEAST:
        return None
    coefficients, _ = nearest_to_1(low, degree)
    x = low + (1 - low) * (1 + _nodes(_FINE * degree)) / 2
    off = np.abs(value_of(x, coefficients) - 1).max()
    return coefficients, float(off) * (1 + SLACK) / math.cos(math.pi / (2 * _FINE))


def _inside(chosen: _Chosen, gap: float) -> float:
    """How far v y(v) is from v at most, for v below the gap."""
    v = np.linspace(0, gap, _INSIDE + 1)
    y = v
    for k, (coefficients, error) in enumerate(chosen):
        y = value_of(y, coefficients)
        y = y if k == len(chosen) - 1 else y / (1 + error)
    return float((v[1:] * (1 - y[:-1])).max()) * (1 + SLACK)


@dataclass(frozen=True, eq=False)
class _Odd:
    """An odd polynomial p(v) on [-1, 1], for v = sqrt(u)."""

    series: Array

    def __call__(self, u: Array) -> Array:
        return value_of(np.sqrt(u), self.series)

    def factor(self, u: Array) -> Array:
        """q(u)."""
        return np.asarray(self(u) / np.sqrt(u))

    def first(self, u: Array) -> Array:
        """u q(u)."""
        return np.asarray(self(u) * np.sqrt(u))

    def inner(self, u: Array) -> Array:
        """2 p(v)^2 - 1."""
        return np.asarray(2 * self(u) ** 2 - 1)


def _composed(chosen: _Chosen, error: float) -> RootStages:
    """The composition in terms of u."""
    inner, factors = list[Array](), list[Array]()
    for k, (coefficients, off) in enumerate(chosen):
        last, half = k == len(chosen) - 1, len(coefficients) // 2  # coefficients of q
        stage = _Odd(coefficients if last else coefficients / (1 + off))
        factors.append(_series(stage.factor, half - 1) if k else _series(stage.first, half))
        if not last:
            inner.append(_series(stage.inner, 2 * half - 1))
    return RootStages(tuple(inner), tuple(factors), error)
