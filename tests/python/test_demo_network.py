"""The plain networks of the demos, and their graphs."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import jali
from jali.compiler.ir.execute import execute
from jali.demo import network, shipped
from jali.demo.split import DIGITS, TEST, digits_test_indices


def random_network(rng, *, side, kernel, maps, hidden, pad):
    """A network like those of the demos, with random weights."""
    out = (side + pad[0] + pad[1] - kernel) // 2 + 1
    return network.Network(
        name="random",
        side=side,
        pixel_max=255.0,
        stride=2,
        pad=pad,
        conv_weight=rng.normal(size=(maps, kernel, kernel)),
        conv_bias=rng.normal(size=maps),
        dense1_weight=rng.normal(size=(hidden, maps * out * out)) / 10,
        dense1_bias=rng.normal(size=hidden),
        dense2_weight=rng.normal(size=(10, hidden)) / 10,
        dense2_bias=rng.normal(size=10),
    )


def test_plain_network_is_the_textbook_one():
    """The convolution is computed by four loops, one output at a time."""
    rng = np.random.default_rng(np.random.SeedSequence().entropy)
    model = random_network(rng, side=8, kernel=4, maps=2, hidden=5, pad=(1, 1, 1, 1))
    image = rng.integers(0, 256, (1, 8, 8), dtype=np.uint8)
    padded = np.zeros((10, 10))
    padded[1:9, 1:9] = image[0] / 255
    z1 = []
    for m in range(2):
        for y in range(4):
            for x in range(4):
                total = model.conv_bias[m]
                for i in range(4):
                    for j in range(4):
                        total += model.conv_weight[m, i, j] * padded[2 * y + i, 2 * x + j]
                z1.append(total)
    z2 = model.dense1_weight @ np.square(z1) + model.dense1_bias
    want = model.dense2_weight @ np.square(z2) + model.dense2_bias
    np.testing.assert_allclose(model.logits(image)[0], want, rtol=1e-10)


@pytest.mark.parametrize(("name", "shape"), [("digits", (16, 4, 4)), ("mnist", (5, 5, 5))])
def test_shipped_weights(name, shape):
    """The weights have the shapes of the papers, and values in the ranges for which the parameters
    are made."""
    model = network.load(name)
    assert model.conv_weight.shape == shape
    if name == "mnist":
        assert model.dense1_weight.shape == (100, 845)
    rng = np.random.default_rng(np.random.SeedSequence().entropy)
    images = rng.integers(0, int(model.pixel_max) + 1, (3, model.side, model.side))
    want = model.logits(images)
    assert np.isfinite(want).all()
    (graph,) = execute(model.graph(), model.pixels(images))
    np.testing.assert_allclose(graph, want, rtol=1e-10, atol=1e-10)


def test_split_is_fixed_and_scattered():
    test = digits_test_indices()
    assert len(test) == len(set(test)) == TEST
    assert all(0 <= i < DIGITS for i in test)
    assert test[:5] == [0, 2, 9, 11, 18]  # the weights were trained without exactly this split


def test_digits_are_classified_without_encryption():
    """At least 97 % of the images that were not used in training are classified correctly."""
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from jali.demo import data

    images = data.load_digits()
    assert len(images.images) == TEST
    right = network.load("digits").logits(images.images).argmax(1) == images.labels
    assert right.mean() >= 0.97


def test_weights_that_an_installation_has_not_are_asked_for(tmp_path, monkeypatch):
    """As from a wheel (decision 0071). The file that the error names is enough."""
    place = shipped.FOLDER
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    with pytest.raises(
        jali.FileError, match=r"demo/weights/mnist\.npz of Jali's repository"
    ) as told:
        network.load("mnist")
    assert str(tmp_path / "mnist.npz") in str(told.value)
    shutil.copy(place / "mnist.npz", tmp_path / "mnist.npz")
    assert network.load("mnist").name == "mnist"
