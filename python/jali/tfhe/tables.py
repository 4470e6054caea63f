"""Look-up tables from functions of Python."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

from jali._core import checks
from jali._core.console import counted_text
from jali._jali.tfhe import Params, Table
from jali.errors import InvalidArgument, RangeExceeded, WrongCall

__all__ = ["of_one", "of_two"]


def _checked(result: Any, high: int, of: str) -> int:
    if isinstance(result, bool):
        return int(result)
    try:
        value = operator.index(result)
    except TypeError:
        raise InvalidArgument(
            f"the function's result for {of} must be a whole number, not {checks.shown(result)}"
        ) from None
    if not 0 <= value <= high:
        raise InvalidArgument(
            f"the function's result for {of} is {value}, and results must be from 0 to {high}: "
            "take it modulo 2^message_bits, or use parameters with more bits"
        )
    return value


def _takes(function: Callable[..., Any], count: int) -> None:
    """Raises WrongCall unless so many arguments can be given to the function, as far as Python
    knows."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # of some functions in C nothing is known
        return
    try:
        signature.bind(*range(count))
    except TypeError:
        numbers = "one number" if count == 1 else "two numbers"
        arrays = "one array" if count == 1 else "two arrays"
        raise WrongCall(
            f"a look-up of {arrays} calls the function with {numbers}, and it has the parameters {signature}: "
            "give a function that takes as many numbers as there are arrays"
        ) from None


def of_one(
    params: Params, function: Callable[[int], Any] | Sequence[int] | Table, largest: int
) -> Table:
    """The table of a function for the values 0 to `largest`, or the table itself."""
    if isinstance(function, Table):
        return function
    high = (1 << (params.message_bits + params.carry_bits)) - 1
    if isinstance(function, (str, bytes)):
        raise InvalidArgument(
            f"the function must be a function, a list of results or a Table, not the text {checks.shown(function)}"
        )
    if not callable(function):
        try:
            results = list(function)
        except TypeError:
            raise InvalidArgument(
                f"the function must be callable, a list of results or a Table, not {checks.shown(function)}"
            ) from None
        if len(results) <= largest:
            raise InvalidArgument(
                f"the list has {counted_text(len(results), 'result')}, and a value may be as large as {largest}: give {largest + 1}"
            )
        return Table(params, [_checked(r, high, str(v)) for v, r in enumerate(results[: high + 1])])
    _takes(function, 1)
    return Table(params, [_checked(function(v), high, str(v)) for v in range(largest + 1)])


def of_two(
    params: Params,
    function: Callable[[int, int], Any] | Sequence[int] | Table,
    x_largest: int,
    y_largest: int,
) -> Table:
    """The table of a function of x and y, at y 2^message_bits + x."""
    if isinstance(function, Table):
        return function
    if not callable(function):
        raise InvalidArgument("for two arrays give a function of two whole numbers, or a Table")
    _takes(function, 2)
    base, room = 1 << params.message_bits, 1 << params.carry_bits
    if x_largest >= base or y_largest >= room:
        raise RangeExceeded(
            f"a function of two values needs the first below {base} and the second below {room}, and they may be as "
            f"large as {x_largest} and {y_largest}: bring a sum back with refresh(), or use parameters with more carry bits"
        )
    high = base * room - 1
    results = [0] * ((y_largest + 1) * base)
    for y in range(y_largest + 1):
        for x in range(x_largest + 1):
            results[y * base + x] = _checked(function(x, y), high, f"{x} and {y}")
    return Table(params, results)
