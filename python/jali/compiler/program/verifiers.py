"""What must hold after every stage of the compiler. A stage is a function from graph to graph;
these are checks of its result alone.

Each verifier raises InternalError, which names the stage and the node, if its graph is none that
the stage may make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from jali._core.console import counted_text
from jali.ckks import Params
from jali.compiler.cost.costs import Costs
from jali.compiler.cost.elimination import NEVER
from jali.compiler.ir import traced_ops
from jali.compiler.ir.folded_ops import Affine, Approximated, Bootstrap, approximation_of
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.layouts import Gathered, Layout
from jali.compiler.ir.loop_graph import Loop
from jali.compiler.ir.operation import Input, Operation
from jali.compiler.ir.products import Products
from jali.compiler.ir.traced_ops import Function, Multiply, PowerSeries
from jali.compiler.layout.choose_layouts import check_seen
from jali.compiler.layout.lowered_ops import LOWERED, Transform
from jali.compiler.passes.amplify import largest_of
from jali.compiler.passes.levels import levels_taken
from jali.compiler.planning import bootstrap_placement
from jali.compiler.planning.node_costs import cost_of
from jali.compiler.program.ports import client_layout
from jali.errors import InternalError, InvalidArgument
from jali.program.manifest import Manifest

__all__ = [
    "FOLDED",
    "GRAPHS",
    "SCALED",
    "verify_costs",
    "verify_graph",
    "verify_levels",
    "verify_manifest",
]

#: The operations of approximated graphs, and of folded ones.
SCALED = (Input, Affine, Multiply, Products, Approximated, Loop)
FOLDED = (*SCALED, Function, PowerSeries)
_BELOW_LEVELS = tuple(one for one in LOWERED if one is not Bootstrap)
_BEYOND = 1 + 2.0**-9  # in its scale, a number is at most 1 and what approximations add

Problems = Iterator[tuple[Node, str]]


def verify_graph(stage: str, graph: Graph) -> None:
    """Raises InternalError unless the graph is one after this stage: trace, fold, calibrate,
    approximate, layout, lower or levels."""
    if graph.stage != stage:
        raise InternalError(f"the graph after {stage} says that it is one after {graph.stage}")
    for node, problem in GRAPHS[stage](graph):
        raise InternalError(f"after {stage}, {node.name} {problem}")


def _bodies(rules: Callable[[Graph], Problems]) -> Callable[[Graph], Problems]:
    """The rules, also for the bodies of loops."""

    def every(graph: Graph) -> Problems:
        yield from rules(graph)
        for node in graph:
            if isinstance(node.operation, Loop):
                yield from every(node.operation.body)

    return every


def _known(graph: Graph, operations: tuple[type[Operation], ...]) -> Problems:
    for node in graph:
        if not isinstance(node.operation, operations):
            yield node, f"is {node.op}, which this stage does not have"


def _traced(graph: Graph) -> Problems:
    try:
        traced_ops.verify(graph)
    except InvalidArgument as error:
        yield graph.nodes[-1], str(error)


def _folded(graph: Graph) -> Problems:
    yield from _known(graph, FOLDED)
    for node in graph:
        if isinstance(node.operation, Affine):
            for name, single in zip(node.inputs, node.operation.maps, strict=True):
                if single.shape != (node.size, graph[name].size):
                    yield (
                        node,
                        f"has a matrix of {single.shape} on the {graph[name].size} of {name}",
                    )
            if np.shape(node.operation.bias) != (node.size,):
                yield node, "has a bias of another size"
        elif isinstance(node.operation, Loop) and sum(node.operation.sizes) != node.size:
            yield node, "has another size than the parts of its result"


def _calibrated(graph: Graph) -> Problems:
    yield from _folded(graph)
    for node in graph:
        known = node.facts.range
        if known is None:
            yield node, "has no finite range"
            continue
        numbers = (known.low, known.high, known.mean, known.square, known.largest)
        if not all(np.all(np.isfinite(v)) for v in numbers):
            yield node, "has no finite range"
        elif np.any(known.low > known.high):
            yield node, "has an empty range"


def _scales(graph: Graph) -> Problems:
    for node in graph:
        scaling, by = node.facts.scaling, approximation_of(node)
        whole = graph.stage == "approximate" and (by is None or not by.part)
        most = _BEYOND * (1.0 if whole else largest_of(graph, node))
        if scaling is None or not np.all(np.asarray(scaling.radius) > 0):
            yield node, "has no scale"
        elif max(-scaling.low, scaling.high) > most * scaling.added:
            yield node, f"leaves [-1, 1]: [{scaling.low:g}, {scaling.high:g}]"
        if by is not None and by.depth < 1 and not by.constant:
            yield node, "has a polynomial that takes no level"


def _approximated(graph: Graph) -> Problems:
    yield from _known(graph, SCALED)
    yield from _folded(graph)
    yield from _scales(graph)


def _slots(layout: Layout) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """A slot for each number, or the numbers that some slot of a gathered input holds."""
    return layout.table[layout.table >= 0] if isinstance(layout, Gathered) else layout.addresses


def _laid(graph: Graph) -> Problems:
    for node in graph:
        layout = node.facts.layout
        if layout is None:
            yield node, "has no layout"
        elif len(np.unique(_slots(layout))) != node.size:
            yield node, "has not a slot for each number"
    try:
        check_seen(graph)
    except InternalError as error:
        yield graph.nodes[-1], str(error)


def _layout(graph: Graph) -> Problems:
    yield from _known(graph, tuple(one for one in SCALED if one is not Loop))
    yield from _scales(graph)
    yield from _laid(graph)


def _lower(graph: Graph) -> Problems:
    yield from _known(graph, _BELOW_LEVELS)
    yield from _scales(graph)
    yield from _laid(graph)
    for node in graph:
        if isinstance(node.operation, Transform) and len(node.operation.terms) != len(node.inputs):
            yield node, "has not a matrix for each of its inputs"


def _levels(graph: Graph) -> Problems:
    yield from _known(graph, LOWERED)
    yield from _laid(graph)
    for node in graph:
        level = node.facts.level
        if type(level) is not int or level < 0:
            yield node, "has no level"
            continue
        for k, name in enumerate(node.inputs if not isinstance(node.operation, Bootstrap) else ()):
            if graph[name].level < level + levels_taken(node, k):
                yield (
                    node,
                    f"takes {counted_text(levels_taken(node, k), 'level')} of {name}, which has too few",
                )


#: The verifier of each stage that makes a graph.
GRAPHS: Mapping[str, Callable[[Graph], Problems]] = {
    "trace": _traced,
    "simplify": _traced,
    "fold": _bodies(_folded),
    "calibrate": _bodies(_calibrated),
    "approximate": _bodies(_approximated),
    "layout": _layout,
    "lower": _lower,
    "levels": _levels,
}


def verify_levels(graph: Graph, params: Params) -> None:
    """Raises InternalError unless the parameters have the levels of the graph, and do its
    bootstraps."""
    for node in graph:
        if node.level > params.depth:
            raise InternalError(f"the parameters have no level {node.level} of {node.name}")
    try:
        bootstrap_placement.verify(graph, params)
    except InvalidArgument as error:
        raise InternalError(str(error)) from None


def verify_costs(graph: Graph, costs: Costs) -> None:
    """Raises InternalError unless every operation has a cost at its level."""
    for node in graph:
        if not isinstance(node.operation, Bootstrap) and cost_of(costs, node)[node.level] >= NEVER:
            raise InternalError(f"{node.name} cannot be computed at level {node.level}")


def verify_manifest(manifest: Manifest, graph: Graph) -> None:
    """Raises InternalError unless the client's inputs and outputs are those of the graph."""
    ports: list[tuple[Any, Node]] = list(zip(manifest.inputs, graph.inputs, strict=True))
    ports += zip(manifest.outputs, (graph[name] for name in graph.outputs), strict=True)
    for port, node in ports:
        mine = port.name, port.layout, port.level
        if mine != (node.name, client_layout(node.layout), node.level):
            raise InternalError(f"the client has {port.name} otherwise than the server")
