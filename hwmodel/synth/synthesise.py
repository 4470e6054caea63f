#!/usr/bin/env python3
"""Synthesises the units with Yosys and prints one JSON object a line: for an FPGA of Xilinx's UltraScale+ family (the
cells of `synth_xilinx -family xcup`), and in CMOS gates (`stat -tech cmos`: transistors of a static CMOS cell of each
kind; the gates are as Yosys draws them, without logic optimisation by ABC, and memories are counted in bits).

Usage: hwmodel/synth/synthesise.py [UNIT ...] [--family fpga|cmos] > bench/results/rtl-DATE.jsonl
       hwmodel/synth/synthesise.py --check [UNIT ...] compares with the record (synth/record.py) instead.
Without names: every unit of UNITS and SMALL, which takes some 20 minutes.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RTL = ROOT / "hwmodel" / "rtl"

# What is synthesised: a module, and its parameters.
UNITS: list[tuple[str, dict[str, int]]] = [
    *(("mod_mul", {"W": W}) for W in (31, 35, 36, 40, 50, 61)),
    *(("ntt_core", {"W": W}) for W in (31, 36, 61)),
    *(("benes", {"W": 36, "C": C}) for C in (4, 8, 16)),
    ("mac_array", {"W": 36, "C": 4}),
    ("adder_tree", {"W": 36, "C": 4, "G": 4}),
    ("rotator", {"C": 8, "N": 1024}),
    ("decomposer", {"C": 8, "BASE_LOG": 10, "LEVELS": 2}),
    ("accumulator", {"C": 8, "T": 128}),
    *(("fft_butterfly", {"DW": 64, "TW": TW}) for TW in (16, 20, 24, 28, 32)),
    *(("fft_butterfly", {"DW": 32, "TW": TW}) for TW in (16, 24, 32)),
    ("fft_butterfly", {"DW": 64, "TW": 16, "INVERSE": 1}),
    ("ks_mac", {"D": 5, "CLP": 8, "COLP": 8}),
    ("vma", {"XW": 32, "KW": 32, "DW": 64, "SHIFT": 0, "C": 1, "PLP": 2}),
    ("spn", {"W": 36, "C": 4, "N": 1024}),
    ("ntt_engine", {"W": 36, "C": 4, "N": 1024}),
    ("shuffle", {"WIDTH": 128, "L": 128}),
    ("fft", {"DW": 64, "TW": 16, "P": 16}),
    ("key_switch", {"W": 36, "C": 4, "N": 64, "L": 3}),  # six minutes and nine
]
# Every unit at a size that takes seconds, which the tests synthesise again.
SMALL: list[tuple[str, dict[str, int]]] = [
    ("mod_mul", {"W": 36}),
    ("ntt_core", {"W": 31}),
    ("benes", {"W": 36, "C": 4}),
    ("mac_array", {"W": 16, "C": 2}),
    ("adder_tree", {"W": 36, "C": 4, "G": 4}),
    ("rotator", {"C": 4, "N": 32}),
    ("decomposer", {"C": 8, "BASE_LOG": 10, "LEVELS": 2}),
    ("accumulator", {"C": 8, "T": 128}),
    ("fft_butterfly", {"DW": 32, "TW": 16}),
    ("fft", {"DW": 16, "TW": 8, "P": 8}),
    ("ks_mac", {"D": 5, "CLP": 2, "COLP": 2}),
    ("vma", {"XW": 16, "KW": 16, "DW": 32, "SHIFT": 0, "C": 1, "PLP": 2}),
    ("spn", {"W": 16, "C": 4, "N": 64}),
    ("ntt_engine", {"W": 16, "C": 4, "N": 64}),
    ("key_switch", {"W": 12, "C": 4, "N": 16, "L": 1}),
    ("shuffle", {"WIDTH": 32, "L": 16}),
]

FPGA = "synth_xilinx -family xcup -noiopad -flatten -top {top}; stat"
CMOS = (
    "hierarchy -top {top}; proc; flatten; opt -full; tee -o {memories} stat; wreduce; alumacc; share; opt; "
    "memory -nomap; opt -full; techmap; opt; dfflegalize -cell $_DFF_P_ x; simplemap; opt_clean; stat -tech cmos"
)


def yosys(script: str) -> str:
    ran = subprocess.run(["yosys", "-p", script], capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(ran.stdout[-1000:] + ran.stderr)
    return ran.stdout


def last_counts(log: str) -> Counter[str]:
    """The table of the last `stat` in a log."""
    table = log[log.rindex("Number of cells:") :]
    return Counter(
        {kind: int(n) for kind, n in re.findall(r"^ +(\$?\w+) +(\d+)$", table, re.MULTILINE)}
    )


def fpga(read: str, top: str) -> dict[str, Any]:
    cells = last_counts(yosys(read + FPGA.format(top=top)))
    kinds = {
        "luts": r"LUT\d",
        "flip_flops": r"FD[RSCP]E",
        "shift_registers": r"SRL\w+",
        "muxes": r"MUXF\d",
    }
    kinds |= {"distributed_ram": r"RAM\d+\w+", "block_ram": r"RAMB\w+", "ultra_ram": r"URAM\w+"}
    kinds |= {"dsp48e2": r"DSP48E2", "carry": r"CARRY\d"}
    counts = {
        name: sum(n for kind, n in cells.items() if re.fullmatch(pattern, kind))
        for name, pattern in kinds.items()
    }
    return {"cells": sum(cells.values())} | counts


def cmos(read: str, top: str) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile("r") as memories:
        log = yosys(read + CMOS.format(top=top, memories=memories.name))
        bits = int(re.findall(r"Number of memory bits: +(\d+)", memories.read())[-1])
    transistors, unknown = re.findall(r"Estimated number of transistors: +(\d+)(\+?)", log)[-1]
    cells = last_counts(log)
    beyond = {kind for kind in cells if kind.startswith("$mem")}
    assert not unknown or beyond, "Yosys does not know the transistors of a cell that is no memory"
    return {
        "gates": sum(cells.values()) - sum(cells[kind] for kind in beyond),
        "transistors": int(transistors),
        "memory_bits": bits,
    }


def synthesised(
    top: str, parameters: dict[str, int], families: list[str]
) -> Iterator[dict[str, Any]]:
    files = " ".join(str(file) for file in sorted(RTL.glob("*.sv")))
    chosen = "".join(f"chparam -set {name} {value} {top}; " for name, value in parameters.items())
    read = f"read_verilog -sv -defer {files}; {chosen}"
    for family in families:
        yield {
            "name": "rtl",
            "unit": top,
            "params": parameters,
            "family": family,
            **(fpga if family == "fpga" else cmos)(read, top),
        }


def chosen(units: list[str]) -> list[tuple[str, dict[str, int]]]:
    """Those of UNITS and SMALL, or of these names among them."""
    every = [*UNITS, *(small for small in SMALL if small not in UNITS)]
    return [(top, parameters) for top, parameters in every if not units or top in units]


def check(units: list[str], families: list[str]) -> int:
    """Prints where synthesis differs from the record, and returns 1 if it does."""
    from record import differences

    rows = (
        row for top, parameters in chosen(units) for row in synthesised(top, parameters, families)
    )
    wrong = [line for row in rows for line in differences(row)]
    print("\n".join(wrong) or "as recorded")
    return 1 if wrong else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("units", nargs="*")
    parser.add_argument("--family", choices=["fpga", "cmos"], action="append")
    parser.add_argument(
        "--check", action="store_true", help="compare with the record; exit 1 if a count differs"
    )
    options = parser.parse_args()
    if options.check:
        sys.exit(check(options.units, options.family or ["fpga", "cmos"]))
    describe = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    commit = subprocess.run(describe, capture_output=True, text=True, check=False).stdout.strip()
    version = subprocess.run(
        ["yosys", "-V"], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    for top, parameters in chosen(options.units):
        for row in synthesised(top, parameters, options.family or ["fpga", "cmos"]):
            print(json.dumps(row | {"yosys": version, "commit": commit}), flush=True)


if __name__ == "__main__":
    main()
