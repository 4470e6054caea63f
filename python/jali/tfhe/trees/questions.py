"""Rows as tables of numbers, numbers as bins, and the edges that divide them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._core.columns import check_columns, columns_of
from jali._core.console import counted_text
from jali.errors import InvalidArgument
from jali.tfhe.trees.ensemble import REFUSED, Ensemble, Floats, Question, Tree

__all__ = ["bins", "checked_edges", "quantile_edges", "table", "table_of", "unbinned"]

_NO_TABLE = "rows are no table of real numbers: encode texts and categories as for the fit, and give every row the same length"


class Edges(tuple[Floats, ...]):
    """The edges of every feature.

    names: of the columns of the table that they divide; empty if it had none.
    """

    names: tuple[str, ...] = ()


def quantile_edges(rows: npt.ArrayLike, bins: int) -> tuple[Floats, ...]:
    """For every feature at most bins - 1 numbers that divide its column into parts of about equal
    size. The names of a table's columns are kept: ``bins``, and clients of a program of these
    edges, refuse tables in another order.

    rows: (n, features).
    bins: parts, at least 2.

    >>> trees.quantile_edges(np.arange(9.0)[:, None], 3)[0].round(3)
    array([2.667, 5.333])
    """
    checks.whole(bins, 2, "bins must be a whole number of at least 2")
    quantiles = np.quantile(table(rows), np.arange(1, bins) / bins, axis=0)
    made = Edges(np.unique(column) for column in quantiles.T)
    made.names = columns_of(rows)
    return made


def bins(rows: npt.ArrayLike, edges: Sequence[npt.ArrayLike]) -> npt.NDArray[np.int64]:
    """How many of its edges each number is above: what a model is fitted on, for ``compile`` with
    edges.

    rows: (n, features).
    edges: for each feature, ascending numbers.

    >>> trees.bins([[0.5], [3.0]], [[1.0, 2.0]])
    array([[0],
           [2]])
    """
    check_columns(names_of(edges), rows, "the table", "list(edges.names)")
    numbers = table(rows)
    of = checked_edges(edges, numbers.shape[1])
    both = zip(numbers.T, of, strict=True)
    return np.stack([np.searchsorted(edge, column, "left") for column, edge in both], axis=1)


def names_of(edges: Sequence[npt.ArrayLike]) -> tuple[str, ...]:
    """The names of the columns that edges divide; empty if they are not known."""
    return edges.names if isinstance(edges, Edges) else ()


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


def table_of(rows: npt.ArrayLike) -> npt.NDArray[Any]:
    """The rows as an array. Raises InvalidArgument for rows of different lengths, and for what
    holds no real numbers."""
    checks.unmasked(rows, "rows")
    array = checks.as_array(checks.dense(rows), _NO_TABLE)
    if array.dtype.kind not in "biufO":
        raise InvalidArgument(_NO_TABLE)
    return array


def table(
    rows: npt.ArrayLike,
    compared_as: str = "float64",
    *,
    missing: bool = False,
    infinite: bool = False,
) -> Floats:
    """Rows whose numbers are rounded to a type. Raises InvalidArgument for what is no table of
    numbers, or has some that are not allowed."""
    array, numbers = table_of(rows), None
    try:
        with np.errstate(over="ignore"):  # it is refused below
            numbers = array.astype(compared_as).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass  # NumPy's sentence may name a number: it is neither repeated nor kept beside the error
    if numbers is None:
        raise InvalidArgument(_NO_TABLE)
    if numbers.ndim != 2 or numbers.size == 0:
        raise InvalidArgument(
            f"rows have the shape {numbers.shape}: give (n, features) with at least one row"
        )
    if np.isnan(numbers).any() and not missing:
        raise InvalidArgument(
            "a number of a row is missing: fill it in as for the rows on which the model was fitted"
        )
    if np.isinf(numbers).any() and not infinite:
        raise InvalidArgument(
            f"a number of a row is not finite as {compared_as}, which the model takes no more than Jali does: replace it"
        )
    return numbers


def unbinned(ensemble: Ensemble, edges: tuple[Floats, ...]) -> Ensemble:
    """From a model of numbers of bins to one of what was binned: bin > t is x > edges[floor(t)].
    Its questions are all edges, in order."""
    first = np.cumsum([0, *(len(of) for of in edges)])
    place = []
    for question in ensemble.questions:
        at = int(np.floor(question.edge))
        if question.yes is not None or not 0 <= at < len(edges[question.feature]):
            raise InvalidArgument(
                f"the model compares feature {question.feature} with {question.edge!r}, and its edges make bins 0 to {len(edges[question.feature])}: fit the "
                "model on trees.bins(rows, edges), or leave edges out"
            )
        place.append(first[question.feature] + at)
    where = np.array([*place, -1], np.int64)  # the last is that of leaves
    trees = tuple(
        Tree(where[tree.question], tree.no, tree.yes, tree.scores, tree.values)
        for tree in ensemble.trees
    )
    asked = tuple(
        Question(feature, float(edge), REFUSED) for feature, of in enumerate(edges) for edge in of
    )
    how = {"compared_as": "float64", "missing": False, "infinite": False}
    return replace(ensemble, questions=asked, trees=trees, **how)  # type: ignore[arg-type]
