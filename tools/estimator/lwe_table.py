#!/usr/bin/env python3
"""Writes src/jali/params/lwe_security_rows.inc from lwe_results.jsonl, what lwe.py and
block_binary.py found.

Usage: tools/estimator/lwe_table.py [--check]. With --check nothing is written, and the exit status
is 1 if the file is not what would be written. Further arguments are files of results to merge into
lwe_results.jsonl first.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "lwe_results.jsonl"
ROWS = HERE.parents[1] / "src" / "jali" / "params" / "lwe_security_rows.inc"
HEAD = """\
// Made by tools/estimator/lwe_table.py from lwe_results.jsonl. The fields are those of LweSecurityRow:
// block, n, modulus_bits, noise_bits, usvp, bdd, dual_hybrid, guess_dual, guess_mitm.
// clang-format off
"""
FIELDS = ("usvp", "bdd", "dual_hybrid", "guess_dual", "guess_mitm")


def noise(row: dict[str, Any]) -> float:
    """log2 of the standard deviation of the errors over the modulus."""
    variance = (2 ** (2 * row["noise_bits"] + 1) + 1) / 6
    return round(math.log2(variance) / 2 - row["bits_modulus"], 6)


def key(row: dict[str, Any]) -> tuple[float, ...]:
    return (row["shape"], noise(row), row["n"], row["bits_modulus"])


def merged(paths: list[Path]) -> list[dict[str, Any]]:
    """The rows of all files, one for each key, in the order of the table."""
    out: dict[tuple[float, ...], dict[str, Any]] = {}
    for path in paths:
        for line in path.read_text().splitlines():
            row = json.loads(line)
            held = out.setdefault(key(row), row)
            held["attacks"] |= row["attacks"]
            held.update({name: row[name] for name in row if name != "attacks"})
    return [out[k] for k in sorted(out)]


def table(rows: list[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        needed = {"usvp", "bdd", "dual_hybrid"} | ({"guess_dual"} if row["shape"] > 1 else set())
        if not needed <= row["attacks"].keys():
            continue
        bits = [row["attacks"].get(name, {"bits": 0})["bits"] for name in FIELDS]
        if row["shape"] == 1:
            bits[3:] = 0, 0
        numbers = [row["shape"], row["n"], row["bits_modulus"], row["noise_bits"], *bits]
        lines.append("{" + ", ".join(str(x) for x in numbers) + "},\n")
    return HEAD + "".join(lines)


def main() -> int:
    given = [Path(x) for x in sys.argv[1:] if x != "--check"]
    rows = merged([path for path in (RESULTS, *given) if path.exists()])
    if "--check" in sys.argv:
        return int(ROWS.read_text() != table(rows))
    RESULTS.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ROWS.write_text(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
