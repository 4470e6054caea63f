"""A picture of a plan: the level of every array from the first to the last, its bootstraps, and
what each step costs."""

from __future__ import annotations

import os
from typing import Any

from jali._core import checks, packages
from jali._core.console import counted_text
from jali._core.files import save_figure
from jali.ckks import Params
from jali.compiler.cost.costs import Costs
from jali.compiler.ir.folded_ops import Bootstrap
from jali.compiler.ir.graph import Graph
from jali.compiler.passes.levels import levels_taken
from jali.compiler.planning.node_costs import cost_at_level
from jali.errors import InvalidArgument, Unsupported, WrongCall

__all__ = ["check_path", "no_matplotlib", "plotted"]

_ENDINGS = (".png", ".svg", ".pdf")
_SHOWN = 60  # names beyond so many would overlap


def check_path(path: str | os.PathLike[str] | None) -> None:
    """Raises InvalidArgument unless a picture can be saved by this name; None is no name."""
    if path is not None and not isinstance(path, (str, os.PathLike)):
        raise WrongCall(f"path is where the picture is saved, or None, not {checks.shown(path)}")
    if path is not None and not os.fspath(path).endswith(_ENDINGS):
        raise InvalidArgument(
            f"{os.fspath(path)}: a picture's name ends with {', '.join(_ENDINGS)}"
        )


def no_matplotlib() -> Unsupported:
    """The error of a picture without matplotlib."""
    return Unsupported(f"plots need matplotlib: {packages.install('matplotlib')}")


def plotted(
    graph: Graph, params: Params, costs: Costs, path: str | os.PathLike[str] | None = None
) -> Any:
    """The figure of a graph with levels; see Program.plot."""
    check_path(path)
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import EngFormatter
    except ImportError:
        raise no_matplotlib() from None
    place = {node.name: k for k, node in enumerate(graph)}
    figure = Figure(figsize=(max(6.0, min(24.0, 0.35 * len(graph))), 6.0), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    for node in graph:
        for k, name in enumerate(node.inputs):
            start, end = graph[name].level, node.level
            ends = ([place[name], place[node.name]], [start, end])
            if isinstance(node.operation, Bootstrap):
                above.plot(*ends, color="tab:red", linewidth=2)
            else:
                above.plot(*ends, color="tab:blue" if levels_taken(node, k) else "0.7", linewidth=1)
    restored = [node for node in graph if isinstance(node.operation, Bootstrap)]
    others = [node for node in graph if not isinstance(node.operation, Bootstrap)]
    for nodes, colour, label in (
        (others, "tab:blue", "array"),
        (restored, "tab:red", "bootstrapped"),
    ):
        where = [place[node.name] for node in nodes]
        above.plot(where, [n.level for n in nodes], "o", color=colour, markersize=4, label=label)
        spent = [cost_of(graph, node.name, costs) for node in nodes]
        below.bar(where, spent, color=colour)
    if params.bootstraps:
        due = params.bootstrap_level
        above.axhline(due, color="0.5", linestyle=":", label=f"bootstrapping from level {due} on")
    above.set_ylabel("level")
    above.set_ylim(-0.5, params.depth + 0.5)
    above.legend(fontsize=8)
    below.set_ylabel(f"cost, {costs.unit}")
    below.yaxis.set_major_formatter(EngFormatter())  # 2 G instead of 2, far from its 1e9
    if len(graph) <= _SHOWN:
        below.set_xticks(range(len(graph)), [n.name for n in graph], rotation=90, fontsize=7)
    verb = "is" if len(restored) == 1 else "are"
    figure.suptitle(
        f"{counted_text(len(restored), 'array')} {verb} bootstrapped\n{params!r}", fontsize=9
    )
    if path is not None:
        save_figure(figure, path, dpi=120)
    return figure


def cost_of(graph: Graph, name: str, costs: Costs) -> int:
    """What a node of a graph with levels costs."""
    return cost_at_level(costs, graph[name])
