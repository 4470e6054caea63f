"""Every unit of latencies.toml is simulated in both simulators, and its figures are what they show."""

from __future__ import annotations

from typing import Any

import pytest
from latencies import in_icarus, in_verilator, recorded

# Runs that other tests make too, so that they cost nothing here.
RUNS: dict[str, tuple[dict[str, int], dict[str, Any], dict[str, int]]] = {
    # unit: (parameters, settings of the bench under Icarus, parameters that are others under
    # Verilator)
    "mod_mul": ({"W": 36}, {"count": 150}, {}),
    "ntt_core": ({"W": 36}, {"count": 150}, {}),
    "spn": ({"W": 16, "C": 8, "N": 64}, {"count": 2}, {"W": 36}),
    "ntt_engine": ({"W": 36, "C": 4, "N": 64}, {"more": 2}, {}),
    "mac_array": ({"W": 36, "C": 4}, {"count": 60}, {}),
    "adder_tree": ({"W": 36, "C": 4, "G": 4}, {"count": 60}, {}),
    "fft_butterfly": ({"DW": 64, "TW": 16, "INVERSE": 0}, {"count": 60}, {"DW": 32, "TW": 24}),
    "fft": ({"DW": 64, "TW": 16, "P": 16, "INVERSE": 0}, {"count": 3}, {"TW": 32}),
    "rotator": ({"C": 8, "N": 64}, {"count": 6}, {"N": 1024}),
    "decomposer": ({"C": 4, "BASE_LOG": 10, "LEVELS": 2}, {"count": 100}, {}),
    "vma": (
        {"XW": 64, "KW": 64, "DW": 64, "C": 4, "PLP": 2, "SHIFT": 16},
        {"count": 50},
        {"XW": 32, "DW": 48},
    ),
    "accumulator": ({"C": 8, "T": 8}, {"count": 12}, {}),
    "ks_mac": ({"CLP": 8, "COLP": 4, "D": 11}, {"count": 20}, {"COLP": 8, "D": 5}),
    "key_switch": ({"W": 36, "C": 4, "N": 64, "L": 3}, {"patience": 20000, "count": 1}, {}),
}


def test_every_unit_of_the_file_is_simulated() -> None:
    assert RUNS.keys() == recorded().keys()


@pytest.mark.parametrize("unit", RUNS)
def test_figures_are_what_icarus_shows(unit: str) -> None:
    parameters, settings, _ = RUNS[unit]
    in_icarus(unit, parameters, **settings)


@pytest.mark.parametrize("unit", RUNS)
def test_figures_are_what_verilator_shows(unit: str) -> None:
    parameters, _, others = RUNS[unit]
    in_verilator(unit, parameters | others)
