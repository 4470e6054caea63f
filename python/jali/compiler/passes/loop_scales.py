"""The scales of loops: what enters a loop has the scale that its body expects, and a state has one
scale in all iterations.

A loop's states, sequences and collected arrays have centre 0. The radius of a state is at least the
largest number that it holds in any iteration. If the body returns a multiple of an array that is
larger in its own scale, the state takes that scale: nothing is multiplied then.

In: a calibrated graph, or one that was approximated with some radii. Out: the radii of its loops.

>>> examples = np.linspace(-1, 1, 20).reshape(10, 2)
>>> graph = nn.trace(lambda x: nn.loop(lambda h: 0.5 * h * h, x, count=3), examples[0])
>>> ranged = calibrate(fold(graph), [examples], margin=0.0)
>>> LoopRadii.of(ranged[ranged.outputs[0]]).outputs
(1.0,)
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jali.compiler.ir.folded_ops import Affine
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.loop_graph import (
    MOST_WHOLE,
    Loop,
    factor_of,
    inputs_at,
    is_whole,
    multiple_of,
)
from jali.compiler.ir.traced_ops import Multiply

__all__ = ["LoopRadii", "better_radii", "fixed_by_loops", "inputs_at_start", "multiplies"]

_EQUAL = 1e-9


@dataclass(frozen=True)
class LoopRadii:
    """The radius of each output of the body, states first, and of each sequence.

    kept: of nodes in the body that a state repeats.
    given: of nodes around the loop, of which the first states are made.
    """

    outputs: tuple[float, ...]
    sequences: tuple[float, ...]
    kept: Mapping[str, float] = field(default_factory=dict)
    given: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, node: Node) -> LoopRadii:
        """From the ranges of a calibrated loop."""
        loop = Loop.of(node)
        body, states = loop.body, loop.states
        outputs = [body[name] for name in body.outputs]
        radii = list(map(_radius, outputs))
        for k, port in enumerate(body.inputs[:states]):
            radii[k] = max(radii[k], _radius(port))
        sequences = body.inputs[states : states + loop.sequences]
        return cls(tuple(radii), tuple(map(_radius, sequences)))

    def of_body(self, body: Graph) -> dict[str, float]:
        """The radii that nodes of the body must have."""
        return {**self.kept, **dict(zip(body.outputs, self.outputs, strict=True))}

    def of_result(self, node: Node) -> Array | float:
        """The radius of the loop's result, or of each of its numbers."""
        if len(self.outputs) == 1:
            return self.outputs[0]
        loop = Loop.of(node)
        return np.repeat([self.outputs[k] for k, _ in loop.parts], loop.sizes)


def fixed_by_loops(graph: Graph, radii: dict[str, LoopRadii], path: str) -> dict[str, float]:
    """The radii of the nodes that loops of the graph take. Loops that are not in `radii` yet are
    added, by path and name."""
    fixed: dict[str, float] = {}
    for node in graph:
        if isinstance(node.operation, Loop):
            mine = radii.setdefault(path + node.name, LoopRadii.of(node))
            loop = node.operation
            states = mine.outputs[: loop.states]
            each = [*states, *(r for r in mine.sequences for _ in range(loop.count))]
            fixed |= {**mine.given, **dict(zip(node.inputs, each, strict=False))}
    return fixed


def inputs_at_start(node: Node, inputs: Sequence[Node]) -> list[Node]:
    """What the body takes in the first iteration."""
    return [*inputs[: Loop.of(node).states], *(inputs[k] for k in inputs_at(node, 0))]


def better_radii(
    made: Graph, radii: Mapping[str, LoopRadii], path: str = "", *, sums: bool = True
) -> dict[str, LoopRadii]:
    """Radii with which fewer states have to be multiplied, for a graph that was made with `radii`.

    sums: also fewer arrays of sums in bodies.
    """
    found = dict(radii)
    for node in made:
        loop = node.operation
        if not isinstance(loop, Loop):
            continue
        body, mine = loop.body, found[path + node.name]
        found = better_radii(body, found, f"{path}{node.name}.", sums=sums)
        outputs, kept = list(mine.outputs), dict(mine.kept)
        free = _free_states(body, loop.states) if sums else []
        chosen = [k for k, port in enumerate(body.inputs) if port.name in free]
        for k, name in enumerate(body.outputs):
            output = body[name]
            factor = _only_factor(output)
            if factor is None or abs(factor - 1) < _EQUAL:
                continue
            source = output.inputs[0]
            if (
                factor > 1
                and k in chosen
                and source in kept
                and outputs[k] >= _largest(body[source])
            ):
                kept[source] = outputs[k]  # the radius that those who take the state asked for
            elif factor > 1:
                outputs[k] *= factor
            else:
                kept |= _with_larger_radii(body, output.inputs[0], 1 / factor)
        alikes = _sums(body) if sums else []
        rigid = {one.name for alike in alikes for one in alike.nodes}
        for alike in alikes:
            kept, outputs = _equalled(body, alike, kept, outputs, free, rigid)
        given = dict(mine.given)
        for name in node.inputs[: loop.states]:
            factor = _only_factor(made[name])
            if factor is not None and factor < 1 - _EQUAL:
                given |= _with_larger_radii(made, made[name].inputs[0], 1 / factor)
        found[path + node.name] = replace(mine, outputs=tuple(outputs), kept=kept, given=given)
    return found


def _with_larger_radii(
    body: Graph, name: str, factor: float, states: Collection[str] = ()
) -> dict[str, float]:
    """Radii of nodes that make the radius of a node larger by a factor; none if it cannot be
    chosen.

    states: ports of the body whose radius can be.
    """
    node = body[name]
    if name in states or isinstance(node.operation, Affine) or node.scaling.free:
        return {name: float(node.scaling.radius) * factor}
    if not isinstance(node.operation, Multiply):
        return {}
    first, second = node.inputs
    if _base(body, first) == _base(body, second):
        return _with_larger_radii(body, first, factor**0.5, states)
    return _with_larger_radii(body, first, factor, states) or _with_larger_radii(
        body, second, factor, states
    )


def _base(body: Graph, name: str) -> str:
    """The array that has the radius of a node, because this is a multiple of it, with or without a
    constant."""
    node = body[name]
    if len(node.inputs) != 1 or not isinstance(node.operation, Affine):
        return name
    if multiple_of(node.operation.maps[0]) is None:
        return name
    return _base(body, node.inputs[0])


def multiplies(made: Graph) -> bool:
    """Whether a sum in a loop multiplies one of its arrays, which takes a level."""
    bodies = [loop.body for node in made if isinstance(loop := node.operation, Loop)]
    return any(
        multiplies(body)
        or any(not _is_multiple(gain, _own(alike)) for alike in _sums(body) for gain in alike.gains)
        for body in bodies
    )


@dataclass(frozen=True)
class _Sum:
    """Nodes that are the sum of multiples of the same arrays, each as it is or with its numbers
    moved round, beside what matrices add.

    gains: the radius of the sum with which an array would be multiplied by 1.
    """

    nodes: list[Node]
    inputs: tuple[str, ...]
    gains: tuple[float, ...]


def _own(alike: _Sum) -> float:
    return float(alike.nodes[0].scaling.radius)


def _sums(body: Graph) -> list[_Sum]:
    """The sums of multiples of whole arrays, and arrays with a constant added: those of the same
    multiples together. What matrices multiply takes a level anyway, and is no part of them."""
    found: dict[tuple[object, ...], _Sum] = {}
    for node in body:
        affine = node.operation
        if not isinstance(affine, Affine) or np.ndim(node.scaling.radius):
            continue
        if len(node.inputs) < 2 and not np.any(affine.bias):
            continue
        own = float(node.scaling.radius)
        factors = {name: multiple_of(m) for name, m in zip(node.inputs, affine.maps, strict=True)}
        light = {name: f for name, f in factors.items() if f is not None}
        if len(light) < len(factors):
            light = {name: f for name, f in light.items() if _with_larger_radii(body, name, 1.0)}
        if not light or min(light.values()) <= 0:
            continue
        gains = tuple(f * own for f in light.values())
        key = (*light, *(round(gain, 12) for gain in gains))
        found.setdefault(key, _Sum([], tuple(light), gains)).nodes.append(node)
    return list(found.values())


def _free_states(body: Graph, count: int) -> list[str]:
    """The states to which a matrix adds something, so that they may have any radius."""
    found = []
    for port, name in zip(body.inputs[:count], body.outputs, strict=False):
        base = body[_base(body, name)].operation
        heavy = isinstance(base, Affine) and any(multiple_of(m) is None for m in base.maps)
        found += [port.name] if heavy else []
    return found


def _is_multiple(gain: float, radius: float) -> bool:
    """Whether an array is multiplied by a whole number, which takes no level."""
    times = max(1.0, np.rint(gain / radius))
    return is_whole(times) and abs(gain / (times * radius) - 1) < _EQUAL


def _equalled(
    body: Graph,
    alike: _Sum,
    kept: Mapping[str, float],
    outputs: Sequence[float],
    free: Collection[str],
    rigid: Collection[str],
) -> tuple[dict[str, float], list[float]]:
    """Radii of nodes and of outputs of a body, with which sums of the same arrays multiply them by
    whole numbers. They are as they were if some array cannot be given its radius.

    free: states whose radius can be chosen.
    rigid: sums, whose radius other arrays follow.
    """
    found, states = dict(kept), list(outputs)
    ports = {port.name: k for k, port in enumerate(body.inputs) if port.name in free}
    now = {**kept, **{name: states[k] for name, k in ports.items()}}
    names = {node.name for node in alike.nodes}
    places = [k for k, name in enumerate(body.outputs) if name in names]
    asked = max([_largest(node) for node in alike.nodes] + [outputs[k] for k in places])
    asked = max([asked, *(kept[name] for name in names & kept.keys())])
    ways = [_with_larger_radii(body, name, 1.0, free) for name in alike.inputs]
    fixed = [g for g, way in zip(alike.gains, ways, strict=True) if not way or way.keys() & rigid]
    radius, largest = asked, max(fixed, default=0.0)
    if largest >= asked and not all(_is_multiple(gain, asked) for gain in fixed):
        radius = largest / min(MOST_WHOLE, math.floor(largest / asked * (1 + _EQUAL)))
    for name, gain, way in zip(alike.inputs, alike.gains, ways, strict=True):
        if _is_multiple(gain, radius):
            continue
        if not way:
            return dict(kept), list(outputs)
        # The smallest gain that the array's numbers allow for, if its radius was chosen, so that it
        # may be smaller.
        chosen = all(one in now and _is_near(body[one], now[one]) for one in way)
        share = max(_largest(body[one]) / size for one, size in way.items()) if chosen else 1.0
        power = 2 if _is_square(body, name) else 1
        smallest = gain * min(1.0, share) ** power if not way.keys() & rigid else gain
        times = max(1, math.ceil(smallest / radius * (1 - _EQUAL)))
        if times > MOST_WHOLE:
            return dict(kept), list(outputs)
        found |= _with_larger_radii(body, name, times * radius / gain, free)
    for name, k in ports.items():
        states[k] = found.pop(name, states[k])
    for node in alike.nodes:
        if node.name not in body.outputs:
            found[node.name] = radius
    for k in places:
        states[k] = radius
    return found, states


def _is_square(body: Graph, name: str) -> bool:
    """Whether both factors of a product have the radius of one array."""
    node = body[name]
    if not isinstance(node.operation, Multiply):
        return False
    return _base(body, node.inputs[0]) == _base(body, node.inputs[1])


def _is_near(node: Node, radius: float) -> bool:
    """Whether a node has the radius that was chosen for it."""
    return abs(float(np.max(node.scaling.radius)) / radius - 1) < _EQUAL


def _largest(node: Node) -> float:
    """The largest number of an array, in the model's units."""
    scaling = node.scaling
    ends = (float(scaling.radius) * end + scaling.centre for end in (scaling.low, scaling.high))
    return max(abs(float(end)) for end in ends)


def _only_factor(node: Node) -> float | None:
    """The positive number of which the node is the multiple of its only source; None if it is
    something else."""
    affine = node.operation
    if not isinstance(affine, Affine) or len(node.inputs) != 1 or np.any(affine.bias):
        return None
    factor = factor_of(affine.maps[0])
    return factor if factor is not None and factor > 0 else None


def _radius(node: Node) -> float:
    return float(max(np.max(np.abs(node.range.low)), np.max(np.abs(node.range.high)), 2.0**-40))
