"""Lowering: matrices between arrays become diagonals between ciphertexts, and biases become vectors
of slots."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jali.compiler.cost.layout_weights import Weights
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.layout.axes import powers
from jali.compiler.layout.layouts import Layout
from jali.compiler.layout.packing import packed
from jali.compiler.layout.padding import filled
from jali.compiler.layout.product_factors import factors, windowed
from jali.compiler.layout.scaled_sums import shared_sums
from jali.compiler.layout.terms import Term, gain_of

__all__ = ["lower"]


def lower(graph: Graph, weights: Weights) -> Graph:
    """The graph on ciphertexts: nodes ``transform`` in the place of ``affine``. weights: by which
    overlays and copies are chosen.

    Their attributes: terms and gains, one for each source (gains: see
    jali.compiler.noise.array_noise); bias; and shared, which overlays of sources are those of the
    transform before.
    """
    layouts: dict[str, Layout] = {node.name: node.attrs["layout"] for node in graph}
    nodes: list[Node] = []
    shared, full = _Shared(), filled(graph)
    overlay: tuple[str, tuple[int, ...]] | None = None  # the last one: of which node, and its turns
    most: dict[str, float] = {}  # what no slot of a node exceeds, where slots may hold anything
    for node in graph:
        if node.op == "products":
            nodes.append(_products(node, [layouts[name] for name in node.inputs], weights))
            continue
        if node.op != "affine":
            if node.op == "multiply" and layouts[node.name].partial:
                most[node.name] = math.prod(most[name] for name in node.inputs)
                node = node.with_attrs(most=most[node.name])
            nodes.append(node)
            continue
        attrs = {k: v for k, v in node.attrs.items() if k not in ("maps", "shape")}
        attrs["terms"] = tuple(
            shared(Term.of, single, layouts[name], layouts[node.name], name not in full, weights)
            for name, single in zip(node.inputs, node.attrs["maps"], strict=True)
        )
        attrs["gains"] = tuple(shared(gain_of, single) for single in node.attrs["maps"])
        laid = []
        for name, term in zip(node.inputs, attrs["terms"], strict=True):
            laid.append(bool(term.turns) and overlay == (name, term.turns))
            overlay = (name, term.turns) if term.turns else overlay
        attrs["shared"] = tuple(laid)
        attrs["bias"] = shared(_bias, node.attrs["bias"], layouts[node.name])
        if layouts[node.name].partial:
            sources = [most.get(name, 1.0) for name in node.inputs]
            peaks = [_reach(graph[name]) for name in node.inputs]
            most[node.name] = _most(attrs["terms"], peaks, sources, attrs["bias"][0])
            attrs["most"] = most[node.name]
        nodes.append(Node(node.name, "transform", node.inputs, node.shape, attrs))
    return shared_sums(Graph(tuple(nodes), graph.outputs, "lower"))


def _products(node: Node, sources: Sequence[Layout], weights: Weights) -> Node:
    """The terms of all left factors, then of all right ones; and the rotations that add the
    windows."""
    target: Layout = node.attrs["layout"]
    whole, windows = windowed(target)
    sizes = [len(np.unique(layout.addresses)) for layout in sources]
    sides: tuple[list[Term], list[Term]] = ([], [])
    for pair in factors(node.attrs, sizes, windows):
        for single, layout, terms in zip(pair, sources, sides, strict=True):
            terms.append(Term.copies(single, layout, whole, weights))
    sums = powers(target.period, target.slots) if windows > 1 else ()
    dropped = ("left", "right", "order", "shape")
    attrs = {k: v for k, v in node.attrs.items() if k not in dropped}
    attrs |= {"terms": (*sides[0], *sides[1]), "sums": sums}
    return Node(node.name, node.op, node.inputs, node.shape, attrs)


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
    """What no number of an array exceeds in its scale: 1, or more if the array is amplified."""
    low, high = node.attrs.get("low", -1.0), node.attrs.get("high", 1.0)
    return max(1.0, -float(low), float(high)) + float(node.attrs.get("beyond", 0.0))


def _most(
    terms: Sequence[Term], peaks: Sequence[float], sources: Sequence[float], bias: Array
) -> float:
    """What no slot of a result exceeds, for numbers up to `peaks` in the sources and anything up to
    `sources` between them."""
    total = float(np.abs(bias).max())
    for term, peak, source in zip(terms, peaks, sources, strict=True):
        if term.factor is not None and not term.bounds:
            total += abs(term.factor) * max(peak, source)
        elif term.bounds:
            total += term.bounds[0][-1] * peak
    return max(1.0, total)
