"""The stages of the compiler between approximation and parameters: layouts, lowered graphs and levels."""

from __future__ import annotations

from jali.nn.amplify import amplified
from jali.nn.choose import laid_out, lay_out
from jali.nn.graph import Graph
from jali.nn.layout import Layout
from jali.nn.levels import Levels, levelled, lowest
from jali.nn.lower import lower
from jali.nn.passed import taken_apart
from jali.nn.progress import Progress
from jali.nn.unroll import has_loops, shortened, unrolled
from jali.nn.weights import Weights

__all__ = ["STAGE", "lowered"]

STAGE = 1 / 8  # part of what is left to do that a stage takes


def lowered(
    graph: Graph,
    slots: int,
    weights: Weights,
    levels: Levels | None = None,
    *,
    bootstraps: bool = False,
    apart: bool = True,
    known: dict[int, dict[str, Layout]] | None = None,
    progress: Progress | None = None,
) -> dict[str, Graph]:
    """The stages after approximation, for lanes of this many slots. weights: by which layouts are chosen. levels: None stands for the lowest, without
    bootstrapping. bootstraps: whether arrays may be bootstrapped. apart: whether sums in loops may be taken apart; see jali.nn.passed. known: by the number of slots, the
    layouts that were chosen for this graph before, and will be; they depend neither on bootstraps nor on apart, as amplification moves no number."""
    if not bootstraps and not has_loops(graph):
        graph = amplified(graph)
    told = progress or Progress()
    told.some("layout", STAGE)
    laid = shortened(graph)
    if known is not None and slots in known:
        laid = laid_out(laid, known[slots])
    else:
        laid = lay_out(laid, slots, weights)
    if known is not None:
        known[slots] = {node.name: node.attrs["layout"] for node in laid}
    if has_loops(graph):
        layouts = {node.attrs["like"]: node.attrs["layout"] for node in laid}
        flat = unrolled(graph)
        nodes = (n.with_attrs(layout=layouts[n.attrs["like"]]) for n in flat)
        laid = Graph(tuple(nodes), flat.outputs, "layout")
    told.some("lower", STAGE)
    low = lower(taken_apart(laid) if apart and has_loops(graph) else laid, weights)
    return {"layout": laid, "lower": low, "levels": levelled(low, levels or lowest(low))}
