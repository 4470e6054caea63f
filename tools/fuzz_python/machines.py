"""Hostile machine files: texts that jali.simulate refuses, or on which a program runs."""

from __future__ import annotations

import math
from typing import Any

from fuzz_python.traces import FOLDER, SimulatedCase
from jali.simulate import fitted, workloads
from jali.simulate import trace as traces
from jali.simulate.machine import FOLDER as MACHINES
from jali.simulate.machine import MODES, Machine, shipped

__all__ = ["MachineCase"]

NUMBERS = ["0", "-1", "1", "2", "3", "1e-9", "1e-300", "1e18", "1e29", "1e31", "1e400", "nan", "inf", "-inf", "true", "[]",
           "9" * 30, "9" * 5000, "1979-05-27", '"clp"', '"n"', '"log2n"', '"n ** 9"', '"2 ** n"', '"1 / (n - n)"', '"0 - n"',
           '"(0 - 1) ** 0.5"', '"9 ** 9 ** 9"', '"__import__(1)"', '"tvlp.real"', '"max()"', '"max(1)"', '"ceil(1, 2)"',
           '"log2(0)"', '"' + "(" * 90 + '"', '"1 if 1 else 2"', '"n\\nn"', '""', '"f * g * h"', '"1e308 * 10"', '"n // 0"',
           '"min(n, 1e-12)"', '"9" * 9']  # fmt: skip
SOURCES = [
    "paper",
    "paper:",
    "guess",
    "",
    "assumed:x\\ny",
    "paper:" + "x" * 300,
    "rtl:none",
    "derived",
]
WORDS = [
    "strict",
    "clp",
    "n",
    "log2n",
    "all",
    "key",
    "units",
    "NTT",
    "LOAD",
    "FFT+IFFT",
    "chip",
    "none",
    "\\u0000",
    "x" * 2000,
]
WORKLOADS = ["strix:I,iterations=2,cores=2", "strix:IV,iterations=1,tiles=2", "matvec:64x64,set=A,rows=2"]  # fmt: skip


class MachineCase(SimulatedCase):
    """One machine file: a shipped one with some of its text changed."""

    def run(self) -> None:
        """Changes, reads, and runs a program on what was accepted."""
        name = self.random.choice(shipped())
        lines = (MACHINES / f"{name}.toml").read_text(encoding="utf-8").splitlines()
        self.log(f"  {name}")
        for _ in range(self.random.choice([0, 1, 1, 2, 3])):
            self.change(lines)
        mode = self.random.choice([*MODES, *MODES, *MODES, "fast"])
        text = "\n".join(lines)
        machine = self.attempt("parse", lambda: Machine.parse(text, mode, self.changes()))
        if machine is None:
            return
        if self.random.random() < 0.5:
            program = self.attempt(
                "workload", lambda: workloads.parse(self.random.choice(WORKLOADS), machine)
            )
        else:
            file = self.random.choice(sorted(FOLDER.glob("*.jsonl")))
            self.log(f"  {file.name}")
            program = fitted.fitted(traces.read(file))
        if program is not None:
            self.simulate(program, machine)
            self.attempt("area", lambda: math.isfinite(machine.area_mm2))

    def changes(self) -> dict[str, Any] | None:
        """What --set gives."""
        if self.random.random() < 0.7:
            return None
        names = [
            "clp",
            "tvlp",
            "hbm_gbs",
            "g",
            "p",
            "c",
            "units.fft.lanes",
            "frequency_hz",
            "clusters",
            "nothing",
            "units",
            "",
        ]
        values = [0, -1, 1, 3, 0.5, 1e-9, 1e12, 1e300, math.nan, math.inf, True]
        name, value = self.random.choice(names), self.random.choice(values)
        self.log(f"    set {name!r} = {value!r}")
        return {name: value}

    def change(self, lines: list[str]) -> None:
        """Changes one line."""
        at, kind = self.random.randrange(len(lines)), self.random.random()
        line = lines[at]
        if kind < 0.15:
            del lines[at]
        elif kind < 0.25:
            lines.insert(self.random.randrange(len(lines)), line)
        elif "value = " in line and kind < 0.75:
            before, _, rest = line.partition("value = ")
            ends = [rest.find(x) for x in (", source", " }") if x in rest]
            lines[at] = (
                f"{before}value = {self.random.choice(NUMBERS)}{rest[min(ends) :] if ends else ''}"
            )
        elif 'source = "' in line and kind < 0.85:
            before, _, rest = line.partition('source = "')
            lines[at] = (
                f'{before}source = "{self.random.choice(SOURCES)}"{rest.partition(chr(34))[2]}'
            )
        elif '"' in line:
            before, _, rest = line.partition('"')
            lines[at] = f'{before}"{self.random.choice(WORDS)}"{rest.partition(chr(34))[2]}'
        else:
            key = line.partition("=")[0].strip() or "format"
            lines[at] = f"{key} = {self.random.choice(NUMBERS)}"
        if at < len(lines):
            self.log(f"    line {at + 1}: {lines[at][:200]!r}")
