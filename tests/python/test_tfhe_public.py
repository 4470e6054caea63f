"""Owners who have a client's public key of TFHE encrypt for it, and can do nothing else."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tfhe_world import World, make

import jali
from jali import tfhe

SHAPES: dict[str, dict[str, object]] = {
    "large": {},
    "several polynomials": {"k": 2, "N": 512},
    "words of 32 bits": {
        "torus_bits": 32,
        "rotation_gadget": (8, 3),
        "glwe_noise_bits": 2,
        "N": 1024,
        "max_norm2": 20,
    },
    "small": {"order": "bootstrap_first", "max_norm2": 20},
}


@pytest.fixture(scope="module", params=SHAPES)
def w(request: pytest.FixtureRequest) -> World:
    return World(make(**SHAPES[request.param]))


@pytest.fixture(scope="module")
def one() -> World:
    return World(make())


@pytest.fixture
def owner(w: World) -> tfhe.Encryptor:
    return owner_of(w)


def owner_of(w: World) -> tfhe.Encryptor:
    """An owner who got bytes, and nothing else."""
    data = w.client.public_key().to_bytes()
    return tfhe.Encryptor(w.params, tfhe.PublicKey.from_bytes(data, w.params), threads=1)


def bound(w: World, sent: tfhe.CompactCiphertext) -> Any:
    return w.server.bind(tfhe.CompactCiphertext.from_bytes(sent.to_bytes(), w.params))


def test_messages_and_integers_of_two_owners(w: World, owner: tfhe.Encryptor) -> None:
    other = owner_of(w)
    a, b = np.array([[0, 1, 2], [3, 2, 1]]), np.array([[3, 2, 0], [0, 1, 1]])
    x, y = bound(w, owner.encrypt(a)), bound(w, other.encrypt(b))
    w.shows(x, a)
    w.shows(x + y, a + b)
    w.shows(w.server.apply(lambda v: v * v % 16, x + y), (a + b) ** 2 % 16)
    w.shows(x + w.given(b), a + b)
    w.shows(w.server.concatenate([x, y]), np.concatenate([a, b]))
    u, v = np.array([0, 200, 17, 255]), np.array([5, 1, 100, 0])
    p, q = (bound(w, o.encrypt_uint(n, 8)) for o, n in ((owner, u), (other, v)))
    w.shows(p + q, (u + v).astype(np.uint8))
    w.shows(p > q, u > v)
    s = bound(w, other.encrypt_int([-8, 7, 0], 4))
    w.shows(-s + 1, np.array([-7, -6, 1], np.int8))
    assert x.norm2 == 1 and (x + y).norm2 == 2


def test_booleans_and_bounds(one: World) -> None:
    owner = owner_of(one)
    flags = np.array([True, False, True])
    one.shows(bound(one, owner.encrypt(flags, largest=1)), flags.astype(int))
    votes = [bound(one, owner.encrypt([1], largest=1)) for _ in range(10)]
    total = votes[0]
    for vote in votes[1:]:
        total = total + vote
    one.shows(total, [10])
    assert total.largest == 10 and total.norm2 == 10
    one.shows(bound(one, owner.encrypt([9], largest=15)), [9])


def test_the_client_reads_what_owners_send(w: World, owner: tfhe.Encryptor) -> None:
    for values in (3, [1], np.arange(600) % 4, np.arange(8).reshape(2, 2, 2) % 4):
        sent = owner.encrypt(values)
        got = w.client.decrypt(sent)
        assert got.shape == np.shape(values) == sent.shape
        np.testing.assert_array_equal(got, values)
    numbers = np.array([-(2**63), 2**63 - 1, -1])
    np.testing.assert_array_equal(w.client.decrypt(owner.encrypt_int(numbers, 64)), numbers)


def test_sizes_are_those_that_are_stated(w: World, owner: tfhe.Encryptor) -> None:
    key = w.client.public_key()
    word = w.params.torus_bits // 8
    assert key.nbytes == w.params.public_key_bytes == 32 + w.params.k * w.params.N * word
    assert len(key.to_bytes()) == key.nbytes + 64 + 16
    if w.params.order == "switch_first":
        assert owner.encrypt([0] * 5).nbytes == (w.params.k * w.params.N + 5) * word
    assert owner.encrypt([0] * 5).nbytes == w.params.compact_ciphertext_bytes(5)
    with pytest.raises(jali.InvalidArgument):
        w.params.compact_ciphertext_bytes(2**63)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long) if name == "message_4_carry_4" else name
        for name in tfhe.Params.presets()
    ],
)
def test_every_preset(name: str) -> None:
    params = tfhe.Params.preset(name)
    client = tfhe.Client(params)
    owner = tfhe.Encryptor(params, client.public_key())
    largest = 2 ** (params.message_bits + params.carry_bits) - 1
    values = np.arange(params.N // 2 + 3) % (largest + 1)
    np.testing.assert_array_equal(client.decrypt(owner.encrypt(values, largest=largest)), values)
    # A message counts as one look-up's result, of which its noise is a small part.
    assert params.fresh_public_variance * params.N < 0.002 * params.bootstrapped_variance


def test_an_owner_cannot_decrypt(one: World) -> None:
    """It holds no secret, has no method that decrypts, and what it holds gives no evaluation
    keys."""
    owner = owner_of(one)
    for name in ("decrypt", "secret_to_bytes", "save", "evaluation_keys", "bind"):
        with pytest.raises(AttributeError):
            getattr(owner, name)
    with pytest.raises((TypeError, jali.Error)):
        pickle.dumps(owner)
    key = one.client.public_key()
    with pytest.raises(jali.CorruptData):
        tfhe.Client.from_secret_bytes(key.to_bytes(), one.params)
    with pytest.raises(jali.CorruptData):
        tfhe.EvaluationKeys.from_bytes(key.to_bytes(), one.params)
    sent = owner.encrypt([1])
    with pytest.raises(jali.KeyMismatch):
        tfhe.Client(one.params).decrypt(sent)
    with pytest.raises(jali.KeyMismatch):
        World(one.params).server.bind(sent)


def test_what_owners_send_does_not_depend_on_their_numbers(one: World) -> None:
    owner = owner_of(one)
    zeros, others, again = (owner.encrypt(np.full((3, 2), v)).to_bytes() for v in (0, 3, 3))
    words = one.params.compact_ciphertext_bytes(6) + 16
    assert len(zeros) == len(others)
    assert zeros[:-words] == others[:-words]
    one_half, other_half = (np.frombuffer(b[-words:-16], np.uint8) for b in (others, again))
    # 4,144 bytes are equal by chance with 1/256 each: more than 60 with a probability below 1e-13
    assert (one_half == other_half).sum() < 60


def test_equal_bytes_count_as_equal_errors(one: World) -> None:
    owner = owner_of(one)
    data = owner.encrypt([1, 2]).to_bytes()
    x, y = (one.server.bind(tfhe.CompactCiphertext.from_bytes(data, one.params)) for _ in range(2))
    assert (x + y).norm2 == 4
    assert (x + one.server.bind(owner.encrypt([1, 2]))).norm2 == 2


def test_files(one: World, tmp_path: Path) -> None:
    key, sent = one.client.public_key(), owner_of(one).encrypt_uint([[5, 6]], 4)
    key.save(tmp_path / "key")
    sent.save(tmp_path / "sent")
    again = tfhe.PublicKey.load(tmp_path / "key", one.params)
    assert again.to_bytes() == key.to_bytes() and again.key_id == one.client.key_id
    read = tfhe.CompactCiphertext.load(tmp_path / "sent", one.params)
    assert (read.shape, read.bits, read.is_signed) == ((1, 2), 4, False)
    assert one.client.decrypt(read).tolist() == [[5, 6]]
    assert repr(read) == "CompactCiphertext(shape=(1,2,), uint4, params='insecure_test')"
    assert repr(again) == f"PublicKey(params='insecure_test', nbytes={32 + 8 * 512})"
    assert repr(owner_of(one)).startswith("Encryptor(params='insecure_test', key_id=")


def test_hostile_bytes_give_objects_or_errors(w: World, rng: np.random.Generator) -> None:
    key, sent = w.client.public_key(), owner_of(w).encrypt([1, 2, 3])
    for kind, valid in (
        (tfhe.PublicKey, key.to_bytes()),
        (tfhe.CompactCiphertext, sent.to_bytes()),
    ):
        for _ in range(300):
            data = bytearray(valid)
            for _ in range(int(rng.integers(1, 4))):
                data[int(rng.integers(0, min(len(data), 160)))] = int(rng.integers(0, 256))
            if rng.integers(0, 4) == 0:
                del data[int(rng.integers(0, len(data))) :]
            with pytest.raises((jali.CorruptData, jali.VersionError, jali.ParamsMismatch)):
                kind.from_bytes(bytes(data) + b"x", w.params)
        with pytest.raises(jali.LimitExceeded):
            kind.from_bytes(valid, w.params, max_bytes=100)
    with pytest.raises(jali.CorruptData, match="ciphertext of a public key, not a ciphertext"):
        tfhe.Ciphertext.from_bytes(sent.to_bytes(), w.params)


REFUSED: dict[str, tuple[Callable[[World, tfhe.Encryptor], object], type[Exception], str]] = {
    "too large": (lambda _, o: o.encrypt([4]), jali.InvalidArgument, "from 0 to 3"),
    "negative": (lambda _, o: o.encrypt([-1]), jali.InvalidArgument, "from 0 to 3"),
    "fraction": (lambda _, o: o.encrypt([0.5]), jali.InvalidArgument, "jali.ckks"),
    "wide": (lambda _, o: o.encrypt_uint([256], 8), jali.InvalidArgument, "more bits"),
    "signed": (lambda _, o: o.encrypt_uint([-1], 8), jali.InvalidArgument, "encrypt_int"),
    "none": (lambda _, o: o.encrypt([]), jali.InvalidArgument, "at least one"),
    "largest": (lambda _, o: o.encrypt([1], largest=16), jali.InvalidArgument, "more bits"),
    "twice": (lambda _, o: o.encrypt(o.encrypt([1])), jali.InvalidArgument, "are encrypted"),
    "call": (lambda _, o: o([1]), jali.Unsupported, r"encryptor\.encrypt"),
    "as in ckks": (
        lambda w, _: tfhe.Encryptor(w.client.public_key(), w.params),  # type: ignore[arg-type]
        jali.InvalidArgument,
        r"Encryptor\(params, key\)",
    ),
    "no key": (
        lambda w, _: tfhe.Encryptor(w.params, w.keys),  # type: ignore[arg-type]
        jali.InvalidArgument,
        r"Client\.public_key\(\)",
    ),
    "other parameters": (
        lambda w, _: tfhe.Encryptor(make(3, 3), w.client.public_key()),
        jali.ParamsMismatch,
        "public key",
    ),
    "unbound": (lambda _, o: o.encrypt([1]) + 1, jali.Unsupported, r"evaluator\.bind"),
    "applied": (
        lambda w, o: w.server.apply(lambda v: v, o.encrypt([1])),
        jali.InvalidArgument,
        "bind it first",
    ),
    "made": (lambda _, __: tfhe.PublicKey(), TypeError, r"Client\.public_key"),
    "made ciphertext": (lambda _, __: tfhe.CompactCiphertext(), TypeError, "Encryptor.encrypt"),
    "pickled": (lambda w, _: pickle.dumps(w.client.public_key()), TypeError, "to_bytes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_what_to_do(one: World, name: str) -> None:
    call, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        call(one, owner_of(one))
