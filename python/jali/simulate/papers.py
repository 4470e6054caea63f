"""The tables of the two accelerator papers as data: what is printed, in the printed digits, and how
near a model has to come.

The files are in `papers/`. A table has columns and rows. The class of a column or row says who can
say the figure: "M" a model of cycles, "S" synthesis alone, "in" an input of the models, "quoted"
another machine, "claim" a ratio or share that the text states.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jali.errors import InvalidArgument
from jali.simulate.number import Number, read_number

__all__ = ["CLASSES", "PAPERS", "Cell", "Paper", "Table", "paper"]

FOLDER = Path(__file__).parent / "papers"
PAPERS = ("strix", "matvec")
CLASSES = ("M", "S", "in", "quoted", "claim")


@dataclass(frozen=True)
class Cell:
    """One printed figure.

    table, row, column: where it stands.
    printed: its text.
    where: what the row is about, for a model ({"set": "I"}).
    tolerance: "exact", "digits" (rounds to what is printed), "last digit" (is at most one unit of
        it away), "0.5%", "+-0.03", or "" for a figure that no model has to meet.
    reason: why a model differs.
    """

    table: str
    row: str
    column: str
    title: str
    unit: str
    kind: str
    printed: str
    where: Mapping[str, Any]
    tolerance: str
    reason: str

    @property
    def value(self) -> float:
        """The printed number."""
        return float(self.printed.replace(",", ""))

    @property
    def decimals(self) -> int:
        """How many digits are printed after the point."""
        return len(self.printed.partition(".")[2])

    def deviation(self, model: float) -> float:
        """How far a model is from the printed number, as a share of it."""
        return model / self.value - 1

    def holds(self, model: float) -> bool | None:
        """Whether a model is within the tolerance; None if there is none."""
        match self.tolerance:
            case "":
                return None
            case "exact":
                return model == self.value
            case "digits":
                # Half of the last printed digit, both ends included: the paper rounds 0.1601, 0.227
                # and 3.649.
                return abs(model - self.value) <= 0.5 * 10.0**-self.decimals * (1 + 1e-9)
            case "last digit":
                return abs(model - self.value) <= 10.0**-self.decimals * (1 + 1e-9)
            case text if text.endswith("%"):
                return abs(self.deviation(model)) <= float(text[:-1]) / 100
            case text if text.startswith("+-"):
                return abs(model - self.value) <= float(text[2:]) * (1 + 1e-9)
        raise InvalidArgument(f"there is no tolerance {self.tolerance!r}")


@dataclass(frozen=True)
class Table:
    """A table of a paper."""

    name: str
    title: str
    cells: tuple[Cell, ...]

    def cell(self, row: str, column: str) -> Cell:
        """A cell by the names of its row and column."""
        for cell in self.cells:
            if (cell.row, cell.column) == (row, column):
                return cell
        raise InvalidArgument(f"Table {self.name} has no cell {row!r}, {column!r}")


@dataclass(frozen=True)
class Paper:
    """A paper: its tables by name, and its parameter sets with the source of each number."""

    name: str
    title: str
    tables: Mapping[str, Table]
    sets: Mapping[str, Mapping[str, Number]]


def _table(raw: Mapping[str, Any]) -> Table:
    cells = []
    for row in raw["rows"]:
        for name, printed in row["printed"].items():
            column = raw["columns"][name]
            found = {
                key: row.get(key, {}).get(name, column.get(key, ""))
                for key in ("tolerance", "reason")
            }
            kind = row.get("class", column["class"])
            if kind not in CLASSES:
                raise InvalidArgument(f"Table {raw['name']}: there is no class {kind!r}")
            if kind == "quoted":
                found = {"tolerance": "", "reason": ""}
            cells.append(
                Cell(
                    raw["name"],
                    row["name"],
                    name,
                    column.get("title", name),
                    column.get("unit", ""),
                    kind,
                    printed,
                    row.get("where", {}),
                    **found,
                )
            )
    return Table(raw["name"], raw["title"], tuple(cells))


@functools.cache
def paper(name: str) -> Paper:
    """A paper's tables: "strix" or "matvec"."""
    if name not in PAPERS:
        raise InvalidArgument(f"there is no paper {name!r}: use {' or '.join(PAPERS)}")
    with (FOLDER / f"{name}.toml").open("rb") as stream:
        raw = tomllib.load(stream)
    sets = {
        key: {size: read_number(value, f"{key}.{size}", {}) for size, value in sizes.items()}
        for key, sizes in raw["sets"].items()
    }
    tables = {table["name"]: _table(table) for table in raw["tables"]}
    return Paper(name, raw["title"], tables, sets)
