"""The units of Strix beside its transform."""

from __future__ import annotations

import pytest
from latencies import in_icarus, in_verilator

long = pytest.mark.long


@pytest.mark.parametrize(
    ("C", "N"), [(8, 64), pytest.param(4, 256, marks=long), pytest.param(8, 1024, marks=long)]
)
def test_the_rotator_multiplies_by_a_power_and_subtracts(C: int, N: int) -> None:
    in_icarus("rotator", {"C": C, "N": N}, count=6)


# The gadgets of sets I and II, one of a single level, and one without rounding.
@pytest.mark.parametrize(("BASE_LOG", "LEVELS"), [(10, 2), (7, 3), (15, 1), (8, 4)])
def test_the_decomposer_gives_the_closest_digits(BASE_LOG: int, LEVELS: int) -> None:
    in_icarus("decomposer", {"C": 4, "BASE_LOG": BASE_LOG, "LEVELS": LEVELS}, count=100)


@pytest.mark.parametrize(
    ("XW", "PLP", "SHIFT"),
    [(64, 2, 16), pytest.param(32, 1, 0, marks=long), pytest.param(32, 4, 8, marks=long)],
)
def test_the_multipliers_add_products_of_complex_numbers(XW: int, PLP: int, SHIFT: int) -> None:
    parameters = {"XW": XW, "KW": 64, "DW": 64, "C": 4, "PLP": PLP, "SHIFT": SHIFT}
    in_icarus("vma", parameters, count=50)


def test_the_accumulator_adds_frames() -> None:
    in_icarus("accumulator", {"C": 8, "T": 8}, count=12)


@pytest.mark.parametrize("CLP", [8, pytest.param(2, marks=long)])
def test_the_key_switch_multiplies_and_accumulates(CLP: int) -> None:
    in_icarus("ks_mac", {"CLP": CLP, "COLP": 4, "D": 11}, count=20)


def test_the_rotator_is_that_of_the_library() -> None:
    in_verilator("rotator", {"C": 8, "N": 1024})


@pytest.mark.parametrize(
    ("BASE_LOG", "LEVELS"),
    [(10, 2), pytest.param(7, 3, marks=long), pytest.param(8, 4, marks=long)],
)
def test_the_decomposer_gives_the_digits_of_the_library(BASE_LOG: int, LEVELS: int) -> None:
    in_verilator("decomposer", {"C": 4, "BASE_LOG": BASE_LOG, "LEVELS": LEVELS})


def test_the_key_switch_is_that_of_the_library() -> None:
    in_verilator("ks_mac", {"CLP": 8, "COLP": 8, "D": 5})


@pytest.mark.parametrize(
    ("DW", "PLP", "SHIFT", "C"), [(48, 2, 16, 4), pytest.param(64, 4, 0, 2, marks=long)]
)
def test_the_multipliers_make_external_products_of_the_library(
    DW: int, PLP: int, SHIFT: int, C: int
) -> None:
    in_verilator("vma", {"XW": 32, "KW": 64, "DW": DW, "C": C, "PLP": PLP, "SHIFT": SHIFT})


@pytest.mark.parametrize(("C", "T"), [(8, 8), pytest.param(4, 64, marks=long)])
def test_the_accumulator_rotates_as_the_library_does(C: int, T: int) -> None:
    in_verilator("accumulator", {"C": C, "T": T})
