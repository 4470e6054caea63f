"""The benchmarks of exact integers check their results, and compare what is comparable."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import jali
from jali import ckks, discrete
from jali.bench import discrete as measured
from jali.bench import sets
from jali.bench.registry import BENCHMARKS, Options
from jali.cli import bench as command

SMALL = "modulus=65537,depth=2,log_n=10,security=0,name=insecure_bench"
OPERATIONS = ["add", "add_array", "multiply_number", "multiply_array", "rotate", "swap_rows"]


def lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert command.main([*arguments, "--device", "cpu", "--seconds", "0.001", "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def assert_has_a_floor(row: dict[str, Any]) -> None:
    assert 0 < row["floor_s"] < float("inf") and row["floor_kind"]
    assert row["fraction_of_floor"] == pytest.approx(row["floor_s"] / row["min_s"])


@pytest.mark.parametrize("multiplication", ["bgv", "bfv"])
def test_every_operation_is_measured(
    multiplication: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"{SMALL},multiplication={multiplication}"
    rows = lines(capsys, "discrete", "--set", name, "--batch", "2")
    products = [f"{what}_{multiplication}" for what in ("multiply", "square")]
    assert {row["name"] for row in rows} == {f"discrete_{n}" for n in [*OPERATIONS, *products]}
    params = measured.load(name)
    for row in rows:
        about = row["params"]
        assert row["batch"] == 2 and 0 < row["min_s"] <= row["median_s"] <= row["p95_s"]
        assert (about["set"], about["level"], about["limbs"]) == (name, 2, params.q_count)
        assert (about["multiplication"], about["modulus"]) == (multiplication, 65537)
        assert_has_a_floor(row)


def test_the_level_of_the_operands(capsys: pytest.CaptureFixture[str]) -> None:
    rows = lines(capsys, "discrete", "--set", SMALL, "--level", "1")
    assert {row["params"]["level"] for row in rows} == {1}
    fewer = measured.load(SMALL)
    assert {row["params"]["limbs"] for row in rows} == {fewer.q_count * 2 // 3}


def test_the_client_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    rows = lines(capsys, "discrete_client", "--set", SMALL, "--set", "sums_2_32")
    steps = ["encrypt", "encrypt_public", "decrypt"]
    named = [row["name"] for row in rows]
    assert named == [f"discrete_{s}" for s in [*steps, "keygen", *steps]]
    for row in rows:
        if row["name"] != "discrete_keygen":
            assert_has_a_floor(row)


@pytest.mark.parametrize("broken", ["add", "multiply", "swap_rows"])
def test_a_wrong_result_is_no_figure(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = measured.Sides.call

    def call(self: Any, body: Any, last: Any) -> Any:
        def other(core: Any, x: Any, y: Any) -> Any:
            class Wrong:
                def __getattr__(self, name: str) -> Any:
                    right = getattr(core, name)
                    return (lambda *a: core.add_number(right(*a), 1)) if name == broken else right

            return body(Wrong(), x, y)

        return real(self, other, last)

    monkeypatch.setattr(measured.Sides, "call", call)
    options = Options(device="cpu", seconds=0.001, sets=(SMALL,))
    with pytest.raises(jali.InternalError, match=f"{broken}.*1024 of 1024 numbers are wrong"):
        list(BENCHMARKS["discrete"].run(options))


def test_products_beside_ckks_are_of_equal_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    rows = lines(capsys, "discrete_beside_ckks", "--set", "modulus=65537,depth=2,log_n=13")
    assert [row["name"] for row in rows] == [
        "ckks_hmult_rescale",
        "discrete_multiply_bgv",
        "discrete_multiply_bfv",
    ]
    sizes = [
        [row["params"][k] for k in ("log_n", "word", "limbs", "special", "dnum")] for row in rows
    ]
    assert sizes[0] == sizes[1] == sizes[2]
    for row in rows[1:]:
        ratio = row["min_s"] / rows[0]["min_s"]
        assert row["params"]["times_ckks"] == pytest.approx(ratio, abs=1e-3)
        assert_has_a_floor(row)


def test_ckks_of_the_sizes_of_the_gpu_figures() -> None:
    ours = measured.load(measured.BESIDE["cuda"])
    theirs: ckks.Params = sets.load(measured.ckks_set(ours))
    assert ours.q_count == len(theirs.level(theirs.depth).primes) == 24
    assert (ours.dnum, ours.p_count) == (theirs.dnum, theirs.p_count)
    assert (ours.word, ours.log_n) == (theirs.word, theirs.log_n)


def test_residues_are_those_of_decryption() -> None:
    params = discrete.Params.create(modulus=65537, depth=1)
    values = np.array([0, 32768, 32769, -32769, 65537 * 2**70 - 1], dtype=object)
    assert measured.expected(values, params).tolist() == [0, 32768, -32768, 32768, -1]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("modulus=65537", "depth=6"),
        ("scale_bits=40,depth=2", "scale_bits=40"),
        ("modulus=many,depth=2", "modulus=many"),
        ("n14_d7", "int16_d2"),
        ("sums_2_32", "has no products"),
    ],
)
def test_sets_that_do_not_exist(name: str, says: str) -> None:
    with pytest.raises(jali.InvalidArgument, match=says):
        list(BENCHMARKS["discrete"].run(Options(device="cpu", sets=(name,))))
