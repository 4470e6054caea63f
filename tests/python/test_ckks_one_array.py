"""There is one class of encrypted arrays, and one way to bring operands together."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from array_world import Small, small, uniform

import jali
from jali import ckks
from jali.ckks import functions

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = Path(jali.__file__).parent
ARITHMETIC = "ckks/arithmetic.py"
#: Where elements lie, and how they are moved.
PLACES = {"_core/moves.py", "_core/view.py"}
#: What checks the numbers of a mask, as those of every array in the clear.
CLEAR = {"_core/arrays.py", "_core/checks.py"}

#: Shapes of operands, and whether elements go different distances, which takes masks.
EQUAL = [(40, 30), (2, 100, 3), (1700,)]
DIFFERENT = [
    ((40, 30), (30,), False),
    ((30,), (40, 30), False),
    ((7, 5), (2, 7, 5), False),
    ((600, 3), (3,), False),
    ((40, 30), (1,), False),
    ((1700,), (1,), False),
    ((5,), (1,), False),
    ((40, 30), (40, 1), True),
    ((4, 1), (1, 5), True),
    ((5,), (4, 1), True),
]


@pytest.fixture
def s() -> Small:
    return small()


def files_of(operation: Callable[[], Any]) -> set[str]:
    """The files of Jali that an operation and its ciphertext enter in Python."""
    entered = set()

    def enters(frame: Any, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            entered.add(path.relative_to(PACKAGE).as_posix())

    sys.setprofile(enters)
    try:
        _ = operation().ciphertext
    finally:
        sys.setprofile(None)
    return entered


def files_below(walk: str) -> set[str]:
    """The files of C++ and CUDA that a walk of docs/architecture.md names."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.split(f"<!-- walk: {walk} -->")[1].split("<!-- walk: end -->")[0]
    return set(re.findall(r"`((?:src|python/src)/[^`]+)`", table))


def on_a_cpu() -> set[str]:
    shared = {file for file in files_below("product") if "/cuda/" not in file}
    return shared | files_below("product on a cpu")


def test_every_array_has_the_same_class(s: Small) -> None:
    vector, batch = s.bind(uniform(5)), s.bind(uniform(3, 5), batch=True)
    matrix, long = s.bind(uniform(7, 5)), s.bind(uniform(1700))
    for x in (vector, batch, matrix, long, vector[1:3], batch[0], matrix * vector, matrix.sum()):
        assert type(x) is ckks.EncryptedArray
    assert ckks.EncryptedArray.__subclasses__() == []


def test_a_product_of_vectors_enters_thirteen_files(s: Small) -> None:
    x, y = s.bind(uniform(30)), s.bind(uniform(30))
    rows = s.bind(uniform(3, 30), batch=True)
    for operation in (lambda: x * y, lambda: x + y, lambda: x * x, lambda: rows * rows):
        assert files_of(operation) == {ARITHMETIC}
    assert 1 + len(files_below("product")) <= 13
    assert 1 + len(on_a_cpu()) <= 13


@pytest.mark.parametrize("shape", EQUAL)
def test_a_product_of_arrays_enters_two_files_more(s: Small, shape: tuple[int, ...]) -> None:
    x, y = s.bind(uniform(*shape)), s.bind(uniform(*shape))
    for operation in (lambda: x * y, lambda: x + y, lambda: x - y):
        assert files_of(operation) == {ARITHMETIC} | PLACES
    assert 3 + len(on_a_cpu()) <= 13


@pytest.mark.parametrize(("one", "other", "masked"), DIFFERENT)
def test_different_shapes_enter_no_more_files_than_equal_ones(
    s: Small, one: tuple[int, ...], other: tuple[int, ...], masked: bool
) -> None:
    a, b = uniform(*one), uniform(*other)
    x, y = s.bind(a), s.bind(b)
    for operation in (lambda: x * y, lambda: x + y, lambda: x - y):
        assert files_of(operation) == {ARITHMETIC} | PLACES | (CLEAR if masked else set())
    s.check(x * y, a * b)
    s.check(x - y, a - b)


def test_shapes_that_do_not_fit_are_refused_without_an_attempt(s: Small) -> None:
    """The error is that of the shapes, and no other operation was tried before."""
    pairs = [((5,), (4,)), ((3, 5), (2, 5)), ((7, 5), (7,)), ((7, 5), (3, 7, 4)), ((5,), (2, 4))]
    for one, other in pairs:
        x, y = s.bind(uniform(*one)), s.bind(uniform(*other))
        for operation in (np.add, np.subtract, np.multiply):
            with pytest.raises(jali.InvalidArgument, match=r"lengths|shapes") as caught:
                operation(x, y)
            assert not isinstance(caught.value.__context__, jali.Error)
    rows, more = s.bind(uniform(3, 5), batch=True), s.bind(uniform(2, 5), batch=True)
    with pytest.raises(jali.InvalidArgument, match=r"shapes \(3, 5\) and \(2, 5\)"):
        rows * more
    with pytest.raises(jali.InvalidArgument, match="batches 3 and 2"):
        rows + more


def test_a_sum_lies_where_the_array_lies(s: Small) -> None:
    """Whichever of its operands comes first, if the other one is a vector."""
    a, b = uniform(40, 30), uniform(5)
    part, vector = s.bind(a)[3, 4:9], s.bind(b)
    place = part.ciphertext.view
    for value in (part + vector, vector + part, part * vector, vector * part, part - vector):
        assert value.ciphertext.view == place
    assert (vector - part).ciphertext.view != place
    s.check(vector - part, b - a[3, 4:9])
    s.check(vector * part, b * a[3, 4:9])


def test_sums_of_products_broadcast(s: Small) -> None:
    """Products that were not computed yet, too."""
    a, b, rows = uniform(5), uniform(1), uniform(3, 5)
    x, y, batch = s.bind(a), s.bind(b), s.bind(rows, batch=True)
    s.check(x * x + y * y, a * a + b * b)
    s.check(y * y - x * x, b * b - a * a)
    s.check(batch * batch + y * y, rows * rows + b * b)
    s.check(batch * x + x * x, rows * a + a * a)


def test_the_larger_of_operands_of_different_shapes() -> None:
    params = ckks.Params.create(
        depth=8, scale_bits=40, log_n=10, security=0, name="insecure_arrays", integer_bits=16
    )
    client = ckks.Client(params, threads=1)
    server = ckks.Evaluator(params, client.evaluation_keys(rotations="powers"), threads=1)
    larger = functions.maximum(0.5, error=0.1)
    values = [uniform(3, 5), uniform(3, 1), uniform(1), uniform(5)]
    numbers = [0.5 * v for v in values]
    x = [server.bind(client.encrypt(v, peak=0.5, batch=v.ndim == 2)) for v in numbers]
    for i, j in ((0, 1), (0, 2), (3, 1), (2, 3), (3, 0)):
        got = client.decrypt(larger(x[i], x[j]))
        assert np.abs(got - np.maximum(numbers[i], numbers[j])).max() <= larger.max_error + 1e-4


def test_vectors_are_broadcast_as_arrays_are(s: Small) -> None:
    a = uniform(5)
    s.check(s.bind(a).broadcast_to((3, 5)), np.broadcast_to(a, (3, 5)))
    with pytest.raises(jali.InvalidArgument, match="cannot become"):
        s.bind(uniform(3, 5)).broadcast_to((5,))
