"""Keys are checked while they come: right ones are known however they are cut, and others are
refused, as early as can be."""

from __future__ import annotations

import hashlib
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
from serve_world import KINDS, served

import jali
from jali.serve.check import Found, KeyCheck
from jali.serve.wanted import EVERY_LEVEL, RlweKeys, TfheKeys, wanted


def checked(kind: str, data: bytes, pieces: list[int]) -> Found:
    check = KeyCheck(served(kind).manifest, len(data))
    for start, end in zip([0, *pieces], [*pieces, len(data)], strict=True):
        check.feed(data[start:end])
    return check.finish()


@pytest.mark.parametrize("kind", KINDS)
def test_keys_are_right_however_they_are_cut(kind: str, rng: np.random.Generator) -> None:
    one = served(kind)
    for data, key_id in zip(one.keys, one.key_ids, strict=True):
        cuts = sorted(rng.integers(0, len(data), 12).tolist())
        for pieces in ([], [0, 1, 47, 48, 49, len(data) - 17, len(data) - 16, len(data)], cuts):
            found = checked(kind, data, pieces)
            assert (found.key_id, found.nbytes) == (key_id, len(data))


def test_the_programs_cover_what_keys_may_be() -> None:
    """Keys of some levels and of all, keys of bootstrapping, and keys with neither."""
    deep, plain = (wanted(served(kind).manifest).keys for kind in ("deep", "integers"))
    assert isinstance(deep, RlweKeys) and deep.bootstraps and None in deep.levels.values()
    assert {EVERY_LEVEL} < set(deep.levels.values())
    assert isinstance(plain, RlweKeys) and not plain.bootstraps
    assert isinstance(wanted(served("trees").manifest).keys, TfheKeys)


@pytest.mark.parametrize("kind", KINDS)
def test_every_flipped_bit_is_found(kind: str, rng: np.random.Generator) -> None:
    data = served(kind).keys[0]
    bits = [*rng.integers(0, 8 * len(data), 40), *rng.integers(0, 8 * 96, 20), 8 * len(data) - 1]
    for bit in bits:
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises((jali.CorruptData, jali.VersionError, jali.ParamsMismatch)):
            checked(kind, bytes(damaged), [])


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_that_are_missing_or_too_many_are_refused(kind: str) -> None:
    data, manifest = served(kind).keys[0], served(kind).manifest
    check = KeyCheck(manifest, len(data))
    check.feed(data[:-1])
    with pytest.raises(jali.CorruptData, match="send the rest"):
        check.finish()
    with pytest.raises(jali.LimitExceeded, match="there are more"):
        check.feed(data[-1:] + b"x")
    for nbytes in (0, 3, 2 * len(data)):
        with pytest.raises(jali.LimitExceeded, match="make them from its manifest"):
            KeyCheck(manifest, nbytes)
    with pytest.raises(jali.InvalidArgument, match="against a program's manifest"):
        KeyCheck("manifest", 3)


def test_another_programs_keys_are_refused_early() -> None:
    """Those of other parameters after the header, those of the same parameters at the first key that
    the program does not use."""
    mine, other = served("network"), served("other")
    assert mine.manifest.params == other.manifest.params
    uses, others = (wanted(one.manifest).keys for one in (mine, other))
    assert isinstance(uses, RlweKeys) and isinstance(others, RlweKeys)
    assert uses.levels != others.levels
    data = other.keys[0]
    nbytes = len(mine.keys[0])
    frame = bytearray(data)
    frame[40:48] = (nbytes - 64).to_bytes(8, "little")
    check = KeyCheck(mine.manifest, nbytes)
    with pytest.raises(jali.CorruptData, match="not those that the program uses"):
        check.feed((frame + bytes(nbytes))[:nbytes])
    deep = KeyCheck(served("deep").manifest, len(served("deep").keys[0]))
    with pytest.raises(jali.ParamsMismatch):
        deep.feed(data[:48])


def test_damage_shows_at_the_key_that_has_it() -> None:
    """A residue beyond its prime is refused when its key has come, long before the end."""
    data = bytearray(served("network").keys[0])
    at = 48 + 16 + 5 + 2 + 32  # the first residues
    data[at : at + 4096] = b"\xff" * 4096
    check, came = KeyCheck(served("network").manifest, len(data)), 0
    with pytest.raises(jali.CorruptData, match="below its prime"):
        for came in range(0, len(data), 4096):
            check.feed(data[came : came + 4096])
    assert came < len(data) / 4


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_refused_stays_refused(kind: str) -> None:
    """Also if who gives the bytes goes on."""
    data = bytearray(served(kind).keys[0])
    data[70] ^= 1
    check = KeyCheck(served(kind).manifest, len(data))
    with pytest.raises(jali.CorruptData):
        for start in range(0, len(data), 5000):
            check.feed(data[start : start + 5000])
    for start in range(check.received, len(data), 5000):
        with pytest.raises(jali.CorruptData, match="from the start"):
            check.feed(data[start : start + 5000])
    with pytest.raises(jali.CorruptData, match="from the start"):
        check.finish()


def sealed(data: bytearray) -> bytes:
    """With the checksum that belongs to the bytes before it."""
    return bytes(data[:-16]) + hashlib.sha256(data[:-16]).digest()[:16]


def altered_trees() -> Iterator[tuple[bytes, bool, float]]:
    """Keys of TFHE with right checksums, whether they are right, and after which part of their bytes
    one can know."""
    data, keys = served("trees").keys[0], wanted(served("trees").manifest).keys
    assert isinstance(keys, TfheKeys)
    first, size = 48 + 16 + 1 + 32, keys.polynomial
    switching = first + keys.polynomials * size + 32
    assert switching + keys.switching + 16 == len(data)

    def put(at: int, new: bytes) -> bytes:
        return sealed(bytearray(data[:at] + new + data[at + len(new) :]))

    for row in (0, 1, keys.polynomials // 2, keys.polynomials - 1):
        at = first + row * size
        for word in (bytes(keys.word), data[at : at + keys.word]):
            yield put(at, word * (size // keys.word)), False, (at + size) / len(data)
        yield put(at, bytes(size - 1) + b"x"), True, 1
        yield put(at, bytes(size - 2 * keys.word) + b"x" * keys.word), True, 1
        yield put(at + size // 2, bytes(size // 2)), True, 1
    yield put(switching, b"abcd" * (keys.switching // 4)), False, 1
    yield put(switching, b"abcd" * (keys.switching // 4 - 1)), True, 1
    yield put(64, b"\1"), False, 65 / len(data)
    yield put(64, b"\2"), False, 65 / len(data)
    yield put(48, bytes(16)), False, 64 / len(data)
    yield put(48, bytes(15) + b"x"), True, 1


def test_keys_of_tfhe_are_refused_as_the_library_refuses_them() -> None:
    """But as soon as the polynomial has come that is wrong."""
    one = wanted(served("trees").manifest)
    for data, right, by in altered_trees():
        check, came = KeyCheck(one, len(data)), 0
        if right:
            assert one.load(data) is not None
            assert checked("trees", data, []).sha256 == hashlib.sha256(data).hexdigest()
            continue
        with pytest.raises(jali.CorruptData):
            one.load(data)
        with pytest.raises(jali.CorruptData, match="cannot read the keys"):
            for came in range(0, len(data), 1000):
                check.feed(data[came : came + 1000])
        assert came <= by * len(data)


def test_keys_of_tfhe_are_checked_in_the_memory_of_a_polynomial() -> None:
    data, keys = served("trees").keys[0], wanted(served("trees").manifest).keys
    assert isinstance(keys, TfheKeys) and len(data) > 50 * keys.polynomial
    check = KeyCheck(served("trees").manifest, len(data))
    tracemalloc.start()
    for start in range(0, len(data), 4096):
        check.feed(memoryview(data)[start : start + 4096])
    check.finish()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * max(keys.polynomial, keys.switching) + 50_000
