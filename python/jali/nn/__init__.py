"""Compiled programs: a trained model in, an encrypted program out. This is the public face of
jali.compiler.

    program = jali.compile(model, X[:1], calibration=X)
    client = program.client()                               # holds the secret key
    server = program.server(client.evaluation_keys())       # holds the model
    client.decrypt(server(client.encrypt(x)))

``trace`` gives a model's graph, ``to_bytes`` and ``from_bytes`` of jali.nn.graph_file keep it.
``Client`` makes a client from a ``Manifest`` alone, without the model.
"""

from __future__ import annotations

import sys as _sys

from jali._core import refusals as _refusals
from jali.compiler.frontends.loops import loop, scan
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.program.alternatives import Alternative, Alternatives
from jali.compiler.program.batcher import Batcher
from jali.compiler.program.deployment import Deployment
from jali.compiler.program.program import Program
from jali.compiler.program.server import Server
from jali.compiler.program.uploads import Upload, Uploads
from jali.nn import graph_file, integers, scalar
from jali.nn.compile import compile, trace
from jali.program.client import Client
from jali.program.manifest import Manifest
from jali.program.message import Message


def __getattr__(name: str) -> object:
    raise _refusals.of_module(__name__, name)


__all__ = [
    "Alternative",
    "Alternatives",
    "Batcher",
    "Client",
    "Deployment",
    "Graph",
    "Manifest",
    "Message",
    "Node",
    "Program",
    "Server",
    "Upload",
    "Uploads",
    "compile",
    "graph_file",
    "integers",
    "loop",
    "scalar",
    "scan",
    "trace",
]

_refusals.answer(_sys.modules[__name__])
