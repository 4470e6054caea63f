"""``jali bench plot FILE... -o PNG`` draws time against level, batch and N, from lines of ``jali
bench --json``."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jali._core import packages
from jali._core.files import save_figure
from jali.cli.parser import Parser
from jali.errors import InvalidArgument, Unsupported

__all__ = ["read", "run", "series"]

AXES = {
    "limbs": "limbs (level)",
    "batch": "batch",
    "log_n": "log2 N",
}
Lines = dict[str, list[tuple[float, float]]]


def read(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """The results in some files. Raises InvalidArgument for lines that are no results."""
    rows = []
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise InvalidArgument(f"{path}: {error.strerror}") from None
        for number, line in enumerate(text.splitlines(), 1):
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                row = None
            if not isinstance(row, dict):
                raise InvalidArgument(
                    f"{path}:{number} is no line of 'jali bench --json': remove it, or give another file"
                )
            if "median_s" in row and "params" in row:
                rows.append(row)
    if not rows:
        raise InvalidArgument(
            "there are no results to plot: give files of 'jali bench NAME --json'"
        )
    return rows


def _value(row: dict[str, Any], axis: str) -> float | None:
    found = row["batch"] if axis == "batch" else row["params"].get(axis)
    return None if found is None else float(found)


def series(rows: list[dict[str, Any]], axis: str) -> Lines:
    """The seconds for each ciphertext along one axis, for every operation that has several points
    along it.

    Everything else is the same for all points of a line. Along N, the points are those with the
    most limbs for each N.
    """
    groups: dict[tuple[Any, ...], dict[float, tuple[float, float]]] = defaultdict(dict)
    for row in rows:
        at = _value(row, axis)
        if at is None:
            continue
        fixed = {"batch": row["batch"], **{k: row["params"].get(k) for k in ("limbs", "log_n")}}
        del fixed[axis]
        fewer = -(fixed.pop("limbs") or 0) if axis == "log_n" else 0
        where = (
            row["name"],
            row["device"],
            row["params"].get("word"),
            row["params"].get("threads"),
        )
        key = (*where, *fixed.items())
        found = (fewer, row["median_s"] / row["batch"])
        groups[key][at] = min(found, groups[key].get(at, found))
    lines: Lines = {}
    for (name, device, word, _, *rest), points in groups.items():
        if len(points) > 1:
            about = " ".join(f"{k}={v}" for k, v in rest if v is not None)
            most = sorted(-fewer for fewer, _ in points.values() if fewer)
            if most:
                about += f" limbs={most[0]}" + (f"..{most[-1]}" if most[-1] > most[0] else "")
            lines[" ".join(filter(None, (name, word, device, about)))] = [
                (at, seconds) for at, (_, seconds) in sorted(points.items())
            ]
    return lines


def run(argv: Sequence[str]) -> int:
    """The command ``jali bench plot``."""
    parser = Parser(prog="jali bench plot", description="A picture of benchmark results.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="JSON lines")
    parser.add_argument("-o", "--out", type=Path, default=Path("bench.png"), metavar="PNG")
    parser.add_argument("--name", action="append", default=[], help="only this operation")
    options: argparse.Namespace = parser.parse_args(list(argv))
    rows = [r for r in read(options.files) if not options.name or r["name"] in options.name]
    panels = {axis: lines for axis in AXES if (lines := series(rows, axis))}
    if not panels:
        raise InvalidArgument(
            "no operation was measured at several levels, batches or N: repeat with --level, "
            "--batch or --log-n given several times"
        )
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        raise Unsupported(f"plots need matplotlib: {packages.install('matplotlib')}") from None
    figure, axes = pyplot.subplots(1, len(panels), figsize=(7 * len(panels), 5), squeeze=False)
    strokes, colours = ("-", "--", ":", "-."), pyplot.rcParams["axes.prop_cycle"].by_key()["color"]
    styles = {"color": [*colours] * 4, "linestyle": [s for s in strokes for _ in colours]}
    for place, (axis, lines) in zip(axes[0], panels.items(), strict=True):
        place.set_prop_cycle(**styles)  # no two of forty alike
        for label, points in sorted(lines.items()):
            place.plot(*zip(*points, strict=True), marker="o", markersize=3, label=label)
        place.set_xlabel(AXES[axis])
        place.set_ylabel("seconds a ciphertext")
        place.set_yscale("log")
        if axis == "batch":
            place.set_xscale("log", base=2)
        place.grid(True, which="both", linewidth=0.3)
        place.legend(fontsize=6, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.12))
    names = sorted({r["device_name"] for r in rows if "device_name" in r})
    figure.suptitle(", ".join(names), fontsize=9)
    out = save_figure(
        figure, options.out, dpi=120, bbox_inches="tight"
    )  # legends below may be long
    print(f"wrote {out}")
    return 0
