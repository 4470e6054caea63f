"""Comparisons of encrypted numbers, and choices by them.

A condition is an array of numbers 0 and 1, made by ``step``: step(x) is 1 if x > 0, and 0
otherwise. The traced graph, as every computation in the clear, decides exactly. On encrypted
numbers, a composition of polynomials decides only where what is compared differs by more than a
gap; nearer to each other, it gives something between 0 and 1. The gap is so small that all results
of the calibration are within the precision that was asked for.

Which arrays are conditions is known to the builder that collects them, because NumPy's booleans do
not add up as numbers do: the sum of two conditions is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jali.errors import Unsupported

__all__ = [
    "both",
    "chosen",
    "either",
    "exactly_one",
    "greater",
    "inverted",
    "is_condition",
    "number",
    "refuse_sums",
]


def is_condition(value: Any) -> bool:
    """Whether it is an array of 0 and 1 that comes from comparisons, or an array of booleans."""
    if hasattr(value, "_function"):
        return bool(value.is_condition)
    return np.asarray(value).dtype == np.bool_


def greater(a: Any, b: Any) -> Any:
    """1 where a > b, and 0 elsewhere; at least one of both is traced."""
    refuse_sums(a, b, "a comparison of conditions", "a & ~b for a > b")
    return _condition((a - b)._function("step"))


def inverted(a: Any) -> Any:
    """1 where a condition is 0."""
    _need_conditions(a)
    return _condition(1.0 - a) if hasattr(a, "_function") else ~np.asarray(a)


def both(a: Any, b: Any) -> Any:
    """1 where both conditions are."""
    _need_conditions(a, b)
    if not hasattr(a, "_function"):
        a, b = b, a
    return _condition(a._times(_number(b)))


def either(a: Any, b: Any) -> Any:
    """1 where at least one of both conditions is."""
    return inverted(both(inverted(a), inverted(b)))


def exactly_one(a: Any, b: Any) -> Any:
    """1 where one of both conditions is, and the other is not: (a - b)^2."""
    _need_conditions(a, b)
    if not hasattr(a, "_function"):
        a, b = b, a
    difference = number(a) - _number(b)
    return _condition(difference * difference)


def number(x: Any) -> Any:
    """A traced array as numbers: a condition then adds up as 0 and 1."""
    return x * 1.0 if is_condition(x) else x


def chosen(condition: Any, x: Any, other: Any) -> Any:
    """x where a condition is 1, and the other elsewhere: other + condition (x - other)."""
    _need_conditions(condition)
    if not hasattr(condition, "_function"):
        keep = np.asarray(condition, np.float64)
        return _number(x) * keep + _number(other) * (1.0 - keep)
    return _number(other) + condition * (_number(x) - _number(other))


def refuse_sums(a: Any, b: Any, what: str, instead: str) -> None:
    """Raises Unsupported for two conditions, with what to write instead."""
    if is_condition(a) and is_condition(b):
        raise Unsupported(f"{what}: write {instead}")


def _need_conditions(*values: Any) -> None:
    if not all(map(is_condition, values)):
        raise Unsupported(
            "a logical operation takes conditions: compare the numbers first, such as x > 0.5"
        )


def _condition(x: Any) -> Any:
    if hasattr(x, "_function"):
        x.builder.conditions.add(x.node.name)
    return x


def _number(value: Any) -> Any:
    return value if hasattr(value, "_function") else np.asarray(value, np.float64)
