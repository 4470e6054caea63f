"""The compiler's graphs in the clear: operations, folding, calibration, approximation and layouts,
each against an oracle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from graph_nodes import made_by_name
from hypothesis import given, settings
from hypothesis import strategies as st
from slot_interpreter import WEIGHTS

import jali
from jali.compiler.ir.execute import every_value, execute
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.layouts import Gathered, Layout, Shared, packed
from jali.compiler.ir.linear_ops import Combine, Dense, Reshape, Sum
from jali.compiler.ir.operation import Input, Linear
from jali.compiler.ir.sparse import DenseMap, SparseMap
from jali.compiler.ir.traced_ops import Function, Multiply, made, verify
from jali.compiler.ir.windows import AveragePool, Convolution
from jali.compiler.layout.choose_layouts import lay_out
from jali.compiler.layout.execute_lowered import every_slot
from jali.compiler.layout.lower import lower
from jali.compiler.passes import approximate as approximation
from jali.compiler.passes.approximate import approximate, scaled
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.fold import fold
from jali.nn import scalar, trace


def one(op: str, of: tuple[int, ...], **attrs: Any) -> Graph:
    x = made("x", Input(shape=of), [])
    return Graph((x, made_by_name("y", op, [x], attrs)), ("y",))


def naive_convolution(x: np.ndarray, attrs: dict[str, Any]) -> np.ndarray:
    """One number after the other, from the definition."""
    w, groups = attrs["weight"], attrs["groups"]
    x = np.pad(x, ((0, 0), (0, 0), *attrs["padding"]))
    kernel, (sy, sx), (dy, dx) = w.shape[2:], attrs["stride"], attrs["dilation"]
    rows = (x.shape[2] - dy * (kernel[0] - 1) - 1) // sy + 1
    columns = (x.shape[3] - dx * (kernel[1] - 1) - 1) // sx + 1
    y = np.zeros((len(x), len(w), rows, columns))
    for b, o, r, c in np.ndindex(*y.shape):
        first = o // (len(w) // groups) * w.shape[1]
        for i, ky, kx in np.ndindex(*w.shape[1:]):
            y[b, o, r, c] += w[o, i, ky, kx] * x[b, first + i, r * sy + ky * dy, c * sx + kx * dx]
    return y if attrs["bias"] is None else y + attrs["bias"][:, None, None]


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_convolution_is_the_definition(data: st.DataObject) -> None:
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    groups = draw(st.sampled_from([1, 2]))
    kernel = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    attrs = {
        "weight": rng.normal(size=(2 * groups, draw(st.integers(1, 2)), *kernel)),
        "bias": rng.normal(size=2 * groups) if draw(st.booleans()) else None,
        "stride": draw(st.tuples(st.integers(1, 3), st.integers(1, 3))),
        "padding": tuple(draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) for _ in range(2)),
        "dilation": draw(st.tuples(st.integers(1, 2), st.integers(1, 2))),
        "groups": groups,
    }
    shape = (attrs["weight"].shape[1] * groups, draw(st.integers(5, 7)), draw(st.integers(5, 7)))
    x = rng.normal(size=(2, *shape))
    graph = one("convolution", shape, **attrs)
    want = naive_convolution(x, attrs)
    assert np.allclose(execute(graph, x)[0], want, atol=1e-9)
    assert np.allclose(execute(fold(graph), x)[0], want, atol=1e-9)


@pytest.mark.parametrize("count_padding", [True, False])
def test_average_pool_is_the_mean_under_the_window(
    rng: np.random.Generator, count_padding: bool
) -> None:
    x = rng.normal(size=(2, 3, 5, 6))
    graph = one(
        "average_pool",
        x.shape[1:],
        kernel=(2, 3),
        stride=(2, 2),
        padding=((0, 1), (1, 1)),
        count_padding=count_padding,
    )
    got = execute(graph, x)[0]
    for b, c, i, j in np.ndindex(*got.shape):
        rows = [r for r in range(2 * i, 2 * i + 2) if r < 5]
        columns = [k for k in range(2 * j - 1, 2 * j + 2) if 0 <= k < 6]
        under = x[b, c][np.ix_(rows, columns)]
        assert np.isclose(got[b, c, i, j], under.sum() / (6 if count_padding else under.size))
    assert np.allclose(execute(fold(graph), x)[0], got, atol=1e-12)


LINEAR = {
    "dense": lambda r: {"weight": r.normal(size=(3, 6)), "bias": r.normal(size=3)},
    "scale": lambda r: {"factor": r.normal(size=(4, 1)), "offset": r.normal(size=6)},
    "reshape": lambda r: {"shape": (3, 8)},
    "transpose": lambda r: {"axes": (1, 0)},
    "slice": lambda r: {"start": (3, 1), "stop": (None, 6), "step": (-1, 2)},
    "broadcast": lambda r: {"shape": (2, 4, 6)},
    "pad": lambda r: {"widths": ((1, 0), (0, 2))},
    "sum": lambda r: {"axes": (0,), "factor": 0.5, "keepdims": True},
}


@pytest.mark.parametrize("op", LINEAR)
def test_matrices_of_linear_operations_are_the_operations(
    op: str, rng: np.random.Generator
) -> None:
    x, attrs = rng.normal(size=(3, 4, 6)), LINEAR[op](rng)
    graph = one(op, (4, 6), **attrs)
    rule = graph["y"].operation
    assert isinstance(rule, Linear)
    (matrix,) = rule.maps([(4, 6)])
    flat = matrix.matrix() @ x.reshape(3, -1).T
    want = flat.T + rule.constant([(4, 6)])
    assert np.allclose(execute(graph, x)[0].reshape(3, -1), want, atol=1e-12)


def test_sparse_maps_compose_like_matrices(rng: np.random.Generator) -> None:
    for density in (0.05, 0.6):
        a, b = (rng.normal(size=s) * (rng.random(s) < density) for s in ((20, 30), (30, 25)))
        product = SparseMap.dense(a).after(SparseMap.dense(b))
        assert np.allclose(product.matrix(), a @ b)
        x, low = rng.normal(size=(4, 30)), rng.normal(size=30)
        assert np.allclose(SparseMap.dense(a)(x), x @ a.T)
        ends = SparseMap.dense(a).bounds(low, low + 1)
        corners = low + rng.integers(0, 2, (200, 30))
        assert np.all(corners @ a.T >= ends[0] - 1e-9) and np.all(corners @ a.T <= ends[1] + 1e-9)


@pytest.mark.parametrize(("rows", "columns", "density"), [(7, 5, 0.4), (300, 300, 0.9)])
def test_bounds_of_a_map_are_reached_and_not_exceeded(
    rows: int, columns: int, density: float, rng: np.random.Generator
) -> None:
    """For one interval of all numbers, and for an interval of each. The larger map is kept as a
    matrix."""
    a = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < density)
    single = SparseMap.dense(a)
    assert isinstance(single, DenseMap) == (rows == 300)
    for each in (single, single.scaled(rng.normal(size=rows), rng.normal(size=columns))):
        m = each.matrix()
        for low, high in (
            (-0.3, 0.7),
            (0.25, 0.5),
            (-1.0, -0.5),
            (rng.uniform(-2, -1, columns), rng.uniform(-1, 1, columns)),
        ):
            x_low = np.where(m > 0, low, high)
            want = (m * x_low).sum(1), (m * (np.add(low, high) - x_low)).sum(1)
            assert np.allclose(each.bounds(low, high), want, rtol=1e-12, atol=1e-12)
            ends = (np.broadcast_to(x, columns) for x in (low, high))
            assert np.allclose(each.bounds(*ends), want, rtol=1e-12, atol=1e-12)


def function(x: Any, y: Any) -> tuple[Any, Any]:
    """Branches, a shared array, slices, a product of encrypted arrays and two outputs."""
    a = scalar.sigmoid(x.reshape(2, 6)[:, ::-1] @ np.arange(12.0).reshape(6, 2) / 20)
    b = np.tanh(y[1:, None] + a[0] * 2 - a[1])
    c = np.concatenate([a, b], axis=0)
    return (c @ c.T).sum(axis=1) / 3, 1 / (np.exp(-y) + 1)


def test_functions_are_traced_and_folded(rng: np.random.Generator) -> None:
    x, y = rng.normal(size=(5, 12)), rng.normal(size=(5, 3))
    graph = trace(function, (x[0], y[0]))
    assert [node.name for node in graph.inputs] == ["x", "y"]
    want = [np.stack(r) for r in zip(*map(function, x, y), strict=True)]
    for stage in (graph, fold(graph)):
        got = execute(stage, x, y)
        assert all(np.allclose(g, w, atol=1e-9) for g, w in zip(got, want, strict=True))
    linear = [node for node in fold(graph) if node.op not in ("affine", "input")]
    assert {node.op for node in linear} == {"function", "products"}


def test_folding_keeps_one_matrix_between_functions(rng: np.random.Generator) -> None:
    def f(x: Any) -> Any:
        for _ in range(4):
            x = (x * 2 - 1).reshape(-1) @ (np.eye(6) + 0.1)
        return scalar.relu(x[::-1] + 1)

    graph = fold(trace(f, np.zeros(6)))
    assert [node.op for node in graph] == ["input", "affine", "function"]


def test_a_residual_is_added_without_a_matrix(rng: np.random.Generator) -> None:
    w = rng.normal(size=(6, 6))
    graph = fold(trace(lambda x: x + scalar.relu(w @ x), np.zeros(6)))
    ends = graph["add"]
    assert ends.op == "affine" and all(m.is_identity for m in ends.attrs["maps"])


@pytest.mark.parametrize(
    ("f", "says"),
    [
        (lambda x: x if x[0] > 0 else -x, "condition"),
        (lambda x: np.sort(x), "numpy.sort"),
        (lambda x: np.arctan(x), "numpy.arctan"),
        (lambda x: float(x), "conversion"),
        (lambda x: x[[0, 2]], "slices"),
        (lambda x: np.ones(3), "does not depend"),
        (lambda x: x @ np.full((4, 2), np.nan), "NaN"),
        (lambda x: x @ np.ones((3, 2)), "columns"),
        (lambda x: x / np.zeros(4), "division by zero"),
    ],
)
def test_what_cannot_be_traced_is_refused(f: Any, says: str) -> None:
    with pytest.raises(jali.Error, match=says):
        trace(f, np.zeros(4))


def test_graphs_are_verified() -> None:
    x = made("x", Input(shape=(4,)), [])
    with pytest.raises(jali.InvalidArgument, match="no node before it"):
        Graph((Node("y", Function("relu"), ("z",), (4,)),), ("y",))
    with pytest.raises(jali.InvalidArgument, match="two nodes"):
        Graph((x, x), ("x",))
    wrong = Node("y", Function("relu"), ("x",), (5,))
    with pytest.raises(jali.InvalidArgument, match="y: its shape is"):
        verify(Graph((x, wrong), ("y",)))


def test_calibration_bounds_what_it_has_not_seen(rng: np.random.Generator) -> None:
    w = rng.normal(size=(8, 5))
    graph = fold(trace(lambda x: scalar.relu(w @ x + 1), np.zeros(5)))
    seen = rng.uniform(-1, 1, (50, 5))
    node = calibrate(graph, [seen]).nodes[1]
    values = seen @ w.T + 1
    assert node.attrs["low"] < values.min() and node.attrs["high"] > values.max()
    declared = calibrate(graph, [seen], margin=100.0, input_ranges=[(-1, 1)]).nodes[1]
    assert declared.attrs["proven"]
    assert np.isclose(declared.attrs["high"], (np.abs(w).sum(1) + 1).max())


@pytest.mark.parametrize(
    ("f", "x", "says"),
    [
        (lambda x: np.log(x), [[1.0], [-1.0]], "log: some examples"),
        (lambda x: np.sqrt(x - 1), [[1.0], [2.0]], "above 0"),
    ],
)
def test_calibration_refuses_numbers_outside_of_a_domain(f: Any, x: Any, says: str) -> None:
    with pytest.raises(jali.InvalidArgument, match=says):
        calibrate(fold(trace(f, np.zeros(1))), [np.array(x)], margin=2.0)


FUNCTIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "absolute": np.abs,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "silu": lambda x: x / (1 + np.exp(-x)),
    "exp": np.exp,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_approximations_keep_the_precision(name: str, rng: np.random.Generator) -> None:
    w, v = rng.normal(size=(8, 5)), rng.normal(size=(3, 8))
    x = rng.uniform(-1, 1, (200, 5))

    def f(x: Any) -> Any:
        return (
            v @ getattr(np, name)(w @ x)
            if name in ("exp", "tanh", "absolute")
            else v @ getattr(scalar, name)(w @ x)
        )

    graph = calibrate(fold(trace(f, x[0])), [x])
    made_of, _ = approximate(graph, [x], 7.0)
    node = made_of["x"]
    output = made_of[made_of.outputs[0]]
    got = every_value(made_of, [scaled(node, x)])[output.name]
    want = FUNCTIONS[name](x @ w.T) @ v.T
    error = np.abs(got * output.attrs["radius"] + output.attrs["centre"] - want).max()
    assert error <= 2.0**-7 * np.abs(want).max()
    assert all(abs(n.attrs["high"]) <= 1 + 1e-9 for n in made_of)


def test_errors_of_approximations_are_those_of_all_examples(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Measured on one example at a time, in any order, they lead to the same polynomials."""
    x = rng.uniform(-0.01, 0.01, (40, 3))
    x[17] = [1, -1, 1]  # polynomials are worst near the ends
    f = lambda v: np.array([[3.0, 3, 3], [3, -3, 3]]) @ (np.tanh(3 * v) - np.tanh(2 * v))  # noqa: E731
    graph = calibrate(fold(trace(f, x[0])), [x])
    whole, error = approximate(graph, [x], 9.0)
    monkeypatch.setattr(approximation, "_AT_ONCE", 1)
    for order in (np.arange(40), np.arange(40)[::-1]):
        made_of, found = approximate(graph, [x[order]], 9.0)
        assert found == error and [str(n) for n in made_of] == [str(n) for n in whole]
    rounds = np.log2(7 / 8 * 2.0**-9 / error)
    assert rounds >= 1  # else nothing was refused on the way


def test_polynomials_and_squares_are_exact(rng: np.random.Generator) -> None:
    x = rng.uniform(-2, 3, (50, 4))
    f = lambda x: (x - 1) ** 2 + (2 * x) ** 5  # noqa: E731
    graph = calibrate(fold(trace(f, x[0])), [x])
    made_of, _ = approximate(graph, [x], 30.0)
    output = made_of[made_of.outputs[0]]
    got = every_value(made_of, [scaled(made_of["x"], x)])[output.name]
    got = got * output.attrs["radius"] + output.attrs["centre"]
    assert np.allclose(got, (x - 1) ** 2 + (2 * x) ** 5, rtol=1e-9, atol=1e-9 * np.abs(got).max())


def networks(rng: np.random.Generator) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """Functions of many kinds of arrays, as (function, shape)."""
    a, b = rng.normal(size=(20, 12)) / 4, rng.normal(size=(5, 20)) / 4
    yield (lambda x: b @ np.square(a @ x)), (12,)
    yield (lambda x: a @ x), (12,)
    yield (lambda x: (x @ a.T)[:, ::2].sum(axis=0) + 1), (3, 12)
    yield (lambda x: x * (a[:12] @ x) + np.square(x)), (12,)
    yield (lambda x: np.concatenate([x, x * x])[5:20]), (12,)
    yield (lambda x: np.stack([np.square(x[0]), x[1] * x[2]]).mean()), (3, 4)


@pytest.mark.parametrize("slots", [8, 32, 128])
def test_slots_compute_what_the_graph_computes(slots: int, rng: np.random.Generator) -> None:
    """Rotations and diagonals, over one ciphertext or several, and no number where none should
    be."""
    for f, shape in networks(rng):
        x = rng.uniform(-1, 1, (40, *shape))
        graph, _ = approximate(calibrate(fold(trace(f, x[0])), [x]), [x], 10.0)
        check_slots(graph, slots, x)


def check_slots(graph: Graph, slots: int, x: np.ndarray) -> Graph:
    lowered = lower(lay_out(graph, slots, WEIGHTS), WEIGHTS)
    inside = scaled(graph.inputs[0], x)
    values = every_value(graph, [inside])
    layout = lowered.inputs[0].attrs["layout"]
    found = every_slot(lowered, [packed(layout, inside.reshape(len(x), -1))])
    for node in lowered:
        layout = node.attrs["layout"]
        want = values[node.name].reshape(len(x), -1)
        if node.op in ("input", "transform") and not layout.partial:
            # Numbers and their copies, and nothing else.
            assert np.allclose(found[node.name], packed(layout, want), atol=1e-9), str(node)
            continue
        if node.op == "input":
            continue
        everything = found[node.name].reshape(len(x), -1)
        for start in layout.copies:
            assert np.allclose(everything[:, start + layout.addresses], want, atol=1e-9), str(node)
        if layout.partial:
            assert np.abs(everything).max() <= node.attrs["most"]
    return lowered


@pytest.mark.parametrize("slots", [16, 64, 512])
def test_sums_of_an_input_have_copies(slots: int, rng: np.random.Generator) -> None:
    """Sums along the rows of an input that is used once, which then meet every number of the
    row."""
    x = rng.uniform(-1, 1, (20, 3, 4))
    for f in (
        lambda v: np.broadcast_to(np.square(v.sum(axis=1, keepdims=True)), (3, 4)),
        lambda v: v.sum(axis=1, keepdims=True),
    ):
        graph, _ = approximate(calibrate(fold(trace(f, x[0])), [x]), [x], 10.0)
        check_slots(graph, slots, x)


def convolution(x: Node, rng: np.random.Generator, name: str, channels: int, stride: int) -> Node:
    attrs = {
        "weight": rng.normal(size=(channels, x.shape[0], 3, 3)) / 4,
        "bias": rng.normal(size=channels),
        "stride": (stride, stride),
        "padding": ((1, 1), (1, 1)),
        "dilation": (1, 1),
        "groups": 1,
    }
    return made(name, Convolution(**attrs), [x])


def residual_network(rng: np.random.Generator) -> Graph:
    """A residual block, a convolution with a stride, a mean and a dense layer, with squares in
    between."""
    x = made("x", Input(shape=(2, 8, 8)), [])
    a = convolution(x, rng, "a", 4, 1)
    b = made("b", Multiply(), [a, a])
    c = convolution(b, rng, "c", 4, 1)
    d = made("d", Combine(weights=(1.0, 0.5)), [c, b])
    e = convolution(d, rng, "e", 8, 2)
    f = made("f", Multiply(), [e, e])
    g = made("g", Sum(axes=(1, 2), factor=1 / 16, keepdims=False), [f])
    h = made("h", Dense(weight=rng.normal(size=(3, 8)), bias=None), [g])
    return Graph((x, a, b, c, d, e, f, g, h), ("h",))


@pytest.mark.parametrize("slots", [64, 256, 1024])
def test_images_lie_spread_after_a_stride(slots: int, rng: np.random.Generator) -> None:
    x = rng.uniform(-1, 1, (6, 2, 8, 8))
    graph, _ = approximate(calibrate(fold(residual_network(rng)), [x]), [x], 10.0)
    lowered = check_slots(graph, slots, x)
    if slots > 256:  # a matrix between dense arrays takes fewer diagonals there
        return
    strided = lowered["e"]
    assert strided.attrs["layout"].gap == 2
    blocks = len(strided.attrs["terms"][0].diagonals)
    # Nine places of the kernel for every distance between an input channel and an output channel.
    assert strided.attrs["terms"][0].count <= 9 * 8 * blocks


def test_addresses_are_those_of_the_formula() -> None:
    layout = Layout((8, 3, 4), 64, 64, 2, (6, 8))
    for c, y, x in np.ndindex(8, 3, 4):
        plane, inside = divmod(c, 4)
        want = (plane * 6 + y * 2 + inside // 2) * 8 + x * 2 + inside % 2
        assert layout.addresses[(c * 3 + y) * 4 + x] == want
    assert layout.ciphertexts == 2


def test_a_convolution_of_the_input_takes_one_diagonal_a_ciphertext(
    rng: np.random.Generator,
) -> None:
    x = rng.uniform(-1, 1, (5, 2, 8, 8))
    first = made("x", Input(shape=(2, 8, 8)), [])
    a = convolution(first, rng, "a", 4, 1)
    graph = Graph((first, a, made("b", Multiply(), [a, a])), ("b",))
    scaled_graph, _ = approximate(calibrate(fold(graph), [x]), [x], 10.0)
    lowered = check_slots(scaled_graph, 4096, x)
    assert isinstance(lowered["x"].attrs["layout"], Gathered)
    (term,) = lowered["a"].attrs["terms"]
    # 18 entries in a row, in 4,096 / 256 windows of two ciphertexts, whose sum takes four
    # rotations.
    assert (term.count, len(term.sums)) == (2, 4)
    few = check_slots(scaled_graph, 256, x)  # 18 ciphertexts would be too many
    assert not isinstance(few["x"].attrs["layout"], Gathered)


def test_copies_share_the_rows_of_a_matrix(rng: np.random.Generator) -> None:
    """Copies of 32 numbers compute a chunk of the 64 rows each, by as many diagonals as a chunk has
    rows, instead of by 32."""
    a, b = rng.normal(size=(64, 32)) / 4, rng.normal(size=(3, 64)) / 4
    x = rng.uniform(-1, 1, (9, 32))

    def compiled(f: Any) -> Graph:
        graph, _ = approximate(calibrate(fold(trace(f, x[0])), [x]), [x], 8.0)
        return check_slots(graph, 4096, x)

    squares = compiled(lambda v: b @ np.square(a @ np.square(v)))
    layout = squares["matmul"].attrs["layout"]
    assert isinstance(layout, Shared) and layout.partial and layout.chunk <= 2
    (term,) = squares["matmul"].attrs["terms"]
    assert (term.count, 2 ** len(term.sums)) == (layout.chunk, 32 // layout.chunk)
    # A function must not see what lies between the numbers, and neither must the client.
    for f in (lambda v: b @ np.tanh(a @ np.square(v)), lambda v: a @ np.square(v)):
        assert not any(n.attrs["layout"].partial for n in compiled(f))


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_slots_of_random_networks(data: st.DataObject) -> None:
    """Convolutions over one or two axes, strides, groups, pools, squares, sums of branches and
    dense layers, in any order."""
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    axes = draw(st.sampled_from([1, 2]))
    shape = (draw(st.integers(1, 4)), *(draw(st.integers(4, 8)) for _ in range(axes)))
    nodes = [made("x", Input(shape=shape), [])]
    for k in range(draw(st.integers(1, 5))):
        last, name = nodes[-1], f"n{k}"
        kinds = ["square", "dense"] + (["convolution", "pool"] if len(last.shape) > 1 else [])
        match draw(st.sampled_from(kinds)):
            case "square":
                nodes.append(made(name, Multiply(), [last, last]))
            case "dense":
                flat = made(f"{name}.flat", Reshape(shape=(last.size,)), [last])
                weight = rng.normal(size=(draw(st.integers(1, 20)), last.size)) / last.size**0.5
                nodes += [flat, made(name, Dense(weight=weight, bias=None), [flat])]
            case "convolution":
                groups = last.shape[0] if draw(st.booleans()) else 1
                out = groups * draw(st.integers(1, 3))
                kernel = (3,) * axes
                weight = rng.normal(size=(out, last.shape[0] // groups, *kernel)) / 3
                attrs = {"weight": weight, "bias": rng.normal(size=out), "groups": groups}
                attrs |= {"stride": (draw(st.integers(1, 2)),) * axes, "dilation": (1,) * axes}
                attrs |= {"padding": ((1, 1),) * axes}
                nodes.append(made(name, Convolution(**attrs), [last]))
            case "pool":
                attrs = {"kernel": (2,) * axes, "stride": (2,) * axes, "count_padding": True}
                attrs |= {"padding": ((0, 1),) * axes}
                nodes.append(made(name, AveragePool(**attrs), [last]))
        like = [n for n in nodes[:-1] if n.shape == nodes[-1].shape]
        if like and draw(st.booleans()):
            weights = {"weights": (1.0, 0.5)}
            nodes.append(made(f"{name}.sum", Combine(**weights), [nodes[-1], like[0]]))
    x = rng.uniform(-1, 1, (3, *shape))
    graph = fold(Graph(tuple(nodes), (nodes[-1].name,)))
    assert np.allclose(
        execute(graph, x)[0].ravel(), execute(Graph(tuple(nodes), (nodes[-1].name,)), x)[0].ravel()
    )
    scaled_graph, _ = approximate(calibrate(graph, [x]), [x], 8.0)
    check_slots(scaled_graph, draw(st.sampled_from([16, 64, 512, 2048])), x)
