"""The benchmarks run, check their results and print the fields that are promised. No time is
asserted."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import jali
from jali import _jali, ckks, tfhe
from jali import device as devices
from jali.bench import client, evaluator, floors, measure, native, plot, sets, switch
from jali.bench import tfhe as tfhe_bench
from jali.bench.floors import Work
from jali.bench.operations import Case
from jali.bench.registry import BENCHMARKS, Options
from jali.cli import bench as command

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
    "energy",
]


def lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict]:
    assert command.main([*arguments, "--seconds", "0.001", "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def assert_has_a_floor(row: dict) -> None:
    assert 0 < row["floor_s"] < float("inf") and row["floor_kind"]
    assert row["fraction_of_floor"] == pytest.approx(row["floor_s"] / row["min_s"])


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["list"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == list(BENCHMARKS)
    assert {"ntt", "hmult_relin_rescale", "rotate", "matvec", "demo_digits", "client"} <= set(names)


@pytest.mark.parametrize(
    "name",
    ["hadd", "cmult", "hmult", "hrotate", "conjugate", "rescale", "client", *evaluator.OPERATIONS],
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
        assert_has_a_floor(row)


def test_anchors_run_on_one_and_two_threads(capsys: pytest.CaptureFixture[str]) -> None:
    rows = lines(capsys, "hmult_relin_rescale", "--set", "n13_d5")
    on_gpu = rows[0]["device"] == "cuda"
    assert [row["params"]["threads"] for row in rows] == ([1] if on_gpu else [1, 2])


@pytest.mark.parametrize("name", [name for name, _ in native.EngineBench.operations()])
def test_primitives(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = lines(capsys, name, "--log-n", "11", "--limbs", "3", "--batch", "2")
    assert [row["params"]["word"] for row in rows] == ["w32", "w52", "w64"]
    for row in rows:
        assert list(row) == FIELDS
        assert row["batch"] == 2 and row["params"]["limbs"] == 3
        assert_has_a_floor(row)


def test_trees_are_timed_at_every_batch(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    rows = lines(capsys, "demo_trees", "--batch", "1", "--batch", "3")
    named = [(row["name"], row["batch"]) for row in rows]
    assert named == [(name, b) for b in (1, 3) for name in ("demo_trees", "demo_trees_run")]
    for row in rows:
        assert list(row) == FIELDS
        assert row["params"]["look_ups"] > 1 and row["params"]["bytes_up"] > 1000


def test_rows_name_the_commit_of_a_checkout() -> None:
    checkout = Path(__file__).resolve().parents[2]
    if not ((checkout / ".git").exists() and Path(jali.__file__).is_relative_to(checkout)):
        pytest.skip("the package is not in a checkout of its sources")
    assert measure.commit() != jali.__version__


def test_decoding_at_a_modulus_beyond_doubles(capsys: pytest.CaptureFixture[str]) -> None:
    rows = lines(capsys, "unembed", "--log-n", "11", "--limbs", "41")
    assert len(rows) == 3


# Operations whose benchmark has another name.
MEASURED_AS = {
    "rotate": {"key_switch_rotate"},
    "combine_key_switch": {"combine_key_switch", "tensor_key_switch"},
    "scale_down": {"mod_down", "drop_last"},
    "scale_down_pair": {"mod_down", "drop_last"},
    "sample_small": {"sample_ternary", "sample_error"},
    "crt": {"crt_mod", "crt_mul", "crt_from_host"},
    "icrt": {"icrt_product_sum", "icrt_garner", "icrt_to_host"},
}


def test_every_operation_of_the_engine_is_a_benchmark() -> None:
    tables = (Path(__file__).parents[2] / "src" / "jali" / "backend").glob("*_ops.h")
    # TFHE's table is no table of this engine.
    waist = "".join(header.read_text() for header in tables if header.stem != "tfhe_ops")
    # Operations write to their outputs and return nothing. Functions that return something describe
    # the engine.
    operations = set(re.findall(r"^  virtual void (\w+)\(", waist, re.MULTILINE))
    assert {"ntt", "combine", "embed", *MEASURED_AS} <= operations
    expected = {name for op in operations for name in MEASURED_AS.get(op, {op})}
    assert {name for name, _ in native.EngineBench.operations()} == expected
    assert expected <= set(BENCHMARKS)


def test_every_operation_of_an_evaluator_is_in_a_benchmark() -> None:
    sources = Path(evaluator.__file__).parent.glob("*.py")
    called = set(re.findall(r"\be\.(\w+)\(", "".join(file.read_text() for file in sources)))
    methods = {name for name in dir(ckks.explicit.ExplicitEvaluator) if not name.startswith("_")}
    # These return facts or copy. The benchmark "client" times encode and decode.
    others = {"params", "has_rotation", "is_here", "bring", "send_back", "encode", "decode"}
    assert {"add", "reduce_rescale", *others} <= methods
    assert methods - others <= called


def test_rows_of_the_client_name_the_engine_that_was_timed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = []

    class Elsewhere(ckks.Client):
        engine = "cpu/apart"

        def __init__(
            self, params: ckks.Params, *, threads: int | None = None, device: str = "cpu"
        ) -> None:
            devices.append(device)
            super().__init__(params, threads=threads, device=device)

    monkeypatch.setattr(ckks, "Client", Elsewhere)
    rows = lines(capsys, "client", "--set", "n13_d5", "--level", "1", "--device", "auto")
    timed_there = {row["name"] for row in rows if row["params"]["engine"] == "cpu/apart"}
    # The host's engine makes and reads bytes on every device.
    assert timed_there == {"keygen", "encrypt", "decrypt", "serialise", "deserialise"}
    assert {row["name"] for row in rows} - timed_there == {"encode", "decode"}  # the evaluator's
    assert "auto" in devices  # the device that was asked for


def test_a_wrong_engine_has_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(native.EngineBench):
        def check(self, operation: str) -> bool:
            return False

    monkeypatch.setattr(native, "EngineBench", Wrong)
    with pytest.raises(jali.InternalError, match="wrong"):
        command.main(["ntt", "--log-n", "11", "--seconds", "0.001"])


def test_levels_and_batches(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--set", "log_n=12,depth=2,scale_bits=22,word=w32", "--level", "1", "--level", "2")
    rows = lines(capsys, "rotate", *asked, "--batch", "1", "--batch", "3", "--threads", "1")
    assert [(row["params"]["level"], row["batch"]) for row in rows] == [
        (1, 1),
        (1, 3),
        (2, 1),
        (2, 3),
    ]
    limbs = [row["params"]["limbs"] for row in rows]
    assert limbs[0] == limbs[1] < limbs[2]
    with pytest.raises(jali.InvalidArgument, match="--level"):
        lines(capsys, "rotate", "--set", "n13_d5", "--level", "6")
    with pytest.raises(jali.InvalidArgument, match="parameter set"):
        lines(capsys, "rotate", "--set", "log_n=12,colour=3")


def test_bootstrapping(capsys: pytest.CaptureFixture[str]) -> None:
    asked = "log_n=11,levels_after=2,precision_bits=18,security=0,name=insecure_bench"
    rows = lines(capsys, "bootstrap", "--set", asked, "--batch", "1", "--batch", "2")
    rows += lines(capsys, "bootstrap", "--set", f"{asked},order=slots_first", "--word", "w64")
    assert [row["batch"] for row in rows] == [1, 2, 1]
    assert rows[2]["params"]["word"] == "w64"
    for row in rows:
        about = row["params"]
        assert row["precision_bits"] > 17
        assert 0 < about["mean_error"] < about["largest_error"] < 2**-13
        assert about["key_bytes"] > 0 and about["setup_s"] > 0
        assert 0 < row["fraction_of_floor"] < 1
    one, two = rows[0]["floor_s"], rows[1]["floor_s"]
    if (
        rows[0]["device"] == "cuda"
    ):  # the floor counts bytes, and a batch of two reads the keys once
        assert one < two < 2 * one
    elif any(row["floor_kind"].startswith(floors.IN_MEMORY) for row in rows[:2]):
        assert one < two  # the memory rate was low because of other work on the machine
    else:
        assert two == pytest.approx(2 * one)


def test_switch(capsys: pytest.CaptureFixture[str]) -> None:
    rows = lines(capsys, "switch", "--set", "gif_13")
    assert [row["name"] for row in rows] == list(switch.OPERATIONS)
    assert all(row["params"]["set"] == "gif_13" and row["params"]["limbs"] == 8 for row in rows)


def small_tfhe(message_bits: int, carry_bits: int) -> tfhe.Params:
    """Parameters without security, with which a bootstrapping takes microseconds."""
    return tfhe.Params.create(
        n=48,
        k=1,
        N=512,
        rotation_gadget=(15, 2),
        switch_gadget=(5, 4),
        lwe_noise_bits=4,
        glwe_noise_bits=10,
        message_bits=message_bits,
        carry_bits=carry_bits,
        max_norm2=40 if message_bits > 1 else 8,
        log2_p_fail=-128,
        name="insecure_bench",
    )


def test_tfhe_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    rows = lines(capsys, "tfhe", "--set", "boolean", "--batch", "1", "--batch", "3")
    device = devices.resolved("auto").split(":")[0]  # "cpu" or "cuda"
    names = [f"tfhe_{name}" for name, _ in native.TfheBench.operations()]
    assert [row["name"] for row in rows] == [name for name in names for _ in range(2)]
    for row in rows:
        assert list(row) == FIELDS
        assert row["params"]["set"] == "boolean" and row["params"]["n"] == 677
        assert row["batch"] in (1, 3) and row["device"] == device
        assert_has_a_floor(row)
    exact = lines(capsys, "tfhe", "--set", "boolean", "--batch", "1", "--variant", "transform=ntt")
    assert [row["floor_s"] is None for row in exact] == [True] * len(names)
    assert all(row["params"]["transform"] == "ntt" for row in exact)
    with pytest.raises(jali.InvalidArgument, match="transform"):
        command.main(["tfhe", "--set", "boolean", "--variant", "ntt=two_pass"])
    with pytest.raises(jali.InvalidArgument, match="message_2_carry_2"):
        command.main(["tfhe", "--set", "n13_d5"])


@pytest.mark.parametrize(
    ("run", "params", "names"),
    [
        (tfhe_bench.gates, small_tfhe(1, 0), ["and", "xor", "mux"]),
        (tfhe_bench.gates, small_tfhe(2, 2), ["look_up"]),
        (tfhe_bench.integers, small_tfhe(2, 2), ["add", "multiply"]),
        (tfhe_bench.client, small_tfhe(2, 2), ["keygen", "prepare_keys", "encrypt", "decrypt"]),
        (tfhe_bench.engine, small_tfhe(2, 2), ["key_switch", "bootstrap"]),
    ],
)
def test_tfhe_on_small_parameters(
    run: Callable[[tfhe_bench.Case, Options], Iterator[measure.Row]],
    params: tfhe.Params,
    names: list[str],
) -> None:
    options = Options(device="cpu", seconds=0.001, batches=(2,))
    rows = list(run(tfhe_bench.Case(params, options), options))
    assert [row.name for row in rows][: len(names)] == [f"tfhe_{name}" for name in names]
    for row in rows:
        assert row.params["set"] == "insecure_bench" and row.params["N"] == 512
        assert row.batch == (1 if row.name in ("tfhe_keygen", "tfhe_prepare_keys") else 2)
        if run is not tfhe_bench.client:
            assert_has_a_floor(dataclasses.asdict(row))


def test_wrong_results_of_tfhe_have_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(device="cpu", seconds=0.001, batches=(2,))
    case = tfhe_bench.Case(small_tfhe(2, 2), options)
    sides = tfhe_bench.Sides(case)
    values = np.array([1, 2])
    given = (sides.given(values),)

    def body(e: tfhe.Evaluator, x: tfhe.EncryptedArray) -> tfhe.EncryptedArray:
        return e.apply(lambda v: 15 - v, x)

    assert sides.measure("right", body, given, 15 - values).batch == 2
    with pytest.raises(jali.InternalError, match="2 of 2 results are wrong"):
        sides.measure("wrong", body, given, values)

    class Wrong(native.TfheBench):
        def check(self, operation: str, batch: int) -> bool:
            return False

    monkeypatch.setattr(native, "TfheBench", Wrong)
    with pytest.raises(jali.InternalError, match="a result is wrong"):
        next(tfhe_bench.engine(case, options))


def test_the_cost_of_operations_of_tfhe() -> None:
    """As backend/trace/cost.h has it: a step transforms 4 digits and 2 sums, of 256 points each."""
    params = small_tfhe(2, 2)
    bench = native.TfheBench(params.to_bytes(), "cpu")
    both = bench.cost("switch_bootstrap", 3)
    assert both["complex_butterflies"] == 3 * 48 * 6 * 128 * 8
    assert both["complex_products"] == 3 * 48 * 4 * 2 * 256
    assert both["mults"] == 3 * 512 * 4 * 49
    key = 512 * 4 * 49 * 4  # an engine may pad its rows
    assert key <= bench.cost("key_switch", 3)["bytes"] - 3 * (513 * 8 + 49 * 4) < 1.5 * key
    assert all(bench.check(name, 5) for name, _ in bench.operations())
    for wrong in (lambda: bench.check("nothing", 1), lambda: bench.check("bootstrap", 0)):
        with pytest.raises(jali.InvalidArgument):
            wrong()


def test_import_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    rows = lines(capsys, "import")
    assert [row["params"]["module"] for row in rows] == ["jali", "numpy"]
    assert all(row["min_s"] > 0 for row in rows)


def test_an_installation_without_the_extension_says_how_to_build_it() -> None:
    code = (
        "import sys; sys.modules['jali._jali_bench'] = None\n"
        "from jali.cli import main\n"
        "raise SystemExit(main(sys.argv[1:]))"
    )
    for words in (["bench", "list"], ["tune", "--device", "cpu"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert "JALI_BENCH_MODULE=ON" in done.stderr and done.stderr.startswith("error: ")


def test_costs_are_measured_without_the_extension() -> None:
    code = (
        "import sys; sys.modules['jali._jali_bench'] = None\n"
        "from jali.cli import tune\n"
        "tune.measured.params_of = lambda log_n, word: (log_n, word)\n"
        "tune.measured.table_of = lambda params, device, seconds: {'rotate': [(1, 5.0)]}\n"
        "tune.measured.keep = lambda *_: 'nowhere'\n"
        "raise SystemExit(tune.main(['--costs', '--device', 'cpu']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "wrote nowhere" in done.stderr, done.stderr


def test_overhead(capsys: pytest.CaptureFixture[str]) -> None:
    rows = lines(capsys, "overhead")
    assert {row["params"]["operation"] for row in rows} == {
        "add",
        "negate",
        "array_add",
        "array_negate",
    }


def test_tracking(capsys: pytest.CaptureFixture[str]) -> None:
    rows = lines(capsys, "tracking")
    assert [(row["params"]["depth"], row["params"]["operation"]) for row in rows] == [
        (depth, operation) for depth in (1, 2, 3) for operation in ("add", "track")
    ]


def test_profile_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        command.main(["rotate", "--set", "n13_d5", "--seconds", "0.001", "--profile", "--json"])
        == 0
    )
    out, err = capsys.readouterr()
    rows = [json.loads(line) for line in out.splitlines()]
    assert all(row["name"] == "rotate" for row in rows)
    assert "engine operations" in err and "share" in err
    on_gpu = rows[0]["device"] == "cuda"
    assert ("kernels, each alone" in err) == on_gpu
    for name, says in (("key_switch", "kernels, each alone"), ("sample_uniform", "the host")):
        asked = ("--log-n", "11", "--limbs", "3", "--seconds", "0.001", "--profile", "--json")
        assert command.main([name, *asked]) == 0
        assert (says in capsys.readouterr().err) == on_gpu


def test_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--set", "log_n=12,depth=2,scale_bits=22,word=w32", "--level", "1", "--level", "2")
    rows = lines(capsys, "rotate", *asked, "--batch", "1", "--batch", "2", "--threads", "1")
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert {axis: len(plot.series(rows, axis)) for axis in plot.AXES} == {
        "limbs": 2,
        "batch": 2,
        "log_n": 0,
    }
    # For each N the plot shows the row with the most limbs, and the faster one if two rows have the
    # same.
    at = [(12, 3, 2.0), (13, 6, 8.0), (13, 6, 5.0), (14, 11, 9.0), (14, 3, 1.0)]
    made = [
        {
            **rows[0],
            "batch": 2,
            "median_s": s,
            "params": {"word": "w32", "log_n": n, "limbs": limbs},
        }
        for n, limbs, s in at
    ]
    ((label, points),) = plot.series(made, "log_n").items()
    assert points == [(12, 1.0), (13, 2.5), (14, 4.5)] and "batch=2 limbs=3..11" in label
    for bad in ("nonsense", "", "[1]"):
        other = tmp_path / "bad.jsonl"
        other.write_text(bad)
        with pytest.raises(jali.InvalidArgument):
            command.main(["plot", str(other)])
    with pytest.raises(jali.InvalidArgument):
        command.main(["plot", str(tmp_path / "missing")])
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    assert command.main(["plot", str(file), "-o", str(tmp_path / "rows.png")]) == 0
    with image.open(tmp_path / "rows.png") as picture:
        assert picture.format == "PNG"


def test_matvec_on_a_small_layer() -> None:
    from jali.bench import matvec

    row = matvec.layer("small", (20, 60), Options(seconds=0.001))
    assert_has_a_floor(dataclasses.asdict(row))
    assert row.params["rotation_keys"] >= 1
    assert row.params["key_bytes"] > 0


def test_a_small_layer_by_the_compiler() -> None:
    from jali.bench import matvec

    row = matvec.compiled_layer("small", (20, 60), Options(device="cpu", seconds=0.001))
    assert row.params["depth"] == 1 and row.params["security"] >= 128
    assert row.precision_bits is not None and row.precision_bits > matvec.COMPILED_BITS - 1
    assert row.params["plaintext_bytes"] > 0 and row.params["key_bytes"] > 0
    with pytest.raises(jali.InvalidArgument, match="RNNT-FC0"):
        next(matvec.matvec_compiled(Options(sets=("nothing",))))


def test_unknown_names() -> None:
    with pytest.raises(jali.InvalidArgument, match="list"):
        command.main(["nothing"])
    with pytest.raises(jali.InvalidArgument, match="n13_d5"):
        command.main(["hadd", "--set", "nothing"])
    with pytest.raises(jali.InvalidArgument, match="--threads"):
        command.main(["hadd", "--threads", "0"])
    with pytest.raises(jali.InvalidArgument, match="FAMILY=NAME"):
        command.main(["ntt", "--variant", "two_pass"])


def test_wrong_results_have_no_figure() -> None:
    right = np.linspace(0, 1, 100)
    assert measure.accept("x", right + 1e-6 * (-1) ** np.arange(100), right, 20) == pytest.approx(
        -np.log2(1e-6), abs=0.1
    )
    with pytest.raises(jali.InternalError, match="off by"):
        measure.accept("x", right + 1e-3, right, 20)
    with pytest.raises(jali.InternalError):
        measure.accept("x", right * np.nan, right, 20)


def test_a_floor_counts_work() -> None:
    def seconds(threads: int = 1, **work: float) -> float:
        return floors.of(Work(**work), "w64", "cpu/portable", threads).seconds

    one = seconds(mults=1e6)
    assert one > 0
    assert seconds(mults=1e6, threads=2) == pytest.approx(one / 2)
    stream, butterflies = seconds(stream_bytes=1e6), seconds(complex_butterflies=1e6)
    assert seconds(mults=1e6, stream_bytes=2e6, complex_butterflies=3e6) == pytest.approx(
        one + 2 * stream + 3 * butterflies
    )
    # The floor is the longer of memory time and computing time: first with many bytes, then with
    # one byte.
    moving = floors.of(Work(bytes=1e9), "w64", "cpu/portable", 1)
    assert moving.seconds > 0 and moving.kind.startswith(floors.IN_MEMORY)
    assert seconds(bytes=1e9, mults=1) == moving.seconds
    assert seconds(bytes=1, mults=1e6) == one


def test_rates_are_measured_for_every_instruction_set() -> None:
    for isa in _jali.device.cpu_isas():
        for log_bytes in (9, 12, 20):
            assert 1e8 < native.read_rate(isa, 1 << log_bytes) < 1e13
        assert 1e6 < native.complex_butterfly_rate(isa) < 1e13
    assert 1e6 < native.stream_rate() < 1e13
    with pytest.raises(jali.Error):
        native.read_rate("nothing", 4096)


@pytest.mark.parametrize("word", ["w32", "w52"])
def test_work_of_the_clients_side(word: str) -> None:
    """The trace counts the work that the definitions need."""
    name = f"log_n=12,depth=1,scale_bits=25,word={word}"
    params = sets.load(name)
    n, level, batch = 2 * params.slots, 1, 3
    assert params.log_n == 12
    limbs, every = len(params.level(level).primes), len(params.primes)
    transform = n // 2 * params.log_n
    case = next(Case.all_of(name, Options(levels=(level,), batches=(batch,)), 1))
    found = {step.name: step for step in client._steps(case, Options())}
    wide = [8 if q >= 1 << 32 else 4 for q in params.primes]
    uniform = sum(wide[i] for i in params.level(level).primes) * n
    complex_butterflies = batch * n // 4 * (params.log_n - 1)

    encode, decode = found["encode"].work, found["decode"].work
    assert encode.mults == batch * limbs * (n + transform)  # for residues and for transforms
    assert encode.stream_bytes == decode.stream_bytes == 0
    assert encode.complex_butterflies == decode.complex_butterflies == complex_butterflies
    assert encode.bytes >= batch * (16 * params.slots + limbs * n * 4)
    # The stream gives the uniform half a, and 8 bytes for each coefficient of the error. Beside the
    # encoding there are the error's transforms and the product a s.
    encrypt = found["encrypt"].work
    assert encrypt.stream_bytes == batch * (uniform + 8 * n)
    assert encrypt.mults == encode.mults + batch * limbs * (transform + n)
    assert encrypt.complex_butterflies == complex_butterflies
    assert found["decrypt"].work.mults == decode.mults + batch * limbs * n  # c1 s
    # For each digit the stream gives a uniform half and an error over all primes; their transforms
    # are the least work.
    keygen, digits = found["keygen"].work, params.dnum
    assert keygen.stream_bytes == digits * (sum(wide) * n + 8 * n)
    assert keygen.mults > digits * every * (transform + n)
    assert keygen.complex_butterflies == 0
    # The bytes count what is read and what is written.
    blob = found["serialise"].about["bytes"]
    assert blob < found["serialise"].work.bytes < found["deserialise"].work.bytes
    assert found["deserialise"].work.stream_bytes == batch * uniform
