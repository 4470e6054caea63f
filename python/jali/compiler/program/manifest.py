"""What the client of a compiled program knows: parameters, how inputs and outputs lie and are
scaled, which keys are needed.

It holds no weights. The ranges of the inputs, the scales of the outputs and the rotations are the
model's, and the client sees them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core.console import counted_text
from jali._core.refusals import Answering
from jali.ckks import Params
from jali.compiler.cost.keys import Demand
from jali.compiler.ir.graph import Array, Graph, Node, Shape, peak
from jali.compiler.layout.layouts import Layout
from jali.compiler.program import container
from jali.compiler.program.manifest_document import (
    SIGMAS,
    TOLERANCE,
    checked,
    demand_document,
    layout_document,
    params_of,
)
from jali.errors import CorruptData, InvalidArgument

__all__ = ["Manifest", "Port"]

_KIND = "manifest"


@dataclass(frozen=True, eq=False)
class Port:
    """An input or output: its numbers are sent as (number - centre) / radius, at this level.

    shape: of one example. low, high: for each number, what an input may hold; for an output, what
        the examples of the calibration gave, with the margin.
    rms, peak: the root mean square and the largest modulus of what is sent.
    """

    name: str
    shape: Shape
    layout: Layout
    centre: Array
    radius: Array
    low: Array
    high: Array
    rms: float
    peak: float
    level: int

    @classmethod
    def of(cls, node: Node, shape: Shape) -> Port:
        """The port of a node of a graph with levels."""
        attrs, size = node.attrs, (node.size,)
        centre, radius = (np.broadcast_to(attrs[k], size) for k in ("centre", "radius"))
        low, high = attrs["low"] * radius + centre, attrs["high"] * radius + centre
        return cls(
            node.name,
            shape,
            attrs["layout"],
            centre,
            radius,
            low,
            high,
            attrs["rms"],
            peak(node),
            attrs["level"],
        )

    def outside(self, values: Array) -> str | None:
        """What is wrong with numbers (examples, size) of this input that lie outside of its range;
        None if none does.

        It says which of them it is, and not the number: that was to be encrypted.
        """
        beyond = (values < self.low) | (values > self.high)
        if not beyond.any():
            return None
        example, place = (int(k) for k in np.argwhere(beyond)[0])
        where = tuple(int(k) for k in np.unravel_index(place, self.shape))
        outside = int(beyond.sum())
        return (
            f"{self.name}{list(where)} of example {example} is not among the numbers for which the program was calibrated, "
            f"{self.low[place]:g} to {self.high[place]:g}, so that its result would mean nothing. "
            f"{counted_text(outside, 'number')} {'lies' if outside == 1 else 'lie'} outside in all. Compile with examples like these in calibration=, or with "
            "input_range="
        )

    def refused(self, values: Array, noise_bits: float) -> npt.NDArray[np.bool_]:
        """For each example, whether decryption refuses it: a number is beyond the range of the
        calibration by more than noise explains, or is NaN.

        values: of this output (examples, size), in the scale in which they are sent. noise_bits:
            -log2 of the standard deviation of their noise.
        """
        low, high = ((end - self.centre) / self.radius for end in (self.low, self.high))
        beyond = max(0.0, self.peak - max(np.abs(low).max(), np.abs(high).max()))
        room = beyond + self.peak * (TOLERANCE - 1) + SIGMAS * 2.0**-noise_bits
        inside = (low - room <= values) & (values <= high + room)
        return np.asarray(~inside.all(axis=1))

    def is_like(self, other: Port) -> bool:
        """See Manifest.is_like."""
        if (self.shape, self.layout, self.level) != (other.shape, other.layout, other.level):
            return False
        pairs = ((self.centre, other.centre), (self.radius, other.radius))
        return all(np.allclose(a, b, rtol=1e-9, atol=0) for a, b in pairs)


@dataclass(frozen=True, eq=False)
class Manifest(metaclass=Answering):
    """See the module. lanes: how many examples one ciphertext holds.

    >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples)
    >>> [port.shape for port in program.manifest.inputs]
    [(3,)]
    """

    params: Params
    lanes: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    demand: Demand

    @classmethod
    def of(
        cls, graph: Graph, shapes: Sequence[Shape], params: Params, lanes: int, demand: Demand
    ) -> Manifest:
        """The manifest of a graph with levels. shapes: of the outputs."""
        inputs = tuple(Port.of(node, node.shape) for node in graph.inputs)
        outputs = tuple(
            Port.of(graph[name], s) for name, s in zip(graph.outputs, shapes, strict=True)
        )
        return cls(params, lanes, inputs, outputs, demand)

    @cached_property  # every message is checked against it
    def fingerprint(self) -> str:
        """A hash of all of it, which the messages of its client and its server carry."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def is_like(self, other: Manifest) -> bool:
        """Whether ciphertexts of one fit the other: everything is equal, numbers up to rounding."""
        mine, theirs = (self.inputs + self.outputs, other.inputs + other.outputs)
        if len(self.inputs) != len(other.inputs) or len(mine) != len(theirs):
            return False
        return self.params == other.params and all(map(Port.is_like, mine, theirs))

    def to_bytes(self) -> bytes:
        """Bytes from which from_bytes makes the same manifest. They are not authenticated."""
        arrays: list[Array] = []
        document = {
            "params": np.frombuffer(self.params.to_bytes(), np.uint8).astype(np.float64),
            "lanes": self.lanes,
            "inputs": [_port_document(port) for port in self.inputs],
            "outputs": [_port_document(port) for port in self.outputs],
            **demand_document(self.demand),
        }
        return container.written(_KIND, container.encoded(document, arrays), arrays)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write to_bytes() to a path, which is replaced at once or not at all."""
        container.save(file, self.to_bytes())

    @classmethod
    def load(
        cls, file: str | os.PathLike[str], *, security: int = 128, log2_p_fail: float = 0.0
    ) -> Manifest:
        """What save wrote. Raises FileError, and the errors of from_bytes."""
        return cls.from_bytes(container.load(file), security=security, log2_p_fail=log2_p_fail)

    @classmethod
    def from_bytes(
        cls,
        data: bytes | bytearray | memoryview,
        *,
        security: int = 128,
        log2_p_fail: float = 0.0,
    ) -> Manifest:
        """What to_bytes wrote. Raises CorruptData, VersionError, LimitExceeded, and the errors of
        Params.from_bytes.

        security, log2_p_fail: what is demanded of the parameters, see Params.from_bytes.
        """
        content, arrays = container.read(_KIND, data)
        try:
            params = params_of(
                content,
                arrays,
                lambda b: Params.from_bytes(b, security=security, log2_p_fail=log2_p_fail),
            )
            found = checked(content, arrays, params)
        except InvalidArgument:  # of the demands, not of the bytes
            raise
        except ValueError as error:
            raise CorruptData(f"the bytes are no manifest: {error}") from None
        inputs, outputs = (tuple(Port(**port) for port in found[k]) for k in ("inputs", "outputs"))
        return cls(params, found["lanes"], inputs, outputs, found["demand"])


def _port_document(port: Port) -> dict[str, Any]:
    return {
        "name": port.name,
        "shape": list(port.shape),
        **layout_document(port.layout),
        "numbers": [_short(x) for x in (port.centre, port.radius, port.low, port.high)],
        "rms": port.rms,
        "peak": port.peak,
        "level": port.level,
    }


def _short(values: Array) -> Array:
    """Numbers of an array; one number if all are equal."""
    full = np.asarray(values, np.float64)
    if full.strides == (0,):
        return full[:1]
    return full[:1] if np.all(full == full[:1]) else full
