"""Hostile manifests with parts that a client computes in the clear, through everything that is done
with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import jali
from jali import ckks, nn
from jali._jali.program import document_to_bytes
from jali.program import container
from jali.program.clear.parts import Parts
from jali.program.clear.steps import Argument, Constant, Step, Steps

__all__ = ["ClientWorld"]

MOST_BYTES = 1 << 26  # of a client

Attempt = Callable[[str, Callable[[], Any]], Any]


class ClientWorld:
    """An honest manifest: a look-up of three numbers before, their two largest and a softmax
    after."""

    def __init__(self) -> None:
        x = np.linspace(-1, 1, 60).reshape(20, 3)
        program = jali.compile(lambda v: 2 * v, x[0], calibration=x, input_range=(-1.0, 1.0))
        table = Constant(np.linspace(-1, 1, 7), "real")
        look_up = Step("gather", (1, 0), {"axis": 0})
        before = Steps((Argument("x", (3,), "whole"),), (table,), (look_up,), (2,))
        top = {"how": "max", "axis": 1, "count": 2, "what": "numbers"}
        steps = (Step("top", (0,), top), Step("softmax", (1,), {"axis": 1}))
        after = Steps((Argument("y", (3,), "real"),), (), steps, (1, 2))
        self.manifest = replace(program.manifest, parts=Parts(before, after))
        self.honest = self.manifest.to_bytes()
        self.secret = ckks.Client(program.params, threads=1)

    def file(self, changed: Callable[[Any], Any]) -> bytes:
        """The bytes of a manifest whose parts have changed fields, under a hash that is right."""
        content, arrays = container.read("graph", self.honest)
        content["client"] = changed(json.loads(json.dumps(content["client"])))
        return document_to_bytes("graph", json.dumps(content, sort_keys=True).encode(), arrays)

    def use(self, data: bytes, attempt: Attempt) -> None:
        """Load, and what clients do with what was accepted."""
        found = attempt("Manifest.from_bytes", lambda: nn.Manifest.from_bytes(data))
        if found is None or found.parts is None:
            return
        attempt("costs", lambda: f"{found.client_cost} {found.parts.texts}")
        client = attempt(
            "Client",
            lambda: nn.Client(found, secret=self.secret, threads=1, max_bytes=MOST_BYTES),
        )
        if client is None:
            return
        attempt("encrypt", lambda: client.encrypt([0, 6, 3]))
        results = attempt("results", lambda: found.parts.results([np.array([[0.5, -1.0, 2.0]])]))
        if results is not None:
            assert all(np.isfinite(x).all() for x in results)
