"""The server's part: from an ensemble to sums and look-ups."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._jali.tfhe import Ciphertext, Params
from jali.errors import InvalidArgument, ParamsMismatch, Unsupported
from jali.tfhe.evaluator import Evaluator
from jali.tfhe.trees.ensemble import Ensemble, Split, Tree, edges_of, pruned, votes_of
from jali.tfhe.trees.questions import Questions, checked_edges
from jali.tfhe.trees.sklearn_models import ensemble_of

__all__ = ["Program", "compile"]

Floats = npt.NDArray[np.float64]
Edges = dict[int, set[float]]


@dataclass(frozen=True)
class Program:
    """A model as sums and look-ups. Call it on the server; give `questions` to the client.

    weights: (2 questions, look-ups): the index of a look-up is the sum of the answers, 0 or 1 and then 0 or `large`, with these.
    tables: for each look-up, the votes for every value that its index can have in these parameters.
    sums: (look-ups, numbers): which look-ups are added to each number of a result.
    """

    params: Params
    questions: Questions
    weights: npt.NDArray[np.int64]
    tables: npt.NDArray[np.int64]
    sums: npt.NDArray[np.int64]

    @property
    def look_ups(self) -> int:
        """Look-ups of one row."""
        return len(self.tables)

    def __call__(self, server: Evaluator, request: Sequence[Ciphertext]) -> Ciphertext:
        """The reply to Questions.encrypt. Raises ParamsMismatch, KeyMismatch, and InvalidArgument for another request."""
        if server.params != self.params:
            raise ParamsMismatch(
                f"the program is for {self.params!r}: compile the model for the evaluator's parameters"
            )
        asked = len(self.weights) // 2
        if len(request) != 2 or any(
            one.bits or len(one.shape) != 2 or one.shape[1] != asked for one in request
        ):
            raise InvalidArgument(
                f"a request is two ciphertexts of the shape (rows, {asked}): make it by the program's questions"
            )
        used = np.flatnonzero(self.weights.any(axis=1))
        both = server.concatenate([server.bind(one) for one in request], axis=1)
        index = both[:, used] @ self.weights[used]
        votes = server.apply_each(self.tables.tolist(), index)
        return (votes @ self.sums).ciphertext

    def clear(self, rows: npt.ArrayLike) -> Floats:
        """The scores of rows, by the same sums and tables without encryption."""
        answers = self.questions.answers(rows)
        both = np.concatenate([answers, answers * self.questions.large], axis=1)
        votes = np.take_along_axis(self.tables.T, both @ self.weights, axis=0)
        return self.questions.scores(votes @ self.sums)


def compile(model: Any, params: Params, edges: Sequence[npt.ArrayLike] | None = None) -> Program:
    """The program of a fitted scikit-learn classifier whose leaves are multiples of a step, as `rounded` makes them.

    model: a decision tree, a forest or gradient boosting. Trees of at most log2 of the number of values that a
        ciphertext holds fit in depth: 4 for messages and carries of 2 bits.
    edges: for each feature, the numbers with which the client compares it; the model was fitted on ``bins(rows, edges)``. The client
        then does not learn which of them the model uses. None stands for the model's own, and the model was fitted on rows as they are.

    Raises Unsupported for other models, InvalidArgument for what does not fit; the sentence says what to change.
    """
    if not isinstance(params, Params):
        raise InvalidArgument(f"params must be a tfhe.Params, not {type(params).__name__}")
    bits = params.message_bits + params.carry_bits
    if bits < 2:
        raise Unsupported(
            f"{params.name} holds single bits: use parameters with carries, such as message_2_carry_2"
        )
    ensemble = ensemble_of(model)
    if edges is None:
        asked = _own_edges(ensemble)
    else:
        asked = checked_edges(edges, ensemble.features)
        ensemble = replace(
            ensemble, trees=[[_binned(tree, asked) for tree in of] for of in ensemble.trees]
        )
    room = _Room(1 << bits, params.max_norm2)
    found = [
        look_up
        for score, trees in enumerate(ensemble.trees)
        for look_up in _look_ups(trees, score, room)
    ]
    if not found:
        raise InvalidArgument(
            "the model gives every row the same answer: fit it longer, or round it to a smaller step"
        )
    return _program(ensemble, params, asked, found, room)


@dataclass(frozen=True)
class _Room:
    """How many values an index has at most, and how large the squared norm of its weights may be."""

    values: int
    norm2: float

    @property
    def large(self) -> int:
        """What the second encryption of an answer holds."""
        return 1 << ((self.values.bit_length() - 1) // 2)

    def strides(self, edges: Edges) -> tuple[int, ...] | None:
        """What the number of edges that a feature has passed is multiplied by, in the order of `edges`; None if it does not fit."""
        return _strides(tuple(len(one) for one in edges.values()), self)

    def norm2_of(self, weight: int) -> int:
        """What an answer with this weight adds to the squared norm."""
        return (weight % self.large) ** 2 + (weight // self.large) ** 2


@lru_cache(maxsize=4096)
def _strides(counts: tuple[int, ...], room: _Room) -> tuple[int, ...] | None:
    """Of the orders of a mixed radix system the one with least noise."""
    if math.prod(count + 1 for count in counts) > room.values:
        return None
    best: tuple[float, tuple[int, ...]] | None = None
    for order in itertools.permutations(range(len(counts))):
        strides, stride = [0] * len(counts), 1
        for i in order:
            strides[i], stride = stride, stride * (counts[i] + 1)
        norm2 = sum(count * room.norm2_of(s) for count, s in zip(counts, strides, strict=True))
        if norm2 <= room.norm2 and (best is None or norm2 < best[0]):
            best = norm2, tuple(strides)
    return best and best[1]


@dataclass
class _LookUp:
    """Trees, or parts of trees, of one score that one look-up adds up."""

    score: int
    trees: list[Tree]
    edges: Edges  # sorted by feature
    votes: list[int]  # by index

    @classmethod
    def of(cls, score: int, trees: list[Tree], edges: Edges, room: _Room) -> _LookUp | None:
        """None if the index or the votes do not fit."""
        strides = room.strides(edges)
        if strides is None:
            return None
        # The values of an index, each with the largest edge that every feature has passed.
        places = [
            [(0, -math.inf), *((s * i, e) for i, e in enumerate(sorted(of), 1))]
            for s, of in zip(strides, edges.values(), strict=True)
        ]
        votes = [0] * math.prod(len(place) for place in places)
        for cell in itertools.product(*places):
            passed = dict(zip(edges, (edge for _, edge in cell), strict=True))
            votes[sum(at for at, _ in cell)] = sum(votes_of(tree, passed) for tree in trees)
        if max(votes) - min(votes) >= room.values:
            return None
        return cls(score, trees, edges, votes)

    def joined(self, other: _LookUp, room: _Room) -> _LookUp | None:
        """Both in one look-up, if they fit."""
        edges = _union(self.edges, other.edges)
        return _LookUp.of(self.score, self.trees + other.trees, edges, room)


def _union(a: Edges, b: Edges) -> Edges:
    return {f: a.get(f, set()) | b.get(f, set()) for f in sorted(a.keys() | b.keys())}


def _look_ups(trees: list[Tree], score: int, room: _Room) -> list[_LookUp]:
    """Few look-ups that together give the votes of all trees, but for a constant."""
    parts: list[_LookUp] = []
    for number, tree in enumerate(trees):
        if not isinstance(tree, Split):
            continue  # a constant
        for part in _parts(tree, lambda inner: inner, room, number):
            made = _LookUp.of(score, [part], _union(edges_of(part), {}), room)
            if made is None:
                raise InvalidArgument(
                    f"leaves of tree {number} differ by more than {room.values - 1} steps, which is what parameters hold: round the "
                    "model to a larger step, or use parameters with more bits"
                )
            parts.append(made)
    parts.sort(key=lambda part: -len(part.votes))
    done: list[_LookUp] = []
    for part in parts:
        joined = [(at, both) for at, one in enumerate(done) if (both := one.joined(part, room))]
        if joined:
            # Where it adds the fewest values.
            at, both = min(joined, key=lambda pair: len(pair[1].votes) / len(done[pair[0]].votes))
            done[at] = both
        else:
            done.append(part)
    return done


def _parts(tree: Tree, whole: Callable[[Tree], Tree], room: _Room, number: int) -> list[Tree]:
    """Trees that fit and whose sum is whole(tree): whole(x) has x at some place and leaves of 0 beside the way there."""
    if isinstance(tree, Split):
        if room.strides(edges_of(whole(tree))) is not None:
            return [whole(tree)]
        no = _parts(tree.no, lambda inner: whole(tree._replace(no=inner, yes=0)), room, number)
        yes = _parts(tree.yes, lambda inner: whole(tree._replace(no=0, yes=inner)), room, number)
        return no + yes
    if tree == 0:
        return []
    if room.strides(edges_of(whole(tree))) is None:
        raise InvalidArgument(
            f"tree {number} is too deep: a way to a leaf has more comparisons than an index of {room.values} values holds; fit trees with "
            f"max_depth={room.values.bit_length() - 1}, or use parameters with more bits"
        )
    return [whole(tree)]


def _own_edges(ensemble: Ensemble) -> tuple[Floats, ...]:
    """With what the model compares every feature, ascending."""
    edges: list[set[float]] = [set() for _ in range(ensemble.features)]
    for tree in itertools.chain(*ensemble.trees):
        for feature, of in edges_of(tree).items():
            edges[feature] |= of
    return tuple(np.array(sorted(of), np.float64) for of in edges)


def _binned(tree: Tree, edges: tuple[Floats, ...]) -> Tree:
    """A tree whose features are numbers of bins, as one that compares what was binned by these edges: bin > t is x > edges[floor(t)]."""
    if not isinstance(tree, Split):
        return tree
    feature, at, no, yes = tree
    if not 0 <= at < len(edges[feature]):
        raise InvalidArgument(
            f"the model compares feature {feature} with {at!r}, and its edges make bins 0 to {len(edges[feature])}: fit the model "
            "on trees.bins(rows, edges), or leave edges out"
        )
    edge = float(edges[feature][math.floor(at)])
    return pruned(feature, edge, _binned(no, edges), _binned(yes, edges))


def _program(
    ensemble: Ensemble,
    params: Params,
    asked: tuple[Floats, ...],
    found: list[_LookUp],
    room: _Room,
) -> Program:
    first = np.cumsum([0, *(len(of) for of in asked)])  # the questions of each feature
    weights = np.zeros((2, first[-1], len(found)), np.int64)
    tables = np.zeros((len(found), room.values), np.int64)
    base = np.zeros(len(ensemble.trees), np.int64)
    for number, one in enumerate(found):
        strides = room.strides(one.edges)
        assert strides is not None
        for stride, (feature, of) in zip(strides, one.edges.items(), strict=True):
            at = first[feature] + np.searchsorted(asked[feature], sorted(of))
            weights[0, at, number], weights[1, at, number] = (
                stride % room.large,
                stride // room.large,
            )
        least = min(one.votes)
        tables[number, : len(one.votes)] = np.array(one.votes) - least
        base[one.score] += least
    for score, trees in enumerate(ensemble.trees):
        base[score] += sum(tree for tree in trees if not isinstance(tree, Split))
    numbers = _numbers([(one.score, max(one.votes) - min(one.votes)) for one in found], room)
    sums = np.zeros((len(found), len(numbers)), np.int64)
    for number, members in enumerate(numbers):
        sums[members, number] = 1
    questions = Questions(
        edges=asked,
        large=room.large,
        score_of=np.array([found[members[0]].score for members in numbers]),
        base=base,
        step=ensemble.step,
        count=ensemble.count,
        is_mean=ensemble.is_mean,
        classes=ensemble.classes,
    )
    return Program(params, questions, weights.reshape(-1, len(found)), tables, sums)


def _numbers(ranges: list[tuple[int, int]], room: _Room) -> list[list[int]]:
    """Which look-ups, given by score and largest result, are added to one number: it must fit, and so must its noise."""
    numbers: list[list[int]] = []
    for look_up in sorted(range(len(ranges)), key=lambda i: -ranges[i][1]):
        score, most = ranges[look_up]
        for members in numbers:
            fits = sum(ranges[i][1] for i in members) + most < room.values
            if ranges[members[0]][0] == score and fits and len(members) + 1 <= room.norm2:
                members.append(look_up)
                break
        else:
            numbers.append([look_up])
    return numbers
