"""The modular multiplier at the library's word sizes."""

from __future__ import annotations

import pytest
from latencies import in_icarus, in_verilator


@pytest.mark.parametrize("W", [31, 36, 50, 61])
def test_products_are_those_of_python(W: int) -> None:
    in_icarus("mod_mul", {"W": W}, count=150)


@pytest.mark.parametrize("W", [36, pytest.param(31, marks=pytest.mark.long),
                               pytest.param(50, marks=pytest.mark.long), 61])  # fmt: skip
def test_products_are_those_of_the_library(W: int) -> None:
    in_verilator("mod_mul", {"W": W})
