"""What the client of a program of exact integers knows: parameters, where numbers lie and in which
ranges, which keys are needed.

It holds no weights. The ranges of the inputs and of the results and the rotations are the model's,
and the client sees them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from jali._core import files
from jali._core.refusals import Answering
from jali._core.view import View
from jali.discrete import Ciphertext, Params
from jali.errors import CorruptData
from jali.program.demand import ClientCost, KeyCost
from jali.program.integers import stored
from jali.program.integers.port import Port

__all__ = ["Manifest"]

_MADE_A_SECOND = 100e6  # bytes of keys, by one thread


@dataclass(frozen=True, eq=False)
class Manifest(metaclass=Answering):
    """See the module.

    layout: "columns", in which each number of an example has a vector of its own, and example k of
        a ciphertext lies in slot k of all; or "rows", in which the numbers of an example lie beside
        each other.
    lanes: how many examples one ciphertext holds.
    rotations, relinearise: the keys that the program uses.

    >>> examples = np.arange(60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples, scheme="discrete")
    >>> manifest = nn.integers.Manifest.from_bytes(program.manifest.to_bytes())
    >>> [port.shape for port in manifest.inputs], manifest.outputs[0].scale
    ([(3,)], 1)
    """

    params: Params
    layout: str
    lanes: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    rotations: tuple[int, ...]
    relinearise: bool

    @cached_property  # every message is checked against it
    def fingerprint(self) -> str:
        """A hash of all of it, which the messages of its client and its server carry."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def shape(self, port: Port) -> tuple[int, ...]:
        """The shape of the array that a ciphertext of a port holds."""
        if self.layout == "columns":
            return port.size, self.lanes
        return self.lanes, *port.shape

    def place(self, port: Port) -> View:
        """Where the numbers of an input lie in its ciphertext."""
        return View.dense(self.shape(port), self.params.slots // 2)

    def vectors(self, port: Port) -> int:
        """How many vectors the ciphertext of a port has, if its numbers lie densely."""
        return (self.place(port).vectors + 1) // 2

    @property
    def key_cost(self) -> KeyCost:
        """What the program's keys cost its client: how many there are, their bytes, of which at
        most so many are sent, and about the time to make them. Nothing is made."""
        made = self.params.key_bytes(list(self.rotations), self.relinearise)
        count = len(self.rotations) + bool(self.rotations) + self.relinearise
        return KeyCost(count, made, made, made / _MADE_A_SECOND)

    @property
    def client_cost(self) -> ClientCost:
        """What the program costs its client besides keys: memory for itself, a request and a reply.

        >>> examples = np.arange(60).reshape(20, 3)
        >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples, scheme="discrete")
        >>> program.manifest.client_cost.request < 1 << 20
        True
        """
        request, reply = (self._bytes(ports) for ports in (self.inputs, self.outputs))
        return ClientCost(self.params.ciphertext_bytes(), request, reply, self.lanes)

    def _bytes(self, ports: Sequence[Port]) -> int:
        return sum(self.params.ciphertext_bytes(self.vectors(port)) for port in ports)

    def fits(self, port: Port, one: Ciphertext, *, is_input: bool) -> bool:
        """Whether a ciphertext is what this program's client encrypts for an input, or what its
        server computes for an output."""
        if one.params != self.params or one.wraps or one.shape != self.shape(port):
            return False
        if not is_input:
            return one.range == port.range
        dense = self.place(port)
        return (
            one.range == port.sent
            and one.level == self.params.depth
            and one.view == dense.as_tuple()
        )

    def to_bytes(self) -> bytes:
        """Bytes from which from_bytes makes the same manifest. They are not authenticated."""
        content = {
            "params": self.params.to_bytes().hex(),
            "layout": self.layout,
            "lanes": self.lanes,
            "inputs": [stored.port_document(port) for port in self.inputs],
            "outputs": [stored.port_document(port) for port in self.outputs],
            "rotations": list(self.rotations),
            "relinearise": self.relinearise,
        }
        return stored.written("manifest", [stored.document(content)])

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write to_bytes() to a path, which is replaced at once or not at all."""
        files.save(file, self.to_bytes())

    @classmethod
    def load(
        cls, file: str | os.PathLike[str], *, security: int = 128, log2_p_fail: float = 0.0
    ) -> Manifest:
        """What save wrote. Arguments as of from_bytes. Raises FileError, and the errors of
        from_bytes."""
        data = files.load(file, stored.MAX_BYTES)
        return cls.from_bytes(data, security=security, log2_p_fail=log2_p_fail)

    @classmethod
    def from_bytes(
        cls,
        data: bytes | bytearray | memoryview,
        *,
        security: int = 128,
        log2_p_fail: float = 0.0,
    ) -> Manifest:
        """What to_bytes wrote.

        security: what is demanded of the parameters, see discrete.Params.from_bytes.
        log2_p_fail: as of nn.Manifest.from_bytes. Results of exact integers are right but with
            probability 2^-128, whatever is demanded.

        Raises CorruptData, VersionError, LimitExceeded, and the errors of Params.from_bytes.
        """
        made = cls(**stored.read(data, security))
        made.check()
        return made

    def check(self) -> None:
        """Raises CorruptData for ranges that the modulus does not tell apart, for more examples than
        a ciphertext holds, and for rotations that there are not."""
        params = self.params
        ranges = [port.sent for port in self.inputs] + [port.range for port in self.outputs]
        if params.packing != "slots":
            raise CorruptData("the bytes are no manifest: its parameters have no slots")
        if any(high - low >= params.modulus for low, high in ranges):
            raise CorruptData("the bytes are no manifest: a range is wider than the modulus")
        whole = self.layout == "columns"
        if self.lanes > params.slots or (whole and self.lanes != params.slots):
            raise CorruptData("the bytes are no manifest: it has another number of examples")
        if any(abs(step) >= params.slots for step in self.rotations):
            raise CorruptData("the bytes are no manifest: a rotation is longer than a vector")
