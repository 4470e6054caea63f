"""Parameters of compiled programs: how much noise they may have, how much room, and what the choice among them costs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from test_demo import random_images
from test_nn_program import assert_precise, encrypted

import jali
from jali.demo import network, roles
from jali.nn import trace
from jali.nn.approximate import approximated
from jali.nn.calibrate import calibrate
from jali.nn.fold import fold
from jali.nn.graph import Graph
from jali.nn.ops import made


def approximation(function: Any, x: np.ndarray) -> Graph:
    return approximated(calibrate(fold(trace(function, x[0])), [x]), 2.0**-6)


def layers(rng: np.random.Generator, *sizes: int) -> Any:
    """Matrices with squares between them."""
    weights = [rng.normal(size=(m, n)) / n**0.5 for n, m in pairwise(sizes)]

    def f(x: Any) -> Any:
        for w in weights[:-1]:
            x = (w @ x) ** 2
        return weights[-1] @ x

    return f


@pytest.mark.parametrize("sizes", [(10, 33, 17, 5), (20, 9, 3)])
def test_six_deviations_of_the_noise_are_within_the_promise(
    sizes: tuple[int, ...], rng: np.random.Generator
) -> None:
    """Exact programs have nothing but noise. Over many numbers, its deviation is known to a tenth."""
    f, x = layers(rng, *sizes), rng.uniform(-1, 1, (300, sizes[0]))
    program = jali.compile(f, x[0], calibration=x, precision_bits=7)
    want = np.stack([f(v) for v in x[:80]])
    got = encrypted(program, x[:80])
    assert_precise(program, got, want)
    (name,) = program.stages["calibrate"].outputs
    largest = program.stages["calibrate"][name].attrs["largest"]
    assert 6 * np.std(got - want) <= 1.1 * 2.0**-7 * largest


def lola() -> tuple[network.Network, Graph]:
    """The network of the demo mnist, and its graph."""
    model = network.load("mnist")
    left, right, top, bottom = model.pad
    conv = {"weight": model.conv_weight[:, None], "bias": model.conv_bias, "groups": 1}
    conv |= {"stride": (2, 2), "padding": ((top, bottom), (left, right)), "dilation": (1, 1)}
    x = made("x", "input", [], {"shape": (1, 28, 28)})
    a = made("a", "convolution", [x], conv)
    b = made("b", "multiply", [a, a], {})
    c = made("c", "reshape", [b], {"shape": (b.size,)})
    d = made("d", "dense", [c], {"weight": model.dense1_weight, "bias": model.dense1_bias})
    e = made("e", "multiply", [d, d], {})
    f = made("f", "dense", [e], {"weight": model.dense2_weight, "bias": model.dense2_bias})
    return model, Graph((x, a, b, c, d, e, f), ("f",))


def test_a_small_network_takes_no_larger_ring_than_the_program_by_hand() -> None:
    """At 6 bits. Brighter images than those of the calibration leave its ranges, which decryption says; level 0 holds their results all the same."""
    model, graph = lola()
    images = random_images("mnist", 60)
    images = images[images.any((1, 2))]  # the logits of an empty one are large
    dark = images.reshape(-1, 1, 28, 28) / 255
    program = jali.compile(
        graph, dark[:1], calibration=dark, precision_bits=6, input_range=(0, 1.5), margin=0.0
    )
    params, by_hand = program.params, roles.make_params(roles.plan(model))
    assert (params.log_n, params.word) == (by_hand.log_n, "w32")
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1)
    assert_precise(
        program, client.decrypt(server(client.encrypt(dark[:3]))), program.clear(dark[:3])
    )
    bright = 1.5 * dark
    want = program.clear(bright)
    first = int(np.abs(want).max(1).argmax())
    reply = server(client.encrypt(bright[first : first + 1]))
    with pytest.raises(jali.WrongDecryption, match="outside of the ranges of the calibration"):
        client.decrypt(reply)
    assert_precise(program, client.decrypt(reply, check=False), want[first : first + 1])
