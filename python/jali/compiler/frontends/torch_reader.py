"""Reads exported graphs of PyTorch as traced graphs. Nothing here imports PyTorch."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jali._core import checks
from jali.compiler.frontends.layers import MISPLACED, Mask, Masked
from jali.compiler.frontends.replacements import OTHER
from jali.compiler.frontends.torch_arguments import (
    given_arguments,
    is_node,
    label_of,
    leaves_of,
    mapped,
    name_of,
    takes_of,
)
from jali.compiler.frontends.torch_layers import LAYERS
from jali.compiler.frontends.torch_ops import COMPUTING, Value
from jali.compiler.frontends.torch_recurrent import RECURRENT
from jali.compiler.frontends.torch_refusals import reason
from jali.compiler.frontends.torch_shapes import MOVING
from jali.compiler.frontends.tracing import Builder, Traced
from jali.compiler.frontends.unbatched import unbatched
from jali.compiler.ir.graph import Graph, Shape
from jali.compiler.ir.operation import Input
from jali.errors import InvalidArgument, Unsupported

__all__ = ["OPERATORS", "Port", "Reader", "constant_of", "results_of"]

#: What becomes operations on encrypted numbers, by PyTorch's names of operators.
OPERATORS = {**COMPUTING, **LAYERS, **MOVING, **RECURRENT}
#: Operators that take an array which is minus infinity in places (layers.Masked), and such a mask
#: (layers.Mask).
_TAKE_MASKED = ("softmax", "_softmax", "add", "masked_fill", "where")
_TAKE_MASKS = ("add", "scaled_dot_product_attention")
#: Conversions, which leave a mask as it is, and operators that move the flags of a mask.
_CONVERTING = {"to", "_to_copy"}
_MOVE_MASKS = {*MOVING} - {"cat", "concat", "stack"}


@dataclass(frozen=True)
class Port:
    """What a client encrypts in the place of a value of the graph.

    shape: with the axis of the batch.
    kind: "real", "flag", or "mask": flags that say where a mask lets numbers count.
    """

    name: str
    shape: Shape
    kind: str = "real"


def constant_of(exported: Any, node: Any) -> Any:
    """The tensor of a placeholder that is none of the inputs."""
    signature = exported.graph_signature
    for table in (signature.inputs_to_parameters, signature.inputs_to_buffers):
        if node.name in table:
            target, kept = table[node.name], exported.state_dict
            return (kept if target in kept else exported.constants)[target].detach()
    return exported.constants[signature.inputs_to_lifted_tensor_constants[node.name]]


def results_of(exported: Any) -> list[Any]:
    """The module's results: nodes, or numbers that it gives as they are. None is left out. Raises
    Unsupported if the module changes its state."""
    (node,) = (n for n in exported.graph.nodes if n.op == "output")
    specs = exported.graph_signature.output_specs
    found = []
    for spec, value in zip(specs, node.args[0], strict=True):
        if spec.kind.name != "USER_OUTPUT":
            raise Unsupported(
                f"the module changes {spec.target or 'its input'} when it is called: a program has no state. Pass what changes as "
                "an input, and return it"
            )
        if value is not None:
            found.append(value)
    return found


class Reader:
    """Walks an exported graph. Values are traced arrays where they depend on the inputs, and
    tensors elsewhere.

    known: values that depend on no input, as far as they have been computed.
    reasons: why a client does not compute an operator, by the names of nodes.
    """

    def __init__(
        self,
        torch: Any,
        exported: Any,
        module: Any,
        known: Mapping[Any, Any] | None = None,
        reasons: Mapping[str, str] | None = None,
    ) -> None:
        self._torch, self._exported, self._builder = torch, exported, Builder()
        self._leaves = leaves_of(module)
        self._values: dict[Any, Any] = dict(known or {})
        self._reasons = reasons or {}

    def graph(self) -> Graph:
        """The traced graph of the whole module."""
        inputs = set(self._exported.graph_signature.user_inputs)
        nodes = list(self._exported.graph.nodes)
        ports = {
            n: Port(n.name, tuple(int(k) for k in n.meta["val"].shape))
            for n in nodes
            if n.op == "placeholder" and n.name in inputs
        }
        return self.part(ports, nodes, results_of(self._exported))

    def part(
        self, ports: Mapping[Any, Port], nodes: Iterable[Any], results: Sequence[Any]
    ) -> Graph:
        """The traced graph of a part of it.

        ports: what is encrypted, in order.
        nodes: those that are computed of it, and of what is known.
        """
        labels: dict[str, str] = {}
        for node, port in ports.items():
            self._values[node] = self._input(port)
        self._label(labels)
        for node in nodes:
            self._builder.label = None
            if node in self._values:
                continue
            if node.op == "placeholder":
                self._values[node] = constant_of(self._exported, node)
            elif node.op == "call_function":
                self._values[node] = self._call(node)
            elif node.op == "get_attr":
                self._values[node] = getattr(self._exported.graph_module, node.target)
            self._label(labels)
        self._builder.label = None
        values = [self._values.get(x, x) if is_node(x) else x for x in results]
        return unbatched(self._builder.graph([self._output(x) for x in values]), labels)

    def _label(self, labels: dict[str, str]) -> None:
        for made in itertools.islice(self._builder.nodes, len(labels), None):
            labels[made] = self._builder.label or made

    def _input(self, port: Port) -> Any:
        node = self._builder.add(port.name, Input(shape=port.shape[1:]), [])
        if port.kind != "real":
            self._builder.conditions.add(node.name)
        value = Traced(self._builder, node).reshape(port.shape)
        return Mask(value) if port.kind == "mask" else value

    def _output(self, value: Any) -> Any:
        """The node of an output, without the axis of the batch."""
        if isinstance(value, (Mask, Masked)):
            raise Unsupported(f"an output of the module: {MISPLACED}")
        if not isinstance(value, Traced):
            raise InvalidArgument(
                "an output of the module does not depend on its inputs: leave it out"
            )
        batched = value.ndim and value.shape[0] == 1
        return value.reshape(value.shape[1:]).node if batched else value.node

    def _call(self, node: Any) -> Any:
        name = name_of(node.target)
        args, kwargs = (mapped(v, self._values.__getitem__) for v in (node.args, node.kwargs))
        if node.target is operator.getitem:
            whole, place = args
            several = isinstance(whole, (tuple, list))
            part = whole[place] if several else whole if place == 0 else None
            if part is None and node.users:
                raise Unsupported(
                    f"{node.args[0].name}: what it gives beside its numbers, such as the places of the largest numbers, is not computed: use its first result alone"
                )
            return part
        if name.startswith("_assert"):
            return None
        if not _any_traced((args, kwargs)):
            return node.target(*args, **kwargs)
        self._builder.label = label = label_of(node, self._leaves)
        why = self._reasons.get(node.name)
        too = f". The client does not compute it either: {why}" if why else ""
        if name not in OPERATORS:
            raise Unsupported(f"{label}: {name} cannot be compiled: {reason(name) or OTHER}{too}")
        try:
            result = self._computed(name, node, args, kwargs)
            return self._clear_as_tensors(result, node.meta.get("val"))
        except (Unsupported, InvalidArgument) as error:
            text = str(error)
            text = text if text.startswith(label) else f"{label}: {text}"
            raise type(error)(text + too) from None

    def _computed(self, name: str, node: Any, args: Sequence[Any], kwargs: Any) -> Any:
        bound = self._bound(node.target, name, args, kwargs)
        x = bound.get("x")
        if isinstance(x, Mask) and name in _CONVERTING:
            return x
        if isinstance(x, Mask) and name in _MOVE_MASKS:
            return Mask(OPERATORS[name](**{**bound, "x": x.keep}))
        return OPERATORS[name](**bound)

    def _clear_as_tensors(self, result: Any, like: Any) -> Any:
        """What an operator gave, with tensors in the place of NumPy's arrays: 0 x is in the clear,
        and PyTorch computes with it further.

        like: what the module has there.
        """
        if isinstance(result, np.ndarray):
            tensor = self._torch.from_numpy(np.ascontiguousarray(result))
            return tensor if like is None else tensor.to(like.dtype)
        if isinstance(result, (tuple, list)):
            each = like if isinstance(like, (tuple, list)) else [like] * len(result)
            return type(result)(map(self._clear_as_tensors, result, each))
        return result

    def _bound(
        self, target: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> dict[str, Value]:
        """The arguments by PyTorch's names, in NumPy. Raises Unsupported for those that an operator
        does not have."""
        takes, found = takes_of(OPERATORS[name]), dict[str, Value]()
        for key, value, other in given_arguments(target, args, kwargs):
            if isinstance(value, self._torch.dtype):
                if not value.is_floating_point:
                    raise Unsupported(
                        f"a conversion to {value}: programs compute with real numbers, leave it out"
                    )
            elif key in takes:
                found[key] = self._numbers(value, name)
            elif other and key != "dtype":
                raise Unsupported(f"{name} with {key}={checks.shown(value)}: leave {key} out")
        return found

    def _numbers(self, value: Any, name: str) -> Value:
        """Tensors as arrays."""
        if isinstance(value, self._torch.Tensor):
            tensor = value.detach().cpu()
            if tensor.is_floating_point():  # a copy: the module may be trained further
                return tensor.to(self._torch.float64, copy=True).numpy()
            return tensor.numpy()
        masked = isinstance(value, Masked) and name not in _TAKE_MASKED
        mask = isinstance(value, Mask) and name not in {*_TAKE_MASKS, *_MOVE_MASKS}
        if masked or mask:
            raise Unsupported(MISPLACED)
        each = isinstance(value, (list, tuple))
        return [self._numbers(v, name) for v in value] if each else value


def _any_traced(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_any_traced, value))
    if isinstance(value, dict):
        return any(map(_any_traced, value.values()))
    return isinstance(value, (Traced, Mask, Masked))
