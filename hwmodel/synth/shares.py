#!/usr/bin/env python3
"""Areas of Strix's units by our circuits, beside the shares of its Table III and the ratio of its Table VI.

The proxy of an area is transistors: those that synthesis counts for logic (bench/results/rtl-*.jsonl), and six for each bit of memory, an SRAM cell.

Usage: hwmodel/synth/shares.py > TABLE (two tables in Markdown, as docs/hardware.md has them)
"""

from __future__ import annotations

from dataclasses import dataclass

from record import row_of

CELL = 6  # transistors of a bit
PRINTED = {
    "rotator": 0.02,
    "decomposer": 0.28,
    "I/FFTU": 7.23,
    "VMA": 0.63,
    "accumulator": 0.32,
}  # Table III, mm2
WORD = 128  # bits of a complex word in a transform of 64-bit data


def logic(unit: str, **params: int) -> int:
    """Transistors of a unit without its memories, as the record has them."""
    return int(row_of(unit, params, "cmos")["transistors"])


def transform(points: int) -> tuple[int, int]:
    """Transistors of the butterflies and of the delays of a transform of four lanes: log2 P stages of two butterflies, and P complex words.

    The shuffles between stages have four lines of T/2, T/4, .. 1 words, where T = P/4: P words in all.
    """
    stages = points.bit_length() - 1
    return stages * 2 * logic("fft_butterfly", DW=64, TW=16), points * WORD * CELL


@dataclass(frozen=True)
class Share:
    """Of a core's five units: the printed share, that of the logic of our circuits, and that with the transforms' delays."""

    unit: str
    printed: float
    logic: float
    with_delays: float


def shares() -> list[Share]:
    """A core has two rotators, decomposers and accumulators of 8 lanes, four transforms of up to 8,192 points, and 16 complex multipliers of 32 bits."""
    butterflies, delays = transform(8192)
    ours = {
        "rotator": 2 * logic("rotator", C=8, N=1024),
        "decomposer": 2 * logic("decomposer", C=8, BASE_LOG=10, LEVELS=2),
        "I/FFTU": 4 * butterflies,
        "VMA": 8 * logic("vma", XW=32, KW=32, DW=64, SHIFT=0, C=1, PLP=2),
        "accumulator": 2 * logic("accumulator", C=8, T=128),
    }
    held = {**ours, "I/FFTU": 4 * (butterflies + delays)}
    return [
        Share(
            unit,
            area / sum(PRINTED.values()),
            ours[unit] / sum(ours.values()),
            held[unit] / sum(held.values()),
        )
        for unit, area in PRINTED.items()
    ]


def folding() -> float:
    """The area of a transform of 16,384 points over that of the folded one, of 8,192; Table VI prints 3.13 / 1.81."""
    return sum(transform(16384)) / sum(transform(8192))


def text() -> str:
    """Both tables."""
    lines = [
        "| unit | Table III | logic of our circuits | with the transforms' delays |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {s.unit} | {s.printed:.1%} | {s.logic:.2%} | {s.with_delays:.2%} |" for s in shares()
    ]
    printed = 3.13 / 1.81
    lines += ["", "| area of a transform, no folding over folding | Table VI | our circuits | deviation |", "|---|---|---|---|"]  # fmt: skip
    lines += [f"| | {printed:.2f} | {folding():.2f} | {folding() / printed - 1:+.0%} |"]
    return "\n".join(lines)


if __name__ == "__main__":
    print(text())
