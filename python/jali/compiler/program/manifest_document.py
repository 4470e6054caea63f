"""The document of a manifest, and what must hold of one that comes from elsewhere.

A server may be wrong, or lie. A client computes with what is checked here, so that no manifest
makes it fail otherwise than with an error of Jali's, work without bound, or give up a check of its
own. Everything is compared with the parameters, which Params.from_bytes has checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jali._core import schema
from jali.ckks import Params
from jali.compiler.cost.keys import BOOTSTRAP_KEYS, Demand
from jali.compiler.ir.graph import Array, Shape
from jali.compiler.layout.layouts import Gathered, Layout, Repeated, Skewed
from jali.compiler.program import container

__all__ = ["SIGMAS", "TOLERANCE", "checked", "demand_document", "layout_document", "params_of"]

TOLERANCE = (
    1.01  #: approximations before the last matrix may carry a result a little beyond its range
)
SIGMAS = 16.0  #: noise beyond so many standard deviations does not occur

_MOST_PORTS = 1024
_MOST_CIPHERTEXTS = 64  # of an input that does not lie as any array does
# Bytes in memory of a request or reply with the fewest examples. As a message it takes at least
# half as many, and message.py reads 2^31.
_MOST_MEMORY = 1 << 32
_MOST_NUMBERS = 1 << 24  # of one array
_MOST_TOGETHER = 1 << 26  # of all arrays
_MOST_GAP = 64
_MOST_CELL = 1 << 16  # channels that share a plane of a grid
_MOST_LITERAL = 1 << 16  # bytes of parameters
_LARGEST = 1e150  # of a number's scale, so that products of two are finite
_ROUNDING = 1e-9
_NOISE_BITS = (1.0, 64.0)  # with less than one bit, a result says nothing

_SHAPE = schema.listed(schema.whole(1, _MOST_NUMBERS), most=8)


def params_of(content: Any, arrays: Sequence[Array], read: Callable[[bytes], Params]) -> Params:
    """The parameters of a manifest's document. read: Params.from_bytes. Raises ValueError, and what
    `read` raises."""
    if type(content) is not dict:
        raise ValueError("must be an object")
    literal = container.array(arrays, _MOST_LITERAL)(content.get("params"))
    if np.any(literal != np.clip(np.floor(literal), 0, 255)):
        raise ValueError("params: must be bytes")
    return read(literal.astype(np.uint8).tobytes())


def checked(content: Any, arrays: Sequence[Array], params: Params) -> dict[str, Any]:
    """What a manifest is made of: lanes, inputs and outputs as the fields of ports, and demand.
    Raises ValueError, which names the place."""
    try:
        lanes = schema.power_of_two(1, params.slots)(content.get("lanes"))
    except ValueError as error:
        raise ValueError(f"lanes: {error}") from None
    port = _port(arrays, params, params.slots // lanes)
    steps = schema.whole(1 - params.slots, params.slots - 1)
    level = schema.whole(0, params.depth)
    found = schema.record(
        {
            "params": _anything,
            "lanes": _anything,
            "inputs": schema.listed(port, 1, _MOST_PORTS),
            "outputs": schema.listed(port, 1, _MOST_PORTS),
            "rotations": schema.listed(schema.pair(steps, level), most=2 * params.slots),
            "product": level,
            "noise_bits": schema.listed(schema.number(*_NOISE_BITS), 1, _MOST_PORTS),
            "bootstrap": _bootstrap(params),
            "restored_bits": schema.number(0, 64),
            "conjugation": schema.whole(-1, params.depth),
            "packings": schema.listed(_packing(params), 1, params.log_n),
        },
        {"conjugation": -1, "packings": (0,)},
    )(content)
    _check_together(found, params)
    demand = Demand(
        dict(found["rotations"]),
        found["product"],
        found["noise_bits"],
        found["bootstrap"],
        found["restored_bits"],
        found["conjugation"],
        found["packings"],
    )
    return {
        "lanes": lanes,
        "inputs": found["inputs"],
        "outputs": found["outputs"],
        "demand": demand,
    }


def _anything(value: Any) -> Any:
    return value


def _check_together(found: Mapping[str, Any], params: Params) -> None:
    """Raises ValueError unless the fields agree with each other."""
    inputs, outputs, noise = found["inputs"], found["outputs"], found["noise_bits"]
    names = [port["name"] for port in inputs]
    if len(set(names)) < len(names):
        raise ValueError("inputs: two have one name")
    if len(noise) != len(outputs):
        raise ValueError("noise_bits: must be a number for each output")
    if len(dict(found["rotations"])) < len(found["rotations"]):
        raise ValueError("rotations: one occurs twice")
    if any(isinstance(port["layout"], Gathered) for port in outputs):
        raise ValueError("outputs: table: an output has none")
    if sum(port["radius"].size for port in (*inputs, *outputs)) > _MOST_TOGETHER:
        raise ValueError("inputs and outputs: they have too many numbers")
    for what, ports in (("inputs", inputs), ("outputs", outputs)):
        level = max(port["level"] for port in ports)
        count = sum(port["layout"].ciphertexts for port in ports)
        if params.ciphertext_bytes(params.slots, level=level) * count > _MOST_MEMORY:
            raise ValueError(f"{what}: they have more ciphertexts than a message holds")
    # Larger numbers than `room` wrap around at the last level, so that decryption would compare
    # with nothing.
    last = params.level(0)
    room = 2.0 ** (last.log_q - math.log2(last.scale) - 1)
    for port, bits in zip(outputs, noise, strict=True):
        if port["peak"] * TOLERANCE + SIGMAS * 2.0**-bits > room:
            raise ValueError("outputs: peak: is larger than any number that decryption gives")


# --- the demand of keys -------------------------------------------------------------------------


def demand_document(demand: Demand) -> dict[str, Any]:
    """The fields of a document that say which keys are needed."""
    return {
        "rotations": [[step, level] for step, level in sorted(demand.rotations.items())],
        "product": demand.product,
        "noise_bits": list(demand.noise_bits),
        "bootstrap": demand.bootstrap,
        "restored_bits": float(demand.restored_bits),
        "conjugation": demand.conjugation,
        "packings": list(demand.packings),
    }


def _bootstrap(params: Params) -> schema.Check:
    def check(value: Any) -> str | int:
        if not params.bootstraps:
            return str(schema.one_of("none")(value))
        take = schema.whole() if type(value) is int else schema.one_of(*BOOTSTRAP_KEYS)
        found: str | int = take(value)
        return found

    return check


def _packing(params: Params) -> schema.Check:
    """A number of slots with which arrays are bootstrapped: 0 for all, or a power of two from 2."""
    sparse = schema.power_of_two(2, params.slots - 1)
    return lambda value: 0 if value == 0 and type(value) is int else sparse(value)


# --- inputs and outputs -------------------------------------------------------------------------


def layout_document(layout: Layout) -> dict[str, Any]:
    """The fields of a port's document that say how its numbers lie."""
    return {
        "laid": list(layout.shape),
        "table": layout.table.astype(np.float64) if isinstance(layout, Gathered) else None,
        "period": layout.period,
        "gap": layout.gap,
        "copies": layout.width if isinstance(layout, Repeated) else None,
        "skew": [layout.count, layout.width] if isinstance(layout, Skewed) else None,
        "grid": list(layout.grid),
    }


def _port(arrays: Sequence[Array], params: Params, slots: int) -> schema.Check:
    """The check of an input or output: it gives the fields of a Port. slots: of one lane."""
    array = container.array(arrays)
    scale = schema.number(0, 1e6)
    fields = schema.record(
        {
            "name": schema.name,
            "shape": _SHAPE,
            "laid": _SHAPE,
            "table": schema.optional(array),
            "period": schema.power_of_two(1, slots),
            "gap": schema.whole(1, _MOST_GAP),
            "copies": schema.optional(schema.power_of_two(1, slots)),
            "skew": schema.optional(schema.listed(schema.power_of_two(1, slots), 2, 2)),
            "grid": _SHAPE,
            "numbers": schema.listed(array, 4, 4),
            "rms": scale,
            "peak": scale,
            "level": schema.whole(0, params.depth),
        },
        {"skew": None, "copies": None},
    )

    def check(value: Any) -> dict[str, Any]:
        found = fields(value)
        size = math.prod(found["laid"])
        if size > _MOST_NUMBERS or math.prod(found["shape"]) != size:
            raise ValueError("shape: has another number of numbers than laid, or too many")
        kept = {k: found[k] for k in ("name", "shape", "rms", "peak", "level")}
        return {**kept, "layout": _layout(found, slots), **_numbers(found, size)}

    return check


def _numbers(found: Mapping[str, Any], size: int) -> dict[str, Array]:
    """Centre, radius, low and high of every number of a port."""
    numbers = found["numbers"]
    if any(x.shape not in ((1,), (size,)) for x in numbers):
        raise ValueError("numbers: must be one number, or one for each of the array")
    if any(np.abs(x).max() > _LARGEST for x in numbers):
        raise ValueError(f"numbers: must be at most {_LARGEST:g}")
    centre, radius, low, high = numbers
    if not (np.all(radius >= 1 / _LARGEST) and np.all(low <= high)):
        raise ValueError("numbers: a radius or a range is empty")
    if not 0 < found["rms"] <= found["peak"] * (1 + _ROUNDING):
        raise ValueError("rms: must be above 0 and at most peak")
    most = found["peak"] * (1 + _ROUNDING) * radius + _ROUNDING * np.abs(centre)
    if np.any(np.abs(low - centre) > most) or np.any(np.abs(high - centre) > most):
        raise ValueError("peak: must hold for all numbers from low to high")
    names = ("centre", "radius", "low", "high")
    return {k: np.broadcast_to(x, (size,)) for k, x in zip(names, numbers, strict=True)}


def _layout(found: Mapping[str, Any], slots: int) -> Layout:
    laid, grid, table, skew = (found[k] for k in ("laid", "grid", "table", "skew"))
    copies = found["copies"]
    if sum(kind is not None for kind in (table, skew, copies)) > 1:
        raise ValueError(
            "skew: an array has a table, is skewed or has copies, one of these at most"
        )
    if table is not None:
        return _gathered(table, laid, slots)
    if copies is not None:
        return _repeated(laid, slots, found["period"], copies)
    if len(grid) != max(0, len(laid) - 1) or math.prod([*laid[:1], *grid]) > _MOST_NUMBERS:
        raise ValueError(
            "grid: must have the sizes of all axes but the first, and not too many numbers"
        )
    if skew is not None:
        return _skewed(laid, slots, *skew)
    layout = Layout(laid, slots, found["period"], found["gap"], grid)
    if layout.gap ** len(grid) > _MOST_CELL:
        raise ValueError("gap: is too large for so many axes")
    if layout.ciphertexts == 1 and layout.extent > layout.period:
        raise ValueError("period: must be as long as the array")
    if layout.ciphertexts > 1 and layout.period != slots:
        raise ValueError("period: an array of several ciphertexts does not repeat")
    if not layout.is_apart:
        raise ValueError("laid: two numbers lie in one slot")
    return layout


def _repeated(laid: Shape, slots: int, period: int, width: int) -> Repeated:
    extent = math.prod(laid) * width
    if extent > period and (period != slots or extent > _MOST_NUMBERS):
        raise ValueError("copies: the array has more of them than there is room for")
    return Repeated(laid, slots, period, width=width)


def _skewed(laid: Shape, slots: int, count: int, width: int) -> Skewed:
    if len(laid) != 2 or not 1 < count <= _MOST_CIPHERTEXTS:
        raise ValueError("skew: an array of this shape is not skewed")
    if laid[1] > count * width or laid[0] * width > slots:
        raise ValueError("skew: the array has more rows or columns than there is room for")
    return Skewed(laid, slots, slots, 1, laid[1:], count, width)


def _gathered(table: Array, laid: Shape, slots: int) -> Gathered:
    size = math.prod(laid)
    if table.ndim != 2 or table.shape[1] != slots or len(table) > _MOST_CIPHERTEXTS:
        raise ValueError("table: has other sizes than the ciphertexts")
    if size > table.size or not np.all((table >= -1) & (table < size) & (table == np.floor(table))):
        raise ValueError("table: names numbers that the array does not have")
    whole = table.astype(np.int64)
    if not np.bincount(whole[whole >= 0], minlength=size).all():
        raise ValueError("table: leaves out a number")
    return Gathered(laid, slots, slots, table=whole)
