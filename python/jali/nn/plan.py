"""Planning: the stages that need parameters, and the parameters that need the stages.

A layout depends on the number of slots, the noise on the layout, and the scale on the noise. So the scale grows until a trial run has
little enough noise. The smallest secure ring is taken, or the next if a run reads much fewer bytes of keys and matrices there: if a
ring's modulus is used up, its keys have many digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jali.errors import Error, InvalidArgument, RangeExceeded
from jali.nn.graph import Graph
from jali.nn.keys import Demand, key_bytes
from jali.nn.layout import lay_out
from jali.nn.levels import assign_levels, depth_of, taken
from jali.nn.lower import lower
from jali.nn.parameters import needed_bits, smallest
from jali.nn.run import Machine
from jali.nn.trial import demanded

__all__ = ["Plan", "lowered", "plan"]

_MANY_DIGITS = 4  # with fewer, a larger ring has no smaller keys
_WORTH = 0.75  # part of the bytes that are read; a larger ring also doubles the messages
_TRIES = 12
_COARSE = 3.0  # bits by which the scale grows if nothing is known of how far it is off
_FINE = 0.5  # bits by which it grows beyond what is missing


@dataclass(frozen=True)
class Plan:
    """The graphs after layout, lower and levels, ready to run with parameters, and the keys that a run needs."""

    stages: Mapping[str, Graph]
    machine: Machine
    demand: Demand

    @property
    def read_bytes(self) -> int:
        """The bytes of keys and matrices that a run reads, as a measure of its time that is the same on every machine."""
        machine, params = self.machine, self.machine.params
        read = 0
        for node in machine.graph:
            level = min(params.depth, node.attrs["level"] + taken(node))
            switches = machine.rotations.get(node.name, 0)
            if "by" in node.attrs:
                switches += node.attrs["by"].multiplications * node.attrs["layout"].ciphertexts
            elif node.op == "multiply":
                switches += node.attrs["layout"].ciphertexts
            read += 2 * switches * key_bytes(params, level) + machine.encoded_bytes.get(
                node.name, 0
            )
        return read


def plan(graph: Graph, precision_bits: float, lanes: int, memory: float, device: str) -> Plan:
    """The plan of an approximated graph: the better one of the smallest secure ring and the next."""
    first = _within(graph, precision_bits, lanes, memory, device, 0)
    if first.machine.params.dnum < _MANY_DIGITS:
        return first
    try:
        larger = first.machine.params.log_n + 1
        second = _within(graph, precision_bits, lanes, memory, device, larger)
    except Error:  # there is no larger ring
        return first
    return second if second.read_bytes < _WORTH * first.read_bytes else first


def _within(
    graph: Graph, precision_bits: float, lanes: int, memory: float, device: str, log_n: int
) -> Plan:
    """The plan with the smallest scale, in a ring of at least 2^log_n."""
    depth, needed = depth_of(graph), needed_bits(graph, precision_bits)
    scale_bits = max(max(needed) + 14.0, 25.0)
    for _ in range(_TRIES):
        params = smallest(graph, depth, scale_bits, lanes, device, log_n)
        stages = lowered(graph, params.slots // lanes)
        if depth_of(stages["levels"]) < depth:  # some sums turned out to be free
            depth = depth_of(stages["levels"])
            continue
        machine = Machine(stages["levels"], params, lanes, memory)
        try:
            demand = demanded(machine)
        except RangeExceeded:  # the bounds on the noise are so large that numbers may leave [-1, 1]
            scale_bits += _COARSE
            continue
        missing = max(n - b for n, b in zip(needed, demand.noise_bits, strict=True))
        if missing <= 0:
            return Plan(stages, machine, demand)
        scale_bits += missing + _FINE
    raise InvalidArgument(
        f"no scale leaves {precision_bits:g} bits of precision: ask for fewer precision_bits"
    )


def lowered(graph: Graph, slots: int) -> dict[str, Graph]:
    """The stages after approximation, for lanes of this many slots."""
    laid = lay_out(graph, slots)
    low = lower(laid)
    return {"layout": laid, "lower": low, "levels": assign_levels(low)}
