"""Two owners encrypt apart under one public key of CKKS, and the server combines their arrays as
NumPy would."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from array_world import Small, small

import jali
from jali import ckks
from jali._core import moves

Numbers = npt.NDArray[Any]


@pytest.fixture(scope="module")
def s() -> Small:
    return small()


@pytest.fixture(scope="module")
def key(s: Small) -> bytes:
    return s.client.public_key().to_bytes()


def owned(s: Small, key: bytes, values: Numbers) -> Any:
    """What an owner who has the public key and nothing else sends, at the server."""
    owner = ckks.Encryptor(ckks.PublicKey.from_bytes(key, s.params))
    sent = owner.encrypt(values, peak=2.0).to_bytes()
    return s.server.bind(ckks.Ciphertext.from_bytes(sent, s.params))


def check(s: Small, key: bytes, function: Any, *arrays: Numbers) -> None:
    s.check(function(*(owned(s, key, a) for a in arrays)), function(*arrays))


# 512 slots: within a vector, across vectors, and more distances than were once allowed.
OUTER = [(8, 8), (7, 100), (70, 70), (512, 3), (30, 130), (2, 600)]


@pytest.mark.parametrize(("n", "m"), OUTER)
def test_a_vector_meets_a_column(
    s: Small, key: bytes, rng: np.random.Generator, n: int, m: int
) -> None:
    a, b = rng.uniform(-1, 1, n), rng.uniform(-1, 1, m)
    check(s, key, lambda a, b: a * b[:, None], a, b)
    check(s, key, lambda a, b: b[:, None] - a[None, :], a, b)


@pytest.mark.parametrize(("m", "n"), [(100, 7), (7, 100), (70, 33), (130, 5), (5, 600)])
def test_a_matrix_meets_vectors(
    s: Small, key: bytes, rng: np.random.Generator, m: int, n: int
) -> None:
    x, rows, columns = (rng.uniform(-1, 1, shape) for shape in ((m, n), m, n))
    check(s, key, lambda x, w: x * w[:, None], x, rows)
    check(s, key, lambda x, w: x.T - w, x, rows)
    check(s, key, lambda x, w: x + w[None, :], x, columns)
    check(s, key, lambda x, w: x @ w, x, columns)
    check(s, key, lambda w, x: w @ x, rows, x)
    check(s, key, lambda x, c: x * c, x, rows[:, None])


def test_arrays_are_joined(s: Small, key: bytes, rng: np.random.Generator) -> None:
    x, y = rng.uniform(-1, 1, (100, 7)), rng.uniform(-1, 1, (7, 100))
    check(s, key, lambda x, y: np.stack([x.T, y]), x, y)
    check(s, key, lambda x, y: np.concatenate([x.T, y]), x, y)
    check(s, key, lambda x, y: np.concatenate([x, y], axis=1), x, rng.uniform(-1, 1, (100, 3)))
    check(s, key, lambda x, y: x.T + y, x, y)
    check(s, key, lambda x, y: x[:, :, None] * y, x[:9], rng.uniform(-1, 1, (7, 3)))


def test_views_of_any_strides(s: Small, key: bytes, rng: np.random.Generator) -> None:
    cuts = (slice(None), slice(1, None), slice(None, None, -1), slice(None, None, 2))
    for _ in range(12):
        m, n = (int(c) for c in rng.integers(2, 40, 2))
        x, y = rng.uniform(-1, 1, (m, n)), rng.uniform(-1, 1, (n, m))
        rows, columns = (cuts[int(c)] for c in rng.integers(0, len(cuts), 2))
        check(
            s,
            key,
            lambda x, y, r=rows, c=columns: x[r, c] * y.T[r, c][:, :1],
            x,
            y,
        )


def test_many_distances_take_few_rotations(
    s: Small, key: bytes, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = owned(s, key, rng.uniform(-1, 1, 4)), owned(s, key, rng.uniform(-1, 1, 128))
    core, steps = type(s.server._core), []
    rotate = core.rotate
    monkeypatch.setattr(
        core, "rotate", lambda self, x, step: (steps.append(step), rotate(self, x, step))[1]
    )
    levels = b.level - (b[:, None] + a).level
    assert levels == 1
    assert len(steps) <= 2 * np.sqrt(128) + 12, steps


def test_the_advice_of_a_refusal_can_be_followed_apart(
    s: Small, key: bytes, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moves, "MOST_MOVES", 16)
    a, b = rng.uniform(-1, 1, (30, 4)), rng.uniform(-1, 1, 30)
    x, y = owned(s, key, a), owned(s, key, b)
    with pytest.raises(jali.Unsupported, match=r"np\.broadcast_to\(values, shape\)\.copy\(\)"):
        x * y[:, None]
    shape = (30, 4)
    repeated = owned(s, key, np.broadcast_to(b[:, None], shape).copy())
    s.check(x * repeated, a * b[:, None])
