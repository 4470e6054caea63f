"""What the client of a program of trees knows: what to ask its rows, how the answers are sent, and
what results mean.

It has neither trees nor leaves. The questions are those of the model, unless a model of bins has
others beside them.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._core.columns import check_columns
from jali._jali.tfhe import Params
from jali.errors import InvalidArgument
from jali.tfhe.trees import stored
from jali.tfhe.trees.ensemble import Floats, Head, Ints, Question, answered
from jali.tfhe.trees.questions import table

__all__ = ["Manifest"]

_NO_RESULTS = "results are finite numbers, one or several of each row: give what decrypt gave"


@dataclass(frozen=True, eq=False)
class Manifest:
    """What the client needs to know of a program: its parameters, and what is encrypted of a row.

    columns: (question, value): what is encrypted of a row, 0 or `value` for each answer.
    parts: how many of the columns each ciphertext holds.
    rows: how many rows a ciphertext holds at most.
    outputs: of each number of a result, its score and by which power of two it counts. Score c is
        base[c] and step[c] times the sum.
    errors: how far it may be from that of the model's leaves.
    features, compared_as, missing, infinite, classes, names, head: as of Ensemble.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> rows, kinds = load_iris(return_X_y=True)
    >>> program = jali.compile(DecisionTreeClassifier(max_depth=2).fit(rows, kinds))
    >>> manifest = trees.Manifest.from_bytes(program.manifest.to_bytes())
    >>> trees.Client(manifest).manifest.features
    4
    """

    params: Params
    questions: tuple[Question, ...]
    columns: tuple[tuple[int, int], ...]
    parts: tuple[int, ...]
    rows: int
    outputs: tuple[tuple[int, int], ...]
    step: Floats
    base: Floats
    errors: Floats
    head: Head
    features: int
    compared_as: str
    missing: bool
    infinite: bool
    classes: npt.NDArray[Any]
    names: tuple[str, ...] = ()

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all of it, which the messages of its client and its server carry."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    @property
    def error(self) -> float:
        """How far a result may be from the sum of the model's leaves; 0 if leaves are whole numbers
        of steps."""
        return self.head.error(self.errors)

    def table(self, rows: npt.ArrayLike) -> Floats:
        """Rows as they are compared. Raises InvalidArgument for rows of another width, tables whose
        columns are others or in another order, and numbers that the model does not take."""
        self.check_names(rows)
        numbers = table(rows, self.compared_as, missing=self.missing, infinite=self.infinite)
        if numbers.shape[1] != self.features:
            raise InvalidArgument(
                f"rows have {numbers.shape[1]} features, and the model takes {self.features}: give those on which it was fitted"
            )
        return numbers

    def check_names(self, rows: npt.ArrayLike, owner: str = "program") -> None:
        """Raises InvalidArgument for a table whose columns are not those of the model, in its order.
        owner: what has this manifest, in the code of the error."""
        check_columns(self.names, rows, "the table", f"list({owner}.manifest.names)")

    def answers(self, rows: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """The answers (n, questions) for rows (n, features)."""
        numbers = self.table(rows)
        found = [answered(q, numbers[:, q.feature]) for q in self.questions]
        return np.stack(found, axis=1) if found else np.zeros((len(numbers), 0), np.bool_)

    def inputs(self, rows: npt.ArrayLike) -> Ints:
        """What is encrypted of rows: (n, columns)."""
        asked, value = np.array(self.columns, np.int64).T
        found: Ints = self.answers(rows)[:, asked] * value
        return found

    def results(self, numbers: npt.NDArray[np.int64]) -> Floats:
        """What the model gives, from decrypted numbers (n, outputs)."""
        total = np.zeros((len(self.base), len(numbers)), np.int64)
        for (score, shift), column in zip(self.outputs, numbers.T, strict=True):
            total[score] += column.astype(np.int64) << shift
        return self.head.results(self.base + self.step * total.T, self.errors)

    def labels(self, results: npt.ArrayLike) -> npt.NDArray[Any]:
        """What the model's predict gives for results: of several rows, or of one row without the
        axis of the rows. Raises InvalidArgument for anything else."""
        array = checks.as_array(results, _NO_RESULTS)
        one = self.results(np.zeros((1, len(self.outputs)), np.int64)).shape[1:]
        if array.dtype.kind not in "biuf" or not np.all(np.isfinite(array)):
            raise InvalidArgument(_NO_RESULTS)
        if array.shape != one and array.shape[1:] != one:
            of_rows = f"(n, {one[0]})" if one else "(n,)"
            raise InvalidArgument(
                f"results have the shape {array.shape}, and those of n rows have {of_rows}: give what decrypt gave"
            )
        rows = np.asarray(array[None] if array.shape == one else array, np.float64)
        labels = self.head.labels(rows, self.classes)
        return np.asarray(labels[0]) if array.shape == one else labels

    def to_bytes(self) -> bytes:
        """Bytes from which from_bytes makes the same manifest. They are not authenticated."""
        return stored.written("manifest", stored.manifest_document(self))

    @classmethod
    def from_bytes(
        cls,
        data: bytes | bytearray | memoryview,
        *,
        security: int = 128,
        log2_p_fail: float = 0.0,
    ) -> Manifest:
        """The manifest of ``data``, which to_bytes wrote.

        security, log2_p_fail: what is demanded of the parameters, see Params.from_bytes.

        Raises CorruptData, VersionError, LimitExceeded, and the errors of Params.from_bytes.
        """
        return cls(**stored.manifest_fields(stored.read("manifest", data), security, log2_p_fail))

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write to_bytes() to the path ``file``, which is replaced at once or not at all."""
        stored.save(file, self.to_bytes())

    @classmethod
    def load(
        cls, file: str | os.PathLike[str], *, security: int = 128, log2_p_fail: float = 0.0
    ) -> Manifest:
        """What save wrote to the path ``file``.

        security, log2_p_fail: as of ``from_bytes``.

        Raises FileError, and the errors of from_bytes.
        """
        return cls.from_bytes(stored.load(file), security=security, log2_p_fail=log2_p_fail)
