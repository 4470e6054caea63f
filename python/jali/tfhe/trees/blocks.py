"""Which leaves of a tree share an index: a tree is divided into blocks, each of which has few
comparisons.

A block is a part of a tree below some node. Its index has the answers to its own comparisons and,
unless it begins at the root, whether a row comes to the node at all. Leaves that add nothing need
no block.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from jali.tfhe.trees.circuit import Room
from jali.tfhe.trees.ensemble import Question
from jali.tfhe.trees.whole import Whole

__all__ = ["Block", "Chains", "Part", "Path", "chains_of", "divided", "outcomes", "strides"]

#: A leaf's number, 0 for one that adds nothing, or a Split.
Part: TypeAlias = "int | Split"
#: Of each chain, its questions by ascending edges.
Chains: TypeAlias = "dict[tuple[object, ...], tuple[int, ...]]"
#: The questions on the way to a node, and their answers.
Path: TypeAlias = "tuple[tuple[int, bool], ...]"


class Split(NamedTuple):
    """A question, and the parts for the answers no and yes."""

    question: int
    no: Part
    yes: Part


@dataclass(frozen=True)
class Block:
    """A part of a tree and the node at which it begins; 0 is the root."""

    node: int
    part: Part


class _Open(NamedTuple):
    """A block that may still grow: as it is, and seen from the node above which it is looked at.
    chains: of `seen`, None if they do not fit."""

    block: Block
    seen: Part
    chains: Chains | None


def chains_of(part: Part, questions: tuple[Question, ...]) -> Chains:
    """The questions of a part by chains."""
    found: dict[tuple[object, ...], set[int]] = {}
    waiting = [part]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Split):
            found.setdefault(questions[one.question].chain, set()).add(one.question)
            waiting += [one.no, one.yes]
    return {c: tuple(sorted(q, key=lambda k: questions[k].edge)) for c, q in found.items()}


def cells(chains: Chains) -> int:
    """How many combinations of answers there are."""
    return math.prod(len(of) + 1 for of in chains.values())


def outcomes(part: Part, chains: Chains) -> Iterator[tuple[tuple[int, ...], int]]:
    """For every number of yeses in each chain, the leaf's number."""
    for ranks in itertools.product(*(range(len(of) + 1) for of in chains.values())):
        passed = {q for of, rank in zip(chains.values(), ranks, strict=True) for q in of[:rank]}
        one = part
        while isinstance(one, Split):
            one = one.yes if one.question in passed else one.no
        yield ranks, one


@lru_cache(maxsize=4096)
def strides(
    counts: tuple[int, ...], room: Room, reach: bool
) -> tuple[tuple[int, ...], bool] | None:
    """By what the number of yeses of each chain is multiplied in an index, and whether answers that
    are encrypted as `large` are needed. None if they do not fit.

    They are the digits of a mixed radix, in the order with the least noise.
    """
    room_left = room.values // 2 if reach else room.values
    if math.prod(count + 1 for count in counts) > room_left:
        return None
    found: dict[bool, tuple[int, tuple[int, ...]]] = {}
    for order in itertools.permutations(range(len(counts))):
        each, stride = [0] * len(counts), 1
        for i in order:
            each[i], stride = stride, stride * (counts[i] + 1)
        for large in (False, True):
            norm2 = int(reach) + sum(
                n * norm2_of(s, room, large) for n, s in zip(counts, each, strict=True)
            )
            found[large] = min(found.get(large, (1 << 30, ())), (norm2, tuple(each)))
    for large in (False, True):
        norm2, best = found[large]
        if norm2 <= room.norm2:
            return best, large
    return None


def norm2_of(stride: int, room: Room, large: bool) -> int:
    """What an answer of this stride adds to the squared norm."""
    if not large:
        return stride * stride
    return (stride % room.large) ** 2 + (stride // room.large) ** 2


def fits(chains: Chains, room: Room, reach: bool) -> bool:
    """Whether an index has room for them."""
    # Permutations of many chains take long, and more than log2(values) never fit.
    if 1 << len(chains) > room.values:
        return False
    return strides(tuple(len(of) for of in chains.values()), room, reach) is not None


def divided(
    tree: Whole, number_of: list[int], questions: tuple[Question, ...], room: Room
) -> list[Block]:
    """Blocks that cover all leaves whose number is not 0, each once. number_of: of each node, if it
    is a leaf."""
    done: list[Block] = []
    opened: dict[int, _Open] = {}

    def looked_at(block: Block, seen: Part) -> _Open:
        chains = chains_of(seen, questions)
        return _Open(block, seen, chains if fits(chains, room, True) else None)

    for at in tree.reached()[::-1]:
        node = int(at)
        asked = int(tree.question[node])
        if asked < 0:
            if number_of[node]:
                opened[node] = _Open(Block(node, number_of[node]), number_of[node], {})
            continue
        no, yes = (opened.pop(int(of[node]), None) for of in (tree.no, tree.yes))
        if no and yes:
            both = Split(asked, no.seen, yes.seen)
            if no.chains is not None and yes.chains is not None:
                found = looked_at(Block(node, both), both)
                if found.chains is not None or (node == 0 and _at_root(both, questions, room)):
                    opened[node] = found
                    continue
            # The larger one is done, and the other may go on.
            if _size(no) >= _size(yes):
                done.append(no.block)
                no = None
            else:
                done.append(yes.block)
                yes = None
        one = no or yes
        if one is None:
            continue
        seen = Split(asked, one.seen, 0) if no else Split(asked, 0, one.seen)
        if one.chains is None:
            done.append(one.block)
            continue
        opened[node] = looked_at(one.block, seen)
        if opened[node].chains is None and not (node == 0 and _at_root(seen, questions, room)):
            done.append(opened.pop(node).block)
    last = opened.pop(0, None)
    if last is not None:
        done.append(Block(0, last.seen) if _at_root(last.seen, questions, room) else last.block)
    return done


def _at_root(part: Part, questions: tuple[Question, ...], room: Room) -> bool:
    return fits(chains_of(part, questions), room, False)


def _size(one: _Open) -> int:
    return 0 if one.chains is None else cells(one.chains)
