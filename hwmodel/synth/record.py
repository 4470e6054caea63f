#!/usr/bin/env python3
"""The record of synthesis, bench/results/rtl-DATE.jsonl: what Yosys counted of each unit; a later file's row replaces an earlier one's.

Usage: hwmodel/synth/record.py > TABLE (in Markdown, as docs/hardware.md has it)
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from synthesise import UNITS

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"
# Yosys infers these from the circuit.
EXACT = ("dsp48e2", "block_ram", "ultra_ram", "distributed_ram", "flip_flops", "memory_bits")
# These follow from how it maps logic, which the names of cells steer, and so the other files that
# were read: 0.5% was seen.
CLOSE = ("cells", "luts", "gates", "transistors")
TOLERANCE = 0.01

Key = tuple[str, str, str]


def key(unit: str, params: dict[str, int], family: str) -> Key:
    return unit, json.dumps(params, sort_keys=True), family


def recorded() -> dict[Key, dict[str, Any]]:
    rows = {}
    for file in sorted(RESULTS.glob("rtl-20*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            row: dict[str, Any] = json.loads(line)
            rows[key(row["unit"], row["params"], row["family"])] = row
    return rows


def row_of(unit: str, params: dict[str, int], family: str) -> dict[str, Any]:
    """The recorded row, or a KeyError that says which is missing."""
    rows = recorded()
    wanted = key(unit, params, family)
    if wanted not in rows:
        raise KeyError(f"bench/results/rtl-20*.jsonl have no {unit} with {params} for {family}")
    return rows[wanted]


def differences(row: dict[str, Any]) -> list[str]:
    """Where a row of synthesis is not what is recorded of the same unit."""
    known = row_of(row["unit"], row["params"], row["family"])
    name = f"{row['unit']} {row['params']} {row['family']}"
    wrong = [f for f in EXACT if row.get(f) != known.get(f)]
    wrong += [
        f for f in CLOSE if abs(row.get(f, 0) - known.get(f, 0)) > TOLERANCE * known.get(f, 0)
    ]
    return [f"{name}: {f} {row.get(f)}, recorded {known.get(f)}" for f in wrong]


def text() -> str:
    """The table of docs/hardware.md."""
    lines = [
        "| unit | parameters | DSP48E2 | cells | LUTs | flip-flops | block RAMs | transistors of logic | bits of memory |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for unit, params in UNITS:
        fpga, cmos = (row_of(unit, params, family) for family in ("fpga", "cmos"))
        counts = [fpga[f] for f in ("dsp48e2", "cells", "luts", "flip_flops", "block_ram")]
        counts += [cmos["transistors"], cmos["memory_bits"]]
        sizes = ", ".join(f"{name} {value}" for name, value in params.items())
        lines.append(f"| {unit} | {sizes} | " + " | ".join(f"{n:,}" for n in counts) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(text())
