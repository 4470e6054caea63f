"""From an ensemble to a circuit.

A tree whose comparisons fit into one index is one table, and trees that compare the same share it.
A larger tree is divided into blocks: look-ups give the number of the leaf to which a row comes, or
0 if that leaf is in another block, and further ones turn the number of the leaf into the digits of
its value. Digits of all trees are added in columns.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from jali.errors import InvalidArgument
from jali.tfhe.trees.blocks import (
    Block,
    Chains,
    Part,
    Split,
    cells,
    chains_of,
    divided,
    fits,
    outcomes,
    strides,
)
from jali.tfhe.trees.circuit import Circuit, Form, Room
from jali.tfhe.trees.ensemble import Ensemble, Floats, Question
from jali.tfhe.trees.sums import Term, added, packed
from jali.tfhe.trees.whole import Vector, Whole, in_steps

__all__ = ["Plan", "planned"]

_SECTION = 2048  # look-ups after which what later ones do not need is forgotten
_WHOLE_NODES = 64  # larger trees never fit into one index


@dataclass(frozen=True)
class Plan:
    """outputs: of each number of a result, its score and by which power of two it counts. step,
    base, errors: of each score."""

    circuit: Circuit
    outputs: tuple[tuple[int, int], ...]
    step: Floats
    base: Floats
    errors: Floats


@dataclass(frozen=True)
class _Table:
    """Trees that share an index. members: their parts and what the numbers of leaves stand for."""

    scores: tuple[int, ...]
    members: tuple[tuple[Part, list[Vector]], ...]
    chains: Chains


def planned(ensemble: Ensemble, room: Room, bits: int, split_sums: bool) -> Plan:
    """The plan. split_sums: whether the client adds up what needs no look-up to be sent."""
    trees, step, base, errors = in_steps(ensemble, bits)
    planner = _Planner(ensemble.questions, room, len(base))
    tables, rest = list[_Table](), list[Whole]()
    for tree in trees:
        if tree.question[0] < 0:
            base = base.copy()
            base[list(tree.scores)] += step[list(tree.scores)] * np.array(tree.leaf[0])
            continue
        table = _as_table(tree, ensemble.questions, room)
        if table is None:
            rest.append(tree)
        else:
            tables.append(table)
    shared = _shared(tables, room)
    scores = [one.scores for one in shared] + [one.scores for one in rest]
    many = Counter(s for of in scores for s in of)
    planner.crowded = {s for s, count in many.items() if count > 1}
    for table in shared:
        planner.add_table(table)
    for tree in rest:
        planner.add_tree(tree)
    if not any(planner.terms):
        raise InvalidArgument(
            "the model gives every row the same answer, for which nothing needs to be encrypted: fit it longer, or round it to a smaller step"
        )
    circuit = planner.circuit
    circuit.section += 1
    outputs = []
    for score, terms in enumerate(planner.terms):
        for position, form in (packed if split_sums else added)(circuit, terms):
            if form.terms:
                circuit.outputs.append(form)
                outputs.append((score, position * room.digit))
    return Plan(circuit, tuple(outputs), step, base + step * planner.least, errors)


def _as_table(tree: Whole, questions: tuple[Question, ...], room: Room) -> _Table | None:
    """The tree as one table, if its comparisons fit into one index."""
    nodes = tree.reached()
    if len(nodes) > _WHOLE_NODES:
        return None
    vectors: list[Vector] = []
    parts: dict[int, Part] = {}
    for at in nodes[::-1].tolist():
        if tree.question[at] < 0:
            vectors.append(tree.leaf[at])
            parts[at] = len(vectors) - 1
        else:
            parts[at] = Split(
                int(tree.question[at]), parts[int(tree.no[at])], parts[int(tree.yes[at])]
            )
    chains = chains_of(parts[0], questions)
    if not fits(chains, room, False):
        return None
    return _Table(tree.scores, ((parts[0], vectors),), chains)


def _shared(tables: list[_Table], room: Room) -> list[_Table]:
    """Tables whose comparisons fit into one index together become one, if they add to the same
    scores."""
    done: list[_Table] = []
    for table in sorted(tables, key=lambda one: -cells(one.chains)):
        best: tuple[float, int, Chains] | None = None  # the one that grows the least
        for k, one in enumerate(done):
            if one.scores != table.scores:
                continue
            chains = _union(one.chains, table.chains)
            growth = cells(chains) / cells(one.chains)
            if (best is None or growth < best[0]) and fits(chains, room, False):
                best = growth, k, chains
        if best is None:
            done.append(table)
        else:
            one = done[best[1]]
            done[best[1]] = _Table(one.scores, one.members + table.members, best[2])
    return done


def _union(a: Chains, b: Chains) -> Chains:
    """Questions of both. Their order is that of edges, which `_Planner` restores."""
    found = dict(a)
    for chain, asked in b.items():
        found[chain] = tuple(sorted({*found.get(chain, ()), *asked}))
    return found


class _Planner:
    def __init__(self, questions: tuple[Question, ...], room: Room, scores: int) -> None:
        self.circuit, self.room = Circuit(room), room
        self.questions = questions
        self.terms: list[list[Term]] = [[] for _ in range(scores)]
        self.least = np.zeros(scores)  # in steps; what tables do not hold
        self.crowded: set[int] = set()  # scores to which several trees add
        self._section_end = _SECTION

    # --- indices --------------------------------------------------------------------------------

    def _ordered(self, chains: Chains) -> Chains:
        edge = self.questions
        return {c: tuple(sorted(q, key=lambda k: edge[k].edge)) for c, q in chains.items()}

    def _index(self, chains: Chains, reach: Form | None) -> tuple[Form, tuple[int, ...]]:
        """The sum that numbers the combinations of answers, and the strides of the chains."""
        found = strides(tuple(len(of) for of in chains.values()), self.room, reach is not None)
        assert found is not None
        each, large = found
        forms = [] if reach is None else [reach]
        for asked, stride in zip(chains.values(), each, strict=True):
            for question in asked:
                low = stride % self.room.large if large else stride
                if low:
                    forms.append(self.circuit.node(self.circuit.answer(question), low))
                if large and stride >= self.room.large:
                    node = self.circuit.answer(question, self.room.large)
                    form = self.circuit.node(node, stride // self.room.large)
                    forms.append(form)
        return self.circuit.total(forms), each

    def _condition(self, above: int | None, below: int | None) -> Form:
        """1 if a row answers yes to `above` and no to `below`, two questions of one chain, else
        0."""
        terms = []
        if above is not None:
            terms.append((self.circuit.answer(above), 1))
        if below is not None:
            terms.append((self.circuit.answer(below), -1))
        return Form(tuple(sorted(terms)), 1, int(above is None))

    def _arrives(self, path: list[tuple[int, bool]], value: int) -> Form:
        """`value` for rows that come to the end of a path, 0 for others."""
        bounds: dict[tuple[object, ...], list[int | None]] = {}
        for question, answer in path:
            asked = self.questions[question]
            bound, side = bounds.setdefault(asked.chain, [None, None]), int(not answer)
            other = bound[side]
            # Of what a row must be above the largest edge is kept, of what it must not be above the
            # smallest.
            if other is None or (asked.edge > self.questions[other].edge) == answer:
                bound[side] = question
        forms = []
        for above, below in bounds.values():
            both = above is not None and below is not None
            if both and self.questions[above].edge >= self.questions[below].edge:  # type: ignore[index]
                return Form((), 0)  # no row has both answers
            forms.append(self._condition(above, below))
        some, norm2 = list[Form](), 0  # of different answers, so that squared norms add up
        for form in forms:
            norm2 += form.norm2
            if len(some) + 1 >= self.room.values or norm2 > self.room.norm2:
                so_far = self.circuit.total(some)
                some = [self.circuit.look_up(so_far, [0] * so_far.most + [1])]
                norm2 = 1 + form.norm2
            some.append(form)
        whole = self.circuit.total(some)
        return self.circuit.look_up(whole, [0] * whole.most + [value])

    # --- trees ----------------------------------------------------------------------------------

    def _next_section(self) -> None:
        if self.circuit.look_ups > self._section_end:
            self.circuit.section += 1
            self._section_end = self.circuit.look_ups + _SECTION

    def add_table(self, table: _Table) -> None:
        """The terms of trees that share an index."""
        self._next_section()
        chains = self._ordered(table.chains)
        index, each = self._index(chains, None)
        vectors: list[Vector] = [(0,) * len(table.scores)] * self.room.values
        for part, stand_for in table.members:
            for ranks, leaf in outcomes(part, chains):
                at = sum(s * r for s, r in zip(each, ranks, strict=True))
                both = zip(vectors[at], stand_for[leaf], strict=True)
                vectors[at] = tuple(a + b for a, b in both)
        self._emit(index, vectors[: index.most + 1], table.scores)

    def _emit(self, index: Form, vectors: list[Vector], scores: tuple[int, ...]) -> None:
        """The terms of what an index stands for: digits, or one number if that is small."""
        for column, score in enumerate(scores):
            numbers = [vector[column] for vector in vectors]
            least = min(numbers)
            self.least[score] += least
            numbers = [v - least for v in numbers]
            if max(numbers) < self.room.values:
                self.terms[score].append((0, self.circuit.look_up(index, numbers)))
                continue
            digits = 1 if score in self.crowded else 2
            width = self.room.digit * digits
            for k in range(-(-max(numbers).bit_length() // width)):
                table = [v >> (k * width) & ((1 << width) - 1) for v in numbers]
                self.terms[score].append((k * digits, self.circuit.look_up(index, table)))

    def add_tree(self, tree: Whole) -> None:
        """The terms of a tree that is divided into blocks."""
        self._next_section()
        leaves = _in_order(tree)
        most = max(max(tree.leaf[leaf]) for leaf in leaves)
        if len(tree.scores) == 1 and most < self.room.values:
            numbers = {leaf: tree.leaf[leaf][0] for leaf in leaves}
            (whole,) = self._chosen(tree, numbers, [list(range(1, most + 1))])
            self.terms[tree.scores[0]].append((0, whole))
            return
        counts = Counter(tree.leaf[leaf] for leaf in leaves)
        zero = (0,) * len(tree.scores)
        step = self.room.values - 1
        default = zero if len(counts) > step + 1 else counts.most_common(1)[0][0]
        known = {default: 0}
        for leaf in leaves:
            known.setdefault(tree.leaf[leaf], len(known))
        numbers = {leaf: known[tree.leaf[leaf]] for leaf in leaves}
        vectors = list(known)
        groups = [list(range(k, min(k + step, len(known)))) for k in range(1, len(known), step)]
        chosen = self._chosen(tree, numbers, groups)
        if len(groups) == 1:
            self._emit(chosen[0], vectors, tree.scores)
            return
        width = 2 * self.room.digit
        for column, score in enumerate(tree.scores):
            longest = max(vector[column] for vector in vectors).bit_length()
            for k in range(-(-longest // width)):
                forms, top = [], 0
                for index, group in zip(chosen, groups, strict=True):
                    here = [vectors[n][column] >> (k * width) & ((1 << width) - 1) for n in group]
                    top = max(top, *here)
                    forms.append(self.circuit.look_up(index, [0, *here]))
                whole = self.circuit.one_of([f for f in forms if f.terms], top)
                if whole.terms:
                    self.terms[score].append((2 * k, whole))

    def _chosen(self, tree: Whole, numbers: dict[int, int], groups: list[list[int]]) -> list[Form]:
        """For every group, the place from 1 on in it of the number of a row's leaf, or 0 if it is
        not of the group."""
        number_of = [0] * len(tree.question)
        for leaf, number in numbers.items():
            number_of[leaf] = number
        place = {n: (g, k + 1) for g, of in enumerate(groups) for k, n in enumerate(of)}
        blocks = divided(tree, number_of, self.questions, self.room)
        paths = _paths(tree, {block.node for block in blocks})
        found: list[list[Form]] = [[] for _ in groups]
        for block in blocks:
            for group, form in self._block(block, paths[block.node], place):
                found[group].append(form)
        return [
            self.circuit.one_of(forms, len(of)) for forms, of in zip(found, groups, strict=True)
        ]

    def _block(
        self, block: Block, path: list[tuple[int, bool]], place: dict[int, tuple[int, int]]
    ) -> list[tuple[int, Form]]:
        """(group, the leaf's place in it or 0) for the groups of a block's leaves."""
        if not isinstance(block.part, Split):
            group, at = place[block.part]
            return [(group, self._arrives(path, at))]
        chains = chains_of(block.part, self.questions)
        half = self.room.values // 2
        reach = self._arrives(path, half) if path else None
        index, each = self._index(chains, reach)
        tables: dict[int, list[int]] = {}
        for ranks, leaf in outcomes(block.part, chains):
            at = sum(s * r for s, r in zip(each, ranks, strict=True)) + (half if path else 0)
            if leaf:
                group, number = place[leaf]
                tables.setdefault(group, [0] * self.room.values)[at] = number
        return [(group, self.circuit.look_up(index, table)) for group, table in tables.items()]


def _in_order(tree: Whole) -> list[int]:
    """The leaves from left to right."""
    found, waiting = list[int](), [0]
    while waiting:
        node = waiting.pop()
        if tree.question[node] < 0:
            found.append(node)
        else:
            waiting += [int(tree.yes[node]), int(tree.no[node])]
    return found


def _paths(tree: Whole, wanted: set[int]) -> dict[int, list[tuple[int, bool]]]:
    """The questions on the way to nodes, and their answers."""
    above: dict[int, tuple[int, bool]] = {}
    for at in tree.reached().tolist():
        if tree.question[at] >= 0:
            above[int(tree.no[at])], above[int(tree.yes[at])] = (at, False), (at, True)
    paths = {}
    for node in wanted:
        path, at = [], node
        while at in above:
            at, answer = above[at]
            path.append((int(tree.question[at]), answer))
        paths[node] = path[::-1]
    return paths
