"""Cuts a model in ONNX along its operators, as jali.compiler.frontends.cutter says. The server's
part is a model of its own, which jali.compiler.frontends.from_onnx traces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jali.compiler.frontends.client_ranges import ranges_of
from jali.compiler.frontends.client_values import Clear, argument, steps_of
from jali.compiler.frontends.cutter import Cutter
from jali.compiler.frontends.onnx_branches import branch_of
from jali.compiler.frontends.onnx_client import MERGES, MOVES, OPERATIONS, is_head, translated
from jali.compiler.frontends.onnx_constants import constants_of
from jali.compiler.ir.graph import Shape
from jali.errors import Unsupported
from jali.program.clear.steps import Steps

__all__ = ["Cut", "cut_of"]


@dataclass(frozen=True, eq=False)
class Cut:
    """A model that is cut.

    encrypted: the server's part, a model in ONNX.
    before: what the client computes of its inputs; None for nothing.
    ranges: for each array that is encrypted, (low, high) of its numbers, as far as they follow from
        the model; None without a part before.
    """

    encrypted: Any
    before: Steps | None
    ranges: tuple[Any, ...] | None
    _after: Mapping[str, Any]

    def after(self, shapes: Sequence[Shape]) -> Steps | None:
        """What the client computes of the decrypted arrays, whose examples have these shapes; None
        for nothing. Raises Unsupported."""
        nodes, outputs, opset = (self._after[k] for k in ("nodes", "outputs", "opset"))
        if not nodes:
            return None
        names = [port.name for port in self.encrypted.graph.output]
        taken = {n: argument(n, s, np.float64) for n, s in zip(names, shapes, strict=True)}
        values: dict[str, Any] = {**self._after["constants"], **taken}
        for node in nodes:
            values |= _found(node, values, opset, {1})
        return steps_of(list(taken.values()), [values[name] for name in outputs])


def cut_of(
    model: Any, examples: Sequence[Any], constants: Mapping[str, Any] | None = None
) -> Cut | None:
    """How a loaded model is cut; None if its client would compute nothing, or its server.

    examples: one of each input, as arrays with the axis of the batch.
    constants: the values of inputs that are no secret, by their names.
    """
    return _Cutter(model, examples, constants or {}).cut()


def _attrs(node: Any, opset: int, batches: set[int]) -> dict[str, Any]:
    from onnx import helper

    attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    return attrs | {"opset": opset, "outputs": len(node.output), "batches": batches}


def _found(node: Any, values: Mapping[str, Any], opset: int, batches: set[int]) -> dict[str, Clear]:
    """The values of a node's outputs, as steps of the client. Raises Unsupported."""
    name = node.name or node.output[0]
    if node.op_type not in OPERATIONS or node.domain not in ("", "ai.onnx"):
        raise Unsupported(f"{name}: {node.op_type} is no operation of a client")
    inputs = [values[n] if n else None for n in node.input]
    try:
        results = translated(node.op_type, inputs, _attrs(node, opset, batches))
    except Unsupported as error:
        raise Unsupported(f"{name}: {error}") from None
    return dict(zip(node.output, results, strict=False))


def _names(node: Any) -> Iterator[str]:
    """What a node takes, also inside of its bodies."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for body in (attribute.g, *attribute.graphs):
            made = {name for inner in body.node for name in inner.output}
            for inner in body.node:
                yield from (name for name in _names(inner) if name not in made)
            yield from (port.name for port in body.output if port.name not in made)


class _Cutter(Cutter):
    """A model in ONNX that is being cut.

    constants: arrays that are known.
    """

    def __init__(self, model: Any, examples: Sequence[Any], known: Mapping[str, Any]) -> None:
        from onnx import helper, numpy_helper

        super().__init__()
        self.model = model
        self.opsets = {o.domain: int(o.version) for o in model.opset_import}
        self.opset = max((self.opsets.get(domain, 0) for domain in ("", "ai.onnx")), default=0)
        self.opsets.setdefault("", self.opset or 1)
        self.initial = {tensor.name: tensor for tensor in model.graph.initializer}
        self.constants = {n: numpy_helper.to_array(t) for n, t in self.initial.items()}
        self.constants |= known
        self.ports = [port for port in model.graph.input if port.name not in self.constants]
        dims = [port.type.tensor_type.shape.dim for port in self.ports]
        self.batches = {int(shape[0].dim_value) for shape in dims if shape} - {0}
        self.nodes = list(model.graph.node)
        self.outputs = [port.name for port in model.graph.output]
        self.arguments: list[Clear] = []
        for port, example in zip(self.ports, examples, strict=False):
            dtype: Any = helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type)
            if np.dtype(dtype).kind not in "iubf":
                dtype = np.float64  # of float16 and its kin, whose numbers are real, too
            made = argument(port.name, tuple(np.shape(example)[1:]), dtype)
            self.clear[port.name] = made
            self.arguments.append(made)

    def cut(self) -> Cut | None:
        """See cut_of."""
        if len(self.arguments) != len(self.ports):
            return None
        kept = self._forward()
        self.connect()
        before, after = self.before(), self.after(kept)
        ends = self.ends(after)
        middle = self.middle(ends, before, after)
        if not middle or not (before or after) or any(name not in self.of for name in ends):
            return None
        ports, steps = [port.name for port in self.ports], None
        if before:
            taken = {name for node in middle for name in _names(node)}
            ports = [name for name in [*ports, *before] if name in taken]
            steps = steps_of(self.arguments, [self.clear[name] for name in ports])
        ranges = None if steps is None else ranges_of(steps)
        rest = {"nodes": after, "outputs": self.outputs, "opset": self.opset}
        rest["constants"] = self.constants
        return Cut(self._model(ports, middle, ends), steps, ranges, rest)

    # --- what is known, and what the client could compute -----------------------------------------

    def _forward(self) -> list[Any]:
        """Finds constants and clear values, and gives the other nodes. Branches whose conditions
        are constants come into the place of their ``If``."""
        kept, nodes = list[Any](), list[Any]()
        pending = self.nodes[::-1]
        while pending:
            node = pending.pop()
            if node.op_type == "If" and node.input[0] in self.constants:
                pending += self._branch(node)[::-1]
                continue
            nodes.append(node)
            names = list(_names(node))
            shape = node.op_type == "Shape" and node.input[0] in self.clear
            if shape or all(name in self.constants for name in names):
                feeds = {n: self.constants[n] for n in names if not shape}
                if shape:
                    feeds = {node.input[0]: np.zeros(self.clear[node.input[0]].shape)}
                try:
                    found = constants_of(node, feeds, self.opsets, self.model.functions)
                except Exception:  # of many kinds: the tracer says what is wrong
                    kept.append(node)
                    continue
                self.constants |= found
                continue
            known = {**self.clear, **self.constants} if self._may_be_clear(names) else {}
            try:
                self.clear |= _found(node, known, self.opset, self.batches) if known else {}
            except Unsupported:
                known = {}
            if not known:
                kept.append(node)
        self.nodes = nodes
        return kept

    def _branch(self, node: Any) -> list[Any]:
        """The operations of the branch that an ``If`` takes, whose condition is a constant."""
        from onnx import numpy_helper

        taken = bool(np.ravel(self.constants[node.input[0]])[0])
        known = {name for other in self.nodes for name in (*other.input, *other.output)}
        nodes, tensors = branch_of(node, taken, known | self.constants.keys())
        self.initial |= tensors
        self.constants |= {name: numpy_helper.to_array(t) for name, t in tensors.items()}
        return nodes

    def _may_be_clear(self, names: Sequence[str]) -> bool:
        return all(name in self.clear or name in self.constants for name in names)

    # --- what operations are, for Cutter ----------------------------------------------------------

    def taken(self, node: Any) -> list[str]:
        """All that a node takes, also inside of its bodies."""
        return list(_names(node))

    def given(self, node: Any) -> Sequence[str]:
        """A node's outputs."""
        outputs: Sequence[str] = node.output
        return outputs

    def is_known(self, name: str) -> bool:
        """Whether it is a constant."""
        return name in self.constants

    def starts(self, node: Any) -> bool:
        """Whether the client computes a node before it encrypts: it looks up or compares, or
        computes with whole numbers what no server does."""
        takes = [self.clear[n] for n in node.input if n in self.clear]
        whole = all(x.kind != "real" for x in takes)
        op, head = node.op_type, self.is_head(node)
        compares = op in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "OneHot")
        chosen = op in ("Gather", "Where") and head
        return compares or chosen or (whole and (head or op in ("Div", "Mod", "CumSum")))

    def goes_through(self, node: Any) -> bool:
        """Whether a node moves numbers, or makes one array of several."""
        varying = {n for n in node.input if n and n not in self.constants}
        sizes = [np.size(self.constants[n]) for n in node.input if n in self.constants]
        merges = len(varying) > 1 or all(size == 1 for size in sizes)
        return node.op_type in MOVES or (node.op_type in MERGES and merges)

    def may_end(self, node: Any) -> bool:
        """Whether a client can compute the operator."""
        return node.op_type in OPERATIONS and node.domain in ("", "ai.onnx")

    def is_head(self, node: Any) -> bool:
        """Whether a server does not compute it, or approximates it."""
        varying = [bool(name) and name not in self.constants for name in node.input]
        return is_head(node.op_type, varying, _attrs(node, self.opset, self.batches))

    # --- the part in the middle -------------------------------------------------------------------

    def _model(self, ports: Sequence[str], middle: Sequence[Any], ends: Sequence[str]) -> Any:
        """The model of the server's part."""
        from onnx import TensorProto, helper

        batch: Any = next(iter(self.batches)) if len(self.batches) == 1 else "batch"
        inputs = []
        for name in ports:
            shape = (batch, *self.clear[name].shape[1:])
            inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ends]
        taken = dict.fromkeys(name for node in middle for name in _names(node))
        tensors = [self._tensor(name) for name in taken if name in self.constants]
        graph = helper.make_graph(middle, "encrypted", inputs, results, tensors)
        functions = list(self.model.functions)
        return helper.make_model(
            graph, opset_imports=list(self.model.opset_import), functions=functions
        )

    def _tensor(self, name: str) -> Any:
        """A constant of the server's part."""
        from onnx import numpy_helper

        tensor = self.initial.get(name)
        if tensor is not None and tensor.name == name:
            return tensor
        return numpy_helper.from_array(np.asarray(self.constants[name]), name)
