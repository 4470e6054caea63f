"""Finds the program that a text names: a generated workload, or the file of a trace."""

from __future__ import annotations

from pathlib import Path

from jali.errors import InvalidArgument
from jali.simulate import bootstraps, trace, workloads
from jali.simulate.fitted import fitted
from jali.simulate.machine import Machine
from jali.simulate.workloads import Program

__all__ = ["find", "names"]

TFHE = "tfhe:I|II|III|IV or tfhe:n=,k=,N=,l_b=,l_k=[,ciphertexts=]"


def names() -> list[str]:
    """How each workload is written."""
    return [*workloads.names(), TFHE]


def find(text: str, machine: Machine) -> Program:
    """What makes the steps of a program for this machine and for changed ones.

    text: a workload such as "strix:I,epochs=2", or the path of a trace.

    Raises InvalidArgument for neither, and the errors of traces.
    """
    found = workloads.parse(text, machine)
    if found is not None:
        return found
    if text.startswith("tfhe:"):
        name, options = _tfhe_options(text.removeprefix("tfhe:"))
        return bootstraps.parse(name, options)
    file = Path(text)
    if not file.is_file():
        known = ", ".join(names())
        raise InvalidArgument(f"{text!r} is no file and no workload: give a trace, or {known}")
    return fitted(trace.read(file))


def _tfhe_options(text: str) -> tuple[str, dict[str, int]]:
    first = text.split(",")[0]
    known = tuple(bootstraps.MOST)
    name, options = workloads.read_options(text if "=" not in first else f",{text}", known)
    return name, {key: value for key in known if (value := workloads.whole(options, key)) is not None}  # fmt: skip
