"""Programs of exact integers as files: the traced model and the manifest. The plan follows from
these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jali._core import schema
from jali.compiler.integers.summary import Choice
from jali.compiler.ir.graph import Array, Graph
from jali.compiler.program import graph_file
from jali.errors import CorruptData
from jali.program import container
from jali.program.integers.manifest import Manifest

__all__ = ["ProgramFile", "from_bytes", "to_bytes"]

_KIND = "program of exact integers"
_MOST_BATCH = 1 << 15
_BYTES = schema.whole(0, 1 << 62)


@dataclass(frozen=True, eq=False)
class ProgramFile:
    """What a file of a program holds."""

    graph: Graph
    manifest: Manifest
    batch: int
    choice: Choice


_FILE = schema.record(
    {
        "graph": lambda value: value,
        "manifest": lambda value: value,
        "batch": schema.power_of_two(1, _MOST_BATCH),
        "choice": schema.record(
            {
                "cost": _BYTES,
                "ckks_cost": schema.optional(_BYTES),
                "traffic": _BYTES,
                "ckks_traffic": _BYTES,
            }
        ),
    }
)


def to_bytes(program: ProgramFile) -> bytes:
    """The bytes of a program."""
    arrays: list[Array] = []
    content = {
        "graph": graph_file.document(program.graph, arrays),
        "manifest": program.manifest.to_bytes().hex(),
        "batch": program.batch,
        "choice": dict(vars(program.choice)),
    }
    return container.written(_KIND, content, arrays)


def from_bytes(
    data: bytes | bytearray | memoryview, security: int = 128, log2_p_fail: float = 0.0
) -> ProgramFile:
    """What to_bytes wrote. Raises CorruptData, VersionError and LimitExceeded."""
    content, arrays = container.read(_KIND, data)
    try:
        found = _FILE(content)
        sent = _from_hex(found["manifest"])
    except ValueError as error:
        raise CorruptData(f"the bytes are no program: {error}") from None
    manifest = Manifest.from_bytes(sent, security=security, log2_p_fail=log2_p_fail)
    graph = graph_file.graph_of(found["graph"], arrays)
    known = [(node.name, node.shape) for node in graph.inputs]
    if known != [(port.name, port.shape) for port in manifest.inputs]:
        raise CorruptData("the bytes are no program: its manifest has other inputs than its model")
    return ProgramFile(graph, manifest, found["batch"], Choice(**found["choice"]))


def _from_hex(value: Any) -> bytes:
    if type(value) is not str or not value.isascii():
        raise ValueError("manifest must be bytes in hexadecimal digits")
    try:
        return bytes.fromhex(value)
    except ValueError:
        raise ValueError("manifest must be bytes in hexadecimal digits") from None
