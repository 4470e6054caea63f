"""Holds the model h100 to measurements: rotations, products and bootstrappings of bench/results on
an H100 and an H200, in the word w32.

    python bench/simulate_h100.py [-o FILE] [RESULTS ...]

For each measured row it records the same operation on the CPU, whose engine gets the same requests,
lowers the trace and simulates it. An operation is simulated three times in a row (a bootstrapping
twice), and the time of the last is taken: the measurements were of repeated operations, too. Of a
batch one ciphertext is recorded, and the steps get its size. An H200 is an H100 with the memory
that was measured on it. It prints one JSON object a row, and the median and the worst error of each
GPU to standard error.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jali import ckks
from jali.bench import sets
from jali.simulate.lower import lower
from jali.simulate.machine import Machine
from jali.simulate.roofline import bounds
from jali.simulate.scheduler import schedule
from jali.simulate.steps import Entity, Steps
from jali.simulate.trace import parse

RESULTS = Path(__file__).resolve().parent / "results"
FILES = (
    "h100-2026-11-22-table",
    "h100-2026-11-22-words",
    "h100-2026-11-22-bootstrap",
    "h100-2026-11-22-bootstrap-presets",
    "ranges-h200-2026-11-23",
    "energy-h200-2026-11-23",
)
# What differs from h100.toml: a copy reads and writes so many TB/s, as the floors of
# ranges-h200-2026-11-23.jsonl say.
DEVICES: dict[str, dict[str, float]] = {"h100": {}, "h200": {"copy_tbs": 4.10}}
REPEATS = {"rotate": 3, "hmult_relin_rescale": 3, "bootstrap": 2}
PRESETS = ("n15_small", "n16_fast")  # the others take as long to record, and are like these
# What a batch has once: each of its ciphertexts reads the same.
SHARED = (Entity.KEY, Entity.PLAINTEXT, Entity.TWIDDLE, Entity.INVERSE_TWIDDLE)


def operation(row: dict[str, Any]) -> tuple[str, str, int | None, int]:
    """What a row measured: name, set, level and batch."""
    params = row["params"]
    level = None if row["name"] == "bootstrap" else params["level"]
    return row["name"], row.get("preset") or params["set"], level, row["batch"]


def measured(files: list[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows that can be compared, with their devices. Of what a device measured more than once,
    the last."""
    found: dict[Any, tuple[str, dict[str, Any]]] = {}
    for file in files:
        device = "h200" if "h200" in file.name else "h100"
        for line in filter(None, file.read_text(encoding="utf-8").splitlines()):
            row = json.loads(line)
            if row.get("name") not in REPEATS or row["params"]["word"] != "w32":
                continue
            if row.get("keys", "all") == "all" and row.get("preset", PRESETS[0]) in PRESETS:
                found[device, operation(row)] = (device, row)
    yield from found.values()


def of_batch(steps: Steps, batch: int) -> Steps:
    """The steps for so many ciphertexts, from those for one."""
    times = np.where(np.isin(steps.entity, SHARED), 1, batch)
    return replace(
        steps,
        count=np.where(steps.bytes > 0, steps.count, steps.count * batch),
        bytes=steps.bytes * times,
        mults=steps.mults * batch,
    )


@functools.cache
def recorded(name: str, set_name: str, level: int | None) -> Steps:
    """The steps of a repeated operation on one ciphertext."""
    boots = name == "bootstrap"
    params = sets.load(set_name, word="w32", device="cpu")
    client = ckks.Client(params)
    keys = client.evaluation_keys(bootstrap=True) if boots else client.evaluation_keys([1])
    server = ckks.Evaluator(params, keys, "cpu", trace=True)
    values = np.full(params.slots, 0.25)
    level = params.bootstrap_level if boots else level
    x, y = (server.bind(client.encrypt(values, level=level)) for _ in range(2))
    if boots:
        x.bootstrap()  # makes its diagonals
    server.trace().clear()
    for _ in range(REPEATS[name]):
        match name:
            case "bootstrap":
                x.bootstrap()
            case "rotate":
                server.explicit.rotate(x.ciphertext, 1)
            case _:
                server.explicit.multiply_relinearise_rescale(x.ciphertext, y.ciphertext)
    return lower(parse(server.trace().json_lines()))


def simulated(steps: Steps, machine: Machine, times: int) -> tuple[float, str]:
    """Seconds of the last of the repeated operations, and what bounds them."""
    result = schedule(steps, machine)
    of = steps.record * times // (int(steps.record.max()) + 1)
    ends = [int(result.end[of == i].max()) for i in range(times)]
    name = bounds(steps, machine, result.plan).name
    return (ends[-1] - ends[-2]) / float(machine.frequency_hz), name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "files",
        nargs="*",
        type=Path,
        default=[RESULTS / f"{name}.jsonl" for name in FILES],
    )
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    lines: list[str] = []
    errors: dict[str, list[tuple[float, str]]] = {}
    for device, row in measured(options.files):
        machine = Machine.load("h100", set=DEVICES[device])
        *one, batch = operation(row)
        steps = of_batch(recorded(*one), batch)
        seconds, bound = simulated(steps, machine, REPEATS[row["name"]])
        error = seconds / row["median_s"] - 1
        errors.setdefault(device, []).append((abs(error), " at ".join(operation(row)[:2])))
        line = {
            "name": row["name"],
            "machine": "h100",
            "device": device,
            "changes": DEVICES[device],
            "preset": row.get("preset"),
            "params": row["params"],
            "batch": row["batch"],
            "measured_s": row["median_s"],
            "simulated_s": seconds,
            "bound": bound,
            "error": round(error, 4),
        }
        lines.append(json.dumps(line))
        print(lines[-1], flush=True)
    if options.output is not None:
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for device, found in errors.items():
        worst, where = max(found)
        middle = statistics.median(error for error, _ in found)
        print(
            f"{device}, {len(found)} rows: median error {middle:.0%}, worst {worst:.0%} ({where})",
            file=sys.stderr,
        )


if __name__ == "__main__":
    main()
