"""Fixtures that tests share: a client and a server for every word, made once."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import numpy as np
import pytest
import seeds

from jali import ckks

if TYPE_CHECKING:
    from postgres_world import Server

    from jali.serve.keys import KeyStore

# The same examples in every run; fresh ones if the environment asks for fresh seeds.
hypothesis.settings.register_profile("named", derandomize=not seeds.FRESH, database=None)
hypothesis.settings.load_profile("named")

DEPTH = 3
UNIFORM = 3**-0.5  # the root mean square of numbers that are uniform in [-1, 1]
ROTATIONS = [1, -3, 64, *ckks.sum_rotations(32)]


@dataclass(frozen=True)
class World:
    """A client and a server with the same parameters."""

    params: ckks.Params
    client: ckks.Client
    keys: ckks.EvaluationKeys
    server: ckks.Evaluator
    cache: dict[str, Any] = field(default_factory=dict)

    def bind(self, values: Any, **options: Any) -> ckks.EncryptedArray:
        """Encrypts values and binds them to the server. Most tests use numbers of up to 1.5, so
        that their powers fit the lowest level."""
        if "magnitude" not in options and np.abs(values).max(initial=0) <= 1.5:
            options.setdefault("peak", 1.5)
        return self.server.bind(self.client.encrypt(values, **options))


def make_world(word: str) -> World:
    """A world whose keys are for ROTATIONS and conjugation."""
    params = ckks.Params.create(depth=DEPTH, scale_bits=40, word=word)
    with seeds.named(f"world of {word}"):
        client = ckks.Client(params, threads=1)
        keys = client.evaluation_keys(rotations=ROTATIONS, conjugate=True)
    return World(params, client, keys, ckks.Evaluator(params, keys, threads=1))


_worlds: dict[str, World] = {}


@pytest.fixture(params=["w32", "w52", "w64"])
def world(request: pytest.FixtureRequest) -> World:
    """Runs the test once for every word."""
    word = request.param
    if word not in _worlds:
        _worlds[word] = make_world(word)
    return _worlds[word]


@pytest.fixture
def one() -> World:
    """The world of a single word, for tests to which the word does not matter."""
    if "w52" not in _worlds:
        _worlds["w52"] = make_world("w52")
    return _worlds["w52"]


@pytest.fixture(autouse=True, scope="session")
def _untuned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Gives the session a cache folder of its own, so that a user's tuned choices have no
    effect."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of this test, from which its entropy follows. A failure shows it. It also seeds
    NumPy's global generator, which scikit-learn uses, and that of PyTorch, if a test has imported
    it."""
    kept: int | None = getattr(request, "param", None)
    seed = seeds.seed_of(seeds.name_of(request.node)) if kept is None else kept
    print(f"JALI_TEST_SEED={seed}")
    request.node.stash[seeds.SEED] = seed
    seeds.start(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)
    return seed


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Gives freed memory back to the system, which glibc's heap keeps: a process that ran many long
    tests held 11 GB of it, and two such processes run side by side."""
    if resident_bytes() > 1 << 30:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)


def resident_bytes() -> int:
    """The memory of this process; 0 on systems other than Linux."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    """A generator of inputs."""
    return np.random.default_rng(seed)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs tests that once failed with a seed with that one, too."""
    kept = seeds.KEPT.get(metafunc.definition.nodeid.rpartition("/")[2])
    if kept:
        metafunc.parametrize("seed", [None, *kept], indirect=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Writes down the fresh seed with which a test failed."""
    report = yield
    if report.failed and seeds.FRESH and seeds.SEED in item.stash:
        seeds.write_down(seeds.name_of(item), item.stash[seeds.SEED])
    return report


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Iterator[None]:
    """What several tests share is drawn from a seed of its own, whichever of them comes first."""
    if fixturedef.scope == "function":
        return (yield)
    with seeds.named(f"{fixturedef.baseid} {fixturedef.argname} {getattr(request, 'param', '')}"):
        return (yield)


def assert_close(
    world: World,
    value: ckks.EncryptedArray,
    expected: Any,
    *,
    slack_bits: float = 1.0,
    independent: int | None = None,
) -> None:
    """Asserts that the root mean square error of the decryption is at most what the value claims.

    independent: how many of the slots' errors are independent of each other; all, if left out.
    """
    expected = np.asarray(expected)
    got = world.client.decrypt(value)
    assert got.shape == expected.shape
    error = got - expected
    parts = np.concatenate([error.real.ravel(), error.imag.ravel()][: 1 + np.iscomplexobj(got)])
    count = independent or parts.size
    # The mean of `count` squares exceeds its expectation by this factor with probability e^-24
    # (Laurent, Massart).
    chance = 1 + 2 * np.sqrt(24 / count) + 48 / count
    limit = 2.0 ** -(value.precision_bits - slack_bits) * np.sqrt(chance)
    rms = np.sqrt(np.mean(parts**2))
    assert rms <= limit, f"error {rms:.3g}, limit {limit:.3g}"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server of PostgreSQL. Tests are skipped where there can be none."""
    import postgres_world

    with postgres_world.running() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest) -> Callable[..., KeyStore]:
    """Opens a store in a folder, with the options of KeyStore. Runs the test for each index."""
    from jali.serve.keys import KeyStore

    if request.param == "sqlite":
        return KeyStore
    server: Server = request.getfixturevalue("postgres")
    return lambda folder, **options: KeyStore(folder, index=server.url_of(folder), **options)
