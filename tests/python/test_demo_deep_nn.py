"""NN-20, NN-50 and NN-100 in integers: the clear form of the workload of TFHE."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import jali
from jali.demo import deep_nn, torus
from jali.demo.tfhe_literal import MESSAGE_2_CARRY_2

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "mnist" / "mnist_8000.npz"


def plain(network: deep_nn.Network, images: np.ndarray) -> np.ndarray:
    """The same network in real numbers, quarters of the torus as units, without rounding of phases."""
    x = np.rint(np.arange(256) / 255 * network.gains[0] * deep_nn.QUARTER)[images.reshape(-1, 784)]
    for index, layer in enumerate(network.layers):
        x = x @ layer.weights.T.astype(float) + layer.constants
        if index + 1 < len(network.layers):
            assert np.abs(x).max() < deep_nn.QUARTER  # the window is not left
            x = np.maximum(x, 0) * network.gains[index + 1]
    return x / deep_nn.QUARTER


@pytest.mark.parametrize("depth", deep_nn.DEPTHS)
def test_networks_compute_relu_layers(depth: int) -> None:
    network = deep_nn.load(depth)
    assert network.depth == depth == len(network.layers)
    assert network.look_ups == 840 + 92 * (depth - 2)
    assert network.layers[0].weights.shape == (840, 784)
    assert network.layers[-1].weights.shape == (10, 92)
    assert max(np.abs(layer.weights).max() for layer in network.layers) <= deep_nn.WEIGHT_LIMIT
    rng = np.random.default_rng()
    images = np.zeros((3, 28, 28), np.uint8)
    images[:, 8:20, 12:16] = rng.integers(0, 256, (3, 12, 4))
    fine = torus.Clear(1 << 16)  # rounds phases to 2^-17
    found = deep_nn.infer(network, fine, fine, images)
    assert found.shape == (3, 10)
    assert fine.look_ups == 3 * network.look_ups
    # Every layer rounds by at most 2^-16 of a quarter, and a layer's errors shrink as they do in training.
    np.testing.assert_allclose(found, plain(network, images), atol=0.02)


@pytest.mark.parametrize(("depth", "least"), [(20, 0.971), (50, 0.947), (100, 0.947)])
def test_networks_recognise_digits_with_the_noise_of_tfhe(depth: int, least: float) -> None:
    if not SHARED.exists():
        pytest.skip("the MNIST test images are not here")
    with np.load(SHARED) as data:
        images, labels = data["images"][:300], data["labels"][:300]
    network = deep_nn.load(depth)
    clear = torus.Clear()
    noisy = torus.Clear(literal=MESSAGE_2_CARRY_2, rng=np.random.default_rng())
    right = deep_nn.infer(network, clear, clear, images).argmax(1)
    assert np.mean(right == labels) >= least
    found = deep_nn.infer(network, noisy, noisy, images).argmax(1)
    assert np.mean(found == labels) >= least


def test_files_that_are_no_networks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(jali.InvalidArgument, match="20, 50 and 100"):
        deep_nn.load(30)
    path = tmp_path / "x.npz"
    path.write_bytes(b"no archive")
    with pytest.raises(jali.InvalidArgument, match="readable"):
        deep_nn.from_file(path)
    good = Path(deep_nn.__file__).parent / "weights" / "nn20.npz"
    with np.load(good) as file:
        arrays = {name: file[name] for name in file.files}
    for name, wrong in (
        ("conv", np.full_like(arrays["conv"], 8)),
        ("gain", -arrays["gain"]),
        ("last", arrays["last"][:9]),
        ("bias", arrays["bias"].astype(np.float32)),
    ):
        np.savez(path, **{**arrays, name: wrong})
        with pytest.raises(jali.InvalidArgument):
            deep_nn.from_file(path)
