"""The choice of layouts for a graph as a whole, by dynamic programming.

Functions and products keep the layout of what they take, and factors of a product have the same
one, so arrays form groups that lie alike. The nodes are passed in the order of computation. A state
says how the groups lie that later nodes still use; of all ways that lead to the same state, the
cheapest is kept. Without the limit on the number of states the result would be the cheapest choice
among the candidates.

In: an approximated graph without loops. Out: the graph, whose nodes have a Layout.

>>> graph = fold(nn.trace(lambda x: x * x, np.ones(3)))
>>> [node.layout.addresses.tolist() for node in lay_out(graph, 8, WEIGHTS)]
[[0, 1, 2], [0, 1, 2]]
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jali.compiler.cost.layout_costs import LayoutCosts
from jali.compiler.ir.folded_ops import Affine, Approximated, MatrixSum
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.layouts import Gathered, Layout, Repeated, Shared, Skewed, fitted, skewed
from jali.compiler.ir.loop_graph import is_whole
from jali.compiler.ir.operation import Input
from jali.compiler.ir.products import Products
from jali.compiler.ir.sparse import SparseMap
from jali.compiler.ir.traced_ops import Multiply
from jali.compiler.layout.axes import copied, repeated, rolled, summed, totalled, turned
from jali.compiler.layout.diagonals import gathered, phased, placed, sent, steps
from jali.compiler.layout.overlay import price
from jali.compiler.layout.padding import filled
from jali.compiler.layout.product_factors import factors, spread, windowed
from jali.errors import InternalError

__all__ = ["check_seen", "laid_out", "lay_out"]

_BLIND = MatrixSum | Multiply  # operations that may take partial layouts
_GAPS = (1, 2, 4, 8)
_PHASES = (1, 2, 3, 4)
_MOST_GATHERED = 4  # ciphertexts that an input may take if it is gathered
_KEPT = 48  # states
_SAMPLED = 1 << 15  # entries of a matrix on which the search counts diagonals


def lay_out(graph: Graph, slots: int, costs: LayoutCosts) -> Graph:
    """The graph; every node has its layout, for ciphertexts of which a lane has this many slots.

    costs: of operations.
    """
    return laid_out(graph, _Search(graph, slots, costs).best())


def laid_out(graph: Graph, layouts: Mapping[str, Layout]) -> Graph:
    """The graph with these layouts of its nodes."""
    nodes = tuple(node.with_facts(layout=layouts[node.name]) for node in graph)
    return check_seen(Graph(nodes, graph.outputs, "layout"))


def check_seen(graph: Graph) -> Graph:
    """The same graph, if nothing but matrices and products sees slots that hold parts of sums.

    Raises InternalError, which names the node, for a function, a bootstrap or an output that would.
    """
    for node in graph:
        for name in node.inputs:
            if not isinstance(node.operation, _BLIND) and graph[name].layout.partial:
                raise InternalError(
                    f"{node.name} ({node.op}) would see the slots between the numbers of {name}"
                )
    for name in graph.outputs:
        if graph[name].layout.partial:
            raise InternalError(f"the client would see the slots between the numbers of {name}")
    return graph


@dataclass(frozen=True)
class _State:
    """cost: of all nodes that were passed, in the unit of the costs.
    chosen: the layout of every group, by its root."""

    cost: float
    chosen: dict[str, Layout]


@dataclass(frozen=True)
class _Structure:
    """What matrices have in common whose entries lie in different places, or are multiplied
    otherwise.

    single: one of them.
    sample: some of its entries.
    uniform: whether all of its entries are equal.
    free: whether they are a small whole number, too, so that without diagonals, no level is taken.
    """

    single: SparseMap
    sample: SparseMap
    uniform: bool
    free: bool


class _Search:
    def __init__(self, graph: Graph, slots: int, costs: LayoutCosts) -> None:
        self._graph, self._slots, self._layout_costs = graph, slots, costs
        self._roots = _groups(graph)
        self._structures: list[_Structure] = []
        self._numbers: dict[int, int] = {}  # of matrices, by their ids
        self._costs: dict[tuple[int, Layout, Layout, bool], tuple[float, bool]] = {}
        self._filled = filled(graph)
        self._product_costs: dict[tuple[object, ...], float] = {}
        members: dict[str, list[Node]] = {}
        for node in graph:
            members.setdefault(self._roots[node.name], []).append(node)
        self._members = members

    def best(self) -> dict[str, Layout]:
        """The cheapest layout of every node."""
        chosen = self.cheapest().chosen
        return {node.name: chosen[self._roots[node.name]] for node in self._graph}

    def cheapest(self) -> _State:
        """The cheapest state behind the last node."""
        states = [_State(0.0, {})]
        last = {}  # the last node that needs to know how a group lies
        for k, node in enumerate(self._graph):
            for name in (node.name, *node.inputs):
                last[self._roots[name]] = k
        for k, node in enumerate(self._graph):
            found: dict[tuple[Layout, ...], _State] = {}
            times = node.origin.times  # iterations of a loop for which it stands
            for state in states:
                for after in self._states_after(node, state):
                    after = _State(state.cost + times * (after.cost - state.cost), after.chosen)
                    live = tuple(x for root, x in after.chosen.items() if last[root] > k)
                    if live not in found or after.cost < found[live].cost:
                        found[live] = after
            states = sorted(found.values(), key=lambda s: s.cost)[:_KEPT]
        return states[0]

    def _states_after(self, node: Node, state: _State) -> Iterator[_State]:
        """The states that a state leads to by choosing the layout of one more node."""
        root, operation = self._roots[node.name], node.operation
        if isinstance(operation, Input):
            if self._feeds_one_matrix(node.name) or root in state.chosen:
                yield state
                return
            layouts = [fitted(node.shape, self._slots)]
            if any(isinstance(member.operation, Multiply) for member in self._members[root]):
                layouts += filter(None, [skewed(node.shape, self._slots)])
            yield from (_State(state.cost, {**state.chosen, root: one}) for one in layouts)
            return
        if isinstance(operation, Products):
            sides = [state.chosen[self._roots[name]] for name in node.inputs]
            given = state.chosen.get(root)
            for target in [fitted(node.shape, self._slots)] if given is None else [given]:
                cost = state.cost + self._products(node, operation, sides, target)
                yield _State(cost, {**state.chosen, root: target})
            return
        if not isinstance(operation, Affine):
            products = operation.by.multiplications if isinstance(operation, Approximated) else 1
            count = state.chosen[root].ciphertexts
            work = self._layout_costs.shared(self._layout_costs.product * products * count, count)
            yield _State(state.cost + work, state.chosen)
            return
        maps = [self._structure(single) for single in operation.maps]
        (first, *_), singles = node.inputs, operation.maps
        ways: Iterator[tuple[dict[str, Layout], Layout]]
        if self._feeds_one_matrix(first):
            ways = (
                ({**state.chosen, self._roots[first]: source}, target)
                for source, target in self._inputs(
                    self._graph[first], node, singles[0], state.chosen.get(root)
                )
            )
        elif root in state.chosen:
            ways = iter([(state.chosen, state.chosen[root])])
        else:
            sources = [state.chosen[self._roots[name]] for name in node.inputs]
            ways = ((state.chosen, target) for target in self._targets(node, sources))
        for chosen, target in ways:
            cost, free = state.cost, True
            for name, number in zip(node.inputs, maps, strict=True):
                empty = name not in self._filled
                more, is_free = self._cost(number, chosen[self._roots[name]], target, empty)
                cost, free = cost + more, free and is_free
            yield _State(cost + (0 if free else self._layout_costs.level), {**chosen, root: target})

    def _products(
        self, node: Node, products: Products, sources: Sequence[Layout], target: Layout
    ) -> float:
        """What a product of matrices costs: as many factors as there are, each like the first
        one."""
        key = (node.name, *sources, target)
        if key not in self._product_costs:
            whole, windows = windowed(target)
            sizes = [self._graph[name].size for name in node.inputs]
            pair = next(factors(products, sizes, windows))
            costs = self._layout_costs
            each = sum(spread(m, x, whole, costs).cost for m, x in zip(pair, sources, strict=True))
            count = -(-products.contracted // windows)
            cost = count * (each + target.ciphertexts * costs.added)
            cost += costs.behind * math.log2(windows)
            self._product_costs[key] = costs.shared(cost, target.ciphertexts)
        return self._product_costs[key]

    def _feeds_one_matrix(self, name: str) -> bool:
        """Whether a node is an input that is used by one matrix alone. Such an input may lie in
        whatever layout suits the matrix."""
        users = self._graph.users(name)
        return (
            (
                isinstance(self._graph[name].operation, Input)
                and len(users) == len(users[0].inputs) == 1
                and isinstance(users[0].operation, Affine)
                and name not in self._graph.outputs
            )
            if users
            else False
        )

    def _inputs(
        self, source: Node, node: Node, single: SparseMap, given: Layout | None
    ) -> Iterator[tuple[Layout, Layout]]:
        """Layouts of an input and of its only matrix's result.

        given: that of the result, if an array that lies alike has chosen it. It may be of another
            shape with as many numbers.
        """
        plain = fitted(source.shape, self._slots)
        targets = list(self._targets(node, [plain])) if given is None else [given]
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
                if given not in (None, target):
                    continue
                made = phased(source.shape, stride, target, _MOST_GATHERED)
                if made is not None:
                    yield made, target

    def _targets(self, node: Node, sources: Sequence[Layout]) -> Iterator[Layout]:
        """Layouts that the result of matrices may have: dense or spread on the grid of a source,
        with several periods; and in shares."""
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
            isinstance(n.operation, _BLIND)
            and n.name not in self._graph.outputs
            and all(isinstance(user.operation, _BLIND) for user in self._graph.users(n.name))
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
                    # A number has not more copies than blocks. If chunks fill what they have,
                    # nothing else lies there.
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
        """The number of the structure of a matrix; see _Structure."""
        if id(single) not in self._numbers:  # the graph keeps the matrices alive, and their ids
            self._numbers[id(single)] = self._number(single)
        return self._numbers[id(single)]

    def _number(self, single: SparseMap) -> int:
        uniform = single.is_uniform
        free = uniform and bool(single.count) and is_whole(float(next(single.pieces()).values[0]))
        for number, other in enumerate(self._structures):
            same = (other.uniform, other.free) == (uniform, free)
            if same and single.has_places_of(other.single):
                return number
        self._structures.append(_Structure(single, single.sample(_SAMPLED), uniform, free))
        return len(self._structures) - 1

    def _cost(self, number: int, source: Layout, target: Layout, empty: bool) -> tuple[float, bool]:
        """What a matrix costs between two layouts, and whether it takes no level.

        empty: whether the source holds zeros between its numbers.
        """
        key = (number, source, target, empty)
        if key not in self._costs:
            found, costs = self._structures[number], self._layout_costs
            moved = self._moved(found, source, target, empty)
            if moved is None:
                cost = self._with_diagonals(found, source, target, empty)
            else:
                cost = costs.rotation * moved
                cost += 0 if found.free else costs.mask * target.ciphertexts
            free = moved is not None and found.free
            self._costs[key] = costs.shared(cost, target.ciphertexts), free
        return self._costs[key]

    def _moved(
        self, matrix: _Structure, source: Layout, target: Layout, empty: bool
    ) -> float | None:
        """How many rotations a matrix is, if it consists of rotations, sums and a factor alone;
        None for others."""
        single = matrix.single
        if not matrix.uniform:
            return None
        if (source == target and single.is_diagonal) or copied(single, source, target):
            return 0
        if turned(single, source, target):
            assert isinstance(target, Skewed)
            return target.count - 1
        if rolled(single, source, target):
            return 1
        if totalled(single, source, target, empty) is not None:
            turns = source.count - 1 if isinstance(source, Skewed) else 0
            return turns + math.log2(source.period // target.period)
        return None

    def _with_diagonals(
        self, matrix: _Structure, source: Layout, target: Layout, empty: bool
    ) -> float:
        costs, single = self._layout_costs, matrix.single
        if source == target and single.is_diagonal:
            return costs.mask * target.ciphertexts
        if isinstance(target, Repeated) and summed(single, source, target, empty) is not None:
            steps_each = math.log2(target.width)
            each = (costs.rotation + costs.behind) * steps_each + costs.mask
            return target.ciphertexts * each
        counts = [1] * source.ciphertexts
        if not isinstance(source, Gathered) or source.places is not None or source.like:
            counts = placed(matrix.sample, source, target).counts
        copies = target.slots // max(source.period, target.period)
        if isinstance(source, Skewed) or isinstance(target, Skewed):
            # Each ciphertext has others, of which few share a ModUp.
            cost = float((costs.rotation + costs.diagonal) * sum(counts))
        else:
            cost = price(counts, 0 if source.partial else copies, costs)
        cost += costs.behind * target.ciphertexts * len(steps(source, target))
        if isinstance(source, Gathered):
            cost += costs.sent * (source.ciphertexts - 1)
        return cost


def _powers(first: int, last: int) -> Iterator[int]:
    """first, 2 first, .., as long as they are at most `last`."""
    while first <= last:
        yield first
        first *= 2


def _groups(graph: Graph) -> dict[str, str]:
    """For each node, the representative of its group: the nodes that must have one layout."""
    parent = {node.name: node.name for node in graph}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    first: dict[str, str] = {}
    for node in graph:
        operation, origin = node.operation, node.origin
        if not isinstance(operation, Affine | Input | Products):
            for name in node.inputs:
                parent[root(name)] = root(node.name)
        if origin.alike:  # a loop's state lies alike in all iterations
            parent[root(node.name)] = root(first.setdefault(origin.alike, node.name))
            if len(node.inputs) == 1 and Affine.of(node).maps[0].is_identity:  # it costs nothing
                parent[root(node.inputs[0])] = root(node.name)
        sums = isinstance(operation, Affine) and len(node.inputs) > 1 and origin.step is not None
        if sums and all(m.is_identity for m in Affine.of(node).maps):  # so do sums in a loop
            for name in node.inputs:
                parent[root(name)] = root(node.name)
    return {node.name: root(node.name) for node in graph}
