"""The branch of an ``If`` whose condition is known, as operations in its place."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

__all__ = ["branch_of"]


def branch_of(
    node: Any, condition: bool, known: Collection[str]
) -> tuple[list[Any], dict[str, Any]]:
    """The operations of the branch that is taken, which give the results of the ``If``, and the
    constants of that branch, as tensors by name.

    known: the names of the model, with which those of the branch must not be mixed up: other
        branches may have equal ones.
    """
    from onnx import helper

    attribute = "then_branch" if condition else "else_branch"
    (body,) = (a.g for a in node.attribute if a.name == attribute)
    prefix = f"{next(filter(None, node.output))}, {attribute}, "
    while any(name.startswith(prefix) for name in known):
        prefix += "_"
    made = {tensor.name for tensor in body.initializer}
    made |= {name for inner in body.node for name in inner.output}
    names = {name: prefix + name for name in made if name}
    constants = {names[tensor.name]: tensor for tensor in body.initializer}
    nodes = [_renamed(inner, names) for inner in body.node]
    for port, result in zip(body.output, node.output, strict=True):
        if result:
            source = names.get(port.name, port.name)
            nodes.append(helper.make_node("Identity", [source], [result]))
    return nodes, constants


def _renamed(node: Any, names: Mapping[str, str]) -> Any:
    """The operation with other names of what it takes and gives, also inside of its bodies."""
    copy = type(node)()
    copy.CopyFrom(node)
    copy.input[:] = [names.get(name, name) for name in node.input]
    copy.output[:] = [names.get(name, name) for name in node.output]
    for attribute in copy.attribute:
        for body in [attribute.g] if attribute.HasField("g") else list(attribute.graphs):
            own = {port.name for port in body.input} | {t.name for t in body.initializer}
            own |= {name for inner in body.node for name in inner.output}
            outer = {name: new for name, new in names.items() if name not in own}
            inside = [_renamed(inner, outer) for inner in body.node]
            del body.node[:]
            body.node.extend(inside)
            for port in body.output:
                port.name = outer.get(port.name, port.name)
    return copy
