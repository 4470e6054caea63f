"""The operators of PyTorch's exported graphs, and their arguments by PyTorch's names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

__all__ = ["given_arguments", "is_node", "label_of", "leaves_of", "mapped", "name_of", "takes_of"]

#: Arguments that say where and how numbers are kept.
_STORAGE = frozenset(
    {"layout", "device", "pin_memory", "memory_format", "non_blocking", "copy", "implicit"}
    | {"cudnn_enable", "cudnn_enabled", "momentum", "generator"}
)


def name_of(target: Any) -> str:
    """An operator's name without its namespace and overload: relu of aten.relu.default."""
    packet = getattr(target, "_overloadpacket", target)
    return str(getattr(packet, "__name__", packet))


def is_node(value: Any) -> bool:
    """Whether it is a node of an exported graph."""
    return hasattr(value, "op") and hasattr(value, "graph")


def mapped(value: Any, of: Callable[[Any], Any]) -> Any:
    """Arguments of an operator, with of(node) in the place of every node."""
    if isinstance(value, dict):
        return {key: mapped(v, of) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        found = [mapped(v, of) for v in value]
        return tuple(found) if isinstance(value, tuple) else found
    return of(value) if is_node(value) else value


def leaves_of(module: Any) -> set[str]:
    """The paths of the parts of a module that have no parts themselves."""
    return {path for path, part in module.named_modules() if not any(part.children())}


def label_of(node: Any, leaves: set[str]) -> str:
    """The path of the module that calls an operator, and the operator's name unless that module has
    no parts.

    leaves: as of leaves_of.
    """
    stack = list((node.meta.get("nn_module_stack") or {"": ("", None)}).values())
    path, name = str(stack[-1][0]).split("@")[0], name_of(node.target)
    if path in leaves and path:
        return path
    return f"{path}.{name}" if path else name


def takes_of(function: Callable[..., Any]) -> Mapping[str, Any]:
    """The parameters of what computes an operator."""
    return inspect.signature(function).parameters


def given_arguments(
    target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Iterator[tuple[str, Any, bool]]:
    """(name, value, whether it is other than the default) of the arguments that an operator was
    given, in the order of PyTorch. The first array is called x; what says where numbers are kept is
    left out."""
    declared = target._schema.arguments
    given = {a.name: value for a, value in zip(declared, args, strict=False)} | dict(kwargs)
    for argument in declared:
        if argument.name not in given or argument.name in _STORAGE:
            continue
        value = given[argument.name]
        name = "x" if argument.name in ("self", "input") else argument.name
        other = value is not None and not _equal(value, argument.default_value)
        yield name, value, other


def _equal(value: Any, default: Any) -> bool:
    return isinstance(value, (bool, int, float, str, list, tuple)) and bool(value == default)
