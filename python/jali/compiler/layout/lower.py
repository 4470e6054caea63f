"""Lowering: matrices between arrays become diagonals between ciphertexts, and biases become vectors
of slots.

In: a graph with layouts. Out: the graph on ciphertexts: Transform in the place of Affine, and
LoweredProducts in that of Products.

>>> graph = lay_out(fold(nn.trace(lambda x: np.roll(x, 1) * x, np.ones(8))), 8, WEIGHTS)
>>> [node.op for node in graph], [node.op for node in lower(graph, WEIGHTS)]
(['input', 'affine', 'multiply'], ['input', 'transform', 'multiply'])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jali.compiler.cost.layout_costs import LayoutCosts
from jali.compiler.ir.folded_ops import Affine
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.layouts import Layout, packed
from jali.compiler.ir.products import Products
from jali.compiler.ir.traced_ops import Multiply
from jali.compiler.layout.axes import powers
from jali.compiler.layout.lowered_ops import LoweredProducts, Transform
from jali.compiler.layout.padding import filled
from jali.compiler.layout.product_factors import factors, windowed
from jali.compiler.layout.scaled_sums import shared_sums
from jali.compiler.layout.terms import Term, gain_of

__all__ = ["lower"]


def lower(graph: Graph, costs: LayoutCosts) -> Graph:
    """The graph on ciphertexts: Transform in the place of Affine, and LoweredProducts in that of
    Products.

    costs: by which overlays and copies are chosen.
    """
    layouts = {node.name: node.layout for node in graph}
    nodes: list[Node] = []
    shared, full = _Shared(), filled(graph)
    overlay: tuple[str, tuple[int, ...]] | None = None  # the last one: of which node, and its turns
    most: dict[str, float] = {}  # what no slot of a node exceeds, where slots may hold anything
    for node in graph:
        if isinstance(node.operation, Products):
            sources = [layouts[name] for name in node.inputs]
            nodes.append(_products(node, node.operation, sources, costs))
            continue
        if not isinstance(node.operation, Affine):
            if isinstance(node.operation, Multiply) and layouts[node.name].partial:
                most[node.name] = math.prod(most[name] for name in node.inputs)
                node = node.with_scaling(most=most[node.name])
            nodes.append(node)
            continue
        maps = node.operation.maps
        terms = tuple(
            shared(Term.of, single, layouts[name], layouts[node.name], name not in full, costs)
            for name, single in zip(node.inputs, maps, strict=True)
        )
        gains = tuple(shared(gain_of, single) for single in maps)
        laid = []
        for name, term in zip(node.inputs, terms, strict=True):
            laid.append(bool(term.turns) and overlay == (name, term.turns))
            overlay = (name, term.turns) if term.turns else overlay
        bias = shared(_bias, node.operation.bias, layouts[node.name])
        made = replace(node, operation=Transform(bias, terms, gains, tuple(laid)))
        if layouts[node.name].partial:
            between = [most.get(name, 1.0) for name in node.inputs]
            peaks = [_reach(graph[name]) for name in node.inputs]
            most[node.name] = _most(terms, peaks, between, bias[0])
            made = made.with_scaling(most=most[node.name])
        nodes.append(made)
    return shared_sums(Graph(tuple(nodes), graph.outputs, "lower"))


def _products(
    node: Node, products: Products, sources: Sequence[Layout], costs: LayoutCosts
) -> Node:
    """The terms of all left factors, then of all right ones; and the rotations that add the
    windows."""
    target = node.layout
    whole, windows = windowed(target)
    sizes = [len(np.unique(layout.addresses)) for layout in sources]
    sides: tuple[list[Term], list[Term]] = ([], [])
    for pair in factors(products, sizes, windows):
        for single, layout, terms in zip(pair, sources, sides, strict=True):
            terms.append(Term.copies(single, layout, whole, costs))
    sums = powers(target.period, target.slots) if windows > 1 else ()
    lowered = LoweredProducts(products.shapes, products.gain, (*sides[0], *sides[1]), sums)
    return replace(node, operation=lowered)


class _Shared:
    """Computes once what is asked for the same objects again, as the iterations of a loop do."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], tuple[Any, tuple[Any, ...]]] = {}

    def __call__(self, make: Callable[..., Any], *of: Any) -> Any:
        key = (make.__qualname__, *map(id, of))
        if key not in self._known:
            self._known[key] = make(*of), of  # which keeps the objects alive, and their ids
        return self._known[key][0]


def _bias(bias: Array, layout: Layout) -> Array:
    slots: Array = packed(layout, bias[None])[0]
    return slots


def _reach(node: Node) -> float:
    """No number of an array is larger in modulus, in its scale: 1, or more if the array is
    amplified."""
    return max(1.0, -node.scaling.low, node.scaling.high) + node.scaling.beyond


def _most(
    terms: Sequence[Term], peaks: Sequence[float], sources: Sequence[float], bias: Array
) -> float:
    """No slot of a result is larger in modulus, for numbers up to `peaks` in the sources and
    anything up to `sources` in the slots between them."""
    total = float(np.abs(bias).max())
    for term, peak, source in zip(terms, peaks, sources, strict=True):
        if term.factor is not None and not term.bounds:
            total += abs(term.factor) * max(peak, source)
        elif term.bounds:
            total += term.bounds[0][-1] * peak
    return max(1.0, total)
