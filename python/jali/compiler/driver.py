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
    known = Calibrated.of(graph, examples, told, margin=margin, **ranging)
    told.at("approximate", 0.2)

    def at(bits: float, wide: int, known: Calibrated = known) -> tuple[Graph, float, Plan]:
        functions, error = known.approximated(bits)
        how: dict[str, Any] = {"key_memory": key_memory, "insecure_ring": insecure_ring}
        how |= {"samples": known.samples, "progress": told}
        return functions, error, plan(functions, bits, wide, memory, device, **how)

    def within(margin: float) -> tuple[Graph, float, Plan]:
        narrower = Calibrated.of(graph, examples, told, margin=margin, **ranging)
        return at(precision_bits, lanes, narrower)

    def plan_of(made: tuple[Graph, float, Plan]) -> Plan:
        return made[2]

    counted = None
    if answers is None:
        made = nearest(at, plan_of, precision_bits, lanes, within, margin)
    else:
        bits = answers.bits(known.results, graph)
        precision_bits, made = by_default(at, plan_of, bits, lanes, within, margin)
        counted = answers.counted(known.results, precision_bits)
        _warn_of_near(counted, precision_bits)
    functions, error, found = made
    told.at("program", 1.0)
    _warn_of_made(found.interpreter, memory)
    stages = {**known.stages, "approximate": functions}
    return Program.of(stages, found, precision_bits, error, device, known.changes, counted)


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
