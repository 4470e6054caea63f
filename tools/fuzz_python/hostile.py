"""What is handed to operations: numbers and objects at the edges, and bytes changed behind a valid
checksum."""

from __future__ import annotations

import hashlib
import math
import struct
from typing import Any

import numpy as np

HEADER, CHECKSUM = 48, 16
#: Fields of a ciphertext's payload, as docs/format.md has them: offset and struct format.
CIPHERTEXT = {
    "level": (0, "<H"),
    "log_slots": (2, "<B"),
    "batch": (3, "<I"),
    "scale": (7, "<d"),
    "key_id": (15, "<Q"),
    "parts": (31, "<B"),
    "seeded": (32, "<B"),
    "variance": (33, "<d"),
    "message": (41, "<d"),
    "peak": (49, "<d"),
    "error": (57, "<d"),
    "noise": (65, "<d"),
    "length": (73, "<I"),
    "packing": (77, "<B"),
    "principal": (78, "<d"),  # of those that have one
}
PLAINTEXT = {name: CIPHERTEXT[name] for name in ("level", "log_slots", "batch", "scale")}
DOUBLES = [0.0, -0.0, 5e-324, 1e-300, 2.0**-64, 2.0**-63, 1e-9, 1.0, 2.0, 1e9, 2.0**40, 2.0**80,
           2.0**160, 1e300, 1.7e308, math.inf, -1.0, math.nan]  # fmt: skip
INTEGERS = [0, 1, -1, 2, 3, 4, 7, 8, 15, 16, 255, 511, 512, 513, 1024, 65535, 2**31 - 1, -(2**31),
            2**31, 2**32, 2**63 - 1, -(2**63), 2**63, 2**64, 10**400, 10**5000]  # fmt: skip
OTHERS = [None, "text", b"bytes", 2.5, math.nan, math.inf, True, [], {}, (), object(), np.float32(1.5),
          np.int8(3), np.bool_(True), np.array(2), np.float64("inf"), 1j, complex("nan"), "3", [1, "a"],
          np.array([], dtype=float), range(3), Exception]  # fmt: skip


def seal(payload_changed: bytearray) -> bytes:
    """The frame with its checksum, and the length that it has."""
    struct.pack_into("<Q", payload_changed, 40, len(payload_changed) - HEADER - CHECKSUM)
    digest = hashlib.sha256(payload_changed[:-CHECKSUM]).digest()
    payload_changed[-CHECKSUM:] = digest[:CHECKSUM]
    return bytes(payload_changed)


def field(data: bytes, fields: dict[str, tuple[int, str]], name: str) -> Any:
    """The value of a field of an object's bytes."""
    at, form = fields[name]
    return struct.unpack_from(form, data, HEADER + at)[0]
