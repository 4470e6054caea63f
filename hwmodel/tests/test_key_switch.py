"""A group of processing elements switches a key, end to end."""

from __future__ import annotations

import pytest
from latencies import in_icarus, in_verilator

SIZES = [(4, 64, 3), pytest.param(8, 128, 2, marks=pytest.mark.long)]


@pytest.mark.parametrize(("C", "N", "L"), SIZES)
def test_a_key_switch_is_that_of_the_definition(C: int, N: int, L: int) -> None:
    in_icarus("key_switch", {"W": 36, "C": C, "N": N, "L": L}, patience=20000, count=1)


@pytest.mark.long
def test_key_switches_come_back_to_back() -> None:
    in_icarus("key_switch", {"W": 36, "C": 4, "N": 64, "L": 3}, patience=20000, count=3)


@pytest.mark.parametrize(("C", "N", "L"), SIZES)
def test_a_key_switch_is_that_of_the_library(C: int, N: int, L: int) -> None:
    in_verilator("key_switch", {"W": 36, "C": C, "N": N, "L": L})
