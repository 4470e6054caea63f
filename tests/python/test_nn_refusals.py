"""What a newcomer does wrong with jali.compile, and the sentence that says what to do instead.
Modules of PyTorch: test_nn_torch_refusals.py."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jali
from jali import _jali, nn

WEIGHTS = np.linspace(-1, 1, 12).reshape(2, 6)
X = np.random.default_rng(2).uniform(-1, 1, (60, 6))


def network(x: Any) -> Any:
    return np.square(WEIGHTS @ x)


def compiled(**options: Any) -> nn.Program:
    options = {"example": X[0], "calibration": X, "precision_bits": 6} | options
    return jali.compile(options.pop("module", network), options.pop("example"), **options)


@pytest.fixture(scope="module")
def served() -> tuple[nn.Program, nn.Client, nn.Server]:
    program = compiled()
    client = program.client(threads=1)
    return program, client, program.server(client.evaluation_keys(), threads=1)


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a path of PyTorch": (lambda: compiled(module="net.pt"), r"net\.pt: a path must end with \.onnx. Load what"),
    "a path of nothing": (lambda: compiled(module="net.onnx", example=X[:1]), r"(net\.onnx cannot be read: No such file|pip install onnx)"),
    "a path of nothing, one example": (lambda: compiled(module="net.onnx"), r"(net\.onnx cannot be read: No such file|pip install onnx)"),
    "weights alone": (lambda: compiled(module={"w": 1}), "a dict cannot be compiled: give a module"),
    "a class": (lambda: compiled(module=nn.Client), "Client is a class: give an object of it"),
    "a number": (lambda: compiled(module=3), "an int cannot be compiled: give a module"),
    "an example of text": (lambda: compiled(example="hello"), "an example is an array of real numbers"),
    "no example": (lambda: compiled(example=None), "example is missing: give arrays as the model takes them"),
    "complex numbers": (lambda: compiled(example=1j * X[0]), "an example is an array of real numbers"),
    "an example of other features": (lambda: compiled(example=X[0, :5]), "matrix has 6 columns, .* shape \\(5,\\)"),
    "a calibration of other features": (lambda: compiled(calibration=X[:, :5]), r"takes examples of the shape \(6,\)"),
    "a calibration that is a number": (lambda: compiled(calibration=5), "calibration is an array of examples, a tuple"),
    "a calibration that is a path": (lambda: compiled(calibration="x.npy"), "calibration is an array of examples"),
    "batches by name": (lambda: compiled(calibration=[{"x": X}]), "is a dict of x: give a tuple of arrays"),
    "an empty calibration": (lambda: compiled(calibration=[]), "the calibration holds no example"),
    "NaN in the calibration": (lambda: compiled(calibration=np.where(X > 0.9, np.nan, X)), "x holds NaN or infinity: replace"),
    "NaN in the weights": (lambda: compiled(module=lambda x: (WEIGHTS * np.nan) @ x), "matmul: its weight holds NaN or infinity: train"),
    "NaN in the example": (lambda: compiled(example=X[0] * np.nan), "the example holds NaN or infinity: replace"),
    "infinity in one of two examples": (
        lambda: compiled(module=lambda x, y: x + y, example=(X[0], X[0] * np.inf), calibration=(X, X)),
        "the example holds NaN or infinity: replace",
    ),
    "a device by its maker": (lambda: compiled(device="gpu"), 'device is "cpu" or "cuda"'),
    "memory without a unit": (lambda: compiled(memory="lots"), 'memory must be a whole number of bytes, or text such as "1.5 GB"'),
    "a batch that is no power of two": (lambda: compiled(batch=10), "batch must be a power of two"),
    "more bits than there are": (lambda: compiled(precision_bits=60), "precision_bits must be a number from 1 to 40"),
    "a range that is a number": (lambda: compiled(input_range=5), r"input_range is \(low, high\)"),
    "a range of text": (lambda: compiled(input_range=("low", "high")), r"input_range is \(low, high\)"),
    "a range that is too small": (lambda: compiled(input_range=(0, 0.1)), "lie outside of the range that was declared for x"),
    "probabilities of a function": (lambda: compiled(output="probability"), "for classifiers of scikit-learn: end the model"),
    "an output that there is not": (lambda: compiled(output="classes"), 'output is "logits" or "probability"'),
    "two arguments, one array": (lambda: compiled(module=lambda x, y: x + y), "one array for each array of the example"),
    "one argument, two arrays": (lambda: compiled(example=(X[0], X[0])), "one array for each array of the example"),
    "two arrays, calibrated with one": (
        lambda: compiled(module=lambda x, y: x + y, example=(X[0], X[0])),
        "the model takes 2 arrays, and a batch of the calibration has 1",
    ),
    "an axis that there is not": (lambda: compiled(module=lambda x: x.sum(axis=1)), "axis 1 is out of range for an array of 1 axis"),
    "an axis by its name": (lambda: compiled(module=lambda x: np.mean(x, axis="rows")), "an axis must be a whole number"),
    "one axis twice": (lambda: compiled(module=lambda x: x.reshape(2, 3).transpose(0, 0)), "an axis is named twice"),
    "too few axes": (lambda: compiled(module=lambda x: x.reshape(2, 3).transpose(0)), "2 axes: name each of them once"),
    "stacked along no axis": (lambda: compiled(module=lambda x: np.stack([x, x], axis=2)), "axis 2 is out of range"),
    "joined along no axis": (lambda: compiled(module=lambda x: np.concatenate([x, x], axis=1)), "axis 1 is out of range"),
    "a shape of other size": (lambda: compiled(module=lambda x: x.reshape(7)), r"x has the shape \(6,\), which is not"),
    "a place beyond the end": (lambda: compiled(module=lambda x: x[9]), "x: index 9 is out of bounds"),
    "the largest number": (lambda: compiled(module=lambda x: x.argmax()), r"does not see which number is the larger: return"),
    "a variance": (lambda: compiled(module=lambda x: x.var()), "write .*mean"),
    "whole numbers": (lambda: compiled(module=lambda x: x.astype(int)), "encrypted real ones: leave it out"),
    "hidden numbers": (lambda: compiled(calibration=np.ma.array(X, mask=X > 0)), "masked entries: fill them first"),
    "a range of other features": (lambda: compiled(input_range=(np.zeros(5), np.ones(5))), r"ends of the shapes \(5,\) and"),
    "an equality": (lambda: compiled(module=lambda x: x == 0), r"x: whether encrypted numbers are equal .*numpy\.abs\(a - b\) < d"),
    "a branch": (lambda: compiled(module=lambda x: 1.0 if x[0] > 0 else x), r"^a condition needs the numbers .*numpy\.where\(x > 0, a, b\)"),
    "a sum of conditions": (lambda: compiled(module=lambda x: (x > 0) + (x > 0.5)), r"^a sum of conditions: write a \| b, or a \* 1\.0 \+ b"),
    "a shape of a part": (lambda: compiled(module=lambda x: x[:4].reshape(3)), r"^an array has the shape \(4,\), which is not"),
    "a place beyond the end of a part": (lambda: compiled(module=lambda x: x[:4][5]), "^index 5 is out of bounds"),
    "a function of another module": (lambda: compiled(module=np.linalg.norm), r"^x: numpy\.linalg\.norm cannot be compiled: write"),
    "a condition": (lambda: compiled(module=lambda x: x if x.sum() else -x), "a condition needs the numbers"),
    "an unknown function": (lambda: compiled(module=np.sin), r"numpy\.sin cannot be compiled: write jali\.nn\.scalar\.polynomial.*There are"),
    "a result in the clear": (lambda: compiled(module=lambda x: 3), "returned 3, which does not depend on its arguments"),
    "a batch for a function": (lambda: compiled(example=X[:1]), r"the shape \(6, 1\)\. If the first axis of the example is the batch, give example\[0\]"),
    "a batch for a function that takes one": (
        lambda: compiled(module=lambda x: x * 2.0, example=X[:1]),
        r"has the shape \(1, 6\), and those of the calibration have \(6,\)\. If the first axis",
    ),
    "arrays that do not fit": (
        lambda: compiled(module=lambda x, y: x * y, example=(X[0], X[0, :4]), calibration=(X, X[:, :4])),
        r"arrays of the shapes \(6,\) and \(4,\) do not fit each other: make",
    ),
    "several results by name": (lambda: compiled(module=lambda x: {"y": 2 * x}), "returned a dict: return an array, or several in a tuple"),
    "a remainder": (lambda: compiled(module=lambda x: x % 2), "x: a remainder: steps are no polynomials: .* client"),
    "a whole part": (lambda: compiled(module=lambda x: x // 2), "x: a division to whole numbers: steps are no polynomials"),
    "a number that is replaced": (lambda: compiled(module=replacing), r"x: an array that is traced never changes: write .*numpy\.concatenate"),
    "a result that is 0": (lambda: compiled(module=lambda x: x - x), "the output add is 0 for all examples of the calibration, .*give examples"),
    "one of two results that is 0": (lambda: compiled(module=lambda x: (2 * x, x - x)), "the output add is 0 for all"),
    "results that are too small": (lambda: compiled(module=lambda x: 1e-30 * x), "output scale are at most 9.9.?e-31 .*multiply them by a constant"),
    "numbers whose squares are too large": (lambda: compiled(calibration=1e160 * X), "^x: some examples .* numbers above 1e.100 here: divide"),
    "rows of different lengths": (lambda: compiled(calibration=[[1.0, 2.0], [3.0]]), "rows of an example differ in length: give"),
    "numbers as objects": (lambda: compiled(example=X[0].astype(object)), "array of real numbers, .*not an array of object$"),
    "the device of a server": (lambda: compiled(device="cuda:0"), "the kind that the plan is for, .*device= of the server"),
    "a number with a point for memory": (lambda: compiled(memory=1e9), "memory must be a whole number of bytes"),
    "an array for a model": (lambda: compiled(module=WEIGHTS), "an ndarray cannot be compiled: give a module"),
    "a logarithm below zero": (lambda: compiled(module=np.log), "log: some examples of the calibration give NaN"),
    "a logarithm of zero": (lambda: compiled(module=np.log, calibration=np.maximum(X, 0)), "log: .* NaN or infinity here"),
    "a logarithm that may be below zero": (
        lambda: compiled(module=np.log, calibration=np.abs(X) + 0.1, input_range=(-1, 99)),
        r"holds 0, for which a function in the model has no value: declare one that lies above 0",
    ),
    "a model that is too deep": (
        lambda: compiled(module=deep, precision_bits=30),
        "levels at a scale of .* Ask for fewer precision_bits",
    ),
}  # fmt: skip


def replacing(x: Any) -> Any:
    x[0] = 0.0
    return x


def deep(x: Any) -> Any:
    for _ in range(30):
        x = nn.scalar.sigmoid(x)
    return x


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_in_a_sentence(name: str) -> None:
    wrong, says = WRONG[name]
    with pytest.raises(jali.Error, match=says) as refused:
        wrong()
    assert len(str(refused.value).split()) > 5  # a sentence


def test_numbers_of_numpy_are_numbers() -> None:
    program = compiled(precision_bits=np.int64(6), margin=np.float32(0.5), batch=np.int8(2))
    assert np.array_equal(
        program.simulate(X, rng=5), program.simulate(X, rng=np.random.default_rng(5))
    )
    assert program.precision_bits == 6 and program.manifest.lanes == 2


USED_WRONGLY: dict[str, tuple[Callable[[Any, Any, Any], Any], str]] = {
    "numbers out of range": (
        lambda p, c, s: c.encrypt(100 * X),
        r"x\[0\] of example 0 is .*for which the program was calibrated, .* input_range=",
    ),
    "other features": (lambda p, c, s: c.encrypt(X[:, :5]), r"x takes examples of the shape \(6,\)"),
    "NaN": (lambda p, c, s: c.encrypt(X * np.nan), "x holds NaN or infinity"),
    "text": (lambda p, c, s: c.encrypt("a"), "x takes real numbers"),
    "no example": (lambda p, c, s: c.encrypt(X[:0]), "x takes examples of the shape"),
    "clear numbers for the server": (lambda p, c, s: s(X), "takes a Message, not ndarray"),
    "bytes for the server": (lambda p, c, s: s(c.encrypt(X[:1]).to_bytes()), r"not bytes: Message\.request reads"),
    "a request decrypted": (lambda p, c, s: c.decrypt(c.encrypt(X[:1])), "is a request: give it to the server"),
    "a request's bytes decrypted": (
        lambda p, c, s: nn.Message.reply(c.encrypt(X[:1]).to_bytes(), p.manifest),
        "is a request: give it to the server",
    ),
    "a reply served": (lambda p, c, s: s(s(c.encrypt(X[:1]))), "is a server's reply: give the server what"),
    "a reply's bytes served": (
        lambda p, c, s: nn.Message.request(s(c.encrypt(X[:1])).to_bytes(), p.manifest),
        "is a server's reply: give the server what",
    ),
    "another client's reply": (lambda p, c, s: p.client(threads=1).decrypt(s(c.encrypt(X[:1]))), "another secret key"),
    "a client for keys": (lambda p, c, s: p.server(c), "EvaluationKeys, not Client"),
    "no keys": (lambda p, c, s: p.server(None), r"EvaluationKeys, not NoneType: a client's evaluation_keys\(\) makes them"),
    "the bytes of keys": (lambda p, c, s: p.server(b""), "EvaluationKeys.from_bytes reads bytes"),
    "a device that there is not": (lambda p, c, s: p.server(c.evaluation_keys(), device="tpu"), 'unknown device "tpu": use'),
    "a client of text": (lambda p, c, s: nn.Client("abc"), "made from a Manifest, not from a str"),  # type: ignore[arg-type]
    "too many arrays": (lambda p, c, s: p.simulate(X, X), "takes 1 array, and was given 2"),
    "a stage that there is not": (lambda p, c, s: p.explain("assembly"), "the stages are trace, simplify, fold"),
    "a picture of another kind": (lambda p, c, s: p.plot("plan.xyz"), r"a picture's name ends with \.png"),
    "masked numbers": (lambda p, c, s: c.encrypt(np.ma.array(X, mask=X > 0)), "x have masked entries: fill them first"),
    "a number for a secret": (lambda p, c, s: p.client(secret=3), r"secret must be a ckks\.Client, not int"),
    "nothing for bytes": (lambda p, c, s: nn.Program.from_bytes(None), "data must be bytes, not NoneType"),  # type: ignore[arg-type]
    "a path for bytes": (lambda p, c, s: nn.Manifest.from_bytes("m"), r"not str\. Open files with load\(path\)"),  # type: ignore[arg-type]
    "a seed of text": (lambda p, c, s: p.simulate(X, rng="seed"), "rng is a generator of NumPy or a seed, not 'seed'"),
    "a file that is open": (lambda p, c, s: p.save(io.BytesIO()), r"named by its path, not by a BytesIO: to_bytes\(\)"),
    "no file": (lambda p, c, s: nn.Program.load(None), "named by its path, not by a NoneType"),  # type: ignore[arg-type]
    "a picture in a number": (lambda p, c, s: p.plot(3), "path is where the picture is saved, or None, not 3"),
    "numbers as objects": (lambda p, c, s: c.encrypt(X.astype(object)), r"an array of object: convert it, for example by astype\(float\)"),
    "a program that predicts": (lambda p, c, s: p.predict(X), "a server runs a program: .*program.clear"),
    "a program that encrypts": (lambda p, c, s: p.encrypt(X), "client = program.client"),
    "a program that is scored": (lambda p, c, s: p.score(X, X), "program.simulate"),
    "keys of a client": (lambda p, c, s: c.keys, "client.evaluation_keys"),
    "a client that is saved": (lambda p, c, s: c.save("c"), "client.secret.save"),
    "a server that predicts": (lambda p, c, s: s.predict(X), "write server.request., with request = client.encrypt"),
    "a server that decrypts": (lambda p, c, s: s.decrypt(X), "a server has no secret key"),
    "a message in a file": (lambda p, c, s: c.encrypt(X[:1]).save("m"), "message.to_bytes.. gives bytes"),
    "the numbers of a message": (lambda p, c, s: c.encrypt(X[:1]).numpy(), "its numbers are encrypted: client.decrypt"),
    "a layer": (lambda p, c, s: nn.Linear(3, 4), "jali.nn has no Linear: layers are those of torch.nn"),
    "a function of numbers": (lambda p, c, s: nn.sigmoid(X), "no sigmoid: it is in jali.nn.scalar"),
    "a name that nothing has": (lambda p, c, s: nn.frobnicate, r"jali.nn has no frobnicate: dir\(jali.nn\) lists"),
    "a program that nn loads": (lambda p, c, s: nn.load("p"), "nn.Program.load"),
    "a file that is not there": (lambda p, c, s: nn.Program.load("none.jali"), "cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("name", USED_WRONGLY)
def test_programs_say_how_they_are_used(name: str, served: Any) -> None:
    wrong, says = USED_WRONGLY[name]
    with pytest.raises(jali.Error, match=says):
        wrong(*served)


def test_a_gpu_that_is_not_there(served: Any) -> None:
    program, client, _ = served
    if _jali.device.cuda_device_count():
        pytest.skip("there is a GPU")
    for use in (
        lambda: program.summary("cuda"),
        lambda: program.server(client.evaluation_keys(), device="cuda"),
    ):
        with pytest.raises(jali.NoDevice, match=r'device="cpu"|no .*GPU'):
            use()


@pytest.mark.parametrize(
    ("package", "use"),
    [
        ("onnx", lambda: jali.compile(Path("net.onnx"), X[:1])),
        ("matplotlib", lambda: compiled().plot()),
    ],
)
def test_packages_that_are_not_there(
    package: str, use: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in sys.modules if n.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(jali.Unsupported, match=f"pip install {package}"):
        use()


def test_inputs_without_use_are_warned_of() -> None:
    for unused in (lambda x, y: network(x), lambda x, y: (network(x), y.sum() * x)[0]):
        with pytest.warns(
            UserWarning, match="no result depends on y, which clients encrypt"
        ) as told:
            program = compiled(module=unused, example=(X[0], X[0]), calibration=(X, X))
        assert [w.filename for w in told] == [__file__]
        assert np.array_equal(program.clear(X, X), program.clear(X, 2 * X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(module=lambda x, y: (network(x), y), example=(X[0], X[0]), calibration=(X, X))


@pytest.mark.filterwarnings("ignore:memory=")
def test_one_example_is_warned_of_and_little_memory_is_enough() -> None:
    with pytest.warns(UserWarning, match="calibrated with 1 example, which says little"):
        program = compiled(calibration=None, memory="1 KB")
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1)
    got = client.decrypt(server(client.encrypt(X[0])))
    assert np.abs(got - network(X[0])).max() < 2**-6 * np.abs(network(X[0])).max()


def test_models_are_compiled_and_not_their_methods() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    model = linear.LogisticRegression().fit(X, X[:, 0] > 0)
    for method, says in (
        ("predict", "Regression, not its method predict"),
        ("predict_proba", 'and output="probability", not'),
    ):
        with pytest.raises(jali.InvalidArgument, match=says):
            compiled(module=getattr(model, method), example=X[:1])


def test_a_file_without_operators_is_no_model(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    path = tmp_path / "net.onnx"
    path.write_bytes(b"")
    with pytest.raises(jali.InvalidArgument, match="is no model in ONNX: it has no operators"):
        compiled(module=path, example=X[:1])


def test_lists_of_numbers_are_examples() -> None:
    assert compiled(calibration=X.tolist()).to_bytes() == compiled().to_bytes()
    two = [(X[:30], X[:30]), [X[30:], X[30:]]]  # with labels
    assert compiled(calibration=two).to_bytes() == compiled().to_bytes()


def test_little_memory_is_warned_of_where_the_model_is_compiled() -> None:
    with pytest.warns(UserWarning, match="no room") as told:
        compiled(memory=10)
    assert __file__ in [w.filename for w in told]
