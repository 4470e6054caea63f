"""Reports, pictures, sweeps and the command ``jali simulate``."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jali
from jali.cli import main
from jali.simulate import Entity, Kind, Machine, StepsBuilder, gantt, report
from jali.simulate.scheduler import schedule
from jali.simulate.steps import Steps
from jali.simulate.sweeps import Point, grid, pareto, read_sweep, sweep, write_csv

MACHINE = """
format = 1
name = "energy"
frequency_hz = { value = 1e9, source = "paper:I" }
leakage_w = { value = 2, source = "assumed" }
[units.mac]
count = { value = 1, source = "paper:I" }
lanes = { value = 8, source = "assumed:lanes" }
energy_pj = { value = 10, source = "paper:I" }
leakage_w = { value = 1, source = "paper:I" }
area_mm2 = { value = 4, source = "paper:I" }
memory = "buffer"
[units.mac.kinds.MAC]
words = { value = 3, source = "paper:I" }
[widths]
coefficient = { value = 4, source = "paper:I" }
[memories.buffer]
bytes = { value = 64, source = "paper:I" }
holds = ["key"]
energy_pj_byte = { value = 0.5, source = "paper:I" }
area_mm2 = { value = 2, source = "paper:I" }
[channels.dram]
carries = ["all"]
bytes_a_second = { value = 4e9, source = "calibrated:I" }
energy_pj_byte = { value = 20, source = "assumed" }
[parts.phy]
area_mm2 = { value = 1, source = "paper:I" }
"""


def steps() -> Steps:
    b = StepsBuilder()
    for i in range(4):
        load = b.load(Entity.KEY, 32, i % 2)
        b.append(Kind.MAC, 800, after=(load,))
    return b.build()


def machine() -> Machine:
    return Machine.parse(MACHINE)


def test_energy_by_hand() -> None:
    """400 busy cycles at 10 pJ; 3,200 elements x 3 words x 4 bytes and 4 loads of 32 bytes at 0.5
    pJ; 64 bytes of DRAM at 20 pJ; leakage."""
    result = schedule(steps(), machine())
    assert result.span == 8 + 400
    found = {e.part: e.joules * 1e12 for e in report.energy(result)}
    time = 408e-9
    assert found == pytest.approx(
        {
            "mac": 4000,
            "mac leakage": time * 1e12,
            "buffer by mac": 3200 * 12 * 0.5,
            "buffer": 128 * 0.5,
            "channel dram": 64 * 20,
            "leakage": 2 * time * 1e12,
        }
    )
    ranges = {e.part: (e.low / e.joules, e.high / e.joules) for e in report.energy(result)}
    assert ranges["channel dram"] == ranges["leakage"] == (0.5, 2) and ranges["mac"] == (1, 1)


def test_lines_of_a_report() -> None:
    made = report.make_report(lambda m: steps(), machine())
    found = list(report.lines(made, "four"))
    head = found[0]
    assert (head["cycles"], head["steps"], head["area_mm2"]) == (408, 8, 7)
    assert head["bound"] == "critical path" or head["bound_seconds"] <= head["seconds"]
    by = {(line["what"], line["name"]): line for line in found[1:]}
    assert by["unit", "mac"]["busy"] == pytest.approx(400 / 408)
    assert by["unit", "mac"]["stalls"] == pytest.approx({"dram": 8 / 408})
    key = by["entity", "key"]
    assert (key["asked_bytes"], key["read_bytes"], key["written_bytes"]) == (128, 64, 0)
    assert by["memory", "buffer"]["peak_bytes"] == 64
    # 10% more lanes: 91 cycles a step instead of 100. 10% more bandwidth: the first load takes 8
    # cycles still.
    assert by["constant", "units.mac.lanes"]["change"] == pytest.approx((8 + 4 * 91) / 408 - 1)
    assert ("constant", "channels.dram.energy_pj_byte") not in by
    shares = [line for line in found if line["what"] in ("unit", "channel", "bus")]
    assert all(s["busy"] + sum(s["stalls"].values()) == pytest.approx(1) for s in shares)
    json.dumps(found)


def test_what_a_unit_is_busy_with(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The kinds of a unit's steps add up to its busy time: 800 cycles of MAC and 200 of MUL, of
    1,000."""
    b = StepsBuilder()
    first = b.append(Kind.MAC, 800, 8)
    b.append(Kind.MUL, 800, 2, after=(first,))
    m = Machine.parse(MACHINE.replace("kinds.MAC]", 'kinds."MAC+MUL"]'))
    made = report.make_report(lambda _: b.build(), m)
    found = {r["name"]: r for r in report.lines(made, "two") if r["what"] == "kind"}
    assert {name: r["busy"] for name, r in found.items()} == {"MAC": 0.8, "MUL": 0.2}
    assert {r["unit"] for r in found.values()} == {"mac"}
    report.show(made, "two")
    text = capsys.readouterr().out
    assert "of it MAC" in text and "80.0%" in text and "20.0%" in text


def test_roofs_by_hand() -> None:
    """3,200 elements for 64 bytes of DRAM: 50 a byte, 8e9 a second at most, and 3,200 in 408 ns."""
    made = report.make_report(lambda m: steps(), machine())
    (roof,) = made.roofs
    assert (roof.unit, roof.elements_a_byte, roof.bandwidth) == ("mac", 50, 4e9)
    assert roof.peak == pytest.approx(8e9) and roof.reached == pytest.approx(3200 / 408e-9)
    (line,) = (x for x in report.lines(made, "four") if x["what"] == "roof")
    assert line["reached_a_second"] == roof.reached


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 2000), st.integers(1, 9), st.integers(0, 400)), max_size=8)
)
def test_no_point_is_above_its_roof(work: list[tuple[int, int, int]]) -> None:
    """Also where a pass takes more than a cycle for an element, and where lanes are not filled."""
    b = StepsBuilder()
    for i, (n, count, size) in enumerate(work):
        load = (b.load(Entity.KEY, size, i),) if size else ()
        b.append(Kind.NTT, 1 << n.bit_length(), count, after=load)
    text = MACHINE.replace("[units.mac.kinds.MAC]", "[units.mac.kinds.NTT]\npasses = 'log2n'")
    m = Machine.parse(text)
    if not work:
        return
    made = report.make_report(lambda _: b.build(), m)
    for roof in made.roofs:
        most = min(roof.peak, roof.elements_a_byte * roof.bandwidth)
        assert roof.reached <= most * (1 + 1e-9)


def test_gantt_json(tmp_path: Path) -> None:
    result = schedule(steps(), machine())
    file = tmp_path / "g.json"
    assert gantt.write(result, file) == f"wrote {file}"
    events = json.loads(file.read_text())["traceEvents"]
    bars = [e for e in events if e["ph"] == "X"]
    assert len(bars) == 4 + 2  # two of the loads are hits
    rows = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    macs = [e for e in bars if rows[e["tid"]] == "mac"]
    assert sum(e["dur"] for e in macs) == pytest.approx(0.4) and macs[0]["ts"] == pytest.approx(
        8e-3
    )
    counters = [e for e in events if e["ph"] == "C" and e["name"] == "bytes in buffer"]
    assert max(e["args"]["bytes"] for e in counters) == 64
    with pytest.raises(jali.InvalidArgument, match="ends in"):
        gantt.write(result, tmp_path / "g.svg")
    with pytest.raises(jali.FileError):
        gantt.write(result, tmp_path / "none" / "g.json")


def test_bandwidth_over_time_adds_up() -> None:
    result = schedule(steps(), machine())
    shares = gantt.bandwidth(result, 51)["dram"]
    assert shares.sum() * 408 / 51 == pytest.approx(16) and shares[:2].tolist() == [1, 1]


def test_pictures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = schedule(steps(), machine())
    gantt.write(result, tmp_path / "g.png")
    assert (tmp_path / "g.png").read_bytes()[:4] == b"\x89PNG"


def test_sweeps() -> None:
    assert read_sweep("hbm_gbs=150:1200:150") == ("hbm_gbs", [150.0 * i for i in range(1, 9)])
    assert read_sweep("clp=2,4,8") == ("clp", [2, 4, 8])
    for wrong in ("clp", "clp=", "=3", "clp=1:2", "clp=2:1:1", "clp=1:2:0", "clp=1:2e9:1", "clp=a", "clp=nan"):  # fmt: skip
        with pytest.raises(jali.InvalidArgument):
            read_sweep(wrong)
    assert grid([("a", [1, 2]), ("b", [3])]) == [{"a": 1, "b": 3}, {"a": 2, "b": 3}]
    with pytest.raises(jali.InvalidArgument, match="once"):
        grid([("a", [1]), ("a", [2])])
    with pytest.raises(jali.InvalidArgument, match="at most"):
        grid([("a", [1.0] * 101), ("b", [1.0] * 101)])
    points = list(sweep(lambda m: steps(), machine(), grid([("units.mac.lanes", [8, 16, 800])])))
    assert [p.cycles for p in points] == [408, 208, 16 + 3]
    out = io.StringIO()
    write_csv(points, out)
    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert [row["units.mac.lanes"] for row in rows] == ["8", "16", "800"]
    assert [row["pareto"] for row in rows] == ["0", "0", "1"]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=12))
def test_pareto_front(values: list[tuple[int, int, int]]) -> None:
    points = [Point({}, 0, a, b, c, 0) for a, b, c in values]

    def beaten(p: tuple[int, ...]) -> bool:
        return any(q != p and all(x <= y for x, y in zip(q, p, strict=True)) for q in values)

    assert pareto(points) == [not beaten(p) for p in values]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=12))
def test_pareto_front_of_a_device(values: list[tuple[int, int]]) -> None:
    """Without area and energy, what a design takes of its device is its cost; what the device does
    not hold is no choice."""
    points = [Point({}, 0, a, 0, 0, 0, {"dsp": b, "dsp_limit": 3, "luts": 7}) for a, b in values]
    fitting = [(a, b) for a, b in values if b <= 3]

    def beaten(p: tuple[int, int]) -> bool:
        return any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in fitting)

    assert pareto(points) == [p[1] <= 3 and not beaten(p) for p in values]


def test_fewer_ciphertexts_are_not_better() -> None:
    """A batch that takes longer is beaten only by one of as many in less time."""
    times = [(1, 2.0), (8, 3.0), (8, 4.0), (16, 4.0)]
    points = [Point({"ciphertexts": c}, 0, seconds, 0, 0, 0) for c, seconds in times]
    assert pareto(points) == [True, True, False, True]


SMALL = ["simulate", "strix:I,iterations=4,cores=1,batch=1", "--machine", "strix"]


def test_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main([*SMALL, "--mode", "published"]) == 0
    text = capsys.readouterr().out
    assert "bounded by" in text and "unit rotator" in text and "bootstrapping_key" in text
    assert main([*SMALL, "--json", "--set", "clp=8", "--gantt", str(tmp_path / "g.json")]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0]["changes"] == {"clp": 8} and lines[0]["mode"] == "strict"
    assert {"summary", "unit", "channel", "entity", "memory", "energy"} <= {
        x["what"] for x in lines
    }
    assert (tmp_path / "g.json").is_file()
    file = tmp_path / "points.csv"
    assert (
        main([*SMALL, "--mode", "published", "--sweep", "clp_switch=8,16", "--csv", str(file)]) == 0
    )
    times = [float(row["seconds"]) for row in csv.DictReader(file.open())]
    assert len(times) == 2 and times[1] < times[0]
    assert "yes" in capsys.readouterr().out
    assert main([*SMALL, "--sweep", "clp=4,8", "--json"]) == 0
    assert [json.loads(x)["values"]["clp"] for x in capsys.readouterr().out.splitlines()] == [4, 8]


def test_a_machine_without_area_and_energy_has_no_columns_of_zeros(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The machine of the matrix-vector paper gives DSPs and memories instead, which a sweep shows
    as far as they change."""
    words = ["simulate", "matvec:8x8,set=A,rows=2", "--machine", "mv_set_a"]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "dsp 4896, bram 192, uram 576" in text and "mm2" not in text
    file = tmp_path / "points.csv"
    assert main([*words, "--sweep", "g=2,4", "--csv", str(file)]) == 0
    text = capsys.readouterr().out
    assert "no other beats in time, dsp, bram, uram are marked" in text
    assert "mm2" not in text and "mJ" not in text
    title = next(line for line in text.splitlines() if "dsp" in line)
    assert "bram" in title and "dsp_limit" not in title
    rows = list(csv.DictReader(file.open()))
    assert [row["dsp"] for row in rows] == ["2448", "4896"]
    assert [row["pareto"] for row in rows] == [
        "1",
        "1",
    ]  # twice the groups are faster, and take twice the parts
    assert main([*words, "--sweep", "g=5,6"]) == 0  # 6,120 and 7,344 DSPs
    text = capsys.readouterr().out
    assert "7344 of 6840" in text and "6120 of" not in text
    assert "are marked, if their device holds them" in text
    assert [line.endswith("yes") for line in text.splitlines()[2:4]] == [True, False]
    assert main([*SMALL, "--sweep", "clp=4,8"]) == 0
    assert "time, area, energy are marked" in capsys.readouterr().out


@pytest.mark.parametrize("mode", ["published", "strict"])
def test_json_has_numbers_alone(capsys: pytest.CaptureFixture[str], mode: str) -> None:
    """Some channels of Strix have no limit in the mode published, and JSON has no infinity."""
    assert main([*SMALL, "--mode", mode, "--json", "--no-constants"]) == 0

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    lines = capsys.readouterr().out.splitlines()
    roofs = [x for x in (json.loads(line, parse_constant=refuse) for line in lines) if x["what"] == "roof"]  # fmt: skip
    assert len(roofs) == 9
    assert all((x["bytes_a_second"] is None) == (mode == "published") for x in roofs)


def test_a_trace_without_operations(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "empty.jsonl"
    recorded = Path(__file__).parents[3] / "vectors" / "traces" / "tfhe_0.jsonl"
    file.write_bytes(recorded.read_bytes().splitlines(keepends=True)[0])
    assert main(["simulate", str(file), "--machine", "strix"]) == 1
    assert "has no steps" in capsys.readouterr().err


def test_command_pictures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    files = [tmp_path / "g.png", tmp_path / "r.png"]
    words = ["--gantt", str(files[0]), "--roofline", str(files[1]), "--no-constants"]
    assert main([*SMALL, *words]) == 0
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)


def test_the_other_mode_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = {}
    for mode, other in (("published", "strict"), ("strict", "published")):
        assert main([*SMALL, "--mode", mode, "--json"]) == 0
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        seconds[mode] = lines[0]["seconds"]
        (found,) = (line for line in lines if line["what"] == "mode")
        assert (found["name"], found["by"]) == (other, "simulation")
        seconds[f"{other} beside"] = found["seconds"]
    assert seconds["strict beside"] == seconds["strict"] > seconds["published"]
    assert seconds["published beside"] == seconds["published"]
    assert main([*SMALL, "--mode", "published"]) == 0
    assert "in the mode strict: " in capsys.readouterr().out
    assert main([*SMALL, "--no-constants"]) == 0
    text = capsys.readouterr().out
    assert "in the mode published" not in text and "constant" not in text  # nobody looked


def test_the_constants_of_a_set_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """The key switch's levels are calibrated, and a tenth more of them takes longer."""
    words = ["simulate", "strix:I,iterations=20,ciphertexts=8", "--machine", "strix", "--json"]
    assert main(words) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    constants = {row["name"]: row for row in found if row["what"] == "constant"}
    assert constants["I.l_k"]["source"].startswith("calibrated")
    assert 0 < constants["I.l_k"]["change"] < 0.11


def test_command_papers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--papers"]) == 0
    assert "74,696" in capsys.readouterr().out.replace("74696", "74,696")
    assert main(["simulate", "--papers", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(row["what"] == "figure" for row in found)
    strix = [row for row in found if (row["paper"], row["printed"]) == ("strix", "74,696")]
    assert strix and strix[0]["model"] == 75_000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give a program"),
        (["strix:I"], "give a program"),
        (["none.jsonl", "--machine", "strix"], "no file and no workload"),
        (["strix:I", "--machine", "none"], "no machine"),
        (["strix:I", "--machine", "strix", "--set", "clp"], "--set takes"),
        (["strix:I", "--machine", "strix", "--set", "nothing=3"], "no number"),
        (["strix:I", "--machine", "strix", "--set", "clp=2.5"], "2.5 is no whole number"),
        (["strix:I", "--machine", "strix", "--set", "clp=8", "--set", "clp=4"], "clp twice"),
        (
            ["strix:I", "--machine", "strix", "--set", "clp=8", "--sweep", "clp=2,4"],
            "both give clp",
        ),
        (["strix:I", "--machine", "strix", "--csv", "x.csv"], "--sweep"),
        (["strix:I", "--machine", "strix", "--sweep", "clp=1,2", "--gantt", "x.json"], "--gantt"),
        (["strix:I", "--papers"], "--papers"),
        (["--papers", "--machine", "none"], "--papers takes no --machine"),
        (["--papers", "--set", "clp=8"], "--papers takes no --set"),
        (["matvec:8x8,set=C,rows=1", "--machine", "mv_set_a"], "at most 8192 points"),
        (["strix:I", "--machine", "strix", "--gantt", "x.txt"], "ends in .json or .png"),
        (["strix:I", "--machine", "strix", "--roofline", "x.pdf"], "ends in .png"),
        (["strix:I", "--machine", "strix", "--gantt", "nowhere/x.json"], "no folder 'nowhere'"),
        (["strix:I", "--machine", "strix", "--sweep", "clp=1", "--csv", "nowhere/x"], "no folder"),
    ],
)
def test_command_errors(capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    assert main(["simulate", *words]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ") and message in error and error.count("\n") == 1


def test_determinism_of_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for _ in range(2):
        assert (
            main(["simulate", "matvec:16x16,set=A,rows=4", "--machine", "mv_set_a", "--json"]) == 0
        )
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert np.isfinite(json.loads(outputs[0].splitlines()[0])["seconds"])
