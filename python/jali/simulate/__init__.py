"""Models of accelerators: programs as machine steps, machines as files, and when each step runs.

``find`` gives the program that a text names, ``schedule`` simulates it on a ``Machine``, ``bounds``
gives lower bounds of its time, and ``make_report`` says what it spends time, bytes and energy on.
docs/how-to/simulate-a-machine.md shows how.
"""

from __future__ import annotations

from jali.simulate.machine import Machine, shipped
from jali.simulate.programs import find
from jali.simulate.report import Report, make_report
from jali.simulate.roofline import Bounds, bounds
from jali.simulate.scheduler import Reason, Schedule, schedule
from jali.simulate.steps import ANY, Entity, Kind, Steps, StepsBuilder
from jali.simulate.sweeps import sweep

__all__ = [
    "ANY",
    "Bounds",
    "Entity",
    "Kind",
    "Machine",
    "Reason",
    "Report",
    "Schedule",
    "Steps",
    "StepsBuilder",
    "bounds",
    "find",
    "make_report",
    "schedule",
    "shipped",
    "sweep",
]
