"""Random programs of arrays of any shape. The reference is NumPy itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from programs import Array, Program

import jali
from jali import ckks

#: Coefficients by Chebyshev polynomials.
STEEP = [0.25, 0.5, 0, 0.25, 0, 0.125]
#: Programs go on without results of more ciphertexts: of an array with few slots, a few operations
#: made twenty gigabytes.
MOST_CIPHERTEXTS = 1024


@dataclass
class Exact:
    """An encrypted array of any shape, and NumPy's."""

    array: Any
    vectors: Array


def function_within(x: Any, size: float, bound: float) -> Any:
    """A polynomial that is made for numbers of up to `bound`, of numbers of up to `size`. Far
    outside it is beyond all bounds."""
    if isinstance(x, np.ndarray):
        return np.polynomial.chebyshev.chebval(x / bound, STEEP)
    p = ckks.Polynomial(STEEP, "chebyshev", (-bound, bound))
    return x.evaluator.polynomial(x, p, within=(-size, size))


def claimed(x: Any, size: float) -> Any:
    """A claim that holds for the numbers of x."""
    return x if isinstance(x, np.ndarray) else x.with_magnitude(size, peak=size)


class ArrayProgram(Program):
    """Arrays of any shape. The reference is NumPy itself."""

    def input(self) -> Exact:
        shape = tuple(int(n) for n in self.rng.integers(1, 9, int(self.rng.integers(1, 4))))
        if self.rng.integers(6) == 0:
            slots = self.w.params.slots
            shape = (self.pick([slots, int(self.rng.integers(1, 3 * slots))]),)
        v, most = self.numbers(*shape)
        largest = float(np.abs(v).max())
        options: dict[str, Any] = {"magnitude": min(most, largest), "peak": min(most, 2 * largest)}
        if self.w.slots != self.w.params.slots and self.rng.integers(4):
            options["slots"] = self.w.slots
        if self.rng.integers(6) == 0:
            options["batch"] = True
        self.steps.append(f"encrypt {shape}, up to {largest:.3g}, {options}")
        owner = self.w.client
        if self.rng.integers(40) == 0:
            owner = self.w.stranger
            self.steps.append("(by a stranger)")
        return Exact(self.w.server.bind(owner.encrypt(v, **options)), v)

    def operation(self) -> Exact:
        a = self.values[-1] if self.rng.integers(4) else self.pick(self.values)
        b = self.pick(self.values)
        name, f = self.pick(self.choices(a, b))
        self.steps.append(name)
        if name == "bytes":
            return Exact(self.sent(a.array), a.vectors)
        if name == "bootstrap":
            return Exact(a.array.bootstrap(), a.vectors)
        if "matmul" in name:  # of so many directions are the errors of the product
            self.independent = 1
        try:
            want = f(a.vectors, b.vectors)
        except (ValueError, IndexError, TypeError, np.exceptions.AxisError):
            want = None
        if np.size(want) > MOST_CIPHERTEXTS * self.w.slots:
            self.steps.append("not done")
            return a
        try:
            got = f(a.array, b.array)
        except TypeError as error:
            # Python's own error of iterating over a number, in NumPy as in Jali.
            if want is None:
                raise jali.InvalidArgument(str(error)) from None
            raise
        if want is None:
            raise AssertionError("NumPy refuses this, and Jali computes it")
        return Exact(got, np.asarray(want))

    def choices(self, a: Exact, b: Exact) -> list[tuple[str, Callable[[Any, Any], Any]]]:
        """Operations with drawn arguments, of encrypted arrays and of NumPy's alike."""
        rng, ndim = self.rng, max(a.vectors.ndim, 1)
        axis = self.pick([None, *range(ndim), -1, (0, -1), 3])
        c = self.numbers(*(self.pick([n, 1]) for n in a.vectors.shape))[0]
        row = self.numbers(a.vectors.shape[-1] if a.vectors.ndim else 1)[0]
        w = self.numbers(len(row), int(rng.integers(1, 6)))[0].real
        k = self.pick([2, -3, 0.5, float(rng.normal())])
        begin, step = int(rng.integers(-3, 4)), self.pick([1, 1, 2, -1, 3])
        shape = self.pick([(-1,), (2, -1), (1, *a.vectors.shape), a.vectors.shape[::-1]])
        other = self.pick([c, row, self.numbers(int(rng.integers(1, self.w.slots + 1)))[0]])
        end, i, j = int(rng.integers(-3, 9)), int(rng.integers(-3, 4)), int(rng.integers(-3, 4))
        join = self.pick([0, 0, -1, 1, None])
        parts = self.pick([1, 2, 3, [1], [1, 3]])
        part = self.pick([0, -1])
        more = [("bootstrap", lambda x, _: x)] * 6 if self.w.bootstraps else []
        size = 1.25 * max(float(np.abs(a.vectors).max()), 2.0**-10)
        bound = size * self.pick([1.0, 1.0, 4.0])
        # An encrypted matrix of hundreds of rows is no case of its own, and its product takes
        # minutes.
        few = max([*a.vectors.shape, *b.vectors.shape, 0]) <= 100
        product = [("matmul", lambda x, y: x @ y)] * few
        return [
            *more,
            *[(f"function within {bound:.3g}", lambda x, _: function_within(x, size, bound))] * 2,
            (f"claim of {size:.3g}", lambda x, _: claimed(x, size)),
            ("bytes", lambda x, _: x),
            (f"array of {other.shape} added", lambda x, _: x + other),
            (f"array of {other.shape} in products", lambda x, _: other * x),
            ("from an array", lambda x, _: other - x),
            (f"concatenate {join}", lambda x, y: np.concatenate([x, y], axis=join)),
            (f"concatenate three {join}", lambda x, y: np.concatenate([y, x, y], axis=join)),
            (f"stack {part}", lambda x, y: np.stack([x, y, x], axis=part)),
            (f"split {parts} {part}", lambda x, _: np.split(x, parts, axis=part)[part]),
            (f"iterate {part}", lambda x, _: list(x)[part]),
            (f"element {i}, {j}", lambda x, _: x[i, j]),
            (f"part {i} to {end}, {j}", lambda x, _: x[i:end, j]),
            (f"part of the last to {end}", lambda x, _: x[..., :end]),
            (f"flip {part}", lambda x, _: np.flip(x, part)),
            ("conjugate", lambda x, _: x.conj()),
            ("broadcast", lambda x, _: np.broadcast_to(x, (2, *x.shape))),
            ("vstack", lambda x, y: np.vstack([x, y])),
            ("hstack", lambda x, y: np.hstack([x, y])),
            ("add", lambda x, y: x + y),
            ("subtract", lambda x, y: x - y),
            ("multiply", lambda x, y: x * y),
            ("add array", lambda x, _: x + c),
            ("row minus", lambda x, _: row - x),
            ("times array", lambda x, _: x * c),
            (f"times {k}", lambda x, _: x * k),
            ("divide", lambda x, _: x / k),
            ("power", lambda x, _: x**2),
            (f"sum {axis}", lambda x, _: x.sum(axis)),
            (f"sum {axis} kept", lambda x, _: x.sum(axis=axis, keepdims=True)),
            (f"mean {axis}", lambda x, _: x.mean(axis=axis)),
            (f"var {axis}", lambda x, _: x.var(axis=axis)),
            ("transpose", lambda x, _: x.T),
            (f"reshape {shape}", lambda x, _: x.reshape(shape)),
            (f"from {begin} by {step}", lambda x, _: x[begin::step]),
            (f"last from {begin}", lambda x, _: x[..., begin:]),
            (f"element {begin}", lambda x, _: x[begin]),
            ("new axis", lambda x, _: x[:, None]),
            *product,
            ("matmul array", lambda x, _: x @ w),
            ("array matmul", lambda x, _: w.T @ x),
        ]
