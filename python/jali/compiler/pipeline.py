"""The pipeline: all passes of the compiler, in the order in which they run. A pass is a function
from graph to graph.

| stage | passes |
|---|---|
| trace | `frontends`: the model as a graph |
| simplify | `passes.simplify`: operations that become cheaper ones, or nothing, such as clamps that never act (`passes.inactive_clamps`) |
| fold | `passes.fold`: neighbouring linear operations become one matrix |
| calibrate | `passes.calibrate`: between which numbers every array lies |
| approximate | `passes.approximate`: functions become polynomials on [-1, 1], and arrays get their scales |
| layout | `passes.amplify`, if nothing bootstraps and there are no loops; `passes.unroll.two_iterations`; `layout.choose_layouts`: which slot holds which number; `passes.unroll.unrolled` |
| lower | `layout.scaled_sums`; `layout.lower`: matrices become diagonals |
| levels | `passes.levels`: the level of every array, as planning chooses it |

Up to approximate, they know no parameters and run once (`Calibrated.of`) or once for each precision
that is tried (`Calibrated.approximated`). The rest, `lowered`, depends on the number of slots, and
`jali.compiler.planning` runs it for all parameters that it compares. `jali.compiler.driver` calls
both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jali import ckks
from jali.compiler.cost.layout_costs import LayoutCosts
from jali.compiler.ir.execute import seen_values
from jali.compiler.ir.graph import Array, Graph
from jali.compiler.ir.layouts import Layout
from jali.compiler.ir.loop_graph import has_loops
from jali.compiler.layout.choose_layouts import laid_out, lay_out
from jali.compiler.layout.lower import lower
from jali.compiler.layout.scaled_sums import inlined_sums
from jali.compiler.noise.element_noise import Samples
from jali.compiler.passes.amplify import amplified
from jali.compiler.passes.approximate import approximate
from jali.compiler.passes.calibrate import calibrate, check_outputs
from jali.compiler.passes.function_errors import approximate_each
from jali.compiler.passes.levels import Levels, levelled, lowest
from jali.compiler.passes.simplify import Changes, simplified
from jali.compiler.passes.unroll import two_iterations, unrolled
from jali.compiler.progress import Progress
from jali.errors import InvalidArgument

__all__ = ["STAGE", "Calibrated", "lowered", "lowered_as"]

STAGE = 1 / 8  # part of what is left to do that a stage takes
_MEASURED = 256  # on at least so many examples, errors of approximations are measured
_NUMBERS = 1 << 23  # and on as many as have so many numbers in all arrays of the model together


@dataclass
class Calibrated:
    """A model with ranges for its arrays, and the examples on which errors are measured.

    results: of every output, for all examples.
    """

    stages: Mapping[str, Graph]
    changes: Changes
    chosen: Sequence[Array]
    outputs: Mapping[str, Array]
    results: Sequence[Array]
    samples: Samples

    def __post_init__(self) -> None:
        self._made: dict[float, tuple[Graph, float]] = {}

    @classmethod
    def of(
        cls,
        graph: Graph,
        examples: Sequence[Array],
        told: Progress,
        **how: Any,
    ) -> Calibrated:
        """Simplifies, folds and calibrates a traced graph.

        how: further arguments of calibrate.
        """
        exact = seen_values(graph, examples)
        of_outputs = {name: np.asarray(exact[name]) for name in graph.outputs}
        check_outputs(graph, of_outputs)
        told.at("calibrate", 0.06)
        changes, stages = simplified(
            graph,
            examples,
            exact,
            lambda folded, values, sides: calibrate(
                folded, examples, exact=values, sides=sides, **how
            ),
        )
        most = max(_MEASURED, _NUMBERS // sum(node.size for node in graph))
        some = np.linspace(0, len(examples[0]) - 1, min(len(examples[0]), most)).astype(int)
        chosen = [x[some] for x in examples]
        outputs = {
            name: of_outputs[before][some]  # folding leaves out reshapes, also of outputs
            for name, before in zip(stages["calibrate"].outputs, graph.outputs, strict=True)
        }
        # The values of other arrays, which may take gigabytes, are not kept.
        results = [of_outputs[name] for name in graph.outputs]
        samples = Samples(stages["simplify"], chosen)
        return cls({"trace": graph, **stages}, changes, chosen, outputs, results, samples)

    def approximated(self, bits: float) -> tuple[Graph, float]:
        """As approximate, for so many bits of precision."""
        if bits not in self._made:
            ranged, simple = self.stages["calibrate"], self.stages["simplify"]
            known: dict[str, Any] = {"traced": simple, "exact": self.outputs}
            try:
                self._made[bits] = approximate(ranged, self.chosen, bits, **known)
            except InvalidArgument as refused:
                try:
                    self._made[bits] = approximate_each(ranged, self.chosen, bits, **known)
                except InvalidArgument:
                    raise refused from None
        return self._made[bits]


def lowered(
    graph: Graph,
    slots: int,
    costs: LayoutCosts,
    levels: Levels | None = None,
    *,
    bootstraps: bool = False,
    inline: bool = True,
    known: dict[int, dict[str, Layout]] | None = None,
    progress: Progress | None = None,
) -> dict[str, Graph]:
    """The stages after approximation, for lanes of this many slots.

    costs: by which layouts are chosen.
    levels: None stands for the lowest, without bootstrapping.
    bootstraps: whether arrays may be bootstrapped.
    inline: whether sums in loops may be inlined; see jali.compiler.layout.scaled_sums.
    known: by the number of slots, the layouts that were chosen for this graph before, and will be;
        they depend neither on bootstraps nor on inline, as amplification moves no number.
    """
    loops = has_loops(graph)
    if not bootstraps and not loops:
        graph = amplified(graph)
    told = progress or Progress()
    told.some("layout", STAGE)
    laid = two_iterations(graph) if loops else graph
    if known is not None and slots in known:
        laid = laid_out(laid, known[slots])
    else:
        laid = lay_out(laid, slots, costs)
    if known is not None:
        known[slots] = {node.name: node.layout for node in laid}
    if loops:
        layouts = {node.origin.like: node.layout for node in laid}
        flat = unrolled(graph)
        nodes = (n.with_facts(layout=layouts[n.origin.like]) for n in flat)
        laid = Graph(tuple(nodes), flat.outputs, "layout")
    told.some("lower", STAGE)
    low = lower(inlined_sums(laid) if inline and loops else laid, costs)
    return {"layout": laid, "lower": low, "levels": levelled(low, levels or lowest(low))}


def lowered_as(
    graph: Graph, params: ckks.Params, lanes: int, costs: LayoutCosts, levels: Levels
) -> dict[str, Graph]:
    """The stages after approximation of the plan that these costs and levels belong to, in which
    sums are inlined or not. Raises InvalidArgument if they belong to neither."""
    kind = params.slots // lanes, costs, levels
    try:
        return lowered(graph, *kind, bootstraps=params.bootstraps)
    except InvalidArgument:
        if not has_loops(graph):
            raise
        return lowered(graph, *kind, bootstraps=params.bootstraps, inline=False)
