"""The modular multiplier at the library's word sizes."""

from __future__ import annotations

import harness
import pytest
from latencies import same_as_recorded


@pytest.mark.parametrize("W", [31, 36, 50, 61])
def test_products_are_those_of_python(W: int) -> None:
    same_as_recorded(
        "mod_mul", harness.simulate("mod_mul_stream", "mod_mul_bench", {"W": W}, count=150)
    )


@pytest.mark.parametrize("W", [36, pytest.param(31, marks=pytest.mark.long),
                               pytest.param(50, marks=pytest.mark.long), 61])  # fmt: skip
def test_products_are_those_of_the_library(W: int) -> None:
    same_as_recorded("mod_mul", harness.verilated("mod_mul_stream", "mod_mul", {"W": W}))
