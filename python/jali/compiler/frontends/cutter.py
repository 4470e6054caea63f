"""Where a model is cut into what its client computes before encrypting, what its server computes on
encrypted numbers, and what the client computes after decrypting.

Before: what looks up, compares or counts whole numbers and flags of the inputs, as far as it is
known without any result of the server; it ends where sums and products with weights begin. After:
what follows the first operation that a server could not compute, or would approximate, if nothing
but such operations, moves and arithmetic follows.

A model is a list of operations, of any package, that take and give values by names. The reader of
the package's models says what the operations are: it overrides the functions of Cutter that raise
NotImplementedError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jali.compiler.frontends.client_values import Clear

__all__ = ["Cutter"]

Operation = Any  # of the package's models


class Cutter:
    """A model that is being cut.

    nodes: its operations, in order.
    outputs: the names of its results.
    clear: values that the client could compute before encrypting, by their names.
    of: the operation that gives each value, by its name; users: the operations that take it. They
        are there after connect().
    """

    def __init__(self) -> None:
        self.nodes: list[Operation] = []
        self.outputs: list[str] = []
        self.clear: dict[str, Clear] = {}
        self.of: dict[str, Operation] = {}
        self.users: dict[str, list[Operation]] = {}

    # --- what operations are ----------------------------------------------------------------------

    def taken(self, node: Operation) -> Sequence[str]:
        """The names of all that an operation takes."""
        raise NotImplementedError

    def given(self, node: Operation) -> Sequence[str]:
        """The names of its results."""
        raise NotImplementedError

    def is_known(self, name: str) -> bool:
        """Whether a value is one of the model."""
        raise NotImplementedError

    def starts(self, node: Operation) -> bool:
        """Whether the client computes an operation whose results are clear, and with it all that
        leads to it."""
        raise NotImplementedError

    def goes_through(self, node: Operation) -> bool:
        """Whether the part before goes on through an operation, if the client has all that it
        takes: it moves numbers, or makes one array of several."""
        raise NotImplementedError

    def may_end(self, node: Operation) -> bool:
        """Whether a client can compute the operation."""
        raise NotImplementedError

    def is_head(self, node: Operation) -> bool:
        """Whether a server does not compute the operation, or approximates it."""
        raise NotImplementedError

    # --- the parts --------------------------------------------------------------------------------

    def varying(self, node: Operation) -> list[str]:
        """The names of what an operation takes that is none of the model's."""
        return [name for name in self.taken(node) if not self.is_known(name)]

    def connect(self) -> None:
        """Finds out which operations give and take each value."""
        self.of = {name: node for node in self.nodes for name in self.given(node)}
        self.users = {}
        for node in self.nodes:
            for name in self.taken(node):
                self.users.setdefault(name, []).append(node)

    def before(self) -> dict[str, Operation]:
        """The names of the values that the client computes before, in order, with the operations
        that give them."""
        chosen: set[int] = set()
        nodes = [node for node in self.nodes if any(n in self.clear for n in self.given(node))]
        for node in nodes:
            if self.starts(node):
                self._with_sources(node, chosen)
        for node in nodes:
            if id(node) not in chosen and self._goes_on(node, chosen):
                chosen.add(id(node))
        return {
            name: node
            for node in nodes
            if id(node) in chosen
            for name in self.given(node)
            if name in self.clear
        }

    def _with_sources(self, node: Operation, chosen: set[int]) -> None:
        """Adds an operation to the chosen ones, and all that lead to it."""
        pending = [node]
        while pending:
            one = pending.pop()
            if id(one) in chosen:
                continue
            chosen.add(id(one))
            pending += [self.of[n] for n in self.taken(one) if n in self.clear and n in self.of]

    def _goes_on(self, node: Operation, chosen: set[int]) -> bool:
        """Whether the part before goes on through an operation: at least one value that it takes is
        given by a chosen operation, and the others are inputs of whole numbers or flags."""
        varying = self.varying(node)
        made = [id(self.of[n]) in chosen for n in varying if n in self.of]
        rest = [self.clear[n].kind != "real" for n in varying if n not in self.of]
        return any(made) and all(made) and all(rest) and self.goes_through(node)

    def after(self, kept: Sequence[Operation]) -> list[Operation]:
        """The operations that the client computes after decrypting, in order.

        kept: those whose results are not clear.
        """
        encrypted = {name for node in kept for name in self.given(node)}
        last: set[int] = set()
        for node in reversed(kept):
            users = [user for name in self.given(node) for user in self.users.get(name, ())]
            varying = self.varying(node)
            if (
                all(id(user) in last for user in users)
                and self.may_end(node)
                and varying
                and all(name in encrypted for name in varying)
                and (users or any(name in self.outputs for name in self.given(node)))
            ):
                last.add(id(node))
        found, made = list[Operation](), set[str]()
        for node in kept:
            if id(node) not in last:
                continue
            if self.is_head(node) or made & set(self.taken(node)):
                found.append(node)
                made |= set(self.given(node))
        return found

    def ends(self, after: Sequence[Operation]) -> list[str]:
        """The names of the values that are decrypted."""
        made = {name for node in after for name in self.given(node)}
        taken = [name for node in after for name in self.varying(node)]
        wanted = [name for name in [*taken, *self.outputs] if name not in made]
        return list(dict.fromkeys(wanted))

    def middle(
        self, ends: Iterable[str], before: Mapping[str, Any], after: Sequence[Operation]
    ) -> list[Operation]:
        """The operations that the server computes, in order."""
        last = {id(node) for node in after}
        wanted, found = set(ends), list[Operation]()
        for node in reversed(self.nodes):
            made = set(self.given(node))
            if id(node) in last or not made & wanted:
                continue
            if any(self.is_known(name) or name in before for name in made):
                continue
            found.append(node)
            wanted |= set(self.taken(node))
        return found[::-1]
