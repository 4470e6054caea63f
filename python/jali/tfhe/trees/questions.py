"""The client's part: it answers questions about its rows, encrypts the answers, and reads the result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import checks, schema
from jali._core.console import counted_text
from jali._jali.tfhe import Ciphertext
from jali.errors import CorruptData, InvalidArgument
from jali.tfhe.client import Client

__all__ = ["Questions", "bins", "checked_edges", "quantile_edges"]

_LARGEST = 1e100  # of a number in a document, so that scores are finite
_MOST_VALUES = 1 << 16  # of a message
_MOST_TREES = 1 << 31
TYPES: dict[str, type[np.float32 | np.float64]] = {"float32": np.float32, "float64": np.float64}

Floats = npt.NDArray[np.float64]


def quantile_edges(rows: npt.ArrayLike, bins: int) -> tuple[Floats, ...]:
    """For every feature at most bins - 1 numbers that divide rows (n, features) into parts of about equal size."""
    checks.whole(bins, 2, "bins must be a whole number of at least 2")
    quantiles = np.quantile(_table(rows, np.float64), np.arange(1, bins) / bins, axis=0)
    return tuple(np.unique(column) for column in quantiles.T)


def bins(rows: npt.ArrayLike, edges: Sequence[npt.ArrayLike]) -> npt.NDArray[np.int64]:
    """How many of its edges each number of rows (n, features) is above: what a model is fitted on, for ``compile`` with edges."""
    table = _table(rows, np.float64)
    parts = _passed(table, checked_edges(edges, table.shape[1]))
    return np.stack([part.sum(axis=1) for part in parts], axis=1)


def checked_edges(edges: Sequence[npt.ArrayLike], features: int) -> tuple[Floats, ...]:
    """The edges of every feature, ascending. Raises InvalidArgument for others."""
    try:
        given = tuple(np.asarray(of, np.float64) for of in edges)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"edges are no lists of numbers: {error}") from None
    if len(given) != features:
        raise InvalidArgument(
            f"there are edges for {counted_text(len(given), 'feature')}, and rows have {features}: give a list for each feature"
        )
    for feature, of in enumerate(given):
        if of.ndim != 1 or not np.isfinite(of).all() or not (np.diff(of) > 0).all():
            raise InvalidArgument(
                f"the edges of feature {feature} must be finite numbers in ascending order, without repetition"
            )
    return given


def _table(rows: npt.ArrayLike, compared_as: type[np.float32 | np.float64]) -> Floats:
    """Rows whose numbers are rounded to a type. Raises InvalidArgument for what is no table of finite numbers."""
    try:
        with np.errstate(over="ignore"):  # it is refused below
            table = np.asarray(rows).astype(compared_as).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"rows are no table of numbers: {error}") from None
    if table.ndim != 2 or table.size == 0:
        raise InvalidArgument(
            f"rows have the shape {table.shape}: give (n, features) with at least one row"
        )
    if not np.isfinite(table).all():
        raise InvalidArgument(
            "a number of a row is missing or not finite: fill it in as for the rows on which the model was fitted"
        )
    return table


def _passed(table: Floats, edges: tuple[Floats, ...]) -> list[npt.NDArray[np.bool_]]:
    """For every feature, whether each row is above each edge: (n, edges)."""
    if table.shape[1] != len(edges):
        raise InvalidArgument(
            f"rows have {counted_text(table.shape[1], 'feature')}, and the model takes {len(edges)}: give those on which it was fitted"
        )
    return [column[:, None] > of for column, of in zip(table.T, edges, strict=True)]


def _class(value: Any) -> Any:
    """The name or number of a class."""
    if type(value) is str:
        return value if not value else schema.text(value)
    if type(value) in (bool, int):
        return value if type(value) is bool else schema.whole(-(1 << 63), (1 << 63) - 1)(value)
    return schema.number(-_LARGEST, _LARGEST)(value)


_NUMBER = schema.number(-_LARGEST, _LARGEST)
_DOCUMENT = schema.record(
    {
        "edges": schema.listed(schema.listed(_NUMBER), 1),
        "large": schema.whole(1, _MOST_VALUES),
        "score_of": schema.listed(schema.whole(), 1),
        "base": schema.listed(_NUMBER, 1),
        "step": _NUMBER,
        "count": schema.whole(1, _MOST_TREES),
        "is_mean": schema.flag,
        "classes": schema.listed(_class, 2),
        "compared_as": schema.one_of(*TYPES),
    }
)


@dataclass(frozen=True)
class Questions:
    """What a client must know of a program. It has neither trees nor tables; `edges` are the model's unless others were given.

    edges: with which each feature is compared, ascending. A row's answer is ``row[feature] > edge``.
    compared_as: to what numbers of rows are rounded before, as scikit-learn's trees do.
    large: every answer is encrypted twice, as 0 or 1 and as 0 or `large`. A sum may weigh the second at little noise where
        the first would need a large weight.
    score_of: the score to which each number of a result belongs. A score is base and `step` times the sum of its numbers.
    is_mean, count: whether scores are then divided by the number of trees.
    """

    edges: tuple[Floats, ...]
    large: int
    score_of: npt.NDArray[np.int64]
    base: Floats
    step: float
    count: int
    is_mean: bool
    classes: npt.NDArray[Any]
    compared_as: type[np.float32 | np.float64]

    def to_json(self) -> str:
        """Everything as text, to send to the client."""
        return json.dumps(
            {
                "edges": [of.tolist() for of in self.edges],
                "large": self.large,
                "score_of": self.score_of.tolist(),
                "base": self.base.tolist(),
                "step": self.step,
                "count": self.count,
                "is_mean": self.is_mean,
                "classes": self.classes.tolist(),
                "compared_as": np.dtype(self.compared_as).name,
            }
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Questions:
        """What to_json wrote. Raises CorruptData for anything else."""
        try:
            raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
            given = _DOCUMENT(schema.parsed(bytes(schema.octets(raw))))
            questions = cls(
                edges=checked_edges(given["edges"], len(given["edges"])),
                large=given["large"],
                score_of=np.array(given["score_of"], np.int64),
                base=np.array(given["base"], np.float64),
                step=given["step"],
                count=given["count"],
                is_mean=given["is_mean"],
                classes=np.array(given["classes"]),
                compared_as=TYPES[given["compared_as"]],
            )
            questions._check()
        except ValueError as error:
            raise CorruptData(
                f"these are no questions of a program: {error}; give what Questions.to_json wrote"
            ) from None
        return questions

    def _check(self) -> None:
        classes = self.classes.size
        scores = classes - 1 if self.is_mean or classes == 2 else classes
        if self.classes.ndim != 1 or classes < 2 or self.classes.dtype.kind not in "biufU":
            raise ValueError("classes are no names or numbers")
        if self.base.shape != (scores,) or not np.isfinite([*self.base, self.step]).all():
            raise ValueError("base and step are not what the classes need")
        of = self.score_of
        if of.ndim != 1 or of.size == 0 or of.min() < 0 or of.max() >= scores:
            raise ValueError("a number belongs to no score")

    def answers(self, rows: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The answers (n, questions), 0 or 1, for rows (n, features).

        Raises InvalidArgument for rows of another width, and for numbers that are missing or not finite.
        """
        return np.concatenate(_passed(_table(rows, self.compared_as), self.edges), axis=1).astype(
            np.int64
        )

    def encrypt(self, client: Client, rows: npt.ArrayLike) -> list[Ciphertext]:
        """The request: the answers of all rows to each question, as 0 or 1, and then those as 0 or `large`.

        Every one is a ciphertext of its own, so that a server need not read those that its model does not use. The bytes of one are 8
        for each row, and about 120 more.
        """
        answers = self.answers(rows).T
        return [client.encrypt(one, largest=1) for one in answers] + [
            client.encrypt(one * self.large, largest=self.large) for one in answers
        ]

    def scores(self, results: npt.ArrayLike) -> Floats:
        """What the rounded model's predict_proba, or decision_function of boosting, gives, from decrypted results (n, numbers)."""
        parts = np.asarray(results, np.int64)
        if parts.ndim != 2 or parts.shape[1] != len(self.score_of):
            raise InvalidArgument(
                f"results have the shape {parts.shape}, and the program's have {counted_text(len(self.score_of), 'number')} for each row: decrypt "
                "the reply to a request for this program"
            )
        votes = np.zeros((len(parts), len(self.base)), np.int64)
        np.add.at(votes.T, self.score_of, parts.T)
        scores = self.base + np.asarray(votes * self.step, np.float64)
        if not self.is_mean:
            return scores[:, 0] if scores.shape[1] == 1 else scores
        first = self.count - scores.sum(axis=1, keepdims=True)
        shares: Floats = np.concatenate([first, scores], axis=1) / self.count
        return shares

    def decrypt(self, client: Client, reply: Ciphertext) -> Floats:
        """The scores of the server's reply."""
        return self.scores(client.decrypt(reply))

    def labels(self, scores: Floats) -> npt.NDArray[Any]:
        """What the rounded model's predict gives."""
        chosen = (scores >= 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: npt.NDArray[Any] = self.classes[chosen]
        return labels
