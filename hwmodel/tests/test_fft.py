"""The pipelined transform of Strix in fixed point."""

from __future__ import annotations

import harness
import pytest
from latencies import in_icarus, in_verilator, recorded

long = pytest.mark.long


@pytest.mark.parametrize("INVERSE", [0, 1])
@pytest.mark.parametrize(
    ("DW", "TW"), [(64, 16), pytest.param(32, 16, marks=long), pytest.param(64, 32, marks=long)]
)
def test_the_butterfly_is_that_of_the_model(DW: int, TW: int, INVERSE: int) -> None:
    in_icarus("fft_butterfly", {"DW": DW, "TW": TW, "INVERSE": INVERSE}, count=60)


@pytest.mark.parametrize("INVERSE", [0, 1])
@pytest.mark.parametrize(
    ("P", "TW"),
    [(16, 16), (8, 28), pytest.param(64, 24, marks=long), pytest.param(256, 16, marks=long)],
)
def test_the_transform_is_that_of_the_model(P: int, TW: int, INVERSE: int) -> None:
    in_icarus("fft", {"DW": 64, "TW": TW, "P": P, "INVERSE": INVERSE}, count=3)


def test_a_stage_is_a_butterfly() -> None:
    assert recorded()["fft"]["latency_per_stage"] == recorded()["fft_butterfly"]["latency"]


@pytest.mark.parametrize("INVERSE", [0, 1])
def test_the_butterfly_is_the_rounded_product_of_the_library(INVERSE: int) -> None:
    in_verilator("fft_butterfly", {"DW": 32, "TW": 24, "INVERSE": INVERSE})


@pytest.mark.parametrize("INVERSE", [0, 1])
@pytest.mark.parametrize(
    ("P", "TW"), [(16, 32), pytest.param(64, 32, marks=long), pytest.param(256, 16, marks=long)]
)
def test_the_transform_is_that_of_the_library(P: int, TW: int, INVERSE: int) -> None:
    """Within the bound of verilator/fft.cpp, which also has the library's exact product go through the transform."""
    shown = in_verilator("fft", {"DW": 64, "TW": TW, "P": P, "INVERSE": INVERSE})
    assert 0.001 < shown["of_bound"] <= 1, "the bound says nothing, or is exceeded"


SHUFFLES = [(4, 16), pytest.param(1, 2, marks=long), pytest.param(64, 128, marks=long)]


@pytest.mark.parametrize(("L", "T"), SHUFFLES)
def test_the_shuffle_exchanges_segments(L: int, T: int) -> None:
    parameters = {"WIDTH": 32, "L": L, "T": T}
    shown = harness.simulate("shuffle_stream", "shuffle_bench", parameters, count=6)
    assert shown == {"latency": L, "interval": 1}


@pytest.mark.parametrize(("L", "T"), SHUFFLES)
def test_the_shuffle_reverses_bits_as_the_library_does(L: int, T: int) -> None:
    parameters = {"WIDTH": 32, "L": L, "T": T}
    shown = harness.verilated("shuffle_stream", "shuffle", parameters)
    assert shown == {"latency": L, "interval": 1}
