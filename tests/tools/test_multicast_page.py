"""The table of docs/decisions/0039 follows from the presets and from what was measured."""

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "decisions" / "0039-no-multicast-of-key-tiles.md"
RECORD = ROOT / "bench" / "results" / "tfhe-h100-2026-11-26-presets.jsonl"
SMS, HERTZ, L2_BYTES = 132, 1.755e9, 25  # of an H100; a clock and SM

PRESETS = tomllib.loads((ROOT / "src/jali/params/presets/tfhe.toml").read_text())
ROWS = [[cell.strip() for cell in row.split("|")[1:-1]] for row in PAGE.read_text().splitlines()]
TABLE = {row[0].strip("`"): row[1:] for row in ROWS if row and row[0].startswith("`")}


def _number(cell: str) -> float:
    return float(re.match(r"[\d,.]+", cell)[0].replace(",", ""))


def _seconds(name: str) -> float:
    """Of one ciphertext of a batch of 4,224."""
    rows = [json.loads(line) for line in RECORD.read_text().splitlines()]
    (found,) = [
        r["median_s"] / r["batch"]
        for r in rows
        if (r["name"], r["params"]["set"], r["batch"]) == ("tfhe_bootstrap", name, 4224)
    ]
    return found


def test_the_table_has_every_measured_preset_whose_ciphertexts_share_a_key() -> None:
    assert set(TABLE) == {
        "boolean",
        "boolean_block",
        "message_2_carry_2",
        "message_2_carry_2_block",
    }


@pytest.mark.parametrize("name", TABLE)
def test_a_row_follows_from_the_preset_and_the_record(name: str) -> None:
    p = PRESETS[name]
    steps, k1, size = p["n"] // p["group"], p["k"] + 1, p["polynomial_size"]
    key = 8 * p["group"] * p["rotation_levels"] * k1**2 * size
    shared = 256 // (k1 * size // 64)
    rate = key * steps / shared / _seconds(name)
    clocks = _seconds(name) * SMS * HERTZ / steps
    cells = [_number(cell) for cell in TABLE[name]]
    assert cells[:2] == [key, shared]
    assert cells[2] == pytest.approx(rate / 1e12, abs=0.006)
    assert cells[3] == pytest.approx(100 * rate / (SMS * HERTZ * L2_BYTES), abs=0.6)
    assert cells[4] == pytest.approx(clocks, abs=1)
    assert cells[5] == pytest.approx(key / shared / L2_BYTES, abs=1)
    assert cells[6] == pytest.approx(key / L2_BYTES, abs=1)
    # What the page concludes: L2 binds nothing, and would if no ciphertexts shared a tile, but for
    # message_2_carry_2.
    assert cells[5] < cells[4]
    assert (cells[6] > cells[4]) == (name != "message_2_carry_2")
