"""Draws the charts of the documents from bench/results/ and bench/peers/figures.toml.

    python bench/pictures.py

It writes docs/peers.png (Jali beside other libraries), docs/precision.png (precision against time
of bootstrapping), docs/performance.png (time against level and ring), docs/batches.png (time of
look-ups against their number) and docs/reuse.png (what an accelerator reads, by the models of
jali.simulate). It needs matplotlib. No chart has more than six lines or marks.
"""

from __future__ import annotations

import json
import tomllib
from math import log2
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
JALI, PEER, OTHER = "#1f7a78", "#9aa3ad", "#d98324"
INK, GRID = "#22303c", "#d8dde2"

# The records that the charts are drawn from.
TABLE = "h100-2026-11-22-table"
BOOTSTRAPPING = "h100-2026-11-22-bootstrap"
SWITCHES = "h100-2026-11-22-switch"
WORDS = "h100-2026-11-22-words"
CPU = "2026-11-21-epyc-zen5-2c"
# Time of look-ups against their number: one block a ciphertext, of a first version, and clusters of
# eight blocks.
BATCHES, BATCHES_COMMIT = "tfhe-h100-2026-11-26-sets", "e3f168a"

Row = dict[str, Any]


def rows(name: str) -> list[Row]:
    """The lines of bench/results/NAME.jsonl."""
    text = (HERE / "results" / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def one(found: list[Row]) -> Row:
    """The only row of a list. If there are several or none, the program ends."""
    if len(found) != 1:
        raise SystemExit(f"one row was expected, {len(found)} were found")
    return found[0]


def peers(operation: str) -> list[Row]:
    """The figures of other libraries for an operation, the fastest first."""
    with (HERE / "peers" / "figures.toml").open("rb") as file:
        figures = tomllib.load(file)["figure"]
    return sorted((f for f in figures if f["operation"] == operation), key=lambda f: f["seconds"])


def spoken(seconds: float) -> str:
    """A time in the unit that people use for it, with three digits at most."""
    value, unit = (seconds * 1e3, "ms") if seconds >= 1e-3 else (seconds * 1e6, "us")
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


Bars = list[tuple[str, float]]


def gpu_bars() -> dict[str, Bars]:
    """Bars for one H100: Jali's times are from its records, the others' from figures.toml."""
    table = rows(TABLE)
    bootstrap = one(
        [
            r
            for r in rows(BOOTSTRAPPING)
            if r["preset"] == "n16_fast"
            and r["params"]["word"] == "w32"
            and r["batch"] == 1
            and r["keys"] == "all"
        ]
    )
    jali = {
        "bootstrapping": bootstrap["each_s"],
        "rotation": one([r for r in table if r["name"] == "rotate" and r["params"]["limbs"] == 41])[
            "median_s"
        ],
        "product": one(
            [r for r in table if r["name"] == "hmult_relin_rescale" and r["params"]["limbs"] == 37]
        )["median_s"],
    }
    return {
        name: [("Jali", seconds), *((p["library"], p["seconds"]) for p in peers(name))]
        for name, seconds in jali.items()
    }


def cpu_bars() -> Bars:
    """Bars for one thread of a CPU, from runs in which Jali and a peer took turns."""
    found: Bars = []
    names = {"lattigo": "Lattigo 6.2.0", "seal": "SEAL (TenSEAL)"}
    for row in rows(CPU):
        if row["name"] == "beside multiply_relinearise_rescale" and row["params"]["log_q"] == 375:
            found.append(("Jali", row["jali_s"]))
            found.append((names[row["peer"]["ready"]], row["peer_s"]))
    jali = max(seconds for name, seconds in found if name == "Jali")  # the slower of its runs
    return [("Jali", jali), *sorted((b for b in found if b[0] != "Jali"), key=lambda b: b[1])]


def _frame(place: Any, title: str, about: str) -> None:
    place.set_title(title, fontsize=13, fontweight="bold", loc="left", color=INK, pad=24)
    place.text(0, 1.04, about, transform=place.transAxes, fontsize=10, color="#5b6874")
    for side in ("top", "right"):
        place.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        place.spines[side].set_color(GRID)
    place.tick_params(labelsize=11, colors=INK, length=0)


def draw_bars(place: Any, title: str, about: str, bars: Bars) -> None:
    """Draws one horizontal bar for each library, with its time beside it."""
    _frame(place, title, about)
    labels = [name for name, _ in bars]
    times = [seconds for _, seconds in bars]
    places = range(len(bars))
    place.barh(places, times, 0.62, color=[JALI if name == "Jali" else PEER for name in labels])
    place.set_yticks(places, labels)
    for tick in place.get_yticklabels()[:1]:
        tick.set_fontweight("bold")
    place.invert_yaxis()
    place.set_ylim(2.6, -0.6)  # bars are equally thick in every panel
    place.set_xlim(0, max(times) * 1.3)
    place.set_xticks([])
    place.spines["bottom"].set_visible(False)
    for at, seconds in zip(places, times, strict=True):
        weight = "bold" if at == 0 else "normal"
        place.text(
            seconds, at, f" {spoken(seconds)}", va="center", fontsize=12, color=INK, weight=weight
        )


def peers_picture(pyplot: Any) -> None:
    """Draws four operations, Jali beside other libraries."""
    gpu = gpu_bars()
    figure, axes = pyplot.subplots(2, 2, figsize=(11, 5.6))
    draw_bars(
        axes[0][0],
        "Bootstrapping",
        "one H100, N = 2^16, 2^15 complex slots, 13 levels left",
        gpu["bootstrapping"],
    )
    draw_bars(
        axes[0][1], "Rotation", "one H100, N = 2^16, about 1,230 bits of modulus", gpu["rotation"]
    )
    draw_bars(
        axes[1][0],
        "Product with rescale",
        "one H100, N = 2^16, about 1,100 bits of modulus (FIDESlib 1,311)",
        gpu["product"],
    )
    draw_bars(
        axes[1][1],
        "Product on a CPU",
        "one thread, Zen 5, N = 2^14, 375 bits of modulus",
        cpu_bars(),
    )
    figure.tight_layout(h_pad=2.2, w_pad=3)
    figure.savefig(DOCS / "peers.png", dpi=130)


def precision_picture(pyplot: Any) -> None:
    """Draws precision against time, one mark for each preset, on the word that is fastest on a
    GPU."""
    figure, place = pyplot.subplots(figsize=(9, 5))
    _frame(
        place,
        "Bootstrapping: precision against time",
        "one H100, one ciphertext; higher and further left is better",
    )
    marks = [
        (r["preset"], r["each_s"] * 1e3, r["precision_bits"], JALI, "o")
        for r in rows(BOOTSTRAPPING)
        if r["params"]["word"] == "w32" and r["batch"] == 1 and r["keys"] == "all"
    ]
    for peer in peers("bootstrapping"):
        bits = -log2(peer["mean_error"])
        marks.append((peer["library"], peer["seconds"] * 1e3, bits, OTHER, "D"))
    below = {"n16_fast"}  # its neighbour n16_real lies just above it
    for name, x, y, colour, mark in marks:
        place.scatter([x], [y], s=90, color=colour, marker=mark, zorder=3)
        up = -20 if name in below else 11
        place.annotate(
            f"{name}, {x:.3g} ms",
            (x, y),
            xytext=(0, up),
            textcoords="offset points",
            fontsize=12,
            ha="center",
            color=INK,
        )
    place.set_xscale("log")
    ticks = [3, 5, 10, 20, 50]
    place.set_xticks(ticks, [f"{t} ms" for t in ticks])
    place.minorticks_off()
    place.set_xlim(2.2, 90)
    place.set_ylim(12, 31)
    place.set_yticks([15, 20, 25, 30])
    place.set_ylabel("bits of precision (-log2 of the mean error)", fontsize=11, color=INK)
    place.grid(True, linewidth=0.6, color=GRID)
    figure.tight_layout()
    figure.savefig(DOCS / "precision.png", dpi=130)


def performance_picture(pyplot: Any) -> None:
    """Draws the time against the level for one ring, and against the ring for the three words."""
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.6))
    _frame(left, "Time against level", "N = 2^16, w32, one ciphertext, one H100")
    switches = rows(SWITCHES)
    for name, label, colour in (("hmult", "product", OTHER), ("hrotate", "rotation", JALI)):
        points = sorted(
            (r["params"]["limbs"], r["median_s"] * 1e6)
            for r in switches
            if r["name"] == name
            and r["params"]["set"] in ("level11", "level22", "level37", "level41")
        )
        left.plot(*zip(*points, strict=True), marker="o", color=colour, linewidth=2, label=label)
    left.set_xlabel("limbs (level)", fontsize=11, color=INK)
    left.set_ylim(0, 260)
    left.set_yticks([50, 100, 150, 200, 250], [f"{t} us" for t in (50, 100, 150, 200, 250)])
    _frame(
        right,
        "Product with rescale, by ring and word",
        "log Q 360, 720 and 1,230 bits, one ciphertext, one H100",
    )
    colours = {"w32": JALI, "w52": OTHER, "w64": "#7d5ba6"}
    for word, colour in colours.items():
        points = sorted(
            (r["params"]["log_n"], r["median_s"] * 1e6)
            for r in rows(WORDS)
            if r["name"] == "hmult_relin_rescale"
            and r["params"]["word"] == word
            and r["batch"] == 1
        )
        right.plot(*zip(*points, strict=True), marker="o", color=colour, linewidth=2, label=word)
    right.set_xticks([14, 15, 16], ["N = 2^14", "2^15", "2^16"])
    right.set_xlim(13.7, 16.1)
    right.set_ylim(0, 720)
    right.set_yticks([200, 400, 600], [f"{t} us" for t in (200, 400, 600)])
    for place in (left, right):
        place.grid(True, linewidth=0.6, color=GRID)
        place.legend(fontsize=11, frameon=False, loc="upper left")
    figure.tight_layout(w_pad=3)
    figure.savefig(DOCS / "performance.png", dpi=130)


def batches(kind: str) -> list[tuple[int, float]]:
    """Numbers of look-ups and their milliseconds, of one set."""
    return sorted(
        (r["batch"], r["ms"])
        for r in rows(BATCHES)
        if r["commit"] == BATCHES_COMMIT and r["set"] == kind and r["what"] == "pbs"
    )


def batches_picture(pyplot: Any) -> None:
    """Draws the time against the batch for look-ups of TFHE, beside what whole waves would take."""
    figure, place = pyplot.subplots(figsize=(9, 5))
    _frame(
        place,
        "Time of look-ups of TFHE against their number",
        "one H100, messages and carries of 2 bits, N 2,048, p_fail 2^-128",
    )
    classic = batches("2_2")
    wave, full = 528, dict(classic)[528]  # four ciphertexts on each of 132 SMs
    counts = range(1, classic[-1][0] + 1)
    waves = [full * -(-count // wave) for count in counts]
    place.plot(counts, waves, color=PEER, linewidth=1.5, label=f"whole waves of {wave}, classic")
    for points, label, colour in (
        (classic, "classic keys, n 918", JALI),
        (batches("2_2_multi_bit_4"), "multi-bit keys, 4 bits a step, n 920", OTHER),
    ):
        place.plot(*zip(*points, strict=True), marker="o", color=colour, linewidth=2, label=label)
    place.set_xscale("log")
    place.set_yscale("log")
    numbers = [1, 8, 64, 264, 528, 1056, 2048, 4096, 8192]
    place.set_xticks(numbers, [f"{n:,}" for n in numbers])
    times = [0.5, 1, 2, 5, 10, 20, 50, 100]
    place.set_yticks(times, [f"{t} ms" for t in times])
    place.minorticks_off()
    place.set_xlabel("look-ups at once", fontsize=11, color=INK)
    place.grid(True, linewidth=0.6, color=GRID)
    place.legend(fontsize=11, frameon=False, loc="upper left")
    figure.tight_layout()
    figure.savefig(DOCS / "batches.png", dpi=130)


def reuse_picture(pyplot: Any) -> None:
    """Draws Figures 1 and 3 of the matrix-vector paper from the model: what is read from outside,
    by entity and by memory."""
    from jali.simulate import allocator, matvec

    product = matvec.Product(1024, 1024, matvec.published_sets()["Set-B"])
    entities = product.entities()
    sizes = range(0, 7_100_000, 100_000)  # bytes
    found = allocator.sweep(entities, sizes, allocator.greedy)
    best = allocator.sweep(entities, sizes, allocator.exact)
    order = sorted(found[0].outer_by_entity, key=lambda name: found[0].outer_by_entity[name])
    colours = dict(zip(order, ("#b7c4cf", "#7d5ba6", PEER, OTHER, "#5fa8a6", JALI), strict=True))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 4.8))
    _frame(left, "Reads without on-chip memory", "1,024 x 1,024, Set-B, 42.5 GB (Figure 1)")
    all_ = found[0].outer_bytes
    shares = [100 * found[0].outer_by_entity[name] / all_ for name in order]
    left.barh(order, shares, color=[colours[name] for name in order])
    for height, share in enumerate(shares):
        left.text(share + 0.5, height, f"{share:.1f}%", va="center", fontsize=11, color=INK)
    left.set_xticks([])
    left.set_xlim(0, 42)
    _frame(right, "Reads by on-chip memory", "whole entities, the dearest first (Figure 3)")
    mb = [size / 1e6 for size in sizes]
    kept = [[a.outer_by_entity[name] / 1e9 for a in found] for name in reversed(order)]
    right.stackplot(mb, kept, colors=[colours[name] for name in reversed(order)])
    least = [a.outer_bytes / 1e9 for a in best]
    right.plot(mb, least, color=INK, linestyle=":", linewidth=1.5, label="the exact optimum")
    right.set_xlabel("on-chip memory, MB", fontsize=11, color=INK)
    right.set_ylabel("GB from DRAM", fontsize=11, color=INK)
    right.set_xlim(0, 7)
    right.set_ylim(0, 45)
    right.legend(fontsize=11, frameon=False, loc="upper right")
    figure.tight_layout(w_pad=3)
    figure.savefig(DOCS / "reuse.png", dpi=130)


def main() -> None:
    """Draws all of them."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams["font.family"] = "DejaVu Sans"
    for draw in (
        peers_picture,
        precision_picture,
        performance_picture,
        batches_picture,
        reuse_picture,
    ):
        draw(pyplot)


if __name__ == "__main__":
    main()
