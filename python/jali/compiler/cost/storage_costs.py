"""What products with diagonals take longer if these are stored otherwise than resident
(jali.compiler.runtime.storage), as shares of a product with a resident one.

They come from tables that `jali tune --costs` made, on this device or on another one
(jali.compiler.cost.other_devices): no count of bytes says how long an encoding takes, or a copy
from the host.
"""

from __future__ import annotations

from jali.compiler.cost.measured import DIAGONALS, STORED, Table, interpolated
from jali.errors import InvalidArgument

__all__ = ["MOST", "NAMES", "shares"]

#: The names of the shares, in the order of STORED.
NAMES = ("expanded", "streamed", "made")
MOST = 100_000_000  # thousandths


def shares(table: Table) -> dict[str, int]:
    """By NAMES, in thousandths of a product with a resident diagonal, as means over the levels that
    were measured. On a CPU, streamed matrices are integers, and none costs less than one in more
    bytes. Raises InvalidArgument for a table without rows for one of them."""
    found: dict[str, int] = {}
    least = 1
    resident = dict(table.get("matrix", ()))
    for name, kind in zip(NAMES, STORED, strict=True):
        parts = []
        for n, cost in table.get(kind, ()):
            if n in resident:
                (plain,) = interpolated(table["plain"], [n])
                parts.append((cost - resident[n]) / max(1, DIAGONALS * plain))
        if not parts:
            raise InvalidArgument(
                f"the table of costs has no rows for matrices that are {kind}: run 'jali tune --costs' again"
            )
        share = round(1000 * sum(parts) / len(parts))
        found[name] = least = min(max(least, share), MOST)
    return found
