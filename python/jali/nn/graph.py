"""Graphs and their nodes."""

from __future__ import annotations

from jali.compiler.ir.graph import Array, Graph, Node, Shape

__all__ = ["Array", "Graph", "Node", "Shape"]
