"""Models in ONNX that are cut, with inputs that are given as constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jali
from jali.compiler.frontends.cut_models import cut_model
from jali.compiler.ir.execute import execute

pytest.importorskip("onnx")

from test_nn_client_side import LENGTH, LONG, WIDTH, model_of, table, words


def test_a_model_is_cut_for_the_values_of_its_constants(rng: np.random.Generator) -> None:
    """They are known at both ends: the branch is taken whose condition they decide, with a table
    and an end of its own."""
    from onnx import helper, numpy_helper

    def branch(name: str, places: int) -> Any:
        nodes = [
            helper.make_node("Gather", ["table", "words"], ["looked_up"]),
            helper.make_node("Flatten", ["looked_up"], ["flat"]),
            helper.make_node("MatMul", ["flat", "w"], ["h"]),
            helper.make_node("Mul", ["h", "scale"], ["s"]),
            helper.make_node("TopK", ["s", "k"], ["numbers", "places"]),
        ]
        known = {"table": table(rng), "k": np.array([places])}
        tensors = [numpy_helper.from_array(v, k) for k, v in known.items()]
        ends = [helper.make_tensor_value_info(n, 1, None) for n in ("numbers", "places")]
        return helper.make_graph(nodes, name, [], ends, tensors)

    branches = {"then_branch": branch("more", 3), "else_branch": branch("less", 2)}
    model = model_of(
        [
            ("Greater", ["scale", "one"], ["b"]),
            ("If", ["b"], ["y", "z"], branches),
        ],
        {"w": rng.normal(size=(LENGTH * WIDTH, 5)), "one": np.array([1.0])},
        {"words": LONG, "scale": (np.float64, ())},
        ("y", "z"),
    )
    x = words(rng)
    for scale, count in ((2.5, 3), (0.5, 2)):
        found = cut_model(model, x[:1], {"scale": scale})
        assert found is not None
        graph, parts, _ = found
        assert [node.op for node in graph if node.op != "input"] == ["dense", "scale"]
        assert parts.before is not None and parts.before.names == ("gather", "reshape")
        got = parts.results(execute(graph, *parts.sent([x])[0]))
        want = expected_with(model, x, scale=np.array([scale]))
        assert [y.shape for y in got] == [(5, count)] * 2
        assert np.allclose(got[0], want[0]) and np.array_equal(got[1], want[1])


def test_branches_with_equal_names_are_not_mixed_up(rng: np.random.Generator) -> None:
    """Two operations If, all of whose branches give their values the same names, and so do all
    branches inside of these."""
    from onnx import helper, numpy_helper

    def graph_of(nodes: list[Any], end: str, name: str, factor: float) -> Any:
        ends = [helper.make_tensor_value_info(end, 1, None)]
        tensor = numpy_helper.from_array(np.array([factor]), name)
        return helper.make_graph(nodes, "branch", [], ends, [tensor])

    def inner(factor: float) -> Any:
        """t + factor h"""
        nodes = [
            helper.make_node("Mul", ["h", "own"], ["scaled"]),
            helper.make_node("Add", ["t", "scaled"], ["inner end"]),
        ]
        return graph_of(nodes, "inner end", "own", factor)

    def branch(factor: float) -> Any:
        """factor h, and what the inner branch makes of it."""
        bodies = {"then_branch": inner(3.0), "else_branch": inner(7.0)}
        nodes = [
            helper.make_node("Mul", ["h", "factor"], ["t"]),
            helper.make_node("If", ["b"], ["end"], **bodies),
        ]
        return graph_of(nodes, "end", "factor", factor)

    nodes: list[tuple[Any, ...]] = [
        ("Greater", ["scale", "one"], ["b"]),
        ("Not", ["b"], ["c"]),
        ("MatMul", ["x", "w"], ["h"]),
    ]
    for condition, result in (("b", "p"), ("c", "q")):
        bodies = {"then_branch": branch(2.0), "else_branch": branch(5.0)}
        nodes.append(("If", [condition], [result], bodies))
    nodes.append(("Sub", ["p", "q"], ["d"]))
    nodes.append(("Softmax", ["d"], ["y"]))
    constants = {"w": rng.normal(size=(6, 4)), "one": np.array([1.0])}
    model = model_of(nodes, constants, {"x": (np.float64, (6,)), "scale": (np.float64, ())})
    x = rng.normal(size=(5, 6))
    for scale in (2.0, 0.5):
        found = cut_model(model, x[:1], {"scale": scale})
        assert found is not None and found[1].after is not None
        graph, parts, _ = found
        (got,) = parts.results(execute(graph, x))
        (want,) = expected_with(model, x, scale=np.array([scale]))
        assert np.allclose(got, want)


def expected_with(model: Any, given: np.ndarray, **constants: np.ndarray) -> list[np.ndarray]:
    from onnx.reference import ReferenceEvaluator

    name = model.graph.input[0].name
    found = ReferenceEvaluator(model).run(None, {name: given, **constants})
    return [np.asarray(x) for x in found]


def test_a_program_with_constants_and_parts(rng: np.random.Generator) -> None:
    """Encrypted; the constants meet what is encrypted, and what the client computes afterwards."""
    w = rng.normal(size=(6, 4))
    model = model_of(
        [
            ("MatMul", ["x", "w"], ["h"]),
            ("Mul", ["h", "scale"], ["s"]),
            ("Softmax", ["s"], ["p"]),
            ("Greater", ["p", "least"], ["y"]),
        ],
        {"w": w},
        {"x": (np.float64, (6,)), "scale": (np.float64, ()), "least": (np.float64, (4,))},
    )
    x, known = rng.uniform(-1, 1, (30, 6)), {"scale": -2.0, "least": [[0.1, 0.2, 0.3, 0.4]]}
    program = jali.compile(model, x[:1], calibration=x, constants=known)
    assert "client, after decrypting: softmax, less" in program.explain("program")
    client = program.client()
    got = client.decrypt(program.server(client.evaluation_keys())(client.encrypt(x[0])))
    scores = x[0] @ w * -2.0
    shares = np.exp(scores) / np.exp(scores).sum()
    assert np.array_equal(got, shares > known["least"][0])
