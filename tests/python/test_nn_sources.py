"""Where models come from: scikit-learn, ONNX and recorded files. The oracles are their own
predictions, and ONNX's evaluator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lies
import numpy as np
import pytest
from test_nn_graph import function, residual_network
from test_nn_program import assert_precise, encrypted

import jali
from jali import nn
from jali._jali import program as _program
from jali.compiler.ir.execute import execute
from jali.compiler.ir.graph import Graph
from jali.compiler.passes.fold import fold
from jali.nn import graph_file, trace
from jali.program import container


def logits(perceptron: Any, x: np.ndarray) -> np.ndarray:
    """What a multi-layer perceptron computes before its last activation."""
    f = {
        "relu": lambda z: np.maximum(z, 0),
        "tanh": np.tanh,
        "logistic": lambda z: 1 / (1 + np.exp(-z)),
        "identity": lambda z: z,
    }[perceptron.activation]
    for k, (w, b) in enumerate(zip(perceptron.coefs_, perceptron.intercepts_, strict=True)):
        x = (x if k == 0 else f(x)) @ w + b
    return x


@pytest.fixture
def flowers(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Three classes of points with features of very different units."""
    y = rng.integers(0, 3, 150)
    centres = rng.normal(size=(3, 5)) * 2
    return (centres[y] + rng.normal(size=(150, 5))) * [1, 100, 0.01, 3, 1] + 5, y


def test_estimators_compute_what_they_predict(
    flowers: tuple[np.ndarray, np.ndarray],
) -> None:
    pytest.importorskip("sklearn")
    from sklearn import decomposition, discriminant_analysis, linear_model, preprocessing
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline

    x, y = flowers
    for scaler in (
        preprocessing.StandardScaler(),
        preprocessing.StandardScaler(with_mean=False),
        preprocessing.MinMaxScaler(),
        preprocessing.RobustScaler(),
        preprocessing.MaxAbsScaler(),
        decomposition.PCA(3, whiten=True),
        "passthrough",
    ):
        model = make_pipeline(scaler, linear_model.LinearRegression()).fit(x, y)
        assert np.allclose(execute(trace(model, x), x)[0], model.predict(x))
    scaled = preprocessing.scale(x)
    for labels in (y, y == 1):
        for classifier in (
            linear_model.LogisticRegression(),
            linear_model.RidgeClassifier(),
            discriminant_analysis.LinearDiscriminantAnalysis(),
        ):
            classifier.fit(scaled, labels)
            got = execute(trace(classifier, scaled), scaled)[0]
            assert np.allclose(got, classifier.decision_function(scaled))
    single = linear_model.LogisticRegression().fit(scaled, y == 1)
    got = execute(trace(single, scaled, output="probability"), scaled)[0]
    assert np.allclose(got, single.predict_proba(scaled)[:, 1])
    for activation in ("relu", "tanh", "logistic", "identity"):
        network = MLPClassifier((7, 4), activation=activation, max_iter=5)
        with pytest.warns(UserWarning):  # it has not converged
            network.fit(scaled, y)
        assert np.allclose(execute(trace(network, scaled), scaled)[0], logits(network, scaled))
        assert np.array_equal(logits(network, scaled).argmax(1), network.predict(scaled))
    with pytest.warns(UserWarning):
        regressor = MLPRegressor(hidden_layer_sizes=(7,), max_iter=5).fit(scaled, y)
    assert np.allclose(execute(trace(regressor, scaled), scaled)[0], regressor.predict(scaled))


@pytest.mark.filterwarnings(
    "ignore"
)  # of fits that have not converged, and of what is to be left out of scikit-learn
def test_every_linear_model_computes_what_it_predicts(
    flowers: tuple[np.ndarray, np.ndarray],
) -> None:
    """All that scikit-learn has, but for those with a function behind it or another decision."""
    pytest.importorskip("sklearn")
    from sklearn import linear_model, preprocessing
    from sklearn.base import is_classifier, is_regressor

    x = preprocessing.scale(flowers[0])
    y = x @ np.arange(1.0, 6.0) + np.where(flowers[1] == 1, 0.1, -0.1)
    refused = set()
    kinds = [getattr(linear_model, name) for name in linear_model.__all__]
    for kind in (kind for kind in kinds if isinstance(kind, type)):
        model, name = kind(), kind.__name__
        if is_classifier(model):
            got = (model.fit(x, y > 0), model.decision_function)
        elif is_regressor(model):
            targets = np.c_[y, 2 * y] if name.startswith("MultiTask") else y
            positive = name.removesuffix("Regressor") in ("Poisson", "Gamma", "Tweedie")
            got = (model.fit(x, np.exp(y / 9) if positive else targets), model.predict)
        else:
            continue
        try:
            graph = trace(model, x)
        except jali.Unsupported as error:
            assert "model.coef_ @ x" in str(error)
            refused.add(name)
            continue
        assert np.allclose(np.squeeze(execute(graph, x)[0]), got[1](x)), name
    assert refused == {"PoissonRegressor", "GammaRegressor", "TweedieRegressor"}


def test_a_pipeline_encrypted(flowers: tuple[np.ndarray, np.ndarray]) -> None:
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = flowers
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y)
    program = jali.compile(model, x[:1], calibration=x, batch=16)
    assert program.params.depth == 1  # scaler and regression are one matrix
    assert_precise(program, encrypted(program, x[:20]), model.decision_function(x[:20]))
    model.fit(x, y == 1)
    program = jali.compile(
        model, x[:1], calibration=x, batch=16, output="probability", precision_bits=7
    )
    assert_precise(program, encrypted(program, x[:20]), model.predict_proba(x[:20])[:, 1])


def test_a_program_keeps_the_weights_that_it_was_compiled_with(rng: np.random.Generator) -> None:
    """Also if a model's arrays change afterwards, as in further training: what a server would
    compute, and what is said in the clear."""
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler

    x, weights = rng.uniform(-1, 1, (400, 260)), rng.normal(size=(300, 260)) / 16
    model = make_pipeline(MinMaxScaler(), LinearRegression())
    model.fit(x, x @ weights.T)
    for source, arrays in (
        (model, [model[0].scale_, model[1].coef_]),
        (lambda v: weights @ v, [weights]),
    ):
        program = jali.compile(source, x[:1] if source is model else x[0], calibration=x)
        before, ranges = program.clear(x), program.simulate(x, rng=np.random.default_rng(1))
        (term,) = program.stages["lower"][program.stages["lower"].outputs[0]].attrs["terms"]
        diagonals = dict(term.vectors(0))
        for array in arrays:
            array *= 3.0
        assert np.array_equal(program.clear(x), before)
        assert np.array_equal(program.simulate(x, rng=np.random.default_rng(1)), ranges)
        for k, vectors in term.vectors(0):
            assert all(np.array_equal(v, diagonals[k][d]) for d, v in vectors.items())


def test_estimators_that_cannot_be_compiled(flowers: tuple[np.ndarray, np.ndarray]) -> None:
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler
    from sklearn.tree import DecisionTreeClassifier

    x, y = flowers
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    tree = make_pipeline(MinMaxScaler(), DecisionTreeClassifier()).fit(x, y)
    with pytest.raises(
        jali.Unsupported,
        match=r"decisiontreeclassifier: a DecisionTreeClassifier is compiled alone",
    ):
        trace(tree, x)
    with pytest.raises(
        jali.Unsupported, match=r"KNeighborsClassifier cannot be compiled\. Scalers"
    ):
        trace(KNeighborsClassifier().fit(x, y), x)
    search = GridSearchCV(LogisticRegression(), {"C": [0.5, 1.0]}, cv=2).fit(x, y)
    with pytest.raises(jali.Unsupported, match="give what it found, its best_estimator_"):
        trace(search, x)
    with pytest.raises(jali.InvalidArgument, match="not fitted"):
        trace(LogisticRegression(), x)
    with pytest.raises(jali.Unsupported, match="clip=True"):
        trace(MinMaxScaler(clip=True).fit(x), x)
    with pytest.raises(jali.Unsupported, match="two classes"):
        trace(LogisticRegression().fit(x, y), x, output="probability")
    broken = LogisticRegression().fit(x, y)
    broken.coef_ = broken.coef_ * np.nan
    with pytest.raises(jali.InvalidArgument, match="NaN"):
        trace(broken, x)


def onnx_model(nodes: list[Any], constants: dict[str, np.ndarray], shape: tuple[Any, ...]) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, shape)],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_onnx_agrees_with_its_own_evaluator(rng: np.random.Generator) -> None:
    """A network with most operations: residual, groups, pools, batch normalisation, shapes and
    functions."""
    pytest.importorskip("onnx")
    from onnx.helper import make_node
    from onnx.reference import ReferenceEvaluator

    constants = {
        "w1": rng.normal(size=(4, 2, 3, 3)),
        "b1": rng.normal(size=4),
        "w2": rng.normal(size=(4, 2, 2, 3)),
        "gamma": rng.normal(size=4),
        "beta": rng.normal(size=4),
        "mean": rng.normal(size=4),
        "variance": rng.random(4) + 0.5,
        "shape": np.array([0, 2, -1]),
        "half": np.array(0.5),
        "bias": rng.normal(size=(1, 4, 1, 1)),
        "starts": np.array([1, 0]),
        "ends": np.array([4, 2**62]),
        "axes": np.array([2, 3]),
        "steps": np.array([2, 1]),
        "one": np.array([1]),
        "w3": rng.normal(size=(5, 40)),
        "b3": rng.normal(size=5),
        "w4": rng.normal(size=(5, 3)),
        "three": np.array(3.0),
        "pads": np.array([0, 0, 1, 0, 0, 0, 0, 1]),
    }
    nodes = [
        make_node(
            "Conv", ["x", "w1", "b1"], ["a"], strides=[2, 1], pads=[1, 1, 0, 2], name="conv1"
        ),
        make_node("BatchNormalization", ["a", "gamma", "beta", "mean", "variance"], ["b"]),
        make_node("Sigmoid", ["b"], ["c"]),
        make_node("Conv", ["c", "w2"], ["d"], group=2, auto_pad="SAME_UPPER", dilations=[2, 1]),
        make_node("Add", ["bias", "d"], ["e"]),
        make_node("Sub", ["e", "c"], ["f"]),
        make_node("Relu", ["f"], ["g"]),
        make_node("Pad", ["g", "pads"], ["g2"]),
        make_node("AveragePool", ["g2"], ["h"], kernel_shape=[2, 2], strides=[1, 1]),
        make_node("Slice", ["h", "starts", "ends", "axes", "steps"], ["i"]),
        make_node("GlobalAveragePool", ["g"], ["j"]),
        make_node("Mul", ["i", "j"], ["k"]),
        make_node("Concat", ["k", "i"], ["l"], axis=1),
        make_node("ReduceMean", ["l"], ["m"], axes=[2], keepdims=0),
        make_node("Transpose", ["m"], ["n"], perm=[0, 2, 1]),
        make_node("Reshape", ["n", "shape"], ["o"]),
        make_node("Flatten", ["o"], ["p"]),
        make_node("Tanh", ["p"], ["p2"]),
        make_node("Gemm", ["p2", "w3", "b3"], ["q"], transB=1, alpha=0.5),
        make_node("Mul", ["half", "q"], ["r"]),
        make_node("MatMul", ["r", "w4"], ["s"]),
        make_node("Pow", ["s", "three"], ["t"]),
        make_node("Unsqueeze", ["t", "one"], ["u"]),
        make_node("Identity", ["u"], ["y"]),
    ]
    x = rng.normal(size=(3, 2, 7, 4))
    model = onnx_model(nodes, constants, ("batch", 2, 7, 4))
    (want,) = ReferenceEvaluator(model).run(None, {"x": x})
    want = np.asarray(want)
    graph = trace(model, x)
    assert "conv1" in [node.name for node in graph]
    for stage in (graph, fold(graph)):
        got = execute(stage, x)[0].reshape(want.shape)
        assert np.allclose(got, want, rtol=1e-9, atol=1e-9)


def test_onnx_softmax_and_layer_normalisation(rng: np.random.Generator) -> None:
    pytest.importorskip("onnx")
    from onnx.helper import make_node
    from onnx.reference import ReferenceEvaluator

    constants = {"gamma": rng.normal(size=6), "beta": rng.normal(size=6)}
    nodes = [
        make_node("LayerNormalization", ["x", "gamma", "beta"], ["a"], axis=-1, epsilon=0.1),
        make_node("Softmax", ["a"], ["y"], axis=1),
    ]
    x = rng.normal(size=(3, 4, 6))
    model = onnx_model(nodes, constants, (None, 4, 6))
    want = np.asarray(ReferenceEvaluator(model).run(None, {"x": x})[0])
    assert np.allclose(execute(fold(trace(model, x)), x)[0], want, atol=1e-6)


def test_an_onnx_network_encrypted(rng: np.random.Generator, tmp_path: Path) -> None:
    """Convolution with a stride, square, mean and dense layer, from a file."""
    onnx = pytest.importorskip("onnx")
    from onnx.helper import make_node

    constants = {
        "w": rng.normal(size=(4, 1, 3, 3)) / 3,
        "b": rng.normal(size=4),
        "v": rng.normal(size=(4, 3)),
    }
    nodes = [
        make_node("Conv", ["x", "w", "b"], ["a"], strides=[2, 2], pads=[1, 1, 1, 1]),
        make_node("Mul", ["a", "a"], ["c"]),
        make_node("GlobalAveragePool", ["c"], ["d"]),
        make_node("Flatten", ["d"], ["e"]),
        make_node("MatMul", ["e", "v"], ["y"]),
    ]
    onnx.save(onnx_model(nodes, constants, ("n", 1, 12, 12)), tmp_path / "net.onnx")
    x = rng.random((60, 1, 12, 12))
    program = jali.compile(tmp_path / "net.onnx", x[:1], calibration=x, batch=4)
    assert program.params.depth == 3
    assert_precise(program, encrypted(program, x[:6]), program.clear(x[:6]))


@pytest.mark.parametrize(
    ("op", "attrs", "says"),
    [
        ("Hardmax", {}, "pool: Hardmax cannot be compiled.*let the client take it"),
        ("ArgMax", {}, "let the client take it"),
        ("Det", {}, "pool: Det cannot be compiled"),
        ("ReduceMean", {"axes": [0]}, "axis of the batch"),
    ],
)
def test_onnx_refusals_name_the_node(op: str, attrs: dict[str, Any], says: str) -> None:
    pytest.importorskip("onnx")
    from onnx.helper import make_node

    model = onnx_model([make_node(op, ["x"], ["y"], name="pool", **attrs)], {}, ("n", 2, 4, 4))
    with pytest.raises(jali.Unsupported, match=says):
        trace(model, np.zeros((1, 2, 4, 4)))


def test_files_that_are_no_models(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    (tmp_path / "net.onnx").write_bytes(b"nothing")
    for name, error, says in (
        ("net.onnx", jali.InvalidArgument, r"net\.onnx is no model in ONNX"),
        ("none.onnx", jali.FileError, r"none\.onnx cannot be read: No such file"),
        ("net.pt", jali.InvalidArgument, r"a path must end with \.onnx"),
    ):
        for example in (np.zeros((1, 4)), np.zeros(4)):  # whatever is wrong with the example, too
            with pytest.raises(error, match=says):
                trace(tmp_path / name, example)


# --- recorded graphs -----------------------------------------------------------------------------


def every_kind(rng: np.random.Generator) -> list[tuple[Graph, list[np.ndarray]]]:
    x, y = rng.normal(size=(2, 12)), rng.normal(size=(2, 3))
    cubed = trace(lambda v: (v**3)[::-1], np.zeros(4))
    return [
        (trace(function, (x[0], y[0])), [x, y]),
        (residual_network(rng), [rng.normal(size=(2, 2, 8, 8))]),
        (cubed, [rng.normal(size=(2, 4))]),
    ]


def test_recorded_graphs_are_the_same(rng: np.random.Generator) -> None:
    for graph, inputs in every_kind(rng):
        data = graph_file.to_bytes(graph)
        again = graph_file.from_bytes(data)
        assert str(again) == str(graph)
        assert graph_file.to_bytes(again) == data
        for a, b in zip(execute(graph, *inputs), execute(again, *inputs), strict=True):
            assert np.array_equal(a, b)
    with pytest.raises(jali.InvalidArgument, match="after 'fold'"):
        graph_file.to_bytes(fold(graph))


def test_recorded_graphs_are_compiled(rng: np.random.Generator) -> None:
    w, x = rng.normal(size=(3, 6)), rng.uniform(-1, 1, (40, 6))
    graph = graph_file.from_bytes(graph_file.to_bytes(trace(lambda v: np.square(w @ v), x[0])))
    program = jali.compile(graph, x[:1], calibration=x)
    assert_precise(program, encrypted(program, x[:3]), np.square(x[:3] @ w.T))


def changed(data: bytes, change: Any) -> bytes:
    """A file whose document was changed by someone who knows the format."""
    content, arrays = container.read("graph", data)
    change(content)
    return container.written("graph", content, arrays)


HOSTILE: list[Any] = [
    lambda c: c.pop("nodes"),
    lambda c: c.update(nodes=5),
    lambda c: c.update(outputs=["nothing"]),
    lambda c: c.update(outputs=[]),
    lambda c: c["nodes"][0].update(op="system"),
    lambda c: c["nodes"][0].update(name=""),
    lambda c: c["nodes"][0]["attrs"].update(shape=[-1]),
    lambda c: c["nodes"][0]["attrs"].update(shape=[1 << 40]),
    lambda c: c["nodes"][0]["attrs"].update(shape=[1 << 20, 1 << 20]),
    lambda c: c["nodes"][0]["attrs"].update(shape="12"),
    lambda c: c["nodes"][0]["attrs"].update(extra=1),
    lambda c: c["nodes"][1].update(inputs=["later"]),
    lambda c: c["nodes"][1].update(inputs=[["x"]]),
    lambda c: c["nodes"][1]["attrs"].update(weight={"array": 99}),
    lambda c: c["nodes"][1]["attrs"].update(weight={"array": "0"}),
    lambda c: c["nodes"][1]["attrs"].update(weight=None),
    lambda c: c["nodes"][1]["attrs"].update(weight=3),
    lambda c: c["nodes"][1]["attrs"].update(padding=[[1 << 30, 0], [0, 0]]),
    lambda c: c["nodes"][1]["attrs"].update(stride=[0, 0]),
    lambda c: c["nodes"][1]["attrs"].update(groups=0),
    lambda c: c["nodes"][1]["attrs"].update(groups=1e9),
    lambda c: c["nodes"].append(c["nodes"][1]),
]


@pytest.mark.parametrize("k", range(len(HOSTILE)))
def test_hostile_graphs_are_refused(k: int, rng: np.random.Generator) -> None:
    data = graph_file.to_bytes(residual_network(rng))
    with pytest.raises(jali.CorruptData):
        graph_file.from_bytes(changed(data, HOSTILE[k]))


def test_what_could_not_be_read_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    content = {"text": "x" * 1000}
    data = container.written("graph", content, [])
    assert container.read("graph", data)[0] == content
    monkeypatch.setattr(container, "_MAX_DOCUMENT", 1000)
    with pytest.raises(jali.LimitExceeded, match="smaller inputs"):
        container.written("graph", content, [])


def test_damaged_files_are_refused(rng: np.random.Generator) -> None:
    data = graph_file.to_bytes(residual_network(rng))
    for _ in range(200):
        damaged = bytearray(data)
        if rng.random() < 0.3:
            damaged = damaged[: rng.integers(len(data))]
        else:
            damaged[rng.integers(len(data))] ^= 1 << rng.integers(8)
        with pytest.raises(jali.Error):
            graph_file.from_bytes(bytes(damaged))
    with pytest.raises(jali.LimitExceeded):
        graph_file.from_bytes(data, max_bytes=100)
    with pytest.raises(jali.CorruptData, match="a recorded graph, not a manifest"):
        nn.Manifest.from_bytes(data)


def test_documents_that_are_no_documents() -> None:
    for document in (
        b"",
        b"[]",
        b"{",
        b'{"nodes": NaN}',
        b"[" * 100_000,
        b'{"nodes": []}',
        b"\xff",
    ):
        with pytest.raises(jali.CorruptData):
            graph_file.from_bytes(lies.of_document("graph", document))
    deep: Any = 1
    for _ in range(40):
        deep = [deep]
    with pytest.raises(jali.CorruptData):
        graph_file.from_bytes(container.written("graph", {"nodes": [{"attrs": deep}]}, []))


def test_arrays_that_are_none_are_refused() -> None:
    one = np.float64(1).tobytes()
    for arrays in (
        b"",
        b"\1\0\0\0",
        b"\1\0\0\0" + b"\0" + one[:7],
        b"\1\0\0\0" + b"\0" + one + b"\0",
        b"\xff\xff\xff\xff" + b"\0" + one,
        b"\1\0\0\0" + b"\1" + bytes(4),
        b"\1\0\0\0" + b"\1" + b"\2\0\0\0" + one,
        b"\1\0\0\0" + b"\2" + b"\xff" * 8 + one,
        b"\1\0\0\0" + b"\11" + b"\1\0\0\0" * 9 + one,
        b"\1\0\0\0" + b"\0" + np.float64(np.nan).tobytes(),
        b"\1\0\0\0" + b"\0" + np.float64(np.inf).tobytes(),
    ):
        with pytest.raises(jali.CorruptData, match="cannot read a recorded graph: "):
            graph_file.from_bytes(lies.of_document("graph", b"[]", arrays))


def test_manifests_of_hostile_servers_are_refused(rng: np.random.Generator) -> None:
    w, x = rng.normal(size=(3, 6)), rng.uniform(-1, 1, (40, 6))
    manifest = jali.compile(lambda v: w @ v, x[0], calibration=x).manifest
    slots = manifest.params.slots // manifest.lanes

    def grid(shape: Any, period: int = 8, gap: int = 1, sizes: Any = ()) -> lies.Lie:
        layout = _program.Layout.grid(shape, slots, period, gap, sizes)
        return lies.port("inputs", layout=layout)

    for lie in (
        lies.manifest(lanes=1 << 30),
        lies.demand(rotations={1: 99}),
        lies.demand(product=-1 & 0xFFFF),
        grid([1 << 24, 4]),
        grid([6], sizes=[3]),
        grid([6], period=4),
        grid([6], period=0),
        grid([6], period=1),
        grid([6], gap=0),
        lies.port("inputs", layout=_program.Layout.gathered([6], slots, np.zeros(slots, np.int32))),
        lies.port("inputs", rms=0.0),
        lies.port("inputs", peak=-1.0),
    ):
        with pytest.raises(jali.CorruptData):
            nn.Manifest.from_bytes(lie(manifest).to_bytes())


def test_programs_are_saved_and_loaded(rng: np.random.Generator, tmp_path: Path) -> None:
    """A client of the program as it was compiled goes on working with the program that was
    loaded."""
    x = rng.uniform(-1, 1, (60, 2, 8, 8))
    for graph in (residual_network(rng), trace(lambda v: np.tanh(v[0]).sum(axis=0), x[0])):
        program = jali.compile(graph, x[:1], calibration=x, batch=2, precision_bits=8)
        program.save(tmp_path / "program.jali")
        program.manifest.save(tmp_path / "manifest.jali")
        again = nn.Program.load(tmp_path / "program.jali")
        assert again.to_bytes() == program.to_bytes()
        for stage in program.stages:
            assert again.explain(stage) == program.explain(stage)
        client = nn.Client(nn.Manifest.load(tmp_path / "manifest.jali"), threads=1)
        server = again.server(client.evaluation_keys(), threads=1)
        assert_precise(program, client.decrypt(server(client.encrypt(x[:3]))), program.clear(x[:3]))
    with pytest.raises(jali.FileError):
        nn.Program.load(tmp_path / "nothing")
    with pytest.raises(jali.FileError):
        program.save(tmp_path / "no" / "folder")
    with pytest.raises(jali.CorruptData, match="a manifest, not a compiled program"):
        nn.Program.load(tmp_path / "manifest.jali")


def test_hostile_programs_are_refused(rng: np.random.Generator) -> None:
    w, x = rng.normal(size=(3, 6)), rng.uniform(-1, 1, (40, 6))
    program = jali.compile(lambda x: np.square(w @ x), x[0], calibration=x)
    content, arrays = container.read("program", program.to_bytes())

    def changed(change: Any) -> bytes:
        copy = json.loads(json.dumps(content))
        change(copy)
        return container.written("program", copy, arrays)

    for change in (
        lambda c: c.pop("graph"),
        lambda c: c.update(error=0),
        lambda c: c.update(memory=-1),
        lambda c: c.update(device="tpu"),
        lambda c: c.update(device=["cpu"]),
        lambda c: c["costs"].update(made=-1),
        lambda c: c.update(precision_bits=99),
        lambda c: c.update(manifest=[1, 2, 3]),
        lambda c: c.update(manifest="0102zz"),
        lambda c: c.update(manifest="010203"),
        lambda c: c["ranges"].pop("x"),
        lambda c: c["ranges"]["x"].pop("low"),
        lambda c: c["ranges"]["x"].update(low=c["ranges"]["x"]["high"]),
        lambda c: c["ranges"]["x"].update(low={"array": 0}),
        lambda c: c["ranges"]["x"].update(largest=0),
        lambda c: c["ranges"]["x"].update(proven=1),
    ):
        with pytest.raises(jali.CorruptData):
            nn.Program.from_bytes(changed(change))
    other = jali.compile(lambda v: w @ v, x[0], calibration=x).manifest
    with pytest.raises(
        jali.CorruptData, match=r"levels: entry .: must be a whole number from 0 to 1"
    ):
        nn.Program.from_bytes(changed(lambda c: c.update(manifest=other.to_bytes().hex())))
    other = jali.compile(lambda x: np.square(w @ x), x[0], calibration=3 * x).manifest
    with pytest.raises(jali.VersionError, match="compile the model again"):
        nn.Program.from_bytes(changed(lambda c: c.update(manifest=other.to_bytes().hex())))
