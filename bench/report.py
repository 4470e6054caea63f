"""Fills the README's table of figures from bench/results/NAME.jsonl.

python bench/report.py NAME
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
BEGIN, END = "<!-- figures: filled from bench/results, never by hand -->\n", "<!-- figures: end -->"


def ms(seconds: float) -> str:
    """Milliseconds with three digits."""
    return f"{seconds * 1e3:.3g} ms"


def demos(results: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """A row a demo."""
    for r in results:
        if not r["name"].startswith("jali demo "):
            continue
        demo = r["demo"]
        files = " --images FILE" if demo == "mnist" else ""
        figure = (
            f"{ms(r['seconds_per_image'])}, {100 * r['accuracy']:.1f} %, "
            f"{100 * r['agreement_with_plain']:.0f} % of {r['images']}"
        )
        size = f"{r['bytes_up'] / 1e3:.0f} kB up, {r['bytes_down'] / 1e3:.0f} kB down"
        about = f"{demo}, images not trained on: time an image, accuracy, agreement with the plain model ({size})"
        yield about, figure, f"jali demo {demo}{files} --limit {r['images']} --json"


def anchors(results: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """The operations that peers are compared on, on one thread."""
    words = {"hmult_relin_rescale": "multiply + relinearise + rescale", "rotate": "rotate"}
    for r in results:
        if r["name"] in words and r["params"]["threads"] == 1:
            p = r["params"]
            about = (
                f"{words[r['name']]}, N = 2^{p['log_n']}, log Q {p['log_q']:.0f}, "
                f"{p['special']} special prime{'s' if p['special'] > 1 else ''}, one thread"
            )
            yield about, ms(r["min_s"]), f"jali bench {r['name']}"


def peers(results: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Ratios of the same run."""
    for r in results:
        if r["name"].startswith("beside "):
            name = {"lattigo": "Lattigo 6.2.0", "seal": "SEAL through TenSEAL"}[r["peer"]["ready"]]
            operation = r["name"].removeprefix("beside ").replace("_", " ")
            about = f"times as fast as {name}: {operation}, log Q {r['params']['log_q']:.0f}"
            yield about, f"{r['ratio']:.1f}", "bench/peers/compare.py"


def table(results: list[dict[str, Any]]) -> str:
    """Markdown."""
    rows = [*demos(results), *anchors(results), *peers(results)]
    lines = ["| what | figure | repeat with |", "|---|---|---|"]
    return "\n".join(lines + [f"| {a} | {b} | `{c}` |" for a, b, c in rows]) + "\n"


def main() -> None:
    """The command line."""
    path = HERE / "results" / f"{sys.argv[1]}.jsonl"
    results = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    README.write_text(before + BEGIN + table(results) + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
