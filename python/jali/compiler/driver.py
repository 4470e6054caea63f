"""The search for a program: passes and plans, until the program is precise enough."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from jali._core.console import bytes_text, counted_text
from jali.compiler.frontends.answers import Answers, Kept
from jali.compiler.ir.graph import Array, Graph
from jali.compiler.passes.calibrate import MARGIN
from jali.compiler.pipeline import Calibrated
from jali.compiler.planning.neighbours import by_default, nearest
from jali.compiler.planning.parameters import Ring
from jali.compiler.planning.plan import Plan
from jali.compiler.planning.planner import plan
from jali.compiler.program.program import Program
from jali.compiler.progress import Progress
from jali.compiler.runtime.interpreter import Interpreter

__all__ = ["compiled"]


def compiled(
    graph: Graph,
    examples: Sequence[Array],
    *,
    precision_bits: float,
    lanes: int,
    margin: float = MARGIN,
    proven: bool = False,
    input_ranges: Sequence[tuple[object, object] | None] | None = None,
    memory: float,
    device: str = "cpu",
    key_memory: float | None = float("inf"),
    insecure_ring: Ring | None = None,
    progress: Progress | None = None,
    answers: Answers | None = None,
) -> Program:
    """The program of a traced graph. Arguments as of jali.compile and plan; lanes: a power of two.

    answers: how they are read from the output, if the precision is to follow from them instead.
    """
    told = progress or Progress()
    told.at("fold", 0.02)
    ranging: dict[str, Any] = {"proven": proven, "input_ranges": input_ranges}
    calibrated = Calibrated.of(graph, examples, told, margin=margin, **ranging)
    told.at("approximate", 0.2)

    def planned(
        bits: float, lanes: int, calibrated: Calibrated = calibrated
    ) -> tuple[Graph, float, Plan]:
        """The approximated graph for so many bits of precision, the error of its functions, and its
        plan."""
        approximated, error = calibrated.approximated(bits)
        limits: dict[str, Any] = {"key_memory": key_memory, "insecure_ring": insecure_ring}
        limits |= {"samples": calibrated.samples, "progress": told}
        return approximated, error, plan(approximated, bits, lanes, memory, device, **limits)

    def planned_within(margin: float) -> tuple[Graph, float, Plan]:
        narrower = Calibrated.of(graph, examples, told, margin=margin, **ranging)
        return planned(precision_bits, lanes, narrower)

    def plan_of(made: tuple[Graph, float, Plan]) -> Plan:
        return made[2]

    kept = None
    if answers is None:
        made = nearest(planned, plan_of, precision_bits, lanes, planned_within, margin)
    else:
        bits = answers.bits(calibrated.results, graph)
        precision_bits, made = by_default(planned, plan_of, bits, lanes, planned_within, margin)
        kept = answers.counted(calibrated.results, precision_bits)
        _warn_of_near(kept, precision_bits)
    approximated, error, found = made
    told.at("program", 1.0)
    _warn_of_made(found.interpreter, memory)
    stages = {**calibrated.stages, "approximate": approximated}
    return Program.of(stages, found, precision_bits, error, device, calibrated.changes, kept)


def _warn_of_near(answers: Kept, bits: float) -> None:
    """Warns if more than a hundredth of a classifier's answers may change."""
    near, every = answers
    if 100 * near > every:
        warnings.warn(
            f"{near:,} of the {every:,} answers of the calibration may change, because they are nearer to another one than 2^-{bits:g} of the largest number: give "
            "precision_bits=, or scale the features so that no number is far larger than the others",
            UserWarning,
            stacklevel=4,
        )


def _warn_of_made(interpreter: Interpreter, memory: float) -> None:
    """Warns if matrices do not fit in any kind.

    memory: that was given, of which the interpreter has what keys leave.
    """
    made = sum("made" in kinds for kinds in interpreter.storage.values())
    if not made:
        return
    keys = memory - interpreter.memory
    beside = f", of which keys of bootstrapping take {bytes_text(keys)}" if keys > 0 else ""
    warnings.warn(
        f"memory={bytes_text(memory)}{beside} has no room for the matrices of {counted_text(made, 'operation')}, even as integers: they are made from "
        f"the weights and encoded at every use, which takes long. Compile with memory= of at least {keys + interpreter.least_bytes:,.0f} bytes",
        UserWarning,
        stacklevel=4,
    )
