"""Keys: which secret they belong to, and which rotations they serve."""

from __future__ import annotations

import numpy as np
import pytest

import jali
from jali import ckks

PARAMS = ckks.Params.create(depth=2, log_n=13)


@pytest.fixture(scope="module")
def client() -> ckks.Client:
    return ckks.Client(PARAMS)


@pytest.fixture(scope="module")
def other() -> ckks.Client:
    return ckks.Client(PARAMS)


# --- identity ---------------------------------------------------------------------------------------------------------


def test_everything_of_a_client_has_its_name(client, other):
    assert len(client.key_id) == 32 and set(client.key_id) <= set("0123456789abcdef")
    assert client.key_id != other.key_id
    keys, public = client.evaluation_keys([1]), client.public_key()
    x = client.encrypt([1.0])
    for thing in (keys, public, x, ckks.Encryptor(public).encrypt([1.0])):
        assert thing.key_id == client.key_id
    assert ckks.EvaluationKeys.from_bytes(keys.to_bytes(), PARAMS).key_id == client.key_id
    assert ckks.PublicKey.from_bytes(public.to_bytes(), PARAMS).key_id == client.key_id
    assert ckks.Ciphertext.from_bytes(x.to_bytes(), PARAMS).key_id == client.key_id
    again = ckks.Client.from_secret_bytes(client.secret_to_bytes(), PARAMS)
    assert again.key_id == client.key_id
    assert np.allclose(again.decrypt(x), [1.0], atol=1e-6)
    y = ckks.Evaluator(PARAMS, keys).bind(x)
    for result in ((y * y + 1).rotate(1), -y, y * 0.5, y - y):
        assert result.ciphertext.key_id == client.key_id


def test_a_server_with_another_clients_keys_refuses_to_compute(client, other):
    server = ckks.Evaluator(PARAMS, other.evaluation_keys([1]))
    x = client.encrypt([0.5])
    with pytest.raises(jali.KeyMismatch, match="make an evaluator for each client"):
        server.bind(x)
    with pytest.raises(jali.KeyMismatch):
        server.explicit.rotate(x, 1)
    assert issubclass(jali.KeyMismatch, jali.Error) and jali.KeyMismatch.code == "key_mismatch"


def test_ciphertexts_of_two_clients_are_not_mixed(client, other):
    server = ckks.Evaluator(PARAMS)  # without keys, it serves any client
    x, y = server.bind(client.encrypt([0.5])), server.bind(other.encrypt([0.5]))
    for operation in (
        lambda: x + y,
        lambda: y - x,
        lambda: x * y,
        lambda: (x * x) * y,
        lambda: x * x + y * y,
    ):
        with pytest.raises(jali.KeyMismatch, match="one client"):
            client.decrypt(operation())
    for a, owner in ((x, client), (y, other)):
        assert np.allclose(owner.decrypt(a + a), [1.0], atol=1e-6)


def test_recorded_functions_and_batches_serve_one_client(client, other):
    server = ckks.Evaluator(PARAMS)
    x, y = server.bind(client.encrypt([0.5])), server.bind(other.encrypt([0.5]))
    twice = server.capture(lambda a: a + a, x)
    assert np.allclose(client.decrypt(twice(x)), [1.0], atol=1e-6)
    with pytest.raises(jali.KeyMismatch, match="capture the function for each client"):
        twice(y)
    with pytest.raises(jali.KeyMismatch):
        server.map(lambda a: a + a, [x, y])


def test_another_client_decrypts_nothing(client, other):
    x = client.encrypt([0.5])
    for check in (True, False):
        with pytest.raises(jali.KeyMismatch, match="another secret key"):
            other.decrypt(x, check=check)
    policy = ckks.ReleasePolicy(origin="derived", statistical_bits=20)
    with pytest.raises(jali.KeyMismatch):
        other.release(client.encrypt([0.5], level=2), policy=policy)
