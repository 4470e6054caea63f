"""Between which numbers the results of a client's part before encrypting lie, whatever its inputs
are.

A table says more than a calibration: a word that no example has is in the table all the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jali.compiler.ir.arrays import Array
from jali.program.clear.operations import FUNCTIONS, OPERATIONS
from jali.program.clear.steps import Step, Steps
from jali.program.clear.values import Known

__all__ = ["ranges_of"]

_MOVES = {"reshape", "transpose", "slice", "concat", "expand"}
_RISING = {"ceil", "exp", "floor", "relu", "round", "sigmoid", "softplus", "tanh"}

_ROUNDED = 2.0**-30  # part of a number by which roundings of scales do not carry it beyond its end

Ends = tuple[Array, Array] | None  # of the shape of the value; None if nothing is known


def ranges_of(steps: Steps) -> tuple[Ends, ...]:
    """For each result (low, high), arrays of the shape of an example; None if the steps say
    nothing. Where both are equal, there is room between them, as every range has a width."""
    taken, constants = len(steps.arguments), len(steps.constants)
    ends: list[Ends] = [_flags(known) for known in steps.known[:taken]]
    ends += [(x.array, x.array) for x in steps.constants]
    for step, known in zip(steps.steps, steps.known[taken + constants :], strict=True):
        found = _flags(known)
        with np.errstate(all="ignore"):
            found = _ends(step, [ends[k] for k in step.inputs], known) if found is None else found
        ends.append(found)
    return tuple(_of_example(ends[k]) for k in steps.outputs)


def _flags(known: Known) -> Ends:
    if known.kind != "flag":
        return None
    return np.zeros(known.shape), np.ones(known.shape)


def _ends(step: Step, taken: Sequence[Ends], known: Known) -> Ends:
    given = [x for x in taken if x is not None]
    if step.op == "gather" and taken[0] is not None:
        table, axis = taken[0], step.how["axis"]
        places = len(known.shape) - table[0].ndim + 1
        inside = tuple(range(axis, axis + places))
        low, high = (np.expand_dims(x, inside) for x in (table[0].min(axis), table[1].max(axis)))
        return np.broadcast_to(low, known.shape), np.broadcast_to(high, known.shape)
    if step.op == "where" and len(given) == 3:
        (low, high), (other_low, other_high) = given[1:]
        found = np.minimum(low, other_low), np.maximum(high, other_high)
    elif len(given) != len(taken):
        return None
    elif step.op in _MOVES:
        low, high = (OPERATIONS[step.op].compute([x[k] for x in given], step.how) for k in (0, 1))
        found = low, high
    elif step.op == "cast":
        found = given[0] if known.kind == "real" else (np.trunc(given[0][0]), np.trunc(given[0][1]))
    elif step.op in ("add", "subtract", "multiply", "maximum", "minimum"):
        found = _of_pair(step.op, *given)
    elif step.op == "function" and step.how["function"] in _RISING:
        function = FUNCTIONS[step.how["function"]]
        found = np.asarray(function(given[0][0])), np.asarray(function(given[0][1]))
    else:
        return None
    if not all(np.all(np.isfinite(x)) for x in found):
        return None
    return np.broadcast_to(found[0], known.shape), np.broadcast_to(found[1], known.shape)


def _of_pair(op: str, a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    """The ends of a sum, a difference, a product, or the larger or smaller of two."""
    function = getattr(np, op)
    every = [function(x, y) for x in a for y in b]
    return np.minimum.reduce(every), np.maximum.reduce(every)


def _of_example(ends: Ends) -> Ends:
    if ends is None:
        return None
    low, high = ends[0][0], ends[1][0]
    largest = np.maximum(np.abs(low), np.abs(high))
    room = np.where(high > low, _ROUNDED * largest, np.maximum(1.0, largest) / 2)
    return low - room, high + room
