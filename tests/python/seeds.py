"""Seeds that follow from names, so that a test does the same in every run.

Python's own entropy follows from the seed, and with it every generator that is made without one,
such as ``np.random.default_rng()``. `make py-test` also preloads a library (tests/seeds) that does
the same for the entropy of C and C++: for keys and noise, which are fresh in a pytest without that
library.

    JALI_TEST_SEED=N        gives every test the seed N, which repeats a failure
    JALI_FRESH_SEEDS=1      draws a fresh seed for every test, as `make check` does

A test that fails with a fresh seed adds a line to build/findings/seeds.txt. Move it to
tests/kept_seeds.txt, and the test runs with that seed, too, from then on.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

FRESH = "JALI_FRESH_SEEDS" in os.environ
#: The seed of a test, in its stash.
SEED = pytest.StashKey[int]()
_TESTS = Path(__file__).resolve().parent.parent


def _kept() -> dict[str, list[int]]:
    """For each test that is named in tests/kept_seeds.txt, the seeds with which it once failed."""
    kept: dict[str, list[int]] = {}
    for line in (_TESTS / "kept_seeds.txt").read_text().splitlines():
        kind, name, seed = (*line.split(), "", "", "")[:3]
        if kind == "pytest":
            kept.setdefault(name, []).append(int(seed))
    return kept


KEPT = _kept()

_inputs = random.Random()
# SystemRandom, secrets and NumPy's generators draw from here.
random._urandom = os.urandom = _inputs.randbytes  # type: ignore[attr-defined]

_process = ctypes.CDLL(None)
_PRELOADED = hasattr(_process, "jali_test_seed_entropy")
if _PRELOADED:
    _process.jali_test_seed_entropy.argtypes = [ctypes.c_uint64]
    _process.jali_test_entropy_state.restype = ctypes.c_uint64


def seed_of(name: str) -> int:
    """The 64 bits that this name has as a seed, or those that the environment asks for."""
    given = os.environ.get("JALI_TEST_SEED")
    if given is not None:
        return int(given)
    if FRESH:
        with Path("/dev/urandom").open("rb") as system:
            return int.from_bytes(system.read(8), "little")
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")


def name_of(test: pytest.Item) -> str:
    """The file and the name of a test, as in test_ckks_arrays.py::test_sums[w32]. Parameters may
    have a space, which becomes an underscore."""
    return test.nodeid.rpartition("/")[2].replace(" ", "_")


def write_down(name: str, seed: int) -> None:
    """Adds a line for tests/kept_seeds.txt to build/findings/seeds.txt."""
    findings = _TESTS.parent / "build" / "findings"
    findings.mkdir(parents=True, exist_ok=True)
    with (findings / "seeds.txt").open("a") as out:
        out.write(f"pytest {name.partition('[')[0]} {seed}\n")


def start(seed: int) -> None:
    """From now on entropy follows from this seed."""
    _inputs.seed(seed)
    if _PRELOADED:
        _process.jali_test_seed_entropy(seed)


@contextlib.contextmanager
def named(name: str) -> Iterator[None]:
    """Draws what is made within from a seed of this name, and then goes on with the seed of the
    running test: for what several tests share, and the first of them makes."""
    inputs = _inputs.getstate()
    keys = _process.jali_test_entropy_state() if _PRELOADED else 0
    start(seed_of(name))
    try:
        yield
    finally:
        _inputs.setstate(inputs)
        if _PRELOADED:
            _process.jali_test_seed_entropy(keys)
