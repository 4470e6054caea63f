"""Noise of numbers with several copies: against copies that are drawn and carried one by one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from graph_nodes import node_of

from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.layouts import Layout
from jali.compiler.ir.sparse import SparseMap
from jali.compiler.layout.terms import Term
from jali.compiler.noise.bootstrap_noise import BootstrapNoise
from jali.compiler.noise.copies import AddedToCopies, Copies, sums_slots

SIZE, COPIES, EXAMPLES = 16, 4, 4000
TILED = Layout((SIZE,), SIZE * COPIES, SIZE)
WIDE = Layout((SIZE,), SIZE * COPIES, 2 * SIZE)
ONE = SparseMap.identity(SIZE)


def array(name: str, op: str, inputs: tuple[str, ...] = (), **attrs: object) -> Node:
    return node_of(name, op, inputs, (SIZE,), {"layout": TILED} | attrs)


def affine(name: str, maps: Mapping[str, SparseMap], layout: Layout = TILED) -> Node:
    attrs = {"maps": tuple(maps.values()), "bias": np.zeros(SIZE), "shape": (SIZE,)}
    return array(name, "affine", tuple(maps), **attrs | {"layout": layout})


def momentum(steps: int, gradient: SparseMap) -> Graph:
    """x[t] = 1.8 x[t-1] - 0.8 x[t-2] - M x[t-1]: what M does not reach grows."""
    nodes = [array("x0", "input"), array("x1", "input")]
    for t in range(2, steps):
        nodes.append(affine(f"g{t}", {f"x{t - 1}": gradient}))
        maps = {
            f"x{t - 1}": ONE.scaled(1.8),
            f"x{t - 2}": ONE.scaled(-0.8),
            f"g{t}": ONE.scaled(-1),
        }
        nodes.append(affine(f"x{t}", maps))
    return Graph(tuple(nodes), (nodes[-1].name,), "layout")


def computed(node: Node, sources: list[Array]) -> Array:
    return node.operation.compute(sources)


def rms(x: Array) -> float:
    return float(np.sqrt(np.mean(np.square(x))))


def estimated(
    graph: Graph, added: Mapping[str, AddedToCopies], rng: np.random.Generator
) -> tuple[float, float]:
    """The noise of one copy of the output, and the part that all have in common."""
    add, values = Copies(graph, added, rng), dict[str, Array]()
    for node in graph:
        zero = np.zeros((2 * EXAMPLES, SIZE))
        found = zero if node.op == "input" else computed(node, [values[k] for k in node.inputs])
        values[node.name] = add(node, found)
    common, one = np.split(values[graph.outputs[0]], 2)
    return rms(one), rms(common)


def drawn(graph: Graph, added: Mapping[str, AddedToCopies], rng: np.random.Generator) -> float:
    """The same noise of one copy, with every copy in an array of its own. A map that is not a
    multiple of the identity takes the first copy."""
    values: dict[str, Array] = {}
    for node in graph:
        own, shape = added.get(node.name, AddedToCopies()), (COPIES, EXAMPLES, SIZE)
        found = np.zeros(shape)
        if node.op == "affine":
            for name, single in zip(node.inputs, node.attrs["maps"], strict=True):
                whole = single.matrix()
                alike = np.array_equal(whole, whole[0, 0] * np.eye(SIZE))
                x = values[name] if alike else values[name][:1]
                found = found + np.stack([single(copy) for copy in x])
        elif node.op != "input":
            sources = [values[k] for k in node.inputs]
            found = np.stack([computed(node, list(copy)) for copy in zip(*sources, strict=True)])
        found = found + own.common * rng.normal(size=shape[1:]) + own.alone * rng.normal(size=shape)
        if own.repetitions > 1:
            found = np.broadcast_to(found.mean(axis=0), shape)
        parts = own.restored
        found = found - parts.mean - parts.cubic * found**3 / max(np.mean(found**6), 1e-30) ** 0.5
        found = found + parts.common * rng.normal(size=shape[1:])
        values[node.name] = found + parts.alone * rng.normal(size=shape)
    return rms(values[graph.outputs[0]][-1])


@pytest.mark.parametrize(
    "restored",
    [BootstrapNoise(), BootstrapNoise(alone=0.02), BootstrapNoise(0.02, 0.005, 0.003, 0.004)],
)
def test_momentum_adds_up_what_all_copies_have_in_common(
    rng: np.random.Generator, restored: BootstrapNoise
) -> None:
    """Without a distinction between both kinds of noise, the estimate would be twice as large."""
    direction = rng.normal(size=SIZE) / np.sqrt(SIZE)
    graph = momentum(12, SparseMap.dense(0.5 * np.outer(direction, direction)))
    added = {
        node.name: AddedToCopies(0.001)
        if node.name.startswith("g")
        else AddedToCopies(0.0, 0.05, restored, COPIES)
        for node in graph
    }
    found, _ = estimated(graph, added, rng)
    assert found == pytest.approx(drawn(graph, added, rng), rel=0.03)
    alike = {name: AddedToCopies(own.random) for name, own in added.items()}
    assert estimated(graph, alike, rng)[0] > 1.6 * found


def test_a_bootstrapping_leaves_the_same_mean_in_all_copies(rng: np.random.Generator) -> None:
    """So that the next one does not make it smaller again."""
    again = [affine(f"x{k + 1}", {f"x{k}": ONE}) for k in range(3)]
    graph = Graph((array("x0", "input"), *again), ("x3",), "layout")
    added = {"x0": AddedToCopies(alone=1.0)}
    added |= {node.name: AddedToCopies(repetitions=COPIES) for node in again}
    found, common = estimated(graph, added, rng)
    assert found == pytest.approx(common)
    assert found == pytest.approx(COPIES**-0.5, rel=0.02)
    assert found == pytest.approx(drawn(graph, added, rng), rel=0.03)


def test_copies_of_one_copy_have_its_noise_in_common(rng: np.random.Generator) -> None:
    """Whether a matrix made them, another layout, or a sum of encrypted products."""
    mixed = SparseMap.gather(np.roll(np.arange(SIZE), 1), SIZE)
    x = array("x", "input")
    for node in (affine("y", {"x": mixed}), affine("y", {"x": ONE}, layout=WIDE)):
        added = {"x": AddedToCopies(alone=1.0), "y": AddedToCopies(repetitions=COPIES)}
        graph = Graph((x, node), ("y",), "layout")
        assert estimated(graph, added, rng) == pytest.approx((1.0, 1.0), rel=0.03)
    same = Graph((x, affine("y", {"x": ONE})), ("y",), "layout")
    assert estimated(same, added, rng)[0] == pytest.approx(0.5, rel=0.03)


def test_functions_and_products_work_copy_by_copy(rng: np.random.Generator) -> None:
    nodes = (
        array("x", "input"),
        array("w", "input"),
        array("s", "approximated", ("x",), by=lambda x: 0.5 * x + 0.2 * x**2),
        array("p", "multiply", ("s", "w")),
        affine("y", {"p": ONE}),
    )
    graph = Graph(nodes, ("y",), "layout")
    added = {
        "x": AddedToCopies(0.3, 0.4),
        "w": AddedToCopies(0.5, 0.2),
        "s": AddedToCopies(alone=0.1),
        "y": AddedToCopies(repetitions=COPIES),
    }
    assert estimated(graph, added, rng)[0] == pytest.approx(drawn(graph, added, rng), rel=0.05)


def test_what_is_not_used_again_is_not_kept(rng: np.random.Generator) -> None:
    graph = momentum(20, ONE.scaled(0.1))
    add = Copies(graph, {}, rng)
    for node in graph:
        add(node, np.zeros((2, SIZE)))
        assert len(add._apart) <= 3
    assert not add._apart


def test_which_nodes_sum_slots() -> None:
    def of(*terms: Term) -> Node:
        return node_of("y", "transform", ("x",), (SIZE,), {"terms": terms})

    assert not sums_slots(of(Term(2.0)))
    assert sums_slots(of(Term(2.0), Term(None)))
    assert sums_slots(of(Term(2.0, sums=(1, 2))))
    assert sums_slots(of(Term(2.0, before=(1, 2))))
    assert sums_slots(node_of("y", "products", ("x", "x"), (SIZE,), {}))
    assert not sums_slots(node_of("y", "multiply", ("x", "x"), (SIZE,), {}))
