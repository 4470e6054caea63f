"""Programs on many examples: Program.map."""

from __future__ import annotations

import fcntl
import os
import stat
import threading
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jali
from jali import nn
from jali.compiler.program.batcher import Batcher
from jali.errors import DeviceLost, FileError, InvalidArgument
from jali.program.clear.parts import Parts
from jali.program.clear.steps import Argument, Step, Steps

WEIGHTS = np.linspace(-1, 1, 18).reshape(3, 6)


@cache
def program() -> nn.Program:
    return jali.compile(
        lambda x: (WEIGHTS @ x) ** 2, np.zeros(6), calibration=made(200, 1), batch=4
    )


def made(count: int, seed: int) -> np.ndarray:
    return np.sin(np.arange(seed, seed + 6 * count)).reshape(count, 6)


def mapped(x: np.ndarray, **options: Any) -> np.ndarray:
    found = program().map(x, **{"devices": ["cpu"], "threads": 1, **options})
    assert isinstance(found, np.ndarray)
    return found


def check(found: np.ndarray, x: np.ndarray) -> None:
    np.testing.assert_allclose(found, program().clear(x), atol=0.05)


class Stopped(Exception):
    pass


def stop_at(count: int) -> Any:
    def progress(done: int, of: int) -> None:
        if done >= count:
            raise Stopped

    return progress


def chunks_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.results")}


@pytest.mark.parametrize("count", [1, 64, 201])
def test_examples_of_any_number_on_two_devices(count: int) -> None:
    x, told = made(count, 3), list[tuple[int, int]]()
    check(mapped(x, devices=["cpu", "cpu"], progress=lambda *at: told.append(at)), x)
    assert told[0] == (0, count) and told[-1] == (count, count)
    assert told == sorted(set(told))


def test_several_inputs_and_outputs_and_a_client_of_ones_own(rng: np.random.Generator) -> None:
    x, y = rng.uniform(-1, 1, (2, 30, 4))
    two = jali.compile(lambda a, b: (a * b, a + b), (x[0], y[0]), calibration=(x, y))
    client = two.client()
    product, total = two.map(x, y, devices=["cpu"], client=client)
    np.testing.assert_allclose(product, x * y, atol=0.05)
    np.testing.assert_allclose(total, x + y, atol=0.05)


def test_nothing_is_computed_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an end in the middle, the next call computes what is missing, and a third one nothing."""
    x, folder = made(400, 5), tmp_path / "a" / "results"
    with pytest.raises(Stopped):
        mapped(x, folder=folder, progress=stop_at(128))
    there = chunks_of(folder)
    assert 2 <= len(there) < 7
    computed: list[int] = []
    call = Batcher.__call__

    def counted(self: Batcher, requests: Any) -> Any:
        requests = list(requests)
        computed.append(sum(one.examples for one in requests))
        return call(self, requests)

    monkeypatch.setattr(Batcher, "__call__", counted)
    told: list[int] = []
    check(mapped(x, folder=folder, progress=lambda done, of: told.append(done)), x)
    assert told[0] == 64 * len(there) and sum(computed) == 400 - told[0]
    assert chunks_of(folder).items() >= there.items()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    monkeypatch.setattr(nn.Client, "evaluation_keys", None)
    check(mapped(x, folder=folder), x)
    assert sum(computed) == 400 - told[0]


def test_damaged_results_are_computed_again(tmp_path: Path) -> None:
    x = made(200, 7)
    mapped(x, folder=tmp_path)
    for name, damage in (("00000000.results", b""), ("00000002.results", b"PK" * 80)):
        (tmp_path / name).write_bytes(damage)
    flipped = bytearray((tmp_path / "00000001.results").read_bytes())
    flipped[len(flipped) // 2] ^= 1
    (tmp_path / "00000001.results").write_bytes(flipped)
    told: list[int] = []
    check(mapped(x, folder=tmp_path, progress=lambda done, of: told.append(done)), x)
    assert told[0] == 200 - 3 * 64


def test_folders_of_something_else_are_refused(tmp_path: Path) -> None:
    x = made(3, 9)
    mapped(x, folder=tmp_path / "a")
    with pytest.raises(InvalidArgument, match="of another program, or of other inputs"):
        mapped(x + 1e-9, folder=tmp_path / "a")
    other = jali.compile(lambda v: v * 2, x[0], calibration=made(30, 1))
    with pytest.raises(InvalidArgument, match="give another folder"):
        other.map(x, devices=["cpu"], folder=tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "mine.txt").write_text("mine")
    with pytest.raises(InvalidArgument, match="give an empty folder"):
        mapped(x, folder=tmp_path / "b")
    with pytest.raises(FileError):
        mapped(x, folder=tmp_path / "b" / "mine.txt")
    held = os.open(tmp_path / "a", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)  # as another process would
    with pytest.raises(FileError, match="another process uses"):
        mapped(x, folder=tmp_path / "a")
    os.close(held)
    check(mapped(x, folder=tmp_path / "a"), x)


def test_wrong_calls_are_refused_before_any_work(tmp_path: Path) -> None:
    x, told = made(100, 1), list[int]()
    x[70, 2] = 40
    with pytest.raises(InvalidArgument, match=r"x\[2\] of example 70"):
        mapped(x, folder=tmp_path / "a", progress=lambda done, of: told.append(done))
    assert not told and not (tmp_path / "a").exists()
    for devices in ("cpu", [], ["quantum"]):
        with pytest.raises(jali.Error):
            program().map(made(3, 1), devices=devices)
    with pytest.raises(InvalidArgument):
        mapped(made(3, 1)[:, :5])
    with pytest.raises(InvalidArgument):
        program().map(made(3, 1), made(3, 1))
    with pytest.raises(InvalidArgument, match=r"program\.client\(\)"):
        mapped(made(3, 1), client="me")


def failing(monkeypatch: pytest.MonkeyPatch, which: int) -> None:
    """As if devices were lost: the first `which` that compute."""
    call, lost = Batcher.__call__, set[int]()
    lock = threading.Lock()

    def failed(self: Batcher, requests: Any) -> Any:
        with lock:
            if id(self) in lost or len(lost) < which:
                lost.add(id(self))
                raise DeviceLost("it is gone")
        return call(self, requests)

    monkeypatch.setattr(Batcher, "__call__", failed)


def test_a_device_that_fails_leaves_its_work_to_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = made(300, 2)
    with monkeypatch.context() as patch:
        failing(patch, 1)
        check(mapped(x, devices=["cpu", "cpu"]), x)
    with monkeypatch.context() as patch:
        failing(patch, 2)
        with pytest.raises(DeviceLost, match="it is gone"):
            mapped(x, devices=["cpu", "cpu"], folder=tmp_path)
    check(mapped(x, folder=tmp_path), x)


def test_results_that_decryption_refuses_are_told(tmp_path: Path) -> None:
    """They are NaN, and what was kept is what was right."""
    calibration = 0.01 * made(100, 1)
    narrow = jali.compile(
        lambda x: WEIGHTS @ x, calibration[0], calibration=calibration, input_range=(-9, 9), batch=4
    )
    x = np.concatenate([0.01 * made(64, 2), np.full((4, 6), 9.0) * np.sign(WEIGHTS[0])])
    with pytest.warns(UserWarning, match="4 examples, which are NaN, first of example 64"):
        found = narrow.map(x, devices=["cpu"], folder=tmp_path)
    assert np.isnan(found[64:]).all()
    np.testing.assert_allclose(found[:64], narrow.clear(x[:64]), atol=0.05)
    assert list(chunks_of(tmp_path)) == ["00000000.results"]


@pytest.mark.parametrize("right", [0, 64])
def test_refused_results_where_the_client_computes_the_end(right: int, tmp_path: Path) -> None:
    """They have the shapes and the number of the model's results, also if there are no others."""
    places = {"how": "max", "axis": 1, "count": 2, "what": "places"}
    numbers = places | {"what": "numbers"}
    three = Argument("y", (3,), "real")
    after = Steps((three,), (), (Step("top", (0,), places), Step("top", (0,), numbers)), (1, 2))
    calibration = 0.01 * np.sin(np.arange(60.0)).reshape(20, 3)
    narrow = jali.compile(
        lambda x: 2 * x, np.zeros(3), calibration=calibration, input_range=(-9, 9), batch=4
    )
    narrow = replace(narrow, manifest=replace(narrow.manifest, parts=Parts(None, after)))
    x = np.concatenate([np.tile([0.001, 0.01, 0.005], (right, 1)), np.full((4, 3), 9.0)])
    with pytest.warns(UserWarning, match=f"4 examples, which are NaN, first of example {right}"):
        where, largest = narrow.map(x, devices=["cpu"], folder=tmp_path)
    assert where.shape == largest.shape == (right + 4, 2)
    assert np.isnan(where[right:]).all() and np.isnan(largest[right:]).all()
    assert np.array_equal(where[:right], np.tile([1, 2], (right, 1)))
    np.testing.assert_allclose(largest[:right], np.tile([0.02, 0.01], (right, 1)), atol=0.002)


def test_one_example_is_refused_where_the_client_computes_the_start() -> None:
    taken = Steps((Argument("x", (3,), "real"),), (), (), (0,))
    x = np.sin(np.arange(60.0)).reshape(20, 3)
    made = jali.compile(lambda x: 2 * x, x[0], calibration=x)
    made = replace(made, manifest=replace(made.manifest, parts=Parts(taken, None)))
    with pytest.raises(InvalidArgument, match=r"arrays \(n, \*shape\) of examples"):
        made.map(x[0], devices=["cpu"])
    found = made.map(x, devices=["cpu"])
    np.testing.assert_allclose(found, 2 * x, atol=0.01)
