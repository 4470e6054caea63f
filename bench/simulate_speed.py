"""Measures how long `jali simulate` takes, and how much memory: for a million steps of a workload,
and for the trace of a bootstrapping of CKKS.

    python bench/simulate_speed.py [-o FILE] [--trace TRACE]

Each command runs in a process of its own, on one thread, with all that it prints by default: the
schedule, the constants and the other mode. TRACE is of `jali trace bootstrap`; without it the
preset n15_small is recorded first. Prints one JSON object a command: seconds by the clock (wall_s)
and of the processor (cpu_s), which other programs on the machine disturb less, and the largest
memory of the process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from jali import device
from jali.bench.measure import commit

PROGRAMS = (("strix:I", "strix"), ("bootstrap", "h100"), ("bootstrap", "mv_set_bc"))


def measured(command: list[str]) -> dict[str, Any]:
    """Runs a command; its JSON summary, seconds and peak memory."""
    begin = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} ended with exit code {process.returncode}")
        out.seek(0)
        summary = json.loads(out.readline())
    return {
        "steps": summary["steps"],
        "cycles": summary["cycles"],
        "wall_s": round(time.perf_counter() - begin, 2),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_bytes": usage.ru_maxrss * 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--trace", type=Path)
    options = parser.parse_args()
    jali = [sys.executable, "-m", "jali"]
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        trace = options.trace or Path(folder) / "bootstrap.jsonl"
        if options.trace is None:
            subprocess.run([*jali, "trace", "bootstrap", "-o", str(trace)], check=True)
        for program, machine in PROGRAMS:
            source = str(trace) if program == "bootstrap" else program
            found = measured([*jali, "simulate", source, "--machine", machine, "--json"])
            about = {"device_name": device.name(), "cores": os.cpu_count(), "commit": commit()}
            lines.append(json.dumps({"name": "simulate", "program": program, "machine": machine, **found, **about}))  # fmt: skip
            print(lines[-1], flush=True)
    if options.output is not None:
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
