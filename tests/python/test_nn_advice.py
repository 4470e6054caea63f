"""What refusals of compiled models and of CKKS arrays advise is code, and the code gives what was
asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from array_world import small

import jali
from jali import ckks
from jali.compiler.frontends import numpy_refusals

X = np.arange(12.0).reshape(3, 4)  # of a batch of one
IMAGE = np.arange(32.0).reshape(1, 2, 4, 4) / 10


def linear(function: Callable[[Any], Any], shape: tuple[int, ...]) -> Any:
    """The matrix M of the sentence: row i has what the function gives for an example that is 1 at
    its number i."""
    units = np.eye(int(np.prod(shape))).reshape(-1, 1, *shape)
    return np.stack([np.asarray(function(unit)).reshape(-1) for unit in units])


def onnx_result(op: str, x: Any, constants: list[Any], attrs: dict[str, Any]) -> Any:  # fmt: skip
    from onnx import TensorProto, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    names = ["x", *(f"c{k}" if c is not None else "" for k, c in enumerate(constants))]
    node = helper.make_node(op, names, ["y"], **attrs)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)],
        [
            numpy_helper.from_array(np.asarray(c), f"c{k}")
            for k, c in enumerate(constants)
            if c is not None
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    return ReferenceEvaluator(model).run(None, {"x": x})[0]


def test_what_is_linear_in_onnx_is_a_product_with_its_matrix() -> None:
    """What is said of arrays that are too large gives the same for one that is not."""
    pytest.importorskip("onnx")
    from onnx import helper
    from test_nn_onnx import agrees, model_of

    sizes = [np.array([4, 4]), np.array([1, 1])]
    columns = helper.make_node("Col2Im", ["x", "s", "b"], ["y"])
    large = model_of([columns], {"s": np.array([70, 70]), "b": np.array([1, 1])}, {"x": (1, 4900)})
    with pytest.raises(jali.Unsupported) as refused:
        jali.nn.trace(large, np.zeros((1, 1, 4900)))
    assert "Reshape(MatMul(Flatten(x), M), shape)" in str(refused.value)
    x = IMAGE.reshape(1, 2, 16)
    wanted = onnx_result("Col2Im", x, sizes, {})
    matrix = linear(lambda v: onnx_result("Col2Im", v, sizes, {}), x.shape[1:])
    nodes = [
        helper.make_node("Flatten", ["x"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["p"]),
        helper.make_node("Reshape", ["p", "s"], ["y"]),
    ]
    shape = np.array([-1, *wanted.shape[1:]])
    agrees(model_of(nodes, {"m": matrix, "s": shape}, {"x": x.shape[1:]}), x)
    assert np.allclose((x.reshape(1, -1) @ matrix).reshape(wanted.shape), wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "function", "code", "example"),
    [
        ("diagonal", np.diagonal, "(x * numpy.eye(n)).sum(axis=1)", np.arange(9.0).reshape(3, 3)),
        ("trace", np.trace, "(x * numpy.eye(n)).sum()", np.arange(9.0).reshape(3, 3)),
        ("diag", np.diag, "numpy.reshape(x, (-1, 1)) * numpy.eye(n)", np.arange(3.0)),
        ("diag", np.diag, "(x * numpy.eye(n)).sum(axis=1)", np.arange(9.0).reshape(3, 3)),
    ],
)
def test_diagonals_in_functions_that_are_compiled(
    name: str, function: Any, code: str, example: Any
) -> None:
    assert code in (numpy_refusals.replacement(name) or "")
    with pytest.raises(jali.Unsupported) as refused:
        jali.nn.trace(function, example)
    assert code in str(refused.value)

    def written(x: Any) -> Any:
        return eval(code, {"numpy": np, "n": 3, "x": x})

    assert np.allclose(written(example), function(example))
    jali.nn.trace(written, example)


@pytest.mark.parametrize(
    ("refused", "code"),
    [
        (lambda x, y: x**y, "numpy.exp(y * numpy.log(x))"),
        (lambda x, y: 2**x, "numpy.exp(numpy.log(base) * x)"),
        (lambda x, y: 2.0**x + y, "numpy.exp(numpy.log(base) * x)"),
        (lambda x, y: np.float64(2) ** x, "numpy.exp(numpy.log(base) * x)"),
        (lambda x, y: x ** np.array([2, 3]), "the exponent is a whole number"),
        (lambda x, y: x**2.5, "the exponent is a whole number"),
    ],
)
def test_powers_in_functions_that_are_compiled(refused: Any, code: str) -> None:
    """An encrypted exponent was answered by a sentence about comparisons."""
    x, y = np.array([0.5, 2.0]), np.array([3.0, 0.5])
    with pytest.raises(jali.Error) as error:
        jali.nn.trace(refused, (x, y))
    assert code in str(error.value)
    if code.startswith("numpy"):
        written = eval(code, {"numpy": np, "x": x, "y": y, "base": 2})
        assert np.allclose(written, x**y if "y" in code.replace("numpy", "") else 2**x)
        jali.nn.trace(lambda x, y: eval(code, {"numpy": np, "x": x, "y": y, "base": 2}), (x, y))


@pytest.mark.parametrize(
    ("refused", "code", "shape"),
    [
        (np.diagonal, "(x * np.eye(n)).sum(1)", (3, 3)),
        (lambda x: x.diagonal(), "(x * np.eye(n)).sum(1)", (3, 3)),
        (np.trace, "(x * np.eye(n)).sum()", (3, 3)),
        (np.diag, "(x * np.eye(n)).sum(1)", (3, 3)),
        (np.diag, "x[:, None] * np.eye(n)", (3,)),
    ],
)
def test_diagonals_of_encrypted_arrays(
    rng: np.random.Generator, refused: Any, code: str, shape: tuple[int, ...]
) -> None:
    s = small()
    values = rng.uniform(-1, 1, shape)
    x = s.bind(values)
    with pytest.raises(jali.Error) as error:
        refused(x)
    assert code in str(error.value)
    s.check(eval(code, {"np": np, "n": 3, "x": x}), refused(values))


@pytest.mark.parametrize(
    ("refused", "code", "shape"),
    [
        (lambda x: np.roll(x, 2), "np.concatenate([x[-k:], x[:-k]])", (5,)),
        (lambda x: np.roll(x, 2, axis=0), "np.concatenate([x[-k:], x[:-k]])", (3, 4)),
        (lambda x: np.roll(x, 2, axis=1), "np.concatenate([x[:, -k:], x[:, :-k]], axis=1)", (3, 4)),
        (np.cumsum, "np.tri(len(x)) @ x", (5,)),
        (np.prod, "x[0] * x[1]", (2,)),
        (lambda x: np.outer(x, x), "x[:, None] * y", (4,)),
        (lambda x: np.inner(x, x), "(x * y).sum()", (4,)),
        (lambda x: np.vdot(x, x), "(x * y).sum()", (4,)),
        (lambda x: np.average(x, 0, [1, 2, 3]), "(x * weights).sum(axis) / weights.sum()", (3,)),
    ],
)
def test_functions_of_numpy_on_encrypted_arrays(
    rng: np.random.Generator, refused: Any, code: str, shape: tuple[int, ...]
) -> None:
    s = small()
    values = rng.uniform(-1, 1, shape)
    x = s.bind(values)
    with pytest.raises(jali.Error) as error:
        refused(x)
    assert code in str(error.value)
    names = {"np": np, "k": 2, "x": x, "y": x, "axis": 0, "weights": np.array([1, 2, 3])}
    s.check(eval(code, names), refused(values))


def test_a_comparison_of_encrypted_numbers_says_what_gives_zero_and_one() -> None:
    s = small()
    x = s.bind(np.array([0.5, -0.5]))
    compared: list[Callable[[], Any]] = [
        lambda: x > 0,
        lambda: x <= 0.5,
        lambda: x < x,
        lambda: x >= x,
    ]
    for one in compared:
        with pytest.raises(
            jali.Unsupported, match=r"f = ckks\.functions\.step\(bound, gap=\.\.\.\)"
        ):
            one()
    params = ckks.Params.create(
        depth=12, scale_bits=40, log_n=10, security=0, name="insecure_compared"
    )
    client = ckks.Client(params, threads=1)
    server = ckks.Evaluator(params, client.evaluation_keys(), threads=1)
    values = np.array([0.75, -0.5, 0.25, -1.0])
    y = server.bind(client.encrypt(values, peak=1.0))
    f = ckks.functions.step(1.5, gap=0.125)
    assert np.allclose(client.decrypt(f(y)), values > 0, atol=0.01)
    half = server.bind(client.encrypt(values / 2, peak=0.5))
    assert np.allclose(client.decrypt(f(y - half)), values > values / 2, atol=0.01)


def test_more_room_is_found_in_one_step() -> None:
    """Sums on the lowest level grew out of integer_bits=10, and then out of each number of bits
    that its error advised."""

    def program(depth: int, **more: Any) -> None:
        params = ckks.Params.create(
            depth=depth, scale_bits=40, log_n=10, security=0, name="insecure_room", **more
        )
        client = ckks.Client(params, threads=1)
        server = ckks.Evaluator(params, client.evaluation_keys(), threads=1)
        x = server.bind(client.encrypt(np.full(4, 20.0), peak=20.0))
        y = x * x
        for _ in range(5):
            y = 4 * y + 4 * y
        assert np.allclose(client.decrypt(y), 400 * 8.0**5, rtol=1e-3)

    with pytest.raises(jali.RangeExceeded) as refused:
        program(1)
    depth = re.search(r"depth=(\d+), so that numbers 2\^40 times", str(refused.value))
    assert depth, str(refused.value)
    program(int(depth[1]))
