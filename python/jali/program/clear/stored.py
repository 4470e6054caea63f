"""Graphs of clients as documents, and manifests that have such graphs as bytes.

Counts, shapes and sizes are checked before anything is computed, so that a document of a server
that lies gives an error of Jali's, and nothing else.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import schema
from jali.errors import CorruptData
from jali.program import container
from jali.program.clear.operations import LARGEST, MOST_AXES, MOST_SIZE, OPERATIONS
from jali.program.clear.parts import Parts
from jali.program.clear.steps import MOST_STEPS, Argument, Constant, Step, Steps
from jali.program.clear.values import KINDS

__all__ = ["document", "parts_of", "read", "written"]

_MOST_VALUES = 1 << 16
_MOST_ARGUMENTS = 1 << 10

Array = npt.NDArray[np.float64]

_bound = schema.whole(-LARGEST, LARGEST)
_index = schema.whole(0, _MOST_VALUES)
_argument = schema.record(
    {
        "name": schema.name,
        "shape": schema.listed(schema.whole(1, MOST_SIZE), most=MOST_AXES - 1),
        "kind": schema.one_of(*KINDS),
        "low": _bound,
        "high": _bound,
    }
)
_step = schema.record(
    {
        "op": schema.one_of(*OPERATIONS),
        "inputs": schema.listed(_index, 1, _MOST_ARGUMENTS),
        "how": lambda value: value,
    }
)


def document(parts: Parts, arrays: list[Array]) -> Any:
    """Parts for a file. Their constants are appended to `arrays`."""
    return {
        "before": None if parts.before is None else _document(parts.before, arrays),
        "after": None if parts.after is None else _document(parts.after, arrays),
    }


def _document(steps: Steps, arrays: list[Array]) -> Any:
    return {
        "arguments": [dict(vars(x), shape=list(x.shape)) for x in steps.arguments],
        "constants": [
            {"array": container.encoded(x.array, arrays), "kind": x.kind} for x in steps.constants
        ],
        "steps": [
            {"op": x.op, "inputs": list(x.inputs), "how": container.encoded(x.how, [])}
            for x in steps.steps
        ],
        "outputs": list(steps.outputs),
    }


def parts_of(content: Any, arrays: list[Array]) -> Parts:
    """The parts of a file's document. Raises ValueError."""
    steps = schema.optional(_steps(arrays))
    found = schema.record({"before": steps, "after": steps})(content)
    if found["before"] is None and found["after"] is None:
        raise ValueError("has nothing that a client computes")
    return Parts(found["before"], found["after"])


def _steps(arrays: list[Array]) -> schema.Check:
    constant = schema.record({"array": container.array(arrays), "kind": schema.one_of(*KINDS)})
    fields = schema.record(
        {
            "arguments": schema.listed(_argument_of, 1, _MOST_ARGUMENTS),
            "constants": schema.listed(lambda x: Constant(**constant(x)), most=_MOST_VALUES),
            "steps": schema.listed(_step_of, most=MOST_STEPS),
            "outputs": schema.listed(_index, 1, _MOST_ARGUMENTS),
        }
    )
    return lambda value: Steps(**fields(value))


def _argument_of(value: Any) -> Argument:
    found = Argument(**_argument(value))
    if math.prod(found.shape) > MOST_SIZE or found.low > found.high:
        raise ValueError("must have fewer numbers, and a range whose lower end comes first")
    return found


def _step_of(value: Any) -> Step:
    found = _step(value)
    how = schema.record(OPERATIONS[found["op"]].arguments)(found["how"])
    return Step(found["op"], found["inputs"], how)


# --- manifests ------------------------------------------------------------------------------------

_MANIFEST = {"manifest": lambda value: value, "client": lambda value: value}


def written(manifest: bytes, parts: Parts) -> bytes:
    """The bytes of a manifest with parts. manifest: those of the encrypted part."""
    arrays: list[Array] = []
    content = {"manifest": manifest.hex(), "client": document(parts, arrays)}
    return container.written("graph", content, arrays)


def read(data: bytes | bytearray | memoryview) -> tuple[bytes, Parts]:
    """What ``written`` was given. Raises CorruptData, VersionError and LimitExceeded."""
    content, arrays = container.read("graph", data)
    if not isinstance(content, dict) or "client" not in content:
        raise CorruptData("cannot read these bytes: they are a recorded graph, not a manifest")
    try:
        found = schema.record(_MANIFEST)(content)
        return container.from_hex(found["manifest"]), parts_of(found["client"], arrays)
    except ValueError as error:
        raise CorruptData(f"the bytes are no manifest: {error}") from None
