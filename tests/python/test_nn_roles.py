"""Client and server of a compiled program: what they exchange, what each knows, and what they
refuse."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import lies
import numpy as np
import pytest
from test_nn_program import assert_precise, encrypted, perceptron

import jali
from jali import ckks, nn
from jali._jali import program as _program
from jali.nn import scalar
from jali.program import container


def test_the_server_and_the_client_exchange_bytes(rng: np.random.Generator) -> None:
    f, x = perceptron(rng, np.square), rng.uniform(-1, 1, (50, 10))
    program = jali.compile(f, x[0], calibration=x, batch=4)
    manifest = nn.Manifest.from_bytes(program.manifest.to_bytes())
    assert manifest.fingerprint == program.manifest.fingerprint
    client = nn.Client(manifest, threads=1)
    keys = ckks.EvaluationKeys.from_bytes(client.evaluation_keys().to_bytes(), program.params)
    server = program.server(keys, threads=1)
    request = nn.Message.request(client.encrypt(x[:6]).to_bytes(), program.manifest)
    reply = nn.Message.reply(server(request).to_bytes(), manifest)
    assert_precise(program, client.decrypt(reply), np.stack([f(v) for v in x[:6]]))


def test_the_manifest_has_no_weights(rng: np.random.Generator) -> None:
    weights, x = rng.normal(size=(4, 50)), rng.uniform(-1, 1, (50, 50))
    program = jali.compile(lambda x: np.square(weights @ x), x[0], calibration=x)
    data = program.manifest.to_bytes()
    known = np.concatenate(
        [np.frombuffer(data[at : len(data) - (len(data) - at) % 8]) for at in range(8)]
    )
    known = known[np.isfinite(known)]
    radius = program.stages["approximate"]["matmul"].attrs["radius"]
    for w in (weights, weights / radius):
        assert np.abs(known[:, None] - w.ravel()).min() > 1e-12
    assert any(np.isin(weights, a).all() for a in container.read("program", program.to_bytes())[1])


def test_a_small_manifest_cannot_claim_large_arrays(rng: np.random.Generator) -> None:
    """Equal numbers are stored once, so that the size of a file bounds nothing."""
    x = rng.uniform(-1, 1, (50, 10))
    program = jali.compile(lambda v: np.square(v) * 0.5, x[0], calibration=x, input_range=(-1, 1))
    slots = program.params.slots // program.manifest.lanes
    layout = _program.Layout.grid([1 << 24], slots, slots, 1, [])
    large = lies.port("inputs", shape=(1 << 24,), layout=layout, level=0)(program.manifest)
    ports = tuple(replace(large.inputs[0], name=f"x{k}") for k in range(5))
    data = replace(large, inputs=ports).to_bytes()
    assert len(data) < 10_000
    with pytest.raises(jali.CorruptData, match="too many numbers"):
        nn.Manifest.from_bytes(data)


def test_keys_are_those_that_are_used_and_no_others(rng: np.random.Generator) -> None:
    f, x = perceptron(rng, np.square), rng.uniform(-1, 1, (50, 10))
    program = jali.compile(f, x[0], calibration=x)
    demand = program.manifest.demand
    told: list[tuple[int, int]] = []
    keys = program.client(threads=1).evaluation_keys(progress=lambda *seen: told.append(seen))
    assert told[-1] == (keys.count, keys.count)
    assert keys.count == len(demand.rotations) + 1 == len(set(demand.rotations)) + 1
    full = program.params.key_bytes(rotations=list(demand.rotations))
    assert keys.nbytes <= full
    client = program.client(threads=1)
    server = program.server(client.secret.evaluation_keys(), threads=1)
    with pytest.raises(jali.KeyMissing):
        server(client.encrypt(x[:1]))


def test_numbers_outside_of_the_calibrated_range_are_refused(rng: np.random.Generator) -> None:
    f, x = perceptron(rng, scalar.sigmoid), rng.uniform(-1, 1, (50, 10))
    program = jali.compile(f, x[0], calibration=x)
    client = program.client(threads=1)
    wrong = x[:3].copy()
    wrong[1, 4] = 17.0
    with pytest.raises(
        jali.InvalidArgument, match=r"x\[4\] of example 1 is not among the numbers"
    ) as refused:
        client.encrypt(wrong)
    with pytest.warns(UserWarning, match="a client refuses these numbers: x") as told:
        program.simulate(wrong)
    assert str(refused.value) in str(told[0].message) and told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program.simulate(x)
    with pytest.raises(jali.InvalidArgument, match="NaN"):
        client.encrypt(x[:3] * np.nan)
    with pytest.raises(jali.InvalidArgument, match=r"shape \(10,\)"):
        client.encrypt(x[:3, :9])
    with pytest.raises(jali.InvalidArgument, match="rows differ in length"):
        client.encrypt([[1.0, 2.0], [3.0]])
    with pytest.raises(jali.InvalidArgument, match="takes 1 array, and was given 2"):
        client.encrypt(x, x)


def test_numbers_unlike_the_calibration_are_found_at_decryption(rng: np.random.Generator) -> None:
    """Their root mean square is above the calibration's, which is no declaration of the user's:
    encryption takes them."""
    x = rng.uniform(-0.1, 0.1, (50, 10))
    program = jali.compile(lambda v: np.square(v) * 0.5, x[0], calibration=x, input_range=(-1, 1))
    with pytest.raises(jali.WrongDecryption, match="calibrated"):
        encrypted(program, np.full((50, 10), 0.999))


def test_a_server_holds_no_secret(rng: np.random.Generator) -> None:
    """Nothing that it refers to is a client, and what it was made from was bytes."""
    f, x = perceptron(rng, np.square), rng.uniform(-1, 1, (50, 10))
    program = jali.compile(f, x[0], calibration=x)
    keys = program.client(threads=1).evaluation_keys().to_bytes()
    server = program.server(ckks.EvaluationKeys.from_bytes(keys, program.params), threads=1)
    seen: set[int] = set()
    left: list[Any] = [server, program]
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        assert (
            not isinstance(one, (ckks.Client, nn.Client)) and "ClientCore" not in type(one).__name__
        )
        if isinstance(one, dict):
            left += one.values()
        elif isinstance(one, (list, tuple, set)):
            left += one
        elif type(one).__module__.startswith("jali"):
            names = [*getattr(one, "__dict__", ()), *getattr(type(one), "__slots__", ())]
            left += [getattr(one, name) for name in names if hasattr(one, name)]
    assert len(seen) > 100


def test_messages_of_others_are_refused(rng: np.random.Generator) -> None:
    f, x = perceptron(rng, np.square), rng.uniform(-1, 1, (50, 10))
    program = jali.compile(f, x[0], calibration=x, batch=4)
    other = jali.compile(f, x[0], calibration=2 * x, batch=4)
    client, stranger = program.client(threads=1), program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1)
    with pytest.raises(jali.InvalidArgument, match="another program"):
        server(other.client(threads=1).encrypt(x[:1]))
    with pytest.raises(jali.KeyMismatch):
        server(stranger.encrypt(x[:1]))
    with pytest.raises(jali.KeyMismatch):
        stranger.decrypt(server(client.encrypt(x[:1])))
    good = client.encrypt(x[:6])
    for arrays, count in (((), 6), (good.arrays * 2, 6), (good.arrays, 9), (good.arrays, 4)):
        with pytest.raises(jali.InvalidArgument):
            server(nn.Message(good.program, count, False, arrays))
    low = client.secret.encrypt(np.zeros(program.params.slots), level=0)
    with pytest.raises(jali.InvalidArgument, match="level"):
        server(nn.Message(good.program, 1, False, ((low,),)))


def test_servers_of_one_program_do_not_disturb_each_other(rng: np.random.Generator) -> None:
    f, x = perceptron(rng, np.square), rng.uniform(-1, 1, (50, 10))
    program = jali.compile(f, x[0], calibration=x)
    clients = [program.client(threads=1) for _ in range(2)]
    devices = ("cpu", "cpu/portable")
    servers = [
        program.server(c.evaluation_keys(), device=d, threads=1)
        for c, d in zip(clients, devices, strict=True)
    ]
    for _ in range(2):
        for client, server in zip(clients, servers, strict=True):
            assert_precise(program, client.decrypt(server(client.encrypt(x[:1]))), f(x[0])[None])


@pytest.mark.parametrize("activation", [np.square, np.tanh])
def test_results_beyond_the_calibration_are_not_silent(
    activation: Any, rng: np.random.Generator
) -> None:
    """Inputs that the user allowed, but of which no example told: the result leaves its range, and
    decryption says so."""
    f, x = perceptron(rng, activation), rng.uniform(-1, 1, (50, 10))
    program = jali.compile(
        f, x[0], calibration=x, input_range=(-300, 300), precision_bits=6, batch=2
    )
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1)
    reply = server(client.encrypt(x[:2] * 290))
    with pytest.raises(jali.WrongDecryption, match="outside of the ranges of the calibration"):
        client.decrypt(reply)
    assert client.decrypt(reply, check=False).shape == (2, 3)
    with pytest.warns(
        UserWarning,
        match="decryption refuses the results of 2 examples of 5 .*, first of example 3",
    ) as told:
        program.simulate(np.concatenate((x[:3], x[:2] * 290)))
    assert told[0].filename == __file__


def test_a_refused_request_names_the_examples(rng: np.random.Generator) -> None:
    """The others of the request can then be sent again."""
    f, x = perceptron(rng, np.square), rng.uniform(-1, 1, (50, 10))
    program = jali.compile(
        f, x[0], calibration=x, input_range=(-300, 300), precision_bits=6, batch=4
    )
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1)
    sent = x[:6].copy()
    for far in (290, 20):  # with and without a number that the ciphertext's own bound refuses
        sent[2], sent[4] = far * x[2], far * x[4]
        with pytest.raises(
            jali.WrongDecryption, match="concerns 2 examples of 6; the first is example 2"
        ) as told:
            client.decrypt(server(client.encrypt(sent)))
        assert "calibrated" in str(told.value)
    others = np.delete(sent, [2, 4], axis=0)
    assert_precise(program, client.decrypt(server(client.encrypt(others))), program.clear(others))
