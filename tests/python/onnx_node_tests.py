"""The node tests of the package onnx, with the first input encrypted and the others as constants."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import jali
from jali.compiler.ir.execute import execute
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.fold import fold
from jali.nn import Graph, trace


@dataclass
class Case:
    """A model, the example of its first input, and what onnx gives for it."""

    name: str
    model: Any
    example: np.ndarray
    results: list[Any]
    rtol: float


def cases() -> Iterator[Case]:
    """Every node test whose first input is an array of floating-point numbers."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = load_model_tests(kind="node")
    for test in loaded:
        inputs, results = test.data_sets[0]
        if not inputs or not isinstance(inputs[0], np.ndarray) or inputs[0].dtype.kind != "f":
            continue
        model = with_constants(test.model, inputs)
        yield Case(test.name, model, inputs[0], list(results), test.rtol)


def with_constants(model: Any, inputs: Any) -> Any:
    """The model with all inputs but the first one as constants."""
    from onnx import TensorProto, numpy_helper

    full = type(model)()
    full.CopyFrom(model)
    for port, value in list(zip(full.graph.input, inputs, strict=False))[1:]:
        if isinstance(value, TensorProto):
            tensor = full.graph.initializer.add()
            tensor.CopyFrom(value)
            tensor.name = port.name
        elif not isinstance(value, (list, type(None))):
            full.graph.initializer.append(numpy_helper.from_array(np.asarray(value), port.name))
    return full


def outcome(case: Case) -> str:
    """ "taken" if the clear value is what onnx gives, else "refused" with our sentence; "wrong" for
    another value. What is no error of ours is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            graph = trace(case.model, case.example)
            found = execute(graph, case.example)
            if all(np.isfinite(y).all() for y in found):
                return _compared(case, found)
            return _calibrated(graph, case)
        except jali.Error as error:
            assert len(str(error).split()) > 3, f"{case.name}: {error}"
            return f"refused: {error}"


def _calibrated(graph: Graph, case: Case) -> str:
    """Values that are not finite are seen when the program is calibrated."""
    node = graph.inputs[0]
    examples = case.example.astype(np.float64).reshape(-1, *node.shape)
    calibrate(fold(graph), [examples])
    return "wrong: its value is not finite, and calibration does not say so"


def _compared(case: Case, found: list[np.ndarray]) -> str:
    if len(found) != len(case.results):
        return f"wrong: {len(found)} results in the place of {len(case.results)}"
    for got, result in zip(found, case.results, strict=True):
        want = np.asarray(result).astype(np.float64)
        if got.size != want.size:
            return f"wrong: the shape {got.shape} in the place of {want.shape}"
        close = np.allclose(got.reshape(want.shape), want, rtol=max(case.rtol, 1e-3), atol=1e-5)
        if not close:
            return f"wrong: off by {np.abs(got.reshape(want.shape) - want).max():.3g}"
    return "taken"
