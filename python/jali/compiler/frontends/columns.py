"""The names of the columns of a model's inputs, from the tables that its user gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jali._core.columns import check_columns, columns_of, columns_of_model, numbered

__all__ = ["Columns"]


class Columns:
    """Of each input, the names that its columns have: those on which an estimator was fitted, or
    those of the first table. Every table has to agree with them: numbers are taken by their
    places."""

    def __init__(self, model: Any) -> None:
        self._names: dict[int, tuple[str, ...]] = {}
        fitted = columns_of_model(model)
        if fitted:
            self._names[0] = fitted
        self._listed = "list(model.feature_names_in_)" if fitted else ""

    def see(self, tables: Sequence[Any]) -> None:
        """The tables for the inputs, of an example or of a batch of the calibration. Raises
        InvalidArgument for one whose columns are others."""
        for k, table in enumerate(tables):
            known = self._names.get(k, ())
            if known:
                self._check(k, table, "the table")
            found = columns_of(table)
            if found and known in ((), numbered(len(known))):
                self._names[k] = found

    def check(self, tables: Sequence[Any]) -> None:
        """The tables for the inputs, or rows of them, against all that is known by now."""
        for k, table in enumerate(tables):
            self._check(k, table, "the example")

    def see_ranges(self, ranges: Sequence[Any] | None) -> None:
        """The pairs (low, high) of input_range, each of which may be a row of such a table."""
        for k, pair in enumerate(ranges or ()):
            for bound in () if pair is None else pair:
                self._check(k, bound, "a row of input_range")

    def of(self, shapes: Sequence[tuple[int, ...]]) -> list[tuple[str, ...]]:
        """The names for each input of these shapes; empty if nothing is known of them."""
        names = [self._names.get(k, ()) for k in range(len(shapes))]
        pairs = zip(names, shapes, strict=True)
        return [of if shape and len(of) == shape[-1] else () for of, shape in pairs]

    def _check(self, k: int, table: Any, what: str) -> None:
        names = self._names.get(k, ())
        check_columns(names, table, what, self._listed or repr(list(names)))
