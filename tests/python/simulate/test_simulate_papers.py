"""Every printed figure of the two papers against the models: the papers' tables are the data of
these tests."""

import pytest

from jali import errors
from jali.simulate import comparison, matvec, strix
from jali.simulate.machine import Machine
from jali.simulate.papers import CLASSES, PAPERS, Cell, paper

ROWS = list(comparison.rows())
STRIX_SETS = ("I", "II", "III", "IV")

# What docs/hardware.md promises, so that a tolerance that is loosened in the data is seen here:
# paper, table -> quantity: tolerance, figures.
PROMISED = {
    ("strix", "III"): {"area": ("+-0.03", 3), "power": ("+-0.03", 3)},
    ("strix", "V"): {"latency": ("digits", 3), "throughput": ("0.5%", 3)},
    ("strix", "VII"): {
        "throughput": ("exact", 5),
        "latency": ("digits", 5),
        "required bandwidth": ("1%", 5),
    },
    ("matvec", "VI"): {"cycles": ("exact", 3)},
    ("matvec", "VII"): {"DSP": ("exact", 2), "BRAM": ("exact", 1)},
}


@pytest.mark.parametrize(
    "row", [r for r in ROWS if r.holds is not None], ids=lambda r: f"{r.table}-{r.row}-{r.quantity}"
)
def test_the_model_is_as_near_as_promised(row: comparison.Row) -> None:
    assert row.holds, f"printed {row.printed}, model {row.model}, tolerance {row.tolerance}"


def test_what_is_promised_is_compared() -> None:
    for (name, table), promises in PROMISED.items():
        for quantity, (tolerance, count) in promises.items():
            found = [
                r
                for r in ROWS
                if (r.paper, r.table, r.quantity, r.tolerance) == (name, table, quantity, tolerance)
                and r.model is not None
            ]
            assert len(found) == count, (name, table, quantity)


def test_figures_without_a_tolerance_have_a_reason() -> None:
    for row in ROWS:
        if row.model is not None and row.holds is None:
            assert row.reason, row


def test_a_reason_that_names_a_contradiction_belongs_to_a_figure_that_is_missed_or_near() -> None:
    for row in ROWS:
        if "contradiction" in row.reason and row.deviation is not None:
            assert abs(row.deviation) > 0.03, row


def test_the_tables_are_complete() -> None:
    """Every table of both papers with figures, and as many of them as were printed."""
    counts = {
        (name, table.name): len(table.cells)
        for name in PAPERS
        for table in paper(name).tables.values()
    }
    assert counts == {
        ("strix", "III"): 24,
        ("strix", "IV"): 20,
        ("strix", "V"): 28,
        ("strix", "VI"): 12,
        ("strix", "VII"): 15,
        ("strix", "Figure 8"): 6,
        ("strix", "text"): 6,
        ("matvec", "II"): 9,
        ("matvec", "III"): 10,
        ("matvec", "IV"): 14,
        ("matvec", "V"): 4,
        ("matvec", "VI"): 3,
        ("matvec", "VII"): 12,
        ("matvec", "Figures 1 and 3"): 2,
        ("matvec", "text"): 3,
    }
    for name in PAPERS:
        for table in paper(name).tables.values():
            for cell in table.cells:
                assert cell.kind in CLASSES
                assert cell.value > 0


def test_the_sets_are_those_of_the_tables() -> None:
    table = paper("strix").tables["IV"]
    for name, tfhe in strix.published_sets().items():
        for size in ("n", "k", "N", "l_b"):
            assert table.cell(name, size).value == getattr(tfhe, size)
    table = paper("matvec").tables["II"]
    for name, ckks in matvec.published_sets().items():
        assert (table.cell(name, "N").value, table.cell(name, "l").value) == (ckks.N, ckks.l)


def test_the_machines_are_those_of_the_tables() -> None:
    table = paper("matvec").tables["III"]
    for name, column in (("mv_set_a", "set_a"), ("mv_set_bc", "set_bc")):
        machine = Machine.load(name)
        for parameter in ("g", "p", "c", "b"):
            assert table.cell(parameter, column).value == float(machine.parameters[parameter])
        row = "Set-A" if name == "mv_set_a" else "Set-B and C"
        printed = paper("matvec").tables["VII"]
        assert printed.cell(row, "frequency").value * 1e6 == float(machine.frequency_hz)
        assert printed.cell(row, "klut").value == float(machine.resources["printed_kilo_luts"])
        assert printed.cell(row, "kff").value == float(machine.resources["printed_kilo_ffs"])


def _cell(printed: str, tolerance: str) -> Cell:
    return Cell("T", "row", "column", "title", "", "M", printed, {}, tolerance, "")


@pytest.mark.parametrize(
    ("printed", "tolerance", "inside", "outside"),
    [
        ("2,368", "exact", 2368, 2367),
        ("0.16", "digits", 0.1649, 0.1651),
        ("3.6", "digits", 3.649, 3.651),
        ("1.48", "last digit", 1.4899, 1.4901),
        ("100", "0.5%", 100.4, 100.6),
        ("9.38", "+-0.03", 9.41, 9.42),
    ],
)
def test_tolerances(printed: str, tolerance: str, inside: float, outside: float) -> None:
    cell = _cell(printed, tolerance)
    assert cell.holds(inside) is True
    assert cell.holds(outside) is False
    assert _cell(printed, "").holds(outside) is None


def test_an_unknown_tolerance_or_paper_is_refused() -> None:
    with pytest.raises(errors.InvalidArgument, match="tolerance"):
        _cell("1", "about").holds(1)
    with pytest.raises(errors.InvalidArgument, match="strix or matvec"):
        paper("another")


def test_text_and_markdown_have_every_figure() -> None:
    text = comparison.text()
    held = sum(row.holds is True for row in ROWS)
    assert f"{held} of {held} figures" in text
    for name in PAPERS:
        for table in paper(name).tables.values():
            shown = comparison.markdown(name, table.name)
            for cell in table.cells:
                assert cell.printed in shown


def test_dependences_name_what_was_calibrated_for_a_figure() -> None:
    """Every constant that is tagged with a table changes a figure of that table."""
    of_v = comparison.dependences("strix", "V")
    paths = {d.path for d in of_v["Strix, I", "latency"]}
    assert paths == {"I.l_k", "strix: parameters.key_word_bytes"}
    assert ("Strix, I", "throughput") not in of_v
    of_vi = comparison.dependences("matvec", "VI")
    assert {d.path for d in of_vi["NTT and INTT", "cycles"]} == {
        "mv_set_bc: parameters.network_latency"
    }
    assert ("automorphism", "cycles") not in of_vi
    of_vii = comparison.dependences("strix", "VII")
    bandwidth = of_vii["TvLP 8, CLP 4", "required bandwidth"]
    assert sum(d.change or 0 for d in bandwidth) == pytest.approx(0.1)  # it is linear in both
    assert comparison.dependences("strix", "IV") == {}


def test_scaled_worlds_do_not_leak() -> None:
    before = [row.model for row in comparison.rows("strix")]
    comparison.dependences("strix", "V")
    assert [row.model for row in comparison.rows("strix")] == before
