"""What synthesis gives for the multiplier: the DSPs that the paper counts."""

from __future__ import annotations

import harness
import pytest
from shares import folding, shares, text


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
    from synthesise import synthesised

    (row,) = synthesised("mod_mul", {"W": W}, ["fpga"])
    assert row["dsp48e2"] == dsp


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
    assert all(table in page for table in text().split("\n\n"))
