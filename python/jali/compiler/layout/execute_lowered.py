"""The clear interpreter of lowered graphs: what every slot holds, in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jali.compiler.ir.folded_ops import Approximated, Bootstrap
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.operation import Input, Operation
from jali.compiler.ir.traced_ops import Multiply
from jali.compiler.layout.lowered_ops import LoweredProducts, Transform
from jali.compiler.layout.overlay import monomial
from jali.compiler.layout.terms import Term
from jali.errors import InternalError

__all__ = ["SLOTS", "every_slot"]


def every_slot(graph: Graph, inputs: Sequence[Array]) -> dict[str, Array]:
    """The slots (batch, ciphertexts, slots) of every node of a lowered graph, for packed inputs, in
    the clear."""
    given, values = iter(inputs), dict[str, Array]()
    for node in graph:
        if isinstance(node.operation, Input):
            values[node.name] = next(given)
        else:
            sources = [values[name] for name in node.inputs]
            values[node.name] = SLOTS[type(node.operation)](node, sources)
    return values


def _given(node: Node, sources: Sequence[Array]) -> Array:
    raise InternalError(f"{node.name} is an input, whose slots are given")


def _transformed(node: Node, sources: Sequence[Array]) -> Array:
    transform = Transform.of(node)
    pairs = zip(transform.terms, sources, strict=True)
    total = sum((_applied(term, x, node) for term, x in pairs), start=np.zeros(()))
    return np.asarray(total + transform.bias)


def _product(node: Node, sources: Sequence[Array]) -> Array:
    return sources[0] * sources[1]


def _approximated(node: Node, sources: Sequence[Array]) -> Array:
    return Approximated.of(node).by(sources[0])


def _bootstrapped(node: Node, sources: Sequence[Array]) -> Array:
    """With fewer slots than all, the mean of those that lie a period apart."""
    (values,), period = sources, node.layout.period
    if Bootstrap.of(node).slots is None:
        return values
    found = values.reshape(*values.shape[:-1], -1, period).mean(axis=-2)
    return np.tile(found, values.shape[-1] // period)


def _sum_of_products(node: Node, sources: Sequence[Array]) -> Array:
    products = LoweredProducts.of(node)
    terms = products.terms
    half = len(terms) // 2
    pairs = zip(terms[:half], terms[half:], strict=True)
    y = sum(
        (_applied(a, sources[0], node) * _applied(b, sources[1], node) for a, b in pairs),
        start=np.zeros(()),
    )
    for step in products.sums:
        y = y + np.roll(y, -step, axis=2)
    return np.asarray(y)


def _applied(term: Term, x: Array, node: Node) -> Array:
    layout = node.layout
    y = np.zeros((len(x), layout.ciphertexts, layout.slots), complex if term.turns else float)
    if term.joined:
        each = (np.roll(x[:, k], -step, axis=1) for k, step in enumerate(term.joined))
        x = sum(each, start=np.zeros(()))[:, None]
    for step in term.before:
        x = x + np.roll(x, -step, axis=2)
    overlay: npt.NDArray[np.inexact[Any]] = x
    for step, exponent in zip(term.turns, term.monomials(), strict=True):
        overlay = overlay + monomial(exponent, layout.slots) * np.roll(overlay, -step, axis=2)
    for to in range(layout.ciphertexts):
        if term.factor is not None:
            taken = [0] if term.joined else list(term.sources_of(to))
            y[:, to] = term.factor * np.roll(
                x[:, taken].sum(axis=1), -term.copy_rotation(to), axis=1
            )
            continue
        for from_, vectors in term.vectors(to):
            for d, vector in vectors.items():
                y[:, to] += vector * np.roll(overlay[:, from_], -d, axis=1)
    for step in term.traced:
        y = y + np.roll(y, -step, axis=2)
    if term.turns:
        y = 2 * y.real
    for step in term.sums:
        y = y + np.roll(y, -step, axis=2)
    return y


#: What the slots of each operation's result hold, for those of its inputs.
SLOTS: Mapping[type[Operation], Callable[[Node, Sequence[Array]], Array]] = {
    Input: _given,
    Transform: _transformed,
    Multiply: _product,
    LoweredProducts: _sum_of_products,
    Approximated: _approximated,
    Bootstrap: _bootstrapped,
}
