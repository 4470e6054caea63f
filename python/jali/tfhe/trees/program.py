"""The server's part: from an ensemble to sums and look-ups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._jali.tfhe import Ciphertext, Params
from jali.errors import InvalidArgument, ParamsMismatch, Unsupported
from jali.tfhe.array import EncryptedArray
from jali.tfhe.evaluator import Evaluator
from jali.tfhe.trees.ensemble import Ensemble, Split, Tree, edges_of, pruned
from jali.tfhe.trees.look_ups import LookUp, Room, added, look_ups
from jali.tfhe.trees.questions import Questions, checked_edges
from jali.tfhe.trees.sklearn_models import ensemble_of

__all__ = ["Program", "compile"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Program:
    """A model as sums and look-ups. Call it on the server; give `questions` to the client.

    weights: (2 questions, look-ups): the index of a look-up is the sum of the answers, as 0 or 1 and then as 0 or `large`,
        with these.
    tables: for each look-up, the votes for every value.
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

    def __call__(self, server: Evaluator, request: Sequence[Ciphertext | bytes]) -> Ciphertext:
        """The reply to a request: ``run(read(server, request))``, in the host's memory."""
        return self.run(self.read(server, request)).ciphertext

    def read(self, server: Evaluator, request: Sequence[Ciphertext | bytes]) -> EncryptedArray:
        """The answers that the model uses, (rows, answers), in the server's memory.

        request: what Questions.encrypt made, or its bytes. Only what the model uses is read.

        Raises ParamsMismatch, KeyMismatch, InvalidArgument for another request, and what Ciphertext.from_bytes raises.
        """
        if not isinstance(server, Evaluator):
            raise InvalidArgument(f"a program runs on a tfhe.Evaluator, not {checks.shown(server)}")
        if server.params != self.params:
            raise ParamsMismatch(
                f"the program is for {self.params!r}: compile the model for the evaluator's parameters"
            )
        if not isinstance(request, (list, tuple)) or len(request) != len(self.weights):
            raise InvalidArgument(
                f"a request is a list of {len(self.weights)} ciphertexts: Questions.encrypt makes it"
            )
        given = [server.bind(self._loaded(request[i])) for i in self._used()]
        rows = given[0].size
        if any(one.shape != (rows,) for one in given):
            raise InvalidArgument(
                "the ciphertexts of a request have other shapes than those of Questions.encrypt"
            )
        return server.concatenate(given).reshape(len(given), rows).T

    def run(self, answers: EncryptedArray) -> EncryptedArray:
        """The numbers of the result, (rows, numbers), from what `read` gave."""
        index = answers @ self.weights[self._used()]
        return answers.evaluator.apply_each(self.tables.tolist(), index) @ self.sums

    def _used(self) -> npt.NDArray[np.intp]:
        return np.flatnonzero(self.weights.any(axis=1))

    def _loaded(self, one: Ciphertext | bytes) -> Ciphertext:
        if not isinstance(one, Ciphertext):
            one = Ciphertext.from_bytes(one, self.params)
        if one.bits:
            raise InvalidArgument("a request has encrypted integers, and a program takes messages")
        return one

    def clear(self, rows: npt.ArrayLike) -> Floats:
        """The scores of rows by the same sums and tables, without encryption."""
        answers = self.questions.answers(rows)
        both = np.concatenate([answers, answers * self.questions.large], axis=1)
        votes = np.take_along_axis(self.tables.T, both @ self.weights, axis=0)
        return self.questions.scores(votes @ self.sums)


def compile(model: Any, params: Params, edges: Sequence[npt.ArrayLike] | None = None) -> Program:
    """The program of a fitted scikit-learn classifier whose leaves are multiples of a step, as `rounded` makes them.

    model: a decision tree, a forest or gradient boosting. With messages and carries of 2 bits, a tree of at most 5 leaves is one look-up
        or part of one. A larger one is divided among several, down to a depth of 4.
    edges: for each feature, the numbers with which the client compares it; the model was fitted on ``bins(rows, edges)``. The
        client then does not learn which of them the model uses. None stands for the model's own; the model was fitted on rows
        as they are.

    Raises Unsupported for models of other kinds, and InvalidArgument for what does not fit. The sentence says what to change.
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
        trees = [[_unbinned(tree, asked) for tree in of] for of in ensemble.trees]
        ensemble = replace(ensemble, trees=trees, compared_as=np.float64)
    room = Room(1 << bits, params.max_norm2)
    found = [one for score, of in enumerate(ensemble.trees) for one in look_ups(of, score, room)]
    if not found:
        raise InvalidArgument(
            "the model gives every row the same answer: fit it longer, or round it to a smaller step"
        )
    return _program(ensemble, params, asked, found, room)


def _own_edges(ensemble: Ensemble) -> tuple[Floats, ...]:
    """With what the model compares every feature, ascending."""
    edges: list[set[float]] = [set() for _ in range(ensemble.features)]
    for trees in ensemble.trees:
        for tree in trees:
            for feature, of in edges_of(tree).items():
                edges[feature] |= of
    return tuple(np.array(sorted(of), np.float64) for of in edges)


def _unbinned(tree: Tree, edges: tuple[Floats, ...]) -> Tree:
    """From a tree of numbers of bins to one of what was binned: bin > t is x > edges[floor(t)]."""
    if not isinstance(tree, Split):
        return tree
    feature, at, no, yes = tree
    if not 0 <= at < len(edges[feature]):
        raise InvalidArgument(
            f"the model compares feature {feature} with {at!r}, and its edges make bins 0 to {len(edges[feature])}: fit the "
            "model on trees.bins(rows, edges), or leave edges out"
        )
    edge = float(edges[feature][math.floor(at)])
    return pruned(feature, edge, _unbinned(no, edges), _unbinned(yes, edges))


def _program(
    ensemble: Ensemble,
    params: Params,
    asked: tuple[Floats, ...],
    found: list[LookUp],
    room: Room,
) -> Program:
    first = np.cumsum([0, *(len(of) for of in asked)])  # the questions of each feature
    weights = np.zeros((2, first[-1], len(found)), np.int64)
    tables = np.zeros((len(found), room.values), np.int64)
    # What look-ups do not add: constant trees, and the fewest votes of every look-up.
    rest = [sum(tree for tree in of if not isinstance(tree, Split)) for of in ensemble.trees]
    for number, one in enumerate(found):
        for (feature, of), stride in zip(one.edges.items(), one.strides, strict=True):
            at = first[feature] + np.searchsorted(asked[feature], sorted(of))
            weights[0, at, number] = stride % room.large
            weights[1, at, number] = stride // room.large
        tables[number, : len(one.votes)] = np.array(one.votes) - one.least
        rest[one.score] += one.least
    numbers = added(found, room)
    sums = np.zeros((len(found), len(numbers)), np.int64)
    for number, members in enumerate(numbers):
        sums[members, number] = 1
    questions = Questions(
        edges=asked,
        large=room.large,
        score_of=np.array([found[members[0]].score for members in numbers]),
        base=ensemble.base + ensemble.step * np.array(rest),
        step=ensemble.step,
        count=ensemble.count,
        is_mean=ensemble.is_mean,
        classes=ensemble.classes,
        compared_as=ensemble.compared_as,
    )
    return Program(params, questions, weights.reshape(-1, len(found)), tables, sums)
