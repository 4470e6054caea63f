"""Replies computed from bootstrapped numbers: damaged ones and false claims are refused, and honest
ones never are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from bootstrap_world import make

import jali
from jali import ckks

Reply = Callable[[ckks.EncryptedArray], ckks.EncryptedArray]

REPLIES: dict[str, Reply] = {
    "as it is": lambda y: y,
    "square": lambda y: y**2,
    "fourth power": lambda y: y**4,
    "eighth power": lambda y: y**8,
    "sum": lambda y: y + y,
    "product and difference": lambda y: y * y - y,
    "sum of slots": lambda y: y.sum() * 0.1,
    "polynomial": lambda y: 0.5 * y**2 - y + 0.25,
}


@dataclass(frozen=True)
class World:
    params: ckks.Params
    client: ckks.Client
    server: ckks.Evaluator
    slots: int | None

    def encrypt(self, numbers: np.ndarray, **declared: float) -> ckks.EncryptedArray:
        return self.server.bind(
            self.client.encrypt(
                numbers, level=self.params.bootstrap_level, slots=self.slots, **declared
            )
        )

    def replies(self, numbers: np.ndarray) -> Iterator[tuple[str, ckks.EncryptedArray, np.ndarray]]:
        """Every reply at every level that it can have, and what it should be."""
        x = self.encrypt(numbers, peak=1.0)
        for target in range(self.params.bootstrap_level, self.params.depth + 1):
            y = x.bootstrap(target_level=target)
            for name, reply in REPLIES.items():
                try:
                    z = reply(y)
                except (jali.DepthExhausted, jali.RangeExceeded):
                    continue
                plain = reply(numbers)  # type: ignore[arg-type]
                yield f"{name} of level {target}, at level {z.level}", z, plain


def world(order: str, word: str, bits: int, slots: int | None) -> World:
    params = make(order, word=word, precision_bits=bits, levels_after=2, log_n=10)
    client = ckks.Client(params, threads=1)
    keys = client.evaluation_keys("powers", bootstrap=slots or True)
    return World(params, client, ckks.Evaluator(params, keys, "cpu", threads=1), slots)


WORLDS = {
    "slots_first, 22 bits": ("slots_first", "w52", 22, None),
    "slots_first, 14 bits, 8 slots": ("slots_first", "w32", 14, 8),
    "raise_first, 20 bits": ("raise_first", "w64", 20, None),
    "raise_first, 14 bits, 2 slots": ("raise_first", "w52", 14, 2),
}


@pytest.fixture(scope="module", params=WORLDS.values(), ids=WORLDS.keys())
def some(request: pytest.FixtureRequest) -> World:
    return world(*request.param)


def sealed(changed: bytearray) -> bytes:
    """The bytes with a checksum that fits, which anybody can make."""
    changed[-16:] = hashlib.sha256(changed[:-16]).digest()[:16]
    return bytes(changed)


def damages(data: bytes, rng: np.random.Generator) -> Iterator[tuple[str, bytes]]:
    """Damage to the residues, which are the last nine tenths of the bytes and more."""
    start, end = len(data) // 8, len(data) - 16
    for _ in range(4):
        changed = bytearray(data)
        changed[int(rng.integers(start, end))] ^= 1 << int(rng.integers(8))
        yield "a bit", sealed(changed)
    changed = bytearray(data)
    at = int(rng.integers(start, end - 64))
    changed[at : at + 64] = rng.bytes(64)
    yield "64 bytes", sealed(changed)
    changed = bytearray(data)
    half = (start + end) // 2
    changed[half:end] = bytes(end - half)
    yield "zeros at the end", sealed(changed)


def test_damaged_replies_are_refused_and_honest_ones_are_not(some: World) -> None:
    rng = np.random.default_rng(20261129)
    other = ckks.Client(some.params, threads=1)
    numbers = rng.uniform(-1, 1, some.slots or some.params.slots)
    seen = 0
    for name, reply, plain in some.replies(numbers):
        off = np.abs(some.client.decrypt(reply) - plain).max()
        assert off <= ckks.worst_case_error(reply.ciphertext), name
        data = reply.ciphertext.to_bytes()
        for what, damaged in damages(data, rng):
            with pytest.raises(jali.Error):
                some.client.decrypt(ckks.Ciphertext.from_bytes(damaged, some.params))
                pytest.fail(f"{name}: {what} was changed")
        with pytest.raises(jali.KeyMismatch):
            other.decrypt(reply)
        seen += 1
    assert seen >= 12
    assert any(reply.level == 0 for _, reply, _ in some.replies(numbers))


@pytest.mark.parametrize("large", [4.0, 18.0])
def test_a_false_peak_is_refused_after_bootstrapping(some: World, large: float) -> None:
    """It came back as 17.8 for 18."""
    numbers = np.full(some.slots or some.params.slots, 0.5)
    numbers[1] = large
    honest = some.encrypt(numbers, magnitude=large, peak=large)
    with pytest.raises(jali.WrongDecryption):
        some.client.decrypt(honest.with_magnitude(1, peak=1))
    y = honest.with_magnitude(1, peak=1).bootstrap()
    for name, reply in REPLIES.items():
        if name == "sum of slots":
            continue  # it may be as large as the number of slots
        try:
            z = reply(y)
        except jali.DepthExhausted:
            continue
        with pytest.raises(jali.WrongDecryption, match="numbers of up to"):
            some.client.decrypt(z)
            pytest.fail(name)


def test_the_bound_of_bootstrapped_numbers_is_of_use(some: World) -> None:
    """It was tens to tens of thousands for numbers below 1."""
    x = some.encrypt(np.ones(2), peak=1.0)
    y = x.bootstrap()
    assert ckks.worst_case_error(y.ciphertext) < (0.25 if y.precision_bits < 18 else 0.02)
    again = (y * 0.5).bootstrap()
    assert ckks.worst_case_error(again.ciphertext) < 0.5
    assert ckks.worst_case_noise(y.ciphertext) > ckks.worst_case_error(y.ciphertext)


def test_release_after_bootstrapping_hides_the_worst_case(some: World) -> None:
    """The product of worst cases, and not the smaller bound on the error, which takes errors for
    independent."""
    numbers = np.ones(some.slots or some.params.slots)
    y = some.encrypt(numbers, peak=1.0).bootstrap()
    bound = ckks.worst_case_noise(y.ciphertext)
    assert bound > ckks.worst_case_error(y.ciphertext)
    policy = ckks.ReleasePolicy(origin="derived", error_bound=bound, statistical_bits=20)
    std = policy.noise_std(y.slots, 1)
    plain = ckks.ReleasePolicy(origin="derived", statistical_bits=20)
    shown = [some.client.release(y, policy=plain) - numbers for _ in range(16)]
    assert np.sqrt(np.mean(np.square(shown))) > std / 4
    for wrong in (0.9 * bound, ckks.worst_case_error(y.ciphertext)):
        small = ckks.ReleasePolicy(
            origin="declared", error_bound=wrong, largest=2, statistical_bits=20
        )
        with pytest.raises(jali.InvalidArgument, match="the policy says error_bound"):
            some.client.release(y, policy=small)


@pytest.mark.long
def test_at_128_bits() -> None:
    """The same at a set that is secure."""
    rng = np.random.default_rng(1)
    params = ckks.Params.preset("n15_small")
    client = ckks.Client(params)
    server = ckks.Evaluator(params, client.evaluation_keys(bootstrap=True))
    secure = World(params, client, server, None)
    for _ in range(3):
        numbers = rng.uniform(-1, 1, params.slots)
        y = secure.encrypt(numbers, peak=1.0).bootstrap()
        assert np.abs(client.decrypt(y) - numbers).max() < ckks.worst_case_error(y.ciphertext) < 0.4
        for name, reply in {
            "as it is": y,
            "square": y * y,
            "fourth power": (y * y) ** 2,
        }.items():
            client.decrypt(reply)
            for what, damaged in damages(reply.ciphertext.to_bytes(), rng):
                with pytest.raises(jali.Error):
                    client.decrypt(ckks.Ciphertext.from_bytes(damaged, params))
                    pytest.fail(f"{name}: {what} was changed")
    numbers = np.full(params.slots, 0.5)
    numbers[5] = 18.0
    y = secure.encrypt(numbers, peak=18.0).with_magnitude(1, peak=1).bootstrap()
    for reply in (y, y * y, y**4):
        with pytest.raises(jali.WrongDecryption):
            client.decrypt(reply)
