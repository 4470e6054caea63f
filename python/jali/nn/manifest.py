"""What the client of a compiled program knows: parameters, how inputs and outputs lie and are scaled, which keys are needed.

It holds no weights. The ranges of the inputs, the scales of the outputs and the rotations are the model's, and the client sees them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core.console import counted_text
from jali.ckks import Params
from jali.errors import CorruptData
from jali.nn import files
from jali.nn.graph import Array, Graph, Node, Shape
from jali.nn.keys import BOOTSTRAP_KEYS, Demand
from jali.nn.layout import Gathered, Layout, Skewed
from jali.nn.run import peak

__all__ = ["Manifest", "Port"]

_KIND = "manifest"
_MOST_CIPHERTEXTS = 64  # of an input that does not lie as any array does
_MOST_NUMBERS = 1 << 26  # of all inputs and outputs
_TOLERANCE = (
    1.01  # approximations before the last matrix may carry a result a little beyond its range
)
_SIGMAS = 16.0  # noise beyond so many standard deviations does not occur


@dataclass(frozen=True, eq=False)
class Port:
    """An input or output: its numbers are sent as (number - centre) / radius, at this level.

    shape: of one example. low, high: for each number, what an input may hold; for an output, what the examples of the calibration gave, with the margin.
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
        """What is wrong with numbers (examples, size) of this input that lie outside of its range; None if none does."""
        beyond = (values < self.low) | (values > self.high)
        if not beyond.any():
            return None
        example, place = (int(k) for k in np.argwhere(beyond)[0])
        where = tuple(int(k) for k in np.unravel_index(place, self.shape))
        outside = int(beyond.sum())
        return (
            f"{self.name}{list(where)} of example {example} is {values[example, place]:g}, and the program was calibrated for "
            f"numbers from {self.low[place]:g} to {self.high[place]:g}, so that its result would mean nothing. "
            f"{counted_text(outside, 'number')} {'lies' if outside == 1 else 'lie'} outside in all. Compile with examples like these in calibration=, or with "
            "input_range="
        )

    def refused(self, values: Array, noise_bits: float) -> npt.NDArray[np.bool_]:
        """For each example, whether decryption refuses it: a number is beyond the range of the calibration by more than noise explains, or is NaN.

        values: of this output (examples, size), in the scale in which they are sent. noise_bits: -log2 of the standard deviation of their noise.
        """
        largest = np.abs(values).max(axis=1, initial=0.0)
        return np.asarray(~(largest <= self.peak * _TOLERANCE + _SIGMAS * 2.0**-noise_bits))

    def is_like(self, other: Port) -> bool:
        """See Manifest.is_like."""
        if (self.shape, self.layout, self.level) != (other.shape, other.layout, other.level):
            return False
        pairs = ((self.centre, other.centre), (self.radius, other.radius))
        return all(np.allclose(a, b, rtol=1e-9, atol=0) for a, b in pairs)


@dataclass(frozen=True, eq=False)
class Manifest:
    """See the module. lanes: how many examples one ciphertext holds."""

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
            "rotations": [[step, level] for step, level in sorted(self.demand.rotations.items())],
            "product": self.demand.product,
            "noise_bits": list(self.demand.noise_bits),
            "bootstrap": self.demand.bootstrap,
            "restored_bits": float(self.demand.restored_bits),
            "conjugation": self.demand.conjugation,
            "packings": list(self.demand.packings),
        }
        return files.written(_KIND, files.encoded(document, arrays), arrays)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write to_bytes() to a path, which is replaced at once or not at all."""
        files.save(file, self.to_bytes())

    @classmethod
    def load(cls, file: str | os.PathLike[str], *, security: int = 128) -> Manifest:
        """What save wrote. Raises FileError, and the errors of from_bytes."""
        return cls.from_bytes(files.load(file), security=security)

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, *, security: int = 128) -> Manifest:
        """What to_bytes wrote. Raises CorruptData, VersionError, LimitExceeded, and the errors of Params.from_bytes.

        security: the least that is accepted, see Params.from_bytes.
        """
        document = files.decoded(*files.read(_KIND, data))
        try:
            literal = document["params"].astype(np.uint8).tobytes()
            params = Params.from_bytes(literal, security=security)
            sizes = (_sizes(p["laid"]) for k in ("inputs", "outputs") for p in document[k])
            if sum(int(np.prod(shape)) for shape in sizes) > _MOST_NUMBERS:
                raise ValueError("its inputs and outputs hold too many numbers")
            manifest = cls(
                params,
                _whole(document["lanes"], 1, params.slots),
                tuple(_port(p, params, document["lanes"]) for p in document["inputs"]),
                tuple(_port(p, params, document["lanes"]) for p in document["outputs"]),
                Demand(
                    {
                        _whole(step, 1 - params.slots, params.slots): _whole(level, 0, params.depth)
                        for step, level in document["rotations"]
                    },
                    _whole(document["product"], 0, params.depth),
                    tuple(float(bits) for bits in document["noise_bits"]),
                    _keys(document["bootstrap"], params),
                    float(document["restored_bits"]),
                    _whole(document.get("conjugation", -1), -1, params.depth),
                    _packings(document.get("packings", (0,)), params),
                ),
            )
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise CorruptData(f"the bytes are no manifest: {error}") from None
        if manifest.lanes & (manifest.lanes - 1) or not manifest.outputs:
            raise CorruptData("the bytes are no manifest: its lanes or outputs are wrong")
        return manifest


def _port_document(port: Port) -> dict[str, Any]:
    layout = port.layout
    return {
        "name": port.name,
        "shape": list(port.shape),
        "laid": list(layout.shape),
        "table": layout.table.astype(np.float64) if isinstance(layout, Gathered) else None,
        "period": layout.period,
        "gap": layout.gap,
        "skew": [layout.count, layout.width] if isinstance(layout, Skewed) else None,
        "grid": list(layout.grid),
        "numbers": [_short(x) for x in (port.centre, port.radius, port.low, port.high)],
        "rms": port.rms,
        "peak": port.peak,
        "level": port.level,
    }


def _short(values: Array) -> Array:
    """Numbers of an array; one number if all are equal."""
    full = np.asarray(values, np.float64)
    return full[:1] if np.all(full == full[:1]) else full


def _whole(value: Any, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{value!r} is no whole number from {least} to {most}")
    return value


def _keys(value: Any, params: Params) -> str | int:
    if type(value) is int and params.bootstraps:
        return _whole(value, 0, 1 << 60)
    if value not in BOOTSTRAP_KEYS or (value != "none" and not params.bootstraps):
        raise ValueError("it asks for keys that its parameters do not have")
    return str(value)


def _packings(values: Any, params: Params) -> tuple[int, ...]:
    found = tuple(_whole(value, 0, params.slots - 1) for value in values)
    if not 1 <= len(found) <= params.log_n or any(n == 1 or n & (n - 1) for n in found):
        raise ValueError("it bootstraps with numbers of slots that are none")
    return found


def _sizes(values: Iterable[Any]) -> Shape:
    shape = tuple(_whole(v, 1, 1 << 24) for v in values)
    if len(shape) > 8 or np.prod(shape, dtype=np.float64) > 1 << 24:
        raise ValueError(f"a shape of {len(shape)} axes is too large")
    return shape


def _port(document: dict[str, Any], params: Params, lanes: int) -> Port:
    slots = params.slots // lanes
    shape, laid, grid = (_sizes(document[k]) for k in ("shape", "laid", "grid"))
    gap, period = _whole(document["gap"], 1, 64), _whole(document["period"], 1, slots)
    table = document["table"]
    layout = Layout(laid, slots, period, gap, grid)
    skew = document.get("skew")
    if skew is not None:
        count, width = (_whole(v, 1, slots) for v in skew)
        layout = Skewed(laid, slots, slots, 1, laid[1:], count, width)
    if table is not None:
        layout = _gathered(table, laid, slots)
    size = int(np.prod(laid))
    numbers = [_full(x, size) for x in document["numbers"]]
    _sizes([*laid[:1], *grid])
    fits = table is not None or len(grid) == max(0, len(laid) - 1)
    if not fits or len(numbers) != 4 or np.prod(shape) != size:
        raise ValueError("an array does not fit its layout")
    if skew is not None:
        _check_skewed(layout)
    elif table is None:
        _check_addresses(layout)
    centre, radius, low, high = numbers
    rms, peak = float(document["rms"]), float(document["peak"])
    if not (np.all(radius > 0) and np.all(low <= high) and 0 < rms < 1e6 and 0 < peak < 1e6):
        raise ValueError("its scales are no scales")
    level = _whole(document["level"], 0, params.depth)
    name = document["name"]
    if not isinstance(name, str):
        raise TypeError("a name is a string")
    return Port(name, shape, layout, centre, radius, low, high, rms, peak, level)


def _full(values: Array, size: int) -> Array:
    """What _short was given."""
    if values.shape not in ((1,), (size,)):
        raise ValueError("an array does not fit its layout")
    return np.broadcast_to(values, (size,))


def _check_addresses(layout: Layout) -> None:
    addresses = layout.addresses
    if len(np.unique(addresses)) < len(addresses) or layout.slots % layout.period:
        raise ValueError("two numbers lie in one slot")
    if layout.ciphertexts == 1 and int(addresses.max()) >= layout.period:
        raise ValueError("an array is longer than its period")
    if layout.ciphertexts > 1 and layout.period != layout.slots:
        raise ValueError("an array of several ciphertexts does not repeat")


def _check_skewed(layout: Layout) -> None:
    assert isinstance(layout, Skewed)
    if len(layout.shape) != 2 or not 1 < layout.count <= _MOST_CIPHERTEXTS:
        raise ValueError("an array of its shape is not skewed")
    (rows, columns), width = layout.shape, layout.width
    if (layout.count * width) & (layout.count * width - 1) or columns > layout.count * width:
        raise ValueError("the chunks of a skewed array are too small")
    if rows * width > layout.slots:
        raise ValueError("a skewed array has more rows than slots for them")


def _gathered(table: Array, shape: Shape, slots: int) -> Gathered:
    whole, size = table.astype(np.int64), int(np.prod(shape))
    if table.ndim != 2 or table.shape[1] != slots or not 1 <= len(table) <= _MOST_CIPHERTEXTS:
        raise ValueError("the table of an input has other sizes than its ciphertexts")
    if np.any(whole != table) or whole.min() < -1 or whole.max() >= size:
        raise ValueError("the table of an input names numbers that it does not have")
    return Gathered(shape, slots, slots, table=whole)
