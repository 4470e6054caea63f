"""What someone writes who knows the formats: frames around any payload, and manifests that lie.

A Manifest is checked when it is read, and not when it is written, so that one with other fields
gives the bytes of a lie.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from jali import nn

HEADER, CHECKSUM = 48, 16
OBJECTS = {"program": 9, "graph": 11}

Lie = Callable[[nn.Manifest], nn.Manifest]


def sealed(frame: bytes) -> bytes:
    """The bytes of an object that were changed, with the length and the checksum that they need."""
    payload = frame[HEADER:-CHECKSUM]
    body = frame[:40] + len(payload).to_bytes(8, "little") + payload
    return body + hashlib.sha256(body).digest()[:CHECKSUM]


def of_document(kind: str, document: bytes, arrays: bytes = bytes(4)) -> bytes:
    """A "program" or a "graph" with this document, whatever it is. arrays: how many there are, in 4
    bytes, and they."""
    header = b"JALI" + bytes([1, 0, 1, OBJECTS[kind]]) + bytes(40)
    text = len(document).to_bytes(4, "little") + document
    return sealed(header + text + arrays + bytes(CHECKSUM))


def port(ports: str, **fields: Any) -> Lie:
    """The first of the "inputs" or "outputs" has these fields instead."""

    def change(manifest: nn.Manifest) -> nn.Manifest:
        first, *others = getattr(manifest, ports)
        return replace(manifest, **{ports: (replace(first, **fields), *others)})

    return change


def demand(**fields: Any) -> Lie:
    """The demand of keys has these fields instead."""
    return lambda manifest: replace(manifest, demand=replace(manifest.demand, **fields))


def manifest(**fields: Any) -> Lie:
    """The manifest has these fields instead."""
    return lambda honest: replace(honest, **fields)
