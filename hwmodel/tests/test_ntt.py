"""The NTT core, the streaming permutation network, and the engine of passes."""

from __future__ import annotations

import pytest
from latencies import in_icarus, in_verilator

long = pytest.mark.long
ENGINES = [(4, 64), (8, 256), (16, 1024)]
LONG_ENGINES = [pytest.param(16, 4096, marks=long), pytest.param(4, 512, marks=long)]


@pytest.mark.parametrize("W", [36, pytest.param(31, marks=long), pytest.param(61, marks=long)])
def test_the_core_is_a_butterfly_of_python(W: int) -> None:
    in_icarus("ntt_core", {"W": W}, count=150)


@pytest.mark.parametrize(
    ("C", "N"), [(4, 64), (8, 64), (16, 256), pytest.param(8, 1024, marks=long)]
)
def test_the_network_permutes_frames(C: int, N: int) -> None:
    in_icarus("spn", {"W": 16, "C": C, "N": N}, count=2)


@pytest.mark.parametrize(
    ("C", "N"), [(8, 64), pytest.param(4, 256, marks=long), pytest.param(16, 1024, marks=long)]
)
def test_the_network_orders_frames_as_the_library_does(C: int, N: int) -> None:
    in_verilator("spn", {"W": 36, "C": C, "N": N})


@pytest.mark.parametrize(
    ("C", "N"), [*ENGINES[:2], pytest.param(*ENGINES[2], marks=long), *LONG_ENGINES]
)
def test_the_engine_transforms_as_the_definition_says(C: int, N: int) -> None:
    shown = in_icarus("ntt_engine", {"W": 36, "C": C, "N": N}, more=2 if N < 1000 else 0)
    assert shown["store"] == N // C


def test_the_core_is_a_butterfly_of_the_library() -> None:
    in_verilator("ntt_core", {"W": 36})


@pytest.mark.parametrize(
    ("C", "N"), [ENGINES[0], ENGINES[2], pytest.param(*ENGINES[1], marks=long), *LONG_ENGINES]
)
def test_the_engine_transforms_as_the_library_does(C: int, N: int) -> None:
    shown = in_verilator("ntt_engine", {"W": 36, "C": C, "N": N})
    assert shown["store"] == N // C
