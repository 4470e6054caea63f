"""Compiled programs of exact integers. This is the public face of jali.compiler.integers.

jali.compile makes one for a model of whole numbers, such as a linear model with rounded weights, if
it is asked for by scheme="discrete" or costs no more than CKKS:

    program = jali.compile(lambda x: weights @ x, X[0], calibration=X, scheme="discrete")
    client = program.client()                               # holds the secret key
    server = program.server(client.evaluation_keys())       # holds the model
    client.decrypt(server(client.encrypt(x)))               # exact, of type int64

``quantised`` rounds a linear model of scikit-learn. ``Client`` makes a client from a ``Manifest``
alone, without the model.
"""

from __future__ import annotations

import sys as _sys

from jali._core import refusals as _refusals
from jali.compiler.integers.deployment import Deployment
from jali.compiler.integers.plan import Plan
from jali.compiler.integers.program import Program
from jali.compiler.integers.quantised import Quantised, quantised
from jali.compiler.integers.server import Server
from jali.compiler.integers.summary import Choice, Summary
from jali.program.integers.client import Client
from jali.program.integers.manifest import Manifest
from jali.program.integers.message import Message
from jali.program.integers.port import Port


def __getattr__(name: str) -> object:
    raise _refusals.of_module(__name__, name)


__all__ = [
    "Choice",
    "Client",
    "Deployment",
    "Manifest",
    "Message",
    "Plan",
    "Port",
    "Program",
    "Quantised",
    "Server",
    "Summary",
    "quantised",
]

_refusals.answer(_sys.modules[__name__])
