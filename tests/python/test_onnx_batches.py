"""Which axis of the arrays of a model in ONNX is the batch, inputs that are constants, and branches
and loops whose conditions are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_nn_onnx import agrees

import jali
from jali.compiler.ir.execute import execute
from jali.nn import trace

pytest.importorskip("onnx")


def model_of(
    nodes: list[Any],
    inputs: dict[str, tuple[Any, ...]],
    constants: dict[str, Any],
    outputs: tuple[str, ...] = ("y",),
    integers: tuple[str, ...] = (),
) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    kinds = {n: TensorProto.INT64 if n in integers else TensorProto.DOUBLE for n in inputs}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, kinds[n], s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.DOUBLE, None) for n in outputs],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


def evaluated(model: Any, **feeds: np.ndarray) -> np.ndarray:
    from onnx.reference import ReferenceEvaluator

    return np.asarray(ReferenceEvaluator(model).run(None, feeds)[0])


def cumulated(axis: int) -> Any:
    from onnx.helper import make_node

    return make_node("CumSum", ["x", "axis"], ["y"], name="sums"), {"axis": np.array(axis)}


def test_examples_that_depend_on_each_other_are_refused(rng: np.random.Generator) -> None:
    node, constants = cumulated(0)
    model = model_of([node], {"x": ("n", 4)}, constants)
    with pytest.raises(jali.Unsupported, match=r"^sums: it works along the axis of the batch"):
        trace(model, np.zeros((1, 4)))


def test_a_first_axis_that_is_no_batch_belongs_to_the_example(rng: np.random.Generator) -> None:
    node, constants = cumulated(0)
    x = rng.normal(size=(3, 4))
    model = model_of([node], {"x": (3, 4)}, constants)
    graph = trace(model, x)
    assert graph.inputs[0].shape == (3, 4)
    assert np.allclose(execute(graph, x)[0][0], np.cumsum(x, 0))
    agrees(model_of([cumulated(1)[0]], {"x": (3, 4)}, cumulated(1)[1]), x)  # each row for itself
    assert trace(model_of([cumulated(1)[0]], {"x": (3, 4)}, cumulated(1)[1]), x).inputs[
        0
    ].shape == (4,)


@pytest.mark.parametrize("shape", [(), (5,)])
def test_arrays_without_a_batch(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    from onnx.helper import make_node

    x = rng.normal(size=shape)
    model = model_of([make_node("Sin", ["x"], ["y"])], {"x": shape}, {})
    graph = trace(model, x)
    assert graph.inputs[0].shape == shape
    assert np.allclose(execute(graph, x[None])[0], np.sin(x))


def test_a_model_for_one_example_alone_is_taken_for_each(rng: np.random.Generator) -> None:
    """It was exported for a batch of one, and says so in a reshape."""
    from onnx.helper import make_node

    nodes = [make_node("Reshape", ["x", "shape"], ["y"])]
    constants = {"shape": np.array([1, 2, -1])}
    x = rng.normal(size=(3, 6))
    for first in (1, "n"):
        graph = trace(model_of(nodes, {"x": (first, 6)}, constants), x[:1])
        assert np.allclose(execute(graph, x)[0], x.reshape(3, 2, 3))


def test_a_batch_may_be_the_axis_of_a_constant_by_chance() -> None:
    """With three examples, the rows of the constant meet the examples."""
    from onnx.helper import make_node

    model = model_of(
        [make_node("Add", ["x", "rows"], ["y"], name="sum")],
        {"x": ("n", 4)},
        {"rows": np.ones((3, 4))},
    )
    with pytest.raises(jali.Unsupported, match=r"^sum: it works along the axis of the batch"):
        trace(model, np.zeros((1, 4)))


@pytest.mark.parametrize(
    ("start", "end"), [(0, 3), (-3, 2**62), (0, 50)], ids=["first", "last", "many"]
)
def test_slices_of_the_batch_are_seen(start: int, end: int, rng: np.random.Generator) -> None:
    """They keep all of one and of two examples, and not of more."""
    from onnx.helper import make_node

    node = make_node("Slice", ["x", "start", "end"], ["y"], name="cut")
    constants = {"start": np.array([start]), "end": np.array([end])}
    with pytest.raises(jali.Unsupported, match=r"^cut: a slice .* leave out examples"):
        trace(model_of([node], {"x": ("n", 4)}, constants), np.zeros((1, 4)))
    x = rng.normal(size=(60, 4))
    model = model_of([node], {"x": (60, 4)}, constants)
    assert np.allclose(execute(trace(model, x), x)[0][0], x[start:end])


def test_masks_along_the_batch_are_seen(rng: np.random.Generator) -> None:
    """Of which two examples see nothing."""
    from onnx.helper import make_node

    nodes = [make_node("Trilu", ["x", "k"], ["y"], name="mask")]
    constants = {"k": np.array(-5)}
    with pytest.raises(jali.Unsupported, match=r"^mask: it works along the axis of the batch"):
        trace(model_of(nodes, {"x": ("n", 4)}, constants), np.zeros((1, 4)))


def test_inputs_of_other_batches_are_taken_as_they_are(rng: np.random.Generator) -> None:
    """As a state (layers, batch, units) beside (batch, features)."""
    from onnx.helper import make_node

    nodes = [
        make_node("MatMul", ["x", "w"], ["a"]),
        make_node("Add", ["a", "state"], ["y"]),
    ]
    model = model_of(nodes, {"x": (1, 3), "state": (2, 1, 4)}, {"w": rng.normal(size=(3, 4))})
    x, state = rng.normal(size=(1, 3)), rng.normal(size=(2, 1, 4))
    graph = trace(model, (x, state))
    assert [node.shape for node in graph.inputs] == [(3,), (2, 1, 4)]
    assert np.allclose(execute(graph, x, state)[0][0], evaluated(model, x=x, state=state))


def rated() -> Any:
    """A model whose branch depends on a scalar input."""
    from onnx import TensorProto, helper
    from onnx.helper import make_node

    ends = [helper.make_tensor_value_info("z", TensorProto.DOUBLE, None)]
    branches = [
        helper.make_graph([make_node("Mul", ["x", name], ["z"])], name, [], ends)
        for name in ("two", "three")
    ]
    nodes = [
        make_node("Equal", ["sr", "rate"], ["same"]),
        make_node(
            "If", ["same"], ["y"], name="branch", then_branch=branches[0], else_branch=branches[1]
        ),
    ]
    constants = {"rate": np.array(16000), "two": np.array(2.0), "three": np.array(3.0)}
    return model_of(nodes, {"x": ("n", 4), "sr": ()}, constants, integers=("sr",))


@pytest.mark.parametrize(("rate", "factor"), [(16000, 2), (8000, 3)])
def test_inputs_as_constants(rate: int, factor: int, rng: np.random.Generator) -> None:
    x = rng.uniform(-1, 1, (20, 4))
    graph = trace(rated(), x, constants={"sr": rate})
    assert [node.name for node in graph.inputs] == ["x"]
    assert np.allclose(execute(graph, x)[0], factor * x)
    program = jali.compile(rated(), x[:1], calibration=x, constants={"sr": rate})
    assert np.allclose(program.clear(x), factor * x)


@pytest.mark.parametrize(
    ("constants", "says"),
    [
        ({"rate": 1}, "no input 'rate' for constants=: it has x, sr"),
        ({"sr": "fast"}, "constants= has for sr 'fast', which is no array of numbers"),
        ({"sr": np.zeros((2, 2))}, r"sr of the model has 0 axes, and constants= has .* \(2, 2\)"),
        (["sr"], "constants= is a dict of values by the names of inputs"),
        (None, "the model takes 2 arrays, and was given 1"),
    ],
)
def test_constants_that_do_not_fit(constants: Any, says: str) -> None:
    with pytest.raises(jali.InvalidArgument, match=says):
        trace(rated(), np.zeros((1, 4)), constants=constants)


def test_constants_are_for_onnx() -> None:
    for take in (trace, jali.compile):
        with pytest.raises(jali.InvalidArgument, match="constants= is for models in ONNX"):
            take(lambda x: x, np.zeros(3), constants={"sr": 1})


def test_a_condition_that_is_encrypted_is_refused() -> None:
    with pytest.raises(jali.Unsupported, match="Equal cannot be compiled"):
        trace(rated(), (np.zeros((1, 4)), np.zeros(())))


def test_loops_whose_count_is_known(rng: np.random.Generator) -> None:
    from onnx import TensorProto, helper
    from onnx.helper import make_node

    real = lambda n: helper.make_tensor_value_info(n, TensorProto.DOUBLE, None)  # noqa: E731
    body = helper.make_graph(
        [
            make_node("Mul", ["state", "half"], ["half_state"]),
            make_node("Add", ["half_state", "x"], ["next"]),
            make_node("Identity", ["goes"], ["goes_on"]),
            make_node("Neg", ["next"], ["shown"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("step", TensorProto.INT64, []),
            helper.make_tensor_value_info("goes", TensorProto.BOOL, []),
            real("state"),
        ],
        [
            helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
            real("next"),
            real("shown"),
        ],
    )
    nodes = [make_node("Loop", ["count", "", "x"], ["y", "all"], body=body)]
    constants = {"count": np.array(3), "half": np.array(0.5)}
    model = model_of(nodes, {"x": ("n", 4)}, constants, ("y", "all"))
    x = rng.normal(size=(2, 4))
    got, shown = execute(trace(model, x), x)
    want, steps = x, []
    for _ in range(3):
        want = 0.5 * want + x
        steps.append(-want)
    assert np.allclose(got, want)
    assert np.allclose(shown, np.stack(steps, 1))  # the batch in front


def test_an_output_that_is_constant_stays_one(rng: np.random.Generator) -> None:
    from onnx.helper import make_node

    nodes = [make_node("Neg", ["x"], ["y"]), make_node("Add", ["c", "c"], ["z"])]
    x = rng.normal(size=(3, 4))
    model = model_of(nodes, {"x": ("n", 4)}, {"c": np.arange(2.0)}, ("y", "z"))
    y, z = execute(trace(model, x), x)
    assert np.allclose(y, -x)
    assert np.allclose(z, np.broadcast_to(2 * np.arange(2.0), (3, 2)))
