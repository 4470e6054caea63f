"""The model of every printed figure of the two papers: from a table's cell to what the formulas
give for it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType

from jali.simulate import matvec, strix
from jali.simulate.machine import Machine
from jali.simulate.papers import Cell, paper
from jali.simulate.steps import Kind

__all__ = ["MODELS", "Values", "World", "world"]

Values = tuple[float | None, float | None]  # the model's, and with all limits
NONE: Values = (None, None)


class World:
    """The machines and sets that models take their numbers from, perhaps with some of them scaled.

    scale: {name of a machine or a set: {path of a number: factor}}.
    used: the names that models asked for.
    """

    def __init__(self, scale: Mapping[str, Mapping[str, float]] = MappingProxyType({})) -> None:
        self.scale = scale
        self.used: dict[str, None] = {}
        self._machine = functools.cache(self._load)
        self._points = functools.cache(self._bootstrap)

    def machine(self, name: str, mode: str = "strict", **changes: float) -> Machine:
        """A machine that comes with Jali, with the scaled numbers and other parameters."""
        self.used[name] = None
        return self._machine(name, mode, **changes)

    def _load(self, name: str, mode: str, **changes: float) -> Machine:
        return Machine.load(name, mode, changes, self.scale.get(name))

    def tfhe(self, name: str) -> strix.TfheSet:
        """A set of Strix's Table IV, with the scaled numbers."""
        self.used[name] = None
        return strix.published_sets()[name].changed(self.scale.get(name, {}))

    def points(
        self, set_: str, name: str = "strix", **changes: float
    ) -> tuple[strix.Point, strix.Point, strix.Point]:
        """How Strix bootstraps: published, strict with the largest batch, strict with one
        ciphertext a core."""
        self.used[name] = self.used[set_] = None
        return self._points(set_, name, **changes)

    def _bootstrap(
        self, set_: str, name: str, **changes: float
    ) -> tuple[strix.Point, strix.Point, strix.Point]:
        tfhe = self.tfhe(set_)
        published, strict = (
            self.machine(name, mode, **changes) for mode in ("published", "strict")
        )
        return (
            strix.bootstrap(published, tfhe),
            strix.bootstrap(strict, tfhe),
            strix.bootstrap(strict, tfhe, 1),
        )


@functools.cache
def world(owner: str = "", path: str = "", factor: float = 1.0) -> World:
    """The world as the files have it, or with one number of a machine or a set scaled."""
    return World({owner: {path: factor}} if owner else {})


def _strix_sum(w: World, cell: Cell) -> Values:
    table = paper("strix").tables[cell.table]
    if "sum" not in cell.where:
        return NONE
    return sum(table.cell(row, cell.column).value for row in cell.where["sum"]), None


def _strix_v(w: World, cell: Cell) -> Values:
    if "set" not in cell.where:
        return NONE
    published, full, alone = w.points(cell.where["set"])
    if cell.column == "latency":
        return published.latency_s * 1e3, alone.latency_s * 1e3
    return published.throughput, full.throughput


def _strix_vi(w: World, cell: Cell) -> Values:
    table = paper("strix").tables["VI"]
    if cell.column == "gain":
        values = [table.cell(cell.row, column).value for column in ("no_fold", "fold")]
        return max(values) / min(values), None
    name = "strix" if cell.column == "fold" else "strix_nofold"
    match cell.where.get("quantity"):
        case "latency":
            published, _, alone = w.points("I", name)
            return published.latency_s * 1e3, alone.latency_s * 1e3
        case "throughput":
            published, full, _ = w.points("I", name)
            return published.throughput, full.throughput
        case "area":
            machine = w.machine(name)
            units = sum(float(u.count) * float(u.area_mm2) for u in machine.units.values())
            return units + float(machine.memories["local"].area_mm2), None
    return NONE


def _strix_vii(w: World, cell: Cell) -> Values:
    where = cell.where
    if cell.column == "bandwidth":
        machine = w.machine("strix", "published", clp=where["clp"])
        return strix.required_bandwidth(machine), None
    published, full, alone = w.points(where["set"], tvlp=where["tvlp"], clp=where["clp"])
    if cell.column == "latency":
        return published.latency_s * 1e3, alone.latency_s * 1e3
    return published.throughput, full.throughput


def _figure_8(w: World, cell: Cell) -> Values:
    tfhe = w.tfhe("I")
    if cell.where["unit"] != "hbm":
        shares_of = strix.utilisation(w.machine("strix", "published"), tfhe)
        return 100 * shares_of[cell.where["unit"]], None
    shares = []
    for mode in ("published", "strict"):
        point = strix.bootstrap(w.machine("strix", mode), tfhe, 3)
        shares.append(100 * point.waits_s["key channels"] / point.period_s)
    return shares[0], shares[1]


def _strix_ratio(w: World, cell: Cell) -> Values:
    table, where = paper("strix").tables["V"], cell.where
    other = table.cell(where.get("over") or where["under"], where["column"]).value
    own = table.cell(where["strix"], where["column"]).value
    return (own / other if "over" in where else other / own), None


def _matvec_v(w: World, cell: Cell) -> Values:
    if cell.row == "HEAX":
        return NONE
    if cell.column == "ratio":
        table = paper("matvec").tables["V"]
        return table.cell(cell.row, "dram").value / table.cell("HEAX", "rate").value, None
    machine = w.machine("mv_set_bc")
    bounds = matvec.key_switch_rate(machine, matvec.published_sets()[cell.where["set"]])
    return bounds["DRAM" if cell.column == "dram" else cell.column], None


def _matvec_vi(w: World, cell: Cell) -> Values:
    ckks = matvec.published_sets()["Set-B"]
    return matvec.cycles(w.machine("mv_set_bc"), Kind[cell.where["kind"]], ckks.N), None


def _matvec_vii(w: World, cell: Cell) -> Values:
    return matvec.resources(w.machine(cell.where["machine"])).get(cell.column), None


def _matvec_figures(w: World, cell: Cell) -> Values:
    word = float(w.machine("mv_set_bc").widths["coefficient"])
    product = matvec.Product(1024, 1024, matvec.published_sets()["Set-B"], word)
    reads = product.reads()
    if cell.where["quantity"] == "input":
        return 100 * reads["input"] / sum(reads.values()), None
    reused = [e.bytes for e in product.entities() if e.reads > 1]
    return sum(reused) / 1e6, None


MODELS: dict[tuple[str, str], Callable[[World, Cell], Values]] = {
    ("strix", "III"): _strix_sum,
    ("strix", "V"): _strix_v,
    ("strix", "VI"): _strix_vi,
    ("strix", "VII"): _strix_vii,
    ("strix", "Figure 8"): _figure_8,
    ("strix", "text"): _strix_ratio,
    ("matvec", "V"): _matvec_v,
    ("matvec", "VI"): _matvec_vi,
    ("matvec", "VII"): _matvec_vii,
    ("matvec", "Figures 1 and 3"): _matvec_figures,
}
