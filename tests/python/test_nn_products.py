"""Products of encrypted matrices, attention and encoders: every stage against NumPy, and encrypted
at small size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slot_interpreter import WEIGHTS
from test_nn_loops import result
from test_nn_program import assert_precise, encrypted

import jali
from jali import nn
from jali.compiler.driver import compiled
from jali.compiler.ir.execute import execute
from jali.compiler.ir.graph import Graph
from jali.compiler.ir.layouts import fitted, packed, unpacked
from jali.compiler.ir.sparse import SparseMap
from jali.compiler.ir.traced_ops import verify
from jali.compiler.layout.execute_lowered import every_slot
from jali.compiler.layout.product_factors import spread, windowed
from jali.compiler.layout.terms import Term
from jali.compiler.passes.approximate import approximated, scaled
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.fold import fold
from jali.compiler.pipeline import lowered
from jali.compiler.planning.parameters import Ring
from jali.nn import encoders, graph_file, trace


def check_stages(f: Any, shapes: list[tuple[int, ...]], rng: np.random.Generator) -> Graph:
    """Every stage computes what NumPy does, for lanes of several sizes. It returns the folded
    graph."""
    x = [rng.uniform(-1, 1, (5, *shape)) for shape in shapes]
    want = np.stack([f(*v) for v in zip(*x, strict=True)])
    graph = verify(trace(f, tuple(v[0] for v in x)))
    assert any(node.op == "matmul" for node in graph)
    folded = fold(graph)
    for same in (graph, graph_file.from_bytes(graph_file.to_bytes(graph)), folded):
        assert np.allclose(execute(same, *x)[0].reshape(want.shape), want, atol=1e-9)
    made = approximated(calibrate(folded, x), 1e-3)
    assert np.allclose(result(made, x).reshape(want.shape), want, atol=1e-9)
    for slots in (8, 64, 256):
        low = lowered(made, slots, WEIGHTS)["levels"]
        inside = [
            packed(node.attrs["layout"], scaled(node, v).reshape(len(v), -1))
            for node, v in zip(low.inputs, x, strict=True)
        ]
        output = low[low.outputs[0]]
        slotwise = every_slot(low, inside)[output.name]
        got = unpacked(output.attrs["layout"], slotwise)
        got = got * output.attrs["radius"] + output.attrs["centre"]
        assert np.allclose(got.reshape(want.shape), want, atol=1e-9)
        if (
            output.op == "products"
        ):  # every copy is the product, and nothing lies between the numbers
            assert np.allclose(
                slotwise,
                packed(output.attrs["layout"], unpacked(output.attrs["layout"], slotwise)),
                atol=1e-9,
            )
    return folded


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_products_of_matrices(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    outer = tuple(data.draw(st.lists(st.integers(1, 3), max_size=2)))
    n, m = (data.draw(st.integers(2, 6)) for _ in range(2))
    k = data.draw(st.integers(1, 6))
    check_stages(np.matmul, [(*outer, n, k), (*outer, k, m)], rng)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_products_between_moves(data: st.DataObject) -> None:
    """Heads that are cut out of matrices, on either side, transposed or not, and joined again."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    heads, size, tokens = (data.draw(st.integers(1, n)) for n in (3, 4, 5))
    size, tokens = size + 1, tokens + 1
    w = rng.normal(size=(2, heads * size, heads * size))
    late, back = data.draw(st.booleans()), data.draw(st.booleans())

    def f(x: Any) -> Any:
        q = (w[0] @ x).reshape(heads, size, tokens)
        if late:
            k = (w[1] @ x + 0.1).T.reshape(tokens, heads, size).transpose(1, 0, 2)
        else:
            k = (w[1] @ x * 0.5).reshape(heads, size, tokens).transpose(0, 2, 1)
        y = np.matmul(k, q)
        if back:
            y = y.transpose(1, 0, 2).reshape(tokens, heads * tokens)
            y = rng_free @ y
        return y

    rng_free = rng.normal(size=(3, tokens))
    check_stages(f, [(heads * size, tokens)], rng)


def test_a_square_is_a_product_of_an_array_with_itself() -> None:
    rng = np.random.default_rng()
    check_stages(lambda x: np.matmul(x, x.T) + x, [(4, 4)], rng)


def test_copies_are_spread_by_rotations() -> None:
    """Column 5 of a matrix of 16 x 16, repeated along rows: one diagonal, and four rotations; and
    row 5, repeated along columns."""
    slots, shape = 256, (16, 16)
    x = np.random.default_rng().normal(size=(1, 256))
    layout = fitted(shape, slots)
    for copies in (np.repeat(np.arange(16) * 16 + 5, 16), np.tile(80 + np.arange(16), 16)):
        single = SparseMap.gather(copies, 256)
        found = spread(single, layout, layout, WEIGHTS)
        assert len(found.steps) == 4
        term = Term.copies(single, layout, layout, WEIGHTS)
        assert term.count == 1 and len(term.sums) == 4
        y = sum(v * np.roll(x, -d, axis=1) for _, vs in term.vectors(0) for d, v in vs.items())
        for step in term.sums:
            y = y + np.roll(y, -step, axis=1)
        assert np.array_equal(y[0], x[0, copies])
    # Three copies are no power of two.
    odd = SparseMap.gather(np.repeat(np.arange(5), 3), 15)
    assert not spread(odd, fitted((15,), 16), fitted((15,), 16), WEIGHTS).steps


def test_windows_share_the_work() -> None:
    layout, count = windowed(fitted((4, 4), 64))
    assert count == 4 and layout.period == 64
    assert np.array_equal(layout.addresses, np.arange(64))
    assert windowed(fitted((16, 16), 64)) == (fitted((16, 16), 64), 1)
    x = np.random.default_rng().normal(size=(2, 3, 4, 4))
    graph = trace(np.matmul, (x[0, 0], x[1, 0]))
    made = approximated(calibrate(fold(graph), list(x)), 1e-3)
    (node,) = [n for n in lowered(made, 64, WEIGHTS)["levels"] if n.op == "products"]
    assert node.attrs["sums"] == (16, 32) and len(node.attrs["terms"]) == 2  # one of each side


def layout_costs_of(width: int, hidden: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    found = {}
    for name, (m, n) in {
        **dict.fromkeys(("query", "key", "value", "mixed"), (width, width)),
        "inner": (hidden, width),
        "outer": (width, hidden),
    }.items():
        found[name] = 0.7 * rng.normal(size=(m, n)) / n**0.5
        found[f"{name}_bias"] = 0.1 * rng.normal(size=m)
    for name in ("norm1", "norm2"):
        found[name] = 1 + 0.1 * rng.normal(size=width)
        found[f"{name}_bias"] = 0.1 * rng.normal(size=width)
    return found


def test_an_encoder_layer_is_its_definition(rng: np.random.Generator) -> None:
    """Token by token and head by head, with the exact functions."""
    width, tokens, heads = 6, 5, 2
    w, x = layout_costs_of(width, 10, rng), rng.normal(size=(width, tokens))
    size = width // heads
    q, k, v = (w[n] @ x + w[f"{n}_bias"][:, None] for n in ("query", "key", "value"))
    mixed = np.zeros((width, tokens))
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        for i in range(tokens):
            e = [math.exp(q[part, i] @ k[part, j] / math.sqrt(size)) for j in range(tokens)]
            mixed[part, i] = sum(e[j] / sum(e) * v[part, j] for j in range(tokens))

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        columns = [(c - c.mean()) / math.sqrt(c.var() + 1e-5) for c in x.T]
        return np.stack(columns, axis=1) * w[name][:, None] + w[f"{name}_bias"][:, None]

    y = norm(x + w["mixed"] @ mixed + w["mixed_bias"][:, None], "norm1")
    z = w["inner"] @ y + w["inner_bias"][:, None]
    g = np.array([[t * (1 + math.erf(t / math.sqrt(2))) / 2 for t in row] for row in z])
    want = norm(y + w["outer"] @ g + w["outer_bias"][:, None], "norm2")
    assert np.allclose(encoders.encoder_layer(x, w, heads), want, atol=1e-12)


def test_attention_encrypted(rng: np.random.Generator) -> None:
    """Two products of matrices, with shares that are squares in the place of a softmax; four
    sentences in a ciphertext."""
    w, x = rng.normal(size=(3, 8, 8)) / 3, rng.uniform(-1, 1, (100, 8, 8))

    def f(x: Any) -> Any:
        q, k, v = ((m @ x).reshape(2, 4, 8) for m in w)
        return np.matmul(v, np.square(np.matmul(k.transpose(0, 2, 1), q)))

    program = jali.compile(f, x[0], calibration=x, precision_bits=6, batch=4)
    assert sum(n.op == "products" for n in program.stages["fold"]) == 2
    assert_precise(program, encrypted(program, x[:6]), np.stack([f(v) for v in x[:6]]))


def test_an_encoder_encrypted(rng: np.random.Generator) -> None:
    """A layer with bootstraps, on a small ring that is not secure; and the program that its bytes
    make."""
    w, head = layout_costs_of(8, 16, rng), rng.normal(size=(1, 8))
    ones, zeros = np.ones(8), np.zeros(8)
    x = np.stack([encoders.layer_norm(v, ones, zeros) for v in rng.normal(size=(200, 8, 8))])

    def f(x: Any) -> Any:
        return head @ encoders.encoder_layer(x, w, 2).mean(axis=1)

    program = compiled(
        trace(f, x[0]), [x], precision_bits=5, lanes=1, memory=4 << 30, insecure_ring=Ring(10, 10)
    )
    assert any(node.op == "bootstrap" for node in program.stages["levels"])
    again = nn.Program.from_bytes(program.to_bytes(), security=0)
    client = program.client(threads=1)
    server = again.server(client.evaluation_keys(), threads=1, device="cpu")
    assert_precise(program, client.decrypt(server(client.encrypt(x[:1]))), f(x[0])[None])


def test_products_that_do_not_fit_are_refused() -> None:
    with pytest.raises(jali.InvalidArgument, match="product of arrays"):
        trace(np.matmul, (np.zeros((3, 4)), np.zeros((3, 4))))
