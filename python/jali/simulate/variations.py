"""The time of a program if the machine, or the set of its parameters, were another: for constants
that nobody gives, and for the other mode.

A program is prepared for the changed machine, which is quick. Only if something in it differs from
the unchanged program's is it simulated again, or, if the program is large, bounded again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jali.simulate.machine import MODES, Machine
from jali.simulate.plan import Plan, make_plan
from jali.simulate.roofline import Bounds, bounds
from jali.simulate.scheduler import Schedule, schedule
from jali.simulate.sensitivity import UNCERTAIN, Dependence, Tagged, sensitivity
from jali.simulate.steps import Steps
from jali.simulate.strix import TfheSet
from jali.simulate.workloads import Program, StrixProgram

__all__ = ["Variations"]

RUNS = 3_000_000  # steps that all runs for the constants may simulate; above it the bounds are used
COSTS = ("energy_pj", "energy_pj_byte", "leakage_w", "area_mm2")
# What bounds() reads of a plan, beside the dependences. A schedule depends on all of it.
BOUNDED = ("queues", "step_of", "wide", "cycles", "latency", "task_queue", "is_move", "buses", "bus_of", "bus_cycles", "bus_latency")  # fmt: skip

Progress = Callable[[int, int], None]


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)


def _same_plan(one: Plan, other: Plan, all_of_it: bool) -> bool:
    """Whether two plans of the same steps have the same schedule, or only the same bounds: these
    know nothing of room on the chip."""
    if not all(_equal(getattr(one, name), getattr(other, name)) for name in BOUNDED):
        return False
    rows = []
    for plan in (one, other):
        room = plan.residency.room
        kept = np.ones_like(room) if all_of_it else ~room
        columns = (plan.residency.before, plan.residency.after, room)
        rows.append([column[kept] for column in columns])
    return all(_equal(a, b) for a, b in zip(*rows, strict=True))


def _same_steps(one: Steps, other: Steps) -> bool:
    return one is other or all(_equal(a, getattr(other, name)) for name, a in vars(one).items())


def _subjects(program: Program, machine: Machine) -> list[Tagged]:
    return [machine, program.tfhe] if isinstance(program, StrixProgram) else [machine]


@dataclass(frozen=True)
class Variations:
    """A simulated program, and what else it could be.

    progress: is called with (steps done, steps) of all runs together, as make_report says.
    """

    program: Program
    result: Schedule
    limits: Bounds
    progress: Progress | None = None

    @property
    def subjects(self) -> list[Tagged]:
        """What has constants: the machine, and the set of a generated workload."""
        return _subjects(self.program, self.result.machine)

    @property
    def exact(self) -> bool:
        """Whether the times of variations are simulated. If not, because the program is large, they
        are bounds."""
        timing = [
            n for n in self.result.machine.constants(*UNCERTAIN) if not n.path.endswith(COSTS)
        ]
        return len(self.result.steps) * max(1, len(timing)) <= RUNS

    @staticmethod
    def runs_of(program: Program, machine: Machine) -> int:
        """The variations that `constants` and `other_mode` look at."""
        return 1 + sum(
            len(subject.constants(*UNCERTAIN)) for subject in _subjects(program, machine)
        )

    @property
    def runs(self) -> int:
        """Those of this program."""
        return self.runs_of(self.program, self.result.machine)

    def seconds(self, changed: Machine, tfhe: TfheSet | None = None, run: int = 0) -> float:
        """The time on another machine, perhaps with another set. run: which variation it is, for
        the progress."""
        known = self.result.seconds if self.exact else self.limits.seconds
        if changed is self.result.machine and tfhe in (None, *self.subjects):
            return known
        program = self.program
        if isinstance(program, StrixProgram):  # keeps the unchanged steps, and not those made here
            program = replace(program, tfhe=tfhe or program.tfhe, made=dict(program.made))
        steps = program(changed)
        if steps is self.result.steps and changed.timing() == self.result.machine.timing():
            return known
        plan = make_plan(steps, changed)
        cycles = known * float(self.result.machine.frequency_hz)
        if not _same_steps(steps, self.result.steps) or not _same_plan(plan, self.result.plan, self.exact):  # fmt: skip
            if self.exact:
                return schedule(steps, changed, self._share(run), plan).seconds
            return bounds(steps, changed, plan).seconds
        return cycles / float(changed.frequency_hz)

    def constants(self) -> list[Dependence]:
        """The calibrated and assumed constants on which the time depends."""
        self._report(0, 0, 1)
        done = 0

        def formula(machine: Any, tfhe: Any = None) -> float:
            return self.seconds(machine, tfhe, done)

        def finished(count: int) -> None:
            nonlocal done
            done = count
            self._report(count, 0, 1)

        return sensitivity(formula, *self.subjects, progress=finished)

    def other_mode(self) -> tuple[str, float] | None:
        """The machine's other mode and the seconds there, if it has limits to leave out."""
        machine = self.result.machine
        both = [machine.in_mode(mode) for mode in MODES]
        found = None
        if both[0].switched_off != both[1].switched_off:
            changed = both[machine.mode == MODES[0]]
            found = (changed.mode, self.seconds(changed, run=self.runs - 1))
        self._report(self.runs, 0, 1)
        return found

    def _share(self, run: int) -> Progress:
        return lambda done, all_: self._report(run, done, all_)

    def _report(self, run: int, done: int, all_: int) -> None:
        """The first run was that of the program itself."""
        if self.progress is not None:
            size = len(self.result.steps)
            self.progress(size * (1 + run) + size * done // all_, size * (1 + self.runs))
