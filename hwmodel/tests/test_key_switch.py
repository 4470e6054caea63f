"""A group of processing elements switches a key, end to end."""

from __future__ import annotations

import harness
import pytest
from latencies import recorded

SIZES = [(4, 64, 3), pytest.param(8, 128, 2, marks=pytest.mark.long)]


def same_cycles(C: int, N: int, L: int, shown: dict[str, int]) -> None:
    """From the first beat in to the last beat out, of the parts that latencies.toml has: L + 2 turns of two transforms,
    each with N/C beats in and out, 2 L rounds of the lanes, and N/C beats in."""
    engine, turn = recorded()["ntt_engine"], recorded()["key_switch"]["turn_overhead"]
    passes, beats = (N.bit_length() - 1), N // C
    transform = passes * (beats + engine["pass_overhead"])
    expected = (
        beats + L * (5 * beats + 2 * transform + turn) + 2 * (4 * beats + 2 * transform + turn)
    )
    assert shown["cycles"] == expected


@pytest.mark.parametrize(("C", "N", "L"), SIZES)
def test_a_key_switch_is_that_of_the_definition(C: int, N: int, L: int) -> None:
    parameters = {"W": 36, "C": C, "N": N, "L": L}
    shown = harness.simulate("key_switch", "key_switch_bench", parameters, patience=20000, count=1)
    same_cycles(C, N, L, shown)


@pytest.mark.long
def test_key_switches_come_back_to_back() -> None:
    parameters = {"W": 36, "C": 4, "N": 64, "L": 3}
    shown = harness.simulate("key_switch", "key_switch_bench", parameters, patience=20000, count=3)
    same_cycles(4, 64, 3, shown)


@pytest.mark.parametrize(("C", "N", "L"), SIZES)
def test_a_key_switch_is_that_of_the_library(C: int, N: int, L: int) -> None:
    same_cycles(
        C, N, L, harness.verilated("key_switch", "key_switch", {"W": 36, "C": C, "N": N, "L": L})
    )
