"""Hostile manifests and programs of exact integers, through everything that is done with them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np

import jali
from jali import discrete, nn
from jali._jali.program import document_to_bytes
from jali.program import container
from jali.program.integers import stored

__all__ = ["IntegerWorld"]

KIND = "program of exact integers"
MOST_BYTES = 1 << 24  # of a client

Attempt = Callable[[str, Callable[[], Any]], Any]


class IntegerWorld:
    """An honest program: squares, a matrix and a polynomial of whole numbers."""

    def __init__(self) -> None:
        x, weights = np.arange(24).reshape(12, 2) % 7, np.array([[3, -2], [0, 5]])

        def model(v: Any) -> Any:
            return weights @ (v * v) + v[0] ** 3 - v[::-1].sum()

        self.program: Any = jali.compile(model, x[0], calibration=x, scheme="discrete")
        self.secret = discrete.Client(self.program.params, threads=1)

    def file(self, chosen: random.Random, changed: Callable[[Any], Any], kind: str) -> bytes:
        """The bytes of a "manifest" or a "program" with changed fields, under a hash that is
        right."""
        if kind == "program":
            content, arrays = container.read(KIND, self.program.to_bytes())
            if chosen.random() < 0.3:  # a program whose manifest is a lie
                content["manifest"] = self.file(chosen, changed, "manifest").hex()
            else:
                content = changed(content)
            return document_to_bytes(KIND, _document(content), arrays)
        honest = self.program.manifest.to_bytes()
        fields = json.loads(bytes(stored.payload(kind, honest, MOST_BYTES)))
        return stored.written(kind, [_document(changed(fields))])

    def use(self, data: bytes, kind: str, attempt: Attempt) -> None:
        """Load, and what clients do with what was accepted."""
        if kind == "program":
            made = attempt(
                "integers.Program.from_bytes", lambda: nn.integers.Program.from_bytes(data)
            )
            if made is not None:
                rows = [np.zeros((2, *port.shape)) for port in made.manifest.inputs]
                attempt("clear", lambda: made.clear(*rows))
            return
        found = attempt(
            "integers.Manifest.from_bytes", lambda: nn.integers.Manifest.from_bytes(data)
        )
        if found is None:
            return
        attempt("costs", lambda: f"{found.key_cost}, {found.client_cost}")
        secret = self.secret if found.params == self.program.params else None
        client = attempt(
            "integers.Client",
            lambda: nn.integers.Client(found, secret=secret, threads=1, max_bytes=MOST_BYTES),
        )
        if client is not None:
            rows = [port.low.reshape(port.shape) for port in found.inputs]
            attempt("encrypt", lambda: client.encrypt(*rows))


def _document(content: Any) -> bytes:
    """A document as honest writers make it. They refuse infinities and NaN, which are written
    here."""
    return json.dumps(content, sort_keys=True).encode()
