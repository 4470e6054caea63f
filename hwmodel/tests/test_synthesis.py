"""What synthesis gives: the DSPs that the paper counts, and the counts that the record and the page have."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor

import harness
import pytest
import record
from shares import folding, shares, text
from synthesise import SMALL, UNITS, synthesised

FAMILIES = ("fpga", "cmos")
# More than a minute even at its small size; `hwmodel/synth/synthesise.py --check key_switch` does
# it.
SLOW = ("key_switch", "cmos")


@pytest.mark.parametrize(
    ("W", "dsp"),
    [
        (36, 17),
        pytest.param(35, 17, marks=pytest.mark.long),
        pytest.param(40, 17, marks=pytest.mark.long),
        pytest.param(50, 26, marks=pytest.mark.long),
    ],
)
def test_a_multiplier_takes_17_dsps_at_35_to_40_bits(W: int, dsp: int) -> None:
    """he-matvec-fpga, Table VII: DSP = 17 g p (c + c/2), the lanes and the cores."""
    harness.need("yosys")
    (row,) = synthesised("mod_mul", {"W": W}, ["fpga"])
    assert row["dsp48e2"] == dsp


@pytest.mark.long
def test_synthesis_gives_what_the_record_has() -> None:
    """Every unit, at a size that takes seconds, but for SLOW; `hwmodel/synth/synthesise.py --check` does the same for all sizes."""
    harness.need("yosys")
    jobs = [
        (top, sizes, [family])
        for top, sizes in reversed(SMALL)  # the longest first
        for family in FAMILIES
        if (top, family) != SLOW
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = [
            row for found in pool.map(lambda job: list(synthesised(*job)), jobs) for row in found
        ]
    assert len(rows) == len(jobs)
    assert not [line for row in rows for line in record.differences(row)]


def test_a_count_that_drifts_is_seen() -> None:
    row = record.row_of("mod_mul", {"W": 36}, "fpga")
    assert record.differences(dict(row)) == []
    assert record.differences(row | {"dsp48e2": row["dsp48e2"] + 1})
    assert record.differences(row | {"cells": row["cells"] * 102 // 100})
    assert record.differences(row | {"luts": row["luts"] * 98 // 100})


def test_the_record_has_every_unit_of_the_rtl() -> None:
    """In both families and at both sizes. What is inside of the others is not a unit: pipes, additions, pages of frames."""
    files = {file.stem for file in harness.sources()} - {"pipe", "mod_add", "frame_pages"}
    units = {top for top, _ in UNITS}
    assert {top for top, _ in SMALL} == units
    assert units == (files - {"mac"}) | {"mac_array", "adder_tree"}
    for top, sizes in UNITS + SMALL:
        for family in FAMILIES:
            assert record.row_of(top, sizes, family)["unit"] == top


def test_a_group_takes_the_dsps_of_the_papers_formula() -> None:
    """17 for each of c lanes and c/2 cores of every element; key_switch has L + 1 elements."""
    sizes = {"W": 36, "C": 4, "N": 64, "L": 3}
    assert record.row_of("key_switch", sizes, "fpga")["dsp48e2"] == 17 * 4 * (4 + 2)
    engine = record.row_of("ntt_engine", {"W": 36, "C": 4, "N": 1024}, "fpga")
    assert engine["dsp48e2"] == 17 * 2


def test_areas_are_shared_as_in_table_iii_or_the_page_says_why() -> None:
    """Transforms and multipliers within 30%; the rotator's print has one digit; decomposer and accumulator are mostly buffers."""
    found = {share.unit: share for share in shares()}
    for unit in ("I/FFTU", "VMA"):
        assert found[unit].with_delays == pytest.approx(found[unit].printed, rel=0.3)
    assert found["rotator"].logic == pytest.approx(found["rotator"].printed, rel=0.3)
    for unit in ("decomposer", "accumulator"):
        assert found[unit].logic < found["rotator"].logic < found[unit].printed / 10


def test_folding_saves_the_area_of_table_vi_within_20_percent() -> None:
    assert folding() == pytest.approx(3.13 / 1.81, rel=0.2)


def test_the_page_has_these_tables() -> None:
    page = (harness.ROOT / "docs" / "hardware.md").read_text(encoding="utf-8")
    assert all(table in page for table in [*text().split("\n\n"), record.text()])


def test_what_the_readme_says_of_butterflies_is_the_record() -> None:
    page = (harness.HWMODEL / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \(\d+\) .*\| ([\d,]+) \|$", page, re.MULTILINE)
    assert {width for width, _ in rows} == {"16", "20", "24", "28", "32"}
    for width, transistors in rows:
        found = record.row_of("fft_butterfly", {"DW": 64, "TW": int(width)}, "cmos")
        assert f"{found['transistors']:,}" == transistors
