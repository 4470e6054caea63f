"""What lies in the slots beside the elements of an array: what is known of it is true, and what is
said of the elements does not touch it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import bootstrap_world
import numpy as np
import pytest
from array_world import Small

import jali
from jali import ckks
from jali.ckks import functions

Form = Callable[[Any], Any]


@cache
def deep() -> Small:
    params = ckks.Params.create(
        depth=12, scale_bits=45, log_n=10, security=0, name="insecure_beside", integer_bits=14
    )
    client = ckks.Client(params, threads=1)
    keys = client.evaluation_keys(rotations="powers", conjugate=True)
    return Small(params, client, ckks.Evaluator(params, keys, threads=1))


def cancelling(*shape: int) -> Any:
    """Numbers of about +-0.9 whose sums along every axis are small, while sums of some of the terms
    are large."""
    signs = np.ones(shape)
    for k, count in enumerate(shape):
        half = np.where(np.arange(count) < count // 2, 1.0, -1.0)
        signs = signs * half.reshape((count,) + (1,) * (len(shape) - 1 - k))
    size = 0.9 + 0.02 * np.cos(np.arange(signs.size)).reshape(shape)
    return signs * size


TABLE, CUBE = cancelling(6, 8), cancelling(4, 2, 6)
LONG, WIDE = cancelling(1200), cancelling(3, 600)
ONES, WEIGHTS = np.ones(8), cancelling(8)
# What lies beside these is more, or other, than what is said of them.
SOURCES: dict[str, tuple[Any, Form]] = {
    "sum of rows": (TABLE, lambda x: x.sum(axis=1)),
    "sum of columns": (TABLE, lambda x: x.sum(axis=0)),
    "sum of all": (TABLE, lambda x: x.sum()),
    "kept sum of rows": (TABLE, lambda x: x.sum(axis=1, keepdims=True)),
    "kept sum of columns": (TABLE, lambda x: x.sum(0, keepdims=True)),
    "mean of rows": (TABLE, lambda x: x.mean(axis=1)),
    "mean of columns": (TABLE, lambda x: np.mean(x, axis=0)),
    "variance": (TABLE, lambda x: x.var(axis=1) * 0.5),
    "rows times a vector": (TABLE, lambda x: x @ ONES),
    "a vector times rows": (TABLE, lambda x: np.ones(6) @ x),
    "a matrix times columns": (TABLE, lambda x: np.ones((3, 6)) @ x),
    "rows times a matrix": (TABLE, lambda x: x[:, :7] @ np.ones((7, 3)) * 0.25),
    "rows times a row of its own": (TABLE, lambda x: x @ x[0] * 0.1),
    "dot": (TABLE, lambda x: x[0].dot(x[5]) * 0.1),
    "product of matrices": (TABLE, lambda x: x[:2, :3] @ x[:3, :2]),
    "sum of a slice": (TABLE, lambda x: x[:, 1:-1].sum(axis=1)),
    "sum from the other end": (TABLE, lambda x: x[::-1, ::-1].sum(axis=0)),
    "sum of the transpose": (TABLE, lambda x: x.T.sum(axis=0)),
    "sum of every other column": (TABLE, lambda x: x[:, ::2].sum(axis=1)),
    "sum of a slice of a sum": (TABLE, lambda x: x.sum(axis=0)[1:7].sum()),
    "sum along the middle": (CUBE, lambda x: x.sum(axis=1)),
    "sum along the ends": (CUBE, lambda x: x.sum(axis=(0, 2))),
    "sum along the last two": (CUBE, lambda x: x.sum(axis=(1, 2))),
    "sum of several vectors": (LONG, lambda x: x.sum()),
    "a slice of several vectors": (LONG, lambda x: x[400:900] * 0.05 + x[500:1000] * 0.05),
    "rows of several vectors": (WIDE, lambda x: x.sum(axis=1)),
    "columns of several vectors": (WIDE, lambda x: x.sum(axis=0)),
    "what is left of a mean": (TABLE, lambda x: (x - x.mean(axis=0)) * 0.1),
    "what is left of a mean of rows": (TABLE, lambda x: x[:, :1] - x.mean(1, keepdims=True) * 0.1),
    "a slice": (TABLE, lambda x: (x + x.sum(axis=0))[:, 2]),
    "a row of larger ones": (TABLE, lambda x: (x * np.arange(1, 7)[:, None])[0]),
    "a sum and a number": (TABLE, lambda x: x.sum(axis=1) + 0.125),
    "a difference of sums": (TABLE, lambda x: x.sum(axis=1) - (x * 0.5).sum(axis=1)),
    "a product of sums": (TABLE, lambda x: x.sum(axis=1) * x[:, ::-1].sum(axis=1)),
    "a repeated sum": (TABLE, lambda x: np.broadcast_to(x.sum(axis=0), (3, 8))),
    "a repeated number": (TABLE, lambda x: np.broadcast_to(x.mean() + 0.01, (3, 4))),
    "a function of zeros": (TABLE, lambda x: cosine(x)[:, 0] * 0.05),
    "a function far from 0": (TABLE, lambda x: away(x + 3.0) * 0.1),
}


def cosine(x: Any) -> Any:
    """1 - x^2 / 2, which is 1 where x is 0."""
    return 1 - x * x * 0.5


def away(x: Any) -> Any:
    """A polynomial on an interval without 0."""
    if isinstance(x, (np.ndarray, np.generic)):
        return x * 0.5 - 1
    line = ckks.Polynomial([0.5, 0.5], "chebyshev", (2, 4))
    return x.evaluator.polynomial(x, line, within=(2, 4))


def through_bytes(x: Any) -> Any:
    if isinstance(x, (np.ndarray, np.generic)):
        return x
    return x.evaluator.bind(ckks.Ciphertext.from_bytes(x.ciphertext.to_bytes(), deep().params))


def captured(x: Any) -> Any:
    if isinstance(x, (np.ndarray, np.generic)):
        return x * 0.5
    return x.evaluator.capture(lambda y: y * 0.5, x)(x)


DERIVED: dict[str, Form] = {
    "itself": lambda x: x,
    "copied": lambda x: x if isinstance(x, (np.ndarray, np.generic)) else deep().server.bind(x),
    "reshaped": lambda x: x.reshape(-1, 1),
    "in one axis more": lambda x: x[None],
    "flat": lambda x: x.ravel() if x.ndim < 2 else x[0],
    "transposed": lambda x: x.T,
    "axes exchanged": lambda x: x.swapaxes(0, -1) if x.ndim else x,
    "turned": lambda x: np.flip(x) if x.ndim else x,
    "without axes of 1": lambda x: np.squeeze(x),
    "a part": lambda x: x[:2] if x.ndim else x,
    "every other": lambda x: x[..., ::2] if x.ndim else x,
    "one": lambda x: x[0] if x.ndim else x,
    "split": lambda x: np.split(x, [1])[-1] if x.ndim and len(x) > 1 else x,
    "stacked": lambda x: np.stack([x, -x]),
    "stacked at the end": lambda x: np.stack([x, x * 0.5], axis=-1),
    "joined": lambda x: np.concatenate([x, x]) if x.ndim else np.stack([x]),
    "from bytes": through_bytes,
    "a part from bytes": lambda x: through_bytes(x[:1] if x.ndim else x),
    "captured": captured,
    "negated": lambda x: -x,
    "conjugated": lambda x: x.conj(),
    "halved": lambda x: x * 0.5,
    "with a number": lambda x: x + 0.01,
    "with an array": lambda x: x + np.full(x.shape, 0.01),
    "with another": lambda x: x + x[::-1] if x.ndim else x + x,
    "with a repeated one": lambda x: x + x[..., :1] if x.ndim else x,
    "times itself": lambda x: x * x,
    "repeated": lambda x: np.broadcast_to(x, (2, *x.shape)),
    "summed again": lambda x: x.sum(axis=-1) if x.ndim else x,
}


def check_rest(x: Any) -> None:
    """Every slot that holds no element is as it is said to be."""
    view, core = x._view, x.evaluator._core
    slots = deep().client.decrypt(core.with_view(x._settled(), None, False)).reshape(-1)
    held = np.broadcast_to(view.scattered(np.ones(())).reshape(-1) != 0, slots.shape)
    beside = np.abs(slots[~held])
    if view.copies:
        apart = np.abs(beside[:, None] - np.abs(slots[held])).min(axis=1, initial=np.inf)
        beside = beside[apart > 1e-4]
    value = x._settled()
    assert beside.max(initial=0) <= min(view.rest, value.peak) + ckks.worst_case_error(value)


def steep(x: Any, size: float) -> Any:
    """T_7(x / size): at most 1 for numbers of up to `size`, and millions of times as large for
    numbers ten times as large."""
    if isinstance(x, (np.ndarray, np.generic)):
        return np.cos(7 * np.arccos(np.clip(x / size, -1, 1)))
    return x.evaluator.polynomial(x, seventh(size), within=(-size, size))


def seventh(size: float) -> ckks.Polynomial:
    return ckks.Polynomial([0, 0, 0, 0, 0, 0, 0, 1], "chebyshev", (-size, size))


def check(source: str, derived: list[str]) -> None:
    s = deep()
    clear, make = SOURCES[source]
    x, v = make(s.bind(clear, peak=1.0)), make(clear)
    check_rest(x)
    refused = 0
    for name in derived:
        try:
            y = DERIVED[name](x)
        except (jali.InvalidArgument, jali.Unsupported) as error:
            assert "encrypt" in str(error), name  # numbers would have to move
            refused += 1
            continue
        w = np.asarray(DERIVED[name](v))
        size = max(1.25 * float(np.abs(w).max()), 0.02)
        assert y.shape == w.shape, name
        check_rest(y)
        z = steep(y, size)
        assert y.level - z.level - seventh(size).depth in (0, 1), name  # one level for a mask
        assert np.abs(s.client.decrypt(z) - steep(w, size)).max() < 1e-4, name
        check_rest(z)
    assert refused <= 4


@pytest.mark.parametrize("source", SOURCES)
def test_what_is_said_of_numbers_says_nothing_of_what_lies_beside_them(source: str) -> None:
    """A share of all pairs of a source and a form, such that every form is tried of a dozen
    sources."""
    shift = [*SOURCES].index(source)
    check(source, [name for k, name in enumerate(DERIVED) if (k + shift) % 3 == 0])


@pytest.mark.long
@pytest.mark.parametrize("source", SOURCES)
def test_what_is_said_of_numbers_in_every_form(source: str) -> None:
    check(source, [*DERIVED])


def test_functions_of_sums() -> None:
    s = deep()
    x, v = s.bind(TABLE, peak=1.0).sum(axis=1), TABLE.sum(axis=1)
    within = (-0.25, 0.25)
    for f, y, w in (
        (functions.tanh((-0.5, 0.5), degree=15), x, v),
        (functions.sign(0.5, gap=0.01, error=0.1), x + 0.1, v + 0.1),
        (functions.relu(0.5, error=0.1), x, v),
        (functions.inverse((0.5, 2), error=1e-2), x + 1, v + 1),
    ):
        low, high = within
        z = f(y, within=(low, high) if f.interval[0] < 0 else (0.5, 2))
        assert z.level == y.level - f.depth - 1
        assert np.abs(s.client.decrypt(z) - f(w)).max() < 1e-4
    # Partial sums of twelve numbers are at most 12, which this interval holds.
    wide = functions.sigmoid((-12, 12), degree=7)
    y = wide(x, within=within)
    assert y.level == x.level - wide.depth
    assert np.abs(s.client.decrypt(y) - wide(v)).max() < 1e-4


def test_a_claim_of_sums_is_refused_if_other_sums_lie_beside_them() -> None:
    s = deep()
    x, v = s.bind(TABLE, peak=1.0).sum(axis=1), TABLE.sum(axis=1)
    for y, w in ((x, v), (x.reshape(2, 3), v.reshape(2, 3)), (through_bytes(x), v)):
        with pytest.raises(jali.InvalidArgument, match=r"\* np.ones\(\("):
            y.with_magnitude(0.2, peak=0.2)
        known = (y * np.ones(y.shape)).with_magnitude(0.2, peak=0.2)
        assert np.abs(s.client.decrypt(known) - w).max() < 1e-6
        larger = functions.maximum(0.25, error=0.05)(known, known * -1)
        assert np.abs(s.client.decrypt(larger) - np.abs(w)).max() < 0.06
    many = cancelling(400)
    total = s.bind(many, peak=1.0).sum()  # it repeats in every slot
    known = total.with_magnitude(0.2, peak=0.2)
    assert known.level == total.level and abs(s.client.decrypt(known) - many.sum()) < 1e-6


@pytest.mark.parametrize("order", ["raise_first", "slots_first"])
def test_bootstrapping_behind_a_function_of_sums(order: str) -> None:
    """Polynomials of partial sums of 3.6 were in the other slots, and bootstrapping mixed them into
    all."""
    params = bootstrap_world.make(order, log_n=10, levels_after=6, word="w64")
    client = ckks.Client(params, threads=1)
    keys = client.evaluation_keys("powers", bootstrap=True)
    server = ckks.Evaluator(params, keys, threads=1)
    rows = np.tile([0.9, 0.91, 0.89, 0.9, -0.88, -0.89, -0.9, -0.88], (12, 1))
    f = functions.tanh((-1, 1), degree=15)
    v = rows.sum(axis=1)
    assert np.abs(v - 0.05).max() < 1e-9
    x = server.bind(client.encrypt(rows, magnitude=0.9, peak=1)).sum(axis=1)
    sent = ckks.Ciphertext.from_bytes(x.ciphertext.to_bytes(), params)
    for y, w in ((x, v), (np.stack([x, -x]).T, np.stack([v, -v]).T), (server.bind(sent), v)):
        z = f(y, within=(-0.1, 0.1)).bootstrap()
        assert np.abs(client.decrypt(z) - np.tanh(w)).max() < 1e-3


def test_vectors_that_were_moved_or_shortened() -> None:
    s = deep()
    v = np.array([0.05, -0.06, 0.02, 0.03, 5, -6, 7, -8])
    x = s.bind(v, peak=8.0)
    pairs = s.bind(np.tile([0.5, -0.55], 20), peak=1.0).sum(count=2)
    for y, w in (
        (x.with_length(4), v[:4]),
        (x.rotate(1).with_length(3), v[1:4]),
        (x.rotate(-1).with_length(5) * [0, 1, 1, 1, 1], [0, *v[:4]]),
        (through_bytes(x.with_length(2)), v[:2]),
        (x.with_length(3) * 2 + 0.01, 2 * v[:3] + 0.01),
        (pairs.with_length(1), [-0.05]),
    ):
        w = np.asarray(w)
        size = 1.25 * float(np.abs(w).max())
        z = steep(y, size)
        assert y.level - z.level - seventh(size).depth in (0, 1)
        assert np.abs(s.client.decrypt(z) - steep(w, size)).max() < 1e-4
        if y.ciphertext.rest > size:
            with pytest.raises(jali.InvalidArgument, match=r"x \* np.ones\(x.shape\)"):
                y.with_magnitude(size, peak=size)
        known = (y * np.ones(y.shape)).with_magnitude(size, peak=size)
        assert np.abs(s.client.decrypt(known) - w).max() < 1e-4


def test_a_number_or_a_function_beside_a_vector_takes_no_mask() -> None:
    s = deep()
    v = np.linspace(-0.1, 0.1, 5)
    x = s.bind(v, peak=8.0)
    y = x + 0.3
    assert y.ciphertext.rest == 0.3 and (-y * 2).ciphertext.rest == 0.6
    z = steep(y, 0.5)
    assert z.level == y.level - seventh(0.5).depth
    assert np.abs(s.client.decrypt(z) - steep(v + 0.3, 0.5)).max() < 1e-4
    wide = functions.sigmoid((-8, 8), degree=3)
    assert abs(wide(x).ciphertext.rest - 0.5) < 1e-9
