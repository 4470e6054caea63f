"""Parameters of compiled programs: how much noise they may have, how much room, and what the choice among them costs."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from test_demo import random_images
from test_nn_program import assert_precise, encrypted

import jali
from jali.demo import network, roles
from jali.nn import scalar, trace
from jali.nn.approximate import approximated, noise_share
from jali.nn.calibrate import calibrate
from jali.nn.fold import fold
from jali.nn.graph import Graph
from jali.nn.loops import loop
from jali.nn.noise import concentrated
from jali.nn.ops import made
from jali.nn.parameters import ROOMS, needed_bits, smallest, switch_work
from jali.nn.plan import lowered
from jali.nn.run import peak


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


def test_exact_programs_leave_their_error_to_the_noise(rng: np.random.Generator) -> None:
    x = rng.uniform(-1, 1, (50, 4))
    w = rng.normal(size=(4, 4)) / 4
    assert noise_share(approximation(lambda v: (w @ v) ** 2, x)) == 1.0
    assert noise_share(approximation(lambda v: np.tanh(w @ v), x)) == 1 / 8
    for activation, share in ((np.square, 1.0), (scalar.relu, 1 / 8)):
        graph = approximation(lambda v, f=activation: loop(lambda h: f(w @ h), v, count=3), x)
        assert noise_share(graph) == share
    exact, other = (approximation(f, x) for f in (lambda v: w @ v, lambda v: np.tanh(w @ v)))
    out = [g[g.outputs[0]].attrs for g in (exact, other)]
    scales = [math.log2(np.mean(o["radius"]) / o["largest"]) for o in out]
    (few,), (many,) = needed_bits(exact, 6.0), needed_bits(other, 6.0)
    assert many - scales[1] - (few - scales[0]) == pytest.approx(3.0)


@pytest.mark.parametrize("sizes", [(10, 33, 17, 5), (40, 9), (65, 65, 65)])
def test_noise_is_concentrated_on_numbers_by_no_more_than_is_allowed_for(
    sizes: tuple[int, ...], rng: np.random.Generator
) -> None:
    """Noise of the same size in all slots of the input, carried through the diagonals: on numbers it is larger than on average."""
    slots = 1024
    x = rng.uniform(-1, 1, (50, sizes[0]))
    flat = approximation(layers(rng, *sizes), x)
    graph = lowered(flat, slots)["levels"]
    (allowed,) = concentrated(graph).values()
    filled = 1.0
    for size in sizes[1:]:
        filled *= size / 2 ** math.ceil(math.log2(size))
    assert 2.0 ** (-2 * allowed) <= filled * 1.001
    node = next(n for n in graph if n.op == "transform")
    (term,), layout = node.attrs["terms"], node.attrs["layout"]
    variance = np.zeros(slots)
    if not term.turns and not term.sums and not term.before:
        for _, vectors in term.vectors(0):
            variance += sum(np.abs(v) ** 2 for v in vectors.values())
        numbers = variance[(layout.addresses[:, None] + layout.copies).ravel()]
        alone = Graph((*(graph[name] for name in node.inputs), node), (node.name,), "levels")
        (most,) = concentrated(alone).values()
        assert math.log2(numbers.mean() / variance.mean()) / 2 <= most + 1e-9


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


def test_less_room_is_taken_where_it_saves_time(rng: np.random.Generator) -> None:
    graph = approximation(layers(rng, 3, 3), rng.uniform(-1, 1, (50, 3)))
    few = smallest(graph, 5, 26.0, 1, "cpu", rooms=ROOMS)
    many = smallest(graph, 5, 26.0, 1, "cpu")
    assert (few.integer_bits, many.integer_bits) == (ROOMS[1], ROOMS[0])
    assert few.q_count < many.q_count and switch_work(few) < switch_work(many)
    assert smallest(graph, 1, 40.0, 1, "cpu", rooms=ROOMS).integer_bits == ROOMS[0]


def test_sums_of_several_matrices_get_the_room_that_they_need(rng: np.random.Generator) -> None:
    """Of a difference of two large sums nothing is claimed but what is proven: level 0 has the usual room, and the scale stays small."""
    first, last = rng.uniform(0.5, 1, (32, 16)) / 16, np.ones((1, 32))
    x = rng.uniform(0.9, 1, (100, 16))
    pairs = (x, x + rng.normal(size=x.shape) / 50)

    def part(v: Any) -> Any:
        return last @ ((first @ v) ** 2 * 2 - 1) ** 2

    program = jali.compile(
        lambda a, b: part(a) - part(b),
        (pairs[0][0], pairs[1][0]),
        calibration=pairs,
        precision_bits=4,
    )
    params = program.params
    assert params.integer_bits == ROOMS[0] and params.scale_bits < 27


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


def test_a_small_network_takes_no_more_primes_than_the_program_by_hand() -> None:
    """At 6 bits, with parts of the last sum far beyond what level 0 holds. Brighter images than those of the calibration leave its ranges, and are
    computed rightly all the same as long as level 0 holds their results.
    """
    model, graph = lola()
    images = random_images("mnist", 60)
    images = images[images.any((1, 2))]  # the logits of an empty one are large
    dark = images.reshape(-1, 1, 28, 28) / 255
    program = jali.compile(
        graph, dark[:1], calibration=dark, precision_bits=6, input_range=(0, 1.5), margin=0.0
    )
    params, by_hand = program.params, roles.make_params(roles.plan(model))
    assert (params.log_n, params.word, params.integer_bits) == (13, "w32", ROOMS[1])
    assert params.q_count < by_hand.q_count
    levels = program.stages["levels"]
    parts = levels["f"].attrs["terms"][0].bounds[0][-1] * peak(levels["e"])
    assert parts > 2 ** (ROOMS[1] - 1)
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1)
    assert_precise(
        program, client.decrypt(server(client.encrypt(dark[:3]))), program.clear(dark[:3])
    )
    bright = 1.5 * dark
    want = program.clear(bright)
    first = int(np.abs(want).max(1).argmax())
    radius = float(program.stages["approximate"]["f"].attrs["radius"])
    beyond = np.abs(want[first]).max() / radius
    assert 1.5 < beyond < 2 ** (ROOMS[1] - 1)
    reply = server(client.encrypt(bright[first : first + 1]))
    with pytest.raises(jali.WrongDecryption, match="outside of the ranges of the calibration"):
        client.decrypt(reply)
    assert_precise(program, client.decrypt(reply, check=False), want[first : first + 1])
