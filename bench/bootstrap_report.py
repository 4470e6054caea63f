"""Fills the tables of docs/bootstrapping.md, bootstrapping on a GPU, from bench/results/NAME.jsonl.

    python bench/bootstrap_report.py NAME

The file holds the lines that `bench_bootstrap --device cuda` printed. bench/pictures.py draws the
chart.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
BEGIN, END = (
    "<!-- bootstrapping: filled from bench/results, never by hand -->\n",
    "<!-- bootstrapping: end -->",
)
STAGES = (
    "enter",
    "slots_to_coefficients",
    "raise",
    "coefficients_to_slots",
    "conjugation",
    "reduction",
)

Row = dict[str, Any]


def _named(row: dict[str, Any]) -> str:
    """The preset, and whether it ran with the fewest keys."""
    fewest = ", fewest keys" if row.get("keys") == "minimum" else ""
    return f"`{row['preset']}`{fewest}"


def load(name: str) -> list[Row]:
    """The rows of a file that are bootstrappings."""
    text = (HERE / "results" / f"{name}.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    return [row for row in rows if row["name"] == "bootstrap"]


def sizes(rows: list[Row]) -> str:
    """A Markdown table with one line for each row: times, errors and sizes."""
    lines = [
        "| preset | word | batch | ms each | mean error | largest | levels left | keys: kept; on the device | diagonals; program | limbs, digits |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        p = row["params"]
        held = row.get("device_gb", {})  # older records do not have it
        keys = f"{row['key_gb']:.1f}; {held['keys']:.1f} GB" if held else f"{row['key_gb']:.1f} GB"
        lines.append(
            f"| {_named(row)} | {p['word']} | {row['batch']} | {row['each_s'] * 1e3:.1f} "
            f"| {row['mean_error']:.2e} ({row['precision_bits']:.1f} bits) | {row['max_error']:.1e} "
            f"| {p['levels_left']} | {keys} | {row['plaintext_gb']:.1f}; {row['program_gb']:.1f} GB "
            f"| {p['limbs']} + {p['special']}, {p['dnum']} |"
        )
    return "\n".join(lines) + "\n"


def stages(rows: list[Row]) -> str:
    """A Markdown table with time, bytes, floor and fraction of each stage, for the rows that
    counted bytes."""
    lines = [
        "| preset, word | stage | ms | GB | floor, ms | fraction |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        for stage in STAGES:
            s = row["stages"].get(stage, {})
            if "gb" in s:
                lines.append(
                    f"| `{row['preset']}`, {row['params']['word']} | {stage} | {s['s'] * 1e3:.2f} "
                    f"| {s['gb']:.2f} | {s['floor_s'] * 1e3:.2f} | {s['fraction']:.2f} |"
                )
    return "\n".join(lines) + "\n"


def main() -> None:
    """The command line."""
    rows = load(sys.argv[1])
    page = DOCS / "bootstrapping.md"
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    source = (
        f"{rows[0]['device_name']}, `bench/results/{sys.argv[1]}.jsonl`, commit "
        f"{rows[0]['commit']}.\n\n"
    )
    filled = source + sizes(rows) + "\n" + stages(rows)
    page.write_text(before + BEGIN + filled + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
