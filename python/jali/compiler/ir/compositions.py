"""Compositions of linear maps that are no larger than what they are made of."""

from __future__ import annotations

import numpy as np

from jali.compiler.ir.shared_map import SharedMap
from jali.compiler.ir.sparse import SparseMap

__all__ = ["composed"]

_ROWS = 16  # on which the entries of a composition are counted
_LISTED = 1 << 24  # entries of a map that is listed for a composition
_PRODUCTS = 1 << 21  # of entries, that a row may take


def composed(outer: SparseMap, inner: SparseMap, most: float) -> SparseMap | None:
    """The composition y = outer(inner(x)), or None if it would be a list of more entries than
    `most`. If it may be, they are counted before it is made, on a sample of its rows."""
    if inner.is_diagonal or outer.is_diagonal:
        return outer.after(inner)
    kept = outer.after_moves(inner) if isinstance(outer, SharedMap) else None
    if kept is None and isinstance(inner, SharedMap):
        kept = inner.before_moves(outer)
    if kept is not None:
        return kept
    return outer.after(inner) if _entries(outer, inner, most) <= most else None


def _entries(outer: SparseMap, inner: SparseMap, most: float) -> float:
    """How many entries the composition has: an upper bound, if that is at most `most`, or an
    estimate."""
    m, n = outer.shape[0], inner.shape[1]
    if any(isinstance(one, SharedMap) and one.count > _LISTED for one in (outer, inner)):
        return float("inf")
    if m * n <= most:
        return m * n
    if inner.used_rows == inner.count:
        return outer.count
    counts = inner.row_counts
    if not outer.in_pieces:
        products = int(counts[outer.cols].sum())
        if products <= most or outer.used_rows == outer.count:
            return products
    rows = np.unique(np.linspace(0, m - 1, _ROWS).astype(np.int64))
    found = 0
    for row in rows:
        taken = outer.part(row[None]).cols
        if int(counts[taken].sum()) > _PRODUCTS:
            return float("inf")
        found += len(np.unique(inner.part(np.sort(taken)).cols))
    return found * m / len(rows)
