"""The array of multiply-accumulate lanes, and the adder tree."""

from __future__ import annotations

import harness
import pytest
from latencies import recorded, same_as_recorded


@pytest.mark.parametrize("W", [36, pytest.param(61, marks=pytest.mark.long)])
def test_the_lanes_multiply_and_add_as_python_does(W: int) -> None:
    shown = harness.simulate("mac_array", "mac_array_bench", {"W": W, "C": 4}, count=60)
    same_as_recorded("mac_array", shown)


def test_the_lanes_multiply_and_add_as_the_library_does() -> None:
    same_as_recorded("mac_array", harness.verilated("mac_array", "mac_array", {"W": 36, "C": 4}))


@pytest.mark.parametrize("G", [2, 4, 8])
def test_the_tree_adds_as_python_does(G: int) -> None:
    shown = harness.simulate("adder_tree", "adder_tree_bench", {"W": 36, "C": 4, "G": G}, count=60)
    tree = recorded()["adder_tree"]
    assert shown["latency"] == tree["latency_per_level"] * (G.bit_length() - 1)
    assert shown["interval"] == tree["interval"]
