"""The progress of compiling, of making a server, and of the price list."""

from __future__ import annotations

import io
import itertools
from typing import Any

import numpy as np
import pytest

import jali
from jali._core import console
from jali.compiler.driver import compiled
from jali.compiler.frontends.tracing import trace_function
from jali.compiler.ir.graph import Graph
from jali.compiler.planning.parameters import Ring
from jali.compiler.program.program import STAGES, Program
from jali.compiler.progress import Progress


@pytest.fixture
def model(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    a, b = rng.normal(size=(12, 10)) / 4, rng.normal(size=(5, 12)) / 4
    return (lambda v: b @ np.square(a @ v)), rng.uniform(-1, 1, (60, 10))


def compiled_model(model: tuple[Any, np.ndarray], progress: Any = None) -> Program:
    f, x = model
    return jali.compile(f, x[0], calibration=x, progress=progress)


def assert_complete(told: list[tuple[str, float]]) -> None:
    stages, fractions = zip(*told, strict=True)
    assert set(stages) <= set(STAGES)
    assert stages[:4] == ("trace", "fold", "calibrate", "approximate")
    assert {"layout", "lower", "parameters"} <= set(stages)
    assert fractions[0] == 0 and told[-1] == ("program", 1.0)
    assert all(0 <= a <= b <= 1 for a, b in itertools.pairwise(fractions))
    assert fractions[-2] < 1


def test_each_stage_is_told(model: tuple[Any, np.ndarray]) -> None:
    told: list[tuple[str, float]] = []
    program = compiled_model(model, lambda *seen: told.append(seen))
    assert_complete(told)
    for stage in dict(told):
        assert program.explain(stage)
    assert program.to_bytes() == compiled_model(model).to_bytes()  # it changes nothing


def deep(rng: np.random.Generator) -> tuple[Graph, np.ndarray]:
    weights = rng.normal(size=(8, 8)) / 8

    def f(v: Any) -> Any:
        for _ in range(4):
            v = np.tanh(weights @ v)
        return v

    x = rng.uniform(-1, 1, (60, 8))
    return trace_function(f, [x[0]]), x


def test_plans_with_bootstrapping_tell_their_levels(rng: np.random.Generator) -> None:
    graph, x = deep(rng)
    told: list[tuple[str, float]] = []
    progress = Progress(lambda *seen: told.append(seen))
    how: dict[str, Any] = {"precision_bits": 5, "lanes": 1, "memory": 1 << 30}
    compiled(graph, [x], insecure_ring=Ring(10, 8), progress=progress, **how)
    assert told[-1] == ("program", 1.0) and "levels" in dict(told)


@pytest.mark.parametrize(
    "stage", ["trace", "calibrate", "layout", "lower", "parameters", "program"]
)
@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), ValueError("stop"), jali.Unsupported("stop"), jali.RangeExceeded("stop")],
    ids=lambda error: type(error).__name__,
)
def test_what_progress_raises_ends_the_work(
    stage: str, error: BaseException, model: tuple[Any, np.ndarray]
) -> None:
    """Also errors that a plan catches when it raises them itself, to try another plan."""
    told = []

    def stop(name: str, _: float) -> None:
        told.append(name)
        if name == stage:
            raise error

    with pytest.raises(type(error)) as caught:
        compiled_model(model, stop)
    assert caught.value is error
    assert told[-1] == stage and told.count(stage) == 1


def test_a_server_tells_its_matrices(model: tuple[Any, np.ndarray]) -> None:
    program, told = compiled_model(model), list[tuple[int, int]]()
    client = program.client(threads=1)
    keys = client.evaluation_keys()
    server = program.server(keys, threads=1, progress=lambda *seen: told.append(seen))
    assert told == [(1, 2), (2, 2)]
    x = model[1]
    off = client.decrypt(server(client.encrypt(x[0]))) - program.clear(x[:1])[0]
    assert np.abs(off).max() < 2.0**-8

    def stop(done: int, total: int) -> None:
        raise jali.Unsupported(f"at {done} of {total}")

    with pytest.raises(jali.Unsupported, match="at 1 of 2"):
        program.server(keys, threads=1, progress=stop)


def test_a_summary_tells_matrices_and_runs(model: tuple[Any, np.ndarray]) -> None:
    program, told = compiled_model(model), list[tuple[int, int]]()
    program.summary("cpu", threads=1, progress=lambda *seen: told.append(seen))
    total = told[-1][1]
    assert [done for done, _ in told] == list(range(1, total + 1))
    assert total == 2 + 4 and {n for _, n in told} == {total}


@pytest.mark.parametrize("wrong", [3, "bar", True, (1, 2)])
def test_what_cannot_be_called_is_refused(wrong: Any, model: tuple[Any, np.ndarray]) -> None:
    with pytest.raises(jali.InvalidArgument, match="name of a stage and a fraction"):
        compiled_model(model, wrong)
    program = compiled_model(model)
    with pytest.raises(jali.InvalidArgument, match="two whole numbers"):
        program.summary("cpu", progress=wrong)
    keys = program.client(threads=1).evaluation_keys()
    with pytest.raises(jali.InvalidArgument, match="two whole numbers"):
        program.server(keys, progress=wrong)


def test_a_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that is written over, and empty at the end; nothing in a file."""
    screen = io.StringIO()
    monkeypatch.setattr("sys.stderr", screen)
    assert console.stages("compiling") is None
    monkeypatch.setattr(screen, "isatty", lambda: True)
    show = console.stages("compiling")
    assert show is not None
    show("calibrate", 0.06)
    show("fold", 0.5)
    show("program", 1.0)
    written = screen.getvalue()
    assert "\n" not in written
    _, first, second, last, end = written.split("\r")
    assert first == "compiling: calibrate, 6%" and second.rstrip() == "compiling: fold, 50%"
    assert len(second) == len(first) == len(last) and not last.strip() and end == ""
