"""Every printed figure of the two papers beside the model's: what docs/hardware.md and `jali
simulate --papers` show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jali.errors import InvalidArgument
from jali.simulate import strix
from jali.simulate.figures import MODELS, world
from jali.simulate.number import Number
from jali.simulate.papers import PAPERS, Cell, Table, paper
from jali.simulate.sensitivity import UNCERTAIN, Dependence

__all__ = ["Row", "dependences", "markdown", "rows", "text"]


@dataclass(frozen=True)
class Row:
    """A printed figure and the models' beside it.

    kind: who can say the figure, as in papers.py.
    printed: the paper's text.
    model: what the formulas give with the limits that the paper's figures obey; strict: with all
        limits; None if the models do not say it.
    deviation: of the model from the printed figure, as a share.
    holds: whether the model is within the tolerance; None if there is no model or no tolerance.
    """

    paper: str
    table: str
    row: str
    quantity: str
    unit: str
    kind: str
    printed: str
    model: float | None
    strict: float | None
    deviation: float | None
    tolerance: str
    holds: bool | None
    reason: str


def _row(name: str, cell: Cell) -> Row:
    of = MODELS.get((name, cell.table))
    model, strict = of(world(), cell) if of else (None, None)
    return Row(
        paper=name,
        table=cell.table,
        row=cell.row,
        quantity=cell.title,
        unit=cell.unit,
        kind=cell.kind,
        printed=cell.printed,
        model=model,
        strict=strict,
        deviation=None if model is None else cell.deviation(model),
        tolerance=cell.tolerance,
        holds=None if model is None else cell.holds(model),
        reason=cell.reason,
    )


def rows(name: str | None = None, table: str | None = None) -> Iterator[Row]:
    """Every printed figure of the papers ("strix", "matvec"), of one of them, or of one table."""
    for paper_name in PAPERS if name is None else (name,):
        for found in paper(paper_name).tables.values():
            if table in (None, found.name):
                yield from (_row(paper_name, cell) for cell in found.cells)


FACTOR = 1.1  # by which dependences() scales a constant
COSTS = (".energy_pj", ".energy_pj_byte", ".leakage_w")  # numbers that no printed figure depends on


def _constants(owner: str) -> list[Number]:
    """The calibrated and assumed numbers of a machine or a set."""
    sets = strix.published_sets()
    numbers = (sets[owner] if owner in sets else world().machine(owner)).constants(*UNCERTAIN)
    return [n for n in numbers if not n.path.endswith(COSTS) and n.value != 0]


def dependences(name: str, table: str) -> dict[tuple[str, str], list[Dependence]]:
    """By row and quantity: on which calibrated and assumed constants the models of a table depend.

    A path begins with the machine's name ("strix: parameters.key_word_bytes"), or is that of a set
    ("I.l_k"). change is that of the model if the constant is 10% larger.
    """
    found: dict[tuple[str, str], list[Dependence]] = {}
    of = MODELS.get((name, table))
    for cell in paper(name).tables[table].cells if of else ():
        assert of is not None
        base = world()
        base.used.clear()
        result, _ = of(base, cell)
        if result is None:
            continue
        for owner in list(base.used):
            for number in _constants(owner):
                path = (
                    number.path
                    if number.path.startswith(f"{owner}.")
                    else f"{owner}: {number.path}"
                )
                try:
                    other, _ = of(world(owner, number.path, FACTOR), cell)
                except InvalidArgument:
                    other = None
                change = None if other is None else other / result - 1
                if change is None or abs(change) > 1e-12:
                    dependence = Dependence(path, number.source, float(number), change)
                    found.setdefault((cell.row, cell.title), []).append(dependence)
    return found


def _depends(name: str, table: str) -> str:
    """What a table's models depend on, as a sentence for each constant; "" if they depend on
    none."""
    by_path: dict[str, list[str]] = {}
    about: dict[str, Dependence] = {}
    for (row, quantity), found in dependences(name, table).items():
        for d in found:
            about[d.path] = d
            change = "not possible" if d.change is None else f"{d.change:+.2%}"
            by_path.setdefault(d.path, []).append(f"{row}, {quantity} {change}")
    lines = [
        f"- `{path}` = {about[path].value:g} ({about[path].source}): {'; '.join(changes)}."
        for path, changes in by_path.items()
    ]
    head = "Constants that no source gives, and the model's change if each is 10% larger:"
    return "\n".join([head, "", *lines]) if lines else ""


def _number(value: float | None) -> str:
    """A model's figure with four digits, or all digits before the point."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 or value == round(value) else f"{value:.4g}"


def _deviation(row: Row) -> str:
    if row.deviation is None:
        return ""
    if row.deviation == 0:
        return "exact"
    return f"{row.deviation:+.2%}" if abs(row.deviation) < 0.1 else f"{row.deviation:+.0%}"


def markdown(name: str, table: str) -> str:
    """One table of a paper in Markdown: each figure with a model, its deviation and the reason;
    then the others as a list."""
    compared = list(rows(name, table))
    if all(row.model is None and not row.reason for row in compared):
        return _plain(paper(name).tables[table])
    has_strict = any(row.strict is not None for row in compared)
    head = ["", "printed", "model", *(["strict"] if has_strict else []), "deviation", "reason"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    others: dict[str, list[str]] = {}
    for row in compared:
        printed = f"{row.printed} {row.unit}".strip()
        if row.model is None and not row.reason:
            others.setdefault(row.row, []).append(f"{row.quantity} {printed}")
            continue
        strict = [_number(row.strict)] if has_strict else []
        first = f"{row.row}: {row.quantity}"
        cells = [first, printed, _number(row.model), *strict, _deviation(row), row.reason]
        lines.append("| " + " | ".join(cells) + " |")
    if others:
        said = "; ".join(f"{row} ({', '.join(printed)})" for row, printed in others.items())
        lines += ["", f"Printed, and not modelled: {said}."]
    if depends := _depends(name, table):
        lines += ["", depends]
    return "\n".join(lines)


def _plain(table: Table) -> str:
    """A table without a model: rows and columns as printed."""
    columns = {cell.column: cell for cell in table.cells}
    heads = [f"{c.title}, {c.unit}" if c.unit else c.title for c in columns.values()]
    lines = ["| | " + " | ".join(heads) + " |", "|" + "---|" * (len(heads) + 1)]
    for row in dict.fromkeys(cell.row for cell in table.cells):
        printed = {cell.column: cell.printed for cell in table.cells if cell.row == row}
        lines.append(f"| {row} | " + " | ".join(printed.get(c, "") for c in columns) + " |")
    return "\n".join(lines)


def text(name: str | None = None) -> str:
    """The comparison as lines of text, for a terminal: figures that a model gives, then how many
    hold."""
    lines: list[str] = []
    compared = [row for row in rows(name) if row.model is not None]
    for row in compared:
        mark = {True: "ok", False: "MISSED", None: "-"}[row.holds]
        what = f"{row.paper} {row.table}: {row.row}, {row.quantity}"
        strict = f", strict {_number(row.strict)}" if row.strict is not None else ""
        reason = f" ({row.reason})" if row.reason else ""
        lines.append(
            f"{mark:6} {what}: printed {row.printed} {row.unit}, model {_number(row.model)}{strict}, "
            f"{_deviation(row)}{reason}"
        )
    bound = [row for row in compared if row.holds is not None]
    lines.append(
        f"{sum(row.holds is True for row in bound)} of {len(bound)} figures with a tolerance are met; "
        f"{len(compared) - len(bound)} have none."
    )
    return "\n".join(lines)
