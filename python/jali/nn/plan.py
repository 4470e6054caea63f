"""Planning: the stages that need parameters, and the parameters that need the stages.

A layout depends on the number of slots, the noise on the layout, and the scale on the noise. So the scale grows until a trial run has
little enough noise. Without bootstrapping, the smallest secure ring is taken, or the next if a run has much less work there, or on a GPU reads
much fewer bytes of keys and matrices: if a ring's modulus is used up, its keys have many digits. With bootstrapping, ring and levels are those of
the cheapest plan.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from jali.ckks import Params
from jali.errors import Error, InvalidArgument, RangeExceeded, Unsupported
from jali.nn.amplify import amplified
from jali.nn.choose import lay_out
from jali.nn.costs import Costs, costs_of
from jali.nn.elimination import NEVER
from jali.nn.graph import Graph
from jali.nn.keys import Demand, digits, kept_keys, key_bytes, word_bytes
from jali.nn.levels import Levels, depth_of, levelled, lowest, taken
from jali.nn.lower import lower
from jali.nn.noise import estimated
from jali.nn.parameters import (
    ROOMS,
    Bootstrapping,
    Ring,
    needed_bits,
    rings,
    smallest,
    switch_work,
)
from jali.nn.placement import best_levels
from jali.nn.run import Machine
from jali.nn.trial import demanded
from jali.nn.unroll import has_loops, shortened, unrolled

__all__ = ["Plan", "lowered", "plan"]

_MANY_DIGITS = 4  # with fewer, a larger ring has no smaller keys
_WORTH = 0.75  # part of the bytes that are read; a larger ring also doubles the messages
_LARGE_LOG_N = 16  # in smaller rings, no bootstrapping is cheaper than the levels that it saves
_TRIES = 12
_PATIENCE = 2  # scales at which bounds on the noise may outgrow all numbers, before a large ring bootstraps instead
_COARSE = 3.0  # bits by which the scale grows if nothing is known of how far it is off
_MARGIN = 0.1  # bits of noise that a smaller scale is to leave
_FINE = 0.5  # bits by which it grows beyond what is missing
_NEAR = 1  # levels by which the best number differs for other bits of precision
_STEP = 4  # of the levels between two bootstrappings in the search for the best number
_MOST_BITS = 36.0  # of precision that a single bootstrapping has


@dataclass(frozen=True)
class Plan:
    """The graphs after layout, lower and levels, ready to run with parameters, the keys that a run needs, and the costs of which levels and
    bootstraps were chosen."""

    stages: Mapping[str, Graph]
    machine: Machine
    demand: Demand
    costs: Costs

    @property
    def read_bytes(self) -> int:
        """The bytes of keys and matrices that a run reads, as a measure of its time on a GPU that is the same on every machine."""
        read = sum(self.machine.encoded_bytes.values())
        for level, switches in self._switches():
            read += 2 * switches * key_bytes(self.machine.params, level)
        return read

    @property
    def work(self) -> float:
        """The bytes that a run's key switchings multiply, as a measure of its time on a CPU that is the same on every machine.

        With k primes at a level, p special ones and d digits, a switching transforms k + d (k + p) + 2 (k + p) residues of every
        coefficient, by log2(N) / 2 products each, and multiplies 2 d (k + p) by the key.
        """
        params, total = self.machine.params, 0.0
        for level, switches in self._switches():
            k, p = len(params.level(level).primes), params.p_count
            d = digits(params, level)
            each = (k + (d + 2) * (k + p)) * params.log_n / 2 + 2 * d * (k + p)
            total += switches * each
        return total * 2 * params.slots * word_bytes(params)

    def _switches(self) -> Iterator[tuple[int, int]]:
        """For every node, the level at which it switches keys, and how many times."""
        machine, params = self.machine, self.machine.params
        for node in machine.graph:
            switches = machine.rotations.get(node.name, 0)
            if "by" in node.attrs:
                switches += node.attrs["by"].multiplications * node.attrs["layout"].ciphertexts
            elif node.op in ("multiply", "products"):
                switches += node.attrs["layout"].ciphertexts
            yield min(params.depth, node.attrs["level"] + taken(node)), switches


def plan(
    graph: Graph,
    precision_bits: float,
    lanes: int,
    memory: float,
    device: str,
    *,
    key_memory: float = float("inf"),
    insecure_ring: Ring | None = None,
) -> Plan:
    """The plan of an approximated graph.

    key_memory: bytes for the expanded keys of bootstrapping: the fastest that fit are made, or the fewest if none do.
    insecure_ring: for tests; the program then bootstraps.
    """
    arguments = (graph, precision_bits, lanes, memory, device)
    restoring = _Restoring(*arguments, key_memory, insecure_ring)
    stages = restoring.stages
    if insecure_ring is not None:
        return restoring.plan()
    try:
        first = _within(*arguments, stages, 0)
    except Unsupported as too_deep:
        try:
            return restoring.plan()
        except Unsupported as error:
            raise Unsupported(f"{too_deep} With bootstrapping: {error}") from None
    if first.machine.params.dnum < _MANY_DIGITS:
        return first
    if first.machine.params.log_n >= _LARGE_LOG_N and restoring.is_cheaper(first):
        return restoring.plan()
    try:
        larger = first.machine.params.log_n + 1
        second = _within(*arguments, stages, larger)
    except Error:  # there is no larger ring
        return first
    if device == "cpu":
        return second if second.work < _WORTH * first.work else first
    return second if second.read_bytes < _WORTH * first.read_bytes else first


def _within(
    graph: Graph,
    precision_bits: float,
    lanes: int,
    memory: float,
    device: str,
    stages_for: Callable[[Params], dict[str, Graph]],
    log_n: int,
) -> Plan:
    """The plan without bootstrapping with the smallest scale, in a ring of at least 2^log_n. stages_for: see _Restoring.

    Raises Unsupported if there are no such parameters, or if the bounds on the noise of a deep program outgrow all numbers. They square with
    every product; a program that bootstraps has the noise of a trial run in their place.
    """
    flat, needed = unrolled(graph), needed_bits(graph, precision_bits)
    depth, refused, rooms = depth_of(flat), 0, ROOMS

    def at(scale_bits: float) -> Plan:
        nonlocal depth, refused, rooms
        while True:
            params = smallest(flat, depth, scale_bits, lanes, device, log_n, rooms)
            stages = stages_for(params)
            if depth_of(stages["levels"]) == depth:
                break
            depth = depth_of(stages["levels"])  # some sums turned out to be free
        machine = Machine(stages["levels"], params, lanes, memory)
        try:
            demand = demanded(machine)[0]
        except RangeExceeded:
            if params.integer_bits < ROOMS[0]:
                small, rooms = rooms, ROOMS[:1]
                try:
                    return at(scale_bits)
                except RangeExceeded:
                    rooms = small  # there is too much noise, not too little room
                    raise
            refused += 1
            if params.log_n < _LARGE_LOG_N or refused < _PATIENCE:
                raise
            raise Unsupported(
                f"the model takes {depth} levels, on which the bounds of its noise outgrow all numbers."
            ) from None
        return Plan(stages, machine, demand, costs_of(params, device))

    def missing(found: Plan) -> float:
        return _missing(found, flat, precision_bits)

    found = _precise(at, max(max(needed) + 14.0, 25.0), missing, precision_bits)
    # A smaller scale may leave enough, and its parameters may be cheaper.
    bits = found.machine.params.scale_bits + missing(found) + _MARGIN
    with contextlib.suppress(Error):
        params = smallest(flat, depth, bits, lanes, device, log_n, rooms)
        if switch_work(params) < switch_work(found.machine.params):
            smaller = at(bits)
            if missing(smaller) <= 0:
                return smaller
    return found


def _missing(found: Plan, graph: Graph, precision_bits: float) -> float:
    """By how many bits the noise of a plan is too large. graph: after approximation, without loops."""
    needed = needed_bits(graph, precision_bits, found.stages["levels"])
    return max(n - b for n, b in zip(needed, found.demand.noise_bits, strict=True))


def _precise(
    at: Callable[[float], Plan],
    bits: float,
    missing: Callable[[Plan], float],
    precision_bits: float,
) -> Plan:
    """The plan at the smallest number of bits, of a scale or of a bootstrapping, that leaves little enough noise. missing: how many bits a plan lacks."""
    for _ in range(_TRIES):
        try:
            found = at(bits)
        except RangeExceeded:  # the bounds on the noise are so large that numbers may leave [-1, 1]
            bits += _COARSE
            continue
        lacking = missing(found)
        if lacking <= 0:
            return found
        bits += lacking + _FINE
    raise InvalidArgument(
        f"no scale leaves {precision_bits:g} bits of precision: ask for fewer precision_bits"
    )


@dataclass
class _Restoring:
    """Planning with bootstrapping. Lowered graphs are kept by the number of slots, and by whether they may be bootstrapped."""

    graph: Graph
    precision_bits: float
    lanes: int
    memory: float
    device: str
    key_memory: float
    insecure_ring: Ring | None

    def __post_init__(self) -> None:
        self._lowered: dict[tuple[int, bool], dict[str, Graph]] = {}
        self._flat = unrolled(self.graph)
        self._needed = needed_bits(self._flat, self.precision_bits)

    def stages(self, params: Params) -> dict[str, Graph]:
        """The stages after approximation without bootstrapping, which depend on the number of slots alone."""
        kind = params.slots // self.lanes, params.bootstraps
        if kind not in self._lowered:
            self._lowered[kind] = lowered(self.graph, kind[0], bootstraps=kind[1])
        return self._lowered[kind]

    def _cheapest(
        self, bits: float, near: Params | None = None, *, coarse: bool = False
    ) -> tuple[int, Params, Levels, Costs]:
        """(Cost, parameters, levels, costs of operations) of the cheapest plan whose bootstrappings have so many bits of precision.

        near: the best parameters for about as many bits, from which these do not differ by much. coarse: whether a plan that is not
        the cheapest will do.
        """
        found: list[tuple[int, Params, Levels, Costs]] = []
        refused: Unsupported | None = None

        def price(params: Params | None) -> int:
            nonlocal refused
            if params is None:
                return NEVER
            costs = costs_of(params, self.device).slowed(kept_keys(params, self.key_memory)[1])
            try:
                levels, plan = best_levels(self.stages(params)["lower"], params, costs)
            except Unsupported as error:
                refused = error
                return NEVER
            found.append((plan.cost, params, levels, costs))
            return plan.cost

        if self.insecure_ring is not None:
            ring = Bootstrapping(self.insecure_ring.log_n, bits, self.device, insecure=True)
            price(ring.at(self.insecure_ring.levels))
        elif bits <= _MOST_BITS:
            for ring in rings(bits, self.lanes, self.device):
                if near is not None and ring.log_n == near.log_n:
                    levels = near.depth - near.bootstrap_level
                    if ring.at(levels) is not None:  # else another ring may be better now
                        for other in range(max(1, levels - _NEAR), levels + _NEAR + 1):
                            price(ring.at(other))
            for ring in rings(bits, self.lanes, self.device) if not found else ():
                self._search(ring, price, coarse)
        if not found:
            raise refused or Unsupported(
                f"no secure parameters bootstrap to {bits:.0f} bits: ask for fewer precision_bits"
            )
        return min(found, key=lambda plan: plan[0])

    def _search(
        self, ring: Bootstrapping, price: Callable[[Params | None], int], coarse: bool
    ) -> None:
        """Prices plans of a ring with several numbers of levels between bootstrappings: every fourth, and those beside the best."""
        least = max(taken(node, k) for node in self._flat for k in range(len(node.inputs)))
        most = ring.most(max(1, least))
        if not most:
            return
        prices = {levels: price(ring.at(levels)) for levels in range(most, least - 1, -_STEP)}
        best = min(prices, key=lambda levels: prices[levels])
        for levels in () if coarse else range(best - _STEP + 1, best + _STEP):
            if levels != best and least <= levels <= most:
                price(ring.at(levels))

    def is_cheaper(self, other: Plan) -> bool:
        """Whether a plan of about the same precision costs less than one without bootstrapping."""
        params = other.machine.params
        try:
            cost, bootstrap_params, _, costs = self._cheapest(max(self._needed) + _COARSE)
            _, without = best_levels(self.stages(params)["lower"], params, other.costs)
        except (Unsupported, InvalidArgument):
            return False
        same = costs.unit == other.costs.unit and bootstrap_params.word == params.word
        return same and cost < _WORTH * without.cost

    def plan(self) -> Plan:
        """The plan with the least precise bootstrappings that are precise enough."""
        best: Params | None = None

        def at(bits: float) -> Plan:
            nonlocal best
            _, params, levels, costs = self._cheapest(bits, best)
            best = params
            stages = dict(self.stages(params))
            stages["levels"] = levelled(stages["lower"], levels)
            which, _ = kept_keys(params, self.key_memory)
            machine = Machine(stages["levels"], params, self.lanes, self.memory)
            bootstraps = any(node.op == "bootstrap" for node in stages["levels"])
            if not bootstraps:
                return Plan(stages, machine, demanded(machine)[0], costs)
            demand, machine.claims = demanded(machine, which, bits, self._flat)
            return Plan(stages, machine, demand, costs)

        bits = max(self._needed) + _COARSE
        _, params, levels, _ = self._cheapest(
            bits, coarse=True
        )  # its noise hardly depends on these
        graph = levelled(self.stages(params)["lower"], levels)
        rough = estimated(graph, self._flat, bits)
        missing = max(n - b for n, b in zip(self._needed, rough, strict=True))
        bits = min(bits + max(0.0, missing), _MOST_BITS)

        def lacking(found: Plan) -> float:
            return _missing(found, self._flat, self.precision_bits)

        return _precise(at, bits, lacking, self.precision_bits)


def lowered(
    graph: Graph, slots: int, levels: Levels | None = None, *, bootstraps: bool = False
) -> dict[str, Graph]:
    """The stages after approximation, for lanes of this many slots. levels: None stands for the lowest, without bootstrapping. bootstraps:
    whether arrays may be bootstrapped."""
    if not bootstraps and not has_loops(graph):
        graph = amplified(graph)
    laid = lay_out(shortened(graph), slots)
    if has_loops(graph):
        layouts = {node.attrs["like"]: node.attrs["layout"] for node in laid}
        flat = unrolled(graph)
        nodes = (n.with_attrs(layout=layouts[n.attrs["like"]]) for n in flat)
        laid = Graph(tuple(nodes), flat.outputs, "layout")
    low = lower(laid)
    return {"layout": laid, "lower": low, "levels": levelled(low, levels or lowest(low))}
