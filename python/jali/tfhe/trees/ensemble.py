"""Trees whose leaves are whole numbers of votes, and what their sums mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Ensemble", "Split", "Tree", "edges_of", "pruned", "votes_of"]

Tree: TypeAlias = "int | Split"


class Split(NamedTuple):
    """A question, ``row[feature] > edge``, and the trees for the answers no and yes."""

    feature: int
    edge: float
    no: Tree
    yes: Tree


@dataclass(frozen=True)
class Ensemble:
    """A classifier: score c is base[c] and `step` times the sum of trees[c].

    is_mean: whether scores are means of the trees' probabilities, for every class but the first, or values without bounds.
    count: of the trees whose mean is taken.
    compared_as: to what numbers of a row are rounded before they are compared with edges.
    """

    trees: list[list[Tree]]
    step: float
    base: npt.NDArray[np.float64]
    is_mean: bool
    count: int
    classes: npt.NDArray[Any]
    features: int
    compared_as: type[np.float32 | np.float64]


def pruned(feature: int, edge: float, no: Tree, yes: Tree) -> Tree:
    """A split, or its branch if both branches are the same."""
    return no if no == yes else Split(feature, edge, no, yes)


def edges_of(tree: Tree) -> dict[int, set[float]]:
    """With what a tree compares each feature."""
    edges: dict[int, set[float]] = {}
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Split):
            edges.setdefault(node.feature, set()).add(node.edge)
            waiting += [node.no, node.yes]
    return edges


def votes_of(tree: Tree, passed: dict[int, float]) -> int:
    """The votes for a row of which the largest edge is known that each feature has passed, -inf for none."""
    node = tree
    while isinstance(node, Split):
        node = node.yes if passed[node.feature] >= node.edge else node.no
    return node
