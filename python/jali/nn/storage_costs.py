"""What products with diagonals take longer if these are stored otherwise than resident (jali.nn.storage), as shares of a product with a resident one.

They come from tables that `jali tune --costs` made. storage_costs.toml has the rows of some devices, with their sources, for plans of devices on which it did not
run: no count of bytes says how long an encoding takes, or a copy from the host.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jali.errors import InvalidArgument
from jali.nn.measured import DIAGONALS, STORED, Table, interpolated

__all__ = ["MOST", "NAMES", "of_elsewhere", "shares"]

#: The names of the shares, in the order of STORED.
NAMES = ("expanded", "streamed", "made")
MOST = 100_000_000  # thousandths
_ROWS = ("plain", "matrix", *STORED)
_FILE = Path(__file__).with_name("storage_costs.toml")


def shares(table: Table) -> dict[str, int]:
    """By NAMES, in thousandths of a product with a resident diagonal, as means over the levels that were measured. On a CPU, streamed matrices are integers, and
    none costs less than one in more bytes. Raises InvalidArgument for a table without rows for one of them."""
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


@cache
def of_elsewhere(device: str, word: str, log_n: int) -> Table:
    """The rows of another device of the kind, of this word and the nearest ring, if they were measured there. device: cpu or cuda."""
    document = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    tables = [one for one in document["table"] if one["device"] == device]

    def distance(one: Mapping[str, Any]) -> tuple[bool, int]:
        return one["word"] != word, abs(one["log_n"] - log_n)

    nearest = min(tables, key=distance)
    return {kind: [(n, cost) for n, cost in nearest[kind]] for kind in _ROWS}
