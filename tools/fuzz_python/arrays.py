"""Operations of encrypted arrays."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz_python.case import Case
from fuzz_python.hostile import OTHERS
from fuzz_python.registry import operation


def operand(c: Case) -> Any:
    """What may stand beside a value."""
    kind = c.random.randrange(3)
    if kind == 0:
        return c.value()
    return c.number() if kind == 1 else c.array(8, c.world.params.slots, 1, 3)


@operation("EncryptedArray.__add__", "EncryptedArray.__radd__")
def add(c: Case) -> Any:
    """x + y."""
    return c.value() + operand(c) if c.rare(0.5) else operand(c) + c.value()


@operation("EncryptedArray.__sub__", "EncryptedArray.__rsub__")
def sub(c: Case) -> Any:
    """x - y."""
    return c.value() - operand(c) if c.rare(0.5) else operand(c) - c.value()


@operation("EncryptedArray.__mul__", "EncryptedArray.__rmul__")
def mul(c: Case) -> Any:
    """x * y."""
    return c.value() * operand(c) if c.rare(0.5) else operand(c) * c.value()


@operation("EncryptedArray.__truediv__", "EncryptedArray.__rtruediv__")
def div(c: Case) -> Any:
    """x / y."""
    return c.value() / operand(c) if c.rare(0.9) else operand(c) / c.value()


@operation("EncryptedArray.__pow__")
def power(c: Case) -> Any:
    """x ** n."""
    return c.value() ** c.integer(1, 2, 3, 4)


@operation("EncryptedArray.__array_ufunc__")
def ufunc(c: Case) -> Any:
    """NumPy's own arithmetic."""
    function = c.random.choice([np.add, np.subtract, np.multiply, np.divide, np.power, np.matmul])
    return function(operand(c), c.value()) if c.rare(0.5) else function(c.value(), operand(c))


@operation("EncryptedArray.__neg__", "EncryptedArray.__pos__")
def negate(c: Case) -> Any:
    """-x."""
    return -(+c.value())


@operation("EncryptedArray.__rmatmul__")
def matmul(c: Case) -> Any:
    """matrix @ x."""
    x = c.value()
    n = min(x.shape[-1], 16) if x.shape else 1
    matrix = c.array(n) if c.rare(0.3) else np.full((3, n), 0.5)
    return matrix @ x


@operation("EncryptedArray.__matmul__", "EncryptedArray.dot")
def matmul_right(c: Case) -> Any:
    """x @ matrix."""
    x = c.value()
    n = x.shape[-1] if x.shape else 1
    if n > 16:
        x, n = x[..., :4], 4
    other: Any = c.array(n) if c.rare(0.3) else np.full((n, 2), 0.5)
    if c.rare(0.2):
        other = c.value()
    return x @ other if c.rare(0.5) else x.dot(other)


@operation(
    "EncryptedArray.__getitem__",
    "EncryptedArray.__iter__",
    "EncryptedArray.reshape",
    "EncryptedArray.transpose",
    "EncryptedArray.T",
    "EncryptedArray.ravel",
    "EncryptedArray.flatten",
    "EncryptedArray.squeeze",
    "EncryptedArray.swapaxes",
    "EncryptedArray.broadcast_to",
)
def shapes(c: Case) -> Any:
    """Slices and other shapes."""
    x = c.value()
    kind = c.random.randrange(9)
    if kind == 8:
        return x.broadcast_to(c.random.choice([x.shape, (2, *x.shape), (3, 4), 5, (-1,)]))
    if kind == 6:
        return x.ravel() if c.rare(0.5) else x.flatten()
    if kind == 7:
        return x.squeeze(c.integer(0, -1)) if c.rare(0.5) else x.swapaxes(0, c.integer(-1, 1))
    if kind == 0:
        return x[c.integer(0, 1, -1, 7)]
    if kind == 1:
        return x[..., slice(c.integer(0, 1), c.integer(5, 8), c.integer(1, 2, -1))]
    if kind == 2:
        return next(iter(x))
    if kind == 3:
        return x.reshape(c.integer(2, 4), c.integer(-1, 4))
    return x.T if kind == 4 else x.transpose(c.integer(0, 1), c.integer(0, 1))


@operation("EncryptedArray.mean", "EncryptedArray.var")
def statistics(c: Case) -> Any:
    """Means and variances."""
    axis = None if c.rare(0.5) else c.integer(0, 1, -1)
    return c.value().mean(axis) if c.rare(0.5) else c.value().var(axis, ddof=c.integer(0, 1))


@operation("EncryptedArray.__array_function__")
def numpy_functions(c: Case) -> Any:
    """NumPy's functions."""
    function = c.random.choice([np.stack, np.concatenate, np.sort, np.ravel, np.split])
    x, y = c.value(), c.value()
    if function is np.split:
        return function(x, c.integer(1, 2))  # type: ignore[operator]
    return function([x, y]) if function in (np.stack, np.concatenate) else function(x)  # type: ignore[operator]


@operation("EncryptedArray.rotate")
def rotate(c: Case) -> Any:
    """Rotation."""
    return c.value().rotate(c.integer(0, 1, -1, 2, 3, 8, 300))


@operation("EncryptedArray.conj", "EncryptedArray.conjugate")
def conj(c: Case) -> Any:
    """Conjugation."""
    return c.value().conj()


@operation("EncryptedArray.sum")
def total(c: Case) -> Any:
    """Sums along axes and of windows of slots."""
    if c.rare(0.5):
        return c.value().sum(c.integer(0, 1, 2, -1), keepdims=c.rare(0.5))
    return c.value().sum(count=c.integer(1, 2, 8, 512))


@operation("EncryptedArray.with_length")
def with_length(c: Case) -> Any:
    """Another length."""
    return c.value().with_length(c.integer(1, 2, 8, 512))


@operation("EncryptedArray.with_layout", "EncryptedArray.layout")
def with_layout(c: Case) -> Any:
    """Another layout: of a value, of a plan, or something else."""
    x = c.value()
    assert repr(x.layout)
    known = [c.value().layout, c.world.matvec.input_layout, c.world.matvec.output_layout]
    return x.with_layout(c.random.choice(OTHERS if c.rare() else known), c.integer(0, 0, 0, 1))


@operation("EncryptedArray.natural", "Evaluator.arrange", "Layout.*")
def natural(c: Case) -> Any:
    """Numbers in order, or as a plan takes them."""
    x = c.value()
    assert x.layout.natural_rotations is not None and x.layout.size > 0 and x.layout.period > 0
    if c.rare(0.5):
        return x.natural()
    c.world.matvec.arrangement(x.layout)
    return c.server.arrange(c.world.matvec, x)


@operation("EncryptedArray.with_magnitude")
def with_magnitude(c: Case) -> Any:
    """Another magnitude."""
    return c.value().with_magnitude(c.number())


@operation("EncryptedArray.bootstrap", "Evaluator.bootstrap_pair", "Evaluator.prepare_bootstrap")
def bootstrap(c: Case) -> Any:
    """Levels restored, where there are such levels."""
    x = c.value()
    if c.rare(0.1):
        c.server.prepare_bootstrap(c.integer(8))
    target = None if c.rare(0.7) else c.integer(0, 1, 2)
    slots = c.random.choice([None, None, 8, c.integer(4)])
    if c.rare(0.3):
        return c.server.bootstrap_pair(x, c.value(), target, slots=slots)
    real = c.random.choice([None, True])
    return x.bootstrap(target, iterations=c.integer(1, 1, 1, 2), real=real, slots=slots)


@operation(
    "EncryptedArray.ciphertext", "EncryptedArray.level", "EncryptedArray.scale", "EncryptedArray.slots", "EncryptedArray.shape", "EncryptedArray.ndim",
    "EncryptedArray.size", "EncryptedArray.evaluator", "EncryptedArray.__len__", "EncryptedArray.__repr__", "EncryptedArray.precision_bits",
    "EncryptedArray.__init__", "EncryptedArray.dtype",
)  # fmt: skip
def facts(c: Case) -> Any:
    """What is known of a value."""
    x = c.value()
    assert not math.isnan(x.precision_bits) and x.dtype.kind in "fc"
    return x.ciphertext


@operation(
    "EncryptedArray.__bool__", "EncryptedArray.__eq__", "EncryptedArray.__lt__", "EncryptedArray.__le__", "EncryptedArray.__gt__", "EncryptedArray.__ge__",
    "EncryptedArray.__array__", "EncryptedArray.__reduce__", "EncryptedArray.__hash__", "Client.__reduce__",
    "EncryptedArray.__copy__", "EncryptedArray.__deepcopy__", "EncryptedArray.copy", "EncryptedArray.__format__",
)  # fmt: skip
def refusals(c: Case) -> None:
    """What values cannot do, they do not."""
    x = c.value()
    hash(x)
    assert copy.copy(x) is copy.deepcopy(x) is x.copy() is np.copy(x) is x and f"{x}" == repr(x)
    refused: list[Callable[[], Any]] = [
        lambda: bool(x), lambda: x == x, lambda: x < 1, lambda: x <= 1, lambda: x > 1, lambda: x >= 1,
        lambda: np.asarray(x), lambda: pickle.dumps(x), lambda: np.exp(x),
        lambda: np.sort(x), lambda: x.tolist(), lambda: abs(x), lambda: x // 2, lambda: f"{x:.2f}",
        lambda: pickle.dumps(c.world.client), lambda: pickle.dumps(c.ciphertext()),
    ]  # fmt: skip
    call = c.random.choice(refused)
    call()
    raise AssertionError("what must be refused was done")
