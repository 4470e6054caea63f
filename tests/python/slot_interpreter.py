"""Lowered graphs on slots in the clear, by an interpreter that shares no code with the
compiler's."""

from __future__ import annotations

import numpy as np
from graph_nodes import scaled

from jali.compiler.cost.layout_costs import LayoutCosts
from jali.compiler.ir.execute import execute
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.layouts import packed
from jali.compiler.ir.traced_ops import made
from jali.compiler.ir.windows import Convolution
from jali.compiler.layout.choose_layouts import check_seen, lay_out
from jali.compiler.layout.lower import lower
from jali.compiler.layout.padding import filled
from jali.compiler.layout.terms import Term
from jali.compiler.passes.fold import fold
from jali.nn.scalar import FUNCTIONS

__all__ = ["WEIGHTS", "check", "convolution", "slots_of"]

#: Round numbers, by which tests choose layouts whose diagonals they count: those of no device.
WEIGHTS = LayoutCosts(
    rotation=16, behind=16, switch=16, diagonal=1, mask=1, product=24, added=6, sent=16, level=16
)


def convolution(
    name: str, x: Node, rng: np.random.Generator, channels: int, stride: int = 1, kernel: int = 3
) -> Node:
    weight = rng.normal(size=(channels, x.shape[0], kernel, kernel)) / x.shape[0] / kernel
    attrs = {"weight": weight, "bias": rng.normal(size=channels), "dilation": (1, 1), "groups": 1}
    attrs |= {"stride": (stride, stride), "padding": ((kernel // 2, kernel // 2),) * 2}
    return made(name, Convolution(**attrs), [x])


def units(term: Term, slots: int, lanes: int) -> list[np.ndarray]:
    """The values of the overlay's monomials: slot s is the point exp(2 pi i 5^s / 2N), for N = 2
    slots."""
    points = np.array([pow(5, s, 4 * slots) for s in range(slots)], object)
    return [
        np.exp(2j * np.pi * np.array(points * e % (4 * slots), float) / (4 * slots))
        for e in term.monomials(lanes)
    ]


def slots_of(graph: Graph, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
    """The slots (ciphertexts, slots) of every node, for inputs (lanes, size): number k of lane b of
    a window is in slot k lanes + b."""
    values: dict[str, np.ndarray] = {}
    given_inputs = iter(inputs)
    for node in graph:
        layout = node.attrs["layout"]
        if node.op == "input":
            x = next(given_inputs)
            one = packed(layout, x)  # (lanes, ciphertexts, slots of a lane)
            values[node.name] = one.transpose(1, 2, 0).reshape(layout.ciphertexts, -1)
            continue
        lanes = len(inputs[0])
        sources = [values[name] for name in node.inputs]
        if node.op == "multiply":
            values[node.name] = sources[0] * sources[1]
            continue
        if node.op == "function":
            values[node.name] = FUNCTIONS[node.attrs["function"]](sources[0])
            continue
        y = np.repeat(node.attrs["bias"], lanes, axis=1)
        for term, x in zip(node.attrs["terms"], sources, strict=True):
            z = np.zeros(y.shape, complex if term.turns else float)
            if term.joined:
                steps = zip(x, term.joined, strict=True)
                x = np.sum([np.roll(one, -step * lanes) for one, step in steps], axis=0)[None]
            for step in term.before:
                x = x + np.roll(x, -step * lanes, axis=1)
            for step, unit in zip(term.turns, units(term, x.shape[1], lanes), strict=True):
                x = x + unit * np.roll(x, -step * lanes, axis=1)
            for to in range(len(y)):
                if term.factor is not None:
                    taken = [0] if term.joined else term.sources_of(to)
                    turn = term.copy_rotations[to] * lanes if term.copy_rotations else 0
                    z[to] = term.factor * np.roll(sum(x[k] for k in taken), -turn)
                for from_, vectors in term.vectors(to, lanes) if term.factor is None else ():
                    assert sorted(vectors) == [d * lanes for d in term.diagonals[to, from_]]
                    for rotation, vector in vectors.items():
                        z[to] += vector * np.roll(x[from_], -rotation)
            if term.turns:  # the sum over all rotations that leave the numbers in their places
                count = 2 ** (len(term.turns) - 1)
                part = z.shape[1] // count
                z = 2 * sum(np.roll(z, -k * part, axis=1) for k in range(count)).real
            for step in term.sums:
                z = z + np.roll(z, -step * lanes, axis=1)
            y = y + z
        values[node.name] = y
    return values


def check(graph: Graph, slots: int, lanes: int, rng: np.random.Generator) -> Graph:
    """Every number of every node, its copies and the emptiness of the other slots."""
    folded = scaled(fold(graph))
    low = check_seen(lower(lay_out(folded, slots, WEIGHTS), WEIGHTS))
    inputs = [rng.uniform(-1, 1, (lanes, *node.shape)) for node in graph.inputs]
    flat = [x.reshape(lanes, -1) for x in inputs]
    found = slots_of(low, flat)
    everything = tuple(node.name for node in folded)
    want = execute(Graph(folded.nodes, everything, "fold"), *inputs)
    full = filled(folded)
    for name, clear in zip(everything, want, strict=True):
        node = low[name]  # there may be more nodes, of sums that several take
        layout, clear = node.attrs["layout"], clear.reshape(lanes, -1)
        got = found[node.name].reshape(layout.ciphertexts, -1, lanes).transpose(2, 0, 1)
        whole = packed(layout, clear)
        held = packed(layout, np.ones_like(clear)) != 0
        assert np.allclose(got[held], whole[held], atol=1e-9), str(node)
        if node.name not in full and not layout.partial:
            assert not got[~held].any(), f"{node.name} has numbers in empty slots"
    for name in low.outputs:
        assert not low[name].attrs["layout"].partial
    return low
