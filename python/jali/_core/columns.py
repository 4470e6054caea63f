"""Names of columns. Programs know the numbers of an example by their places, and users know them by
the names of a table: a table in another order would give wrong results without an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jali.errors import InvalidArgument

__all__ = [
    "Columns",
    "check_columns",
    "columns_named",
    "columns_of",
    "columns_of_model",
    "numbered",
    "printable",
]

_LONGEST = 1000  # characters of a name
_SHOWN = 3  # names that an error lists


def numbered(count: int) -> tuple[str, ...]:
    """The names of columns that have none: their places."""
    return tuple(map(str, range(count)))


def columns_of(values: Any) -> tuple[str, ...]:
    """The names of the columns of a table of pandas, polars or Arrow, as texts that can be printed.
    Empty for arrays.

    If a name is a number with a fraction, there are none: it is the first row of a file without a
    header, and manifests and errors must not repeat its numbers.
    """
    labels, how = _labels(values)
    return () if how == "row" else _named(labels)


def columns_of_model(model: Any) -> tuple[str, ...]:
    """The names of the columns on which an estimator in the manner of scikit-learn was fitted; empty
    if there were none."""
    names = getattr(model, "feature_names_in_", None)
    return () if names is None else columns_named(list(names))


def columns_named(names: Sequence[Any]) -> tuple[str, ...]:
    """The names that a model's file has for its features; empty if they are those that LightGBM
    gives to columns without a name."""
    given = _named(list(names))
    return () if given == tuple(f"Column_{k}" for k in range(len(given))) else given


def check_columns(names: Sequence[str], values: Any, what: str, listed: str) -> None:
    """Raises InvalidArgument for a table whose columns are not these, in this order, or for a row
    of it, a series of pandas. Arrays, and tables whose columns are numbered in their order, are
    taken by their places.

    values: a table, one of its rows, or a list of these.
    names: of the model's columns, as columns_of gives them; empty if nothing is known of them.
    what: the table, in the error.
    listed: code for a list of the names.
    """
    if names and isinstance(values, (list, tuple)) and values and _labels(values[0])[0]:
        for one in values:  # rows of a table, or tables
            check_columns(names, one, what, listed)
        return
    labels, how = _labels(values)
    given, known = _named(labels), tuple(names)
    if not given or not known or given == known:
        return
    # LightGBM keeps names with "_" for their spaces.
    if len(set(_joined(known))) == len(known) and _joined(given) == _joined(known):
        return
    same = sorted(given) == sorted(known)
    if not same and known == numbered(len(known)):
        return
    # A table without names is an array. A row without them may be a part of a column.
    if not same and how != "row" and given == numbered(len(given)):
        return
    if not all(isinstance(x, str) for x in labels):
        of = dict(zip(given, labels, strict=True))
        listed = f"[{', '.join(_code(of.get(name, name)) for name in known)}]"
    mended = f"table.select({listed})" if how == "arrow" else f"{how}[{listed}]"
    if same:
        raise InvalidArgument(
            f"{what} has the columns of the model in another order, and numbers are taken by their places: give {mended}"
        )
    lacking = [name for name in known if name not in set(given)]
    if not lacking:
        raise InvalidArgument(
            f"{what} has other columns than the model beside its own: give {mended}"
        )
    # The names of the table itself are not repeated: a file without a header has numbers there.
    more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
    raise InvalidArgument(
        f"{what} has other columns than the model: it lacks {', '.join(lacking[:_SHOWN])}{more}. Its columns must be {listed}; of an array, numbers are "
        "taken by their places"
    )


def _labels(values: Any) -> tuple[list[Any], str]:
    """The labels of the columns of a "table", one of "arrow", or of the entries of a "row"."""
    for attribute, how in (("column_names", "arrow"), ("columns", "table"), ("index", "row")):
        labels = getattr(values, attribute, None)
        if labels is None or callable(labels) or isinstance(labels, (str, bytes)):
            continue
        if how == "row" and len(getattr(values, "shape", ())) != 1:
            continue
        try:
            return list(labels), how
        except TypeError:
            continue
    return [], "table"


def _named(labels: list[Any]) -> tuple[str, ...]:
    names = tuple(map(printable, labels))
    return () if any(map(_is_fraction, names)) else names


def printable(label: Any) -> str:
    """A label as a text of 1 to 1,000 characters on which no terminal acts."""
    text = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in str(label)[:_LONGEST])
    return text[:_LONGEST] or "''"


def _code(label: Any) -> str:
    return repr(label.item() if isinstance(label, np.generic) else label)


def _joined(names: Sequence[str]) -> list[str]:
    return [name.replace(" ", "_") for name in names]


def _is_fraction(text: str) -> bool:
    try:
        return not float(text).is_integer()
    except (ValueError, OverflowError):
        return False


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
