"""What an on-chip memory should hold for a program: the greedy rule beside the optimum, for sizes
of the memory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jali._core.console import bytes_text, table
from jali._core.files import save_figure
from jali.errors import InvalidArgument, LimitExceeded
from jali.simulate.allocator import Allocation, bound, entities_of, exact, greedy
from jali.simulate.roofline import plotting
from jali.simulate.steps import ANY, Kind, Steps
from jali.simulate.sweeps import read_sweep

__all__ = ["Choice", "allocations", "draw", "line", "read_sizes", "show"]

STATES = 20_000  # of the exact choice; beyond them the bound stands for it
SHOWN = 4  # kinds of entities in a row of the table
MEGABYTE = 10**6


@dataclass(frozen=True)
class Choice:
    """A size of the memory in bytes. always: bytes read that no choice saves, because nothing names
    their operand. exact: None if it is too long to find.
    least: bytes that no choice reads less than."""

    sram: int
    always: int
    greedy: Allocation
    exact: Allocation | None
    least: float


def read_sizes(text: str) -> list[int]:
    """Bytes from megabytes, "1,2,8" or "0:6:1" with the end. Raises InvalidArgument."""
    try:
        _, sizes = read_sweep(f"megabytes={text}")
    except InvalidArgument:
        sizes = [-1.0]
    if min(sizes) < 0 or max(sizes) > 1e9:
        raise InvalidArgument(f"--allocate takes megabytes, as 1,2,8 or 0:6:1, and not {text!r}")
    return [round(size * MEGABYTE) for size in sizes]


def allocations(steps: Steps, sizes: Sequence[int]) -> list[Choice]:
    """The choices for each size, from the loads of a program as if the chip had no other memory."""
    entities = entities_of(steps)
    unnamed = (steps.kind == Kind.LOAD) & (steps.operand == ANY)
    always = int(steps.bytes[unnamed].sum())
    asked = sum(entity.cost for entity in entities)
    found = []
    for size in sizes:
        try:
            best: Allocation | None = exact(entities, size, STATES)
        except LimitExceeded:
            best = None
        saving = bound(entities, size) if best is None else float(best.saving)
        found.append(Choice(size, always, greedy(entities, size), best, always + asked - saving))
    return found


def _held(choice: Allocation) -> dict[str, int]:
    """Bytes that are held, by kind of entity; those that never live at once count, too."""
    held: Counter[str] = Counter()
    for entity in choice.held:
        held[entity.name.rpartition(" ")[0]] += entity.bytes
    return dict(held.most_common())


def line(choice: Choice) -> dict[str, Any]:
    """A choice as an object of JSON. Reads are bytes from outside of the chip."""
    best = choice.exact
    return {
        "sram_bytes": choice.sram,
        "greedy_read_bytes": choice.always + choice.greedy.outer_bytes,
        "greedy_peak_bytes": choice.greedy.peak,
        "greedy_held_bytes": _held(choice.greedy),
        "exact_read_bytes": None if best is None else choice.always + best.outer_bytes,
        "exact_held_bytes": None if best is None else _held(best),
        "least_read_bytes": math.floor(choice.least),
    }


def show(found: Sequence[Choice], title: str) -> None:
    """Prints the choices as a table."""
    rows = []
    for one in found:
        best = one.exact
        held = list(_held(one.greedy if best is None else best).items())
        names = ", ".join(f"{name} {bytes_text(size)}" for name, size in held[:SHOWN])
        rows.append(
            (
                f"{one.sram / MEGABYTE:g}",
                bytes_text(one.always + one.greedy.outer_bytes),
                "not found" if best is None else bytes_text(one.always + best.outer_bytes),
                bytes_text(math.floor(one.least)),
                names + (", .." if len(held) > SHOWN else "") or "nothing",
            )
        )
    titles = ["MB on the chip", "read, greedy", "read, exact", "at least", "held at some time"]
    table(f"{title}: bytes from off chip for what the chip holds", titles, rows)


def draw(found: Sequence[Choice], file: Path, title: str) -> None:
    """Writes a picture of the bytes read over the size of the memory. Raises as roofline.draw."""
    pyplot = plotting(file)
    figure, place = pyplot.subplots(figsize=(7, 5))
    sizes = [one.sram / MEGABYTE for one in found]
    reads = [(one.always + one.greedy.outer_bytes) / 1e9 for one in found]
    place.step(sizes, reads, where="post", label="greedy")
    place.step(sizes, [one.least / 1e9 for one in found], where="post", label="at least")
    place.set_xlabel("MB on the chip")
    place.set_ylabel("GB read from off chip")
    place.set_title(title, fontsize=9)
    place.legend(fontsize=7)
    place.grid(True, linewidth=0.3)
    save_figure(figure, file, dpi=120, bbox_inches="tight")
    pyplot.close(figure)
