"""The file of latencies, against which every bench is held."""

from __future__ import annotations

import tomllib
from typing import Any

import harness


def recorded() -> dict[str, dict[str, Any]]:
    return tomllib.loads((harness.HWMODEL / "latencies.toml").read_text())


def same_as_recorded(unit: str, measured: dict[str, Any]) -> None:
    """Refuses a bench that shows another latency or interval of the unit than latencies.toml, or none."""
    known = recorded()[unit]
    for name in ("latency", "interval"):
        assert measured[name] == known[name], (
            f"{unit}: {name} {measured[name]}, recorded {known[name]}"
        )
