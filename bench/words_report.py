"""The three words side by side: docs/words.md and docs/words.png from bench/results/NAME.jsonl.

    python bench/words_report.py NAME

NAME holds the lines of `jali bench words --json`. Needs matplotlib.
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
COLOURS = {"w32": "#2b7a78", "w52": "#d98324", "w64": "#7d5ba6"}
ENGINE = {"ntt": "NTT", "intt": "inverse NTT", "mul": "product", "key_switch": "key switch"}
CIPHERTEXTS = {"hmult_relin_rescale": "HMult", "rotate": "HRot"}
NAMES = ENGINE | CIPHERTEXTS

Row = dict[str, Any]


def load(name: str) -> dict[tuple[int, str], dict[str, Row]]:
    """Rows by (log2 N, operation) and word."""
    text = (HERE / "results" / f"{name}.jsonl").read_text(encoding="utf-8")
    found: dict[tuple[int, str], dict[str, Row]] = defaultdict(dict)
    for line in text.splitlines():
        row = json.loads(line)
        if row["name"] in NAMES and row["batch"] == 1:
            found[row["params"]["log_n"], row["name"]][row["params"]["word"]] = row
    return {key: rows for key, rows in sorted(found.items()) if len(rows) == len(WORDS)}


def table(rows: dict[tuple[int, str], dict[str, Row]]) -> str:
    """Markdown: microseconds, and the limbs of each word."""
    lines = ["| N | operation | w32 | w52 | w64 | fastest |", "|---|---|---|---|---|---|"]
    order = list(NAMES)
    for (log_n, name), words in sorted(rows.items(), key=lambda r: (r[0][0], order.index(r[0][1]))):
        cells = [
            f"{words[w]['median_s'] * 1e6:.1f} us ({words[w]['params']['limbs']})" for w in WORDS
        ]
        best = min(WORDS, key=lambda w: words[w]["median_s"])
        lines.append(f"| 2^{log_n} | {NAMES[name]} | {' | '.join(cells)} | {best} |")
    return "\n".join(lines) + "\n"


def picture(rows: dict[tuple[int, str], dict[str, Row]], path: Path) -> None:
    """A panel a ring, a group of bars an operation."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rings = sorted({log_n for log_n, _ in rows})
    figure, axes = pyplot.subplots(1, len(rings), figsize=(5 * len(rings), 4), squeeze=False)
    for place, log_n in zip(axes[0], rings, strict=True):
        names = [name for name in NAMES if (log_n, name) in rows]
        for k, word in enumerate(WORDS):
            heights = [rows[log_n, name][word]["median_s"] * 1e6 for name in names]
            at = [i + (k - 1) * 0.27 for i in range(len(names))]
            place.bar(at, heights, 0.25, label=word, color=COLOURS[word])
        place.set_xticks(range(len(names)), [NAMES[name] for name in names], rotation=30)
        place.set_yscale("log")
        place.set_ylabel("us")
        place.set_title(f"N = 2^{log_n}")
        place.grid(True, axis="y", which="both", linewidth=0.3)
        place.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


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
    picture(rows, DOCS / "words.png")


if __name__ == "__main__":
    main()
