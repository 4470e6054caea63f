"""Comparisons of encrypted numbers, and choices by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_nn_program import encrypted

import jali
from jali import nn
from jali.compiler.frontends.layers import taken
from jali.compiler.ir.execute import execute
from jali.nn import Program

RNG = np.random.default_rng(451)
X = RNG.uniform(-1, 1, (80, 8))
MASK = np.arange(8) % 2 > 0

#: Functions of encrypted arrays that NumPy computes alike.
ALIKE: dict[str, Callable[[Any], Any]] = {
    "a slope below": lambda x: np.where(x > 0, x, 0.1 * x),
    "of two arrays": lambda x: np.where(x[:4] > x[4:], x[:4] * 2, 0.5 - x[4:]),
    "as a factor": lambda x: (x[:4] > x[4:]) * x[:4],
    "and": lambda x: ((x > 0.2) & (x < 0.5)) * 1.0,
    "or": lambda x: ((x > 0.2) | (x < -0.5)) * 1.0,
    "exclusive or": lambda x: ((x > 0) ^ (x > 0.3)) * 2.0,
    "not": lambda x: (~(x >= 0.3)).sum(),
    "a mean": lambda x: (x > 0.2).mean(),
    "or equal": lambda x: (x <= 0.2) * 1.0,
    "of constants": lambda x: np.where(x > 0.1, 1.0, -2.0),
    "numpy's names": lambda x: np.logical_or(x > 0.1, np.logical_not(x > -0.4)) * 1.0,
    "numpy's comparisons": lambda x: np.less(0.3, x) * np.greater_equal(x, 0.5) * 1.0,
    "an array first": lambda x: (np.full(8, 0.1) < x) * 1.0,
    "with a clear mask": lambda x: (MASK & (x > 0)) * 1.0,
    "a clear mask as a factor": lambda x: (x > 0) * MASK * 1.0,
    "a clear condition": lambda x: np.where(MASK, x, 0.0),
    "a clear choice": lambda x: np.where(MASK, 1.0, x),
    "moved": lambda x: (x > 0).reshape(2, 4).sum(axis=1),
    "the sign": np.sign,
}


@pytest.mark.parametrize("name", ALIKE)
def test_conditions_are_numpys(name: str) -> None:
    f = ALIKE[name]
    (got,) = execute(nn.trace(f, X[0]), X)
    assert np.allclose(got, np.stack([np.asarray(f(x), np.float64) for x in X]))


def test_the_clear_value_decides_exactly_at_equal_numbers() -> None:
    x = np.array([[0.5, -0.5, 0.0, 0.25]])
    for f in (
        lambda v: (v > 0.25) * 1.0,
        lambda v: (v >= 0.25) * 1.0,
        lambda v: (v < 0.25) * 1.0,
        lambda v: (v <= 0.25) * 1.0,
        np.sign,
    ):
        (got,) = execute(nn.trace(f, x[0]), x)
        assert np.array_equal(got[0], f(x[0]))


#: What NumPy's booleans do otherwise than numbers, or nobody can compute.
REFUSED: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: (x > 0) + (x > 0.3), r"a sum of conditions: write a \| b, or a \* 1\.0 \+ b"),
    (lambda x: (x > 0) - (x > 0.3), "a sum of conditions"),
    (lambda x: (x > 0).reshape(2, 4) + (x > 0.3).reshape(2, 4), "a sum of conditions"),
    (lambda x: x[:4][::-1] * 0 + (x > 0)[4:] + MASK[4:] + ((x > 0)[4:] + MASK[4:]), "a sum of"),
    (lambda x: (x > 0) * MASK + (x > 0.1), "a sum of conditions"),
    (lambda x: taken(x > 0, 0, [2, 1]) + taken(x > 0.1, 0, [0, 3]), "a sum of conditions"),
    (lambda x: (x > 0) > (x > 1), "write a & ~b"),
    (lambda x: ~x, "compare the numbers first, such as x > 0.5"),
    (lambda x: x & (x > 0), "compare the numbers first"),
    (lambda x: np.where(x, 1.0, 2.0), "compare the numbers first"),
    (lambda x: x == 1, r"numpy\.abs\(a - b\) < d"),
    (lambda x: 1.0 if x[0] > 0 else 2.0, r"choose by numpy\.where\(x > 0, a, b\)"),
    (lambda x: x[x > 0], "indexed by whole numbers"),
]


@pytest.mark.parametrize(("function", "says"), REFUSED)
def test_what_conditions_do_not_do(function: Callable[[Any], Any], says: str) -> None:
    with pytest.raises(jali.Error, match=says):
        nn.trace(function, X[0])


def test_what_refusals_of_sums_advise() -> None:
    a, b = (lambda x: x > 0), (lambda x: x > 0.3)
    either, count, only = (
        execute(nn.trace(f, X[0]), X)[0]
        for f in (
            lambda x: a(x) | b(x),
            lambda x: a(x) * 1.0 + b(x),
            lambda x: a(x) & ~b(x),
        )
    )
    assert np.array_equal(either, a(X) | b(X))
    assert np.array_equal(count, a(X) * 1.0 + b(X))
    assert np.array_equal(only, a(X) > b(X))


def far_from(threshold: float) -> np.ndarray:
    """Examples whose numbers are 0.1 or more from a threshold."""
    x = RNG.uniform(-1, 1, (80, 6))
    return np.where(np.abs(x - threshold) < 0.1, x + 0.2, x)


@pytest.fixture(scope="module")
def program() -> Program:
    return jali.compile(choice, FAR[0], calibration=FAR, precision_bits=5)


def choice(x: Any) -> Any:
    """A function that jumps."""
    return np.where(x > 0.25, 1.0 - x, x)


FAR = far_from(0.25)


def test_choices_on_encrypted_numbers(program: Program) -> None:
    client = program.client()
    server = program.server(client.evaluation_keys())
    for k in range(2):
        got = client.decrypt(server(client.encrypt(FAR[k])))
        assert np.abs(got - choice(FAR[k])).max() < 2**-5
    again = Program.from_bytes(program.to_bytes())
    assert np.allclose(again.clear(FAR), choice(FAR))


def test_the_gap_is_said_and_kept(program: Program) -> None:
    """Results are right beyond the gap; within it, they lie between both cases."""
    (line,) = program.summary().comparisons
    assert "compares numbers that differ by at least " in line
    gap = float(line.split("at least ")[1].split(":")[0])
    assert 0.0 < gap <= 0.1
    for x in (0.25 - 1.01 * gap, 0.25 + 1.01 * gap):
        assert np.abs(program.simulate(np.full((1, 6), x)) - choice(x)).max() < 2**-5
    with pytest.warns(UserWarning, match="off by more than was asked for"):
        between = program.simulate(np.full((1, 6), 0.25))
    assert 0.25 - 2**-5 <= between.min() <= between.max() <= 0.75 + 2**-5


def test_simulate_warns_of_what_was_not_told_apart(program: Program) -> None:
    with pytest.warns(UserWarning, match="compared with others that are nearly equal"):
        program.simulate(np.full((1, 6), 0.25))


def test_equal_numbers_in_the_calibration_are_refused() -> None:
    x = far_from(0.0)
    x[3, 2] = 0.0
    with pytest.raises(jali.InvalidArgument, match=r"such as x > 0\.01 instead of x > 0"):
        jali.compile(lambda v: np.where(v > 0, 1.0, -1.0), x[0], calibration=x, precision_bits=5)
    jali.compile(lambda v: np.where(v > 0.01, 1.0, -1.0), x[0], calibration=x, precision_bits=5)


def test_proven_ranges_prove_nothing_of_comparisons() -> None:
    options: dict[str, Any] = {"calibration": FAR, "precision_bits": 5, "ranges": "proven"}
    with pytest.raises(jali.InvalidArgument, match='leave out ranges="proven"'):
        jali.compile(choice, FAR[0], **options)


ONNX: list[tuple[str, dict[str, Any], Callable[[np.ndarray], np.ndarray]]] = [
    ("Greater", {}, lambda x: x > 0.25),
    ("GreaterOrEqual", {}, lambda x: x >= 0.25),
    ("Less", {}, lambda x: x < 0.25),
    ("LessOrEqual", {}, lambda x: x <= 0.25),
]


@pytest.mark.parametrize(("op", "attrs", "want"), ONNX, ids=[o[0] for o in ONNX])
def test_comparisons_of_onnx(
    op: str, attrs: dict[str, Any], want: Callable[[np.ndarray], np.ndarray]
) -> None:
    """Each beside Not, And, Or, Xor, Where and Cast, as exporters write them."""
    pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node(op, ["x", "quarter"], ["c"], **attrs),
        helper.make_node("Less", ["x", "half"], ["d"]),
        helper.make_node("Not", ["d"], ["e"]),
        helper.make_node("And", ["c", "d"], ["f"]),
        helper.make_node("Or", ["f", "e"], ["g"]),
        helper.make_node("Xor", ["g", "c"], ["h"]),
        helper.make_node("Cast", ["h"], ["i"], to=TensorProto.FLOAT),
        helper.make_node("Where", ["c", "x", "i"], ["y"]),
    ]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])]
    out = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    constants = [
        numpy_helper.from_array(np.float32(v), n) for n, v in (("quarter", 0.25), ("half", 0.5))
    ]
    graph = helper.make_graph(nodes, "g", given, out, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    x = X.astype(np.float32)
    (got,) = execute(nn.trace(model, x[:1]), x.astype(np.float64))
    c, d = want(x), x < 0.5
    assert np.allclose(got, np.where(c, x, ((c & d) | ~d) ^ c))


#: Functions of numbers from 0.1 to 1 whose comparisons always have the same result, and the levels
#: that are left of them.
DECIDED: dict[str, tuple[Callable[[Any], Any], int]] = {
    "always": (lambda x: np.where(x > -1, 2 * x, 3 * x), 1),
    "never": (lambda x: np.where(x > 5, 2 * x, 3 * x), 1),
    "a sign": (lambda x: np.sign(x + 1) * x, 0),
    "a negative sign": (lambda x: np.sign(x - 9) * x + 1, 1),
    "and": (lambda x: np.where((x > -1) & (x < 4), x, 0.0), 0),
    "in a shape": (lambda x: np.where((x > -1).reshape(2, 2), x.reshape(2, 2), 0.5).sum(axis=0), 1),
    "of two arrays": (lambda x: np.where(x[:2] + 3 > x[2:], x[:2], x[2:]), 1),
}


@pytest.mark.parametrize("case", DECIDED)
def test_comparisons_that_are_decided_cost_nothing(case: str, rng: np.random.Generator) -> None:
    function, depth = DECIDED[case]
    x = rng.uniform(0.1, 1, (60, 4))
    program = jali.compile(
        function, x[0], calibration=x, input_range=(0.1, 1.0), precision_bits=8, ranges="proven"
    )
    assert program.manifest.params.depth <= depth
    want = np.array([function(one) for one in x])
    assert np.abs(program.clear(x) - want).max() < 1e-12
    assert np.abs(encrypted(program, x[:2]) - want[:2]).max() <= 2.0**-8 * np.abs(want).max()
    again = Program.from_bytes(program.to_bytes())
    assert again.manifest.to_bytes() == program.manifest.to_bytes()


def test_comparisons_that_an_input_may_decide_either_way_stay(rng: np.random.Generator) -> None:
    """0.1 is one of the numbers that clients take, and no example is near it."""
    x = rng.uniform(0.5, 1, (60, 4))
    program = jali.compile(
        lambda v: np.where(v > 0.2, v, 0.0), x[0], calibration=x, input_range=(0.1, 1.0)
    )
    functions = {node.attrs.get("function") for node in program.stages["calibrate"]}
    assert "step" in functions
