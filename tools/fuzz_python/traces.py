"""Hostile traces: texts that the reader of jali.simulate refuses, or that are lowered and run on a
machine."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jali
from fuzz_python.hostile import INTEGERS
from jali.simulate import fitted, gantt, report, scheduler, steps
from jali.simulate import trace as traces
from jali.simulate.machine import MODES, Machine, shipped

__all__ = ["SimulatedCase", "TraceCase"]

FOLDER = Path(__file__).resolve().parents[2] / "vectors" / "traces"
FEW_STEPS = 20_000  # a case with more is refused, which keeps cases short

SHAPE = (
    "N",
    "n",
    "k",
    "group",
    "word_bytes",
    "rotation_gadget",
    "switch_gadget",
    "prime_bits",
    "digits",
)
#: Values of no field, and values that some fields have.
VALUES = [None, True, "", "ckks", "tfhe", "key", "a\u0000b", 0.5, -0.0, 1e300, [], [[]], {}, {"a": 1}, [0], [1, 1],
          [3, 2, 1], ["key", 0, 0, 8], [["key", 0, 0, 8]], [["scratch", 1 << 53, 1 << 53, 1 << 53]]]  # fmt: skip
#: Numbers near the ends of what fields allow.
SIZES = [0, 1, 2, 3, 4, 5, 8, 16, 20, 21, 64, 65, 1 << 10, 1 << 16, (1 << 16) + 1, 1 << 20, 1 << 31, 1 << 32, 1 << 53,
         (1 << 53) + 1]  # fmt: skip
#: Texts that stand for a number in JSON and are none, or none of a usual size.
LITERALS = [b"NaN", b"Infinity", b"-1", b"1e999", b"1E400", b"0x10", b"9" * 5000, b"1" + b"0" * 400, b"[" * 60_000,
            b'"\xff"', b'"\\ud800"', b"-0", b"1.0"]  # fmt: skip

#: A machine that runs every step.
EVERYTHING = Machine.parse(
    f"""
format = 1
name = "everything"
frequency_hz = {{ value = 1e9, source = "assumed" }}
clusters = {{ value = 3, source = "assumed" }}
[widths]
coefficient = {{ value = 8, source = "assumed" }}
[units.all]
scope = "cluster"
count = {{ value = 2, source = "assumed" }}
lanes = {{ value = 16, source = "assumed" }}
kinds."{"+".join(kind.name for kind in steps.Kind if kind not in steps.MOVES)}" = {{ latency = {{ value = "log2n", source = "assumed" }} }}
[memories.all]
holds = ["all"]
bytes = {{ value = 100000, source = "assumed" }}
[buses.all]
carries = ["all"]
bytes_a_cycle = {{ value = 32, source = "assumed" }}
[channels.all]
carries = ["all"]
bytes_a_second = {{ value = 1e10, source = "assumed" }}
buffer_bytes = {{ value = 10000, source = "assumed" }}
"""
)


class SimulatedCase:
    """A case that ends with a simulation. log: takes each step before it is taken."""

    def __init__(self, seed: int, number: int, log: Callable[[str], None]) -> None:
        self.random = random.Random(f"{type(self).__name__}:{seed}:{number}")
        self.log = log
        self.log(f"case {number}: {type(self).__name__}")

    def attempt(self, name: str, call: Callable[[], Any]) -> Any:
        """What the call gives, or None where it raised an error of Jali's with a sentence."""
        self.log(f"  {name}")
        try:
            return call()
        except jali.InternalError:
            raise
        except jali.Error as error:
            text = str(error)
            assert len(text.split()) > 3, f"an error that is no sentence: {text!r}"
            self.log(f"    {type(error).__name__}: {text[:200]}")
        return None

    def simulate(self, program: Any, machine: Machine) -> None:
        """Runs a program and looks at everything that is reported; the accounts must close."""
        steps.MOST = FEW_STEPS
        made = self.attempt("steps", lambda: program(machine))
        if made is None:
            return
        found = self.attempt(
            "schedule", lambda: report.make_report(lambda _: made, machine, None, False)
        )
        if found is None:
            return
        result: scheduler.Schedule = found.schedule
        assert result.span >= found.bounds.cycles * (1 - 1e-9), "a time below its lower bound"
        for server in result.servers:
            whole = server.instances * result.span
            assert server.busy + sum(server.stalls) == whole, f"{server.name}: stalls do not add up"
        for line in report.lines(found, "fuzzed"):
            json.dumps(line, allow_nan=False)
        for event in gantt.events(result):
            json.dumps(event)


class TraceCase(SimulatedCase):
    """One trace: a recorded one with some fields changed, or some bytes."""

    def run(self) -> None:
        """Changes, reads, and simulates what was accepted."""
        file = self.random.choice(sorted(FOLDER.glob("*.jsonl")))
        lines = file.read_bytes().splitlines()
        self.log(f"  {file.name}")
        for _ in range(self.random.choice([0, 1, 1, 1, 2, 3])):
            self.change(lines)
        text = b"\n".join(lines) + b"\n"
        if self.random.random() < 0.1:
            at = self.random.randrange(len(text))
            text = self.random.choice([text[:at], text[:at] + self.random.randbytes(3) + text[at:]])
        trace = self.attempt("parse", lambda: traces.parse(text))
        if trace is None:
            return
        assert len(trace) == text.count(b"\n") - 1 or not text.endswith(b"\n")
        machine = EVERYTHING
        if self.random.random() < 0.5:
            fit = trace.header.scheme == "tfhe" and self.random.random() < 0.8
            names = ["strix", "strix_nofold"] if fit else shipped()
            machine = Machine.load(self.random.choice(names), self.random.choice(MODES))
        self.log(f"  on {machine.name}, {machine.mode}")
        self.simulate(fitted.fitted(trace), machine)

    def change(self, lines: list[bytes]) -> None:
        """Changes a line, or the order of two."""
        kind, at = self.random.randrange(10), self.random.randrange(len(lines))
        other = self.random.randrange(len(lines))
        if kind == 0:
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 1:
            lines[at] = b"".join(lines[at : at + 2])
        elif kind == 2:
            lines.insert(at, lines[other])
        else:
            at = 0 if self.random.random() < 0.3 else at
            lines[at] = self.edited(lines[at])
            self.log(f"    line {at + 1}: {lines[at][:300]!r}")

    def edited(self, line: bytes) -> bytes:
        """The line with a field changed. What must agree with it mostly does: a change that is
        found at once says little."""
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError):
            return line
        if not isinstance(fields, dict) or not fields:
            return line
        if "schema" in fields and self.random.random() < 0.7:
            fields[self.random.choice([name for name in SHAPE if name in fields])] = (
                self.random.choice([*SIZES, [1, 1], [2, 3], [30, 2]])
            )
            return json.dumps(fields).encode()
        name = self.random.choice(list(fields))
        choice = self.random.random()
        if choice < 0.1:
            whole, value = json.dumps(fields[name]).encode(), self.random.choice(LITERALS)
            return line.replace(b": " + whole, b": " + value, 1)
        if choice < 0.2:
            del fields[name]
        elif choice < 0.25:
            fields[self.random.choice(["more", "batch", "steps", "x" * 300])] = 1
        else:
            fields[name] = self.value(fields[name])
        self.agree(fields)
        return json.dumps(fields).encode()

    def value(self, old: Any) -> Any:
        """Another value: of the same form, or of none."""
        pick = self.random.choice
        if self.random.random() < 0.1:
            return pick(VALUES)
        if isinstance(old, list) and old:
            new = list(old)
            at = self.random.randrange(len(new))
            if self.random.random() < 0.2:
                return new[:at] if self.random.random() < 0.5 else new + [new[at]] * pick([1, 3])
            new[at] = self.value(new[at])
            return new
        if isinstance(old, int) and not isinstance(old, bool):
            return pick([pick(SIZES), pick(SIZES), pick(INTEGERS[:-2]), old * 2, old + 1, old // 2])
        return pick([*VALUES, *SIZES])

    def agree(self, fields: dict[str, Any]) -> None:
        """Makes the sums of bytes right again."""
        if self.random.random() < 0.1:
            return
        for total, operands in (("bytes_read", "reads"), ("bytes_written", "writes")):
            found = fields.get(operands)
            if total in fields and isinstance(found, list):
                sizes = [x[3] for x in found if isinstance(x, list) and len(x) == 4]
                if all(type(size) is int for size in sizes):
                    fields[total] = sum(sizes)
