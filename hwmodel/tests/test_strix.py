"""The units of Strix beside its transform."""

from __future__ import annotations

import harness
import pytest
from latencies import recorded, same_as_recorded

long = pytest.mark.long


def figure(unit: str, name: str) -> int:
    return int(recorded()[unit][name])


@pytest.mark.parametrize(
    ("C", "N"), [(8, 64), pytest.param(4, 256, marks=long), pytest.param(8, 1024, marks=long)]
)
def test_the_rotator_multiplies_by_a_power_and_subtracts(C: int, N: int) -> None:
    same_as_recorded(
        "rotator", harness.simulate("rotator", "rotator_bench", {"C": C, "N": N}, count=6)
    )


# The gadgets of sets I and II, one of a single level, and one without rounding.
@pytest.mark.parametrize(("BASE_LOG", "LEVELS"), [(10, 2), (7, 3), (15, 1), (8, 4)])
def test_the_decomposer_gives_the_closest_digits(BASE_LOG: int, LEVELS: int) -> None:
    parameters = {"C": 4, "BASE_LOG": BASE_LOG, "LEVELS": LEVELS}
    same_as_recorded(
        "decomposer", harness.simulate("decomposer", "decomposer_bench", parameters, count=100)
    )


@pytest.mark.parametrize(
    ("XW", "PLP", "SHIFT"),
    [(64, 2, 16), pytest.param(32, 1, 0, marks=long), pytest.param(32, 4, 8, marks=long)],
)
def test_the_multipliers_add_products_of_complex_numbers(XW: int, PLP: int, SHIFT: int) -> None:
    parameters = {"XW": XW, "KW": 64, "DW": 64, "C": 4, "PLP": PLP, "SHIFT": SHIFT}
    shown = harness.simulate("vma", "vma_bench", parameters, count=50)
    assert shown["latency"] - (PLP.bit_length() - 1) == figure("vma", "latency_without_tree")
    assert shown["interval"] == figure("vma", "interval")


def test_the_accumulator_adds_frames() -> None:
    same_as_recorded(
        "accumulator",
        harness.simulate("accumulator", "accumulator_bench", {"C": 8, "T": 8}, count=12),
    )


@pytest.mark.parametrize("CLP", [8, pytest.param(2, marks=long)])
def test_the_key_switch_multiplies_and_accumulates(CLP: int) -> None:
    parameters = {"CLP": CLP, "COLP": 4, "D": 11}
    shown = harness.simulate("ks_mac", "ks_mac_bench", parameters, count=20)
    levels = CLP.bit_length() - 1
    assert shown["latency"] - levels == figure("ks_mac", "latency_without_tree")
    assert shown["interval"] == figure("ks_mac", "interval")


def test_the_rotator_is_that_of_the_library() -> None:
    same_as_recorded("rotator", harness.verilated("rotator", "rotator", {"C": 8, "N": 1024}))


@pytest.mark.parametrize(
    ("BASE_LOG", "LEVELS"),
    [(10, 2), pytest.param(7, 3, marks=long), pytest.param(8, 4, marks=long)],
)
def test_the_decomposer_gives_the_digits_of_the_library(BASE_LOG: int, LEVELS: int) -> None:
    parameters = {"C": 4, "BASE_LOG": BASE_LOG, "LEVELS": LEVELS}
    same_as_recorded("decomposer", harness.verilated("decomposer", "decomposer", parameters))


def test_the_key_switch_is_that_of_the_library() -> None:
    shown = harness.verilated("ks_mac", "ks_mac", {"CLP": 8, "COLP": 8, "D": 5})
    assert shown["latency"] - 3 == figure("ks_mac", "latency_without_tree")
    assert shown["interval"] == figure("ks_mac", "interval")
