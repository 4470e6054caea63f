"""Which look-ups give the votes of trees: what fits into one, what is divided, and what is put together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from jali.errors import InvalidArgument
from jali.tfhe.trees.ensemble import Split, Tree, edges_of, votes_of

__all__ = ["LookUp", "Room", "added", "look_ups"]

Edges = dict[int, set[float]]


@dataclass(frozen=True)
class Room:
    """How many values an index has at most, and how large the squared norm of its weights may be."""

    values: int
    norm2: float

    @property
    def large(self) -> int:
        """What the second encryption of an answer holds."""
        return 1 << ((self.values.bit_length() - 1) // 2)

    def strides(self, edges: Edges) -> tuple[int, ...] | None:
        """What the number of edges that a feature has passed is multiplied by, in the order of `edges`; None if they do not fit."""
        return _strides(tuple(len(of) for of in edges.values()), self)

    def norm2_of(self, weight: int) -> int:
        """What an answer of this weight adds to the squared norm."""
        return (weight % self.large) ** 2 + (weight // self.large) ** 2


@lru_cache(maxsize=4096)
def _strides(counts: tuple[int, ...], room: Room) -> tuple[int, ...] | None:
    """The digits of a mixed radix system, in the order with the least noise."""
    if math.prod(count + 1 for count in counts) > room.values:
        return None
    found: list[tuple[int, tuple[int, ...]]] = []
    for order in itertools.permutations(range(len(counts))):
        strides, stride = [0] * len(counts), 1
        for i in order:
            strides[i], stride = stride, stride * (counts[i] + 1)
        norm2 = sum(count * room.norm2_of(s) for count, s in zip(counts, strides, strict=True))
        found.append((norm2, tuple(strides)))
    norm2, best = min(found)
    return best if norm2 <= room.norm2 else None


@dataclass(frozen=True)
class LookUp:
    """Trees, or parts of trees, whose votes for one score one look-up adds up.

    edges: of each feature that they compare, ascending by feature.
    strides: the index is the sum of strides[i] times the number of edges that feature i has passed.
    votes: for every index.
    """

    score: int
    trees: list[Tree]
    edges: Edges
    strides: tuple[int, ...]
    votes: list[int]

    @property
    def least(self) -> int:
        """The fewest votes."""
        return min(self.votes)

    @property
    def range(self) -> int:
        """The difference of most and fewest votes."""
        return max(self.votes) - min(self.votes)


def _look_up(score: int, trees: list[Tree], edges: Edges, room: Room) -> LookUp | None:
    """None if the index does not fit."""
    strides = room.strides(edges)
    if strides is None:
        return None
    # What each feature can add to the index, and the largest edge that it has then passed.
    places = [
        [(stride * i, edge) for i, edge in enumerate([-math.inf, *sorted(of)])]
        for stride, of in zip(strides, edges.values(), strict=True)
    ]
    votes = [0] * math.prod(len(place) for place in places)
    for cell in itertools.product(*places):
        passed = {feature: edge for feature, (_, edge) in zip(edges, cell, strict=True)}
        votes[sum(at for at, _ in cell)] = sum(votes_of(tree, passed) for tree in trees)
    return LookUp(score, trees, edges, strides, votes)


def _together(a: LookUp, b: LookUp, room: Room) -> LookUp | None:
    """None if the index or the votes do not fit."""
    edges = {f: a.edges.get(f, set()) | b.edges.get(f, set()) for f in sorted({*a.edges, *b.edges})}
    both = _look_up(a.score, a.trees + b.trees, edges, room)
    return both if both is not None and both.range < room.values else None


def look_ups(trees: list[Tree], score: int, room: Room) -> list[LookUp]:
    """Few look-ups whose votes add up to those of all trees that are no constants."""
    parts: list[LookUp] = []
    for number, tree in enumerate(trees):
        if not isinstance(tree, Split):
            continue
        for piece in _parts(tree, lambda inner: inner, room, number):
            made = _look_up(score, [piece], dict(sorted(edges_of(piece).items())), room)
            if made is None or made.range >= room.values:
                raise InvalidArgument(
                    f"leaves of tree {number} differ by more than {room.values - 1} steps, which is what a value holds: round the model "
                    "to a larger step or with a smaller `largest`, or use parameters with more bits"
                )
            parts.append(made)
    parts.sort(key=lambda part: -len(part.votes))
    done: list[LookUp] = []
    for part in parts:
        best: tuple[float, int, LookUp] | None = None  # it grows the least
        for at, one in enumerate(done):
            both = _together(one, part, room)
            if both is not None and (best is None or len(both.votes) / len(one.votes) < best[0]):
                best = len(both.votes) / len(one.votes), at, both
        if best is None:
            done.append(part)
        else:
            done[best[1]] = best[2]
    return done


def _parts(tree: Tree, whole: Callable[[Tree], Tree], room: Room, number: int) -> list[Tree]:
    """Trees that fit and whose votes add up to those of whole(tree).

    whole(x) has x at some place, and leaves of 0 beside the way there.
    """
    if tree == 0:
        return []
    if room.strides(edges_of(whole(tree))) is not None:
        return [whole(tree)]
    if not isinstance(tree, Split):
        raise InvalidArgument(
            f"tree {number} is too deep: a way to a leaf has more comparisons than an index of {room.values} values holds; fit "
            f"trees with max_depth={room.values.bit_length() - 1}, or use parameters with more bits"
        )
    no = _parts(tree.no, lambda inner: whole(tree._replace(no=inner, yes=0)), room, number)
    yes = _parts(tree.yes, lambda inner: whole(tree._replace(no=0, yes=inner)), room, number)
    return no + yes


def added(found: list[LookUp], room: Room) -> list[list[int]]:
    """Which look-ups are added to one number, so that the sum and its noise fit. Those of one number have the same score."""
    numbers: list[list[int]] = []
    for i in sorted(range(len(found)), key=lambda i: -found[i].range):
        for members in numbers:
            fits = sum(found[j].range for j in members) + found[i].range < room.values
            if fits and found[members[0]].score == found[i].score and len(members) < room.norm2:
                members.append(i)
                break
        else:
            numbers.append([i])
    return numbers
