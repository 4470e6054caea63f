"""The benchmarks run, check themselves and print the shape that is promised. No time is asserted."""

from __future__ import annotations

import json

import numpy as np
import pytest

import jali
from jali import bench
from jali.bench import floors, measure, transforms
from jali.bench.registry import BENCHMARKS

FIELDS = [
    "name",
    "device",
    "device_name",
    "params",
    "batch",
    "reps",
    "median_s",
    "min_s",
    "p95_s",
    "floor_s",
    "floor_kind",
    "fraction_of_floor",
    "precision_bits",
    "commit",
]


def lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict]:
    assert bench.main([*arguments, "--seconds", "0.001", "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["list"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == list(BENCHMARKS)
    assert {"ntt", "hmult_relin_rescale", "rotate", "matvec", "demo_digits", "client"} <= set(names)


@pytest.mark.parametrize(
    "name", ["hadd", "cmult", "hmult", "hrotate", "conjugate", "rescale", "client"]
)
def test_operations(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = lines(capsys, name, "--set", "n13_d5")
    assert rows
    for row in rows:
        assert list(row) == FIELDS
        assert row["reps"] >= 1
        assert 0 < row["min_s"] <= row["median_s"] <= row["p95_s"]
        assert row["params"]["set"] == "n13_d5"
        assert row["device"] == ("cuda" if row["params"]["engine"].startswith("cuda") else "cpu")
        assert row["precision_bits"] > 10
        if row["floor_s"] is not None:
            assert row["fraction_of_floor"] == pytest.approx(row["floor_s"] / row["min_s"])


def test_anchors_run_on_one_and_two_threads(capsys: pytest.CaptureFixture[str]) -> None:
    rows = lines(capsys, "hmult_relin_rescale", "--set", "n13_d5")
    assert [row["params"]["threads"] for row in rows] == [1, 2]


@pytest.mark.parametrize("name", ["ntt", "intt"])
def test_transforms(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transforms, "LOG_NS", (11,))
    rows = lines(capsys, name)
    assert [row["params"]["word"] for row in rows] == ["w32", "w52", "w64"]
    assert all(row["floor_s"] > 0 for row in rows)


def test_matvec_on_a_small_layer() -> None:
    from jali.bench import matvec
    from jali.bench.registry import Options

    row = matvec.layer("small", (20, 60), Options(seconds=0.001))
    assert row.params["rotation_keys"] >= 1
    assert row.params["key_bytes"] > 0


def test_unknown_names() -> None:
    with pytest.raises(jali.InvalidArgument, match="list"):
        bench.main(["nothing"])
    with pytest.raises(jali.InvalidArgument, match="n13_d5"):
        bench.main(["hadd", "--set", "nothing"])
    with pytest.raises(jali.InvalidArgument, match="--threads"):
        bench.main(["hadd", "--threads", "0"])


def test_wrong_results_have_no_figure() -> None:
    right = np.linspace(0, 1, 100)
    assert measure.accept("x", right + 1e-6 * (-1) ** np.arange(100), right, 20) == pytest.approx(
        -np.log2(1e-6), abs=0.1
    )
    with pytest.raises(jali.InternalError, match="off by"):
        measure.accept("x", right + 1e-3, right, 20)
    with pytest.raises(jali.InternalError):
        measure.accept("x", right * np.nan, right, 20)


def test_floor_counts_mults() -> None:
    one = floors.of_mults(1e6, "w64", "cpu/portable", 1)
    two = floors.of_mults(1e6, "w64", "cpu/portable", 2)
    assert one.seconds == pytest.approx(2 * two.seconds)
