"""The width of Strix's twiddles: the vectorised transform is that of the RTL, and 16 bits do not bootstrap."""

from __future__ import annotations

import random

import pytest

np = pytest.importorskip("numpy")

import twiddle_width as tw  # noqa: E402
from fixed_fft import Format  # noqa: E402


@pytest.mark.parametrize(("twiddle", "fraction"), [(16, 14), (16, 15), (28, 26), (32, 30)])
@pytest.mark.parametrize("points", [8, 64, 512])
def test_the_transform_is_the_model_that_the_rtl_is_held_to(
    points: int, twiddle: int, fraction: int
) -> None:
    form, transform = Format(64, twiddle, fraction), tw.Transform(points, twiddle, fraction)
    for bits in (11, 32, 50):
        x = [
            (random.randrange(-(1 << bits), 1 << bits), random.randrange(-(1 << bits), 1 << bits))
            for _ in range(points)
        ]
        re, im = (np.array(part, dtype=np.int64) for part in zip(*x, strict=True))
        for array, model in (
            (transform.forward, form.forward),
            (transform.backward, form.backward),
        ):
            shown = array(re, im)
            assert list(zip(*(part.tolist() for part in shown), strict=True)) == model(x)


def test_the_exact_product_is_that_of_the_definition() -> None:
    n = 64
    a = [random.randrange(-512, 513) for _ in range(n)]
    b = [random.getrandbits(32) for _ in range(n)]
    out = [0] * n
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            out[(i + j) % n] += x * y if i + j < n else -x * y
    shown = tw.exact_product(np.array(a), np.array(b))
    assert shown.tolist() == [x % (1 << 32) for x in out]


def test_products_are_summed_and_rounded_once() -> None:
    """Cluster._sum is rtl/vma.sv: as in the bench of that, over Python's integers."""
    shape, key = (3, 4, 8), (4, 2, 8)
    x = [
        np.array([random.randrange(-(1 << 43), 1 << 43) for _ in range(96)]).reshape(shape)
        for _ in range(2)
    ]
    k = [
        np.array([random.randrange(-(1 << 41), 1 << 41) for _ in range(64)]).reshape(key)
        for _ in range(2)
    ]
    re, im = tw.Cluster._sum(*x, *k)
    big_x, big_k = (
        [part.astype(object)[:, :, None] for part in x],
        [part.astype(object) for part in k],
    )
    half = 1 << (tw.SHIFT - 1)
    assert (
        re == (((big_x[0] * big_k[0] - big_x[1] * big_k[1]).sum(axis=1) + half) >> tw.SHIFT)
    ).all()
    assert (
        im == (((big_x[0] * big_k[1] + big_x[1] * big_k[0]).sum(axis=1) + half) >> tw.SHIFT)
    ).all()


def test_digits_recompose() -> None:
    for at in tw.SETS.values():
        x = np.array([random.getrandbits(32) for _ in range(500)])
        d = tw.digits(x, at)
        weights = np.array([1 << (32 - (j + 1) * at.base_log) for j in range(at.levels)])
        error = tw.signed(x - (weights[:, None] * d).sum(axis=0))
        assert np.abs(error).max() <= 1 << (31 - at.levels * at.base_log)
        assert np.abs(d).max() <= 1 << (at.base_log - 1)


def test_one_product_errs_by_more_than_a_message_with_16_bits(rng: np.random.Generator) -> None:
    """Messages are +-1/8. An error whose deviation is above 1/8 after one of 500 steps leaves nothing of them."""
    narrow, wide = tw.one_product(tw.SETS["I"], [(16, 14), (32, 30)], rng)
    assert narrow > 1 / 8
    assert wide < 2**-12


@pytest.mark.long
def test_set_i_does_not_bootstrap_with_16_bits_and_does_with_32(rng: np.random.Generator) -> None:
    """Of 64 messages a guess gets 12 or fewer wrong with probability 2^-20, as a sum of binomials shows; a sound bootstrapping
    gets all right."""
    narrow, wide = tw.rotations(tw.SETS["I"], [(16, 15), (32, 30)], 64, rng)
    assert narrow["wrong"] > 12
    assert wide["wrong"] == 0
