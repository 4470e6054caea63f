"""Finds the program that a text names: a generated workload, or the file of a trace."""

from __future__ import annotations

from pathlib import Path

from jali.errors import InvalidArgument
from jali.simulate import trace, workloads
from jali.simulate.fitted import fitted
from jali.simulate.machine import Machine
from jali.simulate.workloads import Program

__all__ = ["find"]


def find(text: str, machine: Machine) -> Program:
    """What makes the steps of a program for this machine and for changed ones.

    text: a workload such as "strix:I,epochs=2", or the path of a trace. Raises InvalidArgument for neither, and the errors of traces.
    """
    found = workloads.parse(text, machine)
    if found is not None:
        return found
    file = Path(text)
    if not file.is_file():
        known = ", ".join(workloads.names())
        raise InvalidArgument(f"{text!r} is no file and no workload: give a trace, or {known}")
    return fitted(trace.read(file))
