"""Nodes by the names of their operations and of what is known of them, as texts show them. What a
test does not name has a value that changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from jali.compiler.ir.arrays import Shape
from jali.compiler.ir.facts import Facts, Origin, Range, Scaling
from jali.compiler.ir.folded_ops import Affine, Approximated, Bootstrap
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.operation import Operation
from jali.compiler.ir.products import Products
from jali.compiler.ir.sparse import SparseMap
from jali.compiler.ir.traced_ops import OPERATIONS, made
from jali.compiler.layout.lowered_ops import LoweredProducts, Transform
from jali.compiler.layout.terms import Term

__all__ = ["changed", "made_by_name", "node_of", "scaled"]

_CLASSES: Mapping[str, type[Operation]] = {
    **OPERATIONS,
    **{cls.name: cls for cls in (Affine, Approximated, Bootstrap, Transform)},
}
_SCALING = Scaling(centre=0.0, radius=1.0, low=-1.0, high=1.0, rms=1.0, largest=1.0, proven=False)


def made_by_name(name: str, op: str, inputs: list[Node], arguments: Mapping[str, Any]) -> Node:
    """A node of a traced graph."""
    return made(name, OPERATIONS[op](**arguments), inputs)


def node_of(
    name: str, op: str, inputs: tuple[str, ...], shape: Shape, attrs: Mapping[str, Any]
) -> Node:
    """A node of any stage."""
    count, size = len(inputs), int(np.prod(shape, dtype=np.int64))
    defaults: dict[str, dict[str, Any]] = {
        "input": {"shape": shape},
        "affine": {
            "maps": (SparseMap.identity(size),) * count,
            "bias": np.zeros(size),
            "shape": shape,
        },
        "transform": {
            "terms": (Term(1.0),) * count,
            "gains": ((1.0, True),) * count,
            "bias": np.zeros((1, 1)),
            "shared": (False,) * count,
        },
        "bootstrap": {"kind": "real"},
        "function": {"function": "relu"},
        "products": {"shapes": ((1, 1), (1, 1)), "gain": 1.0},
    }
    cls = _CLASSES.get(op) or (Products if "left" in attrs else LoweredProducts)
    if cls is LoweredProducts:
        defaults["products"] |= {"terms": (), "sums": ()}
    known = {field.name for field in fields(cls)}
    given = {k: v for k, v in attrs.items() if k in known}
    node = Node(name, cls(**defaults.get(op, {}) | given), inputs, shape)
    node = node.with_facts(scaling=_SCALING)
    return changed(node, **{k: v for k, v in attrs.items() if k not in known})


def scaled(graph: Graph) -> Graph:
    """The graph as approximation leaves it: every array has a scale, here that of [-1, 1]."""
    return replace(graph, nodes=tuple(node.with_facts(scaling=_SCALING) for node in graph))


def changed(node: Node, **attrs: Any) -> Node:
    """The same node with other arguments or facts, by their names."""
    for key, value in attrs.items():
        if key in {field.name for field in fields(node.operation)}:
            node = node.with_operation(**{key: value})
        elif key in {field.name for field in fields(Facts)}:
            node = node.with_facts(**{key: value})
        elif key in {field.name for field in fields(Origin)}:
            node = node.with_origin(**{key: value})
        elif node.facts.range is not None and key in {field.name for field in fields(Range)}:
            node = node.with_range(**{key: value})
        else:
            node = node.with_scaling(**{key: value})
    return node
