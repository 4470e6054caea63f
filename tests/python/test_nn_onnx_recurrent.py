"""Recurrent layers of ONNX, compiled as loops: against ONNX's own evaluator, and against their
definition, one example after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slot_interpreter import WEIGHTS
from test_nn_onnx import model_of
from test_nn_program import assert_precise, encrypted

import jali
from jali import nn
from jali.compiler.ir.execute import execute
from jali.compiler.passes.approximate import approximated
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.fold import fold
from jali.compiler.pipeline import lowered
from jali.nn import Graph, graph_file, trace

pytest.importorskip("onnx")

COUNT = {"RNN": 1, "LSTM": 4, "GRU": 3}


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def weights(
    kind: str, units: int, features: int, directions: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    gates = COUNT[kind] * units
    return {
        "W": rng.normal(size=(directions, gates, features)) / features**0.5,
        "R": rng.normal(size=(directions, gates, units)) / units**0.5,
        "B": rng.normal(size=(directions, 2 * gates)),
    }


def steps_of(
    kind: str, x: np.ndarray, w: Any, r: Any, b: Any, h: Any, c: Any, after: bool
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """The definition in ONNX's documents, for a sequence (steps, features)."""
    n, states = r.shape[1], []
    wb, rb = b[: len(w)], b[len(w) :]
    for v in x:
        if kind == "RNN":
            h = np.tanh(w @ v + r @ h + wb + rb)
        elif kind == "LSTM":
            i, o, f, g = np.split(w @ v + r @ h + wb + rb, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        else:
            z, reset = (sigmoid(p) for p in np.split((w @ v + r @ h + wb + rb)[: 2 * n], 2))
            last = slice(2 * n, None)
            if after:
                new = np.tanh(w[last] @ v + wb[last] + reset * (r[last] @ h + rb[last]))
            else:
                new = np.tanh(w[last] @ v + wb[last] + r[last] @ (reset * h) + rb[last])
            h = (1 - z) * new + z * h
        states.append(h)
    return states, h, c


def defined(
    kind: str, x: np.ndarray, parts: dict[str, Any], reverses: list[bool], after: bool = False
) -> list[np.ndarray]:
    """Y (examples, steps, directions, units), Y_h and Y_c (examples, directions, units) for x
    (examples, steps, features)."""
    units = parts["R"].shape[2]
    rows = []
    for example in x:
        found = []
        for d, reverse in enumerate(reverses):
            order = slice(None, None, -1 if reverse else 1)
            first = [parts.get(k, np.zeros((len(reverses), units)))[d] for k in ("h", "c")]
            states, h, c = steps_of(
                kind,
                example[order],
                *(parts[k][d] for k in ("W", "R", "B")),
                *first,
                after,
            )
            found.append((np.stack(states)[order], h, c))
        rows.append([np.stack([f[k] for f in found], 1 if k == 0 else 0) for k in range(3)])
    return [np.stack([row[k] for row in rows]) for k in range(3)]


def agrees(graph: Graph, x: np.ndarray, wanted: list[np.ndarray]) -> Graph:
    """Traced, recorded and folded, the graph gives these numbers."""
    for same in (graph, graph_file.from_bytes(graph_file.to_bytes(graph)), fold(graph)):
        for got, want in zip(execute(same, x), wanted, strict=True):
            assert np.allclose(got.reshape(want.shape), want, rtol=0, atol=1e-9)
    return graph


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_layers_agree_with_onnx(data: st.DataObject) -> None:
    """As exporters write them: the batch is turned behind the steps, and back; the last state is an
    output, too."""
    from onnx.helper import make_node
    from onnx.reference import ReferenceEvaluator

    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["RNN", "LSTM", "GRU"]))
    units, features, steps, examples = (draw(st.integers(1, n)) for n in (5, 4, 6, 3))
    given_first = draw(st.booleans())
    constants = weights(kind, units, features, 1, rng)
    attrs = {"linear_before_reset": draw(st.integers(0, 1))} if kind == "GRU" else {}
    names, outputs = ["turned", "W", "R", "B"], ["Y", "last"]
    if not draw(st.booleans()):
        names[3] = ""
    if given_first:
        constants["first"] = rng.normal(size=(1, 1, units))
        names += ["", "first"]
    nodes = [
        make_node("Transpose", ["x"], ["turned"], perm=[1, 0, 2]),
        make_node(kind, names, outputs, hidden_size=units, name="cell", **attrs),
        make_node("Squeeze", ["Y", "one"], ["squeezed"]),
        make_node("Transpose", ["squeezed"], ["y"], perm=[1, 0, 2]),
    ]
    constants["one"] = np.array([1])
    x = rng.normal(size=(examples, steps, features))
    model = model_of(nodes, constants, {"x": (steps, features)}, ("y", "last"))
    singles = [ReferenceEvaluator(model).run(None, {"x": x[k : k + 1]}) for k in range(examples)]
    want = [np.concatenate([np.asarray(s[k]).reshape(1, -1) for s in singles]) for k in range(2)]
    graph = trace(model, x)
    assert [graph[name].shape for name in graph.outputs] == [(steps, units), (1, units)]
    for same in (graph, fold(graph)):
        for got, wanted in zip(execute(same, x), want, strict=True):
            assert np.allclose(got.reshape(examples, -1), wanted, rtol=0, atol=1e-9)
    # The first states are in the clear, so that the first step stands before the loop.
    assert any(node.op == "loop" for node in graph) == (steps > 2)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_layers_agree_with_their_definition(data: st.DataObject) -> None:
    """Both directions, the batch in front, and all outputs."""
    from onnx.helper import make_node

    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["RNN", "LSTM", "GRU"]))
    units, features, steps = (draw(st.integers(1, n)) for n in (4, 3, 5))
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    reverses = {"forward": [False], "reverse": [True]}.get(direction, [False, True])
    parts = weights(kind, units, features, len(reverses), rng)
    starts = {k: rng.normal(size=(len(reverses), units)) for k in "hc"[: 1 + (kind == "LSTM")]}
    after = draw(st.integers(0, 1))
    attrs = {"linear_before_reset": after} if kind == "GRU" else {}
    outputs = ["Y", "Y_h", "Y_c"][: 2 + (kind == "LSTM")]
    node = make_node(
        kind,
        ["x", "W", "R", "B", "", *starts],
        outputs,
        hidden_size=units,
        direction=direction,
        layout=1,
        **attrs,
    )
    constants = parts | {k: v[None] for k, v in starts.items()}
    x = rng.normal(size=(3, steps, features))
    model = model_of([node], constants, {"x": (steps, features)}, tuple(outputs))
    want = defined(kind, x, parts | starts, reverses, bool(after))
    agrees(trace(model, x), x, want[: len(outputs)])


def stacked(rng: np.random.Generator, steps: int = 4) -> tuple[Any, Any]:
    """Two layers, of which the second takes every state of the first, and what they give for
    (examples, steps, 3)."""
    from onnx.helper import make_node

    first, second = weights("GRU", 4, 3, 1, rng), weights("RNN", 3, 4, 1, rng)
    second = {k: 0.3 * v for k, v in second.items()}  # tanh does not saturate
    constants = {f"{k}1": v for k, v in first.items()} | {f"{k}2": v for k, v in second.items()}
    constants |= {"one": np.array([1]), "zero": np.array([0]), "end": np.array(-1)}
    nodes = [
        make_node("Transpose", ["x"], ["a"], perm=[1, 0, 2]),
        make_node("GRU", ["a", "W1", "R1", "B1"], ["b"], hidden_size=4, name="lower"),
        make_node("Squeeze", ["b", "one"], ["c"]),
        make_node("RNN", ["c", "W2", "R2", "B2"], ["d"], hidden_size=3, name="upper"),
        make_node("Gather", ["d", "end"], ["e"], axis=0),
        make_node("Squeeze", ["e", "zero"], ["y"]),
    ]

    def want(x: np.ndarray) -> np.ndarray:
        lower = defined("GRU", x, first, [False])[0][:, :, 0]
        return defined("RNN", lower, second, [False])[1][:, 0]

    return model_of(nodes, constants, {"x": (steps, 3)}), want


def test_layers_on_layers_are_two_loops(rng: np.random.Generator) -> None:
    model, want = stacked(rng, 6)
    x = rng.normal(size=(3, 6, 3))
    graph = agrees(trace(model, x), x, [want(x)])
    loops = [node for node in graph if node.op == "loop"]
    assert [node.name.split("_")[0] for node in loops] == ["lower", "upper"]
    assert [node.attrs["count"] for node in loops] == [5, 5]
    assert [node.attrs["collected"] for node in loops] == [1, 1]


def test_states_that_nothing_uses_cost_nothing(rng: np.random.Generator) -> None:
    """Only the last state is used: the plan is that of a loop which collects nothing."""
    from onnx.helper import make_node

    parts = weights("RNN", 3, 3, 1, rng)
    nodes = [make_node("RNN", ["x", "W", "R"], ["", "y"], hidden_size=3, layout=1)]
    x = rng.normal(size=(20, 4, 3)) / 2

    def bare(v: Any) -> Any:
        w, r = parts["W"][0], parts["R"][0]
        return nn.loop(lambda h, part: np.tanh(r @ h + part), np.zeros(3), v @ w.T)

    plans = []
    for graph in (trace(model_of(nodes, parts, {"x": (4, 3)}), x), trace(bare, x[0])):
        plans.append(
            lowered(approximated(calibrate(fold(graph), [x]), 1e-2), 64, WEIGHTS)["levels"]
        )
    for of in (
        lambda plan: max(n.attrs["level"] for n in plan),
        lambda plan: sum(n.op == "approximated" for n in plan),
        lambda plan: sum(not t.is_free for n in plan for t in n.attrs.get("terms", ())),
    ):
        assert of(plans[0]) == of(plans[1])


@pytest.mark.long
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_layers_encrypted(kind: str, rng: np.random.Generator) -> None:
    from onnx.helper import make_node

    parts = weights(kind, 3, 3, 1, rng)
    nodes = [make_node(kind, ["x", "W", "R", "B"], ["", "y"], hidden_size=3, layout=1)]
    x = rng.normal(size=(60, 2, 3)) / 2
    model = model_of(nodes, parts, {"x": (2, 3)})
    program = jali.compile(model, x[:1], calibration=x, precision_bits=4, batch=2)
    assert_precise(program, encrypted(program, x[:3]), defined(kind, x, parts, [False])[1][:3])


@pytest.mark.long
def test_stacked_layers_encrypted(rng: np.random.Generator) -> None:
    model, want = stacked(rng, 2)
    x = rng.normal(size=(60, 2, 3)) / 4
    program = jali.compile(model, x[:1], calibration=x, precision_bits=4, batch=2)
    assert np.allclose(program.clear(x), want(x), atol=1e-9)
    assert_precise(program, encrypted(program, x[:2]), want(x)[:2])


@pytest.mark.parametrize(
    ("kind", "attrs", "says"),
    [
        ("LSTM", {"clip": 3.0}, "cell: clip: .*train the model without it"),
        ("LSTM", {"input_forget": 1}, "cell: input_forget and peepholes"),
        ("RNN", {"activations": ["Softsign"]}, "cell: the activation softsign: .*tanh, sigmoid"),
        ("RNN", {"activations": ["Affine"], "activation_alpha": [0.1]}, "cell: activations with"),
    ],
)
def test_what_is_not_supported_is_refused(
    kind: str, attrs: dict[str, Any], says: str, rng: np.random.Generator
) -> None:
    from onnx.helper import make_node

    nodes = [make_node(kind, ["x", "W", "R"], ["y"], hidden_size=2, layout=1, name="cell", **attrs)]
    model = model_of(nodes, weights(kind, 2, 3, 1, rng), {"x": (4, 3)})
    with pytest.raises(jali.Unsupported, match=says):
        trace(model, np.zeros((1, 4, 3)))


def test_other_activations_and_lengths(rng: np.random.Generator) -> None:
    from onnx.helper import make_node

    parts = weights("RNN", 2, 3, 1, rng)
    x = rng.normal(size=(2, 4, 3))

    def model(lengths: Any) -> Any:
        inputs = ["x", "W", "R", "B", "lengths"]
        node = make_node("RNN", inputs, ["y"], hidden_size=2, layout=1, activations=["Relu"])
        return model_of([node], {**parts, "lengths": np.array(lengths)}, {"x": (4, 3)})

    h, want = np.zeros((2, 2)), []
    for t in range(4):
        bias = parts["B"][0].reshape(2, -1).sum(0)
        h = np.maximum(x[:, t] @ parts["W"][0].T + h @ parts["R"][0].T + bias, 0)
        want.append(h)
    agrees(trace(model([4]), x), x, [np.stack(want, 1)[:, :, None]])
    with pytest.raises(jali.Unsupported, match="sequences of different lengths"):
        trace(model([3]), x)


def test_a_batch_in_the_place_of_the_steps_is_refused(rng: np.random.Generator) -> None:
    from onnx.helper import make_node

    x = np.zeros((1, 4, 3))
    for layout, before in (
        (0, []),
        (1, [make_node("Transpose", ["x"], ["z"], perm=[1, 0, 2])]),
    ):
        last = before[-1].output[0] if before else "x"
        node = make_node("RNN", [last, "W", "R"], ["y"], hidden_size=2, layout=layout, name="cell")
        with pytest.raises(jali.Unsupported, match=r"^cell: it works along the axis of the batch"):
            trace(model_of([*before, node], weights("RNN", 2, 3, 1, rng), {"x": (4, 3)}), x)


def test_several_sequences_in_one_example(rng: np.random.Generator) -> None:
    """Without a batch: (steps, sequences, features), as the model says."""
    from onnx.helper import make_node

    parts = weights("GRU", 2, 3, 1, rng)
    node = make_node("GRU", ["x", "W", "R", "B"], ["y"], hidden_size=2)
    model = model_of([node], parts, {"x": (2, 3)})
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 4
    x = rng.normal(size=(4, 2, 3))
    graph = trace(model, x)
    assert graph.inputs[0].shape == (4, 2, 3)
    want = defined("GRU", x.transpose(1, 0, 2), parts, [False])[0]
    assert np.allclose(execute(graph, x)[0][0], want.transpose(1, 2, 0, 3))


TURNED: dict[str, Any] = {
    "elementwise": [("Tanh", ["t"], {}), ("Mul", ["t", "t"], {})],
    "constants": [("Add", ["t", "row"], {}), ("Mul", ["half", "t"], {}), ("Sub", ["t", "col"], {})],
    "product": [("MatMul", ["t", "matrix"], {})],
    "slice": [("Slice", ["t", "starts", "ends", "axes"], {})],
    "gather": [("Gather", ["t", "places"], {"axis": 0})],
    "concat": [("Concat", ["t", "t"], {"axis": 2}), ("Concat", ["t", "t"], {"axis": 0})],
    "axes": [("Unsqueeze", ["t", "first"], {}), ("Squeeze", ["t", "first"], {})],
    "sums": [("ReduceSum", ["t", "last"], {"keepdims": 0}), ("Unsqueeze", ["t", "last"], {})],
    "shape": [("Reshape", ["t", "copied"], {})],
    "softmax": [("Softmax", ["t"], {})],
}


@pytest.mark.parametrize("name", TURNED)
def test_operations_on_turned_arrays(name: str, rng: np.random.Generator) -> None:
    """Between two transposes, the batch is the second axis. The oracle is ONNX's evaluator."""
    from onnx.helper import make_node
    from onnx.reference import ReferenceEvaluator

    constants = {
        "row": rng.normal(size=(1, 3)),
        "col": rng.normal(size=(4, 1, 1)),
        "half": np.array(0.5),
        "matrix": rng.normal(size=(3, 3)),
        "starts": np.array([1, 0]),
        "ends": np.array([3, 2]),
        "axes": np.array([0, 2]),
        "places": np.array([2, 0]),
        "first": np.array([0]),
        "last": np.array([2]),
        "copied": np.array([0, 0, -1]),
    }
    nodes = [make_node("Transpose", ["x"], ["t0"], perm=[1, 0, 2])]
    for k, (op, inputs, attrs) in enumerate(TURNED[name]):
        inputs = [f"t{k}" if i == "t" else i for i in inputs]
        nodes.append(make_node(op, inputs, [f"t{k + 1}"], **attrs))
    nodes.append(make_node("Transpose", [f"t{len(nodes) - 1}"], ["y"], perm=[1, 0, 2]))
    model = model_of(nodes, constants, {"x": (4, 3)})
    x = rng.normal(size=(2, 4, 3))
    (want,) = ReferenceEvaluator(model).run(None, {"x": x})
    got = execute(trace(model, x), x)[0]
    assert got.shape == np.shape(want)
    assert np.allclose(got, want, atol=1e-9)


@pytest.mark.parametrize(
    ("op", "inputs"), [("Add", ["t", "x"]), ("Add", ["t", "many"]), ("ReduceSum", ["t", "one"])]
)
def test_operations_that_would_lose_the_batch_are_refused(op: str, inputs: list[str]) -> None:
    from onnx.helper import make_node

    constants = {"many": np.ones((4, 2, 3)), "one": np.array([1])}
    nodes = [
        make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        make_node(op, inputs, ["y"]),
    ]
    with pytest.raises(jali.Unsupported, match=r"^y: it works along the axis of the batch"):
        trace(model_of(nodes, constants, {"x": (4, 3)}), np.zeros((1, 4, 3)))
