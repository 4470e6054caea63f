"""Models that others publish are read as onnxruntime reads them, and compiled without changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from published_models import MODELS, Published

from jali import nn
from jali.compiler.frontends.cut_models import cut_model
from jali.nn.execute import execute

pytestmark = pytest.mark.long  # the packages are installed by make models-test


def clear(model: Published, inputs: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """What client and server compute in the clear, one example after the other."""
    onnx = pytest.importorskip("onnx")
    loaded = onnx.load(model.path)
    example = tuple(x[0] for x in inputs)
    one: Any = example if len(example) > 1 else example[0]
    how: dict[str, Any] = {"constants": dict(model.constants)} if model.constants else {}
    cut = cut_model(loaded, one, **how)
    graph, parts = (nn.trace(loaded, one, **how), None) if cut is None else cut[:2]
    found = []
    for k in range(len(inputs[0])):
        given: Any = [x[k] for x in inputs]
        if parts is not None and parts.before is not None:
            given = parts.sent(given)[0]
        results: Any = execute(graph, *(np.asarray(x, np.float64) for x in given))
        if parts is not None:
            results = parts.results(results, check=False)
        found.append([np.asarray(y, np.float64) for y in results])
    return [np.stack(each) for each in zip(*found, strict=True)]


@pytest.mark.parametrize("name", MODELS)
def test_clear_values_are_those_of_onnxruntime(name: str) -> None:
    model = MODELS[name]
    inputs = model.inputs(2 if "ocr" in name or name == "nudenet" else 20)
    found, expected = clear(model, inputs), model.expected(inputs)
    assert len(found) == len(expected)
    within = 2e-3 if "half" in name else 1e-4
    for mine, theirs in zip(found, expected, strict=True):
        assert np.abs(mine.reshape(theirs.shape) - theirs).max() <= within * np.abs(theirs).max()
        assert theirs.std() > 0
