"""Products of two encrypted arrays: several ways to compute one, of which the one with the least
work is taken.

Of matrices, c[i, j] = sum_k a[i, k] b[k, j]. An index that the slots do not hold already is a loop,
or an axis along which numbers are repeated:

- outer: a loop over k, column k of a times row k of b;
- rows: a loop over i, the sum over k of row i of a times b;
- columns: a loop over j, the sum over k of a times column j of b.

Of a matrix and a vector, c[i] = sum_k a[i, k] v[k]:

- whole: the sum over k of a times v, which is repeated for every row;
- columns: a loop over k, column k of a times the number v[k];
- rows: a loop over i, the sum over k of row i of a times v.

Which is best depends on the shapes, on where the numbers lie, which a transpose changes, and on the
slots. So each is counted (counted.py), from a few steps of its loop.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jali._core.console import seconds_text
from jali._core.log import logger
from jali.ckks.array import EncryptedArray
from jali.ckks.counted import MASK, Work, counted
from jali.ckks.joins import stack
from jali.errors import InvalidArgument, Unsupported

__all__ = ["multiplied"]

#: A product that takes more seconds is told of before it starts.
LONG = 10.0
#: The time of a key switch is measured for products of more of them.
MEASURED = 200


@dataclass(frozen=True)
class _Formulation:
    """A way to compute a product of matrices.

    steps: of its loop.
    compute: from both operands and the steps to do; all of them give the product.
    """

    name: str
    steps: int
    compute: Callable[[EncryptedArray, EncryptedArray, Sequence[int]], EncryptedArray]

    def work(self, a: EncryptedArray, b: EncryptedArray) -> Work:
        """Its work, from two steps. What happens once, as a relinearisation of a sum, is counted
        once."""
        first = counted(lambda x, y: self.compute(x, y, [0]), a, b)
        if self.steps == 1:
            return first
        # Neither the first step nor those by powers of two are like most others.
        more = counted(lambda x, y: self.compute(x, y, [0, 2 * self.steps // 3]), a, b)
        each = self.steps - 1
        return Work(
            first.switches + (more.switches - first.switches) * each,
            first.masks + (more.masks - first.masks) * each,
            more.level,
            first.vectors + (more.vectors - first.vectors) * each,
        )


def _formulations(a: EncryptedArray, b: EncryptedArray) -> list[_Formulation]:
    (n, inner), m = a.shape, b.shape[1]

    def outer(x: EncryptedArray, y: EncryptedArray, steps: Sequence[int]) -> EncryptedArray:
        total: Any = None
        for k in steps:
            term = x[:, k : k + 1] * y[k : k + 1, :]
            total = term if total is None else total + term
        return total  # type: ignore[no-any-return]

    def rows(x: EncryptedArray, y: EncryptedArray, steps: Sequence[int]) -> EncryptedArray:
        return stack([(x[i, :, None] * y).sum(0) for i in steps], 0)

    def columns(x: EncryptedArray, y: EncryptedArray, steps: Sequence[int]) -> EncryptedArray:
        return stack([(x * y[:, j]).sum(1) for j in steps], 1)

    return [
        _Formulation("outer", inner, outer),
        _Formulation("rows", n, rows),
        _Formulation("columns", m, columns),
    ]


def _of_vector(a: EncryptedArray, v: EncryptedArray) -> list[_Formulation]:
    if len(a.shape) == 1:
        return [_Formulation("whole", 1, lambda x, y, _: (x * y).sum())]
    n, inner = a.shape

    def columns(x: EncryptedArray, y: EncryptedArray, steps: Sequence[int]) -> EncryptedArray:
        total: Any = None
        for k in steps:
            term = x[:, k] * y[k : k + 1]
            total = term if total is None else total + term
        return total  # type: ignore[no-any-return]

    def rows(x: EncryptedArray, y: EncryptedArray, steps: Sequence[int]) -> EncryptedArray:
        return stack([(x[i] * y).sum() for i in steps])

    return [
        _Formulation("whole", 1, lambda x, y, _: (x * y).sum(-1)),
        _Formulation("columns", inner, columns),
        _Formulation("rows", n, rows),
    ]


def multiplied(a: EncryptedArray, b: EncryptedArray) -> EncryptedArray:
    """The product of an encrypted matrix or vector a with a matrix or vector b.

    It takes no more levels than the first formulation.
    """
    a, b = a._compact(), a._compact() if b is a else b._compact()
    ways: list[tuple[Work, _Formulation]] = []
    known = _formulations(a, b) if len(b.shape) == 2 else _of_vector(a, b)
    for one in known:
        try:
            work = one.work(a, b)
        except (Unsupported, InvalidArgument):
            continue
        logger.debug("a product by %s: %s", one.name, work)
        if work.level >= max(0, ways[0][0].level if ways and ways[0][1] is known[0] else 0):
            ways.append((work, one))
    ways.sort(key=lambda way: way[0].total)
    for k, (work, one) in enumerate(ways):
        try:
            _warn_if_long(a, b, work)
            return one.compute(a, b, range(one.steps))
        except Unsupported:  # a step that was not counted is not possible
            if k == len(ways) - 1:
                raise
    # Its errors say what is wrong with the operands, or how many levels they lack.
    return known[0].compute(a, b, range(known[0].steps))


def _warn_if_long(x: EncryptedArray, y: EncryptedArray, work: Work) -> None:
    """Says what a product will take if that is long, by the time that one key switch takes on this
    device."""
    count = work.switches + MASK * work.masks
    server = x.evaluator
    if count < MEASURED or server._recording is not None or server._noting:
        return
    core = server._core
    one = core.take(x._settled(), [0])
    step = next((1 << k for k in range(20) if core.explicit.has_rotation(1 << k)), 0)
    if not step or step >= x.slots:
        return
    took = []
    for _ in range(2):  # the first one may have to make tables
        core.synchronize()
        start = time.perf_counter()
        core.rotate(one, step)
        core.synchronize()
        took.append(time.perf_counter() - start)
    seconds = min(took) * count
    if seconds > LONG:
        warnings.warn(
            f"the product of encrypted arrays {x.shape} and {y.shape} takes about {work.switches:.0f} key switches and {work.masks:.0f} products with masks, about "
            f"{seconds_text(seconds)} here: jali.compile plans a whole computation and may take a fraction of it",
            RuntimeWarning,
            stacklevel=6,
        )
