"""Planning with bootstrapping: the cheapest parameters, levels and bootstraps of a graph, for
bootstrappings that are as precise as they must be.

Ring and levels are those of the cheapest plan. A search begins with the bits of precision that an
estimate needs, and asks for more or fewer after a trial run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jali.ckks import Params
from jali.compiler.cost.costs import Costs, costs_of
from jali.compiler.cost.elimination import NEVER
from jali.compiler.cost.keys import (
    integer_bytes,
    kept_keys,
    key_curve,
    sent_bytes,
    sent_of_expanded,
)
from jali.compiler.cost.layout_costs import LayoutCosts, layout_costs_of
from jali.compiler.cost.measured import PRESETS, params_of
from jali.compiler.ir.folded_ops import Bootstrap
from jali.compiler.ir.graph import Graph
from jali.compiler.ir.layouts import Layout
from jali.compiler.ir.loop_graph import has_loops
from jali.compiler.ir.products import MatrixProduct
from jali.compiler.layout.lowered_ops import terms_of
from jali.compiler.layout.scaled_sums import has_inlined_sums
from jali.compiler.noise.element_noise import Samples
from jali.compiler.passes.levels import Levels, levelled, levels_taken
from jali.compiler.passes.unroll import unrolled
from jali.compiler.pipeline import STAGE, lowered
from jali.compiler.planning.bootstrap_placement import best_levels, repeated_after
from jali.compiler.planning.bootstrap_search import Undecided
from jali.compiler.planning.dry_run import demanded
from jali.compiler.planning.fewer_keys import FEWEST, TooManyKeys, run_cost, sending
from jali.compiler.planning.parameters import MOST_BITS, Bootstrapping, Ring, needed_bits, rings
from jali.compiler.planning.plan import COARSE, FINE, MARGIN, WORTH, Plan, missing_bits, precise
from jali.compiler.progress import Progress
from jali.compiler.runtime.interpreter import Interpreter
from jali.compiler.runtime.matrices import Numbers
from jali.errors import InvalidArgument, RangeExceeded, Unsupported
from jali.program.demand import Demand

__all__ = ["BootstrappingPlanner"]

#: Bits beyond FINE that a plan with bootstrapping may leave before one with less precise
#: bootstrappings is tried.
_SPARE = 0.25
_CLOSER = 3  # such plans that are tried, each more precise than the one before
_NEAR = 1  # levels by which the best number differs for other bits of precision
_STEP = 3  # of the levels between two bootstrappings in the search for the best number
_WORTH_KEYS = 1 / 50  # part of the cost that further keys of bootstrapping must save
#: Numbers of keys of rotations for which plans leave room beside those of bootstrapping, if a
#: client may send so many bytes. The more there are, the smaller are the keys that fit: they have
#: fewer levels.
_ROOM_FOR = (0, 12, 32)
_PRICED = 1 / 40  # part of what is left to do that the levels of one of many parameters take


def _likelier(one: Unsupported | None, other: Unsupported) -> Unsupported:
    """The error to report of two: one that leaves hope (Undecided), otherwise the newer one."""
    return one if isinstance(one, Undecided) else other


@dataclass(frozen=True)
class _Found:
    """A plan with bootstrapping: its cost, the precision of bootstrappings in bits, parameters,
    levels, costs of operations, and whether sums are inlined."""

    cost: int
    bits: float
    params: Params
    levels: Levels
    costs: Costs
    inline: bool


@dataclass
class BootstrappingPlanner:
    """Planning with bootstrapping. Arguments as of jali.compiler.planning.planner.plan.

    It keeps lowered graphs by the number of slots and by whether they may be bootstrapped, and the
    numbers of diagonals, which all plans share, those without bootstrapping, too.

    upload: also FEWEST, for the fewest bytes that are found.
    """

    graph: Graph
    precision_bits: float
    lanes: int
    memory: float
    device: str
    key_memory: float | None
    insecure_ring: Ring | None
    samples: Samples | None = None
    progress: Progress = field(default_factory=Progress)
    upload: float | None = None

    def __post_init__(self) -> None:
        self._lowered: dict[tuple[int, bool, bool], dict[str, Graph]] = {}
        self._layouts: dict[int, dict[str, Layout]] = {}
        self._layout_costs: dict[int, LayoutCosts] = {}
        self._integers: dict[int, int] = {}
        self._made_rings: dict[float, list[Bootstrapping]] = {}  # which keep their parameters
        self.numbers = Numbers()
        self.log_n = 0  # of the last parameters without bootstrapping that were tried
        self._own_keys = 0  # of rotations, for which plans leave room in the bytes that are sent
        #: The graph without loops.
        self.flat = unrolled(self.graph) if has_loops(self.graph) else self.graph
        self._needed = needed_bits(self.flat, self.precision_bits, average=True)

    def layout_costs(self, params: Params) -> LayoutCosts:
        """The layout costs of the ring of these parameters: those of the ring's preset or, where
        there is none, of the first parameters that were tried in it."""
        if params.slots not in self._layout_costs:
            if params.log_n in PRESETS:
                params = params_of(params.log_n, params.word)
            self._layout_costs[params.slots] = layout_costs_of(
                costs_of(params, self.device), params
            )
        return self._layout_costs[params.slots]

    def stages(self, params: Params, inline: bool = True) -> dict[str, Graph]:
        """The stages after approximation without bootstrapping, which depend on the number of slots
        alone, and on whether sums are inlined."""
        kind = params.slots // self.lanes, params.bootstraps, inline
        if kind not in self._lowered:
            if not inline and not has_inlined_sums(self.stages(params)["layout"]):
                self._lowered[kind] = self.stages(params)
            else:
                self._lowered[kind] = lowered(
                    self.graph,
                    kind[0],
                    self.layout_costs(params),
                    bootstraps=kind[1],
                    inline=inline,
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
        """The levels of the cheapest plan, its cost, and whether sums are inlined in it.

        both: whether that is compared with a plan in which they are not. It may be better, because
            the parts of a sum may have to be bootstrapped in its place. Otherwise that is done if
            there is no plan with sums inlined.

        Raises Unsupported if there is none that costs less than `below`.
        """
        found: list[tuple[int, bool, Levels]] = []
        refused: Unsupported | None = None
        for inline in (True, False):
            if found and not both:
                break
            graph = self.stages(params, inline)["lower"]
            if inline or graph is not self.stages(params)["lower"]:
                try:
                    levels, plan = best_levels(graph, params, costs, packings, below)
                except Unsupported as error:
                    refused = _likelier(refused, error)
                else:
                    found.append((plan.cost, inline, levels))
                    below = min(below, plan.cost)
        if not found:
            assert refused is not None
            raise refused
        cost, inline, levels = min(found, key=lambda one: one[0])
        return levels, cost, inline

    def _kept_keys(self, params: Params, packings: Sequence[int] = (0,)) -> tuple[str | int, float]:
        """The keys of bootstrapping for which the server has memory and which a client may send, as
        kept_keys gives them. If there are none, they are "fewest".

        If keys share the memory with the matrices, these count as integers, the smallest kind that
        needs no work of the host.
        """
        which, slower = self._in_memory(params, packings)
        if self.upload is None:
            return which, slower
        curve = key_curve(params, tuple(packings))
        if self.upload == FEWEST:
            return curve[0]
        own = self._own_keys * sent_bytes(params, params.depth)
        fits = [
            point
            for point in curve
            if point[1] >= slower and sent_of_expanded(params, point[0]) + own <= self.upload
        ]
        return fits[-1] if fits else ("fewest", curve[0][1])

    def _in_memory(self, params: Params, packings: Sequence[int]) -> tuple[str | int, float]:
        """The keys of bootstrapping for which the server has memory, as kept_keys gives them."""
        if self.key_memory is not None:
            return kept_keys(params, self.key_memory, packings)
        if params.slots not in self._integers:
            each = {
                digest: len(term.diagonals[pair])
                for node in self.stages(params)["lower"]
                for term in terms_of(node)
                for pair, digest in term.digests.items()
            }
            self._integers[params.slots] = sum(each.values()) * integer_bytes(params)
        room = max(0.0, self.memory - self._integers[params.slots])
        return kept_keys(params, room, packings)

    def _rings(self, bits: float) -> list[Bootstrapping]:
        """The rings in which bootstrappings have so many bits of precision. They are kept, because
        making their parameters takes time."""
        if bits not in self._made_rings:
            self._made_rings[bits] = rings(bits, self.lanes, self.device)
        return self._made_rings[bits]

    def _cheapest(self, bits: float, before: _Found | None = None) -> _Found:
        """The cheapest plan whose bootstrappings have so many bits of precision, or on a GPU up to
        MORE_BITS more.

        before: the best plan for about as many bits, from which this one does not differ by much.
        """
        found: list[_Found] = []
        refused: Unsupported | None = None

        def price(ring: Bootstrapping, levels: int) -> int:
            nonlocal refused
            params = ring.at(levels)
            if params is None:
                return NEVER
            self.progress.some("levels", _PRICED)
            which, slower = self._kept_keys(params)
            if self.upload and which == "fewest":
                return NEVER
            costs = costs_of(params, self.device)
            costs = costs.slowed(costs.slower(slower))
            below = min((plan.cost for plan in found), default=NEVER)
            if self.upload == FEWEST:
                below = NEVER
            try:
                placed, cost, inline = self._placed(params, costs, below=below)
            except Unsupported as error:
                refused = _likelier(refused, error)
                return NEVER
            if self.upload == FEWEST:
                cost = sent_of_expanded(params, key_curve(params, (0,))[0][0])
            found.append(_Found(cost, ring.bits(levels), params, placed, costs, inline))
            return cost

        if self.insecure_ring is not None:
            ring = Bootstrapping(self.insecure_ring.log_n, bits, self.device, insecure=True)
            price(ring, self.insecure_ring.levels)
        elif bits <= MOST_BITS:
            every = self._rings(bits)
            near = None if before is None else before.params
            for ring in every:
                if near is not None and ring.log_n == near.log_n:
                    levels = near.depth - near.bootstrap_level
                    now = ring.at(levels)
                    # With another word, or without security, other levels or another ring may be
                    # better now.
                    if now is not None and now.word == near.word:
                        self._climb(ring, price, levels)
            for ring in every if not found else ():
                self._search(ring, price)
        if not found:
            raise refused or Unsupported(
                f"no secure parameters bootstrap to {bits:.0f} bits, and one bootstrapping has at most {MOST_BITS:.0f}: ask for fewer "
                "precision_bits"
            )
        return self._whole(min(found, key=lambda plan: plan.cost))

    def _whole(self, best: _Found) -> _Found:
        """The best plan of its parameters, with sums inlined or not, and with sparse
        bootstrappings."""
        placed, cost, inline = self._placed(best.params, best.costs, both=True)
        full = _Found(cost, best.bits, best.params, placed, best.costs, inline)
        return full if self.upload == FEWEST else self._sparser(full)

    def _sparser(self, full: _Found) -> _Found:
        """The plan, or a cheaper one of the same parameters with keys for n slots, alone or beside
        those for all slots, where n is a number of slots after which an array repeats that the plan
        bootstraps. Keys of more bytes than the plan has must save _WORTH_KEYS of its cost."""
        best, params = full, full.params
        low = self.stages(params, full.inline)["lower"]
        every = params.slots
        periods = {repeated_after(low[name].layout, every) for name in full.levels.restored}
        for packings in ((n, *more) for n in sorted(periods - {every}) for more in ((), (0,))):
            which, slower = self._kept_keys(params, packings)
            if which == "fewest":
                continue  # they do not fit
            costs = costs_of(params, self.device, [n for n in packings if n])
            costs = costs.slowed(costs.slower(slower))
            try:
                levels, cost, inline = self._placed(
                    params, costs, packings, both=True, below=best.cost
                )
            except Unsupported:
                continue
            more_keys = self._key_bytes(params, levels.packings) > self._key_bytes(params, (0,))
            most = full.cost * (1 - _WORTH_KEYS) if more_keys else full.cost
            if cost < min(best.cost, most):
                best = _Found(cost, full.bits, params, levels, costs, inline)
        return best

    def _key_bytes(self, params: Params, packings: Sequence[int]) -> int:
        """The bytes of the keys of bootstrapping that a plan with these packings has."""
        which, _ = self._kept_keys(params, packings)
        curve = key_curve(params, tuple(packings))
        return which if isinstance(which, int) else curve[-1 if which == "all" else 0][0]

    @property
    def _least(self) -> int:
        """The fewest levels between two bootstrappings with which every operation can be done."""
        return max(
            1, *(levels_taken(node, k) for node in self.flat for k in range(len(node.inputs)))
        )

    def _climb(
        self, ring: Bootstrapping, price: Callable[[Bootstrapping, int], int], levels: int
    ) -> None:
        """Prices plans of a ring with numbers of levels near this one, and on from the best as long
        as more or fewer levels are better."""
        prices: dict[int, int] = {}
        while True:
            for other in range(max(1, levels - _NEAR), levels + _NEAR + 1):
                if other not in prices:
                    prices[other] = price(ring, other)
            best = min(prices, key=lambda other: (prices[other], abs(other - levels)))
            if best == levels:
                return
            levels = best

    def _search(self, ring: Bootstrapping, price: Callable[[Bootstrapping, int], int]) -> None:
        """Prices plans of a ring with several numbers of levels between bootstrappings: every
        third, and those beside the best."""
        least = self._least
        most = ring.most(least)
        if not most:
            return
        rough = sorted(range(most, least - 1, -_STEP))  # many levels are seldom better than few
        prices = {levels: price(ring, levels) for levels in rough}
        best = min(prices, key=lambda levels: prices[levels])
        for levels in range(best - _STEP + 1, best + _STEP):
            if levels != best and least <= levels <= most:
                price(ring, levels)

    def is_cheaper(self, other: Plan) -> bool:
        """Whether a plan of about the same precision costs less than one without bootstrapping."""
        params = other.interpreter.params
        try:
            found = self._cheapest(max(self._needed) + COARSE)
            _, without = best_levels(self.stages(params)["lower"], params, other.costs)
        except (Unsupported, InvalidArgument):
            return False
        same = found.costs.unit == other.costs.unit and found.params.word == params.word
        return same and found.cost < WORTH * without.cost

    def _tried(self, found: _Found) -> Plan:
        """The plan with what a dry run says of it."""
        self.progress.some("parameters", STAGE)
        stages = dict(self.stages(found.params, found.inline))
        layout_costs = self.layout_costs(found.params)
        stages["levels"] = levelled(stages["lower"], found.levels)
        bootstraps = any(isinstance(node.operation, Bootstrap) for node in stages["levels"])
        packings, memory = found.levels.packings or (0,), self.memory
        which, slower = self._in_memory(found.params, packings)
        if bootstraps and self.key_memory is None:
            memory = max(0.0, memory - self._key_bytes(found.params, packings))
        interpreter = Interpreter(
            stages["levels"],
            found.params,
            self.lanes,
            memory,
            numbers=self.numbers,
            costs=found.costs,
            streams=self.device == "cuda",
        )
        if not bootstraps:
            with contextlib.suppress(RangeExceeded):  # bounds on the noise may outgrow all numbers

                def unbounded(keys: Demand | None = None) -> Demand:
                    how: dict[str, Any] = {"laid_out": stages["layout"], "samples": self.samples}
                    return demanded(interpreter, keys=keys, **how)[0]

                plan = Plan(stages, interpreter, unbounded(), found.costs, layout_costs)
                if self.upload is None:
                    return plan
                return sending(plan, found.costs, self.upload, unbounded)
            which = "none"
        # A loop multiplies noise by the same matrices in every step, which turns it into the
        # directions that they enlarge most. The noise of a softmax lies in the directions of the
        # values that it weighs. The sums of squares of the rows of matrices do not tell.
        turned = any(isinstance(node.operation, MatrixProduct) for node in stages["levels"])
        samples = self.samples if self.samples and (turned or self.samples.has_loops) else None

        def noted(keys: Demand | None = None) -> Demand:
            kept = which if keys is None else keys.bootstrap
            how: dict[str, Any] = {"laid_out": stages["layout"], "samples": samples, "keys": keys}
            demand, interpreter.claims = demanded(interpreter, kept, found.bits, **how)
            return demand

        plan = Plan(stages, interpreter, noted(), found.costs, layout_costs)
        if self.upload is None:
            return plan
        whole = costs_of(found.params, self.device, [n for n in packings if n])
        try:
            return sending(plan, whole.slowed(whole.slower(slower)), self.upload, noted)
        except TooManyKeys as error:
            self._own_keys = max(self._own_keys, error.rotations)
            raise

    def plan(self) -> Plan:
        """The plan with the least precise bootstrappings that are precise enough."""
        last: list[_Found] = []

        def at(bits: float) -> Plan:
            if self.upload and not last:
                found, plan = self._to_send(bits)
                last.append(found)
                return plan
            last.append(self._cheapest(bits, last[-1] if last else None))
            if self.upload is not None:
                with contextlib.suppress(TooManyKeys):
                    return self._tried(last[-1])
                last.append(self._cheapest(bits))  # with room for the keys that were too many
            return self._tried(last[-1])

        enough = precise(at, max(self._needed) + COARSE, self._needed, self.precision_bits)
        return self._fewer_bits(last[-1], enough) or enough

    def _to_send(self, bits: float) -> tuple[_Found, Plan]:
        """Of the cheapest plans that leave room for several numbers of keys, the fastest with those
        that its client may send."""
        best: tuple[float, int, _Found, Plan] | None = None
        refused: Exception | None = None
        tried: set[Params] = set()
        for self._own_keys in _ROOM_FOR:
            try:
                found = self._cheapest(bits)
                if found.params in tried:
                    continue
                tried.add(found.params)
                plan = self._tried(found)
            except (Unsupported, InvalidArgument) as error:
                refused = refused or error
                continue
            cost = run_cost(plan.interpreter, plan.costs) + plan.composing
            if best is None or cost < best[0]:
                best = cost, self._own_keys, found, plan
        if best is None:
            assert refused is not None
            raise refused
        self._own_keys = best[1]
        return best[2], best[3]

    def _fewer_bits(self, found: _Found, enough: Plan) -> Plan | None:
        """A cheaper plan with less precise bootstrappings that are precise enough, if the first has
        bits to spare: more were asked for to begin with, or to have words of 32 bits."""
        spare = -missing_bits(enough, self._needed) - FINE
        if spare < _SPARE or self.insecure_ring is not None:
            return None
        bits = found.bits - spare
        for _ in range(_CLOSER):
            with contextlib.suppress(Unsupported, RangeExceeded):
                fewer = self._cheapest(bits, found)
                if fewer.cost >= found.cost or fewer.costs.unit != found.costs.unit:
                    return None
                plan = self._tried(fewer)
                missing = missing_bits(plan, self._needed)
                if missing <= 0:
                    return plan
                bits = fewer.bits + missing + MARGIN
                if bits < found.bits:
                    continue
            return None
        return None
