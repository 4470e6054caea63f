"""The pipelined transform of Strix in fixed point."""

from __future__ import annotations

import harness
import pytest
from latencies import recorded, same_as_recorded

long = pytest.mark.long


@pytest.mark.parametrize("INVERSE", [0, 1])
@pytest.mark.parametrize(
    ("DW", "TW"), [(64, 16), pytest.param(32, 16, marks=long), pytest.param(64, 32, marks=long)]
)
def test_the_butterfly_is_that_of_the_model(DW: int, TW: int, INVERSE: int) -> None:
    parameters = {"DW": DW, "TW": TW, "INVERSE": INVERSE}
    same_as_recorded(
        "fft_butterfly",
        harness.simulate("fft_butterfly_stream", "fft_butterfly_bench", parameters, count=60),
    )


@pytest.mark.parametrize("INVERSE", [0, 1])
@pytest.mark.parametrize(
    ("P", "TW"),
    [(16, 16), (8, 28), pytest.param(64, 24, marks=long), pytest.param(256, 16, marks=long)],
)
def test_the_transform_is_that_of_the_model(P: int, TW: int, INVERSE: int) -> None:
    shown = harness.simulate(
        "fft", "fft_bench", {"DW": 64, "TW": TW, "P": P, "INVERSE": INVERSE}, count=3
    )
    stage = recorded()["fft_butterfly"]["latency"]
    assert shown["latency"] == stage * (P.bit_length() - 1)
    assert shown["interval"] == recorded()["fft"]["interval"]
