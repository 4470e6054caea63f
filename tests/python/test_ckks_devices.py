"""Operands and results are copied between host and device automatically, and the bits are the same.

The device is "cpu/apart" (the CPU with memory of its own) on every machine, and also the GPU if
there is one. JALI_DEVICE=cuda runs all other tests on a GPU.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from conftest import World, assert_close

import jali
from jali import _jali, ckks, cli
from jali import device as devices


@pytest.fixture(params=["cpu/apart", "cuda"])
def device(request: pytest.FixtureRequest) -> str:
    """Each device whose memory is not the host's."""
    name: str = request.param
    if name == "cuda" and _jali.device.cuda_device_count() == 0:
        pytest.skip("no NVIDIA GPU on this machine, or a build without CUDA")
    return name


def programs(
    world: World, e: ckks.explicit.ExplicitEvaluator, rng: np.random.Generator
) -> dict[str, ckks.Ciphertext]:
    """Runs every operation of the explicit evaluator on operands in the host's memory."""
    n = world.params.slots
    x, y = (world.client.encrypt(v) for v in rng.uniform(-1, 1, (2, n)))
    plain = ckks.Plaintext.from_bytes(e.encode(rng.uniform(-1, 1, n)).to_bytes(), world.params)
    weights = [e.encode_diagonal(v, x.level, x.scale) for v in rng.uniform(-1, 1, (2, n))]
    hoisted, product = e.hoist(x), e.multiply(x, y)
    total = e.multiply_accumulate([e.extend(x), e.rotate_extended(hoisted, 1)], weights)
    twice = e.extend(x)
    e.add_extended(twice, e.extend(y))
    e.rotate_accumulate(twice, e.extend(y), 1)
    return {
        "add": e.add(x, y),
        "sub": e.sub(x, e.negate(y)),
        "add_plain": e.add_plain(x, plain),
        "sub_plain": e.sub_plain(x, plain),
        "add_scalar": e.add_scalar(x, 0.5 - 0.25j),
        "multiply_plain": e.rescale(e.multiply_plain(x, plain)),
        "multiply_scalar": e.multiply_scalar(x, 0.3j, x.scale),
        "multiply_integer": e.multiply_integer(x, -3),
        "multiply_i": e.multiply_i(x),
        "multiply_monomial": e.multiply_monomial(x, 3),
        "twice_real": e.twice_real(e.multiply_monomial(x, 3)),
        "multiply": product,
        "square": e.square(x),
        "relinearise": e.relinearise(product),
        "relinearise_rescale": e.relinearise_rescale(product),
        "multiply_relinearise_rescale": e.multiply_relinearise_rescale(x, y),
        "drop_to": e.drop_to(x, 1),
        "adjust": e.adjust(x, 1, world.params.level(1).scale),
        "rotate": e.rotate(x, -3),
        "conjugate": e.conjugate(x),
        "rotate_hoisted": e.rotate_hoisted(hoisted, 64),
        "reduce": e.reduce(twice),
        "reduce_rescale": e.reduce_rescale(total),
    }


def on_both(
    world: World, device: str, make: Callable[[ckks.Evaluator], dict[str, ckks.Ciphertext]]
) -> None:
    """Asserts that `make` gives the same bytes on the host and on the device."""
    host = ckks.Evaluator(world.params, world.keys, "cpu")
    away = ckks.Evaluator(world.params, world.keys, device)
    wanted, got = make(host), make(away)
    assert wanted.keys() == got.keys()
    for name, ciphertext in got.items():
        assert ciphertext.to_bytes() == wanted[name].to_bytes(), name


def test_explicit_operations_move_their_operands(
    world: World, device: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both runs must have the same ciphertexts, so the second run is given those that the first run
    # encrypted.
    made: list[ckks.Ciphertext] = []
    seed = int(rng.integers(2**63))

    class Recorded:
        def __init__(self) -> None:
            self.count = 0

        def encrypt(self, values: np.ndarray) -> ckks.Ciphertext:
            if self.count == len(made):
                made.append(world.client.encrypt(values))
            self.count += 1
            return made[self.count - 1]

    def make(server: ckks.Evaluator) -> dict[str, ckks.Ciphertext]:
        recorded = World(world.params, Recorded(), world.keys, server)  # type: ignore[arg-type]
        return programs(recorded, server.explicit, np.random.default_rng(seed))

    on_both(world, device, make)


def test_bound_values_give_the_same_bytes(
    world: World, device: str, rng: np.random.Generator
) -> None:
    x = world.client.encrypt(rng.uniform(-1, 1, (3, world.params.slots)))
    weights = rng.uniform(-1, 1, world.params.slots)

    def make(server: ckks.Evaluator) -> dict[str, ckks.Ciphertext]:
        a = server.bind(x)
        b = a * a + 0.25
        return {
            "fresh": a.ciphertext,
            "square": b.ciphertext,
            "weighed": (b * weights - a).rotate(1).ciphertext,
            "sum": (b.conj() * 0.5).sum(count=32).ciphertext,
            "polynomial": server.polynomial(a, [0.1, 0.2, 0.3, 0.4]).ciphertext,
        }

    on_both(world, device, make)


def test_results_are_decrypted_where_they_are(one: World, device: str) -> None:
    e = ckks.Evaluator(one.params, one.keys, device).explicit
    x = one.client.encrypt(np.arange(4) / 4)
    assert not e.is_here(x)
    y = e.add(x, x)
    assert e.is_here(y)
    np.testing.assert_allclose(one.client.decrypt(y), np.arange(4) / 2, atol=1e-6)
    back = ckks.Ciphertext.from_bytes(y.to_bytes(), one.params)
    np.testing.assert_allclose(one.client.decrypt(back), np.arange(4) / 2, atol=1e-6)
    np.testing.assert_allclose(e.decode(e.encode([0.5, 0.25]))[:2], [0.5, 0.25], atol=1e-6)


def test_values_pass_from_device_to_device(
    one: World, device: str, rng: np.random.Generator
) -> None:
    a, b = rng.uniform(-1, 1, (2, one.params.slots))
    servers = [ckks.Evaluator(one.params, one.keys, d) for d in (device, "cpu", device)]
    value = one.client.encrypt(a)
    for server in servers:
        value = server.explicit.add(value, one.client.encrypt(b))
    np.testing.assert_allclose(one.client.decrypt(value), a + 3 * b, atol=1e-5)
    first, _, last = servers
    moved = last.bind((first.bind(one.client.encrypt(a)) * 0.5).ciphertext)
    assert_close(one, last.bind(moved + 0.25), a * 0.5 + 0.25)
    # So do plaintexts, diagonals and sums before their division by P.
    f, g = first.explicit, last.explicit
    x = one.client.encrypt(a)
    weight = f.encode_diagonal(b, x.level, x.scale)
    total = g.multiply_accumulate([f.extend(x)], [weight])
    g.add_extended(total, f.multiply_accumulate([f.extend(x)], [weight]))
    np.testing.assert_allclose(one.client.decrypt(g.reduce_rescale(total)), 2 * a * b, atol=1e-5)
    plain = f.encode(b)
    np.testing.assert_allclose(one.client.decrypt(g.add_plain(x, plain)), a + b, atol=1e-5)
    np.testing.assert_allclose(g.decode(plain), b, atol=1e-6)


def test_a_hoisted_value_keeps_what_was_brought(one: World, device: str) -> None:
    e = ckks.Evaluator(one.params, one.keys, device).explicit
    hoisted = e.hoist(one.client.encrypt(np.arange(4) / 4))
    for _ in range(20):
        e.negate(one.client.encrypt(np.zeros(4)))
    got = one.client.decrypt(e.rotate_hoisted(hoisted, 1))
    np.testing.assert_allclose(got, [0.25, 0.5, 0.75, 0], atol=1e-6)


def test_a_plan_is_prepared_for_one_device(one: World, device: str) -> None:
    plan = ckks.MatVec(np.eye(4), one.params)
    keys = one.client.evaluation_keys(rotations=plan.rotations)
    away = ckks.Evaluator(one.params, keys, device)
    host = ckks.Evaluator(one.params, keys, "cpu")
    x = one.client.encrypt(plan.pack(np.arange(4) / 4)[0])
    away.prepare(plan)
    with pytest.raises(jali.InvalidArgument, match="prepare"):
        host.matvec(plan, host.bind(x))
    host.prepare(plan)
    got = one.client.decrypt(host.matvec(plan, host.bind(x)))
    np.testing.assert_allclose(got, np.arange(4) / 4, atol=1e-5)


def test_foreign_objects_are_refused_before_they_cross(one: World, device: str) -> None:
    other = ckks.Params.create(depth=1)
    e = ckks.Evaluator(one.params, one.keys, device).explicit
    stranger = ckks.Client(other)
    foreign = ckks.Evaluator(other, None, "cpu").explicit
    with pytest.raises(jali.ParamsMismatch):
        e.negate(stranger.encrypt([1.0]))
    with pytest.raises(jali.ParamsMismatch):
        e.add_plain(one.client.encrypt([1.0]), foreign.encode([1.0]))
    with pytest.raises(jali.ParamsMismatch):
        e.reduce(foreign.extend(stranger.encrypt([1.0])))


def test_a_gpu_that_cannot_be_used_is_named(
    one: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("JALI_DEVICE", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ckks.Evaluator(one.params, device="cpu").device == "cpu"
        if not _jali.device.cuda_trouble():
            devices.resolved("auto")
    # The warning comes from the core (tests/device/resolve_test.cpp) and points to the line that
    # named the device.
    says = "computing on the CPU, though there is a GPU: no code for it"
    monkeypatch.setattr(_jali.device, "resolve", lambda *_: ("cpu", {}, says))
    with pytest.warns(RuntimeWarning, match=says) as caught:
        ckks.Evaluator(one.params)
        ckks.Evaluator(one.params, variants={})
        ckks.Client(one.params, device="auto")
    assert [warning.filename for warning in caught] == [__file__] * 3
    monkeypatch.setattr(_jali.device, "cuda_device_count", lambda: 0)
    monkeypatch.setattr(_jali.device, "cuda_trouble", lambda: says)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert cli.main(["doctor"]) == 0
    assert f"NOT USED: {says}" in capsys.readouterr().out


def test_auto_is_what_the_environment_says(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JALI_DEVICE", raising=False)
    best = "cuda" if _jali.device.cuda_device_count() else "cpu"
    assert ckks.Evaluator(one.params).device == best
    monkeypatch.setenv("JALI_DEVICE", "cpu/portable")
    assert ckks.Evaluator(one.params).engine == "cpu/portable"
    assert ckks.Evaluator(one.params, device="cpu").engine != "cpu/portable"
    assert devices.resolved("auto") == "cpu/portable" and devices.resolved("cuda") == "cuda:0"
    monkeypatch.setenv("JALI_DEVICE", "cuda:x")
    with pytest.raises(jali.InvalidArgument, match="cuda:0"):
        devices.resolved("auto")
    monkeypatch.setenv("JALI_DEVICE", "abacus")
    with pytest.raises(jali.NoDevice, match="abacus"):
        ckks.Evaluator(one.params)
