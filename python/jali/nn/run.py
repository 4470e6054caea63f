"""The encrypted interpreter: a graph with levels, on ciphertexts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jali import ckks
from jali.ckks import EncryptedArray, Evaluator, LinearTransform, Plaintext
from jali.nn.graph import Array, Graph, Node
from jali.nn.levels import taken
from jali.nn.lower import Term

__all__ = ["Encrypted", "Machine", "peak"]

#: The ciphertexts of one array.
Encrypted = tuple[EncryptedArray, ...]


def peak(node: Node) -> float:
    """No number of the node is larger in modulus, in its scale."""
    by = node.attrs.get("by")
    error = 0.0 if by is None else by.error
    return float(max(abs(node.attrs["low"]), abs(node.attrs["high"]), 2.0**-20) + error)


class Machine:
    """A graph with its matrices planned for parameters, ready to run on an evaluator.

    memory: bytes for encoded diagonals. Matrices that fit, in the order of computation, are encoded once by ``prepare``; the
    others at every use.
    """

    def __init__(self, graph: Graph, params: ckks.Params, lanes: int, memory: float) -> None:
        self.graph, self.params, self.lanes, self.memory = graph, params, lanes, memory
        self._plans: dict[tuple[str, int], dict[tuple[int, int], LinearTransform]] = {}
        self._biases: dict[tuple[str, int], Plaintext] = {}
        self._resident: list[LinearTransform] = []
        self.rotations: dict[str, int] = {}  # by node, as are these:
        self.encoded_bytes: dict[str, int] = {}  # of all diagonals
        self.held_bytes: dict[str, int] = {}  # of those that stay encoded
        for node in graph:
            if node.op == "transform":
                self._plan(node, memory)

    def _plan(self, node: Node, memory: float) -> None:
        room = memory - sum(self.held_bytes.values())
        turned, encoded, held = 0, 0, 0
        for k, term in enumerate(node.attrs["terms"]):
            plans = {
                pair: LinearTransform(
                    self.params,
                    block.vectors(node.attrs["layout"].slots, self.lanes),
                    level=node.attrs["level"] + 1,
                )
                for pair, block in term.blocks.items()
            }
            self._plans[node.name, k] = plans
            for plan in plans.values():
                turned, encoded = turned + len(plan.rotations), encoded + plan.plaintext_bytes
                if held + plan.plaintext_bytes <= room:
                    self._resident.append(plan)
                    held += plan.plaintext_bytes
            turned += len(term.sums) * node.attrs["layout"].ciphertexts
        self.rotations[node.name] = turned
        self.encoded_bytes[node.name], self.held_bytes[node.name] = encoded, held

    @property
    def is_resident(self) -> bool:
        """Whether all matrices stay encoded."""
        return self.held_bytes == self.encoded_bytes

    def prepare(self, server: Evaluator) -> None:
        """Encode the biases, and the matrices that memory allows for. The machine then belongs to this evaluator."""
        for plan in self._resident:
            server.prepare(plan)
        for node in self.graph:
            if node.op == "transform":
                level = node.attrs["level"]
                scale = self.params.level(level).scale
                for to, bias in enumerate(node.attrs["bias"]):
                    slots = np.repeat(bias, self.lanes)
                    self._biases[node.name, to] = server.explicit.encode(slots, level, scale)

    def __call__(
        self,
        server: Evaluator,
        *inputs: Encrypted,
        watch: Callable[[Node, Encrypted], object] | None = None,
    ) -> list[Encrypted]:
        """The outputs of the graph. watch: called with every node and its result, as soon as there is one."""
        given = iter(inputs)
        values: dict[str, Encrypted] = {}
        last = {name: node.name for node in self.graph for name in node.inputs}
        for node in self.graph:
            sources = [values[name] for name in node.inputs]
            values[node.name] = (
                next(given) if node.op == "input" else self._node(server, node, sources)
            )
            if watch is not None:
                watch(node, values[node.name])
            for name in set(node.inputs):
                if last[name] == node.name and name not in self.graph.outputs:
                    del values[name]  # its memory is free for what follows
        return [values[name] for name in self.graph.outputs]

    def _node(self, server: Evaluator, node: Node, sources: Sequence[Encrypted]) -> Encrypted:
        if node.op in ("multiply", "approximated"):
            start = node.attrs["level"] + taken(node)
            sources = [tuple(_lowered(server, x, start) for x in source) for source in sources]
        if node.op == "multiply":
            found = tuple(a * b for a, b in zip(*sources, strict=True))
        elif node.op == "approximated":
            found = tuple(_approximated(server, node, x) for x in sources[0])
        else:
            found = tuple(
                self._sum(server, node, sources, c) for c in range(node.attrs["layout"].ciphertexts)
            )
        most = peak(node)
        if node.attrs.get("most"):  # slots between the numbers may hold more
            most = max(most, node.attrs["most"])
        return tuple(x.with_magnitude(node.attrs["rms"], peak=most) for x in found)

    def _sum(
        self, server: Evaluator, node: Node, sources: Sequence[Encrypted], to: int
    ) -> EncryptedArray:
        """Ciphertext `to` of the result of matrices."""
        total: EncryptedArray | None = None
        for k, (term, source) in enumerate(zip(node.attrs["terms"], sources, strict=True)):
            y = self._term(server, node, k, term, source, to)
            if y is not None:
                total = y if total is None else total + y
        if total is None:  # no number of this ciphertext depends on the inputs
            total = sources[0][0] * 0
        if not node.attrs["bias"][to].any():
            return total
        encoded = self._biases.get((node.name, to))
        if encoded is None:
            bias: Array = np.repeat(node.attrs["bias"][to], self.lanes)
            return total + bias
        total = _lowered(server, total, encoded.level)
        return EncryptedArray(server, server.explicit.add_plain(total._settled(), encoded))

    def _term(
        self,
        server: Evaluator,
        node: Node,
        k: int,
        term: Term,
        source: Encrypted,
        to: int,
    ) -> EncryptedArray | None:
        if term.factor is not None:
            return source[to] if term.is_free else source[to] * term.factor
        # Every bound is proven for sources within their peak. What lies between the numbers of a source has no weight.
        source_peak = max(1.0, peak(self.graph[node.inputs[k]]))
        bounds = [
            max(source_peak * float(b.max()), 2.0**-20)
            for b in term.bounds(to, node.attrs["layout"].slots)
        ]
        y: EncryptedArray | None = None
        for (row, column), plan in self._plans[node.name, k].items():
            if row == to:
                part = server.linear_transform(plan, source[column], peak=bounds[0])
                y = part if y is None else y + part
        if y is not None:
            for step, bound in zip(term.sums, bounds[1:], strict=True):
                turned = y.rotate(step * self.lanes)
                total = server.explicit.add(y._settled(), turned._settled(), bound)
                y = EncryptedArray(server, total)
        return y


def _lowered(server: Evaluator, x: EncryptedArray, level: int) -> EncryptedArray:
    """x at a level that may be below its own, where products cost less and need smaller keys."""
    if x.level == level:
        return x
    scale = server.params.level(level).scale
    return EncryptedArray(server, server.explicit.adjust(x._settled(), level, scale))


def _approximated(server: Evaluator, node: Node, x: EncryptedArray) -> EncryptedArray:
    by = node.attrs["by"].by
    if isinstance(by, ckks.Polynomial):
        return server.polynomial(x, by, within=(-1.0, 1.0))
    result: EncryptedArray = by(x, within=(-1.0, 1.0))
    return result
