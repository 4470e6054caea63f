"""The constants of tools/tfhe_search/cost.toml follow from what was measured, and presets/tfhe.toml
has what they predict."""

import importlib.util
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
SEARCH = ROOT / "tools" / "tfhe_search"
PRESETS = tomllib.loads((ROOT / "src/jali/params/presets/tfhe.toml").read_text())
COST = tomllib.loads((SEARCH / "cost.toml").read_text())

_spec = importlib.util.spec_from_file_location("tfhe_fit", SEARCH / "fit.py")
assert _spec is not None and _spec.loader is not None
fit = importlib.util.module_from_spec(_spec)
sys.modules["tfhe_fit"] = fit
_spec.loader.exec_module(fit)

PARTS = {part.title: part for part in fit.parts()}


def _seconds(title: str, shape: object) -> float:
    """What the constants of a part predict, as cost.toml has them."""
    (part,) = [p for t, p in PARTS.items() if t.startswith(title)]
    return float(np.dot([COST[name] for name in part.names], part.features(shape)))


def test_the_constants_are_those_of_the_records() -> None:
    assert (SEARCH / "cost.toml").read_text() == fit.toml(), "run fit.py and keep what it prints"


@pytest.mark.parametrize("title", PARTS)
def test_predictions_are_as_near_as_the_file_says(title: str) -> None:
    part = PARTS[title]
    for m in part.measured:
        predicted = float(np.dot([COST[name] for name in part.names], part.features(m.shape)))
        assert predicted == pytest.approx(m.seconds, rel=COST[part.error]), m.name


def test_every_preset_was_measured_on_a_cpu() -> None:
    (part,) = [p for title, p in PARTS.items() if "CPU" in title]
    assert {m.name for m in part.measured} == set(PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_have_what_the_constants_predict(name: str) -> None:
    """C++ computes the predictions, by formulas that are these."""
    preset, shape = PRESETS[name], fit.presets()[name]
    batch = {
        "own": "A batch on an H100",
        "cluster": "Large polynomials",
        "other": "All other sizes",
    }[shape.kernel]
    alone = (
        "One alone of all other" if shape.kernel == "other" else "One ciphertext alone on an H100"
    )
    throughput = 1 / (_seconds(batch, shape) + _seconds("The key switch of a batch", shape))
    latency = _seconds(alone, shape) + _seconds("The key switch of one alone", shape)
    assert preset["predicted_throughput"] == pytest.approx(throughput, abs=0.51)
    assert preset["predicted_latency_microseconds"] == pytest.approx(1e6 * latency, abs=0.51)
    assert preset["predicted_cpu_milliseconds"] == pytest.approx(
        1e3 * _seconds("One of eight", shape), abs=0.0051
    )
