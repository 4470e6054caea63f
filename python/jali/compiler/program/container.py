"""The format of files: a header, a JSON document and arrays of numbers, under a hash.

    8 bytes  "JALI-NN" and a zero          4 bytes  version, little endian, as all numbers
    8 bytes  length of the document        32 bytes SHA-256 of everything behind it
    the document, UTF-8                    the arrays, float64, one after the other, in C order

The document is {"kind", "arrays": [shape, ...], "content"}. In the content {"array": k} stands for
array k. Bytes from elsewhere are checked: lengths before memory is taken, numbers before they are
used, no byte left over. Nothing is executed. An array has at least one number, so that the length
of a file bounds how many arrays it has. The hash finds damage. It does not say who wrote the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jali._core import schema
from jali._core.console import one_text
from jali._core.files import replace
from jali.compiler.ir.graph import Array
from jali.errors import (
    CorruptData,
    FileError,
    InvalidArgument,
    LimitExceeded,
    VersionError,
    WrongCall,
)

__all__ = ["MAX_BYTES", "array", "decoded", "encoded", "load", "read", "save", "written"]

MAX_BYTES = 1 << 31
_MAGIC, _VERSION = b"JALI-NN\0", 1
_HEADER = struct.Struct("<8sIQ32s")
_MAX_DOCUMENT = 1 << 26
_MAX_DEPTH = 16
_MAX_AXES = 8


def written(kind: str, content: Any, arrays: Sequence[Array]) -> bytes:
    """The bytes of a file. Raises LimitExceeded for what ``read`` would not take."""
    shapes = [list(a.shape) for a in arrays]
    document = json.dumps(
        {"kind": kind, "arrays": shapes, "content": content}, sort_keys=True, allow_nan=False
    ).encode()
    if len(document) > _MAX_DOCUMENT:
        raise LimitExceeded(
            f"the {kind}'s document has {len(document)} bytes, and a file may hold {_MAX_DOCUMENT}: use fewer or smaller inputs"
        )
    body = document + b"".join(np.ascontiguousarray(a, "<f8").tobytes() for a in arrays)
    return _HEADER.pack(_MAGIC, _VERSION, len(document), hashlib.sha256(body).digest()) + body


def read(
    kind: str, data: bytes | bytearray | memoryview, max_bytes: int = MAX_BYTES
) -> tuple[Any, list[Array]]:
    """(Content, arrays) of the bytes of a file.

    Raises CorruptData, VersionError and LimitExceeded.
    """
    try:
        view = schema.octets(data)
    except ValueError as error:
        raise InvalidArgument(f"data {error}. Open files with load(path)") from None
    if len(view) > max_bytes:
        raise LimitExceeded(f"the file has {len(view)} bytes, and max_bytes is {max_bytes}")
    if len(view) < _HEADER.size or bytes(view[:8]) != _MAGIC:
        raise CorruptData("these bytes are no file of jali.nn")
    _, version, length, digest = _HEADER.unpack_from(view)
    if version != _VERSION:
        raise VersionError(f"the file has version {version}, and this build reads {_VERSION}")
    body = view[_HEADER.size :]
    if length > min(len(body), _MAX_DOCUMENT) or hashlib.sha256(body).digest() != digest:
        raise CorruptData("the file is damaged: its length or its hash is not what its header says")
    try:
        document = _DOCUMENT(schema.parsed(bytes(body[:length])))
    except ValueError as error:
        raise CorruptData(f"the file's document cannot be read: {error}") from None
    if document["kind"] != kind:
        raise CorruptData(f"the file is a {document['kind']}, not a {kind}")
    content, shapes = document["content"], document["arrays"]
    if 8 * sum(map(math.prod, shapes)) != len(body) - length:
        raise CorruptData("the file's arrays have other sizes than its document says")
    arrays, offset = [], length
    for shape in shapes:
        count = math.prod(shape)
        array = np.frombuffer(body, "<f8", count, offset).reshape(shape).astype(np.float64)
        if not np.all(np.isfinite(array)):
            raise CorruptData("the file holds NaN or infinity")
        arrays.append(array)
        offset += 8 * count
    return content, arrays


def _path(file: Any) -> Path:
    """A path. Raises WrongCall for anything else."""
    if not isinstance(file, (str, os.PathLike)):
        raise WrongCall(
            f"a file is named by its path, not by {one_text(type(file).__name__)}: to_bytes() and from_bytes(data) take no file"
        )
    return Path(file)


def save(file: str | os.PathLike[str], data: bytes) -> None:
    """Write bytes to a path, which is replaced at once or stays as it was. Raises FileError."""
    replace(_path(file), data)


def load(file: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of a file. Raises FileError and LimitExceeded."""
    path = _path(file)
    try:
        with path.open("rb") as stream:
            data = stream.read(max_bytes + 1)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > max_bytes:
        raise LimitExceeded(f"{path} has more than {max_bytes} bytes")
    return data


_DOCUMENT = schema.record(
    {
        "kind": schema.one_of("graph", "manifest", "program"),
        "arrays": schema.listed(schema.listed(schema.whole(1, MAX_BYTES), most=_MAX_AXES)),
        "content": lambda value: value,
    }
)


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
