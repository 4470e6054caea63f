"""`jali simulate --allocate` and `--sweep ciphertexts=..`: tables, JSON and pictures; options that
would be ignored are refused."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import pytest

from jali.cli import main
from jali.simulate import Entity, Kind, Machine, StepsBuilder, find
from jali.simulate.allocations import allocations, line, read_sizes

TRACES = Path(__file__).parents[3] / "vectors" / "traces"
MATVEC = ["simulate", "matvec:8x8,set=A,rows=4", "--machine", "mv_set_a"]


def test_a_program_by_hand() -> None:
    """A dear entity of 10 bytes read twice displaces two of 4 bytes read four times; three bytes
    have no name and are always read."""
    b = StepsBuilder()
    for name, size, reads in ((0, 10, 3), (1, 4, 5), (2, 4, 5)):
        for _ in range(reads):
            b.load(Entity.KEY, size, name)
    b.load(Entity.CIPHERTEXT, 3)
    none, small, large = (line(one) for one in allocations(b.build(), [0, 8, 18]))
    assert none["greedy_read_bytes"] == none["exact_read_bytes"] == 30 + 20 + 20 + 3
    assert none["greedy_held_bytes"] == {}
    assert small["exact_read_bytes"] == 73 - 32 and small["exact_held_bytes"] == {"key": 8}
    assert large["greedy_read_bytes"] == large["least_read_bytes"] == 73 - 32 - 20


@pytest.mark.parametrize("words", [MATVEC, ["simulate", str(TRACES / "ckks.jsonl"), "--machine", "h100"], ["simulate", str(TRACES / "tfhe_0.jsonl"), "--machine", "strix"]])  # fmt: skip
def test_any_program_is_allocated(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main([*words, "--allocate", "0:2:0.5", "--json"]) == 0
    rows = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert [row["sram_bytes"] for row in rows] == [0, 500_000, 1_000_000, 1_500_000, 2_000_000]
    least = [row["least_read_bytes"] for row in rows]
    assert all(a >= b for a, b in pairwise(least))
    for row in rows:
        assert row["greedy_peak_bytes"] <= row["sram_bytes"]
        best = row["exact_read_bytes"]
        assert row["least_read_bytes"] <= (math.inf if best is None else best)
        assert best is None or best <= row["greedy_read_bytes"]
    program = find(words[1], Machine.load(words[3]))(Machine.load(words[3]))
    asked = int(program.bytes[program.kind == Kind.LOAD].sum())
    assert rows[0]["greedy_read_bytes"] == rows[0]["exact_read_bytes"] == asked
    assert main([*words, "--allocate", "0,1"]) == 0
    assert "read, exact" in capsys.readouterr().out


def test_pictures_of_curves(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    files = [tmp_path / "a.png", tmp_path / "b.png"]
    assert main([*MATVEC, "--allocate", "0:3:1", "--plot", str(files[0])]) == 0
    words = ["simulate", "tfhe:n=4,k=1,N=256,l_b=1,l_k=2", "--machine", "h100"]
    sweeps = ["--sweep", "ciphertexts=1,528,529", "--sweep", "wave=132,528"]
    assert main([*words, *sweeps, "--plot", str(files[1])]) == 0
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)


def test_fragmentation_of_a_gpu_and_of_strix(capsys: pytest.CaptureFixture[str]) -> None:
    """One ciphertext more than a wave costs another wave on a GPU; on Strix it costs a place in the
    pipeline."""
    times = {}
    for machine, sizes in (("h100", "528,529,1056,1057"), ("strix", "8,9,16,17")):
        words = ["simulate", "tfhe:I", "--machine", machine, "--sweep", f"ciphertexts={sizes}"]
        assert main([*words, "--json", "--set", "word_bytes=4"]) == 0
        rows = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
        assert [f"{row['values']['ciphertexts']:g}" for row in rows] == sizes.split(",")
        times[machine] = [row["seconds"] for row in rows]
    full, more, twice, last = times["h100"]
    alone = 500 * 2.074e-6
    assert more - full == pytest.approx(alone, rel=0.05) and twice == pytest.approx(
        2 * full, rel=0.01
    )
    assert last - twice == pytest.approx(alone, rel=0.05)
    strix = times["strix"]
    assert strix == sorted(strix) and strix[1] - strix[0] < 0.5 * strix[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--papers", "--mode", "strict"], "--papers takes no --mode"),
        (["--papers", "--no-constants"], "--papers takes no --no-constants"),
        (["--papers", "--allocate", "1"], "--papers takes no --allocate"),
        (["--papers", "--plot", "x.png"], "--papers takes no --plot"),
        ([*MATVEC[1:], "--sweep", "c=8,16", "--no-constants"], "leave --no-constants out"),
        ([*MATVEC[1:], "--sweep", "c=8,16", "--allocate", "1"], "leave --allocate out"),
        ([*MATVEC[1:], "--allocate", "1", "--no-constants"], "leave --no-constants out"),
        ([*MATVEC[1:], "--allocate", "1", "--gantt", "x.json"], "leave --gantt out"),
        ([*MATVEC[1:], "--allocate", "1", "--csv", "x.csv"], "leave --csv out"),
        ([*MATVEC[1:], "--allocate", "-1"], "takes megabytes"),
        ([*MATVEC[1:], "--allocate", ""], "takes megabytes"),
        ([*MATVEC[1:], "--plot", "x.png"], "give --sweep or --allocate"),
        ([*MATVEC[1:], "--gantt", "x.png", "--roofline", "./x.png"], "write the same file"),
        ([*MATVEC[1:], "--sweep", "ciphertexts=1,2"], "workloads tfhe: and strix:"),
        (["tfhe:I", "--machine", "h100", "--sweep", "ciphertexts=1.5"], "whole number"),
        (["tfhe:V", "--machine", "h100"], "no set 'V'"),
        (["tfhe:n=3,k=1", "--machine", "h100"], "all of n, k, N, l_b, l_k"),
        (["tfhe:I,N=1000", "--machine", "h100"], "power of two"),
        (["tfhe:I,ciphertexts=0", "--machine", "h100"], "ciphertexts is 1 to"),
        (["tfhe:I,rows=2", "--machine", "h100"], "no option here"),
    ],
)  # fmt: skip
def test_what_would_be_ignored_is_refused(
    capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["simulate", *words]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ") and message in error and error.count("\n") == 1


def test_sizes() -> None:
    assert read_sizes("0:1:0.5") == [0, 500_000, 1_000_000] and read_sizes("1.5") == [1_500_000]
