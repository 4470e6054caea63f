"""Products of encrypted matrices with encrypted vectors, as NumPy writes them, from the bytes of a
manifest and a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lies
import numpy as np
import pytest

import jali
from jali import nn
from jali._jali import program as _program
from jali.nn import scalar

Function = Callable[..., Any]


def compare(function: Function, arrays: list[np.ndarray], want: np.ndarray, **how: Any) -> None:
    """The decrypted results of the first examples, with a client and a server made from bytes,
    against what is wanted of all."""
    program = jali.compile(
        function, tuple(x[0] for x in arrays), calibration=tuple(arrays), precision_bits=9, **how
    )
    program.verify()
    client = nn.Client(nn.Manifest.from_bytes(program.manifest.to_bytes()), threads=1)
    again = nn.Program.from_bytes(program.to_bytes())
    server = again.server(client.evaluation_keys(), device="cpu", threads=1)
    got = client.decrypt(server(client.encrypt(*(x[:3] for x in arrays))))
    assert got.shape == want[:3].shape
    assert np.abs(got - want[:3]).max() <= 2.0**-9 * np.abs(want).max()


@pytest.mark.parametrize(
    "rows,columns", [(1, 1), (1, 4), (3, 1), (2, 2), (5, 4), (7, 3), (8, 8), (33, 20)]
)
def test_a_matrix_times_a_vector(rows: int, columns: int, rng: np.random.Generator) -> None:
    """Both encrypted. Every size with more than one row was an IndexError."""
    w, x = rng.uniform(-1, 1, (40, rows, columns)), rng.uniform(-1, 1, (40, columns))
    compare(lambda w, x: w @ x, [w, x], np.einsum("eij,ej->ei", w, x))


def test_a_vector_times_a_matrix(rng: np.random.Generator) -> None:
    """In four lanes, and with the vector as the first argument."""
    x, w = rng.uniform(-1, 1, (40, 5)), rng.uniform(-1, 1, (40, 5, 6))
    compare(lambda x, w: x @ w, [x, w], np.einsum("ei,eij->ej", x, w), batch=4)


#: What stands around such products in programs, for a matrix (4, 3), vectors of 3 and of 4 numbers;
#: and the same by einsum and arithmetic.
AROUND: dict[str, tuple[Function, Function]] = {
    "plus a vector": (lambda w, x, b: w @ x + b, lambda w, x, b: np.einsum("ij,j->i", w, x) + b),
    "and back": (
        lambda w, x, b: w.T @ (w @ x),
        lambda w, x, b: np.einsum("ij,ik,k->j", w, w, x),
    ),
    "logistic regression": (
        lambda w, x, b: scalar.sigmoid(w @ x - b.mean()),
        lambda w, x, b: 1 / (1 + np.exp(b.mean() - np.einsum("ij,j->i", w, x))),
    ),
    "a form": (lambda w, x, b: b @ (w @ x), lambda w, x, b: np.einsum("i,ij,j->", b, w, x)),
    "rows times numbers": (lambda w, x, b: w * b[:, None] * x, lambda w, x, b: (w.T * b).T * x),
    "another shape": (
        lambda w, x, b: w.reshape(3, 4) * b,
        lambda w, x, b: np.stack([w.ravel()[4 * k :][:4] * b for k in range(3)]),
    ),
}


@pytest.mark.parametrize("name", AROUND)
def test_what_stands_around_products(name: str, rng: np.random.Generator) -> None:
    """An input that is copied to lie as another array does may have another shape than that: each
    of these was an IndexError."""
    function, oracle = AROUND[name]
    arrays = [rng.uniform(-1, 1, (40, *shape)) for shape in ((4, 3), (3,), (4,))]
    compare(function, arrays, np.stack([oracle(*one) for one in zip(*arrays, strict=True)]))


@pytest.mark.parametrize(
    "a,b",
    [
        ((2, 3, 4), (2, 4, 5)),
        ((2, 1, 4), (2, 4, 3)),
        ((2, 3, 4), (2, 4, 1)),
        ((2, 3, 4), (4,)),
        ((4,), (2, 4, 3)),
        ((3, 4), (2, 4, 1)),
        ((1, 4), (4,)),
    ],
)
def test_products_of_several_matrices(
    a: tuple[int, ...], b: tuple[int, ...], rng: np.random.Generator
) -> None:
    """As numpy.matmul and torch.bmm have them; some were said to be vectors, and refused."""
    x, y = rng.uniform(-1, 1, (40, *a)), rng.uniform(-1, 1, (40, *b))
    compare(
        lambda a, b: a @ b, [x, y], np.stack([np.matmul(p, q) for p, q in zip(x, y, strict=True)])
    )


def test_shapes_that_do_not_fit_are_refused(rng: np.random.Generator) -> None:
    for a, b in (((2, 3, 4), (5,)), ((1, 4), (3, 2)), ((4,), (2, 5, 3))):
        x, y = rng.uniform(-1, 1, (40, *a)), rng.uniform(-1, 1, (40, *b))
        with pytest.raises(jali.InvalidArgument, match="a product of arrays of"):
            jali.compile(lambda a, b: a @ b, (x[0], y[0]), calibration=(x, y))


def test_an_output_of_which_numbers_lie_apart_survives_bytes(rng: np.random.Generator) -> None:
    """A client from the bytes of such a manifest read other slots, and had wrong numbers without a
    word."""
    x, y = rng.uniform(-1, 1, (2, 40, 3, 4))
    program = jali.compile(lambda x, y: (x * y).sum(-1), (x[0], y[0]), calibration=(x, y))
    (port,) = program.manifest.outputs
    assert port.layout.kind == "repeated"
    (again,) = nn.Manifest.from_bytes(program.manifest.to_bytes()).outputs
    assert again.layout == port.layout
    compare(lambda x, y: (x * y).sum(-1), [x, y], (x * y).sum(-1))
    for wrong in (0, 1 << 20, 3):
        lie = _program.Layout.repeated(port.shape, port.layout.slots, port.layout.period, wrong)
        with pytest.raises(jali.CorruptData, match="the bytes are no manifest"):
            nn.Manifest.from_bytes(lies.port("outputs", layout=lie)(program.manifest).to_bytes())
