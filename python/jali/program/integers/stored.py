"""The bytes of manifests and messages of programs of exact integers, in the frame that every object
of Jali has (docs/format.md). A manifest is a JSON document in UTF-8."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from jali._core import files, schema
from jali._core.columns import printable
from jali._jali import program as _program
from jali.discrete import Params
from jali.errors import CorruptData
from jali.program.integers.port import Port

__all__ = [
    "LARGEST",
    "MOST_LANES",
    "MOST_NUMBERS",
    "payload",
    "port_document",
    "port_of",
    "read",
    "written",
]

MAX_BYTES = 1 << 28
LARGEST = 1 << 62  # of a number
MOST_NUMBERS = 1 << 20  # of an example
MOST_LANES = 1 << 20
_MOST_PORTS = 1 << 10
_MOST_KEYS = 1 << 12
_MOST_AXES = 32

_number = schema.whole(-LARGEST, LARGEST)
_numbers = schema.listed(_number, 1, MOST_NUMBERS)
_port = schema.record(
    {
        "name": schema.name,
        "shape": schema.listed(schema.whole(1, MOST_NUMBERS), most=_MOST_AXES),
        "low": _numbers,
        "high": _numbers,
        "scale": schema.whole(1, LARGEST),
        "columns": schema.listed(schema.name, most=MOST_NUMBERS),
    }
)


def port_document(port: Port) -> dict[str, Any]:
    """A port for a file."""
    return {
        "name": port.name,
        "shape": list(port.shape),
        "low": port.low.tolist(),
        "high": port.high.tolist(),
        "scale": port.scale,
        "columns": list(port.columns),
    }


def port_of(value: Any) -> Port:
    """The port of a file. Raises ValueError for anything that port_document does not give."""
    found = _port(value)
    shape, columns = tuple(found["shape"]), tuple(found["columns"])
    low, high = (np.array(found[name], np.int64) for name in ("low", "high"))
    port = Port(found["name"], shape, low, high, found["scale"], columns)
    if port.size > MOST_NUMBERS or not len(low) == len(high) == port.size:
        raise ValueError("must have a range for each of its numbers")
    if (low > high).any():
        raise ValueError("must have ranges whose lower end comes first")
    if columns and (not shape or len(columns) != shape[-1]):
        raise ValueError("must have a name for each number of its last axis")
    if any(printable(name) != name for name in columns):
        raise ValueError("must have names that can be printed")
    return port


_DOCUMENT = schema.record(
    {
        "params": lambda value: value,
        "layout": schema.one_of("columns", "rows"),
        "lanes": schema.whole(1, MOST_LANES),
        "inputs": schema.listed(port_of, 1, _MOST_PORTS),
        "outputs": schema.listed(port_of, 1, _MOST_PORTS),
        "rotations": schema.listed(schema.whole(-(1 << 20), 1 << 20), most=_MOST_KEYS),
        "relinearise": schema.flag,
    }
)


def written(kind: str, parts: list[bytes]) -> bytes:
    """The bytes of a "manifest" or a "message"."""
    return _program.payload_to_bytes("discrete", kind, parts)


def payload(kind: str, data: bytes | bytearray | memoryview, max_bytes: int) -> memoryview:
    """What the frame of bytes holds. Raises CorruptData, VersionError and LimitExceeded."""
    view = files.octets(data)
    offset, count = _program.payload_of(view, "discrete", kind, max_bytes)
    return view[offset : offset + count]


def document(content: dict[str, Any]) -> bytes:
    """The text of a document."""
    return json.dumps(content, sort_keys=True, allow_nan=False).encode()


def read(data: bytes | bytearray | memoryview, security: int) -> dict[str, Any]:
    """The fields of a manifest's bytes.

    security: what is demanded of the parameters.

    Raises CorruptData, VersionError, LimitExceeded, and the errors of Params.from_bytes.
    """
    text = bytes(payload("manifest", data, MAX_BYTES))
    try:
        found: dict[str, Any] = _DOCUMENT(schema.parsed(text))
        params = params_bytes(found["params"])
    except ValueError as error:
        raise CorruptData(f"the bytes are no manifest: {error}") from None
    found["params"] = Params.from_bytes(params, security=security)
    for name in ("inputs", "outputs", "rotations"):
        found[name] = tuple(found[name])
    return found


def params_bytes(value: Any) -> bytes:
    """The bytes of parameters that stand in a document. Raises ValueError."""
    if type(value) is not str or len(value) > 1 << 16 or not value.isascii():
        raise ValueError("params must be bytes in hexadecimal digits")
    return bytes.fromhex(value)
