"""Overlays: one diagonal in the place of several; and the diagonals of networks, counted."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from graph_nodes import scaled
from hypothesis import given, settings
from hypothesis import strategies as st
from slot_interpreter import WEIGHTS, check, convolution

import jali
from jali.compiler.cost.costs import counted
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.layouts import Layout
from jali.compiler.ir.linear_ops import Combine, Dense, Pad, Slice, Sum
from jali.compiler.ir.operation import Input
from jali.compiler.ir.traced_ops import Multiply, made
from jali.compiler.ir.windows import Convolution
from jali.compiler.layout.choose_layouts import lay_out
from jali.compiler.layout.execute_lowered import every_slot
from jali.compiler.layout.lower import lower
from jali.compiler.layout.overlay import joined, overlaid, price, sums_of
from jali.compiler.layout.terms import Term
from jali.compiler.passes.fold import fold
from jali.compiler.planning.node_costs import cost_of
from jali.compiler.runtime import interpreter


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_an_overlay_computes_what_the_diagonals_do(data: st.DataObject) -> None:
    """Any diagonals that repeat, times any numbers that do, with several examples in the slots."""
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    lanes, slots = draw(st.sampled_from([1, 2, 4])), 64
    period, of_source = (1 << draw(st.integers(2, 6)) for _ in range(2))
    whole = max(period, of_source)
    some = draw(st.lists(st.integers(0, of_source - 1), min_size=1, max_size=40, unique=True))
    vectors = {d: rng.normal(size=whole) for d in some}
    copies = slots // whole
    x = np.tile(rng.normal(size=(of_source, lanes)), (slots // of_source, 1)).ravel()
    want = sum(
        (np.tile(np.repeat(v, lanes), copies) * np.roll(x, -d * lanes) for d, v in vectors.items()),
        start=np.zeros(slots * lanes),
    )
    turns, left = overlaid({(0, 0): np.array(some)}, of_source, copies, WEIGHTS)
    assert len(turns) <= copies.bit_length() and len(left[0, 0]) <= len(some)
    if not turns:
        assert sorted(left[0, 0]) == sorted(some)
        return
    term = Term(None, turns=turns, target=Layout((1,), slots, whole))
    order = 4 * slots * lanes
    points = np.array([pow(5, s, order) for s in range(slots * lanes)])
    overlay = x.astype(complex)
    for turn, exponent in zip(turns, term.monomials(lanes), strict=True):
        unit = np.exp(2j * np.pi * (points * exponent % order) / order)
        overlay = overlay + unit * np.roll(overlay, -turn * lanes)
    y = np.zeros(slots * lanes, complex)
    for e, vector in joined(turns, left[0, 0], vectors, of_source, slots, lanes):
        y += vector * np.roll(overlay, -e * lanes)
    for step in sums_of(turns, slots):
        y = y + np.roll(y, -step * lanes)
    assert np.allclose(2 * y.real, want, atol=1e-9)


def test_turns_are_those_that_leave_the_fewest_diagonals() -> None:
    """The distances of a 3 x 3 convolution of 8 channels on 16 x 16 pixels, and sets in which
    nothing can be paired."""
    grid = [(c * 256 + y * 16 + x) % 2048 for c in range(8) for y in (-1, 0, 1) for x in (-1, 0, 1)]
    for copies, most in ((1, 36), (2, 18), (4, 9)):
        turns, left = overlaid({(0, 0): np.array(grid)}, 2048, copies, WEIGHTS)
        assert len(left[0, 0]) == most and 1 << len(turns) == 2 * copies
    assert overlaid({(0, 0): np.array([5])}, 64, 8, WEIGHTS) == ((), {(0, 0): np.array([5])})
    assert overlaid({(0, 0): np.array([0, 9])}, 64, 8, WEIGHTS)[0] == ()  # not worth it
    assert overlaid({}, 64, 8, WEIGHTS) == ((), {})
    assert (
        price([72], 0, WEIGHTS)
        > price([72], 1, WEIGHTS)
        > price([72], 2, WEIGHTS)
        > price([72], 4, WEIGHTS)
    )
    assert price([1], 8, WEIGHTS) == WEIGHTS.diagonal


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_random_convolutions(data: st.DataObject) -> None:
    """Of one and two axes, with strides, padding, dilation and groups, behind each other, in many
    sizes of ciphertexts."""
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    axes, per_group = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    sizes = tuple(draw(st.integers(4, 9)) for _ in range(axes))
    nodes = [made("x", Input(shape=(per_group * draw(st.integers(1, 2)), *sizes)), [])]
    for k in range(draw(st.integers(1, 3))):
        x = nodes[-1]
        groups = draw(st.sampled_from([g for g in (1, 2, 3, 4) if x.shape[0] % g == 0]))
        kernel = tuple(draw(st.integers(1, min(3, n))) for n in x.shape[1:])
        shape = (groups * draw(st.integers(1, 3)), x.shape[0] // groups, *kernel)
        reach = [2 if n >= 5 and draw(st.booleans()) else 1 for n in x.shape[1:]]
        attrs = {
            "weight": rng.normal(size=shape) / math.prod(shape[1:]),
            "bias": rng.normal(size=shape[0]) if draw(st.booleans()) else None,
            "stride": tuple(draw(st.integers(1, 2)) for _ in range(axes)),
            "padding": tuple(
                (draw(st.integers(0, 2)), draw(st.integers(0, 1))) for _ in range(axes)
            ),
            "dilation": tuple(reach),
            "groups": groups,
        }
        y = made(f"n{k}", Convolution(**attrs), [x])
        nodes += [y, made(f"n{k} square", Multiply(), [y, y])]
    graph = Graph(tuple(nodes), (nodes[-1].name,))
    lanes = draw(st.sampled_from([1, 2]))
    low = check(graph, draw(st.sampled_from([64, 512, 4096])), lanes, rng)
    packed_inputs = [
        rng.normal(size=(2, n.attrs["layout"].ciphertexts, n.attrs["layout"].slots))
        for n in low.inputs
    ]
    assert all(np.isrealobj(value) for value in every_slot(low, packed_inputs).values())


def residual(rng: np.random.Generator, width: int, size: int) -> Graph:
    """The convolutions of ResNet-20, with squares; shortcuts between stages take every second pixel
    and add channels of zeros."""
    nodes: list[Node] = []

    def add(node: Node) -> Node:
        nodes.append(node)
        return node

    def square(name: str, x: Node) -> Node:
        return add(made(name, Multiply(), [x, x]))

    x = add(made("x", Input(shape=(3, size, size)), []))
    x = square("s", add(convolution("stem", x, rng, width)))
    for k in range(9):
        channels, stride = width << k // 3, 2 if k in (3, 6) else 1
        y = square(f"{k}a square", add(convolution(f"{k}a", x, rng, channels, stride)))
        y = add(convolution(f"{k}b", y, rng, channels))
        if stride == 2:
            rest = {"start": (None,) * 3, "stop": (None,) * 3, "step": (1, 2, 2)}
            x = add(made(f"{k} part", Slice(**rest), [x]))
            widths = ((channels // 4, channels // 4), (0, 0), (0, 0))
            x = add(made(f"{k} padded", Pad(widths=widths), [x]))
        x = square(f"{k}", add(made(f"{k} sum", Combine(weights=(1.0, 1.0)), [y, x])))
    attrs = {"axes": (1, 2), "keepdims": False, "factor": 1 / np.prod(x.shape[1:])}
    x = add(made("mean", Sum(**attrs), [x]))
    add(made("scores", Dense(weight=rng.normal(size=(10, x.shape[0])), bias=None), [x]))
    return Graph(tuple(nodes), ("scores",))


def counts(low: Graph) -> dict[str, list[int]]:
    """The diagonals of every term of every transform."""
    return {n.name: [t.count for t in n.attrs["terms"]] for n in low if n.op == "transform"}


def test_diagonals_of_a_small_residual_network(rng: np.random.Generator) -> None:
    """4, 8 and 16 channels; 1,024 slots hold 4 copies of the first stage's arrays, 8 of the
    second's and 16 of the third's."""
    low = lower(lay_out(scaled(fold(residual(rng, 4, 8))), 1024, WEIGHTS), WEIGHTS)
    found = counts(low)
    # Of 36 distances between channels and pixels in the first stage, 98 in the second and 225 in
    # the third:
    assert found["0a"] == [9] and found["0 sum"] == [9, 0]
    # A turn that leaves 8 of 14 saves a fifth of a rotation, and is not worth its noise.
    assert found["4a"] == [14] and found["4 sum"] == [14, 0]
    assert found["7a"] == [16] and found["7 sum"] == [8, 0]
    assert sum(map(sum, found.values())) == 253


@pytest.mark.long
def test_diagonals_of_resnet_20(rng: np.random.Generator) -> None:
    """In 32,768 slots, of a ring of 65,536. Every diagonal was one of its own before overlays:
    4,535."""
    low = lower(lay_out(scaled(fold(residual(rng, 16, 32))), 1 << 15, WEIGHTS), WEIGHTS)
    found = counts(low)
    assert found["0a"] == [36] and found["0 sum"] == [36, 0]
    assert found["4a"] == [49] and found["7a"] == [60]
    assert sum(map(sum, found.values())) <= 900


@pytest.mark.parametrize("batch", [1, 4])
def test_encrypted_overlays(batch: int, rng: np.random.Generator) -> None:
    """Two convolutions, decrypted; from a file as well, and not from one whose keys have no
    conjugation."""
    a, b = rng.normal(size=(4, 2, 3, 3)) / 4, rng.normal(size=(2, 4, 3, 3)) / 5
    nodes = [made("x", Input(shape=(2, 6, 6)), [])]
    for k, weight in enumerate((a, b)):
        attrs = {"weight": weight, "bias": rng.normal(size=len(weight)), "dilation": (1, 1)}
        attrs |= {"groups": 1, "stride": (1, 1), "padding": ((1, 1), (1, 1))}
        nodes.append(made(f"c{k}", Convolution(**attrs), [nodes[-1]]))
        nodes.append(made(f"s{k}", Multiply(), [nodes[-1], nodes[-1]]))
    graph = Graph(tuple(nodes), (nodes[-1].name,))
    x = rng.uniform(-1, 1, (40, 2, 6, 6))
    program = jali.compile(graph, x[:1], calibration=x, precision_bits=12, batch=batch)
    turns = [
        len(node.attrs["terms"][0].turns)
        for node in program.stages["lower"]
        if "terms" in node.attrs
    ]
    assert max(turns) >= 3 and program.manifest.demand.conjugation >= 0
    client = program.client(threads=1)
    keys, request = client.evaluation_keys(), client.encrypt(x[:batch])
    server = program.server(keys, threads=1, device="cpu")
    reply = server(request)
    largest = np.abs(program.clear(x)).max()
    (port,) = program.manifest.outputs
    squares = []
    for first in range(0, len(x), 4):
        some = x[first : first + batch]
        off = client.decrypt(server(client.encrypt(some))) - program.clear(some)
        assert np.abs(off).max() <= 2.0**-12 * largest
        squares.append((off.reshape(batch, -1) / port.radius) ** 2)
    # The noise that is announced is that of the number with the most, of which few examples tell no
    # more than this.
    worst = np.sqrt(np.concatenate(squares).mean(axis=0).max())
    assert 0.3 < worst * 2 ** program.manifest.demand.noise_bits[0] < 2.0
    again = jali.nn.Program.from_bytes(program.to_bytes())
    assert again.server(keys, threads=1, device="cpu")(request).to_bytes() == reply.to_bytes()
    without = replace(program.manifest, demand=replace(program.manifest.demand, conjugation=-1))
    with pytest.raises(jali.VersionError):
        jali.nn.Program.from_bytes(replace(program, manifest=without).to_bytes())


def test_matrices_of_other_overlays_are_others(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server keeps one matrix for equal hashes, so that equal numbers under different overlays
    need different ones."""
    graph = scaled(fold(residual(rng, 4, 8)))

    def terms() -> list[Term]:
        low = lower(lay_out(graph, 1024, WEIGHTS), WEIGHTS)
        return [t for node in low if "terms" in node.attrs for t in node.attrs["terms"]]

    overlaid_, again = terms(), terms()
    monkeypatch.setattr(
        "jali.compiler.layout.terms.overlaid", lambda diagonals, *_: ((), diagonals)
    )
    plain = terms()
    assert any(t.turns for t in overlaid_) and not any(t.turns for t in plain)
    for a, b, c in zip(overlaid_, again, plain, strict=True):
        assert a.digests == b.digests
        if a.turns:
            assert not set(a.digests.values()) & set(c.digests.values())


def test_matrices_of_one_array_share_its_overlay(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the gates of a recurrent cell do. The result is the same to the bit, with fewer rotations;
    and another array has another overlay."""
    a, b, c = rng.normal(size=(3, 16, 16)) / 8

    def f(x: Any, y: Any) -> Any:
        x, y = np.square(x), np.square(y)
        return (a @ x) * (b @ x) * (c @ y)

    x, y = rng.uniform(-1, 1, (2, 40, 16))
    program = jali.compile(f, (x[0], y[0]), calibration=(x, y), precision_bits=10)
    nodes = [n for n in program.stages["lower"] if any(t.turns for t in n.attrs.get("terms", ()))]
    assert len(nodes) == 3
    turns = len(nodes[0].attrs["terms"][0].turns)
    assert [node.attrs["shared"] for node in nodes] == [(False,), (True,), (False,)]
    costs = counted(program.params)
    first, second = (cost_of(costs, node)[0] for node in nodes[:2])
    assert first - second == turns * costs.rotation[1]
    client = program.client(threads=1)
    keys, request = client.evaluation_keys(), client.encrypt(x[:1], y[:1])
    replies, rotations = [], []
    for shares in (True, False):
        if not shares:
            monkeypatch.setattr(interpreter._Overlay, "serves", lambda *_: False)
        server = program.server(keys, threads=1, device="cpu", capture=False)
        replies.append(server(request))
        rotations.append(server.evaluator.counters()["rotations"])
    assert replies[0].to_bytes() == replies[1].to_bytes()
    assert rotations[1] - rotations[0] == turns
    want = program.clear(x[:1], y[:1])
    assert (
        np.abs(client.decrypt(replies[0]) - want).max()
        <= 2.0**-10 * np.abs(program.clear(x, y)).max()
    )
