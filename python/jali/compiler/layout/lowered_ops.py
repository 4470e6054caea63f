"""The operations of lowered graphs, between ciphertexts. Beside them a lowered graph has ``input``,
``multiply``, ``approximated`` and, behind levels, ``bootstrap``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jali.compiler.ir.folded_ops import Approximated, Bootstrap, MatrixSum
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.operation import Input, Operation
from jali.compiler.ir.products import MatrixProduct
from jali.compiler.ir.traced_ops import Multiply
from jali.compiler.layout.terms import Term

__all__ = [
    "LOWERED",
    "LoweredProducts",
    "Transform",
    "conjugated",
    "equal_work",
    "first_copies",
    "terms_of",
]


@dataclass(frozen=True, eq=False)
class Transform(MatrixSum):
    """The sum of terms, one for each source, and a bias (ciphertexts, slots).

    gains: for each source, by how much its noise grows, and whether the result holds a multiple of
        it, number by number; see jali.compiler.noise.array_noise.
    shared: for each source, whether its overlay is that of the transform before.
    """

    name = "transform"
    terms: tuple[Term, ...]
    gains: tuple[tuple[float, bool], ...]
    shared: tuple[bool, ...]

    def depth(self, k: int) -> int:
        return 0 if self.terms[k].is_free else 1


@dataclass(frozen=True, eq=False)
class LoweredProducts(MatrixProduct):
    """A product of encrypted matrices as a sum of products of copies.

    terms: of all left factors, then of all right ones.
    sums: rotations, in slots of a lane, that add the windows of the result.
    sampled: how many of the products are computed, in a dry run; None for all.
    """

    terms: tuple[Term, ...]
    sums: tuple[int, ...]
    sampled: int | None = None


#: The operations of lowered graphs. Each has a cost in planning.node_costs.COSTS and a rule for the
#: noise of its inputs in noise.array_noise.GAINS, and runtime.interpreter.EVALUATIONS computes it.
LOWERED: tuple[type[Operation], ...] = (
    Input,
    Transform,
    Multiply,
    LoweredProducts,
    Approximated,
    Bootstrap,
)


def terms_of(node: Node) -> Sequence[Term]:
    """The terms of a node of a lowered graph; none for operations that have no matrices."""
    operation = node.operation
    return operation.terms if isinstance(operation, Transform | LoweredProducts) else ()


def conjugated(graph: Graph) -> int:
    """The highest level at which a graph with levels conjugates, behind overlays; -1 if it does
    not."""
    nodes = (node for node in graph if any(term.turns for term in terms_of(node)))
    return max((node.level for node in nodes), default=-1)


def equal_work(node: Node, which: Sequence[int]) -> list[list[int]]:
    """The ciphertexts of the result of a transform, grouped by the work that they take but for the
    bias."""
    found: dict[tuple[object, ...], list[int]] = {}
    for to in which:
        work: list[object] = []
        for term in Transform.of(node).terms:
            taken_ = len(term.sources_of(to)) if term.factor is not None else 0
            matrices = tuple(term.digests[to, from_] for from_ in term.columns(to))
            work += [taken_, matrices, term.bounds.get(to), term.copy_rotation(to)]
        found.setdefault(tuple(work), []).append(to)
    return list(found.values())


def first_copies(node: Node, which: Sequence[int]) -> dict[int, int]:
    """For each of these ciphertexts of a transform, the first one that is the same, as
    copies of an array are."""
    transform = Transform.of(node)
    first: dict[tuple[object, ...], int] = {}
    found = {}
    for to in which:
        made: list[object] = [to] if transform.bias[to].any() else []
        for term in transform.terms:
            made.append(
                (term.sources_of(to), term.copy_rotation(to)) if term.factor is not None else (to,)
            )
        found[to] = first.setdefault(tuple(made), to)
    return found
