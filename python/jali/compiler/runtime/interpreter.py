"""The encrypted interpreter: a graph with levels, on ciphertexts."""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jali import ckks
from jali.ckks import EncryptedArray, Evaluator, Plaintext
from jali.compiler.ciphertexts import ciphertext_of, with_precision
from jali.compiler.cost.costs import Costs
from jali.compiler.ir.folded_ops import Approximated, Bootstrap
from jali.compiler.ir.graph import Graph, Node, peak
from jali.compiler.ir.operation import Input, Operation
from jali.compiler.ir.traced_ops import Multiply
from jali.compiler.layout.choose_layouts import check_seen
from jali.compiler.layout.lowered_ops import (
    LoweredProducts,
    Transform,
    equal_work,
    first_copies,
    terms_of,
)
from jali.compiler.layout.terms import Term
from jali.compiler.passes.levels import levels_taken
from jali.compiler.runtime.ciphertext_ops import (
    Encrypted,
    apply_approximation,
    at_level,
    bootstrapped,
    bounded_sum,
    rotated_times_monomial,
    stacked,
    times,
    unstacked,
)
from jali.compiler.runtime.matrices import FlatMatrices, Matrices, Numbers
from jali.compiler.runtime.storage import Kind
from jali.errors import InternalError

__all__ = ["EVALUATIONS", "Interpreter"]

#: Ciphertexts of one array that are computed at once: on a GPU, where launches bind small ones, and
#: on a CPU, where the copies cost more than that gains (a rotation of 8 at N = 2^13 takes 1.5 times
#: as long).
_TOGETHER, _ON_A_CPU = 8, 1


class Interpreter:
    """A graph with its matrices planned for parameters, ready to run on an evaluator.

    memory: bytes for matrices; see jali.compiler.runtime.matrices, also for costs and streams.
    claims: for the nodes of a program that bootstraps, the precision in bits that their results are
        known to have. Ciphertexts carry estimates that grow with every polynomial, far beyond the
        noise; a program that bootstraps would come to refuse its own results.
    numbers: diagonals that interpreters of the same graph share; see
        jali.compiler.runtime.matrices.
    """

    def __init__(
        self,
        graph: Graph,
        params: ckks.Params,
        lanes: int,
        memory: float,
        claims: Mapping[str, float] | None = None,
        numbers: Numbers | None = None,
        costs: Costs | None = None,
        streams: bool = False,
    ) -> None:
        self.graph, self.params, self.lanes, self.memory = graph, params, lanes, memory
        self.claims: Mapping[str, float] = claims or {}
        self._matrices = Matrices(params, lanes, memory, numbers, costs, streams)
        self._biases: dict[tuple[int, int, int], Plaintext] = {}  # by the array, its level and row
        self._last: _Overlay | None = None
        for node in check_seen(graph):
            if isinstance(node.operation, Transform | LoweredProducts):
                self._matrices.add(node)
        self._matrices.settle()
        self.turns = self._matrices.turns  # see Matrices
        self._open = _only_added(graph)

    def with_flat_matrices(self) -> Interpreter:
        """The same with matrices that add the least noise that any have with their diagonals; see
        FlatMatrices."""
        other = copy.copy(self)
        other._matrices = FlatMatrices(self._matrices)
        return other

    @property
    def rotations(self) -> dict[str, int]:
        """The rotations of every transform."""
        return self._matrices.rotations

    @property
    def steps(self) -> set[tuple[int, int]]:
        """The rotations of all products of matrices, each with its level."""
        return self._matrices.steps

    @property
    def encoded_bytes(self) -> dict[str, int]:
        """The bytes of every transform's matrices, if all were encoded."""
        return self._matrices.encoded_bytes

    @property
    def held_bytes(self) -> dict[str, int]:
        """The bytes of every transform's matrices that stay in the memory of the device."""
        return self._matrices.held_bytes

    @property
    def bytes_of(self) -> dict[Kind, int]:
        """The bytes of the matrices of every kind; see jali.compiler.runtime.storage."""
        return self._matrices.bytes_of

    @property
    def least_bytes(self) -> int:
        """With so many bytes of the device, no matrix has to be streamed or made at each use."""
        return self._matrices.least_bytes

    @property
    def storage(self) -> dict[str, tuple[Kind, ...]]:
        """The kinds of every transform's matrices."""
        return self._matrices.storage

    @property
    def extra(self) -> dict[str, int]:
        """What a run of every transform costs more than if all matrices were resident, in the unit
        of the costs."""
        return self._matrices.extra

    @property
    def is_resident(self) -> bool:
        """Whether all matrices stay in the memory of the device, so that a run may be captured."""
        return self._matrices.is_resident

    def prepare(
        self, server: Evaluator, progress: Callable[[int, int], object] | None = None
    ) -> None:
        """Encode the biases, and the matrices that memory allows for. The interpreter then serves
        all evaluators of this one's engine.

        progress: as of Deployment.prepare.
        """
        self._matrices.prepare(server, progress)
        for node in self.graph:
            transform = node.operation
            if isinstance(transform, Transform):
                for term in transform.terms:
                    for exponent in term.monomials(self.lanes):
                        server.explicit.prepare_monomial(exponent)
                level = node.level
                scale = self.params.level(level).scale
                for to, bias in enumerate(transform.bias):
                    key = id(transform.bias), level, to  # iterations of a loop share arrays
                    if key not in self._biases and bias.any():
                        slots = np.repeat(bias, self.lanes)
                        self._biases[key] = server.explicit.encode(slots, level, scale)

    def __call__(
        self,
        server: Evaluator,
        *inputs: Encrypted,
        watch: Callable[[Node, Encrypted], object] | None = None,
        override: Callable[[Node, Sequence[Encrypted]], Encrypted | None] | None = None,
    ) -> list[Encrypted]:
        """The outputs of the graph.

        watch: called with every node and its result, as soon as there is one.
        override: called with every node and its inputs; what it returns, if it is not None, is
            taken for the result.
        """
        given = iter(inputs)
        values: dict[str, Encrypted] = {}
        self._last = None
        last = {name: node.name for node in self.graph for name in node.inputs}
        for node in self.graph:
            sources = [values[name] for name in node.inputs]
            found = next(given) if isinstance(node.operation, Input) else None
            if override is not None:
                found = override(node, sources) or found
            values[node.name] = self.node(server, node, sources) if found is None else found
            if watch is not None:
                watch(node, values[node.name])
            for name in set(node.inputs):
                if last[name] == node.name and name not in self.graph.outputs:
                    del values[name]  # its memory is free for what follows
        self._last = None
        return [values[name] for name in self.graph.outputs]

    def node(
        self,
        server: Evaluator,
        node: Node,
        sources: Sequence[Encrypted],
        only: Sequence[int] | None = None,
    ) -> Encrypted:
        """The result of a node for its inputs.

        only: which of its ciphertexts; None stands for all of them.

        Products that are only added are not relinearised unless `only` asks for them, so that their
        sum is, once.
        """
        if node.name in self._open and only is None:
            start = node.level + levels_taken(node)
            pairs = zip(*sources, strict=True)
            return tuple(at_level(server, a, start) * at_level(server, b, start) for a, b in pairs)
        which = list(range(node.layout.ciphertexts)) if only is None else list(only)
        return EVALUATIONS[type(node.operation)](self, server, node, sources, which)

    def _given(
        self, server: Evaluator, node: Node, sources: Sequence[Encrypted], which: Sequence[int]
    ) -> Encrypted:
        raise InternalError(f"{node.name} is an input, which the client encrypts")

    def _bootstrap(
        self, server: Evaluator, node: Node, sources: Sequence[Encrypted], which: Sequence[int]
    ) -> Encrypted:
        return self.known(node, bootstrapped(server, node, sources[0]))

    def _transform(
        self, server: Evaluator, node: Node, sources: Sequence[Encrypted], which: Sequence[int]
    ) -> Encrypted:
        if (copies := self._rotated_copies(server, node, sources, which)) is not None:
            return self.known(node, copies)
        same = first_copies(node, which)
        found: dict[int, EncryptedArray] = {}
        for group in equal_work(node, [c for c in which if same[c] == c]):
            computed = self._in_stacks(server, node, sources, group, Interpreter._sum)
            found |= zip(group, computed, strict=True)
        return tuple(found[same[c]] for c in which)

    def _in_stacks(
        self,
        server: Evaluator,
        node: Node,
        sources: Sequence[Encrypted],
        which: Sequence[int],
        compute: _Stacked,
    ) -> Encrypted:
        """Ciphertexts of a node's result which take the same work, as many at once as the device
        can make use of."""
        found, most = list[EncryptedArray](), self._most(server)
        for first in range(0, len(which), most):
            part = which[first : first + most]
            found += self._parts(server, node, compute(self, server, node, sources, part), part)
        return tuple(found)

    def _rotated_copies(
        self, server: Evaluator, node: Node, sources: Sequence[Encrypted], which: Sequence[int]
    ) -> list[EncryptedArray] | None:
        """All ciphertexts of a transform that are the rotations of one: twice as many with every
        step. None for other transforms."""
        transform = Transform.of(node)
        if len(transform.terms) > 1 or transform.bias.any():
            return None
        (term,), ((first, *_), *_) = transform.terms, sources
        if (
            len(term.copy_rotations) < 2
            or term.factor != 1
            or list(which) != list(range(len(term.copy_rotations)))
        ):
            return None
        found = [at_level(server, first, node.level)]
        while len(found) < len(term.copy_rotations):
            found += self._rotated(server, found, term.copy_rotations[len(found)])
        return found

    def _rotated(
        self, server: Evaluator, values: Sequence[EncryptedArray], step: int
    ) -> list[EncryptedArray]:
        """All of them rotated by the same number of slots of a lane."""
        most, found = self._most(server), list[EncryptedArray]()
        for first in range(0, len(values), most):
            part = values[first : first + most]
            whole = stacked(server, part).rotate(step * self.lanes)
            found += unstacked(server, whole, len(part))
        return found

    @staticmethod
    def _most(server: Evaluator) -> int:
        return _TOGETHER if server.device == "cuda" else _ON_A_CPU

    def _joined(
        self, server: Evaluator, term: Term, source: Encrypted, level: int, peak: float
    ) -> EncryptedArray:
        """The sum of all ciphertexts of the source, each rotated, of which no number is larger than
        `peak`: half as many with every step."""
        left = [at_level(server, x, level) for x in source]
        step = term.joined[1]
        if not step:
            return functools.reduce(operator.add, left)  # also of products that are still open
        while len(left) > 1:
            peak, moved = 2 * peak, self._rotated(server, left[1::2], step)
            left = [bounded_sum(server, *pair, peak) for pair in zip(left[::2], moved, strict=True)]
            step *= 2
        return left[0]

    def _product(
        self, server: Evaluator, node: Node, sources: Sequence[Encrypted], part: Sequence[int]
    ) -> EncryptedArray:
        first = self._stack(server, node, sources[0], part)
        if node.inputs[0] == node.inputs[1]:  # a square
            return first * first
        return first * self._stack(server, node, sources[1], part)

    def _function(
        self, server: Evaluator, node: Node, sources: Sequence[Encrypted], part: Sequence[int]
    ) -> EncryptedArray:
        by = Approximated.of(node).by
        return apply_approximation(server, by, self._stack(server, node, sources[0], part))

    @staticmethod
    def _stack(
        server: Evaluator, node: Node, source: Encrypted, part: Sequence[int]
    ) -> EncryptedArray:
        """Some ciphertexts of a node's input as one, at the level at which the node takes it."""
        return at_level(
            server, stacked(server, [source[c] for c in part]), node.level + levels_taken(node)
        )

    def _parts(
        self, server: Evaluator, node: Node, whole: EncryptedArray, part: Sequence[int]
    ) -> Iterable[EncryptedArray]:
        """The ciphertexts of a node, with the bias and with what is known of them."""
        if isinstance(node.operation, Transform) and node.operation.bias[list(part)].any():
            each = zip(unstacked(server, whole, len(part)), part, strict=True)
            return self.known(node, [self._biased(server, node, x, c) for x, c in each])
        (known,) = self.known(node, [whole])
        return unstacked(server, known, len(part))

    def known(
        self, node: Node, found: Sequence[EncryptedArray], bits: float | None = None
    ) -> Encrypted:
        """The ciphertexts of a node with what is known of its numbers and their noise.

        bits: their precision, instead of the claim's.
        """
        most = max(peak(node), node.scaling.most or 0.0)  # slots between the numbers may hold more
        bits = self.claims.get(node.name) if bits is None else bits
        made: dict[int, EncryptedArray] = {}  # copies of one ciphertext stay one
        for x in found:
            if id(x) not in made:
                y = x if bits is None else with_precision(x, bits)
                made[id(x)] = y.with_magnitude(node.scaling.rms, peak=most)
        return tuple(made[id(x)] for x in found)

    def _sum(
        self, server: Evaluator, node: Node, sources: Sequence[Encrypted], part: Sequence[int]
    ) -> EncryptedArray:
        """Some ciphertexts of a transform, whose matrices are alike, without the bias."""
        transform = Transform.of(node)
        total: EncryptedArray | None = None
        # By the sums that follow overlays: products whose sum takes them once, and its bounds.
        behind: dict[tuple[object, ...], tuple[EncryptedArray, list[float]]] = {}
        for k, (term, source) in enumerate(zip(transform.terms, sources, strict=True)):
            y = self._term(server, node, k, term, source, part)
            if y is not None and term.turns:
                bounds = self._bounds(node, term, node.inputs[k], part)
                if term.behind in behind:
                    other, others = behind[term.behind]
                    bounds = [a + b for a, b in zip(bounds, others, strict=True)]
                    y = bounded_sum(server, other, y, bounds[0])
                behind[term.behind] = y, bounds
            elif y is not None:
                total = y if total is None else total + y
        for term in transform.terms:
            if term.behind in behind:
                y = self._summed(server, term, *behind.pop(term.behind))
                total = y if total is None else total + y
        if total is None:  # no number of these ciphertexts depends on the inputs
            total = stacked(server, [sources[0][0]] * len(part)) * 0
        return total

    def _biased(
        self, server: Evaluator, node: Node, total: EncryptedArray, to: int
    ) -> EncryptedArray:
        bias = Transform.of(node).bias
        if not bias[to].any():
            return total
        encoded = self._biases.get((id(bias), node.level, to))
        if encoded is None:
            return total + np.repeat(bias[to], self.lanes)
        total = at_level(server, total, encoded.level)
        return EncryptedArray(server, server.explicit.add_plain(ciphertext_of(total), encoded))

    def _sums_of_products(
        self, server: Evaluator, node: Node, sources: Sequence[Encrypted], part: Sequence[int]
    ) -> EncryptedArray:
        return stacked(server, [self._sum_of_products(server, node, sources, c) for c in part])

    def _sum_of_products(
        self, server: Evaluator, node: Node, sources: Sequence[Encrypted], to: int
    ) -> EncryptedArray:
        """Ciphertext `to` of a sum of products of copies. It is relinearised and rescaled once. A
        trial run takes the first products alone."""
        products = LoweredProducts.of(node)
        terms = products.terms
        half, total = len(terms) // 2, None
        for k in range(half if products.sampled is None else products.sampled):
            pair = []
            for side, number in ((0, k), (1, half + k)):
                x = self._term(server, node, number, terms[number], sources[side], [to], side)
                assert x is not None
                pair.append(at_level(server, x, node.level + 1))
            product = pair[0] * pair[1]
            total = product if total is None else total + product
        assert total is not None
        for step in products.sums:
            total = bounded_sum(server, total, total.rotate(step * self.lanes), peak(node))
        return total

    def _term(
        self,
        server: Evaluator,
        node: Node,
        k: int,
        term: Term,
        source: Encrypted,
        part: Sequence[int],
        side: int | None = None,
    ) -> EncryptedArray | None:
        """What a term adds to some ciphertexts, of overlays before the sums that follow.

        side: the number of its source, if it is not that of the term.
        """

        def column(*which: int) -> EncryptedArray:
            return stacked(server, [source[c] for c in which])

        if term.factor is not None and term.picked is None:
            return times(server, column(*part), term.factor)
        name = node.inputs[k if side is None else side]
        source_peak = max(1.0, peak(self.graph[name]))
        bounds = self._bounds(node, term, name, part)
        y: EncryptedArray | None = None
        level = node.level + (0 if term.is_free else 1)
        if term.factor is not None:
            y = self._combined(server, term, source, part, level, source_peak)
            y = times(server, y, term.factor)
        joined: EncryptedArray | None = None
        if term.factor is None and term.joined:
            joined = self._joined(server, term, source, level, source_peak)
            source_peak *= len(term.joined)
        blocks = zip(*(term.columns(to) for to in part), strict=True)
        for which, plan in zip(blocks, self._matrices.of(node.name, k, part[0]), strict=True):
            one = [source[c] for c in which] if joined is None else [joined]
            if term.turns:
                x = self._overlay(server, node, term, one, source_peak)
            else:
                x = stacked(server, one)
            if term.before:
                x = at_level(server, x, level)
            bound = source_peak
            for step in term.before:
                bound *= 2
                x = bounded_sum(server, x, x.rotate(step * self.lanes), bound)
            product = server.linear_transform(plan, x, peak=bounds[0])
            y = product if y is None else y + product
        return y if y is None or term.turns else self._summed(server, term, y, bounds)

    def _bounds(self, node: Node, term: Term, source: str, part: Sequence[int]) -> list[float]:
        """No number of a term is larger in modulus: before its sums, and after each of them.

        Every bound is proven for sources within their peak. What lies between the numbers of a
        source has no weight.
        """
        largest = max(1.0, peak(self.graph[source]))
        return [max(largest * b, 2.0**-20) for b in term.bounds.get(part[0], ())]

    def _summed(
        self, server: Evaluator, term: Term, y: EncryptedArray, bounds: Sequence[float]
    ) -> EncryptedArray:
        """The sums that follow the products of a term."""
        for step in term.traced:
            y = bounded_sum(server, y, y.rotate(step * self.lanes), bounds[0])
        if term.turns:
            y = EncryptedArray(server, server.explicit.twice_real(ciphertext_of(y), bounds[0]))
        for step, bound in zip(term.sums, bounds[1:], strict=True):
            y = bounded_sum(server, y, y.rotate(step * self.lanes), bound)
        return y

    def _combined(
        self,
        server: Evaluator,
        term: Term,
        source: Encrypted,
        part: Sequence[int],
        level: int,
        peak: float,
    ) -> EncryptedArray:
        """The ciphertexts that a term multiplies by its factor: copies of ciphertexts of the
        source, of which no number is larger than `peak`, or sums of them."""
        if term.joined:
            return self._joined(server, term, source, level, peak)
        if term.copy_rotations:
            copies = [at_level(server, source[term.sources_of(to)[0]], level) for to in part]
            turns = [term.copy_rotation(to) * self.lanes for to in part]
            moved = [x.rotate(turn) for x, turn in zip(copies, turns, strict=True)]
            return stacked(server, moved)
        columns = zip(*map(term.sources_of, part), strict=True)
        first, *others = (
            at_level(server, stacked(server, [source[c] for c in which]), level)
            for which in columns
        )
        for count, other in enumerate(others, 2):
            first = bounded_sum(server, first, other, peak * count)
        return first

    def _overlay(
        self,
        server: Evaluator,
        node: Node,
        term: Term,
        sources: Sequence[EncryptedArray],
        peak: float,
    ) -> EncryptedArray:
        """The overlay of ciphertexts of a source, of which no number is larger than `peak`: what
        the diagonals of a term multiply.

        The last overlay is kept, because the gates of a recurrent cell have matrices of the same
        state, one after the other.
        """
        level = node.level + 1
        same = self._last
        if same is not None and same.serves(sources, level, term.turns, peak):
            return at_level(server, same.made, level)
        x = at_level(server, stacked(server, list(sources)), level)
        for count, (step, exponent) in enumerate(
            zip(term.turns, term.monomials(self.lanes), strict=True), 1
        ):
            turned = rotated_times_monomial(server, x, step * self.lanes, exponent)
            x = bounded_sum(server, x, turned, peak * 2**count)
        self._last = _Overlay(tuple(sources), level, term.turns, peak, x)
        return x


#: Computes some ciphertexts of a node's result.
_Evaluation = Callable[
    [Interpreter, Evaluator, Node, Sequence[Encrypted], Sequence[int]], Encrypted
]
#: The same as the vectors of one ciphertext, without the bias; they take the same work.
_Stacked = Callable[
    [Interpreter, Evaluator, Node, Sequence[Encrypted], Sequence[int]], EncryptedArray
]


def _in_stacks(compute: _Stacked) -> _Evaluation:
    return lambda self, server, node, sources, which: self._in_stacks(
        server, node, sources, which, compute
    )


#: How each operation of a lowered graph is evaluated.
EVALUATIONS: Mapping[type[Operation], _Evaluation] = {
    Input: Interpreter._given,
    Transform: Interpreter._transform,
    LoweredProducts: _in_stacks(Interpreter._sums_of_products),
    Multiply: _in_stacks(Interpreter._product),
    Approximated: _in_stacks(Interpreter._function),
    Bootstrap: Interpreter._bootstrap,
}


@dataclass(frozen=True, eq=False)
class _Overlay:
    """An overlay of ciphertexts, with what it depends on."""

    sources: Encrypted
    level: int
    turns: tuple[int, ...]
    peak: float
    made: EncryptedArray

    def serves(
        self, sources: Sequence[EncryptedArray], level: int, turns: tuple[int, ...], peak: float
    ) -> bool:
        """Whether this is the overlay of these ciphertexts, at this level or above."""
        same = [id(x) for x in self.sources] == [id(x) for x in sources]
        return same and self.level >= level and (self.turns, self.peak) == (turns, peak)


def _only_added(graph: Graph) -> set[str]:
    """The products whose only use is the sum of all their ciphertexts, without rotations. They need
    not be relinearised one by one."""
    found = set()
    for node in graph:
        for name, term in zip(node.inputs, terms_of(node), strict=False):
            level = node.level + (0 if term.is_free else 1)
            added = (
                term.joined and not any(term.joined) and isinstance(graph[name].operation, Multiply)
            )
            if added and graph[name].level == level and name not in graph.outputs:
                found.add(name)
    return {name for name in found if len(graph.users(name)) == 1}
