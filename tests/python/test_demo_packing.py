"""Compares the slot programs of the demos with the plain networks. Needs NumPy alone."""

from __future__ import annotations

import numpy as np
import pytest

from jali.demo import network, packing
from jali.demo.split import DIGITS, TEST, digits_test_indices

SLOTS = 4096


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


SHAPES = {
    "digits": {"side": 8, "kernel": 4, "maps": 16, "hidden": 64, "pad": (1, 1, 1, 1)},
    "mnist": {"side": 28, "kernel": 5, "maps": 5, "hidden": 100, "pad": (0, 1, 0, 1)},
    "few maps": {"side": 28, "kernel": 5, "maps": 3, "hidden": 37, "pad": (0, 1, 0, 1)},
    "small kernel": {"side": 8, "kernel": 2, "maps": 7, "hidden": 41, "pad": (0, 0, 0, 0)},
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("gains", [(1.0, 1.0, 1.0, 1.0), (8.0, 2.0, 4.0, 0.25)])
def test_program_computes_the_network(shape, gains):
    seed = np.random.SeedSequence().entropy
    rng = np.random.default_rng(seed)
    model = random_network(rng, **SHAPES[shape])
    program = packing.compile_network(model, SLOTS, gains)
    images = rng.integers(0, 256, (3, model.side, model.side), dtype=np.uint8)
    got = program.unpack(packing.simulate(program, program.pack(images)))
    want = model.logits(images)
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9, err_msg=f"seed {seed}")


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


@pytest.mark.parametrize("name", ["digits", "mnist"])
def test_rotations_cover_the_program(name):
    """The program runs with only those rotations for which there is a key."""
    program = packing.compile_network(network.load(name), SLOTS)
    keys = set(program.rotations())
    assert 0 not in keys
    assert all(0 < r < SLOTS for r in keys)
    for step in program.steps:
        if isinstance(step, packing.Linear):
            for giant, terms in step.giants().items():
                assert giant in keys | {0}
                assert set(terms) <= keys | {0}
            assert set(step.sum_rotations()) <= keys


@pytest.mark.parametrize(("name", "shape"), [("digits", (16, 4, 4)), ("mnist", (5, 5, 5))])
def test_shipped_weights(name, shape):
    """The weights have the shapes of the papers, and values in the ranges for which the parameters are made."""
    model = network.load(name)
    assert model.conv_weight.shape == shape
    assert model.maps * model.out**2 == model.dense1_weight.shape[1]
    if name == "mnist":
        assert (model.out, model.dense1_weight.shape) == (13, (100, 845))
    images = np.zeros((1, model.side, model.side))
    assert np.isfinite(model.logits(images)).all()


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
