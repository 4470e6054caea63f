"""Layouts and diagonals against the graph in the clear."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slot_interpreter import check, convolution

import jali
from jali.compiler.ir.folded_ops import Bootstrap
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.layouts import Gathered, Layout, Shared, fitted, packed
from jali.compiler.ir.linear_ops import Combine, Concat, Dense, Reshape, Slice, Sum
from jali.compiler.ir.operation import Input
from jali.compiler.ir.sparse import SparseMap
from jali.compiler.ir.traced_ops import Function, Multiply, made
from jali.compiler.ir.windows import Convolution
from jali.compiler.layout.choose_layouts import check_seen
from jali.compiler.layout.diagonals import placed, steps

FUNCTIONS = st.sampled_from(["tanh", "sigmoid"])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_networks(data: st.DataObject) -> None:
    """Convolutions with strides, dense maps, squares, functions, sums, branches that join,
    concatenations and slices.

    A sigmoid leaves 1/2 in the slots between the numbers."""
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    x = made("x", Input(shape=(draw(st.integers(1, 3)), 6, draw(st.integers(4, 8)))), [])
    nodes = [x]

    def add(node: Node) -> Node:
        nodes.append(node)
        return node

    for k in range(draw(st.integers(1, 6))):
        last, name = nodes[-1], f"n{k}"
        kinds = ["square", "function", "slice", "concatenate", "join", "sum"]
        if len(last.shape) > 1:
            kinds += ["convolution", "convolution", "flatten"]
        match draw(st.sampled_from(kinds)):
            case "square":
                add(made(name, Multiply(), [last, last]))
            case "function":
                add(made(name, Function(function=draw(FUNCTIONS)), [last]))
            case "sum":
                axes = draw(st.sets(st.sampled_from(range(len(last.shape))), min_size=1))
                attrs = {"axes": tuple(sorted(axes)), "keepdims": True, "factor": 0.25}
                add(made(name, Sum(**attrs), [last]))
            case "slice":
                step = draw(st.sampled_from([1, 2]))
                rest = len(last.shape) - 1
                whole = {"start": (None,) * rest, "stop": (None,) * rest, "step": (1,) * rest}
                attrs = {"start": (None,), "stop": (None,), "step": (step,)}
                add(made(name, Slice(**({k: attrs[k] + whole[k] for k in attrs})), [last]))
            case "concatenate":
                if last.size < 200:
                    add(made(name, Concat(axis=0), [last, last]))
            case "join":
                like = [n for n in nodes[:-1] if n.shape == last.shape]
                if like:
                    other = draw(st.sampled_from(like))
                    add(made(name, Combine(weights=(1.0, -0.5)), [last, other]))
            case "convolution":
                stride, kernel = draw(st.sampled_from([(1, 3), (2, 3), (2, 1)]))
                add(convolution(name, last, rng, draw(st.integers(1, 6)), stride, kernel))
            case "flatten":
                flat = add(made(f"{name}.flat", Reshape(shape=(last.size,)), [last]))
                weight = rng.normal(size=(draw(st.integers(1, 12)), last.size)) / last.size
                add(made(name, Dense(weight=weight, bias=None), [flat]))
    graph = Graph(tuple(nodes), (nodes[-1].name,))
    lanes = draw(st.sampled_from([1, 2, 8]))
    check(graph, draw(st.sampled_from([16, 128, 1024, 4096])), lanes, rng)


@pytest.mark.parametrize("function", ["tanh", "sigmoid"])
@pytest.mark.parametrize("shape", [(3,), (4,), (5, 3), (3, 4, 3)])
def test_sums_behind_functions(
    shape: tuple[int, ...], function: str, rng: np.random.Generator
) -> None:
    """Of rows, of columns and of everything, in ciphertexts whose windows the numbers fill or do
    not fill."""
    nodes = [made("x", Input(shape=shape), [])]
    nodes.append(made("f", Function(function=function), nodes))
    nodes.append(made("g", Combine(weights=(0.5,)), [nodes[1]]))
    for axes in ((0,), (len(shape) - 1,), tuple(range(len(shape)))):
        for keepdims in (True, False):
            attrs = {"axes": axes, "keepdims": keepdims, "factor": 0.5}
            total = made("sum", Sum(**attrs), [nodes[-1]])
            square = made("square", Multiply(), [total, total])
            for slots in (16, 64, 1024):
                check(Graph((*nodes, total, square), ("square",)), slots, 2, rng)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_diagonals_compute_any_matrix(data: st.DataObject) -> None:
    """A random matrix between any two layouts of a source that repeats or lies in shares, and of a
    result."""
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    slots, n, m = 256, draw(st.integers(2, 60)), draw(st.integers(2, 60))
    matrix = rng.normal(size=(m, n)) * (rng.random((m, n)) < draw(st.sampled_from([0.1, 1.0])))

    def power(least: int, most: int) -> int:
        return 1 << draw(st.integers(least.bit_length() - 1, most.bit_length() - 1))

    def shared(size: int, block: int) -> Layout:
        inner = fitted((size,), slots).period
        shares = power(1, slots // block)
        chunk = max(1, inner // shares)
        if chunk * 2 > block or chunk * shares < inner:
            return fitted((size,), slots)
        return Shared((size,), slots, shares * block, 1, (), block, chunk, power(chunk, block))

    source: Layout = fitted((n,), slots, least=power(1, slots))
    target: Layout = fitted((m,), slots, least=power(1, slots))
    match draw(st.sampled_from(["repeat", "source", "target"])):
        case "source":
            source = shared(n, power(2, slots // 2))
        case "target":
            target = shared(m, source.period)
    single = SparseMap.dense(matrix)
    x = rng.normal(size=(1, n))
    held = packed(source, x)[0, 0]
    junk = rng.normal(size=slots) * (packed(source, np.ones((1, n)))[0, 0] == 0)
    held = held + junk * source.partial
    found, period = placed(single, source, target), max(source.period, target.period)
    assert not found.block.any() and np.all(found.slot < period)
    y = np.zeros(slots)
    for diagonal, slot, entry in zip(found.diagonal, found.slot, found.entry, strict=True):
        for start in range(0, slots, period):
            y[start + slot] += single.values[entry] * held[(start + slot + diagonal) % slots]
    for step in steps(source, target):
        y = y + np.roll(y, -step)
    want, there = packed(target, x @ matrix.T)[0, 0], packed(target, np.ones((1, m)))[0, 0] != 0
    assert np.allclose(y[there], want[there], atol=1e-9)
    if not target.partial:
        assert not y[~there].any()


def pair(act: Any, slots: int, channels: int, rng: np.random.Generator) -> tuple[int, int, Graph]:
    """The diagonals of two convolutions that keep the shape, with an activation between them, and
    their graph."""
    x = made("x", Input(shape=(channels, 8, 8)), [])
    a = made("a", Multiply(), [x, x])  # so that the input lies as any array
    b = convolution("b", a, rng, channels)
    c = act("c", b)
    d = convolution("d", c, rng, channels)
    e = made("e", Multiply(), [d, d])
    low = check(Graph((x, a, b, c, d, e), ("e",)), slots, 1, rng)
    return low["b"].attrs["terms"][0].count, low["d"].attrs["terms"][0].count, low


def square(name: str, x: Node) -> Node:
    return made(name, Multiply(), [x, x])


def tanh(name: str, x: Node) -> Node:
    return made(name, Function(function="tanh"), [x])


@pytest.mark.parametrize("act", [square, tanh])
def test_copies_share_the_work_of_every_convolution(act: Any, rng: np.random.Generator) -> None:
    """With R copies, one diagonal of an overlay stands for 2 R of the matrix, before squares and
    before functions."""
    whole = 9 * 8  # places of the kernel times distances between channels
    for copies in (1, 2, 4):
        first, second, low = pair(act, 512 * copies, 8, rng)
        assert first == second == whole // (2 * copies)
        assert not low["b"].attrs["layout"].partial
        assert len(low["b"].attrs["terms"][0].turns) == copies.bit_length()


def test_an_input_in_shares_takes_the_fewest_diagonals(rng: np.random.Generator) -> None:
    """A dense matrix of 32 x 256 has 8,192 entries, so that with 1,024 slots 8 diagonals are the
    fewest."""
    x = made("x", Input(shape=(256,)), [])
    y = made("y", Dense(weight=rng.normal(size=(32, 256)), bias=None), [x])
    low = check(Graph((x, y), ("y",)), 1024, 1, rng)
    assert isinstance(low["x"].attrs["layout"], Gathered)
    assert low["y"].attrs["terms"][0].count == 8


def test_phases_of_an_image_take_one_ciphertext(rng: np.random.Generator) -> None:
    """The convolution of LoLa: 5 x 5 with a stride of 2. Nine diagonals, as many as a phase has
    places under the kernel."""
    x = made("x", Input(shape=(1, 28, 28)), [])
    attrs = {"weight": rng.normal(size=(5, 1, 5, 5)), "bias": rng.normal(size=5), "groups": 1}
    attrs |= {"stride": (2, 2), "padding": ((0, 1), (0, 1)), "dilation": (1, 1)}
    y = made("y", Convolution(**attrs), [x])
    low = check(Graph((x, y, square("z", y)), ("z",)), 4096, 1, rng)
    assert low["x"].attrs["layout"].ciphertexts == 1
    assert (low["y"].attrs["terms"][0].count, low["y"].attrs["terms"][0].sums) == (9, (1024, 2048))


@pytest.mark.parametrize("op", ["function", "bootstrap"])
def test_parts_of_sums_are_not_shown(op: str, rng: np.random.Generator) -> None:
    """To functions, bootstraps and the client, whatever a stage does wrong."""
    low = pair(square, 2048, 8, rng)[2]
    partial = Shared((8, 8, 8), 2048, 2048, 1, (8, 8), 512, 128, 256)
    assert partial.partial
    hidden = (n.with_facts(layout=partial) if n.name in "bc" else n for n in low)
    low = Graph(tuple(hidden), low.outputs, "lower")
    assert check_seen(low) is low
    operation = Function("relu") if op == "function" else Bootstrap("real")
    curious = replace(low["c"], name="f", operation=operation, inputs=("c",))
    with pytest.raises(jali.InternalError, match=rf"f \({op}\) would see .* of c"):
        check_seen(Graph((*low.nodes, curious), ("e",)))
    with pytest.raises(jali.InternalError, match="the client would see"):
        check_seen(Graph(low.nodes, ("e", "c")))


def test_a_reply_holds_nothing_but_results(rng: np.random.Generator) -> None:
    """All slots of a reply, though a hidden layer's slots hold parts of sums."""
    a, b = rng.normal(size=(64, 32)) / 4, rng.normal(size=(3, 64)) / 4
    x = rng.uniform(-1, 1, (60, 32))
    program = jali.compile(
        lambda v: b @ np.square(a @ np.square(v)), x[0], calibration=x, precision_bits=8, batch=2
    )
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1, device="cpu")
    assert any(node.attrs["layout"].partial for node in program.stages["lower"])
    reply = server(client.encrypt(x[:2]))
    (port,) = program.manifest.outputs
    slots = client.secret.decrypt(reply.arrays[0][0], complex=False).reshape(-1, 2).T
    graph = program.stages["levels"]
    layout = graph[graph.outputs[0]].attrs["layout"]
    want = packed(layout, (program.clear(x[:2]) - port.centre) / port.radius)[:, 0]
    assert (want == 0).any() and np.abs(want).max() > 0.05
    assert np.abs(slots - want).max() < 2.0**-8


def test_numbers_of_no_weight_are_sent_in_their_order(rng: np.random.Generator) -> None:
    """Columns that no score takes, as pixels that are always 0, have a place in the input all the
    same: the program's bytes were refused."""
    weight = rng.normal(size=(64, 10))
    weight[rng.choice(64, 7, replace=False)] = 0
    examples = rng.uniform(-1, 1, (60, 64))
    made = jali.compile(lambda x: x @ weight, examples[0], calibration=examples, precision_bits=10)
    program = jali.nn.Program.from_bytes(made.to_bytes())
    layout = program.stages["layout"].inputs[0].layout
    assert isinstance(layout, Gathered)
    assert sorted({*layout.table.ravel()} - {-1}) == list(range(64))
    client = program.client()
    reply = program.server(client.evaluation_keys(), threads=1)(client.encrypt(examples[3]))
    wanted = examples[3] @ weight
    np.testing.assert_allclose(client.decrypt(reply), wanted, atol=2**-9 * np.abs(wanted).max())
