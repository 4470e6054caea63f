"""The walk through a model in ONNX, operation by operation. What depends on the model's inputs is
traced; what does not is computed by ONNX's own evaluator.

An operation that no table has, but whose definition in ONNX is made of others, is read as these.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jali.compiler.frontends.layers import MISPLACED, Masked, as_traced
from jali.compiler.frontends.onnx_constants import constants_of
from jali.compiler.frontends.onnx_control import CONTROL
from jali.compiler.frontends.onnx_functions import as_typed, body_of
from jali.compiler.frontends.onnx_layers import LAYERS
from jali.compiler.frontends.onnx_linear import LINEAR_OPERATIONS
from jali.compiler.frontends.onnx_ops import COMPUTING, INSTEAD
from jali.compiler.frontends.onnx_quantised import (
    NOT_DEQUANTISED,
    OF_QUANTISED,
    QUANTISED,
    moved_along,
)
from jali.compiler.frontends.onnx_recurrent import RECURRENT
from jali.compiler.frontends.onnx_resize import RESIZING
from jali.compiler.frontends.onnx_sequences import SEQUENCES
from jali.compiler.frontends.onnx_shapes import MOVING
from jali.compiler.frontends.onnx_values import Attrs, Value, is_traced
from jali.compiler.frontends.onnx_windows import WINDOWS
from jali.compiler.frontends.quantised_values import BESIDE, KeptEnds, Limits
from jali.compiler.frontends.replacements import OTHER
from jali.compiler.frontends.tracing import Builder, Traced
from jali.compiler.ir.graph import Shape
from jali.compiler.ir.operation import Input
from jali.errors import InvalidArgument, Unsupported

__all__ = ["OPERATIONS", "Reader"]

OPERATIONS = {
    **COMPUTING,
    **LAYERS,
    **LINEAR_OPERATIONS,
    **MOVING,
    **QUANTISED,
    **RECURRENT,
    **RESIZING,
    **SEQUENCES,
    **WINDOWS,
}
_TAKE_MASKS = ("Softmax", "Identity", "Cast", "CastLike")
_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")
_ALIKE = {  # operations of others that mean what ONNX's mean, or that ONNX does not have
    ("com.microsoft", op)
    for op in ("Gelu", *(op for op in QUANTISED if op.startswith(("Q", "Dequantize"))))
}
#: What moves quantised numbers, or chooses among them.
_OF_EVERY_NUMBER = {
    *("DepthToSpace", "Expand", "Flatten", "Gather", "Identity", "MaxPool", "Reshape", "Shape"),
    *("Size", "Slice", "SpaceToDepth", "Split", "Squeeze", "Transpose", "Unsqueeze"),
}
#: What the operations of malformed models raise.
_MALFORMED = (
    ValueError,
    IndexError,
    TypeError,
    KeyError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)


class Reader:
    """One reading of a model, for inputs of fixed shapes.

    builder: collects the nodes of the graph.
    labels: after which of the model's operations the nodes are named, by their names.
    outputs: the values of the model's outputs.
    constant: which of them do not depend on the inputs.
    limits: what operations that quantise keep of the numbers.
    """

    def __init__(
        self,
        model: Any,
        shapes: Mapping[str, Shape],
        constants: Mapping[str, Any],
        batches: Mapping[int, int] | None = None,
        kept: KeptEnds | None = frozenset(),
    ) -> None:
        """
        shapes: of the inputs that are traced.
        constants: the values of the others.
        batches: how many examples `shapes` has in the place of those for which the model was
            exported, which it says in reshapes.
        kept: the ends of quantised types at which numbers are cut; None for none at all.
        """
        from onnx import numpy_helper

        self.builder = Builder()
        self.labels: dict[str, str] = {}
        self.limits: list[Limits] = []
        self._kept = kept
        self._model, self._batches = model, batches or {}
        self._opsets = {o.domain: int(o.version) for o in model.opset_import}
        self._opsets.setdefault("", self._opsets.get("ai.onnx", 1))
        values: dict[str, Value] = {
            tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer
        }
        values |= constants
        for name, shape in shapes.items():
            lost = shape[1:] if shape[:1] == (1,) else shape
            made = self.builder.add(name, Input(shape=lost), [])
            values[name] = Traced(self.builder, made).reshape(shape)
        self.labels |= {name: name for name in self.builder.nodes}
        values = self.walk(model.graph.node, values)
        self.builder.label = None
        found = [_output(port.name, values) for port in model.graph.output]
        self.constant = [not isinstance(value, Traced) for value in found]
        if all(self.constant):
            raise InvalidArgument(
                f"the output {model.graph.output[0].name} of the model does not depend on its inputs: leave it out of the model"
            )
        like = next(value for value in found if isinstance(value, Traced))
        self.outputs = [x if isinstance(x, Traced) else as_traced(like, x) for x in found]

    def walk(self, nodes: Sequence[Any], values: dict[str, Value]) -> dict[str, Value]:
        """The values of all names, behind some operations of the model."""
        values = dict(values)
        around = self.builder.label
        for node in nodes:
            name = around or node.name or next(filter(None, node.output), node.op_type)
            self.builder.label = name
            unknown = [n for n in node.input if n and n not in values]
            if unknown:
                raise InvalidArgument(
                    f"{name}: nothing in the model computes its input {unknown[0]}: export the model again"
                )
            found = self._results(name, node, values)
            values |= {n: v for n, v in zip(node.output, found, strict=False) if n}
            for made in itertools.islice(self.builder.nodes, len(self.labels), None):
                self.labels[made] = name
        self.builder.label = around
        return values

    def _results(self, name: str, node: Any, values: dict[str, Value]) -> Sequence[Value]:
        from onnx import helper

        inputs = [values[n] if n else None for n in node.input]
        op, control = node.op_type, CONTROL.get(node.op_type)
        if control is None and not is_traced(inputs):
            return self.evaluated(name, node, inputs)
        attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        attrs |= {
            "opset": self._opsets[""],
            "outputs": len(node.output),
            "batches": self._batches,
            "evaluate": lambda given: self.evaluated(name, node, given),
            "label": name,
            "limits": self.limits,
            "kept": self._kept,
        }
        try:
            if control is not None:
                return control(self, inputs, attrs, values)
            found = self._computed(op, node, inputs, attrs)
        except (Unsupported, InvalidArgument) as error:
            text = str(error)
            raise type(error)(text if text.startswith(name) else f"{name}: {text}") from None
        except _MALFORMED as error:
            raise InvalidArgument(
                f"{name}: {op} does not take these inputs and attributes: export the model again. {error}"
            ) from None
        return list(found) if isinstance(found, (list, tuple)) and op not in _LISTS else [found]

    def _computed(self, op: str, node: Any, inputs: list[Value], attrs: Attrs) -> Value:
        known, beside = OPERATIONS.get(op), any(isinstance(value, BESIDE) for value in inputs)
        own = (node.domain, op) in {(f.domain, f.name) for f in self._model.functions}
        if not own and node.domain not in _DOMAINS and (node.domain, op) not in _ALIKE:
            raise Unsupported(
                f"{op} of {node.domain} cannot be compiled: export the model with ONNX's own operators"
            )
        if beside and not own:
            if op in OF_QUANTISED:
                return OF_QUANTISED[op](inputs, attrs)
            if op not in _OF_EVERY_NUMBER:
                raise Unsupported(NOT_DEQUANTISED)
            return moved_along(OPERATIONS[op])(inputs, attrs)
        if known is None or own:
            body = None
            if own or op not in INSTEAD:
                body = body_of(node, inputs, self._opsets, self._model.functions)
            if body is None:
                raise Unsupported(
                    f"{op} cannot be compiled: {INSTEAD.get(op, OTHER)}. There are {', '.join(sorted(OPERATIONS))}"
                )
            return self._inlined(body, inputs)
        if op not in _TAKE_MASKS and any(isinstance(value, Masked) for value in inputs):
            raise Unsupported(MISPLACED)
        return known(inputs, attrs)

    def _inlined(self, body: Any, inputs: list[Value]) -> list[Value]:
        """The results of an operation that is made of others."""
        opsets, self._opsets = self._opsets, {o.domain: int(o.version) for o in body.opset_import}
        self._opsets.setdefault("", opsets[""])
        try:
            given = dict(zip(body.input, as_typed(inputs), strict=False))
            inside = self.walk(body.node, {**dict.fromkeys(body.input), **given})
        finally:
            self._opsets = opsets
        return [inside.get(n) for n in body.output]

    def evaluated(self, name: str, node: Any, inputs: Sequence[Value]) -> list[Value]:
        """The results of an operation of constants, by ONNX's own evaluator."""
        feeds = {n: x for n, x in zip(node.input, inputs, strict=True) if n}
        try:
            found = constants_of(node, feeds, self._opsets, self._model.functions)
        except Exception as error:  # of many kinds
            raise Unsupported(
                f"{name}: {node.op_type} of constants could not be computed: fold the constants when you export. onnx says: {error}"
            ) from None
        return [found.get(n) for n in node.output]


_LISTS = ("SequenceConstruct", "SequenceInsert", "SplitToSequence", "SequenceErase")


def _output(name: str, values: Mapping[str, Value]) -> Any:
    if name not in values:
        raise InvalidArgument(
            f"nothing in the model computes its output {name}: export the model again"
        )
    value = values[name]
    if isinstance(value, Masked):
        raise Unsupported(f"the output {name} of the model: {MISPLACED}")
    if isinstance(value, BESIDE):
        raise Unsupported(f"the output {name} of the model: {NOT_DEQUANTISED}")
    if isinstance(value, list) and is_traced(value):
        raise Unsupported(
            f"the output {name} of the model is a sequence: give its arrays as outputs"
        )
    if not isinstance(value, Traced):
        array = np.asarray(value)
        if array.dtype.kind not in "biuf" and array.dtype.name != "bfloat16":
            raise Unsupported(
                f"the output {name} of the model is no array of numbers: leave it out"
            )
        return array.astype(np.float64)
    return value
