"""Models in ONNX of which the client computes a part in the clear: every operation against ONNX's
own evaluator, where models are cut, and encrypted runs of models that end in answers or begin with
words."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import jali
from jali import nn
from jali.compiler.frontends.cut_models import cut_model
from jali.compiler.ir.execute import execute
from jali.program.clear.operations import FUNCTIONS, OPERATIONS

pytest.importorskip("onnx")

WORDS, WIDTH, LENGTH, CLASSES = 11, 4, 6, 5


def model_of(
    nodes: list[tuple[Any, ...]],
    constants: dict[str, Any],
    inputs: dict[str, tuple[Any, tuple[int, ...]]],
    outputs: tuple[str, ...] = ("y",),
    opset: int = 20,
) -> Any:
    """A model of nodes (op, inputs, outputs, attributes). inputs: the type and the shape of an
    example of each."""
    from onnx import helper, numpy_helper

    made = [helper.make_node(op, i, o, **(rest[0] if rest else {})) for op, i, o, *rest in nodes]
    ports = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.dtype(t)), ("n", *s))
        for n, (t, s) in inputs.items()
    ]
    results = [helper.make_tensor_value_info(n, 1, None) for n in outputs]
    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    graph = helper.make_graph(made, "g", ports, results, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def expected(model: Any, *inputs: np.ndarray) -> list[np.ndarray]:
    """What ONNX gives for examples, one at a time, as one array each."""
    from onnx.reference import ReferenceEvaluator

    names = [port.name for port in model.graph.input]
    session = ReferenceEvaluator(model)
    rows = [
        session.run(None, {n: x[k : k + 1] for n, x in zip(names, inputs, strict=True)})
        for k in range(len(inputs[0]))
    ]
    return [np.concatenate([np.asarray(x) for x in of]) for of in zip(*rows, strict=True)]


def agrees(model: Any, *inputs: np.ndarray, at_server: tuple[str, ...]) -> nn.Graph:
    """The three parts give what ONNX gives, on every element, and the server's has these
    operations. The graph of the server."""
    found = cut_model(model, tuple(x[:1] for x in inputs))
    assert found is not None
    graph, parts, _ = found
    given = list(inputs) if parts.before is None else parts.sent(inputs)[0]
    results = parts.results(execute(graph, *given))
    for got, want in zip(results, expected(model, *inputs), strict=True):
        assert got.shape == want.shape
        assert (got.dtype.kind == "f") == (want.dtype.kind == "f")
        assert np.allclose(got, want, rtol=1e-5, atol=1e-5)
    assert [node.op for node in graph if node.op != "input"] == list(at_server)
    return graph


# --- the part after -------------------------------------------------------------------------------

#: What follows a product with weights (operations, constants): its input is "h" (n, 4, 5).
ENDINGS: dict[str, tuple[list[tuple[Any, ...]], dict[str, Any]]] = {
    "argmax": ([("ArgMax", ["h"], ["y"], {"axis": 2, "keepdims": 0})], {}),
    "argmin": ([("ArgMin", ["h"], ["y"], {"axis": 1})], {}),
    "last of equals": (
        [("Relu", ["h"], ["r"]), ("ArgMin", ["r"], ["y"], {"axis": 1, "select_last_index": 1})],
        {},
    ),
    "softmax": ([("Softmax", ["h"], ["y"], {"axis": 1})], {}),
    "log softmax": ([("LogSoftmax", ["h"], ["y"])], {}),
    "hardmax": ([("Hardmax", ["h"], ["y"])], {}),
    "top": ([("TopK", ["h", "k"], ["y", "z"], {"axis": 1})], {"k": np.array([3])}),
    "least": ([("TopK", ["h", "k"], ["y", "z"], {"largest": 0})], {"k": np.array([2])}),
    "threshold": ([("Greater", ["h", "t"], ["b"]), ("Cast", ["b"], ["y"], {"to": 1})], {"t": 0.1}),
    "not above": ([("LessOrEqual", ["h", "t"], ["y"])], {"t": np.zeros((4, 1))}),
    "at least": ([("GreaterOrEqual", ["h", "t"], ["y"])], {"t": 0.1}),
    "between": (
        [
            ("Less", ["h", "t"], ["a"]),
            ("Less", ["u", "h"], ["b"]),
            ("And", ["a", "b"], ["c"]),
            ("Or", ["c", "b"], ["d"]),
            ("Xor", ["c", "d"], ["e"]),
            ("Not", ["e"], ["y"]),
        ],
        {"t": 0.6, "u": -0.2},
    ),
    "where": (
        [("Less", ["h", "t"], ["a"]), ("Where", ["a", "u", "h"], ["y"])],
        {"t": 0.1, "u": np.arange(5.0)},
    ),
    "sigmoid and boxes": (
        [
            ("Sigmoid", ["h"], ["s"]),
            ("Split", ["s"], ["a", "b"], {"axis": 1, "num_outputs": 2}),
            ("Mul", ["a", "grid"], ["c"]),
            ("Sub", ["c", "one"], ["d"]),
            ("Concat", ["d", "b"], ["e"], {"axis": 1}),
            ("Transpose", ["e"], ["y"], {"perm": [0, 2, 1]}),
        ],
        {"grid": np.arange(10.0).reshape(1, 2, 5), "one": 1.0},
    ),
    "softmax as it is written out": (
        [
            ("ReduceMax", ["h"], ["m"], {"axes": [1], "keepdims": 0}),
            ("Max", ["least", "m"], ["n"]),
            ("Reshape", ["n", "shape"], ["r"]),
            ("Expand", ["r", "wide"], ["e"]),
            ("Sub", ["h", "e"], ["d"]),
            ("Exp", ["d"], ["p"]),
            ("ReduceSum", ["p", "axis"], ["s"]),
            ("Div", ["p", "s"], ["y"]),
        ],
        {
            "least": -np.inf,
            "shape": np.array([-1, 1, 5]),
            "wide": np.array([1, 4, 5]),
            "axis": np.array([1]),
        },
    ),
    "a vector of length 1": (
        [("ReduceL2", ["h", "axis"], ["n"]), ("Div", ["h", "n"], ["y"])],
        {"axis": np.array([1])},
    ),
    "reductions": (
        [
            ("Abs", ["h"], ["a"]),
            ("ReduceMin", ["a", "one"], ["b"]),
            ("ReduceMean", ["a", "one"], ["c"]),
            ("ReduceProd", ["a", "one"], ["d"]),
            ("ReduceLogSumExp", ["a", "one"], ["e"]),
            ("ReduceL1", ["a", "one"], ["f"]),
            ("ReduceSumSquare", ["a", "one"], ["g"]),
            ("Sum", ["b", "c", "d", "e", "f", "g"], ["y"]),
        ],
        {"one": np.array([-1])},
    ),
    "functions": (
        [
            ("Softplus", ["h"], ["a"]),
            ("Log", ["a"], ["b"]),
            ("Sqrt", ["a"], ["c"]),
            ("Reciprocal", ["c"], ["d"]),
            ("Sin", ["h"], ["e"]),
            ("Cos", ["e"], ["f"]),
            ("Tanh", ["b"], ["g"]),
            ("Sum", ["d", "f", "g"], ["y"]),
        ],
        {},
    ),
    "steps": (
        [
            ("Round", ["h"], ["a"]),
            ("Floor", ["h"], ["b"]),
            ("Ceil", ["h"], ["c"]),
            ("Sign", ["h"], ["d"]),
            ("Neg", ["d"], ["e"]),
            ("Sum", ["a", "b", "c", "e"], ["f"]),
            ("Cast", ["f"], ["y"], {"to": 7}),
        ],
        {},
    ),
    "clamps": (
        [
            ("Clip", ["h", "low", "high"], ["a"]),
            ("Relu", ["a"], ["b"]),
            ("LeakyRelu", ["h"], ["c"], {"alpha": 0.2}),
            ("HardSigmoid", ["c"], ["d"], {"alpha": 0.4}),
            ("Min", ["b", "d", "high"], ["e"]),
            ("Pow", ["e", "two"], ["y"]),
        ],
        {"low": -0.4, "high": 0.5, "two": 2.0},
    ),
    "moves": (
        [
            ("Tanh", ["h"], ["a"]),
            ("Slice", ["a", "from", "to", "axes", "steps"], ["b"]),
            ("Gather", ["b", "places"], ["c"], {"axis": 2}),
            ("Unsqueeze", ["c", "axes"], ["d"]),
            ("Squeeze", ["d", "axes"], ["e"]),
            ("Flatten", ["e"], ["f"]),
            ("CumSum", ["f", "one"], ["g"]),
            ("Identity", ["g"], ["y"]),
        ],
        {
            "from": np.array([-1]),
            "to": np.array([-100]),
            "axes": np.array([1]),
            "steps": np.array([-2]),
            "places": np.array([[0, -1], [2, 1]]),
            "one": np.array(1),
        },
    ),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_a_client_computes_the_end_of_a_model(name: str, rng: np.random.Generator) -> None:
    nodes, constants = ENDINGS[name]
    opset = 15 if "axes" in str(nodes[0][3:]) else 20
    outputs = tuple(n for n in ("y", "z") if any(n in node[2] for node in nodes))
    model = model_of(
        [("MatMul", ["x", "w"], ["h"]), *nodes],
        {"w": rng.normal(size=(6, 5)), **constants},
        {"x": (np.float64, (4, 6))},
        outputs,
        opset,
    )
    agrees(model, rng.normal(size=(3, 4, 6)), at_server=("dense",))


def test_what_a_server_computes_stays_with_it(rng: np.random.Generator) -> None:
    """Arithmetic in front of the first answer, and functions that products follow."""
    w, v = rng.normal(size=(6, 5)), rng.normal(size=(5, 3))
    model = model_of(
        [
            ("MatMul", ["x", "w"], ["h"]),
            ("Tanh", ["h"], ["t"]),
            ("MatMul", ["t", "v"], ["g"]),
            ("Add", ["g", "b"], ["l"]),
            ("Softmax", ["l"], ["p"]),
            ("ArgMax", ["l"], ["y"], {"axis": 1, "keepdims": 0}),
        ],
        {"w": w, "v": v, "b": np.arange(3.0)},
        {"x": (np.float64, (6,))},
        ("p", "y", "l"),
    )
    graph = agrees(
        model, rng.normal(size=(4, 6)), at_server=("dense", "function", "dense", "scale")
    )
    assert len(graph.outputs) == 1  # the scores, of which the client computes all three outputs


def test_a_model_of_answers_alone_is_not_cut(rng: np.random.Generator) -> None:
    model = model_of([("Softmax", ["x"], ["y"])], {}, {"x": (np.float64, (6,))})
    assert cut_model(model, np.ones((1, 6))) is None


#: What a client would compute of several examples together, or in another order.
ALONG_BATCH = [
    ("ArgMax", {"axis": 0}),
    ("Softmax", {"axis": 0}),
    ("ReduceMax", {"keepdims": 0}),
    ("CumSum", {}),
]


@pytest.mark.parametrize(("op", "attrs"), ALONG_BATCH)
def test_what_mixes_examples_is_refused(op: str, attrs: dict[str, Any]) -> None:
    more = ["first"] if op == "CumSum" else []
    nodes = [("Sigmoid", ["h"], ["s"]), (op, ["s", *more], ["y"], attrs)]
    model = model_of(
        [("MatMul", ["x", "w"], ["h"]), *nodes],
        {"w": np.eye(6), "first": np.array(0)},
        {"x": (np.float64, (6,))},
    )
    with pytest.raises(jali.Error, match="batch"):
        jali.compile(model, np.ones((1, 6)), calibration=np.eye(6))


# --- the part before ------------------------------------------------------------------------------

LONG = (np.int64, (LENGTH,))


def words(rng: np.random.Generator, count: int = 5) -> np.ndarray:
    return rng.integers(0, WORDS, (count, LENGTH))


def table(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(WORDS, WIDTH))


def test_words_are_looked_up(rng: np.random.Generator) -> None:
    """The sum with places stays at the server, whose weights they are; the sum of two look-ups is
    one array to encrypt."""
    constants = {"t": table(rng), "k": table(rng)[:2], "p": rng.normal(size=(LENGTH, WIDTH))}
    model = model_of(
        [
            ("Gather", ["t", "x"], ["a"]),
            ("Cast", ["z"], ["c"], {"to": 7}),
            ("Gather", ["k", "c"], ["b"]),
            ("Add", ["a", "b"], ["s"]),
            ("Add", ["s", "p"], ["h"]),
            ("MatMul", ["h", "w"], ["y"]),
        ],
        constants | {"w": rng.normal(size=(WIDTH, 2))},
        {"x": LONG, "z": (np.int32, (LENGTH,))},
    )
    inputs = words(rng), rng.integers(0, 2, (5, LENGTH)).astype(np.int32)
    graph = agrees(model, *inputs, at_server=("scale", "dense"))
    assert len(graph.inputs) == 1
    found = cut_model(model, tuple(x[:1] for x in inputs))
    assert found is not None
    _, parts, ranges = found
    assert ranges is not None and ranges[0] is not None
    low, high = ranges[0]  # of the tables, whatever the examples are
    assert np.allclose(low, constants["t"].min(0) + constants["k"].min(0))
    assert np.allclose(high, constants["t"].max(0) + constants["k"].max(0))
    assert parts.weights == (WORDS + 2) * WIDTH


#: What makes "h" (n, 6, 11) of whole numbers "x" (n, 6).
BEGINNINGS: dict[str, tuple[list[tuple[Any, ...]], dict[str, Any]]] = {
    "equal": (
        [
            ("Unsqueeze", ["x", "last"], ["a"]),
            ("Equal", ["a", "every"], ["b"]),
            ("Cast", ["b"], ["h"], {"to": 11}),
        ],
        {"last": np.array([2]), "every": np.arange(WORDS).reshape(1, 1, -1)},
    ),
    "one hot": (
        [("OneHot", ["x", "depth", "values"], ["h"])],
        {"depth": np.array(WORDS), "values": np.array([-0.5, 1.0])},
    ),
    "one hot on another axis": (
        [
            ("OneHot", ["x", "depth", "values"], ["a"], {"axis": 1}),
            ("Transpose", ["a"], ["h"], {"perm": [0, 2, 1]}),
        ],
        {"depth": np.array(WORDS), "values": np.array([0.0, 1.0])},
    ),
    "where": (
        [
            ("Mod", ["x", "two"], ["a"]),
            ("Mul", ["x", "two"], ["c"]),
            ("Sub", ["c", "two"], ["d"]),
            ("Div", ["d", "three"], ["e"]),
            ("Max", ["e", "zero"], ["f"]),
            ("Min", ["f", "two"], ["g"]),
            ("Equal", ["a", "g"], ["b"]),
            ("Unsqueeze", ["b", "last"], ["i"]),
            ("Where", ["i", "row", "other"], ["h"]),
        ],
        {
            "two": np.array(2),
            "three": np.array(3),
            "zero": np.array(0),
            "last": np.array([2]),
            "row": np.arange(1.0 * WORDS),
            "other": -1.5,
        },
    ),
    "how many words": (
        [
            ("Greater", ["x", "zero"], ["a"]),
            ("Cast", ["a"], ["b"], {"to": 7}),
            ("CumSum", ["b", "one"], ["c"]),
            ("ReduceSum", ["b", "axis"], ["d"]),
            ("Add", ["c", "d"], ["e"]),
            ("Reshape", ["e", "shape"], ["f"]),
            ("Gather", ["rows", "f"], ["h"]),
        ],
        {
            "zero": np.array(0),
            "one": np.array(1),
            "axis": np.array([1]),
            "shape": np.array([0, -1]),
            "rows": np.arange(13.0 * WORDS).reshape(13, WORDS) / 100,
        },
    ),
}


@pytest.mark.parametrize("name", BEGINNINGS)
def test_a_client_computes_the_beginning_of_a_model(name: str, rng: np.random.Generator) -> None:
    nodes, constants = BEGINNINGS[name]
    constants = {k: np.asarray(v) for k, v in constants.items()}
    model = model_of(
        [*nodes, ("MatMul", ["h", "w"], ["y"])],
        {"w": rng.normal(size=(WORDS, 3)), **constants},
        {"x": LONG},
    )
    agrees(model, words(rng), at_server=("dense",))


def test_every_operation_of_a_client_is_compared() -> None:
    """With all that the models above have, in which form their steps have them."""
    seen: set[str] = set()
    rng = np.random.default_rng(5)
    for nodes, constants in ENDINGS.values():
        model = model_of(
            [("MatMul", ["x", "w"], ["h"]), *nodes],
            {"w": np.ones((6, 5)), **constants},
            {"x": (np.float64, (4, 6))},
            opset=15 if "axes" in str(nodes[0][3:]) else 20,
        )
        seen |= _steps(cut_model(model, rng.normal(size=(1, 4, 6))))
    for nodes, constants in BEGINNINGS.values():
        model = model_of(
            [*nodes, ("MatMul", ["h", "w"], ["y"])],
            {"w": np.ones((WORDS, 3)), **constants},
            {"x": LONG},
        )
        seen |= _steps(cut_model(model, words(rng, 1)))
    assert seen >= OPERATIONS.keys() - {"function"}
    assert seen >= FUNCTIONS.keys()


def _steps(found: Any) -> set[str]:
    _, parts, _ = found
    steps = [x for part in (parts.before, parts.after) if part is not None for x in part.steps]
    return {str(x.how.get("function", x.op)) for x in steps}


def test_whole_numbers_of_few_bits_are_not_computed_with(rng: np.random.Generator) -> None:
    """In ONNX, 200 + 100 is 44 in 8 bits."""
    model = model_of(
        [("Add", ["x", "c"], ["a"]), ("Gather", ["t", "a"], ["h"]), ("MatMul", ["h", "w"], ["y"])],
        {"c": np.full(LENGTH, 100, np.uint8), "t": table(rng), "w": np.eye(WIDTH)},
        {"x": (np.uint8, (LENGTH,))},
    )
    with pytest.raises(jali.Unsupported):
        jali.compile(model, words(rng).astype(np.uint8))


# --- programs -------------------------------------------------------------------------------------


def classifier(rng: np.random.Generator) -> Any:
    """Words, a table, a hidden layer, scores; shares, the best class and the two best ones."""
    return model_of(
        [
            ("Gather", ["t", "x"], ["e"]),
            ("Flatten", ["e"], ["f"]),
            ("Gemm", ["f", "w", "b"], ["a"]),
            ("Mul", ["a", "a"], ["h"]),
            ("MatMul", ["h", "v"], ["l"]),
            ("Softmax", ["l"], ["p"]),
            ("ArgMax", ["l"], ["y"], {"axis": 1, "keepdims": 0}),
            ("TopK", ["l", "two"], ["n", "z"]),
        ],
        {
            "t": table(rng),
            "w": rng.normal(size=(LENGTH * WIDTH, 6)) / 5,
            "b": rng.normal(size=6),
            "v": rng.normal(size=(6, CLASSES)),
            "two": np.array([2]),
        },
        {"x": LONG},
        ("p", "y", "n", "z"),
    )


@pytest.fixture(scope="module")
def made() -> tuple[Any, np.ndarray, nn.Program]:
    rng = np.random.default_rng(41)
    model, x = classifier(rng), words(rng, 60)
    return model, x, jali.compile(model, x[:1], calibration=x, batch=4, precision_bits=14)


def close(results: Any, wanted: list[np.ndarray]) -> None:
    """Shares and scores are near, and places are equal where no two scores are nearer than noise
    is large."""
    p, y, n, z = results
    assert [r.shape for r in results] == [w.shape for w in wanted]
    assert [r.dtype for r in results] == [np.float64, np.int64, np.float64, np.int64]
    assert np.abs(p - wanted[0]).max() < 0.01 and np.abs(n - wanted[2]).max() < 0.02
    clear = np.abs(np.diff(wanted[2], axis=-1)[..., 0]) > 0.05
    assert clear.mean() > 0.7
    assert (y == wanted[1])[clear].all() and (z[..., 0] == wanted[3][..., 0])[clear].all()


def test_an_encrypted_run_of_words_to_answers(made: tuple[Any, np.ndarray, nn.Program]) -> None:
    model, x, program = made
    wanted = expected(model, x)
    close(program.clear(x), wanted)
    close(program.simulate(x, rng=1), wanted)
    client = nn.Client(nn.Manifest.from_bytes(program.manifest.to_bytes()))
    program = nn.Program.from_bytes(program.to_bytes())
    server = program.server(client.evaluation_keys(), device="cpu")
    request = nn.Message.request(client.encrypt(x).to_bytes(), program.manifest)
    reply = nn.Message.reply(server(request).to_bytes(), client.manifest)
    close(client.decrypt(reply), wanted)
    of_one = client.decrypt(server(client.encrypt(x[3])))
    assert [r.shape for r in of_one] == [(CLASSES,), (), (2,), (2,)]
    of_bytes = client.decrypt(server(client.encrypt(bytes(x[3].tolist()))))
    assert np.allclose(of_one[0], of_bytes[0], atol=0.01)
    assert abs(of_one[0] - wanted[0][3]).max() < 0.01


def test_files_keep_the_parts(made: tuple[Any, np.ndarray, nn.Program]) -> None:
    _, x, program = made
    manifest, data = program.manifest, program.manifest.to_bytes()
    assert nn.Manifest.from_bytes(data).to_bytes() == data
    again = nn.Program.from_bytes(program.to_bytes())
    assert again.to_bytes() == program.to_bytes()
    assert again.manifest.to_bytes() == data
    assert manifest.encrypted_part.parts is None
    assert manifest.encrypted_part.fingerprint == manifest.fingerprint
    for made_again in (pickle.loads(pickle.dumps(manifest)), copy.deepcopy(manifest)):
        assert made_again.to_bytes() == data
    assert np.array_equal(again.clear(x)[0], program.clear(x)[0])


def test_the_summary_says_who_computes_what(made: tuple[Any, np.ndarray, nn.Program]) -> None:
    _, _, program = made
    text = str(program.summary("cpu", threads=1))
    assert "client, before encrypting: gather" in text
    assert "client, after decrypting: softmax, place_of, top, top" in text
    assert f"the client has {WORDS * WIDTH} for it" in text
    assert "client, before encrypting: gather" in program.explain("program")


def test_wrong_inputs_are_refused_before_anything_is_encrypted(
    made: tuple[Any, np.ndarray, nn.Program],
) -> None:
    _, x, program = made
    client = program.client()
    for wrong, sentence in (
        (np.where(x == 3, WORDS, x), "none of its 11 rows: give whole numbers from 0 to 10"),
        (np.where(x == 3, -WORDS - 1, x), "none of its 11 rows"),
        (x + 0.5, "was given fractions"),
        (x[:, :5], r"takes examples of the shape \(6,\)"),
        (b"12345", r"takes examples of the shape \(6,\)"),
        (np.full(LENGTH, np.nan), "NaN or infinity"),
        (np.full(LENGTH, 1e17), "takes whole numbers from"),
        ("abcdef", "takes real numbers"),
    ):
        with pytest.raises(jali.InvalidArgument, match=sentence):
            client.encrypt(wrong)
    with pytest.raises(jali.InvalidArgument, match="takes 1 array, and was given 2"):
        client.encrypt(x, x)


def test_words_that_no_example_has_are_taken(made: tuple[Any, np.ndarray, nn.Program]) -> None:
    """The range of a look-up is that of the table."""
    model, _, _ = made
    few = np.full((12, LENGTH), 2) + np.arange(12)[:, None] % 2
    program = jali.compile(model, few[:1], calibration=few)
    every = (np.arange(WORDS)[:, None] + np.arange(LENGTH)) % WORDS
    program.client().encrypt(every)  # every word in every place, also the largest of the table


def test_client_side_false_keeps_everything_at_the_server(rng: np.random.Generator) -> None:
    x = words(rng, 12)
    with pytest.raises(jali.Unsupported, match="client_side=False keeps the whole model"):
        jali.compile(classifier(rng), x[:1], calibration=x, client_side=False)
    soft = model_of(
        [("MatMul", ["x", "w"], ["h"]), ("Sigmoid", ["h"], ["y"])],
        {"w": rng.normal(size=(6, 2))},
        {"x": (np.float64, (6,))},
    )
    data = rng.normal(size=(20, 6))
    at_server = jali.compile(soft, data[:1], calibration=data, client_side=False)
    at_client = jali.compile(soft, data[:1], calibration=data)
    assert at_server.manifest.parts is None and at_client.manifest.parts is not None
    assert at_server.params.depth > at_client.params.depth
    for program in (at_server, at_client):
        assert np.allclose(program.clear(data), expected(soft, data)[0])
    with pytest.raises(jali.InvalidArgument, match="client_side must be True or False"):
        jali.compile(soft, data[:1], client_side="no")


def test_a_client_has_a_limit_for_its_parts(made: tuple[Any, np.ndarray, nn.Program]) -> None:
    _, _, program = made
    parts = program.manifest.parts
    assert parts is not None and program.manifest.client_cost.own > parts.nbytes > 0
    big = model_of(
        [("OneHot", ["x", "d", "v"], ["h"]), ("ReduceSum", ["h", "a"], ["s"]), ("MatMul", ["s", "w"], ["y"])],
        {"d": np.array(1 << 22), "v": np.array([0.0, 1.0]), "a": np.array([2]), "w": np.ones((1, 1))},
        {"x": (np.int64, (1,))},
    )  # fmt: skip
    found = cut_model(big, np.ones((1, 1), np.int64))
    assert found is not None and found[1].nbytes > 1 << 25
