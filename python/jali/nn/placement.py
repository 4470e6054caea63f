"""Levels and bootstraps of a lowered graph: which arrays may be bootstrapped, what everything costs, and the cheapest plan."""

from __future__ import annotations

from jali.ckks import Params
from jali.errors import InvalidArgument, Unsupported
from jali.nn.bootstraps import Placement, Problem, Stage, placed
from jali.nn.costs import Costs
from jali.nn.graph import Graph, Node
from jali.nn.levels import Levels, taken
from jali.nn.run import peak

__all__ = ["best_levels", "problem_of", "refusal", "verify"]

_LARGEST = (
    1 + 2.0**-6
)  # the modulus of a number that is bootstrapped; approximations leave [-1, 1] by their error


def refusal(node: Node, most: float) -> str:
    """Why an array must not be bootstrapped; "" if it may. most: bootstrap_max_magnitude of the parameters.

    Bootstrapping is as precise as its parameters promise for numbers of modulus up to 1. Slots between the numbers lose precision, which
    nobody needs, but must not leave the range in which the modular reduction works.
    """
    if node.op in ("input", "bootstrap"):
        return f"{node.name} is an {node.op}"
    if node.attrs["layout"].partial:
        return (
            f"slots between the numbers of {node.name} hold parts of sums, whose size nobody knows"
        )
    largest, between = peak(node), float(node.attrs.get("most", 1.0))
    if largest > _LARGEST:
        return f"numbers of {node.name} may be as large as {largest:.3g}, and bootstrapping takes numbers up to 1"
    if between > most:
        return (
            f"slots between the numbers of {node.name} may hold {between:.3g}, and these parameters bootstrap "
            f"{most:.3g}"
        )
    return ""


def problem_of(graph: Graph, params: Params, costs: Costs) -> Problem:
    """The abstract problem of a lowered graph."""
    stages, most = [], params.bootstrap_max_magnitude
    for node in graph:
        inputs = tuple((name, taken(node, k)) for k, name in enumerate(node.inputs))
        may = params.bootstraps and graph.users(node.name) and not refusal(node, most)
        restored = costs.restored(node.attrs["layout"].ciphertexts) if may else ()
        stages.append(Stage(node.name, inputs, costs.of(node), restored))
    due = params.bootstrap_level if params.bootstraps else params.depth + 1
    return Problem(tuple(stages), params.depth, due)


def verify(graph: Graph, params: Params) -> None:
    """Raises InvalidArgument if the bootstraps of a graph with levels are not those that parameters can do."""
    for node in graph:
        if node.op == "bootstrap":
            source = graph[node.inputs[0]]
            refused = refusal(source, params.bootstrap_max_magnitude)
            due = params.bootstrap_level if params.bootstraps else params.depth + 1
            if refused or source.attrs["level"] < due:
                raise InvalidArgument(refused or f"{source.name} is bootstrapped below level {due}")


def best_levels(graph: Graph, params: Params, costs: Costs) -> tuple[Levels, Placement]:
    """The cheapest levels and bootstraps. Raises Unsupported, which names what is too deep, if there are none."""
    plan = placed(problem_of(graph, params, costs))
    if plan is not None:
        return Levels(plan.levels, plan.restored), plan
    between = params.depth - params.bootstrap_level
    deep = max(graph, key=lambda n: max((taken(n, k) for k in range(len(n.inputs))), default=0))
    most = params.bootstrap_max_magnitude
    refused = [why for node in graph if (why := refusal(node, most)) and node.op != "input"]
    raise Unsupported(
        f"{between} levels lie between two bootstrappings, and no plan gets along with them. Most of a single operation, "
        f"{taken(deep)}, go to {deep.name} ({deep.attrs.get('by', deep.op)}). {' '.join(refused[:2])}"
    )
