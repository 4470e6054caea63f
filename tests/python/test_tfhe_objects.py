"""What TFHE computes with: parameters, clients, keys and their bytes."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
from tfhe_world import World, make

import jali
from jali import tfhe


@pytest.fixture(scope="module", params=["switch_first", "bootstrap_first"])
def world(request: pytest.FixtureRequest) -> World:
    return World(make(order=request.param))


@pytest.fixture(scope="module")
def wide() -> World:
    return World(make())


def test_parameters_of_another_kind_are_refused(wide: World) -> None:
    other = make(glwe_noise_bits=11)
    assert other != wide.params and make() == wide.params
    with pytest.raises(jali.ParamsMismatch):
        tfhe.Evaluator(other, wide.keys)
    with pytest.raises(jali.ParamsMismatch):
        tfhe.Client(other).decrypt(wide.client.encrypt([1]))
    with pytest.raises(jali.InsecureParams, match="insecure_"):
        make(name="plain")


def test_objects_are_values(wide: World) -> None:
    x = wide.given([1])
    assert copy.deepcopy(x) is x
    for thing in (wide.params, wide.keys, x, x.ciphertext, wide.client):
        with pytest.raises(jali.Error):
            pickle.dumps(thing)
        assert "insecure_test" in repr(thing)


def test_a_wrong_decryption_is_found() -> None:
    """A value that was never possible, because the client encrypted it with another bound."""
    w = World(make())
    low = w.given([0], largest=0)
    high = w.given([3])
    mixed = w.client.encrypt([3])
    assert w.client.decrypt(mixed)[0] == 3
    assert (low + high).largest == 3
    w.shows(low + high, [3])


def test_everything_that_travels_comes_back(wide: World, tmp_path: Path) -> None:
    params = tfhe.Params.from_bytes(wide.params.to_bytes(), min_security=0)
    assert params == wide.params and params.name == wide.params.name
    keys = tfhe.EvaluationKeys.from_bytes(wide.keys.to_bytes(), params)
    wide.keys.save(tmp_path / "keys")
    assert tfhe.EvaluationKeys.load(tmp_path / "keys", params).to_bytes() == wide.keys.to_bytes()
    server = tfhe.Evaluator(params, keys, threads=1)
    a = np.arange(6).reshape(2, 3) % 4
    fresh = wide.client.encrypt(a)
    assert len(fresh.to_bytes()) < 6 * 8 + 300  # masks are a seed
    x = tfhe.Ciphertext.from_bytes(fresh.to_bytes(), params)
    assert x.shape == (2, 3) and x.bits == 0
    y = (server.bind(x) + 1).ciphertext
    y.save(tmp_path / "y")
    np.testing.assert_array_equal(
        wide.client.decrypt(tfhe.Ciphertext.load(tmp_path / "y", params)), a + 1
    )
    signed = wide.client.encrypt_int([[-5], [100]], bits=8)
    again = tfhe.Ciphertext.from_bytes(signed.to_bytes(), params)
    assert again.shape == (2, 1) and again.bits == 8 and again.is_signed
    np.testing.assert_array_equal(wide.client.decrypt(again), [[-5], [100]])
    wide.client.save(tmp_path / "secret")
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    for client in (
        tfhe.Client.load(tmp_path / "secret", params),
        tfhe.Client.from_secret_bytes(wide.client.secret_to_bytes(), params),
    ):
        assert client.key_id == wide.client.key_id
        np.testing.assert_array_equal(client.decrypt(fresh), a)


def test_bytes_that_are_wrong_are_refused(wide: World) -> None:
    blob = wide.client.encrypt([1, 2]).to_bytes()
    wrong = [blob[:-1], blob + b"x", blob[:100] + bytes([blob[100] ^ 1]) + blob[101:], b""]
    for data in wrong:
        with pytest.raises(jali.CorruptData):
            tfhe.Ciphertext.from_bytes(data, wide.params)
    with pytest.raises(jali.ParamsMismatch):
        tfhe.Ciphertext.from_bytes(blob, make(glwe_noise_bits=11))
    with pytest.raises(jali.LimitExceeded):
        tfhe.EvaluationKeys.from_bytes(wide.keys.to_bytes(), wide.params, max_bytes=1000)
    with pytest.raises(jali.InsecureParams):
        tfhe.Params.from_bytes(wide.params.to_bytes())
    with pytest.raises(jali.CorruptData):
        tfhe.Client.from_secret_bytes(wide.client.secret_to_bytes()[:-1], wide.params)


def test_noise_and_security_of_free_parameters(world: World) -> None:
    params = world.params
    small = params.order == "bootstrap_first"
    noise_bits, word = (4, 32) if small else (10, 64)
    fresh = (2.0 ** (2 * noise_bits + 1) + 1) / 6 / 2.0 ** (2 * word)  # TUniform
    assert params.fresh_variance == pytest.approx(fresh, rel=1e-12, abs=0)
    one = params.bootstrapped_variance
    more = params.variance_before_look_up(9) - params.variance_before_look_up(4)
    assert more == pytest.approx(5 * one, rel=1e-6, abs=0)  # noise is a sum over the weights
    assert params.log2_failure(9) < params.log2_failure(16) < 0
    assert params.log2_failure(9, 0.25) < params.log2_failure(9)
    assert params.key_security[0] < 128  # insecure parameters are seen to be
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(jali.InvalidArgument, match="norm2"):
            params.log2_failure(wrong)
    with pytest.raises(jali.InvalidArgument, match="log_many"):
        params.variance_before_look_up(1, 17)
    with pytest.raises(jali.InvalidArgument, match="half_box"):
        params.log2_failure(1, 0.75)


def test_presets_are_secure_and_hardly_ever_fail() -> None:
    names = tfhe.Params.presets()
    assert {"boolean", "message_2_carry_2", "message_4_carry_4"} <= set(names)
    for name in names:
        params = tfhe.Params.preset(name)
        assert params.name == name
        if not name.startswith("insecure_"):
            assert params.security >= 128
        if "strix" not in name:
            assert params.log2_p_fail <= -128
    with pytest.raises(jali.InvalidArgument, match="boolean"):
        tfhe.Params.preset("unknown")


@pytest.mark.long
def test_the_usual_preset_computes() -> None:
    params = tfhe.Params.preset("message_2_carry_2")
    client = tfhe.Client(params)
    server = tfhe.Evaluator(params, client.evaluation_keys())
    a, b = np.divmod(np.arange(16), 4)
    x, y = server.bind(client.encrypt(a)), server.bind(client.encrypt(b))
    np.testing.assert_array_equal(
        client.decrypt(server.apply(lambda v, w: v * w % 4, x, y)), a * b % 4
    )
    u = np.array([200, 17], dtype=np.uint8)
    z = server.bind(client.encrypt_uint(u, bits=8))
    np.testing.assert_array_equal(client.decrypt(z + 100), u + np.uint8(100))
    np.testing.assert_array_equal(client.decrypt(z * z), u * u)


def test_a_client_says_what_computes() -> None:
    client = tfhe.Client(make(), threads=1)
    assert client.engine == "cpu"
    assert tfhe.Client(make(), device="auto").engine in ("cpu", "cuda:0")
    with pytest.raises(jali.InvalidArgument):
        tfhe.Client(make(), device="tpu")
    with pytest.raises(jali.InvalidArgument):
        tfhe.Client.from_secret_bytes(client.secret_to_bytes(), make(), device="tpu")
