"""Parts of encrypted arrays: which bounds may be claimed of them, though larger numbers lie beside
them in the same vectors of slots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from array_world import Small, small, uniform

import jali
from jali import ckks


@pytest.fixture
def s() -> Small:
    return small()


#: Parts of the rows [0.5, -0.25, 0.125, 30], [0.25, 0.5, -0.5, -20] and [40, 9, 10, 11], and what
#: is computed from such parts.
PARTS: dict[str, Any] = {
    "columns": lambda a: a[:2, :3],
    "every other column": lambda a: a[:2, ::2],
    "columns backwards": lambda a: a[:2, 2::-1],
    "rows of a transpose": lambda a: a.T[:3, :2],
    "one element": lambda a: a[0, 0],
    "a part of a reshaped array": lambda a: a.reshape(3, 2, 2)[:2, 0],
    "a part of a part": lambda a: a[:2][0][:3],
    "a reshaped part": lambda a: a[:2, :2].reshape(2, 1, 2),
    "a negative part": lambda a: -a[:2, :3],
    "half a part": lambda a: a[:2, :3] * 0.5,
    "a part and a number": lambda a: a[:2, :3] + 0.25,
    "a part and an array": lambda a: a[:2, :3] + [0.25, 0.5, 0.75],
    "a sum of parts": lambda a: a[:2, :2] + a[:2, 1:3],
    "a difference of parts": lambda a: a[0, :3] - a[1, :3],
    "a product of parts": lambda a: a[:2, :2] * a[:2, 1:3],
    "a square of a part": lambda a: a[:2, :3] ** 2,
    "the sums of a part": lambda a: a[:2, :3].sum(1),
    "the mean of a part": lambda a: a[:2, :3].mean(),
    "stacked parts": lambda a: np.stack([a[0, :3], a[1, :3]]),
}


def _rows() -> Any:
    return np.array([[0.5, -0.25, 0.125, 30], [0.25, 0.5, -0.5, -20], [40, 9, 10, 11]])


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("batch", [False, True])
def test_a_claim_of_a_part_is_refused_if_larger_numbers_lie_beside_it(
    s: Small, part: str, batch: bool
) -> None:
    rows = _rows()
    x, expected = PARTS[part](s.bind(rows, peak=40, batch=batch)), np.asarray(PARTS[part](rows))
    most = float(np.abs(expected).max()) * 1.01
    with pytest.raises(jali.InvalidArgument, match="claimed of a part of an array"):
        x.with_magnitude(most, peak=most)
    advised = x * np.ones(x.shape) if x.shape else x[None] * np.ones(1)
    known = advised.with_magnitude(most, peak=most)
    s.check(known, expected.reshape(known.shape))
    assert known.level == x.level - 1
    s.check(x.with_magnitude(40, peak=2 * x.ciphertext.peak), expected)  # no smaller bound


@pytest.mark.parametrize("batch", [False, True])
def test_nothing_lies_beside_a_part_times_a_matrix(s: Small, batch: bool) -> None:
    """The diagonals of the matrix are zero there, so that a claim needs no mask."""
    rows = _rows()
    x = s.bind(rows, peak=40, batch=batch)[:2, :3] @ np.eye(3)
    known = x.with_magnitude(0.6, peak=0.6)
    s.check(known, rows[:2, :3])
    assert known.level == x.level


@pytest.mark.parametrize("batch", [False, True])
def test_a_claim_of_a_whole_array_holds_for_its_parts(s: Small, batch: bool) -> None:
    rows = uniform(3, 4)
    x = s.bind(rows, peak=40, batch=batch)
    for whole, a in (
        (x, rows),
        (x.T, rows.T),
        (x.reshape(3, 2, 2), rows.reshape(3, 2, 2)),
        (x[:, :], rows),
        (x + 0.5, rows + 0.5),
        (x * x, rows * rows),
        (np.stack([x, x]), np.stack([rows, rows])),
        (np.concatenate([x[:1], x[1:]]), rows),
    ):
        known = whole.with_magnitude(1.5, peak=1.5)
        assert known.level == whole.level and known.ciphertext.peak == 1.5
        s.check(known, a)
        s.check(known[0], a[0])
        s.check(known[:1].with_magnitude(1.5, peak=1.5), a[:1])


def test_a_claim_of_whole_rows_of_a_batch_holds(s: Small) -> None:
    """No other numbers lie in their vectors."""
    rows = np.array([[30.0, 20.0], [0.5, -0.25], [0.125, 0.25]])
    x = s.bind(rows, peak=40, batch=True)
    for some, a in ((x[1], rows[1]), (x[1:], rows[1:]), (x[1:] + x[:0:-1], rows[1:] + rows[:0:-1])):
        known = some.with_magnitude(0.8, peak=0.8)
        s.check(known, a)
        assert known.level == some.level and known.ciphertext.batch == len(np.atleast_2d(a))
    with pytest.raises(jali.InvalidArgument, match=r"part \* np.ones\(\(2, 1\)\)"):
        x[1:, :1].with_magnitude(0.8, peak=0.8)


def test_what_a_part_hides_is_told_where_it_is_bound_again(s: Small) -> None:
    x = s.bind(_rows(), peak=40)[:2, :3]
    with pytest.raises(jali.InvalidArgument, match="up to 40"):
        s.server.bind(x).with_magnitude(0.5)


def test_a_product_of_a_part_with_zeros_hides_nothing(s: Small) -> None:
    rows, weights = _rows(), np.array([0.5, -1.0, 0.25])
    x, w = s.bind(rows, peak=40)[:, :3], s.bind(weights, peak=1)
    for product, hides in (
        (x * w, False),
        (w * x, False),
        (x * s.bind(rows, peak=40)[:, :3], True),
    ):
        slots = s.client.decrypt(ckks.EncryptedArray(s.server, product._settled()))
        elsewhere = product._view.scattered(np.zeros(()), 1).astype(bool)
        assert product._view.zero == (not hides)
        assert (np.abs(slots[elsewhere]).max() > 1) == hides
    s.check((x * w).with_magnitude(20, peak=20.5), rows[:, :3] * weights)
