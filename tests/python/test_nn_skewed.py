"""Matrices in several ciphertexts that lie skewed: where their numbers are, and products with
vectors from both sides."""

from __future__ import annotations

from typing import Any

import lies
import numpy as np
import pytest
from graph_nodes import made_by_name
from hypothesis import given, settings
from hypothesis import strategies as st
from slot_interpreter import WEIGHTS, check
from test_nn_restored import program_of
from test_nn_workloads import examples_of

import jali
from jali import nn
from jali._jali import program as _program
from jali.compiler.frontends import workloads
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.layouts import (
    Layout,
    Repeated,
    Skewed,
    contents,
    fitted,
    packed,
    skewed,
    unpacked,
)
from jali.compiler.ir.operation import Input
from jali.compiler.ir.sparse import SparseMap
from jali.compiler.ir.traced_ops import made
from jali.compiler.layout.execute_lowered import every_slot
from jali.compiler.layout.terms import Term
from jali.compiler.passes.approximate import approximated, scaled
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.fold import fold
from jali.compiler.passes.levels import Levels, levelled
from jali.compiler.pipeline import lowered, lowered_as
from jali.compiler.planning.bootstrap_placement import best_levels
from jali.nn import trace


def powers(least: int, most: int) -> st.SearchStrategy[int]:
    return st.integers(least, most).map(lambda k: 1 << k)


@settings(max_examples=50, deadline=None)
@given(powers(2, 8), st.integers(1, 60), st.integers(1, 60))
def test_every_number_lies_once(slots: int, rows: int, columns: int) -> None:
    """In as few ciphertexts as hold rows of a power of two of numbers, up to a power of two; a
    row's chunks in slots of its own."""
    layout, filled_up = skewed((rows, columns), slots), 1 << (columns - 1).bit_length()
    if layout is None:
        assert rows * filled_up <= slots or rows > slots
        return
    assert layout.count < 2 * rows * filled_up / slots and layout.count * slots >= rows * columns
    assert layout.count * layout.width == filled_up
    table = contents(layout)
    assert table.shape == (layout.count, slots)
    assert np.array_equal(np.sort(table[table >= 0]), np.arange(rows * columns))
    slot = np.nonzero(table >= 0)[1]
    assert np.array_equal(slot // layout.width, table[table >= 0] // columns)
    x = np.random.default_rng().normal(size=(2, rows * columns))
    assert np.array_equal(unpacked(layout, packed(layout, x)), x)


def test_vectors_lie_as_rows_and_columns_do(rng: np.random.Generator) -> None:
    """What the class says, by NumPy: 32 rows of 8 in 4 ciphertexts of 64 slots."""
    layout = skewed((32, 8), 64)
    assert layout is not None and (layout.count, layout.width) == (4, 2)
    x, v, s = rng.normal(size=(32, 8)), rng.normal(size=8), rng.normal(size=32)
    held = packed(layout, x.reshape(1, -1))[0]
    columns = packed(layout, np.tile(v, 32)[None])[0]
    rows = packed(layout, np.repeat(s, 8)[None])[0]
    for j in range(4):
        assert np.array_equal(columns[j], np.roll(np.tile(v, 8), -2 * j))
        assert np.array_equal(rows[j], np.repeat(s, 2))
    left = (held * columns).sum(axis=0)
    assert np.allclose(left.reshape(32, 2).sum(axis=1), x @ v)
    back = sum(np.roll(one, 2 * j) for j, one in enumerate(held * rows))
    assert np.allclose(back.reshape(8, 8).sum(axis=0), s @ x)


def product_and_back(rows: int, columns: int, function: str | None) -> Graph:
    """x, v -> the squares of x^T f(x v), for a matrix x and a vector v."""
    x = made("x", Input(shape=(rows, columns)), [])
    v = made("v", Input(shape=(columns,)), [])
    nodes = [x, v]

    def add(*args: Any) -> Node:
        nodes.append(made_by_name(*args))
        return nodes[-1]

    u = add("u", "multiply", [v, v], {})  # so that the vector lies as any array
    wide = add("wide", "broadcast", [u], {"shape": (rows, columns)})
    each = add("each", "multiply", [x, wide], {})
    z = add("z", "sum", [each], {"axes": (1,), "keepdims": True, "factor": 1.0})
    f = z if function is None else add("f", "function", [z], {"function": function})
    back = add("back", "broadcast", [f], {"shape": (rows, columns)})
    share = add("share", "multiply", [back, x], {})
    g = add("g", "sum", [share], {"axes": (0,), "keepdims": False, "factor": 0.5})
    h = add("h", "multiply", [g, g], {})
    return Graph(tuple(nodes), (h.name,))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_products_with_vectors_from_both_sides(data: st.DataObject) -> None:
    """Of any size, in slots that the matrix fills or does not fill, by an interpreter of slots of
    its own."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    slots, lanes = data.draw(powers(3, 8)), data.draw(powers(0, 2))
    rows, columns = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 20))
    if data.draw(st.booleans()):
        rows, columns = data.draw(powers(0, 6)), data.draw(powers(0, 4))
    function = data.draw(st.sampled_from([None, "sigmoid", "tanh"]))
    check(product_and_back(rows, columns, function), slots, lanes, rng)


def rotations(term: Term) -> int:
    return term.moved + len(term.before) + len(term.sums)


def test_a_product_takes_the_rotations_of_one_ciphertext(rng: np.random.Generator) -> None:
    """64 x 16 numbers in 4 ciphertexts: 3 turns of the vector; a sum in one ciphertext of what is
    left of 16 columns, with one mask, and its copies; 3 turns back; and the sum over 16 windows of
    16. Rows one behind the other would take 4 x (4 + 4) + 4 with 4 masks."""
    low = check(product_and_back(64, 16, "sigmoid"), 256, 2, rng)
    assert isinstance(low["x"].attrs["layout"], Skewed)
    assert (
        isinstance(low["z"].attrs["layout"], Repeated) and low["f"].attrs["layout"].ciphertexts == 1
    )
    terms = {name: low[name].attrs["terms"][0] for name in ("wide", "z", "back", "g")}
    assert {name: rotations(term) for name, term in terms.items()} == {
        "wide": 3,
        "z": 2 + 2,
        "back": 0,
        "g": 3 + 4,
    }
    assert {name: term.count for name, term in terms.items()} == {
        "wide": 0,
        "z": 1,
        "back": 0,
        "g": 0,
    }
    assert [terms[name].is_free for name in ("wide", "back")] == [True, True]


def test_turns_need_a_source_that_repeats() -> None:
    """A vector that lies otherwise takes diagonals, and no wrong copy is made of it."""
    target = skewed((32, 8), 64)
    assert target is not None
    copies = SparseMap.gather(np.tile(np.arange(8), 32), 8)
    repeats = fitted((8,), 64)
    assert Term.of(copies, repeats, target, True, WEIGHTS).copy_rotations == (0, 2, 4, 6)
    for other in (Layout((8,), 64, 64), Repeated((8,), 64, 64, width=8)):
        term = Term.of(copies, other, target, True, WEIGHTS)
        assert not term.copy_rotations and term.count
    moved = SparseMap.gather(np.tile(np.roll(np.arange(8), 1), 32), 8)
    assert not Term.of(moved, repeats, target, True, WEIGHTS).copy_rotations


def training(rows: int, features: int, count: int, rng: np.random.Generator, slots: int) -> Graph:
    x = examples_of(rows, features, 3, rng)
    graph = fold(trace(lambda x: workloads.logistic_regression(x, count), x[0]))
    return lowered(approximated(calibrate(graph, [x]), 1e-3), slots, WEIGHTS)["levels"]


def test_a_sum_that_several_multiply_is_computed_once(rng: np.random.Generator) -> None:
    """v' and w' take multiples of the gradient, and the iteration behind takes another of it, in
    the place of w'."""
    graph = training(64, 16, 5, rng, 256)
    rotated = [n.name for n in graph if any(t.sums or t.joined for t in n.attrs.get("terms", ()))]
    gradients = [n for n in rotated if graph[n].attrs["layout"].period == 16]
    assert len(gradients) == 5  # one for each iteration, of which the first one has no product
    users = graph.users("loop[1].multiply_2 summed")
    assert [n.name for n in users] == ["loop[1].add_2", "loop[2].add_2"]
    assert not any(n.name.endswith(("add", "add.2")) for n in graph if n.name.startswith("loop[1]"))
    gains = [dict(zip(n.inputs, n.attrs["gains"], strict=True)) for n in users]
    assert all(gain["loop[1].multiply_2 summed"][1] for gain in gains)


def test_a_plan_inlines_sums_or_not(rng: np.random.Generator) -> None:
    """Whichever is cheaper; a program that is loaded finds out which it was."""
    x = examples_of(16, 8, 20, rng)
    f = lambda x: workloads.logistic_regression(x, 6)  # noqa: E731
    program = program_of(f, x, 5, 8, lanes=1)
    params, graph = program.params, program.stages["approximate"]
    costs = {}
    for inline in (True, False):
        made_of = lowered(graph, params.slots, program.layout_costs, bootstraps=True, inline=inline)
        packings = program.manifest.demand.packings
        levels, plan = best_levels(made_of["lower"], params, program.costs, packings)
        costs[inline] = plan.cost
        again = lowered_as(graph, params, 1, program.layout_costs, levels)
        assert str(again["levels"]) == str(levelled(made_of["lower"], levels))
    assert costs[True] != costs[False]
    mine = {node.name for node in program.stages["lower"]}
    best = lowered(
        graph,
        params.slots,
        program.layout_costs,
        bootstraps=True,
        inline=costs[True] < costs[False],
    )["lower"]
    assert mine == {node.name for node in best}
    with pytest.raises(jali.InvalidArgument, match="another graph"):
        lowered_as(graph, params, 1, program.layout_costs, Levels({"x": 3}, {}))


def test_what_has_parts_is_no_part(rng: np.random.Generator) -> None:
    """A decaying sum would otherwise be one sum of all that ever entered it."""

    def f(x: Any) -> Any:
        return nn.loop(lambda c, row: 0.5 * c + row * row, x[0], x)

    x = rng.uniform(-1, 1, (20, 9, 4))
    made_of = approximated(calibrate(fold(trace(f, x[0])), [x]), 1e-3)
    for inline, most in ((False, 2), (True, 3)):
        graph = lowered(made_of, 64, WEIGHTS, inline=inline)["levels"]
        assert max(len(node.inputs) for node in graph) == most
        (output,) = graph.outputs
        inside = packed(graph["x"].attrs["layout"], scaled(graph["x"], x).reshape(20, -1))
        got = unpacked(graph[output].attrs["layout"], every_slot(graph, [inside])[output])
        got = got * graph[output].attrs["radius"] + graph[output].attrs["centre"]
        assert np.allclose(got, np.stack([f(v) for v in x]))


def test_sums_that_are_outputs_stay(rng: np.random.Generator) -> None:
    """An array that the client sees, or that two nodes take, is not taken apart."""

    def f(x: Any) -> Any:
        def body(v: Any, w: Any) -> tuple[Any, Any]:
            new = 0.5 * v + 0.25 * w
            return new * x, new

        v, w = nn.loop(body, (x, x * 0.5), count=4)
        return v + 0.5 * w

    x = rng.uniform(-1, 1, (20, 6))
    graph = lowered(approximated(calibrate(fold(trace(f, x[0])), [x]), 1e-3), 64, WEIGHTS)["levels"]
    for node in graph:
        assert node.name in graph.outputs or graph.users(node.name) or node.op == "input"


@pytest.fixture(scope="module")
def program() -> tuple[nn.Program, np.ndarray]:
    """x^T (x s)^2 for the squares s of sums of columns of a matrix that takes several ciphertexts,
    without bootstrapping."""
    x = np.random.default_rng(3).uniform(-1, 1, (40, 2048, 8)) / 3

    def f(x: Any) -> Any:
        scores = (x * np.square((x * 0.01).sum(axis=0))).sum(axis=1, keepdims=True)
        return (x * np.square(scores)).sum(axis=0)

    return jali.compile(f, x[0], calibration=x, precision_bits=6), x


def test_a_skewed_input_encrypted(program: tuple[nn.Program, np.ndarray]) -> None:
    """Packed by the client from its manifest alone, with no keys but those that the manifest asks
    for."""
    made_of, x = program
    (port,) = made_of.manifest.inputs
    assert port.layout.kind == "skewed" and port.layout.count > 1
    client = nn.Client(nn.Manifest.from_bytes(made_of.manifest.to_bytes()), threads=1)
    again = nn.Program.from_bytes(made_of.to_bytes())
    server = again.server(client.evaluation_keys(), threads=1, device="cpu")
    got = client.decrypt(server(client.encrypt(x[:2])))
    want = np.asarray(made_of.clear(x))
    assert np.abs(got - want[:2]).max() <= 2.0**-6 * np.abs(want).max()


@pytest.mark.parametrize("skew", [(1, 8), (3, 4), (128, 1), (2, 2), (2, 512), (0, 4)])
def test_layouts_that_are_none_are_refused(
    program: tuple[nn.Program, np.ndarray], skew: tuple[int, int]
) -> None:
    """In a manifest from elsewhere: chunks that hold no row, too many ciphertexts or rows."""
    manifest = program[0].manifest
    mine = manifest.inputs[0].layout
    layout = _program.Layout.skewed(mine.shape, mine.slots, *skew)
    with pytest.raises(jali.CorruptData, match="the bytes are no manifest"):
        nn.Manifest.from_bytes(lies.port("inputs", layout=layout)(manifest).to_bytes())
