"""Tests of the RTL: skipped, with a reason, where a simulator is missing."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import Any

import pytest

# The modules of checks say what their asserts compare, as tests do.
pytest.register_assert_rewrite("latencies", "harness")

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "benches"))
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "synth"))


@pytest.fixture
def rng() -> Any:
    """A generator with a fresh seed in every run; a failure shows the seed."""
    import numpy as np

    seed = secrets.randbits(64)
    print(f"seed {seed}")
    return np.random.default_rng(seed)
