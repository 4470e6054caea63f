"""Fills the table of docs/words.md, the three words side by side, from bench/results/NAME.jsonl.

    python bench/words_report.py NAME

The file holds the lines that `jali bench words --json` printed. bench/pictures.py draws the chart.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
BEGIN, END = "<!-- words: filled from bench/results, never by hand -->\n", "<!-- words: end -->"
WORDS = ("w32", "w52", "w64")
ENGINE = {"ntt": "NTT", "intt": "inverse NTT", "mul": "product", "key_switch": "key switch"}
CIPHERTEXTS = {"hmult_relin_rescale": "HMult", "rotate": "HRot"}
NAMES = ENGINE | CIPHERTEXTS

Row = dict[str, Any]


def load(name: str) -> dict[tuple[int, str], dict[str, Row]]:
    """The rows of each (log2 N, operation) by their word, if there is a row for every word."""
    text = (HERE / "results" / f"{name}.jsonl").read_text(encoding="utf-8")
    found: dict[tuple[int, str], dict[str, Row]] = defaultdict(dict)
    for line in text.splitlines():
        row = json.loads(line)
        if row["name"] in NAMES and row["batch"] == 1:
            found[row["params"]["log_n"], row["name"]][row["params"]["word"]] = row
    return {key: rows for key, rows in sorted(found.items()) if len(rows) == len(WORDS)}


def table(rows: dict[tuple[int, str], dict[str, Row]]) -> str:
    """A Markdown table of microseconds, with the limbs of each word in brackets."""
    lines = ["| N | operation | w32 | w52 | w64 | fastest |", "|---|---|---|---|---|---|"]
    order = list(NAMES)
    for (log_n, name), words in sorted(rows.items(), key=lambda r: (r[0][0], order.index(r[0][1]))):
        cells = [
            f"{words[w]['median_s'] * 1e6:.1f} us ({words[w]['params']['limbs']})" for w in WORDS
        ]
        best = min(WORDS, key=lambda w: words[w]["median_s"])
        lines.append(f"| 2^{log_n} | {NAMES[name]} | {' | '.join(cells)} | {best} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """The command line."""
    rows = load(sys.argv[1])
    page = DOCS / "words.md"
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    any_row = next(iter(next(iter(rows.values())).values()))
    source = (
        f"{any_row['device_name']}, `bench/results/{sys.argv[1]}.jsonl`, commit "
        f"{any_row['commit']}; limbs in brackets.\n\n"
    )
    page.write_text(before + BEGIN + source + table(rows) + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
