"""Clamps that never act: ReLUs and moduli of numbers that have the same sign whatever the inputs
are.

A ReLU of numbers from 0 is the number itself, and of numbers up to 0 it is 0. Both cost nothing,
and a ReLU of encrypted numbers takes many levels. So x / maximum(norm, 1e-12), minimum(maximum(x,
0), 6) for small x, and the modulus of a sum of squares become what they are on the intervals of
jali.compiler.passes.intervals: those follow from the ranges that clients keep to and from what
functions rely on, so that wherever a clamp that was left out would have acted, a client or a
function's interval says so as before.

In: a calibrated graph. Out: what becomes of its clamps, by their names; `passes.simplify`
changes them.

>>> examples = np.linspace(-1, 1, 20).reshape(10, 2)
>>> inactive_clamps(calibrate(fold(nn.trace(lambda x: np.abs(x * x), examples[0])), [examples]))
{'absolute': 'same'}
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from jali.compiler.ir.graph import Graph
from jali.compiler.ir.traced_ops import function_of, is_clamp
from jali.compiler.passes.intervals import intervals, relied

__all__ = ["inactive_clamps"]


def inactive_clamps(graph: Graph) -> dict[str, str]:
    """The clamps of a calibrated graph that multiply all their numbers by one factor, and what they
    give: the same, zero, or the negated numbers. Those in loops are left as they are."""
    # What a clamp relies on counts for the others as long as it stays. So those that need one that
    # goes stay, too.
    found = _inactive(graph, ())
    while True:
        still = _inactive(graph, found)
        kept = {name: to for name, to in found.items() if still.get(name) == to}
        if kept == found:
            return found
        found = kept


def _inactive(graph: Graph, gone: Collection[str]) -> dict[str, str]:
    """The clamps that do not act if all but those that are gone keep to their intervals."""
    known = relied(graph, gone)
    found, all_intervals = dict[str, str](), intervals(graph, known)
    for node in filter(is_clamp, graph):
        low, high = all_intervals[node.inputs[0]]
        above = node.name in known and bool(np.all(known[node.name][0] > 0))
        is_modulus = function_of(node) == "absolute"
        if np.all(low >= 0) or (above and not is_modulus):
            found[node.name] = "same"
        elif np.all(high <= 0):
            found[node.name] = "negated" if is_modulus else "zero"
    return found
