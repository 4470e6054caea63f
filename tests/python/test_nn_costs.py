"""Measured costs: what is measured, what a file keeps, and what plans read."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from slot_interpreter import WEIGHTS

import jali
from jali import cli
from jali import device as devices
from jali.ckks import Evaluator, Params
from jali.compiler.cost import measured
from jali.compiler.cost.costs import STORAGE, Costs, _storage_shares, costs_of, counted, of_table
from jali.compiler.cost.elimination import NEVER
from jali.compiler.ir.graph import Node
from jali.compiler.passes.approximate import approximated
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.fold import fold
from jali.compiler.pipeline import lowered
from jali.compiler.planning.node_costs import cost_of
from jali.nn import trace

#: What every table has beside bootstrappings: operations on one ciphertext, and matrices.
ALONE = ("rotation", "plain", "product", "matrix", *measured.STORED)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives the test a cache folder of its own; returns the path of the file of costs, which does
    not exist yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "jali" / "costs.json"


def small(levels: int = 4) -> Params:
    return Params.create(
        bootstrap=True,
        precision_bits=12,
        levels_after=levels,
        log_n=10,
        security=0,
        name="insecure_test",
    )


def test_operations_and_bootstraps_are_measured_without_keys() -> None:
    params = small()
    table = measured.table_of(params, "cpu", 0.0, threads=1)
    assert set(table) == {*measured.KINDS, measured.SUM, *measured.STORED}
    assert [n for n, _ in table["real"]] == [n for n, _ in table["pair"]]
    assert table["real"][-1][0] == params.q_count
    assert [n for n, _ in table["sparse"]] == [2, 8, 64, 256]
    assert all(cost > 0 for points in table.values() for _, cost in points)


def test_what_is_timed_is_one_operation_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's counters say what a timed call does."""
    done: list[dict[str, int]] = []
    names = ("rotations", "products", "additions", "bootstraps", "matrix_products")

    def counting(run: Callable[[], object], server: Evaluator, _: float) -> int:
        before = server.counters()
        run()
        after = server.counters()
        done.append({k: after[k] - before[k] for k in names if after[k] > before[k]})
        return len(done)

    monkeypatch.setattr(measured, "_nanoseconds", counting)
    table = measured.table_of(small(), "cpu", 0.0, threads=1)
    once = {"rotation": {"rotations": 1}, "plain": {}, "product": {"products": 1}}
    once[measured.SUM] = {
        "products": measured.TOGETHER
    }  # a sum that is made with them counts no additions
    once |= {kind: {"matrix_products": 1} for kind in ("matrix", *measured.STORED)}
    once |= {"rotations": {"rotations": 1}}
    for kind, points in table.items():
        expected = once.get(kind, {"bootstraps": 1})
        assert points and all(done[number - 1] == expected for _, number in points), kind


def test_costs_lie_between_those_that_were_measured() -> None:
    params = small()
    primes = [len(params.level(k).primes) for k in range(params.depth + 1)]
    inside = [measured.inside_primes(params, k) for k in range(params.depth + 1)]
    points = [(primes[1], 100), (primes[-1], 100 + 10 * (primes[-1] - primes[1]))]
    table = dict.fromkeys(ALONE, points)
    costs = of_table(params, table | {key: [(inside[-1], 5000)] for key in ("real", "pair")})
    assert costs.unit == "nanoseconds"
    assert costs.rotation[1:] == tuple(100 + 10 * (n - primes[1]) for n in primes[1:])
    assert costs.rotation[0] == 100 * primes[0] // primes[1]
    due = params.bootstrap_level
    assert costs.real == (NEVER,) * due + tuple(5000 * n // inside[-1] for n in inside[due:])


def test_a_product_that_is_added_costs_what_its_sum_takes_longer() -> None:
    """Of a sum of products, one is relinearised and rescaled. Without such sums it counts as a
    product with a diagonal."""
    params = small()
    first, last = (len(params.level(k).primes) for k in (1, params.depth))
    table: measured.Table = {k: [(first, 1000), (last, 2000)] for k in measured.NEEDED}
    more = measured.TOGETHER - 1
    sums = table | {measured.SUM: [(first, 1000 + 30 * more), (last, 2000 + 90 * more)]}
    found = of_table(params, sums)
    assert (found.added[1], found.added[-1]) == (30, 90)
    assert list(found.added) == sorted(found.added)
    quick = of_table(params, table | {measured.SUM: [(first, 900), (last, 900)]})
    assert set(quick.added[1:]) == {1}  # a measurement has noise
    assert of_table(params, table).added == found.plain
    assert counted(params).added == counted(params).plain


def test_more_digits_cost_what_those_with_the_most_digits_took() -> None:
    """Costs by the number of primes alone made plans whose key switchings had 30 digits, and took
    twice as long as planned."""
    known, deep = measured.params_of(15, "w32"), measured.deep_of(15, "w32")
    assert deep is not None and deep.dnum > 4 * known.dnum
    between = Params.create(
        bootstrap=True, precision_bits=15, levels_after=deep.depth - 4, log_n=15, word="w32"
    )
    assert known.dnum < between.dnum < deep.dnum
    primes = len(known.level(known.depth).primes)
    table: measured.Table = {k: [(1, 1000), (primes, 1000 * primes)] for k in measured.NEEDED}
    for kind in ("real", "pair"):
        table[kind] = [(known.q_count, 5000)]
    plain = {params: of_table(params, table) for params in (known, deep, between)}
    slow = 3 * plain[deep].rotation[-1], 2 * plain[deep].real[-1]
    count = len(deep.level(deep.depth).primes)
    table |= {"rotation deep": [(count, slow[0])], "real deep": [(deep.q_count, slow[1])]}
    found = {params: of_table(params, table) for params in (known, deep, between)}
    assert found[known] == plain[known]
    assert found[deep].rotation[-1] == pytest.approx(slow[0], abs=2)
    assert found[deep].real[-1] == pytest.approx(slow[1], abs=2)
    assert found[deep].product == plain[deep].product  # of which nothing more was measured
    for kind in ("rotation", "real"):
        now, before = getattr(found[between], kind)[-1], getattr(plain[between], kind)[-1]
        assert before < now < before * 3


def test_fewer_slots_cost_what_was_measured() -> None:
    """Linear in the logarithm of the number of slots, as a share of a bootstrapping with all."""
    params = small()
    table: measured.Table = {k: [(2, 100), (8, 100)] for k in ALONE}
    table |= {"real": [(4, 3000), (8, 5000)], "pair": [(8, 6000)]}
    table |= {"sparse": [(4, 2000), (64, 3000)]}
    costs = of_table(params, table, [2, 4, 16, 64, 256])
    assert costs.sparse == ((2, 400), (4, 400), (16, 500), (64, 600), (256, 600))
    assert costs.bootstrap(1, 16) == tuple(c if c >= NEVER else c // 2 for c in costs.real)
    assert Costs.of_document(json.loads(json.dumps(costs.document))) == costs
    del table["sparse"]
    assert of_table(params, table, [16]).sparse == ((16, 1000),)
    for wrong in ([[16, 0]], [[0.5, 10]], [[16, True]]):
        with pytest.raises(ValueError, match="sparse: entry 0: must be a whole number"):
            Costs.of_document({**costs.document, "sparse": wrong})


def test_fewer_keys_of_bootstrapping_cost_what_was_measured() -> None:
    """On a GPU; a CPU takes as long as plans say. Beyond the last measurement, its ratio holds."""
    params = small()
    plain = costs_of(params, "cpu")
    assert [plain.slower(x) for x in (1.0, 1.5, 7.0)] == [1.0, 1.5, 7.0]
    costs = costs_of(params, "cuda")
    assert costs.slower(1.0) == 1.0
    for planned, measured_time in measured.FEWER_KEYS_ON_GPU:
        assert costs.slower(planned / 1000) == pytest.approx(measured_time / 1000)
    assert costs.slower(1.1) == pytest.approx(1.216 + (0.027 / 0.060) * (1.385 - 1.216))
    assert costs.slower(2 * 1.764) == pytest.approx(2 * 2.462)
    assert Costs.of_document(json.loads(json.dumps(costs.document))) == costs
    assert "fewer_keys" not in plain.document
    for wrong in ([[1000, 0]], [[1000, 1000], [1000, 1100]], [[900, 1000]], [[1000]]):
        with pytest.raises(ValueError, match=r"fewer_keys: |do not grow"):
            Costs.of_document({**costs.document, "fewer_keys": wrong})


def test_stored_matrices_cost_what_was_measured() -> None:
    """Beyond a resident one, for each product with a diagonal; never less for fewer bytes."""
    params, count = small(), measured.DIAGONALS
    table: measured.Table = {k: [(2, 100), (8, 100)] for k in ALONE}
    table |= {"real": [(8, 5000)], "pair": [(8, 6000)], "matrix": [(2, 1000), (8, 2000)]}
    table |= {"integers": [(2, 1000 + 50 * count), (8, 2000 + 150 * count)]}
    table |= {"made": [(2, 1000 + 9000 * count), (8, 2000 + 11000 * count)]}
    table |= {"streamed": [(2, 1000 + 400 * count), (8, 2000 + 200 * count)]}
    costs = of_table(params, table)
    assert (costs.expanded, costs.streamed, costs.made) == (1000, 3000, 100_000)
    assert costs.of_storage("integers", 1) == costs.of_storage("periodic", 1) == costs.plain[1]
    assert costs.of_storage("resident", 1) == 0
    assert costs.of_storage("made", 1) == 100 * costs.plain[1]
    assert Costs.of_document(json.loads(json.dumps(costs.document))) == costs
    noisy = of_table(params, table | {"integers": [(2, 900), (8, 1900)], "made": [(2, 10)]})
    assert (noisy.expanded, noisy.streamed, noisy.made) == (1, 3000, 3000)
    for kind in measured.STORED:
        without = {k: points for k, points in table.items() if k != kind}
        with pytest.raises(
            jali.InvalidArgument, match=f"are {kind}: run 'jali tune --costs' again"
        ):
            of_table(params, without)
    for wrong in ({"made": 10}, {"expanded": -1}, {"streamed": 2.5}, {"expanded": True}):
        with pytest.raises(
            ValueError, match=f"{next(iter(wrong))}: must be a whole number|do not grow"
        ):
            Costs.of_document({**costs.document, **wrong})


def test_fewer_slots_are_counted_by_the_bytes_of_their_keys() -> None:
    params = small()
    costs = counted(params, [16])
    keys = params.expanded_bootstrap_key_bytes(slots=[16]), params.expanded_bootstrap_key_bytes()
    ((slots, share),) = costs.sparse
    assert slots == 16 and keys[0] / keys[1] < share / 1000 < 1


def test_matrices_and_several_ciphertexts_cost_their_share() -> None:
    """A matrix of 32 diagonals takes 10 rotations one by one; eight ciphertexts are rotated at
    once."""
    table: measured.Table = {k: [(2, 100), (8, 100)] for k in ALONE}
    table |= {"matrix": [(4, 2100), (8, 1050)], "rotations": [(4, 240), (8, 160)]}
    table |= {"real": [(8, 5000)], "pair": [(8, 6000)]}
    costs = of_table(small(), table)
    assert (costs.fused, costs.together) == (375, 250)
    assert Costs.of_document(json.loads(json.dumps(costs.document))) == costs
    for share in (0, 20_000, 1.5, True):
        with pytest.raises(ValueError, match="fused: must be a whole number"):
            Costs.of_document({**costs.document, "fused": share})
    alone = replace(costs, fused=1000, together=1000)
    x = np.ones((4, 4))
    one = lower_of(lambda v: np.square(x @ v), np.ones(4), 4)
    for node, share in ((one["transform"], 0.375), (one["multiply"], 1.0)):
        assert cost_of(costs, node)[0] == pytest.approx(share * cost_of(alone, node)[0], rel=0.02)
    several = lower_of(lambda v: np.square(v @ x), np.ones((6, 4)), 4)
    for node, share in ((several["transform"], 0.375 * 0.25), (several["multiply"], 0.25)):
        assert node.attrs["layout"].ciphertexts > 1
        assert cost_of(costs, node)[0] == pytest.approx(share * cost_of(alone, node)[0], rel=0.02)


def lower_of(f: Any, example: np.ndarray, slots: int) -> dict[str, Node]:
    """The last node of every operation, in the lowered graph of a function."""
    graph = approximated(calibrate(fold(trace(f, example)), [np.stack([example, -example])]), 1e-3)
    return {node.op: node for node in lowered(graph, slots, WEIGHTS)["lower"]}


def test_what_is_kept_is_what_plans_read(cache: Path) -> None:
    params = small()
    assert measured.file() == cache
    assert costs_of(params, "cpu") == counted(params)
    table = measured.table_of(params, "cpu", 0.0, threads=1)
    assert measured.keep("cpu", params.word, params.log_n, table) == cache
    assert measured.kept("cpu", params.word, params.log_n) == table
    assert costs_of(params, "cpu") == of_table(params, table)
    assert measured.kept("cpu", params.word, 15) is None
    if "cuda:0" not in devices.available():
        assert measured.kept("cuda", params.word, params.log_n) is None  # there is none here
    # A ring that was measured without bootstrapping says nothing of parameters with it.
    measured.keep("cpu", params.word, params.log_n, table | {"real": [], "pair": []})
    assert costs_of(params, "cpu") == counted(params)


def test_plans_of_rings_that_were_not_measured_are_compared_in_the_same_unit(cache: Path) -> None:
    """If one plan were priced in nanoseconds and another in bytes, the one in nanoseconds would win
    however slow it is."""
    points: measured.Points = [(2, 1000), (40, 20_000)]
    table: measured.Table = dict.fromkeys(measured.NEEDED, points)
    measured.keep("cpu", "w32", 13, table)
    known = measured.params_of(13, "w32")
    assert costs_of(known, "cpu") == of_table(known, table)
    assert measured.kept_rings("cpu") == [("w32", 13)]
    # As many bytes take as long, here nearly 1,000 ns and one for each, as on a GPU.
    read = counted(known).rotation
    per_byte = [of_table(known, table).rotation[k] / read[k] for k in (0, -1)]
    for other in (Params.create(2, 30.0, word="w64", log_n=13), small()):
        found, bytes_of = costs_of(other, "cpu"), counted(other)
        assert found.unit == "nanoseconds"
        assert (found.expanded, found.streamed, found.made) == (1, 1, 1)  # of this table, too
        for cost, count in zip(found.rotation, bytes_of.rotation, strict=True):
            if count <= read[0]:
                assert cost == pytest.approx(per_byte[0] * count, rel=1e-2)
            else:
                assert per_byte[1] * count < cost < per_byte[0] * count
        for now, before in zip(found.real, bytes_of.real, strict=True):
            assert (now == NEVER) == (before == NEVER)


def test_files_of_others_and_damaged_ones_are_not_read(cache: Path) -> None:
    points: measured.Points = [(3, 1000)]
    table = dict.fromkeys(measured.NEEDED, points)
    measured.keep("cpu", "w52", 13, table)
    good = cache.read_text()
    cache.write_text(good.replace(jali.__version__, "0.0.0-other"))
    assert measured.kept("cpu", "w52", 13) is None
    for bad in (good[:-20], "[]", good.replace("1000", "-1"), good.replace("1000", '"x"')):
        cache.write_text(bad)
        with pytest.warns(RuntimeWarning, match="damaged"):
            assert measured.kept("cpu", "w52", 13) is None
        with pytest.warns(RuntimeWarning, match="damaged"):  # as every plan warns
            assert costs_of(small(), "cpu") == counted(small())
    for lacking in ("sparse", *measured.STORED):
        without = {kind: points for kind, points in table.items() if kind != lacking}
        measured.keep("cpu", "w52", 13, without)  # of a build that measured less; replaces it
        with pytest.warns(RuntimeWarning, match=f"no costs of {lacking}, .*'jali tune --costs'"):
            assert measured.kept("cpu", "w52", 13) is None
    measured.keep("cpu", "w52", 13, table)
    assert measured.kept("cpu", "w52", 13) == table


def test_tune_keeps_costs(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["tune", "--costs", "--device", "cpu", "--word", "w52", "--log-n", "12"]
    assert cli.main([*command, "--seconds", "0.0001", "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["nanoseconds"] == json.loads(json.dumps(measured.kept("cpu", "w52", 12)))
    assert cli.main([*command, "--seconds", "0.0001"]) == 0
    said = capsys.readouterr()
    assert "rotation" in said.out and str(cache) in said.err
    assert cli.main(["tune", "--costs", "--device", "cpu", "--log-n", "11"]) != 0
    assert "has no secure parameters to measure" in capsys.readouterr().err


def test_costs_of_elsewhere_are_those_of_their_source() -> None:
    """Every row is a record of a measurement on the device that is named."""
    root = Path(__file__).resolve().parents[2]
    tables = tomllib.loads(measured.OTHER_DEVICES.read_text(encoding="utf-8"))["table"]
    assert {table["device"] for table in tables} == {"cpu", "cuda"}
    for table in tables:
        lines = (root / table["source"]).read_text(encoding="utf-8").splitlines()
        records = [json.loads(line) for line in lines]
        ring = table["word"], table["log_n"]
        (record,) = (one for one in records if (one["word"], one["log_n"]) == ring)
        assert record["device"].startswith(table["device"])
        assert record["device_name"] == table["measured_on"]
        rows = {kind: row for kind, row in table.items() if isinstance(row, list)}
        assert {"plain", "matrix", *measured.STORED} <= set(rows)
        assert rows.items() <= record["nanoseconds"].items()
        if table["device"] == "cuda":
            assert rows == record["nanoseconds"]


def test_a_gpu_that_was_not_measured_has_the_costs_of_another(cache: Path) -> None:
    """By the bytes that it reads, a bootstrapping with three digits would take much longer beside
    one with two than it does."""

    def ring(levels: int) -> Params:
        return Params.create(
            bootstrap=True, precision_bits=15.4, levels_after=levels, log_n=16, device="cuda"
        )

    two, three = ring(11), ring(16)
    assert (two.dnum, three.dnum, two.word, three.word) == (2, 3, "w32", "w32")
    table = measured.whole_tables("cuda")["w32", 16]
    fewer_keys = measured.FEWER_KEYS_ON_GPU
    assert costs_of(three, "cuda") == replace(of_table(three, table), fewer_keys=fewer_keys)
    growth = [
        costs(three, "cuda").real[-1] / costs(two, "cuda").real[-1]
        for costs in (lambda params, device: counted(params, (), device), costs_of)
    ]
    assert growth[0] > 1.3 > growth[1] > 1
    # Words and rings that were not measured are priced in the same unit, and by their bytes.
    wide = Params.create(4, 40.0, log_n=14, word="w64")
    assert costs_of(wide, "cuda").unit == "nanoseconds" and costs_of(wide, "cpu").unit == "bytes"
    assert measured.whole_tables("cpu") == {}
    # What was measured here is better known.
    points: measured.Points = [(2, 1000), (60, 20_000)]
    if "cuda:0" in devices.available():
        measured.keep("cuda", "w32", 16, dict.fromkeys(measured.NEEDED, points))
        assert costs_of(three, "cuda").rotation != of_table(three, table).rotation


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_without_a_measurement_stored_matrices_cost_what_they_do_on_another_device(
    device: str, cache: Path
) -> None:
    """Of the word and the nearest ring that were measured there."""
    for word, log_n, nearest in (
        ("w32", 16, 16 if device == "cuda" else 15),
        ("w52", 15, 16 if device == "cuda" else 15),
    ):
        params = Params.create(2, 30.0, word=word, log_n=log_n)
        found = costs_of(params, device)
        assert found.unit == ("bytes" if device == "cpu" else "nanoseconds")
        table = measured.table_near(device, word, nearest)
        want = _storage_shares(table)
        assert {name: getattr(found, name) for name in STORAGE} == want
        n, resident = table["matrix"][0]
        plain = dict(table["plain"])[n] * measured.DIAGONALS
        first = [(dict(table[kind])[n] - resident) / plain for kind in measured.STORED]
        assert 0.5 * first[0] < found.expanded / 1000 < 4 * first[0]
        assert 0.5 * first[2] < found.made / 1000 < 2 * first[2]
    if device == "cuda":
        assert found != counted(params)  # those of a CPU
