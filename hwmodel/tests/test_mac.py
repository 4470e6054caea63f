"""The array of multiply-accumulate lanes, and the adder tree."""

from __future__ import annotations

import pytest
from latencies import in_icarus, in_verilator


@pytest.mark.parametrize("W", [36, pytest.param(61, marks=pytest.mark.long)])
def test_the_lanes_multiply_and_add_as_python_does(W: int) -> None:
    in_icarus("mac_array", {"W": W, "C": 4}, count=60)


def test_the_lanes_multiply_and_add_as_the_library_does() -> None:
    in_verilator("mac_array", {"W": 36, "C": 4})


@pytest.mark.parametrize("G", [2, 4, 8])
def test_the_tree_adds_as_python_does(G: int) -> None:
    in_icarus("adder_tree", {"W": 36, "C": 4, "G": G}, count=60)


@pytest.mark.parametrize("G", [4, pytest.param(8, marks=pytest.mark.long)])
def test_the_tree_adds_inner_products_of_the_library(G: int) -> None:
    in_verilator("adder_tree", {"W": 36, "C": 4, "G": G})
