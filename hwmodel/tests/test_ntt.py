"""The NTT core, the streaming permutation network, and the engine of passes."""

from __future__ import annotations

import harness
import pytest
from latencies import recorded, same_as_recorded

long = pytest.mark.long
ENGINES = [(4, 64), (8, 256), (16, 1024)]
LONG_ENGINES = [pytest.param(16, 4096, marks=long), pytest.param(4, 512, marks=long)]


@pytest.mark.parametrize("W", [36, pytest.param(31, marks=long), pytest.param(61, marks=long)])
def test_the_core_is_a_butterfly_of_python(W: int) -> None:
    same_as_recorded(
        "ntt_core", harness.simulate("ntt_core_stream", "ntt_core_bench", {"W": W}, count=150)
    )


@pytest.mark.parametrize(
    ("C", "N"), [(4, 64), (8, 64), (16, 256), pytest.param(8, 1024, marks=long)]
)
def test_the_network_permutes_frames(C: int, N: int) -> None:
    shown = harness.simulate("spn", "spn_bench", {"W": 16, "C": C, "N": N}, count=2)
    same_as_recorded("spn", shown)


def same_passes(C: int, N: int, shown: dict[str, int]) -> None:
    """The engine's cycles are log2 N (N/C + d), and those of the way from and to its memories."""
    engine, passes = recorded()["ntt_engine"], N.bit_length() - 1
    assert shown["cycles"] - engine["latency"] == passes * (N // C + engine["pass_overhead"])
    assert shown["permute"] == engine["latency"]
    assert shown["store"] == N // C


@pytest.mark.parametrize(
    ("C", "N"), [*ENGINES[:2], pytest.param(*ENGINES[2], marks=long), *LONG_ENGINES]
)
def test_the_engine_transforms_as_the_definition_says(C: int, N: int) -> None:
    more = 2 if N < 1000 else 0
    same_passes(
        C,
        N,
        harness.simulate("ntt_engine", "ntt_engine_bench", {"W": 36, "C": C, "N": N}, more=more),
    )


def test_the_core_is_a_butterfly_of_the_library() -> None:
    same_as_recorded("ntt_core", harness.verilated("ntt_core_stream", "ntt_core", {"W": 36}))


@pytest.mark.parametrize(
    ("C", "N"), [ENGINES[0], ENGINES[2], pytest.param(*ENGINES[1], marks=long), *LONG_ENGINES]
)
def test_the_engine_transforms_as_the_library_does(C: int, N: int) -> None:
    same_passes(C, N, harness.verilated("ntt_engine", "ntt_engine", {"W": 36, "C": C, "N": N}))
