"""The scales of loops: what enters a loop has the scale that its body expects, and a state has one scale in all iterations.

A loop's states, sequences and collected arrays have centre 0. The radius of a state is at least the largest number that it holds in any iteration. If
the body returns a multiple of an array that is larger in its own scale, the state takes that scale: nothing is multiplied then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jali.nn.graph import Array, Graph, Node
from jali.nn.loop_graph import factor_of, inputs_at, parts_of, sizes_of

__all__ = ["LoopRadii", "fixed_by_loops", "inputs_at_start", "multiplies", "settled"]

_EQUAL = 1e-9
_MOST_GROWTH = 4.0  # of the radius of a sum; every doubling costs a bit of precision


@dataclass(frozen=True)
class LoopRadii:
    """The radius of each output of the body, states first, and of each sequence. kept: of nodes in the body that a state repeats. given: of nodes around the loop,
    of which the first states are made.
    """

    outputs: tuple[float, ...]
    sequences: tuple[float, ...]
    kept: Mapping[str, float] = field(default_factory=dict)
    given: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, node: Node) -> LoopRadii:
        """From the ranges of a calibrated loop."""
        body, states = node.attrs["body"], node.attrs["states"]
        outputs = [body[name] for name in body.outputs]
        radii = list(map(_radius, outputs))
        for k, port in enumerate(body.inputs[:states]):
            radii[k] = max(radii[k], _radius(port))
        sequences = body.inputs[states : states + node.attrs["sequences"]]
        return cls(tuple(radii), tuple(map(_radius, sequences)))

    def of_body(self, body: Graph) -> dict[str, float]:
        """The radii that nodes of the body must have."""
        return {**self.kept, **dict(zip(body.outputs, self.outputs, strict=True))}

    def of_result(self, node: Node) -> Array | float:
        """The radius of the loop's result, or of each of its numbers."""
        if len(self.outputs) == 1:
            return self.outputs[0]
        return np.repeat([self.outputs[k] for k, _ in parts_of(node.attrs)], sizes_of(node.attrs))


def fixed_by_loops(graph: Graph, radii: dict[str, LoopRadii], path: str) -> dict[str, float]:
    """The radii of the nodes that loops of the graph take. Loops that are not in `radii` yet are added, by path and name."""
    fixed: dict[str, float] = {}
    for node in graph:
        if node.op == "loop":
            mine = radii.setdefault(path + node.name, LoopRadii.of(node))
            count = node.attrs["count"]
            states = mine.outputs[: node.attrs["states"]]
            each = [*states, *(r for r in mine.sequences for _ in range(count))]
            fixed |= {**mine.given, **dict(zip(node.inputs, each, strict=False))}
    return fixed


def inputs_at_start(node: Node, inputs: Sequence[Node]) -> list[Node]:
    """What the body takes in the first iteration."""
    return [*inputs[: node.attrs["states"]], *(inputs[k] for k in inputs_at(node, 0))]


def settled(
    made: Graph, radii: Mapping[str, LoopRadii], path: str = "", *, sums: bool = True
) -> dict[str, LoopRadii]:
    """Radii with which fewer states have to be multiplied, for a graph that was made with `radii`. sums: also fewer arrays of sums in bodies."""
    found = dict(radii)
    for node in made:
        if node.op != "loop":
            continue
        body, mine = node.attrs["body"], found[path + node.name]
        found = settled(body, found, f"{path}{node.name}.", sums=sums)
        outputs, kept = list(mine.outputs), dict(mine.kept)
        for k, name in enumerate(body.outputs):
            output = body[name]
            factor = _only_factor(output)
            if factor is None or abs(factor - 1) < _EQUAL:
                continue
            if factor > 1:
                outputs[k] *= factor
            else:
                kept |= _widened(body, output.inputs[0], 1 / factor)
        for alike in _sums(body) if sums else ():
            kept, outputs = _equalled(body, alike, kept, outputs)
        given = dict(mine.given)
        for name in node.inputs[: node.attrs["states"]]:
            factor = _only_factor(made[name])
            if factor is not None and factor < 1 - _EQUAL:
                given |= _widened(made, made[name].inputs[0], 1 / factor)
        found[path + node.name] = replace(mine, outputs=tuple(outputs), kept=kept, given=given)
    return found


def _widened(body: Graph, name: str, factor: float) -> dict[str, float]:
    """Radii of nodes that make the radius of a node larger by a factor; none if it cannot be chosen."""
    node = body[name]
    if node.op == "affine" or node.attrs.get("free"):
        return {name: float(node.attrs["radius"]) * factor}
    if node.op != "multiply":
        return {}
    first, second = node.inputs
    if first == second:
        return _widened(body, first, factor**0.5)
    return _widened(body, first, factor) or _widened(body, second, factor)


def multiplies(made: Graph) -> bool:
    """Whether a sum in a loop multiplies an array, which takes a level."""
    bodies = [node.attrs["body"] for node in made if node.op == "loop"]
    return any(
        multiplies(body)
        or any(not m.is_identity for alike in _sums(body) for n in alike for m in n.attrs["maps"])
        for body in bodies
    )


def _sums(body: Graph) -> list[list[Node]]:
    """The sums of multiples of whole arrays, and arrays with a constant added: those of the same multiples together."""
    found: dict[tuple[object, ...], list[Node]] = {}
    for node in body:
        if node.op == "affine" and (len(node.inputs) > 1 or np.any(node.attrs["bias"])):
            own = float(np.max(node.attrs["radius"]))
            factors = [factor_of(single) for single in node.attrs["maps"]]
            if all(f is not None and f > 0 for f in factors) and not np.ndim(node.attrs["radius"]):
                gains = [round(f * own, 12) for f in factors if f is not None]
                found.setdefault((node.inputs, *gains), []).append(node)
    return list(found.values())


def _equalled(
    body: Graph, sums: Sequence[Node], kept: Mapping[str, float], outputs: Sequence[float]
) -> tuple[dict[str, float], list[float]]:
    """Radii of nodes and of outputs of a body, with which sums of the same arrays multiply none of them. They are as they were if some array cannot
    be given its radius."""
    found, states = dict(kept), list(outputs)
    names = {node.name for node in sums}
    places = [k for k, name in enumerate(body.outputs) if name in names]
    radius = max([_largest(node) for node in sums] + [outputs[k] for k in places])
    radius = max([radius, *(kept[name] for name in names & kept.keys())])
    most, first = _MOST_GROWTH * radius, sums[0]
    own = float(first.attrs["radius"])
    gains = [(factor_of(single) or 0.0) * own for single in first.attrs["maps"]]
    ways = [_widened(body, name, 1.0) for name in first.inputs]
    for name, gain, way in zip(first.inputs, gains, ways, strict=True):
        chosen = all(name in kept and _is_near(body[name], kept[name]) for name in way)
        least = {name: _largest(body[name]) for name in way}
        less = _widened(body, name, min(1.0, radius / gain))
        fits = all(less[name] >= least[name] * (1 - _EQUAL) for name in less)
        if not way or not chosen or not fits:  # it can only grow, if at all
            radius = max(radius, gain)
    if radius > most:
        return dict(kept), list(outputs)
    for name, gain, way in zip(first.inputs, gains, ways, strict=True):
        if abs(radius / gain - 1) > _EQUAL:
            if not way:
                return dict(kept), list(outputs)
            found |= _widened(body, name, radius / gain)
    for node in sums:
        if node.name not in body.outputs:
            found[node.name] = radius
    for k in places:
        states[k] = radius
    return found, states


def _is_near(node: Node, radius: float) -> bool:
    """Whether it has the radius that was chosen for it."""
    return abs(float(np.max(node.attrs["radius"])) / radius - 1) < _EQUAL


def _largest(node: Node) -> float:
    """The largest number of an array, in the model's units."""
    attrs = node.attrs
    ends = (float(attrs["radius"]) * attrs[k] + attrs["centre"] for k in ("low", "high"))
    return max(abs(float(end)) for end in ends)


def _only_factor(node: Node) -> float | None:
    """The positive number of which the node is the multiple of its only source; None if it is something else."""
    if node.op != "affine" or len(node.inputs) != 1 or np.any(node.attrs["bias"]):
        return None
    factor = factor_of(node.attrs["maps"][0])
    return factor if factor is not None and factor > 0 else None


def _radius(node: Node) -> float:
    return float(
        max(np.max(np.abs(node.attrs["low"])), np.max(np.abs(node.attrs["high"])), 2.0**-40)
    )
