"""What errors say to write in the place of what is not compiled: it is compiled here, and gives
what the operation would give."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jali
from jali._core import refusals
from jali.compiler.frontends.tracing import Traced

RNG = np.random.default_rng(17)
ABOVE = RNG.uniform(0.5, 1.5, (40, 6))
AROUND = ABOVE - 1
APART = np.where(RNG.random((40, 6)) < 0.5, 0.5, -0.5) * RNG.uniform(0.8, 1, (40, 6))
MATRICES = RNG.uniform(-1, 1, (40, 2, 3))
WEIGHTS = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 1.0])

#: What is written in sentences, beside x: a and b are its halves, or x twice if it is a matrix.
GIVEN: dict[str, Any] = {
    "numpy": np,
    "jali": jali,
    "n": 6,
    "k": 2,
    "low": -0.25,
    "high": 0.25,
    "w": WEIGHTS,
}

#: (what is refused, what its error says to write, examples)
SAME: dict[str, tuple[Callable[[Any], Any], str, np.ndarray]] = {
    "clip": (lambda x: np.clip(x, -0.25, 0.25), "numpy.minimum(numpy.maximum(x, low), high)", AROUND),
    "einsum": (lambda x: np.einsum("ij,kj->ik", x, x), "a @ b.T", MATRICES),
    "a row-wise einsum": (lambda x: np.einsum("ij,ij->i", x, x), "(a * b).sum(axis=1)", MATRICES),
    "tensordot": (lambda x: np.tensordot(x[:3], x[3:], 1), "a @ b", AROUND),
    "inner": (lambda x: np.inner(x[:3], x[3:]), "(a * b).sum(axis=-1)", AROUND),
    "inner of matrices": (lambda x: np.inner(x, x), "a @ b.T", MATRICES),
    "vdot": (lambda x: np.vdot(x[:3], x[3:]), "(a * b).sum(axis=-1)", AROUND),
    "outer": (lambda x: np.outer(x[:3], x[3:]), "numpy.reshape(a, (-1, 1)) * b", AROUND),
    "a square of a norm": (lambda x: np.linalg.norm(x) ** 2, "numpy.square(x).sum()", ABOVE),
    "var": (np.var, "((x - x.mean()) ** 2).mean()", AROUND),
    "average": (lambda x: np.average(x, weights=WEIGHTS), "x @ w / w.sum()", AROUND),
    "cumsum": (np.cumsum, "numpy.tri(n) @ x", AROUND),
    "add.accumulate": (np.add.accumulate, "numpy.tri(n) @ x", AROUND),
    "diff": (np.diff, "x[1:] - x[:-1]", AROUND),
    "prod": (lambda x: np.prod(x[:2]), "x[0] * x[1]", AROUND),
    "multiply.reduce": (lambda x: np.multiply.reduce(x[:2]), "x[0] * x[1]", AROUND),
    "flip": (np.flip, "x[::-1]", AROUND),
    "a split": (lambda x: np.split(x, 2)[0], "x[:n]", AROUND[:, :6]),
    "hstack": (lambda x: np.hstack((x[:3], x[3:])), "numpy.concatenate((a, b))", AROUND),
    "vstack": (lambda x: np.vstack((x[:3], x[3:])), "numpy.stack((a, b))", AROUND),
    "tile": (lambda x: np.tile(x, 2), "numpy.reshape(numpy.broadcast_to(x, (k, n)), k * n)", AROUND),
    "log2": (np.log2, "numpy.log(x) / numpy.log(2)", ABOVE),
    "log10": (np.log10, "numpy.log(x) / numpy.log(10)", ABOVE),
    "log1p": (np.log1p, "numpy.log(x + 1)", ABOVE),
    "expm1": (np.expm1, "numpy.exp(x) - 1", AROUND),
    "exp2": (np.exp2, "numpy.exp(x * numpy.log(2))", AROUND),
    "sinh": (np.sinh, "(numpy.exp(x) - numpy.exp(-x)) / 2", AROUND),
    "cosh": (np.cosh, "(numpy.exp(x) + numpy.exp(-x)) / 2", AROUND),
    "radians": (np.radians, "x * (numpy.pi / 180)", AROUND),
    "degrees": (np.degrees, "x * (180 / numpy.pi)", AROUND),
    "fabs": (np.fabs, "numpy.abs(x)", AROUND),
    "float_power": (lambda x: np.float_power(x, 2), "x**k", AROUND),
    "maximum.reduce": (lambda x: np.maximum.reduce(x), "numpy.max(x, axis=0)", AROUND),
    "minimum.reduce": (lambda x: np.minimum.reduce(x), "numpy.min(x, axis=0)", AROUND),
    "heaviside": (lambda x: np.heaviside(x, 0.0), "numpy.where(x > 0, 1.0, 0.0)", APART),
}  # fmt: skip


def reading(text: str, **more: Any) -> Callable[[Any], Any]:
    """The function of x that a sentence writes as text."""

    def function(x: Any) -> Any:
        halves = {"a": x[:3], "b": x[3:]} if x.ndim == 1 else {"a": x, "b": x}
        return eval(text, GIVEN | halves | {"x": x} | more)

    return function


def refusal(function: Callable[[Any], Any], examples: np.ndarray) -> str:
    with pytest.raises(jali.Unsupported) as refused:
        jali.nn.trace(function, examples[0])
    return str(refused.value)


def agrees(
    written: Callable[[Any], Any],
    wanted: Callable[[Any], Any],
    examples: np.ndarray,
    tolerance: float = 1e-9,
) -> None:
    """A program of what is written gives what is wanted: in the clear up to the tolerance, and with
    approximations and noise as it promises."""
    program = jali.compile(written, examples[0], calibration=examples, precision_bits=6)
    clear = program.clear(examples)
    want = np.array([wanted(x) for x in examples])
    assert np.abs(clear - want.reshape(clear.shape)).max() <= tolerance * np.abs(want).max()
    assert np.abs(program.simulate(examples) - clear).max() < 2**-6 * np.abs(clear).max()


@pytest.mark.parametrize("name", SAME)
def test_what_stands_for_a_function(name: str) -> None:
    function, text, examples = SAME[name]
    assert text in refusal(function, examples)
    n = 3 if "[:n]" in text else 6
    agrees(reading(text, n=n, keep=np.array([1, 0, 1])), function, examples)


@pytest.mark.parametrize("function", [np.sin, np.cos, np.arctan, np.arcsinh, np.cbrt])
def test_the_polynomial_near_a_function(function: Any) -> None:
    said = refusal(function, ABOVE)
    written = re.search(r"(jali\.nn\.scalar\.polynomial\(x, c\)), with c = (.*?), which", said)
    assert written, said
    t = np.linspace(ABOVE.min(), ABOVE.max(), 100)
    c = eval(written[2], {"numpy": np, "t": t})
    agrees(reading(written[1], c=c), function, ABOVE, tolerance=1e-5)


@pytest.mark.parametrize(
    "function", [lambda x: np.convolve(x, [1, 2, 1]), lambda x: np.pad(x, 2), lambda x: np.repeat(x, 2)]
)  # fmt: skip
def test_the_matrix_of_a_linear_function(function: Any) -> None:
    assert "M @ x, for a vector x of n numbers, with the matrix M = numpy.transpose([numpy." in refusal(
        function, AROUND
    )  # fmt: skip
    agrees(reading("M @ x", M=np.transpose([function(e) for e in np.eye(6)])), function, AROUND)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (np.linalg.norm, "(numpy.square(x).sum() + 1e-2) ** 0.5"),
        (np.std, "(((x - x.mean()) ** 2).mean() + 1e-5) ** 0.5"),
        (lambda x: np.hypot(x[:3], x[3:]), "(a**2 + b**2 + 1e-2) ** 0.5"),
    ],
)
def test_roots_that_stay_above_zero(function: Any, text: str) -> None:
    assert text in refusal(function, ABOVE)
    agrees(reading(text), function, ABOVE, tolerance=1e-2)


def test_equality_is_a_small_difference() -> None:
    text = "numpy.abs(a - b) < d"
    assert text in refusal(lambda x: np.equal(x[:3], x[3:]), APART)
    assert text in refusal(lambda x: x[:3] == x[3:], APART)
    near = APART.copy()
    near[::2, 3:] = near[::2, :3] + 0.01
    program = jali.compile(reading(text, d=0.05), near[0], calibration=near, precision_bits=5)
    want = np.abs(near[:, :3] - near[:, 3:]) < 0.05
    assert np.array_equal(program.simulate(near) > 0.5, want) and want.any() and not want.all()


@pytest.mark.parametrize(
    "function",
    [np.sort, np.argmax, np.argsort, np.median, np.any, np.rint, np.floor, lambda x: np.round(x, 1)],
)  # fmt: skip
def test_what_the_client_computes(function: Any) -> None:
    said = refusal(function, AROUND)
    assert "return the array, and let the client take it of the decrypted results" in said
    agrees(lambda x: x + 0, lambda x: x, AROUND)


METHODS = [
    *("argmax", "argmin", "sort", "argsort", "partition", "clip", "any", "all"),
    *("var", "std", "prod", "cumsum", "cumprod", "round", "astype", "copy", "squeeze", "swapaxes"),
    *("diagonal", "trace", "repeat", "take", "dtype", "item", "tolist"),
]


@pytest.mark.parametrize("name", METHODS)
def test_methods_say_the_same(name: str) -> None:
    with pytest.raises(jali.Error) as refused:
        jali.nn.trace(lambda x: getattr(x, name)(), AROUND[0])
    sentence = refusals.sentence(Traced, name, "names", "numpy")
    assert sentence is not None and sentence in str(refused.value)


def test_every_function_of_numpy_has_a_way_on() -> None:
    """Also functions that nobody thought of."""
    assert "Or return the array, and let the client" in refusal(np.linalg.inv, np.eye(3)[None])
    assert "numpy.fft.fft cannot be compiled: write it with those" in refusal(np.fft.fft, AROUND)
    assert "numpy.maximum.accumulate cannot" in refusal(np.maximum.accumulate, AROUND)
    for name, sentence in refusals.tables("jali.nn")["numpy"]["Traced"].items():
        ways = r"\bwrite |return the array|leave it out"
        assert re.search(ways, sentence), name
        assert hasattr(np, name.split(".")[0]) or name in ("expit", "norm", "astype"), name


def test_arguments_that_are_not_taken() -> None:
    assert "with where: leave this out" in refusal(lambda x: np.add(x, 1, where=x), AROUND)
    said = refusal(lambda x: np.sum(x, dtype=float), AROUND)
    assert (
        said
        == "numpy.sum of an encrypted array takes a, axis, keepdims: got an unexpected keyword argument 'dtype'"
    )


def test_operators_of_onnx_have_a_way_on() -> None:
    pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    from jali.compiler.frontends.onnx_ops import INSTEAD

    def model(nodes: list[Any], constants: dict[str, Any]) -> Any:
        x, y = (helper.make_tensor_value_info(v, TensorProto.DOUBLE, ("n", 6)) for v in ("x", "y"))
        kept = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
        graph = helper.make_graph(nodes, "g", [x], [y], kept)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])

    for op in (*INSTEAD, "Det"):
        refused = model([helper.make_node(op, ["x"], ["y"])], {})
        with pytest.raises(
            jali.Unsupported,
            match=f"{op} cannot be compiled: .*(use|train|write|end|compute|leave|export|multiplies)",
        ):
            jali.nn.trace(refused, AROUND[:1])

    said = "Near a function of single numbers, on an interval, is a polynomial, which is a sum of multiples of powers"
    with pytest.raises(jali.Unsupported, match=said):
        jali.nn.trace(model([helper.make_node("Det", ["x"], ["y"])], {}), AROUND[:1])
    t = np.linspace(-1, 1, 50)
    c = np.polynomial.Polynomial.fit(t, np.sin(t), 7).convert().coef
    nodes, constants, parts = [], {}, []
    for k in (1, 3, 5, 7):
        constants |= {f"k{k}": np.float64(k), f"c{k}": c[k]}
        nodes += [
            helper.make_node("Pow", ["x", f"k{k}"], [f"p{k}"]),
            helper.make_node("Mul", [f"p{k}", f"c{k}"], [f"m{k}"]),
        ]
        parts.append(f"m{k}")
    sine = model([*nodes, helper.make_node("Sum", parts, ["y"])], constants)
    program = jali.compile(sine, AROUND[:1], calibration=AROUND, precision_bits=6)
    assert np.abs(program.clear(AROUND) - np.sin(AROUND)).max() < 1e-5
    assert np.abs(program.simulate(AROUND) - np.sin(AROUND)).max() < 2**-6


def test_steps_of_scikit_learn_as_a_function() -> None:
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    pipeline = pytest.importorskip("sklearn.pipeline")
    linear = pytest.importorskip("sklearn.linear_model")
    target = AROUND[:, 0] * AROUND[:, 1]
    splines = pipeline.make_pipeline(preprocessing.SplineTransformer(), linear.LinearRegression())
    with pytest.raises(jali.Unsupported, match="or write the whole model as a function of arrays"):
        jali.nn.trace(splines.fit(AROUND, target), AROUND[:1])
    model = pipeline.make_pipeline(
        preprocessing.PolynomialFeatures(2, include_bias=False), linear.LinearRegression()
    ).fit(AROUND, target)
    last = model[-1]

    def written(x: Any) -> Any:
        pairs = [x[i] * x[i:] for i in range(6)]
        return np.concatenate([x, *pairs]) @ last.coef_ + last.intercept_

    agrees(written, lambda x: model.predict(x[None]), AROUND)
