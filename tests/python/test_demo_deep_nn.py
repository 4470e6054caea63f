"""NN-20, NN-50 and NN-100: in the clear against another way to compute them, and encrypted against
the clear."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from shared_data import needs, shared

import jali
from jali import cli, tfhe
from jali.demo import deep_nn

SHARED = shared("mnist/mnist_8000.npz")
WEIGHTS = Path(deep_nn.__file__).parent / "weights"


def digits(count: int) -> np.ndarray:
    """Strokes of random grey."""
    rng = np.random.default_rng()
    images = np.zeros((count, 28, 28), np.uint8)
    for image in images:
        row, column = rng.integers(4, 12, 2)
        image[row : row + 12, column : column + 3] = rng.integers(0, 256, (12, 3))
        image[row : row + 3, column : column + 9] = rng.integers(100, 256, (3, 9))
    return images


def plain(depth: int, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores by the definition, from the file's own numbers, and of which images every sum has
    room."""
    with np.load(WEIGHTS / f"nn{depth}.npz") as file:
        net = {name: file[name].astype(np.int64) for name in file.files if name != "about"}
    x = np.pad(images >= 128, ((0, 0), (1, 1), (1, 1))).astype(np.int64)
    sums = np.zeros((len(images), 2, 21, 20), np.int64)
    for dy in range(10):
        for dx in range(11):
            part = x[:, None, dy : dy + 21, dx : dx + 20]
            sums += net["conv"][None, :, dy, dx, None, None] * part
    sums = (sums + net["conv_bias"][None, :, None, None]).reshape(len(images), -1)
    matrices = [net["first"], *net["hidden"], net["last"]]
    biases = [*net["bias"], net["last_bias"]]
    room = np.ones(len(images), bool)
    for layer, (matrix, bias) in enumerate(zip(matrices, biases, strict=True)):
        step = int(net["step"][layer])
        room &= (np.abs(sums) * step < 512 - step).all(1)
        relu = np.floor(np.maximum(sums, 0) / net["divisor"][layer] + 0.5)
        x = np.minimum(relu, net["top"][layer]).astype(np.int64)
        sums = x @ matrix.T + bias
    return sums, room & (np.abs(sums) * net["step"][-1] < 500).all(1)


@pytest.mark.parametrize("depth", deep_nn.DEPTHS)
def test_networks_are_sums_and_relu(depth: int) -> None:
    network = deep_nn.load(depth)
    assert network.depth == depth == network.about["depth"]
    assert network.look_ups == 840 + 92 * (depth - 2)
    assert network.layers[0].weights.shape == (840, 784)
    assert network.layers[-1].weights.shape == (10, 92)
    images = digits(40)
    expected, room = plain(depth, images)
    assert room.any()
    np.testing.assert_array_equal(network.scores(images)[room], expected[room])


@needs(SHARED)
@pytest.mark.parametrize(("depth", "least"), [(20, 0.971), (50, 0.947), (100, 0.947)])
def test_networks_are_as_accurate_as_the_published_ones(depth: int, least: float) -> None:
    with np.load(SHARED) as data:
        images, labels = data["images"], data["labels"]
    answers = [
        deep_nn.load(depth).scores(images[i : i + 1000]).argmax(1)
        for i in range(0, len(images), 1000)
    ]
    assert np.mean(np.concatenate(answers) == labels) >= least


def small_params() -> tfhe.Params:
    return tfhe.Params.create(
        name="insecure_deep_nn",
        n=32,
        k=1,
        N=2048,
        rotation_gadget=(23, 1),
        switch_gadget=(5, 4),
        lwe_noise_bits=2,
        glwe_noise_bits=10,
        message_bits=5,
        carry_bits=5,
        max_norm2=2000,
        log2_p_fail=0,
    )


def small_network() -> deep_nn.Network:
    """The shape of NN-4, with random weights, whose sums often have no room."""
    rng = np.random.default_rng()
    first = deep_nn.load(20).layers[0]
    widths, steps, layers = [840, 92, 92, 10], [first.step, 24, 26, 12], []
    for i in range(4):
        table = None
        if i < 3:
            table = deep_nn.relu_table(steps[i], (4, 2, 3)[i], 3, steps[i + 1])
        if i == 0:
            layers.append(deep_nn.Layer(first.weights, first.constants, first.step, table))
            continue
        shape = widths[i], widths[i - 1]
        weights = np.where(rng.random(shape) < 0.2, rng.integers(-3, 4, shape), 0).astype(np.int8)
        constants = 512 + steps[i] * rng.integers(-4, 5, widths[i])
        layers.append(deep_nn.Layer(weights, constants, steps[i], table))
    return deep_nn.Network(layers, {})


def test_an_encrypted_network_computes_the_numbers_of_the_clear_one() -> None:
    network, images = small_network(), digits(1)
    client = deep_nn.Client(network, small_params())
    server = deep_nn.Server(network, *client.public_bytes(), "cpu", min_security=0)
    seen: list[tuple[int, int]] = []
    scores = client.decrypt(server(client.encrypt(images), lambda *at: seen.append(at)))
    assert scores.shape == (1, 10)
    np.testing.assert_array_equal(scores, network.scores(images))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    with pytest.raises(jali.InsecureParams):
        deep_nn.Server(network, *client.public_bytes(), "cpu")


def test_look_ups_have_the_noise_that_steps_were_chosen_for() -> None:
    params, count = deep_nn.PARAMS, 200
    client = tfhe.Client(params)
    server = tfhe.Evaluator(params, client.evaluation_keys(), "cpu")
    fresh = server.bind(client.encrypt(np.zeros(count, np.int64), largest=1))
    values = client.decrypt(server.apply(list(range(1024)), fresh + 512), check=False)
    # floor(x + 3/4) is x + 1/4 and a rounding. The mean of 200 squares has a deviation of 0.1. A
    # wrong result happens once in 10^7 draws; keys differ by 2%.
    ratio = np.square(values - 512).mean() / (deep_nn.look_up_variance(0) + 1 / 16 + 1 / 12)
    assert 0.5 < ratio < 1.7


def test_steps_are_wide_enough_for_the_noise() -> None:
    for depth in deep_nn.DEPTHS:
        *layers, last = deep_nn.load(depth).layers
        for layer in layers:
            deviation = deep_nn.look_up_variance(layer.norm2) ** 0.5
            assert layer.step / 2 > 3.5 * deviation
        assert last.step / 2 > 6 * deep_nn.sum_variance(last.norm2) ** 0.5


@pytest.mark.long
def test_nn20_answers_as_in_the_clear(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "images.npz"
    np.savez(file, images=digits(1), labels=np.array([5]))
    assert cli.main(["demo", "deep-nn", "--images", str(file), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["look_ups_per_image"] == 2496
    assert result["agreement_with_plain"] == 1


def test_the_command_says_what_to_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "images.npz")
    for arguments, words in (
        ([], "--images FILE"),
        (["--images", file], "no such file"),
        (["--images", file, "--limit", "0"], "at least 1"),
    ):
        assert cli.main(["demo", "deep-nn", *arguments]) == 1
        assert words in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["demo", "deep-nn", "--net", "30"])
    assert "invalid choice" in capsys.readouterr().err


def test_images_of_another_kind_are_refused() -> None:
    network = deep_nn.load(20)
    for wrong in (np.zeros((1, 8, 8), np.uint8), np.zeros((1, 28, 28)), np.full((1, 28, 28), 256)):
        with pytest.raises(jali.InvalidArgument, match="28, 28"):
            network.scores(wrong)


def test_files_that_are_no_networks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(jali.InvalidArgument, match="20, 50 and 100"):
        deep_nn.load(30)
    path = tmp_path / "x.npz"
    path.write_bytes(b"no archive")
    with pytest.raises(jali.InvalidArgument, match="readable"):
        deep_nn.from_file(path)
    with np.load(WEIGHTS / "nn20.npz") as file:
        arrays = {name: file[name] for name in file.files}
    for name, wrong in (
        ("conv", np.full_like(arrays["conv"], 4)),
        ("step", np.zeros_like(arrays["step"])),
        ("last", arrays["last"][:9]),
        ("first", np.full_like(arrays["first"], 1)),  # too large a norm
        ("bias", arrays["bias"].astype(np.float32)),
        ("about", np.frombuffer(b"{", np.uint8)),
    ):
        np.savez(path, **{**arrays, name: wrong})
        with pytest.raises(jali.InvalidArgument):
            deep_nn.from_file(path)
