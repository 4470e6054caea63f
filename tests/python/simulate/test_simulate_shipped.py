"""The machine files that come with Jali: they load, every number has a source, and what a source
names is there."""

import json
import math
import re
import tomllib
from pathlib import Path

import pytest

from jali.simulate.machine import MODES, Machine, shipped
from jali.simulate.papers import paper
from jali.simulate.report import energy
from jali.simulate.scheduler import schedule
from jali.simulate.steps import Kind, StepsBuilder
from jali.simulate.strix import bootstrap, published_sets
from jali.simulate.workloads import strix

ROOT = Path(__file__).resolve().parents[3]
NAMES = ("h100", "mv_set_a", "mv_set_bc", "strix", "strix_nofold")


def test_the_five_machines_are_there() -> None:
    assert set(NAMES) <= set(shipped())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_a_machine_loads_and_its_numbers_have_sources(name: str, mode: str) -> None:
    machine = Machine.load(name, mode)
    assert machine.name == name
    for number in machine.numbers():
        word, _, place = number.source.partition(":")
        if word != "derived":
            assert place, f"{number.path} says {word}, and not where"


@pytest.mark.parametrize("name", NAMES)
def test_files_that_sources_name_are_in_the_repository(name: str) -> None:
    for number in Machine.load(name).constants("measured"):
        for file in re.findall(r"(?:bench|docs)/[\w./-]+\.\w+", number.source):
            assert (ROOT / file).is_file(), f"{number.path} names {file}"


def test_the_record_of_the_h100_has_the_figures_of_its_file() -> None:
    record = ROOT / "bench" / "results" / "h100-2026-11-22-table.jsonl"
    rows = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    transforms = next(r for r in rows if r.get("what", "").startswith("NTT, N = 2^16"))
    machine = Machine.load("h100")
    stated = float(machine.parameters["limbs_a_second"])
    assert stated == pytest.approx(transforms["value"], rel=1e-3)
    cycles = machine.units["stream"].cycles(Kind.NTT, 1 << 16, 1)
    assert float(machine.frequency_hz) / cycles == pytest.approx(stated, rel=2e-3)
    record = ROOT / "bench" / "results" / "h100-2026-11-22-ntt.jsonl"
    kind = json.loads(record.read_text(encoding="utf-8").splitlines()[0])["floor_kind"]
    assert f"at {float(machine.parameters['copy_tbs']):.2f} TB/s" in kind


def test_the_h100_transforms_as_fast_as_its_record() -> None:
    """Transforms alone, from one limb to batches that fill the chip: one latency and one rate are
    within 25% of all of them."""
    machine = Machine.load("h100")
    record = ROOT / "bench" / "results" / "h100-2026-11-22-ntt.jsonl"
    rows = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    alone = batches = 0
    for row in rows:
        params = row["params"]
        if params["word"] != "w32" or params.get("variant", "auto") != "auto":
            continue
        n, count = 1 << params["log_n"], params["limbs"] * row["batch"]
        if params["log_n"] == 17 or (row["batch"] == 1 and params["log_n"] < 14):
            continue  # at 2^17 a transform is two kernels; below 2^14 the processor launches more slowly than they run
        kind = Kind.NTT if row["name"] == "ntt" else Kind.INTT
        b = StepsBuilder()
        b.append(kind, n, count)
        assert schedule(b.build(), machine).seconds == pytest.approx(row["median_s"], rel=0.25)
        batches += row["batch"] > 1
        alone += row["batch"] == 1
    assert alone == 30 and batches == 10
    (stated,) = (
        row["median_s"]
        for row in rows
        if row["name"] == "ntt"
        and row["batch"] == 1
        and (row["params"]["word"], row["params"]["log_n"], row["params"]["limbs"])
        == ("w32", 16, 4)
    )
    assert float(machine.parameters["transform_s"]) == stated


LATENCIES = tomllib.loads((ROOT / "hwmodel" / "latencies.toml").read_text(encoding="utf-8"))
#: Units that are parts of others, or made of them.
INSIDE = {
    "mod_mul": "ntt_core and mac_array",
    "spn": "ntt_engine",
    "fft_butterfly": "fft",
    "key_switch": "of ntt_engine, mac_array and their bus",
}


@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_the_rtl_are_those_that_its_tests_hold(name: str) -> None:
    """hwmodel/tests holds latencies.toml equal to what simulation shows, and this holds the
    machines equal to latencies.toml."""
    for number in Machine.load(name).constants("rtl"):
        unit, _, figure = number.source.removeprefix("rtl:").partition(".")
        assert float(number) == LATENCIES[unit][figure], number.path


def test_every_unit_of_the_rtl_is_a_constant_of_a_machine() -> None:
    cited = {
        number.source.removeprefix("rtl:").partition(".")[0]
        for name in NAMES
        for number in Machine.load(name).constants("rtl")
    }
    assert cited | set(INSIDE) == set(LATENCIES)
    assert not cited & set(INSIDE)


@pytest.mark.parametrize("name", ["mv_set_a", "mv_set_bc"])
def test_a_pass_is_that_of_the_rtl(name: str) -> None:
    """The core's 19 cycles, which are the paper's, and the network's 4, which were calibrated, are
    the overhead of a pass of the RTL."""
    machine = Machine.load(name)
    timing = machine.units["ntt"].kinds[Kind.NTT]
    engine = LATENCIES["ntt_engine"]
    assert timing.fill.at(8192) == engine["pass_overhead"]
    # log2 N (N/C + pass_overhead) from the last beat in, and latency more to the first beat out.
    assert machine.units["ntt"].cycles(Kind.NTT, 8192, 1) == 13 * (512 + engine["pass_overhead"])
    assert timing.latency.at(8192) == engine["latency"]
    tree = machine.units["adder"].kinds[Kind.REDUCE].latency
    levels = math.log2(float(machine.parameters["g"]))
    assert float(tree) == levels * LATENCIES["adder_tree"]["latency_per_level"]


@pytest.mark.parametrize("name", ["strix", "strix_nofold"])
def test_the_stages_of_strix_are_those_of_the_rtl(name: str) -> None:
    """Each as latencies.toml says: of P points, 4 at a time, P/4 - 1 + log2 P latency_per_stage;
    trees have log2 levels."""
    machine = Machine.load(name)

    shown = {
        (unit.name, kind): timing.latency.at(2048)
        for unit in machine.units.values()
        for kind, timing in unit.kinds.items()
    }
    points = 2048 // int(float(machine.parameters["fold"]))
    stages = points.bit_length() - 1
    transform = points // 4 - 1 + stages * LATENCIES["fft"]["latency_per_stage"]
    decomposer = LATENCIES["decomposer"]["latency"]
    switch = LATENCIES["ks_mac"]["latency_without_tree"] + 3  # CLP 8
    assert shown == {
        ("rotator", Kind.ROTATE): LATENCIES["rotator"]["latency"],
        ("decomposer", Kind.DECOMPOSE): decomposer,
        ("decomposer", Kind.OTHER): decomposer,
        ("fft", Kind.FFT): transform,
        ("vma", Kind.VMA): LATENCIES["vma"]["latency_without_tree"] + 1,  # PLP 2
        ("ifft", Kind.IFFT): transform,
        ("accumulator", Kind.ACCUMULATE): LATENCIES["accumulator"]["latency"],
        ("ks_decomposer", Kind.KEYSWITCH_DECOMPOSE): decomposer,
        ("ks_vma", Kind.KEYSWITCH_MAC): switch,
        ("ks_vma", Kind.LINEAR): switch,
        ("ks_accumulator", Kind.KEYSWITCH_ACCUMULATE): 0,  # ks_mac has the accumulator inside
        ("key_loader", Kind.EXPAND): 0,  # no unit of the paper
    }


@pytest.mark.parametrize("name", ["strix", "strix_nofold"])
def test_registers_are_those_of_both_clusters_in_strict_alone(name: str) -> None:
    """The paper's latencies leave them out. One ciphertext's key switch ends later by those of its
    three stages."""
    strict, published = (Machine.load(name, mode) for mode in ("strict", "published"))
    units = published.units.values()
    assert all(t.latency.at(2048) == 0 for unit in units for t in unit.kinds.values())
    of_switch = {
        timing.latency.path: 0
        for name, unit in strict.units.items()
        if name.startswith("ks_")
        for timing in unit.kinds.values()
    }
    tfhe = published_sets()["I"]
    alone, without = (bootstrap(m, tfhe, 1) for m in (strict, strict.changed(of_switch)))
    cycles = (alone.latency_s - without.latency_s) * float(strict.frequency_hz)
    levels = math.log2(float(strict.parameters["clp_switch"]))
    expected = LATENCIES["decomposer"]["latency"] + LATENCIES["ks_mac"]["latency_without_tree"]
    assert cycles == pytest.approx(expected + levels, abs=1e-6)
    assert alone.throughput == without.throughput


def test_registers_do_not_fit_the_printed_latencies() -> None:
    """Why `published` leaves them out: with them alone, of all limits, a digit of Table V would be
    another."""
    machine, tfhe = Machine.load("strix", "published"), published_sets()["III"]
    kept = machine.source.replace('"transform_fills", "registers",', '"transform_fills",')
    with_registers = Machine.parse(kept, "published")
    assert machine.switched_off - with_registers.switched_off == {"registers"}
    printed = paper("strix").tables["V"].cell("Strix, III", "latency").value
    shown = [f"{1e3 * bootstrap(m, tfhe).latency_s:.2f}" for m in (machine, with_registers)]
    assert shown == [f"{printed:.2f}", "0.45"]


def test_every_unit_takes_a_beat_a_cycle() -> None:
    """Machines have no interval of their own: a unit takes `lanes` elements in every cycle."""
    assert all(unit.get("interval", 1) == 1 for unit in LATENCIES.values())
    for name in ("mv_set_a", "mv_set_bc", "strix", "strix_nofold"):
        for unit in Machine.load(name).units.values():
            assert all(float(timing.interval) == 1 for timing in unit.kinds.values())


def test_every_limit_of_strix_is_used_and_named() -> None:
    strict, published = (Machine.load("strix", mode) for mode in ("strict", "published"))
    assert strict.switched_off == frozenset()
    assert published.switched_off == set(strict.limits)
    used = {number.limit for number in strict.numbers() if number.limit}
    assert used == set(strict.limits)


def test_limits_that_the_papers_ignore_name_their_contradictions() -> None:
    """Each number is that of an item of the page's list, which names the same paper."""
    page = (ROOT / "docs" / "hardware.md").read_text(encoding="utf-8")
    items = dict(re.findall(r"^(\d)\. \*\*(Strix|MV|Security)", page, re.M))
    for name in ("strix", "strix_nofold"):
        for limit in Machine.load(name, "published").switched_off:
            (number,) = re.findall(r"\(contradiction (\d)\)$", Machine.load(name).limits[limit])
            assert items[number] == "Strix", limit
    for name in ("mv_set_a", "mv_set_bc"):
        assert all("no contradiction" in text for text in Machine.load(name).limits.values())


def test_the_area_of_strix_is_that_of_table_iii() -> None:
    printed = paper("strix").tables["III"].cell("total", "area").value
    # Units are rounded to 0.01 mm2 each, six in each of eight cores.
    assert Machine.load("strix").area_mm2 == pytest.approx(printed, abs=8 * 6 * 0.005)


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"tvlp": 16}, 8 * 9.40),
        ({"clp": 8}, 8 * (0.02 + 0.28 + 7.23 + 0.63 + 0.32)),
        ({"plp": 4}, 8 * (2 * 7.23 / 4 + 4 * 0.63 / 4)),
        ({"local_mib": 1.25}, 8 * 0.92),
        ({"global_mib": 42}, 51.40),
        ({"hbm_gbs": 600}, 14.90),
        ({"clock_ghz": 2.4}, 0),
    ],
)
def test_more_of_strix_takes_more_area(changes: dict[str, float], more: float) -> None:
    """What Table III has for the part that doubles, so that a sweep compares machines of different
    cost."""
    machine = Machine.load("strix")
    assert machine.changed(changes).area_mm2 - machine.area_mm2 == pytest.approx(more, abs=1e-9)


@pytest.mark.parametrize("name", ["strix", "strix_nofold"])
@pytest.mark.parametrize("doubled", ["clp", "plp", "colp", "clock_ghz"])
def test_work_takes_the_same_energy_on_more_lanes(name: str, doubled: str) -> None:
    """Twice the lanes are busy half as long with twice the power: the energy of arithmetic is that
    of the work. PLP changes the work: it adds up as many products before they are transformed
    back."""
    machine = Machine.load(name, "published")
    faster = machine.changed({doubled: 2 * float(machine.parameters[doubled])})
    steps = strix(machine, published_sets()["I"], ciphertexts=16, batch=2, iterations=3)
    before, after = (schedule(steps, m) for m in (machine, faster))
    assert after.seconds <= before.seconds
    units = {unit for unit in machine.units if float(machine.units[unit].energy_pj)}
    assert len(units) == 6
    units -= {"ifft", "accumulator"} if doubled == "plp" else set()
    joules = [
        {part.part: part.joules for part in energy(result) if part.part in units}
        for result in (before, after)
    ]
    assert joules[0] == pytest.approx(joules[1], rel=1e-9)


@pytest.mark.parametrize("name", ["strix", "strix_nofold"])
def test_the_two_files_of_strix_differ_in_folding_alone(name: str) -> None:
    other = Machine.load("strix" if name == "strix_nofold" else "strix_nofold")
    differing = {
        ours.path
        for ours, theirs in zip(Machine.load(name).numbers(), other.numbers(), strict=True)
        if (ours.formula, ours.value) != (theirs.formula, theirs.value)
    }
    allowed = re.compile(r"parameters\.fold|units\..*\.(?:lanes|area_mm2|energy_pj)|.*\.latency")
    assert all(allowed.fullmatch(path) for path in differing), differing
    assert "parameters.fold" in differing
