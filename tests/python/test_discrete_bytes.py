"""Ciphertexts of exact integers are the same after they were written to bytes and loaded, with where
their elements lie. Other bytes are refused before anything is computed with them."""

from __future__ import annotations

import io
import math
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from discrete_world import World, integers, world
from lies import CHECKSUM, HEADER, sealed

import jali
from jali import discrete
from jali.errors import NotPickled, WrongCall

#: Offsets in the payload of a ciphertext, as docs/format.md has them.
LEVEL, BATCH, KEY, FACTOR, SLOT, COEFFICIENT, LOW, HIGH, WRAPS, PACKING, VIEW = (
    *(0, 2, 6, 22, 30, 38, 46, 54, 62, 63, 64),
)


@pytest.fixture
def w() -> World:
    return world()


def sent(w: World, x: discrete.EncryptedArray | discrete.Ciphertext) -> discrete.Ciphertext:
    """The ciphertext on the other side, which knows what this side knows."""
    one = x.ciphertext if isinstance(x, discrete.EncryptedArray) else x
    data = one.to_bytes()
    again = discrete.Ciphertext.from_bytes(data, w.params)
    assert again.to_bytes() == data
    for what in ("shape", "view", "is_padded", "range", "wraps", "level", "noise_budget", "key_id"):
        assert getattr(again, what) == getattr(one, what), what
    return again


VALUES = np.arange(-12, 12).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x: x, VALUES),
        (lambda x: x[1], VALUES[1]),
        (lambda x: x[:, ::-1, 1:3], VALUES[:, ::-1, 1:3]),
        (lambda x: x[1, 2, 3], VALUES[1, 2, 3]),
        (lambda x: x.T, VALUES.T),
        (lambda x: x[:, None, :, :2], VALUES[:, None, :, :2]),
        (lambda x: x * x - 2 * x, VALUES * VALUES - 2 * VALUES),
        (lambda x: x.sum(axis=2), VALUES.sum(axis=2)),
        (lambda x: x.sum(), VALUES.sum()),
        (lambda x: x.sum(axis=(0, 2), keepdims=True), VALUES.sum(axis=(0, 2), keepdims=True)),
        (lambda x: np.stack([x[0], -x[1]]), np.stack([VALUES[0], -VALUES[1]])),
        (lambda x: x[0] @ VALUES[1].T, VALUES[0] @ VALUES[1].T),
        (lambda x: x.wrap() * 30000, None),
    ],
)
def test_arrays_are_the_same_on_the_other_side(w: World, make: Any, expected: Any) -> None:
    x = make(w.bind(VALUES, range=(-12, 12)))
    if expected is None:
        expected = (VALUES * 30000 + 32768) % 65537 - 32768
    again = sent(w, x)
    found = w.client.decrypt(again)
    assert found.shape == np.shape(expected) and (found == expected).all()
    y = w.server.bind(again)  # which computes with it as with its own
    assert (w.shown(y.sum()) - np.sum(expected)) % w.params.modulus == 0
    assert (w.shown(y + y) == w.shown(x + x)).all()


def test_arrays_of_many_rows_and_repeated_ones(w: World, rng: np.random.Generator) -> None:
    values = integers(rng, -2, 2, (3, 512))
    x = w.bind(values, range=(-2, 2))
    for make in (
        lambda a: a,
        lambda a: a[1:],
        lambda a: a[2],
        lambda a: a.sum(axis=1),
        lambda a: a.sum(axis=0),
        lambda a: a[:, ::2],
        lambda a: a[0].reshape(2, 256).sum(axis=0),  # of a whole row: it repeats
        lambda a: a[0].sum(),
        lambda a: a[0].sum() + a[1],
    ):
        again = sent(w, make(x))
        assert (w.client.decrypt(again) == make(values)).all()
        y = w.server.bind(again)
        assert (w.shown(y + 1) == make(values) + 1).all()
        assert (w.shown(y.sum(wrap=True)) - np.sum(make(values))) % w.params.modulus == 0
    assert sent(w, x[0].reshape(2, 256).sum(axis=0)).view[2] == 256  # a period


def test_every_kind_of_parameters(rng: np.random.Generator) -> None:
    for arguments in (
        {"multiplication": "bfv", "depth": 1, "word": "w64"},
        {"modulus": None, "integers": 59, "depth": 1, "word": "w32"},
        {"modulus": 2**64, "packing": "coefficients", "depth": 0},
    ):
        other = world(**arguments)
        values = integers(rng, -9, 9, (2, 5))
        x = other.bind(values, range=(-9, 9))
        assert (other.client.decrypt(sent(other, x + x)) == 2 * values).all()
        key = discrete.Encryptor(other.client.public_key())
        assert (other.client.decrypt(sent(other, key.encrypt(values))) == values).all()


def test_a_fresh_ciphertext_travels_at_half_the_size(w: World) -> None:
    x = w.client.encrypt([1], range=(0, 1))
    assert len(x.to_bytes()) < 0.6 * len((w.server.bind(x) + 1).ciphertext.to_bytes())


def test_files(w: World, tmp_path: Path) -> None:
    x = w.bind(VALUES, range=(-12, 12))[1].ciphertext
    x.save(tmp_path / "x")
    data = x.to_bytes()
    assert (tmp_path / "x").read_bytes() == data
    stream = io.BytesIO()
    x.save(stream)
    assert stream.getvalue() == data
    for source in (tmp_path / "x", str(tmp_path / "x"), io.BytesIO(data + b"more"), data):
        again = discrete.Ciphertext.load(source, w.params)
        assert (w.client.decrypt(again) == VALUES[1]).all()
    with pytest.raises(jali.FileError):
        discrete.Ciphertext.load(tmp_path / "none", w.params)
    for kind in (bytearray, memoryview):
        assert discrete.Ciphertext.from_bytes(kind(data), w.params).shape == (3, 4)


def test_ways_in_that_are_closed(w: World) -> None:
    x = w.client.encrypt([1])
    for one in (x, w.server.bind(x)):
        with pytest.raises(NotPickled, match="to_bytes"):
            pickle.dumps(one)
    data = x.to_bytes()
    with pytest.raises(jali.LimitExceeded):
        discrete.Ciphertext.from_bytes(data, w.params, max_bytes=len(data) - 1)
    with pytest.raises(jali.LimitExceeded):  # the memory of both parts is more than was sent
        discrete.Ciphertext.from_bytes(data, w.params, max_bytes=x.nbytes - 1)
    with pytest.raises(jali.ParamsMismatch):
        discrete.Ciphertext.from_bytes(data, world(depth=1).params)
    with pytest.raises(jali.CorruptData):
        discrete.Ciphertext.from_bytes(w.params.to_bytes(), w.params)
    with pytest.raises(jali.InvalidArgument):
        discrete.Ciphertext.from_bytes("text", w.params)  # type: ignore[arg-type]
    with pytest.raises(WrongCall):
        discrete.Ciphertext()


def test_damage_is_found(w: World, rng: np.random.Generator) -> None:
    data = w.bind(VALUES, range=(-12, 12))[1].ciphertext.to_bytes()
    places = [*range(HEADER + VIEW + 40), *rng.integers(0, len(data), 200).tolist()]
    for at in places:
        bad = bytearray(data)
        bad[at] ^= 1 << int(rng.integers(8))
        with pytest.raises((jali.CorruptData, jali.VersionError)):
            discrete.Ciphertext.from_bytes(bytes(bad), w.params)
    for size in [*range(HEADER + VIEW + 40), *rng.integers(0, len(data), 50).tolist()]:
        with pytest.raises(jali.CorruptData):
            discrete.Ciphertext.from_bytes(data[:size], w.params)


def patched(data: bytes, at: int, form: str, value: Any) -> bytes:
    """With another field, and a checksum that fits."""
    bad = bytearray(data)
    struct.pack_into(f"<{form}", bad, HEADER + at, value)
    return sealed(bytes(bad))


NO_NUMBER = [-1.0, -0.0, math.inf, -math.inf, math.nan, 1.01e300]


@pytest.mark.parametrize(
    ("at", "form", "values"),
    [
        (LEVEL, "H", [4, 0xFFFF]),
        (BATCH, "I", [0, 2, 0xFFFFFFFF]),
        (FACTOR, "Q", [0, 65537, 65538, 2**63]),
        (SLOT, "d", NO_NUMBER),
        (COEFFICIENT, "d", NO_NUMBER),
        (LOW, "q", [13, 12 - 65537, -(2**63)]),
        (HIGH, "q", [-13, 65537 - 12, 2**63 - 1]),
        (WRAPS, "B", [1, 2, 255]),
        (PACKING, "B", [0, 2, 3 + 4, 255]),
        (VIEW, "B", [1, 3, 16, 17, 255]),
        (VIEW + 1, "I", [0, 300, 2**31, 2**32 - 1]),
        (VIEW + 5, "i", [0, 1024, -4, 2**31 - 1, -(2**31)]),
        (VIEW + 17, "I", [1024, 2**31, 2**32 - 1]),
        (VIEW + 21, "I", [1, 3, 8, 1024, 2**31]),
    ],
)
def test_fields_that_no_ciphertext_has_are_refused(
    w: World, at: int, form: str, values: list[Any]
) -> None:
    data = w.client.encrypt(VALUES[0], range=(-12, 12)).to_bytes()
    for value in values:
        with pytest.raises(jali.CorruptData):
            discrete.Ciphertext.from_bytes(patched(data, at, form, value), w.params)


def test_lies_that_could_be_true_are_found_by_decryption_or_do_no_harm(w: World) -> None:
    data = w.client.encrypt(VALUES[0], range=(-12, 12)).to_bytes()

    def read(at: int, form: str, value: Any) -> discrete.Ciphertext:
        return discrete.Ciphertext.from_bytes(patched(data, at, form, value), w.params)

    for at, form, value in ((LOW, "q", -3), (HIGH, "q", -2), (SLOT, "d", 0.0)):
        with pytest.raises(jali.WrongDecryption):
            w.client.decrypt(read(at, form, value))
    unknown = read(SLOT, "d", 1e300)
    assert (w.client.decrypt(unknown) == VALUES[0]).all()  # the other bound holds
    nothing = discrete.Ciphertext.from_bytes(
        patched(patched(data, SLOT, "d", 1e300), COEFFICIENT, "d", 1e300), w.params
    )
    with pytest.raises(jali.DepthExhausted):
        w.client.decrypt(nothing)
    with pytest.raises(jali.DepthExhausted):
        w.server.bind(nothing) + 1
    with pytest.raises(jali.KeyMismatch):
        w.client.decrypt(read(KEY, "Q", 1))
    with pytest.raises(jali.KeyMismatch):
        w.server.bind(read(KEY, "Q", 1))
    # Another factor makes other residues, which are out of the range but for one in 2,621 a number.
    with pytest.raises(jali.WrongDecryption):
        w.client.decrypt(read(FACTOR, "Q", 12345))
    # Another view shows other slots of the same vector, and none beside it.
    moved = w.client.decrypt(read(VIEW + 17, "I", 1))
    flat = np.append(VALUES[0].reshape(-1), [0])
    assert moved.reshape(-1).tolist() == flat[1:].tolist()
    overlapping = read(VIEW + 5, "i", 1)
    found = w.client.decrypt(overlapping)
    assert found[1].tolist() == flat[1:5].tolist()
    y = w.server.bind(overlapping)
    assert (w.shown(y + y) == 2 * found).all()


def test_sums_of_what_lies_beside_a_false_claim_stay_within_the_modulus(w: World) -> None:
    """A peer says that the slots beside three elements are zero. They are not, and the sum that
    relies on it is out of the range that was computed for it, which decryption finds."""
    data = w.client.encrypt(np.full(512, 12), range=(0, 12)).to_bytes()
    lie = patched(data, VIEW + 1, "I", 3)
    y = w.server.bind(discrete.Ciphertext.from_bytes(lie, w.params)).sum()
    assert y.range == (0, 36)
    with pytest.raises(jali.WrongDecryption):
        w.shown(y)


def test_what_cxx_wrote_without_a_view_is_an_array_of_vectors(w: World) -> None:
    data = w.client.encrypt(np.arange(-1024, 1024).reshape(4, 512), range=(-1024, 1023)).to_bytes()
    payload = data[HEADER:-CHECKSUM]
    view = 1 + 8 * 2 + 8
    bare = payload[:PACKING] + b"\0" + payload[VIEW + view :]
    x = discrete.Ciphertext.from_bytes(sealed(data[:HEADER] + bare + bytes(CHECKSUM)), w.params)
    assert x.shape == (2, 1024)
    assert (w.client.decrypt(x) == np.arange(-1024, 1024).reshape(2, 1024)).all()
    y = w.server.bind(x)
    assert (w.shown(y[1] - y[0]) == 1024).all()
    assert sent(w, y).shape == (2, 1024)
