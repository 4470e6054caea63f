"""Millijoules of a bootstrapping: of Strix by the model, of an H100 by its counter."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jali._core.console import joules_text
from jali.bench.energy import Energy
from jali.cli import bench as command
from jali.cli import main
from jali.simulate import Machine, find, make_report
from jali.simulate.papers import paper

ROOT = Path(__file__).resolve().parents[3]


def summary(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    assert main(["simulate", *words, "--json", "--no-constants"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_energy_by_unit_of_a_bootstrapping(capsys: pytest.CaptureFixture[str]) -> None:
    """The units and the leakage at set I, with batches that fill the pipeline: near the 1.03 mJ of
    Table III at the rate of Table V."""
    words = ("strix:I,ciphertexts=64,batch=8", "--machine", "strix", "--mode", "published")
    head, *rest = summary(capsys, *words)
    parts = {row["name"]: row["joules"] for row in rest if row["what"] == "energy"}
    assert head["bootstrappings"] == 64
    assert head["energy_j_a_bootstrapping"] == pytest.approx(sum(parts.values()) / 64)
    printed = paper("strix").tables["III"].cell("total", "power").value
    printed /= paper("strix").tables["V"].cell("Strix, I", "throughput").value
    assert 0.5 * printed < head["energy_j_a_bootstrapping"] < 1.5 * printed
    assert parts["fft"] + parts["ifft"] > 5 * (parts["vma"] + parts["rotator"])
    # The transforms by hand: digits and sums of 500 iterations, 128 cycles each of 8 coefficients,
    # 1,144 pJ a cycle.
    assert parts["fft"] / 64 == pytest.approx(500 * 4 * 128 * 5.49e3 / (1.2 * 4) * 1e-12, rel=1e-9)
    assert main(["simulate", *words, "--no-constants"]) == 0
    text = capsys.readouterr().out
    assert "mJ a bootstrapping" in text
    row = next(line for line in text.splitlines() if line.split()[:1] == ["all"])
    assert float(row.split()[-1]) == pytest.approx(1e3 * head["energy_j_a_bootstrapping"], rel=1e-3)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("tfhe:I,ciphertexts=16", 16),
        ("strix:I,ciphertexts=8,iterations=4", 0),
        ("strix:I,cores=1,batch=1", 0),
        (str(ROOT / "vectors" / "traces" / "ckks.jsonl"), 0),
        (str(ROOT / "vectors" / "traces" / "tfhe_0.jsonl"), None),
    ],
)
def test_whole_bootstrappings_are_counted(text: str, count: int | None) -> None:
    machine = Machine.load("strix")
    program = find(text, machine)
    if count is None:  # every record that rotates
        file = Path(text).read_text(encoding="ascii").splitlines()[1:]
        count = sum(r["batch"] for r in map(json.loads, file) if "bootstrap" in r["op"] or r["op"] == "blind_rotate")  # fmt: skip
        assert count > 3
    assert program.bootstrappings == count  # type: ignore[attr-defined]
    if "tfhe" in text:
        assert make_report(program, machine, constants=False).bootstrappings == count


def test_no_column_where_there_is_no_bootstrapping(capsys: pytest.CaptureFixture[str]) -> None:
    head = summary(capsys, "matvec:8x8,set=A,rows=2", "--machine", "mv_set_a")[0]
    assert head["bootstrappings"] == 0 and head["energy_j_a_bootstrapping"] is None
    words = ["simulate", "strix:I,ciphertexts=8,iterations=4", "--machine", "strix"]
    assert main([*words, "--no-constants"]) == 0
    assert "a bootstrapping" not in capsys.readouterr().out


def test_millijoules_of_recorded_bootstrappings() -> None:
    """Watts times seconds over the batch, in the record, in the table of `jali bench --energy`, and
    on the page."""
    record = ROOT / "bench" / "results" / "tfhe-h100-2026-11-26-presets.jsonl"
    page = (ROOT / "docs" / "hardware.md").read_text(encoding="utf-8")
    found = {}
    for row in map(json.loads, record.read_text(encoding="utf-8").splitlines()):
        spent = Energy(**row["energy"])
        assert spent.joules == pytest.approx(spent.watts * row["median_s"] / row["batch"], rel=0.08)
        assert spent.per_joule == pytest.approx(1 / spent.joules)
        shown = command._energy_cells(SimpleNamespace(energy=spent))  # type: ignore[arg-type]
        assert shown[1] == joules_text(spent.joules)
        if row["name"] == "tfhe_bootstrap" and row["batch"] == 4224:
            assert shown[1].endswith(" mJ")
            found[row["params"]["set"]] = shown[1]
    assert len(found) >= 4
    for name, text in found.items():
        assert f"{text} (`{name}`)" in page


def test_operations_a_joule_are_those_of_the_records() -> None:
    """Each cell of the page is a row of bench/results, and what the page says of the aim follows
    from them."""
    measured: dict[str, dict[str, list[float]]] = {"H200": {}, "H100": {}}
    for file in sorted((ROOT / "bench" / "results").glob("energy-h?00-*.jsonl")):
        for row in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            if row["name"] != "bootstrap":
                device = measured[file.name[7:11].upper()]
                device.setdefault(row["name"], []).append(row["energy"]["per_joule"])
    page = (ROOT / "docs" / "hardware.md").read_text(encoding="utf-8")
    section = page.partition("**Energy of CKKS's operations.**")[2].partition("\n#")[0]
    table = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
    names = ["hadd", "cmult", "rescale", "hmult", "hrotate", "conjugate"]
    cells = {row[0].strip(): [text.strip() for text in row[1:]] for row in table[1:]}
    printed = next(row for name, row in cells.items() if name.startswith("TensorFHE"))
    times = {}
    for name, row in cells.items():
        if not name.startswith("Jali"):
            continue
        device = name.split()[1].rstrip(",")
        for operation, text in zip(names, row, strict=True):
            if text:
                digits = len(text.partition(".")[2])
                assert text in [f"{x:.{digits}f}" for x in measured[device][operation]]
                theirs = printed[names.index(operation)]
                times[device, operation] = float(text) / float(theirs) if theirs else None
    assert [f"{times['H200', name]:.1f}" for name in ("hmult", "hrotate")] == ["2.6", "2.7"]
    assert all(times[device, name] < 1 for device in measured for name in names[:3])
