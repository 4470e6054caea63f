"""Large matrices in the clear that an evaluator keeps, and their products with encrypted vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._core.refusals import Answering
from jali._core.view import View
from jali._jali.discrete import MatrixCore, Params
from jali.discrete.array import EncryptedArray
from jali.discrete.evaluator import Evaluator, checked
from jali.discrete.values import as_integers
from jali.errors import InvalidArgument, NotPickled

__all__ = ["Matrix", "babies_for"]


class Matrix(metaclass=Answering):
    """A matrix in the clear with any number of rows, kept in the memory of an evaluator's device in
    the form in which products run. It is for tables and models that serve many encrypted vectors;
    for one product, write ``matrix @ x`` with NumPy's matrix.

    server: the evaluator that multiplies by it.
    rows: integers of the shape (rows, columns), or an iterator of such arrays, one below the other,
        which need not be in memory together. It has at most params.slots / 2 columns.
    count: how many rows an iterator will give. Fewer rotations then do for a matrix whose rows are
        few beside its columns times params.slots.
    level: of the vectors that it is multiplied by, 0 to params.depth; those above it are brought
        down. None stands for params.depth. Products lie one level lower.
    wrap: whether the matrix and its products are meant modulo params.modulus.

    Every number takes 4 bytes of memory in "w32" and 8 in other words, for each prime of the level:
    see nbytes_of. A vector x of ``columns`` numbers is encrypted as many times as it fits a
    ciphertext, ``np.tile(x, (params.slots // width, 1))``, where width is the next power of two.
    A product takes keys for the rotations 1, 2, 4 .. width / 2, which rotations_of lists.

    Raises InvalidArgument for other shapes, RangeExceeded for numbers that the modulus does not
    tell apart, and OutOfMemory.

    >>> params = discrete.Params.create(modulus=65537, depth=1)
    >>> client = discrete.Client(params)
    >>> keys = client.evaluation_keys(discrete.Matrix.rotations_of(2), relinearise=False)
    >>> server = discrete.Evaluator(params, keys)
    >>> matrix = discrete.Matrix(server, np.array([[1, 2], [3, 4], [5, 6]]))
    >>> x = client.encrypt(np.tile(np.array([1, -1], np.int8), (params.slots // 2, 1)))
    >>> client.decrypt(matrix @ server.bind(x))
    array([-1, -1, -1])
    """

    __slots__ = ("_core", "_server", "_shape")

    def __init__(
        self,
        server: Evaluator,
        rows: npt.ArrayLike | Iterator[npt.ArrayLike],
        *,
        count: int | None = None,
        level: int | None = None,
        wrap: bool = False,
    ) -> None:
        checked(server, Evaluator, "server")
        parts = rows if isinstance(rows, Iterator) else iter([rows])
        first = _rows(next(parts, np.zeros((0, 1), np.int8)))
        columns, slots = first.shape[1], server.params.slots
        if not isinstance(rows, Iterator):
            count = len(first)
        elif count is not None:
            count = checks.whole(count, 1, "count must be a whole number of rows")
        width = width_of(columns)
        babies = width if count is None else babies_for((count, columns), slots)
        self._server = server
        self._core = MatrixCore(
            server._engine, width, _level(level), checks.flag(wrap, "wrap"), babies
        )
        total = 0
        for block in _blocks(first, parts, slots):
            padded = np.zeros((len(block), width), np.int64)
            padded[:, :columns] = as_integers(block, "the rows of a matrix")
            self._core.append(padded)
            total += len(block)
        self._shape = (total, columns)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self._shape

    @property
    def level(self) -> int:
        """The level at which it is multiplied. Products lie one level lower, or at level 0."""
        return self._core.level

    @property
    def nbytes(self) -> int:
        """Bytes that it takes in the memory of the device."""
        return self._core.nbytes

    @staticmethod
    def rotations_of(columns: int) -> list[int]:
        """The rotations for which products with a matrix of so many columns need keys.

        >>> discrete.Matrix.rotations_of(128)
        [1, 2, 4, 8, 16, 32, 64]
        """
        count = checks.whole(columns, 1, "columns must be a whole number from 1")
        return [1 << k for k in range((count - 1).bit_length())]

    @staticmethod
    def nbytes_of(params: Params, shape: tuple[int, int], *, level: int | None = None) -> int:
        """The bytes of memory that a matrix of this shape takes, known before it is made.

        >>> params = discrete.Params.create(modulus=65537, depth=1)
        >>> discrete.Matrix.nbytes_of(params, (10**6, 128)) > 10**9
        True
        """
        checked(params, Params, "params")
        try:
            rows, columns = shape
        except (TypeError, ValueError):
            raise InvalidArgument("shape is (rows, columns)") from None
        whole = "a matrix has a whole number of rows and columns, from 1"
        count, width = checks.whole(rows, 1, whole), width_of(checks.whole(columns, 1, whole))
        return MatrixCore.nbytes_of(params, count, width, _level(level))

    def __matmul__(self, x: EncryptedArray) -> EncryptedArray:
        """The product with an encrypted vector, one level lower, of as many numbers as the matrix
        has rows.

        x: of the shape (params.slots // width, columns), the same vector in every row, as it was
            encrypted.

        Raises InvalidArgument for other shapes, KeyMissing, RangeExceeded if a number of the product
        may leave the modulus and neither wraps, and DepthExhausted: all before it computes.
        """
        if not isinstance(x, EncryptedArray):
            raise InvalidArgument(
                f"a discrete.Matrix is multiplied by an encrypted array, not {type(x).__name__}: "
                "server.bind() makes one"
            )
        slots, columns = self._server.params.slots, self._shape[1]
        shape = (slots // width_of(columns), columns)
        place = x._place
        if x.shape != shape or not place.same_place(View.dense(shape, slots // 2)):
            raise InvalidArgument(
                f"a matrix of {columns} columns is multiplied by a vector that fills its ciphertext, of the shape {shape}, and "
                f"this array has the shape {x.shape}: encrypt np.tile(vector, ({shape[0]}, 1))"
            )
        value = self._core.multiply(x._server._engine, x._ct)
        return x._new(value, View.dense((self._shape[0],), slots // 2))

    def __repr__(self) -> str:
        return f"Matrix(shape={self._shape}, level={self.level}, nbytes={self.nbytes})"

    def __reduce__(self) -> NoReturn:
        raise NotPickled(
            "a discrete.Matrix lies in a device's memory and is not pickled: make it again from its numbers"
        )


def width_of(columns: int) -> int:
    """The power of two to which rows are filled up with zeros."""
    return 1 << (columns - 1).bit_length()


def babies_for(shape: tuple[int, int], slots: int) -> int:
    """How many rotations of a vector are made: so many that they, and those of the sums of every
    block of rows, are fewest (circuits/discrete/integer_matrix.h)."""
    rows, width = shape[0], width_of(shape[1])
    blocks = -(-rows // slots)
    choices = [1 << k for k in range(width.bit_length())]
    return min(choices, key=lambda babies: babies + blocks * (width // babies - 1))


def _level(level: int | None) -> int:
    if level is None:
        return -1
    return checks.whole(level, 0, "level must be a whole number from 0 to params.depth, or None")


def _rows(values: Any) -> npt.NDArray[Any]:
    array = checks.as_array(
        values, "the rows of a matrix are not an array: give lists of equal lengths"
    )
    if array.ndim != 2 or array.size == 0:
        raise InvalidArgument(
            f"a matrix has the shape (rows, columns) with at least one of each, not {array.shape}"
        )
    return array


def _blocks(first: npt.NDArray[Any], parts: Iterator[Any], size: int) -> Iterator[npt.NDArray[Any]]:
    """All rows, `size` at a time."""
    rest = first
    while True:
        while len(rest) >= size:
            yield rest[:size]
            rest = rest[size:]
        part = next(parts, None)
        if part is None:
            break
        more = _rows(part)
        if more.shape[1] != first.shape[1]:
            raise InvalidArgument(
                f"all rows of a matrix have equally many columns: {first.shape[1]} came first, and then {more.shape[1]}"
            )
        rest = np.concatenate([rest, more])
    if len(rest) > 0:
        yield rest
