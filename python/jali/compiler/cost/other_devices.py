"""What operations cost on other devices: tables that `jali tune --costs` made and that Jali brings
along, for plans of devices on which it did not run.

other_devices.toml has them with their sources. On a GPU, the time of an operation is that of its
launches as well as that of its bytes: by the bytes that it reads, a bootstrapping to level 19 with
three digits would take 1.7 times as long as one to level 13 with two, and on an H100 it takes 1.25
times as long.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from jali.compiler.cost.measured import NEEDED, Table

__all__ = ["table_near", "whole_tables"]

_FILE = Path(__file__).with_name("other_devices.toml")


def _kind(device: str) -> str:
    return "cuda" if device.startswith("cuda") else "cpu"


@cache
def _tables(kind: str) -> dict[tuple[str, int], Table]:
    """The tables of a kind of device, by word and log2 N."""
    document = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return {
        (one["word"], one["log_n"]): {
            name: [(n, cost) for n, cost in rows]
            for name, rows in one.items()
            if isinstance(rows, list)
        }
        for one in document["table"]
        if one["device"] == kind
    }


def whole_tables(device: str) -> dict[tuple[str, int], Table]:
    """Those by word and log2 N of another device of the kind that have all costs. There are none of
    a CPU, whose time is nearly in proportion to bytes."""
    return {
        ring: table for ring, table in _tables(_kind(device)).items() if set(NEEDED) <= set(table)
    }


def table_near(device: str, word: str, log_n: int) -> Table:
    """The table of another device of the kind, of this word and the nearest ring, if there is one
    of it. It has the costs of matrices, and may lack others."""

    def distance(ring: tuple[str, int]) -> tuple[bool, int]:
        return ring[0] != word, abs(ring[1] - log_n)

    tables = _tables(_kind(device))
    return tables[min(tables, key=distance)]
