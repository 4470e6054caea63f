"""Programs, recorded graphs and manifests with parts of the client as bytes: a JSON document and
arrays of numbers in the frame that every object of Jali has (docs/format.md).

In the document {"array": k} stands for array k. Bytes from elsewhere are checked: lengths before
memory is taken, numbers before they are used, no byte left over (src/jali/wire/document.h). Nothing
is executed. An array has at least one number, so that the length of the bytes bounds how many
arrays there are. The checksum finds damage. It does not say who wrote the bytes.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import files, schema
from jali._jali import program as _program
from jali.errors import CorruptData, LimitExceeded

__all__ = [
    "MAX_BYTES",
    "array",
    "decoded",
    "encoded",
    "from_hex",
    "load",
    "read",
    "save",
    "written",
]

Array = npt.NDArray[np.float64]

MAX_BYTES = 1 << 31
_MAX_DOCUMENT = 1 << 26
_MAX_DEPTH = 16


def written(kind: str, content: Any, arrays: Sequence[Array]) -> bytes:
    """The bytes of a "program" or a "graph". Raises LimitExceeded for what ``read`` would not
    take."""
    document = json.dumps(content, sort_keys=True, allow_nan=False).encode()
    if len(document) > _MAX_DOCUMENT:
        raise LimitExceeded(
            f"the {kind}'s document has {len(document)} bytes, and it may have {_MAX_DOCUMENT}: use fewer or smaller inputs"
        )
    numbers = [np.asarray(a, np.float64, order="C") for a in arrays]
    return _program.document_to_bytes(kind, document, numbers)


def read(
    kind: str, data: bytes | bytearray | memoryview, max_bytes: int = MAX_BYTES
) -> tuple[Any, list[Array]]:
    """(Content, arrays) of such bytes.

    Raises CorruptData, VersionError and LimitExceeded.
    """
    view = files.octets(data)
    files.refuse_earlier(view, kind)
    document = _program.Document.from_bytes(view, kind, max_bytes)
    text = document.text
    if len(document) > text.count(b'"array"'):  # an array of NumPy takes much more than its bytes
        raise CorruptData(f"the {kind} has arrays that its document does not name")
    try:
        content = schema.parsed(text)
    except ValueError as error:
        raise CorruptData(f"the {kind}'s document cannot be read: {error}") from None
    arrays = []
    for k in range(len(document)):
        shape = document.shape(k)
        found = np.frombuffer(view, "<f8", math.prod(shape), document.offset(k))
        arrays.append(found.reshape(shape).astype(np.float64))
    return content, arrays


def save(file: str | os.PathLike[str], data: bytes) -> None:
    """Write bytes to a path, which is replaced at once or stays as it was. Raises FileError."""
    files.save(file, data)


def load(file: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of a file. Raises FileError and LimitExceeded."""
    return files.load(file, max_bytes)


def array(arrays: Sequence[Array], most: int = MAX_BYTES) -> schema.Check:
    """The check of what stands for an array of a file: it gives the array, which has at most so
    many numbers."""
    place = schema.record({"array": schema.whole(0, len(arrays) - 1)})

    def check(value: Any) -> Array:
        found: Array = arrays[place(value)["array"]]
        if found.size > most:
            raise ValueError(f"must be an array of at most {most} numbers")
        return found

    return check


def from_hex(value: Any) -> bytes:
    """The bytes of a text of hexadecimal digits. Raises ValueError for anything else."""
    if type(value) is not str or not value.isascii():
        raise ValueError("must be bytes in hexadecimal digits")
    try:
        return bytes.fromhex(value)
    except ValueError:
        raise ValueError("must be bytes in hexadecimal digits") from None


def encoded(value: Any, arrays: list[Array]) -> Any:
    """A value as JSON can hold it. Arrays are appended to `arrays`."""
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, Mapping):
        return {key: encoded(v, arrays) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [encoded(v, arrays) for v in value]
    return value


def decoded(value: Any, arrays: Sequence[Array], depth: int = 0) -> Any:
    """What encoded() was given; lists come back as tuples. Raises CorruptData."""
    if depth > _MAX_DEPTH:
        raise CorruptData("the file's document is nested too deeply")
    if isinstance(value, list):
        return tuple(decoded(v, arrays, depth + 1) for v in value)
    if isinstance(value, float) and not math.isfinite(value):  # 1e999 is infinity
        raise CorruptData("the file's document holds a number that is not finite")
    if not isinstance(value, dict):
        return value
    if set(value) == {"array"}:
        index = value["array"]
        if type(index) is not int or not 0 <= index < len(arrays):
            raise CorruptData("the file's document names an array that is not there")
        return arrays[index]
    return {key: decoded(v, arrays, depth + 1) for key, v in value.items()}
