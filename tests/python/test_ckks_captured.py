"""Captured functions and batches from Python."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import numpy as np
import pytest
from array_world import small, uniform

import jali
from jali import _jali, ckks
from jali.errors import InvalidArgument


@pytest.fixture(scope="module", params=["cpu", "cuda"])
def world(request):
    if request.param == "cuda" and _jali.device.cuda_device_count() == 0:
        pytest.skip("no NVIDIA GPU on this machine, or a build without CUDA")
    params = ckks.Params.create(depth=3, scale_bits=40, log_n=10, security=0, name="insecure_test")
    client = ckks.Client(params)
    server = ckks.Evaluator(params, client.evaluation_keys(rotations=[1, 2]), device=request.param)
    return client, server


def encrypted(client, server, rng, shape=None):
    values = rng.uniform(-1, 1, shape or server.params.slots)
    return values, server.bind(client.encrypt(values))


def test_captured_gives_what_the_function_gives(world):
    client, server = world
    rng = np.random.default_rng()
    _, x = encrypted(client, server, rng)
    _, y = encrypted(client, server, rng)

    def function(a, b):
        return (a * b + 0.25).rotate(1), a - b

    captured = server.capture(function, x, y)
    assert captured.nbytes > 0
    for _ in range(3):
        v, a = encrypted(client, server, rng)
        w, b = encrypted(client, server, rng)
        first, second = captured(a, b)
        np.testing.assert_allclose(client.decrypt(first), np.roll(v * w + 0.25, -1), atol=1e-6)
        np.testing.assert_allclose(client.decrypt(second), v - w, atol=1e-6)


def test_captured_function_of_one_result_gives_it_alone(world):
    client, server = world
    v, x = encrypted(client, server, np.random.default_rng())
    captured = server.capture(lambda a: a * a, x)
    np.testing.assert_allclose(client.decrypt(captured(x)), v * v, atol=1e-6)
    threads = [threading.Thread(target=lambda: captured(x)) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def test_captured_refuses_other_shapes_and_passes_errors_on(world):
    client, server = world
    rng = np.random.default_rng()
    _, x = encrypted(client, server, rng)
    captured = server.capture(lambda a: a + a, x)
    with pytest.raises(InvalidArgument, match="level"):
        captured(x * x)
    with pytest.raises(InvalidArgument, match="batch"):
        captured(encrypted(client, server, rng, (2, server.params.slots))[1])
    with pytest.raises(InvalidArgument, match="packed"):
        captured(encrypted(client, server, rng, (5,))[1])
    with pytest.raises(InvalidArgument, match="takes 1"):
        captured(x, x)
    with pytest.raises(ZeroDivisionError):
        server.capture(lambda a: a + 1 / 0, x)
    with pytest.raises(InvalidArgument):
        server.capture(lambda a: 3.0, x)


def test_captured_refuses_arrays_on_a_gpu(world):
    client, server = world
    v, x = encrypted(client, server, np.random.default_rng())
    weights = np.ones(server.params.slots)
    if server.device == "cuda":
        with pytest.raises(InvalidArgument, match="encode plaintexts"):
            server.capture(lambda a: a * weights, x)
    else:
        np.testing.assert_allclose(
            client.decrypt(server.capture(lambda a: a * weights, x)(x)), v, atol=1e-6
        )
    # If the array is encoded beforehand, it is a constant of the captured function.
    level = x.ciphertext.level
    plain = server.explicit.encode(weights / 2, level=level)
    captured = server.capture(
        lambda a: server.bind(
            server.explicit.rescale(server.explicit.multiply_plain(a._settled(), plain))
        ),
        x,
    )
    np.testing.assert_allclose(client.decrypt(captured(x)), v / 2, atol=1e-6)


def test_map_gives_what_one_by_one_gives(world):
    client, server = world
    rng = np.random.default_rng()
    pairs = [encrypted(client, server, rng, (7,)) for _ in range(13)]
    weights = rng.uniform(-1, 1, 7)
    shapes = []

    def function(x):
        shapes.append(x.shape)
        return x * weights + x

    batcher = server.batcher(function, max_batch=4)
    assert batcher.batch == 0
    for _ in range(2):
        results = batcher([b for _, b in pairs])
        for (v, _), y in zip(pairs, results, strict=True):
            assert y.shape == (7,)
            np.testing.assert_allclose(client.decrypt(y), v * weights + v, atol=1e-6)
    assert all(len(s) == 2 and s[0] <= 4 for s in shapes)
    assert 1 <= batcher.batch <= 4
    assert all(p.seconds > 0 and p.nbytes > 0 for p in batcher.curve)
    assert len(server.map(lambda x: -x, [b for _, b in pairs])) == 13
    assert server.map(lambda x: -x, []) == []
    vector = server.bind(client.encrypt(np.array([0.5, 0.25])))
    rows = server.bind(client.encrypt(np.array([[0.125, 0.75]]), batch=True))
    for values in ([vector, rows], [rows, vector]):  # each result has the shape of its own value
        for value, result in zip(values, server.map(lambda x: -x, values), strict=True):
            assert result.shape == value.shape
            assert np.allclose(client.decrypt(result), -client.decrypt(value), atol=1e-4)
    with pytest.raises(InvalidArgument, match="level"):
        server.map(lambda x: x, [pairs[0][1], pairs[1][1] * pairs[1][1]])
    with pytest.raises(InvalidArgument, match="max_batch"):
        server.batcher(function, max_batch=0)


@pytest.mark.parametrize("kind", [jali.OutOfMemory, jali.Unsupported, MemoryError])
def test_map_halves_a_batch_that_is_too_large(world, kind):
    client, server = world
    rng = np.random.default_rng()
    pairs = [encrypted(client, server, rng, (7,)) for _ in range(16)]
    seen, refused = [], []

    def function(x):
        seen.append(x.shape[0])
        time.sleep(0.02)  # two take as long as one, so four are tried
        if x.shape[0] > 2:
            refused.append(x.shape[0])
            raise kind("more than two")
        return -x

    def never(x):
        raise kind("not even one")

    with pytest.raises(kind, match="not even one"):
        server.map(never, [b for _, b in pairs])
    # Other errors are passed on.
    with pytest.raises(ZeroDivisionError):
        server.map(lambda x: x * (1 / 0), [b for _, b in pairs])

    batcher = server.batcher(function)
    for (v, _), y in zip(pairs, batcher([b for _, b in pairs]), strict=True):
        np.testing.assert_allclose(client.decrypt(y), -v, atol=1e-6)
    assert refused == [4], (seen, batcher.curve)
    assert batcher.batch <= 2


def test_captured_that_its_own_function_can_reach_is_collected(world):
    class Anchor:
        """An object to which a weak reference can be made."""

    def make():
        client, server = world
        _, x = encrypted(client, server, np.random.default_rng())
        holder = {"anchor": Anchor()}

        def function(a):
            return a + a if holder else a

        holder["captured"] = server.capture(function, x)
        holder["batcher"] = server.batcher(function)
        return weakref.ref(holder["anchor"])

    gone = make()
    gc.collect()
    assert gone() is None


def test_results_that_are_no_vectors_are_refused_with_what_to_return(world):
    client, server = world
    v, x = encrypted(client, server, np.random.default_rng(), 4)

    def total(a):
        return a.sum(count=4).with_length(1)

    def part(a):
        return a.rotate(1).with_length(2)

    with pytest.raises(
        InvalidArgument, match=r"return x.sum\(count=n\).with_length\(1\) for a sum"
    ):
        server.map(lambda a: a.sum(), [x, x])
    with pytest.raises(InvalidArgument, match=r"x.rotate\(i\).with_length\(n\) for x\[i:i\+n\]"):
        server.map(lambda a: a[:, 1:3], [x, x])
    # A recorded function may return arrays.
    np.testing.assert_allclose(
        client.decrypt(server.capture(lambda a: a[1:3], x)(x)), v[1:3], atol=1e-6
    )
    for f, expected in ((total, [v.sum()]), (part, v[1:3])):
        for y in (server.capture(f, x)(x), *server.map(f, [x, x])):
            np.testing.assert_allclose(client.decrypt(y), expected, atol=1e-6)


def test_functions_of_arrays_are_recorded():
    s = small()
    a, b = uniform(40, 30), uniform(40, 30)
    x, y = s.bind(a), s.bind(b)
    centred = s.server.capture(lambda v: v - v.mean(axis=0), x)
    s.check(centred(x), a - a.mean(axis=0))
    s.check(centred(y), b - b.mean(axis=0))
    two = s.server.capture(lambda v, w: (v * w, (v[1:3] + w[1:3]).sum()), x, y)
    product, total = two(y, x)
    s.check(product, a * b)
    s.check(total, (a[1:3] + b[1:3]).sum())
    row = s.bind(uniform(30))
    for wrong in (x[1:], x.T, row, x * np.ones((40, 30)) + 1):
        with pytest.raises(InvalidArgument):
            centred(wrong)
    with pytest.raises(InvalidArgument, match="recorded for a vector or a batch"):
        s.server.capture(lambda v: v * v, row)(row[1:])


def test_a_function_is_mapped_over_arrays():
    s = small()
    a, b, v = uniform(40, 30), uniform(7, 5), uniform(30)
    values = [s.bind(a), s.bind(b)[1:], s.bind(v)]
    results = s.server.map(lambda x: x * x + 0.5, values)
    for got, want in zip(results, (a, b[1:], v), strict=True):
        s.check(got, want**2 + 0.5)
    sums = s.server.map(lambda x: x.sum(axis=-1), [s.bind(a)[2:], s.bind(b)])
    for got, want in zip(sums, (a[2:], b), strict=True):
        s.check(got, want.sum(axis=-1))


def test_claims_are_those_of_the_numbers_that_a_program_is_run_with():
    s = small()

    def fresh():
        return s.bind(np.ones(8))

    x = fresh()
    twice = s.server.capture(lambda a: a + a, fresh())
    assert (twice(x) + x).precision_bits <= (x + x + x).precision_bits + 0.01
    total = s.server.capture(lambda a, b: a + b, fresh(), fresh())
    s.check(total(x, fresh()), 2 * np.ones(8))
    for other in (x, -x):
        with pytest.raises(InvalidArgument, match="are made of the same numbers"):
            total(x, other)
    doubled = s.server.capture(lambda a, b: a + b, fresh(), x)  # examples that are apart
    with pytest.raises(InvalidArgument, match="are made of the same numbers"):
        doubled(x, x)
    y = fresh()
    same = s.server.capture(lambda a, b: a + b, y, y)
    assert same(x, x).precision_bits <= (x + x).precision_bits + 0.01
    square = s.server.capture(lambda a: a * a, fresh() * fresh() * 1.5)
    s.check(square(x * x * 0.9), 0.81 * np.ones(8))
    with pytest.raises(InvalidArgument, match="a higher degree"):
        square(x * x * x)


def test_a_function_that_changes_is_refused():
    s = small()
    if s.server.device != "cpu":
        pytest.skip("on a GPU the recorded graph runs, and the function is not called again")
    x, calls = s.bind(uniform(4, 8)), []

    def changing(v):
        calls.append(v)
        return [v, v[:2]][: 1 + (len(calls) > 3)]

    captured = s.server.capture(changing, x)
    with pytest.raises(InvalidArgument, match="the same at every call"):
        for _ in range(5):
            captured(x)


def test_what_a_function_keeps_of_its_inputs_outlives_it(world):
    """On a CPU it also keeps its numbers when the function runs again; on a GPU it belongs to the
    recording."""
    client, server = world
    rng, kept = np.random.default_rng(), []

    def keeping(a):
        kept.append(a)
        return a + a

    (v, x), (w, y) = encrypted(client, server, rng), encrypted(client, server, rng)
    captured = server.capture(keeping, x)
    np.testing.assert_allclose(client.decrypt(captured(y)), 2 * w, atol=1e-6)
    del captured
    gc.collect()
    if server.device == "cpu":
        np.testing.assert_allclose(client.decrypt(kept[0]), v, atol=1e-6)
    else:
        assert client.decrypt(kept[0], check=False).shape == v.shape
