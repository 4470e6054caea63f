"""Recorded graphs: a traced model as a file, which needs neither the package that it came from nor
its code."""

from __future__ import annotations

from jali.compiler.program.graph_file import document, from_bytes, graph_of, load, save, to_bytes

__all__ = ["document", "from_bytes", "graph_of", "load", "save", "to_bytes"]
