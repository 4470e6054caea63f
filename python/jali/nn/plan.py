"""Planning: the stages that need parameters, and the parameters that need the stages.

A layout depends on the number of slots, the noise on the layout, and the scale on the noise. So the scale grows until a trial run has
little enough noise. Without bootstrapping, the smallest secure ring is taken, or the next if a run has much less work there, or on a GPU reads
much fewer bytes of keys and matrices: if a ring's modulus is used up, its keys have many digits. With bootstrapping, ring and levels are those of
the cheapest plan.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jali.ckks import Params
from jali.errors import Error, InvalidArgument, RangeExceeded, Unsupported
from jali.nn.amplify import amplified
from jali.nn.bootstraps import Undecided
from jali.nn.choose import laid_out, lay_out
from jali.nn.costs import Costs, costs_of
from jali.nn.elimination import NEVER
from jali.nn.graph import Graph
from jali.nn.keys import Demand, digits, integer_bytes, kept_keys, key_bytes, word_bytes
from jali.nn.layout import Layout
from jali.nn.levels import Levels, depth_of, levelled, lowest, taken
from jali.nn.lower import lower
from jali.nn.matrices import Numbers
from jali.nn.parameters import (
    LEAST_INTEGER_BITS,
    Bootstrapping,
    Ring,
    integer_bits_of,
    needed_bits,
    rings,
    smallest,
    switch_work,
)
from jali.nn.passed import has_parts, taken_apart
from jali.nn.placement import best_levels, repeated_after
from jali.nn.progress import Progress
from jali.nn.run import Machine
from jali.nn.sampled import Samples
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
_PARTS = 64  # of a bit: scales of programs that do not bootstrap are multiples of one
_FINE = 0.5  # bits by which it grows beyond what is missing
_SPARE = 0.25  # bits beyond _FINE that a plan with bootstrapping may leave before one with less precise bootstrappings is tried
_CLOSER = 3  # such plans that are tried, each more precise than the one before
_NEAR = 1  # levels by which the best number differs for other bits of precision
_FEW_LEVELS = 4  # between two bootstrappings, with which words are compared
_STEP = 3  # of the levels between two bootstrappings in the search for the best number
_MOST_BITS = 32.0  # of precision that a single bootstrapping may be asked for (Params.create)
_MORE_BITS = 3.0  # of precision for which a GPU may have parameters in words of 32 bits instead of larger ones
_HALF = 0.5  # bits between those that are tried: most scales of whole and half bits have primes in words of 32 bits
_STAGE, _PRICED = (
    1 / 8,
    1 / 40,
)  # parts of what is left to do that a stage, and the levels of one of many parameters, take
_WORTH_KEYS = 1 / 50  # part of the cost that further keys of bootstrapping must save


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
    key_memory: float | None = float("inf"),
    insecure_ring: Ring | None = None,
    samples: Samples | None = None,
    progress: Progress | None = None,
) -> Plan:
    """The plan of an approximated graph.

    samples: examples, on which the noise of every number is estimated; without them, the noise is the mean over numbers.
    memory: bytes for matrices.
    key_memory: bytes for the expanded keys of bootstrapping: the fastest that fit are made, or the fewest if none do. None stands for keys that
        share `memory` with the matrices: they have what these leave as integers, and the matrices have what the keys leave.
    insecure_ring: for tests; the program then bootstraps.
    """
    arguments = (graph, precision_bits, lanes, memory, device)
    told = progress or Progress()
    restoring = _Restoring(*arguments, key_memory, insecure_ring, samples, told)
    if insecure_ring is not None:
        return restoring.plan()
    try:
        first = _within(*arguments, restoring, 0)
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
        second = _within(*arguments, restoring, larger)
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
    restoring: _Restoring,
    log_n: int,
) -> Plan:
    """The plan without bootstrapping with the smallest scale, in a ring of at least 2^log_n. restoring: has the stages and the numbers that
    plans share.

    Raises Unsupported if there are no such parameters, or if the bounds on the noise of a deep program outgrow all numbers. They square with
    every product; a program that bootstraps has the noise of a trial run in their place.
    """
    flat = unrolled(graph)
    needed = needed_bits(flat if has_loops(graph) else amplified(flat), precision_bits)
    depth, integer_bits, refused = depth_of(flat), LEAST_INTEGER_BITS, 0

    def at(scale_bits: float) -> Plan:
        nonlocal depth, integer_bits, refused
        # Estimates differ in their last digits from one machine to another, which must not have other parameters for it.
        scale_bits = math.ceil(scale_bits * _PARTS) / _PARTS
        while True:
            params = smallest(flat, depth, scale_bits, lanes, device, log_n, integer_bits)
            graph_now = restoring.stages(params)["levels"]
            room = max(integer_bits, integer_bits_of(graph_now))
            if (depth_of(graph_now), room) == (depth, integer_bits):
                break
            depth, integer_bits = depth_of(graph_now), room  # some sums turned out to be free
        stages = restoring.stages(params)
        restoring.progress.some("parameters", _STAGE)
        costs = costs_of(params, device)
        machine = Machine(
            stages["levels"],
            params,
            lanes,
            memory,
            numbers=restoring.numbers,
            costs=costs,
            streams=device == "cuda",
        )
        try:
            demand = demanded(machine, laid_out=stages["layout"], samples=restoring.samples)[0]
        except RangeExceeded:
            refused += 1
            if params.log_n < _LARGE_LOG_N or refused < _PATIENCE:
                raise
            raise Unsupported(
                f"the model takes {depth} levels, on which the bounds of its noise outgrow all numbers."
            ) from None
        return Plan(stages, machine, demand, costs)

    found = _precise(at, max(max(needed) + 14.0, 25.0), needed, precision_bits)
    # A smaller scale may leave enough, and its parameters may be cheaper.
    bits = found.machine.params.scale_bits + _missing(found, needed) + _MARGIN
    with contextlib.suppress(Error):
        params = smallest(flat, depth, bits, lanes, device, log_n, integer_bits)
        if switch_work(params) < switch_work(found.machine.params):
            smaller = at(bits)
            if _missing(smaller, needed) <= 0:
                return smaller
    return found


def _missing(found: Plan, needed: Sequence[float]) -> float:
    """By how many bits the noise of a plan is too large."""
    return max(n - b for n, b in zip(needed, found.demand.noise_bits, strict=True))


def _precise(
    at: Callable[[float], Plan], bits: float, needed: list[float], precision_bits: float
) -> Plan:
    """The plan at the smallest number of bits, of a scale or of a bootstrapping, that leaves little enough noise."""
    for _ in range(_TRIES):
        try:
            found = at(bits)
        except RangeExceeded:  # the bounds on the noise are so large that numbers may leave [-1, 1]
            bits += _COARSE
            continue
        missing = _missing(found, needed)
        if missing <= 0:
            return found
        bits += missing + _FINE
    raise InvalidArgument(
        f"no scale leaves {precision_bits:g} bits of precision: ask for fewer precision_bits"
    )


def _likelier(one: Unsupported | None, other: Unsupported) -> Unsupported:
    """Of the reasons why there is no plan with some parameters and with others, the one with which there may be a plan; else the last."""
    return one if isinstance(one, Undecided) else other


@dataclass(frozen=True)
class _Found:
    """A plan with bootstrapping: its cost, the precision of bootstrappings in bits, parameters, levels, costs of operations, and whether sums are taken
    apart."""

    cost: int
    bits: float
    params: Params
    levels: Levels
    costs: Costs
    apart: bool


@dataclass
class _Restoring:
    """Planning with bootstrapping. Lowered graphs are kept by the number of slots and by whether they may be bootstrapped, and numbers of diagonals
    for all plans."""

    graph: Graph
    precision_bits: float
    lanes: int
    memory: float
    device: str
    key_memory: float | None
    insecure_ring: Ring | None
    samples: Samples | None = None
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        self._lowered: dict[tuple[int, bool, bool], dict[str, Graph]] = {}
        self._layouts: dict[int, dict[str, Layout]] = {}
        self._integers: dict[int, int] = {}
        self.numbers = Numbers()
        self._flat = unrolled(self.graph)
        self._needed = needed_bits(self._flat, self.precision_bits, average=True)

    def stages(self, params: Params, apart: bool = True) -> dict[str, Graph]:
        """The stages after approximation without bootstrapping, which depend on the number of slots alone, and on whether sums are taken apart."""
        kind = params.slots // self.lanes, params.bootstraps, apart
        if kind not in self._lowered:
            if not apart and not has_parts(self.stages(params)["layout"]):
                self._lowered[kind] = self.stages(params)
            else:
                self._lowered[kind] = lowered(
                    self.graph,
                    kind[0],
                    bootstraps=kind[1],
                    apart=apart,
                    known=self._layouts,
                    progress=self.progress,
                )
        return self._lowered[kind]

    def _placed(
        self,
        params: Params,
        costs: Costs,
        packings: Sequence[int] = (0,),
        both: bool = False,
        below: int = NEVER,
    ) -> tuple[Levels, int, bool]:
        """The levels of the cheapest plan, its cost, and whether sums are taken apart in it. both: whether that is compared with a plan in which they are
        not. It may be better, because the parts of a sum may have to be bootstrapped in its place. Otherwise that is done if there is no plan with sums
        taken apart. Raises Unsupported if there is none that costs less than `below`."""
        found: list[tuple[int, bool, Levels]] = []
        refused: Unsupported | None = None
        for apart in (True, False):
            if found and not both:
                break
            graph = self.stages(params, apart)["lower"]
            if apart or graph is not self.stages(params)["lower"]:
                try:
                    levels, plan = best_levels(graph, params, costs, packings, below)
                except Unsupported as error:
                    refused = _likelier(refused, error)
                else:
                    found.append((plan.cost, apart, levels))
                    below = min(below, plan.cost)
        if not found:
            assert refused is not None
            raise refused
        cost, apart, levels = min(found, key=lambda one: one[0])
        return levels, cost, apart

    def _kept_keys(self, params: Params, packings: Sequence[int] = (0,)) -> tuple[str | int, float]:
        """As kept_keys, for the memory of keys. If they share it with the matrices, these are integers, the smallest kind that needs no work of the
        host."""
        if self.key_memory is not None:
            return kept_keys(params, self.key_memory, packings)
        if params.slots not in self._integers:
            each = {
                digest: len(term.diagonals[pair])
                for node in self.stages(params)["lower"]
                for term in node.attrs.get("terms", ())
                for pair, digest in term.digests.items()
            }
            self._integers[params.slots] = sum(each.values()) * integer_bytes(params)
        room = max(0.0, self.memory - self._integers[params.slots])
        return kept_keys(params, room, packings)

    def _words(self, bits: float) -> tuple[str | None, ...]:
        """In which words every ring bootstraps with so many bits of precision; None for a ring in which that is not secure."""
        made = (ring.at(_FEW_LEVELS) for ring in rings(bits, self.lanes, self.device))
        return tuple(None if params is None else params.word for params in made)

    def _cheapest(self, bits: float, near: Params | None = None) -> _Found:
        """The cheapest plan whose bootstrappings have so many bits of precision. near: see _priced."""
        return self._whole(min(self._priced(bits, near), key=lambda plan: plan.cost))

    def _priced(self, bits: float, near: Params | None = None, log_n: int = 0) -> list[_Found]:
        """Plans whose bootstrappings have so many bits of precision, among which is the cheapest; others are left out.

        near: the best parameters for about as many bits, from which these do not differ by much. log_n: of the ring, or 0 for all.
        """
        found: list[_Found] = []
        refused: Unsupported | None = None

        def price(params: Params | None) -> int:
            nonlocal refused
            if params is None:
                return NEVER
            self.progress.some("levels", _PRICED)
            costs = costs_of(params, self.device).slowed(self._kept_keys(params)[1])
            below = min((plan.cost for plan in found), default=NEVER)
            try:
                levels, cost, apart = self._placed(params, costs, below=below)
            except Unsupported as error:
                refused = _likelier(refused, error)
                return NEVER
            found.append(_Found(cost, bits, params, levels, costs, apart))
            return cost

        if self.insecure_ring is not None:
            ring = Bootstrapping(self.insecure_ring.log_n, bits, self.device, insecure=True)
            price(ring.at(self.insecure_ring.levels))
        elif bits <= _MOST_BITS:
            every = [
                ring for ring in rings(bits, self.lanes, self.device) if log_n in (0, ring.log_n)
            ]
            for ring in every:
                if near is not None and ring.log_n == near.log_n:
                    levels = near.depth - near.bootstrap_level
                    now = ring.at(levels)
                    # With another word, or without security, other levels or another ring may be better now.
                    if now is not None and now.word == near.word:
                        self._climb(ring, price, levels)
            for ring in every if not found else ():
                self._search(ring, price)
        if not found:
            raise refused or Unsupported(
                f"no secure parameters bootstrap to {bits:.0f} bits, and one bootstrapping has at most {_MOST_BITS:.0f}: ask for fewer "
                "precision_bits"
            )
        return found

    def _whole(self, best: _Found) -> _Found:
        """The best plan of its parameters, with sums taken apart or not, and with sparse bootstrappings."""
        placed, cost, apart = self._placed(best.params, best.costs, both=True)
        return self._sparser(_Found(cost, best.bits, best.params, placed, best.costs, apart))

    def _sparser(self, full: _Found) -> _Found:
        """The plan, or a cheaper one of the same parameters with keys for n slots, alone or beside those for all slots, where n is a number of slots
        after which an array repeats that the plan bootstraps. Keys of more bytes than the plan has must save _WORTH_KEYS of its cost."""
        best, params = full, full.params
        low = self.stages(params, full.apart)["lower"]
        every = params.slots
        periods = {
            repeated_after(low[name].attrs["layout"], every) for name in full.levels.restored
        }
        for packings in ((n, *more) for n in sorted(periods - {every}) for more in ((), (0,))):
            which, slower = self._kept_keys(params, packings)
            if which == "fewest":
                continue  # they do not fit
            costs = costs_of(params, self.device, [n for n in packings if n]).slowed(slower)
            try:
                levels, cost, apart = self._placed(
                    params, costs, packings, both=True, below=best.cost
                )
            except Unsupported:
                continue
            more_keys = self._key_bytes(params, levels.packings) > self._key_bytes(params, (0,))
            most = full.cost * (1 - _WORTH_KEYS) if more_keys else full.cost
            if cost < min(best.cost, most):
                best = _Found(cost, full.bits, params, levels, costs, apart)
        return best

    def _key_bytes(self, params: Params, packings: Sequence[int]) -> int:
        """The bytes of the keys of bootstrapping that a plan with these packings has."""
        which, _ = self._kept_keys(params, packings)
        curve = params.bootstrap_key_curve(slots=packings)
        return which if isinstance(which, int) else curve[-1 if which == "all" else 0][0]

    def _fast(self, bits: float, before: _Found | None) -> _Found:
        """The same on a device. A GPU is fastest with words of 32 bits, for which not all scales have primes: some more bits may cost less.

        One ring may have primes for a scale and another one none. So this is asked of every ring, also of one that costs more at these bits. before: a plan for
        other bits. If these have other words in some ring, that may be the best now, and nothing is near to it.
        """
        near = None
        if before is not None and self._words(bits) == self._words(before.bits):
            near = before.params
        found = self._priced(bits, near)
        if self.device != "cpu" and self.insecure_ring is None:
            best = min(found, key=lambda plan: plan.cost)
            for ring in rings(bits, self.lanes, self.device):
                mine = [plan for plan in found if plan.params.log_n == ring.log_n]
                now = min(mine, key=lambda plan: plan.cost).params if mine else None
                compared = near is not None and best.params.word == "w32"  # when near was found
                if compared or (mine and all(plan.params.word == "w32" for plan in mine)):
                    continue
                starts = [
                    now
                ]  # from which other numbers of levels are tried, as scales differ in whether they have such primes
                if before is not None and before.params.log_n == ring.log_n:
                    starts.append(before.params)
                for start in starts:
                    with contextlib.suppress(Unsupported):
                        found += self._narrower(bits, ring, start)
        return self._whole(min(found, key=lambda plan: plan.cost))

    def _narrower(self, bits: float, ring: Bootstrapping, now: Params | None) -> list[_Found]:
        """Plans in words of 32 bits, for the fewest of _MORE_BITS more bits of precision for which a ring has any. now: the ring's best parameters at these
        bits, if they are known."""
        half = ring.most(self._least) // 2
        levels = half if now is None else now.depth - now.bootstrap_level
        more = math.ceil(bits / _HALF) * _HALF
        while levels and more <= min(bits + _MORE_BITS, _MOST_BITS):
            finer = Bootstrapping(ring.log_n, more, self.device)
            other = finer.at(levels)
            if other is None:  # more precision leaves fewer levels
                other = finer.at(min(levels, finer.most(self._least)))
            if other is not None and other.word == "w32":
                return self._priced(more, other if now else None, ring.log_n)
            more += _HALF
        return []

    @property
    def _least(self) -> int:
        """The fewest levels between two bootstrappings with which every operation can be done."""
        return max(1, *(taken(node, k) for node in self._flat for k in range(len(node.inputs))))

    def _climb(
        self, ring: Bootstrapping, price: Callable[[Params | None], int], levels: int
    ) -> None:
        """Prices plans of a ring with numbers of levels near this one, and on from the best as long as more or fewer levels are better."""
        prices: dict[int, int] = {}
        while True:
            for other in range(max(1, levels - _NEAR), levels + _NEAR + 1):
                if other not in prices:
                    prices[other] = price(ring.at(other))
            best = min(prices, key=lambda other: (prices[other], abs(other - levels)))
            if best == levels:
                return
            levels = best

    def _search(self, ring: Bootstrapping, price: Callable[[Params | None], int]) -> None:
        """Prices plans of a ring with several numbers of levels between bootstrappings: every third, and those beside the best."""
        least = self._least
        most = ring.most(least)
        if not most:
            return
        rough = sorted(range(most, least - 1, -_STEP))  # many levels are seldom better than few
        prices = {levels: price(ring.at(levels)) for levels in rough}
        best = min(prices, key=lambda levels: prices[levels])
        for levels in range(best - _STEP + 1, best + _STEP):
            if levels != best and least <= levels <= most:
                price(ring.at(levels))

    def is_cheaper(self, other: Plan) -> bool:
        """Whether a plan of about the same precision costs less than one without bootstrapping."""
        params = other.machine.params
        try:
            found = self._cheapest(max(self._needed) + _COARSE)
            _, without = best_levels(self.stages(params)["lower"], params, other.costs)
        except (Unsupported, InvalidArgument):
            return False
        same = found.costs.unit == other.costs.unit and found.params.word == params.word
        return same and found.cost < _WORTH * without.cost

    def _tried(self, found: _Found) -> Plan:
        """The plan after its trial run."""
        self.progress.some("parameters", _STAGE)
        stages = dict(self.stages(found.params, found.apart))
        stages["levels"] = levelled(stages["lower"], found.levels)
        bootstraps = any(node.op == "bootstrap" for node in stages["levels"])
        packings, memory = found.levels.packings or (0,), self.memory
        which, _ = self._kept_keys(found.params, packings)
        if bootstraps and self.key_memory is None:
            memory = max(0.0, memory - self._key_bytes(found.params, packings))
        machine = Machine(
            stages["levels"],
            found.params,
            self.lanes,
            memory,
            numbers=self.numbers,
            costs=found.costs,
            streams=self.device == "cuda",
        )
        if not bootstraps:
            demand = demanded(machine, laid_out=stages["layout"], samples=self.samples)[0]
            return Plan(stages, machine, demand, found.costs)
        demand, machine.claims = demanded(machine, which, found.bits)
        return Plan(stages, machine, demand, found.costs)

    def plan(self) -> Plan:
        """The plan with the least precise bootstrappings that are precise enough."""
        last: list[_Found] = []

        def at(bits: float) -> Plan:
            last.append(self._fast(bits, last[-1] if last else None))
            return self._tried(last[-1])

        enough = _precise(at, max(self._needed) + _COARSE, self._needed, self.precision_bits)
        return self._fewer_bits(last[-1], enough) or enough

    def _fewer_bits(self, found: _Found, enough: Plan) -> Plan | None:
        """A cheaper plan with less precise bootstrappings that are precise enough, if the first has bits to spare: more were asked for to begin with, or
        to have words of 32 bits."""
        spare = -_missing(enough, self._needed) - _FINE
        if spare < _SPARE or self.insecure_ring is not None:
            return None
        bits = found.bits - spare
        for _ in range(_CLOSER):
            with contextlib.suppress(Unsupported, RangeExceeded):
                fewer = self._fast(bits, found)
                if fewer.cost >= found.cost or fewer.costs.unit != found.costs.unit:
                    return None
                plan = self._tried(fewer)
                missing = _missing(plan, self._needed)
                if missing <= 0:
                    return plan
                bits = fewer.bits + missing + _MARGIN
                if bits < found.bits:
                    continue
            return None
        return None


def lowered(
    graph: Graph,
    slots: int,
    levels: Levels | None = None,
    *,
    bootstraps: bool = False,
    apart: bool = True,
    known: dict[int, dict[str, Layout]] | None = None,
    progress: Progress | None = None,
) -> dict[str, Graph]:
    """The stages after approximation, for lanes of this many slots. levels: None stands for the lowest, without bootstrapping. bootstraps:
    whether arrays may be bootstrapped. apart: whether sums in loops may be taken apart; see jali.nn.passed. known: by the number of slots, the
    layouts that were chosen for this graph before, and will be; they depend neither on bootstraps nor on apart, as amplification moves no number."""
    if not bootstraps and not has_loops(graph):
        graph = amplified(graph)
    told = progress or Progress()
    told.some("layout", _STAGE)
    laid = shortened(graph)
    if known is not None and slots in known:
        laid = laid_out(laid, known[slots])
    else:
        laid = lay_out(laid, slots)
    if known is not None:
        known[slots] = {node.name: node.attrs["layout"] for node in laid}
    if has_loops(graph):
        layouts = {node.attrs["like"]: node.attrs["layout"] for node in laid}
        flat = unrolled(graph)
        nodes = (n.with_attrs(layout=layouts[n.attrs["like"]]) for n in flat)
        laid = Graph(tuple(nodes), flat.outputs, "layout")
    told.some("lower", _STAGE)
    low = lower(taken_apart(laid) if apart and has_loops(graph) else laid)
    return {"layout": laid, "lower": low, "levels": levelled(low, levels or lowest(low))}
