"""Clamps that never act: ReLUs and moduli of numbers that have the same sign whatever the inputs
are. Comparisons of which the result is always the same are found with them.

A ReLU of numbers from 0 is the number itself, and of numbers up to 0 it is 0. Both cost nothing,
and a ReLU of encrypted numbers takes many levels. So x / maximum(norm, 1e-12), minimum(maximum(x,
0), 6) for small x, and the modulus of a sum of squares become what they are on the intervals of
jali.compiler.passes.intervals: those follow from the ranges that clients keep to and from what
functions rely on, so that wherever a clamp that was left out would have acted, a client or a
function's interval says so as before. A comparison of numbers that are never nearly equal is 0 or
1, and the sign of numbers that are never 0 is 1 or -1.

The margin of an input may reach across 0 although none of its numbers was seen there. Where that
alone keeps a clamp, as in maximum(x, 0) for positive x, the range of the input ends at 0,
and clients refuse the numbers for which the clamp would have acted (``inactive_on_sides``).

In: a calibrated graph. Out: what becomes of its clamps, by their names; `passes.simplify`
changes them.

>>> examples = np.linspace(-1, 1, 20).reshape(10, 2)
>>> inactive_clamps(calibrate(fold(nn.trace(lambda x: np.abs(x * x), examples[0])), [examples]))
{'absolute': 'same'}
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from jali.compiler.ir.folded_ops import Affine
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.traced_ops import (
    Function,
    Multiply,
    PowerSeries,
    function_of,
    is_clamp,
    may_be_inactive,
)
from jali.compiler.passes.calibrate import Sides
from jali.compiler.passes.intervals import Interval, intervals, relied

__all__ = ["inactive_clamps", "inactive_on_sides"]

#: So many examples are on one side of 0 by chance in one of half a million cases.
_ENOUGH = 20
#: The most entries of a matrix whose rows are told apart.
_MOST_ENTRIES = 1 << 20


def inactive_clamps(graph: Graph) -> dict[str, str]:
    """The clamps of a calibrated graph that multiply all their numbers by one factor, and what they
    give: the same, zero, or the negated numbers. The comparisons and signs that always have the
    same result, which is zero, one or negative_one. Those in loops are left as they are."""
    # What a clamp relies on counts for the others as long as it stays. So those that need one that
    # goes stay, too.
    found = _inactive(graph, ())
    while True:
        still = _inactive(graph, found)
        kept = {name: to for name, to in found.items() if still.get(name) == to}
        if kept == found:
            return found
        found = kept


def _inactive(
    graph: Graph, gone: Collection[str], ends: Mapping[str, Interval] | None = None
) -> dict[str, str]:
    """The clamps and comparisons that do not act if all functions but those that are gone keep to
    their intervals.

    ends: of inputs, instead of those of their ranges.
    """
    known = relied(graph, gone) | dict(ends or {})
    found, all_intervals = dict[str, str](), intervals(graph, known)
    for node in filter(may_be_inactive, graph):
        low, high = all_intervals[node.inputs[0]]
        if not is_clamp(node):
            if np.all(low > 0):
                found[node.name] = "one"
            elif np.all(high < 0):
                found[node.name] = "negative_one" if function_of(node) == "sign" else "zero"
            continue
        above = node.name in known and bool(np.all(known[node.name][0] > 0))
        is_modulus = function_of(node) == "absolute"
        if np.all(low >= 0) or (above and not is_modulus):
            found[node.name] = "same"
        elif np.all(high <= 0):
            found[node.name] = "negated" if is_modulus else "zero"
    return found


def inactive_on_sides(
    graph: Graph, examples: Sequence[Array], calibrated: Callable[[Sides], Graph]
) -> tuple[dict[str, str], Sides]:
    """As inactive_clamps, and which numbers of inputs have to stay on the side of 0 on which all
    their examples are, for more clamps not to act.

    calibrated: the graph for inputs of which some stay there.
    """
    found, none = inactive_clamps(graph), dict[str, npt.NDArray[np.bool_]]()
    seen = dict(zip((node.name for node in graph.inputs), examples, strict=True))
    one_sided = {node.name: _one_sided(node, seen[node.name]) for node in graph.inputs}
    if not any(map(np.any, one_sided.values())):
        return found, none
    # No input has less room than none.
    without_room = {
        name: (x.reshape(len(x), -1).min(0), x.reshape(len(x), -1).max(0))
        for name, x in seen.items()
        if one_sided[name].any()
    }
    wanted = _inactive(graph, (), without_room).keys() - found.keys()
    while wanted:
        leads = _leads_to(graph, wanted)
        sides = {
            node.name: one_sided[node.name]
            & (leads[node.name] if len(node.shape) == 1 else leads[node.name].any())
            for node in graph.inputs
        }
        more = inactive_clamps(calibrated(sides))
        if wanted <= more.keys():
            return more, sides
        wanted &= more.keys()
    return found, none


def _one_sided(node: Node, seen: Array) -> npt.NDArray[np.bool_]:
    """Which numbers of an input were seen on one side of 0, or at 0, and by no accident."""
    flat = seen.reshape(len(seen), -1)
    low, high = flat.min(0), flat.max(0)
    if len(node.shape) != 1:  # its numbers have one range together
        low, high = np.full(node.size, low.min()), np.full(node.size, high.max())
    one = ((low >= 0) & (high > 0)) | ((high <= 0) & (low < 0))
    return one if len(flat) >= _ENOUGH else np.zeros_like(one)


def _leads_to(graph: Graph, names: Collection[str]) -> dict[str, npt.NDArray[np.bool_]]:
    """Which numbers of every array the results of these nodes follow from."""
    marked = {node.name: np.full(node.size, node.name in names) for node in graph}
    for node in reversed(graph.nodes):
        mine = marked[node.name]
        if not mine.any():
            continue
        for k, name in enumerate(node.inputs):
            marked[name] |= _taken(node, k, mine)
    return marked


def _taken(node: Node, source: int, mine: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_] | bool:
    """Which numbers of a source these numbers of a node follow from."""
    match node.operation:
        case Affine(maps=maps):
            single = maps[source]
            if single.count > _MOST_ENTRIES:
                return True
            out = np.zeros(single.shape[1], np.bool_)
            out[single.cols[mine[single.rows]]] = True
            return out
        case Multiply() | Function() | PowerSeries():
            return mine
    return True
