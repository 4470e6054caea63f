"""The search for a program: passes and plans, until the program is precise enough."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jali import device as devices
from jali._core.console import bytes_text, counted_text
from jali.compiler.cost.keys import key_sizes
from jali.compiler.frontends.answers import DEFAULT_BITS, Answers, Kept
from jali.compiler.ir.folded_ops import approximation_of
from jali.compiler.ir.graph import Array, Graph
from jali.compiler.ir.loop_graph import Loop
from jali.compiler.ir.scalar import DECIDING, RELUS
from jali.compiler.ir.traced_ops import function_of
from jali.compiler.passes.calibrate import MARGIN
from jali.compiler.pipeline import STAGE, Calibrated
from jali.compiler.planning.batches import relative_cost, widest
from jali.compiler.planning.maxima_share import maxima_share
from jali.compiler.planning.neighbours import by_default, nearest, smallest
from jali.compiler.planning.parameters import Ring
from jali.compiler.planning.plan import Plan
from jali.compiler.planning.planner import plan
from jali.compiler.planning.variants import Setting, settings_beside
from jali.compiler.program.alternatives import Alternative, Alternatives
from jali.compiler.program.program import Program
from jali.compiler.program.report import bootstraps_of
from jali.compiler.progress import Progress
from jali.compiler.runtime.interpreter import Interpreter
from jali.errors import InvalidArgument, Unsupported

if TYPE_CHECKING:
    from jali.compiler.passes.fitted_relus import Fitted

__all__ = ["compiled"]

_PLANS, _MOST_PLANS = 3, 5  # to choose from
#: Polynomials in the place of ReLUs are listed if they keep so many of the calibration's answers,
#: and if a run costs less than this part of one with ReLUs.
_SAME, _WORTH_FITTING = 0.98, 0.8
_DEGREES = (2, 4, 6, 8)  # of polynomials that are tried in the place of ReLUs
_DEAR = 0.5  # the part of a program's work from which maxima are warned of


def compiled(
    graph: Graph,
    examples: Sequence[Array],
    *,
    precision_bits: float | None,
    lanes: int | None,
    margin: float = MARGIN,
    proven: bool = False,
    input_ranges: Sequence[tuple[object, object] | None] | None = None,
    memory: float,
    device: str = "cpu",
    key_memory: float | None = float("inf"),
    insecure_ring: Ring | None = None,
    progress: Progress | None = None,
    answers: Answers | None = None,
    explain: bool = False,
    upload: int | None = None,
    relu_degree: int | None = None,
) -> Program:
    """The program of a traced graph. Arguments as of jali.compile and plan.

    lanes: a power of two; None stands for as many as cost next to nothing.
    answers: how they are read from the output, if the precision is to follow from them instead.
    precision_bits: None stands for the fewest that keep the answers, however many these are.
    explain: whether other settings are tried, for Program.alternatives.
    relu_degree: of polynomials in the place of ReLUs; None for ReLUs.
    """
    told = progress or Progress()
    told.at("fold", 0.02)
    ranging: dict[str, Any] = {"proven": proven, "input_ranges": input_ranges}
    fitted = None
    if relu_degree is not None:
        from jali.compiler.passes.fitted_relus import fitted_relus

        graph, fitted = fitted_relus(graph, examples, relu_degree)
    calibrated = Calibrated.of(graph, examples, told, margin=margin, **ranging)
    if proven:
        _refuse_comparisons(calibrated.stages["calibrate"])
    told.at("approximate", 0.2)

    fewest = 1 if lanes is None else lanes

    def planned(
        bits: float, lanes: int, calibrated: Calibrated = calibrated, room: int | None = None
    ) -> tuple[Graph, float, Plan]:
        """The approximated graph for so many bits of precision, the error of its functions, and its
        plan."""
        approximated, error = calibrated.approximated(bits)
        limits: dict[str, Any] = {"key_memory": key_memory, "insecure_ring": insecure_ring}
        limits["upload"] = upload
        if room is not None:
            limits["key_memory"] = None  # keys share it with matrices
        limits |= {"samples": calibrated.samples, "progress": told}
        most = memory if room is None else room
        return approximated, error, plan(approximated, bits, lanes, most, device, **limits)

    asked = precision_bits

    def planned_within(margin: float) -> tuple[Graph, float, Plan]:
        narrower = Calibrated.of(graph, examples, told, margin=margin, **ranging)
        return planned(DEFAULT_BITS if asked is None else asked, fewest, narrower)

    def plan_of(made: tuple[Graph, float, Plan]) -> Plan:
        return made[2]

    kept = None
    search: dict[str, Any] = {"lanes": fewest, "within": planned_within, "margin": margin}
    if precision_bits is None:
        assert answers is not None
        bits = answers.least_bits(calibrated.results)
        exactly = answers.tolerance is not None
        precision_bits, made = (
            (bits, nearest(planned, plan_of, bits, **search))
            if exactly
            else smallest(planned, plan_of, bits, **search)
        )
        if not exactly:
            kept = answers.counted(calibrated.results, precision_bits)
            _warn_of_near(kept, precision_bits, share=0.0)
    elif answers is None:
        made = nearest(planned, plan_of, precision_bits, **search)
    else:
        bits = answers.bits(calibrated.results, graph)
        precision_bits, made = by_default(planned, plan_of, bits, **search)
        kept = answers.counted(calibrated.results, precision_bits)
        _warn_of_near(kept, precision_bits)
    if lanes is None:
        chosen = precision_bits
        made = widest(lambda wider: planned(chosen, wider), plan_of, made)

    def program_of(
        made: tuple[Graph, float, Plan],
        bits: float,
        kept: Kept | None,
        calibrated: Calibrated = calibrated,
        fitted: Fitted | None = fitted,
    ) -> Program:
        approximated, error, found = made
        stages = {**calibrated.stages, "approximate": approximated}
        of = Program.of(stages, found, bits, error, device, calibrated.changes, kept)
        return of if fitted is None else replace(of, fitted=fitted)

    found = made[2]
    _warn_of_made(found.interpreter, memory)
    _warn_of_maxima(found)
    program = program_of(made, precision_bits, kept)
    if explain:
        asked_for = Setting(precision_bits, found.interpreter.lanes, relu_degree=relu_degree)
        smooth = _smoothed(graph, examples) if relu_degree is None else None

        def tried(setting: Setting) -> tuple[Plan, Program]:
            told.some("alternatives", STAGE)
            bits, lanes = setting.bits, setting.lanes
            if smooth is None or setting.relu_degree is None:
                one = planned(bits, lanes, room=setting.memory)
                return one[2], program_of(one, bits, None)
            other = Calibrated.of(smooth[0], examples, told, margin=margin, **ranging)
            one = planned(bits, lanes, other)
            return one[2], program_of(one, bits, None, other, smooth[1])

        degree = None if smooth is None else smooth[1].degree
        program = replace(program, others=_alternatives(asked_for, found, program, tried, degree))
    told.at("program", 1.0)
    return program


def _alternatives(
    asked: Setting,
    plan: Plan,
    program: Program,
    tried: Callable[[Setting], tuple[Plan, Program]],
    relu_degree: int | None,
) -> Alternatives:
    """The program, and those beside it that compile. Fewer bits that save nothing are left out,
    unless there would be fewer than three plans.

    relu_degree: of polynomials that are tried in the place of ReLUs, or None.
    """

    def alternative(setting: Setting, other: Plan, program: Program) -> Alternative:
        sizes, there = program.sizes(), devices.available()
        runs = any(name.startswith(program.device) for name in there)
        return Alternative(
            settings=setting.beside(asked),
            program=program,
            seconds=program.summary(program.device).seconds if runs else None,
            relative_time=relative_cost(other, plan),
            examples=setting.lanes,
            precision_bits=setting.bits,
            levels=program.params.depth,
            bootstraps=sum(map(bootstraps_of, program.stages["levels"])),
            key_bytes=sizes.keys_sent,
            server_bytes=sizes.keys_expanded + sizes.matrices,
            fitted=program.fitted,
        )

    sizes = program.sizes()
    held = sizes.matrices + key_sizes(program.params, program.manifest.demand).bootstrap
    found = [alternative(asked, plan, program)]
    idle: list[tuple[Setting, Plan, Program]] = []
    for setting in settings_beside(asked, plan, held, relu_degree):
        with contextlib.suppress(Unsupported, InvalidArgument), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            other, made = tried(setting)
            cost = relative_cost(other, plan)
            if setting.relu_degree != asked.relu_degree and cost > _WORTH_FITTING:
                continue
            saves = cost < 1 or made.sizes().keys_sent < sizes.keys_sent
            if setting.bits < asked.bits and not saves:
                idle.append((setting, other, made))
            else:
                found.append(alternative(setting, other, made))
    found += [alternative(*one) for one in idle[: max(0, _PLANS - len(found))]]
    return Alternatives(tuple(found[:_MOST_PLANS]))


def _smoothed(graph: Graph, examples: Sequence[Array]) -> tuple[Graph, Fitted] | None:
    """The model with polynomials in the place of its ReLUs, of the lowest degree with which nearly
    all answers of the calibration are the same; None if there is none."""
    if not any(function_of(node) in RELUS for node in graph):
        return None
    from jali.compiler.passes.fitted_relus import fitted_relus

    for degree in _DEGREES:
        with contextlib.suppress(Unsupported, InvalidArgument):
            found = fitted_relus(graph, examples, degree)
            if found[1].same >= _SAME * found[1].every:
                return found
    return None


def _refuse_comparisons(graph: Graph) -> None:
    """Raises InvalidArgument if numbers are compared: of no range does it follow that results are
    right where these are nearly equal."""
    for node in graph:
        if function_of(node) in DECIDING:
            raise InvalidArgument(
                f'{node.name} compares encrypted numbers, and gives something between its results where they are nearly equal: leave out ranges="proven"'
            )
        if isinstance(node.operation, Loop):
            _refuse_comparisons(node.operation.body)


def _warn_of_near(answers: Kept, bits: float, share: float = 0.01) -> None:
    """Warns if more than this share of a classifier's answers may change."""
    near, every = answers
    if near > share * every:
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


def _warn_of_maxima(plan: Plan) -> None:
    """Warns if most of the work computes maxima, which other models do without."""
    found = ((n.name, approximation_of(n)) for n in plan.interpreter.graph)
    names = [name for name, by in found if by is not None and by.name == "maximum"]
    share = maxima_share(plan, names) if names else 0.0
    if share < _DEAR:
        return
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    warnings.warn(
        f"{share:.0%} of this program's work are maxima ({names[0]}{others}), which take a ReLU for each number but one: means, such as average pools, cost next to "
        "nothing, and a maximum at the end of a model can be left to the client, which takes it of the decrypted numbers",
        UserWarning,
        stacklevel=4,
    )
