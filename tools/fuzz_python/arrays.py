"""Operations of encrypted arrays."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz_python.case import Case
from fuzz_python.registry import operation


def operand(c: Case) -> Any:
    """What may stand beside a value."""
    kind = c.random.randrange(3)
    if kind == 0:
        return c.value()
    return c.number() if kind == 1 else c.array(8, c.world.params.slots, 1, 3)


@operation("Bound.__add__", "Bound.__radd__")
def add(c: Case) -> Any:
    """x + y."""
    return c.value() + operand(c) if c.rare(0.5) else operand(c) + c.value()


@operation("Bound.__sub__", "Bound.__rsub__")
def sub(c: Case) -> Any:
    """x - y."""
    return c.value() - operand(c) if c.rare(0.5) else operand(c) - c.value()


@operation("Bound.__mul__", "Bound.__rmul__")
def mul(c: Case) -> Any:
    """x * y."""
    return c.value() * operand(c) if c.rare(0.5) else operand(c) * c.value()


@operation("Bound.__truediv__", "Bound.__rtruediv__")
def div(c: Case) -> Any:
    """x / y."""
    return c.value() / operand(c) if c.rare(0.9) else operand(c) / c.value()


@operation("Bound.__pow__")
def power(c: Case) -> Any:
    """x ** n."""
    return c.value() ** c.integer(1, 2, 3, 4)


@operation("Bound.__neg__", "Bound.__pos__")
def negate(c: Case) -> Any:
    """-x."""
    return -(+c.value())


@operation("Bound.__rmatmul__")
def matmul(c: Case) -> Any:
    """matrix @ x."""
    x = c.value()
    n = min(x.shape[-1], 16)
    matrix = c.array(n) if c.rare(0.3) else np.full((3, n), 0.5)
    return matrix @ x


@operation("Bound.rotate")
def rotate(c: Case) -> Any:
    """Rotation."""
    return c.value().rotate(c.integer(0, 1, -1, 2, 3, 8, 300))


@operation("Bound.conj", "Bound.conjugate")
def conj(c: Case) -> Any:
    """Conjugation."""
    return c.value().conj()


@operation("Bound.sum")
def total(c: Case) -> Any:
    """Sums of slots."""
    return c.value().sum(None if c.rare(0.5) else c.integer(1, 2, 8, 512))


@operation("Bound.with_length")
def with_length(c: Case) -> Any:
    """Another length."""
    return c.value().with_length(c.integer(1, 2, 8, 512))


@operation("Bound.with_magnitude")
def with_magnitude(c: Case) -> Any:
    """Another magnitude."""
    return c.value().with_magnitude(c.number())


@operation("Bound.bootstrap", "Evaluator.bootstrap_pair", "Evaluator.prepare_bootstrap")
def bootstrap(c: Case) -> Any:
    """Levels restored, where there are such levels."""
    x = c.value()
    if c.rare(0.1):
        c.server.prepare_bootstrap(c.integer(8))
    target = None if c.rare(0.7) else c.integer(0, 1, 2)
    if c.rare(0.3):
        return c.server.bootstrap_pair(x, c.value(), target)
    return x.bootstrap(target, iterations=c.integer(1, 1, 1, 2), real=c.random.choice([None, True]))


@operation(
    "Bound.ciphertext", "Bound.level", "Bound.scale", "Bound.slots", "Bound.shape", "Bound.ndim",
    "Bound.size", "Bound.evaluator", "Bound.__len__", "Bound.__repr__", "Bound.precision_bits",
    "Bound.__init__",
)  # fmt: skip
def facts(c: Case) -> Any:
    """What is known of a value."""
    x = c.value()
    assert not math.isnan(x.precision_bits)
    return x.ciphertext


@operation(
    "Bound.__bool__", "Bound.__eq__", "Bound.__lt__", "Bound.__le__", "Bound.__gt__", "Bound.__ge__",
    "Bound.__array__", "Bound.__iter__", "Bound.__reduce__", "Bound.__hash__", "Client.__reduce__",
)  # fmt: skip
def refusals(c: Case) -> None:
    """What values cannot do, they do not."""
    x = c.value()
    hash(x)
    refused: list[Callable[[], Any]] = [
        lambda: bool(x), lambda: x == x, lambda: x < 1, lambda: x <= 1, lambda: x > 1, lambda: x >= 1,
        lambda: np.asarray(x), lambda: list(x), lambda: pickle.dumps(x), lambda: copy.copy(x),
        lambda: pickle.dumps(c.world.client), lambda: pickle.dumps(c.ciphertext()),
    ]  # fmt: skip
    call = c.random.choice(refused)
    call()
    raise AssertionError("what must be refused was done")
