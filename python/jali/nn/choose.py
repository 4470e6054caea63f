"""The choice of layouts for a graph as a whole, by dynamic programming.

Functions and products keep the layout of what they take, and factors of a product have the same one, so arrays form groups that lie
alike. The nodes are passed in the order of computation. A state says how the groups lie that later nodes still use; of all
ways that lead to the same state, the cheapest is kept. Without the limit on the number of states the result would be
the cheapest choice among the candidates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jali.errors import InternalError
from jali.nn.axes import copied, repeated, rolled, summed, totalled, turned
from jali.nn.between import filled
from jali.nn.diagonals import gathered, phased, placed, sent, steps
from jali.nn.graph import Graph, Node
from jali.nn.layout import Gathered, Layout, Repeated, Shared, Skewed, fitted, skewed
from jali.nn.overlay import PRODUCT, price
from jali.nn.products import factors, spread, windowed
from jali.nn.sparse import SparseMap

__all__ = ["check_seen", "laid_out", "lay_out"]

_BLIND = ("affine", "transform", "multiply")  # operations that may take partial layouts
_GAPS = (1, 2, 4, 8)
_PHASES = (1, 2, 3, 4)
_MOST_GATHERED = 4  # ciphertexts that an input may take if it is gathered
_KEPT = 48  # states
_SAMPLED = 1 << 15  # entries of a matrix on which the search counts diagonals
# In units of a rotation:
_MULTIPLICATION = 1.5  # of two ciphertexts
_SENT = 1.0  # each ciphertext of an input beyond the first


def lay_out(graph: Graph, slots: int) -> Graph:
    """The graph; every node has the attribute layout, for ciphertexts of which a lane has this many slots."""
    return laid_out(graph, _Search(graph, slots).best())


def laid_out(graph: Graph, layouts: Mapping[str, Layout]) -> Graph:
    """The graph with these layouts of its nodes."""
    nodes = tuple(node.with_attrs(layout=layouts[node.name]) for node in graph)
    return check_seen(Graph(nodes, graph.outputs, "layout"))


def check_seen(graph: Graph) -> Graph:
    """The same graph, if nothing but matrices and products sees slots that hold parts of sums.

    Raises InternalError, which names the node, for a function, a bootstrap or an output that would.
    """
    for node in graph:
        for name in node.inputs:
            if node.op not in _BLIND and graph[name].attrs["layout"].partial:
                raise InternalError(
                    f"{node.name} ({node.op}) would see the slots between the numbers of {name}"
                )
    for name in graph.outputs:
        if graph[name].attrs["layout"].partial:
            raise InternalError(f"the client would see the slots between the numbers of {name}")
    return graph


@dataclass(frozen=True)
class _State:
    """cost: of all nodes that were passed. chosen: the layout of every group, by its root."""

    cost: float
    chosen: dict[str, Layout]


class _Search:
    def __init__(self, graph: Graph, slots: int) -> None:
        self._graph, self._slots = graph, slots
        self._roots = _groups(graph)
        self._structures: list[tuple[SparseMap, SparseMap]] = []  # matrices and samples of them
        self._numbers: dict[int, int] = {}  # of matrices, by their ids
        self._costs: dict[tuple[int, Layout, Layout, bool], float] = {}
        self._filled = filled(graph)
        self._product_costs: dict[tuple[object, ...], float] = {}
        members: dict[str, list[Node]] = {}
        for node in graph:
            members.setdefault(self._roots[node.name], []).append(node)
        self._members = members

    def best(self) -> dict[str, Layout]:
        """The layout of every node."""
        states = [_State(0.0, {})]
        last = {}  # the last node that needs to know how a group lies
        for k, node in enumerate(self._graph):
            for name in (node.name, *node.inputs):
                last[self._roots[name]] = k
        for k, node in enumerate(self._graph):
            found: dict[tuple[Layout, ...], _State] = {}
            times = node.attrs.get("times", 1)  # iterations of a loop for which it stands
            for state in states:
                for after in self._passed(node, state):
                    after = _State(state.cost + times * (after.cost - state.cost), after.chosen)
                    live = tuple(x for root, x in after.chosen.items() if last[root] > k)
                    if live not in found or after.cost < found[live].cost:
                        found[live] = after
            states = sorted(found.values(), key=lambda s: s.cost)[:_KEPT]
        chosen = states[0].chosen
        return {node.name: chosen[self._roots[node.name]] for node in self._graph}

    def _passed(self, node: Node, state: _State) -> Iterator[_State]:
        """The states behind a node."""
        root = self._roots[node.name]
        if node.op == "input":
            if self._taken(node.name) or root in state.chosen:
                yield state
                return
            layouts = [fitted(node.shape, self._slots)]
            if any(member.op == "multiply" for member in self._members[root]):
                layouts += filter(None, [skewed(node.shape, self._slots)])
            yield from (_State(state.cost, {**state.chosen, root: one}) for one in layouts)
            return
        if node.op == "products":
            sides = [state.chosen[self._roots[name]] for name in node.inputs]
            given = state.chosen.get(root)
            for target in [fitted(node.shape, self._slots)] if given is None else [given]:
                cost = state.cost + self._products(node, sides, target)
                yield _State(cost, {**state.chosen, root: target})
            return
        if node.op != "affine":
            products = node.attrs["by"].multiplications if "by" in node.attrs else 1
            work = products * state.chosen[root].ciphertexts
            yield _State(state.cost + _MULTIPLICATION * work, state.chosen)
            return
        maps = [self._structure(single) for single in node.attrs["maps"]]
        (first, *_), singles = node.inputs, node.attrs["maps"]
        ways: Iterator[tuple[dict[str, Layout], Layout]]
        if self._taken(first):
            ways = (
                ({**state.chosen, self._roots[first]: source}, target)
                for source, target in self._inputs(self._graph[first], node, singles[0])
                if state.chosen.get(root, target) == target
            )
        elif root in state.chosen:
            ways = iter([(state.chosen, state.chosen[root])])
        else:
            sources = [state.chosen[self._roots[name]] for name in node.inputs]
            ways = ((state.chosen, target) for target in self._targets(node, sources))
        for chosen, target in ways:
            cost = state.cost
            for name, number in zip(node.inputs, maps, strict=True):
                empty = name not in self._filled
                cost += self._cost(number, chosen[self._roots[name]], target, empty)
            yield _State(cost, {**chosen, root: target})

    def _products(self, node: Node, sources: Sequence[Layout], target: Layout) -> float:
        """What a product of matrices costs: as many factors as there are, each like the first one."""
        key = (node.name, *sources, target)
        if key not in self._product_costs:
            whole, windows = windowed(target)
            sizes = [self._graph[name].size for name in node.inputs]
            pair = next(factors(node.attrs, sizes, windows))
            each = sum(spread(m, x, whole).cost for m, x in zip(pair, sources, strict=True))
            count = -(-node.attrs["shapes"][0][-1] // windows)
            cost = count * (each + target.ciphertexts * _MULTIPLICATION / 4)
            self._product_costs[key] = cost + math.log2(windows)
        return self._product_costs[key]

    def _taken(self, name: str) -> bool:
        """Whether it is an input of which a single matrix is the only use, and which may therefore lie as that takes it."""
        users = self._graph.users(name)
        return (
            (
                self._graph[name].op == "input"
                and len(users) == len(users[0].inputs) == 1
                and users[0].op == "affine"
                and name not in self._graph.outputs
            )
            if users
            else False
        )

    def _inputs(
        self, source: Node, node: Node, single: SparseMap
    ) -> Iterator[tuple[Layout, Layout]]:
        """Layouts of an input and of its only matrix's result."""
        plain = fitted(source.shape, self._slots)
        targets = list(self._targets(node, [plain]))
        for target in targets:
            yield plain, target
            if (
                isinstance(target, (Repeated, Shared)) or target.ciphertexts > 1
            ):  # copies are not gathered
                continue
            made = gathered(single, source.shape, target, _MOST_GATHERED)
            if made is not None:
                yield made, target
            if plain.ciphertexts == 1:
                for shares in _powers(2, plain.period):
                    chunk = plain.period // shares
                    block = self._slots // shares
                    if chunk <= min(block, target.period):
                        whole = Shared(
                            source.shape,
                            self._slots,
                            self._slots,
                            1,
                            plain.grid,
                            block,
                            chunk,
                            chunk,
                        )
                        yield sent(whole), target
        for stride in _PHASES:
            grid = tuple(-(-n // stride) for n in source.shape[1:])
            fits = len(source.shape) == len(node.shape) > 1
            if fits and all(n <= m for n, m in zip(node.shape[1:], grid, strict=True)):
                target = fitted(node.shape, self._slots, 1, grid, node.shape[0] * math.prod(grid))
                made = phased(source.shape, stride, target, _MOST_GATHERED)
                if made is not None:
                    yield made, target

    def _targets(self, node: Node, sources: Sequence[Layout]) -> Iterator[Layout]:
        """Layouts that the result of matrices may have: dense or spread on the grid of a source, with several periods; and in shares."""
        slots = self._slots
        forms = {fitted(node.shape, slots)}
        for source in sources:
            if len(node.shape) > 1 and len(source.grid) == len(node.shape) - 1:
                for gap in _GAPS:
                    if all(n * gap <= m for n, m in zip(node.shape[1:], source.grid, strict=True)):
                        forms.add(fitted(node.shape, slots, gap, source.grid))
        yield from repeated(node, sources, [name not in self._filled for name in node.inputs])
        largest = max(source.period for source in sources)
        alike = {(type(s), s.period, s.ciphertexts) for s in sources} == {(Layout, largest, 1)}
        members = self._members[self._roots[node.name]]
        hidden = all(
            n.op in _BLIND
            and n.name not in self._graph.outputs
            and all(user.op in _BLIND for user in self._graph.users(n.name))
            for n in members
        )
        shown = any(n.name in self._graph.outputs for n in members)
        for form in sorted(forms, key=lambda f: (f.gap, f.grid, f.period)):
            yield form
            for period in _powers(2 * form.period, largest):
                yield Layout(form.shape, slots, period, form.gap, form.grid)
            if alike and form.ciphertexts == 1 and not shown:
                for shares in _powers(2, slots // largest):
                    chunk = max(1, form.period // shares)
                    # A number has not more copies than blocks. If chunks fill what they have, nothing else lies there.
                    least = max(chunk, largest // shares)
                    for every in _powers(least, largest) if chunk < largest else ():
                        if hidden or every == chunk:
                            yield Shared(
                                form.shape,
                                slots,
                                shares * largest,
                                form.gap,
                                form.grid,
                                largest,
                                chunk,
                                every,
                            )

    def _structure(self, single: SparseMap) -> int:
        """The number of a matrix among those whose entries lie in different places."""
        if id(single) not in self._numbers:  # the graph keeps the matrices alive, and their ids
            self._numbers[id(single)] = self._number(single)
        return self._numbers[id(single)]

    def _number(self, single: SparseMap) -> int:
        for number, (other, _) in enumerate(self._structures):
            if single.has_places_of(other):
                return number
        self._structures.append((single, single.sample(_SAMPLED)))
        return len(self._structures) - 1

    def _cost(self, number: int, source: Layout, target: Layout, empty: bool) -> float:
        """What a matrix costs between two layouts. empty: whether the source holds zeros between its numbers."""
        key = (number, source, target, empty)
        if key not in self._costs:
            single, sample = self._structures[number]
            if (source == target and single.is_diagonal) or copied(single, source, target):
                self._costs[key] = 0.0
                return 0.0
            if turned(single, source, target):
                assert isinstance(target, Skewed)
                self._costs[key] = target.count - 1
                return self._costs[key]
            if rolled(single, source, target):
                self._costs[key] = 1.0
                return 1.0
            if isinstance(source, Skewed) and totalled(single, source, target, empty) is not None:
                self._costs[key] = source.count - 1 + math.log2(source.slots // target.period)
                return self._costs[key]
            if isinstance(target, Repeated) and summed(single, source, target, empty) is not None:
                each = 2 * math.log2(target.width) + PRODUCT
                self._costs[key] = target.ciphertexts * each
                return self._costs[key]
            counts = [1] * source.ciphertexts
            if not isinstance(source, Gathered) or source.places is not None or source.like:
                counts = placed(sample, source, target).counts
            copies = target.slots // max(source.period, target.period)
            rotations = price(counts, 0 if source.partial else copies)
            if isinstance(source, Skewed) or isinstance(target, Skewed):
                rotations = float(
                    sum(counts)
                )  # each ciphertext has others, of which few share a ModUp
            rotations += target.ciphertexts * len(steps(source, target))
            if isinstance(source, Gathered):
                rotations += _SENT * (source.ciphertexts - 1)
            self._costs[key] = rotations
        return self._costs[key]


def _powers(first: int, last: int) -> Iterator[int]:
    """first, 2 first, .., as long as they are at most `last`."""
    while first <= last:
        yield first
        first *= 2


def _groups(graph: Graph) -> dict[str, str]:
    """For each node, one of those that must lie as it does."""
    parent = {node.name: node.name for node in graph}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    first: dict[str, str] = {}
    for node in graph:
        if node.op not in ("affine", "input", "products"):
            for name in node.inputs:
                parent[root(name)] = root(node.name)
        if "alike" in node.attrs:  # a loop's state lies alike in all iterations
            parent[root(node.name)] = root(first.setdefault(node.attrs["alike"], node.name))
            if len(node.inputs) == 1 and node.attrs["maps"][0].is_identity:  # it then costs nothing
                parent[root(node.inputs[0])] = root(node.name)
        sums = node.op == "affine" and len(node.inputs) > 1 and "step" in node.attrs
        if sums and all(m.is_identity for m in node.attrs["maps"]):  # so do sums in a loop
            for name in node.inputs:
                parent[root(name)] = root(node.name)
    return {node.name: root(node.name) for node in graph}
