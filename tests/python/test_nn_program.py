"""Compiled programs on ciphertexts, against the model in the clear. test_nn_roles.py has what
client and server exchange and refuse."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from test_nn_graph import convolution, residual_network

import jali
from jali import nn
from jali.compiler.cost.keys import plain_bytes
from jali.compiler.ir.execute import every_value
from jali.compiler.ir.graph import Graph
from jali.compiler.ir.operation import Input
from jali.compiler.ir.traced_ops import made
from jali.compiler.layout.lowered_ops import equal_work
from jali.compiler.passes import approximate
from jali.compiler.passes.approximate import NOISE_SHARE
from jali.compiler.passes.execute_approximated import expected
from jali.compiler.runtime import interpreter
from jali.nn import scalar


def perceptron(rng: np.random.Generator, activation: Any, n: int = 10) -> Any:
    a, b = rng.normal(size=(16, n)) / n**0.5, rng.normal(size=(3, 16)) / 4
    return lambda x: b @ activation(a @ x + 0.1) - 0.2


def encrypted(program: nn.Program, *inputs: Any) -> Any:
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1)
    return client.decrypt(server(client.encrypt(*inputs)))


def assert_precise(program: nn.Program, got: Any, want: Any) -> None:
    """No number is off by more than was promised, in units of the largest output of the
    calibration."""
    largest = program.stages["calibrate"][program.stages["calibrate"].outputs[0]].attrs["largest"]
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= 2.0**-program.precision_bits * largest


@pytest.mark.parametrize(
    ("activation", "bits"),
    [(np.square, 16), (scalar.sigmoid, 10), (np.tanh, 8), (scalar.relu, 5), (scalar.silu, 10)],
)
def test_perceptrons(activation: Any, bits: float, rng: np.random.Generator) -> None:
    f, x = perceptron(rng, activation), rng.uniform(-1, 1, (300, 10))
    program = jali.compile(f, x[0], calibration=x, precision_bits=bits, batch=4)
    want = np.stack([f(v) for v in x])
    assert np.allclose(program.clear(x), want)
    assert_precise(program, encrypted(program, x[:7]), want[:7])


def test_approximations_keep_the_promise_on_every_example_of_a_small_model(
    rng: np.random.Generator,
) -> None:
    """The examples with the largest numbers are those that a choice of 256 leaves out."""
    f, x = perceptron(rng, scalar.sigmoid), rng.uniform(-0.05, 0.05, (300, 10))
    left_out = np.setdiff1d(np.arange(300), np.linspace(0, 299, 256).astype(int))
    x[left_out] *= 60
    program = jali.compile(f, x[0], calibration=x, precision_bits=9)
    (got,) = expected(program.stages["trace"], program.stages["approximate"], [x])
    want = np.stack([f(v) for v in x])
    largest = program.stages["calibrate"][program.stages["calibrate"].outputs[0]].attrs["largest"]
    assert np.abs(got - want).max() <= (1 - NOISE_SHARE) * 2.0**-9 * largest


@pytest.mark.parametrize("n", [3, 4, 12])
def test_sums_of_what_is_not_0_at_0(n: int, rng: np.random.Generator) -> None:
    """A softmax of n numbers. Between these, and behind exp, the slots hold ones, which a sum over
    all slots would count."""
    w, v = rng.normal(size=(n, 6)) / 4, rng.normal(size=(n, n)) / 4

    def softmax(x: Any) -> Any:
        e = np.exp(v @ np.tanh(w @ x))
        return e * scalar.inverse(e.sum())

    x = rng.uniform(-1, 1, (100, 6))
    program = jali.compile(softmax, x[0], calibration=x, precision_bits=8, batch=16)
    assert_precise(program, encrypted(program, x[:32]), np.stack([softmax(v) for v in x[:32]]))


def test_one_example_has_no_axis_of_the_batch(rng: np.random.Generator) -> None:
    f, x = perceptron(rng, np.square), rng.uniform(-1, 1, (50, 10))
    program = jali.compile(f, x[0], calibration=x)
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1)
    assert client.decrypt(server(client.encrypt(x[0]))).shape == (3,)
    assert client.decrypt(server(client.encrypt(x[:1]))).shape == (1, 3)


def test_arrays_of_several_ciphertexts(rng: np.random.Generator) -> None:
    """An input of 100 numbers and 64 hidden ones, in lanes of fewer slots."""
    a, b = rng.normal(size=(64, 100)) / 10, rng.normal(size=(3, 64)) / 8
    x = rng.uniform(-1, 1, (100, 100))
    f = lambda v: b @ np.square(a @ v)  # noqa: E731
    program = jali.compile(f, x[0], calibration=x, batch=256)
    slots = program.params.slots // 256
    assert program.manifest.inputs[0].layout.ciphertexts == -(-100 // slots) > 1
    assert_precise(program, encrypted(program, x), np.square(x @ a.T) @ b.T)


@pytest.mark.parametrize("most", [1, 8])
def test_equal_work_of_ciphertexts_is_done_at_once(
    most: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every row of an array is multiplied with one matrix, which is encoded once; recorded or not,
    and for a batch of ciphertexts."""
    monkeypatch.setattr(interpreter, "_ON_A_CPU", most)
    w = rng.normal(size=(8, 8)) / 3
    x = rng.uniform(-1, 1, (40, 50, 8))
    f = lambda v: np.square(v @ w.T)[3] + 0.5 * v.sum(axis=0)  # noqa: E731
    program = jali.compile(f, x[0], calibration=x, batch=64)
    slots = program.params.slots // 64
    made = [n for n in program.stages["levels"] if n.op == "transform" and n.attrs["terms"]]
    widest = max(made, key=lambda n: n.attrs["layout"].ciphertexts)
    count = widest.attrs["layout"].ciphertexts
    (term,) = widest.attrs["terms"]
    assert count == -(-400 // slots) > 1 and len(equal_work(widest, range(count))) < count
    own = program._interpreter()
    assert len(term.digests) == count > len(set(term.digests.values()))
    each = plain_bytes(program.params, widest.attrs["level"] + 1)
    kinds = {digest: pair for pair, digest in term.digests.items()}
    encoded = sum(len(term.diagonals[pair]) for pair in kinds.values())
    assert own.encoded_bytes[widest.name] < 2 * each * encoded < each * term.count
    client = program.client(threads=1)
    keys = client.evaluation_keys()
    for capture in (False, True):
        server = program.server(keys, threads=1, device="cpu", capture=capture)
        for n in (1, 100):
            examples = np.resize(x, (n, 50, 8))
            got = client.decrypt(server(client.encrypt(examples)))
            assert_precise(program, got, np.stack([f(v) for v in examples]))


def test_images_with_branches(rng: np.random.Generator) -> None:
    x = rng.uniform(-1, 1, (100, 2, 8, 8))
    program = jali.compile(residual_network(rng), x[:1], calibration=x, batch=2)
    assert_precise(program, encrypted(program, x[:3]), program.clear(x[:3]))


def test_two_inputs_and_two_outputs(rng: np.random.Generator) -> None:
    w = rng.normal(size=(6, 4))
    x, y = rng.uniform(-1, 1, (40, 4)), rng.uniform(0, 2, (40, 6))
    f = lambda x, y: ((w @ x) * y, np.exp(x).sum() + y[0])  # noqa: E731
    program = jali.compile(f, (x[0], y[0]), calibration=(x, y), batch=2)
    first, second = encrypted(program, x[:5], y[:5])
    want = [np.stack(v) for v in zip(*map(f, x[:5], y[:5]), strict=True)]
    assert np.abs(first - want[0]).max() < 2.0**-10 * 10
    assert np.abs(second - want[1]).max() < 2.0**-10 * 10


def test_damaged_bytes_are_refused(rng: np.random.Generator) -> None:
    f, x = perceptron(rng, np.square), rng.uniform(-1, 1, (50, 10))
    program = jali.compile(f, x[0], calibration=x, batch=4)
    manifest = program.manifest.to_bytes()
    message = program.client(threads=1).encrypt(x[:2]).to_bytes()
    for _ in range(60):
        for data, load in (
            (manifest, nn.Manifest.from_bytes),
            (message, lambda b: nn.Message.request(b, program.manifest)),
        ):
            damaged = bytearray(data)
            if rng.random() < 0.5:
                damaged = damaged[: rng.integers(len(data))]
            else:
                damaged[rng.integers(min(len(data), 4000))] ^= 1 << rng.integers(8)
            try:
                load(bytes(damaged))
            except jali.Error:
                continue
            # Not every bit of a message is checked: how many examples it holds may change within a
            # ciphertext.
            assert load is not nn.Manifest.from_bytes


def test_an_example_alone_is_warned_of(rng: np.random.Generator) -> None:
    f, x = perceptron(rng, np.square), rng.uniform(-1, 1, (50, 10))
    with pytest.warns(UserWarning, match="with 1 example,") as seen:
        jali.compile(f, x[0])
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jali.compile(f, x[0], calibration=[(x[:25], np.zeros(25)), (x[25:], np.ones(25))])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"precision_bits": 0}, "precision_bits"),
        ({"precision_bits": "10"}, "precision_bits"),
        ({"batch": 3}, "power of two"),
        ({"batch": 0}, "power of two"),
        ({"device": "gpu"}, "device"),
        ({"memory": -1}, "memory"),
        ({"margin": -1}, "margin"),
        ({"input_range": (1, -1)}, "low < high"),
        ({"input_range": (0, 0.5)}, "outside of the range"),
        ({"calibration": np.zeros((0, 10))}, "holds no example"),
        ({"calibration": []}, "no example"),
        ({"calibration": np.zeros((5, 9))}, "shape"),
        ({"calibration": np.full((5, 10), np.nan)}, "NaN"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], says: str, rng: np.random.Generator) -> None:
    f, x = perceptron(rng, np.square), rng.uniform(-1, 1, (50, 10))
    with pytest.raises(jali.InvalidArgument, match=says):
        jali.compile(f, x[0], **{"calibration": x, **options})


def test_what_is_too_deep_is_refused_by_name(rng: np.random.Generator) -> None:
    w, x = rng.normal(size=(4, 4)), rng.uniform(-1, 1, (20, 4))

    def deep(v: Any) -> Any:
        for _ in range(30):
            v = scalar.sigmoid(w @ v)
        return v

    with pytest.raises(jali.Unsupported, match=r"levels at a scale of .* sigmoid.* bootstrap"):
        jali.compile(deep, x[0], calibration=x, precision_bits=30)
    with pytest.raises(jali.Unsupported, match="an int cannot be compiled"):
        jali.compile(3, x)
    module = type("Net", (), {"__module__": "torch.nn.modules", "__call__": lambda self, x: x})()
    with pytest.raises(
        jali.Unsupported, match=r"a Net .*(pip install torch|give the torch\.nn\.Module)"
    ):
        jali.compile(module, x)


def test_stages_can_be_read(rng: np.random.Generator) -> None:
    x = rng.uniform(-1, 1, (50, 2, 6, 6))
    a = convolution(made("x", Input(shape=(2, 6, 6)), []), rng, "first", 4, 2)
    graph = Graph((made("x", Input(shape=(2, 6, 6)), []), a), ("first",))
    program = jali.compile(graph, x[:1], calibration=x)
    assert "first: 4x3x3 = convolution(x" in program.explain("trace")
    assert "affine(x" in program.explain("fold")
    assert "level=" in program.explain("levels")
    with pytest.raises(jali.InvalidArgument, match="the stages are trace, simplify, fold"):
        program.explain("assembly")


def test_reshapes_cost_nothing(rng: np.random.Generator) -> None:
    """Between functions, in a product, and at the end."""
    x = rng.uniform(-1, 1, (40, 2, 6))

    def f(v: Any) -> Any:
        a = np.square(v).reshape(3, 4)
        return (np.square(a) * v.reshape(3, 4)).reshape(4, 1, 3)

    program = jali.compile(f, x[0], calibration=x, batch=2)
    assert program.params.depth == 3
    assert_precise(program, encrypted(program, x[:5]), np.stack([f(v) for v in x[:5]]))


def test_outputs_are_reshaped_functions(rng: np.random.Generator) -> None:
    """Folding leaves the reshape out; the error of the function is measured on the output all the
    same."""
    x = rng.uniform(-1, 1, (60, 4))
    f = lambda v: np.tanh(v).reshape(2, 2)  # noqa: E731
    program = jali.compile(f, x[0], calibration=x, precision_bits=6)
    assert_precise(program, encrypted(program, x[:3]), np.stack([f(v) for v in x[:3]]))


def test_encoded_biases_are_in_the_price_list(rng: np.random.Generator) -> None:
    """A bias takes as many bytes as half a ciphertext, and a recurrent network of 200 steps had
    more of them than of matrices."""
    biases, x = rng.uniform(-1, 1, (24, 10)), rng.uniform(-1, 1, (300, 10))
    program = jali.compile(
        lambda v: sum((v + b) * (v - b) * 0.02 for b in biases),
        x[0],
        calibration=x,
        precision_bits=10,
    )
    summary = program.summary(threads=1)
    server = program.server(program.client(threads=1).evaluation_keys(), threads=1)
    known = summary.key_bytes_expanded + summary.diagonal_bytes + summary.constant_bytes
    assert abs(server.evaluator.counters()["bytes_in_use"] / known - 1) < 0.02
    assert summary.constant_bytes > 0.3 * known
    assert summary.device_bytes == known + summary.workspace_bytes


def test_the_price_list_holds(rng: np.random.Generator) -> None:
    """Bytes of keys and messages are those that come; the noise that is announced is the noise that
    is there."""
    f, x = perceptron(rng, scalar.sigmoid), rng.uniform(-1, 1, (300, 10))
    program = jali.compile(f, x[0], calibration=x, precision_bits=12, batch=16)
    summary = program.summary(threads=1)
    client = program.client(threads=1)
    keys = client.evaluation_keys()
    request = client.encrypt(x[:16])
    server = program.server(keys, threads=1)
    reply = server(request)
    assert abs(server.evaluator.counters()["bytes_peak"] / summary.device_bytes - 1) < 0.05
    assert summary.keys == keys.count and summary.key_bytes == keys.nbytes
    assert abs(summary.key_bytes_sent / keys.sent_bytes - 1) < 0.01
    assert abs(summary.request_bytes / len(request.to_bytes()) - 1) < 0.05
    assert abs(summary.reply_bytes / len(reply.to_bytes()) - 1) < 0.05
    assert [layer.name for layer in summary.layers] == ["scale", "sigmoid", "scale_2"]
    assert summary.seconds == sum(layer.seconds for layer in summary.layers) > 0
    assert summary.examples == 16 and summary.bootstraps == 0
    assert "12 bits of the largest output\n" in str(summary)  # of every number, and no average
    assert "of the number with most" in program.explain("program")
    exact = program.stages["approximate"]
    inside = approximate.scaled(exact.inputs[0], x[:16])
    output = exact[exact.outputs[0]]
    want = every_value(exact, [inside])[output.name] * output.attrs["radius"]
    noise = client.decrypt(reply) - want - output.attrs["centre"]
    # 48 numbers: the mean of their squares is within a factor of 4 of its expectation but with
    # probability 1e-6.
    assert summary.layers[-1].noise / 16 < np.sqrt(np.mean(noise**2)) < 2 * summary.layers[-1].noise
    for word in ("sigmoid", "levels", "keys", "noise", "examples"):
        assert word in str(summary)


def test_simulation_has_the_errors_of_encryption(rng: np.random.Generator) -> None:
    """Approximation and noise: the same approximation error, and noise of the estimated size."""
    f, x = perceptron(rng, np.square), rng.uniform(-1, 1, (400, 10))
    program = jali.compile(f, x[0], calibration=x, precision_bits=12)
    got, want = program.simulate(x), program.clear(x)
    estimate = program.manifest.demand.noise_bits[0]
    radius = program.stages["levels"]["scale_2"].attrs["radius"]
    noise = radius * 2.0**-estimate
    # The mean of 1,200 squares is within a fifth of its expectation but with probability 1e-6.
    assert 0.8 * noise < np.sqrt(np.mean((got - want) ** 2)) < 1.2 * noise
    f = perceptron(rng, scalar.sigmoid)
    program = jali.compile(f, x[0], calibration=x, precision_bits=4)
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1)
    there = client.decrypt(server(client.encrypt(x[:5])))
    largest = np.abs(program.clear(x)).max()
    assert np.abs(program.simulate(x[:5]) - there).max() < 2.0**-6 * largest


def softmax(x: Any) -> Any:
    powers = np.exp(x)
    return powers / powers.sum(axis=-1, keepdims=True)


def test_softmax_and_layer_normalisation(rng: np.random.Generator) -> None:
    w, x = rng.normal(size=(4, 8)) / 4, rng.uniform(-1, 1, (200, 8))

    def normalised(x: Any) -> Any:
        centred = w @ x - (w @ x).mean()
        return centred / np.sqrt((centred * centred).mean() + 0.1)

    for f, bits in ((lambda x: softmax(w @ x), 6), (normalised, 4)):
        program = jali.compile(f, x[0], calibration=x, precision_bits=bits)
        assert_precise(program, encrypted(program, x[:3]), np.stack([f(v) for v in x[:3]]))


@pytest.mark.long
def test_attention(rng: np.random.Generator) -> None:
    """Products of encrypted matrices, and a softmax in between."""
    q, k, v = rng.normal(size=(3, 3, 3)) / 4
    x = rng.uniform(-1, 1, (60, 2, 3))
    f = lambda x: softmax((x @ q) @ (x @ k).T / 2) @ (x @ v)  # noqa: E731
    program = jali.compile(f, x[0], calibration=x, precision_bits=4)
    assert_precise(program, encrypted(program, x[:2]), np.stack([f(v) for v in x[:2]]))


def test_training_is_a_function_of_the_data(rng: np.random.Generator) -> None:
    """Two steps of a logistic regression's gradient on encrypted examples and labels, with the
    sigmoid as a line."""

    def train(x: Any, y: Any) -> Any:
        weights = (x * (0.5 * y)[:, None]).mean(axis=0)
        margins = (x @ weights) * y
        return weights + (x * (y * (0.5 - 0.2 * margins))[:, None]).mean(axis=0)

    x = rng.uniform(-1, 1, (60, 4, 2))
    y = np.sign(x @ [1.0, -2.0] + rng.normal(size=(60, 4)) / 10)
    program = jali.compile(train, (x[0], y[0]), calibration=(x, y), precision_bits=8)
    want = np.stack([train(*v) for v in zip(x[:2], y[:2], strict=True)])
    assert_precise(program, encrypted(program, x[:2], y[:2]), want)


def test_outputs_that_are_inputs(rng: np.random.Generator) -> None:
    x = rng.uniform(-1, 1, (40, 3, 4))
    program = jali.compile(lambda x: (x, x.T, 2 * x[0]), x[0], calibration=x, batch=2)
    same, turned, double = encrypted(program, x[:3])
    assert np.abs(same - x[:3]).max() < 1e-3
    assert np.abs(turned - x[:3].transpose(0, 2, 1)).max() < 1e-3
    assert np.abs(double - 2 * x[:3, 0]).max() < 2e-3
    assert program.simulate(x[:3])[1].shape == (3, 4, 3)


def test_recorded_runs_are_the_same(rng: np.random.Generator) -> None:
    """As a GPU's server runs: a recorded program for each batch of ciphertexts."""
    a, x = rng.normal(size=(3, 6)), rng.uniform(-1, 1, (60, 6))
    f = lambda x: (np.square(a @ x), x + 1)  # noqa: E731
    program = jali.compile(f, x[0], calibration=x, batch=4, precision_bits=12)
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1, capture=True)
    for count in (1, 7, 1, 12, 18, 21, 30, 7):  # more sizes than are kept
        first, second = client.decrypt(server(client.encrypt(x[:count])))
        assert np.abs(first - np.square(x[:count] @ a.T)).max() < 2.0**-12 * 40
        assert np.abs(second - x[:count] - 1).max() < 2.0**-11


@pytest.mark.filterwarnings("ignore:memory=")
def test_matrices_that_do_not_fit_the_memory_are_stored_otherwise(
    rng: np.random.Generator,
) -> None:
    f, x = perceptron(rng, np.square), rng.uniform(-1, 1, (50, 10))
    whole = jali.compile(f, x[0], calibration=x).summary(threads=1)
    first = whole.layers[0].diagonal_bytes
    for memory in (0, first):
        program = jali.compile(f, x[0], calibration=x, memory=memory)
        held = program.summary(threads=1).diagonal_bytes
        assert held <= memory < whole.diagonal_bytes and (held > 0) == (memory > 0)
        assert_precise(program, encrypted(program, x[:2]), np.stack([f(v) for v in x[:2]]))


def test_simulated_numbers_that_overflow_are_told_once_and_plainly(
    rng: np.random.Generator,
) -> None:
    """A polynomial far outside of its interval has no value. The warning is Jali's, which says what
    to change, and not NumPy's."""
    f = lambda v: np.tanh(2 * np.tanh(2 * np.tanh(1000 * (v[0] + v[1]))))  # noqa: E731
    x = rng.uniform(-1, 1, (50, 1)) * np.array([1.0, -1.0]) + rng.uniform(-1e-3, 1e-3, (50, 2))
    program = jali.compile(f, x[0], calibration=x, precision_bits=6)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        got = program.simulate(np.stack((x[0], np.ones(2))))
    assert [w.category for w in told] == [UserWarning]
    assert "decryption refuses the results of 1 example of 2" in str(told[0].message)
    assert np.isfinite(got[0]) and not np.isfinite(got[1])


@pytest.mark.parametrize(
    "corner",
    [
        lambda v: v[0] * v[0],
        lambda v: np.tanh(v[0]),
        lambda v: np.maximum(v[0], 0),
        lambda v: v[0] * v[0] * v[1],
    ],
)
def test_arrays_that_are_0_in_the_calibration(corner: Any, rng: np.random.Generator) -> None:
    """As the pixels in the corner of an image are."""
    weights = rng.uniform(-1, 1, (2, 6))
    x = rng.uniform(-1, 1, (60, 6)) * (np.arange(6) > 0)
    program = jali.compile(lambda v: corner(v) + weights @ v, x[0], calibration=x, precision_bits=6)
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1)
    off = client.decrypt(server(client.encrypt(x[:5]))) - program.clear(x[:5])
    assert np.abs(off).max() < 2**-6 * np.abs(program.clear(x)).max()
