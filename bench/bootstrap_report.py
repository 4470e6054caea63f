"""Bootstrapping on a GPU: docs/bootstrapping.md and docs/bootstrapping.png from bench/results/NAME.jsonl.

    python bench/bootstrap_report.py NAME

NAME holds the lines of `bench_bootstrap --device cuda`. Needs matplotlib.
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
COLOURS = {"w32": "#2b7a78", "w52": "#d98324", "w64": "#7d5ba6"}
CHEDDAR_MS, CHEDDAR_BITS = 23.5, 21.9  # mean error 2.6e-7
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
    """All rows of bootstrapping, the presets' own sizes."""
    text = (HERE / "results" / f"{name}.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    return [row for row in rows if row["name"] == "bootstrap"]


def sizes(rows: list[Row]) -> str:
    """Markdown: a line a row."""
    lines = [
        "| preset | word | batch | ms each | mean error | largest | levels left | keys: sent; on the device | diagonals; program | limbs, digits |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        p = row["params"]
        held = row.get("device_gb", {})  # older rows do not say
        keys = f"{row['key_gb']:.1f}; {held['keys']:.1f} GB" if held else f"{row['key_gb']:.1f} GB"
        lines.append(
            f"| {_named(row)} | {p['word']} | {row['batch']} | {row['each_s'] * 1e3:.1f} "
            f"| {row['mean_error']:.2e} ({row['precision_bits']:.1f} bits) | {row['max_error']:.1e} "
            f"| {p['levels_left']} | {keys} | {row['plaintext_gb']:.1f}; {row['program_gb']:.1f} GB "
            f"| {p['limbs']} + {p['special']}, {p['dnum']} |"
        )
    return "\n".join(lines) + "\n"


def stages(rows: list[Row]) -> str:
    """Markdown: time, bytes, floor and fraction of each stage, of rows that counted bytes."""
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


def _around(place: Any, x: float, y: float) -> Any:
    """The box of a mark, in pixels."""
    from matplotlib.transforms import Bbox

    across, up = place.transData.transform((x, y))
    return Bbox.from_bounds(across - 6, up - 6, 12, 12)


def _labelled(place: Any, label: str, x: float, y: float, taken: list[Any]) -> Any:
    """A label beside a mark, where it hides nothing that is taken; its box."""
    text = place.annotate(label, (x, y), xytext=(0, 0), textcoords="offset points", fontsize=7)
    for away in (0, 9, 18, 27, 36):
        for across, up in (
            (7, -2),
            (-7, -2),
            (7, away + 4),
            (-7, away + 4),
            (7, -8 - away),
            (-7, -8 - away),
        ):
            text.set_position((across, up))
            text.set_horizontalalignment("left" if across > 0 else "right")
            box = text.get_window_extent()
            if not any(box.overlaps(other) for other in taken):
                return box
    return text.get_window_extent()


def picture(rows: list[Row], path: Path) -> None:
    """Precision against time, a mark a preset and word."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, place = pyplot.subplots(figsize=(11, 5.5))
    marks = [("Cheddar", CHEDDAR_MS, CHEDDAR_BITS, "#555555", "x")]
    for row in rows:
        if row["batch"] == 1:
            word = row["params"]["word"]
            label = f"{_named(row).replace('`', '')}, {word}"
            marks.append((label, row["each_s"] * 1e3, row["precision_bits"], COLOURS[word], "o"))
    for _, x, y, colour, mark in marks:
        place.scatter([x], [y], color=colour, marker=mark, zorder=3)
    place.set_xscale("log")
    place.margins(x=0.2)
    place.set_xlabel(
        "ms, one ciphertext; precision: -log2 of the mean error of real and imaginary parts"
    )
    place.set_ylabel("precision, bits")
    place.grid(True, which="both", linewidth=0.3)
    figure.tight_layout()
    figure.canvas.draw()  # places are known now
    taken = [_around(place, x, y) for _, x, y, _, _ in marks]
    for label, x, y, _, _ in marks:
        taken.append(_labelled(place, label, x, y, taken))
    figure.savefig(path, dpi=110)


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
    picture(rows, DOCS / "bootstrapping.png")


if __name__ == "__main__":
    main()
