"""What a bootstrapping adds to the copies of a number: against copies that are decrypted one by
one."""

from __future__ import annotations

import numpy as np
import pytest

from jali import ckks
from jali.ckks import Evaluator
from jali.compiler.noise.bootstrap_noise import BootstrapNoise, frequent_error

SLOTS, LOG_N, RUNS = 32, 12, 4


def params_of(bits: float) -> ckks.Params:
    return ckks.Params.create(
        bootstrap=True,
        precision_bits=bits,
        levels_after=4,
        log_n=LOG_N,
        word="w32",
        security=0,
        name="insecure_copies",
    )


def errors(params: ckks.Params, x: np.ndarray, size: float) -> tuple[np.ndarray, float]:
    """What bootstrappings of the same numbers with other keys add (runs, copies, slots), and the
    deviation that is expected."""
    copies, runs, bits = np.tile(x, params.slots // SLOTS), [], 0.0
    for _ in range(RUNS):
        client = ckks.Client(params, threads=1)
        server = Evaluator(params, client.evaluation_keys(bootstrap=SLOTS), "cpu", threads=1)
        given = client.encrypt(copies, level=params.bootstrap_level, magnitude=size, peak=4 * size)
        y = server.bind(given).bootstrap(real=True, slots=SLOTS, repeats=True)
        bits = y._expected_bits
        got = client.decrypt(y.ciphertext, complex=False, length=params.slots, check=False)
        runs.append(np.asarray(got).reshape(-1, SLOTS) - x)
    return np.array(runs), 2.0**-bits


# At 15, 18 and 21 bits the error of the cosine is as large as it may be, and at 16.5 and 19 bits it
# is small. Numbers of size 1 have an error of the sine that is larger than all other noise.
@pytest.mark.parametrize(
    ("bits", "size"),
    [
        *((15, 0.05), (19, 0.05), (18, 0.25), (19, 1)),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in ((16.5, 0.05), (18, 0.01), (21, 0.05), (15, 1))
        ),
    ],
)
def test_parts_are_those_of_decrypted_copies(
    bits: float, size: float, rng: np.random.Generator
) -> None:
    params = params_of(bits)
    x = np.clip(rng.normal(size=SLOTS), -2.5, 2.5)
    x *= 0.99 * size / np.sqrt(np.mean(x**2))
    off, deviation = errors(params, x, size)
    small = errors(params, x * 2.0**-20, 2.0**-20)[1]
    parts = BootstrapNoise.of(deviation, small, frequent_error(params))

    means, copies = off.mean(axis=1), off.shape[1]
    alone = np.square(off - means[:, None]).mean() * copies / (copies - 1)
    assert (
        0.55 < alone / parts.alone**2 < 1.8
    )  # it depends on the keys, on a small ring more than on others
    common = np.square(means).mean() - alone / copies
    claimed = parts.common**2 + parts.mean**2 + parts.cubic**2
    assert common < 2.5 * claimed + 0.02 * alone
    total = means.sum(axis=0)
    same = (np.square(total) - np.square(means).sum(axis=0)).mean() / (RUNS * (RUNS - 1))
    assert same < 3 * (parts.mean**2 + parts.cubic**2) + 0.02 * alone
    assert parts.mean**2 + parts.cubic**2 < max(16 * abs(same), 0.05 * alone)


def test_the_error_of_large_numbers_is_as_their_cube(rng: np.random.Generator) -> None:
    params = params_of(16)
    x = rng.uniform(-1.6, 1.6, SLOTS)
    x *= 0.99 / np.sqrt(np.mean(x**2))
    off, deviation = errors(params, x, 1.0)
    means = off.mean(axis=(0, 1))
    found = BootstrapNoise(cubic=deviation).systematic(x)
    assert np.corrcoef(means, found)[0, 1] > 0.95


@pytest.mark.parametrize("deviation", [0.0, 1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("small", [0.0, 1e-6, 1e-3])
@pytest.mark.parametrize("frequent", [0.0, 1e-7, 1e-3, 1.0])
def test_parts_make_the_whole(deviation: float, small: float, frequent: float) -> None:
    parts = BootstrapNoise.of(deviation, small, frequent)
    squares = [parts.alone**2, parts.common**2, parts.mean**2, parts.cubic**2]
    assert sum(squares) == pytest.approx(deviation**2)
    assert parts.random == pytest.approx(np.hypot(parts.alone, parts.common))


def test_the_same_is_added_to_the_same_numbers(rng: np.random.Generator) -> None:
    x = rng.normal(size=(5, 4, 3))
    parts = BootstrapNoise(alone=1.0, common=1.0, mean=0.25, cubic=0.5)
    off = parts.systematic(x)
    assert np.array_equal(off, parts.systematic(x))
    cubic = np.asarray(off) + 0.25
    assert np.sqrt(np.mean(cubic**2)) == pytest.approx(0.5)
    assert np.allclose(cubic / cubic[0, 0, 0], (x / x[0, 0, 0]) ** 3)
    assert np.all(BootstrapNoise(cubic=0.5).systematic(0 * x) == 0)
    assert np.all(np.isfinite(parts.systematic(np.full(3, 1e200))))


def test_the_error_at_frequent_integers_is_the_least_that_is_never_exceeded_there() -> None:
    for bits in (15, 18, 20):
        params = params_of(bits)
        error = frequent_error(params)
        assert params.log2_bootstrap_beyond(error, 1) < 0
        assert params.log2_bootstrap_beyond(error * 0.95, 1) == 0
        assert error < 2.0 ** -(bits - 1)
