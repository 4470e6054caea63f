"""The plan of a program: its parameters and levels and, if it is deep, where it bootstraps.

A layout depends on the number of slots, the noise on the layout, and the scale on the noise. So the
scale grows until a trial run has little enough noise. Without bootstrapping, the smallest secure
ring is taken, or the next if a run has much less work there, or on a GPU reads much fewer bytes of
keys and matrices: if a ring's modulus is used up, its keys have many digits. With bootstrapping,
ring and levels are those of the cheapest plan.
"""

from __future__ import annotations

import contextlib
import math

from jali._core.console import bytes_text, counted_text
from jali.ckks import Params
from jali.compiler.cost.costs import costs_of
from jali.compiler.cost.keys import sent_exactly
from jali.compiler.ir.graph import Graph
from jali.compiler.ir.loop_graph import has_loops
from jali.compiler.noise.element_noise import Samples
from jali.compiler.passes.amplify import amplified
from jali.compiler.passes.levels import depth_of
from jali.compiler.pipeline import STAGE
from jali.compiler.planning.batches import relative_cost
from jali.compiler.planning.bootstrapping_planner import BootstrappingPlanner
from jali.compiler.planning.dry_run import demanded
from jali.compiler.planning.fewer_keys import FEWEST, TooManyKeys, sending
from jali.compiler.planning.needs_bootstrapping import bounds_overflow, least_depth, takes_ring
from jali.compiler.planning.parameters import (
    LEAST_INTEGER_BITS,
    Ring,
    integer_bits_of,
    needed_bits,
    smallest,
    switch_work,
)
from jali.compiler.planning.plan import COARSE, MARGIN, WORTH, Plan, missing_bits, precise
from jali.compiler.progress import Progress
from jali.compiler.runtime.interpreter import Interpreter
from jali.errors import Error, InvalidArgument, RangeExceeded, Unsupported
from jali.program.demand import Demand

__all__ = ["plan"]

_MANY_DIGITS = 4  # with fewer, a larger ring has no smaller keys
_LARGE_LOG_N = 16  # in smaller rings, no bootstrapping is cheaper than the levels that it saves
#: Scales at which bounds on the noise may outgrow all numbers, before a large ring bootstraps
#: instead.
_PATIENCE = 2
_OVERFLOW = "the model takes {}, on which the bounds of its noise outgrow all numbers."
#: Bits of level 0 beside those that a first search gives it, and as many scales, before a program
#: is refused.
_ROOM = 8.0
_PARTS = 64  # of a bit: scales of programs that do not bootstrap are multiples of one


def plan(
    graph: Graph,
    precision_bits: float,
    lanes: int,
    memory: float,
    device: str,
    *,
    key_memory: float | None = float("inf"),
    insecure_ring: Ring | None = None,
    samples: Samples | None = None,
    progress: Progress | None = None,
    upload: float | None = None,
) -> Plan:
    """The plan of an approximated graph.

    samples: examples, on which the noise of every number is estimated; without them, the noise is
        the mean over numbers.
    memory: bytes for matrices.
    key_memory: bytes for the expanded keys of bootstrapping: the fastest that fit are made, or the
        fewest if none do. None stands for keys that share `memory` with the matrices: they have
        what these leave as integers, and the matrices have what the keys leave.
    insecure_ring: for tests; the program then bootstraps.
    upload: bytes that a client may send for keys; None stands for any number.

    Raises TooManyKeys, which names the fewest bytes that were found, if no plan sends so few.
    """
    bootstrapping = BootstrappingPlanner(
        graph,
        precision_bits,
        lanes,
        memory,
        device,
        key_memory,
        insecure_ring,
        samples,
        progress or Progress(),
    )
    found = _planned(bootstrapping)
    if upload is None:
        return found
    least = sent_exactly(found.interpreter.params, found.demand)
    for allowed in (upload, FEWEST):
        if least <= upload:
            return found
        bootstrapping.upload = allowed
        with contextlib.suppress(Unsupported, InvalidArgument):
            found = _planned_to_send(bootstrapping)
            least = sent_exactly(found.interpreter.params, found.demand)
    if least <= upload:
        return found
    raise TooManyKeys(
        f"no plan was found whose client sends at most {bytes_text(upload)} of keys. The fewest that were found are {bytes_text(least)}: compile with upload={least}"
    )


def _planned(bootstrapping: BootstrappingPlanner) -> Plan:
    """The plan whose client may send any number of bytes. Argument as of _within."""
    if bootstrapping.insecure_ring is not None:
        return bootstrapping.plan()
    try:
        first = _within(bootstrapping, 0)
    except (Unsupported, InvalidArgument) as too_deep:
        try:
            found = bootstrapping.plan()
        except (Unsupported, InvalidArgument) as error:
            with contextlib.suppress(Unsupported, InvalidArgument):
                return _within(bootstrapping, 0, _ROOM)
            raise Unsupported(f"{too_deep} With bootstrapping: {error}") from None
        if found.interpreter.claims and not found.bootstraps:  # bounds alone were in the way
            with contextlib.suppress(Unsupported, InvalidArgument):
                return _within(bootstrapping, 0, _ROOM)
        return found
    if first.interpreter.params.dnum < _MANY_DIGITS:
        return first
    if first.interpreter.params.log_n >= _LARGE_LOG_N and bootstrapping.is_cheaper(first):
        return bootstrapping.plan()
    try:
        larger = first.interpreter.params.log_n + 1
        second = _within(bootstrapping, larger)
    except Error:  # there is no larger ring
        return first
    if bootstrapping.device == "cpu":
        return second if second.work < WORTH * first.work else first
    return second if second.read_bytes < WORTH * first.read_bytes else first


def _planned_to_send(bootstrapping: BootstrappingPlanner) -> Plan:
    """The plan whose client sends at most bootstrapping.upload bytes of keys, or the fewest bytes
    that are found for FEWEST. Argument as of _within.

    Of plans without bootstrapping in the smallest ring and in the next, of which keys may have
    fewer digits, that with less work is taken, or with fewer bytes if these are to be the fewest.
    If neither sends little enough, the program bootstraps.
    """
    if bootstrapping.insecure_ring is not None:
        return bootstrapping.plan()
    fewest = bootstrapping.upload == FEWEST
    found: list[Plan] = []
    refused: list[Exception] = []
    for larger in (0, 1):
        log_n = bootstrapping.log_n + 1 if larger else 0
        try:
            found.append(_within(bootstrapping, log_n))
        except (Unsupported, InvalidArgument) as error:
            refused.append(error)
        few = found and found[0].interpreter.params.dnum < _MANY_DIGITS
        if not bootstrapping.log_n or (few and not fewest):
            break
    if not found:
        try:
            return bootstrapping.plan()
        except (Unsupported, InvalidArgument) as error:
            raise Unsupported(f"{refused[0]} With bootstrapping: {error}") from None
    if fewest:
        return min(found, key=lambda one: sent_exactly(one.interpreter.params, one.demand))
    return min(found, key=lambda one: relative_cost(one, found[0]))


def _within(bootstrapping: BootstrappingPlanner, log_n: int, room: float = 0.0) -> Plan:
    """The plan without bootstrapping with the smallest scale, in a ring of at least 2^log_n.

    bootstrapping: has the graph, what is asked of the plan, and the stages and the numbers that
        plans share.
    room: bits of level 0 beyond what the numbers there take, for the bounds on their errors, which
        are proven and may be hundreds of times the errors.

    Raises Unsupported if there are no such parameters, or if the bounds on the noise of a deep
    program outgrow all numbers. They square with every product; a program that bootstraps has the
    noise of a trial run in their place. If that is certain from the start, nothing is tried.
    """
    flat, loops = bootstrapping.flat, has_loops(bootstrapping.graph)
    precision_bits, device = bootstrapping.precision_bits, bootstrapping.device
    computed = flat if loops else amplified(flat)
    # What single numbers have beyond the average is not followed through the steps of loops.
    needed = needed_bits(computed, precision_bits, average=loops)
    depth, integer_bits, refused = depth_of(flat), LEAST_INTEGER_BITS + room, 0
    patience = _PATIENCE + int(room)
    bits = max(max(needed) + 14.0, 25.0)
    last = bits + COARSE * (patience - 1) + 1 / _PARTS

    def least(scale_bits: float) -> Params:
        # Estimates differ in their last digits from one machine to another, which must not have
        # other parameters for it.
        whole = math.ceil(scale_bits * _PARTS) / _PARTS
        params = smallest(flat, depth, whole, bootstrapping.lanes, device, log_n, integer_bits)
        bootstrapping.log_n = params.log_n
        return params

    if takes_ring(least_depth(computed), bits, _LARGE_LOG_N) and bounds_overflow(computed, last):
        bootstrapping.layout_costs(least(bits))  # a ring's are those of the first parameters in it
        raise Unsupported(_OVERFLOW.format(counted_text(depth, "level")))

    def at(scale_bits: float) -> Plan:
        nonlocal depth, integer_bits, refused
        tried: set[tuple[int, float]] = set()
        while True:
            params = least(scale_bits)
            graph_now = bootstrapping.stages(params)["levels"]
            now = depth_of(graph_now), max(integer_bits, integer_bits_of(graph_now) + room)
            if now == (depth, integer_bits):
                break
            # Layouts follow the costs of the parameters, so two depths may lead to each other. The
            # larger one holds both.
            if now in tried and now[0] <= depth and now[1] == integer_bits:
                break
            tried.add((depth, integer_bits))
            depth, integer_bits = now  # some sums turned out to be free
        stages = bootstrapping.stages(params)
        bootstrapping.progress.some("parameters", STAGE)
        costs = costs_of(params, device)
        interpreter = Interpreter(
            stages["levels"],
            params,
            bootstrapping.lanes,
            bootstrapping.memory,
            numbers=bootstrapping.numbers,
            costs=costs,
            streams=device == "cuda",
        )

        def noted(keys: Demand | None = None) -> Demand:
            samples = bootstrapping.samples
            return demanded(interpreter, laid_out=stages["layout"], samples=samples, keys=keys)[0]

        try:
            layout_costs = bootstrapping.layout_costs(params)
            found = Plan(stages, interpreter, noted(), costs, layout_costs)
            if bootstrapping.upload is None:
                return found
            return sending(found, costs, bootstrapping.upload, noted)
        except RangeExceeded:
            refused += 1
            if params.log_n < _LARGE_LOG_N or refused < patience:
                raise
            raise Unsupported(_OVERFLOW.format(counted_text(depth, "level"))) from None

    found = precise(at, bits, needed, precision_bits)
    # A smaller scale may leave enough, and its parameters may be cheaper.
    fewer = found.interpreter.params.scale_bits + missing_bits(found, needed) + MARGIN
    with contextlib.suppress(Error):
        params = smallest(flat, depth, fewer, bootstrapping.lanes, device, log_n, integer_bits)
        if switch_work(params) < switch_work(found.interpreter.params):
            smaller = at(fewer)
            if missing_bits(smaller, needed) <= 0:
                return smaller
    return found
