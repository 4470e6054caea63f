"""Energy from counters that tests make up: the arithmetic, counters that wrap, stand still or go
back, and machines without any."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import jali
from jali import ckks
from jali.bench import energy, nvml, operations, rapl
from jali.bench.energy import Meter, Power
from jali.cli import bench as command


class Steady:
    """A counter that changes with each reading."""

    name = "a counter of readings"

    def __init__(self) -> None:
        self.readings = 0

    def read(self) -> float:
        self.readings += 1
        return float(self.readings)


class Still(Steady):
    name = "a counter that stands still"

    def read(self) -> float:
        return 7.0


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, energy.Counter]]:
    """The counters by device. Nothing that was measured before is kept."""
    chosen: dict[str, energy.Counter] = {}

    def counter(device: str) -> energy.Counter:
        if device not in chosen:
            raise jali.Unsupported("no counter")
        return chosen[device]

    caches = (energy._counters, energy._idle_watts)
    for cache in caches:
        cache.cache_clear()
    monkeypatch.setattr(energy, "counter", counter)
    monkeypatch.setattr(command, "counter", counter)
    monkeypatch.setattr(energy, "IDLE_S", 0.05)
    monkeypatch.setattr(energy, "SETTLE_S", 0.01)
    yield chosen
    for cache in caches:
        cache.cache_clear()


# --- arithmetic ----------------------------------------------------------------------------------


def test_power_is_between_the_first_and_the_last_change() -> None:
    # 3 J at 1 s, 5 J more at 2 s, and nothing is known of what comes before and after.
    readings = [(0.0, 10.0), (0.5, 10.0), (1.0, 13.0), (1.5, 13.0), (2.0, 18.0), (2.9, 18.0)]
    assert energy.power(readings, "it") == (5.0, 1.0)


def test_joules_of_an_operation() -> None:
    spent = energy.energy(Power("it", 300.0, 1.0, 100.0, 50.0), seconds=0.02, batch=4)
    assert spent.joules == pytest.approx(300 * 0.02 / 4)
    assert spent.per_joule == pytest.approx((4 / 0.02) / 300)  # operations a second, over watts
    assert spent.joules_above_idle == pytest.approx(200 * 0.02 / 4)
    assert spent.per_joule_above_idle == pytest.approx((4 / 0.02) / 200)
    assert spent.host_watts == 50.0


def test_no_rate_where_the_idle_device_takes_as_much() -> None:
    spent = energy.energy(Power("it", 100.0, 1.0, 101.0), seconds=0.02, batch=1)
    assert spent.joules_above_idle < 0 and spent.per_joule_above_idle is None


@pytest.mark.parametrize(
    ("joules", "message"),
    [
        ([7.0, 7.0, 7.0], "changed 0 times"),
        ([7.0, 7.0, 8.0], "changed 1 times in 2.00 s.*more --seconds"),
        ([7.0, 8.0, 1.0, 2.0], "went back"),
        ([], "changed 0 times"),
    ],
)
def test_counters_from_which_no_power_follows(joules: list[float], message: str) -> None:
    with pytest.raises(jali.Unsupported, match=message):
        energy.power([(float(t), j) for t, j in enumerate(joules)], "the counter")


def test_a_meter_reads_while_its_block_runs() -> None:
    counter = Steady()
    with Meter([counter]) as meter:
        while counter.readings < 10:
            time.sleep(0.001)
    watts, seconds = meter.watts()
    assert watts * seconds == pytest.approx(counter.readings - 2)  # from the second to the last


def test_a_meter_raises_what_its_counter_raised() -> None:
    class Broken(Steady):
        def read(self) -> float:
            raise jali.Unsupported("the GPU fell off the bus")

    with Meter([Broken()]) as meter:
        time.sleep(0.02)
    with pytest.raises(jali.Unsupported, match="fell off"):
        meter.watts()


# --- RAPL ----------------------------------------------------------------------------------------


def package(root: Path, name: str, microjoules: int, most: int = 1000) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "max_energy_range_uj").write_text(f"{most}\n")
    (folder / "energy_uj").write_text(f"{microjoules}\n")
    return folder / "energy_uj"


def test_packages_are_summed_and_wrap(tmp_path: Path) -> None:
    first = package(tmp_path, "intel-rapl:0", 990)
    second = package(tmp_path, "intel-rapl:1", 5)
    part = package(tmp_path, "intel-rapl:0:0", 0)  # is in the package already
    processors = rapl.Processors(tmp_path)
    assert processors.read() == 0
    for file, value in ((first, 20), (second, 105), (part, 999)):  # the first wrapped at 1000
        file.write_text(str(value))
    assert processors.read() == pytest.approx((30 + 100) / 1e6)
    first.write_text("21")
    assert processors.read() == pytest.approx((30 + 100 + 1) / 1e6)


def test_a_machine_without_rapl(tmp_path: Path) -> None:
    with pytest.raises(jali.Unsupported, match=r"intel-rapl.*leave out --energy"):
        rapl.Processors(tmp_path)


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = package(tmp_path, "intel-rapl:0", 1)
    file.write_text("many")
    with pytest.raises(jali.Unsupported, match="cannot be read"):
        rapl.Processors(tmp_path)
    file.unlink()
    with pytest.raises(jali.Unsupported, match="cannot be read"):
        rapl.Processors(tmp_path)

    def forbidden(self: Path, encoding: str) -> str:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_text", forbidden)  # root may read every file
    with pytest.raises(jali.Unsupported, match="chmod"):
        rapl.Processors(tmp_path)


# --- NVML ----------------------------------------------------------------------------------------


class Nvml:
    """The functions of NVML that are used. Each call advances the counter by 1,500 mJ."""

    def __init__(self, status: int = 0) -> None:
        self.millijoules, self.status, self.bus_id = 0, status, b""

    def nvmlInit_v2(self) -> int:
        return 0

    def nvmlDeviceGetHandleByPciBusId_v2(self, bus_id: bytes, handle: object) -> int:
        self.bus_id = bus_id
        return 0

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: object, out: object) -> int:
        self.millijoules += 1500
        ctypes.cast(out, ctypes.POINTER(ctypes.c_ulonglong))[0] = self.millijoules  # type: ignore[arg-type]
        return self.status

    @property
    def nvmlErrorString(self) -> Callable[[int], bytes]:
        class Text:
            restype: object = None

            def __call__(self, status: int) -> bytes:
                return {3: b"Not Supported"}[status]

        return Text()


class Cuda:
    def __init__(self, devices: int = 1) -> None:
        self.devices = devices

    def cuInit(self, flags: int) -> int:
        return 0

    def cuDeviceGet(self, device: object, index: int) -> int:
        return 0 if index < self.devices else 101

    def cuDeviceGetPCIBusId(self, text: ctypes.Array, length: int, device: object) -> int:
        text.value = b"0000:1B:00.0"
        return 0


def libraries(monkeypatch: pytest.MonkeyPatch, **found: object) -> None:
    def library(name: str) -> object:
        short = name.split(".")[0].replace("-", "_")
        if short not in found:
            raise OSError(name)
        return found[short]

    monkeypatch.setattr(nvml.ctypes, "CDLL", library)


def test_the_counter_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Nvml()
    libraries(monkeypatch, libnvidia_ml=fake, libcuda=Cuda())
    gpu = nvml.Gpu(0)
    assert fake.bus_id == b"0000:1B:00.0"  # NVML's own numbers are others
    before = gpu.read()
    assert gpu.read() - before == 1.5


def test_machines_without_a_counter_of_their_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    libraries(monkeypatch)
    with pytest.raises(jali.Unsupported, match=r"libnvidia-ml.so.1.*install the driver"):
        nvml.Gpu(0)
    libraries(monkeypatch, libnvidia_ml=Nvml(status=3), libcuda=Cuda())
    with pytest.raises(jali.Unsupported, match=r"cannot be read \(Not Supported\)"):
        nvml.Gpu(0)
    libraries(monkeypatch, libnvidia_ml=Nvml(), libcuda=Cuda(devices=1))
    with pytest.raises(jali.Unsupported, match="no device cuda:1"):
        nvml.Gpu(1)


# --- the command ---------------------------------------------------------------------------------

ARGUMENTS = ["--set", "n13_d5", "--device", "cpu", "--energy", "--seconds", "0.2"]


def test_rows_have_energy(
    counters: dict[str, energy.Counter], capsys: pytest.CaptureFixture[str]
) -> None:
    counters["cpu"] = Steady()
    assert command.main(["hadd", *ARGUMENTS, "--batch", "2", "--json"]) == 0
    (row,) = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    spent = row["energy"]
    assert spent["counter"] == Steady.name and spent["host_watts"] is None
    # The mean time is between the least and the largest.
    assert spent["joules"] * 2 / spent["watts"] >= row["min_s"]
    assert spent["per_joule"] == pytest.approx(1 / spent["joules"])


def test_the_table_shows_energy(
    counters: dict[str, energy.Counter], capsys: pytest.CaptureFixture[str]
) -> None:
    counters["cpu"] = Steady()
    assert command.main(["hadd", *ARGUMENTS]) == 0
    out = capsys.readouterr().out
    assert "op/s/W" in out and "above idle" in out and Steady.name in out


def test_the_table_of_tensorfhe(
    counters: dict[str, energy.Counter], capsys: pytest.CaptureFixture[str]
) -> None:
    counters["cpu"] = Steady()
    assert command.main(["tensorfhe", *ARGUMENTS, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    names = ["hadd", "cmult", "hmult", "hrotate", "rescale", "conjugate"]
    assert [row["name"] for row in rows] == names
    assert all(row["energy"]["joules"] > 0 for row in rows)


def test_rows_of_the_table_have_evaluators_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two for each row, one after the other: what the one before keeps on a GPU is gone when the
    next is made."""
    alive: list[int] = []
    made: list[weakref.ref[ckks.Evaluator]] = []

    class Watched(ckks.Evaluator):
        def __init__(self, *arguments: object, **options: object) -> None:
            alive.append(sum(one() is not None for one in made))
            super().__init__(*arguments, **options)  # type: ignore[arg-type]
            made.append(weakref.ref(self))

    monkeypatch.setattr(operations.ckks, "Evaluator", Watched)
    gc.disable()
    try:
        assert command.main(["tensorfhe", *ARGUMENTS[:4], "--seconds", "0.01"]) == 0
    finally:
        gc.enable()
    assert alive == [0] * 12


def test_bootstraps_of_tfhe_have_energy(
    counters: dict[str, energy.Counter], capsys: pytest.CaptureFixture[str]
) -> None:
    counters["cpu"] = Steady()
    arguments = ["--set", "boolean", "--batch", "1", *ARGUMENTS[2:], "--json"]
    for name in ("tfhe", "tfhe_gates"):
        assert command.main([name, *arguments]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"tfhe_bootstrap", "tfhe_and"} <= {row["name"] for row in rows}
    assert all(row["energy"]["joules"] > 0 for row in rows)


def test_a_counter_that_stands_still(counters: dict[str, energy.Counter]) -> None:
    counters["cpu"] = Still()
    with pytest.raises(jali.Unsupported, match="stands still changed 0 times"):
        command.main(["hadd", *ARGUMENTS])


def test_the_host_of_a_gpu_is_measured_where_it_can_be(
    counters: dict[str, energy.Counter],
) -> None:
    counters["cuda:0"] = Steady()

    def run(seconds: float) -> list[float]:
        time.sleep(seconds)
        return [seconds]

    assert energy.while_running("cuda:0", 0.1, run)[1].host_watts is None
    energy._counters.cache_clear()
    counters["cpu"] = Steady()
    host = energy.while_running("cuda:0", 0.1, run)[1].host_watts
    assert host is not None and host > 0


@pytest.mark.parametrize("name", ["hadd", "tfhe", "bootstrap"])
def test_without_a_counter_nothing_is_measured(
    name: str, counters: dict[str, energy.Counter], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(jali.Unsupported, match="no counter"):
        command.main([name, "--device", "cpu", "--energy"])
    assert capsys.readouterr().out == ""


def test_benchmarks_that_measure_no_energy(counters: dict[str, energy.Counter]) -> None:
    with pytest.raises(jali.InvalidArgument, match=r"ntt does not measure energy.*hadd"):
        command.main(["ntt", "--energy"])


@pytest.mark.skipif(not os.path.exists("/dev/nvidia0"), reason="there is no NVIDIA GPU")
def test_the_counter_of_this_gpu_runs() -> None:
    counter = energy.counter("cuda:0")
    with Meter([counter]) as meter:
        time.sleep(0.6)
    assert 10 < meter.watts()[0] < 2000
