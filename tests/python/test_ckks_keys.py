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


# --- identity ------------------------------------------------------------------------------------


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
        lambda: (x + x) * y,
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


# --- rotations -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def powers(client) -> ckks.EvaluationKeys:
    return client.evaluation_keys(rotations="powers")


@pytest.fixture(scope="module")
def server(powers) -> ckks.Evaluator:
    return ckks.Evaluator(PARAMS, powers)


def test_the_memory_of_powers_is_known_before(powers):
    assert PARAMS.key_bytes(rotations="powers") == powers.nbytes
    assert powers.count == 2 * 12 - 1 + 1  # of 4096 slots, and relinearisation
    assert PARAMS.expanded_key_bytes(rotations="powers") > powers.nbytes
    for call in (
        lambda: PARAMS.key_bytes(rotations="all"),
        lambda: ckks.Client(PARAMS).evaluation_keys("all"),
    ):
        with pytest.raises(jali.InvalidArgument, match="powers"):
            call()


def test_powers_serve_every_rotation(client, server, powers):
    v = np.random.default_rng().uniform(-1, 1, PARAMS.slots)
    x = server.bind(client.encrypt(v))
    for steps in (1, -1, 3, 100, -2047, 2048, 4095, 8191):
        assert powers.has_rotation(steps)
        assert np.allclose(client.decrypt(x.rotate(steps)), np.roll(v, -steps), atol=1e-5)


def test_what_the_keys_say_is_what_rotate_does(client):
    """has_rotation(3) was False where x.rotate(3) worked; rotate(-1) failed where powers of two
    would do."""
    upward = client.evaluation_keys([1 << k for k in range(12)])
    few = client.evaluation_keys([512])
    for keys in (upward, few):
        x = ckks.Evaluator(PARAMS, keys).bind(client.encrypt(np.arange(8) / 8))
        for steps in (3, -1, 1, 512, 1024, 300):
            if keys.has_rotation(steps):
                x.rotate(steps)
            else:
                with pytest.raises(jali.KeyMissing, match='rotations="powers"'):
                    x.rotate(steps)
    assert upward.has_rotation(3) and upward.has_rotation(-1)
    assert few.has_rotation(1024) and not few.has_rotation(3)


def test_explicit_rotations_need_their_own_keys(client, server):
    x = client.encrypt([1.0])
    assert server.explicit.has_rotation(4) and not server.explicit.has_rotation(3)
    with pytest.raises(jali.KeyMissing):
        server.explicit.rotate(x, 3)


@pytest.mark.parametrize("keys_of", ["powers", "minimum", "documented"])
def test_matrix_products_use_the_keys_that_there_are(client, keys_of):
    """The docstring named other rotations than it needed; keys of minimum=True failed in matvec."""
    rng = np.random.default_rng()
    matrix, v = rng.uniform(-0.3, 0.3, (20, 30)), rng.uniform(-1, 1, 30)
    inline = ckks.MatVec(matrix, PARAMS, level=2, layout="natural", streaming=True)
    plan = ckks.MatVec(matrix, PARAMS)
    wanted = [*inline.rotations, *plan.rotations]
    keys = {
        "powers": lambda: client.evaluation_keys("powers"),
        "minimum": lambda: client.evaluation_keys(wanted, minimum=True),
        "documented": lambda: client.evaluation_keys(inline.rotations),
    }[keys_of]()
    server = ckks.Evaluator(PARAMS, keys)
    x = server.bind(client.encrypt(v, level=2))
    assert np.allclose(client.decrypt(matrix @ x), matrix @ v, atol=1e-5)
    if keys_of == "documented":
        assert all(server.explicit.has_rotation(r) for r in inline.rotations)
        return
    assert not all(server.explicit.has_rotation(r) for r in wanted)
    y = server.bind(client.encrypt(plan.pack(v)[0], level=2))
    assert np.allclose(client.decrypt(server.matvec(plan, y)), matrix @ v, atol=1e-5)
    square = rng.uniform(-0.3, 0.3, (64, 64))
    transform = ckks.LinearTransform.from_matrix(square, PARAMS)
    z = server.bind(client.encrypt(square[0], slots=64))
    if keys_of == "powers":
        expected = square @ square[0]
        assert np.allclose(
            client.decrypt(server.linear_transform(transform, z)), expected, atol=1e-5
        )
        assert np.allclose(client.decrypt(x.sum(32))[0], v.sum(), atol=1e-4)


def test_composed_rotations_are_told_once(client, server, caplog):
    x = server.bind(client.encrypt([1.0]))
    with caplog.at_level("INFO", logger="jali"):
        for _ in range(3):
            x.rotate(777)
        x.rotate(4)
    told = [r.getMessage() for r in caplog.records if "composed" in r.getMessage()]
    assert len(told) == 1 and "777" in told[0]


def test_progress_of_ordinary_keys(client):
    seen = []
    keys = client.evaluation_keys(
        [1, 2, -1], conjugate=True, progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(k, 5) for k in range(1, 6)] and keys.count == 5

    class Stop(Exception):
        pass

    def stop(done, total):
        raise Stop

    with pytest.raises(Stop):
        client.evaluation_keys([1], progress=stop)


# --- keys for functions --------------------------------------------------------------------------


def test_keys_for_a_function_are_exactly_those_that_it_uses(client):
    rng = np.random.default_rng()
    matrix, v = rng.uniform(-0.3, 0.3, (20, 30)), rng.uniform(-1, 1, 30)

    def squared(x):
        return matrix @ (x * x)

    keys = client.evaluation_keys(for_=squared, example=client.encrypt(np.zeros(30), peak=1.0))
    plan = ckks.MatVec(matrix, PARAMS, level=1, layout="natural", streaming=True)
    assert keys.count == len(plan.rotations) + 1
    assert keys.has_relinearisation and not keys.has_conjugation
    assert keys.key_id == client.key_id
    # Rotations happen at level 1 of 2, so that their keys are smaller than usual ones.
    assert keys.nbytes < PARAMS.key_bytes(plan.rotations)
    sent = ckks.EvaluationKeys.from_bytes(keys.to_bytes(), PARAMS)
    server = ckks.Evaluator(PARAMS, sent)
    x = server.bind(client.encrypt(v, peak=1.0))
    assert np.allclose(client.decrypt(squared(x)), matrix @ v**2, atol=1e-5)
    assert all(server.explicit.has_rotation(r) for r in plan.rotations)
    with pytest.raises(jali.KeyMissing, match="conjugate=True"):
        x.conj()
    with pytest.raises(jali.KeyMissing, match="level"):
        x.rotate(plan.rotations[0])  # at level 2


def test_keys_for_several_functions_and_arguments(client):
    functions = [
        lambda x, y: x * y,
        lambda x, y: [x.rotate(3), (y * 0.5).rotate(3).conj()],
        lambda x, y: x + y,
    ]
    example = (client.encrypt([0.5]), np.array([0.25]))
    keys = client.evaluation_keys(for_=functions, example=example)
    assert keys.count == 3 and keys.has_conjugation and keys.has_rotation(3)
    server = ckks.Evaluator(PARAMS, keys)
    x, y = server.bind(client.encrypt([0.5])), server.bind(client.encrypt([0.25]))
    assert np.allclose(client.decrypt(functions[0](x, y)), [0.125], atol=1e-6)
    turned = client.decrypt(functions[1](x, y)[0], length=PARAMS.slots)
    assert abs(turned[-3] - 0.5) < 1e-6
    only_sums = client.evaluation_keys(for_=functions[2], example=example)
    assert only_sums.count == 0


def test_keys_for_nothing_that_cannot_be(client, other):
    def deep(x):
        return (x * x) * (x * x) * (x * x)

    with pytest.raises(jali.DepthExhausted):
        client.evaluation_keys(for_=deep, example=client.encrypt([0.5], peak=1))
    for arguments, message in (
        ({"for_": deep}, "example="),
        ({"for_": 3, "example": [1.0]}, "function"),
        ({"for_": [deep, "f"], "example": [1.0]}, "function"),
        ({"for_": deep, "example": [1.0], "rotations": [1]}, "leave out"),
        ({"for_": deep, "example": [1.0], "minimum": True}, "leave out"),
        ({"for_": lambda x: 3, "example": [1.0]}, "encrypted array"),
    ):
        with pytest.raises(jali.InvalidArgument, match=message):
            client.evaluation_keys(**arguments)
    with pytest.raises(jali.KeyMismatch):
        client.evaluation_keys(for_=lambda x: x, example=other.encrypt([1.0]))


def test_progress_of_keys_for_a_function(client):
    seen = []
    client.evaluation_keys(
        for_=lambda x: (x * x).rotate(1),
        example=[0.5],
        progress=lambda *counts: seen.append(counts),
    )
    assert seen == [(1, 2), (2, 2)]
